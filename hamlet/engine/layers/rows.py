"""Rows of queries as events of other queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hamlet.errors import OutputError
from hamlet.input.buffers import from_numpy
from hamlet.input.widening import attribute_type, timestamp_unit
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock, Schema
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.output.tables import result_schema, to_arrow
from hamlet.planner.layers import column_of

_TIME = "\0time"  # of a row as an event: the end of its window, as the input has times


def row_schema(columns: Sequence[ResultColumn], clock: Clock, *, exact: bool) -> pa.Schema:
    """The columns of rows as those of events: counts are INT, or DOUBLE where they are not exact."""
    return result_schema(columns, clock, "int64" if exact else "double")


def row_types(schema: pa.Schema, columns: Sequence[ResultColumn]) -> dict[str, AttributeType | None]:
    """The columns of a query's rows as types of attributes; None for a key of which no value has been seen."""
    unknown = {column.name for column in columns if column.kind == "attribute" and _is_unknown(column)}
    return {field.name: None if field.name in unknown else attribute_type(field.type) for field in schema}


def _is_unknown(column: ResultColumn) -> bool:
    return column.arrow_type is None or pa.types.is_null(column.arrow_type)


def row_table(rows: QueryRows, clock: Clock, *, exact: bool) -> pa.Table:
    """Rows as a table of `row_schema`, and their times; an INT column with a value beyond 64 bits is one of doubles."""
    table = _row_table(rows, clock, exact=exact)
    if not clock.is_fraction:
        return table.append_column(_TIME, table.column("window_end"))
    ends = [from_numpy(each.ends.column()).cast(clock.type) for each in rows.pieces]
    return table.append_column(_TIME, pa.chunked_array(ends, clock.type))


def _row_table(rows: QueryRows, clock: Clock, *, exact: bool) -> pa.Table:
    if not exact:
        return to_arrow(rows, clock, "double")
    try:
        return to_arrow(rows, clock, "int64")
    except OutputError:
        table = to_arrow(rows, clock, "double")
    for place, column in enumerate(rows.columns):
        whole = column.kind in ("count", "sum") and column.type is not AttributeType.DOUBLE
        if whole:
            values = [row[2 + place] for row in rows.rows]
            if all(value is None or -(2**63) <= value < 2**63 for value in values):
                table = table.set_column(3 + place, column.name, pa.array(values, pa.int64()))
    return table


def as_events(table: pa.Table, name: str, schema: Schema, wanted: Sequence[str], keys: Sequence[str]) -> pa.Table:
    """Rows as events of a unit: their time is the end of their window, their type the name of their query.

    Parameters
    ----------
    table : pyarrow.Table
        From `row_table`.
    name : str
        The query.
    schema : Schema
        Of the input.
    wanted : sequence of str
        Attributes that the unit reads, by its names of them.
    keys : sequence of str
        Attributes on which rows and events agree.
    """
    columns = {schema.clock.column: table.column(_TIME), schema.type_column: pa.repeat(name, table.num_rows)}
    for column in table.column_names:
        for called in (column_of(name, column), *([column] if column in keys else [])):
            if called in wanted and called not in columns:
                columns[called] = table.column(column)
    return pa.table(columns)


def with_rows(schema: Schema, columns: Mapping[str, pa.DataType]) -> Schema:
    """The schema of the input with further columns."""
    types = {name: attribute_type(kind) for name, kind in columns.items()}
    units = {
        name: timestamp_unit(kind)
        for name, kind in columns.items()
        if types[name] in (AttributeType.TIMESTAMP, AttributeType.DURATION)
    }
    return Schema(
        {**schema.columns, **types},
        schema.clock,
        schema.type_column,
        schema.order_column,
        schema.closed,
        {**schema.units, **units},
        {**schema.arrow_types, **columns},
    )
