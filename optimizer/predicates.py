"""Which predicates accept the same events though they are written differently, and which imply another.

Two predicates are compared over all combinations of cells (`optimizer.axes`): finitely many, and each leaf is true or
not on all of a combination. What accepts the same events here does so in the engine, NULLs included; what would take
too many combinations, or arithmetic beyond integer polynomials, is called different.

Source: HAMLET (SIGMOD'21) Def. 3.2 shares equal predicates only; this goes further where it is sound.
"""

from __future__ import annotations

import enum
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import groupby, product
from operator import and_, or_

from optimizer.axes import NULL, SIGNS, Axis, Point, Test, axis_of, cells_of, family_of, points_of, test_of
from optimizer.condition import AllOf, AnyOf, Condition, Field, fields, leaves, normal

MAX_LEAVES = 40
MAX_COMBINATIONS = 5_000  # of the cells of two predicates
MAX_TOGETHER = 3_000_000  # of the cells of all predicates on the same fields, times their number
MAX_BITS = 1 << 30  # of all that the predicates on the same fields accept
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
        line = self._on_a_line(condition)
        if line is not None:
            return line
        accepts = self._condition(condition)
        bits = "".join("01"[accepts(each)] for each in product(*(range(len(cells)) for cells in self.cells)))
        return int(bits, 2)

    def is_line(self, condition: Condition) -> bool:
        """Whether a condition is comparisons of the only axis with constants, so that no cell has to be looked at."""
        if isinstance(condition, (AllOf, AnyOf)):
            return bool(condition.parts) and all(map(self.is_line, condition.parts))
        test = test_of(condition)
        plain = test.polynomial is None and test.point is not None and test.operator != "IS NULL"
        return plain and self.axes == [test.axis] and [axis_of(field) for field in test.fields] == self.axes

    def _on_a_line(self, condition: Condition) -> int | None:
        """What such a condition accepts, as bits: a few stretches of cells; None for any other one."""
        if not self.is_line(condition):
            return None
        return self._stretches(condition)

    def _stretches(self, condition: Condition) -> int:
        if isinstance(condition, (AllOf, AnyOf)):
            join = and_ if isinstance(condition, AllOf) else or_
            return reduce(join, map(self._stretches, condition.parts))
        test = test_of(condition)
        assert test.axis is not None
        assert test.point is not None
        family = family_of(test.point)
        place = self.places[test.axis].get((family, test.point), 0)
        found = 0
        for name, (start, end, places) in self._families.items():
            if name == NULL:
                found |= self._ones(start, end) if test.if_null else 0
            elif name != family:
                found |= self._ones(start, end) if test.operator == "<>" else 0
            else:
                low, high = start + bisect_left(places, place), start + bisect_right(places, place)
                for sign, edges in ((-1, (start, low)), (0, (low, high)), (1, (high, end))):
                    found |= self._ones(*edges) if sign in SIGNS[test.operator] else 0
        return found

    def _ones(self, start: int, end: int) -> int:
        """Ones for the cells of a range; the first cell is the highest bit."""
        return ((1 << (end - start)) - 1) << (self.size - end)

    @cached_property
    def _families(self) -> dict[str, tuple[int, int, list[int]]]:
        """Of the only axis: for each family where its cells begin and end, and their places."""
        found: dict[str, tuple[int, int, list[int]]] = {}
        start = 0
        for family, cells in groupby(self.cells[0], key=lambda cell: cell.family):
            places = [cell.place for cell in cells]
            assert family not in found, "cells of one family stand together"
            found[family] = (start, start + len(places), places)
            start += len(places)
        return found

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
    compared : frozenset of (int, int)
        (a, b) where class a was found to imply class b, a and b different, and `accepted` does not say so.
    accepted : tuple of (frozenset of Field, int) or None
        For each class its fields, and what it accepts as bits that can be compared among classes of the same fields;
        None where that is not known. Of many thresholds on one field nobody writes down which implies which.
    everything : int or None
        The class that accepts all events.
    """

    numbers: tuple[int, ...]
    compared: frozenset[tuple[int, int]]
    accepted: tuple[tuple[frozenset[Field], int] | None, ...]
    everything: int | None

    def related(self, one: int, other: int) -> bool:
        """Whether two classes are one, or one implies the other."""
        if one == other or self.everything in (one, other):
            return True
        if (one, other) in self.compared or (other, one) in self.compared:
            return True
        first, second = self.accepted[one], self.accepted[other]
        if first is None or second is None or first[0] != second[0]:
            return False
        return _relation(first[1], second[1]) is not Relation.DIFFERENT

    @property
    def narrower(self) -> frozenset[tuple[int, int]]:
        """All (a, b) where class a implies class b, a and b different."""
        found = set(self.compared)
        for one, first in enumerate(self.accepted):
            for other, second in enumerate(self.accepted):
                both = first is not None and second is not None and first[0] == second[0]
                within = both and _relation(first[1], second[1]) is Relation.IMPLIES  # type: ignore[index]
                if one != other and (within or other == self.everything):
                    found.add((one, other))
        return frozenset(found)


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
    normals = [normal(condition) for condition in conditions]
    distinct = {condition: frozenset(fields(condition)) for condition in normals}
    bits = _accepted_together(distinct)
    numbering = _Numbering()
    merged = {
        condition: numbering.number(condition, about, bits.get(condition)) for condition, about in distinct.items()
    }
    return numbering.result(tuple(merged[condition] for condition in normals))


class _Numbering:
    """Numbers predicates one after the other."""

    def __init__(self) -> None:
        self._left = MAX_IN_ALL
        self._accepted: list[tuple[frozenset[Field], int] | None] = []
        self._same: dict[tuple[frozenset[Field], int], int] = {}
        self._by_fields: dict[frozenset[Field], list[tuple[int, Condition]]] = {}
        self._compared: set[tuple[int, int]] = set()
        self._everything: int | None = None

    def number(self, condition: Condition, about: frozenset[Field], bits: int | None) -> int:
        """The class of a predicate that was not seen before."""
        if condition == AllOf():
            self._everything = self._new(condition, about, None)
            return self._everything
        if bits is not None and (about, bits) in self._same:
            return self._same[about, bits]
        number = len(self._accepted)
        links: set[tuple[int, int]] = set()
        for others, known in self._by_fields.items():
            if self._left <= 0:
                break
            if not about & others or (about == others and bits is not None):
                continue
            for place, other in known:
                if self._left <= 0:
                    break
                found, combinations = _compared(condition, other, min(MAX_COMBINATIONS, self._left))
                self._left -= combinations + 1
                if found is Relation.SAME:
                    return place
                if found is not Relation.DIFFERENT:
                    links.add((number, place) if found is Relation.IMPLIES else (place, number))
        self._compared |= links
        return self._new(condition, about, bits)

    def _new(self, condition: Condition, about: frozenset[Field], bits: int | None) -> int:
        number = len(self._accepted)
        self._accepted.append(None if bits is None else (about, bits))
        if bits is not None:
            self._same[about, bits] = number
        if condition != AllOf():
            self._by_fields.setdefault(about, []).append((number, condition))
        return number

    def result(self, numbers: tuple[int, ...]) -> PredicateClasses:
        """What was found."""
        return PredicateClasses(numbers, frozenset(self._compared), tuple(self._accepted), self._everything)


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
        work = sum(1 if cut.is_line(condition) else cut.size for condition in alike)
        if work <= MAX_TOGETHER and cut.size * len(alike) <= MAX_BITS:
            bits.update({condition: cut.accepted(condition) for condition in alike})
    return bits
