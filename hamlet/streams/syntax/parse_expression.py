"""Expressions, types and pacing of a specification, by precedence climbing.

::

    expression = term { operator term }                        weakest first: -> (to the right)  ||  &&  |  ^  &
                                                = !=   < <= > >=   << >>   + -   * / %   ** (to the right)
    term       = ("!" | "-" | "+" | "~") term | operand { "." digits | "." name | "." call | "[" number "]" }
    operand    = number | string | true | false | name | call | "(" [expression {"," expression}] ")"
               | if expression then expression else expression
    call       = name ["<" type {"," type} ">"] "(" [argument {"," argument}] ")"       argument = [name ":"] expression
    type       = name ["?"] | "(" [type {"," type}] ")" | "_"
    pace       = "@" ("Global" "(" formula ")" | "Local" "(" formula ")" | formula)
    formula    = number | names, true and brackets, joined by && and ||

A sign directly before a number belongs to it. ``!``, ``-`` and ``~`` bind more tightly than every operator between two
operands, and less than ``.`` and ``[``.
"""

from __future__ import annotations

import re
from fractions import Fraction

from hamlet.frontend.cursor import allow_height, heights
from hamlet.frontend.lexer import Kind, Token
from hamlet.streams.syntax import tree as s
from hamlet.streams.syntax.cursor import CLAUSES, MAX_CHAIN, MAX_HEIGHT, RESERVED, Cursor

_BINDING = {
    "->": 1, "||": 2, "&&": 3, "|": 4, "^": 5, "&": 6, "=": 7, "!=": 7, "<": 8, "<=": 8, ">": 8, ">=": 8,
    "<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "%": 11, "**": 12,
}  # fmt: skip
_WORD_OPERATORS = {"and": "&&", "or": "||", "implies": "->"}
_TO_THE_RIGHT = {"->", "**"}
_SIGNS = ("!", "-", "+", "~")
_NUMBER = re.compile(r"([0-9]+)(?:(\.)([0-9]*))?(?:e([+-]?[0-9]+))?(.*)", re.DOTALL)
_AGGREGATE_SYMBOLS = {"#": "count", "&&": "forall", "||": "exists"}
_NO_OPERANDS = RESERVED - {"forall", "exists", "error"}  # aggregations are words where values are read
_LONG = 32  # operands up to which a chain of && is read from left to right
_LARGEST_EXPONENT = 400  # of ten; beyond it no Float64 is left


def parse_expression(cursor: Cursor) -> s.Expression:
    """Read one expression; raises `UnreadableError` after a mistake."""
    expression = _operators(cursor, 1)
    nesting, height = heights(expression, s.parts, lambda part: isinstance(part, s.Binary))
    if nesting > MAX_HEIGHT:
        raise cursor.too_deep(expression.span)
    if height > MAX_CHAIN:
        hint = "compute a part of it in an output of its own and use that"
        raise cursor.fail(f"this expression has more than {MAX_CHAIN:,} operators in a row", expression.span, hint)
    allow_height(height)
    return expression


def _operators(cursor: Cursor, least: int) -> s.Expression:
    """A term and all that follows it with operators that bind at least as tightly as `least`."""
    left = _term(cursor)
    while (operator := _operator(cursor)) is not None and (binding := _BINDING[operator]) >= least:
        cursor.advance()
        if cursor.at("=", ">", "<") and operator in ("=", "<", ">", "->"):
            wrong = cursor.peek(-1).span.to(cursor.peek().span)
            raise cursor.fail(f"{cursor.reports.quote(wrong)} is not an operator", wrong, "write =, !=, <, <=, > or >=")
        if operator in _TO_THE_RIGHT:
            cursor.deeper(left.span)
            right = _operators(cursor, binding)
            cursor.depth -= 1
        else:
            right = _operators(cursor, binding + 1)
        if operator in ("&&", "||") and _operator(cursor) == operator:
            left = _chain(cursor, operator, [left, right])
            continue
        left = s.Binary(operator, left, right, span=left.span.to(right.span))
    return left


def _chain(cursor: Cursor, operator: str, parts: list[s.Expression]) -> s.Expression:
    """The rest of ``a && b && c ...`` as a balanced tree, which means the same and is not deep."""
    while _operator(cursor) == operator:
        cursor.advance()
        parts.append(_operators(cursor, _BINDING[operator] + 1))
    while len(parts) > _LONG:
        pairs = [parts[place : place + 2] for place in range(0, len(parts), 2)]
        parts = [_joined(operator, pair) for pair in pairs]
    return _joined(operator, parts)


def _joined(operator: str, parts: list[s.Expression]) -> s.Expression:
    """Operands from left to right."""
    made = parts[0]
    for part in parts[1:]:
        made = s.Binary(operator, made, part, span=made.span.to(part.span))
    return made


def _operator(cursor: Cursor) -> str | None:
    """The operator between two operands that comes next."""
    token = cursor.peek()
    if token.kind is Kind.WORD:
        return _WORD_OPERATORS.get(token.value)
    return token.value if token.kind is Kind.SYMBOL and token.value in _BINDING else None


def _term(cursor: Cursor) -> s.Expression:
    token = cursor.peek()
    if cursor.at("-", "+") and _joined_number(cursor):
        cursor.advance()
        return _postfix(cursor, _number(cursor, token))
    if cursor.at(*_SIGNS) or cursor.at_word("not"):
        cursor.advance()
        cursor.deeper(token.span)
        operand = _term(cursor)
        cursor.depth -= 1
        sign = "!" if token.value == "not" else token.value
        return operand if sign == "+" else s.Unary(sign, operand, span=token.span.to(operand.span))
    return _postfix(cursor, _operand(cursor))


def _joined_number(cursor: Cursor) -> bool:
    """Whether a number follows the sign at the cursor without a space."""
    return cursor.at_kind(Kind.NUMBER, offset=1) and cursor.peek().span.end == cursor.peek(1).span.start


def _postfix(cursor: Cursor, operand: s.Expression) -> s.Expression:
    """What follows an operand with ``.`` and ``[``."""
    before = cursor.depth
    while cursor.at(".", "["):
        cursor.deeper(operand.span)
        if cursor.take("["):
            sign = cursor.take("-", "+")
            if not cursor.at_kind(Kind.NUMBER):
                raise cursor.expected(["a number"], "the value before is s[-1]")
            offset = _number(cursor, sign)
            if not cursor.take("]"):
                raise cursor.expected(["']'"], "the value before is s[-1]")
            operand = s.Index(operand, offset, span=cursor.since(operand.span))
            continue
        cursor.advance()
        token = cursor.peek()
        if token.kind is Kind.NUMBER:
            cursor.advance()
            operand = s.Field(operand, token.value, span=cursor.since(operand.span))
        elif token.kind is Kind.WORD:
            cursor.advance()
            types = _type_arguments(cursor)
            if cursor.at("("):
                arguments = _arguments(cursor)
                span = cursor.since(operand.span)
                operand = s.Method(operand, token.value, types, arguments, name_span=token.span, span=span)
            else:
                operand = s.Field(operand, token.value, span=cursor.since(operand.span))
        else:
            raise cursor.expected(["a method such as hold()", "the number of a tuple's part"])
    cursor.depth = before
    return operand


def _operand(cursor: Cursor) -> s.Expression:
    token = cursor.peek()
    if token.kind is Kind.NUMBER:
        return _number(cursor, None)
    if token.kind is Kind.STRING:
        cursor.advance()
        return s.Text(token.value, span=token.span)
    if cursor.at("("):
        return _brackets(cursor)
    if cursor.at_word("true", "false"):
        cursor.advance()
        return s.Boolean(token.value == "true", span=token.span)
    if cursor.at_word("if"):
        return _choice(cursor)
    if cursor.take_word("self"):
        return s.Name("self", span=token.span)
    if token.kind is Kind.WORD and token.value not in _NO_OPERANDS and token.value[0].isascii():
        cursor.advance()
        types = _type_arguments(cursor)
        if cursor.at("("):
            arguments = _arguments(cursor)
            return s.Call(token.value, types, arguments, name_span=token.span, span=cursor.since(token.span))
        return s.Name(token.value, span=token.span)
    raise cursor.expected(["an expression"], _operand_hint(cursor))


def _operand_hint(cursor: Cursor) -> str | None:
    if cursor.at("="):
        return "comparisons are =, !=, <, <=, > and >="
    if cursor.at(")", ",") or cursor.at_statement() or cursor.at_word(*CLAUSES, "then", "else", "with", "when"):
        return "something is missing here"
    if cursor.at("@"):
        return "pacing stands before := or behind spawn, eval and close"
    return None


def _brackets(cursor: Cursor) -> s.Expression:
    """``(a)`` is a, ``(a, b)`` and ``()`` are tuples."""
    start = cursor.advance().span
    cursor.deeper(start)
    parts: list[s.Expression] = []
    comma = False
    while not cursor.at(")") or comma:
        parts.append(_operators(cursor, 1))
        comma = cursor.take(",") is not None
        if not comma:
            break
    if not cursor.take(")"):
        raise cursor.expected(["')'", "','"] if parts else ["')'"], "every ( needs its )")
    cursor.depth -= 1
    if len(parts) == 1:
        return parts[0]
    return s.MakeTuple(tuple(parts), span=cursor.since(start))


def _choice(cursor: Cursor) -> s.Expression:
    start = cursor.advance().span
    cursor.deeper(start)
    condition = _operators(cursor, 1)
    if not cursor.take_word("then"):
        raise cursor.expected(["'then'"], "write if c then a else b")
    left = _operators(cursor, 1)
    if not cursor.take_word("else"):
        raise cursor.expected(["'else'"], "both sides are needed: if c then a else b")
    right = _operators(cursor, 1)
    cursor.depth -= 1
    return s.Choice(condition, left, right, span=start.to(right.span))


def _arguments(cursor: Cursor) -> tuple[s.Argument, ...]:
    """What stands in the brackets of a call."""
    start = cursor.advance().span
    cursor.deeper(start)
    found: list[s.Argument] = []
    while not cursor.at(")") or found:
        begin, label = cursor.peek(), None
        if cursor.at_kind(Kind.WORD) and cursor.at(":", offset=1):
            label = cursor.advance().value
            cursor.advance()
        symbol = cursor.take(*_AGGREGATE_SYMBOLS) if label == "using" else None
        if symbol is not None:
            value: s.Expression = s.Name(_AGGREGATE_SYMBOLS[symbol.value], span=symbol.span)
        elif label == "using" and cursor.at_kind(Kind.WORD) and not cursor.peek().value[0].isascii():
            value = s.Name(cursor.peek().value, span=cursor.advance().span)
        else:
            value = _operators(cursor, 1)
        found.append(s.Argument(label, value, span=cursor.since(begin.span)))
        if not cursor.take(","):
            break
    if not cursor.take(")"):
        raise cursor.expected(["')'", "','"] if found else ["')'"], "every ( needs its )")
    cursor.depth -= 1
    return tuple(found)


def _type_arguments(cursor: Cursor) -> tuple[s.TypeSyntax, ...]:
    """``<Int64, Float64>`` where a bracket follows it; else ``<`` is a comparison."""
    if not cursor.at("<"):
        return ()
    offset, depth = 1, 0
    while cursor.at_kind(Kind.WORD, offset=offset) or cursor.at(",", "?", "(", ")", offset=offset):
        depth += cursor.at("(", offset=offset) - cursor.at(")", offset=offset)
        offset += 1
    if depth or not (cursor.at(">", offset=offset) and cursor.at("(", offset=offset + 1)) or offset == 1:
        return ()
    cursor.advance()
    types = [parse_type(cursor)]
    while cursor.take(","):
        types.append(parse_type(cursor))
    if not cursor.take(">"):
        raise cursor.expected(["'>'", "','"])
    return tuple(types)


def _number(cursor: Cursor, sign: Token | None) -> s.Number:
    """The number at the cursor; `sign` stands before it."""
    token = cursor.advance()
    match = _NUMBER.fullmatch(token.value)
    assert match is not None  # the token is of this form
    whole, point, decimals, exponent, unit = match.groups()
    span = (sign.span if sign is not None else token.span).to(token.span)
    decimals = decimals or ""
    if len(whole) + len(decimals) > _LARGEST_EXPONENT or (exponent and len(exponent.lstrip("+-0")) > 3):
        raise cursor.fail("this number is too large", span, "numbers have 64 bits")
    power = int(exponent or 0) - len(decimals)
    if abs(power) > _LARGEST_EXPONENT:
        raise cursor.fail("this number is too large or too small", span, "numbers have 64 bits")
    value = Fraction(int(whole + decimals)) * Fraction(10) ** power
    minus = sign is not None and sign.value == "-"
    value = -value if minus else value
    return s.Number(value, point is None and exponent is None, unit.replace("μ", "µ"), minus, span=span)


# ------------------------------------------------------------------------------------------------ types, pacing


def parse_type(cursor: Cursor) -> s.TypeSyntax:
    """Read a type; raises `UnreadableError` after a mistake."""
    token = cursor.peek()
    if cursor.take("("):
        cursor.deeper(token.span)
        parts: list[s.TypeSyntax] = []
        while not cursor.at(")") or parts:
            parts.append(parse_type(cursor))
            if not cursor.take(","):
                break
        if not cursor.take(")"):
            raise cursor.expected(["')'", "','"])
        cursor.depth -= 1
        whole: s.TypeSyntax = s.TupleType(tuple(parts), span=cursor.since(token.span))
        return whole if len(parts) != 1 else parts[0]
    if cursor.take_word("_"):
        return s.InferredType(span=token.span)
    if token.kind is not Kind.WORD or token.value in RESERVED:
        raise cursor.expected(["a type"], "types are Bool, Int64, UInt64, Float64, String and tuples of them")
    cursor.advance()
    named = s.TypeName(token.value, span=token.span)
    return s.OptionalType(named, span=cursor.since(token.span)) if cursor.take("?") else named


def parse_pace(cursor: Cursor) -> s.Pace | None:
    """Read ``@...``; None where none stands."""
    start = cursor.take("@")
    if start is None:
        return None
    bracket = cursor.at("(") and cursor.at_word("Global", "Local", offset=1)
    if bracket:
        cursor.advance()
    scope = ""
    if cursor.at_word("Global", "Local") and cursor.at("(", offset=1):
        scope = cursor.advance().value
    formula = _formula(cursor, 1)
    if bracket and not cursor.take(")"):
        raise cursor.expected(["')'"])
    return s.Pace(scope, formula, span=cursor.since(start.span))


def _formula(cursor: Cursor, least: int) -> s.Expression:
    """Names, ``true`` and brackets with ``&&`` and ``||``, or a number."""
    token = cursor.peek()
    left: s.Expression
    if cursor.take("("):
        cursor.deeper(token.span)
        left = _formula(cursor, 1)
        if not cursor.take(")"):
            raise cursor.expected(["')'"], "pacing is a frequency such as 1Hz, or inputs joined by && and ||")
        cursor.depth -= 1
    elif token.kind is Kind.NUMBER:
        return _number(cursor, None)
    elif cursor.at("-", "+") and _joined_number(cursor):
        return _number(cursor, cursor.advance())
    elif cursor.at_word("true", "false"):
        cursor.advance()
        left = s.Boolean(token.value == "true", span=token.span)
    elif token.kind is Kind.WORD and token.value not in RESERVED:
        cursor.advance()
        left = s.Name(token.value, span=token.span)
    elif cursor.at("!"):
        raise cursor.fail(
            "pacing cannot say what must not happen",
            token.span,
            "a formula of inputs with && and || only; use eval when for conditions",
        )
    else:
        raise cursor.expected(["a frequency such as 1Hz", "an input"], "pacing is @1Hz, @10s, @a, @(a && b) or @true")
    while True:
        operator = _operator(cursor)
        if operator not in ("||", "&&", "|", "&") or _BINDING[operator] < least:
            return left
        cursor.advance()
        right = _formula(cursor, _BINDING[operator] + 1)
        left = s.Binary("&&" if operator in ("&&", "&") else "||", left, right, span=left.span.to(right.span))
