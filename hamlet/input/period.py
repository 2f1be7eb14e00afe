"""Events of a period only: from a time on, and before another one, with what need not be read left out.

A Parquet file says the least and the greatest time of each row group; those that cannot have an event of the period are
not read, nor are columns that nobody asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hamlet.errors import OptionError
from hamlet.input.columns import integers
from hamlet.input.events import EventSource, Progress
from hamlet.input.files import Folder, ParquetFile
from hamlet.input.ticks import time_in_ticks
from hamlet.language.moments import FORMS, seconds_of
from hamlet.language.schema import Clock

_FAR = 1 << 62


def in_ticks(time: Any, clock: Clock, option: str) -> int:
    """A time as the user gives it, in ticks: a time of the column, or text.

    Text without a zone is the time of the clock by which days begin, if there is one, else that of the column's zone.

    Raises
    ------
    OptionError
        If it is no such time.
    """
    if isinstance(time, str):
        if not clock.is_timestamp and time.strip().lstrip("-").isdecimal():
            return int(time)
        zone = clock.zone or (clock.type.tz if clock.is_timestamp else None)
        seconds = seconds_of(time, zone)
        if seconds is None:
            what = "a whole number of ticks, or a time since 1970" if not clock.is_timestamp else "a time"
            raise OptionError(f"{option} is {time!r}; it must be {what} such as {FORMS}")
        return -int(-seconds * clock.ticks_per_second // 1)  # the first tick that is not before it
    return time_in_ticks(time, clock)


class PeriodEvents(EventSource):
    """The events of a source from a time on and before another one.

    Parameters
    ----------
    source : EventSource
    since, until : int, str, datetime or None
        The first time that counts, and the first that does not any more; None for no such bound.

    Attributes
    ----------
    skipped, groups : int
        Row groups of Parquet that were not read, and all there are.
    """

    def __init__(self, source: EventSource, since: Any = None, until: Any = None) -> None:
        clock = source.schema.clock
        self.name, self.schema, self.arrow_schema = source.name, source.schema, source.arrow_schema
        self._source = source
        self._first = -_FAR if since is None else in_ticks(since, clock, "--from")
        self._end = _FAR if until is None else in_ticks(until, clock, "--to")
        if self._end <= self._first:
            raise OptionError(f"--to ({until}) is not after --from ({since}), so no event is between them")
        self.skipped = self.groups = 0
        reader = source._reader
        for file in reader.readers if isinstance(reader, Folder) else (reader,):
            if isinstance(file, ParquetFile):
                self._narrow(file)
        self.rows = reader.rows

    def _narrow(self, file: ParquetFile) -> None:
        """Have a file leave out row groups that lie outside."""
        clock = self.schema.clock
        kind = file.schema.field(clock.column).type if clock.column in file.schema.names else None
        if kind is None or not kind.equals(clock.type):
            return  # its statistics count in another unit
        chosen = []
        with pq.ParquetFile(file.name) as opened:
            metadata = opened.metadata
        for number in range(metadata.num_row_groups):
            times = _times(metadata.row_group(number), clock.column)
            if times is None or (times[0] < self._end and times[1] >= self._first):
                chosen.append(number)
        self.groups += metadata.num_row_groups
        self.skipped += metadata.num_row_groups - len(chosen)
        file.choose(chosen)

    @property
    def repeatable(self) -> bool:
        """Whether the events can be read again (`EventSource.repeatable`)."""
        return self._source.repeatable

    def types(self) -> list[str]:
        """The event types that occur, where the source knows (`EventSource.types`)."""
        return self._source.types()

    def notes(self) -> list[str]:
        """What is odd about the input (`EventSource.notes`), and how many row groups were skipped."""
        told = self._source.notes()
        return (
            [*told, f"skipped {self.skipped:,} of {self.groups:,} row groups by their times"] if self.skipped else told
        )

    def batches(
        self, columns: Sequence[str] | None = None, *, progress: Progress | None = None, pane: int = 1
    ) -> Iterator[pa.RecordBatch]:
        """The batches of the events of the period (`EventSource.batches`)."""
        clock = self.schema.clock.column
        for batch in self._source.batches(columns, progress=progress, pane=pane):
            times = integers(batch.column(clock), clock)[0]
            first, last = np.searchsorted(times, [self._first, self._end])
            if last > first:
                part = batch.slice(int(first), int(last - first))
                if self.sample is None:
                    self.sample = part.slice(0, 1000)
                yield part
            if last < len(times):
                return


def _times(group: pq.RowGroupMetaData, time: str) -> tuple[int, int] | None:
    """The least and the greatest time of a row group, as the file stores them; None where it does not say."""
    for place in range(group.num_columns):
        column = group.column(place)
        if column.path_in_schema == time and column.is_stats_set and column.statistics.has_min_max:
            least, most = column.statistics.min_raw, column.statistics.max_raw
            return (least, most) if isinstance(least, int) else None
    return None
