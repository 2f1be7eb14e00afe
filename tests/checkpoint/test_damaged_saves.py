"""Saves with mistakes behind a digest that is right: refused, or a monitor that goes on; never a hang."""

from __future__ import annotations

import signal

import pytest

from tests.compare_saves import _stop, check
from tests.kernel.failing_allocations import cases


@pytest.mark.parametrize("name", sorted(cases()))
def test_damaged_saves_are_refused_or_go_on(name: str) -> None:
    before = signal.signal(signal.SIGALRM, _stop)
    try:
        refused, went = check(name, 0, 40)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert refused > 20
    assert refused + went == 40
