"""Time zones: when their clocks change, and which windows have an answer in a zone whose clocks do.

Only times from 1970 on and before 2200 have a place in a zone: before, the tables of the world's zones are no more than
guesses, and after that nobody knows the rules.

Source: the IANA time zone database, as Python's `zoneinfo` has it.
"""

from __future__ import annotations

import datetime
import zoneinfo
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from hamlet.errors import OptionError, near_miss

DAY, WEEK = 86_400, 604_800
FIRST, BEYOND = 0, 7_258_118_400  # seconds from 1970: the first that has a place in a zone, and 2200, which has none
MONDAY = 4 * DAY  # 1970 began on a Thursday
_EARLIEST = -2_208_988_800  # 1900: windows that hold 1970 begin earlier
_STEP = 3 * DAY  # between two looks at a clock: no clock has changed and changed back within less than four days


@dataclass(frozen=True)
class Zone:
    """The clock of a place.

    Attributes
    ----------
    name : str
    since : tuple of int
        Seconds from 1970, ascending: when each stretch of constant offset begins.
    offsets : tuple of int
        By stretch, the seconds that the clock is ahead of UTC.
    """

    name: str
    since: tuple[int, ...]
    offsets: tuple[int, ...]

    @property
    def offsets_now(self) -> tuple[int, ...]:
        """The offsets of all times that have a place in the zone, ascending."""
        ends = (*self.since[1:], BEYOND)
        return tuple(sorted({each for each, end in zip(self.offsets, ends, strict=True) if end > FIRST}))

    def keeps(self, slide: Fraction) -> bool:
        """Whether a change of the clock moves no window that begins at every multiple of so many seconds."""
        first, *others = self.offsets_now
        return all((each - first) % slide == 0 for each in others)

    def is_calendar(self, within: Fraction, slide: Fraction) -> bool:
        """Whether windows are ranges of the clock's readings, and so of different lengths where the clock changes.

        The others keep their length.

        Raises
        ------
        ValueError
            Windows that would begin at other readings from day to day.
        """
        if len(self.offsets_now) == 1:
            return False
        if within % DAY != 0 and self.keeps(slide):
            return False
        if slide % DAY != 0 and DAY % slide != 0:
            raise ValueError
        return True


@lru_cache(maxsize=64)
def zone_of(name: str) -> Zone:
    """A time zone by its name, such as ``Europe/Berlin``.

    Raises
    ------
    OptionError
        There is none of the name.
    """
    if not isinstance(name, str):
        raise OptionError(f"timezone is {name!r}; it must be the name of a time zone, such as 'Europe/Berlin'")
    try:
        info = zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = zoneinfo.available_timezones()
        if not known:
            raise OptionError("this machine has no table of time zones; install the package tzdata") from None
        meant = near_miss(name, sorted(known))
        hint = f"did you mean {meant!r}?" if meant else "names are such as 'Europe/Berlin' or 'UTC'"
        raise OptionError(f"there is no time zone {name!r}; {hint}") from None
    since, offsets = [_EARLIEST], [_offset(info, _EARLIEST)]
    for start in range(_EARLIEST, BEYOND, _STEP):
        for change in _changes(info, start, start + _STEP):
            since.append(change)
            offsets.append(_offset(info, change))
    return Zone(name, tuple(since), tuple(offsets))


def _changes(info: zoneinfo.ZoneInfo, low: int, high: int) -> list[int]:
    """When the clock changes, after `low` and not after `high`."""
    if _offset(info, low) == _offset(info, high):
        return []
    if high - low == 1:
        return [high]
    middle = (low + high) // 2
    return _changes(info, low, middle) + _changes(info, middle, high)


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def _offset(info: zoneinfo.ZoneInfo, seconds: int) -> int:
    """How many seconds the clock is ahead of UTC at a time."""
    found = (_EPOCH + datetime.timedelta(seconds=seconds)).astimezone(info).utcoffset()
    assert found is not None, "a time zone has an offset at every time"
    return found // datetime.timedelta(seconds=1)
