"""Formula progression: what a propositional formula still asks of the future, step by step.

At a time-point the value of a formula is an expression over *obligations*: that an UNTIL with what is left of its
interval, or the body of a NEXT, holds at the time-point to come. With the next time-point, whose distance in time is
then known, each obligation is replaced by its value there, again an expression over obligations. Of the past, a SINCE
keeps the ages of the time-points at which its right side was true (each with its expression, if that is open), a PREV
the last value of its body.

A *state* is what the past left together with the expressions of the time-points that are undecided, the *slots*; equal
states are one number. Source: Basin, Bhatt, Traytel (TACAS 2017), §3 (interval-skewed formulas) and §5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hamlet.policies.analysis.propositions import Node, Skeleton
from hamlet.policies.verdicts.bdd import FALSE, TRUE, Diagrams
from hamlet.policies.verdicts.modes import Mode

_T = TypeVar("_T")
Entries = tuple[tuple[int, int], ...]  # (age, expression) of a SINCE, ages ascending
Past = tuple[Entries | int, ...]  # of each SINCE its entries, of each PREV an expression; in the order of nodes
Slots = tuple[tuple[int, int], ...]  # (expression, group) of each undecided time-point kept, the earliest first

DECIDED_TRUE, DECIDED_FALSE = -1, -2


@dataclass(frozen=True, slots=True)
class Step:
    """What a time-point does to a state.

    Attributes
    ----------
    state : int
        The next one.
    fate : int
        Of the time-point: `DECIDED_TRUE`, `DECIDED_FALSE`, or the slot (of the next state) that it shares or opens.
    opens : bool
        Whether it opens the slot.
    moves : tuple of int
        For each slot of the old state where it goes: a slot of the next state, or decided. Several may become one.
    """

    state: int
    fate: int
    opens: bool
    moves: tuple[int, ...]


class Progression:
    """The states and steps of a formula, made when they are first asked for.

    Parameters
    ----------
    skeleton : Skeleton
    mode : {'all', 'local', 'global'}
        Which undecided time-points of one expression share a slot: those of one time-stamp ('local'), or any.
    """

    def __init__(self, skeleton: Skeleton, mode: Mode) -> None:
        self.skeleton = skeleton
        self.mode = mode
        self.beyond = skeleton.largest + 1  # a difference of times that is larger than every bound
        self._table = Diagrams()
        self._obligations: list[tuple[int, int, int | None]] = []
        self._numbers: dict[tuple[int, int, int | None], int] = {}
        past = tuple(() if node.kind == "since" else FALSE for node in skeleton.nodes if node.kind in _KEEP)
        self._states: list[tuple[Past, Slots]] = []
        self._places: dict[tuple[Past, Slots], int] = {}
        self._numbers_kept = 0  # in all states
        self._place((past, ()))

    def __len__(self) -> int:
        return len(self._states)

    @property
    def nbytes(self) -> int:
        """Bytes that are held, roughly."""
        return 200 * len(self._states) + 100 * self._numbers_kept + self._table.nbytes

    def slots(self, state: int) -> int:
        """How many undecided time-points a state keeps."""
        return len(self._states[state][1])

    def _place(self, state: tuple[Past, Slots]) -> int:
        place = self._places.get(state)
        if place is None:
            place = self._places[state] = len(self._states)
            self._states.append(state)
            past, slots = state
            self._numbers_kept += len(slots) + sum(len(each) if isinstance(each, tuple) else 1 for each in past)
        return place

    def step(self, state: int, atoms: int, delta: int) -> Step:
        """What a time-point does.

        Parameters
        ----------
        state : int
            0 is the first one.
        atoms : int
            The true ones: bit k is atom k.
        delta : int
            The time since the last time-point, >= 0; 0 for the first one.
        """
        past, slots = self._states[state]
        moment = _Moment(self, past, atoms, min(delta, self.beyond))
        value = moment.values[-1]
        moves: list[int] = []
        kept: list[tuple[int, int]] = []
        places: dict[tuple[int, int], int] = {}
        groups = self._groups(slots, delta)
        for (expression, _), group in zip(slots, groups, strict=True):
            fresh = moment.progressed(expression)
            if fresh <= TRUE:
                moves.append(DECIDED_TRUE if fresh == TRUE else DECIDED_FALSE)
                continue
            if (fresh, group) not in places:
                places[fresh, group] = len(kept)
                kept.append((fresh, group))
            moves.append(places[fresh, group])
        opens = False
        if value <= TRUE:
            fate = DECIDED_TRUE if value == TRUE else DECIDED_FALSE
        else:
            opens = (value, 0) not in places
            if opens:
                places[value, 0] = len(kept)
                kept.append((value, 0))
            fate = places[value, 0]
        return Step(self._place((moment.past, self._dense(kept))), fate, opens, tuple(moves))

    def _groups(self, slots: Slots, delta: int) -> list[int]:
        """The group of each slot after a step: 0 is the time-stamp of the time-point, others are earlier ones."""
        return [group + (delta > 0) if self.mode == "local" else 0 for _, group in slots]

    def _dense(self, slots: list[tuple[int, int]]) -> Slots:
        """The slots with groups numbered without gaps; 0 is that of the last time-point, with slots or without."""
        known = sorted({group for _, group in slots} | {0})
        ranks = {group: rank for rank, group in enumerate(known)}
        return tuple((expression, ranks[group]) for expression, group in slots)

    def final(self, state: int, atoms: int = 0) -> list[bool]:
        """The values of a state's slots where time-points without events follow, each infinitely later.

        Parameters
        ----------
        state : int
        atoms : int
            Those that are true whatever happens.
        """
        slots = list(self._states[state][1])
        found: list[bool | None] = [None] * len(slots)
        where = list(range(len(slots)))  # the slot of the current state that each of the first ones has become
        seen: set[tuple[int, tuple[int, ...]]] = set()
        while any(value is None for value in found) and (state, tuple(where)) not in seen:
            seen.add((state, tuple(where)))
            step = self.step(state, atoms, self.beyond)
            for place, value in enumerate(found):
                if value is None:
                    move = step.moves[where[place]]
                    where[place] = move
                    if move < 0:
                        found[place] = move == DECIDED_TRUE
            state = step.state
        rest = self._states[state][1]
        for place, value in enumerate(found):
            if value is None:  # an UNTIL without end, which is never met
                expression = rest[where[place]][0]
                found[place] = self._table.replaced(expression, lambda _: FALSE, {}) == TRUE
        return [bool(value) for value in found]

    def described(self, states: Sequence[int]) -> list[Any]:
        """Some states as lists of numbers: obligations, expressions over these, and the states.

        An expression is 0 (false), 1 (true), or two more than its place among those that are told.
        """
        roots = [each for state in states for each in _expressions(*self._states[state])]
        below = self._table.below(roots)
        variables = {variable: place for place, variable in enumerate(sorted({each[1] for each in below}))}
        places = {FALSE: 0, TRUE: 1} | {each[0]: place for place, each in enumerate(below, 2)}
        return [
            [list(self._obligations[variable]) for variable in variables],
            [[variables[variable], places[low], places[high]] for _, variable, low, high in below],
            [_renumbered(*self._states[state], places) for state in states],
        ]

    def known(self, described: Sequence[Any]) -> list[int]:
        """The numbers of states that `described` told of, here or in another process.

        Raises
        ------
        ValueError
            If they are no states of this formula.
        """
        obligations, nodes, states = described
        variables = [self.obligation(*self._checked(*each)) for each in obligations]
        expressions = [FALSE, TRUE]
        tops = [len(variables), len(variables)]  # by expression its first variable; those of its parts come later
        for variable, low, high in nodes:
            place = _place_in(variables, variable)
            then, otherwise = _place_in(expressions, high), _place_in(expressions, low)
            if variable >= min(tops[high], tops[low]) or then == otherwise:
                raise ValueError("an expression is not reduced")
            expressions.append(self._table.choice(place, then, otherwise))
            tops.append(variable)
        return [self._place(self._state(past, slots, expressions)) for past, slots in states]

    def _checked(self, node: int, low: int, high: int | None) -> tuple[int, int, int | None]:
        """An obligation that this formula can have."""
        of = _place_in(self.skeleton.nodes, node)
        unbounded = high is None and (of.kind == "next" or of.high is None)
        if of.kind == "next":
            fits = low == 0 and unbounded
        else:
            fits = of.kind == "until" and type(low) is int and 0 <= low <= of.low
            fits = fits and (unbounded or (of.high is not None and type(high) is int and 0 <= high <= of.high))
        if not fits:
            raise ValueError("an obligation is none of the formula")
        return node, low, high

    def _state(self, past: Sequence[Any], slots: Sequence[Any], expressions: Sequence[int]) -> tuple[Past, Slots]:
        kept = [node for node in self.skeleton.nodes if node.kind in _KEEP]
        if len(past) != len(kept):
            raise ValueError("a state has another past")
        found: list[Entries | int] = []
        for node, each in zip(kept, past, strict=True):
            if node.kind == "prev":
                found.append(_place_in(expressions, each))
                continue
            entries = tuple((age, _place_in(expressions, place)) for age, place in each)
            most = node.low if node.high is None else node.high
            ages = [age for age, _ in entries]
            if any(type(age) is not int or not 0 <= age <= most for age in ages) or ages != sorted(set(ages)):
                raise ValueError("the ages of a state are out of order")
            found.append(entries)
        kept_slots = tuple((_place_in(expressions, place), group) for place, group in slots)
        groups = {group for _, group in kept_slots} | {0}
        if groups != set(range(len(groups))) or any(each <= TRUE for each, _ in kept_slots):
            raise ValueError("the slots of a state are none")
        if len(set(kept_slots)) != len(kept_slots) or (self.mode != "local" and len(groups) > 1):
            raise ValueError("two slots of a state are equal")
        return tuple(found), kept_slots

    def obligation(self, node: int, low: int, high: int | None) -> int:
        """The expression that a node, with this interval, holds at the next time-point."""
        key = (node, low, high)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._obligations)
            self._obligations.append(key)
        return self._table.variable(number)

    def obliged(self, number: int) -> tuple[int, int, int | None]:
        """Node and interval of an obligation."""
        return self._obligations[number]

    @property
    def table(self) -> Diagrams:
        """All expressions."""
        return self._table


_KEEP = ("since", "prev")


def _expressions(past: Past, slots: Slots) -> Iterator[int]:
    """The expressions of a state."""
    for each in past:
        yield from [each] if isinstance(each, int) else [expression for _, expression in each]
    yield from (expression for expression, _ in slots)


def _renumbered(past: Past, slots: Slots, places: Mapping[int, int]) -> list[Any]:
    """A state with other numbers for expressions."""
    told = [places[each] if isinstance(each, int) else [[age, places[one]] for age, one in each] for each in past]
    return [told, [[places[expression], group] for expression, group in slots]]


def _place_in(values: Sequence[_T], place: Any) -> _T:
    """The value at a place that somebody claims."""
    if type(place) is not int or not 0 <= place < len(values):
        raise ValueError("a number points nowhere")
    return values[place]


class _Moment:
    """The values of all nodes at one time-point.

    Attributes
    ----------
    values : list of int
        Expressions, by node.
    past : Past
        What is kept for the next time-point.
    """

    def __init__(self, owner: Progression, past: Past, atoms: int, delta: int) -> None:
        self._owner = owner
        self._table = owner.table
        self._delta = delta
        self._known: dict[int, int] = {}
        self._replaced: dict[int, int] = {}
        self.values: list[int] = []
        kept: list[Entries | int] = []
        before = iter(past)
        for place, node in enumerate(owner.skeleton.nodes):
            if node.kind == "since":
                value, entries = self._since(node, next(before))  # type: ignore[arg-type]
                kept.append(entries)
            elif node.kind == "prev":
                inside = node.low <= delta and (node.high is None or delta <= node.high)
                last = next(before)
                assert isinstance(last, int)
                value = self.progressed(last) if inside else FALSE
                kept.append(self.values[node.first])
            else:
                value = self._value(place, node, atoms)
            self.values.append(value)
        self.past: Past = tuple(kept)

    def _value(self, place: int, node: Node, atoms: int) -> int:
        table, values = self._table, self.values
        match node.kind:
            case "atom":
                return TRUE if atoms >> node.first & 1 else FALSE
            case "true":
                return TRUE
            case "not":
                return table.negated(values[node.first])
            case "and":
                return table.both(values[node.first], values[node.second])
            case "or":
                return table.either(values[node.first], values[node.second])
            case "next":
                return self._owner.obligation(place, 0, None)
        return self._until(place, node, node.low, node.high)

    def _until(self, place: int, node: Node, low: int, high: int | None) -> int:
        """The value of an UNTIL with what is left of its interval."""
        table = self._table
        later = table.both(self.values[node.first], self._owner.obligation(place, low, high))
        return table.either(self.values[node.second], later) if low == 0 else later

    def _since(self, node: Node, before: Entries) -> tuple[int, Entries]:
        """The value of a SINCE, and the ages of what it may still rest on."""
        table = self._table
        left, right = self.values[node.first], self.values[node.second]
        ages: dict[int, int] = {0: right}
        for age, expression in before:
            older = age + self._delta
            if node.high is None:
                older = min(older, node.low)  # from here on all ages are alike
            elif older > node.high:
                continue
            still = table.both(left, self.progressed(expression))
            ages[older] = table.either(ages.get(older, FALSE), still)
        value = FALSE
        kept = []
        for age in sorted(ages):
            expression = ages[age]
            if age >= node.low:
                # What a younger one says lasts longer, so only what this one adds matters.
                expression = table.both(expression, table.negated(value))
                value = table.either(value, ages[age])
            if expression != FALSE:
                kept.append((age, expression))
        return value, tuple(kept)

    def progressed(self, expression: int) -> int:
        """An expression of the last time-point, over obligations to this one, as one over those to the next."""
        return self._table.replaced(expression, self._met, self._known)

    def _met(self, number: int) -> int:
        """The value of an obligation at this time-point."""
        found = self._replaced.get(number)
        if found is None:
            found = self._replaced[number] = self._value_of(*self._owner.obliged(number))
        return found

    def _value_of(self, place: int, low: int, high: int | None) -> int:
        node = self._owner.skeleton.nodes[place]
        delta = self._delta
        if node.kind == "next":
            inside = node.low <= delta and (node.high is None or delta <= node.high)
            return self.values[node.first] if inside else FALSE
        if high is not None and high < delta:
            return FALSE
        return self._until(place, node, max(0, low - delta), None if high is None else high - delta)
