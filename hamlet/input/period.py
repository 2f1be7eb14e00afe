"""Events of a period only: from a time on, and before another one, with what need not be read left out.

A Parquet file says the least and the greatest time of each row group; those that cannot have an event of the period are
not read, nor are columns that nobody asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.errors import OptionError, option
from hamlet.input.buffers import from_numpy
from hamlet.input.events import EventSource, Progress, SomeEvents
from hamlet.input.row_groups import RowGroups, Useless
from hamlet.input.statistics import Bounds, BoundsOf
from hamlet.input.ticks import in_ticks
from hamlet.language.schema import Clock

_FAR = 1 << 62


def period_of(since: Any, until: Any, clock: Clock) -> tuple[int, int]:
    """The ticks from a time on and before another one, either of which may be missing.

    Raises
    ------
    OptionError
        If one of them is no time, or the second is not after the first.
    """
    first = -_FAR if since is None else in_ticks(since, clock, option("since"))
    end = _FAR if until is None else in_ticks(until, clock, option("until"))
    if end <= first:
        raise OptionError(
            f"{option('until')} ({until}) is not after {option('since')} ({since}), so no event is between them"
        )
    return first, end


class PeriodEvents(SomeEvents):
    """The events of a source from a time on and before another one.

    Parameters
    ----------
    source : EventSource
    since, until : int, str, datetime or None
        The first time that counts, and the first that does not any more; None for no such bound.
    """

    def __init__(self, source: EventSource, since: Any = None, until: Any = None) -> None:
        super().__init__(source)
        clock = source.schema.clock
        self._first, self._end = period_of(since, until, clock)
        self._without(leave_out_period(self.row_groups, (self._first, self._end), clock))

    def _is_inside(self, times: Bounds) -> bool:
        return bool(times.known and self._first <= times.least and times.most < self._end)

    def leave_out(self, useless: Useless, reason: str, columns: Sequence[str]) -> int:
        """Leave out row groups that lie in the period and are of no use (`EventSource.leave_out`)."""
        clock = self.schema.clock.column
        return self._source.leave_out(
            lambda bounds: self._is_inside(bounds(clock)) and useless(bounds), reason, columns
        )

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None, pane: int = 1
    ) -> Iterator[pa.RecordBatch]:
        """The batches of the events of the period (`EventSource.batches`)."""
        for batch in self._source.batches(columns, progress=progress, pane=pane):
            times = self._source.ticks(batch)
            if not self.in_order:
                inside = (times >= self._first) & (times < self._end)
                part = batch if inside.all() else batch.filter(from_numpy(inside))
                if part.num_rows:
                    yield part
                continue
            first, last = np.searchsorted(times, [self._first, self._end])
            if last > first:
                part = batch.slice(int(first), int(last - first))
                if self.sample is None:
                    self.sample = part.slice(0, 1000)
                yield part
            if last < len(times):
                return


def leave_out_period(groups: RowGroups, period: tuple[int, int], clock: Clock) -> int:
    """Leave out row groups that lie outside a period, in ticks (`period_of`); gives how many rows they have."""
    first, end = period

    def is_outside(bounds: BoundsOf) -> bool:
        times = bounds(clock.column)
        return bool(times.known and (times.least >= end or times.most < first))

    return groups.leave_out(is_outside, "by their times")
