"""``hamlet explain``."""

from __future__ import annotations

from typing import Any

import click

from hamlet.cli.loading import load
from hamlet.cli.monitor import NEGATE, SIGNATURE
from hamlet.cli.notations import extension_of, notation_of, only_for, settings_of
from hamlet.cli.options import COLUMN_OPTIONS, FILE, QUERY, QUIET, input_option, with_options
from hamlet.planner.explain import explain as explain_workload


@click.command(
    "explain",
    short_help="Show how a workload, a policy or a specification will run, before it does.",
    epilog="""\b
    Examples:
      hamlet explain trips.sase
      hamlet explain trips.sase --input trips.parquet --query q1
      hamlet explain trips.sase --format dot | dot -Tsvg > trips.svg
      hamlet explain trips.sase --html trips.html
      hamlet explain reported.mfotl --signature bank.sig
    """,
)
@FILE
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
        help="Write a page that draws the templates, instead of printing.",
    ),
    SIGNATURE,
    NEGATE,
    input_option(monpoly=True),
    QUERY,
    *COLUMN_OPTIONS,
    QUIET,
)
def command(
    workload: str,
    shown_as: str | None,
    html: str | None,
    signature: str | None,
    negate: bool,
    source: str | None,
    quiet: bool,
    queries: tuple[str, ...],
    **columns: Any,
) -> None:
    """Show how a file will run.

    For a workload: templates, who can share with whom, panes, cost and memory class of each query. For a policy: its
    formula as it is evaluated, and what each node keeps. For a specification: its streams, and what is kept of each.
    """
    extension = extension_of(workload)
    only_for([extension or ""], {"signature": signature, "negate": negate}, ".mfotl", "policies")
    if html is not None and shown_as is not None:
        raise click.UsageError("--html writes a page and prints nothing, so --format says nothing; give one of them")
    if extension is not None:
        if queries:
            raise click.UsageError("--query chooses from the queries of a workload (.sase)")
        own = {"signature": signature, "negate": negate, "source": source, "quiet": quiet}
        notation_of(extension).explain(workload, settings_of({**own, **columns}), shown_as or "text", html)
        return
    checked, events = load(workload, source, quiet, columns, queries)
    schema = None if events is None else events.schema
    if html is None:
        click.echo(explain_workload(checked, schema, shown_as or "text"))
        return
    from hamlet.pages.explained import write_explanation  # brings in jinja2, which nothing else needs

    write_explanation(checked, html, schema, source)
