"""Numbers that are lengths of time: of an attribute that is declared DURATION, JSON, CSV and dicts give the seconds.

Source: docs/language.md ("Times").
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.files_protocol import Reader

_MICROS = 1_000_000
_MOST = (1 << 63) - 1
_Rows = TypeVar("_Rows", pa.Table, pa.RecordBatch)


def is_seconds(arrow: pa.DataType) -> bool:
    """Whether a column of this type can hold numbers of seconds."""
    return bool(pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow))


def with_durations(rows: _Rows, names: Collection[str]) -> _Rows:
    """The rows with columns of seconds as durations of microseconds, rounded half to even.

    Raises
    ------
    DataError
        A length that 64 bits cannot hold.
    """
    for name in names:
        place = rows.schema.get_field_index(name)
        if place >= 0 and is_seconds(rows.schema.field(place).type):
            rows = rows.set_column(place, name, _durations(rows.column(place), name))
    return rows


def _durations(column: pa.Array | pa.ChunkedArray, name: str) -> pa.Array:
    if pa.types.is_floating(column.type):
        values: Any = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        missing = np.isnan(values)
        seconds = np.floor(np.where(missing, 0.0, values))
        if not (np.abs(seconds) < _MOST / _MICROS - 1).all():
            raise _too_long(name, values[np.argmax(~(np.abs(seconds) < _MOST / _MICROS - 1))])
        # in two parts: a whole and a rest times a million are exact enough to find the nearest microsecond
        ticks = seconds.astype(np.int64) * _MICROS + np.rint(
            (np.where(missing, 0.0, values) - seconds) * _MICROS
        ).astype(np.int64)
        return pa.array(ticks, mask=missing).cast(pa.duration("us"))
    told = [None if each is None else Decimal(each) * _MICROS for each in column.to_pylist()]
    for each in told:
        if each is not None and abs(each) > _MOST:
            raise _too_long(name, each / _MICROS)
    return pa.array([None if each is None else round(each) for each in told], pa.int64()).cast(pa.duration("us"))


def _too_long(name: str, value: Any) -> DataError:
    return DataError(f"column '{name}' holds {value} seconds, which is too long for a DURATION")


class Durations:
    """The rows of a reader of text, with columns of seconds as durations."""

    def __init__(self, reader: Reader, names: Collection[str]) -> None:
        self.reader = reader
        self.name = reader.name
        self.rows = reader.rows
        self.ordered = reader.ordered
        self._names = [name for name in names if name in reader.schema.names]
        self.schema: pa.Schema = with_durations(reader.schema.empty_table(), self._names).schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows, in their order."""
        for batch in self.reader.batches(columns):
            yield with_durations(batch, self._names)
