"""What a notation gives to be driven over a live stream: its monitor, its reader of lines, and how its rows look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from hamlet.input.file_form import Dropped

Pieces = Sequence[tuple[int, Any]]  # the place of a query, policy or specification, and rows of it


class LineParser(Protocol):
    """Events from blocks of lines, of one stream of bytes."""

    @property
    def header(self) -> bool:
        """Whether the first line names the columns."""
        ...

    def begin(self, line: bytes) -> None:
        """Take a header."""
        ...

    def parse(self, block: bytes) -> Any:
        """The events of a block of lines, None where there are none.

        Raises
        ------
        hamlet.input.live.table_lines.BadLineError
            Where some line is no event; then nothing of the block is taken.
        """
        ...

    def reason(self, line: bytes) -> str | None:
        """What is wrong with a line, for people."""
        ...


class LogParser(Protocol):
    """Time-points from blocks of a log's lines.

    Attributes
    ----------
    dropped : Dropped
        Time-points with a mistake that were left out.
    """

    dropped: Dropped

    @property
    def open_bytes(self) -> int:
        """Bytes of the time-point that is open."""
        ...

    @property
    def open_text(self) -> bytes:
        """The time-point that is open."""
        ...

    @property
    def begun(self) -> int | None:
        """The time of the time-point that is open."""
        ...

    @property
    def open_lines(self) -> int:
        """The line breaks in it."""
        ...

    def take(self, block: bytes, line: int | None = None, final: bool = False) -> Iterator[Any]:
        """The time-points that are complete by now; DataError at a mistake."""
        ...


class RowText(Protocol):
    """Rows as text."""

    def head(self) -> str:
        """What stands before the first row."""
        ...

    def lines(self, rows: Any) -> str:
        """The text of rows."""
        ...

    def tail(self) -> str:
        """What the last row still needs."""
        ...


class Tenant(Protocol):
    """Queries, policies, specifications or row patterns over one stream.

    Attributes
    ----------
    kind : str
        ``query``, ``policy``, ``specification``: what folders and columns of rows are called after.
    names : sequence of str
        Of its parts, in the order of their places.
    failed : bool
        Whether it cannot go on.
    over : bool
        Whether it has given all that was asked for.
    events, late_events : int
        Seen so far, and left out of these.
    kept_bytes : int
        What is kept.
    """

    kind: str
    names: Sequence[str]
    over: bool

    @property
    def failed(self) -> bool: ...  # noqa: D102
    @property
    def events(self) -> int: ...  # noqa: D102
    @property
    def late_events(self) -> int: ...  # noqa: D102
    @property
    def kept_bytes(self) -> int: ...  # noqa: D102

    @property
    def warnings(self) -> Sequence[str]:
        """What was probably not meant, a sentence each."""
        ...

    @property
    def last_time(self) -> str | None:
        """The largest time seen, as text."""
        ...

    def parser(self, form: str, name: str) -> LineParser:
        """A reader of lines of ``json`` or ``csv``."""
        ...

    def log_parser(self, name: str) -> LogParser:
        """A reader of MonPoly's log.

        Raises
        ------
        hamlet.errors.DataError
            If the notation reads none.
        """
        ...

    def push(self, events: Any, name: str) -> Pieces:
        """Take what a parser has given (a log's also the time that has begun), or a pyarrow.Table.

        Gives the rows that are final by it.
        """
        ...

    def pass_time(self, seconds: float) -> Pieces:
        """So many seconds have passed since the last event; the rows that are final by it."""
        ...

    def close(self) -> Pieces:
        """The end of the stream; the rows that are left."""
        ...

    def save(self) -> bytes:
        """All that it is."""
        ...

    def text(self) -> str:
        """What the rows are of, without comments: another text cannot go on with a save."""
        ...

    def columns(self, place: int) -> Sequence[str]:
        """The columns of the rows of a part, beside the one that names it."""
        ...

    def row_text(self, place: int, output_format: str, *, lead: bool, header: Sequence[str] | None = None) -> RowText:
        """How rows of a part become text; with `lead` each row names its part."""
        ...

    def batch(self, place: int, rows: Any) -> Any:
        """Rows of a part as a pyarrow.RecordBatch, for Parquet."""
        ...


def count_of(rows: Any) -> int:
    """How many rows there are."""
    return int(rows.num_rows) if hasattr(rows, "num_rows") else len(rows)
