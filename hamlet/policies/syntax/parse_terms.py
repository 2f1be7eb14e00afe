"""Terms and intervals of formulas, and a place in their tokens.

The grammar stands in `hamlet.policies.syntax.parser`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import TypeVar

from hamlet.errors import Span
from hamlet.frontend.cursor import Cursor, UnreadableError
from hamlet.frontend.lexer import Kind, Token
from hamlet.frontend.reports import Reports, shorten
from hamlet.output.digits import integer_of
from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.diagnostics import MAX_CHAIN, MAX_DEPTH

Node = TypeVar("Node", mfotl.Formula, mfotl.Term)
Warned = tuple[Span, tuple[str, str]]  # place, message and hint

_LIKE_ARITHMETIC = re.compile(r"\w+[-/]\d+|\d+[-/]\w+")  # one name, as in MonPoly
_MOD_ADVICE = ("MOD takes everything to its right", "put parentheses around what is meant: (x MOD 2) + 1")


class ReadingError(UnreadableError):
    """Unwinds to the start of the parser, or to where another reading is tried; the message is not recorded yet."""

    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


class TermParser(Cursor):
    """Tokens with a current place.

    Attributes
    ----------
    warnings : list of (Span, (str, str))
        What is allowed but may not be meant: place, message and hint.
    """

    def __init__(self, tokens: Sequence[Token], reports: Reports) -> None:
        super().__init__(tokens, reports)
        self.warnings: list[Warned] = []

    def word_of(self, token: Token) -> str | None:
        """A keyword; names are none."""
        return token.value if token.kind is Kind.KEYWORD else None

    def fail(self, message: str, span: Span, hint: str | None = None) -> ReadingError:
        """A mistake, unless what stands there can be read in another way."""
        return ReadingError(message, span, hint)

    def _expect(self, symbol: str, where: str, hint: str | None = None) -> Token:
        if not self.at(symbol):
            raise self._unexpected(f"'{symbol}' {where}", hint)
        return self.advance()

    def _unexpected(self, expected: str, hint: str | None = None) -> ReadingError:
        token = self.peek()
        return self.fail(self.sentence(expected, token, None), token.span, hint)

    def sentence(self, what: str, token: Token, _after: Span | None) -> str:
        """The message that something else should stand where a token is."""
        found = "but the text ends here" if token.kind is Kind.END else f"found '{shorten(token.raw)}'"
        return f"expected {what}, {found}"

    def _name(self, expected: str) -> Token:
        token = self.peek()
        if token.kind is not Kind.NAME:
            hint = f"{token.value} is a keyword; choose another name" if token.kind is Kind.KEYWORD else None
            raise self._unexpected(expected, hint)
        return self.advance()

    # --------------------------------------------------------------------------------------------- terms

    def _term(self) -> mfotl.Term:
        left, length = self._product(), 0
        while self.at("+", "-"):
            length = self._longer(length)
            operator = self.advance().value
            right = self._product()
            left = mfotl.Arithmetic(operator, left, right, span=left.span.to(right.span))
        return left

    def _product(self) -> mfotl.Term:
        left, length = self._factor(), 0
        while self.at("*", "/"):
            length = self._longer(length)
            operator = self.advance().value
            right = self._factor()
            left = mfotl.Arithmetic(operator, left, right, span=left.span.to(right.span))
        return left

    def _longer(self, length: int) -> int:
        """Count an operator of a chain."""
        if length == MAX_CHAIN:
            raise self.fail(f"the term has more than {MAX_CHAIN:,} operators in a row", self.peek().span)
        return length + 1

    def _factor(self) -> mfotl.Term:
        """A primary; MOD behind it takes everything to its right."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fail(f"the formula is nested more than {MAX_DEPTH} levels deep", self.peek().span)
        if self.at("-"):
            term = self._negated(self.advance().span)
        else:
            term = self._primary()
            if self.at_word("MOD"):
                self.advance()
                bracketed = self.at("(")
                right = self._term()
                if isinstance(right, mfotl.Arithmetic) and not (bracketed and self._tokens[self.index - 1].raw == ")"):
                    self.warnings.append((right.span, _MOD_ADVICE))
                term = mfotl.Arithmetic("MOD", term, right, span=term.span.to(right.span))
        self.depth -= 1
        return term

    def _negated(self, sign: Span) -> mfotl.Term:
        """What follows a minus sign; right before digits the sign belongs to the number."""
        token = self.peek()
        if token.kind in (Kind.INTEGER, Kind.FLOAT) and token.span.start == sign.end:
            self.advance()
            number: mfotl.Term = mfotl.Constant(-_number(token), span=sign.to(token.span))
            if not self.at_word("MOD"):
                return number
            self.index -= 1
            inner = self._factor()
            if isinstance(inner, mfotl.Arithmetic):  # -5 MOD 3 has the number -5 on its left
                return mfotl.Arithmetic("MOD", number, inner.right, span=sign.to(inner.span))
        inner = self._factor()
        return mfotl.Negative(inner, span=sign.to(inner.span))

    def _primary(self) -> mfotl.Term:
        token = self.advance()
        if token.kind in (Kind.INTEGER, Kind.FLOAT):
            return mfotl.Constant(_number(token), span=token.span)
        if token.kind is Kind.STRING:
            return mfotl.Constant(token.value, span=token.span)
        if token.kind is Kind.KEYWORD and token.value in ("TRUE", "FALSE"):
            return mfotl.Constant(token.value == "TRUE", span=token.span)
        if token.kind is Kind.NAME and token.value in mfotl.FUNCTIONS and self.at("("):
            self.advance()
            argument = self._term()
            close = self._expect(")", f"after the argument of {token.value}")
            return mfotl.Call(token.value, argument, span=token.span.to(close.span))
        if token.kind is Kind.NAME:
            if _LIKE_ARITHMETIC.fullmatch(token.value):
                spaced = re.sub("[-/]", r" \g<0> ", token.value)
                hint = f"with blanks it is arithmetic: {spaced}"
                self.warnings.append((token.span, (f"'{token.value}' is the name of a variable", hint)))
            elif token.value in ("true", "false"):
                hint = f"the constant is written {token.value.upper()}"
                self.warnings.append((token.span, (f"'{token.value}' is the name of a variable", hint)))
            return mfotl.Variable(token.value, span=token.span)
        if token.kind is Kind.SYMBOL and token.value == "(":
            inner = self._term()
            close = self._expect(")", "after the term")
            return widened(inner, token.span.to(close.span))
        self.index -= 1
        if token.kind is Kind.DURATION:
            raise self._unexpected("a value", "a length of time stands in intervals only; names begin with a letter")
        raise self._unexpected('a value: a variable, a number, or a "string"')

    # ----------------------------------------------------------------------------------------- intervals

    def _interval(self) -> mfotl.Interval:
        """``[a,b]``, or nothing, which is ``[0,*)``."""
        bounded = self.peek(1).kind in (Kind.INTEGER, Kind.DURATION) and self.at(",", offset=2)
        if not (self.at("[") or (self.at("(") and bounded)):
            return mfotl.Interval()
        opened = self.advance()
        low, _ = self._bound("the lower bound of the interval")
        self._expect(",", "between the bounds of the interval")
        high: mfotl.Bound | None = None
        if self.at("*"):
            self.advance()
        else:
            high, _ = self._bound("the upper bound of the interval, or *")
        if not self.at("]", ")"):
            units = self.peek().kind is Kind.NAME
            hint = "a unit stands right behind its number: [0,7d]" if units else None
            raise self._unexpected("']' or ')' at the end of the interval", hint)
        closed = self.advance()
        whole = opened.span.to(closed.span)
        low = mfotl.Bound(low.value, low.unit, opened.value == "(")
        if high is not None:
            high = mfotl.Bound(high.value, high.unit, closed.value == ")")
        return mfotl.Interval(low, high, span=whole)

    def _bound(self, expected: str) -> tuple[mfotl.Bound, Span]:
        token = self.peek()
        if token.kind is Kind.INTEGER:
            self.advance()
            return mfotl.Bound(integer_of(token.value)), token.span
        if token.kind is Kind.DURATION:
            if token.value[-1] not in "smhd":
                hint = "s, m, h and d are seconds, minutes, hours and days"
                raise self.fail(f"'{token.value[-1]}' is not a unit of time", token.span, hint)
            self.advance()
            return mfotl.Bound(integer_of(token.value[:-1]), token.value[-1]), token.span  # type: ignore[arg-type]
        if self.at("-"):
            raise self.fail("the bound of an interval is negative", token.span, "times are counted from 0 up")
        raise self._unexpected(expected, "bounds are whole numbers, with or without a unit: [0,10] or [0,7d]")


def widened(node: Node, span: Span) -> Node:
    """A node whose place in the text includes its parentheses."""
    return dataclasses.replace(node, span=span)


def _number(token: Token) -> int | float:
    return integer_of(token.value) if token.kind is Kind.INTEGER else float(token.value)
