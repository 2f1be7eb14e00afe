"""A specification as it was written: an abstract syntax tree whose nodes know their place in the text.

Every node carries a `Span` that takes no part in comparisons. Operators have one spelling each (``&&`` for ``and`` and
``∧``); all else stands as it was typed: a method call is a `Method` whatever its name, and a name is a `Name` whether
it is a stream, a constant or a parameter. `hamlet.streams.check.expressions` finds out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, Union

from hamlet.errors import Span, span_field

# ---------------------------------------------------------------------------------------------------------- types


@dataclass(frozen=True, slots=True)
class TypeName:
    """``Int64``, or the name of a `TypeDeclaration`."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class TupleType:
    """``(Int64, Bool)``; ``()`` has no parts."""

    parts: tuple[TypeSyntax, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class OptionalType:
    """``Int64?``."""

    inner: TypeSyntax
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class InferredType:
    """``_``: to be found out."""

    span: Span = span_field()


TypeSyntax: TypeAlias = Union[TypeName, TupleType, OptionalType, InferredType]

# ---------------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Boolean:
    """``true``, ``false``."""

    value: bool
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Text:
    """``"text"`` or ``r#"text"#``; backslashes stand for themselves."""

    value: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Number:
    """``5``, ``-2.5e3``, ``5s``, ``10Hz``.

    Attributes
    ----------
    value : Fraction
        Exact.
    whole : bool
        Written without point and exponent.
    unit : str
        What follows without a space; empty for a plain number.
    minus : bool
        Written with a minus sign, which ``-0.0`` keeps.
    """

    value: Fraction
    whole: bool
    unit: str = ""
    minus: bool = False
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Name:
    """A stream, a constant or a parameter."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Unary:
    """``!``, ``-`` or ``~``."""

    operator: str
    operand: Expression
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Binary:
    """``+ - * / % ** && || -> = != < <= > >= & | ^ << >>``."""

    operator: str
    left: Expression
    right: Expression
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Choice:
    """``if condition then left else right``."""

    condition: Expression
    left: Expression
    right: Expression
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class MakeTuple:
    """``(a, b)``, ``()``."""

    parts: tuple[Expression, ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Field:
    """``pair.0`` or ``point.x``."""

    operand: Expression
    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Argument:
    """What stands between the commas of a call, with its label where it has one."""

    label: str | None
    value: Expression
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Call:
    """``f(x)``, ``cast<Int64, Float64>(x)``, ``s(1, "a")``: a function, or an instance of a stream."""

    name: str
    types: tuple[TypeSyntax, ...]
    arguments: tuple[Argument, ...]
    name_span: Span = span_field()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Method:
    """``s.hold(or: 0)``."""

    operand: Expression
    name: str
    types: tuple[TypeSyntax, ...]
    arguments: tuple[Argument, ...]
    name_span: Span = span_field()
    span: Span = span_field()

    @property
    def signature(self) -> str:
        """Name and labels: ``aggregate(over:using:)``, ``hold()``, ``f(_:)``."""
        return f"{self.name}({''.join(f'{each.label or chr(95)}:' for each in self.arguments)})"


@dataclass(frozen=True, slots=True)
class Index:
    """``s[-1]``, ``s[-2s]``."""

    operand: Expression
    offset: Expression
    span: Span = span_field()


Expression: TypeAlias = Union[Boolean, Text, Number, Name, Unary, Binary, Choice, MakeTuple, Field, Call, Method, Index]


def parts(expression: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside one."""
    match expression:
        case Unary(operand=operand) | Field(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Choice(condition=condition, left=left, right=right):
            return (condition, left, right)
        case MakeTuple(parts=inner):
            return inner
        case Call(arguments=arguments):
            return tuple(each.value for each in arguments)
        case Method(operand=operand, arguments=arguments):
            return (operand, *(each.value for each in arguments))
        case Index(operand=operand, offset=offset):
            return (operand, offset)
    return ()


# ----------------------------------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class Import:
    """``import math``."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Include:
    """``include "other.lola"``; what it names has been read in its place by `hamlet.streams.sources`."""

    path: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class TypeDeclaration:
    """``type Point { x: Float64, y: Float64 }``."""

    name: str
    fields: tuple[tuple[str, TypeSyntax], ...]
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class ConstantDeclaration:
    """``constant limit: Float64 := 100.0``; the value is a literal."""

    name: str
    type: TypeSyntax | None
    value: Expression
    name_span: Span = span_field()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Input:
    """One of the streams of ``input a: Int64, b: Bool``."""

    name: str
    type: TypeSyntax
    name_span: Span = span_field()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Pace:
    """What follows ``@``.

    Attributes
    ----------
    scope : {'', 'Global', 'Local'}
        Empty where it is not said.
    formula : Expression
        A number with a unit, or names with ``&&`` and ``||``.
    """

    scope: str
    formula: Expression
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class SpawnClause:
    """``spawn @pace when condition with expression``; each part may be missing, not all."""

    pace: Pace | None
    condition: Expression | None
    expression: Expression | None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class EvalClause:
    """``eval @pace when condition with expression``, or ``@pace := expression``."""

    pace: Pace | None
    condition: Expression | None
    expression: Expression | None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class CloseClause:
    """``close @pace when condition``."""

    pace: Pace | None
    condition: Expression | None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class ParameterDeclaration:
    """``p: String`` in the brackets of an output."""

    name: str
    type: TypeSyntax | None
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Output:
    """An output or, without a name, a trigger.

    ``trigger c "message"`` is ``trigger eval when c with "message"``.
    """

    name: str | None
    parameters: tuple[ParameterDeclaration, ...]
    type: TypeSyntax | None
    spawn: SpawnClause | None
    evals: tuple[EvalClause, ...]
    close: CloseClause | None
    name_span: Span = span_field()
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Mirror:
    """``output name mirrors target when condition``: the target's values where the condition holds."""

    name: str
    target: str
    condition: Expression
    name_span: Span = span_field()
    target_span: Span = span_field()
    span: Span = span_field()


Statement: TypeAlias = Union[Import, Include, TypeDeclaration, ConstantDeclaration, Input, Output, Mirror]


@dataclass(frozen=True)
class SpecificationText:
    """A file: its statements in the order of the text."""

    text: str = field(repr=False)
    source: str
    statements: tuple[Statement, ...]
