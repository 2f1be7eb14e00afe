"""Windows by the clock of a time zone (docs/numbers.md, "Days and weeks"), for the checker; in seconds from 1970."""

from __future__ import annotations

import datetime
import zoneinfo
from functools import lru_cache

_DAY = 86_400
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_BEYOND = 7_258_118_400  # 2200


def _reading(zone: str, second: int) -> int:
    """What the clock shows at a time."""
    shown = (_EPOCH + datetime.timedelta(seconds=second)).astimezone(zoneinfo.ZoneInfo(zone))
    ahead = shown.utcoffset()
    return second + (0 if ahead is None else ahead // datetime.timedelta(seconds=1))


@lru_cache(maxsize=100)
def _ahead(zone: str) -> frozenset[int]:
    """How far the clock is ahead of UTC at any time."""
    return frozenset(_reading(zone, second) - second for second in range(0, _BEYOND, 3 * _DAY))


def _first(zone: str, shown: int) -> int:
    """When the clock first shows a reading or a later one."""
    second = shown - max(_ahead(zone))
    while _reading(zone, second) < shown:
        second += 60
    while _reading(zone, second - 1) >= shown:
        second -= 1
    return second


def is_window(zone: str, start: int, end: int, width: int, slide: int, offset: int | None) -> bool:
    """Whether a window reaches from one time to another."""
    ahead = _ahead(zone)
    if offset is None:
        offset = 4 * _DAY if slide % (7 * _DAY) == 0 else 0  # 1970 began on a Thursday
    moved = any((each - min(ahead)) % slide for each in ahead)
    if len(ahead) == 1 or (width % _DAY and not moved):
        return end - start == width and (start + min(ahead) - offset) % slide == 0
    shown = _reading(zone, start)
    shown -= (shown - offset) % slide
    while shown > start + min(ahead) - slide:
        if (_first(zone, shown), _first(zone, shown + width)) == (start, end):
            return True
        shown -= slide
    return False
