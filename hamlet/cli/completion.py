"""``hamlet completion``: what a shell has to know to complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

PROGRAM = "hamlet"
VARIABLE = "_HAMLET_COMPLETE"  # how the script asks the program, fixed by click


@click.command(
    "completion",
    short_help="Print the script for completion in a shell.",
    epilog="""\b
    Examples:
      eval "$(hamlet completion bash)"                                    (in ~/.bashrc)
      eval "$(hamlet completion zsh)"                                     (in ~/.zshrc)
      hamlet completion fish > ~/.config/fish/completions/hamlet.fish
    """,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, options and file names."""
    found = get_completion_class(shell)
    assert found is not None, "the choices are those that click knows"
    click.echo(found(context.find_root().command, {}, PROGRAM, VARIABLE).source())
