"""Which predicates accept the same events though they are written differently, and which imply another.

Two predicates are compared over all combinations of cells (`optimizer.axes`): finitely many, and each leaf is true or
not on all of a combination. What accepts the same events here does so in the engine, NULLs included; what would take
too many combinations, or arithmetic beyond integer polynomials, is called different.

Source: HAMLET (SIGMOD'21) Def. 3.2 shares equal predicates only; this goes further where it is sound.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from optimizer.axes import Axis, Point, Test, axis_of, cells_of, points_of, test_of
from optimizer.condition import AllOf, AnyOf, Condition, Field, fields, leaves, normal

MAX_LEAVES = 40
MAX_COMBINATIONS = 5_000  # of the cells of two predicates
MAX_TOGETHER = 3_000_000  # of the cells of all predicates on the same fields, times their number
MAX_IN_ALL = 100_000  # of all pairs of predicates that are numbered together


class Relation(enum.Enum):
    """How the events that one predicate accepts lie to those that another accepts."""

    SAME = "same"
    IMPLIES = "implies"  # the other accepts all of its events
    IMPLIED = "implied"
    DIFFERENT = "different"  # or not known


def relation(one: Condition, other: Condition) -> Relation:
    """How two predicates on events of one type (or on neighbours of two types) relate.

    Parameters
    ----------
    one, other : Condition

    Returns
    -------
    Relation
        Never wrong but for `DIFFERENT`, which is also what cannot be decided within the limits of this module. Integer
        arithmetic is taken to stay within 64 bits, where it leaves them the engine stops.

    Examples
    --------
    >>> from optimizer.condition import Compare, Field, constant
    >>> x = Field("x", "INT")
    >>> relation(Compare(">", x, constant(3)), Compare("<=", constant(4), x))
    <Relation.SAME: 'same'>
    """
    return _compared(normal(one), normal(other), MAX_COMBINATIONS)[0]


def _compared(one: Condition, other: Condition, limit: int) -> tuple[Relation, int]:
    """The relation of two normal forms, and how many combinations were looked at: `limit` at most."""
    if one == other:
        return Relation.SAME, 0
    cut = _Cut((one, other))
    if cut.leaves > MAX_LEAVES or cut.size > limit:
        return Relation.DIFFERENT, 0
    first, second = cut.accepted(one), cut.accepted(other)
    return _relation(first, second), cut.size


def _relation(one: int, other: int) -> Relation:
    """How two sets relate, given as bits."""
    if one == other:
        return Relation.SAME
    common = one & other
    return Relation.IMPLIES if common == one else Relation.IMPLIED if common == other else Relation.DIFFERENT


Accepts = Callable[[tuple[int, ...]], bool]  # takes the number of a cell for every axis


class _Cut:
    """The combinations of cells that some conditions tell apart."""

    def __init__(self, conditions: Iterable[Condition]) -> None:
        found = dict.fromkeys(leaf for condition in conditions for leaf in leaves(condition))
        points: dict[Axis, set[Point]] = {axis_of(field): set() for leaf in found for field in fields(leaf)}
        for test in map(test_of, found):
            if test.axis is not None:
                points.setdefault(test.axis, set()).update(points_of(test))
        self.leaves = len(found)
        self.axes = list(points)
        cut = [cells_of(axis, known) for axis, known in points.items()]
        self.cells = [cells for cells, _ in cut]
        self.places = dict(zip(self.axes, (places for _, places in cut), strict=True))
        self.size = math.prod(len(cells) for cells in self.cells)

    def accepted(self, condition: Condition) -> int:
        """The combinations that a condition is true on, as bits."""
        accepts = self._condition(condition)
        bits = "".join("01"[accepts(each)] for each in product(*(range(len(cells)) for cells in self.cells)))
        return int(bits, 2)

    def _condition(self, condition: Condition) -> Accepts:
        if not isinstance(condition, (AllOf, AnyOf)):
            return self._leaf(test_of(condition))
        parts = [self._condition(part) for part in condition.parts]
        joined = all if isinstance(condition, AllOf) else any
        return lambda combination: joined([part(combination) for part in parts])

    def _leaf(self, test: Test) -> Accepts:
        nullable = [self.axes.index(axis_of(field)) for field in test.fields]
        if test.axis is None:
            return lambda combination: test.otherwise if all(map(combination.__getitem__, nullable)) else test.if_null
        number = self.axes.index(test.axis)
        table = test.table(self.cells[number], self.places[test.axis])
        if nullable == [number]:  # as most are; cell 0 of a field is NULL
            return lambda combination: table[combination[number]]
        return lambda combination: (
            table[combination[number]] if all(map(combination.__getitem__, nullable)) else test.if_null
        )


def same_events(one: Condition, other: Condition) -> bool:
    """Whether two predicates are known to accept the same events."""
    return relation(one, other) is Relation.SAME


def implies(one: Condition, other: Condition) -> bool:
    """Whether a predicate is known to accept only what the other accepts."""
    return relation(one, other) in (Relation.SAME, Relation.IMPLIES)


@dataclass(frozen=True)
class PredicateClasses:
    """Predicates by the events that they accept.

    Attributes
    ----------
    numbers : tuple of int
        The class of each predicate: equal where they accept the same events.
    narrower : frozenset of (int, int)
        (a, b) where class a implies class b, a and b different.
    """

    numbers: tuple[int, ...]
    narrower: frozenset[tuple[int, int]]

    def related(self, one: int, other: int) -> bool:
        """Whether two classes are one, or one implies the other."""
        return one == other or (one, other) in self.narrower or (other, one) in self.narrower


def classes(conditions: Sequence[Condition]) -> PredicateClasses:
    """Number predicates by the events that they accept.

    Parameters
    ----------
    conditions : sequence of Condition
        On events of one type each; predicates on different types may be mixed, for their classes never meet.

    Returns
    -------
    PredicateClasses
        Once `MAX_IN_ALL` combinations are used up, predicates on different fields are only compared with what accepts
        everything.
    """
    known: list[tuple[Condition, frozenset[Field]]] = []
    merged: dict[Condition, int] = {}
    narrower: set[tuple[int, int]] = set()
    left = MAX_IN_ALL
    distinct = {condition: frozenset(fields(condition)) for condition in map(normal, conditions)}
    bits = _accepted_together(distinct)
    for condition, about in distinct.items():
        links: set[tuple[int, int]] = set()
        number = len(known)
        for place, (other, others) in enumerate(known):
            found = Relation.DIFFERENT
            if condition == AllOf() or other == AllOf():
                found = Relation.IMPLIES if other == AllOf() else Relation.IMPLIED
            elif about == others and condition in bits:
                found = _relation(bits[condition], bits[other])
            elif about & others and left > 0:
                found, combinations = _compared(condition, other, min(MAX_COMBINATIONS, left))
                left -= combinations + 1
            if found is Relation.SAME:
                merged[condition] = place
                break
            if found is not Relation.DIFFERENT:
                links.add((number, place) if found is Relation.IMPLIES else (place, number))
        else:
            merged[condition] = number
            known.append((condition, about))
            narrower |= links
    return PredicateClasses(tuple(merged[normal(condition)] for condition in conditions), frozenset(narrower))


def _accepted_together(distinct: Mapping[Condition, frozenset[Field]]) -> dict[Condition, int]:
    """What each condition accepts, as bits that can be compared among conditions on the same fields.

    Many thresholds on one field are cut once, not once per pair. Sets of conditions that would take too many
    combinations are left out.
    """
    by_fields: dict[frozenset[Field], list[Condition]] = {}
    for condition, about in distinct.items():
        by_fields.setdefault(about, []).append(condition)
    bits: dict[Condition, int] = {}
    for alike in by_fields.values():
        cut = _Cut(alike)
        if cut.size * len(alike) <= MAX_TOGETHER:
            bits.update({condition: cut.accepted(condition) for condition in alike})
    return bits
