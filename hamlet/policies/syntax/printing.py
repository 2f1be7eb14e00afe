"""A formula as text that parses back to the same formula, with no more parentheses than it needs."""

from __future__ import annotations

import re
from decimal import Decimal

from hamlet.output.digits import decimal_digits
from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.regex import Alternation, Concatenation, Regex, Star, Step, Test

_LOOSEST, _SINCE, _UNARY, _QUANTIFIER, _EQUIV, _IMPLIES, _OR, _AND, _NOT, _ATOM = range(10)
_SUM, _PRODUCT, _FACTOR = range(3)


def print_formula(formula: mfotl.Formula) -> str:
    """The formula on one line."""
    return _formula(formula, _LOOSEST, True)


def printed_order(formula: mfotl.Formula) -> tuple[str, ...]:
    """The free variables in the order in which MonPoly prints their values.

    That is the order of the text, but for SINCE, UNTIL, TRIGGER and RELEASE, whose right side comes first, for ``>``
    and ``>=``, which are ``<`` and ``<=`` the other way round, and for predicates, whose arguments count where they are
    plain variables.

    Source: MonPoly's `MFOTL.free_vars` and `Predicate.pvars`.
    """
    match formula:
        case mfotl.Predicate(_, arguments):
            plain = [
                each.name
                for each in arguments
                if isinstance(each, mfotl.Variable) and not mfotl.is_anonymous(each.name)
            ]
            names = [*plain, *mfotl.free_variables(formula)]
        case mfotl.Comparison(operator, left, right):
            first, second = (right, left) if operator in (">", ">=") else (left, right)
            names = [*mfotl.term_variables(first), *mfotl.term_variables(second)]
        case mfotl.Exists(variables, body) | mfotl.Forall(variables, body):
            names = [name for name in printed_order(body) if name not in variables]
        case (
            mfotl.Since(_, left, right)
            | mfotl.Until(_, left, right)
            | mfotl.Trigger(_, left, right)
            | mfotl.Release(_, left, right)
        ):
            names = [*printed_order(right), *printed_order(left)]
        case mfotl.Let(_, _, _, body):
            names = list(printed_order(body))
        case mfotl.Aggregation() | mfotl.Substring() | mfotl.Matches():
            names = list(mfotl.free_variables(formula))
        case _:
            names = [name for child in mfotl.children(formula) for name in printed_order(child)]
    return tuple(dict.fromkeys(names))


_TO_SHIELD = re.compile(r'["\\]')
_SHIELD = r"\\\g<0>"


def print_value(value: mfotl.Value) -> str:
    """A constant as it is written in a formula."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return decimal_digits(value)
    if isinstance(value, float):
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else text + ".0"
    return f'"{_TO_SHIELD.sub(_SHIELD, value)}"'


def print_interval(interval: mfotl.Interval) -> str:
    """``[0,7d]``; nothing for the interval that holds all differences."""
    if interval == mfotl.Interval():
        return ""
    left = "(" if interval.low.open else "["
    if interval.high is None:
        return f"{left}{_bound(interval.low)},*)"
    return f"{left}{_bound(interval.low)},{_bound(interval.high)}{')' if interval.high.open else ']'}"


def _bound(bound: mfotl.Bound) -> str:
    return f"{decimal_digits(bound.value)}{bound.unit or ''}"


def _formula(formula: mfotl.Formula, level: int, last: bool) -> str:
    """The text where an operator of this level or tighter may stand; `last`: nothing follows behind it."""
    text, own = _shape(formula, last)
    # An operator in front takes all that follows, so as a left operand it needs parentheses although it binds tightly.
    greedy = isinstance(formula, mfotl.Let | mfotl.Aggregation)
    if own < level or (greedy and not last):
        if (
            isinstance(formula, (mfotl.Exists, mfotl.Forall, mfotl.Temporal, mfotl.Let, mfotl.Aggregation))
            and last
            and not greedy
        ):
            return text
        text = f"({_shape(formula, True)[0]})"
    return text


def _shape(formula: mfotl.Formula, last: bool) -> tuple[str, int]:
    """The text without parentheses, and how tightly it binds."""
    match formula:
        case mfotl.Truth(value):
            return ("TRUE" if value else "FALSE"), _ATOM
        case mfotl.Predicate(name, arguments):
            return f"{name}({', '.join(_term(each, _SUM) for each in arguments)})", _ATOM
        case mfotl.Comparison(operator, left, right):
            return f"{_term(left, _SUM)} {operator} {_term(right, _SUM)}", _ATOM
        case mfotl.Substring(left, right):
            return f"{_term(left, _SUM)} SUBSTRING {_term(right, _SUM)}", _ATOM
        case mfotl.Matches(term, pattern):
            quote = "'" if '"' in pattern else '"'
            return f"{_term(term, _SUM)} MATCHES r{quote}{pattern}{quote}", _ATOM
        case mfotl.Not(body):
            return f"NOT {_operand(body, _NOT, last)}", _NOT
        case mfotl.And(left, right):
            return f"{_operand(left, _AND, False)} AND {_operand(right, _NOT, last)}", _AND
        case mfotl.Or(left, right):
            return f"{_operand(left, _OR, False)} OR {_operand(right, _AND, last)}", _OR
        case mfotl.Implies(left, right):
            return f"{_operand(left, _OR, False)} IMPLIES {_operand(right, _IMPLIES, last)}", _IMPLIES
        case mfotl.Equiv(left, right):
            return f"{_operand(left, _EQUIV, False)} EQUIV {_operand(right, _IMPLIES, last)}", _EQUIV
    return _scoped(formula, last)


def _scoped(formula: mfotl.Formula, last: bool) -> tuple[str, int]:
    match formula:
        case mfotl.Exists(names, body):
            return f"EXISTS {', '.join(names)}. {_formula(body, _QUANTIFIER, last)}", _QUANTIFIER
        case mfotl.Forall(names, body):
            return f"FORALL {', '.join(names)}. {_formula(body, _QUANTIFIER, last)}", _QUANTIFIER
        case mfotl.Temporal(operator, interval, body):
            return f"{operator}{print_interval(interval)} {_formula(body, _UNARY, last)}", _UNARY
        case mfotl.Since(interval, left, right) | mfotl.Until(interval, left, right):
            return _timed(formula, interval, left, right, last), _SINCE
        case mfotl.Trigger(interval, left, right) | mfotl.Release(interval, left, right):
            return _timed(formula, interval, left, right, last), _SINCE
        case mfotl.TemporalMatch(operator, interval, regex):
            return f"{operator}{print_interval(interval)} {_regex(regex)}", _ATOM
        case mfotl.Aggregation(result, operator, variable, groups, body):
            by = f"; {', '.join(groups)}" if groups else ""
            return f"{result} <- {operator} {variable}{by} ({_formula(body, _LOOSEST, True)})", _LOOSEST
        case mfotl.Let(name, parameters, definition, body):
            meaning = _formula(definition, _LOOSEST, True)
            word = "LETPAST" if isinstance(formula, mfotl.LetPast) else "LET"
            return f"{word} {name}({', '.join(parameters)}) = {meaning} IN {_formula(body, _LOOSEST, last)}", _LOOSEST
    raise TypeError(f"a {type(formula).__name__} is no formula")


def _timed(
    formula: mfotl.Formula, interval: mfotl.Interval, left: mfotl.Formula, right: mfotl.Formula, last: bool
) -> str:
    word = f"{type(formula).__name__.upper()}{print_interval(interval)}"
    return f"{_formula(left, _UNARY, False)} {word} {_formula(right, _SINCE, last)}"


def _regex(regex: Regex) -> str:
    """An expression that is not part of another; both operators group to the right and bind alike."""
    match regex:
        case Concatenation(left, right):
            rest = _regex(right) if isinstance(right, Concatenation) else _item(right)
            return f"{_item(left)} {rest}"
        case Alternation(left, right):
            rest = _regex(right) if isinstance(right, Alternation) else _item(right)
            return f"{_item(left)} + {rest}"
    return _item(regex)


def _item(regex: Regex) -> str:
    match regex:
        case Step(formula):
            return _letter(formula)
        case Test(formula):
            return f"{_letter(formula)}?"
        case Star(body):
            return f"{_item(body)}*"
        case Concatenation() | Alternation():
            return f"({_regex(regex)})"
    return "."


def _letter(formula: mfotl.Formula) -> str:
    """A formula in an expression: all but predicates and truth values in parentheses."""
    text = print_formula(formula)
    return text if isinstance(formula, mfotl.Predicate | mfotl.Truth) else f"({text})"


def _operand(formula: mfotl.Formula, level: int, last: bool) -> str:
    """An operand of NOT, AND, OR, IMPLIES or EQUIV; what reaches to the right stands bare where nothing follows."""
    text, own = _shape(formula, last)
    if own < level and not (last and isinstance(formula, mfotl.Exists | mfotl.Forall | mfotl.Temporal)):
        return f"({_shape(formula, True)[0]})"
    return text


def _term(term: mfotl.Term, level: int) -> str:
    match term:
        case mfotl.Variable(name):
            return name
        case mfotl.Constant(value):
            return print_value(value)
        case mfotl.Negative(inner):
            return f"-({_term(inner, _SUM)})"
        case mfotl.Call(function, argument):
            return f"{function}({_term(argument, _SUM)})"
        case mfotl.Arithmetic("MOD", left, right):
            return f"({_term(left, _FACTOR)} MOD {_term(right, _FACTOR)})"
        case mfotl.Arithmetic(operator, left, right):
            own = _SUM if operator in "+-" else _PRODUCT
            text = f"{_term(left, own)} {operator} {_term(right, own + 1)}"
            return f"({text})" if own < level else text
    raise TypeError(f"a {type(term).__name__} is no term")
