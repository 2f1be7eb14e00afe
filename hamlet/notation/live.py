"""A text of any notation over a live stream (`hamlet.runtime.tenant`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hamlet.engine.live_filter import LiveFilter
from hamlet.input.live.table_lines import Columns
from hamlet.notation.monitor import StepMonitor
from hamlet.notation.notation import Work
from hamlet.runtime.monitor import begun
from hamlet.runtime.monitor_tenant import MonitorTenant
from hamlet.runtime.tenant import Pieces


class WorkTenant(MonitorTenant):
    """A text.

    Parameters
    ----------
    work : Work
    options : mapping
        Of `StepMonitor`.
    chosen : LiveFilter, optional
        Which events are taken.
    names, delimiter
        The columns and the delimiter of CSV, where they are given.
    saved : bytes, optional
        From `save`.
    """

    monitor: StepMonitor

    def __init__(
        self,
        work: Work,
        options: dict[str, Any],
        *,
        chosen: LiveFilter | None = None,
        names: Sequence[str] | None = None,
        delimiter: str | None = None,
        saved: bytes | None = None,
    ) -> None:
        self.kind = work.notation.kind
        self.names: Sequence[str] = [work.name]
        self.monitor = begun(StepMonitor, work, options, saved)
        self.known = Columns(self.monitor._key, self.monitor.options.type_column)
        self._chosen, self._named, self._delimiter = chosen, names, delimiter

    def text(self) -> str:
        """The text, without comments."""
        return f"{self.names[0]}: {self.monitor.work.tree}"

    def _pieces(self, found: Sequence[pa.RecordBatch]) -> Pieces:
        return [(0, batch) for batch in found]

    def columns(self, place: int) -> Sequence[str]:  # noqa: ARG002
        """The columns of rows."""
        return list(self.monitor.rows_schema.names)
