"""Differential tests of ordered sums: an indexed adjacent predicate against the same one in a form that is scanned."""

from __future__ import annotations

import random
from typing import Any

import pytest

import hamlet
from hamlet.language.query import AttributeType
from hamlet.planner.adjacent import keys_of

PREDICATES = [
    "B.v < NEXT(B).v",
    "B.v <= NEXT(B).v",
    "B.v > NEXT(B).v",
    "PREV(B).v >= B.v",
    "B.v = NEXT(B).v",
    "B.v <> NEXT(B).v",
    "B.w < NEXT(B).w",
    "B.w * 2 - 1 > NEXT(B).w + NEXT(B).v",
    "B.k = NEXT(B).k AND B.w <= NEXT(B).w",
    "B.k = NEXT(B).k AND B.s = NEXT(B).s",
    "B.k = NEXT(B).k AND B.v <> NEXT(B).v",
    "B.v + 3 < NEXT(B).v * 2",
    "B.s = NEXT(B).s",
    "B.w <> NEXT(B).w",
    "B.s <> NEXT(B).s",
]
PATTERNS = ["SEQ(A, B+)", "SEQ(A?, NOT D, B+, NOT C)", "(SEQ(NOT C, B))+", "(SEQ(NOT SEQ(C, D), B))+"]


def stream(seed: int, events: int) -> list[dict[str, Any]]:
    """Bursts of B with ties, NULLs, zeros of both signs and few distinct values."""
    draw = random.Random(seed)
    found: list[dict[str, Any]] = []
    time = 0
    while len(found) < events:
        kind = draw.choices("ABCD", [2, 12, 1, 1])[0]
        for _ in range(draw.randint(1, 40) if kind == "B" else 1):
            time += draw.choice((0, 1, 1, 2))
            found.append(
                {
                    "time": time,
                    "type": kind,
                    "v": draw.choice((None, -5, 0, 1, 2, 3, 7, 100)),
                    "w": draw.choice((None, -0.0, 0.0, float("nan"), 1.5, -2.25, draw.random())),
                    "k": draw.choice((None, 1, 2)),
                    "s": draw.choice((None, "x", "y", "zz")),
                }
            )
    return found


def scanned(predicate: str) -> str:
    """The same condition with a form that no index answers."""
    return f"{predicate} AND (B.k = NEXT(B).k OR B.k IS NULL OR NEXT(B).k IS NULL OR B.k <> NEXT(B).k)"


def rows(pattern: str, where: str, window: str, events: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    text = f"RETURN COUNT(*), COUNT(B), SUM(B.v), AVG(B.w), MIN(B.w), MAX(B.v) PATTERN {pattern} WHERE {where} {window}"
    return hamlet.run(hamlet.Workload.parse(text), events, **options).rows()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("window", ["WITHIN 400 s", "WITHIN 300 s SLIDE 70 s"])
@pytest.mark.parametrize("seed", [0, 1])
def test_differential_index_and_scan(predicate: str, window: str, seed: int) -> None:
    events = stream(seed, 700)
    for pattern in PATTERNS:
        indexed = rows(pattern, predicate, window, events)
        expected = rows(pattern, scanned(predicate), window, events)
        assert len(indexed) == len(expected) > 0
        for row, other in zip(indexed, expected, strict=True):
            average, other_average = row.pop("avg_B_w"), other.pop("avg_B_w")
            assert row == other
            assert average == pytest.approx(other_average, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("predicate", PREDICATES[:3])
def test_differential_index_and_scan_online(predicate: str) -> None:
    """Small pushes order the nodes as they come."""
    events = sorted(stream(3, 400), key=lambda event: event["time"])
    text = f"RETURN COUNT(*), SUM(B.v) PATTERN SEQ(A, B+, NOT C) WHERE {predicate} WITHIN 300 s SLIDE 100 s"
    workload = hamlet.Workload.parse(text)
    engine = hamlet.Engine(workload)
    found = [row for place in range(0, len(events), 7) for row in engine.push(events[place : place + 7])]
    assert found + engine.close() == hamlet.run(workload, events).rows()


def test_what_is_indexed() -> None:
    """Unlike types, orders of strings, OR and two comparisons are scans; the rest are keys."""

    def searches(where: str, **types: AttributeType) -> int:
        analysis = hamlet.Workload.parse(f"RETURN COUNT(*) PATTERN B+ WHERE {where} WITHIN 1 s").analysis
        conditions = analysis.queries[0].adjacent["B", "B"]
        return len(keys_of(conditions, lambda side: types[side.attribute], lambda _: 1))  # type: ignore[union-attr]

    integer, double, text = AttributeType.INT, AttributeType.DOUBLE, AttributeType.STRING
    assert searches("B.v < NEXT(B).v", v=integer) == 1
    assert searches("NEXT(B).v > B.v", v=integer) == 1
    assert searches("B.v <> NEXT(B).v", v=integer) == 2
    assert searches("B.v = NEXT(B).v AND B.w > NEXT(B).w", v=text, w=double) == 1
    assert searches("B.v < NEXT(B).w", v=integer, w=double) == 0
    assert searches("B.v < NEXT(B).v", v=text) == 0
    assert searches("B.v < NEXT(B).v AND B.w < NEXT(B).w", v=integer, w=integer) == 0
    assert searches("B.v < NEXT(B).v OR B.w < NEXT(B).w", v=integer, w=integer) == 0
