"""Which column type holds the numbers of a result: what the count type ``auto`` chooses once all values are known.

A COUNT or SUM has no largest value. ``auto`` takes the first of int64, decimal (38 digits, then 76) and text that holds
every value of a column, so that ``max(count)`` in another program is the largest count. A SUM over DOUBLE attributes
is a double, unless some value is beyond the range of doubles; then it is text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from hamlet.language.query import AttributeType
from hamlet.output.components import Values
from hamlet.output.numbers import BeyondDoubles, Integers
from hamlet.output.query_rows import QueryRows, ResultColumn

COUNT_TYPES = ("auto", "string", "int64", "double", "decimal")
INT64, DECIMAL, WIDE, TEXT, REAL = "int64", "decimal", "decimal76", "string", "real"
_LADDER = (INT64, DECIMAL, WIDE, TEXT)  # each holds all that those before it hold
_NEAR = 1e-9  # of a limit, where a double does not tell on which side an integer is
_LIMITS = ((INT64, 2**63 - 1), (DECIMAL, 10**38 - 1), (WIDE, 10**76 - 1))

_BEYOND_DOUBLES = Decimal(2**1024 - 2**970)  # the nearest double to this and all beyond is infinite


def is_counted(column: ResultColumn) -> bool:
    """Whether the count type says what a column is."""
    return column.kind in ("count", "sum")


def is_real(column: ResultColumn) -> bool:
    """Whether a column is a sum of doubles, which is no integer."""
    return column.kind == "sum" and column.type is AttributeType.DOUBLE


def holding(largest: int) -> str:
    """The first type of integers that holds every number whose absolute value is at most `largest`.

    Examples
    --------
    >>> [holding(largest) for largest in (2**63 - 1, 2**63, 10**38, 10**76)]
    ['int64', 'decimal', 'decimal76', 'string']
    """
    return next((name for name, limit in _LIMITS if largest <= limit), TEXT)


def wider(one: str, other: str) -> str:
    """The type that holds what either of two types holds; text where one is of doubles and the other is not."""
    if one == other:
        return one
    return TEXT if REAL in (one, other) else max(one, other, key=_LADDER.index)


def largest_of(values: Values) -> int | None:
    """The largest absolute value of a column of numbers, rounded to an integer; None where a double is infinite."""
    data: Any = values.data
    if isinstance(data, Integers):
        return _largest_integer(data)
    if isinstance(data, BeyondDoubles) and data.beyond.any():
        return None
    if isinstance(data, BeyondDoubles):
        data = data.nearest
    if isinstance(data, np.ndarray):
        if values.valid is not None:
            data = data[values.valid]
        if not len(data):
            return 0
        if data.dtype.kind == "f" and not np.isfinite(data).all():
            return None
        return (
            max(abs(round(float(data.max()))), abs(round(float(data.min()))))
            if data.dtype.kind == "f"
            else max(int(data.max()), -int(data.min()))
        )
    return _largest(values.tolist())


def _largest_integer(numbers: Integers) -> int:
    """The largest absolute value. Where none is near a limit of the types, of those that are one double any of them."""
    if not len(numbers):
        return 0
    near = np.abs(numbers.doubles())
    most = float(near.max())
    rows = np.nonzero(near == most)[0]
    if np.isinf(most):  # beyond all decimals: the largest by its logarithm, which negative ones do not have
        logarithms, positive = numbers[rows].logarithms()
        return abs(_integer(numbers, int(rows[np.argmax(np.where(positive, logarithms, 0))])))
    if all(abs(most / limit - 1) > _NEAR for _, limit in _LIMITS):
        rows = rows[:1]
    return max(abs(_integer(numbers, row)) for row in rows.tolist())


def _integer(numbers: Integers, row: int) -> int:
    begin, size = int(numbers.starts[row]), int(numbers.sizes[row])
    return int.from_bytes(numbers.words[begin : begin + size].tobytes(), "little", signed=True)


def _largest(numbers: Iterable[Any]) -> int | None:
    most = 0
    for each in numbers:
        if each is None:
            continue
        if isinstance(each, Decimal) or (isinstance(each, float) and not np.isfinite(each)):
            return None
        most = max(most, abs(round(each)))
    return most


def _is_beyond_doubles(values: Values) -> bool:
    """Whether some finite number of a column is beyond the range of doubles."""
    if isinstance(values.data, BeyondDoubles):
        return bool(values.data.beyond.any())
    if not isinstance(values.data, list):
        return False
    return any(isinstance(each, Decimal) and abs(each) >= _BEYOND_DOUBLES for each in values.data)


def fitted_types(rows: QueryRows) -> tuple[str | None, ...]:
    """The type of each column of a query under ``auto``; None for those that the count type does not concern.

    A quotient or another computed double is text where some value is beyond the range of doubles.
    """
    found: list[str | None] = []
    for place, column in enumerate(rows.columns):
        if not is_counted(column):
            beyond = column.kind == "double" and any(_is_beyond_doubles(piece.values[place]) for piece in rows.pieces)
            found.append(TEXT if beyond else None)
            continue
        largest = [largest_of(piece.values[place]) for piece in rows.pieces]
        beyond = None in largest
        if is_real(column):
            found.append(TEXT if beyond else REAL)
        else:
            found.append(TEXT if beyond else holding(max((each for each in largest if each is not None), default=0)))
    return tuple(found)


def common_types(queries: Sequence[tuple[Sequence[ResultColumn], Sequence[str | None]]]) -> list[list[str | None]]:
    """The types under which columns of one name can stand in one table: the widest of each name."""
    widest: dict[str, str] = {}
    for columns, types in queries:
        for column, kind in zip(columns, types, strict=True):
            if kind is not None:
                widest[column.name] = wider(widest.get(column.name, kind), kind)
    return [
        [None if kind is None else widest[column.name] for column, kind in zip(columns, types, strict=True)]
        for columns, types in queries
    ]


def type_note(query: str | None, column: str, kind: str) -> str | None:
    """What to know about a column that is not int64; None for one that is, or a double."""
    if kind in (INT64, REAL):
        return None
    name = f"{query}.{column}" if query else column
    if kind == TEXT:
        return (
            f"{name} is text in tables and Parquet, for some value has more digits than a decimal: text "
            f"sorts by its letters, so max({column}) there is not the largest; LOG2 of it is a double that always fits"
        )
    digits = 38 if kind == DECIMAL else 76
    return f"{name} is decimal({digits}, 0) in tables and Parquet, for some value does not fit int64"
