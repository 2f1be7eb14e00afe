"""Result expressions and conditions over single values: exact, whatever the size of the numbers.

This is what columns fall back to (`hamlet.output.expressions.vectors`) where int64 and double do not hold the results.
Sums, differences and products of integers are integers; every other operation is exact before it is rounded once, to
the nearest double, or to a Decimal of 17 digits beyond the range of doubles.
"""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hamlet.language.query import (
    And,
    Between,
    Binary,
    Comparison,
    Condition,
    Equivalence,
    Expression,
    Literal,
    Log2,
    Membership,
    Not,
    NullTest,
    Or,
    Unary,
)
from hamlet.planner import scaled

Truth = bool | None  # None is SQL's unknown
Lookup = Callable[[Expression], Any]  # the value of an attribute or aggregate in a row, None for NULL

_SHOWN = decimal.Context(prec=17, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def value_of(expression: Expression, lookup: Lookup) -> Any:
    """The value of an expression in one row, None for NULL.

    Parameters
    ----------
    expression : Expression
        Of RETURN, HAVING or TOP.
    lookup : callable
        Gives int, float, Decimal, str or None for an attribute or an aggregate.

    Examples
    --------
    >>> value_of(Binary("/", Literal(1), Literal(3)), lambda _: None)
    0.3333333333333333
    >>> value_of(Binary("%", Literal(-7), Literal(3)), lambda _: None)
    -1
    """
    match expression:
        case Literal(value=value):
            return value
        case Log2(operand=operand):
            return log2(value_of(operand, lookup))
        case Unary(operator=sign, operand=operand):
            number = value_of(operand, lookup)
            return None if not _is_number(number) else -number if sign == "-" else number
        case Binary(operator=sign, left=left, right=right):
            return operation(sign, value_of(left, lookup), value_of(right, lookup))
    return lookup(expression)


def operation(sign: str, first: Any, second: Any) -> Any:
    """One arithmetic operation, None for NULL."""
    if not (_is_number(first) and _is_number(second)) or (sign in "/%" and second == 0):
        return None
    if isinstance(first, int) and isinstance(second, int):
        return _of_integers(sign, first, second)
    if not (_is_finite(first) and _is_finite(second)):
        return _with_infinity(sign, float(first), float(second))
    one, two = Fraction(first), Fraction(second)
    if sign == "%":
        rest = abs(one) % abs(two)
        return rounded(rest if one >= 0 else -rest)
    exact = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}[sign](one, two)
    return rounded(exact)


def _of_integers(sign: str, first: int, second: int) -> Any:
    match sign:
        case "+":
            return first + second
        case "-":
            return first - second
        case "*":
            return first * second
        case "/":
            try:
                return first / second  # Python finds the double nearest to the quotient
            except OverflowError:
                return rounded(Fraction(first, second))
    rest = abs(first) % abs(second)
    return rest if first >= 0 else -rest


def rounded(exact: Fraction) -> float | Decimal:
    """The nearest double, or a Decimal beyond their range."""
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return _SHOWN.divide(Decimal(exact.numerator), Decimal(exact.denominator))


def _with_infinity(sign: str, first: float, second: float) -> float | None:
    with_nan = {
        "+": lambda: first + second,
        "-": lambda: first - second,
        "*": lambda: first * second,
        "/": lambda: first / second,
        "%": lambda: math.nan if math.isinf(first) else math.fmod(first, second),
    }[sign]()
    return None if math.isnan(with_nan) else with_nan


def log2(number: Any) -> float | None:
    """The binary logarithm, None for NULL and for values <= 0."""
    if not _is_number(number) or not number > 0:
        return None
    if isinstance(number, Decimal):
        exact = Fraction(number)
        return _log2_of_integer(exact.numerator) - _log2_of_integer(exact.denominator)
    return _log2_of_integer(number) if isinstance(number, int) else math.log2(number)


def _log2_of_integer(number: int) -> float:
    return scaled.log2(scaled.of_integer(number)) if number.bit_length() > 1000 else math.log2(number)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_finite(number: int | float | Decimal) -> bool:
    return not isinstance(number, float) or math.isfinite(number)


# ------------------------------------------------------------------------------------------------- conditions


def truth_of(condition: Condition, lookup: Lookup) -> Truth:
    """Whether a condition holds in one row, in three-valued logic."""
    match condition:
        case And(operands=operands):
            return all_of([truth_of(operand, lookup) for operand in operands])
        case Or(operands=operands):
            return opposite(all_of([opposite(truth_of(operand, lookup)) for operand in operands]))
        case Not(operand=operand):
            return opposite(truth_of(operand, lookup))
        case Comparison(operator=sign, left=left, right=right):
            return compared(sign, value_of(left, lookup), value_of(right, lookup))
        case Membership(operand=tested, choices=choices, negated=negated):
            value = value_of(tested, lookup)
            outside = all_of([compared("<>", value, value_of(choice, lookup)) for choice in choices])
            return outside if negated else opposite(outside)
        case Between(operand=tested, low=low, high=high, negated=negated):
            value = value_of(tested, lookup)
            ends = [compared(">=", value, value_of(low, lookup)), compared("<=", value, value_of(high, lookup))]
            return opposite(all_of(ends)) if negated else all_of(ends)
        case NullTest(operand=tested, negated=negated):
            return (value_of(tested, lookup) is None) != negated
        case Equivalence():
            raise TypeError("an equivalence is no condition on results")


def opposite(truth: Truth) -> Truth:
    """NOT."""
    return None if truth is None else not truth


def all_of(truths: list[Truth]) -> Truth:
    """AND."""
    return False if False in truths else None if None in truths else True


def compared(sign: str, left: Any, right: Any) -> Truth:
    """A comparison; numbers exactly, whatever their types. Values of different kinds differ and have no order."""
    if left is None or right is None:
        return None
    if _is_number(left) != _is_number(right) or (not _is_number(left) and type(left) is not type(right)):
        return {"=": False, "<>": True}.get(sign)
    return bool(_COMPARE[sign](left, right))
