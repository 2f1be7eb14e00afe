"""Scalar expressions of SQL over one row, by their definition: three-valued, NULL is None."""

from __future__ import annotations

import datetime
import functools
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from hamlet.checker.errors import EvidenceError


class Unknown(EvidenceError):
    """An expression that the checker has no definition for."""

    def __init__(self, what: str) -> None:
        super().__init__(f"not checked: {what}")


@functools.cache
def _parsed(text: str) -> Any:
    import sqlglot

    try:
        return sqlglot.parse_one(text, dialect="duckdb")
    except sqlglot.errors.SqlglotError:
        raise Unknown(text) from None


def value_of(text: str, row: Mapping[str, Any]) -> Any:
    """The value of an expression over a row whose columns have names in lower case.

    Raises
    ------
    Unknown
        If it has a part without a definition here.
    """
    return _value(_parsed(text), row)


def compared(left: Any, right: Any) -> int:
    """-1, 0 or 1 for two values of one kind; NaN is the greatest, and equal to itself."""
    left, right = _alike(left, right)
    no_number = [isinstance(each, float) and math.isnan(each) for each in (left, right)]
    if any(no_number):
        return no_number[0] - no_number[1]
    try:
        return int(left > right) - int(left < right)
    except TypeError:
        raise Unknown(f"{left!r} beside {right!r}") from None


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values as ones that Python compares and computes with."""
    for one, other, swapped in ((left, right, False), (right, left, True)):
        changed = other
        if isinstance(one, float) and isinstance(other, Decimal):
            changed = float(other)
        elif isinstance(one, datetime.datetime) and isinstance(other, datetime.date | str):
            if isinstance(other, str):
                changed = datetime.datetime.fromisoformat(other)
            elif not isinstance(other, datetime.datetime):
                changed = datetime.datetime(other.year, other.month, other.day)
            if (one.tzinfo is None) != (changed.tzinfo is None):
                changed = changed.replace(tzinfo=None if one.tzinfo is None else datetime.UTC)
        elif isinstance(one, datetime.date) and isinstance(other, str):
            changed = datetime.date.fromisoformat(other)
        if changed is not other:
            return (changed, one) if swapped else (one, changed)
    return left, right


def _value(node: Any, row: Mapping[str, Any]) -> Any:
    name = type(node).__name__
    if name == "Column":
        return _column(node, row)
    if name == "Identifier":
        return row[node.name.lower()]
    if name == "Paren":
        return _value(node.this, row)
    if name == "Literal":
        if node.is_string:
            return node.name
        return int(node.name) if node.name.isdecimal() else Decimal(node.name)
    if name in ("Null", "Boolean"):
        return None if name == "Null" else bool(node.this)
    if name == "Interval":
        return _interval(node)
    if name in ("And", "Or"):
        left, right = _value(node.left, row), _value(node.right, row)
        decides = name == "Or"
        return decides if decides in (left, right) else None if None in (left, right) else not decides
    if name in _UNARY:
        inner = _value(node.this, row)
        return None if inner is None else _UNARY[name](inner)
    if name in _COMPARISONS:
        left, right = _value(node.left, row), _value(node.right, row)
        return None if left is None or right is None else _COMPARISONS[name](compared(left, right))
    if name in _ARITHMETIC:
        return _computed(name, _value(node.left, row), _value(node.right, row))
    return _other(name, node, row)


def _column(node: Any, row: Mapping[str, Any]) -> Any:
    first, *fields = (part.name for part in node.parts)
    key = first if first in row else first.lower()
    if key not in row:
        raise Unknown(f"the column {first}")
    found = row[key]
    for each in fields:
        if found is not None and (not isinstance(found, Mapping) or each not in found):
            raise Unknown(f"{first}.{each}")
        found = None if found is None else found[each]
    return found


def _other(name: str, node: Any, row: Mapping[str, Any]) -> Any:
    """Forms whose operands are not all computed."""
    if name == "Is":
        left, right = _value(node.this, row), _value(node.expression, row)
        return left is right if right is None or isinstance(right, bool) else _unknown(node)
    if name in ("NullSafeEQ", "NullSafeNEQ"):
        left, right = _value(node.left, row), _value(node.right, row)
        alike = left is right if left is None or right is None else compared(left, right) == 0
        return alike == (name == "NullSafeEQ")
    if name == "Between":
        own, low, high = (_value(each, row) for each in (node.this, node.args["low"], node.args["high"]))
        parts = [None if own is None or low is None else compared(own, low) >= 0]
        parts.append(None if own is None or high is None else compared(own, high) <= 0)
        return False if False in parts else None if None in parts else True
    if name == "In" and node.expressions:
        own = _value(node.this, row)
        values = [_value(each, row) for each in node.expressions]
        found = [None if own is None or each is None else compared(own, each) == 0 for each in values]
        return True if True in found else None if None in found else False
    if name == "Coalesce":
        return next((v for each in (node.this, *node.expressions) if (v := _value(each, row)) is not None), None)
    if name == "Case":
        for branch in node.args["ifs"]:
            truth = _value(branch.this, row)
            if node.this is not None:
                own = _value(node.this, row)
                truth = own is not None and truth is not None and compared(own, truth) == 0
            if truth is True:
                return _value(branch.args["true"], row)
        default = node.args.get("default")
        return None if default is None else _value(default, row)
    if name in ("Greatest", "Least"):
        known = [v for each in (node.this, *node.expressions) if (v := _value(each, row)) is not None]
        better = 1 if name == "Greatest" else -1
        return functools.reduce(lambda a, b: b if compared(b, a) == better else a, known) if known else None
    if name in ("Cast", "TryCast"):
        return _cast(node, _value(node.this, row))
    if name == "DPipe":
        left, right = _value(node.left, row), _value(node.right, row)
        return None if left is None or right is None else f"{left}{right}"
    if name == "Bracket" and len(node.expressions) == 1:
        return _element(_value(node.this, row), _value(node.expressions[0], row), node.args.get("offset") or 0)
    if name == "Dot":
        inner = _value(node.this, row)
        return None if inner is None else inner[node.expression.name]
    return _unknown(node)


def _unknown(node: Any) -> Any:
    raise Unknown(node.sql("duckdb"))


def _element(inner: Any, key: Any, offset: int) -> Any:
    if inner is None or key is None:
        return None
    if isinstance(inner, Mapping):
        return inner.get(key)
    place = key - offset
    return inner[place] if -len(inner) <= place < len(inner) else None


def _cast(node: Any, value: Any) -> Any:
    kind = node.args["to"].sql("duckdb").upper()
    if value is None:
        return None
    if kind in ("DOUBLE", "FLOAT8"):
        return float(value)
    if kind in ("TEXT", "VARCHAR") and isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    if kind in ("INT", "BIGINT", "INTEGER", "HUGEINT", "SMALLINT", "TINYINT") and isinstance(value, int | bool):
        return int(value)
    if kind == "BOOLEAN" and isinstance(value, bool):
        return value
    if kind.startswith("TIMESTAMP") and isinstance(value, str):
        return datetime.datetime.fromisoformat(value)
    if kind == "DATE" and isinstance(value, str):
        return datetime.date.fromisoformat(value)
    raise Unknown(node.sql("duckdb"))


_UNITS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 604800}


def _interval(node: Any) -> datetime.timedelta:
    unit = str(node.args["unit"].name if node.args.get("unit") is not None else "").upper().removesuffix("S")
    text = node.this.name if node.this is not None else ""
    if unit == "MILLISECOND":
        return datetime.timedelta(milliseconds=float(text))
    if unit not in _UNITS:
        raise Unknown(node.sql("duckdb"))
    return datetime.timedelta(seconds=float(text) * _UNITS[unit])


def _computed(name: str, left: Any, right: Any) -> Any:
    if left is None or right is None:
        return None
    left, right = _alike(left, right)
    try:
        if name == "Div":
            return None if right == 0 else float(left) / float(right)
        if name in ("IntDiv", "Mod"):
            if right == 0:
                return None
            whole = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
            return whole if name == "IntDiv" else left - right * whole
        if isinstance(left, datetime.date) and isinstance(right, int) and not isinstance(left, datetime.datetime):
            right = datetime.timedelta(days=right)
        return _ARITHMETIC[name](left, right)
    except (TypeError, ArithmeticError):
        raise Unknown(f"{name} of {left!r} and {right!r}") from None


_UNARY: dict[str, Callable[[Any], Any]] = {
    "Not": lambda value: not value,
    "Neg": lambda value: -value,
    "Abs": abs,
    "Lower": str.lower,
    "Upper": str.upper,
    "Length": len,
}
_COMPARISONS: dict[str, Callable[[int], bool]] = {
    "EQ": lambda order: order == 0,
    "NEQ": lambda order: order != 0,
    "LT": lambda order: order < 0,
    "LTE": lambda order: order <= 0,
    "GT": lambda order: order > 0,
    "GTE": lambda order: order >= 0,
}
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda left, right: left + right,
    "Sub": lambda left, right: left - right,
    "Mul": lambda left, right: left * right,
    "Div": lambda left, right: left / right,
    "IntDiv": lambda left, right: left // right,
    "Mod": lambda left, right: left % right,
}
