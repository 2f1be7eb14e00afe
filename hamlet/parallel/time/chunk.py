"""What a stretch of the stream makes of a class of queries: rows of windows inside it, maps for those beyond.

A window that begins within the chunk runs as always; if it is still open at the chunk's end, its vector is kept. For
windows that began before, probes compute what the chunk makes of any vector: its final sums where the window ends
within the chunk, and the whole matrix for those that last longer. One map serves all windows, however many overlap.

Contract
--------
**Whole steps.** A chunk holds all events of each of its times (and orders): two chunks never share a time.
**Nothing else.** A chunk knows nothing of other chunks, so they may be computed in any order and place.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from hamlet.engine.executor import Executor, executor_of
from hamlet.engine.keys import Key
from hamlet.engine.options import Options
from hamlet.input.columns import BatchColumns, StringPool, integers
from hamlet.language.schema import Schema
from hamlet.output.rows import Closed, GroupRows, group_rows
from hamlet.parallel.time.probes import Entries, Probes, coordinates_of, exported_sums
from hamlet.planner.compiled import CompiledWorkload
from hamlet.planner.coordinates import Sums
from hamlet.planner.workload import Workload


@dataclass
class Maps:
    """What a chunk makes of the windows of one partition that reach beyond it.

    Attributes
    ----------
    first, last : int
        Ticks: the chunk's first and last time.
    ends : dict of (int, int) to Entries
        (query of the kernel, window) -> the final sums, column 0, of a window that began before the chunk and ends in
        it; none for a window that ends before the partition's first event here.
    through : dict of int to Entries
        Query -> the matrix for windows that began before the chunk and end after it.
    begun : dict of (int, int) to dict of int to components
        (query, window) -> the vector of a window that began in the chunk and ends after it; one that is not here has
        had no event.
    """

    first: int
    last: int
    ends: dict[tuple[int, int], Entries] = field(default_factory=dict)
    through: dict[int, Entries] = field(default_factory=dict)
    begun: dict[tuple[int, int], dict[int, Sums]] = field(default_factory=dict)


class Chunk:
    """One class of queries over a stretch of the stream.

    Parameters
    ----------
    workload : Workload
        With the queries of one class only, which `hamlet.planner.coordinates.refusal` accepts.
    schema : Schema
    options : Options
    opens : bool
        Whether no event of the stream is before the chunk: then no window has begun before it.
    compiled : CompiledWorkload, optional
        The workload for the schema, if a chunk that is finished has left it.
    """

    def __init__(
        self,
        workload: Workload,
        schema: Schema,
        options: Options,
        *,
        opens: bool = False,
        compiled: CompiledWorkload | None = None,
    ) -> None:
        if compiled is None:
            self.executor = executor_of(workload, schema, StringPool(), replace(options, threads=1))
        else:
            self.executor = Executor(compiled, sharing=options.decided_by, paths=options.paths)
        (self.compiled,) = self.executor.workload.classes
        self._queries = {each.analysed.index: each for each in self.compiled.queries}
        self.first: int | None = None
        self.last = 0
        self._schema = schema
        self._opens = opens
        self._sharing = options.decided_by
        self._of = coordinates_of(self.compiled)
        self._runner = self.executor.runner(0)
        self._probes: Probes | None = None
        self._due: deque[tuple[int, int, int]] = deque()  # (end, query, window) of the windows that began before
        self._begin = 0  # no window that begins in the chunk begins before this time
        self._outside = 0  # matched events before that time
        self._maps: dict[Key, Maps] = {}

    @property
    def stats(self) -> dict[str, int]:
        """Counters, as `Executor.stats`."""
        found = self.executor.stats
        return found | {"matched_events": found["matched_events"] + self._outside}

    def process(self, batch: pa.RecordBatch) -> None:
        """Take the next events: not empty, in the order of time, all of a time in one batch.

        Raises
        ------
        DataError, MemoryLimitError
            As `Executor.process`.
        """
        times = integers(batch.column(self._schema.clock.column), self._schema.clock.column)[0]
        if self.first is None:
            self._start(int(times[0]))
        self.last = int(times[-1])
        at = 0
        while self._probes is not None and self._due and self._due[0][0] <= self.last:
            cut = int(np.searchsorted(times, self._due[0][0]))
            self._probe(self._probes, batch.slice(at, cut - at))
            at = cut
            self._end(self._probes)
        if self._due and self._probes is not None:
            self._probe(self._probes, batch.slice(at))
        else:
            self._probes = None
        inside = batch.slice(int(np.searchsorted(times, self._begin)))
        if inside.num_rows:
            self.executor.process(inside, self.last)
        self.executor.advance(self.last)

    def _start(self, first: int) -> None:
        self.first = self._begin = first
        if self._opens:
            self._begin -= max(within for within, _ in (each.window for each in self._of))
            return
        self._begin = min(-(-first // each.window[1]) * each.window[1] for each in self._of)
        due = [
            (window * each.window[1] + each.window[0], query, window)
            for query, each in enumerate(self._of)
            for window in each.ends_after(first)
        ]
        self._due = deque(sorted(due))
        if due:
            self._probes = Probes(
                self.compiled, self.executor.workload, self._sharing, self.executor.budget, self.executor.paths
            )

    def _probe(self, probes: Probes, batch: pa.RecordBatch) -> None:
        """Feed the probes; what comes before the chunk's first window is counted here, all else by the executor."""
        times = integers(batch.column(self._schema.clock.column), self._schema.clock.column)[0]
        cut = int(np.searchsorted(times, self._begin))
        self._feed(probes, batch.slice(0, cut))
        self._outside += probes.matched
        self._feed(probes, batch.slice(cut))
        probes.matched = 0

    def _feed(self, probes: Probes, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        columns = BatchColumns(batch, probes.workload.strings)
        coded = probes.workload.classifier.coded(columns, self._schema.type_column)
        for job in probes.jobs(columns, coded, 0):
            job()

    def _end(self, probes: Probes) -> None:
        """Note the final sums of the windows that end first."""
        end = self._due[0][0]
        while self._due and self._due[0][0] == end:
            _, query, window = self._due.popleft()
            for key, entries in probes.final_sums(query).items():
                self._of_key(key).ends[query, window] = entries

    def _of_key(self, key: Key) -> Maps:
        if key not in self._maps:
            assert self.first is not None
            self._maps[key] = Maps(self.first, self.last)
        return self._maps[key]

    def closed(self, query: int) -> list[Closed]:
        """Closed windows of a query (its place in the workload) that began in the chunk, since the last call."""
        pieces = self.executor.drain_closed(query)
        if self._opens or self.first is None or not pieces:
            return pieces
        slide = self._queries[query].window[1]
        return [piece.where(piece.begin(slide) >= self.first) for piece in pieces]

    def rows(self, query: int) -> GroupRows:
        """The closed windows of a query that began in this chunk, in Python values."""
        return group_rows(self._queries[query], self.closed(query))

    def finish(self) -> dict[Key, Maps]:
        """The maps of all partitions; the rows have been taken, and no more events come."""
        if self.first is None:
            return {}
        if self._probes is not None:
            for query in {query for _, query, _ in self._due}:
                for key, entries in self._probes.matrices(query).items():
                    self._of_key(key).through[query] = entries
        for query, of in enumerate(self._of):
            for window, key, place, sums in self._standing(query):
                if not self._opens and window * of.window[1] < self.first:
                    continue
                vector = self._of_key(key).begun.setdefault((query, window), of.beginning)
                if place < of.cells:
                    vector[place] = sums
                else:
                    vector.pop(place, None)
        for maps in self._maps.values():
            maps.last = self.last
        return self._maps

    def _standing(self, query: int) -> list[tuple[int, Key, int, Sums]]:
        """(window, partition, entry, sums) of the windows that run as always; of starts those that are dead."""
        of = self._of[query]
        places = {cell: cell for cell in range(of.cells)}
        places |= {of.cells + guards: of.cells + place for place, guards in enumerate(of.starts) if guards >= 0}
        return [
            (window, key, entry, sums)
            for place, entry in places.items()
            for key, window, sums in exported_sums(self._runner, query, place)
        ]
