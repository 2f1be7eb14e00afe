"""The command line: one module per command, each with its `command`.

Exit codes: 0 done; 2 the workload, the data or the options are wrong (the message says how); 1 anything else, an
interrupt among it. Results go to standard output, all else to standard error.
"""

from __future__ import annotations

import gc
import importlib
import io
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import click

from hamlet.cli import machine
from hamlet.cli.interrupt import heard_at_once
from hamlet.cli.words import in_users_words
from hamlet.errors import HamletError, JobError, speaking_of_flags
from hamlet.runtime.garbage import resting
from hamlet.starting import EXIT_CODE
from hamlet.version import __version__

# What comes first in use comes first in the help. A command is a module, loaded where it is asked for.
_NAMES = (
    *("check", "explain", "run", "sql", "monitor", "replay", "why", "trends", "submit"),
    *("calibrate", "doctor", "version", "completion"),
)


class _Commands(click.Group):
    """The commands, each in a module of its own."""

    def list_commands(self, _: click.Context) -> list[str]:
        return list(_NAMES)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        if name not in _NAMES:
            return None
        with resting():
            command: click.Command = importlib.import_module(f"hamlet.cli.{name}").command
            if machine.ERRORS not in command.params:
                command.params.append(machine.ERRORS)
            gc.freeze()  # what modules consist of stays to the end, and need not be looked through again
        return command

    def invoke(self, context: click.Context) -> Any:
        """Run a command; where the reader of a pipe has seen enough, that is the end, and a good one."""
        try:
            with heard_at_once():
                found = super().invoke(context)
                sys.stdout.flush()
        except HamletError as error:
            raise in_users_words(error, context) from None
        except KeyboardInterrupt:
            raise click.Abort from None  # before click prints an empty line
        except BrokenPipeError:
            # What is still buffered must not be written at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        return found


_SILENT = logging.NullHandler()


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
    Examples:
      hamlet check trips.sase --input trips.parquet
      hamlet run trips.sase --input trips.parquet
      hamlet run trips.sase --input trips.csv --output - | head
      hamlet explain trips.sase
      hamlet monitor reported.mfotl --signature bank.sig --input bank.log
      hamlet submit trips.sase --input trips.parquet --output results --master 'local[*]'
    """,
)
@click.version_option(__version__, "-V", "--version", prog_name="hamlet", message="%(prog)s %(version)s")
def cli() -> None:
    """Count event trends, monitor policies, compute stream equations and match rows: many at once, exactly."""


cli.commands.update({name: click.Command(name) for name in _NAMES})  # names are enough to say what was meant


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        What stands behind the program's name; by default those of the process.

    Returns
    -------
    int
        The exit code.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever has started this process
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (for as long as the process lives)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # what a terminal cannot show is shown as standard error does
    machine.begin()
    logging.getLogger("hamlet").addHandler(_SILENT)  # a command says itself what the log would
    try:
        with speaking_of_flags(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = cli.main(arguments, prog_name="hamlet", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit:  # what click makes of a pipe that is closed while it prints a help
        return 0
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        click.echo(machine.lines([machine.plain(*_said(error))]) if machine.wanted() else _usage_text(error), err=True)
        return error.exit_code
    except HamletError as error:
        click.echo(machine.shown(error), err=True)
        return 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return EXIT_CODE
    except JobError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    except MemoryError:
        click.echo("error: out of memory", err=True)
        return 1
    except OSError as error:
        where = f": {error.filename}" if error.filename else ""
        click.echo(f"error: {error.strerror or error}{where}", err=True)
        return 1
    except Exception as error:
        if os.environ.get("HAMLET_DEBUG") == "1":
            traceback.print_exc()
        click.echo(
            f"error: {type(error).__name__}: {error}\n"
            "this is a bug in hamlet; HAMLET_DEBUG=1 shows where, please report it",
            err=True,
        )
        return 1


def _said(error: click.ClickException) -> tuple[str, str | None]:
    """Message and hint of what is wrong with the arguments."""
    message, _, hint = _usage_text(error).removeprefix("error: ").partition("\nhint: ")
    return message, hint or None


def _usage_text(error: click.ClickException) -> str:
    """What is wrong with the arguments, in the form of all errors, and what tells more."""
    said = " ".join(error.format_message().split()).removesuffix(".").replace(". Did you mean", "; did you mean")
    if ". (Did you mean" in said:
        said = said.replace(". (Did you mean", "; did you mean").removesuffix(")")
    begins_a_sentence = said[:1].isupper() and said[1:2].islower()
    text = f"error: {said[0].lower() if begins_a_sentence else said[:1]}{said[1:]}"
    context = error.ctx if isinstance(error, click.UsageError) else None
    return text if context is None else f"{text}\nhint: {context.command_path} --help shows how it is used"


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Python's warnings as the command line says everything: one line, without a place in the program."""
    click.echo(f"warning: {message}", err=True)
