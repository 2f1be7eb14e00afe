"""The continuous job on Spark: rows of closed windows once, also when the job ends badly between two micro-batches."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.errors import DataError, JobError, OptionError, OutputError
from tests.spark.test_spark import assert_same_rows, rows_of
from tests.spark.test_spark_slices import CLASSES, table_of_keys
from tests.spark.test_spark_submit import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKLOAD = hamlet.Workload.parse(CLASSES)
END = 100_000  # a time at which all windows are closed


def add(folder: Path, name: str, table: pa.Table) -> None:
    """A file that appears at once, and milliseconds after the one before: so Spark's file source knows their order."""
    folder.mkdir(exist_ok=True)
    pq.write_table(table, folder / f".{name}")
    newest = max((each.stat().st_mtime_ns for each in folder.glob("*.parquet")), default=0)
    written = max(time.time_ns(), newest + 10_000_000)
    os.utime(folder / f".{name}", ns=(written, written))
    (folder / f".{name}").rename(folder / f"{name}.parquet")


def parts(table: pa.Table) -> list[pa.Table]:
    """Three stretches of time, and an event that no query wants."""
    end = pa.table({"time": [END], "type": ["Z"], "k": [0], "g": ["g"], "v": [0]})
    return [table.slice(0, 250), table.slice(250, 150), pa.concat_tables([table.slice(400), end])]


@pytest.fixture
def store(spark: SparkSession) -> Iterator[SparkSession]:
    """A session that keeps state as continuous jobs need it."""
    pytest.importorskip("google.protobuf", reason="protobuf is not installed (pip install 'hamlet-cep[spark]')")
    from hamlet.spark.continuous import PROVIDER, ROCKSDB

    before = {name: spark.conf.get(name) for name in (PROVIDER, "spark.sql.shuffle.partitions")}
    spark.conf.set(PROVIDER, ROCKSDB)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def test_a_stream_goes_on_from_its_checkpoint(store: SparkSession, tmp_path: Path) -> None:
    table = table_of_keys(1, 2, 3, None, 40)
    first, *others = parts(table)
    add(tmp_path / "in", "0", first)
    schema = store.read.parquet(str(tmp_path / "in")).schema
    for turn in range(2):
        events = store.readStream.schema(schema).parquet(str(tmp_path / "in"))
        rows = hamlet.spark.stream(WORKLOAD, events, partitions=2)
        writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
        writer.format("parquet").start(str(tmp_path / "out")).awaitTermination()
        found = rows_of(store.read.parquet(str(tmp_path / "out")), WORKLOAD)
        if turn == 0:
            assert {row["window_end"] for row in found if row["query"] == "giant"} <= set(range(0, 250, 5))
            for number, part in enumerate(others, 1):
                add(tmp_path / "in", str(number), part)
    assert_same_rows(found, hamlet.run(WORKLOAD, table).rows())


def test_groups_by_what_trends_took(store: SparkSession, tmp_path: Path) -> None:
    """Partial rows of several tasks: values of groups, and matched events, are merged exactly."""
    text = """
        EVENT C(g STRING, v INT);
        touch: RETURN FIRST(A.v), COUNT(A), COUNT(EVENTS B), SUM(EVENTS B.v) PATTERN SEQ(A{1,2}, B) WHERE [k]
               GROUP-BY FIRST(A.v), COUNT(A) WITHIN 20 s;
        shared: RETURN COUNT(EVENTS C), SUM(EVENTS C.v) PATTERN SEQ(C, B) WHERE [k] WITHIN 20 s"""
    workload = hamlet.Workload.parse(text)
    table = table_of_keys(1, 2, 3, None, 40)
    for number, part in enumerate(parts(table)):
        add(tmp_path / "in", str(number), part)
    events = store.readStream.schema(store.read.parquet(str(tmp_path / "in")).schema).parquet(str(tmp_path / "in"))
    rows = hamlet.spark.stream(workload, events, partitions=2)
    writer = rows.writeStream.option("checkpointLocation", str(tmp_path / "state")).trigger(availableNow=True)
    writer.format("parquet").start(str(tmp_path / "out")).awaitTermination()
    found = rows_of(store.read.parquet(str(tmp_path / "out")), workload)
    assert_same_rows(found, hamlet.run(workload, table).rows())


def test_files_hold_each_row_once(store: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that dies after it has written a micro-batch, and before Spark knows that, writes the same files again."""
    from hamlet.spark import continuous

    table = table_of_keys(1, 2, 3, None, 40)
    for number, part in enumerate(parts(table)):
        add(tmp_path / "in", str(number), part)

    def go(**options: Any) -> dict[str, Any]:
        places = [str(tmp_path / name) for name in ("in", "out", "state")]
        settings = {"partitions": 2, "files_per_batch": 2, "available_now": True} | options
        return hamlet.spark.submit_stream(WORKLOAD, *places, **settings)

    whole = continuous._write_batch

    def dying(*arguments: Any) -> None:
        whole(*arguments)
        raise RuntimeError("the machine is gone")

    with monkeypatch.context() as patched:
        patched.setattr(continuous, "_write_batch", dying)
        with pytest.raises(JobError, match="the machine is gone"):
            go()
    written = {path.name for path in (tmp_path / "out").rglob("part-0*")}
    assert written
    assert go()["events"] == len(table) + 1
    results = hamlet.run(WORKLOAD, table, count_type="string")
    for name in WORKLOAD.names:
        expected = results.table(name).drop_columns(["query"]).to_pylist()
        got = read(tmp_path / "out", name, "parquet")
        assert sorted(map(repr, got)) == sorted(map(repr, expected))
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]
    add(tmp_path / "in", "late", table.slice(0, 1))
    with pytest.raises(DataError, match="is late"):
        go(partitions=3)
    with pytest.raises(DataError, match="is late"):
        go()
    with pytest.raises(OutputError, match="rows would be there twice"):
        hamlet.spark.submit_stream(WORKLOAD, str(tmp_path / "in"), str(tmp_path / "out"), str(tmp_path / "new"))


def test_where_chooses_the_events_of_a_stream(store: SparkSession, tmp_path: Path) -> None:
    """As if the others were not there: they close no window either."""
    table = table_of_keys(1, 2, 3, None, 40).append_column("odd", pa.array([n % 2 for n in range(600)]))
    late = pa.table({"time": [END], "type": ["Z"], "k": [0], "g": ["g"], "v": [0], "odd": [0]})
    add(tmp_path / "in", "0", pa.concat_tables([table, late]))
    places = [str(tmp_path / name) for name in ("in", "out", "state")]
    found = hamlet.spark.submit_stream(WORKLOAD, *places, where="odd = 1", partitions=2, available_now=True)
    assert found["events"] == 300
    chosen = table.filter(pc.equal(table["odd"], 1))
    last = chosen["time"][-1].as_py()
    results = hamlet.run(WORKLOAD, chosen, count_type="string")
    for name in WORKLOAD.names:
        closed = results.table(name).filter(pc.field("window_end") <= last).drop_columns(["query"]).to_pylist()
        assert closed
        assert sorted(map(repr, read(tmp_path / "out", name, "parquet"))) == sorted(map(repr, closed))


def test_what_a_stream_asks_for(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load().selectExpr("timestamp as time", "'A' as type", "value as k")
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN A+ GROUP-BY k WITHIN 5 s")
    from hamlet.spark.continuous import PROVIDER

    kept = spark.conf.get(PROVIDER)
    spark.conf.unset(PROVIDER)  # jobs of other tests have set it
    try:
        with pytest.raises(OptionError, match="keeps its state in RocksDB"):
            hamlet.spark.stream(workload, rate)
    finally:
        spark.conf.set(PROVIDER, kept)
    with pytest.raises(OptionError, match="takes a streaming DataFrame"):
        hamlet.spark.stream(workload, spark.range(1))


def test_a_bad_file_stops_the_stream_and_loses_nothing(store: SparkSession, tmp_path: Path) -> None:
    """Nothing of its micro-batch is written, and the job goes on once the file is mended."""
    workload = hamlet.Workload.parse("q: RETURN COUNT(*), SUM(B.v) AS s PATTERN SEQ(A, B+) WHERE [k] WITHIN 100 s")
    files = ["1,A,1,5\n2,B,1,7", "11,A,1,5\n12,B,1,oops", "21,A,1,5\n22,B,1,7\n145,A,1,0"]
    (tmp_path / "in").mkdir()

    def put(number: int, rows: str) -> None:
        path = tmp_path / "in" / f"{number}.csv"
        path.write_text(f"time,type,k,v\n{rows}\n")
        os.utime(path, (time.time() + number - 10,) * 2)

    def others_come(query: Any) -> None:
        query.processAllAvailable()
        put(1, files[1])
        put(2, files[2])

    def go(**options: Any) -> dict[str, Any]:
        places = [str(tmp_path / name) for name in ("in", "out", "state")]
        return hamlet.spark.submit_stream(workload, *places, partitions=2, output_format="json", **options)

    put(0, files[0])
    with pytest.raises(DataError, match=r"1\.csv:3: column 'v' holds 'oops', and in the files before it is INT"):
        go(files_per_batch=1, started=others_come)
    assert not read(tmp_path / "out", "q", "json")
    put(1, "12,B,1,7\n11,A,1,5")
    go(available_now=True)
    expected = {"window_start": 0, "window_end": 100, "count": 11, "s": 119}
    assert read(tmp_path / "out", "q", "json") == [expected]
    put(3, ",B,1,7\n151\n152,B,1,7")
    [note] = go(available_now=True, bad_rows="drop")["notes"]
    assert note.startswith("2 bad rows dropped: 3.csv: ")
    assert all(each in note for each in ("1 field in place of 4, '151'", "time is ''"))


def test_names_are_case_sensitive(spark: SparkSession, tmp_path: Path) -> None:
    """Whatever the session says: `V` of one file is not `v` of another, and a file may have both."""
    workload = hamlet.Workload.parse("q: RETURN SUM(B.v) AS s PATTERN SEQ(A, B+) WITHIN 10 s")
    (tmp_path / "in").mkdir()
    both = {"time": [1, 2], "type": ["A", "B"], "v": [1, 20], "V": [3, 4]}
    pq.write_table(pa.table(both), tmp_path / "in" / "0.parquet")
    other = {"time": [11, 12], "type": ["A", "B"], "V": [3, 4]}
    pq.write_table(pa.table(other), tmp_path / "in" / "1.parquet")
    hamlet.spark.submit(workload, str(tmp_path / "in"), str(tmp_path / "out"), output_format="json")
    found = read(tmp_path / "out", "q", "json")
    assert [row["s"] for row in found] == [20, None]
    assert [row["s"] for row in hamlet.run(workload, tmp_path / "in").rows()] == [20, None]
