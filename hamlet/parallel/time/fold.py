"""Chunks put together in the order of time: the rows of the windows that reach beyond one chunk.

Contract
--------
**Complete up to a time.** After a chunk has been taken, all windows that end at or before its last time have been
closed, and no others. The chunk itself delivers just those that began in it and ended by then. So the rows that follow
each other are in the order of their windows, wherever the stream is cut: also where a window ends before the first
event that a partition has in a chunk, where a chunk has no event of it at all, and where a window, or the events of one
time, take more than a chunk.

What is computed is a row vector times the matrices of the chunks that a window spans.
"""

from __future__ import annotations

from collections.abc import Mapping

from hamlet.engine.keys import Key
from hamlet.errors import DataError
from hamlet.output.rows import GroupRows
from hamlet.parallel.time.chunk import Maps
from hamlet.parallel.time.probes import Entries, coordinates_of
from hamlet.planner.aggregates import Component, followed, has_trends, merged, nothing, paired
from hamlet.planner.compiled import CompiledClass, CompiledQuery
from hamlet.planner.coordinates import Coordinates, Sums

Vector = dict[int, Sums]


def applied(of: Coordinates, vector: Mapping[int, Sums], matrix: Entries) -> Vector:
    """A vector after a chunk.

    Parameters
    ----------
    of : Coordinates
    vector : mapping of entry to components
        Entries without a trend may be missing.
    matrix : Entries
    """
    found: Vector = {}
    for (row, column), entry in matrix.items():
        if row in vector:
            more = followed(of.keys, vector[row], entry)
            found[column] = merged(of.keys, found[column], more) if column in found else more
    return found


class Fold:
    """One query of a kernel over the chunks of one partition.

    Parameters
    ----------
    number : int
        Of the query.
    of : Coordinates
    """

    def __init__(self, number: int, of: Coordinates) -> None:
        self._number = number
        self._of = of
        self._open: dict[int, Vector] = {}  # windows that reach beyond the chunks so far and have had an event
        self.closed: dict[int, Sums] = {}  # window -> the sums of its trends

    @property
    def is_exact(self) -> bool:
        """Whether counts are integers."""
        return self._of.keys[0].kind == "count"

    def take(self, maps: Maps) -> None:
        """The next chunk."""
        self.close(maps.first)
        beginning = self._of.beginning
        for (number, window), entries in maps.ends.items():
            if number == self._number:
                found = applied(self._of, self._open.pop(window, beginning), entries)
                self.closed[window] = found.get(0, nothing(self._of.keys))
        if self._number in maps.through:
            within, slide = self._of.window
            matrix = maps.through[self._number]
            for window in self._of.ends_after(maps.first):
                if window * slide + within > maps.last:
                    self._open[window] = applied(self._of, self._open.get(window, beginning), matrix)
        self.close(maps.last)  # windows without an entry end before the first event of the partition here
        for (number, window), vector in maps.begun.items():
            if number == self._number:
                self._open[window] = vector

    def close(self, time: int | None = None) -> None:
        """Close the windows that end at or before a time; all of them without one."""
        within, slide = self._of.window
        for window in [each for each in self._open if time is None or each * slide + within <= time]:
            vector = self._open.pop(window)
            total = nothing(self._of.keys)
            for place in self._of.finals:
                total = merged(self._of.keys, total, vector[place]) if place in vector else total
            self.closed[window] = total


def other_events(what: str) -> DataError:
    """An error: the events are not those that the chunks were cut from."""
    return DataError(
        f"{what}, though it was otherwise when it was measured: the input gives other events when it is read again\n"
        "hint: forbid products of time ranges (--products never, products='never')"
    )


class Folds:
    """The queries of a class over the chunks of one partition.

    Parameters
    ----------
    compiled : CompiledClass

    Attributes
    ----------
    largest_count_bits : int
        Of the rows given so far, as `Executor.stats` has it.
    """

    def __init__(self, compiled: CompiledClass) -> None:
        self.largest_count_bits = 0
        self._compiled = compiled
        self._folds = [Fold(number, of) for number, of in enumerate(coordinates_of(compiled))]
        self._last: int | None = None

    def take(self, maps: Maps) -> None:
        """The next chunk in the order of time; chunks without an event of the partition may be left out.

        Raises
        ------
        DataError
            It has a time in common with the one before: the events are not those that the chunks were cut from.
        """
        if self._last is not None and maps.first <= self._last:
            raise other_events("two parts of the input overlap in time")
        self._last = maps.last
        for each in self._folds:
            each.take(maps)

    def close(self, time: int | None = None) -> None:
        """Close the windows that end at or before a time, up to which all chunks have been taken; without one all."""
        for each in self._folds:
            each.close(time)

    def rows(self, key: Key) -> dict[int, GroupRows]:
        """The rows of windows closed since the last call, by the place of their query in the workload."""
        found = {
            query.analysed.index: _rows(
                query, key, [self._folds[part].closed for part in self._compiled.parts_of[place]]
            )
            for place, query in enumerate(self._compiled.queries)
        }
        for each in self._folds:
            counts = [sums[0] for sums in each.closed.values()]
            if each.is_exact:
                self.largest_count_bits = max(self.largest_count_bits, *(count.bit_length() for count in counts), 0)
            each.closed = {}
        return found


def _rows(query: CompiledQuery, key: Key, sides: list[dict[int, Sums]]) -> GroupRows:
    """Rows of a query from those of its kernel's queries: one, or three for AND."""
    keys = query.layout.keys
    found: dict[int, list[Component]] = {}
    for window, sums in sorted(sides[0].items()):
        if len(sides) > 1:
            sums = paired(keys, sums, *(side.get(window, nothing(keys)) for side in sides[1:]))
        if has_trends(sums[0]):
            found[window] = sums
    group = tuple(key[place] for place in query.group)
    columns = [list(column) for column in zip(*found.values(), strict=True)] or [[] for _ in keys]
    return GroupRows(list(found), [group] * len(found), columns)
