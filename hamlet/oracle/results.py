"""Result expressions, HAVING and TOP, evaluated straight from the syntax tree over the exact values of aggregates."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hamlet.errors import DataError
from hamlet.language.query import (
    Aggregate,
    Attribute,
    Binary,
    Condition,
    Duration,
    Expression,
    Literal,
    Log2,
    Taken,
    Top,
    Unary,
)
from hamlet.oracle.aggregates import log2, presented
from hamlet.oracle.conditions import truth_of
from hamlet.oracle.times import both, is_time, length, operation

Exact = int | float | Decimal


class Group:
    """The values of one group of a window.

    Parameters
    ----------
    keys : mapping of str or Taken to Any
        GROUP-BY attributes, and what else it names.
    aggregates : mapping of Aggregate to Any
        Exact: int, Fraction, float or None.
    """

    def __init__(self, keys: Mapping[Any, Any], aggregates: Mapping[Aggregate, Any]) -> None:
        self.keys = keys
        self.aggregates = aggregates

    def value(self, expression: Expression) -> Any:
        """The value of a result expression, None for NULL."""
        match expression:
            case Literal(value=Duration() as written):
                return length(written)
            case Literal(value=value):
                return value
            case Attribute(name=name):
                return self.keys[name]
            case Taken():
                return self.keys[expression]
            case Aggregate():
                return presented(self.aggregates[expression])
            case Log2(operand=Aggregate() as operand):
                return log2(self.aggregates[operand])
            case Log2(operand=operand):
                return log2(self.value(operand))
            case Unary(operator=operator, operand=operand):
                number = self.value(operand)
                if isinstance(number, datetime.datetime):
                    raise DataError(f"the negative of an instant: {number!r}")
                return -number if number is not None and operator == "-" else number
            case Binary(operator=operator, left=left, right=right):
                first, second = both(left, right, self.value)
                if is_time(first) or is_time(second):
                    return operation(operator, first, second)
                return _operation(operator, first, second)
        raise ValueError(f"no expression over results: {expression}")

    def passes(self, having: Condition | None) -> bool:
        """Whether HAVING is true, not unknown."""
        return having is None or truth_of(having, self.value) is True


def best(groups: Sequence[Group], top: Top | None) -> list[Group]:
    """The groups that TOP keeps, in its order; the given order decides where values are equal."""
    if top is None:
        return list(groups)
    known = [group for group in groups if group.value(top.by) is not None]
    unknown = [group for group in groups if group.value(top.by) is None]
    known.sort(key=lambda group: group.value(top.by), reverse=not top.ascending)  # stable in both directions
    return (known + unknown)[: top.count]


def _operation(operator: str, first: Exact | None, second: Exact | None) -> Any:
    """One operation, exact before it is rounded once; ``%`` is of integers."""
    if first is None or second is None or (operator in "/%" and second == 0):
        return None
    if any(isinstance(each, float) and math.isinf(each) for each in (first, second)):
        return _with_infinity(operator, float(first), float(second))
    one, two = Fraction(first), Fraction(second)
    match operator:
        case "+":
            exact = one + two
        case "-":
            exact = one - two
        case "*":
            exact = one * two
        case "/":
            return presented(one / two)
        case _:
            exact = abs(one) % abs(two) * (1 if one >= 0 else -1)
    if isinstance(first, int) and isinstance(second, int):
        return exact.numerator
    return presented(exact)


def _with_infinity(operator: str, first: float, second: float) -> float | None:
    match operator:
        case "+":
            found = first + second
        case "-":
            found = first - second
        case "*":
            found = first * second
        case _:
            found = first / second
    return None if math.isnan(found) else found
