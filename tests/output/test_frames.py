"""Results as frames: integers stay integers, and values of several types are readable everywhere."""

import random
from decimal import Decimal

import pyarrow as pa
import pytest

import hamlet
from hamlet import policies, streams
from hamlet.output.typed import typed_rows, typed_schema

BIG = 27021597764222979  # no double
SPEC = """
input a: Int64
input s: String
output n := a + 1
output f := cast<Int64, Float64>(a) / 2.0
output t := s
output p := (a, s)
output b := a > 3
"""


def _values() -> streams.Results:
    specification = streams.Specification.parse(SPEC)
    return streams.run(specification, [{"time": t, "a": BIG + t, "s": "xy"[t]} for t in range(2)], values=True)


def test_integers_of_several_queries_stay_integers_in_pandas() -> None:
    pytest.importorskip("pandas")
    text = "RETURN SUM(A.x) AS m PATTERN A WITHIN 10 s; RETURN SUM(B.x) AS n PATTERN B WITHIN 10 s"
    events = [{"time": 0, "type": "A", "x": BIG}, {"time": 1, "type": "B", "x": BIG + 1}]
    frame = hamlet.run(hamlet.Workload.parse(text), events).to_pandas()
    assert str(frame["m"].dtype) == "Int64"
    assert [int(frame["m"].sum()), int(frame["n"].sum())] == [BIG, BIG + 1]
    assert str(frame["window_start"].dtype) == "int64"
    one = hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) AS n PATTERN A WITHIN 10 s"), events).to_pandas()
    assert str(one["n"].dtype) == "int64"


def test_rows_of_policies_are_frames() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    signature = policies.Signature.parse("a(x: int) b(y: int)")
    both = [
        policies.Policy.parse("a(x)", signature, name="one"),
        policies.Policy.parse("b(y)", signature, name="two"),
    ]
    events = [{"time": 1, "type": "a", "x": BIG}, {"time": 2, "type": "b", "y": BIG + 1}]
    results = policies.run(both, events)
    frame = results.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert [int(frame["x"][0]), int(frame["y"][1])] == [BIG, BIG + 1]
    assert results.to_polars()["y"].to_list() == [None, BIG + 1]
    assert pa.table(results).num_rows == len(polars.DataFrame(results)) == 2


def test_values_of_several_types_are_typed_columns() -> None:
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    results = _values()
    table = results.table()
    names = ["value_int", "value_float", "value_text", "value_tuple", "value_bool"]
    assert table.column_names == ["trigger", "stream", "time", *names][-len(table.column_names) :]
    for row, told in zip(table.to_pylist(), results.rows(), strict=True):
        held = [row[name] for name in names if row[name] is not None]
        expected = told["value"]
        assert held == [{"0": expected[0], "1": expected[1]} if isinstance(expected, tuple) else expected]
    assert results.to_polars()["value_int"].drop_nulls().to_list() == [BIG + 1, BIG + 2]
    assert results.to_pandas()["value_int"].dropna().tolist() == [BIG + 1, BIG + 2]
    assert isinstance(results.to_polars(), polars.DataFrame)
    rows = table
    assert rows.num_rows
    assert duckdb.sql("SELECT sum(value_int) FROM rows").fetchall() == [(2 * BIG + 3,)]


@pytest.mark.parametrize("seed", range(50))
def test_any_union_is_split(seed: int) -> None:
    choose = random.Random(seed)
    held = [BIG, 0.5, "x"]
    codes = [choose.randrange(3) for _ in range(choose.randrange(30))]
    values = [choose.choice([held[code], None]) for code in codes]
    parts = [[value for other, value in zip(codes, values, strict=True) if other == code] for code in range(3)]
    union = pa.UnionArray.from_dense(
        pa.array(codes, pa.int8()),
        pa.array([codes[:place].count(code) for place, code in enumerate(codes)], pa.int32()),
        [pa.array(part, kind) for part, kind in zip(parts, [pa.int64(), pa.float64(), pa.string()], strict=True)],
        ["int64", "double", "string"],
    )
    batch = pa.record_batch([union, pa.array(range(len(codes)), pa.int64())], names=["value", "value_int"])
    start = choose.randrange(len(codes) + 1)
    split = typed_rows(batch.slice(start))
    assert split.schema.names == ["value_int_2", "value_float", "value_text", "value_int"]
    assert split.schema == typed_schema(batch.schema)
    columns = [column.to_pylist() for column in split.columns[:3]]
    for code, value, row in zip(codes[start:], values[start:], zip(*columns, strict=True), strict=True):
        assert row == tuple(value if place == code else None for place in range(3))


def test_times_between_ticks_are_one_column_of_decimals() -> None:
    specification = streams.Specification.parse("input a: Int64\noutput n @2Hz := a.hold(or: 0)")
    results = streams.run(specification, [{"time": 0, "a": 1}, {"time": 2, "a": 2}], values=True)
    assert results.table()["time"].to_pylist() == [Decimal(str(row["time"])) for row in results.rows()]
