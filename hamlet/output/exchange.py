"""Results as one Arrow table or as numpy arrays, for whatever computes with them next.

Every table of `Results` and `Results` itself export an Arrow stream (``__arrow_c_stream__``), which DuckDB, polars,
Ibis, DataFusion and others read without a copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import OutputError


def union(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of all queries in one table.

    Parameters
    ----------
    tables : sequence of pyarrow.Table
        One per query, with its name in the column ``query``.

    Returns
    -------
    pyarrow.Table
        query, window_start, window_end, then the union of the RETURN names in first-use order; NULL where a query
        lacks one. The columns are those of the tables, not copied.

    Raises
    ------
    OutputError
        A name has two types.
    """
    fields: dict[str, pa.Field] = {}
    for field in (each for table in tables for each in table.schema):
        known = fields.setdefault(field.name, field)
        if known.type != field.type:
            raise OutputError(
                f"the column '{field.name}' is {known.type} in one query and {field.type} in another; rename one of "
                f"them (AS {field.name}_2), or take the queries one by one: results.table('q1')"
            )
    return pa.concat_tables([_widened(table, list(fields.values())) for table in tables]) if tables else pa.table({})


def _widened(table: pa.Table, fields: Sequence[pa.Field]) -> pa.Table:
    columns = [
        table.column(field.name) if field.name in table.column_names else pa.nulls(table.num_rows, field.type)
        for field in fields
    ]
    return pa.table(columns, schema=pa.schema(fields))


def arrays(table: pa.Table, objects: Mapping[str, Sequence[Any]]) -> dict[str, npt.NDArray[Any]]:
    """The columns of a table as numpy arrays, shape (rows,) each.

    Numbers and times without NULL are views of the table's memory where that lies in one piece; NULL becomes NaN or
    NaT, and None among texts and among integers that doubles would round.

    Parameters
    ----------
    table : pyarrow.Table
    objects : mapping of str to sequence
        Columns that become arrays of these Python objects (dtype object).

    Examples
    --------
    >>> arrays(pa.table({"n": ["18446744073709551616"]}), {"n": [2**64]})["n"] * 2
    array([36893488147419103232], dtype=object)
    """
    found: dict[str, npt.NDArray[Any]] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in objects:
            found[name] = np.empty(len(objects[name]), object)
            found[name][:] = objects[name]
        elif pa.types.is_integer(column.type) and column.null_count and _beyond_doubles(column):
            found[name] = np.array(column.to_pylist(), object)
        else:
            found[name] = column.to_numpy()
    return found


def _beyond_doubles(column: pa.ChunkedArray) -> bool:
    """Whether there are integers that doubles may round."""
    ends = pc.min_max(column).as_py()
    return any(end is not None and abs(end) > 2**53 for end in ends.values())
