"""Where events come from: one face for files, folders, Arrow data, numpy columns and dicts.

`open_events` says what the columns are before anything is computed; `EventSource.batches` delivers the rows in time
order. Ordered input is recognised by a first pass over its time column and streamed, so memory does not grow with it;
other input is sorted (`hamlet.input.ordering`). Source: docs/language.md; docs/numbers.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import DataError, OptionError, one_of
from hamlet.frontend.time_column import TIME
from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.clocked import clocked
from hamlet.input.columns import integers, values_of
from hamlet.input.csvfile import CsvFile, Misfit
from hamlet.input.durations import Durations, is_seconds, with_durations
from hamlet.input.file_form import Dropped, FileForm
from hamlet.input.files import Leaf, key_of, leaves, open_paths, refuse_urls
from hamlet.input.files_protocol import Reader, within
from hamlet.input.folder import Folder, lacking
from hamlet.input.input_schema import plain_schema, schema_of, unreadable_column
from hamlet.input.missing import MissingColumns, missing_column
from hamlet.input.ordering import PIECE_ROWS, SPILL_ROWS, OrderCheck, SortKey, ordered_batches, sorted_batches
from hamlet.input.readers import (
    DatasetReader,
    TableReader,
    in_memory,
    is_stream,
    named,
    plain_table,
    stream_of,
    table_of,
)
from hamlet.input.row_groups import RowGroups, Useless
from hamlet.input.statistics import BoundsOf
from hamlet.input.timed import dropped_by, timed
from hamlet.input.widening import conform, is_readable
from hamlet.language.schema import Schema
from hamlet.language.zones import zone_of

Progress = Callable[[int], None]
SAMPLE_ROWS = 1000


class EventSource:
    """Events whose columns are known, to be read in time order.

    Attributes
    ----------
    name : str
        File name, or what kind of object it is; for messages.
    arrow_schema : pyarrow.Schema
        All columns in the types that `batches` gives them (`hamlet.input.widening.plain_type`; a time or order
        column of dates is a timestamp of whole seconds; the numbers of a type column that is a dictionary may be
        narrower).
    schema : hamlet.language.schema.Schema
        The same in the language's types. A column of a type that the language lacks has the type None.
    rows : int or None
        Number of events; None where only reading would tell.
    sample : pyarrow.RecordBatch or None
        The first events that were read, to explain a result by; None before.
    condition : str or None
        What all events fulfil, where some were left out (`hamlet.engine.where`).
    """

    sample: pa.RecordBatch | None = None
    condition: str | None = None
    in_order = True  # whether `batches` gives the events by time
    _check: OrderCheck | None = None  # has seen all events before the first one is given

    def __init__(self, reader: Reader, key: SortKey, schema: Schema, spill_rows: int) -> None:
        self.name = reader.name
        self.schema = schema
        self.rows = reader.rows
        self.arrow_schema = plain_schema(reader.schema, key, schema.type_column)
        self._reader = reader
        self._key = SortKey(key.time, key.order, reader.name)
        self._spill_rows = spill_rows

    def with_durations(self, names: Collection[str]) -> EventSource:
        """This source, with columns of numbers under these names as lengths in seconds; Arrow data are as they are."""
        reader, schema = self._reader, self._reader.schema
        named = [name for name in names if name in schema.names and is_seconds(schema.field(name).type)]
        if not named:
            return self
        found: Reader = Durations(reader, named)
        if isinstance(reader, TableReader) and not self.schema.closed:
            found = TableReader(reader.name, with_durations(reader.table, named))
        elif isinstance(reader, (TableReader, DatasetReader)) or is_stream(reader) or _has_parquet(reader):
            return self
        known = self.schema
        key = SortKey(self._key.time, self._key.order)
        other = schema_of(found.schema, key, known.type_column, known.clock.unit, closed=known.closed, source=self.name)
        made = EventSource(found, key, replace(other, clock=known.clock), self._spill_rows)
        made.condition = self.condition
        return made

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None, pane: int = 1
    ) -> Iterator[pa.RecordBatch]:
        """The events in (time, order) order; events that these leave equal come as they were read.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read; time, type and order column are always among the result, in the order of
            `arrow_schema`. By default all. Of dicts, an attribute that no dict has may be asked for: it is NULL.
        progress : callable, optional
            Called with the number of events delivered so far, after each batch.
        pane : int
            Ticks; a table in memory that is in order is cut between panes of so many where it can be.

        Returns
        -------
        iterator of pyarrow.RecordBatch
            At most 262,144 rows each, none empty; one schema throughout. A stream that can be read only once
            (a RecordBatchReader) gives its batches only once.

        Raises
        ------
        DataError
            If there is no such column, or its type is one that the engine cannot read; at a NULL time or order (with
            its row); and where the file turns out to be damaged.
        """
        names, absent = self._wanted(columns)
        done = 0
        for large in self._in_order(names, pane) if self.rows != 0 else ():
            for start in range(0, large.num_rows, PIECE_ROWS):
                batch = large.slice(start, PIECE_ROWS)
                for name in absent:
                    batch = batch.append_column(name, pa.nulls(batch.num_rows))
                if self.sample is None:
                    self.sample = batch.slice(0, SAMPLE_ROWS)
                yield batch
                done += batch.num_rows
                if progress is not None:
                    progress(done)
        if self.rows is None:
            self.rows = self._reader.rows  # of few events of a stream

    def ticks(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The times of a batch of these events."""
        return integers(batch.column(self.schema.clock.column), self.schema.clock.column)[0]

    def clocked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of these events with times as conditions compare them."""
        return batch

    whole = True  # whether all events of an input are there, in its order

    def as_read(self) -> Iterator[pa.RecordBatch]:
        """All columns that the language can read, in the order of the input, whatever its times are."""
        names = [field.name for field in self.arrow_schema if is_readable(field.type)]
        schema = pa.schema([self.arrow_schema.field(name) for name in names])
        if isinstance(self._reader, TableReader):
            yield from plain_table(self._reader.table, schema).to_batches()
        else:
            yield from (conform(batch, schema) for batch in self._reader.batches(names))

    def numbered(
        self, first: int | None = None, last: int | None = None
    ) -> Iterator[tuple[npt.NDArray[np.int64], pa.RecordBatch]]:
        """`as_read`, with the events' places in the input.

        Parameters
        ----------
        first, last : int, optional
            Ticks: row groups of Parquet without any time from the one to the other are not read.
        """

        def outside(bounds: BoundsOf) -> bool:
            times = bounds(self.schema.clock.column)
            return times.known and (
                (first is not None and times.most < first) or (last is not None and times.least > last)
            )

        groups = self.row_groups
        skipped = groups.leave_out(outside, "by their times") if groups.all_parquet else 0
        done = 0
        for batch in self.as_read():
            read = np.arange(done, done + batch.num_rows)
            yield (groups.places(read) if skipped else read), batch
            done += batch.num_rows

    def notes(self) -> list[str]:
        """What to know of the input: rows dropped, row groups not read, and times without the zone asked for."""
        found = [self.dropped.sentence(), self.row_groups.sentence(), *lacking(self._reader)]
        clock = self.schema.clock
        if clock.zone is not None and clock.is_timestamp and clock.type.tz is None:
            found.append(f"the times of '{clock.column}' have no time zone; they are read as UTC")
        return [each for each in found if each is not None]

    @cached_property
    def row_groups(self) -> RowGroups:
        """The row groups of the Parquet files among the input."""
        return RowGroups(self._reader, self.schema)

    def leave_out(self, useless: Useless, reason: str, columns: Sequence[str]) -> int:
        """Leave out row groups of events that nobody has a use for, if all that is known of the input is known of them.

        Parameters
        ----------
        useless : callable
            Whether statistics prove that no event of a row group is of use.
        reason : str
            Why, in a few words.
        columns : sequence of str
            What would be read.

        Returns
        -------
        int
            How many events are left out; those that `batches` would have given.
        """
        return self.row_groups.leave_out(useless, reason, columns)

    @property
    def left_out(self) -> dict[str, int]:
        """How many row groups are not read, by the reason."""
        return self.row_groups.skipped()

    @property
    def dropped(self) -> Dropped:
        """Rows that are left out because they are bad."""
        return dropped_by(self._reader)

    @property
    def misfits(self) -> dict[str, Misfit]:
        """Of columns of a declared type (`hamlet.input.file_form.FileForm`), the first value that is none of it."""
        found = (each.misfits for each in within(self._reader) if isinstance(each, CsvFile))
        return {name: misfit for each in found for name, misfit in each.items()}

    def leaves(self) -> Iterator[Leaf]:
        """The files that are read, for who opens them again."""
        return leaves(self._reader)

    def look(self, columns: Sequence[str]) -> None:
        """Find out what files lack of these columns, for `notes`; raises DataError where that is an error."""
        if isinstance(self._reader, Folder):
            self._reader.look(columns)

    def types(self) -> list[str]:
        """The types of events that are dicts; none of others, whose columns are known."""
        if self.schema.closed or not isinstance(self._reader, TableReader):
            return []
        names = (values_of(batch, self.schema.type_column) for batch in self._reader.table.to_batches())
        return list(dict.fromkeys(name for each in names for name in each))

    @property
    def repeatable(self) -> bool:
        """Whether the events can be read again."""
        return not is_stream(self._reader)

    @property
    def distinct(self) -> bool:
        """Whether no two events are known to have one time; once the first batch has been given."""
        return self._check is not None and self._check.ordered and self._check.distinct

    def _wanted(self, columns: Sequence[str] | None) -> tuple[list[str], list[str]]:
        """The columns to read, in the schema's order, and those that no dict has."""
        names = self.arrow_schema.names
        if columns is None:
            columns = [field.name for field in self.arrow_schema if is_readable(field.type)]
        wanted = {*columns, self._key.time, self.schema.type_column} | ({self._key.order} - {None})
        missing = [name for name in dict.fromkeys(columns) if name not in names]
        if missing and self.schema.closed:
            raise DataError(f"{self.name}: {missing_column(missing[0], names)}")
        for name in names:
            if name in wanted and not is_readable(self.arrow_schema.field(name).type):
                raise DataError(f"{self.name}: {unreadable_column(name, self.arrow_schema.field(name).type)}")
        present = [name for name in names if name in wanted]
        if self.schema.type_column not in names and self.schema.type_column not in missing:
            missing.append(self.schema.type_column)
        return present, missing

    def _in_order(self, names: list[str], pane: int) -> Iterator[pa.RecordBatch]:
        reader = self._reader
        schema = pa.schema([self.arrow_schema.field(name) for name in names])
        if isinstance(reader, TableReader):
            narrow = _narrow_types(reader.table, schema, self.schema.type_column)
            if self._check is None or (self._check.ordered and self._check.rows < reader.table.num_rows):
                self._check = OrderCheck(self._key)  # else the table has been looked at before
            return sorted_batches(plain_table(reader.table, narrow), self._key, pane=pane, check=self._check)
        plain = (conform(batch, schema) for batch in reader.batches(names))
        if not is_stream(reader) and self._is_ordered():
            return plain
        return ordered_batches(plain, schema, self._key, self._spill_rows)

    def _is_ordered(self) -> bool:
        """The first pass: whether the rows are in order, by their keys alone."""
        if self._reader.ordered is not None:
            return self._reader.ordered
        self._check = check = OrderCheck(self._key)
        for batch in self._reader.batches(self._key.names):
            check.feed(batch)
            if not check.ordered:
                return False
        return True


class SomeEvents(EventSource):
    """Events of another source, of which some are left out.

    Parameters
    ----------
    source : EventSource
    """

    whole = False

    def __init__(self, source: EventSource) -> None:
        self.name, self.schema, self.arrow_schema = source.name, source.schema, source.arrow_schema
        self.rows, self._source, self.in_order = source.rows, source, source.in_order

    def _without(self, rows: int) -> None:
        """So many events are known not to come."""
        if self.rows is not None:
            self.rows -= rows

    def with_durations(self, names: Collection[str]) -> EventSource:  # noqa: ARG002
        """This source: the one behind it has its durations before something is left out."""
        return self

    @property
    def row_groups(self) -> RowGroups:
        """Those of the other source."""
        return self._source.row_groups

    @property
    def repeatable(self) -> bool:
        """Whether the other source can be read again."""
        return self._source.repeatable

    @property
    def dropped(self) -> Dropped:
        """Those of the other source."""
        return self._source.dropped

    @property
    def misfits(self) -> dict[str, Misfit]:
        """Those of the other source."""
        return self._source.misfits

    def ticks(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The times of a batch of these events."""
        return self._source.ticks(batch)

    def clocked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch of these events with times as conditions compare them."""
        return self._source.clocked(batch)

    def types(self) -> list[str]:
        """The event types that occur, where the other source knows."""
        return self._source.types()

    def notes(self) -> list[str]:
        """What is odd about the input."""
        return self._source.notes()


class OpenOptions(TypedDict, total=False):
    """The options of `open_events`, by name."""

    time_column: str
    type_column: str
    order_column: str | None
    time_unit: str
    timezone: str | None
    input_format: str | None
    delimiter: str | None
    bad_rows: str
    missing_columns: MissingColumns | None
    texts: tuple[str, ...]
    spill_rows: int
    wide_integers: bool
    whole_seconds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How events are read; `open_events` says what each option means."""

    time_column: str = TIME
    type_column: str = "type"
    order_column: str | None = None
    time_unit: str = "s"
    timezone: str | None = None
    input_format: str | None = None
    delimiter: str | None = None
    bad_rows: str = "error"
    missing_columns: MissingColumns | None = None
    texts: tuple[str, ...] = ()
    spill_rows: int = SPILL_ROWS
    wide_integers: bool = False
    whole_seconds: bool = False

    def __post_init__(self) -> None:
        time, order, unit = self.time_column, self.order_column, self.time_unit
        if unit not in UNITS_PER_SECOND:
            raise OptionError(f"time unit {unit!r} is unknown; it must be {one_of(tuple(UNITS_PER_SECOND))}")
        if self.timezone is not None:
            zone_of(self.timezone)
        if order is not None and order == time:
            raise OptionError(f"the order column is the time column ({time!r}); it must be another one, or none")

    @property
    def form(self) -> FileForm:
        """How files are read."""
        return FileForm(
            self.delimiter,
            self.bad_rows,
            missing_columns=self.missing_columns,
            texts=self.texts,
            whole_seconds=self.whole_seconds,
        )


def open_events(source: Any, **options: Unpack[OpenOptions]) -> EventSource:
    """Open events of any form.

    Parameters
    ----------
    source : path, pyarrow Table, RecordBatch or RecordBatchReader, dict of columns, iterable of dicts, EventSource
        Paths are Parquet, CSV or JSON lines, a folder of such files, a pattern (``logs/*.csv``) or a list of these;
        folders named ``day=2024-03-05`` are columns. A dict maps names to numpy arrays or lists.
        Anything else that exports an Arrow stream (``__arrow_c_stream__``: polars, duckdb and others) is read once.
        Times may be integers, timestamps, seconds with a fraction, or text of these (`hamlet.input.moments`).
        An EventSource comes back as it is.
    time_column, type_column, order_column : str
        Names of the columns; where there is no ``time``, by default `hamlet.frontend.time_column` has the rule; without
        an order column events of equal time are unordered.
    time_unit : {'s', 'ms', 'us', 'ns'}
        What one step of an integer time column means; timestamps carry their own unit.
    timezone : str, optional
        Where windows of days and weeks begin at midnight (`hamlet.planner.timeline`).
    input_format : {'parquet', 'csv', 'json'}, optional
        The format of a file; by default its extension says.
    delimiter : str, optional
        What separates the fields of CSV; by default the header tells.
    bad_rows : {'error', 'drop'}
        What becomes of rows without a time, CSV rows with too many or too few fields, and lines that are no JSON object
        or have a value of another kind than the attribute had before.
    missing_columns : {'error', 'null'}, optional
        What becomes of a column that one of several files lacks; by default an error in CSV, NULL in other formats.
    texts : tuple of str
        Columns of CSV that are text, whatever their values look like.
    spill_rows : int
        How many rows of disordered files and streams are sorted in memory at once.
    wide_integers : bool
        Whether integers of more than 64 bits in dicts make a column of decimals, instead of an error.
    whole_seconds : bool
        Whether times of text that are whole seconds throughout count seconds, in place of microseconds.

    Raises
    ------
    DataError
        If the source cannot be read, lacks a column, or has a time or type column of a wrong type.
    OptionError
        If an option has a wrong value, or the format of a file cannot be told.
    """
    if isinstance(source, EventSource):
        return source
    chosen = SourceOptions(**options)
    key, reader, closed = reader_of(source, SortKey(chosen.time_column, chosen.order_column), chosen, chosen.form)
    schema = schema_of(
        reader.schema,
        key,
        chosen.type_column,
        chosen.time_unit,
        closed=closed,
        empty=reader.rows == 0,
        source=reader.name,
    )
    return EventSource(reader, key, schema.in_zone(chosen.timezone), chosen.spill_rows)


def reader_of(source: Any, key: SortKey, options: SourceOptions, form: FileForm) -> tuple[SortKey, Reader, bool]:
    """The key with the time column that the source has, a reader of it, and whether its columns are all there are."""
    type_column, input_format = options.type_column, options.input_format
    refuse_urls(source)
    paths = [source] if isinstance(source, (str, os.PathLike)) else source
    if isinstance(paths, (list, tuple)) and paths and all(isinstance(each, (str, os.PathLike)) for each in paths):
        reader = open_paths([Path(each) for each in paths], key, type_column, input_format, form)
        return key_of(reader, key), reader, reader.rows != 0 or bool(reader.schema.names)
    if type(source).__module__ == "pyarrow._dataset" and not hasattr(source, "schema"):
        source = source.to_reader()  # of a scanner
    if type(source).__module__ == "pyarrow._dataset":  # whose import brings much that nothing else needs
        key = key.among(source.schema.names)
        dataset = clocked(DatasetReader(source), key.time, form.written_times)
        return key, timed(dataset, key) if form.drops else dataset, True
    if type(source).__module__.startswith("polars") and hasattr(source, "collect"):
        source = source.collect()
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, (pa.Table, pa.RecordBatch)):
        in_memory_already = type(source).__module__.partition(".")[0] in ("pandas", "polars")
        try:
            stream = pa.RecordBatchReader.from_stream(source)
            if not in_memory_already:
                key = key.among(stream.schema.names)
                return key, stream_of(stream, key, options.time_unit, form), True
            source = stream.read_all()
        except (pa.ArrowException, TypeError, ValueError) as error:
            said = "; ".join(map(str, error.args))  # of pandas, what and where
            raise DataError(f"cannot read the {type(source).__name__} as an Arrow stream: {said}") from error
    names, source = named(source)
    key = key.among(names)
    table, closed = table_of(source, wide=options.wide_integers, time=key.time)
    return key, in_memory("the table" if closed else "the events", table, key, options.time_unit, form), closed


def _has_parquet(reader: Reader) -> bool:
    """Whether some of the columns come with types of their own."""
    return any(leaf.is_parquet for leaf in leaves(reader))


def _narrow_types(table: pa.Table, schema: pa.Schema, name: str) -> pa.Schema:
    """The schema with the type column as it is, where it is a dictionary in one piece: no batch needs wider numbers."""
    place = schema.get_field_index(name)
    if place < 0 or not pa.types.is_dictionary(schema.field(place).type) or table.column(name).num_chunks != 1:
        return schema
    kind = table.column(name).type
    if not pa.types.is_dictionary(kind) or not kind.value_type.equals(schema.field(place).type.value_type):
        return schema
    return schema.set(place, schema.field(place).with_type(kind))
