"""``hamlet explain``."""

from __future__ import annotations

from typing import Any

import click

from hamlet.cli.loading import load
from hamlet.cli.options import COLUMN_OPTIONS, QUERY, QUIET, WORKLOAD, input_option, with_options
from hamlet.planner.explain import explain as explain_workload


@click.command(
    "explain",
    short_help="Show how a workload will run, before it does.",
    epilog="""\b
    Examples:
      hamlet explain trips.sase
      hamlet explain trips.sase --input trips.parquet --query q1
      hamlet explain trips.sase --format dot | dot -Tsvg > trips.svg
      hamlet explain trips.sase --html trips.html
    """,
)
@WORKLOAD
@with_options(
    click.option(
        "--format",
        "shown_as",
        type=click.Choice(["text", "dot", "json"]),
        help="What to print: text for people (the default), a drawing for Graphviz, or all facts for programs.",
    ),
    click.option(
        "--html",
        metavar="FILE.html",
        type=click.Path(),
        help="Write a page that draws the templates instead of printing; needs pip install 'hamlet-cep[draw]'.",
    ),
    input_option(),
    QUERY,
    *COLUMN_OPTIONS,
    QUIET,
)
def command(
    workload: str,
    shown_as: str | None,
    html: str | None,
    source: str | None,
    quiet: bool,
    queries: tuple[str, ...],
    **columns: Any,
) -> None:
    """Show how a workload will run: templates, sharing groups, panes, cost and memory class of each query."""
    if html is not None and shown_as is not None:
        raise click.UsageError("--html writes a page and prints nothing, so --format says nothing; give one of them")
    checked, events = load(workload, source, quiet, columns, queries)
    schema = None if events is None else events.schema
    if html is None:
        click.echo(explain_workload(checked, schema, shown_as or "text"))
        return
    from hamlet.pages.explained import write_explanation  # brings in jinja2 and igraph, which nothing else needs

    write_explanation(checked, html, schema, source)
