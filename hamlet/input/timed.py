"""Events without those that have no time, where such rows are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from hamlet.input.file_form import Dropped
from hamlet.input.files_protocol import Reader, within
from hamlet.input.ordering import SortKey


class Timed:
    """The rows of a reader that have a time, and an order where that is a column.

    Parameters
    ----------
    reader : Reader
    key : SortKey
        The time and order columns, which the reader has.

    Attributes
    ----------
    dropped : Dropped
        Rows that are left out; of a reader that can be read once, when it has been.
    reader : Reader
        The one that was given.
    """

    def __init__(self, reader: Reader, key: SortKey) -> None:
        self.name = reader.name
        self.schema: pa.Schema = reader.schema
        self.ordered = reader.ordered
        self.reader = reader
        self.dropped = Dropped()
        self._keys = key.names
        self.rows = reader.rows

    def counted(self) -> Timed:
        """This reader, with its rows counted by their keys alone."""
        for _ in self.batches(self._keys):
            pass
        if self.reader.rows is not None:
            self.rows = self.reader.rows - self.dropped.rows
        return self

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, in their order."""
        read = [*columns, *(name for name in self._keys if name not in columns)]
        self.dropped = Dropped()
        first = 1
        for batch in self.reader.batches(read):
            keys = [batch.column(read.index(name)) for name in self._keys]
            if any(key.null_count for key in keys):
                good = keys[0].is_valid()
                for key in keys[1:]:
                    good = pc.and_(good, key.is_valid())
                for place in pc.indices_nonzero(pc.invert(good)).to_pylist():
                    name = next(name for name, key in zip(self._keys, keys, strict=True) if not key[place].is_valid)
                    self.dropped.add(f"row {first + place}: {name} is NULL")
                first += batch.num_rows
                batch = batch.filter(good)
            else:
                first += batch.num_rows
            if batch.num_rows:
                yield batch.select(list(columns))


def timed(reader: Reader, key: SortKey) -> Reader:
    """A reader without the rows that have no time; the reader itself where all have one, or it has no such columns."""
    if any(name not in reader.schema.names for name in key.names):
        return reader  # whoever opens the events says which column is missing
    found = Timed(reader, key).counted()
    return found if found.dropped.rows else reader


def dropped_by(reader: Reader) -> Dropped:
    """What a reader leaves out; of several files with their names."""
    found = [each for each in within(reader) if isinstance(getattr(each, "dropped", None), Dropped)]
    whole = Dropped()
    for each in found:
        whole = whole.plus(each.dropped, str(each.name) if len(found) > 1 else None)
    return whole
