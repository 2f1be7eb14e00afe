"""What Spark's Python workers run: record batches in, record batches out, no pyspark needed.

A task gets text and plain data (`Shipment`), never engine objects, and compiles once. It walks its record batches
across their borders. The events of all keys of a Spark partition come interleaved, in the order of time, to the very
engine that runs online: windows close as time goes on, so memory holds the open windows of the keys that are alive, and
one call of the kernel serves many keys. One key after the other would need a sort by key and a new engine per key.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from hamlet.engine.executor import Executor, executor_of, paths_taken
from hamlet.engine.options import Options
from hamlet.engine.trace import TraceFile
from hamlet.findings.met import lacks_key, met_by
from hamlet.input.columns import StringPool
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import times_of
from hamlet.language.schema import Schema
from hamlet.output.partial import PartialCodec
from hamlet.output.query_rows import QueryRows
from hamlet.output.rows import Closed, group_types
from hamlet.pages.decisions import Decisions
from hamlet.parallel.routing.routes import Route, part_of
from hamlet.parallel.routing.routing import Ownership, Router, Slicing
from hamlet.parallel.routing.statistics import Summary, batch_of, reduced, rows_of
from hamlet.parallel.time.mapped import added
from hamlet.planner.compile import compile_workload
from hamlet.planner.compiled import CompiledQuery, CompiledWorkload
from hamlet.planner.unordered_rows import in_two
from hamlet.planner.workload import Workload
from hamlet.runtime.options import by_name
from hamlet.spark.events import check_times, engine_batches, time_steps


@functools.lru_cache(maxsize=8)
def _parsed(text: str, source: str) -> Workload:
    """A worker process is used for many tasks."""
    return Workload.parse(text, source)


@dataclass(frozen=True)
class Shipment:
    """What every task of a job knows.

    Attributes
    ----------
    text, source : str
        The workload and its file name.
    options : Options
    events : pyarrow.Schema
        All columns of the input, in the types that the engine reads.
    traced : str or None
        A folder for the records of bursts, a file per task.
    in_two : tuple of str
        Event types that are rows of queries, two events each (`hamlet.planner.unordered_rows`).
    """

    text: str
    source: str
    options: Options
    events: pa.Schema
    traced: str | None = None
    in_two: tuple[str, ...] = ()

    @property
    def workload(self) -> Workload:
        """The workload, parsed and checked."""
        found = _parsed(self.text, self.source)
        if self.in_two:
            found = in_two(found, self.in_two, self.options.time_column)
        return found.without_null_keys() if self.options.null_keys == "drop" else found

    @property
    def options_by_name(self) -> dict[str, Any]:
        """The options, for a call that takes them by name."""
        return by_name(self.options)

    @property
    def tops(self) -> frozenset[int]:
        """The places of queries with TOP, which compares all rows of a window."""
        found = enumerate(self.workload.queries)
        return frozenset(place for place, query in found if query.top is not None)

    def schema(self, name: str = "the DataFrame") -> Schema:
        """The columns in the language's types; raises DataError where time, type or order column cannot be used."""
        options = self.options
        key = SortKey(options.time_column, options.order_column)
        found = schema_of(self.events, key, options.type_column, options.time_unit, source=name)
        return found.in_zone(options.timezone)

    def compiled(self) -> CompiledWorkload:
        """The workload compiled for the columns."""
        exact, together = self.options.numbers == "exact", self.options.sharing != "never"
        return compile_workload(self.workload.analysis, self.schema(), StringPool(), exact=exact, together=together)


# ---------------------------------------------------------------------------------------------------- kernel


@dataclass(frozen=True)
class _Runner:
    """One class of queries in a task."""

    route: Route
    executor: Executor
    ownership: Ownership | None

    def drained(self, query: int) -> list[Closed]:
        """The closed windows of a query that the slice owns."""
        pieces = self.executor.drain_closed(query)
        if self.ownership is None or not pieces:
            return pieces
        (slide,) = {each.window[1] for each in self.executor.workload.queries if each.analysed.index == query}
        kept = [piece.where(self.ownership.keeps(piece.begin(slide))) for piece in pieces]
        return [piece for piece in kept if len(piece.windows)]

    def selected(self, query: int, pieces: list[Closed]) -> list[Closed]:
        """What HAVING and TOP leave of closed windows; all of them where other slices have a part of their groups."""
        if not (self.route.whole or (self.ownership is not None and self.ownership.by_time)):
            return pieces
        return self.executor.selected(query, pieces)


@dataclass(frozen=True)
class Noted:
    """What the events of a task have shown of a class of queries, besides its counters.

    Attributes
    ----------
    met : frozenset of (str, str)
        Queries and variables of them that some event may be bound to.
    without : bool
        Whether some event has no value of an attribute by which the class is partitioned.
    first : int or None
        A time of an event, in ticks.
    paths : mapping
        ``operators`` and ``features``, as in the stats of a run.
    """

    met: frozenset[tuple[str, str]] = frozenset()
    without: bool = False
    first: int | None = None
    paths: Mapping[str, Any] = field(default_factory=dict)

    def plus(self, other: Noted) -> Noted:
        """What both have shown."""
        return Noted(
            self.met | other.met,
            self.without or other.without,
            other.first if self.first is None else self.first,
            added(self.paths, other.paths),
        )


class Kernel:
    """Runs classes of queries over the events of a task.

    Parameters
    ----------
    shipment : Shipment
    routes : sequence of Route
        The classes: one, or all of a workload in a slice.
    slicing : Slicing, optional
        Where events come with the slice and with a mask of the classes that need them, in front of the other columns.
    task : int
        The task's number, for the name of its trace.

    Attributes
    ----------
    received : int
        Events that came.
    first : int or None
        The time of the first of them, in ticks.
    decisions : Decisions or None
        What was decided for their bursts, with the option ``trace``.
    """

    def __init__(
        self, shipment: Shipment, routes: Sequence[Route], slicing: Slicing | None = None, task: int = 0
    ) -> None:
        self._shipment = shipment
        self._routes = routes
        self._slicing = slicing
        self._task = task
        self._runners: list[_Runner] = []
        self._schema = shipment.schema()
        self._columns = columns_of(routes, self._schema)
        self.slice: int | None = None
        self.received = 0
        self.first: int | None = None
        self._without: set[int] = set()
        self.decisions = Decisions(self._schema.clock) if shipment.options.trace else None

    @property
    def stats(self) -> dict[int, dict[str, int]]:
        """Counters by class; complete when `closed` has ended."""
        return {each.route.number: each.executor.stats for each in self._runners}

    @property
    def noted(self) -> dict[int, Noted]:
        """What the events have shown of each class; complete when `closed` has ended."""
        return {
            each.route.number: Noted(
                met_by(each.executor.workload),
                each.route.number in self._without,
                self.first,
                paths_taken([each.executor]),
            )
            for each in self._runners
        }

    def _started(self, slice: int | None) -> list[_Runner]:
        shipment, found = self._shipment, []
        for route in self._routes:
            part = part_of(shipment.workload, route.queries)
            executor = executor_of(part, self._schema, StringPool(), shipment.options)
            ownership = None
            if self._slicing is not None and slice is not None:
                (compiled,) = executor.workload.classes
                ownership = Ownership(compiled, self._slicing.owners[route.number], self._schema, slice)
                executor.restrict(ownership.owns)
            found.append(_Runner(route, executor, ownership))
        return found

    def closed(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Executor, int, list[Closed]]]:
        """The closed windows of each query (its place in the workload), with what presents them."""
        with self._trace_file() as file:
            yield from self._closed(batches, file)

    def _trace_file(self) -> AbstractContextManager[TraceFile | None]:
        """Where the task's records of bursts go; a task that is run again writes the same file again."""
        folder = self._shipment.traced
        return nullcontext() if folder is None else TraceFile(Path(folder, f"part-{self._task:05}.parquet"))

    def _closed(
        self, batches: Iterable[pa.RecordBatch], file: TraceFile | None
    ) -> Iterator[tuple[Executor, int, list[Closed]]]:
        places = () if self._slicing is None else (SLICE, MASK)
        events = engine_batches(batches, (*places, *self._columns), with_places(self._shipment.events))
        for batch, following in time_steps(events, self._schema):
            if not self._runners:
                self.slice = None if self._slicing is None else batch.column(SLICE)[0].as_py()
                self._runners = self._started(self.slice)
            self.received += batch.num_rows
            if self.first is None:
                self.first = int(times_of(batch, self._schema.clock.column)[0])
            for bit, runner in enumerate(self._runners):
                mine = batch if self._slicing is None else _of_class(batch, bit)
                if mine.num_rows:
                    self._look(runner, mine)
                    runner.executor.process(mine)
                    if self.decisions is not None:
                        self._record(runner.executor.trace(), file)
                runner.executor.advance(following)
                for query in runner.route.queries:
                    pieces = runner.selected(query, runner.drained(query))
                    if pieces:
                        yield runner.executor, query, pieces

    def _look(self, runner: _Runner, batch: pa.RecordBatch) -> None:
        """See whether events have no key."""
        if runner.route.number not in self._without:
            (compiled,) = runner.executor.workload.classes
            if lacks_key(batch, compiled, self._schema.type_column):
                self._without.add(runner.route.number)

    def _record(self, records: pa.Table, file: TraceFile | None) -> None:
        """Keep what was decided for bursts."""
        if self.decisions is not None:
            self.decisions.add(records)
        if file is not None:
            file.write(records)

    def partial(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The closed windows of a slice as batches of partial rows."""
        codecs: dict[int, PartialCodec] = {}
        for executor, query, pieces in self.closed(batches):
            if query not in codecs:
                compiled = executor.workload
                codecs |= {each.analysed.index: codec_of(each, compiled.schema) for each in compiled.queries}
            yield codecs[query].encode(executor.group_rows(query, pieces))

    def final(self, batches: Iterable[pa.RecordBatch]) -> Iterator[QueryRows]:
        """The closed windows of a slice as result rows."""
        for executor, query, pieces in self.closed(batches):
            yield executor.present(query, pieces)


SLICE, MASK = "", "\0"  # names that no attribute has


def with_places(events: pa.Schema) -> pa.Schema:
    """The columns of events with their slice and mask."""
    return pa.schema([pa.field(SLICE, pa.int32()), pa.field(MASK, pa.int64()), *events])


def columns_of(routes: Sequence[Route], schema: Schema) -> tuple[str, ...]:
    """The columns that some class reads."""
    read = {name for route in routes for name in route.columns}
    return tuple(name for name in schema.columns if name in read)


def _of_class(batch: pa.RecordBatch, bit: int) -> pa.RecordBatch:
    """The events that a class needs."""
    chosen = (batch.column(MASK).to_numpy() >> bit) & 1 != 0
    return batch if chosen.all() else batch.filter(pa.array(chosen))


def codec_of(query: CompiledQuery, schema: Schema) -> PartialCodec:
    """What turns partial rows of a query into bytes."""
    return PartialCodec(query.analysed.index, query.layout.keys, group_types(query, schema))


# --------------------------------------------------------------------------------------------------- routing


def routed(
    shipment: Shipment,
    routes: Sequence[Route],
    router: Router,
    batches: Iterable[pa.RecordBatch],
    looked: Callable[[pa.RecordBatch], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Events with slice and mask in front, once per slice that needs them.

    Parameters
    ----------
    shipment : Shipment
    routes : sequence of Route
    router : Router
    batches : iterable of pyarrow.RecordBatch
        In any order, with the columns that the routes read.
    looked : callable, optional
        Gets all events.

    Raises
    ------
    DataError
        At a NULL time or order, and at a time beyond 2^61 ticks.
    """
    schema = shipment.schema()
    columns = columns_of(routes, schema)
    places = with_places(pa.schema([shipment.events.field(name) for name in columns]))
    for events in engine_batches(batches, columns, shipment.events):
        check_times(events, schema)
        found = router.route(events)
        if looked is not None:
            looked(events)
        if len(found.rows):
            sent = events.take(pa.array(found.rows))
            head = [pa.array(found.slices), pa.array(found.masks)]
            yield pa.RecordBatch.from_arrays([*head, *sent.columns], schema=places)


def summarised(
    shipment: Shipment,
    routes: Sequence[Route],
    balance: bool,
    semijoin: bool,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The statistics of a task's events as rows of `hamlet.parallel.routing.statistics.SUMMARY`.

    `balance` asks how many events keys and times have, `semijoin` which keys can have a trend.
    """
    compiled = shipment.compiled()
    summary = Summary(compiled, routes, balance=balance, semijoin=semijoin)
    for events in engine_batches(batches, columns_of(routes, compiled.schema), shipment.events):
        check_times(events, compiled.schema)
        summary.add(events)
    yield batch_of(summary.rows())


def reduced_part(
    shipment: Shipment, routes: Sequence[Route], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """What placement asks for of summaries of which this task has all rows of a key."""
    rows = (row for batch in batches for row in rows_of(batch))
    yield batch_of(reduced(shipment.compiled(), routes, rows))
