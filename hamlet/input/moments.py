"""Times as programs have them: ISO 8601 text and floats of seconds, as the timestamps that the engine orders events by.

CSV files are read so already. Text is as in CSV, ``2024-03-05``, ``2024-03-05 10:00:00`` or
``2024-03-05T10:00:00+02:00``, all with a zone or all without. A float counts units of the time unit (seconds, unless
told otherwise) from 1970 and becomes a timestamp of microseconds, so windows come back as timestamps.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import DataError
from hamlet.input.widening import is_text
from hamlet.language.schema import UNITS_PER_SECOND

_ZONED = r"(Z|[+-]\d\d(:?\d\d)?)$"
_MICROS = 1_000_000


def needs_reading(kind: pa.DataType) -> bool:
    """Whether a time column of this type is text or floats."""
    return is_text(kind) or bool(pa.types.is_floating(kind))


def with_moments(table: pa.Table, time_column: str, time_unit: str, first_event: int = 0) -> pa.Table:
    """A table whose time column is text or floats, with timestamps in their place; any other table as it is.

    Parameters
    ----------
    table : pyarrow.Table
    time_column : str
    time_unit : {'s', 'ms', 'us', 'ns'}
        What a float counts.
    first_event : int
        How many events came before these, for messages.

    Raises
    ------
    DataError
        At the first text that is no time, or the first float that is none.
    """
    place = table.schema.get_field_index(time_column)
    if place < 0 or not table.num_rows or not needs_reading(table.schema.field(place).type):
        return table
    column = table.column(place)
    if is_text(column.type):
        values = _of_text(column.cast(pa.string()), time_column, first_event)
    else:
        values = _of_floats(column, time_column, time_unit, first_event)
    return table.set_column(place, time_column, values)


def moment(text: str) -> pa.Scalar | None:
    """The timestamp that a text is, with the zone UTC where it has one; None for a text that is none."""
    zone = "UTC" if re.search(_ZONED, text.strip()[10:]) else None
    for unit in ("us", "ns"):
        try:
            return pa.scalar(text.strip()).cast(pa.timestamp(unit, zone))
        except pa.ArrowInvalid:
            continue
    return None


def _of_text(column: pa.ChunkedArray, name: str, first_event: int) -> pa.ChunkedArray:
    zoned = pc.match_substring_regex(pc.utf8_slice_codeunits(pc.utf8_trim_whitespace(column), 10), _ZONED)
    some, every = pc.any(zoned).as_py(), pc.all(zoned).as_py()
    if some and not every:
        row = pc.index(pc.xor(zoned, zoned[0]), True).as_py()
        raise DataError(
            f"the time column '{name}' mixes times with and without a zone: event {first_event + row + 1} has "
            f"{column[row].as_py()!r}; give all of them a zone, or none"
        ).about(row=first_event + row + 1, column=name)
    trimmed = pc.utf8_trim_whitespace(column)
    for unit in ("us", "ns"):
        try:
            return trimmed.cast(pa.timestamp(unit, "UTC" if some else None))
        except pa.ArrowInvalid:
            continue
    row, value = next((row, text) for row, text in enumerate(column.to_pylist()) if text and moment(text) is None)
    raise DataError(
        f"the time column '{name}' holds {value!r} in event {first_event + row + 1}; it must hold integers, or times "
        "such as 2024-01-31T12:00:00, all with a zone or all without"
    ).about(row=first_event + row + 1, column=name)


def _of_floats(column: pa.ChunkedArray, name: str, unit: str, first_event: int) -> pa.ChunkedArray:
    values = column.cast(pa.float64()).to_numpy()
    scale = Fraction(_MICROS, UNITS_PER_SECOND[unit])
    with np.errstate(invalid="ignore", over="ignore"):
        micros = np.rint(values * float(scale))
    wrong = ~(np.abs(micros) < 2.0**61) & ~np.isnan(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        text = f"the time column '{name}' holds {float(values[row])} in event {first_event + row + 1}"
        raise DataError(text).about(row=first_event + row + 1, column=name)
    missing = np.isnan(values)
    ticks: Any = np.where(missing, 0, micros).astype(np.int64)
    return pa.chunked_array([pa.array(ticks, mask=missing).cast(pa.timestamp("us"))])
