"""Which events a trend may take, by types, conditions, times and keys: one pass over them in either direction.

What leads to an event and what leads on from it do not depend on each other where any events may be skipped. So an
event is reached exactly where one that has been reached before fits, and where neighbours are compared by keys, of all
that stand in a state it is enough to ask the one with the least key, or the greatest. What else is asked of pairs
(negated patterns, SPAN, other semantics, conditions without keys) is left out here: then there may be more than trends
take.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

from hamlet.errors import HamletError
from hamlet.language.conditions import references
from hamlet.language.query import Comparison, Expression, Semantics, Shift
from hamlet.oracle import Event, Search
from hamlet.oracle.conditions import Adjacent, kind, value_of
from optimizer.condition import MIRRORED
from optimizer.template import START, Template

_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "": lambda one, other: True,  # noqa: ARG005
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<>": operator.ne,
}
_KINDS = ("number", "boolean", "str")  # of which all values of one kind are in an order
Keys = tuple[tuple[Any, ...], Any]  # what must be equal, and what is compared otherwise


@dataclass(slots=True, eq=False)
class Place:
    """An event in a state of the automaton.

    Attributes
    ----------
    before : Place or None
        One that may come right before; None where a trend may begin.
    """

    event: Event
    state: int
    before: Place | None


@dataclass(slots=True)
class _Standing:
    """Places before a way: for each value of what must be equal the one that fits most others, of ``<>`` two."""

    sign: str  # how the key of one that stands here compares with that of one that comes
    best: dict[tuple[Any, ...], list[tuple[Any, Place]]] = field(default_factory=dict)

    def add(self, keys: Keys | None, place: Place) -> None:
        """Let a place stand here."""
        if keys is None:
            return
        known = self.best.setdefault(keys[0], [])
        if self.sign == "<>":
            if len(known) < 2 and all(key != keys[1] for key, _ in known):
                known.append((keys[1], place))
        elif not known or (self.sign and _HOLDS[self.sign[0]](keys[1], known[0][0])):
            known[:] = [(keys[1], place)]

    def find(self, keys: Keys | None) -> Place | None:
        """One that fits what comes."""
        known = self.best.get(keys[0], ()) if keys is not None else ()
        return next((place for key, place in known if keys is not None and _HOLDS[self.sign](key, keys[1])), None)


class Reach:
    """The events of a partition that trends of a template may take.

    Parameters
    ----------
    search : Search
        The rules, for one query and window.
    template : Template
    events : sequence of Event
        Of the partition, by time, then order.
    accepts : callable
        Whether an event may be bound to a variable.
    conditions : bool
        Whether neighbours are compared.

    Attributes
    ----------
    places : list of Place
        By time.
    exact : bool
        Whether some trend takes each, so far as trends are not grouped by what they take.
    """

    def __init__(
        self,
        search: Search,
        template: Template,
        events: Sequence[Event],
        accepts: Callable[[Event, str], bool],
        *,
        conditions: bool,
    ) -> None:
        self._search = search
        self._finals = {each.state for each in template.finals}
        variables = {state: template.variable(state) for state in range(1, template.size)}
        into: dict[int, list[int]] = {state: [] for state in variables}
        out: dict[int, list[int]] = {state: [] for state in variables}
        for step in template.transitions:
            into[step.target].append(step.source)
            if step.source != START:
                out[step.source].append(step.target)
        self._fitting: dict[str, list[int]] = {}
        for state in variables:
            self._fitting.setdefault(template.types[template.labels[state]], []).append(state)
        self._variables, self._into, self._out, self._accepts = variables, into, out, accepts
        guarded = any(step.guards for step in template.transitions) or any(end.guards for end in template.finals)
        orders = {event.order is None for event in events}
        self.exact = not (guarded or search.longest is not None or len(orders) > 1)
        self.exact = self.exact and search.semantics is Semantics.ANY
        self._moments = [list(some) for _, some in groupby(events, lambda event: (event.time, event.order))]
        self._ways = {
            (state, target): self._way(state, target, conditions)
            for state, targets in out.items()
            for target in targets
        }
        self.places = self._left(self._reached())

    def trends(self, most: int) -> Iterator[list[Place]]:
        """A trend to each of the first ends, where what is found is exact."""
        for end in islice((each for each in self.places if self._ends(each)), most):
            trend = [end]
            while trend[-1].before is not None:
                trend.append(trend[-1].before)
            yield trend[::-1]

    def _ends(self, place: Place) -> bool:
        return place.state in self._finals and self._search.window.holds(place.event)

    def _reached(self) -> list[list[Place]]:
        """What a beginning reaches, moment by moment."""
        standing = {way: _Standing(each.sign) for way, each in self._ways.items()}
        found = []
        for moment in self._moments:
            new: list[Place] = []
            for event in moment:
                for state in self._fitting.get(event.type or "", ()):
                    if not self._accepts(event, self._variables[state]):
                        continue
                    ways = [(source, state) for source in self._into[state] if source != START]
                    if len(ways) < len(self._into[state]):
                        new.append(Place(event, state, None))
                        continue
                    stand = (standing[way].find(self._ways[way].keys(event, 1)) for way in ways)
                    before = next((each for each in stand if each is not None), None)
                    if before is not None:
                        new.append(Place(event, state, before))
            for place in new:
                for target in self._out[place.state]:
                    way = place.state, target
                    standing[way].add(self._ways[way].keys(place.event, 0), place)
            found.append(new)
        return found

    def _left(self, reached: Sequence[Sequence[Place]]) -> list[Place]:
        """Of these what reaches an end."""
        standing = {way: _Standing(MIRRORED.get(each.sign, each.sign)) for way, each in self._ways.items()}
        found: list[list[Place]] = []
        for moment in reversed(reached):
            left = [
                place
                for place in moment
                if self._ends(place)
                or any(
                    standing[place.state, target].find(self._ways[place.state, target].keys(place.event, 0))
                    for target in self._out[place.state]
                )
            ]
            for place in left:
                for source in self._into[place.state]:
                    if source != START:
                        way = source, place.state
                        standing[way].add(self._ways[way].keys(place.event, 1), place)
            found.append(left)
        return [place for moment in reversed(found) for place in moment]

    def _way(self, source: int, target: int, conditions: bool) -> _Way:
        """How a way compares neighbours."""
        pair = self._variables[source], self._variables[target]
        rules = (
            [rule for rule in self._search.rules.adjacent if (rule.earlier, rule.later) == pair] if conditions else []
        )
        way = _way_of(self._search, rules)
        if way is not None and rules:
            way.keep(event for moment in self._moments for event in moment)
        if way is None or way.strange:
            self.exact = False
            return _Way(self._search, [], [], "")
        return way


class _Way:
    """How a way compares neighbours: expressions over the earlier and the later event, the last one by a sign."""

    def __init__(self, search: Search, earlier: Sequence[Expression], later: Sequence[Expression], sign: str) -> None:
        self.sign = sign
        self.strange = False
        self._search = search
        self._sides = earlier, later
        self._kept: dict[tuple[Event, int], Keys | None] = {}

    def keep(self, events: Iterator[Event]) -> None:
        """Compute all keys; `strange` says that some have no order."""
        try:
            for event in events:
                for side in (0, 1):
                    self._kept[event, side] = self._keys(event, side)
        except HamletError:  # it is told where the pair is looked at
            self.strange = True

    def keys(self, event: Event, side: int) -> Keys | None:
        """The keys of an event as the earlier or the later one; None where one is NULL."""
        return self._kept.get((event, side)) if self._sides[0] else ((), None)

    def _keys(self, event: Event, side: int) -> Keys | None:
        values = [value_of(each, self._search.stream.reader(event)) for each in self._sides[side]]
        if None in values:
            return None
        kinds = [kind(value) for value in values]
        self.strange = self.strange or not set(kinds) <= set(_KINDS)
        named = list(zip(kinds, values, strict=True))
        if not self.sign:
            return tuple(named), None
        if self.sign == "<>":
            return tuple(named[:-1]), named[-1]
        return (*named[:-1], kinds[-1]), values[-1]


def _way_of(search: Search, rules: Sequence[Adjacent]) -> _Way | None:
    """How some rules compare; None where no keys answer them."""
    equal: list[tuple[Expression, Expression]] = []
    ordered: list[tuple[Expression, Expression]] = []
    sign = ""
    for rule in rules:
        if not isinstance(rule.condition, Comparison):
            return None
        condition = rule.condition
        sides = [{_is_later(rule, each) for each in references(side)} for side in (condition.left, condition.right)]
        if sides not in ([{False}, {True}], [{True}, {False}]):
            return None
        turned = sides[0] == {True}
        pair = (condition.right, condition.left) if turned else (condition.left, condition.right)
        if condition.operator == "=":
            equal.append(pair)
        else:
            ordered.append(pair)
            sign = MIRRORED.get(condition.operator, condition.operator) if turned else condition.operator
    if len(ordered) > 1:
        return None
    pairs = [*equal, *ordered]
    return _Way(search, [each for each, _ in pairs], [each for _, each in pairs], sign)


def _is_later(rule: Adjacent, reference: Any) -> bool:
    """Whether a reference speaks of the later event of a pair."""
    if reference.shift is not Shift.NONE:
        return bool(reference.shift is Shift.NEXT)
    if rule.earlier == rule.later:
        return not rule.plain_is_earlier
    return bool(reference.variable == rule.later)


__all__ = ["Place", "Reach"]
