"""Times as values: which operations instants and durations have, of which type and unit the results are.

Two instants (TIMESTAMP) have a difference, a DURATION; durations move instants, are added, negated, multiplied and
divided by numbers and by each other, and are compared with each other; instants are compared with each other and with
text in ISO 8601. Everything else is an error. A value has the finest unit of its operands, a literal such as ``30 min``
that of the time column. In a stream whose times are integers, a literal beside a number is its number of time units.

Source: docs/language.md ("Times").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.language.moments import seconds_of
from hamlet.language.printing import to_text
from hamlet.language.query import (
    Aggregate,
    AttributeType,
    Binary,
    Duration,
    Expression,
    Literal,
    Log2,
    Unary,
)
from hamlet.language.schema import Clock

INT, DOUBLE = AttributeType.INT, AttributeType.DOUBLE
TIMESTAMP, DURATION = AttributeType.TIMESTAMP, AttributeType.DURATION
TIMES, NUMBERS = (TIMESTAMP, DURATION), (INT, DOUBLE)
UNIT_OF = {number: unit for unit, number in UNITS_PER_SECOND.items()}
_UNIT_NAMES = {1: "seconds", 1_000: "milliseconds", 1_000_000: "microseconds", 1_000_000_000: "nanoseconds"}
_FINEST = 1_000_000_000
_LIMIT = 1 << 63


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression with its type.

    Attributes
    ----------
    node : Expression
    type : AttributeType or None
        None where it is not known, or where there is no value whatever the operands.
    per_second : int
        Ticks per second of an instant or a duration; 0 of others.
    zone : str or None
        The time zone of an instant, if it has one.
    operands : tuple of Typed
        Its parts, as they are read here.
    wrong : str or None
        Why there is no such operation, whatever the values.
    loose : bool
        Whether it is made of literals with durations, which what stands beside them makes numbers or durations.
    value : int or None
        Of a literal that is a time: its ticks.
    """

    node: Expression
    type: AttributeType | None
    per_second: int = 0
    zone: str | None = None
    operands: tuple[Typed, ...] = ()
    wrong: str | None = None
    loose: bool = False
    value: int | None = None

    @property
    def is_time(self) -> bool:
        """Whether it is an instant or a duration."""
        return self.type in TIMES

    @property
    def mistakes(self) -> list[Typed]:
        """The parts that are wrong, itself included."""
        return [found for each in self.operands for found in each.mistakes] + ([self] if self.wrong else [])


Leaf = Callable[[Expression], tuple[AttributeType | None, int, str | None]]  # type, ticks per second, zone


@dataclass(frozen=True)
class Times:
    """What is known of the times of a stream.

    Parameters
    ----------
    leaf : callable
        Type, ticks per second and zone of an attribute or an aggregate.
    clock : Clock or None
        The time column; None where the input is not known yet.
    """

    leaf: Leaf
    clock: Clock | None = None
    _found: dict[int, Typed] = field(default_factory=dict, compare=False, repr=False)  # by identity; holds its node

    def typed(self, expression: Expression) -> Typed:
        """An expression by itself, as in RETURN."""
        found = self._typed(expression)
        return self._as_duration(found, 0) if found.loose and self.clock is not None else found

    def compared(self, left: Expression, right: Expression) -> tuple[Typed, Typed, str | None]:
        """Both sides of a comparison, and why they cannot be compared where one of them is a time."""
        one, two = self._beside(self._typed(left), self._typed(right), "=")
        if one.loose or two.loose:
            if one.loose and two.loose and self.clock is not None:
                one, two = (self._as_duration(each, 0) for each in (one, two))
            return one, two, None
        for time, other in ((one, two), (two, one)):
            if time.is_time and other.type is not None and other.type is not time.type and not other.wrong:
                return one, two, _incomparable(time, other)
        return one, two, None

    # ------------------------------------------------------------------------------------------- expressions

    def _typed(self, expression: Expression) -> Typed:
        """What is typed once: each part of a chain is looked at by itself, too."""
        found = self._found.get(id(expression))
        if found is None:
            found = self._found[id(expression)] = self._typed_anew(expression)
        return found

    def _typed_anew(self, expression: Expression) -> Typed:
        match expression:
            case Literal(value=Duration()):
                loose = Typed(expression, None, loose=True)
                return self._as_duration(loose, 0) if self.clock is not None and self.clock.is_timestamp else loose
            case Literal(value=value):
                return Typed(expression, _literal_type(value))
            case Unary(operator=operator, operand=operand):
                inner = self._typed(operand)
                if inner.loose:
                    return Typed(expression, None, operands=(inner,), loose=True)
                if inner.type is TIMESTAMP:
                    return Typed(expression, None, operands=(inner,), wrong=f"an instant has no '{operator}'")
                kept = inner.type if inner.type in (*NUMBERS, DURATION) else None
                return Typed(expression, kept, inner.per_second, operands=(inner,))
            case Binary(operator=operator, left=left, right=right):
                one, two = self._beside(self._typed(left), self._typed(right), operator)
                return _combined(expression, operator, one, two)
            case Log2(operand=operand):
                inner = self._typed(operand)
                inner = self._as_duration(inner, 0) if inner.loose and self.clock is not None else inner
                wrong = "LOG2 takes numbers" if inner.is_time else None
                return Typed(expression, None if wrong else DOUBLE, operands=(inner,), wrong=wrong)
        kind, per_second, zone = self.leaf(expression)
        wrong = None
        if isinstance(expression, Aggregate) and expression.function == "SUM" and kind is TIMESTAMP:
            kind, wrong = None, "instants cannot be added up: take MIN, MAX or AVG"
        return Typed(expression, kind, per_second, zone, wrong=wrong)

    def _beside(self, one: Typed, two: Typed, operator: str) -> tuple[Typed, Typed]:
        """Two operands, literals as what stands beside them makes them."""
        one, two = self._settled(one, two, operator), self._settled(two, one, operator)
        if operator not in "+*/%":  # text beside an instant is one
            if one.type is TIMESTAMP and _is_quoted(two.node):
                two = _moment(two, one)
            elif two.type is TIMESTAMP and _is_quoted(one.node):
                one = _moment(one, two)
        return one, two

    def _settled(self, loose: Typed, other: Typed, operator: str) -> Typed:
        if not loose.loose or other.loose:
            return loose
        if other.is_time:
            return self._as_duration(loose, other.per_second)
        if other.type is None or self.clock is None or (_is_constant(other) and operator in "*/"):
            return loose
        return self._as_number(loose, self.clock)

    def _as_number(self, loose: Typed, clock: Clock) -> Typed:
        """The number of time units."""
        if isinstance(loose.node, Literal):
            if not isinstance(loose.node.value, Duration):
                return replace(loose, type=_literal_type(loose.node.value), loose=False)
            seconds = loose.node.value.seconds
            if clock.is_fraction and seconds.denominator > 1:
                return replace(loose, node=Literal(float(seconds)), type=DOUBLE, loose=False)
            return _counted(loose, INT, clock.units_per_second)
        inner = tuple(self._as_number(each, clock) if each.loose else each for each in loose.operands)
        kinds = [each.type for each in inner]
        divides = isinstance(loose.node, Binary) and loose.node.operator == "/"
        return replace(loose, type=DOUBLE if divides or DOUBLE in kinds else INT, operands=inner, loose=False)

    def _as_duration(self, loose: Typed, beside: int) -> Typed:
        """The duration, in the unit of the time column; beside a finer time where times are integers, in that."""
        if isinstance(loose.node, Literal):
            per_second = beside or _FINEST
            if self.clock is not None:
                own = self.clock.ticks_per_second
                per_second = own if self.clock.is_timestamp else max(own, beside)
            return _counted(loose, DURATION, per_second)
        inner = tuple(self._as_duration(each, beside) if each.loose else each for each in loose.operands)
        if isinstance(loose.node, Binary):
            return _combined(loose.node, loose.node.operator, *inner)
        return Typed(loose.node, inner[0].type, inner[0].per_second, operands=inner)


# ------------------------------------------------------------------------------------------------- what is wrong


def _combined(node: Binary, operator: str, one: Typed, two: Typed) -> Typed:
    """What an operation gives."""
    operands = (one, two)
    if one.loose or two.loose:
        constant = all(each.loose or _is_constant(each) for each in operands)
        return Typed(node, None, operands=operands, loose=constant)
    if not (one.is_time or two.is_time):
        if one.type is None or two.type is None or not (one.type in NUMBERS and two.type in NUMBERS):
            return Typed(node, None, operands=operands)
        double = operator == "/" or DOUBLE in (one.type, two.type)
        return Typed(node, DOUBLE if double else INT, operands=operands)
    wrong = _refusal(operator, one, two)
    kinds = (one.type, two.type)
    if wrong is not None or None in kinds:
        return Typed(node, None, operands=operands, wrong=wrong)
    finest = max(one.per_second, two.per_second)
    if operator in "+-" and TIMESTAMP in kinds and kinds != (TIMESTAMP, TIMESTAMP):
        return Typed(node, TIMESTAMP, finest, one.zone or two.zone, operands)
    if kinds == (DURATION, DURATION) and operator == "/":
        return Typed(node, DOUBLE, operands=operands)
    return Typed(node, DURATION, finest, operands=operands)


def _refusal(operator: str, one: Typed, two: Typed) -> str | None:
    """Why an operation with a time on some side is none; None where it is one, or may be."""
    kinds = (one.type, two.type)
    if operator == "%":
        return "'%' takes numbers, and no times"
    if operator in "*/":
        if TIMESTAMP in kinds:
            return f"'{operator}' takes durations and numbers, and no instants"
        if kinds == (DURATION, DURATION):
            return "durations are divided by each other, not multiplied" if operator == "*" else None
        if operator == "/" and two.type is DURATION and one.type is not None:
            return "a number cannot be divided by a duration"
    elif kinds == (TIMESTAMP, TIMESTAMP):
        return "two instants have a difference, and no sum" if operator == "+" else None
    elif operator == "-" and kinds == (DURATION, TIMESTAMP):
        return "an instant cannot be subtracted from a duration"
    for each in (one, two):
        allowed = TIMES if operator in "+-" else (*NUMBERS, DURATION)
        if each.type is not None and each.type not in allowed:
            what = "instants and durations" if operator in "+-" else "durations and numbers"
            return f"'{operator}' beside a time takes {what}: {to_text(each.node)} is {each.type.value}"
    return None


def _incomparable(time: Typed, other: Typed) -> str:
    own, theirs = (f"{to_text(each.node)} ({each.type.value})" for each in (time, other) if each.type is not None)
    return f"{own} cannot be compared with {theirs}"


# --------------------------------------------------------------------------------------------------- literals


def _literal_type(value: object) -> AttributeType | None:
    kinds = {bool: AttributeType.BOOLEAN, str: AttributeType.STRING, int: INT, float: DOUBLE}
    return kinds.get(type(value))


def _is_constant(typed: Typed) -> bool:
    """Whether an expression is made of literals only."""
    if typed.operands:
        return all(map(_is_constant, typed.operands))
    return isinstance(typed.node, Literal)


def _is_quoted(node: Expression) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str) and not node.bare


def _counted(loose: Typed, kind: AttributeType, per_second: int) -> Typed:
    """A duration's literal as a number of ticks."""
    assert isinstance(loose.node, Literal)
    assert isinstance(loose.node.value, Duration)
    ticks = loose.node.value.seconds * per_second
    wrong = None
    if ticks.denominator != 1:
        wrong = f"{to_text(loose.node)} is no whole number of {_UNIT_NAMES[per_second]}, the unit of the time column"
    elif not -_LIMIT <= ticks < _LIMIT:
        wrong = f"{to_text(loose.node)} is longer than 64 bits of {_UNIT_NAMES[per_second]} can hold"
    known = None if wrong else kind
    return Typed(loose.node, known, per_second if kind is DURATION else 0, wrong=wrong, value=ticks.numerator)


def _moment(text: Typed, beside: Typed) -> Typed:
    """Text in quotes beside an instant, in a unit that holds it."""
    assert isinstance(text.node, Literal)
    seconds = seconds_of(str(text.node.value), beside.zone)
    if seconds is None:
        return text
    per_second = beside.per_second or 1
    while per_second < _FINEST and (seconds * per_second).denominator != 1:
        per_second *= 1000
    return Typed(text.node, TIMESTAMP, per_second, beside.zone, value=int(seconds * per_second))
