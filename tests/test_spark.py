"""Hamlet on Spark gives the rows of one process, as DataFrames and as files, and says clearly what is wrong."""

from __future__ import annotations

import datetime
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.cli import main
from hamlet.digits import integer_of
from hamlet.errors import DataError, JobError, OptionError, OutputError, UnsupportedError, WorkloadError
from tests.case_files import cases
from tests.comparison import difference
from tests.strategies import Case, Features, random_case
from tests.test_partial import table_of

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
    """The same rows in any order; doubles within LANGUAGE §8's bound."""

    def order(row: dict[str, Any]) -> list[str]:
        return [f"{value:.6g}" if isinstance(value, float) else repr(value) for value in row.values()]

    got = spelled(got, expected)
    wrong = difference(sorted(got, key=order), sorted(expected, key=order))
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
}
SEEDS = [("queries", 11), ("queries", 12), ("queries", 13), ("queries", 14), ("conjunction", 21), ("broadcast", 31)]


@pytest.mark.parametrize(("features", "seed"), SEEDS)
def test_random_workloads(spark: SparkSession, features: str, seed: int) -> None:
    case: Case = random_case(seed, FEATURES[features])
    check(spark, case[0], table_of(case), **case[2])


@pytest.mark.parametrize(
    "name",
    ["keys_equivalence_rolled_up", "ties_ordered", "local_nan", "windows_negative_times", "negation_and_null_keys"],
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
    assert [tuple(row) for row in frame.where("query = 'q2'").collect()][0][:6] == ("q2", 0, 5, None, None, 3)


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
        for column in ("at", "shown"):
            frame = hamlet.spark.run(workload, spark.read.parquet(str(tmp_path / "in.parquet")), time_column=column)
            got = frame.select(*(each for each in frame.columns if each != "query")).toArrow().to_pylist()
            expected = hamlet.run(workload, table, time_column=column).rows()
            for row in expected:
                row.pop("query")
                row["count"] = str(row["count"])
            assert sorted(got, key=lambda row: row["window_start"]) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_routed_partitions_are_left_alone(spark: SparkSession) -> None:
    """Adaptive execution would join small partitions; and the filter keeps what may be of use."""
    from hamlet.engine import options_of
    from hamlet.spark_job import Job, events_of

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
    (route,) = job.routes
    routed = job.routed(route)
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


def test_two_types_of_one_name_are_no_mistake_of_submit(spark: SparkSession, tmp_path: Path) -> None:
    text = "a: RETURN COUNT(*) AS n PATTERN A WITHIN 9 s; b: RETURN LOG2(COUNT(*)) AS n PATTERN A WITHIN 9 s"
    pq.write_table(GOOD, tmp_path / "in.parquet")
    hamlet.spark.submit(hamlet.Workload.parse(text), str(tmp_path / "in.parquet"), str(tmp_path / "out"))
    assert [read(tmp_path / "out", name, "parquet")[0]["n"] for name in "ab"] == ["1", 0.0]


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


# -------------------------------------------------------------------------------------------------- submit


def read(folder: Path, query: str, output_format: str) -> Rows:
    """The rows of a query's files, in the order of the files' numbers."""
    files = sorted((folder / f"query={query}").iterdir())
    assert files
    assert all(file.name.startswith("part-") and file.suffix == f".{output_format}" for file in files)
    rows: Rows = []
    for file in files:
        if output_format == "parquet":
            rows += pq.ParquetFile(file).read().to_pylist()
        elif output_format == "csv":
            rows += pa_csv.read_csv(file).to_pylist()
        else:
            rows += [json.loads(line, parse_int=integer_of) for line in file.read_text("utf-8").splitlines()]
    return rows


def test_two_to_the_20000(spark: SparkSession, tmp_path: Path) -> None:
    """SEQ(A, B+) over one A and n B, through rows, JSON, CSV and Parquet."""
    count = 20_000
    table = pa.table({"time": list(range(count + 1)), "type": ["A"] + ["B"] * count, "k": [1] * (count + 1)})
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE [k] WITHIN 30000 s")
    (row,) = hamlet.spark.run(workload, frame_of(spark, table)).collect()
    assert integer_of(row["count"]) == 2**count - 1
    pq.write_table(table, tmp_path / "in.parquet")
    for output_format in ("json", "csv", "parquet"):
        out = tmp_path / output_format
        hamlet.spark.submit(workload, str(tmp_path / "in.parquet"), str(out), output_format=output_format)
        (path,) = (out / "query=q1").iterdir()
        if output_format == "parquet":
            text = pq.ParquetFile(path).read().column("count")[0].as_py()
        else:
            text = path.read_text("utf-8").splitlines()[-1].rstrip("}").replace(",", " ").split()[-1]
        assert integer_of(text) == 2**count - 1


def files_of(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


LAYOUT = """
    "a/b c": RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 8 s SLIDE 4 s;
    empty: RETURN COUNT(*) AS n, MAX(Z.v) PATTERN Z WITHIN 8 s;
    all: RETURN COUNT(*), AVG(A.v), SUM(B.w) PATTERN SEQ(A, B) WHERE [k] WITHIN 8 s"""


@pytest.mark.parametrize("output_format", ["json", "csv"])
def test_submit_writes_what_run_writes(spark: SparkSession, tmp_path: Path, output_format: str) -> None:
    """The same text in one file per query, which is in order."""
    size = 300
    table = pa.table(
        {
            "time": list(range(size)),
            "type": ["A", "B", "B"] * 100,
            "k": [None if i % 5 == 0 else f"k{i % 11}" for i in range(size)],
            "v": list(range(size)),
            "w": [i / 4 for i in range(size)],
        }
    )
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=50)
    (tmp_path / "w.sase").write_text(LAYOUT)
    common = ["--input", str(tmp_path / "in.parquet"), "--output-format", output_format, "--quiet"]
    for command in ("run", "submit"):
        assert main([command, str(tmp_path / "w.sase"), "--output", str(tmp_path / command), *common]) == 0
    written = files_of(tmp_path / "submit")
    assert written == files_of(tmp_path / "run")
    assert sorted(written) == [
        f"query=a%2Fb%20c/part-00000.{output_format}",
        f"query=all/part-00000.{output_format}",
        f"query=empty/part-00000.{output_format}",
    ]


def test_large_results_are_in_order_over_several_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hamlet.spark, "FEWEST_ROWS", 100)
    monkeypatch.setattr(hamlet.spark, "MOST_ROWS", 100)
    size = 900
    table = pa.table({"time": list(range(size)), "type": ["A"] * size, "k": [i % 9 for i in range(size)]})
    pq.write_table(table, tmp_path / "in.parquet")
    text = """
        a: RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 20 s SLIDE 10 s;
        b: RETURN COUNT(*) PATTERN A+ WHERE [k] WITHIN 20 s SLIDE 10 s"""
    workload = hamlet.Workload.parse(text)
    stats = hamlet.spark.submit(workload, str(tmp_path / "in.parquet"), str(tmp_path / "out"))
    assert len(list((tmp_path / "out" / "query=a").iterdir())) > 3
    results = hamlet.run(workload, table)
    for name in workload.names:
        assert read(tmp_path / "out", name, "parquet") == results.table(name).drop_columns(["query"]).to_pylist()
    assert stats["rows"] == len(results)
    for key in ("events", "matched_events", "partitions", "windows", "largest_count_bits"):
        assert stats[key] == results.stats[key], key
    assert list(stats["stages"]) == ["start", "compute", "write"]


def write_text(path: Path, rows: Sequence[str]) -> None:
    path.write_text("\n".join(rows) + "\n", "utf-8")


def test_what_files_hold_comes_out_as_in_process(spark: SparkSession, tmp_path: Path) -> None:
    """Types that Spark lacks or reads otherwise; CSV and JSON; folders of files with unlike columns."""
    moments = pa.array([0, 1_500_000_000, 3_600_000_000_000, 3_600_000_000_001], pa.timestamp("ns"))
    old = pa.table({"at": moments, "type": ["A"] * 4, "n": pa.array([1, 2, 3, 2**40], pa.uint64())})
    pq.write_table(old, tmp_path / "int96.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(old, tmp_path / "nanos.parquet")
    berlin = old.set_column(0, "at", moments.cast(pa.timestamp("ms", "Europe/Berlin"), safe=False))
    pq.write_table(berlin, tmp_path / "berlin.parquet")
    kinds = berlin.set_column(1, "type", pa.array(["A"] * 4).dictionary_encode()).append_column("none", pa.nulls(4))
    (tmp_path / "folder" / "below").mkdir(parents=True)
    pq.write_table(kinds.slice(0, 2), tmp_path / "folder" / "below" / "1[x].parquet")
    pq.write_table(berlin.slice(2).append_column("g", pa.array([7, 8], pa.int16())), tmp_path / "folder" / "2.parquet")
    write_text(tmp_path / "a.csv", ["at,type,n,g", "2024-01-31T12:00:00,A,1,", "2024-01-31T12:00:01.5,A,NA,x"])
    write_text(tmp_path / "a.jsonl", ['{"at": 5, "type": "A", "n": 1}', '{"at": 3, "type": "A", "g": "x", "n": 2.5}'])
    (tmp_path / "texts").mkdir()
    write_text(tmp_path / "texts" / "1.csv", ["at,type,n", "5,A,1"])
    write_text(tmp_path / "texts" / "2.csv", ["type,at,n,g", "A,4,2.5,x"])
    (tmp_path / "w.sase").write_text("RETURN g, COUNT(*), SUM(A.n), MAX(A.at) PATTERN A+ GROUP-BY g WITHIN 1 h")
    (tmp_path / "v.sase").write_text(
        "RETURN n, COUNT(*), MAX(A.n), MIN(A.at) PATTERN A+ GROUP-BY n WITHIN 1 h SLIDE 30 min"
    )
    inputs = ["folder", "a.csv", "a.jsonl", "texts", "int96.parquet", "nanos.parquet", "berlin.parquet"]
    for place, name in enumerate(inputs):
        workload = str(tmp_path / ("w.sase" if place < 4 else "v.sase"))
        arguments = [workload, "--input", str(tmp_path / name), "--time-column", "at", "--output-format", "json", "-q"]
        for command in ("run", "submit"):
            assert main([command, *arguments, "--output", str(tmp_path / command), "--overwrite"]) == 0, name
        assert files_of(tmp_path / "submit") == files_of(tmp_path / "run"), name
        assert any(files_of(tmp_path / "submit").values()), name


def test_what_spark_reads_from_elsewhere(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file system than this machine's: here its own, by a name that only Spark resolves."""
    from hamlet import spark_input

    monkeypatch.setattr(spark_input, "local_path", lambda name: None if name.startswith("file:") else Path(name))
    pq.write_table(GOOD, tmp_path / "in.parquet")
    pa_csv.write_csv(GOOD, tmp_path / "in.csv")
    workload = hamlet.Workload.parse(TRENDS)
    for name in ("in.parquet", "in.csv"):
        url = f"file://{tmp_path}/{name}"
        stats = hamlet.spark.submit(workload, url, str(tmp_path / name.replace(".", "_")), keep=[])
        assert read(tmp_path / name.replace(".", "_"), "trends", "parquet") == [
            {"window_start": 0, "window_end": 10, "k": 1, "count": "3"}
        ]
        assert stats["events"] == 3
    with pytest.raises(DataError, match="Spark cannot read the input: .*PATH_NOT_FOUND"):
        hamlet.spark.submit(workload, f"file://{tmp_path}/nowhere.parquet", str(tmp_path / "out"))


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_failed_job_leaves_nothing(spark: SparkSession, tmp_path: Path, overwrite: bool) -> None:
    out = tmp_path / "out"
    workload = hamlet.Workload.parse(TRENDS)
    pq.write_table(GOOD, tmp_path / "good.parquet")
    pq.write_table(OVERFLOW, tmp_path / "bad.parquet")
    if overwrite:
        hamlet.spark.submit(workload, str(tmp_path / "good.parquet"), str(out), output_format="json")
    before = files_of(out)
    kept = spark.sparkContext._jsc.getPersistentRDDs().size()
    with pytest.raises(DataError, match="passes 64 bits"):
        hamlet.spark.submit(workload, str(tmp_path / "bad.parquet"), str(out), overwrite=overwrite)
    long = pa.table({"time": list(range(70)), "type": ["A"] + ["B"] * 69, "k": [1] * 70, "v": [1] * 70})
    pq.write_table(long, tmp_path / "long.parquet")
    counted = hamlet.Workload.parse(TRENDS.replace("10 s", "100 s"))
    with pytest.raises(OutputError, match="does not fit int64"):
        hamlet.spark.submit(counted, str(tmp_path / "long.parquet"), str(out), overwrite=overwrite, count_type="int64")
    broken = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "broken.parquet").write_bytes(broken[:30] + b"\xff" * 40 + broken[70:])
    with pytest.raises((DataError, JobError)):
        hamlet.spark.submit(workload, str(tmp_path / "broken.parquet"), str(out), overwrite=overwrite)
    assert files_of(out) == before
    names = {"good.parquet", "bad.parquet", "long.parquet", "broken.parquet", *(["out"] if overwrite else [])}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert spark.sparkContext._jsc.getPersistentRDDs().size() <= kept


def test_where_submit_does_not_write(spark: SparkSession, tmp_path: Path) -> None:
    workload = hamlet.Workload.parse(TRENDS)
    source = tmp_path / "in.parquet"
    pq.write_table(GOOD, source)

    def refuse(error: type[Exception], message: str, output: Path | str, **options: Any) -> None:
        with pytest.raises(error, match=message):
            hamlet.spark.submit(workload, str(source), str(output), **options)

    refuse(OutputError, "is not empty; give --overwrite", tmp_path)
    refuse(OutputError, "which --overwrite would delete", tmp_path, overwrite=True)
    refuse(OutputError, "is a file", source)
    refuse(OptionError, "hamlet.spark.run", "hdfs://host/results")
    refuse(OptionError, "leave --master out", tmp_path / "out", master="local[7]")
    refuse(OptionError, "output format 'xml' is unknown", tmp_path / "out", output_format="xml")
    with pytest.raises(DataError, match="no such file"):
        hamlet.spark.submit(workload, str(tmp_path / "nowhere.parquet"), str(tmp_path / "out"))
    with pytest.raises(WorkloadError, match="k"):
        pq.write_table(GOOD.drop_columns(["k"]), tmp_path / "narrow.parquet")
        hamlet.spark.submit(workload, str(tmp_path / "narrow.parquet"), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.spark
def test_the_command_line_in_a_jvm_of_its_own(tmp_path: Path) -> None:
    """Standard error has the summary and nothing of Spark's log."""
    (tmp_path / "w.sase").write_text(TRENDS)
    pq.write_table(GOOD, tmp_path / "in.parquet")
    command = [sys.executable, "-m", "hamlet", "submit", str(tmp_path / "w.sase"), "--output", str(tmp_path / "out")]
    process = subprocess.run(
        [*command, "--input", str(tmp_path / "in.parquet"), "--master", "local[1]", "--output-format", "csv"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == ""
    assert process.stderr.startswith("3 events, 3 matched, 1 groups, 1 windows, 1 rows, ")
    assert process.stderr.count("\n") == 1
    assert [stage in process.stderr for stage in ("start", "compute", "write")] == [True] * 3
    assert files_of(tmp_path / "out") == {"query=trends/part-00000.csv": "window_start,window_end,k,count\n0,10,1,3\n"}
