"""``hamlet version``."""

from __future__ import annotations

import click

from hamlet.version import __version__


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(f"hamlet {__version__}")
