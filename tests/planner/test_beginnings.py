"""Queries that begin equally are evaluated once up to where they part, and give the rows that they give alone."""

from __future__ import annotations

import random
from typing import Any
from unittest import mock

import pytest

import hamlet
from hamlet import oracle
from hamlet.engine.options import Options
from hamlet.engine.sharing import Sharing
from hamlet.input.columns import StringPool
from hamlet.input.events import open_events
from hamlet.language.parser import parse
from hamlet.planner.compile import compile_workload
from hamlet.planner.explain import view
from tests.comparison import difference, in_file_order

Event = dict[str, Any]

RISING = "B.v < NEXT(B).v"
# per family what the queries have in common is kept once: each has a core and as many tails as fit it
FAMILIES: dict[str, list[str]] = {
    "tails": [
        f"COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WHERE {RISING}",
        f"COUNT(*), SUM(B.v) PATTERN SEQ(A x, B+, C) WHERE {RISING}",
        f"COUNT(*), SUM(B.v) PATTERN SEQ(A, B+, D, C) WHERE {RISING}",
        f"COUNT(*), SUM(B.v) PATTERN SEQ(A, B+, (C|D)) WHERE {RISING}",
    ],
    "negated": [
        f"COUNT(*) PATTERN SEQ(A, B+) WHERE {RISING}",
        f"COUNT(*) PATTERN SEQ(A, B+, NOT C, D) WHERE {RISING}",
        f"COUNT(*) PATTERN SEQ(A, B+, NOT SEQ(C, D)) WHERE {RISING}",
        f"COUNT(*) PATTERN SEQ(A, B+, NOT C n, D, NOT A m) WHERE {RISING} AND n.v > 2",
        f"COUNT(*) PATTERN SEQ(A, B+, NOT C n, D) WHERE {RISING} AND n.v > 2",
    ],
    "negated inside": [
        f"COUNT(*), MAX(B.v) PATTERN SEQ(A, NOT C, B+) WHERE {RISING}",
        f"COUNT(*), MAX(B.v) PATTERN SEQ(A, NOT C n, B+, D) WHERE {RISING}",
        f"COUNT(*), MAX(B.v) PATTERN SEQ(A, NOT C n, B+, NOT C m, D) WHERE {RISING}",
    ],
    "optional": [
        f"COUNT(B), MIN(B.v) PATTERN SEQ(A?, B+) WHERE {RISING}",
        f"COUNT(B), MIN(B.v) PATTERN SEQ(A?, B+, C) WHERE {RISING}",
        f"COUNT(B), MIN(B.v) PATTERN SEQ(A?, B+, C?, D) WHERE {RISING}",
        f"COUNT(B), MIN(B.v) PATTERN SEQ(A?, B+, C, D?) WHERE {RISING} AND B.v <> NEXT(C).v",
    ],
    "scans": [
        "COUNT(*) PATTERN SEQ(A, B+) WHERE B.v + 1 < NEXT(B).v + NEXT(B).w - B.w",
        "COUNT(*) PATTERN SEQ(A, B+, C) WHERE B.v + 1 < NEXT(B).v + NEXT(B).w - B.w AND B.v + NEXT(C).v > 3",
        "COUNT(*) PATTERN SEQ(A, B+, C) WHERE B.v + 1 < NEXT(B).v + NEXT(B).w - B.w AND B.v < NEXT(C).v",
    ],
    "local": [
        f"COUNT(*) PATTERN SEQ(A, B+) WHERE {RISING} AND B.v > 1",
        "COUNT(*) PATTERN SEQ(A, B y+, C) WHERE y.v < NEXT(y).v AND 1 < y.v AND C.v IS NOT NULL",
        f"COUNT(*) PATTERN SEQ(A, B+, D) WHERE {RISING} AND B.v > 1",
    ],
    "long guards": [
        "COUNT(*) PATTERN (SEQ(A, NOT SEQ(C, D), B))+",
        "COUNT(*) PATTERN SEQ((SEQ(A, NOT SEQ(C, D), B))+, E)",
    ],
    "adjacent tails": [
        "COUNT(*), SUM(B.v) PATTERN SEQ(A, B+, C, D) WHERE C.v < NEXT(D).v",
        "COUNT(*), SUM(B.v) PATTERN SEQ(A, B+, C, E) WHERE C.v < NEXT(E).v",
        "COUNT(*), SUM(B.v) PATTERN SEQ(A, B+, NOT SEQ(C, D), E)",
        "COUNT(*), SUM(B.v) PATTERN SEQ(A, B+, NOT SEQ(C, D))",
    ],
}
# the same for queries with a loop in common
HEARTS: dict[str, list[str]] = {
    "beginnings": [
        f"COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WHERE {RISING}",
        f"COUNT(*), MAX(B.v) PATTERN SEQ(C, B+) WHERE {RISING}",
        f"COUNT(*), AVG(B.v) PATTERN SEQ(D, B+) WHERE {RISING} AND D.v > 2",
        f"COUNT(*), COUNT(B) PATTERN SEQ(D, B+) WHERE {RISING} AND D.v < 4",
        f"COUNT(*), MIN(B.v), MAX(A.v) PATTERN SEQ(A+, B+) WHERE {RISING}",
        f"COUNT(*) PATTERN B+ WHERE {RISING}",
    ],
    "beginnings and tails": [
        f"COUNT(*), SUM(B.v), SUM(A.v) PATTERN SEQ(A, B+, E) WHERE {RISING}",
        f"COUNT(*), SUM(B.v), SUM(E.v) PATTERN SEQ(A, B+, E) WHERE {RISING} AND A.v > 2",
        f"COUNT(*), SUM(B.v) PATTERN SEQ(A?, C, B+) WHERE {RISING}",
        f"COUNT(*), SUM(C.v), MAX(B.v) PATTERN SEQ(C+, D?, B+, NOT A) WHERE {RISING}",
        f"COUNT(*), MIN(B.v) PATTERN SEQ(A?, B+, NOT D, C?) WHERE {RISING}",
    ],
    "negated beginnings": [
        f"COUNT(*), SUM(B.v) PATTERN SEQ(A, NOT C, B+) WHERE {RISING}",
        f"COUNT(*), SUM(B.v) PATTERN SEQ(D, NOT C n, B+) WHERE {RISING}",
        f"COUNT(*), SUM(B.v) PATTERN SEQ(NOT D, A, B+) WHERE {RISING}",
        f"COUNT(*), SUM(B.v) PATTERN SEQ(NOT A, B+) WHERE {RISING}",
        f"COUNT(*), MAX(B.v) PATTERN SEQ(A, NOT SEQ(C, D), B+) WHERE {RISING}",
        f"COUNT(*), MAX(B.v) PATTERN SEQ(E, NOT SEQ(C, D), B+) WHERE {RISING}",
    ],
    "adjacent beginnings": [
        f"COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WHERE {RISING} AND A.v < NEXT(B).v",
        f"COUNT(*), SUM(B.v), MIN(A.v) PATTERN SEQ(A+, B+) WHERE {RISING} AND A.v < NEXT(A).v",
        f"COUNT(*), SUM(B.v) PATTERN SEQ(C, B+) WHERE {RISING} AND C.v + C.w < NEXT(B).v + NEXT(B).w * NEXT(B).w",
    ],
    "loops": [
        "COUNT(*), SUM(B.v) PATTERN SEQ(D, (SEQ(A, B+))+) WHERE B.v < NEXT(B).v",
        "COUNT(*), SUM(A.v) PATTERN SEQ(C, (SEQ(A, B+))+, E) WHERE B.v < NEXT(B).v",
        "COUNT(*), MAX(y.v) PATTERN SEQ(E, (SEQ(A, B y+))+) WHERE y.v < NEXT(y).v",
        "COUNT(*) PATTERN (SEQ(A, B+))+ WHERE B.v < NEXT(B).v",
    ],
    "long guards in loops": [
        "COUNT(*) PATTERN SEQ(E, (SEQ(A, NOT SEQ(C, D), B))+)",
        "COUNT(*), SUM(B.v) PATTERN SEQ(C, (SEQ(A, NOT SEQ(C n, D), B))+)",
        "COUNT(*) PATTERN SEQ((SEQ(A, NOT SEQ(C, D), B))+, E)",
    ],
    "scanned loops": [
        "COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WHERE B.v + 1 < NEXT(B).v + NEXT(B).w - B.w",
        "COUNT(*), AVG(B.v), MAX(B.w) PATTERN SEQ(C, B+) WHERE B.v + 1 < NEXT(B).v + NEXT(B).w - B.w",
        "COUNT(*), SUM(B.w) PATTERN SEQ(D, B+, E) WHERE B.v + 1 < NEXT(B).v + NEXT(B).w - B.w",
    ],
    "counted loops": [
        f"COUNT(*), COUNT(B) PATTERN SEQ(A, B{{2,}}) WHERE {RISING}",
        f"COUNT(*), SUM(B.v) PATTERN SEQ(C, B+) WHERE {RISING}",
        f"COUNT(*), SUM(B.v) PATTERN SEQ(D, B{{3,}}) WHERE {RISING}",
    ],
}
FAMILIES |= HEARTS
WINDOWS = ("WITHIN 30 s", "WITHIN 20 s SLIDE 5 s", "WITHIN 7 s SLIDE 11 s")


def text_of(family: str, window: str) -> str:
    return ";\n".join(f"RETURN {query} {window}" for query in FAMILIES[family])


def stream(seed: int, events: int = 45) -> list[Event]:
    """Few types, ties, NULLs."""
    drawn = random.Random(seed)
    time, found = 0, []
    for _ in range(events):
        time += drawn.choice((0, 1, 1, 2))
        event: Event = {"time": time, "type": drawn.choice("AABBBBBCDE"), "w": drawn.randrange(3)}
        if drawn.random() < 0.9:
            event["v"] = drawn.randrange(6)
        found.append(event)
    return found


def kernel_queries(text: str) -> list[tuple[int, ...]]:
    """The queries whose sums each of the kernel's queries keeps."""
    workload = hamlet.Workload.parse(text)
    schema = open_events(stream(0)).schema
    (compiled,) = compile_workload(workload.analysis, schema, StringPool(), together=True).classes
    return [each for each in compiled.kept_by if each]


@pytest.mark.parametrize("family", FAMILIES)
def test_one_kernel_query_keeps_what_queries_begin_with(family: str) -> None:
    kept = kernel_queries(text_of(family, WINDOWS[0]))
    assert max(map(len, kept)) > 1
    assert sorted(place for each in kept for place in each) == list(range(len(FAMILIES[family])))


@pytest.mark.parametrize("family", FAMILIES)
def test_explain_says_what_is_kept_together(family: str) -> None:
    """It asks for queries that are compiled each by itself; the engine's are compiled together."""
    text = text_of(family, WINDOWS[0])
    shown = view(hamlet.Workload.parse(text), open_events(stream(0)).schema)
    assert sorted(shown.together) == sorted(each for each in kernel_queries(text) if len(each) > 1)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("family", FAMILIES)
def test_rows_equal_those_of_the_oracle(family: str, window: str) -> None:
    text = text_of(family, window)
    workload = hamlet.Workload.parse(text)
    is_merged = 0
    for seed in range(2):
        events = stream(seed + len(window), 28 if "D?" in text or "C?" in text else 36)
        expected = oracle.evaluate(parse(text), events)
        for number, sharing in enumerate(("dynamic", "static", "never", "random")):
            by_lot = Sharing("random", seed=seed)
            numbers = "float" if (seed + number) % 3 == 0 else "exact"
            options = {"numbers": numbers, "sharing": "dynamic" if sharing == "random" else sharing}
            options["threads"] = 1 + number % 2  # no group: two of them would take turns along time, if they could
            with mock.patch.object(Options, "decided_by", by_lot if sharing == "random" else Options.decided_by):
                results = hamlet.run(workload, events, **options)
                engine = hamlet.Engine(workload, **options)
                pushed = [row for at in range(0, 36, 3) for row in engine.push(events[at : at + 3])] + engine.close()
            message = difference(results.rows(), expected, floats=numbers == "float")
            assert message is None, f"{family}, seed {seed}, {sharing}: {message}"
            ordered = in_file_order(pushed, workload.names)
            message = difference(ordered, expected, floats=numbers == "float")
            assert message is None, f"{family}, seed {seed}, {sharing}, pushed: {message}"
            if sharing == "never":
                assert results.stats["beginnings"] == 0
            else:
                is_merged += results.stats["beginnings"]
    assert is_merged > 0 or "SLIDE 11" in window  # short windows far apart have few trends


def test_queries_that_differ_in_what_looks_back_stay_apart() -> None:
    for other in (
        f"COUNT(*) PATTERN SEQ(A, B+, C) WHERE {RISING} AND B.v > 2 WITHIN 30 s",
        f"COUNT(*) PATTERN SEQ(A, B+, C) WHERE {RISING} WITHIN 31 s",
        "COUNT(*) PATTERN SEQ(A, B+, C) WHERE B.v <= NEXT(B).v WITHIN 30 s",
        f"COUNT(*) PATTERN SEQ(A, B+, C+) WHERE {RISING} AND C.v < NEXT(C).v WITHIN 30 s",
    ):
        text = f"RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE {RISING} WITHIN 30 s; RETURN {other}"
        assert kernel_queries(text) == [(0,), (1,)], other


def test_aggregates_of_all_are_kept_by_the_host() -> None:
    text = (
        f"RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE {RISING} WITHIN 30 s;"
        f"RETURN COUNT(*), SUM(A.v), MIN(A.v), MAX(A.v), AVG(A.w) PATTERN SEQ(A, B+, C, D, E, A z) WHERE {RISING} "
        "WITHIN 30 s;"
        f"RETURN COUNT(*) PATTERN SEQ(A, B+, D) WHERE {RISING} WITHIN 30 s"
    )
    assert [len(each) for each in kernel_queries(text)] == [3]
    assert hamlet.run(hamlet.Workload.parse(text), stream(3)).rows() == oracle.evaluate(parse(text), stream(3))


def test_alike_queries_join_the_host_of_their_leader() -> None:
    text = (
        f"RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE {RISING} WITHIN 30 s;"
        "RETURN SUM(y.v), COUNT(x) PATTERN SEQ(A x, B y+) WHERE y.v < NEXT(y).v WITHIN 30 s;"
        f"RETURN COUNT(B) PATTERN SEQ(A, B+, C) WHERE {RISING} WITHIN 30 s;"
        "RETURN MAX(z.v), COUNT(c) PATTERN SEQ(A, B z+, C c) WHERE z.v < NEXT(z).v WITHIN 30 s"
    )
    assert kernel_queries(text) == [(0, 1, 2, 3)]
    assert view(hamlet.Workload.parse(text), None).together == ((0, 1, 2, 3),)
    for seed in range(5):
        assert hamlet.run(hamlet.Workload.parse(text), stream(seed)).rows() == oracle.evaluate(
            parse(text), stream(seed)
        )


def test_types_that_widen_and_saves() -> None:
    """A merged query is adopted by an engine that knows more of the types, and goes through bytes."""
    for family in ("tails", "adjacent tails"):
        text = text_of(family, WINDOWS[1])
        events = stream(1, 40)
        for event in events[20:]:
            event["v"] = event.get("v", 0) + 0.5
        workload = hamlet.Workload.parse(text)
        engine = hamlet.Engine(workload)
        rows = [row for event in events[:30] for row in engine.push([event])]
        again = hamlet.Engine.restore(workload, engine.save())
        rows += [row for event in events[30:] for row in again.push([event])] + again.close()
        message = difference(in_file_order(rows, workload.names), oracle.evaluate(parse(text), events))
        assert message is None, message
        assert again.stats["beginnings"] > 0


def test_predicates_that_are_one_for_integers_only_do_not_unite_queries_online() -> None:
    text = (
        "RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE B.v > 3 WITHIN 100 s;"
        "RETURN COUNT(B) PATTERN SEQ(A, B+) WHERE B.v >= 4 WITHIN 100 s"
    )
    events = [{"time": t, "type": "AB"[t > 1], "v": v} for t, v in ((1, 1), (2, 4), (3, 3.5), (4, 9))]
    engine = hamlet.Engine(hamlet.Workload.parse(text))
    rows = [row for event in events for row in engine.push([event])] + engine.close()
    assert rows == oracle.evaluate(parse(text), events)
