"""Windows of a band that opened at one turn are kept once, and each closes with rows of its own."""

from __future__ import annotations

import random
from typing import Any

import pytest

import hamlet
from hamlet import oracle
from hamlet.language.parser import parse
from hamlet.planner import compiled as classes
from tests.comparison import difference, rows_of
from tests.kernel.test_simd import ITEMS, PATTERNS, Rows, scales, workload

WINDOW = "WITHIN 60 s SLIDE 2 s"


def sparse(seed: int, events: int, step: float = 8.0) -> Rows:
    """Events of two keys, most of them several slides apart, a few at one time."""
    draw = random.Random(seed)
    found: Rows = []
    time = 0.0
    for number in range(events):
        time += draw.choice((0.0, 0.3, step, 2 * step, 7 * step)) * draw.random()
        found.append(
            {
                "time": int(time),
                "type": draw.choice("AABBBCD"),
                "k": draw.choice((1, 2)),
                "v": draw.choice((None, *range(-9, 10))),
                "w": draw.choice((None, 0.5, -2.25)),
                "s": draw.choice("xy"),
                "o": number,
            }
        )
    return found


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=lambda row: (row["query"], row["k"], row["window_start"]))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_few_events_in_many_windows_are_those_of_the_oracle(pattern: str, numbers: str) -> None:
    items = "COUNT(*), SUM(b.v), AVG(b.v), MIN(b.v), MAX(b.w)" if " b" in pattern else "COUNT(*)"
    for seed in range(6):
        text = f"RETURN k, {items} PATTERN {pattern} GROUP-BY k {WINDOW}"
        events = sparse(seed, 16)
        found = rows_of(text, events, numbers=numbers, order_column="o")
        expected = oracle.evaluate(parse(text), events, order_column="o")
        floats = numbers == "float"
        assert difference(found, expected, magnitudes=scales(expected, 9.0), floats=floats) is None


@pytest.mark.sampled(6)
@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("items", ITEMS)
def test_saved_and_advanced_anywhere(items: str, numbers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pushes of any size, saves between them, and windows of a cohort that close while no event comes."""
    queries = workload(items, WINDOW)
    floats = numbers == "float"
    for seed, step in ((1, 8.0), (2, 2.0), (3, 0.4)):
        draw = random.Random(seed)
        events = sparse(seed, 300, step)
        engine = hamlet.Engine(queries, numbers=numbers, order_column="o")
        rows: Rows = []
        place = 0
        while place < len(events):
            size = draw.randrange(1, 40)
            rows += engine.push(events[place : place + size])
            place += size
            if draw.random() < 0.3 and place < len(events):
                rows += engine.advance(draw.randint(events[place - 1]["time"], events[place]["time"]))
            if draw.random() < 0.5:
                engine = hamlet.Engine.restore(queries, engine.save())
        rows += engine.close()
        with monkeypatch.context() as patch:
            patch.setattr(classes, "bands", lambda *_, **__: [])
            expected = in_order(hamlet.run(queries, events, numbers=numbers, order_column="o").rows())
        assert expected
        magnitudes = scales(expected, 9.0) if floats or ".w" in items else None
        assert difference(in_order(rows), expected, magnitudes=magnitudes, floats=floats) is None


def test_saved_bytes_follow_panes_with_events() -> None:
    """3,600 windows are open, and in an hour there are ten events, or a hundred times as many."""

    def saved(gap: int) -> int:
        events: list[dict[str, Any]] = [
            {"time": time, "type": "AB"[number % 2], "v": 1.0} for number, time in enumerate(range(0, 7200, gap))
        ]
        queries = hamlet.Workload.parse("RETURN COUNT(*), SUM(b.v) PATTERN SEQ(A, B b) WITHIN 1 h SLIDE 1 s")
        engine = hamlet.Engine(queries, numbers="float")
        engine.push(events)
        return len(engine.save())

    assert 10 * saved(360) < saved(3)
