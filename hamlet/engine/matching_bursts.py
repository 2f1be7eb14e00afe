"""The trace of queries that the matching operator runs: a record per burst and query that may bind its events.

The operator decides nothing about sharing: queries that differ in RETURN only are kept once, all others apart. So a
record has no costs (NULL), no snapshots, and the queries that are kept once. A burst is a run of events of one type
that stand together in their partition, in one pane and one piece of the stream that is processed at once; its size is
what the query can use of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.engine.trace import SCHEMA
from hamlet.input.columns import Int64Array

Found = tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, int]  # pane, key, type, b, n, part


class BurstRecords:
    """Watches the events that a matching operator is given.

    Parameters
    ----------
    pane : int
        Ticks between the times at which windows may open or close.
    """

    def __init__(self, pane: int) -> None:
        self._pane = pane
        self._names: dict[str | None, int] = {}
        self._type_of = np.zeros(0, np.int64)  # class -> number of its type
        self._binds: dict[int, list[int]] = {}  # part -> classes that it may bind
        self._found: list[Found] = []

    def add_class(self, type: str | None, entries: Sequence[tuple[int, Sequence[int], Sequence[int], bool]]) -> None:
        """Note a class of events, numbered from 0 on, as `Matching.add_class` is told of it."""
        number = self._names.setdefault(type, len(self._names))
        for part, arrivals, guards, _ in entries:
            if arrivals or guards:
                self._binds.setdefault(part, []).append(len(self._type_of))
        self._type_of = np.append(self._type_of, number)

    def watch(self, keys: npt.NDArray[Any], times: Int64Array, classes: npt.NDArray[Any]) -> None:
        """Find the bursts of a piece of the stream.

        Parameters
        ----------
        keys, times, classes : arrays of shape (n,)
            Partition (negative for none), time and class of each event, in the order of time.
        """
        order = np.argsort(keys, kind="stable")
        order = order[keys[order] >= 0]
        if not len(order):
            return
        key, kind, of_class = keys[order].astype(np.int64), self._type_of[classes[order]], classes[order]
        pane = times[order] // self._pane * self._pane
        new_window = np.append(True, (np.diff(key) != 0) | (np.diff(pane) != 0))
        starts = np.nonzero(np.append(True, (np.diff(kind) != 0) | new_window[1:]))[0]
        windows = np.maximum.accumulate(np.where(new_window, np.arange(len(order)), 0))
        ends = np.append(starts[1:], len(order)) - 1
        for part, bound in self._binds.items():
            fits = np.isin(of_class, bound)
            so_far = np.cumsum(fits)
            size = np.add.reduceat(fits, starts, dtype=np.int64)
            seen = so_far[ends] - so_far[windows[ends]] + fits[windows[ends]]
            some = size > 0
            at = starts[some]
            self._found.append((pane[at], key[at], kind[at], size[some], seen[some].astype(np.int64), part))

    def taken(
        self, texts: Callable[[Int64Array], Sequence[str]], names: Sequence[Sequence[str]]
    ) -> list[pa.RecordBatch]:
        """Take the records of `hamlet.engine.trace.SCHEMA` since the last call.

        Parameters
        ----------
        texts : callable
            What partitions are called, by their numbers.
        names : sequence of sequence of str
            The queries that each part is kept for.
        """
        found, self._found = self._found, []
        kinds = pa.array([name or "" for name in self._names], pa.string())
        return [self._records(each, texts, names[each[-1]], kinds) for each in found if len(each[0])]

    def _records(
        self, found: Found, texts: Callable[[Int64Array], Sequence[str]], names: Sequence[str], kinds: pa.Array
    ) -> pa.RecordBatch:
        pane, key, kind, size, seen, _ = found
        count = len(pane)
        none = pa.array(np.zeros(count, np.int64))
        shared = len(names) > 1
        columns: list[Any] = [
            pa.array(pane),
            pa.array(texts(key), pa.string()),
            kinds.take(pa.array(kind)),
            pa.array(size),
            pa.array(seen),
            pa.array(size),
            pa.array(np.full(count, len(names), np.int64)),
            none,
            none,
            pa.nulls(count, pa.float64()),
            pa.nulls(count, pa.float64()),
            pa.repeat("shared" if shared else "alone", count),
            pa.array([list(names) if shared else []] * count, pa.list_(pa.string())),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
