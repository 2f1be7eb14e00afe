"""Times of a specification's events: as they come in, in ticks, and as rows give them back.

A tick is what one step of an integer time column means (`--time-unit`), a timestamp's own unit, or, of fractional
seconds, a nanosecond. Deadlines may fall between ticks: rows of integer times then carry a float.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import DataError, OptionError
from hamlet.input.columns import Int64Array
from hamlet.input.ticks import MOST_TICKS
from hamlet.language.schema import UNITS_PER_SECOND, Clock, timestamp

NANOSECONDS = 1_000_000_000
_FRACTION = pa.decimal128(38, 9)
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_PLAIN = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")


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
        if kind in ("fraction", "timestamp") or not len(texts):
            return
        sample = texts if isinstance(texts, pa.Array) else texts.combine_chunks()
        sample = pc.drop_null(sample)
        if not len(sample):
            return
        first = sample[0].as_py()
        if _WHOLE.fullmatch(first):
            odd = pc.invert(pc.match_substring_regex(sample, r"^\s*[+-]?\d+\s*$"))
            fractions = pc.any(odd).as_py()
            self.clock = StreamClock(
                self.column, "ns" if fractions else self._unit, "fraction" if fractions else "integer"
            )
        elif _PLAIN.fullmatch(first):
            self.clock = StreamClock(self.column, "ns", "fraction")
        else:
            self._timestamps(sample)

    def _timestamps(self, texts: Any) -> None:
        for unit in ("us", "ns"):
            for zone in (None, "UTC"):
                try:
                    texts.cast(pa.timestamp(unit, zone))
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    continue
                self.clock = StreamClock(self.column, unit, "timestamp", zone)
                return
        raise DataError(
            f"{self._source}: the time column {self.column!r} holds {texts[0].as_py()!r}; times are integers, seconds "
            "such as 0.5, or ISO 8601 timestamps (--time-column names the time column)"
        )

    def ticks(self, column: Any) -> Int64Array:
        """The times of a column, int64 (rows,).

        Raises
        ------
        DataError
            At NULL, and at what is no time.
        """
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        if column.null_count:
            row = self.rows + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) + 1
            raise DataError(
                f"{self._source}: the time column {self.column!r} is NULL in row {row} (the first row is 1)"
            )
        self.rows += len(column)
        try:
            found = self._ticks(column)
        except (pa.ArrowException, InvalidOperation, ValueError, OverflowError) as error:
            raise DataError(
                f"{self._source}: the time column {self.column!r} holds a value that is not a time: {error}"
            ) from error
        if len(found) and max(abs(int(found.min())), abs(int(found.max()))) > MOST_TICKS:
            raise DataError(
                f"{self._source}: the time column {self.column!r} holds a time beyond 2^61 ticks\n"
                "hint: is it in a coarser unit than the data (nanoseconds read as seconds)?"
            )
        return found

    def _ticks(self, column: pa.Array) -> Int64Array:
        kind = column.type
        if pa.types.is_string(kind) or pa.types.is_large_string(kind):
            if self.clock is None:
                self.survey(column)
            clock = self.clock
            if clock is None:
                return np.zeros(0, np.int64)
            if clock.kind == "fraction":
                return _nanoseconds(column)
            wanted = pa.int64() if clock.kind == "integer" else pa.timestamp(clock.unit, clock.zone)
            return _plain(pc.utf8_trim_whitespace(column).cast(wanted).cast(pa.int64()))
        if pa.types.is_date(kind):
            column = column.cast(pa.timestamp("s"))
            kind = column.type
        known = self.clock
        if pa.types.is_timestamp(kind):
            if known is None:
                self.clock = known = StreamClock(self.column, kind.unit, "timestamp", kind.tz)
            if known.kind != "timestamp" or (known.zone is None) != (kind.tz is None):
                raise ValueError(f"{kind} after times of kind {known.kind}")
            return _plain(column.cast(pa.timestamp(known.unit, known.zone)).cast(pa.int64()))
        if pa.types.is_integer(kind):
            if known is None:
                self.clock = known = StreamClock(self.column, self._unit, "integer")
            ticks = _plain(column.cast(pa.int64()))
            if known.kind == "fraction":
                if len(ticks) and max(abs(int(ticks.min())), abs(int(ticks.max()))) > MOST_TICKS // NANOSECONDS:
                    raise ValueError("a time beyond 2^61 nanoseconds")
                return ticks * NANOSECONDS
            if known.kind != "integer":
                raise ValueError(f"{kind} after timestamps")
            return ticks
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            if known is None:
                self.clock = known = StreamClock(self.column, "ns", "fraction")
            if known.kind == "integer" and known.unit == "s":  # seconds all along, now with fractions
                self.clock = known = StreamClock(self.column, "ns", "fraction")
            if known.kind != "fraction":
                raise ValueError(f"{kind} after times of kind {known.kind}")
            if pa.types.is_decimal(kind):
                return _nanoseconds(column.cast(pa.string()))
            return _of_floats(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
        raise ValueError(f"values of type {kind}; times are integers, fractional seconds or timestamps")


def _plain(column: pa.Array) -> Int64Array:
    found: Int64Array = column.to_numpy(zero_copy_only=False)
    return found


def _of_floats(seconds: Any) -> Int64Array:
    """Nanoseconds of float seconds: of their shortest decimals, rounded down."""
    if not np.isfinite(seconds).all():
        raise ValueError("a time that is not finite")
    if len(seconds) and np.abs(seconds).max() > MOST_TICKS / NANOSECONDS:
        raise ValueError("a time beyond 2^61 nanoseconds")
    scaled = seconds * 1e9
    if not len(scaled) or np.abs(scaled).max() < 2.0**52:
        rounded: Int64Array = np.rint(scaled).astype(np.int64)
        return rounded
    found = [
        int((Decimal(repr(float(each))) * NANOSECONDS).to_integral_value(rounding="ROUND_FLOOR")) for each in seconds
    ]
    return np.array(found, np.int64)


def _nanoseconds(texts: pa.Array) -> Int64Array:
    """Nanoseconds of decimal texts of seconds, rounded down to whole ones."""
    texts = pc.utf8_trim_whitespace(texts)
    try:
        decimals = texts.cast(_FRACTION)
        words = np.frombuffer(decimals.buffers()[1], np.int64)[
            2 * decimals.offset : 2 * (decimals.offset + len(decimals))
        ]
        low, high = words[0::2], words[1::2]
        if ((low >> 63) == high).all():
            return low.copy()
    except pa.ArrowException:
        pass
    found = [int((Decimal(each) * NANOSECONDS).to_integral_value(rounding="ROUND_FLOOR")) for each in texts.to_pylist()]
    return np.array(found, np.int64)
