"""Hamlet on Spark gives the rows of one process, as DataFrames and as files, and says clearly what is wrong."""

from __future__ import annotations

import datetime
import importlib.util
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.errors import DataError, JobError, OptionError, OutputError, UnsupportedError, WorkloadError
from hamlet.output.digits import integer_of
from tests.case_files import cases
from tests.comparison import difference, in_any_order
from tests.spark.test_partial_rows import table_of
from tests.strategies import Case, Features, random_case

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Rows = list[dict[str, Any]]


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A DataFrame of several partitions, in no order."""
    return spark.createDataFrame(table.take(list(range(len(table) - 1, -1, -1)))).repartition(3)


def rows_of(frame: DataFrame, workload: hamlet.Workload) -> Rows:
    """The rows as `Results.rows()` gives them, but for their order; columns that a query lacks must be NULL."""
    rows = []
    for row in frame.collect():
        found = row.asDict()
        query = workload.queries[workload.names.index(found["query"])]
        own = ["query", "window_start", "window_end", *(item.column for item in query.items)]
        assert all(value is None for name, value in found.items() if name not in own)
        rows.append({name: found[name] for name in own})
    return rows


def spelled(rows: Rows, like: Rows) -> Rows:
    """Exact strings as the numbers that the rows in process have in the same column."""
    numbers = {(row["query"], name): type(value) for row in like for name, value in row.items() if value is not None}
    read: dict[type, Callable[[str], Any]] = {int: integer_of, float: float}
    rows = [
        {
            name: numbers[row["query"], name](value)
            if isinstance(value, Decimal) and numbers.get((row["query"], name)) in read
            else value
            for name, value in row.items()
        }
        for row in rows
    ]
    return [
        {
            name: read[numbers[row["query"], name]](value)
            if isinstance(value, str) and numbers.get((row["query"], name)) in read
            else value
            for name, value in row.items()
        }
        for row in rows
    ]


def assert_same_rows(got: Rows, expected: Rows) -> None:
    """The same rows in any order; doubles within the bound of docs/numbers.md."""
    got = spelled(got, expected)
    wrong = difference(in_any_order(got), in_any_order(expected))
    assert wrong is None, f"{wrong}\n{got}\n{expected}"


def check(spark: SparkSession, text: str, table: pa.Table, **options: Any) -> Rows:
    """Run in process and on Spark, compare, and give the rows."""
    workload = hamlet.Workload.parse(text)
    expected = hamlet.run(workload, table, **options).rows()
    frame = hamlet.spark.run(workload, frame_of(spark, table), partitions=3, **options)
    assert_same_rows(rows_of(frame, workload), expected)
    return expected


# --------------------------------------------------------------------------------------------- DataFrames

FEATURES = {
    "queries": Features(queries=5),
    "conjunction": Features(queries=4, conjunction=True),
    "broadcast": Features(queries=4, broadcast=True),
    "matching": Features(queries=4, semantics=True, span=True, session=True, distinct=True, broadcast=True),
    "taken": Features(queries=4, semantics=True, matched=True, taken=True, having=True, top=True, broadcast=True),
}
SEEDS = [("queries", 11), ("queries", 12), ("conjunction", 21), ("broadcast", 31)]
SEEDS += [("matching", 41), ("matching", 42), ("taken", 51)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("features", "seed"), SEEDS)
def test_random_workloads(spark: SparkSession, features: str, seed: int) -> None:
    case: Case = random_case(seed, FEATURES[features])
    check(spark, case[0], table_of(case), **case[2])


def test_matched_events_and_trend_groups(spark: SparkSession) -> None:
    """Partitions of a group lie in several tasks; an event that all of them take counts once."""
    text = """
        EVENT X(g STRING, v INT);
        a: RETURN COUNT(EVENTS X), SUM(EVENTS X.v), SUM(EVENTS B.v), AVG(EVENTS B.v) PATTERN SEQ(X, B+) WHERE [k]
           WITHIN 30 s SLIDE 10 s;
        b: RETURN FIRST(A.g), LAST(A.d), COUNT(A), COUNT(EVENTS B) PATTERN SEQ(A{1,3}, B) WHERE [k]
           GROUP-BY FIRST(A.g), LAST(A.d), COUNT(A) HAVING COUNT(A) > 1 TOP 3 BY COUNT(EVENTS B) WITHIN 30 s;
        c: RETURN COUNT(*), MAX(EVENTS B.v) PATTERN SEQ(A, B) AND SEQ(B, A) WHERE [k] WITHIN 30 s"""
    size = 400
    table = pa.table(
        {
            "time": [i // 2 for i in range(size)],
            "type": ["ABBXAB"[i % 6] for i in range(size)],
            "k": [i * 7 % 5 for i in range(size)],
            "g": [None if i % 11 == 0 else f"g{i % 3}" for i in range(size)],
            "d": [None if i % 4 == 0 else (i % 3) / 2 for i in range(size)],
            "v": [i % 13 - 6 for i in range(size)],
        }
    )
    assert len(check(spark, text, table)) > 40


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "name",
    [
        *("keys_equivalence_rolled_up", "ties_ordered", "local_nan", "windows_negative_times"),
        *("negation_and_null_keys", "results_expressions", "results_having", "results_top"),
        "rows_as_events_with_the_stream",
    ],
)
def test_golden_cases(spark: SparkSession, name: str) -> None:
    case = next(case for case in cases() if case.name == name)
    rows = check(spark, case.text, table_of((case.text, list(case.events), {})), **case.options)
    assert difference(rows, case.expected) is None


def test_keys_that_are_equal_meet_in_one_task(spark: SparkSession) -> None:
    """NULL with NULL and with NaN, 0.0 with -0.0."""
    keys = [None, float("nan"), 0.0, -0.0, 1.5, None, float("inf")] * 4
    table = pa.table({"time": list(range(28)), "type": ["A"] * 28, "k": keys, "s": [None, "x"] * 14})
    text = """
        a: RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 40 s;
        b: RETURN COUNT(*), SUM(A.k), MAX(A.time) PATTERN A+ WHERE [k, s] WITHIN 40 s;
        c: RETURN s, COUNT(*), AVG(A.k) PATTERN A+ WHERE [k] GROUP-BY s WITHIN 20 s SLIDE 5 s"""
    rows = check(spark, text, table)
    assert [row["k"] for row in rows if row["query"] == "a"] == [None, 0.0, 1.5, float("inf")]


def test_queries_of_one_class_with_and_without_grouping(spark: SparkSession) -> None:
    table = pa.table(
        {"time": list(range(60)), "type": ["A", "B", "B"] * 20, "k": [i % 7 for i in range(60)], "v": [2**62] * 60}
    )
    text = """
        one: RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 30 s SLIDE 10 s;
        all: RETURN COUNT(*), SUM(B.v), MIN(B.v), AVG(B.v), LOG2(COUNT(*)) PATTERN SEQ(A, B+) WHERE [k] WITHIN 60 s"""
    check(spark, text, table)
    check(spark, text, table, numbers="float")


def test_the_columns_of_a_frame(spark: SparkSession) -> None:
    table = pa.table(
        {
            "time": pa.array([1, 2, 3], pa.int32()),
            "type": ["A", "B", "B"],
            "Kind": pa.array([1, 1, 1], pa.int8()),
            "kind": pa.array([0.5, 0.5, 0.5], pa.float32()),
            "a.b `c`": [True] * 3,
            "none": pa.nulls(3),
            "list": [[1]] * 3,
        }
    )
    text = """
        q1: RETURN "Kind", kind, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY "Kind", kind, none WITHIN 5 s;
        q2: RETURN "a.b `c`", LOG2(COUNT(*)), COUNT(*) PATTERN SEQ(A, B+) GROUP-BY "a.b `c`" WITHIN 5 s"""
    workload = hamlet.Workload.parse(text)
    before = dict(spark.conf.getAll)
    frame = hamlet.spark.run(workload, spark.createDataFrame(table), count_type="decimal")
    assert dict(spark.conf.getAll) == before
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        ("query", "string"),
        ("window_start", "bigint"),
        ("window_end", "bigint"),
        ("Kind", "tinyint"),
        ("kind", "float"),
        ("count", "decimal(38,0)"),
        ("a.b `c`", "boolean"),
        ("log2_count", "double"),
    ]
    assert [tuple(row) for row in frame.where("query = 'q1'").collect()] == [("q1", 0, 5, 1, 0.5, 3, None, None)]
    assert [tuple(row)[:6] for row in frame.where("query = 'q2'").collect()] == [("q2", 0, 5, None, None, 3)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_timestamps_of_a_frame(spark: SparkSession, zone: str, tmp_path: Path) -> None:
    """Instants come back as instants, whatever the session's zone; times without a zone keep what the clock shows."""
    moments = [datetime.datetime(2023, 11, 5, hour, 30, tzinfo=datetime.UTC) for hour in (4, 5, 6, 7)]
    plain = [datetime.datetime(2023, 11, 5, hour, 30) for hour in (0, 1, 1, 2)]
    table = pa.table(
        {
            "at": pa.array(moments, pa.timestamp("us", "UTC")),
            "shown": pa.array(plain, pa.timestamp("us")),
            "day": pa.array([each.date() for each in moments]),
            "type": ["A"] * 4,
        }
    )
    text = "RETURN day, COUNT(*), MAX(A.at), MIN(A.shown) PATTERN A+ GROUP-BY day WITHIN 2 h"
    workload = hamlet.Workload.parse(text)
    pq.write_table(table, tmp_path / "in.parquet")
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for column in ("at", "shown", "day"):
            frame = hamlet.spark.run(workload, spark.read.parquet(str(tmp_path / "in.parquet")), time_column=column)
            got = frame.select(*(each for each in frame.columns if each != "query")).toArrow().to_pylist()
            expected = hamlet.run(workload, table, time_column=column).rows()
            for row in expected:
                row.pop("query")
            assert sorted(got, key=lambda row: row["window_start"]) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_routed_partitions_are_left_alone(spark: SparkSession) -> None:
    """Adaptive execution would join small partitions; and the filter keeps what may be of use."""
    from hamlet.engine.options import options_of
    from hamlet.spark.frames import events_of
    from hamlet.spark.job import Job

    text = """
        RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE [k] AND A.v >= 3 AND B.s IN ('x', 'y') WITHIN 9 s;
        RETURN COUNT(*) PATTERN SEQ(A, NOT C, B) WHERE [k] AND A.w IS NULL AND C.v * 2 = 4 WITHIN 9 s"""
    size = 40
    table = pa.table(
        {
            "time": list(range(size)),
            "type": ["A", "A", "C", "Z"] * 10,
            "k": list(range(size)),
            "v": [4, 2, 0, 9] * 10,
            "w": [1.0, float("nan"), 1.0, 1.0] * 10,
            "s": ["x"] * size,
        }
    )
    assert spark.conf.get("spark.sql.adaptive.enabled") == "true"
    options = options_of({})
    job = Job(hamlet.Workload.parse(text), events_of(spark.createDataFrame(table), options), options, 5)
    routed = job.routed(job.routes)
    assert routed.rdd.getNumPartitions() == 5
    assert routed.count() == 30  # every A, for one query or the other, and every C, since its test computes


def test_a_plan_without_a_run(spark: SparkSession) -> None:
    table = pa.table({"time": [1, None], "type": ["A", "B"]})
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WITHIN 5 s")
    frame = hamlet.spark.run(workload, spark.createDataFrame(table), lazy=True)
    with pytest.raises(Exception, match="the time column 'time' is NULL in an event"):
        frame.collect()


# -------------------------------------------------------------------------------------------------- errors

TRENDS = "trends: RETURN k, COUNT(*) PATTERN SEQ(A, B+) WHERE A.v + 1 > 0 GROUP-BY k WITHIN 10 s"
GOOD = pa.table({"time": [1, 2, 3], "type": ["A", "B", "B"], "k": [1, 1, 1], "v": [1, 2, 3]})
OVERFLOW = GOOD.set_column(3, "v", pa.array([2**63 - 1, 2, 3]))


@pytest.mark.parametrize(
    ("text", "table", "options", "error", "message"),
    [
        (TRENDS, OVERFLOW, {}, DataError, r"A\.v \+ 1 passes 64 bits for the event \(.*v=9223372036854775807"),
        (TRENDS, GOOD.set_column(0, "time", pa.array([1, None, 3])), {}, DataError, "the time column 'time' is NULL"),
        (TRENDS, GOOD, {"time_column": "tim"}, DataError, "no time column 'tim'; did you mean 'time'"),
        (TRENDS, GOOD, {"order_column": "time"}, OptionError, "the order column is the time column"),
        (TRENDS, GOOD, {"partitions": 0}, OptionError, "partitions is 0; it must be a whole number from 1"),
        (TRENDS, GOOD, {"slices": 2}, OptionError, "there is no option 'slices'"),
        (TRENDS, GOOD.drop_columns(["k"]), {}, WorkloadError, "k"),
        (TRENDS, GOOD.set_column(2, "k", pa.array([b"x"] * 3)), {}, DataError, "column 'k' has the type binary"),
        (TRENDS, GOOD.set_column(1, "type", pa.array([1.5] * 3)), {}, DataError, "event types are strings"),
        ("a: RETURN COUNT(*) AS n PATTERN A WITHIN 1 s; b: RETURN LOG2(COUNT(*)) AS n PATTERN A WITHIN 1 s",
         GOOD, {}, WorkloadError, "the column 'n' is double here and string in query a"),
        ("RETURN COUNT(*) PATTERN A+ WITHIN 2 min", pa.table({"time": list(range(70)) , "type": ["A"] * 70}),
         {"count_type": "int64"}, OutputError, r"query q1, window \[0, 120\): count = 1180.* does not fit int64"),
    ],
)  # fmt: skip
def test_mistakes(
    spark: SparkSession, text: str, table: pa.Table, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        hamlet.spark.run(hamlet.Workload.parse(text), spark.createDataFrame(table), **options)
    assert "org.apache" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_what_is_no_batch_of_events(spark: SparkSession) -> None:
    workload = hamlet.Workload.parse(TRENDS)
    with pytest.raises(OptionError, match=r"events is a pyarrow Table; hamlet\.spark\.run takes a DataFrame of Spark"):
        hamlet.spark.run(workload, GOOD)
    with pytest.raises(OptionError, match=r"the DataFrame is a stream: .*hamlet\.spark\.stream"):
        hamlet.spark.run(workload, spark.readStream.format("rate").load())


def test_what_is_said_when_spark_stops_a_job() -> None:
    errors = pytest.importorskip("pyspark.errors", reason="pyspark is not installed")
    from hamlet.spark.session import translated

    python = 'An exception was thrown:\nTraceback (most recent call last):\n  File "a.py"\n    f(\nTypeError: no\n'
    texts = {"Executor lost\n\tat org.apache.spark.A": "Executor lost", python: "TypeError: no", "": "no reason given"}
    for text, expected in texts.items():
        with pytest.raises(JobError) as raised, translated():
            raise errors.PySparkException(text)
        assert str(raised.value).endswith(expected)


def test_pandas_is_asked_for(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pandas" else real(name))
    with pytest.raises(UnsupportedError, match="pip install 'hamlet-cep"):
        hamlet.spark.run(hamlet.Workload.parse(TRENDS), spark.createDataFrame(GOOD))


def test_pyspark_is_asked_for() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None; from hamlet.cli import main; raise SystemExit(main(sys.argv[1:]))"
    )
    arguments = ["submit", __file__, "--input", "x.parquet", "--output", "out"]
    process = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert process.returncode == 2
    assert process.stderr == "error: Spark is not installed; it comes with: pip install 'hamlet-cep[spark]'\n"


# --------------------------------------------------------------------------------------------------- count types


def growing(*bits: int) -> list[dict[str, object]]:
    """One group per number n, with 2^n - 1 trends of A+."""
    return [{"time": time, "type": "A", "k": f"{n}", "v": 1, "x": 0.5} for n in bits for time in range(n)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("bits", "kind"), [((9, 10), "bigint"), ((9, 64), "decimal(38,0)"), ((9, 126), "decimal(38,0)"), ((127,), "string")]
)
def test_counts_are_numbers(spark: SparkSession, bits: tuple[int, ...], kind: str) -> None:
    workload = hamlet.Workload.parse(
        "q1: RETURN k, COUNT(*), SUM(A.x) AS real PATTERN A+ GROUP-BY k WITHIN 1000 s; "
        "q2: RETURN COUNT(*) PATTERN A WITHIN 1000 s"
    )
    given = spark.createDataFrame(pa.Table.from_pylist(growing(*bits)))
    for numbers in ("exact", "float"):
        frame = hamlet.spark.run(workload, given, numbers=numbers)
        types = {field.name: field.dataType.simpleString() for field in frame.schema}
        assert (types["count"], types["real"]) == (kind, "double")
        [(largest,)] = frame.selectExpr("max(count)").collect()
        if kind == "string":
            continue
        assert float(largest) == pytest.approx(2.0 ** max(bits), rel=1e-2)
        if numbers == "exact":
            assert int(largest) == 2 ** max(bits) - 1
    lazy = hamlet.spark.run(workload, given, lazy=True)
    assert dict(lazy.dtypes)["count"] == "string"


@pytest.mark.parametrize(
    ("bits", "kind"), [((9, 63), pa.int64()), ((64,), pa.decimal128(38, 0)), ((260,), pa.string())]
)
def test_counts_of_files_are_numbers(
    bits: tuple[int, ...], kind: pa.DataType, spark: SparkSession, tmp_path: Path
) -> None:
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 1000 s")
    pq.write_table(pa.Table.from_pylist(growing(*bits)), tmp_path / "events.parquet")
    out = tmp_path / "out"
    stats = hamlet.spark.submit(workload, str(tmp_path / "events.parquet"), str(out))
    assert bool(stats["notes"]) == (kind != pa.int64())
    tables = [pq.read_table(file, partitioning=None) for file in (out / "query=q1").glob("*.parquet")]
    assert {table.schema.field("count").type for table in tables} == {kind}
    assert max(int(each) for table in tables for each in table["count"].to_pylist()) == 2 ** max(bits) - 1
    assert spark is not None


def test_durations(spark: SparkSession) -> None:
    start = datetime.datetime(2024, 3, 5)
    events = [
        {
            "time": start + datetime.timedelta(seconds=t),
            "type": "A",
            "d": None if d is None else datetime.timedelta(seconds=d),
            "k": t % 2,
        }
        for t, d in enumerate([0.5, 1.5, 2.000001, None])
    ]
    frame = spark.createDataFrame(events, "time timestamp_ntz, type string, d interval day to second, k int")
    for text in (
        "EVENT A(d DURATION); RETURN SUM(A.d) AS s, AVG(A.d) AS a PATTERN A WHERE A.d > 1 s WITHIN 1 h",
        "RETURN k, MAX(A.time) - MIN(A.time) AS r, AVG(A.time) AS m PATTERN A+ GROUP-BY k WITHIN 1 h",
        "RETURN k, MAX(A.d) / 1 s AS q, MAX(A.d) - MIN(A.d) AS r PATTERN A+ GROUP-BY k WITHIN 1 h",
        "RETURN FIRST(A.d), SUM(EVENTS A.d) AS s PATTERN A+ GROUP-BY FIRST(A.d) TOP 2 BY SUM(EVENTS A.d) WITHIN ALL",
    ):
        workload = hamlet.Workload.parse(text)
        expected = hamlet.run(workload, events).rows()
        found = [row.asDict() for row in hamlet.spark.run(workload, frame).collect()]
        assert sorted(map(repr, found)) == sorted(map(repr, expected))
