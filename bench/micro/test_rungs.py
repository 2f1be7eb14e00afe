"""What an event costs on each rung: one query that runs on it, over one key and one window, the answer checked first.

``extra_info`` of every benchmark has ``ns_per_event``, and for the baselines ``ns_per_step`` of their inner loops.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import hamlet
from bench import answers, streams
from bench.baselines import strategy
from bench.baselines.question import Question

EVENTS, SMALL = 20_000, 600
WIDTH = 10 * EVENTS  # seconds: one window
FLOAT: dict[str, Any] = {"numbers": "float"}
EXACT: dict[str, Any] = {"numbers": "exact"}
# name -> (pattern, condition, bursty stream, options)
RUNGS: dict[str, tuple[str, str, bool, dict[str, Any]]] = {
    "state, float": ("SEQ(A, B+)", "", False, FLOAT),
    "state, exact": ("SEQ(A, B+)", "", False, EXACT),
    "bursts, float": ("SEQ(A, B+)", "", True, FLOAT),
    "bursts, exact": ("SEQ(A, B+)", "", True, EXACT),
    "guards, float": ("SEQ(A, NOT C, B+)", "", False, FLOAT),
    "index, float": ("SEQ(A, B b+)", "b.value < NEXT(b).value", False, FLOAT),
    "scan, float": ("SEQ(A, B b+)", "b.value * 2 < NEXT(b).value + b.other", False, FLOAT),
}
BASELINES = {"greta": EVENTS, "sharon": EVENTS, "two-step": 44}


def _stream(events: int, bursty: bool) -> pa.Table:
    random = np.random.default_rng(1)
    codes = streams.bursts(random, events, 3) if bursty else random.integers(0, 3, events)
    columns = {name: random.integers(0, 1_000, events) for name in ("value", "other")}
    return pa.table({"time": np.arange(events), "type": streams.typed(codes, ("A", "B", "C")), **columns})


def _workload(pattern: str, condition: str) -> hamlet.Workload:
    where = f"WHERE {condition}" if condition else ""
    return hamlet.Workload.parse(f"RETURN LOG2(COUNT(*)) PATTERN {pattern} {where} WITHIN {WIDTH} s")


@pytest.mark.parametrize("name", RUNGS)
def test_rung(benchmark: BenchmarkFixture, name: str) -> None:
    """Our engine on one rung."""
    pattern, condition, bursty, options = RUNGS[name]
    workload = _workload(pattern, condition)
    small = _stream(SMALL, bursty)
    if name.partition(",")[0] != "scan":  # GRETA compares one attribute with one attribute
        expected, _ = strategy.run(strategy.GRETA, Question(workload, small))
        answers.compare(
            workload.analysis.text, hamlet.run(workload, small, **options).rows(), expected, ("we", "GRETA")
        )
    events = _stream(EVENTS, bursty)
    results = benchmark(lambda: hamlet.run(workload, events, **options).rows())
    assert results[0]["log2_count"] > 0
    _note(benchmark, ns_per_event=EVENTS)


@pytest.mark.parametrize("name", BASELINES)
def test_baseline(benchmark: BenchmarkFixture, name: str) -> None:
    """The inner loop of a baseline, where it can be made long; the stream is cut beforehand."""
    events = _stream(BASELINES[name], False)
    workload = _workload("SEQ(A, B+)", "")
    question = Question(workload, events)
    pieces = question.pieces(0, len(events))
    rows, steps = benchmark(lambda: strategy.run(strategy.STRATEGIES[name], question, pieces))
    expected = hamlet.run(workload, events, numbers="float").rows()
    answers.compare(workload.analysis.text, rows, expected, (name, "we"))
    _note(benchmark, ns_per_step=steps, ns_per_event=len(events))


def _note(benchmark: BenchmarkFixture, **counts: int) -> None:
    """Nanoseconds per event and per step, from the median; nothing where benchmarks are disabled."""
    stats: Any = benchmark.stats
    if stats is not None:
        median = statistics.median(stats.stats.data)
        benchmark.extra_info.update({name: round(1e9 * median / count, 4) for name, count in counts.items()})
