"""A specification that goes on: slices by the input that binds all streams, each with a monitor of its own.

What no input binds runs in one slice.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from hamlet.errors import DataError, UnsupportedError, WorkloadError
from hamlet.input.columns import Int64Array
from hamlet.input.csvform import CsvForm
from hamlet.input.files_protocol import Reader
from hamlet.input.headers import names_at
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import ticks_of
from hamlet.input.time_column import TIME, settled
from hamlet.input.widening import FRACTION
from hamlet.language.schema import Clock
from hamlet.parallel.routing.joint import hashes_of
from hamlet.runtime.options import takes
from hamlet.spark.continuous import Sink, TimedSink
from hamlet.spark.following import Reading, follow
from hamlet.spark.frames import Events
from hamlet.spark.options import Follow, FollowOptions, job_of
from hamlet.spark.sliced import TimedWork
from hamlet.streams import Monitor, Specification
from hamlet.streams.clock import Times, clock_of_type, nanoseconds_of, text_of
from hamlet.streams.input_check import column_errors
from hamlet.streams.monitor import time_column_of
from hamlet.streams.options import MonitorOptions, Options
from hamlet.streams.program import ir
from hamlet.streams.program.routing import routed_by
from hamlet.streams.sources import TYPES

_NONE = ("", "#")  # in CSV, that an event has no value


class SpecificationStreamOptions(MonitorOptions, FollowOptions, total=False):
    """The options of `submit_stream`, by name."""


@dataclass(frozen=True, kw_only=True)
class SpecificationStream(Follow):
    """How `submit_stream` runs.

    Attributes
    ----------
    run : Options
        Those of `hamlet.streams.Monitor`.
    """

    run: Options


@takes(SpecificationStream, Options, without=["run"])
def submit_stream(
    spec: Specification, source: str, output: str, checkpoint: str, **options: Unpack[SpecificationStreamOptions]
) -> dict[str, Any]:
    """Run a specification over the files of a folder and those that are added to it, until the job is stopped.

    Parameters
    ----------
    spec : Specification
    source : str
        A folder of Parquet, CSV or JSON lines files; the first of them must be there, since it says of what type times
        are.
    output : str
        A directory; rows are written as ``specification=<name>/part-<micro-batch>-<slice>.<format>``.
    checkpoint : str
        Where the job keeps its place and the monitors of its slices.
    slices : int, optional
        By default the session's parallelism; one where no input binds all streams, which the notes say.
    output_format : {'parquet', 'csv', 'json'}
    input_format, delimiter, bad_rows, missing_columns, master, trigger, available_now, files_per_batch, verbose, conf,
    log_level
        As for `hamlet.spark.submit_stream`.
    **options
        Of `hamlet.streams.Monitor`.

    Returns
    -------
    dict
        ``batches``, ``events``, ``late_events`` and ``rows`` of this run, and ``notes``.

    Raises
    ------
    HamletError
        A user's mistake.
    JobError
        If Spark cannot go on.
    """
    chosen = job_of(SpecificationStream, Options, options)
    form = CsvForm(chosen.delimiter, chosen.bad_rows, _NONE, chosen.missing_columns)
    time = settled(chosen.run.time_column or TIME, names_at([source], chosen.input_format, form))
    reading = Reading(SortKey(time), "", chosen.input_format, form)
    name = Path(spec.source).stem

    def columns(reader: Reader) -> pa.Schema:
        return _columns_of(spec, chosen.run, reader)

    def plan(events: Events, slices: int) -> tuple[TimedWork, Sink]:
        work = SpecificationWork(spec, events.schema, chosen.run, slices)
        return work, TimedSink(work, "specification", name, chosen.output_format, sparse=True)

    return follow(source, output, checkpoint, chosen, reading, columns, plan)


def _columns_of(spec: Specification, options: Options, reader: Reader) -> pa.Schema:
    """The columns that are read, in the types of the inputs."""
    time = time_column_of(list(reader.schema.names), options.time_column, reader.name)
    named = dict(zip(reader.schema.names, reader.schema.types, strict=True))
    text = {name for name, kind in named.items() if pa.types.is_null(kind)}
    mistakes = column_errors(spec.program, {name: None if name in text else kind for name, kind in named.items()})
    if mistakes:
        raise WorkloadError(mistakes)
    fields = [pa.field(time, named[time])]
    for each in spec.inputs:
        if each.name != time:
            scalar = isinstance(each.type, ir.Scalar)
            fields.append(pa.field(each.name, TYPES[each.type.family] if scalar else named[each.name]))  # type: ignore[union-attr]
    return pa.schema(fields)


def specification_frame(
    spec: Specification, events: Events, options: Options, slices: int | None
) -> tuple[SpecificationWork, DataFrame]:
    """A specification over a streaming DataFrame, and the columns that it reads."""
    count = slices or events.frame.sparkSession.sparkContext.defaultParallelism
    mistakes = column_errors(spec.program, dict(zip(events.schema.names, events.schema.types, strict=True)))
    if mistakes:
        raise WorkloadError(mistakes)
    work = SpecificationWork(spec, events.schema, options, count)
    return work, events.frame.select(*(events.columns[name][0] for name in work.events.names))


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
        names = dict.fromkeys([time, *(each.name for each in spec.inputs)])
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
        if self.slices == 1:
            return np.ones((events.num_rows, 1), np.bool_)
        column = events.column(self._column)
        known = column.is_valid().to_numpy(zero_copy_only=False)
        values = pc.drop_null(column)
        if pa.types.is_uint64(values.type):
            values = values.cast(pa.int64(), safe=False)
        found = np.zeros((events.num_rows, self.slices), np.bool_)
        found[np.nonzero(known)[0], (hashes_of(values, 0) % np.uint64(self.slices)).astype(np.int64)] = True
        return found

    def monitor(self, slice: int, first: int, saved: bytes | None) -> SpecificationSlice:  # noqa: ARG002
        """The monitor of a slice, which starts with the first event of all slices."""
        spec = _parsed(self._text)
        if saved is not None:
            return SpecificationSlice(self, Monitor.restore(spec, saved))
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


class SpecificationSlice:
    """A monitor over the events of a slice."""

    points = 0  # its rows number none

    def __init__(self, work: SpecificationWork, monitor: Monitor) -> None:
        self._work, self._monitor = work, monitor
        self.form = monitor.form

    @property
    def kept_bytes(self) -> int:
        """What the monitor keeps."""
        return self._monitor.held["bytes"]

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

    def save(self) -> bytes:
        """The monitor."""
        return self._monitor.save()


def _clock_of(kind: pa.DataType, unit: str, column: str) -> Clock:
    """What the times of a column are."""
    fraction = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    clock = clock_of_type(FRACTION if fraction else kind, unit, column)
    if clock is None:
        raise DataError(
            f"the time column {column!r} is of type {kind}; times are integers, seconds such as 0.5, or timestamps"
        )
    return clock
