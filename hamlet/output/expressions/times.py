"""Times in results: expressions and conditions over single values, ticks as integers of any size.

What an operation gives, and in which unit, `hamlet.language.times` says. Every operation is exact before it is rounded
once, to the nearest tick, of two the even one.
"""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from hamlet.errors import DataError, OutputError
from hamlet.language.conditions import Part, walk
from hamlet.language.printing import to_text
from hamlet.language.query import (
    Aggregate,
    And,
    Attribute,
    AttributeType,
    Between,
    Binary,
    Comparison,
    Condition,
    Duration,
    Expression,
    Literal,
    Log2,
    Membership,
    Not,
    NullTest,
    Or,
    Taken,
    Unary,
)
from hamlet.language.schema import duration, is_finer, timestamp
from hamlet.language.times import UNIT_OF, Times, Typed
from hamlet.output.components import Values
from hamlet.output.expressions.single import Truth, all_of, compared, log2, operation, opposite, rounded

Lookup = Callable[[Expression], Any]  # ticks of a time, a number or another value; None for NULL
_LIMIT = 1 << 63
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def speaks_of_times(part: Part, times: Times) -> bool:
    """Whether an expression or a condition has instants or durations."""
    for inner in walk(part):
        if isinstance(inner, Literal) and isinstance(inner.value, Duration):
            return True
        if isinstance(inner, (Aggregate, Attribute, Taken)) and times.typed(inner).is_time:
            return True
    return any(times.typed(inner).wrong for inner in walk(part) if isinstance(inner, Aggregate))


def value_of(typed: Typed, lookup: Lookup) -> Any:
    """The value of an expression in one row: ticks of a time, a number; None for NULL.

    Raises
    ------
    DataError
        An operation that times do not have, where its operands are there.
    """
    if typed.wrong is not None:
        return _refused(typed, lookup)
    if typed.value is not None:
        return typed.value
    match typed.node:
        case Literal(value=value):
            return value
        case Log2():
            return log2(value_of(typed.operands[0], lookup))
        case Unary(operator=sign):
            number = value_of(typed.operands[0], lookup)
            if number is None or isinstance(number, (bool, str)):
                return None
            return -number if sign == "-" else number
        case Binary(operator=sign):
            one, two = (value_of(each, lookup) for each in typed.operands)
            if not any(each.is_time for each in typed.operands):
                return operation(sign, one, two)
            return None if one is None or two is None or typed.type is None else _of_times(typed, sign, one, two)
    return lookup(typed.node)


def _refused(typed: Typed, lookup: Lookup) -> None:
    values = [value_of(each, lookup) for each in typed.operands]
    if isinstance(typed.node, Aggregate):
        values = [lookup(typed.node)]
    if all(value is not None for value in values):
        raise DataError(f"{to_text(typed.node)}: {typed.wrong}")


def _of_times(typed: Typed, sign: str, one: Any, two: Any) -> Any:
    left, right = typed.operands
    if sign in "+-":
        one, two = one * (typed.per_second // left.per_second), two * (typed.per_second // right.per_second)
        return one + two if sign == "+" else one - two
    if sign == "*" and right.is_time:
        one, two = two, one
    elif right.is_time:  # a quotient of durations
        return rounded(Fraction(one * right.per_second, two * left.per_second)) if two else None
    if isinstance(two, float) and not math.isfinite(two):
        if math.isnan(two) or sign == "/":
            return None if math.isnan(two) else 0
        raise _beyond(to_text(typed.node))
    if sign == "/":
        return round(one / Fraction(two)) if two else None
    return round(one * Fraction(two))


def truth_of(condition: Condition, times: Times, lookup: Lookup) -> Truth:
    """Whether a condition holds in one row, in three-valued logic; raises as `value_of`."""

    def compare(sign: str, left: Expression, right: Expression) -> Truth:
        one, two, wrong = times.compared(left, right)
        first, second = value_of(one, lookup), value_of(two, lookup)
        if first is None or second is None:
            return None
        if wrong is not None:
            raise DataError(f"{to_text(condition)}: {wrong}")
        if one.is_time and two.is_time:
            return _ORDERS[sign](first * two.per_second, second * one.per_second)
        return compared(sign, first, second)

    match condition:
        case And(operands=operands):
            return all_of([truth_of(operand, times, lookup) for operand in operands])
        case Or(operands=operands):
            return opposite(all_of([opposite(truth_of(operand, times, lookup)) for operand in operands]))
        case Not(operand=operand):
            return opposite(truth_of(operand, times, lookup))
        case Comparison(operator=sign, left=left, right=right):
            return compare(sign, left, right)
        case Membership(operand=tested, choices=choices, negated=negated):
            outside = all_of([compare("<>", tested, choice) for choice in choices])
            return outside if negated else opposite(outside)
        case Between(operand=tested, low=low, high=high, negated=negated):
            inside = all_of([compare(">=", tested, low), compare("<=", tested, high)])
            return opposite(inside) if negated else inside
        case NullTest(operand=operand, negated=negated):
            return (value_of(times.typed(operand), lookup) is None) is not negated
    raise TypeError(f"no condition on results: {condition!r}")


# ------------------------------------------------------------------------------------------------- values


def average(total: int, number: int) -> int | None:
    """The mean of so many times, to the nearest tick; None of none."""
    return round(Fraction(total, number)) if number else None


def ticks_of(value: Any, per_second: int) -> int | None:
    """The ticks of a time that is a Python object."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, np.timedelta64 | np.datetime64):
        return int(value.astype(f"{value.dtype.kind}8[{UNIT_OF[per_second]}]").astype(np.int64))
    micros = np.datetime64 if hasattr(value, "year") else np.timedelta64
    if getattr(value, "tzinfo", None) is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return int(micros(value, "us").astype(np.int64)) * per_second // 1_000_000


def presented(ticks: Sequence[int | None], typed: Typed, column: str) -> Values:
    """Ticks as result values: datetimes and timedeltas, or what numpy has for nanoseconds.

    Raises
    ------
    OutputError
        Ticks beyond 64 bits.
    """
    if any(each is not None and not -_LIMIT <= each < _LIMIT for each in ticks):
        raise _beyond(column)
    data = np.array([0 if each is None else each for each in ticks], np.int64)
    there = np.array([each is not None for each in ticks], np.bool_)
    return Values(data, None if there.all() else there, present=presenter(typed.type, typed.per_second, typed.zone))


def presenter(kind: AttributeType | None, per_second: int, zone: str | None) -> Callable[[int], Any]:
    """What makes a Python object of ticks."""
    unit = UNIT_OF[per_second]
    if kind is AttributeType.DURATION:
        return lambda ticks: duration(ticks, unit)

    def moment(ticks: int) -> Any:
        if not is_finer(ticks, unit):
            return timestamp(ticks, unit, zone)
        if zone is None:
            return np.datetime64(ticks, "ns")
        return timestamp(round(Fraction(ticks, 1000)), "us", zone)

    return moment


def _beyond(what: str) -> OutputError:
    return OutputError(
        f"{what} is longer than a duration can be\n"
        "hint: SUM(EVENTS ..) adds each event once; divided by a duration, as in SUM(v.a) / 1 s, it is a number"
    )
