"""TRIGGER, RELEASE, MATCHP, MATCHF and LETPAST: how they are read, what they mean, and what is refused."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pyarrow as pa
import pytest

from hamlet.oracle.policies import Oracle
from hamlet.parallel.routing.joint import JointSlicer
from hamlet.parallel.routing.rates import dimensions_of, rates_of
from hamlet.policies import Monitor, Policy, PolicyError, run
from hamlet.policies.analysis.rewriting import goal
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.plan.evaluation import Evaluation
from hamlet.policies.runner import PolicyRunner
from hamlet.policies.syntax.parser import parse_formula
from hamlet.policies.syntax.printing import print_formula
from tests.compare_policies import compare, tables_of
from tests.random_matches import random_matching
from tests.random_policies import SIGNATURE, Point, formula, random_log

SMALL = "a() b() c() d() p(x: int) q(x: int) r(x: int, y: int)"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("MATCHP a() b() + c()", "MATCHP (a() (b() + c()))"),
        ("MATCHP a() + b() c()", "MATCHP (a() + (b() c()))"),
        ("MATCHP a() b() AND c()", "(MATCHP a() b()) AND c()"),
        ("MATCHP a() b()* c()", "MATCHP a() (b()*) c()"),
        ("MATCHP a() NOT b()? c()", "MATCHP a() ((NOT b())?) c()"),
        ("MATCHP ONCE a() b() SINCE c()", "(MATCHP (ONCE a()) b()) SINCE c()"),
        ("MATCHF[0,3] EXISTS x. p(x) AND q(x) b()", "MATCHF[0,3] (EXISTS x. p(x) AND q(x)) b()"),
        ("MATCHP a() MATCHP b() c() d()", "MATCHP a() (MATCHP (b() c() d()))"),
        ("MATCHP a() NOT MATCHF b()?* ? c()", "MATCHP a() (NOT MATCHF (b()?*))? c()"),
        ("<| a() .", "MATCHP a() ."),
        ("◁[0,5] a()", "BACKWARD[0,5] a()"),
        ("|>[0,5] a()? .", "▷[0,5] a()? ."),
        ("FORWARD[0,5] a()", "MATCHF[0,5] a()"),
        ("a() TRIGGER b() RELEASE[0,5] c() SINCE d()", "a() TRIGGER (b() RELEASE[0,5] (c() SINCE d()))"),
        ("NOT a() TRIGGER b()", "(NOT a()) TRIGGER b()"),
        (
            "LETPAST e(x) = p(x) OR PREV e(x) IN e(x) SINCE q(x)",
            "LETPAST e(x) = (p(x) OR PREV e(x)) IN (e(x) SINCE q(x))",
        ),
    ],
)
def test_how_tightly_they_bind(text: str, same: str) -> None:
    assert parse_formula(text)[0] == parse_formula(same)[0]


def test_mixed_concatenation_and_alternation_is_warned_of() -> None:
    assert "group to the right" in Policy.parse("MATCHP a() b() + c()", SMALL).warnings[0].message
    assert not Policy.parse("MATCHP a() (b() + c())", SMALL).warnings


def test_printed_formulas_are_read_as_the_same() -> None:
    for seed in range(300):
        made, _ = parse_formula(random_matching(random.Random(seed), formula))
        assert parse_formula(print_formula(made))[0] == made


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_formulas_mean_what_the_oracle_says(first: int) -> None:
    found = [compare(seed, matching=True) for seed in range(first, first + 50)]
    assert found.count("equal") > 40


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("MATCHP a()", [1, 2]),  # it takes a step, so it is false at the first time-point
        ("MATCHP a()?", [0, 1, 2]),
        ("MATCHF[0,9] a()", [0, 1]),  # and here at the last
        ("MATCHF[0,9] a()?", [0, 1, 2]),
        ("MATCHP[0,0] a()", []),
        ("FALSE TRIGGER[5,9] FALSE", [0, 1, 2]),  # nothing lies in the interval
        ("LETPAST e() = NOT PREV e() IN e()", [0, 2]),
    ],
)
def test_where_a_log_begins_and_ends(text: str, rows: list[int]) -> None:
    found = run(Policy.parse(text, "a()"), [{"time": time, "type": "a"} for time in (1, 2, 3)])
    assert [row["time_point"] for row in found] == rows


REFUSED = [
    ("a() RELEASE b()", "RELEASE has no bound"),
    ("MATCHF a()", "MATCHF has no bound"),
    ("p(x) TRIGGER[1,2] q(x)", "'x' is not bound"),
    ("r(x, y) TRIGGER[0,2] q(x)", "'y' on the left of TRIGGER"),
    ("MATCHP . p(x)? q(x)*", None),
    ("MATCHP NOT p(x)? q(x)?", None),
    ("MATCHP p(x)? r(x, y)", "'y' is not bound: what comes first"),
    ("MATCHF[0,2] r(x, y)? p(x)", "'y' is not bound: what comes last"),
    ("MATCHP p(x)*", "'x' is not bound"),
    ("MATCHP p(x)? + r(x, y)?", "'y' is not bound"),
    ("MATCHP (p(x)? + (HISTORICALLY[1,2] p(x))?)", "'x' is not bound: what comes first"),
    ("MATCHP (HISTORICALLY[1,2] p(x))? . p(x)?", "'x' is not bound: what comes first"),
    ("MATCHP p(x)? . (HISTORICALLY[1,2] p(x))?", None),
    ("MATCHF[0,2] (p(x)? + (ALWAYS[1,2] p(x))?)", "'x' is not bound: what comes last"),
    ("MATCHF[0,2] (ALWAYS[1,2] p(x))? . p(x)?", None),
    ("LETPAST e(x) = p(x) OR e(x) IN e(x)", "same time-point"),
    ("LETPAST e(x) = p(x) OR ONCE[0,5] e(x) IN e(x)", "same time-point"),
    ("LETPAST e(x) = p(x) OR (e(x) SINCE[1,5] p(x)) IN e(x)", "same time-point"),
    ("LETPAST e(x) = p(x) AND NEXT e(x) IN e(x)", "under NEXT"),
    ("LETPAST e(x) = p(x) AND EVENTUALLY[0,2] PREV e(x) IN e(x)", "under EVENTUALLY"),
    ("LETPAST e(x) = MATCHP e(x)? IN e(x)", "same time-point"),
    ("LETPAST e(x) = (LET u(y) = e(y) IN p(x) OR u(x)) IN e(x)", "same time-point"),
    ("LETPAST e(x) = (LET u(y) = e(y) IN p(x) OR PREV u(x)) IN e(x)", None),
    ("LETPAST e(x) = (LET u(y) = PREV e(y) IN p(x) OR u(x)) IN e(x)", None),
    ("LETPAST e(x) = p(x) OR (LETPAST e(y) = q(y) OR PREV e(y) IN e(x)) IN e(x)", None),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_cannot_be_monitored_is_told(text: str, message: str | None) -> None:
    policy = Policy.parse(text, SMALL)
    if message is None:
        Evaluation([policy])
        return
    with pytest.raises(PolicyError, match=message):
        Evaluation([policy])


def test_all_that_lacks_a_bound_is_told_at_once() -> None:
    text = "(a() RELEASE b()) AND MATCHF c() AND (LETPAST e() = e() IN e())"
    with pytest.raises(PolicyError) as caught:
        Evaluation([Policy.parse(text, SMALL)])
    assert len(caught.value.diagnostics) == 3


def test_release_is_decided_when_its_interval_has_passed() -> None:
    formulas = [f"(ONCE a(x)) AND ({form} a(x))" for form in ("b(x) RELEASE[2,3]", "ALWAYS[2,3]")]
    for seed in range(20):
        draw = random.Random(seed)
        time, events = 0, []
        for _ in range(16):
            time += draw.choice([0, 1, 1, 2, 4])
            events.append({"time": time, "type": draw.choice("aaab"), "x": draw.choice([1, 2])})
        release, always = (_decided(Policy.parse(each, "a(x: int) b(x: int)"), events) for each in formulas)
        assert always.items() <= release.items()


def _decided(policy: Policy, events: list[dict[str, Any]]) -> dict[tuple[int, int], int]:
    """When each row is given: how many events have come."""
    monitor = Monitor(policy, time_points="event")
    steps = [*(monitor.push([event]) for event in events), monitor.close()]
    return {(row["time_point"], row["x"]): count for count, rows in enumerate(steps) for row in rows}


def test_a_policy_in_letpast_strips_its_always() -> None:
    policy = Policy.parse("LETPAST e(x) = p(x) OR PREV e(x) IN ALWAYS FORALL x. e(x) IMPLIES q(x)", SMALL)
    found = run(policy, [{"time": 1, "type": "p", "x": 7}, {"time": 2, "type": "q", "x": 7}])
    assert [row["time_point"] for row in found] == [0]


def _events(log: list[Point]) -> list[dict[str, Any]]:
    columns = {("p", 1): "a", ("q", 1): "a", ("r", 2): "ab", ("e", 0): ""}
    return [
        {"time": time, "type": key[0], **dict(zip(columns[key], row, strict=True))}
        for time, tables in log
        for key, rows in tables.items()
        for row in sorted(rows)
    ]


def test_saved_monitors_go_on() -> None:
    compared = 0
    for seed in range(40):
        draw = random.Random(seed)
        text, events = random_matching(draw, formula), _events(random_log(draw))
        policy = Policy.parse(text, SIGNATURE)
        try:
            wanted = run(policy, events, time_points="event").rows()
        except PolicyError:
            continue
        monitor, found = Monitor(policy, time_points="event"), []
        for event in events:
            found += monitor.push([event])
            if draw.random() < 0.25:
                monitor = Monitor.restore(policy, monitor.save())
        assert found + monitor.close() == wanted, (seed, text)
        compared += 1
    assert compared > 30


def test_slices_give_what_one_process_gives() -> None:
    compared = 0
    for seed in range(150):
        draw = random.Random(seed)
        text, log = random_matching(draw, formula), random_log(draw, 12)
        policy = Policy.parse(text, SIGNATURE)
        try:
            chunks = [LogChunk(0, *tables_of(policy.signature, log), 0)]
            wanted = _listed(policy, chunks)
        except PolicyError:
            continue
        asked = goal(policy.formula)[0]
        if not dimensions_of(asked):
            continue
        slicer = JointSlicer(asked, 3, rates_of(asked, chunks))
        found: list[str] = []
        for part in range(3):
            batches = _rows(policy, [slicer.only(chunk, part) for chunk in chunks])
            found += [str(row) for batch in batches for row in slicer.keep(batch, part).to_pylist()]
        assert sorted(found) == wanted, (seed, text)
        compared += 1
    assert compared > 50


def _rows(policy: Policy, chunks: list[LogChunk]) -> list[pa.RecordBatch]:
    return [batch for _, batch in PolicyRunner([policy], pa.int64(), 1).run(chunks)]


def _listed(policy: Policy, chunks: list[LogChunk]) -> list[str]:
    return sorted(str(row) for batch in _rows(policy, chunks) for row in batch.to_pylist())


@pytest.mark.parametrize(
    "text",
    [
        "a() TRIGGER[0,4] b()",
        "a() TRIGGER[2,5] (b() OR c())",
        "(a() OR c()) RELEASE[0,3] b()",
        "a() RELEASE[1,4] NOT b()",
        "MATCHP[0,4] a()? . (b()? .)* c()?",
        "NOT (MATCHF[0,4] a() + (b() c())) AND ONCE[0,5] a()",
        "LETPAST e() = a() OR (PREV e() AND NOT b()) IN e()",
    ],
)
@pytest.mark.parametrize("verdicts", ["all", "equivalent"])
def test_verdicts_of_propositional_ones(text: str, verdicts: str) -> None:
    draw = random.Random(text)
    policy = Policy.parse(text, "a() b() c()")
    for _ in range(10):
        time, events, log = 0, [], []
        for _ in range(40):
            time += draw.choice([0, 0, 1, 1, 2, 6])
            name = draw.choice("abc")
            events.append({"time": time, "type": name})
            log.append((time, {(name, 0): {()}}))
        true = {(stamp, point) for stamp, point, _ in Oracle(policy.formula, log).rows()}
        offsets: dict[int, int] = {}
        wanted = {}
        for point, (stamp, _) in enumerate(log):
            offset = offsets[stamp] = offsets.get(stamp, -1) + 1
            wanted[stamp, offset] = (stamp, point) in true
        told: dict[tuple[int, int], Any] = {}
        for row in run(policy, events, time_points="event", verdicts=verdicts):
            here = (row["time"], row["offset"])
            told[here] = row["verdict"]
            if row["verdict"] is None:
                told[here] = (row["same_as_time"], row["same_as_offset"])
        assert {here: _final(told, here) for here in told} == wanted


def _final(told: dict[tuple[int, int], Any], here: tuple[int, int]) -> bool:
    """The verdict of a time-point, perhaps told by way of others."""
    while not isinstance(told[here], bool):
        here = told[here]
    return bool(told[here])


def test_what_stays_in_a_relation_of_letpast_is_a_single_period() -> None:
    """Memory grows with the values of a batch, and not with values times time-points."""
    draw = random.Random(5)
    types = [*("p" * 1999 + "e") * 2]
    events = {"time": list(range(4000)), "type": types, "x": [draw.randrange(1000) for _ in types]}
    policy, same = (
        Policy.parse(text, "p(x: int) e()")
        for text in ("LETPAST r(x) = p(x) OR PREV r(x) IN e() AND r(x)", "e() AND ONCE p(x)")
    )
    wanted = Monitor(same).push_batches(events)  # by which all that is needed is imported
    tracemalloc.start()
    rows = Monitor(policy).push_batches(events)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows == wanted
    assert most < 2**24
