"""A stream specification as a Spark job: events are routed by the input that binds all streams, rows come in order.

Tasks read the files, a shuffle brings the events of a value together, and each slice runs a monitor over its events.
Deadlines that only events of other slices pass are run up to the time of the last event of all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypedDict, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, expr

from hamlet.errors import DataError
from hamlet.input.csvform import CsvForm
from hamlet.input.files import event_files, matching
from hamlet.input.missing import MissingColumns
from hamlet.output.columnar import file_writer
from hamlet.output.files import check_format
from hamlet.output.place import check_destination, staged
from hamlet.runtime.expected import NO_EVENTS, Expected
from hamlet.runtime.options import check_unit, made_of, takes
from hamlet.spark.input import local_output, local_path, sources_of
from hamlet.spark.options import check_partitions
from hamlet.spark.session import session, translated
from hamlet.spark.slices import mapped
from hamlet.streams import Monitor, Specification
from hamlet.streams.clock import StreamClock, Times
from hamlet.streams.feeds import Feed
from hamlet.streams.filters import ChosenFeed, PeriodFeed
from hamlet.streams.merged import MergedFeed
from hamlet.streams.program.routing import routed_by
from hamlet.streams.run import prepare
from hamlet.streams.saving import decoded, encoded
from hamlet.streams.sources import open_feed

_BATCH = 65_536
_FOUND = "at decimal(38,0), stream int, key string, value string"


class SpecificationSubmitOptions(TypedDict, total=False):
    """The options of `submit`, by name."""

    slices: int | None
    values: bool
    start: Any
    where: str | None
    since: Any
    until: Any
    time_column: str | None
    time_unit: str
    master: str | None
    input_format: str | None
    missing_columns: MissingColumns | None
    output_format: str
    overwrite: bool
    keep: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class SpecificationBatch:
    """How `submit` runs."""

    UNHEARD: ClassVar[Mapping[str, str]] = {
        "bad_rows": "rows are read as they are, a bad one is an error; hamlet monitor drops them",
        "delimiter": "fields of CSV are separated as its header says; hamlet monitor hears it",
    }

    slices: int | None = None
    values: bool = False
    start: Any = None
    where: str | None = None
    since: Any = None
    until: Any = None
    time_column: str | None = None
    time_unit: str = "s"
    master: str | None = None
    input_format: str | None = None
    missing_columns: MissingColumns | None = None
    output_format: str = "parquet"
    overwrite: bool = False
    keep: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_format(self.output_format)
        check_partitions(self.slices)
        check_unit(self.time_unit)


@takes(SpecificationBatch)
def submit(
    spec: Specification, source: str | Sequence[str], output: str, **options: Unpack[SpecificationSubmitOptions]
) -> dict[str, Any]:
    """Run a specification as a batch job.

    Parameters
    ----------
    spec : Specification
        All of its streams bound to one input (`hamlet.streams.program.routing`).
    source : str or sequence of str
        A file, a folder or a pattern, or several of them, that every machine of the cluster sees.
    output : str
        A directory; rows are written as ``specification=<name>/part-<number>.<format>``.
    slices : int, optional
        By default twice the session's parallelism.
    values, start, time_column, time_unit
        As of `hamlet.streams.run`.
    where, since, until, input_format, missing_columns
        Which events are read, and how.
    master, output_format, overwrite, keep
        As of `hamlet.spark.submit`.

    Returns
    -------
    dict
        ``events``, ``rows``, and ``notes`` about columns that files lack and inputs that never came.

    Raises
    ------
    UnsupportedError
        If a stream is not bound to one input as all others are; the text names it.
    DataError, OptionError, OutputError
        A user's mistake.
    """
    chosen = made_of(SpecificationBatch, options)
    column = routed_by(spec.program)
    sources = sources_of(source)
    paths = []
    for each in sources:
        path = local_path(each)
        if path is None:
            raise DataError(f"{each} is a URL, and files are read here; give a path that all machines see")
        paths += matching(path) or [path]
    place = check_destination(local_output(output), chosen.overwrite, [*sources, spec.source, *chosen.keep])
    files = [str(each.resolve()) for path in paths for each in event_files(path)]
    job = _Job(
        spec.program.text,
        chosen.input_format,
        chosen.time_column,
        chosen.time_unit,
        chosen.values,
        (chosen.where, chosen.since, chosen.until),
    )
    form = CsvForm(missing_columns=chosen.missing_columns)
    merged = open_feed(files, spec.inputs, time_column=chosen.time_column, input_format=chosen.input_format, form=form)
    prepare(Monitor(spec, time_column=job.time_column, time_unit=job.unit), merged)
    job.clock = _clock(spec, job, files)
    events_read = 0
    with session(chosen.master) as spark, translated():
        schema = _schema(spec)
        events = mapped(
            spark.range(0, len(files), 1, len(files)),
            partial(_read, job, files),
            "tick long, file int, row long, " + schema,
        ).cache()
        try:
            bounds = events.selectExpr("min(tick)", "max(tick)", "count(*)").collect()[0]
            events_read = int(bounds[2])
            job.start = int(bounds[0] or 0) if chosen.start is None else chosen.start
            job.last = int(bounds[1] or 0)
            number = chosen.slices or 2 * spark.sparkContext.defaultParallelism
            place_of = next(i for i, each in enumerate(spec.inputs) if each.name == column)
            routed = events.where(col(f"c{place_of}").isNotNull()).repartition(number, f"c{place_of}")
            found = mapped(routed.sortWithinPartitions("tick", "file", "row"), partial(_evaluate, job), _FOUND)
            with staged(place, output) as fresh:
                rows = _write(spec, job, found.orderBy("at", "stream"), fresh, chosen.output_format)
            read = _read_of(spec, events, len(files))
            notes = merged.findings(read) if isinstance(merged, MergedFeed) else []
            notes += _never(spec, read)
        finally:
            events.unpersist()
    return {"events": events_read, "rows": rows, "notes": notes}


def _read_of(spec: Specification, events: DataFrame, files: int) -> list[tuple[int, list[str]]]:
    """How many events each file has, and the inputs that it has values for."""
    found: list[tuple[int, list[str]]] = [(0, []) for _ in range(files)]
    columns = [f"count(c{place})" for place in range(len(spec.inputs))]
    for number, rows, *values in events.groupBy("file").agg(expr("count(*)"), *map(expr, columns)).collect():
        found[number] = rows, [each.name for each, count in zip(spec.inputs, values, strict=True) if count]
    return found


def _never(spec: Specification, read: Sequence[tuple[int, Sequence[str]]]) -> list[str]:
    """That inputs never came, as a monitor says it."""
    expected = Expected(each.name for each in spec.inputs)
    for _, names in read:
        expected.see(names)
    return expected.warnings() if any(rows for rows, _ in read) else [NO_EVENTS]


class _Job:
    """What tasks need to know.

    Attributes
    ----------
    chosen : (str or None, str or None, str or None)
        The condition of the events that are read, their first time, and the first time of those that are not.
    clock : StreamClock
        What the times are; known once the files have been looked at.
    start : int or str
        Ticks, or a time as the user gave it.
    last : int
        The tick of the last event of all.
    """

    def __init__(
        self,
        text: str,
        input_format: str | None,
        time_column: str | None,
        unit: str,
        values: bool,
        chosen: tuple[str | None, str | None, str | None],
    ) -> None:
        self.text, self.input_format, self.time_column = text, input_format, time_column
        self.unit, self.values, self.chosen = unit, values, chosen
        self.clock: Any = None
        self.start: Any = 0
        self.last = 0

    def feed(self, spec: Specification, path: str) -> Feed:
        """The events of a file that are wanted."""
        where, since, until = self.chosen
        options: dict[str, Any] = {"time_column": self.time_column, "input_format": self.input_format}
        feed = open_feed(path, spec.inputs, **options)
        if where is not None:
            feed = ChosenFeed(path, spec.inputs, where, **options)
        feed.closed = False  # what files may lack was found before
        if since is None and until is None:
            return feed
        return PeriodFeed(feed, since, until, time_column=self.time_column, time_unit=self.unit)

    def monitor(self, spec: Specification) -> Monitor:
        """A monitor that starts with the first event of all slices."""
        given = self.start if isinstance(self.start, str) else None
        monitor = Monitor(spec, values=self.values, start=given)
        monitor.times = Times("tick", self.unit)
        monitor.times.clock = self.clock
        monitor.time_column = "tick"
        if given is None:
            monitor.start_at = self.start * self.clock.tick
        return monitor


def _schema(spec: Specification) -> str:
    names = {"Int": "long", "UInt": "decimal(20,0)", "Float": "double", "Bool": "boolean", "String": "string"}
    kinds = [names.get(getattr(each.type, "family", ""), "string") for each in spec.inputs]
    return ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds))


def _clock(spec: Specification, job: _Job, files: list[str]) -> StreamClock:
    """What the times are."""
    clocks = set()
    for each in files:
        feed = job.feed(spec, each)
        monitor = Monitor(spec, time_column=job.time_column, time_unit=job.unit)
        prepare(monitor, feed)
        if monitor.times is None or monitor.clock is None:
            for batch in feed.batches():
                times = monitor.times or Times(monitor.find_time(batch.schema.names), job.unit, feed.name)
                times.ticks(batch.column(times.column))
                monitor.times = times
                break
        if monitor.clock is not None:
            clocks.add((monitor.clock.unit, monitor.clock.kind, monitor.clock.zone))
    if len(clocks) != 1:
        raise DataError("the files have times of several kinds, or no events; Spark needs one kind")
    unit, kind, zone = clocks.pop()
    return StreamClock("time", unit, kind, zone)


def _read(job: _Job, files: list[str], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The events of files, by their numbers."""
    spec = Specification.parse(job.text)
    kinds = {"Int": pa.int64(), "UInt": pa.decimal128(20, 0), "Float": pa.float64(), "Bool": pa.bool_()}
    for batch in batches:
        for number in batch.column(0).to_pylist():
            feed = job.feed(spec, files[number])
            times, row = None, 0
            for events in feed.batches():
                if times is None:
                    names = events.schema.names
                    times = Times(Monitor(spec, time_column=job.time_column).find_time(names), job.unit, feed.name)
                    times.clock = job.clock
                ticks = times.ticks(events.column(times.column))
                size = len(ticks)
                arrays = [pa.array(ticks), pa.array([number] * size, pa.int32()), pa.array(range(row, row + size))]
                for each in spec.inputs:
                    kind = kinds.get(getattr(each.type, "family", ""), pa.string())
                    present = each.name in events.schema.names
                    arrays.append(events.column(each.name).cast(kind) if present else pa.nulls(size, kind))
                yield pa.RecordBatch.from_arrays(
                    arrays, ["tick", "file", "row", *(f"c{place}" for place in range(len(spec.inputs)))]
                )
                row += size


def _evaluate(job: _Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a slice."""
    spec = Specification.parse(job.text)
    monitor = job.monitor(spec)
    seen = False
    for batch in batches:
        if batch.num_rows:
            seen = True
            columns = [batch.column(f"c{place}") for place in range(len(spec.inputs))]
            events = pa.RecordBatch.from_arrays(columns, [each.name for each in spec.inputs])
            monitor.take_at(batch.column("tick").to_numpy(), events)
            yield _packed(monitor.evaluator.take())
    if seen:
        monitor.pass_before(job.last * job.clock.tick + 1)  # the deadlines at the last event's time, too
        yield _packed(monitor.evaluator.take())


def _packed(found: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [
            pa.array([row[0] for row in found], pa.decimal128(38, 0)),
            pa.array([row[1] for row in found], pa.int32()),
            pa.array([json.dumps(encoded(row[2])) for row in found], pa.string()),
            pa.array([json.dumps(encoded(row[3])) for row in found], pa.string()),
        ],
        ["at", "stream", "key", "value"],
    )


def _write(spec: Specification, job: _Job, found: DataFrame, fresh: Path, output_format: str) -> int:
    """Write the rows in order, and count them."""
    monitor = job.monitor(spec)
    if monitor.start_at is None:
        monitor.start_at = job.clock.nanoseconds_of(job.start)
    form, total = monitor.form, 0
    name = Path(spec.source).stem
    with file_writer(fresh, output_format, "specification", name, form.schema(job.clock), sparse=True) as write:
        waiting: list[Any] = []
        for row in found.toLocalIterator():
            waiting.append((int(row[0]), row[1], decoded(json.loads(row[2])), decoded(json.loads(row[3]))))
            total += 1
            if len(waiting) == _BATCH:
                write(form.batch(waiting, job.clock, monitor.start_at))
                waiting = []
        if waiting:
            write(form.batch(waiting, job.clock, monitor.start_at))
    return total
