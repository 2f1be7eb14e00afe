"""``hamlet explain``."""

from __future__ import annotations

from typing import Any

import click

from hamlet.cli.loading import load
from hamlet.cli.options import COLUMN_OPTIONS, INPUT_HELP, QUERY, QUIET, WORKLOAD, with_options
from hamlet.explain import explain as explain_workload


@click.command(
    "explain",
    short_help="Show how a workload will run, before it does.",
    epilog="""\b
    Examples:
      hamlet explain trips.sase
      hamlet explain trips.sase --input trips.parquet --query q1
      hamlet explain trips.sase --format dot | dot -Tsvg > trips.svg
    """,
)
@WORKLOAD
@with_options(
    click.option("--format", "shown_as", type=click.Choice(["text", "dot", "json"]), default="text", show_default=True),
    click.option("--input", "-i", "source", type=click.Path(), help=INPUT_HELP),
    QUERY,
    *COLUMN_OPTIONS,
    QUIET,
)
def command(
    workload: str, shown_as: str, source: str | None, quiet: bool, queries: tuple[str, ...], **columns: Any
) -> None:
    """Show how a workload will run: templates, sharing groups, panes, cost and memory class of each query."""
    checked, events = load(workload, source, quiet, columns, queries)
    click.echo(explain_workload(checked, None if events is None else events.schema, shown_as))
