"""Events that come out of order: held until no earlier one can come, refused or left out where they are too late.

An event is late where its time is before the largest time seen so far minus the lateness, or before a time that the
user has promised (`ReorderBuffer.promise`). Each event is judged by those before it: batches make no difference.
Source: docs/numbers.md ("Time and order").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import LateError
from hamlet.input.columns import Int64Array
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import Lateness, seconds_of, ticks_of
from hamlet.input.widening import in_batches, joined
from hamlet.kernel.radix_sort import ascending
from hamlet.language.schema import Clock
from hamlet.output.time_text import time_text
from hamlet.runtime.options import check_choice

_TABLE_BYTES, _COLUMN_BYTES = 4500, 250  # of a table and of a column, beside the values; measured


@dataclass(frozen=True)
class Place:
    """How far a stream has come.

    Attributes
    ----------
    events, late_events : int
        As of `ReorderBuffer`.
    seen, promised : int or None
        The largest time seen, and the time before which no event will come; ticks.
    held : pyarrow.Table or None
        Events that are held, in no order.
    """

    events: int
    late_events: int
    seen: int | None
    promised: int | None
    held: pa.Table | None


@dataclass(slots=True)
class _Held:
    """Events of one batch; where the batch is in order, their keys.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
    times : int64 array of shape (rows,)
    last_order : int or None
        The order of the last event.
    nbytes : int
        Bytes, an estimate; 0 where nobody asks.
    """

    batch: pa.RecordBatch
    times: Int64Array
    last_order: int | None
    nbytes: int


class ReorderBuffer:
    """Holds events until their time step is over.

    Parameters
    ----------
    key : SortKey
        The time and the order column.
    lateness : int, float, str or datetime.timedelta
        How far behind the largest time seen an event may be: ticks of the time column, or a duration (``'5 s'``).
    late : {'error', 'drop'}
        What becomes of later events.
    counted : bool
        Whether somebody asks for `nbytes`.

    Attributes
    ----------
    events : int
        Events seen, late ones too.
    late_events : int
        Events left out.
    nbytes : int
        Bytes of the held events, an estimate; 0 unless counted.
    """

    def __init__(self, key: SortKey, lateness: Lateness = 0, late: str = "error", *, counted: bool = False) -> None:
        check_choice("late", late)
        seconds_of(lateness)
        self.events = 0
        self.late_events = 0
        self.nbytes = 0
        self._key = key
        self._lateness = lateness
        self._counted = counted
        self._ticks = 0  # the lateness, by a clock
        self._clock: Clock | None = None
        self._late = late
        self._seen: int | None = None  # the largest time seen
        self._promised: int | None = None  # no event before this time will come
        self._ordered: deque[_Held] = deque()  # held events in order, batch after batch
        self._fresh: list[_Held] = []  # others, as they came
        self._earliest: int | None = None  # the first time of those

    @property
    def seen(self) -> int | None:
        """The largest time seen, in ticks."""
        return self._seen

    # ------------------------------------------------------------------------------------------ what comes in

    def judge(self, times: Int64Array, clock: Clock, promised: int | None = None) -> npt.NDArray[np.bool_] | None:
        """Which events are in time; nothing is taken yet.

        Parameters
        ----------
        times : int64 array of shape (n,)
            In the order of arrival; n >= 1.
        clock : Clock
        promised : int, optional
            A time before which no event will come, in ticks, beside the one that was promised here.

        Returns
        -------
        bool array of shape (n,), or None
            None where all are.

        Raises
        ------
        DataError
            If one is late, and late events are errors.
        """
        ticks = self._ticks if clock is self._clock else ticks_of(self._lateness, clock)
        first = int(times[0])
        earliest = first if self._seen is None else self._seen - ticks
        if promised is None or (self._promised is not None and self._promised > promised):
            promised = self._promised
        if promised is not None:
            earliest = max(earliest, promised)
        if first >= earliest and ascending(times):
            return None
        largest = np.maximum.accumulate(times)
        if self._seen is not None:
            largest = np.maximum(largest, self._seen)
        before = np.concatenate([[first if self._seen is None else self._seen], largest[:-1]])
        bound = before - ticks
        if promised is not None:
            bound = np.maximum(bound, promised)
        fresh: npt.NDArray[np.bool_] = times >= bound
        if self._late == "error" and not fresh.all():
            place = int(np.argmin(fresh))
            time, expected = (time_text(int(each[place]), clock) for each in (times, bound))
            raise late_error(self.events + place + 1, time, expected, self._key.time)
        return None if fresh.all() else fresh

    def take(self, batch: pa.RecordBatch, times: Int64Array, orders: Int64Array | None, clock: Clock) -> None:
        """Hold events that `judge` has found to be in time, in the order of arrival."""
        if clock is not self._clock:
            self._clock, self._ticks = clock, ticks_of(self._lateness, clock)
        self.events += len(times)
        if len(times):
            self._hold(batch, times, orders)

    def note(self, seen: int, events: int) -> None:
        """Count events that somebody else holds, and the largest time seen with them."""
        self.events += events
        self._seen = seen

    def hold(self, batch: pa.RecordBatch) -> None:
        """Hold events that are counted already."""
        if batch.num_rows:
            seen = self._seen
            self._hold(batch, *self._key.columns_of(batch))
            self._seen = seen

    def leave_out(self, events: int) -> None:
        """Count events that are late."""
        self.events += events
        self.late_events += events

    def _hold(self, batch: pa.RecordBatch, times: Int64Array, orders: Int64Array | None) -> None:
        nbytes = _bytes_of(batch) if self._counted else 0
        self.nbytes += nbytes
        held = _Held(batch, times, None if orders is None else int(orders[-1]), nbytes)
        in_order = ascending(times, orders)
        first, last = (int(times[0]), int(times[-1])) if in_order else (int(times.min()), int(times.max()))
        self._seen = last if self._seen is None else max(last, self._seen)
        if in_order and not self._fresh and self._follows(first, orders):
            self._ordered.append(held)
        else:
            self._fresh.append(held)
            self._earliest = first if self._earliest is None else min(first, self._earliest)

    def _follows(self, first: int, orders: Int64Array | None) -> bool:
        """Whether events in order from a time on come after all that are held in order."""
        if not self._ordered:
            return True
        last, last_order = int(self._ordered[-1].times[-1]), self._ordered[-1].last_order
        if orders is None or last_order is None:
            return first >= last
        return (first, int(orders[0])) >= (last, last_order)

    def promise(self, ticks: int) -> None:
        """No event before this time will come."""
        self._promised = ticks if self._promised is None else max(ticks, self._promised)

    # -------------------------------------------------------------------------------------------------- saving

    @property
    def options(self) -> dict[str, Any]:
        """Lateness, and what becomes of late events."""
        return {"lateness": self._lateness, "late": self._late}

    def place(self) -> Place:
        """How far the stream has come."""
        held = _joined([*self._ordered, *self._fresh])
        return Place(self.events, self.late_events, self._seen, self._promised, held)

    def load(self, place: Place, clock: Clock | None) -> None:
        """Go on from a place, at the beginning; `clock` is known once an event has come."""
        self.events, self.late_events = place.events, place.late_events
        self._promised = place.promised
        if clock is not None:
            self._clock, self._ticks = clock, ticks_of(self._lateness, clock)
        self._seen = place.seen
        for batch in [] if place.held is None else place.held.combine_chunks().to_batches():
            self.hold(batch)

    # ----------------------------------------------------------------------------------------- what goes out

    @property
    def is_empty(self) -> bool:
        """Whether no event is held."""
        return not self._ordered and not self._fresh

    def held(self) -> tuple[int, int]:
        """How many events are held, and their bytes, an estimate."""
        parts = (*self._ordered, *self._fresh)
        return sum(len(each.times) for each in parts), sum(_bytes_of(each.batch) for each in parts)

    @property
    def watermark(self) -> int | None:
        """No event before this time will come, as far as is known."""
        seen = None if self._seen is None else self._seen - self._ticks
        if seen is None or self._promised is None:
            return self._promised if seen is None else seen
        return max(seen, self._promised)

    def release(self, watermark: int) -> list[pa.RecordBatch]:
        """The held events before a time, in (time, order) order; each time step is whole in a batch."""
        if self._earliest is not None and self._earliest < watermark:
            self._merge()
        ready: list[_Held] = []
        while self._ordered and int(self._ordered[0].times[0]) < watermark:
            held = self._ordered[0]
            if int(held.times[-1]) < watermark:
                ready.append(self._ordered.popleft())
                self.nbytes -= held.nbytes
                continue
            cut = int(np.searchsorted(held.times, watermark))
            ready.append(_Held(held.batch.slice(0, cut), held.times[:cut], None, 0))
            held.batch, held.times = held.batch.slice(cut), held.times[cut:]
        if len(ready) < 2:
            return [held.batch for held in ready]
        table = _joined(ready)
        assert table is not None
        return in_batches(table)

    def _merge(self) -> None:
        """Sort what has come lately into what is held."""
        table = _joined([*self._ordered, *self._fresh])
        assert table is not None
        times, orders = self._key.columns_of(table)
        places = np.lexsort((times,) if orders is None else (orders, times))
        if not (places[1:] > places[:-1]).all():
            table = table.take(pa.array(places))
        self._ordered.clear()
        self._fresh, self._earliest, self.nbytes = [], None, 0
        seen = self._seen
        for batch in table.combine_chunks().to_batches():
            self._hold(batch, *self._key.columns_of(batch))
        self._seen = seen


def late_error(row: int, time: str, expected: str, column: str) -> LateError:
    """The error at an event that is late.

    Parameters
    ----------
    row : int
        Its number among all that came, from 1.
    time, expected : str
        Its time, and the one before which no event is expected.
    column : str
        Of its time.
    """
    error = LateError(
        f"event {row} is late: its time is {time}, and no event before {expected} is expected any more; nothing of "
        "this push was taken\nhint: give a lateness (lateness='5 s'), or late='drop' to count and leave such events out"
    )
    error.about(row=row, column=column)
    return error


def bytes_of_parts(parts: Iterable[pa.RecordBatch]) -> int:
    """Bytes that batches take, an estimate."""
    return sum(_bytes_of(each) for each in parts)


def _bytes_of(batch: pa.RecordBatch) -> int:
    size: int = batch.nbytes + _TABLE_BYTES + _COLUMN_BYTES * batch.num_columns
    return size


def _joined(parts: Sequence[_Held]) -> pa.Table | None:
    """Held events as one table, none where there are none."""
    return joined([pa.Table.from_batches([held.batch]) for held in parts]) if parts else None
