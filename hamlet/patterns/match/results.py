"""The rows of statements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hamlet.errors import OptionError, UnsupportedError
from hamlet.output.frames import pandas_of, polars_of, stream_of

if TYPE_CHECKING:
    from hamlet.why.evidence import Evidence


@dataclass(frozen=True)
class StatementRows:
    """The rows of one statement.

    Attributes
    ----------
    name : str
        ``q1`` for the first statement that gives rows.
    table : pyarrow.Table
    """

    name: str
    table: pa.Table


class Results:
    """The rows of all statements that give rows.

    Attributes
    ----------
    by_statement : tuple of StatementRows
    stats : dict of str to int
        ``events`` (rows of the clauses' tables, each table and order once), ``matches``, ``rows``.
    warnings : tuple of str
        What may not have been meant, a sentence each.

    Examples
    --------
    >>> import hamlet
    >>> text = '''SELECT * FROM t MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(ts) AS since, COUNT(*) AS n
    ...           PATTERN (up+) DEFINE up AS price > PREV(price))'''
    >>> hamlet.sql(text, {"t": [{"ts": ts, "price": price} for ts, price in enumerate([3, 4, 5, 1, 2])]}).rows()
    [{'since': 1, 'n': 2}, {'since': 4, 'n': 1}]
    """

    def __init__(
        self, by_statement: Sequence[StatementRows], stats: Mapping[str, int], warnings: Sequence[str] = ()
    ) -> None:
        self.by_statement = tuple(by_statement)
        self.stats = dict(stats)
        self.warnings = tuple(warnings)
        self._asked: tuple[str, Any, dict[str, Any]] | None = None

    def asked_of(self, text: str, tables: Any, options: dict[str, Any]) -> Results:
        """These results, which know what they were computed from."""
        self._asked = text, tables, options
        return self

    def why(self, row: Mapping[str, Any]) -> Evidence:
        """The match behind a row, or why none begins at a row of the table (`hamlet.why.matches.why`).

        Parameters
        ----------
        row : mapping
            A row, or enough of its columns to name one; of several statements, with ``query``.

        Raises
        ------
        OptionError
            If several rows match, or none is named.
        UnsupportedError
            If the tables cannot be read again.
        """
        import hamlet  # loads what gives evidence where it is asked for

        given = None if self._asked is None else self._asked[1]
        each = given.values() if isinstance(given, Mapping) else [given]
        if self._asked is None or any(isinstance(one, (Iterator, pa.RecordBatchReader)) for one in each):
            raise UnsupportedError("the tables cannot be read again; give files, tables or lists to run")
        text, tables, options = self._asked
        return hamlet.why.of_statement(text, tables, row, **options)

    @property
    def statements(self) -> tuple[str, ...]:
        """The names of the statements that give rows."""
        return tuple(each.name for each in self.by_statement)

    def __len__(self) -> int:
        return sum(each.table.num_rows for each in self.by_statement)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def rows(self, statement: str | None = None) -> list[dict[str, Any]]:
        """Rows as dicts; with several statements, those of all with the statement's name first as ``query``.

        Parameters
        ----------
        statement : str, optional
            Only the rows of this one.
        """
        if statement is not None or len(self.by_statement) == 1:
            found: list[dict[str, Any]] = self.table(statement).to_pylist()
            return found
        return [{"query": each.name, **row} for each in self.by_statement for row in each.table.to_pylist()]

    def table(self, statement: str | None = None) -> pa.Table:
        """The rows of one statement as an Arrow table.

        Parameters
        ----------
        statement : str, optional
            Its name; needed where there are several.

        Raises
        ------
        OptionError
            If there is none of this name, or there are several and none is named.
        """
        if statement is None and len(self.by_statement) == 1:
            return self.by_statement[0].table
        for each in self.by_statement:
            if each.name == statement:
                return each.table
        names = ", ".join(self.statements) or "none"
        raise OptionError(f"which statement? table(name) takes one of those that give rows: {names}")

    def to_pandas(self, statement: str | None = None) -> Any:
        """The rows of one statement as a pandas frame; see `table`."""
        return pandas_of(self.table(statement))

    def to_polars(self, statement: str | None = None) -> Any:
        """The rows of one statement as a polars frame; see `table`."""
        return polars_of(self.table(statement))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return stream_of(self.table(), requested_schema)
