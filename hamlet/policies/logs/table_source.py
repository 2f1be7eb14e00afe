"""Events in columns as time-points."""

from __future__ import annotations

from collections.abc import Container, Iterator

import pyarrow as pa

from hamlet.input.columns import values_of
from hamlet.input.events import EventSource
from hamlet.input.ordering import SortKey
from hamlet.policies.logs.reader import LogChunk, Predicate
from hamlet.policies.logs.source import Progress, Source
from hamlet.policies.logs.tables import Tables
from hamlet.policies.syntax.formula import per_second_of
from hamlet.policies.syntax.signature import Signature


class TableSource(Source):
    """Events in columns."""

    def __init__(
        self,
        events: EventSource,
        signature: Signature,
        wanted: Container[Predicate],
        time_points: str,
        counted: tuple[int, int] | None,
    ) -> None:
        schema = events.schema
        clock = schema.clock
        kind = clock.shown_type
        super().__init__(events.name, events.rows, kind, per_second_of(clock), [each.name for each in signature])
        self._types = schema.type_column
        self._events = events
        key = SortKey(clock.column, schema.order_column, events.name)
        self._tables = Tables(
            signature,
            wanted,
            events.arrow_schema,
            key,
            schema.type_column,
            time_points,
            open_columns=not schema.closed,
            counted=counted,
        )

    @property
    def events(self) -> EventSource:
        """The events that are read."""
        return self._events

    def chunks(self, progress: Progress | None = None) -> Iterator[LogChunk]:
        """All time-points."""
        tables = self._tables
        for chunk in tables.chunks(map(self._seen, self._events.batches(tables.columns, progress=progress))):
            self.stats["time_points"] = tables.points
            yield chunk
        self.stats |= {"events": tables.events, "time_points": tables.points, "matched_events": tables.matched}
        if tables.nulls:
            self.stats["null_events"] = tables.nulls

    def _seen(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Note the types of some events."""
        if self.expected.missing:
            self.expected.see(values_of(batch, self._types))
        return batch

    def _notes(self) -> list[str]:
        """Rows that were dropped."""
        found: list[str] = self._events.notes()
        return found
