"""Files of events as batches in the order of input, for a specification: text is read as the inputs' types.

Other than for queries, a type column may be missing, times may be fractions of seconds, and in CSV ``#`` or nothing
means that an event has no value (in a column of text only ``#``).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from hamlet.errors import DataError, similar_file
from hamlet.frontend.time_column import TIME, time_column_in
from hamlet.input.buffers import from_texts, scalar
from hamlet.input.csvform import CsvForm, Dropped, repeated_column, told_better, uneven_row
from hamlet.input.events import EventSource
from hamlet.input.files import ParquetFile, check_first_bytes, event_files, matching, refuse_urls, root_of
from hamlet.input.formats import format_of
from hamlet.input.hive import values_in
from hamlet.input.input_schema import schema_of
from hamlet.input.json_line import all_blank, brief, object_of
from hamlet.input.moments import no_times
from hamlet.input.ordering import SortKey
from hamlet.input.period import leave_out_period, period_of
from hamlet.input.row_groups import RowGroups
from hamlet.input.widening import widen
from hamlet.streams.clock import Times
from hamlet.streams.feeds import Feed
from hamlet.streams.merged import FolderColumns, MergedFeed
from hamlet.streams.monitor import time_column_of
from hamlet.streams.program import ir
from hamlet.streams.tables import table_of_events

_BLOCK = 1 << 22
_CHUNK = 65_536
_MARK = b"\xef\xbb\xbf"  # what UTF-8 text may begin with
_NO_TYPE = "\0"  # stands for the column of event types, which need not be there
_NO_TIME = from_texts(["", "#"])  # fields of a CSV file that hold no time
_FITTING = (pa.null(), pa.int64(), pa.bool_(), pa.float64())  # of columns that no input declares; others are text
TYPES = {"Int": pa.int64(), "UInt": pa.uint64(), "Float": pa.float64(), "Bool": pa.bool_(), "String": pa.string()}


class _Memory(Feed):
    def __init__(self, source: Any, inputs: Sequence[ir.Stream], time_column: str | None) -> None:
        table, self.closed = table_of_events(source, inputs, time_column)
        self.name = "the table" if self.closed else "the events"
        self.rows, self.names = table.num_rows, table.schema.names
        self._table = table

    @property
    def types(self) -> Mapping[str, pa.DataType | None] | None:
        return _types(self._table.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._table.to_batches(_CHUNK * 4):
            if batch.num_rows:
                yield batch


class _Source(Feed):
    """Events of an `EventSource`, which are in order already."""

    def __init__(self, source: EventSource) -> None:
        self.name, self.rows, self.names = source.name, source.rows, source.arrow_schema.names
        self._source = source

    @property
    def types(self) -> Mapping[str, pa.DataType | None] | None:
        return _types(self._source.arrow_schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._source.batches()

    def notes(self) -> list[str]:
        return self._source.notes()


class _Arrow(Feed):
    """An Arrow stream, read once."""

    def __init__(self, reader: pa.RecordBatchReader) -> None:
        self.name, self.names, self._reader = "the Arrow stream", reader.schema.names, reader

    @property
    def types(self) -> Mapping[str, pa.DataType | None] | None:
        return _types(self._reader.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._reader:
                if batch.num_rows:
                    yield batch
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"the Arrow stream broke off: {error}") from error


class _Parquet(Feed):
    def __init__(self, path: Path, inputs: Sequence[ir.Stream], time_column: str | None) -> None:
        self._file = ParquetFile(path)
        self.name, self.rows, self.names = str(path), self._file.rows, self._file.schema.names
        time = time_column_of(list(self.names), time_column, self.name)
        self._time = time
        self._groups: RowGroups | None = None
        wanted = {each.name for each in inputs} | {time}
        self._columns = [name for name in self.names if name in wanted]

    @property
    def types(self) -> Mapping[str, pa.DataType | None] | None:
        return _types(self._file.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._file.batches(self._columns)

    def leave_out_period(self, since: Any, until: Any, time_unit: str) -> None:
        field = self._file.schema.field(self._time)
        if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type):
            columns = pa.schema([field, pa.field(_NO_TYPE, pa.string())])
            schema = schema_of(columns, SortKey(self._time, None), _NO_TYPE, time_unit, source=self.name)
            self._groups = RowGroups(self._file, schema)
            leave_out_period(self._groups, period_of(since, until, schema.clock), schema.clock)

    def notes(self) -> list[str]:
        said = None if self._groups is None else self._groups.sentence()
        return [] if said is None else [said]


class _Csv(Feed):
    has_header = True

    def __init__(self, path: Path, inputs: Sequence[ir.Stream], time_column: str | None, form: CsvForm) -> None:
        self.name, self._path = str(path), path
        self._form, self._mark = form, form.of(path)
        self._dropped = Dropped()
        with self._open(None) as reader:
            schema = reader.schema
        found = [name for name in schema.names if name]  # spreadsheets give empty columns
        self._real = {name.strip(): name for name in found}
        if len(self._real) < len(found):
            raise DataError(f"{self.name}: {repeated_column([name.strip() for name in found])}")
        self.names = list(self._real)
        self._guessed = {name: schema.field(real).type for name, real in self._real.items()}
        self._time = time_column_of(self.names, time_column, self.name)
        self._inputs = [each for each in inputs if each.name in self._real]

    @property
    def types(self) -> Mapping[str, pa.DataType | None] | None:
        return dict.fromkeys(self._real)

    @property
    def dropped(self) -> Dropped:
        return self._dropped

    def settled(self, is_read: Callable[[str], bool]) -> pa.Schema:
        return pa.schema([(name, self._first_fitting(name)) for name in self._real if is_read(name)])

    def _first_fitting(self, name: str) -> pa.DataType:
        """The first type that holds for all values of a column, from the one on that its first block looks like."""
        guess = self._guessed[name]
        for kind in _FITTING[_FITTING.index(guess) :] if guess in _FITTING else ():
            if kind == guess or widen(guess, kind) is not None:
                try:
                    for _ in self._read({self._real[name]: kind}):
                        pass
                    return kind
                except DataError:
                    continue
        return pa.string()

    def _bad(self, row: pa_csv.InvalidRow) -> str:
        self._dropped.add(uneven_row(row.actual_columns, row.expected_columns, row.text))
        return "skip"

    def unreadable(self) -> dict[str, str]:
        """Each column is read alone, so that all that is wrong is known at once."""
        found = {}
        for each in self._inputs:
            if each.name == self._time or not isinstance(each.type, ir.Scalar):
                continue
            try:
                next(self._read({self._real[each.name]: TYPES[each.type.family]}), None)
            except DataError as error:
                value = re.search(r"invalid value '(.*)'$", str(error).split("\n", 1)[0])
                found[each.name] = "its column cannot be read so" if value is None else f"its column holds '{value[1]}'"
        return found

    def _open(self, columns: dict[str, pa.DataType] | None, threads: bool = True) -> Any:
        try:
            stream = pa.input_stream(str(self._path), compression="detect")
            return pa_csv.open_csv(
                stream,
                read_options=pa_csv.ReadOptions(block_size=_BLOCK, use_threads=threads),
                parse_options=pa_csv.ParseOptions(
                    delimiter=self._mark,
                    newlines_in_values=True,
                    invalid_row_handler=self._bad if self._form.drops else None,
                ),
                convert_options=pa_csv.ConvertOptions(
                    column_types=columns or {},
                    include_columns=list(columns) if columns else None,
                    null_values=["", "#"],
                    strings_can_be_null=False,
                ),
            )
        except pa.ArrowInvalid as error:
            if not threads:
                raise
            raise self._unreadable(error, columns) from error
        except OSError as error:
            raise DataError(f"cannot read {self.name}: {error.strerror or error}") from error

    def _unreadable(self, error: pa.ArrowInvalid, columns: dict[str, pa.DataType] | None) -> DataError:
        """Arrow's complaint, with the line, and with the name of the column in place of its number."""
        said = str(error)
        try:
            for _ in self._open(columns, threads=False):  # only a single thread knows the lines of its errors
                pass
        except pa.ArrowInvalid as again:
            said = str(again)
        row = re.search(r"Row #(\d+): ", said)
        file = self.name if row is None else f"{self.name}:{row[1]}"
        said = said if row is None else said.replace(row[0], "")
        place = re.search(r"In CSV column #(\d+): ", said)
        if place is None or columns is None:
            said = told_better(said.removeprefix("CSV parse error: "), None if row is None else int(row[1]))
            return DataError(f"{file}: {said}")
        names = self.names or []  # Arrow counts the columns of the file, not those that are read
        which = names[int(place[1])] if int(place[1]) < len(names) else f"#{place[1]}"
        return DataError(
            f"{file}: column {which!r}: {said.replace(place[0], '')}\n"
            "hint: a column holds values of its input's type; '#' or nothing says that an event has none"
        )

    def _read(self, columns: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
        with self._open(columns) as reader:
            try:
                for batch in reader:
                    if batch.num_rows:
                        yield batch
            except pa.ArrowInvalid as error:
                raise self._unreadable(error, columns) from error
            except OSError as error:
                raise DataError(f"cannot read {self.name}: {error}") from error

    def survey(self, times: Times) -> None:
        """A first pass over the times: fractions may come late."""
        real = self._real[self._time]
        for batch in self._read({real: pa.string()}):
            column = batch.column(0)
            column = column.filter(pc.invert(pc.is_in(column, _NO_TIME)))
            times.survey(column.filter(_are_times(column)) if self._form.drops else column)

    def batches(self) -> Iterator[pa.RecordBatch]:
        self._dropped = Dropped()  # each row that is left out counts in each pass
        columns = {self._real[self._time]: pa.string()}
        for each in self._inputs:
            if each.name != self._time:
                kind = each.type
                columns[self._real[each.name]] = TYPES[kind.family] if isinstance(kind, ir.Scalar) else pa.string()
        back = {real: name for name, real in self._real.items()}
        for batch in self._read(columns):
            if self._form.drops:
                batch = self._with_times(batch)
                if not batch.num_rows:
                    continue
            arrays = [without_marks(column) for column in batch.columns]
            yield pa.RecordBatch.from_arrays(arrays, [back[name] for name in batch.schema.names])

    def _with_times(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that have a time."""
        texts = batch.column(batch.schema.get_field_index(self._real[self._time]))
        times = pc.if_else(pc.is_in(texts, _NO_TIME), None, texts)
        good = _are_times(times)
        for row in pc.indices_nonzero(pc.invert(good)).to_pylist():
            self._dropped.add(without_time(self._time, times[row].as_py()))
        return batch.filter(good) if good.false_count else batch


def _are_times(texts: pa.Array) -> pa.BooleanArray:
    """Which texts are times."""
    good = np.array(texts.is_valid())
    good[no_times(pa.chunked_array([texts]))] = False
    return pa.array(good)


def without_time(name: str, value: Any) -> str:
    """What is wrong with an event whose time is this value."""
    return f"there is no {name}" if value is None else f"{name} is {brief(value)}, which is no time"


def without_marks(column: pa.Array) -> pa.Array:
    """``#`` in a text means that there is no value."""
    if not pa.types.is_string(column.type):
        return column
    marks = pc.equal(column, scalar("#"))
    return pc.if_else(marks, pa.scalar(None, pa.string()), column) if pc.any(marks).as_py() else column


class _Json(Feed):
    """JSON lines."""

    closed = False

    def __init__(self, path: Path, inputs: Sequence[ir.Stream], time_column: str | None, form: CsvForm) -> None:
        self.name, self._path, self._inputs, self._time = str(path), path, inputs, time_column
        self._drops, self._dropped = form.drops, Dropped()

    @property
    def dropped(self) -> Dropped:
        return self._dropped

    def batches(self) -> Iterator[pa.RecordBatch]:
        first, waiting = 0, []
        self._dropped = Dropped()
        for row in itertools.chain(self._objects(), [None]):
            waiting += [] if row is None else [row]
            if waiting and (row is None or len(waiting) == _CHUNK):
                waiting = self._with_times(waiting) if self._drops else waiting
                yield from table_of_events(waiting, self._inputs, self._time, first)[0].to_batches() if waiting else ()
                first, waiting = first + len(waiting), []

    def _with_times(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The rows that have a time."""
        name = next(filter(None, (time_column_in(row, self._time) for row in rows)), self._time or TIME)
        values = [row.get(name) for row in rows]
        texts = _are_times(pa.array([each if isinstance(each, str) else None for each in values], pa.string()))
        found = []
        for row, value, is_time in zip(rows, values, texts.to_pylist(), strict=True):
            if is_time or (isinstance(value, (int, float)) and not isinstance(value, bool)):
                found.append(row)
            else:
                self._dropped.add(without_time(name, value))
        return found

    def survey(self, times: Times) -> None:
        """A first pass that looks for a time with a fraction, which may come late."""
        name = re.escape(json.dumps(times.column, ensure_ascii=False).encode())
        fraction = re.compile(name + rb'\s*:\s*"?-?\d+[.eE]')
        for block in self._blocks():
            for line in block.split(b"\n") if fraction.search(block) else ():
                if fraction.search(line):
                    with contextlib.suppress(ValueError):
                        found = pa.array([str(object_of(line).get(times.column))])
                        times.survey(found.filter(_are_times(found)))
                    if times.clock is not None:
                        return

    def _objects(self) -> Iterator[dict[str, Any]]:
        lines = (line for block in self._blocks() for line in block.split(b"\n"))
        empty = True
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            empty = False
            try:
                found = object_of(line)
            except ValueError as error:
                if not self._drops:
                    raise DataError(f"{self.name}:{number}: {error}") from None
                self._dropped.add(f"line {number}: {error}")
            else:
                yield found
        if empty:
            raise DataError(all_blank(self.name))

    def _blocks(self) -> Iterator[bytes]:
        """Pieces of the file of whole lines, without the line break at the end of each."""
        try:
            with pa.input_stream(str(self._path), compression="detect") as raw:
                rest, read = b"", raw.read(_BLOCK).removeprefix(_MARK)
                while read:
                    whole, mark, rest = (rest + read).rpartition(b"\n")
                    if mark:
                        yield whole
                    read = raw.read(_BLOCK)
                if rest:
                    yield rest
        except OSError as error:
            raise DataError(f"cannot read {self.name}: {error.strerror or error}") from error


def _types(schema: pa.Schema) -> dict[str, pa.DataType | None]:
    return dict(zip(schema.names, schema.types, strict=True))


def open_feed(
    source: Any,
    inputs: Sequence[ir.Stream],
    *,
    time_column: str | None = None,
    input_format: str | None = None,
    form: CsvForm | None = None,
) -> Feed:
    """Open events of any form.

    Parameters
    ----------
    source : path, pyarrow data, dict of columns, iterable of dicts, EventSource, or anything that exports Arrow data
        A path is a file, a folder of files or a pattern (``logs/*.csv``), or a list of these: merged by time. Folders
        named ``day=2024-03-05`` are columns.
    inputs : sequence of ir.Stream
        What is read.
    time_column : str, optional
    input_format : {'parquet', 'csv', 'json'}, optional
    form : CsvForm, optional
        How text is read. Bad rows are CSV rows with too many or too few fields or no time, and lines that are no JSON
        object.

    Raises
    ------
    DataError
        If it cannot be read, or has no time column.
    OptionError
        If the format of a file cannot be told.
    """
    refuse_urls(source)
    if isinstance(source, (Feed, EventSource)):
        return source if isinstance(source, Feed) else _Source(source)
    listed = source if isinstance(source, (list, tuple)) else [source]
    if listed and all(isinstance(each, (str, Path, FoundFile)) for each in listed):
        return _open_paths(listed, inputs, time_column, input_format, form or CsvForm())
    if isinstance(source, pa.RecordBatchReader):
        return _Arrow(source)
    if type(source).__module__.startswith("polars") and hasattr(source, "collect"):
        source = source.collect()
    in_memory = isinstance(source, (pa.Table, pa.RecordBatch))
    if hasattr(source, "__arrow_c_stream__") and not in_memory:
        return _Arrow(pa.RecordBatchReader.from_stream(source))
    return _Memory(source, inputs, time_column)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, and the values of the columns that its folders say, None for NULL."""

    path: Path
    values: Mapping[str, str | None]


def found_files(path: Path) -> Iterator[FoundFile]:
    """The files that a path means: a file, a folder of files or a pattern."""
    several = [path] if path.is_dir() else matching(path)
    if not several:
        yield FoundFile(path, {})
    for each in several:
        for file in event_files(each):
            yield FoundFile(file, values_in(file, root_of(path)))


def _open_paths(
    paths: Sequence[str | Path | FoundFile],
    inputs: Sequence[ir.Stream],
    time_column: str | None,
    input_format: str | None,
    form: CsvForm,
) -> Feed:
    feeds = []
    for path in paths:
        for each in [path] if isinstance(path, FoundFile) else found_files(Path(path)):
            feed = _open_file(each.path, inputs, time_column, input_format, form)
            feeds.append(FolderColumns(feed, each.values) if each.values else feed)
    if len(feeds) == 1:
        return feeds[0]
    shown = str(paths[0]) if len(paths) == 1 else f"{feeds[0].name} and {len(feeds) - 1} more"
    return MergedFeed(feeds, shown, inputs, time_column=time_column, missing=form.missing_columns)


def _open_file(
    path: Path, inputs: Sequence[ir.Stream], time_column: str | None, input_format: str | None, form: CsvForm
) -> Feed:
    if not path.exists():
        raise DataError(f"no such file: {path}{similar_file(path)}")
    kind = format_of(path, input_format)
    try:
        check_first_bytes(path, kind)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    if kind == "parquet":
        return _Parquet(path, inputs, time_column)
    return _Csv(path, inputs, time_column, form) if kind == "csv" else _Json(path, inputs, time_column, form)
