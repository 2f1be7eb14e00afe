"""A continuous job without Spark: micro-batches, engines that are saved between them, rows of closed windows once."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet.errors import DataError
from hamlet.output.query_part import query_results
from hamlet.parallel.routing.placement import plain
from hamlet.parallel.routing.routes import routes
from hamlet.spark.online import QueryWork, met
from hamlet.spark.rows import Presenter
from hamlet.spark.tasks import columns_of
from tests.comparison import difference, in_any_order
from tests.parallel.test_slicing import FEATURES, drawn
from tests.spark.test_partial_rows import pieces, shipment_of, table_of
from tests.strategies import Case

Packets = list[list[tuple[int, int, bytes | None, bytes | None]]]  # of each slice
END = 1 << 60  # a time at which all windows are closed


class Job:
    """A continuous job of several slices, whose engines live as bytes only."""

    def __init__(self, case: Case, slices: int, lateness: int = 0, late: str = "error") -> None:
        self.table = table_of(case)
        self.shipment = shipment_of(case[0], self.table, **case[2])
        compiled = self.shipment.compiled()
        self.clock = compiled.schema.clock
        parts = routes(self.shipment.workload, compiled)
        self.columns = list(columns_of(parts, compiled.schema))
        self.work = QueryWork(self.shipment, parts, plain(compiled, parts, slices), lateness, late)
        self.states: list[bytes | None] = [None] * slices
        self.counts = (0, 0)  # of the last micro-batch: events read, late ones

    def batch(self, events: list[pa.RecordBatch], end: bool = False) -> list[dict[str, Any]]:
        """A micro-batch, one task per record batch: the rows of windows that it closes."""
        packets: Packets = [[(END, END, None, None)] if end else [] for _ in self.states]
        for task, part in enumerate(events):
            for sent in self.work.packed(task, [part.select(self.columns)]):
                for row in sent.to_pylist():
                    packets[row["slice"]].append((row["first"], row["latest"], row["seen"], row["events"]))
        closed: dict[int, list[bytes]] = {}
        read = late = 0
        for slice, mine in enumerate(packets):
            if mine:
                monitor = self.work.opened(slice, self.states[slice])
                for packet in reversed(mine):
                    monitor.take(*packet)
                for bucket, data in monitor.closed():
                    closed.setdefault(bucket, []).append(data)
                self.states[slice] = monitor.save()
                read, late = read + monitor.read, late + monitor.late_events
        self.counts = (read, late)
        rows = []
        for bucket, several in closed.items():
            part = pa.record_batch({"bucket": [bucket] * len(several), "rows": several})
            for _, found in Presenter(self.shipment).rows(met([part])):
                rows += query_results([found], self.clock).rows()
        return rows


@pytest.mark.sampled(2)
@pytest.mark.parametrize("features", [*FEATURES, "partial keys"])
def test_micro_batches_give_the_rows_of_one_run(features: str) -> None:
    for seed in range(5):
        case, chance = drawn(features, seed), random.Random(seed)
        job = Job(case, (1, 2, 5)[seed % 3])
        rows: list[dict[str, Any]] = []
        batches = list(pieces(job.table.sort_by(job.clock.column), chance))
        while batches:
            cut = chance.randint(1, 3)
            rows += job.batch(batches[:cut])
            batches = batches[cut:]
        rows += job.batch([], end=True)
        expected = hamlet.run(hamlet.Workload.parse(case[0]), job.table, **case[2]).rows()
        wrong = difference(in_any_order(rows), in_any_order(expected))
        assert wrong is None, f"seed {seed}: {wrong}\n{case}"


COUNT = "RETURN COUNT(*) PATTERN A+ GROUP-BY k WITHIN 10 s"


def events(*times: int, type: str = "A") -> list[pa.RecordBatch]:
    return pa.table({"time": times, "type": [type] * len(times), "k": [time % 5 for time in times]}).to_batches()


def test_the_watermark_is_that_of_all_slices() -> None:
    """An event of one slice closes the windows of all, an event that no query wants does so too, a late one is told."""
    job = Job((COUNT, pa.concat_batches(events(1, 2, 3, 4)).to_pylist(), {}), 5, lateness=3)
    assert job.batch(events(1, 2, 3, 4)) == []
    assert job.batch(events(12, type="Z")) == []
    assert sorted(row["count"] for row in job.batch(events(9, 13))) == [1, 1, 1, 3]
    with pytest.raises(DataError, match="is late: its time is 9, and no event before 10 is expected"):
        job.batch(events(9))
    dropping = Job((COUNT, pa.concat_batches(events(1, 2)).to_pylist(), {}), 2, lateness=0, late="drop")
    dropping.batch(events(20))
    assert dropping.batch(events(3, 21)) == []
    assert dropping.counts == (2, 1)
