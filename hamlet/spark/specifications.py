"""A stream specification as a Spark job: events are routed by the input that binds all streams.

Tasks read the files, a file each, and every slice runs a monitor over its events in the order of time, its deadlines up
to the time of the last event of all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame

from hamlet.engine.options import Options as QueryOptions
from hamlet.errors import WorkloadError
from hamlet.frontend.time_column import TIME, settled, time_column_in
from hamlet.input.file_form import FileForm
from hamlet.input.files import Leaf, matching
from hamlet.input.files_protocol import Reader
from hamlet.input.ordering import SortKey
from hamlet.language.schema import Clock
from hamlet.runtime.expected import NO_EVENTS, Expected
from hamlet.runtime.options import check_choice, made_of, takes
from hamlet.spark.batch import closed_once, destination, seen_by_all, written_slices
from hamlet.spark.continuous import TimedSink, timed_frame
from hamlet.spark.counters import ByKey
from hamlet.spark.events import Reading
from hamlet.spark.following import follow
from hamlet.spark.frames import Events, events_of
from hamlet.spark.input import carried
from hamlet.spark.options import Follow, FollowOptions, Once, OnceOptions, check_partitions, job_of
from hamlet.spark.session import session, translated
from hamlet.spark.sliced import TimedWork
from hamlet.spark.slices import mapped
from hamlet.spark.specification_work import SpecificationWork
from hamlet.streams import Specification
from hamlet.streams.clock import Times, integer_clock
from hamlet.streams.input_check import column_errors
from hamlet.streams.monitor import time_column_of
from hamlet.streams.options import MonitorOptions, Options
from hamlet.streams.program import ir
from hamlet.streams.program.routing import routed_by
from hamlet.streams.sources import NULLS, TYPES, batches_of, clock_of, kinds_of, misfits_of, open_stream

_LOG = logging.getLogger("hamlet")
_TICK = "\0tick"  # a name that no input has
_CARRIED = {"Int": pa.int64(), "UInt": pa.decimal128(20, 0), "Float": pa.float64(), "Bool": pa.bool_()}


class SpecificationSubmitOptions(OnceOptions, total=False):
    """The options of `submit`, by name."""

    slices: int | None
    values: bool
    start: Any
    where: str | None
    since: Any
    until: Any
    time_column: str | None
    time_unit: str


@dataclass(frozen=True, kw_only=True)
class SpecificationBatch(Once):
    """How `submit` runs."""

    slices: int | None = None
    values: bool = False
    start: Any = None
    where: str | None = None
    since: Any = None
    until: Any = None
    time_column: str | None = None
    time_unit: str = "s"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_partitions(self.slices)
        check_choice("time_unit", self.time_unit)

    @property
    def reading(self) -> dict[str, Any]:
        """How events are read, as `hamlet.streams.sources.open_stream` takes it."""
        names = ("where", "since", "until", "time_column", "time_unit", "input_format")
        return {name: getattr(self, name) for name in names} | {"form": self.form}


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
        A directory; rows are written as ``specification=<name>/part-<slice>.<format>``, in the order of time in each.
    slices : int, optional
        By default twice the session's parallelism.
    values, start, time_column, time_unit
        As of `hamlet.streams.run`.
    where, since, until, input_format, delimiter, bad_rows, missing_columns
        Which events are read, and how.
    master, output_format, overwrite, keep, progress
        As of `hamlet.spark.submit`.

    Returns
    -------
    dict
        ``events``, ``rows``, and ``notes`` about rows that were dropped, columns that files lack and
        inputs that never came.

    Raises
    ------
    UnsupportedError
        If a stream is not bound to one input as all others are; the text names it.
    DataError, OptionError, OutputError
        A user's mistake.
    """
    chosen = made_of(SpecificationBatch, options)
    routed_by(spec.program)
    paths = [each for path in seen_by_all(source) for each in matching(Path(path)) or [Path(path)]]
    place = destination(output, chosen, [*map(str, paths), spec.source])
    whole = {**chosen.reading, "where": None, "since": None, "until": None}
    source_read = open_stream([path.resolve() for path in paths], spec.inputs, **whole)
    if mistakes := column_errors(spec.program, kinds_of(source_read), misfits_of(source_read)):
        raise WorkloadError(mistakes)
    source_read.look([each.name for each in spec.inputs])
    files = list(source_read.leaves())
    clock = clock_of(source_read) or integer_clock(chosen.time_unit)  # no event, no row: any clock will do
    kinds = [_CARRIED.get(getattr(each.type, "family", ""), pa.string()) for each in spec.inputs]
    fields = [pa.field(each.name, kind) for each, kind in zip(spec.inputs, kinds, strict=True)]
    events = pa.schema([pa.field(_TICK, pa.int64()), *fields])
    run = Options(values=chosen.values, start=chosen.start, time_column=_TICK, time_unit=chosen.time_unit)
    with session(chosen.master) as spark, translated():
        count = chosen.slices or 2 * spark.sparkContext.defaultParallelism
        work = SpecificationWork(spec, events, run, count, clock)
        told = spark.sparkContext.accumulator({}, ByKey[str, tuple[int, list[str]]]())
        read = partial(_read, spec.program.text, files, chosen.reading, clock, events, told)
        frame = mapped(spark.range(0, len(files), 1, len(files)), read, carried(events)[0])
        sink = TimedSink(work, "specification", Path(spec.source).stem, chosen.output_format, sparse=True, empty=True)
        seen, rows = written_slices(sink, closed_once(work, frame), place)
        found = told.value
    expected = Expected(each.name for each in spec.inputs)
    for _, filled in found.values():
        expected.see(filled)
    never = expected.warnings() if any(count for count, _ in found.values()) else [NO_EVENTS]
    return {"events": seen, "rows": rows, "notes": [*source_read.notes(), *never]}


def _read(
    text: str,
    files: Sequence[Leaf],
    reading: dict[str, Any],
    clock: Clock,
    schema: pa.Schema,
    told: Accumulator[dict[str, tuple[int, list[str]]]],
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The events of files, by their numbers, with times in ticks; tells how many, and which inputs have values."""
    spec = Specification.parse(text)
    names = [f"c{place}" for place in range(len(schema))]
    for batch in batches:
        for number in batch.column(0).to_pylist():
            source = open_stream(files[number], spec.inputs, **reading)
            times = Times(source.schema.clock.column, reading["time_unit"], source.name)
            times.clock = clock
            rows, filled = 0, dict[str, None]()
            for events in batches_of(source, spec.inputs):
                arrays = [pa.array(times.ticks(events.column(times.column)))]
                for field in list(schema)[1:]:
                    there = field.name in events.schema.names
                    arrays.append(
                        events.column(field.name).cast(field.type) if there else pa.nulls(len(arrays[0]), field.type)
                    )
                    if arrays[-1].null_count < len(arrays[-1]):
                        filled[field.name] = None
                rows += len(arrays[0])
                yield pa.RecordBatch.from_arrays(arrays, names)
            told.add({files[number].path: (rows, list(filled))})


# ---------------------------------------------------------------------------------- streams and folders


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
    output : str
        A directory; rows are written as ``specification=<name>/part-<micro-batch>-<slice>.<format>``.
    slices : int, optional
        By default the session's parallelism; one where no input binds all streams, which the notes say.
    output_format : {'parquet', 'csv', 'json'}
    **options
        Of `hamlet.streams.Monitor`; all else is as for `hamlet.spark.policies.submit_stream`.
    """
    chosen = job_of(SpecificationStream, Options, options)
    form = FileForm(chosen.delimiter, chosen.bad_rows, NULLS, chosen.missing_columns)
    key = SortKey(chosen.run.time_column or TIME)
    whole = (each.name for each in spec.inputs if getattr(each.type, "family", "") in ("Int", "UInt"))
    declared = tuple(name for name in whole if time_column_in([name], key.time) is None)
    reading = Reading(key, "", chosen.input_format, form, declared=declared)
    name = Path(spec.source).stem

    columns = partial(_columns_of, spec, chosen.run)

    def plan(events: Events, slices: int) -> TimedWork:
        return SpecificationWork(spec, events.schema, chosen.run, slices)

    sink = partial(TimedSink, kind="specification", name=name, output_format=chosen.output_format, sparse=True)
    return follow(source, output, checkpoint, chosen, reading, columns, plan, sink)


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


def stream(spec: Specification, events: DataFrame, *, slices: int | None = None, **options: Any) -> DataFrame:
    """Run a specification over a streaming DataFrame; as `hamlet.spark.stream`."""
    check_partitions(slices)
    chosen = made_of(Options, options, ("slices",))
    given = events_of(events, QueryOptions(time_column=settled(chosen.time_column or TIME, events.columns)))
    mistakes = column_errors(spec.program, dict(zip(given.schema.names, given.schema.types, strict=True)))
    if mistakes:
        raise WorkloadError(mistakes)
    work = SpecificationWork(spec, given.schema, chosen, slices or events.sparkSession.sparkContext.defaultParallelism)
    for note in work.notes:
        _LOG.warning(note)
    return timed_frame(work, given.select(work.events.names))
