"""Regular expressions over time, behind MATCHP and MATCHF.

The grammar stands in `hamlet.policies.syntax.parser`.
"""

from __future__ import annotations

from hamlet.frontend.lexer import Kind
from hamlet.policies.syntax.formula import AGGREGATIONS, UNARY, Formula, TemporalMatch
from hamlet.policies.syntax.parse_terms import ReadingError, TermParser
from hamlet.policies.syntax.regex import Alternation, Concatenation, Regex, Star, Step, Test, Wildcard

_ADVICE = (
    "concatenation and + bind alike and group to the right",
    "put parentheses around what is meant: (a() b()) + c()",
)
_STARTS = (Kind.NAME, Kind.INTEGER, Kind.FLOAT, Kind.STRING)
_WORDS = (*UNARY, "EXISTS", "FORALL", "NOT", "MATCHP", "MATCHF", "TRUE", "FALSE")


class RegexParser(TermParser):
    """Expressions; a subclass reads the formulas in them."""

    def _prefix(self) -> Formula:
        """A formula up to the first binary operator behind it."""
        raise NotImplementedError

    _matches = 0  # MATCHP and MATCHF that are being read, one in the expression of the other

    def _match(self) -> Formula:
        """``MATCHP[0,5] r``."""
        token = self.advance()
        interval = self._interval()
        self._matches += 1
        try:
            regex = self._regex()
        finally:
            self._matches -= 1
        operator = "MATCHP" if token.value == "MATCHP" else "MATCHF"
        return TemporalMatch(operator, interval, regex, span=token.span.to(self.last()))  # type: ignore[arg-type]

    def _regex(self) -> Regex:
        """Items one behind the other, or with + between; both group to the right."""
        start = self.peek().span
        items, joins = [self._item()], []
        while self.at("+") or self._at_item():
            joins.append(self.at("+"))
            if joins[-1]:
                self.advance()
            items.append(self._item())
        if len(set(joins)) > 1:
            self.warnings.append((start.to(self.last()), _ADVICE))
        made = items.pop()
        for item, alternative in zip(reversed(items), reversed(joins), strict=True):
            made = Alternation(item, made) if alternative else Concatenation(item, made)
        return made

    def _at_item(self) -> bool:
        token = self.peek()
        if token.kind is Kind.NAME and token.value in "SU":  # SINCE and UNTIL
            return False
        return token.kind in _STARTS or self.at("(", ".", "-") or self.at_word(*_WORDS)

    def _item(self) -> Regex:
        """A letter, or an expression in parentheses, and the stars behind it."""
        if not self._at_item():
            raise self._unexpected("a formula or '.' in the expression", "write for instance MATCHP a() (. b()?)*")
        if self.at("."):
            self.advance()
            made: Regex = Wildcard()
        elif self.at("("):
            made = self._bracketed()
        else:
            if self.at_kind(Kind.NAME) and self.at("<-", offset=1) and self.at_word(*AGGREGATIONS, offset=2):
                raise self.fail("an aggregation in an expression needs parentheses", self.peek().span, "( r <- ... )")
            made = self._letter(self._prefix())
        while self.at("*"):
            self.advance()
            made = Star(made)
        if self.at("?") and self._matches == 1:  # else it stands behind the whole MATCHP, as in MATCHP MATCHF a()? ?
            raise self.fail("'?' stands behind a formula only", self.peek().span, "write a()? or (a() AND b())?")
        return made

    def _letter(self, formula: Formula) -> Regex:
        if not self.at("?"):
            return Step(formula)
        self.advance()
        return Test(formula)

    def _bracketed(self) -> Regex:
        """What stands in parentheses: a formula if it can be one, else an expression."""
        start, depth, warned = self.index, self.depth, len(self.warnings)
        try:
            return self._letter(self._prefix())
        except ReadingError as error:
            first = error
        self.index, self.depth = start, depth
        del self.warnings[warned:]
        self.depth += 1
        self.advance()
        try:
            made = self._regex()
            self._expect(")", "or an item of the expression", "AND, OR and the like stand in parentheses there")
        except ReadingError as error:
            raise (first if first.span.start > error.span.start else error) from None
        self.depth -= 1
        return made
