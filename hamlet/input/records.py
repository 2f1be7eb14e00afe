"""Events given as Python objects: dicts of columns and iterables of dicts, as Arrow tables.

Values keep their type: ints are INT, floats and Decimals DOUBLE (but where a column is known to hold decimals), strings
STRING, bools BOOLEAN, dates and datetimes TIMESTAMP. Ints and floats of one attribute widen to DOUBLE; any other mix is
a mistake that names the first event that differs. Source: docs/language.md ("Attributes and declarations").
"""

from __future__ import annotations

import datetime
import decimal
import itertools
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.moments import times_of
from hamlet.input.widening import WIDE_INTEGERS, attribute_type, cast, widen

_CHUNK = 16_384  # dicts that become one record batch
_KINDS: tuple[tuple[tuple[type, ...], str], ...] = (
    # bool before int, numpy's durations before its integers: the former are subclasses of the latter.
    ((bool, np.bool_), "BOOLEAN"),
    ((datetime.timedelta, np.timedelta64), "DURATION"),
    ((int, np.integer), "INT"),
    ((float, np.floating, decimal.Decimal), "DOUBLE"),
    ((str,), "STRING"),
    ((datetime.date, np.datetime64), "TIMESTAMP"),
)


_EXACT = (int, np.integer, decimal.Decimal)
NO_DECIMALS: Mapping[str, pa.DataType] = {}


def _kind_of(kind: type) -> str | None:
    return next((name for classes, name in _KINDS if issubclass(kind, classes)), None)


def is_broken(text: str) -> bool:
    """Whether a text is not Unicode, which no column can hold."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def column_of(
    values: Sequence[Any],
    name: str,
    first_event: int = 0,
    wide: bool = False,
    exact: bool = False,
    decimals: Mapping[str, pa.DataType] = NO_DECIMALS,
) -> pa.Array:
    """Python values, None for NULL, as one Arrow array.

    Parameters
    ----------
    values : sequence
        Of one kind, or of ints and floats.
    name : str
        The attribute, for messages.
    first_event : int
        How many events came before these, for messages.
    wide : bool
        Whether ints beyond 64 bits, of up to 76 digits, make a column of decimals.
    exact : bool
        Whether Decimals keep their digits: times do.
    decimals : mapping of str to pyarrow.DataType
        The columns that are known to hold decimals, or integers of 64 bits without a sign: ints and Decimals keep
        their digits there.

    Returns
    -------
    pyarrow.Array
        int64, float64, string, bool, timestamp (with its zone), date32 or null; another type for values that the
        language has no type for.

    Raises
    ------
    DataError
        At a mix of types, an int beyond 64 bits, or values that Arrow cannot hold.
    """
    classes = set(map(type, values)) - {type(None)}
    kinds = {_kind_of(each) for each in classes}
    if len(kinds) > 1 and kinds != {"INT", "DOUBLE"}:
        _raise_mixed(values, name, first_event)
    try:
        if name in decimals and kinds and all(issubclass(each, _EXACT) for each in classes):
            kind = decimals[name]
            whole = pa.decimal128(38, 0) if pa.types.is_integer(kind) else kind
            return pa.array([None if value is None else _decimal(value) for value in values], whole).cast(kind)
        if kinds == {"INT"}:
            return pa.array(values, pa.int64())
        if "DOUBLE" in kinds:
            if "INT" in kinds and any(map(_is_beyond_64_bits, values)):
                raise OverflowError
            if exact and any(issubclass(each, decimal.Decimal) for each in classes):
                return times_of(values, name, first_event)
            return pa.array([None if value is None else float(value) for value in values], pa.float64())
        if kinds == {"TIMESTAMP"}:
            return _timestamps(values, classes, name, first_event)
        if kinds == {"DURATION"}:
            return _durations(values, classes, name)
        return pa.array(values)
    except OverflowError as error:
        large = [(row, value) for row, value in enumerate(values, first_event + 1) if _is_beyond_64_bits(value)]
        if not large:  # inside a list, or a date that Arrow cannot hold
            raise DataError(f"attribute {name!r}: cannot read these values: {error}") from error
        if wide and kinds == {"INT"} and all(abs(int(value)) < 10**76 for _, value in large):
            return pa.array([None if value is None else decimal.Decimal(int(value)) for value in values], WIDE_INTEGERS)
        row, value = large[0]
        raise DataError(
            f"attribute {name!r} of event {row} holds an integer of {int(value).bit_length()} bits; "
            "Hamlet reads integers of 64 bits (signed); give it as a string if it is only compared"
        ).about(row=row, column=name) from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"attribute {name!r}: cannot read these values: {error}") from error


def _decimal(value: Any) -> decimal.Decimal:
    """A whole number or a Decimal; raises at what is no number, which Arrow would take for NULL."""
    found = value if isinstance(value, decimal.Decimal) else decimal.Decimal(int(value))
    if not found.is_finite():
        raise ValueError(f"{value} is no number")
    return found


def _is_beyond_64_bits(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not -(2**63) <= int(value) < 2**63


def _timestamps(values: Sequence[Any], classes: set[type], name: str, first_event: int) -> pa.Array:
    if any(issubclass(each, np.datetime64) for each in classes):
        return _array_of(np.array([np.datetime64(value or "NaT") for value in values]), name)
    if any(issubclass(each, datetime.datetime) for each in classes):
        zoned = [value is not None and getattr(value, "tzinfo", None) is not None for value in values]
        given = [value is not None for value in values]
        if any(zoned) and zoned != given:
            row = next(row for row, value in enumerate(values) if given[row] and zoned[row] != zoned[given.index(True)])
            raise DataError(
                f"attribute {name!r} mixes times with and without a zone: event {first_event + row + 1} has "
                f"{values[row]!r}; give all of them a zone, or none"
            )
        midnight = datetime.time()
        values = [
            datetime.datetime.combine(value, midnight) if type(value) is datetime.date else value for value in values
        ]
    return pa.array(values)


def _durations(values: Sequence[Any], classes: set[type], name: str) -> pa.Array:
    if any(issubclass(each, np.timedelta64) for each in classes):
        return _array_of(
            np.array([np.timedelta64("NaT") if each is None else np.timedelta64(each) for each in values]), name
        )
    return pa.array(values, pa.duration("us"))


def _raise_mixed(values: Sequence[Any], name: str, first_event: int) -> NoReturn:
    """The error for a mix of types, at the first value that differs from the first one."""
    expected: str | None = ""
    for row, value in enumerate(values, first_event + 1):
        if value is None:
            continue
        kind = _kind_of(type(value))
        expected = kind if expected == "" else expected
        if {kind, expected} == {"INT", "DOUBLE"}:
            expected = "DOUBLE"
        elif kind != expected:
            raise _mix_error(name, row, value, expected)
    raise AssertionError("no two types")


def _mix_error(name: str, row: int, value: Any, expected: str | None) -> DataError:
    kind = _kind_of(type(value)) or type(value).__name__
    before = "values of another type" if expected is None else expected
    return DataError(
        f"attribute {name!r} of event {row} is {value!r} ({kind}), but {before} in the events before; "
        "an attribute must keep one type"
    ).about(row=row, column=name)


def table_of_columns(
    columns: Mapping[Any, Any],
    wide: bool = False,
    time: str | None = None,
    decimals: Mapping[str, pa.DataType] = NO_DECIMALS,
) -> pa.Table:
    """A dict of numpy arrays, Arrow arrays or lists of equal length as a table; number arrays are not copied.

    Raises
    ------
    DataError
        If a name is no string, a column is no one-dimensional array, or lengths differ.
    """
    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        if not isinstance(name, str):
            raise DataError(f"column names must be strings, not {name!r}")
        arrays[name] = _array_of(values, name, wide, name == time, decimals)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        (first, length), *others = lengths.items()
        name, other = next(pair for pair in others if pair[1] != length)
        raise DataError(f"columns differ in length: {first!r} has {length} values, {name!r} has {other}")
    return pa.table(arrays)


def _array_of(
    values: Any, name: str, wide: bool = False, exact: bool = False, decimals: Mapping[str, pa.DataType] = NO_DECIMALS
) -> Any:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if not isinstance(values, np.ndarray):
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise DataError(
                f"column {name!r} is {reprlib.repr(values)}; in a dict, each value must be a column (an array or a "
                "list); put a single event into a list: [event]"
            )
        return column_of(list(values), name, wide=wide, exact=exact, decimals=decimals)
    if values.ndim != 1:
        raise DataError(f"column {name!r} has {values.ndim} dimensions; it must have one")
    if values.dtype.hasobject:
        return column_of(values.tolist(), name, wide=wide, exact=exact, decimals=decimals)
    if values.dtype.kind == "M" and values.dtype.str[4:-1] not in ("s", "ms", "us", "ns", "D"):
        values = values.astype("datetime64[s]")  # Arrow has no hours, minutes or weeks
    if values.dtype.kind == "m" and values.dtype.str[4:-1] not in ("s", "ms", "us", "ns"):
        values = values.astype("timedelta64[s]")
    try:
        return pa.array(values.astype(values.dtype.newbyteorder("="), copy=False))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"column {name!r}: cannot read an array of {values.dtype}: {error}") from error


def table_of_records(
    events: Iterable[Mapping[str, Any]],
    first_event: int = 0,
    wide: bool = False,
    time: str | None = None,
    decimals: Mapping[str, pa.DataType] = NO_DECIMALS,
) -> pa.Table:
    """Dicts as one table: the union of their keys in first-seen order, NULL where a dict lacks one.

    Parameters
    ----------
    events : iterable of mapping
        Read once, a chunk at a time, so a generator never stands in memory as Python objects.
    first_event : int
        How many events came before these, for messages.
    wide : bool
        As of `column_of`.
    time : str, optional
        The time column, whose Decimals keep their digits.
    decimals : mapping of str to pyarrow.DataType
        As of `column_of`.

    Raises
    ------
    DataError
        As `column_of`, also where two chunks clash, or if an element is no dict or has a key that is no string.
    """
    batches: list[pa.RecordBatch] = []
    types: dict[str, pa.DataType] = {}
    for start, chunk in _chunks(events, first_event):
        names = _names(chunk, start)
        arrays = [
            column_of([event.get(name) for event in chunk], name, start, wide, name == time, decimals) for name in names
        ]
        for name, array in zip(names, arrays, strict=True):
            known = types.get(name, pa.null())
            both = widen(known, array.type)
            if both is None:
                row = start + int(np.argmin(array.is_null().to_numpy(zero_copy_only=False)))
                raise _mix_error(name, row + 1, array[row - start].as_py(), _type_name(known))
            types[name] = both
        # A batch without columns would forget its number of rows, and an event without keys is still an event.
        batches.append(pa.RecordBatch.from_arrays(arrays, names=names) if names else _blank(len(chunk)))
    schema = pa.schema(list(types.items()))
    columns = [
        pa.chunked_array([_chunk_of(batch, name, kind) for batch in batches], kind) for name, kind in types.items()
    ]
    return pa.Table.from_arrays(columns, schema=schema) if columns else pa.Table.from_batches(batches or [_blank(0)])


def _chunk_of(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    place = batch.schema.get_field_index(name)
    return pa.nulls(batch.num_rows, kind) if place < 0 else cast(batch.column(place), kind, name)


def _blank(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))


def _type_name(arrow: pa.DataType) -> str:
    kind = attribute_type(arrow)
    return str(arrow) if kind is None else kind.value


def _chunks(events: Iterable[Any], first_event: int) -> Iterator[tuple[int, list[Any]]]:
    iterator = iter(events)
    start = first_event
    while chunk := list(itertools.islice(iterator, _CHUNK)):
        for each in set(map(type, chunk)):
            if not issubclass(each, Mapping):
                row = next(row for row, event in enumerate(chunk, start + 1) if isinstance(event, each))
                raise DataError(f"event {row} is of type {each.__name__}; each event must be a dict of attributes")
        yield start, chunk
        start += len(chunk)


def _names(chunk: list[Mapping[Any, Any]], start: int) -> list[str]:
    names = list(dict.fromkeys(itertools.chain.from_iterable(chunk)))
    for name in names:
        if not isinstance(name, str):
            row = next(row for row, event in enumerate(chunk, start + 1) if name in event)
            raise DataError(f"event {row} has the key {name!r}; names of attributes must be strings")
    return names
