"""Delivery: tables, Python rows and the rows of pushes say the same, whether they are made of arrays or of lists."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hamlet
from hamlet.findings.beside import Beside
from hamlet.kernel.column_builder import by_window
from hamlet.output.components import Values
from hamlet.output.digits import number_text
from hamlet.output.numbers import BeyondDoubles, Integers, ScaledDoubles
from hamlet.output.query_rows import dicts_of
from hamlet.planner import scaled

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


@pytest.mark.sampled(4)
@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("pushed", [37, 3000], ids=["few rows", "many rows"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"], ids=["ticks", "moments"])
def test_dicts_from_the_kernel_are_those_from_arrays(numbers: str, pushed: int, zone: str | None) -> None:
    """Both ways give equal rows, to the last digit of a double and the last bit of an integer."""
    stream = events(6000, 12, seed=4)
    text = TEXT.replace("WITHIN 40 s", "WITHIN 40 s SLIDE 5 s").replace("RETURN g", "RETURN LOG2(AVG(A.i)) AS l, g")
    if zone is not None:
        stream = stream.set_column(0, "time", stream["time"].cast(pa.timestamp("s", zone)))
    workload = hamlet.Workload.parse(text.replace("(A | C)+ GROUP-BY g", "(A | C)+ GROUP-BY i, g"))
    dicts, columns = [hamlet.Engine(workload, numbers=numbers, order_column="order") for _ in range(2)]
    found, expected = [], []
    for start in range(0, 6000, pushed):
        part = stream.slice(start, pushed)
        found.append(dicts.push(part))
        expected.append([row for rows in columns.push_batches(part) for row in dicts_of(rows, columns.clock)])
    assert repr(found) == repr(expected)
    assert sum(map(len, found)) > 400


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


@pytest.mark.parametrize(
    ("rows", "windows", "keys", "limit"),
    [(0, 1, 1, 1), (1, 1, 1, 1), (300, 9, 10, 10), (300, 2, 9, 4), (2000, 3, 900, 10**6), (2000, 7, 5000, 5000)],
    ids=["none", "one", "few", "groups of several keys", "far ranks", "many"],
)
def test_rows_by_window_and_rank(rows: int, windows: int, keys: int, limit: int) -> None:
    draw = np.random.default_rng(rows)
    of_row, numbers = draw.integers(-5, windows - 5, rows), draw.integers(0, keys, rows)
    ranks = draw.permutation(limit)[:keys] if limit >= keys else draw.integers(0, limit, keys)
    for by_key in (False, True):
        if by_key:  # of each key and window one row, ascending windows, as kernels give them
            pairs = np.unique(np.stack([of_row, numbers], axis=1), axis=0)
            of_row, numbers = (np.ascontiguousarray(pairs[:, column]) for column in (0, 1))
        order, keys_found, found, counts = by_window(of_row, numbers + 7, numbers, ranks, limit)
        assert keys_found.tolist() == (numbers[order] + 7).tolist()
        assert order.tolist() == np.lexsort((ranks[numbers], of_row)).tolist()
        assert np.repeat(found, counts).tolist() == sorted(of_row.tolist())
        assert (np.diff(found) > 0).all()


@pytest.mark.parametrize(("rows", "limit"), [(20, 5), (500, 7), (500, 10**6), (3000, 2**62), (5000, 3000)])
def test_rows_of_one_window_are_sorted_stably(rows: int, limit: int) -> None:
    ranks = np.random.default_rng(rows).integers(0, limit, rows)
    for each in (ranks, np.sort(ranks)):
        places = np.arange(rows)
        order, _, found, counts = by_window(np.zeros(rows, np.int64), places, places, each, limit)
        assert order.tolist() == np.argsort(each, kind="stable").tolist()
        assert (found.tolist(), counts.tolist()) == ([0], [rows])


def test_windows_far_apart_are_in_order() -> None:
    """No counter is kept for each of the windows between two that have rows."""
    times = np.array([5, 3, 4, 10**15, 10**15 + 1, 3 * 10**15, 3 * 10**15 + 2]) + 10**15
    stream = {"time": np.sort(times), "type": ["A", "B", "B"] + ["A", "B"] * 2, "k": [2, 2, 2, 1, 1, 1, 1]}
    stream = {name: np.concatenate([column, column]) for name, column in stream.items()}
    stream["k"][7:] = 0
    place = np.argsort(stream["time"], kind="stable")
    table = pa.table({name: column[place] for name, column in stream.items()})
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 3 s SLIDE 1 s")
    rows = hamlet.run(workload, table).rows()
    found = [(row["window_start"], row["k"], row["count"]) for row in rows]
    assert found == sorted(found)
    assert len(found) == 10
    assert hamlet.run(workload, table).table("q1")["window_start"].to_pylist() == [start for start, *_ in found]


BITS = st.one_of(st.integers(0, 200), st.integers(900, 1100), st.integers(0, 5000))
INTEGERS = st.builds(
    lambda sign, bits, head, tail: sign * ((1 << bits) + (head << max(0, bits - 60)) + tail),
    st.sampled_from([-1, 1]),
    BITS,
    st.integers(0, 1 << 59),
    st.sampled_from([-1, 0, 1]),
)
HALF = 1 << 970  # half the distance of the largest doubles


def or_infinite(convert: Callable[[int], float], value: int) -> float:
    try:
        return convert(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@given(st.lists(INTEGERS, max_size=8))
@example([0, 1, -1, 2**63, -(2**63), 2**64 - 1, 2**64, 2**53 + 1, 2**54 + 2, 2**54 + 6, -(2**1023)])
@example([2**1024 - HALF - 1, 2**1024 - HALF, -(2**1024) + HALF, 2**1024, 2**2000, (2**54 - 1) << 1000])
def test_limbs_become_what_python_makes_of_the_integers(values: Sequence[int]) -> None:
    column = Integers.of(values)
    assert column.tolist() == list(values)
    assert column[np.arange(len(values))[::-1]].tolist() == values[::-1]
    assert column.doubles().tolist() == [or_infinite(float, value) for value in values]
    logarithms, above = column.logarithms()
    assert above.tolist() == [value > 0 for value in values]
    assert logarithms[above].tolist() == [math.log2(value) for value in values if value > 0]
    assert Integers.of([abs(value) for value in values]).scaled().pairs() == [
        scaled.of_integer(abs(value)) for value in values
    ]


PAIRS = st.builds(
    scaled.normal,
    st.floats(allow_subnormal=False),
    st.sampled_from([-2048, -1024, -512, 0, 512, 1024, 10**9 // 512 * 512]),
)


@given(st.lists(PAIRS, max_size=8))
def test_scaled_doubles_become_python_numbers_on_demand(pairs: Sequence[scaled.Scaled]) -> None:
    column = ScaledDoubles.of(pairs)
    found = column.presented()
    expected = [scaled.presented(pair) for pair in pairs]
    assert list(map(repr, found.tolist())) == list(map(repr, expected))
    assert isinstance(found, BeyondDoubles) == any(isinstance(each, decimal.Decimal) for each in expected)
    logarithms, above = column.logarithms()
    assert list(map(repr, logarithms[above].tolist())) == [
        repr(scaled.log2(pair)) for pair in pairs if not pair[0] <= 0
    ]


def test_infinite_tables_make_no_python_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values beyond doubles are infinite in a table of doubles without becoming decimals first."""
    for owner in (Integers, ScaledDoubles, BeyondDoubles):
        if hasattr(owner, "tolist"):
            monkeypatch.setattr(owner, "tolist", None)
    monkeypatch.setattr(Beside, "rows", lambda *_: ())  # findings show numbers
    stream = {"time": np.arange(3000), "type": np.where(np.arange(3000) % 1500, "B", "A"), "v": np.arange(3000)}
    workload = hamlet.Workload.parse("RETURN COUNT(*), SUM(B.v), LOG2(COUNT(*)) PATTERN SEQ(A, B+) WITHIN 1500 s")
    for numbers in ("exact", "float"):
        table = hamlet.run(workload, stream, numbers=numbers, count_type="double").table("q1")
        assert table["count"].to_pylist() == table["sum_B_v"].to_pylist() == [math.inf] * 2
        assert table["log2_count"].to_pylist() == [1499.0] * 2


def test_one_row_of_a_column() -> None:
    """As the whole column has it, without making the whole."""
    present = np.array([True, False, True])
    pairs = ScaledDoubles(np.array([1.5, 0.25, 1.75]), np.array([0, 0, 2048]))
    columns = [
        Values(np.array([3, -9, 2]), present),
        Values(Integers.of([1 << 80, -5, 7])),
        Values(pairs.presented()),
        Values(np.array([0, 1, 0]), objects=["x", "y"], places=np.array([1, 1, 0], np.int32)),
        Values([4, None, 1 << 70]),
    ]
    for each in columns:
        assert [each.at(row) for row in range(3)] == each.tolist()
    assert [columns[place].largest(slice(0, 3)) for place in (1, 2, 4)] == [0, 2, 2]
    assert columns[1].largest(slice(1, 3)) == 2
    assert Values(np.array([1, 9]), places=np.array([0, 1, 0], np.int32)).largest(slice(0, 3)) == 1
