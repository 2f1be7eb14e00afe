"""Results in other hands: pyarrow, numpy, DuckDB and polars, without copies where that is possible."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.errors import OptionError, OutputError
from hamlet.output.exchange import arrays, union

TEXT = """
grown: RETURN g, COUNT(*), SUM(B.v) AS total, AVG(B.v) AS mean PATTERN SEQ(A, B+) GROUP-BY g WITHIN 1000 s;
none: RETURN COUNT(*) PATTERN C WITHIN 10 s;
pairs: RETURN COUNT(*), MAX(B.v) PATTERN SEQ(B, B b) WITHIN 10 s;
"""
EVENTS = [{"time": 0, "type": "A", "g": "x"}, {"time": 0, "type": "A", "g": None}] + [
    {"time": place, "type": "B", "g": "x" if place % 40 else None, "v": place} for place in range(1, 201)
]


def results(**options: str) -> hamlet.Results:
    return hamlet.run(hamlet.Workload.parse(TEXT), EVENTS, **options)


def test_all_queries_in_one_table() -> None:
    found = results()
    table = found.table()
    assert table.column_names == ["query", "window_start", "window_end", "g", "count", "total", "mean", "max_B_v"]
    assert table.num_rows == len(found)
    shared = [{**dict.fromkeys(table.column_names), **row} for row in found.rows()]
    rows = table.to_pylist()
    for row in rows:
        for name in ("count", "total"):
            row[name] = None if row[name] is None else int(row[name])
    assert rows == shared


def test_columns_of_a_union_are_not_copied() -> None:
    tables = [results(count_type="string").table(name) for name in ("grown", "pairs")]
    joined = union(tables)
    for table, chunk in zip(tables, joined.column("window_start").chunks, strict=True):
        [own] = table.column("window_start").chunks
        assert chunk.buffers()[1].address == own.buffers()[1].address


def test_a_name_with_two_types_is_refused() -> None:
    text = "a: RETURN MAX(B.v) AS x PATTERN B WITHIN 10 s; b: RETURN COUNT(*) AS x PATTERN B WITHIN 10 s"
    found = hamlet.run(hamlet.Workload.parse(text), EVENTS, count_type="string")
    with pytest.raises(OutputError, match="the column 'x' is int64 in one query and string in another; rename one"):
        found.table()
    assert found.table("a").num_rows == 21


def test_numpy() -> None:
    found = results().numpy("grown")
    assert {name: values.dtype.kind for name, values in found.items()} == {
        "query": "O", "window_start": "i", "window_end": "i", "g": "O", "count": "O", "total": "O", "mean": "f"
    }  # fmt: skip
    assert found["count"].tolist() == [2**5 - 1, 2**195 - 1]
    assert (found["count"] + 1).tolist() == [2**5, 2**195]
    assert results(count_type="double").numpy("grown")["count"].dtype == np.float64
    assert results(numbers="float").numpy("grown")["count"][1] == pytest.approx(2.0**195)
    assert len(results().numpy("none")["count"]) == 0
    with pytest.raises(OptionError, match="there is no query 'grow'"):
        results().numpy("grow")


def test_numpy_looks_at_the_memory_of_the_table() -> None:
    table = results(count_type="double").table("pairs")
    found = arrays(table, {})
    for name in ("window_start", "count", "max_B_v"):
        assert np.shares_memory(found[name], table.column(name).chunk(0).to_numpy())


def test_numpy_rounds_no_integers() -> None:
    """Doubles hold NULL, and integers up to 2^53: larger ones are objects beside it."""
    for large, kind in ((2**53, "f"), (2**53 + 1, "O"), (-(2**63), "O")):
        found = arrays(pa.table({"n": [large, None, 1]}), {})["n"]
        assert (found.dtype.kind, int(found[0])) == (kind, large)
    assert arrays(pa.table({"n": pa.array([None], pa.int64())}), {})["n"].dtype.kind == "f"


def test_timestamps_stay_timestamps() -> None:
    start = datetime.datetime(2024, 5, 1)
    events = pa.table(
        {"time": pa.array([start, start + datetime.timedelta(seconds=1)], pa.timestamp("ms")), "type": ["A", "B"]}
    )
    found = hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 1 d"), events)
    assert found.numpy("q1")["window_start"].dtype == np.dtype("datetime64[ms]")
    assert found.table().schema.field("window_start").type == pa.timestamp("ms")


def test_duckdb_reads_results_where_they_are() -> None:
    duckdb = pytest.importorskip("duckdb")
    found = results(count_type="double")
    connection = duckdb.connect()
    connection.register("found", found.table())
    assert connection.sql("SELECT query, count(*) FROM found GROUP BY ALL ORDER BY ALL").fetchall() == [
        ("grown", 2),
        ("pairs", 20),
    ]
    connection.register("grown", found.table("grown"))
    assert connection.sql("SELECT log2(count) FROM grown WHERE g = 'x'").fetchall() == [(195.0,)]


def test_polars_reads_results_where_they_are() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(results())
    assert frame.shape == (22, 8)
    assert frame.filter(polars.col("g") == "x")["count"].to_list() == [str(2**195 - 1)]
    wide = pa.table({"time": [1], "type": ["A"], "v": pa.array([Decimal("1.5")], pa.decimal256(60, 1))})
    for count_type in ("auto", "int64"):
        workload = hamlet.Workload.parse("RETURN v, COUNT(*) PATTERN A GROUP-BY v WITHIN 1 s")
        assert hamlet.run(workload, wide, count_type=count_type).to_polars()["v"].to_list() == ["1.5"]


def test_results_export_an_arrow_stream() -> None:
    found = results(count_type="string")
    assert pa.table(found).equals(found.table())
    assert pa.table(results()).equals(found.table())  # 2^195 - 1 has more digits than others can read
    assert pa.RecordBatchReader.from_stream(found).read_all().num_rows == len(found)


def test_results_of_one_workload_are_events_of_another() -> None:
    """What exports Arrow can be read as events: trends of trends."""
    found = hamlet.run(
        hamlet.Workload.parse("RETURN COUNT(*) PATTERN pairs+ WITHIN 1000 s"),
        results(count_type="double"),
        time_column="window_start",
        type_column="query",
    )
    assert [row["count"] for row in found.rows()] == [2**20 - 1]
