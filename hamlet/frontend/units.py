"""Units of time: how long each is. A notation says which of them it knows, and how it writes them."""

from __future__ import annotations

from fractions import Fraction

SECONDS = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
    "w": Fraction(7 * 86400),
    "a": Fraction(365 * 86400),
}
UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}  # of times that are integers
HERTZ = {
    "uHz": Fraction(1, 10**6),
    "µHz": Fraction(1, 10**6),
    "mHz": Fraction(1, 1000),
    "Hz": Fraction(1),
    "kHz": Fraction(1000),
    "MHz": Fraction(10**6),
    "GHz": Fraction(10**9),
}
UNITS = (*SECONDS, *HERTZ)
SPELLINGS = {
    "ms": ("ms",),
    "s": ("s", "sec", "second", "seconds"),
    "min": ("min", "minute", "minutes"),
    "h": ("h", "hour", "hours"),
    "d": ("d", "day", "days"),
    "w": ("w", "week", "weeks"),
}
_UNIT_OF = {spelling: unit for unit, spellings in SPELLINGS.items() for spelling in spellings}
LONGEST = 2**63 // 10**9  # seconds; times have 64 bits of nanoseconds


def unit_of(word: str) -> str | None:
    """The unit of time that a word names, spelled out or not: ms, s, min, h, d or w."""
    return _UNIT_OF.get(word.lower())


def seconds_of(value: Fraction, unit: str) -> Fraction | None:
    """A duration, or the period of a frequency, in seconds; None for another unit, or a frequency of zero."""
    if unit in SECONDS:
        return value * SECONDS[unit]
    if unit in HERTZ and value:
        return 1 / (value * HERTZ[unit])
    return None


def duration_text(seconds: Fraction) -> str:
    """A duration in its largest whole unit: ``90s``, ``2min``, ``1/3s``."""
    for unit in ("w", "d", "h", "min", "s", "ms", "us", "ns"):
        if (seconds / SECONDS[unit]).denominator == 1:
            return f"{seconds // SECONDS[unit]}{unit}"
    return f"{seconds}s"


def frequency_text(period: Fraction) -> str:
    """A period as it is written behind ``@``: ``10Hz``, ``2.5Hz``, ``10s``."""
    hertz = 1 / period
    if hertz >= 1 and 10000 % hertz.denominator == 0:
        return f"{float(hertz):g}Hz" if hertz < 10**6 else f"{hertz}Hz"
    return duration_text(period)


def decimal_text(ticks: int, digits: int = 9) -> str:
    """A number of so many digits behind the point, without those that are 0: by default nanoseconds as seconds."""
    whole, rest = divmod(abs(ticks), 10**digits)
    fraction = f".{rest:0{digits}d}".rstrip("0") if rest else ""
    return f"{'-' * (ticks < 0)}{whole}{fraction}"
