"""Syntax trees to text: the inverse of the parser, ``parse(to_text(tree)) == tree``.

The text is canonical: trees that are equal print alike, with as few parentheses as the grammar allows and one
spelling for everything. Two guards are one where the texts of their patterns are equal.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Union

from hamlet.language.query import (
    Aggregate,
    Alternation,
    And,
    Atom,
    Attribute,
    Between,
    Binary,
    Comparison,
    Condition,
    Conjunction,
    DeclaredAttribute,
    Duration,
    Equivalence,
    EventDeclaration,
    Expression,
    Group,
    Literal,
    Log2,
    Membership,
    Negation,
    Not,
    NullTest,
    Or,
    Pattern,
    Query,
    Reference,
    Repetition,
    ReturnItem,
    Semantics,
    Sequence,
    Shift,
    Taken,
    Top,
    Unary,
    WorkloadText,
)

Clause = Union[ReturnItem, Top, Duration, DeclaredAttribute, EventDeclaration]
Printable = Union[WorkloadText, Query, Pattern, Condition, Expression, Clause]

# Words that a name is quoted for where the parser might take it for a keyword.
_KEYWORDS = frozenset({"EVENT", "RETURN", "PATTERN", "WHERE", "GROUP", "GROUPBY", "WITHIN", "SLIDE", "AS", "SEQ"})
_KEYWORDS |= {"OR", "AND", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE"}
_KEYWORDS |= {"SEMANTICS", "HAVING", "TOP", "SPAN", "OFFSET", "SESSION", "DISTINCT", "EVENTS", "BY", "ASC", "DESC"}
# Binding, loosest first: patterns and conditions count from 1 on their own.
_ANY, _OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT, _PREFIX = 0, 1, 2, 3, 4, 5, 6, 7
_POSTFIX = 4


def to_text(node: Printable) -> str:
    """The text of a tree, or of a part of one.

    Parameters
    ----------
    node : WorkloadText, Query, Pattern, Condition, Expression, or a part of a query
        Any node of `hamlet.language.query`.

    Returns
    -------
    str
        Text that the parser reads back as an equal tree. (A string with a line break in front of a word such as
        WITHIN is the one exception: the parser takes it for a quote that was never closed.)

    Raises
    ------
    ValueError
        For a duration that no decimal number equals; the parser makes none.

    Examples
    --------
    >>> from hamlet.language.parser import parse
    >>> print(to_text(parse("return count(*) pattern seq(A,(B)+) within 1.50 minutes")))
    q1: RETURN COUNT(*)
        PATTERN SEQ(A, B+)
        WITHIN 1.5 min;
    """
    match node:
        case WorkloadText(declarations=declarations, queries=queries):
            return "\n".join([_clause(each) for each in declarations] + [_query(each) for each in queries])
        case Query():
            return _query(node)
        case ReturnItem() | Top() | Duration() | DeclaredAttribute() | EventDeclaration():
            return _clause(node)
        case Atom() | Sequence() | Alternation() | Conjunction() | Repetition() | Negation():
            return _pattern(node, _ANY)
        case Literal() | Reference() | Unary() | Binary() | Attribute() | Taken() | Aggregate() | Log2():
            return _expression(node, _ANY)
    return _condition(node, _ANY)


def name_text(name: str, *, free: bool = False) -> str:
    """A name as it is typed: in double quotes where it has other characters, or might be read as a keyword.

    Parameters
    ----------
    name : str
        Any text that is not empty.
    free : bool
        Whether it stands where every word is a name: after a point, in brackets, in declarations.
    """
    plain = re.fullmatch(r"[^\W\d]\w*", name) is not None
    if plain and (free or name.upper() not in _KEYWORDS):
        return name
    return '"' + name.replace('"', '""') + '"'


# ------------------------------------------------------------------------------------------ queries and clauses


def _query(query: Query) -> str:
    lines = [f"{name_text(query.name)}: RETURN {', '.join(map(_clause, query.items))}"]
    lines.append(f"    PATTERN {_pattern(query.pattern, _ANY)}")
    if query.semantics is not Semantics.ANY:
        lines.append(f"    SEMANTICS {query.semantics.value}")
    if query.condition is not None:
        lines.append(f"    WHERE {_condition(query.condition, _ANY)}")
    if query.group_by:
        lines.append(f"    GROUP-BY {', '.join(map(_operand, query.group_by))}")
    if query.having is not None:
        lines.append(f"    HAVING {_condition(query.having, _ANY)}")
    if query.top is not None:
        lines.append(f"    {_clause(query.top)}")
    longest = f"SPAN {_clause(query.longest)} " if query.longest is not None else ""
    slide = f" SLIDE {_clause(query.slide)}" if query.slide is not None else ""
    offset = f" OFFSET {_clause(query.offset)}" if query.offset is not None else ""
    within = "ALL" if query.within is None else "SESSION " * query.session + _clause(query.within)
    lines.append(f"    {longest}WITHIN {within}{slide}{offset};")
    return "\n".join(lines)


def _clause(node: Clause) -> str:
    match node:
        case ReturnItem(value=value, log2=log2, alias=alias):
            text = f"LOG2({_expression(value, _ANY)})" if log2 else _expression(value, _ANY)
            return text if alias is None else f"{text} AS {name_text(alias)}"
        case Top(count=count, by=by, ascending=ascending):
            return f"TOP {count} BY {_expression(by, _ANY)}{' ASC' * ascending}"
        case Duration(amount=amount, unit=unit):
            return f"{_decimal(amount)} {unit}"
        case DeclaredAttribute(name=name, type=kind):
            return f"{name_text(name, free=True)} {kind.value}"
        case EventDeclaration(name=name, attributes=attributes):
            return f"EVENT {name_text(name, free=True)}({', '.join(map(_clause, attributes))});"
    raise TypeError(f"no part of a query: {node!r}")


def _operand(node: Group | Aggregate) -> str:
    """What results are made of, by itself."""
    match node:
        case Attribute(name=name, variable=None):
            return name_text(name)
        case Attribute(name=name, variable=str(variable)):
            return f"{name_text(variable)}.{name_text(name, free=True)}"
        case Aggregate(function=function, variable=None):
            return f"{function}(*)"
        case Taken(function=function, variable=variable, attribute=None):
            return f"{function}({name_text(variable)})"
        case Aggregate(function=function, variable=str(variable), attribute=None, events=events):
            return f"{function}({'EVENTS ' * events}{name_text(variable)})"
        case Aggregate(function="COUNT_DISTINCT", variable=str(variable), attribute=str(attribute)):
            return f"COUNT(DISTINCT {name_text(variable)}.{name_text(attribute, free=True)})"
        case Taken(function=function, variable=str(variable), attribute=str(attribute)):
            return f"{function}({name_text(variable)}.{name_text(attribute, free=True)})"
        case Aggregate(function=function, variable=str(variable), attribute=str(attribute), events=events):
            return f"{function}({'EVENTS ' * events}{name_text(variable)}.{name_text(attribute, free=True)})"
    raise TypeError(f"no part of a result: {node!r}")


def _decimal(amount: Fraction) -> str:
    """A number without an exponent, exactly."""
    places = 0
    while (amount * 10**places).denominator != 1:
        places += 1
        if places > 200:
            raise ValueError(f"a duration of {amount} cannot be written as a decimal number")
    digits = str(abs(amount.numerator) * 10**places // amount.denominator).rjust(places + 1, "0")
    sign = "-" if amount < 0 else ""
    return sign + (f"{digits[:-places]}.{digits[-places:]}" if places else digits)


# ----------------------------------------------------------------------------------------------------- patterns


def _pattern(pattern: Pattern, binding: int) -> str:
    """A pattern, in parentheses where it binds more loosely than its place asks for."""
    match pattern:
        case Atom(type=event_type, variable=variable):
            return name_text(event_type) if variable == event_type else f"{name_text(event_type)} {name_text(variable)}"
        case Sequence(parts=parts):
            return f"SEQ({', '.join([_pattern(part, _ANY) for part in parts])})"
        case Alternation(branches=branches):
            text, own = " OR ".join([_pattern(branch, _AND) for branch in branches]), _OR
        case Conjunction(operands=operands):
            text, own = " AND ".join([_pattern(operand, _NOT) for operand in operands]), _AND
        case Negation(body=body):
            text, own = f"NOT {_pattern(body, _NOT)}", _NOT
        case Repetition(body=body, low=low, high=high):
            text, own = _pattern(body, _POSTFIX) + _bounds(low, high), _POSTFIX
    return f"({text})" if own < binding else text


def _bounds(low: int, high: int | None) -> str:
    short = {(1, None): "+", (0, None): "*", (0, 1): "?"}.get((low, high))
    if short is not None:
        return short
    if high is None:
        return f"{{{low},}}"
    return f"{{{low}}}" if low == high else f"{{{low},{high}}}"


# --------------------------------------------------------------------------------- conditions and expressions


def _condition(condition: Condition, binding: int) -> str:
    match condition:
        case Equivalence(attributes=attributes):
            return f"[{', '.join([name_text(name, free=True) for name in attributes])}]"
        case And(operands=operands):
            text, own = " AND ".join([_condition(operand, _NOT) for operand in operands]), _AND
        case Or(operands=operands):
            text, own = " OR ".join([_condition(operand, _AND) for operand in operands]), _OR
        case Not(operand=operand):
            text, own = f"NOT {_condition(operand, _NOT)}", _NOT
        case Comparison(operator=operator, left=left, right=right):
            text, own = f"{_expression(left, _SUM)} {operator} {_expression(right, _SUM)}", _COMPARISON
        case Membership(operand=value, choices=choices, negated=negated):
            listed = ", ".join([_expression(choice, _SUM) for choice in choices])
            text, own = f"{_expression(value, _SUM)} {'NOT ' * negated}IN ({listed})", _COMPARISON
        case Between(operand=value, low=low, high=high, negated=negated):
            ends = f"{_expression(low, _SUM)} AND {_expression(high, _SUM)}"
            text, own = f"{_expression(value, _SUM)} {'NOT ' * negated}BETWEEN {ends}", _COMPARISON
        case NullTest(operand=value, negated=negated):
            text, own = f"{_expression(value, _SUM)} IS {'NOT ' * negated}NULL", _COMPARISON
    return f"({text})" if own < binding else text


def _expression(expression: Expression, binding: int) -> str:
    match expression:
        case Literal():
            return _literal(expression)
        case Attribute() | Taken() | Aggregate():
            return _operand(expression)
        case Log2(operand=operand):
            return f"LOG2({_expression(operand, _ANY)})"
        case Reference(variable=variable, attribute=attribute, shift=shift):
            event = name_text(variable) if shift is Shift.NONE else f"{shift.value}({name_text(variable)})"
            return f"{event}.{name_text(attribute, free=True)}"
        case Unary(operator=operator, operand=operand):
            # Parentheses keep -(5) apart from the number -5, and two signs from the start of a comment.
            inner = _expression(operand, _PREFIX)
            signed = isinstance(operand, Unary) or inner[0] in "0123456789-"
            return f"{operator}({inner})" if signed else operator + inner
        case Binary(operator=operator, left=left, right=right):
            own = _SUM if operator in "+-" else _PRODUCT
            text = f"{_expression(left, own)} {operator} {_expression(right, own + 1)}"
            return f"({text})" if own < binding else text


def _literal(literal: Literal) -> str:
    value = literal.value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        if literal.bare and value and name_text(value) == value:
            return value
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, Duration):
        return _clause(value)
    return repr(value)
