"""The cases that measure growth give checked answers; here with small sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bench import worker
from bench.answers import WrongAnswer
from bench.cases import scale
from bench.subject import Subject

SUBJECTS: list[Callable[[], Any]] = [
    lambda: scale.Memory(6_000, (3_000, 300)),
    lambda: scale.RisingPrices((400, 200)),
    lambda: scale.Scan(700),
    lambda: scale.LongGroup(5_000, 1_000),
    lambda: scale.GroupsOfOne(2_000),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("make", SUBJECTS, ids=["memory", "rising", "scan", "long", "many"])
def test_a_subject_answers_and_is_measured(make: Callable[[], Subject]) -> None:
    subject = make()
    answer = subject.answer()
    assert answer.checks
    assert {"events", "queries", "rows", "largest_count_bits"} <= set(answer.facts)
    measured = worker.measure(subject.contenders(), 1, answer.digest)
    assert all(values["peak_rss_bytes"] > 0 for values in measured.values())


def test_a_wrong_count_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = scale.RisingPrices((200,))
    subject.events[200] = subject.events[200].set_column(2, "price", [np.zeros(200)])
    expected = scale._rising
    monkeypatch.setattr(scale, "_rising", lambda prices: expected(prices) + 1)
    with pytest.raises(WrongAnswer, match="Fenwick"):
        subject.answer()
