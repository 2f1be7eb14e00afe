"""Pushes of few events, row by row: the rows of brute force, and a cost that does not depend on what is kept."""

from __future__ import annotations

import gc
import random
from typing import Any

import pytest

from hamlet.errors import DataError
from hamlet.policies import Monitor, Policy, PolicyError
from hamlet.policies.changes import running
from tests.compare_policies import compare_wild, events_of, expected
from tests.random_policies import SIGNATURE, Point, random_log, random_policy

Event = dict[str, Any]
KINDS = {
    "one by one": {},
    "restored": {"restored": 0.2},
    "mixed with columns": {"columns": 0.3},
    "all": {"restored": 0.1, "columns": 0.2, "advanced": 0.3, "lateness": 3},
    "late": {"lateness": 5, "together": 3},
}


def apart(log: list[Point]) -> list[Point]:
    """A log whose time-points have times of their own."""
    return [(2 * time + place, tables) for place, (time, tables) in enumerate(log)]


def pushed(policy: Policy, events: list[Event], draw: random.Random, **chosen: Any) -> list[tuple[Any, ...]]:
    """The rows of a monitor that takes events in pieces, some of them as columns, and is saved now and then."""
    together, restored = chosen.get("together", 1), chosen.get("restored", 0)
    lateness = chosen.get("lateness", 0)
    monitor = Monitor(policy, time_points=chosen.get("time_points", "step"), lateness=lateness)
    # events come later than they are by at most the lateness
    order = sorted(events, key=lambda event: event["time"] + draw.random() * lateness)
    rows, place = [], 0
    while place < len(order):
        count = draw.randint(1, together)
        piece, place = order[place : place + count], place + count
        if draw.random() < chosen.get("columns", 0):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(running, "MOST", -1)
                monitor._runner.evaluation.settle()  # type: ignore[union-attr]
                rows += monitor._dicts(monitor.push_batches(piece))
        else:
            rows += monitor.push(piece)
        if draw.random() < chosen.get("advanced", 0) and place < len(order):
            rows += monitor.advance(min(event["time"] for event in order[place:]))
        if draw.random() < restored:
            monitor = Monitor.restore(policy, monitor.save())
    rows += monitor.close()
    return [(row["time"], row["time_point"], tuple(list(row.values())[3:])) for row in rows]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("begin", range(0, 60, 20))
def test_rows_are_those_of_brute_force(kind: str, begin: int) -> None:
    compared = 0
    for seed in range(begin, begin + 20):
        draw = random.Random(5 * 10**6 + seed)
        text, log = random_policy(draw), apart(random_log(draw))
        try:
            policy = Policy.parse(text, SIGNATURE)
            events = [event for point in events_of(log) for event in point]
            found = pushed(policy, events, draw, **KINDS[kind])  # type: ignore[arg-type]
        except PolicyError:
            continue
        assert found == expected(policy, log), (seed, text)
        compared += 1
    assert compared > 8


@pytest.mark.parametrize("begin", range(0, 40, 20))
def test_each_event_may_be_a_time_point(begin: int) -> None:
    compared = 0
    for seed in range(begin, begin + 20):
        draw = random.Random(6 * 10**6 + seed)
        text, log = random_policy(draw), random_log(draw)
        events = [event for point in events_of(log) for event in point]
        points: list[Point] = [
            (event["time"], {} if event["type"] == "nothing" else {_key(event): {tuple(list(event.values())[2:])}})
            for event in events
        ]
        try:
            policy = Policy.parse(text, SIGNATURE)
            found = pushed(policy, events, draw, time_points="event", restored=0.1, together=2)
        except PolicyError:
            continue
        assert found == expected(policy, points), (seed, text)
        compared += 1
    assert compared > 8


def _key(event: Event) -> tuple[str, int]:
    return event["type"], len(event) - 2


@pytest.mark.parametrize("begin", range(0, 60, 20))
def test_values_times_and_bounds_of_any_size(begin: int) -> None:
    assert sum(compare_wild(seed) == "equal" for seed in range(begin, begin + 20)) > 8


def test_a_save_has_the_columns_of_held_rows() -> None:
    policy = Policy.parse("q(x) AND NOT r(x, y) AND ONCE[0,9] r(y, x)", SIGNATURE)
    for value in (1, 2**70):  # a column that the first events lacked; one that is wider than theirs
        monitor = Monitor(policy)
        for time in range(8):
            monitor.push([{"time": time, "type": "q", "a": time}])
        monitor.push([{"time": 9, "type": "r", "a": value, "b": value}])
        again = Monitor.restore(policy, monitor.save())
        assert again.push([{"time": 10, "type": "q", "a": value}]) == monitor.push(
            [{"time": 10, "type": "q", "a": value}]
        )
        assert again.close() == monitor.close()


@pytest.mark.parametrize("time_points", ["step", "event"])
def test_events_without_a_type_are_time_points(time_points: Any) -> None:
    monitor = Monitor(Policy.parse("q(x) AND PREV TRUE AND ONCE p(x)", signature=SIGNATURE), time_points=time_points)
    events: list[Event] = [{"time": 1}, {"time": 2, "type": "p", "a": 5}, {"time": 3}, {"time": 4, "type": "q", "a": 5}]
    rows = [row for event in events for row in monitor.push([event])] + monitor.close()
    assert [(row["time_point"], row["x"]) for row in rows] == [(3, 5)]


def test_an_attribute_that_no_event_of_the_predicate_has_keeps_its_type() -> None:
    policy = Policy.parse("t(x) AND ONCE p(y)", signature="t(time: int) p(y: int)")
    monitor = Monitor(policy)
    for event in ({"time": 1, "type": "p", "y": 2}, {"time": 2, "type": "t"}):
        monitor.push([event])
    with pytest.raises(DataError, match="was INT so far and is now BOOLEAN"):
        monitor.push([{"time": 3, "type": "t", "y": True}])
    rows = monitor.push([{"time": 4, "type": "t", "y": 1}]) + monitor.close()
    assert [(row["time"], row["x"], row["y"]) for row in rows] == [(2, 2, 2), (4, 4, 2)]


@pytest.mark.parametrize(
    "formula",
    [
        "q(x) AND PREV ONCE p(x)",
        "q(x) AND ((ONCE p(x)) SINCE p(x))",
        "q(x) AND ONCE[0,1000000] p(x)",
        "q(x) AND ((ONCE p(x)) OR (ONCE q(x)))",
        "q(x) AND ((NOT q(x)) SINCE[0,1000000] p(x))",
        "q(x) AND ONCE[1,1000000] p(x)",
        "ALWAYS FORALL x. p(x) IMPLIES EVENTUALLY[0,1000000] q(x)",
    ],
)
def test_the_garbage_collector_does_not_look_through_what_is_kept(formula: str) -> None:
    policy = Policy.parse(formula, "p(x: int)\nq(x: int)")
    before = {id(each) for each in gc.get_objects()}
    monitor = Monitor(policy)
    monitor.push([{"time": place, "type": "p" if place else "q", "x": place} for place in range(3_000)])
    for place in range(3_000, 3_040):
        monitor.push([{"time": place, "type": "pq"[place % 2], "x": place}])
    assert monitor.held["rows"] >= 3_000
    tracked = [each for each in gc.get_objects() if id(each) not in before and isinstance(each, (dict, set, list))]
    assert [type(each) for each in tracked if len(each) > 1_000 and each is not before] == []
