"""The grammar of row patterns, the one part of a statement that is not the host's.

::

    pattern      alternative ( '|' alternative )*
    alternative  ( primary quantifier? )*
    primary      variable | '^' | '$' | '(' pattern? ')' | PERMUTE '(' pattern, ... ')' | '{-' pattern '-}'
    quantifier   ( '*' | '+' | '?' | '{n}' | '{n,}' | '{,m}' | '{n,m}' ) '?'?
"""

from __future__ import annotations

import re

from hamlet.errors import Reports, Span
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
    r"""(?P<blank>\s+|--[^\n]*|/\*.*?\*/)|(?P<name>"(?:[^"]|"")+"|`[^`]+`)|(?P<word>[^\W\d]\w*)|(?P<number>\d+)"""
    r"""|(?P<mark>\{-|-\}|[()|,*+?{}^$])|(?P<bad>.)""",
    re.DOTALL,
)
_DEEPEST = 200  # parentheses in parentheses
MOST_ROUNDS = 1_000_000

_Token = tuple[str, str, Span]  # kind, text, place


class PatternParser:
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
        self.variables: dict[str, str] = {}
        self._reports, self._body = reports, body
        self._tokens: list[_Token] = []
        self._place = 0
        self._depth = 0
        for match in _TOKEN.finditer(reports.text, body.start, body.end):
            kind = match.lastgroup or ""
            if kind != "blank":
                self._tokens.append((kind, match[0], Span(match.start(), match.end())))
        self._tokens.append(("end", "", Span(body.end, body.end + 1)))

    def parse(self) -> RowPattern:
        """The pattern; the empty one where it is wrong, which is reported."""
        known = len(self._reports.errors)
        found = self._alternation()
        if self._text != "" or self._kind != "end":
            self._wrong("expected a variable, a quantifier or '|'")
        elif not self._tokens[:-1] and len(self._reports.errors) == known:
            self._reports.error(
                "the row pattern is empty", self._tokens[0][2], "write () for the pattern that takes no row"
            )
        return found

    @property
    def _kind(self) -> str:
        return self._tokens[self._place][0]

    @property
    def _text(self) -> str:
        return self._tokens[self._place][1]

    def _wrong(self, message: str, hint: str | None = None) -> None:
        kind, text, span = self._tokens[self._place]
        if kind == "end":
            message += ", and the pattern ends here"
        else:
            message += f", not {text!r}"
        self._reports.error(message, span, hint)
        self._place = len(self._tokens) - 1  # one error of syntax is said; what follows it would be guessed

    def _take(self, text: str) -> bool:
        if self._text == text and self._kind == "mark":
            self._place += 1
            return True
        return False

    def _expect(self, text: str, hint: str | None = None) -> None:
        if not self._take(text):
            self._wrong(f"expected {text!r}", hint)

    def _alternation(self) -> RowPattern:
        choices = [self._concatenation()]
        while self._take("|"):
            choices.append(self._concatenation())
        return choices[0] if len(choices) == 1 else Alternation(tuple(choices))

    def _concatenation(self) -> RowPattern:
        parts: list[RowPattern] = []
        first = self._place
        while self._kind in ("word", "name") or (self._kind == "mark" and self._text in ("(", "{-", "^", "$")):
            parts.append(self._quantified())
        if self._place == first and self._kind != "bad" and self._body.end > self._body.start and len(self._tokens) > 1:
            self._wrong("expected a variable", "write () for a choice that takes no row")
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _quantified(self) -> RowPattern:
        body = self._primary()
        kind, text, span = self._tokens[self._place]
        if kind != "mark" or text not in ("*", "+", "?", "{"):
            return body
        self._place += 1
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(text, (0, None))
        if text == "{":
            low, high = self._bounds(span)
        greedy = not self._take("?")
        kind, text, _ = self._tokens[self._place]
        if kind == "mark" and text in ("*", "+", "?", "{"):
            self._wrong("expected the next part of the pattern", "put the quantified part into parentheses")
        return Quantified(body, low, high, greedy)

    def _bounds(self, start: Span) -> tuple[int, int | None]:
        low = self._number()
        high = low
        if self._take(","):
            high = self._number()
            if low is None and high is None:
                self._wrong("expected a number of rounds", "write {n}, {n,}, {,m} or {n,m}")
                return 0, None
        elif low is None:
            self._wrong("expected a number of rounds", "write {n}, {n,}, {,m} or {n,m}")
            return 0, None
        self._expect("}")
        span = start.to(self._tokens[self._place - 1][2])
        if high is not None and high < 1:
            self._reports.error("a quantifier must allow at least one round", span, "leave the part out, or write ()")
            return 0, 1
        if high is not None and low is not None and low > high:
            self._reports.error(
                f"the lower bound {low} is above the upper bound {high}", span, f"write {{{high},{low}}}"
            )
            return high, low
        if max(low or 0, high or 0) > MOST_ROUNDS:
            self._reports.error(f"a quantifier counts to {MOST_ROUNDS:,} at most", span)
            return 0, 1
        return low or 0, high

    def _number(self) -> int | None:
        if self._kind != "number":
            return None
        text = self._text
        self._place += 1
        return int(text) if len(text) < 19 else 10**18

    def _primary(self) -> RowPattern:
        kind, text, span = self._tokens[self._place]
        self._place += 1
        if kind == "word" and text.upper() == "PERMUTE" and self._text == "(":
            return self._permutation()
        if kind in ("word", "name"):
            name = text if kind == "word" else text[1:-1].replace('""', '"')
            self.variables.setdefault(name.lower(), name)
            return Variable(name.lower())
        if text in ("^", "$"):
            return Anchor(text == "^")
        self._depth += 1
        if self._depth > _DEEPEST:
            self._reports.error(f"parentheses lie in one another more than {_DEEPEST} deep", span)
            self._place = len(self._tokens) - 1
            self._depth -= 1
            return Concatenation(())
        found: RowPattern = Concatenation(())
        if text == "{-":
            found = Exclusion(self._alternation())
            self._expect("-}", "an exclusion is written {- a b -}")
        elif not self._take(")"):
            found = self._alternation()
            self._expect(")")
        self._depth -= 1
        return found

    def _permutation(self) -> RowPattern:
        self._expect("(")
        parts = [self._alternation()]
        while self._take(","):
            parts.append(self._alternation())
        self._expect(")", "PERMUTE(a, b, c)")
        return Permutation(tuple(parts))
