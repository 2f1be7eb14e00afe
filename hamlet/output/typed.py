"""Columns whose values are of several types, as one column for each: what Parquet and frames can hold."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from hamlet.arrays import pa, pc

_NAMES = {"int64": "int", "uint64": "uint", "double": "float", "string": "text"}
_DIGITS, _SCALE = 38, 9  # of a time between ticks, exactly


def typed_schema(schema: pa.Schema) -> pa.Schema:
    """A schema without unions: ``value`` of integers and texts is ``value_int`` and ``value_text``.

    The column ``time``, of integers and fractions, stays one, of decimals.

    Examples
    --------
    >>> several = pa.dense_union([pa.field("a", pa.int64()), pa.field("b", pa.string())])
    >>> typed_schema(pa.schema([("time", pa.int64()), ("value", several)])).names
    ['time', 'value_int', 'value_text']
    """
    fields: list[pa.Field] = []
    taken = {field.name for field in schema if not pa.types.is_union(field.type)}
    for field in schema:
        if not pa.types.is_union(field.type):
            fields.append(field)
        elif field.name == "time":
            fields.append(pa.field(field.name, pa.decimal128(_DIGITS, _SCALE)))
        else:
            for kind in _kinds(field.type):
                fields.append(pa.field(_free(f"{field.name}_{_name(kind)}", taken), kind))
    return pa.schema(fields)


def typed_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows in the columns of `typed_schema`; NULL where the value is of another type."""
    schema = typed_schema(rows.schema)
    if schema.equals(rows.schema):
        return rows
    arrays: list[pa.Array] = []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if not pa.types.is_union(field.type):
            arrays.append(column)
        elif field.name == "time":
            exact = [None if each is None else round(Decimal(each), _SCALE) for each in column.to_pylist()]
            arrays.append(pa.array(exact, pa.decimal128(_DIGITS, _SCALE)))
        else:
            arrays += _parts(column)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _parts(column: pa.UnionArray) -> Iterator[pa.Array]:
    """The values of each type of a dense union, NULL where a row has one of another."""
    which, where = places_in(column)
    for code in range(column.type.num_fields):
        yield column.field(code).take(pc.if_else(pc.equal(which, code), where, None))


def places_in(column: pa.UnionArray) -> tuple[pa.Array, pa.Array]:
    """By row of a dense union which of its types it has, and the place among the values of that one.

    Arrow's own attributes for these are those of the whole array where this is a slice.
    """
    _, codes, offsets = column.buffers()[:3]
    kinds = (pa.int8(), codes), (pa.int32(), offsets)
    which, where = (
        pa.Array.from_buffers(kind, len(column), [None, data], offset=column.offset) for kind, data in kinds
    )
    return which, where


def _kinds(kind: pa.DataType) -> list[pa.DataType]:
    return [kind.field(place).type for place in range(kind.num_fields)]


def _name(kind: pa.DataType) -> str:
    return "tuple" if pa.types.is_struct(kind) else _NAMES.get(str(kind), str(kind))


def _free(name: str, taken: set[str]) -> str:
    """The name, or the next with a number that no column has."""
    chosen, number = name, 1
    while chosen in taken:
        number += 1
        chosen = f"{name}_{number}"
    taken.add(chosen)
    return chosen
