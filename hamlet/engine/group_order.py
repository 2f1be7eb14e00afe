"""The order of groups: values ascending, NULL first, as small numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from hamlet.engine.keys import KeyIndex
from hamlet.input.buffers import from_texts, to_numpy
from hamlet.input.columns import Int64Array
from hamlet.language.schema import nanoseconds

Int32Array = npt.NDArray[np.int32]

_MANY = 16  # events for each partition, before their order is worth knowing
_FEW = 8  # times as many partitions as rows are not ranked for these rows


class Ranks:
    """Ranks of partitions by some of their attributes; partitions of one group have one rank.

    Parameters
    ----------
    index : KeyIndex
    places : tuple of int
        Of the grouping attributes among those of the partition, in the order of GROUP-BY.
    """

    def __init__(self, index: KeyIndex, places: tuple[int, ...]) -> None:
        self._index = index
        self._places = places
        self._version: tuple[int, int] | None = None
        self._ranks: Int64Array = np.zeros(0, np.int64)
        self._count = 0
        self._sequence: tuple[tuple[int, int], Int32Array, Int32Array] | None = None

    def of(self, keys: Int64Array) -> tuple[Int64Array, Int64Array, int]:
        """Where in an array the rank of each key's group stands, the array, and how many ranks there are at most."""
        if not self._places:
            return np.zeros(len(keys), np.int64), np.zeros(1, np.int64), 1
        if self._version != self._index.version and _FEW * len(keys) < self._index.size:
            distinct, places = np.unique(keys, return_inverse=True)
            ranks, count = self._ranked(distinct)
            return places, ranks, count
        return keys, self.table, self._count

    def are_worth(self, rows: int) -> bool:
        """Whether ranking all partitions pays for so many rows, or has been done."""
        return self._version == self._index.version or _FEW * rows >= self._index.size

    def sequence(self, events: int) -> tuple[Int32Array, Int32Array] | None:
        """The place of each partition by its rank, and the partition of each place.

        None where there are no groups, or so many partitions that to find it does not pay for so many events.
        """
        if not self._places:
            return None
        if self._sequence is None or self._sequence[0] != self._index.version:
            if _MANY * self._index.size > events:
                return None
            order = np.argsort(self.table, kind="stable").astype(np.int32)
            places = np.empty_like(order)
            places[order] = np.arange(len(order), dtype=np.int32)
            self._sequence = self._index.version, places, order
        return self._sequence[1:]

    @property
    def limit(self) -> int:
        """A number above all ranks of `table`."""
        return max(1, self._count)

    @property
    def table(self) -> Int64Array:
        """The rank of every partition's group, by number."""
        if self._version != self._index.version:
            numbers = self._index.numbers
            self._ranks = np.zeros(self._index.size, np.int64)
            if self._places:
                self._ranks[numbers], self._count = self._ranked(numbers)
            self._version = self._index.version
        return self._ranks

    def _ranked(self, numbers: Int64Array) -> tuple[Int64Array, int]:
        """Ranks among these partitions, and how many there are."""
        ranks, count = np.zeros(len(numbers), np.int64), 1
        for place in self._places:
            codes, valid, objects = self._index.codes(place, numbers)
            if objects is not None:
                codes = ordinals(codes, valid, objects)
            distinct, own = np.unique(codes, return_inverse=True)
            own = np.where(valid != 0, own + 1, 0)
            ranks, count = ranks * (len(distinct) + 1) + own, count * (len(distinct) + 1)
            if count > 4 * len(numbers) + 1024 or len(self._places) > 1:
                found, ranks = np.unique(ranks, return_inverse=True)
                count = len(found)
        return ranks, count


def ordinals(codes: Int64Array, valid: npt.NDArray[np.uint8], objects: Sequence[Any]) -> Int64Array:
    """Numbers in the order of the objects that codes stand for."""
    used = np.unique(codes[valid != 0])
    values = [objects[code] for code in used.tolist()]
    ordinal = np.zeros(len(objects) or 1, np.int64)
    ordinal[used[_sorted_places(values)]] = np.arange(len(used))
    return ordinal[codes]


def _sorted_places(values: list[Any]) -> Int64Array:
    if values and all(type(value) is str for value in values):  # UTF-8 sorts as code points do
        with_places = pc.sort_indices(from_texts(values))
        return to_numpy(with_places).astype(np.int64)
    if any(isinstance(value, np.timedelta64) for value in values):
        values = [nanoseconds(value) for value in values]
    return np.array(sorted(range(len(values)), key=values.__getitem__), np.int64)


def sort_key(group: Iterable[Any]) -> tuple[tuple[bool, Any], ...]:
    """Group values ascending, NULL first."""
    return tuple((value is not None, 0 if value is None else value) for value in group)
