"""Terms and intervals of formulas, and a place in their tokens.

The grammar stands in `hamlet.policies.syntax.parser`.
"""

from __future__ import annotations

import dataclasses
from typing import TypeVar

from hamlet.language.query import Span
from hamlet.output.digits import integer_of
from hamlet.policies.syntax.diagnostics import MAX_CHAIN, MAX_DEPTH
from hamlet.policies.syntax.formula import (
    FUNCTIONS,
    Arithmetic,
    Bound,
    Call,
    Constant,
    Formula,
    Interval,
    Negative,
    Term,
    Variable,
)
from hamlet.policies.syntax.tokens import Kind, Token

Node = TypeVar("Node", Formula, Term)
Warned = tuple[Span, tuple[str, str]]  # place, message and hint

_MOD_ADVICE = ("MOD takes everything to its right", "put parentheses around what is meant: (x MOD 2) + 1")


class ReadingError(Exception):
    """Unwinds to the start of the parser, or to where another reading is tried."""

    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


class TermParser:
    """Tokens with a current place.

    Attributes
    ----------
    warnings : list of (Span, (str, str))
        What is allowed but may not be meant: place, message and hint.
    """

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self._depth = 0
        self.warnings: list[Warned] = []

    # ------------------------------------------------------------------------------------------- looking

    def _peek(self, offset: int = 0) -> Token:
        return self._tokens[min(self._index + offset, len(self._tokens) - 1)]

    def _at(self, *symbols: str, offset: int = 0) -> bool:
        token = self._peek(offset)
        return token.kind is Kind.SYMBOL and token.value in symbols

    def _at_keyword(self, *words: str, offset: int = 0) -> bool:
        token = self._peek(offset)
        return token.kind is Kind.KEYWORD and token.value in words

    def _next(self) -> Token:
        token = self._peek()
        self._index += 1
        return token

    def _expect(self, symbol: str, where: str, hint: str | None = None) -> Token:
        if not self._at(symbol):
            raise self._unexpected(f"'{symbol}' {where}", hint)
        return self._next()

    def _unexpected(self, expected: str, hint: str | None = None) -> ReadingError:
        token = self._peek()
        if token.kind is Kind.END:
            return ReadingError(f"expected {expected}, but the text ends here", token.span, hint)
        return ReadingError(f"expected {expected}, found '{shorten(token.raw)}'", token.span, hint)

    def _name(self, expected: str) -> Token:
        token = self._peek()
        if token.kind is not Kind.NAME:
            hint = f"{token.value} is a keyword; choose another name" if token.kind is Kind.KEYWORD else None
            raise self._unexpected(expected, hint)
        return self._next()

    def _last(self) -> Span:
        return self._tokens[max(0, self._index - 1)].span

    # --------------------------------------------------------------------------------------------- terms

    def _term(self) -> Term:
        left, length = self._product(), 0
        while self._at("+", "-"):
            length = self._longer(length)
            operator = self._next().value
            right = self._product()
            left = Arithmetic(operator, left, right, span=left.span.to(right.span))
        return left

    def _product(self) -> Term:
        left, length = self._factor(), 0
        while self._at("*", "/"):
            length = self._longer(length)
            operator = self._next().value
            right = self._factor()
            left = Arithmetic(operator, left, right, span=left.span.to(right.span))
        return left

    def _longer(self, length: int) -> int:
        """Count an operator of a chain."""
        if length == MAX_CHAIN:
            raise ReadingError(f"the term has more than {MAX_CHAIN:,} operators in a row", self._peek().span)
        return length + 1

    def _factor(self) -> Term:
        """A primary; MOD behind it takes everything to its right."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ReadingError(f"the formula is nested more than {MAX_DEPTH} levels deep", self._peek().span)
        if self._at("-"):
            term = self._negated(self._next().span)
        else:
            term = self._primary()
            if self._at_keyword("MOD"):
                self._next()
                bracketed = self._at("(")
                right = self._term()
                if isinstance(right, Arithmetic) and not (bracketed and self._tokens[self._index - 1].raw == ")"):
                    self.warnings.append((right.span, _MOD_ADVICE))
                term = Arithmetic("MOD", term, right, span=term.span.to(right.span))
        self._depth -= 1
        return term

    def _negated(self, sign: Span) -> Term:
        """What follows a minus sign; right before digits the sign belongs to the number."""
        token = self._peek()
        if token.kind in (Kind.INTEGER, Kind.FLOAT) and token.span.start == sign.end:
            self._next()
            number: Term = Constant(-_number(token), span=sign.to(token.span))
            if not self._at_keyword("MOD"):
                return number
            self._index -= 1
            inner = self._factor()
            if isinstance(inner, Arithmetic):  # -5 MOD 3 has the number -5 on its left
                return Arithmetic("MOD", number, inner.right, span=sign.to(inner.span))
        inner = self._factor()
        return Negative(inner, span=sign.to(inner.span))

    def _primary(self) -> Term:
        token = self._next()
        if token.kind in (Kind.INTEGER, Kind.FLOAT):
            return Constant(_number(token), span=token.span)
        if token.kind is Kind.STRING:
            return Constant(token.value, span=token.span)
        if token.kind is Kind.KEYWORD and token.value in ("TRUE", "FALSE"):
            return Constant(token.value == "TRUE", span=token.span)
        if token.kind is Kind.NAME and token.value in FUNCTIONS and self._at("("):
            self._next()
            argument = self._term()
            close = self._expect(")", f"after the argument of {token.value}")
            return Call(token.value, argument, span=token.span.to(close.span))
        if token.kind is Kind.NAME:
            return Variable(token.value, span=token.span)
        if token.kind is Kind.SYMBOL and token.value == "(":
            inner = self._term()
            close = self._expect(")", "after the term")
            return widened(inner, token.span.to(close.span))
        self._index -= 1
        if token.kind is Kind.DURATION:
            raise self._unexpected("a value", "a length of time stands in intervals only; names begin with a letter")
        raise self._unexpected('a value: a variable, a number, or a "string"')

    # ----------------------------------------------------------------------------------------- intervals

    def _interval(self) -> Interval:
        """``[a,b]``, or nothing, which is ``[0,*)``."""
        bounded = self._peek(1).kind in (Kind.INTEGER, Kind.DURATION) and self._at(",", offset=2)
        if not (self._at("[") or (self._at("(") and bounded)):
            return Interval()
        opened = self._next()
        low, _ = self._bound("the lower bound of the interval")
        self._expect(",", "between the bounds of the interval")
        high: Bound | None = None
        if self._at("*"):
            self._next()
        else:
            high, _ = self._bound("the upper bound of the interval, or *")
        if not self._at("]", ")"):
            raise self._unexpected("']' or ')' at the end of the interval")
        closed = self._next()
        whole = opened.span.to(closed.span)
        low = Bound(low.value, low.unit, opened.value == "(")
        if high is not None:
            high = Bound(high.value, high.unit, closed.value == ")")
        return Interval(low, high, span=whole)

    def _bound(self, expected: str) -> tuple[Bound, Span]:
        token = self._peek()
        if token.kind is Kind.INTEGER:
            self._next()
            return Bound(integer_of(token.value)), token.span
        if token.kind is Kind.DURATION:
            if token.value[-1] not in "smhd":
                hint = "s, m, h and d are seconds, minutes, hours and days"
                raise ReadingError(f"'{token.value[-1]}' is not a unit of time", token.span, hint)
            self._next()
            return Bound(integer_of(token.value[:-1]), token.value[-1]), token.span  # type: ignore[arg-type]
        if self._at("-"):
            raise ReadingError("the bound of an interval is negative", token.span, "times are counted from 0 up")
        raise self._unexpected(expected, "bounds are whole numbers, with or without a unit: [0,10] or [0,7d]")


def widened(node: Node, span: Span) -> Node:
    """A node whose place in the text includes its parentheses."""
    return dataclasses.replace(node, span=span)


def _number(token: Token) -> int | float:
    return integer_of(token.value) if token.kind is Kind.INTEGER else float(token.value)


def shorten(text: str, longest: int = 30) -> str:
    """The text on one line, cut where it is long."""
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else flat[: longest - 3] + "..."
