"""All rows of a run of any notation: as dicts, as Arrow tables, as numpy arrays and as frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import OptionError, OutputError, UnsupportedError, near_miss
from hamlet.output.exchange import arrays
from hamlet.output.frames import exportable, pandas_of, polars_of
from hamlet.output.html import SHOWN_ROWS, Texts, cell_text, table_html

if TYPE_CHECKING:
    from hamlet.trends import TrendSample
    from hamlet.why.evidence import Evidence


class Part:
    """The rows of one query, policy, specification or statement: what a notation gives to `Results`.

    Attributes
    ----------
    name : str
    word : str
        What it is called: query, policy, ...
    column : str
        The column that has its name where several stand in one table.
    """

    name: str
    word: str
    column: str

    def __len__(self) -> int:
        raise NotImplementedError

    def dicts(self) -> list[dict[str, Any]]:
        """Its rows as dicts."""
        raise NotImplementedError

    def named_dicts(self) -> list[dict[str, Any]]:
        """Its rows as dicts among those of others."""
        return self.dicts()

    def table(self) -> pa.Table:
        """Its rows as a table."""
        raise NotImplementedError

    def shown(self, limit: int) -> Texts:
        """Names of columns, and its first rows as texts."""
        raise NotImplementedError

    def notes(self) -> Sequence[str]:
        """What is to be known about types of its columns, a sentence each."""
        return ()

    def arrays(self, table: pa.Table) -> dict[str, npt.NDArray[Any]]:
        """Its table as numpy arrays."""
        return arrays(table, {})

    def counted(self) -> Mapping[str, int]:
        """What was counted while its table was made."""
        return {}

    @classmethod
    def merged(cls, parts: Sequence[Any]) -> pa.Table:
        """The rows of several parts of this kind as one table."""
        tables = [each.table() for each in parts]
        if len(parts) > 1:
            tables = [
                table.add_column(0, part.column, pa.array([part.name] * len(table), pa.string()))
                for part, table in zip(parts, tables, strict=True)
            ]
        try:
            return pa.concat_tables(tables, promote_options="permissive")
        except pa.ArrowException as error:
            raise OutputError(
                f"a column has types that no table holds together: {error}\n"
                f"hint: take the tables one by one: results.table({parts[0].name!r})"
            ) from error

    @classmethod
    def exported(cls, parts: Sequence[Any]) -> pa.Table:
        """One table for readers of other libraries."""
        return exportable(cls.merged(parts))


@dataclass(frozen=True)
class Asked:
    """What results were computed of, to ask it more.

    Attributes
    ----------
    why : callable
        Evidence for a row, of ``(row)``, and of ``limit`` where something is listed.
    explain : callable
        The text of ``hamlet explain``.
    trends : callable, optional
        Some trends behind a row, of ``(results, query, window, group, limit)``.
    whole : bool
        Whether evidence is always given whole.
    """

    why: Callable[..., Evidence]
    explain: Callable[[], str]
    trends: Callable[..., TrendSample] | None = None
    whole: bool = False


class Results:
    """All rows of a run, query by query (policy by policy, ...) in the order of the text.

    Parameters
    ----------
    parts : sequence of Part
        One per query, policy or statement, also of those without rows.
    stats : mapping, optional
        What the run counted; ``rows`` are those of all parts.
    warnings : sequence of str, optional
        What the run found that may not be what was meant, a sentence each.
    asked : Asked, optional
        What gives evidence, where events can be read again.

    Examples
    --------
    >>> import hamlet
    >>> workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s")
    >>> results = hamlet.run(workload, [{"time": t, "type": "ABB"[t]} for t in range(3)])
    >>> results.names, len(results), results["q1"].rows()[0]["count"]
    (('q1',), 1, 3)
    """

    def __init__(
        self,
        parts: Sequence[Part],
        stats: Mapping[str, Any] | None = None,
        warnings: Sequence[str] = (),
        asked: Asked | None = None,
    ) -> None:
        self.parts: tuple[Any, ...] = tuple(parts)  # of one kind
        self.stats: dict[str, Any] = {**(stats or {})}
        self.stats.setdefault("rows", len(self))
        self.run_warnings = tuple(warnings)  # all but what depends on types of columns
        self.asked = asked

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the queries, policies or statements, also of those without rows."""
        return tuple(each.name for each in self.parts)

    queries = policies = statements = names

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may not be what was meant, a sentence each: types that never occur, counts that are no int64."""
        return (*self.run_warnings, *self.type_notes())

    def type_notes(self) -> Iterator[str]:
        """A sentence for each COUNT or SUM that is neither int64 nor a double in `table`."""
        for part in self.parts:
            yield from part.notes()

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for part in self.parts:
            yield from part.named_dicts() if len(self.parts) > 1 else part.dicts()

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Results:
        """The results of one query: its rows, its table, its frames.

        Raises
        ------
        OptionError
            If there is none of this name.
        """
        part = self._of(name)
        return Results([part], {**self.stats, "rows": len(part)}, self.run_warnings, self.asked)

    def __repr__(self) -> str:
        word = self.parts[0].word if self.parts else "query"
        return f"<Results, rows by {word}: {', '.join(f'{each.name}: {len(each)}' for each in self.parts)}>"

    def _repr_html_(self) -> str:
        """The first rows of every query, for a notebook."""
        return "".join(table_html(each.name, each.shown(SHOWN_ROWS), len(each)) for each in self.parts)

    def rows(self, name: str | None = None) -> list[dict[str, Any]]:
        """All rows as dicts, or those of one query; an integer is a Python int, whatever its size.

        Rows of queries begin with ``query``, of policies with ``policy``; of several statements, with ``query``.

        Raises
        ------
        OptionError
            If there is none of this name.
        """
        return list(self) if name is None else list(self._of(name).dicts())

    def table(self, name: str | None = None) -> pa.Table:
        """The rows of one query as a table.

        Without a name those of all, with the union of their columns; of several, each row begins with the name. With
        the count type 'double', ``stats['infinite_values']`` counts the values of the tables made so far that are
        beyond the double range.

        Raises
        ------
        OptionError
            If there is none of this name.
        OutputError
            If a value does not fit the count type; the text names query, window and group. Also if a column has two
            types in a table of all.
        """
        if name is None and len(self.parts) != 1:
            table = type(self.parts[0]).merged(self.parts) if self.parts else pa.table({})
        else:
            table = (self.parts[0] if name is None else self._of(name)).table()
        counts = [each.counted() for each in self.parts]
        for key in dict.fromkeys(key for each in counts for key in each):
            self.stats[key] = sum(each.get(key, 0) for each in counts)
        return table

    def numpy(self, name: str | None = None) -> dict[str, npt.NDArray[Any]]:
        """The columns of one query as numpy arrays of shape (rows,).

        A COUNT or SUM that is a decimal or text in `table` is an array of the numbers that `rows` gives (dtype object:
        Python integers of any size), else of the count type. Raises as `table`.
        """
        table = self.table(name)
        if name is None and len(self.parts) != 1:
            return arrays(table, {})
        found: dict[str, npt.NDArray[Any]] = (self.parts[0] if name is None else self._of(name)).arrays(table)
        return found

    def to_pandas(self, name: str | None = None) -> Any:
        """The rows of `table` as a pandas DataFrame, which is the caller's own (`hamlet.output.frames`)."""
        return pandas_of(self.table(name))

    def to_polars(self, name: str | None = None) -> Any:
        """The rows of `table` as a polars DataFrame; polars must be installed."""
        return polars_of(self if name is None else exportable(self.table(name)))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All rows as an Arrow stream, so that DuckDB, polars and others read results where they are.

        Decimals of more than 38 digits, which most of them cannot read, are text here.
        """
        table = type(self.parts[0]).exported(self.parts) if self.parts else pa.table({})
        return table.__arrow_c_stream__(requested_schema)

    def explain(self) -> str:
        """How they were computed: the text of ``hamlet explain``.

        Raises
        ------
        UnsupportedError
            If the results come from elsewhere, such as a job of Spark.
        """
        if self.asked is None:
            raise UnsupportedError("these results do not know what they were computed of; ask that: workload.explain()")
        return self.asked.explain()

    def trends(self, query: str, window: Any = None, group: Any = None, limit: int = 5) -> TrendSample:
        """Some of the trends that a row of a query counts, event by event: the shortest first, however many there are.

        Parameters
        ----------
        query : str
        window : int, str or datetime, optional
            When the row's window begins; by default that of the first row.
        group : optional
            The row's GROUP-BY values: a dict or, of one attribute, its value.
        limit : int
            How many trends, at most.

        Raises
        ------
        OptionError
            If there is no such query or row.
        UnsupportedError
            If the events cannot be read again: a stream, or a job of Spark; or if the rows are of no trend query.

        Examples
        --------
        >>> import hamlet
        >>> workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s")
        >>> results = hamlet.run(workload, [{"time": t, "type": "ABB"[t]} for t in range(3)])
        >>> for trend in results.trends("q1", limit=2):
        ...     print([f"{event['variable']}@{event['time']}" for event in trend])
        ['A@0', 'B@1']
        ['A@0', 'B@2']
        """
        if self.asked is None:
            raise UnsupportedError("these results do not know their events; trends are listed from those of hamlet.run")
        if self.asked.trends is None:
            raise UnsupportedError(
                "trends are listed for rows of trend queries; evidence for any row: results.why(row)"
            )
        return self.asked.trends(self, query, window, group, limit)

    def why(self, row: Mapping[str, Any], limit: int | None = None) -> Evidence:
        """What is behind a row, or behind its absence: evidence that can be checked (`hamlet.checker`).

        Trends of a query, the proof of a policy, the values of a specification, the match of a row pattern.

        Parameters
        ----------
        row : mapping
            A row, or enough of its columns to name one; of several queries, with ``query`` (policies: ``policy``).
        limit : int, optional
            Most steps of trends or values of a window that are listed: 1,000, if it is not given.

        Raises
        ------
        OptionError
            If several rows match, or none is named.
        UnsupportedError
            If the events cannot be read again; if there is a limit for a proof or a match, which are given whole.

        Examples
        --------
        >>> import hamlet
        >>> workload = hamlet.Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s")
        >>> results = hamlet.run(workload, [{"time": t, "type": "ABB"[t]} for t in range(3)])
        >>> print(results.why({"window_start": 0}).text())
        query=q1, window_start=0, window_end=10, count=3: in the result
          trends: 3 steps
            #0 A event 0 (time=0, type=A): begins; 3 trends
            #1 B event 1 (time=1, type=B): after #0; ends; 2 trends
            #2 B event 2 (time=2, type=B): after #0, #1; ends; 2 trends
        """
        if self.asked is None:
            raise UnsupportedError("these results do not know their events; evidence is given by those of hamlet.run")
        if not self.asked.whole:
            return self.asked.why(row, limit=1000 if limit is None else limit)
        if limit is not None:
            raise UnsupportedError(f"evidence for a row of a {self.parts[0].word} is given whole; leave limit out")
        return self.asked.why(row)

    def _of(self, name: str) -> Any:
        """The rows of a query by its name."""
        for each in self.parts:
            if each.name == name:
                return each
        word = self.parts[0].word if self.parts else "query"
        if not isinstance(name, str):
            raise OptionError(f"[{name!r}] names no {word}; rows are in rows(), as in rows()[0], and in iteration")
        near = near_miss(name, self.names)
        several = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
        hint = f"did you mean {near!r}?" if near else f"the {several} are {', '.join(self.names) or 'none'}"
        raise OptionError(f"there is no {word} {name!r}; {hint}")


class TablePart(Part):
    """Rows that are a table.

    Parameters
    ----------
    name : str
    word : str
        What it is called: policy, statement, ...
    table : pyarrow.Table
    dicts : callable
        Rows of a table as dicts, and with the name.
    column : str, optional
        By default `word`.
    always : bool
        Whether dicts have the name also where there are no others.
    """

    def __init__(
        self,
        name: str,
        word: str,
        table: pa.Table,
        dicts: Callable[[pa.Table], list[dict[str, Any]]],
        *,
        column: str | None = None,
        always: bool = False,
    ) -> None:
        self.name = name
        self.word = word
        self.column = column or word
        self._table = table
        self._dicts = dicts
        self._always = always

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def dicts(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        return self.named_dicts() if self._always else self._dicts(self._table)

    def named_dicts(self) -> list[dict[str, Any]]:
        """The rows as dicts, the name first."""
        return [{self.column: self.name, **row} for row in self._dicts(self._table)]

    def table(self) -> pa.Table:
        """The rows."""
        return self._table

    def shown(self, limit: int) -> Texts:
        """The first rows as texts."""
        return shown_rows(self._dicts(self._table.slice(0, limit)), self._table.schema.names)


def shown_rows(rows: Sequence[Mapping[str, Any]], heads: Sequence[str]) -> Texts:
    """Rows that are dicts as texts; what a row has not is empty."""
    return heads, [[cell_text(row[head]) if head in row else "" for head in heads] for row in rows]
