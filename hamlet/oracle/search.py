"""Every trend of a query in one window, one by one, as the rules of trends, negation and semantics say them."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hamlet.language.query import Attribute, Pattern, Query, Semantics, atoms, negations
from hamlet.oracle.conditions import Rules, kind, rules_of
from hamlet.oracle.stream import Event, Stream
from hamlet.oracle.words import beginnings, begins, spellings

Binding = tuple[Event, str]  # an event and the variable it is bound to


@dataclass(frozen=True)
class Window:
    """A window of result rows.

    Attributes
    ----------
    start, end : int
        In ticks; the end is not in it, but for sessions, whose end nothing reaches.
    events : frozenset of Event or None
        The events of a session; None where times decide.
    everything : bool
        Whether it is the one window of WITHIN ALL, which has no edges.
    """

    start: int
    end: int
    events: frozenset[Event] | None = None
    everything: bool = False

    @property
    def edges(self) -> tuple[int | None, int | None]:
        """What result rows say of it."""
        return (None, None) if self.everything else (self.start, self.end)

    def holds(self, event: Event) -> bool:
        """Whether an event lies in the window."""
        return self.start <= event.time < self.end if self.events is None else event in self.events


Key = Mapping[str, Any]


class Search:
    """Lists the trends of one query in one window.

    Parameters
    ----------
    query : Query
    stream : Stream
    window : Window
    longest : int or None
        The most ticks from a trend's first event to its last (SPAN).
    """

    def __init__(self, query: Query, stream: Stream, window: Window, longest: int | None = None) -> None:
        self.stream = stream
        self.semantics = query.semantics
        self.longest = longest
        self.window = window
        self.rules: Rules = rules_of(query.condition)
        grouping = [each.name for each in query.group_by if isinstance(each, Attribute)]
        self.partition = list(dict.fromkeys(grouping + self.rules.equivalence))
        # With SPAN only the last event lies in the window; a session has all events of a trend with it, too.
        self.unbounded = longest is not None and window.events is None
        self.events = [event for event in stream.events if self.unbounded or window.holds(event)]
        self._accepts: dict[tuple[Event, str], bool] = {}
        self._connects: dict[tuple[Binding, Binding], bool] = {}
        self._forbidden: dict[Any, bool] = {}

    def trends(self, pattern: Pattern) -> Iterator[tuple[tuple[Binding, ...], Key]]:
        """Every trend once, with the value of every equivalence and GROUP-BY attribute."""
        for bindings, key in self.matches(pattern, self.events, {}, longest=self.longest):
            if not self.window.holds(bindings[-1][0]):
                continue
            spelled = spellings(pattern, tuple(variable for _, variable in bindings))
            if len(spelled) > 1:
                raise ValueError(f"ambiguous guards: {[variable for _, variable in bindings]} in {pattern}")
            if set(key) != set(self.partition):
                raise ValueError(f"no event of {[variable for _, variable in bindings]} carries a key")
            (gaps,) = spelled
            if self.allowed(bindings, gaps, key) and not self.skips(pattern, bindings, key):
                yield bindings, {name: key[name] for name in self.partition}

    def allowed(self, bindings: Sequence[Binding], gaps: Sequence[Collection[Pattern]], key: Key) -> bool:
        """Whether no guard has a match in its gap; of a trend's beginning, the gap behind it is left out of `gaps`."""
        events = [event for event, _ in bindings]
        sides = itertools.pairwise([None, *events, None])
        return not any(
            self.forbidden(guard, left, right, key, events[0])
            for (left, right), guards in zip(sides, gaps, strict=False)
            for guard in guards
        )

    def skips(self, pattern: Pattern, bindings: Sequence[Binding], key: Key) -> bool:
        """Whether the trend skips an event that its semantics does not let it skip."""
        if self.semantics is Semantics.ANY:
            return False
        return any(
            left[0].before(event)
            and event.before(right[0])
            and self.agree(key, event) is not None
            and (self.semantics is Semantics.CONTIGUOUS or self.could_take(pattern, bindings[: place + 1], event, key))
            for place, (left, right) in enumerate(itertools.pairwise(bindings))
            for event in self.stream.events
        )

    def could_take(self, pattern: Pattern, beginning: Sequence[Binding], event: Event, key: Key) -> bool:
        """Whether a trend's beginning, followed by the event, begins a word and meets all rules so far."""
        for variable in _variables(pattern, event.type):
            longer = (*beginning, (event, variable))
            if not self.accepts(event, variable) or not self.connects(beginning[-1], longer[-1]):
                continue
            read = beginnings(pattern, tuple(name for _, name in longer))
            if len(read) > 1:
                raise ValueError(f"ambiguous guards: {[name for _, name in longer]} begins a word of {pattern}")
            if any(self.allowed(longer, gaps, key) for gaps in read):
                return True
        return False

    def forbidden(
        self, guard: Pattern, left: Event | None, right: Event | None, key: Key, first: Event | None = None
    ) -> bool:
        """Whether the negated pattern matches strictly between two events.

        None is an open end: that of the window, or, with SPAN, as far from the trend's `first` event as SPAN says.
        """
        open_from = first.time if first is not None and self.unbounded and None in (left, right) else None
        asked = (guard, left, right, open_from, tuple(_comparable(key[name]) for name in self.partition))
        if asked not in self._forbidden:
            between = [
                event
                for event in self.events
                if (left is None or left.before(event))
                and (right is None or event.before(right))
                and (open_from is None or self.longest is None or abs(event.time - open_from) <= self.longest)
            ]
            self._forbidden[asked] = any(True for _ in self.matches(guard, between, key))
        return self._forbidden[asked]

    def matches(
        self,
        pattern: Pattern,
        events: Sequence[Event],
        key: Key,
        taken: tuple[Binding, ...] = (),
        longest: int | None = None,
    ) -> Iterator[tuple[tuple[Binding, ...], Key]]:
        """All ways to go on from the bindings `taken`: words, predicates and keys; guards are not looked at."""
        for event in events:
            if taken and not taken[-1][0].before(event):
                continue
            if taken and longest is not None and event.time - taken[0][0].time > longest:
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
                yield from self.matches(pattern, events, extended, bindings, longest)

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
        """Whether an event may be bound to a variable, remembered."""
        asked = (event, variable)
        if asked not in self._accepts:
            self._accepts[asked] = self.rules.accepts(variable, self.stream.reader(event))
        return self._accepts[asked]

    def connects(self, left: Binding, right: Binding) -> bool:
        """Whether two bound events may be neighbours, remembered."""
        asked = (left, right)
        if asked not in self._connects:
            read_left, read_right = self.stream.reader(left[0]), self.stream.reader(right[0])
            self._connects[asked] = self.rules.connects(left[1], read_left, right[1], read_right)
        return self._connects[asked]


def _variables(pattern: Pattern, type_: str | None) -> list[str]:
    """The variables outside NOT that an event of a type can be bound to."""
    negated = {atom for part in negations(pattern) for atom in atoms(part)}
    return sorted({a.variable for a in atoms(pattern) if a.type == type_ and a not in negated})


def _comparable(value: Any) -> tuple[str, Any]:
    return (kind(value), value)
