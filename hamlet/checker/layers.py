"""The rows of the queries that a query asks about, by the definitions: of every window and group, and no others."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

from hamlet.checker.clocks import same_time, windows_of
from hamlet.checker.errors import EvidenceError
from hamlet.checker.graph import graphs_of
from hamlet.checker.question import EDGES, Event, Key, Question, Stream, keys_of
from hamlet.checker.results import ANY, Unchecked, Values, json_of, ranks, row_exists, same_value
from hamlet.language import query as q

_INTEGERS = range(-(1 << 63), 1 << 63)
_ALWAYS = -(1 << 62), 1 << 62
Times = tuple[int, int]  # the first tick and the last one


@dataclass(frozen=True)
class Row:
    """A row of a query: the end of its window in ticks, and its columns, `ANY` where steps do not give the value."""

    end: int
    columns: dict[str, Any]
    sure: bool  # whether HAVING is known to leave it


class Layers:
    """The rows of the queries of a workload, as those that ask about them see them.

    Parameters
    ----------
    workload : WorkloadText
    stream : Stream
        The events of the input.
    """

    def __init__(self, workload: Any, stream: Stream) -> None:
        self._named = {each.name: each for each in reversed(workload.queries)}
        self._stream = stream

    def below(self, query: Any) -> list[str]:
        """The queries whose rows a query takes as events."""
        return [name for name in dict.fromkeys(atom.type for atom in q.atoms(query.pattern)) if name in self._named]

    def claimed(self, query: Any, evidence: Mapping[str, Any], *, whole: bool) -> Stream:
        """The events of a query: those of the input, and rows of other queries that evidence gives as events.

        Raises
        ------
        EvidenceError
            If one is no such row, or can matter for the window and the group and is not given, if all are to be.
        """
        told = evidence.get("rows")
        if not isinstance(told, list) or not all(isinstance(e, dict) and isinstance(e.get("row"), dict) for e in told):
            raise EvidenceError(f"rows has those of {' and '.join(self.below(query))}, which are events")
        if any(each["row"].get("query") not in self.below(query) for each in told):
            raise EvidenceError("the query does not ask about these rows")
        places = [each.get("at") for each in told]
        if not all(type(at) is int and at < 0 for at in places) or len(set(places)) < len(places):
            raise EvidenceError("rows are events with the places -1, -2, ...")
        known = {} if "above" in evidence else dict(evidence.get("group") or {})
        group = {name: value for name, value in known.items() if name in _grouping(query)}
        stream = self._over(query)
        for name in self.below(query):
            own = [each for each in told if each["row"].get("query") == name]
            for row in self._rows(name, self._reach(query, evidence.get("window")), group):
                found = next((each for each in own if _is_row(each["row"], row.columns)), None)
                if found is not None:
                    own.remove(found)
                    stream.add(self._event(found["at"], name, row, found["row"]))
                elif whole and row.sure:
                    shown = ", ".join(
                        f"{key}={json_of(value)}" for key, value in row.columns.items() if value is not ANY
                    )
                    raise EvidenceError(f"a row is missing: {shown}")
            if own:
                raise EvidenceError(f"{name} has no such row, or none that can matter here: {own[0]['row']}")
        return stream

    def _over(self, query: Any) -> Stream:
        """The events of the input for a query, beside rows."""
        columns = {name: [*EDGES, *(item.column for item in self._named[name].items)] for name in self.below(query)}
        return self._stream.beside({name: ["query", *each] for name, each in columns.items()})

    def _event(self, at: int, name: str, row: Row, told: Mapping[str, Any]) -> Event:
        """A row as an event; sums of doubles have the value that was told, which may differ in the last digit."""
        time, kind = self._stream.special
        columns = {}
        for column, value in row.columns.items():
            taken = value is ANY or (isinstance(value, float) and isinstance(told.get(column), float))
            columns[column] = _as_attribute(told[column] if taken else value)
        return Event(at, row.end, None, name, {**columns, time: self._stream.present(row.end), kind: name})

    def _reach(self, query: Any, edges: Any) -> Times:
        """When rows end that can matter for a window of a query."""
        if query.within is None or query.session or not isinstance(edges, list) or len(edges) != 2:
            return _ALWAYS
        longest = 0 if query.longest is None else self._ticks(query.longest)
        return self._stream.ticks(edges[0]) - 2 * longest, self._stream.ticks(edges[1]) - 1 + longest

    def _ticks(self, duration: Any) -> int:
        return int(duration.seconds * self._stream.per_second)

    def _rows(self, name: str, times: Times, group: Mapping[str, Any]) -> list[Row]:
        """The rows of a query whose windows end in some time, and that agree with a group."""
        query = self._named[name]
        if query.within is None:
            raise EvidenceError(f"the rows of {name} have no time")
        stream = self._over(query)
        longest = 0 if query.longest is None else self._ticks(query.longest)
        day = 0 if stream.zone is None else 2 * 86_400 * stream.per_second  # some last longer than WITHIN says
        earlier = times[0] - self._ticks(query.within) - 2 * longest - day, times[1] + longest
        for each in self.below(query):
            for row in self._rows(each, _ALWAYS if query.session else earlier, {}):
                if ANY in row.columns.values() or not row.sure:
                    raise EvidenceError(f"not checked: rows of {each} have values that steps do not give")
                stream.add(self._event(-1 - len(stream.events), each, row, {}))
        found: list[Row] = []
        for start, end, own in self._windows(query, stream, times):
            near = stream.beside({})
            near.events = [e for e in stream.events if start - 2 * longest <= e.time <= end + longest]
            shown = dict(zip(EDGES, (stream.present(start), stream.present(end)), strict=True))
            values = list(self._groups(query, near, [json_of(each) for each in shown.values()], own, group))
            for one in values:
                above = 0 if query.top is None else sum(two is not one and ranks(query.top, two, one) for two in values)
                if query.top is None or above < query.top.count:
                    columns = {"query": name, **shown, **{item.column: _value(one, item) for item in query.items}}
                    found.append(Row(end, columns, one.passes(query.having) is True))
        return [each for each in found if _agrees(each.columns, group)]

    def _windows(self, query: Any, stream: Stream, times: Times) -> Iterator[tuple[int, int, Key | None]]:
        """The windows that hold an event and end in some time, of sessions each with its group."""
        width = self._ticks(query.within)
        if not query.session:
            slide = width if query.slide is None else self._ticks(query.slide)
            offset = None if query.offset is None else self._ticks(query.offset)
            moments = sorted({event.time for event in stream.events})
            for start, end in windows_of(stream.zone, moments, width, slide, offset, stream.per_second):
                if times[0] <= end <= times[1]:
                    yield start, end, None
            return
        types = {atom.type for atom in q.atoms(query.pattern)}
        for group in keys_of(stream, stream.events, _grouping(query), {}):
            moments = sorted(e.time for e in stream.events if e.type in types and stream.agrees(e, group))
            breaks = [place for place in range(1, len(moments)) if moments[place] - moments[place - 1] > width]
            for low, high in pairwise([0, *breaks, len(moments)]) if moments else ():
                end = moments[high - 1] + width
                if times[0] <= end <= times[1]:
                    yield moments[low], end, group

    def _groups(
        self, query: Any, stream: Stream, edges: list[Any], own: Key | None, wanted: Mapping[str, Any]
    ) -> Iterator[Values]:
        """The groups that have a row in a window; where TOP looks at all of them, those too that are not wanted."""
        taken = list(dict.fromkeys(each for each in query.group_by if not isinstance(each, q.Attribute)))
        returned = {item.column: item.value.name for item in query.items if isinstance(item.value, q.Attribute)}
        groups = [own] if own is not None else keys_of(stream, stream.events, _grouping(query), {})
        for group in groups:
            if query.top is None and not _agrees({column: group[name] for column, name in returned.items()}, wanted):
                continue
            told: list[dict[str, Any]] = [{}]
            if taken:
                graphs = graphs_of(_question(query, stream, edges, group, {each.column: ANY for each in taken}))
                ends = {repr(step.taken): step.taken for step in graphs[0] if step.ends}.values()
                told = [
                    {each.column: _taken(each, value) for each, value in zip(taken, one, strict=True)} for one in ends
                ]
            for each in told:
                graphs = graphs_of(_question(query, stream, edges, group, each))
                values = Values(graphs, stream.read, {**group, **each})
                if row_exists(graphs) and values.passes(query.having) is not False:
                    yield values


def _question(query: Any, stream: Stream, edges: list[Any], group: Key, taken: Mapping[str, Any]) -> Question:
    both = {**group, **taken}
    told = {name: value if value is ANY else json_of(value) for name, value in both.items()}
    return Question(stream, query, {"row": {}, "group": told, "window": edges})


def _grouping(query: Any) -> Sequence[str]:
    return list(dict.fromkeys(each.name for each in query.group_by if isinstance(each, q.Attribute)))


def _taken(each: Any, value: Any) -> Any:
    return value[0] if value is not None else 0 if each.attribute is None else None


def _value(values: Values, item: Any) -> Any:
    try:
        return values.of(item.expression)
    except Unchecked:
        return ANY


def _agrees(columns: Mapping[str, Any], group: Mapping[str, Any]) -> bool:
    """Whether a row has the values of a group, given as JSON, where it has such columns."""
    own = {name: columns[name] for name in group if name in columns}
    return all(value is ANY or json_of(_as_attribute(value)) == group[name] for name, value in own.items())


def _is_row(told: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    """Whether a row as evidence has it is one that a query has."""
    return told.keys() == right.keys() and all(
        value is ANY or (same_time(told[name], json_of(value)) if name in EDGES else same_value(told[name], value))
        for name, value in right.items()
    )


def _as_attribute(value: Any) -> Any:
    """A value of a row as that of an event: a number that does not fit an INT is the nearest DOUBLE."""
    if not isinstance(value, Decimal) and (isinstance(value, bool) or not isinstance(value, int) or value in _INTEGERS):
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
