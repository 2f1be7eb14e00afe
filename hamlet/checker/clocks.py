"""Times for the checker: windows by the clock of a zone (docs/numbers.md, "Days and weeks"), and times as written."""

from __future__ import annotations

import datetime
import zoneinfo
from fractions import Fraction
from functools import lru_cache
from typing import Any

from hamlet.input.moments import moment

_DAY = 86_400
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_BEYOND = 7_258_118_400  # 2200


def same_time(told: Any, right: Any) -> bool:
    """Whether a time is the one that it should be, however it is written: with Z for +00:00, with a fraction of 0."""
    if isinstance(told, str) and isinstance(right, str) and told != right:
        one, two = map(_instant, (told, right))
        return one is not None and one == two
    return bool(told == right) and not isinstance(told, bool)


def _instant(text: str) -> tuple[Fraction, bool] | None:
    """A timestamp in microseconds, and whether it has a zone; None for a text that is none."""
    found = moment(text)
    if found is None:
        return None
    return Fraction(found.value, 1000 if found.type.unit == "ns" else 1), found.type.tz is not None


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
