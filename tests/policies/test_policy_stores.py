"""What stands and is looked up: the rows of brute force, and a push that costs what changes, whatever is kept."""

from __future__ import annotations

import random
import statistics
import tracemalloc
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hamlet.policies import Monitor, Policy, PolicyError
from hamlet.policies.operators import aggregating
from hamlet.policies.plan.evaluation import Evaluation
from hamlet.policies.relations import indexed_store as standing
from hamlet.policies.relations.indexed_store import Pending, Store
from hamlet.policies.relations.relation import Relation
from tests.compare_policies import expected
from tests.policies.test_policies_evaluation import Event
from tests.random_policies import SIGNATURE, random_log, random_policy

KEPT = {
    "ONCE": "B(x,y) AND NOT ONCE[0,1000000] A(x,y)",
    "ONCE without end": "B(x,y) AND ONCE EXISTS z. A(x,z)",
    "SINCE": "B(x,y) AND ((NOT C(x,y)) SINCE A(x,y))",
    "EVENTUALLY": "ALWAYS FORALL x, y. B(x,y) IMPLIES EVENTUALLY[0,100000] A(x,y)",
    "star": "((ONCE[0,100000] A(w,x)) AND B(w,y)) AND (EVENTUALLY[0,100000] C(w,z))",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("share", [0, 2])
@pytest.mark.parametrize("begin", range(0, 160, 40))
def test_looking_up_gives_the_rows_of_brute_force(monkeypatch: pytest.MonkeyPatch, share: int, begin: int) -> None:
    monkeypatch.setattr(standing, "LEAST", 0)
    monkeypatch.setattr(standing, "SHARE", share)
    monkeypatch.setattr(standing, "_ROOM", 4)
    compared = 0
    for seed in range(begin, begin + 40):
        draw = random.Random(3 * 10**6 + seed)
        text, log = random_policy(draw), random_log(draw)
        try:
            policy = Policy.parse(text, SIGNATURE)
            monitor = Monitor(policy, order_column="o")
        except PolicyError:
            continue
        rows = []
        for place, (time, tables) in enumerate(log):
            events: list[Event] = [{"time": time, "o": place, "type": "nothing"}]
            for (name, _), tuples in tables.items():
                held = [dict(zip("ab", row, strict=False)) for row in tuples]
                events += [{"time": time, "o": place, "type": name, **each} for each in held]
            rows += monitor.push(events)
            if draw.random() < 0.15:
                monitor = Monitor.restore(policy, monitor.save())
        rows += monitor.close()
        found = [(row["time"], row["time_point"], tuple(list(row.values())[3:])) for row in rows]
        assert found == expected(policy, log), (seed, text)
        compared += 1
    assert compared > 10


def _fed(evaluation: Evaluation, draw: np.random.Generator, events: int, times: Any) -> None:
    kinds, values = draw.integers(0, 3, events), draw.integers(0, 10**9, (2, events))
    tables: dict[tuple[str, int], Any] = {}
    for kind, name in enumerate("ABC"):
        rows = np.flatnonzero(kinds == kind)
        tables[name, 2] = rows, [pa.array(column[rows]) for column in values]
    evaluation.feed(times, tables)


def _bytes_of_a_push(text: str, kept: int) -> float:
    """What a push of ten events allocates at most, where so many events have gone before: the median of some."""
    evaluation = Evaluation([Policy.parse(text, "A(x: int, y: int) B(x: int, y: int) C(x: int, y: int)")])
    draw = np.random.default_rng(1)
    _fed(evaluation, draw, kept, np.sort(draw.integers(0, 50_000, kept)))
    peaks = []
    tracemalloc.start()
    try:
        for push in range(20):
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            _fed(evaluation, draw, 10, np.full(10, 50_001 + push))
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return statistics.median(peaks)


@pytest.mark.parametrize("name", KEPT)
def test_a_push_costs_what_changes(name: str) -> None:
    """Whoever goes through what is kept has arrays of its size; a push needs some kilobytes, whatever is kept."""
    few, many = _bytes_of_a_push(KEPT[name], 20_000), _bytes_of_a_push(KEPT[name], 200_000)
    assert many < 1.5 * few + 8_192
    assert many < 100_000


@pytest.mark.parametrize("room", [1, 40, 4096])
def test_rows_of_a_store_are_found_once_and_dropped_ones_never(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    monkeypatch.setattr(standing, "_ROOM", room)
    draw = random.Random(5)
    store = Store([np.zeros(0, np.int64)] * 3)
    known: list[tuple[int, int, int]] = []
    for round in range(400):
        fresh = [(draw.randrange(4), draw.randrange(3), round) for _ in range(draw.randrange(30))]
        store.insert([np.array([row[place] for row in fresh], np.int64) for place in range(3)])
        known += fresh
        if round % 7 == 0:
            store.expire(2, round - 40)
            known = [row for row in known if row[2] >= round - 40]
        on = draw.choice([(0,), (1,), (0, 1), ()])
        keys = sorted({tuple(draw.randrange(4) for _ in on) for _ in range(2)})
        places = store.find(on, [np.array([key[each] for key in keys]) for each in range(len(on))], len(keys))
        found = sorted(zip(*(column.tolist() for column in store.take(places)), strict=True))
        assert found == sorted(row for row in known if tuple(row[each] for each in on) in keys)
        if draw.random() < 0.3:
            store.drop(places)
            known = [row for row in known if row not in found]
        assert store.live == len(known)
    assert store.nbytes < 1 << 19


def test_no_batch_pays_for_all_that_is_kept() -> None:
    """Rows that are over in the order in which they came: none is copied, whatever is kept."""
    rows = 1 << 12
    store = Store([np.arange(rows), np.full(rows, 20)])
    store.find((0,), [np.arange(10)], 10)
    for time in range(1, 200):
        store.expire(1, time)
        before = store.steps
        store.insert([np.arange(rows), np.full(rows, time + 20)])
        store.find((0,), [np.arange(10)], 10)
        assert store.steps - before < 4 * rows, time
    assert store.live == 21 * rows
    assert store.nbytes < 100 * 21 * rows


def test_rows_that_wait_are_taken_in_parts() -> None:
    waiting = Pending(1)
    waiting.add(Relation([np.array([1, 2, 3])], np.array([5, 0, 2]), np.array([9, 1, 7])))
    waiting.add(Relation([np.array([4])], np.array([10]), np.array([12])))
    taken = waiting.take(3)
    assert sorted(zip(taken.columns[0], taken.first, taken.last, strict=True)) == [(2, 0, 1), (3, 2, 2)]
    rest = waiting.whole()
    assert sorted(zip(rest.columns[0], rest.first, rest.last, strict=True)) == [(1, 5, 9), (3, 3, 7), (4, 10, 12)]
    assert len(waiting.take(100)) == 3
    assert not waiting


def test_values_in_order_are_found_by_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aggregating, "_PIECE", 6)
    lot = random.Random(7)
    for _ in range(20):
        values, expected = aggregating._Sorted(), list[int]()
        for _ in range(200):
            if expected and lot.random() < 0.48:
                gone = expected.pop(lot.randrange(len(expected)))
                values.remove(gone)
            else:
                expected.append(lot.randrange(40))
                values.add(expected[-1])
            expected.sort()
            if expected and lot.random() < 0.6:
                place = lot.choice([lot.randrange(len(expected)), len(expected) // 2])
                assert values.at(place) == expected[place]
