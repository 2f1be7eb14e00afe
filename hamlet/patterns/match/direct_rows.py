"""Rows of single matches without the host: columns at rows of the match, counts, sums, and their arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hamlet.patterns.clause.expressions import LABEL, NUMBER, Aggregation, Navigation, Read
from hamlet.patterns.match.measures import members_of

if TYPE_CHECKING:
    from hamlet.patterns.match.evaluate import Meaning

_KINDS = {pa.int8(): "int8", pa.int16(): "int16", pa.int32(): "int32", pa.int64(): "int", pa.float64(): "real"}
_BITS = {"int8": 8, "int16": 16, "int32": 32, "int": 64, "real": 64}
_PARTS = {"expressions", "from", "from_", "kind"}  # of a SELECT that takes columns as they are


@dataclass(slots=True)
class Seen:
    """A match.

    Attributes
    ----------
    rows : list of tuple
        Of its partition.
    start, length, number : int
    labels : list of int
        The variable of each of its rows.
    """

    rows: list[tuple[Any, ...]]
    start: int
    length: int
    number: int
    labels: list[int]


Value = Callable[[Seen], Any]


class _UnknownError(Exception):
    """The host has to compute it."""


@dataclass
class RowForm:
    """How rows are made of matches, a row per match.

    Attributes
    ----------
    names : sequence of str
        Of the columns of a row.
    keys : mapping of int to int
        The column of the table by its place in a row.
    values : list of (int, callable)
        Measures by their places in a row.
    """

    names: Sequence[str]
    parts: list[Value]
    variables: list[int]

    def row(self, rows: list[tuple[Any, ...]], match: tuple[int, int, int, Any]) -> dict[str, Any]:
        """The row of a match."""
        start, length, number, steps = match
        variables = self.variables
        seen = Seen(rows, start, length, number, [variables[step] for step in steps.tolist()])
        return {name: value(seen) for name, value in zip(self.names, self.parts, strict=True)}


def compile_rows(
    meaning: Meaning, places: Mapping[str, int], keys: Sequence[int], schema: pa.Schema, outer: str
) -> RowForm | None:
    """How rows are made, None where the host has to make them."""
    clause = meaning.clause
    if clause.rows != "one" or not (keys or clause.measures):
        return None
    try:
        measures = [_Measure(meaning, places, schema).value(read) for read in meaning.measures]
    except (_UnknownError, RecursionError):
        return None

    def of_key(place: int) -> Value:
        return lambda seen: seen.rows[seen.start][place]

    listed: list[tuple[str, Value]] = list(zip(meaning.key_names(), map(of_key, keys), strict=True))
    listed += list(zip([each.name for each in clause.measures], measures, strict=True))
    if len({name.lower() for name, _ in listed}) < len(listed):
        return None
    chosen = _chosen(outer, listed)
    if chosen is None:
        return None
    return RowForm([name for name, _ in chosen], [value for _, value in chosen], list(meaning.program.variables))


def _chosen(outer: str, listed: list[tuple[str, Value]]) -> list[tuple[str, Value]] | None:
    """The columns that a statement without a condition gives, None where it computes any."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(outer, dialect="duckdb")
    if not isinstance(tree, exp.Select) or {name for name, each in tree.args.items() if each} - _PARTS:
        return None
    by_name = {name.lower(): value for name, value in listed}
    found: list[tuple[str, Value]] = []
    for each in tree.expressions:
        if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
            if any(value for name, value in (each if isinstance(each, exp.Star) else each.this).args.items()):
                return None
            found += listed
            continue
        column = each.this if isinstance(each, exp.Alias) else each
        if not isinstance(column, exp.Column) or column.name.lower() not in by_name or len(column.parts) > 2:
            return None
        found.append((each.alias_or_name, by_name[column.name.lower()]))
    return found if len({name.lower() for name, _ in found}) == len(found) else None


class _Measure:
    def __init__(self, meaning: Meaning, places: Mapping[str, int], schema: pa.Schema) -> None:
        self._clause, self._places, self._schema = meaning.clause, places, schema
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
        bare = text.strip()
        if bare[:1] == '"' and bare[-1:] == '"' and len(bare) > 1:
            bare = bare[1:-1].replace('""', '"')
        place = self._places.get(bare.lower())
        if place is None:
            raise _UnknownError
        return place

    def _kind(self, place: int) -> str:
        return _KINDS.get(self._schema.types[place], "other")

    def _members(self, variable: str | None) -> frozenset[int] | None:
        return None if variable is None else frozenset(members_of(self._clause, [variable]))

    def _navigation(self, reading: Navigation) -> tuple[Value, str]:
        if reading.step > 0 or reading.mode == "RUNNING":
            raise _UnknownError
        members, inwards, last, step = self._members(reading.variable), reading.inwards, reading.last, reading.step

        def position(seen: Seen) -> int:
            if members is None:
                place = seen.length - 1 - inwards if last else inwards
                return place if 0 <= place < seen.length else -1
            left = inwards
            for place in range(seen.length - 1, -1, -1) if last else range(seen.length):
                if seen.labels[place] in members:
                    if not left:
                        return place
                    left -= 1
            return -1

        if reading.value == LABEL:
            names = self._names

            def label(seen: Seen) -> Any:
                place = position(seen)
                return None if place < 0 or place + step < 0 else names[seen.labels[place + step]]

            return label, "other"
        column = self._place(reading.value)

        def value(seen: Seen) -> Any:
            place = position(seen)
            row = seen.start + place + step
            return None if place < 0 or row < 0 else seen.rows[row][column]

        return value, self._kind(column)

    def _aggregate(self, reading: Aggregation) -> tuple[Value, str]:
        function, members = reading.function.lower(), self._members(reading.variable)
        plain = not (reading.distinct or reading.order or reading.within or reading.condition)
        if not plain or reading.mode == "RUNNING":
            raise _UnknownError
        if function == "count" and reading.arguments.strip() in ("*", ""):
            if members is None:
                return (lambda seen: seen.length), "int"
            return (lambda seen: sum(label in members for label in seen.labels)), "int"
        column = self._place(reading.arguments)
        if function not in ("count", "sum", "min", "max") or (
            function != "count" and not self._kind(column).startswith("int")
        ):
            raise _UnknownError

        def values(seen: Seen) -> list[Any]:
            found = [
                seen.rows[seen.start + place][column]
                for place in range(seen.length)
                if members is None or seen.labels[place] in members
            ]
            return [each for each in found if each is not None]

        if function == "count":
            return (lambda seen: len(values(seen))), "int"
        if function == "sum":
            return (lambda seen: Decimal(sum(found)) if (found := values(seen)) else None), "other"
        chosen = min if function == "min" else max
        return (lambda seen: chosen(values(seen), default=None)), self._kind(column)
