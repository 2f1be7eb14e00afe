"""``hamlet check``."""

from __future__ import annotations

from typing import Any

import click

from hamlet.cli.loading import load
from hamlet.cli.options import COLUMN_OPTIONS, QUIET, WORKLOAD, input_option, with_options


@click.command(
    "check",
    short_help="Report all errors of a workload.",
    epilog="""\b
    Examples:
      hamlet check trips.sase
      hamlet check trips.sase --input trips.parquet --type-column event
    """,
)
@WORKLOAD
@with_options(input_option(), *COLUMN_OPTIONS, QUIET)
def command(workload: str, source: str | None, quiet: bool, **columns: Any) -> None:
    """Report all errors of a workload, with the input's columns if there is an input."""
    checked, _ = load(workload, source, quiet, columns, all_errors=True)
    if not quiet:
        count = len(checked.names)
        click.echo(f"{workload}: {count} quer{'y' if count == 1 else 'ies'}, no errors")
