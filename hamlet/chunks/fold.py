"""Chunks put together in the order of time: the rows of the windows that reach beyond one chunk.

Source: DESIGN §2, rung 8; a row vector times the matrices of the chunks that a window spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hamlet.chunks.chunk import Maps
from hamlet.chunks.coordinates import Coordinates, Sums
from hamlet.chunks.probes import Entries, coordinates_of
from hamlet.compiler.aggregates import Component, followed, has_trends, merged, nothing, paired
from hamlet.compiler.compile import CompiledClass, CompiledQuery
from hamlet.errors import DataError
from hamlet.executor import GroupRows
from hamlet.keys import Key

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
        "hint: forbid products of time ranges (products='never')"
    )


def folded(compiled: CompiledClass, key: Key, chunks: Iterable[Maps]) -> dict[int, GroupRows]:
    """The rows of one partition for the windows that reach beyond a chunk, by the place of their query in the workload.

    Parameters
    ----------
    compiled : CompiledClass
    key : tuple
        The partition.
    chunks : iterable of Maps
        In the order of time; chunks without an event of the partition may be left out.

    Raises
    ------
    DataError
        Two chunks have a time in common: the events are not those that the chunks were cut from.
    """
    folds = [Fold(number, of) for number, of in enumerate(coordinates_of(compiled))]
    before: int | None = None
    for maps in chunks:
        if before is not None and maps.first <= before:
            raise other_events("two parts of the input overlap in time")
        before = maps.last
        for each in folds:
            each.take(maps)
    for each in folds:
        each.close()
    return {
        query.analysed.index: _rows(query, key, [folds[part].closed for part in compiled.parts_of[place]])
        for place, query in enumerate(compiled.queries)
    }


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
