"""What the command line reads and where it may write: standard input, pipes, and files that must not be replaced."""

from __future__ import annotations

import io
import os
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from hamlet.cli import main

EVENTS = "time,type,k\n1,A,x\n3,B,x\n2,B,x\n"
ROW = '{"query": "q1", "window_start": 0, "window_end": 10, "count": 3}\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "w.sase").write_text("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s")
    (tmp_path / "e.csv").write_text(EVENTS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*options: str) -> int:
    return main(["run", "w.sase", *options])


def test_standard_input_is_copied_where_all_of_it_is_needed_and_its_copy_removed(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(EVENTS.encode())))
    before = set(folder.iterdir())
    assert run("--input", "-", "--input-format", "csv", "--output", "-", "--quiet", "--limit", "9") == 0
    assert capfd.readouterr().out == ROW
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize("more", [["--lateness", "1"], ["--limit", "9"]])
def test_a_pipe_is_read(folder: Path, capfd: pytest.CaptureFixture[str], more: list[str]) -> None:
    os.mkfifo(folder / "pipe.csv")
    writer = threading.Thread(target=(folder / "pipe.csv").write_text, args=(EVENTS,))
    writer.start()
    assert run("--input", "pipe.csv", "--output", "-", "--quiet", *more) == 0
    writer.join()
    assert capfd.readouterr().out == ROW


def test_a_copied_pipe_is_what_its_first_bytes_say(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    events = pa.table({"time": [1, 2], "type": ["A", "B"]})
    with pa.ipc.new_stream("a.arrow", events.schema) as writer:
        writer.write_table(events)
    assert run("--input", "a.arrow", "--output", "-", "--quiet") == 0  # the name says what it is
    assert '"count": 1}' in capfd.readouterr().out
    cases = {
        EVENTS.encode(): "",
        (folder / "a.arrow").read_bytes(): "error: an Arrow stream is read as it comes, by hamlet run, monitor and sql",
        b"@1 A(7)\n": "error: a log of MonPoly is for policies (.mfotl), which hamlet monitor runs",
    }
    for place, (data, said) in enumerate(cases.items()):
        pipe = folder / f"pipe{place}"
        os.mkfifo(pipe)
        writes = threading.Thread(target=pipe.write_bytes, args=(data,))
        writes.start()
        assert run("--input", pipe.name, "--output", "-", "--quiet", "--limit", "9") == (2 if said else 0)
        writes.join()
        assert capfd.readouterr().err.startswith(said)


@pytest.mark.parametrize(
    ("given", "options", "said", "code"),
    [
        ('{"time": 1, "type": "A"}\n{"time": "x", "type": "A"}\n', [], "error: standard input:2: attribute 'time'", 2),
        ("", [], "note: there are no events", 0),
        ("", ["--input-format", "csv"], "note: there are no events", 0),
        ("", ["--input-format", "parquet"], "error: standard input is empty", 2),
    ],
    ids=["wrong", "nothing", "no CSV", "no Parquet"],
)
def test_a_copied_input_has_its_own_name_and_may_be_empty(
    given: str,
    options: list[str],
    said: str,
    code: int,
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    assert run("--input", "-", "--output", "-", "--limit", "9", *options) == code
    assert capfd.readouterr().err.startswith(said)


def test_a_statement_reads_a_file_in_the_format_that_is_named(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "t.txt").write_text('{"x": 1}\n{"x": 2}\n')
    asked = ["sql", "SELECT SUM(x) AS s FROM t", "--output", "-", "--quiet"]
    assert main([*asked, "--input", "t=t.txt", "--input-format", "json"]) == 0
    assert capfd.readouterr().out == '{"s": 3}\n'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--input", "e.jsonl", "--columns", "time,type"], "error: --columns is for CSV, and the input is another"),
        (["--input", "e.csv", "--input-format", "monpoly"], "error: a log of MonPoly is for policies (.mfotl)"),
        (["--input", "/dev/null", "--input-format", "csv"], "error: /dev/null is a pipe or a device"),
        (
            ["--input", "http://there/e.csv"],
            "error: http://there/e.csv is a URL, and files are read here; hamlet submit",
        ),
        (["--input", "wide.csv"], "error: wide.csv is UTF-16 text; save it as UTF-8\n"),
        (
            ["--input", "packed.csv"],
            "error: packed.csv is compressed with gzip; give it a name that ends in .gz, such as ",
        ),
    ],
)
def test_what_cannot_be_read(folder: Path, capfd: pytest.CaptureFixture[str], options: list[str], message: str) -> None:
    (folder / "wide.csv").write_bytes(EVENTS.encode("utf-16"))
    (folder / "packed.csv").write_bytes(b"\x1f\x8b\x08\x00")
    assert run(*options) == 2
    assert capfd.readouterr().err.startswith(message)


@pytest.mark.parametrize("source", ["e.jsonl", "parts"])
@pytest.mark.parametrize("option", ["--trace", "--report"])
def test_what_is_read_is_not_replaced(
    folder: Path, capfd: pytest.CaptureFixture[str], option: str, source: str
) -> None:
    (folder / "parts").mkdir()
    text = '{"time": 1, "type": "A"}\n{"time": 2, "type": "B"}\n'
    for name in ("e.jsonl", "parts/e.jsonl"):
        (folder / name).write_text(text)
    place = folder / source if source == "e.jsonl" else folder / "parts" / "e.jsonl"
    assert run("--input", source, option, str(place)) == 2
    assert f"error: {option} {str(place)!r} would replace a file that is read here" in capfd.readouterr().err
    assert place.read_text() == text


@pytest.mark.parametrize(("option", "name"), [("--trace", "t.jsonl"), ("--report", "r.html")])
def test_no_other_file_goes_into_the_results(
    folder: Path, capfd: pytest.CaptureFixture[str], option: str, name: str
) -> None:
    """The folder is replaced as a whole when the rows are there, and the file would be gone."""
    (folder / "out").mkdir()
    assert run("--input", "e.csv", "--output", "out", "--overwrite", option, f"out/{name}") == 2
    assert f"error: {option} 'out/{name}' lies in the output directory 'out'" in capfd.readouterr().err
    assert not list((folder / "out").iterdir())


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (
            ["rows.csv"],
            "rows.csv will be a folder of parquet files, one folder per query; for one file write --output - ",
        ),
        (
            ["rows.parquet", "--output-format", "csv"],
            "rows.parquet will be a folder of csv files, one folder per query\n",
        ),
        (["rows"], None),
        (["rows.csv", "--quiet"], None),
    ],
)
def test_an_output_named_like_a_file(
    folder: Path, capfd: pytest.CaptureFixture[str], options: list[str], note: str | None
) -> None:
    assert run("--input", "e.csv", "--output", *options) == 0
    said = capfd.readouterr().err
    assert note is None or f"note: {note}" in said
    assert ("will be a folder" in said) == (note is not None)
    assert (folder / options[0] / "query=q1").is_dir()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run"], "error: missing argument 'WORKLOAD.sase|TEXT.sql'\nhint: hamlet run --help shows how it is used\n"),
        (["rum"], "error: no such command 'rum'; did you mean 'run'?\nhint: hamlet --help shows how it is used\n"),
        (["run", "w.sase", "--zzz"], "error: no such option '--zzz'\nhint: hamlet run --help shows how it is used\n"),
        (
            ["explain", "w.sase", "--html", "e.html", "--format", "dot"],
            "error: --html writes a page and prints nothing, so --format says nothing; give one of them\n"
            "hint: hamlet explain --help shows how it is used\n",
        ),
    ],
)
def test_wrong_arguments_are_errors_like_all_others(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main(arguments) == 2
    assert capfd.readouterr() == ("", said)


def test_no_command_shows_the_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage: hamlet [OPTIONS] COMMAND" in capfd.readouterr().err


def test_no_rows_asked_for(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("--input", "e.csv", "--limit", "0", "--quiet") == 0
    assert capfd.readouterr().out == "q1: 1 row\n... and 1 more row; --output writes them all\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--stream"], "--stream needs --checkpoint DIR, where the job keeps its place and its state"),
        (["--stream", "--overwrite"], "--overwrite belongs to a batch; --stream goes on from its checkpoint"),
        (["--stream", "--report", "r.html"], "for a page about the files that are there, submit them without --stream"),
        (["--stream", "--trace", "t.json"], "for a trace of the files that are there, submit them without --stream"),
        (["--stream", "--from", "5"], "--from belongs to a batch; --where can compare the time of a --stream"),
        (
            ["--stream", "--products", "always"],
            "--products belongs to a batch; --stream sends every event to its slice",
        ),
        (["--stream", "--semijoin", "on"], "--semijoin belongs to a batch; --stream does not know what keys will have"),
        (["--checkpoint", "c"], "--checkpoint belongs to --stream"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_options_of_jobs_that_do_not_go_together(
    folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    """They are refused before Spark starts and before anything is written."""
    before = set(folder.iterdir())
    assert main(["submit", "w.sase", "--input", "e.csv", "--output", "out", *options]) == 2
    assert said in capsys.readouterr().err
    assert set(folder.iterdir()) == before


def test_queries_are_not_picked_from_a_policy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "p.mfotl").write_text("A(x)")
    assert main(["submit", "p.mfotl", "--input", "e.csv", "--output", "out", "--query", "q1"]) == 2
    assert "--query is for workloads of trend queries (.sase)" in capsys.readouterr().err
