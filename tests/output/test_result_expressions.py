"""Result expressions, HAVING and TOP: exact whatever the size of the numbers, and the same by columns and by rows."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import hamlet
from hamlet import oracle
from hamlet.language.parser import parse
from hamlet.output.expressions import selection
from hamlet.output.expressions.vectors import Inexact
from tests.compare_random import compare, features_of
from tests.comparison import difference, rows_of
from tests.effort import share_of
from tests.strategies import random_case


def value(expression: str, *values: Any, **options: Any) -> Any:
    """What an expression over A events with these values of v gives."""
    events = [{"time": time, "type": "A", "v": each} for time, each in enumerate(values)]
    (row,) = rows_of(f"RETURN {expression} AS x PATTERN A WITHIN 1000 s", events, **options)
    return row["x"]


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("SUM(A.v) * SUM(A.v) * SUM(A.v)", [2**62, 2**62], 2**189),
        ("SUM(A.v) - 1", [-(2**63)], -(2**63) - 1),
        ("-SUM(A.v)", [-(2**63)], 2**63),
        ("-7 % COUNT(*)", [0, 0, 0], -1),
        ("7 % -COUNT(*)", [0, 0, 0], 1),
        ("COUNT(*) % 0", [0], None),
        ("COUNT(*) / 0", [0], None),
        ("SUM(A.v) + 1", [None], None),
        ("COUNT(*) / 3", [0], 1 / 3),
        ("(SUM(A.v) * 3) / SUM(A.v)", [2**62 + 1, 2**62], 3.0),
        ("SUM(A.v) / 9007199254740993", [2**62 + 1], (2**62 + 1) / 9007199254740993),
        ("SUM(A.v) + 0.5", [2**53 + 1], 9007199254740994.0),
        ("MAX(A.v) * 0.1", [3], 3 * 0.1),
        ("LOG2(COUNT(*) - 1)", [0], None),
        ("LOG2(SUM(A.v) * SUM(A.v))", [2**62], 124.0),
    ],
)
def test_exact_values(expression: str, values: list[Any], expected: Any) -> None:
    got = value(expression, *values)
    assert got == expected
    assert type(got) is type(expected)


def test_a_quotient_beyond_doubles_is_a_decimal() -> None:
    got = value("SUM(A.v) * SUM(A.v) * SUM(A.v) * SUM(A.v) * SUM(A.v) * SUM(A.v) / 0.5", *[2**62] * 2**9)
    assert got == 2 * (2**71) ** 6  # a double
    events = [{"time": time, "type": "A"} for time in range(1100)]
    (row,) = rows_of("RETURN COUNT(*) / 2 AS x PATTERN A+ WITHIN 2000 s", events)
    assert isinstance(row["x"], Decimal)
    assert math.isclose(row["x"] / Decimal(2) ** 1099, 1)


def inexact(*_: Any) -> Any:
    raise Inexact


def test_by_rows_as_by_columns() -> None:
    """Wherever columns do, single values give the same."""
    for seed in range(40):
        text, events, options = random_case(seed, features_of("expressions,having,top"))
        by_columns = rows_of(text, events, **options)
        with mock.patch.object(selection, "evaluated", inexact), mock.patch.object(selection, "truths", inexact):
            assert rows_of(text, events, **options) == by_columns, seed


def in_three_ways(text: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, which the oracle and single values confirm."""
    rows = rows_of(text, events)
    assert difference(rows, oracle.evaluate(parse(text), events)) is None
    with mock.patch.object(selection, "evaluated", inexact), mock.patch.object(selection, "truths", inexact):
        assert rows_of(text, events) == rows
    return rows


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MAX(A.v) + 1", math.inf),
        ("MAX(A.v) + MIN(A.v)", None),
        ("1 - MAX(A.v)", -math.inf),
        ("MAX(A.v) - MAX(A.v)", None),
        ("MIN(A.v) * -2", math.inf),
        ("MAX(A.v) * 0", None),
        ("1 / MAX(A.v)", 0.0),
        ("MAX(A.v) / MIN(A.v)", None),
        ("MAX(A.v) / 0", None),
        ("LOG2(-MAX(A.v))", None),
        ("LOG2(MAX(A.v))", math.inf),
    ],
)
def test_infinite_doubles_in_expressions(expression: str, expected: float | None) -> None:
    events = [{"time": time, "type": "A", "v": each} for time, each in enumerate([math.inf, -math.inf, 1.0])]
    [row] = in_three_ways(f"RETURN {expression} AS x PATTERN A WITHIN 10 s", events)
    assert row["x"] == expected


def test_remainders_where_counts_are_doubles() -> None:
    text, events = (
        "RETURN COUNT(*) % {} AS x PATTERN A+ WITHIN 10 s",
        [{"time": time, "type": "A"} for time in range(7)],
    )
    for divisor, rest in (("10", 7), ("-10", 7), ("0", None)):
        [row] = rows_of(text.format(divisor), events, numbers="float")
        assert row["x"] == rest
        with mock.patch.object(selection, "evaluated", inexact):
            assert rows_of(text.format(divisor), events, numbers="float") == [row]


@pytest.mark.parametrize(
    ("having", "kept"),
    [
        ("SUM(A.v) IS NULL", ["z"]),
        ("SUM(A.v) IS NOT NULL", ["x", "y"]),
        ("SUM(A.v) BETWEEN 2 AND 4", ["y"]),
        ("SUM(A.v) NOT BETWEEN 2 AND 4", ["x"]),
        ("SUM(A.v) IN (1, 7)", ["x"]),
        ("SUM(A.v) NOT IN (1, 7)", ["y"]),
        ("NOT (SUM(A.v) = 1 OR COUNT(*) = 1)", ["y"]),
        ("SUM(A.v) > 1 OR COUNT(*) = 1", ["x", "y", "z"]),
        ("g IN ('x', 'z') AND SUM(A.v) < 5", ["x"]),
        ("-SUM(A.v) <= -3", ["y"]),
    ],
)
def test_conditions_with_null(having: str, kept: list[str]) -> None:
    """A sum over nothing is NULL, and what compares it is not true, nor is its opposite."""
    told = [("x", 1), ("y", 1), ("y", 2), ("z", None)]
    events = [{"time": time, "type": "A", "g": g, "v": v} for time, (g, v) in enumerate(told)]
    text = f"RETURN g, COUNT(*) PATTERN A GROUP-BY g HAVING {having} WITHIN 10 s"
    assert [row["g"] for row in in_three_ways(text, events)] == kept


@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_conditions_on_numbers_beyond_64_bits(numbers: str) -> None:
    source = random.Random(3)
    events = [
        {"time": time, "type": "A", "g": source.randint(0, 9), "v": source.choice([2**62, -(2**60), 5, None])}
        for time in range(700)
    ]
    text = "RETURN g, COUNT(*), SUM(A.v) PATTERN A+ GROUP-BY g {} WITHIN {} s"
    for width in (100_000, 100):
        rows = rows_of(text.format("", width), events, numbers=numbers)
        most = min(int(sorted(row["count"] for row in rows)[len(rows) // 2]), 2**62)
        for having, passes in (
            (f"COUNT(*) >= {most}", lambda row, most=most: row["count"] >= most),
            ("SUM(A.v) > COUNT(*) * 1000", lambda row: row["sum_A_v"] and row["sum_A_v"] > row["count"] * 1000),
            ("COUNT(*) IN (63, 1, 127)", lambda row: row["count"] in (63, 1, 127)),
            ("COUNT(*) = COUNT(*) AND NOT COUNT(*) <> COUNT(*)", lambda _: True),
        ):
            kept = rows_of(text.format(f"HAVING {having}", width), events, numbers=numbers)
            assert kept == [row for row in rows if passes(row)], having
        best = rows_of(text.format("TOP 3 BY COUNT(*)", width), events, numbers=numbers)
        for start in dict.fromkeys(row["window_start"] for row in rows):
            mine = sorted((row for row in rows if row["window_start"] == start), key=lambda row: -row["count"])[:3]
            assert [row for row in best if row["window_start"] == start] == mine


def test_columns_of_tables_follow_the_count_type() -> None:
    events = [{"time": 0, "type": "A", "v": 3}]
    text = "RETURN COUNT(*) + 1, COUNT(*) / 2, SUM(A.v) * 2 AS twice PATTERN A WITHIN 10 s"
    for count_type, kind in (("string", pa.string()), ("int64", pa.int64()), ("decimal", pa.decimal128(38, 0))):
        table = hamlet.run(hamlet.Workload.parse(text), events, count_type=count_type).table("q1")
        assert [table.schema.field(name).type for name in ("expr", "expr_2", "twice")] == [kind, pa.float64(), kind]


def test_rows_that_having_rejects_are_not_built() -> None:
    table = pa.table({"time": [0] * 5000, "type": ["A"] * 5000, "g": list(range(5000))})
    text = "RETURN g, COUNT(*) PATTERN A GROUP-BY g HAVING g >= 4998 WITHIN 10 s"
    results = hamlet.run(hamlet.Workload.parse(text), table)
    assert sum(len(piece.starts) for piece in results.parts[0].rows.pieces) == 2
    assert [row["g"] for row in results] == [4998, 4999]


@pytest.mark.parametrize("features", ["expressions,having,top", "expressions,having,top,conjunction,broadcast"])
@pytest.mark.parametrize("options", [{}, {"numbers": "float"}, {"threads": 2}], ids=str)
def test_random_workloads(features: str, options: dict[str, Any]) -> None:
    for seed in range(share_of(25)):
        report = compare(random_case(seed, features_of(features)), options, seed)
        assert report is None, f"seed {seed}: {report}"


def test_conditions_name_integers_of_any_size() -> None:
    """What a condition on results compares with may be as large as results are."""
    events = [{"time": time, "type": "A"} for time in range(100)]
    most = 2**100 - 1
    passing = (f"= {most}", f"< {most + 1}", f"> {most - 1}", f"<> {most - 1}", f"< {10**400}", f"IN (1, {most})")
    failing = (f"= {most + 1}", f"> {most}", f"<= {most - 1}", f"NOT BETWEEN {most} AND {most}", f"< -{10**400}")
    for condition in (*passing, *failing):
        rows = rows_of(f"RETURN COUNT(*) PATTERN A+ HAVING COUNT(*) {condition} WITHIN 100 s", events)
        assert [row["count"] for row in rows] == ([most] if condition in passing else []), condition
    text = (
        f"RETURN COUNT(*) - {most - 3} AS d, COUNT(*) % {2**70} AS m PATTERN A+ TOP 1 BY COUNT(*) - {most} WITHIN 100 s"
    )
    (row,) = rows_of(text, events)
    assert (row["d"], row["m"]) == (3, 2**70 - 1)
