"""Rows in the order of columns: each column as whole numbers in its order, and a sort by their digits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.uint64]
_DIGIT = 16  # bits, of which numpy sorts by counting
_WIDEST = 1 << 62


def codes_of(values: pa.Array, descending: bool = False, nulls_first: bool = False) -> Codes | None:
    """Whole numbers from 0 on in the order of values, NULL among them; None for a type that they are not made of."""
    missing = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else np.zeros(0, np.bool_)
    codes: Codes
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        found = values.dictionary_encode()
        rank = np.zeros(max(1, len(found.dictionary)), np.uint64)
        rank[pc.sort_indices(found.dictionary).to_numpy()] = np.arange(len(found.dictionary), dtype=np.uint64)
        codes = rank[found.indices.fill_null(0).to_numpy()]
    elif pa.types.is_integer(values.type) and values.type != pa.uint64():
        codes = _from_least(values.fill_null(0).to_numpy().astype(np.int64, copy=False), missing)
    elif pa.types.is_boolean(values.type):
        codes = values.fill_null(False).cast(pa.uint8()).to_numpy().astype(np.uint64)
    elif pa.types.is_date32(values.type) or pa.types.is_timestamp(values.type):
        whole = values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
        codes = _from_least(whole.fill_null(0).to_numpy().astype(np.int64, copy=False), missing)
    else:
        return None
    highest = codes.max(initial=0)
    if descending:
        codes = highest - codes
    if len(missing):
        if nulls_first:
            codes = codes + np.uint64(1)
        codes = np.where(missing, np.uint64(0) if nulls_first else highest + np.uint64(1), codes)
    return codes


def _from_least(values: npt.NDArray[np.int64], missing: npt.NDArray[np.bool_]) -> Codes:
    """Whole numbers less the least of them; where they lie too far apart their ranks."""
    there = values[~missing] if len(missing) else values
    if not len(there):
        return np.zeros(len(values), np.uint64)
    least, most = int(there.min()), int(there.max())
    if most - least >= _WIDEST:
        return np.unique(values, return_inverse=True)[1].astype(np.uint64)
    return np.where(missing, 0, values - least).astype(np.uint64) if len(missing) else (values - least).view(np.uint64)


def order_of(columns: Sequence[Codes]) -> npt.NDArray[np.int64] | None:
    """The places of rows in the order of columns, the first decides first; None where they stand so. It is stable."""
    order: npt.NDArray[np.int64] | None = None
    for codes in reversed(columns):
        here = codes if order is None else codes[order]
        if (here[1:] >= here[:-1]).all():
            continue
        for shift in range(0, int(here.max()).bit_length(), _DIGIT):
            step = np.argsort((here >> np.uint64(shift)).astype(np.uint16), kind="stable")
            order, here = step if order is None else order[step], here[step]
    return order


def borders_of(keys: Sequence[Codes], rows: int) -> npt.NDArray[np.int64]:
    """The first rows of runs of equal keys, and the end; shape (runs + 1,)."""
    if not rows:
        return np.zeros(1, np.int64)
    new = np.zeros(rows, np.bool_)
    new[0] = True
    for codes in keys:
        new[1:] |= codes[1:] != codes[:-1]
    return np.append(np.flatnonzero(new), rows).astype(np.int64)


def moved(values: pa.Array, step: int, borders: npt.NDArray[np.int64]) -> pa.Array:
    """The value so many rows further on, NULL beyond the end of a run."""
    rows, far = len(values), min(abs(step), len(values))
    nothing = pa.nulls(far, values.type)
    parts = [values.slice(far), nothing] if step > 0 else [nothing, values.slice(0, rows - far)]
    found = pa.concat_arrays(parts)
    beyond = np.zeros(rows, np.bool_)
    first, end = borders[:-1], borders[1:]
    for each in range(far):
        place = end - 1 - each if step > 0 else first + each
        beyond[place[(place >= first) & (place < end)]] = True
    if not pa.types.is_primitive(values.type):
        return pc.if_else(pa.array(beyond), pa.scalar(None, values.type), found)
    if found.null_count > far:
        beyond |= found.is_null().to_numpy(zero_copy_only=False)
    bits = pa.py_buffer(np.packbits(~beyond, bitorder="little"))
    return pa.Array.from_buffers(values.type, rows, [bits, found.buffers()[1]])


def whole_of(rows: pa.Table, name: str) -> pa.Array:
    """A column in one piece, not copied where it is one."""
    column = rows.column(name)
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def ends_within(times: npt.NDArray[np.float64], most: float, borders: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """By row, the first one of its partition that is later by more than `most`; the row itself where it has no time.

    Doubles are subtracted, since the sum of a time and a duration may be rounded to one that is later.
    """
    rows = np.arange(len(times), dtype=np.int64)
    low, high = rows, np.repeat(borders[1:], np.diff(borders))
    with np.errstate(invalid="ignore"):
        while (apart := high - low > 1).any():
            middle = (low + high) // 2
            inside = times[middle] - times <= most
            low, high = np.where(apart & inside, middle, low), np.where(apart & ~inside, middle, high)
    return np.where(np.isnan(times), rows, high)
