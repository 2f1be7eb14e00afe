"""What an engine knows of a stream's columns: learnt from the first push, widened by later ones.

A column without values gets a type, INT widens to DOUBLE; all else stays as it came first. Timestamps keep the unit of
the first push, since windows, extrema and stored events are counted in it. Source: docs/language.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.widening import attribute_type, cast, widen
from hamlet.language.query import AttributeType
from hamlet.language.schema import Schema, timestamp


def has_columns(events: Any) -> bool:
    """Whether a batch has columns (a name that is missing is a mistake), or is a row of dicts."""
    return isinstance(events, dict) or hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__")


def check_zones(schema: Schema) -> None:
    """Raise DataError where results could not be given in a column's time zone."""
    clock = {schema.clock.column: (schema.clock.unit, schema.clock.type.tz)} if schema.clock.is_timestamp else {}
    for name, (unit, zone) in {**schema.units, **clock}.items():
        try:
            timestamp(0, unit, zone)
        except DataError as error:
            raise DataError(f"column '{name}': {error}") from None


def widened(old: Schema, new: Schema, wanted: Iterable[str]) -> Schema:
    """The schema after a further push; `old` itself where it says nothing new.

    Parameters
    ----------
    old, new : Schema
        What was known, and the columns of the push.
    wanted : iterable of str
        The attributes that some query reads, and the order column.

    Raises
    ------
    DataError
        A column that changes its type, a time column of another type, a missing column.
    """
    _check_clock(old, new)
    columns, types, units = dict(old.columns), dict(old.arrow_types), dict(old.units)
    coded = new.coded if old.coded is None else old.coded
    changed = coded is not old.coded
    if new.coded not in (None, coded):
        was, now = ("integers" if each else "text" for each in (coded, new.coded))
        raise DataError(f"the event types in '{old.type_column}' were {was} so far and are now {now}; keep to one")
    for name in wanted:
        if name not in new.columns:
            if new.closed and name in old.columns:
                raise DataError(f"this batch lacks the column '{name}', which earlier batches had")
            continue
        known, given = types.get(name, pa.null()), new.arrow_types[name]
        wide = _kept_time(known, given) if _are_times(known, given) else widen(known, given)
        if wide is None:
            was, now = (_name(each) for each in (known, given))
            raise DataError(f"the attribute '{name}' was {was} so far and is now {now}")
        if name not in columns or attribute_type(wide) is not columns[name]:
            columns[name], types[name], changed = attribute_type(wide), wide, True
            units.update({name: new.units[name]} if name in new.units else {})
    if not changed:
        return old
    return Schema(columns, old.clock, old.type_column, old.order_column, old.closed, units, types, coded)


def conformed(table: pa.Table, schema: Schema, wanted: Iterable[str]) -> pa.Table:
    """The wanted columns of a push, its timestamps in the units that the engine has compiled.

    Raises
    ------
    DataError
        If a timestamp has more digits than that unit has.
    """
    types = {**schema.arrow_types, schema.clock.column: schema.clock.type}
    names = [name for name in wanted if name in table.column_names]
    columns = []
    for name in names:
        column, known = table.column(name), types.get(name, pa.null())
        if _are_times(known, column.type) and not known.equals(column.type):
            column = cast(column, known, name)
        columns.append(column)
    return pa.table(dict(zip(names, columns, strict=True)))


def _check_clock(old: Schema, new: Schema) -> None:
    was, now = old.clock.type, new.clock.type
    if not (pa.types.is_integer(was) and pa.types.is_integer(now)) and _kept_time(was, now) is None:
        raise DataError(f"the time column '{old.clock.column}' was {was} and is now {now}")


def _are_times(one: pa.DataType, other: pa.DataType) -> bool:
    return attribute_type(one) is attribute_type(other) in (AttributeType.TIMESTAMP, AttributeType.DURATION)


def _kept_time(known: pa.DataType, given: pa.DataType) -> pa.DataType | None:
    """The known type where times of the given one can be counted in it; None where they cannot be compared."""
    zones = [getattr(each, "tz", None) is not None for each in (known, given)]
    clock_to_date = pa.types.is_date(known) and not pa.types.is_date(given)
    return known if _are_times(known, given) and zones[0] == zones[1] and not clock_to_date else None


def _name(arrow: pa.DataType) -> str:
    kind = attribute_type(arrow)
    return str(arrow) if kind in (None, AttributeType.TIMESTAMP, AttributeType.DURATION) else kind.value
