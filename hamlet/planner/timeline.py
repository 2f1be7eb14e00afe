"""The line of time on which the windows of a query begin at the multiples of its slide.

Operators know windows of one length that begin at ``k * slide``. Where the text says otherwise (OFFSET), or a time zone
does, the times of events are moved on the way into an operator, and the edges of windows are moved back on the way out:

- `Shifted` subtracts a constant. Differences of times stay what they are.
- `Calendar` lays the clock of a zone out in periods, such as days, and gives each of them the room of the longest one:
  a day of 23 hours is followed by two hours at which nothing can happen. Differences of times within a period stay what
  they are; others do not.

Both keep the order of times, and equal times equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from hamlet.errors import DataError
from hamlet.input.columns import Int64Array
from hamlet.input.ticks import refuse_outside
from hamlet.language.query import Query
from hamlet.language.schema import MOST_TICKS, NO_TIME, Clock
from hamlet.language.zones import BEYOND, FIRST, MONDAY, WEEK, Zone, zone_of

_MIDDLE = 1_577_836_800  # 2020 in seconds: the middle of a calendar, so that fine ticks reach far on both sides


@dataclass(frozen=True)
class Shifted:
    """The line that begins at a time.

    Attributes
    ----------
    origin : int
        Ticks: a time at which a window begins.
    """

    origin: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether times are on the line as they are."""
        return self.origin == 0

    @property
    def grain(self) -> int:
        """Ticks: together with the pane, a divisor of all times at which windows begin or end; 0 has all divisors."""
        return self.origin

    def places(self, times: Int64Array) -> Int64Array:
        """Where times are on the line, int64 of the same shape."""
        return times - self.origin if self.origin else times

    def place(self, time: int) -> int:
        """Where a time is on the line; what is beyond all times stays beyond."""
        return time - self.origin if -MOST_TICKS <= time <= MOST_TICKS else time

    def times(self, places: Int64Array) -> Int64Array:
        """The times of edges of windows, int64 of the same shape."""
        return places + self.origin if self.origin else places


@dataclass(frozen=True)
class Calendar:
    """A line of periods of a clock that is changed now and then, each with the room of the longest one.

    Attributes
    ----------
    clock : Clock
        The time column, and the time zone.
    period : int
        Ticks that a period has on the clock.
    origin : int
        Ticks: a reading of the clock, counted from 1970, at which a window begins.
    first : int
        The period, counted from `origin`, that is at 0 on the line.
    apart : bool
        Whether times stay what they are, and only windows are on the line: for queries that measure how long trends
        last. Their operator is given the `table`.

    Notes
    -----
    A period begins at the first time at which the clock shows its beginning or more: where the clock is put forward
    over it, at that moment; where it is shown twice, at the first one.
    """

    clock: Clock
    period: int
    origin: int
    first: int
    apart: bool = False

    is_plain = False

    @property
    def _zone(self) -> str:
        assert self.clock.zone is not None, "a calendar is made of a zone"
        return self.clock.zone

    @property
    def room(self) -> int:
        """Ticks that a period has on the line: no period is longer."""
        offsets = zone_of(self._zone).offsets
        return self.period + (max(offsets) - min(offsets)) * self.clock.ticks_per_second

    @property
    def grain(self) -> int:
        """Ticks: a divisor of all times at which windows begin or end."""
        zone = zone_of(self._zone)
        return gcd(
            self.period,
            self.origin,
            *(each * self.clock.ticks_per_second for each in (*zone.offsets_now, *_changes(zone))),
        )

    @property
    def table(self) -> tuple[Int64Array, Int64Array, Int64Array, int, int, int]:
        """What an operator needs to know to find the period of a time: `_table`, then period, origin and first."""
        return *_table(self._zone, self.clock.ticks_per_second), self.period, self.origin, self.first

    def places(self, times: Int64Array) -> Int64Array:
        """Where times are on the line, int64 of the same shape.

        Raises
        ------
        DataError
            Times that have no place in the zone, or none within 2^61 ticks.
        """
        if not len(times):
            return times
        refuse_outside(self.clock, int(times.min()), int(times.max()))
        since, offsets, shown = _table(self._zone, self.clock.ticks_per_second)
        stretch = np.searchsorted(since, times, side="right") - 1
        read = np.maximum(times + offsets[stretch], shown[stretch] - 1)  # the most that the clock has shown
        number = (read - self.origin) // self.period
        passed = times - self._begins(number)
        number -= self.first
        if max(-int(number.min()), int(number.max())) >= MOST_TICKS // self.room:
            raise DataError(
                f"a time has no place in a calendar of {self._zone} that has so short windows\n"
                "hint: use a coarser unit of time, such as microseconds in place of nanoseconds, or longer windows"
            )
        found: Int64Array = times if self.apart else number * self.room + passed
        return found

    def place(self, time: int) -> int:
        """Where a time is on the line; what is beyond all times that have a place is beyond all that have one there."""
        if self.apart or not -MOST_TICKS <= time <= MOST_TICKS:
            return time
        try:
            return int(self.places(np.array([time], np.int64))[0])
        except DataError:
            return MOST_TICKS if time > _MIDDLE * self.clock.ticks_per_second else -MOST_TICKS

    def times(self, places: Int64Array) -> Int64Array:
        """The times of edges of windows, int64 of the same shape."""
        return self._begins(places // self.room + self.first)

    def _begins(self, numbers: Int64Array) -> Int64Array:
        """When periods begin: the first time at which the clock shows so much or more."""
        since, offsets, shown = _table(self._zone, self.clock.ticks_per_second)
        wanted = numbers * self.period + self.origin
        stretch = np.searchsorted(shown[1:], wanted, side="right")
        found: Int64Array = np.maximum(since[stretch], wanted - offsets[stretch])
        return found


@dataclass(frozen=True)
class Everything:
    """The line of one window over everything (WITHIN ALL), which has no edges: all times lie in window 0."""

    is_plain = False
    grain = MOST_TICKS
    length = 2 * MOST_TICKS + 1

    def places(self, times: Int64Array) -> Int64Array:
        """Where times are on the line, int64 of the same shape."""
        return times + MOST_TICKS

    def place(self, time: int) -> int:
        """Where a time is on the line; what is beyond all times stays beyond."""
        return time + MOST_TICKS if -MOST_TICKS <= time <= MOST_TICKS else time

    def times(self, places: Int64Array) -> Int64Array:
        """The edges of the window, of which there are none."""
        return np.full_like(places, NO_TIME)


Line = Shifted | Calendar | Everything


def _changes(zone: Zone) -> tuple[int, ...]:
    """The changes of a clock that matter to times which have a place in its zone."""
    return tuple(each for each in zone.since if FIRST <= each < BEYOND)


@lru_cache(maxsize=64)
def _table(name: str, per_second: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    """A zone in ticks: when its stretches begin, their offsets, and what the clock has shown less than before each.

    The last is ascending: the clock has shown all readings below it, and none from it on.
    """
    zone = zone_of(name)
    since = np.array(zone.since, np.int64) * per_second
    offsets = np.array(zone.offsets, np.int64) * per_second
    ends = np.maximum.accumulate(since[1:] + offsets[:-1])
    return since, offsets, np.append(np.int64(-(1 << 62)), ends)


def line_of(query: Query, clock: Clock) -> tuple[Line, int, int]:
    """The line of a query's windows, and their length and slide on it, in ticks.

    The check has refused windows that have none (`hamlet.language.typecheck`). Sessions begin and end with their
    events: their line is that of time.
    """
    per_second = clock.ticks_per_second
    if query.within is None:
        return Everything(), Everything.length, Everything.length
    within = query.within.ticks(per_second)[0]
    if query.session:
        return Shifted(), within, 1
    slide = within if query.slide is None else query.slide.ticks(per_second)[0]
    if clock.zone is None:
        return Shifted(0 if query.offset is None else query.offset.ticks(per_second)[0] % slide), within, slide
    zone = zone_of(clock.zone)
    if query.offset is not None:
        origin = query.offset.ticks(per_second)[0] % slide
    else:
        origin = MONDAY * per_second if slide % (WEEK * per_second) == 0 else 0
    if not zone.is_calendar(query.within.seconds, (query.slide or query.within).seconds):
        return Shifted((origin - zone.offsets_now[0] * per_second) % slide), within, slide
    period = gcd(within, slide)
    first = (_MIDDLE * per_second - origin) // slide * (slide // period)
    line = Calendar(clock, period, origin, first, apart=query.longest is not None)
    return line, within // period * line.room, slide // period * line.room


def pane_of(line: Line, lengths: list[tuple[int, int]]) -> int:
    """Ticks between times at which windows of some lengths on a line may begin or end."""
    if isinstance(line, (Calendar, Everything)):
        return line.grain
    return gcd(line.grain, *(length for window in lengths for length in window))


__all__ = ["Calendar", "Everything", "Line", "Shifted", "line_of", "pane_of"]
