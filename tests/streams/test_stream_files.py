"""Several files of a specification's events are one stream, merged by time."""

from __future__ import annotations

import json
import random
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.cli import main
from hamlet.errors import DataError, WorkloadError
from hamlet.input import csvfile, jsonfile
from hamlet.streams import Monitor, Specification, run

SPEC = Specification.parse("input a: Int64  output n := n.offset(by: -1).defaults(to: 0) + a  output b := a")
Event = dict[str, Any]


def written(path: Path, events: list[Event]) -> Path:
    names = list(events[0])
    encoding = "utf-8-sig" if len(events) % 2 else "utf-8"  # the former begins with a mark
    if path.suffix == ".csv":
        lines = [",".join(names), *(",".join(str(each[name]) for name in names) for each in events)]
        path.write_text("\n".join(lines), encoding=encoding)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, events)), encoding=encoding)
    else:
        pq.write_table(pa.Table.from_pylist(events), path)
    return path


def computed(source: Any, **options: Any) -> list[Event]:
    return run(SPEC, source, values=True, **options).rows()


@pytest.mark.parametrize("seed", range(30))
def test_files_are_merged_by_time(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    endings = ["csv", "jsonl", "parquet"]
    ending = draw.choice([*endings, *endings, "*"])  # each another one
    unit = draw.choice([1, 1, 0.5])
    times = sorted(draw.sample(range(200), draw.randint(4, 60)))
    events: list[Event] = [{"time": time * unit if unit != 1 else time, "a": draw.randint(-9, 9)} for time in times]
    parts: list[list[Event]] = [[] for _ in range(draw.randint(1, 5))]
    for each in events:
        draw.choice(parts).append(each)
    names = [f"{place}.{draw.choice(endings) if ending == '*' else ending}" for place in range(len(parts))]
    paths = [written(tmp_path / name, part) for name, part in zip(names, parts, strict=True) if part]
    draw.shuffle(paths)
    expected = computed(events)
    assert computed([str(path) for path in paths]) == expected
    if ending == "*":
        return
    assert computed(tmp_path) == expected
    assert computed(f"{tmp_path}/*.{ending}") == expected


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_a_file_without_times_is_told(ending: str, tmp_path: Path) -> None:
    for name, columns in (("a", {"time": [1], "a": [1]}), ("b", {"a": [2]})):
        path = tmp_path / f"{name}.{ending}"
        if ending == "parquet":
            pq.write_table(pa.table(columns), path)
        else:
            path.write_text(json.dumps({key: value for key, [value] in columns.items()}) + "\n")
    with pytest.raises(DataError, match=rf"b\.{ending}: there is no time column 'time'"):
        run(SPEC, tmp_path)


def test_files_of_large_batches(tmp_path: Path) -> None:
    events = [{"time": time, "a": time % 7} for time in range(150_000)]
    for place in range(3):
        written(tmp_path / f"{place}.jsonl", events[place::3])
    assert computed(tmp_path) == computed(events)


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_folders_that_say_the_value_of_a_column(ending: str, tmp_path: Path) -> None:
    for day in (2, 1):
        folder = tmp_path / f"a={day}"
        folder.mkdir()
        written(folder / f"part.{ending}", [{"time": 10 * day + place, "v": place} for place in range(3)])
    expected = computed([{"time": 10 * day + place, "a": day} for day in (1, 2) for place in range(3)])
    assert computed(tmp_path) == expected
    assert computed(tmp_path, where="a = 2") == computed([{"time": 20 + place, "a": 2} for place in range(3)])


def test_whole_seconds_and_fractions(tmp_path: Path) -> None:
    written(tmp_path / "a.csv", [{"time": 1, "a": 1}, {"time": 3, "a": 3}])
    written(tmp_path / "b.csv", [{"time": 0.5, "a": 0}, {"time": 2.5, "a": 2}])
    assert [row["value"] for row in computed(tmp_path) if row["stream"] == "b"] == [0, 1, 2, 3]


@pytest.mark.parametrize("period", [[], ["--from", "2"]])
def test_a_fraction_that_comes_late_in_lines_of_json_makes_all_times_seconds(
    period: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(jsonfile, "_CHUNK", 40)
    events: list[dict[str, Any]] = [{"time": time, "a": time % 3} for time in range(10)]
    events += [{"time": 10.5, "a": 1}, {"time": 11, "a": 2}]
    (tmp_path / "s.lola").write_text("input a: Int64  output b := a")
    found = []
    for name in ("e.csv", "e.jsonl"):
        written(tmp_path / name, events)
        asked = ["monitor", str(tmp_path / "s.lola"), "--input", str(tmp_path / name), "--values", "--quiet", *period]
        assert main([*asked, "--output", "-", "--output-format", "csv"]) == 0
        found.append(capfd.readouterr().out)
    assert found[0].splitlines()[-2:] == ["b,10.5,1", "b,11.0,2"]
    assert found[1] == found[0]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("e.jsonl", "\n  \n", "e.jsonl holds no events: all its lines are blank"),
        ("e.csv", "time,a\n1,1\n2,x\n", "e.csv:3: column 'a': 'x' is no int64"),
        (
            "e.csv",
            "time,a\n1,1\n2\n",
            "e.csv:3: 1 field in place of 2, '2'\nhint: bad_rows='drop' leaves such rows out",
        ),
        ("e.csv", "time,a,,a,\n1,1,,2,\n", "e.csv: the header names the column 'a' more than once; rename one of them"),
        ("e.csv", "\x1f\x8b", "e.csv is compressed with gzip"),
        (
            "e.jsonl",
            '{"time": 1, "a": 1}\n{"time": 2, "a": 1.5}\n{"time": 3}',
            "column 'a' holds in row 2 (the first row is",
        ),
    ],
)
def test_errors_of_files_say_where(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=re.escape(said)):
        computed(tmp_path / name)


def test_values_of_many_lines(tmp_path: Path) -> None:
    """Also where a block of the reader ends within one."""
    texts = ["x\n" * 3_000 + str(place) for place in range(800)]
    (tmp_path / "e.csv").write_text("time,note\n" + "".join(f'{n},"{text}"\n' for n, text in enumerate(texts)))
    spec = Specification.parse("input note: String\noutput n := note")
    assert [row["value"] for row in run(spec, tmp_path / "e.csv", values=True).rows()] == texts


def test_timestamps_of_text_and_of_parquet(tmp_path: Path) -> None:
    clock = [f"2024-03-05T10:00:0{second}Z" for second in range(4)]
    texts = written(tmp_path / "a.csv", [{"time": clock[0], "a": 0}, {"time": clock[3], "a": 3}])
    times = pa.array(clock[1:3]).cast(pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({"time": times, "a": [1, 2]}), tmp_path / "b.parquet")
    rows = computed([str(texts), str(tmp_path / "b.parquet")])
    assert [row["value"] for row in rows if row["stream"] == "b"] == [0, 1, 2, 3]


def test_times_of_no_events_are_integers() -> None:
    assert run(SPEC, [], values=True).table().schema.field("time").type == pa.int64()


@pytest.mark.parametrize("ending", ["csv", "jsonl", "dicts"])
@pytest.mark.parametrize("odd", [2**70, 10**90, "text"])
def test_a_column_that_no_input_reads_may_hold_anything(ending: str, odd: Any, tmp_path: Path) -> None:
    events = [{"time": 0, "a": 1, "o": 2, "z": 5}, {"time": 1, "a": 2, "o": 3, "z": odd}]
    source = events if ending == "dicts" else written(tmp_path / f"e.{ending}", events)
    for options in ({}, {"where": "o > 1 AND o < 9"}, {"order_column": "o"}):
        assert [row["value"] for row in computed(source, **options) if row["stream"] == "b"] == [1, 2]
    monitor = Monitor(SPEC, values=True)
    pushed = [*monitor.push(events), *monitor.close()]
    assert [row["value"] for row in pushed if row["stream"] == "b"] == [1, 2]
    events[1]["a"] = odd
    with pytest.raises(DataError, match=r"(column|attribute) 'a'"):
        computed(events if ending == "dicts" else written(tmp_path / f"e.{ending}", events))


@pytest.mark.parametrize("kind", ["Int64", "UInt64", "Float64", "String", "Bool"])
@pytest.mark.parametrize("value", [datetime(2024, 3, 5), datetime(2024, 3, 5).date(), timedelta(1)])
def test_moments_and_durations_are_no_values(kind: str, value: Any) -> None:
    spec = Specification.parse(f"input a: {kind}")
    with pytest.raises(DataError, match=f"input a is of type {kind}"):
        run(spec, [{"time": 0, "a": value}])
    with pytest.raises(WorkloadError, match=f"a is {kind}, and its column holds .*\n.*\n.*\nhint: times are no values"):
        run(spec, pa.table({"time": [0], "a": [value]}))


def test_where_over_columns_that_no_input_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the types that queries find in the same file: of all rows, and none where there is no value."""
    monkeypatch.setattr(csvfile, "_BLOCK", 64)
    monkeypatch.setattr(jsonfile, "_CHUNK", 64)
    spec = Specification.parse("input v: Int64\noutput a := v")
    query = hamlet.Workload.parse("RETURN MIN(x.v) PATTERN A x WITHIN 1 s")
    rows = {
        "none.csv": "time,type,v,w\n1,A,1,\n2,A,2,\n",
        "empty.csv": "time,type,v,w\n",
        "late.csv": "time,type,v,w\n" + "1,A,0,\n" * 30 + "2,A,3,3\n3,A,4,2.5\n",
        "late.json": '{"time":1,"type":"A","v":0}\n' * 3
        + '{"time":2,"type":"A","v":3,"w":3}\n{"time":3,"type":"A","v":4,"w":2.5}\n',
    }
    for name, text in rows.items():
        (tmp_path / name).write_text(text)
        for where in ("w > 2", "w > 2.7 OR v = 1", "w = 1 OR v > 1"):
            found = run(spec, tmp_path / name, values=True, where=where).rows()
            expected = hamlet.run(query, tmp_path / name, where=where).rows()
            assert [row["value"] for row in found] == [row["min_x_v"] for row in expected], (name, where)
        with pytest.raises(WorkloadError, match="the input has no column 'ww'"):
            run(spec, tmp_path / name, where="ww > 2")


@pytest.mark.parametrize("names", [["a.csv"], ["a.jsonl"], ["a.parquet"], ["a.csv", "b.csv"], ["a.csv", "b.jsonl"]])
def test_the_time_may_be_a_value(names: list[str], tmp_path: Path) -> None:
    """As it is written, where there is one way, and as the number of seconds that it is."""
    spec = Specification.parse("input time: Float64  output t := time")
    events = [{"time": time / 4, "v": 1} for time in range(8)]
    paths = [written(tmp_path / name, events[place :: len(names)]) for place, name in enumerate(names)]
    for options, times in (({}, events), ({"where": "time > 0.5"}, events[3:]), ({"since": "0.6"}, events[3:])):
        found = run(spec, paths, values=True, **options).rows()
        assert [row["value"] for row in found] == [each["time"] for each in times]
    if names == ["a.csv"]:
        (tmp_path / "t.csv").write_text("time , v\n2024-03-05T10:00,1\n2024-03-05T10:00:01,2\n")
        spec = Specification.parse("input time: String, v: Int64  output t := time  output w := v")
        found = run(spec, tmp_path / "t.csv", values=True).rows()
        assert [row["value"] for row in found] == ["2024-03-05T10:00", 1, "2024-03-05T10:00:01", 2]


def test_bad_rows_of_a_file_are_those_of_a_pipe(tmp_path: Path) -> None:
    """Values that are none of their input's type among them, but not what no input reads."""
    (tmp_path / "e.csv").write_text("time,a,z\n1,1,1\n2,x,2\n,3,3\n4,4,y\n5,5\n")
    lines = [{"time": 1, "a": 1, "z": 1}, {"time": 2, "a": "x"}, {"a": 3}, {"time": 4, "a": 4, "z": "y"}]
    (tmp_path / "e.jsonl").write_text("\n".join([*map(json.dumps, lines), "no object"]))
    for name in ("e.csv", "e.jsonl"):
        results = run(SPEC, tmp_path / name, values=True, bad_rows="drop")
        assert [row["value"] for row in results.rows() if row["stream"] == "b"] == [1, 4]
        assert results.warnings[0].startswith("3 bad rows dropped: ")


def test_all_columns_that_do_not_fit_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("time,a,b\n1,1,true\n2,x,true\n3,1,y\n")
    with pytest.raises(
        DataError, match=r"e\.csv:3: column 'a': 'x' is no int64\n.*e\.csv:4: column 'b': 'y' is no bool"
    ):
        run(Specification.parse("input a: Int64, b: Bool"), tmp_path / "e.csv")


@pytest.mark.parametrize("bounds", [("1.5", "3.5"), (1.5, 3.5)])
def test_a_period_may_begin_between_two_ticks(bounds: tuple[Any, Any]) -> None:
    """For queries as well."""
    events = [{"time": time, "type": "A", "a": time} for time in range(5)]
    found = computed(events, since=bounds[0], until=bounds[1])
    assert [row["value"] for row in found if row["stream"] == "b"] == [2, 3]
    query = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A x WITHIN 10 s")
    assert [row["count"] for row in hamlet.run(query, events, since=bounds[0], until=bounds[1]).rows()] == [2]
