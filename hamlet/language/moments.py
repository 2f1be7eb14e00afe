"""Times and lengths of time in conditions: timestamps written as text, and differences of timestamps.

``T.at >= '2024-03-05'`` compares a TIMESTAMP with a text that is read as ISO 8601; where the column has a zone and the
text has none, the text is a time on the clocks of that zone. ``T.at - PREV(V).at < 10 min`` compares a difference of
two TIMESTAMPs with a duration.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from fractions import Fraction

from hamlet.language.query import Binary, Expression, Literal

_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?\s*(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII
)
_EPOCH = datetime.datetime(1970, 1, 1)
FORMS = "'2024-03-05', '2024-03-05 10:00:00' or '2024-03-05T10:00:00+01:00'"


def moment_of(text: str) -> tuple[Fraction, bool] | None:
    """Seconds since 1970 that a text says, and whether it names a zone; None for a text that is no time.

    Without a zone they are those of a clock that shows the text, as if it stood in UTC.

    Examples
    --------
    >>> moment_of("1970-01-02 00:00:00.5"), moment_of("1970-01-01T01:00+01:00"), moment_of("noon")
    ((Fraction(172801, 2), False), (Fraction(0, 1), True), None)
    """
    match = _MOMENT.fullmatch(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(each or 0) for each in match.groups()[:6])
    try:
        moment = datetime.datetime(year, month, day, hour, minute, second)
    except ValueError:
        return None
    difference = moment - _EPOCH
    seconds = Fraction(difference.days * 86_400 + difference.seconds)
    seconds += Fraction(int((match[7] or "").ljust(9, "0")), 10**9)
    zone = match[8]
    if zone is None:
        return seconds, False
    digits = zone[1:].replace(":", "").ljust(4, "0") if zone != "Z" else "0000"
    shift = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return seconds - (-shift if zone.startswith("-") else shift), True


def seconds_of(text: str, zone: str | None) -> Fraction | None:
    """Seconds since 1970 for a column with, or without, a zone; None where the text is no time for such a column."""
    found = moment_of(text)
    if found is None:
        return None
    seconds, zoned = found
    if zone is None:
        return None if zoned else seconds
    return seconds if zoned else seconds - offset(zone, seconds)


def offset(zone: str, wall: Fraction) -> int:
    """Seconds that the clocks of a zone are ahead of UTC when they show a time (the first, where it comes twice)."""
    shift = re.fullmatch(r"([+-])(\d\d):?(\d\d)", zone)
    if shift is not None:
        return int(f"{shift[1]}1") * (int(shift[2]) * 3600 + int(shift[3]) * 60)
    shown = _EPOCH + datetime.timedelta(seconds=int(wall // 1))
    found = shown.replace(tzinfo=zoneinfo.ZoneInfo(zone)).utcoffset()
    return int(found.total_seconds()) if found is not None else 0


def is_difference(expression: Expression) -> bool:
    """Whether an expression has the form of a difference."""
    return isinstance(expression, Binary) and expression.operator == "-"


def is_text(expression: Expression) -> bool:
    """Whether an expression is text in quotes."""
    return isinstance(expression, Literal) and isinstance(expression.value, str) and not expression.bare
