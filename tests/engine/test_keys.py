"""Partitions come and go: their numbers are given anew, and neither memory nor rows show that others were before."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.engine.group_order import sort_key
from hamlet.engine.inside import groups_of
from hamlet.engine.keys import KeyIndex
from hamlet.kernel.keys import KeyTable
from hamlet.kernel.radix_sort import ascending, ascent, in_bytes, looked_up, sifted
from tests.checkpoint.test_saving import again

COUNT = hamlet.Workload.parse("RETURN k, COUNT(*), SUM(A.v) PATTERN A+ GROUP-BY k WITHIN 10 s")
Rows = list[dict[str, Any]]


def batch(keys: Any, first_time: int = 0, per_second: int = 1000) -> dict[str, Any]:
    """An event of type A for each key."""
    places = np.arange(len(keys))
    return {"time": first_time + places // per_second, "type": np.full(len(keys), "A"), "k": keys, "v": places}


# ------------------------------------------------------------------------------------------------- the hash table


def test_a_key_table_is_a_dict() -> None:
    """Random keys of two columns with NULL, some forgotten now and then, against a dict of what is known."""
    draw = random.Random(3)
    table, known = KeyTable(2), dict[tuple[int | None, int | None], int]()
    for _ in range(60):
        keys = [
            tuple(draw.choice((None, draw.randrange(-40, 40), draw.randrange(-(2**63), 2**63))) for _ in range(2))
            for _ in range(draw.randrange(1, 60))
        ]
        columns = [
            (
                np.array([key[i] or 0 for key in keys], np.int64),
                np.array([key[i] is not None for key in keys], np.uint8),
            )
            for i in range(2)
        ]
        numbers = table.encode(columns, None, len(keys)).tolist()
        for key, number in zip(keys, numbers, strict=True):
            assert known.setdefault(key, number) == number  # type: ignore[arg-type]
        assert len(set(known.values())) == len(known) == table.count
        assert sorted(known.values()) == table.numbers().tolist()
        alive = {key: number for key, number in known.items() if draw.random() < 0.5}
        if draw.random() < 0.3:
            live = np.zeros(table.size, np.uint8)
            live[list(alive.values())] = 1
            table.forget(live)
            known = alive
    codes, valid = table.codes(0, np.array(list(known.values()), np.int64))
    assert [code if there else None for code, there in zip(codes.tolist(), valid.tolist(), strict=True)] == [
        key[0] for key in known
    ]
    assert table.size < 2 * max(60, len(known)) + 60 < table.created


@pytest.mark.parametrize("type", [np.int32, np.int64])
@pytest.mark.parametrize(
    "codes",
    [
        lambda draw: draw.randrange(-9, 9),
        lambda draw: draw.randrange(-50, 50),
        lambda draw: draw.randrange(-50, 50) * 10**8,
        lambda draw: draw.choice((-(2**31), 2**31 - 1)) + draw.choice((0, 1, -1)) * draw.randrange(3),
        lambda draw: draw.randrange(draw.randrange(1, 10**6)),
    ],
    ids=["few", "near", "far", "edges", "mixed"],
)
def test_a_table_of_one_column_is_a_dict(codes: Any, type: Any) -> None:
    """Codes that lie close together, or do not, or first do and then do not; some rows not chosen."""
    draw = random.Random(5)
    table, known = KeyTable(1), dict[int, int]()
    for _ in range(80):
        keys = np.clip([codes(draw) for _ in range(draw.choice((1, 60, 3000)))], -(2**31), 2**31 - 1).astype(type)
        rows = np.nonzero(np.array([draw.random() < 0.5 for _ in keys]))[0] if draw.random() < 0.5 else None
        numbers = table.encode([(keys, None)], None if rows is None else rows.astype(np.int32), len(keys)).tolist()
        for key, number in zip((keys if rows is None else keys[rows]).tolist(), numbers, strict=True):
            assert known.setdefault(key, number) == number
        assert len(set(known.values())) == len(known) == table.count
        if draw.random() < 0.2:
            alive = {key: number for key, number in known.items() if draw.random() < 0.5}
            live = np.zeros(table.size, np.uint8)
            live[list(alive.values())] = 1
            table.forget(live)
            known = alive
    assert table.nbytes < 150 * (table.size + 1) + 40_000


def test_the_widest_codes_are_told_apart() -> None:
    table, edges = KeyTable(1), [2**63 - 1, -(2**63), 0, 2**63 - 2, -(2**63) + 1]
    assert table.encode([(np.array(edges * 2), None)], None, 10).tolist() == [0, 1, 2, 3, 4] * 2
    for edge in (2**63 - 1, -(2**63)):
        alone = KeyTable(1)
        assert alone.encode([(np.array([edge, edge, 0, edge]), None)], None, 4).tolist() == [0, 0, 1, 0]


def test_only_chosen_rows_get_a_number() -> None:
    rows = np.array([1, 3], np.int32)
    for valid in (None, np.ones(4, np.uint8)):
        table = KeyTable(1)
        assert table.encode([(np.arange(4), valid)], rows, 4).tolist() == [0, 1]
        assert table.count == 2


@pytest.mark.parametrize("type", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("size", [1, 5, 16, 17, 32, 33, 100])
def test_events_are_sifted_by_a_table(type: Any, size: int) -> None:
    random = np.random.default_rng(size)
    table = random.integers(-1, 4, size).astype(np.int32)
    for rows in (0, 1, 15, 16, 17, 256, 1000):
        codes = random.integers(-1, min(size + 2, 127), rows).astype(type)
        expected = [int(table[code]) if 0 <= code < size else int(table[-1]) for code in codes.tolist()]
        assert looked_up(codes, table).tolist() == expected
        found, chosen = sifted(codes, table)
        assert found.tolist() == expected
        rest = [row for row, kind in enumerate(expected) if kind >= 0]
        assert (chosen is None) == (len(rest) == rows)
        assert chosen is None or chosen.tolist() == rest
        small, count = in_bytes(codes, table)
        assert small.dtype == np.int8
        assert (small.tolist(), count) == (expected, len(rest))


@pytest.mark.parametrize("kind", [3, 127, 128, 100_000])
@pytest.mark.parametrize("place", [None, 0, 31, 32, 300, 998, 999])
def test_rows_are_listed_from_the_first_one_without_a_class(kind: int, place: int | None) -> None:
    codes = np.random.default_rng(kind).integers(0, 5, 1000).astype(np.int8)
    if place is not None:
        codes[place] = 7
    table = np.array([0, kind, 2, 0, 1, -1], np.int32)
    found, chosen = sifted(codes, table)
    assert found.tolist() == [int(table[min(code, 5)]) for code in codes.tolist()]
    assert (chosen is None) == (place is None)
    assert chosen is None or chosen.tolist() == [row for row in range(1000) if row != place]


@pytest.mark.parametrize(
    ("type", "least"),
    [(np.int32, least) for least in (0, -5, 2**31 - 14, -(2**31))]
    + [(np.int64, least) for least in (0, -5, 2**31 - 5, 2**40, 2**63 - 14, -(2**63))],
)
def test_a_few_codes_that_lie_close_together(type: Any, least: int) -> None:
    random = np.random.default_rng(1)
    table, known = KeyTable(1), dict[int, int]()
    for rows in (3, 1000, 1055, 5000):
        for kinds in (4, 13):
            codes = least + random.integers(0, kinds, rows)
            if rows == 1055:  # one from far away, in the last step or not, is what it is
                codes[rows // 2 if kinds == 4 else -1] = np.iinfo(type).max if least < 0 else np.iinfo(type).min
            expected = [known.setdefault(code, len(known)) for code in codes.tolist()]
            assert table.encode([(codes.astype(type), None)], None, rows).tolist() == expected


@pytest.mark.parametrize("kinds", [4, 13, 90])
@pytest.mark.parametrize("least", [0, -7, 2**31 - 90, -(2**31), 2**62])
@pytest.mark.parametrize("type", [np.int32, np.int64])
def test_a_few_numbers_as_bytes(type: Any, least: int, kinds: int) -> None:
    if not np.iinfo(type).min <= least <= np.iinfo(type).max - kinds:
        return
    random = np.random.default_rng(kinds)
    table = KeyTable(1)
    for rows in (300, 1055, 5000):
        codes = (least + random.integers(0, kinds, rows)).astype(type)
        numbers = table.encode([(codes, None)], None, rows)
        classes = random.integers(-1, 3, rows).astype(np.int8)
        matched = int((classes >= 0).sum())
        expected = np.where(classes < 0, -1, numbers)
        assert table.in_bytes(codes, classes, matched).tolist() == expected.tolist()
        place = int(np.nonzero(classes >= 0)[0][-1])
        codes[place] = least + kinds if least < 0 else least - 1  # is not known
        assert table.in_bytes(codes, classes, matched) is None
        classes[place] = -1
        assert table.in_bytes(codes, classes, matched - 1) is not None
    table.encode([(np.arange(300, dtype=type), None)], None, 300)
    assert table.in_bytes(np.arange(300, dtype=type), np.zeros(300, np.int8), 300) is None


def test_classes_beyond_a_byte() -> None:
    codes = np.zeros(3, np.int8)
    assert in_bytes(codes, np.array([128], np.int32)) == (None, 0)
    assert in_bytes(codes, np.array([127], np.int32))[0].tolist() == [127] * 3


def test_numbers_beyond_a_byte_of_codes_that_lie_close_together() -> None:
    table = KeyTable(1)
    table.encode([(np.arange(0, 2000, dtype=np.int32), None)], None, 2000)
    live = np.zeros(2000, np.uint8)
    live[1990:] = 1
    table.forget(live)
    codes = np.tile(np.arange(1990, 2000, dtype=np.int32), 100)
    assert table.encode([(codes, None)], None, 1000).tolist() == codes.tolist()


@pytest.mark.parametrize("rows", [0, 1, 2, 9, 64, 300])
def test_one_exchange_is_seen(rows: int) -> None:
    random = np.random.default_rng(rows)
    ordered = sorted(random.integers(-3, 3, (rows, 2)).tolist())
    for place in range(max(rows, 1)):  # the first exchanges nothing
        pairs = list(ordered)
        pairs[max(place - 1, 0) : place + 1] = reversed(pairs[max(place - 1, 0) : place + 1])
        numbers, seconds = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
        assert ascending(numbers) == (numbers.tolist() == sorted(numbers.tolist()))
        assert ascending(numbers, seconds) == (pairs == ordered)


@pytest.mark.parametrize("place", [1, 2, 4095, 4096, 4097, 8192, 9999])
def test_numbers_that_all_differ(place: int) -> None:
    numbers = np.arange(10_000)
    assert ascent(numbers) == ascent(numbers[:1]) == ascent(numbers[:0]) == 2
    numbers[place] -= 1
    assert ascent(numbers) == 1
    numbers[place - 1] += 1
    assert ascent(numbers) == 0


def test_values_that_are_no_integers() -> None:
    """A column of integers turns into doubles, then NULL comes: equal values stay one partition."""
    index = KeyIndex(["k"])
    first = index.encode(pa.record_batch({"k": pa.array([2**62 + 1, 1, None], pa.int64())}))
    second = index.encode(pa.record_batch({"k": pa.array([1.0, 2.5, None, float("nan"), -0.0, 0.0])}))
    assert first.tolist() == [0, 1, 2]
    assert second.tolist() == [1, 3, 2, 2, 4, 4]
    assert list(index.keys.values()) == [(2**62 + 1,), (1,), (None,), (2.5,), (0.0,)]
    index.forget(np.array([0, 1, 0, 0, 1], np.uint8))
    assert index.encode(pa.record_batch({"k": ["new", "newer", "newest"]})).tolist() == [0, 2, 3]
    assert index.keys[1] == (1,)
    assert index.tuples(np.array([3, 4, 0])) == [("newest",), (0.0,), ("new",)]


# ------------------------------------------------------------------------------------------------------ streams


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", [False, True], ids=["integers", "strings"])
@pytest.mark.parametrize("threads", [1, 2])
def test_ever_new_keys_take_no_more_memory(text: bool, threads: int) -> None:
    """Each key lives for some 10 s: what is known of keys, and a save, do not grow with the stream."""
    engine = hamlet.Engine(COUNT, threads=threads)
    sizes, found = [], 0
    for number in range(12):
        keys = np.arange(20_000 * number, 20_000 * (number + 1))
        rows = engine.push(batch(keys.astype(str) if text else keys, 20 * number))
        found += len(rows)
        assert len({row["k"] for row in rows}) == len(rows)
        sizes.append(len(engine.save()))
    found += len(engine.close())
    assert found == 12 * 20_000
    assert max(sizes[6:]) < 1.2 * max(sizes[:6])
    assert engine.stats["partitions"] == 12 * 20_000


def test_rows_are_those_of_an_engine_that_forgets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that come back after they were forgotten, two attributes, groups of several partitions, a save between."""
    text = """RETURN s, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WHERE [k] GROUP-BY s WITHIN 10 s SLIDE 5 s;
              RETURN k, s, COUNT(*), MAX(A.v) PATTERN SEQ(A+, NOT B, A) GROUP-BY k, s WITHIN 7 s"""
    workload = hamlet.Workload.parse(text)
    draw = np.random.default_rng(8)
    times = np.sort(draw.integers(0, 2000, 6000))
    events = {
        "time": times,
        "type": draw.choice(["A", "B"], 6000),
        "k": draw.integers(0, 4, 6000) + times // 100 % 7 * 10,
        "s": draw.choice(["x", "y", "z"], 6000),
        "v": draw.integers(0, 9, 6000),
    }
    expected = hamlet.run(workload, events).rows()
    monkeypatch.setattr("hamlet.engine.keys._FEW", 20)
    engine = hamlet.Engine(workload)
    rows: Rows = []
    for start in range(0, 6000, 250):
        rows += engine.push({name: column[start : start + 250] for name, column in events.items()})
        if start % 1000 == 0:
            engine = again(engine, workload)
    rows += engine.close()
    assert groups_of(engine) < 100  # of 84 at a time
    assert engine.stats["partitions"] > 100
    for query in workload.names:
        assert [row for row in rows if row["query"] == query] == [row for row in expected if row["query"] == query]
    assert hamlet.run(workload, events).rows() == expected
    assert hamlet.run(workload, events, threads=3).rows() == expected


def test_groups_come_in_order_with_null_first() -> None:
    """Groups are ordered by value, NULL first, for integers, strings and doubles, and one attribute after the other."""
    workload = hamlet.Workload.parse("RETURN a, b, COUNT(*) PATTERN X+ GROUP-BY a, b WITHIN 10 s")
    draw = random.Random(5)
    kinds: list[list[Any]] = [
        [None, *range(-500, 500)],
        [None, *map(str, range(99))],
        [None, "", "\N{GRINNING FACE}", "z", "\uffee"],
        [0.5, None, -1],
    ]
    for values in kinds:
        for rows in (30, 2000):
            stream = [
                {"time": i // (rows // 30), "type": "X", "a": draw.choice(values), "b": draw.choice((None, 2, 1))}
                for i in range(rows)
            ]
            engine = hamlet.Engine(workload)
            pushed = engine.push(stream) + engine.close()
            order = [(row["window_start"], *sort_key((row["a"], row["b"]))) for row in pushed]
            assert order == sorted(order)
            assert hamlet.run(workload, stream).rows() == pushed


def test_durations_that_python_cannot_hold_are_in_order() -> None:
    """numpy's durations, of nanoseconds and of millions of years, stand among Python's."""
    for unit, ticks in (("ns", [7, -1, 5000, None, 3, 1000]), ("s", [2**60, 5, None, 2**61, -(2**60), 2**40])):
        keys = pa.array(ticks, pa.duration(unit))
        stream = pa.table({"time": [0] * 6, "type": ["X"] * 6, "k": keys})
        for group in ("k", "LAST(X.k)"):
            text = f"RETURN {group} AS k, COUNT(*) PATTERN X GROUP-BY {group} WITHIN 10 s"
            found = hamlet.run(hamlet.Workload.parse(text), stream).table("q1")["k"]
            ordered = sorted(tick for tick in ticks if tick is not None)
            assert found.combine_chunks().cast(pa.int64()).to_pylist() == [None, *ordered]
