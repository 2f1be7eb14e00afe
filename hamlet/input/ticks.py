"""Times and lengths of time in ticks of the time column: as users give them, and as events have them.

Source: docs/numbers.md ("Time and order").
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.errors import DataError, OptionError
from hamlet.frontend.units import SECONDS
from hamlet.input.columns import Int64Array, integers
from hamlet.input.moments import NUMBER, NoTimeError, moment, nanoseconds_of
from hamlet.language.moments import FORMS
from hamlet.language.moments import seconds_of as moment_seconds
from hamlet.language.schema import MOST_TICKS, Clock
from hamlet.language.zones import BEYOND, FIRST

Lateness = int | float | str | datetime.timedelta

_DURATION = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|seconds?|min|minutes?|h|hours?|d|days?|w|weeks?)\s*", re.IGNORECASE
)


def seconds_of(lateness: Lateness) -> Fraction | None:
    """A duration in seconds, or None for a number of ticks.

    Raises
    ------
    OptionError
        If it is neither.
    """
    if isinstance(lateness, str) and (match := _DURATION.fullmatch(lateness)):
        unit = next(name for name in ("ms", "min", "s", "h", "d", "w") if match[2].lower().startswith(name))
        return Fraction(match[1]) * SECONDS[unit]
    if isinstance(lateness, datetime.timedelta) and lateness >= datetime.timedelta(0):
        return Fraction(lateness // datetime.timedelta(microseconds=1), 10**6)
    is_number = isinstance(lateness, (int, float, np.integer)) and not isinstance(lateness, bool)
    if is_number and 0 <= lateness < np.inf and lateness == int(lateness):  # type: ignore[arg-type, operator]
        return None
    raise OptionError(f"lateness is {lateness!r}; it must be a number of ticks >= 0 or a duration such as '5 s'")


def ticks_of(lateness: Lateness, clock: Clock) -> int:
    """The lateness in ticks of the time column, rounded up; a number is of its units."""
    seconds = seconds_of(lateness)
    ticks = Fraction(int(lateness) * clock.ticks_per_unit) if seconds is None else seconds * clock.ticks_per_second  # type: ignore[arg-type]
    return min(-(-ticks.numerator // ticks.denominator), 2 * MOST_TICKS)


def time_in_ticks(time: Any, clock: Clock) -> int:
    """A time as the user gives it, in ticks.

    Raises
    ------
    OptionError
        If it is no time of the time column, or beyond 2^61 ticks.
    """
    ticks = None
    if isinstance(time, (int, np.integer)) and not isinstance(time, bool):
        ticks = int(time) * clock.ticks_per_unit
    elif clock.is_fraction:
        if isinstance(time, (float, np.floating, Decimal)) or (isinstance(time, str) and NUMBER.fullmatch(time)):
            try:
                ticks = nanoseconds_of(time)
            except NoTimeError as error:
                raise OptionError(f"the time {error}, {error.why}") from None
    elif clock.is_timestamp:
        try:
            if isinstance(time, str):
                time = moment(time)
            elif isinstance(time, float):
                time = pa.scalar(round(time * 1_000_000)).cast(pa.timestamp("us"))
            elif isinstance(time, np.datetime64):
                time = time.astype(f"datetime64[{clock.unit}]")
            given = time if isinstance(time, pa.Scalar) else pa.scalar(time)
            if not pa.types.is_timestamp(given.type) or (given.type.tz is None) == (clock.type.tz is None):
                ticks = int(given.cast(clock.type).value)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
    if ticks is None:
        raise OptionError(f"cannot read {time!r} as a time of column '{clock.column}' ({clock.kind})")
    if abs(ticks) > MOST_TICKS:
        raise OptionError(f"cannot advance to {time!r}: times are at most 2^61 ticks; close() ends the stream")
    return ticks


def reader_of(clock: Clock) -> Callable[[Any], int | None]:
    """What gives the ticks of an event's time at once, and None for one that takes a closer look.

    That is one that is no time of the column as Python mostly has it (an int, a float of seconds, a datetime that is
    naive or of UTC, its ISO text), one that ticks cannot hold, or one without a place in the zone of windows.
    """
    least, most = _bounds_of(clock)
    read: Callable[[Any], int | None] = _fraction
    if clock.is_timestamp:
        if clock.type.tz not in (None, "UTC") or clock.unit not in _PER_MICROSECOND:
            return _never
        if clock.zone and not clock.type.tz:
            return _never
        read = _timestamps_of(clock)
    elif not clock.is_fraction:

        def whole(time: Any) -> int | None:
            return time if type(time) is int and least <= time <= most else None

        return whole

    def ticks(time: Any) -> int | None:
        found = read(time)
        return found if found is not None and least <= found <= most else None

    return ticks


def _timestamps_of(clock: Clock) -> Callable[[Any], int | None]:
    zone, more = (None if clock.type.tz is None else datetime.UTC), _PER_MICROSECOND[clock.unit]
    epoch = datetime.datetime(1970, 1, 1, tzinfo=zone)

    def ticks(time: Any) -> int | None:
        if type(time) is str:
            if not _ISO.fullmatch(time):
                return None
            try:
                time = datetime.datetime.fromisoformat(time)
            except ValueError:
                return None
        if type(time) is not datetime.datetime or time.tzinfo is not zone:
            return None
        return (time - epoch) // _MICROSECOND * more

    return ticks


_ISO = re.compile(r"[12]\d{3}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{3}|\.\d{6})?(?:Z|\+00:00)?")
_MICROSECOND = datetime.timedelta(microseconds=1)
_PER_MICROSECOND = {"us": 1, "ns": 1000}


def _never(_: Any) -> None:
    return None


def _fraction(time: Any) -> int | None:
    if type(time) is not float or not -MOST_SECONDS < time < MOST_SECONDS:
        return None
    number = Decimal(repr(time)).scaleb(9)
    ticks = int(number)
    return ticks if ticks == number else None


MOST_SECONDS = MOST_TICKS // 10**9


def in_ticks(time: Any, clock: Clock, name: str) -> int:
    """A time as the user gives it, in ticks: a time of the column, or text; between two ticks it is the second.

    Text without a zone is the time of the clock by which days begin, if there is one, else that of the column's zone.

    Raises
    ------
    OptionError
        If it is no such time.
    """
    if isinstance(time, str):
        if not clock.is_timestamp and NUMBER.fullmatch(time):
            return time_in_ticks(time if clock.is_fraction else _next_whole(Decimal(time.strip())), clock)
        zone = clock.zone or (clock.type.tz if clock.is_timestamp else None)
        seconds = moment_seconds(time, zone)
        if seconds is None:
            what = "a whole number of ticks, or a time since 1970" if not clock.is_timestamp else "a time"
            raise OptionError(f"{name} is {time!r}; it must be {what} such as {FORMS}")
        return -int(-seconds * clock.ticks_per_second // 1)  # the first tick that is not before it
    if isinstance(time, (float, np.floating, Decimal)) and pa.types.is_integer(clock.type) and np.isfinite(float(time)):
        return time_in_ticks(_next_whole(time), clock)
    return time_in_ticks(time, clock)


def _next_whole(time: Any) -> int:
    """The first tick that is not before a number of ticks."""
    return -int(-Fraction(str(time)) // 1)


def refuse_far(column: str, first: int, last: int) -> None:
    """Raise DataError unless times from `first` to `last` are so few ticks that no sum of two overflows."""
    if first < -MOST_TICKS or last > MOST_TICKS:
        raise DataError(
            f"the time column '{column}' holds a time beyond 2^61 ticks\n"
            "hint: is it in a coarser unit than the data (nanoseconds read as seconds)?"
        )


def refuse_outside(clock: Clock, first: int, last: int) -> None:
    """Raise DataError unless times from `first` to `last` have a place in the time zone of windows, if there is one."""
    if clock.zone is None:
        return
    least, most = _bounds_of(clock)
    if first < least or last > most:
        raise DataError(
            f"with the time zone {clock.zone}, times must be from 1970 on and before 2200\n"
            f"hint: integers in '{clock.column}' count from 1970 in the unit of --time-unit; leave --timezone out "
            "where they do not"
        )


def _bounds_of(clock: Clock) -> tuple[int, int]:
    """The first and the last time that an event may have, in ticks."""
    if clock.zone is None:
        return -MOST_TICKS, MOST_TICKS
    return FIRST * clock.ticks_per_second, min(BEYOND * clock.ticks_per_second - 1, MOST_TICKS)


def times_of(events: pa.Table | pa.RecordBatch, column: str) -> Int64Array:
    """The times of events, int64 (rows,).

    Raises
    ------
    DataError
        At a time beyond 2^61 ticks.
    """
    chunk = events.column(column)
    if isinstance(chunk, pa.ChunkedArray):
        chunk = chunk.chunk(0) if chunk.num_chunks == 1 else chunk.combine_chunks()
    times = integers(chunk, column)[0]
    if len(times):
        refuse_far(column, int(times.min()), int(times.max()))
    return times
