"""A workload that changes while an engine runs: unchanged queries lose nothing, new ones begin with whole windows."""

from __future__ import annotations

import random
from typing import Any

import pytest

import hamlet
from hamlet.engine.live import Replacement

A = "a: RETURN k, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 20 s SLIDE 10 s;"
B = "b: RETURN COUNT(*), SUM(B.v) AS v PATTERN B+ WITHIN 10 s;"
C = "c: RETURN COUNT(*) PATTERN SEQ(A, NOT B, A) WITHIN 30 s;"
D = "b: RETURN COUNT(*) PATTERN A+ WITHIN 15 s;"  # another query of a known name


def workload(*queries: str) -> hamlet.Workload:
    return hamlet.Workload.parse("\n".join(queries))


def stream(seed: int, events: int = 120) -> list[dict[str, Any]]:
    chance = random.Random(seed)
    times = sorted(chance.randrange(150) for _ in range(events))
    return [{"time": t, "type": chance.choice("AB"), "k": chance.choice("xy"), "v": chance.randrange(5)} for t in times]


def expected(query: str, events: list[dict[str, Any]], after: int | None) -> list[dict[str, Any]]:
    rows = hamlet.run(workload(query), events).rows()
    return [row for row in rows if after is None or row["window_start"] > after]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("saves", [False, True])
def test_changes(seed: int, saves: bool) -> None:
    chance = random.Random(seed)
    events = stream(seed)
    engine = hamlet.Engine(workload(A, B), lateness=chance.choice((0, 3)))
    rows: list[dict[str, Any]] = []
    cuts = sorted(chance.sample(range(10, 110), 2))
    changes = [workload(A, B, C), workload(C, D, A)]
    seen: list[int] = []
    start = 0
    for cut, change in zip(cuts, changes, strict=True):
        rows += engine.push(events[start:cut])
        seen.append(max(event["time"] for event in events[:cut]))
        done = engine.replace(change)
        assert done.after == seen[-1]
        start = cut
        if saves:
            engine = hamlet.Engine.restore(change, engine.save())
    rows += engine.push(iter(events[start:])) + engine.advance(200) + engine.close()

    def of(name: str) -> list[dict[str, Any]]:
        return [row for row in rows if row["query"] == name]

    assert of("a") == expected(A, events, None)
    assert of("c") == expected(C, events, seen[0])
    old = [row for row in of("b") if "v" in row]
    assert old == expected(B, events, None)[: len(old)]
    assert [row for row in of("b") if "v" not in row] == expected(D, events, seen[1])


def test_what_happened() -> None:
    engine = hamlet.Engine(workload(A, B))
    assert engine.replace(workload(B, C)) == Replacement(("b",), ("c",), ("a",), (), None)
    assert engine.replace(workload(D)) == Replacement((), ("b",), ("c",), ("b",), None)
    events = stream(1)
    assert engine.push(events) + engine.close() == expected(D, events, None)
    with pytest.raises(hamlet.HamletError, match="the engine is closed"):
        engine.replace(workload(A))


def test_rows_come_in_the_order_of_the_new_workload() -> None:
    engine = hamlet.Engine(workload(A, B))
    engine.replace(workload(C, B, A))
    rows = engine.push(stream(2)) + engine.close()
    events = stream(2)
    engine = hamlet.Engine(workload(C, B, A))
    whole = engine.push(events) + engine.close()
    assert sorted(map(str, rows)) == sorted(map(str, whole))
    engine = hamlet.Engine(workload(A, B))
    engine.push(events[:1])
    engine.replace(workload(C, B, A))
    names = [row["query"] for row in engine.push(events[1:])]
    assert names == sorted(names, key="cba".index)


def test_restore_with_another_workload() -> None:
    events = stream(3)
    engine = hamlet.Engine(workload(A, B))
    rows = engine.push(events[:60])
    data = engine.save()
    with pytest.raises(hamlet.RestoreError, match="of other queries"):
        hamlet.Engine.restore(workload(A, C), data)
    engine = hamlet.Engine.restore(workload(A, C), data, saved_with=workload(A, B))
    rows += engine.push(events[60:]) + engine.close()
    after = max(event["time"] for event in events[:60])
    assert [row for row in rows if row["query"] == "a"] == expected(A, events, None)
    assert [row for row in rows if row["query"] == "c"] == expected(C, events, after)


def test_damaged_saves() -> None:
    engine = hamlet.Engine(workload(A))
    engine.push(stream(4)[:20])
    engine.replace(workload(A, C))
    data = engine.save()
    with pytest.raises(hamlet.RestoreError, match="of other queries"):
        hamlet.Engine.restore(workload(A), data)
    chance = random.Random(5)
    for _ in range(200):
        place = chance.randrange(len(data))
        wrong = data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]
        with pytest.raises(hamlet.RestoreError):
            hamlet.Engine.restore(workload(A, C), chance.choice((wrong, data[:place])))


def test_late_events_are_late_for_all() -> None:
    engine = hamlet.Engine(workload(A), late="drop")
    engine.push([{"time": 50, "type": "A", "k": "x", "v": 1}])
    engine.replace(workload(A, C))
    assert engine.push([{"time": 3, "type": "A", "k": "x", "v": 1}, {"time": 61, "type": "A", "k": "x", "v": 1}]) == []
    assert engine.stats["late_events"] == 1
    assert engine.close() == []
