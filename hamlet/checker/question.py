"""What evidence of trend queries is about: events with their attributes and keys, a window of them and a group."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hamlet.checker.clocks import is_window, same_time
from hamlet.checker.conditions import Where, kind
from hamlet.checker.errors import EvidenceError
from hamlet.checker.results import json_of
from hamlet.language import query as q

EDGES = ("window_start", "window_end")
Key = dict[str, Any]


@dataclass(eq=False)
class Event:
    """An event: its place in the input, its time in ticks, its order and its columns."""

    at: int
    time: int
    order: Any
    type: str | None
    columns: Mapping[str, Any]

    def before(self, other: Event) -> bool:
        """Whether it precedes another one."""
        if self.time != other.time:
            return self.time < other.time
        return self.order is not None and other.order is not None and bool(self.order < other.order)


class Stream:
    """The events, what attributes they have, and what their times and keys mean.

    Parameters
    ----------
    events : sequence of Event
    declarations : sequence of EventDeclaration
        Of the workload.
    ticks : callable
        The ticks of a time as evidence writes it.
    per_second : int
        Ticks of the time column.
    zone : str or None
        Where days begin, if that was said.
    special : (str, str)
        The time and the type column, which every event has.
    null_keys : bool
        Whether NULL is a value of a key; else no trend has it.
    present : callable
        A time as rows have it, of ticks.
    """

    def __init__(
        self,
        events: Sequence[Event],
        declarations: Sequence[Any],
        ticks: Callable[[Any], int],
        per_second: int = 1,
        zone: str | None = None,
        special: tuple[str, str] = ("time", "type"),
        null_keys: bool = True,
        present: Callable[[int], Any] = int,
    ) -> None:
        self.events, self.ticks, self.per_second = list(events), ticks, per_second
        self.zone, self.null_keys, self.present = zone, null_keys, present
        self.by_place = {event.at: event for event in events}
        self.special = special
        self.declared: dict[str, dict[str, Any]] = {e.name: {a.name: a for a in e.attributes} for e in declarations}
        self.doubles = {name for event in events for name, value in event.columns.items() if isinstance(value, float)}

    def beside(self, rows: Mapping[str, Sequence[str]]) -> Stream:
        """These events, to which rows of queries can be added, of which the columns are given."""
        found = copy.copy(self)
        found.events, found.by_place = list(self.events), dict(self.by_place)
        found.declared = self.declared | {name: dict.fromkeys(columns) for name, columns in rows.items()}
        return found

    def add(self, event: Event) -> None:
        """One event more."""
        self.events.append(event)
        self.by_place[event.at] = event

    def carries(self, event: Event, name: str) -> bool:
        """Whether an event's type has an attribute."""
        known = self.declared.get(event.type or "")
        return known is None or name in known or name in self.special

    def read(self, event: Event, name: str) -> Any:
        """An attribute of an event, NULL where it has none."""
        value = event.columns.get(name) if self.carries(event, name) else None
        if value is None or value != value:
            return None
        known = self.declared.get(event.type or "", {})
        declared = known.get(name)  # None in those of rows
        double = (
            declared.type is q.AttributeType.DOUBLE
            if declared is not None
            else name in self.doubles and name not in known
        )
        return float(value) if double and isinstance(value, int) and not isinstance(value, bool) else value

    def reader(self, event: Event) -> Any:
        """What reads the attributes that conditions refer to."""
        return lambda reference: self.read(event, reference.attribute)

    def agrees(self, event: Event, key: Key) -> bool:
        """Whether an event has the values of all keys that it carries."""
        return all(alike(self.read(event, name), value) for name, value in key.items() if self.carries(event, name))


class Question:
    """The window and the group that evidence is about, checked against the query.

    Attributes
    ----------
    where : Where
        The conditions of the query.
    patterns : sequence of Pattern
        Two where AND stands at the top.
    grouping, names : list of str
        The attributes of GROUP-BY, and all keys.
    longest : int or None
        Ticks of SPAN.
    group : dict
        The values of the attributes of GROUP-BY.
    taken : list of (Taken, value)
        What GROUP-BY names beside them.
    session : set of int or None
        The places of a session's events.
    events : list of Event
        Those that a trend of the window may take, or a negated pattern match.
    keys : list of Key
        The values that all keys can have together in the group.
    """

    def __init__(self, stream: Stream, query: Any, evidence: Mapping[str, Any]) -> None:
        self.stream, self.query = stream, query
        self.where = Where(query.condition)
        top = query.pattern
        self.patterns = top.operands if isinstance(top, q.Conjunction) else (top,)
        self.grouping = list(dict.fromkeys(each.name for each in query.group_by if isinstance(each, q.Attribute)))
        self.names = list(dict.fromkeys([*self.grouping, *self.where.equivalence]))
        self.longest = None if query.longest is None else self._ticks(query.longest)
        taken = list(dict.fromkeys(each for each in query.group_by if not isinstance(each, q.Attribute)))
        told = evidence.get("group")
        wanted = [*self.grouping, *(each.column for each in taken)]
        if not isinstance(told, dict) or set(told) != set(wanted):
            raise EvidenceError(f"the group has values for {', '.join(wanted) or 'nothing'}")
        self.group = {name: self._typed(name, told[name]) for name in self.grouping}
        self.taken = [(each, told[each.column]) for each in taken]
        for item in query.items:
            name = getattr(item.value, "name", None)
            if not isinstance(item.value, q.Attribute):
                name = item.value.column if item.value in taken else None
            own = name in told and item.column in evidence["row"]
            if own and evidence["row"][item.column] != told[name]:
                raise EvidenceError(f"the group's {name} is not that of the row")
        self.start, self.end = self._window(evidence)
        self.session: set[int] | None = None
        if query.session:
            self.session = self._session()
        self.events = [event for event in self.stream.events if self.in_reach(event)]
        self.keys = [
            each
            for each in keys_of(stream, self.events, self.names, self.group)
            if stream.null_keys or None not in each.values()
        ]

    def _typed(self, name: str, told: Any) -> Any:
        """The value of a key as events have it."""
        for event in self.stream.events:
            value = self.stream.read(event, name)
            if json_of(value) == told and isinstance(value, bool) is isinstance(told, bool):
                return value
        return told

    def _window(self, evidence: Mapping[str, Any]) -> tuple[int | None, int | None]:
        told = evidence.get("window")
        if not isinstance(told, list) or len(told) != 2:
            raise EvidenceError("window has a start and an end")
        row = evidence["row"]
        for name, edge in zip(EDGES, told, strict=True):
            if name in row and row[name] != edge and not same_time(row[name], edge):
                raise EvidenceError(f"the row's {name} is not that of the evidence")
        if self.query.within is None:
            if told != [None, None]:
                raise EvidenceError("WITHIN ALL has no edges")
            return None, None
        start, end = (self.stream.ticks(edge) for edge in told)
        width = self._ticks(self.query.within)
        if self.query.session:
            return start, end
        slide = width if self.query.slide is None else self._ticks(self.query.slide)
        offset = None if self.query.offset is None else self._ticks(self.query.offset)
        if self.stream.zone is not None:
            second = self.stream.per_second
            whole = start % second == end % second == 0
            lengths = width // second, slide // second, None if offset is None else offset // second
            is_one = whole and is_window(self.stream.zone, start // second, end // second, *lengths)
        else:
            is_one = end - start == width and (start - (offset or 0)) % slide == 0
        if not is_one:
            raise EvidenceError("the query has no such window")
        return start, end

    def _session(self) -> set[int]:
        """The events of the session; none where the group has no such one."""
        types = {atom.type for atom in q.atoms(self.query.pattern)}
        gap = self._ticks(self.query.within)
        own = sorted(
            (e for e in self.stream.events if e.type in types and self.stream.agrees(e, self.group)),
            key=lambda event: event.time,
        )
        parts: list[list[Event]] = []
        for event in own:
            if parts and event.time - parts[-1][-1].time <= gap:
                parts[-1].append(event)
            else:
                parts.append([event])
        for part in parts:
            if part[0].time == self.start and part[-1].time + gap == self.end:
                return {event.at for event in part}
        return set()  # so no trend lies in it

    def holds(self, event: Event) -> bool:
        """Whether an event lies in the window."""
        if self.session is not None:
            return event.at in self.session
        return self.start is None or self.end is None or self.start <= event.time < self.end

    def in_reach(self, event: Event) -> bool:
        """Whether a trend of the window may take an event, or a negated pattern match it."""
        return (self.longest is not None and self.session is None) or self.holds(event)

    def _ticks(self, duration: Any) -> int:
        return int(duration.seconds * self.stream.per_second)


def keys_of(stream: Stream, events: Sequence[Event], names: Sequence[str], group: Key) -> list[Key]:
    """The values that all keys of these names can have together in events of a group."""
    known: list[Key] = [dict(group)]
    for event in events:
        if not stream.agrees(event, group):
            continue
        own = {name: stream.read(event, name) for name in names if stream.carries(event, name)}
        for each in list(known):
            if all(alike(own[name], each[name]) for name in own if name in each):
                joint = {**each, **own}
                if not any(equal(joint, other) for other in known):
                    known.append(joint)
    return [each for each in known if len(each) == len(names)]


def alike(one: Any, two: Any) -> bool:
    """Whether two values of a key are one; NULL equals NULL."""
    return kind(one) == kind(two) and bool(one == two)


def equal(one: Key, two: Key) -> bool:
    """Whether two keys are one."""
    return one.keys() == two.keys() and all(alike(one[name], two[name]) for name in one)
