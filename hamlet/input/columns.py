"""Arrow columns as the kernel's integers: 64-bit values with a validity byte, numbered strings.

Nothing here knows a query; it is where names and Python values end and integers begin.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.buffers import filled, to_numpy
from hamlet.input.moments import seconds
from hamlet.language.query import AttributeType

Int64Array = npt.NDArray[np.int64]
_FEW = 4096  # values of a dictionary, all of which are numbered whether a row has them or not
_LARGE = 1 << 18  # bytes
_ENTRY = 100  # bytes that a dict takes for an entry, with its number
# int64 or float64 values, and 1 where there is one (None: everywhere).
KernelColumn = tuple[npt.NDArray[Any], npt.NDArray[np.uint8] | None]


class StringPool:
    """Numbers for strings, in order of first sight, and the rank of each among all seen so far.

    Parameters
    ----------
    texts : iterable of str
        What has been seen before, by number.

    Attributes
    ----------
    ordered : bool
        Whether some predicate asks which of two strings is less; else nobody has to sort them.
    nbytes : int
        An estimate of the memory that they take.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.ordered = False
        self.nbytes = 0
        self._numbers: dict[str, int] = {}
        self._ranks: Int64Array | None = None
        for text in texts:
            self.number(text)

    def number(self, text: str) -> int:
        """The number of a string; a new one where it has not been seen."""
        seen = len(self._numbers)
        number = self._numbers.setdefault(text, seen)
        if number == seen:
            self.nbytes += sys.getsizeof(text) + _ENTRY
        return number

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def texts(self) -> list[str]:
        """The strings seen so far, by number."""
        return list(self._numbers)

    @property
    def ranks(self) -> Int64Array:
        """Rank by code points of each string number; shape (strings,), or one element where nobody asks (`ordered`)."""
        if not self.ordered:
            return np.zeros(1, np.int64)
        if self._ranks is None or len(self._ranks) != max(1, len(self._numbers)):
            self._ranks = np.zeros(max(1, len(self._numbers)), np.int64)
            for rank, text in enumerate(sorted(self._numbers)):
                self._ranks[self._numbers[text]] = rank
        return self._ranks

    def encode(self, array: pa.Array) -> KernelColumn:
        """Numbers of an Arrow string (or dictionary of strings) array."""
        array = as_dictionary(array, _FEW)
        texts = array.dictionary.to_pylist()
        numbers = np.array([0 if text is None else self.number(text) for text in texts] or [0], np.int64)
        indices = to_numpy(filled(array.indices, 0))
        valid = validity(array)
        if None in texts:  # a dictionary may itself hold a NULL
            present = np.array([text is not None for text in texts], np.uint8)[indices]
            valid = present if valid is None else valid & present
        return numbers[indices], valid


def as_dictionary(array: pa.Array, few: int) -> pa.DictionaryArray:
    """An array as a dictionary: its own, unless that has more values than there are rows, and more than `few`."""
    if pa.types.is_dictionary(array.type) and len(array.dictionary) > max(len(array), few):
        array = array.cast(array.type.value_type)
    return array if pa.types.is_dictionary(array.type) else array.dictionary_encode()


def validity(array: pa.Array) -> npt.NDArray[np.uint8] | None:
    """1 where an Arrow array has a value; None where it has no NULL."""
    if array.null_count == 0:
        return None
    valid: npt.NDArray[np.uint8] = to_numpy(array.is_valid()).astype(np.uint8)
    return valid


def column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """A column of a batch by name; None where it has none (dicts never gave the attribute)."""
    place = batch.schema.get_field_index(name)
    return None if place < 0 else batch.column(place)


def values_of(batch: pa.RecordBatch, name: str) -> list[str]:
    """The distinct values of a column of text, in order of appearance; none where the batch lacks it."""
    array = column(batch, name)
    if array is None or pa.types.is_null(array.type):
        return []
    return [str(each) for each in array.unique().drop_null().to_pylist()]


def integers(array: pa.Array, name: str) -> KernelColumn:
    """An Arrow integer, boolean, timestamp or date array as int64 values; dates in seconds."""
    valid = validity(array)
    if pa.types.is_date(array.type):
        array = array.cast(pa.timestamp("s"))
    if pa.types.is_timestamp(array.type) or pa.types.is_duration(array.type):
        array = array.cast(pa.int64())
    elif not pa.types.is_int64(array.type):
        try:
            array = array.cast(pa.int64())
        except pa.ArrowInvalid as error:
            raise DataError(f"column '{name}' holds an integer that does not fit into 64 bits") from error
    if valid is not None:
        array = filled(array, 0)
    return to_numpy(array), valid


def doubles(array: pa.Array) -> KernelColumn:
    """An Arrow number array as float64 values, times with a fraction as seconds; NaN is NULL."""
    valid = validity(array)
    if pa.types.is_duration(array.type):  # the time column
        array = seconds(array)
    values = to_numpy(filled(array.cast(pa.float64(), safe=False), 0.0))
    missing = np.isnan(values)
    if missing.any():
        valid = np.ones(len(values), np.uint8) if valid is None else valid
        valid = (valid & ~missing).astype(np.uint8)
    return values, valid


def values(batch: pa.RecordBatch, name: str, type: AttributeType | None, strings: StringPool) -> KernelColumn:
    """One attribute of a batch as kernel values.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    name : str
        The attribute; one that the batch lacks is all NULL.
    type : AttributeType or None
        What the column was compiled as; None for a column without values so far.
    strings : StringPool

    Returns
    -------
    tuple of (int64 or float64 array of shape (rows,), uint8 array of shape (rows,) or None)
    """
    array = column(batch, name)
    if array is None or pa.types.is_null(array.type) or type is None:
        empty = np.zeros(batch.num_rows, np.float64 if type is AttributeType.DOUBLE else np.int64)
        return empty, np.zeros(batch.num_rows, np.uint8)
    if type is AttributeType.STRING:
        return strings.encode(array)
    if type is AttributeType.DOUBLE:
        return doubles(array)
    return integers(array, name)


def fresh(size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A new array of shape (size,), of any numbers; a large one in Arrow's memory.

    The system gives memory at its first touch, page by page, which may take longer than to fill it. Arrow keeps large
    pieces for a while when it gets them back, and asks for pages that are larger.
    """
    dtype = np.dtype(dtype)
    if size * dtype.itemsize < _LARGE:
        return np.empty(size, dtype)
    return np.frombuffer(pa.allocate_buffer(size * dtype.itemsize), dtype)


def take(columns: KernelColumn, rows: Int64Array) -> KernelColumn:
    """The values of some rows."""
    data, valid = columns
    return data[rows], None if valid is None else valid[rows]


class BatchColumns:
    """The columns of a batch as kernel values, each made once, however many queries read it.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
    """

    def __init__(self, batch: pa.RecordBatch, strings: StringPool) -> None:
        self.batch = batch
        self.strings = strings
        self._found: dict[tuple[str, AttributeType | None], KernelColumn] = {}

    def values(self, name: str, type: AttributeType | None) -> KernelColumn:
        """One attribute (`values`)."""
        found = self._found.get((name, type))
        if found is None:
            found = self._found[name, type] = values(self.batch, name, type, self.strings)
        return found

    def integers(self, name: str) -> Int64Array:
        """The time or the order column, which have no NULL."""
        return integers(self.batch.column(name), name)[0]
