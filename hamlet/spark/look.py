"""What tasks do with every event before anything else: the condition of ``--where``, and counting for the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.accumulators import Accumulator

from hamlet.engine.where import Filter
from hamlet.input.buffers import from_numpy
from hamlet.input.period import period_of
from hamlet.language.schema import Clock
from hamlet.pages.activity import Activity
from hamlet.spark.counters import SEEN, Stats, counted
from hamlet.spark.events import check_times, engine_batches
from hamlet.spark.tasks import Shipment


@dataclass(frozen=True)
class Choice:
    """Which events of an input go on.

    Attributes
    ----------
    where : str or None
        Those for which this condition over columns is true (`hamlet.engine.where`).
    since, until : int, str, datetime or None
        Those from a time on, and before another one (`hamlet.input.period`).
    """

    where: str | None = None
    since: Any = None
    until: Any = None

    @property
    def is_all(self) -> bool:
        """Whether every event goes on."""
        return self.where is None and not self.has_period

    @property
    def has_period(self) -> bool:
        """Whether times count."""
        return self.since is not None or self.until is not None

    def period(self, clock: Clock) -> tuple[int, int]:
        """The first tick that counts, and the first that does not any more; raises OptionError."""
        return period_of(self.since, self.until, clock)


def seen(
    shipment: Shipment,
    names: Sequence[str],
    choice: Choice,
    watch: bool,
    stats: Accumulator[Stats] | None,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """The events that are chosen, as Spark gave them.

    Parameters
    ----------
    shipment : Shipment
    names : sequence of str
        Of their columns, in order.
    choice : Choice
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
    condition = None if choice.where is None else Filter(choice.where, schema)
    first, end = choice.period(schema.clock)
    activity, kept = Activity(schema), 0
    for batch in batches:
        for events in engine_batches([batch], names, shipment.events):
            times = check_times(events, schema)
            if choice.has_period:
                inside = from_numpy(np.logical_and(times >= first, times < end))
                batch, events = batch.filter(inside), events.filter(inside)
            if condition is not None:
                chosen = condition.chosen(events)
                batch = batch.filter(chosen)
                events = events.filter(chosen) if watch else events
            kept += batch.num_rows
            if watch:
                activity.add(events)
            yield batch
    counted(stats, {(SEEN, 0): activity if watch else {"events": kept}})
