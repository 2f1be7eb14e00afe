"""Events as they are pushed: read, judged by their times, and held until their time step is over."""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import OptionError
from hamlet.input.columns import Int64Array
from hamlet.input.moments import NUMBER, moment
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import Lateness, refuse_far, refuse_outside, time_in_ticks
from hamlet.language.schema import Clock, Schema
from hamlet.runtime.intake import ColumnOptions, Intake
from hamlet.runtime.reorder_buffer import ReorderBuffer

Promise = datetime.date | np.datetime64 | int | float | Decimal


@dataclass(frozen=True, slots=True)
class Batch:
    """Events that have been read and judged, and have changed nothing yet.

    Attributes
    ----------
    parts : list of pyarrow.RecordBatch
    keys : list of (int64 array, int64 array or None)
        Times and orders of each part.
    schema : Schema
        What is known of all columns with them.
    fresh : bool array, or None
        Which events are in time; None where all are.
    promised : int or None
        What was promised before the first event, in ticks.
    """

    parts: list[pa.RecordBatch]
    keys: list[tuple[Int64Array, Int64Array | None]]
    schema: Schema
    fresh: npt.NDArray[np.bool_] | None
    promised: int | None


class Arrivals:
    """Reads what is pushed, and holds it.

    Parameters
    ----------
    options : ColumnOptions
    wanted : sequence of str
        The columns that are read.
    lateness, late
        As of `ReorderBuffer`.
    counted : bool
        Whether a limit counts the bytes that are held.
    wide_integers, durations
        As of `Intake`.

    Attributes
    ----------
    wanted : tuple of str
        The columns that are read.
    buffer : ReorderBuffer
    promise : Promise or None
        A time given before the first event, which says in what unit it is.
    """

    def __init__(
        self,
        options: ColumnOptions,
        wanted: tuple[str, ...],
        lateness: Lateness,
        late: str,
        *,
        counted: bool,
        wide_integers: bool = False,
        durations: Collection[str] = (),
    ) -> None:
        self.promise: Promise | None = None
        self._time_column = options.time_column
        self._key = SortKey(options.time_column, options.order_column)
        self.wanted = wanted
        self._intake = Intake(options, wanted, wide_integers, durations)
        self.buffer = ReorderBuffer(self._key, lateness, late, counted=counted)

    def going_on(self, before: Arrivals) -> Arrivals:
        """Take over what was promised to another one before its first event."""
        self.promise = before.promise
        self.buffer.load(before.buffer.place(), None)
        return self

    def read(self, events: Any, known: Schema | None) -> Batch | None:
        """Read and judge events; None where there are none. Nothing is changed.

        Raises
        ------
        DataError
        """
        parts, schema = self._intake.read(events, known, self.buffer.events)
        if not parts or schema is None:
            return None
        keys = [self._key.columns_of(part) for part in parts]
        times = keys[0][0] if len(keys) == 1 else np.concatenate([times for times, _ in keys])
        first, last = int(times.min()), int(times.max())
        refuse_far(self._time_column, first, last)
        refuse_outside(schema.clock, first, last)
        promised = None if self.promise is None else time_in_ticks(self.promise, schema.clock)
        return Batch(parts, keys, schema, self.buffer.judge(times, schema.clock, promised), promised)

    def take(self, batch: Batch) -> None:
        """Hold the events that are in time, and count the others."""
        buffer, clock, fresh = self.buffer, batch.schema.clock, batch.fresh
        if batch.promised is not None:
            buffer.promise(batch.promised)
            self.promise = None
        if fresh is None:
            for part, (times, orders) in zip(batch.parts, batch.keys, strict=True):
                buffer.take(part, times, orders, clock)
            return
        buffer.leave_out(int(len(fresh) - fresh.sum()))
        start = 0
        for part in batch.parts:
            kept = part.filter(pa.array(fresh[start : start + part.num_rows]))
            start += part.num_rows
            buffer.take(kept, *self._key.columns_of(kept), clock)

    def hold(self, events: Any, known: Schema) -> None:
        """Hold events that are judged and counted already."""
        for part in self._intake.read(events, known, self.buffer.events)[0]:
            self.buffer.hold(part)

    def advance(self, time: Any, clock: Clock | None) -> bool:
        """No event before a time will come; whether that is known in ticks, as it is once an event has come.

        Parameters
        ----------
        time : Any
            As the user gives it.
        clock : Clock or None
            None before the first event.

        Raises
        ------
        OptionError
            If it is no time.
        """
        if clock is None:
            self._remember(time)
            return False
        self.buffer.promise(time_in_ticks(time, clock))
        return True

    def _remember(self, time: Any) -> None:
        """Keep the latest of the times that were given before the first event."""
        given = _promise_of(time)
        if given is None:
            raise OptionError(f"cannot read {time!r} as a time of column '{self._time_column}'")
        if isinstance(given, int):
            time_in_ticks(given, Clock(self._time_column, "s", pa.int64()))  # refuses what is beyond all time
        if self.promise is None or _seconds(given) >= _seconds(self.promise):
            self.promise = given


def _promise_of(time: Any) -> Promise | None:
    if isinstance(time, (datetime.date, np.datetime64)):
        return None if isinstance(time, np.datetime64) and np.isnat(time) else time
    if isinstance(time, (int, np.integer)):
        return None if isinstance(time, bool) else int(time)
    if isinstance(time, (float, np.floating)):
        return float(time) if np.isfinite(time) else None
    if isinstance(time, Decimal) or (isinstance(time, str) and NUMBER.fullmatch(time)):
        number = Decimal(time)
        return number if number.is_finite() else None
    found = moment(time) if isinstance(time, str) else time
    if isinstance(found, pa.Scalar) and pa.types.is_timestamp(found.type) and found.is_valid:
        if found.type.tz is not None:
            return found.cast(pa.timestamp("us", found.type.tz)).as_py()  # type: ignore[no-any-return]
        return np.datetime64(found.value, found.type.unit)
    return None


def _seconds(time: Promise) -> Fraction:
    if isinstance(time, (int, float, Decimal)):
        return Fraction(time)
    if isinstance(time, np.datetime64):
        return Fraction(int(time.astype("datetime64[us]").astype(np.int64)), 10**6)
    scalar = pa.scalar(time)
    return Fraction(int(scalar.cast(pa.timestamp("us", getattr(scalar.type, "tz", None))).value), 10**6)
