"""Chunks on threads: a stream is cut along time as it is read, and several cores of one process compute the parts.

Every thread computes one chunk after the other; what it has made is taken in the order of time. Where chunks may be
cut, and what is made of them, is said by a `Work`: `hamlet.parallel.time.mapped` for one giant group,
`hamlet.parallel.time.whole` for windows that do not overlap. Memory is that of the chunks under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from hamlet.engine.online import Engine
from hamlet.errors import HamletError
from hamlet.input.columns import Int64Array, integers
from hamlet.input.ticks import refuse_far
from hamlet.output.query_rows import QueryRows
from hamlet.parallel.time.mapped import MappedChunks, have_maps
from hamlet.parallel.time.whole import WholeChunks, common_border

MOST_HELD = 1 << 21  # events that are held while no chunk can end, where groups can be spread over threads instead


class Work(Protocol):
    """What is made of the chunks of a stream.

    Attributes
    ----------
    step : int
        Ticks: chunks begin and end at multiples of it.
    sizes : (int, int)
        Events of a chunk, least and most, as far as steps allow: it is worth what it costs apart from them, and memory
        is bounded.
    spreads : bool
        Whether the engine's threads have a use for events that no chunk can have.
    """

    step: int
    sizes: tuple[int, int]
    spreads: bool

    def job(self, batches: list[pa.RecordBatch]) -> Callable[[], Any]:
        """What a thread has to do for the next chunk, of whole steps; any number of jobs run at once."""

    def taken(self, made: Any) -> list[QueryRows]:
        """The rows that are ready with what the job for the next chunk has made."""

    def closed(self) -> list[QueryRows]:
        """All remaining rows, when all chunks have been taken."""

    @property
    def stats(self) -> dict[str, Any]:
        """Counters, as `Executor.stats`."""


def side_by_side(engine: Engine, rows: int | None) -> SideBySide | None:
    """How threads compute chunks; None where they are better spent on groups.

    Parameters
    ----------
    engine : Engine
        One that is open. Where chunks turn out to be too large, it gets the rest of the stream.
    rows : int or None
        Events of the stream, as far as is known.
    """
    options, compiled = engine.options, engine.executor.workload
    if options.threads == 1 or options.trace or options.max_memory is not None:
        return None
    if not options.paths.uses("time_partitions"):
        return None
    if len(engine.workload.analysis.layers) > 1:
        return None  # rows of one query are events of another
    if have_maps(compiled):
        return SideBySide(engine, MappedChunks(engine), rows)
    if common_border(compiled) is not None:
        return SideBySide(engine, WholeChunks(engine), rows)
    return None


class SideBySide:
    """A complete stream, its chunks computed side by side; threads end with the context.

    Parameters
    ----------
    engine : Engine
    work : Work
    rows : int or None
        Events of the stream, as far as is known.
    """

    def __init__(self, engine: Engine, work: Work, rows: int | None) -> None:
        self._engine, self._work = engine, work
        self._threads = engine.options.threads
        self._pool = ThreadPoolExecutor(self._threads)
        self._time = engine.executor.workload.schema.clock.column
        self._under_way: deque[Future[Any]] = deque()
        self._started = 0
        self._to_come = rows
        self._held: list[pa.RecordBatch] = []  # of the next chunk
        self._rows = 0  # of these
        self._last = 0  # their last time
        self._handed_over = False
        self._broken = False

    @property
    def stats(self) -> dict[str, Any]:
        """Counters, as `Executor.stats`."""
        found = self._work.stats
        return found | {"features": found.get("features", {}) | {"time_partitions": self._started}}

    def __enter__(self) -> SideBySide:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, HamletError):
                self._start()
                self._ready(0)  # an error of an event before goes first
        finally:
            self._pool.shutdown(cancel_futures=True)

    def feed(self, batch: pa.RecordBatch) -> list[QueryRows]:
        """Take the next batch in (time, order) order; give the rows that are ready, by query, window and group."""
        if self._handed_over:
            return self._engine.feed(batch, wait=True)
        times = integers(batch.column(self._time), self._time)[0]
        refuse_far(self._time, int(times[0]), int(times[-1]))
        start = 0
        while (cut := self._cut(times, start)) is not None:
            self._hold(batch, times, start, cut)
            self._start()
            start = cut
        self._hold(batch, times, start, len(times))
        if self._work.spreads and self._rows > MOST_HELD:
            return self._hand_over()
        return self._ready(self._threads + 1)

    def close(self) -> list[QueryRows]:
        """End the stream; give all remaining rows."""
        rows: list[QueryRows] = []
        if self._work.spreads and not self._started:
            rows += self._hand_over()  # a single chunk would keep one thread busy
        self._start()
        rows += self._ready(0)
        return rows + (self._engine.close_batches() if self._handed_over else self._work.closed())

    # ------------------------------------------------------------------------------------------ where a chunk ends

    def _cut(self, times: Int64Array, start: int) -> int | None:
        """Before which event of a batch, from `start` on, the chunk that is held ends; None where it goes on."""
        place = start + max(self._size - self._rows, 0)
        if place >= len(times):
            return None
        step = self._work.step
        border = int(times[place]) // step * step
        cut = start + int(np.searchsorted(times[start:], border))
        if cut > start or (self._held and self._last < border):
            return cut
        cut = start + int(np.searchsorted(times[start:], border + step))
        return cut if cut < len(times) else None

    @property
    def _size(self) -> int:
        """Events of the next chunk: less near the end, so that all threads are done at much the same time."""
        least, most = self._work.sizes
        return most if self._to_come is None else min(max(self._to_come // (2 * self._threads), least), most)

    def _hold(self, batch: pa.RecordBatch, times: Int64Array, start: int, end: int) -> None:
        if start < end:
            self._held.append(batch.slice(start, end - start))
            self._rows += end - start
            self._last = int(times[end - 1])

    # --------------------------------------------------------------------------------------------- who computes it

    def _start(self) -> None:
        """Let the next thread that is free compute what is held."""
        if self._held:
            self._under_way.append(self._pool.submit(self._unless_broken, self._work.job(self._held)))
            self._started += 1
            self._to_come = None if self._to_come is None else self._to_come - self._rows
            self._held, self._rows = [], 0

    def _unless_broken(self, job: Callable[[], Any]) -> Any:
        """Do a job of a thread; none after one has failed, for those come later in the stream."""
        if self._broken:
            return None
        try:
            return job()
        except BaseException:
            self._broken = True  # what the thread keeps may have stopped anywhere
            raise

    def _hand_over(self) -> list[QueryRows]:
        """From here on the engine gets the stream, and its threads the groups: what is held begins with a window."""
        rows = self._ready(0)
        held, self._held = self._held, []
        self._handed_over = True
        return rows + [each for batch in held for each in self._engine.feed(batch, wait=True)]

    def _ready(self, most: int) -> list[QueryRows]:
        """The rows of chunks that are done; waits while more than so many are under way."""
        rows: list[QueryRows] = []
        while self._under_way and (len(self._under_way) > most or self._under_way[0].done()):
            with self._engine.stages.measured("kernel"):
                try:
                    made = self._under_way.popleft().result()
                except BaseException:
                    self._under_way.clear()
                    self._held.clear()
                    raise
                rows += self._work.taken(made)
        return rows
