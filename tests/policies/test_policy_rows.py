"""Policies that have more rows than memory: conjunctions that would pass a limit, rows that are given in pieces."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from hamlet.errors import MemoryLimitError
from hamlet.policies import Monitor, Policy, run
from hamlet.policies.plan import evaluation
from hamlet.policies.relations.relation import Relation

SIGNATURE = "r(x: int, y: int) s(x: int, z: int)"


def parsed(text: str) -> Policy:
    return Policy.parse(text, signature=SIGNATURE)


@pytest.mark.parametrize(
    "text",
    [
        "r(x, y) AND s(x, z)",
        "r(x, y) AND r(x, z)",
        "EXISTS x, y, z. r(x, y) AND s(x, z)",
        "n <- CNT y; z r(x, y) AND s(x, z)",
    ],
)
@pytest.mark.parametrize("pushed", [False, True])
def test_a_conjunction_of_a_billion_rows_is_heard_by_the_limit(text: str, pushed: bool) -> None:
    events = [{"time": 1, "type": "r", "x": 1, "y": each} for each in range(33_000)]
    events += [{"time": 1, "type": "s", "x": 1, "z": each} for each in range(33_000)]
    policy = parsed(text)
    monitor = Monitor(policy, max_memory="8 MiB")
    call: Callable[[], Any] = partial(run, policy, events, max_memory="8 MiB")
    if pushed:
        monitor.push(events)  # a time-point that may go on
        call = monitor.close
    with pytest.raises(MemoryLimitError, match="a conjunction has more than 174,762 rows in one batch"):
        call()


def test_rows_of_a_run_are_heard_by_the_limit() -> None:
    events = [{"time": each, "type": "r", "x": each, "y": each} for each in range(20_000)]
    with pytest.raises(MemoryLimitError, match="its rows need more memory than its limit, 8 MiB"):
        run(parsed("ONCE r(x, y)"), events, max_memory="8 MiB")


def test_pieces_have_the_rows_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[dict[str, Any]] = [{"time": each // 3, "type": "r", "x": each, "y": -each} for each in range(300)]
    policy = parsed("ONCE[0,40] r(x, y)")
    whole = run(policy, events).rows()
    monkeypatch.setattr(evaluation, "_ROWS_AT_ONCE", 100)
    assert run(policy, events).rows() == whole
    monitor = Monitor(policy)
    rows = monitor.push(events[:200]) + monitor.push(events[200:]) + monitor.close()
    assert rows == whole


@pytest.mark.parametrize("seed", range(100))
def test_pieces_of_random_periods(seed: int) -> None:
    chance = random.Random(seed)
    count, most = chance.randrange(12), chance.randrange(1, 40)
    first = np.array([chance.randrange(30) for _ in range(count)], np.int64)
    last = first + np.array([chance.randrange(chance.choice((1, 10, 40))) for _ in range(count)], np.int64)
    found = []
    for part in evaluation._pieces(Relation([np.arange(count)], first, last), most):
        columns = zip(part.columns[0].tolist(), part.first.tolist(), part.last.tolist(), strict=True)
        rows = sorted((point, row) for row, begin, end in columns for point in range(begin, end + 1))
        assert len(rows) <= most or len({point for point, _ in rows}) == 1
        found += rows
    assert found == sorted((point, row) for row in range(count) for point in range(first[row], last[row] + 1))
