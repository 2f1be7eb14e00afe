"""A policy's formula as it was written: an abstract syntax tree whose nodes know their place in the text.

Every node carries a `Span` that takes no part in comparisons, so two formulas are equal when they say the same thing
wherever they stand. The tree is what the parser returns, what `printing` turns back into text, and the only thing
that the brute-force oracle shares with the evaluation.

A variable of a predicate that begins with ``_`` stands for anything: it is bound right at the predicate, and two plain
``_`` are two variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Union

from hamlet.errors import Span, span_field
from hamlet.frontend.units import SECONDS
from hamlet.policies.syntax.regex import Regex, formulas, mapped

if TYPE_CHECKING:
    from hamlet.language.schema import Clock

Type = Literal["int", "float", "string", "bool"]
Value = Union[int, float, str, bool]
Unit = Literal["s", "m", "h", "d"]

UNITS: dict[str, str] = {"s": "s", "m": "min", "h": "h", "d": "d"}
COMPARISONS = ("=", "<", ">", "<=", ">=")
FUNCTIONS = ("f2i", "i2f", "i2s", "s2i", "f2s", "s2f", "DAY_OF_MONTH", "MONTH", "YEAR", "FORMAT_DATE")
UNARY = ("PREV", "NEXT", "ONCE", "EVENTUALLY", "HISTORICALLY", "ALWAYS")
AGGREGATIONS = ("CNT", "SUM", "AVG", "MIN", "MAX", "MED")


# --------------------------------------------------------------------------------------------------- terms


@dataclass(frozen=True, slots=True)
class Variable:
    """``u``."""

    name: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Constant:
    """``5``, ``12.5`` or ``"text"``; the Python type of the value is the type of the constant."""

    value: Value
    span: Span = span_field()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left + right``; the operator is one of ``+ - * / MOD``."""

    operator: str
    left: Term
    right: Term
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Negative:
    """``-(t)``."""

    term: Term
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Call:
    """``f2i(t)``; the function is one of `FUNCTIONS`."""

    function: str
    argument: Term
    span: Span = span_field()


Term = Union[Variable, Constant, Arithmetic, Negative, Call]


# ----------------------------------------------------------------------------------------------- intervals


class OfSeconds(int):
    """Ticks per second of a stream whose times are seconds with a fraction: so are bounds without a unit."""


def per_second_of(clock: Clock) -> int:
    """The ticks per second of a stream, as bounds take them."""
    return OfSeconds(clock.ticks_per_second) if clock.is_fraction else clock.ticks_per_second


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of an interval: ``5`` in the unit of the stream's time, ``5m`` as a length of time."""

    value: int
    unit: Unit | None = None
    open: bool = False

    def ticks(self, per_second: int) -> int:
        """The bound in ticks of a stream that has so many per second."""
        if self.unit is None:
            return self.value * (per_second if isinstance(per_second, OfSeconds) else 1)
        return self.value * int(SECONDS[UNITS[self.unit]]) * per_second


@dataclass(frozen=True, slots=True)
class Interval:
    """``[low,high]``; `high` is None for ``*``."""

    low: Bound = Bound(0)
    high: Bound | None = None
    span: Span = span_field()

    def ticks(self, per_second: int = 1) -> tuple[int, int | None]:
        """The interval as closed integers: smallest and largest difference of times, None for no largest."""
        low = self.low.ticks(per_second) + self.low.open
        return low, None if self.high is None else self.high.ticks(per_second) - self.high.open


# ------------------------------------------------------------------------------------------------ formulas


@dataclass(frozen=True, slots=True)
class Truth:
    """``TRUE`` or ``FALSE``."""

    value: bool
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Predicate:
    """``withdraw(u, a)``: an event of the time-point, or a name that LET has defined."""

    name: str
    arguments: tuple[Term, ...]
    span: Span = span_field()
    name_span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left < right``; the operator is one of `COMPARISONS`."""

    operator: str
    left: Term
    right: Term
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Substring:
    """``left SUBSTRING right``: the left text is a part of the right one."""

    left: Term
    right: Term
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Matches:
    """``term MATCHES r"pattern"``: some part of the text fits the regular expression."""

    term: Term
    pattern: str
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Not:
    """``NOT body``."""

    body: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class And:
    """``left AND right``."""

    left: Formula
    right: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Or:
    """``left OR right``."""

    left: Formula
    right: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Implies:
    """``left IMPLIES right``."""

    left: Formula
    right: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Equiv:
    """``left EQUIV right``."""

    left: Formula
    right: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Exists:
    """``EXISTS x, y. body``."""

    variables: tuple[str, ...]
    body: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Forall:
    """``FORALL x, y. body``."""

    variables: tuple[str, ...]
    body: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Temporal:
    """``ONCE[0,5] body``; the operator is one of `UNARY`."""

    operator: str
    interval: Interval
    body: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Since:
    """``left SINCE[0,5] right``."""

    interval: Interval
    left: Formula
    right: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Until:
    """``left UNTIL[0,5] right``."""

    interval: Interval
    left: Formula
    right: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Trigger:
    """``left TRIGGER[0,5] right``: at each time-point of the interval right holds, or left does later."""

    interval: Interval
    left: Formula
    right: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Release:
    """``left RELEASE[0,5] right``: at each time-point of the interval right holds, or left does before it."""

    interval: Interval
    left: Formula
    right: Formula
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class TemporalMatch:
    """``MATCHP[0,5] r``: r matches from a time-point in the interval to here. ``MATCHF[0,5] r``: from here to one."""

    operator: Literal["MATCHP", "MATCHF"]
    interval: Interval
    regex: Regex
    span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Aggregation:
    """``result <- SUM variable; g, h body``; the operator is one of `AGGREGATIONS`."""

    result: str
    operator: str
    variable: str
    groups: tuple[str, ...]
    body: Formula
    span: Span = span_field()
    result_span: Span = span_field()
    variable_span: Span = span_field()


@dataclass(frozen=True, slots=True)
class Let:
    """``LET name(x, y) = definition IN body``."""

    name: str
    parameters: tuple[str, ...]
    definition: Formula
    body: Formula
    span: Span = span_field()
    head_span: Span = span_field()


@dataclass(frozen=True, slots=True)
class LetPast(Let):
    """``LETPAST name(x, y) = definition IN body``: in the definition the name is itself, at earlier time-points."""


Binary = Union[And, Or, Implies, Equiv]
Timed = Union[Since, Until, Trigger, Release]  # two sides and an interval
Formula = Union[
    Truth,
    Predicate,
    Comparison,
    Substring,
    Matches,
    Not,
    And,
    Or,
    Implies,
    Equiv,
    Exists,
    Forall,
    Temporal,
    Since,
    Until,
    Trigger,
    Release,
    TemporalMatch,
    Aggregation,
    Let,
]


# ------------------------------------------------------------------------------------------------- helpers


def is_anonymous(name: str) -> bool:
    """Whether a predicate's variable of this name stands for anything."""
    return name.startswith("_")


def term_variables(term: Term) -> Iterator[str]:
    """The variables of a term, as they occur; chains of operators may be long, so without recursion."""
    todo = [term]
    while todo:
        match todo.pop():
            case Variable(name):
                yield name
            case Arithmetic(_, left, right):
                todo += (right, left)
            case Negative(inner) | Call(_, inner):
                todo.append(inner)


def children(formula: Formula) -> tuple[Formula, ...]:
    """The formulas directly below, from left to right (of a LET the definition, then the body)."""
    match formula:
        case And() | Or() | Implies() | Equiv() | Since() | Until() | Trigger() | Release():
            return (formula.left, formula.right)
        case TemporalMatch():
            return formulas(formula.regex)
        case Not() | Exists() | Forall() | Temporal() | Aggregation():
            return (formula.body,)
        case Let():
            return (formula.definition, formula.body)
    return ()


def descendants(formula: Formula) -> Iterator[Formula]:
    """A formula and all below it, from the outside to the inside."""
    todo = [formula]
    while todo:
        yield (found := todo.pop())
        todo += reversed(children(found))


def replaced(formula: Formula, part: Formula, by: Formula) -> Formula:
    """The formula with another one in the place of a part, which is found as the object that it is."""
    if formula is part:
        return by
    if isinstance(formula, TemporalMatch):
        return replace(formula, regex=mapped(formula.regex, lambda each: replaced(each, part, by)))
    below = {id(child) for child in children(formula)}
    held = ((each.name, getattr(formula, each.name)) for each in fields(formula))
    changed: dict[str, Any] = {name: replaced(each, part, by) for name, each in held if id(each) in below}
    return replace(formula, **changed)


def free_variables(formula: Formula) -> tuple[str, ...]:
    """The free variables in the order of their first occurrence in the text.

    The variables of an aggregation are its result and its groups; those of a LET are its body's.
    """
    match formula:
        case Predicate(_, arguments):
            names = [
                name
                for argument in arguments
                for name in term_variables(argument)
                if not (isinstance(argument, Variable) and is_anonymous(name))
            ]
        case Comparison(_, left, right) | Substring(left, right):
            names = [*term_variables(left), *term_variables(right)]
        case Matches(term, _):
            names = list(term_variables(term))
        case Exists(variables, body) | Forall(variables, body):
            names = [name for name in free_variables(body) if name not in variables]
        case Aggregation(result, _, _, groups, _):
            names = [result, *groups]
        case Let(_, _, _, body):
            names = list(free_variables(body))
        case _:
            names = [name for child in children(formula) for name in free_variables(child)]
    return tuple(dict.fromkeys(names))
