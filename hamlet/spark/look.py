"""What tasks do with every event before anything else: the condition of ``--where``, and counting for the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.accumulators import Accumulator

from hamlet.engine.where import Filter
from hamlet.pages.activity import Activity
from hamlet.spark.counters import SEEN, Stats, counted
from hamlet.spark.events import check_times, engine_batches
from hamlet.spark.tasks import Shipment


def seen(
    shipment: Shipment,
    names: Sequence[str],
    where: str | None,
    watch: bool,
    stats: Accumulator[Stats] | None,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Events for which a condition is true, as Spark gave them.

    Parameters
    ----------
    shipment : Shipment
    names : sequence of str
        Of their columns, in order.
    where : str, optional
        The condition; without one all events are kept.
    watch : bool
        Whether those that are kept are counted by type and time, or only how many there are.
    stats : Accumulator, optional
        Gets the counts.
    batches : iterable of pyarrow.RecordBatch
        In any order.

    Raises
    ------
    DataError
        At a NULL time or order, at a time beyond 2^61 ticks, and at INT arithmetic of the condition beyond 64 bits.
    """
    schema = shipment.schema()
    condition = None if where is None else Filter(where, schema)
    activity, kept = Activity(schema), 0
    for batch in batches:
        for events in engine_batches([batch], names, shipment.events):
            check_times(events, schema)
            if condition is not None:
                chosen = condition.chosen(events)
                batch = batch.filter(chosen)
                events = events.filter(chosen) if watch else events
            kept += batch.num_rows
            if watch:
                activity.add(events)
            yield batch
    counted(stats, {(SEEN, 0): activity if watch else {"events": kept}})
