"""Runs straight from the stream against the same events in pushes that are too small to be taken so."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from bench.streams import bursts
from hamlet.engine.inside import kernels_of

EVENTS, KEYS = 15_000, 3
ITEMS = "k, COUNT(*), COUNT({v}), SUM({v}.v), AVG({v}.v), MIN({v}.v), MAX({v}.v)"


def written(*items: str) -> str:
    """A workload: each of these for several patterns and windows."""
    return "".join(
        f"RETURN {each.format(v=v)} PATTERN {pattern} GROUP-BY k {window};"
        for each in items
        for pattern, v in (
            ("SEQ(A, B+)", "B"),
            ("(SEQ(A, B+))+", "B"),
            ("SEQ(B, A+, D)", "A"),
            ("SEQ(C, NOT N, B+)", "B"),
        )
        for window in ("WITHIN 1500 s", "WITHIN 900 s SLIDE 300 s")
    )


TEXT = written(ITEMS, "k, COUNT(*), SUM({v}.v)")
SUMS = "RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 900 s SLIDE 100 s"
COUNTS = "RETURN k, COUNT(*) PATTERN (SEQ(A, B+))+ GROUP-BY k WITHIN 700 s"
BACK = "RETURN k, COUNT(*) PATTERN SEQ(A, B+) WHERE PREV(B).v <= B.v GROUP-BY k WITHIN 600 s"


def events(**changed: Any) -> pa.Table:
    """A stream of bursts per key, no two events of one time, a few N among them; Z is of no query."""
    random = np.random.default_rng(1)
    keys = random.integers(0, KEYS, EVENTS)
    codes = np.empty(EVENTS, np.int64)
    for key in range(KEYS):
        places = np.nonzero(keys == key)[0]
        codes[places] = bursts(random, len(places), 5)
    columns = {
        "time": np.arange(EVENTS),
        "type": np.where(random.random(EVENTS) < 0.01, "N", np.array(list("ABDCZ"))[codes]),
        "k": keys,
        "v": random.integers(-100, 100, EVENTS),
    }
    return pa.table(columns | changed)


def compare(text: str, table: pa.Table, by_key_runs: bool = True, **options: Any) -> None:
    workload = hamlet.Workload.parse(text)
    whole, parts = (hamlet.Engine(workload, **options) for _ in range(2))
    found = whole.push(table)
    assert all(kernel.by_key_runs == by_key_runs for kernel in kernels_of(whole))
    found += whole.close()
    expected: list[dict[str, Any]] = []
    for start in range(0, len(table), 900):
        expected += parts.push(table.slice(start, 900))
        assert not any(kernel.by_key_runs for kernel in kernels_of(parts))
    expected += parts.close()
    names = {name: place for place, name in enumerate(workload.names)}
    read = hamlet.run(workload, table, **options).rows()  # knows whether two events have one time
    for rows in (found, expected, read):
        rows.sort(key=lambda row: (names[row["query"]], row["window_start"], row["k"]))
    assert len(found) == len(expected) == len(read) > 3
    for row, other in zip(found + read, expected + expected, strict=True):
        assert list(row) == list(other)
        for name, value in row.items():
            if options.get("numbers") != "float" or value is None or isinstance(value, str):
                assert value == other[name], (name, row, other)
            else:
                near = math.isclose(value, other[name], rel_tol=1e-9, abs_tol=1e-6 * float(row["count"]))
                assert near or not name.startswith(("count", "sum", "avg")), (name, row, other)


@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize("text", [TEXT, SUMS, COUNTS, BACK])
@pytest.mark.parametrize("threads", [1, 2])
def test_runs_give_what_events_give(numbers: str, text: str, threads: int) -> None:
    """Types of no query among them, classes that cannot stand together, and windows that overlap."""
    compare(text, events(), text != BACK, numbers=numbers, threads=threads)


@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_times_that_come_again_for_another_key(numbers: str) -> None:
    keys = np.arange(EVENTS) % KEYS
    types = np.array(list("ABDC"))[np.arange(EVENTS) // (30 * KEYS) % 4]
    compare(SUMS, events(time=np.arange(EVENTS) // KEYS, k=keys, type=types), numbers=numbers)


@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_times_that_come_again_for_one_key(numbers: str) -> None:
    compare(SUMS, events(time=np.arange(EVENTS) // 3), False, numbers=numbers)


@pytest.mark.parametrize(("bits", "by_key_runs"), [(30, True), (40, True), (51, True), (62, False)])
@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_values_of_any_size(bits: int, by_key_runs: bool, numbers: str) -> None:
    values = np.random.default_rng(2).integers(-(1 << bits), 1 << bits, EVENTS)
    compare(SUMS, events(v=values), by_key_runs, numbers=numbers)


def test_what_is_no_integer_or_missing_is_taken_event_by_event() -> None:
    compare(SUMS, events(v=np.arange(EVENTS) / 8), False, numbers="float")
    compare(SUMS, events(v=pa.array([None, *range(EVENTS - 1)])), False)


def test_bursts_longer_than_the_longest() -> None:
    types = np.where(np.arange(EVENTS) % 4_000 < 10, "A", "B")
    compare(SUMS, events(type=types, k=np.zeros(EVENTS, np.int64)), numbers="float")
    compare(COUNTS, events(type=types, k=np.zeros(EVENTS, np.int64)))


@pytest.mark.parametrize("keys", [2, 64, 65])
def test_bursts_longer_than_the_longest_of_several_keys(keys: int) -> None:
    places = np.arange(EVENTS)
    types = np.where((places + 500 * (places % 2)) % 5_000 < 100, "A", "B")
    few = np.where(places % 20 < 18, places % 2, places // 20 % keys)
    for text in (SUMS, COUNTS):
        compare(text, events(type=types, k=few), numbers="float")
        compare(text, events(type=np.where(places % 5_000 == 70, "Z", types), k=few))


@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_all_events_of_one_key(numbers: str) -> None:
    """Bursts are longer than the longest, and values negative; events of one time are no burst."""
    text = (
        "RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 5000 s;"
        "RETURN k, COUNT(*) PATTERN SEQ(B, A+) GROUP-BY k WITHIN 2500 s SLIDE 1250 s;"
    )
    types = np.where(np.arange(EVENTS) % 4_000 < 10, "A", "B")
    one = {"type": types, "k": np.full(EVENTS, 7)}
    compare(text, events(**one), numbers=numbers)
    compare(COUNTS, events(**one), numbers=numbers)
    compare(COUNTS, events(time=np.arange(EVENTS) // 2, **one), False, numbers=numbers)


def test_short_bursts_are_taken_event_by_event_and_tried_rarely() -> None:
    """A batch that is tried again after others were not is taken as runs once they are long."""
    short = events(type=np.array(list("AB"))[np.arange(EVENTS) // KEYS % 2], k=np.arange(EVENTS) % KEYS)
    compare(SUMS, short, False)
    engine, start, seen = hamlet.Engine(hamlet.Workload.parse(SUMS)), 0, []
    for table in [short] * 4 + [events()] * 4:
        engine.push(table.set_column(0, "time", pa.array(np.arange(EVENTS) + start)))
        seen.append(kernels_of(engine)[0].by_key_runs)
        start += EVENTS
    assert seen == [False] * 6 + [True] * 2


PIECE = 3_000
FEW = 100  # events of which some are changed
AT = slice(2 * PIECE + 500, 2 * PIECE + 500 + FEW)  # in the third piece


def rows_of_pieces(text: str, table: pa.Table, words: bool, **options: Any) -> tuple[list[dict[str, Any]], list[bool]]:
    """The rows of a stream in pieces, and for each of them whether the kernel would have its numbers as bytes."""
    engine, rows, seen = hamlet.Engine(hamlet.Workload.parse(text), **options), [], []
    for start in range(0, len(table), PIECE):
        rows += engine.push(table.slice(start, PIECE))
        (kernel,) = kernels_of(engine)
        seen.append(kernel.reads_bytes(PIECE, min(63, engine.stats["partitions"])))
        if words:
            runner = engine.executor.runner(0)
            runner._in_bytes = lambda *_: None  # type: ignore[method-assign]
    return rows + engine.close(), seen


def close(row: dict[str, Any]) -> dict[str, Any]:
    """A row as it is but for roundings: words may become event maps, which add in another order."""
    return {name: pytest.approx(x, rel=1e-12, abs=1e-9) if isinstance(x, float) else x for name, x in row.items()}


def changed(name: str, values: Any) -> dict[str, Any]:
    """A column of `events` with some values in the third piece."""
    column = events()[name].to_numpy(zero_copy_only=False).copy()
    column[AT] = values
    return {name: column}


@pytest.mark.parametrize("numbers", ["exact", "float"])
@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        SUMS,
        COUNTS,
        COUNTS.replace("GROUP-BY k", "").replace("k, ", ""),
        written("k, COUNT(*), SUM({v}.v)"),
        written("k, COUNT(*)"),
    ],
)
@pytest.mark.parametrize(
    ("columns", "fits"),
    [
        ({}, True),
        ({"k": np.arange(EVENTS) // 9 % 50}, True),
        ({"k": pa.array((np.arange(EVENTS) // 30 % 40).astype("datetime64[s]"))}, True),
        ({"k": np.array([f"key {k % 5}" for k in range(EVENTS)])}, True),
        ({"type": np.where(np.arange(EVENTS) % 7 < 6, "Z", "B")}, True),
        ({"type": np.where(np.arange(EVENTS) % 50 < 49, "Z", np.where(np.arange(EVENTS) % 9, "B", "A"))}, True),
        (changed("k", 30), True),
        (changed("k", np.arange(FEW) + 10), True),
        (changed("type", "Z"), True),
        (changed("v", 1 << 50), False),
        (changed("v", -(1 << 50)), False),
        (changed("time", AT.start + np.arange(FEW) // 2), False),
    ],
)
def test_numbers_of_few_keys_come_as_bytes(text: str, columns: dict[str, Any], fits: bool, numbers: str) -> None:
    """New keys, many of them, none of the classes, values and times that do not fit: each gives what words give."""
    table = events(**columns)
    rows, seen = rows_of_pieces(text, table, False, numbers=numbers)
    expected, _ = rows_of_pieces(text, table, True, numbers=numbers)
    assert rows == (expected if numbers == "exact" else [close(row) for row in expected])
    assert fits or text != SUMS or not seen[-1]


def test_numbers_are_bytes_until_keys_are_many() -> None:
    table = events(k=np.arange(EVENTS) // 30 % KEYS + 20 * (np.arange(EVENTS) // PIECE))
    many = events(k=np.arange(EVENTS) // 30 % 70)
    for each in (table, many):
        rows, _ = rows_of_pieces(SUMS, each, False, numbers="float")
        assert rows == rows_of_pieces(SUMS, each, True, numbers="float")[0]
