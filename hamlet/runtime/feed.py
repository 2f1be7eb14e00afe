"""What one stream of bytes sends, handed to tenants: lines are cut, bad ones found and left out or told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hamlet.errors import DataError, LateError
from hamlet.input.file_form import Dropped
from hamlet.input.live.arrow import ArrowStream
from hamlet.input.live.line_times import no_events, sniffed
from hamlet.input.live.lines import Lines
from hamlet.input.live.table_lines import BadLineError
from hamlet.runtime.tenant import LineParser, LogParser, Tenant

FORMS = ("json", "csv", "monpoly", "arrow")


@dataclass
class BadRows:
    """What becomes of lines that are no events.

    Attributes
    ----------
    drops : bool
        Whether they are left out and counted; else the first one ends the run.
    dropped : Dropped
    """

    drops: bool = False
    dropped: Dropped = field(default_factory=Dropped)

    def take(self, name: str, line: int, reason: str) -> None:
        """A line that is no event."""
        what, _, hint = reason.partition("\nhint: ")
        if not self.drops:
            hint = hint or "--bad-rows drop leaves such lines out, and counts them"
            raise DataError(f"{name}:{line}: {what}\nhint: {hint}")
        self.dropped.add(f"{name}:{line}: {what}")


Take = Callable[[int, Any, str], None]  # the place of a tenant, events, and what they are called


class Feed:
    """Turns the bytes of one stream into events for tenants.

    Parameters
    ----------
    name : str
        Of the stream, for messages.
    form : str or None
        One of `FORMS`; by default the first bytes tell.
    tenants : sequence of Tenant
    bad : BadRows
    take : callable
        Gets the events.
    offset, line : int
        Where in the source the bytes begin.
    header : bytes, optional
        The CSV header, where the bytes begin behind it.
    headless : bool
        Whether no header can come.
    logs : sequence of LogParser, optional
        Those of the stream before, whose last time-point goes on in this one.
    """

    def __init__(
        self,
        name: str,
        form: str | None,
        tenants: Sequence[Tenant],
        bad: BadRows,
        take: Take,
        *,
        offset: int = 0,
        line: int = 1,
        header: bytes | None = None,
        headless: bool = False,
        logs: Sequence[LogParser] | None = None,
    ) -> None:
        self.name = name
        self.form = form
        self.header = header
        self.logs = logs
        self._headless = headless
        self._tenants = tenants
        self._bad = bad
        self._take = take
        self._lines = Lines(name, offset=offset, number=line)
        self._parsers: list[LineParser] | None = None
        self._arrow: ArrowStream | None = None
        self._begun = b""  # what came before the form was known

    @property
    def offset(self) -> int:
        """Up to where the source has been taken."""
        if self._arrow is not None:
            return self._arrow.offset
        return self._lines.offset - (max((each.open_bytes for each in self.logs), default=0) if self.logs else 0)

    @property
    def rest(self) -> bytes:
        """What was taken of a log and belongs to the time-point that is open."""
        return self.logs[0].open_text if self.logs else b""

    @property
    def line(self) -> int:
        """The number of the line at `offset`."""
        if not self.logs:
            return self._lines.number
        return self._lines.number - max(each.open_lines for each in self.logs)

    def data(self, data: bytes) -> None:
        """Take bytes."""
        if self._parsers is None and self._arrow is None and not self._known(data):
            return
        data, self._begun = self._begun + data, b""
        if self._arrow is not None:
            for table in self._arrow.feed(data):
                self._push_all(table)
            return
        self._block(*self._lines.feed(data))

    @property
    def settled(self) -> bool:
        """Whether whatever comes now is lines of events."""
        parsers = self._parsers or ()
        return bool(parsers) and (self.header is not None or not any(each.header for each in parsers))

    def whole_lines(self, data: bytes) -> tuple[bytes, int]:
        """The lines that are whole with these bytes, which somebody else takes, and the number of the first."""
        return self._lines.feed(data)

    @property
    def tenants(self) -> int:
        """How many take the events."""
        return len(self._tenants)

    def push(self, place: int, events: Any) -> bool:
        """Push events of this and other streams into a tenant; gives whether it has taken them."""
        tenant = self._tenants[place]
        before = tenant.events
        try:
            self._take(place, events, self.name)
        except DataError:
            if tenant.failed or tenant.events != before:
                raise
            return False
        return True

    def parsed(self, place: int, block: bytes) -> Any:
        """The events in lines, for a tenant; nothing is pushed.

        Raises
        ------
        BadLineError
        """
        assert self._parsers is not None
        return self._parsers[place].parse(block)

    def take_lines(self, place: int, block: bytes, line: int) -> None:
        """Parse lines, the first of which has this number, and push them into a tenant."""
        assert self._parsers is not None
        if block:
            self._lines_of(place, self._parsers[place], block, line)

    def end(self, whole: bool) -> None:
        """No bytes follow; a last line without a line break counts where the stream is whole, and else is bad."""
        if self._begun and self._parsers is None:
            self._open("csv" if self._begun.strip() else "json")
            begun, self._begun = self._begun, b""
            self._block(*self._lines.feed(begun))
        if self._arrow is not None:
            if not whole or self._arrow.rest:
                self._arrow.finish()
            return
        if self._lines.rest.strip(b"\r\n" if whole else None):
            block, line = self._lines.finish()
            if whole:
                self._block(block, line)
            else:
                BadRows(True, self._bad.dropped).take(self.name, line, "the line breaks off")

    def finish(self) -> None:
        """The last time-point of a log is complete: all input has ended, or a file that no other goes on with."""
        for place, parser in enumerate(self.logs or ()):
            self._push_log(place, parser.take(b"", None, True))
            self._count_bad(place, parser)

    # ------------------------------------------------------------------------------------------------ inside

    def _known(self, data: bytes) -> bool:
        """Open the stream once its form is known."""
        form = self.form
        if not self._lines.offset and (found := no_events(self._begun + data)) is not None:
            raise DataError(f"{self.name}: {found}")
        if form is None:
            form = sniffed(self._begun + data)
            if form is None:
                self._begun += data
                return False
            if form == "csv" and self.logs is not None:
                form = "monpoly"  # the time-point of the stream before goes on
        self._open(form)
        return True

    def _open(self, form: str) -> None:
        self.form = form
        if form == "arrow":
            self._arrow = ArrowStream(self.name)
            return
        self._parsers = []
        if form == "monpoly":
            if self.logs is None:
                self.logs = [each.log_parser(self.name) for each in self._tenants]
            return
        self._lines.quoted = form == "csv"
        self._parsers = [each.parser(form, self.name) for each in self._tenants]
        if self._headless and any(each.header for each in self._parsers):
            raise DataError(f"{self.name}: CSV comes without a header here; give --columns time,type,...")
        if self.header is not None:
            for parser in self._parsers:
                if parser.header:
                    parser.begin(self.header)

    def _block(self, block: bytes, line: int) -> None:
        """Take whole lines, the first of which has this number."""
        if not block:
            return
        if self.form == "monpoly":
            for place, log in enumerate(self.logs or ()):
                self._push_log(place, log.take(block, line))
                self._count_bad(place, log)
                if log.begun is not None:
                    self._take(place, log.begun, self.name)
            return
        assert self._parsers is not None
        if self.header is None and any(each.header for each in self._parsers):
            while block and self.header is None:
                first, _, block = block.partition(b"\n")
                line += 1
                if first.strip():
                    self.header = first
            if self.header is None:
                return
            for parser in self._parsers:
                if parser.header:
                    parser.begin(self.header)
        for place, parser in enumerate(self._parsers):
            self._lines_of(place, parser, block, line)

    def _lines_of(self, place: int, parser: LineParser, block: bytes, line: int) -> None:
        """Parse and push lines; where one is bad, halves of them, until it stands alone."""
        try:
            events = parser.parse(block)
        except BadLineError as error:
            halves = _halves(block, self._lines.quoted)
            if halves is None:
                start = line + (len(block) - len(block.lstrip(b"\r\n"))) // 2
                reason = parser.reason(block) or str(error)
                if place == 0 or not self._bad.drops:
                    self._bad.take(self.name, start if block.count(b"\n") > 1 else line, reason)
                return
            self._lines_of(place, parser, halves[0], line)
            self._lines_of(place, parser, halves[1], line + halves[0].count(b"\n"))
            return
        if events is not None:
            self._push(place, parser, events, block, line)

    def _push(self, place: int, parser: LineParser, events: Any, block: bytes, line: int) -> None:
        """Push events; where one comes too late, halves of them, so that what comes before it is taken."""
        try:
            self._take(place, events, self.name)
        except LateError as error:
            halves = _halves(block, self._lines.quoted)
            if halves is None or self._tenants[place].failed:
                raise _late(error, f"{self.name}:{line}") from None
            self._lines_of(place, parser, halves[0], line)
            self._lines_of(place, parser, halves[1], line + halves[0].count(b"\n"))
        except DataError as error:
            first = str(error).split(": ", 1)[0]
            if first.startswith(self.name):
                raise
            raise DataError(f"{self.name}:{line}: {error}") from None

    def _count_bad(self, place: int, log: LogParser) -> None:
        """Count the time-points that a log has left out."""
        if log.dropped.rows:
            if place == 0:
                self._bad.dropped = self._bad.dropped.plus(log.dropped, self.name)
            log.dropped = Dropped()

    def _push_log(self, place: int, chunks: Iterator[Any]) -> None:
        for chunk in chunks:
            self._take(place, chunk, self.name)

    def _push_all(self, table: pa.Table) -> None:
        for place in range(len(self._tenants)):
            self._table(place, table)

    def _table(self, place: int, table: pa.Table) -> None:
        """Push rows of a table; where one comes too late, those before it."""
        try:
            self._take(place, table, self.name)
        except LateError as error:
            if table.num_rows < 2 or self._tenants[place].failed:
                raise _late(error, self.name) from None
            half = table.num_rows // 2
            self._table(place, table.slice(0, half))
            self._table(place, table.slice(half))


def _halves(block: bytes, quoted: bool) -> tuple[bytes, bytes] | None:
    """A block of lines as two; None where it is a single one."""
    body = block.rstrip(b"\r\n")
    middle = len(body) // 2
    places = [body.rfind(b"\n", 0, middle), body.find(b"\n", middle)]
    if quoted and b'"' in body:
        ends = [at for at, byte in enumerate(body) if byte == 10 and body.count(b'"', 0, at) % 2 == 0]
        places = [min(ends, key=lambda at: abs(at - middle))] if ends else []
    at = max(places, default=-1)
    return None if at < 0 else (block[: at + 1], block[at + 1 :])


def _late(error: LateError, where: str) -> LateError:
    """The error for a late event, in the words of the command line."""
    said = str(error).split("\n", 1)[0]
    text = said[said.find(" is late: ") + 1 :] if " is late: " in said else said
    text = text.split("; nothing of this push", 1)[0]
    hint = "hint: give --lateness '5 s', or leave late events out with --late drop"
    return LateError(f"{where}: the event {text}\n{hint}")
