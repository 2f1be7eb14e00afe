"""Several pieces of bytes as one, and rows as the bytes of an Arrow stream."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pyarrow as pa

from hamlet.errors import RestoreError

_LENGTH = struct.Struct("<Q")


def joined(parts: Iterable[bytes]) -> bytes:
    """Several pieces of bytes as one, for `unjoined`."""
    return b"".join(piece for part in parts for piece in (_LENGTH.pack(len(part)), part))


def unjoined(data: bytes) -> list[bytes]:
    """The pieces that `joined` was given.

    Raises
    ------
    RestoreError
        If there are bytes missing.
    """
    found, place = [], 0
    while place < len(data):
        start = place + _LENGTH.size
        place = start + (_LENGTH.unpack_from(data, place)[0] if start <= len(data) else 0)
        if not start <= place <= len(data):
            raise RestoreError("the save is not whole")
        found.append(data[start:place])
    return found


def as_bytes(rows: pa.RecordBatch | pa.Table) -> bytes:
    """Rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write(rows)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def from_bytes(data: bytes | pa.Buffer) -> list[pa.RecordBatch]:
    """The batches of an Arrow stream."""
    with pa.ipc.open_stream(data) as reader:
        return list(reader)
