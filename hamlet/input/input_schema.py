"""What the input's columns mean: the check of time, type and order column, and the schema in the language's types.

Source: docs/language.md ("Attributes and declarations"); docs/numbers.md ("Time and order").
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hamlet.errors import DataError, one_of
from hamlet.input.missing import missing_column, named_by
from hamlet.input.moments import FORMS
from hamlet.input.ordering import SortKey
from hamlet.input.widening import FRACTION, attribute_type, clock_type, is_clock, is_text, plain_type, timestamp_unit
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock, Schema


def schema_of(
    arrow: pa.Schema,
    key: SortKey,
    type_column: str,
    time_unit: str,
    *,
    closed: bool = True,
    empty: bool = False,
    source: str = "events",
) -> Schema:
    """What the language knows of these columns, after a check of the time, type and order column.

    Parameters
    ----------
    arrow : pyarrow.Schema
        The columns as they come in.
    key : SortKey
        Names of time and order column.
    type_column : str
        Name of the event type's column.
    time_unit : {'s', 'ms', 'us', 'ns'}
        The unit of an integer time column.
    closed : bool
        Whether a name that is not among the columns is a mistake.
    empty : bool
        Whether there are no rows; then a column may have no type.
    source : str
        Name for messages.

    Raises
    ------
    DataError
        If a column appears twice, one of the three is missing, or has a type that it cannot have; or a time zone that
        is no text.
    """
    refuse_repeated(arrow.names, source)
    _check_zones(arrow, source)
    if not (empty and not closed):
        _check_keys(arrow, key, empty, source)
    _check_type_column(arrow, type_column, closed, source)
    plain = plain_schema(arrow, key, type_column)
    columns = {field.name: attribute_type(field.type) for field in plain}
    types = {field.name: field.type for field in plain}
    units = {
        field.name: timestamp_unit(field.type)
        for field in plain
        if attribute_type(field.type) in (AttributeType.TIMESTAMP, AttributeType.DURATION)
    }
    clock = plain.field(key.time).type if key.time in arrow.names else pa.int64()
    clock = pa.int64() if pa.types.is_null(clock) else clock
    unit = clock.unit if pa.types.is_timestamp(clock) or clock == FRACTION else time_unit
    if clock == FRACTION:  # as an attribute it is the seconds
        columns[key.time], types[key.time] = AttributeType.DOUBLE, pa.float64()
        units.pop(key.time)
    return Schema(columns, Clock(key.time, unit, clock), type_column, key.order, closed, units, types)


def coded_in(arrow: pa.Schema, type_column: str) -> bool | None:
    """Whether event types come as integers; None where none has come."""
    kind = arrow.field(type_column).type if type_column in arrow.names else pa.null()
    return None if pa.types.is_null(kind) else bool(pa.types.is_integer(kind))


def refuse_repeated(names: Sequence[str], source: str) -> None:
    """Raise DataError where two columns have one name."""
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise DataError(f"{source}: there are several columns with the name {name!r}; names must differ")


def _check_zones(arrow: pa.Schema, source: str) -> None:
    """Time zones have names that are text, which Arrow itself does not ask of a file."""
    for field in arrow:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        try:
            _ = pa.types.is_timestamp(kind) and kind.tz
        except UnicodeDecodeError as error:
            raise DataError(f"{source}: the time zone of column {field.name!r} is no UTF-8 text") from error


def _check_type_column(arrow: pa.Schema, type_column: str, closed: bool, source: str) -> None:
    """The type column exists, unless any name may be absent, and holds text or integers."""
    if type_column in arrow.names:
        kind = arrow.field(type_column).type
        if not (is_text(kind) or pa.types.is_integer(kind) or pa.types.is_null(kind)):
            raise DataError(
                f"{source}: the type column {type_column!r} holds {kind}; event types are strings "
                f"({named_by('--type-column')} names the type column)"
            )
    elif closed and type_column:  # a specification needs none
        raise DataError(f"{source}: {missing_column(type_column, arrow.names, 'type', '--type-column')}")


def _check_keys(arrow: pa.Schema, key: SortKey, empty: bool, source: str) -> None:
    """Time and order column exist, and hold times."""
    for name, role in ((key.time, "time"), (key.order, "order")):
        if name is None:
            continue
        if name not in arrow.names:
            raise DataError(f"{source}: {missing_column(name, arrow.names, role, f'--{role}-column')}")
        kind = arrow.field(name).type
        if pa.types.is_null(kind) and not empty:
            raise DataError(f"{source}: the {role} column {name!r} is NULL in row 1 (the first row is 1)")
        if not is_clock(kind) and not pa.types.is_null(kind):
            forms = FORMS if role == "time" else "integers or timestamps (round it)"
            raise DataError(f"{source}: the {role} column {name!r} holds {kind}; it must hold {forms}")


def other_type(name: str, value: str, kind: pa.DataType) -> str:
    """The message for a value that is not of the type that its column has in other files."""
    known = attribute_type(kind)
    return (
        f"column {name!r} holds {value}, and in the files before it is "
        f"{'without values' if known is None else known.value}; mend this file, or move it away, and start again"
    )


def unreadable_column(name: str, kind: object) -> str:
    """The message for a column of a type that no attribute can have."""
    types = one_of([each.value for each in AttributeType])
    text = f"column {name!r} has the type {kind}, which no attribute can have ({types})"
    return text + ("\nhint: if it is text, it is not UTF-8; save the file as UTF-8" if str(kind) == "binary" else "")


def plain_schema(arrow: pa.Schema, key: SortKey, type_column: str) -> pa.Schema:
    """The columns in the types in which the engine gets them; event types that are numbers become text."""

    def plain(field: pa.Field) -> pa.DataType:
        if field.name in key.names:
            return clock_type(field.type)
        if field.name == type_column and pa.types.is_integer(field.type):
            return pa.string()
        return plain_type(field.type)

    return pa.schema([(field.name, plain(field)) for field in arrow])
