"""Events in memory as a table of what a specification reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from hamlet.errors import DataError
from hamlet.frontend.time_column import time_column_in
from hamlet.input.readers import named, table_of
from hamlet.streams.program import ir
from hamlet.streams.program.tuples import as_structs


def table_of_events(
    events: Any,
    inputs: Sequence[ir.Stream],
    time_column: str | None = None,
    first_event: int = 0,
    *,
    more: Callable[[str], bool] = lambda _: False,
) -> tuple[pa.Table, bool]:
    """Events as a table, and whether its columns are all; what nobody reads may hold anything.

    Parameters
    ----------
    events : pyarrow data, dict of columns, iterable of dicts, or anything that exports Arrow data
        Columns that are not read are left out where values of one of them make no column.
    inputs : sequence of ir.Stream
    time_column : str, optional
    first_event : int
        How many events came before these, for messages.
    more : callable
        Which other columns are read.

    Raises
    ------
    DataError
        If it is none of these, or a column that is read mixes types.
    """
    names, given = named(as_structs(events, inputs))
    time = time_column_in(names, time_column)
    try:
        return table_of(given, first_event, wide=True, time=time)
    except DataError:
        known = {each.name for each in inputs}
        narrow = _read_of(given, lambda name: name in known or more(name), time_column)
        if narrow is None:
            raise
    return table_of(narrow, first_event, wide=True, time=time)


def _read_of(events: Any, is_read: Callable[[str], bool], time_column: str | None) -> Any:
    """Columns or dicts with what is read alone; None where they cannot be read again, or nothing would be left out."""
    rows = [events] if isinstance(events, Mapping) else events
    if not isinstance(rows, (list, tuple)) or not all(isinstance(each, Mapping) for each in rows):
        return None
    given = {name for row in rows for name in row}
    wanted = {*filter(is_read, given), time_column_in(given, time_column)}
    if given <= wanted:
        return None
    found = [{name: value for name, value in row.items() if name in wanted} for row in rows]
    return found[0] if isinstance(events, Mapping) else found
