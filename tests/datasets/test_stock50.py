"""The fifty queries over trades: as diverse as they are said to be, and right on slices under every policy."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet import oracle
from hamlet.input.events import open_events
from hamlet.language.query import atoms
from hamlet.planner.explain import view
from tests.comparison import difference, table

WORKLOAD = hamlet.Workload.from_file(Path(__file__).resolve().parents[2] / "workloads" / "stock50.sase")
MICROSECONDS: dict[str, Any] = {"time_unit": "us", "order_column": "seq"}
MINUTE = 60 * 10**6

Events = list[dict[str, Any]]


def test_fifty_diverse_queries() -> None:
    """Section 5.1: patterns of length 1 to 3, windows of 5 to 20 minutes, all aggregates, two groupings."""
    queries = WORKLOAD.queries
    assert len(queries) == 50
    assert {len(list(atoms(query.pattern))) for query in queries} == {1, 2, 3}
    assert {query.within.seconds // 60 for query in queries} == {5, 10, 15, 20}
    functions = {item.value.function for query in queries for item in query.items if hasattr(item.value, "function")}
    assert functions == {"COUNT", "SUM", "AVG", "MIN", "MAX"}
    grouped = [tuple(attribute.name for attribute in query.group_by) for query in queries]
    assert set(grouped) == {("symbol",), ("symbol", "exchange")}
    assert 15 <= grouped.count(("symbol", "exchange")) <= 35
    assert sum(query.condition is not None for query in queries) >= 20
    assert len({(query.pattern, query.condition, query.items, query.within) for query in queries}) == 50


def test_three_kleene_patterns_are_shared_in_both_groupings() -> None:
    shared = view(WORKLOAD, None).shared.sharing
    types = sorted(pattern.shape.types for group in shared.groups for pattern in group.sub_patterns)
    assert types == [("Down",)] * 2 + [("Flat",)] * 2 + [("Up",)] * 2
    assert shared.left_out == ()
    assert max(len(group.queries) for group in shared.groups) >= 20


def compare(events: Events) -> int:
    """Compare engine and oracle on some events; how many rows there are."""
    expected = oracle.evaluate(WORKLOAD.analysis.text, events, order_column="seq", ticks_per_second=10**6)
    for sharing in ("dynamic", "static", "never"):
        for numbers in ("exact", "float"):
            rows = hamlet.run(WORKLOAD, events, sharing=sharing, numbers=numbers, **MICROSECONDS).rows()
            found = difference(rows, expected, floats=numbers == "float")
            assert not found, f"{sharing} {numbers}: {found}\n{table(rows)}\ninstead of\n{table(expected)}"
    return len(expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(3))
def test_oracle_on_random_trades(seed: int) -> None:
    """Half an hour of two symbols on two exchanges, in bursts, sizes around the bounds of the queries."""
    chance = random.Random(seed)
    time, events, type = 0, [], "Flat"
    for place in range(44):
        time += chance.choice([0, 1, MINUTE // 2, MINUTE])
        type = chance.choice([type, type, "Up", "Down", "Flat"])
        events.append(
            {
                "time": time,
                "type": type,
                "seq": place,
                "symbol": chance.choice(["SPY", "BAC"]),
                "price": chance.randint(100, 120) / 4,
                "size": chance.choice([50, 99, 100, 300, 499, 500, 1000, 2000, 10_000]),
                "exchange": chance.choice("PQ"),
                "cond": "1",
                "suspicious": chance.random() < 0.1,
            }
        )
    assert compare(events) > 20


def slices(file: Path) -> Iterator[Events]:
    """Nine trades each, whose sizes reach the bounds of the queries."""
    trades = pq.read_table(file)
    for start in (400_000, 1_500_000, 2_600_000):
        yield trades.slice(start, 9).to_pylist()


def test_columns_of_the_stream(stock_file: Path) -> None:
    assert WORKLOAD.check(open_events(stock_file, **MICROSECONDS).schema) == []


def test_oracle_on_slices_of_the_stream(stock_file: Path) -> None:
    assert sum(map(compare, slices(stock_file))) > 20
