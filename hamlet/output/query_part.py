"""The rows of trend queries, as `Results` takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from hamlet.language.schema import Clock
from hamlet.output.exchange import arrays, union
from hamlet.output.fitting import TEXT, WIDE, common_types, fitted_types, is_counted, type_note
from hamlet.output.frames import exportable
from hamlet.output.html import Texts, cell_text
from hamlet.output.query_rows import QueryRows, dicts_of
from hamlet.output.result import Asked, Part, Results
from hamlet.output.tables import CountTypes, check_count_type, count_infinite, to_arrow
from hamlet.output.time_text import time_text


class QueryPart(Part):
    """The rows of one query and what their columns become.

    Parameters
    ----------
    rows : QueryRows
    clock : Clock
        The time column; windows come back in its type.
    count_type : {'auto', 'string', 'int64', 'double', 'decimal'}
        What a COUNT or SUM becomes in a table.
    """

    word = column = "query"

    def __init__(self, rows: QueryRows, clock: Clock, count_type: str) -> None:
        self.name = rows.name
        self.rows = rows
        self.clock = clock
        self.count_type = count_type
        self._fitted: tuple[str | None, ...] | None = None
        self._counted: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def cut(self, limit: int) -> QueryPart:
        """The first rows."""
        return QueryPart(QueryRows(self.name, self.rows.columns, self.rows.first(limit)), self.clock, self.count_type)

    def dicts(self) -> list[dict[str, Any]]:
        """Dicts: query, window_start, window_end and the RETURN items."""
        return dicts_of(self.rows, self.clock)

    @property
    def types(self) -> CountTypes:
        """What the columns are in a table: the count type, or under ``auto`` what holds their values."""
        return self.fitted() if self.count_type == "auto" else self.count_type

    def fitted(self) -> tuple[str | None, ...]:
        """What holds the values of each column."""
        if self._fitted is None:
            self._fitted = fitted_types(self.rows)
        return self._fitted

    def table(self) -> pa.Table:
        """The rows as a table of the types."""
        table = to_arrow(self.rows, self.clock, self.types)
        if self.count_type == "double":
            self._counted["infinite_values"] = count_infinite(table, self.rows.columns)
        return table

    def shown(self, limit: int) -> Texts:
        """The first rows as texts."""
        first = self.rows.first(limit)
        heads = ["window_start", "window_end", *(column.name for column in self.rows.columns)]
        edges = (self.clock, self.clock)
        return heads, [[*map(time_text, row[:2], edges), *map(cell_text, row[2:])] for row in first]

    def notes(self) -> Sequence[str]:
        """A sentence for each COUNT or SUM that is neither int64 nor a double, under ``auto``."""
        if self.count_type != "auto":
            return ()
        named = zip(self.rows.columns, self.fitted(), strict=True)
        notes = [None if kind is None else type_note(self.name, column.name, kind) for column, kind in named]
        return [each for each in notes if each is not None]

    def arrays(self, table: pa.Table) -> dict[str, npt.NDArray[Any]]:
        """The table as numpy arrays; COUNT and SUM that no type of numpy holds are Python integers."""
        objects = {
            column.name: [row[2 + place] for row in self.rows.rows]
            for place, column in enumerate(self.rows.columns)
            if is_counted(column)
            and self.count_type in ("auto", "string")
            and not _is_native(table.schema.field(3 + place).type)
        }
        return arrays(table, objects)

    def counted(self) -> Mapping[str, int]:
        """``infinite_values`` of the count type 'double'."""
        return self._counted

    @classmethod
    def merged(cls, parts: Sequence[QueryPart]) -> pa.Table:
        """The rows of all queries; under ``auto`` columns of one name get the widest of their types."""
        return _merged(parts, {})

    @classmethod
    def exported(cls, parts: Sequence[QueryPart]) -> pa.Table:
        """The rows of all queries for other readers: decimals of more than 38 digits are text."""
        return exportable(_merged(parts, {WIDE: TEXT}))


def _merged(parts: Sequence[QueryPart], instead: Mapping[str, str]) -> pa.Table:
    """The rows of all queries, some types of COUNT and SUM replaced by others."""
    if parts[0].count_type != "auto":
        return union([each.table() for each in parts])
    fitted = [[instead.get(kind or "") or kind for kind in each.fitted()] for each in parts]
    types = common_types(list(zip([each.rows.columns for each in parts], fitted, strict=True)))
    return union([to_arrow(each.rows, each.clock, own) for each, own in zip(parts, types, strict=True)])


def query_results(
    rows: Sequence[QueryRows],
    clock: Clock,
    count_type: str = "auto",
    stats: Mapping[str, Any] | None = None,
    warnings: Sequence[str] = (),
    asked: Asked | None = None,
) -> Results:
    """The results of trend queries, one `QueryRows` each, in the order of the workload.

    Raises
    ------
    OptionError
        If the count type is unknown.
    """
    kind = check_count_type(count_type)
    return Results([QueryPart(each, clock, kind) for each in rows], stats, warnings, asked)


def query_rows(results: Results) -> tuple[QueryRows, ...]:
    """The rows of each query of results of `query_results`."""
    return tuple(each.rows for each in results.parts)


def dated(results: Results) -> Results:
    """Results with integer times taken as times since 1970: edges of windows become timestamps."""
    return Results(
        [QueryPart(each.rows, dated_clock(each.clock), each.count_type) for each in results.parts],
        results.stats,
        results.run_warnings,
        results.asked,
    )


def dated_clock(clock: Clock) -> Clock:
    """A clock whose integers are times since 1970."""
    return clock if clock.is_timestamp else replace(clock, type=pa.timestamp(clock.unit))


def _is_native(kind: pa.DataType) -> bool:
    """Whether numpy has numbers of this type."""
    return bool(pa.types.is_int64(kind) or pa.types.is_floating(kind))
