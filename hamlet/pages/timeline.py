"""The axis of time of a page: where its numbers become dates, and bins of round lengths."""

from __future__ import annotations

import datetime
from fractions import Fraction
from typing import Any

from hamlet.language.schema import Clock

# Lengths of bins in seconds; each is a multiple of the one before, so that bins can be joined.
LENGTHS = (
    *(Fraction(1, 10**digits) for digits in (9, 8, 7, 6, 5, 4, 3, 2, 1)),
    *map(Fraction, (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 604_800)),
    *(Fraction(604_800 * 4**power) for power in range(1, 20)),
)
# Whole seconds from 1973 to 2128: integers of a clock in between are taken for Unix times.
_DATES = (10**8, 5 * 10**9)


def axis(clock: Clock, first: int, last: int) -> dict[str, Any]:
    """How a page shows the clock's ticks.

    Parameters
    ----------
    clock : Clock
    first, last : int
        Ticks between which the axis lies.

    Returns
    -------
    dict
        ``dates``: whether ticks are shown as dates; ``perSecond``: ticks in a second; ``unit`` and ``zone``: for the
        caption.
    """
    seconds = clock.ticks_per_second
    dates = clock.is_timestamp or (_DATES[0] * seconds <= first and last <= _DATES[1] * seconds)
    zone = "UTC" if clock.is_timestamp and clock.type.tz is not None else ""
    return {"dates": dates, "perSecond": seconds, "unit": clock.unit, "zone": zone, "column": clock.column}


def tick_text(ticks: int, axis: dict[str, Any]) -> str:
    """A tick as people read it, as the page's script writes it too.

    Examples
    --------
    >>> dates = {"dates": True, "perSecond": 1000, "unit": "ms"}
    >>> tick_text(1_357_034_400_000, dates), tick_text(1_357_034_401_250, dates)
    ('2013-01-01 10:00', '2013-01-01 10:00:01.250')
    >>> tick_text(2_500, {"dates": False, "perSecond": 1, "unit": "s"})
    '2 500 s'
    """
    if not axis["dates"]:
        return f"{ticks:,}".replace(",", " ") + f" {axis['unit']}"
    seconds, rest = divmod(ticks, axis["perSecond"])
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    text = f"{moment:%Y-%m-%d %H:%M}" + (f":{moment:%S}" if moment.second or rest else "")
    share = rest / axis["perSecond"]
    return text + (f"{share:.3f}"[1:] if share > 5e-4 else "")


class Bins:
    """Bins of time that cover all times seen so far; they grow longer so that their number stays bounded.

    Parameters
    ----------
    clock : Clock
    most : int
        How many bins there may be.

    Attributes
    ----------
    length : int
        Of a bin, in ticks; bins begin at multiples of it.
    first, last : int
        Numbers of the first and the last bin.
    """

    def __init__(self, clock: Clock, most: int) -> None:
        per_second = clock.ticks_per_second
        self._lengths = [int(each * per_second) for each in LENGTHS if (each * per_second).denominator == 1]
        self._most = most
        self.length = self._lengths.pop(0)
        self.first, self.last = 0, -1

    @property
    def count(self) -> int:
        """How many bins there are."""
        return self.last - self.first + 1

    def cover(self, low: int, high: int) -> int:
        """Cover the times from `low` to `high` too; gives the number of former bins that make one."""
        if self.count:
            low, high = min(low, self.first * self.length), max(high, self.last * self.length)
        before = self.length
        while high // self.length - low // self.length >= self._most:
            self.length = self._lengths.pop(0)
        self.first, self.last = low // self.length, high // self.length
        return self.length // before

    def merge(self, other: Bins) -> tuple[int, int]:
        """Cover the times of other bins of the same clock; gives how many former bins of each make one."""
        before = self.length
        while self.length < other.length:
            self.lengthen()
        if other.count:
            self.cover(other.first * other.length, other.last * other.length)
        return self.length // before, self.length // other.length

    def lengthen(self) -> int:
        """Make the bins one step longer; gives the number of former bins that make one."""
        low, high, before = self.first * self.length, self.last * self.length, self.length
        self.length = self._lengths.pop(0)
        self.first, self.last = low // self.length, high // self.length
        return self.length // before
