"""Chunks with maps: one giant group, its windows folded over the chunks that they span."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from hamlet.engine.executor import paths_taken
from hamlet.engine.feed import whole_steps
from hamlet.engine.online import Engine
from hamlet.output.query_rows import QueryRows
from hamlet.output.rows import Closed, piece_of, present, result_columns
from hamlet.parallel.time.chunk import Chunk, Maps
from hamlet.parallel.time.fold import Folds
from hamlet.planner.compiled import CompiledWorkload
from hamlet.planner.coordinates import refusal


def have_maps(compiled: CompiledWorkload) -> bool:
    """Whether there is one group, and all queries have maps."""
    return all(not each.attributes and each.line.is_plain and refusal(each) is None for each in compiled.classes)


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Counters by name, or mappings of such, added up.

    Examples
    --------
    >>> added({"simd": {"events": 2}}, {"simd": {"events": 3}, "scalar": {"events": 1}})
    {'simd': {'events': 5}, 'scalar': {'events': 1}}
    """
    return dict(one) | {
        name: added(one.get(name, {}), more) if isinstance(more, Mapping) else one.get(name, 0) + more
        for name, more in other.items()
    }


@dataclass(frozen=True)
class _Made:
    """What a chunk has made; `last` is the time of its last event, in ticks."""

    closed: dict[int, list[Closed]]
    maps: Maps | None
    stats: Mapping[str, Any]
    last: int


class MappedChunks:
    """A workload without groups, cut between any two times (`hamlet.parallel.time.side_by_side.Work`).

    Parameters
    ----------
    engine : Engine
        Of a workload that has maps.

    Attributes
    ----------
    stats : dict
        Counters, as `Executor.stats`; a window that spans chunks counts in each.
    """

    step = 1
    sizes = (1 << 18, 3 << 18)  # a chunk has a kernel of its own, and its maps are folded
    spreads = False

    def __init__(self, engine: Engine) -> None:
        self.stats: dict[str, Any] = {}
        compiled = engine.executor.workload
        self._workload, self._options, self._schema = engine.workload, engine.options, compiled.schema
        self._queries = {query.analysed.index: query for query in compiled.queries}
        self._columns = {place: result_columns(query, self._schema) for place, query in self._queries.items()}
        self._folds = Folds(compiled.classes[0])
        self._opens = True
        self._own = threading.local()  # the workload, compiled once for all chunks of a thread

    def job(self, batches: list[pa.RecordBatch]) -> Callable[[], _Made]:
        """What a thread has to do for the next chunk."""
        opens, self._opens = self._opens, False
        return partial(self._made, batches, opens)

    def _made(self, batches: list[pa.RecordBatch], opens: bool) -> _Made:
        known = getattr(self._own, "compiled", None)
        chunk = Chunk(self._workload, self._schema, self._options, opens=opens, compiled=known)
        closed: dict[int, list[Closed]] = {place: [] for place in self._queries}
        for batch in whole_steps(batches, self._schema.clock.column, 1):
            chunk.process(batch)
        for place, pieces in closed.items():
            pieces += chunk.closed(place)
        maps = chunk.finish().get(())
        self._own.compiled = chunk.executor.workload
        events = sum(each.num_rows for each in batches)
        return _Made(closed, maps, chunk.stats | {"events": events} | paths_taken([chunk.executor]), chunk.last)

    def taken(self, made: _Made) -> list[QueryRows]:
        """The rows that are ready with the next chunk."""
        for name, count in made.stats.items():
            if name in ("operators", "features"):
                self.stats[name] = added(self.stats.get(name, {}), count)
                continue
            before = self.stats.get(name, 0)
            self.stats[name] = max(before, count) if name in ("largest_count_bits", "partitions") else before + count
        if made.maps is not None:
            self._folds.take(made.maps)
        self._folds.close(made.last)  # a chunk without an event of the group has no maps
        rows = self._folded()
        units = self._schema.units
        for place, pieces in made.closed.items():
            query, columns = self._queries[place], self._columns[place]
            found = [piece_of(query, columns, each, units) for each in pieces]
            rows.append(QueryRows(query.name, columns, pieces=found))
        return rows

    def closed(self) -> list[QueryRows]:
        """The rows of the windows that are still open when the stream ends."""
        self._folds.close()
        return self._folded()

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
