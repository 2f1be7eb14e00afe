"""Rows of queries as text, a piece at a time: JSON lines and CSV as `hamlet.output.files` writes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hamlet.errors import OptionError
from hamlet.language.schema import Clock
from hamlet.output.columnar import Encoder
from hamlet.output.files import EDGES, csv_line, csv_values, edges, json_lines
from hamlet.output.query_rows import QueryRows


def query_text(
    output_format: str, clock: Callable[[], Clock], columns: Sequence[str], *, lead: bool, header: Sequence[str] | None
) -> Encoder:
    """An encoder for the rows of a query.

    Parameters
    ----------
    output_format : {'json', 'csv'}
    clock : callable
        Gives the clock of the rows, which is known once there are some.
    columns : sequence of str
        Of the rows.
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
        return _Csv(clock, lead, header if header is not None else [*(["query"] if lead else []), *columns])
    raise OptionError(f"rows of queries are written as json or csv, not as {output_format}")


class _Json(Encoder):
    def __init__(self, clock: Callable[[], Clock], lead: bool) -> None:
        self._clock, self._lead = clock, lead

    def lines(self, rows: QueryRows) -> str:
        """A line per row."""
        return "".join(json_lines(rows, self._clock(), with_query=self._lead))


class _Csv(Encoder):
    def __init__(self, clock: Callable[[], Clock], lead: bool, header: Sequence[str]) -> None:
        self._clock, self._lead, self._header = clock, lead, list(header)

    def head(self) -> str:
        """The names of the columns."""
        return csv_line(self._header)

    def lines(self, rows: QueryRows) -> str:
        """A line per row."""
        clock, found = self._clock(), []
        names = [*EDGES, *(column.name for column in rows.columns)]
        for row in rows.rows:
            values = dict(zip(names, [*edges(row, clock), *csv_values(rows, row)], strict=True))
            if self._lead:
                values["query"] = rows.name
            found.append(csv_line([values.get(name) for name in self._header]))
        return "".join(found)
