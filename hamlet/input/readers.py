"""Events that are no files, as readers: tables, datasets and streams of Arrow, columns and dicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.clocked import Clocked, clocked
from hamlet.input.file_form import Dropped, FileForm
from hamlet.input.files_protocol import Reader
from hamlet.input.moments import kind_of, needs_reading, with_moments
from hamlet.input.ordering import SortKey, slices
from hamlet.input.records import NO_DECIMALS, table_of_columns, table_of_records
from hamlet.input.timed import Timed, timed
from hamlet.input.widening import cast, validate, with_null_columns


class OpenTable:
    """A table whose events may have further attributes: a column that is not there is no mistake, as of dicts."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table


class TableReader:
    """Events that stand in memory."""

    ordered: bool | None = None

    def __init__(self, name: str, table: pa.Table) -> None:
        self.dropped = Dropped()
        self.name = name
        self.table = table
        self.schema: pa.Schema = table.schema.remove_metadata()
        self.rows: int | None = table.num_rows

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, in pieces."""
        return slices(self.table.select(list(columns)))


class DatasetReader:
    """A dataset of pyarrow, of which only the columns that are asked for are read."""

    name = "the dataset"
    ordered: bool | None = None

    def __init__(self, dataset: Any) -> None:
        self.schema: pa.Schema = dataset.schema.remove_metadata()
        self._dataset = dataset
        self.rows: int | None = dataset.count_rows()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, fragment by fragment."""
        try:
            for batch in self._dataset.to_batches(columns=list(columns), use_threads=False):
                if batch.num_rows:
                    plain = batch.replace_schema_metadata()
                    validate(plain)
                    yield plain
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"the dataset cannot be read to its end: {error}") from error


_FEW_ROWS = 10_000  # of a stream that are kept


class StreamReader:
    """Events that can be read once; few of them are kept, for who looks at them again."""

    ordered: bool | None = None
    rows: int | None = None  # once all have been read, and are kept

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.name = "the Arrow stream"
        self.schema: pa.Schema = reader.schema.remove_metadata()
        self._reader: pa.RecordBatchReader | None = reader
        self._few: list[pa.RecordBatch] = []

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows: once, or again where they are few."""
        if self.rows is not None:
            yield from (batch.select(list(columns)).replace_schema_metadata() for batch in self._few)
            return
        reader, self._reader = self._reader, None
        if reader is None:
            raise DataError("the Arrow stream has been read already; a stream can be read only once, a table often")
        rows = 0
        try:
            with reader:
                for batch in reader:
                    if batch.num_rows:
                        rows += batch.num_rows
                        self._few = [*self._few, batch] if rows <= _FEW_ROWS else []
                        chosen = batch.select(list(columns)).replace_schema_metadata()
                        validate(chosen)
                        yield chosen
            self.rows = rows if rows <= _FEW_ROWS else None
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"the Arrow stream broke off: {error}") from error


def is_stream(reader: Reader) -> bool:
    """Whether a reader can be read once."""
    while isinstance(reader, (Timed, Clocked)):
        reader = reader.reader
    return isinstance(reader, StreamReader) and reader.rows is None


def in_memory(name: str, table: pa.Table, key: SortKey, time_unit: str, form: FileForm) -> Reader:
    """A table with a clock for its times, without its rows that have none where these are to be dropped."""
    found = TableReader(name, with_moments(table, key.time, time_unit))
    rest = timed(found, key) if form.drops else found
    if isinstance(rest, Timed):
        batches = [each.replace_schema_metadata() for each in rest.batches(table.schema.names)]
        found = TableReader(name, pa.Table.from_batches(batches, found.schema))
        found.dropped = rest.dropped
    elif form.written_times and not found.schema.equals(table.schema):
        return Clocked(TableReader(name, table), key.time, found.schema.field(key.time).type, written=True)
    return found


def stream_of(reader: pa.RecordBatchReader, key: SortKey, time_unit: str, form: FileForm) -> Reader:
    """A stream, or a table of all its rows where times are text, which is looked at as a whole."""
    place = reader.schema.get_field_index(key.time)
    kind = None if place < 0 else reader.schema.field(place).type
    if kind is None or not needs_reading(kind) or kind_of(kind) is not None:
        stream = clocked(StreamReader(reader), key.time, form.written_times)
        return Timed(stream, key) if form.drops and all(name in stream.schema.names for name in key.names) else stream
    with reader:
        return in_memory("the Arrow stream", reader.read_all(), key, time_unit, form)


def table_of(
    source: Any,
    first_event: int = 0,
    wide: bool = False,
    time: str | None = None,
    decimals: Mapping[str, pa.DataType] = NO_DECIMALS,
) -> tuple[pa.Table, bool]:
    """Events in memory as a table, without copies where they are columns, and whether its columns are all.

    Decimals of the column `time`, which other columns have as floats, keep their digits.
    With `wide`, integers of more than 64 bits in dicts make a column of decimals, instead of an error.
    In dicts, ints and Decimals of the columns `decimals` keep their digits; they are of these types.
    """
    if isinstance(source, pa.Table):
        return with_null_columns(source), True
    if isinstance(source, OpenTable):
        return source.table, False
    if isinstance(source, pa.RecordBatch):
        return with_null_columns(pa.Table.from_batches([source])), True
    if isinstance(source, Mapping):
        return with_null_columns(table_of_columns(source, wide, time, decimals)), True
    if hasattr(source, "__arrow_c_stream__"):
        return with_null_columns(pa.table(source)), True
    if hasattr(source, "__arrow_c_array__"):
        return with_null_columns(pa.Table.from_batches([pa.record_batch(source)])), True
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        return table_of_records(source, first_event, wide, time, decimals), False
    raise DataError(
        f"cannot read events from an object of type {type(source).__name__}; give data of Arrow, pandas, polars or "
        "DuckDB, a dict of columns, or dicts (a run also reads paths)"
    )


def named(source: Any) -> tuple[Sequence[str], Any]:
    """The columns of events in memory, of dicts those of the first, and the events, of which none is lost by it."""
    if isinstance(source, Mapping):
        return list(source), source
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, (pa.Table, pa.RecordBatch)):
        source = table_of(source)[0]
    table = source.table if isinstance(source, OpenTable) else source
    if isinstance(table, (pa.Table, pa.RecordBatch)):
        return table.schema.names, source
    if not isinstance(source, Iterable) or isinstance(source, (str, bytes)):
        return (), source
    if not isinstance(source, Sequence):
        source = list(source)
    return list(source[0]) if len(source) and isinstance(source[0], Mapping) else (), source


def plain_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with the columns and types of the schema; columns that are right already are not copied."""
    check(table.select(schema.names))
    columns = [cast(table.column(field.name), field.type, field.name) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def check(data: pa.Table | pa.RecordBatch) -> None:
    """Raise DataError at text that is no UTF-8, and places beyond a dictionary."""
    try:
        validate(data)
    except pa.ArrowException as error:
        raise DataError(f"the events are not valid Arrow data: {error}") from error
