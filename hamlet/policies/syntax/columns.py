"""The columns of a policy's rows: free variables that are named like another column get another name."""

from __future__ import annotations

from collections.abc import Collection, Sequence

ROWS = ("policy", "time", "time_point")
VERDICTS = ("policy", "time", "offset", "verdict", "same_as_time", "same_as_offset")


def column_names(names: Sequence[str], fixed: Collection[str] = ROWS) -> tuple[str, ...]:
    """The columns of free variables: one that is named like a fixed column, or like another, gets ``_`` behind it."""
    taken = {*fixed, *(name for name in names if name not in fixed)}
    found = []
    for name in names:
        column = name
        while column in taken and (column != name or name in fixed):
            column += "_"
        taken.add(column)
        found.append(column)
    return tuple(found)
