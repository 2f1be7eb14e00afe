"""Conditions that read labels as programs of the kernel, where their types and operations are known there.

What reads one row only becomes a column that the host computes for all rows: of ``LAST(dip.price) * 1.1 < climb.price``
the kernel compares two columns, at two rows. What is not known here is answered by the host (`match.search`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hamlet.patterns.clause.expressions import NUMBER, Aggregation, Navigation, placeholder
from hamlet.patterns.clause.tree import Clause
from hamlet.patterns.match.conditions import PLACEHOLDER, Condition, host_text, is_near, rows_ahead
from hamlet.patterns.match.host import HostError
from hamlet.patterns.match.ordered import SPAN, Expressions, Ordered, UnknownError

if TYPE_CHECKING:
    from hamlet.patterns.match.search import Tables

# The operations of `automaton._search`.
PUSH_INT, PUSH_REAL, PUSH_NULL, READ_INT, READ_REAL, COUNT, ACCUMULATED_INT, ACCUMULATED_REAL, AVERAGE = range(9)
TO_REAL, COMPARE_INT, COMPARE_REAL, AND, OR, NOT, ADD_INT, SUBTRACT_INT, MULTIPLY_INT = range(9, 18)
ADD_REAL, SUBTRACT_REAL, MULTIPLY_REAL, DIVIDE_REAL, IS_NULL, COALESCE, NEGATE_INT, NEGATE_REAL = range(18, 26)
DISTINCT_INT, DISTINCT_REAL, NUMBER_OF_MATCH, NARROW = range(26, 30)
COMPARE_TEXT, DISTINCT_TEXT, COMPARE_SCALED, ABSOLUTE_INT, ABSOLUTE_REAL = range(30, 35)

_COMPARISONS = {"EQ": 0, "NEQ": 1, "LT": 2, "LTE": 3, "GT": 4, "GTE": 5}
_ARITHMETIC = {"Add": ADD_INT, "Sub": SUBTRACT_INT, "Mul": MULTIPLY_INT}
_DEEPEST = 60
_EXACT = 15  # digits of a whole number that a double has for sure
_MOST_DIGITS = 18  # of 64 bits, for sure, and of a decimal that the host computes in them
OTHER, REALS = "other", ("real", "single")
_INTERVAL = re.compile(
    r"\s*INTERVAL\s+'?(\d+)'?\s*(SECOND|MINUTE|HOUR|DAY|MILLISECOND|MICROSECOND)S?\s*", re.IGNORECASE
)
_UNITS = {"SECOND": 10**6, "MINUTE": 6 * 10**7, "HOUR": 36 * 10**8, "DAY": 864 * 10**8}
_UNITS |= {"MILLISECOND": 1000, "MICROSECOND": 1}

Operation = tuple[int, int, int, int, float]


@dataclass
class Typed:
    """Code that leaves one value.

    `kind` is ``int``, ``real``, ``single`` (of 32 bits, compared with its kind), ``bool``, ``null``, ``decimal:SCALE``
    (whole numbers of units of its last digit), ``time:TYPE`` and ``interval``: whole numbers that are compared with
    their kind, ``code`` (of texts: equal ones have equal codes), ``text`` (the address of a str), or ``other`` (NULL or
    not, and no more is known). `digits` is how many a number has at most, where that is known.
    """

    code: list[Operation]
    kind: str
    depth: int
    digits: int | None = None

    @property
    def scale(self) -> int:
        """The decimals of a number that is not of floating point."""
        if self.kind == "int":
            return 0
        if not self.kind.startswith("decimal:"):
            raise UnknownError
        return int(self.kind.partition(":")[2])


def native_program(clause: Clause, condition: Condition, ordered: Expressions, tables: Tables) -> Any:
    """The program of a condition: operations and their real numbers. None where the host has to answer."""
    import sqlglot

    try:
        tree = sqlglot.parse_one(condition.read.text, dialect=ordered.dialect)
        found = Compiler(clause, condition, ordered, tables).compile(tree)
    except (UnknownError, sqlglot.errors.SqlglotError, HostError, RecursionError):
        return None
    if found.kind not in ("bool", "null") or found.depth > _DEEPEST:
        return None
    code = np.array([operation[:4] for operation in found.code], np.int64).reshape(len(found.code), 4)
    return code, np.array([operation[4] for operation in found.code], np.float64)


class Compiler:
    """Code for the expressions of one condition."""

    def __init__(self, clause: Clause, condition: Condition, ordered: Expressions, tables: Tables) -> None:
        self.clause, self.condition, self.ordered, self.tables = clause, condition, ordered, tables

    def compile(self, node: Any) -> Typed:
        """Code for a node of the host's expression."""
        name = type(node).__name__
        if name == "Paren":
            return self.compile(node.this)
        if name in ("And", "Or"):
            left, right = self._boolean(node.left), self._boolean(node.right)
            return self._joined([left, right], AND if name == "And" else OR, "bool")
        if name == "Not":
            return self._after(self._boolean(node.this), (NOT, 0, 0, 0, 0.0), "bool")
        if name == "Literal":
            return self._literal(node)
        if name == "Interval":
            return self._interval(node)
        readings = self._readings(node)
        if self._is_one_row(node, readings):
            return self._column(node, readings)
        if name == "Column" and readings and len(node.parts) == 1:
            return self._reading(readings[0])
        if name in _COMPARISONS:
            return self._compared(_COMPARISONS[name], self.compile(node.left), self.compile(node.right))
        if name in ("NullSafeEQ", "NullSafeNEQ"):
            left, right, kind = self._alike(node.left, node.right)
            operation = {"text": DISTINCT_TEXT, **dict.fromkeys(REALS, DISTINCT_REAL)}.get(kind, DISTINCT_INT)
            found = self._joined([left, right], operation, "bool")
            return found if name == "NullSafeNEQ" else self._after(found, (NOT, 0, 0, 0, 0.0), "bool")
        if name == "Is" and type(node.expression).__name__ == "Null":
            return self._after(self.compile(node.this), (IS_NULL, 0, 0, 0, 0.0), "bool")
        if name == "Between":
            low = self.compile(_made("GTE", node.this, node.args["low"]))
            high = self.compile(_made("LTE", node.this, node.args["high"]))
            return self._joined([low, high], AND, "bool")
        if name in _ARITHMETIC:
            return self._computed(name, self.compile(node.left), self.compile(node.right))
        if name == "Neg":
            inner = self.compile(node.this)
            if inner.kind == "real":
                return self._after(inner, (NEGATE_REAL, 0, 0, 0, 0.0), "real")
            return self._after(self._scaled(inner, inner.scale), (NEGATE_INT, 0, 0, 0, 0.0), inner.kind)
        if name == "Abs":
            inner = self.compile(node.this)
            if inner.kind == "real":
                return self._after(inner, (ABSOLUTE_REAL, 0, 0, 0, 0.0), "real")
            return self._after(self._scaled(inner, inner.scale), (ABSOLUTE_INT, 0, 0, 0, 0.0), inner.kind)
        if name == "Coalesce" and len(node.expressions) == 1:
            left, right, kind = self._alike(node.this, node.expressions[0])
            return self._joined([left, right], COALESCE, kind)
        raise UnknownError

    # What a node reads.

    def _readings(self, node: Any) -> list[int]:
        from sqlglot import exp

        found = []
        for column in node.find_all(exp.Column):
            name = column.parts[0].name  # of a field of a record, the record
            match = PLACEHOLDER.fullmatch(name)
            if match:
                found.append(int(match[1]))
            elif name == NUMBER:
                found.append(-1)
        return list(dict.fromkeys(found))

    def _is_one_row(self, node: Any, readings: list[int]) -> bool:
        """Whether a node reads the candidate's surroundings only, or one row of the match only."""
        from sqlglot import exp

        if -1 in readings:
            return False
        each = [self.condition.read.readings[place] for place in readings]
        if all(is_near(self.clause, self.condition.variable, reading) for reading in each):
            return True
        if not all(isinstance(reading, Navigation) and not reading.reads_label for reading in each):
            return False
        slots = {(r.variable, r.last, r.inwards, r.step) for r in each if isinstance(r, Navigation)}
        bare = [column for column in node.find_all(exp.Column) if not column.parts[0].name.startswith("__hamlet_")]
        return len(slots) == 1 and not bare

    def _column(self, node: Any, readings: list[int]) -> Typed:
        """A node that reads one row, as a column of the host."""
        text = node.sql(self.ordered.dialect)
        if {int(place) for place in PLACEHOLDER.findall(text)} != set(readings):
            raise UnknownError  # a reading stands where the host's grammar has a name, not a value: the host says so
        slot, missing, ahead = -1, None, 0
        far = [
            reading
            for place in readings
            if not is_near(self.clause, self.condition.variable, reading := self.condition.read.readings[place])
        ]
        if not far:
            read = self.condition.read
            ahead = rows_ahead(read, text)
            alone = type(read)(text, read.readings, read.expression)
            text = host_text(self.clause, type(self.condition)(self.condition.variable, alone, False), self.ordered)
        else:
            [first, *_] = far
            assert isinstance(first, Navigation)
            slot, missing = self.tables.slot_of(first), text
            for place in readings:
                reading = self.condition.read.readings[place]
                assert isinstance(reading, Navigation)
                if reading.reads_number:
                    raise UnknownError
                text = text.replace(placeholder(place), f"({reading.value})")
                missing = missing.replace(placeholder(place), f"(CASE WHEN false THEN ({reading.value}) END)")
        column, kind = self._host_column(text, ahead)
        value, is_null = (0.0, True) if missing is None else self._without_row(missing, kind)
        operation = READ_REAL if kind in REALS else READ_INT
        return Typed([(operation, slot, column, int(is_null), value)], kind, 1)

    def _host_column(self, text: str, ahead: int = 0) -> tuple[int, str]:
        """The number of a column of the host that reads so many rows ahead, and its kind."""
        if text not in self.tables.column_kinds:
            kind, *values = self.ordered.numbers(text)
            if isinstance(self.ordered, Ordered):
                self.ordered.mark_to_come(values[1], ahead)
            self.tables.columns.append((values[0], values[1]))
            self.tables.column_kinds[text] = (len(self.tables.columns) - 1, kind)
        return self.tables.column_kinds[text]

    def _without_row(self, text: str, kind: str) -> tuple[float, bool]:
        """The value of a column where its row is missing: the expression over NULL."""
        value = self.ordered.without_row(text)
        if value is None:
            return 0.0, True
        if kind in ("code", "text") or (kind not in REALS and abs(int(value)) >= 2**53):
            raise UnknownError
        return float(value), False

    def _reading(self, place: int) -> Typed:
        """An aggregate, or the number of the match."""
        if place == -1:
            return Typed([(NUMBER_OF_MATCH, 0, 0, 0, 0.0)], "int", 1)
        reading = self.condition.read.readings[place]
        if not isinstance(reading, Aggregation) or reading.distinct or reading.order or reading.within:
            raise UnknownError
        function, arguments = reading.function.lower(), reading.arguments.strip()
        if reading.condition or "__hamlet" in arguments or function not in ("count", "sum", "min", "max", "avg"):
            raise UnknownError
        if function == "count" and arguments == "*":
            return Typed([(COUNT, self.tables.counted(reading.variable), 0, 0, 0.0)], "int", 1)
        if function == "count":
            column, kind = self._host_column(f"CAST((({arguments}) IS NOT NULL) AS INTEGER)")
            total = self.tables.sum_of(self.tables.set_of(reading.variable), column, 0)
            code: list[Operation] = [(ACCUMULATED_INT, total, 0, 0, 0.0), (PUSH_INT, 0, 0, 0, 0.0)]
            return Typed([*code, (COALESCE, 0, 0, 0, 0.0)], "int", 2)
        column, kind = self._host_column(arguments)
        if kind not in ("int", "real") and (not kind.startswith("decimal:") or function == "avg"):
            raise UnknownError
        which = {"sum": 0, "avg": 0, "min": 1, "max": 2}[function] + 3 * (kind == "real")
        item = self.tables.sum_of(self.tables.set_of(reading.variable), column, which, function == "avg")
        if function == "avg":
            return Typed([(AVERAGE, item, int(kind == "real"), 0, 0.0)], "real", 1)
        return Typed([(ACCUMULATED_REAL if kind == "real" else ACCUMULATED_INT, item, 0, 0, 0.0)], kind, 1)

    # Code.

    def _boolean(self, node: Any) -> Typed:
        found = self.compile(node)
        if found.kind not in ("bool", "null"):
            raise UnknownError
        return found

    def _literal(self, node: Any) -> Typed:
        """A number; one with a point is a decimal, as the host has it."""
        text = node.this
        if node.is_string:
            raise UnknownError
        if "e" in text.lower():
            return Typed([(PUSH_REAL, 0, 0, 0, float(text))], "real", 1)
        whole, point, decimals = text.partition(".")
        digits = (whole + decimals).lstrip("0") or "0"
        if not digits.isdecimal() or max(len(digits), len(decimals)) > _MOST_DIGITS:
            raise UnknownError
        kind = f"decimal:{len(decimals)}" if point else "int"
        return Typed([(PUSH_INT, int(digits), 0, 0, 0.0)], kind, 1, len(digits))

    def _interval(self, node: Any) -> Typed:
        """A duration in microseconds, as the host's times of no zone are computed with."""
        span = microseconds_of(node.sql("duckdb")) if self.ordered.dialect == "duckdb" else None
        if span is None or span >= 2**62:
            raise UnknownError
        return Typed([(PUSH_INT, span, 0, 0, 0.0)], SPAN, 1)

    def _compared(self, which: int, left: Typed, right: Typed) -> Typed:
        """A comparison: of decimals with different places in 128 bits, so that no number is too large."""
        if left.kind != right.kind and "real" not in (left.kind, right.kind):
            shift = right.scale - left.scale
            if not -_MOST_DIGITS <= shift <= _MOST_DIGITS:
                raise UnknownError
            return self._joined([left, right], COMPARE_SCALED, "bool", which + 8 * (shift + 32))
        left, right, kind = self._of_one_kind(left, right)
        if kind == "code" and which > 1:
            raise UnknownError  # codes say which texts are equal
        operation = {"text": COMPARE_TEXT, **dict.fromkeys(REALS, COMPARE_REAL)}.get(kind, COMPARE_INT)
        return self._joined([left, right], operation, "bool", which)

    def _alike(self, left: Any, right: Any) -> tuple[Typed, Typed, str]:
        """Two nodes as values of one kind."""
        return self._of_one_kind(self.compile(left), self.compile(right))

    def _of_one_kind(self, one: Typed, other: Typed) -> tuple[Typed, Typed, str]:
        if one.kind == other.kind != OTHER:
            return one, other, one.kind
        if "real" in (one.kind, other.kind):
            return self._real(one), self._real(other), "real"
        scale = max(one.scale, other.scale)
        return self._scaled(one, scale), self._scaled(other, scale), f"decimal:{scale}"

    def _computed(self, name: str, left: Typed, right: Typed) -> Typed:
        """A sum, a difference or a product."""
        times = self.ordered.times.get((name, left.kind, right.kind))
        if times is not None:
            return self._joined([left, right], _ARITHMETIC[name], times)
        scaled = [each for each in (left, right) if each.kind.startswith("decimal:")]
        if not scaled or "real" in (left.kind, right.kind):
            left, right, kind = self._of_one_kind(left, right)
            if kind not in ("int", "real"):
                raise UnknownError
            return self._joined([left, right], _ARITHMETIC[name] + (ADD_REAL - ADD_INT) * (kind == "real"), kind)
        if name == "Mul":
            if left.digits is None or right.digits is None:
                raise UnknownError
            kind, digits = f"decimal:{left.scale + right.scale}", left.digits + right.digits
        else:
            left, right, kind = self._of_one_kind(left, right)
            known = left.digits is not None and right.digits is not None
            digits = max(left.digits or 0, right.digits or 0) + 1 if known else 0
        if digits > _MOST_DIGITS:
            raise UnknownError  # the host finds a wider type
        found = self._joined([left, right], _ARITHMETIC[name], kind)
        found.digits = digits or None
        return found

    @staticmethod
    def _real(inner: Typed) -> Typed:
        """A number as a double."""
        if inner.kind in REALS:
            return Typed(inner.code, "real", inner.depth)
        code, depth, scale = [*inner.code, (TO_REAL, 0, 0, 0, 0.0)], inner.depth, inner.scale
        if scale:
            if inner.digits is None or max(inner.digits, scale) > _EXACT:
                raise UnknownError
            code += [(PUSH_REAL, 0, 0, 0, 10.0**scale), (DIVIDE_REAL, 0, 0, 0, 0.0)]
            depth = max(depth, 2)
        return Typed(code, "real", depth)

    @staticmethod
    def _scaled(inner: Typed, scale: int) -> Typed:
        """A number with so many decimals."""
        more = scale - inner.scale
        kind, digits = f"decimal:{scale}", None if inner.digits is None else inner.digits + more
        if not more:
            return Typed(inner.code, kind, inner.depth, digits)
        if max(digits or 0, more) > _MOST_DIGITS:
            raise UnknownError
        code: list[Operation] = [(PUSH_INT, 10**more, 0, 0, 0.0), (MULTIPLY_INT, 0, 0, 0, 0.0)]
        return Typed([*inner.code, *code], kind, max(inner.depth, 2), digits)

    @staticmethod
    def _after(inner: Typed, operation: Operation, kind: str) -> Typed:
        return Typed([*inner.code, operation], kind, inner.depth, inner.digits)

    @staticmethod
    def _joined(parts: list[Typed], operation: int, kind: str, which: int = 0) -> Typed:
        depth = max(part.depth + place for place, part in enumerate(parts))
        code = [each for part in parts for each in part.code]
        known = [part.digits for part in parts if part.digits is not None]
        digits = max(known) if len(known) == len(parts) else None
        return Typed([*code, (operation, which, 0, 0, 0.0)], kind, depth, digits)


def microseconds_of(text: str) -> int | None:
    """A duration of fixed units, None for any other text."""
    match = _INTERVAL.fullmatch(text)
    return int(match[1]) * _UNITS[match[2].upper()] if match else None


def _made(name: str, left: Any, right: Any) -> Any:
    from sqlglot import exp

    return getattr(exp, name)(this=left.copy(), expression=right.copy())
