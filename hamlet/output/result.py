"""All rows of a run: as dicts, as Arrow tables, as numpy arrays."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import OptionError, UnsupportedError, one_of
from hamlet.language.schema import Clock
from hamlet.output.exchange import arrays, union
from hamlet.output.fitting import TEXT, WIDE, common_types, fitted_types, is_counted, type_note
from hamlet.output.frames import Frames
from hamlet.output.html import as_html
from hamlet.output.query_rows import QueryRows, dicts_of
from hamlet.output.tables import CountTypes, check_count_type, count_infinite, to_arrow

if TYPE_CHECKING:
    from hamlet.trends import TrendSample
    from hamlet.why.evidence import Evidence


class Results(Frames):
    """All rows of a run, query by query in the order of the workload.

    Parameters
    ----------
    rows : sequence of QueryRows
        One per query, in the order of the workload.
    clock : Clock
        The time column; windows come back in its type.
    count_type : {'auto', 'string', 'int64', 'double', 'decimal'}
        What a COUNT or SUM becomes in `table`.
    stats : mapping, optional
        What the run counted.
    warnings : sequence of str, optional
        What the run found that may not be what was meant, a sentence each.
    """

    def __init__(
        self,
        rows: Sequence[QueryRows],
        clock: Clock,
        count_type: str = "auto",
        stats: Mapping[str, Any] | None = None,
        warnings: Sequence[str] = (),
    ) -> None:
        self.count_type = check_count_type(count_type)
        self.clock = clock
        self.by_query: tuple[QueryRows, ...] = tuple(rows)
        self.stats: dict[str, Any] = dict(stats or {})
        self.run_warnings = tuple(warnings)  # all but what depends on types of columns
        self._lister: Callable[..., TrendSample] | None = None
        self._explainer: Callable[..., Evidence] | None = None
        self._workload: Any = None  # what they were asked of, where that is known
        self._infinite: dict[str, int] = {}
        self._types: dict[str, tuple[str | None, ...]] = {}  # under auto, of queries that were asked for

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries, also of those without rows."""
        return tuple(each.name for each in self.by_query)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may not be what was meant, a sentence each: types that never occur, counts that are no int64."""
        return (*self.run_warnings, *self.type_notes())

    def type_notes(self) -> Iterator[str]:
        """A sentence for each COUNT or SUM that is neither int64 nor a double in `table`, under ``auto``."""
        for rows in self.by_query if self.count_type == "auto" else ():
            for column, kind in zip(rows.columns, self._fitted(rows.name), strict=True):
                note = None if kind is None else type_note(rows.name, column.name, kind)
                if note is not None:
                    yield note

    def __len__(self) -> int:
        return sum(map(len, self.by_query))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for each in self.by_query:
            yield from dicts_of(each, self.clock)

    def __repr__(self) -> str:
        counts = ", ".join(f"{each.name}: {len(each)}" for each in self.by_query)
        return f"<Results, rows by query: {counts}>"

    def explain(self) -> str:
        """How they were computed: the text of ``hamlet explain`` for the workload.

        Raises
        ------
        UnsupportedError
            If the results come from a job of Spark.
        """
        if self._workload is None:
            raise UnsupportedError("these results do not know their workload; ask it: workload.explain()")
        return str(self._workload.explain())

    def trends(self, query: str, window: Any = None, group: Any = None, limit: int = 5) -> TrendSample:
        """Some of the trends that a row counts, event by event: the shortest first, however many there are.

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
            If the events cannot be read again: a stream, or a job of Spark.

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
        if self._lister is None:
            raise UnsupportedError("these results do not know their events; trends are listed from those of hamlet.run")
        return self._lister(self, query, window, group, limit)

    def why(self, row: Mapping[str, Any], limit: int = 1000) -> Evidence:
        """The trends behind a row, or why there is no such row: evidence that can be checked (`hamlet.checker`).

        Parameters
        ----------
        row : mapping
            A row, or enough of its columns to name one; of several queries, with ``query``.
        limit : int
            Most steps of trends that are listed; beyond, some trends stand for them.

        Raises
        ------
        OptionError
            If several rows match, or none is named.
        UnsupportedError
            If the events cannot be read again, or the query asks about the rows of others.

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
        if self._explainer is None:
            raise UnsupportedError("these results do not know their events; evidence is given by those of hamlet.run")
        return self._explainer(row, limit=limit)

    def __getitem__(self, query: str) -> Results:
        """The results of one query: its rows, its table, its frames.

        Raises
        ------
        OptionError
            If there is no such query.
        """
        found = Results([self._of(query)], self.clock, self.count_type, self.stats, self.run_warnings)
        found._lister, found._explainer = self._lister, self._explainer
        return found

    def dated(self) -> Results:
        """These results with integer times taken as times since 1970: edges of windows become timestamps."""
        clock = self.clock
        if not clock.is_timestamp:
            clock = replace(clock, type=pa.timestamp(clock.unit))
        return Results(self.by_query, clock, self.count_type, self.stats, self.run_warnings)

    def listed_by(self, lister: Callable[..., TrendSample], explainer: Callable[..., Evidence]) -> Results:
        """These results, with what lists their trends, and what gives evidence for their rows."""
        self._lister, self._explainer = lister, explainer
        return self

    def __contains__(self, query: object) -> bool:
        return query in self.queries

    def _repr_html_(self) -> str:
        """The first rows of every query, for a notebook."""
        return as_html(self.by_query, self.clock)

    def rows(self) -> list[dict[str, Any]]:
        """All rows as dicts, by query, window and group, NULL first; an integer is a Python int, whatever its size."""
        return list(self)

    def table(self, query: str | None = None) -> pa.Table:
        """The rows of one query as a table: query, window_start, window_end and the RETURN items.

        Without a name those of all queries, with the union of their columns (`hamlet.output.exchange.union`).
        With the count type 'double', ``stats['infinite_values']`` counts the values of the tables made so far that are
        beyond the double range.

        Raises
        ------
        OptionError
            If there is no such query.
        OutputError
            If a value does not fit the count type; the text names query, window and group. Also if a RETURN name has
            two types in a table of all queries.
        """
        if query is None:
            if self.count_type != "auto":
                return union([self.table(name) for name in self.queries])
            return self._union({})
        found = self._of(query)
        table = to_arrow(found, self.clock, self.types(query))
        if self.count_type == "double":
            self._infinite[query] = count_infinite(table, found.columns)
            self.stats["infinite_values"] = sum(self._infinite.values())
        return table

    def _union(self, instead: Mapping[str, str | None]) -> pa.Table:
        """The rows of all queries under ``auto``, some types of COUNT and SUM replaced by others."""
        fitted = [[instead.get(kind or "") or kind for kind in self._fitted(each.name)] for each in self.by_query]
        columns = [each.columns for each in self.by_query]
        types = common_types(list(zip(columns, fitted, strict=True)))
        return union([to_arrow(each, self.clock, own) for each, own in zip(self.by_query, types, strict=True)])

    def types(self, query: str) -> CountTypes:
        """What the columns of a query are in its table: the count type, or under ``auto`` what holds their values."""
        return self._fitted(query) if self.count_type == "auto" else self.count_type

    def _fitted(self, query: str) -> tuple[str | None, ...]:
        if query not in self._types:
            self._types[query] = fitted_types(self._of(query))
        return self._types[query]

    def _of(self, query: str) -> QueryRows:
        """The rows of a query by its name."""
        found = next((each for each in self.by_query if each.name == query), None)
        if found is None:
            near = difflib.get_close_matches(query, self.queries, n=3)
            hint = f"did you mean {one_of(near)}?" if near else f"the queries are {', '.join(self.queries)}"
            raise OptionError(f"there is no query {query!r}; {hint}")
        return found

    def numpy(self, query: str) -> dict[str, npt.NDArray[Any]]:
        """The columns of one query as numpy arrays of shape (rows,).

        A COUNT or SUM that is a decimal or text in `table` is an array of the numbers that `rows` gives (dtype object:
        Python integers of any size), else of the count type. Raises as `table`.
        """
        table = self.table(query)
        found = self._of(query)
        boxed = ("auto", "string")
        objects = {
            column.name: [row[2 + place] for row in found.rows]
            for place, column in enumerate(found.columns)
            if is_counted(column) and self.count_type in boxed and not _is_native(table.schema.field(3 + place).type)
        }
        return arrays(table, objects)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All rows as an Arrow stream, so that DuckDB, polars and others read results where they are.

        Decimals of more than 38 digits, which most of them cannot read, are text here.
        """
        table = self._union({WIDE: TEXT}) if self.count_type == "auto" else self.table()
        return table.__arrow_c_stream__(requested_schema)


def _is_native(kind: pa.DataType) -> bool:
    """Whether numpy has numbers of this type."""
    return bool(pa.types.is_int64(kind) or pa.types.is_floating(kind))
