"""Result rows: as dicts, as Arrow tables, and what a COUNT becomes there.

A COUNT or SUM has no largest value, and Arrow has no such type, so the *count type* says what it becomes: a decimal
string (exact, the default), an int64 or decimal128(38, 0) (exact, an error where a value does not fit) or a double (may
be inf). A SUM over DOUBLE attributes is no integer: under int64 and decimal it is a double, and an error beyond the
double range. Source: LANGUAGE.md §9, DESIGN.md §5.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, islice, repeat
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import DataError, OptionError, OutputError, one_of
from hamlet.input.widening import plain_type
from hamlet.output.components import Values
from hamlet.output.digits import number_text
from hamlet.output.exchange import arrays, union
from hamlet.output.numbers import BeyondDoubles, Integers, Runs
from hamlet.query import AttributeType
from hamlet.schema import Clock, timestamp

COUNT_TYPES = ("string", "int64", "double", "decimal")
ColumnKind = Literal["attribute", "count", "sum", "double", "extremum"]
Number = int | float | Decimal

_ARROW_TYPES = {
    AttributeType.INT: pa.int64(),
    AttributeType.DOUBLE: pa.float64(),
    AttributeType.STRING: pa.string(),
    AttributeType.BOOLEAN: pa.bool_(),
    AttributeType.TIMESTAMP: pa.timestamp("us"),
}
_COUNT_ARROW_TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "decimal": pa.decimal128(38, 0),
}


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
        """Whether it is the least or greatest of timestamps or dates."""
        return self.kind == "extremum" and self.type is AttributeType.TIMESTAMP


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
        the order of `columns`, None for NULL. Ordered as LANGUAGE §9 says.
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

    def extend(self, other: QueryRows) -> None:
        """Take over later rows of the same query."""
        self.pieces += other.pieces
        self._rows = None


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


def dicts_of(rows: QueryRows, clock: Clock) -> list[dict[str, Any]]:
    """The rows of one query as dicts: query, window_start, window_end and the RETURN items, in this order."""
    names = ("query", "window_start", "window_end", *[column.name for column in rows.columns])
    found: list[dict[str, Any]] = []
    for piece in rows.pieces:
        edges = [ticks.tolist() for ticks in (piece.starts, piece.ends)]
        if clock.is_timestamp:
            moments = {tick: clock.present(tick) for ticks in edges for tick in dict.fromkeys(ticks)}
            edges = [[moments[tick] for tick in ticks] for ticks in edges]  # type: ignore[misc]
        columns = [repeat(rows.name), *edges, *[each.tolist() for each in piece.values]]
        found += [dict(zip(names, values)) for values in zip(*columns)]  # noqa: B905 (the first never ends)
    return found


def check_count_type(count_type: str) -> str:
    """The count type, if it is one; raises OptionError if not."""
    if count_type not in COUNT_TYPES:
        raise OptionError(f"count type {count_type!r} is unknown; it must be {one_of(COUNT_TYPES)}")
    return count_type


def result_schema(columns: Sequence[ResultColumn], clock: Clock, count_type: str = "string") -> pa.Schema:
    """The Arrow schema of a query's result: query, window_start, window_end, then the columns.

    Windows of an integer clock are int64 whatever the width of the time column: the first window may start before 0 and
    the last end after the largest time.
    """
    window = clock.type if clock.is_timestamp else pa.int64()
    fields = [("query", pa.string()), ("window_start", window), ("window_end", window)]
    return pa.schema(fields + [(column.name, _arrow_type(column, count_type)) for column in columns])


def _arrow_type(column: ResultColumn, count_type: str) -> pa.DataType:
    if column.kind in ("count", "sum"):
        real = column.kind == "sum" and column.type is AttributeType.DOUBLE
        return pa.float64() if real and count_type != "string" else _COUNT_ARROW_TYPES[count_type]
    if column.kind == "double":
        return pa.float64()
    kind = column.arrow_type
    if kind is None or pa.types.is_null(kind):
        return _ARROW_TYPES[column.type]
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if column.kind == "extremum" and pa.types.is_decimal(kind):
        return pa.float64()  # the engine computes with doubles
    return plain_type(kind)


def to_arrow(rows: QueryRows, clock: Clock, count_type: str = "string") -> pa.Table:
    """The rows of one query as a table of `result_schema`.

    Raises
    ------
    OutputError
        If a value does not fit the count type; the text names query, window and group.
    """
    schema = result_schema(rows.columns, clock, check_count_type(count_type))
    names = pa.repeat(rows.name, max((len(piece.starts) for piece in rows.pieces), default=0))
    batches = []
    for piece in rows.pieces:
        columns = [names.slice(0, len(piece.starts))]
        for edges in (piece.starts, piece.ends):
            columns.append(pa.array(np.asarray(edges, np.int64)).cast(schema.field(1).type))
        columns += [
            _array(rows, piece, place, schema.field(3 + place).type, clock, count_type)
            for place in range(len(rows.columns))
        ]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return pa.Table.from_batches(batches, schema)


def _array(rows: QueryRows, piece: Piece, place: int, kind: pa.DataType, clock: Clock, count_type: str) -> pa.Array:
    """A column of a piece in an Arrow type."""
    values = piece.values[place]
    if rows.columns[place].kind in ("attribute", "extremum"):
        return _plain_array(values, kind)
    direct = _direct(values.data, kind, infinite=count_type == "double")
    if direct is not None:
        return _numbers(direct, kind, None if values.valid is None or values.valid.all() else ~values.valid)
    return _fitted(rows, piece, place, kind, clock, count_type)


def _plain_array(values: Values, kind: pa.DataType) -> pa.Array:
    if values.places is not None:
        known = _plain_array(Values(values.data, values.valid, values.objects), kind)
        if known.null_count or not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            return known.take(pa.array(values.places))
        return pa.array(known.to_numpy()[values.places])
    if isinstance(values.data, list):
        return pa.array(values.data, kind)
    mask = None if values.valid is None or values.valid.all() else ~values.valid
    if values.objects is None:
        return _numbers(values.data, kind, mask)
    objects = pa.array(values.objects or [None], kind)
    return objects.take(pa.array(values.data, mask=mask))


def _direct(data: Any, kind: pa.DataType, infinite: bool) -> npt.NDArray[Any] | None:
    """Numbers as an array that Arrow turns into a type as `_fit` does; None where there is none."""
    if isinstance(data, Integers) and pa.types.is_floating(kind):
        return data.doubles()
    if isinstance(data, BeyondDoubles) and infinite:
        return data.nearest
    if not isinstance(data, np.ndarray):
        return None
    if data.dtype == np.int64 or pa.types.is_floating(kind):
        return data
    return data if pa.types.is_int64(kind) and (np.abs(data) < 2.0**63).all() else None


def _numbers(data: npt.NDArray[Any], kind: pa.DataType, mask: npt.NDArray[np.bool_] | None) -> pa.Array:
    if data.dtype == np.float64 and pa.types.is_int64(kind):
        data = np.rint(data).astype(np.int64)  # a COUNT in float mode is nearly an integer
    return pa.array(data, mask=mask).cast(kind, safe=not pa.types.is_floating(kind))


def _fitted(rows: QueryRows, piece: Piece, place: int, kind: pa.DataType, clock: Clock, count_type: str) -> pa.Array:
    """Numbers of any size in an Arrow type."""
    values = piece.values[place].tolist()
    if pa.types.is_string(kind):  # whatever the number is, it fits
        return pa.array([None if value is None else number_text(value) for value in values], kind)
    fitted: list[Any] = []
    for row, value in enumerate(values):
        try:
            fitted.append(None if value is None else _fit(value, kind, infinite=count_type == "double"))
        except _UnfitError as error:
            raise _unfit(rows, next(islice(piece.tuples(), row, None)), place, clock, str(error)) from None
    return pa.array(fitted, kind)


class _UnfitError(Exception):
    """A number does not fit the Arrow type that the text names."""


def _fit(value: Number, kind: pa.DataType, infinite: bool) -> int | float | Decimal:
    """One number in an Arrow type; _UnfitError names the type that it does not fit."""
    if pa.types.is_floating(kind):
        real = _as_double(value)
        if math.isinf(real) and not isinstance(value, float) and not infinite:
            raise _UnfitError("a double")
        return real
    is_int64 = pa.types.is_int64(kind)
    low, high = (-(2**63), 2**63) if is_int64 else (1 - 10**38, 10**38)
    if not low <= value < high:
        raise _UnfitError("int64" if is_int64 else "decimal(38, 0)")
    whole = round(value)  # a COUNT in float mode is nearly an integer
    return whole if is_int64 else Decimal(whole)


def _as_double(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _unfit(rows: QueryRows, row: tuple[Any, ...], place: int, clock: Clock, what: str) -> OutputError:
    start, end, *values = row
    named = zip(rows.columns, values, strict=True)
    group = ", ".join(f"{column.name}={value}" for column, value in named if column.kind == "attribute")
    text = number_text(values[place])
    shown = text if len(text) <= 50 else f"{text[:20]}... ({len(text)} characters)"
    where = f"query {rows.name}, window [{time_text(start, clock)}, {time_text(end, clock)})"
    where += f", group {group}" if group else ""
    return OutputError(
        f"{where}: {rows.columns[place].name} = {shown} does not fit {what}; "
        "the count type string is exact, double may be inf"
    )


def time_text(ticks: int, clock: Clock) -> str:
    """An edge of a window as text: the integer, or ISO 8601 with all digits that the clock's unit has."""
    if not clock.is_timestamp:
        return str(ticks)
    per_second = clock.ticks_per_second
    seconds, rest = divmod(ticks, per_second)
    try:
        text = timestamp(seconds, "s", clock.type.tz).isoformat()
    except DataError as error:
        raise OutputError(f"a window ends {seconds} s from 1970, outside the years 1 to 9999") from error
    if not rest:
        return text
    fraction = f".{rest:0{len(str(per_second)) - 1}d}"
    return text[:19] + fraction + text[19:]  # before the zone's offset, if there is one


def count_infinite(table: pa.Table, columns: Sequence[ResultColumn]) -> int:
    """How many COUNT and SUM values of a table in doubles are beyond the double range."""
    total = 0
    for column in columns:
        values = table.column(column.name)
        if column.kind in ("count", "sum") and pa.types.is_floating(values.type):
            total += pc.sum(pc.is_inf(values)).as_py() or 0
    return total
