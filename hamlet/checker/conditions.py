"""Conditions of queries on one event and on two neighbours, by the definition, for the checker."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from hamlet.language import query as q

Read = Callable[[Any], Any]  # the value of a reference


def kind(value: Any) -> str:
    """Values of one kind can be compared."""
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float | Decimal) else type(value).__name__


def references(node: Any) -> Iterator[Any]:
    """The references of a condition or an expression."""
    if isinstance(node, q.Reference):
        yield node
        return
    for name in ("left", "right", "operand", "low", "high"):
        if hasattr(node, name):
            yield from references(getattr(node, name))
    for name in ("operands", "choices"):
        for each in getattr(node, name, ()):
            yield from references(each)


def parts(condition: Any, negated: bool = False) -> Iterator[Any]:
    """The conditions that must all hold."""
    if isinstance(condition, q.Not):
        yield from parts(condition.operand, not negated)
    elif isinstance(condition, q.Or if negated else q.And):
        for each in condition.operands:
            yield from parts(each, negated)
    elif condition is not None:
        yield q.Not(condition) if negated else condition


class Where:
    """A WHERE clause.

    Attributes
    ----------
    equivalence : list of str
    """

    def __init__(self, condition: Any) -> None:
        self.equivalence: list[str] = []
        self._local: list[tuple[str | None, Any]] = []
        self._adjacent: list[tuple[str, str, bool, Any]] = []
        for part in parts(condition):
            if isinstance(part, q.Equivalence):
                self.equivalence += part.attributes
                continue
            found = list(references(part))
            if any(each.shift is not q.Shift.NONE for each in found):
                self._adjacent.append((*_pair(found), part))
            else:
                self._local.append((found[0].variable if found else None, part))

    def accepts(self, variable: str, read: Read) -> bool:
        """Whether an event may be bound to a variable."""
        return all(truth(part, read) is True for name, part in self._local if name in (None, variable))

    def connects(self, earlier: str, one: Read, later: str, two: Read) -> bool:
        """Whether one event may directly follow another."""
        for first, second, plain_first, part in self._adjacent:
            if (first, second) != (earlier, later):
                continue

            def read(reference: Any, plain_first: bool = plain_first) -> Any:
                if reference.shift is not q.Shift.NONE:
                    return two(reference) if reference.shift is q.Shift.NEXT else one(reference)
                if earlier == later:
                    return one(reference) if plain_first else two(reference)
                return one(reference) if reference.variable == earlier else two(reference)

            if truth(part, read) is not True:
                return False
        return True


def _pair(found: list[Any]) -> tuple[str, str, bool]:
    """The variables of a condition on neighbours, the earlier one first; whether plain references mean the earlier."""
    named = {shift: [each.variable for each in found if each.shift is shift] for shift in q.Shift}
    plain, after, before = named[q.Shift.NONE], named[q.Shift.NEXT], named[q.Shift.PREV]
    if after and before:
        return before[0], after[0], False
    if after:
        return next((each for each in plain if each != after[0]), after[0]), after[0], True
    return before[0], next((each for each in plain if each != before[0]), before[0]), False


def truth(condition: Any, read: Read) -> bool | None:
    """Whether a condition is true, false or unknown."""
    match condition:
        case q.And(operands):
            return _all([truth(each, read) for each in operands])
        case q.Or(operands):
            return _not(_all([_not(truth(each, read)) for each in operands]))
        case q.Not(operand):
            return _not(truth(operand, read))
        case q.Comparison(operator, left, right):
            return compare(operator, value_of(left, read), value_of(right, read))
        case q.Membership(operand, choices, negated):
            own = value_of(operand, read)
            found = _not(_all([_not(compare("=", own, value_of(each, read))) for each in choices]))
            return _not(found) if negated else found
        case q.Between(operand, low, high, negated):
            own = value_of(operand, read)
            inside = _all([compare(">=", own, value_of(low, read)), compare("<=", own, value_of(high, read))])
            return _not(inside) if negated else inside
        case q.NullTest(operand, negated):
            return (value_of(operand, read) is None) != negated
    raise ValueError("this condition cannot be checked")


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _all(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def compare(operator: str, one: Any, two: Any) -> bool | None:
    """A comparison, unknown with NULL and where kinds cannot be ordered."""
    if one is None or two is None:
        return None
    one, two = _as_times(one, two)
    alike = kind(one) == kind(two)
    if operator in ("=", "<>"):
        return (alike and bool(one == two)) is (operator == "=")
    if not alike:
        return None
    return bool({"<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two}[operator])


def _as_times(one: Any, two: Any) -> tuple[Any, Any]:
    """Text beside a time is a time, by the other's clock where it names no zone."""
    for first, second, swap in ((one, two, False), (two, one, True)):
        if isinstance(first, datetime.datetime) and isinstance(second, str):
            try:
                found = datetime.datetime.fromisoformat(second)
            except ValueError:
                return one, two
            found = found if found.tzinfo is not None else found.replace(tzinfo=first.tzinfo)
            return (found, first) if swap else (first, found)
    return one, two


def value_of(expression: Any, read: Read) -> Any:
    """The value of an expression over events, None for NULL."""
    match expression:
        case q.Literal(value):
            if isinstance(value, q.Duration):
                return datetime.timedelta(microseconds=float(value.seconds * 1_000_000))
            return value
        case q.Reference():
            return read(expression)
        case q.Unary(operator, operand):
            value = value_of(operand, read)
            if value is None or kind(value) not in ("number", "timedelta"):
                return None
            return -value if operator == "-" else value
        case q.Binary(operator, left, right):
            return arithmetic(operator, value_of(left, read), value_of(right, read))
    raise ValueError("this expression cannot be checked")


def arithmetic(operator: str, one: Any, two: Any) -> Any:
    """One operation, NULL where an operand is, or where something is divided by zero."""
    if one is None or two is None:
        return None
    one, two = _as_times(one, two)
    kinds = kind(one), kind(two)
    if kinds != ("number", "number"):
        return _of_times(operator, one, two)
    found: Any
    if operator in "+-*":
        found = one + two if operator == "+" else one - two if operator == "-" else one * two
    elif two == 0:
        return None
    elif operator == "/":
        found = one / two
    elif isinstance(one, int) and isinstance(two, int):
        found = abs(one) % abs(two) * (1 if one >= 0 else -1)
    else:
        found = None if math.isinf(one) else math.fmod(one, two)
    return None if isinstance(found, float) and math.isnan(found) else found


def _of_times(operator: str, one: Any, two: Any) -> Any:
    """An operation of times and durations, NULL where there is none."""
    try:
        match operator:
            case "+":
                return one + two
            case "-":
                return one - two
            case "*":
                return one * two
            case "/":
                return one / two
    except (TypeError, ZeroDivisionError):
        return None
    return None
