"""`hamlet submit`: the files that the batch job writes, what it reads, and what it leaves behind when it fails."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet import oracle
from hamlet.cli import main
from hamlet.errors import DataError, JobError, OptionError, OutputError, WorkloadError
from hamlet.language.parser import parse
from hamlet.output.digits import integer_of
from tests.spark.test_spark import GOOD, OVERFLOW, TRENDS, Rows, frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def test_two_types_of_one_name_are_no_mistake_of_submit(spark: SparkSession, tmp_path: Path) -> None:
    text = "a: RETURN COUNT(*) AS n PATTERN A WITHIN 9 s; b: RETURN LOG2(COUNT(*)) AS n PATTERN A WITHIN 9 s"
    pq.write_table(GOOD, tmp_path / "in.parquet")
    hamlet.spark.submit(hamlet.Workload.parse(text), str(tmp_path / "in.parquet"), str(tmp_path / "out"))
    assert [read(tmp_path / "out", name, "parquet")[0]["n"] for name in "ab"] == [1, 0.0]


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
    monkeypatch.setattr(hamlet.spark.output, "FEWEST_ROWS", 100)
    monkeypatch.setattr(hamlet.spark.output, "MOST_ROWS", 100)
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
    numbers, days = pa.array([1, 2, 3, 2**40], pa.uint64()), pa.array([0, 0, 5000, None], pa.timestamp("ns"))
    lasts = {f"last_{unit}": pa.array([1, 1, -2, None], pa.duration(unit)) for unit in ("s", "ms", "ns")}
    old = pa.table({"at": moments, "type": ["A"] * 4, "n": numbers, "d": days, **lasts})
    pq.write_table(old, tmp_path / "nanos.parquet")
    cut = old.set_column(0, "at", moments.cast(pa.timestamp("us"), safe=False))  # what Spark has of an INT96
    pq.write_table(cut, tmp_path / "int96.parquet", use_deprecated_int96_timestamps=True)
    berlin = old.set_column(0, "at", moments.cast(pa.timestamp("ms", "Europe/Berlin"), safe=False))
    pq.write_table(berlin, tmp_path / "berlin.parquet")
    kinds = berlin.set_column(1, "type", pa.array(["A"] * 4).dictionary_encode()).append_column("none", pa.nulls(4))
    (tmp_path / "folder" / "below").mkdir(parents=True)
    pq.write_table(kinds.slice(0, 2), tmp_path / "folder" / "below" / "1[x].parquet")
    pq.write_table(berlin.slice(2).append_column("g", pa.array([7, 8], pa.int16())), tmp_path / "folder" / "2.parquet")
    write_text(tmp_path / "a.csv", ["at,type,n,g", "2024-01-31T12:00:00,A,1,", "2024-01-31T12:00:01.5,A,NA,x"])
    lines = ['{"at": 5, "type": "A", "n": 1, "last_s": 2.5}', '{"at": 3, "type": "A", "g": "x", "n": 2.5}']
    write_text(tmp_path / "a.jsonl", lines)
    (tmp_path / "texts").mkdir()
    write_text(tmp_path / "texts" / "1.csv", ["at,type,n,g,last_s", "5,A,1,,-1"])
    write_text(tmp_path / "texts" / "2.csv", ["type,at,n,g,last_s", "A,4,2.5,x,0.25"])
    (tmp_path / "w.sase").write_text("RETURN g, COUNT(*), SUM(A.n), MAX(A.at) PATTERN A+ GROUP-BY g WITHIN 1 h")
    (tmp_path / "u.sase").write_text(
        """EVENT A(n DOUBLE, g STRING, last_s DURATION);
        RETURN g, COUNT(*), SUM(A.n), SUM(A.last_s) PATTERN A+ GROUP-BY g WITHIN 1 h"""
    )
    (tmp_path / "v.sase").write_text(
        """q: RETURN n, COUNT(*), MAX(A.n), MIN(A.at) PATTERN A+ GROUP-BY n WITHIN 1 h SLIDE 30 min;
        r: RETURN last_ms, MIN(A.last_s), MAX(A.last_ns) PATTERN A+ GROUP-BY last_ms WITHIN 1 h"""
    )
    inputs = ["folder", "a.csv", "a.jsonl", "texts", "int96.parquet", "nanos.parquet", "berlin.parquet"]
    for place, name in enumerate(inputs):
        workload = str(tmp_path / f"{'wwuuvvv'[place]}.sase")
        arguments = [workload, "--input", str(tmp_path / name), "--time-column", "at", "--output-format", "json", "-q"]
        ways = {"run": [], "submit": []} | (
            {"read by tasks": ["--products", "always"]} if place > 3 or not place else {}
        )
        for way, extra in ways.items():
            command = "run" if way == "run" else "submit"
            assert main([command, *arguments, *extra, "--output", str(tmp_path / way), "--overwrite"]) == 0, name
            assert files_of(tmp_path / way) == files_of(tmp_path / "run"), (name, way)
        assert any(files_of(tmp_path / "run").values()), name


def test_what_spark_reads_from_elsewhere(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another file system than this machine's: here its own, by a name that only Spark resolves."""
    from hamlet.spark import input as spark_input

    monkeypatch.setattr(spark_input, "local_path", lambda name: None if name.startswith("file:") else Path(name))
    pq.write_table(GOOD, tmp_path / "in.parquet")
    pa_csv.write_csv(GOOD, tmp_path / "in.csv")
    workload = hamlet.Workload.parse(TRENDS)
    for name in ("in.parquet", "in.csv"):
        url = f"file://{tmp_path}/{name}"
        stats = hamlet.spark.submit(workload, url, str(tmp_path / name.replace(".", "_")), keep=[])
        assert read(tmp_path / name.replace(".", "_"), "trends", "parquet") == [
            {"window_start": 0, "window_end": 10, "k": 1, "count": 3}
        ]
        assert stats["events"] == 3
    with pytest.raises(DataError, match=r"Spark cannot read the input: .*PATH_NOT_FOUND"):
        hamlet.spark.submit(workload, f"file://{tmp_path}/nowhere.parquet", str(tmp_path / "out"))


def test_query_and_where_mean_what_they_mean_in_process(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The same rows, the same count of events, and the same words where something is wrong."""
    size = 400
    columns: dict[str, Any] = {
        "at": list(range(size)),
        "type": ["A", "B", "B", "C"] * (size // 4),
        "k": [i % 7 for i in range(size)],
        "v": [None if i % 9 == 0 else i for i in range(size)],
        "north": [i % 3 > 0 for i in range(size)],  # a column that no query reads
        "town": [("Soho", "Mitte")[i % 2] for i in range(size)],
        "big": [2**62] * size,
    }
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "in.parquet")
    pa_csv.write_csv(table, tmp_path / "in.csv")
    (tmp_path / "w.sase").write_text(
        "a: RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 80 s;\n"
        "RETURN COUNT(*), SUM(B.v) PATTERN B+ WITHIN 40 s;\n"
        "c: RETURN COUNT(*), MAX(B.v) PATTERN SEQ(A, NOT C, B) WHERE [k] WITHIN 80 s SLIDE 40 s"
    )

    def both(name: str, *more: str) -> list[tuple[int, dict[str, str], str]]:
        found = []
        for command in ("run", "submit"):
            arguments = [command, str(tmp_path / "w.sase"), "--input", str(tmp_path / name), "--time-column", "at"]
            arguments += ["--output", str(tmp_path / command), "--output-format", "json", "--overwrite", *more]
            code = main(arguments)
            found.append((code, files_of(tmp_path / command), capfd.readouterr().err))
        return found

    for name, *more in (
        ("in.csv", "--query", "c", "--query", "q2", "--where", "north = TRUE AND town = Mitte"),
        ("in.parquet", "--where", "v IS NOT NULL AND at * 2 NOT BETWEEN 80 AND 180"),
    ):
        (code, rows, said), (submit_code, submit_rows, submit_said) = both(name, *more)
        assert (code, submit_code) == (0, 0), said + submit_said
        assert submit_rows == rows
        assert any(rows.values())
        one, other = (
            each.splitlines()[-1].split(", ")[0] for each in (said, submit_said)
        )  # how many events there were
        assert one == other
    for more in (
        ["--query", "cc"],
        ["--where", "nroth"],
        ["--where", "north = TRUE AND tow = 3 OR v < PREV(v)"],
        ["--where", ""],
    ):
        (code, _, said), (submit_code, _, submit_said) = both("in.csv", *more)
        assert (code, submit_code) == (2, 2)
        assert submit_said == said
    (code, _, said), (submit_code, _, submit_said) = both("in.parquet", "--where", "big * 4 > v")
    assert (code, submit_code) == (2, 2)
    assert submit_said.partition(" (")[0] == said.partition(" (")[0]


@pytest.mark.parametrize("products", ["always", "never"])
def test_where_does_not_hide_an_event_without_time(spark: SparkSession, tmp_path: Path, products: str) -> None:
    pq.write_table(pa.table({"time": [1, None], "type": ["A", "A"], "v": [1, 2]}), tmp_path / "in.parquet")
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 10 s")
    with pytest.raises(DataError, match="time column 'time' is NULL in an event"):
        hamlet.spark.submit(
            workload, str(tmp_path / "in.parquet"), str(tmp_path / "out"), where="v = 1", products=products
        )


@pytest.mark.sampled(2)
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
    with pytest.raises(DataError, match=r"broken\.parquet: the Parquet file cannot be read to its end"):
        hamlet.spark.submit(
            workload, str(tmp_path / "broken.parquet"), str(out), overwrite=overwrite, products="always"
        )
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
    pq.write_table(GOOD.drop_columns(["k"]), tmp_path / "narrow.parquet")
    with pytest.raises(WorkloadError, match="k"):
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
    assert process.stderr.startswith("3 events, 3 matched, 1 group, 1 window, 1 row, ")
    assert process.stderr.count("\n") == 1
    assert [stage in process.stderr for stage in ("start", "compute", "write")] == [True] * 3
    assert files_of(tmp_path / "out") == {"query=trends/part-00000.csv": "window_start,window_end,k,count\n0,10,1,3\n"}


BURSTS = """
    a: RETURN g, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY g WITHIN 40 s;
    c: RETURN g, COUNT(*) PATTERN SEQ(C, B+) GROUP-BY g WITHIN 40 s;
    alone: RETURN COUNT(*) PATTERN C+ WITHIN 100 s;
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("balance", [False, True])
def test_a_trace_of_all_tasks(spark: SparkSession, tmp_path: Path, balance: bool) -> None:
    """A file per task; together the records of one process, but for the order."""
    size = 600
    table = pa.table(
        {"time": range(size), "type": list("ACBBBBBBCBBB" * 50), "g": [f"g{i // 12 % 7}" for i in range(size)]}
    )
    pq.write_table(table, tmp_path / "in.parquet")
    workload = hamlet.Workload.parse(BURSTS)
    hamlet.run(workload, table, trace=tmp_path / "run.parquet")
    submitted = {"trace": str(tmp_path / "bursts"), "balance": balance, "partitions": 3}
    hamlet.spark.submit(workload, str(tmp_path / "in.parquet"), str(tmp_path / "out"), **submitted)  # type: ignore[arg-type]
    files = sorted((tmp_path / "bursts").iterdir())
    assert len(files) > 1
    assert all(file.name.startswith("part-") and file.suffix == ".parquet" for file in files)

    def sums(paths: Sequence[Path]) -> dict[str, int]:
        """Events of bursts by type and partition; where bursts end depends on who else is read."""
        found: dict[str, int] = {}
        for path in paths:
            for each in pq.read_table(path).to_pylist():
                found[f"{each['type']} {each['key']}"] = found.get(f"{each['type']} {each['key']}", 0) + each["b"]
        return found

    assert sums(files) == sums([tmp_path / "run.parquet"])
    assert (tmp_path / "out" / "query=a").is_dir()


def test_where_no_trace_of_a_job_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Known before Spark starts."""
    pytest.importorskip("pyspark")
    (tmp_path / "w.sase").write_text(BURSTS)
    (tmp_path / "e.csv").write_text("time,type,g\n0,A,a\n")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept").touch()
    submit = ["submit", str(tmp_path / "w.sase"), "--input", str(tmp_path / "e.csv"), "--output", str(tmp_path / "out")]
    for place, message in (("full", "is not empty"), ("e.csv", "is a file"), ("out/bursts", "lies in the output dir")):
        assert main([*submit, "--trace", str(tmp_path / place)]) == 2
        assert message in capsys.readouterr().err
    assert main([*submit, "--stream", "--checkpoint", str(tmp_path / "c"), "--trace", str(tmp_path / "t")]) == 2
    assert "submit them without --stream, or give them to hamlet run --trace" in capsys.readouterr().err


def test_a_task_keeps_to_its_memory(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = 2_000
    table = pa.table({"time": range(size), "type": ["A"] * size, "k": range(size)})
    pq.write_table(table, tmp_path / "in.parquet")
    (tmp_path / "w.sase").write_text("many: RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 1 d")
    submit = ["submit", str(tmp_path / "w.sase"), "--input", str(tmp_path / "in.parquet"), "--quiet"]
    assert main([*submit, "--output", str(tmp_path / "out"), "--max-memory", "30 KiB"]) == 2
    assert "the run stops, since it needs more memory than its limit, 30 KiB; " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_queries_about_rows_with_a_condition_a_page_and_a_trace(spark: SparkSession, tmp_path: Path) -> None:
    text = """
        s: RETURN k, COUNT(*) AS n PATTERN A+ GROUP-BY k HAVING MAX(A.at) - MIN(A.at) < 6.5 s WITHIN 10 s;
        more: RETURN k, COUNT(*), MAX(b.n) AS most PATTERN SEQ(s a, s b) WHERE a.n < NEXT(b).n GROUP-BY k WITHIN 50 s;
        next: RETURN k, COUNT(*) PATTERN SEQ(s, A) SEMANTICS NEXT GROUP-BY k HAVING COUNT(*) > 1 WITHIN 100 s"""
    at = "2024-01-01T00:{:02}:{:02}.000001000"  # nanoseconds, which Spark's timestamps lack
    rows = [
        f"{time},{'AAB'[time * 7 % 3]},{time % 2},{at.format(*divmod(time, 60))},{time * 5 % 7}" for time in range(90)
    ]
    source = tmp_path / "e.csv"
    source.write_text("\n".join(["time,type,k,at,v", *rows]), encoding="utf-8")
    workload = hamlet.Workload.parse(text)
    page, trace = tmp_path / "page.html", tmp_path / "trace"
    found = hamlet.spark.submit(
        workload, str(source), str(tmp_path / "out"), output_format="json", where="v > 1", since=4, until=86,
        report=page, partitions=2, trace=str(trace),
    )  # fmt: skip
    table = pa_csv.read_csv(source).slice(4, 82)
    expected = hamlet.run(workload, table.filter(pc.greater(table["v"], 1))).rows()
    assert {row["query"] for row in expected} == set(workload.names)
    for name in workload.names:
        wanted = [{key: row[key] for key in row if key != "query"} for row in expected if row["query"] == name]
        assert read(tmp_path / "out", name, "json") == wanted
    kept = [row for row in rows[4:86] if int(row.rsplit(",", 1)[1]) > 1]
    assert (found["events"], found["rows"]) == (len(kept), len(expected))
    assert "most" in page.read_text(encoding="utf-8")
    assert sum(pq.read_table(file).num_rows for file in trace.glob("unit=*/*.parquet")) > 0
    assert {file.parent.name for file in trace.glob("unit=*/*.parquet")} == {"unit=0", "unit=1", "unit=2"}


def test_queries_about_rows_beside_an_order_column(spark: SparkSession) -> None:
    text = """
        s: RETURN k, COUNT(*) AS n PATTERN A+ GROUP-BY k WITHIN 5 s SLIDE 3 s;
        any: RETURN COUNT(*), SUM(s.n) AS total PATTERN SEQ(A, s+, B?) WITHIN 20 s SLIDE 10 s;
        next: RETURN k, COUNT(*), MAX(s.n) AS most PATTERN (s | A)+ SEMANTICS NEXT GROUP-BY k WITHIN 20 s"""
    source = random.Random(2)
    events = [
        {"time": 5 * source.randint(0, 3), "type": source.choice("AAB"), "k": source.randint(1, 2)}
        | {"o": source.choice((-3, 0, 1, 2))}
        for _ in range(9)
    ]
    workload = hamlet.Workload.parse(text)
    frame = spark.createDataFrame([*events, {"time": 2, "type": "A", "k": 1, "o": 9}, {**events[0], "time": 16}])
    found = hamlet.spark.run(
        workload, frame, order_column="o", count_type="int64", partitions=2, where="o < 9", until=16
    ).collect()
    columns = {query.name: [item.column for item in query.items] for query in workload.queries}
    rows = [
        {name: row[name] for name in ("query", "window_start", "window_end", *columns[row["query"]])} for row in found
    ]
    expected = oracle.evaluate(parse(text), events, order_column="o")
    assert {row["query"] for row in expected} == set(workload.names)
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))


def test_queries_about_rows_have_the_counters_and_numbers_of_other_jobs(spark: SparkSession, tmp_path: Path) -> None:
    text = """
        s: RETURN k, COUNT(*) AS n PATTERN SEQ(A+, B) GROUP-BY k WITHIN 5 s;
        t: RETURN k, COUNT(*) AS n, SUM(A.v) AS total PATTERN SEQ(A+, B) GROUP-BY k WITHIN 5 s;
        more: RETURN k, COUNT(*) AS m PATTERN s+ GROUP-BY k WITHIN 50 s"""
    events = [{"time": time, "type": "AB"[time // 2 % 2], "k": time % 2, "v": time} for time in range(90)]
    workload = hamlet.Workload.parse(text)
    expected = hamlet.run(workload, events)
    frame = hamlet.spark.run(workload, spark.createDataFrame(events), partitions=2)
    assert {
        field.name: field.dataType.simpleString() for field in frame.schema if field.name in ("n", "total", "m")
    } == ({"n": "bigint", "total": "bigint", "m": "bigint"})
    source = tmp_path / "e.parquet"
    pq.write_table(pa.Table.from_pylist(events), source)
    files = hamlet.spark.submit(workload, str(source), str(tmp_path / "out"), partitions=2)
    for stats in (frame.stats, files):
        assert stats["rows"] == len(expected.rows()) > 0
        for name in ("events", "matched_events"):
            assert stats[name] == expected.stats[name]
        assert stats["features"]["merged_queries"] == expected.stats["features"]["merged_queries"] == 1
