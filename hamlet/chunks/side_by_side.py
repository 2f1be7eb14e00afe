"""Chunks on threads: one giant group, computed by several cores of one process.

The stream is cut into chunks of so many events as it is read. Each is computed by a thread of its own, with a kernel of
its own; the results are folded in the order of time. Memory is that of the chunks under way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.chunks.chunk import Chunk, Maps
from hamlet.chunks.coordinates import refusal
from hamlet.chunks.fold import Folds
from hamlet.columns import StringPool, integers
from hamlet.compiler.compile import compile_workload
from hamlet.compiler.compiled import CompiledWorkload
from hamlet.options import Options
from hamlet.output.query_rows import QueryRows
from hamlet.output.rows import Closed, piece_of, present, result_columns
from hamlet.schema import Schema
from hamlet.workload import Workload

CHUNK_ROWS = 1 << 19  # events of a chunk: far more than the few hundred that a map is worth


def can_be_cut(workload: Workload, schema: Schema, options: Options) -> bool:
    """Whether threads are better spent on chunks than on groups: there is one group, and all its queries have maps.

    Parameters
    ----------
    workload : Workload
        Checked against the schema.
    schema : Schema
    options : Options
    """
    if options.threads == 1 or options.trace or options.max_memory is not None:
        return False
    compiled = _compiled(workload, schema, options)
    return all(not each.attributes and refusal(each) is None for each in compiled.classes)


def _compiled(workload: Workload, schema: Schema, options: Options) -> CompiledWorkload:
    exact, together = options.numbers == "exact", options.sharing != "never"
    return compile_workload(workload.analysis, schema, StringPool(), exact=exact, together=together)


@dataclass(frozen=True)
class _Done:
    """What a chunk has made."""

    closed: dict[int, list[Closed]]
    maps: Maps | None
    stats: Mapping[str, int]


class SideBySide:
    """A workload without groups over a complete stream.

    Parameters
    ----------
    workload : Workload
        One that `can_be_cut`.
    schema : Schema
    options : Options

    Attributes
    ----------
    stats : dict
        Counters, as `Executor.stats`; a window that spans chunks counts in each.
    """

    def __init__(self, workload: Workload, schema: Schema, options: Options) -> None:
        self.stats: dict[str, int] = {}
        self._workload, self._schema, self._options = workload, schema, options
        compiled = _compiled(workload, schema, options)
        self._queries = {query.analysed.index: query for query in compiled.queries}
        self._columns = {place: result_columns(query, schema) for place, query in self._queries.items()}
        self._folds = Folds(compiled.classes[0])
        self._threads = ThreadPoolExecutor(options.threads)
        self._spare = [compiled]  # for one chunk at a time each
        self._under_way: deque[Future[_Done]] = deque()
        self._tail: list[pa.RecordBatch] = []  # of the last time, which may go on
        self._next: list[pa.RecordBatch] = []  # of the next chunk: all events of each time
        self._opens = True

    def without_rows(self) -> list[QueryRows]:
        """Every query, without rows, in the workload's order."""
        return [QueryRows(query.name, self._columns[place]) for place, query in sorted(self._queries.items())]

    def feed(self, batch: pa.RecordBatch) -> list[QueryRows]:
        """Take the next batch in (time, order) order; give the rows that are ready, in the order of LANGUAGE §9."""
        times = integers(batch.column(self._schema.clock.column), self._schema.clock.column)[0]
        if self._tail and int(times[0]) > self._last(self._tail[-1]):
            self._next += self._tail
            self._tail = []
        cut = int(np.searchsorted(times, times[-1]))
        if cut:
            self._next += [*self._tail, batch.slice(0, cut)]
            self._tail = []
        self._tail.append(batch.slice(cut))
        if cut and sum(each.num_rows for each in self._next) >= CHUNK_ROWS:
            self._start()
        return self._ready(self._options.threads + 1)

    def close(self) -> list[QueryRows]:
        """End the stream; give all remaining rows."""
        self._next += self._tail
        if self._next:
            self._start()
        rows = self._ready(0)
        self._folds.close()
        rows += self._folded()
        self._threads.shutdown()
        return rows

    def _last(self, batch: pa.RecordBatch) -> int:
        return int(integers(batch.column(self._schema.clock.column), self._schema.clock.column)[0][-1])

    def _start(self) -> None:
        compiled = self._spare.pop() if self._spare else None
        self._under_way.append(self._threads.submit(self._made, self._next, compiled, self._opens))
        self._next, self._opens = [], False

    def _made(self, batches: list[pa.RecordBatch], compiled: CompiledWorkload | None, opens: bool) -> _Done:
        """What a thread makes of a chunk."""
        chunk = Chunk(self._workload, self._schema, self._options, opens=opens, compiled=compiled)
        closed: dict[int, list[Closed]] = {place: [] for place in self._queries}
        for batch in _whole(batches, self._schema.clock.column):
            chunk.process(batch)
        for place, pieces in closed.items():
            pieces += chunk.closed(place)
        maps = chunk.finish().get(())
        stats = chunk.stats | {"events": sum(each.num_rows for each in batches)}
        self._spare.append(chunk.executor.workload)
        return _Done(closed, maps, stats)

    def _ready(self, most: int) -> list[QueryRows]:
        """The rows of chunks that are done; waits while more than so many are under way."""
        rows: list[QueryRows] = []
        while self._under_way and (len(self._under_way) > most or self._under_way[0].done()):
            try:
                done = self._under_way.popleft().result()
            except BaseException:
                self._threads.shutdown(cancel_futures=True)
                raise
            for name, count in done.stats.items():
                before = self.stats.get(name, 0)
                self.stats[name] = (
                    max(before, count) if name in ("largest_count_bits", "partitions") else before + count
                )
            if done.maps is not None:
                self._folds.take(done.maps)
                rows += self._folded()
            units = self._schema.units
            for place, pieces in done.closed.items():
                query, columns = self._queries[place], self._columns[place]
                found = [piece_of(query, columns, each, units) for each in pieces]
                rows.append(QueryRows(query.name, columns, pieces=found))
        return rows

    def _folded(self) -> list[QueryRows]:
        """The rows of windows that have been closed by folding."""
        units = self._schema.units
        found: list[QueryRows] = []
        for place, rows in self._folds.rows(()).items():
            if rows.windows:
                found.append(present(self._queries[place], self._columns[place], rows, units))
        bits = "largest_count_bits"
        self.stats[bits] = max(self.stats.get(bits, 0), self._folds.largest_count_bits)
        return found


def _whole(batches: list[pa.RecordBatch], time: str) -> list[pa.RecordBatch]:
    """Batches of which none goes on with the time of the one before."""
    found: list[list[pa.RecordBatch]] = []
    last: Any = None
    for batch in batches:
        times = batch.column(time)
        if found and times[0] == last:
            found[-1].append(batch)
        else:
            found.append([batch])
        last = times[batch.num_rows - 1]
    return [each[0] if len(each) == 1 else pa.concat_batches(each) for each in found]
