"""Readers whose time column is text, or seconds with a fraction: with a clock in its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from hamlet.input.files_protocol import Reader
from hamlet.input.moments import joined, kind_of, needs_reading, with_moments
from hamlet.input.widening import FRACTION, cast, widen_clocks


class Clocked:
    """The rows of a reader, their times as a clock (`hamlet.input.moments`).

    Parameters
    ----------
    reader : Reader
    time : str
        The time column.
    kind : pyarrow.DataType
        What its times become.
    written : bool
        Whether they come as they are, and the schema alone says what they become (`FileForm.written_times`).

    Attributes
    ----------
    reader : Reader
        The one that was given.
    """

    def __init__(self, reader: Reader, time: str, kind: pa.DataType, written: bool = False) -> None:
        self.name, self.rows, self.ordered, self.reader = reader.name, reader.rows, reader.ordered, reader
        self._time, self._kind, self._written = time, kind, written
        place = reader.schema.get_field_index(time)
        self.schema: pa.Schema = reader.schema.set(place, pa.field(time, kind))

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, in their order."""
        if self._written:
            yield from self.reader.batches(columns)
            return
        first = 0
        for batch in self.reader.batches(columns):
            yield batch_of(batch, self._time, self._kind, first, self.name) if self._time in columns else batch
            first += batch.num_rows


def batch_of(batch: pa.RecordBatch, time: str, kind: pa.DataType, first: int, source: str | None) -> pa.RecordBatch:
    """Events whose times are of a kind; `first` events came before them."""
    known = kind if kind == FRACTION else None
    table = with_moments(pa.Table.from_batches([batch]), time, "s", first, known=known, source=source)
    place = batch.schema.get_field_index(time)
    return batch.set_column(place, pa.field(time, kind), joined(cast(table.column(place), kind, time)))


def clocked(reader: Reader, time: str, written: bool = False) -> Reader:
    """A reader with a clock for its time column; the reader itself where it has one, or no such column.

    Texts are looked at throughout: of which kind they are, all of them say.
    """
    place = reader.schema.get_field_index(time)
    if place < 0 or not needs_reading(reader.schema.field(place).type):
        return reader
    kind = kind_of(reader.schema.field(place).type)
    if kind is None:
        first = 0
        for batch in (each for each in reader.batches([time]) if each.num_rows):
            table = with_moments(pa.Table.from_batches([batch]), time, "s", first, source=reader.name)
            found = table.schema.field(time).type
            wide = found if kind is None else widen_clocks(kind, found)
            kind = found if wide is None else wide  # whoever reads them says which is another
            first += batch.num_rows
    return Clocked(reader, time, kind or pa.int64(), written)
