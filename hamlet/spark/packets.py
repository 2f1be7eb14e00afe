"""Events on their way to slices: packed as Arrow batches in bytes, and put in the order of time where they arrive.

A row of Spark is made of many events, so that no event becomes a row: to make Spark's rows of a task's batches, to
shuffle and sort these, and to make batches of them again costs several times what the engine does. Needs no pyspark.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from hamlet.checkpoint.pieces import as_bytes, from_bytes
from hamlet.input.ordering import SortKey, ordered_batches
from hamlet.input.widening import in_batches
from hamlet.parallel.routing.routes import Route
from hamlet.spark.tasks import Shipment, columns_of, with_places

PACKETS = pa.schema([pa.field("slice", pa.int32(), nullable=False), pa.field("events", pa.binary(), nullable=False)])
MOST_ROWS, MOST_BYTES = 1 << 17, 1 << 25  # of events that a task packs at once


def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Routed events (`hamlet.spark.tasks.routed`) as batches of `PACKETS`, a row for some events of a slice."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= MOST_ROWS or size >= MOST_BYTES:
            yield from _packets(held)
            held, rows, size = [], 0, 0
    if held:
        yield from _packets(held)


def _packets(routed: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in in_batches(pa.Table.from_batches(routed)):
        slices = batch.column(0).to_numpy()
        order = np.argsort(slices, kind="stable")
        events, slices = batch.take(pa.array(order)).select(range(1, batch.num_columns)), slices[order]
        starts = [0, *(np.nonzero(np.diff(slices))[0] + 1).tolist(), len(slices)]
        packets = [as_bytes(events.slice(start, end - start)) for start, end in itertools.pairwise(starts)]
        arrays = [pa.array(slices[starts[:-1]], pa.int32()), pa.array(packets, pa.binary())]
        yield pa.RecordBatch.from_arrays(arrays, schema=PACKETS)


def unpacked(
    shipment: Shipment, routes: Sequence[Route], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The events of a slice in the order of time, with slice and mask in front.

    Parameters
    ----------
    shipment : Shipment
    routes : sequence of Route
        As when they were routed.
    batches : iterable of pyarrow.RecordBatch
        Of `PACKETS`, in any order, all of one slice.
    """
    known = shipment.schema()
    places = with_places(pa.schema([shipment.events.field(name) for name in columns_of(routes, known)]))

    def events() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for slice, data in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                for part in from_bytes(data.as_buffer()):
                    numbers = pa.array(np.full(part.num_rows, slice, np.int32))
                    yield pa.RecordBatch.from_arrays([numbers, *part.columns], schema=places)

    yield from ordered_batches(events(), places, SortKey(known.clock.column, known.order_column))
