"""Times of a specification's events: as they come in, in ticks, and as rows give them back.

A tick is what one step of an integer time column means (`--time-unit`), a timestamp's own unit, or, of fractional
seconds, a nanosecond. Deadlines may fall between ticks: rows of integer times then carry a float.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.errors import DataError, OptionError
from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.buffers import to_numpy
from hamlet.input.columns import Int64Array
from hamlet.input.missing import named_by
from hamlet.input.moments import FORMS, NoTimeError, clock_of, in_seconds, joined
from hamlet.input.widening import FRACTION
from hamlet.language.schema import MOST_TICKS, Clock, timestamp

NANOSECONDS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StreamClock:
    """What the times of a stream are.

    Attributes
    ----------
    column : str
    unit : str
        ``s``, ``ms``, ``us`` or ``ns``: a tick.
    kind : {'integer', 'fraction', 'timestamp'}
    zone : str or None
        Of timestamps.
    """

    column: str
    unit: str
    kind: str
    zone: str | None = None

    @property
    def tick(self) -> int:
        """Nanoseconds of a tick."""
        return NANOSECONDS // UNITS_PER_SECOND[self.unit]

    @property
    def engine_clock(self) -> Clock:
        """The clock in the form that the reorder buffer takes."""
        if self.kind == "timestamp":
            return Clock(self.column, self.unit, pa.timestamp(self.unit, self.zone))
        return Clock(self.column, self.unit, pa.int64())

    def present(self, nanoseconds: int) -> Any:
        """A time, in nanoseconds since its zero, in the type that it came in."""
        if self.kind == "fraction":
            return nanoseconds / NANOSECONDS
        if self.kind == "integer":
            whole, rest = divmod(nanoseconds, self.tick)
            return nanoseconds / self.tick if rest else whole
        if nanoseconds % 1000 and self.zone is None:
            return np.datetime64(nanoseconds, "ns")
        return timestamp(nanoseconds // 1000, "us", self.zone)

    def text(self, nanoseconds: int) -> str:
        """A time for a message."""
        if self.kind == "timestamp":
            return str(self.present(nanoseconds))
        tick = NANOSECONDS if self.kind == "fraction" else self.tick
        text = format(Decimal(nanoseconds) / Decimal(tick), "f")
        return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"

    def nanoseconds_of(self, time: Any) -> int:
        """A time that a user gives, in nanoseconds since its zero.

        Raises
        ------
        OptionError
            If it is none of this clock.
        """
        found: Fraction | None = None
        if isinstance(time, str) and self.kind != "timestamp":
            try:
                time = Decimal(time.strip())
            except InvalidOperation:
                raise OptionError(f"cannot read {time!r} as a time of column '{self.column}'") from None
        elif isinstance(time, str):
            try:
                time = datetime.datetime.fromisoformat(time.strip())
            except ValueError:
                raise OptionError(f"cannot read {time!r} as a time; write 2024-03-05T12:00:00") from None
        number = isinstance(time, (int, float, Decimal, np.integer, np.floating)) and not isinstance(time, bool)
        if number and np.isfinite(float(time)):
            exact = Fraction(str(time)) if isinstance(time, (float, np.number)) else Fraction(time)
            found = exact * (NANOSECONDS if self.kind == "fraction" else self.tick)
        elif self.kind == "timestamp" and isinstance(time, (datetime.datetime, np.datetime64)):
            scalar = pa.scalar(time)
            if (scalar.type.tz is None) == (self.zone is None):
                found = Fraction(scalar.value * (NANOSECONDS // UNITS_PER_SECOND[scalar.type.unit]))
        if found is None or abs(found) > MOST_TICKS * self.tick:
            raise OptionError(f"cannot read {time!r} as a time of column '{self.column}' ({self.kind})")
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
    clock : StreamClock or None
        None before the first value.
    column : str
    rows : int
        Values so far.
    """

    def __init__(self, column: str, unit: str, source: str = "the events") -> None:
        if unit not in UNITS_PER_SECOND:
            raise OptionError(f"time unit {unit!r} is unknown; it must be s, ms, us or ns")
        self.clock: StreamClock | None = None
        self.column = column
        self._unit = unit
        self._source = source
        self.rows = 0

    def survey(self, texts: Any) -> None:
        """See of what kind the texts of a column are; fractions anywhere make all of it fractions."""
        kind = self.clock.kind if self.clock is not None else None
        texts = texts.drop_null()
        if kind in ("fraction", "timestamp") or not len(texts):
            return
        found = self._read(texts)
        if kind is None or found.type == FRACTION:
            self.clock = self._clock_of(found.type)

    def _clock_of(self, kind: pa.DataType) -> StreamClock:
        if kind == FRACTION:
            return StreamClock(self.column, "ns", "fraction")
        if pa.types.is_timestamp(kind):
            return StreamClock(self.column, kind.unit, "timestamp", kind.tz)
        if pa.types.is_integer(kind):
            return StreamClock(self.column, self._unit, "integer")
        raise DataError(
            f"{self._source}: the time column {self.column!r} holds {kind}; it must hold {FORMS} "
            f"({named_by('--time-column')} names the time column)"
        )

    def _read(self, column: pa.Array) -> pa.ChunkedArray:
        """Times of any form as integers, timestamps or seconds."""
        whole = pa.chunked_array([column])
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
        values = self._read(column)
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
            if known.kind != "timestamp" or (known.zone is None) != (kind.tz is None):
                raise ValueError(f"{kind} after times of kind {known.kind}")
            return _plain(values.cast(pa.timestamp(known.unit, known.zone)))
        if known.kind == "timestamp":
            raise ValueError(f"{'fractional seconds' if kind == FRACTION else kind} after timestamps")
        if known.kind == "fraction":
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
