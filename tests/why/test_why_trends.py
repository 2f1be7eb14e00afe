"""Evidence for rows of queries: small cases by hand, the command, random workloads, and mutants."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from hamlet.checker import EvidenceError, check
from hamlet.checker.clocks import is_window
from hamlet.checker.events import trend_checker
from hamlet.cli import main
from hamlet.errors import OptionError, UnsupportedError
from hamlet.input.events import open_events
from hamlet.oracle.calendar import windows_in
from hamlet.why.trends.graph import Step
from hamlet.why.trends.reading import chosen
from tests.compare_trend_evidence import compare
from tests.effort import share_of

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


@pytest.mark.parametrize(
    ("types", "query", "reason"),
    [
        ("BB", "SEQ(A, NOT C, B)", "type"),
        ("AB", "SEQ(A, B) WHERE A.v > 5", "predicate"),
        ("AB", "SEQ(A, B) WHERE A.v > NEXT(B).v", "predicate"),
        ("BAC", "SEQ(A, NOT C, B)", "order"),
        ("ACB", "SEQ(A, NOT C, B)", "negation"),
        ("AB", "SEQ(A, B, A?) HAVING COUNT(*) > 1", "having"),
        ("AB", "SEQ(A, B) GROUP-BY COUNT(A) HAVING COUNT(*) > 1", "having"),
        ("ABC", "SEQ(A, C) SPAN 1 s", "order"),
    ],
)
def test_the_first_thing_in_the_way_is_the_reason(types: str, query: str, reason: str) -> None:
    text = f"RETURN COUNT(*) PATTERN {query} WITHIN 10 s"
    events = [{"time": t, "type": kind, "v": t} for t, kind in enumerate(types)]
    row = {"window_start": 0, "count_A": 1} if "COUNT(A)" in query else {"window_start": 0}
    evidence = hamlet.run(hamlet.Workload.parse(text), events).why(row)
    assert (evidence.holds, evidence.data["reason"]) == (False, reason)
    check(text, events, evidence)


def test_a_session_that_has_no_row_is_named_by_its_start() -> None:
    text = "RETURN k, COUNT(*) PATTERN SEQ(A, B) GROUP-BY k WITHIN SESSION 2 s"
    events = [{"time": t, "type": kind, "k": 1} for t, kind in enumerate("BA")]
    results = hamlet.run(hamlet.Workload.parse(text), events)
    evidence = results.why({"k": 1, "window_start": 0})
    assert evidence.data["window"] == [0, 3]
    check(text, events, evidence)
    with pytest.raises(OptionError, match="no session of this group begins at 1"):
        results.why({"k": 1, "window_start": 1})


def test_what_names_no_row_is_said() -> None:
    results = hamlet.run(hamlet.Workload.parse(TEXT), [*EVENTS, *({**each, "k": 2} for each in EVENTS)])
    with pytest.raises(OptionError, match="2 rows match"):
        results.why({"window_start": 0})
    with pytest.raises(OptionError, match="no query 'q2'"):
        results.why({"query": "q2"})
    with pytest.raises(OptionError, match="window_start in the row"):
        results.why({"k": 7})
    with pytest.raises(OptionError, match="no column 'n'; they have window_start, window_end, k, count, s"):
        results.why({"n": 7})
    with pytest.raises(OptionError, match="no window of q1 begins at 3; windows begin at 0 and 10"):
        results.why({"window_start": 3, "k": 1})
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
    both = text.replace("A+", "A+ AND SEQ(A, A?)")
    evidence_of_both = hamlet.run(hamlet.Workload.parse(both), events).why({}, limit=10)
    assert (evidence_of_both.data["steps"], "operands" in evidence_of_both.data) == (None, False)
    check(both, events, evidence_of_both)
    evidence.data["samples"][0] = [[1, "A"], [0, "A"]]
    with pytest.raises(EvidenceError):
        check(text, events, evidence)


@pytest.mark.parametrize("condition", ["", "WHERE A.v <= NEXT(B).v"])
def test_no_pairs_are_looked_at_where_too_many_steps_are_sure(monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    made: list[Step] = []
    monkeypatch.setattr("hamlet.why.trends.graph.Step", lambda *given: made.append(Step(*given)) or made[-1])
    text = f"RETURN COUNT(*) PATTERN SEQ(A, B+) {condition} WITHIN ALL"
    events = [{"time": time, "type": "AB"[time % 2], "v": time} for time in range(400)]
    evidence = hamlet.run(hamlet.Workload.parse(text), events).why({}, limit=200)
    assert evidence.data["steps"] is None
    assert len(evidence.data["samples"]) == 3
    assert len(made) < 100
    check(text, events, evidence)


def test_a_window_of_any_size_has_samples() -> None:
    events = [{"time": t, "type": "AB"[t % 2]} for t in range(8_000)]
    text = "RETURN COUNT(*) PATTERN SEQ(A+, NOT C, B) WITHIN 100000 s"
    evidence = hamlet.run(hamlet.Workload.parse(text), events).why({}, limit=20)
    assert evidence.data["steps"] is None
    assert len(evidence.data["samples"]) == 3
    text = text.replace("C, B", "B, C")  # of a type that never comes
    assert hamlet.run(hamlet.Workload.parse(text), events).why({"window_start": 0}).data["reason"] == "type"


def test_only_the_window_and_the_key_are_read(tmp_path: Path) -> None:
    kinds = ["C" if t % 97 == 0 else "ABDAB"[t % 5] for t in range(1000)]
    table = pa.table({"time": range(1000), "type": kinds, "k": [t % 7 for t in range(1000)], "v": range(1000)})
    pq.write_table(table, tmp_path / "e.parquet", row_group_size=100)
    (tmp_path / "two").mkdir()
    pq.write_table(table[:350], tmp_path / "two" / "a.parquet", row_group_size=100)
    pq.write_table(table[350:], tmp_path / "two" / "b.parquet", row_group_size=100)
    events = table.to_pylist()
    for within in ("WITHIN 200 s SLIDE 100 s", "SPAN 30 s WITHIN 100 s", "WITHIN SESSION 20 s", "WITHIN ALL"):
        declared = "" if "SESSION" in within else "EVENT C(v INT); "  # of every key
        text = f"{declared}RETURN k, COUNT(*) PATTERN SEQ(A, NOT C, B) GROUP-BY k {within}"
        workload = hamlet.Workload.parse(text)
        rows = hamlet.run(workload, events).rows()
        assert len(rows) > 5
        for row in rows[-9::4]:
            expected = hamlet.why.of_query(workload, events, row).data
            for given in ("e.parquet", "two"):
                found = hamlet.why.of_query(workload, str(tmp_path / given), row)
                assert found.data == expected
                check(text, str(tmp_path / given), found)
    source = open_events(str(tmp_path / "e.parquet"))
    chosen(source, None, (), None, (500, 599), {"k": 3})
    assert source.left_out == {"by their times": 9}


CHAIN = """q1: RETURN k, COUNT(*) AS n, SUM(B.v) AS s PATTERN SEQ(A, B+) WHERE [k] GROUP-BY k HAVING COUNT(*) > 1
WITHIN 4 s;
q2: RETURN k, COUNT(*), MAX(r.n) AS most PATTERN SEQ(q1 r, NOT C, q1 s) WHERE [k] AND r.n < NEXT(s).n GROUP-BY k
WITHIN 16 s;
q3: RETURN COUNT(*) PATTERN q2 t+ WITHIN ALL"""


def chained() -> list[dict[str, Any]]:
    """Windows of an A and more and more B, for two keys."""
    letters = enumerate("ABB.ABBB.C..ABBBB...ABB.")
    return [{"time": t, "type": x, "k": k, "v": t / 4} for t, x in letters if x != "." for k in (1, 2)]


def test_rows_of_other_queries_are_events() -> None:
    events = chained()
    results = hamlet.run(hamlet.Workload.parse(CHAIN), events)
    for row in results.rows():
        evidence = results.why(row)
        check(CHAIN, events, evidence)
        check(CHAIN, events, json.loads(evidence.json()))
        assert ("rows" in evidence.data) is (row["query"] != "q1")
    evidence = results.why({"query": "q2", "k": 1, "window_start": 0})
    first, second = evidence.data["steps"]
    assert (first["at"], first["event"]["n"], second["at"], second["event"]["n"]) == (-1, 3, -2, 7)
    assert [each["row"] for each in evidence.data["because"]] == [each["row"] for each in evidence.data["rows"][:2]]
    for each in evidence.data["rows"]:  # what to ask next
        check(CHAIN, events, results.why(each["row"]))
    text = evidence.text().splitlines()
    assert text[2] == "    #0 r row 1 of q1 (window_start=0, window_end=4, k=1, n=3, s=1.5): begins; 1 trends"
    assert text[4] == "  query=q1, window_start=0, window_end=4, k=1, n=3, s=1.5: in the result"
    page = evidence.html()
    assert page.count("<details>") == 2
    assert "row 2 of q1" in page


def test_a_row_of_a_chained_query_that_is_not_there() -> None:
    events = chained()
    results = hamlet.run(hamlet.Workload.parse(CHAIN), events)
    for row in ({"query": "q2", "k": 2, "window_start": 16}, {"query": "q2", "k": 9, "window_start": 0}):
        evidence = results.why(row)
        assert not evidence.holds
        assert evidence.data["steps"] == []
        check(CHAIN, events, evidence)
    evidence = results.why({"query": "q2", "k": 2, "window_start": 16})
    assert (evidence.data["reason"], len(evidence.data["rows"])) == ("predicate", 2)
    assert '    row 1: {"query": "q1", "window_start": 12' in evidence.text()
    with_another = results.why({"query": "q2", "k": 1, "window_start": 0, "most": 9})
    assert (with_another.holds, with_another.data["values"]) == (False, {"count": 1, "most": 3})
    check(CHAIN, events, with_another)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data["rows"].pop(), "a row is missing: query=q1, window_start=4"),
        (lambda data: data["rows"][0]["row"].update(n=4), "a row is missing: query=q1, window_start=0"),
        (
            lambda data: data["rows"].append({"at": -9, "row": {**data["rows"][0]["row"], "window_start": 1}}),
            "no such row",
        ),
        (lambda data: data["rows"].append({"at": -9, "row": {**data["row"]}}), "does not ask about these rows"),
        (lambda data: data["rows"][0].update(at=0), "rows are events with the places"),
        (lambda data: data.pop("rows"), "rows has those of q1"),
        (lambda data: data["steps"][0].update(at=-2), "no trend takes this"),
        (lambda data: data["steps"][0]["event"].update(n=4), "the event at -1 is another"),
        (lambda data: data["because"][0]["steps"].pop(), "a step is missing"),
        (lambda data: data["because"][0]["row"].update(k=2), "no event is the row"),
    ],
)
def test_wrong_rows_of_other_queries_are_not_accepted(change: Callable[[Any], Any], said: str) -> None:
    data = hamlet.run(hamlet.Workload.parse(CHAIN), chained()).why({"query": "q2", "k": 1, "window_start": 0}).data
    change(data)
    with pytest.raises(EvidenceError, match=said):
        check(CHAIN, chained(), data)


def test_more_steps_of_rows_than_the_limit_are_samples() -> None:
    text = "q1: RETURN COUNT(*) AS n PATTERN A WITHIN 1 s; q2: RETURN COUNT(*) PATTERN q1 r+ WITHIN 90 s"
    events = [{"time": t, "type": "A"} for t in range(60)]
    evidence = hamlet.run(hamlet.Workload.parse(text), events).why({"query": "q2"}, limit=20)
    assert evidence.data["steps"] is None
    assert "r@row 1" in evidence.text()
    assert 0 < len(evidence.data["rows"]) < 20
    check(text, events, evidence)
    evidence.data["rows"][0]["row"]["n"] += 1
    with pytest.raises(EvidenceError, match="q1 has no such row"):
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


@pytest.mark.parametrize("features", ["core", "default", "conjunction", "semantics", "matched,taken", "chained", "all"])
def test_random_evidence_is_accepted_and_mutants_are_not(features: str) -> None:
    counts: Counter[str] = Counter()
    seeds = max(share_of(30), 8)
    for seed in range(500, 500 + seeds):
        counts += compare(seed, features)
    assert counts["refused"] < seeds / 2
    assert counts["rows"] > seeds / 3
    assert counts["rejected"] > seeds


def test_a_first_guard_looks_back_beyond_the_reach_of_trends() -> None:
    """The C stands more than SPAN before the window, and less than SPAN before the first event of a trend in it."""
    text = "RETURN COUNT(*) PATTERN SEQ(NOT C, A, B) SPAN 5 s WITHIN 10 s"
    events = [{"time": time, "type": kind} for time, kind in [(2, "C"), (6, "A"), (10, "B"), (12, "A"), (13, "B")]]
    results = hamlet.run(hamlet.Workload.parse(text), events)
    evidence = results.why({"window_start": 10})
    assert evidence.data["row"]["count"] == 1
    assert [step["at"] for step in evidence.data["steps"]] == [3, 4]
    check(text, events, evidence)


def test_the_checker_reads_what_the_definitions_speak_of(tmp_path: Path) -> None:
    """Row groups outside the window and events of other groups are no objects of the checker; broadcast ones are."""
    text = "EVENT C(v INT);\n" + TEXT
    count = 40_000
    table = pa.table(
        {
            "time": range(count),
            "type": [("A", "B", "C", "B")[place % 4] for place in range(count)],
            "k": [None if place % 4 == 2 else place // 4 % 7 for place in range(count)],
            "v": range(count),
        }
    )
    pq.write_table(table, tmp_path / "many.parquet", row_group_size=1_000)
    evidence = hamlet.run(hamlet.Workload.parse(text), tmp_path / "many.parquet").why({"window_start": 30_000, "k": 3})
    assert min(step["at"] for step in evidence.data["steps"]) >= 30_000
    check(text, tmp_path / "many.parquet", evidence)
    assert len(trend_checker(text, tmp_path / "many.parquet", evidence.data, {}).stream.events) < 10
    other = json.loads(evidence.json())
    other["row"]["count"] += 1
    with pytest.raises(EvidenceError):
        check(text, tmp_path / "many.parquet", other)


def test_rows_of_a_part_of_an_input_have_no_evidence(tmp_path: Path) -> None:
    results = hamlet.run(hamlet.Workload.parse(TEXT), EVENTS, where="v > 0", report=tmp_path / "page.html")
    with pytest.raises(UnsupportedError, match="part of an input"):
        results.why(results.rows()[0])
    assert "part of an input" in (tmp_path / "page.html").read_text()


def test_no_events_at_all_are_evidence_of_absence() -> None:
    results = hamlet.run(hamlet.Workload.parse(TEXT), [])
    evidence = results.why({"window_start": 0, "k": 1})
    assert not evidence.holds
    assert evidence.data["steps"] == []
    check(TEXT, [], evidence)


def test_a_row_with_another_value_of_an_expression() -> None:
    text = "RETURN LOG2(COUNT(*)) AS bits, COUNT(*) * 2 AS twice PATTERN A+ HAVING COUNT(*) > 1 WITHIN 10 s"
    results = hamlet.run(hamlet.Workload.parse(text), EVENTS)
    (row,) = results.rows()
    evidence = results.why({**row, "bits": 7.0})
    assert evidence.data["values"] == {"bits": row["bits"], "twice": row["twice"]}
    assert "reason" not in evidence.data
    check(text, EVENTS, evidence)
    with pytest.raises(EvidenceError, match="the result has the row"):
        check(text, EVENTS, {**evidence.data, "row": row})


@pytest.mark.parametrize(
    ("top", "mutant"),
    [
        ("TOP 2 BY COUNT(*)", lambda above: []),
        ("TOP 2 BY COUNT(*)", lambda above: above[:1]),
        ("TOP 2 BY COUNT(*)", lambda above: above[:1] * 2),
        ("TOP 2 BY COUNT(*)", lambda above: [above[0], {**above[1], "count": 5}]),
        ("TOP 2 BY COUNT(*)", lambda above: [above[0], {**above[1], "k": 3}]),
        ("TOP 2 BY COUNT(*) ASC", lambda above: [above[0], {**above[1], "k": 9, "count": 7}]),
        ("TOP 1 BY COUNT(*) ASC", lambda above: [{**above[0], "k": 4, "count": 0}]),
    ],
)
def test_the_rows_above_are_checked(top: str, mutant: Callable[[list[Any]], list[Any]]) -> None:
    """Groups of 3, 3, 1 and 7 trends."""
    text = f"RETURN k, COUNT(*) PATTERN A+ GROUP-BY k {top} WITHIN 10 s"
    events = [{"time": t, "type": "A", "k": k} for t, k in enumerate([1, 1, 2, 2, 3, 9, 9, 9])]
    results = hamlet.run(hamlet.Workload.parse(text), events)
    evidence = results.why({"window_start": 0, "k": 9 if "ASC" in top else 3})
    assert evidence.data["reason"] == "top"
    check(text, events, evidence)
    with pytest.raises(EvidenceError):
        check(text, events, {**evidence.data, "above": mutant(evidence.data["above"])})


def test_rows_have_no_other_columns_and_steps_stand_in_order() -> None:
    text = "RETURN COUNT(*) PATTERN (A OR C) WITHIN 10 s"
    results = hamlet.run(hamlet.Workload.parse(text), EVENTS)
    data = results.why({"window_start": 0}).data
    check(text, EVENTS, data)
    for mutant in ({**data, "row": {**data["row"], "b": 1}}, {**data, "steps": data["steps"][::-1]}):
        with pytest.raises(EvidenceError):
            check(text, EVENTS, mutant)


@pytest.mark.parametrize("chosen", [{"since": 2}, {"until": 4}, {"since": 1, "until": 5}, {"null_keys": "drop"}])
def test_the_options_that_choose_events_are_those_of_the_run(chosen: dict[str, Any]) -> None:
    text = "RETURN k, COUNT(*) PATTERN SEQ(A, B) GROUP-BY k WITHIN 10 s"
    events = [{"time": t, "type": "AB"[t % 2], "k": (1, None)[t // 2 % 2]} for t in range(6)]
    results = hamlet.run(hamlet.Workload.parse(text), events, **chosen)
    for k in (1, None):
        evidence = results.why({"window_start": 0, "k": k})
        assert evidence.holds is any(row["k"] == k for row in results.rows())
        check(text, events, evidence, **chosen)


def test_rows_above_have_times_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q.sase").write_text("RETURN k, COUNT(*) PATTERN A+ GROUP-BY k TOP 1 BY COUNT(*) WITHIN 10 s")
    (tmp_path / "e.csv").write_text("time,type,k\n2024-01-01T00:00:00Z,A,1\n2024-01-01T00:00:01Z,A,2\n")
    wanted = '{"window_start": "2024-01-01T00:00:00+00:00", "k": 2}'
    given = ["why", str(tmp_path / "q.sase"), "--input", str(tmp_path / "e.csv"), "--row", wanted]
    assert main([*given, "--format", "json", "--check"]) == 0
    (above,) = json.loads(capsys.readouterr().out)["above"]
    assert above["window_start"] == "2024-01-01T00:00:00+00:00"
    assert main([*given, "--from", "2024-01-01T00:00:01", "--check"]) == 0
    assert "k=2, count=1: in the result" in capsys.readouterr().out
    given[given.index("--input") + 1] = "-"
    assert main(given) == 2
    assert "standard input, which can be read once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("zone", "around", "width", "slide", "offset"),
    [
        ("Europe/Berlin", 1_711_846_800, 86_400, 86_400, None),
        ("Europe/Berlin", 1_729_987_200, 7 * 86_400, 7 * 86_400, None),
        ("Europe/Berlin", 1_729_990_800, 5400, 1800, None),
        ("Australia/Lord_Howe", 1_728_142_200, 3600, 3600, 600),
        ("America/Santiago", 1_725_768_000, 86_400, 86_400, 3600),  # midnight is skipped
        ("Asia/Kolkata", 1_725_768_000, 5 * 3600, 5 * 3600, None),
    ],
)
def test_windows_by_a_clock(zone: str, around: int, width: int, slide: int, offset: int | None) -> None:
    near = set(windows_in(zone, width, slide, offset, around - 3600, around + 3600))
    known = set(windows_in(zone, width, slide, offset, around - 9000 - width, around + 9000 + width))
    told = near | {(start + one, end + two) for start, end in near for one in (0, -3600) for two in (0, 1800, -3600)}
    assert {each for each in told if is_window(zone, *each, width, slide, offset)} == told & known


def test_a_window_that_a_clock_does_not_have() -> None:
    text = "RETURN COUNT(*) PATTERN A+ WITHIN 1 d"
    events = [{"time": datetime.datetime(2024, 3, 31, 9, tzinfo=datetime.UTC), "type": "A"}]
    data = hamlet.run(hamlet.Workload.parse(text), events, timezone="Europe/Berlin").why({}).data
    check(text, events, data, timezone="Europe/Berlin")
    edges = ["2024-03-30T22:00:00+00:00", data["window"][1]]
    row = {**data["row"], "window_start": edges[0]}
    with pytest.raises(EvidenceError, match="no such window"):
        check(text, events, {**data, "window": edges, "row": row}, timezone="Europe/Berlin")
