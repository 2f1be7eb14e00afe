"""What tasks run where the input arrives in time ranges: events in, rows and maps out; no pyspark needed.

Three kinds of rows travel in the columns of `hamlet.output.partial.SCHEMA`, told apart by their query:

- a partial row of a query, from 0 on;
- the *maps* of a partition, of which ``-1 - query`` is the class: ``window`` is the chunk's first time, ``group`` has
  the partition and ``components`` the maps (`hamlet.parallel.time.exchange`);
- events of a *border*, a time that two ranges have in common: ``window`` is the time, ``components`` an Arrow stream.

Source: ARCHITECTURE.md ("The journey of a burst": a chunk of events is a linear map).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from hamlet.checkpoint.pieces import as_bytes, from_bytes
from hamlet.engine.executor import paths_taken
from hamlet.engine.keys import Key
from hamlet.findings.met import lacks_key, met_by
from hamlet.input.ordering import OrderCheck, SortKey, ordered_batches
from hamlet.output.partial import SCHEMA, GroupCodec
from hamlet.output.rows import GroupRows
from hamlet.parallel.routing.routes import Route, part_of
from hamlet.parallel.time import exchange
from hamlet.parallel.time.chunk import Chunk, Maps
from hamlet.parallel.time.fold import Folds, other_events
from hamlet.parallel.time.probes import coordinates_of
from hamlet.parallel.time.ranges import Cut, Measure
from hamlet.spark.events import check_times, engine_batches, time_steps
from hamlet.spark.tasks import Noted, Shipment, codec_of, columns_of

BORDER = -(1 << 31)  # the query of events of a border

Batches = Iterator[pa.RecordBatch]


def measured(shipment: Shipment, routes: Sequence[Route], names: Sequence[str], batches: Batches) -> Batches:
    """The time range of a task's events, as a row of `hamlet.parallel.time.ranges.SCHEMA`.

    Parameters
    ----------
    names : sequence of str
        The columns of the batches.
    """
    schema, compiled = shipment.schema(), shipment.compiled()
    key = SortKey(schema.clock.column, schema.order_column)
    measure = Measure(key, [compiled.classes[route.number].attributes for route in routes])
    for batch in engine_batches(batches, names, shipment.events):
        for name in key.names:  # who reads the events that are asked for says which of them have no time
            if batch.column(name).null_count:
                batch = batch.filter(batch.column(name).is_valid())
        if batch.num_rows:
            check_times(batch, schema)
            measure.add(batch)
    yield measure.batch()


class ChunkTask:
    """All classes of a workload over the events of one task.

    Parameters
    ----------
    shipment : Shipment
    routes : sequence of Route
    cut : Cut

    Attributes
    ----------
    received : int
        Events that came.
    stats : dict of int to dict
        Counters by class, when the rows have been read to their end.
    noted : dict of int to Noted
        What the events have shown of each class; by then, too.
    first : int or None
        The time of the first event, in ticks.
    """

    def __init__(self, shipment: Shipment, routes: Sequence[Route], cut: Cut) -> None:
        self.received = 0
        self.stats: dict[int, dict[str, int]] = {}
        self.noted: dict[int, Noted] = {}
        self.first: int | None = None
        self._without: set[int] = set()
        self._shipment = shipment
        self._routes = routes
        self._cut = cut
        self._schema = shipment.schema()
        self._key = SortKey(self._schema.clock.column, self._schema.order_column)
        self._sender = Sender(shipment)

    def products(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Rows and maps of the task's time range; events of borders as they are.

        Events come in the order of time where the cut says so; else they are sorted here.
        """
        borders = np.array(self._cut.borders, np.int64)
        events = engine_batches(batches, columns_of(self._routes, self._schema), self._shipment.events)
        chunks: list[Chunk] = []
        for batch, _ in time_steps(self._in_order(events), self._schema):
            self.received += batch.num_rows
            shared = np.isin(self._key.columns_of(batch)[0], borders)
            if shared.any():
                yield from self._as_they_are(batch.filter(pa.array(shared)))
                batch = batch.filter(pa.array(~shared))
            if batch.num_rows:
                chunks = chunks or self._chunks(int(self._key.columns_of(batch)[0][0]))
                yield from self._processed(chunks, batch)
        yield from self._finished(chunks)

    def of_borders(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Put maps in place of events of borders; rows are sorted, all of a time in one task."""
        rest: list[pa.RecordBatch] = []
        rows = _below(batches, BORDER + 1, rest)
        for time, of_time in itertools.groupby(rows, key=lambda row: row[1]):
            events = pa.Table.from_batches([batch for row in of_time for batch in from_bytes(row[3])])
            if self._key.order is not None:
                events = events.sort_by(self._key.order)
            chunks = self._chunks(time)
            for batch in events.combine_chunks().to_batches():
                yield from self._processed(chunks, batch)
            yield from self._finished(chunks)
        yield from map(_named, itertools.chain(rest, batches))

    def _in_order(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        checked = self._checked(batches)
        if not self._cut.ordered:
            schema = pa.schema([self._shipment.events.field(name) for name in columns_of(self._routes, self._schema)])
            yield from ordered_batches(checked, schema, self._key)
            return
        check = OrderCheck(self._key)
        for batch in checked:
            check.feed(batch)
            if not check.ordered:
                raise other_events("a part of the input is not in the order of time")
            yield batch

    def _checked(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            check_times(batch, self._schema)
            yield batch

    def _as_they_are(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Events of borders, a row for each time."""
        times = self._key.columns_of(events)[0]
        starts = [0, *(np.nonzero(np.diff(times))[0] + 1).tolist(), len(times)]
        for start, end in itertools.pairwise(starts):
            yield _batch([(BORDER, int(times[start]), b"", as_bytes(events.slice(start, end - start)))])

    def _chunks(self, first: int) -> list[Chunk]:
        workload, options = self._shipment.workload, self._shipment.options
        parts = [part_of(workload, route.queries) for route in self._routes]
        return [Chunk(part, self._schema, options, opens=first < self._cut.opening) for part in parts]

    def _processed(self, chunks: Sequence[Chunk], batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self.first is None:
            self.first = int(self._key.columns_of(batch)[0][0])
        for route, chunk in zip(self._routes, chunks, strict=True):
            if route.number not in self._without and lacks_key(batch, chunk.compiled, self._schema.type_column):
                self._without.add(route.number)
            chunk.process(batch)
            for query in route.queries:
                yield from self._sender.rows(query, chunk.rows(query))

    def _finished(self, chunks: Sequence[Chunk]) -> Iterator[pa.RecordBatch]:
        for route, chunk in zip(self._routes, chunks, strict=bool(chunks)):
            maps = chunk.finish()
            before = self.stats.get(route.number, {})
            self.stats[route.number] = {name: count + before.get(name, 0) for name, count in chunk.stats.items()}
            without, paths = route.number in self._without, paths_taken([chunk.executor])
            found = Noted(met_by(chunk.executor.workload), without, self.first, paths)
            self.noted[route.number] = self.noted.get(route.number, Noted()).plus(found)
            yield from self._sender.maps(route.number, maps)


class Sender:
    """Writes rows and maps as they travel, and reads them.

    Parameters
    ----------
    shipment : Shipment

    Attributes
    ----------
    largest_count_bits : int
        Of the rows that `folded` has given.
    """

    def __init__(self, shipment: Shipment) -> None:
        self.compiled = shipment.compiled()
        self.largest_count_bits = 0
        schema = self.compiled.schema
        self._codecs = {query.analysed.index: codec_of(query, schema) for query in self.compiled.queries}
        self._coordinates = [coordinates_of(each) for each in self.compiled.classes]
        self._keys = [
            GroupCodec([_key_type(schema.arrow_types.get(name)) for name in each.attributes])
            for each in self.compiled.classes
        ]

    def rows(self, query: int, rows: GroupRows) -> Iterator[pa.RecordBatch]:
        """Partial rows of a query."""
        if rows.windows:
            yield self._codecs[query].encode(rows)

    def maps(self, number: int, maps: Mapping[Key, Maps]) -> Iterator[pa.RecordBatch]:
        """The maps of a class, by partition."""
        of = self._coordinates[number]
        keys = self._keys[number].encode(list(maps))
        found = [
            (-1 - number, each.first, key, exchange.encoded(of, each))
            for key, each in zip(keys, maps.values(), strict=True)
        ]
        if found:
            yield _batch(found)

    def folded(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Partial rows in place of maps; rows are sorted by query, group and window, all of a partition are here."""
        rest: list[pa.RecordBatch] = []
        rows = _below(batches, 0, rest)
        for (query, group), of_group in itertools.groupby(rows, key=lambda row: (row[0], row[2])):
            number = -1 - query
            key = self._keys[number].decode(group)
            folds = Folds(self.compiled.classes[number])
            for row in of_group:
                folds.take(exchange.decoded(self._coordinates[number], row[3]))
            folds.close()
            for place, found in folds.rows(key).items():
                yield from self.rows(place, found)
            self.largest_count_bits = max(self.largest_count_bits, folds.largest_count_bits)
        yield from map(_named, itertools.chain(rest, batches))


def _key_type(arrow: pa.DataType | None) -> pa.DataType:
    """The type of a key's values; text where no event has one."""
    return pa.string() if arrow is None or pa.types.is_null(arrow) else arrow


Row = tuple[int, int, bytes, bytes]


def _below(batches: Iterator[pa.RecordBatch], query: int, rest: list[pa.RecordBatch]) -> Iterator[Row]:
    """The rows of queries below a number; what follows in the last batch that was read goes to `rest`."""
    for batch in batches:
        end = int(np.searchsorted(batch.column(0).to_numpy(), query))
        yield from zip(*(column.to_pylist() for column in batch.slice(0, end).columns), strict=True)
        if end < batch.num_rows:
            rest.append(batch.slice(end))
            return


def _named(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(batch.columns, schema=SCHEMA)


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
