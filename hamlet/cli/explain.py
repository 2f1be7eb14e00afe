"""``hamlet explain``."""

from __future__ import annotations

from typing import Any

import click

from hamlet.cli.heard import refuse_unheard
from hamlet.cli.monitor import NEGATE, SIGNATURE
from hamlet.cli.notations import QUERIES, extension_of, notation_of, settings_of
from hamlet.cli.options import (
    COLUMN_OPTIONS,
    FILE,
    PERIOD_OPTIONS,
    QUERY,
    QUIET,
    READING_OPTIONS,
    TIMEZONE,
    WHERE,
    Input,
    input_option,
    with_options,
)


@click.command(
    "explain",
    short_help="Show how a workload, a policy or a specification will run, before it does.",
    epilog="""\b
    Examples:
      hamlet explain trips.sase
      hamlet explain trips.sase --input trips.parquet --query q1
      hamlet explain trips.sase --format dot | dot -Tsvg > trips.svg
      hamlet explain trips.sase --html trips.html
      hamlet explain trips.sase --estimate --input trips.parquet
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
    click.option(
        "--estimate",
        is_flag=True,
        help="Say what a run over the input will take, from runs over a sample of it: seconds, bytes and rows, the "
        "operator that takes most of the events, and what would make it cheaper.",
    ),
    click.option(
        "--numbers",
        type=click.Choice(["exact", "float"]),
        help="With --estimate: as of `hamlet run`.",
    ),
    SIGNATURE,
    NEGATE,
    input_option(monpoly=True),
    QUERY,
    WHERE,
    *PERIOD_OPTIONS,
    *COLUMN_OPTIONS,
    TIMEZONE,
    *READING_OPTIONS,
    QUIET,
)
def command(
    workload: str,
    shown_as: str | None,
    html: str | None,
    estimate: bool,
    numbers: str | None,
    signature: str | None,
    negate: bool,
    source: Input | None,
    quiet: bool,
    queries: tuple[str, ...],
    where: str | None,
    since: str | None,
    until: str | None,
    **columns: Any,
) -> None:
    """Show how a file will run.

    For a workload: templates, who can share with whom, panes, cost and memory class of each query. For a policy: its
    formula as it is evaluated, and what each node keeps. For a specification: its streams, and what is kept of each.
    """
    extension = extension_of(workload)
    if estimate and (source is None or extension != QUERIES):
        raise click.UsageError("--estimate runs a workload (.sase) over a sample of its input; name one by --input")
    if estimate and (html is not None or shown_as == "dot"):
        raise click.UsageError("--estimate prints text, or JSON with --format json")
    if numbers is not None and not estimate:
        raise click.UsageError("--numbers says how the runs of --estimate compute; give it with --estimate")
    refuse_unheard([extension])
    if html is not None and shown_as is not None:
        raise click.UsageError("--html writes a page and prints nothing, so --format says nothing; give one of them")
    own = {"signature": signature, "negate": negate, "source": source, "quiet": quiet, "queries": queries}
    own |= {"where": where, "since": since, "until": until}
    settings = settings_of({**own, **columns})
    if estimate:
        from hamlet.cli.queries import estimated

        click.echo(estimated(workload, settings, numbers or "exact", as_json=shown_as == "json"))
        return
    notation_of(extension).explain(workload, settings, shown_as or "text", html)
