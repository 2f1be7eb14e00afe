"""The values that a predicate tells apart: leaves as tests on axes, axes cut into cells.

An *axis* is a field, or an expression that is compared as a whole. A *cell* of it is NULL, a kind of value, a point
that some leaf compares with, or all values between two neighbouring points: a leaf is true on all of a cell or nowhere
in it. Fields of kind INT have no cell without an integer, so that ``x > 3`` and ``x >= 4`` are the same.

Axes are taken for independent, and a gap between two strings for inhabited. Both can only make predicates look
different that are not: what is found here to accept the same events does so.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Union

from optimizer.condition import (
    MIRRORED,
    Arithmetic,
    Compare,
    Constant,
    Field,
    IsNull,
    Kind,
    Negative,
    Value,
    fields,
)
from optimizer.polynomials import Polynomial, difference, is_polynomial, turning_points

Point = Union[Fraction, str, bool]
NULL = "NULL"
UNLIKE = "unlike"  # two fields whose values are of unlike types

_FAMILY = {
    "INT": "number",
    "DOUBLE": "number",
    "STRING": "string",
    "BOOLEAN": "boolean",
    "TIMESTAMP": "timestamp",
    "DURATION": "duration",
}
_ALL_FAMILIES = ("number", "string", "boolean", "timestamp", "duration")
SIGNS = {"=": (0,), "<>": (-1, 1), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1)}


@dataclass(frozen=True, slots=True)
class Cell:
    """Some values of an axis.

    Attributes
    ----------
    family : str
        ``NULL``, ``unlike``, ``number``, ``string``, ``boolean``, ``timestamp`` or ``duration``.
    place : int
        2 * i + 1 is the axis's point i of this family, 2 * i all values below it and above the point before.
    integer : int or None
        Some integer of the cell.
    """

    family: str
    place: int = 0
    integer: int | None = None


@dataclass(frozen=True, slots=True)
class Axis:
    """What is compared as a whole.

    Attributes
    ----------
    key : hashable
    families : tuple of str
        Kinds of values that it can have.
    nullable : bool
        Whether it can be NULL while none of its fields is.
    whole : bool
        Whether its numbers are integers.
    """

    key: Hashable
    families: tuple[str, ...]
    nullable: bool
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Test:
    """A leaf of a condition, as a test of the cells of its fields and of one axis.

    Attributes
    ----------
    fields : frozenset of Field
    if_null : bool
        What the leaf is where one of the fields or the axis is NULL.
    axis : Axis or None
        None: the leaf is `otherwise` where there is no NULL.
    operator : str
        A comparison with `point`, of `polynomial` with 0, or ``IS NULL``, which is `otherwise` where there is none.
    point : Fraction, str, bool or None
    polynomial : Polynomial or None
    otherwise : bool
    """

    fields: frozenset[Field]
    if_null: bool = False
    axis: Axis | None = None
    operator: str = "="
    point: Point | None = None
    polynomial: Polynomial | None = None
    otherwise: bool = False

    def table(self, cells: Sequence[Cell], places: Mapping[tuple[str, Point], int]) -> list[bool]:
        """For every cell of its axis whether the leaf is true there, the fields having values; places by `cells_of`."""
        point = None if self.point is None else (family_of(self.point), self.point)
        place = places.get(point, 0) if point else 0
        return [self._at(cell, point[0] if point else NULL, place) for cell in cells]

    def _at(self, cell: Cell, family: str, place: int) -> bool:
        if cell.family == NULL:
            return self.if_null
        if self.operator == "IS NULL":
            return self.otherwise
        if self.polynomial is not None:
            assert cell.integer is not None, "a polynomial's field has integer cells only"
            return _sign(self.polynomial.at(cell.integer)) in SIGNS[self.operator]
        if cell.family != family:
            return self.operator == "<>"
        return _sign(cell.place - place) in SIGNS[self.operator]


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def family_of(point: Point) -> str:
    """The family of a point's value."""
    return {bool: "boolean", str: "string"}.get(type(point), "number")


def axis_of(field: Field) -> Axis:
    """The axis of a field."""
    families = _ALL_FAMILIES if field.kind is None else (_FAMILY[field.kind],)
    return Axis(field, families, True, field.kind == "INT")


def cells_of(axis: Axis, points: Iterable[Point]) -> tuple[list[Cell], dict[tuple[str, Point], int]]:
    """The cells of an axis that is compared with some points, NULL first, and the place of each point."""
    cells = [Cell(NULL)] if axis.nullable else []
    places: dict[tuple[str, Point], int] = {}
    known = {(family_of(point), point) for point in points}  # with its family: TRUE and 1 are equal in Python
    for family in axis.families:
        if family == UNLIKE:
            cells.append(Cell(UNLIKE))
            continue
        if family == "boolean":
            known |= {(family, False), (family, True)}
        ordered = sorted((point for kind, point in known if kind == family), key=_order)
        places |= {(family, point): 2 * number + 1 for number, point in enumerate(ordered)}
        if family == "number" and axis.whole:
            cells += _integer_cells([Fraction(point) for point in ordered])
        elif family == "boolean":
            cells += [Cell(family, 1), Cell(family, 3)]
        else:
            cells += [Cell(family, place) for place in range(2 * len(ordered) + 1)]
    return cells, places


def _order(point: Point) -> tuple[Fraction, str]:
    """Of points of one family only."""
    return (Fraction(0), point) if isinstance(point, str) else (Fraction(point), "")


def _integer_cells(points: list[Fraction]) -> list[Cell]:
    if not points:
        return [Cell("number", 0, 0)]
    cells = [Cell("number", 0, math.ceil(points[0]) - 1)]
    for number, (low, high) in enumerate(pairwise([*points, None])):
        assert low is not None
        if low.denominator == 1:
            cells.append(Cell("number", 2 * number + 1, int(low)))
        above = math.floor(low) + 1
        if high is None or above < high:
            cells.append(Cell("number", 2 * number + 2, above))
    return cells


# -------------------------------------------------------------------------------------------- leaves to tests


@lru_cache(maxsize=10_000)
def test_of(leaf: Compare | IsNull) -> Test:
    """What a leaf tests."""
    if isinstance(leaf, IsNull):
        return _null_test(leaf)
    operator, left, right = leaf.operator, folded(leaf.left), folded(leaf.right)
    if isinstance(left, Constant):
        operator, left, right = MIRRORED[operator], right, left
    while isinstance(left, Negative) and _families(left.operand) == ("number",) and isinstance(right, Constant):
        if isinstance(right.value, str):
            break
        operator, left, right = MIRRORED[operator], left.operand, Constant(-right.value, right.kind)
    involved = frozenset((*fields(left), *fields(right)))
    families = _families(left), _families(right)
    if not set(families[0]) & set(families[1]):  # unlike types: never equal, no order
        return _unlike(involved, left, right, operator)
    point = _point(right)
    if isinstance(left, Field) and point is not None:
        return Test(involved, axis=axis_of(left), operator=operator, point=point)
    if is_polynomial(Arithmetic("-", left, right)):
        return _polynomial_test(operator, difference(left, right), involved)
    if isinstance(left, Constant) or (point is None and isinstance(right, Constant)):
        return _opaque(leaf, involved)
    if point is not None:
        return Test(involved, axis=Axis(left, ("number",), True), operator=operator, point=point)
    return _order_test(operator, left, right, involved, families)


def _null_test(leaf: IsNull) -> Test:
    operand = folded(leaf.operand)
    involved = frozenset(fields(operand))
    if isinstance(operand, (Field, Constant)) or is_polynomial(operand):
        return Test(involved, if_null=not leaf.negated, otherwise=leaf.negated)
    axis = Axis(operand, ("number",), True)
    return Test(involved, not leaf.negated, axis, "IS NULL", otherwise=leaf.negated)


def _unlike(involved: frozenset[Field], left: Value, right: Value, operator: str) -> Test:
    simple = all(isinstance(side, (Field, Constant)) or is_polynomial(side) for side in (left, right))
    if operator != "<>" or simple:
        return Test(involved, otherwise=operator == "<>")
    return _opaque(Compare(operator, left, right), involved)


def _opaque(leaf: Compare, involved: frozenset[Field]) -> Test:
    """A leaf that nothing is known of: it may be true or not, wherever there is no NULL."""
    return Test(involved, axis=Axis(leaf, ("boolean",), False), point=True)


def _polynomial_test(operator: str, polynomial: Polynomial, involved: frozenset[Field]) -> Test:
    if not polynomial.terms:
        return Test(involved, otherwise=_sign(polynomial.constant) in SIGNS[operator])
    if polynomial.scale < 0:
        operator = MIRRORED[operator]
    field = polynomial.field
    if field is not None and not polynomial.is_field:
        turned = Polynomial(polynomial.terms, abs(polynomial.scale), polynomial.constant * _sign(polynomial.scale))
        return Test(involved, axis=axis_of(field), operator=operator, polynomial=turned)
    axis = axis_of(field) if field is not None else Axis(polynomial.terms, ("number",), False, True)
    return Test(involved, axis=axis, operator=operator, point=Fraction(-polynomial.constant, polynomial.scale))


def _order_test(
    operator: str, left: Value, right: Value, involved: frozenset[Field], families: tuple[tuple[str, ...], ...]
) -> Test:
    """Two values that are not constant: their difference has a sign, or they are unlike."""
    if repr(right) < repr(left):
        operator, left, right = MIRRORED[operator], right, left
    simple = isinstance(left, Field) and isinstance(right, Field)
    kinds = ("number",) if families[0] == families[1] and len(families[0]) == 1 else ("number", UNLIKE)
    return Test(involved, axis=Axis((left, right), kinds, not simple), operator=operator, point=Fraction(0))


def points_of(test: Test) -> Iterable[Point]:
    """The points of its axis that a test needs."""
    if test.polynomial is not None:
        return [Fraction(point) for point in turning_points(test.polynomial)]
    return [] if test.point is None else [test.point]


def _families(value: Value) -> tuple[str, ...]:
    if isinstance(value, Field):
        return axis_of(value).families
    return (_FAMILY[value.kind],) if isinstance(value, Constant) else ("number",)


def _is_number(constant: Constant) -> bool:
    return constant.kind in ("INT", "DOUBLE")


def _point(value: Value) -> Point | None:
    """The point of a constant; None for other values and for infinities."""
    if not isinstance(value, Constant) or (isinstance(value.value, float) and not math.isfinite(value.value)):
        return None
    return value.value if isinstance(value.value, (bool, str)) else Fraction(value.value)


def folded(value: Value) -> Value:
    """A value whose constant parts are calculated as the engine calculates them: integers exactly, else in doubles."""
    match value:
        case Negative(operand=operand):
            inner = folded(operand)
            if isinstance(inner, Constant) and _is_number(inner) and not isinstance(inner.value, str):
                return Constant(-inner.value, inner.kind)
            return Negative(inner)
        case Arithmetic(operator=operator, left=left, right=right):
            one, other = folded(left), folded(right)
            if isinstance(one, Constant) and isinstance(other, Constant) and _is_number(one) and _is_number(other):
                return _calculated(operator, one, other) or Arithmetic(operator, one, other)
            if operator in ("+", "*") and repr(other) < repr(one):
                one, other = other, one
            return Arithmetic(operator, one, other)
    return value


def _calculated(operator: str, one: Constant, other: Constant) -> Constant | None:
    a, b = one.value, other.value
    assert not isinstance(a, str)
    assert not isinstance(b, str)
    kind: Kind = "INT" if one.kind == other.kind == "INT" and operator != "/" else "DOUBLE"
    if kind == "DOUBLE" and max(abs(a), abs(b)) >= 2**53:
        return None  # the engine may round an integer that Python does not
    if operator in ("/", "%"):
        if operator == "%" or b == 0:
            return None
        return Constant(float(a) / float(b), kind)
    result = a + b if operator == "+" else a - b if operator == "-" else a * b
    return Constant(result, kind) if kind == "DOUBLE" or -(2**63) <= result < 2**63 else None
