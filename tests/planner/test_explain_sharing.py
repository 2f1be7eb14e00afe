"""What `hamlet explain` says of sharing: merged templates, what they are worth, and why queries stay apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hamlet.explanation.sharing import REASONS
from hamlet.planner import calibration
from hamlet.planner.explain import explain
from hamlet.planner.workload import Workload
from optimizer.apart import Reason
from optimizer.benefit import MEASURED, PAPER, BurstStats, Costs, non_shared_cost, shared_cost
from tests.effort import share_of
from tests.planner.test_explain import check_dot
from tests.strategies import Features, random_case

FIGURE_3 = """
q1: RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 min;
q2: RETURN COUNT(*) PATTERN SEQ(C, B+) WITHIN 5 min;
"""

FIGURE_3_TEXT = """\
sharing: 1 group
    costs       as shipped; hamlet calibrate measures those of this machine
  group 1
    queries     q1, q2
    pane        5 min
    share       B+ in q1, q2
                  measured: {measured}
                  paper: {paper}
    merged      start -> 1 A  q1
                start -> 3 C  q2
                1 A   -> 2 B  q1
                2 B   -> 2 B  q1, q2
                3 C   -> 2 B  q2
                2 B   -> end  q1, q2
"""


def sharing(text: str) -> Any:
    return json.loads(explain(Workload.parse(text), None, "json"))["sharing"]


def section(text: str) -> str:
    return text[text.index("\nsharing:") + 1 : text.index("\n\nq1 ")] + "\n"


def unwrapped(text: str) -> str:
    return " ".join(text.split())


def queries(*rests: str) -> str:
    return "".join(f"q{place}: RETURN COUNT(*) {rest};\n" for place, rest in enumerate(rests, 1))


def test_figure_3_in_text() -> None:
    burst = BurstStats(b=64, n=64, g=64, k=2, t=2, s_p=1, s_c=1)
    words = []
    for unit, costs in (("ns", MEASURED["burst-grained"]), ("operations", PAPER)):
        shared, alone = shared_cost(burst, costs), non_shared_cost(burst, costs)
        pays = "pays" if shared < alone else "does not pay"
        words.append(f"a burst of 64 events costs {shared:,.0f} {unit} shared, {alone:,.0f} alone; sharing {pays}")
    expected = FIGURE_3_TEXT.format(measured=words[0], paper=words[1])
    found = section(explain(Workload.parse(FIGURE_3)))
    for line in found.split("\n"):
        kept = line.partition(" pays from")[0]
        assert kept + " pays" * (kept != line) in expected.split("\n") or line.strip() in ("on", "events on"), line
    assert [line for line in expected.split("\n") if " -> " in line] == [x for x in found.split("\n") if " -> " in x]


def test_figure_3_in_json() -> None:
    (group,) = sharing(FIGURE_3)["groups"]
    assert (group["queries"], group["pane"]["text"]) == (["q1", "q2"], "5 min")
    template = group["template"]
    assert [state["type"] for state in template["states"]] == [None, "A", "B", "C"]
    assert [state["final"] for state in template["states"]] == [[], [], ["q1", "q2"], []]
    assert template["states"][2]["members"] == [
        {"query": "q1", "part": None, "state": 2},
        {"query": "q2", "part": None, "state": 2},
    ]
    assert [(step["source"], step["target"], step["queries"]) for step in template["transitions"]] == [
        (0, 1, ["q1"]),
        (0, 3, ["q2"]),
        (1, 2, ["q1"]),
        (2, 2, ["q1", "q2"]),
        (3, 2, ["q2"]),
    ]
    (pattern,) = group["sub_patterns"]
    assert (pattern["text"], pattern["queries"], pattern["rung"]) == ("B+", ["q1", "q2"], "burst-grained")
    assert pattern["variants"] == [{"queries": ["q1", "q2"], "predicates": None}]
    assert [each["model"] for each in pattern["benefit"]] == ["measured", "paper"]


def test_figure_3_as_dot() -> None:
    dot = explain(Workload.parse(FIGURE_3), None, "dot")
    check_dot(dot)
    assert 'label="shared by q1, q2\\nB+\\npane 5 min"' in dot
    assert 'group0_2 -> group0_2 [label="q1, q2", style=bold];' in dot
    assert 'group0_1 -> group0_2 [label="q1"];' in dot


def test_variants_are_shown_with_their_predicates() -> None:
    text = queries(
        "PATTERN SEQ(A, B+) WITHIN 1 min",
        "PATTERN SEQ(C, B+) WHERE B.v > 10 WITHIN 1 min",
        "PATTERN SEQ(D, B x+) WHERE x.v >= 11 WITHIN 1 min",
        "PATTERN SEQ(E, B+) WHERE B.v < NEXT(B).v WITHIN 1 min",
    )
    (group,) = sharing(text)["groups"]
    (pattern,) = group["sub_patterns"]
    assert pattern["variants"] == [
        {"queries": ["q1"], "predicates": None},
        {"queries": ["q2", "q3"], "predicates": "B.v > 10"},
        {"queries": ["q4"], "predicates": "B.v < NEXT(B).v"},
    ]
    assert pattern["rung"] == "indexed"
    words = unwrapped(explain(Workload.parse(text)))
    assert "q2, q3: where B.v > 10 q4: where B.v < NEXT(B).v what is not accepted by all is found out" in words


def test_measures_say_what_aggregates_have_in_common() -> None:
    """AVG is SUM by the number of values; COUNT of all events is another number where values may be NULL."""
    text = """
    q1: RETURN AVG(B.v) PATTERN SEQ(A, B+) WITHIN 1 min;
    q2: RETURN SUM(B.v) PATTERN SEQ(C, B+) WITHIN 1 min;
    q3: RETURN COUNT(B) PATTERN SEQ(D, B+) WITHIN 1 min;
    """
    words = unwrapped(explain(Workload.parse(text)))
    assert "2 B: sum of v for q1, q2" in words
    assert "2 B: number of v for q1" in words
    assert "2 B: number of events for q3" in words


def test_equal_queries_and_beginnings_are_named() -> None:
    text = queries(
        "PATTERN SEQ(A, B+) WITHIN 1 min", "PATTERN SEQ(A, B+) WITHIN 1 min", "PATTERN SEQ(A, B+, C) WITHIN 1 min"
    )
    assert sharing(text)["same"] == [["q1", "q2"]]
    words = unwrapped(explain(Workload.parse(text)))
    assert "q1, q2 have the same trends: one evaluation serves them" in words
    assert "the sums up to B of q1, q2, q3 are equal at all times" in words


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("PATTERN SEQ(A, B+) WHERE [k] WITHIN 1 h", Reason.PARTITION),
        ("PATTERN SEQ(A, (SEQ(B, NOT C, B))+) WITHIN 1 h", None),
        ("PATTERN (SEQ(NOT C, B))+ WITHIN 1 h", Reason.SHAPE),
        ("PATTERN SEQ(A, B+) WHERE B.v < 5 WITHIN 1 h", Reason.PREDICATES),
        ("PATTERN SEQ(A, B+) WHERE B.v > NEXT(B).w WITHIN 1 h", Reason.PREDICATES),
        ("PATTERN SEQ(A, B+) WHERE B.v > 3 AND B.v < 9 WITHIN 101 ms", Reason.PANES),
    ],
)
def test_why_queries_stay_apart(rest: str, reason: Reason | None) -> None:
    """Beside two that share B+ where v > 3, and rise."""
    where = "WHERE B.v > 3 AND B.v < NEXT(B).w WITHIN 1 h" if "NEXT" in rest else "WHERE B.v > 3 WITHIN 1 h"
    text = queries(f"PATTERN SEQ(D, B+) {where}", f"PATTERN SEQ(E, B+) {where}", rest)
    found = sharing(text)
    apart = [each for each in found["apart"] if each["types"] == ["B"]]
    if reason is None:
        assert apart == []
        return
    assert apart == [{"types": ["B"], "queries": ["q3"], "others": ["q1", "q2"], "reason": reason.value}]
    assert found["left_out"] == (["q3"] if reason is Reason.PANES else [])
    assert f"q3 and q1, q2 do not share B+: {REASONS[reason]}" in unwrapped(explain(Workload.parse(text)))


def test_both_sides_of_and_are_named() -> None:
    text = "q1: RETURN COUNT(*) PATTERN SEQ(A, B+) AND SEQ(C, B+) WITHIN 1 min"
    (group,) = sharing(text)["groups"]
    assert ["q1 (left)", "q1 (right)"] in [step["queries"] for step in group["template"]["transitions"]]
    assert {member["part"] for state in group["template"]["states"] for member in state["members"]} == {
        "left",
        "right",
        "both",
    }


def test_many_queries_are_cut_in_text_and_whole_in_json() -> None:
    text = queries(*(f"PATTERN SEQ(A{place}, B+) WITHIN 1 min" for place in range(60)))
    words = explain(Workload.parse(text))
    assert "and 48 more" in words
    assert "more; --format json shows them all" in words
    (group,) = sharing(text)["groups"]
    assert len(group["queries"]) == 60
    alone = queries(*(f"PATTERN SEQ(A, B+) WHERE B.v = {place} WITHIN 1 min" for place in range(60)))
    assert len(sharing(alone)["apart"]) == 59
    assert "... and 39 more; --format json shows them all" in explain(Workload.parse(alone))


def test_calibrated_constants_are_used_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    dear = {rung: Costs(each.reads, 100.0, 100.0, 100.0, 1.0) for rung, each in MEASURED.items()}
    kept = calibration.store(dear, dict.fromkeys(dear, 0.0))
    document = json.loads(explain(Workload.parse(FIGURE_3), None, "json"))
    assert document["constants"]["origin"] == "calibrated"
    assert document["constants"]["file"] == str(kept.path)
    assert document["constants"]["costs"]["indexed"]["coefficient"] == 100.0
    words = unwrapped(explain(Workload.parse(FIGURE_3.replace("5 min", "10 min"))))
    assert f"calibrated on this machine on {kept.measured_at:%Y-%m-%d}" in words
    assert "measured: a burst of 64 events costs 7,000 ns shared, 128 alone; sharing does not pay" in words


def test_declared_types_need_no_input() -> None:
    text = "EVENT A(s STRING, t TIMESTAMP); q1: RETURN MAX(A.t) PATTERN A+ WHERE A.s = 'x' WITHIN 1 min"
    assert "WHERE A.s = 'x'" in explain(Workload.parse(text))


@pytest.mark.parametrize("features", [Features(queries=6, conjunction=True), Features(queries=6, broadcast=True)])
def test_random_workloads_are_explained(features: Features) -> None:
    """Every query is in one group at most, every group shares something, and every rendering is well formed."""
    for seed in range(share_of(25)):
        workload = Workload.parse(random_case(seed, features)[0])
        found = json.loads(explain(workload, None, "json"))["sharing"]
        together = [name for group in found["groups"] for name in group["queries"]]
        assert len(together) == len(set(together))
        assert not set(together) & set(found["left_out"])
        for group in found["groups"]:
            assert group["sub_patterns"]
            assert {name for each in group["sub_patterns"] for name in each["queries"]} == set(group["queries"])
        for each in found["apart"]:
            assert each["reason"] in {reason.value for reason in Reason}
            assert not set(each["queries"]) & set(each["others"])
        check_dot(explain(workload, None, "dot"))
        assert "sharing:" in explain(workload, None, "text")
