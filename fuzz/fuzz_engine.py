"""Fuzzes the engine against the brute-force oracle: ``python fuzz/fuzz_engine.py -max_total_time=60``.

The input's bytes are the random decisions of `tests.strategies`: a small workload, a stream, and how it is split over
pushes, numbers and sharing. Coverage leads to cases that chance rarely draws.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import driver

with driver.atheris.instrument_imports(include=["hamlet", "optimizer"]):
    from tests.compare_random import FEATURES, compare
    from tests.strategies import Draft, is_valid

WITHIN_REASON = [replace(features, events=8) for features in FEATURES.values()]  # the oracle's time is exponential


class Bytes:
    """Decisions read from bytes, the lowest ones when they are used up."""

    def __init__(self, data: bytes) -> None:
        self.source = driver.atheris.FuzzedDataProvider(data)

    def integer(self, low: int, high: int) -> int:
        """Any of ``low..high``."""
        return int(self.source.ConsumeIntInRange(low, high))


def check(data: bytes) -> None:
    """One input."""
    chance = Bytes(data)
    draft = Draft(chance, WITHIN_REASON[chance.integer(0, len(WITHIN_REASON) - 1)])
    extra = {
        "numbers": draft.pick(["exact", "float"]),
        "sharing": draft.pick(["dynamic", "static", "never"]),
        "threads": draft.pick([1, 1, 2]),
    }
    case = draft.case()
    if is_valid(case[0]):
        report = compare(case, extra, chance.integer(0, 1000))
        assert report is None, report


def seeds() -> list[bytes]:
    """Nothing, and bytes of every value."""
    return [b"", bytes(range(256)) * 4, bytes(range(255, -1, -1)) * 4, bytes(i * 37 % 256 for i in range(2000))]


if __name__ == "__main__":
    driver.run(Path(__file__).stem, check, seeds())
