"""The events that can matter for a row: of its window, its types and its group, with their places in the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import UnsupportedError
from hamlet.input.events import EventSource
from hamlet.language.query import EventDeclaration
from hamlet.oracle import Stream


@dataclass(frozen=True, slots=True)
class Chosen:
    """Events of an input.

    Attributes
    ----------
    stream : Stream
        An event's `index` is its place in the input.
    shown : mapping of int to mapping
        The columns of an event, by its place.
    table : pyarrow.Table
        The same events, for a run over them.
    """

    stream: Stream
    shown: Mapping[int, Mapping[str, Any]]
    table: pa.Table


def chosen(
    source: EventSource,
    given: Any,
    declarations: Sequence[EventDeclaration],
    types: frozenset[str] | None,
    times: tuple[int | None, int | None],
) -> Chosen:
    """The events of some types (None: of all) from one time to another, both included.

    Raises
    ------
    UnsupportedError
        If the events cannot be read again.
    """
    if not source.repeatable:
        raise UnsupportedError("the events were a stream, which can be read once only; give a file or a table")
    schema = source.schema
    parts: list[pa.RecordBatch] = []
    places: list[int] = []
    for first, batch in _numbered(source):
        kept, own = _kept(batch, schema.clock.column, schema.type_column, types, times)
        parts.append(kept)
        places += [first + row for row in own]
    table = pa.Table.from_batches(parts) if parts else source.arrow_schema.empty_table()
    ticks = table.column(schema.clock.column).cast(pa.int64()).to_pylist()
    rows = _rows(table)
    for row, tick in zip(rows, ticks, strict=True):
        row[schema.clock.column] = schema.clock.present(tick)
        row.setdefault(schema.type_column, None)
    originals = given if isinstance(given, list | tuple) and all(isinstance(e, Mapping) for e in given[:1]) else None
    stream = Stream(rows, declarations, schema.clock.column, schema.type_column, schema.order_column)
    stream.events = [
        replace(event, index=place, time=tick) for event, place, tick in zip(stream.events, places, ticks, strict=True)
    ]
    plain = rows if schema.closed else [{n: v for n, v in row.items() if v is not None} for row in rows]
    shown = {place: row if originals is None else originals[place] for place, row in zip(places, plain, strict=True)}
    return Chosen(stream, shown, table)


def _numbered(source: EventSource) -> Iterator[tuple[int, pa.RecordBatch]]:
    first = 0
    for batch in source.as_read():
        yield first, batch
        first += batch.num_rows


def _kept(
    batch: pa.RecordBatch, time: str, kind: str, types: frozenset[str] | None, times: tuple[int | None, int | None]
) -> tuple[pa.RecordBatch, list[int]]:
    ticks = batch.column(time).cast(pa.int64())
    mask = None
    conditions = []
    if times[0] is not None:
        conditions.append(pc.greater_equal(ticks, times[0]))
    if times[1] is not None:
        conditions.append(pc.less_equal(ticks, times[1]))
    if types is not None and kind in batch.schema.names:
        conditions.append(pc.is_in(batch.column(kind).cast(pa.string()), pa.array(sorted(types), pa.string())))
    for each in conditions:
        mask = each if mask is None else pc.and_(mask, each)
    if mask is None or not batch.num_rows:
        return batch, list(range(batch.num_rows))
    mask = pc.fill_null(mask, False)
    return batch.filter(mask), pc.indices_nonzero(mask).to_pylist()


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = {}
    for field in table.schema:
        column = table.column(field.name)
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            column = column.cast(pa.timestamp("us", field.type.tz), safe=False)
        columns[field.name] = column.to_pylist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
