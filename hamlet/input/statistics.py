"""What a Parquet file says of its row groups without being read: the least and the greatest value of each column.

Statistics are taken for what they prove and nothing more. NULL and NaN are not among the values between the bounds, a
text may be cut (the bounds then are still on the right side of every value), and where a writer has left statistics
out, or their type is not read here, nothing is known.
Source: the Parquet format, "Statistics" in parquet.thrift and "Column order".
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.widening import is_text
from hamlet.language.query import AttributeType
from hamlet.language.schema import Schema

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_SECONDS_PER_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of the values of a column in some rows.

    Attributes
    ----------
    rows : int
    nulls : int or None
        How many of the rows are NULL; None where nobody has counted them. NaN, which is read as NULL, is not counted.
    least, most : int, float, str, bool or None
        No other value is less or greater; ticks of the schema's unit for a TIMESTAMP. Both None where nothing is known.
    """

    rows: int
    nulls: int | None = None
    least: Any = None
    most: Any = None

    @property
    def known(self) -> bool:
        """Whether the values lie between two bounds."""
        return self.least is not None


BoundsOf = Callable[[str], Bounds]  # of a column by its name


class Statistics:
    """The bounds of the columns of a file, by row group.

    Parameters
    ----------
    metadata : pyarrow.parquet.FileMetaData
    arrow : pyarrow.Schema
        Of the file's columns.
    schema : Schema
        Of the input that the file belongs to: bounds are values in its types and units.
    constants : mapping of str to object
        Columns of which every row of the file has the same value, None for NULL; those of Hive's folders.
    """

    def __init__(
        self, metadata: pq.FileMetaData, arrow: pa.Schema, schema: Schema, constants: Mapping[str, Any]
    ) -> None:
        self._metadata, self._arrow, self._schema, self._constants = metadata, arrow, schema, constants
        self._places = _places(metadata, arrow)
        self._readers: dict[str, Callable[[Any], tuple[Any, Any]] | None] = {}

    def of(self, group: int) -> BoundsOf:
        """The bounds of the columns in a row group; a column that the file lacks is NULL in all rows."""
        found = self._metadata.row_group(group)
        rows = found.num_rows

        def bounds(name: str) -> Bounds:
            if name in self._constants:
                return _constant(self._constants[name], rows, self._schema.columns.get(name))
            if name not in self._arrow.names:
                return Bounds(rows, rows)
            if name not in self._places:
                return Bounds(rows)
            column = found.column(self._places[name])
            values = column.statistics if column.is_stats_set else None
            if values is None:
                return Bounds(rows)
            nulls = values.null_count if values.has_null_count else None
            read = self._reader(name)
            if read is None or not values.has_min_max:
                return Bounds(rows, nulls)
            try:
                least, most = read(values)
            except (ValueError, OverflowError, pa.ArrowException):  # such as a text that is cut within a letter
                return Bounds(rows, nulls)
            return Bounds(rows, nulls, least, most) if _ordered(least, most) else Bounds(rows, nulls)

        return bounds

    def _reader(self, name: str) -> Callable[[Any], tuple[Any, Any]] | None:
        """What reads the least and the greatest value of a column from its statistics; None where nothing does."""
        if name not in self._readers:
            kind = self._arrow.field(name).type
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            self._readers[name] = self._reader_for(name, kind)
        return self._readers[name]

    def _reader_for(self, name: str, kind: pa.DataType) -> Callable[[Any], tuple[Any, Any]] | None:
        wanted = self._schema.columns.get(name)
        if name == self._schema.clock.column and self._schema.clock.is_fraction:
            return None  # of floats and texts, in seconds
        if wanted is AttributeType.INT and pa.types.is_integer(kind):
            return lambda values: (int(values.min), int(values.max))
        if wanted is AttributeType.DOUBLE and kind in (pa.float32(), pa.float64()):
            return lambda values: (float(values.min), float(values.max))
        if wanted is AttributeType.DOUBLE and pa.types.is_integer(kind):  # of another file the values are DOUBLE
            return lambda values: (float(values.min), float(values.max))
        if wanted is AttributeType.STRING and is_text(kind):
            return lambda values: (str(values.min), str(values.max))
        if wanted is AttributeType.BOOLEAN and pa.types.is_boolean(kind):
            return lambda values: (bool(values.min), bool(values.max))
        if wanted is not AttributeType.TIMESTAMP:
            return None
        factor = self._ticks(name)
        return None if factor is None else lambda values: (values.min_raw * factor, values.max_raw * factor)

    def _ticks(self, name: str) -> int | None:
        """How many ticks of the schema's unit one step of a stored timestamp or date is; None where that is no number.

        The unit is the one that the file stores, whatever Arrow makes of it.
        """
        wanted = UNITS_PER_SECOND[self._schema.units[name][0]] if name in self._schema.units else 0
        stored = self._metadata.schema.column(self._places[name])
        logical = json.loads(stored.logical_type.to_json())
        if logical["Type"] == "Date" and stored.physical_type == "INT32":
            return _SECONDS_PER_DAY * wanted or None
        if logical["Type"] != "Timestamp" or stored.physical_type != "INT64":
            return None
        per = UNITS_PER_SECOND[_UNITS[logical["timeUnit"]]]
        return wanted // per if wanted >= per else None


def _places(metadata: pq.FileMetaData, arrow: pa.Schema) -> dict[str, int]:
    """The place of each column that is a top-level one, among the columns of a row group."""
    paths = [metadata.schema.column(place).path for place in range(metadata.num_columns)]
    places = {path: place for place, path in enumerate(paths)}
    flat = {field.name for field in arrow if not pa.types.is_nested(field.type)}
    return {name: places[name] for name in flat if paths.count(name) == 1}


def _ordered(least: Any, most: Any) -> bool:
    """Whether two values bound anything: no NaN, and not the wrong way round."""
    if isinstance(least, float) and (math.isnan(least) or math.isnan(most)):
        return False
    return bool(least <= most)


def _constant(value: Any, rows: int, kind: AttributeType | None) -> Bounds:
    if value is None:
        return Bounds(rows, rows)
    if kind is AttributeType.DOUBLE:
        value = float(value)
    of_kind = {AttributeType.INT: int, AttributeType.DOUBLE: float, AttributeType.STRING: str}
    known = kind in of_kind and isinstance(value, of_kind[kind])
    return Bounds(rows, 0, value, value) if known else Bounds(rows, 0)
