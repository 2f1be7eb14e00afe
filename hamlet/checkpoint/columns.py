"""Arrow columns, tables and partition keys as plain bytes with a description in JSON, and back.

A description says what the bytes are; the bytes follow one another in the order of the descriptions. Arrow's own stream
format is not used: its compressed buffers let few bytes ask for any amount of memory.

Contract
--------
**Arrays** are their Arrow buffers, as long as the description says. What `BlobReader` gives has passed Arrow's full
validation and is a copy. **Types** are those that the engine reads (`hamlet.input.widening.plain_type`) and no others.
**Errors** of a reader are `ValueError`s: the bytes are to blame, whatever is wrong with them.
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.widening import is_text
from hamlet.language.schema import duration

Json = Any
Key = tuple[Any, ...]

WORD = 8  # every blob begins at a multiple of it
_MOST_KINDS = 1 << 16
_MOST_SCALE = 1 << 15
_TEXT = (pa.string(), pa.large_string(), pa.large_binary())
_INTEGERS = tuple(pa.type_for_alias(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64))
_NAMED = {
    str(type): type for type in (pa.null(), pa.bool_(), *_INTEGERS, pa.float32(), pa.float64(), pa.date32(), *_TEXT)
}
_DECIMALS = {32: pa.decimal32, 64: pa.decimal64, 128: pa.decimal128, 256: pa.decimal256}
_DIGITS = pa.decimal256(76, 0)  # of any decimal that Arrow has
_LENGTHS = (datetime.timedelta, np.timedelta64)
_LONG = datetime.timedelta(microseconds=2**63 - 1)
_KINDS = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.large_string(), datetime.date: pa.date32()}


# ---------------------------------------------------------------------------------------------------- JSON


def whole(value: Json, low: int = 0, high: int = 2**63 - 1) -> int:
    """A whole number within bounds."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError("a number is out of its bounds")
    return value


def text(value: Json) -> str:
    """A string."""
    if not isinstance(value, str):
        raise ValueError("a string is missing")
    return value


def items(value: Json, length: int | None = None) -> list[Json]:
    """A list, of so many items if that is known."""
    if not isinstance(value, list) or (length is not None and len(value) != length):
        raise ValueError("a list is missing or too long or short")
    return value


def fields(value: Json, *names: str) -> list[Json]:
    """The fields of an object that has exactly these."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise ValueError("the fields of a description are not those of this format")
    return [value[name] for name in names]


# --------------------------------------------------------------------------------------------------- types


def described_type(type: pa.DataType) -> Json:
    """The description of a type; None for one that no column of the engine has."""
    if pa.types.is_timestamp(type):
        return ["timestamp", type.unit, type.tz]
    if pa.types.is_duration(type):
        return ["duration", type.unit]
    if pa.types.is_decimal(type):
        return ["decimal", type.bit_width, type.precision, type.scale]
    if pa.types.is_dictionary(type):
        value = described_type(type.value_type) if is_text(type) else None
        return None if value is None else ["dictionary", str(type.index_type), value, type.ordered]
    return str(type) if str(type) in _NAMED else None


def type_of(description: Json) -> pa.DataType:
    """The type of a description."""
    match description:
        case str() as name if name in _NAMED:
            return _NAMED[name]
        case ["duration", str() as unit] if unit in UNITS_PER_SECOND:
            return pa.duration(unit)
        case ["timestamp", str() as unit, (str() | None) as zone] if unit in UNITS_PER_SECOND:
            check_zone(zone)
            return pa.timestamp(unit, zone)
        case ["decimal", 32 | 64 | 128 | 256 as bits, int() as precision, int() as scale] if abs(scale) <= _MOST_SCALE:
            return _DECIMALS[bits](precision, scale)
        case ["dictionary", str() as index, str() as value, bool() as ordered] if _NAMED.get(index) in _INTEGERS:
            if _NAMED.get(value) in _TEXT:
                return pa.dictionary(_NAMED[index], _NAMED[value], ordered)
    raise ValueError("a column has a type that the engine does not read")


def check_zone(zone: str | None) -> None:
    """Raises where a time zone is not known on this machine."""
    if zone is not None:
        pa.scalar(0, pa.timestamp("us", zone)).as_py()


# ------------------------------------------------------------------------------------------------- writing


class BlobWriter:
    """Collects blobs.

    Attributes
    ----------
    parts : list of bytes-like
        The blobs so far, filled up to whole words.
    """

    def __init__(self) -> None:
        self.parts: list[Any] = []

    def blob(self, data: Any) -> int:
        """Append bytes, or an Arrow buffer; the description is their length."""
        length = len(data) if isinstance(data, bytes) else data.size
        self.parts += [data, bytes(-length % WORD)]
        return length

    def array(self, array: pa.Array | pa.ChunkedArray) -> Json:
        """Append an array of one of the engine's types."""
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        array = pa.concat_arrays(chunks) if chunks else pa.nulls(0, array.type)  # buffers of these rows alone
        described = {"type": described_type(array.type), "rows": len(array)}
        if pa.types.is_dictionary(array.type):
            return described | {"buffers": [], "parts": [self.array(array.indices), self.array(array.dictionary)]}
        valid, *others = array.buffers()
        buffers = [None if valid is None else self.blob(valid), *(self.blob(each or b"") for each in others)]
        return described | {"buffers": buffers, "parts": []}

    def table(self, table: pa.Table | None, names: Sequence[str]) -> Json:
        """Append the columns of a table that have one of these names."""
        if table is None:
            return None
        chosen = [name for name in table.column_names if name in names]
        return {"rows": table.num_rows, "columns": [[name, self.array(table.column(name))] for name in chosen]}

    def keys(self, keys: Sequence[Key], attributes: int) -> Json:
        """Append partition keys: per attribute one array of each kind of value, and which kind each key has."""
        columns = list(zip(*keys, strict=True)) if keys else [()] * attributes
        described = []
        for column in columns:
            kinds, of_row = _by_kind(column)
            described.append(
                {
                    "kinds": [[self.array(_array(kind)), _exponent(kind[0])] for kind in kinds],
                    "which": self.blob(of_row.tobytes()),
                }
            )
        return {"rows": len(keys), "columns": described}


def _by_kind(values: Sequence[Any]) -> tuple[list[list[Any]], npt.NDArray[np.uint16]]:
    """The values of each kind, and the kind of each value."""
    numbers: dict[Hashable, int] = {}
    members: list[list[Any]] = []
    of_row = []
    for value in values:
        number = numbers.setdefault(_kind(value), len(members))
        if number == len(members):
            members.append([])
        members[number].append(value)
        of_row.append(number)
    if len(members) > _MOST_KINDS:
        raise ValueError(f"a partition attribute has values in more than {_MOST_KINDS} time zones")
    return members, np.array(of_row, np.uint16)


def _kind(value: Any) -> Hashable:
    """Values of equal kind are one Arrow type, which gives the very same objects back."""
    if isinstance(value, datetime.datetime):
        return type(value), value.tzinfo
    if isinstance(value, _LENGTHS):
        return type(value), _unit(value)
    return type(value), _exponent(value)


def _unit(length: datetime.timedelta | np.timedelta64) -> str:
    """The unit in which a duration is kept: Python's may be too long for microseconds in 64 bits."""
    if isinstance(length, np.timedelta64):
        return np.datetime_data(length.dtype)[0]
    return "us" if abs(length) < _LONG else "ms"


def _exponent(value: Any) -> int | None:
    """The power of ten of a Decimal; None for all else."""
    return int(value.as_tuple().exponent) if isinstance(value, Decimal) else None


def _array(values: list[Any]) -> pa.Array:
    """The values of one kind; of decimals the digits without the exponent, since Arrow cannot take all back."""
    first = values[0]
    if first is None:
        return pa.nulls(len(values))
    if isinstance(first, datetime.datetime):
        unit = "us" if type(first) is datetime.datetime else "ns"  # Arrow gives nanoseconds in a subclass
        return pa.array(values, pa.timestamp(unit, pa.scalar(first).type.tz))
    if isinstance(first, _LENGTHS):
        return pa.array(values, pa.duration(_unit(first)))
    if isinstance(first, Decimal):
        return pa.array([_with_exponent(value, 0) for value in values], _DIGITS)
    return pa.array(values, _KINDS[type(first)])


def _with_exponent(value: Decimal, exponent: int) -> Decimal:
    sign, digits, _ = value.as_tuple()
    return Decimal((sign, digits, exponent))


# ------------------------------------------------------------------------------------------------- reading


class BlobReader:
    """Takes blobs in the order in which they were written.

    Parameters
    ----------
    data : memoryview
        Read-only bytes; `blob` gives views of them, all else are copies.
    """

    def __init__(self, data: memoryview) -> None:
        self._data = data

    def blob(self, length: Json) -> memoryview:
        """The next bytes."""
        size = whole(length, 0, len(self._data))
        found, self._data = self._data[:size], self._data[size + -size % WORD :]
        return found

    def end(self) -> None:
        """Raises where bytes are left."""
        if len(self._data):
            raise ValueError("there are bytes that nothing describes")

    def array(self, description: Json) -> pa.Array:
        """The next array."""
        about, rows, buffers, parts = fields(description, "type", "rows", "buffers", "parts")
        type, rows = type_of(about), whole(rows)
        if pa.types.is_dictionary(type):
            indices, dictionary = (self.array(part) for part in items(parts, 2))
            if indices.type != type.index_type or dictionary.type != type.value_type or len(indices) != rows:
                raise ValueError("a dictionary does not fit its column")
            array = pa.DictionaryArray.from_arrays(indices, dictionary, ordered=type.ordered)
        else:
            found = [None if each is None else pa.py_buffer(self.blob(each)) for each in items(buffers)]
            if rows == 0:
                return pa.nulls(0, type)
            if any(each is None for each in found[1:]):  # Arrow's validation reads all but validity unasked
                raise ValueError("a column lacks a buffer")
            array = pa.Array.from_buffers(type, rows, found)
        array.validate(full=True)
        return pa.concat_arrays([array])

    def table(self, description: Json, clock: str) -> pa.Table | None:
        """The next table; it has the column `clock`, without NULL, so that its rows are no more than its bytes."""
        if description is None:
            return None
        rows, columns = fields(description, "rows", "columns")
        rows = whole(rows, 0, len(self._data))
        found: dict[str, pa.Array] = {}
        for column in items(columns):
            name, about = items(column, 2)
            if text(name) in found or fields(about, "type", "rows", "buffers", "parts")[1] != rows:
                raise ValueError("the columns of a table do not fit together")
            found[name] = self.array(about)
        if clock not in found or found[clock].null_count:
            raise ValueError("a table lacks the time column")
        return pa.table(found)

    def keys(self, description: Json, attributes: int) -> tuple[list[Key], list[list[pa.DataType]]]:
        """The next partition keys, all different, and per attribute the types of its values."""
        rows, columns = fields(description, "rows", "columns")
        rows = whole(rows, 0, len(self._data) if attributes else 1)
        lists, types = [], []
        for column in items(columns, attributes):
            kinds, which = fields(column, "kinds", "which")
            arrays, values = [], []
            for kind in items(kinds):
                about, exponent = items(kind, 2)
                arrays.append(self.array(about))
                values.append(_values(arrays[-1], exponent))
            lists.append(_in_order(values, np.frombuffer(self.blob(which), np.uint16), rows))
            types.append([array.type for array in arrays])
        keys = list(zip(*lists, strict=True)) if attributes else [()] * rows
        if len(set(keys)) != rows:
            raise ValueError("two partitions have equal keys")
        return keys, types


def _values(array: pa.Array, exponent: Json) -> list[Any]:
    """The values of one kind of a partition attribute."""
    if array.null_count and not pa.types.is_null(array.type):
        raise ValueError("a partition attribute has a NULL of some type")
    if pa.types.is_duration(array.type):
        return [duration(ticks, array.type.unit) for ticks in array.cast(pa.int64()).to_pylist()]
    values: list[Any] = array.to_pylist()
    if array.type == _DIGITS:
        power = whole(exponent, -_MOST_SCALE, _MOST_SCALE)
        return [_with_exponent(value, power) for value in values]
    return values


def _in_order(values: list[list[Any]], of_row: npt.NDArray[np.uint16], rows: int) -> list[Any]:
    """The values of some kinds, merged in the order that `of_row` says."""
    if len(of_row) != rows or np.bincount(of_row, minlength=len(values)).tolist() != [len(each) for each in values]:
        raise ValueError("the kinds of a partition attribute do not fit its values")
    firsts = [each[0] for each in values if each and each[0] is not None]
    try:
        if not all(isinstance(each, _LENGTHS) for each in firsts):  # Python's and numpy's are ordered, though not by <
            sorted(firsts)
    except TypeError:
        raise ValueError("the values of a partition attribute have no order") from None
    if len(values) == 1:
        return values[0]
    iterators = [iter(each) for each in values]
    return [next(iterators[kind]) for kind in of_row.tolist()]
