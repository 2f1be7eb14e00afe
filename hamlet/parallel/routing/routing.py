"""Where each event of a batch goes: to the slices that own partitions, or windows, for which some query needs it.

Routing is event-separable: what becomes of an event depends on the event alone, so any task may route any part of the
input. An event goes to a slice once, with a mask of the classes of queries that need it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.engine.keys import KeyIndex
from hamlet.input.columns import BatchColumns, Int64Array, integers
from hamlet.language.schema import Schema
from hamlet.output.partial import GroupCodec
from hamlet.parallel.routing.owners import GridOwner, KeyOwner, Owner, TimeOwner
from hamlet.parallel.routing.semijoin import KeyTest
from hamlet.parallel.routing.shares import Places
from hamlet.planner.compiled import CompiledClass, CompiledWorkload

MOST_CLASSES = 62  # of queries that one mask tells apart
_MOST_KEYS = 1 << 20  # that a task remembers; beyond, it forgets all of them and goes on

Pairs = tuple[Int64Array, Int64Array]  # rows of a batch and slices


@dataclass(frozen=True)
class Routed:
    """Events to send.

    Attributes
    ----------
    rows : int64 array of shape (n,)
        Rows of the batch, ascending; a row that goes to several slices stands there several times.
    slices : int32 array of shape (n,)
    masks : int64 array of shape (n,)
        Bit c is set where class c needs the event in that slice.
    """

    rows: Int64Array
    slices: npt.NDArray[np.int32]
    masks: Int64Array


class ValueBytes:
    """The values of partition attributes as bytes that are equal exactly where the values are.

    Parameters
    ----------
    attributes : sequence of str
    schema : Schema
    """

    def __init__(self, attributes: Sequence[str], schema: Schema) -> None:
        types = [schema.arrow_types.get(name, pa.null()) for name in attributes]
        self._codecs = [GroupCodec([type if not pa.types.is_null(type) else pa.string()]) for type in types]

    def of(self, places: Places, key: Sequence[Any]) -> list[bytes]:
        """The bytes of each value of a key that has values for the attributes at `places`."""
        (found,) = self.of_all(places, [tuple(key)])
        return found

    def of_all(self, places: Places, keys: Sequence[tuple[Any, ...]]) -> list[list[bytes]]:
        """Encode several keys at once: for each, its values as bytes."""
        columns = [self._codecs[place].encode([(key[number],) for key in keys]) for number, place in enumerate(places)]
        return [list(values) for values in zip(*columns, strict=True)] if columns else [[] for _ in keys]


@dataclass
class _KeyTargets:
    """The slices of every key seen so far, of the attributes at some places."""

    owner: KeyOwner | GridOwner
    places: Places
    bytes_of: ValueBytes
    attributes: Sequence[str]
    index: KeyIndex = field(init=False)
    lengths: Int64Array = field(init=False)
    starts: Int64Array = field(init=False)
    slices: Int64Array = field(init=False)

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.index = KeyIndex([self.attributes[place] for place in self.places])
        self.lengths = self.starts = self.slices = np.zeros(0, np.int64)

    def pairs(self, batch: pa.RecordBatch) -> Pairs:
        """Rows of a batch and the slices that each goes to."""
        if self.index.size > _MOST_KEYS:
            self.forget()
        numbers = self.index.encode(batch)
        if self.index.size > len(self.lengths):
            self._learn(self.index.tuples(np.arange(len(self.lengths), self.index.size)))
        lengths = self.lengths[numbers]
        rows = np.repeat(np.arange(batch.num_rows), lengths)
        ends = np.cumsum(lengths)
        within = np.arange(len(rows)) - np.repeat(ends - lengths, lengths)
        return rows, self.slices[np.repeat(self.starts[numbers], lengths) + within]

    def _learn(self, keys: Sequence[tuple[Any, ...]]) -> None:
        found = [self.owner.targets(self.places, each) for each in self.bytes_of.of_all(self.places, keys)]
        lengths = np.array([len(each) for each in found], np.int64)
        starts = len(self.slices) + np.cumsum(lengths) - lengths
        slices = np.array([slice for each in found for slice in each], np.int64)
        self.lengths, self.starts = np.concatenate([self.lengths, lengths]), np.concatenate([self.starts, starts])
        self.slices = np.concatenate([self.slices, slices])


class ClassRouter:
    """Routes the events of one class of queries.

    Parameters
    ----------
    compiled : CompiledClass
    owner : Owner
    schema : Schema
    """

    def __init__(self, compiled: CompiledClass, owner: Owner, schema: Schema) -> None:
        self.compiled = compiled
        self._owner = owner
        self._clock = schema.clock.column
        self._targets: dict[Places, _KeyTargets] = {}
        if not isinstance(owner, TimeOwner):
            bytes_of = ValueBytes(compiled.attributes, schema)
            whole = tuple(range(len(compiled.attributes)))  # what types carry that nobody has declared
            self._others = owner.read(whole) if compiled.sees_all else None
            for carried in dict.fromkeys((*compiled.carried.values(), *([whole] if compiled.sees_all else []))):
                read = owner.read(carried)
                if read not in self._targets:
                    self._targets[read] = _KeyTargets(owner, read, bytes_of, compiled.attributes)
            self._read = {type: owner.read(carried) for type, carried in compiled.carried.items()}

    def pairs(self, batch: pa.RecordBatch, types: Sequence[str], type_numbers: Int64Array) -> Pairs:
        """Rows of a batch, all of which the class needs, and the slices that each goes to.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        types : sequence of str
        type_numbers : int64 array of shape (rows,)
            Place of each event's type in `types`.
        """
        if isinstance(self._owner, TimeOwner):
            return self._by_time(self._owner, integers(batch.column(self._clock), self._clock)[0])
        if len(self._targets) == 1:
            return next(iter(self._targets.values())).pairs(batch)
        reads = list(self._targets)
        wanted = [self._read.get(type, self._others) for type in types]
        of_type = np.array([-1 if each is None else reads.index(each) for each in wanted], np.int64)
        of_row = of_type[type_numbers]
        found = []
        for number, read in enumerate(reads):
            rows = np.nonzero(of_row == number)[0]
            if len(rows):
                places, slices = self._targets[read].pairs(batch.take(pa.array(rows)))
                found.append((rows[places], slices))
        return _joined(found)

    @staticmethod
    def _by_time(owner: TimeOwner, times: Int64Array) -> Pairs:
        first, last = owner.ranges(times)
        lengths = np.maximum(last - first + 1, 0)
        rows = np.repeat(np.arange(len(times)), lengths)
        ends = np.cumsum(lengths)
        ranges = np.repeat(first, lengths) + np.arange(len(rows)) - np.repeat(ends - lengths, lengths)
        return rows, np.array(owner.slices, np.int64)[ranges]


def _joined(found: Sequence[Pairs]) -> Pairs:
    if not found:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate([rows for rows, _ in found]), np.concatenate([slices for _, slices in found])


@dataclass(frozen=True)
class Slicing:
    """How the events of a workload are spread over slices; plain data, which every task gets.

    Attributes
    ----------
    owners : tuple of Owner
        One per class of queries.
    slices : int
    filters : tuple of KeyTest or None
        One per class, or none at all: which events of keys without a trend stay behind.
    """

    owners: tuple[Owner, ...]
    slices: int
    filters: tuple[KeyTest | None, ...] = ()


class Router:
    """Routes the events of a whole workload in one pass.

    Parameters
    ----------
    compiled : CompiledWorkload
    slicing : Slicing
    classes : sequence of int
        At most `MOST_CLASSES`: numbers of the classes to route for; the bits of the masks stand for them in this order.

    Attributes
    ----------
    needed : int64 array of shape (classes,)
        Events so far that each class can use.
    sent : int
        Events so far that go to some slice.
    behind : int
        Events so far that some class could use, and that go nowhere: no key of theirs has a trend.
    """

    def __init__(self, compiled: CompiledWorkload, slicing: Slicing, classes: Sequence[int]) -> None:
        self._compiled = compiled
        self._slices = slicing.slices
        chosen = [compiled.classes[number] for number in classes]
        owners = [slicing.owners[number] for number in classes]
        self._routers = [ClassRouter(*each, compiled.schema) for each in zip(chosen, owners, strict=True)]
        self._needs = [Needs(compiled, each) for each in chosen]
        self._filters = [slicing.filters[number] if slicing.filters else None for number in classes]
        self.needed = np.zeros(len(chosen), np.int64)
        self.sent = self.behind = 0

    def route(self, batch: pa.RecordBatch) -> Routed:
        """Where the events of a batch go; those that no query can use go nowhere."""
        schema = self._compiled.schema
        signatures = self._compiled.classifier.classify(BatchColumns(batch, self._compiled.strings), schema.type_column)
        known = self._compiled.classifier.signatures
        types = list(dict.fromkeys(each.type for each in known))
        types.append("")  # of events whose type nobody names
        type_of = np.array([*(types.index(each.type) for each in known), len(types) - 1], np.int64)
        codes: list[Int64Array] = []
        bits: list[Int64Array] = []
        wanted = np.zeros(batch.num_rows, np.bool_)
        for number, (router, needs, test) in enumerate(zip(self._routers, self._needs, self._filters, strict=True)):
            rows = np.nonzero(needs.rows(signatures))[0]
            self.needed[number] += len(rows)
            if test is not None and len(rows):
                wanted[rows] = True
                part = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))
                rows = rows[test.kept(part, types, type_of[signatures[rows]])]
            if not len(rows):
                continue
            part = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))
            places, slices = router.pairs(part, types, type_of[signatures[rows]])
            codes.append(rows[places] * self._slices + slices)
            bits.append(np.full(len(places), 1 << number, np.int64))
        self.behind += int(np.count_nonzero(wanted))
        if not codes:
            return Routed(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64))
        code, mask = np.concatenate(codes), np.concatenate(bits)
        if not (np.diff(code) > 0).all():
            order = np.argsort(code, kind="stable")
            code, mask = code[order], mask[order]
            starts = np.nonzero(np.diff(code, prepend=-1))[0]
            code, mask = code[starts], np.bitwise_or.reduceat(mask, starts)
        rows = code // self._slices
        self.sent += int(np.count_nonzero(np.diff(rows, prepend=-1)))
        self.behind -= int(np.count_nonzero(wanted[rows[np.nonzero(np.diff(rows, prepend=-1))[0]]]))
        return Routed(rows, (code % self._slices).astype(np.int32), mask)


class Needs:
    """Which events a class of queries can use: those that some variable's type and local predicates accept.

    Sessions are made of all events of their types, and where nothing may be skipped every event matters.

    Parameters
    ----------
    workload : CompiledWorkload
    compiled : CompiledClass
    """

    def __init__(self, workload: CompiledWorkload, compiled: CompiledClass) -> None:
        self._known = workload.classifier.signatures
        self._compiled = compiled
        self._roles = list(dict.fromkeys(role for query in compiled.queries for role in query.roles.values()))
        self._of_signature = np.zeros(1, bool)

    def rows(self, signatures: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Whether the class needs each event; shape (rows,)."""
        if len(self._of_signature) <= len(self._known):
            if self._compiled.matching:
                needed = [bool(self._compiled.seen(each)) for each in self._known]
            else:
                needed = [any(each.fits(role) for role in self._roles) for each in self._known]
            self._of_signature = np.array([*needed, self._compiled.sees_all])  # the last place is that of `FOREIGN`, -1
        found: npt.NDArray[np.bool_] = self._of_signature[signatures]
        return found


class Ownership:
    """What a slice keeps: the filter at the join.

    Parameters
    ----------
    compiled : CompiledClass
    owner : Owner
    schema : Schema
    slice : int
    """

    def __init__(self, compiled: CompiledClass, owner: Owner, schema: Schema, slice: int) -> None:
        self._owner = owner
        self._slice = slice
        self._places = tuple(range(len(compiled.attributes)))
        self._bytes_of = ValueBytes(compiled.attributes, schema)
        self._known: dict[tuple[Any, ...], bool] = {}

    def owns(self, key: tuple[Any, ...]) -> bool:
        """Whether a partition belongs to the slice; where windows are cut, all slices have all partitions."""
        if isinstance(self._owner, TimeOwner):
            return True
        if key not in self._known:
            self._known[key] = self._owner.owner(self._bytes_of.of(self._places, key)) == self._slice
        return self._known[key]

    @property
    def by_time(self) -> bool:
        """Whether the slice owns windows, with all of their groups."""
        return isinstance(self._owner, TimeOwner)

    def keeps(self, starts: Int64Array) -> npt.NDArray[np.bool_]:
        """Whether windows that begin at these ticks belong to the slice; shape (n,)."""
        if not isinstance(self._owner, TimeOwner):
            return np.ones(len(starts), bool)
        kept: npt.NDArray[np.bool_] = self._owner.owners(starts) == self._slice
        return kept
