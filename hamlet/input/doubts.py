"""Doubts about how an input is read, for a warning: a time unit that puts all events into 1970, or far from now.

An integer time column does not say its unit, and a wrong one is no error: trends are just not found, or all events fall
into one window.
"""

from __future__ import annotations

import datetime

from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.language.schema import Clock

_EARLIEST, _LATEST = 1980, 2100  # years in which recorded events lie


def year_of(ticks: int, unit: str) -> int | None:
    """The year of a time since 1970 in a unit; None outside the years 1 to 9999.

    Examples
    --------
    >>> year_of(1_360_324_800, "s"), year_of(1_360_324_800, "ms"), year_of(1_360_324_800_000, "s")
    (2013, 1970, None)
    """
    try:
        return (datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=ticks // UNITS_PER_SECOND[unit])).year
    except OverflowError:
        return None


def _date(ticks: int) -> str | None:
    """The day or time that the digits of a number may mean, as in 20240305 or 20240305093000."""
    for form, shown in (("%Y%m%d", "%Y-%m-%d"), ("%Y%m%d%H%M%S", "%Y-%m-%d %H:%M:%S")):
        try:
            found = datetime.datetime.strptime(str(ticks), form)
        except ValueError:
            continue
        if len(found.strftime(form)) == len(str(ticks)) and _EARLIEST <= found.year <= _LATEST:
            return found.strftime(shown)
    return None


def unit_doubt(ticks: int, clock: Clock) -> str | None:
    """What is odd about a time if it is read as since 1970, where another unit would make it an ordinary one.

    Parameters
    ----------
    ticks : int
        Of the first event.
    clock : Clock
        How the time column is read.

    Returns
    -------
    str or None
        A sentence, None where there is no doubt (small numbers, such as seconds from a start, raise none).
    """
    if clock.is_timestamp or clock.is_fraction:
        return None
    year = year_of(ticks, clock.unit)
    if year is not None and _EARLIEST <= year <= _LATEST:
        return None
    date = _date(ticks)
    if date is not None:
        return (
            f"the first event is at {ticks}, which is read as {clock.unit} since 1970; if it means {date}, write it so"
        )
    for unit in UNITS_PER_SECOND:
        other = year_of(ticks, unit)
        if other is not None and _EARLIEST <= other <= _LATEST:
            now = "beyond the year 9999" if year is None else f"in {year}"
            return (
                f"the first event is {now} if '{clock.column}' is in {clock.unit} since 1970, and in {other} if it is "
                f"in {unit}; is --time-unit {unit} meant?"
            )
    return None
