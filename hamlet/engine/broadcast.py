"""Events that carry only some of a partition's keys: delivered to every partition that agrees on those they have.

A declared type may lack partition attributes; its events then belong to many partitions, and a partition may exist
though no single event carries all its keys. A partition is *formed* when events whose keys together are
complete are in one window; it then gets the partial events of the window so far, and every later one while it lives.
A partial event is kept once, however many partitions it belongs to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.engine.keys import KeyIndex
from hamlet.input.buffers import from_numpy
from hamlet.input.columns import Int64Array, integers
from hamlet.input.widening import joined

Places = tuple[int, ...]  # places of some of the partition attributes
Key = tuple[Any, ...]


@dataclass
class _Carried:
    """The events that carry one set of the partition attributes."""

    places: Places
    index: KeyIndex
    rows: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))  # its events among the kept ones


@dataclass(frozen=True)
class Deliveries:
    """What the kernels are to process: some events of a batch and some kept ones, some of them several times.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
        The kept events and the batch's.
    classes : int32 array of shape (rows of batch,)
        Kernel class of each.
    rows : int64 array of shape (n,)
        Rows of `batch`, ascending.
    keys : int64 array of shape (n,)
        The partition that gets the row.
    """

    batch: pa.RecordBatch
    classes: npt.NDArray[np.int32]
    rows: Int64Array
    keys: Int64Array


class Broadcast:
    """Delivers the events of one class of queries to partitions.

    Parameters
    ----------
    attributes : sequence of str
        The partition attributes.
    carried : mapping of str to tuple of int
        Event type -> places of the attributes that its events carry.
    positive : set of str
        Types that take part in trends; only they form partitions.
    index : KeyIndex
        Numbers the partitions.
    retention : int
        Ticks: the longest window.

    Attributes
    ----------
    owns : callable or None
        Whether a partition, by its key, is to be formed here; without, every one is. Where events that carry a part of
        the keys reach several processes, each forms the partitions that it owns and no others.
    """

    def __init__(
        self,
        attributes: Sequence[str],
        carried: Mapping[str, Places],
        positive: Iterable[str],
        index: KeyIndex,
        retention: int,
    ) -> None:
        self.index = index
        self._whole = tuple(range(len(attributes)))
        self._retention = retention
        self.owns: Callable[[Key], bool] | None = None
        self._sets: dict[Places, _Carried] = {
            places: _Carried(places, KeyIndex([attributes[place] for place in places]))
            for places in dict.fromkeys(carried.values())
            if places != self._whole
        }
        self._of_type = carried
        self._covers = _covers({carried[type] for type in positive}, self._whole)
        self._kept: pa.Table | None = None
        self._kept_classes = np.zeros(0, np.int32)

    @property
    def nbytes(self) -> int:
        """Bytes of the kept events and of what is known of them."""
        places = sum(each.rows.nbytes + each.index.nbytes for each in self._sets.values())
        return places + self._kept_classes.nbytes + (0 if self._kept is None else int(self._kept.nbytes))

    def deliver(
        self,
        batch: pa.RecordBatch,
        types: Sequence[str],
        times: Int64Array,
        classes: npt.NDArray[np.int32],
        time_column: str,
        live: Int64Array,
    ) -> Deliveries:
        """Which partition gets which event.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Matched events in time order.
        types : sequence of str, shape (rows,)
        times : int64 array of shape (rows,)
        classes : int32 array of shape (rows,)
        time_column : str
        live : int64 array
            Partitions with open windows.
        """
        self._forget(int(times[0]), time_column)
        kept = 0 if self._kept is None else self._kept.num_rows
        whole = joined([*([] if self._kept is None else [self._kept]), pa.Table.from_batches([batch])])
        all_classes = np.concatenate([self._kept_classes, classes])
        chosen = self._rows_of(types, kept)
        combined = whole.combine_chunks().to_batches()[0]
        pairs: list[tuple[Int64Array, Int64Array]] = []
        complete = chosen.get(self._whole, np.zeros(0, np.int64))
        keys = self.index.encode(combined.take(from_numpy(complete))).astype(np.int64)
        if self.owns is not None:
            owned = np.array([self.owns(key) for key in self.index.tuples(keys)], bool)
            complete, keys = complete[owned], keys[owned]
        pairs.append((complete, keys))
        partial = {places: self._partial_rows(places, chosen, combined) for places in self._sets}
        formed = set(keys.tolist()) | self._joined(partial)
        old = set(live.tolist())
        for places, (rows, numbers) in partial.items():
            pairs += self._matches(places, rows, numbers, formed - old, old, kept)
        rows = np.concatenate([pair[0] for pair in pairs])
        order = np.argsort(rows, kind="stable")
        order = order[all_classes[rows[order]] >= 0]  # attributes that widen may turn a kept event into a foreign one
        self._keep(whole, all_classes, {places: rows for places, (rows, _) in partial.items()})
        return Deliveries(combined, all_classes, rows[order], np.concatenate([pair[1] for pair in pairs])[order])

    def _rows_of(self, types: Sequence[str], kept: int) -> dict[Places, Int64Array]:
        """Rows of the combined batch by the attributes that they carry; of kept ones only the batch's are here."""
        rows: dict[Places, list[int]] = {}
        for row, type in enumerate(types, kept):
            rows.setdefault(self._of_type.get(type, self._whole), []).append(row)
        return {places: np.array(found, np.int64) for places, found in rows.items()}

    def _partial_rows(
        self, places: Places, chosen: Mapping[Places, Int64Array], combined: pa.RecordBatch
    ) -> tuple[Int64Array, Int64Array]:
        """The kept and new rows that carry exactly these attributes, and their partial keys."""
        carried = self._sets[places]
        if carried.index.crowded:  # its numbers are of use in this batch only
            carried.index = KeyIndex(carried.index.attributes)
        rows = np.concatenate([carried.rows, chosen.get(places, np.zeros(0, np.int64))])
        return rows, carried.index.encode(combined.take(from_numpy(rows))).astype(np.int64)

    def _joined(self, partial: Mapping[Places, tuple[Int64Array, Int64Array]]) -> set[int]:
        """Partitions whose keys are complete by partial events of the longest window together."""
        found: set[int] = set()
        for cover in self._covers:
            if any(len(partial[places][1]) == 0 for places in cover):
                continue
            keys: list[dict[int, Any]] = [{}]
            for places in cover:
                values = self._sets[places].index.tuples(np.unique(partial[places][1]))
                keys = [
                    {**key, **dict(zip(places, value, strict=True))}
                    for key in keys
                    for value in values
                    if all(key.get(place, part) == part for place, part in zip(places, value, strict=True))
                ]
            whole = [tuple(key[place] for place in self._whole) for key in keys]
            found.update(self.index.number(key) for key in whole if self.owns is None or self.owns(key))
        return found

    def _matches(
        self, places: Places, rows: Int64Array, numbers: Int64Array, new: set[int], old: set[int], kept: int
    ) -> list[tuple[Int64Array, Int64Array]]:
        """Pairs of a partial event and a partition: new partitions get kept and new events, old ones the new ones."""
        index = self._sets[places].index
        partitions: dict[Key, tuple[list[int], list[int]]] = {}
        for place, group in enumerate((new, old)):
            members = np.array(sorted(group), np.int64)
            for number, key in zip(members.tolist(), self.index.tuples(members, places), strict=True):
                partitions.setdefault(key, ([], []))[place].append(number)
        pairs = []
        for row, partial in zip(rows.tolist(), index.tuples(numbers), strict=True):
            fresh, living = partitions.get(partial, ([], []))
            keys = fresh if row < kept else fresh + living
            if keys:
                pairs.append((np.full(len(keys), row, np.int64), np.array(keys, np.int64)))
        return pairs

    @property
    def kept(self) -> pa.Table | None:
        """The partial events that partitions to come may need."""
        return self._kept

    def load(self, kept: pa.Table, types: Sequence[str], classes: npt.NDArray[np.int32]) -> None:
        """Take over kept events, their types and kernel classes; raises ValueError at what is never kept."""
        rows = self._rows_of(types, 0)
        if not rows.keys() <= self._sets.keys():
            raise ValueError("an event is kept that belongs to one partition only")
        self._kept, self._kept_classes = kept, classes
        for places, carried in self._sets.items():
            carried.rows = rows.get(places, np.zeros(0, np.int64))

    def adopt(self, other: Broadcast, classify: Callable[[pa.RecordBatch], npt.NDArray[np.int32]]) -> None:
        """Take over the kept events of another one, whose kernel classes were numbered otherwise."""
        self._kept = other._kept
        for mine, theirs in zip(self._sets.values(), other._sets.values(), strict=True):
            mine.rows = theirs.rows
        if self._kept is not None and self._kept.num_rows:
            self._kept_classes = classify(self._kept.combine_chunks().to_batches()[0])

    def _keep(self, whole: pa.Table, classes: npt.NDArray[np.int32], partial: Mapping[Places, Int64Array]) -> None:
        """Keep the partial events for partitions that form later."""
        remaining = np.sort(np.concatenate([*partial.values(), np.zeros(0, np.int64)]))
        self._select(whole, classes, remaining, partial)

    def _select(
        self,
        whole: pa.Table,
        classes: npt.NDArray[np.int32],
        remaining: Int64Array,
        partial: Mapping[Places, Int64Array],
    ) -> None:
        self._kept = whole.take(from_numpy(remaining))
        self._kept_classes = classes[remaining]
        for places, rows in partial.items():
            self._sets[places].rows = np.searchsorted(remaining, rows)

    def _forget(self, time: int, time_column: str) -> None:
        """Let go of events that share no window with `time` or later ones."""
        if self._kept is None or self._kept.num_rows == 0:
            return
        times = integers(self._kept.column(time_column).combine_chunks(), time_column)[0]
        fresh = times > time - self._retention
        if not fresh.all():
            partial = {places: carried.rows[fresh[carried.rows]] for places, carried in self._sets.items()}
            self._select(self._kept, self._kept_classes, np.nonzero(fresh)[0], partial)


def _covers(sets: Iterable[Places], whole: Places) -> list[tuple[Places, ...]]:
    """The minimal choices of partial sets that together are the whole."""
    partial = [places for places in sets if places and places != whole]
    found: list[tuple[Places, ...]] = []
    for size in range(2, len(partial) + 1):
        for choice in combinations(sorted(partial), size):
            covered = {place for places in choice for place in places}
            if covered == set(whole) and not any(set(smaller) <= set(choice) for smaller in found):
                found.append(choice)
    return found
