"""Components of closed windows as columns: from the kernel's words to result values, without a Python object per row.

A column of components has one of these forms, by kind (`hamlet.compiler.aggregates`):

- counts, occurrences and sums of integers: an int64 array, or a list of int where some value needs more than 64 bits;
- scaled doubles: mantissas (float64) and exponents (int64);
- presence: a bool array;
- extrema: values (int64 or float64) and where there is one (bool).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.compiler.aggregates import SCALED, SIZES, Component, ComponentKey, Layout
from hamlet.output import scaled
from hamlet.query import Aggregate, ReturnItem

Int64Array = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Column = Any  # one of the forms above

_EXACT_DOUBLE = 1 << 53  # integers below it are doubles
_STEP = 512  # exponents of scaled doubles are multiples of it
_LOST = -4 * _STEP  # of two summands, one so much smaller than the other does not count


@dataclass(frozen=True, slots=True)
class Values:
    """One result column.

    Attributes
    ----------
    data : int64, float64 or bool array, or list, of shape (rows,)
        Python objects in a list, None for NULL.
    valid : bool array of shape (rows,) or None
        Of arrays: where there is a value; None where there is no NULL.
    objects : list or None
        What the integers in `data` stand for; None for themselves.
    """

    data: Any
    valid: Bools | None = None
    objects: list[Any] | None = None

    def tolist(self) -> list[Any]:
        """The values as Python objects, None for NULL."""
        found: list[Any] = self.data if isinstance(self.data, list) else self.data.tolist()
        if self.objects is not None:
            objects = self.objects
            found = [objects[code] for code in found] if objects else [None] * len(found)
        if self.valid is None or self.valid.all():
            return found
        return [value if there else None for value, there in zip(found, self.valid.tolist(), strict=True)]


# ------------------------------------------------------------------------------------------------ from the kernel


def decoded(
    layout: Layout, widths: npt.NDArray[np.int32], words: npt.NDArray[np.uint64], order: Int64Array
) -> list[Column]:
    """The kernel's rows as columns, one per component, in another order."""
    if len(widths) == 0 or int(widths.min()) == int(widths.max()):
        width = int(widths[0]) if len(widths) else 1
        cells = words.reshape(len(widths), layout.fixed + layout.wide * width)
        found = []
        offset = 0
        for key in layout.keys:
            size = SIZES[key.kind][0] + SIZES[key.kind][1] * width
            part = cells[:, offset] if size == 1 else cells[:, offset : offset + size]
            found.append(_decoded(key.kind, part[order]))
            offset += size
        return found
    return _of_many_widths(layout, widths, words, order)


def _of_many_widths(
    layout: Layout, widths: npt.NDArray[np.int32], words: npt.NDArray[np.uint64], order: Int64Array
) -> list[Column]:
    """As `decoded`, rows of one width at a time."""
    sizes = layout.fixed + layout.wide * widths.astype(np.int64)
    starts = (np.cumsum(sizes) - sizes)[order]
    widths = widths[order]
    pieces: list[list[Column]] = []
    places = []
    for width in np.unique(widths).tolist():
        chosen = np.nonzero(widths == width)[0]
        size = layout.fixed + layout.wide * width
        cells = words[starts[chosen][:, None] + np.arange(size)].reshape(-1)
        within = np.full(len(chosen), width, np.int32)
        pieces.append(decoded(layout, within, cells, np.arange(len(chosen))))
        places.append(chosen)
    back = np.argsort(np.concatenate(places), kind="stable")
    return [taken(joined([piece[i] for piece in pieces]), back) for i in range(len(layout.keys))]


def _decoded(kind: str, words: npt.NDArray[np.uint64]) -> Column:
    if kind in ("count", "occurrences", "sum_int"):
        return _integers(words)
    if kind == "present":
        return words != 0
    first, second = np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])
    if kind in SCALED:
        return first.view(np.float64), second.view(np.int64)
    return second.view(np.float64 if kind.endswith("double") else np.int64), first != 0


def _integers(words: npt.NDArray[np.uint64]) -> Column:
    signed = words.view(np.int64)
    if words.ndim == 1:
        return signed
    if words.shape[1] == 1 or (signed[:, 1:] == (signed[:, :1] >> 63)).all():
        return np.ascontiguousarray(signed[:, 0])
    raw, size = words.tobytes(), 8 * words.shape[1]
    return [int.from_bytes(raw[i : i + size], "little", signed=True) for i in range(0, len(raw), size)]


# -------------------------------------------------------------------------------------------------- as Python lists


def listed(key: ComponentKey, column: Column) -> list[Component]:
    """A column as Python values (`hamlet.compiler.aggregates`)."""
    if key.kind in SCALED:
        return list(zip(column[0].tolist(), column[1].tolist(), strict=True))
    if isinstance(column, tuple):
        return Values(*column).tolist()
    return column if isinstance(column, list) else column.tolist()


def columned(key: ComponentKey, values: list[Component]) -> Column:
    """The inverse of `listed`."""
    if key.kind in SCALED:
        return np.array([each[0] for each in values], np.float64), np.array([each[1] for each in values], np.int64)
    if key.kind == "present":
        return np.array(values, np.bool_)
    if key.kind.startswith(("least", "greatest")):
        type = np.float64 if key.kind.endswith("double") else np.int64
        return np.array([0 if each is None else each for each in values], type), _there(values)
    return _narrowed(values)


def _there(values: list[Any]) -> Bools:
    return np.array([each is not None for each in values], np.bool_)


def _narrowed(values: list[int]) -> Column:
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return values


# ------------------------------------------------------------------------------------------------- rows together


def taken(column: Column, rows: Int64Array) -> Column:
    """Some rows of a column."""
    if isinstance(column, tuple):
        return tuple(part[rows] for part in column)
    return [column[row] for row in rows.tolist()] if isinstance(column, list) else column[rows]


def joined(columns: Sequence[Column]) -> Column:
    """Columns of one component, one below the other."""
    if isinstance(columns[0], tuple):
        return tuple(np.concatenate(parts) for parts in zip(*columns, strict=True))
    if any(isinstance(each, list) for each in columns):
        return [value for each in columns for value in (each if isinstance(each, list) else each.tolist())]
    return np.concatenate(columns)


def merged_runs(key: ComponentKey, column: Column, starts: Int64Array) -> Column:
    """Each run of rows added up: disjoint sets of trends together.

    Parameters
    ----------
    starts : int64 array of shape (runs,)
        The first row of each run, ascending, from 0.
    """
    if key.kind in SCALED:
        return _summed(column[0], column[1], starts)
    if key.kind == "present":
        return np.logical_or.reduceat(column, starts)
    if key.kind.startswith(("least", "greatest")):
        values, there = column
        choose, end = (np.minimum, 1) if key.kind.startswith("least") else (np.maximum, -1)
        neutral = end * np.inf if values.dtype == np.float64 else np.iinfo(np.int64).max if end > 0 else -(2**63)
        return choose.reduceat(np.where(there, values, neutral), starts), np.logical_or.reduceat(there, starts)
    ends = np.append(starts[1:], len(column))
    if not isinstance(column, list):
        most = max(int(column.max()), -int(column.min()))
        if most * int((ends - starts).max()) < 1 << 63:
            return np.add.reduceat(column, starts)
    values = listed(key, column)
    return _narrowed([sum(values[a:b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])


def _summed(mantissas: Doubles, exponents: Int64Array, starts: Int64Array) -> Column:
    """Sums of scaled doubles over runs of rows."""
    most = np.maximum.reduceat(np.where(mantissas == 0, np.iinfo(np.int64).min >> 1, exponents), starts)
    lengths = np.diff(np.append(starts, len(mantissas)))
    shifts = np.maximum(np.where(mantissas == 0, 0, exponents - np.repeat(most, lengths)), _LOST)
    with np.errstate(invalid="ignore"):  # the sum of two infinities may be none
        return _normal(np.add.reduceat(np.ldexp(mantissas, shifts.astype(np.int32)), starts), most)


def _normal(mantissas: Doubles, exponents: Int64Array) -> tuple[Doubles, Int64Array]:
    """`hamlet.output.scaled.normal` of arrays."""
    plain = (mantissas != 0) & np.isfinite(mantissas)
    shifts = np.where(plain, (np.frexp(mantissas)[1].astype(np.int64) + _STEP // 2) // _STEP * _STEP, 0)
    return np.ldexp(mantissas, -shifts.astype(np.int32)), np.where(plain, exponents + shifts, 0)


# -------------------------------------------------------------------------------------------------- result values


def read(item: ReturnItem, keys: Sequence[ComponentKey], columns: Sequence[Column]) -> Values:
    """One result column from the components of groups and windows.

    Parameters
    ----------
    item : ReturnItem
        Of an aggregate.
    keys : sequence of ComponentKey
        What `hamlet.compiler.aggregates.needed` says of the aggregate.
    columns : sequence of Column
        Of these components.

    Returns
    -------
    Values
        Of int, float or decimal.Decimal, the last only for what is beyond the range of doubles (DESIGN §5).
    """
    assert isinstance(item.value, Aggregate)
    column: Column = columns[0]
    valid: Bools | None = None
    match item.value.function:
        case "SUM":
            valid = columns[1]
        case "AVG":
            column, valid = _quotients(keys, column, columns[1])
        case "MIN" | "MAX":
            column, valid = column
    if item.log2:
        return _log2(Values(_pairs(column) if isinstance(column, tuple) else column, valid))
    return Values(_presented(*column) if isinstance(column, tuple) else column, valid)


def read_listed(item: ReturnItem, keys: Sequence[ComponentKey], columns: Sequence[list[Component]]) -> Values:
    """As `read`, from columns as `listed` gives them."""
    assert isinstance(item.value, Aggregate)
    column = columns[0]
    if item.value.function == "SUM":
        column = [total if there else None for total, there in zip(column, columns[1], strict=True)]
    elif item.value.function == "AVG":
        column = [_quotient(total, number) for total, number in zip(column, columns[1], strict=True)]
    if item.log2:
        return Values([None if value is None else _log2_of(value) for value in column])
    if keys[0].kind in SCALED:
        column = [scaled.presented(value) if isinstance(value, tuple) else value for value in column]
    return Values(column)


def _quotient(total: int | scaled.Scaled, number: int | scaled.Scaled) -> float | scaled.Scaled | None:
    """An average; None where it is over nothing."""
    if not (number[0] if isinstance(number, tuple) else number):
        return None
    if isinstance(number, int):
        # of integers Python finds the double nearest to the quotient, whatever their size
        return total / number if isinstance(total, int) else scaled.over(total, scaled.of_integer(number))
    assert not isinstance(total, int)
    return scaled.over(total, number)


def _pairs(column: Column) -> list[scaled.Scaled]:
    return list(zip(column[0].tolist(), column[1].tolist(), strict=True))


def _presented(mantissas: Doubles, exponents: Int64Array) -> Any:
    """Scaled doubles as doubles, or as a list where some are beyond their range."""
    with np.errstate(over="ignore"):
        found = np.ldexp(mantissas, np.clip(exponents, -(1 << 20), 1 << 20).astype(np.int32))
    beyond = np.isinf(found) & np.isfinite(mantissas)
    if not beyond.any():
        return found
    values: list[Any] = found.tolist()
    for row in np.nonzero(beyond)[0].tolist():
        values[row] = scaled.presented((float(mantissas[row]), int(exponents[row])))
    return values


def _quotients(keys: Sequence[ComponentKey], total: Column, number: Column) -> tuple[Column, Bools]:
    """Averages (doubles, or scaled ones), and where there is one."""
    if isinstance(number, tuple):
        there = number[0] != 0
        return _over(total, (np.where(there, number[0], 1.0), number[1])), there
    if not isinstance(number, list):
        there = number != 0
        divisor = np.where(there, number, 1)
        if isinstance(total, tuple):
            return _over(total, _normal(divisor.astype(np.float64), np.zeros(len(divisor), np.int64))), there
        if not isinstance(total, list) and _are_doubles(total) and _are_doubles(number):
            return total / divisor, there
    numbers = listed(keys[1], number)
    there = np.array([each != 0 for each in numbers], np.bool_)
    if isinstance(total, tuple):
        return _over(total, columned(keys[0], [scaled.of_integer(each or 1) for each in numbers])), there
    quotients = [_quotient(a, b) for a, b in zip(listed(keys[0], total), numbers, strict=True)]
    return np.array([0.0 if each is None else each for each in quotients], np.float64), there


def _are_doubles(numbers: Int64Array) -> bool:
    """Whether all integers are doubles too."""
    return not len(numbers) or max(int(numbers.max()), -int(numbers.min())) <= _EXACT_DOUBLE


def _over(a: tuple[Doubles, Int64Array], b: tuple[Doubles, Int64Array]) -> tuple[Doubles, Int64Array]:
    return _normal(a[0] / b[0], a[1] - b[1])


def _log2(values: Values) -> Values:
    """Binary logarithms of numbers of any size; NULL for values <= 0."""
    return _doubles([None if value is None else _log2_of(value) for value in values.tolist()])


def _doubles(values: list[float | None]) -> Values:
    there = _there(values)
    return Values(np.array([0.0 if value is None else value for value in values], np.float64), there)


def _log2_of(value: int | float | scaled.Scaled) -> float | None:
    if (value[0] if isinstance(value, tuple) else value) <= 0:  # NaN is not
        return None
    return scaled.log2(value) if isinstance(value, tuple) else math.log2(value)
