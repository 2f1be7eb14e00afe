"""Conditions as programs of the expression machine: typed, postfix, one step per operator.

NOT has been pushed inward (analysis), so a condition that is unknown may be taken for false everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from hamlet.input.columns import StringPool
from hamlet.kernel.expression import COMPARISONS, Program
from hamlet.language.printing import to_text
from hamlet.language.query import (
    And,
    AttributeType,
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
from hamlet.language.times import DOUBLE, INT, Times, Typed
from optimizer.condition import MIRRORED

STRING = AttributeType.STRING
REFUSED = "no such operation: "  # what the text of a step begins with that is an error where its operands are there

_LIMIT = 1 << 63
ARITHMETIC = {"+": "add", "-": "subtract", "*": "multiply", "%": "remainder"}


class Text:
    """What a step computes, in words when they are asked for: in a long chain each step computes all before it."""

    __slots__ = ("node",)

    def __init__(self, node: Condition | Expression) -> None:
        self.node = node

    def __str__(self) -> str:
        return to_text(self.node)


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
    times : Times
        What is known of times.
    """

    type_of: Callable[[Reference], AttributeType | None]
    is_vector: Callable[[Reference], bool]
    strings: StringPool
    times: Times
    steps: list[tuple[str, int, object]] = field(default_factory=list)
    constants: list[int | float] = field(default_factory=list)
    columns: tuple[dict[str, int], dict[str, int]] = field(default_factory=lambda: ({}, {}))  # scalar, vector

    def program(self, conditions: Sequence[Condition]) -> Program:
        """The program of the conjunction of some conditions."""
        self.all_of(conditions, Text(conditions[0]))
        scalar, vector = self.columns
        return Program(self.steps, self.constants, tuple(vector), tuple(scalar))

    def value_program(self, expression: Expression) -> Program:
        """The program of an expression, all references on the vector side."""
        self.expression(self.times.typed(expression))
        return Program(self.steps, self.constants, tuple(self.columns[True]), ())

    def all_of(self, conditions: Sequence[Condition], text: Text, operation: str = "both") -> None:
        """All (`both`) or any (`either`) of some conditions."""
        for place, condition in enumerate(conditions):
            self.condition(condition)
            if place:
                self.step(operation, text)

    def step(self, name: str, text: object, argument: int = 0) -> None:
        """Append one step."""
        self.steps.append((name, argument, text))

    def constant(self, value: int | float, text: Text) -> None:
        """Push a constant."""
        self.constants.append(value)
        kind = "double" if isinstance(value, float) else "int"
        self.step(f"constant_{kind}", text, len(self.constants) - 1)

    def condition(self, condition: Condition) -> None:
        """Push the truth value of a condition."""
        text = Text(condition)
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
                typed = self.times.typed(operand)
                self.expression(typed)
                self.null_test(typed, negated, text)
            case _:
                raise TypeError(f"analysis leaves no {type(condition).__name__} in a predicate")

    def comparison(self, operator: str, left: Expression, right: Expression, text: Text) -> None:
        """Push the truth value of a comparison; values of unlike types are never equal and have no order."""
        one, two, wrong = self.times.compared(left, right)
        if wrong is not None:
            self.refusal(one, two, wrong)
        elif one.is_time and two.is_time:
            self.time_comparison(operator, one, two, text)
        else:
            self.plain_comparison(operator, one, two, text)

    def both_there(self, left: Typed, right: Typed, text: Text) -> None:
        """Push whether both operands have a value."""
        for side in (left, right):
            self.expression(side)
            self.null_test(side, True, text)
        self.step("both", text)

    def plain_comparison(self, operator: str, left: Typed, right: Typed, text: Text) -> None:
        """Push the truth value of a comparison of values that are no times."""
        kinds = (left.type, right.type)
        if None in kinds:
            self.both_there(left, right, text)
            self.step("nothing_truth", text)
            self.step("both", text)
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
            self.both_there(left, right, text)
        else:
            self.like_comparison(operator, left, right, kinds[0], text)

    # ------------------------------------------------------------------------------------------------ times

    def time_comparison(self, operator: str, left: Typed, right: Typed, text: Text) -> None:
        """Push the truth value of a comparison of two instants, or of two durations."""
        if left.value is not None and right.value is None:
            self.time_comparison(MIRRORED[operator], right, left, text)
            return
        self.expression(left)
        if right.value is not None and left.value is None:
            self.to_constant(operator, Fraction(right.value * left.per_second, right.per_second), text)
            return
        self.expression(right)
        self.step("compare_scaled", text, COMPARISONS[operator] + 8 * _scaling(left, right))

    def to_constant(self, operator: str, constant: Fraction, text: Text) -> None:
        """Replace an integer on top by how it compares with a number that need be no integer of 64 bits."""
        whole, rest = divmod(constant.numerator, constant.denominator)
        above = whole >= _LIMIT
        if rest and operator == "=":
            above, operator, whole = True, ">", _LIMIT  # no integer is that
        elif rest and operator != "<>":
            operator = "<=" if operator in "<=" else ">"
        fits = -_LIMIT <= whole < _LIMIT
        if fits and not (rest and operator == "<>"):
            self.constant(whole, text)
            self.step("compare_int", text, COMPARISONS[operator])
            return
        always = operator == "<>" or ((operator in ("<", "<=")) is above and operator != "=")
        self.step("is_not_null_int", text)
        if not always:
            self.step("nothing_truth", text)
            self.step("both", text)

    def refusal(self, left: Typed, right: Typed, wrong: str) -> None:
        """Push NULL, which is no truth either; stop at a row where both operands are there."""
        self.operands(left, right)
        self.step("refuse", REFUSED + wrong, (left.type is DOUBLE) + 2 * (right.type is DOUBLE))

    def like_comparison(self, operator: str, left: Typed, right: Typed, kind: AttributeType | None, text: Text) -> None:
        """Push the truth value of a comparison of two values of one type."""
        for side in (left, right):
            self.expression(side)
            if kind is STRING and operator not in ("=", "<>"):
                self.strings.ordered = True
                self.step("rank", text)
        self.step("compare_double" if kind is DOUBLE else "compare_int", text, COMPARISONS[operator])

    def null_test(self, operand: Typed, negated: bool, text: Text) -> None:
        """Replace the value on top by whether it is NULL (or is not)."""
        kind = "double" if operand.type is DOUBLE else "int"
        self.step(f"is_not_null_{kind}" if negated else f"is_null_{kind}", text)

    def operands(self, left: Typed, right: Typed) -> None:
        """Push two values."""
        self.expression(left)
        self.expression(right)

    def expression(self, typed: Typed) -> None:
        """Push the value of an expression; an integer where its type is not known."""
        text = Text(typed.node)
        if typed.value is not None and typed.wrong is None:
            self.constant(max(-_LIMIT, min(typed.value, _LIMIT - 1)), text)
            return
        if typed.wrong is not None and typed.operands:
            self.refusal(typed.operands[0], typed.operands[-1], typed.wrong)
            return
        match typed.node:
            case Literal(value=str() as value):
                self.constant(self.strings.number(value), text)
            case Literal(value=bool() | int() as value):
                self.constant(int(value), text)
            case Literal(value=float() as value):
                self.constant(value, text)
            case Literal() if typed.wrong is not None:  # a duration that its unit cannot hold
                self.constant(0, text)
                self.constant(0, text)
                self.step("refuse", REFUSED + typed.wrong)
            case Literal():
                self.step("nothing_int", text)  # a duration beside nothing that is known
            case Reference():
                self.reference(typed.node, text)
            case Unary(operator=operator):
                self.expression(typed.operands[0])
                if operator == "-" and typed.type is not None:
                    self.step("negate_double" if typed.type is DOUBLE else "negate_int", text)
                elif typed.type is None and typed.operands[0].type is not None:
                    self.nothing(typed.operands[0], text)
            case Binary():
                self.arithmetic(typed, text)

    def nothing(self, operand: Typed, text: Text) -> None:
        """Replace the value on top by NULL."""
        self.null_test(operand, True, text)
        self.step("nothing_int", text)
        self.step("add_int", text)

    def reference(self, reference: Reference, text: Text) -> None:
        """Push an attribute of one side."""
        kind = self.type_of(reference)
        if kind is None:
            self.step("nothing_int", text)
            return
        vector = self.is_vector(reference)
        places = self.columns[vector]
        place = places.setdefault(reference.attribute, len(places))
        self.step(f"load_{'vector' if vector else 'scalar'}_{'double' if kind is DOUBLE else 'int'}", text, place)

    def arithmetic(self, typed: Typed, text: Text) -> None:
        """Push the result of ``+ - * / %``."""
        assert isinstance(typed.node, Binary)
        operator, (left, right) = typed.node.operator, typed.operands
        if left.is_time or right.is_time:
            self.time_arithmetic(typed, operator, left, right, text)
            return
        if typed.type is None:
            self.both_there(left, right, text)  # where something is wrong in them
            self.step("nothing_int", text)
            self.step("add_int", text)
            return
        for operand in (left, right):
            self.expression(operand)
            if typed.type is DOUBLE and operand.type is not DOUBLE:
                self.step("to_double", text)
        if operator == "/":
            self.step("divide", text)
        else:
            self.step(f"{ARITHMETIC[operator]}_{'double' if typed.type is DOUBLE else 'int'}", text)

    def time_arithmetic(self, typed: Typed, operator: str, left: Typed, right: Typed, text: Text) -> None:
        """Push the result of an operation on times: ticks, or the quotient of two durations."""
        if typed.type is None:
            self.both_there(left, right, text)
            self.step("nothing_int", text)
            self.step("add_int", text)
            return
        if operator == "*" and right.is_time:
            left, right = right, left
        self.operands(left, right)
        if operator in "+-":
            scaling = _scaling(left, right)
            name = ("add" if operator == "+" else "subtract") + ("_scaled" if scaling else "_int")
            self.step(name, text, scaling)
        elif right.is_time:
            self.step("ratio", text, _scaling(left, right))
        elif operator == "*":
            self.step("multiply_int" if right.type is INT else "multiply_ticks", text)
        else:
            self.step("divide_ticks_int" if right.type is INT else "divide_ticks", text)

    def kind(self, expression: Expression) -> AttributeType | None:
        """The type of an expression; None where it is NULL whatever the event (no values, or unlike operands)."""
        return self.times.typed(expression).type

    def scale(self, expression: Expression) -> int:
        """Ticks per second of an expression that is a time; 0 of others."""
        return self.times.typed(expression).per_second


def _scaling(left: Typed, right: Typed) -> int:
    """Which side has fewer ticks per second, by what power of 1,000: 1 to 3 the left, 4 to 6 the right, 0 neither."""
    coarse, fine = sorted((left.per_second, right.per_second))
    power = {1: 0, 1_000: 1, 1_000_000: 2, 1_000_000_000: 3}[fine // coarse]
    return power + 3 * (power > 0 and right.per_second < left.per_second)
