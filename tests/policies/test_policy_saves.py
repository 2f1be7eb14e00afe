"""Monitors of verdicts that are saved and restored: they go on as if nothing had been, and refuse what is made up."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hamlet.errors import HamletError, RestoreError
from hamlet.policies import Monitor, Policy
from tests.checkpoint.save_mutations import VALUES, WAYS, opened, sealed
from tests.effort import share_of

SIGNATURE = "e() p(x: int) q(x: int) r(x: int, y: int) s(t: string)"
POLICIES = [
    "e() AND NOT EVENTUALLY[0,4] p(1)",
    "p(x) AND ONCE[1,3] q(x)",
    "p(x) AND NOT (q(x) SINCE[2,5] p(x)) AND NEXT[0,2] NOT q(x)",
    "ALWAYS FORALL x. p(x) IMPLIES EVENTUALLY[1,3] EXISTS y. r(x, y) AND y > 0",
    "(p(x) UNTIL[0,7] q(x)) SINCE p(x) AND x > 2",
    "(EXISTS x. p(x) AND q(x)) AND ONCE[0,3] (EXISTS n. (n <- CNT x p(x)) AND n > 1)",
    "s(t) AND EVENTUALLY[0,5] s(t)",
    "ALWAYS (EXISTS x. p(x) AND EVENTUALLY[0,2] q(x)) IMPLIES PREV[0,3] e()",
]
WAYS_OF = [("all", "local"), ("equivalent", "local"), ("equivalent", "global")]


def stream(seed: int, events: int = 60) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    time, found = 0, []
    for _ in range(events):
        time += draw.choice([0, 0, 1, 1, 2, 6])
        kind = draw.choice("epqprrs")
        event: dict[str, Any] = {"time": time, "type": kind}
        event |= {"p": {"x": draw.randrange(4)}, "q": {"x": draw.randrange(4)}}.get(kind, {})
        event |= {"x": draw.randrange(4), "y": draw.randrange(2)} if kind == "r" else {}
        event |= {"t": draw.choice(["one", "two", "drei"])} if kind == "s" else {}
        found.append(event)
    return found


@pytest.mark.sampled(6)
@pytest.mark.parametrize("text", POLICIES)
@pytest.mark.parametrize(("verdicts", "mode"), WAYS_OF)
def test_a_monitor_of_verdicts_goes_on_where_it_was_saved(text: str, verdicts: str, mode: str) -> None:
    policy = Policy.parse(text, SIGNATURE)
    for seed in range(3):
        events, draw = stream(seed), random.Random(seed)
        expected, found = [], []
        points = ("event", "step")[seed % 2]
        one = Monitor(policy, verdicts=verdicts, mode=mode, time_points=points)
        other = Monitor(policy, verdicts=verdicts, mode=mode, time_points=points)
        begin = 0
        while begin < len(events):
            part = events[begin : begin + draw.randrange(1, 9)]
            begin += len(part)
            expected += one.push(part)
            found += other.push(part)
            data = other.save()
            other = Monitor.restore(policy, data)
            again = Monitor.restore(policy, other.save())
            assert again.stats == other.stats
            assert found == expected
        assert found + other.close() == expected + one.close()
        assert expected


def _replaced(value: Any, draw: random.Random) -> Any:
    """A description with another value somewhere."""
    if isinstance(value, (dict, list)) and value and draw.random() < 0.9:
        place = draw.choice(list(value)) if isinstance(value, dict) else draw.randrange(len(value))
        copy = dict(value) if isinstance(value, dict) else list(value)
        copy[place] = _replaced(value[place], draw)  # type: ignore[index]
        return copy
    if isinstance(value, int) and draw.random() < 0.5:
        return value + draw.choice([-1, 1])
    return draw.choice(VALUES)


class _Chance:
    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def below(self, end: int) -> int:
        return self._draw.randrange(end)


@pytest.mark.parametrize("text", POLICIES)
def test_saves_of_verdicts_that_somebody_made_up_are_refused_or_run(text: str) -> None:
    """The digest fits, the numbers do not: an error, or a monitor that goes on, never a crash."""
    policy = Policy.parse(text, SIGNATURE)
    draw = random.Random(text)
    chance = _Chance(draw)
    refused = 0
    for verdicts, mode in WAYS_OF:
        monitor = Monitor(policy, verdicts=verdicts, mode=mode)
        monitor.push(stream(1))
        data = monitor.save()
        description, blobs = opened(data)
        for _ in range(share_of(60)):
            told, made = description, bytearray(blobs)
            if draw.random() < 0.5:
                told = {**description, "serving": _replaced(description["serving"], draw)}
            else:
                made = draw.choice(WAYS)(made, chance)
            save = sealed(told, made)
            try:
                restored = Monitor.restore(policy, save)
                restored.push([{"time": 10**6, "type": "p", "x": 1}])
                restored.close()
            except HamletError:
                refused += 1
    assert refused > share_of(60)


def test_saves_of_verdicts_fit_their_policy_alone() -> None:
    policy = Policy.parse(POLICIES[0], SIGNATURE)
    data = Monitor(policy, verdicts="all").save()
    assert Monitor.restore(policy, data).options.verdicts == "all"
    with pytest.raises(RestoreError, match="of other policies"):
        Monitor.restore(Policy.parse(POLICIES[1], SIGNATURE), data)
    for wrong in (data[:-1], data[:40] + b"?" + data[41:]):
        with pytest.raises(RestoreError):
            Monitor.restore(policy, wrong)
