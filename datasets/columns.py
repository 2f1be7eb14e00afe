"""Events in order: from unordered columns to a stream with a `seq` column.

Source: docs/numbers.md ("Time and order").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MICROSECONDS = 1_000_000  # per second


def names(codes: np.ndarray[Any, Any], values: Sequence[str]) -> pa.Array:
    """Strings from small integers.

    Parameters
    ----------
    codes : numpy.ndarray
        Shape (n,), an integer dtype; each is an index into `values`.
    values : sequence of str
        The strings.

    Returns
    -------
    pyarrow.StringArray
        Shape (n,). Plain strings, so that CSV, JSON and Parquet files of a stream all read back with one schema.
    """
    return pa.DictionaryArray.from_arrays(
        pa.array(codes.astype(np.int32)), pa.array(values, pa.string())
    ).dictionary_decode()


def in_order(table: pa.Table, by: Sequence[str]) -> pa.Table:
    """The events sorted, with their place in the stream as third column.

    Parameters
    ----------
    table : pyarrow.Table
        Columns in the order of the stream, without ``seq``.
    by : sequence of str
        Columns to sort by, all ascending; equal rows keep their order.

    Returns
    -------
    pyarrow.Table
        The same rows with ``seq`` (int32, 0, 1, 2, ...) after the first two columns.
    """
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in by])
    table = table.take(order).combine_chunks()
    seq = pa.array(np.arange(table.num_rows, dtype=np.int32))
    return table.add_column(2, pa.field("seq", pa.int32()), seq)


def stack(columns: Sequence[Mapping[str, pa.Array]], schema: pa.Schema) -> pa.Table:
    """Tables on top of each other; a column that one lacks is NULL there.

    Parameters
    ----------
    columns : sequence of mapping
        One mapping from column name to array per kind of event.
    schema : pyarrow.Schema
        Names, order and types of the result.
    """
    tables = []
    for part in columns:
        rows = len(next(iter(part.values())))
        arrays = [part[f.name].cast(f.type) if f.name in part else pa.nulls(rows, f.type) for f in schema]
        tables.append(pa.table(arrays, schema=schema))
    return pa.concat_tables(tables)
