"""Columns of sets of values: exact ones, and the registers of HyperLogLog sketches.

Source: Flajolet et al. 2007 (HyperLogLog); Ertl 2017, arXiv 1702.01284, Algorithm 6 (the estimate).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.input.columns import Int64Array

Registers = npt.NDArray[np.uint8]  # shape (rows, 4096)

MOST_ZEROS = 62  # a register holds the zeros that its hash begins with, and 1


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """A set of values per row.

    Attributes
    ----------
    codes : int64 array
        The values of all rows, and perhaps of others.
    starts, sizes : int64 arrays of shape (rows,)
        Where the values of each row begin, and how many there are.
    objects : sequence or None
        What codes stand for; None for themselves.
    floating : bool
        Whether codes are the bits of doubles.
    """

    codes: Int64Array
    starts: Int64Array
    sizes: Int64Array
    objects: Sequence[Any] | None = None
    floating: bool = False

    @classmethod
    def of(cls, sets: Sequence[frozenset[Any]]) -> Sets:
        """A column of Python sets."""
        objects = list(dict.fromkeys(value for each in sets for value in each))
        numbers = {value: number for number, value in enumerate(objects)}
        codes = np.array([numbers[value] for each in sets for value in each], np.int64)
        sizes = np.array([len(each) for each in sets], np.int64)
        return cls(codes, np.cumsum(sizes) - sizes, sizes, objects)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, rows: Int64Array) -> Sets:
        return Sets(self.codes, self.starts[rows], self.sizes[rows], self.objects, self.floating)

    def tolist(self) -> list[frozenset[Any]]:
        """The values as Python objects."""
        values: Sequence[Any] = (self.codes.view(np.float64) if self.floating else self.codes).tolist()
        pairs = zip(self.starts.tolist(), self.sizes.tolist(), strict=True)
        rows = (values[start : start + size] for start, size in pairs)
        if self.objects is None:
            return [frozenset(row) for row in rows]
        return [frozenset(map(self.objects.__getitem__, row)) for row in rows]  # others' codes stand for nothing

    def counts(self) -> Int64Array:
        """How many values each row has."""
        return self.sizes

    def united(self, starts: Int64Array) -> Sets:
        """Each run of rows as one; `starts` has the first row of each run, ascending, from 0."""
        runs = np.searchsorted(starts, np.arange(len(self)), "right") - 1
        ends = np.cumsum(self.sizes)
        places = np.arange(int(self.sizes.sum())) + np.repeat(self.starts - (ends - self.sizes), self.sizes)
        owners, codes = np.repeat(runs, self.sizes), self.codes[places]
        order = np.lexsort((codes, owners))
        owners, codes = owners[order], codes[order]
        fresh = np.ones(len(codes), np.bool_)
        fresh[1:] = (owners[1:] != owners[:-1]) | (codes[1:] != codes[:-1])
        sizes = np.bincount(owners[fresh], minlength=len(starts)).astype(np.int64)
        return Sets(codes[fresh], np.cumsum(sizes) - sizes, sizes, self.objects, self.floating)


def set_columns(
    tables: Sequence[tuple[int, ...]],
    sizes: Int64Array,
    codes: Int64Array,
    registers: Registers,
    texts: Sequence[str] | None,
) -> list[Sets | Registers]:
    """Sets of values as the matching operator gives them, a column each.

    Parameters
    ----------
    tables : sequence of (variable, column, approximate, floating, text)
        The exact sets first.
    sizes, codes, registers : arrays
        From `Matching.sets`.
    texts : sequence of str or None
        What the numbers of strings stand for.
    """
    exact = [each for each in tables if not each[2]]
    starts = (np.cumsum(sizes.ravel()) - sizes.ravel()).reshape(sizes.shape)
    found: list[Sets | Registers] = [
        Sets(codes, starts[:, place], sizes[:, place], texts if text else None, bool(floating))
        for place, (_, _, _, floating, text) in enumerate(exact)
    ]
    return found + [registers[:, place] for place in range(registers.shape[1])]


def below(columns: Sequence[Sets | Registers]) -> Sets | Registers:
    """Columns of one run, one below the other."""
    sets = [each for each in columns if isinstance(each, Sets)]
    if not sets:
        return np.concatenate([each for each in columns if not isinstance(each, Sets)])
    if any(each.objects and not isinstance(each.objects[0], str) for each in sets):  # each has codes of its own
        return Sets.of([row for each in sets for row in each.tolist()])
    lengths = np.array([len(each.codes) for each in sets], np.int64)
    offsets = np.cumsum(lengths) - lengths
    objects = max((each.objects for each in sets if each.objects is not None), key=len, default=None)
    return Sets(
        np.concatenate([each.codes for each in sets]),
        np.concatenate([each.starts + offset for each, offset in zip(sets, offsets, strict=True)]),
        np.concatenate([each.sizes for each in sets]),
        objects,
        sets[0].floating,
    )


def estimates(registers: Registers) -> Int64Array:
    """About how many values each row has seen; the standard error is 1.6 %.

    Parameters
    ----------
    registers : uint8 array of shape (rows, m)

    Returns
    -------
    int64 array of shape (rows,)
    """
    rows, m = registers.shape
    if not rows:
        return np.zeros(0, np.int64)
    cells = np.minimum(registers, MOST_ZEROS + 1).astype(np.int64) + (np.arange(rows) * 64)[:, None]
    counts = np.bincount(cells.ravel(), minlength=64 * rows).reshape(rows, 64).astype(np.float64)
    sums = m * _tau(1 - counts[:, MOST_ZEROS + 1] / m)
    for zeros in range(MOST_ZEROS, 0, -1):
        sums = 0.5 * (sums + counts[:, zeros])
    sums += m * _sigma(counts[:, 0] / m)
    found = np.where(np.isinf(sums), 0.0, m * m / (2 * math.log(2) * np.where(sums == 0, 1.0, sums)))
    return np.rint(found).astype(np.int64)


def _sigma(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The sum of x^(2^k) 2^(k-1) over k from 1, and x; infinite at 1."""
    whole = x == 1
    power, weight, found = np.where(whole, 0.0, x), 1.0, np.where(whole, 0.0, x)
    for _ in range(64):
        power = power * power
        found = found + power * weight
        weight += weight
    return np.where(whole, np.inf, found)


def _tau(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The sum of (1 - x^(2^-k))^2 2^-k over k from 1, taken from 1 - x, by 3; 0 at 0 and 1."""
    root, weight, found = x, 1.0, 1 - x
    for _ in range(64):
        root = np.sqrt(root)
        weight *= 0.5
        found = found - (1 - root) ** 2 * weight
    return np.where((x == 0) | (x == 1), 0.0, found / 3)
