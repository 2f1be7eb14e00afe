"""``hamlet explain``."""

from __future__ import annotations

import json
from typing import Any

import click

from hamlet.cli.heard import refuse_unheard
from hamlet.cli.loading import load
from hamlet.cli.monitor import NEGATE, SIGNATURE
from hamlet.cli.notations import extension_of, notation_of, only_for, refuse_timezone, settings_of
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
    input_name,
    input_option,
    with_options,
)
from hamlet.cli.sql import explain_file, is_sql
from hamlet.engine.where import chosen_events
from hamlet.planner.explain import explain as explain_workload
from hamlet.planner.skipping import leave_out_useless


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
    if estimate and (source is None or extension_of(workload) is not None or is_sql(workload)):
        raise click.UsageError("--estimate runs a workload (.sase) over a sample of its input; name one by --input")
    if estimate and (html is not None or shown_as == "dot"):
        raise click.UsageError("--estimate prints text, or JSON with --format json")
    if numbers is not None and not estimate:
        raise click.UsageError("--numbers says how the runs of --estimate compute; give it with --estimate")
    if is_sql(workload):
        explain_file(workload)
        return
    extension = extension_of(workload)
    only_for([extension or ""], {"signature": signature, "negate": negate}, ".mfotl", "policies")
    refuse_unheard([extension or ".sase"])
    if html is not None and shown_as is not None:
        raise click.UsageError("--html writes a page and prints nothing, so --format says nothing; give one of them")
    if extension is not None:
        if queries:
            raise click.UsageError("--query chooses from the queries of a workload (.sase)")
        refuse_timezone(workload, columns)
        own = {"signature": signature, "negate": negate, "source": source, "quiet": quiet}
        own |= {"where": where, "since": since, "until": until}
        notation_of(extension).explain(workload, settings_of({**own, **columns}), shown_as or "text", html)
        return
    checked, events = load(workload, source, quiet, columns, queries)
    schema, zone = None if events is None else events.schema, columns["timezone"]
    if events is not None:
        chosen = chosen_events(events, since, until, where)
        leave_out_useless(checked, chosen)
        said = chosen.row_groups.sentence("a run skips")
        if said is not None and not quiet:
            click.echo(f"note: {said}", err=True)
        if estimate:
            from hamlet.parallel.estimate import COLUMNS  # runs, which nothing else here does
            from hamlet.parallel.estimate import estimate as estimated

            named = {name: columns[name] for name in COLUMNS}
            found = estimated(checked, chosen, numbers=numbers or "exact", **named)
            click.echo(json.dumps(found.facts()) if shown_as == "json" else found.text())
            return
    if html is None:
        click.echo(explain_workload(checked, schema, shown_as or "text", timezone=zone))
        return
    from hamlet.pages.explained import write_explanation  # brings in jinja2, which nothing else needs

    write_explanation(checked, html, schema, input_name(source) or None, timezone=zone)
