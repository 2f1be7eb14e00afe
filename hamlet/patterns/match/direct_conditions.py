"""Conditions over rows that come one by one, as programs of the kernel.

A program reads columns of a row and of rows at a fixed distance from it. It says whether a row meets a condition, or
gives what conditions over labels read of the row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.patterns.automaton._live import days, microseconds, without_row
from hamlet.patterns.match.conditions import host_text
from hamlet.patterns.match.direct_times import of_day, ticks_in, units_in
from hamlet.patterns.match.native import (
    DIVIDE_REAL,
    MULTIPLY_INT,
    NARROW,
    OR,
    OTHER,
    PUSH_INT,
    PUSH_NULL,
    READ_INT,
    READ_REAL,
    REALS,
    Compiler,
    Operation,
    Typed,
)
from hamlet.patterns.match.ordered import UnknownError, of_times
from hamlet.patterns.match.search import native_programs

if TYPE_CHECKING:
    from hamlet.patterns.match.evaluate import Meaning

_DEEPEST = 60
_SHIFTED = "__hamlet_shifted"
BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
_DATE, _STAMP, _ZONED = "time:DATE", "time:TIMESTAMP", "time:TIMESTAMP WITH TIME ZONE"
_MOMENTS = {
    "DATE": re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    "TIMESTAMP": re.compile(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d)?", re.ASCII),
}
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
Program = tuple[npt.NDArray[Any], npt.NDArray[Any], bool]
Values = Callable[[tuple[Any, ...]], tuple[Any, ...]]


@dataclass
class Conditions:
    """The conditions of a statement; see `hamlet.patterns.automaton._live.Live`.

    Attributes
    ----------
    programs : list
    cells : int
    back : int
    searching : tuple or None
    values : callable
        From a row to its cells.
    texts : list of str
        To be kept as long as programs run.
    """

    programs: list[Program | None]
    cells: int
    back: int
    searching: tuple[Any, ...] | None
    values: Values
    texts: list[str]


def compile_conditions(meaning: Meaning, places: Mapping[str, int], schema: pa.Schema) -> Conditions | None:
    """The conditions of a statement, None where one needs the host."""
    rows = _Rows(places, schema, meaning.whole_division)
    programs: list[Program | None] = []
    searching = None
    try:
        for name in meaning.clause.variables:
            condition = meaning.conditions.get(name)
            if condition is None or condition.reads_match:
                programs.append(None)
            else:
                programs.append(rows.program(host_text(meaning.clause, condition, rows))[1])
        if meaning.reads_labels:
            found = native_programs(meaning, rows)
            if found is None:
                return None
            members, slots, sums, keep = found[0].arrays()
            searching = members, slots, sums, found[1], keep, found[0].all_labels
    except (UnknownError, OverflowError):
        return None
    programs += [None] * (not programs)  # as many as `Meaning.skip` has
    return Conditions(
        programs + rows.columns, len(rows.reads), rows.back, searching, _values(rows.reads, schema), rows.texts
    )


def _values(reads: list[int], schema: pa.Schema) -> Values:
    """From a row to the values that conditions read."""
    if not reads:
        return lambda _: ()
    readers = [_reader(schema.types[place]) for place in reads]
    if not any(readers):
        chosen = itemgetter(*reads)
        return (lambda row: (chosen(row),)) if len(reads) == 1 else chosen
    several = list(zip(reads, readers, strict=True))

    def read(row: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(
            value if (value := row[place]) is None or reader is None else reader(value) for place, reader in several
        )

    return read


def _reader(kind: pa.DataType) -> Callable[[Any], int] | None:
    """From a value to the whole number that programs read; None where they read it as it is."""
    known, _ = _kind_of(kind)
    if known == OTHER:
        return lambda _: 0
    if known.startswith("decimal:"):
        return units_in(kind)
    if pa.types.is_timestamp(kind):
        return ticks_in(kind) if kind.unit == "ns" else microseconds
    clocks: dict[str, Callable[[Any], int]] = {_DATE: days, "time:TIME": of_day}
    return clocks.get(known)


class _Rows:
    """Rows that come one by one, as a host of expressions (`hamlet.patterns.match.ordered.Expressions`).

    Attributes
    ----------
    reads : list of int
        By cell, the column that it holds.
    texts : list of str
        Of programs, which have their addresses.
    columns : list of Program
        Of expressions that conditions over labels read.
    back : int
        The most rows back that programs read.
    """

    dialect: ClassVar[str] = "duckdb"
    times: ClassVar[Mapping[tuple[str, str, str], str]] = {
        **of_times(_STAMP),
        **of_times(_ZONED),  # of UTC, as the host is here: each day has 24 hours
        ("Sub", _DATE, _DATE): "int",
    }

    def __init__(self, places: Mapping[str, int], schema: pa.Schema, whole_division: bool) -> None:
        self.places, self.schema, self.whole_division = places, schema, whole_division
        self.reads: list[int] = []
        self.texts: list[str] = []
        self.columns: list[Program | None] = []
        self.back = 0

    def label_text(self, name: str) -> str:
        """A text."""
        return "'" + name.replace("'", "''") + "'"

    def shifted(self, value: str, step: int) -> str:
        """A call that `_RowCompiler` knows."""
        return f"{_SHIFTED}(({value}), {step})" if step else f"({value})"

    def numbers(self, text: str) -> tuple[str, npt.NDArray[Any], npt.NDArray[np.uint8]]:
        """The kind of a column; its values come with the rows."""
        kind, program = self.program(text)
        self.columns.append(program)
        return kind, np.zeros(0, np.int64), np.zeros(0, np.uint8)

    def without_row(self, text: str) -> Any:
        """The number that an expression gives where all columns are NULL."""
        return without_row(*self.program(text)[1])

    def program(self, text: str) -> tuple[str, Program]:
        """The kind of an expression and its program."""
        import sqlglot

        try:
            found = _RowCompiler(self).compile(sqlglot.parse_one(text, dialect="duckdb"))
        except (sqlglot.errors.SqlglotError, RecursionError):
            raise UnknownError from None
        if found.depth > _DEEPEST:
            raise UnknownError
        code = np.array([operation[:4] for operation in found.code], np.int64).reshape(len(found.code), 4)
        reals = np.array([operation[4] for operation in found.code], np.float64)
        return found.kind, (code, reals, found.kind in REALS)


class _RowCompiler(Compiler):
    """Code for an expression over a row and rows at a fixed distance from it."""

    def __init__(self, rows: _Rows) -> None:
        self._rows = self.ordered = rows
        self._step = 0

    def compile(self, node: Any) -> Typed:
        """Code for a node of an expression."""
        name = type(node).__name__
        if name == "Column" and len(node.parts) == 1:
            return self._read(node.parts[0].name)
        if name == "Anonymous" and node.name == _SHIFTED:
            return self._there(node)
        if name == "Boolean":
            return Typed([(PUSH_INT, int(node.this), 0, 0, 0.0)], "bool", 1)
        if name == "Null":
            return Typed([(PUSH_NULL, 0, 0, 0, 0.0)], "null", 1)
        if name == "Case":
            return self._nothing(node)
        if name == "Cast":
            return self._cast(node)
        if name == "In" and not node.args.get("query") and not node.args.get("unnest"):
            return self._in(node)
        if self._step and name in ("Coalesce", "And", "Or", "Is", "NullSafeEQ", "NullSafeNEQ"):
            raise UnknownError  # without the row it is NULL as a whole, strict or not
        if name == "Div":
            parts = [self.compile(each) for each in (node.left, node.right)]
            if self._rows.whole_division and all(each.kind == "int" for each in parts):
                raise UnknownError
            return self._joined([self._real(each) for each in parts], DIVIDE_REAL, "real")
        found = super().compile(node)
        if name in ("Add", "Sub", "Mul", "Neg", "Abs") and found.kind == "int":
            bits = self._bits(node)
            found.digits = _DIGITS.get(bits, 19)
            if 0 < bits < 64:
                return self._after(found, (NARROW, bits, 0, 0, 0.0), "int")
        return found

    def _cast(self, node: Any) -> Typed:
        """A date or a time that is written out, or whether something is so as 1 or 0."""
        if type(node.this).__name__ == "Literal":
            return _moment(node)
        inner = self.compile(node.this)
        if inner.kind != "bool" or node.to.sql("duckdb") != "INT":
            raise UnknownError
        return Typed(inner.code, "int", inner.depth, 1)

    def _compared(self, which: int, left: Typed, right: Typed) -> Typed:
        return super()._compared(which, *self._of_one_clock(left, right))

    def _of_one_kind(self, one: Typed, other: Typed) -> tuple[Typed, Typed, str]:
        return super()._of_one_kind(*self._of_one_clock(one, other))

    def _computed(self, name: str, left: Typed, right: Typed) -> Typed:
        kinds = left.kind, right.kind
        if "interval" in kinds:
            left, right = (self._instant(each) if each.kind == _DATE else each for each in (left, right))
        return super()._computed(name, left, right)

    def _of_one_clock(self, one: Typed, other: Typed) -> tuple[Typed, Typed]:
        """Dates and times, with a zone or without, as the host compares them where its zone is UTC."""
        if one.kind == other.kind or not {one.kind, other.kind} <= {_DATE, _STAMP, _ZONED}:
            return one, other
        return self._instant(one), self._instant(other)

    def _instant(self, moment: Typed) -> Typed:
        """A date or a time as microseconds."""
        if moment.kind != _DATE:
            return Typed(moment.code, _STAMP, moment.depth)
        code: list[Operation] = [(PUSH_INT, 86_400 * 10**6, 0, 0, 0.0), (MULTIPLY_INT, 0, 0, 0, 0.0)]
        return Typed([*moment.code, *code], _STAMP, max(moment.depth, 2))

    def _there(self, node: Any) -> Typed:
        """An expression at another row."""
        if self._step:
            raise UnknownError
        self._step = -int(node.expressions[1].sql())
        try:
            return self.compile(node.expressions[0])
        finally:
            self._step = 0

    def _nothing(self, node: Any) -> Typed:
        """NULL of the kind of an expression: ``CASE WHEN false THEN ... END``."""
        conditions = node.args["ifs"]
        if len(conditions) > 1 or node.args.get("default") or type(conditions[0].this).__name__ != "Boolean":
            raise UnknownError
        inner = self.compile(conditions[0].args["true"])
        return Typed([(PUSH_NULL, 0, 0, 0, 0.0)], inner.kind, 1, inner.digits)

    def _bits(self, node: Any) -> int:
        """The bits of a whole number of the host; 0 for a constant, which has those of what it is computed with."""
        name = type(node).__name__
        if name in ("Paren", "Neg", "Abs"):
            return self._bits(node.this)
        if name == "Anonymous":
            return self._bits(node.expressions[0])
        if name == "Literal":
            return 0
        if name in ("Add", "Sub", "Mul"):
            bits = max(self._bits(node.left), self._bits(node.right)) or 32
            for each in (node.left, node.right):
                while type(each).__name__ in ("Paren", "Neg"):
                    each = each.this
                if type(each).__name__ == "Literal" and int(each.this) >= 1 << (bits - 1):
                    raise UnknownError  # the host finds a wider type
            return bits
        if name == "Column" and len(node.parts) == 1:
            kind = self._rows.schema.types[self._rows.places[node.parts[0].name.lower()]]
            if pa.types.is_unsigned_integer(kind):
                raise UnknownError  # the host finds a type of its own
            return BITS.get(kind, 64)
        return 64

    def _readings(self, node: Any) -> list[int]:  # noqa: ARG002
        return []

    def _is_one_row(self, node: Any, readings: list[int]) -> bool:  # noqa: ARG002
        return False

    def _literal(self, node: Any) -> Typed:
        if not node.is_string:
            return super()._literal(node)
        self._rows.texts.append(node.this)
        return Typed([(PUSH_INT, id(node.this), 0, 0, 0.0)], "text", 1)

    def _read(self, name: str) -> Typed:
        rows = self._rows
        place = rows.places.get(name.lower())
        if place is None:
            raise UnknownError
        given = rows.schema.types[place]
        kind, digits = _kind_of(given)
        if place not in rows.reads:
            rows.reads.append(place)
        rows.back = max(rows.back, self._step)
        operation = READ_REAL if kind in REALS else READ_INT
        return Typed([(operation, rows.reads.index(place), self._step, 0, 0.0)], kind, 1, digits)

    def _in(self, node: Any) -> Typed:
        if self._step or not node.expressions:
            raise UnknownError
        from sqlglot import exp

        parts = [self.compile(exp.EQ(this=node.this.copy(), expression=each.copy())) for each in node.expressions]
        found = parts[0]
        for each in parts[1:]:
            found = self._joined([found, each], OR, "bool")
        return found


def _moment(node: Any) -> Typed:
    """A date or a time of no zone that is written out."""
    kind, text = node.to.sql("duckdb"), node.this.this
    if not node.this.is_string or kind not in _MOMENTS or not _MOMENTS[kind].fullmatch(text):
        raise UnknownError
    try:
        found = days(date.fromisoformat(text)) if kind == "DATE" else microseconds(datetime.fromisoformat(text))
    except ValueError:
        raise UnknownError from None
    return Typed([(PUSH_INT, found, 0, 0, 0.0)], f"time:{kind}", 1)


def _kind_of(kind: pa.DataType) -> tuple[str, int | None]:
    """The kernel's kind of a column and how many digits it has at most."""
    if pa.types.is_integer(kind) and not pa.types.is_uint64(kind):
        return "int", _DIGITS[kind.bit_width]
    if pa.types.is_decimal128(kind) and kind.precision <= 18 and kind.scale >= 0:
        return f"decimal:{kind.scale}", kind.precision
    if pa.types.is_timestamp(kind):  # others than of nanoseconds are compared and computed with in microseconds
        zone = "" if kind.tz is None else " WITH TIME ZONE"
        return f"time:TIMESTAMP{'_NS' if kind.unit == 'ns' else ''}{zone}", None
    known = {pa.float64(): "real", pa.float32(): "single", pa.bool_(): "bool", pa.date32(): _DATE, pa.string(): "text"}
    known[pa.time64("us")] = "time:TIME"
    return known.get(kind, OTHER), None
