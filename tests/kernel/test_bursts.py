"""Differential tests of bursts: closed forms over whole bursts against the same events pushed one by one."""

from __future__ import annotations

import math
from typing import Any

import pytest

import hamlet
from tests.kernel.test_ordered_sums import stream

ITEMS = "k, COUNT(*), COUNT({v}), SUM({v}.v), SUM({v}.w), AVG({v}.v), AVG({v}.w), MIN({v}.v), MAX({v}.w), MAX({v}.time)"
QUERIES = [
    ("SEQ(A, B+)", "B", ""),
    ("SEQ(B+, NOT C)", "B", "WHERE B.v > 0"),
    ("SEQ(A?, B+, D)", "B", "WHERE B.w <> 1.5"),
    ("(SEQ(A, B+))+", "B", "WHERE B.v > 0"),
    ("SEQ(A, B b, B+)", "B", ""),
    ("SEQ(B x+, B y+)", "y", "WHERE x.v > 0 AND y.v < 3"),
    ("SEQ(A, B)", "B", "WHERE B.s = 'x'"),
    ("SEQ(NOT C, A, (B OR D)+)", "B", ""),
    ("SEQ(A, B+) AND B+", "B", "WHERE B.v > 0"),
    ("B+", "B", "WHERE B.v * 2 < 7"),
]
WINDOWS = ["WITHIN 500 s", "WITHIN 400 s SLIDE 90 s", "WITHIN 60 s SLIDE 100 s"]


def workload(window: str) -> hamlet.Workload:
    return hamlet.Workload.parse(
        "".join(
            f"RETURN {ITEMS.format(v=variable)} PATTERN {pattern} {where} GROUP-BY k {window};\n"
            for pattern, variable, where in QUERIES
        )
    )


def one_by_one(queries: hamlet.Workload, events: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    engine = hamlet.Engine(queries, **options)
    found = [row for event in events for row in engine.push([event])] + engine.close()
    order = {name: place for place, name in enumerate(queries.names)}
    return sorted(
        found, key=lambda row: (order[row["query"]], row["window_start"], row["k"] is not None, row["k"] or 0)
    )


def assert_equal(found: list[dict[str, Any]], expected: list[dict[str, Any]], exact: bool) -> None:
    assert len(found) == len(expected) > 50
    for row, other in zip(found, expected, strict=True):
        assert list(row) == list(other)
        for name, value in row.items():
            if value is None or isinstance(value, str) or other[name] is None:
                assert value == other[name], (name, row, other)
            elif name.startswith(("avg", "sum")) and ("_w" in name or not exact):
                assert math.isclose(value, other[name], rel_tol=1e-9, abs_tol=1e-6 * float(row["count"])), (
                    name,
                    row,
                    other,
                )
            elif exact or name.startswith(("min", "max", "window", "k")):
                assert value == other[name], (name, row, other)
            else:
                assert math.isclose(value, other[name], rel_tol=1e-9), (name, row, other)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("options", [{}, {"sharing": "never"}, {"numbers": "float"}, {"threads": 2}], ids=str)
def test_differential_bursts_and_single_events(window: str, options: dict[str, Any]) -> None:
    events = sorted(stream(7, 900), key=lambda event: event["time"])
    numbered = [dict(event, seq=place) for place, event in enumerate(events)]
    queries = workload(window)
    found = hamlet.run(queries, numbered, order_column="seq", **options).rows()
    assert_equal(found, one_by_one(queries, numbered, order_column="seq"), options.get("numbers") != "float")


def test_sharing_is_one_computation_per_graphlet() -> None:
    """With k queries over one Kleene sub-pattern, a burst's coefficients are computed once, not k times."""
    events = [{"time": t, "type": "A" if t % 50 == 0 else "B", "v": t} for t in range(1000)]
    for k in (2, 10, 50):
        text = "".join(f"RETURN SUM(B.v) PATTERN SEQ(A, B+) WITHIN {1000 * (i + 1)} s;" for i in range(k))
        queries = hamlet.Workload.parse(text)
        shared, alone = hamlet.run(queries, events, sharing="static"), hamlet.run(queries, events, sharing="never")
        assert shared.rows() == alone.rows()
        graphlets = shared.stats["graphlets"]
        assert shared.stats["shared_graphlets"] == graphlets >= 20
        assert shared.stats["coefficient_computations"] == graphlets
        assert shared.stats["snapshots"] == graphlets
        assert shared.stats["snapshot_values"] == alone.stats["snapshot_values"] == k * graphlets
        assert alone.stats["shared_graphlets"] == 0
        assert alone.stats["coefficient_computations"] == k * alone.stats["graphlets"]
