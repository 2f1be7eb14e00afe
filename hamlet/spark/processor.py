"""What Spark runs per slice in a continuous job, and nothing that would make it slow to import.

Before a job begins, Spark starts a Python process that asks which state there is, and waits ten seconds for it. So what
the slices do comes along pickled, and is unpickled with the first events.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any, Protocol

from pyspark import cloudpickle
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import MapState, StatefulProcessor, StatefulProcessorHandle

STATE = "cells"  # the name of the state in Spark's store
STATE_KEY, STATE_VALUE = "cell int, part int", "cells int, saved binary"


class Cells(Protocol):
    """What the slices do."""

    def closed(self, state: MapState, rows: Iterator[Row]) -> Iterator[Row]:
        """Take the events of a micro-batch; gives what is decided."""
        ...


class Processor(StatefulProcessor):
    """The monitors of a slice, one for each of its cells."""

    _state: MapState

    def __init__(self, cells: Cells) -> None:
        self._pickled: bytes = cloudpickle.dumps(cells)  # type: ignore[no-untyped-call]
        self._cells: Cells | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's name for the beginning."""
        self._state = handle.getMapState(STATE, STATE_KEY, STATE_VALUE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        """The events of a micro-batch; gives what is decided."""
        if self._cells is None:
            self._cells = pickle.loads(self._pickled)
        yield from self._cells.closed(self._state, rows)

    def close(self) -> None:
        """Spark's name for the end."""
