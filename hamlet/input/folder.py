"""Several files of events as one: what each has of the columns of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.csvfile import CsvFile
from hamlet.input.files_protocol import Reader, within
from hamlet.input.hive import InFolders
from hamlet.input.missing import FileColumns, finding, missing_column, refusal
from hamlet.input.missing import lacking as lacking_in
from hamlet.input.ordering import SortKey
from hamlet.input.widening import conform, merged_schema


def columns_of(reader: Reader) -> FileColumns:
    """What a file is called, and which columns it has, those that its folders say among them."""
    inner: Reader = reader.reader if isinstance(reader, InFolders) else reader
    return FileColumns(reader.name, reader.schema.names, isinstance(inner, CsvFile))


def own_columns(reader: Reader, columns: Sequence[str], missing: str | None = None) -> list[str]:
    """The columns that a file has of those that its folder has; the others are NULL there.

    Parameters
    ----------
    reader : Reader
    columns : sequence of str
    missing : {'error', 'null'}, optional
        What becomes of the others, as of `hamlet.input.missing.lacking`.

    Raises
    ------
    DataError
        If it lacks one and must not, or if it has none of them.
    """
    own = [column for column in columns if column in reader.schema.names]
    file = columns_of(reader)
    if len(own) < len(columns) and (missing == "error" or (missing is None and file.has_header)):
        absent = next(column for column in columns if column not in own)
        raise DataError(refusal(file, absent, None))
    if not own and columns:
        raise DataError(f"{reader.name} has none of the columns {', '.join(columns)}")
    return own


class Folder:
    """Files with one schema, read one after the other.

    Names are case-sensitive. Where a Parquet file or JSON lines lack a column it is NULL, and a note says so; a CSV
    file must have all that are read, or its header may be wrong. `missing` says otherwise.

    Parameters
    ----------
    name : str
    readers : sequence of Reader
    clock : str, optional
        The time column.
    missing : {'error', 'null'}, optional
    reads : callable
        Which columns somebody reads; others may be of any type, and come in none.

    Attributes
    ----------
    lacking : dict of (str, str) to int
        Events, by file and column that it lacks, of those read so far.
    """

    ordered: bool | None = None

    def __init__(
        self,
        name: str,
        readers: Sequence[Reader],
        clock: str | None = None,
        missing: str | None = None,
        reads: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.name = name
        self.readers = readers
        self.lacking: dict[tuple[str, str], int] = {}
        found = [(each.name, [f if reads(f.name) else f.with_type(pa.null()) for f in each.schema]) for each in readers]
        self.schema: pa.Schema = merged_schema([(name, pa.schema(fields)) for name, fields in found], clock)
        self._clock = clock if clock in self.schema.names else None
        for each in readers:
            if self._clock is not None and each.schema.names and self._clock not in each.schema.names:
                raise DataError(f"{each.name}: {missing_column(self._clock, each.schema.names, 'time')}")
        counts = [reader.rows for reader in readers]
        self.rows: int | None = None if None in counts else sum(count or 0 for count in counts)
        self._missing = missing

    def look(self, columns: Sequence[str]) -> None:
        """Find what files lack of these columns, before any of their rows are read.

        Raises
        ------
        DataError
            With all of it, where it is an error.
        """
        rows = {reader.name: reader.rows for reader in self.readers}
        files = [columns_of(reader) for reader in self.readers if reader.schema.names]  # else all its lines are bad
        for file, column in lacking_in(files, columns, self._missing):
            self.lacking[file.name, column] = rows[file.name] or 0

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of all files, in the order of the file names."""
        self.look(columns)
        for reader in self.readers:
            if reader.schema.names:
                yield from self.rows_of(reader, columns)

    def rows_of(self, reader: Reader, columns: Sequence[str], as_is: str | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a file with all columns, of which one may keep the type that it has there."""
        schema = pa.schema([self.schema.field(column) for column in columns])
        own = own_columns(reader, columns, "null")
        lacks = [(reader.name, column) for column in columns if column not in own]
        count = 0
        key = None if self._clock is None else SortKey(self._clock, source=reader.name)
        for batch in reader.batches(own):
            if key is not None:
                key.refuse_nulls(batch, count)
            count += batch.num_rows
            self.lacking.update(dict.fromkeys(lacks, count))
            if as_is is not None:
                schema = schema.set(schema.get_field_index(as_is), batch.schema.field(as_is))
            yield conform(batch, schema)


def lacking(reader: Reader) -> list[str]:
    """What files lack that others have, in sentences."""
    found = (each.lacking for each in within(reader) if isinstance(each, Folder))
    return [finding(name, column, rows) for each in found for (name, column), rows in each.items()]
