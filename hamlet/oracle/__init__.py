"""The brute-force oracle: what a workload means, computed by listing every trend.

Obviously right instead of fast: it follows LANGUAGE.md §2-§9 sentence by sentence, shares the syntax tree with the
engine and nothing else, and is meant for streams of about a dozen events. Every executor is compared with it.
It expects a workload that `hamlet.language.analysis` accepts and raises ValueError where it notices one that is not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hamlet.language.query import (
    Attribute,
    AttributeType,
    Conjunction,
    Duration,
    EventDeclaration,
    Pattern,
    Query,
    Reference,
    WorkloadText,
    atoms,
    negations,
)
from hamlet.oracle.aggregates import Occurrences, aggregate, log2, presented
from hamlet.oracle.conditions import Read, Rules, kind, rules_of
from hamlet.oracle.words import begins, spellings


@dataclass(frozen=True, eq=False)
class Event:
    """One event of the stream; two events are never equal, whatever they say.

    Attributes
    ----------
    index : int
        Its place in the given stream, which only names it.
    type : str or None
        None matches nothing.
    time : int
        In ticks of the time column.
    order : Any
        Value of the order column, None without one.
    values : mapping of str to Any
        All its columns, NaN already read as NULL.
    """

    index: int
    type: str | None
    time: int
    order: Any
    values: Mapping[str, Any]

    def before(self, other: Event) -> bool:
        """LANGUAGE §2."""
        if self.time != other.time:
            return self.time < other.time
        return self.order is not None and other.order is not None and bool(self.order < other.order)


Binding = tuple[Event, str]  # an event and the variable it is bound to


@dataclass(frozen=True)
class Trend:
    """One trend of a query in one window.

    Attributes
    ----------
    window_start, window_end : int
        The window, in ticks.
    operand : int
        Which operand of a top-level AND it is a trend of; 0 without AND.
    key : tuple of (str, Any)
        Every equivalence and GROUP-BY attribute with its value.
    pairs : tuple of (int, str)
        Event (its place in the given stream) and variable, in order.
    """

    window_start: int
    window_end: int
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
) -> list[dict[str, Any]]:
    """All result rows of a workload, in the order of LANGUAGE §9.

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

    Returns
    -------
    list of dict
        ``query``, ``window_start``, ``window_end``, then the RETURN items.
    """
    stream = Stream(events, workload.declarations, time_column, type_column, order_column)
    rows: list[dict[str, Any]] = []
    for query in workload.queries:
        for start, end in windows(query, stream.events, ticks_per_second):
            rows += _window_rows(query, stream, start, end)
    return rows


def trends(
    query: Query,
    events: Sequence[Mapping[str, Any]],
    *,
    declarations: Sequence[EventDeclaration] = (),
    time_column: str = "time",
    type_column: str = "type",
    order_column: str | None = None,
    ticks_per_second: int = 1,
) -> list[Trend]:
    """The trends of one query, window by window; the other parameters are those of `evaluate`."""
    stream = Stream(events, declarations, time_column, type_column, order_column)
    found = []
    for start, end in windows(query, stream.events, ticks_per_second):
        for operand, pattern in enumerate(operands(query)):
            for bindings, key in Search(query, stream, start, end).trends(pattern):
                pairs = tuple((event.index, variable) for event, variable in bindings)
                found.append(Trend(start, end, operand, tuple(key.items()), pairs))
    return found


# ------------------------------------------------------------------------------------------ stream and windows


class Stream:
    """The events, and how their attributes are read (LANGUAGE §2, §6)."""

    def __init__(
        self,
        events: Sequence[Mapping[str, Any]],
        declarations: Sequence[EventDeclaration],
        time_column: str,
        type_column: str,
        order_column: str | None,
    ) -> None:
        self.declared = {each.name: {a.name: a.type for a in each.attributes} for each in declarations}
        self.always = {time_column, type_column}
        cleaned: list[dict[str, Any]] = [
            {name: None if value != value else value for name, value in event.items()} for event in events
        ]
        self.doubles = {name for event in events for name, value in event.items() if isinstance(value, float)}
        self.events = [
            Event(index, event[type_column], event[time_column], event[order_column] if order_column else None, event)
            for index, event in enumerate(cleaned)
        ]

    def carries(self, event: Event, attribute: str) -> bool:
        """Whether an event has the attribute at all: a declared type that lacks it is broadcast."""
        return attribute in self.always or event.type not in self.declared or attribute in self.declared[event.type]

    def is_double(self, type_: str | None, attribute: str) -> bool:
        """Whether an attribute of an event type is DOUBLE: declared so, or a column with a float in it."""
        declared = self.declared.get(type_ or "", {}).get(attribute)
        return declared is AttributeType.DOUBLE if declared else attribute in self.doubles

    def read(self, event: Event, attribute: str) -> Any:
        """The value of an attribute, None for NULL."""
        value: Any = event.values.get(attribute) if self.carries(event, attribute) else None
        return float(value) if kind(value) == "number" and self.is_double(event.type, attribute) else value

    def reader(self, event: Event) -> Read:
        """Reads references that speak of one event."""

        def read(reference: Reference) -> Any:
            return self.read(event, reference.attribute)

        return read


def windows(query: Query, events: Sequence[Event], ticks_per_second: int) -> Iterator[tuple[int, int]]:
    """All windows ``[k*s, k*s + w)`` that hold an event, in order (LANGUAGE §7)."""
    width = _ticks(query.within, ticks_per_second)
    slide = _ticks(query.slide or query.within, ticks_per_second)
    if not events:
        return
    first, last = min(event.time for event in events), max(event.time for event in events)
    for k in range((first - width) // slide, last // slide + 1):
        start, end = k * slide, k * slide + width
        if any(start <= event.time < end for event in events):
            yield start, end


def _ticks(duration: Duration, ticks_per_second: int) -> int:
    ticks = duration.seconds * ticks_per_second
    if ticks.denominator != 1:
        raise ValueError(f"the time column cannot hold {duration}")
    return ticks.numerator


# ---------------------------------------------------------------------------------------------------- trends


def operands(query: Query) -> tuple[Pattern, ...]:
    """The patterns whose trends are asked for: two for AND, else one."""
    return query.pattern.operands if isinstance(query.pattern, Conjunction) else (query.pattern,)


Key = Mapping[str, Any]


class Search:
    """Lists the trends of one query in one window."""

    def __init__(self, query: Query, stream: Stream, start: int, end: int) -> None:
        self.stream = stream
        self.rules: Rules = rules_of(query.condition)
        grouping = [attribute.name for attribute in query.group_by]
        self.partition = list(dict.fromkeys(grouping + self.rules.equivalence))
        self.events = [event for event in stream.events if start <= event.time < end]
        self._accepts: dict[tuple[Event, str], bool] = {}
        self._connects: dict[tuple[Binding, Binding], bool] = {}
        self._forbidden: dict[Any, bool] = {}

    def trends(self, pattern: Pattern) -> Iterator[tuple[tuple[Binding, ...], Key]]:
        """Every trend once, with the value of every equivalence and GROUP-BY attribute."""
        for bindings, key in self.matches(pattern, self.events, {}):
            spelled = spellings(pattern, tuple(variable for _, variable in bindings))
            if len(spelled) > 1:
                raise ValueError(f"ambiguous guards: {[variable for _, variable in bindings]} in {pattern}")
            if set(key) != set(self.partition):
                raise ValueError(f"no event of {[variable for _, variable in bindings]} carries a key")
            (gaps,) = spelled
            events = [event for event, _ in bindings]
            sides = itertools.pairwise([None, *events, None])
            if not any(
                self.forbidden(guard, left, right, key)
                for (left, right), guards in zip(sides, gaps, strict=True)
                for guard in guards
            ):
                yield bindings, {name: key[name] for name in self.partition}

    def forbidden(self, guard: Pattern, left: Event | None, right: Event | None, key: Key) -> bool:
        """Whether the negated pattern matches strictly between two events; None is the open end of the window."""
        asked = (guard, left, right, tuple(_comparable(key[name]) for name in self.partition))
        if asked not in self._forbidden:
            between = [
                event
                for event in self.events
                if (left is None or left.before(event)) and (right is None or event.before(right))
            ]
            self._forbidden[asked] = any(True for _ in self.matches(guard, between, key))
        return self._forbidden[asked]

    def matches(
        self, pattern: Pattern, events: Sequence[Event], key: Key, taken: tuple[Binding, ...] = ()
    ) -> Iterator[tuple[tuple[Binding, ...], Key]]:
        """Rules 1-4 of section 3, guards not yet looked at: all ways to go on from the bindings `taken`."""
        for event in events:
            if taken and not taken[-1][0].before(event):
                continue
            extended = self.agree(key, event)
            if extended is None:
                continue
            for variable in _variables(pattern, event.type):
                bindings = (*taken, (event, variable))
                word = tuple(name for _, name in bindings)
                if not (begins(pattern, word) and self.accepts(event, variable)):
                    continue  # `begins` only saves time: no word of the pattern goes on like this
                if taken and not self.connects(taken[-1], bindings[-1]):
                    continue
                if spellings(pattern, word):
                    yield bindings, extended
                yield from self.matches(pattern, events, extended, bindings)

    def agree(self, key: Key, event: Event) -> Key | None:
        """The key with the event's values added, None where they differ. NULL equals NULL."""
        extended = dict(key)
        for attribute in self.partition:
            if self.stream.carries(event, attribute):
                value = self.stream.read(event, attribute)
                if attribute in key and _comparable(key[attribute]) != _comparable(value):
                    return None
                extended.setdefault(attribute, value)
        return extended

    def accepts(self, event: Event, variable: str) -> bool:
        """Rule 2, remembered."""
        asked = (event, variable)
        if asked not in self._accepts:
            self._accepts[asked] = self.rules.accepts(variable, self.stream.reader(event))
        return self._accepts[asked]

    def connects(self, left: Binding, right: Binding) -> bool:
        """Rule 3, remembered."""
        asked = (left, right)
        if asked not in self._connects:
            read_left, read_right = self.stream.reader(left[0]), self.stream.reader(right[0])
            self._connects[asked] = self.rules.connects(left[1], read_left, right[1], read_right)
        return self._connects[asked]


def _variables(pattern: Pattern, type_: str | None) -> list[str]:
    """The variables outside NOT that an event of a type can be bound to."""
    negated = {atom for part in negations(pattern) for atom in atoms(part)}
    return sorted({a.variable for a in atoms(pattern) if a.type == type_ and a not in negated})


# ------------------------------------------------------------------------------------------------------- rows


def _comparable(value: Any) -> tuple[str, Any]:
    return (kind(value), value)


def _rank(value: Any) -> tuple[bool, Any]:
    """Ascending with NULL first."""
    return (value is not None, 0 if value is None else value)


def _window_rows(query: Query, stream: Stream, start: int, end: int) -> list[dict[str, Any]]:
    """The rows of one query in one window."""
    search = Search(query, stream, start, end)
    found = [list(search.trends(pattern)) for pattern in operands(query)]
    counted = found[0] if len(found) == 1 else list(_pairs(found[0], found[1], search.partition))
    grouping = list(dict.fromkeys(attribute.name for attribute in query.group_by))
    groups: dict[tuple[Any, ...], list[tuple[Binding, ...]]] = {}
    keys: dict[tuple[Any, ...], Key] = {}
    for bindings, key in counted:
        group = tuple(_comparable(key[name]) for name in grouping)
        groups.setdefault(group, []).append(bindings)
        keys.setdefault(group, key)
    rows = []
    for group in sorted(groups, key=lambda group: [_rank(value) for _, value in group]):
        row = {"query": query.name, "window_start": start, "window_end": end}
        for item in query.items:
            if isinstance(item.value, Attribute):
                row[item.column] = keys[group][item.value.name]
            else:
                occurrences = _occurrences(stream, groups[group], item.value.variable, item.value.attribute)
                value = aggregate(item.value, occurrences)
                row[item.column] = log2(value) if item.log2 else presented(value)
        rows.append(row)
    return rows


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


def _occurrences(
    stream: Stream, counted: Sequence[tuple[Binding, ...]], variable: str | None, attribute: str | None
) -> Occurrences:
    """What an aggregate looks at: the events bound to its variable, with every trend that they are in."""
    events = [event for bindings in counted for event, name in bindings if name == variable]
    values = [stream.read(event, attribute) for event in events] if attribute is not None else []
    return Occurrences(trends=len(counted), events=len(events), values=[v for v in values if v is not None])
