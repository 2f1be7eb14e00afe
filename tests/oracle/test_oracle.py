"""The oracle against golden cases, closed formulas and a second, dumber brute force."""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from hamlet import oracle
from hamlet.errors import DataError
from hamlet.language.parser import parse
from hamlet.oracle import search
from tests.case_files import Case, cases, oracle_options
from tests.comparison import difference
from tests.effort import share_of
from tests.oracle.dumb import dumb_trends
from tests.strategies import CORE, DEFAULT, Features, random_case

GOLDEN = cases()


def rows(text: str, events: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    return oracle.evaluate(parse(text), events, **options)


def events(*types: str) -> list[dict[str, Any]]:
    return [{"time": time, "type": type_} for time, type_ in enumerate(types)]


def count(pattern: str, stream: list[dict[str, Any]], where: str = "") -> int:
    found = rows(f"RETURN COUNT(*) PATTERN {pattern} {'WHERE ' * bool(where)}{where} WITHIN 1000 s", stream)
    return found[0]["count"] if found else 0


def values(*given: Any) -> list[dict[str, Any]]:
    return [{"time": time, "type": "A", "v": value} for time, value in enumerate(given)]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case.name)
def test_golden_case(case: Case) -> None:
    got = oracle.evaluate(parse(case.text), case.events, **oracle_options(case.options))
    assert difference(got, case.expected) is None


def test_there_are_golden_cases_for_every_chapter() -> None:
    assert len(GOLDEN) >= 80
    topics = {case.name.split("_")[0] for case in GOLDEN}
    assert topics >= {
        "negation",
        "ties",
        "keys",
        "windows",
        "aggregates",
        "adjacent",
        "local",
        "conjunction",
        "broadcast",
    }


# ------------------------------------------------------------------------------------------- closed formulas


@pytest.mark.parametrize("n", range(1, 9))
def test_closed_formulas(n: int) -> None:
    stream = events(*"A" * n)
    assert count("A+", stream) == 2**n - 1
    assert count("SEQ(A+, A+)", stream) == 2**n - 1 - n
    assert count("SEQ(A x, A+)", stream) == 2**n - 1 - n
    assert count("SEQ(A x+, A y+)", stream) == sum(math.comb(n, k) * (k - 1) for k in range(2, n + 1))
    assert count("(A x OR A y)+", stream) == 3**n - 1
    assert count("SEQ(NOT A n, A+)", stream) == 2 ** (n - 1)
    assert count("(SEQ(A, NOT A n))+", stream) == n  # what ends the stream, without a gap
    assert count("SEQ(A x, NOT A n, A x)", stream) == n - 1
    for k in range(1, 5):
        assert count(f"A{{{k}}}", stream) == math.comb(n, k)
        assert count(f"A{{{k},}}", stream) == sum(math.comb(n, i) for i in range(k, n + 1))


@pytest.mark.parametrize(("a", "b"), [(1, 5), (3, 4), (4, 3)])
def test_closed_formulas_of_two_types(a: int, b: int) -> None:
    stream = events(*"A" * a, *"B" * b)
    assert count("SEQ(A, B+)", stream) == a * (2**b - 1)
    assert count("SEQ(A+, B+)", stream) == (2**a - 1) * (2**b - 1)
    assert count("SEQ(A*, B)", stream) == 2**a * b
    assert count("A AND B", stream) == a * b
    assert count("A+ AND (A OR B)", stream) == sum(
        1
        for one, other in itertools.combinations(range(2**a - 1 + b), 2)
        if one < 2**a - 1 and (other >= 2**a - 1 or one < a)
    )


# ---------------------------------------------------------------------------------------- the dumber brute force


@pytest.mark.parametrize("negation", [False, True], ids=["positive", "negation"])
def test_same_trends_as_subsets_and_regular_expressions(negation: bool) -> None:
    features = replace(CORE, negation=negation, windows=False, order=False)
    compared = 0
    for seed in range(share_of(300)):
        text, stream, _ = random_case(seed, features)
        if text.count("NOT") > 2:
            continue  # the dumb way takes too long
        stream = stream[: 4 if negation else 6]
        (query,) = parse(text).queries
        expected = dumb_trends(query.pattern, [e["type"] for e in stream], [e["time"] for e in stream])
        assert expected is not None, f"seed {seed}: ambiguous guards in {text}"
        assert {trend.pairs for trend in oracle.trends(query, stream)} == expected, f"seed {seed}: {text}"
        compared += bool(expected)
    assert compared > share_of(60)


def test_the_order_of_the_input_does_not_matter() -> None:
    for seed in range(60):
        text, stream, options = random_case(seed, DEFAULT)
        shuffled = random.Random(seed).sample(stream, len(stream))
        expected = oracle.evaluate(parse(text), stream, **oracle_options(options))
        got = oracle.evaluate(parse(text), shuffled, **oracle_options(options))
        assert difference(got, expected) is None, f"seed {seed}"


def test_looking_ahead_in_words_only_saves_time(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [random_case(seed, Features(events=6)) for seed in range(40)]
    expected = [oracle.evaluate(parse(text), stream, **oracle_options(options)) for text, stream, options in drawn]
    monkeypatch.setattr(search, "begins", lambda pattern, word: True)
    got = [oracle.evaluate(parse(text), stream, **oracle_options(options)) for text, stream, options in drawn]
    assert got == expected


# --------------------------------------------------------------------------------------------------- conditions


@pytest.mark.parametrize(
    ("condition", "value", "passes"),
    [
        ("A.v = 3", 3, True),
        ("A.v = 3", 3.0, True),
        ("A.v = 3", "3", False),
        ("A.v <> 3", "3", True),
        ("NOT A.v = 3", "3", True),
        ("A.v < 3", "3", False),
        ("NOT A.v < 3", "3", False),
        ("A.v <> 3", None, False),
        ("A.v IN (1, 'x')", "x", True),
        ("A.v NOT IN (1, A.w)", 2, False),
        ("A.v IN (2, A.w)", 2, True),
        ("A.v BETWEEN 1 AND A.w", 0, False),
        ("A.v NOT BETWEEN 1 AND A.w", 0, True),
        ("A.v BETWEEN 1 AND A.w", 2, False),
        ("A.v NOT BETWEEN 1 AND A.w", 2, False),
        ("A.v = TRUE", True, True),
        ("A.v = 1", True, False),
        ("-A.v % 3 = -1", 7, True),
        ("A.v % -3 = 1", 7, True),
        ("A.v % 2.5 = 2", 7, True),
        ("A.v / 4 = 1.75", 7, True),
        ("A.v % 0 IS NULL", 7, True),
        ("(A.v + A.w) IS NULL", 7, True),
        ("A.v * 1e308 * 1e10 > 1e308", 7.0, True),
        ("(A.v * 1e308 * 1e10 - A.v * 1e308 * 1e10) IS NULL", 7.0, True),
        ("A.v - 2 - 3 = 2", 7, True),
        ("A.v / 7 / 2 = 0.5", 7, True),
    ],
)
def test_condition(condition: str, value: Any, passes: bool) -> None:
    assert count("A", values(value), condition) == passes


@pytest.mark.parametrize(
    "condition", ["A.v + 1 > 0", "A.v * 2 > 0 AND A.v = 1", "A.v - -1 < 0", "-(-A.v - 1) - 2 = 0 OR -A.v - 2 < 0"]
)
def test_overflow_is_an_error(condition: str) -> None:
    with pytest.raises(DataError, match="64 bits"):
        count("A", values(2**63 - 1), condition)


def test_no_overflow_at_the_border() -> None:
    assert count("A", values(2**63 - 1), "A.v + 0 > 0 AND -A.v - 1 < 0") == 1
    assert count("A", values(float(2**63)), "A.v + 1 > 0") == 1


# ------------------------------------------------------------------------------------------------- aggregates


def test_sums_beyond_the_double_range() -> None:
    text = "RETURN SUM(A.v), AVG(A.v), LOG2(SUM(A.v)) PATTERN A+ WITHIN 1000 s"
    (row,) = rows(text, values(1.5e308, 1.5e308))
    assert isinstance(row["sum_A_v"], Decimal)
    assert math.isclose(float(row["sum_A_v"] / Decimal(10) ** 308), 6.0)
    assert row["avg_A_v"] == 1.5e308
    assert math.isclose(row["log2_sum_A_v"], 2 + math.log2(1.5e308))


def test_nothing_is_lost_between_large_and_small() -> None:
    (row,) = rows("RETURN SUM(A.v), AVG(A.v) PATTERN A WITHIN 1000 s", values(1e300, 1.0, -1e300))
    assert row["sum_A_v"] == 1.0
    assert row["avg_A_v"] == 1 / 3


# ----------------------------------------------------------------------------------------------------- trends


def test_trends_are_listed_by_window() -> None:
    (query,) = parse("RETURN COUNT(*) PATTERN SEQ(A, B) GROUP-BY k WITHIN 4 s SLIDE 2 s").queries
    stream = [{"time": 1, "type": "A", "k": 7}, {"time": 3, "type": "B", "k": 7}]
    (trend,) = oracle.trends(query, stream)
    assert (trend.window_start, trend.window_end, trend.operand) == (0, 4, 0)
    assert trend.key == (("k", 7),)
    assert trend.pairs == ((0, "A"), (1, "B"))


def test_an_edge_between_two_ticks_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot hold"):
        rows("RETURN COUNT(*) PATTERN A WITHIN 500 ms", events("A"))


def test_ambiguous_guards_are_refused() -> None:
    with pytest.raises(ValueError, match="ambiguous"):
        rows("RETURN COUNT(*) PATTERN SEQ(A, NOT C, B) OR SEQ(A, B) WITHIN 100 s", events("A", "B"))
