"""What conditions and expressions are made of, and the form without NOT that the engine works with.

Source: docs/language.md ("Predicates").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeGuard, TypeVar, Union

from hamlet.language.query import (
    Aggregate,
    And,
    Attribute,
    Between,
    Binary,
    Comparison,
    Condition,
    Equivalence,
    Expression,
    Group,
    Literal,
    Log2,
    Membership,
    Not,
    NullTest,
    Or,
    Reference,
    Taken,
    Unary,
)

Part = Union[Condition, Expression]
AnyPart = TypeVar("AnyPart", bound=Part)

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def is_condition(part: Part) -> TypeGuard[Condition]:
    """Whether a part is true or false (a condition) rather than a value."""
    return isinstance(part, (Equivalence, Comparison, Membership, Between, NullTest, And, Or, Not))


def parts(node: Part) -> tuple[Part, ...]:
    """The direct parts of a condition or an expression, in the order of the text."""
    match node:
        case Literal() | Reference() | Equivalence() | Attribute() | Taken() | Aggregate():
            return ()
        case Unary(operand=inner) | Log2(operand=inner) | Not(operand=inner) | NullTest(operand=inner):
            return (inner,)
        case Binary(left=left, right=right) | Comparison(left=left, right=right):
            return (left, right)
        case Membership(operand=operand, choices=choices):
            return (operand, *choices)
        case Between(operand=operand, low=low, high=high):
            return (operand, low, high)
        case And(operands=operands) | Or(operands=operands):
            return operands


def walk(part: Part) -> Iterator[Part]:
    """A part and all that is in it, in the order of the text."""
    todo = [part]
    while todo:
        yield (found := todo.pop())
        todo.extend(reversed(parts(found)))


def references(part: Part) -> Iterator[Reference]:
    """All references of a condition or expression, in the order of the text."""
    return (inner for inner in walk(part) if isinstance(inner, Reference))


def aggregates(part: Part) -> Iterator[Aggregate]:
    """All aggregates of a result expression or of a condition on results, in the order of the text."""
    return (inner for inner in walk(part) if isinstance(inner, Aggregate))


def groups(part: Part) -> Iterator[Group]:
    """All values of the group in a result expression or in a condition on results, in the order of the text."""
    return (inner for inner in walk(part) if isinstance(inner, (Attribute, Taken)))


def depth(part: Part) -> int:
    """How many values are held at once while a part is computed, left to right, at most."""
    match part:
        case Literal() | Equivalence() | Attribute() | Taken() | Aggregate():
            return 1
        case Reference():
            return 2  # a TIMESTAMP is multiplied where units differ
        case Between(operand=operand, low=low, high=high):
            return 1 + max(depth(operand), 1 + depth(low), 1 + depth(high))
        case Membership(operand=operand, choices=choices):
            return 1 + max(depth(operand), *(1 + depth(choice) for choice in choices))
    return max((depth(inner) + (place > 0) for place, inner in enumerate(parts(part))), default=1)


def conjuncts(condition: Condition) -> list[Condition]:
    """The conditions that must all hold, with NOT pushed inward until none is left."""
    pushed = push_not(condition)
    return list(pushed.operands) if isinstance(pushed, And) else [pushed]


def push_not(condition: Condition, negated: bool = False) -> Condition:
    """An equal condition (opposite where `negated`) without `Not`, AND and OR flattened."""
    match condition:
        case Not(operand=operand):
            return push_not(operand, not negated)
        case And(operands=operands) | Or(operands=operands):
            joins = Or if isinstance(condition, And) is negated else And
            flat: list[Condition] = []
            for operand in operands:
                inner = push_not(operand, negated)
                flat += inner.operands if isinstance(inner, joins) else [inner]
            return joins(tuple(flat), span=condition.span)
        case Comparison(operator=operator) if negated:
            return replace(condition, operator=_OPPOSITE[operator])
        case Membership() | Between() | NullTest() if negated:
            return replace(condition, negated=not condition.negated)
    return condition


def rewritten(part: AnyPart, change: Callable[[Reference], Reference]) -> AnyPart:
    """A copy of a condition or expression with other references."""

    def expression(inner: Expression) -> Expression:
        match inner:
            case Reference():
                return change(inner)
            case Unary(operand=operand):
                return replace(inner, operand=expression(operand))
            case Binary(left=left, right=right):
                return replace(inner, left=expression(left), right=expression(right))
        return inner

    def condition(inner: Condition) -> Condition:
        match inner:
            case Comparison(left=left, right=right):
                return replace(inner, left=expression(left), right=expression(right))
            case Membership(operand=operand, choices=choices):
                return replace(inner, operand=expression(operand), choices=tuple(map(expression, choices)))
            case Between(operand=operand, low=low, high=high):
                return replace(inner, operand=expression(operand), low=expression(low), high=expression(high))
            case NullTest(operand=operand):
                return replace(inner, operand=expression(operand))
            case And(operands=operands) | Or(operands=operands):
                return replace(inner, operands=tuple(map(condition, operands)))
            case Not(operand=operand):
                return replace(inner, operand=condition(operand))
        return inner

    return condition(part) if is_condition(part) else expression(part)  # type: ignore[return-value, arg-type]
