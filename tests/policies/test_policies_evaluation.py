"""Policies over streams: golden cases, and random ones against the oracle, in one batch, in several, and online."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hamlet.errors import DataError, HamletError, MemoryLimitError, OptionError, RestoreError
from hamlet.policies import Monitor, Policy, PolicyError, run
from hamlet.policies.plan.evaluation import Evaluation
from tests.compare_policies import compare, evaluated, expected
from tests.random_policies import SIGNATURE, Point, random_log, random_policy

SIG = "p(a: int) q(a: int) r(a: int, b: int) f(x: float, g: string) s(t: string) e()"
Event = dict[str, Any]


def rows_of(text: str, events: list[Event], **options: Any) -> list[tuple[Any, ...]]:
    """The rows: time, then the valuation."""
    found = run(Policy.parse(text, SIG), events, **options).rows()
    return [(row["time"], *list(row.values())[3:]) for row in found]


def events_of(*told: tuple[Any, ...]) -> list[Event]:
    """Events from (time, type, values...)."""
    names = {"p": ("a",), "q": ("a",), "r": ("a", "b"), "f": ("x", "g"), "s": ("t",)}
    return [
        {"time": time, "type": kind, **dict(zip(names.get(kind, ()), values, strict=True))}
        for time, kind, *values in told
    ]


NUMBERS = events_of((0, "p", 1), (1, "q", 2), (2, "p", 3))
FLOATS = events_of((0, "f", 1.5, "a"), (0, "f", 2.5, "a"), (0, "f", 0.1, "b"))

GOLDEN = [
    ("p(x)", NUMBERS, [(0, 1), (2, 3)]),
    ("p(x) OR q(x)", NUMBERS, [(0, 1), (1, 2), (2, 3)]),
    ("NOT p(1)", NUMBERS, [(1,), (2,)]),
    ("x = 5 OR x = 6", NUMBERS[:1], [(0, 5), (0, 6)]),
    ("p(x) AND y = x * 2 + 1", NUMBERS, [(0, 1, 3), (2, 3, 7)]),
    ("p(x) AND y = - x / 2", NUMBERS, [(0, 1, 0), (2, 3, -1)]),
    ("p(x) AND y = -7 MOD x", NUMBERS, [(0, 1, 0), (2, 3, -1)]),
    ("q(x) AND PREV p(y)", NUMBERS, [(1, 2, 1)]),
    ("p(x) AND NEXT[5,*) TRUE", NUMBERS, [(2, 3)]),
    ("p(x) AND NEXT[0,5] TRUE", NUMBERS, [(0, 1)]),
    ("p(x) AND ONCE[2,2] p(y)", NUMBERS, [(2, 3, 1)]),
    ("(NOT p(x)) SINCE q(x)", NUMBERS, [(1, 2), (2, 2)]),
    ("NOT p(_) UNTIL[0,5] q(x)", NUMBERS, [(1, 2)]),
    ("q(x) AND ALWAYS[1,3] NOT p(x)", NUMBERS, [(1, 2)]),
    ("LET once(b) = ONCE p(b) IN once(x) AND NOT p(x)", NUMBERS, [(1, 1), (2, 1)]),
    ("c <- CNT x; g f(x, g)", FLOATS, [(0, 1, "b"), (0, 2, "a")]),
    ("c <- SUM x; g f(x, g)", FLOATS, [(0, 0.1, "b"), (0, 4.0, "a")]),
    ("c <- AVG x f(x, _)", FLOATS, [(0, 4.1 / 3)]),
    ("c <- MED x f(x, _)", FLOATS, [(0, 1.5)]),
    ("c <- MIN x f(x, g) AND x > 9.0", FLOATS, [(0, float("inf"))]),
    ("c <- MAX x f(x, g) AND x > 9.0", FLOATS, [(0, float("-inf"))]),
    ("c <- MIN g f(x, g) AND x > 9.0", FLOATS, [(0, "")]),
    ("c <- AVG x p(x)", NUMBERS, [(0, 1.0), (1, 0.0), (2, 3.0)]),
    ("c <- SUM x; x p(x)", NUMBERS, [(0, 1, 1), (2, 3, 3)]),
    ("tpts(i, t) AND t > 0", NUMBERS, [(1, 1, 1), (2, 2, 2)]),
    (
        's(x) AND x MATCHES r"\\(a\\)*b"',
        events_of((0, "s", "ab"), (0, "s", "zab"), (0, "s", "c")),
        [(0, "ab"), (0, "zab")],
    ),
    ('s(x) AND "z" SUBSTRING x', events_of((0, "s", "az"), (0, "s", "b")), [(0, "az")]),
    (
        "EXISTS x. f(x, _) AND y = f2s(x)",
        events_of((0, "f", -42.0, ""), (0, "f", 9.87654321e30, "")),
        [(0, "-42."), (0, "9.87654321e+30")],
    ),
    ("EXISTS x. s(x) AND y = s2i(x)", events_of((0, "s", "-42"), (0, "s", "0.5")), [(0, -42), (0, 0)]),
    (
        "EXISTS x. f(x, _) AND y = FORMAT_DATE(x) AND z = YEAR(x)",
        events_of((0, "f", 86400.0, "")),
        [(0, "1970-01-02", 1970)],
    ),
]


@pytest.mark.parametrize(("text", "events", "rows"), GOLDEN)
def test_golden(text: str, events: list[Event], rows: list[tuple[Any, ...]]) -> None:
    assert rows_of(text, events) == rows
    monitor = Monitor(Policy.parse(text, SIG))
    found = [row for event in events for row in monitor.push([event])] + monitor.close()
    assert [(row["time"], *list(row.values())[3:]) for row in found] == rows


TYPED_LOG: list[Point] = [
    (0, {("p", 1): {(-7,), (2,)}, ("q", 1): {(2,)}, ("f", 2): {(-2.5, "low"), (0.5, "high"), (1.5, "high")}}),
    (3, {("p", 1): {(4,)}, ("f", 2): {(4.0, "highest")}, ("s", 1): {("high",), ("7",)}}),
    (4, {("r", 2): {(1, 1), (1, 2)}}),
]


@pytest.mark.parametrize(
    "text",
    [
        "p(x) AND y = x + 2 - 3 * x",
        "p(x) AND y = x / 2 AND z = x MOD 2",
        "p(x) AND NOT x = 2 AND y = 8 / (x - 2)",
        "f(x, _) AND y = x / 2.0 AND z = - x",
        "p(x) AND y = i2f(x) / 2.0",
        "f(x, _) AND y = f2i(x)",
        "p(x) AND y = i2s(x)",
        "p(x) AND x <= 2 AND x >= -7 AND NOT x > 2",
        'f(x, g) AND "high" SUBSTRING g AND x < 4.0',
        'f(_, g) AND g MATCHES r"^high"',
        "c <- MED x f(x, _)",
        "c <- MED x; g f(x, g)",
        "c <- MED x p(x)",
        "c <- AVG x p(x)",
        "c <- SUM x f(x, _)",
        "c <- MIN x; g f(x, g)",
        "c <- MAX x; g f(x, g)",
        "c <- CNT x q(x)",
        "EXISTS y. r(x, y) AND NOT r(y, y)",
        "LET twice(a) = EXISTS b. p(b) AND a = b * 2 IN twice(x) AND x > 0",
        "(ALWAYS[0,3] NOT q(2)) AND p(x)",
        "(HISTORICALLY[0,9] NOT r(1, 1)) AND p(x)",
        "(EVENTUALLY[0,4] r(1, x)) AND p(2)",
    ],
)
def test_terms_and_aggregations_equal_the_oracle(text: str) -> None:
    policy = Policy.parse(text, SIG)
    rows = expected(policy, TYPED_LOG)
    assert rows
    assert sorted(evaluated(policy, TYPED_LOG, [])) == rows


def test_a_policy_gives_its_violations() -> None:
    text = "ALWAYS FORALL u. p(u) IMPLIES EVENTUALLY[0,2] q(u)"
    events = events_of((0, "p", 1), (1, "q", 1), (2, "p", 2), (9, "p", 3))
    assert rows_of(text, events) == [(2, 2), (9, 3)]
    assert rows_of(text, events, negate=True) == [(2, 2), (9, 3)]  # it is one already
    assert rows_of("p(u) IMPLIES EVENTUALLY[0,2] q(u)", events, negate=True) == [(2, 2), (9, 3)]
    assert rows_of(text, events, open_end=True) == [(2, 2)]  # the last one may still come true


def test_rows_come_as_soon_as_they_are_decided() -> None:
    monitor = Monitor(Policy.parse("p(u) AND NOT EVENTUALLY[0,2] q(u)", SIG))
    assert monitor.push(events_of((0, "p", 1), (1, "p", 2), (2, "e"))) == []
    assert [row["a" if "a" in row else "u"] for row in monitor.push(events_of((3, "e")))] == [1]
    assert [row["u"] for row in monitor.advance(4)] == [2]
    assert monitor.close() == []
    with pytest.raises(HamletError, match="closed"):
        monitor.push([])


def test_integers_of_any_size() -> None:
    events = events_of((0, "p", 2**61), (0, "p", -5))
    assert rows_of("p(x) AND y = x * x", events) == [(0, -5, 25), (0, 2**61, 2**122)]
    assert rows_of("p(x) AND y = x * x AND z = y / x AND z = x", events) == [(0, -5, 25, -5), (0, 2**61, 2**122, 2**61)]
    assert rows_of("c <- SUM y EXISTS x. p(x) AND y = x * x", events) == [(0, 2**122 + 25)]
    assert rows_of("p(x) AND y = x * x AND y > 1000000000000000000000", events) == [(0, 2**61, 2**122)]


def test_an_integer_divided_by_zero_is_0_as_in_verimon() -> None:
    events = events_of((0, "p", 0), (0, "p", 2))
    assert rows_of("p(x) AND y = 4 / x AND z = (x + 3) MOD x", events) == [(0, 0, 0, 0), (0, 2, 2, 1)]
    assert rows_of("p(x) AND y = -4 / x", events) == [(0, 0, 0), (0, 2, -2)]
    assert rows_of("p(x) AND NOT (x = 0) AND y = 4 / x", events) == [(0, 2, 2)]


def test_time_points() -> None:
    events = events_of((0, "p", 1), (0, "q", 1))
    assert rows_of("p(x) AND q(x)", events) == [(0, 1)]
    assert rows_of("p(x) AND q(x)", events, time_points="event") == []
    assert rows_of("q(x) AND PREV p(x)", events, time_points="event") == [(0, 1)]
    with pytest.raises(OptionError):
        rows_of("p(x)", events, time_points="both")


def test_null_is_in_no_relation() -> None:
    results = run(Policy.parse("p(x)", SIG), [*events_of((0, "p", 1)), {"time": 0, "type": "p", "a": None}])
    assert len(results) == 1
    assert results.stats["null_events"] == 1


def test_several_policies_share_operators() -> None:
    one = Policy.parse("(ONCE[0,5] p(x)) AND q(x)", SIG, name="one")
    two = Policy.parse("q(y) AND NOT ONCE[0,5] p(y)", SIG, name="two")
    alone, both = len(Evaluation([one]).nodes), Evaluation([one, two]).nodes
    assert len(both) < alone + len(Evaluation([two]).nodes)
    results = run([one, two], NUMBERS)
    assert results.rows("one") == []
    assert results.table("two").num_rows == 1
    with pytest.raises(OptionError, match="did you mean 'two'"):
        results.table("tow")
    with pytest.raises(OptionError, match="two policies have the name"):
        run([one, one], NUMBERS)


def test_lateness_and_what_is_too_late() -> None:
    policy = Policy.parse("q(x) AND ONCE[0,5] p(x)", SIG)
    late = events_of((3, "q", 1), (1, "p", 1), (9, "e"))
    monitor = Monitor(policy, lateness=4)
    assert [row["time"] for event in late for row in monitor.push([event])] == [3]
    with pytest.raises(DataError, match="late"):
        Monitor(policy).push(late)
    monitor = Monitor(policy, late="drop")
    assert [row for event in late for row in monitor.push([event])] == []
    assert monitor.stats["late_events"] == 1


def test_max_memory() -> None:
    events = events_of(*((time, "p", time) for time in range(5000)))
    with pytest.raises(MemoryLimitError):
        run(Policy.parse("(ONCE p(x)) AND q(x)", SIG), events, max_memory=1000)
    assert run(Policy.parse("p(x) AND q(x)", SIG), events, max_memory="1 MB").rows() == []


def test_batches_of_large_intervals_keep_one_period_per_valuation() -> None:
    evaluation = Evaluation([Policy.parse("q(x) AND ONCE[0,30d] p(x)", SIG)])
    policy = evaluation.policies[0]
    log: list[Point] = [(time, {("p", 1): {(time % 7,)}}) for time in range(200)]
    assert evaluated(policy, log, [50, 100]) == []
    from tests.compare_policies import tables_of

    evaluation.feed(*tables_of(policy.signature, log))
    assert evaluation.kept_rows <= 7


@settings(max_examples=150, deadline=None)
@given(st.integers(10**6, 2 * 10**6))
def test_random_policies_equal_the_oracle(seed: int) -> None:
    compare(seed)


@settings(max_examples=60, deadline=None)
@given(st.integers(2 * 10**6, 3 * 10**6))
def test_random_policies_pushed_and_saved_equal_the_oracle(seed: int) -> None:
    draw = random.Random(seed)
    text, log = random_policy(draw), random_log(draw)
    policy = Policy.parse(text, SIGNATURE)
    try:
        monitor = Monitor(policy, order_column="o")
    except PolicyError:
        return
    rows = []
    for place, (time, tables) in enumerate(log):
        events: list[Event] = [{"time": time, "o": place, "type": "nothing"}]
        for (name, _), tuples in tables.items():
            events += [{"time": time, "o": place, "type": name, **dict(zip("ab", row, strict=False))} for row in tuples]
        rows += monitor.push(events)
        if draw.random() < 0.4:
            monitor = Monitor.restore(policy, monitor.save())
    rows += monitor.close()
    assert [(row["time"], row["time_point"], tuple(list(row.values())[3:])) for row in rows] == expected(policy, log)


def test_saves_that_are_damaged_are_refused() -> None:
    policy = Policy.parse("ONCE[0,5] s(x) AND NOT EVENTUALLY[0,3] s(x)", SIG)
    monitor = Monitor(policy)
    monitor.push(events_of((0, "s", "one"), (2, "s", "two"), (3, "e")))
    data = monitor.save()
    other = Policy.parse("ONCE[0,5] s(x)", SIG)
    for wrong in (b"", data[:10], data[:-1], b"x" + data[1:], data[:200] + b"?" + data[201:]):
        with pytest.raises(RestoreError):
            Monitor.restore(policy, wrong)
    with pytest.raises(RestoreError, match="of other policies"):
        Monitor.restore(other, data)
    with pytest.raises(RestoreError, match="bytes"):
        Monitor.restore(policy, "text")  # type: ignore[arg-type]


def test_saves_that_somebody_made_up_are_refused_or_run() -> None:
    """The digest fits, the numbers do not: an error, or a monitor that goes on, never a crash."""
    from hamlet.checkpoint import frame
    from hamlet.checkpoint.columns import WORD

    policy = Policy.parse(
        "ONCE[0,5] s(x) AND NOT ((NOT r(y, 1)) UNTIL[0,3] p(y) AND FALSE) AND HISTORICALLY[0,4] s(x)".replace(
            " AND NOT ((NOT r(y, 1)) UNTIL[0,3] p(y) AND FALSE)", ""
        ),
        SIG,
    )
    monitor = Monitor(policy)
    monitor.push(events_of((0, "s", "one"), (2, "s", "two"), (3, "e")))
    data = bytearray(monitor.save())
    length = frame.HEAD.unpack_from(data)[2]
    blobs = length + -length % WORD
    draw = random.Random(7)
    refused = 0
    for _ in range(300):
        body = bytearray(data[frame.HEAD.size :])
        for _ in range(draw.choice([1, 1, 3])):
            body[draw.randrange(len(body))] = draw.randrange(256)
        made = frame.sealed(bytes(body[:length]), [bytes(body[blobs:])])
        try:
            restored = Monitor.restore(policy, made)
            restored.push(events_of((9, "s", "one")))
            restored.close()
        except HamletError:
            refused += 1
    assert refused > 50


def test_floats_are_added_exactly_and_saved() -> None:
    draw = random.Random(3)
    values = [0.0, -0.0, 1.5, -2.5, 0.1, 0.2, 0.3, 1e300, -7.25]
    events = events_of(*((time, "f", draw.choice(values), draw.choice("ab")) for time in range(40) for _ in range(3)))
    held = {time: {event["x"] + 0.0 for event in events if event["time"] == time} for time in range(40)}
    sums = [
        (time, math.fsum(set().union(*(held[each] for each in range(max(0, time - 5), time + 1)))))
        for time in range(40)
    ]
    policy = Policy.parse("m <- SUM x ONCE[0,5] f(x, _)", SIG)
    monitor, found = Monitor(policy), []
    for time in range(40):
        found += monitor.push([event for event in events if event["time"] == time])
        monitor = Monitor.restore(policy, monitor.save())
    found += monitor.close()
    assert [(row["time"], row["m"]) for row in found] == sums
    assert rows_of("f(x, g) AND y = x * 2.0 - 1.0", events[:1]) == [
        (0, events[0]["x"] + 0.0, events[0]["g"], events[0]["x"] * 2 - 1)
    ]


def test_regular_expressions_do_not_backtrack() -> None:
    policy = Policy.parse(r's(x) AND x MATCHES r"^\(a+\)+$"', "s(a: string)")
    events = [{"time": 1, "type": "s", "a": "a" * 40 + "b"}, {"time": 2, "type": "s", "a": "aa"}]
    assert [row["x"] for row in run(policy, events)] == ["aa"]
    with pytest.raises(PolicyError, match="no back-references"):
        Policy.parse(r's(x) AND x MATCHES r"\(a\)\1"', "s(a: string)")


def test_nested_equivalences_cost_their_length() -> None:
    text = "e()"
    for place in range(60):
        text = f"p({place % 3}) EQUIV ({text})"
    assert (
        len(run(Policy.parse(text, "p(a: int) e()"), [{"time": 1, "type": "e"}, {"time": 2, "type": "p", "a": 1}])) == 1
    )


def test_flat_chains_are_not_nested() -> None:
    signature, events = "p(x: int) e()", [{"time": 1, "type": "p", "x": 1}]
    sums = Policy.parse("p(x) AND y = x + " + " + ".join(["1"] * 500), signature)
    assert [row["y"] for row in run(sums, events)] == [501]
    assert str(Policy.parse(str(sums), signature)) == str(sums)
    assert len(run(Policy.parse(" AND ".join(f"NOT p({place})" for place in range(2, 600)), signature), events)) == 1
    with pytest.raises(PolicyError, match="more than 2,500 operators in a row"):
        Policy.parse("p(x) AND y = x" + " + 1" * 2501, signature)
