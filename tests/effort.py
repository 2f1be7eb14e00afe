"""How many random cases tests draw: a share of them in `make test`, all of them in `make test-full`.

A test that loops over seeds asks `share_of` how many. One with many combinations of parameters is marked
`@pytest.mark.sampled(k)`: of its combinations one in k runs, always the same ones.
"""

from __future__ import annotations

import os

import pytest

FULL = os.environ.get("HAMLET_TESTS") == "full"
only_full = pytest.mark.skipif(not FULL, reason="takes minutes: make test-full")


def share_of(number: int) -> int:
    """How many of so many cases to draw, or of what is expected among them to await: an eighth, at least one."""
    return number if FULL else max(number // 8, 1)
