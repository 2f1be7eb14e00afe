"""How many random cases tests draw: a share of them in `make test`, all of them in `make test-full`.

A test that loops over seeds asks `cases` how many. One with many combinations of parameters is marked
`@pytest.mark.sampled(k)`: of its combinations one in k runs, so that each value of each parameter has its turn.
"""

from __future__ import annotations

import os

import pytest

FULL = os.environ.get("HAMLET_TESTS") == "full"
only_full = pytest.mark.skipif(not FULL, reason="takes minutes: make test-full")


def cases(number: int, least: int = 1) -> int:
    """How many of so many cases to draw: a quarter, if that is not too few for what the test counts."""
    return number if FULL else max(number // 4, least)
