"""Trend queries over a live stream (`hamlet.runtime.tenant`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hamlet.engine.live_filter import LiveFilter
from hamlet.engine.online import Engine
from hamlet.input.live.table_lines import Columns
from hamlet.input.ordering import SortKey
from hamlet.output.columnar import Encoder
from hamlet.output.query_rows import QueryRows
from hamlet.output.query_text import query_text
from hamlet.output.tables import to_arrow, unsettled
from hamlet.planner.workload import Workload
from hamlet.runtime.monitor import begun
from hamlet.runtime.monitor_tenant import MonitorTenant
from hamlet.runtime.tenant import Pieces


class QueryTenant(MonitorTenant):
    """The queries of a workload.

    Parameters
    ----------
    workload : Workload
    options : mapping
        Of `Engine`.
    chosen : LiveFilter
        Which events are taken.
    names, delimiter
        The columns and the delimiter of CSV, where they are given.
    saved : bytes, optional
        From `save`.
    """

    kind = "query"
    monitor: Engine
    _reads = "trend queries read json, csv or arrow"

    def __init__(
        self,
        workload: Workload,
        options: dict[str, Any],
        *,
        chosen: LiveFilter | None = None,
        names: Sequence[str] | None = None,
        delimiter: str | None = None,
        saved: bytes | None = None,
    ) -> None:
        self.monitor = begun(Engine, workload, options, saved)
        self.names: Sequence[str] = list(workload.names)
        self._places = {name: place for place, name in enumerate(self.names)}
        self._queries = workload.queries
        self._text = workload
        self._chosen = chosen
        self._named, self._delimiter = names, delimiter
        self.known = Columns(
            SortKey(self.monitor.options.time_column, self.monitor.options.order_column),
            self.monitor.options.type_column,
        )

    def text(self) -> str:
        """The queries as text."""
        return str(self._text)

    def _pieces(self, found: Sequence[QueryRows]) -> Pieces:
        return [(self._places[each.name], each) for each in found if len(each)]

    def columns(self, place: int) -> Sequence[str]:
        """The columns of a query's rows."""
        return ["window_start", "window_end", *(item.column for item in self._queries[place].items)]

    def row_text(self, place: int, output_format: str, *, lead: bool, header: Sequence[str] | None = None) -> Encoder:
        """Rows as text."""
        return query_text(output_format, lambda: self.monitor.clock, self.columns(place), lead=lead, header=header)

    def batch(self, place: int, rows: QueryRows) -> pa.RecordBatch:  # noqa: ARG002
        """Rows as columns; counts are text, since the largest is not known."""
        options = self.monitor.options
        table = to_arrow(rows, self.monitor.clock, unsettled(options.count_type)).drop_columns(["query"])
        (batch,) = table.combine_chunks().to_batches()
        return batch
