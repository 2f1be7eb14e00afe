"""Streams that do not end: rows as soon as they are final, lines however they are split, what is bad, what is late."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hamlet.cli import main
from hamlet.errors import DataError
from hamlet.input.live.arrow import ArrowStream

ROOT = Path(__file__).resolve().parents[2]
POLICY = ["monitor", "p.mfotl", "--signature", "p.sig"]
TASKS = {
    "monpoly": (POLICY, b"", b"@%d publish(%d)\n"),
    "policy json": (POLICY, b"", b'{"time": %d, "type": "publish", "x": %d}\n'),
    "policy csv": (POLICY, b"time,type,x\n", b"%d,publish,%d\n"),
    "query json": (["run", "q.sase"], b"", b'{"time": %d, "type": "A", "x": %d}\n'),
    "query csv": (["run", "q.sase"], b"time,type,x\n", b"%d,A,%d\n"),
    "specification json": (["monitor", "s.lola"], b"", b'{"time": %d, "x": %d}\n'),
    "specification csv": (["monitor", "s.lola"], b"time,x\n", b"%d,%d\n"),
    "pattern json": (["run", "m.sql"], b"", b'{"time": %d, "x": %d}\n'),
    "pattern csv": (["run", "m.sql"], b"time,x\n", b"%d,%d\n"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "p.mfotl").write_text("publish(x) AND x > 0")
    (tmp_path / "p.sig").write_text("publish(x: int)")
    (tmp_path / "q.sase").write_text("RETURN COUNT(*), SUM(A.x) PATTERN A+ WITHIN 1 s")
    (tmp_path / "s.lola").write_text('input x: Int64  trigger x > 0 "big"')
    clause = "ORDER BY time MEASURES FIRST(time) AS time, FIRST(x) AS x PATTERN (p) DEFINE p AS x > 0"
    (tmp_path / "m.sql").write_text(f"SELECT * FROM events MATCH_RECOGNIZE ({clause})")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def process(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "hamlet", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **options)


class Slow(io.RawIOBase):
    """Standard input that gives a few bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._parts: Iterator[bytes] = (data[at : at + size] for at in range(0, len(data), size))

    def read(self, _: int = -1) -> bytes:
        return next(self._parts, b"")

    def readable(self) -> bool:
        return True


def given(monkeypatch: pytest.MonkeyPatch, data: bytes, size: int = 1 << 20) -> None:
    class Input:
        buffer = Slow(data, size)

    monkeypatch.setattr(sys, "stdin", Input())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("task", TASKS)
def test_rows_come_before_the_input_ends(task: str) -> None:
    arguments, head, line = TASKS[task]
    with process(*arguments, "--input", "-", "--output", "-", stdin=subprocess.PIPE) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        run.stdin.write(head + line % (1, 1))
        run.stdin.write(line % (2, 2))
        run.stdin.flush()
        first = json.loads(run.stdout.readline())
        assert 1 in (first.get("time"), first.get("window_start"))
        assert run.poll() is None  # it waits for more
        run.stdin.write(line % (3, 3))
        run.stdin.close()
        assert len(run.stdout.read().splitlines()) == 2
        assert run.wait(timeout=60) == 0


@pytest.mark.parametrize("task", ["monpoly", "policy json", "policy csv"])
def test_a_stream_is_left_at_the_first_row(
    task: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments, head, line = TASKS[task]
    (folder / "late.mfotl").write_text("publish(x) AND x > 90")
    text = head + b"".join(line % (at, at) for at in range(100))
    for size, most in ((100, 300), (1 << 20, 1 << 20)):
        source = Slow(text, size)
        monkeypatch.setattr(sys, "stdin", type("Input", (), {"buffer": source}))
        first = ["--stop-at-first", "--fail-on-rows", "--input", "-", "--output", "-"]
        assert main(["monitor", "late.mfotl", *arguments[1:], *first]) == 3
        out, err = capfd.readouterr()
        assert out == '{"policy": "p", "time": 1, "time_point": 1, "x": 1}\n'
        assert "1 rows" in err or "1 row" in err
        left = sum(map(len, iter(source.read, b"")))
        assert left >= len(text) - most


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("task", TASKS)
def test_lines_split_anywhere_are_as_a_file(
    task: str, size: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments, head, line = TASKS[task]
    text = head + b"".join(line % (at // 2, at) for at in range(40))
    for mark, ending, last in ((b"", b"\n", b"\n"), (b"\xef\xbb\xbf", b"\r\n", b""), (b"", b"\n\n", b"")):
        lines = mark + text.rstrip(b"\n").replace(b"\n", ending) + last
        name = {"l": "e.log", "n": "e.jsonl", "v": "e.csv"}[task[-1] if task != "monpoly" else "l"]
        (folder / name).write_bytes(text)
        assert main([*arguments, "--input", name, "--output", "-", "--quiet"]) == 0
        expected = capfd.readouterr().out
        given(monkeypatch, lines, size)
        assert main([*arguments, "--input", "-", "--output", "-", "--quiet"]) == 0
        assert capfd.readouterr().out == expected
        assert expected.count("\n") == (20 if task.startswith("query") else 39)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("task", TASKS)
def test_a_line_of_blanks_is_as_in_a_file(
    task: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is blank in JSON and logs, and in CSV a row that lacks fields, whichever lines are read with it."""
    arguments, head, line = TASKS[task]
    lines = [line % (at, at) for at in range(1, 5)]
    is_bad = task.endswith("csv")
    for blank in (b"  \n", b" \t\r\n"):
        for place, size in ((0, 1), (0, 1 << 20), (2, 1), (2, 1 << 20), (4, 1), (4, 1 << 20)):
            data = head + b"".join([*lines[:place], blank, *lines[place:]])
            for mode in ("error", "drop"):
                given(monkeypatch, data, size)
                code = main([*arguments, "--input", "-", "--output", "-", "--quiet", "--bad-rows", mode])
                out, err = capfd.readouterr()
                if mode == "drop" or not is_bad:
                    assert (code, len(out.splitlines())) == (0, 4)
                    assert ("1 bad rows" in err) == is_bad
                else:
                    assert code == 2
                    assert f"standard input:{place + 2}: 1 field in place of" in err


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_column_of_row_patterns_that_comes_later_is_null_until_then(
    size: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "m.sql").write_text(
        "SELECT *, x + 1 AS next FROM events MATCH_RECOGNIZE (PARTITION BY k ORDER BY time "
        "MEASURES FIRST(time) AS since, SUM(x) AS x, UPPER(LAST(s)) AS s "
        "PATTERN (a b) DEFINE a AS LOWER(s) IS NULL, b AS b.X IS NOT NULL OR s = 'z')"
    )
    rows: list[dict[str, Any]] = [
        {},
        {"s": "z"},
        {"K": "u"},
        {"K": "u", "x": 1, "s": "q"},
        {"x": 2**62 + 1},
        {"x": 2.5},
    ]
    lines = "".join(json.dumps({"time": at, **row}) + "\n" for at, row in enumerate(rows))
    (folder / "e.jsonl").write_text(lines)
    found = []
    for source in ("e.jsonl", "-"):
        given(monkeypatch, lines.encode(), size)
        assert main(["run", "m.sql", "--input", source, "--output", "-", "--quiet"]) == 0
        found.append(
            [
                {name.lower(): value for name, value in json.loads(row).items()}
                for row in capfd.readouterr().out.splitlines()
            ]
        )
    assert sorted(found[0], key=str) == sorted(found[1], key=str)
    assert len(found[0]) == 3
    given(monkeypatch, b'{"time": 1, "X": 2, "spell": 3}\n')
    assert main(["run", "m.sql", "--input", "-", "--output", "-"]) == 0
    err = capfd.readouterr().err
    assert "note: no row has a value of k\nnote: no row has a value of s\n" in err
    assert "value of x" not in err


@pytest.mark.parametrize("task", ["policy csv", "query csv", "specification csv"])
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_column_that_is_no_text(
    task: str, size: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A condition over it was unknown for every event; it matters only to whom reads it, however lines are cut."""
    arguments, head, line = TASKS[task]
    ends = (b",a\n", b",\xff\n", b",a\n")
    lines = [(line % (at, at)).replace(b"\n", end) for at, end in enumerate(ends, 1)]
    data = head.replace(b"\n", b",k\n") + b"".join(lines)
    (folder / "e.csv").write_bytes(data)
    condition = ["--where", "k = 'a'"]
    assert main([*arguments, "--input", "e.csv", "--output", "-", *condition]) == 2
    assert "--where: column 'k' has the type binary, which no attribute can have" in capfd.readouterr().err
    for options, code, rows, said in (
        ([], 0, 3, "3 events"),
        (condition, 2, 1, "standard input:3: column 'k'"),
        ([*condition, "--bad-rows", "drop"], 0, 2, "1 bad rows: standard input:3: column 'k'"),
    ):
        given(monkeypatch, data, size)
        assert main([*arguments, "--input", "-", "--output", "-", *options]) == code
        out, err = capfd.readouterr()
        assert said in err
        assert len(out.splitlines()) in ({rows} if code == 0 else {rows - 1, rows})


def test_an_empty_pipe_is_a_stream_without_events(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for arguments, head, _ in TASKS.values():
        for data in (b"", head, b"\n\n"):
            given(monkeypatch, data)
            assert main([*arguments, "--input", "-", "--output", "-", "--quiet"]) == 0
            assert capfd.readouterr() == ("", "")
    for task, columns in (("query csv", "query,window_start,window_end,count,sum_A_x\n"), ("pattern csv", "")):
        given(monkeypatch, b"")  # a statement's columns are known by the first event
        assert main([*TASKS[task][0], "--input", "-", "--output", "-", "--output-format", "csv", "--quiet"]) == 0
        assert capfd.readouterr() == (columns, "")


NOTATIONS = ("policy", "query", "specification", "pattern")
BAD = {
    "monpoly": b"@5 publish(x)\n",
    "policy json": b'{"time": 5, "type": "publish", "x": "five"}\n',
    "policy csv": b"5,publish,five\n",
    "query json": b'{"time": 5,\n',
    "query csv": b"5,A,1,2\n",
    "specification json": b"[5]\n",
    "specification csv": b"noon,5\n",
    "pattern json": b'{"time": 5,\n',
    "pattern csv": b"5,5,5\n",
}


def no_time(task: str, time: bytes) -> bytes:
    """A line with another time than one."""
    line = TASKS[task][2] % (5, 5)
    return line.replace(b'"time": 5', b'"time": ' + time) if "json" in task else line.replace(b"5", time, 1)


@pytest.mark.parametrize(
    ("task", "bad"),
    [
        *BAD.items(),
        *((task, no_time(task, b"null" if "json" in task else b"")) for task in TASKS if task != "monpoly"),
        *((task, no_time(task, b'"noon"')) for task in TASKS if "json" in task and "pattern" not in task),
        *(
            (f"{each} json", (TASKS[f"{each} json"][2] % (5, 5)).replace(b"{", rb'{"z": "\ud83d", '))
            for each in NOTATIONS
        ),
        ("specification json", b'{"time": 5, "x": "5"}\n'),  # text where numbers were, as in a file
    ],
)
def test_bad_rows(task: str, bad: bytes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    arguments, head, line = TASKS[task]
    good = [line % (at, at) for at in range(1, 9)]
    data = head + b"".join([*good[:4], bad, *good[4:]])
    for mode in ("fail", "error"):
        given(monkeypatch, data)
        assert main([*arguments, "--input", "-", "--output", "-", "--quiet", "--bad-rows", mode]) == 2
        out, err = capfd.readouterr()
        assert f"standard input:{5 + bool(head)}:" in err
        assert ("column 'x': CSV conversion error" in err) == (bad == b"5,publish,five\n")
        assert len(out.splitlines()) >= 3  # those that were final
    given(monkeypatch, data)
    assert main([*arguments, "--input", "-", "--output", "-", "--quiet", "--bad-rows", "drop"]) == 0
    out, err = capfd.readouterr()
    assert len(out.splitlines()) == 8
    assert "1 bad rows" in err


def test_a_process_that_reads_many_streams_keeps_no_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []
    for _ in range(3):
        given(monkeypatch, b"@1 publish(1)\n")
        assert main([*POLICY, "--input", "-", "--output", "-", "--quiet"]) == 0
        counts.append(len(os.listdir("/dev/fd")))
    assert counts[1] == counts[2]


@pytest.mark.parametrize("types", ["1 2 2", '1 "2" 2', '"1" 2 "2"', "1.5 1 2", "null 1 2"])
@pytest.mark.parametrize("size", [9, 1 << 20])
def test_event_types_that_are_integers_are_as_in_a_file(
    types: str, size: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "n.sase").write_text('RETURN COUNT(*) PATTERN SEQ("1" a, "2"+) WITHIN 9 s')
    lines = [f'{{"time": {at}, "type": {each}}}\n' for at, each in enumerate(types.split())]
    (folder / "n.jsonl").write_text("".join(lines if "." not in types else lines[1:]))
    found = []
    for source in ("n.jsonl", "-"):
        given(monkeypatch, "".join(lines).encode(), size)
        assert main(["run", "n.sase", "--input", source, "--output", "-", "--quiet", "--bad-rows", "drop"]) == 0
        out, err = capfd.readouterr()
        found.append(out)
    assert found[0] == found[1]
    if "." in types:
        assert "'type' holds double, and event types are text or integers" in err


@pytest.mark.parametrize(
    ("task", "line", "said"),
    [
        ("policy json", b'{"time": 1, "type": "Publish", "x": 1}\n', "publish never occurs (did you mean Publish?)"),
        ("query csv", b"time,type,x\n1,B,1\n", "A never occurs"),
        ("specification json", b'{"time": 1, "y": 1}\n', "x never occurs"),
    ],
)
def test_what_never_comes_is_said(
    task: str,
    line: bytes,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    given(monkeypatch, line)
    assert main([*TASKS[task][0], "--input", "-", "--input-format", task.split()[1]]) == 0
    assert f"note: {said}\n" in capfd.readouterr().err


@pytest.mark.parametrize("form", [[], ["--input-format", "csv"], ["--input-format", "json"], ["--bad-rows", "drop"]])
@pytest.mark.parametrize(
    ("data", "told"),
    [
        (gzip.compress(b"time,type,x\n1,A,1\n", mtime=0), "standard input: this is compressed; send what gunzip -c"),
        (bz2.compress(b"time,type,x\n1,A,1\n"), "standard input: this is compressed; send what bunzip2 -c"),
        ("time,type,x\n1,A,1\n".encode("utf-16"), "standard input: this is UTF-16 text; send it as UTF-8"),
        (b"PAR1\x15\x04\x15", "standard input: this is Parquet"),
        (b"ARROW1\0\0\xff\xff", "standard input: this is an Arrow file; send an Arrow stream"),
    ],
)
def test_what_no_pipe_can_have(
    data: bytes, told: str, form: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, data)
    assert main(["run", "q.sase", "--input", "-", *form]) == 2
    assert told in capfd.readouterr().err


@pytest.mark.parametrize("task", ["policy csv", "query csv", "specification csv", "pattern csv"])
def test_lines_that_end_with_a_carriage_return_alone(
    task: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    command, header, line = TASKS[task]
    given(monkeypatch, (header + line % (1, 1)).replace(b"\n", b"\r"))
    assert main([*command, "--input", "-"]) == 2
    assert "standard input:1: lines end with a carriage return alone" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"time,type,x\n1,publish,1\n2,publish,\n3,publish,3\n", "note: 1 event is in no relation"),
        (
            b"@1 publish(1)\n@2 other(1) other(2)\n@3 publish(3)\n",
            "note: 2 events are of no predicate of the signature",
        ),
    ],
)
def test_events_that_no_relation_has_are_counted(
    data: bytes, told: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "e.log" if data.startswith(b"@") else folder / "e.csv").write_bytes(data)
    for source in ("-", "e.log" if data.startswith(b"@") else "e.csv"):
        given(monkeypatch, data)
        assert main([*POLICY, "--input", source, "--ignore-unknown"]) == 0
        assert told in capfd.readouterr().err


def test_a_log_has_time_points_of_its_own(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    given(monkeypatch, b"@1 publish(1) publish(2)\n")
    assert main([*POLICY, "--input", "-", "--time-points", "event"]) == 2
    assert "has time-points of its own" in capfd.readouterr().err


@pytest.mark.parametrize("source", ["-", "e.log"])
def test_a_log_has_no_columns_to_choose_by(
    source: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "e.log").write_bytes(b"@1 publish(1)\n")
    for options in (["--to", "5"], ["--where", "x > 1"]):
        given(monkeypatch, b"@1 publish(1)\n")
        assert main([*POLICY, "--input", source, *options]) == 2
        assert "has no columns, so --where, --from and --to cannot choose from it" in capfd.readouterr().err


def test_time_points_that_are_held_back_count_against_the_limit(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    log = b"".join(b"@%d publish(%d)\n" % (at, at) for at in range(9000))
    for limit, code in (("100 kB", 2), ("1 MB", 0)):
        given(monkeypatch, log)
        common = [*POLICY, "--input", "-", "--lateness", "100000", "--max-memory", limit]
        assert main([*common, "--output", "-", "--quiet"]) == code
    shown = capfd.readouterr()
    assert "limit, 97.7 KiB; events held back for earlier ones take 210.9 KiB" in shown.err
    assert shown.out.count("\n") == 8999


@pytest.mark.parametrize("drops", [False, True])
def test_one_hint_about_a_bad_line(
    drops: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    given(monkeypatch, b"time,type,x\n1,A\n2,A,1\n")
    assert main(["run", "q.sase", "--input", "-", *(["--bad-rows", "drop"] if drops else [])]) == (0 if drops else 2)
    assert capfd.readouterr().err.count("--bad-rows") == (0 if drops else 1)


@pytest.mark.parametrize("task", TASKS)
def test_late_events(task: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    arguments, head, line = TASKS[task]
    data = head + b"".join(line % (at, at) for at in (1, 2, 5, 3, 6, 4, 7))
    given(monkeypatch, data)
    assert main([*arguments, "--input", "-", "--output", "-", "--quiet"]) == 2
    out, err = capfd.readouterr()
    assert "is late" in err
    assert "--lateness" in err
    assert len(out.splitlines()) >= 2
    given(monkeypatch, data)
    assert main([*arguments, "--input", "-", "--output", "-", "--quiet", "--late", "drop"]) == 0
    out, err = capfd.readouterr()
    assert "2 late events" in err
    assert len(out.splitlines()) == 5
    given(monkeypatch, data)
    assert main([*arguments, "--input", "-", "--output", "-", "--quiet", "--lateness", "2"]) == 0
    out, err = capfd.readouterr()
    assert "late" not in err
    times = [row.get("time", row.get("window_start")) for row in map(json.loads, out.splitlines())]
    assert times == [1, 2, 3, 4, 5, 6, 7]


def test_a_time_point_is_decided_by_the_time_of_the_next(folder: Path) -> None:
    (folder / "p.mfotl").write_text("ALWAYS FORALL x. publish(x) IMPLIES EVENTUALLY[0,2] publish(0)")
    with process(*POLICY, "--input", "-", "--output", "-", stdin=subprocess.PIPE) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        run.stdin.write(b"@1 publish(7)\n@9 publish(0)\n")  # the second one is still open
        run.stdin.flush()
        assert json.loads(run.stdout.readline())["x"] == 7
        run.stdin.close()
        assert run.wait(timeout=60) == 0


@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_small_arrow_batches_that_came_together_are_one(size: int) -> None:
    texts = pa.array(["a", "b", None] * 30).dictionary_encode()
    table = pa.table({"time": range(90), "type": texts, "x": [0.5] * 90})
    data = b""
    for _ in range(2):  # a stream behind another one
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            for begin in range(0, 90, 3):
                writer.write_table(table.slice(begin, 3))
        data += sink.getvalue()
    stream = ArrowStream("events")
    parts = [data[begin : begin + size] for begin in range(0, len(data), size)]
    found = [each for part in parts for each in stream.feed(part)]
    assert pa.concat_tables(found).equals(pa.concat_tables([table, table]))
    assert len(found) == (2 if size > len(data) else len(found))
    assert (stream.offset, stream.rest) == (len(data), b"")


def test_batches_before_a_damaged_one_are_given() -> None:
    table = pa.table({"x": ["abc"] * 4})
    sink = io.BytesIO()
    ends = []
    with pa.ipc.new_stream(sink, table.schema) as writer:
        for _ in range(3):
            writer.write_table(table)
            ends.append(sink.tell())
    data = bytearray(sink.getvalue())
    at = data.index(b"abc", ends[1])
    data[at : at + 1] = b"\xff"  # no UTF-8
    stream, found = ArrowStream("events"), list[pa.Table]()
    with pytest.raises(DataError, match="the Arrow stream is damaged"):
        found.extend(stream.feed(bytes(data)))  # what is raised comes behind them
    assert sum(each.num_rows for each in found) == 8
    with pytest.raises(DataError, match=f"damaged at byte {ends[0]:,}"):
        list(ArrowStream("events").feed(bytes(data[: ends[0]]) + b"no message"))


def test_an_arrow_stream(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"time": [1, 2, 3], "type": ["publish", "A", "publish"], "x": [4, 5, 6]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    for arguments, rows in ((POLICY, 2), (["run", "q.sase"], 1), (["monitor", "s.lola"], 3)):
        for size in (5, 1 << 20):
            given(monkeypatch, sink.getvalue(), size)
            assert main([*arguments, "--input", "-", "--output", "-", "--quiet", "--input-format", "arrow"]) == 0
            assert len(capfd.readouterr().out.splitlines()) == rows


def test_the_wall_clock_moves_time() -> None:
    arguments = ["run", "q.sase", "--input", "-", "--output", "-", "--clock", "--idle", "0.2 s"]
    with process(*arguments, stdin=subprocess.PIPE) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        started = time.monotonic()
        run.stdin.write(b'{"time": 1, "type": "A", "x": 1}\n')
        run.stdin.flush()
        assert json.loads(run.stdout.readline())["count"] == 1
        assert time.monotonic() - started >= 0.9
        run.stdin.close()
        assert run.wait(timeout=60) == 0


def test_the_wall_clock_ends_an_open_time_point() -> None:
    arguments = [*POLICY, "--input", "-", "--output", "-", "--clock", "--idle", "0.2 s", "--time-unit", "ms"]
    with process(*arguments, stdin=subprocess.PIPE) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        run.stdin.write(b"@1 publish(7)\n")
        run.stdin.flush()
        assert json.loads(run.stdout.readline())["x"] == 7
        run.stdin.write(b"@100000 publish(8)\n")
        run.stdin.close()
        assert json.loads(run.stdout.readline())["x"] == 8
        assert run.wait(timeout=60) == 0


def test_rows_in_a_folder_are_seen_at_once(folder: Path) -> None:
    with process(*POLICY, "--input", "-", "--output", "out", "--output-format", "csv", stdin=subprocess.PIPE) as run:
        assert run.stdin is not None
        run.stdin.write(b"@1 publish(1)\n@2 publish(2)\n")
        run.stdin.flush()
        file = folder / "out" / "policy=p" / "part-00000.csv"
        deadline = time.monotonic() + 60
        while not (file.exists() and file.read_text().count("\n") == 2) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert file.read_text() == "time,time_point,x\n1,0,1\n"
        run.stdin.close()
        assert run.wait(timeout=60) == 0
    assert file.read_text() == "time,time_point,x\n1,0,1\n2,1,2\n"


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_stream_writes_the_files_of_a_run(folder: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    events = "time,type,x\n1,A,2\n1,A,3\n2,A,4\n"
    (folder / "e.csv").write_text(events)
    given(monkeypatch, events.encode())
    for source, out in (("e.csv", "whole"), ("-", "live")):
        assert main(["run", "q.sase", "--input", source, "--output", out, "--output-format", form, "-q"]) == 0
    whole, live = (next((folder / out / "query=q1").iterdir()).read_text() for out in ("whole", "live"))
    assert whole == live


CHOICES = (
    ["--where", "w > 1.6 AND s <> 'b'"],
    ["--where", "x > 3"],
    ["--from", "7", "--to", "20"],
    ["--order-column", "o"],
    ["--order-column", "o", "--where", "s = 'a'", "--from", "3"],
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("command", [["monitor", "t.lola", "--values"], ["run", "t.sase"], ["monitor", "t.mfotl"]])
def test_events_of_a_pipe_are_chosen_as_those_of_a_file(
    command: list[str], form: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "t.lola").write_text("input x: Int64, s: String  output n := n.offset(by: -1).defaults(to: 0) + x")
    (folder / "t.sase").write_text("RETURN s, COUNT(*), SUM(A.x) AS n PATTERN A+ GROUP-BY s WITHIN 5 s")
    (folder / "t.mfotl").write_text("A(x, s) AND ONCE[0,2] EXISTS y. A(y, s) AND y > x")
    (folder / "t.sig").write_text("A(x: int, s: string)")
    if command[1] == "t.mfotl":
        command = [*command, "--signature", "t.sig"]
    lot = random.Random(form)
    names = ("time", "type", "x", "s", "o", "w")
    rows = [
        (
            at // 3,
            "A",
            lot.randrange(9),
            lot.choice("abc"),
            lot.randrange(5),
            lot.choice([2, 7] if at < 9 else [1.5, 2]),
        )
        for at in range(60)
    ]
    text = ",".join(names) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    if form == "json":
        text = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    (folder / "t").write_text(text)
    common = [*command, "--output", "-", "--quiet", "--input-format", form]
    for chosen in CHOICES:
        assert main([*common, *chosen, "--input", "t"]) == 0
        expected = capfd.readouterr().out
        assert expected
        for size in (50, 1 << 20):
            given(monkeypatch, text.encode(), size)
            assert main([*common, *chosen, "--input", "-"]) == 0
            assert capfd.readouterr().out == expected, chosen
    given(monkeypatch, text.encode())
    assert main([*common, "--order-column", "nope", "--input", "-"]) == 2
    assert "nope" in capfd.readouterr().err
