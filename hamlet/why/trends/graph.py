"""All trends of a group in a window as one graph: a step is an event bound to a variable, a path is a trend.

A step stands once for each state of the pattern's automaton, which is each set of words that can still follow, so that
paths and trends are one to one; with SPAN also once for each first event. Rules are asked pair by pair, as the
definitions say them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from hamlet.language.printing import to_text
from hamlet.language.query import Pattern, Semantics, Taken, negations
from hamlet.oracle import Event, Search
from hamlet.oracle.search import Binding, Key
from hamlet.why.trends.reach import Place, Reach
from optimizer.template import START, Template

Moment = tuple[int, int]
Values = tuple[Any, ...]
_MOST_SEARCHED = 20_000  # steps, of which some may turn out to be in no trend
_SAMPLED = 20  # trends of which some are shown
_NONE = ("none",)  # no event is bound to the variable yet


@dataclass(slots=True, eq=False)
class Step:
    """An event bound to a variable, at a state of the automaton.

    Attributes
    ----------
    first : Event or None
        With SPAN, the first event of the trends that the step is in.
    taken : tuple
        What its trends have taken so far of what GROUP-BY names beside attributes.
    after : list of Step
        Those that may come right before.
    count : int
        Beginnings of trends that end here.
    onward : int
        Ways from here to an end of a trend.
    next : list of Event or None
        Those that no trend may skip behind it, at the first time that has any, once somebody has asked.
    """

    event: Event
    variable: str
    state: int
    partition: Key
    first: Event | None
    taken: Values = ()
    begins: bool = False
    after: list[Step] = field(default_factory=list)
    count: int = 0
    ends: bool = False
    onward: int = 0
    place: int = -1
    next: list[Event] | None = None

    @property
    def trends(self) -> int:
        """How many trends take the step."""
        return self.count * self.onward


@dataclass(frozen=True, slots=True)
class Match:
    """A match of a negated pattern."""

    events: tuple[Event, ...]


class Negated:
    """The matches of one negated pattern among the events of a partition; for each last event the latest first one."""

    def __init__(self, search: Search, template: Template, events: Sequence[Event]) -> None:
        ordered = sorted(events, key=_moment)
        self.matches: list[Match] = []
        reached: list[tuple[Event, int, tuple[Event, ...]]] = []
        finals = {each.state for each in template.finals}
        for event in ordered:
            found: dict[int, tuple[Event, ...]] = {}
            for step in template.transitions:
                variable = template.variable(step.target)
                if template.types[template.labels[step.target]] != event.type or not search.accepts(event, variable):
                    continue
                ways: list[tuple[Event, ...]] = [(event,)] if step.source == START else []
                for before, state, path in reached:
                    if state == step.source and before.before(event):
                        pair: tuple[Binding, Binding] = (before, template.variable(state)), (event, variable)
                        if search.connects(*pair):
                            ways.append((*path, event))
                for path in ways:
                    known = found.get(step.target)
                    if known is None or known[0].before(path[0]):
                        found[step.target] = path
            for state, path in found.items():
                reached.append((event, state, path))
                if state in finals:
                    self.matches.append(Match(path))

    def between(self, search: Search, left: Event | None, right: Event | None, first: Event | None) -> Match | None:
        """A match strictly between two events; None is an open end (`hamlet.oracle.search.Search.forbidden`)."""
        near = first.time if first is not None and search.unbounded and None in (left, right) else None
        for match in self.matches:
            start, end = match.events[0], match.events[-1]
            if (left is not None and not left.before(start)) or (right is not None and not end.before(right)):
                continue
            longest = search.longest
            if near is not None and longest is not None and any(abs(e.time - near) > longest for e in (start, end)):
                continue
            return match
        return None


class Graph:
    """The trends of one template in one partition.

    Parameters
    ----------
    search : Search
        The rules, for one query and window.
    pattern : Pattern
        Whose template it is; where it is of both operands of AND, the patterns with the negations.
    template : Template
    partition : mapping
        The values of all keys.
    taken : mapping of Taken to Any
        What GROUP-BY names beside attributes, and the values of the group.
    limit : int
        Of more steps than these some trends are enough; the graph is then not completed.
    only_moves : iterable of (int, str, frozenset of int)
        State, variable, guards of the template: an event that could be taken there is not skipped, though no trend goes
        on with it.
    conditions : bool
        Whether conditions on neighbours are asked; without them (and without negations, `guards`), the graph tells
        readers what stands in the way of a row.

    Attributes
    ----------
    steps : list of Step
        All that a trend takes; where the graph is not completed those that some trends take.
    complete : bool
    """

    def __init__(
        self,
        search: Search,
        patterns: Sequence[Pattern],
        template: Template,
        partition: Key,
        taken: Mapping[Taken, Any],
        limit: int,
        *,
        only_moves: Iterable[tuple[int, str, frozenset[int]]] = (),
        accepted: bool = True,
        conditions: bool = True,
        guards: bool = True,
    ) -> None:
        self._rules = accepted, conditions, guards
        self._taken = taken
        self._search = search
        self._template = template
        self._partition = partition
        self._events = sorted((e for e in search.events if search.agree(partition, e) is not None), key=_moment)
        stream = search.stream.events if search.semantics is not Semantics.ANY else ()
        self._agreeing = sorted((e for e in stream if search.agree(partition, e) is not None), key=_moment)
        self._times = [each.time for each in self._agreeing]
        bodies = {to_text(each.body): each.body for pattern in patterns for each in negations(pattern)}
        self._negated = [Negated(search, guard.template, self._events) for guard in template.guards]
        self._bodies = bodies
        self._limit = limit
        self.complete = True
        self._variables = {state: template.variable(state) for state in range(1, template.size)}
        self._types = {state: template.types[template.labels[state]] for state in range(1, template.size)}
        self._into: dict[int, list[tuple[int, frozenset[int]]]] = {state: [] for state in range(template.size)}
        self._from: dict[int, list[tuple[int, frozenset[int]]]] = {state: [] for state in range(template.size)}
        for step in template.transitions:
            self._into[step.target].append((step.source, step.guards))
            self._from[step.source].append((step.target, step.guards))
        types = dict(zip(template.variables, template.types, strict=True))
        self._takes: dict[int, list[tuple[str, str, frozenset[int]]]] = {state: [] for state in range(template.size)}
        for state, onward in self._from.items():
            self._takes[state] += [(self._variables[target], self._types[target], guards) for target, guards in onward]
        for state, variable, needed in only_moves:
            self._takes[state].append((variable, types[variable], needed))
        self.steps = self._grown()
        for taken_step in self.steps:
            taken_step.after = [each for each in taken_step.after if each.onward]

    # -------------------------------------------------------------------------------------------- building

    def _grown(self) -> list[Step]:
        """All steps that a trend takes, in the order of time."""
        made: list[Step] = []
        by_state: dict[int, list[Step]] = {state: [] for state in self._variables}
        reach = Reach(self._search, self._template, self._events, self._accepts, conditions=self._rules[1])
        if reach.exact and not self._taken and len(reach.places) > self._limit:
            self.complete = False
            return self._sampled(reach.trends(_SAMPLED))
        promising = [(event, [each.state for each in some]) for event, some in groupby(reach.places, lambda e: e.event)]
        enough = 2 * self._limit
        for event, states in promising:
            new: list[Step] = []
            for state in states:
                new += self._at(event, state, by_state)
            for step in new:
                by_state[step.state].append(step)
            made += new
            if len(made) > enough:
                # later events only add to what the trends take that have ended
                enough += enough // 2
                kept = self._kept(made)
                if len(kept) > self._limit or (kept and len(made) > _MOST_SEARCHED):
                    self.complete = False
                    return kept
        return self._kept(made)

    def _sampled(self, trends: Iterable[Sequence[Place]]) -> list[Step]:
        """The steps of some trends."""
        steps: dict[int, Step] = {}
        for trend in trends:
            before: Step | None = None
            for place in trend:
                step = steps.get(id(place))
                if step is None:
                    variable = self._variables[place.state]
                    step = steps[id(place)] = Step(place.event, variable, place.state, self._partition, None)
                    step.begins, step.after = before is None, [] if before is None else [before]
                    step.count = 1 if before is None else before.count
                before = step
        return self._kept(sorted(steps.values(), key=lambda step: _moment(step.event)))

    def _kept(self, made: Sequence[Step]) -> list[Step]:
        """The steps among these that a trend takes, with the ways from each to an end."""
        finals = {each.state: each.guards for each in self._template.finals}
        following: dict[int, list[Step]] = {}
        for step in made:
            for before in step.after:
                following.setdefault(id(before), []).append(step)
        for step in reversed(made):
            if step.state in finals and self._search.window.holds(step.event):
                first = step.first or step.event
                step.ends = self._is_of_group(step.taken) and not self._forbidden(
                    finals[step.state], step.event, None, first
                )
            step.onward = step.ends + sum(each.onward for each in following.get(id(step), ()))
        return [step for step in made if step.onward]

    def _at(self, event: Event, state: int, by_state: Mapping[int, list[Step]]) -> list[Step]:
        """The steps of an event at a state: one, with SPAN one for each first event; for each that was taken."""
        found: dict[Any, Step] = {}
        spanned = self._search.longest is not None

        def step_of(first: Event, taken: Values) -> Step:
            key = id(first) if spanned else 0, tuple((_kind(each), each) for each in taken)
            if key not in found:
                own = first if spanned else None
                found[key] = Step(event, self._variables[state], state, self._partition, own, taken)
            return found[key]

        variable, nothing = self._variables[state], (_NONE,) * len(self._taken)

        for source, guards in self._into[state]:
            if source == START:
                if not self._forbidden(guards, None, event, event):
                    step = step_of(event, self._then(nothing, event, variable))
                    step.begins = True
                    step.count += 1
                continue
            follows = self._rule(source, state, guards)
            for before in by_state[source]:
                if before.event.before(event) and (follows is None or follows(before, event)):
                    step = step_of(before.first or event, self._then(before.taken, event, variable))
                    step.after.append(before)
                    step.count += before.count
        return list(found.values())

    def _then(self, taken: Values, event: Event, variable: str) -> Values:
        """What trends have taken behind an event."""
        found = []
        for each, value in zip(self._taken, taken, strict=True):
            if each.variable != variable:
                found.append(value)
            elif each.attribute is None:
                found.append(1 if value is _NONE else value + 1)
            elif each.function == "LAST" or value is _NONE:
                found.append(self._search.stream.read(event, each.attribute))
            else:
                found.append(value)
        return tuple(found)

    def _is_of_group(self, taken: Values) -> bool:
        """Whether trends that have taken this are of the group."""
        for (each, wanted), value in zip(self._taken.items(), taken, strict=True):
            own = (0 if each.attribute is None else None) if value is _NONE else value
            if not _same(own, wanted):
                return False
        return True

    def _rule(self, source: int, state: int, guards: frozenset[int]) -> Callable[[Step, Event], bool] | None:
        """What tells whether an event may come right behind a step of an earlier one; None where each may."""
        search, variable = self._search, self._variables[state]
        pair = self._variables.get(source), variable
        compared = self._rules[1] and any((rule.earlier, rule.later) == pair for rule in search.rules.adjacent)
        if not (compared or guards or search.longest is not None or search.semantics is not Semantics.ANY):
            return None

        def follows(before: Step, event: Event) -> bool:
            if (
                before.first is not None
                and search.longest is not None
                and event.time - before.first.time > search.longest
            ):
                return False
            if compared and not search.connects((before.event, before.variable), (event, variable)):
                return False
            return not self._forbidden(guards, before.event, event, before.first) and not self._skips(before, event)

        return follows

    def _skips(self, before: Step, event: Event) -> bool:
        """Whether an event lies between that the semantics does not let a trend skip."""
        semantics = self._search.semantics
        if semantics is Semantics.ANY:
            return False
        if before.next is None:
            before.next = self._next(before, semantics)
        return any(each.before(event) for each in before.next)

    def _next(self, before: Step, semantics: Semantics) -> list[Event]:
        """The events at the first time at which trends may not skip one behind a step."""
        found: list[Event] = []
        for each in self._agreeing[bisect_left(self._times, before.event.time) :]:
            if found and each.time > found[0].time:
                break
            if before.event.before(each) and (semantics is Semantics.CONTIGUOUS or self._could_take(before, each)):
                found.append(each)
        return found

    def _could_take(self, before: Step, event: Event) -> bool:
        return any(
            kind == event.type
            and self._search.accepts(event, variable)
            and self._search.connects((before.event, before.variable), (event, variable))
            and not self._forbidden(guards, before.event, event, before.first)
            for variable, kind, guards in self._takes[before.state]
        )

    def _accepts(self, event: Event, variable: str) -> bool:
        return not self._rules[0] or self._search.accepts(event, variable)

    def _forbidden(self, guards: frozenset[int], left: Event | None, right: Event | None, first: Event | None) -> bool:
        return self._rules[2] and any(
            self._negated[guard].between(self._search, left, right, first) for guard in guards
        )

    # ------------------------------------------------------------------------------------------ for readers

    def forbidden(self, most: int) -> Iterator[tuple[Step | None, Step | None, Match]]:
        """Pairs of steps that a match of a negated pattern keeps apart."""
        for step in self.steps[:most]:
            for source, guards in self._into[step.state]:
                for before in [None] if source == START else [each for each in self.steps if each.state == source]:
                    left = None if before is None else before.event
                    if before is not None and not before.event.before(step.event):
                        continue
                    for guard in guards:
                        match = self._negated[guard].between(self._search, left, step.event, step.first or step.event)
                        if match is not None:
                            yield before, step, match


def samples(graph_steps: Sequence[Step], most: int) -> Iterator[list[Step]]:
    """Some paths from a beginning to an end."""
    following: dict[int, list[Step]] = {}
    for step in graph_steps:
        for before in step.after:
            following.setdefault(id(before), []).append(step)
    stack = [[step] for step in reversed(graph_steps) if step.begins]
    while stack and most:
        path = stack.pop()
        if path[-1].ends:
            most -= 1
            yield path
        stack += [[*path, each] for each in reversed(following.get(id(path[-1]), ()))]


def partitions(search: Search, group: Mapping[str, Any]) -> Iterator[Key]:
    """The values of all keys that the events of a group can have together."""
    known: dict[tuple[Any, ...], dict[str, Any]] = {}
    for event in search.events:
        own = search.agree(group, event)
        if own is not None:
            known.setdefault(_key(own), dict(own))
    todo = list(known.values())
    while todo:
        one = todo.pop()
        if len(one) == len(search.partition):
            continue
        for other in list(known.values()):
            if all(_same(one[name], other[name]) for name in one if name in other):
                both = {**one, **other}
                if len(both) > len(one) and _key(both) not in known:
                    known[_key(both)] = both
                    todo.append(both)
    for each in known.values():
        if len(each) == len(search.partition):
            yield {name: each[name] for name in search.partition}


def _key(values: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted((name, _kind(value), value if value is not None else 0) for name, value in values.items()))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _same(one: Any, two: Any) -> bool:
    return _kind(one) == _kind(two) and bool(one == two)


def _moment(event: Event) -> tuple[int, bool, Any]:
    return event.time, event.order is not None, event.order if event.order is not None else 0


__all__ = ["Graph", "Match", "Negated", "Step", "partitions", "samples"]
