"""The events that can matter for a row: of its window, its types and its group, with their places in the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import UnsupportedError
from hamlet.input.buffers import as_dicts, filled, from_texts, scalar, to_numpy
from hamlet.input.events import EventSource
from hamlet.input.widening import is_text
from hamlet.language.query import EventDeclaration
from hamlet.language.schema import Schema
from hamlet.oracle import Stream


@dataclass(frozen=True, slots=True)
class Selection:
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
    group: Mapping[str, Any],
) -> Selection:
    """The events of some types (None: of all) from one time to another, both included, that agree with a group.

    Row groups of Parquet without any time of these are not read.

    Raises
    ------
    UnsupportedError
        If the events cannot be read again.
    """
    if not source.repeatable:
        raise UnsupportedError("the events were a stream, which can be read once only; give a file or a table")
    if not source.whole:
        raise UnsupportedError(
            "the rows are of a part of an input, and evidence names events by their places in the whole\n"
            "hint: write the condition of where (--where) into the query; hamlet why takes --from and --to"
        )
    schema = source.schema
    parts: list[pa.RecordBatch] = []
    places: list[int] = []
    # a source that somebody else has opened goes on with all its row groups
    for numbers, batch in source.numbered(*(times if given is not source else ())):
        kept, own = _kept(batch, schema, types, times, _agreeing(group, declarations))
        parts.append(kept)
        places += numbers[own].tolist()
    table = pa.Table.from_batches(parts).combine_chunks() if parts else source.arrow_schema.empty_table()
    ticks = table.column(schema.clock.column).cast(pa.int64()).to_pylist() if len(table) else []
    rows = as_dicts(table)
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
    return Selection(stream, shown, table)


def _agreeing(group: Mapping[str, Any], declarations: Sequence[EventDeclaration]) -> dict[str, tuple[Any, list[str]]]:
    """Values that events must have, and the declared types that lack the attribute and agree with every value."""
    return {
        name: (value, [each.name for each in declarations if name not in {a.name for a in each.attributes}])
        for name, value in group.items()
        if isinstance(value, int | str) and not isinstance(value, bool)
    }


def _kept(
    batch: pa.RecordBatch,
    schema: Schema,
    types: frozenset[str] | None,
    times: tuple[int | None, int | None],
    group: Mapping[str, tuple[Any, list[str]]],
) -> tuple[pa.RecordBatch, npt.NDArray[np.int64]]:
    """The events that can matter, and their places in the batch; each condition is asked of what the last one left."""
    kind = schema.type_column
    found = np.arange(batch.num_rows)

    def keep(mask: Any) -> None:
        nonlocal batch, found
        mask = filled(mask, False)
        found, batch = found[to_numpy(mask)], batch.filter(mask)

    ticks = batch.column(schema.clock.column).cast(pa.int64())
    low, high = times
    if low is not None or high is not None:
        edges = (pc.greater_equal, low), (pc.less_equal, high)
        inside = [compare(ticks, scalar(edge)) for compare, edge in edges if edge is not None]
        keep(inside[0] if len(inside) == 1 else pc.and_(*inside))
    for name, (value, broadcast) in group.items():
        if name not in batch.schema.names:
            continue
        column = batch.column(name)
        text = isinstance(value, str) and is_text(column.type)
        if not text and not (isinstance(value, int) and pa.types.is_integer(column.type)):
            continue  # a value that may be written in several ways
        try:
            wanted = scalar(value).cast(pa.string() if text else column.type)
        except (pa.ArrowInvalid, OverflowError):
            continue
        mask = filled(pc.equal(column.cast(pa.string()) if text else column, wanted), False)
        if broadcast and kind in batch.schema.names:
            mask = pc.or_(mask, filled(pc.is_in(batch.column(kind).cast(pa.string()), from_texts(broadcast)), False))
        keep(mask)
    if types is not None and kind in batch.schema.names:
        keep(pc.is_in(batch.column(kind).cast(pa.string()), from_texts(sorted(types))))
    return batch, found
