"""The time ranges in which an input arrives: whether they may be chunks, and whether that pays.

Ranges are measured exactly, in a pass over the time column. Those that overlap are no chunks. Where one begins at the
time at which another ends, the events of that time, a *border*, make a chunk of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.engine.keys import KeyIndex
from hamlet.input.ordering import OrderCheck, SortKey
from hamlet.parallel.time.probes import coordinates_of
from hamlet.planner.compiled import CompiledWorkload
from hamlet.planner.coordinates import refusal

SCHEMA = pa.schema(
    [
        *((name, pa.int64()) for name in ("first", "last", "rows", "at_first", "at_last")),
        ("ordered", pa.bool_()),
        ("keys", pa.list_(pa.int64())),
    ]
)

# What things cost, in nanoseconds of one core, as `python -m bench.range_costs` measures them: slopes of the processor
# time of whole jobs over their events, and of a task's over its queries, probes and matrices (Spark 4.3, a Zen 5 core).
# What a shuffle costs was parted by the processor time of the stages before and after it.
EVENT = 30.0  # the engine, for an event of one query
PROBED = 1.1  # the probes of a query beside it, in the same unit
SENT = 150.0  # to read an event as a row of Spark, and to write it for another task
TAKEN = 350.0  # to fetch, sort and hand it to that task
HANDED = 280.0  # to read it as a row, and to hand it to the task that has read it
READ = 40.0  # to read it in the task that uses it
ENTRY = 2_300.0  # to write, send, read and fold an entry of a matrix
FOLD = 3e8  # the jobs of Spark that bring matrices together
LEAST_EVENTS = 1_000_000  # below, `FOLD` and a pass over the times cost more than all that shuffling them costs


@dataclass(frozen=True)
class Range:
    """The events of one task.

    Attributes
    ----------
    first, last : int
        Ticks: the first and the last time.
    rows : int
        Events.
    at_first, at_last : int
        Of them those of the first and of the last time.
    ordered : bool
        Whether they come in the order of time (and order column).
    keys : tuple of int
        Partitions of each class of queries.
    """

    first: int
    last: int
    rows: int
    at_first: int
    at_last: int
    ordered: bool
    keys: tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """An input cut along time.

    Attributes
    ----------
    borders : tuple of int, ascending
        Times that two ranges have in common.
    opening : int
        A chunk that begins before this time is the first.
    ordered : bool
        Whether every task gets its events in the order of time.
    ranges : int
    partitions : int
        Of a range at most, those of all classes together.
    """

    borders: tuple[int, ...]
    opening: int
    ordered: bool
    ranges: int
    partitions: int


class Measure:
    """Measures the range of a task's events.

    Parameters
    ----------
    key : SortKey
    attributes : sequence of sequence of str
        The partition attributes of each class of queries.
    """

    def __init__(self, key: SortKey, attributes: Sequence[Sequence[str]]) -> None:
        self._key = key
        self._check = OrderCheck(key)
        self._indexes = [KeyIndex(names) for names in attributes]
        self._at: dict[bool, tuple[int, int]] = {}  # (time, its events): of the last time where True, of the first else

    def add(self, batch: pa.RecordBatch) -> None:
        """Take events, in any order; raises DataError at a NULL time."""
        if not batch.num_rows:
            return
        self._check.feed(batch)
        times = self._key.columns_of(batch)[0]
        for last, end in ((False, int(times.min())), (True, int(times.max()))):
            events = int(np.count_nonzero(times == end))
            time, before = self._at.get(last, (end, 0))
            if end == time:
                self._at[last] = (time, before + events)
            elif (end > time) == last:
                self._at[last] = (end, events)
        for index in self._indexes:
            index.encode(batch)

    def batch(self) -> pa.RecordBatch:
        """The range as a row of `SCHEMA`; none where there are no events."""
        rows = []
        if self._check.rows:
            (first, at_first), (last, at_last) = self._at[False], self._at[True]
            keys = [index.size for index in self._indexes]
            values = (first, last, self._check.rows, at_first, at_last, self._check.ordered, keys)
            rows.append(dict(zip(SCHEMA.names, values, strict=True)))
        return pa.RecordBatch.from_pylist(rows, SCHEMA)


def ranges_of(batches: Iterable[pa.RecordBatch]) -> list[Range]:
    """The ranges of all tasks, in the order of time."""
    rows: Iterable[dict[str, Any]] = (row for batch in batches for row in batch.to_pylist())
    found = [Range(**row | {"keys": tuple(row["keys"])}) for row in rows]
    return sorted(found, key=lambda each: (each.first, each.last))


def cut_of(ranges: Sequence[Range]) -> Cut | str:
    """The input as chunks, or why they are none.

    Parameters
    ----------
    ranges : sequence of Range
        In the order of time.

    Examples
    --------
    >>> one, two = Range(0, 5, 9, 1, 2, True, (1,)), Range(5, 8, 9, 3, 1, True, (1,))
    >>> cut_of([one, two])
    Cut(borders=(5,), opening=5, ordered=True, ranges=2, partitions=1)
    >>> cut_of([two, two])
    'ranges of the input overlap in time'
    """
    if not ranges:
        return "the input is empty"
    borders = []
    last = ranges[0].last
    for each in ranges[1:]:
        if each.first < last:
            return "ranges of the input overlap in time"
        if each.first == last:
            borders.append(last)
        last = each.last
    opening = ranges[1].first if len(ranges) > 1 else ranges[0].last + 1
    partitions = max(sum(each.keys) for each in ranges)
    return Cut(tuple(dict.fromkeys(borders)), opening, all(each.ordered for each in ranges), len(ranges), partitions)


def refused(compiled: CompiledWorkload) -> str | None:
    """Why chunks cannot be maps for some query of a workload; None where they can."""
    if not all(each.line.is_plain for each in compiled.classes):
        return "windows that begin by OFFSET or in a time zone have no maps"
    return next((reason for each in compiled.classes if (reason := refusal(each)) is not None), None)


def too_few(events: int) -> str | None:
    """Why a look at the times does not pay for so few events; None where it may."""
    return None if events >= LEAST_EVENTS else f"{events:,} events are too few"


def too_dear(compiled: CompiledWorkload, ranges: Sequence[Range], cut: Cut, slots: int, *, apart: bool) -> str | None:
    """Why it costs more to send maps than to send events; None where it is estimated to pay.

    The pass over the times is over, so it does not count.

    Parameters
    ----------
    compiled : CompiledWorkload
    ranges : sequence of Range
    cut : Cut
    slots : int
        Tasks that run at a time.
    apart : bool
        Whether tasks read their ranges by themselves, else Spark does.
    """
    events = sum(each.rows for each in ranges)
    at_borders = sum(
        each.at_first * (each.first in cut.borders) + each.at_last * (each.last in cut.borders) for each in ranges
    )
    few = too_few(events)
    if few is not None:
        return few
    if at_borders * 20 > events:
        return "too many events are of times at which one range ends and another begins"
    together = SENT * events / slots
    entries = 0.0
    work = [each.rows * (READ if apart else HANDED) for each in ranges]
    for number, of_class in enumerate(compiled.classes):
        queries = coordinates_of(of_class)
        keys = [each.keys[number] for each in ranges]
        together += (TAKEN + EVENT * len(queries)) * events / min(slots, max(1, *keys))
        for of in queries:
            within, slide = of.window
            entries += sum(keys) * (of.size**2 + 2 * -(-within // slide) * of.size)
            for place, each in enumerate(ranges):
                probed = min(1.0, within / (each.last - each.first + 1)) if place else 0.0
                work[place] += each.rows * EVENT * (1 + PROBED * probed)
    if entries * 20 > events:
        return f"about {entries:,.0f} entries of matrices would travel in place of {events:,} events"
    if FOLD + max(*work, sum(work) / slots) + ENTRY * entries / slots > together:
        return f"{len(ranges):,} ranges are estimated to take {slots:,} tasks longer than events that are shuffled"
    return None
