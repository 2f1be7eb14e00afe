"""Maps as bytes: what tasks exchange instead of events."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from hamlet.output.partial import decode_components, encode_components
from hamlet.parallel.time.chunk import Maps
from hamlet.parallel.time.probes import Entries
from hamlet.planner.aggregates import ComponentKey
from hamlet.planner.coordinates import Coordinates, Sums

_HEAD = struct.Struct("<qqIII")  # first, last, windows that end, matrices, windows that begin
_ITEM = struct.Struct("<IqI")  # query of the kernel, window, entries
_ENTRY = struct.Struct("<III")  # row, column, bytes


def encoded(of: Sequence[Coordinates], maps: Maps) -> bytes:
    """What a chunk makes of a partition as bytes.

    Parameters
    ----------
    of : sequence of Coordinates
        Of the queries of the kernel.
    maps : Maps
    """
    vectors = {place: {(0, column): sums for column, sums in each.items()} for place, each in maps.begun.items()}
    parts = [_HEAD.pack(maps.first, maps.last, len(maps.ends), len(maps.through), len(vectors))]
    for (query, window), entries in maps.ends.items():
        parts += _item(of[query].keys, query, window, entries)
    for query, entries in maps.through.items():
        parts += _item(of[query].keys, query, 0, entries)
    for (query, window), entries in vectors.items():
        parts += _item(of[query].keys, query, window, entries)
    return b"".join(parts)


def _item(
    keys: Sequence[ComponentKey], query: int, window: int, entries: Mapping[tuple[int, int], Sums]
) -> list[bytes]:
    parts = [_ITEM.pack(query, window, len(entries))]
    columns = list(zip(*entries.values(), strict=True))
    for (row, column), data in zip(entries, encode_components(keys, columns) if columns else [], strict=True):
        parts += [_ENTRY.pack(row, column, len(data)), data]
    return parts


def decoded(of: Sequence[Coordinates], data: bytes) -> Maps:
    """The inverse of `encoded`."""
    first, last, ends, through, begun = _HEAD.unpack_from(data)
    maps = Maps(first, last)
    at = _HEAD.size
    for _ in range(ends):
        query, window, entries, at = _taken(of, data, at)
        maps.ends[query, window] = entries
    for _ in range(through):
        query, _, entries, at = _taken(of, data, at)
        maps.through[query] = entries
    for _ in range(begun):
        query, window, entries, at = _taken(of, data, at)
        maps.begun[query, window] = {column: sums for (_, column), sums in entries.items()}
    return maps


def _taken(of: Sequence[Coordinates], data: bytes, at: int) -> tuple[int, int, Entries, int]:
    query, window, count = _ITEM.unpack_from(data, at)
    at += _ITEM.size
    entries: Entries = {}
    for _ in range(count):
        row, column, length = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        entries[row, column] = decode_components(of[query].keys, data[at : at + length])
        at += length
    return query, window, entries, at
