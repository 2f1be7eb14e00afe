"""Trend queries at the edges of numbers and times: runs, files and pushes against brute force."""

from __future__ import annotations

from pathlib import Path

import pytest

import hamlet
from tests.wild_queries import compare_wild, wild_case


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_wild_cases(seed: int, tmp_path: Path) -> None:
    found = []
    for each in range(seed, seed + 6):
        folder = tmp_path / str(each)
        folder.mkdir()
        found.append(compare_wild(each, folder))
    assert "equal" in found


def test_the_generator_draws_the_edges() -> None:
    cases = [wild_case(seed) for seed in range(200)]
    times = [event["time"] for _, events, _ in cases for event in events]
    values = [each for _, events, _ in cases for event in events if isinstance(each := event.get("v"), int)]
    assert min(times) < -(2**60)
    assert max(times) > 2**60
    assert min(values) < -(2**62)
    assert max(values) > 2**62
    assert any(2**53 < each < 2**53 + 100 for each in values)
    assert any(len({event.get("v") for event in events}) > 64 for _, events, _ in cases)


def test_a_silence_costs_no_window() -> None:
    events = [{"time": time, "type": "A"} for time in (-(2**60), 0, 2**60)]
    rows = hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 2 s SLIDE 1 s"), events).rows()
    assert [row["count"] for row in rows] == [1] * 6
