"""Results as frames: what pandas, polars, DuckDB and others read of a table of rows."""

from __future__ import annotations

import importlib
from typing import Any

import pyarrow as pa

from hamlet.errors import UnsupportedError


def pandas_of(table: pa.Table) -> Any:
    """A table as a pandas DataFrame; pandas must be installed.

    Integers stay integers: a column of them with NULL is of pandas' nullable type (``Int64``). Those beyond 64 bits are
    decimal.Decimal or text, as in the table.

    Examples
    --------
    >>> pandas_of(pa.table({"n": [27021597764222979, None]}))["n"].dtype
    Int64Dtype()
    """
    pandas = _module("pandas")
    columns = {
        place: column.to_pandas(types_mapper=_nullable if column.null_count else None)
        for place, column in enumerate(table.columns)
    }
    frame = pandas.DataFrame(columns, index=pandas.RangeIndex(table.num_rows))
    frame.columns = table.column_names
    return frame


def _nullable(kind: pa.DataType) -> Any:
    """pandas' type for integers and NULL."""
    if not pa.types.is_integer(kind):
        return None
    name = f"{'Int' if pa.types.is_signed_integer(kind) else 'UInt'}{kind.bit_width}"
    return _module("pandas").api.types.pandas_dtype(name)


def polars_of(rows: Any) -> Any:
    """What exports an Arrow stream as a polars DataFrame; polars must be installed."""
    return _module("polars").DataFrame(rows)


def exportable(table: pa.Table) -> pa.Table:
    """A table for other readers: decimals of more than 38 digits, which most of them do not know, are text."""
    for place, field in enumerate(table.schema):
        if pa.types.is_decimal256(field.type):
            texts = [None if each is None else f"{each:f}" for each in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise UnsupportedError(f"{name} is not installed; it comes with: pip install {name}") from None
