"""Values that are kept in order: for percentiles of windows, and for extrema and percentiles of instances."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from hamlet.oracle.stream_values import aggregate
from hamlet.streams import Monitor, Specification
from hamlet.streams.program.ir import FLOAT64, INT64, UINT64, ValueType

DRAWS: dict[str, Any] = {
    "Int64": lambda random: random.choice([random.randrange(-9, 9), random.getrandbits(64) - 2**63]),
    "UInt64": lambda random: random.choice([random.randrange(9), random.getrandbits(64)]),
    "Float64": lambda random: random.choice([random.randrange(-9, 9) / 2, random.gauss(0, 1e100), 5e-324, -5e-324]),
}
TYPES: dict[str, ValueType] = {"Int64": INT64, "UInt64": UINT64, "Float64": FLOAT64}


def streamed(text: str, events: Sequence[dict[str, Any]], random: Random) -> dict[str, list[Any]]:
    """The values of each output, from pushes of all sizes with saves in between."""
    specification, rows, rest = Specification.parse(text), [], list(events)
    monitor = Monitor(specification, values=True, start=0)
    while rest:
        size = random.choice([1, 40, 300, 900])
        rows += monitor.push(rest[:size])
        del rest[:size]
        if random.random() < 0.3:
            monitor = Monitor.restore(specification, monitor.save())
    found: dict[str, list[Any]] = {}
    for row in [*rows, *monitor.close()]:
        found.setdefault(row["stream"], []).append(row["value"])
    return found


def picked(function: str, percent: int, values: Sequence[Any], kind: str, instances: bool = False) -> Any:
    """The aggregate of values, of none 0."""
    found = aggregate(function, percent, [(0, value) for value in values], TYPES[kind], instances)
    return type(DRAWS[kind](Random(0)))(0) if found is None else found


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("count", "span", "period"), [(3, 90, 1), (300, 40, 40), (700, 7, 3)])
def test_windows(kind: str, count: int, span: int, period: int) -> None:
    """Windows of more and of fewer values than are kept in order; some or all of them change between two looks."""
    random = Random(count)
    one, two = random.sample(range(1, 100), 2)
    zero = "0.0" if kind == "Float64" else "0"
    text = f"""input a: {kind}
        output d := a.pctl{one}(over_discrete: {count}, or: {zero})
        output w @1Hz := a.pctl{two}(over: {span}s, or: {zero})""".replace(
        "@1Hz", f"@{period}s" if period > 1 else "@1Hz"
    )
    events = [{"time": place // 10, "a": DRAWS[kind](random)} for place in range(1_200)]
    values = [event["a"] for event in events]
    found = streamed(text, events, random)
    assert found["d"] == [picked("pctl", one, values[max(0, end - count) : end], kind) for end in range(1, 1_201)]
    looks = range(period, 120, period)
    assert found["w"] == [
        picked("pctl", two, values[max(0, 10 * (look - span + 1)) : 10 * (look + 1)], kind) for look in looks
    ]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("period", [1, 30])
def test_instances(kind: str, period: int) -> None:
    """Instances by the hundred that come, change and go; after one event or many somebody looks."""
    random = Random(period)
    zero, percent = "0.0" if kind == "Float64" else "0", random.randrange(1, 100)
    over = "p.aggregate(over_instances: all, using:"
    pace = "@1Hz" if period == 1 else f"@{period}s"
    text = f"""input k: Int64 input a: {kind} input c: Bool
        output p(x) spawn with k eval when k == x with a close when k == x && c
        output least {pace} := {over} min).defaults(to: {zero})
        output most {pace} := {over} max).defaults(to: {zero})
        output part {pace} := {over} pctl{percent}).defaults(to: {zero})"""
    events = [
        {"time": place, "k": random.randrange(600), "a": DRAWS[kind](random), "c": random.random() < 0.2}
        for place in range(1_200)
    ]
    lives: dict[int, Any] = {}
    expected: dict[str, list[Any]] = {"least": [], "most": [], "part": []}
    for event in events:
        lives[event["k"]] = event["a"]
        if event["c"]:
            del lives[event["k"]]
        if event["time"] and event["time"] % period == 0:  # a deadline comes after the events of its time
            for name, function in zip(expected, ("min", "max", "pctl"), strict=True):
                expected[name].append(picked(function, percent, list(lives.values()), kind, instances=True))
    found = streamed(text, events, random)
    assert {name: found[name] for name in expected} == expected
