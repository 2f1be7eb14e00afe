"""What monitors have in common whose events are read and held by `Arrivals`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic

import pyarrow as pa

from hamlet.input.columns import values_of
from hamlet.input.ticks import Lateness
from hamlet.language.schema import Clock, Schema
from hamlet.runtime.arrivals import Arrivals, Batch
from hamlet.runtime.expected import Expected
from hamlet.runtime.intake import AnyOptions, with_time_column
from hamlet.runtime.monitor import Monitor


class ArrivalMonitor(Monitor, Generic[AnyOptions]):
    """A monitor that goes on with the time column that its first events have.

    Attributes
    ----------
    options : options
        With that column, once events have come.
    """

    options: AnyOptions
    _asked: AnyOptions  # as they were given
    _expected: Expected
    _schema: Schema | None = None  # what is known of the columns of events

    @abstractmethod
    def _arrivals_by(self, options: AnyOptions, lateness: Lateness, late: str) -> Arrivals:
        """What takes events with these options."""

    def _receive(self, arrivals: Arrivals) -> None:
        """Take events so from now on."""
        self._arrivals, self._buffer = arrivals, arrivals.buffer

    def _settle(self, options: AnyOptions) -> None:
        """Go on with the time column that the first events have."""
        if options.time_column != self.options.time_column:
            self.options = options
            self._receive(self._arrivals_by(options, **self._buffer.options).going_on(self._arrivals))

    def _arrived(self, events: Any) -> Batch | None:
        """Events that are read and judged, and have changed nothing but what the time column is; None for none."""
        if self._schema is None:
            options, events = with_time_column(self._asked, events)
            self._settle(options)
        return self._arrivals.read(events, self._schema)

    def _types(self, batches: Sequence[pa.RecordBatch]) -> set[str]:
        """The types of some events."""
        return {name for batch in batches for name in values_of(batch, self.options.type_column)}

    def _hold(self, batch: Batch) -> None:
        """Hold events, by which types may have come that are expected."""
        if self._expected.missing:
            self._expected.see(self._types(batch.parts))
        self._arrivals.take(batch)

    def _goes_on(self, time: Any) -> bool:
        """Hear that no event before a time will come; gives whether that is known in ticks, as it is after an event."""
        return self._arrivals.advance(time, None if self._schema is None else self._schema.clock)

    @property
    def clock(self) -> Clock:
        """The time column; of whole ticks where no event has come yet."""
        if self._schema is not None:
            return self._schema.clock
        return Clock(self.options.time_column, self.options.time_unit, pa.int64())
