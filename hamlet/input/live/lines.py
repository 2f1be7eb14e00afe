"""Bytes as they arrive, as blocks of whole lines: a line that is split between two reads is one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hamlet.errors import DataError
from hamlet.frontend.time_column import TIME_COLUMNS

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # what UTF-8 text may begin with
LONGEST_LINE = 1 << 28  # bytes
_MOST_QUOTED = 1 << 20  # bytes behind an open quote that are still taken for one value


@dataclass(frozen=True)
class LineForm:
    """How to find the times of lines.

    Attributes
    ----------
    form : str or None
        Of all files; by default names and first bytes tell.
    columns : tuple of str
        What the time column may be called.
    time_unit : str
    names : sequence of str or None
        The columns of CSV without a header.
    """

    form: str | None = None
    columns: tuple[str, ...] = TIME_COLUMNS
    time_unit: str = "s"
    names: Sequence[str] | None = None


class Lines:
    """Splits what is read into blocks of whole lines.

    Parameters
    ----------
    name : str
        Of the source, for messages.

    Attributes
    ----------
    number : int
        The number of the first line that was not given out yet, from 1.
    offset : int
        The bytes given out so far.
    quoted : bool
        Whether a line break within double quotes is part of a value, as in CSV.
    """

    quoted = False

    def __init__(self, name: str, *, offset: int = 0, number: int = 1) -> None:
        self.name = name
        self.number = number
        self.offset = offset
        self._rest = b""

    @property
    def rest(self) -> bytes:
        """What has come of a line that is not whole."""
        return self._rest

    def feed(self, data: bytes) -> tuple[bytes, int]:
        """The lines that are whole by now, as one block, and the number of its first line."""
        end = data.rfind(b"\n") + 1
        if not end:
            self._rest += data
            if len(self._rest) > LONGEST_LINE:
                raise DataError(f"{self.name}:{self.number}: the line is longer than {LONGEST_LINE:,} bytes")
            return b"", self.number
        block = self._rest + data[:end] if self._rest else data[:end]
        rest = data[end:]
        if self.quoted and block.count(b'"') % 2:
            block, rest = _before_open_quote(block, rest)
        self._rest = rest
        return self._given(block)

    def finish(self) -> tuple[bytes, int]:
        """The last line, which has no line break."""
        block, self._rest = self._rest, b""
        return self._given(block)

    def _given(self, block: bytes) -> tuple[bytes, int]:
        number = self.number
        self.number += block.count(b"\n")
        if self.offset == 0 and block.startswith(BYTE_ORDER_MARK):
            self.offset += len(BYTE_ORDER_MARK)
            block = block[len(BYTE_ORDER_MARK) :]
        self.offset += len(block)
        return block, number


def _before_open_quote(block: bytes, rest: bytes) -> tuple[bytes, bytes]:
    """A block without its last lines, from the one on in which a quote is open, and these with what follows."""
    at = len(block)
    while (at := block.rfind(b"\n", 0, at)) >= 0:
        if block.count(b'"', 0, at) % 2 == 0:
            break
    if len(block) - at - 1 + len(rest) > _MOST_QUOTED:  # no value is so long: the quote is a mistake of one line
        return block, rest
    return block[: at + 1], block[at + 1 :] + rest
