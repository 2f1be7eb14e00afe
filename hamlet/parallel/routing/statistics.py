"""How the work of a workload is spread over keys and over time: exact counts, made in parts and added up.

Every task summarises its part of the input (`Summary`); sums of the parts are exact, so a key is heavy because it is,
not because a sketch says so. Only the times are samples. Statistics may be of yesterday or of another stream: owners
made of them then balance badly, and rows are the same. Source: Schneider et al. (STTT 2021) §5.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.engine.keys import KeyIndex
from hamlet.input.columns import BatchColumns, Int64Array, integers
from hamlet.parallel.routing.owners import hashed
from hamlet.parallel.routing.possible import lacking, presence
from hamlet.parallel.routing.routes import Route
from hamlet.parallel.routing.routing import Needs, ValueBytes
from hamlet.parallel.routing.semijoin import PAIR, KeyFilter, RolesOfKeys, can_filter, merged, possible_of
from hamlet.parallel.routing.shares import Places
from hamlet.planner.compiled import CompiledClass, CompiledWorkload

BUCKETS = 1024  # of keys that are not heavy; many more than slices, so that a bucket is small
MOST_HEAVY = 4096  # keys of a class that are placed one by one
SAMPLES = 256  # times that a task reports of each class
KEY, BUCKET, VALUE, RELATION, TIME, ROLES, POSSIBLE = range(7)  # kinds of rows

SUMMARY = pa.schema(
    [
        pa.field("class", pa.int32(), nullable=False),
        pa.field("kind", pa.int32(), nullable=False),
        pa.field("place", pa.int32(), nullable=False),  # of an attribute, or the bucket of a key
        # bytes of a key or a value; carried places of a relation; of `ROLES` and `POSSIBLE` many keys (`semijoin`)
        pa.field("key", pa.binary(), nullable=False),
        pa.field("events", pa.int64(), nullable=False),
        pa.field("roles", pa.int64(), nullable=False),  # bits of `Present`, of a key
        pa.field("time", pa.int64(), nullable=False),  # ticks, of a sample
    ]
)


@dataclass(frozen=True)
class ClassStatistics:
    """What is known of the events of one class of queries.

    Attributes
    ----------
    events : int
        That the class needs.
    heavy : mapping of bytes to int
        The keys with most events, and how many those are.
    buckets : mapping of int to int
        Events of all other keys, by bucket.
    passing : KeyFilter or None
        The keys of which some query can have a trend, where that was asked for and some have none.
    times : sequence of (int, int)
        Sampled times in ascending order, and the events that each stands for.
    values : mapping of int to mapping of bytes to int
        Place of an attribute -> its most frequent values, where types carry different keys.
    relations : mapping of tuple of int to int
        Carried places -> events, where types carry different keys.
    """

    events: int = 0
    heavy: Mapping[bytes, int] = field(default_factory=dict)
    buckets: Mapping[int, int] = field(default_factory=dict)
    passing: KeyFilter | None = None
    times: Sequence[tuple[int, int]] = ()
    values: Mapping[int, Mapping[bytes, int]] = field(default_factory=dict)
    relations: Mapping[Places, int] = field(default_factory=dict)


Row = tuple[int, int, int, bytes, int, int, int]  # of `SUMMARY`


def reduced(compiled: CompiledWorkload, routes: Sequence[Route], rows: Iterable[Row]) -> list[Row]:
    """What placement asks for of the rows of all summaries, or of such a part that no key is in two parts.

    Parameters
    ----------
    compiled : CompiledWorkload
    routes : sequence of Route
    rows : iterable of rows of `SUMMARY`

    Returns
    -------
    list of rows of `SUMMARY`
        The keys with most events that can have a trend, and the sums over all of these by bucket (`BUCKET`); attribute
        values with most events; which keys can have a trend (`POSSIBLE`); what else there was.
    """
    presents = [presence(each, route) for each, route in zip(compiled.classes, routes, strict=True)]
    sums: dict[tuple[int, int, int, bytes], list[int]] = {}
    found: list[Row] = []
    parts: dict[tuple[int, int], list[bytes]] = {}
    for number, kind, place, key, events, roles, time in rows:
        if kind == ROLES:
            parts.setdefault((number, place), []).append(key)
            continue
        if kind not in (KEY, VALUE):
            found.append((number, kind, place, key, events, roles, time))
            continue
        known = sums.setdefault((number, kind, place, key), [0, 0])
        known[0] += events
        known[1] |= roles
    buckets: dict[tuple[int, int], int] = {}
    candidates: dict[tuple[int, int], list[Row]] = {}
    for (number, kind, place, key), (events, roles) in sums.items():
        if kind == KEY and not presents[number].possible(roles):
            continue
        candidates.setdefault((number, kind), []).append((number, kind, place, key, events, roles, 0))
        if kind == KEY:
            buckets[number, place] = buckets.get((number, place), 0) + events
    for several in candidates.values():
        found += heapq.nlargest(MOST_HEAVY, several, key=lambda row: row[4])
    for (number, place), pairs in parts.items():
        whole = merged(np.concatenate([np.frombuffer(each, PAIR) for each in pairs]))
        passing = possible_of(compiled.classes[number], routes[number], whole)
        found.append((number, POSSIBLE, place, passing.tobytes(), len(whole), 0, 0))
    return found + [(number, BUCKET, place, b"", events, 0, 0) for (number, place), events in buckets.items()]


def gathered(routes: Sequence[Route], rows: Iterable[Row]) -> list[ClassStatistics]:
    """Statistics from reduced rows of all parts.

    Parameters
    ----------
    routes : sequence of Route
    rows : iterable of rows of `SUMMARY`
        From `reduced`.

    Returns
    -------
    list of ClassStatistics
        One per class.
    """
    found = [_Gathering() for _ in routes]
    for number, kind, place, key, events, _, time in sorted(rows, key=lambda row: (row[1] == KEY, -row[4])):
        found[number].take(kind, place, key, events, time)
    return [each.done() for each in found]


@dataclass
class _Gathering:
    heavy: dict[bytes, int] = field(default_factory=dict)
    buckets: dict[int, int] = field(default_factory=dict)
    passing: list[bytes] = field(default_factory=list)
    keys: int = 0
    times: list[tuple[int, int]] = field(default_factory=list)
    values: dict[int, dict[bytes, int]] = field(default_factory=dict)
    relations: dict[Places, int] = field(default_factory=dict)

    def take(self, kind: int, place: int, key: bytes, events: int, time: int) -> None:
        """A row; those of keys come last, the heaviest first."""
        if kind == POSSIBLE:
            self.passing.append(key)
            self.keys += events
        elif kind == KEY and len(self.heavy) < MOST_HEAVY:
            self.heavy[key] = events
            self.buckets[place] -= events
        elif kind == BUCKET:
            self.buckets[place] = self.buckets.get(place, 0) + events
        elif kind == TIME:
            self.times.append((time, events))
        elif kind == VALUE:
            values = self.values.setdefault(place, {})
            values[key] = values.get(key, 0) + events
        elif kind == RELATION:
            self.relations[tuple(key)] = self.relations.get(tuple(key), 0) + events

    def done(self) -> ClassStatistics:
        # Of a class without keys only the times say how many events there are.
        events = sum(self.buckets.values()) + sum(self.heavy.values()) or sum(events for _, events in self.times)
        buckets = {bucket: events for bucket, events in self.buckets.items() if events > 0}
        hashes = np.frombuffer(b"".join(self.passing), np.uint64)
        passing = KeyFilter.of(hashes, self.keys) if len(hashes) < self.keys else None
        return ClassStatistics(events, self.heavy, buckets, passing, sorted(self.times), self.values, self.relations)


class _ClassSummary:
    """Counts of one class, over the events of a task."""

    def __init__(
        self, workload: CompiledWorkload, compiled: CompiledClass, route: Route, balance: bool, semijoin: bool
    ) -> None:
        self._counts = balance
        self._passing = RolesOfKeys(workload, compiled, route) if semijoin and can_filter(compiled, route) else None
        self._workload = workload
        self._compiled = compiled
        self._number = route.number
        self._clock = workload.schema.clock.column
        self._needs = Needs(workload, compiled)
        self._bytes_of = ValueBytes(compiled.attributes, workload.schema)
        self._places = tuple(compiled.attributes.index(name) for name in route.keys)
        self.present = presence(compiled, route)
        self._lacking = lacking(compiled, route)
        self._index = KeyIndex([compiled.attributes[place] for place in self._places])
        self._events = np.zeros(0, np.int64)
        self._roles = np.zeros(0, np.int64)
        self._times: list[Int64Array] = []
        self._by_grid = not route.keys and bool(compiled.attributes)
        self._values: dict[int, dict[bytes, int]] = {}
        self._relations: dict[Places, int] = {}

    def add(self, batch: pa.RecordBatch, signatures: npt.NDArray[np.int32]) -> None:
        """Count the events of a batch that the class needs."""
        if self._passing is not None:
            self._passing.add(batch, signatures)
        if not self._counts:
            return
        rows = np.nonzero(self._needs.rows(signatures))[0]
        if not len(rows):
            return
        part = batch.take(pa.array(rows))
        self._times.append(integers(part.column(self._clock), self._clock)[0])
        known = self._workload.classifier.signatures
        if self._by_grid:
            types = [known[number].type if number >= 0 else "" for number in signatures[rows].tolist()]
            self._count_values(part, types)
            return
        # the last place is that of events whose type nobody names: they carry all attributes
        counted = np.array([*(each.type not in self._lacking for each in known), True])[signatures[rows]]
        roles = np.array([*(self._bits(each) for each in known), 0], np.int64)[signatures[rows]][counted]
        numbers = self._index.encode(part.filter(pa.array(counted)))
        more = np.zeros(self._index.size - len(self._events), np.int64)
        self._events, self._roles = np.concatenate([self._events, more]), np.concatenate([self._roles, more])
        self._events += np.bincount(numbers, minlength=len(self._events))
        np.bitwise_or.at(self._roles, numbers, roles)

    def _bits(self, signature: Any) -> int:
        return sum(1 << place for place, role in enumerate(self.present.roles) if signature.fits(role))

    def _count_values(self, part: pa.RecordBatch, types: Sequence[str]) -> None:
        whole = tuple(range(len(self._compiled.attributes)))
        sets = list(dict.fromkeys((*self._compiled.carried.values(), whole)))
        carried = np.array([sets.index(self._compiled.carried.get(type, whole)) for type in types])
        for number, places in enumerate(sets):
            mine = part.filter(pa.array(carried == number))
            self._relations[places] = self._relations.get(places, 0) + mine.num_rows
            for place in places:
                index = KeyIndex([self._compiled.attributes[place]])
                counts = np.bincount(index.encode(mine)).tolist()
                found = self._values.setdefault(place, {})
                keys = self._bytes_of.of_all((place,), index.tuples(np.arange(index.size)))
                for (value,), count in zip(keys, counts, strict=True):
                    found[value] = found.get(value, 0) + count

    def rows(self) -> list[Row]:
        """Rows of `SUMMARY`."""
        number = self._number
        found: list[Row] = []
        if self._passing is not None:
            found += [
                (number, ROLES, bucket, pairs.tobytes(), len(pairs), 0, 0)
                for bucket, pairs in self._passing.by_bucket(BUCKETS)
            ]
        keys = self._bytes_of.of_all(self._places, self._index.tuples(np.arange(len(self._events))))
        for each, events, roles in zip(keys, self._events.tolist(), self._roles.tolist(), strict=True):
            key = b"".join(each)
            found.append((number, KEY, hashed(key) % BUCKETS, key, events, roles, 0))
        for place, values in self._values.items():
            found += [(number, VALUE, place, value, events, 0, 0) for value, events in values.items()]
        found += [(number, RELATION, 0, bytes(places), events, 0, 0) for places, events in self._relations.items()]
        if self._times:
            times = np.sort(np.concatenate(self._times))
            edges = np.linspace(0, len(times), min(SAMPLES, len(times)) + 1).astype(np.int64)
            found += [
                (number, TIME, 0, b"", int(end - start), 0, int(times[start]))
                for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
            ]
        return found


class Summary:
    """The statistics of a part of the input.

    Parameters
    ----------
    compiled : CompiledWorkload
    routes : sequence of Route
        One per class.
    balance : bool
        Whether keys and times are counted.
    semijoin : bool
        Whether it is found out which keys can have a trend.
    """

    def __init__(
        self, compiled: CompiledWorkload, routes: Sequence[Route], *, balance: bool = True, semijoin: bool = True
    ) -> None:
        self._compiled = compiled
        self._classes = [
            _ClassSummary(compiled, *each, balance, semijoin) for each in zip(compiled.classes, routes, strict=True)
        ]

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the events of a batch, in any order."""
        columns = BatchColumns(batch, self._compiled.strings)
        signatures = self._compiled.classifier.classify(columns, self._compiled.schema.type_column)
        for each in self._classes:
            each.add(batch, signatures)

    def rows(self) -> list[Row]:
        """All of it; a key may have rows in several summaries."""
        return [row for each in self._classes for row in each.rows()]


def rows_of(batch: pa.RecordBatch) -> list[Row]:
    """The rows of a batch of `SUMMARY`, whatever the columns are called."""
    return list(zip(*(batch.column(place).to_pylist() for place in range(len(SUMMARY))), strict=True))


def batch_of(rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as a batch of `SUMMARY`."""
    columns = list(zip(*rows, strict=True)) or [()] * len(SUMMARY)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SUMMARY, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SUMMARY)
