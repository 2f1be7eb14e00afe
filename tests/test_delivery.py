"""Delivery: tables, Python rows and the rows of pushes say the same, whether they are made of arrays or of lists."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet import runner
from hamlet.output.digits import number_text

TEXT = """
    plain: RETURN g, COUNT(*), COUNT(B), SUM(B.i), SUM(B.d), AVG(B.i), AVG(B.d), MIN(B.i), MAX(B.d), MIN(B.t),
        LOG2(COUNT(*)), LOG2(SUM(B.d)) PATTERN SEQ(A, B+) GROUP-BY g WITHIN 40 s;
    merged: RETURN COUNT(*), SUM(B.i), SUM(B.d), AVG(B.i), AVG(B.d), MIN(B.i), MAX(B.d), MAX(B.t)
        PATTERN SEQ(A, B+) WHERE [g] WITHIN 40 s;
    pairs: RETURN g, COUNT(*), SUM(B.i), AVG(B.d), MIN(A.i) PATTERN A+ AND B+ GROUP-BY g WITHIN 40 s;
    nothing: RETURN g, COUNT(*), SUM(C.i), AVG(C.i), MIN(C.d) PATTERN (A | C)+ GROUP-BY g WITHIN 40 s
"""
WORKLOAD = hamlet.Workload.parse(TEXT)
COUNTED = {"count", "count_B", "sum_B_i", "sum_B_d", "sum_C_i"}


def events(rows: int, bursts: int, seed: int) -> pa.Table:
    """`bursts` events to a second: many make counts beyond 64 bits, few do not."""
    draw = np.random.default_rng(seed)
    there = draw.random(rows) < 0.9
    return pa.table(
        {
            "time": np.arange(rows) // bursts,
            "order": np.arange(rows),
            "type": draw.choice(["A", "B", "B"], rows),
            "g": pa.array(draw.choice(["p", "q", "r"], rows), mask=draw.random(rows) < 0.1),
            "i": pa.array(draw.integers(-9, 99, rows), mask=~there),
            "d": pa.array(draw.normal(size=rows) * 10, mask=~there),
            "t": pa.array(draw.integers(0, 10**9, rows), pa.timestamp("ms")),
        }
    )


def presented(value: Any, kind: pa.DataType) -> Any:
    """A number of a row as a table has it."""
    if value is None or isinstance(value, datetime.datetime):
        return value
    if pa.types.is_string(kind):
        return number_text(value)
    if pa.types.is_decimal(kind):
        return decimal.Decimal(round(value))
    return float(value) if pa.types.is_floating(kind) else round(value)


@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize(("bursts", "count_types"), [(1, ("string", "int64", "double", "decimal")), (30, ("string",))])
def test_tables_rows_and_pushes_agree(numbers: str, bursts: int, count_types: tuple[str, ...]) -> None:
    stream = events(1500, bursts, seed=bursts)
    for count_type in count_types:
        results = hamlet.run(WORKLOAD, stream, numbers=numbers, count_type=count_type, order_column="order")
        rows = results.rows()
        assert {row["query"] for row in rows} == set(WORKLOAD.names)
        for name in WORKLOAD.names:
            own, table = [row for row in rows if row["query"] == name], results.table(name)
            for column in set(own[0]) - {"query", "window_start", "window_end", "g"}:
                kind = table.schema.field(column).type
                assert pa.types.is_string(kind) == (column in COUNTED and count_type == "string")
                assert table.column(column).to_pylist() == [presented(row[column], kind) for row in own]
            assert table.select(["query", "window_start", "window_end"]).to_pylist() == [
                {key: row[key] for key in ("query", "window_start", "window_end")} for row in own
            ]
    assert (results.stats["largest_count_bits"] > 64) == (bursts > 1 and numbers == "exact")


@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_few_rows_are_made_of_lists_and_many_of_arrays(numbers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways give equal rows, to the last digit of a double."""
    stream = events(1500, 12, seed=4)
    found = []
    for few in (0, 1000):
        monkeypatch.setattr(runner, "FEW", few)
        engine = hamlet.Engine(WORKLOAD, numbers=numbers, order_column="order")
        found.append([row for start in range(0, 1500, 37) for row in engine.push(stream.slice(start, 37))])
        found[-1] += engine.close()
    assert found[0] == found[1]
    assert len(found[0]) > 30


def test_many_events_in_one_push_are_cut_between_times() -> None:
    """Pieces that fit the cache, whatever the batch; events of one time stay together, however many there are."""
    workload = hamlet.Workload.parse("RETURN COUNT(*), SUM(B.v) PATTERN SEQ(A, B) WITHIN 10 s")
    times = np.repeat(np.arange(30), [150_000 if number == 11 else 6_000 for number in range(30)])
    values = np.arange(len(times))
    stream = {"time": times, "type": np.where(values % 3, "B", "A"), "v": values}
    engine = hamlet.Engine(workload)
    counts = []
    for first in range(0, 30, 10):
        inside = (times >= first) & (times < first + 10)
        later = [(inside & (times > time) & (values % 3 > 0)) for time in range(first, first + 10)]
        befores = [(inside & (times == time) & (values % 3 == 0)).sum() for time in range(first, first + 10)]
        counts.append(sum(int(b) * int(each.sum()) for b, each in zip(befores, later, strict=True)))
    assert [row["count"] for row in engine.push(stream) + engine.close()] == counts
