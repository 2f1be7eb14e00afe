"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet.cli
import hamlet.cli.run
from hamlet.errors import UnsupportedError
from hamlet.java import check_java
from hamlet.output.digits import integer_of

ROOT = Path(__file__).resolve().parents[2]
WORKLOAD = """\
-- how many ways a start is followed by readings
trends: RETURN g, COUNT(*), SUM(B.x) AS total PATTERN SEQ(A, B+) WHERE [g] GROUP-BY g WITHIN 20000 s;
pairs: RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 10 s;
none: RETURN COUNT(*) PATTERN SEQ(A, C) WITHIN 10 s;
"""
EVENTS = 18_000  # one A and 17,999 B: 2^17,999 - 1 trends, 5,419 digits


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a workload and its events, which is the current one."""
    (tmp_path / "w.sase").write_text(WORKLOAD)
    table = pa.table(
        {
            "time": range(EVENTS),
            "type": ["A"] + ["B"] * (EVENTS - 1),
            "g": ["x"] * EVENTS,
            "x": [1] * EVENTS,
        }
    )
    pq.write_table(table, tmp_path / "events.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def hamlet_main(*arguments: str) -> int:
    return hamlet.cli.main(list(arguments))


def process(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """The command line in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-m", "hamlet", *arguments], env=environment, **options)


# ------------------------------------------------------------------------------------------------------------ run


def test_tables_on_standard_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hamlet_main("run", "w.sase", "--input", "events.parquet") == 0
    out, err = capsys.readouterr()
    assert (
        "trends: 1 row\n" in " ".join(out.split(" ")).replace(" \n", "\n").replace("  ", "") or "trends: 1 row" in out
    )
    assert "e+5418" in out  # abbreviated for people
    assert "none: 0 rows" in out
    assert err.rstrip().endswith(" s")
    assert f"{EVENTS:,} events" in err
    assert "rows" in err


def test_only_the_first_rows_are_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "many.sase").write_text("RETURN COUNT(*) PATTERN B WITHIN 10 s")
    assert hamlet_main("run", "many.sase", "--input", "events.parquet", "--quiet") == 0
    out, err = capsys.readouterr()
    assert "q1: 1,800 rows" in out
    assert "... and 1,780 more rows; --output writes them all" in out
    assert err == ""


def test_json_on_standard_output(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert hamlet_main("run", "w.sase", "--input", "events.parquet", "--output", "-") == 0
    out, err = capfdbinary.readouterr()
    rows = [json.loads(line, parse_int=integer_of) for line in out.decode().splitlines()]
    assert list(rows[0]) == ["query", "window_start", "window_end", "g", "count", "total"]
    assert rows[0]["count"] == 2 ** (EVENTS - 1) - 1
    assert rows[1:] == [{"query": "pairs", "window_start": 0, "window_end": 10, "count": 9}]
    assert b"events" in err


def test_csv_on_standard_output(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--input", "events.parquet", "--output", "-", "--output-format", "csv", "--quiet"]
    assert hamlet_main("run", "w.sase", *arguments) == 0
    out, err = capfd.readouterr()
    header, first, second = csv.reader(out.splitlines())
    assert header == ["query", "window_start", "window_end", "g", "count", "total"]
    assert integer_of(first[4]) == 2 ** (EVENTS - 1) - 1
    assert second == ["pairs", "0", "10", "", "9", ""]
    assert err == ""


@pytest.mark.parametrize("output_format", [None, "json", "csv"])
def test_a_directory(folder: Path, output_format: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    more = ["--output-format", output_format] if output_format else []
    run = ["run", "w.sase", "--input", "events.parquet", "--output", "out", *more]
    assert hamlet_main(*run) == 0
    suffix = output_format or "parquet"
    files = sorted(str(path) for path in Path("out").rglob("*.*"))
    assert files == [f"out/query={name}/part-00000.{suffix}" for name in ("none", "pairs", "trends")]
    if output_format is None:
        count = pq.ParquetFile("out/query=trends/part-00000.parquet").read().column("count")[0].as_py()
        assert integer_of(count) == 2 ** (EVENTS - 1) - 1
    assert hamlet_main(*run) == 2
    assert "out is not empty; give --overwrite" in capsys.readouterr().err
    assert hamlet_main(*run, "--overwrite") == 0


def test_column_options(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("e.txt").write_text("at,what,no\n5000,B,2\n5000,A,1\n")
    Path("v.sase").write_text("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 10 s")
    columns = ["--time-column", "at", "--type-column", "what", "--order-column", "no", "--time-unit", "ms"]
    assert hamlet_main("run", "v.sase", "-i", "e.txt", "--input-format", "csv", "-o", "-", "-q", *columns) == 0
    assert json.loads(capfd.readouterr().out) == {"query": "q1", "window_start": 0, "window_end": 10_000, "count": 1}


def test_every_policy_gives_the_same_rows(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = set()
    for sharing in ("dynamic", "static", "never"):
        assert hamlet_main("run", "w.sase", "-i", "events.parquet", "-o", "-", "-q", "--sharing", sharing) == 0
        found.add(capfd.readouterr().out)
    assert len(found) == 1


# --------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "no.sase", "--input", "events.parquet"], "there is no workload 'no.sase'"),
        (["run", "w.sase"], "missing option '--input'"),
        (["run", "w.sase", "--input", "no.csv"], "error: no such file: no.csv"),
        (["run", "w.sase", "--input", "w.sase"], "cannot tell the format from the name"),
        (["run", "w.sase", "--input", "events.parquet", "--time-column", "tiem"], "did you mean 'time'?"),
        (["run", "w.sase", "--input", "events.parquet", "--output-format", "csv"], "--output-format needs --output"),
        (
            ["run", "w.sase", "--input", "events.parquet", "--output", "-", "--output-format", "parquet"],
            "Parquet cannot",
        ),
        (["run", "w.sase", "--input", "events.parquet", "--output", "w.sase"], "w.sase is a file"),
        (["run", "w.sase", "--input", "events.parquet", "--threads", "0"], "0 is not in the range x>=1"),
        (
            ["run", "w.sase", "--input", "events.parquet", "--output", "out", "--count-type", "int64"],
            "query trends, window [0, 20000), group g=x: count = ",
        ),
        (["submit", "w.sase", "--input", "events.parquet", "--output", "-"], "hamlet submit writes to a directory"),
    ],
)
def test_mistakes_exit_with_2(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert hamlet_main(*arguments) == 2
    out, err = capsys.readouterr()
    assert message in " ".join(err.split())
    assert "Traceback" not in err
    assert out == ""
    assert not Path("out").exists()


def test_check_reports_all_errors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.sase").write_text(
        "q: RETURN COUNT(*) PATTERN SEQ(A, B WITHIN 10 s;\nr: RETURN COUNT(*) PATTERN A WITHIN 5 parsecs;\n"
    )
    assert hamlet_main("check", "bad.sase") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "bad.sase:1:" in err
    assert "bad.sase:2:" in err
    assert "^" in err


def test_check_with_an_input(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert hamlet_main("check", "w.sase") == 0
    assert capsys.readouterr() == ("w.sase: 3 queries, no errors\n", "")
    assert hamlet_main("check", "w.sase", "--input", "events.parquet", "--quiet") == 0
    assert capsys.readouterr() == ("", "")
    Path("x.sase").write_text("RETURN SUM(B.xx) PATTERN SEQ(A, B+) WITHIN 10 s")
    assert hamlet_main("check", "x.sase") == 0
    capsys.readouterr()
    assert hamlet_main("check", "x.sase", "--input", "events.parquet") == 2
    assert "x.sase:1:" in capsys.readouterr().err


def test_check_reports_mistakes_of_the_text_and_of_columns_together(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("x.sase").write_text(
        "RETURN COUNT(*) PATTERN SEQ(A, B WITHIN 10 s;\nRETURN COUNT(Z) PATTERN A WITHIN 5 s;\n"
        "RETURN SUM(B.xx) PATTERN SEQ(A, B+) WITHIN 10 s"
    )
    assert hamlet_main("check", "x.sase", "--input", "events.parquet") == 2
    said = capsys.readouterr().err
    assert [line.split(":")[1] for line in said.splitlines() if line.startswith("x.sase")] == ["1", "2", "3"]
    assert "no variable 'Z'" in said
    assert "no column 'xx'" in said
    assert hamlet_main("check", "x.sase", "--input", "missing.parquet") == 2
    assert "no variable 'Z'" in capsys.readouterr().err


def test_anything_else_exits_with_1(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(hamlet.cli.run, "_compute", fails)
    assert hamlet_main("run", "w.sase", "--input", "events.parquet") == 1
    err = capsys.readouterr().err
    assert "error: ZeroDivisionError: oops\nthis is a bug" in err
    assert "Traceback" not in err
    monkeypatch.setenv("HAMLET_DEBUG", "1")
    assert hamlet_main("run", "w.sase", "--input", "events.parquet") == 1
    assert "Traceback" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------ the process


@pytest.mark.parametrize("output", [["-o", "-"], []], ids=["json", "tables"])
def test_a_closed_pipe_is_quiet(folder: Path, output: list[str]) -> None:
    many = "".join(f"{name}: RETURN COUNT(*) PATTERN B WITHIN 1 s;" for name in map("n{}".format, range(40)))
    Path("many.sase").write_text(many)
    arguments = ["run", "many.sase", "-i", "events.parquet", "-q", *output]
    run = process(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout is not None
    assert b"n0" in run.stdout.readline()
    run.stdout.close()
    assert run.stderr is not None
    assert run.stderr.read() == b""
    assert run.wait() == 0


@pytest.mark.parametrize("command", ["explain w.sase", "version --json", "--help", "run --help"])
def test_whoever_closes_the_pipe_at_once_ends_every_command_well(folder: Path, command: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    run = process(*command.split(), stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    _, err = run.communicate()
    assert (run.returncode, err) == (0, b"")


def test_closed_standard_streams(folder: Path) -> None:
    command = f"exec {sys.executable} -m hamlet run w.sase --input events.parquet >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False, timeout=60).returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_an_error(folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        run = process("run", "w.sase", "-i", "events.parquet", "-o", "-", "-q", stdout=full, stderr=subprocess.PIPE)
        _, err = run.communicate()
    assert run.returncode == 1
    assert b"No space left" in err
    assert b"Traceback" not in err


def test_an_interrupt_leaves_nothing(folder: Path) -> None:
    os.mkfifo("events.jsonl")  # a run that waits for its input
    whole = ["--report", "r.html"]  # with which a pipe is read to its end first
    run = process(
        "run", "w.sase", "-i", "events.jsonl", "-o", "out", *whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 30
    with open("events.jsonl", "wb", buffering=0):
        while time.monotonic() < deadline and run.poll() is None:
            run.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):  # a second signal would end a slow exit
                run.wait(timeout=5)
    out, err = run.communicate(timeout=30)
    assert run.returncode == 1, err
    assert b"interrupted" in err
    assert out == b""
    assert not Path("out").exists()


def test_help_has_examples_and_needs_no_spark() -> None:
    code = "import sys; from hamlet.cli import main; main(['run', '--help']); assert 'pyspark' not in sys.modules"
    shown = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert "Examples:\n" in shown.stdout
    for option in ("--input-format", "--count-type", "--benefit", "--overwrite", "--order-column"):
        assert option in shown.stdout


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["version"], ["--version"]):
        assert hamlet_main(*arguments) == 0
        assert capsys.readouterr().out.startswith("hamlet 0.")


# ------------------------------------------------------------------------------------------------------------- Java


def java_that_says(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    java = folder / "bin" / "java"
    java.parent.mkdir(exist_ok=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}\nEND\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder))


def test_java_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java_that_says(tmp_path, 'openjdk version "17.0.9" 2023-10-17', monkeypatch)
    assert check_java() == tmp_path / "bin" / "java"
    java_that_says(tmp_path, 'java version "1.8.0_292"', monkeypatch)
    with pytest.raises(UnsupportedError, match=r"needs Java 17 or newer, and .* is Java 8; install"):
        check_java()
    java_that_says(tmp_path, "no virtual machine here", monkeypatch)
    with pytest.raises(UnsupportedError, match="does not tell its version"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(UnsupportedError, match=r"JAVA_HOME is .*nowhere"):
        check_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnsupportedError, match="there is no java on the PATH"):
        check_java()
