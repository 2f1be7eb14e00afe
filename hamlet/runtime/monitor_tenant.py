"""What tenants have in common that are one monitor, which puts events in order by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hamlet.errors import DataError
from hamlet.input.live.table_lines import Columns, CsvLines, JsonLines
from hamlet.output.time_text import time_text
from hamlet.runtime.reorder_buffer import ReorderBuffer


class MonitorTenant:
    """A monitor, and the columns of its events.

    Attributes
    ----------
    monitor : Monitor
        Of some notation, with a reorder buffer.
    known : Columns
        What is known of the columns of lines.
    """

    monitor: Any
    known: Columns
    _named: Sequence[str] | None = None
    _delimiter: str | None = None
    _reads = "give json, csv or arrow"

    @property
    def _buffer(self) -> ReorderBuffer:
        found: ReorderBuffer = self.monitor._buffer
        return found

    @property
    def failed(self) -> bool:
        """Whether the monitor cannot go on."""
        return self.monitor._failed is not None

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
        return int(self.monitor.held["bytes"])

    @property
    def last_time(self) -> str | None:
        """The largest time seen."""
        seen = self._buffer.seen
        return None if seen is None else time_text(seen, self.monitor.clock)

    def parser(self, form: str, name: str) -> JsonLines | CsvLines:
        """A reader of lines."""
        return JsonLines(self.known) if form == "json" else CsvLines(self.known, name, self._delimiter, self._named)

    def log_parser(self, name: str) -> Any:
        """A log is read by policies only."""
        raise DataError(f"{name}: a log of MonPoly is for policies (.mfotl); {self._reads}")

    def save(self) -> bytes:
        """The monitor."""
        return bytes(self.monitor.save())
