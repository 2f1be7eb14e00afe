"""Times of a specification's events: as they come in, in ticks, and as rows give them back.

A tick is what one step of an integer time column means (`--time-unit`), a timestamp's own unit, or, of fractional
seconds, a nanosecond. Deadlines may fall between ticks: rows of integer times then carry a float.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.errors import DataError, OptionError
from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.buffers import to_numpy
from hamlet.input.columns import Int64Array
from hamlet.input.missing import named_by
from hamlet.input.moments import FORMS, NUMBER, NoTimeError, clock_of, in_seconds, joined
from hamlet.input.ticks import in_ticks
from hamlet.input.widening import FRACTION
from hamlet.language.schema import MOST_TICKS, Clock, timestamp

NANOSECONDS = 1_000_000_000


def integer_clock(unit: str, column: str = "time") -> Clock:
    """The clock of whole numbers."""
    return Clock(column, unit, pa.int64())


def clock_of_type(kind: pa.DataType, unit: str, column: str) -> Clock | None:
    """The clock of times of a type (`hamlet.input.moments`); None where there is none."""
    if pa.types.is_timestamp(kind):
        return Clock(column, kind.unit, kind)
    if kind == FRACTION:
        return Clock(column, "ns", FRACTION)
    return integer_clock(unit, column) if pa.types.is_integer(kind) else None


def presenter(clock: Clock) -> Callable[[int], Any]:
    """What gives times, in nanoseconds since the clock's zero, in the type they came in; a float between integers."""
    tick, zone = clock.tick, clock.type.tz if clock.is_timestamp else None

    def number(nanoseconds: int) -> Any:
        whole, rest = divmod(nanoseconds, tick)
        return nanoseconds / tick if rest else whole

    def moment(nanoseconds: int) -> Any:
        if nanoseconds % 1000 and zone is None:
            return np.datetime64(nanoseconds, "ns")
        return timestamp(nanoseconds // 1000, "us", zone)

    if clock.is_fraction:
        return clock.present
    return moment if clock.is_timestamp else number


def present(clock: Clock, nanoseconds: int) -> Any:
    """A time as `presenter` gives it."""
    return presenter(clock)(nanoseconds)


def text_of(clock: Clock, nanoseconds: int) -> str:
    """A time for a message."""
    if clock.is_timestamp:
        return str(present(clock, nanoseconds))
    text = format(Decimal(nanoseconds) / Decimal(clock.tick * clock.ticks_per_unit), "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def nanoseconds_of(time: Any, clock: Clock, name: str = "the time") -> int:
    """A time that a user gives, in nanoseconds since the clock's zero; a number may lie between two ticks.

    Raises
    ------
    OptionError
        If it is none of this clock.
    """
    if isinstance(time, str) and not clock.is_timestamp and NUMBER.fullmatch(time):
        time = Decimal(time.strip())
    number = isinstance(time, (float, Decimal, np.floating)) and not clock.is_timestamp
    if not number or not np.isfinite(float(time)):
        return in_ticks(time, clock, name) * clock.tick
    found = Fraction(str(time)) * clock.tick * clock.ticks_per_unit
    if abs(found) > MOST_TICKS * clock.tick:
        raise OptionError(f"cannot read {time!r} as a time of column '{clock.column}' ({clock.kind})")
    return found.numerator // found.denominator


class Times:
    """Turns a time column into ticks, batch by batch; the first values say of what kind it is.

    Parameters
    ----------
    column : str
    unit : str
        Of integers.
    source : str
        For messages.

    Attributes
    ----------
    clock : Clock or None
        None before the first value.
    column : str
    rows : int
        Values so far.
    """

    def __init__(self, column: str, unit: str, source: str = "the events") -> None:
        if unit not in UNITS_PER_SECOND:
            raise OptionError(f"time unit {unit!r} is unknown; it must be s, ms, us or ns")
        self.clock: Clock | None = None
        self.column = column
        self._unit = unit
        self._source = source
        self.rows = 0

    def _clock_of(self, kind: pa.DataType) -> Clock:
        found = clock_of_type(kind, self._unit, self.column)
        if found is None:
            raise DataError(
                f"{self._source}: the time column {self.column!r} holds {kind}; it must hold {FORMS} "
                f"({named_by('--time-column')} names the time column)"
            )
        return found

    def read(self, column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
        """Times of any form as integers, timestamps or seconds."""
        whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        try:
            return clock_of(whole)
        except NoTimeError as error:
            raise DataError(
                f"{self._source}: the time column {self.column!r} holds {error} in row {self.rows + error.row + 1} "
                f"(the first row is 1), {error.why}"
            ).about(row=self.rows + error.row + 1, column=self.column) from None

    def ticks(self, column: Any) -> Int64Array:
        """The times of a column, int64 (rows,).

        Raises
        ------
        DataError
            At NULL, and at what is no time.
        """
        if isinstance(column, pa.ChunkedArray):
            column = joined(column)
        values = self.read(column)
        if pa.types.is_date(values.type):
            values = values.cast(pa.timestamp("s"))
        if values.null_count:
            row = self.rows + int(np.argmax(values.is_null().to_numpy())) + 1
            raise DataError(
                f"{self._source}: the time column {self.column!r} is NULL in row {row} (the first row is 1)"
            ).about(row=row, column=self.column)
        try:
            found = self._ticks(values)
        except NoTimeError as error:
            raise DataError(
                f"{self._source}: the time column {self.column!r} holds {error} in row {self.rows + error.row + 1} "
                f"(the first row is 1), {error.why}"
            ).about(row=self.rows + error.row + 1, column=self.column) from None
        except (pa.ArrowException, ValueError) as error:
            raise DataError(
                f"{self._source}: the time column {self.column!r} holds a value that is not a time: {error}"
            ) from error
        self.rows += len(values)
        if len(found) and max(abs(int(found.min())), abs(int(found.max()))) > MOST_TICKS:
            raise DataError(
                f"{self._source}: the time column {self.column!r} holds a time beyond 2^61 ticks\n"
                "hint: is it in a coarser unit than the data (nanoseconds read as seconds)?"
            )
        return found

    def _ticks(self, values: pa.ChunkedArray) -> Int64Array:
        kind, known = values.type, self.clock
        if pa.types.is_null(kind):
            return np.zeros(0, np.int64)
        if known is None:
            self.clock = known = self._clock_of(kind)
        if pa.types.is_timestamp(kind):
            if not known.is_timestamp or (known.type.tz is None) != (kind.tz is None):
                raise ValueError(f"{kind} after times of kind {known.kind}")
            return _plain(values.cast(known.type))
        if known.is_timestamp:
            raise ValueError(f"{'fractional seconds' if kind == FRACTION else kind} after timestamps")
        if known.is_fraction:
            return _plain(values if kind == FRACTION else in_seconds(values))
        if kind != FRACTION:
            return _plain(values)
        if known.unit == "s":  # seconds all along, now with fractions
            self.clock = self._clock_of(kind)
            return _plain(values)
        raise ValueError(f"fractional seconds after times of kind {known.kind}")


def _plain(column: pa.ChunkedArray) -> Int64Array:
    found: Int64Array = to_numpy(column.cast(pa.int64()))
    return found
