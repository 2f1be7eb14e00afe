"""Rows of queries as text, a piece at a time: JSON lines and CSV.

In JSON, integers are written in full as numbers, times as ISO 8601 strings, and infinite doubles (which JSON does not
have) as null. In CSV, NULL is an empty field and an empty string is ``""``.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from hamlet.errors import OptionError
from hamlet.language.schema import Clock
from hamlet.output.columnar import Encoder
from hamlet.output.digits import number_text, seconds_text
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.output.time_text import time_text

EDGES = ("window_start", "window_end")


class QueryText(Encoder):
    """An encoder for the rows of a query."""

    def each(self, rows: QueryRows) -> Iterator[str]:
        """A line per row."""
        raise NotImplementedError

    def lines(self, rows: QueryRows) -> str:
        """The text of rows."""
        return "".join(self.each(rows))


def query_text(
    output_format: str,
    clock: Callable[[], Clock],
    columns: Sequence[str],
    *,
    lead: bool,
    header: Sequence[str] | None = None,
) -> QueryText:
    """An encoder for the rows of a query.

    Parameters
    ----------
    output_format : {'json', 'csv'}
    clock : callable
        Gives the clock of the rows, which is known once there are some.
    columns : sequence of str
        Of the rows; those of other queries that are in the same CSV are empty.
    lead : bool
        Whether each row names its query.
    header : sequence of str, optional
        The columns of CSV where they are not those of the query.

    Raises
    ------
    OptionError
        If the format cannot be text.
    """
    if output_format == "json":
        return _Json(clock, lead)
    if output_format == "csv":
        return _Csv(clock, header if header is not None else [*(["query"] if lead else []), *columns])
    raise OptionError(f"rows of queries are written as json or csv, not as {output_format}")


class _Json(QueryText):
    def __init__(self, clock: Callable[[], Clock], lead: bool) -> None:
        self._clock, self._lead = clock, lead

    def each(self, rows: QueryRows) -> Iterator[str]:
        """A line per row."""
        # json.dumps cannot write long integers, so numbers are put between the parts that it wrote.
        clock = self._clock()
        query = f'"query": {_json_text(rows.name)}, ' if self._lead else ""
        keys = [f", {_json_text(column.name)}: " for column in rows.columns]
        quoted = '"' if clock.is_timestamp else ""
        window, head = None, ""
        for row in rows.rows:
            if window != row[:2] or not head:  # many rows are of one window
                window = row[:2]
                start, end = ("null" if edge is None else f"{quoted}{edge}{quoted}" for edge in _edges(row, clock))
                head = f'{{{query}"window_start": {start}, "window_end": {end}'
            parts = [head]
            for key, column, value in zip(keys, rows.columns, row[2:], strict=True):
                parts += key, _json_value(value, column)
            yield "".join(parts) + "}\n"


class _Csv(QueryText):
    def __init__(self, clock: Callable[[], Clock], header: Sequence[str]) -> None:
        self._clock, self._header = clock, list(header)

    def head(self) -> str:
        """The names of the columns."""
        return _csv_line(self._header)

    def each(self, rows: QueryRows) -> Iterator[str]:
        """A line per row."""
        clock, columns = self._clock(), rows.columns
        known = {name: place for place, name in enumerate(["query", *EDGES, *(each.name for each in columns)])}
        places = [known.get(name, -1) for name in self._header]
        for row in rows.rows:
            own = map(_text, row[2:], columns)
            values = [rows.name, *_edges(row, clock), *own, None]
            yield _csv_line([values[place] for place in places])


def _edges(row: tuple[Any, ...], clock: Clock) -> tuple[str | None, str | None]:
    """Beginning and end of a row's window as text; None where the window has no edges."""
    start, end = (None if edge is None else time_text(edge, clock) for edge in row[:2])
    return start, end


def _json_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _json_value(value: Any, column: ResultColumn) -> str:
    kind = type(value)
    if kind is int or (kind is float and math.isfinite(value)):
        return number_text(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "null"
    if isinstance(value, str):
        return _json_text(value)
    text = _plain_text(value, column)
    numbers = (bool, int, float, Decimal, datetime.timedelta, np.timedelta64)
    return text if isinstance(value, numbers) else _json_text(text)


def _text(value: Any, column: ResultColumn) -> str | None:
    return None if value is None else _plain_text(value, column)


def _plain_text(value: Any, column: ResultColumn) -> str:
    """A value other than NULL as text, without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal) and column.kind == "attribute":
        return format(value, "f")  # a group value of a decimal column, not a number beyond the double range
    if isinstance(value, (int, float, Decimal)):
        return number_text(value)
    if isinstance(value, (datetime.timedelta, np.timedelta64)):
        return seconds_text(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _csv_line(fields: Sequence[str | None]) -> str:
    """Fields as a line."""
    return ",".join(map(_csv_field, fields)) + "\n"


def _csv_field(text: str | None) -> str:
    if text is None:
        return ""
    if not text or text != text.strip() or any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
