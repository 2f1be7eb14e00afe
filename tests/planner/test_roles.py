"""Local predicates that accept the same events are one role in the engine, however they are written."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import hamlet
from hamlet import oracle
from hamlet.errors import DataError
from hamlet.input.columns import StringPool
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock, Schema
from hamlet.planner.compile import compile_workload
from hamlet.planner.roles import MOST_COMPARED
from tests.comparison import difference

SAME = [
    "B.v > 3",
    "3 < B.v",
    "NOT B.v <= 3",
    "B.v > 3 AND B.v > 2",
    "B.v > 3 OR B.v = 7",
    "B.v > 3 AND B.v IS NOT NULL",
]
OF_INTEGERS = [*SAME, "B.v >= 4", "B.v NOT BETWEEN -9 AND 3 AND B.v > 0", "B.v > 3.5"]


def workload(conditions: list[str], aggregates: str = "COUNT(*)") -> hamlet.Workload:
    lines = (
        f"q{place}: RETURN {aggregates} PATTERN SEQ(A{place}?, B+) WHERE {condition} WITHIN 100 s;"
        for place, condition in enumerate(conditions)
    )
    return hamlet.Workload.parse("\n".join(lines))


def roles(conditions: list[str], kind: AttributeType) -> int:
    """How many roles of B there are."""
    columns = {"v": kind, "w": kind, "type": AttributeType.STRING, "time": AttributeType.INT}
    schema = Schema(columns, Clock("time", "s", pa.int64()), closed=False)
    compiled = compile_workload(workload(conditions).analysis, schema, StringPool())
    return len({query.roles["B"] for query in compiled.queries})


def test_predicates_that_accept_the_same_events_are_one_role() -> None:
    assert roles(SAME, AttributeType.INT) == 1
    assert roles(SAME, AttributeType.DOUBLE) == 1
    assert roles(OF_INTEGERS, AttributeType.INT) == 1
    assert roles(OF_INTEGERS, AttributeType.DOUBLE) == 3  # between 3 and 4 there are doubles
    assert roles(["B.v > 3", "B.v > 4", "B.w > 3", "B.v > 3 AND B.w > 3"], AttributeType.INT) == 4
    assert roles(["B.s = 'x'", "'x' = B.s", "B.s IN ('x')", "B.s IN ('x', 'y')"], AttributeType.INT) == 2


def test_a_text_written_once_needs_no_proof() -> None:
    assert roles(["B.v > 3"] * 3, AttributeType.INT) == 1
    assert roles(["B.v % 7 = 3"] * 3, AttributeType.INT) == 1


def test_arithmetic_is_left_as_it_is_written() -> None:
    """Both accept what is above 3, but one may pass 64 bits, and that query must say so."""
    conditions = ["B.v > 3", "B.v * 2 > 6"]
    assert roles(conditions, AttributeType.INT) == 2
    events: list[dict[str, Any]] = [{"time": 1, "type": "B", "v": 2**62}]
    for order in (conditions, conditions[::-1]):
        with pytest.raises(DataError, match=r"B\.v \* 2 passes 64 bits"):
            hamlet.run(workload(order), events)


def test_many_predicates_are_compared_by_their_text_only() -> None:
    many = [f"B.v > {place}" for place in range(MOST_COMPARED + 1)]
    assert roles([*many, "0 < B.v"], AttributeType.INT) == MOST_COMPARED + 2
    assert roles([*many[1:], "1 < B.v"], AttributeType.INT) == MOST_COMPARED


def test_they_share_their_bursts() -> None:
    """One computation of coefficients per graphlet, for all of them."""
    events = [{"time": time, "type": "B", "v": time} for time in range(20)]
    stats = hamlet.run(workload(OF_INTEGERS, "SUM(B.v)"), events, sharing="static").stats
    assert stats["coefficient_computations"] == stats["graphlets"] == stats["shared_graphlets"]
    assert stats["snapshot_values"] == len(OF_INTEGERS) * stats["graphlets"]


CONDITIONS = [
    *OF_INTEGERS,
    "B.v < 2",
    "2 > B.v",
    "B.v <= 1",
    "B.v IN (1, 2)",
    "B.v BETWEEN 1 AND 2",
    "B.v = 1 OR B.v = 2",
    "B.v IS NULL",
    "NOT B.v IS NOT NULL",
    "B.v IS NULL OR B.v > 3",
    "B.s = 'x'",
    "B.s <> 'y' AND B.s <> 'z'",
    "B.s >= 'x' AND B.s < 'y'",
    "B.v = B.w",
    "B.w = B.v AND B.v IS NOT NULL",
    "B.v < B.w OR B.v > B.w",
    "B.v <> B.w",
]


def random_events(chance: random.Random) -> list[dict[str, Any]]:
    values: list[Any] = [1, 2, 3, 4, 7, None]
    if chance.random() < 0.4:
        values += [3.5, float("nan")]
    return [
        {
            "time": time,
            "type": chance.choice(["A0", "B", "B", "B"]),
            "v": chance.choice(values),
            "w": chance.choice(values),
            "s": chance.choice(["x", "xa", "y", None]),
        }
        for time in range(8)
    ]


@pytest.mark.parametrize("seed", range(40))
def test_oracle_however_predicates_are_written(seed: int) -> None:
    chance = random.Random(seed)
    chosen = [chance.choice(CONDITIONS) for _ in range(6)]
    queries, events = workload(chosen, "COUNT(*), COUNT(B), MAX(B.v)"), random_events(chance)
    expected = oracle.evaluate(queries.analysis.text, events)
    for sharing in ("dynamic", "static", "never"):
        rows = hamlet.run(queries, events, sharing=sharing).rows()
        assert not difference(rows, expected), (chosen, events)
    engine = hamlet.Engine(queries)  # the kinds of attributes widen on the way
    pushed = [row for event in events for row in engine.push([event])] + engine.close()
    assert not difference(pushed, expected), (chosen, events)
