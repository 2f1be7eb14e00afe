"""`--from`, `--to` and `--where` of jobs on Spark: the rows of `hamlet.run`, and less that is read."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.cli import main
from tests.spark.test_spark_submit import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKLOAD = hamlet.Workload.parse(
    "RETURN k, COUNT(*) AS n PATTERN SEQ(A, B+) WHERE [k] AND B.v >= 0 GROUP-BY k WITHIN 10 s"
)
START = datetime.datetime(2024, 3, 5)


def events(days: int = 3) -> pa.Table:
    """Forty events a day, in the order of time, a quarter of them of a type that nobody asks for."""
    rows = range(40 * days)
    return pa.table(
        {
            "time": pa.array([row // 40 * 86_400 + row % 40 for row in rows]),
            "type": ["ABBC"[row % 4] for row in rows],
            "k": [row % 3 for row in rows],
            "v": pa.array([row % 5 if row % 7 else None for row in rows]),
            "name": ["x", "y"] * (20 * days),
            "day": [row // 40 for row in rows],
        }
    )


def folders(root: Path, table: pa.Table) -> Path:
    """A folder per day, as Spark writes them; the column is in no file."""
    for day in sorted(set(table["day"].to_pylist())):
        folder = root / f"day={day}"
        folder.mkdir(parents=True)
        mine = table.filter(pa.array([each == day for each in table["day"].to_pylist()])).drop_columns(["day"])
        pq.write_table(mine, folder / "part.parquet", row_group_size=10)
    return root


def submitted(path: Path, out: Path, **options: Any) -> tuple[list[Any], dict[str, Any]]:
    found = hamlet.spark.submit(WORKLOAD, str(path), str(out), count_type="int64", **options)
    return read(out, "q1", "parquet"), found


CHOICES: list[dict[str, Any]] = [
    {"since": 86_400, "until": 2 * 86_400},
    {"since": 86_420},
    {"where": "v > 1 AND name = 'x'"},
    {"where": "v IS NULL OR v * 2 > 4", "until": 86_400},
    {"where": "day = 1"},
]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("choice", CHOICES, ids=str)
def test_files(spark: SparkSession, tmp_path: Path, choice: dict[str, Any]) -> None:
    """One file in small row groups, text, and folders that say the day."""
    table = events()
    pq.write_table(table, tmp_path / "e.parquet", row_group_size=10)
    pa_csv.write_csv(table, tmp_path / "e.csv")
    folders(tmp_path / "e", table)
    options = {name: each for name, each in choice.items() if name != "where"}
    source: Any = tmp_path / "e.parquet"
    if "where" in choice:
        from hamlet.engine.where import FilteredEvents
        from hamlet.input.events import open_events

        source = FilteredEvents(open_events(tmp_path / "e.parquet"), choice["where"])
    whole = hamlet.run(WORKLOAD, source, **options)
    expected = [{name: row[name] for name in ("k", "n")} for row in whole.rows()]
    assert expected
    for place, name in enumerate(("e.parquet", "e.csv", "e")):
        rows, found = submitted(tmp_path / name, tmp_path / f"out{place}", **choice)
        assert [{name: row[name] for name in ("k", "n")} for row in rows] == expected
        assert found["events"] == whole.stats["events"]
        if "where" not in choice and name != "e.csv":
            assert found["notes"][0].startswith("skipped ")
            assert sum(found["row_groups"]["skipped"].values()) >= 4


def test_folders_are_columns(spark: SparkSession, tmp_path: Path) -> None:
    """A column that only folders have: its values, and the folders that Spark does not open."""
    text = "RETURN day, COUNT(*) AS n PATTERN SEQ(A, B+) GROUP-BY day WITHIN 40 s"
    workload = hamlet.Workload.parse(text)
    path = folders(tmp_path / "e", events())
    expected = [(row["day"], row["n"]) for row in hamlet.run(workload, path).rows()]
    assert [day for day, _ in expected] == [0, 1, 2]
    hamlet.spark.submit(workload, str(path), str(tmp_path / "out"), count_type="int64")
    assert [(row["day"], row["n"]) for row in read(tmp_path / "out", "q1", "parquet")] == expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["integers", "zoned", "plain", "dates"])
def test_frames(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """A DataFrame over files: the rows are right, and Spark is told what it need not read."""
    table = events()
    seconds = table["time"].to_pylist()
    times = [START + datetime.timedelta(seconds=each) for each in seconds]
    changed = {
        "integers": table["time"],
        "zoned": pa.array([each.replace(tzinfo=datetime.UTC) for each in times], pa.timestamp("us", "UTC")),
        "plain": pa.array(times, pa.timestamp("us")),
        "dates": pa.array([each.date() for each in times]),
    }[kind]
    table = table.set_column(0, "time", changed)
    pq.write_table(table, tmp_path / "e.parquet", row_group_size=10)
    frame = spark.read.parquet(str(tmp_path / "e.parquet"))
    period: dict[str, Any] = {"since": "2024-03-06", "until": "2024-03-07"}
    if kind == "integers":
        period = {"since": 86_400, "until": 2 * 86_400}
    workload = hamlet.Workload.parse("RETURN k, COUNT(*) AS n PATTERN SEQ(A, B+) GROUP-BY k WITHIN 1 d")
    if kind == "dates":
        workload = hamlet.Workload.parse("RETURN k, COUNT(*) AS n PATTERN A GROUP-BY k WITHIN 1 d")
    found = hamlet.spark.run(workload, frame, where="name <> 'z'", lazy=True, **period)
    plan = found._jdf.queryExecution().executedPlan().toString()
    if kind != "dates":
        assert "PushedFilters: [Or(" in plan
        assert "LessThan(time" in plan
    assert "name" in plan
    expected = [(row["k"], str(row["n"])) for row in hamlet.run(workload, table, **period).rows()]
    assert sorted((row["k"], row["n"]) for row in found.collect()) == expected


def test_mistakes(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "w.sase").write_text("RETURN COUNT(*) PATTERN A WITHIN 1 s")
    pq.write_table(events(), tmp_path / "e.parquet")
    command = ["submit", str(tmp_path / "w.sase"), "--input", str(tmp_path / "e.parquet"), "-o", str(tmp_path / "out")]
    assert main([*command, "--from", "5", "--to", "5"]) == 2
    assert "error: --to (5) is not after --from (5), so no event is between them" in capsys.readouterr().err
    assert main([*command, "--stream", "--checkpoint", str(tmp_path / "c"), "--from", "5"]) == 2
    assert "error: --from belongs to a batch; --where can compare the time of a --stream" in capsys.readouterr().err
    assert main(["submit", str(tmp_path / "p.mfotl"), *command[2:], "--to", "5"]) == 2
    assert "error: --to is for workloads of trend queries (.sase)" in capsys.readouterr().err
    null = pa.table({"time": [1, None, 3], "type": ["A", "A", "A"]})
    pq.write_table(null, tmp_path / "null.parquet")
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 s")
    with pytest.raises(hamlet.DataError, match="the time column 'time' is NULL"):
        hamlet.spark.submit(workload, str(tmp_path / "null.parquet"), str(tmp_path / "o"), since=2)
