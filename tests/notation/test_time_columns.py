"""The time column is found by itself, `time`, else `ts`, else `timestamp`: in all notations, on all paths."""

from __future__ import annotations

import gzip
import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
import hamlet.policies as policies
import hamlet.streams as streams
from hamlet.cli import main
from hamlet.errors import DataError, HamletError
from hamlet.frontend.time_column import TIME_COLUMNS, time_column_in
from hamlet.input.events import open_events
from tests.notation.test_matrix import EVENTS, NOTATIONS, TEXTS, Notation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMED = NOTATIONS[:3]  # row patterns say the column in ORDER BY
each_notation = pytest.mark.parametrize("notation", NAMED, ids=lambda each: each.name)
each_name = pytest.mark.parametrize("name", ["ts", "timestamp", "TS"])


def events_with(name: str) -> list[dict[str, Any]]:
    return [{name if key == "time" else key: value for key, value in each.items()} for each in EVENTS]


def forms(events: list[dict[str, Any]]) -> list[Any]:
    table = pa.Table.from_pylist(events)
    return [
        events,
        iter(events),
        table,
        table.combine_chunks().to_batches()[0],
        table.to_reader(),
        {name: [each[name] for each in events] for name in events[0]},
        pl.DataFrame(events),
        duckdb.from_arrow(table),
    ]


def monitor_of(notation: Notation, **options: Any) -> Any:
    text = TEXTS[notation.file()]
    if notation.extension == ".sase":
        return hamlet.Engine(hamlet.Workload.parse(text), **options)
    if notation.extension == ".mfotl":
        return policies.Monitor(policies.Policy.parse(text, signature=TEXTS["p.sig"]), **options)
    return streams.Monitor(streams.Specification.parse(text), **options)


def restored(notation: Notation, monitor: Any) -> Any:
    text = TEXTS[notation.file()]
    if notation.extension == ".sase":
        return hamlet.Engine.restore(hamlet.Workload.parse(text), monitor.save())
    if notation.extension == ".mfotl":
        return policies.Monitor.restore(policies.Policy.parse(text, signature=TEXTS["p.sig"]), monitor.save())
    return streams.Monitor.restore(streams.Specification.parse(text), monitor.save())


def written(name: str, folder: Path) -> list[Path]:
    events = events_with(name)
    pq.write_table(pa.Table.from_pylist(events), folder / "e.parquet")
    lines = "".join(",".join(map(str, each.values())) + "\n" for each in events)
    (folder / "e.csv").write_text(f"{name},type,a\n{lines}")
    (folder / "semicolons.csv").write_text(f"{name},type,a\n{lines}".replace(",", ";"))
    (folder / "e.csv.gz").write_bytes(gzip.compress(f"{name},type,a\n{lines}".encode()))
    (folder / "e.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events))
    (folder / "files").mkdir()
    (folder / "files" / "first.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events[::2]))
    (folder / "files" / "second.jsonl").write_text("".join(json.dumps(each) + "\n" for each in events[1::2]))
    return [folder / each for each in ("e.parquet", "e.csv", "semicolons.csv", "e.csv.gz", "e.jsonl", "files")]


def test_time_goes_before_ts_and_ts_before_timestamp() -> None:
    for names in itertools.permutations(["type", *TIME_COLUMNS]):
        assert time_column_in(names) == "time"
        assert time_column_in([each for each in names if each != "time"]) == "ts"
    assert time_column_in(["Ts", "ts"]) == "ts"
    assert time_column_in(["TIMESTAMP", "at"]) == "TIMESTAMP"
    assert time_column_in(["time", "at"], "at") == "at"
    assert time_column_in(["time"], "at") is None


@each_notation
@each_name
def test_events_in_memory(notation: Notation, name: str) -> None:
    wanted = notation.run(EVENTS).rows()
    assert wanted
    for form in forms(events_with(name)):
        assert notation.run(form).rows() == wanted, type(form)


@each_notation
@each_name
def test_files(notation: Notation, name: str, tmp_path: Path) -> None:
    wanted = notation.run(EVENTS).rows()
    for path in written(name, tmp_path):
        assert notation.run(str(path)).rows() == wanted, path


@each_notation
@each_name
def test_pushes_with_saves_between(notation: Notation, name: str) -> None:
    wanted = notation.run(EVENTS).rows()
    events = events_with(name)
    for form in (list, iter, pa.Table.from_pylist, pl.DataFrame):
        monitor, found = monitor_of(notation), []
        for place in range(0, len(events), 2):
            found += monitor.push(form(events[place : place + 2]))
            monitor = restored(notation, monitor)
        assert found + monitor.close() == wanted, form


@each_notation
def test_what_was_promised_before_the_first_event_holds(notation: Notation) -> None:
    monitor = monitor_of(notation)
    monitor.advance(3)
    with pytest.raises(DataError):
        monitor.push(events_with("ts"))
    late = monitor_of(notation, late="drop")
    late.advance(3)
    late.push(events_with("ts"))
    assert late.stats["late_events"] == (4 if notation.extension == ".lola" else 3)  # deadlines at 3 have run


@each_notation
def test_a_push_that_is_refused_decides_nothing(notation: Notation) -> None:
    monitor = monitor_of(notation)
    with pytest.raises(HamletError):
        monitor.push([{"ts": None, "type": "A", "a": 1}])
    assert monitor.push(EVENTS) + monitor.close() == notation.run(EVENTS).rows()


@each_notation
def test_time_is_taken_where_both_are_there(notation: Notation) -> None:
    both = [{"ts": 99 - each["time"], **each} for each in EVENTS]  # type: ignore[operator]
    assert notation.run(both).rows() == notation.run(EVENTS).rows()
    monitor = monitor_of(notation)
    assert monitor.push(both) + monitor.close() == notation.run(EVENTS).rows()


@each_notation
def test_none_is_named_and_the_option_with_it(notation: Notation) -> None:
    without = [{"at" if key == "time" else key: value for key, value in each.items()} for each in EVENTS]
    with pytest.raises(DataError, match=r"(?s)no time column 'time'.*time_column"):
        notation.run(without)
    assert notation.run(without, time_column="at").rows() == notation.run(EVENTS).rows()
    with pytest.raises(DataError, match="no time column 'at'"):  # one that is asked for is not replaced
        notation.run(events_with("ts"), time_column="at")


@each_notation
def test_the_command_line_and_live_lines(
    notation: Notation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for each, text in TEXTS.items():
        Path(each).write_text(text)
    files = written("ts", tmp_path)
    call = [*notation.call(notation.command), "--output", "-", "--quiet", "--input"]
    Path("plain.jsonl").write_text("".join(json.dumps(each) + "\n" for each in EVENTS))
    assert main([*call, "plain.jsonl"]) in (0, 1)
    wanted = capsys.readouterr().out
    assert wanted
    for file in files:
        assert main([*call, str(file)]) in (0, 1)
        assert capsys.readouterr().out == wanted, file
    for file in ("e.csv", "e.jsonl"):
        command = [sys.executable, "-m", "hamlet", *call, "-"]
        done = subprocess.run(command, input=Path(file).read_text(), capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        assert sorted(done.stdout.splitlines()) == sorted(wanted.splitlines()), done.stderr


def test_lines_that_are_no_events_do_not_say_the_column(tmp_path: Path) -> None:
    file = tmp_path / "e.jsonl"
    file.write_text(
        '\n{"time": \n[1]\n{"type": "A"}\n{"ts": 4, "type": "A", "a": 1}\n{"ts": 5, "type": "A", "time": 9}\n'
    )
    events = open_events([file], bad_rows="drop")
    assert (events.schema.clock.column, events.rows, sorted(events.schema.columns)) == (
        "ts",
        2,
        ["a", "time", "ts", "type"],
    )


def by_spark(notation: Notation, source: str, folder: Path, *more: str) -> list[str]:
    call = notation.call("submit", "--input", source, "--output", str(folder), "--output-format", "json", kind="sliced")
    values = ["--values"] if notation.extension == ".lola" else []
    assert main([*call, *values, *more, "--quiet"]) in (0, 1)
    return sorted(line for file in folder.rglob("part-*.json") for line in file.read_text().splitlines())


@pytest.mark.spark
@each_notation
def test_jobs_on_spark(
    notation: Notation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    monkeypatch.chdir(tmp_path)
    for each, text in TEXTS.items():
        Path(each).write_text(text)
    Path("plain").mkdir()
    Path("plain", "e.jsonl").write_text("".join(json.dumps(each) + "\n" for each in EVENTS))
    wanted = by_spark(notation, "plain", tmp_path / "wanted")
    assert wanted
    for half, name in enumerate(("ts", "Timestamp")):
        folder = tmp_path / name
        folder.mkdir()
        for file in written(name, folder)[half::2]:
            assert by_spark(notation, str(file), tmp_path / f"{name}-{file.name}") == wanted, file


@pytest.mark.spark
def test_frames_of_spark(spark: SparkSession) -> None:
    from hamlet import spark as on_spark

    frames: dict[str, Any] = {name: spark.createDataFrame(events_with(name)) for name in ("time", "ts")}
    workload = hamlet.Workload.parse(TEXTS["sliced.sase"])
    policy = policies.Policy.parse(TEXTS["sliced.mfotl"], signature=TEXTS["p.sig"])
    calls: list[Callable[[Any], Any]] = [
        lambda frame: on_spark.run(workload, frame),
        lambda frame: on_spark.monitor(policy, frame),
    ]
    for call in calls:
        rows = {name: sorted(map(str, call(frame).collect())) for name, frame in frames.items()}
        assert rows["ts"] == rows["time"]
        assert rows["time"]
