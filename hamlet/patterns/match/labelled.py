"""Matches with the variables of their rows, and where navigation leads in them; all matches at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from hamlet.patterns.clause.expressions import Navigation

Numbers = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]


@dataclass
class Labelled:
    """Matches; the rows of all of them stand one behind the other, a place there is called a position.

    Attributes
    ----------
    start, length, number, partition : int64 arrays of shape (matches,)
        First row, rows, number in the partition, partition.
    variable : int32 array of shape (positions,)
    excluded : bool array of shape (positions,)
    borders : int64 array of shape (partitions + 1,)
        First rows of partitions.
    unmatched : int64 array of shape (rows,) or None
        The rows of no match that are shown; None for all of them.
    """

    start: Numbers
    length: Numbers
    number: Numbers
    partition: Numbers
    variable: npt.NDArray[np.int32]
    excluded: Bits
    borders: Numbers
    unmatched: Numbers | None = None
    first: Numbers = field(init=False)
    _ranks: dict[tuple[int, ...], tuple[Numbers, Numbers]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.first = np.zeros(len(self.start) + 1, np.int64)  # first position of each match, and the end
        np.cumsum(self.length, out=self.first[1:])

    def __len__(self) -> int:
        return len(self.start)

    def match_of_positions(self) -> Numbers:
        """The match of each position; shape (positions,)."""
        return np.repeat(np.arange(len(self), dtype=np.int64), self.length)

    def rows_of_positions(self) -> Numbers:
        """The row at each position; shape (positions,)."""
        return np.arange(self.first[-1], dtype=np.int64) + np.repeat(self.start - self.first[:-1], self.length)

    def ranked(self, members: Sequence[int]) -> tuple[Numbers, Numbers]:
        """The positions of some variables, and how many of them come before each position and before the end."""
        key = tuple(sorted(members))
        found = self._ranks.get(key)
        if found is None:
            table = np.zeros(int(max(self.variable.max(initial=0), max(key, default=0))) + 1, np.bool_)
            table[list(key)] = True
            chosen = table[self.variable]
            before = np.zeros(len(chosen) + 1, np.int64)
            np.cumsum(chosen, out=before[1:])
            found = self._ranks[key] = (np.flatnonzero(chosen), before)
        return found


@dataclass
class Points:
    """Where expressions are evaluated: at a row of a match, or at none.

    Attributes
    ----------
    match : int64 array of shape (points,)
        The match, or -1.
    position : int64 array of shape (points,)
        The position of the current row, -1 where there is none: at empty matches and rows of no match.
    final : bool
        Whether what is not said to be RUNNING or FINAL sees the whole match.
    """

    match: Numbers
    position: Numbers
    final: bool


def target(
    found: Labelled, points: Points, reading: Navigation, members: Sequence[int] | None
) -> tuple[Numbers, Numbers]:
    """Where a navigation leads.

    Parameters
    ----------
    found : Labelled
    points : Points
    reading : Navigation
    members : sequence of int or None
        The variables whose rows count, None for all.

    Returns
    -------
    (int64 array of shape (points,), int64 array of shape (points,))
        The row, and its position in the match; -1 for none.
    """
    match = np.maximum(points.match, 0)
    there = (points.position >= 0) & (points.match >= 0)
    if not len(found):
        nothing = np.full(len(points.match), -1, np.int64)
        return nothing, nothing
    begin, end = found.first[match], found.first[match + 1]
    is_final = points.final if reading.mode is None else reading.mode == "FINAL"
    limit = end if is_final else np.where(there, points.position + 1, begin)
    if members is None:
        position = limit - 1 - reading.inwards if reading.last else begin + reading.inwards
        there = there & (position >= begin) & (position < limit)
    else:
        places, before = found.ranked(members)
        low, high = before[begin], before[limit]
        rank = high - 1 - reading.inwards if reading.last else low + reading.inwards
        there = there & (rank >= low) & (rank < high)
        position = places[np.where(there, rank, 0)] if len(places) else np.zeros(len(match), np.int64)
    row = np.where(there, found.start[match] + position - begin, -1) + np.where(there, reading.step, 0)
    partition = found.partition[match]
    there = there & (row >= found.borders[partition]) & (row < found.borders[partition + 1])
    position = position + reading.step
    inside = there & (position >= begin) & (position < end)
    return np.where(there, row, -1), np.where(inside, position, -1)


def count(found: Labelled, points: Points, mode: str | None, members: Sequence[int] | None) -> Numbers:
    """How many rows of some variables a point sees; shape (points,)."""
    if not len(found):
        return np.zeros(len(points.match), np.int64)
    match = np.maximum(points.match, 0)
    begin, end = found.first[match], found.first[match + 1]
    is_final = points.final if mode is None else mode == "FINAL"
    limit = end if is_final else np.where(points.position >= 0, points.position + 1, begin)
    if members is None:
        return limit - begin
    _, before = found.ranked(members)
    return before[limit] - before[begin]
