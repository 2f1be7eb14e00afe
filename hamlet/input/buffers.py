"""Between Arrow, numpy and Python by their buffers, where Arrow's own conversions would first import pandas.

`pyarrow.array`, `pyarrow.scalar` and `Array.to_numpy` look for objects of pandas and import it for that, which takes
longer than a small run. These functions share the same memory, and leave to Arrow what they cannot do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from hamlet.arrays import np, npt, pa, pc


@cache
def _kinds() -> dict[Any, pa.DataType]:
    """The types of numbers that both have, by numpy's."""
    signed = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    unsigned = (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    floats = {np.dtype(np.float32): pa.float32(), np.dtype(np.float64): pa.float64()}
    return {np.dtype(str(kind)): kind for kind in (*signed, *unsigned)} | floats


@cache
def _dtypes() -> dict[int, Any]:
    """Numpy's types of numbers by the number that Arrow's type has."""
    return {kind.id: dtype for dtype, kind in _kinds().items()}


@cache
def _classes() -> dict[int, type]:
    """The types of Python's that Arrow's hold, by number."""
    return {pa.int64().id: int, pa.float64().id: float, pa.bool_().id: bool}


def to_numpy(array: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """The values of an array, as ``array.to_numpy(zero_copy_only=False)`` gives them: no copy of plain numbers.

    Those of several chunks are copied.

    Examples
    --------
    >>> to_numpy(pa.array([1, 2, 3])[1:]), to_numpy(pa.array([True, False]))
    (array([2, 3]), array([ True, False]))
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    dtype = _dtypes().get(array.type.id)
    is_bool = dtype is None and pa.types.is_boolean(array.type)
    if not (dtype is not None or is_bool) or array.null_count:
        return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    rows, data = len(array), array.buffers()[1]
    if not rows:
        return np.empty(0, np.bool_ if dtype is None else dtype)
    if dtype is not None:
        return np.frombuffer(data, dtype, rows, array.offset * dtype.itemsize)
    start = array.offset // 8
    some = np.frombuffer(data, np.uint8, (array.offset + rows + 7) // 8 - start, start)
    bits = np.unpackbits(some, count=array.offset % 8 + rows, bitorder="little")
    return bits[array.offset % 8 :].view(np.bool_)


def values_of(column: Any) -> npt.NDArray[Any]:
    """The values of a column of plain numbers, numpy's or Arrow's, anything where it has NULL (`where_null`)."""
    if isinstance(column, np.ndarray):
        found: Any = column
        return np.asarray(
            found.data if hasattr(column, "mask") else found
        )  # of a masked array, the numbers without the mask
    if not column.null_count:
        return to_numpy(column)
    data = column.buffers()[1]
    return to_numpy(pa.Array.from_buffers(column.type, len(column), [None, data], offset=column.offset))


def where_null(column: Any) -> npt.NDArray[np.bool_] | None:
    """Where a column, numpy's or Arrow's, has NULL; None where it has none.

    Examples
    --------
    >>> where_null(pa.array([5, None, 7])[1:])
    array([ True, False])
    """
    if isinstance(column, np.ndarray):
        return getattr(column, "mask", None)
    if not column.null_count:
        return None
    valid = pa.Array.from_buffers(pa.bool_(), len(column), [None, column.buffers()[0]], offset=column.offset)
    return ~to_numpy(valid)


def as_stream(data: bytes) -> pa.BufferReader:
    """Bytes for Arrow's readers of text, in memory of Arrow's own.

    They read ahead in threads, which may outlive the call where the text is wrong. A thread that lets go of an object
    of Python's while the interpreter ends would abort the process.

    Examples
    --------
    >>> as_stream(b"a,b").read()
    b'a,b'
    """
    buffer = pa.allocate_buffer(len(data))
    memoryview(buffer).cast("B")[:] = data
    return pa.BufferReader(buffer)


def from_numpy(values: npt.NDArray[Any], *, missing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """An array of these values, as ``pyarrow.array(values, mask=missing)``: no copy of plain numbers.

    Parameters
    ----------
    values : numpy.ndarray
        Shape (rows,).
    missing : numpy.ndarray of bool, optional
        Shape (rows,): which rows are NULL.

    Examples
    --------
    >>> from_numpy(np.array([1, 2, 3]), missing=np.array([False, True, False])).to_pylist()
    [1, None, 3]
    """
    is_bool = values.dtype == np.bool_
    kind = pa.bool_() if is_bool else _kinds().get(values.dtype)
    if kind is None or values.ndim != 1:
        return pa.array(values, mask=missing)
    data = np.packbits(values, bitorder="little") if is_bool else np.ascontiguousarray(values)
    return pa.Array.from_buffers(kind, len(values), [_bits_of(missing), pa.py_buffer(data)])


def in_arrow(column: Any) -> Any:
    """A column of either kind as Arrow's."""
    return from_numpy(column) if isinstance(column, np.ndarray) else column


def from_texts(values: Sequence[str | None]) -> pa.Array:
    """An array of strings, as ``pyarrow.array(values, pyarrow.string())``.

    Examples
    --------
    >>> from_texts(["a", None, "bc"]).to_pylist()
    ['a', None, 'bc']
    """
    missing = np.array([value is None for value in values], np.bool_) if None in values else None
    texts = values if missing is None else [value or "" for value in values]
    joined = "".join(texts)  # type: ignore[arg-type]
    data = joined.encode()
    sizes = map(len, texts if len(data) == len(joined) else map(str.encode, texts))  # type: ignore[arg-type]
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(sizes, np.int64, len(texts)), out=ends[1:])
    kind = pa.string() if len(data) < 1 << 31 else pa.large_string()
    places = ends.astype(np.int32) if kind == pa.string() else ends
    return pa.Array.from_buffers(kind, len(texts), [_bits_of(missing), pa.py_buffer(places), pa.py_buffer(data)])


def _bits_of(missing: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Arrow's bits of the rows that have a value; None where all have one."""
    if missing is None or not missing.any():
        return None
    return pa.py_buffer(np.packbits(~missing, bitorder="little"))


def from_list(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An array of Python objects of a type, as ``pyarrow.array(values, kind)``."""
    if pa.types.is_string(kind) and all(value is None or type(value) is str for value in values):
        return from_texts(values)
    wanted = _classes().get(kind.id)
    if wanted is None or not all(type(value) is wanted for value in values):
        return pa.array(values, kind)
    try:
        return from_numpy(np.array(values, np.dtype(wanted)))
    except OverflowError:  # an integer of more than 64 bits, of which Arrow says more
        return pa.array(values, kind)


def filled(array: pa.Array, value: int | float | bool) -> pa.Array:
    """An array with a value in place of NULL, as ``pyarrow.compute.fill_null``."""
    return pc.fill_null(array, scalar(value).cast(array.type)) if array.null_count else array


def scalar(value: int | float | str | bool) -> pa.Scalar:
    """A scalar of an Arrow type that Arrow would take itself: int64, double, string or bool.

    Examples
    --------
    >>> scalar(5), scalar("a")
    (<pyarrow.Int64Scalar: 5>, <pyarrow.StringScalar: 'a'>)
    """
    return (from_texts([value]) if isinstance(value, str) else from_numpy(np.array([value])))[0]


def in_microseconds(column: Any) -> Any:
    """A column, its times cut to the microseconds that Python's own have where they are in nanoseconds."""
    kind = column.type
    is_finer = pa.types.is_timestamp(kind) and kind.unit == "ns"
    return column.cast(pa.timestamp("us", kind.tz), safe=False) if is_finer else column


def as_dicts(rows: pa.RecordBatch | pa.Table) -> list[dict[str, Any]]:
    """Rows with values of Python, times `in_microseconds`."""
    columns = {name: in_microseconds(rows.column(name)).to_pylist() for name in rows.schema.names}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
