"""Components of closed windows as columns: from the kernel's words to result values, without a Python object per row.

A column of components has one of these forms, by kind (`hamlet.planner.aggregates`):

- counts, occurrences and sums of integers: an int64 array, or Integers where some value needs more than 64 bits;
- scaled doubles: ScaledDoubles;
- presence: a bool array;
- extrema: values (int64 or float64) and where there is one (bool), or None where there always is;
- sets of values: Sets, or a uint8 array of registers, shape (rows, 4096) (`hamlet.output.distinct`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.input.columns import Int64Array
from hamlet.kernel.column_builder import gathered, logarithms
from hamlet.language.query import Aggregate, ReturnItem
from hamlet.output.distinct import Sets, estimates
from hamlet.output.numbers import BeyondDoubles, Bools, Doubles, Integers, ScaledDoubles
from hamlet.planner import scaled
from hamlet.planner.aggregates import REGISTERS, SCALED, SIZES, Component, ComponentKey, Layout

Column = Any  # one of the forms above

_FORMS = {  # of kinds other than extrema (`hamlet.kernel.column_builder.FORMS`)
    **dict.fromkeys(("count", "occurrences", "sum_int"), "integer"),
    **dict.fromkeys(SCALED, "pair"),
    "present": "flag",
}
_EXACT_DOUBLE = 1 << 53  # integers below it are doubles
_STEP = 512  # exponents of scaled doubles are multiples of it
_LOST = -4 * _STEP  # of two summands, one so much smaller than the other does not count


@dataclass(frozen=True, slots=True)
class Values:
    """One result column.

    Attributes
    ----------
    data : int64, float64 or bool array, Integers, BeyondDoubles, or list, of shape (rows,)
        Python objects in a list, None for NULL.
    valid : bool array of shape (rows,) or None
        Of arrays: where there is a value; None where there is no NULL.
    objects : list or None
        What the integers in `data` stand for; None for themselves.
    present : callable or None
        What makes a Python object of an integer in `data`; None where it stands for itself.
    places : int32 array of shape (rows,) or None
        The rows are these places of all that is above; None where they are all of them, in order.
    """

    data: Any
    valid: Bools | None = None
    objects: list[Any] | None = None
    places: npt.NDArray[np.int32] | None = None
    present: Callable[[int], Any] | None = None

    def tolist(self) -> list[Any]:
        """The values as Python objects, None for NULL."""
        found: list[Any] = self.data if isinstance(self.data, list) else self.data.tolist()
        if self.objects is not None:
            objects = self.objects
            found = [objects[code] for code in found] if objects else [None] * len(found)
        if self.present is not None:
            present, there = self.present, [True] * len(found) if self.valid is None else self.valid.tolist()
            found = [present(each) if known else None for each, known in zip(found, there, strict=True)]
        if self.valid is not None and not self.valid.all():
            found = [value if there else None for value, there in zip(found, self.valid.tolist(), strict=True)]
        return found if self.places is None else [found[place] for place in self.places.tolist()]

    def __len__(self) -> int:
        return len(self.data if self.places is None else self.places)

    def plain(self) -> npt.NDArray[Any] | None:
        """The values as an array, masked where there is NULL; None where they are not numbers as they stand."""
        if not isinstance(self.data, np.ndarray) or self.objects is not None or self.present is not None:
            return None
        found, valid = np.ascontiguousarray(self.data), self.valid
        if self.places is not None:
            found, valid = found[self.places], None if valid is None else valid[self.places]
        return found if valid is None or valid.all() else np.ma.MaskedArray(found, ~valid)

    def at(self, row: int) -> Any:
        """The value of one row, as `tolist` has it."""
        return self.part(slice(row, row + 1)).tolist()[0]

    def part(self, rows: slice) -> Values:
        """Rows that follow one another, without what is there for others."""
        chosen = rows if self.places is None else self.places[rows]
        if isinstance(chosen, slice) or not isinstance(self.data, list):
            data = self.data[chosen]
        else:
            data = [self.data[place] for place in chosen]
        return replace(self, data=data, valid=None if self.valid is None else self.valid[chosen], places=None)

    def largest(self, rows: slice) -> int:
        """The row of the largest of some numbers; of those beyond doubles the first."""
        data = np.array([each or 0 for each in self.data], object) if isinstance(self.data, list) else self.data
        data = data[rows] if self.places is None else data[self.places[rows]]
        if isinstance(data, Integers):
            data = data.doubles()
        elif isinstance(data, BeyondDoubles):
            data = data.nearest
        return int(rows.start + np.argmax(data))

    def chosen(self, rows: Int64Array) -> Values:
        """Some of the rows."""
        return replace(self, places=rows.astype(np.int32) if self.places is None else self.places[rows])


# ------------------------------------------------------------------------------------------------ from the kernel


def decoded(
    layout: Layout,
    widths: npt.NDArray[np.int32],
    words: npt.NDArray[np.uint64],
    order: Int64Array,
) -> list[Column]:
    """The kernel's rows as columns, one per component, in another order.

    Parameters
    ----------
    layout : Layout
    widths, words : arrays
        As `Kernel.rows` gives them; nothing is kept of them.
    order : int64 array of shape (rows,)
        Places of rows.
    """
    parts = [(_FORMS.get(key.kind, "extremum"), *SIZES[key.kind]) for key in layout.keys]
    return in_columns(layout, gathered(words, widths, order, parts), words)


def in_columns(
    layout: Layout, gathers: Sequence[tuple[Any, Any]], words: npt.NDArray[np.uint64] | None = None
) -> list[Column]:
    """Components as columns, from what `hamlet.kernel.column_builder.gathered` takes; `words` has their limbs."""
    found: list[Column] = []
    limbs: npt.NDArray[np.uint64] | None = None
    for key, (first, second) in zip(layout.keys, gathers, strict=True):
        form = _FORMS.get(key.kind, "extremum")
        if form == "integer" and second is not None:
            assert words is not None
            limbs = words.copy() if limbs is None else limbs
            found.append(Integers(limbs, first, second))
        elif form == "extremum":
            found.append((first.view(np.float64) if key.kind.endswith("double") else first, second))
        else:
            found.append(ScaledDoubles(first, second) if form == "pair" else first)
    return found


# -------------------------------------------------------------------------------------------------- as Python lists


def listed(column: Column) -> list[Component]:
    """A column as Python values (`hamlet.planner.aggregates`)."""
    if isinstance(column, ScaledDoubles):
        return column.pairs()
    if isinstance(column, tuple):
        return Values(*column).tolist()
    if isinstance(column, np.ndarray) and column.ndim == 2:
        return [row.tobytes() for row in column]
    values: list[Component] = column.tolist()
    return values


def columned(key: ComponentKey, values: list[Component]) -> Column:
    """The inverse of `listed`."""
    if key.kind in SCALED:
        return ScaledDoubles.of(values)
    if key.kind == "present":
        return np.array(values, np.bool_)
    if key.kind in ("distinct", "events"):
        return Sets.of(values)
    if key.kind == "registers":
        return np.frombuffer(b"".join(values), np.uint8).reshape(len(values), REGISTERS)
    if key.kind.startswith(("least", "greatest")):
        type = np.float64 if key.kind.endswith("double") else np.int64
        there = np.array([each is not None for each in values], np.bool_)
        return np.array([0 if each is None else each for each in values], type), there
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return Integers.of(values)


# ------------------------------------------------------------------------------------------------- rows together


def taken(column: Column, rows: Int64Array) -> Column:
    """Some rows of a column."""
    if isinstance(column, tuple):
        values, there = column
        return values[rows], None if there is None else there[rows]
    return column[rows]


def merged_runs(key: ComponentKey, column: Column, starts: Int64Array) -> Column:
    """Each run of rows added up: disjoint sets of trends together.

    Parameters
    ----------
    starts : int64 array of shape (runs,)
        The first row of each run, ascending, from 0.
    """
    if isinstance(column, ScaledDoubles):
        return _summed(column, starts)
    if isinstance(column, Sets):
        return column.united(starts)
    if key.kind == "registers":
        return np.maximum.reduceat(column, starts)
    if key.kind == "present":
        return np.logical_or.reduceat(column, starts)
    if key.kind.startswith(("least", "greatest")):
        values, there = column[0], np.ones(len(column[0]), np.bool_) if column[1] is None else column[1]
        choose, end = (np.minimum, 1) if key.kind.startswith("least") else (np.maximum, -1)
        neutral = end * np.inf if values.dtype == np.float64 else np.iinfo(np.int64).max if end > 0 else -(2**63)
        return choose.reduceat(np.where(there, values, neutral), starts), np.logical_or.reduceat(there, starts)
    ends = np.append(starts[1:], len(column))
    if not isinstance(column, Integers):
        most = max(int(column.max()), -int(column.min()))
        if most * int((ends - starts).max()) < 1 << 63:
            return np.add.reduceat(column, starts)
    values = listed(column)
    return columned(key, [sum(values[a:b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])


def _summed(numbers: ScaledDoubles, starts: Int64Array) -> ScaledDoubles:
    """Sums of scaled doubles over runs of rows."""
    mantissas, exponents = numbers.mantissas, numbers.exponents
    most = np.maximum.reduceat(np.where(mantissas == 0, np.iinfo(np.int64).min >> 1, exponents), starts)
    lengths = np.diff(np.append(starts, len(mantissas)))
    shifts = np.maximum(np.where(mantissas == 0, 0, exponents - np.repeat(most, lengths)), _LOST)
    with np.errstate(invalid="ignore"):  # the sum of two infinities may be none
        return _normal(np.add.reduceat(np.ldexp(mantissas, shifts.astype(np.int32)), starts), most)


def _normal(mantissas: Doubles, exponents: Int64Array) -> ScaledDoubles:
    """`hamlet.planner.scaled.normal` of arrays."""
    plain = (mantissas != 0) & np.isfinite(mantissas)
    shifts = np.where(plain, (np.frexp(mantissas)[1].astype(np.int64) + _STEP // 2) // _STEP * _STEP, 0)
    return ScaledDoubles(np.ldexp(mantissas, -shifts.astype(np.int32)), np.where(plain, exponents + shifts, 0))


# -------------------------------------------------------------------------------------------------- result values


def read(item: ReturnItem, columns: Sequence[Column]) -> Values:
    """One result column from the components of groups and windows.

    Parameters
    ----------
    item : ReturnItem
        Of an aggregate.
    columns : sequence of Column
        Of the components that `hamlet.planner.aggregates.needed` says of the aggregate.

    Returns
    -------
    Values
        Of int, float or decimal.Decimal, the last only for what is beyond the range of doubles.
    """
    assert isinstance(item.value, Aggregate)
    column: Column = columns[0]
    valid: Bools | None = None
    match item.value.function:
        case "SUM":
            valid = columns[1]
        case "AVG":
            column, valid = _quotients(column, columns[1])
        case "MIN" | "MAX":
            column, valid = column
        case "COUNT_DISTINCT":
            column = column.counts()
        case "APPROX_COUNT_DISTINCT":
            column = estimates(column)
    if item.log2:
        return _log2(column, valid)
    return Values(column.presented() if isinstance(column, ScaledDoubles) else column, valid)


def read_one(item: ReturnItem, *components: Component) -> int | float | Decimal | None:
    """The value of one RETURN item of one row, from components as `listed` gives them."""
    assert isinstance(item.value, Aggregate)
    value = components[0]
    if item.value.function == "SUM" and not components[1]:
        return None
    if item.value.function == "AVG":
        value = _quotient(value, components[1])
    if item.value.function == "COUNT_DISTINCT":
        value = len(value)
    if item.value.function == "APPROX_COUNT_DISTINCT":
        value = int(estimates(np.frombuffer(value, np.uint8)[None])[0])
    if item.log2:
        return None if value is None else _log2_of(value)
    return scaled.presented(value) if isinstance(value, tuple) else value


def _quotient(total: int | scaled.Scaled, number: int | scaled.Scaled) -> float | scaled.Scaled | None:
    """An average; None where it is over nothing."""
    if not (number[0] if isinstance(number, tuple) else number):
        return None
    if isinstance(number, int):
        # of integers Python finds the double nearest to the quotient, whatever their size
        return total / number if isinstance(total, int) else scaled.over(total, scaled.of_integer(number))
    assert not isinstance(total, int)
    return scaled.over(total, number)


def _quotients(total: Column, number: Column) -> tuple[Column, Bools]:
    """Averages (doubles, or scaled ones), and where there is one."""
    if isinstance(total, ScaledDoubles):
        divisor = _scaled(number)
        there = divisor.mantissas != 0
        return _over(total, ScaledDoubles(np.where(there, divisor.mantissas, 1.0), divisor.exponents)), there
    if not isinstance(total, Integers) and not isinstance(number, Integers):
        there = number != 0
        if _are_doubles(total) and _are_doubles(number):
            return total / np.where(there, number, 1), there
    quotients = [_quotient(a, b) for a, b in zip(total.tolist(), number.tolist(), strict=True)]
    there = np.array([each is not None for each in quotients], np.bool_)
    return np.array([0.0 if each is None else each for each in quotients], np.float64), there


def _scaled(numbers: Column) -> ScaledDoubles:
    """Numbers of at least 0 as scaled doubles."""
    if isinstance(numbers, ScaledDoubles):
        return numbers
    if isinstance(numbers, Integers):
        return numbers.scaled()
    return _normal(numbers.astype(np.float64), np.zeros(len(numbers), np.int64))


def _are_doubles(numbers: Int64Array) -> bool:
    """Whether all integers are doubles too."""
    return not len(numbers) or max(int(numbers.max()), -int(numbers.min())) <= _EXACT_DOUBLE


def _over(a: ScaledDoubles, b: ScaledDoubles) -> ScaledDoubles:
    return _normal(a.mantissas / b.mantissas, a.exponents - b.exponents)


def _log2(column: Column, valid: Bools | None) -> Values:
    """Binary logarithms of numbers of any size; NULL for values <= 0."""
    if isinstance(column, (Integers, ScaledDoubles)):
        found, above = column.logarithms()
    else:
        found, above = logarithms(column.astype(np.float64, copy=False))
    return Values(found, above if valid is None else valid & above)


def _log2_of(value: int | float | scaled.Scaled) -> float | None:
    if (value[0] if isinstance(value, tuple) else value) <= 0:  # NaN is not
        return None
    return scaled.log2(value) if isinstance(value, tuple) else math.log2(value)
