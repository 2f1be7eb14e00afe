"""Times as events have them, of every kind that a push may have."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

_START = datetime.datetime(2024, 12, 31, 23, 59)


def _moment(seconds: int) -> datetime.datetime:
    return _START + datetime.timedelta(seconds=seconds)


KINDS: dict[str, Callable[[int], Any]] = {  # from a number of seconds
    "integers": lambda seconds: seconds,
    "fractions": lambda seconds: seconds / 8,
    "datetimes": _moment,
    "datetimes of UTC": lambda seconds: _moment(seconds).replace(tzinfo=datetime.UTC),
    "texts": lambda seconds: str(_moment(seconds)),
    "texts of UTC": lambda seconds: _moment(seconds).isoformat(timespec="milliseconds") + "Z",
    "texts of a zone": lambda seconds: f"{_moment(seconds)}+01:00",
}
