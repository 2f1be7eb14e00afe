"""Arrow's IPC stream as it arrives: record batches from bytes, whole messages at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

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
        """The batches that are whole by now, as one table: what came in many small ones is taken at once.

        Raises
        ------
        DataError
            If the bytes are no such stream; batches before were given.
        """
        self.rest += data
        begin = end = 0  # of the batches that are whole and not given yet
        while len(self.rest) - end >= self._needed:
            head = self.rest[end : end + _HEAD]
            length = int.from_bytes(head[4:], "little")
            size = self._size(end, length) if head.startswith(_CONTINUES) else None
            if size is None and head.startswith(_CONTINUES):
                self._needed = _HEAD + length
                break
            if size is not None and len(self.rest) - end < size:
                self._needed = size
                break
            self._needed = _HEAD
            if size is not None and length and self._is_batch(end, size):
                end += size
                continue
            yield from self._batches(begin, end)
            begin = end
            if size is None:
                raise DataError(f"{self.name}: the Arrow stream is damaged at byte {self.offset:,}")
            # The end mark, behind which a further stream may follow; or a schema, or a dictionary.
            self._before = self._before + self.rest[end : end + size] if length else b""
            begin = end = end + size
            self.offset += size
        yield from self._batches(begin, end)
        self.rest = self.rest[end:]

    def _size(self, begin: int, length: int) -> int | None:
        """The bytes of the message that begins there; None where its description is not whole."""
        if len(self.rest) < begin + _HEAD + length:
            return None
        return _HEAD + (length + _body_length(self.rest[begin + _HEAD : begin + _HEAD + length]) if length else 0)

    def _is_batch(self, begin: int, size: int) -> bool:
        with self._told():
            return bool(pa.ipc.read_message(self.rest[begin : begin + size]).type == "record batch")

    def _batches(self, begin: int, end: int) -> Iterator[pa.Table]:
        """The table of some batches; where one of them is damaged, those before it one by one."""
        if begin == end:
            return
        tables: list[pa.Table] = []
        with self._told(), pa.ipc.open_stream(self._before + self.rest[begin:end]) as reader:
            try:
                for batch in reader:
                    table = pa.Table.from_batches([batch]).replace_schema_metadata()
                    validate(table)
                    tables.append(table)
            except (pa.ArrowException, OSError):
                yield from _joined(tables)
                raise
        yield from _joined(tables)
        self.offset += end - begin

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of Arrow's in words."""
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{self.name}: the Arrow stream is damaged: {error}") from error

    def finish(self) -> None:
        """Raise DataError where the stream breaks off within a message."""
        if self.rest:
            raise DataError(f"{self.name}: the Arrow stream breaks off within a message")


def _joined(tables: Sequence[pa.Table]) -> Iterator[pa.Table]:
    """Tables as one, if there is a row."""
    if any(each.num_rows for each in tables):
        yield pa.concat_tables(tables).combine_chunks() if len(tables) > 1 else tables[0]


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
