"""The operator `limb_matrix`: exact queries over overlapping windows, against the oracle and against `scalar`."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet import oracle
from hamlet.engine.inside import kernels_of
from hamlet.input.columns import StringPool
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock, Schema
from hamlet.planner.compile import compile_workload
from hamlet.planner.explain import view
from hamlet.planner.memory import bound
from tests.comparison import in_file_order

LIMBS = {"operators": "limb_matrix"}
SHAPES = (
    "RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k",
    "RETURN k, COUNT(*), SUM(B.v), COUNT(B) PATTERN SEQ(A, B+) WHERE B.v > -3 GROUP-BY k",
    "RETURN k, SUM(A.v), MIN(B.v), MAX(B.w) PATTERN SEQ(A+, B) GROUP-BY k",
    "RETURN k, AVG(B.v), MIN(B.w), SUM(A.v) PATTERN (SEQ(A, B+))+ GROUP-BY k",
    "RETURN k, COUNT(*), SUM(C.v), COUNT(A) PATTERN SEQ(A, B+, C) GROUP-BY k",
    "RETURN k, COUNT(*), SUM(A.v), MAX(C.w) PATTERN SEQ(A, B?, C+) GROUP-BY k",
    "RETURN k, COUNT(A), MAX(A.v) PATTERN A{2,} GROUP-BY k",
)
DOUBLES = "RETURN k, SUM(B.w), AVG(A.w) PATTERN (SEQ(A, B+))+ GROUP-BY k"  # large ones are rounded


def stream(events: int, *, ties: float = 0.0, seed: int = 1, burst: int = 1, gap: int = 3) -> list[dict[str, Any]]:
    """Types A to D in bursts; v has negative values and NULL, w eighths, so that sums of doubles are exact."""
    chance = random.Random(seed)
    time, found = 0, []
    while len(found) < events:
        kind, key = chance.choice("AABBBCD"), chance.randint(0, 1)
        for _ in range(chance.randint(1, burst)):
            time += 0 if chance.random() < ties else chance.randint(1, gap)
            event: dict[str, Any] = {"time": time, "type": kind, "k": key}
            event["v"] = None if chance.random() < 0.1 else chance.randint(-9, 9)
            event["w"] = None if chance.random() < 0.1 else chance.randint(-40, 40) / 8
            found.append(event)
        time += 200 if chance.random() < 0.02 else 0
    return found


def asked(window: str, shapes: tuple[str, ...] = SHAPES) -> hamlet.Workload:
    return hamlet.Workload.parse("; ".join(f"{shape} {window}" for shape in shapes))


def served(results: hamlet.Results) -> dict[str, int]:
    return {name: work["events"] for name, work in results.stats["operators"].items() if work["events"]}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ties", [0.0, 0.4])
@pytest.mark.parametrize("window", ["WITHIN 18 s SLIDE 2 s", "WITHIN 17 s SLIDE 3 s", "WITHIN 9 s SLIDE 1 s"])
def test_oracle(window: str, ties: float) -> None:
    for seed in range(10):
        workload, events = asked(window, (*SHAPES, DOUBLES)), stream(22, ties=ties, seed=seed, burst=1 + seed % 4)
        results = hamlet.run(workload, events, **LIMBS)
        assert results.rows() == oracle.evaluate(workload.analysis.text, events), (seed, window)
        assert "limb_matrix" in served(results)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("window", ["WITHIN 900 s SLIDE 60 s", "WITHIN 2000 s SLIDE 130 s", "WITHIN 300 s SLIDE 1 s"])
def test_size(window: str) -> None:
    """Bands hand large counts over to it; results are those of `scalar`."""
    workload = asked(window)
    for ties, burst in ((0.0, 40), (0.1, 3)):
        events = stream(3_000, ties=ties, burst=burst)
        expected = hamlet.run(workload, events, operators="scalar", features="")
        for options in ({}, LIMBS, {"threads": 2}, {"sharing": "never"}, {"features": ""}):
            results = hamlet.run(workload, events, **options)
            assert results.rows() == expected.rows(), (options, ties)
            work = served(results)
            assert work.get("limb_matrix", 0) + work.get("pane_matrix", 0) > 1_000, (options, ties)
            assert results.stats["largest_count_bits"] == expected.stats["largest_count_bits"]


@pytest.mark.parametrize("operators", ["limb_matrix", None])
def test_saves_and_pushes(operators: str | None) -> None:
    workload, events = asked("WITHIN 600 s SLIDE 40 s"), stream(2_000, ties=0.01, burst=20)
    expected = hamlet.run(workload, events, operators="scalar", features="").rows()
    for seed in range(3):
        chance = random.Random(seed)
        engine, rows, first = hamlet.Engine(workload, operators=operators), [], 0
        while first < len(events):
            last = first + chance.choice([1, 7, 150, 600])
            rows += engine.push(events[first:last])
            first = last
            if chance.random() < 0.3:
                engine = hamlet.Engine.restore(workload, engine.save())
        rows += engine.close()
        assert in_file_order(rows, workload.names) == expected


def test_integers_become_doubles_while_windows_are_open() -> None:
    """What was packed by the tables of integers is unpacked by them."""
    events = stream(400, ties=0.01, burst=20)
    for shape in (*SHAPES, "RETURN k, SUM(A.v), MAX(A.v), COUNT(*) PATTERN A+ GROUP-BY k"):
        workload = asked("WITHIN 300 s SLIDE 20 s", (shape,))
        for first in (70, 150, 399):
            late = [{**event, "v": event["v"] and event["v"] + 0.5} for event in events[first:]]
            expected = hamlet.Engine(workload, operators="scalar", features="")
            rows = expected.push(events[:first]) + expected.push(late) + expected.close()
            for options in ({}, LIMBS):
                engine = hamlet.Engine(workload, **options)
                assert engine.push(events[:first]) + engine.push(late) + engine.close() == rows, (shape, first)


def test_quiet_keys_close_on_time() -> None:
    workload = asked("WITHIN 12 s SLIDE 2 s", SHAPES[:1])
    engine = hamlet.Engine(workload, **LIMBS)
    events = [{"time": time, "type": kind, "k": 0} for time, kind in ((1, "A"), (2, "B"), (5, "B"))]
    rows = engine.push(events)
    assert len(rows) == 1
    rows += engine.push([{"time": 40, "type": "D", "k": 1}])
    assert rows == hamlet.run(workload, events, operators="scalar").rows()


def test_what_is_kept_does_not_grow_with_open_windows() -> None:
    """Windows every minute or every second: what is kept is what stood when the key had an event."""
    events = [{"time": 120 * place, "type": "AB"[place > 0], "k": 0} for place in range(30)]
    held = {}
    for slide in (1, 60):
        engine = hamlet.Engine(asked(f"WITHIN 4000 s SLIDE {slide} s", SHAPES[:1]), **LIMBS)
        engine.push(events)
        [kernel] = kernels_of(engine)
        held[slide] = int(kernel.memory(0).sum())
    assert held[1] == held[60]


def test_what_it_serves() -> None:
    for pattern, by in (
        ("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 9 s SLIDE 1 s", "limb_matrix"),
        ("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 9 s SLIDE 4 s", "scalar"),
        ("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 9 s", "scalar"),
        ("RETURN COUNT(*) PATTERN SEQ(A, NOT C, B+) WITHIN 9 s SLIDE 1 s", "scalar"),
        ("RETURN COUNT(*) PATTERN A+ WHERE A.v < NEXT(A).v WITHIN 9 s SLIDE 1 s", "event_store"),
    ):
        workload, events = hamlet.Workload.parse(pattern), stream(200)
        results = hamlet.run(workload, events, **LIMBS)
        assert set(served(results)) == {by}, pattern
        assert results.rows() == hamlet.run(workload, events, operators="scalar").rows()
    for options in ({"numbers": "float", **LIMBS}, {"operators": "simd"}):
        workload = asked("WITHIN 900 s SLIDE 20 s", SHAPES[:1])
        assert "limb_matrix" not in served(hamlet.run(workload, stream(2_000), **options))


def test_explain_names_it() -> None:
    [query] = view(asked("WITHIN 90 s SLIDE 2 s", SHAPES[:1]), None).queries
    assert (query.exact.operator, query.exact.beyond) == ("simd", "limb_matrix")
    assert query.scaled.beyond is None


@pytest.mark.parametrize("shape", SHAPES)
def test_the_bound_of_memory_holds(shape: str) -> None:
    workload = asked("WITHIN 1000 s SLIDE 20 s", (shape,))
    schema = Schema({"v": AttributeType.INT, "w": AttributeType.DOUBLE}, Clock("time", "s", pa.int64()), closed=False)
    (query,) = compile_workload(workload.analysis, schema, StringPool(), exact=True).queries
    of = bound(query.tables, panes=True)
    engine, events = hamlet.Engine(workload, **LIMBS), stream(1_200, burst=10)
    for first in range(0, len(events), 100):
        engine.push(events[first : first + 100])
        [kernel] = kernels_of(engine)
        held = int(kernel.memory(0).sum())
        bits = first + 101  # every event at most doubles what there is
        assert held <= 2 * (of.partition + 50 * of.window.at(bits))
