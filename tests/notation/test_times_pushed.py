"""Events that are pushed one by one, with times of every kind: the rows are those of a run over all of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from hamlet import policies, streams
from tests.given_times import KINDS

SIGNATURE = "p(x: int)\nq(x: int)"
POLICIES = (
    "q(x) AND ONCE[0,10] p(x)",
    "p(x) SINCE[2,7] q(x)",
    "q(x) AND NOT EVENTUALLY[0,5] p(x)",
    "(n <- CNT x ONCE[0,4] p(x)) AND n > 1",
    "q(x) AND PREV[0,3] p(x)",
)
SPECIFICATIONS = (
    "input x: Int64 output s := s.offset(by: -1).defaults(to: 0) + x trigger s % 3 == 0",
    "input x: Int64 output w @1Hz := x.aggregate(over: 5s, using: sum) trigger w > 6",
    "input x: Int64 output p(k) spawn with x eval when x == k with p(k).offset(by: -1).defaults(to: 0) + 1 "
    "close when p(k) > 3",
)
Events = list[dict[str, Any]]


def pushed(make: Callable[[], Any], restored: Callable[[bytes], Any], events: Events, seed: int) -> list[str]:
    """The rows of pushes of one event, or a few, with saves in between."""
    chance, monitor, rest = random.Random(seed), make(), list(events)
    rows: list[Any] = []
    while rest:
        size = chance.choice((1, 1, 1, 1, 2, 7))
        rows += monitor.push(rest[:size])
        del rest[:size]
        if chance.random() < 0.05:
            monitor = restored(monitor.save())
    return sorted(map(str, [*rows, *monitor.close()]))


def stream(chance: random.Random, kind: str) -> Events:
    times = sorted(chance.randrange(60) for _ in range(80))
    return [{"time": KINDS[kind](time), "type": chance.choice("pq"), "x": chance.randrange(4)} for time in times]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", POLICIES)
def test_policies(text: str, kind: str) -> None:
    events = stream(random.Random(text + kind), kind)
    policy = policies.Policy.parse(text, SIGNATURE)
    found = pushed(
        lambda: policies.Monitor(policy), lambda data: policies.Monitor.restore(policy, data), events, len(text)
    )
    assert found == sorted(map(str, policies.run(policy, events).rows()))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", SPECIFICATIONS)
def test_specifications(text: str, kind: str) -> None:
    events = [{name: event[name] for name in ("time", "x")} for event in stream(random.Random(text + kind), kind)]
    specification = streams.Specification.parse(text)
    found = pushed(
        lambda: streams.Monitor(specification, values=True),
        lambda data: streams.Monitor.restore(specification, data),
        events,
        len(text),
    )
    assert found == sorted(map(str, streams.run(specification, events, values=True).rows()))
