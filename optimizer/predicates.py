"""Which predicates accept the same events though they are written differently, and which imply another.

Two predicates are compared over all combinations of cells (`optimizer.axes`): finitely many, and each leaf is true or
not on all of a combination. What accepts the same events here does so in the engine, NULLs included; what would take
too many combinations, or arithmetic beyond integer polynomials, is called different.

Source: HAMLET (SIGMOD'21) Def. 3.2 shares equal predicates only; this goes further where it is sound.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from optimizer.axes import Axis, Cell, Point, Test, axis_of, cells_of, points_of, test_of
from optimizer.condition import AllOf, AnyOf, Compare, Condition, IsNull, fields, leaves, normal

MAX_LEAVES = 40
MAX_COMBINATIONS = 5_000
MAX_PAIRS = 2_500


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
    one, other = normal(one), normal(other)
    if one == other:
        return Relation.SAME
    found = [*leaves(one), *leaves(other)]
    if len(found) > MAX_LEAVES:
        return Relation.DIFFERENT
    tests = {leaf: test_of(leaf) for leaf in found}
    points: dict[Axis, set[Point]] = {axis_of(field): set() for leaf in found for field in fields(leaf)}
    for test in tests.values():
        if test.axis is not None:
            points.setdefault(test.axis, set()).update(points_of(test))
    cut = {axis: cells_of(axis, known) for axis, known in points.items()}
    if math.prod(len(cells) for cells, _ in cut.values()) > MAX_COMBINATIONS:
        return Relation.DIFFERENT
    places = {axis: place for axis, (_, place) in cut.items()}
    ones = others = True  # whether one implies the other, and the other the one
    for combination in product(*(cells for cells, _ in cut.values())):
        cells = dict(zip(cut, combination, strict=True))
        first, second = (_accepts(each, tests, cells, places) for each in (one, other))
        ones &= second or not first
        others &= first or not second
        if not (ones or others):
            return Relation.DIFFERENT
    return Relation.SAME if ones and others else Relation.IMPLIES if ones else Relation.IMPLIED


def _accepts(
    condition: Condition,
    tests: Mapping[Compare | IsNull, Test],
    cells: Mapping[Axis, Cell],
    places: Mapping[Axis, Mapping[tuple[str, Point], int]],
) -> bool:
    match condition:
        case AllOf(parts=parts):
            return all(_accepts(part, tests, cells, places) for part in parts)
        case AnyOf(parts=parts):
            return any(_accepts(part, tests, cells, places) for part in parts)
    return tests[condition].holds(cells, places)


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
        Past `MAX_PAIRS` comparisons, predicates are only compared by their normal form and with what accepts all.
    """
    known: list[Condition] = []
    merged: dict[Condition, int] = {}
    narrower: set[tuple[int, int]] = set()
    compared = 0
    for condition in dict.fromkeys(map(normal, conditions)):
        about = set(fields(condition))
        links: set[tuple[int, int]] = set()
        number = len(known)
        for place, other in enumerate(known):
            if other == AllOf():
                links.add((number, place))
                continue
            if condition == AllOf():
                links.add((place, number))
                continue
            compared += 1
            if compared > MAX_PAIRS or not about & set(fields(other)):
                continue
            found = relation(condition, other)
            if found is Relation.SAME:
                merged[condition] = place
                break
            if found is not Relation.DIFFERENT:
                links.add((number, place) if found is Relation.IMPLIES else (place, number))
        else:
            merged[condition] = number
            known.append(condition)
            narrower |= links
    return PredicateClasses(tuple(merged[normal(condition)] for condition in conditions), frozenset(narrower))
