"""Rows that are put in order here stand as the host puts them: types, NULL, directions, ties, shifted columns."""

from __future__ import annotations

import datetime
import itertools
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hamlet
from hamlet.patterns.match import ordered as ordered_module
from hamlet.patterns.match.host import Host, quoted
from hamlet.patterns.match.ordered import order_rows
from hamlet.patterns.match.sorting import codes_of, moved

DAY = datetime.date(2024, 2, 28)
NOON = datetime.datetime(2024, 2, 28, 12, 0, 0, 1)
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tiny": (pa.int8(), [-128, 127, 0, 1]),
    "small": (pa.uint16(), [0, 65535, 3]),
    "whole": (pa.int64(), [-(2**63), 2**63 - 1, 0, 1, 2]),
    "near": (pa.int64(), [70_000, 70_001, -5]),
    "flag": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [DAY, DAY + datetime.timedelta(2), datetime.date(1969, 12, 31)]),
    "at": (pa.timestamp("us"), [NOON, NOON + datetime.timedelta(microseconds=1), datetime.datetime(1900, 1, 1)]),
    "zoned": (pa.timestamp("us", "UTC"), [NOON.replace(tzinfo=datetime.UTC)]),
    "name": (pa.string(), ["", "a", "ä", "Z", "a b", "\U0001f600", "z"]),
    "large": (pa.large_string(), ["x", "xy", "é"]),
    "price": (pa.float64(), [0.5, float("nan"), -0.0]),
    "money": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-2.25")]),
}
SORTED = [name for name in TYPES if name not in ("price", "money")]


def table_of(dice: random.Random, rows: int) -> pa.Table:
    columns = {}
    for name, (kind, values) in TYPES.items():
        chosen = [None if dice.random() < 0.2 else dice.choice(values) for _ in range(rows)]
        columns[name] = pa.array(chosen, kind)
    return pa.table({**columns, "id": pa.array(range(rows), pa.int64())})


def rows_by(host: Host, keys: list[str], order: list[tuple[str, bool, bool]]) -> tuple[Any, Any, bool]:
    found = order_rows(host, "SELECT * FROM t", "o", keys, order)
    moves = [f"{found.shifted(quoted(name), step)}" for name in (*TYPES, "id") for step in (-2, -1, 1, 3)]
    shown = ", ".join(f"{text} AS c{place}" for place, text in enumerate(moves))
    rows = host.arrow(f"SELECT id, {shown} FROM {found.table} ORDER BY {found.row}")
    parts = [sorted(part) for part in np.split(rows["id"].to_numpy(), found.borders[1:-1])]
    return [repr(row) for row in rows.to_pylist()], parts, found.given is not None


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(25))
def test_rows_stand_as_the_host_puts_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    table = table_of(dice, dice.choice((1, 2, 50, 300)))
    keys = dice.sample(SORTED, dice.choice((0, 1, 1, 2)))
    keys = [dice.choice((quoted(each), quoted(each.upper()), f"({quoted(each)})")) for each in keys]
    order = [
        (quoted(each), dice.random() < 0.4, dice.random() < 0.4) for each in dice.sample(SORTED, dice.choice((0, 1, 2)))
    ]
    host = Host({"t": table})
    here, parts, own = rows_by(host, keys, order)
    assert own
    monkeypatch.setattr(ordered_module, "_MOST_BYTES", -1)
    there, expected, own = rows_by(host, keys, order)
    assert not own
    assert here == there, f"{keys} {order}"
    assert parts == expected


def test_many_partitions_and_digits() -> None:
    """More partitions than a digit has values, and times of several digits that are in no order."""
    dice = np.random.default_rng(1)
    rows = 200_000
    table = pa.table({"k": dice.integers(0, 90_000, rows), "t": dice.integers(0, 2**40, rows)})
    found = order_rows(Host({"t": table}), "SELECT * FROM t", "o", ["k"], [("t", False, False)])
    assert found.given is not None
    place = np.lexsort((table["t"].to_numpy(), table["k"].to_numpy()))
    assert (found.given["t"].to_numpy() == table["t"].to_numpy()[place]).all()
    assert len(found.borders) == len(np.unique(table["k"].to_numpy())) + 1


def test_floats_and_nested_values_are_the_hosts() -> None:
    for values in (pa.array([0.5, 1.0]), pa.array([[1], [2]]), pa.array([{"x": 1}, {"x": 2}])):
        table = pa.table({"k": values, "t": [2, 1]})
        clause = "PARTITION BY k ORDER BY t MEASURES LAST(t) AS l PATTERN (a+) DEFINE a AS true"
        found = hamlet.sql(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", {"t": table}).rows()
        assert sorted(row["l"] for row in found) == [1, 2]
    assert codes_of(pa.array([0.5])) is None


@pytest.mark.parametrize("step", [-3, -1, 1, 2, 9])
def test_moved_columns(step: int) -> None:
    borders = np.array([0, 1, 4, 9], np.int64)
    for values in (pa.array([1, None, 3, 4, 5, None, 7, 8, 9]), pa.array(list("abcd") + [None] * 4 + ["z"])):
        found = moved(values, step, borders).to_pylist()
        for first, end in itertools.pairwise(borders):
            for row in range(first, end):
                assert found[row] == (values[row + step].as_py() if first <= row + step < end else None)
