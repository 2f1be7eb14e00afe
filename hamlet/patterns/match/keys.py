"""Partitions by the values of their columns, as texts by which tables, rows and saves know them."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa


def key_texts(columns: Sequence[pa.ChunkedArray]) -> list[str]:
    """By row, what its values are; those that are equal to the host have equal texts."""
    return [repr(row) for row in zip(*map(_plain, columns), strict=True)]


def key_of(text: str, kinds: Sequence[pa.DataType]) -> tuple[Any, ...]:
    """The values of a text, of columns of these types."""
    return tuple(_value(each, kind) for each, kind in zip(ast.literal_eval(text), kinds, strict=True))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Values that Python writes as literals: times are their ticks, decimals their digits, zeros have no sign."""
    if pa.types.is_floating(column.type):
        return [each if each is None or math.isfinite(each) else str(each) for each in _without_sign(column)]
    if pa.types.is_decimal(column.type):
        return [None if each is None else str(each) for each in column.to_pylist()]
    if pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(column.type) or pa.types.is_time64(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    return list(column.to_pylist())


def _without_sign(column: pa.ChunkedArray) -> list[Any]:
    return [0.0 if each == 0.0 else each for each in column.to_pylist()]


def _value(plain: Any, kind: pa.DataType) -> Any:
    if plain is None:
        return None
    if pa.types.is_floating(kind):
        return float(plain)
    if pa.types.is_decimal(kind):
        return pa.scalar(plain).cast(kind).as_py()
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.scalar(plain, pa.int32()).cast(kind).as_py()
    return pa.scalar(plain).cast(kind).as_py() if pa.types.is_temporal(kind) else plain
