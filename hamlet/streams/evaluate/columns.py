"""Columns of events as the cells that inputs are extended by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import DataError
from hamlet.input.buffers import filled, to_numpy
from hamlet.input.widening import is_bytes, is_text
from hamlet.streams.evaluate._words import Words
from hamlet.streams.program import ir
from hamlet.streams.program.tuples import digits_of, tuple_of

Cells = tuple["npt.NDArray[np.uint64] | None", "npt.NDArray[np.uint8] | None", "list[Any] | None"]
_PYTHON = {"Int": int, "UInt": int, "Float": float, "Bool": bool, "String": str}
# of their integers: those of fewer binary digits are exact
_DIGITS = {pa.float16(): ("half float", 11), pa.float32(): ("float", 24), pa.float64(): ("double", 53)}
_ARROW = {"Int": pa.int64(), "UInt": pa.uint64(), "Float": pa.float64(), "Bool": pa.bool_()}


def cells_of(
    column: Any, stream: ir.Stream, words: Words, source: str = "the events", first: int | None = 0
) -> Cells | None:
    """A column as 64-bit cells, a mask of the rows that have a value (None: all), and objects for tuples.

    Parameters
    ----------
    column : pyarrow Array or ChunkedArray
    stream : ir.Stream
        The input.
    words : Words
        Gives the codes of texts.
    source : str
        For messages.
    first : int or None
        Rows before these, for messages; None where these do not name rows.

    Returns
    -------
    tuple or None
        None where no row has a value.

    Raises
    ------
    DataError
        If a value is none of the input's type, or not a number (NaN).
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # a chunked dictionary stays one
            column = pa.concat_arrays(column.chunks)
    if pa.types.is_dictionary(column.type) and column.dictionary.null_count:
        column = column.dictionary_decode()
    if column.null_count == len(column):
        return None
    kind = stream.type
    if not isinstance(kind, ir.Scalar):
        return None, _mask(column), [tuple_of(each, stream, source) for each in column.to_pylist()]
    if kind.name == "Bytes":
        column = _digits(column, stream, source)
        if column.null_count == len(column):
            return None
    if kind.family == "String":
        return _strings(column, stream, words, source), _mask(column), None
    cells = _numbers(column, stream, kind, source, first)
    return cells, _mask(column), None


def plain_cells(
    event: dict[Any, Any], inputs: Sequence[ir.Stream], time: str, words: Words
) -> list[Cells | None] | None:
    """The cells of one event, of each input; None where it has anything that `cells_of` would have to look at twice."""
    found: list[Cells | None] = []
    count = 1
    for stream in inputs:
        kind, value = stream.type, event.get(stream.name)
        given = type(value)
        if not isinstance(kind, ir.Scalar) or kind.name == "Bytes" or "." in stream.name:
            return None
        if stream.name in event:
            count += stream.name != time
        if value is None:
            found.append(None)
            continue
        family = kind.family
        if given is not _PYTHON[family] or value != value:
            return None
        if family == "String":
            try:
                letters = np.frombuffer(value.encode(), np.uint8)
            except UnicodeEncodeError:
                return None
            cells = np.zeros(1, np.uint64)
            words.codes(np.array((0, len(letters)), np.int64), letters, np.zeros(0, np.uint8), cells)
        elif family == "Float":
            cells = np.array((value,), np.float64).view(np.uint64)
        elif 0 <= value < 1 << 63:
            cells = np.array((value,), np.uint64)
        elif family == "Int" and -1 << 63 <= value < 0:
            cells = np.array((value,), np.int64).view(np.uint64)
        else:
            return None
        found.append((cells, None, None))
    return found if count == len(event) else None


def _digits(column: pa.Array, stream: ir.Stream, source: str) -> pa.Array:
    """A column of bytes, or of their digits, as digits; an empty text is no value."""
    if pa.types.is_null(column.type):
        return column
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (is_text(kind) or is_bytes(kind)):
        raise _wrong(column.type, stream, source)
    try:
        return pa.array(
            [None if each is None or each == "" else digits_of(each) for each in column.to_pylist()], pa.string()
        )
    except ValueError as error:
        raise DataError(f"{source}: {stream.name}: {error}") from None


def _mask(column: pa.Array) -> npt.NDArray[np.uint8] | None:
    if not column.null_count:
        return None
    mask: npt.NDArray[np.uint8] = to_numpy(column.is_valid()).astype(np.uint8)
    return mask


def _strings(column: pa.Array, stream: ir.Stream, words: Words, source: str) -> npt.NDArray[np.uint64]:
    if pa.types.is_dictionary(column.type):
        if is_text(column.type.value_type):
            codes = _codes(column.dictionary, words)
            places = to_numpy(filled(column.indices.cast(pa.int64()), 0))
            taken: npt.NDArray[np.uint64] = codes[places]
            return taken
        column = column.dictionary_decode()
    if not is_text(column.type):
        if not pa.types.is_integer(column.type):
            raise _wrong(column.type, stream, source)
        column = column.cast(pa.string())
    return _codes(column, words)


def _codes(column: pa.Array, words: Words) -> npt.NDArray[np.uint64]:
    """Codes of texts, 0 of nulls."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = column.cast(pa.large_string())
    _, offsets, letters = column.buffers()
    size = np.int64 if pa.types.is_large_string(column.type) else np.int32
    found: npt.NDArray[np.uint64] = np.zeros(len(column), np.uint64)
    if len(column) and offsets is not None:
        ends = np.frombuffer(offsets, size)[column.offset : column.offset + len(column) + 1].astype(np.int64)
        bytes_of = np.frombuffer(b"" if letters is None else letters, np.uint8)
        mask = _mask(column)
        words.codes(ends, bytes_of, np.zeros(0, np.uint8) if mask is None else mask, found)
    return found


def _wrong(found: pa.DataType, stream: ir.Stream, source: str) -> DataError:
    return DataError(
        f"{source}: column {stream.name!r} holds {found}, and input {stream.name} is of type {stream.type}"
    )


def _refuse_rounded(column: pa.Array) -> None:
    """Raise ValueError at a float that may have been another integer: doubles are rounded from 2^53 on."""
    name, digits = _DIGITS[column.type]
    far = pc.index(pc.greater_equal(pc.abs(column.cast(pa.float64())), 2.0**digits), True).as_py()
    if far >= 0:
        raise ValueError(
            f"{column[far]} is a {name}, and from 2^{digits} on {name}s do not tell integers apart; give integers"
        )


def _numbers(
    column: pa.Array, stream: ir.Stream, kind: ir.Scalar, source: str, first: int | None
) -> npt.NDArray[np.uint64]:
    target = _ARROW[kind.family]
    found = column.type
    if pa.types.is_dictionary(found):
        column = column.dictionary_decode()
        found = column.type
    number = pa.types.is_integer(found) or pa.types.is_floating(found) or pa.types.is_decimal(found)
    if pa.types.is_string_view(found):  # Arrow trims no views
        column = column.cast(pa.string())
    if not (number if kind.family != "Bool" else pa.types.is_boolean(found)) and not is_text(found):
        raise _wrong(found, stream, source)

    def cast(part: pa.Array) -> pa.Array:
        if is_text(found):
            return pc.utf8_trim_whitespace(part).cast(target)
        if pa.types.is_floating(found) and pa.types.is_integer(target):
            _refuse_rounded(part)
            part = part.cast(pa.float64())  # Arrow makes no integers of half floats
        return part.cast(target, safe=kind.family != "Float")

    try:
        column = cast(column)
    except (pa.ArrowException, ValueError) as error:
        place = _in_row(first, _first_that_fails(cast, column))
        raise DataError(
            f"{source}: column {stream.name!r} holds{place} what input {stream.name} of type {kind} cannot be: {error}"
        ) from error
    if kind.family == "Bool":
        flags = to_numpy(filled(column.cast(pa.uint8()), 0))
        bits: npt.NDArray[np.uint64] = flags.astype(np.uint64)
        return bits
    values = to_numpy(filled(column, 0))
    if kind.family == "Float" and np.isnan(values).any():
        place = _in_row(first, int(np.argmax(np.isnan(values))))
        raise DataError(f"{source}: column {stream.name!r} is not a number (NaN){place}")
    cells: npt.NDArray[np.uint64] = np.ascontiguousarray(values).view(np.uint64)
    return cells


def _first_that_fails(cast: Callable[[pa.Array], Any], column: pa.Array) -> int:
    """The place of the first value that cannot be cast, of a column that cannot."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            cast(column.slice(low, middle - low))
        except (pa.ArrowException, ValueError):
            high = middle
        else:
            low = middle
    return low


def _in_row(first: int | None, place: int) -> str:
    return "" if first is None else f" in row {first + place + 1} (the first row is 1)"
