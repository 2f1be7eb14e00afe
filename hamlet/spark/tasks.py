"""What Spark's Python workers run: record batches in, record batches out, no pyspark needed.

A task gets text and plain data (`Shipment`), never engine objects, and compiles once. It walks its record batches
across their borders. The events of all keys of a Spark partition come interleaved, in the order of time, to the very
engine that runs online: windows close as time goes on, so memory holds the open windows of the keys that are alive, and
one call of the kernel serves many keys. One key after the other would need a sort by key and a new engine per key.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.columns import StringPool, integers
from hamlet.compiler.compile import CompiledQuery, CompiledWorkload, compile_workload
from hamlet.engine import MOST_TICKS, Options, executor_of
from hamlet.errors import DataError, OutputError
from hamlet.executor import END_OF_TIME, GroupRows, present, result_columns
from hamlet.input.files import open_path
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import BATCH_ROWS, SortKey
from hamlet.input.widening import cast, conform
from hamlet.output.files import folder_name, part_file
from hamlet.output.partial import PartialCodec
from hamlet.output.result import QueryRows, ResultColumn, to_arrow
from hamlet.schema import Schema
from hamlet.spark.routes import Route, part_of
from hamlet.workload import Workload

WRITTEN = pa.schema([("query", pa.int32()), ("rows", pa.int64()), ("infinite", pa.int64())])


@functools.lru_cache(maxsize=8)
def _parsed(text: str, source: str) -> Workload:
    """A worker process is used for many tasks."""
    return Workload.parse(text, source)


@dataclass(frozen=True)
class Shipment:
    """What every task of a job knows.

    Attributes
    ----------
    text, source : str
        The workload and its file name.
    options : Options
    events : pyarrow.Schema
        All columns of the input, in the types that the engine reads.
    """

    text: str
    source: str
    options: Options
    events: pa.Schema

    @property
    def workload(self) -> Workload:
        """The workload, parsed and checked."""
        return _parsed(self.text, self.source)

    def schema(self, name: str = "the DataFrame") -> Schema:
        """The columns in the language's types; raises DataError where time, type or order column cannot be used."""
        options = self.options
        key = SortKey(options.time_column, options.order_column)
        return schema_of(self.events, key, options.type_column, options.time_unit, source=name)

    def compiled(self) -> CompiledWorkload:
        """The workload compiled for the columns."""
        exact, together = self.options.numbers == "exact", self.options.sharing != "never"
        return compile_workload(self.workload.analysis, self.schema(), StringPool(), exact=exact, together=together)


# ---------------------------------------------------------------------------------------------------- events


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
        times = _times(batch, schema)
        first = first if held else int(times[0])
        held.append(batch)
        rows += batch.num_rows
        if rows < BATCH_ROWS or int(times[-1]) == first:
            continue
        whole = _joined(held)
        last = int(times[-1])
        cut = int(np.searchsorted(_times(whole, schema), last, side="left"))
        yield whole.slice(0, cut), last
        held, first, rows = [whole.slice(cut)], last, whole.num_rows - cut
    if held:
        yield _joined(held), END_OF_TIME


def _joined(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _times(batch: pa.RecordBatch, schema: Schema) -> Any:
    for name, role in ((schema.clock.column, "time"), (schema.order_column, "order")):
        if name is not None and batch.column(name).null_count:
            raise DataError(f"the {role} column {name!r} is NULL in an event ({_shown(batch, name)})")
    times = integers(batch.column(schema.clock.column), schema.clock.column)[0]
    if int(times[0]) < -MOST_TICKS or int(times[-1]) > MOST_TICKS:
        raise DataError(
            f"the time column '{schema.clock.column}' holds a time beyond 2^61 ticks\n"
            "hint: is it in a coarser unit than the data (nanoseconds read as seconds)?"
        )
    return times


def _shown(batch: pa.RecordBatch, null: str) -> str:
    """The values of the first event in which a column is NULL."""
    row = batch.column(null).is_null().to_pylist().index(True)
    event = batch.slice(row, 1).to_pylist()[0]
    return ", ".join(f"{name}={value!r}" for name, value in event.items() if value is not None)


# ---------------------------------------------------------------------------------------------------- kernel


class Kernel:
    """Runs one class of queries over the events of a task.

    Attributes
    ----------
    executor : Executor
        Its counters are complete when `closed` has ended.
    """

    def __init__(self, shipment: Shipment, route: Route) -> None:
        self._shipment = shipment
        self._route = route
        workload = part_of(shipment.workload, route.queries)
        self.executor = executor_of(workload, shipment.schema(), StringPool(), shipment.options)

    def closed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, GroupRows]]:
        """The rows of each query (its place in the workload) as windows close."""
        events = engine_batches(batches, self._route.columns, self._shipment.events)
        for batch, following in time_steps(events, self.executor.workload.schema):
            self.executor.process(batch)
            self.executor.advance(following)
            for query in self._route.queries:
                rows = self.executor.drain_groups(query)
                if rows.windows:
                    yield query, rows

    def partial(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same as batches of partial rows."""
        compiled = self.executor.workload
        codecs = {query.analysed.index: _codec(query, compiled.schema) for query in compiled.queries}
        for query, rows in self.closed(batches):
            yield codecs[query].encode(rows)

    def final(self, batches: Iterable[pa.RecordBatch]) -> Iterator[QueryRows]:
        """The same as result rows."""
        for query, rows in self.closed(batches):
            yield self.executor.present(query, rows)


def _codec(query: CompiledQuery, schema: Schema) -> PartialCodec:
    types = [schema.arrow_types.get(name, pa.null()) for name in query.analysed.grouping]
    return PartialCodec(query.analysed.index, query.layout.keys, types)


# --------------------------------------------------------------------------------------------------- results


class Presenter:
    """Makes result rows of partial rows.

    Parameters
    ----------
    shipment : Shipment
    """

    def __init__(self, shipment: Shipment) -> None:
        compiled = shipment.compiled()
        self.schema = compiled.schema
        self._queries = {query.analysed.index: query for query in compiled.queries}
        self._codecs = {place: _codec(query, self.schema) for place, query in self._queries.items()}

    @property
    def names(self) -> list[str]:
        """The names of the queries, in the order of the workload."""
        return [self._queries[place].name for place in sorted(self._queries)]

    def columns(self, query: int) -> tuple[ResultColumn, ...]:
        """The columns of a query."""
        return result_columns(self._queries[query], self.schema)

    def rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, QueryRows]]:
        """Result rows from partial rows that are sorted by query, window and group; equal ones are merged."""
        for query, pieces in itertools.groupby(_by_query(batches), key=lambda piece: piece[0]):
            windows: list[int] = []
            groups: list[bytes] = []
            components: list[bytes] = []
            for _, piece in pieces:
                windows += piece.column("window").to_pylist()
                groups += piece.column("group").to_pylist()
                components += piece.column("components").to_pylist()
                cut = _last_border(windows, groups) if len(windows) >= BATCH_ROWS else 0
                if cut:
                    yield query, self._present(query, windows[:cut], groups[:cut], components[:cut])
                    windows, groups, components = windows[cut:], groups[cut:], components[cut:]
            yield query, self._present(query, windows, groups, components)

    def _present(self, query: int, windows: list[int], groups: list[bytes], components: list[bytes]) -> QueryRows:
        rows = self._codecs[query].merge(windows, groups, components)
        return present(self._queries[query], self.columns(query), rows, self.schema.units)


def _by_query(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches cut where the query changes."""
    for batch in batches:
        if not batch.num_rows:
            continue
        queries = batch.column("query").to_numpy()
        starts = [0, *(np.nonzero(np.diff(queries))[0] + 1).tolist(), batch.num_rows]
        for start, end in itertools.pairwise(starts):
            yield int(queries[start]), batch.slice(start, end - start)


def _last_border(windows: list[int], groups: list[bytes]) -> int:
    """Where the last window and group begins."""
    place = len(windows) - 1
    while place and (windows[place - 1], groups[place - 1]) == (windows[-1], groups[-1]):
        place -= 1
    return place


def result_batches(
    rows: Iterable[QueryRows], shipment: Shipment, schema: pa.Schema, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Result rows as batches of one schema for all queries.

    Parameters
    ----------
    rows : iterable of QueryRows
    shipment : Shipment
    schema : pyarrow.Schema
        The union of the queries' columns; NULL where a query lacks one.
    names : sequence of str
        What Spark calls these columns.
    """
    clock = shipment.schema().clock
    for each in rows:
        for batch in to_arrow(each, clock, shipment.options.count_type).combine_chunks().to_batches():
            yield pa.RecordBatch.from_arrays(conform(batch, schema).columns, list(names))


def write_files(
    shipment: Shipment, folder: str, output_format: str, part: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write a task's sorted partial rows as result files, one per query, and say what was written.

    A file gets its name when it is whole, so tasks that are run twice leave no piece of a file.

    Raises
    ------
    OutputError
        If the disk cannot take the files, or a value does not fit the count type.
    """
    presenter = Presenter(shipment)
    count_type, clock = shipment.options.count_type, presenter.schema.clock
    for query, pieces in itertools.groupby(presenter.rows(batches), key=lambda piece: piece[0]):
        path = Path(folder, folder_name(presenter.names[query]), f"part-{part:05}.{output_format}")
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        rows = infinite = 0
        try:
            with part_file(unfinished, output_format, presenter.columns(query), clock, count_type) as write:
                for _, piece in pieces:
                    rows += len(piece.rows)
                    infinite += write(piece)
            unfinished.replace(path)
        except (OSError, pa.ArrowException) as error:
            raise OutputError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from error
        yield pa.RecordBatch.from_pylist([{"query": query, "rows": rows, "infinite": infinite}], WRITTEN)


# --------------------------------------------------------------------------------------------------- reading


def read_files(
    paths: Sequence[str],
    key: SortKey,
    type_column: str,
    input_format: str | None,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Text files of events, read as `hamlet.run` reads them.

    Parameters
    ----------
    paths : sequence of str
        All files of the job.
    key : SortKey
    type_column : str
    input_format : {'csv', 'json'}, optional
        By default the extension says.
    schema : pyarrow.Schema
        The columns to read, in the types that Spark takes.
    batches : iterable of pyarrow.RecordBatch
        Their first column says which paths are this task's.
    """
    numbered = [f"c{place}" for place in range(len(schema))]
    for batch in batches:
        for number in batch.column(0).to_pylist():
            reader = open_path(Path(paths[number]), key, type_column, input_format)
            own = [name for name in schema.names if name in reader.schema.names]
            for events in reader.batches(own):
                yield pa.RecordBatch.from_arrays(conform(events, schema).columns, numbered)
