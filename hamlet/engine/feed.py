"""A stream in the order of time on its way into an executor: in pieces that fit the cache, cut where panes end.

Nothing is checked here: events come in (time, order) order, and none is late.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from hamlet.engine.executor import BEGINNING_OF_TIME, Executor
from hamlet.input.columns import Int64Array, integers
from hamlet.input.ordering import PIECE_ROWS
from hamlet.input.ticks import refuse_far, refuse_outside, times_of
from hamlet.input.widening import in_batches
from hamlet.language.schema import MOST_TICKS
from hamlet.output.query_rows import QueryRows

MOST_WAITING = 1 << 22  # rows of closed windows that wait in the kernels while a stream is read to its end


def process(executor: Executor, batches: Sequence[pa.RecordBatch], until: int) -> None:
    """Process events in order, whole time steps, and close what ends by `until`: no event before it will follow."""
    for place, batch in enumerate(batches, 1):
        start = 0
        for cut, following in _cuts(executor, batch):
            executor.process(batch.slice(start, cut - start), following)
            executor.advance(following)
            start = cut
        last = until if place == len(batches) else BEGINNING_OF_TIME
        executor.process(batch.slice(start) if start else batch, last)
    executor.advance(until)


def _cuts(executor: Executor, batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Where to cut many events between time steps so that a piece fits the cache; the first time after each."""
    if batch.num_rows < 2 * PIECE_ROWS:
        return
    times = times_of(batch, executor.workload.schema.clock.column)
    start, cut = 0, PIECE_ROWS
    while cut < len(times):
        border = _border(times, int(times[cut]), executor.pane)
        cut = border if border > start else int(np.searchsorted(times, times[cut]))
        if cut > start:
            yield cut, int(times[cut])
            start = cut
        cut = max(cut + PIECE_ROWS, int(np.searchsorted(times, times[cut], "right")))


def _border(times: Int64Array, time: int, pane: int) -> int:
    """The first event of the pane of a time: where windows end before it, few stay open for the next piece."""
    return int(np.searchsorted(times, time // pane * pane))


def whole_steps(batches: Sequence[pa.RecordBatch], time_column: str, step: int) -> list[pa.RecordBatch]:
    """Events in order, their batches joined where one goes on with the step of so many ticks of the one before."""
    found: list[list[pa.RecordBatch]] = []
    last: int | None = None
    for batch in batches:
        times = integers(batch.column(time_column), time_column)[0]
        if int(times[0]) // step == last:
            found[-1].append(batch)
        else:
            found.append([batch])
        last = int(times[-1]) // step
    joined = (each if len(each) == 1 else in_batches(pa.Table.from_batches(each)) for each in found)
    return [batch for each in joined for batch in each]


class Feed:
    """A stream that is complete: what goes on, in its last time step or pane, is held until that is over.

    Parameters
    ----------
    executor : Executor
    held : pyarrow.Table, optional
        What another feed held (`held`).
    """

    def __init__(self, executor: Executor, held: pa.Table | None = None) -> None:
        self.executor = executor
        self._time = executor.workload.schema.clock.column
        self._open: list[pa.RecordBatch] = []  # the last time step, or batch
        self._first = self._last = -MOST_TICKS
        if held is not None and held.num_rows:
            self._open = held.to_batches()
            self._last = int(times_of(held, self._time).max())

    @property
    def held(self) -> pa.Table | None:
        """The events that have not been processed."""
        return pa.Table.from_batches(self._open) if self._open else None

    def take(self, batch: pa.RecordBatch, *, wait: bool = False) -> list[QueryRows]:
        """Take the next batch, in order and not empty; give the rows of windows that closed by it.

        With `wait`, rows may wait for a later call, so that many are delivered at once.
        """
        times = integers(batch.column(self._time), self._time)[0]
        first, last = int(times[0]), int(times[-1])
        refuse_far(self._time, first, last)
        refuse_outside(self.executor.workload.schema.clock, first, last)
        wait = wait and self.executor.budget.limit is None
        if wait and self._is_whole(first):
            cut = 0
        else:
            cut = _border(times, last, self.executor.pane) or int(np.searchsorted(times, last))
        ready: list[pa.RecordBatch] = []
        if cut or last > self._last:
            ready, self._open = self._open, []
        if cut:
            ready.append(batch.slice(0, cut))
        if not self._open:
            self._first = int(times[cut])
        self._open.append(batch.slice(cut) if cut else batch)
        self._last = last
        if ready:
            self._process(ready, int(times[cut]))
        if wait and self.executor.waiting < MOST_WAITING:
            return []
        return self.executor.drain()

    def finish(self, until: int) -> None:
        """Process what is held and close what ends by `until`: all that was fed is before it, nothing to come is."""
        ready, self._open = self._open, []
        if ready:
            self._process(ready, until)
        else:
            self.executor.advance(until)

    def _process(self, batches: Sequence[pa.RecordBatch], until: int) -> None:
        if self.executor.budget.limit is not None:
            self.executor.held_back = sum(each.nbytes for each in self._open)
        process(self.executor, in_batches(pa.Table.from_batches(batches)), until)

    def _is_whole(self, following: int) -> bool:
        """Whether what is held ends with a time step, and not behind a border that would be better."""
        if not self._open:
            return True
        border = following // self.executor.pane * self.executor.pane
        return following > self._last and not self._first < border <= self._last
