"""Bursts that wait: runs of many give what the bursts give one by one, and each event pushed on its own.

An extremum in RETURN keeps a query from waiting, so the same query with one is the other way to the same numbers.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.planner import compiled as classes

PATTERNS = (
    "SEQ(A a, B b+)",
    "(SEQ(A a, B b+))+",
    "SEQ(A a, B b+, C)",
    "(SEQ(A a, B b+, C))+",
    "SEQ(A a, C, B b+)",
    "(SEQ(A a, C, B b+))+",
    "SEQ(B b+, A a)",
    "(SEQ(B b+, A a))+",
    "SEQ(A a, NOT C, B b+)",
    "SEQ(A a, B b+, NOT C, D)",
    "SEQ(A a, B b+, C, D)",
    "SEQ(A a+, B b+)",
    "SEQ(A a, B b{2,4}, C)",
)
SUMS = "COUNT(*), SUM(b.v), COUNT(b), SUM(a.v)"
WINDOWS = ("WITHIN 4000 s", "WITHIN 900 s SLIDE 250 s", "WITHIN 600 s SLIDE 700 s")
Rows = list[dict[str, Any]]


def workload(items: str, window: str) -> hamlet.Workload:
    return hamlet.Workload.parse(
        "".join(f"RETURN k, {items} PATTERN {pattern} GROUP-BY k {window};\n" for pattern in PATTERNS)
    )


def stream(seed: int, events: int, most: int, longest: int = 90) -> pa.Table:
    """Bursts of up to `longest` events of a type, two keys; some values are NULL, none is larger than `most`."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest, events)
    types = np.repeat(random.integers(0, 4, events), lengths)[:events]
    return pa.table(
        {
            "type": pa.array(np.array(["A", "B", "C", "D"])[types]),
            "time": np.cumsum(random.integers(0, 3, events) > 0),
            "k": np.repeat(random.integers(0, 2, events), 7)[:events],
            "v": pa.array(random.integers(-most, most, events), mask=random.random(events) < 0.1),
        }
    )


def sums(workload: hamlet.Workload, events: pa.Table) -> Rows:
    """The rows of all queries without the extremum."""
    rows = hamlet.run(workload, events).rows()
    return [{name: value for name, value in row.items() if not name.startswith("min")} for row in rows]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("most", [100, 2**62], ids=["small", "large"])
def test_runs_of_bursts_give_what_bursts_give(window: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, at_once = workload(SUMS, window), workload(f"{SUMS}, MIN(b.v)", window)
    for seed, bands in itertools.product(range(3), (True, False)):
        events = stream(seed, 4_000, most)
        with monkeypatch.context() as patch:
            if not bands:
                patch.setattr(classes, "bands", lambda *_, **__: [])
            found, wanted = sums(waiting, events), sums(at_once, events)
        assert found == wanted
        assert max(row["count"] for row in found).bit_length() > 100


def test_every_event_pushed_on_its_own() -> None:
    """Then nothing ever waits for a second one."""
    queries = workload(SUMS, WINDOWS[1])
    events = stream(5, 1_500, 1000)
    engine = hamlet.Engine(queries)
    pushed = [row for event in events.to_pylist() for row in engine.push([event])]
    pushed += engine.close()
    assert len(pushed) > 10
    assert sorted(map(repr, pushed)) == sorted(map(repr, hamlet.run(queries, events).rows()))
