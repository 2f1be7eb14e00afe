"""Threads: a batch is prepared while the kernels are busy with the one before; rows and errors are the same."""

from __future__ import annotations

import threading
import time

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.engine.workers import Workers
from hamlet.errors import DataError

LARGEST = 2**63 - 1


def stream(rows: int, batch: int, *, too_large: int | None = None) -> pa.Table:
    """Batches of so many rows; one product of `too_large` and its neighbour does not fit 64 bits."""
    draw = np.random.default_rng(11)
    values = draw.integers(1, 9, rows)
    if too_large is not None:
        values[too_large] = LARGEST
    table = pa.table(
        {
            "time": np.arange(rows) // 3,
            "type": draw.choice(["A", "B", "C", "late"], rows, p=[0.4, 0.4, 0.1, 0.1]),
            "k": draw.integers(0, 40, rows) + np.arange(rows) // 1000 * 10,
            "v": values,
        }
    )
    return pa.Table.from_batches(
        [each for start in range(0, rows, batch) for each in table.slice(start, batch).to_batches()]
    )


TEXT = """RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 200 s SLIDE 100 s;
          RETURN COUNT(*) PATTERN SEQ(A, NOT C, B+) WHERE [k] AND B.v > 2 AND B.v < NEXT(B).v WITHIN 100 s;
          RETURN v, COUNT(*) PATTERN A+ GROUP-BY v WITHIN 50 s"""


@pytest.mark.parametrize("threads", [2, 4])
def test_rows_are_those_of_one_thread(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where keys are forgotten meanwhile, and with kinds of events that come late."""
    workload = hamlet.Workload.parse(TEXT)
    events = stream(6000, 97)
    expected = hamlet.run(workload, events)
    monkeypatch.setattr("hamlet.engine.keys._FEW", 60)
    found = hamlet.run(workload, events, threads=threads)
    assert found.rows() == expected.rows()
    assert len(found) > 500
    for name in ("events", "matched_events", "windows", "largest_count_bits"):
        assert found.stats[name] == expected.stats[name]


@pytest.mark.parametrize("place", [150, 3000, 5999])
def test_errors_are_those_of_one_thread(place: int) -> None:
    text = "RETURN k, COUNT(*) PATTERN A+ WHERE PREV(A).v * A.v * 4 > 0 GROUP-BY k WITHIN 900 s"
    workload = hamlet.Workload.parse(text)
    events = stream(6000, 97, too_large=place)
    events = events.set_column(1, "type", pa.repeat("A", 6000))
    said = []
    for threads in (1, 2, 3):
        with pytest.raises(DataError, match="passes 64 bits") as error:
            hamlet.run(workload, events, threads=threads)
        said.append(str(error.value))
    assert said[0] == said[1] == said[2]


def test_jobs_of_one_number_keep_their_order() -> None:
    workers, done, gate = Workers(2), list[str](), threading.Event()
    workers.do(0, gate.wait)
    workers.do(0, lambda: done.append("second"))
    workers.do(1, lambda: (time.sleep(0.01), done.append("first"), gate.set()))
    workers.settle()
    assert done == ["first", "second"]


def test_nothing_is_done_after_a_failure() -> None:
    workers, done = Workers(2), list[int]()

    def fail() -> None:
        raise ValueError("the first one")

    workers.do(0, fail)
    workers.do(0, lambda: done.append(1))
    with pytest.raises(ValueError, match="the first one"):
        workers.settle()
    workers.do(1, lambda: done.append(2))
    workers.settle()
    assert done == []
