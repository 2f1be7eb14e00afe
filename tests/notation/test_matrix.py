"""The matrix of ARCHITECTURE.md, notation x ability: a cell is done, or refused with the reason that stands there.

``python -m tests.notation.test_matrix`` prints it.
"""

from __future__ import annotations

import datetime
import importlib
import json
import os
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
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
from hamlet.errors import HamletError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
EVENTS = [{"time": time, "type": "AB"[time % 2], "a": time} for time in range(6)]
SIGNATURE = "A(a: int) B(a: int)"
TEXTS = {
    "w.sase": "RETURN COUNT(*), MAX(A.a) PATTERN A WITHIN 100 s",
    "p.mfotl": "A(a)",
    "p.sig": SIGNATURE,
    "s.lola": 'input a: Int64  trigger a > 3 "a"',
    "m.sql": "SELECT * FROM events MATCH_RECOGNIZE (ORDER BY time MEASURES x.a AS a PATTERN (x) DEFINE x AS a > 3)",
    "sliced.sase": "RETURN a, COUNT(*) PATTERN A WHERE [a] GROUP-BY a WITHIN 100 s",
    "sliced.mfotl": "A(a) AND NOT ONCE[1,3] A(a)",
    "sliced.lola": "input a: Int64\noutput n(k: Int64) spawn with a eval when k = a with a",
    "sliced.sql": "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY a ORDER BY time MEASURES x.time AS since "
    "PATTERN (x) DEFINE x AS true)",
    "wrong.sase": "RETURN COUNT(*) PATTERN SEQ(A, B WITHIN 10 s;\nRETURN COUNT(*) PATTERN SEQ(A, , B) WITHIN 10 s",
    "wrong.mfotl": "C(a) AND\n  D(a)",
    "wrong.lola": "output b := c + 1\noutput d := e",
    "wrong.sql": "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY time MEASURES 1 AS m PATTERN (x)\n"
    "DEFINE z AS a > 2,\n v AS a > 1)",
}


class RefusedError(Exception):
    """What was asked for is refused; the text is what the user reads."""


@dataclass(frozen=True)
class Notation:
    """How a notation is called.

    Attributes
    ----------
    name : str
        The head of its column.
    extension, command : str
    more : tuple of str
        What its calls say besides.
    run : callable
        Events and options to results.
    """

    name: str
    extension: str
    command: str
    more: tuple[str, ...]
    run: Callable[..., Any]

    def file(self, kind: str = "") -> str:
        names = {".sase": "w", ".mfotl": "p", ".lola": "s", ".sql": "m"}
        return (kind or names[self.extension]) + self.extension

    def call(self, command: str, *options: str, kind: str = "") -> list[str]:
        """A call of the command line that has to end well."""
        return [command, self.file(kind), *self.more, *options]


NOTATIONS = [
    Notation(
        "trend queries",
        ".sase",
        "run",
        (),
        lambda events, **options: hamlet.run(hamlet.Workload.parse(TEXTS["w.sase"]), events, **options),
    ),
    Notation(
        "policies",
        ".mfotl",
        "monitor",
        ("--signature", "p.sig"),
        lambda events, **options: policies.run(policies.Policy.parse("A(a)", signature=SIGNATURE), events, **options),
    ),
    Notation(
        "specifications",
        ".lola",
        "monitor",
        (),
        lambda events, **options: streams.run(streams.Specification.parse(TEXTS["s.lola"]), events, **options),
    ),
    Notation(
        "row patterns",
        ".sql",
        "run",
        (),
        lambda events, **options: hamlet.sql(TEXTS["m.sql"], {"events": events}, **options),
    ),
]


class Caller:
    """Calls commands, and reads what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.said = ""

    def __call__(self, arguments: list[str], expected: int = 0) -> str:
        self._capsys.readouterr()
        code = main(arguments)
        out, self.said = self._capsys.readouterr()
        if code == 2 and expected == 0:
            raise RefusedError(self.said)
        assert code == expected, self.said
        return out


@pytest.fixture
def hamlet_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Caller:
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        Path(name).write_text(text)
    lines = [f"{each['time']},{each['type']},{each['a']}\n" for each in EVENTS]
    Path("e.csv").write_text("time,type,a\n" + "".join(lines))
    Path("first.csv").write_text("time,type,a\n" + "".join(lines[::2]))
    Path("second.csv").write_text("time,type,a\n" + "".join(lines[1::2]))
    Path("other.csv").write_text("time,type,b\n9,A,9\n")
    pq.write_table(pa.Table.from_pylist(EVENTS), "e.parquet", row_group_size=2)
    return Caller(capsys)


def printed(says: Caller, notation: Notation, *options: str, source: str = "e.csv") -> list[dict[str, Any]]:
    call = notation.call(notation.command, "--input", source, "--output", "-", "--quiet", *options)
    return [json.loads(line) for line in says(call).splitlines()]


def rows_of(notation: Notation, events: Any, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = notation.run(events, **options).rows()
    return rows


# ------------------------------------------------------------------------------------------------------ abilities


def check_tells_all_errors(notation: Notation, says: Caller) -> None:
    says(notation.call("check", kind="wrong"), expected=2)
    places = set(re.findall(rf"wrong{notation.extension}:(\d+):", says.said))
    assert len(places) == 2, says.said


def run_over_a_file(notation: Notation, says: Caller) -> None:
    found = printed(says, notation)
    assert found
    assert len(found) == len(rows_of(notation, "e.csv"))


def several_files_are_one_stream(notation: Notation, says: Caller) -> None:
    assert printed(says, notation, "--input", "second.csv", source="first.csv") == printed(says, notation)


def a_column_missing_in_one_of_two_files_is_told(notation: Notation, says: Caller) -> None:
    call = notation.call(notation.command, "--input", "e.csv", "--input", "other.csv", "--output", "-")
    says(call, expected=2)
    assert "other.csv" in says.said
    assert "'a'" in says.said


def standard_input(notation: Notation, says: Caller) -> None:
    with pytest.MonkeyPatch.context() as patch, open("e.csv", "rb") as file:

        class Input:
            buffer = file

        patch.setattr(sys, "stdin", Input())
        found = printed(says, notation, "--input-format", "csv", source="-")
    assert found == printed(says, notation)


def a_pipe_that_fills(notation: Notation, says: Caller) -> None:
    os.mkfifo("e.pipe")
    writer = threading.Thread(target=lambda: Path("e.pipe").write_bytes(Path("e.csv").read_bytes()))
    writer.start()
    found = printed(says, notation, "--input-format", "csv", source="e.pipe")
    writer.join()
    assert found == printed(says, notation)


def where_from_to(notation: Notation, says: Caller) -> None:
    kept = [each for each in EVENTS if each["a"] > 3]  # type: ignore[operator]
    assert rows_of(notation, EVENTS, where="a > 3") == rows_of(notation, kept)
    assert len(printed(says, notation, "--from", "4")) == len(rows_of(notation, kept))


def several_threads_compute(notation: Notation, says: Caller) -> None:
    assert rows_of(notation, EVENTS, threads=2) == rows_of(notation, EVENTS)


def max_memory_of_a_run(notation: Notation, says: Caller) -> None:
    assert rows_of(notation, EVENTS, max_memory="1 GiB") == rows_of(notation, EVENTS)
    assert printed(says, notation, "--max-memory", "1 GiB") == printed(says, notation)


def lateness_of_a_run(notation: Notation, says: Caller) -> None:
    swapped = [EVENTS[place] for place in (1, 0, 2, 3, 5, 4)]
    assert rows_of(notation, swapped, lateness=2) == rows_of(notation, EVENTS)


def unknown_options_are_refused(notation: Notation, says: Caller) -> None:
    with pytest.raises(hamlet.OptionError, match="there is no option 'wehre'"):
        rows_of(notation, EVENTS, wehre="a > 3")
    says(notation.call(notation.command, "--input", "e.csv", "--wehre", "a"), expected=2)


def findings(notation: Notation, says: Caller) -> None:
    never = {".sase": "RETURN COUNT(*) PATTERN B WITHIN 9 s", ".mfotl": "B(a)", ".lola": ""}
    if notation.extension not in never:  # columns are all that a text names
        hamlet.sql(TEXTS["m.sql"].replace("a > 3", "z > 3"), {"events": EVENTS})
    if notation.extension == ".lola":
        assert "z never occurs" in str(streams_warnings())
        return
    Path(notation.file()).write_text(never[notation.extension])
    rows = [each for each in EVENTS if each["type"] == "A"]
    pq.write_table(pa.Table.from_pylist(rows), "a.parquet")
    says(notation.call(notation.command, "--input", "a.parquet", "--output", "-"))
    assert "never occurs" in says.said or "no event" in says.said, says.said


def streams_warnings() -> list[str]:
    monitor = streams.Monitor(streams.Specification.parse("input a: Int64, z: Int64  output b := a"), values=True)
    monitor.push([{"time": 1, "a": 1}])
    return monitor.warnings


def why_a_row(notation: Notation, says: Caller) -> None:
    row = json.dumps(printed(says, notation)[0])
    assert says(notation.call("why", "--input", "e.csv", "--row", row))


def explain_as_text(notation: Notation, says: Caller) -> None:
    assert says(notation.call("explain"))


def explain_as_json(notation: Notation, says: Caller) -> None:
    assert json.loads(says(notation.call("explain", "--format", "json")))


def explain_as_a_graph(notation: Notation, says: Caller) -> None:
    assert says(notation.call("explain", "--format", "dot")).startswith("digraph")


def a_page_of_explain(notation: Notation, says: Caller) -> None:
    says(notation.call("explain", "--html", "page.html"))
    assert "<html" in Path("page.html").read_text()


def a_page_of_a_run(notation: Notation, says: Caller) -> None:
    printed(says, notation, "--report", "report.html")
    assert "<html" in Path("report.html").read_text()


def row_groups_are_skipped(notation: Notation, says: Caller) -> None:
    call = notation.call(notation.command, "--input", "e.parquet", "--from", "4", "--output", "-")
    assert says(call)
    assert "skipped 2 of 3 row groups" in says.said, says.said


def dicts_columns_arrow_pandas_polars_duckdb_in(notation: Notation, says: Caller) -> None:
    table = pa.Table.from_pylist(EVENTS)
    forms = [
        table,
        table.combine_chunks().to_batches()[0],
        table.to_reader(),
        {name: [each[name] for each in EVENTS] for name in EVENTS[0]},
        pl.DataFrame(EVENTS),
        table.to_pandas(),
        duckdb.from_arrow(table),
    ]
    for form in forms:
        assert rows_of(notation, form) == rows_of(notation, EVENTS), type(form)


def dicts_arrow_pandas_polars_duckdb_out(notation: Notation, says: Caller) -> None:
    results = notation.run(EVENTS)
    count = len(results.rows())
    assert results.table().num_rows == len(results.to_polars()) == len(results.to_pandas()) == count
    assert pa.table(results).num_rows == count
    assert duckdb.sql("SELECT count(*) FROM results").fetchall() == [(count,)]


def json_csv_parquet_out(notation: Notation, says: Caller) -> None:
    for form in ("json", "csv", "parquet"):
        call = notation.call(notation.command, "--input", "e.csv", "--output", form, "--output-format", form)
        says([*call, "--quiet"])
        (file,) = Path(form).rglob(f"part-*.{form}")
        assert file.stat().st_size


def times_of_every_kind(notation: Notation, says: Caller) -> None:
    start = datetime.datetime(2024, 1, 1)
    kinds: list[Callable[[int], Any]] = [
        lambda time: start + datetime.timedelta(seconds=time),
        lambda time: start.replace(tzinfo=datetime.UTC) + datetime.timedelta(seconds=time),
        lambda time: str(start + datetime.timedelta(seconds=time)),
        lambda time: time + 0.5,
    ]
    for kind in kinds:
        events = [{**each, "time": kind(each["time"])} for each in EVENTS]  # type: ignore[arg-type]
        assert len(rows_of(notation, events)) == len(rows_of(notation, EVENTS))


def exit_codes(notation: Notation, says: Caller) -> None:
    says(notation.call("check"))
    says(notation.call("check", kind="wrong"), expected=2)
    says(notation.call(notation.command, "--input", "nowhere.csv"), expected=2)
    assert "nowhere.csv" in says.said
    says(notation.call(notation.command, "--input", "e.csv", "--output", "/proc/none"), expected=2)


def spark_batch(notation: Notation, says: Caller) -> None:
    values = ["--values"] if notation.extension == ".lola" else []
    call = notation.call("submit", "--input", "e.csv", "--output", "out", "--output-format", "json", kind="sliced")
    says([*call, *values, "--quiet"])
    written = [line for file in Path("out").rglob("part-*.json") for line in file.read_text().splitlines()]
    run = notation.call(notation.command, "--input", "e.csv", "--output", "-", "--quiet", kind="sliced")
    assert written
    assert len(written) == len(says([*run, *values]).splitlines())


ASKED_HERE = [
    check_tells_all_errors,
    run_over_a_file,
    several_files_are_one_stream,
    a_column_missing_in_one_of_two_files_is_told,
    standard_input,
    a_pipe_that_fills,
    where_from_to,
    several_threads_compute,
    max_memory_of_a_run,
    lateness_of_a_run,
    unknown_options_are_refused,
    findings,
    why_a_row,
    explain_as_text,
    explain_as_json,
    explain_as_a_graph,
    a_page_of_explain,
    a_page_of_a_run,
    row_groups_are_skipped,
    dicts_columns_arrow_pandas_polars_duckdb_in,
    dicts_arrow_pandas_polars_duckdb_out,
    json_csv_parquet_out,
    times_of_every_kind,
    exit_codes,
]
ON_SPARK = [spark_batch]
# Abilities that another test asks of all notations.
ASKED_ELSEWHERE = {
    "push in batches of any size": "tests.notation.test_monitors:test_batches_make_no_difference",
    "advance, twice and backwards": "tests.notation.test_monitors:test_an_earlier_promise_changes_nothing",
    "an event before the last time": "tests.notation.test_monitors:test_a_late_event_takes_nothing_of_its_batch",
    "lateness of a monitor": "tests.notation.test_monitors:test_disorder_within_the_lateness_makes_no_difference",
    "close twice, push after close": "tests.notation.test_monitors:test_after_the_end",
    "save and restore anywhere": "tests.notation.test_monitors:test_saves_go_on",
    "a save of another text": "tests.notation.test_monitors:test_another_text_is_refused",
    "a save of another version": "tests.notation.test_monitors:test_another_version_names_both",
    "a save that is cut or damaged": "tests.notation.test_monitors:test_damaged_saves_are_refused",
    "calls from several threads": "tests.notation.test_monitors:test_threads_wait_for_each_other",
    "max memory of a monitor": "tests.notation.test_monitors:test_a_limit_of_memory_closes_and_says_so",
    "continuous on Spark, sliced": "tests.spark.test_spark_continuous:test_rows_are_those_of_a_batch",
    "streaming DataFrames in and out": "tests.spark.test_spark_continuous:test_a_streaming_frame_in_and_out",
}


def called(ability: Callable[..., None]) -> str:
    """An ability as the table calls it."""
    return ability.__name__.replace("_", " ")


def table() -> dict[str, list[str]]:
    """The cells of ARCHITECTURE.md by ability."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## What every notation can")[2]
    rows = re.findall(r"^\| (.+) \|$", text.partition("\n## ")[0], re.MULTILINE)
    head, *rest = (row.split(" | ") for row in rows)
    assert head[1:] == [each.name for each in NOTATIONS]
    return {cells[0]: cells[1:] for cells in rest if not cells[0].startswith("-")}


def said_of(ability: Callable[..., None], notation: Notation, says: Caller) -> str:
    """The cell as it is found: yes, or the reason of a refusal."""
    try:
        ability(notation, says)
    except (RefusedError, HamletError) as refused:
        return str(refused)
    return "yes"


def hold(ability: Callable[..., None], notation: Notation, says: Caller) -> None:
    cell = table()[called(ability)][NOTATIONS.index(notation)]
    found = said_of(ability, notation, says)
    assert cell in found if cell != "yes" else found == "yes", f"the table says: {cell}\nit is: {found}"


each_notation = pytest.mark.parametrize("notation", NOTATIONS, ids=lambda each: each.name)


@each_notation
@pytest.mark.parametrize("ability", ASKED_HERE, ids=called)
def test_cells(ability: Callable[..., None], notation: Notation, hamlet_says: Caller) -> None:
    hold(ability, notation, hamlet_says)


@pytest.mark.spark
@each_notation
@pytest.mark.parametrize("ability", ON_SPARK, ids=called)
def test_cells_on_spark(
    ability: Callable[..., None], notation: Notation, hamlet_says: Caller, spark: SparkSession
) -> None:
    assert spark is not None
    hold(ability, notation, hamlet_says)


def test_the_table_and_the_tests_are_one() -> None:
    asked = [*map(called, (*ASKED_HERE, *ON_SPARK)), *ASKED_ELSEWHERE]
    assert sorted(table()) == sorted(asked)
    for ability, cells in table().items():
        assert len(cells) == len(NOTATIONS)
        assert all(cells), f"{ability}: an empty cell"


@pytest.mark.parametrize("ability", ASKED_ELSEWHERE)
def test_other_tests_ask_all_notations(ability: str) -> None:
    module, _, name = ASKED_ELSEWHERE[ability].partition(":")
    test = getattr(importlib.import_module(module), name)
    marks = [mark for mark in test.pytestmark if mark.name == "parametrize" and mark.args[0] == "notation"]
    (asked,) = (mark.args[1] for mark in marks)
    assert len(asked) >= len(NOTATIONS)
    assert table()[ability] == ["yes"] * len(NOTATIONS)


if __name__ == "__main__":
    head = ["ability", *(each.name for each in NOTATIONS)]
    rows = [[ability, *cells] for ability, cells in table().items()]
    for cells in [head, ["---"] * len(head), *rows]:
        sys.stdout.write(f"| {' | '.join(cells)} |\n")
