"""Time as one more dimension of a policy's slices: blocks of time-points, each read from its own part of the input.

A policy that sees only so far back and ahead can be cut along time, whatever its variables. Where the input can be read
in parts, a task of a block reads only what its block depends on; slices of valuations read everything.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.parallel.routing.closed import Range

_READING = 0.4  # of the time that a task takes for an event: to read and to route it; the rest evaluates
EVERY_TIME = 1 << 61  # beyond all times


@dataclass(frozen=True)
class Block:
    """The time-points of a task.

    Attributes
    ----------
    range : Range
        Its own times, and those that it reads.
    before : int
        Time-points of the stream before the first that it reads.
    ordered : bool
        Whether the input is known to be in the order of time.
    """

    range: Range
    before: int
    ordered: bool = False


@dataclass(frozen=True)
class Steps:
    """The times of a stream.

    Attributes
    ----------
    times : int64 array of shape (times,)
        The distinct ones, ascending.
    points, events : int64 arrays of shape (times,)
        Time-points and events up to the end of each time.
    """

    times: npt.NDArray[np.int64]
    points: npt.NDArray[np.int64]
    events: npt.NDArray[np.int64]

    def before(self, time: int) -> int:
        """Time-points before a time."""
        place = int(np.searchsorted(self.times, time))
        return int(self.points[place - 1]) if place else 0


def steps_of(keys: Iterable[tuple[Any, Any]], by_step: bool) -> Steps:
    """Count the time-points of a stream.

    Parameters
    ----------
    keys : iterable of (int64 array, int64 array or None)
        Times and orders of the events, in order, batch by batch.
    by_step : bool
        Whether the events of one time and order are one time-point; else each event is one.
    """
    times, points, events = [], [], []
    last: tuple[int, int | None] | None = None
    for stamps, orders in keys:
        new = np.ones(len(stamps), np.bool_)
        if by_step:
            new[1:] = stamps[1:] != stamps[:-1]
            if orders is not None:
                new[1:] |= orders[1:] != orders[:-1]
            new[0] = last != (int(stamps[0]), None if orders is None else int(orders[0]))
        last = int(stamps[-1]), None if orders is None else int(orders[-1])
        starts = np.flatnonzero(np.diff(stamps, prepend=stamps[0] - 1))
        times.append(stamps[starts])
        points.append(np.add.reduceat(new.astype(np.int64), starts))
        events.append(np.diff(starts, append=len(stamps)))
    none = np.zeros(0, np.int64)
    distinct, places = np.unique(np.concatenate([none, *times]), return_inverse=True)
    sums = [np.bincount(places, np.concatenate([none, *each]), len(distinct)) for each in (points, events)]
    counts = [np.cumsum(each).astype(np.int64) for each in sums]
    return Steps(distinct, counts[0], counts[1])


def blocks_of(steps: Steps, past: int, future: int, count: int, borders: npt.NDArray[np.int64]) -> list[Block]:
    """About equally many events for each block.

    Parameters
    ----------
    steps : Steps
    past, future : int
        How far the policy sees, in ticks.
    count : int
        Blocks; fewer where there are fewer times.
    borders : int64 array
        First times of parts of the input, ascending: a cut is moved there where it hardly matters.
    """
    if count == 1 or len(steps.times) < 2:
        return [Block(Range(-EVERY_TIME, EVERY_TIME, -EVERY_TIME, EVERY_TIME), 0)]
    total = int(steps.events[-1])
    goals = total * np.arange(1, count) // count
    places = np.searchsorted(steps.events, goals) + 1  # of the first time behind a cut
    at_borders = np.searchsorted(steps.times, borders)
    sums = np.concatenate([[0], steps.events])
    cuts = []
    for goal, place in zip(goals.tolist(), np.minimum(places, len(steps.times) - 1).tolist(), strict=True):
        near = at_borders[(at_borders > 0) & (at_borders < len(steps.times))]
        off = np.abs(sums[near] - goal)
        best = int(np.argmin(off)) if len(near) else 0
        cuts.append(int(near[best]) if len(near) and off[best] * 20 * count <= total else place)
    firsts = [-EVERY_TIME, *steps.times[sorted(set(cuts) - {0})].tolist(), EVERY_TIME + 1]
    found = []
    for first, behind in itertools.pairwise(firsts):
        begin = first if first == -EVERY_TIME else first - past
        end = behind - 1 if behind > EVERY_TIME else behind - 1 + future
        found.append(Block(Range(first, behind - 1, begin, end), steps.before(begin)))
    return found


def blocks_and_cells(slices: int, overlap: float) -> tuple[int, int]:
    """How many blocks of time, and how many cells of valuations in each, give tasks the least work.

    Parameters
    ----------
    slices : int
        Their product.
    overlap : float
        How far the policy sees, back and ahead, as a share of the stream's time.

    Examples
    --------
    >>> blocks_and_cells(8, 0.001), blocks_and_cells(8, 1.0), blocks_and_cells(8, 0.2)
    ((8, 1), (1, 8), (4, 2))
    """

    def work(blocks: int) -> float:
        events = 1 / blocks + (overlap if blocks > 2 else overlap / 2 if blocks == 2 else 0)
        return events * (_READING + (1 - _READING) * blocks / slices)

    divisors = [each for each in range(1, slices + 1) if slices % each == 0]
    chosen = min(divisors, key=lambda blocks: (work(blocks), -blocks))
    return chosen, slices // chosen


def moved(chunks: Iterable[Any], before: int) -> Iterator[Any]:
    """Chunks whose time-points are counted from `before` on."""
    for chunk in chunks:
        yield type(chunk)(chunk.first + before, chunk.times, chunk.relations, chunk.offset)
