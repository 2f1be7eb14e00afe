"""The operator `counting`: COUNT(*) of one type under a Kleene plus, against the oracle and against `scalar`."""

from __future__ import annotations

import random
from typing import Any

import pytest

import hamlet
from hamlet import oracle
from hamlet.engine.inside import kernels_of
from hamlet.planner.explain import view
from hamlet.planner.paths import ALONE
from tests.comparison import in_file_order

COUNTING = {"operators": "counting"}
WITHOUT = ["scalar", "event_store", "simd", "pane_matrix", "complete_window"]


def stream(events: int, *, ties: float = 0.0, seed: int = 1) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    time, found = 0, []
    for _ in range(events):
        time += 0 if chance.random() < ties else chance.randint(1, 3)
        found.append(
            {"time": time, "type": chance.choice("AAAB"), "k": chance.randint(0, 2), "v": chance.randint(0, 9)}
        )
    return found


def workload(window: str, where: str = "") -> hamlet.Workload:
    return hamlet.Workload.parse(f"RETURN k, COUNT(*) PATTERN A+ {where} GROUP-BY k {window}")


def served(results: hamlet.Results) -> dict[str, int]:
    return {name: work["events"] for name, work in results.stats["operators"].items() if work["events"]}


@pytest.mark.parametrize("ties", [0.0, 0.4])
@pytest.mark.parametrize("window", ["WITHIN 15 s", "WITHIN 20 s SLIDE 4 s", "WITHIN 6 s SLIDE 11 s"])
def test_oracle(window: str, ties: float) -> None:
    for seed in range(12):
        asked, events = workload(window, "WHERE A.v > 2" if seed % 2 else ""), stream(24, ties=ties, seed=seed)
        results = hamlet.run(asked, events, **COUNTING)
        assert results.rows() == oracle.evaluate(asked.analysis.text, events), (seed, window)
        assert "counting" in served(results)


@pytest.mark.parametrize("window", ["WITHIN 900 s", "WITHIN 2000 s SLIDE 130 s"])
def test_size(window: str) -> None:
    """Bands hand large counts over to it; it hands over to `scalar` where events of one time meet."""
    asked = workload(window)
    for ties in (0.0, 0.002):
        events = stream(6_000, ties=ties)
        expected = hamlet.run(asked, events, operators="scalar", features="")
        for options in ({}, COUNTING, {"threads": 2}, {"sharing": "never"}, {"features": ""}):
            results = hamlet.run(asked, events, **options)
            assert results.rows() == expected.rows(), (options, ties)
            assert served(results)["counting"] > 3_000, (options, ties)
            assert ("scalar" in served(results)) == (ties > 0)
            assert results.stats["largest_count_bits"] == expected.stats["largest_count_bits"]


def test_what_is_kept_does_not_grow() -> None:
    asked, events = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 1000000 s"), stream(30_000)
    held = {}
    for operators in ("counting", "scalar"):
        engine = hamlet.Engine(asked, operators=operators)
        engine.push(events)
        [kernel] = kernels_of(engine)
        held[operators] = int(kernel.memory(0).sum())
        assert engine.close()[0]["count"] == 2 ** sum(event["type"] == "A" for event in events) - 1
    assert held["counting"] + 2_000 < held["scalar"]


@pytest.mark.parametrize("operators", ["counting", None])
def test_saves(operators: str | None) -> None:
    asked, events = workload("WITHIN 1500 s SLIDE 210 s"), stream(3_000, ties=0.001)
    expected = hamlet.run(asked, events, operators="scalar", features="").rows()
    engine, rows = hamlet.Engine(asked, operators=operators), []
    for first in range(0, len(events), 700):
        rows += engine.push(events[first : first + 700])
        engine = hamlet.Engine.restore(asked, engine.save())
    rows += engine.close()
    assert in_file_order(rows, asked.names) == expected


def test_what_it_serves() -> None:
    for pattern, served_by in (
        ("RETURN COUNT(*) PATTERN A+ WHERE [k] AND A.v > 3 WITHIN 9 s", "counting"),
        ("RETURN COUNT(*) PATTERN (A+)+ WITHIN 9 s", "counting"),
        ("RETURN COUNT(A) PATTERN A+ WITHIN 9 s", "scalar"),
        ("RETURN COUNT(*) PATTERN A{2,} WITHIN 9 s", "scalar"),
        ("RETURN COUNT(*) PATTERN A WITHIN 9 s", "scalar"),
        ("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 9 s", "scalar"),
        ("RETURN COUNT(*) PATTERN SEQ(NOT B, A+) WITHIN 9 s", "scalar"),
        ("RETURN COUNT(*) PATTERN SEQ(A+, NOT B) WITHIN 9 s", "scalar"),
        ("RETURN COUNT(*) PATTERN A+ WHERE A.v < NEXT(A).v WITHIN 9 s", "event_store"),
    ):
        asked, events = hamlet.Workload.parse(pattern), stream(200)
        results = hamlet.run(asked, events, **COUNTING)
        assert set(served(results)) == {served_by}, pattern
        assert results.rows() == hamlet.run(asked, events, operators="scalar").rows()
    assert "counting" not in served(hamlet.run(workload("WITHIN 9 s"), stream(200), numbers="float", **COUNTING))


def test_left_out() -> None:
    assert "counting" not in served(hamlet.run(workload("WITHIN 900 s"), stream(3_000), operators=WITHOUT))
    assert ALONE[0].NAME == "counting"  # before others that could have the same queries


def test_explain_names_it() -> None:
    [query] = view(workload("WITHIN 9 s"), None).queries
    assert (query.exact.operator, query.exact.beyond) == ("complete_window", "counting")
    assert query.scaled.beyond is None
