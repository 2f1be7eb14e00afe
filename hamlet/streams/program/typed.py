"""Expressions of a checked specification: every one has its type, and every access the number of its target."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TypeAlias, Union

from hamlet.errors import Span, span_field
from hamlet.streams.program.value_types import BOOL, Value, ValueType


def _type() -> ValueType:
    return field(default=BOOL, kw_only=True)


@dataclass(frozen=True, slots=True)
class Constant:
    """A value known before any event: int for integers, float for Float, bool, str, tuples of these."""

    value: Value
    type: ValueType = _type()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Parameter:
    """The value of a parameter of the instance whose clause this stands in."""

    index: int
    type: ValueType = _type()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Unary:
    """``!`` (Bool), ``-`` (numbers), ``~`` (integers: all 64 bits, whatever the width)."""

    operator: str
    operand: Expression
    type: ValueType = _type()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Binary:
    """Two operands of one type: ``+ - * / % ** && || = != < <= > >= & | ^ << >>``; ``->`` is written with ``!`` and
    ``||`` already. ``&&`` and ``||`` leave the right side out where the left side says it."""

    operator: str
    left: Expression
    right: Expression
    type: ValueType = _type()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Choice:
    """``if condition then left else right``; only the chosen side is computed."""

    condition: Expression
    left: Expression
    right: Expression
    type: ValueType = _type()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class MakeTuple:
    """``(a, b)``; ``()`` has no parts."""

    parts: tuple[Expression, ...]
    type: ValueType = _type()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class GetPart:
    """``tuple.index``. Of an optional tuple it is the optional part."""

    operand: Expression
    index: int
    type: ValueType = _type()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Default:
    """``optional.defaults(to: value)``: the operand where it is not None, else the value."""

    operand: Expression
    value: Expression
    type: ValueType = _type()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Call:
    """A function of values.

    ``abs sqrt sin cos tan arcsin arccos arctan exp ln`` (one argument), ``log`` (value, base), ``min max`` (two),
    ``round`` (value, digits: of Float64), ``cast widen`` (one; the target is `type`), ``format`` (the template, then
    the values) and ``matches`` (text, regular expression; the expression is a `Constant` that compiles).
    """

    function: str
    arguments: tuple[Expression, ...]
    type: ValueType = _type()
    span: Span = span_field()


class Access(enum.Enum):
    """What a `Read` reads of its stream."""

    NOW = "now"  # the value of this step; a condition that reads one which is not there is false
    OFFSET = "offset"  # the value `amount` values back, counted from 1 for the newest of the steps before
    HOLD = "hold"  # the newest value, of this step or before
    GET = "get"  # the value of this step, or none
    FRESH = "fresh"  # Bool: whether there is a value of this step
    TIME = "time"  # the newest value that is at least `amount` ns old


@dataclass(frozen=True, slots=True)
class Read:
    """A value of a stream.

    Attributes
    ----------
    stream : int
        Which; for a parameterised one `arguments` say which instance. One without a living instance has no value.
    access : Access
        Which value. All but NOW and FRESH are optional.
    amount : int
        OFFSET: n > 0, values back. TIME: ns back. Else 0.
    """

    stream: int
    access: Access
    arguments: tuple[Expression, ...] = ()
    amount: int = 0
    type: ValueType = _type()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class ReadWindow:
    """What `Program.windows[window]` holds now, of the instance that `arguments` say."""

    window: int
    arguments: tuple[Expression, ...] = ()
    type: ValueType = _type()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class ReadInstances:
    """`Program.aggregates[aggregate]` over the instances that live now."""

    aggregate: int
    type: ValueType = _type()
    span: Span = span_field()


Expression: TypeAlias = Union[
    Constant, Parameter, Unary, Binary, Choice, MakeTuple, GetPart, Default, Call, Read, ReadWindow, ReadInstances
]


def parts(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside one."""
    match expression:
        case Unary(operand=operand) | GetPart(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Choice(condition=condition, left=left, right=right):
            return (condition, left, right)
        case MakeTuple(parts=inner):
            return inner
        case Default(operand=operand, value=value):
            return (operand, value)
        case Call(arguments=arguments) | Read(arguments=arguments) | ReadWindow(arguments=arguments):
            return arguments
    return ()


def walk(*expressions: Expression) -> list[Expression]:
    """The expressions and all inside them, outer before inner, left before right."""
    found: list[Expression] = []
    waiting = list(reversed(expressions))
    while waiting:
        each = waiting.pop()
        found.append(each)
        waiting.extend(reversed(parts(each)))
    return found
