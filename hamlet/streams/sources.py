"""Events for a specification: in the order of the input, with values that are what its inputs are declared to be.

Queries and policies have events sorted by time, and find out what a column of text holds. Here an event that comes too
late is told, a type column may be missing, and in CSV ``#`` or nothing means that an event has no value (in a column of
text only ``#``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.frontend.time_column import TIME, time_column_in
from hamlet.input.clocked import batch_of
from hamlet.input.events import EventSource, Progress, SourceOptions, reader_of
from hamlet.input.file_form import FileForm
from hamlet.input.files import Leaf
from hamlet.input.files_protocol import Reader
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import SPILL_ROWS, SortKey, ordered_batches
from hamlet.input.period import PeriodEvents
from hamlet.input.readers import OpenTable
from hamlet.input.widening import FRACTION, attribute_type, cast, conform
from hamlet.language.schema import Clock, Schema
from hamlet.streams.clock import clock_of_type
from hamlet.streams.program import ir
from hamlet.streams.tables import table_of_events

TYPES = {"Int": pa.int64(), "UInt": pa.uint64(), "Float": pa.float64(), "Bool": pa.bool_(), "String": pa.string()}
NULLS = ("", "#")  # in CSV, that an event has no value


class StreamEvents(EventSource):
    """Events in the order of the input, but where an order column asks for another one.

    Parameters
    ----------
    reader : Reader
    key : SortKey
    schema : Schema
    inputs : sequence of ir.Stream
        What is read; their columns come as they are, others in plain types.
    """

    in_order = False

    def __init__(self, reader: Reader, key: SortKey, schema: Schema, inputs: Sequence[ir.Stream]) -> None:
        super().__init__(reader, key, schema, SPILL_ROWS)
        self._inputs = [each.name for each in inputs]

    def batches(
        self,
        columns: Sequence[str] | None = None,
        *,
        progress: Progress | None = None,
        pane: int = 1,  # noqa: ARG002
    ) -> Iterator[pa.RecordBatch]:
        """The events, at least one a batch.

        Parameters
        ----------
        columns : sequence of str, optional
            What is read; an input that is no column is left out.
        progress : callable, optional
            Called with the number of events so far, after each batch.
        pane : int
            Of no meaning here.

        Raises
        ------
        DataError
            At values of text that are none of an input's type; and as `EventSource.batches`.
        """
        if self.misfits:
            said = [
                f"{each.place}: column {name!r}: {each.value!r} is no {each.kind}"
                for name, each in self.misfits.items()
            ]
            hint = "hint: a column holds values of its input's type; '#' or nothing says that an event has none"
            raise DataError("\n".join([*said, hint]))
        known = self._reader.schema
        asked = {*(self._inputs if columns is None else columns), *self._key.names}
        schema = pa.schema([field for field in known if field.name in asked])
        own = {*self._inputs, *self._key.names}
        plain = [self.arrow_schema.field(name) for name in schema.names if name not in own]
        rows: Iterator[pa.RecordBatch] = filter(len, self._reader.batches(schema.names))
        if self._key.order is not None:
            rows = ordered_batches((conform(batch, schema) for batch in rows), schema, self._key)
        done = 0
        for batch in rows:
            for field in plain:
                place = batch.schema.get_field_index(field.name)
                if not batch.schema.field(place).type.equals(field.type):
                    batch = batch.set_column(place, field, cast(batch.column(place), field.type, field.name))
            yield batch
            done += batch.num_rows
            if progress is not None:
                progress(done)

    def ticks(self, batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The times of a batch, which may have them as they are written."""
        times = self.clocked(batch.select([self.schema.clock.column]))
        return SortKey(self.schema.clock.column, source=self.name).columns_of(times)[0]

    def clocked(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch with times in place of how they are written."""
        clock = self.schema.clock
        return batch_of(batch, clock.column, clock.type, 0, self.name) if clock.column in batch.schema.names else batch


def open_stream(
    source: Any,
    inputs: Sequence[ir.Stream],
    *,
    where: str | None = None,
    since: Any = None,
    until: Any = None,
    time_column: str | None = None,
    order_column: str | None = None,
    time_unit: str = "s",
    input_format: str | None = None,
    form: FileForm | None = None,
) -> EventSource:
    """Open events of any form, of which those count that fulfil a condition and lie in a period.

    Parameters
    ----------
    source : path, pyarrow data, dict of columns, iterable of dicts, EventSource, or anything that exports Arrow data
        As of `hamlet.input.events.open_events`; several files are merged by time, and events are not sorted. A `Leaf`
        is one of these files.
    inputs : sequence of ir.Stream
        What is read.
    where : str, optional
        A condition over columns.
    since, until : optional
        The first time that counts, and the first that does not any more.
    time_column, input_format : str, optional
    order_column : str, optional
        What orders events of one time; then the events are sorted.
    time_unit : {'s', 'ms', 'us', 'ns'}
    form : FileForm, optional
        How files are read; what is declared and read, the inputs say.

    Raises
    ------
    DataError
        If it cannot be read, or has no time column.
    OptionError
        If the format of a file cannot be told.
    WorkloadError
        With every mistake of the condition.
    """
    if not isinstance(source, EventSource):
        options = SourceOptions(
            type_column="",
            order_column=order_column,
            time_unit=time_unit,
            input_format=input_format,
            wide_integers=True,
        )
        key = SortKey(time_column or TIME, order_column)
        read = _form_of(form or FileForm(), inputs, where, key)
        if _is_plain(source):
            more = lambda name: name == order_column or read.reads(name)  # noqa: E731
            table, closed = table_of_events(source, inputs, time_column, more=more)
            source = table if closed else OpenTable(table)
        leaf = source if isinstance(source, Leaf) else None
        key, reader, closed = reader_of(source if leaf is None else leaf.path, key, options, read)
        if leaf is not None and leaf.folders is not None:
            reader = leaf.folders.again(reader)
        schema = _schema_of(reader, key, time_unit, closed, inputs)
        source = StreamEvents(reader, key, schema, inputs)
    events: EventSource = source if since is None and until is None else PeriodEvents(source, since, until)
    if where is None:
        return events
    from hamlet.engine.where import chosen_events  # brings in the language of queries

    return chosen_events(events, None, None, where)


def open_by_name(source: Any, inputs: Sequence[ir.Stream], options: Mapping[str, Any]) -> EventSource:
    """Open events by options of `hamlet.streams.run` of which some may be missing or None, and others are passed by."""
    return open_stream(
        source,
        inputs,
        **{name: options.get(name) for name in ("where", "since", "until", "order_column", "input_format")},
        time_column=options.get("time_column"),
        time_unit=options.get("time_unit") or "s",
        form=FileForm(
            options.get("delimiter"), options.get("bad_rows") or "error", missing_columns=options.get("missing_columns")
        ),
    )


def _is_plain(source: Any) -> bool:
    """Whether events are objects of Python: columns, or dicts."""
    if isinstance(source, (str, os.PathLike)) or hasattr(source, "__arrow_c_stream__"):
        return False
    if isinstance(source, (list, tuple)) and source and all(isinstance(each, (str, os.PathLike)) for each in source):
        return False
    return isinstance(source, Iterable) and not hasattr(source, "__arrow_c_array__")


def _form_of(form: FileForm, inputs: Sequence[ir.Stream], where: str | None, key: SortKey) -> FileForm:
    """How files are read: columns of text as what inputs are, others where a condition speaks of them."""
    condition = where if isinstance(where, str) else ""
    declared = declared_by(inputs)
    tuples = any(isinstance(each.type, ir.TupleOf) for each in inputs)
    return replace(
        form,
        nulls=NULLS,
        texts=tuple(name for name, kind in declared.items() if pa.types.is_string(kind)),
        declared=declared,
        only=lambda name: name in words_of(condition, [name]),
        records=partial(_records, inputs, key.time) if tuples else None,
        by_time=True,
        written_times=key.order is None and time_column_in(declared, key.time) is not None,
    )


def _records(inputs: Sequence[ir.Stream], time: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    return table_of_events(rows, inputs, time)[0]


def declared_by(inputs: Iterable[ir.Stream]) -> dict[str, pa.DataType]:
    """The types in which columns of text are read."""
    return {each.name: TYPES[each.type.family] if isinstance(each.type, ir.Scalar) else pa.string() for each in inputs}


def conditional_types(inputs: Iterable[ir.Stream]) -> dict[str, pa.DataType]:
    """What a condition takes the columns of inputs for."""
    kinds = {each.name: TYPES[each.type.family] for each in inputs if isinstance(each.type, ir.Scalar)}
    return {name: pa.int64() if pa.types.is_uint64(kind) else kind for name, kind in kinds.items()}


def _schema_of(reader: Reader, key: SortKey, unit: str, closed: bool, inputs: Sequence[ir.Stream]) -> Schema:
    """What conditions know of the columns: those of inputs are what these are, but the times are times."""
    declared = {name: kind for name, kind in conditional_types(inputs).items() if name in reader.schema.names}
    declared.pop(key.time, None)
    typed = pa.schema(
        [
            field.with_type(declared.get(field.name, field.type)) if field.name != key.order else field
            for field in reader.schema
        ]
    )
    schema = schema_of(typed, key, "", unit, closed=closed, empty=reader.rows == 0, source=reader.name)
    return with_declared(schema, declared)


def with_declared(schema: Schema, declared: Mapping[str, pa.DataType]) -> Schema:
    """A schema in which columns are what inputs say."""
    columns = {name: attribute_type(kind) for name, kind in declared.items() if name in schema.columns}
    kinds = {name: declared[name] for name in columns}
    return replace(schema, columns={**schema.columns, **columns}, arrow_types={**schema.arrow_types, **kinds})


def batches_of(source: EventSource, inputs: Sequence[ir.Stream]) -> Iterator[pa.RecordBatch]:
    """The events, with the columns of inputs."""
    return source.batches([each.name for each in inputs if each.name in source.arrow_schema.names])


def kinds_of(events: EventSource) -> dict[str, pa.DataType | None]:
    """The columns with their types; None for times that have been read as such, whatever they were."""
    kinds: dict[str, pa.DataType | None] = {each.name: each.type for each in events.arrow_schema}
    kind = kinds.get(events.schema.clock.column)
    if kind is not None and (kind == FRACTION or pa.types.is_timestamp(kind)):
        kinds[events.schema.clock.column] = None
    return kinds


def clock_of(events: EventSource) -> Clock | None:
    """What the times are; None where there are none."""
    clock = events.schema.clock
    kind = events.arrow_schema.field(clock.column).type if clock.column in events.arrow_schema.names else pa.null()
    return None if pa.types.is_null(kind) else clock_of_type(kind, clock.unit, clock.column)


def misfits_of(events: EventSource) -> dict[str, str]:
    """Inputs whose column of text has a value that is none of their type, and what was found there."""
    return {name: f"its column holds '{each.value}'" for name, each in events.misfits.items()}


def words_of(condition: str, names: Collection[str]) -> set[str]:
    """The words of a condition, and the names in it that are none."""
    words = set(re.findall(r"\w+", condition))
    return words | {name for name in names if not re.fullmatch(r"\w+", name) and name in condition}
