"""Evidence for rows of specifications: a case by hand, the command, random specifications, and mutants."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hamlet.checker import EvidenceError, check
from hamlet.checker.values import alike
from hamlet.cli import main
from hamlet.errors import OptionError
from hamlet.streams import Specification, run
from tests.compare_values import compare

TEXT = """input price: Float64
input product: String
output avg @1Hz := price.aggregate(over: 3s, using: avg).defaults(to: 0.0)
output diff := price - price.offset(by: -1).defaults(to: price)
output sold(p: String) spawn with product eval when product = p with sold(p).offset(by: -1).defaults(to: 0) + 1
trigger diff > 3.0 "jump"
"""
EVENTS = [
    {"time": time, "price": price, "product": product}
    for time, price, product in [(0.0, 1.0, "a"), (1.0, 2.0, None), (1.5, 7.0, "a"), (3.0, 8.0, "b"), (4.0, 8.5, "a")]
]


def test_every_row_has_its_values() -> None:
    results = run(Specification.parse(TEXT), EVENTS, values=True)
    for row in results.rows():
        evidence = results.why(row)
        assert evidence.holds
        check(TEXT, EVENTS, evidence)
    evidence = results.why({"trigger": "jump"})
    assert [(node["stream"], node["value"]) for node in evidence.data["nodes"]] == [
        ("price", 7.0),
        ("price", 2.0),
        ("diff", 5.0),
        (0, "jump"),
    ]


def test_junk_in_evidence_is_told() -> None:
    """Whatever stands somewhere is no crash of the checker."""
    data = json.loads(run(Specification.parse(TEXT), EVENTS, values=True).why({"trigger": "jump"}).json())
    junk: tuple[Any, ...] = (True, -1, 1, 2**70, float("nan"), "x", "inf", [[]], {"in": []})
    for place, node in enumerate(data["nodes"]):
        for name in node:
            for value in (each for each in junk if each != node[name] or each is True):
                nodes = [*data["nodes"][:place], {**node, name: value}, *data["nodes"][place + 1 :]]
                with pytest.raises(EvidenceError):
                    check(TEXT, EVENTS, {**data, "nodes": nodes})
    for name in ("time", "trigger"):
        for value in junk:
            with pytest.raises(EvidenceError):
                check(TEXT, EVENTS, {**data, "row": {**data["row"], name: value}})


def test_an_instance_that_is_gone_takes_its_values_with_it() -> None:
    text = """input i: String
output s(p: String) spawn with i eval @i when i = p with 1.5 close @i when (true || i[-1].defaults(to: "z") = p)
output t @2Hz := s("y").hold(or: 7.0) - s("y").aggregate(over: 4s, using: min).defaults(to: 0.5)
"""
    events = [{"time": time, "i": name} for time, name in [(0.0, "x"), (1.6, "y"), (1.8, "y"), (2.0, "z"), (3.0, "x")]]
    results = run(Specification.parse(text), events, values=True)
    rows = [row for row in results.rows() if row["stream"] == "t"]
    assert {row["value"] for row in rows} == {6.5, 5.5}
    for row in rows:
        check(text, events, results.why(row))


def test_what_is_read_before_the_first_step_is_no_claim_about_the_last() -> None:
    text = """input i: Int64
output s(p: Int64) spawn with i eval when i = p with i
output t @i := s(0).offset(by: -2.5s).defaults(to: 1) + i
"""
    events = [{"time": 1.0, "i": value} for value in (6, 0, 5)]
    results = run(Specification.parse(text), events, values=True)
    for value in (7, 1, 6):
        check(text, events, results.why({"stream": "t", "value": value}))


def test_a_trigger_that_did_not_fire() -> None:
    results = run(Specification.parse(TEXT), EVENTS)
    evidence = results.why({"trigger": 0, "time": 4.0})
    assert not evidence.holds
    check(TEXT, EVENTS, evidence)
    with pytest.raises(OptionError, match="no row matches"):
        results.why({"trigger": 7, "time": 4.0})
    with pytest.raises(OptionError, match="no row matches"):
        results.why({"time": 3.75})


def test_a_trigger_that_did_not_fire_by_its_message() -> None:
    text = 'input v: Int64\ntrigger v > 2 "much"\ntrigger v > 3 "much"\ntrigger v < 0 "little"'
    results = run(Specification.parse(text), [{"time": 1, "v": 1}])
    evidence = results.why({"trigger": "little", "time": 1})
    assert (evidence.holds, evidence.data["nodes"][-1]["stream"]) == (False, 2)
    check(text, [{"time": 1, "v": 1}], evidence)
    with pytest.raises(OptionError, match="the triggers 0 and 1 say 'much'"):
        results.why({"trigger": "much", "time": 1})


def test_a_wrong_value_is_found() -> None:
    data = run(Specification.parse(TEXT), EVENTS).why({"trigger": "jump"}).data
    data["nodes"][1]["value"] = 6.0
    with pytest.raises(EvidenceError) as found:
        check(TEXT, EVENTS, data)
    assert found.value.node == 1


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.lola").write_text(TEXT)
    (tmp_path / "e.jsonl").write_text("\n".join(map(json.dumps, EVENTS)))
    call = ["why", str(tmp_path / "s.lola"), "--input", str(tmp_path / "e.jsonl"), "--row", '{"trigger": "jump"}']
    assert main([*call, "--check"]) == 0
    assert "trigger 0 = jump at event 2" in capsys.readouterr().out


def test_random_evidence_is_accepted_and_mutants_are_not() -> None:
    counts: Counter[str] = Counter()
    for seed in range(600, 640):
        counts += compare(seed)
    assert counts["refused"] < 20
    assert counts["rows"] > 100
    assert counts["rejected"] > 10 * counts["still evidence"]


def test_a_float_in_a_message_may_differ_by_rounding_and_nothing_else_may() -> None:
    assert alike("mean 0.40000000050000006 of 3", "mean 0.4000000005 of 3")
    assert not alike("mean 0.4 of 3", "mean 0.5 of 3")
    assert not alike("mean 0.4 of 3", "mean 0.4 of 4")
    assert not alike("mean 0.4", "mean 0.4 and 0.5")


def test_a_default_stands_only_where_no_value_was() -> None:
    text = "input i: Int64\noutput n @1Hz := n.offset(by: -1).defaults(to: 0) + 1"
    events = [{"time": float(time), "i": time} for time in range(4)]
    node = {"stream": "n", "parameters": [], "at": None, "time": 1.0, "value": 1, "because": []}
    data = {"kind": "value", "row": {"stream": "n", "time": 1.0, "value": 1}, "holds": True, "nodes": [node]}
    check(text, events, data)
    later = {**data, "row": {**data["row"], "time": 3.0}, "nodes": [{**node, "time": 3.0}]}
    with pytest.raises(EvidenceError, match="does not follow from its children"):
        check(text, events, later)  # n is 3 there


def test_what_an_input_gives_is_a_child() -> None:
    text = "input i: Int64\noutput n := i + 1"
    node = {"stream": "n", "parameters": [], "at": 0, "time": 0.0, "value": 4, "because": []}
    data = {"kind": "value", "row": {"stream": "n", "time": 0.0, "value": 4}, "holds": True, "nodes": [node]}
    with pytest.raises(EvidenceError, match="does not follow from its children"):
        check(text, [{"time": 0.0, "i": 3}], data)


def test_a_row_with_another_value() -> None:
    results = run(Specification.parse(TEXT), EVENTS, values=True)
    row = {"stream": "diff", "time": 1.5, "value": 5.0}
    evidence = results.why({**row, "value": 6.0})
    assert not evidence.holds
    assert evidence.data["nodes"][-1]["value"] == 5.0
    check(TEXT, EVENTS, evidence)
    for mutant in ({"row": row}, {"holds": True}, {"row": {**row, "stream": "avg", "value": 6.0}}):
        with pytest.raises(EvidenceError):
            check(TEXT, EVENTS, {**evidence.data, **mutant})


def test_the_row_that_is_not_there_is_one_of_the_last_node() -> None:
    data = run(Specification.parse(TEXT), EVENTS, values=True).why({"stream": "diff", "time": 1.5, "value": 1.0}).data
    none = run(Specification.parse(TEXT), EVENTS).why({"trigger": "jump", "time": 3.0}).data
    check(TEXT, EVENTS, none)
    for mutant in ({**data, "row": {**data["row"], "q": 1}}, {**none, "row": {"stream": "diff", "time": 3.0}}):
        with pytest.raises(EvidenceError, match="have no column"):
            check(TEXT, EVENTS, mutant)


@pytest.mark.parametrize("chosen", [{"since": 1.5}, {"until": 3.5}, {"where": "price > 1"}])
def test_the_options_that_choose_events_are_those_of_the_run(chosen: dict[str, Any]) -> None:
    results = run(Specification.parse(TEXT), EVENTS, values=True, **chosen)
    for row in results.rows():
        check(TEXT, EVENTS, results.why(row), **chosen)


def test_what_is_not_checked_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.lola").write_text("input i: Int64\noutput n @1Hz := i.aggregate(over: 99s, using: count)")
    (tmp_path / "e.csv").write_text("time,i\n" + "".join(f"{place / 64},1\n" for place in range(65)))
    call = ["why", str(tmp_path / "s.lola"), "--input", str(tmp_path / "e.csv"), "--row", '{"time": 1.0}']
    assert main([*call, "--limit", "1", "--check"]) == 0
    assert "checked, but for 1 node that" in capsys.readouterr().err
