"""The aggregates of the oracle, in exact arithmetic until the last step."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hamlet.language.query import DISTINCT, Aggregate
from hamlet.oracle.times import is_time, mean


@dataclass(frozen=True)
class Occurrences:
    """What one aggregate looks at.

    Attributes
    ----------
    trends : int
        Number of trends (for AND, of pairs of trends).
    events : int
        How often an event is bound to the aggregate's variable, over all trends.
    values : sequence
        The attribute's values at these occurrences, without the NULLs.
    """

    trends: int
    events: int
    values: Sequence[Any]


def aggregate(asked: Aggregate, seen: Occurrences) -> Any:
    """The exact value of an aggregate.

    Returns
    -------
    int, Fraction, float or None
        Counts and SUM over INT: int. SUM over DOUBLE and every AVG: Fraction (a float where a value is infinite).
        MIN and MAX: one of the values. None is NULL.
    """
    if asked.function == "COUNT":
        return seen.trends if asked.variable is None else seen.events
    if asked.function in DISTINCT:
        return len({(isinstance(value, bool), value) for value in seen.values})
    if not seen.values:
        return None
    if asked.function == "MIN":
        return min(seen.values)
    if asked.function == "MAX":
        return max(seen.values)
    if is_time(seen.values[0]):
        if asked.function == "AVG":
            return mean(seen.values)
        return sum(seen.values, datetime.timedelta())
    infinite = [value for value in seen.values if isinstance(value, float) and math.isinf(value)]
    if infinite:
        return sum(infinite)
    total = sum(Fraction(value) for value in seen.values)
    if asked.function == "AVG":
        return total / len(seen.values)
    return total if any(isinstance(value, float) for value in seen.values) else total.numerator


def presented(value: Any) -> Any:
    """A value as it stands in a result row: a Fraction is the nearest double, or a Decimal beyond the double range."""
    if not isinstance(value, Fraction):
        return value
    try:
        return float(value)
    except OverflowError:
        with decimal.localcontext() as context:
            context.prec, context.Emax = 30, decimal.MAX_EMAX
            return Decimal(value.numerator) / Decimal(value.denominator)


def log2(value: Any) -> float | None:
    """The binary logarithm of an exact value, None for NULL and for values <= 0."""
    if value is None or value <= 0:
        return None
    if isinstance(value, float):
        return math.log2(value)
    exact = Fraction(value)
    try:
        return math.log2(float(exact))
    except (OverflowError, ValueError):  # beyond the double range, above or below
        return math.log2(exact.numerator) - math.log2(exact.denominator)
