"""Times for the checker: windows by the clock of a zone (docs/numbers.md, "Days and weeks"), and times as written."""

from __future__ import annotations

import datetime
import zoneinfo
from collections.abc import Sequence
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


@lru_cache(maxsize=100_000)
def _edges(zone: str, shown: int, width: int) -> tuple[int, int]:
    return _first(zone, shown), _first(zone, shown + width)


def _shape(zone: str, width: int, slide: int, offset: int | None) -> tuple[int, int, bool]:
    """The least that a clock is ahead, from where windows are counted, and whether the clock's changes move them."""
    ahead = _ahead(zone)
    if offset is None:
        offset = 4 * _DAY if slide % (7 * _DAY) == 0 else 0  # 1970 began on a Thursday
    moved = any((each - min(ahead)) % slide for each in ahead)
    return min(ahead), offset, len(ahead) > 1 and (moved or width % _DAY == 0)


def is_window(zone: str, start: int, end: int, width: int, slide: int, offset: int | None) -> bool:
    """Whether a window reaches from one time to another."""
    least, offset, follows = _shape(zone, width, slide, offset)
    if not follows:
        return end - start == width and (start + least - offset) % slide == 0
    shown = _reading(zone, start)
    shown -= (shown - offset) % slide
    while shown > start + least - slide:
        if _edges(zone, shown, width) == (start, end):
            return True
        shown -= slide
    return False


def windows_of(
    zone: str | None, times: Sequence[int], width: int, slide: int, offset: int | None, second: int
) -> list[tuple[int, int]]:
    """The windows that hold some of the times; all of it in ticks, of which a second has some number."""
    found = set()
    for time in times:
        if zone is None:
            start = time - (time - (offset or 0)) % slide
            while start + width > time:
                found.add((start, start + width))
                start -= slide
            continue
        whole = width // second, slide // second, None if offset is None else offset // second
        least, first, follows = _shape(zone, *whole)
        now = time // second
        shown = (_reading(zone, now) if follows else now + least) + whole[1]
        shown -= (shown - first) % whole[1]
        while shown > now + least - whole[0] - whole[1]:
            edges = _edges(zone, shown, whole[0]) if follows else (shown - least, shown - least + whole[0])
            if edges[0] <= now < edges[1]:
                found.add((edges[0] * second, edges[1] * second))
            shown -= whole[1]
    return sorted(found)
