"""Several files as one stream: merged by time, with the columns that folders name.

Each file is in the order of time by itself. A file is opened again when its first event is due, so that as many are
open at once as overlap in time. What is out of order in a file stays so, for the monitor to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.columns import Int64Array
from hamlet.input.csvform import Dropped
from hamlet.input.hive import types_of
from hamlet.input.missing import FileColumns, finding, lacking
from hamlet.input.widening import is_text, joined, merged_schema
from hamlet.streams.clock import Times
from hamlet.streams.feeds import Feed
from hamlet.streams.monitor import time_column_of
from hamlet.streams.program import ir


@dataclass
class _Head:
    """The events of a file that are next.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
    ticks : int64 array
        By these events are merged: the largest time of the file up to each.
    rest : iterator
        Batches behind it.
    place : int
        Of the file.
    """

    batch: pa.RecordBatch
    ticks: Int64Array
    rest: Iterator[pa.RecordBatch]
    place: int


class MergedFeed(Feed):
    """The events of several files by time; of one time in the order of the files.

    Parameters
    ----------
    feeds : sequence of Feed
    name : str
    inputs : sequence of ir.Stream
    time_column : str, optional
    missing : {'error', 'null'}, optional
        What becomes of an input that some files have a column for and others have not, as of
        `hamlet.input.missing.lacking`.

    Raises
    ------
    DataError
        If that is an error.
    """

    def __init__(
        self,
        feeds: Sequence[Feed],
        name: str,
        inputs: Sequence[ir.Stream],
        *,
        time_column: str | None = None,
        missing: str | None = None,
    ) -> None:
        self.name, self._feeds = name, feeds
        self.closed = all(each.closed for each in feeds)
        self.names = None if feeds[0].names is None else list(self._union(each.names or () for each in feeds))
        counts = [each.rows for each in feeds]
        self.rows = None if None in counts else sum(count or 0 for count in counts)
        self._column = time_column
        self._inputs, self._missing = [each.name for each in inputs], missing
        self._counts = [0] * len(feeds)
        self._seen = [{*(each.names or ())} for each in feeds]
        unknown = [place for place, each in enumerate(feeds) if each.names is None]
        for place in unknown if missing == "error" else ():
            for batch in feeds[place].batches():
                self._seen[place].update(batch.schema.names)
        if missing == "error" or not unknown:
            self._look()

    def _look(self) -> list[tuple[FileColumns, str]]:
        """The inputs that files lack and others have; of lines of JSON as far as they are read."""
        files = [
            FileColumns(each.name, [*each.names] if each.names is not None else sorted(seen), each.has_header)
            for each, seen in zip(self._feeds, self._seen, strict=True)
        ]
        return lacking(files, self._inputs, self._missing)

    @staticmethod
    def _union(names: Iterable[Sequence[str]]) -> dict[str, None]:
        return dict.fromkeys(name for each in names for name in each)

    def notes(self) -> list[str]:
        """Rows that were dropped, row groups that were not read, and what files lack that others have."""
        own = super().notes()
        more = [note for each in self._feeds if not each.dropped.rows for note in each.notes()]
        return [*own, *more, *self.findings()]

    def findings(self, read: Sequence[tuple[int, Iterable[str]]] = ()) -> list[str]:
        """What files lack that others have; `read` says how many events of each are read, and their columns."""
        for place, (rows, names) in enumerate(read):
            self._counts[place] = rows
            self._seen[place].update(names)
        counts = {each.name: count for each, count in zip(self._feeds, self._counts, strict=True)}
        return [finding(file.name, name, counts[file.name]) for file, name in self._look() if counts[file.name]]

    @property
    def types(self) -> Mapping[str, pa.DataType | None] | None:
        """The types of the columns, where they are known before the events are read."""
        known = [each.types for each in self._feeds]
        if known[0] is None:
            return None
        return {name: kind for each in reversed(known) if each is not None for name, kind in each.items()}

    def settled(self, is_read: Callable[[str], bool]) -> pa.Schema:
        """The columns that are read, in types that hold for all events of all files."""
        return merged_schema([(each.name, each.settled(is_read)) for each in self._feeds])

    def unreadable(self) -> dict[str, str]:
        """The columns that no input can be read from, with their types."""
        return self._feeds[0].unreadable()

    def survey(self, times: Times) -> None:
        """Look at all times before the first event is given."""
        for each in self._feeds:
            each.survey(times)

    def leave_out_period(self, since: Any, until: Any, time_unit: str) -> None:
        """Leave out what is known to lie outside a period without being read."""
        for each in self._feeds:
            each.leave_out_period(since, until, time_unit)

    @property
    def dropped(self) -> Dropped:
        """Rows that were left out."""
        whole = Dropped()
        for each in self._feeds:
            whole = whole.plus(each.dropped, None if isinstance(each, MergedFeed) else each.name)
        return whole

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The events of all files."""
        if len(self._feeds) == 1:
            yield from self._feeds[0].batches()
            return
        found = next((batch for each in self._feeds for batch in each.batches()), None)
        if found is None:
            return
        # By times of one kind files are merged, whatever 1 means in them.
        times = Times(time_column_of(found.schema.names, self._column, self.name), "s", self.name)
        self.survey(times)
        clock, firsts = times.clock, self._firsts(times)
        if times.clock != clock:  # fractions of seconds, after whole ones
            firsts = self._firsts(times)
        yield from self._merged(times, firsts)

    def _firsts(self, times: Times) -> list[tuple[int, int]]:
        """The time of the first event of each file that has any, and its place; by time."""
        found = []
        for place, feed in enumerate(self._feeds):
            first = next(feed.batches(), None)
            if first is not None:
                found.append((int(self._ticks(times, first.slice(0, 1))[0]), place))
        return sorted(found)

    def _ticks(self, times: Times, batch: pa.RecordBatch) -> Int64Array:
        if times.column not in batch.schema.names:
            raise DataError(f"{self.name}: some events have no column {times.column!r}, the time")
        return times.ticks(batch.column(times.column))

    def _merged(self, times: Times, waiting: list[tuple[int, int]]) -> Iterator[pa.RecordBatch]:
        heads: list[_Head] = []
        while heads or waiting:
            if not heads:
                heads += self._next(times, self._feeds[waiting[0][1]].batches(), waiting.pop(0)[1])
                continue
            bound = min(int(each.ticks[-1]) for each in heads)
            if waiting and waiting[0][0] <= bound:
                place = waiting.pop(0)[1]
                heads += self._next(times, self._feeds[place].batches(), place)
                continue
            heads.sort(key=lambda each: each.place)
            yield from self._due(times, heads, bound)
            left: list[_Head] = []
            for each in heads:
                left += [each] if len(each.ticks) else self._next(times, each.rest, each.place)
            heads = left

    def _next(self, times: Times, rest: Iterator[pa.RecordBatch], place: int) -> list[_Head]:
        """The next events of a file; none where it has no more."""
        batch = next(rest, None)
        if batch is None:
            return []
        self._counts[place] += batch.num_rows
        self._seen[place].update(batch.schema.names)
        clock = times.clock
        ticks = np.maximum.accumulate(self._ticks(times, batch))
        if clock is not None and clock != times.clock:
            raise DataError(
                f"{self.name}: times are whole seconds in some files and fractions in others\n"
                "hint: write all times with a point, or none"
            )
        return [_Head(batch, ticks, rest, place)]

    def _due(self, times: Times, heads: list[_Head], bound: int) -> Iterator[pa.RecordBatch]:
        """The events up to a time, which are taken from the heads."""
        parts, keys = [], []
        for each in heads:
            cut = int(np.searchsorted(each.ticks, bound, "right"))
            if cut:
                parts.append(pa.Table.from_batches([each.batch.slice(0, cut)]))
                keys.append(each.ticks[:cut])
                each.batch, each.ticks = each.batch.slice(cut), each.ticks[cut:]
        table = joined(self._of_one_clock(times, parts), times.column)
        if len(parts) > 1:
            table = table.take(pa.array(np.argsort(np.concatenate(keys), kind="stable")))
        for name in self._inputs if self.closed else ():
            if name not in table.column_names and name in (self.names or ()):
                table = table.append_column(name, pa.nulls(table.num_rows))  # none of these files has it
        yield from table.combine_chunks().to_batches()

    @staticmethod
    def _of_one_clock(times: Times, parts: list[pa.Table]) -> list[pa.Table]:
        """The parts, with times that are read where one file has them as text and another one has not."""
        kinds = [part.schema.field(times.column).type for part in parts]
        if all(kind.equals(kinds[0]) for kind in kinds) or not any(map(is_text, kinds)):
            return parts
        places = [part.schema.get_field_index(times.column) for part in parts]
        return [
            part.set_column(place, times.column, times.read(part.column(place)))
            for place, part in zip(places, parts, strict=True)
        ]


class FolderColumns(Feed):
    """The events of a file, with columns that the names of its folders say (``day=5/part-0.csv``).

    Parameters
    ----------
    feed : Feed
    values : mapping of str to (str or None)
    """

    def __init__(self, feed: Feed, values: Mapping[str, str | None]) -> None:
        own = set(feed.names or ())
        kinds = types_of([values])
        self._feed = feed
        self._values = {
            name: pa.scalar(
                None if text is None else int(text) if pa.types.is_int64(kinds[name]) else text, kinds[name]
            )
            for name, text in values.items()
            if name not in own
        }
        self.name, self.rows, self.closed = feed.name, feed.rows, feed.closed
        self.has_header = feed.has_header
        self.names = None if feed.names is None else [*feed.names, *self._values]

    @property
    def types(self) -> Mapping[str, pa.DataType | None] | None:
        """The types of the columns, where they are known before the events are read."""
        found = self._feed.types
        return None if found is None else {**found, **{name: value.type for name, value in self._values.items()}}

    def settled(self, is_read: Callable[[str], bool]) -> pa.Schema:
        """The columns that are read, in types that hold for all events."""
        own = [pa.field(name, value.type) for name, value in self._values.items() if is_read(name)]
        return merged_schema([(self.name, pa.schema(own)), (self.name, self._feed.settled(is_read))])

    def unreadable(self) -> dict[str, str]:
        """The columns that no input can be read from, with their types."""
        return self._feed.unreadable()

    def survey(self, times: Times) -> None:
        """Look at all times before the first event is given."""
        self._feed.survey(times)

    @property
    def dropped(self) -> Dropped:
        """Rows that were left out."""
        return self._feed.dropped

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The events with all columns."""
        for batch in self._feed.batches():
            more = {name: value for name, value in self._values.items() if name not in batch.schema.names}
            arrays = [*batch.columns, *(pa.repeat(value, batch.num_rows) for value in more.values())]
            yield pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, *more])
