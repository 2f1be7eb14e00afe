"""Windows by the clock of a time zone, found by looking at the clock minute by minute."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Iterator
from functools import lru_cache

_DAY = 86_400
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def reading(zone: str, second: int) -> int:
    """What the clock of a zone shows at a time, both in seconds from 1970."""
    shown = (_EPOCH + datetime.timedelta(seconds=second)).astimezone(zoneinfo.ZoneInfo(zone))
    return round((shown.replace(tzinfo=datetime.UTC) - _EPOCH).total_seconds())


@lru_cache(maxsize=100_000)
def first_time(zone: str, shown: int) -> int:
    """The first time at which the clock shows so much or more, in seconds from 1970.

    The offset of no clock is beyond 16 hours, and clocks change at whole minutes.
    """
    minute = (shown - 16 * 3600) // 60 * 60
    while reading(zone, minute) < shown:
        minute += 60
    return next(second for second in range(minute - 59, minute + 1) if reading(zone, second) >= shown)


@lru_cache(maxsize=100)
def offsets(zone: str) -> frozenset[int]:
    """How far the clock of a zone is ahead of UTC, at any time from 1970 to 2199, in seconds."""
    return frozenset(reading(zone, second) - second for second in range(0, 7_258_118_400, 3 * _DAY))


def windows_in(
    zone: str, width: int, slide: int, offset: int | None, first: int, last: int
) -> Iterator[tuple[int, int]]:
    """All windows that may hold a time from `first` to `last`, in order; all in seconds from 1970.

    A window reaches from one reading of the clock to another one. Windows that are no days, and begin at readings that
    no change of the clock moves, keep their length instead.
    """
    ahead = offsets(zone)
    if offset is None:
        offset = 4 * _DAY if slide % (7 * _DAY) == 0 else 0
    keeps = all((each - min(ahead)) % slide == 0 for each in ahead)
    for k in range((first - width) // slide - 2 * _DAY // slide - 2, (last + 2 * _DAY) // slide + 2):
        start = k * slide + offset % slide
        if len(ahead) == 1 or (keeps and width % _DAY):
            yield start - min(ahead), start - min(ahead) + width
        else:
            yield first_time(zone, start), first_time(zone, start + width)
