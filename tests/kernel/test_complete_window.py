"""Whole windows, computed at once, give the rows of blocks and graphlets; and only where they may."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.engine import class_runner
from hamlet.engine.closed_windows import ClosedRows
from hamlet.input.columns import StringPool
from hamlet.input.events import open_events
from hamlet.language.schema import Schema
from hamlet.output.rows import Closed
from hamlet.planner import compiled
from hamlet.planner.bands import bands
from hamlet.planner.paths import OPERATORS
from tests.comparison import difference, in_file_order
from tests.kernel.test_simd import ITEMS, NO_VECTORS, PATTERNS, Rows, stream

OTHERS = [name for name in OPERATORS if name != "complete_window"]
LARGE = 3 << 40


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_runner, "WHOLE_FROM", 0)


def workload(patterns: list[str] = PATTERNS, window: str = "WITHIN 20 s", items: list[str] = ITEMS) -> hamlet.Workload:
    """Queries with all aggregates in turns."""
    wheres = ["", "WHERE b.v > 0", "WHERE b.s = 'x'"]
    return hamlet.Workload.parse(
        "".join(
            f"RETURN k, {items[number % len(items)]} PATTERN {pattern} {wheres[number % 3]} GROUP-BY k {window};\n"
            for number, pattern in enumerate(patterns)
        )
    )


def both(queries: hamlet.Workload, events: Any, **options: Any) -> tuple[hamlet.Results, hamlet.Results]:
    """With whole windows at once, and without."""
    return hamlet.run(queries, events, **options), hamlet.run(queries, events, operators=OTHERS, **options)


@pytest.mark.parametrize("options", [{}, {"order_column": "o"}, {"threads": 2}, {"numbers": "float"}], ids=str)
def test_rows_are_those_of_blocks_and_graphlets(options: dict[str, Any]) -> None:
    one, other = both(workload(), stream(3, 4_000), **options)
    assert one.stats["whole_windows"] > 100
    assert other.stats["whole_windows"] == 0
    assert difference(one.rows(), other.rows(), floats=options.get("numbers") == "float") is None
    for counted in ("events", "matched_events", "windows", "partitions"):
        assert one.stats[counted] == other.stats[counted], counted


def test_lanes_are_chosen_by_the_classes_of_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets of classes are met so often that they get bands of their own, behind windows in the band of all lanes."""
    monkeypatch.setattr(class_runner, "WHOLE_FROM", 1024)
    events = stream(4, 12_000, step=3.0)
    one = hamlet.run(workload(), events)
    assert one.stats["whole_windows"] > 1_000
    assert difference(one.rows(), hamlet.run(workload(), events, operators=OTHERS).rows()) is None


@pytest.mark.parametrize("values", [(LARGE, -LARGE, 7), ((1 << 63) - 1, -(1 << 63), 1), (1.5e300, -(2.0**-900), 1.0)])
def test_numbers_that_planes_cannot_hold(values: tuple[Any, ...]) -> None:
    """Such windows are left to limbs, or their extrema to states."""
    events = [
        {"time": time, "type": "ABBB"[time % 4], "k": 1, "v": values[time // 60 % 3], "s": "x"} for time in range(480)
    ]
    items = ["COUNT(*), SUM(b.v)", "COUNT(*), MIN(b.v), MAX(b.v)", "COUNT(*), AVG(b.v)"]
    queries = workload(["SEQ(A, B b+)", "(SEQ(A, B b+))+", "B b+"], items=items)
    one, other = both(queries, events)
    assert one.rows() == other.rows()
    assert 0 < one.stats["whole_windows"] < 24


@pytest.mark.parametrize("options", [{}, {"numbers": "float"}], ids=str)
@pytest.mark.parametrize("width", [1, -2, 2, 4, 8])
def test_vectors_of_every_width(width: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    queries, events = workload([*PATTERNS, *PATTERNS], items=ITEMS[:5]), stream(11, 2_000, step=2.0)
    expected = hamlet.run(queries, events, operators=OTHERS, **options).rows()
    monkeypatch.setattr(compiled, "bands", partial(bands, width=width))
    try:
        found = hamlet.run(queries, events, **options)
    except ValueError as error:
        if not str(error).startswith(NO_VECTORS):
            raise
        pytest.skip(str(error))
    assert found.stats["whole_windows"] > 100
    assert difference(found.rows(), expected, floats=bool(options)) is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bits", [2, 16, 22, 26, 28, 29, 30, 31, 34, 45])
@pytest.mark.parametrize(
    "items", [ITEMS[:2], ITEMS[1:3], [ITEMS[4]], ["COUNT(*), SUM(b.v), AVG(b.v), MIN(b.v)"]], ids=str
)
def test_numbers_of_every_size(bits: int, items: list[str]) -> None:
    """Lanes of few bits are taken where they do; numbers around what these can hold."""
    near = [sign * ((1 << bits) + more) for sign in (1, -1) for more in (-2, -1, 0, 1)]
    events = pa.table(
        {
            "time": [time // 3 * 2 for time in range(6_000)],
            "type": ["ABCBDABB"[time * time % 31 % 8] for time in range(6_000)],
            "k": [time % 7 % 3 for time in range(6_000)],
            "v": pa.array([near[time * time % 29 % 8] for time in range(6_000)], pa.int64()),
            "s": ["xy"[time % 5 % 2] for time in range(6_000)],
        }
    )
    patterns = [*PATTERNS[:4], PATTERNS[6], *PATTERNS[7:9], PATTERNS[10]]
    for queries in (workload([*patterns, *patterns], items=items), workload(patterns[:3], items=items)):
        one, other = both(queries, events)
        assert one.stats["whole_windows"] > (0 if bits == 45 else 100)
        assert difference(one.rows(), other.rows()) is None


@pytest.mark.parametrize("large", [0, LARGE])
def test_rows_come_as_columns(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the order of windows and groups; and where some windows are left to blocks, their rows among them."""
    ordered_queries: list[bool] = []

    def all_taken(closed: ClosedRows, place: int, row_columns: Any, orders: Any) -> list[Closed]:
        ordered_queries.append(row_columns is not None)
        return plain(closed, place, row_columns, orders)

    plain = ClosedRows._all_taken
    monkeypatch.setattr(ClosedRows, "_all_taken", all_taken)
    events = stream(12, 6_000, step=0.05)
    for number, event in enumerate(events):
        event["k"] = "dcba"[number * 7 % 4]
        event["l"] = number * 5 % 3
        if event["v"] is not None and number % 800 > 600:
            event["v"] += large << 20
    monkeypatch.setattr(class_runner, "WHOLE_FROM", 1_024)
    queries = hamlet.Workload.parse(
        "RETURN k, l, COUNT(*), SUM(b.v), MIN(b.v) PATTERN SEQ(A, B b+) GROUP-BY k, l WITHIN 5 s;"
        "RETURN k, COUNT(*), AVG(b.v), MAX(b.v) PATTERN SEQ(A, C?, B b+) WHERE [l] GROUP-BY k WITHIN 5 s;"
        "RETURN k, l, COUNT(*), MAX(b.w) PATTERN SEQ(B b+, NOT D, C) GROUP-BY k, l WITHIN 5 s;"
        "RETURN l, k, AVG(y.v), COUNT(*) PATTERN SEQ(A x, B y+) GROUP-BY k, l WITHIN 5 s"
    )
    one, other = both(queries, pa.Table.from_pylist(events))
    assert one.stats["features"]["merged_queries"] == 1  # the last is like the first
    assert one.stats["whole_windows"] > 100
    assert any(ordered_queries) != bool(large)
    assert one.rows() == other.rows()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_many_windows_are_held_and_batches_taken_in_portions(numbers: str) -> None:
    """Windows of thousands of keys, of one, and of some; more sets of classes than a vector's table has room for."""
    draw = np.random.default_rng(5)
    crowded = np.repeat(np.arange(16), (9_000, 2, 7_000, 0, 9_000, 9_000, 16, 17, 15, 1, 12_000, 9_000, 3, 1, 0, 1))
    rows = len(crowded)
    events = pa.table(
        {
            "time": np.sort(crowded * 10 + draw.integers(0, 10, rows)),
            "type": draw.choice(list("AABBBCD"), rows),
            "k": draw.integers(0, 1_500, rows),
            "v": draw.integers(-9, 9, rows),
            "w": draw.choice((0.5, -2.25, 1e-3), rows),
            "s": draw.choice(list("xy"), rows),
        }
    )
    one, other = both(workload([*PATTERNS, *PATTERNS], "WITHIN 10 s"), events, numbers=numbers)
    assert one.stats["whole_windows"] > 8_000
    assert difference(one.rows(), other.rows(), floats=numbers == "float") is None


def test_windows_that_began_before_the_batch_are_not_whole() -> None:
    queries = workload(window="WITHIN 50 s")
    events = stream(5, 600)
    expected = hamlet.run(queries, events).rows()
    for cut in (7, 100, 333):
        engine = hamlet.Engine(queries)
        rows = [row for start in range(0, 600, cut) for row in engine.push(events[start : start + cut])]
        assert difference(in_file_order(rows + engine.close(), queries.names), expected) is None
        assert engine.stats["whole_windows"] < engine.stats["windows"]


def test_counters_go_on_after_a_save() -> None:
    queries = workload()
    events = stream(6, 2_000)
    engine, whole = hamlet.Engine(queries), hamlet.Engine(queries)
    engine.push(events[:1_000])
    whole.push(events[:1_000])
    engine = hamlet.Engine.restore(queries, engine.save())
    for each in (engine, whole):
        each.push(events[1_000:])
        each.close()
    assert engine.stats["whole_windows"] == whole.stats["whole_windows"] > 0


@pytest.mark.parametrize("options", [{"sharing": "never"}, {"trace": "t.parquet"}, {"benefit": "paper"}], ids=str)
def test_bursts_that_are_asked_for_are_not_skipped(options: dict[str, Any], tmp_path: Any) -> None:
    if "trace" in options:
        options = {"trace": tmp_path / options["trace"]}
    results = hamlet.run(workload(), stream(7, 1_000), **options)
    assert results.stats["whole_windows"] == 0
    assert results.stats["bursts"] > 0


@pytest.mark.parametrize(
    "text",
    [
        "RETURN COUNT(*) PATTERN SEQ(A, B b+) WITHIN 20 s SLIDE 10 s",
        "RETURN COUNT(*) PATTERN SEQ(A, B b+) WHERE b.v < NEXT(b).v WITHIN 20 s",
        "RETURN COUNT(*) PATTERN SEQ(A, NOT SEQ(C, D), B b+) WITHIN 20 s",
    ],
)
def test_one_query_that_is_not_fit_keeps_all_from_it(text: str) -> None:
    events = pa.Table.from_pylist(stream(8, 1_000))
    both_texts = hamlet.Workload.parse(f"{text}; RETURN COUNT(*) PATTERN SEQ(A, C+) WITHIN 20 s")
    assert hamlet.run(both_texts, events).stats["whole_windows"] == 0
    alone = hamlet.run(hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, C+) WITHIN 20 s"), events)
    assert alone.stats["whole_windows"] > 0


def test_small_batches_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_runner, "WHOLE_FROM", 1024)
    events: Rows = stream(9, 900)
    assert hamlet.run(workload(), events).stats["whole_windows"] == 0


@pytest.mark.parametrize("width", [0, 4])
def test_bands_that_share_a_kernel(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in no order are written from numbers of lanes in bands with other planes: exponents are those of the row's.

    Before they were cleared, a number that a lane of one band had left was the exponent of a lane of another.
    """
    aggregates = [
        "COUNT(*)", "COUNT(*), SUM(B.x)", "AVG(B.x)", "MIN(B.x)", "MAX(B.x), SUM(B.y)", "AVG(B.x), MAX(B.y)",
        "COUNT(B), SUM(B.x), MIN(B.y)", "COUNT(B), SUM(B.x), SUM(B.y), AVG(B.y)",
    ]  # fmt: skip
    if width:
        monkeypatch.setattr(compiled, "bands", partial(bands, width=width))
    several = 0
    for seed in range(8):
        chance = random.Random(seed)
        texts = [
            f"RETURN {chance.choice(aggregates)} PATTERN B+ "
            f"{chance.choice(['', f'WHERE B.x > {chance.randrange(-5, 5)}'])} WITHIN 4 s"
            for _ in range(15)
        ]
        texts += [f"RETURN {chance.choice(aggregates)} PATTERN SEQ(A, B+, C) WITHIN 4 s" for _ in range(4)]
        queries = hamlet.Workload.parse("; ".join([*texts, "RETURN AVG(B.x) PATTERN SEQ(A{2,3}, B) WITHIN 4 s"]))
        events = pa.table(
            {
                "time": range(400),
                "type": [chance.choice("AABBC") for _ in range(400)],
                "x": [float(chance.randrange(-9, 9)) for _ in range(400)],
                "y": [chance.randrange(-9, 9) for _ in range(400)],
            }
        )
        try:
            one, other = both(queries, events, numbers="float")
        except ValueError as error:
            if not str(error).startswith(NO_VECTORS):
                raise
            pytest.skip(str(error))
        assert difference(one.rows(), other.rows(), floats=True) is None
        found = queries.compiled(queries_schema(events), StringPool(), exact=False, together=True, settled=True)
        several += len(found.classes[0].bands) > 1
    assert several > 2


def queries_schema(events: pa.Table) -> Schema:
    """The columns of a table, as a run reads them."""
    return open_events(events).schema
