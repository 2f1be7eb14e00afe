"""Each option of each command is heard by each notation, or refused with the reason; none is accepted and ignored."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
import hamlet.policies as policies
import hamlet.streams as streams
from hamlet.cli import main
from hamlet.cli.heard import RULES, Call
from hamlet.errors import DataError
from hamlet.runtime import progress
from hamlet.runtime.definitions import DEFINITIONS

QUERY = "RETURN COUNT(*) PATTERN A WITHIN 100 s"
EVENTS = [{"time": time, "type": "AB"[time % 2], "a": time} for time in range(6)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("w.sase").write_text(QUERY)
    Path("p.mfotl").write_text("A(a)")
    Path("p.sig").write_text("A(a: int) B(a: int)")
    Path("s.lola").write_text('input a: Int64  trigger a > 0 "a"')
    Path("e.csv").write_text(
        "time,type,a\n" + "".join(f"{each['time']},{each['type']},{each['a']}\n" for each in EVENTS)
    )
    pq.write_table(pa.Table.from_pylist(EVENTS), "e.parquet")
    Path("e.jsonl").write_text("".join(f'{{"time": {each["time"]}, "a": {each["a"]}}}\n' for each in EVENTS))
    Path("e.log").write_text("@1 A(1) @2 A(2)")
    return tmp_path


OF = {"w.sase": (), "p.mfotl": ("--signature", "p.sig"), "s.lola": ()}
REFUSED = [
    *(
        (command, file, "", option, "speaks of an input; give --input")
        for command in ("check", "explain")
        for file in OF
        for option in (
            *("--where garbage", "--from garbage", "--to 3"),
            *("--bad-rows drop", "--delimiter ;", "--time-unit ms", "--missing-columns null"),
        )
    ),
    *(
        (command, file, "", option, "speaks of an input; give --input")
        for command in ("check", "explain")
        for file in ("p.mfotl", "s.lola")
        for option in ("--time-column t", "--type-column t", "--order-column o")
    ),
    *(
        (command, file, "e.csv", option, said)
        for command in ("check", "explain")
        for file in OF
        for option, said in (("--where ((", "expected"), ("--from no", "no"), ("--time-column nosuch", "nosuch"))
    ),
    *((command, file, "nosuch.csv", "", "nosuch.csv") for command in ("check", "explain") for file in OF),
    ("monitor", "p.mfotl", "e.csv", "--lateness bogus", "sorted by time"),
    ("monitor", "p.mfotl", "e.csv", "--late drop", "sorted by time"),
    ("monitor", "s.lola", "e.csv", "--lateness bogus", "lateness is 'bogus'"),
    *(
        ("monitor", "p.mfotl", "e.log", option, "has no columns")
        for option in (
            *("--order-column o", "--time-column t", "--type-column t", "--delimiter ;", "--missing-columns null"),
            *("--where a>1", "--from 1", "--to 2"),
        )
    ),
    ("monitor", "p.mfotl", "e.log", "--time-points event", "has time-points of its own"),
    ("monitor", "p.mfotl", "e.csv", "--mode global", "give --verdicts equivalent"),
    ("monitor", "p.mfotl", "e.csv", "--mode global --verdicts all", "give --verdicts equivalent"),
    ("monitor", "s.lola", "e.csv", "--type-column nosuch", "specifications (.lola) read events without types"),
    *((command, file, "e.csv", "--overwrite", "give --output DIR") for command, file in (
        ("run", "w.sase"), ("monitor", "p.mfotl"), ("monitor", "s.lola"),
    )),
    ("run", "w.sase", "e.csv", "--overwrite --output -", "give --output DIR"),
    *(("run", "w.sase", "e.csv", f"--count-type string {option}", "what COUNT and SUM are") for option in (
        "", "--output -", "--output - --output-format csv", "--output out --output-format json",
    )),
    ("submit", "w.sase", "e.csv", "-o out --output-format csv --count-type string", "what COUNT and SUM are"),
    ("run", "w.sase", "e.parquet", "--delimiter ;", "is for CSV"),
    ("monitor", "p.mfotl", "e.parquet", "--delimiter ;", "is for CSV"),
    ("monitor", "s.lola", "e.jsonl", "--delimiter ;", "is for CSV"),
    *(("run", "w.sase", "e.csv", f"{option}=", "it is empty") for option in ("--input", "--output", "--checkpoint")),
    ("submit", "w.sase", "e.csv", "--output=", "it is empty"),
    *(("why", file, "e.csv", f"--row {{}} {option}", said) for file, option, said in (
        ("p.mfotl", "--null-keys drop", "is for workloads of trend queries"),
        ("p.mfotl", "--start 0", "is for stream specifications"),
        ("p.mfotl", "--mode global", "give --verdicts equivalent"),
        ("p.mfotl", "--limit 3", "shown whole"),
        ("w.sase", "--negate", "is for policies"),
        ("w.sase", "--signature p.sig", "is for policies"),
        ("s.lola", "--timezone UTC", "is for workloads of trend queries"),
    )),
    *(("run", "w.sase", source, "--columns a,b", "is for CSV") for source in ("e.jsonl", "e.parquet")),
    *(("submit", file, "e.csv", f"-o out {option}", said) for file, option, said in (
        ("p.mfotl", "--max-memory 1B", "hamlet monitor hears it"),
        ("p.mfotl", "--mode global", "give --verdicts equivalent"),
        ("p.mfotl", "--stream --open-end", "belongs to a batch"),
        ("p.mfotl", "--stream --ignore-unknown", "belongs to a batch"),
        ("s.lola", "--max-memory 1B", "hamlet monitor hears it"),
        ("s.lola", "--order-column a", "hamlet monitor hears it"),
        ("s.lola", "--type-column a", "read events without types"),
    )),
]  # fmt: skip


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("command", "file", "source", "options", "said"), REFUSED)
def test_what_would_do_nothing_is_refused(
    command: str, file: str, source: str, options: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--input", source] if source else []
    assert main([command, file, *OF[file], *given, *options.split()]) == 2
    assert said in capsys.readouterr().err


HEARD = [
    *((file, "e.csv", "--where a>2") for file in OF),
    *((file, "e.csv", "--from 3") for file in OF),
    *((file, "e.csv", "--to 3") for file in OF),
    *((file, "e.parquet", "--where a>2 --from 4") for file in OF),
    ("s.lola", "e.jsonl", "--where a>2"),
    ("s.lola", "e.jsonl", "--from 3"),
    ("s.lola", "e.csv", "--order-column a"),
    ("p.mfotl", "e.csv", "--order-column a"),
    ("p.mfotl", "e.csv", "--time-points event"),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("file", "source", "options"), HEARD)
def test_what_is_heard_is_heard_by_all(
    file: str, source: str, options: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run" if file == "w.sase" else "monitor", file, *OF[file], "--input", source, "--output", "-", "-q"]
    assert main(command) == 0
    plain = capsys.readouterr().out
    assert main([*command, *options.split()]) == 0
    chosen = capsys.readouterr().out
    assert plain
    assert (chosen == plain) == ("--order-column" in options or "--time-points" in options)


def test_jobs_hear_slices_in_batches_and_as_streams() -> None:
    """All but a batch of row patterns, which Spark cuts by itself."""

    def heard(notation: str, **options: Any) -> bool:
        call = Call("submit", frozenset({notation}), live=False, options={"slices": 2, **options})
        return not any("slices" in rule.options and rule.holds(call) for rule in RULES)

    assert all(heard(notation, stream=stream) for notation in (".sase", ".mfotl", ".lola") for stream in (False, True))
    assert heard(".sql", stream=True)
    assert not heard(".sql")


def _results(notation: str, events: Any, **options: Any) -> Any:
    if notation == "queries":
        return hamlet.run(hamlet.Workload.parse(QUERY), events, **options)
    if notation == "policies":
        return policies.run(policies.Policy.parse("A(a)", signature="A(a: int) B(a: int)"), events, **options)
    return streams.run(streams.Specification.parse('input a: Int64  trigger a > 0 "a"'), events, **options)


def _rows(notation: str, events: Any, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _results(notation, events, **options).rows()
    return found


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("notation", ["queries", "policies", "specifications"])
@pytest.mark.parametrize("form", ["file", "table", "dicts", "columns"])
def test_python_has_the_same_options(notation: str, form: str) -> None:
    forms = {
        "file": "e.csv",
        "table": pa.Table.from_pylist(EVENTS),
        "dicts": EVENTS,
        "columns": {name: [each[name] for each in EVENTS] for name in EVENTS[0]},
    }
    events = forms[form]
    kept = [each for each in EVENTS if each["a"] > 2]  # type: ignore[operator]
    assert _rows(notation, events, where="a > 2") == _rows(notation, kept)
    assert _rows(notation, events, since=3) == _rows(notation, kept)
    assert _rows(notation, events, until=3) == _rows(notation, EVENTS[:3])
    assert _rows(notation, events, order_column="a", bad_rows="drop") == _rows(notation, EVENTS)
    with pytest.raises(hamlet.OptionError, match="until \\(1\\) is not after since \\(3\\)"):
        _rows(notation, events, since=3, until=1)
    with pytest.raises(hamlet.OptionError, match="there is no option 'wehre'; did you mean 'where'"):
        _rows(notation, events, wehre="a > 2")


GIVEN = {
    "input_format": "csv",
    "time_unit": "ms",
    "timezone": "Europe/Berlin",
    "delimiter": ",",
    "bad_rows": "drop",
    "missing_columns": "null",
    "since": 3,
    "until": 5,
    "where": "a > 3",
    "late": "drop",
    "max_memory": "1 GiB",
    "time_column": "time",
    "order_column": "a",
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("notation", ["queries", "policies", "specifications", "patterns"])
def test_python_hears_what_the_command_line_hears_or_says_why_not(notation: str) -> None:
    for name, each in DEFINITIONS.items():
        value, said = GIVEN.get(name, each.default), ""
        try:
            if notation == "patterns":
                hamlet.sql(PATTERN, {"e": "e.csv"}, **{name: value})  # type: ignore[misc]
            else:
                _results(notation, "e.csv", **{name: value})
        except hamlet.OptionError as error:
            said = str(error)
        assert not said or f"there is no option '{name}' here: " in said


@pytest.mark.parametrize("notation", ["queries", "policies", "specifications"])
def test_python_reads_text_with_the_same_options(notation: str, folder: Path) -> None:
    path = folder / "bad.csv"
    path.write_text("time;type;a\n1;A;1\n2;A\n3;A;3\n")
    good = [{"time": 1, "type": "A", "a": 1}, {"time": 3, "type": "A", "a": 3}]
    assert _rows(notation, path, delimiter=";", bad_rows="drop") == _rows(notation, good)
    with pytest.raises(hamlet.DataError):
        _rows(notation, path, delimiter=";")
    shuffled = [EVENTS[place] for place in (3, 0, 5, 1, 4, 2)]
    assert _rows(notation, shuffled, order_column="a") == _rows(notation, EVENTS)


WRONG = {
    "w.sase": ("RETURN COUNT(*) PATTERN SEQ(A, B WITHIN 10 s", 1),
    "p.mfotl": ("A(a) AND\n  C(a)", 2),
    "s.lola": ("input a: Int64\noutput b := c + 1", 2),
}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("file", WRONG)
def test_errors_for_programs(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, line = WRONG[file]
    Path(file).write_text(text)
    assert main(["check", file, *OF[file], "--format", "json"]) == 2
    (first, *_) = json.loads(capsys.readouterr().out)["errors"]
    assert (first["file"], first["line"]) == (file, line)
    assert first["end"]["column"] > first["column"] or first["end"]["line"] > line
    assert {"message", "hint", "severity"} <= set(first)
    command = "run" if file == "w.sase" else "monitor"
    for arguments in (["check", file], [command, file, "--input", "e.csv"]):
        assert main([*arguments, *OF[file], "--errors", "json"]) == 2
        (told, *_) = map(json.loads, capsys.readouterr().err.splitlines())
        assert told == first
    assert main([command, file, *OF[file], "--input", "nosuch.csv", "--errors", "json", "--limit", "-1"]) == 2
    told = json.loads(capsys.readouterr().err)
    assert (told["file"], told["line"], told["severity"]) == (None, None, "error")
    assert main(["check", file]) == 2
    assert not capsys.readouterr().err.startswith("{")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("file", OF)
def test_a_file_without_errors_for_programs(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", file, *OF[file], "--format", "json", "--input", "e.csv"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["file"], found["errors"]) == (file, [])


@pytest.mark.usefixtures("folder")
def test_several_files_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """Each by itself, in their order; the exit code is the worst."""
    given = ["check", *OF, *OF["p.mfotl"], "--input", "e.csv"]
    assert main(given) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == list(OF)
    Path("p.mfotl").write_text(WRONG["p.mfotl"][0])
    assert main([*given, "nosuch.sase"]) == 2
    said = capsys.readouterr()
    assert [line.split(":")[0] for line in said.out.splitlines()] == ["w.sase", "s.lola"]
    assert said.err.startswith("p.mfotl:2:3: ")
    assert said.err.splitlines()[-1] == "error: there is no workload 'nosuch.sase'"
    assert main([*given, "--format", "json"]) == 2
    documents = json.loads(capsys.readouterr().out)
    assert [(each["file"], bool(each["errors"])) for each in documents] == [(file, file == "p.mfotl") for file in OF]
    assert main([*given[:-1], "-"]) == 2
    assert "standard input can be read once" in capsys.readouterr().err


@pytest.mark.parametrize("notation", ["queries", "policies", "specifications"])
@pytest.mark.parametrize("form", ["file", "dicts"])
def test_progress(notation: str, form: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function hears of all events; a bar is shown where it is asked for or in a notebook, of a short run none."""
    events: Any = str(folder / "e.csv") if form == "file" else EVENTS
    heard: list[int] = []
    _rows(notation, events, progress=heard.append)
    assert heard[-1] == len(EVENTS)
    shown: list[int] = []

    @contextlib.contextmanager
    def bar(total: int | None) -> Iterator[Any]:
        assert total in (len(EVENTS), None)
        yield shown.append

    monkeypatch.setattr(progress, "bar", bar)
    for asked in (None, False, True):
        assert _rows(notation, events, progress=asked)
    assert not shown, "a bar of a short run"
    monkeypatch.setattr(progress, "_GRACE", 0.0)
    for asked, notebook, expected in (
        (None, False, False),
        (False, True, False),
        (None, True, True),
        (True, False, True),
    ):
        monkeypatch.setattr(progress, "in_notebook", lambda notebook=notebook: notebook)
        shown.clear()
        _rows(notation, events, progress=asked)
        assert bool(shown) == expected


def test_row_patterns_show_no_progress() -> None:
    with pytest.raises(hamlet.OptionError, match="does not say how far it is"):
        hamlet.sql(PATTERN, {"e": EVENTS}, progress=True)  # type: ignore[call-arg]


PATTERN = "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY time MEASURES x.a AS a PATTERN (x) DEFINE x AS a > 3)"


@pytest.mark.usefixtures("folder")
def test_inputs_without_events_and_files_that_nobody_unpacks() -> None:
    def rows_of(notation: str, events: Any) -> Any:
        return hamlet.sql(PATTERN, {"e": events}) if notation == "patterns" else _results(notation, events)

    pq.write_table(pa.Table.from_pylist(EVENTS).slice(0, 0), "none.parquet")
    Path("none.csv").write_text("time,type,a\n")
    Path("empty.csv").write_text("")
    Path("e.csv.xz").write_bytes(b"?")
    Path("e.jsonl.zip").write_bytes(b"?")
    for notation in ("queries", "policies", "specifications", "patterns"):
        for path in ("none.parquet", "none.csv"):
            found = rows_of(notation, path)
            assert (found.rows(), list(found.warnings)) == ([], ["there are no events"])
        with pytest.raises(hamlet.DataError, match=r"empty\.csv is empty"):
            rows_of(notation, "empty.csv")
        for path in ("e.csv.xz", "e.jsonl.zip"):
            with pytest.raises(hamlet.OptionError, match=rf"is compressed .*{path[-3:]}"):
                rows_of(notation, path)


def test_errors_name_the_options_of_python_too() -> None:
    signature = "p(x: int)"
    policy = policies.Policy.parse("p(x)", signature)
    specification = streams.Specification.parse("input x: Int64\noutput y := x")
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN p+ WITHIN 1 s")
    events = [{"type": "p", "x": 1}]
    for ask in (
        lambda: policies.run(policy, events),
        lambda: policies.Monitor(policy).push(events),
        lambda: streams.run(specification, events),
        lambda: streams.Monitor(specification).push(events),
        lambda: hamlet.run(workload, events),
        lambda: hamlet.Engine(workload).push(events),
    ):
        with pytest.raises(DataError, match="time_column in Python, names the time column"):
            ask()
