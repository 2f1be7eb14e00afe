"""Events that are pushed one by one may wait for others: nobody can tell by the rows, nor by when they come."""

from __future__ import annotations

import datetime
import math
import random
from functools import partial
from typing import Any

import pytest

import hamlet
from tests.effort import share_of
from tests.given_times import KINDS

TEXTS = (
    "RETURN k, COUNT(*), SUM(B.v) AS s PATTERN SEQ(A, B+) GROUP-BY k WITHIN 20 s SLIDE 5 s",
    "RETURN COUNT(*) PATTERN SEQ(A, NOT B, A) WHERE [k] WITHIN 12 s; q2: RETURN MAX(A.v) PATTERN A WITHIN 7 s",
    "RETURN COUNT(*) PATTERN A+ WHERE PREV(A).v < A.v WITHIN 10 s",
    "RETURN COUNT(*) PATTERN A+ WHERE PREV(A).v * 2 - 1 < A.v WITHIN 10 s",
    "RETURN COUNT(*) PATTERN A+ WHERE NEXT(A).time - A.time < 3 s WITHIN 10 s",
    "RETURN k, COUNT(*) PATTERN SEQ(A a+, B b) GROUP-BY k WITHIN SESSION 3 s",
    "RETURN COUNT(*) PATTERN A+ WITHIN SESSION 1 s; q2: RETURN k, MAX(A.v) PATTERN A GROUP-BY k WITHIN SESSION 6 s",
    "RETURN COUNT(*) PATTERN SEQ(A, B) WITHIN SESSION 2 s; q2: RETURN MAX(A.v) PATTERN A WITHIN 7 s",
    "RETURN k, COUNT(*) PATTERN SEQ(A a+, B b) GROUP-BY k SPAN 4 s WITHIN 20 s SLIDE 5 s",
    "RETURN COUNT(*) PATTERN SEQ(A a+, NOT B b, A c) SPAN 3 s WITHIN ALL",
    "RETURN COUNT(*) PATTERN SEQ(A+, B) SEMANTICS CONTIGUOUS SPAN 6 s WITHIN 9 s",
    "RETURN COUNT(*) PATTERN SEQ(A, B) SEMANTICS NEXT SPAN 6 s WITHIN SESSION 4 s",
    "few: RETURN k, COUNT(*) AS n PATTERN SEQ(A, B+) GROUP-BY k WITHIN 4 s;"
    "most: RETURN k, COUNT(*), MAX(few.n) AS m, SUM(A.v) AS s PATTERN SEQ(few+, A) GROUP-BY k WITHIN 12 s SLIDE 3 s",
    "visits: RETURN k, COUNT(*) AS n PATTERN SEQ(A, B) GROUP-BY k WITHIN SESSION 3 s;"
    "rising: RETURN COUNT(*) PATTERN visits+ WHERE PREV(visits).n < visits.n WITHIN SESSION 9 s;"
    "all: RETURN COUNT(*) PATTERN SEQ(rising, B) WHERE rising.window_end < NEXT(B).time WITHIN 40 s",
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(share_of(60)))
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
    options: dict[str, Any] = {"lateness": f"{lateness} s", "late": "drop"}
    as_given = KINDS[chance.choice(list(KINDS))]
    batches = [[{**event, "time": as_given(event["time"])}] for event in events]
    waiting = pushed(hamlet.Engine(workload, **options), batches, random.Random(seed))
    assert waiting == pushed(hamlet.Engine(workload, gather=False, **options), batches, random.Random(seed))


def test_what_has_to_be_seen_at_once() -> None:
    workload = hamlet.Workload.parse(TEXTS[0])
    good = {"time": 6, "type": "A", "k": "x", "v": 1}
    for wrong in (
        {**good, "time": 5},
        {**good, "time": None},
        {**good, "k": 3},
        {**good, "k": "x\ud800"},
        {**good, "v": 2**70},
        {**good, "time": True},
        {**good, "type": "\ud800"},
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


def outcomes(workload: hamlet.Workload, events: list[dict[str, Any]], **options: Any) -> list[Any]:
    """What becomes of each push, and of the end."""
    engine = hamlet.Engine(workload, **options)
    told: list[Any] = []
    for act in (*(partial(engine.push, [event]) for event in events), engine.close):
        try:
            told.append(act())
        except hamlet.HamletError as error:
            told.append(str(error))
    return told


START = datetime.datetime(2024, 1, 1)
UTC_TIMES = [datetime.datetime(year, 1, 1, tzinfo=datetime.UTC) for year in (2024, 2024, 2100, 2250)]


@pytest.mark.parametrize(
    ("text", "given", "options"),
    [
        ("EVENT A(d DURATION); RETURN SUM(A.d) PATTERN A", {"d": [1.5, 2.5, 1e300, math.inf, 1]}, {}),
        ("EVENT A(d DURATION); RETURN COUNT(*) PATTERN A WHERE A.d * 1000000 > 5 s", {"d": [1.5, 2.5, 2e12, 1.0]}, {}),
        ("RETURN COUNT(*) PATTERN A WHERE A.d > 1 s", {"d": [None, None, 2.5, 2.5, 2.5]}, {}),
        ("RETURN COUNT(*) PATTERN A+ WHERE NEXT(A).time - A.time < A.d", {"d": [None, None, 2, 2, 2, 2]}, {}),
        (
            "RETURN COUNT(*) PATTERN A+ WHERE (NEXT(A).time - A.time) * 1000000 > 5 s",
            {"time": [START + datetime.timedelta(days=day) for day in (0, 0, 3650, 3651, 3652)]},
            {},
        ),
        ("RETURN COUNT(*) PATTERN A", {"time": UTC_TIMES}, {"timezone": "UTC"}),
        ("RETURN COUNT(*) PATTERN A", {"time": [1, 1, 2**32, 2**40]}, {"timezone": "UTC"}),
        ("RETURN COUNT(*) PATTERN A", {"time": [1, 1, 1.5, math.nan, 2]}, {"time_unit": "ms"}),
    ],
)
def test_what_is_wrong_is_told_by_the_push_that_brings_it(
    text: str, given: dict[str, list[Any]], options: dict[str, Any]
) -> None:
    workload = hamlet.Workload.parse(f"{text} WITHIN ALL")
    ((name, values),) = given.items()
    events = [{"time": START + datetime.timedelta(seconds=n), "type": "A", name: each} for n, each in enumerate(values)]
    told = outcomes(workload, events, **options)
    assert told == outcomes(workload, events, gather=False, **options)
    assert any(isinstance(each, str) for each in told)


def test_columns_between_single_events() -> None:
    engine = hamlet.Engine(hamlet.Workload.parse("RETURN COUNT(*) PATTERN A WITHIN 10 s"))
    event = {"time": 1, "type": "A"}
    engine.push([event])
    engine.push_batches([{**event, "time": 100}])
    with pytest.raises(hamlet.DataError, match="is late"):
        engine.push([{**event, "time": 5}])
    engine.push([{**event, "time": 101}])
    assert [row["count"] for row in engine.close()] == [2]


def test_events_that_are_changed_afterwards() -> None:
    engine = hamlet.Engine(hamlet.Workload.parse("RETURN COUNT(*), SUM(A.v) AS s PATTERN A WITHIN 100 s"), gather=True)
    event = {"time": 1, "type": "A", "v": 1}
    for value in (1, 2, 3, 4):
        event["v"] = value
        engine.push([event])
    assert [(row["count"], row["s"]) for row in engine.close()] == [(4, 10)]


@pytest.mark.parametrize("large", [2**62, -(2**62)])
def test_what_overflows_is_told_by_the_push_that_brings_it(large: int) -> None:
    workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN A+ WHERE PREV(A).v * 4 < A.v + 1 WITHIN 100 s")
    values = (1, 1, 1, large, 1, 1)
    engines = [hamlet.Engine(workload, gather=gather) for gather in (None, False)]
    failures: list[list[int]] = [[], []]
    for engine, failed in zip(engines, failures, strict=True):
        for time, value in enumerate(values):
            try:
                engine.push([{"time": time, "type": "A", "v": value}])
            except hamlet.HamletError:
                failed.append(time)
    assert failures[0] == failures[1] == [5]  # the event behind the large one is looked at when the next one comes
