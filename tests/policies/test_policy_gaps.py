"""Integers of any size, MonPoly's order of values, and verdicts of quantifiers over temporal operators."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hamlet.cli import main
from hamlet.errors import DataError, HamletError, UnsupportedError
from hamlet.oracle.policies import Oracle
from hamlet.policies import Monitor, Policy, run
from hamlet.policies.logs.reader import LogChunk, LogFile
from hamlet.policies.syntax.formula import free_variables
from hamlet.policies.syntax.signature import Signature
from hamlet.policies.verdicts.automata import Verdicts
from tests.compare_policies import expected, tables_of
from tests.random_policies import SIGNATURE as RANDOM
from tests.random_policies import formula, random_log

SIGNATURE = "A(a: int, b: int) B(x: int) C(s: string) E() P()"
HUGE = 10**30


def policy(text: str) -> Policy:
    """A policy over the signature of this file."""
    return Policy.parse(text, SIGNATURE)


def event(time: int, type: str, **values: Any) -> dict[str, Any]:
    """An event as a dict."""
    return {"time": time, "type": type, **values}


EVENTS = [
    event(0, "A", a=1, b=2),
    event(0, "B", x=1),
    event(0, "E"),
    event(3, "B", x=2),
    event(3, "A", a=2, b=1),
    event(7, "P"),
    event(9, "B", x=5),
    event(12, "C", s="c"),
]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("A(x,y)", "@0 (time point 0): (9,2) (10,1)\n"),
        ("x > y AND A(x,y)", "@0 (time point 0): (1,10) (2,9)\n"),
        ("B(x) SINCE A(y,x)", "@0 (time point 0): (9,2) (10,1)\n@1 (time point 1): (9,2) (10,1)\n"),
        ("ALWAYS FORALL x, y. A(y,x) IMPLIES y < 10", "@0 (time point 0): (10,1)\n"),
        ("C(s)", '@1 (time point 1): ("") ("a b")\n'),
        ("EXISTS x. B(x)", "@0 (time point 0): true\n@1 (time point 1): true\n"),
    ],
)
def test_values_stand_in_the_order_of_monpoly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, lines: str
) -> None:
    (tmp_path / "x.log").write_text('@0 A(9,2)(10,1) B(1)(2) @1 B(1)(2) C("a b")("")')
    (tmp_path / "x.sig").write_text(SIGNATURE)
    (tmp_path / "x.mfotl").write_text(text)
    files = ["monitor", f"{tmp_path}/x.mfotl", "-s", f"{tmp_path}/x.sig", "-i", f"{tmp_path}/x.log"]
    assert main([*files, "-q", "-o", "-", "--output-format", "monpoly"]) == 0
    assert capsys.readouterr().out == lines


@pytest.mark.parametrize(
    "text",
    [
        "EXISTS x. ONCE[0,3] B(x)",
        "EXISTS x. B(x) AND EVENTUALLY[0,6] B(x)",
        "E() OR (EXISTS x. EVENTUALLY[1,9] B(x) AND NOT (ONCE[0,3] A(x,_))) AND NOT P()",
        "(NOT P()) UNTIL[0,9] (EXISTS x. B(x) AND x > 1 AND NEXT[0,6] (NOT E()))",
        "FORALL x. B(x) IMPLIES ONCE[0,3] A(x,_)",
        "LET p(x) = ONCE B(x) IN EXISTS x. p(x) AND x > 1",
        "EXISTS c. (c <- CNT x ONCE[0,4] B(x)) AND c > 1",
        "EXISTS x. PREV B(x) AND NEXT[0,2] P()",
    ],
)
@pytest.mark.parametrize("verdicts", ["all", "equivalent"])
def test_verdicts_of_quantifiers_over_temporal_operators(text: str, verdicts: str) -> None:
    for time_points in ("step", "event"):
        satisfied = run(policy(text), EVENTS, time_points=time_points)
        rows = run(policy(text), EVENTS, time_points=time_points, verdicts=verdicts).rows()
        known: dict[tuple[int, int], bool] = {}
        for row in rows:
            if row["verdict"] is not None:
                known[row["time"], row["offset"]] = row["verdict"]
        for row in rows:
            if row["verdict"] is None:
                known[row["time"], row["offset"]] = known[row["same_as_time"], row["same_as_offset"]]
        assert len(known) == len(rows) or verdicts == "equivalent"
        assert len(known) == satisfied.stats["time_points"]
        places = {place for place, true in enumerate(sorted(known)) if known[true]}
        assert places == {row["time_point"] for row in satisfied.rows()}


def test_a_rule_under_let_has_verdicts_of_the_rule() -> None:
    rule = "LET p() = E() OR (EXISTS x. B(x)) IN ALWAYS p() IMPLIES ONCE[0,3] E()"
    broken = {row["time"] for row in run(policy(rule), EVENTS).rows()}
    rows = run(policy(rule), EVENTS, verdicts="all").rows()
    assert {row["time"] for row in rows if not row["verdict"]} == broken == {9}


def test_logs_hold_integers_of_any_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # The first time-points are read before anything large comes; 007 is 7.
    text = "".join(f"@{time} A({time},{time})\n" for time in range(3))
    text += f"@3 A({HUGE},{-HUGE})(007,7)(9223372036854775807,-9223372036854775808) B({HUGE})\n@4 B(2)({2**63})\n"
    (tmp_path / "x.log").write_text(text)
    (tmp_path / "x.sig").write_text(SIGNATURE)
    (tmp_path / "x.mfotl").write_text("A(x,y) AND z = x + 1")
    files = ["monitor", f"{tmp_path}/x.mfotl", "-s", f"{tmp_path}/x.sig", "-i", f"{tmp_path}/x.log", "-q", "-o", "-"]
    assert main(files) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["time"], row["x"], row["y"], row["z"]) for row in found] == [
        *((time, time, time, time + 1) for time in range(3)),
        (3, 7, 7, 8),
        (3, 2**63 - 1, -(2**63), 2**63),
        (3, HUGE, -HUGE, HUGE + 1),
    ]
    rows = run(policy("B(x) AND ONCE A(x,y)"), tmp_path / "x.log").rows()
    assert [(row["x"], row["y"]) for row in rows] == [(HUGE, -HUGE), (2, 2)]
    rows = run(policy("B(x)"), tmp_path / "x.log", verdicts="all").rows()
    assert {(row["time"], row["x"]) for row in rows if row["verdict"]} == {(3, HUGE), (4, 2), (4, 2**63)}


@pytest.mark.parametrize("chunk", [1, 7, 50, 1 << 20])
def test_chunks_before_and_behind_a_large_integer_agree(tmp_path: Path, chunk: int) -> None:
    rows = [(time, HUGE * time if time % 5 == 3 else -time) for time in range(20)]
    (tmp_path / "x.log").write_text("".join(f"@{time} A({value},1) C(c{time}) # comment\n" for time, value in rows))
    file = LogFile(tmp_path / "x.log", {("A", 2): ("int", "int"), ("C", 1): ("string",)}, chunk_bytes=chunk)
    found = []
    for each in file.chunks():
        points, (values, _) = each.relations["A", 2]
        texts = each.relations["C", 1][1][0].to_pylist()
        assert texts == [f"c{time}" for time in each.times]
        found += [(int(each.times[point]), int(value)) for point, value in zip(points, values.to_pylist(), strict=True)]
    assert found == rows


def test_a_log_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_bytes(b"\xef\xbb\xbf@0 B(1)\r\n@1 B(2)\r\n")
    assert [row["x"] for row in run(policy("B(x)"), tmp_path / "x.log").rows()] == [1, 2]


def test_dicts_hold_integers_of_any_size() -> None:
    events = [event(0, "A", a=1, b=2), event(1, "A", a=HUGE, b=-HUGE), event(2, "B", x=HUGE), event(2, "B", x=1)]
    wanted = [
        {"policy": "policy1", "time": 2, "time_point": 2, "x": 1, "y": 2},
        {"policy": "policy1", "time": 2, "time_point": 2, "x": HUGE, "y": -HUGE},
    ]
    rule = policy("B(x) AND ONCE A(x,y)")
    assert run(rule, events).rows() == wanted
    monitor = Monitor(rule)
    found = []
    for each in events:
        found += monitor.push([each])
        monitor = Monitor.restore(rule, monitor.save())
    assert found + monitor.close() == wanted
    columns = {"time": [0, 1], "type": ["B", "B"], "x": [1, HUGE]}
    assert [row["x"] for row in run(policy("B(x)"), columns).rows()] == [1, HUGE]
    with pytest.raises(DataError, match="64 bits"):
        run(policy("B(x)"), [event(0, "B", x=10**80)])


def test_lines_of_several_policies_follow_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.log").write_text("@0 B(1) E() @1 B(2) E()")
    (tmp_path / "x.sig").write_text(SIGNATURE)
    for name, text in (("a", "B(x)"), ("b", "E()")):
        (tmp_path / f"{name}.mfotl").write_text(text)
    files = [f"{tmp_path}/a.mfotl", f"{tmp_path}/b.mfotl", "-s", f"{tmp_path}/x.sig", "-i", f"{tmp_path}/x.log"]
    assert main(["monitor", *files, "-q", "-o", "-", "--output-format", "monpoly"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "@0 (time point 0): (1)",
        "@1 (time point 1): (2)",
        "@0 (time point 0): true",
        "@1 (time point 1): true",
    ]


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("EXISTS x, y. B(x) AND y = x + 1 AND y > 5", {9}),
        ("EXISTS x. B(x) AND x * 9223372036854775807 > 36893488147419103232", {9}),
        ("EXISTS x. B(x) AND x < 1000000000000000000000000000000", {0, 3, 9}),
        ("EXISTS x. B(x) AND x MOD 2 = 0", {3}),
        ("EXISTS x. x = 2 AND B(x)", {3}),
    ],
)
def test_verdicts_of_conditions_on_values(text: str, true: set[int]) -> None:
    rows = run(policy(text), EVENTS, verdicts="all").rows()
    assert {row["time"] for row in rows if row["verdict"]} == true
    assert len(rows) == 5


@pytest.mark.parametrize("seed", range(75))
def test_verdicts_of_random_closed_policies_equal_the_oracle(seed: int) -> None:
    draw = random.Random(seed)
    signature = Signature.parse(RANDOM)

    def closed() -> str:
        text = formula(draw, draw.choice([("x",), ("x", "y")]), draw.choice([1, 2]))
        names = free_variables(Policy.parse(text, signature).formula)
        return f"(EXISTS {', '.join(names)}. ({text}))" if names else f"({text})"

    one, two = closed(), closed()
    forms = [one, f"NOT {one}", f"{one} AND NOT {two}", f"{one} SINCE[0,5] {two}", f"(NOT {one}) UNTIL[0,4] {two}"]
    rule = Policy.parse(draw.choice([*forms, f"EVENTUALLY[1,4] {one}"]), signature)
    log = random_log(draw)
    try:
        verdicts = Verdicts(rule.formula, signature, "all")
        wanted = {point for _, point, _ in expected(rule, log)}
    except HamletError:  # what no evaluation takes
        return
    cut = draw.randint(0, len(log))
    rows: list[Any] = []
    for first, part in ((0, log[:cut]), (cut, log[cut:])):
        chunk = LogChunk(first, *tables_of(signature, part), 0)
        rows += [row for batch in verdicts.feed(chunk, pa.int64()) for row in batch.to_pylist()]
    rows += [row for batch in verdicts.close(pa.int64()) for row in batch.to_pylist()]
    assert [row["time"] for row in rows] == [time for time, _ in log]
    assert {place for place, row in enumerate(rows) if row["verdict"]} == wanted


def propositional(draw: random.Random, depth: int) -> str:
    """A formula whose predicates all bind x, with comparisons of x."""
    if depth <= 0:
        return draw.choice(["p(x)", "q(x)", "r(x, _)", "x > 0", "x = 1", "NOT x = 2", "x * 2 <= 2", "(p(x) AND x < 2)"])
    kind, low = draw.randrange(7), draw.randrange(3)
    one = f"({propositional(draw, depth - 1)})"
    if kind == 0:
        return f"NOT {one}"
    bounds = f"[{low},{low + draw.randrange(4)}]"
    if kind == 1:
        return f"{draw.choice(['ONCE', 'EVENTUALLY', 'PREV', 'NEXT', 'HISTORICALLY', 'ALWAYS'])}{bounds} {one}"
    two = f"({propositional(draw, depth - 1)})"
    join = ["AND", "OR", "IMPLIES", f"SINCE{bounds}", f"UNTIL{bounds}"][kind - 2]
    return f"{one} {join} {two}"


@pytest.mark.parametrize("seed", range(60))
def test_verdicts_of_keys_with_comparisons_equal_the_oracle(seed: int) -> None:
    draw = random.Random(seed)
    signature = Signature.parse(RANDOM)
    rule = Policy.parse(f"({propositional(draw, 3)}) AND p(x)" if seed % 2 else propositional(draw, 2), signature)
    try:
        verdicts = Verdicts(rule.formula, signature, "all")
    except UnsupportedError:  # no predicate, or many comparisons
        return
    log = random_log(draw)
    cut = draw.randint(0, len(log))
    rows: list[Any] = []
    for first, part in ((0, log[:cut]), (cut, log[cut:])):
        chunk = LogChunk(first, *tables_of(signature, part), 0)
        rows += [row for batch in verdicts.feed(chunk, pa.int64()) for row in batch.to_pylist()]
    rows += [row for batch in verdicts.close(pa.int64()) for row in batch.to_pylist()]
    oracle = Oracle(rule.formula, log)
    keys = {row["x"] for row in rows}
    wanted = sorted(
        (time, [each for each, _ in log[:point]].count(time), key, oracle.holds(rule.formula, {"x": key}, point, {}))
        for point, (time, _) in enumerate(log)
        for key in keys
    )
    assert sorted((row["time"], row["offset"], row["x"], row["verdict"]) for row in rows) == wanted
    assert keys <= {row[0] for _, tables in log for rows in tables.values() for row in rows if row}


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("LET p(x) = B(x) AND x > 1 IN p(x) IMPLIES ONCE[0,3] A(x,_)", "B(x) AND x > 1 IMPLIES ONCE[0,3] A(x,_)"),
        ("LET p(x) = ONCE[0,3] B(x) IN NOT p(x) OR PREV p(x)", "NOT (ONCE[0,3] B(x)) OR PREV (ONCE[0,3] B(x))"),
        ("LET p(y) = B(y) IN NOT B(x) AND ONCE p(x)", None),
    ],
)
def test_verdicts_of_names_of_let(text: str, plain: str | None) -> None:
    if plain is None:  # the name has another argument than in its definition: refused, not guessed
        with pytest.raises(UnsupportedError):
            run(policy(text.replace("ONCE p(x)", "NOT p(x)")), EVENTS, verdicts="all")
        return
    assert run(policy(text), EVENTS, verdicts="all").rows() == run(policy(plain), EVENTS, verdicts="all").rows()


def test_a_comparison_alone_has_no_key() -> None:
    with pytest.raises(UnsupportedError, match="none binds x"):
        run(policy("x > 4"), EVENTS, verdicts="all")


@pytest.mark.parametrize("verdicts", ["all", "equivalent"])
@pytest.mark.parametrize("time_points", ["step", "event"])
@pytest.mark.parametrize("text", ["ALWAYS B(x) AND x > 1 IMPLIES EVENTUALLY[0,6] A(x,_)", "EXISTS x. ONCE[0,3] B(x)"])
def test_pushed_verdicts_are_those_of_a_run(text: str, time_points: str, verdicts: str) -> None:
    def by_row(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(map(repr, rows))

    monitor = Monitor(policy(text), time_points=time_points, verdicts=verdicts)
    found = []
    for each in EVENTS:
        found += monitor.push([each])
    found += monitor.advance(12) + monitor.close()
    assert by_row(found) == by_row(run(policy(text), EVENTS, time_points=time_points, verdicts=verdicts).rows())


def test_verdicts_without_a_future_come_at_once() -> None:
    monitor = Monitor(policy("ALWAYS B(x) IMPLIES ONCE[0,3] A(x,_)"), time_points="event", verdicts="all")
    assert [row["verdict"] for row in monitor.push([event(0, "A", a=1, b=1)])] == [True]
    assert [row["verdict"] for row in monitor.push([event(0, "B", x=1)])] == [True]
    assert [row["verdict"] for row in monitor.push([event(5, "B", x=1)])] == [False]
    assert monitor.close() == []
    monitor = Monitor(policy("ONCE B(x)"), time_points="event", lateness=3)
    assert monitor.push([event(5, "B", x=1), event(2, "B", x=2)]) == [
        {"policy": "policy1", "time": 2, "time_point": 0, "x": 2}
    ]
    assert [(row["time_point"], row["x"]) for row in monitor.push([event(2, "B", x=3)])] == [(1, 2), (1, 3)]
    assert [(row["time_point"], row["x"]) for row in monitor.close()] == [(2, 1), (2, 2), (2, 3)]


def test_an_integer_beyond_doubles_divided_by_zero_is_infinite(tmp_path: Path) -> None:
    log = tmp_path / "huge.log"
    log.write_text(f"@0 B({10**400})({-(10**400)})(3)\n@1\n")
    for term, found in (
        ("i2f(x) / 0.0", [math.inf, -math.inf, math.inf]),
        ("0.0 - i2f(x)", [-math.inf, math.inf, -3.0]),
    ):
        rows = run(policy(f"EXISTS x. B(x) AND y = {term}"), log).rows()
        assert {row["y"] for row in rows} == {*found}, term


EDGE = 1 << 61


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("EVENTUALLY[0,5] P()", [0, 1, 2, 3]),
        ("NOT EVENTUALLY[1,6] P()", [1, 3]),
        ("P() UNTIL[1,5] P()", [0, 2]),
        ("ONCE[3,*) P()", [2, 3]),
        ("PREV[2,*) P()", [2]),
        ("NEXT[2,*) TRUE", [1, 3]),
        ("MATCHF[1,5] . P()?", [0, 2]),
        ("ALWAYS[2,4] FALSE", [0, 1, 2, 3]),
    ],
)
def test_times_up_to_the_last_tick(text: str, places: list[int]) -> None:
    asked = policy(text)
    events = [event(time, "P") for time in (-EDGE, 1 - EDGE, EDGE - 1, EDGE)]
    assert [row["time_point"] for row in run(asked, events).rows()] == places
    monitor = Monitor(asked)
    rows = [row for each in events for row in monitor.push([each])] + monitor.close()
    assert [row["time_point"] for row in rows] == places
    with pytest.raises(DataError, match=r"beyond 2\^61"):
        run(asked, [event(EDGE + 1, "P")])
