"""How the work of a workload is spread over keys and over time: exact counts, made in parts and added up.

Every task summarises its part of the input (`Summary`); sums of the parts are exact, so a key is heavy because it is,
not because a sketch says so. Only the times are samples. Statistics may be of yesterday or of another stream: owners
made of them then balance badly, and rows are the same. Source: Schneider et al. (STTT 2021) §5; DESIGN §4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.columns import Int64Array, KeyIndex, integers
from hamlet.compiler.compile import CompiledClass, CompiledWorkload
from hamlet.slicing.owners import hashed
from hamlet.slicing.possible import Present
from hamlet.slicing.routes import Route
from hamlet.slicing.routing import Needs, ValueBytes
from hamlet.slicing.shares import Places

BUCKETS = 1024  # of keys that are not heavy; many more than slices, so that a bucket is small
MOST_HEAVY = 4096  # keys of a class that are placed one by one
MOST_IMPOSSIBLE = 65_536  # keys of a class that are left behind, those with most events first
SAMPLES = 64  # times that a task reports of each class
KEY, VALUE, RELATION, TIME = range(4)  # kinds of rows

SUMMARY = pa.schema(
    [
        pa.field("class", pa.int32(), nullable=False),
        pa.field("kind", pa.int32(), nullable=False),
        pa.field("place", pa.int32(), nullable=False),  # bucket of a key, place of an attribute, or 0
        pa.field("key", pa.binary(), nullable=False),  # bytes of a key or a value; carried places of a relation
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
    impossible : frozenset of bytes
        Keys of which no query can have a trend.
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
    impossible: frozenset[bytes] = frozenset()
    times: Sequence[tuple[int, int]] = ()
    values: Mapping[int, Mapping[bytes, int]] = field(default_factory=dict)
    relations: Mapping[Places, int] = field(default_factory=dict)


def gathered(
    compiled: CompiledWorkload,
    routes: Sequence[Route],
    keys: Iterable[tuple[int, int, bytes, int, int]],
    buckets: Iterable[tuple[int, int, int, int]],
    others: Iterable[tuple[int, int, int, bytes, int, int]],
) -> list[ClassStatistics]:
    """Statistics from the sums of all summaries.

    Parameters
    ----------
    compiled : CompiledWorkload
    routes : sequence of Route
    keys : iterable of (class, bucket, key, roles, events)
        The keys with most events, and those that may be impossible; no key twice.
    buckets : iterable of (class, bucket, roles, events)
        Sums over all keys that have these roles.
    others : iterable of (class, kind, place, key, events, time)
        Rows of `SUMMARY` of the kinds `VALUE`, `RELATION` and `TIME`.

    Returns
    -------
    list of ClassStatistics
        One per class.
    """
    presents = [presence(each, route) for each, route in zip(compiled.classes, routes, strict=True)]
    found = [_Gathering() for _ in routes]
    for number, bucket, roles, events in buckets:
        if presents[number].possible(roles):
            found[number].buckets[bucket] = found[number].buckets.get(bucket, 0) + events
    for number, bucket, key, roles, events in keys:
        if not presents[number].possible(roles):
            found[number].impossible.add(key)
        elif bucket in found[number].buckets:
            found[number].heavy[key] = events
            found[number].buckets[bucket] -= events
    for number, kind, place, key, events, time in others:
        found[number].take(kind, place, key, events, time)
    return [each.done() for each in found]


@dataclass
class _Gathering:
    heavy: dict[bytes, int] = field(default_factory=dict)
    buckets: dict[int, int] = field(default_factory=dict)
    impossible: set[bytes] = field(default_factory=set)
    times: list[tuple[int, int]] = field(default_factory=list)
    values: dict[int, dict[bytes, int]] = field(default_factory=dict)
    relations: dict[Places, int] = field(default_factory=dict)

    def take(self, kind: int, place: int, key: bytes, events: int, time: int) -> None:
        if kind == TIME:
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
        return ClassStatistics(
            events, self.heavy, buckets, frozenset(self.impossible), sorted(self.times), self.values, self.relations
        )


def presence(compiled: CompiledClass, route: Route) -> Present:
    """What the roles of a key mean; types that lack a routing attribute may be anywhere."""
    return Present(compiled, lacking(compiled, route))


def lacking(compiled: CompiledClass, route: Route) -> set[str]:
    """The types that do not carry all attributes that a class is routed by."""
    places = {compiled.attributes.index(name) for name in route.keys}
    return {type for type, carried in compiled.carried.items() if not places <= set(carried)}


class _ClassSummary:
    """Counts of one class, over the events of a task."""

    def __init__(self, workload: CompiledWorkload, compiled: CompiledClass, route: Route) -> None:
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
        rows = np.nonzero(self._needs.rows(signatures))[0]
        if not len(rows):
            return
        part = batch.take(pa.array(rows))
        self._times.append(integers(part.column(self._clock), self._clock)[0])
        known = self._workload.classifier.signatures
        if self._by_grid:
            self._count_values(part, [known[number].type for number in signatures[rows].tolist()])
            return
        counted = np.array([each.type not in self._lacking for each in known])[signatures[rows]]
        roles = np.array([self._bits(each) for each in known], np.int64)[signatures[rows]][counted]
        numbers = self._index.encode(part.filter(pa.array(counted)))
        more = np.zeros(len(self._index.keys) - len(self._events), np.int64)
        self._events, self._roles = np.concatenate([self._events, more]), np.concatenate([self._roles, more])
        self._events += np.bincount(numbers, minlength=len(self._events))
        np.bitwise_or.at(self._roles, numbers, roles)

    def _bits(self, signature: Any) -> int:
        return sum(1 << place for place, role in enumerate(self.present.roles) if signature.fits(role))

    def _count_values(self, part: pa.RecordBatch, types: Sequence[str]) -> None:
        carried = np.array(
            [sorted(set(self._compiled.carried.values())).index(self._compiled.carried[t]) for t in types]
        )
        for number, places in enumerate(sorted(set(self._compiled.carried.values()))):
            mine = part.filter(pa.array(carried == number))
            self._relations[places] = self._relations.get(places, 0) + mine.num_rows
            for place in places:
                index = KeyIndex([self._compiled.attributes[place]])
                counts = np.bincount(index.encode(mine), minlength=len(index.keys)).tolist()
                found = self._values.setdefault(place, {})
                for key, count in zip(index.keys, counts, strict=True):
                    (value,) = self._bytes_of.of((place,), key)
                    found[value] = found.get(value, 0) + count

    def rows(self) -> list[tuple[int, int, int, bytes, int, int, int]]:
        """Rows of `SUMMARY`."""
        number = self._number
        found = []
        for key, events, roles in zip(self._index.keys, self._events.tolist(), self._roles.tolist(), strict=True):
            encoded = b"".join(self._bytes_of.of(self._places, key))
            found.append((number, KEY, hashed(encoded) % BUCKETS, encoded, events, roles, 0))
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
    """

    def __init__(self, compiled: CompiledWorkload, routes: Sequence[Route]) -> None:
        self._compiled = compiled
        self._classes = [_ClassSummary(compiled, *each) for each in zip(compiled.classes, routes, strict=True)]

    def add(self, batch: pa.RecordBatch) -> None:
        """Count the events of a batch, in any order."""
        signatures = self._compiled.classifier.classify(batch, self._compiled.schema.type_column)
        for each in self._classes:
            each.add(batch, signatures)

    def rows(self) -> pa.RecordBatch:
        """All of it as rows of `SUMMARY`; events of rows that are equal in all else but roles are to be added up."""
        rows = [row for each in self._classes for row in each.rows()]
        columns = list(zip(*rows, strict=True)) or [()] * len(SUMMARY)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SUMMARY, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=SUMMARY)
