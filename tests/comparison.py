"""Compares result rows with the oracle's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

Rows = Sequence[Mapping[str, Any]]

TOLERANCE = 1e-9  # LANGUAGE §8, relative to the sum of absolute values; near enough to the value in small cases


def difference(got: Rows, expected: Rows) -> str | None:
    """What is different, None where nothing is.

    Integers, keys, windows and the order of rows and columns must agree exactly, MIN and MAX in value, other doubles
    within `TOLERANCE`.
    """
    if len(got) != len(expected):
        return f"{len(got)} rows instead of {len(expected)}"
    for number, (row, wanted) in enumerate(zip(got, expected, strict=True)):
        if list(row) != list(wanted):
            return f"row {number} has the columns {list(row)} instead of {list(wanted)}"
        for column, value in wanted.items():
            if not same(row[column], value, exact=column.startswith(("min_", "max_"))):
                return f"row {number}: {column} is {row[column]!r} instead of {value!r}"
    return None


def same(got: Any, expected: Any, *, exact: bool = False) -> bool:
    """Whether a value is the expected one."""
    if isinstance(expected, Decimal):
        return isinstance(got, Decimal) and abs(got - expected) <= abs(expected) * Decimal(TOLERANCE)
    if isinstance(expected, float):  # a column of whole numbers so far may still come as integers
        if isinstance(got, bool) or not isinstance(got, (int, float)):
            return False
        return got == expected if exact else math.isclose(got, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(got) is type(expected) and bool(got == expected)


def in_file_order(rows: Rows, queries: Sequence[str]) -> list[Mapping[str, Any]]:
    """Rows that an online engine gave out over time, in the order of LANGUAGE §9.

    All rows of one query and window come at once and in order, so a stable sort by query and window is enough.
    """
    return sorted(rows, key=lambda row: (queries.index(row["query"]), row["window_start"]))


def table(rows: Rows) -> str:
    """Rows for a message, one a line."""
    return "\n".join(str(dict(row)) for row in rows) or "(no rows)"
