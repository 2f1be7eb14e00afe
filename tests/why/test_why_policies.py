"""Proofs of policies: the example of the documents, what a terminal shows, random proofs, and mutants of them."""

from __future__ import annotations

import datetime
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hamlet.checker import EvidenceError, check
from hamlet.cli import main
from hamlet.errors import HamletError, OptionError, UnsupportedError
from hamlet.policies import Policy, run
from hamlet.policies.logs.source import types_of
from hamlet.why.policies import of_policy as why
from tests.compare_proofs import compare

ROOT = Path(__file__).parents[2]
SIGNATURE = "withdraw(u: string, a: int)\nreport(u: string)\n"
TEXT = "ALWAYS FORALL u, a. withdraw(u, a) AND a > 1000 IMPLIES EVENTUALLY[0,1d] report(u)"
EVENTS = [
    {"time": 0, "type": "withdraw", "u": "ann", "a": 2000},
    {"time": 100, "type": "withdraw", "u": "bob", "a": 20},
    {"time": 200, "type": "report", "u": "bob"},
]


@pytest.fixture
def policy() -> Policy:
    return Policy.parse(TEXT, signature=SIGNATURE)


def test_a_violation_has_its_proof(policy: Policy) -> None:
    evidence = why(policy, EVENTS, {"u": "ann"})
    assert evidence.holds
    nodes = evidence.data["nodes"]
    assert nodes[-1]["formula"].endswith("IMPLIES EVENTUALLY[0,1d] report(u)")
    assert sorted((node["formula"], str(node["time_point"]), node["holds"]) for node in nodes) == sorted(
        [
            ("a > 1000", "0", True),
            ("withdraw(u, a)", "0", True),
            ("report(u)", "[0, 2]", False),
            ("withdraw(u, a) AND a > 1000", "0", True),
            ("EVENTUALLY[0,1d] report(u)", "0", False),
            ("withdraw(u, a) AND a > 1000 IMPLIES EVENTUALLY[0,1d] report(u)", "0", False),
        ]
    )
    check(TEXT, EVENTS, evidence, signature=SIGNATURE)
    assert "fails at time-points 0 to 2" in evidence.text()
    assert "<details" in evidence.html()


@pytest.mark.parametrize(
    ("form", "right"),
    [
        (lambda time: time.replace("+00:00", "Z"), True),
        (lambda time: time.replace("T", " ").replace("+00:00", ".000000000+00:00"), True),
        (lambda time: time.replace("T10", "T12").replace("+00:00", "+02:00"), True),
        (lambda time: time.replace("+00:00", "+02:00"), False),
        (lambda time: time.replace("+00:00", ""), False),
        (lambda time: time.replace("+00:00", ".000000001+00:00"), False),
    ],
)
def test_times_of_proofs_are_instants(policy: Policy, form: Any, right: bool) -> None:
    """However they are written."""
    start = datetime.datetime(2024, 1, 1, 10, tzinfo=datetime.UTC)
    events = [{**event, "time": start + datetime.timedelta(seconds=event["time"])} for event in EVENTS]
    data = why(policy, events, {"u": "ann"}).data
    check(TEXT, events, data, signature=SIGNATURE)
    other = json.loads(re.sub(r'"(2024-[^"]+)"', lambda found: f'"{form(found[1])}"', json.dumps(data)))
    assert other != data
    if right:
        check(TEXT, events, other, signature=SIGNATURE)
        return
    with pytest.raises(EvidenceError, match="time"):
        check(TEXT, events, other, signature=SIGNATURE)


def test_a_row_that_is_not_there_has_one_too(policy: Policy) -> None:
    evidence = why(policy, EVENTS, {"time_point": 1, "u": "bob", "a": 20})
    assert not evidence.holds
    check(TEXT, EVENTS, evidence, signature=SIGNATURE)


def test_every_row_of_a_run(policy: Policy) -> None:
    events = [{**each, "time": each["time"] + 1000 * turn} for turn in range(5) for each in EVENTS]
    results = run(policy, events)
    assert len(results) == 5
    for row in results.rows():
        check(TEXT, events, results.why(row), signature=SIGNATURE)


def log_for(policy: Policy, draw: random.Random) -> str:
    """A log of the predicates that a policy names, of few values, over times as far apart as its intervals reach."""
    named = set(re.findall(r"(\w+) *\(", policy.text))
    types = [(name, kinds) for (name, _), kinds in types_of(policy.signature).items() if name in named]
    choices: dict[str, list[Any]] = {
        "string": [*re.findall(r'"[^"]*"', policy.text), '"a"', '"b"'],
        "int": [*range(4), *(int(each) + step for each in re.findall(r"[<>=] *(\d+)", policy.text) for step in (0, 1))],
        "float": [0.5, 1.5, 60.0],
    }
    reach, time = max([1, *map(int, re.findall(r", *(\d+)", policy.text))]), 0
    lines = []
    for _ in range(25):
        time += draw.randrange(max(2, reach // 3 + 1))
        events = [
            f"{name}({', '.join(str(draw.choice(choices[kind])) for kind in kinds)})"
            for name, kinds in draw.choices(types, k=draw.randrange(5))
        ]
        lines.append(f"@{time} {' '.join(events)};\n")
    return "".join(lines)


@pytest.mark.parametrize("path", sorted((ROOT / "workloads").glob("*.mfotl")), ids=lambda path: path.stem)
def test_all_rows_of_the_published_policies(path: Path, tmp_path: Path) -> None:
    own = path.with_suffix(".sig")
    for signature in [own] if own.exists() else sorted(path.parent.glob("*.sig")):
        try:
            policy = Policy.from_file(path, signature)
        except HamletError:
            continue
        break
    log, shown = tmp_path / "events.log", 0
    for seed in range(20):
        log.write_text(log_for(policy, random.Random(seed)))
        results = run(policy, log)
        for row in results.rows()[:30]:
            evidence = results.why(row)
            assert evidence.holds
            check(policy.text, str(log), evidence, signature=policy.signature.text)
            shown += 1
        if shown > 10:
            break
    assert shown


def test_what_names_no_row_is_said(policy: Policy) -> None:
    with pytest.raises(OptionError, match=r"no row matches.*needs time_point, a"):
        why(policy, EVENTS, {"u": "carl"})
    with pytest.raises(OptionError, match="no column 'user'"):
        why(policy, EVENTS, {"user": "ann"})
    twice = [*EVENTS, {"time": 300, "type": "withdraw", "u": "ann", "a": 5000}]
    with pytest.raises(OptionError, match="2 rows match"):
        why(policy, twice, {"u": "ann"})
    with pytest.raises(OptionError, match="3 time-points"):
        why(policy, EVENTS, {"u": "ann", "a": 1, "time_point": 9})


def test_equal_claims_at_neighbouring_time_points_are_one_wherever_they_stand() -> None:
    text = "((x >= 0) SINCE[4,9] ((x >= 0) AND p(x))) AND q(x)"
    log = "@0 p(1);\n@3 ;\n@5 q(1);\n"
    policy = Policy.parse(text, "p(x: int) q(x: int)")
    evidence = why(policy, log_of(log), {"x": 1})
    told = [node["time_point"] for node in evidence.data["nodes"] if node["formula"] == "x >= 0"]
    assert told == [[0, 2]]
    check(text, log_of(log), evidence, signature="p(x: int) q(x: int)")


def log_of(text: str) -> list[dict[str, Any]]:
    """A log of single values as dicts, one for each time-point."""
    found = []
    for line in text.splitlines():
        time, _, rest = line.strip("@;").partition(" ")
        name, _, value = rest.rstrip(");").partition("(")
        found.append({"time": int(time), "type": name or "other", "x": int(value) if value else None})
    return found


def test_integers_beyond_64_bits_are_digits(tmp_path: Path) -> None:
    signature, text = "p(x: int)", "p(x) AND y = x * x"
    large = 10**29 + 7
    (tmp_path / "p.log").write_text(f"@0 p({large}) p(2);\n")
    policy = Policy.parse(text, signature)
    row = {"time_point": 0, "x": str(large), "y": str(large * large)}
    evidence = why(policy, str(tmp_path / "p.log"), row)
    assert evidence.holds
    assert evidence.data["nodes"][0]["valuation"] == {"x": str(large)}
    check(text, str(tmp_path / "p.log"), json.loads(evidence.json()), signature=signature)


def test_rows_of_verdicts_are_told_as_they_are() -> None:
    signature, text = "e()", "EVENTUALLY[0,5] e()"
    events = [{"time": time, "type": kind} for time, kind in zip((0, 2, 2, 3, 9), ".,;.e", strict=True)]
    policy = Policy.parse(text, signature)
    given = {"verdicts": "equivalent", "time_points": "event"}
    for row in run(policy, events, **given).rows():
        evidence = why(policy, events, {name: row[name] for name in ("time", "offset")}, **given)
        told = evidence.data["row"]
        assert {name: told.get(name) for name in row} == {**row, "policy": told["policy"]}
        if row["verdict"] is not None:
            assert evidence.data["nodes"][-1]["holds"] is row["verdict"]
            wrong = why(policy, events, {**row, "verdict": not row["verdict"]}, **given)
            assert not wrong.holds
            check(text, events, wrong, signature=signature, time_points="event")
        check(text, events, evidence, signature=signature, time_points="event")


@pytest.mark.parametrize(
    "expression", ["a() . b()", "(a() + b())* . c()?", "a() (. b()? + c()) a()", "a()? . b() (a()? . c())*"]
)
@pytest.mark.parametrize("operator", ["MATCHP", "MATCHF"])
def test_a_match_that_fails_needs_all_of_its_claims(expression: str, operator: str) -> None:
    text, signature, compared = f"{operator}[0,4] {expression}", "a() b() c()", 0
    for seed in range(30):
        draw = random.Random(seed)
        events = [{"time": time, "type": draw.choice("abcd")} for time in range(7)]
        evidence = why(Policy.parse(text, signature), events, {"time_point": 4 if operator == "MATCHP" else 2})
        for place in range(0 if evidence.holds else len(evidence.data["nodes"]) - 1):
            data = json.loads(evidence.json())
            del data["nodes"][place]
            data["nodes"][-1]["because"].pop()  # all others are its children
            with pytest.raises(EvidenceError):
                check(text, events, data, signature=signature)
            compared += 1
    assert compared > 5


def test_a_wrong_child_is_found(policy: Policy) -> None:
    data: dict[str, Any] = json.loads(why(policy, EVENTS, {"u": "ann"}).json())
    (wide,) = [place for place, node in enumerate(data["nodes"]) if node["formula"] == "report(u)"]
    data["nodes"][wide] |= {"time_point": [0, 1], "time": [0, 100]}
    with pytest.raises(EvidenceError) as found:
        check(TEXT, EVENTS, data, signature=SIGNATURE)
    assert data["nodes"][found.value.node]["formula"].startswith("EVENTUALLY")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.mfotl").write_text(TEXT)
    (tmp_path / "p.sig").write_text(SIGNATURE)
    (tmp_path / "p.log").write_text("@0 withdraw(ann,2000);\n@100 withdraw(bob,20);\n@200 report(bob);\n")
    call = ["why", str(tmp_path / "p.mfotl"), "-s", str(tmp_path / "p.sig"), "--input", str(tmp_path / "p.log")]
    assert main([*call, "--row", '{"u": "ann"}', "--check", "--format", "json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["kind"] == "proof"
    assert "was checked" in shown.err
    assert main([*call, "--row", "ann"]) == 2
    assert "--row is no JSON" in capsys.readouterr().err
    assert main([*call, "--row", '{"u": "ann"}', "--format", "html", "-o", str(tmp_path / "e.html")]) == 0
    assert "<details" in (tmp_path / "e.html").read_text()


def test_random_proofs_are_accepted_and_mutants_are_not(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    start = random.Random(5).randrange(10**6)
    for seed in range(start, start + 60):
        counts += compare(seed, tmp_path / "events.log")
    assert counts["proofs"] > 200
    assert counts["rejected"] > 500


def test_random_proofs_of_regular_expressions_and_recursion(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for seed in range(700, 740):
        counts += compare(seed, tmp_path / "events.log", matching=True)
    assert counts["proofs"] > 120
    assert counts["rejected"] > 300


@pytest.mark.parametrize("name", ["time", "time_point", "offset", "verdict", "same_as_time"])
@pytest.mark.parametrize("verdicts", ["satisfied", "all", "equivalent"])
def test_variables_may_be_named_like_columns(name: str, verdicts: str) -> None:
    text, signature = f"ONCE[0,3] p({name})", "p(x: int)"
    events = [{"time": time, "type": "p", "x": x} for time, x in [(0, 1), (5, 1), (7, 2)]]
    results = run(Policy.parse(text, signature=signature), events, verdicts=verdicts)
    for row in results.rows():
        evidence = results.why(row)
        assert evidence.holds
        assert evidence.data["row"].items() >= {key: value for key, value in row.items() if value is not None}.items()
        check(text, events, evidence, signature=signature)


def test_what_follows_is_no_row_where_the_result_has_none() -> None:
    text, signature = "p(x) OR EVENTUALLY[0,3] q(x)", "p(x: int) q(x: int)"
    events = [{"time": 0, "type": "p", "x": 1}]
    policy = Policy.parse(text, signature=signature)
    assert not run(policy, events, open_end=True).rows()  # other values may follow, so the time-point is not decided
    with pytest.raises(UnsupportedError, match="has no such row yet"):
        run(policy, events, open_end=True).why({"time_point": 0, "x": 1})
    with pytest.raises(UnsupportedError, match="the rows of a key begin"):
        run(policy, events, verdicts="all").why({"time": 0, "offset": 0, "x": 7})


@pytest.mark.parametrize(
    ("kind", "value"),
    [("int", None), ("int", True), ("int", 1.5), ("int", "x"), ("float", "x"), ("string", 3), ("bool", 1)],
)
def test_a_value_of_another_type_is_said(kind: str, value: object) -> None:
    events = [{"time": 0, "type": "p", "x": None}]
    with pytest.raises(OptionError, match=r"in the row \(--row\) is not"):
        why(Policy.parse("p(x)", signature=f"p(x: {kind})"), events, {"time_point": 0, "x": value})


def test_the_row_of_a_proof_is_a_row(policy: Policy) -> None:
    data = why(policy, EVENTS, {"u": "ann"}).data
    for row in ({**data["row"], "b": 1}, {key: value for key, value in data["row"].items() if key != "time_point"}):
        with pytest.raises(EvidenceError):
            check(TEXT, EVENTS, {**data, "row": row}, signature=SIGNATURE)


def test_the_command_hears_which_time_points_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = {"p.mfotl": "NEXT (p() UNTIL[0,3] q())", "p.sig": "p() q()", "p.log": "@0 p() @0 p() @1 p() @1 p() @7 q()"}
    for name, text in work.items():
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / "p.mfotl"), "--signature", str(tmp_path / "p.sig"), "--input", str(tmp_path / "p.log")]
    shown = ["--verdicts", "equivalent", "--mode", "global", "--row", '{"time": 1, "offset": 0}']
    assert main(["why", *files, *shown, "--format", "json", "--check"]) == 0
    told = json.loads(capsys.readouterr().out)["row"]
    assert (told["same_as_time"], told["same_as_offset"]) == (0, 1)  # time-points of one time alone would not be


@pytest.mark.parametrize("chosen", [{"since": 2}, {"until": 3}, {"where": "x > 1"}])
def test_the_options_that_choose_events_are_those_of_the_run(chosen: dict[str, Any]) -> None:
    text, signature = "ONCE[0,2] p(x)", "p(x: int)"
    events = [{"time": time, "type": "p", "x": time} for time in range(5)]
    results = run(Policy.parse(text, signature=signature), events, **chosen)
    for row in [*results.rows(), {"time_point": 0, "x": 7}]:
        evidence = results.why(row)
        assert evidence.holds is (row in results.rows())
        check(text, events, evidence, signature=signature, **chosen)


@pytest.mark.parametrize(
    "text", ["MATCHF[0,2] . . p(x)?", "MATCHF[0,2] (. . p(x)) + (p(x)? . .)", "MATCHF[0,1] (.)* p(x)?"]
)
def test_behind_an_open_end_a_match_may_take_any_number_of_steps(text: str) -> None:
    signature = "p(x: int)"
    events = [{"time": time, "type": "p", "x": 1} for time in (0, 1)]
    policy = Policy.parse(text, signature=signature)
    row = {"time_point": 1, "x": 7}
    with pytest.raises(UnsupportedError, match="there is no proof"):
        why(policy, events, row, open_end=True)
    evidence = why(policy, events, row)  # but the last time-point of a complete input has nothing near behind it
    check(text, events, evidence, signature=signature)
    with pytest.raises(EvidenceError, match="does not follow"):
        check(text, events, {**evidence.data, "open_end": True}, signature=signature)
