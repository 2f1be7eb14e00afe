"""The rows of a workload, and how they are compared with the oracle's."""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import hamlet
from hamlet.checker import EvidenceError

Rows = Sequence[Mapping[str, Any]]

TOLERANCE = Fraction(1, 10**9)  # of the sum of absolute values
LEAST_DOUBLE = Fraction(math.ulp(0.0))  # what rounding to a double may cost where it has few digits left


def rows_of(text: str, events: Any, **options: Any) -> list[dict[str, Any]]:
    """What `hamlet.run` finds for a workload's text."""
    found: list[dict[str, Any]] = hamlet.run(hamlet.Workload.parse(text), events, **options).rows()
    return found


def whole(draw: Random, events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Events with some of their floats as integers, where they are integers of 64 bits."""
    return [
        {
            name: int(value)
            if isinstance(value, float) and value.is_integer() and abs(value) < 2**63 and draw.random() < 0.3
            else value
            for name, value in event.items()
        }
        for event in events
    ]


def difference(got: Rows, expected: Rows, *, magnitudes: Rows | None = None, floats: bool = False) -> str | None:
    """What is different, None where nothing is.

    Integers, keys, windows and the order of rows and columns must agree exactly, MIN and MAX in value, other numbers
    within `TOLERANCE`.

    Parameters
    ----------
    got, expected : sequence of mapping
        Result rows.
    magnitudes : sequence of mapping, optional
        The rows with sums of absolute values in place of the sums: what `TOLERANCE` is relative to. Without them it is
        relative to the expected value, or to 1 where that is smaller, which is near enough in small cases.
    floats : bool
        Whether COUNT and SUM are floats, or Decimals beyond the double range (``numbers=float``).
    """
    if len(got) != len(expected):
        return f"{len(got)} rows instead of {len(expected)}"
    for number, (row, wanted) in enumerate(zip(got, expected, strict=True)):
        if list(row) != list(wanted):
            return f"row {number} has the columns {list(row)} instead of {list(wanted)}"
        for column, value in wanted.items():
            magnitude = magnitudes[number][column] if magnitudes is not None else None
            if not same(row[column], value, column, magnitude, floats):
                return f"row {number}: {column} is {row[column]!r} instead of {value!r}"
    return None


def same(got: Any, expected: Any, column: str = "", magnitude: Any = None, floats: bool = False) -> bool:
    """Whether a value is the expected one; the column's default name says what it is."""
    if column.startswith("approx_"):
        return isinstance(got, int) and abs(got - expected) <= 1 + expected // 20
    if column.startswith("expr"):  # of the tests' own names; rounding may cost what it costs the operands
        magnitude = None
    if column.startswith("log2_"):
        return _same_logarithm(got, expected, magnitude)
    number = isinstance(expected, int) and isinstance(got, (float, Decimal))  # an item may have a name of its own
    if column.startswith("count_distinct"):
        floats = False  # whatever the numbers, values are counted one by one
    if floats and type(got) is int and column.startswith(("count", "sum_")) and got == expected:
        return True  # a group by COUNT is a whole number, and all are exact where what is added may be a time
    if floats and expected is not None and (number or column.startswith(("count", "sum_"))):
        return near(got, expected, magnitude)
    if isinstance(expected, Decimal):
        return isinstance(got, Decimal) and near(got, expected, magnitude)
    if isinstance(expected, float):  # a column of whole numbers so far may still come as integers
        if isinstance(got, bool) or not isinstance(got, (int, float)):
            return False
        return got == expected if column.startswith(("min_", "max_")) else near(float(got), expected, magnitude)
    return type(got) is type(expected) and bool(got == expected)


def near(got: Any, expected: Any, magnitude: Any = None) -> bool:
    """Whether a float, or a Decimal beyond the double range, is within the bound of the exact value."""
    if isinstance(got, bool) or not isinstance(got, (float, Decimal)):
        return False
    if _is_special(got) or _is_special(expected):
        return repr(got) == repr(expected)
    if isinstance(got, Decimal) and abs(Fraction(got)) < 2**1023:
        return False
    relative = max(abs(Fraction(expected)), 1) if magnitude is None else abs(Fraction(magnitude))
    return abs(Fraction(got) - Fraction(expected)) <= relative * TOLERANCE + LEAST_DOUBLE


def _same_logarithm(got: Any, expected: Any, magnitude: Any) -> bool:
    """Whether LOG2 is that of a value within the bound."""
    if repr(got) == repr(expected):
        return True  # also infinities and NaN
    if not isinstance(got, float | None) or any(_is_special(each) for each in (got, expected, magnitude)):
        return False
    if magnitude is None:
        return got is not None and expected is not None and math.isclose(got, expected, rel_tol=1e-9, abs_tol=1e-9)
    value = Fraction(0) if expected is None else _power_of_two(expected)
    error = 2 * _power_of_two(magnitude) * TOLERANCE  # both logarithms are rounded, too
    return value <= error if got is None else value - error <= _power_of_two(got) <= value + error


def _is_special(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _power_of_two(exponent: float) -> Fraction:
    whole = math.floor(exponent)
    return Fraction(2.0 ** (exponent - whole)) * Fraction(2) ** whole


def in_file_order(rows: Rows, queries: Sequence[str]) -> list[Mapping[str, Any]]:
    """Rows that an online engine gave out over time, in the order of `Results.rows`.

    All rows of one query and window come at once and in order, so a stable sort by query and window is enough.
    """
    return sorted(rows, key=lambda row: (queries.index(row["query"]), row["window_start"]))


def in_any_order(rows: Rows) -> list[Mapping[str, Any]]:
    """Rows in an order of their own, for comparisons where none is promised; close doubles are taken for equal."""
    return sorted(rows, key=lambda row: [f"{v:.6g}" if isinstance(v, float) else repr(v) for v in row.values()])


def table(rows: Rows) -> str:
    """Rows for a message, one a line."""
    return "\n".join(str(dict(row)) for row in rows) or "(no rows)"


def accepted_mutants(
    mutants: Iterable[Any], evidence: Any, check: Callable[[Any], object], counts: Counter[str]
) -> Iterator[Any]:
    """Those of changed evidence that a checker does not reject; both are counted."""
    for other in mutants:
        if other == evidence:
            continue
        try:
            check(other)
        except EvidenceError:
            counts["rejected"] += 1
            continue
        yield other
        counts["still evidence"] += 1


def by_seeds(
    compare: Callable[[int, argparse.Namespace], Counter[str]],
    usual: str,
    parser: argparse.ArgumentParser | None = None,
    *,
    refuses: bool = False,
) -> None:
    """The command line of a comparison: what became of the cases of a range of seeds is counted and printed.

    Parameters
    ----------
    compare : callable
        From a seed and what was asked for, what became of its cases; raises where one is wrong.
    usual : str
        The first seed and the one behind the last, where nobody says others.
    parser : argparse.ArgumentParser, optional
        With what else may be asked for.
    refuses : bool
        Whether cases may be refused, but not most of them.
    """
    parser = parser or argparse.ArgumentParser()
    parser.add_argument("--seeds", default=usual, help="first:last, the last not included")
    given = parser.parse_args()
    low, high = map(int, given.seeds.split(":"))
    counts: Counter[str] = Counter()
    for seed in range(low, high):
        counts += compare(seed, given)
    sys.stdout.write(f"{dict(counts)}\n")
    assert not refuses or counts["refused"] * 2 < high - low, "most cases were refused"
