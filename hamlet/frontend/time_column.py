"""Which column holds the times, where nobody has named one: ``time``, else ``ts``, else ``timestamp``.

A column that is asked for by another name has to be there. Names count in any case where no column has them as they
stand here.
"""

from __future__ import annotations

from collections.abc import Iterable

TIME_COLUMNS = ("time", "ts", "timestamp")
TIME = TIME_COLUMNS[0]


def time_column_in(names: Iterable[str], wanted: str | None = TIME) -> str | None:
    """The column of times among these; None where there is none.

    >>> time_column_in(["type", "timestamp", "ts"])
    'ts'
    >>> time_column_in(["type", "ts"], "at") is None
    True
    """
    known = dict.fromkeys(names)
    if wanted not in (None, TIME):
        return wanted if wanted in known else None
    folded = {str(name).lower(): name for name in reversed(known)}
    return next((each if each in known else folded[each] for each in TIME_COLUMNS if each in folded), None)


def called(wanted: str | None) -> tuple[str, ...]:
    """What the column may be called, the likeliest first."""
    return TIME_COLUMNS if wanted in (None, TIME) else (str(wanted),)


def settled(wanted: str, names: Iterable[str]) -> str:
    """The column of times among these; where there is none, the one that was asked for, which somebody then misses."""
    found = time_column_in(names, wanted)
    return wanted if found is None else found
