"""A formula as text that parses back to the same formula, with no more parentheses than it needs."""

from __future__ import annotations

from decimal import Decimal

from hamlet.output.digits import decimal_digits
from hamlet.policies.syntax.formula import (
    Aggregation,
    And,
    Arithmetic,
    Bound,
    Call,
    Comparison,
    Constant,
    Equiv,
    Exists,
    Forall,
    Formula,
    Implies,
    Interval,
    Let,
    Matches,
    Negative,
    Not,
    Or,
    Predicate,
    Since,
    Substring,
    Temporal,
    Term,
    Truth,
    Until,
    Value,
    Variable,
)

_LOOSEST, _SINCE, _UNARY, _QUANTIFIER, _EQUIV, _IMPLIES, _OR, _AND, _NOT, _ATOM = range(10)
_SUM, _PRODUCT, _FACTOR = range(3)


def print_formula(formula: Formula) -> str:
    """The formula on one line."""
    return _formula(formula, _LOOSEST, True)


def print_value(value: Value) -> str:
    """A constant as it is written in a formula."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return decimal_digits(value)
    if isinstance(value, float):
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else text + ".0"
    return f"'{value}'" if '"' in value else f'"{value}"'


def print_interval(interval: Interval) -> str:
    """``[0,7d]``; nothing for the interval that holds all differences."""
    if interval == Interval():
        return ""
    left = "(" if interval.low.open else "["
    if interval.high is None:
        return f"{left}{_bound(interval.low)},*)"
    return f"{left}{_bound(interval.low)},{_bound(interval.high)}{')' if interval.high.open else ']'}"


def _bound(bound: Bound) -> str:
    return f"{decimal_digits(bound.value)}{bound.unit or ''}"


def _formula(formula: Formula, level: int, last: bool) -> str:
    """The text where an operator of this level or tighter may stand; `last`: nothing follows behind it."""
    text, own = _shape(formula, last)
    # An operator in front takes all that follows, so as a left operand it needs parentheses although it binds tightly.
    greedy = isinstance(formula, Let | Aggregation)
    if own < level or (greedy and not last):
        if isinstance(formula, (Exists, Forall, Temporal, Let, Aggregation)) and last and not greedy:
            return text
        text = f"({_shape(formula, True)[0]})"
    return text


def _shape(formula: Formula, last: bool) -> tuple[str, int]:
    """The text without parentheses, and how tightly it binds."""
    match formula:
        case Truth(value):
            return ("TRUE" if value else "FALSE"), _ATOM
        case Predicate(name, arguments):
            return f"{name}({', '.join(_term(each, _SUM) for each in arguments)})", _ATOM
        case Comparison(operator, left, right):
            return f"{_term(left, _SUM)} {operator} {_term(right, _SUM)}", _ATOM
        case Substring(left, right):
            return f"{_term(left, _SUM)} SUBSTRING {_term(right, _SUM)}", _ATOM
        case Matches(term, pattern):
            quote = "'" if '"' in pattern else '"'
            return f"{_term(term, _SUM)} MATCHES r{quote}{pattern}{quote}", _ATOM
        case Not(body):
            return f"NOT {_operand(body, _NOT, last)}", _NOT
        case And(left, right):
            return f"{_operand(left, _AND, False)} AND {_operand(right, _NOT, last)}", _AND
        case Or(left, right):
            return f"{_operand(left, _OR, False)} OR {_operand(right, _AND, last)}", _OR
        case Implies(left, right):
            return f"{_operand(left, _OR, False)} IMPLIES {_operand(right, _IMPLIES, last)}", _IMPLIES
        case Equiv(left, right):
            return f"{_operand(left, _EQUIV, False)} EQUIV {_operand(right, _IMPLIES, last)}", _EQUIV
    return _scoped(formula, last)


def _scoped(formula: Formula, last: bool) -> tuple[str, int]:
    match formula:
        case Exists(names, body):
            return f"EXISTS {', '.join(names)}. {_formula(body, _QUANTIFIER, last)}", _QUANTIFIER
        case Forall(names, body):
            return f"FORALL {', '.join(names)}. {_formula(body, _QUANTIFIER, last)}", _QUANTIFIER
        case Temporal(operator, interval, body):
            return f"{operator}{print_interval(interval)} {_formula(body, _UNARY, last)}", _UNARY
        case Since(interval, left, right):
            return (
                f"{_formula(left, _UNARY, False)} SINCE{print_interval(interval)} {_formula(right, _SINCE, last)}",
                _SINCE,
            )
        case Until(interval, left, right):
            return (
                f"{_formula(left, _UNARY, False)} UNTIL{print_interval(interval)} {_formula(right, _SINCE, last)}",
                _SINCE,
            )
        case Aggregation(result, operator, variable, groups, body):
            by = f"; {', '.join(groups)}" if groups else ""
            return f"{result} <- {operator} {variable}{by} ({_formula(body, _LOOSEST, True)})", _LOOSEST
        case Let(name, parameters, definition, body):
            meaning = _formula(definition, _LOOSEST, True)
            return f"LET {name}({', '.join(parameters)}) = {meaning} IN {_formula(body, _LOOSEST, last)}", _LOOSEST
    raise TypeError(f"a {type(formula).__name__} is no formula")


def _operand(formula: Formula, level: int, last: bool) -> str:
    """An operand of NOT, AND, OR, IMPLIES or EQUIV; what reaches to the right stands bare where nothing follows."""
    text, own = _shape(formula, last)
    if own < level and not (last and isinstance(formula, Exists | Forall | Temporal)):
        return f"({_shape(formula, True)[0]})"
    return text


def _term(term: Term, level: int) -> str:
    match term:
        case Variable(name):
            return name
        case Constant(value):
            return print_value(value)
        case Negative(inner):
            return f"-({_term(inner, _SUM)})"
        case Call(function, argument):
            return f"{function}({_term(argument, _SUM)})"
        case Arithmetic("MOD", left, right):
            return f"({_term(left, _FACTOR)} MOD {_term(right, _FACTOR)})"
        case Arithmetic(operator, left, right):
            own = _SUM if operator in "+-" else _PRODUCT
            text = f"{_term(left, own)} {operator} {_term(right, own + 1)}"
            return f"({text})" if own < level else text
    raise TypeError(f"a {type(term).__name__} is no term")
