"""The brute-force interpreter of specifications, by cases that are computed by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from hamlet.oracle.stream_values import ArithmeticMistakeError, aggregate, binary, call, printed, unary
from hamlet.oracle.streams import Group, StreamMistakeError, evaluate
from hamlet.streams.program.ir import FLOAT64, INT64, STRING, UINT64, ValueType
from hamlet.streams.specification import Specification
from tests.compare_streams import difference
from tests.stream_specifications import case

SECOND = 10**9


def run(text: str, events: Sequence[tuple[float, dict[str, Any]]], **options: Any) -> list[Group]:
    exact = [(round(time * SECOND), columns) for time, columns in events]
    return evaluate(Specification.parse(text).program, exact, **options)


def values(text: str, events: Sequence[tuple[float, dict[str, Any]]], name: str = "o", **options: Any) -> list[Any]:
    """Time in seconds and value of every value of one stream."""
    rows = [row for group in run(text, events, values=True, **options) for row in group.rows]
    return [(row["time"] / SECOND, row["value"]) for row in rows if row.get("stream") == name]


def times_of(text: str, events: Sequence[tuple[float, dict[str, Any]]], **options: Any) -> list[tuple[float, str]]:
    rows = [row for group in run(text, events, **options) for row in group.rows]
    return [(row["time"] / SECOND, row["trigger"]) for row in rows]


COUNT = [(time / 2, {"a": value}) for time, value in enumerate([1, 1, 2, 2, 2, 1, 1, 1, 1, 2, 1, 2, 2])]


def test_deadlines_come_between_events_and_after_those_of_their_own_time() -> None:
    text = "input a: Int64 output o @1Hz := a.hold(or: 0) output n @1Hz := a.aggregate(over: 1s, using: count)"
    events = [(0, {"a": 1}), (1, {"a": 2}), (1, {"a": 3}), (2.5, {"a": 4})]
    assert values(text, events) == [(1, 3), (2, 3)]
    assert values(text, events, "n") == [(1, 2), (2, 0)]  # (0, 1] and (1, 2]
    assert values(text, events, until=4 * SECOND) == [(1, 3), (2, 3), (3, 4), (4, 4)]
    assert values(text, [(0.5, {"a": 1}), (1.6, {"a": 2})]) == [(1.5, 1)]  # counted from the first event
    assert values(text, [(0.5, {"a": 1}), (1.6, {"a": 2})], start=0) == [(1, 1)]


def test_two_rates_meet() -> None:
    text = "input a: Int64 output x @10Hz := a.hold(or: 9) output y @5Hz := a.hold(or: 9) output o @2.5Hz := x + y"
    assert values(text, [(0, {"a": 1}), (0.4, {"a": 2}), (0.9, {"a": 3})]) == [(0.4, 4), (0.8, 4)]


def test_thirds_are_rounded_down_to_nanoseconds() -> None:
    rows = run("input a: Int64 output o @3Hz := a.hold(or: 0)", [(0, {"a": 1}), (1.5, {})], values=True)
    assert [row["time"] for group in rows for row in group.rows] == [333_333_333, 666_666_666, 10**9, 1_333_333_333]


def test_offsets_count_values_of_steps_before() -> None:
    events = [(time, {"a": time, "b": 1} if time % 2 else {"a": time}) for time in range(5)]
    text = "input a: Int64, b: Int64 output o := o[-1].defaults(to: 10) + a[-2].defaults(to: 0) + b"
    assert values(text, events) == [(1, 11), (3, 13)]


def test_a_spawned_period_begins_with_its_spawn_and_ends_with_the_step_of_its_close() -> None:
    text = """input a: UInt64
    output o spawn when a = 1 eval @1Hz with a.hold(or: 0) == 2 close when if true then true else o
    trigger @1Hz o.hold(or: false) "fired" """
    assert values(text, COUNT) == [(1, True), (3.5, False), (5, False)]
    assert times_of(text, COUNT, until=6 * SECOND) == [(1.0, "fired")]


def test_conditions_of_instances() -> None:
    text = """input a: UInt8
    output x(p) spawn @1Hz with a.aggregate(over: 1s, using: sum) when a.aggregate(over: 1s, using: count) = 2
      eval @1Hz when a.aggregate(over: 1s, using: count) = 2 with a.hold(or: 5)
    trigger @1Hz x(3).hold(or: 5) = 1 "one"
    trigger @1Hz x(3).hold(or: 5) = 2 "two"
    trigger @1Hz x(3).hold(or: 5) = 5 "none" """
    said = times_of(text, COUNT, start=0, until=6 * SECOND)
    expected = [(1, "none"), (2, "two"), (3, "one"), (4, "one"), (5, "one"), (6, "two")]
    assert said == [(float(time), word) for time, word in expected]


def test_exact_windows_wait_for_their_reader() -> None:
    text = """input a: Int64
    output b(p) spawn with a eval when p = a with a
    output o @2Hz := b(0).aggregate(over_exactly: 1s, using: count).defaults(to: 9)"""
    events = [(0, {"a": 2}), (0.4, {"a": 0}), (0.6, {"a": 0}), (1.8, {"a": 0}), (2.1, {"a": 1})]
    assert values(text, events) == [(0.5, 9), (1.0, 2), (1.5, 1), (2.0, 1)]


def test_windows_over_closed_instances_keep_what_they_hold() -> None:
    text = """input a: Int64, end: Bool
    output b(p) spawn with a eval when p = a with a close @end when end
    output o @2Hz := b(1).aggregate(over: 2s, using: count)"""
    events = [(0, {"a": 1}), (0.1, {"a": 1}), (0.2, {"end": True}), (1.2, {"a": 1}), (1.6, {}), (4, {})]
    assert values(text, events) == [(0.5, 2), (1, 2), (1.5, 1), (2, 1), (2.5, 1), (3, 1), (3.5, 0), (4, 0)]


def test_windows_of_instances_begin_after_the_step_of_the_spawn() -> None:
    text = "input a: Int64 output o(p) spawn with a when a = 1 eval @1Hz with a.aggregate(over: 10s, using: count)"
    assert values(text, [(0, {"a": 5}), (1, {"a": 1}), (1, {"a": 2}), (1.5, {"a": 3}), (2.5, {})]) == [(2, 2)]


def test_the_first_eval_that_is_active_and_true_gives_the_value() -> None:
    text = "input a: Int64, b: Int64 output o eval @a when a > 5 with 1 eval @(a && b) with 2 eval @b with 3"
    events = [(0, {"a": 9, "b": 1}), (1, {"a": 1, "b": 1}), (2, {"b": 1}), (3, {"a": 1}), (4, {"a": 6})]
    assert values(text, events) == [(0, 1), (1, 2), (2, 3), (4, 1)]


def test_close_comes_last_and_a_missing_value_is_no_reason() -> None:
    text = """input a: Int64
    output o(p) spawn with a eval when a = p with o(p)[-1].defaults(to: 0) + 1 close @a when o(p) >= 2
    output all @a := o.aggregate(over_instances: all, using: sum)
    output fresh @a := o.aggregate(over_instances: all, using: count)"""
    events = [(time, {"a": value}) for time, value in enumerate([1, 2, 1, 1, 2])]
    assert values(text, events) == [(0, 1), (1, 1), (2, 2), (3, 1), (4, 2)]
    assert values(text, events, "all") == [(0, 1), (1, 2), (2, 3), (3, 2), (4, 3)]
    assert values(text, events, "fresh") == [(0, 1), (1, 2), (2, 2), (3, 2), (4, 2)]


def test_real_time_offsets_read_the_value_of_that_time() -> None:
    text = "input a: Int64 output o := a - a.offset(by: -1s).defaults(to: 0)"
    assert values(text, [(0, {"a": 1}), (0.5, {"a": 2}), (1, {"a": 3}), (1.4, {"a": 4}), (9, {"a": 5})]) == [
        (0, 1),
        (0.5, 2),
        (1, 2),
        (1.4, 3),
        (9, 1),
    ]


def test_windows_end_between_the_deadlines_too() -> None:
    text = "input a: Float64 output o @2Hz := a.aggregate(over: 3s, using: sum)"
    events = [(0, {"a": 0.0}), (1.1, {"a": 1.0}), (3.04, {"a": 2.0}), (5.11, {"a": 3.0})]
    sums = [value for _, value in values(text, events, until=6 * SECOND)]
    assert sums == [0, 0, 1, 1, 1, 1, 3, 3, 2, 2, 5, 5]


def test_aggregates_over_the_instances_that_live() -> None:
    text = """input a: Int64
    output even(p) spawn with a eval @a with p % 2 = 0 close when a = 42
    output o @a := even.aggregate(over_instances: all, using: forall)
    output n @a := even.aggregate(over_instances: all, using: exists)"""
    events = [(time, {"a": value}) for time, value in enumerate([16, 7, 42, 16, 17])]
    assert [value for _, value in values(text, events)] == [True, False, False, True, False]
    assert [value for _, value in values(text, events, "n")] == [True, True, True, True, True]


def test_freshness_of_an_instance() -> None:
    text = """input a: Int64, b: Int64
    output own(p) spawn with a eval with a
    output o @(a || b) := own(3).get(or: 8)
    output n @(a || b) := own(3).is_fresh()"""
    events = [(0, {"b": 3}), (1, {"a": 3}), (2, {"b": 3}), (3, {"a": 4})]
    assert [value for _, value in values(text, events)] == [8, 3, 8, 4]
    assert [value for _, value in values(text, events, "n")] == [False, True, False, True]


def test_rows_name_parameters_and_come_in_the_order_of_the_text() -> None:
    text = """input a: Int64
    trigger a > 0 "first"
    trigger (p, q) spawn with (a, a + 1) eval @a when p = a with "{{}} of {{}}".format(p, q)
    trigger a > 0"""
    (first, second, third) = run(text, [(0, {"a": 1})])
    assert first.rows == [{"trigger": "first", "time": 0}]
    assert second.rows == [{"trigger": "1 of 2", "time": 0, "p": 1, "q": 2}]
    assert third.rows == [{"trigger": "", "time": 0}]


MISTAKES = ["a / 0", "9223372036854775807 + a", "a % 0", "a ** -1", "a ** 99", "1 << 63", "a << 64"]


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_name_stream_and_time(text: str) -> None:
    with pytest.raises(StreamMistakeError, match="o at 1000000000"):
        values(f"input a: Int64 output o := if a > 1 then {text} else 0", [(0, {"a": 1}), (1, {"a": 2})])


@pytest.mark.parametrize(
    ("operator", "left", "right", "kind", "result"),
    [
        ("/", -7, 2, INT64, -3),
        ("%", -7, 2, INT64, -1),
        ("/", 1.0, 0.0, FLOAT64, math.inf),
        ("/", -1.0, 0.0, FLOAT64, -math.inf),
        ("%", 7.5, -2.0, FLOAT64, 1.5),
        ("**", 2, 62, INT64, 2**62),
        ("**", 0, 0, INT64, 1),
        ("**", -1, 99, INT64, -1),
        ("**", 2.0, -1.0, FLOAT64, 0.5),
        (">>", -5, 1, INT64, -3),
        ("-", 5, 5, UINT64, 0),
        ("<", "a", "b", INT64, True),
    ],
)
def test_operators(operator: str, left: Any, right: Any, kind: ValueType, result: Any) -> None:
    assert binary(operator, left, right, kind) == result


def test_functions_and_text() -> None:
    assert call("round", [2.345, 1], FLOAT64) == 2.3
    assert call("round", [-2.5, 0], FLOAT64) == -3.0
    assert call("cast", [-2.9], INT64) == -2
    assert unary("~", 0, UINT64) == 2**64 - 1
    assert unary("~", 0, INT64) == -1
    assert call("format", ["{} {{}}|{{x}}", 2.0, True], STRING) == "{} 2|true"
    assert [printed(value) for value in (1e22, 0.1, -0.5, 1e-7, (1, 2.5, "a"))] == [
        "10000000000000000000000",
        "0.1",
        "-0.5",
        "0.0000001",
        "(1, 2.5, a)",
    ]
    assert [printed(math.inf), printed(-math.inf), printed(False)] == ["inf", "-inf", "false"]
    assert call("round", [1e300, 300], FLOAT64) == 1e300  # no double has so many digits behind the point
    assert call("cast", [3], FLOAT64) == 3.0
    assert [call("abs", [-3], INT64), call("matches", ["hamlet", "^ham"], STRING)] == [3, True]
    assert call("log", [8.0, 2], FLOAT64) == pytest.approx(3.0)
    for function, value, kind in (("sqrt", -1.0, FLOAT64), ("cast", -1, UINT64), ("ln", -1.0, FLOAT64)):
        with pytest.raises(ArithmeticMistakeError):
            call(function, [value], kind)


def test_aggregates() -> None:
    pairs = [(0, 1.0), (SECOND, 3.0), (3 * SECOND, 5.0), (4 * SECOND, 7.0)]
    expected = {"count": 4, "sum": 16.0, "avg": 4.0, "min": 1.0, "max": 7.0, "last": 7.0, "var": 5.0}
    assert aggregate("integral", 0, pairs, FLOAT64) == 2 + 8 + 6
    for function, value in expected.items():
        assert aggregate(function, 0, pairs, FLOAT64) == value, function
    percentiles = {0: 1.0, 10: 1.0, 25: 2.0, 26: 3.0, 50: 4.0, 75: 6.0, 90: 7.0, 100: 7.0}
    assert {percent: aggregate("pctl", percent, pairs, FLOAT64) for percent in percentiles} == percentiles
    interpolated = {0: 1.0, 50: 4.0, 25: 2.5, 100: 7.0}
    assert {each: aggregate("pctl", each, pairs, FLOAT64, instances=True) for each in interpolated} == interpolated
    assert aggregate("avg", 0, [(0, 1), (0, -2), (0, -2)], INT64) == -1
    assert aggregate("pctl", 50, [(0, 1), (0, 4)], INT64) == 2
    assert aggregate("cov", 0, [(0, (1.0, 2.0)), (0, (3.0, 6.0))], FLOAT64) == 2.0
    assert [aggregate(each, 50, [], FLOAT64) for each in ("count", "sum", "integral", "exists", "forall", "pctl")] == [
        0,
        0.0,
        0.0,
        False,
        True,
        None,
    ]


def test_random_specifications_are_accepted_and_have_rows() -> None:
    rows = 0
    for seed in range(60):
        text, events = case(seed)
        program = Specification.parse(text).program
        try:
            groups = evaluate(program, events, values=True)
        except StreamMistakeError:
            continue
        rows += sum(len(group.rows) for group in groups)
        assert difference(groups, [row for group in groups for row in group.rows]) is None
    assert rows > 1000
