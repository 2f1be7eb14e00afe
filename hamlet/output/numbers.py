"""Columns of numbers that are no plain arrays: beyond 64 bits, beyond doubles, or the same for many rows.

They stay as they are until somebody asks for Python's numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.input.columns import Int64Array, fresh
from hamlet.kernel import column_builder
from hamlet.language.schema import NO_TIME
from hamlet.planner import scaled

Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(slots=True, eq=False)
class Runs:
    """Numbers each of which stands in several rows, one below the other: windows of result rows.

    Attributes
    ----------
    values : int64 array of shape (runs,)
    counts : int64 array of shape (runs,)
        Rows of each.
    """

    values: Int64Array
    counts: Int64Array
    _rows: Int64Array | None = None  # the number of each row, once somebody has asked for it
    _size: int = -1  # how many rows there are, once somebody has asked for it
    _edges: dict[tuple[int, int], tuple[Runs, Runs]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Sequence[int | None] | Int64Array) -> Runs:
        """A column of integers, and of None where there is no time."""
        if isinstance(rows, Sequence) and None in rows:
            rows = [NO_TIME if each is None else each for each in rows]
        return cls(np.array(rows, np.int64), np.ones(len(rows), np.int64))

    def __len__(self) -> int:
        if self._size < 0:
            self._size = int(self.counts.sum())
        return self._size

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.column().astype(np.int64 if dtype is None else dtype, copy=copy is True)

    def column(self) -> Int64Array:
        """The number of each row; made once."""
        if self._rows is None:
            self._rows = fresh(len(self), np.int64)
            column_builder.repeated(self.values, self.counts, self._rows)
            self._rows.flags.writeable = False
        return self._rows

    def edges(self, within: int, slide: int) -> tuple[Runs, Runs]:
        """When the windows of these numbers begin and end, in ticks; found once for queries that share them."""
        found = self._edges.get((within, slide))
        if found is None:
            starts = self.values * slide
            found = self._edges[within, slide] = Runs(starts, self.counts), Runs(starts + within, self.counts)
        return found

    def tolist(self) -> list[Any]:
        """The number of each row; None where it is no time."""
        values = self.values.tolist()
        if NO_TIME in values:
            values = [None if value == NO_TIME else value for value in values]
        return list(chain.from_iterable(map(repeat, values, self.counts.tolist())))

    @property
    def missing(self) -> Bools | None:
        """In which rows there is no time, of shape (rows,); None: in none."""
        return np.repeat(self.values == NO_TIME, self.counts) if (self.values == NO_TIME).any() else None


@dataclass(frozen=True, slots=True, eq=False)
class Integers:
    """Integers of any size.

    Attributes
    ----------
    words : uint64 array
        Limbs, of other numbers too: two's complement, the least limb first.
    starts, sizes : int64 arrays of shape (rows,)
        Where the limbs of each row begin, and how many there are.
    """

    words: npt.NDArray[np.uint64]
    starts: Int64Array
    sizes: Int64Array

    @classmethod
    def of(cls, values: Sequence[int]) -> Integers:
        """A column of Python integers."""
        sizes = [(value.bit_length() >> 6) + 1 for value in values]
        pairs = zip(values, sizes, strict=True)
        raw = b"".join(value.to_bytes(8 * size, "little", signed=True) for value, size in pairs)
        counts = np.array(sizes, np.int64)
        return cls(np.frombuffer(raw, np.uint64), np.cumsum(counts) - counts, counts)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, rows: Int64Array | slice) -> Integers:
        return Integers(self.words, self.starts[rows], self.sizes[rows])

    def tolist(self) -> list[int]:
        """The values as Python integers."""
        raw = self.words.view(np.uint8).data
        places = zip((8 * self.starts).tolist(), (8 * self.sizes).tolist(), strict=True)
        return [int.from_bytes(raw[start : start + size], "little", signed=True) for start, size in places]

    def doubles(self) -> Doubles:
        """The nearest doubles, infinite beyond their range."""
        return column_builder.doubles_of(self.words, self.starts, self.sizes)

    def scaled(self) -> ScaledDoubles:
        """The values as scaled doubles; all are at least 0."""
        return ScaledDoubles(*column_builder.scaled_of(self.words, self.starts, self.sizes))

    def logarithms(self) -> tuple[Doubles, Bools]:
        """Binary logarithms, and where there is one."""
        return column_builder.logarithms_of_limbs(self.words, self.starts, self.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class ScaledDoubles:
    """Doubles with an exponent of their own (`hamlet.planner.scaled`).

    Attributes
    ----------
    mantissas : float64 array of shape (rows,)
    exponents : int64 array of shape (rows,)
    """

    mantissas: Doubles
    exponents: Int64Array

    @classmethod
    def of(cls, values: Sequence[scaled.Scaled]) -> ScaledDoubles:
        """A column of pairs."""
        return cls(np.array([each[0] for each in values], np.float64), np.array([each[1] for each in values], np.int64))

    def __len__(self) -> int:
        return len(self.mantissas)

    def __getitem__(self, rows: Int64Array | slice) -> ScaledDoubles:
        return ScaledDoubles(self.mantissas[rows], self.exponents[rows])

    def pairs(self) -> list[scaled.Scaled]:
        """The values as pairs."""
        return list(zip(self.mantissas.tolist(), self.exponents.tolist(), strict=True))

    def presented(self) -> Doubles | BeyondDoubles:
        """The values as plain doubles where all are in their range, else with the scaled ones beside them."""
        found, beyond = column_builder.presented(self.mantissas, self.exponents)
        return BeyondDoubles(found, self) if beyond else found

    def logarithms(self) -> tuple[Doubles, Bools]:
        """Binary logarithms, and where there is one."""
        return column_builder.logarithms(self.mantissas, self.exponents)


@dataclass(frozen=True, slots=True, eq=False)
class BeyondDoubles:
    """Result values some of which are beyond the range of doubles.

    Attributes
    ----------
    nearest : float64 array of shape (rows,)
        Infinite for those.
    values : ScaledDoubles
    """

    nearest: Doubles
    values: ScaledDoubles

    def __len__(self) -> int:
        return len(self.nearest)

    def __getitem__(self, rows: Int64Array | slice) -> BeyondDoubles:
        return BeyondDoubles(self.nearest[rows], self.values[rows])

    @property
    def beyond(self) -> Bools:
        """Which values are beyond doubles."""
        return np.isinf(self.nearest) & np.isfinite(self.values.mantissas)

    def tolist(self) -> list[float | Decimal]:
        """The values as Python has them: Decimal beyond doubles."""
        found: list[float | Decimal] = self.nearest.tolist()
        mantissas, exponents = self.values.mantissas, self.values.exponents
        for row in np.nonzero(self.beyond)[0].tolist():
            found[row] = scaled.presented((float(mantissas[row]), int(exponents[row])))
        return found
