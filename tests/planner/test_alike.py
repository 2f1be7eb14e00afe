"""Queries that are alike are evaluated once: same rows, one kernel query, aggregates of all of them."""

from __future__ import annotations

import random
from typing import Any

import pytest

import hamlet
from hamlet import oracle
from hamlet.engine.inside import schema_of
from hamlet.input.columns import StringPool
from hamlet.language.parser import parse
from hamlet.planner.compile import compile_workload
from tests.comparison import difference, in_any_order

ALIKE = """
RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WHERE [s] AND B.v > 0 GROUP-BY k WITHIN 100 s SLIDE 30 s;
RETURN COUNT(y), MAX(y.w), AVG(y.v) PATTERN SEQ(A x, B y+) WHERE [s, k] AND y.v > 0 WITHIN 100 s SLIDE 30 s;
RETURN s, k, MIN(A.v) AS least, COUNT(A) PATTERN SEQ(A, B z+) WHERE z.v > 0 GROUP-BY s, k WITHIN 100 s SLIDE 30 s;
"""
GUARDED = """
RETURN COUNT(*), SUM(A.v) PATTERN SEQ(A+, NOT C c, B) WHERE c.v > 1 AND A.v < NEXT(A).v WITHIN 200 s;
RETURN AVG(a.w) PATTERN SEQ(A a+, NOT C, B b) WHERE a.v < NEXT(a).v AND C.v > 1 WITHIN 200 s;
"""
OTHERS = {
    "window": "RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE [s, k] AND B.v > 0 WITHIN 90 s SLIDE 30 s;",
    "predicate": "RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE [s, k] AND B.v > 1 WITHIN 100 s SLIDE 30 s;",
    "pattern": "RETURN COUNT(*) PATTERN SEQ(A, B) WHERE [s, k] AND B.v > 0 WITHIN 100 s SLIDE 30 s;",
    "roles": "RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE [s, k] AND A.v > 0 WITHIN 100 s SLIDE 30 s;",
    "adjacent": "RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE [s, k] AND B.v > 0 AND A.v < NEXT(B).v "
    "WITHIN 100 s SLIDE 30 s;",
}


def stream(events: int) -> list[dict[str, Any]]:
    """Events of few keys, sparse enough for the oracle."""
    draw = random.Random(5)
    return [
        {
            "time": 4 * place,
            "type": draw.choice("AABBBC"),
            "k": draw.choice((1, 2)),
            "s": draw.choice("xy"),
            "v": draw.choice((None, 0, 1, 2, 3)),
            "w": draw.choice((None, 0.5, 1.5, -2.25)),
        }
        for place in range(events)
    ]


def kernel_queries(text: str, together: bool = True) -> list[tuple[tuple[int, ...], ...]]:
    """Per class the queries that each kernel query serves."""
    workload = hamlet.Workload.parse(text)
    engine = hamlet.Engine(workload)
    engine.push([{"time": 0, "type": "A", "k": 1, "s": "x", "v": 1, "w": 1.5}])
    compiled = compile_workload(workload.analysis, schema_of(engine), StringPool(), together=together)
    return [each.users_of for each in compiled.classes]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", [ALIKE, GUARDED], ids=["alike", "guarded"])
@pytest.mark.parametrize("options", [{}, {"numbers": "float"}, {"threads": 2}, {"sharing": "never"}], ids=str)
def test_rows(text: str, options: dict[str, Any]) -> None:
    events = stream(80)
    wanted = oracle.evaluate(parse(text), events)
    assert len(wanted) > 2
    workload = hamlet.Workload.parse(text)
    floats = options.get("numbers") == "float"
    assert difference(hamlet.run(workload, events, **options).rows(), wanted, floats=floats) is None
    engine = hamlet.Engine(workload, **options)
    pushed = [row for event in events for row in engine.push([event])]
    engine = hamlet.Engine.restore(workload, engine.save())
    pushed += engine.close()
    rows = [row for name in workload.names for row in pushed if row["query"] == name]
    alone = hamlet.run(workload, events, **options).rows()
    assert difference(in_any_order(rows), in_any_order(alone), floats=floats) is None


def test_one_kernel_query_serves_all() -> None:
    assert kernel_queries(ALIKE) == [((0, 1, 2),)]
    assert kernel_queries(GUARDED) == [((0, 1),)]
    assert kernel_queries(ALIKE, together=False) == [((0,), (1,), (2,))]


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_is_not_alike(other: str) -> None:
    assert kernel_queries(ALIKE + other) == [((0, 1, 2), (3,))]


def test_pairs_are_like_no_other() -> None:
    text = "RETURN COUNT(*) PATTERN A+ AND B+ WITHIN 9 s; RETURN COUNT(A) PATTERN A+ AND B+ WITHIN 9 s;"
    (users,) = kernel_queries(text)
    assert {tuple(each) for each in users} == {(0,), (1,)}


def test_the_trace_names_all() -> None:
    text = ALIKE + OTHERS["window"]
    engine = hamlet.Engine(hamlet.Workload.parse(text), sharing="static", trace=True)
    of_all = {"k": 1, "s": "x", "v": 1, "w": 1.5}
    engine.push([{"time": 0, "type": "A", **of_all}, *({"time": t, "type": "B", **of_all} for t in range(1, 9))])
    engine.close()
    bursts = [each for each in engine.trace().to_pylist() if each["type"] == "B"]
    assert {tuple(each["queries"]) for each in bursts} == {("q1", "q2", "q3", "q4")}
    assert {each["k"] for each in bursts} == {2}
