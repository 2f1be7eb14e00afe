"""Queries run once more in other words, over few of the events: numbers that stand beside those of a result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hamlet.errors import HamletError
from hamlet.findings.reasons import MOST_QUERIES, Again
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import to_text
from hamlet.language.query import Attribute, AttributeType, Comparison, Group, Literal, Query, Reference, ReturnItem
from hamlet.language.schema import Schema
from hamlet.output.digits import short_text
from hamlet.output.fitting import largest_of
from hamlet.output.query_rows import Piece, QueryRows
from hamlet.planner.classify import EVENT
from hamlet.planner.workload import Workload

Rows = Sequence[Mapping[str, Any]]
Rerun = Callable[[Workload, "Part", int], Rows | None]  # None where there are more events than given

FEW_EVENTS = 10_000  # of an input that is read again whole
_MOST_EVENTS = 500_000  # of one window
_MOST_WINDOWS = 3  # of a query that are read again
_PLAIN = (AttributeType.INT, AttributeType.STRING)


@dataclass(frozen=True)
class Part:
    """Some of the events of a run.

    Attributes
    ----------
    period : (int, int) or None
        The first tick, and the first one after it.
    where : str or None
        A condition over columns.
    window : int or None
        The first tick of the only window of which all events that matter are in the period.
    """

    period: tuple[int, int] | None = None
    where: str | None = None
    window: int | None = None


class Beside:
    """Runs queries in other words over the events that rows came from.

    Parameters
    ----------
    workload : Workload
    source : Again
        The events; nothing is run where they cannot be read again.
    rerun : callable
        Gives the rows of another workload over a part of the events.
    """

    def __init__(self, workload: Workload, source: Again, rerun: Rerun) -> None:
        self._workload, self._source, self._rerun = workload, source, rerun
        self._whole = source.rows is not None and source.rows <= FEW_EVENTS

    def rows(
        self, asked: Mapping[int, Query], found: Sequence[QueryRows], settled: Collection[int]
    ) -> Iterator[tuple[AnalysedQuery, Rows]]:
        """The rows of some queries in other words: all of them of few events, else those of some windows and groups.

        Parameters
        ----------
        asked : mapping of int to Query
            The place of a query in the workload, and its other words.
        found : sequence of QueryRows
            The rows of each query of the workload.
        settled : collection of int
            Places whose further rows nobody needs; may grow meanwhile.
        """
        queries = self._workload.analysis.queries
        places = [place for place in asked if self._whole or not (queries[place].upstream or asked[place].session)]
        looked_at: dict[int, list[Part]] = {}
        for place in places[:MOST_QUERIES] if self._source.repeatable else ():
            looked_at[place] = [Part()] if self._whole else _parts(queries[place], found[place], self._source.schema)
        for turn in range(_MOST_WINDOWS):
            together: dict[Part, list[int]] = {}
            for place, parts in looked_at.items():
                if turn < len(parts) and place not in settled:
                    together.setdefault(parts[turn], []).append(place)
            for part, alike in together.items():
                for place, rows in self._rows_of(part, alike, asked).items():
                    yield queries[place], rows

    def _rows_of(
        self, part: Part, places: Sequence[int], asked: Mapping[int, Query]
    ) -> dict[int, list[Mapping[str, Any]]]:
        """The rows of queries that look at one part of the events."""
        queries, text = self._workload.analysis.queries, self._workload.analysis.text
        own = text.queries if any(queries[place].upstream for place in places) else ()
        names = {f"{queries[place].query.name} {place}": place for place in places}
        others = [replace(asked[place], name=name) for name, place in names.items()]
        made: dict[int, list[Mapping[str, Any]]] = {}
        start = self._source.schema.clock.present(part.window)
        try:
            again = Workload.parse(to_text(replace(text, queries=(*own, *others))))
            for row in self._rerun(again, part, _MOST_EVENTS) or ():
                if row["query"] in names and (part.period is None or row["window_start"] == start):
                    made.setdefault(names[row["query"]], []).append(row)
        except HamletError:  # what the user wrote is right, whatever is wrong with other words for it
            return {}
        return made


def _parts(query: AnalysedQuery, rows: QueryRows, schema: Schema) -> list[Part]:
    """Some windows that have rows, the group of the row among them where it can be told.

    It is the first row, one in the middle, and the one with the largest number.
    """
    filled = [piece for piece in rows.pieces if len(piece.starts)]
    if not filled:
        return []
    middle = filled[len(filled) // 2]
    chosen = [(filled[0], 0), (middle, len(middle.starts) // 2)]
    for place, column in enumerate(rows.columns):
        if column.kind == "count" and len(chosen) < _MOST_WINDOWS:
            largest = [largest_of(piece.values[place]) or 0 for piece in filled]
            most = max(range(len(filled)), key=largest.__getitem__)
            numbers = [each or 0 for each in filled[most].values[place].tolist()]
            chosen.append((filled[most], max(range(len(numbers)), key=numbers.__getitem__)))
    more = 0 if query.query.longest is None else query.query.longest.ticks(schema.clock.ticks_per_second)[0]
    found: dict[Part, None] = {}
    for piece, row in chosen:
        where = _group(query, rows, piece, row)
        if query.query.within is None:
            found[Part(None, where)] = None
            continue
        start, end = int(piece.starts.column()[row]), int(piece.ends.column()[row])
        period = start - 2 * more, end + more  # a NOT before a trend looks as far back as the trend may
        found[Part(period, where, start)] = None
    return list(found)


def _group(query: AnalysedQuery, rows: QueryRows, piece: Piece, row: int) -> str | None:
    """A condition that holds for the events of a row's group; None where others may matter, or it is not simple."""
    if query.query.top is not None or query.declared:
        return None
    columns = {item.value.name: i for i, item in enumerate(query.query.items) if isinstance(item.value, Attribute)}
    parts = []
    for name in query.grouping:
        value = piece.values[columns[name]].tolist()[row] if name in columns else None
        if isinstance(value, (int, str)) and not isinstance(value, bool) and rows.columns[columns[name]].type in _PLAIN:
            parts.append(to_text(Comparison("=", Reference(EVENT, name), Literal(value))))
    return " AND ".join(parts) or None


def with_groups(query: Query) -> list[ReturnItem]:
    """All that GROUP-BY names as columns: ``g0``, ``g1``, ..."""
    return [ReturnItem(each, alias=f"g{place}") for place, each in enumerate(query.group_by)]


def row_text(query: Query, row: Mapping[str, Any]) -> str:
    """Which row a number stands in: the row of window_start 0 and user 7."""
    parts = []
    if row["window_start"] is not None:
        start = row["window_start"]
        parts.append(f"window_start {start.isoformat() if hasattr(start, 'isoformat') else start}")
    parts += [f"{to_text(_plain(each))} {value_text(row[f'g{place}'])}" for place, each in enumerate(query.group_by)]
    return f"the row of {' and '.join(parts)}" if parts else "its row"


def _plain(each: Group) -> Group:
    return Attribute(each.name) if isinstance(each, Attribute) else each


def value_text(value: Any) -> str:
    """A value for people."""
    if isinstance(value, bool) or value is None:
        return "NULL" if value is None else str(value).upper()
    return short_text(value) if isinstance(value, int) else str(value)
