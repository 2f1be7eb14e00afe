"""Conditions as programs of the expression machine: typed, postfix, one step per operator.

NOT has been pushed inward (analysis), so a condition that is unknown may be taken for false everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from hamlet.input.columns import StringPool
from hamlet.kernel.expression import COMPARISONS, Program
from hamlet.language.moments import is_difference, is_duration, is_text, seconds_of
from hamlet.language.printing import to_text
from hamlet.language.query import (
    And,
    AttributeType,
    Between,
    Binary,
    Comparison,
    Condition,
    Duration,
    Expression,
    Literal,
    Membership,
    NullTest,
    Or,
    Reference,
    Unary,
)
from optimizer.condition import MIRRORED

INT, DOUBLE, STRING = AttributeType.INT, AttributeType.DOUBLE, AttributeType.STRING
TIMESTAMP, BOOLEAN = AttributeType.TIMESTAMP, AttributeType.BOOLEAN

_FAR = 1 << 62  # what lies beyond is as good as infinitely far
ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "%": "remainder"}


@dataclass
class ProgramWriter:
    """Writes one program.

    Parameters
    ----------
    type_of : callable
        Attribute type of a reference; None where no value has been seen yet.
    is_vector : callable
        Whether a reference speaks of the vector side (the rows, or the earlier event of a pair).
    strings : StringPool
        Numbers the string literals.
    scale_of : callable
        Ticks per second of a reference to a TIMESTAMP, so that units may be mixed.
    zone_of : callable
        The time zone of a reference to a TIMESTAMP, if it has one.
    """

    type_of: Callable[[Reference], AttributeType | None]
    is_vector: Callable[[Reference], bool]
    strings: StringPool
    scale_of: Callable[[Reference], int]
    zone_of: Callable[[Reference], str | None] = lambda _: None
    steps: list[tuple[str, int, str]] = field(default_factory=list)
    constants: list[int | float] = field(default_factory=list)
    columns: tuple[dict[str, int], dict[str, int]] = field(default_factory=lambda: ({}, {}))  # scalar, vector

    def program(self, conditions: Sequence[Condition]) -> Program:
        """The program of the conjunction of some conditions."""
        self.all_of(conditions, to_text(conditions[0]))
        scalar, vector = self.columns
        return Program(self.steps, self.constants, tuple(vector), tuple(scalar))

    def value_program(self, expression: Expression) -> Program:
        """The program of an expression, all references on the vector side."""
        self.expression(expression)
        return Program(self.steps, self.constants, tuple(self.columns[True]), ())

    def all_of(self, conditions: Sequence[Condition], text: str, operation: str = "both") -> None:
        """All (`both`) or any (`either`) of some conditions."""
        for place, condition in enumerate(conditions):
            self.condition(condition)
            if place:
                self.step(operation, text)

    def step(self, name: str, text: str, argument: int = 0) -> None:
        """Append one step."""
        self.steps.append((name, argument, text))

    def constant(self, value: int | float, text: str) -> None:
        """Push a constant."""
        self.constants.append(value)
        kind = "double" if isinstance(value, float) else "int"
        self.step(f"constant_{kind}", text, len(self.constants) - 1)

    def condition(self, condition: Condition) -> None:
        """Push the truth value of a condition."""
        text = to_text(condition)
        match condition:
            case And(operands=operands):
                self.all_of(operands, text)
            case Or(operands=operands):
                self.all_of(operands, text, "either")
            case Comparison(operator=operator, left=left, right=right):
                self.comparison(operator, left, right, text)
            case Membership(operand=operand, choices=choices, negated=negated):
                for place, choice in enumerate(choices):
                    self.comparison("<>" if negated else "=", operand, choice, text)
                    if place:
                        self.step("both" if negated else "either", text)
            case Between(operand=operand, low=low, high=high, negated=negated):
                self.comparison("<" if negated else ">=", operand, low, text)
                self.comparison(">" if negated else "<=", operand, high, text)
                self.step("either" if negated else "both", text)
            case NullTest(operand=operand, negated=negated):
                self.expression(operand)
                self.null_test(operand, negated, text)
            case _:
                raise TypeError(f"analysis leaves no {type(condition).__name__} in a predicate")

    def comparison(self, operator: str, left: Expression, right: Expression, text: str) -> None:
        """Push the truth value of a comparison; values of unlike types are never equal and have no order."""
        if self.length(operator, left, right, text):
            return
        kinds = (self.kind(left), self.kind(right))
        for place, side in enumerate((left, right)):
            if kinds[1 - place] is TIMESTAMP and is_text(side):
                self.moments(operator, left, right, text)
                return
        if None in kinds:
            self.step("nothing_truth", text)
        elif kinds == (INT, DOUBLE):
            self.operands(left, right)
            self.step("compare_int_double", text, COMPARISONS[operator])
        elif kinds == (DOUBLE, INT):
            self.operands(right, left)
            self.step("compare_int_double", text, COMPARISONS[MIRRORED[operator]])
        elif kinds[0] is not kinds[1]:
            if operator != "<>":
                self.step("nothing_truth", text)
                return
            for side in (left, right):
                self.expression(side)
                self.null_test(side, True, text)
            self.step("both", text)
        else:
            self.like_comparison(operator, left, right, kinds[0], text)

    def moments(self, operator: str, left: Expression, right: Expression, text: str) -> None:
        """Push the truth value of a comparison of a timestamp with a text that is read as one."""
        zone = next(self.zone_of(each) for each in (left, right) if isinstance(each, Reference))
        fixed = [seconds_of(str(each.value), zone) for each in (left, right) if isinstance(each, Literal)]
        if None in fixed:
            self.step("nothing_truth", text)
            return
        scale = _common_scale(
            [self.scale(each) for each in (left, right)], [each for each in fixed if each is not None]
        )
        for side in (left, right):
            self.ticks(side, scale, zone, text)
        self.step("compare_int", text, COMPARISONS[operator])

    def length(self, operator: str, left: Expression, right: Expression, text: str) -> bool:
        """Push the truth value of a comparison of lengths of time; False where these are none."""
        sides = [self.length_parts(each) for each in (left, right)]
        if None in sides or not any(is_duration(each) for each in (left, right)):
            return False
        parts = [each for side in sides if side is not None for each in side]
        references = [each for each in parts if isinstance(each, Reference)]
        zone = self.zone_of(references[0]) if references else None
        fixed = []
        for each in parts:
            if isinstance(each, Literal):
                value = each.value
                fixed.append(value.seconds if isinstance(value, Duration) else seconds_of(str(value), zone))
        if None in fixed:
            self.step("nothing_truth", text)
            return True
        scale = _common_scale([self.scale(each) for each in references], [each for each in fixed if each is not None])
        for side in sides:
            assert side is not None
            for place, each in enumerate(side):
                self.ticks(each, scale, zone, text)
                if place:
                    self.step("subtract_int", text)
        self.step("compare_int", text, COMPARISONS[operator])
        return True

    def length_parts(self, expression: Expression) -> tuple[Expression, ...] | None:
        """A duration, or the two sides of a difference of timestamps; None for what is neither."""
        if is_duration(expression):
            return (expression,)
        if not (isinstance(expression, Binary) and is_difference(expression)):
            return None
        sides = (expression.left, expression.right)
        times = [self.kind(each) is TIMESTAMP for each in sides]
        return (
            sides
            if any(times) and all(time or is_text(each) for time, each in zip(times, sides, strict=True))
            else None
        )

    def ticks(self, side: Expression, scale: int, zone: str | None, text: str) -> None:
        """Push a timestamp or a duration in ticks of `scale` per second."""
        if isinstance(side, Literal):
            value = side.value
            seconds = value.seconds if isinstance(value, Duration) else seconds_of(str(value), zone)
            assert seconds is not None, "looked at before"
            self.constant(max(-_FAR, min(int(seconds * scale), _FAR)), text)
            return
        self.expression(side)
        if scale > self.scale(side):
            self.constant(scale // self.scale(side), text)
            self.step("multiply_int", text)

    def like_comparison(
        self, operator: str, left: Expression, right: Expression, kind: AttributeType | None, text: str
    ) -> None:
        """Push the truth value of a comparison of two values of one type."""
        for side in (left, right):
            self.expression(side)
            if kind is STRING and operator not in ("=", "<>"):
                self.strings.ordered = True
                self.step("rank", text)
            if kind is TIMESTAMP and isinstance(side, Reference):
                scale = max(self.scale(left), self.scale(right)) // self.scale(side)
                if scale > 1:
                    self.constant(scale, text)
                    self.step("multiply_int", text)
        self.step("compare_double" if kind is DOUBLE else "compare_int", text, COMPARISONS[operator])

    def null_test(self, operand: Expression, negated: bool, text: str) -> None:
        """Replace the value on top by whether it is NULL (or is not)."""
        kind = "double" if self.kind(operand) is DOUBLE else "int"
        self.step(f"is_not_null_{kind}" if negated else f"is_null_{kind}", text)

    def scale(self, expression: Expression) -> int:
        """Ticks per second of a TIMESTAMP expression."""
        return self.scale_of(expression) if isinstance(expression, Reference) else 1

    def operands(self, left: Expression, right: Expression) -> None:
        """Push two values."""
        self.expression(left)
        self.expression(right)

    def expression(self, expression: Expression) -> None:
        """Push the value of an expression, of type `kind(expression)`."""
        text = to_text(expression)
        match expression:
            case Literal(value=str() as value):
                self.constant(self.strings.number(value), text)
            case Literal(value=bool() | int() as value):
                self.constant(int(value), text)
            case Literal(value=float() as value):
                self.constant(value, text)
            case Literal():
                self.step("nothing_int", text)  # a duration, which is compared with lengths only
            case Reference():
                self.reference(expression, text)
            case Unary(operator=operator, operand=operand):
                self.expression(operand)
                if operator == "-":
                    self.step("negate_double" if self.kind(operand) is DOUBLE else "negate_int", text)
            case Binary():
                self.arithmetic(expression, text)

    def reference(self, reference: Reference, text: str) -> None:
        """Push an attribute of one side."""
        kind = self.type_of(reference)
        if kind is None:
            self.step("nothing_int", text)
            return
        vector = self.is_vector(reference)
        places = self.columns[vector]
        place = places.setdefault(reference.attribute, len(places))
        self.step(f"load_{'vector' if vector else 'scalar'}_{'double' if kind is DOUBLE else 'int'}", text, place)

    def arithmetic(self, expression: Binary, text: str) -> None:
        """Push the result of ``+ - * / %``."""
        kind = self.kind(expression)
        if kind is None:
            self.step("nothing_int", text)
            return
        for operand in (expression.left, expression.right):
            self.expression(operand)
            if kind is DOUBLE and self.kind(operand) is not DOUBLE:
                self.step("to_double", text)
        if expression.operator == "/":
            self.step("divide", text)
        else:
            self.step(f"{ARITHMETIC[expression.operator]}_{'double' if kind is DOUBLE else 'int'}", text)

    def kind(self, expression: Expression) -> AttributeType | None:
        """The type of an expression; None where it is NULL whatever the event (no values, or unlike operands)."""
        match expression:
            case Literal(value=bool()):
                return BOOLEAN
            case Literal(value=int()):
                return INT
            case Literal(value=float()):
                return DOUBLE
            case Literal(value=Duration()):
                return None
            case Literal():
                return STRING
            case Reference():
                return self.type_of(expression)
            case Unary(operand=operand):
                return self.number(self.kind(operand))
            case Binary(operator=operator, left=left, right=right):
                kinds = {self.number(self.kind(left)), self.number(self.kind(right))}
                if None in kinds:
                    return None
                return DOUBLE if operator == "/" or DOUBLE in kinds else INT
        raise TypeError(f"analysis leaves no {type(expression).__name__} in a predicate")

    @staticmethod
    def number(kind: AttributeType | None) -> AttributeType | None:
        """The type if arithmetic takes it."""
        return kind if kind in (INT, DOUBLE) else None


def _common_scale(scales: Sequence[int], seconds: Sequence[Fraction]) -> int:
    """Ticks per second that hold all times exactly."""
    scale = max([*scales, 1])
    while scale < 10**9 and any((each * scale).denominator != 1 for each in seconds):
        scale *= 1000
    return scale
