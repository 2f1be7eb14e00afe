"""Conditions that compare columns of the candidate row and of rows before it, as programs of the kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.patterns.clause.expressions import Navigation
from hamlet.patterns.match.native import (
    NARROW,
    NOT,
    OR,
    PUSH_INT,
    PUSH_NULL,
    PUSH_REAL,
    READ_INT,
    READ_REAL,
    Compiler,
    Typed,
)
from hamlet.patterns.match.ordered import UnknownError

if TYPE_CHECKING:
    from hamlet.patterns.match.conditions import Condition
    from hamlet.patterns.match.evaluate import Meaning

_DEEPEST = 60
BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}
Programs = list[tuple[npt.NDArray[Any], npt.NDArray[Any]] | None]
Values = Callable[[tuple[Any, ...]], tuple[Any, ...]]
Read = tuple[int, frozenset[str] | None]  # a column, and the texts that it is compared with


def compile_conditions(
    meaning: Meaning, places: Mapping[str, int], schema: pa.Schema
) -> tuple[Programs, int, int, Values] | None:
    """The conditions of a statement, None where one needs the host.

    Returns
    -------
    (list, int, int, callable)
        Programs by variable, how many values they read of a row, how many rows back, and these values of a row.
    """
    import sqlglot

    reads: list[Read] = []
    programs: Programs = []
    back = 0
    for name in meaning.clause.variables:
        condition = meaning.conditions.get(name)
        if condition is None:
            programs.append(None)
            continue
        compiler = _RowCompiler(meaning, condition, places, schema, reads)
        try:
            found = compiler.compile(sqlglot.parse_one(condition.read.text, dialect="duckdb"))
        except (UnknownError, sqlglot.errors.SqlglotError, RecursionError, OverflowError):
            return None
        if found.kind not in ("bool", "null") or found.depth > _DEEPEST:
            return None
        code = np.array([operation[:4] for operation in found.code], np.int64).reshape(len(found.code), 4)
        programs.append((code, np.array([operation[4] for operation in found.code], np.float64)))
        back = max(back, compiler.back)
    return programs, len(reads), back, _values(reads, schema)


def _values(reads: list[Read], schema: pa.Schema) -> Values:
    """From a row to the values that conditions read."""
    from hamlet.patterns.match.direct import ticks

    if not reads:
        return lambda _: ()
    if all(texts is None and not pa.types.is_timestamp(schema.types[place]) for place, texts in reads):
        chosen = itemgetter(*(place for place, _ in reads))
        return (lambda row: (chosen(row),)) if len(reads) == 1 else chosen

    def read(row: tuple[Any, ...]) -> tuple[Any, ...]:
        found = []
        for place, texts in reads:
            value = row[place]
            if value is not None:
                if texts is not None:
                    value = value in texts
                elif type(value) not in (int, float, bool):
                    value = ticks(value)
            found.append(value)
        return tuple(found)

    return read


class _RowCompiler(Compiler):
    """Code for one condition.

    Attributes
    ----------
    back : int
        The most rows back that it reads.
    """

    def __init__(
        self, meaning: Meaning, condition: Condition, places: Mapping[str, int], schema: pa.Schema, reads: list[Read]
    ) -> None:
        self.clause, self.condition = meaning.clause, condition
        self._places, self._schema, self._reads = places, schema, reads
        self._step = 0
        self.back = 0

    def compile(self, node: Any) -> Typed:
        """Code for a node of an expression."""
        name = type(node).__name__
        if name == "Column" and len(node.parts) == 1:
            return self._column_or_reading(node)
        if name == "Literal":
            return self._literal(node)
        if name == "Boolean":
            return Typed([(PUSH_INT, int(node.this), 0, 0, 0.0)], "bool", 1)
        if name == "Null":
            return Typed([(PUSH_NULL, 0, 0, 0, 0.0)], "null", 1)
        if name in ("EQ", "NEQ"):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if type(other).__name__ == "Literal" and other.is_string:
                    found = self._among(one, frozenset([other.this]))
                    return found if name == "EQ" else self._after(found, (NOT, 0, 0, 0, 0.0), "bool")
        if name == "In" and not node.args.get("query") and not node.args.get("unnest"):
            return self._in(node)
        if self._step and name in ("Coalesce", "And", "Or", "Is", "NullSafeEQ", "NullSafeNEQ"):
            raise UnknownError  # without the row it is NULL as a whole, strict or not
        found = super().compile(node)
        if name in ("Add", "Sub", "Mul", "Neg") and found.kind == "int" and 0 < (bits := self._bits(node)) < 64:
            return self._after(found, (NARROW, bits, 0, 0, 0.0), "int")
        return found

    def _bits(self, node: Any) -> int:
        """The bits of a whole number of the host; 0 for a constant, which has those of what it is computed with."""
        name = type(node).__name__
        if name in ("Paren", "Neg"):
            return self._bits(node.this)
        if name == "Literal":
            return 0
        if name in ("Add", "Sub", "Mul"):
            bits = max(self._bits(node.left), self._bits(node.right)) or 32
            for each in (node.left, node.right):
                if type(each).__name__ == "Literal" and int(each.this) >= 1 << (bits - 1):
                    raise UnknownError  # the host finds a wider type
            return bits
        if name == "Column" and len(node.parts) == 1:
            text = node.parts[0].name
            if text.startswith("__hamlet_read_"):
                import sqlglot

                reading = self.condition.read.readings[int(text.removeprefix("__hamlet_read_").rstrip("_"))]
                return self._bits(sqlglot.parse_one(reading.value, dialect="duckdb"))  # type: ignore[union-attr]
            return BITS.get(self._schema.types[self._places[text.lower()]], 64)
        return 64

    def _readings(self, node: Any) -> list[int]:  # noqa: ARG002
        return []

    def _is_one_row(self, node: Any, readings: list[int]) -> bool:  # noqa: ARG002
        return False

    def _column_or_reading(self, node: Any) -> Typed:
        import sqlglot

        text = node.parts[0].name
        if not text.startswith("__hamlet_read_"):
            return self._read(text)
        reading = self.condition.read.readings[int(text.removeprefix("__hamlet_read_").rstrip("_"))]
        if not isinstance(reading, Navigation) or reading.step > 0 or reading.reads_label or self._step:
            raise UnknownError
        self._step = -reading.step
        try:
            return self.compile(sqlglot.parse_one(reading.value, dialect="duckdb"))
        finally:
            self._step = 0

    def _read(self, name: str, texts: frozenset[str] | None = None) -> Typed:
        place = self._places.get(name.lower())
        if place is None:
            raise UnknownError
        kinds = {
            **dict.fromkeys(BITS, "int"),
            pa.float64(): "real",
            pa.bool_(): "bool",
            pa.timestamp("us"): "time:TIMESTAMP",
        }
        kind = kinds.get(self._schema.types[place]) if texts is None else "bool"
        if kind is None or (texts is not None and self._schema.types[place] not in (pa.string(), pa.large_string())):
            raise UnknownError
        read = (place, texts)
        if read not in self._reads:
            self._reads.append(read)
        self.back = max(self.back, self._step)
        operation = READ_REAL if kind == "real" else READ_INT
        return Typed([(operation, self._reads.index(read), self._step, 0, 0.0)], kind, 1)

    def _literal(self, node: Any) -> Typed:
        if node.is_string:
            raise UnknownError
        text = node.this
        if text.isdecimal():
            if len(text) > 18:
                raise UnknownError
            return Typed([(PUSH_INT, int(text), 0, 0, 0.0)], "int", 1)
        return Typed([(PUSH_REAL, 0, 0, 0, float(text))], "real" if "e" in text.lower() else "decimal", 1)

    def _among(self, node: Any, texts: frozenset[str]) -> Typed:
        """Whether a column of text is one of some texts."""
        if type(node).__name__ == "Paren":
            return self._among(node.this, texts)
        if type(node).__name__ != "Column" or len(node.parts) != 1:
            raise UnknownError
        name = node.parts[0].name
        if not name.startswith("__hamlet_read_"):
            return self._read(name, texts)
        import sqlglot

        reading = self.condition.read.readings[int(name.removeprefix("__hamlet_read_").rstrip("_"))]
        if not isinstance(reading, Navigation) or reading.step > 0 or reading.reads_label or self._step:
            raise UnknownError
        self._step = -reading.step
        try:
            return self._among(sqlglot.parse_one(reading.value, dialect="duckdb"), texts)
        finally:
            self._step = 0

    def _in(self, node: Any) -> Typed:
        if all(type(each).__name__ == "Literal" and each.is_string for each in node.expressions):
            return self._among(node.this, frozenset(each.this for each in node.expressions))
        if self._step or not node.expressions:
            raise UnknownError
        from sqlglot import exp

        parts = [self.compile(exp.EQ(this=node.this.copy(), expression=each.copy())) for each in node.expressions]
        found = parts[0]
        for each in parts[1:]:
            found = self._joined([found, each], OR, "bool")
        return found

    def _alike(self, left: Any, right: Any) -> tuple[Typed, Typed, str]:
        one, other = self.compile(left), self.compile(right)
        for each, against in ((one, other), (other, one)):
            if each.kind == "decimal" and against.kind == "real":
                each.kind = "real"
            if each.kind == "decimal":
                raise UnknownError  # the host computes with decimals
        return self._of_one_kind(one, other)
