"""What the optimizer knows of a predicate: a neutral form, without names of variables and without NOT.

Comparisons follow SQL: with NULL they are unknown, and a predicate accepts what makes it true. Values of unlike types
are never equal and have no order. NOT is pushed inward before, so that unknown may be taken for false everywhere.

Source: docs/language.md ("Predicates").
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Union

Kind = Literal["INT", "DOUBLE", "STRING", "BOOLEAN", "TIMESTAMP", "DURATION"]

MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute of the event; `later` marks the later event of two neighbours. Kind None: any kind of value."""

    name: str
    kind: Kind | None = None
    later: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal; its kind keeps 1, 1.0 and TRUE apart."""

    value: int | float | str | bool
    kind: Kind


@dataclass(frozen=True, slots=True)
class Negative:
    """``-e``."""

    operand: Value


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``e + e``, with ``+ - * / %``: of integers exact but for ``/``, of anything else in doubles."""

    operator: str
    left: Value
    right: Value


Value = Union[Field, Constant, Negative, Arithmetic]


@dataclass(frozen=True, slots=True)
class Compare:
    """``e cmp e`` with cmp one of ``= <> < <= > >=``."""

    operator: str
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class IsNull:
    """``e IS [NOT] NULL``; NaN and what is divided by zero are NULL."""

    operand: Value
    negated: bool = False


@dataclass(frozen=True, slots=True)
class AllOf:
    """All parts are true; without parts it accepts everything."""

    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Some part is true; without parts it accepts nothing."""

    parts: tuple[Condition, ...] = ()


Condition = Union[Compare, IsNull, AllOf, AnyOf]

TRUE = AllOf()


def constant(value: int | float | str | bool) -> Constant:
    """A literal of the kind that its Python value has."""
    kinds: tuple[tuple[type, Kind], ...] = ((bool, "BOOLEAN"), (int, "INT"), (float, "DOUBLE"), (str, "STRING"))
    return Constant(value, next(kind for type, kind in kinds if isinstance(value, type)))


def fields(part: Value | Condition) -> Iterator[Field]:
    """All fields of a condition or value, in order, with repeats."""
    match part:
        case Field():
            yield part
        case Negative(operand=operand) | IsNull(operand=operand):
            yield from fields(operand)
        case Arithmetic(left=left, right=right) | Compare(left=left, right=right):
            yield from fields(left)
            yield from fields(right)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            for each in parts:
                yield from fields(each)


def has_arithmetic(part: Value | Condition) -> bool:
    """Whether something is computed from a field."""
    match part:
        case Negative(operand=operand) | Arithmetic(left=operand):
            return not isinstance(part, Negative) or not isinstance(operand, Constant)
        case Compare(left=left, right=right):
            return has_arithmetic(left) or has_arithmetic(right)
        case IsNull(operand=operand):
            return has_arithmetic(operand)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return any(map(has_arithmetic, parts))
    return False


def leaves(condition: Condition) -> Iterator[Compare | IsNull]:
    """The comparisons and tests that a condition is made of, in order."""
    if isinstance(condition, (AllOf, AnyOf)):
        for part in condition.parts:
            yield from leaves(part)
    else:
        yield condition


def normal(condition: Condition) -> Condition:
    """An equal condition in which order and nesting that mean nothing are gone.

    Parts of AND and OR are flattened, sorted and without repeats, ``a > b`` is written ``b < a``, the two operands of
    ``= <> + *`` are sorted. Equal normal forms accept the same events; the opposite need not hold.
    """
    match condition:
        case Compare(operator=operator, left=left, right=right):
            left, right = _normal_value(left), _normal_value(right)
            if operator in (">", ">=") or (operator in ("=", "<>") and _is_before(right, left)):
                operator, left, right = MIRRORED[operator], right, left
            return Compare(operator, left, right)
        case IsNull(operand=operand, negated=negated):
            return IsNull(_normal_value(operand), negated)
        case AllOf(parts=parts) | AnyOf(parts=parts):
            joins = AllOf if isinstance(condition, AllOf) else AnyOf
            flat: dict[Condition, None] = {}
            for part in map(normal, parts):
                flat.update(dict.fromkeys(part.parts if isinstance(part, joins) else (part,)))
            return next(iter(flat)) if len(flat) == 1 else joins(tuple(sorted(flat, key=repr)))


def _normal_value(value: Value) -> Value:
    match value:
        case Negative(operand=operand):
            return Negative(_normal_value(operand))
        case Arithmetic(operator=operator, left=left, right=right):
            left, right = _normal_value(left), _normal_value(right)
            if operator in ("+", "*") and _is_before(right, left):
                left, right = right, left
            return Arithmetic(operator, left, right)
    return value


def _is_before(one: Value, other: Value) -> bool:
    """Some order of values, found at the first place where two differ: their texts would be made anew at each level."""
    return next((mine < its for mine, its in zip(_words(one), _words(other), strict=False) if mine != its), False)


def _words(value: Value) -> Iterator[str]:
    """The nodes of a value, each before its operands."""
    left = [value]
    while left:
        match left.pop():
            case Negative(operand=operand):
                yield "Negative"
                left.append(operand)
            case Arithmetic(operator=operator, left=first, right=second):
                yield f"Arithmetic {operator}"
                left += (second, first)
            case leaf:
                yield repr(leaf)
