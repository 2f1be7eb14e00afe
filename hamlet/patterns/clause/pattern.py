"""The grammar of row patterns, the one part of a statement that is not the host's.

::

    pattern      alternative ( '|' alternative )*
    alternative  ( primary quantifier? )*
    primary      variable | '^' | '$' | '(' pattern? ')' | PERMUTE '(' pattern, ... ')' | '{-' pattern '-}'
    quantifier   ( '*' | '+' | '?' | '{n}' | '{n,}' | '{,m}' | '{n,m}' ) '?'?
"""

from __future__ import annotations

import re

from hamlet.errors import Span
from hamlet.frontend.cursor import Cursor
from hamlet.frontend.lexer import Kind, Token, TokenTable, tokenize
from hamlet.frontend.reports import Reports
from hamlet.patterns.clause.tree import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Permutation,
    Quantified,
    RowPattern,
    Variable,
)

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)|(?P<name>"(?:[^"]|"")+"|`[^`]+`)|(?P<word>[^\W\d]\w*)|(?P<number>\d+)"""
    r"""|(?P<symbol>\{-|-\}|.)""",
    re.DOTALL,
)
_DEEPEST = 200  # parentheses in parentheses
MOST_ROUNDS = 1_000_000
_MARKS = ("{-", "-}", *"()|,*+?{}^$")


def _read(kind: str, match: re.Match[str]) -> tuple[Kind, str]:
    quoted = kind == "name"
    return Kind(kind), match[0][1:-1].replace('""', '"') if quoted else match[0]


def _complain(raw: str) -> tuple[str, str | None]:
    return f"unexpected {raw!r}", None  # every character is a symbol, and the grammar says what it expects instead


TOKENS = TokenTable(_TOKEN, _complain, _read)


class PatternParser(Cursor):
    """Reads one row pattern.

    Parameters
    ----------
    reports : Reports
        Of the whole text.
    body : Span
        Where the pattern stands, without its parentheses.

    Attributes
    ----------
    variables : dict of str to str
        Names as first written by folded names, in the order of the pattern.
    """

    def __init__(self, reports: Reports, body: Span) -> None:
        text = reports.text[body.start : body.end]
        super().__init__([*tokenize(TOKENS, reports, text, shift=body.start)[:-1], _end(body)], reports)
        self.variables: dict[str, str] = {}
        self._body = body
        self._failed = False

    def parse(self) -> RowPattern:
        """The pattern; the empty one where it is wrong, which is reported."""
        known = len(self.reports.errors)
        found = self._alternation()
        if not self.at_kind(Kind.END):
            self._wrong("expected a variable, a quantifier or '|'")
        elif self._empty and len(self.reports.errors) == known:
            self.reports.error(
                "the row pattern is empty", self.peek().span, "write () for the pattern that takes no row"
            )
        return found

    @property
    def _empty(self) -> bool:
        return len(self._tokens) == 1

    def _wrong(self, message: str, hint: str | None = None) -> None:
        token = self.peek()
        if self._failed:
            return  # one error of syntax is said; what follows it would be guessed
        self._failed = True
        said = ", and the pattern ends here" if token.kind is Kind.END else f", not {token.raw!r}"
        self.reports.error(message + said, token.span, hint)
        self.index = len(self._tokens) - 1

    def _expect(self, text: str, hint: str | None = None) -> None:
        if not self.take(text):
            self._wrong(f"expected {text!r}", hint)

    def _alternation(self) -> RowPattern:
        choices = [self._concatenation()]
        while self.take("|"):
            choices.append(self._concatenation())
        return choices[0] if len(choices) == 1 else Alternation(tuple(choices))

    def _concatenation(self) -> RowPattern:
        parts: list[RowPattern] = []
        while self.at_kind(Kind.WORD, Kind.NAME) or self.at("(", "{-", "^", "$"):
            parts.append(self._quantified())
        if not parts and not self._empty and (self.at_kind(Kind.END, Kind.NUMBER) or self.at(*_MARKS)):
            self._wrong("expected a variable", "write () for a choice that takes no row")
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _quantified(self) -> RowPattern:
        body = self._primary()
        token = self.take("*", "+", "?", "{")
        if token is None:
            return body
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(token.value, (0, None))
        if token.value == "{":
            low, high = self._bounds(token.span)
        greedy = not self.take("?")
        if self.at("*", "+", "?", "{"):
            self._wrong("expected the next part of the pattern", "put the quantified part into parentheses")
        return Quantified(body, low, high, greedy)

    def _bounds(self, start: Span) -> tuple[int, int | None]:
        low = self._number()
        high = low
        if self.take(","):
            high = self._number()
        elif low is None:
            self._wrong("expected a number of rounds", "write {n}, {n,}, {,m} or {n,m}")
            return 0, None
        self._expect("}")
        span = self.since(start)
        if high is not None and high < 1:
            self.reports.error("a quantifier must allow at least one round", span, "leave the part out, or write ()")
            return 0, 1
        if high is not None and low is not None and low > high:
            self.reports.error(
                f"the lower bound {low} is above the upper bound {high}", span, f"write {{{high},{low}}}"
            )
            return high, low
        if max(low or 0, high or 0) > MOST_ROUNDS:
            self.reports.error(f"a quantifier counts to {MOST_ROUNDS:,} at most", span)
            return 0, 1
        return low or 0, high

    def _number(self) -> int | None:
        if not self.at_kind(Kind.NUMBER):
            return None
        text = self.advance().value
        return int(text) if len(text) < 19 else 10**18

    def _primary(self) -> RowPattern:
        token = self.advance()
        if token.kind is Kind.WORD and token.value.upper() == "PERMUTE" and self.at("("):
            return self._permutation()
        if token.kind in (Kind.WORD, Kind.NAME):
            if token.value in ("^", "$"):
                self.reports.error(f"{token.raw} is no name of a variable", token.span, "give it another name")
            self.variables.setdefault(token.value.lower(), token.value)
            return Variable(token.value.lower())
        if token.value in ("^", "$"):
            return Anchor(token.value == "^")
        self.depth += 1
        if self.depth > _DEEPEST:
            self.reports.error(f"parentheses lie in one another more than {_DEEPEST} deep", token.span)
            self.index = len(self._tokens) - 1
            self.depth -= 1
            return Concatenation(())
        found: RowPattern = Concatenation(())
        if token.value == "{-":
            found = Exclusion(self._alternation())
            self._expect("-}", "an exclusion is written {- a b -}")
        elif not self.take(")"):
            found = self._alternation()
            self._expect(")")
        self.depth -= 1
        return found

    def _permutation(self) -> RowPattern:
        self._expect("(")
        parts = [self._alternation()]
        while self.take(","):
            parts.append(self._alternation())
        self._expect(")", "PERMUTE(a, b, c)")
        return Permutation(tuple(parts))


def _end(body: Span) -> Token:
    return Token(Kind.END, "", Span(body.end, body.end + 1), "")
