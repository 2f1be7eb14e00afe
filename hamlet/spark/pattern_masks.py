"""Conditions that compare a row with rows at a fixed distance, without a window of Spark's, which costs like a sort.

What reads one row is a column that Spark SQL computes; the task moves it by some rows within the partition, and Arrow
compares, where it compares as Spark does. What is not known here stays with Spark's `lag` and `lead`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from hamlet.patterns.clause.expressions import Navigation, placeholder
from hamlet.patterns.match.conditions import Condition
from hamlet.patterns.match.ordered import UnknownError

_WHOLE = (ByteType, ShortType, IntegerType, LongType)
_KINDS: dict[type[DataType], str] = {DoubleType: "real", BooleanType: "bool", DateType: "time:DATE"}
_KINDS |= {TimestampType: "time:TIMESTAMP", TimestampNTZType: "time:TIMESTAMP_NTZ"}
_OPERATIONS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=", "And": "AND", "Or": "OR"}
_COMPARED: dict[str, Callable[..., Any]] = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal,
    "AND": pc.and_kleene, "OR": pc.or_kleene,
}  # fmt: skip
_NULL_OF_NULL = {"Column", "Identifier", "Literal", "Paren", "Add", "Sub", "Mul", "Neg"}


@dataclass(frozen=True)
class Moved:
    """A column so many rows further on; NULL beyond the ends of the partition.

    Attributes
    ----------
    column : str
        A column of the rows in order; before these are made, its text.
    step : int
    """

    column: str
    step: int = 0


@dataclass(frozen=True)
class Compared:
    """An operation on columns; of ``NOT`` and ``IS NULL`` the operands are one."""

    operation: str
    operands: tuple[Moved | Compared, ...]


Mask = Moved | Compared


def mask_of(condition: Condition, dialect: str) -> Mask:
    """A condition that reads nothing but rows at a fixed distance, over texts of single rows.

    Raises
    ------
    UnknownError
        If Spark has to compute it whole.
    """
    import sqlglot

    readings = condition.read.readings
    if not all(isinstance(each, Navigation) and not each.reads_label for each in readings):
        raise UnknownError
    if not any(isinstance(each, Navigation) and each.step for each in readings):
        return Moved(_with_values(condition, condition.read.text))
    try:
        return _mask(condition, sqlglot.parse_one(condition.read.text, dialect=dialect), dialect)
    except (sqlglot.errors.SqlglotError, RecursionError):
        raise UnknownError from None


def _mask(condition: Condition, node: Any, dialect: str) -> Mask:
    name = type(node).__name__
    text = node.sql(dialect)
    steps = {
        each.step if isinstance(each, Navigation) else 0
        for place, each in enumerate(condition.read.readings)
        if placeholder(place) in text
    }
    if steps <= {0}:
        return Moved(_with_values(condition, text))
    if name == "Paren":
        return _mask(condition, node.this, dialect)
    if name in _OPERATIONS:
        return Compared(_OPERATIONS[name], tuple(_mask(condition, each, dialect) for each in (node.left, node.right)))
    if name == "Between":
        value, low, high = (
            _mask(condition, each, dialect) for each in (node.this, node.args["low"], node.args["high"])
        )
        return Compared("AND", (Compared(">=", (value, low)), Compared("<=", (value, high))))
    if name == "Not":
        return Compared("NOT", (_mask(condition, node.this, dialect),))
    if name == "Is" and type(node.expression).__name__ == "Null":
        return Compared("IS NULL", (_mask(condition, node.this, dialect),))
    names = {type(each).__name__ for each in node.walk()}
    bare = [each for each in node.find_all(_column()) if not each.name.startswith("__hamlet_read_")]
    if len(steps) > 1 or bare or not names <= _NULL_OF_NULL:
        raise UnknownError
    return Moved(_with_values(condition, text), steps.pop())


def _column() -> Any:
    from sqlglot import exp

    return exp.Column


def _with_values(condition: Condition, text: str) -> str:
    """A text over one row, in which readings are what they read of it."""
    for place, each in enumerate(condition.read.readings):
        assert isinstance(each, Navigation)
        text = text.replace(placeholder(place), f"({each.value})")
    return text


def texts_of(mask: Mask) -> list[str]:
    """The texts of the columns of a mask."""
    return [mask.column] if isinstance(mask, Moved) else [text for each in mask.operands for text in texts_of(each)]


def over(mask: Mask, columns: Callable[[str], str]) -> Mask:
    """A mask over columns in place of their texts."""
    if isinstance(mask, Moved):
        return Moved(columns(mask.column), mask.step)
    return Compared(mask.operation, tuple(over(each, columns) for each in mask.operands))


def check(mask: Mask, types: dict[str, DataType]) -> str:
    """What a mask gives (``bool``, ``int``, ...), where Arrow has it as Spark does.

    Raises
    ------
    UnknownError
    """
    if isinstance(mask, Moved):
        return kind_of(types[mask.column])
    kinds = [check(each, types) for each in mask.operands]
    logical = mask.operation in ("AND", "OR", "NOT")
    if len({*kinds}) > 1 or (logical and kinds[0] != "bool"):
        raise UnknownError
    return "bool"


def kind_of(kind: DataType) -> str:
    """The kind that the kernel has of a type of Spark's, whose values Arrow compares in the same way."""
    if isinstance(kind, _WHOLE):
        return "int"
    if kind == StringType():  # of no collation: equal texts are the same
        return "code"
    if isinstance(kind, DecimalType) and kind.precision <= 18:
        return f"decimal:{kind.scale}"
    found = next((name for each, name in _KINDS.items() if isinstance(kind, each)), None)
    if found is None:
        raise UnknownError
    return found


# ------------------------------------------------------------------------------------------------- in a task


def evaluated(mask: Mask, table: pa.Table, borders: Any) -> Any:
    """The values of a mask at each row."""
    if isinstance(mask, Moved):
        column = table.column(mask.column)
        return column if not mask.step else column.take(_rows(table.num_rows, borders, mask.step))
    operands = [evaluated(each, table, borders) for each in mask.operands]
    if mask.operation == "IS NULL":
        return pc.is_null(operands[0])
    if mask.operation == "NOT":
        return pc.invert(operands[0])
    found = _COMPARED[mask.operation](*operands)
    return _with_nan(mask.operation, found, operands) if pa.types.is_floating(operands[0].type) else found


def _with_nan(operation: str, found: Any, operands: Sequence[Any]) -> Any:
    """A comparison of doubles in which NaN is the greatest, and equal to itself."""
    left, right = map(pc.is_nan, operands)
    if not (pc.any(left).as_py() or pc.any(right).as_py()):
        return found
    order = pc.subtract(left.cast(pa.int8()), right.cast(pa.int8()))
    return pc.if_else(pc.or_(left, right), _COMPARED[operation](order, pa.scalar(0, pa.int8())), found)


def _rows(count: int, borders: Any, step: int) -> pa.Array:
    """For each row the one so many further on, NULL where that is in another partition."""
    rows = np.arange(count) + step
    sizes = np.diff(borders)
    beyond = (rows < np.repeat(borders[:-1], sizes)) | (rows >= np.repeat(borders[1:], sizes))
    return pa.array(rows, mask=beyond)


def first_rows(keys: Sequence[pa.ChunkedArray], count: int) -> Any:
    """The first row of each partition, of rows that lie together by their keys."""
    first = np.zeros(count, np.bool_)
    first[:1] = True
    for key in keys:
        one, other = key.slice(1), key.slice(0, max(0, count - 1))
        nulls = pc.xor(pc.is_null(one), pc.is_null(other))
        differ = pc.or_(nulls, pc.fill_null(pc.not_equal(one, other), False))
        first[1:] |= differ.to_numpy()
    return np.flatnonzero(first)
