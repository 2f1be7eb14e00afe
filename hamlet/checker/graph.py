"""The trends of a pattern in one partition by the definitions, pair by pair: all of them as a graph, or a single one.

Which words can follow is told by the pattern's derivatives; which events may be neighbours by the conditions, the
semantics and the negated patterns.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hamlet.checker.question import Event, Key, Question
from hamlet.checker.results import ANY, json_of
from hamlet.checker.words import Automaton, Gap
from hamlet.language import query as q


@dataclass(eq=False)
class Step:
    """An event bound to a variable, for one set of words that can follow."""

    event: Event
    variable: str
    first: Event | None
    partition: Key
    taken: tuple[Any, ...] = ()
    begins: bool = False
    after: list[Step] = field(default_factory=list)
    count: int = 0
    onward: int = 0
    ends: bool = False


class Rules:
    """The rules of a pattern's trends in one partition."""

    def __init__(self, task: Question, patterns: Sequence[Any], key: Key) -> None:
        self.task = task
        self.key = key
        self.automata = [Automaton(each) for each in patterns]
        stream = task.stream
        self.events = [event for event in task.events if stream.agrees(event, key)]
        self.all_events = [event for event in stream.events if stream.agrees(event, key)]
        self.types = {name: each for automaton in self.automata for name, each in automaton.types.items()}
        self._accepted: dict[tuple[int, str], bool] = {}
        self._negated: dict[Any, list[tuple[Event, Event]]] = {}

    def accepts(self, event: Event, variable: str) -> bool:
        """Whether an event may be bound to a variable."""
        asked = event.at, variable
        if asked not in self._accepted:
            self._accepted[asked] = event.type is not None and self.task.where.accepts(
                variable, self.task.stream.reader(event)
            )
        return self._accepted[asked]

    def connects(self, one: Event, earlier: str, two: Event, later: str) -> bool:
        """Whether one event may directly follow another."""
        reader = self.task.stream.reader
        return self.task.where.connects(earlier, reader(one), later, reader(two))

    def forbidden(self, gap: Gap, left: Event | None, right: Event | None, first: Event) -> bool:
        """Whether a negated pattern of the gap has a match strictly between two events; None is an open end."""
        task = self.task
        near = None in (left, right) and task.longest is not None and task.session is None
        for body in gap:
            for start, end in self.matches(body):
                if (left is not None and not left.before(start)) or (right is not None and not end.before(right)):
                    continue
                if near and any(abs(each.time - first.time) > (task.longest or 0) for each in (start, end)):
                    continue
                return True
        return False

    def matches(self, body: Any) -> list[tuple[Event, Event]]:
        """First and last events of the matches of a negated pattern: for a last one those first ones that are late."""
        if body not in self._negated:
            automaton = Automaton(body)
            reached: list[tuple[Event, str, int, Event]] = []
            found = []
            for event in sorted(self.events, key=_moment):
                new: list[tuple[Event, str, int, Event]] = []
                for variable in [name for name, type_ in automaton.types.items() if type_ == event.type]:
                    if not self.accepts(event, variable):
                        continue
                    for (_, name), target in automaton.moves[0].items():
                        if name == variable:
                            new.append((event, variable, target, event))
                    for one, earlier, state, start in reached:
                        for (_, name), target in automaton.moves[state].items():
                            if name == variable and one.before(event) and self.connects(one, earlier, event, variable):
                                new.append((event, variable, target, start))
                latest: dict[tuple[str, int], Event] = {}
                for _, variable, state, start in new:
                    known = latest.get((variable, state))
                    if known is None or known.before(start):
                        latest[variable, state] = start
                for (variable, state), start in latest.items():
                    reached.append((event, variable, state, start))
                    if automaton.finals[state]:
                        found.append((start, event))
            self._negated[body] = found
        return self._negated[body]

    def skips(self, state: tuple[int, ...], before: Event, variable: str, event: Event, first: Event) -> bool:
        """Whether an event lies between that the semantics does not let a trend skip."""
        semantics = self.task.query.semantics
        if semantics is q.Semantics.ANY:
            return False
        for each in self.all_events:
            if not (before.before(each) and each.before(event)):
                continue
            if semantics is q.Semantics.CONTIGUOUS:
                return True
            if any(
                self.accepts(each, name)
                and self.connects(before, variable, each, name)
                and not self.forbidden(gap, before, each, first)
                for automaton, own in zip(self.automata, state, strict=True)  # each operand of AND for itself
                for gap, name in automaton.moves[own]
                if self.types[name] == each.type
            ):
                return True
        return False

    def onward(self, state: tuple[int, ...]) -> Iterator[tuple[Gap, str, tuple[int, ...]]]:
        """The next letters from a state, of AND one of each operand, and where they lead."""
        moves = (automaton.moves[own].items() for automaton, own in zip(self.automata, state, strict=True))
        for letters in itertools.product(*moves):
            if len(names := {name for (_, name), _ in letters}) == 1:
                gaps = (gap for (gap, _), _ in letters)
                yield Gap().union(*gaps), names.pop(), tuple(target for _, target in letters)

    def endings(self, state: tuple[int, ...]) -> list[Gap]:
        """The marks behind a last event with which a word may end."""
        finals = (automaton.finals[own] for automaton, own in zip(self.automata, state, strict=True))
        return [Gap().union(*gaps) for gaps in itertools.product(*finals)]

    def then(self, taken: tuple[Any, ...], event: Event, variable: str) -> tuple[Any, ...]:
        """What trends have taken behind an event, of what GROUP-BY names beside attributes; None for nothing yet."""
        found = list(taken)
        for place, (each, _) in enumerate(self.task.taken):
            if each.variable != variable:
                continue
            if each.attribute is None:
                found[place] = ((0 if found[place] is None else found[place][0]) + 1,)
            elif each.function == "LAST" or found[place] is None:
                found[place] = (self.task.stream.read(event, each.attribute),)
        return tuple(found)

    def of_group(self, taken: tuple[Any, ...]) -> bool:
        """Whether trends that have taken this are of the group."""
        for (each, wanted), value in zip(self.task.taken, taken, strict=True):
            own = value[0] if value is not None else 0 if each.attribute is None else None
            differs = json_of(own) != wanted or isinstance(own, bool) is not isinstance(wanted, bool)
            if differs and wanted is not ANY:
                return False
        return True

    def alike(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """One name for all states that the same words can follow."""
        return tuple(automaton.kinds[each] for automaton, each in zip(self.automata, state, strict=True))


class Graph(Rules):
    """All trends of a pattern in one partition."""

    def __init__(self, task: Question, patterns: Sequence[Any], key: Key) -> None:
        super().__init__(task, patterns, key)
        self.steps = self._grown()

    def _grown(self) -> list[Step]:
        made: list[tuple[Step, tuple[int, ...]]] = []
        start = (0,) * len(self.automata)
        spanned = self.task.longest is not None
        nothing = (None,) * len(self.task.taken)
        for event in sorted(self.events, key=_moment):
            new: dict[Any, tuple[Step, tuple[int, ...]]] = {}

            def step_of(
                variable: str,
                state: tuple[int, ...],
                first: Event,
                taken: tuple[Any, ...],
                event: Event = event,
                new: dict[Any, Any] = new,
            ) -> Step:
                asked = variable, self.alike(state), first.at if spanned else None, repr(taken)
                if asked not in new:
                    new[asked] = Step(event, variable, first if spanned else None, self.key, taken), state
                found: Step = new[asked][0]
                return found

            for gap, variable, target in self.onward(start):
                fits = self.types[variable] == event.type and self.accepts(event, variable)
                if fits and not self.forbidden(gap, None, event, event):
                    step = step_of(variable, target, event, self.then(nothing, event, variable))
                    step.begins = True
                    step.count += 1
            for before, state in made:
                if not before.event.before(event):
                    continue
                first = before.first or before.event
                if spanned and event.time - first.time > (self.task.longest or 0):
                    continue
                for gap, variable, target in self.onward(state):
                    if (
                        self.types[variable] == event.type
                        and self.accepts(event, variable)
                        and self.connects(before.event, before.variable, event, variable)
                        and not self.forbidden(gap, before.event, event, first)
                        and not self.skips(state, before.event, before.variable, event, first)
                    ):
                        step = step_of(variable, target, first, self.then(before.taken, event, variable))
                        step.after.append(before)
                        step.count += before.count
            made += new.values()
        return self._ended(made)

    def _ended(self, made: list[tuple[Step, tuple[int, ...]]]) -> list[Step]:
        following: dict[int, list[Step]] = {}
        for step, _ in made:
            for before in step.after:
                following.setdefault(id(before), []).append(step)
        for step, state in reversed(made):
            if self.task.holds(step.event):
                first = step.first or step.event
                step.ends = self.of_group(step.taken) and any(
                    not self.forbidden(gap, step.event, None, first) for gap in self.endings(state)
                )
            step.onward = step.ends + sum(each.onward for each in following.get(id(step), ()))
        kept = [step for step, _ in made if step.onward]
        for step in kept:
            step.after = [each for each in step.after if each.onward]
        return kept


class Path(Rules):
    """One trend."""

    def takes(self, told: Any) -> bool:
        """Whether pairs of an event's place and a variable are a trend."""
        try:
            pairs = [(self.task.stream.by_place[at], str(variable)) for at, variable in told]
        except (KeyError, TypeError, ValueError):
            return False
        own = {event.at for event in self.events}
        if not pairs or not self.task.holds(pairs[-1][0]) or any(event.at not in own for event, _ in pairs):
            return False
        first = pairs[0][0]
        if self.task.longest is not None and pairs[-1][0].time - first.time > self.task.longest:
            return False
        states = [(0,) * len(self.automata)]
        before: tuple[Event, str] | None = None
        taken: tuple[Any, ...] = (None,) * len(self.task.taken)
        for event, variable in pairs:
            if event.type != self.types.get(variable) or not self.accepts(event, variable):
                return False
            if before is not None and not (before[0].before(event) and self.connects(*before, event, variable)):
                return False
            states = [
                target
                for state in states
                for gap, name, target in self.onward(state)
                if name == variable and not self.forbidden(gap, before[0] if before else None, event, first)
                if before is None or not self.skips(state, before[0], before[1], event, first)
            ]
            before = event, variable
            taken = self.then(taken, event, variable)
        last = pairs[-1][0]
        return self.of_group(taken) and any(
            not self.forbidden(gap, last, None, first) for state in states for gap in self.endings(state)
        )


def graphs_of(task: Question) -> list[list[Step]]:
    """The steps of the trends; of AND those of each operand, and of the trends that are both's."""
    asked = [[each] for each in task.patterns] + [list(task.patterns)] * (len(task.patterns) == 2)
    return [[step for key in task.keys for step in Graph(task, own, key).steps] for own in asked]


def _moment(event: Event) -> tuple[int, bool, Any]:
    return event.time, event.order is not None, event.order if event.order is not None else 0
