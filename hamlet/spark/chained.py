"""Queries about the rows of other queries, continuously: one engine for all of them, which gets events in order.

A row becomes an event when its window closes, and takes its place among the events of the input by time. So all events
meet in one slice, whose engine is the state of a keyed operator, as those of other slices are. Needs no pyspark.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.engine.online import Engine
from hamlet.findings import Seen, of_names, seen_in
from hamlet.input.columns import Int64Array, integers
from hamlet.language.schema import Schema
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.planner.workload import Workload
from hamlet.spark.events import check_times
from hamlet.spark.sliced import Submonitor, TimedWork, rows_of
from hamlet.spark.tasks import Shipment

# The place of a query, and some of its rows; from one task to another of the same job.
CLOSED_ROWS = pa.schema([pa.field("query", pa.int32(), nullable=False), pa.field("rows", pa.binary(), nullable=False)])


class ChainedWork(TimedWork):
    """A workload of several layers over a stream; goes to every worker.

    Parameters
    ----------
    shipment : Shipment
    lateness : int
        Ticks.
    late : {'error', 'drop'}
    """

    notes = ("one slice does all the work: queries ask about the rows of others, which lie among events by time",)

    def __init__(self, shipment: Shipment, lateness: int, late: str) -> None:
        needed = shipment.options.columns_of(shipment.workload)
        events = pa.schema([field for field in shipment.events if field.name in needed])
        super().__init__(1, events, lateness, late)
        self.shipment, self.rows = shipment, CLOSED_ROWS

    @cached_property
    def schema(self) -> Schema:
        """The columns in the language's types."""
        return self.shipment.schema()

    @cached_property
    def workload(self) -> Workload:
        """What runs."""
        return self.shipment.workload

    def engine(self) -> Engine:
        """An engine that knows its columns."""
        engine = Engine(self.workload, **self.shipment.options_by_name)
        engine.open(self.schema)
        return engine

    def times(self, events: pa.RecordBatch) -> tuple[Int64Array, Int64Array | None]:
        """Ticks; what orders events of one tick, the engine knows."""
        check_times(events, self.schema)
        column = self.schema.clock.column
        return integers(events.column(column), column)[0], None

    def seen(self, events: pa.RecordBatch) -> Seen:
        """Their types."""
        keys = {name for query in self.workload.analysis.queries for name in query.partition}
        return seen_in(events, self.schema.type_column, self.workload.input_types, keys)

    def findings(self, seen: Seen) -> list[str]:
        """Types that never came."""
        return of_names(self.workload.input_types, seen)

    def monitor(self, slice: int, first: int, saved: bytes | None) -> ChainedSlice:  # noqa: ARG002
        """The engine of the slice."""
        if saved is None:
            return ChainedSlice(self, self.engine())
        limit = self.shipment.options.max_memory
        return ChainedSlice(self, Engine.restore(self.workload, saved, max_memory=limit))

    def time_text(self, tick: int) -> str:
        """A time for a message."""
        return str(self.schema.clock.present(tick))


class ChainedSlice(Submonitor):
    """The engine, between micro-batches a save."""

    _monitor: Engine

    def __init__(self, work: ChainedWork, engine: Engine) -> None:
        super().__init__(engine)
        self._places = {name: place for place, name in enumerate(work.workload.names)}

    def push(self, ticks: Int64Array, events: pa.RecordBatch, steps: npt.NDArray[np.bool_]) -> list[pa.RecordBatch]:  # noqa: ARG002
        """Take events."""
        return self._packed(self._monitor.push_batches(events))

    def advance(self, tick: int) -> list[pa.RecordBatch]:
        """No event before a time will come."""
        return self._packed(self._monitor.advance_batches(tick))

    def _packed(self, rows: Sequence[QueryRows]) -> list[pa.RecordBatch]:
        """Rows as batches of `CLOSED_ROWS`."""
        if not rows:
            return []
        columns = [[self._places[each.name] for each in rows], [pickle.dumps(each) for each in rows]]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, CLOSED_ROWS, strict=True)]
        return [pa.RecordBatch.from_arrays(arrays, schema=CLOSED_ROWS)]


class ChainedRows:
    """Makes result rows of what the slice has decided.

    Parameters
    ----------
    shipment : Shipment
    """

    def __init__(self, shipment: Shipment) -> None:
        self._shipment = shipment

    @cached_property
    def of_queries(self) -> dict[str, tuple[ResultColumn, ...]]:
        """The columns of each query; rows that were decided know theirs."""
        engine = ChainedWork(self._shipment, 0, "error").engine()
        return {each.name: each.columns for each in engine.without_rows()}

    def columns(self, query: int) -> tuple[ResultColumn, ...]:
        """The columns of a query."""
        return self.of_queries[self._shipment.workload.names[query]]

    def decided(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, QueryRows]]:
        """Result rows from batches of `hamlet.spark.sliced.CLOSED`, by the places of queries."""
        rows = (row for part in rows_of(batches) for row in part.to_pylist())
        for row in sorted(rows, key=lambda row: row["query"]):
            yield row["query"], pickle.loads(row["rows"])
