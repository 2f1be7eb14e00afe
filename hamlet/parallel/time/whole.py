"""Chunks of whole windows: where no windows of a query overlap, the stream is cut where none is open at all.

What is in one window says nothing of another one (a trend, what forbids it, and the events that
form a partition lie in one window). So chunks are computed apart, and their rows only follow each other. Each thread
keeps its executor from chunk to chunk: to it, the chunks of the others are gaps in the stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import lcm
from typing import Any

import pyarrow as pa

from hamlet.engine.executor import executor_of, paths_taken, stats_of
from hamlet.engine.feed import Feed, whole_steps
from hamlet.engine.online import Engine
from hamlet.input.columns import StringPool, integers
from hamlet.input.ordering import SortKey, whole_panes
from hamlet.language.schema import MOST_TICKS
from hamlet.output.query_rows import QueryRows
from hamlet.planner.compiled import CompiledWorkload


def common_border(compiled: CompiledWorkload) -> int | None:
    """Ticks between times at which no window of any query is open; None where there are none such."""
    if any(query.reach is not None and not query.reach.stays for query in compiled.queries):
        return None
    if not all(each.line.is_plain for each in compiled.classes):
        return None
    windows = {query.window for query in compiled.queries}
    ticks = lcm(*(slide for _, slide in windows))
    return ticks if ticks <= MOST_TICKS and all(within <= slide for within, slide in windows) else None


class WholeChunks:
    """A workload whose windows do not overlap (`hamlet.parallel.time.side_by_side.Work`).

    Parameters
    ----------
    engine : Engine
        Of a workload that has a `common_border`.
    """

    sizes = (1 << 18, 1 << 20)  # rows are read once per chunk and query
    spreads = True

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        border = common_border(engine.executor.workload)
        assert border is not None
        self.step = border
        self._own = threading.local()  # the feed of a thread
        self._feeds: list[Feed] = []  # those of all

    @property
    def stats(self) -> dict[str, Any]:
        """Counters, as `Executor.stats`, of all threads."""
        executors = [self._engine.executor, *(each.executor for each in self._feeds)]
        return stats_of(executors) | paths_taken(executors)

    def job(self, batches: list[pa.RecordBatch]) -> Callable[[], list[QueryRows]]:
        """What a thread has to do for the next chunk."""
        return partial(self._made, batches)

    def _made(self, batches: list[pa.RecordBatch]) -> list[QueryRows]:
        feed, time = self._feed(), self._engine.clock.column
        pane = feed.executor.pane
        pieces = whole_panes(whole_steps(batches, time, pane), SortKey(time), pane)
        rows = [each for piece in pieces for each in feed.take(piece, wait=True)]
        last = int(integers(batches[-1].column(time).slice(batches[-1].num_rows - 1), time)[0][0])
        feed.finish((last // self.step + 1) * self.step)
        return rows + feed.executor.drain()

    def _feed(self) -> Feed:
        if not hasattr(self._own, "feed"):
            options = replace(self._engine.options, threads=1)
            schema = self._engine.executor.workload.schema
            self._own.feed = Feed(executor_of(self._engine.workload, schema, StringPool(), options))
            self._feeds.append(self._own.feed)
        return self._own.feed  # type: ignore[no-any-return]

    def taken(self, made: list[QueryRows]) -> list[QueryRows]:
        """The rows of the next chunk."""
        return made

    def closed(self) -> list[QueryRows]:
        """None: every chunk has closed its windows."""
        return []
