"""Integers beyond 64 bits in lanes: queries side by side, against `scalar` and the oracle, in vectors of any width."""

from __future__ import annotations

import random
from typing import Any

import pytest

import hamlet
from hamlet import oracle
from hamlet.planner.paths import FEATURES
from tests.comparison import in_file_order

SHAPES = (
    "SEQ(A, B+)",
    "SEQ(A, B+, C)",
    "(SEQ(A, B+))+",
    "SEQ(A+, C)",
    "SEQ(A, B+, NOT C)",
    "SEQ(A, NOT C, B+)",
    "SEQ(NOT D, A, B+)",
    "SEQ(A+, NOT C, B+, NOT D)",
)
ITEMS = ("COUNT(*)", "SUM({v}.v)", "AVG({v}.v)", "COUNT({v})", "MAX({v}.v), SUM({v}.v)", "MIN({v}.v), COUNT(*)")
WIDTHS = {"8": (), "4": ("avx512",), "2": ("avx512", "avx2")}  # elements of a vector by what is left out


def asked(window: str, queries: int = 14, condition: str = "") -> hamlet.Workload:
    """Queries of all shapes, with all aggregates in turns."""
    found = []
    for number in range(queries):
        shape = SHAPES[number % len(SHAPES)]
        item = ITEMS[number % len(ITEMS)].format(v="A" if "A+" in shape else "B")
        found.append(f"RETURN k, {item} PATTERN {shape} {condition} GROUP-BY k {window}")
    return hamlet.Workload.parse("; ".join(found))


def stream(seed: int, events: int, *, burst: int = 1, ties: float = 0.3, most: int = 99) -> list[dict[str, Any]]:
    """Two groups; values of both signs, NULL among them; few events kill."""
    chance, time, found = random.Random(seed), 0, []
    while len(found) < events:
        kind, key = chance.choices("ABCD", (20, 60, 2, 1))[0], chance.randint(0, 1)
        for _ in range(chance.randint(1, burst)):
            time += chance.random() >= ties
            value = None if chance.random() < 0.05 else chance.randint(-most, most)
            found.append({"time": time, "type": kind, "k": key, "v": value})
    return found


def alone(workload: hamlet.Workload, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return hamlet.run(workload, events, operators="scalar", features="", sharing="never").rows()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("most", [99, 3_000, 2**40, 2**62])
def test_numbers_of_any_size(width: str, most: int) -> None:
    """Counts to 2^600 and more, values that are multiplied at once and piece by piece, bursts and ties."""
    workload = asked("WITHIN 400 s")
    features = [name for name in FEATURES if name not in WIDTHS[width]]
    for seed, (burst, ties) in enumerate(((1, 0.5), (1, 0.0), (30, 0.05), (4, 0.3))):
        events = stream(seed, 1_500, burst=burst, ties=ties, most=most)
        expected = alone(workload, events)
        for sharing in ("dynamic", "static", "never"):
            results = hamlet.run(workload, events, features=features, sharing=sharing)
            assert results.rows() == expected, (seed, sharing)
            if most == 99:  # large numbers of long bursts are no lanes, whose bursts could not wait
                work = results.stats["operators"]
                in_lanes = work["simd"]["events"] + work["pane_matrix"]["events"]
                assert (in_lanes > work["scalar"]["events"]) == (burst < 12)
            assert results.stats["largest_count_bits"] > 128


def test_very_large_numbers() -> None:
    """Long bursts shift by many limbs, also between short ones; counts of 4,500 bits."""
    workload = asked("WITHIN 100000 s", queries=9)
    for burst, longest in ((300, 0), (20, 0), (4, 200)):
        events = stream(1, 12_000, burst=burst, ties=0.0)
        for place in (5_000, 9_000):
            events[place : place + longest] = [each | {"type": "B", "k": 0} for each in events[place : place + longest]]
        results = hamlet.run(workload, events)
        assert results.stats["largest_count_bits"] > 4_000
        assert results.rows() == alone(workload, events)


@pytest.mark.parametrize("window", ["WITHIN 300 s", "WITHIN 300 s SLIDE 40 s", "WITHIN 200 s SLIDE 270 s"])
def test_pushes_and_saves(window: str) -> None:
    """A save writes what lies in limbs; the next windows are lanes again."""
    workload, events = asked(window), stream(3, 1_500, burst=3, most=5_000)
    expected = alone(workload, events)
    for seed in range(4):
        chance = random.Random(seed)
        engine, rows, first = hamlet.Engine(workload), [], 0
        while first < len(events):
            last = first + chance.choice([1, 9, 64, 65, 300])
            rows += engine.push(events[first:last])
            first = last
            if chance.random() < 0.2:
                engine = hamlet.Engine.restore(workload, engine.save())
        rows += engine.close()
        assert in_file_order(rows, workload.names) == expected


@pytest.mark.parametrize("width", WIDTHS)
def test_every_event_doubles_a_count(width: str) -> None:
    """The highest limb grows as fast as its bound: what is carried out of it is more than one limb."""
    asked_for = [f"SEQ({first}, ({one} | {other})+)" for first in "AFG" for one, other in ("BC", "CD", "BD", "BE")]
    text = "; ".join(f"RETURN COUNT(*) PATTERN {pattern} WITHIN 3000 s SLIDE 1000 s" for pattern in asked_for)
    workload, kinds = hamlet.Workload.parse(text), "AFG" + "BC" * 120
    events = [{"time": 9 * place, "type": kind} for place, kind in enumerate(kinds)]
    features = [name for name in FEATURES if name not in WIDTHS[width]]
    rows = hamlet.run(workload, events, features=features).rows()
    counts = [row["count"] for row in rows if row["query"] == "q1" and row["window_start"] == 0]
    assert counts == [2**240 - 1]
    assert rows == alone(workload, events)


def test_the_oracle_agrees() -> None:
    """Few events whose values are so large that sums are limbs from the first one on."""
    for seed in range(12):
        workload, events = asked("WITHIN 9 s"), stream(seed, 14, most=2**63 - 1, ties=0.2)
        assert hamlet.run(workload, events).rows() == oracle.evaluate(workload.analysis.text, events), seed


def test_columns_widen_while_numbers_are_limbs() -> None:
    workload, events = asked("WITHIN 500 s"), stream(5, 800)
    late = [{**event, "v": event["v"] and abs(event["v"]) + 0.5} for event in events[500:]]
    early = [{**event, "v": event["v"] and abs(event["v"])} for event in events[:500]]
    expected = hamlet.Engine(workload, operators="scalar", features="")
    rows = expected.push(early) + expected.push(late) + expected.close()
    engine = hamlet.Engine(workload)
    found = engine.push(early) + engine.push(late) + engine.close()
    for row, wanted in zip(found, rows, strict=True):
        assert {
            name: pytest.approx(value) if isinstance(value, float) else value for name, value in wanted.items()
        } == row
