"""Texts and large integers that nothing has any more are forgotten: flat memory over keys that come and go."""

from __future__ import annotations

from typing import Any

import pytest

from hamlet.policies import Monitor, Policy, run
from hamlet.policies.plan.evaluation import Evaluation
from tests.compare_policies import compare_wild

POLICY = Policy.parse(
    "a(k, v) AND v > 7 AND NOT (EXISTS w. ONCE[0,10] (b(k, w) AND w > 4))",
    signature="a(k: string, v: int)\nb(k: string, v: int)",
)


def events(first: int, end: int) -> list[dict[str, Any]]:
    return [
        {"time": at // 10, "type": "ab"[at * 7 % 3 % 2], "k": f"key {at // 30 * 10 + at * 11 % 10}", "v": at * 13 % 10}
        for at in range(first, end)
    ]


@pytest.mark.parametrize("size", [1, 40, 3000])
def test_memory_is_flat_over_keys_that_come_and_go(size: int) -> None:
    monitor, rows, held = Monitor(POLICY, lateness=2), [], []
    for first in range(0, 60_000, size):
        rows += monitor.push(events(first, min(first + size, 60_000)))
        if first + size in (30_000, 60_000):
            held.append(monitor.held["bytes"])
    rows += monitor.close()
    assert rows == run(POLICY, events(0, 60_000)).rows()
    assert held[1] < 1.05 * held[0] + 600_000, held  # the pool is looked through when it has doubled


@pytest.mark.parametrize("matching", [False, True])
def test_random_policies_whose_values_are_always_forgotten(matching: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Evaluation, "has_idle_values", True)
    found = [compare_wild(seed, matching=matching) for seed in range(60)]
    assert found.count("equal") > 30


def test_events_that_wait_keep_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = Monitor(POLICY, lateness=2)
    rows = [row for at in range(3000) for row in monitor.push(events(at, at + 1))]
    by_row: list[bool] = []
    forget = Evaluation.forget_values
    monkeypatch.setattr(Evaluation, "has_idle_values", True)

    def told(evaluation: Evaluation) -> None:
        by_row.append(evaluation.goes_by_changes)
        forget(evaluation)

    monkeypatch.setattr(Evaluation, "forget_values", told)
    rows += [row for at in range(3000, 3200) for row in monitor.push(events(at, at + 1))]
    assert rows + monitor.close() == run(POLICY, events(0, 3200)).rows()
    assert any(by_row)
