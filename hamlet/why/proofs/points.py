"""The time-points that a proof speaks of, and what holds in runs of them.

Behind the last time-point of a complete input stand others without events, each infinitely later; as many as the
formula can reach are made here. With an open end there is one, of which nothing is known.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Key = tuple[str, int]  # a predicate's name and arity
Row = tuple[Any, ...]
Run = tuple[int, int, bool | None]  # first and last time-point, and what a formula is there; None is unknown
_FAR = 1 << 100


class Points:
    """Time-points in order.

    Parameters
    ----------
    times : sequence of int
        Time-stamps in ticks, never decreasing.
    tables : mapping of (str, int) to sequence of (int, tuple)
        For each predicate its tuples with their time-points, ascending.
    behind : int
        How many time-points behind the last one may be spoken of.
    open_end : bool
        Whether nothing is known behind the last one.
    first : int
        The number that the first one has in the input.
    per_second : int
        Ticks of the stream's time.

    Attributes
    ----------
    times : list of int
        With those behind.
    real : int
        How many are in the input.
    """

    def __init__(
        self,
        times: Sequence[int],
        tables: Mapping[Key, Sequence[tuple[int, Row]]],
        behind: int,
        open_end: bool = False,
        first: int = 0,
        per_second: int = 1,
    ) -> None:
        self.first = first
        self.per_second = per_second
        self.real = len(times)
        self.open_end = open_end
        last = times[-1] if times else 0
        steps = 1 if open_end else behind
        self.times = [*times, *(last + (0 if open_end else _FAR * place) for place in range(1, steps + 1))]
        self._tables = {key: list(rows) for key, rows in tables.items()}
        self._starts = {key: [point for point, _ in rows] for key, rows in self._tables.items()}
        self._found: dict[tuple[Key, tuple[int, ...]], dict[Row, list[int]]] = {}

    @property
    def last(self) -> int:
        """The last time-point that may be spoken of."""
        return len(self.times) - 1

    def rows(self, key: Key, low: int, high: int) -> list[tuple[int, Row]]:
        """The tuples of a predicate at time-points from `low` to `high`."""
        starts = self._starts.get(key)
        if not starts:
            return []
        return self._tables[key][bisect_left(starts, low) : bisect_right(starts, high)]

    def points_of(self, key: Key, places: tuple[int, ...], values: Row) -> list[int]:
        """The time-points at which a tuple of the predicate has these values at these places, ascending."""
        index = self._found.get((key, places))
        if index is None:
            index = self._found[key, places] = {}
            for point, row in self._tables.get(key, ()):
                index.setdefault(typed(row[place] for place in places), []).append(point)
        return index.get(typed(values), [])

    def before(self, point: int, low: int, high: int | None) -> tuple[int, int]:
        """The first and last time-point that lies `low` to `high` ticks before this one; first > last for none."""
        time = self.times[point]
        first = 0 if high is None else bisect_left(self.times, time - high)
        return first, min(point, bisect_right(self.times, time - low) - 1)

    def behind(self, point: int, low: int, high: int | None) -> tuple[int, int]:
        """The first and last time-point that lies `low` to `high` ticks behind this one; first > last for none."""
        time = self.times[point]
        last = self.last if high is None else bisect_right(self.times, time + high) - 1
        if self.open_end and point < self.real and (high is None or time + high >= self.times[-1]):
            return min(max(point, bisect_left(self.times, time + low)), self.last), self.last
        return max(point, bisect_left(self.times, time + low)), last


def typed(values: Iterable[Any]) -> Row:
    """Values as a key that tells 4 from 4.0; every NaN is one."""
    return tuple((type(each), "nan" if each != each else each) for each in values)


def at(runs: Sequence[Run], point: int) -> bool | None:
    """What holds at a time-point that the runs cover."""
    return runs[bisect_right(runs, point, key=lambda run: run[0]) - 1][2]


def within(runs: Sequence[Run], low: int, high: int) -> list[Run]:
    """The runs from `low` to `high`, cut at both."""
    place = bisect_right(runs, low, key=lambda run: run[0]) - 1
    found = []
    while place < len(runs) and runs[place][0] <= high:
        first, last, value = runs[place]
        found.append((max(first, low), min(last, high), value))
        place += 1
    return found


def joined(runs: Iterable[Run]) -> list[Run]:
    """Runs in order, with neighbours of one value as one."""
    found: list[Run] = []
    for first, last, value in runs:
        if found and found[-1][2] is value:
            found[-1] = (found[-1][0], last, value)
        else:
            found.append((first, last, value))
    return found
