"""What makes the command line pleasant: --where, --query, --limit, --dates, tables that fit, doctor, completion."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.cli import doctor, main
from hamlet.cli.progress import progress_bar, run_bar, summary_line, task_bar
from hamlet.cli.run import _doubting
from hamlet.cli.show import show_tables
from hamlet.engine.where import Filter, FilteredEvents
from hamlet.errors import DataError, OptionError, WorkloadError
from hamlet.input.events import open_events
from hamlet.output.digits import short_text
from hamlet.output.query_part import query_results, query_rows
from hamlet.output.query_rows import QueryRows
from hamlet.runtime.progress import _doing, counted

WORKLOAD = """
trends: RETURN g, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY g WITHIN 100 s;
every: RETURN COUNT(*), LOG2(COUNT(*)) AS bits PATTERN B WITHIN 10 s;
"""
SAMPLE = pa.table(
    {
        "time": pa.array(range(12), pa.int64()),
        "type": ["A", "B", "B", "C", "A", "B", "B", None, "B", "A", "B", "B"],
        "g": ["x", "x", "y", "x", "y", "y", None, "x", "x", "x", "x", "NULL"],
        "v": pa.array([1, 2, 3, 4, 5, None, 7, 8, 9, 10, 11, 12], pa.int64()),
        "d": [1.0, float("nan"), 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0],
        "from": [1] * 6 + [2] * 6,
        "good": [True, False] * 6,
    }
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "w.sase").write_text(WORKLOAD, encoding="utf-8")
    pq.write_table(SAMPLE, tmp_path / "e.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows_of(capfd: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    assert main(["run", "w.sase", "-i", "e.parquet", "-o", "-", "-q", *options]) == 0
    return [json.loads(line) for line in capfd.readouterr().out.splitlines()]


# ------------------------------------------------------------------------------------------------------- --where


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("v > 4", [4, 6, 7, 8, 9, 10, 11]),  # NULL is not above 4
        ("NOT v > 4", [0, 1, 2, 3]),
        ("d < 3", [0, 2]),  # NaN is NULL
        ("g = x AND good = TRUE", [0, 8, 10]),
        ("g = 'NULL'", [11]),
        ("g IS NULL OR g IN (y, z)", [2, 4, 5, 6]),
        ("type = A", [0, 4, 9]),
        ("type IS NULL", [7]),
        ("time BETWEEN 3 AND 5", [3, 4, 5]),
        ('v - 1 = time AND "from" % 2 = 0', [6, 7, 8, 9, 10, 11]),
        ("event.v = 4 or event.v * 2 = 4", [1, 3]),
        ("g > x", [2, 4, 5]),
        ("1 = 1", list(range(12))),
    ],
)
def test_where_selects(condition: str, expected: list[int]) -> None:
    [batch] = FilteredEvents(open_events(SAMPLE), condition).batches(["v"])
    assert batch.column("time").to_pylist() == expected


def test_where_of_nothing_gives_no_batch() -> None:
    assert list(FilteredEvents(open_events(SAMPLE), "v > 100").batches()) == []


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("vv > 4", "--where:1:1: the input has no column 'vv'\n    vv > 4\n    ^^\nhint: did you mean v?"),
        ("v > vv", "the input has no column 'vv'"),
        ("grp = x", "the input has no column 'grp'"),
        ("v = 'x'", "v (INT) cannot be compared with 'x' (STRING)"),
        ("v > 4 5", "expected AND or OR after 'v > 4'"),
        ("v", "'v' is a value where a condition is expected"),
        ("[g]", "an equivalence speaks of trends"),
        ("v < NEXT(event).v", "variables, NEXT and PREV are not there"),
        ("A.v < 3", "hint: write the column alone: v"),
        ("good + 1 = 2", "good (BOOLEAN) is not a number"),
        ("", "expected a value or a condition"),
        ("v > 'x", "'"),
    ],
)
def test_where_says_what_is_wrong(condition: str, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        FilteredEvents(open_events(SAMPLE), condition)
    assert message in str(caught.value)
    assert '"event"' not in str(caught.value)


def test_where_reports_all_mistakes_at_once() -> None:
    with pytest.raises(WorkloadError) as caught:
        Filter("vv > 4 AND (w = 2 OR NOT u = 1)", open_events(SAMPLE).schema)
    assert len(caught.value.diagnostics) == 3


def test_where_beyond_64_bits_names_the_event() -> None:
    with pytest.raises(DataError, match=r"v \* 9223372036854775807 passes 64 bits for the event \(time=1, "):
        list(FilteredEvents(open_events(SAMPLE), "v * 9223372036854775807 > 0").batches())


def test_where_on_the_command_line(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    all_rows = rows_of(capfd, "--query", "trends")
    assert [row["count"] for row in all_rows] == [7 + 1, 1]  # x: A BB; A B -> see below, y: A B
    assert [row["count"] for row in rows_of(capfd, "--query", "trends", "--where", "time < 9")] == [3, 1]
    assert main(["run", "w.sase", "-i", "e.parquet", "--where", "tiem < 9"]) == 2
    assert "did you mean time?" in capfd.readouterr().err


# ------------------------------------------------------------------------------------------------ --query, --limit


def test_queries_are_chosen_by_name(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert {row["query"] for row in rows_of(capfd, "--query", "every")} == {"every"}
    both = rows_of(capfd, "--query", "every", "--query", "trends")
    assert [row["query"] for row in both] == ["trends", "trends", "every", "every"]  # the order is the text's
    assert main(["run", "w.sase", "-i", "e.parquet", "--query", "trend"]) == 2
    assert "there is no query 'trend'; did you mean 'trends'?" in capfd.readouterr().err
    assert main(["explain", "w.sase", "--query", "every", "--format", "json"]) == 0
    assert "trends" not in capfd.readouterr().out


def test_a_chosen_query_is_what_it_was() -> None:
    workload = hamlet.Workload.parse(WORKLOAD)
    assert workload.select(["every"]).names == ("every",)
    events = SAMPLE.to_pylist()
    whole = hamlet.run(workload, events).rows()
    for name in workload.names:
        assert hamlet.run(workload.select([name]), events).rows() == [row for row in whole if row["query"] == name]
        assert hamlet.Workload.parse(str(workload.select([name]))).names == (name,)
    with pytest.raises(OptionError, match="the queries are trends, every"):
        workload.select(["zzz"])
    assert workload.select("every").names == ("every",)
    with pytest.raises(OptionError, match="name a query to select; the queries are trends, every"):
        workload.select([])


def test_a_chosen_query_keeps_its_name_and_its_place_in_messages() -> None:
    text = "RETURN COUNT(*) PATTERN A+ WITHIN 1 s;\nRETURN COUNT(*)\nPATTERN B+ WHERE B.v < 3 WITHIN 1 s"
    assert hamlet.Workload.parse(text).select(["q2"]).names == ("q2",)
    named = hamlet.Workload.parse("a: " + text.replace("\nRETURN", "\nb: RETURN")).select(["b"])
    with pytest.raises(WorkloadError, match="<workload>:3:18: the input has no column 'v'"):
        hamlet.run(named, SAMPLE.drop_columns(["v"]))


def test_limit(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert [row["query"] for row in rows_of(capfd, "--limit", "1")] == ["trends", "every"]
    assert rows_of(capfd, "--limit", "0") == []
    assert main(["run", "w.sase", "-i", "e.parquet", "-q", "--limit", "1", "--query", "every"]) == 0
    out = capfd.readouterr().out
    assert "every: 2 rows" in out
    assert "... and 1 more row; --output writes them all" in out
    assert main(["run", "w.sase", "-i", "e.parquet", "-q", "--limit", "1", "-o", "out"]) == 0
    assert pq.ParquetFile("out/query=every/part-00000.parquet").metadata.num_rows == 1


# --------------------------------------------------------------------------------------------------------- tables


def shown(results: hamlet.Results, width: int, capsys: pytest.CaptureFixture[str], **options: Any) -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hamlet.cli.show._WIDTH", width)
        show_tables(results, **options)
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def wide() -> hamlet.Results:
    text = """q: RETURN g, COUNT(*), COUNT(B), SUM(B.v) AS a_rather_long_name_for_a_sum, MAX(B.v)
              PATTERN B+ GROUP-BY g WITHIN 10000 s"""
    events = [{"time": place, "type": "B", "g": "a long name " * 20, "v": place} for place in range(1000)]
    return hamlet.run(hamlet.Workload.parse(text), events)


@pytest.mark.parametrize("width", [30, 40, 60, 80, 100, 160])
def test_tables_fit_the_width(width: int, wide: hamlet.Results, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(wide, width, capsys)
    assert max(map(len, lines)) <= max(width, 31)  # both edges of the window always stand
    text = " ".join(lines)
    for column in ("g", "count", "max_B_v"):
        assert (f"┃ {column} " in text or f" {column} ┃" in text) or "not shown for want of" in text
    if width == 160:
        assert short_text(2**1000 - 1) == "1.07e+301"
        assert "1.07e+301" in text
        assert "…" in text  # the long name is cut


def test_texts_are_cut_before_columns_are_left_out(wide: hamlet.Results, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(wide, 100, capsys)
    assert "a_rather_lo…" in lines[2]
    assert "max_B_v" in lines[2]
    assert "a long name…" in lines[4]
    assert not any(line != line.rstrip() for line in lines)
    assert lines[-1][0] == "└"
    assert "max_B_v ┃" in shown(wide, 160, capsys)[2]
    assert "a_rather_long_name_for_a_sum" in shown(wide, 160, capsys)[2]


def test_a_doubtful_unit_is_noted_after_the_first_batch(capsys: pytest.CaptureFixture[str]) -> None:
    events = open_events({"time": [1_700_000_000_000, 1_700_000_000_001], "type": ["A", "B"]})
    advance = _doubting(events, None)
    advance(0)
    assert capsys.readouterr().err == ""
    next(iter(events.batches()))
    advance(1)
    assert "is --time-unit ms meant?" in capsys.readouterr().err
    advance(2)
    assert capsys.readouterr().err == ""


def test_values_that_the_terminal_cannot_show(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "z.csv").write_text("time,type,user\n1,A,Zoë\n", encoding="utf-8")
    (folder / "z.sase").write_text("RETURN user, COUNT(*) PATTERN A GROUP-BY user WITHIN 9 s")
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="ascii"))
    assert main(["run", str(folder / "z.sase"), "--input", str(folder / "z.csv"), "--quiet"]) == 0
    sys.stdout.flush()
    assert b"| Zo\\xeb " in printed.getvalue()


def test_windows_as_dates(capsys: pytest.CaptureFixture[str]) -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 1 d")
    results = hamlet.run(workload, [{"time": 1_360_324_800, "type": "A"}])
    assert any("2013-02-08T00:00:00" in line for line in shown(results, 100, capsys, dates=True))
    assert not any("2013" in line for line in shown(results, 100, capsys))


def test_what_the_progress_bar_says() -> None:
    assert counted(500, None, None) == "500"
    assert counted(500, 1000, 12.3) == "500 of 1,000, 12/s"
    assert counted(500, 1000, 12_345) == "500 of 1,000, 12.3 k/s"
    assert counted(500, None, 12_345_678) == "500, 12.3 M/s"
    assert [_doing(done, 1000) for done in (0, 999, 1000)] == ["reading events", "reading events", "counting trends"]
    assert _doing(1000, None) == "reading events"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_are_for_terminals_and_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    bars: list[tuple[Callable[[bool], Any], tuple[Any, ...], str]] = [
        (lambda quiet: progress_bar(quiet, 1000), (1000,), "1,000 of 1,000"),
        (lambda quiet: run_bar(quiet, "cases"), (3, 7), "3/7"),
        (task_bar, ("joining", 2, 5), "joining"),
    ]
    for bar, done, text in bars:
        for quiet, terminal in ((False, io.StringIO()), (True, _Terminal())):
            monkeypatch.setattr(sys, "stderr", terminal)
            with bar(quiet) as advance:
                assert advance is None
            assert terminal.getvalue() == ""
        monkeypatch.setattr(sys, "stderr", terminal := _Terminal())
        with bar(False) as advance:
            advance(*done)
        assert text in terminal.getvalue()
        assert terminal.getvalue().endswith("\x1b[2K")  # the line is erased


def test_the_line_about_a_run() -> None:
    stats: dict[str, Any] = {"events": 1, "late_events": 0, "rows": 2000}
    assert summary_line(stats, 0.5) == "1 event, 2,000 rows, 0.50 s"
    slices = {"loads": [3, 1], "max_over_mean": 1.5, "replication": 1.25}
    stats |= {"late_events": 3, "infinite_values": 4, "slices": slices, "left_behind": 5, "stages": {"reading": 1.25}}
    assert summary_line(stats, 2) == (
        "1 event, 3 late, 2,000 rows, 4 values beyond the double range written as inf, "
        "2 slices (max/mean load 1.50, replication 1.25), 5 events of keys without a trend left behind, 2.00 s "
        "(reading 1.2 s)"
    )
    said = summary_line(stats | {"products": {"used": True, "ranges": 7}}, 0.5)
    assert "7 ranges of time sent as matrices" in said
    assert "slices" not in said


# --------------------------------------------------------------------------------------- doctor, version, completion


def test_the_doctor_is_content_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for name in ("hamlet", "Python", "packages", "memory", "Java", "Spark", "counting", "brute force"):
        assert f" {name} " in out
    assert "2^1000" in out
    assert "WRONG" not in out


def test_the_doctor_sees_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "cc")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(doctor, "_available_memory", lambda: 100 * 2**20)
    assert main(["doctor"]) == 0  # none of it is needed to count
    out = capsys.readouterr().out
    assert "there is no cc on the PATH" in out
    assert "install Java 17 or newer" in out
    assert "0.1 GiB available" in out
    assert "--max-memory" in out


def test_the_doctor_finds_a_wrong_count(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def wrong(*arguments: Any, **options: Any) -> hamlet.Results:
        results = hamlet.run(*arguments, **options)
        some = [QueryRows(each.name, each.columns, each.rows[1:]) for each in query_rows(results)]
        return query_results(some, results.parts[0].clock)

    monkeypatch.setattr(doctor, "run", wrong)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "WRONG counting" in out
    assert "WRONG brute force" in out
    assert "please report this" in out


def test_the_doctor_runs_a_spark_job(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--spark"]) == 0
    assert "ok    Spark job    3 rows, as many as in process" in capsys.readouterr().out


def test_version_for_bug_reports(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["hamlet"] == hamlet.__version__
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["pyarrow"] == pa.__version__


@pytest.fixture
def completions() -> Callable[..., list[str]]:
    def complete(*words: str) -> list[str]:
        environment = {
            **os.environ,
            "_HAMLET_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(["hamlet", *words]),
            "COMP_CWORD": str(len(words)),
        }
        code = "from hamlet.cli import cli; cli(prog_name='hamlet')"
        said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        return [line.partition(",")[2] for line in said.stdout.splitlines()]

    return complete


def test_completion(completions: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert main(["completion", shell]) == 0
        assert "_HAMLET_COMPLETE" in capsys.readouterr().out
    assert completions("ex") == ["explain"]
    assert "--count-type" in completions("run", "--c")
    assert completions("run", "--sharing", "s") == ["static"]


@pytest.mark.parametrize("command", ["check", "explain", "run", "submit", "doctor", "version", "completion"])
def test_every_command_has_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"Examples:\n    hamlet {command}" in out or 'Examples:\n    eval "$(hamlet completion' in out
    assert max(map(len, out.splitlines())) <= 120


@pytest.mark.parametrize("choice", [("--where", "type <> 'C'"), ("--from", "4"), ("--to", "3")])
def test_a_choice_of_events_is_the_reason(
    folder: Path, capfd: pytest.CaptureFixture[str], choice: tuple[str, str]
) -> None:
    (folder / "c.sase").write_text("RETURN COUNT(*) PATTERN C WITHIN 10 s", encoding="utf-8")
    assert main(["run", "c.sase", "--input", "e.parquet", *choice]) == 0
    assert f"q1: no rows, because {choice[0]} leaves out the only C event" in capfd.readouterr().err
