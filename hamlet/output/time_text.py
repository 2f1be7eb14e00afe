"""Times of rows as text; apart from rows, so that whoever prints others need not know them."""

from __future__ import annotations

from hamlet.errors import DataError, OutputError
from hamlet.frontend.units import decimal_text
from hamlet.language.schema import Clock, timestamp


def time_text(ticks: int | None, clock: Clock) -> str:
    """An edge of a window as text: the integer, the seconds, or ISO 8601, with all its digits; None is empty."""
    if ticks is None:
        return ""
    if not clock.is_timestamp:
        text = decimal_text(ticks) if clock.is_fraction else str(ticks)
        return f"{text}.0" if clock.is_fraction and "." not in text else text
    per_second = clock.ticks_per_second
    seconds, rest = divmod(ticks, per_second)
    try:
        text = timestamp(seconds, "s", clock.type.tz).isoformat()
    except DataError as error:
        raise OutputError(f"a window ends {seconds} s from 1970, outside the years 1 to 9999") from error
    if not rest:
        return text
    fraction = f".{rest:0{len(str(per_second)) - 1}d}"
    return text[:19] + fraction + text[19:]  # before the zone's offset, if there is one
