"""Small traps that new users fell into, each with a message or a result that says what is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import hamlet
import hamlet.streams
from hamlet.cli import main
from hamlet.testing import assert_trends, describe_trends

EVENTS = "time,type,user\n1360324800,A,x\n1360324801,B,x\n"


def said_of(text: str) -> str:
    with pytest.raises(hamlet.WorkloadError) as found:
        hamlet.Workload.parse(text)
    return str(found.value)


@pytest.mark.parametrize("pattern", ["page-view", "SEQ(page-view, buy)", "SEQ(buy, page-view+)"])
def test_a_name_with_a_hyphen(pattern: str) -> None:
    said = said_of(f"RETURN COUNT(*) PATTERN {pattern} WITHIN 10 s")
    assert 'a name with a hyphen is written in double quotes: "page-view"' in said


def test_a_comparison_with_a_negated_event() -> None:
    said = said_of("RETURN COUNT(*) PATTERN SEQ(A, NOT R, P) WHERE R.price = P.price WITHIN 10 s")
    assert (
        "a negated event cannot be compared with a taken one; [price] would ask for equal values of price in all"
        in said
    )


@pytest.mark.parametrize(
    ("pattern", "warned"), [("SEQ(A, B+?)", True), ("SEQ(A, (B+)?)", False), ("SEQ(A, B?)", False)]
)
def test_a_reluctant_quantifier(pattern: str, warned: bool) -> None:
    workload = hamlet.Workload.parse(f"RETURN COUNT(*) PATTERN {pattern} WITHIN 10 s")
    assert [each.message for each in workload.warnings] == warned * [
        "B+? makes B+ optional; it does not mean as few as possible, for all matches are counted"
    ]


def test_attributes_in_a_line_of_types() -> None:
    for act in (describe_trends, lambda query, events: assert_trends(query, events, 1)):
        with pytest.raises(hamlet.DataError, match="attributes need a table with a head line"):
            act("RETURN COUNT(*) PATTERN view WITHIN 10 s", "view(user=a)")


def test_files_that_are_swapped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events, workload = tmp_path / "clicks.csv", tmp_path / "funnel.sase"
    events.write_text(EVENTS)
    workload.write_text("RETURN COUNT(*) PATTERN A WITHIN 10 s")
    for command in ("run", "check", "explain"):
        assert main([command, str(events), "--input", str(workload)]) == 2
        assert "is it the input, and" in capsys.readouterr().err


def test_thousands_of_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workload = tmp_path / "w.sase"
    workload.write_text("RETURN COUNT(*) PATTERN WITHIN 10 s;\n" * 1000)
    assert main(["check", str(workload)]) == 2
    said = capsys.readouterr().err
    assert said.count("w.sase:") == 50
    assert said.endswith("... and 950 more mistakes\n")


def test_dates_on_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events, workload = tmp_path / "e.csv", tmp_path / "w.sase"
    events.write_text(EVENTS)
    workload.write_text("RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN 1 h")
    assert main(["run", str(workload), "--input", str(events), "--output", "-", "--dates"]) == 0
    assert '"window_start": "2013-02-08T12:00:00"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("written", "present", "meant"),
    [
        ("weight", "height", False),
        ("rider", "driver", False),
        ("v2", "v1", False),
        ("xx", "x", False),
        ("speeed", "speed", True),
        ("UserId", "user_id", True),
        ("drievr", "driver", True),
        ("prices", "price", True),
    ],
)
def test_an_attribute_that_no_dict_has(written: str, present: str, meant: bool) -> None:
    """It is NULL unless its name is that of another one but for a slip."""
    workload = hamlet.Workload.parse(f"RETURN COUNT(*), SUM(A.{written}) AS s PATTERN A WITHIN 10 s")
    events = [{"time": 1, "type": "A", present: 1}]
    engine = hamlet.Engine(workload)
    if meant:
        for run in (lambda: hamlet.run(workload, events), lambda: engine.push(events)):
            with pytest.raises(hamlet.WorkloadError, match=f"did you mean {present}"):
                run()
        return
    assert hamlet.run(workload, events).rows()[0]["s"] is None
    engine.push(events)
    engine.push([{"time": 2, "type": "A", written: 5}])
    assert [row["s"] for row in engine.close()] == [5]


CLICKS = [{"time": 1, "type": "view", "n": 2}]
COUNTED = hamlet.Workload.parse("RETURN COUNT(*) PATTERN view WITHIN 10 s")
READ = hamlet.policies.Policy.parse("view(n)", "view(n: int)")
BIG = hamlet.streams.Specification.parse("input n: Int64\ntrigger n > 1")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: hamlet.run(COUNTED, CLICKS)[0], r"\[0\] names no query; rows are in rows\(\)"),
        (lambda: hamlet.run(COUNTED, CLICKS, where=len), "where is a builtin_function_or_method; it must be a text"),
        (lambda: hamlet.policies.run(READ, CLICKS, where=1), "where is a int; it must be a text"),
        (lambda: hamlet.streams.run(BIG, CLICKS, where=len), "where is a builtin_function_or_method; it must be"),
        (lambda: hamlet.policies.run(BIG, CLICKS), "a policy is a hamlet.policies.Policy, not a Specification"),
        (lambda: hamlet.policies.Monitor(None), "a policy is a hamlet.policies.Policy, not a NoneType"),
        (
            lambda: hamlet.policies.Policy.parse("view(n)", None),
            "a signature is text such as 'withdraw.user: int.'",
        ),
        (lambda: hamlet.sql("SELECT * FROM t", t=CLICKS), r"tables are given together: hamlet.sql\(text, {'t': ...}\)"),
        (lambda: hamlet.sql(None), "the text of a statement is a str, not a NoneType"),
        (lambda: hamlet.Engine(COUNTED).push("e.csv"), "cannot read events from an object of type str"),
    ],
)
def test_what_python_is_given_in_place_of_what_is_meant(call: Any, said: str) -> None:
    with pytest.raises(hamlet.HamletError, match=said):
        call()


def test_a_scanner_of_a_dataset() -> None:
    scanner = ds.dataset(pa.Table.from_pylist(CLICKS)).scanner()
    assert [row["count"] for row in hamlet.run(COUNTED, scanner).rows()] == [1]
