"""Events that are pushed: any form that stands in memory, as a table in plain types, not sorted."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from hamlet.input.input_schema import plain_schema, schema_of
from hamlet.input.moments import with_moments
from hamlet.input.ordering import SortKey
from hamlet.input.readers import plain_table, table_of
from hamlet.input.widening import is_readable


def batch_of(
    events: Any,
    *,
    time_column: str = "time",
    type_column: str = "type",
    order_column: str | None = None,
    first_event: int = 0,
) -> pa.Table:
    """Events for the online engine: any form that stands in memory, as a table in plain types, not sorted.

    Parameters
    ----------
    events : pyarrow Table or RecordBatch, dict of columns, iterable of dicts, or anything that exports Arrow data
        Columns of numbers are not copied. Of dicts, the attributes of these dicts only are columns.
    time_column, type_column, order_column : str
        As for `open_events`.
    first_event : int
        How many events were pushed before, for messages.

    Returns
    -------
    pyarrow.Table
        Of all columns that the engine can read, types as in `EventSource.arrow_schema`. No time or order is NULL.

    Raises
    ------
    DataError
        As `open_events`, and at a NULL time or order.
    """
    table, closed = table_of(events, first_event, time=time_column)
    table = with_moments(table, time_column, "s", first_event)
    return arrived(
        table,
        closed,
        time_column=time_column,
        type_column=type_column,
        order_column=order_column,
        first_event=first_event,
    )


def arrived(
    table: pa.Table, closed: bool, *, time_column: str, type_column: str, order_column: str | None, first_event: int
) -> pa.Table:
    """Check pushed events, a table of `table_of`: times and orders without NULL, columns of known types."""
    name = "the table" if closed else "the events"
    key = SortKey(time_column, order_column, name)
    schema = table.schema.remove_metadata()
    schema_of(schema, key, type_column, "s", closed=closed, empty=table.num_rows == 0, source=name)
    if not table.num_rows:
        return table.select([])
    key.columns_of(table, first_event)
    plain = plain_schema(schema, key, type_column)
    return plain_table(table, pa.schema([field for field in plain if is_readable(field.type)]))
