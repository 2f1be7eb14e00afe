"""Queries run once more in other words, over few of the events: numbers that stand beside those of a result."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np

from hamlet.errors import HamletError
from hamlet.findings.reasons import Again
from hamlet.language.analysis import analyse
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import to_text
from hamlet.language.query import Attribute, AttributeType, Comparison, Group, Literal, Query, Reference, ReturnItem
from hamlet.language.schema import Schema
from hamlet.output.digits import seconds_text, short_text
from hamlet.output.fitting import largest_of
from hamlet.output.query_rows import Piece, QueryRows
from hamlet.output.result import Results
from hamlet.planner.classify import EVENT
from hamlet.planner.workload import Workload

Rerun = Callable[[Workload, "Part", "Most"], Results | None]  # None where there are more events than given

FEW_EVENTS = 10_000  # of an input that is read again whole
_MOST_EVENTS = 500_000  # of one window
_MOST_LOOKED_BACK = 4_000  # where twice as many cost four times as much
_MOST_WINDOWS = 3  # of a query that are read again
_MOST_QUERIES = 20  # of a workload that are run in other words, which takes the time of many events
_MOST_PARTS = 8  # windows that are read again at a time
_FEW_GROUPS = 4  # of one of them
_MOST_HELD = 1_000  # rows of a window, among which those of a few groups are looked for
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


@dataclass(frozen=True)
class Most:
    """How many events are looked at once more.

    Attributes
    ----------
    events : int
    looking_back : int
        Where an event may cost all events before it.
    """

    events: int
    looking_back: int


@dataclass(frozen=True)
class Words:
    """A query in other words, and its own results that are to stand beside theirs.

    Attributes
    ----------
    query : Query
        The other words, with all groups as columns (`with_groups`).
    own : tuple of ReturnItem
        What the query itself gives for the same window and group, under other names.
    least : int
        Windows in which no count is so large are not read again.
    """

    query: Query
    own: tuple[ReturnItem, ...]
    least: int = 0


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
        self, asked: Mapping[int, Words], found: Sequence[QueryRows] | None, settled: Collection[int]
    ) -> Iterator[tuple[AnalysedQuery, list[Mapping[str, Any]]]]:
        """The rows of some queries in other words: all of them of few events, else those of some windows and groups.

        Parameters
        ----------
        asked : mapping of int to Words
            The place of a query in the workload, and its other words.
        found : sequence of QueryRows, optional
            The rows of each query of the workload; without them the rows of few events only.
        settled : collection of int
            Places whose further rows nobody needs; may grow meanwhile.
        """
        queries = self._workload.analysis.queries
        places = [
            place
            for place in asked
            if self._whole or not (found is None or queries[place].upstream or asked[place].query.session)
        ]
        known: set[tuple[int, Part]] = set()
        for turn in range(_MOST_WINDOWS if self._source.repeatable else 0):
            together: dict[Part, dict[int, str | None]] = {}  # by window, of each query its group
            near: int | None = None
            for place in places[:_MOST_QUERIES]:
                if place in settled:
                    continue
                part: Part | None = Part()
                if not self._whole and found is not None:
                    part = _part(queries[place], found[place], self._source.schema, turn, near, asked[place].least)
                if part is None or (place, part) in known:
                    continue
                known.add((place, part))
                near = part.window if near is None else near
                together.setdefault(replace(part, where=None), {})[place] = part.where
            for part, groups in list(together.items())[:_MOST_PARTS]:
                for few in _few_groups(groups):
                    where = None if None in few.values() else " OR ".join(dict.fromkeys(map(str, few.values())))
                    for place, rows in self._rows_of(replace(part, where=where), list(few), asked, found).items():
                        yield queries[place], rows

    def _rows_of(
        self, part: Part, places: Sequence[int], asked: Mapping[int, Words], found: Sequence[QueryRows] | None
    ) -> dict[int, list[Mapping[str, Any]]]:
        """The rows of queries that look at one part of the events."""
        queries, text = self._workload.analysis.queries, self._workload.analysis.text
        own = text.queries if any(queries[place].upstream for place in places) else ()
        held: dict[int, _Held | None] = {}
        made: dict[int, list[list[Mapping[str, Any]]]] = {}
        to: dict[str, list[Mapping[str, Any]]] = {}
        others = []
        for place in places:
            query, words = queries[place].query, asked[place]
            held[place] = None if found is None else _held(query, found[place], part.window, words.own)
            texts = [words.query]
            if held[place] is None and words.query.semantics is query.semantics:
                texts = [replace(words.query, items=(*words.query.items, *words.own))]
            elif held[place] is None:
                texts.append(replace(query, items=(*with_groups(query), *words.own), having=None, top=None))
            made[place] = [[] for _ in texts]
            for number, (each, rows) in enumerate(zip(texts, made[place], strict=True)):
                name = f"{query.name} {place} {number}"
                others.append(replace(each, name=name, name_span=None))  # no text has it
                to[others[-1].name] = rows
        start = self._source.schema.clock.present(part.window)
        most = Most(FEW_EVENTS, FEW_EVENTS) if self._whole else Most(_MOST_EVENTS, _MOST_LOOKED_BACK)
        try:
            again = Workload(analyse(replace(text, queries=(*own, *others))))
            for row in self._rerun(again, part, most) or ():
                if row["query"] in to and (part.period is None or row["window_start"] == start):
                    to[row["query"]].append(row)
        except HamletError:  # what the user wrote is right, whatever is wrong with other words for it
            return {}
        return {place: _joined(queries[place].query, asked[place].own, made[place], held[place]) for place in places}


_Held = Mapping[tuple[Any, ...], tuple[Piece, int]]  # by the values of its groups where a row of a window stands


def _held(query: Query, rows: QueryRows, window: int | None, own: Sequence[ReturnItem]) -> _Held | None:
    """The rows of a window; None where RETURN lacks some of what is wanted, or there are many."""
    columns = _columns_of(query)
    groups = [columns.get(each.value) for each in with_groups(query)]
    if window is None or None in groups or not all(each.value in columns for each in own):
        return None
    found: dict[tuple[Any, ...], tuple[Piece, int]] = {}
    for piece in rows.pieces:
        first, last = map(int, np.searchsorted(piece.starts.column(), (window, window + 1)))
        if last - first > _MOST_HELD:
            return None
        values = [piece.values[place].part(slice(first, last)).tolist() for place in groups if place is not None]
        keys = zip(*values, strict=True) if values else repeat((), last - first)
        found.update(zip(keys, zip(repeat(piece), range(first, last)), strict=True))
    return found


def _columns_of(query: Query) -> dict[Any, int]:
    """The places of what a query returns as it stands."""
    return {item.value: place for place, item in enumerate(query.items) if not item.log2}


def _joined(
    query: Query, own: Sequence[ReturnItem], made: Sequence[list[Mapping[str, Any]]], held: _Held | None
) -> list[Mapping[str, Any]]:
    """The rows of other words with what the query itself gives for them, of which there are such rows."""
    rows, *others = made
    if held is None and not others:
        return rows
    groups = [f"g{place}" for place in range(len(query.group_by))]
    if held is None:
        names = ["window_start", "window_end", *groups]
        known = {tuple(row[name] for name in names): row for row in others[0]}
        pairs = ((known.get(tuple(row[name] for name in names)), row) for row in rows)
        return [{**beside, **row} for beside, row in pairs if beside is not None]
    columns = _columns_of(query)
    places = ((held.get(tuple(row[name] for name in groups)), row) for row in rows)
    return [
        {**row, **{each.column: at[0].values[columns[each.value]].at(at[1]) for each in own}}
        for at, row in places
        if at is not None
    ]


def _few_groups(groups: Mapping[int, str | None]) -> Iterator[dict[int, str | None]]:
    """Queries of one window that need all of its events, then those of which a few groups will do."""
    everything: dict[int, str | None] = {place: None for place, where in groups.items() if where is None}
    if everything:
        yield everything
    chosen = list(dict.fromkeys(where for where in groups.values() if where is not None))[:_FEW_GROUPS]
    if chosen:
        yield {place: where if where in chosen else chosen[0] for place, where in groups.items() if where is not None}


def _part(
    query: AnalysedQuery, rows: QueryRows, schema: Schema, turn: int, near: int | None, least: int
) -> Part | None:
    """The window of a row, and its group where that can be told; None where there is no such row.

    First a row of the first window, then one of a window in the middle (that of `near`, where there is one), then of
    the window that has the largest count; where there are counts, the row of the largest one of the window, which is
    no row where it is below `least`.
    """
    filled = [piece for piece in rows.pieces if len(piece.starts)]
    if not filled:
        return None
    counts = next((place for place, column in enumerate(rows.columns) if column.kind == "count"), None)
    piece, row = filled[0], 0
    if turn == 1:
        piece = filled[len(filled) // 2]
        row = len(piece.starts) // 2
        if near is not None:
            row = min(int(np.searchsorted(piece.starts.column(), near)), len(piece.starts) - 1)
    elif turn == 2:
        if counts is None:
            return None
        piece = max(filled, key=lambda each: largest_of(each.values[counts]) or 0)
        row = piece.values[counts].largest(slice(0, len(piece.starts)))
    starts = piece.starts.column()
    start, end = int(starts[row]), int(piece.ends.column()[row])
    if counts is not None:
        first, last = np.searchsorted(starts, start), np.searchsorted(starts, start, "right")
        row = piece.values[counts].largest(slice(int(first), int(last)))
        if least and piece.values[counts].at(row) < least:
            return None
    where = _group(query, rows, piece, row)
    if query.query.within is None:
        return Part(None, where)
    more = 0 if query.query.longest is None else query.query.longest.ticks(schema.clock.ticks_per_second)[0]
    period = start - 2 * more, end + more  # a NOT before a trend looks as far back as the trend may
    return Part(period, where, start)


def _group(query: AnalysedQuery, rows: QueryRows, piece: Piece, row: int) -> str | None:
    """A condition that holds for the events of a row's group; None where others may matter, or it is not simple."""
    if query.query.top is not None or query.declared:
        return None
    columns = {item.value.name: i for i, item in enumerate(query.query.items) if isinstance(item.value, Attribute)}
    parts = []
    for name in query.grouping:
        value = piece.values[columns[name]].at(row) if name in columns else None
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
    if isinstance(value, float):
        return format(value, ".15g")  # counts are doubles with --numbers float
    if isinstance(value, (datetime.timedelta, np.timedelta64)):
        return f"{seconds_text(value)} s"
    return short_text(value) if isinstance(value, int) else str(value)
