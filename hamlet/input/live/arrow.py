"""Arrow's IPC stream as it arrives: record batches from bytes, whole messages at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.widening import validate

_CONTINUES = b"\xff\xff\xff\xff"
_HEAD = 8  # bytes: the mark, and the length of the description


class ArrowStream:
    """Reads an IPC stream; without its end mark it goes on.

    Attributes
    ----------
    offset : int
        The bytes taken so far, whole messages.
    rest : bytes
        Of a message that is not whole.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.offset = 0
        self.rest = b""
        self._before = b""  # the schema, and dictionaries
        self._needed = _HEAD

    def feed(self, data: bytes) -> Iterator[pa.Table]:
        """The batches that are whole by now.

        Raises
        ------
        DataError
            If the bytes are no such stream.
        """
        self.rest += data
        while len(self.rest) >= self._needed:
            if not self.rest.startswith(_CONTINUES):
                raise DataError(f"{self.name}: the Arrow stream is damaged at byte {self.offset:,}")
            length = int.from_bytes(self.rest[4:8], "little")
            if length == 0:  # the end mark; a further stream may follow
                self.offset += _HEAD
                self.rest, self._before, self._needed = self.rest[_HEAD:], b"", _HEAD
                continue
            size = self._size(length)
            if size is None or len(self.rest) < size:
                self._needed = size or _HEAD + length
                return
            yield from self._message(self.rest[:size])
            self.offset += size
            self.rest, self._needed = self.rest[size:], _HEAD

    def _size(self, length: int) -> int | None:
        """The bytes of the first message; None where its description is not whole."""
        if len(self.rest) < _HEAD + length:
            return None
        return _HEAD + length + _body_length(self.rest[_HEAD : _HEAD + length])

    def _message(self, message: bytes) -> Iterator[pa.Table]:
        try:
            kind = pa.ipc.read_message(message).type
            if kind != "record batch":
                self._before += message
                return
            with pa.ipc.open_stream(self._before + message) as reader:
                table = reader.read_all().replace_schema_metadata()
                validate(table)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.name}: the Arrow stream is damaged: {error}") from error
        if table.num_rows:
            yield table

    def finish(self) -> None:
        """Raise DataError where the stream breaks off within a message."""
        if self.rest:
            raise DataError(f"{self.name}: the Arrow stream breaks off within a message")


def _body_length(description: bytes) -> int:
    """The length of a message's body: the fourth field of the flatbuffer's root table."""
    root = int.from_bytes(description[0:4], "little")
    table = root - int.from_bytes(description[root : root + 4], "little", signed=True)
    size = int.from_bytes(description[table : table + 2], "little")
    place = 4 + 2 * 3  # version, header type, header, body length
    if size < place + 2:
        return 0
    field = int.from_bytes(description[table + place : table + place + 2], "little")
    return 0 if field == 0 else int.from_bytes(description[root + field : root + field + 8], "little", signed=True)
