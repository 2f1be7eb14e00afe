"""Who owns what: the slice of every partition of a class, or of every window.

An owner answers two questions, and both from its own plain data, so that all tasks answer alike: where an event goes
that carries some of the keys (`targets`), and whether a partition belongs to a slice (`owner`). The first may name too
many slices, never too few: for every partition that agrees with the event, its owner is among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.parallel.routing.shares import Places
from hamlet.planner.timeline import Line, Shifted

Key = tuple[Any, ...]


def hashed(encoded: bytes) -> int:
    """A hash of a key's bytes that is the same in every process, from 0 to 2^63 - 1."""
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "little") >> 1


@dataclass(frozen=True)
class KeyOwner:
    """Partitions by the values of some attributes; events that lack one of these go to every slice.

    Attributes
    ----------
    places : tuple of int
        Of these attributes among those of the class. Without any, everything is in one bucket.
    buckets : sequence of int
        The slice of every bucket; a key's bucket is its hash modulo their number.
    heavy : mapping of bytes to int
        Keys that have a slice of their own choice.
    """

    places: Places
    buckets: Sequence[int]
    heavy: Mapping[bytes, int] = field(default_factory=dict)

    def read(self, carried: Places) -> Places:
        """The places of a partial key that decide where it goes."""
        return self.places if set(self.places) <= set(carried) else ()

    def targets(self, places: Places, encoded: Sequence[bytes]) -> tuple[int, ...]:
        """The slices of a key, given as the bytes of its values at `places`."""
        if len(places) < len(self.places):
            return tuple(sorted({*self.buckets, *self.heavy.values()}))
        return (self._slice(b"".join(encoded)),)

    def owner(self, encoded: Sequence[bytes]) -> int:
        """The slice of a partition, given as the bytes of all its values."""
        return self._slice(b"".join(encoded[place] for place in self.places))

    def _slice(self, key: bytes) -> int:
        found = self.heavy.get(key)
        return self.buckets[hashed(key) % len(self.buckets)] if found is None else found


@dataclass(frozen=True)
class Grid:
    """The cells of a hypercube.

    Attributes
    ----------
    shares : tuple of int, shape (attributes,)
        Steps of each dimension.
    slices : sequence of int, shape (product of shares,)
        The slice of each cell, the last attribute's step running fastest.
    """

    shares: Places
    slices: Sequence[int]

    def step(self, place: int, encoded: bytes) -> int:
        """The step of a value in the dimension of its attribute."""
        return hashed(bytes([place % 256]) + encoded) % self.shares[place]

    def cell(self, steps: Sequence[int]) -> int:
        """The slice of a cell."""
        number = 0
        for share, step in zip(self.shares, steps, strict=True):
            number = number * share + step
        return self.slices[number]


@dataclass(frozen=True)
class GridOwner:
    """Partitions of a class whose types carry different keys: a grid for each set of attributes with heavy values.

    Attributes
    ----------
    grids : mapping of tuple of int to Grid
        Set of attributes -> the grid of partitions that are heavy in exactly these; for every subset of the attributes
        with heavy values.
    heavy : sequence of set of bytes, shape (attributes,)
        Heavy values of each attribute.

    Source: Schneider et al. (STTT 2021) §5, Algorithm 2.
    """

    grids: Mapping[Places, Grid]
    heavy: Sequence[frozenset[bytes]]

    def read(self, carried: Places) -> Places:
        """The places of a partial key that decide where it goes."""
        return carried

    def targets(self, places: Places, encoded: Sequence[bytes]) -> tuple[int, ...]:
        """The slices of all cells that agree with a partial key, in every grid that may hold its partitions."""
        given = dict(zip(places, encoded, strict=True))
        surely = {place for place, value in given.items() if value in self.heavy[place]}
        maybe = [place for place, values in enumerate(self.heavy) if values and place not in given]
        found: set[int] = set()
        for more in chain.from_iterable(combinations(maybe, size) for size in range(len(maybe) + 1)):
            grid = self.grids[tuple(sorted(surely.union(more)))]
            steps = [
                (grid.step(place, given[place]),) if place in given else range(share)
                for place, share in enumerate(grid.shares)
            ]
            found.update(map(grid.cell, product(*steps)))
        return tuple(sorted(found))

    def owner(self, encoded: Sequence[bytes]) -> int:
        """The slice of a partition, given as the bytes of all its values."""
        held = tuple(place for place, value in enumerate(encoded) if value in self.heavy[place])
        grid = self.grids[held]
        return grid.cell([grid.step(place, value) for place, value in enumerate(encoded)])


@dataclass(frozen=True)
class TimeOwner:
    """Windows by the time at which they begin: one giant group cut along time.

    Attributes
    ----------
    cuts : sequence of int, ascending
        Ticks: slice i owns the windows that begin from ``cuts[i - 1]`` on and before ``cuts[i]``.
    slices : sequence of int, shape (len(cuts) + 1,)
        The slice of each range.
    windows : sequence of (int, int)
        Ticks: (within, slide) of all queries of the class.
    line : Line
        That of the class, on which all of these are measured.

    Notes
    -----
    An event goes to every range in which a window begins that holds it. Chunks overlap by less than the longest window,
    and not at all where windows tumble and a cut stands between two of them.
    """

    cuts: Sequence[int]
    slices: Sequence[int]
    windows: Sequence[tuple[int, int]]
    line: Line = Shifted()

    def ranges(self, times: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """First and last range whose windows may hold each time; shape (n,) each; none where last < first."""
        cuts, times = np.array(self.cuts, np.int64), self.line.places(times)
        earliest = np.min([((times - within) // slide + 1) * slide for within, slide in self.windows], axis=0)
        latest = np.max([times // slide * slide for _, slide in self.windows], axis=0)
        return np.searchsorted(cuts, earliest, side="right"), np.searchsorted(cuts, latest, side="right")

    def owners(self, starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The slice of each window, by its first tick on the line; shape (n,)."""
        places = np.searchsorted(np.array(self.cuts, np.int64), starts, side="right")
        return np.array(self.slices, np.int64)[places]


Owner = KeyOwner | GridOwner | TimeOwner
