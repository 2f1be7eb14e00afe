"""``hamlet trends``: some of the trends behind a count."""

from __future__ import annotations

from typing import Any

import click

from hamlet.cli.loading import load
from hamlet.cli.options import (
    COLUMN_OPTIONS,
    PERIOD_OPTIONS,
    READING_OPTIONS,
    TIMEZONE,
    WHERE,
    WORKLOAD,
    Input,
    input_option,
    with_options,
)
from hamlet.engine.where import chosen_events
from hamlet.errors import OptionError
from hamlet.output.digits import short_text
from hamlet.parallel.run import run as run_workload
from hamlet.runtime.definitions import ZONED
from hamlet.trends import TrendSample, refuse_others

_LONGEST = 40  # events of a trend that are shown


@click.command(
    "trends",
    short_help="List some of the trends that a result row counts.",
    epilog="""\b
    Examples:
      hamlet trends trips.sase --input trips.parquet --query q1
      hamlet trends trips.sase --input trips.parquet --query q1 --window "2024-03-05 10:00:00" --group Soho --limit 3
    """,
)
@WORKLOAD
@with_options(
    input_option(required=True),
    click.option("--query", metavar="NAME", help="The query; may be left out if there is only one."),
    click.option("--window", metavar="TIME", help="When the row's window begins; by default that of the first row."),
    click.option("--group", metavar="VALUE", help="The row's group: a value, or 'name=value,name=value'."),
    click.option(
        "--limit", metavar="N", type=click.IntRange(min=1), default=5, show_default=True, help="How many trends."
    ),
    WHERE,
    *PERIOD_OPTIONS,
    *COLUMN_OPTIONS,
    TIMEZONE,
    *READING_OPTIONS,
)
def command(
    workload: str,
    source: Input,
    query: str | None,
    window: str | None,
    group: str | None,
    limit: int,
    where: str | None,
    since: str | None,
    until: str | None,
    **columns: Any,
) -> None:
    """List some of the trends that a result row counts, the shortest first, each event with its columns.

    It does not list the others: a count of a thousand digits takes no longer than a small one.
    """
    checked, events = load(workload, source, True, columns)
    assert events is not None
    if query is None and len(checked.names) > 1:
        raise OptionError(f"--query says which of the queries: {', '.join(checked.names[:20])}")
    for each in checked.analysis.queries:
        if query in (None, each.query.name):
            refuse_others(each)
    chosen = checked.select([query] if query is not None else checked.names)
    given = chosen_events(events, since, until, where)
    options = {name: columns[name] for name in ZONED}
    sample = run_workload(chosen, given, **options).trends(chosen.names[0], window, group, limit)
    _show(sample, columns["type_column"])


def _show(sample: TrendSample, type_column: str) -> None:
    values = ", ".join(f"{name}={_text(value)}" for name, value in sample.row.items() if name != "query")
    click.echo(f"{sample.query}: {values}")
    for number, trend in enumerate(sample, 1):
        click.echo(f"trend {number}, {len(trend)} event{'s' * (len(trend) != 1)}:")
        for event in trend[:_LONGEST]:
            kind, variable = event[type_column], event["variable"]
            rest = {name: value for name, value in event.items() if name not in ("variable", type_column)}
            said = f"{kind} {variable}" if kind != variable else str(kind)
            click.echo(f"  {said}: " + ", ".join(f"{name}={_text(value)}" for name, value in rest.items()))
        if len(trend) > _LONGEST:
            click.echo(f"  ... and {len(trend) - _LONGEST:,} more events")
    if sample.note is not None:
        click.echo(f"note: {sample.note}", err=True)


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    text = short_text(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
