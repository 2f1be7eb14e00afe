"""Numbers of every size: exact integers, ``numbers=float`` within its bound, averages and extrema beside huge counts.

COUNT and SUM over INT are exact integers, floats have an error below 1e-9 of the sum of absolute values,
and nothing overflows inside. The expected values come from `tests.kernel.recurrences` and from closed forms.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hamlet
from hamlet.errors import OutputError
from tests.comparison import near, rows_of, same
from tests.kernel.recurrences import PATTERNS, Event, Sums, sums, table

NUMBERS = ("exact", "float")
HUGE = 33_300  # events: counts beyond 10^10,000
inf, nan = math.inf, math.nan

few = settings(max_examples=40, suppress_health_check=list(HealthCheck))


def only_row(text: str, events: Any, **options: Any) -> dict[str, Any]:
    (row,) = rows_of(text, events, **options)
    return row


def stream(*bursts: tuple[str, int, Any]) -> list[Event]:
    """Events in bursts of one type; the value is one for all, or as many as there are events."""
    return [
        (type_, value[place] if isinstance(value, list) else value)
        for type_, count, value in bursts
        for place in range(count)
    ]


def query(pattern: str, variable: str, attribute: str, window: str = "WITHIN 10000000 s") -> str:
    place = f"{variable}.{attribute}"
    items = f"COUNT(*), COUNT({variable}), SUM({place}), AVG({place}), MIN({place}), MAX({place})"
    return f"RETURN {items} PATTERN {pattern} {window}"


def check(row: Mapping[str, Any], wanted: Sums, variable: str, attribute: str, numbers: str, double: bool) -> None:
    """Every number of a row against the exact one."""
    bounds = wanted.bounds(variable, attribute)
    for column, value in wanted.columns(variable, attribute, double).items():
        got = row[column]
        if value is None or column.startswith(("min_", "max_")):
            assert got == value, column
            assert type(got) is type(value), column
        elif isinstance(value, int) and numbers == "exact":
            assert type(got) is int, column
            assert got == value, column
        else:
            assert near(got, value, bounds[column]), f"{column} is {got}"


# ------------------------------------------------------------------------------------------------ closed forms


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("n", [1, 2, 52, 53, 54, 61, 62, 63, 64, 65, 127, 128, 1022, 1023, 1024, 1025, 4000, HUGE])
def test_one_a_and_n_b(n: int, numbers: str) -> None:
    items = "COUNT(*), COUNT(B), SUM(B.v), AVG(B.v), LOG2(COUNT(*)), LOG2(SUM(B.v)), LOG2(AVG(B.v))"
    events = stream(("A", 1, None), ("B", n, list(range(1, n + 1))))
    row = only_row(f"RETURN {items} PATTERN SEQ(A, B+) WITHIN 100000 s", table(events, "v"), numbers=numbers)
    count, total = 2**n - 1, n * (n + 1) // 2 * 2 ** (n - 1)
    for column, value in {"count": count, "count_B": n * 2 ** (n - 1), "sum_B_v": total}.items():
        assert same(row[column], value, column, value, numbers == "float"), column
        beyond = value >= 2**1024 - 2**970  # what rounds to no double
        assert isinstance(row[column], Decimal if beyond else float) or numbers == "exact"
    assert math.isclose(row["avg_B_v"], (n + 1) / 2, rel_tol=1e-9)
    assert math.isclose(row["log2_count"], math.log2(count), rel_tol=1e-9, abs_tol=2e-9)
    assert math.isclose(row["log2_sum_B_v"], math.log2(total), rel_tol=1e-9, abs_tol=2e-9)
    assert math.isclose(row["log2_avg_B_v"], math.log2((n + 1) / 2), rel_tol=1e-9, abs_tol=2e-9)


@pytest.mark.parametrize("numbers", NUMBERS)
def test_counts_beyond_ten_to_the_ten_thousand(numbers: str) -> None:
    events = stream(("A", 1, None), ("B", HUGE // 2, 0.1), ("A", 3, None), ("B", HUGE // 2, -0.3))
    wanted = sums("(SEQ(A, B+))+", "B", events)
    assert wanted.trends > 10**10_000
    row = only_row(query("(SEQ(A, B+))+", "B", "w"), table(events, "w"), numbers=numbers)
    check(row, wanted, "B", "w", numbers, True)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**62, -1])
@pytest.mark.parametrize("numbers", NUMBERS)
def test_the_largest_integers(value: int, numbers: str) -> None:
    events = stream(("A", 1, None), ("B", 300, value), ("B", 5, None), ("B", 200, [value, ~value] * 100))
    row = only_row(query("SEQ(A, B+)", "B", "v"), table(events, "v"), numbers=numbers)
    check(row, sums("SEQ(A, B+)", "B", events), "B", "v", numbers, False)


@pytest.mark.parametrize(
    "values", [[1.7e308], [5e-324], [1.7e308, -1.7e308], [1.7e308, 5e-324], [5e-324, -1e-323, 1e-323]]
)
@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("n", [30, 3000])
def test_doubles_near_both_ends_of_their_range(n: int, numbers: str, values: list[float]) -> None:
    events = stream(("A", 2, None), ("B", n, values * n))
    for pattern in ("SEQ(A, B+)", "SEQ(A?, B+)"):
        row = only_row(query(pattern, "B", "w"), table(events, "w"), numbers=numbers)
        check(row, sums(pattern, "B", events), "B", "w", numbers, True)


# ------------------------------------------------------------------------------------------------- properties

VALUES = {
    "v": [None, 0, 1, -1, 7, 2**31, -(2**53) - 1, 2**63 - 1, -(2**63)],
    "w": [None, nan, 0.0, 0.1, -0.1, 1 / 3, 1e308, -1e308, 1.5e-300, 5e-324, 2.0**-1022],
}


@st.composite
def bursty(draw: st.DrawFn, attribute: str) -> list[Event]:
    """Bursts of A and B, some long, whose values cancel, are all the same, or random."""
    source = random.Random(draw(st.integers(0, 2**32)))
    events: list[Event] = []
    for _ in range(draw(st.integers(1, 8))):
        type_, count = draw(st.sampled_from("AB")), draw(st.sampled_from([1, 2, 3, 40, 400, 1500]))
        pool = draw(st.lists(st.sampled_from(VALUES[attribute]), min_size=1, max_size=4))
        events += [(type_, source.choice(pool)) for _ in range(count)]
    return events


@few
@given(
    data=st.data(),
    pattern=st.sampled_from(list(PATTERNS)),
    attribute=st.sampled_from("vw"),
    numbers=st.sampled_from(NUMBERS),
    sharing=st.sampled_from(["dynamic", "static", "never"]),
)
def test_bursts_of_any_length(data: st.DataObject, pattern: str, attribute: str, numbers: str, sharing: str) -> None:
    events = data.draw(bursty(attribute))
    variable = data.draw(st.sampled_from(sorted(PATTERNS[pattern][0])))
    width = data.draw(st.sampled_from([10**6, 1000, 37]))
    slide = data.draw(st.sampled_from([width, width // 2 + 1, width // 3 + 1]))
    column = table(events, attribute)
    kind = pa.int64() if attribute == "v" else pa.float64()
    batch = pa.table({**column, attribute: pa.array(column[attribute], kind, from_pandas=False)})
    text = query(pattern, variable, attribute, f"WITHIN {width} s SLIDE {slide} s")
    found = {row["window_start"]: row for row in rows_of(text, batch, numbers=numbers, sharing=sharing)}
    for start in range(-(width // slide) * slide, len(events), slide):
        wanted = sums(pattern, variable, events[max(start, 0) : max(start + width, 0)])
        assert (start in found) == (wanted.trends > 0)
        if wanted.trends:
            check(found.pop(start), wanted, variable, attribute, numbers, attribute == "w")
    assert not found


@few
@given(data=st.data(), numbers=st.sampled_from(NUMBERS))
def test_partitions_of_very_different_size_add_up(data: st.DataObject, numbers: str) -> None:
    """Without GROUP-BY the rows of all values of an equivalence key are one."""
    parts = data.draw(st.lists(bursty("w"), min_size=1, max_size=5))
    events = [(place, event) for place, part in enumerate(parts) for event in part]
    random.Random(len(events)).shuffle(events)
    keys, listed = [key for key, _ in events], [event for _, event in events]
    wanted = Sums()
    for place in range(len(parts)):
        wanted.add(sums("SEQ(A+, B+)", "B", [event for key, event in events if key == place]))
    text = query("SEQ(A+, B+)", "B", "w").replace(" WITHIN", " WHERE [k] WITHIN")
    column = table(listed, "w")
    batch = pa.table({**column, "k": keys, "w": pa.array(column["w"], pa.float64(), from_pandas=False)})
    found = rows_of(text, batch, numbers=numbers)
    assert bool(found) == bool(wanted.trends)
    if found:
        check(found[0], wanted, "B", "w", numbers, True)


# -------------------------------------------------------------------------------------------- pairs of trends


def pairs_of(one: int, two: int, both: int) -> int:
    return one * two - both * (both + 1) // 2


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize(("a", "b"), [(1, 2), (5, 3), (60, 70), (900, 3), (3000, 3000)])
def test_pairs_of_trends(a: int, b: int, numbers: str) -> None:
    """A+ has N = 2^a - 1 trends over a events, B+ has M; their values are 1, 2, 3, ... in turn."""
    events = stream(("A", a, [float(i % 3 + 1) for i in range(a)]), ("B", b, [-0.5] * b))
    n, m = 2**a - 1, 2**b - 1
    s = sum(i % 3 + 1 for i in range(a)) * 2 ** (a - 1)
    occurrences = a * 2 ** (a - 1)
    both = 2 ** (a + b) - 1
    expected = {
        "A+ AND B+": (n * m, occurrences * m, s * m),
        "A+ AND A+": (pairs_of(n, n, n), occurrences * (n - 1), s * (n - 1)),
        "A+ AND (A OR B)+": (
            pairs_of(n, both, n),
            occurrences * both + n * occurrences * 2**b - (n + 1) * occurrences,
            s * both + n * s * 2**b - (n + 1) * s,
        ),
    }
    for pattern, (count, taken, total) in expected.items():
        text = f"RETURN COUNT(*), COUNT(A), SUM(A.w), AVG(A.w), MAX(A.w), MIN(A.w) PATTERN {pattern} WITHIN 100000 s"
        found = rows_of(text, table(events, "w"), numbers=numbers)
        assert len(found) == (count > 0)
        if found:
            row = found[0]
            assert same(row["count"], count, "count", count, numbers == "float")
            assert same(row["count_A"], taken, "count_A", taken, numbers == "float")
            assert near(row["sum_A_w"], Fraction(total), total)
            assert math.isclose(row["avg_A_w"], Fraction(total, taken), rel_tol=1e-9)
            assert (row["min_A_w"], row["max_A_w"]) == (1.0, min(a, 3))


# --------------------------------------------------------------------------------- types, NULL and infinities


@pytest.mark.parametrize("n", [5, 5000])
def test_types_in_float_mode(n: int) -> None:
    """Floats, or Decimals beyond the double range; extrema and keys stay what they are."""
    items = "k, COUNT(*), COUNT(B), SUM(B.v), SUM(B.w), AVG(B.v), MIN(B.v), MAX(B.w), LOG2(SUM(B.v)), SUM(B.none)"
    events = {
        "time": list(range(n + 1)),
        "type": ["A"] + ["B"] * n,
    } | {name: [value] * (n + 1) for name, value in {"k": 7, "v": 3, "w": 0.5, "none": None}.items()}
    text = f"RETURN {items} PATTERN SEQ(A, B+) GROUP-BY k WITHIN 100000 s"
    number = float if n == 5 else Decimal
    extrema = [float, int, float, float, type(None)]  # after an average, before a sum of nothing
    inexact = [type(value) for value in only_row(text, events, numbers="float").values()]
    assert inexact == [str, int, int, int, number, number, number, number, *extrema]
    exact = [type(value) for value in only_row(text, events).values()]
    assert exact == [str, int, int, int, int, int, int, number, *extrema]


@pytest.mark.parametrize("numbers", NUMBERS)
def test_averages_divide_by_the_values_that_are_there(numbers: str) -> None:
    n = 4000
    events = stream(("A", 1, None), ("B", n, [None, 2.0, nan, 4.0] * (n // 4)), ("B", n, None))
    row = only_row(query("SEQ(A, B+)", "B", "w"), table(events, "w"), numbers=numbers)
    assert row["avg_B_w"] == pytest.approx(3.0, rel=1e-9)
    assert (row["min_B_w"], row["max_B_w"]) == (2.0, 4.0)
    assert near(row["sum_B_w"], Fraction(6 * n // 4) * 2 ** (2 * n - 1))
    nothing = only_row(query("SEQ(A, B+)", "A", "w"), table(events, "w"), numbers=numbers)
    assert [nothing[f"{name}_A_w"] for name in ("sum", "avg", "min", "max")] == [None] * 4


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("n", [3, 3000])
def test_infinite_values(n: int, numbers: str) -> None:
    """An infinite value counts in the trends that have it, however many there are, and in no other."""
    items = "COUNT(*), SUM(B.w), AVG(B.w), MAX(B.w), LOG2(SUM(B.w))"

    def row(*values: float) -> list[Any]:
        listed = [(0, "B", inf), (1, "A", nan), *((2 + i, "B", w) for i, w in enumerate(values))]
        columns = {name: [event[i] for event in listed] for i, name in enumerate(("time", "type", "w"))}
        found = only_row(f"RETURN {items} PATTERN SEQ(A, B+) WITHIN 1000000 s", columns, numbers=numbers)
        return list(found.values())[4:]

    finite = [1.0] * n
    assert row(*finite)[1:3] == [1.0, 1.0]  # the first B comes before every A
    assert row(inf, *finite) == [inf, inf, inf, inf]
    assert row(*finite, -inf) == [-inf, -inf, 1.0, None]
    assert [str(value) for value in row(inf, *finite, -inf)] == ["nan", "nan", "inf", "nan"]


# ---------------------------------------------------------------------------------------- tables of results


def test_count_types_in_float_mode() -> None:
    text = "RETURN k, COUNT(*), SUM(B.v), SUM(B.w) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 100000 s"
    n = 3000
    events = {"time": list(range(n + 1)), "type": ["A"] + ["B"] * n, "k": ["x"] * (n + 1), "v": [1] * (n + 1)}
    events["w"] = [0.5] * (n + 1)
    workload = hamlet.Workload.parse(text)

    def found(count_type: str) -> tuple[hamlet.Results, pa.Table]:
        results = hamlet.run(workload, events, numbers="float", count_type=count_type)
        return results, results.table("q1")

    _, strings = found("string")
    text_of_count = strings["count"][0].as_py()
    assert near(Decimal(text_of_count), 2**n - 1, 2**n)
    assert len(text_of_count) == len("1.2345678901234567e+903")
    results, doubles = found("double")
    assert [doubles[name][0].as_py() for name in ("count", "sum_B_v", "sum_B_w")] == [inf] * 3
    assert results.stats["infinite_values"] == 3
    for count_type, what in (("int64", "int64"), ("decimal", r"decimal\(38, 0\)")):
        with pytest.raises(OutputError, match=rf"query q1, window \[0, 100000\), group k=x: count = .* not fit {what}"):
            found(count_type)


def test_small_counts_in_float_mode_fit_every_count_type() -> None:
    events: Sequence[Mapping[str, Any]] = [{"time": t, "type": "ABB"[t], "v": -t} for t in range(3)]
    workload = hamlet.Workload.parse("RETURN COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) WITHIN 10 s")
    for count_type, count in (("string", "3.0"), ("int64", 3), ("double", 3.0), ("decimal", Decimal(3))):
        table = hamlet.run(workload, events, numbers="float", count_type=count_type).table("q1")
        assert table["count"][0].as_py() == count
        assert float(table["sum_B_v"][0].as_py()) == -6.0


@pytest.mark.parametrize("numbers", ["exact", "float"])
def test_logarithms_of_infinite_sums(numbers: str) -> None:
    """Infinity less infinity is no number, and so is its logarithm; minus infinity has none."""
    text = "RETURN SUM(A.v), LOG2(SUM(A.v)), LOG2(AVG(A.v)) AS average PATTERN A WITHIN 10 s"
    infinity = math.inf
    values = [infinity, 1.0, infinity, -infinity, -infinity, 1.0]  # two events to a window
    events = [{"time": 5 * place, "type": "A", "v": value} for place, value in enumerate(values)]
    found = hamlet.run(hamlet.Workload.parse(text), events, numbers=numbers).rows()
    assert [(row["sum_A_v"], row["log2_sum_A_v"], row["average"]) for row in found[::2]] == [
        (infinity, infinity, infinity),
        (-infinity, None, None),
    ]
    assert all(math.isnan(found[1][name]) for name in ("sum_A_v", "log2_sum_A_v", "average"))
