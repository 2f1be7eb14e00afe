"""Operators and features against the scalar operator, on streams of some thousand events (`tests.compare_paths`)."""

from __future__ import annotations

import pytest

from tests.compare_paths import OPERATORS, Reached, absent, compare, different
from tests.effort import FULL
from tests.path_cases import KINDS, draw

CASES = 120
# Seeds that reach everything, most of it four times.
# fmt: off
FEW = [
    4, 7, 11, 12, 15, 16, 17, 23, 25, 37, 40, 42, 46, 49, 52, 53, 54, 59, 60, 63, 65, 67, 69, 70, 71, 72,
    78, 79, 81, 84, 86, 88, 91, 92, 94, 97, 98, 99, 100, 102, 106, 107, 111, 116, 117, 118, 119,
]
# fmt: on


@pytest.mark.slow
def test_differential_paths() -> None:
    """The scalar operator itself is compared with the oracle elsewhere."""
    reached = Reached()
    for seed in range(CASES) if FULL else FEW:
        report = compare(seed, 6_000, reached)
        assert report is None, report
    assert reached.missing() == [], str(reached)
    assert {name for name, count in reached.events.items() if count > 5_000} == set(OPERATORS)
    assert reached.sizes["saves"] > 10


def test_what_is_different_is_found() -> None:
    rows = [{"count": 2**70, "avg_v": 1.0}, {"count": 1, "avg_v": None}]
    assert different(rows, rows) is None
    assert different([{**rows[0], "avg_v": 1 + 1e-12}, rows[1]], rows) is None
    assert different([{**rows[0], "avg_v": 1 + 1e-8}, rows[1]], rows) is not None
    assert different([{**rows[0], "count": 2**70 + 1}, rows[1]], rows) is not None
    assert different([{**rows[0], "count": float(2**70)}, rows[1]], rows) is None
    assert different([rows[0], {**rows[1], "avg_v": 0.0}], rows) is not None
    assert different(rows[:1], rows) == "1 rows instead of 2"


def test_cases_are_drawn_alike_each_time() -> None:
    for seed in range(len(KINDS)):
        one, other = draw(seed, 3_000), draw(seed, 3_000)
        assert one.kind == KINDS[seed]
        assert one.text == other.text
        assert one.events.equals(other.events)


def test_what_the_processor_lacks_is_known() -> None:
    assert absent() <= {"avx2", "avx512", "int32"}
