"""The rows of other queries as events: of a query that asks about them, and what evidence says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hamlet.engine.where import chosen_events
from hamlet.input.events import EventSource
from hamlet.input.ticks import time_in_ticks
from hamlet.language.meaning import AnalysedQuery
from hamlet.oracle import Event
from hamlet.oracle.stream import as_attribute
from hamlet.output.plain import json_value
from hamlet.parallel.run import rows_alone
from hamlet.planner.workload import Workload
from hamlet.why.trends.reading import Selection

Row = Mapping[str, Any]
_EDGES = ("window_start", "window_end")


def closure(analysed: AnalysedQuery) -> list[str]:
    """A query and those whose rows are its events, or theirs."""
    found = {analysed.query.name: None}
    for each in analysed.upstream.values():
        found |= dict.fromkeys(closure(each))
    return list(found)


def rows_of_all(source: EventSource, options: Mapping[str, Any], workload: Workload) -> list[dict[str, Any]]:
    """The rows of all queries of a workload over the period of a run."""
    own = {name: value for name, value in options.items() if name not in ("since", "until")}
    events = chosen_events(source, options.get("since"), options.get("until"), None)
    return [dict(row) for row in rows_alone(events, own, workload) or ()]


def beside(
    selection: Selection,
    analysed: AnalysedQuery,
    rows: Sequence[Row],
    source: EventSource,
    times: tuple[int | None, int | None],
) -> tuple[Selection, dict[int, Row]]:
    """Events with the rows that are events of a query, from one time to another, both included, by their places."""
    schema, stream = source.schema, selection.stream
    clock, low, high = schema.clock, *times
    stream.of_rows = {
        name: ["query", *_EDGES, *(item.column for item in each.query.items)]
        for name, each in analysed.upstream.items()
    }
    stream.declared.update({name: dict.fromkeys(columns) for name, columns in stream.of_rows.items()})
    shown, found = dict(selection.shown), dict[int, Row]()
    for row in rows:
        if row["query"] not in analysed.upstream:
            continue
        time = time_in_ticks(row["window_end"], clock)
        if (low is None or low <= time) and (high is None or time <= high):
            place = -1 - len(found)
            values = {column: as_attribute(value) for column, value in row.items()}
            values |= {clock.column: row["window_end"], schema.type_column: row["query"]}
            stream.events.append(Event(place, row["query"], time, None, values))
            shown[place], found[place] = values, row
    return replace(selection, shown=shown), found


def told(rows: Mapping[int, Row], group: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that have the values of a group, with their places as events."""
    return [
        {"at": place, "row": json_value(row)}
        for place, row in rows.items()
        if all(json_value(as_attribute(row[name])) == value for name, value in group.items() if name in row)
    ]
