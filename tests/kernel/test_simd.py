"""Bands: queries side by side in vectors give the rows of the same queries run each on its own."""

from __future__ import annotations

import random
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np
import pytest

import hamlet
from hamlet._core import Kernel
from hamlet.memory.budget import Budget
from hamlet.planner import compiled as classes
from hamlet.planner.bands import Band, bands, fits
from hamlet.planner.compiled import CompiledQuery
from tests.comparison import difference
from tests.effort import FULL
from tests.planner.test_memory import allocated, bound, compiled, settled, work_area

Rows = list[dict[str, Any]]

PATTERNS = [
    "SEQ(A, B b+)",
    "(SEQ(A, B b+))+",
    "SEQ(A, B b+, C)",
    "B b+",
    "SEQ(C?, A, B b)",
    "SEQ(B x+, B b+)",
    "(A OR B b)+",
    "SEQ(A, NOT C, B b)",
    "SEQ(A+, NOT C, B b+, NOT D)",
    "SEQ(NOT D, A, B b*, C)",
    "(SEQ(NOT C, A, B b))+",
    "SEQ(A{2,3}, B b)",
]
ITEMS = [
    "COUNT(*)",
    "COUNT(*), SUM(b.v)",
    "COUNT(*), SUM(b.v), AVG(b.v), COUNT(b)",
    "COUNT(*), SUM(b.w), AVG(b.w)",
    "COUNT(*), MIN(b.v), MAX(b.v)",
    "COUNT(*), MAX(b.w), MIN(b.w), SUM(b.v)",
]
NO_VECTORS = "this processor has no vectors of"
WINDOWS = ["WITHIN 50 s", "WITHIN 40 s SLIDE 9 s", "WITHIN 7 s SLIDE 10 s"]


def workload(items: str, window: str, patterns: list[str] = PATTERNS) -> hamlet.Workload:
    wheres = ["", "WHERE b.v > 0", "WHERE b.s = 'x'"]
    return hamlet.Workload.parse(
        "".join(
            f"RETURN k, {items} PATTERN {pattern} {wheres[number % 3]} GROUP-BY k {window};\n"
            for number, pattern in enumerate(patterns)
        )
    )


def stream(seed: int, events: int, step: float = 0.7, most: int = 9) -> Rows:
    """Events in bursts of one type, some at one time, some values NULL."""
    draw = random.Random(seed)
    found: Rows = []
    time, type = 0.0, "A"
    for number in range(events):
        time += draw.random() * 2 * step
        if draw.random() < 0.4:
            type = draw.choice("AABBCD")
        found.append(
            {
                "time": int(time),
                "type": type,
                "k": draw.choice((1, 2, None)),
                "v": draw.choice((None, *range(-most, most))),
                "w": draw.choice((None, 0.5, -2.25, 1e-3)),
                "s": draw.choice("xy"),
                "o": number if draw.random() < 0.7 else 0,
            }
        )
    return sorted(found, key=lambda event: (event["time"], event["o"]))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Band]:
    """The bands of the runs of a test."""
    found: list[Band] = []

    def noted(*arguments: Any, **options: Any) -> list[Band]:
        found.extend(mine := bands(*arguments, **options))
        return mine

    monkeypatch.setattr(classes, "bands", noted)
    return found


def both(queries: hamlet.Workload, events: Any, monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Rows, Rows]:
    """The rows with bands and without."""
    with_bands = hamlet.run(queries, events, **options).rows()
    with monkeypatch.context() as patch:
        patch.setattr(classes, "bands", lambda *_, **__: [])
        return with_bands, hamlet.run(queries, events, **options).rows()


def scales(rows: Rows, most: float) -> Rows:
    """What an error is relative to: `most` in every trend, for values of both signs."""
    return [{name: most if "avg" in name else Fraction(row["count"]) * Fraction(most) for name in row} for row in rows]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.parametrize("options", [{}, {"numbers": "float"}, {"sharing": "never"}, {"threads": 2}], ids=str)
def test_side_by_side_is_one_by_one(
    items: str, window: str, options: dict[str, Any], made: list[Band], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards, ties, bursts, overlapping windows, NULL, and counts that stay below 64 bits and that do not."""
    for seed, step in ((1, 0.7), (2, 0.05), (3, 3.0)):
        found, expected = both(
            workload(items, window), stream(seed, 400, step), monkeypatch, order_column="o", **options
        )
        assert sum(len(band.queries) for band in made) >= len(PATTERNS) / 2
        assert found
        if options.get("numbers") == "float" or ".w" in items:
            floats = options.get("numbers") == "float"
            assert difference(found, expected, magnitudes=scales(expected, 9.0), floats=floats) is None
        else:
            assert found == expected
        made.clear()


@pytest.mark.parametrize("width", [1, -2, 2, 4, 8])
def test_vectors_of_every_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, events = workload(ITEMS[2], WINDOWS[1]), stream(5, 500)
    with monkeypatch.context() as patch:
        patch.setattr(classes, "bands", lambda *_, **__: [])
        expected = hamlet.run(queries, events).rows()
    monkeypatch.setattr(classes, "bands", lambda tables, likeness: bands(tables, likeness, width=width))
    try:
        assert hamlet.run(queries, events).rows() == expected
    except ValueError as error:
        if not str(error).startswith(NO_VECTORS):
            raise
        pytest.skip(str(error))


def test_hand_over_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts and sums around 2^61 to 2^63, where a block gives way to states, and back in the next window."""
    queries = workload("COUNT(*), SUM(b.v), COUNT(b)", "WITHIN 1000 s", PATTERNS[:6])
    for events in range(52, 68, 1 if FULL else 5):
        for value in (1, -(2**62), 2**63 - 1, -(2**63)):
            rows = [
                {"time": 1000 * window + t, "type": "A" if t == 0 else "B", "k": 1, "v": value, "s": "x"}
                for window, n in enumerate((events, 5, events))
                for t in range(n)
            ]
            for options in ({}, {"sharing": "never"}):
                found, expected = both(queries, rows, monkeypatch, **options)
                assert found == expected
    assert max(row["count"] for row in found) >= 2**63


@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_extrema_without_a_rank(numbers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest and least integers, infinities, NaN and zeros of both signs: the same, to the bit, as in states."""
    integers = (-(2**63), 2**63 - 1, 0, None)
    doubles = (float("inf"), float("-inf"), float("nan"), 0.0, -0.0, None)
    queries = workload("COUNT(*), MIN(b.v), MAX(b.v), MIN(b.w), MAX(b.w)", "WITHIN 40 s SLIDE 15 s", PATTERNS[:6])
    for seed in range(8):
        draw = random.Random(seed)
        events = [
            {**event, "v": draw.choice((*integers, seed)), "w": draw.choice((*doubles, float(seed)))}
            for event in stream(seed, 120)
        ]
        found, expected = both(queries, events, monkeypatch, numbers=numbers, order_column="o")
        assert repr(found) == repr(expected)


def test_float_counts_of_different_sizes_in_one_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kills empty cells whose counts had thousands of bits; what is left beside them is as exact as ever."""
    queries = workload("COUNT(*), SUM(b.v), AVG(b.v), MIN(b.v)", "WITHIN 20000 s SLIDE 7000 s")
    draw = random.Random(7)
    types = [type for _ in range(60) for type in draw.choice("AABCD") * draw.choice((1, 2, 60, 500, 1500))]
    events = [
        {"time": time, "type": type, "k": 1, "v": draw.choice((None, 1, 5, -4)), "s": "x"}
        for time, type in enumerate(types)
    ]
    found, expected = both(queries, events, monkeypatch, numbers="float")
    assert found
    assert difference(found, expected, magnitudes=scales(expected, 5.0), floats=True) is None


@pytest.mark.parametrize("events", [990, 1010, 10_000])
def test_float_counts_far_beyond_doubles(events: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of up to 10,000 bits, and values that are almost too small or too large for doubles."""
    queries = workload("COUNT(*), SUM(b.v), AVG(b.v)", "WITHIN 100000 s", PATTERNS[:6])
    for values in ((1.0, -3.5), (1e-300, 1e-290), (1e300, 1.0), (5e-324, float("inf"))):
        rows = [{"time": t, "type": "AB"[t % 97 != 0], "k": 1, "v": values[t % 2], "s": "x"} for t in range(events)]
        found, expected = both(queries, rows, monkeypatch, numbers="float")
        assert found
        if isfinite(sum(values)):
            assert difference(found, expected, magnitudes=scales(expected, max(values)), floats=True) is None
        else:
            assert repr(found) == repr(expected)


def one_a_pane(panes: int, ticks: int, keys: tuple[int | None, ...] = (1,)) -> Rows:
    """An A per key in each pane before time 0: windows that opened there are not equal, and maps pay."""
    return [
        {"time": pane * ticks, "type": "A", "k": key, "v": None, "w": None, "s": "x", "o": 0}
        for pane in range(-panes, 0)
        for key in keys
    ]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("items", [*ITEMS, "COUNT(*), AVG(b.v), MIN(b.v), MAX(b.w)"])
def test_pane_maps_are_the_panes_of_every_window(items: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards, ties, NULL, late beginnings: what a pane makes of one window it makes of all, in one run and in two."""
    queries = workload(items, "WITHIN 120 s SLIDE 8 s")
    for seed, step, width in ((1, 0.05, 0), (2, 0.3, 4), (3, 1.0, 2), (4, 0.02, 0), (5, 0.05, 1), (6, 0.05, -2)):
        events = one_a_pane(15, 8, (1, 2, None)) + stream(seed, 900, step)
        with monkeypatch.context() as patch:
            patch.setattr(classes, "bands", lambda tables, likeness, width=width: bands(tables, likeness, width=width))
            try:
                results = hamlet.run(queries, events, numbers="float", order_column="o")
            except ValueError as error:
                if not str(error).startswith(NO_VECTORS):
                    raise
                continue
            engine = hamlet.Engine(queries, numbers="float", order_column="o")
            rows = engine.push(events[:400])
            engine = hamlet.Engine.restore(queries, engine.save())
            rows += engine.push(events[400:]) + engine.close()
        assert results.stats["pane_maps"] > 0 or step > 0.5
        with monkeypatch.context() as patch:
            patch.setattr(classes, "bands", lambda *_, **__: [])
            expected = hamlet.run(queries, events, numbers="float", order_column="o").rows()
        for found in (results.rows(), sorted(rows, key=lambda row: queries.names.index(row["query"]))):
            assert difference(found, expected, magnitudes=scales(expected, 9.0), floats=True) is None


@pytest.mark.parametrize("pattern", ["SEQ(A x, A b)", "SEQ(A x, NOT B, A b)", "SEQ(A x, A y, NOT B, A b)"])
def test_a_type_bound_twice_leaves_numbers_plain(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slots of a program that are read come before those that are written, so that each is read as it was."""
    queries = hamlet.Workload.parse(f"RETURN COUNT(*), SUM(b.v) PATTERN {pattern} WITHIN 300 s SLIDE 10 s")
    events = [{"time": time, "type": "AAB"[time % 3], "v": float(time % 7)} for time in range(2000)]
    results = hamlet.run(queries, events, numbers="float")
    assert results.stats["features"]["plain_doubles"] > 0.9 * (2000 if "NOT" in pattern else 1334)
    with monkeypatch.context() as patch:
        patch.setattr(classes, "bands", lambda *_, **__: [])
        expected = hamlet.run(queries, events, numbers="float").rows()
    assert difference(results.rows(), expected, magnitudes=scales(expected, 7.0), floats=True) is None


@pytest.mark.parametrize("events_of_a_pane", [258, 780, 800])
@pytest.mark.parametrize("pattern", ["SEQ(A, B+)", "(SEQ(A, B+))+"])
def test_pane_maps_multiplied_again_and_again(pattern: str, events_of_a_pane: int) -> None:
    """Maps of 2^260, 2^780: their mantissas are small, and a product of twelve of them must not vanish."""
    draw = random.Random(events_of_a_pane)
    events = [*one_a_pane(12, 1000), {"time": 0, "type": "A", "v": 1.0}]
    for pane in range(20):
        for time in sorted(draw.sample(range(1000 * pane, 1000 * (pane + 1)), events_of_a_pane)):
            events.append({"time": time, "type": draw.choices("AB", (1, 49))[0], "v": 60 * draw.random()})
    queries = hamlet.Workload.parse(f"RETURN LOG2(COUNT(*)), AVG(B.v) PATTERN {pattern} WITHIN 12000 s SLIDE 1000 s")
    results = hamlet.run(queries, events, numbers="float")
    assert results.stats["pane_maps"] > 14  # a pane of few bursts needs none
    expected = hamlet.run(queries, events, numbers="exact").rows()
    assert [row["window_start"] for row in results.rows()] == [row["window_start"] for row in expected]
    for row, exact in zip(results.rows(), expected, strict=True):
        assert row["log2_count"] == pytest.approx(exact["log2_count"], rel=1e-12)
        assert row["avg_B_v"] == pytest.approx(exact["avg_B_v"], rel=1e-9)


@pytest.mark.parametrize("later", [100, 400, 500, 620, 900])
@pytest.mark.parametrize("first", [(250, 520), (250, 1030), (3, 760), (700, 4)])
def test_pane_maps_of_numbers_far_apart(first: tuple[int, int], later: int) -> None:
    """A slot whose exponent is less by two steps may be what counts, after a pane in which its trends have grown.

    Maps become too large to be plain within a pane, too, and so does a burst alone.
    """
    kinds = "A" * first[0] + "B" * first[1], "A" * later + "B", "AB", "AAB" + "A" * later + "BBB"
    events = [
        {"time": 1000 * pane + place * 1000 / len(each), "type": type, "v": float(1 + place % 7)}
        for pane, each in enumerate(kinds)
        for place, type in enumerate(each)
    ]
    events = one_a_pane(48, 1_000_000) + [{**event, "time": int(1000 * event["time"])} for event in events]
    text = "RETURN LOG2(COUNT(*)), AVG(B.v) PATTERN SEQ(A+, B+) WITHIN 48000 s SLIDE 1000 s"
    queries = hamlet.Workload.parse(text)
    results = hamlet.run(queries, events, numbers="float", time_unit="ms")
    assert results.stats["pane_maps"] == 3
    expected = hamlet.run(queries, events, numbers="exact", time_unit="ms").rows()
    for row, exact in zip(results.rows(), expected, strict=True):
        assert row["window_start"] == exact["window_start"]
        assert 2 ** abs(row["log2_count"] - exact["log2_count"]) == pytest.approx(1, abs=1e-9)
        assert row["avg_B_v"] == pytest.approx(exact["avg_B_v"], rel=2e-9)


@pytest.mark.parametrize("calm", [280, 300, 420])
def test_pane_maps_that_begin_after_plain_panes(calm: int) -> None:
    """Windows without a map hold numbers of 2^600, and the first map becomes as large."""
    events = [
        {"time": 1000 * pane + place * 1000 // size, "type": "AB"[place % 2]}
        for pane, size in enumerate([calm] * 3 + [1_400] * 5)
        for place in range(size)
    ]
    windows = "WITHIN 10000 s SLIDE 1000 s", "WITHIN 5000 s SLIDE 1000 s"
    queries = hamlet.Workload.parse(
        "; ".join(f"RETURN LOG2(COUNT(*)) PATTERN SEQ(A, B+) {each}" for each in windows * 2)
    )
    results = hamlet.run(queries, events, numbers="float")
    assert results.stats["pane_maps"] > 0
    expected = hamlet.run(queries, events, operators="scalar").rows()
    for row, exact in zip(results.rows(), expected, strict=True):
        assert row == {**exact, "log2_count": pytest.approx(exact["log2_count"], rel=1e-12)}


@pytest.mark.parametrize("grown", [300, 600, 1200])
def test_pane_maps_of_a_sum_far_smaller_than_its_count(grown: int) -> None:
    """Few trends have a value, and so many have none that no exponent holds both the sum and the count."""
    kinds = "AB", "A" * grown, "bb", "Abb", "b" * (grown // 2), "AAb", "Ab", "b", "Ab", "Ab"
    events = [
        {"time": 1_000_000 * pane + 1000 * place, "type": type.upper(), "v": 3.0 + pane if type == "B" else None}
        for pane, each in enumerate(kinds)
        for place, type in enumerate(each)
    ]
    events = one_a_pane(48, 1_000_000) + events
    text = "RETURN LOG2(COUNT(*)), AVG(B.v), COUNT(B) PATTERN SEQ(A+, B+) WITHIN 48000 s SLIDE 1000 s"
    queries = hamlet.Workload.parse(text)
    results = hamlet.run(queries, events, numbers="float", time_unit="ms")
    assert results.stats["pane_maps"] > 0
    expected = hamlet.run(queries, events, numbers="exact", time_unit="ms").rows()
    for row, exact in zip(results.rows(), expected, strict=True):
        assert row["window_start"] == exact["window_start"]
        assert row["log2_count"] == pytest.approx(exact["log2_count"], rel=1e-12)
        assert row["avg_B_v"] == (exact["avg_B_v"] and pytest.approx(exact["avg_B_v"], rel=1e-9))


def test_flags_are_those_of_all_lanes(made: list[Band]) -> None:
    """A plane that holds whether there is a value in one lane, and a rank in another, is one of ranks."""
    rows = [{"time": time, "type": type, "v": 1.5} for time, type in ((1, "A"), (2, "B"))]
    for items in (["SUM(B.v)"], ["COUNT(*)", "SUM(B.v)"], ["SUM(B.v)", "MAX(B.v)"], ["SUM(B.v), MAX(B.v)"]):
        patterns = zip(items, ("SEQ(A, B+)", "(SEQ(A, B+))+"), strict=False)
        text = "".join(f"RETURN {each} PATTERN {pattern} WITHIN 9 s;\n" for each, pattern in patterns)
        hamlet.run(hamlet.Workload.parse(text), rows, numbers="float")
    assert [(band.linear, band.ranks, band.planes) for band in made] == [(2, 3, 3), (2, 3, 3), (2, 2, 3), (2, 3, 4)]


@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_a_window_may_be_alive_where_an_earlier_one_is_dead(numbers: str) -> None:
    """C comes before the second window opens, and forbids trends to begin in the first."""
    events = [{"time": time, "type": type, "v": 1} for time, type in ((6, "C"), (9, "A"), (11, "B"), (12, "B"))]
    text = "RETURN COUNT(*) PATTERN SEQ(NOT C, A, B+) WITHIN 18 s SLIDE 9 s"
    rows = hamlet.run(hamlet.Workload.parse(text), events, numbers=numbers).rows()
    assert [(row["window_start"], row["count"]) for row in rows] == [(9, 3)]


def test_what_stays_on_its_own() -> None:
    """Queries that look back at single events, longer negated patterns; windows that differ."""
    for pattern in ("SEQ(A, B+) WHERE B.v < NEXT(B).v", "SEQ(A, NOT SEQ(C, D), B)"):
        assert not fits(compiled(f"{pattern} WITHIN 9 s", True).tables[0])
    plain = [_counting("SEQ(A, B+)", seconds) for seconds in (9, 10, 11)]
    assert [band.queries for band in bands([query.tables[0] for query in plain])] == [(0,), (1,), (2,)]
    (band,) = bands([query.tables[0] for query in plain * 2 if query.window[0] == 9])
    assert band.queries == (0, 1)
    assert (band.slots, band.planes, band.whole, band.linear, band.vectors) == (2, 1, 1, 1, 1)


def test_a_lone_query_of_many_windows_has_one_lane() -> None:
    """Its block, with a lane beside it that nobody needs, would be larger than its state."""
    found = [
        band.width
        for slide in (30, 1)
        for band in bands([compiled(f"SEQ(A, B+) WITHIN 30 s SLIDE {slide} s", False).tables[0]])
    ]
    assert found == [0, 1]


def _counting(pattern: str, seconds: int, items: str = "COUNT(*)") -> CompiledQuery:
    return compiled(f"{pattern} WITHIN {seconds} s", True, items)


@pytest.mark.parametrize("queries", [1, 2, 3, 8, 9, 50])
@pytest.mark.parametrize("exact", [True, False])
def test_the_memory_bound_holds_for_blocks(queries: int, exact: bool) -> None:
    """What the allocator gave is what was counted, and no more than what the queries may hold on their own."""
    patterns = [f"{PATTERNS[number % 4]} WITHIN 2000 s SLIDE {500} s" for number in range(queries)]
    each = [compiled(pattern, exact, "COUNT(*), SUM(b.v)") for pattern in patterns]
    tables = [query.tables[0] for query in each]
    keys = 100
    n = keys * 40
    work_area(n, keys)

    def filled() -> tuple[int, int]:
        before, budget = allocated(), Budget()
        kernel = Kernel(tables, [0], budget=budget, bands=bands(tables))
        for place, variables in enumerate((("A",), ("b",))):
            entries = [
                (number, [row for name in variables for row in one.arrivals_of.get(name, ())], [], place)
                for number, one in enumerate(tables)
            ]
            kernel.add_class([entry for entry in entries if entry[1]], place)
        kernel.process(
            np.tile(np.arange(keys, dtype=np.int64), 40),
            np.repeat(np.arange(40, dtype=np.int64) * 40, keys),
            None,
            np.repeat(np.arange(40) % 2, keys).astype(np.int32),
            [(np.arange(n, dtype=np.int64), None)],
            np.zeros(1, np.int64),
            keys,
        )
        assert kernel.counters["live_states"] == keys * queries
        assert sum(int(kernel.memory(query).sum()) for query in range(queries)) > 0
        return allocated() - before, budget.held

    found, held = settled(filled)
    windows = 4
    most = sum(bound(query.tables).partition + windows * bound(query.tables).window.at(41) for query in each)
    areas = sum(windows * bound(query.tables).thread.at(41) for query in each)
    allowance = 192 * 1024  # of Python and numpy themselves, and the tables
    assert found <= keys * most + areas + allowance
    assert 0.9 * held - allowance <= found <= 1.1 * held + allowance
