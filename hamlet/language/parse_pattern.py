"""Tokens to patterns.

::

    pattern = conj { (OR | "|" | "∨") conj }
    conj    = unit { (AND | "&" | "∧") unit }
    unit    = NOT unit | atom { "+" | "*" | "?" | "{" n ["," [m]] "}" }
    atom    = Type [var] | SEQ "(" pattern {"," pattern} ")" | "(" pattern ")"

Parentheses leave no trace in the tree. Every word except SEQ, AND, OR, NOT and the clause keywords may name a type or
a variable; in double quotes those may, too. Source: docs/language.md ("A query"); HAMLET (SIGMOD'21) Def. 2.1.
"""

from __future__ import annotations

from dataclasses import replace

from hamlet.frontend.lexer import Kind
from hamlet.language.cursor import Cursor
from hamlet.language.query import (
    Alternation,
    Atom,
    Conjunction,
    Negation,
    Pattern,
    Repetition,
    Sequence,
    Span,
    children,
)

_RESERVED = ("AND", "OR", "NOT", "SEQ")
_POSTFIX = {"+": (1, None), "*": (0, None), "?": (0, 1)}
_USAGE = "repetitions are written {3}, {3,} or {3,5}"
_MOST_DIGITS = 9  # of a number in {n,m}


def parse_pattern(cursor: Cursor) -> Pattern:
    """Read one whole pattern.

    Raises
    ------
    UnreadableError
        Where the pattern ends too soon or goes on wrongly; the message is recorded.
    """
    pattern = _alternation(cursor)
    cursor.check_depth(pattern, children, pattern.span, "pattern")
    return pattern


def _alternation(cursor: Cursor) -> Pattern:
    branches = [_conjunction(cursor)]
    while cursor.take_operator("OR", "|"):
        branches.append(_conjunction(cursor))
    if len(branches) == 1:
        return branches[0]
    return Alternation(tuple(branches), span=branches[0].span.to(branches[-1].span))


def _conjunction(cursor: Cursor) -> Pattern:
    operands = [_unit(cursor)]
    while cursor.take_operator("AND", "&"):
        operands.append(_unit(cursor))
    if len(operands) == 1:
        return operands[0]
    return Conjunction(tuple(operands), span=operands[0].span.to(operands[-1].span))


def _unit(cursor: Cursor) -> Pattern:
    start = cursor.peek().span
    if cursor.take_word("NOT"):
        cursor.deeper(start, "pattern")
        body = _unit(cursor)
        cursor.depth -= 1
        return Negation(body, span=start.to(body.span))
    pattern = _atom(cursor)
    while True:
        token = cursor.peek()
        if cursor.take("+", "*", "?"):
            low, high = _POSTFIX[token.value]
        elif cursor.at("{"):
            low, high = _bounds(cursor)
        else:
            return pattern
        pattern = Repetition(pattern, low, high, span=cursor.since(start))


def _bounds(cursor: Cursor) -> tuple[int, int | None]:
    """``{n}``, ``{n,}`` or ``{n,m}``; whether they make sense is for the analysis to say."""
    start = cursor.advance().span
    if cursor.at(","):
        raise cursor.expected(["a number"], "write {0,3} for at most three times", after=start)
    low = _whole_number(cursor)
    high: int | None = low
    if cursor.take(","):
        high = _whole_number(cursor) if cursor.at_kind(Kind.NUMBER) else None
    if not cursor.take("}"):
        raise cursor.expected(["'}'"], _USAGE, after=cursor.since(start))
    return low, high


def _whole_number(cursor: Cursor) -> int:
    token = cursor.peek()
    if token.kind is not Kind.NUMBER:
        raise cursor.expected(["a number"], _USAGE)
    if not token.value.isdigit():
        raise cursor.fail(f"'{token.value}' is no whole number", token.span, _USAGE)
    if len(token.value) > _MOST_DIGITS:
        message = f"the number of a repetition has at most {_MOST_DIGITS} digits"
        raise cursor.fail(message, token.span, "write + for any number of times")
    return int(cursor.advance().value)


def _atom(cursor: Cursor) -> Pattern:
    token = cursor.peek()
    if cursor.at_word("SEQ"):
        return _sequence(cursor)
    if cursor.take("("):
        cursor.deeper(token.span, "pattern")
        pattern = _alternation(cursor)
        if not cursor.take(")"):
            hint = "a sequence is written SEQ(A, B)" if cursor.at(",") else _close_hint(cursor, "(")
            raise cursor.expected(["')'"], hint or _part_hint(cursor), after=pattern.span)
        cursor.depth -= 1
        return replace(pattern, span=cursor.since(token.span))
    if cursor.clause() and cursor.at(",", ")", "+", "*", "?", "{", offset=1):
        hint = f'a type that is called like a keyword is written in double quotes: "{token.value}"'
        cursor.report(f"'{token.value}' is a keyword", token.span, hint)
    elif not _at_name(cursor):
        raise cursor.expected(["an event type, SEQ( or '('"], _type_hint(cursor))
    event_type = cursor.take_name()
    variable = cursor.take_name() if _at_name(cursor) else event_type
    if cursor.at("("):
        hint = "write A OR B" if event_type.upper() == "ANY" else f"a sequence is written SEQ({event_type}, ...)"
        raise cursor.fail(f"'{event_type}' is not an operator of patterns", token.span, hint)
    return Atom(event_type, variable, span=cursor.since(token.span))


def _sequence(cursor: Cursor) -> Pattern:
    start = cursor.advance().span
    opening = cursor.take("(")
    if opening is None:
        raise cursor.expected(["'('"], 'write SEQ(A, B); a type called SEQ is written "SEQ"', after=start)
    cursor.deeper(start, "pattern")
    if cursor.at(")"):
        raise cursor.expected(
            ["an event type"], "SEQ needs at least one part, as in SEQ(A, B+)", after=cursor.since(start)
        )
    parts = [_alternation(cursor)]
    while cursor.take(","):
        if cursor.at(")"):
            raise cursor.expected(["an event type"], "remove the comma before ')'")
        parts.append(_alternation(cursor))
    if not cursor.take(")"):
        hint = _close_hint(cursor, "SEQ(") or _part_hint(cursor)
        raise cursor.expected(["')'", "','"], hint, after=parts[-1].span)
    cursor.depth -= 1
    return Sequence(tuple(parts), span=cursor.since(start))


# ---------------------------------------------------------------------------------------------- names and hints


def _at_name(cursor: Cursor) -> bool:
    """Whether the next token names a type or a variable."""
    if cursor.at_kind(Kind.NAME):
        return True
    reserved = cursor.at_word(*_RESERVED) or cursor.clause() is not None or cursor.starts_statement()
    return cursor.at_kind(Kind.WORD) and not reserved


def _close_hint(cursor: Cursor, opening: str) -> str | None:
    """A clause or the end of the query follows where a parenthesis is still open."""
    clause = cursor.clause()
    if clause is not None:
        return f"close {opening} before {clause[0]}"
    return f"close {opening}" if cursor.ends_statement() else None


def _type_hint(cursor: Cursor) -> str | None:
    """Why no event type could be read here."""
    token = cursor.peek()
    if token.kind is Kind.STRING:
        return f'a type is written without quotes or in double quotes: "{token.value}"'
    if cursor.at_word("AND", "OR"):
        return f"{token.value.upper()} stands between two patterns"
    if cursor.at(","):
        return "remove one comma"
    return None


def part_hint(cursor: Cursor, last: Span) -> str | None:
    """What the user probably meant where a pattern goes on wrongly.

    Parameters
    ----------
    cursor : Cursor
        Stands at the token that does not fit.
    last : Span
        The pattern before it.
    """
    before = cursor.reports.text[last.start : last.end]
    if cursor.at("["):
        return "a repeated event is written T+, without brackets"
    if cursor.at("-") and cursor.at(">", offset=1):
        return "write SEQ(A, B) for A followed by B"
    if cursor.at("-") and cursor.at_kind(Kind.WORD, offset=1):
        return f'a name with a hyphen is written in double quotes: "{before}-{cursor.peek(1).value}"'
    if cursor.at(",") and "(" not in before:
        return "write SEQ(A, B) for A followed by B"
    if cursor.at_word("FOLLOWED"):
        return "write SEQ(A, B) for A followed by B"
    return _part_hint(cursor)


def _part_hint(cursor: Cursor) -> str | None:
    if cursor.at("["):
        return "a repeated event is written T+, without brackets"
    if cursor.at("-") and cursor.at(">", offset=1):
        return "write SEQ(A, B) for A followed by B"
    if cursor.at("-") and cursor.at_kind(Kind.WORD, offset=1) and cursor.at_kind(Kind.WORD, offset=-1):
        return f'a name with a hyphen is written in double quotes: "{cursor.peek(-1).value}-{cursor.peek(1).value}"'
    if cursor.at_kind(Kind.WORD, Kind.NAME) and not cursor.at_word("NOT"):
        name = cursor.peek().value
        if cursor.at("+", "*", "?", "}", offset=-1):
            return f"write the variable before the repetition, as in Travel {name}+"
        return "put a comma between the parts, as in SEQ(A, B)"
    if cursor.at_word("NOT"):
        return "put a comma between the parts, as in SEQ(A, NOT B)"
    return None
