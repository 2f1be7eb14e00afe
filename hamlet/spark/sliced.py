"""What a continuous job asks of a notation, and what those that go by time have in common; no pyspark needed.

A notation is a `Work`: it says which slices need an event, and what monitor a slice has. Tasks pack events per slice;
every task tells every slice the latest time that it has seen, so that all slices agree on the watermark of a
micro-batch, also those that got no event. What a slice keeps between micro-batches is bytes, in Spark's state store.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.checkpoint.pieces import as_bytes, from_bytes, joined, unjoined
from hamlet.errors import LateError
from hamlet.findings import Seen, of_names
from hamlet.input.columns import Int64Array
from hamlet.runtime.monitor import Monitor
from hamlet.spark.events import engine_batches

PACKED = pa.schema(
    [
        pa.field("slice", pa.int32(), nullable=False),
        pa.field("first", pa.int64(), nullable=False),  # ticks: of the events that the task has read
        pa.field("latest", pa.int64(), nullable=False),
        pa.field("seen", pa.binary()),  # what all of these have shown (`Seen`), told to the first slice only
        pa.field("events", pa.binary()),  # as an Arrow stream; NULL where there are none
    ]
)
CLOSED = pa.schema(
    [
        pa.field("bucket", pa.int32(), nullable=False),  # what may be put together side by side
        pa.field("rows", pa.binary()),  # as an Arrow stream; NULL in the row that counts
        pa.field("events", pa.int64(), nullable=False),
        pa.field("late_events", pa.int64(), nullable=False),
        pa.field("kept_bytes", pa.int64(), nullable=False),
        pa.field("latest", pa.int64()),
        pa.field("cell", pa.int32(), nullable=False),
        pa.field("load", pa.int64(), nullable=False),  # events that the cell was given
        pa.field("seen", pa.binary()),  # what all events since the job began have shown, where the cell knows it
    ]
)
_HEAD = ("tick", "place", "part")  # in front of the columns of packed events
MINE, COPY, STEP = 1, 0, -1  # an event in its first slice, in others; a time without an event of the slice


class Slice(ABC):
    """The monitor of a slice through one micro-batch.

    Attributes
    ----------
    read, load, late_events, kept_bytes : int
        Events that tasks have read, those that the slice was given, late ones among these, and what it keeps.
    latest : int or None
        The latest time of the micro-batch, in ticks.
    seen : Seen
        What all events since the job began have shown, in the first slice.
    """

    def __init__(self, saved: bytes | None) -> None:
        self.read = self.load = 0
        self.latest: int | None = None
        self.seen = Seen()
        self.before: bytes | None = None  # what it has kept
        if saved is not None:
            self.seen, self.before = _parted(saved)

    @property
    @abstractmethod
    def late_events(self) -> int: ...  # noqa: D102

    @property
    @abstractmethod
    def kept_bytes(self) -> int: ...  # noqa: D102

    def take(self, first: int, latest: int, seen: bytes | None, events: bytes | None) -> None:  # noqa: ARG002
        """A row of `PACKED`, in any order."""
        if seen is not None:
            shown = Seen.read(seen)
            self.read, self.seen = self.read + shown.events, self.seen.plus(shown)
        self.latest = latest if self.latest is None else max(latest, self.latest)
        for batch in [] if events is None else from_bytes(events):
            self.load += self.received(batch)

    @abstractmethod
    def received(self, events: pa.RecordBatch) -> int:
        """Take packed events; gives how many there are."""

    @abstractmethod
    def closed(self) -> Iterator[tuple[int, bytes]]:
        """Buckets of rows that the micro-batch decides; called once, after all events."""

    def save(self) -> bytes:
        """What it keeps, for `Work.opened`."""
        return joined([self.seen.described(), self.kept()])

    @abstractmethod
    def kept(self) -> bytes:
        """What it keeps of its events; it finds that in `before` when it is opened again."""


def _parted(saved: bytes) -> tuple[Seen, bytes]:
    """What the events have shown, and what a slice keeps of them."""
    seen, kept = unjoined(saved)
    return Seen.read(seen), kept


class Work(Protocol):
    """What runs continuously; goes to every worker."""

    @property
    def slices(self) -> int:
        """How many there are."""

    @property
    def notes(self) -> Sequence[str]:
        """What a user should know of how it runs."""

    def packed(self, task: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Events as `PACKED`: for every batch a row per slice."""

    def opened(self, slice: int, saved: bytes | None) -> Slice:
        """A slice, as the micro-batch before has left it."""


def told(ticks: Int64Array, seen: Seen, packets: Sequence[bytes | None]) -> pa.RecordBatch:
    """Events of these times as `PACKED`, of which each slice gets a packet or none."""
    count = len(packets)
    times = [int(ticks.min())] * count, [int(ticks.max())] * count
    columns = [range(count), *times, [seen.described(), *[None] * (count - 1)], packets]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, PACKED, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PACKED)


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that slices have decided, of batches of `CLOSED`."""
    for batch in batches:
        for data in batch.column("rows").drop_null().to_pylist():
            yield from from_bytes(data)


def decided(bucket: int, rows: bytes | None, **counts: int | bytes | None) -> dict[str, Any]:
    """A row of `CLOSED`."""
    none = {"events": 0, "late_events": 0, "kept_bytes": 0, "latest": None, "cell": 0, "load": 0, "seen": None}
    return {"bucket": bucket, "rows": rows, **none, **counts}


# ------------------------------------------------------------------------------------------------- by time


class Submonitor(ABC):
    """A monitor that gets events in order, once no earlier one can come.

    Attributes
    ----------
    points : int
        The time-points that it was given, where its rows number them; the next one has this number.
    """

    points = 0

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor

    @property
    def kept_bytes(self) -> int:
        """What the monitor keeps."""
        return self._monitor.held["bytes"]

    @abstractmethod
    def push(self, ticks: Int64Array, events: pa.RecordBatch, steps: npt.NDArray[np.bool_]) -> list[pa.RecordBatch]:
        """Take events, of which some are steps: times at which only other slices have an event."""

    @abstractmethod
    def advance(self, tick: int) -> list[pa.RecordBatch]:
        """No event before a time will come."""

    def end(self, tick: int) -> list[pa.RecordBatch]:
        """No event will come; the last one of all slices had this time."""
        raise NotImplementedError

    def save(self) -> bytes:
        """What it is."""
        return self._monitor.save()


class TimedWork(ABC):
    """A notation whose events are put in the order of time before a monitor gets them.

    Parameters
    ----------
    slices : int
    events : pyarrow.Schema
        The columns that are read, in the types that the monitor takes.
    lateness : int
        Ticks.
    late : {'error', 'drop'}

    Attributes
    ----------
    rows : pyarrow.Schema
        Of the result.
    notes : tuple of str
        What a user should know of how it runs.
    reach : int or None
        The ticks up to the watermark whose events a monitor needs that begins anew there; they are kept, so that events
        can be cut in other shares. None where shares stay.
    """

    reach: int | None = None
    tells_steps = False  # whether all slices hear of all times
    notes: tuple[str, ...] = ()
    rows: pa.Schema

    def __init__(self, slices: int, events: pa.Schema, lateness: int, late: str) -> None:
        self.slices, self.events, self.lateness, self.late = slices, events, lateness, late

    @abstractmethod
    def times(self, events: pa.RecordBatch) -> tuple[Int64Array, Int64Array | None]:
        """Ticks, and what orders events of one tick; raises DataError where there is none."""

    def looked(self, events: pa.RecordBatch) -> tuple[npt.NDArray[np.bool_], Seen]:
        """Which slices need which events, of shape (rows, slices), and what these show."""
        needs = self.needs(events) if self.slices > 1 else np.ones((events.num_rows, 1), np.bool_)
        return needs, self.seen(events)

    def needs(self, events: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which of several slices need which events."""
        raise NotImplementedError

    def seen(self, events: pa.RecordBatch) -> Seen:
        """What events show."""
        return Seen(events.num_rows)

    def findings(self, seen: Seen) -> list[str]:
        """What was probably not meant, by what all events have shown, a sentence each."""
        return of_names((), seen)

    def by_hash(self, known: npt.NDArray[np.bool_], hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """The needs where each of the known events goes to the slice of its hash, and the others to none."""
        needs = np.zeros((len(known), self.slices), np.bool_)
        needs[np.nonzero(known)[0], (hashes % np.uint64(self.slices)).astype(np.int64)] = True
        return needs

    @abstractmethod
    def monitor(self, slice: int, first: int, saved: bytes | None) -> Submonitor:
        """The monitor of a slice; `first` is the tick of the first event of all slices."""

    def recut(self, events: pa.RecordBatch) -> tuple[Any, TimedWork]:
        """By what to cut events such as these, as JSON, and the work that is cut so; as many slices as before."""
        raise NotImplementedError

    def again(self, shares: Any) -> TimedWork:
        """The work that is cut by what `recut` gave."""
        raise NotImplementedError

    @abstractmethod
    def time_text(self, tick: int) -> str:
        """A time for a message."""

    def packed(self, task: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Events as `PACKED`: for every batch a row per slice."""
        row = task << 40  # events of one tick stay in the order in which a task has read them
        for events in engine_batches(batches, self.events.names, self.events):
            ticks, orders = self.times(events)
            places = np.arange(row, row + len(ticks))
            row += len(ticks)
            needs, seen = self.looked(events)
            parts = self._parts(events, ticks, orders, places, needs)
            packets = [as_bytes(part) if part.num_rows else None for part in parts]
            yield told(ticks, replace(seen, first=int(ticks[0])), packets)

    def _steps(self, ticks: Int64Array, orders: Int64Array | None) -> tuple[Any, Any]:
        """The first event of each step of time, and the step of each event."""
        if not self.tells_steps:
            return np.zeros(0, np.int64), None
        keys = np.stack([ticks, np.zeros_like(ticks) if orders is None else orders], axis=1)
        _, firsts, steps = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        return firsts, steps.reshape(-1)

    def _parts(
        self,
        events: pa.RecordBatch,
        ticks: Int64Array,
        orders: Int64Array | None,
        places: Int64Array,
        needs: npt.NDArray[np.bool_],
    ) -> Iterator[pa.RecordBatch]:
        """The events of each slice, and its steps, behind columns that say what they are."""
        firsts, steps = self._steps(ticks, orders)
        claimed = np.zeros(len(ticks), np.bool_)
        for slice in range(self.slices):
            rows = np.nonzero(needs[:, slice])[0]
            kinds = np.where(claimed[rows], COPY, MINE)
            claimed[rows] = True
            if len(firsts):
                known = np.zeros(len(firsts), np.bool_)
                known[steps[rows]] = True
                kinds = np.concatenate([kinds, np.full(int((~known).sum()), STEP)])
                rows = np.concatenate([rows, firsts[~known]])
            head = [pa.array(ticks[rows]), pa.array(places[rows]), pa.array(kinds, pa.int8())]
            columns = events.take(pa.array(rows)).columns
            yield pa.RecordBatch.from_arrays([*head, *columns], [*_HEAD, *events.schema.names])

    def parts(self, events: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """The events of each slice of some that were packed before, in the order of time."""
        data = events.select(events.schema.names[len(_HEAD) :])
        ticks, orders = self.times(data)
        for part in self._parts(data, ticks, orders, events.column(1).to_numpy(), self.looked(data)[0]):
            yield part.take(pa.array(np.argsort(part.column(0).to_numpy(), kind="stable")))

    def opened(self, slice: int, saved: bytes | None) -> TimedSlice:
        """A slice, as the micro-batch before has left it."""
        return TimedSlice(self, slice, saved)


class TimedSlice(Slice):
    """Events of a slice: judged, put in order, and given to the monitor once no earlier one can come."""

    def __init__(self, work: TimedWork, slice: int, saved: bytes | None) -> None:
        super().__init__(saved)
        self._work, self._slice = work, slice
        self._late = 0
        self._first: int | None = None
        self._before: int | None = None  # the latest time of earlier micro-batches
        self._held: list[pa.RecordBatch] = []
        self._taken: list[pa.RecordBatch] = []
        self._monitor: Submonitor | None = None
        self._past: list[pa.RecordBatch] = []  # what the monitor was given lately, where that is kept
        self._since: int | None = None  # events from this tick on are there; None where all are
        if self.before is not None:
            state = _State.of(self.before)
            self._before, self._first, self._since = state.before, state.first, state.since
            self._held, self._past = state.held, state.past if work.reach is not None else []
            if state.monitor:
                assert self._first is not None
                self._monitor = work.monitor(slice, self._first, state.monitor)
                if work.reach is not None and not state.keeps:
                    self._since = state.before
            elif state.points:
                self._begin_anew(state.points)

    def _begin_anew(self, points: int) -> None:
        """A monitor where the cells were cut anew, at a time-point of this number: what it says of them is known."""
        assert self._before is not None
        assert self._first is not None
        self._monitor = self._work.monitor(self._slice, self._first, None)
        events = whole(self._past)
        if events is not None:
            self._monitor.push(*given(events))
        self._monitor.advance(self._before - self._work.lateness)
        self._monitor.points = points

    @property
    def late_events(self) -> int:
        """Events that came too late, each counted in one slice."""
        return self._late

    @property
    def kept_bytes(self) -> int:
        """Bytes of the monitor and of events that are held."""
        kept = 0 if self._monitor is None else self._monitor.kept_bytes
        return kept + sum(int(batch.nbytes) for batch in (*self._held, *self._past))

    def take(self, first: int, latest: int, seen: bytes | None, events: bytes | None) -> None:
        """A row of `PACKED`."""
        if self._monitor is None:
            self._first = first if self._first is None else min(first, self._first)
        super().take(first, latest, seen, events)

    def received(self, events: pa.RecordBatch) -> int:
        """Take packed events; steps are none."""
        self._taken.append(events)
        return int(np.count_nonzero(events.column(2).to_numpy() != STEP))

    def closed(self) -> Iterator[tuple[int, bytes]]:
        """Rows that the micro-batch decides.

        Raises
        ------
        LateError
            At an event before the watermark of the micro-batch before, unless late events are dropped.
        """
        work = self._work
        assert self.latest is not None
        assert self._first is not None
        fresh = self._in_time()
        earlier = self._first if self._before is None else self._before - work.lateness
        self.latest = self.latest if self._before is None else max(self.latest, self._before)
        self._before = self.latest
        mark = self.latest - work.lateness
        if self._monitor is None and mark > self._first:  # up to here an earlier event may have come
            self._monitor = work.monitor(self._slice, self._first, None)
        events = whole([*self._held, *fresh])
        self._held = []
        rows: list[pa.RecordBatch] = []
        if events is not None:
            ordered = in_order(work, events)
            cut = int(np.searchsorted(ordered.column(0).to_numpy(), mark)) if self._monitor is not None else 0
            if cut < ordered.num_rows:
                self._held = [ordered.slice(cut)]
            if cut and self._monitor is not None:
                ready = ordered.slice(0, cut)
                rows += self._monitor.push(*given(ready))
                if work.reach is not None:
                    self._past.append(ready)
        if self._monitor is not None:
            rows += self._monitor.advance(mark)
        if work.reach is not None:
            self._forget(min(mark - work.reach, earlier))  # the events of a micro-batch say what comes how often
        for batch in rows:
            if batch.num_rows:
                yield self._slice, as_bytes(batch)

    def _forget(self, tick: int) -> None:
        """Leave out events before a tick."""
        events = whole(self._past)
        if events is None:
            return
        begin = int(np.searchsorted(events.column(0).to_numpy(), tick))
        if begin:
            self._since = tick if self._since is None else max(tick, self._since)
        self._past = [events.slice(begin)]

    def _in_time(self) -> list[pa.RecordBatch]:
        """The events of this micro-batch in the order of arrival, without those that are late."""
        events = whole(self._taken)
        if events is None:
            return []
        events = as_read(events)
        if self._before is None:
            return [events]
        bound = self._before - self._work.lateness
        ticks, parts = events.column(0).to_numpy(), events.column(2).to_numpy()
        late = ticks < bound
        if not late.any():
            return [events]
        if self._work.late == "error" and (late & (parts != STEP)).any():
            place = int(np.argmax(late & (parts != STEP)))
            event = {name: value for name, value in events.slice(place, 1).to_pylist()[0].items() if name not in _HEAD}
            shown = ", ".join(f"{name}={value!r}" for name, value in event.items() if value is not None)
            raise LateError(
                f"an event is late: its time is {self._work.time_text(int(ticks[place]))}, and no event before "
                f"{self._work.time_text(bound)} is expected any more ({shown})\n"
                "hint: give a lateness ('5 s'), or drop late events, which counts them"
            )
        self._late += int((late & (parts == MINE)).sum())
        return [events.filter(pa.array(~late))]

    def kept(self) -> bytes:
        """What is known of time, the events that are held, and the monitor."""
        monitor, points = (b"", 0) if self._monitor is None else (self._monitor.save(), self._monitor.points)
        keeps = self._work.reach is not None
        held, past = ([each] if each is not None else [] for each in (whole(self._held), whole(self._past)))
        return _State(self._before, self._first, self._since, points, keeps, held, past, monitor).saved()


@dataclass(frozen=True)
class _State:
    """What a slice keeps between micro-batches.

    Attributes
    ----------
    before, first, since : int or None
        The latest tick, the first one, and the one from which on `past` is whole.
    points : int
        Time-points that the monitor was given, where it numbers them.
    keeps : bool
        Whether `past` is kept.
    held, past : list of pyarrow.RecordBatch
        Events that the monitor was not given yet, and those of lately that it was.
    monitor : bytes
        None of them where it has not begun.
    """

    before: int | None
    first: int | None
    since: int | None
    points: int
    keeps: bool
    held: list[pa.RecordBatch]
    past: list[pa.RecordBatch]
    monitor: bytes

    def saved(self) -> bytes:
        """As bytes."""
        head = json.dumps([self.before, self.first, self.since, self.points, self.keeps]).encode()
        events = (as_bytes(each[0]) if each else b"" for each in (self.held, self.past))
        return joined([head, *events, self.monitor])

    @classmethod
    def of(cls, saved: bytes) -> _State:
        """From bytes."""
        head, held, past, monitor = unjoined(saved)
        before, first, since, points, keeps = json.loads(head)
        lately = from_bytes(past) if past else []
        return cls(before, first, since, points, keeps, from_bytes(held) if held else [], lately, monitor)


@dataclass(frozen=True)
class Recut:
    """Cells that are cut anew.

    Attributes
    ----------
    shares : object
        By what, as JSON.
    states : list of bytes
    loads : dict of int to int
        How many of the events that are kept each cell has now.
    """

    shares: Any
    states: list[bytes]
    loads: dict[int, int]


def recut(work: TimedWork, saved: Sequence[bytes | None]) -> Recut | None:
    """Cut the events that cells keep by what they are now; each cell begins anew with its own.

    None where that cannot be: some cell has not begun, or not kept what is needed for as long.
    """
    parts = [_parted(each) for each in saved if each is not None]
    states = [_State.of(kept) for _, kept in parts]
    one = states[0] if states else None
    if work.reach is None or one is None or one.before is None or len(states) < len(saved):
        return None
    mark = one.before - work.lateness
    if any(not each.keeps or (each.since is not None and each.since > mark - work.reach) for each in states):
        return None
    if any((each.before, each.points) != (one.before, one.points) for each in states):
        return None
    events = _gathered(work, states)
    if events is None:
        return None
    shares, fresh = work.recut(events.select(events.schema.names[len(_HEAD) :]))
    made, loads = [], dict[int, int]()
    for cell, part in enumerate(fresh.parts(events)):
        cut = int(np.searchsorted(part.column(0).to_numpy(), mark)) if one.points else 0
        held, past = [part.slice(cut)] if cut < part.num_rows else [], [part.slice(0, cut)] if cut else []
        loads[cell] = int(np.count_nonzero(part.column(2).to_numpy() != STEP))
        state = _State(one.before, one.first, one.since, one.points, True, held, past, b"")
        made.append(joined([parts[cell][0].described(), state.saved()]))
    return Recut(shares, made, loads)


def _gathered(work: TimedWork, states: Sequence[_State]) -> pa.RecordBatch | None:
    """All events that cells keep, each once, and one of each time at which no cell needs any; in the order of time."""
    mine: list[pa.RecordBatch] = []
    for place, state in enumerate(states):
        for batch in (*state.past, *state.held):
            parts = batch.column(2).to_numpy()
            mine.append(batch.filter(pa.array((parts == MINE) | ((parts == STEP) & (place == 0)))))
    events = whole(mine)
    if events is None:
        return None
    ticks, orders = work.times(events.select(events.schema.names[len(_HEAD) :]))
    is_step = events.column(2).to_numpy() == STEP
    order = np.lexsort((is_step, ticks) if orders is None else (is_step, orders, ticks))
    same = ticks[order][1:] == ticks[order][:-1]
    if orders is not None:
        same &= orders[order][1:] == orders[order][:-1]
    needed = ~is_step[order]
    needed[1:] |= ~same  # the first of its time stands for it; a step behind an event does not
    needed[:1] = True
    return events.take(pa.array(order[needed]))


def whole(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch | None:
    """Batches as one, None where there is no row."""
    found = [batch for batch in batches if batch.num_rows]
    if len(found) < 2:
        return found[0] if found else None
    return pa.Table.from_batches(found).combine_chunks().to_batches()[0]


def as_read(events: pa.RecordBatch) -> pa.RecordBatch:
    """Packed events in the order in which tasks have read them."""
    return events.take(pa.array(np.argsort(events.column(1).to_numpy(), kind="stable")))


def in_order(work: TimedWork, events: pa.RecordBatch) -> pa.RecordBatch:
    """Packed events by time; what came earlier comes first where times are equal."""
    ticks, data, _ = given(events)
    orders = work.times(data)[1]
    places = np.lexsort((ticks,) if orders is None else (orders, ticks))
    return events if (places[1:] > places[:-1]).all() else events.take(pa.array(places))


def given(events: pa.RecordBatch) -> tuple[Int64Array, pa.RecordBatch, npt.NDArray[np.bool_]]:
    """Packed events as a monitor takes them (`Submonitor.push`)."""
    steps = events.column(2).to_numpy() == STEP
    return events.column(0).to_numpy(), events.select(events.schema.names[len(_HEAD) :]), steps
