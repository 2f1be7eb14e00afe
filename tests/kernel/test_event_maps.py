"""Events of a pane as maps: exact and float, in vectors of any width, against `scalar` without any feature."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

import hamlet
from bench import plane
from bench.plane import text_of
from hamlet.planner.paths import FEATURES
from tests.comparison import in_file_order
from tests.kernel.test_simd_limbs import WIDTHS, alone, asked, stream

WINDOWS = (
    "WITHIN 700 s",
    "WITHIN 600 s SLIDE 250 s",
    "WITHIN 600 s SLIDE 60 s",
    "WITHIN 500 s SLIDE 130 s",
    "WITHIN 100 s SLIDE 170 s",
)


def left_out(width: str) -> list[str]:
    return [name for name in FEATURES if name not in WIDTHS[width]]


def close(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    """Whether rows are equal but for the rounding of their numbers, of which sums cancel out."""
    for a, b in zip(one, other, strict=True):
        for name in a:
            if isinstance(a[name], float | Decimal):
                size = max(abs(Decimal(a[name])), abs(Decimal(b[name])), *(abs(Decimal(x)) for x in _numbers(a)))
                if abs(Decimal(a[name]) - Decimal(b[name])) > Decimal("1e-8") * size:
                    return False
            elif a[name] != b[name]:
                return False
    return True


def _numbers(row: dict[str, Any]) -> list[float | Decimal]:
    return [value for value in row.values() if isinstance(value, float | Decimal)] or [0.0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("window", WINDOWS)
def test_exact(width: str, window: str) -> None:
    workload = asked(window)
    for seed, (ties, most) in enumerate(((0.4, 99), (0.6, 2**44))):
        events = stream(seed, 1_800, ties=ties, most=most)
        results = hamlet.run(workload, events, features=left_out(width))
        assert results.rows() == alone(workload, events), (seed, window)
        assert results.stats["features"]["event_maps"] > 0 or "SLIDE 170" in window
        assert results.rows() == hamlet.run(workload, events, sharing="never").rows()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("window", WINDOWS)
def test_float(width: str, window: str) -> None:
    workload = asked(window)
    events = stream(3, 1_800, ties=0.3)
    results = hamlet.run(workload, events, numbers="float", features=left_out(width))
    expected = hamlet.run(workload, events, numbers="float", operators="scalar", features="")
    assert close(results.rows(), expected.rows())
    some = results.stats["features"]["event_maps"] > 0
    assert some or window.endswith(("SLIDE 60 s", "SLIDE 170 s"))  # not all of so few queries stand in bands


def test_float_at_size() -> None:
    """So many queries of each kind that all of them stand in bands."""
    workload, events = asked("WITHIN 600 s SLIDE 60 s", queries=48), stream(3, 1_800, ties=0.3)
    results = hamlet.run(workload, events, numbers="float")
    expected = hamlet.run(workload, events, numbers="float", operators="scalar", features="")
    assert close(results.rows(), expected.rows())


def test_very_large_numbers() -> None:
    """One window whose counts have some 4,500 bits."""
    workload = asked("WITHIN 100000 s", queries=6)
    events = stream(7, 6_500, ties=0.2)
    results = hamlet.run(workload, events)
    assert results.rows() == alone(workload, events)
    assert results.stats["features"]["event_maps"] > 0
    assert results.stats["largest_count_bits"] > 1_500


def test_doubles_that_are_plain_no_more() -> None:
    """One window whose counts exceed 2^640: what follows is stepped, with exponents."""
    workload, events = asked("WITHIN 100000 s", queries=6), stream(8, 4_000, ties=0.1)
    results = hamlet.run(workload, events, numbers="float")
    expected = hamlet.run(workload, events, numbers="float", operators="scalar", features="")
    assert close(results.rows(), expected.rows())
    assert results.stats["features"]["event_maps"] > 0


def test_values_that_do_not_fit() -> None:
    """They end what is mapped; what follows is taken event by event."""
    workload = asked("WITHIN 600 s SLIDE 60 s")
    events = stream(5, 1_500, ties=0.2)
    chance = random.Random(1)
    for event in chance.sample(events, 12):
        event["v"] = chance.choice((-(2**63), 2**63 - 1, 2**61))
    results = hamlet.run(workload, events)
    assert results.rows() == alone(workload, events)
    assert results.stats["features"]["event_maps"] > 0


@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("window", WINDOWS[:4])
def test_pushes_and_saves(window: str, numbers: Any) -> None:
    """Large pushes are mapped, small ones are not, and windows go on from one to the other, and from a save."""
    workload, events = asked(window), stream(9, 5_000, ties=0.2)
    expected = hamlet.run(workload, events, numbers=numbers, operators="scalar", features="").rows()
    chance = random.Random(2)
    engine, rows, first = hamlet.Engine(workload, numbers=numbers), [], 0
    while first < len(events):
        last = first + chance.choice([3, 40, 1_100, 1_500])
        rows += engine.push(events[first:last])
        first = last
        if chance.random() < 0.4:
            engine = hamlet.Engine.restore(workload, engine.save())
    rows += engine.close()
    rows = in_file_order(rows, workload.names)
    assert rows == expected if numbers == "exact" else close(rows, expected)


def test_long_bursts_are_not_mapped() -> None:
    results = hamlet.run(asked("WITHIN 600 s SLIDE 60 s"), stream(4, 2_000, burst=60, ties=0.0))
    assert results.stats["features"]["event_maps"] == 0


@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_bands_of_several_widths(numbers: Any) -> None:
    """Whatever vectors the bands before have, a map lies where its own can be read."""
    mapped = 0
    for queries in range(9, 31, 2):
        workload = hamlet.Workload.parse(text_of(queries, "WITHIN 60 s SLIDE 3 s"))
        results = hamlet.run(workload, plane.stream(1_500, 1), numbers=numbers, time_unit="ms")
        mapped += results.stats["features"]["event_maps"] > 0
        if queries % 10 == 5:
            options = {"numbers": numbers, "operators": "scalar", "features": "", "time_unit": "ms"}
            assert close(results.rows(), hamlet.run(workload, plane.stream(1_500, 1), **options).rows())
    assert mapped > 2 or numbers == "exact"
