"""Works, results and monitors of all notations have the same faces: texts, explanations, warnings, notebooks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import hamlet
import hamlet.policies as policies
import hamlet.streams as streams
from hamlet.cli import main
from hamlet.errors import MemoryLimitError, OptionError, OutputError

EVENTS = [{"time": time, "type": "Withdraw", "u": time} for time in range(40)]
SIGNATURE = "withdraw(u: int) other(u: int)"
WORKS: dict[str, Any] = {
    "queries": hamlet.Workload.parse("RETURN COUNT(*) PATTERN withdraw x WITHIN 10 s"),
    "policies": policies.Policy.parse("withdraw(u)", SIGNATURE),
    "specifications": streams.Specification.parse('input u: Int64  input U: Int64  trigger u > 1 "<b>"'),
}
each_notation = pytest.mark.parametrize("notation", WORKS)


def _ran(notation: str, **options: Any) -> Any:
    run: Any = {"queries": hamlet.run, "policies": policies.run, "specifications": streams.run}[notation]
    return run(WORKS[notation], EVENTS, **options)


def _monitor(notation: str) -> Any:
    make: Any = {"queries": hamlet.Engine, "policies": policies.Monitor, "specifications": streams.Monitor}[notation]
    return make(WORKS[notation])


@each_notation
def test_what_never_came_is_among_the_warnings_of_results(notation: str) -> None:
    said = " ".join(_ran(notation).warnings)
    assert (
        "U never occurs" if notation == "specifications" else "withdraw never occurs (did you mean Withdraw?)"
    ) in said


def test_a_predicate_that_no_policy_reads_is_missed_too() -> None:
    assert "other never occurs" in policies.run(WORKS["policies"], EVENTS).warnings


@each_notation
def test_works_explain_themselves(notation: str) -> None:
    work = WORKS[notation]
    said = work.explain()
    assert isinstance(said, str)
    assert len(said) > 40
    assert _monitor(notation).explain() == said
    assert "object at 0x" not in repr(work)


@each_notation
def test_notebooks_show_texts_and_rows(notation: str) -> None:
    for each in (WORKS[notation], _ran(notation), _monitor(notation)):
        html = each._repr_html_()
        assert html.startswith("<")
        assert "<b>" not in html
    if notation == "specifications":
        assert "38 rows" in _ran(notation)._repr_html_()
        assert "... and 18 more" in _ran(notation)._repr_html_()
        assert "&lt;b&gt;" in _ran(notation)._repr_html_()


@pytest.mark.parametrize("input_format", ["csv", "log"])
@pytest.mark.parametrize("command", ["monitor", "check"])
def test_the_command_line_says_what_never_came(
    command: str,
    input_format: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    paths = {name: tmp_path / name for name in ("p.mfotl", "s.lola", "p.sig", "e.csv", "e.log")}
    paths["p.mfotl"].write_text("withdraw(u)")
    paths["s.lola"].write_text('input u: Int64  input U: Int64  trigger u > 1 "b"')
    paths["p.sig"].write_text(f"{SIGNATURE} Withdraw(u: int)")
    paths["e.csv"].write_text("time,type,u,U\n1,Withdraw,1,\n2,Withdraw,2,\n")
    paths["e.log"].write_text("@1 Withdraw(1) @2 Withdraw(2)")
    source = ["--input", str(paths[f"e.{input_format}"])]
    assert main([command, str(paths["p.mfotl"]), "--signature", str(paths["p.sig"]), *source]) == 0
    assert "note: withdraw never occurs" in capsys.readouterr().err
    if command == "monitor":  # a log of which no event is read has events
        monkeypatch.setattr("sys.stdin", paths[f"e.{input_format}"].open())
        assert main([command, str(paths["p.mfotl"]), "--signature", str(paths["p.sig"]), "--input", "-"]) == 0
        said = capsys.readouterr().err
        assert "note: withdraw never occurs" in said
        assert "Withdraw never" not in said
    if input_format == "csv":
        assert main([command, str(paths["s.lola"]), *source]) == 0
        assert "note: U never occurs" in capsys.readouterr().err


def test_a_run_of_verdicts_hears_the_limit_of_memory() -> None:
    policy = policies.Policy.parse("EVENTUALLY[0,100000] Withdraw(u)", f"{SIGNATURE} Withdraw(u: int)")
    events = [{"time": time, "type": "withdraw", "u": time % 50} for time in range(20_000)]
    events += [{"time": time + 20_000, "type": "Withdraw", "u": time % 50} for time in range(50)]
    events += [{"time": time + 30_000, "type": "withdraw", "u": 0} for time in range(20_000)]
    with pytest.raises(MemoryLimitError, match="needs more memory than its limit"):
        policies.run(policy, events, verdicts="all", max_memory="20 kB")


@each_notation
def test_results_and_monitors_say_what_runs(notation: str) -> None:
    assert _ran(notation).explain() == _monitor(notation).explain()
    assert re.fullmatch(r"<(Engine|Monitor) of <.*>, 0 rows kept>", repr(_monitor(notation)))


STATEMENT = (
    "SELECT * FROM e MATCH_RECOGNIZE (ORDER BY time MEASURES A.u AS u PATTERN (A) DEFINE A AS u > 37)"  # two rows
)


@pytest.mark.parametrize("notation", [*WORKS, "row patterns"])
def test_results_are_one_class(notation: str) -> None:
    pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    results = hamlet.sql(STATEMENT, {"e": EVENTS}) if notation == "row patterns" else _ran(notation)
    [name] = results.names
    assert type(results) is hamlet.Results
    assert type(results.warnings) is tuple
    assert results.stats["rows"] == len(results) == len(results[name]) == len(results.rows(name))
    assert results.queries == results.policies == results.statements == results[name].names
    assert list(results) == results.rows() == results.rows(name)
    assert (name in results, "nothing" in results) == (True, False)
    table = results.table()
    assert table.equals(results.table(name))
    assert list(results.numpy()) == table.column_names == list(results.numpy(name))
    assert isinstance(results.to_polars(name), polars.DataFrame)
    assert f"{name}: {len(results)}" in repr(results)
    assert "<table>" in results._repr_html_()
    assert len(results.explain()) > 40
    with pytest.raises(OptionError, match=f"there is no .* 'nothing'; the .* are {name}"):
        results.table("nothing")


def test_several_parts_are_one_table_with_their_names() -> None:
    both = [policies.Policy.parse("withdraw(u)", SIGNATURE, name=name) for name in ("one", "two")]
    events = [{"time": 1, "type": "withdraw", "u": 5}]
    results = policies.run(both, events)
    assert results.table().column("policy").to_pylist() == ["one", "two"]
    assert [row["policy"] for row in results.rows()] == ["one", "two"]
    pytest.importorskip("duckdb")
    results = hamlet.sql(f"{STATEMENT}; {STATEMENT}", {"e": EVENTS})
    assert results.table().column("query").to_pylist() == [row["query"] for row in results] == ["q1", "q1", "q2", "q2"]
    assert results.rows("q2") == results["q2"].rows() == [{"u": 38}, {"u": 39}]
    mixed = hamlet.sql(f"{STATEMENT}; SELECT {{'a': 1}} AS u", {"e": EVENTS})
    with pytest.raises(OutputError, match=r"hint: take the tables one by one: results.table\('q1'\)"):
        mixed.table()
