"""What a save says of a stream: the options, the types learned so far, and whether events fit them.

Each thing has a description in JSON (``described_*``) and its way back (``*_of``), which raises ValueError where the
description is none.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from hamlet.checkpoint.columns import BlobReader, BlobWriter, Json, described_type, fields, items, text, type_of, whole
from hamlet.errors import OptionError
from hamlet.input.columns import integers
from hamlet.input.input_schema import coded_in
from hamlet.input.widening import FRACTION, attribute_type, clock_type, is_clock
from hamlet.language.query import AttributeType
from hamlet.language.schema import MOST_TICKS, Clock, Schema

if TYPE_CHECKING:
    from hamlet.planner.workload import Workload

_NUMPY_TIME = re.compile(r"[<>]M8\[\d{0,9}[a-z]{1,2}\]")
_MICROSECOND = datetime.timedelta(microseconds=1)

Promise = datetime.date | np.datetime64 | int | float | Decimal
_NUMBERS: dict[str, type[int] | type[float] | type[Decimal]] = {"int": int, "float": float, "Decimal": Decimal}


def columns_read(workload: Workload, schema: Schema) -> list[str]:
    """The columns that the engine reads of an event; no others are saved."""
    order = [] if schema.order_column is None else [schema.order_column]
    return list(dict.fromkeys([schema.clock.column, schema.type_column, *order, *workload.attributes]))


# ------------------------------------------------------------------------------------------------- options


def described_options(options: Mapping[str, Any]) -> Json:
    """Options as JSON has them: numbers of whole ticks as integers, durations as text."""
    described = dict(options)
    for name, value in options.items():
        if isinstance(value, datetime.timedelta):
            seconds, micros = divmod(value // _MICROSECOND, 10**6)
            described[name] = f"{seconds}.{micros:06d} s"
        elif isinstance(value, (list, tuple, set, frozenset)):
            described[name] = ",".join(value)
        elif isinstance(value, (float, np.integer)):
            described[name] = int(value)
    return described


def options_of(description: Json) -> dict[str, Any]:
    """Options, for the engine to check."""
    if not isinstance(description, dict) or not all(
        value is None or isinstance(value, (str, int)) for value in description.values()
    ):
        raise ValueError("the options are not valid")
    for name in ("time_column", "type_column", "time_unit"):
        text(description.get(name))
    if description.get("order_column") is not None:
        text(description["order_column"])
    return description


def described_promise(time: Any, blobs: BlobWriter) -> Json:
    """A time given before the first event, which says in what unit it is.

    Raises
    ------
    OptionError
        If it is no time.
    """
    if isinstance(time, np.datetime64):
        return ["numpy", time.dtype.str, int(time.astype(np.int64))]
    if type(time).__name__ in _NUMBERS:
        return ["number", type(time).__name__, str(time)]
    if time is not None and not isinstance(time, datetime.date):
        raise OptionError(f"the engine cannot be saved: {time!r} was given to advance(), and is not a time")
    return None if time is None else ["python", blobs.keys([(time,)], 1)]


def promise_of(description: Json, blobs: BlobReader) -> Promise | None:
    """The time."""
    if description is None:
        return None
    match items(description):
        case ["numpy", str() as unit, ticks] if _NUMPY_TIME.fullmatch(unit):
            found: np.datetime64 = np.array([whole(ticks, -(2**63))], np.int64).view(np.dtype(unit))[0]
            return found
        case ["number", str() as kind, str() as digits] if kind in _NUMBERS:
            try:
                number = _NUMBERS[kind](digits)
            except InvalidOperation as error:
                raise ValueError("the promised time is no number") from error
            if math.isfinite(number):
                return number
        case ["python", about]:
            keys, _ = blobs.keys(about, 1)
            if len(keys) == 1 and isinstance(keys[0][0], datetime.date):
                return keys[0][0]
    raise ValueError("the promised time is none")


# -------------------------------------------------------------------------------------------------- schema


def described_schema(schema: Schema, names: Sequence[str]) -> Json:
    """The types of these columns, as far as they are known."""
    columns = []
    for name in names:
        if name in schema.columns:
            type, arrow = schema.columns[name], schema.arrow_types.get(name)
            if name == schema.type_column and schema.coded is not None:
                arrow = pa.int64() if schema.coded else pa.string()
            unit = list(schema.units[name]) if name in schema.units else None
            described = None if arrow is None else described_type(arrow)
            columns.append([name, None if type is None else type.value, described, unit])
    return {"closed": schema.closed, "clock": described_type(schema.clock.type), "columns": columns}


def schema_of(workload: Workload, description: Json, options: Mapping[str, Any]) -> Schema | None:
    """The schema; the columns' names are those of the options and of the workload."""
    if description is None:
        return None
    closed, time, columns = fields(description, "closed", "clock", "columns")
    arrow = type_of(time)
    if type(closed) is not bool or not is_clock(arrow) or clock_type(arrow) != arrow:
        raise ValueError("the time column has a type that no time column has")
    found: dict[str, AttributeType | None] = {}
    arrows, units = {}, {}
    for column in items(columns):
        name, attribute, arrow_type, unit = items(column, 4)
        if text(name) in found:
            raise ValueError("two columns have equal names")
        found[name] = None if attribute is None else AttributeType(attribute)
        if arrow_type is not None:
            arrows[name] = type_of(arrow_type)
        if unit is not None:
            units[name] = _unit_of(unit)
        elif found[name] in (AttributeType.TIMESTAMP, AttributeType.DURATION):
            raise ValueError(f"the column {name!r} has no unit")
    unit = arrow.unit if pa.types.is_timestamp(arrow) or arrow == FRACTION else options["time_unit"]
    clock = Clock(options["time_column"], unit, arrow, options.get("timezone"))
    types = options["type_column"]
    coded = coded_in(pa.schema(list(arrows.items())), types)
    arrows |= {types: pa.string()} if coded else {}
    schema = Schema(found, clock, types, options.get("order_column"), closed, units, arrows, coded)
    names = columns_read(workload, schema)
    if not set(found) <= set(names) or (closed and len(found) < len(names)):
        raise ValueError("the columns are not those that the workload reads")
    return schema


def _unit_of(description: Json) -> tuple[str, str | None]:
    unit, zone = items(description, 2)
    type_of(["timestamp", unit, zone])  # raises where there are no such timestamps
    return unit, zone


# -------------------------------------------------------------------------------------------------- events


def check_events(table: pa.Table, schema: Schema, names: Sequence[str], *, ordered: bool = True) -> None:
    """Raise ValueError unless the events are as the engine has them after a push that has taught it nothing new.

    Parameters
    ----------
    table : pyarrow.Table
        It has the time column, without NULL.
    schema : Schema
    names : sequence of str
        From `columns_read`.
    ordered : bool
        Whether they must have an order where the schema has one; rows of queries have none.
    """
    clock, order = schema.clock, schema.order_column
    arrows = {**schema.arrow_types, clock.column: clock.type}
    for field in table.schema:
        type = attribute_type(field.type)
        known = AttributeType.STRING if field.name == schema.type_column else schema.columns.get(field.name)
        if field.name == clock.column and clock.is_fraction:
            known = AttributeType.DURATION
        fits = field.name in names and _is_within(type, known)  # no push widens what is known of the type column
        if not fits or (
            type in (AttributeType.TIMESTAMP, AttributeType.DURATION) and not field.type.equals(arrows.get(field.name))
        ):
            raise ValueError(f"the column {field.name!r} of an event does not fit the types seen so far")
    times = integers(table.column(clock.column).combine_chunks(), clock.column)[0]
    if len(times) and (int(times.min()) < -MOST_TICKS or int(times.max()) > MOST_TICKS):
        raise ValueError("the time of an event is out of bounds")
    if ordered and order is not None and (order not in table.column_names or table.column(order).null_count):
        raise ValueError("an event has no order")


def check_keys(types: Sequence[Sequence[pa.DataType]], attributes: Sequence[str], schema: Schema) -> None:
    """Raise ValueError unless the values of partition attributes, of these types each, fit the schema."""
    clock = schema.clock
    for name, kinds in zip(attributes, types, strict=True):
        seconds = clock.is_fraction and name == clock.column  # which are kept as durations since 1970
        known = AttributeType.DURATION if seconds else schema.columns.get(name)
        if not all(_is_within(attribute_type(kind), known) for kind in kinds):
            raise ValueError(f"a partition's {name!r} does not fit the types seen so far")


def _is_within(type: AttributeType | None, known: AttributeType | None) -> bool:
    """Whether values of a type can be in a column of a known type; None is a column of NULLs."""
    return type is None or type is known or (type is AttributeType.INT and known is AttributeType.DOUBLE)
