"""A specification whose events travel: slices by the input that binds all streams, each with a monitor of its own.

What no input binds runs in one slice.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import DataError, UnsupportedError
from hamlet.findings import Seen, of_names
from hamlet.input.columns import Int64Array
from hamlet.input.ticks import ticks_of
from hamlet.input.widening import FRACTION
from hamlet.language.schema import Clock
from hamlet.parallel.routing.joint import hashes_of
from hamlet.spark.sliced import Submonitor, TimedWork
from hamlet.streams import Monitor, Specification
from hamlet.streams.clock import Times, clock_of_type, nanoseconds_of, text_of
from hamlet.streams.monitor import time_column_of
from hamlet.streams.options import Options
from hamlet.streams.program.routing import routed_by


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> Specification:
    """A worker process is used for many tasks."""
    return Specification.parse(text)


class SpecificationWork(TimedWork):
    """A specification over the events of slices; goes to every worker.

    Parameters
    ----------
    spec : Specification
    events : pyarrow.Schema
        Columns that fit the inputs.
    options : Options
    slices : int
    clock : Clock, optional
        What the times are, where they are ticks of it already.
    """

    def __init__(
        self, spec: Specification, events: pa.Schema, options: Options, slices: int, clock: Clock | None = None
    ) -> None:
        time = time_column_of(list(events.names), options.time_column, "the events")
        self._column: str | None = None
        try:
            self._column = routed_by(spec.program)
        except UnsupportedError as error:
            if slices > 1:
                reason = str(error).split("\n")[0].split(": ", 1)[-1]
                self.notes = (f"one slice does all the work: {reason}",)
            slices = 1
        self._text, self._time, self._unit = spec.program.text, time, options.time_unit
        self._start = options.start
        self._options: dict[str, Any] = {
            name: getattr(options, name) for name in ("values", "max_memory", "max_deadlines", "features")
        }
        self._in_ticks = clock is not None
        self.clock = clock or _clock_of(events.field(time).type, options.time_unit, time)
        lateness = ticks_of(options.lateness, self.clock)
        self._inputs = [each.name for each in spec.inputs]
        names = dict.fromkeys([time, *self._inputs])
        super().__init__(slices, pa.schema([events.field(name) for name in names]), lateness, options.late)
        self.rows = self.monitor(0, 0, None).form.schema(self.clock)

    def times(self, events: pa.RecordBatch) -> tuple[Int64Array, Int64Array | None]:
        """Ticks; events of one tick stay in order."""
        if self._in_ticks:
            return events.column(self._time).to_numpy(), None
        times = Times(self._time, self._unit)
        times.clock = self.clock
        return times.ticks(events.column(self._time)), None

    def needs(self, events: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Each event goes to the slice of its value; one without a value to none."""
        column = events.column(self._column)
        known = column.is_valid().to_numpy(zero_copy_only=False)
        values = pc.drop_null(column)
        if pa.types.is_uint64(values.type):
            values = values.cast(pa.int64(), safe=False)
        return self.by_hash(known, hashes_of(values, 0))

    def seen(self, events: pa.RecordBatch) -> Seen:
        """The inputs that have a value."""
        values = ((name, events.num_rows - events.column(name).null_count) for name in self._inputs)
        return Seen(events.num_rows, names={name: count for name, count in values if count})

    def findings(self, seen: Seen) -> list[str]:
        """Inputs that never came."""
        return of_names(self._inputs, seen)

    def monitor(self, slice: int, first: int, saved: bytes | None) -> SpecificationSlice:  # noqa: ARG002
        """The monitor of a slice, which starts with the first event of all slices."""
        spec = _parsed(self._text)
        if saved is not None:
            return SpecificationSlice(self, Monitor.restore(spec, saved, max_memory=self._options["max_memory"]))
        start = self._start if isinstance(self._start, str) else None
        monitor = Monitor(spec, start=start, **self._options)
        monitor.times = Times(self._time, self._unit)
        monitor.times.clock = self.clock
        monitor.time_column = self._time
        if start is None:
            monitor.start_at = (
                first * self.clock.tick if self._start is None else nanoseconds_of(self._start, self.clock, "start")
            )
        return SpecificationSlice(self, monitor)

    def time_text(self, tick: int) -> str:
        """A time for a message."""
        return text_of(self.clock, tick * self.clock.tick)


class SpecificationSlice(Submonitor):
    """A monitor over the events of a slice."""

    _monitor: Monitor

    def __init__(self, work: SpecificationWork, monitor: Monitor) -> None:
        super().__init__(monitor)
        self._work, self.form = work, monitor.form

    def push(self, ticks: Int64Array, events: pa.RecordBatch, steps: npt.NDArray[np.bool_]) -> list[pa.RecordBatch]:  # noqa: ARG002
        """Take events."""
        self._monitor.take_at(ticks, events)
        return self._taken()

    def advance(self, tick: int) -> list[pa.RecordBatch]:
        """Run the deadlines before a time."""
        self._monitor.pass_before(tick * self._work.clock.tick)
        return self._taken()

    def end(self, tick: int) -> list[pa.RecordBatch]:
        """Run the deadlines up to a time, and those at it."""
        self._monitor.pass_before(tick * self._work.clock.tick + 1)
        return self._taken()

    def _taken(self) -> list[pa.RecordBatch]:
        monitor = self._monitor
        found = monitor.evaluator.take()
        return [self.form.batch(found, self._work.clock, monitor.start_at or 0)] if found else []


def _clock_of(kind: pa.DataType, unit: str, column: str) -> Clock:
    """What the times of a column are."""
    fraction = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    clock = clock_of_type(FRACTION if fraction else kind, unit, column)
    if clock is None:
        raise DataError(
            f"the time column {column!r} is of type {kind}; times are integers, seconds such as 0.5, or timestamps"
        )
    return clock
