"""All rows of a run: as dicts, as Arrow tables, as numpy arrays. Source: LANGUAGE.md §9, DESIGN.md §5."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import OptionError, one_of
from hamlet.language.schema import Clock
from hamlet.output.exchange import arrays, union
from hamlet.output.query_rows import QueryRows, dicts_of
from hamlet.output.tables import check_count_type, count_infinite, to_arrow


class Results:
    """All rows of a run, query by query in the order of the workload.

    Parameters
    ----------
    rows : sequence of QueryRows
        One per query, in the order of the workload.
    clock : Clock
        The time column; windows come back in its type.
    count_type : {'string', 'int64', 'double', 'decimal'}
        What a COUNT or SUM becomes in `table`.
    stats : mapping, optional
        What the run counted.
    """

    def __init__(
        self,
        rows: Sequence[QueryRows],
        clock: Clock,
        count_type: str = "string",
        stats: Mapping[str, Any] | None = None,
    ) -> None:
        self.count_type = check_count_type(count_type)
        self.clock = clock
        self.by_query: tuple[QueryRows, ...] = tuple(rows)
        self.stats: dict[str, Any] = dict(stats or {})
        self._infinite: dict[str, int] = {}

    @property
    def queries(self) -> tuple[str, ...]:
        """The names of the queries, also of those without rows."""
        return tuple(each.name for each in self.by_query)

    def __len__(self) -> int:
        return sum(map(len, self.by_query))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for each in self.by_query:
            yield from dicts_of(each, self.clock)

    def __repr__(self) -> str:
        counts = ", ".join(f"{each.name}: {len(each)}" for each in self.by_query)
        return f"<Results, rows by query: {counts}>"

    def rows(self) -> list[dict[str, Any]]:
        """All rows as dicts, in the order of LANGUAGE §9; an integer is a Python int, whatever its size."""
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
            return union([self.table(name) for name in self.queries])
        found = next((each for each in self.by_query if each.name == query), None)
        if found is None:
            near = difflib.get_close_matches(query, self.queries, n=3)
            hint = f"did you mean {one_of(near)}?" if near else f"the queries are {', '.join(self.queries)}"
            raise OptionError(f"there is no query {query!r}; {hint}")
        table = to_arrow(found, self.clock, self.count_type)
        if self.count_type == "double":
            self._infinite[query] = count_infinite(table, found.columns)
            self.stats["infinite_values"] = sum(self._infinite.values())
        return table

    def numpy(self, query: str) -> dict[str, npt.NDArray[Any]]:
        """The columns of one query as numpy arrays of shape (rows,).

        With the count type 'string', a COUNT or SUM is an array of the numbers that `rows` gives (dtype object: Python
        integers of any size), else of the count type. Raises as `table`.
        """
        table = self.table(query)
        found = next(each for each in self.by_query if each.name == query)
        objects = {
            column.name: [row[2 + place] for row in found.rows]
            for place, column in enumerate(found.columns)
            if column.kind in ("count", "sum") and self.count_type == "string"
        }
        return arrays(table, objects)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """All rows as an Arrow stream, so that DuckDB, polars and others read results where they are."""
        return self.table().__arrow_c_stream__(requested_schema)
