"""The leading column of ORDER BY of rows that come one by one: by what times are compared, without the host."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.ticks import Lateness, seconds_of, ticks_of
from hamlet.patterns.automaton._live import days, microseconds
from hamlet.patterns.match.leading_time import LeadingTime
from hamlet.patterns.match.native import microseconds_of

_NUMBER = re.compile(r"\s*(\d+(\.\d+)?)\s*")
EXACT = Context(prec=76)  # of decimals, whatever the caller's own is
_BITS = 63  # of the kernel's times, which matter where WITHIN bounds matches


class NoTimeError(ValueError):
    """A time that the host has to compare."""


@dataclass(frozen=True, slots=True)
class Times:
    """How times of a column are compared: by integers, floats, or themselves.

    Attributes
    ----------
    type : pyarrow.DataType
    of : callable
        From a value of the column to what is compared; raises NoTimeError.
    earlier : callable
        That less the lateness.
    within : int or float, or None
        The longest time of a match.
    """

    type: pa.DataType
    of: Callable[[Any], Any]
    earlier: Callable[[Any], Any]
    within: int | float | None

    def scalar(self, moment: Any) -> pa.Scalar:
        """A time as a value of the column."""
        if pa.types.is_decimal(self.type):
            return pa.scalar(EXACT.scaleb(Decimal(moment), -self.type.scale), self.type)
        if pa.types.is_date(self.type):
            return pa.scalar(moment, pa.int32()).cast(self.type)
        if pa.types.is_timestamp(self.type) or pa.types.is_time(self.type):
            return pa.scalar(moment, pa.int64()).cast(self.type)
        return pa.scalar(moment, self.type)

    def of_scalar(self, value: pa.Scalar) -> Any:
        """What is compared of a value of the column."""
        return value.value if pa.types.is_timestamp(self.type) else self.of(value.as_py())


def times_of(leading: LeadingTime, lateness: Lateness, within: str | None) -> Times | None:
    """How times are compared, None where the host has to do it."""
    kind = leading.type
    of, bounded = _reader(kind, within is not None), None
    if of is None:
        return None
    if within is not None:
        bounded = _duration(kind, within)
        if bounded is None:
            return None
    behind = _behind(leading, lateness)
    if behind is None:
        return None
    return Times(kind, of, _taker(leading, behind), bounded)


def _reader(kind: pa.DataType, bounded: bool) -> Callable[[Any], Any] | None:
    """From a value to what is compared; None for types that only the host compares."""
    if pa.types.is_integer(kind):
        return None if bounded and pa.types.is_uint64(kind) else _same
    if pa.types.is_timestamp(kind):
        return ticks_in(kind)
    if pa.types.is_date32(kind):
        return days
    if pa.types.is_float64(kind) or (pa.types.is_float32(kind) and not bounded):
        return _finite if bounded else _number
    if pa.types.is_decimal(kind):
        return units_in(kind) if not bounded or kind.precision <= 18 else None
    if bounded:
        return None
    return of_day if kind == pa.time64("us") else _same if pa.types.is_string(kind) else None


def ticks_in(kind: pa.DataType) -> Callable[[Any], int]:
    """From a time, as Arrow gives it, to ticks of its type."""
    if kind.unit == "ns":
        return lambda value: microseconds(value) * 1000 if type(value) is datetime else value.value
    if kind.unit == "us":
        return microseconds
    step = 10**6 // UNITS_PER_SECOND[kind.unit]
    return lambda value: microseconds(value) // step


def units_in(kind: pa.DataType) -> Callable[[Decimal], int]:
    """From a decimal to how many units of the last digit of its type it has."""
    multiply, units = EXACT.multiply, Decimal(1).scaleb(kind.scale)
    return lambda value: int(multiply(value, units))


def of_day(value: time) -> int:
    """A time of day in microseconds."""
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**6 + value.microsecond


def _same(value: Any) -> Any:
    return value


def _number(value: float) -> float:
    if value != value:
        raise NoTimeError("NaN")
    return value


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise NoTimeError(str(value))
    return value


def _duration(kind: pa.DataType, text: str) -> int | float | None:
    """A duration in what times are compared by."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        span = microseconds_of(text)
        per_second = Fraction(1, 86_400) if pa.types.is_date(kind) else UNITS_PER_SECOND[kind.unit]
        return None if span is None else int(span * per_second // 10**6)
    number = _NUMBER.fullmatch(text)
    if number is None:
        return None
    if pa.types.is_floating(kind):
        return float(number[1])
    scale = 0 if pa.types.is_integer(kind) else kind.scale
    found = Fraction(number[1]) * 10**scale
    return int(found) if found.denominator == 1 and found < 1 << _BITS else None


def _behind(leading: LeadingTime, lateness: Lateness) -> int | float | None:
    """The lateness in what times are compared by, as `LeadingTime.earlier` has it; None where the host computes it."""
    kind, clock = leading.type, leading.clock
    if clock is not None:
        ticks = ticks_of(lateness, clock)
        return -(-ticks // 1000) * 1000 if clock.is_timestamp and kind.unit == "ns" else ticks
    seconds = seconds_of(lateness)
    amount: int | Fraction = int(lateness) if seconds is None else seconds  # type: ignore[arg-type]
    if not amount:
        return 0
    if pa.types.is_date(kind):
        return int(amount if seconds is None else -(-seconds // 86_400))
    if pa.types.is_float64(kind):
        return float(amount)
    found = Fraction(amount) * 10**kind.scale if pa.types.is_decimal(kind) else Fraction(1, 2)
    return int(found) if found.denominator == 1 else None


def _taker(leading: LeadingTime, behind: int | float) -> Callable[[Any], Any]:
    """What takes the lateness off a time; no time is less than the least of its type."""
    if not behind:
        return _same
    if pa.types.is_decimal(leading.type):
        least: int | float = 1 - 10**leading.type.precision
    elif leading.clock is None:
        return lambda time: time - behind
    else:
        least = leading.least
    return lambda time: max(time - behind, least)
