"""Cohorts of queries by themselves: windows that opened at one turn are equal until they close, and are kept once."""

from __future__ import annotations

import random
from typing import Any

import pytest

import hamlet
from hamlet import oracle
from tests.comparison import difference

PATTERNS = {
    "sums": "RETURN k, COUNT(*), SUM(B.v), MIN(B.v) PATTERN SEQ(A, B+) GROUP-BY k",
    "index": "RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WHERE B.v < NEXT(B).v GROUP-BY k",
    "scan": "RETURN k, COUNT(*) PATTERN SEQ(A, B+) WHERE B.v * 2 < NEXT(B).v + 9 GROUP-BY k",
    "leading": "RETURN k, COUNT(*) PATTERN SEQ(NOT C, A, B+) GROUP-BY k",
    "within": "RETURN k, COUNT(*), MAX(B.v) PATTERN SEQ(A, NOT SEQ(C, C), B+) GROUP-BY k",
    "trailing": "RETURN k, COUNT(*) PATTERN SEQ(A+, NOT C) GROUP-BY k",
}
WINDOWS = ["WITHIN 20 s SLIDE 1 s", "WITHIN 33 s SLIDE 2 s", "WITHIN 9 s SLIDE 4 s"]


def sparse(events: int, seed: int, keys: int = 2) -> list[dict[str, Any]]:
    """Events with long and short gaps, and sometimes of one time."""
    chance = random.Random(seed)
    time, found = 0, []
    for _ in range(events):
        time += chance.choice([0, 1, 1, 2, 5, 11, 30])
        found.append(
            {"time": time, "type": chance.choice("AABBBC"), "k": chance.randrange(keys), "v": chance.randint(0, 9)}
        )
    return found


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_oracle(pattern: str, window: str, numbers: str) -> None:
    asked = hamlet.Workload.parse(f"{PATTERNS[pattern]} {window}")
    for seed in range(6):
        events = sparse(22, seed)
        expected = oracle.evaluate(asked.analysis.text, events)
        for operators in (["scalar", "event_store"], None):
            got = hamlet.run(asked, events, numbers=numbers, operators=operators).rows()
            assert difference(got, expected, floats=numbers == "float") is None, (seed, operators)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_pushes_and_saves(pattern: str) -> None:
    """Saved between any two events, cohorts stand as they stood."""
    asked = hamlet.Workload.parse(f"{PATTERNS[pattern]} {WINDOWS[0]}")
    events = sparse(60, 5, keys=3)
    expected = hamlet.run(asked, events).rows()
    engine, got = hamlet.Engine(asked, operators=["scalar", "event_store"]), []
    for event in events:
        got += engine.push([event])
        engine = hamlet.Engine.restore(asked, engine.save())
    got += engine.close()
    assert sorted(map(str, got)) == sorted(map(str, expected))


@pytest.mark.parametrize("where", ["", "WHERE A.v < NEXT(A).v", "WHERE A.v < NEXT(A).v * 2 + 1"])
def test_memory_follows_events(where: str) -> None:
    """An hour every second is 3,600 windows at a time; two hundred keys with twenty events hold twenty cohorts each."""
    events = [{"time": 150 * i + key // 4, "type": "A", "k": key, "v": i % 10} for i in range(20) for key in range(200)]
    asked = hamlet.Workload.parse(
        f"RETURN k, COUNT(*), SUM(A.v) PATTERN SEQ(A+, B) {where} GROUP-BY k WITHIN 1 h SLIDE 1 s"
    )
    engine = hamlet.Engine(asked, operators=["scalar", "event_store"], max_memory="24 MB")
    assert engine.push(events) == []
