"""Rows of single matches without the host: columns at rows of the match, counts, sums, and their arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hamlet.patterns.clause.expressions import LABEL, NUMBER, Aggregation, Navigation, Read
from hamlet.patterns.match.evaluate import distinct_columns, listed_columns
from hamlet.patterns.match.measures import members_of
from hamlet.patterns.match.projection import projection

if TYPE_CHECKING:
    from hamlet.patterns.match.direct import Columns
    from hamlet.patterns.match.evaluate import Meaning

_KINDS = {pa.int8(): "int8", pa.int16(): "int16", pa.int32(): "int32", pa.int64(): "int", pa.float64(): "real"}
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int": 64, "real": 64}
_LONG = 256  # rows of a match from which on the host computes what each of them sees
Match = tuple[int, int, int, Any]


@dataclass(slots=True)
class Seen:
    """A match as one of its rows sees it, or a row of none.

    Attributes
    ----------
    rows : list of tuple
        Of its partition.
    start, length, number : int
    labels : list of int
        The variable of each of its rows.
    at : int
        The row that is shown, -1 for an empty match.
    limit : int
        How many rows of the match are seen by what is not FINAL.
    """

    rows: list[tuple[Any, ...]]
    start: int
    length: int
    number: int
    labels: list[int]
    at: int
    limit: int


Value = Callable[[Seen], Any]


class _UnknownError(Exception):
    """The host has to compute it."""


@dataclass
class RowForm:
    """How rows are made of matches.

    Attributes
    ----------
    names : sequence of str
        Of the columns of a row.
    parts : list of callable
        Their values.
    variables : list of int
        By step of the pattern.
    excluded : list of bool
        By step, whether its rows are left out.
    shown : str
        The rows per match, as the clause says it.
    """

    names: Sequence[str]
    parts: list[Value]
    variables: list[int]
    excluded: list[bool]
    shown: str

    def takes(self, found: Sequence[Match]) -> bool:
        """Whether matches are short enough."""
        return self.shown == "one" or all(each[1] < _LONG for each in found)

    def rows(self, rows: list[tuple[Any, ...]], found: Sequence[Match]) -> list[dict[str, Any]]:
        """The rows of matches, and of rows of no match, of one partition."""
        names, parts = self.names, self.parts
        return [
            {name: value(seen) for name, value in zip(names, parts, strict=True)}
            for match in found
            for seen in self._seen(rows, match)
        ]

    def _seen(self, rows: list[tuple[Any, ...]], match: Match) -> Iterator[Seen]:
        start, length, number, steps = match
        if length < 0:
            yield Seen(rows, start, -1, 0, [], -1, 0)
            return
        taken = steps.tolist()
        seen = Seen(rows, start, length, number, [self.variables[step] for step in taken], length - 1, length)
        if self.shown == "one" or not length:
            if length or self.shown != "omit":
                yield seen
            return
        for place, step in enumerate(taken):
            if not self.excluded[step]:
                yield Seen(rows, start, length, number, seen.labels, place, place + 1)


def compile_rows(meaning: Meaning, given: Columns, outer: str) -> RowForm | None:
    """How rows are made, None where the host has to make them."""
    clause, values = meaning.clause, dict[str, Value]()
    try:
        for place, read in enumerate(meaning.measures):
            values[f"measure {place}"] = _matched(_Measure(meaning, given).value(read))
    except (_UnknownError, RecursionError):
        return None
    measures = list(zip([each.name for each in clause.measures], values, strict=True))
    columns = {name: f"column {place}" for place, name in enumerate(given.schema.names)}
    values |= {text: _shown(place, given.shown[place]) for place, text in enumerate(columns.values())}
    listed = listed_columns(meaning, [f"column {place}" for place in given.keys], measures, columns)
    if not listed:
        return None
    columns_given = distinct_columns(listed)
    chosen = projection(outer, [name for name, _ in columns_given])
    if chosen is None:
        return None
    parts = [values[columns_given[place][1]] for _, place in chosen]
    program = meaning.program
    names = [name for name, _ in chosen]
    return RowForm(names, parts, list(program.variables), list(program.excluded), clause.rows)


def _matched(value: Value) -> Value:
    """A measure, NULL at a row of no match."""
    return lambda seen: None if seen.length < 0 else value(seen)


def _shown(place: int, form: Callable[[Any], Any] | None) -> Value:
    """A column of the row that is shown."""
    if form is not None:
        return lambda seen: form(seen.rows[seen.start + max(seen.at, 0)][place])
    return lambda seen: seen.rows[seen.start + max(seen.at, 0)][place]


class _Measure:
    def __init__(self, meaning: Meaning, columns: Columns) -> None:
        self._clause, self._columns = meaning.clause, columns
        self._names = list(meaning.clause.variables.values())

    def value(self, read: Read) -> Value:
        """A measure of a match."""
        import sqlglot

        try:
            tree = sqlglot.parse_one(read.text, dialect="duckdb")
        except sqlglot.errors.SqlglotError:
            raise _UnknownError from None
        return self._compile(tree, read)[0]

    def _compile(self, node: Any, read: Read) -> tuple[Value, str]:
        name = type(node).__name__
        if name == "Paren":
            return self._compile(node.this, read)
        if name == "Literal" and not node.is_string and node.this.isdecimal() and len(node.this) < 10:
            constant = int(node.this)
            return (lambda _: constant), "literal"
        if name == "Column" and len(node.parts) == 1:
            return self._column(node.parts[0].name, read)
        if name in ("Sub", "Add"):
            return self._sum(name == "Add", node, read)
        raise _UnknownError

    def _sum(self, adds: bool, node: Any, read: Read) -> tuple[Value, str]:
        (left, kind), (right, other) = self._compile(node.left, read), self._compile(node.right, read)
        kinds = {kind, other} - {"literal"}
        narrow = kinds - {"real", "other"}
        if not kinds or kinds not in (narrow, {"real"}):
            raise _UnknownError
        chosen = max(kinds, key=_BITS.__getitem__)
        most = 1 << (_BITS[chosen] - 1)

        def value(seen: Seen) -> Any:
            one, two = left(seen), right(seen)
            if one is None or two is None:
                return None
            found = one + two if adds else one - two
            if type(found) is int and not -most <= found < most:
                raise OverflowError
            return found

        return value, chosen

    def _column(self, name: str, read: Read) -> tuple[Value, str]:
        if name == NUMBER:
            return (lambda seen: seen.number), "int"
        if not name.startswith("__hamlet_read_"):
            return self._navigation(Navigation(None, True, 0, 0, name, None, read.expression.span))
        reading = read.readings[int(name.removeprefix("__hamlet_read_").rstrip("_"))]
        return self._aggregate(reading) if isinstance(reading, Aggregation) else self._navigation(reading)

    def _place(self, text: str) -> int:
        place = self._columns.place(text)
        if place is None:
            raise _UnknownError
        return place

    def _kind(self, place: int) -> str:
        return _KINDS.get(self._columns.schema.types[place], "other")

    def _members(self, variable: str | None) -> frozenset[int] | None:
        return None if variable is None else frozenset(members_of(self._clause, [variable]))

    def _limit(self, mode: str | None) -> Callable[[Seen], int]:
        """How many rows of the match are seen."""
        if mode == "FINAL" or (mode is None and self._clause.rows == "one"):
            return lambda seen: seen.length
        return lambda seen: seen.limit

    def _navigation(self, reading: Navigation) -> tuple[Value, str]:
        members, inwards, last, step = self._members(reading.variable), reading.inwards, reading.last, reading.step
        limit = self._limit(reading.mode)

        def position(seen: Seen) -> int:
            end = limit(seen)
            if members is None:
                place = end - 1 - inwards if last else inwards
                return place if 0 <= place < end else -1
            left = inwards
            for place in range(end - 1, -1, -1) if last else range(end):
                if seen.labels[place] in members:
                    if not left:
                        return place
                    left -= 1
            return -1

        if reading.value == LABEL:
            names = self._names

            def label(seen: Seen) -> Any:
                place = position(seen)
                return names[seen.labels[place + step]] if place >= 0 and 0 <= place + step < seen.length else None

            return label, "other"
        column = self._place(reading.value)
        form = self._columns.shown[column]

        def value(seen: Seen) -> Any:
            place = position(seen)
            row = seen.start + place + step
            if place < 0 or not 0 <= row < len(seen.rows):
                return None
            return seen.rows[row][column] if form is None else form(seen.rows[row][column])

        return value, self._kind(column)

    def _aggregate(self, reading: Aggregation) -> tuple[Value, str]:
        function, members = reading.function.lower(), self._members(reading.variable)
        limit = self._limit(reading.mode)
        if reading.distinct or reading.order or reading.within or reading.condition:
            raise _UnknownError
        if function == "count" and reading.arguments.strip() in ("*", ""):
            if members is None:
                return limit, "int"
            return (lambda seen: sum(label in members for label in seen.labels[: limit(seen)])), "int"
        column = self._place(reading.arguments)
        kind = self._kind(column)

        def values(seen: Seen) -> list[Any]:
            found = [
                seen.rows[seen.start + place][column]
                for place in range(limit(seen))
                if members is None or seen.labels[place] in members
            ]
            return [each for each in found if each is not None]

        if function == "count":
            return (lambda seen: len(values(seen))), "int"
        if kind == "other" or (kind == "real" and function in ("min", "max")):  # NaN is the greatest for the host
            raise _UnknownError
        if function in ("min", "max"):
            chosen = min if function == "min" else max
            return (lambda seen: chosen(values(seen), default=None)), kind
        if function == "avg":
            return (lambda seen: reduce(add, found) / len(found) if (found := values(seen)) else None), "real"
        if function != "sum":
            raise _UnknownError
        if kind == "real":
            return (lambda seen: reduce(add, found) if (found := values(seen)) else None), kind
        return (lambda seen: Decimal(sum(found)) if (found := values(seen)) else None), "other"
