"""Events that come out of order: held until no earlier one can come, refused or left out where they are too late.

An event is late where its time is before the largest time seen so far minus the lateness, or before a time that the
user has promised (`Disorder.promise`). Each event is judged by those before it, so that batches make no difference.
Source: DESIGN §5 ("Engine time"); LANGUAGE.md §2.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.columns import Int64Array
from hamlet.errors import DataError, OptionError
from hamlet.input.ordering import SortKey
from hamlet.input.widening import joined
from hamlet.output.result import time_text
from hamlet.query import SECONDS
from hamlet.schema import Clock

MOST_TICKS = 1 << 61  # of a time; beyond it, window edges could pass 64 bits

_TABLE_BYTES, _COLUMN_BYTES = 4500, 250  # of a table and of a column, beside the values; measured

Lateness = int | float | str | datetime.timedelta

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|seconds?|min|minutes?|h|hours?|d|days?)\s*", re.IGNORECASE)


def seconds_of(lateness: Lateness) -> Fraction | None:
    """A duration in seconds, or None for a number of ticks.

    Raises
    ------
    OptionError
        If it is neither.
    """
    if isinstance(lateness, str) and (match := _DURATION.fullmatch(lateness)):
        unit = next(name for name in ("ms", "min", "s", "h", "d") if match[2].lower().startswith(name))
        return Fraction(match[1]) * SECONDS[unit]
    if isinstance(lateness, datetime.timedelta) and lateness >= datetime.timedelta(0):
        return Fraction(lateness // datetime.timedelta(microseconds=1), 10**6)
    is_number = isinstance(lateness, (int, float, np.integer)) and not isinstance(lateness, bool)
    if is_number and 0 <= lateness < np.inf and lateness == int(lateness):  # type: ignore[arg-type, operator]
        return None
    raise OptionError(f"lateness is {lateness!r}; it must be a number of ticks >= 0 or a duration such as '5 s'")


def ticks_of(lateness: Lateness, clock: Clock) -> int:
    """The lateness in ticks of the time column, rounded up."""
    seconds = seconds_of(lateness)
    ticks = Fraction(int(lateness)) if seconds is None else seconds * clock.ticks_per_second  # type: ignore[arg-type]
    return min(-(-ticks.numerator // ticks.denominator), 2 * MOST_TICKS)


@dataclass(frozen=True)
class Place:
    """How far a stream has come.

    Attributes
    ----------
    events, late_events : int
        As of `Disorder`.
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


class Disorder:
    """Holds events until their time step is over.

    Parameters
    ----------
    key : SortKey
        The time and the order column.
    lateness : int, float, str or datetime.timedelta
        How far behind the largest time seen an event may be: ticks of the time column, or a duration (``'5 s'``).
    late : {'error', 'drop'}
        What becomes of later events.

    Attributes
    ----------
    events : int
        Events seen, late ones too.
    late_events : int
        Events left out.
    """

    def __init__(self, key: SortKey, lateness: Lateness = 0, late: str = "error") -> None:
        if late not in ("error", "drop"):
            raise OptionError(f"late is {late!r}; it must be 'error' or 'drop'")
        seconds_of(lateness)
        self.events = 0
        self.late_events = 0
        self._key = key
        self._lateness = lateness
        self._ticks = 0
        self._late = late
        self._seen: int | None = None  # the largest time seen
        self._promised: int | None = None  # no event before this time will come
        self._sorted: pa.Table | None = None  # held events in order, and their times
        self._times: Int64Array = np.zeros(0, np.int64)
        self._fresh: list[pa.Table] = []  # held events as they came
        self._earliest: int | None = None  # the first time of those
        self._fresh_bytes = 0

    # ------------------------------------------------------------------------------------------ what comes in

    def judge(self, times: Int64Array, clock: Clock) -> npt.NDArray[np.bool_]:
        """Which events are in time; nothing is taken yet.

        Parameters
        ----------
        times : int64 array of shape (n,)
            In the order of arrival; n >= 1.
        clock : Clock

        Raises
        ------
        DataError
            If one is late, and late events are errors.
        """
        largest = np.maximum.accumulate(times)
        if self._seen is not None:
            largest = np.maximum(largest, self._seen)
        before = np.concatenate([[times[0] if self._seen is None else self._seen], largest[:-1]])
        bound = before - ticks_of(self._lateness, clock)
        if self._promised is not None:
            bound = np.maximum(bound, self._promised)
        fresh: npt.NDArray[np.bool_] = times >= bound
        if self._late == "error" and not fresh.all():
            place = int(np.argmin(fresh))
            time, expected = (time_text(int(each[place]), clock) for each in (times, bound))
            raise DataError(
                f"event {self.events + place + 1} is late: its time is {time}, and no event before {expected} is "
                "expected any more; nothing of this push was taken\n"
                "hint: give the engine a lateness (lateness='5 s'), or late='drop' to count and leave such events out"
            )
        return fresh

    def take(self, table: pa.Table, times: Int64Array, fresh: npt.NDArray[np.bool_], clock: Clock) -> None:
        """Hold the events that `judge` has found to be in time."""
        self._ticks = ticks_of(self._lateness, clock)
        self.events += len(times)
        if not fresh.all():
            self.late_events += int(len(fresh) - fresh.sum())
            table, times = table.filter(pa.array(fresh)), times[fresh]
        if len(times) == 0:
            return
        first, last = int(times.min()), int(times.max())
        self._seen = last if self._seen is None else max(last, self._seen)
        self._hold(table, first)

    def _hold(self, table: pa.Table, first: int) -> None:
        self._earliest = first if self._earliest is None else min(first, self._earliest)
        self._fresh.append(table)
        self._fresh_bytes += table.nbytes + _TABLE_BYTES + _COLUMN_BYTES * table.num_columns

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
        parts = [*([] if self._sorted is None else [self._sorted]), *self._fresh]
        held = joined(parts) if parts else None
        return Place(self.events, self.late_events, self._seen, self._promised, held)

    def load(self, place: Place, clock: Clock | None) -> None:
        """Go on from a place, at the beginning; `clock` is known once an event has come."""
        self.events, self.late_events = place.events, place.late_events
        self._seen, self._promised = place.seen, place.promised
        if clock is not None:
            self._ticks = ticks_of(self._lateness, clock)
        if place.held is not None and place.held.num_rows:
            self._hold(place.held, int(self._key.columns_of(place.held)[0].min()))

    # ----------------------------------------------------------------------------------------- what goes out

    @property
    def watermark(self) -> int | None:
        """No event before this time will come, as far as is known."""
        bounds = [] if self._promised is None else [self._promised]
        if self._seen is not None:
            bounds.append(self._seen - self._ticks)
        return max(bounds, default=None)

    @property
    def nbytes(self) -> int:
        """Bytes of the held events, an estimate."""
        return self._fresh_bytes + self._times.nbytes + (0 if self._sorted is None else int(self._sorted.nbytes))

    def release(self, watermark: int) -> pa.Table | None:
        """The held events before a time, in (time, order) order; None where there are none."""
        if self._earliest is not None and self._earliest < watermark:
            self._merge()
        if self._sorted is None or int(self._times[0]) >= watermark:
            return None
        cut = int(np.searchsorted(self._times, watermark))
        ready, rest = self._sorted.slice(0, cut), self._sorted.slice(cut)
        self._sorted, self._times = (rest, self._times[cut:]) if rest.num_rows else (None, self._times[:0])
        return ready

    def _merge(self) -> None:
        """Sort what has come lately into what is held."""
        parts = [*([] if self._sorted is None else [self._sorted]), *self._fresh]
        table = joined(parts).combine_chunks()
        times, orders = self._key.columns_of(table)
        keys = (times,) if orders is None else (orders, times)
        places = np.lexsort(keys)
        if not (places[1:] > places[:-1]).all():
            table, times = table.take(pa.array(places)), times[places]
        self._sorted, self._times = table, times
        self._fresh, self._earliest, self._fresh_bytes = [], None, 0
