"""Several files as one stream, merged by time, for who takes events as they come and does not have them sorted.

Each file is in the order of time by itself; what is not stays so. A file is opened again when its first event is due,
so that as many are open at once as overlap in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hamlet.input.buffers import from_numpy
from hamlet.input.clocked import batch_of
from hamlet.input.columns import Int64Array
from hamlet.input.files_protocol import Reader
from hamlet.input.folder import Folder
from hamlet.input.ordering import SortKey
from hamlet.input.widening import in_batches, is_text, joined


@dataclass
class _Head:
    """The events of a file that are next.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
    ticks : int64 array
        By these events are merged: the largest time of the file up to each.
    rest : iterator
        Batches behind it.
    place : int
        Of the file.
    """

    batch: pa.RecordBatch
    ticks: Int64Array
    rest: Iterator[pa.RecordBatch]
    place: int


class Merged(Folder):
    """The events of several files by time; of one time in the order of the files.

    Parameters are those of `Folder`; there has to be a time column.
    """

    _clock: str

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of all files, merged; `columns` has the time column."""
        self.look(columns)
        waiting = self._firsts()
        heads: list[_Head] = []
        while heads or waiting:
            bound = min((int(each.ticks[-1]) for each in heads), default=None)
            if waiting and (bound is None or waiting[0][0] <= bound):
                place = waiting.pop(0)[1]
                heads += self._next(self.rows_of(self.readers[place], columns, self._clock), place)
                continue
            assert bound is not None
            heads.sort(key=lambda each: each.place)
            yield from self._due(heads, bound)
            left: list[_Head] = []
            for each in heads:
                left += [each] if len(each.ticks) else self._next(each.rest, each.place)
            heads = left

    def _firsts(self) -> list[tuple[int, int]]:
        """The time of the first event of each file that has any, and its place; by time."""
        found = []
        for place, reader in enumerate(self.readers):
            if reader.schema.names:
                first = next(filter(len, reader.batches([self._clock])), None)
                if first is not None:
                    found.append((int(self._ticks(first.slice(0, 1), reader)[0]), place))
        return sorted(found)

    def _ticks(self, batch: pa.RecordBatch, reader: Reader) -> Int64Array:
        """The times of events, in the clock of all files."""
        times = self._timed(batch.select([self._clock]), reader.name)
        return SortKey(self._clock, source=reader.name).columns_of(times)[0]

    def _timed(self, batch: pa.RecordBatch, name: str) -> pa.RecordBatch:
        """Events with the times of all files' clock."""
        return batch_of(batch, self._clock, self.schema.field(self._clock).type, 0, name)

    def _next(self, rest: Iterator[pa.RecordBatch], place: int) -> list[_Head]:
        """The next events of a file; none where it has no more."""
        batch = next(filter(len, rest), None)  # one of which all rows are bad is empty
        if batch is None:
            return []
        return [_Head(batch, np.maximum.accumulate(self._ticks(batch, self.readers[place])), rest, place)]

    def _due(self, heads: list[_Head], bound: int) -> Iterator[pa.RecordBatch]:
        """The events up to a time, which are taken from the heads."""
        parts, keys = [], []
        for each in heads:
            cut = int(np.searchsorted(each.ticks, bound, "right"))
            if cut:
                parts.append(each.batch.slice(0, cut))
                keys.append(each.ticks[:cut])
                each.batch, each.ticks = each.batch.slice(cut), each.ticks[cut:]
        kinds = {part.schema.field(self._clock).type for part in parts}
        if len(kinds) > 1 and any(map(is_text, kinds)):  # times as they are written, which is not in one way
            parts = [self._timed(part, self.name) for part in parts]
        table = joined([pa.Table.from_batches([part]) for part in parts], self._clock)
        if len(parts) > 1:
            table = table.take(from_numpy(np.argsort(np.concatenate(keys), kind="stable")))
        yield from in_batches(table)
