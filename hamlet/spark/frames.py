"""The events of a job as Spark has them: numbered columns, their names, and the types in which the engine gets them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DayTimeIntervalType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from hamlet.errors import DataError
from hamlet.input.input_schema import plain_schema
from hamlet.input.moments import kind_of, needs_reading
from hamlet.input.ordering import SortKey
from hamlet.runtime.intake import ColumnOptions
from hamlet.spark.parts import Part


@dataclass(frozen=True)
class Events:
    """Events as Spark has them and as the engine shall get them.

    Attributes
    ----------
    frame : DataFrame
        Columns c0, c1, ...
    names : tuple of str
        What the workload calls them.
    schema : pyarrow.Schema
        The types in which the engine gets them, by name.
    parts : tuple of Part, optional
        The same events in files that tasks can read by themselves.
    """

    frame: DataFrame
    names: tuple[str, ...]
    schema: pa.Schema
    parts: tuple[Part, ...] | None = None

    @cached_property
    def columns(self) -> dict[str, tuple[Column, DataType]]:
        """Spark's columns by name."""
        fields = self.frame.schema.fields
        return {name: (col(field.name), field.dataType) for name, field in zip(self.names, fields, strict=True)}

    def select(self, names: Iterable[str]) -> DataFrame:
        """Some of the columns, in this order."""
        return self.frame.select(*(self.columns[name][0] for name in names))


def packed(fields: Mapping[str, str]) -> str:
    """A structure of Spark, of values by their names."""
    listed = [f"{value} AS {quoted(name)}" for name, value in fields.items()]
    return f"struct({', '.join(listed)})"


def quoted(name: str) -> str:
    """A name as Spark's identifier."""
    return f"`{name.replace('`', '``')}`"


def named(name: str) -> Column:
    """The column of a name."""
    return col(quoted(name))


def events_of(frame: DataFrame, options: ColumnOptions) -> Events:
    """The events of a DataFrame."""
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    fields = frame.schema.fields
    arrow = pa.schema([pa.field(field.name, arrow_type(field.dataType, zone)) for field in fields])
    key = SortKey(options.time_column, options.order_column)
    place = arrow.get_field_index(key.time)
    if place >= 0 and needs_reading(arrow.field(place).type):
        clock = kind_of(arrow.field(place).type)
        if clock is None:
            raise DataError(
                f"the DataFrame: the time column {key.time!r} holds text; cast it, to a timestamp or to decimal(19, 9)"
            )
        arrow = arrow.set(place, arrow.field(place).with_type(clock))
    numbered = frame.toDF(*(f"c{place}" for place in range(len(fields))))
    for field in numbered.schema.fields:
        if isinstance(field.dataType, NullType):  # without values: a type must be said all the same
            numbered = numbered.withColumn(field.name, col(field.name).cast("string"))
    return Events(numbered, tuple(field.name for field in fields), plain_schema(arrow, key, options.type_column))


_SAME = (NumericType, BooleanType, DateType, TimestampNTZType, DayTimeIntervalType, NullType)


def arrow_type(type: DataType, zone: str | None) -> pa.DataType:
    """The Arrow type of a Spark type; binary, which no attribute can have, for what the language lacks."""
    if isinstance(type, StringType):
        return pa.string()
    if isinstance(type, TimestampType):
        return pa.timestamp("us", zone)
    return to_arrow_type(type) if isinstance(type, _SAME) else pa.binary()


def arrow_schema(type: StructType) -> pa.Schema:
    """The Arrow types in which a task gives rows to Spark."""
    return pa.schema([pa.field(field.name, arrow_type(field.dataType, "UTC")) for field in type.fields])


def numbered(type: StructType) -> StructType:
    """Columns of these types as Spark has them on the way."""
    return StructType([StructField(f"c{place}", each.dataType) for place, each in enumerate(type.fields)])


_UNSIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20)}


def plain_in_spark(kind: pa.DataType) -> pa.DataType:
    """The type of Spark that holds an Arrow type: no dictionaries, no unsigned integers, microseconds alone."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else _UNSIGNED.get(kind, kind)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.string() if pa.types.is_null(kind) else kind
