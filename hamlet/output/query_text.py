"""Rows of queries as text, a piece at a time: JSON lines and CSV.

In JSON, integers are written in full as numbers, times as ISO 8601 strings, and infinite doubles (which JSON does not
have) as null. In CSV, NULL is an empty field and an empty string is ``""``.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain, repeat
from typing import Any

import numpy as np

from hamlet.errors import OptionError
from hamlet.language.schema import NO_TIME, Clock
from hamlet.output.columnar import CsvEncoder, Encoder, JsonEncoder, csv_field, quoted
from hamlet.output.components import Values
from hamlet.output.digits import number_text, seconds_text
from hamlet.output.numbers import BeyondDoubles, Integers, Runs
from hamlet.output.query_rows import QueryRows, ResultColumn
from hamlet.output.time_text import time_text

_LONG = {int, Decimal}  # what numbers that no array holds are
EDGES = ("window_start", "window_end")


@dataclass(frozen=True, slots=True)
class _Form:
    """How values are written: those that are told, and NULL."""

    value: Callable[[Any, ResultColumn], str]
    edge: Callable[[int, Clock], str]
    null: str

    def edges(self, runs: Runs, clock: Clock) -> list[str]:
        """Edges of windows, the null where there is no time."""
        texts = [self.null if edge == NO_TIME else self.edge(edge, clock) for edge in runs.values.tolist()]
        return list(chain.from_iterable(map(repeat, texts, runs.counts.tolist())))

    def values(self, values: Values, column: ResultColumn) -> Any:
        """A column as an encoder takes it: an array of numbers that stand for themselves, or texts."""
        plain = values.plain()
        if plain is not None:
            return plain

        def text(value: Any) -> str:
            return self.value(value, column)

        if isinstance(values.data, (Integers, BeyondDoubles)):
            found = values.tolist()
            return [
                number_text(each) if type(each) in _LONG else self.null if each is None else text(each)
                for each in found
            ]
        if values.objects is not None and len(values.objects) <= len(values):  # each text is made once
            texts = [self.null if each is None else text(each) for each in values.objects]
            found = replace(values, objects=texts).tolist()
            return [self.null if each is None else each for each in found]
        return [self.null if each is None else text(each) for each in values.tolist()]


@dataclass(frozen=True, slots=True)
class _Columns:
    """Some rows, with as much of the face of `pyarrow.RecordBatch` as encoders read."""

    column_names: list[str]
    columns: list[Any]
    num_rows: int

    def column(self, name: str) -> Any:
        """The column of a name."""
        return self.columns[self.column_names.index(name)]


class QueryText(Encoder):
    """An encoder for the rows of a query.

    Parameters
    ----------
    form : _Form
    encoder : callable
        Gives what joins the columns of a query to lines.
    clock : callable
    head : str
        What stands before the first row.
    """

    def __init__(
        self, form: _Form, encoder: Callable[[QueryRows], Encoder], clock: Callable[[], Clock], head: str = ""
    ) -> None:
        self._form, self._encoder, self._clock, self._head = form, encoder, clock, head
        self._encoders: dict[str, Encoder] = {}  # of queries

    def head(self) -> str:
        """What stands before the first row."""
        return self._head

    def pieces(self, rows: QueryRows) -> Iterator[str]:
        """The text of each piece of the rows."""
        clock, encoder = self._clock(), self._encoders.get(rows.name)
        if encoder is None:
            encoder = self._encoders[rows.name] = self._encoder(rows)
        names = [*EDGES, *(each.name for each in rows.columns)]
        for piece in rows.pieces:
            edges = [self._form.edges(runs, clock) for runs in (piece.starts, piece.ends)]
            values = map(self._form.values, piece.values, rows.columns)
            yield encoder.lines(_Columns(names, [*edges, *values], len(piece.starts)))

    def lines(self, rows: QueryRows) -> str:
        """The text of rows."""
        return "".join(self.pieces(rows))


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

        def json_lines(rows: QueryRows) -> Encoder:
            names = [*EDGES, *(each.name for each in rows.columns)]
            return JsonEncoder(names, {"query": rows.name} if lead else {}, sparse=False)

        return QueryText(_JSON, json_lines, clock)
    if output_format == "csv":
        fields = list(header) if header is not None else [*(["query"] if lead else []), *columns]
        head = CsvEncoder({}, fields).head()
        return QueryText(_CSV, lambda rows: CsvEncoder({"query": rows.name}, fields), clock, head)
    raise OptionError(f"rows of queries are written as json or csv, not as {output_format}")


def _json_edge(edge: int, clock: Clock) -> str:
    return f'"{time_text(edge, clock)}"' if clock.is_timestamp else time_text(edge, clock)


def _json_value(value: Any, column: ResultColumn) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "null"
    text = _plain_text(value, column)
    numbers = (bool, int, float, Decimal, datetime.timedelta, np.timedelta64)
    return text if isinstance(value, numbers) else quoted(text)


def _csv_value(value: Any, column: ResultColumn) -> str:
    return csv_field(_plain_text(value, column))


def _plain_text(value: Any, column: ResultColumn) -> str:
    """A value other than NULL as text, without quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal) and column.kind == "attribute":
        return format(value, "f")  # a group value of a decimal column, not a number beyond the double range
    if isinstance(value, (int, float, Decimal)):
        return number_text(value)
    if isinstance(value, (datetime.timedelta, np.timedelta64)):
        return seconds_text(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


_JSON = _Form(_json_value, _json_edge, "null")
_CSV = _Form(_csv_value, time_text, "")
