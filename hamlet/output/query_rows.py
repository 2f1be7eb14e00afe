"""The rows of one query: columns of numbers, and the tuples and dicts that are made of them when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, repeat
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from hamlet.language.query import AttributeType
from hamlet.language.schema import Clock
from hamlet.output.components import Values
from hamlet.output.numbers import Runs

ColumnKind = Literal["attribute", "count", "sum", "double", "extremum"]


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One RETURN item.

    Attributes
    ----------
    name : str
        Name of the column.
    kind : {'attribute', 'count', 'sum', 'double', 'extremum'}
        'count' and 'sum' follow the count type; 'double' is AVG or LOG2; 'extremum' is MIN or MAX.
    type : AttributeType
        Type of the attribute, or of the one that is aggregated; INT for COUNT.
    arrow_type : pyarrow.DataType or None
        The attribute's type as it came in, where it is known.
    """

    name: str
    kind: ColumnKind
    type: AttributeType
    arrow_type: pa.DataType | None = None

    @property
    def is_time(self) -> bool:
        """Whether it is a time that is calculated, or the least or greatest of some."""
        return self.kind == "extremum" and self.type in (AttributeType.TIMESTAMP, AttributeType.DURATION)


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of a query as columns.

    Attributes
    ----------
    starts, ends : Runs of shape (rows,)
        Edges of the windows, in ticks of the clock.
    values : tuple of Values
        The RETURN items, in order, each of shape (rows,).
    """

    starts: Runs
    ends: Runs
    values: tuple[Values, ...]

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """The rows, as `QueryRows.rows` has them."""
        return zip(self.starts.tolist(), self.ends.tolist(), *(each.tolist() for each in self.values), strict=True)


class QueryRows:
    """The rows of one query.

    Parameters
    ----------
    name : str
        The query.
    columns : tuple of ResultColumn
        Its RETURN items, in order.
    rows : sequence of tuple
        ``(window_start, window_end, value, ...)``: the window in ticks of the clock, the values as Python objects in
        the order of `columns`, None for NULL. Ordered by window, then by group, NULL first.
    pieces : sequence of Piece
        The same as columns, instead of `rows`.
    """

    __slots__ = ("_rows", "columns", "name", "pieces")

    def __init__(
        self,
        name: str,
        columns: tuple[ResultColumn, ...],
        rows: Sequence[tuple[Any, ...]] = (),
        *,
        pieces: Sequence[Piece] = (),
    ) -> None:
        self.name = name
        self.columns = columns
        self.pieces = list(pieces)
        self._rows: list[tuple[Any, ...]] | None = None if pieces else list(rows)
        if rows:
            starts, ends, *values = zip(*rows, strict=True)
            self.pieces = [Piece(Runs.of(starts), Runs.of(ends), tuple(Values(list(each)) for each in values))]

    def __len__(self) -> int:
        return sum(len(piece.starts) for piece in self.pieces)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as tuples of Python objects; made when they are first asked for."""
        if self._rows is None:
            self._rows = [row for piece in self.pieces for row in piece.tuples()]
        return self._rows

    def first(self, count: int) -> list[tuple[Any, ...]]:
        """The first rows."""
        return (
            self.rows[:count]
            if self._rows is not None
            else list(islice(chain.from_iterable(piece.tuples() for piece in self.pieces), count))
        )

    @property
    def edges(self) -> tuple[int, int] | None:
        """The first and the last edge of a window; None where no window has any."""
        known = [piece for piece in self.pieces if len(piece.starts) and piece.starts.missing is None]
        if not known:
            return None
        return min(int(np.min(each.starts)) for each in known), max(int(np.max(each.ends)) for each in known)

    def drawn_at(self, start: int, end: int) -> QueryRows:
        """These rows, which all have one window without edges (WITHIN ALL), with others to draw them at."""
        pieces = []
        for piece in self.pieces:
            counts = piece.starts.counts
            first, last = (Runs(np.full(len(counts), edge, np.int64), counts) for edge in (start, end))
            pieces.append(replace(piece, starts=first, ends=last))
        return QueryRows(self.name, self.columns, pieces=pieces)

    def extend(self, other: QueryRows) -> None:
        """Take over later rows of the same query."""
        self.pieces += other.pieces
        self._rows = None


def dicts_of(rows: QueryRows, clock: Clock) -> list[dict[str, Any]]:
    """The rows of one query as dicts: query, window_start, window_end and the RETURN items, in this order."""
    names = ("query", "window_start", "window_end", *[column.name for column in rows.columns])
    found: list[dict[str, Any]] = []
    for piece in rows.pieces:
        edges = [ticks.tolist() for ticks in (piece.starts, piece.ends)]
        if clock.is_timestamp or clock.is_fraction:
            moments = {tick: clock.present(tick) for ticks in edges for tick in dict.fromkeys(ticks)}
            edges = [[moments[tick] for tick in ticks] for ticks in edges]
        columns = [repeat(rows.name), *edges, *[each.tolist() for each in piece.values]]
        found += [dict(zip(names, values)) for values in zip(*columns)]  # noqa: B905 (the first never ends)
    return found
