"""Trends of limited length as a sliding product: against the lanes of the matching operator, and the oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest

import hamlet
from hamlet.explanation.text import as_text
from hamlet.planner.explain import view
from tests.comparison import difference, in_file_order, rows_of

PATTERNS = (
    "A+",
    "SEQ(A, B)",
    "SEQ(A+, NOT C, B+)",
    "SEQ(NOT C, A+, B)",
    "(SEQ(A, NOT C, B+))+",
    "SEQ(A+, NOT C, B, NOT D, A x+)",
)
RETURNS = "COUNT(*), COUNT(A), SUM(A.v), MIN(A.v), MAX(A.w), AVG(A.v), SUM(A.w)"
EVENTS = "COUNT(EVENTS A) AS e, SUM(EVENTS A.v) AS s, AVG(EVENTS A.w) AS a, MIN(EVENTS A.w) AS m, MAX(EVENTS A.v) AS x"
WINDOWS = ("WITHIN 60 s", "WITHIN 90 s SLIDE 25 s", "WITHIN ALL")


def stream(seed: int, events: int, ties: float = 0.3) -> list[dict[str, Any]]:
    chance, time, found = random.Random(seed), 0, []
    for _ in range(events):
        time += chance.random() >= ties
        found.append(
            {
                "time": time,
                "type": chance.choices("ABCD", (40, 40, 5, 3))[0],
                "k": chance.randint(0, 1),
                "v": chance.choice([None, *range(-50, 50)]),
                "w": chance.random() - 0.3,
                "s": chance.choice("pqr"),
            }
        )
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_a_product_is_what_lanes_add_up(pattern: str, window: str, numbers: Any) -> None:
    """Asked for distinct values too, trends are kept by their beginnings; counts pass 64 bits by far."""
    for seed, span in enumerate((1, 7, 40, 150)):
        asked = f"PATTERN {pattern} WHERE [k] SPAN {span} s {window}"
        events = stream(seed, 600)
        expected = rows_of(f"RETURN COUNT(DISTINCT A.v) AS d, {RETURNS} {asked}", events, numbers=numbers)
        for row in expected:
            del row["d"]
        assert difference(rows_of(f"RETURN {RETURNS} {asked}", events, numbers=numbers), expected) is None, (seed, span)


@pytest.mark.parametrize("window", WINDOWS)
def test_pushes_and_saves(window: str) -> None:
    asked = "; ".join(f"RETURN {RETURNS}, {EVENTS} PATTERN {each} WHERE [k] SPAN 150 s {window}" for each in PATTERNS)
    workload, events = hamlet.Workload.parse(asked), stream(9, 700)
    expected = hamlet.run(workload, events).rows()
    assert max(row["count"] for row in expected) > 2**64
    for seed in range(4):
        chance = random.Random(seed)
        engine, rows, first = hamlet.Engine(workload), [], 0
        while first < len(events):
            last = first + chance.choice([1, 5, 40, 200])
            rows += engine.push(events[first:last])
            first = last
            if chance.random() < 0.3:
                engine = hamlet.Engine.restore(workload, engine.save())
        rows += engine.close()
        assert in_file_order(rows, workload.names) == expected


@pytest.mark.sampled(4)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_events_beside_trends(pattern: str, window: str, numbers: Any) -> None:
    """Aggregates over EVENTS and over trends in one query, in two, and in three that are alike."""
    for seed, span in enumerate((1, 7, 40)):
        asked, events = f"PATTERN {pattern} WHERE [k] SPAN {span} s {window}", stream(seed, 300)
        together = rows_of(f"RETURN {EVENTS}, {RETURNS} {asked}", events, numbers=numbers)
        over_trends = rows_of(f"RETURN {RETURNS} {asked}", events, numbers=numbers)
        over_events = rows_of(f"RETURN {EVENTS} {asked}", events, numbers=numbers)
        apart = [one | other for one, other in zip(over_events, over_trends, strict=True)]
        assert difference(together, apart) is None, (seed, span)
        texts = f"RETURN {EVENTS}, {RETURNS}", f"RETURN {RETURNS}", f"RETURN {EVENTS}, COUNT(*)"
        workload = hamlet.Workload.parse("; ".join(f"{each} {asked}" for each in texts))
        several = dict(zip("abc", hamlet.run(workload, events, numbers=numbers, threads=2).parts, strict=True))
        assert difference(rows_named(several["a"], "q1"), together) is None, (seed, span)
        assert difference(rows_named(several["b"], "q1"), over_trends) is None, (seed, span)
        counted = [{**row, "count": other["count"]} for row, other in zip(over_events, over_trends, strict=True)]
        assert difference(rows_named(several["c"], "q1"), counted) is None, (seed, span)


def rows_named(rows: Any, name: str) -> list[dict[str, Any]]:
    return [{**row, "query": name} for row in rows.dicts()]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "asked", ["SPAN 9 s WITHIN 30 s", "SEMANTICS next WITHIN 30 s", "GROUP-BY k WITHIN SESSION 2 s"]
)
def test_pairs_of_queries_that_differ_in_what_they_return(asked: str, threads: int) -> None:
    """Both operands' rows are read for each query."""
    events = stream(3, 150)
    semantics = "SEMANTICS next" if "next" in asked else ""
    texts = [
        f"RETURN {each} PATTERN A+ AND SEQ(B, A x+) {semantics} WHERE [k] {asked.removeprefix(semantics)}"
        for each in (RETURNS, "COUNT(*) AS n", "SUM(A.v), COUNT(EVENTS x), COUNT(DISTINCT x.s), COUNT(DISTINCT B.w)")
    ]
    expected = [rows_of(each, events) for each in texts]
    assert all(expected)
    workload = hamlet.Workload.parse("; ".join(texts))
    found = hamlet.run(workload, events, threads=threads)
    engine = hamlet.Engine(workload, threads=threads)
    pushed = [row for event in events for row in engine.push([event])] + engine.close()
    for each, rows in zip(found.parts, expected, strict=True):
        assert difference(rows_named(each, "q1"), rows) is None
        assert len([row for row in pushed if row["query"] == each.name]) == len(rows)


def test_columns_widen_while_events_are_logged() -> None:
    workload = hamlet.Workload.parse(
        "RETURN SUM(A.v), MIN(A.v), COUNT(EVENTS A) PATTERN SEQ(A+, B) SPAN 9 s WITHIN 30 s"
    )
    events = [each for each in stream(2, 200) if each["v"] is not None]
    late = [{**each, "v": each["v"] + 0.5} for each in events[100:]]
    engine = hamlet.Engine(workload)
    found = engine.push(events[:100]) + engine.push(late) + engine.close()
    assert difference(found, hamlet.run(workload, events[:100] + late).rows()) is None


def test_the_cost_of_an_event_is_named() -> None:
    def rung(text: str) -> str:
        matching = view(hamlet.Workload.parse(text), None).queries[0].matching
        assert matching is not None
        return matching.rung

    assert "whatever the span holds" in rung("RETURN COUNT(*) PATTERN SEQ(A+, NOT C, B) SPAN 9 s WITHIN 30 s")
    assert "whatever the span holds" in rung("RETURN COUNT(*), SUM(EVENTS B.v) PATTERN SEQ(A+, B) SPAN 9 s WITHIN 30 s")
    assert "whatever the span holds" in rung("RETURN SUM(EVENTS B.v) PATTERN SEQ(A+, B) SPAN 9 s WITHIN 30 s")
    assert "whatever the span holds" in rung(
        "RETURN FIRST(A.v), COUNT(*) PATTERN SEQ(A+, B) GROUP-BY FIRST(A.v) SPAN 9 s WITHIN 30 s"
    )
    for text, why in (
        ("RETURN COUNT(A), COUNT(*) PATTERN A+ GROUP-BY COUNT(A) SPAN 9 s WITHIN 30 s", "told apart"),
        ("RETURN COUNT(*) PATTERN A+ WHERE A.v < NEXT(A).v SPAN 9 s WITHIN 30 s", "compared"),
        ("RETURN COUNT(DISTINCT A.v) PATTERN A+ SPAN 9 s WITHIN 30 s", "distinct values"),
        ("RETURN COUNT(*) PATTERN A+ SEMANTICS next SPAN 9 s WITHIN 30 s", "skip-till-next-match"),
        ("RETURN COUNT(*) PATTERN SEQ(A, NOT B) SPAN 9 s WITHIN 30 s", "looks ahead"),
        ("RETURN COUNT(*) PATTERN SEQ(A, NOT SEQ(B, C), D) SPAN 9 s WITHIN 30 s", "more than one event"),
    ):
        found = rung(text)
        assert "four times as much" in found, text
        assert why in found, text


def test_what_a_log_grows_with_is_named() -> None:
    """Events are logged until their windows close, whatever beginnings there are; a first NOT looks back from them."""
    asked = "RETURN COUNT(EVENTS B) PATTERN SEQ({}A+, B) {} WITHIN 30 s"
    for first, span, grows in (
        ("", "", "the events of open windows, each once"),
        ("", "SPAN 9 s", "the events of open windows and of 9 s before them, each once"),
        ("NOT C, ", "SPAN 9 s", "the events of open windows and of twice 9 s before them, each once"),
    ):
        shown = view(hamlet.Workload.parse(asked.format(first, span)), None)
        assert shown.queries[0].memory.grows == (grows,)
        assert " 0 bytes per" not in as_text(shown)
