"""Tokens to conditions and expressions, by precedence climbing.

::

    condition = boolean combination (NOT before AND before OR, parentheses) of
                [name, ...]    expr cmp expr    expr [NOT] IN (expr, ...)    expr [NOT] BETWEEN a AND b
                expr IS [NOT] NULL
    expr      = unary - and +, then * / %, then + -, over numbers, 'strings', TRUE, FALSE,
                var.name, NEXT(var).name, PREV(var).name and bare words (which are strings)

Conditions and values are read by the same functions, since a parenthesis may hold either; what does not fit together
is refused where it is joined. A minus directly before a number belongs to the number. Conditions on result
rows (HAVING) are read by the same functions over other operands (`hamlet.language.parse_result`).
"""

from __future__ import annotations

import re
from dataclasses import replace

from hamlet.frontend.lexer import Kind, Token
from hamlet.frontend.units import unit_of
from hamlet.language.conditions import Part, is_condition, parts
from hamlet.language.cursor import Cursor
from hamlet.language.parse_duration import parse_duration
from hamlet.language.query import (
    And,
    Attribute,
    Between,
    Binary,
    Comparison,
    Condition,
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
from hamlet.language.tokens import COMMENT

_OR, _AND, _NOT, _COMPARISON, _SUM, _PRODUCT = range(1, 7)  # binding, loosest first
_SYMBOLS = {"|": _OR, "&": _AND, "+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}
_SYMBOLS |= dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _COMPARISON)
_WORDS = {"OR": _OR, "AND": _AND, "IN": _COMPARISON, "BETWEEN": _COMPARISON, "IS": _COMPARISON}
RESERVED = ("AND", "OR", "NOT", "IN", "BETWEEN", "IS", "NULL", "TRUE", "FALSE")
_SHARED = "attributes that all events share are written [driver, rider]"
_LARGEST = 2**63
_MOST_DIGITS = 4_000  # of an integer among results


def parse_condition(cursor: Cursor) -> Condition:
    """Read one whole condition: of WHERE, or over the operands that the cursor reads.

    Raises
    ------
    UnreadableError
        Where it ends too soon, goes on wrongly, or is a value; the message is recorded.
    """
    part = _operators(cursor, _OR)
    condition = _condition(cursor, part)
    cursor.check_depth(part, parts, part.span, "condition", _is_chain)
    return condition


def parse_value(cursor: Cursor) -> Expression:
    """Read one whole expression; raises UnreadableError with the message recorded."""
    part = _value(cursor, _operators(cursor, _SUM))
    whole: Part = part
    cursor.check_depth(whole, parts, part.span, "expression", _is_chain)
    return part


def _is_chain(part: Part) -> bool:
    return isinstance(part, Binary)


# --------------------------------------------------------------------------------------------- operators


def _operators(cursor: Cursor, least: int) -> Part:
    """An operand and all that follows it with operators that bind at least as tightly as `least`."""
    left = _prefix(cursor)
    while True:
        binding = _binding(cursor)
        if binding is None or binding < least:
            return left
        if binding in (_OR, _AND):
            left = _joined(cursor, left, binding)
        elif binding == _COMPARISON:
            left = _comparison(cursor, _value(cursor, left))
            if _binding(cursor) == _COMPARISON:
                hint = "write x BETWEEN 1 AND 5, or join two comparisons with AND"
                raise cursor.fail("a comparison cannot be compared again", cursor.peek().span, hint)
        else:
            operator = cursor.advance().value
            first, second = _value(cursor, left), _value(cursor, _operators(cursor, binding + 1))
            left = Binary(operator, first, second, span=left.span.to(second.span))


def _binding(cursor: Cursor) -> int | None:
    """How tightly the operator that comes next binds; None where no operator comes next."""
    token = cursor.peek()
    if token.kind is Kind.SYMBOL:
        return _SYMBOLS.get(token.value)
    if token.kind is not Kind.WORD:
        return None
    if cursor.at_word("NOT") and cursor.at_word("IN", "BETWEEN", offset=1):
        return _COMPARISON
    return _WORDS.get(token.value.upper())


def _joined(cursor: Cursor, left: Part, binding: int) -> Condition:
    """``a AND b AND c`` as one node."""
    word, symbol = ("AND", "&") if binding == _AND else ("OR", "|")
    operands = [_condition(cursor, left)]
    while cursor.take_operator(word, symbol):
        operands.append(_condition(cursor, _operators(cursor, binding + 1)))
    span = left.span.to(operands[-1].span)
    return And(tuple(operands), span=span) if binding == _AND else Or(tuple(operands), span=span)


def _comparison(cursor: Cursor, left: Expression) -> Condition:
    """What follows the left side of a comparison, IN, BETWEEN or IS."""
    token = cursor.peek()
    if token.kind is Kind.SYMBOL:
        operator = cursor.advance().value
        if operator in "=<>" and cursor.at("<", ">", "="):
            wrong = cursor.reports.text[token.span.start : cursor.peek().span.end]
            span = token.span.to(cursor.peek().span)
            raise cursor.fail(f"'{wrong}' is no comparison", span, "write =, <>, <, <=, > or >=")
        right = _value(cursor, _operators(cursor, _SUM))
        return Comparison(operator, left, right, span=left.span.to(right.span))
    negated = cursor.take_word("NOT") is not None
    if cursor.take_word("IN"):
        return _membership(cursor, left, negated)
    if cursor.take_word("BETWEEN"):
        low = _value(cursor, _operators(cursor, _SUM))
        if not cursor.take_word("AND"):
            raise cursor.expected(["AND"], "ranges are written x BETWEEN 1 AND 5", after=low.span)
        high = _value(cursor, _operators(cursor, _SUM))
        return Between(left, low, high, negated, span=left.span.to(high.span))
    cursor.advance()  # IS
    negated = cursor.take_word("NOT") is not None
    if not cursor.take_word("NULL"):
        hint = "IS is for NULL only; compare values with = and <>"
        raise cursor.expected(["NULL"] if negated else ["NULL", "NOT NULL"], hint)
    return NullTest(left, negated, span=cursor.since(left.span))


def _membership(cursor: Cursor, operand: Expression, negated: bool) -> Condition:
    if not cursor.take("("):
        raise cursor.expected(["'('"], "a list of values is written IN (1, 2, 3)")
    if cursor.at(")"):
        raise cursor.expected(["a value"], "IN needs at least one value, as in IN (1, 2, 3)")
    choices = [_value(cursor, _operators(cursor, _SUM))]
    while cursor.take(","):
        choices.append(_value(cursor, _operators(cursor, _SUM)))
    if not cursor.take(")"):
        raise cursor.expected(["')'", "','"], "a list of values is written IN (1, 2, 3)", after=choices[-1].span)
    return Membership(operand, tuple(choices), negated, span=cursor.since(operand.span))


# ---------------------------------------------------------------------------------------------- operands


def _prefix(cursor: Cursor) -> Part:
    token = cursor.peek()
    if cursor.take_word("NOT"):
        cursor.deeper(token.span, "condition")
        inner = _condition(cursor, _operators(cursor, _NOT))
        cursor.depth -= 1
        return Not(inner, span=token.span.to(inner.span))
    if cursor.take("-", "+"):
        if token.value == "-" and cursor.at_kind(Kind.NUMBER):
            return parse_number(cursor, token)
        cursor.deeper(token.span, "condition")
        operand = _value(cursor, _prefix(cursor))
        cursor.depth -= 1
        return Unary(token.value, operand, span=token.span.to(operand.span))
    if cursor.take("("):
        cursor.deeper(token.span, "condition")
        part = _operators(cursor, _OR)
        if not cursor.take(")"):
            clause = cursor.clause()
            hint = f"close ( before {clause[0]}" if clause else condition_hint(cursor)
            raise cursor.expected(["')'"], hint, after=part.span)
        cursor.depth -= 1
        return replace(part, span=cursor.since(token.span))
    return _operand(cursor)


def _operand(cursor: Cursor) -> Part:
    if cursor.operand is not None:
        return cursor.operand(cursor)
    token = cursor.peek()
    if token.kind is Kind.NUMBER:
        return parse_number(cursor)
    if token.kind is Kind.STRING:
        return Literal(cursor.advance().value, span=token.span)
    if cursor.at("["):
        return _equivalence(cursor)
    if cursor.at_kind(Kind.WORD, Kind.NAME):
        if cursor.at(".", offset=1):
            return _reference(cursor)
        if cursor.at_word("NEXT", "PREV") and cursor.at("(", offset=1):
            return _shifted(cursor)
        if cursor.at_word("TRUE", "FALSE"):
            return Literal(cursor.advance().value.upper() == "TRUE", span=token.span)
        if not (cursor.at_word(*RESERVED) or cursor.clause() or cursor.starts_statement()):
            return _bare_word(cursor)
    raise cursor.expected(["a value or a condition"], _operand_hint(cursor))


def parse_number(cursor: Cursor, minus: Token | None = None) -> Literal:
    """Read a number, behind its minus if one was read; raises UnreadableError where it fits no type."""
    unit = cursor.peek(1)
    if unit.kind is Kind.WORD and unit_of(unit.value) is not None and not cursor.at(".", "(", offset=2):
        length = parse_duration(cursor, "<")
        sign, start = (1, length.span) if minus is None else (-1, minus.span)
        span = start.to(length.span)
        return Literal(replace(length, amount=sign * length.amount, span=span), span=span)
    token = cursor.advance()
    span = token.span if minus is None else minus.span.to(token.span)
    sign = 1 if minus is None else -1
    if re.fullmatch("[0-9]+", token.value):
        digits = token.value.lstrip("0") or "0"
        # The length is looked at first: Python refuses to convert more than 4,300 digits.
        if cursor.operand is not None and len(digits) <= _MOST_DIGITS:
            return Literal(sign * int(digits), span=span)  # of a result, which may be an integer of any size
        if len(digits) > 19 or not -_LARGEST <= sign * int(digits) < _LARGEST:
            hint = "INT holds up to 9223372036854775807; a DOUBLE is written with a point, as in 1.0e20"
            raise cursor.fail("the number does not fit an INT of 64 bits", span, hint)
        return Literal(sign * int(digits), span=span)
    value = float(token.value)
    if value == float("inf"):
        raise cursor.fail("the number does not fit a DOUBLE", span, "the largest DOUBLE is about 1.8e308")
    return Literal(sign * value, span=span)


def _equivalence(cursor: Cursor) -> Equivalence:
    start = cursor.advance().span
    names: list[str] = []
    while True:
        token = cursor.peek()
        if not cursor.at_kind(Kind.WORD, Kind.NAME):
            raise cursor.expected(["an attribute"], _SHARED)
        if cursor.at(".", offset=1):
            span = token.span.to(cursor.peek(2).span)
            hint = f"write [{cursor.peek(2).value}]: all events of a trend agree on it, whatever their variable"
            raise cursor.fail("an equivalence names attributes without a variable", span, hint)
        names.append(cursor.advance().value)
        if cursor.take("]"):
            return Equivalence(tuple(names), span=cursor.since(start))
        if not cursor.take(","):
            raise cursor.expected(["']'", "','"], _SHARED, after=token.span)


def _reference(cursor: Cursor) -> Reference:
    start = cursor.peek().span
    variable = cursor.advance().value
    cursor.advance()  # the point
    if not cursor.at_kind(Kind.WORD, Kind.NAME):
        raise cursor.expected(["an attribute"], _digit_hint(cursor, variable), after=cursor.since(start))
    return Reference(variable, cursor.advance().value, span=cursor.since(start))


def _shifted(cursor: Cursor) -> Reference:
    word = cursor.advance()
    cursor.advance()  # the parenthesis
    function = word.value.upper()
    if not cursor.at_kind(Kind.WORD, Kind.NAME):
        raise cursor.expected(["a variable"], f"write {function}(T).speed", after=cursor.since(word.span))
    variable = cursor.advance().value
    if cursor.at("."):
        hint = f"write {function}({variable}).{cursor.peek(1).value}"
        raise cursor.expected(["')'"], hint, after=cursor.since(word.span))
    if not cursor.take(")"):
        raise cursor.expected(["')'"], f"write {function}({variable}).speed", after=cursor.since(word.span))
    if not (cursor.at(".") and cursor.at_kind(Kind.WORD, Kind.NAME, offset=1)):
        hint = f"{function}({variable}) is an event; name one of its attributes, as in {function}({variable}).speed"
        raise cursor.expected(["'.' and an attribute"], hint, after=cursor.since(word.span))
    cursor.advance()
    return Reference(variable, cursor.advance().value, Shift[function], span=cursor.since(word.span))


def _bare_word(cursor: Cursor) -> Literal:
    token = cursor.advance()
    if cursor.at("("):
        function = token.value.upper()
        if function in ("COUNT", "SUM", "AVG", "MIN", "MAX", "LOG2"):
            hint = "WHERE looks at single events; a condition on aggregates is written HAVING, behind GROUP-BY"
            raise cursor.fail(f"{function} cannot stand in WHERE", token.span, hint)
        hint = "conditions know + - * / %, NEXT(T).speed and PREV(T).speed"
        raise cursor.fail(f"there is no function '{token.value}'", token.span, hint)
    if cursor.at("["):
        hint = f"write PREV({token.value}).speed for the event before and NEXT({token.value}).speed for the one after"
        raise cursor.fail("events of a variable are not numbered", cursor.peek().span, hint)
    if not token.value:
        raise cursor.fail("a name cannot be empty", token.span, "an empty string is written ''")
    return Literal(token.value, bare=True, span=token.span)


# ----------------------------------------------------------------------------------- what fits, and hints


def _condition(cursor: Cursor, part: Part) -> Condition:
    if is_condition(part):
        return part
    follows = cursor.at_kind(Kind.WORD, Kind.NUMBER, Kind.STRING, Kind.NAME) or cursor.at("[")
    if follows and cursor.clause() is None and not cursor.ends_statement() and _binding(cursor) is None:
        raise cursor.expected(["a comparison such as = or <"], condition_hint(cursor), after=part.span)
    words = " ".join(cursor.reports.text[part.span.start : part.span.end].split())
    hint = "compare it with something, as in " + ("T.speed < 10" if cursor.operand is None else "COUNT(*) > 3")
    if isinstance(part, (Reference, Attribute)):
        hint = f"write {words} = TRUE"
    raise cursor.fail(f"'{_shorten(words)}' is a value where a condition is expected", part.span, hint)


def _value(cursor: Cursor, part: Part) -> Expression:
    if not is_condition(part):
        return part  # type: ignore[return-value]  # a TypeGuard says nothing of the other case
    words = _shorten(" ".join(cursor.reports.text[part.span.start : part.span.end].split()))
    message = f"'{words}' is a condition where a value is expected"
    raise cursor.fail(message, part.span, "join conditions with AND, OR and NOT")


def _shorten(words: str) -> str:
    return words if len(words) <= 40 else words[:37] + "..."


def _digit_hint(cursor: Cursor, variable: str) -> str | None:
    if cursor.at_kind(Kind.NUMBER):
        return f'an attribute that starts with a digit is written in double quotes: {variable}."2nd_stop"'
    return None


def _operand_hint(cursor: Cursor) -> str | None:
    if cursor.at_word("NULL"):
        return "write IS NULL or IS NOT NULL"
    if cursor.at("*") or cursor.at("."):
        return "an attribute is written with its variable, as in T.speed"
    if cursor.at(","):
        return "join conditions with AND or OR"
    if cursor.at("/") or cursor.at("-"):
        return COMMENT
    if cursor.clause() is not None and cursor.at_word("WHERE", offset=-1):
        return "leave WHERE out where there is nothing to check"
    if cursor.at(")") or cursor.at_word("AND", "OR") or cursor.clause() or cursor.ends_statement():
        return "both sides need something, as in T.speed < 10 AND T.speed > 5"
    return None


def condition_hint(cursor: Cursor) -> str | None:
    """What the user probably meant where a condition goes on wrongly at the cursor."""
    after_word = cursor.at_kind(Kind.WORD, offset=-1) and not cursor.at(".", offset=-2)
    if cursor.at_word("LIKE", "ILIKE", "REGEXP", "RLIKE", "SIMILAR"):
        return "there is no pattern matching on strings; list the values, as in T.district IN ('Soho', 'Chelsea')"
    apart = cursor.at(".", "(", offset=1)  # the next word begins a condition of its own
    if cursor.at_kind(Kind.WORD, Kind.NAME) and cursor.at_kind(Kind.NUMBER, offset=-1) and not apart:
        return "a number in WHERE has no unit; give it in the unit of the attribute"
    if cursor.at_kind(Kind.WORD) and after_word and not apart:
        words = f"{cursor.peek(-1).value} {cursor.peek().value}"
        return f"text of several words is written in single quotes: '{words}'"
    if cursor.at_kind(Kind.NUMBER) and cursor.peek().value.startswith("."):
        return 'an attribute that starts with a digit is written in double quotes: T."2nd_stop"'
    if cursor.at(",") or cursor.at("[") or cursor.at_kind(Kind.WORD, Kind.NAME, Kind.NUMBER, Kind.STRING):
        return "join conditions with AND or OR"
    if cursor.at(")"):
        return "remove ')' or open it with '('"
    return None
