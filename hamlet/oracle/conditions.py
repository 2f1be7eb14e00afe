"""What a WHERE clause says of one event and of two neighbours, evaluated straight from the syntax tree.

Part of the oracle: it reads the AST and shares nothing with the engine's compiled predicates. Source: docs/language.md.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from hamlet.errors import DataError
from hamlet.language.query import (
    And,
    Between,
    Binary,
    Comparison,
    Condition,
    Duration,
    Equivalence,
    Expression,
    Literal,
    Membership,
    Not,
    NullTest,
    Or,
    Reference,
    Shift,
    Unary,
)
from hamlet.oracle import times

Read = Callable[[Reference], Any]  # the value of a reference, None for NULL
Truth = bool | None  # None is SQL's unknown

INT_RANGE = range(-(2**63), 2**63)


def kind(value: Any) -> str:
    """Values of one kind can be compared: ``number``, ``boolean``, ``str``, or the name of any other Python type."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float, Decimal)):
        return "number"
    return type(value).__name__


# ------------------------------------------------------------------------------------------------ expressions


def value_of(expression: Expression, read: Read) -> Any:
    """The value of an expression, None for NULL.

    Parameters
    ----------
    expression : Expression
        Any expression of the language.
    read : callable
        Gives the value of a reference.

    Raises
    ------
    DataError
        Where INT arithmetic leaves 64 bits.
    """
    match expression:
        case Literal(value=Duration() as length):
            return times.length(length)
        case Literal(value=value):
            return value
        case Reference():
            return read(expression)
        case Unary(operator=operator, operand=operand):
            value = value_of(operand, read)
            if isinstance(value, datetime.datetime):
                raise DataError(f"the negative of an instant: {value!r}")
            if isinstance(value, datetime.timedelta):
                return -value if operator == "-" else value
            if kind(value) != "number":
                return None
            return _checked(-value if operator == "-" else value, expression)
        case Binary(operator=operator, left=left, right=right):
            first, second = times.both(left, right, lambda side: value_of(side, read))
            if operator == "-":
                first, second = _times(first, second)
            if times.is_time(first) or times.is_time(second):
                return times.operation(operator, first, second)
            if kind(first) != "number" or kind(second) != "number":
                return None  # NULL, or no number to calculate with
            return _checked(_arithmetic(operator, first, second), expression)
    raise ValueError(f"no expression over events: {expression}")


def _arithmetic(operator: str, first: int | float, second: int | float) -> int | float | None:
    if operator == "+":
        return first + second
    if operator == "-":
        return first - second
    if operator == "*":
        return first * second
    if second == 0:
        return None
    if operator == "/":
        return first / second
    if isinstance(first, int) and isinstance(second, int):
        remainder = abs(first) % abs(second)
        return remainder if first >= 0 else -remainder
    return None if math.isinf(first) else math.fmod(first, second)


def _checked(value: int | float | None, expression: Expression) -> int | float | None:
    """NaN is NULL; an integer must fit 64 bits."""
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, int) and value not in INT_RANGE:
        raise DataError(f"INT arithmetic beyond 64 bits: {expression} is {value}")
    return value


# ------------------------------------------------------------------------------------------------- conditions


def truth_of(condition: Condition, value: Callable[[Expression], Any]) -> Truth:
    """Whether a condition holds, in three-valued logic. Every part is evaluated, none is cut short.

    Parameters
    ----------
    condition : Condition
        On events or on result rows.
    value : callable
        Gives the value of an expression, None for NULL.
    """
    match condition:
        case And(operands=operands):
            return _all([truth_of(operand, value) for operand in operands])
        case Or(operands=operands):
            return _not(_all([_not(truth_of(operand, value)) for operand in operands]))
        case Not(operand=operand):
            return _not(truth_of(operand, value))
        case Comparison(operator=operator, left=left, right=right):
            return _compare(operator, *times.both(left, right, value))
        case Membership(operand=tested, choices=choices, negated=negated):
            found = _not(_all([_compare("<>", *times.both(tested, choice, value)) for choice in choices]))
            return _not(found) if negated else found
        case Between(operand=tested, low=low, high=high, negated=negated):
            ends = [_compare(">=", *times.both(tested, low, value)), _compare("<=", *times.both(tested, high, value))]
            inside = _all(ends)
            return _not(inside) if negated else inside
        case NullTest(operand=tested, negated=negated):
            return (value(tested) is None) != negated
        case Equivalence():
            raise ValueError("an equivalence stands at the top of a condition only")


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _all(truths: Sequence[Truth]) -> Truth:
    if False in truths:
        return False
    return None if None in truths else True


def _times(left: Any, right: Any) -> tuple[Any, Any]:
    """Text beside a time is a time, where it is written as one; without a zone it is on the other's clock."""
    if isinstance(left, datetime.datetime) and isinstance(right, str):
        return left, _time(right, left)
    if isinstance(right, datetime.datetime) and isinstance(left, str):
        return _time(left, right), right
    return left, right


def _time(text: str, other: datetime.datetime) -> Any:
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return text
    return found if found.tzinfo is not None else found.replace(tzinfo=other.tzinfo)


def _compare(operator: str, left: Any, right: Any) -> Truth:
    if left is None or right is None:
        return None
    left, right = _times(left, right)
    comparable = kind(left) == kind(right)
    if not comparable and (times.is_time(left) or times.is_time(right)):
        raise DataError(f"{left!r} cannot be compared with {right!r}")
    match operator:
        case "=":
            return bool(comparable and left == right)
        case "<>":
            return not (comparable and left == right)
        case "<":
            return bool(left < right) if comparable else None
        case "<=":
            return bool(left <= right) if comparable else None
        case ">":
            return bool(left > right) if comparable else None
        case ">=":
            return bool(left >= right) if comparable else None
    raise ValueError(f"unknown comparison {operator}")


# --------------------------------------------------------------------------------------- what a condition is about


@dataclass(frozen=True)
class Adjacent:
    """A condition on an event bound to `earlier` and the event bound to `later` that directly follows it.

    Attributes
    ----------
    plain_is_earlier : bool
        Which of the two a reference without NEXT and PREV speaks of, where both variables are the same.
    """

    condition: Condition
    earlier: str
    later: str
    plain_is_earlier: bool

    def holds(self, read_earlier: Read, read_later: Read) -> bool:
        """Whether the condition is true (not unknown) of a pair of events."""

        def read(reference: Reference) -> Any:
            if reference.shift is Shift.NEXT:
                return read_later(reference)
            if reference.shift is Shift.PREV:
                return read_earlier(reference)
            if self.earlier == self.later:
                return read_earlier(reference) if self.plain_is_earlier else read_later(reference)
            return read_earlier(reference) if reference.variable == self.earlier else read_later(reference)

        return truth_of(self.condition, lambda expression: value_of(expression, read)) is True


@dataclass
class Rules:
    """A WHERE clause, taken apart.

    Attributes
    ----------
    equivalence : list of str
        Attributes that all events of a trend agree on.
    everywhere : list of Condition
        Conditions without a reference: they filter every event.
    local : list of (str, Condition)
        A variable, and a condition on its events.
    adjacent : list of Adjacent
        Conditions on neighbours.
    """

    equivalence: list[str] = field(default_factory=list)
    everywhere: list[Condition] = field(default_factory=list)
    local: list[tuple[str, Condition]] = field(default_factory=list)
    adjacent: list[Adjacent] = field(default_factory=list)

    def accepts(self, variable: str, read: Read) -> bool:
        """Whether an event can be bound to a variable: section 3, rule 2."""
        conditions = self.everywhere + [condition for name, condition in self.local if name == variable]
        truths = [
            truth_of(condition, lambda expression: value_of(expression, read)) for condition in conditions
        ]  # all of them: one may overflow
        return all(truth is True for truth in truths)

    def connects(self, earlier: str, read_earlier: Read, later: str, read_later: Read) -> bool:
        """Whether two bound events may be neighbours: section 3, rule 3."""
        about = [rule for rule in self.adjacent if (rule.earlier, rule.later) == (earlier, later)]
        held = [rule.holds(read_earlier, read_later) for rule in about]
        return all(held)


def rules_of(condition: Condition | None) -> Rules:
    """Takes a WHERE clause apart: NOT pushed inward, AND split at the top.

    Raises
    ------
    ValueError
        For a condition that a checked query cannot have.
    """
    rules = Rules()
    for part in _split(condition, negated=False) if condition is not None else ():
        if isinstance(part, Equivalence):
            rules.equivalence += [name for name in part.attributes if name not in rules.equivalence]
            continue
        references = list(_references(part))
        if any(reference.shift is not Shift.NONE for reference in references):
            rules.adjacent.append(_adjacent(part, references))
        elif not references:
            rules.everywhere.append(part)
        else:
            rules.local.append((_only({reference.variable for reference in references}), part))
    return rules


def _split(condition: Condition, negated: bool) -> Iterator[Condition]:
    """The parts of a condition that must all hold."""
    match condition:
        case Not(operand=operand):
            yield from _split(operand, not negated)
        case And(operands=operands) if not negated:
            for operand in operands:
                yield from _split(operand, negated)
        case Or(operands=operands) if negated:
            for operand in operands:
                yield from _split(operand, negated)
        case _:
            yield Not(condition) if negated else condition


def _adjacent(condition: Condition, references: Sequence[Reference]) -> Adjacent:
    """Finds the pair of variables that a condition with NEXT or PREV speaks of."""
    named = {shift: {r.variable for r in references if r.shift is shift} for shift in Shift}
    plain, following, preceding = named[Shift.NONE], named[Shift.NEXT], named[Shift.PREV]
    if following and preceding:
        earlier, later = _only(preceding), _only(following)
        if earlier == later or not plain <= {earlier, later}:
            raise ValueError(f"NEXT and PREV of more than one pair: {condition}")
    elif following:
        later = _only(following)
        earlier = _only(plain - following or plain)
    else:
        earlier = _only(preceding)
        later = _only(plain - preceding or plain)
    return Adjacent(condition, earlier, later, plain_is_earlier=bool(following))


def _only(names: set[str]) -> str:
    if len(names) != 1:
        raise ValueError(f"one variable expected, not {sorted(names)}")
    return next(iter(names))


def _references(node: Condition | Expression) -> Iterator[Reference]:
    match node:
        case Reference():
            yield node
        case Unary(operand=operand) | Not(operand=operand) | NullTest(operand=operand):
            yield from _references(operand)
        case Binary(left=left, right=right) | Comparison(left=left, right=right):
            yield from _references(left)
            yield from _references(right)
        case Membership(operand=operand, choices=choices):
            for part in (operand, *choices):
                yield from _references(part)
        case Between(operand=operand, low=low, high=high):
            for part in (operand, low, high):
                yield from _references(part)
        case And(operands=conditions) | Or(operands=conditions):
            for condition in conditions:
                yield from _references(condition)
