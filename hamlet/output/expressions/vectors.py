"""Result expressions and conditions over columns: int64 and double, where those hold exactly what is calculated.

Whatever they do not hold (integers beyond 64 bits, a double that must come of integers beyond 2^53, quotients beyond
the range of doubles, text) raises `Inexact`, and the rows are calculated one by one
(`hamlet.output.expressions.single`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.kernel.column_builder import logarithms
from hamlet.language.query import (
    Aggregate,
    And,
    Between,
    Binary,
    Comparison,
    Condition,
    Expression,
    Literal,
    Log2,
    Membership,
    Not,
    NullTest,
    Or,
    Unary,
)
from hamlet.output.components import Values
from hamlet.output.digits import nearest_double
from hamlet.output.numbers import BeyondDoubles, Bools, Integers

_EXACT = 1 << 53  # integers up to it are doubles
_LARGEST = 1 << 63

_UFUNCS: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


class Inexact(Exception):
    """Columns of int64 and double cannot hold this."""


@dataclass(frozen=True, slots=True)
class Vector:
    """A number per row.

    Attributes
    ----------
    data : int64 or float64 array of shape (rows,) or (1,)
        Of shape (1,) where all rows have one value.
    valid : bool array of shape (rows,), or None
        Where there is a value; None: everywhere.
    rounded : bool
        Whether these are the doubles nearest to larger numbers, infinite beyond their range. Such numbers can be
        compared: where the doubles differ, the numbers differ alike.
    """

    data: npt.NDArray[Any]
    valid: Bools | None = None
    rounded: bool = False

    @property
    def is_integer(self) -> bool:
        """Whether the values are integers."""
        return self.data.dtype == np.int64

    @property
    def most(self) -> int:
        """The largest absolute value of integers."""
        return max(int(self.data.max()), -int(self.data.min())) if len(self.data) else 0

    def doubles(self) -> npt.NDArray[np.float64]:
        """The values as doubles, exactly."""
        if self.rounded:
            raise Inexact
        if self.is_integer and self.most > _EXACT:
            raise Inexact
        return self.data.astype(np.float64, copy=False)


Lookup = Callable[[Expression], Vector]  # of an attribute, an aggregate, or LOG2 of one; raises Inexact


def vector_of(values: Values) -> Vector:
    """A result column as numbers; raises Inexact where they are none that arrays hold."""
    data: Any = values.data
    if isinstance(data, np.ndarray) and values.objects is None and data.dtype in (np.int64, np.float64):
        valid = values.valid
        if values.places is not None:
            data, valid = data[values.places], None if valid is None else valid[values.places]
        if valid is not None and not valid.all():
            data = np.where(valid, data, 0)  # what stands where no value is must not look large
        return _without_nan(data, valid) if data.dtype == np.float64 else Vector(data, valid)
    if isinstance(data, Integers) and values.places is None:
        if (data.sizes == 1).all():
            return vector_of(Values(data.words[data.starts].view(np.int64), values.valid))
        return Vector(data.doubles(), values.valid, rounded=True)
    if isinstance(data, BeyondDoubles) and values.places is None:
        return Vector(data.nearest, values.valid, rounded=True)
    listed = values.tolist()
    if not all(type(value) is int or value is None for value in listed):
        raise Inexact
    try:
        found = np.array([0 if value is None else value for value in listed], np.int64)
    except OverflowError:
        raise Inexact from None
    return Vector(found, np.array([value is not None for value in listed], np.bool_))


def evaluated(expression: Expression, lookup: Lookup) -> Vector:
    """The values of an expression; raises Inexact."""
    match expression:
        case Literal(value=bool()) | Literal(value=str()):
            raise Inexact
        case Literal(value=int(value)) if not -_LARGEST <= value < _LARGEST:
            return Vector(np.array([nearest_double(value)]), rounded=True)
        case Literal(value=value):
            return Vector(np.array([value]))
        case Log2(operand=Aggregate()):
            return lookup(expression)
        case Log2(operand=operand):
            number = evaluated(operand, lookup)
            if number.rounded:
                raise Inexact
            found, above = logarithms(number.data.astype(np.float64))
            return Vector(found, _both(number.valid, above))
        case Unary(operator=sign, operand=operand):
            number = evaluated(operand, lookup)
            if number.rounded or (sign == "-" and number.is_integer and number.most >= _LARGEST):
                raise Inexact
            return Vector(-number.data, number.valid) if sign == "-" else number
        case Binary(operator=sign, left=left, right=right):
            return _operation(sign, evaluated(left, lookup), evaluated(right, lookup))
    return lookup(expression)


def _operation(sign: str, one: Vector, two: Vector) -> Vector:
    valid = _both(one.valid, two.valid)
    if sign == "/":
        return _quotient(one, two, valid)
    if sign == "%":
        return _remainder(one, two, valid)
    if one.is_integer and two.is_integer:
        bound = one.most * two.most if sign == "*" else one.most + two.most
        if bound >= _LARGEST:
            raise Inexact
        return Vector(_UFUNCS[sign](one.data, two.data), valid)
    with np.errstate(all="ignore"):
        return _finite(_UFUNCS[sign](one.doubles(), two.doubles()), one, two, valid)


def _quotient(one: Vector, two: Vector, valid: Bools | None) -> Vector:
    there = two.data != 0
    with np.errstate(all="ignore"):
        found = one.doubles() / np.where(there, two.doubles(), 1.0)
    return _finite(found, one, two, _both(valid, there))


def _remainder(one: Vector, two: Vector, valid: Bools | None) -> Vector:
    there = two.data != 0
    valid = _both(valid, there)
    if one.is_integer and two.is_integer:
        if one.most >= _LARGEST:
            raise Inexact
        return Vector(np.fmod(one.data, np.where(there, two.data, 1)), valid)
    with np.errstate(all="ignore"):
        return _without_nan(np.fmod(one.doubles(), np.where(there, two.doubles(), 1.0)), valid)


def _finite(found: npt.NDArray[np.float64], one: Vector, two: Vector, valid: Bools | None) -> Vector:
    """Doubles, none of which is infinite where both operands are finite: such a value is beyond doubles."""
    if np.isinf(found).any():
        beyond = np.isinf(found) & np.isfinite(one.data) & np.isfinite(two.data)
        if (beyond if valid is None else beyond & valid).any():
            raise Inexact
    return _without_nan(found, valid)


def _without_nan(found: npt.NDArray[np.float64], valid: Bools | None) -> Vector:
    nan = np.isnan(found)
    return Vector(found, _both(valid, ~nan)) if nan.any() else Vector(found, valid)


def _both(one: Bools | None, two: Bools | None) -> Bools | None:
    return two if one is None else one if two is None else one & two


# ------------------------------------------------------------------------------------------------- conditions

Truths = tuple[Bools, Bools]  # where a condition is true, and where it is false; elsewhere it is unknown


def truths(condition: Condition, lookup: Lookup, doubts: list[Bools]) -> Truths:
    """Where a condition holds, in three-valued logic; raises Inexact.

    Parameters
    ----------
    condition : Condition
    lookup : callable
    doubts : list of bool array
        Gets masks of rows for which rounded numbers do not tell, so that what comes back says nothing of them.
    """
    match condition:
        case And(operands=operands):
            return reduce(_and, [truths(operand, lookup, doubts) for operand in operands])
        case Or(operands=operands):
            false, true = reduce(_and, [truths(operand, lookup, doubts)[::-1] for operand in operands])
            return true, false
        case Not(operand=operand):
            true, false = truths(operand, lookup, doubts)
            return false, true
        case Comparison(operator=sign, left=left, right=right):
            return _compared(sign, evaluated(left, lookup), evaluated(right, lookup), doubts)
        case Membership(operand=tested, choices=choices, negated=negated):
            value = evaluated(tested, lookup)
            others = [evaluated(choice, lookup) for choice in choices]
            out, inside = reduce(_and, [_compared("<>", value, other, doubts) for other in others])
            return (out, inside) if negated else (inside, out)
        case Between(operand=tested, low=low, high=high, negated=negated):
            value = evaluated(tested, lookup)
            above = _compared(">=", value, evaluated(low, lookup), doubts)
            true, false = _and(above, _compared("<=", value, evaluated(high, lookup), doubts))
            return (false, true) if negated else (true, false)
        case NullTest(operand=tested, negated=negated):
            number = evaluated(tested, lookup)
            there = np.ones(len(number.data), np.bool_) if number.valid is None else number.valid
            return (there, ~there) if negated else (~there, there)
    raise Inexact


def _and(one: Truths, two: Truths) -> Truths:
    return one[0] & two[0], one[1] | two[1]


def _compared(sign: str, one: Vector, two: Vector, doubts: list[Bools]) -> Truths:
    first, second = one.data, two.data
    valid = _both(one.valid, two.valid)
    if one.rounded or two.rounded:
        first, second = first.astype(np.float64), second.astype(np.float64)
        doubts.append(first == second if valid is None else (first == second) & valid)
    elif one.is_integer != two.is_integer:
        first, second = one.doubles(), two.doubles()
    found = _UFUNCS[sign](first, second)
    return (found, ~found) if valid is None else (found & valid, ~found & valid)
