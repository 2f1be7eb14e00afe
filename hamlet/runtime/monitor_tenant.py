"""What tenants have in common that are one monitor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import Any

from hamlet.errors import DataError
from hamlet.input.live.table_lines import Columns, CsvLines, JsonLines
from hamlet.input.readers import OpenTable
from hamlet.output.columnar import encoder_of
from hamlet.output.time_text import time_text
from hamlet.runtime.options import by_name
from hamlet.runtime.reorder_buffer import ReorderBuffer
from hamlet.runtime.tenant import Pieces, RowText


class MonitorTenant:
    """A monitor, and the columns of its events.

    Attributes
    ----------
    kind, names
        As of `hamlet.runtime.tenant.Tenant`.
    over : bool
        As of `hamlet.runtime.tenant.Tenant`.
    named : bool
        Whether each row may name its part.
    monitor : Monitor or None
        None before the first events, where only these say what the columns are.
    known : Columns
        What is known of the columns of lines.
    """

    kind: str
    names: Sequence[str]
    over = False
    named = True
    monitor: Any
    known: Columns
    _chosen: Any = None  # which events are taken, where not all
    _named: Sequence[str] | None = None
    _delimiter: str | None = None
    _reads = "give json, csv or arrow"

    @property
    def _buffer(self) -> ReorderBuffer:
        found: ReorderBuffer = self.monitor._buffer
        return found

    @property
    def asked(self) -> dict[str, Any]:
        """The options of the monitor, which a save has, too."""
        options, buffer = (getattr(self.monitor, name, None) for name in ("options", "_buffer"))
        found = by_name(options) if is_dataclass(options) else {}
        return {**found, **(buffer.options if isinstance(buffer, ReorderBuffer) else {})}

    @property
    def failed(self) -> bool:
        """Whether the monitor cannot go on."""
        return self.monitor is not None and self.monitor._failed is not None

    @property
    def events(self) -> int:
        """Events seen."""
        return self._buffer.events

    @property
    def late_events(self) -> int:
        """Events left out for being late."""
        return self._buffer.late_events

    @property
    def kept_bytes(self) -> int:
        """What the monitor keeps."""
        return 0 if self.monitor is None else int(self.monitor.held["bytes"])

    @property
    def warnings(self) -> Sequence[str]:
        """What was probably not meant."""
        chosen = [] if self._chosen is None else self._chosen.warnings
        return [*chosen, *([] if self.monitor is None else self.monitor.warnings)]

    @property
    def last_time(self) -> str | None:
        """The largest time seen."""
        seen = self._buffer.seen
        return None if seen is None else time_text(seen, self.monitor.clock)

    def _passed(self, seconds: float) -> int | None:
        """The tick before which no event comes so many seconds after the last one, where there was one."""
        seen = self._buffer.seen
        return None if seen is None else seen + int(seconds * self.monitor.clock.ticks_per_second) - self._buffer._ticks

    def push(self, events: Any, name: str) -> Pieces:  # noqa: ARG002
        """Take a table."""
        if self._chosen is not None:
            events = self._chosen.of(events)
            if not events.num_rows:
                return []
        return self._pieces(self.monitor.push_batches(OpenTable(events)))

    def pass_time(self, seconds: float) -> Pieces:
        """Time has passed since the last event."""
        passed = self._passed(seconds)
        return [] if passed is None else self._pieces(self.monitor.advance_batches(passed))

    def close(self) -> Pieces:
        """The rows that are left."""
        return self._pieces(self.monitor.close_batches())

    def _pieces(self, found: Any) -> Pieces:
        """What the monitor gave, part by part."""
        raise NotImplementedError

    def parser(self, form: str, name: str) -> JsonLines | CsvLines:
        """A reader of lines."""
        self._reads_lines(form)
        if form == "json":
            return JsonLines(self.known)
        return CsvLines(self.known, name, self._delimiter, self._named, self._may_read)

    def _may_read(self, name: str) -> bool:
        """Whether somebody may read a column."""
        if self.monitor is None or not hasattr(self.monitor, "_arrivals"):
            return True
        wanted = name in self.monitor._arrivals.wanted
        return wanted or (self._chosen is not None and self._chosen.may_read(name))

    def _reads_lines(self, form: str) -> None:
        """Lines of a form will come: those of JSON may bring further columns at any time."""
        if self._chosen is not None and form == "json":
            self._chosen.growing = True

    def log_parser(self, name: str) -> Any:
        """A log is read by policies only."""
        raise DataError(f"{name}: a log of MonPoly is for policies (.mfotl); {self._reads}")

    def save(self) -> bytes:
        """The monitor, where there is one."""
        return b"" if self.monitor is None else bytes(self.monitor.save())

    def columns(self, place: int) -> Sequence[str]:
        """The columns of the rows of a part."""
        raise NotImplementedError

    def row_text(self, place: int, output_format: str, *, lead: bool, header: Sequence[str] | None = None) -> RowText:
        """Rows as text."""
        named = {self.kind: self.names[place]} if lead and self.named else {}
        return encoder_of(output_format, self.columns(place), lead=named, header=header, **self._row_form(place))

    def _row_form(self, place: int) -> dict[str, Any]:  # noqa: ARG002
        """Further arguments of `encoder_of`."""
        return {}

    def batch(self, place: int, rows: Any) -> Any:  # noqa: ARG002
        """Rows as columns."""
        return rows
