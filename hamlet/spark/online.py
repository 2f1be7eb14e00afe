"""What the tasks of a continuous job run: events packed per slice, engines that are saved between micro-batches.

Every task of the first stage tells every slice the latest time that it has seen, so all slices agree on the watermark
of a micro-batch, also those that got no event: a window closes in all of them in the same micro-batch, and what slices
know of one group can be added up there. Events travel as Arrow batches in bytes, a row of Spark per task and slice.

Needs no pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from hamlet.checkpoint.pieces import as_bytes, joined, unjoined
from hamlet.engine.executor import Executor
from hamlet.engine.online import Engine
from hamlet.findings import seen_in
from hamlet.findings.met import met_by
from hamlet.input.columns import integers
from hamlet.language.schema import Schema
from hamlet.output.partial import SCHEMA as PARTIAL
from hamlet.output.query_rows import QueryRows
from hamlet.output.rows import GroupRows
from hamlet.parallel.routing.owners import hashed
from hamlet.parallel.routing.routes import Route, part_of
from hamlet.parallel.routing.routing import Ownership, Router, Slicing
from hamlet.spark.events import check_times, engine_batches
from hamlet.spark.sliced import Slice, rows_of, told
from hamlet.spark.tasks import MASK, Shipment, codec_of, columns_of

UNBOUNDED = 1 << 62  # ticks of lateness: an engine in a slice judges events by the watermark that it is told


class _PartialEngine(Engine):
    """An engine that keeps the rows of closed windows in the form in which those of several slices can be added up."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.closed: list[tuple[Executor, int, GroupRows]] = []
        self._owns: Callable[[tuple[Any, ...]], bool] | None = None

    def restrict(self, owns: Callable[[tuple[Any, ...]], bool]) -> None:
        """Keep to the partitions of a slice."""
        self._owns = owns
        if self._executor is not None:
            self._executor.restrict(owns)

    def _compile(self, schema: Schema) -> None:
        super()._compile(schema)
        if self._owns is not None:
            self.restrict(self._owns)

    def drain(self) -> list[QueryRows]:
        """Move the rows of closed windows to `closed`."""
        executor = self._executor
        for query in [] if executor is None else executor.workload.queries:
            assert executor is not None
            rows = executor.drain_groups(query.analysed.index)
            if rows.windows:
                self.closed.append((executor, query.analysed.index, rows))
        return []


class Online(Slice):
    """The engines of a slice, one per class of queries, through one micro-batch.

    Parameters
    ----------
    shipment : Shipment
    routes : sequence of Route
    slicing : Slicing
    slice : int
    lateness : int
        Ticks.
    late : {'error', 'drop'}
    saved : bytes, optional
        From `save` after the micro-batch before.
    """

    def __init__(
        self,
        shipment: Shipment,
        routes: Sequence[Route],
        slicing: Slicing,
        slice: int,
        lateness: int,
        late: str,
        saved: bytes | None = None,
    ) -> None:
        super().__init__(saved)
        self._lateness = lateness
        self._slices, self._tops = slicing.slices, shipment.tops
        parts = [part_of(shipment.workload, route.queries) for route in routes]
        if self.before is None:
            self._engines = [
                _PartialEngine(part, lateness=UNBOUNDED, late=late, **shipment.options_by_name) for part in parts
            ]
        else:
            saves = zip(parts, unjoined(self.before), strict=True)
            limit = shipment.options.max_memory
            restored = (_PartialEngine.restore(part, save, max_memory=limit) for part, save in saves)
            self._engines = [cast(_PartialEngine, each) for each in restored]
        compiled = shipment.compiled()
        for route, engine in zip(routes, self._engines, strict=True):
            owner = slicing.owners[route.number]
            engine.restrict(Ownership(compiled.classes[route.number], owner, compiled.schema, slice).owns)
            if saved is None:
                engine.open(compiled.schema)
        self._dropped_before = self._dropped()

    def received(self, events: pa.RecordBatch) -> int:
        """Take events of this micro-batch, in any order.

        Raises
        ------
        DataError
            At an event before the watermark of the micro-batch before, unless late events are dropped.
        """
        masks = events.column(0).to_numpy()
        rest = events.select(events.schema.names[1:])
        for bit, engine in enumerate(self._engines):
            chosen = (masks >> bit) & 1 != 0
            if chosen.any():
                engine.push_batches(rest if chosen.all() else rest.filter(pa.array(chosen)))
        return int(events.num_rows)

    def closed(self) -> Iterator[tuple[int, bytes]]:
        """Partial rows of the windows that this micro-batch closes."""
        return bucketed(self._closed(), self._slices, self._tops)

    def _closed(self) -> Iterator[pa.RecordBatch]:
        assert self.latest is not None
        for engine in self._engines:
            engine.advance_batches(self.latest - self._lateness)
            for executor, query, rows in engine.closed:
                (compiled,) = (each for each in executor.workload.queries if each.analysed.index == query)
                yield codec_of(compiled, executor.workload.schema).encode(rows)

    @property
    def late_events(self) -> int:
        """Events that came too late; one that several classes of queries need counts for each."""
        return self._dropped() - self._dropped_before

    @property
    def kept_bytes(self) -> int:
        """Bytes that the engines keep."""
        return sum(engine.held["bytes"] for engine in self._engines)

    def _dropped(self) -> int:
        return sum(int(engine.stats["late_events"]) for engine in self._engines)

    def kept(self) -> bytes:
        """All engines as bytes."""
        return joined(engine.save() for engine in self._engines)


@dataclass(frozen=True)
class QueryWork:
    """Queries that run continuously.

    Attributes
    ----------
    shipment : Shipment
    routes : sequence of Route
    slicing : Slicing
    lateness : int
        Ticks.
    late : {'error', 'drop'}
    """

    shipment: Shipment
    routes: Sequence[Route]
    slicing: Slicing
    lateness: int
    late: str
    notes = ()

    @property
    def slices(self) -> int:
        """How many there are."""
        return self.slicing.slices

    def packed(self, task: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Events as `PACKED`, with masks in front: for every batch a row per slice.

        Raises
        ------
        DataError
            At a NULL time or order, and at a time beyond 2^61 ticks.
        """
        compiled = self.shipment.compiled()
        schema = compiled.schema
        router = Router(compiled, self.slicing, [route.number for route in self.routes])
        queries = self.shipment.workload.analysis.queries
        expected = {kind for query in queries for kind in query.types.values()}
        keys = {name for query in queries for name in query.partition}
        for events in engine_batches(batches, columns_of(self.routes, schema), self.shipment.events):
            check_times(events, schema)
            times = integers(events.column(schema.clock.column), schema.clock.column)[0]
            found = router.route(events)
            packets: list[bytes | None] = [None] * self.slices
            for slice in np.unique(found.slices).tolist():
                mine = np.nonzero(found.slices == slice)[0]
                part = events.take(pa.array(found.rows[mine]))
                head = pa.array(found.masks[mine])
                packets[slice] = as_bytes(pa.RecordBatch.from_arrays([head, *part.columns], [MASK, *part.schema.names]))
            seen = seen_in(events, schema.type_column, expected, keys, int(times[0]))
            yield told(times, replace(seen, met=met_by(compiled)), packets)

    def opened(self, slice: int, saved: bytes | None) -> Online:
        """The engines of a slice, as the micro-batch before has left them."""
        return Online(self.shipment, self.routes, self.slicing, slice, self.lateness, self.late, saved)


def bucketed(
    batches: Iterable[pa.RecordBatch], buckets: int, tops: Collection[int] = ()
) -> Iterator[tuple[int, bytes]]:
    """Partial rows in as many parts as may be merged side by side: rows of one group and window are in one part.

    Of the queries in `tops`, by their places, all rows of a window are.
    """
    table = pa.Table.from_batches(list(batches), PARTIAL)
    if not table.num_rows:
        return
    groups = table.column("group").combine_chunks().dictionary_encode()
    numbers = groups.indices.to_numpy()
    hashes = np.array([hashed(each) for each in groups.dictionary.to_pylist()], np.int64)
    places = hashes[numbers] % buckets
    if tops:
        together = np.isin(table.column("query").to_numpy(), list(tops))
        places = np.where(together, table.column("window").to_numpy() % buckets, places)
    for bucket in np.unique(places).tolist():
        (batch,) = table.filter(pa.array(places == bucket)).combine_chunks().to_batches()
        yield bucket, as_bytes(batch)


def met(batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """From batches of `CLOSED` the partial rows of all slices, by query, window and group."""
    table = pa.Table.from_batches(list(rows_of(batches)), PARTIAL)
    found: list[pa.RecordBatch] = table.sort_by([(name, "ascending") for name in PARTIAL.names[:3]]).to_batches()
    return found
