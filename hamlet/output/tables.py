"""Result rows as Arrow tables, and what a COUNT becomes there.

A COUNT or SUM has no largest value, and Arrow has no such type, so the *count type* says what it becomes: the narrowest
type that holds all values of the column (`hamlet.output.fitting`, the default), a decimal string (exact), an int64 or
decimal128(38, 0) (exact, an error where a value does not fit) or a double (may be inf). A SUM over DOUBLE attributes is
no integer: under int64 and decimal it is a double, and an error beyond the double range.

Source: docs/language.md ("Result rows").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import OptionError, OutputError, one_of
from hamlet.input.buffers import from_list, from_numpy, scalar, to_numpy
from hamlet.input.columns import fresh
from hamlet.input.moments import shown
from hamlet.input.widening import plain_type
from hamlet.kernel.column_builder import placed
from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock
from hamlet.output.components import Values
from hamlet.output.digits import nearest_double, number_text
from hamlet.output.fitting import COUNT_TYPES, DECIMAL, INT64, REAL, TEXT, WIDE, fitted_types, is_counted, is_real
from hamlet.output.numbers import BeyondDoubles, Integers
from hamlet.output.query_rows import Piece, QueryRows, ResultColumn
from hamlet.output.time_text import time_text

Number = int | float | Decimal
CountTypes = str | Sequence[str | None]  # a count type, or what each column is (`hamlet.output.fitting`)

_ARROW_TYPES = {
    AttributeType.INT: pa.int64(),
    AttributeType.DOUBLE: pa.float64(),
    AttributeType.STRING: pa.string(),
    AttributeType.BOOLEAN: pa.bool_(),
    AttributeType.TIMESTAMP: pa.timestamp("us"),
    AttributeType.DURATION: pa.duration("us"),
}
_COUNT_ARROW_TYPES = {
    "auto": pa.string(),  # where no value is known
    TEXT: pa.string(),
    INT64: pa.int64(),
    REAL: pa.float64(),
    "double": pa.float64(),
    DECIMAL: pa.decimal128(38, 0),
    WIDE: pa.decimal256(76, 0),
}


def check_count_type(count_type: str) -> str:
    """The count type, if it is one; raises OptionError if not."""
    if count_type not in COUNT_TYPES:
        raise OptionError(f"count type {count_type!r} is unknown; it must be {one_of(COUNT_TYPES)}")
    return count_type


def unsettled(count_type: str) -> str:
    """The count type of rows that are not all there: under ``auto`` text, which holds whatever follows."""
    return TEXT if count_type == "auto" else count_type


def result_schema(columns: Sequence[ResultColumn], clock: Clock, count_type: CountTypes = "string") -> pa.Schema:
    """The Arrow schema of a query's result: query, window_start, window_end, then the columns.

    Windows of an integer clock are int64 whatever the width of the time column: the first window may start before 0 and
    the last end after the largest time. The count type ``auto`` is text here, where no value is known.
    """
    window = clock.shown_type
    fields = [("query", pa.string()), ("window_start", window), ("window_end", window)]
    types = count_type
    if isinstance(types, str):
        types = [types if is_counted(each) else None for each in columns]
    return pa.schema(fields + [(each.name, _arrow_type(each, kind)) for each, kind in zip(columns, types, strict=True)])


def _arrow_type(column: ResultColumn, count_type: str | None) -> pa.DataType:
    if is_counted(column) and count_type is not None:
        found = _COUNT_ARROW_TYPES[count_type]
        return pa.float64() if is_real(column) and not pa.types.is_string(found) else found
    if column.kind == "double":
        return pa.string() if count_type == TEXT else pa.float64()
    kind = column.arrow_type
    if kind is None or pa.types.is_null(kind):
        return _ARROW_TYPES[column.type]
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if column.kind == "extremum" and pa.types.is_decimal(kind):
        return pa.float64()  # the engine computes with doubles
    return plain_type(kind)


def to_arrow(rows: QueryRows, clock: Clock, count_type: CountTypes = "string") -> pa.Table:
    """The rows of one query as a table of `result_schema`; under ``auto`` in the types that hold these rows.

    Raises
    ------
    OutputError
        If a value does not fit the count type; the text names query, window and group.
    """
    if isinstance(count_type, str) and check_count_type(count_type) == "auto":
        count_type = fitted_types(rows)
    schema = result_schema(rows.columns, clock, count_type)
    names = pa.repeat(scalar(rows.name), max((len(piece.starts) for piece in rows.pieces), default=0))
    batches = []
    for piece in rows.pieces:
        columns = [names.slice(0, len(piece.starts))]
        columns += [
            shown(from_numpy(edges.column(), missing=edges.missing), clock.shown_type)
            for edges in (piece.starts, piece.ends)
        ]
        columns += [
            _array(rows, piece, place, schema.field(3 + place).type, clock, count_type)
            for place in range(len(rows.columns))
        ]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return pa.Table.from_batches(batches, schema)


def _array(
    rows: QueryRows, piece: Piece, place: int, kind: pa.DataType, clock: Clock, count_type: CountTypes
) -> pa.Array:
    """A column of a piece in an Arrow type."""
    values = piece.values[place]
    if rows.columns[place].kind in ("attribute", "extremum"):
        return _plain_array(values, kind)
    direct = _direct(values.data, kind, infinite=count_type == "double")
    if direct is not None:
        return _numbers(direct, kind, None if values.valid is None or values.valid.all() else ~values.valid)
    return _fitted(rows, piece, place, kind, clock, count_type)


def _plain_array(values: Values, kind: pa.DataType) -> pa.Array:
    if values.places is not None:
        known = _plain_array(Values(values.data, values.valid, values.objects), kind)
        if known.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            return known.take(from_numpy(values.places))
        numbers = to_numpy(known)
        bits = np.dtype(f"u{numbers.itemsize}")
        found = fresh(len(values.places), bits)
        placed(numbers.view(bits), values.places, found)
        return from_numpy(found.view(numbers.dtype))
    if isinstance(values.data, list):
        return from_list(values.data, kind)
    mask = None if values.valid is None or values.valid.all() else ~values.valid
    if values.objects is None:
        return _numbers(values.data, kind, mask)
    objects = from_list(values.objects or [None], kind)
    return objects.take(from_numpy(values.data, missing=mask))


def _direct(data: Any, kind: pa.DataType, infinite: bool) -> npt.NDArray[Any] | None:
    """Numbers as an array that Arrow turns into a type as `_fit` does; None where there is none."""
    if isinstance(data, Integers) and pa.types.is_floating(kind):
        return data.doubles()
    if isinstance(data, BeyondDoubles) and infinite:
        return data.nearest
    if not isinstance(data, np.ndarray):
        return None
    if data.dtype == np.int64 or pa.types.is_floating(kind):
        return data
    return data if pa.types.is_int64(kind) and (np.abs(data) < 2.0**63).all() else None


def _numbers(data: npt.NDArray[Any], kind: pa.DataType, mask: npt.NDArray[np.bool_] | None) -> pa.Array:
    if data.dtype == np.float64 and pa.types.is_int64(kind):
        data = np.rint(data).astype(np.int64)  # a COUNT in float mode is nearly an integer
    narrows = data.dtype == np.int64 and pa.types.is_integer(kind) and not pa.types.is_int64(kind)
    if narrows and len(data):  # a tenth of the time of a cast of few
        narrow = np.iinfo(kind.to_pandas_dtype())
        if narrow.min <= data.min() and data.max() <= narrow.max:
            data = data.astype(narrow.dtype, copy=False)
    return _cast(from_numpy(data, missing=mask), kind, safe=not pa.types.is_floating(kind))


def _cast(array: pa.Array, kind: pa.DataType, *, safe: bool = True) -> pa.Array:
    """An array in a type; there may be thousands of small ones, most of which have it."""
    return array if array.type.equals(kind) else array.cast(kind, safe=safe)


def _fitted(
    rows: QueryRows, piece: Piece, place: int, kind: pa.DataType, clock: Clock, count_type: CountTypes
) -> pa.Array:
    """Numbers of any size in an Arrow type."""
    values = piece.values[place].tolist()
    if pa.types.is_string(kind):  # whatever the number is, it fits
        return from_list([None if value is None else number_text(value) for value in values], kind)
    fitted: list[Any] = []
    for row, value in enumerate(values):
        try:
            fitted.append(None if value is None else _fit(value, kind, infinite=count_type == "double"))
        except _UnfitError as error:
            raise _unfit(rows, next(islice(piece.tuples(), row, None)), place, clock, str(error)) from None
    return from_list(fitted, kind)


class _UnfitError(Exception):
    """A number does not fit the Arrow type that the text names."""


def _fit(value: Number, kind: pa.DataType, infinite: bool) -> int | float | Decimal:
    """One number in an Arrow type; _UnfitError names the type that it does not fit."""
    if pa.types.is_floating(kind):
        real = nearest_double(value)
        if math.isinf(real) and not isinstance(value, float) and not infinite:
            raise _UnfitError("a double")
        return real
    is_int64 = pa.types.is_int64(kind)
    low, high = (-(2**63), 2**63) if is_int64 else (1 - 10**kind.precision, 10**kind.precision)
    if not low <= value < high:
        raise _UnfitError("int64" if is_int64 else f"decimal({kind.precision}, 0)")
    whole = round(value)  # a COUNT in float mode is nearly an integer
    return whole if is_int64 else Decimal(whole)


def _unfit(rows: QueryRows, row: tuple[Any, ...], place: int, clock: Clock, what: str) -> OutputError:
    start, end, *values = row
    named = zip(rows.columns, values, strict=True)
    group = ", ".join(f"{column.name}={value}" for column, value in named if column.kind == "attribute")
    text = number_text(values[place])
    shown = text if len(text) <= 50 else f"{text[:20]}... ({len(text)} characters)"
    where = f"query {rows.name}, window [{time_text(start, clock)}, {time_text(end, clock)})"
    where += f", group {group}" if group else ""
    column = rows.columns[place]
    other = "auto makes it text" if column.kind == "double" else "string is exact"
    error = OutputError(
        f"{where}: {column.name} = {shown} does not fit {what}; the count type {other}, double may be inf"
    )
    groups = {
        column.name: value for column, value in zip(rows.columns, values, strict=True) if column.kind == "attribute"
    }
    return error.about(query=rows.name, window=(start, end), group=groups, column=rows.columns[place].name)


def count_infinite(table: pa.Table, columns: Sequence[ResultColumn]) -> int:
    """How many COUNT and SUM values of a table in doubles are beyond the double range."""
    summed = [place for place, column in enumerate(columns, 3) if column.kind in ("count", "sum")]
    doubles = [table.column(place) for place in summed if pa.types.is_floating(table.schema.types[place])]
    numbers = (chunk.to_numpy(zero_copy_only=False) for column in doubles for chunk in column.chunks)
    return sum(int(np.count_nonzero(np.isinf(each))) for each in numbers)
