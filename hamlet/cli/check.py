"""``hamlet check``."""

from __future__ import annotations

from typing import Any

import click

from hamlet.cli.loading import load
from hamlet.cli.options import COLUMN_OPTIONS, QUIET, READING_OPTIONS, WORKLOAD, input_option, with_options
from hamlet.findings import Watch, found_by


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
@with_options(input_option(), *COLUMN_OPTIONS, *READING_OPTIONS, QUIET)
def command(workload: str, source: str | None, quiet: bool, **columns: Any) -> None:
    """Report all errors of a workload, with the input's columns if there is an input.

    The input is read until every type, condition and key of the workload has occurred; notes say what never does.
    """
    checked, events = load(workload, source, quiet, columns, all_errors=True)
    if events is not None and not quiet:
        watch = Watch(checked, events.schema)
        for batch in events.batches([name for name in watch.columns if name in events.schema.columns]):
            watch.see(batch)
            if watch.settled:
                break
        for sentence in [*events.notes(), *found_by(watch)]:
            click.echo(f"note: {sentence}", err=True)
    if not quiet:
        count = len(checked.names)
        click.echo(f"{workload}: {count} quer{'y' if count == 1 else 'ies'}, no errors")
