"""Evidence for rows of queries: small cases by hand, the command, random workloads, and mutants."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import hamlet
from hamlet.checker import EvidenceError, check
from hamlet.cli import main
from hamlet.errors import OptionError, UnsupportedError
from tests.compare_trend_evidence import compare

TEXT = "q1: RETURN k, COUNT(*), SUM(B.v) AS s PATTERN SEQ(A, NOT C, B+) WHERE [k] GROUP-BY k WITHIN 10 s"
EVENTS = [{"time": t, "type": "ABCABB"[t], "k": 1, "v": t} for t in range(6)]


def test_a_row_has_its_trends() -> None:
    results = hamlet.run(hamlet.Workload.parse(TEXT), EVENTS)
    (row,) = results.rows()
    evidence = results.why(row)
    steps = evidence.data["steps"]
    assert [(step["at"], step["variable"], step["after"], step["count"], step["trends"]) for step in steps] == [
        (0, "A", [], 1, 4),
        (1, "B", [0], 1, 4),
        (3, "A", [], 1, 3),
        (4, "B", [1, 2], 2, 4),
        (5, "B", [1, 2, 3], 4, 4),
    ]
    assert sum(step["count"] for step in steps if step["ends"]) == row["count"]
    assert evidence.data["forbidden"][0]["events"] == [2]
    check(TEXT, EVENTS, evidence)


def test_a_pattern_that_spells_twice_gives_each_trend_once() -> None:
    text = "RETURN COUNT(*) PATTERN SEQ(A+, A+) WITHIN 10 s"
    events = [{"time": t, "type": "A"} for t in range(3)]
    evidence = hamlet.run(hamlet.Workload.parse(text), events).why({})
    assert sum(step["count"] for step in evidence.data["steps"] if step["ends"]) == 4
    check(text, events, evidence)


def test_what_stands_in_the_way_of_a_row_is_named() -> None:
    results = hamlet.run(hamlet.Workload.parse(TEXT), EVENTS)
    evidence = results.why({"window_start": 0, "k": 2})
    assert not evidence.holds
    assert evidence.data["steps"] == []
    assert evidence.data["reason"] == "type"
    check(TEXT, EVENTS, evidence)
    text = TEXT.replace("GROUP-BY k", "GROUP-BY k HAVING COUNT(*) > 100")
    evidence = hamlet.run(hamlet.Workload.parse(text), EVENTS).why({"window_start": 0, "k": 1})
    assert evidence.data["reason"] == "having"
    assert evidence.data["values"]["count"] == 7
    check(text, EVENTS, evidence)


def test_what_names_no_row_is_said() -> None:
    results = hamlet.run(hamlet.Workload.parse(TEXT), [*EVENTS, *({**each, "k": 2} for each in EVENTS)])
    with pytest.raises(OptionError, match="2 rows match"):
        results.why({"window_start": 0})
    with pytest.raises(OptionError, match="no query 'q2'"):
        results.why({"query": "q2"})
    with pytest.raises(OptionError, match="window_start in the row"):
        results.why({"k": 7})
    stream = hamlet.run(hamlet.Workload.parse(TEXT), iter(EVENTS))
    with pytest.raises(UnsupportedError, match="read once only"):
        stream.why({"k": 1})


def test_more_steps_than_the_limit_are_samples() -> None:
    events = [{"time": t, "type": "A"} for t in range(30)]
    text = "RETURN COUNT(*) PATTERN A+ WITHIN 100 s"
    evidence = hamlet.run(hamlet.Workload.parse(text), events).why({}, limit=10)
    assert evidence.data["steps"] is None
    assert evidence.data["samples"][0] == [[0, "A"]]
    assert "no more" in evidence.text()
    check(text, events, evidence)
    evidence.data["samples"][0] = [[1, "A"], [0, "A"]]
    with pytest.raises(EvidenceError):
        check(text, events, evidence)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "w.sase").write_text(TEXT)
    (tmp_path / "e.jsonl").write_text("\n".join(map(json.dumps, reversed(EVENTS))))
    call = ["why", str(tmp_path / "w.sase"), "--input", str(tmp_path / "e.jsonl")]
    assert main([*call, "--row", '{"k": 1}', "--check", "--format", "json"]) == 0
    shown = capsys.readouterr()
    data = json.loads(shown.out)
    assert data["row"]["count"] == 7
    assert [step["at"] for step in data["steps"]] == [5, 4, 2, 1, 0]  # places in the file
    assert "was checked" in shown.err


@pytest.mark.parametrize("features", ["core", "default", "conjunction", "semantics", "matched,taken", "all"])
def test_random_evidence_is_accepted_and_mutants_are_not(features: str) -> None:
    counts: Counter[str] = Counter()
    for seed in range(500, 530):
        counts += compare(seed, features)
    assert counts["rows"] > 20
    assert counts["rejected"] > 40
