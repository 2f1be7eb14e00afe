"""Which keys can have a trend at all: a Bloom filter, by which events of other keys stay behind before the shuffle.

A key that lacks an event which every word of every pattern needs has no trend (`hamlet.parallel.routing.possible`). A
scan finds the roles of each key: tasks report hashes of keys with the roles that they have seen, those of a key meet in
one task, which gives the hashes of the keys that have all they need. A Bloom filter of these has no false negatives, so
rows are exact; one key in two hundred passes that need not, and costs what it costs without a filter. Equal keys have
equal hashes in every process. Source: Bloom (CACM 1970).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.input.columns import Int64Array, column
from hamlet.parallel.routing.possible import lacking, presence
from hamlet.parallel.routing.routes import Route
from hamlet.planner.compiled import CompiledClass, CompiledWorkload

Words = npt.NDArray[np.uint64]

_BITS, _PROBES = 12, 5  # of a filter per key, and bits that a key sets: 0.5 % of other keys pass
_MOST_HELD = 1 << 21  # hashes of a task before those of one key become one
_NULL, _SEED, _PRIME = np.uint64(0x9AE16A3B2F90404F), np.uint64(0x9E3779B97F4A7C15), np.uint64(0x100000001B3)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)

PAIR = np.dtype([("hash", np.uint64), ("roles", np.int64)])


# --------------------------------------------------------------------------------------------------- hashes


def mixed(words: Words) -> Words:
    """Words with every bit depending on every bit (the finalizer of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    found: Words = words ^ (words >> np.uint64(31))
    return found


def hashes_of(batch: pa.RecordBatch, names: Sequence[str]) -> Words:
    """A hash of the key of each event; shape (rows,). Equal keys have equal ones: -0.0 is 0.0, and NaN is NULL.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Its columns have the types that all tasks give them.
    names : sequence of str
        The attributes of the key.
    """
    found = np.full(batch.num_rows, _SEED, np.uint64)
    for name in names:
        found = mixed(found + _SEED + _words(column(batch, name), batch.num_rows))
    return found


def _words(array: pa.Array | None, rows: int) -> Words:
    """A word for each value, equal ones for equal values."""
    if array is None or pa.types.is_null(array.type):
        return np.full(rows, _NULL, np.uint64)
    if pa.types.is_dictionary(array.type):
        values = np.append(_words(array.dictionary, len(array.dictionary)), _NULL)
        places = array.indices.cast(pa.int64()).fill_null(len(array.dictionary)).to_numpy(zero_copy_only=False)
        chosen: Words = values[places]
        return chosen
    missing = array.is_null(nan_is_null=pa.types.is_floating(array.type)).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(array.type):
        numbers = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # without -0.0
        words = mixed(numbers.view(np.uint64))
    elif pa.types.is_boolean(array.type) or pa.types.is_integer(array.type):
        words = mixed(_unsigned(array.cast(pa.int64())))
    elif pa.types.is_temporal(array.type):
        words = mixed(
            _unsigned(array.cast(pa.int32() if pa.types.is_date32(array.type) else pa.int64()).cast(pa.int64()))
        )
    else:
        words = _of_text(array.cast(pa.string()))
    return np.where(missing, _NULL, words)


def _unsigned(array: pa.Array) -> Words:
    found: Words = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64, copy=False).view(np.uint64)
    return found


def _of_text(array: pa.Array) -> Words:
    """A word for each text, byte by byte for all of them at once (FNV-1a)."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    letters = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    starts, lengths = ends[:-1], np.diff(ends)
    words = np.full(len(array), _SEED, np.uint64)
    places = np.nonzero(lengths)[0]
    letter = 0
    while len(places):
        words[places] = (words[places] ^ letters[starts[places] + letter]) * _PRIME
        letter += 1
        places = places[lengths[places] > letter]
    return mixed(words)


# --------------------------------------------------------------------------------------------------- filters


@dataclass(frozen=True)
class KeyFilter:
    """The keys of a class of queries that can have a trend, and half a per cent of the others.

    Attributes
    ----------
    bits : bytes
        Of the Bloom filter.
    keys : int
        All keys that were seen.
    possible : int
        Those that can have a trend.
    """

    bits: bytes
    keys: int
    possible: int

    @classmethod
    def of(cls, hashes: Words, keys: int) -> KeyFilter:
        """A filter that some keys pass, by their hashes."""
        size = max(64, _BITS * len(hashes))
        flags = np.zeros(size, np.bool_)
        for places in _probes(hashes, size):
            flags[places] = True
        return cls(np.packbits(flags).tobytes(), keys, len(hashes))

    def passed(self, hashes: Words) -> npt.NDArray[np.bool_]:
        """Which keys may have a trend; shape of the hashes."""
        bits = np.frombuffer(self.bits, np.uint8)
        found = np.ones(len(hashes), np.bool_)
        for places in _probes(hashes, max(64, _BITS * self.possible)):
            found &= (bits[places >> 3] >> (7 - (places & 7)).astype(np.uint8)) & 1 != 0
        return found


def _probes(hashes: Words, size: int) -> Iterator[Int64Array]:
    """The bits of each key, one after the other."""
    step = mixed(hashes) | np.uint64(1)
    for number in range(_PROBES):
        yield ((hashes + np.uint64(number) * step) % np.uint64(size)).astype(np.int64)


class KeyTest:
    """Tests which events of a class may stay behind.

    Parameters
    ----------
    keys : sequence of str
        The attributes that the class is routed by.
    lacking : collection of str
        Types that do not carry all of them, and so belong to partitions that they do not name.
    chosen : KeyFilter
    """

    def __init__(self, keys: Sequence[str], lacking: Iterable[str], chosen: KeyFilter) -> None:
        self._keys = tuple(keys)
        self._lacking = frozenset(lacking)
        self._filter = chosen

    def kept(self, batch: pa.RecordBatch, types: Sequence[str], type_numbers: Int64Array) -> npt.NDArray[np.bool_]:
        """Which events of a batch must go on; `type_numbers` are places in `types`. Shape (rows,)."""
        always = np.array([each in self._lacking for each in types])[type_numbers]
        return always | self._filter.passed(hashes_of(batch, self._keys))


# ---------------------------------------------------------------------------------------------------- roles


def merged(pairs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Hashes with roles (`PAIR`), one for each hash, with the roles of all."""
    if not len(pairs):
        return pairs
    order = np.argsort(pairs["hash"], kind="stable")
    hashes, roles = pairs["hash"][order], pairs["roles"][order]
    starts = np.nonzero(np.append(True, hashes[1:] != hashes[:-1]))[0]
    found = np.empty(len(starts), PAIR)
    found["hash"], found["roles"] = hashes[starts], np.bitwise_or.reduceat(roles, starts)
    return found


class RolesOfKeys:
    """The roles of the keys of a class, over the events of a task.

    Parameters
    ----------
    workload : CompiledWorkload
    compiled : CompiledClass
    route : Route
        One with keys.
    """

    def __init__(self, workload: CompiledWorkload, compiled: CompiledClass, route: Route) -> None:
        self._known = workload.classifier.signatures
        self._keys = route.keys
        self._lacking = lacking(compiled, route)
        self._present = presence(compiled, route)
        self._held: list[npt.NDArray[Any]] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch, signatures: npt.NDArray[np.int32]) -> None:
        """Look at a batch whose events have these signatures."""
        bits = [0 if each.type in self._lacking else self._bits(each) for each in self._known]
        roles = np.array([*bits, 0], np.int64)[signatures]
        rows = np.nonzero(roles)[0]  # a key without any role has no trend, and needs no word
        if len(rows):
            part = batch.take(pa.array(rows))
            pairs = np.empty(len(rows), PAIR)
            pairs["hash"], pairs["roles"] = hashes_of(part, self._keys), roles[rows]
            self._held.append(merged(pairs))
            self._rows += len(self._held[-1])
            if self._rows > _MOST_HELD and len(self._held) > 1:
                self._held = [self.pairs()]
                self._rows = 0  # what is one already is not looked at again at once

    def _bits(self, signature: Any) -> int:
        return sum(1 << place for place, role in enumerate(self._present.roles) if signature.fits(role))

    def by_bucket(self, buckets: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """All of it in parts by the hash, so that those of a key meet."""
        pairs = self.pairs()
        places = (pairs["hash"] % np.uint64(buckets)).astype(np.int64)
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(np.bincount(places, minlength=buckets))
        for bucket, (start, end) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
            if end > start:
                yield bucket, pairs[order[start:end]]

    def pairs(self) -> npt.NDArray[Any]:
        """All of it, of `PAIR`, in the order of the hashes."""
        return merged(np.concatenate([np.empty(0, PAIR), *self._held]))


def can_filter(compiled: CompiledClass, route: Route) -> bool:
    """Whether keys of a class can be told to have no trend: not where every event matters, or nothing is needed."""
    return bool(route.keys) and not compiled.sees_all and not presence(compiled, route).possible(0)


def possible_of(compiled: CompiledClass, route: Route, pairs: npt.NDArray[Any]) -> Words:
    """The hashes of keys that can have a trend, from the roles of all their events."""
    present = presence(compiled, route)
    kinds, places = np.unique(pairs["roles"], return_inverse=True)
    good = np.array([present.possible(roles) for roles in kinds.tolist()], np.bool_)
    found: Words = pairs["hash"][good[places]] if len(kinds) else pairs["hash"]
    return found
