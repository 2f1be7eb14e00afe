"""Scans of stores of more than one block: numbers of all sizes, windows that overlap, guards, saves in between."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import pytest

import hamlet
from tests.comparison import difference

RETURNED = "COUNT(*), COUNT(B), SUM(B.v), SUM(B.w), AVG(B.w), MIN(B.w), MAX(B.v)"
INDEXED = "B.v < NEXT(B).v"
SCANNED = "B.v < NEXT(B).v AND (B.w + NEXT(B).w > -100 OR B.w IS NULL OR NEXT(B).w IS NULL)"
WINDOWS = ["WITHIN 2000 s", "WITHIN 1500 s SLIDE 400 s"]
PATTERNS = ["SEQ(A?, B+)", "SEQ(A, NOT D, B+, NOT C)", "(SEQ(NOT SEQ(C, D), B))+"]


def stream(seed: int, events: int = 1900) -> list[dict[str, Any]]:
    """Values that rise, so that counts do; low ones in between, of which there are few trends."""
    draw = random.Random(seed)
    kinds = draw.choices("ABCD", [1, 60, 0.3, 0.3], k=events)
    kinds[0] = "A"
    return [
        {
            "time": time,
            "type": kind,
            "v": draw.choice((None, -1, 0) + (time,) * 12),
            "w": draw.choice((None, -2.5, 1.25, 0.5, draw.random())),
        }
        for time, kind in enumerate(kinds)
    ]


def rows(pattern: str, where: str, window: str, events: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    text = f"RETURN {RETURNED} PATTERN {pattern} WHERE {where} {window}"
    return hamlet.run(hamlet.Workload.parse(text), events, **options).rows()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_differential_long_scans(pattern: str, window: str) -> None:
    """Scan and index, exact and in floating point: counts beyond 2^1024 beside counts of one."""
    events = stream(len(pattern))
    expected = rows(pattern, INDEXED, window, events)
    assert max(row["count"] for row in expected) > 2**900
    assert any(event["w"] and event["w"] < 0 for event in events)
    magnitudes = rows(pattern, INDEXED, window, [event | {"w": event["w"] and abs(event["w"])} for event in events])
    for row, other in zip(magnitudes, expected, strict=True):
        row["sum_B_v"] = max(row["sum_B_v"], abs(other["sum_B_v"]))
    exact = rows(pattern, SCANNED, window, events)
    assert not difference(exact, expected, magnitudes=magnitudes)
    found = rows(pattern, SCANNED, window, events, numbers="float")
    assert not difference(found, expected, magnitudes=magnitudes, floats=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("window", WINDOWS)
def test_saved_between(numbers: str, window: str) -> None:
    """What a scan derives from the nodes is not saved, and is made anew."""
    events = stream(5, 1500)
    text = f"RETURN {RETURNED} PATTERN SEQ(A?, B+) WHERE {SCANNED} {window}"
    workload = hamlet.Workload.parse(text)
    whole = hamlet.run(workload, events, numbers=numbers).rows()
    engine, found = hamlet.Engine(workload, numbers=numbers), []
    for place in range(0, len(events), 190):
        found += engine.push(events[place : place + 190])
        engine = hamlet.Engine.restore(workload, engine.save())
    assert not difference(found + engine.close(), whole, floats=numbers == "float")


def test_types_that_widen() -> None:
    """Sums of integers become sums of doubles while nodes with NULLs are kept."""
    text = "RETURN COUNT(*), SUM(B.v), MAX(B.v) PATTERN B+ WHERE B.v < NEXT(B).v + 0 * B.u WITHIN 3000 s"
    workload = hamlet.Workload.parse(text)
    for numbers in ("exact", "float"):
        events = [{"time": time, "type": "B", "v": None if time % 7 == 0 else time, "u": 1} for time in range(1200)]
        engine = hamlet.Engine(workload, numbers=numbers)
        engine.push(events)
        later = [{"time": 1200 + time, "type": "B", "v": 1200.5 + time, "u": 1} for time in range(700)]
        engine.push(later)
        (row,) = engine.close()
        (expected,) = hamlet.run(workload, events + later, numbers=numbers).rows()
        count, other = Fraction(row["count"]), Fraction(expected["count"])
        assert abs(count - other) <= (0 if numbers == "exact" else other / 10**9)
        assert count > 2**1000
        assert row["max_B_v"] == expected["max_B_v"]
        total, whole = Fraction(row["sum_B_v"]), Fraction(expected["sum_B_v"])
        assert abs(total - whole) <= whole / 10**9


@pytest.mark.parametrize("infinite", [float("inf"), float("-inf")])
def test_infinite_values(infinite: float) -> None:
    """A sum over trends with an infinite value is infinite; one without is not."""
    events = [{"time": time, "type": "B", "v": 1.0, "g": 0} for time in range(1200)]
    events[600]["v"] = infinite
    events.append({"time": 1200, "type": "C", "v": 0.0, "g": 0})
    text = "RETURN COUNT(*), SUM(B.v) PATTERN SEQ(B, C) WHERE B.v * {} > NEXT(C).v - 100 WITHIN 3000 s"
    sign = 1 if infinite > 0 else -1
    for numbers in ("exact", "float"):
        (row,) = hamlet.run(hamlet.Workload.parse(text.format(sign)), events, numbers=numbers).rows()
        assert (row["count"], row["sum_B_v"]) == (1200, infinite)
        (row,) = hamlet.run(hamlet.Workload.parse(text.format(-sign)), events, numbers=numbers).rows()
        assert (row["count"], row["sum_B_v"]) == (1199, 1199.0)
