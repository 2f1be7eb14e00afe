"""A run: the monitor of a text, driven to the end of its input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pyarrow as pa

from hamlet.input.events import EventSource, open_events
from hamlet.notation.monitor import MonitorOptions, StepMonitor
from hamlet.notation.notation import Work
from hamlet.runtime.definitions import COLUMNS

_HEARD = frozenset(each.name for each in fields(MonitorOptions))


def run(work: Work, events: Any, **options: Any) -> pa.Table:
    """The rows of a text over events that end.

    Parameters
    ----------
    work : Work
    events
        As `hamlet.input.events.open_events` takes them.
    options
        `MonitorOptions`, and how a file is read.
    """
    heard = {name: value for name, value in options.items() if name in _HEARD}
    reading = {name: value for name, value in options.items() if name not in _HEARD or name in COLUMNS}
    monitor = StepMonitor(work, **heard)
    batches = list(driven(monitor, open_events(events, **reading)))
    return pa.Table.from_batches(batches, monitor.rows_schema)


def driven(
    monitor: StepMonitor,
    events: EventSource,
    progress: Callable[[int], None] | None = None,
    chosen: Callable[[pa.RecordBatch], pa.RecordBatch] = lambda batch: batch,
) -> Iterator[pa.RecordBatch]:
    """Rows as they are final, to the end of the events, of which `chosen` takes some."""
    monitor.begin(events.schema.clock.column)
    for batch in events.batches([name for name in monitor.columns if name in events.schema.columns], progress=progress):
        yield from monitor.push_batches(chosen(batch))
    yield from monitor.close_batches()
