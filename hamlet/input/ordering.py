"""Events in time order: a check that tells ordered input, and a sort that spills what does not fit in memory.

The order is (time, order column), and the sort is stable: events that the two leave equal keep the order in which they
were read, so that a run repeats to the last bit of a double. Sorting by runs: `spill_rows` rows at a time are sorted
and written to a temporary Arrow stream; runs that happen to follow each other are read back one after the other, others
are merged, a batch at a time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.frontend.time_column import settled
from hamlet.input.buffers import from_numpy, to_numpy
from hamlet.input.columns import Int64Array
from hamlet.input.widening import cast, clock_type, unified
from hamlet.kernel.radix_sort import ascending, ascent

BATCH_ROWS = 65_536  # rows that are read at once
PIECE_ROWS = 262_144  # rows that the kernels get at once: with fewer the calls cost more than the cache saves
SPILL_ROWS = 4_000_000  # rows that are sorted in memory at once


@dataclass(frozen=True, slots=True)
class SortKey:
    """Which columns order the events, and what the input is called in messages.

    Attributes
    ----------
    time : str
        The time column.
    order : str or None
        The column that orders events of equal time.
    source : str
        File name or kind of object.
    """

    time: str
    order: str | None = None
    source: str = "events"

    @property
    def names(self) -> list[str]:
        """The columns of the key, time first; none where it has no time, as of rows that need none."""
        return [each for each in (self.time, self.order) if each]

    def among(self, names: Iterable[str]) -> SortKey:
        """The key with the time column that these columns have."""
        return replace(self, time=settled(self.time, names))

    def refuse_nulls(self, data: Any, first_row: int = 0) -> None:
        """Raise DataError at an event without a time or an order, with its row; `first_row` were read before."""
        for name, role in ((self.time, "time"), (self.order, "order")):
            if name is not None and name in data.schema.names and data.column(name).null_count:
                row = first_row + int(np.argmax(to_numpy(data.column(name).is_null()))) + 1
                text = f"{self.source}: the {role} column {name!r} is NULL in row {row} (the first row is 1)"
                raise DataError(text).about(row=row, column=name)

    def columns_of(self, data: Any, first_row: int = 0) -> tuple[Int64Array, Int64Array | None]:
        """Times and orders as int64, without a copy where that is what they are.

        Parameters
        ----------
        data : pyarrow.RecordBatch or pyarrow.Table
            Holds the key columns, of integer, timestamp or date type.
        first_row : int
            How many rows were read before these; for messages.

        Raises
        ------
        DataError
            At a NULL, with its row.
        """
        self.refuse_nulls(data, first_row)
        return self._integers(data, self.time), None if self.order is None else self._integers(data, self.order)

    def _integers(self, data: Any, name: str) -> Int64Array:
        column = data.column(name)
        ticks = cast(column, clock_type(column.type), name).cast(pa.int64())
        values: Int64Array = to_numpy(ticks)
        return values


@dataclass
class OrderCheck:
    """Sees the keys of a stream, batch by batch, and knows whether they came in order.

    Attributes
    ----------
    rows : int
        Rows seen so far.
    ordered : bool
        Whether no event came before an earlier one's time.
    distinct : bool
        Whether each event's time is known to be after the one before.
    """

    key: SortKey
    rows: int = 0
    ordered: bool = True
    distinct: bool = True
    last: tuple[int, int] | None = field(default=None)

    def feed(self, data: Any) -> None:
        """Look at the next rows; raises DataError at a NULL time. Rows that need no time are counted."""
        if not self.key.names:
            self.rows += data.num_rows
            return
        time, order = self.key.columns_of(data, self.rows)
        self.rows += len(time)
        if not len(time):
            return
        first = (int(time[0]), 0 if order is None else int(order[0]))
        if order is None:
            found = ascent(time)
            self.distinct = self.distinct and found == 2 and (self.last is None or self.last < first)
        else:
            found = int(ascending(time, order))
            self.distinct = False
        self.ordered = self.ordered and (self.last is None or self.last <= first) and found > 0
        self.last = (int(time[-1]), 0 if order is None else int(order[-1]))


def _sorted_places(time: Int64Array, order: Int64Array | None) -> npt.NDArray[np.intp]:
    return np.argsort(time, kind="stable") if order is None else np.lexsort((order, time))


def slices(table: pa.Table, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
    """The table's record batches, without copies, none longer than `rows` and none empty."""
    for batch in table.to_batches(max_chunksize=rows):
        if batch.num_rows:
            yield batch


def whole_panes(batches: Iterable[pa.RecordBatch], key: SortKey, pane: int) -> Iterator[pa.RecordBatch]:
    """Cut batches in time order into large pieces, at borders of panes, else of time steps, where there is one."""
    for batch in batches:
        time, _ = key.columns_of(batch)
        start = 0
        while start < len(time):
            end = min(start + PIECE_ROWS, len(time))
            if end < len(time):
                borders = (int(time[end]) // pane * pane, time[end])
                cuts = (int(np.searchsorted(time[start:end], border)) for border in borders)
                end = start + (next(filter(None, cuts), 0) or PIECE_ROWS)
            yield batch.slice(start, end - start)
            start = end


def sorted_batches(
    table: pa.Table, key: SortKey, first_row: int = 0, *, pane: int = 1, check: OrderCheck | None = None
) -> Iterator[pa.RecordBatch]:
    """A table in memory, in (time, order) order; the table itself where it is in order already.

    Only one batch is copied at a time. `check`, a new one, has seen the table before the first batch comes, or as much
    as tells that it is not in order; one that has done so before is believed.
    """
    check = OrderCheck(key, first_row) if check is None else check
    for batch in table.to_batches() if check.ordered and check.rows < first_row + table.num_rows else ():
        check.feed(batch)
        if not check.ordered:
            break
    if check.ordered:
        yield from whole_panes(table.to_batches(), key, pane)
        return
    time, order = key.columns_of(table, first_row)
    places = _sorted_places(time, order)
    table = unified(table)
    for start in range(0, len(places), BATCH_ROWS):
        yield from slices(table.take(from_numpy(places[start : start + BATCH_ROWS])))


def ordered_batches(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, key: SortKey, spill_rows: int = SPILL_ROWS
) -> Iterator[pa.RecordBatch]:
    """Any batches, read once, as batches in (time, order) order.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        In any order; all of `schema`.
    schema : pyarrow.Schema
        Holds the key columns.
    key : SortKey
        What to sort by.
    spill_rows : int
        Input of at most so many rows is sorted in memory; longer input goes through temporary files of so many rows
        each, which are removed when the iterator ends or is closed.

    Raises
    ------
    DataError
        At a NULL time or order, or if the temporary files cannot be written.
    """
    with _Spill(schema, key) as spill:
        waiting: list[pa.RecordBatch] = []
        rows = 0
        for batch in batches:
            waiting.append(batch)
            rows += batch.num_rows
            if rows > spill_rows:
                spill.write(pa.Table.from_batches(waiting, schema))
                waiting, rows = [], 0
        rest = pa.Table.from_batches(waiting, schema)
        del waiting
        if not spill.runs:
            yield from sorted_batches(rest, key)
            return
        if rest.num_rows:
            spill.write(rest)
        del rest
        yield from spill.read()


@dataclass
class _Written:
    """A sorted run on disk, and the keys of its first and last row."""

    path: Path
    first: tuple[int, int]
    last: tuple[int, int]


class _Spill:
    """Sorted runs in temporary files, removed on exit."""

    def __init__(self, schema: pa.Schema, key: SortKey) -> None:
        self.schema = schema
        self.key = key
        self.rows = 0
        self.runs: list[_Written] = []
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> _Spill:
        return self

    def __exit__(self, *_: object) -> None:
        if self._directory is not None:
            self._directory.cleanup()

    def write(self, table: pa.Table) -> None:
        """Sort a table with at least one row and write it as a run."""
        try:
            if self._directory is None:
                self._directory = tempfile.TemporaryDirectory(prefix="hamlet-", ignore_cleanup_errors=True)
            path = Path(self._directory.name) / f"run-{len(self.runs):05}.arrows"
            # A stream, not a file: only streams may change a dictionary from batch to batch.
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, self.schema) as writer:
                edges = []
                for batch in sorted_batches(table, self.key, self.rows):
                    writer.write_batch(batch)
                    edges += [_key_at(self.key, batch, 0), _key_at(self.key, batch, batch.num_rows - 1)]
        except OSError as error:
            raise DataError(
                f"cannot write temporary files in {tempfile.gettempdir()} to sort the events: {error}; "
                "set TMPDIR to a folder with room, or give the events in time order"
            ) from error
        self.rows += table.num_rows
        self.runs.append(_Written(path, edges[0], edges[-1]))

    def read(self) -> Iterator[pa.RecordBatch]:
        """All rows in order: one run after the other where the runs follow each other, else merged."""
        following = zip(self.runs, self.runs[1:], strict=False)
        if all(run.last <= successor.first for run, successor in following):
            for run in self.runs:
                with pa.OSFile(str(run.path)) as source, pa.ipc.open_stream(source) as reader:
                    yield from reader
            return
        cursors = [_Cursor(run.path, self.key) for run in self.runs]
        try:
            yield from _merge(cursors, self.key)
        finally:
            for cursor in cursors:
                cursor.close()


def _key_at(key: SortKey, batch: pa.RecordBatch, row: int) -> tuple[int, int]:
    time, order = key.columns_of(batch.slice(row, 1))
    return int(time[0]), 0 if order is None else int(order[0])


class _Cursor:
    """A place in a sorted run: the unread rest of its current batch, never empty until the run is done."""

    def __init__(self, path: Path, key: SortKey) -> None:
        self._source = pa.OSFile(str(path))
        self._reader = pa.ipc.open_stream(self._source)
        self._key = key
        self.done = False
        self._load()

    def close(self) -> None:
        self._reader.close()
        self._source.close()

    def _load(self) -> None:
        try:
            self._batch = self._reader.read_next_batch()
        except StopIteration:
            self.done = True
            return
        self._time, self._order = self._key.columns_of(self._batch)

    @property
    def last(self) -> tuple[int, int]:
        """Key of the last row of the current batch."""
        return int(self._time[-1]), 0 if self._order is None else int(self._order[-1])

    def take(self, bound: tuple[int, int], inclusive: bool) -> pa.RecordBatch | None:
        """The rows below the bound (up to it, if inclusive) of the current batch; None if there are none."""
        time, order = bound
        side: Any = "right" if inclusive else "left"
        if self._order is None:
            count = int(np.searchsorted(self._time, time, side))
        else:
            start = int(np.searchsorted(self._time, time, "left"))
            end = int(np.searchsorted(self._time, time, "right"))
            count = start + int(np.searchsorted(self._order[start:end], order, side))
        taken = self._batch.slice(0, count) if count else None
        if count == self._batch.num_rows:
            self._load()
        else:
            self._batch, self._time = self._batch.slice(count), self._time[count:]
            self._order = None if self._order is None else self._order[count:]
        return taken


def _merge(cursors: list[_Cursor], key: SortKey) -> Iterator[pa.RecordBatch]:
    """Merge sorted runs; equal keys come in the order of the runs.

    Each round empties the current batch of one run, the first of those whose last key is smallest. Rows below that key
    are known from all runs. Rows equal to it are known from the runs before, but that run's next batch may hold more of
    them, so the runs behind it must wait with theirs.
    """
    cursors = [cursor for cursor in cursors if not cursor.done]
    while cursors:
        leader = min(range(len(cursors)), key=lambda place: cursors[place].last)
        bound = cursors[leader].last
        taken = [cursor.take(bound, inclusive=place <= leader) for place, cursor in enumerate(cursors)]
        table = pa.Table.from_batches([batch for batch in taken if batch is not None])
        yield from sorted_batches(table, key)
        cursors = [cursor for cursor in cursors if not cursor.done]
