"""A filter for Spark that keeps every event that some query can use, and drops most others before the shuffle.

The kernel tests all local predicates again, so the filter may keep too much but never drop too much: what is not
exactly the same in Spark (arithmetic, which may overflow here and wrap or fail there; mixed types; NaN) is left out.
Events with a NULL time or order pass, so that they can be reported.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql.functions import expr, isnan, lit, timestamp_micros
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from hamlet.language.conditions import walk
from hamlet.language.query import (
    And,
    AttributeType,
    Between,
    Binary,
    Comparison,
    Condition,
    Expression,
    Literal,
    Membership,
    NullTest,
    Or,
    Reference,
    Unary,
)
from hamlet.language.schema import Schema
from hamlet.planner.compiled import CompiledClass

_COMPARISONS = {
    "=": Column.__eq__,
    "<>": Column.__ne__,
    "<": Column.__lt__,
    "<=": Column.__le__,
    ">": Column.__gt__,
    ">=": Column.__ge__,
}

_MICROS = 1_000_000  # of a second, in which Spark counts
_FAR_MICROS = 7_000 * 365 * 86_400 * _MICROS  # some years before what a datetime can hold

Typed = tuple[Column, DataType]


def usable(chosen: CompiledClass, schema: Schema, columns: Mapping[str, Typed]) -> Column:
    """The condition that an event may be of use to some query of a class.

    Parameters
    ----------
    chosen : CompiledClass
    schema : Schema
    columns : mapping of str to (Column, DataType)
        Spark's columns by the names that the workload knows.
    """
    if chosen.sees_all:
        return lit(True)
    roles: dict[str, list[Column | None]] = {}
    for query in chosen.queries:
        for variable, type in query.analysed.types.items():
            declared = query.analysed.declared.get(variable, {})
            test = Predicates(columns, {**schema.columns, **declared}).all_of(query.analysed.local.get(variable, ()))
            roles.setdefault(type, []).append(None if query.analysed.query.session else test)
    of_type, spelled = columns[schema.type_column]
    of_type = of_type if isinstance(spelled, StringType) else of_type.cast("string")  # types may be numbers
    whole: list[str] = []  # types of which every event may be of use
    choices: list[Column] = []
    for type, tests in roles.items():
        found = [test for test in tests if test is not None]
        if len(found) < len(tests):
            whole.append(type)
        else:
            choices.append((of_type == lit(type)) & reduce(or_, found))
    if whole:
        choices.append(of_type.isin(whole))
    keys = [schema.clock.column, *([schema.order_column] if schema.order_column else [])]
    return reduce(or_, [*choices, *(columns[name][0].isNull() for name in keys)])


def in_period(column: Column, type: DataType, period: tuple[int, int], per_second: int) -> Column | None:
    """That a time lies in a period, as Spark's readers of files understand it; None where they would not.

    Parameters
    ----------
    column : Column
    type : DataType
        Of the column.
    period : (int, int)
        The first tick, and the first that is not inside.
    per_second : int
        Ticks.
    """
    tests = [
        compare(column, edge)
        for compare, ticks in zip((Column.__ge__, Column.__lt__), period, strict=True)
        if (edge := _moment(ticks, type, per_second)) is not None
    ]
    return reduce(and_, tests) if tests else None


def _moment(ticks: int, type: DataType, per_second: int) -> Column | None:
    """A time as a constant of a column's type; None beyond what the type can hold."""
    if isinstance(type, IntegralType):
        return lit(ticks) if abs(ticks) < 1 << 61 else None
    if not isinstance(type, (TimestampType, TimestampNTZType)) or _MICROS % per_second:
        return None
    micros = ticks * (_MICROS // per_second)
    if not abs(micros) < _FAR_MICROS:
        return None
    if isinstance(type, TimestampType):
        return timestamp_micros(lit(micros))
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=micros)
    return expr(f"TIMESTAMP_NTZ '{moment.isoformat(sep=' ')}'")


class Predicates:
    """Local predicates as Spark columns that are true at least where the predicates are.

    Parameters
    ----------
    columns : mapping of str to (Column, DataType)
        Spark's columns.
    types : mapping of str to AttributeType or None
        What the kernel takes the attributes for.
    """

    def __init__(self, columns: Mapping[str, Typed], types: Mapping[str, AttributeType | None]) -> None:
        self._columns = columns
        self._types = types

    def all_of(self, conditions: Sequence[Condition]) -> Column | None:
        """A column for the conjunction; None where nothing can be said.

        Nothing is said of conditions with arithmetic: the kernel reports INT arithmetic beyond 64 bits for every event
        of the type, and a filter would hide some of them.
        """
        if any(_computes(part) for each in conditions for part in walk(each)):
            return None
        return self._joined(map(self.condition, conditions))

    @staticmethod
    def _joined(tests: Iterable[Column | None]) -> Column | None:
        known = [test for test in tests if test is not None]
        return reduce(and_, known) if known else None

    def condition(self, condition: Condition) -> Column | None:
        """A column for one condition."""
        match condition:
            case And(operands=operands):
                return self._joined(map(self.condition, operands))
            case Or(operands=operands):
                return self._any(map(self.condition, operands))
            case Comparison(operator=operator, left=left, right=right):
                return self._comparison(operator, left, right)
            case Membership(operand=operand, choices=choices, negated=False):
                return self._any(self._comparison("=", operand, choice) for choice in choices)
            case Membership(operand=operand, choices=choices):
                return self._joined(self._comparison("<>", operand, choice) for choice in choices)
            case Between(operand=operand, low=low, high=high, negated=False):
                return self._joined([self._comparison(">=", operand, low), self._comparison("<=", operand, high)])
            case Between(operand=operand, low=low, high=high):
                return self._any([self._comparison("<", operand, low), self._comparison(">", operand, high)])
            case NullTest(operand=Reference(attribute=name), negated=negated) if name in self._columns:
                return self._null_test(*self._columns[name], negated)
        return None

    @staticmethod
    def _any(tests: Iterable[Column | None]) -> Column | None:
        found = list(tests)
        known = [test for test in found if test is not None]
        return reduce(or_, known) if known and len(known) == len(found) else None

    @staticmethod
    def _null_test(column: Column, type: DataType, negated: bool) -> Column:
        if negated:
            return column.isNotNull()
        real = isinstance(type, (DoubleType, FloatType))
        return column.isNull() | isnan(column) if real else column.isNull()  # NaN is NULL

    def _comparison(self, operator: str, left: Expression, right: Expression) -> Column | None:
        """A comparison of two values of one kind; others are left to the kernel."""
        sides = [self._side(left), self._side(right)]
        kinds = {kind for _, kind in sides}
        if len(kinds) > 1 or "" in kinds:
            return None
        return _COMPARISONS[operator](sides[0][0], sides[1][0])

    def _side(self, expression: Expression) -> tuple[Column, str]:
        """A column and what it is: int, real, text or truth; nothing where Spark would compare otherwise."""
        match expression:
            case Literal(value=bool() as value):
                return lit(value), "truth"
            case Literal(value=int() as value) if -(2**63) <= value < 2**63:
                return lit(value), "int"
            case Literal(value=float() as value):
                return lit(value), "real"
            case Literal(value=str() as value):
                return lit(value), "text"
            case Unary(operator=operator, operand=Literal(value=int() | float() as value)):
                return self._side(Literal(-value if operator == "-" else value))
            case Reference(attribute=name) if name in self._columns:
                column, type = self._columns[name]
                kind = _kind(type)
                return column, kind if self._types.get(name) is _KINDS.get(kind) else ""
        return lit(None), ""


_KINDS = {
    "int": AttributeType.INT,
    "real": AttributeType.DOUBLE,
    "truth": AttributeType.BOOLEAN,
    "text": AttributeType.STRING,
}


def _kind(type: DataType) -> str:
    if isinstance(type, IntegralType):
        return "int"
    if isinstance(type, (DoubleType, FloatType)):
        return "real"
    if isinstance(type, BooleanType):
        return "truth"
    return "text" if type == StringType() else ""  # another collation compares otherwise


def _computes(part: Condition | Expression) -> bool:
    """Whether a part is arithmetic; a sign before a number is none."""
    return isinstance(part, Binary) or (isinstance(part, Unary) and not isinstance(part.operand, Literal))
