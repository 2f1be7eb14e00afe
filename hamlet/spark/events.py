"""The events of a task: batches as the engine reads them, whole steps of time, text files; no pyspark needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.engine.executor import END_OF_TIME
from hamlet.errors import DataError
from hamlet.input.columns import Int64Array
from hamlet.input.durations import with_durations
from hamlet.input.file_form import Dropped, FileForm
from hamlet.input.files import Leaf, open_path
from hamlet.input.files_protocol import Reader
from hamlet.input.folder import own_columns
from hamlet.input.formats import format_of
from hamlet.input.input_schema import other_type
from hamlet.input.missing import finding, missing_column
from hamlet.input.ordering import BATCH_ROWS, SortKey
from hamlet.input.ticks import times_of
from hamlet.input.timed import dropped_by
from hamlet.input.widening import attribute_type, cast, conform
from hamlet.language.query import AttributeType
from hamlet.language.schema import Schema


def engine_batches(
    batches: Iterable[pa.RecordBatch], names: Sequence[str], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Spark's batches with the columns' names and in the types that the engine reads; none is empty.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
    names : sequence of str
        Of their columns, in order: Spark's own names may clash or need quotes, so columns are numbered there.
    schema : pyarrow.Schema
        Types of these columns, by name.
    """
    wanted = pa.schema([schema.field(name) for name in names])
    for batch in batches:
        if batch.num_rows:
            columns = [_as_engine(batch.column(place), field) for place, field in enumerate(wanted)]
            yield pa.RecordBatch.from_arrays(columns, schema=wanted)


def _as_engine(column: pa.Array, field: pa.Field) -> pa.Array:
    if pa.types.is_null(field.type):
        return pa.nulls(len(column))
    both = pa.types.is_timestamp(field.type) and pa.types.is_timestamp(column.type)
    if both and (field.type.tz is None) != (column.type.tz is None):
        # INT96 of Parquet is an instant to Spark and has no zone to Arrow: the same ticks.
        column = column.cast(pa.int64()).cast(pa.timestamp(column.type.unit, field.type.tz))
    return cast(column, field.type, field.name)


def time_steps(batches: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Batches that end where a time ends, each with the time of the event that follows it.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        In the order of time and order column, none empty; a time may go on in the next batch.
    schema : Schema

    Raises
    ------
    DataError
        At a NULL time or order, and at a time beyond 2^61 ticks.
    """
    held: list[pa.RecordBatch] = []
    first = rows = 0
    for batch in batches:
        times = check_times(batch, schema)
        first = first if held else int(times[0])
        held.append(batch)
        rows += batch.num_rows
        if rows < BATCH_ROWS or int(times[-1]) == first:
            continue
        whole = _joined(held)
        last = int(times[-1])
        cut = int(np.searchsorted(times_of(whole, schema.clock.column), last, side="left"))
        yield whole.slice(0, cut), last
        held, first, rows = [whole.slice(cut)], last, whole.num_rows - cut
    if held:
        yield _joined(held), END_OF_TIME


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def check_times(batch: pa.RecordBatch, schema: Schema) -> Int64Array:
    """Check events in any order; gives their times.

    Raises
    ------
    DataError
        At a NULL time or order, and at a time beyond 2^61 ticks.
    """
    for name, role in ((schema.clock.column, "time"), (schema.order_column, "order")):
        if name is not None and batch.column(name).null_count:
            event = _without(batch, name)
            shown = ", ".join(f"{each}={value!r}" for each, value in event.items())
            text = f"the {role} column {name!r} is NULL in an event ({shown})"
            raise DataError(text).about(column=name, event=event)
    return times_of(batch, schema.clock.column)


def _without(batch: pa.RecordBatch, name: str) -> dict[str, Any]:
    """The values of the first event in which a column is NULL."""
    row = batch.column(name).is_null().to_pylist().index(True)
    event = batch.slice(row, 1).to_pylist()[0]
    return {each: value for each, value in event.items() if value is not None}


@dataclass(frozen=True)
class Reading:
    """How files are read; as of `hamlet.input.files.open_path`."""

    key: SortKey
    type_column: str
    input_format: str | None = None
    form: FileForm = FileForm()
    durations: tuple[str, ...] = ()  # columns of numbers that are seconds
    declared: tuple[str, ...] = ()  # columns of integers that somebody has declared: whole doubles are some, too

    def open(self, path: Path, types: Mapping[str, pa.DataType] | None = None) -> Reader:
        """A file, or a folder of them."""
        where = (path, self.key, self.type_column, self.input_format, self.form)
        if types is None or not self.declared or format_of(path, self.input_format) == "csv":
            return open_path(*where, types)
        reader = open_path(*where, {name: kind for name, kind in types.items() if name not in self.declared})
        own = [reader.schema.field(name).type for name in self.declared if name in reader.schema.names]
        numbers = (AttributeType.INT, AttributeType.DOUBLE)
        fit = all(pa.types.is_null(kind) or attribute_type(kind) in numbers for kind in own)
        return reader if fit else open_path(*where, types)

    def refuse_fractions(self, events: pa.RecordBatch, schema: pa.Schema, name: str, first_row: int) -> None:
        """Raise DataError where a declared integer is none; `first_row` rows of this file were read before."""
        for column in (each for each in self.declared if each in events.schema.names):
            if attribute_type(events.schema.field(column).type) is AttributeType.DOUBLE:
                values = events.column(column).cast(pa.float64())
                row = pc.index(pc.equal(values, pc.round(values)), False).as_py()
                if row >= 0:
                    said = f"{values[row].as_py()} in row {first_row + row + 1} (the first row is 1)"
                    raise DataError(f"{name}: {other_type(column, said, schema.field(column).type)}")


def read_files(
    files: Sequence[Leaf], reading: Reading, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Files of events, read as `hamlet.run` reads them.

    Parameters
    ----------
    files : sequence of Leaf
        All files of the job.
    reading : Reading
    schema : pyarrow.Schema
        The columns to read, in the types that Spark takes.
    batches : iterable of pyarrow.RecordBatch
        Their first column says which files are this task's.
    """
    for batch in batches:
        for number in batch.column(0).to_pylist():
            file = files[number]
            reader = reading.open(Path(file.path))
            whole = reader if file.folders is None else file.folders.again(reader)
            yield from _read(whole, reading, schema, "null")  # what is an error was one before the job began


def read_arrivals(
    reading: Reading,
    left_out: Callable[[str, Dropped], None],
    known: pa.Schema,
    schema: pa.Schema,
    skip: frozenset[str],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Files that came to a folder after the job had begun, read as `hamlet.run` reads them.

    Parameters
    ----------
    reading : Reading
    left_out : callable
        Called with the name of a file, the rows of it that were left out, and the columns that it lacks.
    known : pyarrow.Schema
        The columns to read, in the types that they had when the job began.
    schema : pyarrow.Schema
        The same in the types that Spark takes.
    skip : frozenset of str
        Files that were read before.
    batches : iterable of pyarrow.RecordBatch
        Their first column holds the paths, as Hadoop writes them.

    Raises
    ------
    DataError
        A file cannot be read, lacks a column, or has a value of another type; the text says where.
    """
    types = {field.name: field.type for field in known}
    for batch in batches:
        for path in batch.column(0).to_pylist():
            place = path_of(path)
            if str(place) in skip:
                continue
            reader = reading.open(place, types)
            yield from _read(reader, reading, schema, reading.form.missing_columns)
            dropped = dropped_by(reader)
            absent = [name for name in schema.names if name not in reader.schema.names]
            dropped.findings += [finding(place.name, name, reader.rows or 0) for name in absent]
            if dropped.rows or dropped.findings:
                left_out(place.name, dropped)


def path_of(text: str) -> Path:
    """A path of this machine as Hadoop writes it."""
    return Path("/" + text.removeprefix("file:").lstrip("/"))


def _read(reader: Reader, reading: Reading, schema: pa.Schema, missing: str | None) -> Iterator[pa.RecordBatch]:
    """The columns of a file that a job reads, in the types that Spark takes, numbered."""
    numbered = [f"c{place}" for place in range(len(schema))]
    key, rows = replace(reading.key.among(schema.names), source=reader.name), 0
    if key.time in schema.names and key.time not in reader.schema.names:
        raise DataError(f"{reader.name}: {missing_column(key.time, reader.schema.names, 'time')}")
    for events in reader.batches(own_columns(reader, schema.names, missing)):
        key.refuse_nulls(events, rows)
        reading.refuse_fractions(events, schema, reader.name, rows)
        rows += events.num_rows
        known = with_durations(events, reading.durations)
        yield pa.RecordBatch.from_arrays(conform(known, schema).columns, numbered)
