"""Live change: an engine goes on with another workload, and unchanged queries keep their open windows.

What an engine runs is compiled as a whole, so a further engine runs beside it for the new queries and gets the same
events; rows of queries that were dropped are no longer given. A new query begins with the first window that starts
after the change, since it has not seen the events before.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hamlet.errors import HamletError, RestoreError
from hamlet.language.printing import to_text
from hamlet.planner.workload import Workload

MAGIC = b"\x93HAMLETS"
_HEAD = struct.Struct("<8sQQ32s")  # magic, length of the description, length of all behind the head, digest


@dataclass(frozen=True)
class Replacement:
    """What a change of the workload did, query by query.

    Attributes
    ----------
    kept : tuple of str
        Unchanged: their open windows go on.
    added : tuple of str
        New, or of another text than before: they begin with the first window after the change.
    dropped : tuple of str
        Gone: their open windows give no rows.
    changed : tuple of str
        Those among `added` whose name was known.
    after : int or None
        Ticks: windows of added queries that start at or before it give no rows; None where no event has come.
    """

    kept: tuple[str, ...]
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    changed: tuple[str, ...]
    after: int | None


@dataclass
class Part:
    """An engine that runs some queries of a workload.

    Attributes
    ----------
    engine : Any
        A `hamlet.engine.online.Engine`.
    names : set of str
        The queries whose rows are given.
    after : int or None
        Ticks: rows of windows that start at or before it are left out.
    """

    engine: Any
    names: set[str] = field(default_factory=set)
    after: int | None = None


def compared(old: Workload, new: Workload, after: int | None) -> Replacement:
    """What has to be done to go on with another workload."""
    before, now = _texts(old), _texts(new)
    kept = tuple(name for name in now if before.get(name) == now[name])
    added = tuple(name for name in now if name not in kept)
    dropped = tuple(name for name in before if name not in now)
    return Replacement(kept, added, dropped, tuple(name for name in added if name in before), after)


def _texts(workload: Workload) -> dict[str, str]:
    """Each query's own text, with the declarations of the types that it uses."""
    declared = {each.name: to_text(each) for each in workload.analysis.text.declarations}
    return {
        query.query.name: "\n".join(
            [*(declared[kind] for kind in sorted(set(query.types.values())) if kind in declared), to_text(query.query)]
        )
        for query in workload.analysis.queries
    }


def in_order(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of several engines, query by query in the order of the workload."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for row in rows:
        found[row["query"]].append(row)
    return [row for each in found.values() for row in each]


# ---------------------------------------------------------------------------------------------------- saves


def packed(workload: Workload, parts: Sequence[tuple[Part, Workload, bytes]]) -> bytes:
    """A save of several engines, each with its workload and its own save."""
    head = json.dumps(
        {
            "workload": str(workload),
            "parts": [
                {"text": str(own), "names": sorted(part.names), "after": part.after, "length": len(data)}
                for part, own, data in parts
            ],
        }
    ).encode()
    rest = b"".join([head, *(data for _, _, data in parts)])
    return _HEAD.pack(MAGIC, len(head), len(rest), hashlib.blake2b(rest, digest_size=32).digest()) + rest


def is_packed(data: bytes | bytearray | memoryview) -> bool:
    """Whether bytes are a save of several engines."""
    try:
        return bytes(memoryview(data).cast("B")[: len(MAGIC)]) == MAGIC
    except TypeError:
        return False


@dataclass(frozen=True)
class Unpacked:
    """One engine of a save of several.

    Attributes
    ----------
    workload : Workload
    data : bytes
    names : set of str
    after : int or None
    """

    workload: Workload
    data: bytes
    names: set[str]
    after: int | None


def unpacked(workload: Workload, data: bytes | bytearray | memoryview) -> list[Unpacked]:
    """The engines of a save.

    Raises
    ------
    RestoreError
        The bytes are damaged, or of another workload.
    """
    view = bytes(memoryview(data).cast("B"))
    try:
        _, length, behind, digest = _HEAD.unpack_from(view)
        rest = view[_HEAD.size :]
        if len(rest) != behind or hashlib.blake2b(rest, digest_size=32).digest() != digest:
            raise ValueError("its bytes do not fit their digest")
        described: Mapping[str, Any] = json.loads(rest[:length])
        found, place = [], length
        for each in described["parts"]:
            end = place + int(each["length"])
            after = None if each["after"] is None else int(each["after"])
            known = Workload.parse(str(each["text"]))
            found.append(Unpacked(known, rest[place:end], set(map(str, each["names"])), after))
            place = end
        same = described["workload"] == str(workload)
    except (ValueError, KeyError, TypeError, RecursionError, struct.error, HamletError) as error:
        raise RestoreError(f"the save is damaged: {error}\nhint: take an older save") from None
    if not same or not found:
        raise RestoreError(
            "the save is of an engine of another workload\n"
            "hint: restore it with the workload that it was saved with, or say which that was (saved_with=...)"
        )
    return found


__all__ = ["Part", "Replacement", "compared", "in_order", "is_packed", "packed", "unpacked"]
