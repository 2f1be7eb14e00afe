"""The brute-force oracle: what a workload means, computed by listing every trend.

Obviously right instead of fast: it follows the definition of the language sentence by sentence, shares the syntax tree
with the engine and nothing else, and is meant for streams of about a dozen events. Every executor is compared with it.
It expects a workload that `hamlet.language.analysis` accepts and raises ValueError where it notices one that is not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hamlet.language.query import (
    Aggregate,
    Attribute,
    Condition,
    Conjunction,
    Duration,
    EventDeclaration,
    Expression,
    Pattern,
    Query,
    Taken,
    WorkloadText,
    atoms,
)
from hamlet.oracle.aggregates import Occurrences, aggregate, log2, presented
from hamlet.oracle.calendar import windows_in
from hamlet.oracle.conditions import kind
from hamlet.oracle.results import Group, best
from hamlet.oracle.search import Binding, Key, Search, Window
from hamlet.oracle.stream import Event, Stream
from hamlet.oracle.times import counted_in

__all__ = ["Event", "Search", "Stream", "Trend", "Window", "evaluate", "operands", "trends", "windows"]

Shown = Callable[[Aggregate, Occurrences], Any]
GroupKey = tuple[tuple[str, Any], ...]  # values of a group, each with its kind


@dataclass(frozen=True)
class Trend:
    """One trend of a query in one window.

    Attributes
    ----------
    window_start, window_end : int or None
        The window, in ticks; None under WITHIN ALL.
    operand : int
        Which operand of a top-level AND it is a trend of; 0 without AND.
    key : tuple of (str, Any)
        Every equivalence and GROUP-BY attribute with its value.
    pairs : tuple of (int, str)
        Event (its place in the given stream) and variable, in order.
    """

    window_start: int | None
    window_end: int | None
    operand: int
    key: tuple[tuple[str, Any], ...]
    pairs: tuple[tuple[int, str], ...]


def evaluate(
    workload: WorkloadText,
    events: Sequence[Mapping[str, Any]],
    *,
    time_column: str = "time",
    type_column: str = "type",
    order_column: str | None = None,
    ticks_per_second: int = 1,
    zone: str | None = None,
    timestamps: bool = False,
    shown: Shown = aggregate,
) -> list[dict[str, Any]]:
    """All result rows of a workload, by query, window and group.

    Parameters
    ----------
    workload : WorkloadText
        A parsed workload without errors.
    events : sequence of mappings
        The stream, in any order; times are integers, a missing attribute is NULL.
    time_column, type_column, order_column : str
        Which attributes are the time, the type and the order among equal times (None: there is none).
    ticks_per_second : int
        The unit of the time column.
    zone : str or None
        The time zone whose clock says where windows begin, with times from 1970.
    timestamps : bool
        Whether the times, which are given in ticks since 1970, are timestamps to the queries.
    shown : callable, optional
        What stands in a row for an aggregate. Tests ask for sums of absolute values; HAVING, TOP and queries about rows
        see the aggregates themselves.

    Returns
    -------
    list of dict
        ``query``, ``window_start``, ``window_end``, then the RETURN items.
    """
    columns = (time_column, type_column, order_column)
    named = {query.name: query for query in reversed(workload.queries)}
    known: dict[str, list[dict[str, Any]]] = {}

    def rows_of(query: Query, shown: Shown) -> list[dict[str, Any]]:
        asked = [name for name in dict.fromkeys(atom.type for atom in atoms(query.pattern)) if name in named]
        for name in asked:
            if name not in known:
                known[name] = rows_of(named[name], aggregate)
        stream = Stream(
            events,
            workload.declarations,
            *columns,
            dated=ticks_per_second if timestamps else None,
            rows={name: known[name] for name in asked},
            columns={name: _columns(named[name]) for name in asked},
        )
        found: list[tuple[GroupKey, dict[str, Any]]] = []
        for window in windows(query, stream, ticks_per_second, zone):
            found += _window_rows(query, stream, window, ticks_per_second, shown)
        if query.session:  # sessions of different groups are different windows
            found.sort(key=lambda row: (row[1]["window_start"], _group_rank(row[0])))
        return [row for _, row in found]

    with counted_in(None if timestamps else ticks_per_second):
        return [row for query in workload.queries for row in rows_of(query, shown)]


def trends(
    query: Query,
    events: Sequence[Mapping[str, Any]],
    *,
    declarations: Sequence[EventDeclaration] = (),
    time_column: str = "time",
    type_column: str = "type",
    order_column: str | None = None,
    ticks_per_second: int = 1,
    zone: str | None = None,
    rows: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
) -> list[Trend]:
    """The trends of one query, window by window, over events and the rows of other queries.

    The other parameters are those of `evaluate`; rows are numbered behind the events.
    """
    columns = {name: list(found[0]) for name, found in (rows or {}).items() if found}
    stream = Stream(events, declarations, time_column, type_column, order_column, rows=rows, columns=columns)
    found = []
    for window in windows(query, stream, ticks_per_second, zone):
        for operand, pattern in enumerate(operands(query)):
            for bindings, key in _search(query, stream, window, ticks_per_second).trends(pattern):
                pairs = tuple((event.index, variable) for event, variable in bindings)
                start, end = window.edges
                found.append(Trend(start, end, operand, tuple(key.items()), pairs))
    return found


# ------------------------------------------------------------------------------------------------------ windows


def windows(query: Query, stream: Stream, ticks_per_second: int, zone: str | None = None) -> Iterator[Window]:
    """All windows that hold an event, in order: ``[k*s + o, k*s + o + w)`` by a clock, or sessions."""
    if query.within is None:
        times = [event.time for event in stream.events]
        if times:
            yield Window(min(times), max(times) + 1, everything=True)
        return
    width = _ticks(query.within, ticks_per_second)
    if query.session:
        yield from _sessions(query, stream, width)
        return
    slide = _ticks(query.slide or query.within, ticks_per_second)
    times = [event.time for event in stream.events]
    if not times:
        return
    offset = None if query.offset is None else _ticks(query.offset, ticks_per_second)
    first, last = min(times), max(times)
    if zone is None:
        near = {
            k for time in {*times} for k in range((time - width) // slide - 1, time // slide + 1)
        }  # silences are long
        starts = (k * slide + (offset or 0) % slide for k in sorted(near))
        edges = ((start, start + width) for start in starts)
    else:
        seconds = [each / ticks_per_second for each in (width, slide, offset or 0)]
        if any(each != int(each) for each in seconds):
            raise ValueError("windows by a clock are of whole seconds")
        lengths = int(seconds[0]), int(seconds[1]), None if offset is None else int(seconds[2])
        found = windows_in(zone, *lengths, first // ticks_per_second, last // ticks_per_second)
        edges = ((start * ticks_per_second, end * ticks_per_second) for start, end in found)
    for start, end in edges:
        if any(start <= time < end for time in times):
            yield Window(start, end)


def _sessions(query: Query, stream: Stream, gap: int) -> Iterator[Window]:
    """Per group, the events of the pattern's types, cut where two neighbours lie more than the gap apart."""
    types = {atom.type for atom in atoms(query.pattern)}
    grouping = [attribute.name for attribute in query.group_by if isinstance(attribute, Attribute)]
    groups: dict[tuple[Any, ...], list[Event]] = {}
    for event in stream.events:
        if event.type in types:
            group = tuple(_comparable(stream.read(event, name)) for name in grouping)
            groups.setdefault(group, []).append(event)
    for group in sorted(groups, key=_group_rank):
        events = sorted(groups[group], key=lambda event: event.time)
        cuts = [place for place, (one, two) in enumerate(itertools.pairwise(events), 1) if two.time - one.time > gap]
        for first, last in itertools.pairwise([0, *cuts, len(events)]):
            session = events[first:last]
            yield Window(session[0].time, session[-1].time + gap, frozenset(session))


def _group_rank(group: GroupKey) -> list[tuple[bool, Any]]:
    return [_rank(value) for _, value in group]


def _ticks(duration: Duration, ticks_per_second: int) -> int:
    ticks = duration.seconds * ticks_per_second
    if ticks.denominator != 1:
        raise ValueError(f"the time column cannot hold {duration}")
    return ticks.numerator


def _search(query: Query, stream: Stream, window: Window, ticks_per_second: int) -> Search:
    longest = _ticks(query.longest, ticks_per_second) if query.longest is not None else None
    return Search(query, stream, window, longest)


def operands(query: Query) -> tuple[Pattern, ...]:
    """The patterns whose trends are asked for: two for AND, else one."""
    return query.pattern.operands if isinstance(query.pattern, Conjunction) else (query.pattern,)


# ------------------------------------------------------------------------------------------------------- rows


def _comparable(value: Any) -> tuple[str, Any]:
    return (kind(value), value)


def _rank(value: Any) -> tuple[bool, Any]:
    """Ascending with NULL first."""
    return (value is not None, 0 if value is None else value)


def _columns(query: Query) -> list[str]:
    return ["query", "window_start", "window_end", *(item.column for item in query.items)]


def _window_rows(
    query: Query, stream: Stream, window: Window, ticks_per_second: int, shown: Shown
) -> list[tuple[GroupKey, dict[str, Any]]]:
    """The rows of one query in one window, each with its group."""
    search = _search(query, stream, window, ticks_per_second)
    found = [list(search.trends(pattern)) for pattern in operands(query)]
    counted = found[0] if len(found) == 1 else list(_pairs(found[0], found[1], search.partition))
    groups: dict[GroupKey, list[tuple[Binding, ...]]] = {}
    keys: dict[GroupKey, dict[Any, Any]] = {}
    for bindings, key in counted:
        values = {each: _group_value(each, stream, bindings, key) for each in query.group_by}
        group = tuple(_comparable(value) for value in values.values())
        groups.setdefault(group, []).append(bindings)
        keys.setdefault(group, {**key, **values})
    rows: dict[Group, tuple[GroupKey, dict[str, Any]]] = {}
    for group in sorted(groups, key=_group_rank):
        own = _group(query, stream, keys[group], groups[group], aggregate)
        if own.passes(query.having):
            seen = own if shown is aggregate else _group(query, stream, keys[group], groups[group], shown)
            rows[own] = group, _row(query, window, seen)
    return [rows[group] for group in best(list(rows), query.top)]


def _group_value(each: Attribute | Taken, stream: Stream, bindings: Sequence[Binding], key: Key) -> Any:
    """What a trend has of a thing that GROUP-BY names."""
    if isinstance(each, Attribute):
        return key[each.name]
    events = [event for event, variable in bindings if variable == each.variable]
    if each.attribute is None:
        return len(events)
    if not events:
        return None
    return stream.read(events[0 if each.function == "FIRST" else -1], each.attribute)


def _group(
    query: Query, stream: Stream, key: Mapping[Any, Any], counted: Sequence[tuple[Binding, ...]], shown: Shown
) -> Group:
    """The values of all aggregates that the query asks for."""
    asked = {each for item in query.items for each in _aggregates(item.value)}
    asked |= set(_aggregates(query.having)) | set(_aggregates(query.top.by if query.top is not None else None))
    values = {each: shown(each, _occurrences(stream, counted, each)) for each in asked}
    return Group(key, values)


def _row(query: Query, window: Window, group: Group) -> dict[str, Any]:
    start, end = window.edges
    row: dict[str, Any] = {"query": query.name, "window_start": start, "window_end": end}
    for item in query.items:
        if isinstance(item.value, (Attribute, Taken)):
            row[item.column] = group.value(item.value)
        elif isinstance(item.value, Aggregate):
            value = group.aggregates[item.value]
            row[item.column] = log2(value) if item.log2 else presented(value)
        else:
            row[item.column] = group.value(item.value)
    return row


def _aggregates(node: Expression | Condition | None) -> list[Aggregate]:
    """All aggregates in an expression or a condition on results."""
    if isinstance(node, Aggregate):
        return [node]
    inner = [getattr(node, name, None) for name in ("operand", "left", "right", "low", "high")]
    inner += [each for name in ("choices", "operands") for each in getattr(node, name, ())]
    return [found for each in inner if each is not None for found in _aggregates(each)]


def _pairs(
    first: Sequence[tuple[tuple[Binding, ...], Key]],
    second: Sequence[tuple[tuple[Binding, ...], Key]],
    partition: Sequence[str],
) -> Iterator[tuple[tuple[Binding, ...], Key]]:
    """``P1 AND P2``: every unordered pair of different trends of one partition once, as the occurrences of both."""
    seen = set()
    for (one, key), (other, other_key) in itertools.product(first, second):
        same_partition = all(_comparable(key[name]) == _comparable(other_key[name]) for name in partition)
        if same_partition and one != other and frozenset([one, other]) not in seen:
            seen.add(frozenset([one, other]))
            yield one + other, key


def _occurrences(stream: Stream, counted: Sequence[tuple[Binding, ...]], asked: Aggregate) -> Occurrences:
    """What an aggregate looks at: the events bound to its variable, with every trend that they are in, or once."""
    events = [event for bindings in counted for event, name in bindings if name == asked.variable]
    if asked.events:
        events = list({event.index: event for event in events}.values())
    values = [stream.read(event, asked.attribute) for event in events] if asked.attribute is not None else []
    return Occurrences(trends=len(counted), events=len(events), values=[v for v in values if v is not None])
