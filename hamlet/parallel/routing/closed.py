"""Closed policies in slices of time: where to cut, and how far a slice has to see beyond its own time-points."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.syntax import formula as mfotl

_FUTURE = ("NEXT", "EVENTUALLY", "ALWAYS")
_COUNTED = (("tp", 1), ("tpts", 2))  # their values count the time-points from the first one of the stream


def reach(formula: mfotl.Formula, per_second: int) -> tuple[int | None, int | None]:
    """How far back and ahead in time the value of a formula depends on events, in ticks; None is without end."""
    if isinstance(formula, mfotl.Let):  # the definition may stand anywhere in the body
        inner = [reach(each, per_second) for each in mfotl.children(formula)]
        if isinstance(formula, mfotl.LetPast):
            return None, _plus(*(each[1] for each in inner))
        return _plus(*(each[0] for each in inner)), _plus(*(each[1] for each in inner))
    past, future = 0, 0
    found = [reach(each, per_second) for each in mfotl.children(formula)]
    below_past: int | None = _most([each[0] for each in found])
    below_future: int | None = _most([each[1] for each in found])
    own: tuple[int | None, int | None] = (past, future)
    match formula:
        case mfotl.Predicate(name, arguments):
            return (None, None) if (name, len(arguments)) in _COUNTED else (0, 0)
        case mfotl.Since(interval, _, _) | mfotl.Trigger(interval, _, _) | mfotl.TemporalMatch("MATCHP", interval, _):
            own = (interval.ticks(per_second)[1], 0)
        case mfotl.Until(interval, _, _) | mfotl.Release(interval, _, _) | mfotl.TemporalMatch(_, interval, _):
            own = (0, interval.ticks(per_second)[1])
        case mfotl.Temporal(operator, interval, _):
            high = interval.ticks(per_second)[1]
            own = (0, high) if operator in _FUTURE else (high, 0)
    return _plus(own[0], below_past), _plus(own[1], below_future)


def _most(values: Sequence[int | None]) -> int | None:
    return None if None in values else max((each for each in values if each is not None), default=0)


def _plus(*values: int | None) -> int | None:
    return None if None in values else sum(each for each in values if each is not None)


@dataclass(frozen=True)
class Range:
    """The time-points of a slice.

    Attributes
    ----------
    first, last : int
        Times of its own: ``first <= time <= last``.
    begin, end : int
        Times of the events that it reads.
    """

    first: int
    last: int
    begin: int
    end: int

    def cut(self, chunk: LogChunk) -> LogChunk | None:
        """The time-points of a chunk that it reads; None where there are none."""
        low = int(np.searchsorted(chunk.times, self.begin))
        high = int(np.searchsorted(chunk.times, self.end, side="right"))
        if low >= high:
            return None
        relations = {}
        for key, (points, columns) in chunk.relations.items():
            start, stop = np.searchsorted(points, (low, high)).tolist()
            if start < stop:
                part = tuple(column.slice(start, stop - start) for column in columns)
                relations[key] = (points[start:stop] - low, part)
        return LogChunk(chunk.first + low, chunk.times[low:high], relations, chunk.offset)


def ranges(
    chunks: Iterable[LogChunk], past: int | None, future: int | None, slices: int, last_time: int = (1 << 62)
) -> list[Range]:
    """Ranges of time with about equal numbers of events; one only where the formula sees without end.

    Parameters
    ----------
    chunks : iterable of LogChunk
        The whole stream.
    past, future : int or None
        As `reach` gives them.
    slices : int
    last_time : int
        Later than all.
    """
    everything = [Range(-last_time, last_time, -last_time, last_time)]
    if past is None or future is None or slices == 1:
        return everything
    times, weights = _weights(chunks)
    if not len(times):
        return everything
    sums = np.cumsum(weights)
    places = np.searchsorted(sums, sums[-1] * np.arange(1, slices) / slices)
    cuts = sorted(set(times[np.minimum(places, len(times) - 1)].tolist()))
    edges = [-last_time, *cuts, last_time]
    found = []
    for low, high in itertools.pairwise(edges):
        first = low if low == -last_time else low + 1
        begin = first if first == -last_time else first - past
        # One step more: that a time-point lies beyond decides what has not been met.
        end = high if high == last_time else high + future
        found.append(Range(first, high, begin, end))
    return found


def _weights(chunks: Iterable[LogChunk]) -> tuple[np.ndarray, np.ndarray]:
    times: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    for chunk in chunks:
        if not len(chunk.times):
            continue
        values, inverse = np.unique(chunk.times, return_inverse=True)
        counts = np.bincount(inverse, minlength=len(values)).astype(np.float64)
        for points, _ in chunk.relations.values():
            counts += np.bincount(inverse[points], minlength=len(values))
        times.append(values)
        weights.append(counts)
    if not times:
        return np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate(times), np.concatenate(weights)


def own(rows_times: np.ndarray, part: Range) -> np.ndarray:
    """Which rows are of a slice's own time-points, by their times."""
    found: np.ndarray = (rows_times >= part.first) & (rows_times <= part.last)
    return found


def cut_chunks(chunks: Iterable[LogChunk], part: Range) -> Iterator[LogChunk]:
    """The time-points that a slice reads."""
    for chunk in chunks:
        found = part.cut(chunk)
        if found is not None:
            yield found
