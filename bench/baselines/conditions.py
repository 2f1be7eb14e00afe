"""Local predicates for the baselines: a condition over one event as an Arrow expression.

The baselines share the syntax tree and the templates with the engine, and not its predicate machine.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import UnsupportedError
from hamlet.language.query import (
    And,
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

_COMPARISONS = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_ARITHMETIC = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


def accepted(condition: Condition, events: pa.Table) -> Any:
    """Which events a condition accepts, unknown where SQL says unknown.

    Parameters
    ----------
    condition : Condition
        Over one variable, without NOT.
    events : pyarrow.Table

    Returns
    -------
    pyarrow.ChunkedArray of bool, shape (events,), or a scalar

    Raises
    ------
    UnsupportedError
        Division or a remainder, which no benchmark has.
    """
    match condition:
        case And(operands=operands):
            return reduce(pc.and_kleene, (accepted(each, events) for each in operands))
        case Or(operands=operands):
            return reduce(pc.or_kleene, (accepted(each, events) for each in operands))
        case Comparison(operator=operator, left=left, right=right):
            return _COMPARISONS[operator](_value(left, events), _value(right, events))
        case Membership(operand=operand, choices=choices, negated=negated):
            value = _value(operand, events)
            found = reduce(pc.or_kleene, (pc.equal(value, _value(each, events)) for each in choices))
        case Between(operand=operand, low=low, high=high, negated=negated):
            value = _value(operand, events)
            above, below = pc.greater_equal(value, _value(low, events)), pc.less_equal(value, _value(high, events))
            found = pc.and_kleene(above, below)
        case NullTest(operand=operand, negated=negated):
            found = pc.is_null(_value(operand, events), nan_is_null=True)
        case _:
            raise UnsupportedError(f"the baselines do not know the condition {condition}")
    return pc.invert(found) if negated else found


def _value(expression: Expression, events: pa.Table) -> Any:
    match expression:
        case Literal(value=value):
            return pa.scalar(value)
        case Reference(attribute=attribute):
            values = events[attribute]
            if pa.types.is_dictionary(values.type):
                return values.cast(values.type.value_type)
            if pa.types.is_floating(values.type):  # NaN is NULL
                return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
            return values
        case Unary(operator=operator, operand=operand):
            return pc.negate(_value(operand, events)) if operator == "-" else _value(operand, events)
        case Binary(operator=operator, left=left, right=right) if operator in _ARITHMETIC:
            return _ARITHMETIC[operator](_value(left, events), _value(right, events))
    raise UnsupportedError("the baselines know no division and no remainder")
