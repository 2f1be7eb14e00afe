"""Events that are pushed one by one may wait for others: nobody can tell by the rows, nor by when they come."""

from __future__ import annotations

import random
from typing import Any

import pytest

import hamlet

TEXTS = (
    "RETURN k, COUNT(*), SUM(B.v) AS s PATTERN SEQ(A, B+) GROUP-BY k WITHIN 20 s SLIDE 5 s",
    "RETURN COUNT(*) PATTERN SEQ(A, NOT B, A) WHERE [k] WITHIN 12 s; q2: RETURN MAX(A.v) PATTERN A WITHIN 7 s",
    "RETURN COUNT(*) PATTERN A+ WHERE PREV(A).v < A.v WITHIN 10 s",
)


def stream(chance: random.Random, events: int = 150) -> list[dict[str, Any]]:
    times = sorted(chance.randrange(120) for _ in range(events))
    found = [
        {"time": t, "type": chance.choice("AB"), "k": chance.choice("xy"), "v": chance.randrange(4)} for t in times
    ]
    for event in chance.sample(found, 6):  # other shapes
        event.pop("v") if chance.random() < 0.5 else event.update(v=0.5)
    return found


def pushed(engine: hamlet.Engine, batches: list[list[dict[str, Any]]], chance: random.Random) -> list[Any]:
    """What each push returns, at the event by which it came."""
    rows: list[Any] = []
    done = 0
    for batch in batches:
        done += len(batch)
        rows += [(done, str(row)) for row in engine.push(batch)]
        if chance.random() < 0.03:
            engine = hamlet.Engine.restore(engine.workload, engine.save())
        if chance.random() < 0.03:
            assert engine.stats["events"] >= 0
    return rows + [("end", str(row)) for row in engine.close()]


@pytest.mark.parametrize("seed", range(60))
def test_the_same_rows_at_the_same_events(seed: int) -> None:
    chance = random.Random(seed)
    workload = hamlet.Workload.parse(chance.choice(TEXTS))
    events = stream(chance)
    lateness = chance.choice((0, 0, 4))
    if lateness:
        for _ in range(20):
            place = chance.randrange(len(events) - 1)
            if events[place + 1]["time"] - events[place]["time"] <= lateness:
                events[place], events[place + 1] = events[place + 1], events[place]
    options: dict[str, Any] = {"lateness": lateness, "late": "drop"}
    batches = [[event] for event in events]
    waiting = pushed(hamlet.Engine(workload, **options), batches, random.Random(seed))
    assert waiting == pushed(hamlet.Engine(workload, gather=False, **options), batches, random.Random(seed))


def test_what_has_to_be_seen_at_once() -> None:
    workload = hamlet.Workload.parse(TEXTS[0])
    good = {"time": 6, "type": "A", "k": "x", "v": 1}
    for wrong in (
        {**good, "time": 5},
        {**good, "time": None},
        {**good, "k": 3},
        {**good, "v": 2**70},
        {**good, "time": True},
    ):
        engine = hamlet.Engine(workload)
        for event in (good, good, good):
            engine.push([event])
        with pytest.raises(hamlet.DataError):
            engine.push([wrong])
        assert engine.stats["events"] <= 3
        assert engine.push([{**good, "type": "B", "time": 7}]) == []
        assert [row["count"] for row in engine.close()] == [3] * 4
    engine = hamlet.Engine(workload, gather=True)
    engine.push([good])
    engine.push([good])
    engine.advance(50)
    with pytest.raises(hamlet.DataError, match="is late"):
        engine.push([{**good, "time": 40}])


def test_events_that_are_changed_afterwards() -> None:
    engine = hamlet.Engine(hamlet.Workload.parse("RETURN COUNT(*), SUM(A.v) AS s PATTERN A WITHIN 100 s"), gather=True)
    event = {"time": 1, "type": "A", "v": 1}
    for value in (1, 2, 3, 4):
        event["v"] = value
        engine.push([event])
    assert [(row["count"], row["s"]) for row in engine.close()] == [(4, 10)]
