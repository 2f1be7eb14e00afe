"""Arrow types as the engine sees them: which type of the language a column has, and how two types become one.

Columns come in a few plain forms only (`plain_type`), so that everything behind the readers has few cases. Rules of
widening: INT with DOUBLE is DOUBLE, timestamps take the finer unit, a column without values takes any type, and all
else clashes.
Source: docs/language.md ("Attributes and declarations").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hamlet.arrays import pa, pc
from hamlet.errors import DataError
from hamlet.language.query import AttributeType

_FEW = 4096  # events whose places in a dictionary Arrow may look at one by one
WIDE_INTEGERS = pa.decimal256(76, 0)  # of integers of which some have more than 64 bits, where these are wanted
FRACTION = pa.duration("ns")  # of a time column: seconds with a fraction, counted in nanoseconds
EXACT_SECONDS = pa.decimal128(38, 9)  # in which they are read
_UNITS = ("s", "ms", "us", "ns")


def is_text(arrow: pa.DataType) -> bool:
    """Whether values are strings; a dictionary of strings counts."""
    if pa.types.is_dictionary(arrow):
        return is_text(arrow.value_type)
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow))


def is_bytes(arrow: pa.DataType) -> bool:
    """Whether values are bytes, which only a specification reads."""
    kinds = pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary
    return any(is_kind(arrow) for is_kind in kinds)


def attribute_type(arrow: pa.DataType) -> AttributeType | None:
    """The type of the language for an Arrow type; None for the null type and for types that the language lacks."""
    if pa.types.is_dictionary(arrow):
        return attribute_type(arrow.value_type)
    if pa.types.is_integer(arrow):
        return AttributeType.INT
    if pa.types.is_floating(arrow) or pa.types.is_decimal(arrow):
        return AttributeType.DOUBLE
    if pa.types.is_boolean(arrow):
        return AttributeType.BOOLEAN
    if pa.types.is_timestamp(arrow) or pa.types.is_date(arrow):
        return AttributeType.TIMESTAMP
    if pa.types.is_duration(arrow):
        return AttributeType.DURATION
    return AttributeType.STRING if is_text(arrow) else None


def is_readable(arrow: pa.DataType) -> bool:
    """Whether the engine can read a column of this type (a column without any value counts)."""
    return bool(pa.types.is_null(arrow)) or attribute_type(arrow) is not None


def is_clock(arrow: pa.DataType) -> bool:
    """Whether a column of this type can order events: integers, timestamps, dates, and seconds with a fraction."""
    whole = pa.types.is_integer(arrow) or pa.types.is_timestamp(arrow) or pa.types.is_date(arrow)
    return bool(whole) or arrow == FRACTION


def plain_type(arrow: pa.DataType) -> pa.DataType:
    """The form in which the engine gets a column.

    Unsigned 64-bit integers become int64 (checked when values are cast), half floats float32, string views string,
    dates date32, narrow decimals decimal128; a dictionary stays one only if it holds strings, with numbers wide enough
    for those of other batches. Other types stay as they are.
    """
    if pa.types.is_dictionary(arrow):
        value = plain_type(arrow.value_type)
        index = arrow.index_type if arrow.index_type.bit_width >= 32 else pa.int32()
        return pa.dictionary(index, value) if is_text(arrow) else value
    if pa.types.is_uint64(arrow):
        return pa.int64()
    if pa.types.is_float16(arrow):
        return pa.float32()
    if pa.types.is_decimal(arrow) and arrow.bit_width < 128:
        return pa.decimal128(arrow.precision, arrow.scale)  # Arrow can do little with narrower ones
    if pa.types.is_date64(arrow):
        return pa.date32()
    return pa.string() if pa.types.is_string_view(arrow) else arrow


def clock_type(arrow: pa.DataType) -> pa.DataType:
    """The plain type of a time or order column: a date becomes a timestamp of whole seconds."""
    return pa.timestamp("s") if pa.types.is_date(arrow) else plain_type(arrow)


def written_types(types: Mapping[str, pa.DataType], seconds: str | None) -> dict[str, pa.DataType]:
    """Types of columns of text: timestamps of whole seconds count microseconds, those of the column `seconds` apart."""
    found = dict(types)
    for name, kind in types.items():
        if pa.types.is_timestamp(kind) and kind.unit == "s" and name != seconds:
            found[name] = pa.timestamp("us", kind.tz)
    return found


def timestamp_unit(arrow: pa.DataType) -> tuple[str, str | None]:
    """Unit and zone of a timestamp, duration or date type; a date counts in seconds and has no zone."""
    if pa.types.is_duration(arrow):
        return arrow.unit, None
    return (arrow.unit, arrow.tz) if pa.types.is_timestamp(arrow) else ("s", None)


def widen(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """The narrowest type that holds the values of both; None where there is no such type."""
    if first.equals(second) or pa.types.is_null(second):
        return first
    if pa.types.is_null(first):
        return second
    kinds = attribute_type(first), attribute_type(second)
    if kinds == (AttributeType.INT, AttributeType.INT):
        return pa.int64()
    if EXACT_SECONDS in (first, second) and set(kinds) <= {AttributeType.INT, AttributeType.DOUBLE}:
        return EXACT_SECONDS
    if WIDE_INTEGERS in (first, second) and AttributeType.INT in kinds:
        return WIDE_INTEGERS
    if set(kinds) <= {AttributeType.INT, AttributeType.DOUBLE}:
        return pa.float64()
    if kinds == (AttributeType.STRING, AttributeType.STRING):
        return pa.large_string() if pa.large_string() in (first, second) else pa.string()
    if kinds == (AttributeType.TIMESTAMP, AttributeType.TIMESTAMP):
        return _widen_timestamps(first, second)
    if kinds == (AttributeType.DURATION, AttributeType.DURATION):
        return pa.duration(max(first.unit, second.unit, key=_UNITS.index))
    return _widen_nested(first, second)


def _widen_nested(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """The narrowest type of objects, or of lists, that holds those of both; some text within may look like a time."""

    def inner(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
        texts, times = map(is_text, (one, other)), map(pa.types.is_timestamp, (one, other))
        return pa.string() if any(texts) and any(times) else widen(one, other)

    if pa.types.is_list(first) and pa.types.is_list(second):
        wide = inner(first.value_type, second.value_type)
        return None if wide is None else pa.list_(wide)
    if not (pa.types.is_struct(first) and pa.types.is_struct(second)):
        return None
    found: dict[str, pa.DataType | None] = {}
    for field in (*first, *second):
        found[field.name] = inner(found.get(field.name) or pa.null(), field.type)
    return None if None in found.values() else pa.struct(list(found.items()))


def widen_clocks(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    """The type of times that holds those of both: integers among seconds with a fraction are seconds, too."""
    if FRACTION in (first, second) and (pa.types.is_integer(first) or pa.types.is_integer(second)):
        return FRACTION
    return widen(first, second)


def _widen_timestamps(first: pa.DataType, second: pa.DataType) -> pa.DataType | None:
    if pa.types.is_date(first) and pa.types.is_date(second):
        return pa.timestamp("s")
    (unit, zone), (other_unit, other_zone) = timestamp_unit(first), timestamp_unit(second)
    if (zone is None) != (other_zone is None):
        return None  # one is an instant, the other a reading of an unknown clock
    return pa.timestamp(max(unit, other_unit, key=_UNITS.index), zone)


def cast(column: Any, target: pa.DataType, name: str) -> Any:
    """An array or chunked array in another type, without a copy where the type is right already.

    Raises
    ------
    DataError
        If a value does not fit; the text names the column.
    """
    if column.type.equals(target):
        return column
    if target == EXACT_SECONDS and column.type == FRACTION:
        from hamlet.input.moments import exact_seconds

        return exact_seconds(column)
    if target == FRACTION and not (
        pa.types.is_null(column.type) or pa.types.is_duration(column.type)
    ):  # else durations
        from hamlet.input.moments import as_seconds

        return as_seconds(column, name)
    if pa.types.is_dictionary(column.type) and not pa.types.is_dictionary(target):
        column = column.cast(column.type.value_type)
    try:
        # An integer beyond 2^53 in a column that also holds doubles is rounded, as any mixed arithmetic would do.
        return column.cast(target, safe=not pa.types.is_floating(target))
    except pa.ArrowInvalid as error:
        raise DataError(f"column {name!r} ({column.type}) holds a value that does not fit {target}: {error}") from error


def with_null_columns(table: pa.Table) -> pa.Table:
    """A table whose dictionaries without any type, as pandas has of categories of nothing, are columns of NULLs."""
    for place, kind in enumerate(table.schema.types):
        if pa.types.is_dictionary(kind) and pa.types.is_null(kind.value_type):
            table = table.set_column(place, table.schema.names[place], pa.nulls(table.num_rows))
    return table


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly the schema's columns: cast where needed, NULL where the batch lacks one."""
    if batch.schema.equals(schema):
        return batch
    columns = []
    for field in schema:
        place = batch.schema.get_field_index(field.name)
        column = pa.nulls(batch.num_rows) if place < 0 else batch.column(place)
        columns.append(cast(column, field.type, field.name))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def validate(data: pa.Table | pa.RecordBatch) -> None:
    """Check Arrow data in full, as `validate(full=True)` does, but the places in a dictionary all at once.

    Raises
    ------
    pyarrow.ArrowInvalid
        Text that is no UTF-8, places beyond a dictionary, buffers that are too short.
    """
    data.validate()
    for column in data.columns:
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else (column,):
            if len(chunk) < _FEW or not pa.types.is_dictionary(chunk.type):
                chunk.validate(full=True)
                continue
            chunk.dictionary.validate(full=True)
            places = pc.min_max(chunk.indices)
            least, most = places["min"].as_py(), places["max"].as_py()
            if least is not None and not 0 <= least <= most < len(chunk.dictionary):
                raise pa.ArrowInvalid("a place in a dictionary is out of bounds")


def unified(table: pa.Table) -> pa.Table:
    """The table with one dictionary for all chunks of a column, so that its rows can be taken and its chunks joined."""
    try:
        return table.unify_dictionaries()
    except pa.ArrowInvalid:  # a dictionary that itself holds NULL
        for place, field in enumerate(table.schema):
            if pa.types.is_dictionary(field.type):
                table = table.set_column(place, field, _encoded_anew(table.column(place)))
        return table


def in_batches(table: pa.Table) -> list[pa.RecordBatch]:
    """A table as one batch, none where it has no rows (several where a column has more text than Arrow puts in one)."""
    if not all(column.num_chunks == 1 for column in table.columns):
        table = unified(table).combine_chunks()
    return table.to_batches() if table.num_rows else []


def _encoded_anew(column: pa.ChunkedArray) -> pa.ChunkedArray:
    index = column.type.index_type
    encoded = column.cast(column.type.value_type).dictionary_encode()
    chunks = [pa.DictionaryArray.from_arrays(chunk.indices.cast(index), chunk.dictionary) for chunk in encoded.chunks]
    return pa.chunked_array(chunks, column.type)


def merged_schema(schemas: Sequence[tuple[str, pa.Schema]], clock: str | None = None) -> pa.Schema:
    """One schema for several files: the union of the columns in first-seen order, types widened.

    Parameters
    ----------
    schemas : sequence of (str, pyarrow.Schema)
        A name for messages and the schema of each file; at least one.
    clock : str, optional
        The time column: whole seconds and seconds with a fraction are one kind.

    Raises
    ------
    DataError
        If one column has clashing types; the text names the column and both files.
    """
    types: dict[str, pa.DataType] = {}
    origin: dict[str, str] = {}
    for name, schema in schemas:
        for field in schema:
            known = types.get(field.name)
            widening = widen_clocks if field.name == clock else widen
            wide = field.type if known is None else widening(known, field.type)
            if wide is None:
                raise DataError(
                    f"column {field.name!r} is {_plain(known)} in {origin[field.name]} and {_plain(field.type)} in "
                    f"{name}; one column must have one type"
                )
            if known is None or not wide.equals(known):
                types[field.name], origin[field.name] = wide, name
    return pa.schema([pa.field(name, kind) for name, kind in types.items()])


def joined(tables: Sequence[pa.Table], clock: str | None = None) -> pa.Table:
    """Tables one below the other: types widened, NULL where one lacks a column, one dictionary per column.

    Parameters
    ----------
    tables : sequence of pyarrow.Table
    clock : str, optional
        As of `merged_schema`.

    Raises
    ------
    DataError
        As `merged_schema`.
    """
    if not all(table.schema.equals(tables[0].schema) for table in tables):
        schema = merged_schema([("events before", table.schema) for table in tables], clock)
        tables = [_conformed(table, schema) for table in tables]
    return unified(pa.concat_tables(tables))


def _conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    columns = []
    for field in schema:
        known = field.name in table.column_names
        columns.append(cast(table.column(field.name) if known else pa.nulls(len(table)), field.type, field.name))
    return pa.Table.from_arrays(columns, schema=schema)


def _plain(kind: pa.DataType | None) -> pa.DataType | None:
    """A type as users write it: of values that a file keeps in a dictionary, theirs."""
    return kind.value_type if kind is not None and pa.types.is_dictionary(kind) else kind
