"""Lists some of the trends of one partition in one window, the shortest first, without listing the others.

The template is walked with the events of the partition. What makes it fast whatever the number of trends is knowing
where a walk cannot end: for every state, and every number of further events, the latest event from which a final state
can still be reached (`Walk._reach`). It is found by binary search, state by state, and holds for the order of events
alone; adjacent predicates and guards are tested on the way, and what turns out to lead nowhere is remembered.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from optimizer.template import START, Guard, Template

Moment = tuple[int, int]  # time, and order among equal times
Connects = Callable[[str, int, str, int], bool]  # variable and place of an event, those of the next one

MOST_STEPS = 2_000_000  # events that are looked at before the walk gives up
_BEFORE, _AFTER = (-(1 << 63), 0), (1 << 63, 0)


class TooManySteps(Exception):
    """Conditions on neighbours, or guards, reject so much that the walk has looked at too many events."""


@dataclass(frozen=True)
class Step:
    """An event of a trend: its place among the events, and the variable that it is bound to."""

    place: int
    variable: str


@dataclass(eq=False)
class _Range:
    """The events that may stand in a state next: from one place among the state's events to another."""

    first: int
    end: int
    target: int
    guards: frozenset[int]


class Walk:
    """The trends of a template over some events.

    Parameters
    ----------
    template : Template
    moments : sequence of (int, int)
        When each event is, ascending.
    accepted : mapping of str to sequence of int
        For each variable, negated ones too, the places of the events that may be bound to it, ascending.
    adjacent : set of (str, str)
        The pairs of variables that have an adjacent predicate.
    connects : callable
        Whether two events may be neighbours, of such a pair.
    """

    def __init__(
        self,
        template: Template,
        moments: Sequence[Moment],
        accepted: Mapping[str, Sequence[int]],
        adjacent: frozenset[tuple[str, str]],
        connects: Connects,
    ) -> None:
        self.template = template
        self.steps = 0
        self._moments = moments
        self._adjacent = adjacent
        self._connects = connects
        self._accepted = accepted
        variables = {state: template.variable(state) for state in range(1, template.size)}
        self._places = {state: accepted.get(variable, ()) for state, variable in variables.items()}
        self._times = {state: [moments[place] for place in places] for state, places in self._places.items()}
        self._following: dict[int, list[tuple[int, frozenset[int]]]] = {state: [] for state in range(template.size)}
        for step in template.transitions:
            self._following[step.source].append((step.target, step.guards))
        self._final: dict[int, list[frozenset[int]]] = {}
        for final in template.finals:
            self._final.setdefault(final.state, []).append(final.guards)
        self._layers: list[dict[int, Moment]] = []
        self._dead: set[tuple[int, int, int]] = set()
        self._forbidden: dict[tuple[int, Moment, Moment], bool] = {}
        self._guards = [self._walk_of(guard) for guard in template.guards]

    def _walk_of(self, guard: Guard) -> Walk:
        return Walk(guard.template, self._moments, self._accepted, self._adjacent, self._connects)

    def trends(self, low: Moment = _BEFORE, high: Moment = _AFTER) -> Iterator[tuple[Step, ...]]:
        """Trends of events strictly between two moments: the shortest first, those of one length by their events.

        Raises
        ------
        TooManySteps
            Where nothing is found for long.
        """
        most = sum(map(len, self._places.values()))
        missing = 0
        for length in range(1, most + 1):
            if not self._can_have(length, low, high):
                missing += 1
                if missing > self.template.size:  # no way through the states has such a length, or a greater one
                    return
                continue
            missing = 0
            yield from self._of_length(length, low, high)

    def matches(self, low: Moment, high: Moment) -> bool:
        """Whether there is a trend strictly between two moments."""
        if not self._adjacent:
            return self._earliest_end(low) < high
        return next(self.trends(low, high), None) is not None

    # ------------------------------------------------------------------------------------- where a walk can end

    def _layer(self, further: int) -> dict[int, Moment]:
        """For each state the latest event that may stand in it and reach an end with exactly so many further events."""
        while len(self._layers) <= further:
            if not self._layers:
                self._layers.append({state: self._times[state][-1] for state in self._final if self._times[state]})
                continue
            before = self._layers[-1]
            found: dict[int, Moment] = {}
            for state in range(1, self.template.size):
                bound = max((before[target] for target, _ in self._following[state] if target in before), default=None)
                if bound is None:
                    continue
                place = bisect_left(self._times[state], bound)
                if place:
                    found[state] = self._times[state][place - 1]
            self._layers.append(found)
        return self._layers[further]

    def _can_have(self, length: int, low: Moment, high: Moment) -> bool:
        layer = self._layer(length - 1)
        return any(layer.get(target, _BEFORE) > low for target, _ in self._following[START]) and low < high

    def _earliest_end(self, low: Moment) -> Moment:
        """When the first trend that begins after a moment ends, where neighbours have no conditions."""
        reached = {START: low}
        waiting = [START]
        while waiting:
            source = waiting.pop()
            for target, _ in self._following[source]:
                times = self._times[target]
                place = bisect_right(times, reached[source])
                if place < len(times) and times[place] < reached.get(target, _AFTER):
                    reached[target] = times[place]
                    waiting.append(target)
        return min((reached[state] for state in self._final if state in reached), default=_AFTER)

    # ------------------------------------------------------------------------------------------------ the walk

    def _of_length(self, length: int, low: Moment, high: Moment) -> Iterator[tuple[Step, ...]]:
        """All trends of one length, without recursion: they may be long."""
        path: list[tuple[int, int]] = []  # places and states
        fruitful: list[bool] = [False]
        choices = [self._choices(START, None, length - 1, low, high)]
        while choices:
            choice = next(choices[-1], None)
            if choice is None:
                choices.pop()
                if path:
                    place, state = path.pop()
                    if not fruitful.pop() and high == _AFTER:
                        self._dead.add((place, state, length - len(path) - 1))
                    else:
                        fruitful[-1] = True
                continue
            place, state = choice
            further = length - len(path) - 1
            if further:
                path.append(choice)
                fruitful.append(False)
                choices.append(self._choices(state, place, further - 1, low, high))
            elif self._may_end(state, place, high):
                fruitful[-1] = True
                whole = [*path, choice]
                yield tuple(Step(each, self.template.variable(own)) for each, own in whole)

    def _choices(
        self, state: int, place: int | None, further: int, low: Moment, high: Moment
    ) -> Iterator[tuple[int, int]]:
        """The events that may come next, in order, and the states that they lead to, as far as an end is in reach."""
        after = low if place is None else self._moments[place]
        layer = self._layer(further)
        ranges: list[_Range] = []
        for target, guards in self._following[state]:
            last = layer.get(target)
            if last is None or last <= after:
                continue
            times = self._times[target]
            ranges.append(_Range(bisect_right(times, after), bisect_right(times, last), target, guards))
        while ranges:
            best = min(ranges, key=lambda each: (self._places[each.target][each.first], each.target))
            found, target, guards = self._places[best.target][best.first], best.target, best.guards
            best.first += 1
            if best.first >= best.end:
                ranges.remove(best)
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise TooManySteps
            if self._moments[found] >= high or (found, target, further) in self._dead:
                continue
            if place is not None and not self._connected(state, place, target, found):
                continue
            if guards and self._is_forbidden(guards, after, self._moments[found]):
                continue
            yield found, target

    def _connected(self, state: int, place: int, target: int, found: int) -> bool:
        pair = (self.template.variable(state), self.template.variable(target))
        return pair not in self._adjacent or self._connects(pair[0], place, pair[1], found)

    def _may_end(self, state: int, place: int, high: Moment) -> bool:
        finals = self._final.get(state, [])
        return any(not self._is_forbidden(guards, self._moments[place], high) for guards in finals)

    def _is_forbidden(self, guards: frozenset[int], low: Moment, high: Moment) -> bool:
        for guard in guards:
            asked = (guard, low, high)
            if asked not in self._forbidden:
                self._forbidden[asked] = self._guards[guard].matches(low, high)
            if self._forbidden[asked]:
                return True
        return False
