"""A place in the tokens of a workload. Source: docs/language.md; docs/errors.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from hamlet.errors import Span
from hamlet.frontend import cursor
from hamlet.frontend.cursor import MAX_DEPTH, UnreadableError, allow_height, heights
from hamlet.frontend.lexer import Kind, Token
from hamlet.frontend.reports import Reports
from hamlet.language.query import Expression

CLAUSES = ("PATTERN", "SEMANTICS", "WHERE", "GROUP-BY", "HAVING", "TOP", "SPAN", "WITHIN", "SLIDE", "OFFSET")

MAX_CHAIN = 500  # operators in a row, without parentheses
Part = TypeVar("Part")


class Cursor(cursor.Cursor):
    """Tokens with a current place; keywords come in any case of letters."""

    def __init__(self, tokens: Sequence[Token], reports: Reports) -> None:
        super().__init__(tokens, reports)
        self.operand: Callable[[Cursor], Expression] | None = None  # reads operands of results, in place of WHERE's

    def word_of(self, token: Token) -> str | None:
        """A word in capitals."""
        return token.value.upper() if token.kind is Kind.WORD else None

    def clause(self, offset: int = 0) -> tuple[str, int] | None:
        """The clause keyword that comes next and how many tokens it takes: GROUP-BY has three spellings."""
        token = self.peek(offset)
        if token.kind is not Kind.WORD:
            return None
        word = token.value.upper()
        if word == "GROUPBY":
            return "GROUP-BY", 1
        if word == "GROUP":
            dashed = int(self.at("-", offset=offset + 1))
            return ("GROUP-BY", 2 + dashed) if self.at_word("BY", offset=offset + 1 + dashed) else None
        if word in ("SPAN", "TOP", "OFFSET"):  # before a number only: they are common names
            signed = int(self.at("-", offset=offset + 1))
            return (word, 1) if self.at_kind(Kind.NUMBER, offset=offset + 1 + signed) else None
        if word in ("SEMANTICS", "HAVING") and self._is_name_here(offset):
            return None
        return (word, 1) if word in CLAUSES else None

    def _is_name_here(self, offset: int) -> bool:
        """Whether HAVING or SEMANTICS is the name of something: nothing that could follow the keyword follows."""
        following = self.peek(offset + 1)
        if following.kind is Kind.WORD:
            return self.clause(offset + 1) is not None or self.at_word("AND", "OR", offset=offset + 1)
        return following.kind is Kind.SYMBOL and not self.at("-", "(", "[", offset=offset + 1)

    def starts_statement(self) -> bool:
        """Whether a query or a declaration begins here: ``name :``, ``RETURN item`` or ``EVENT Name (``."""
        following = self.peek(1)
        if self.at_kind(Kind.WORD, Kind.NAME) and self.at(":", offset=1):
            return True
        if following.kind not in (Kind.WORD, Kind.NAME):
            return False
        if self.at_word("EVENT"):
            return self.at("(", offset=2)
        joined = self.at_word("AND", "OR", "AS", "IS", "IN", "BETWEEN", offset=1)
        return self.at_word("RETURN") and not joined and self.clause(1) is None

    def ends_statement(self) -> bool:
        """Whether nothing more of the current statement can follow."""
        return self.at_kind(Kind.END) or self.at(";") or self.starts_statement()

    def take_operator(self, word: str, symbol: str) -> bool:
        """Consume AND or OR, spelled either way; the symbol twice is an error."""
        if not (self.take(symbol) or self.take_word(word)):
            return False
        if self.at(symbol):
            raise self.fail(f"'{symbol}{symbol}' is not part of the language", self.peek().span, f"write {word}")
        return True

    def take_name(self) -> str:
        """The next token, which is a word or a name, as a name."""
        token = self.advance()
        if not token.value:
            raise self.fail("a name cannot be empty", token.span, 'write something between the quotes, as in "A b"')
        return token.value

    def deeper(self, span: Span, what: str) -> None:
        """Count one level of nesting; leaving it is the caller's ``cursor.depth -= 1``."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.too_deep(span, what)

    def check_depth(
        self,
        whole: Part,
        parts: Callable[[Part], Iterable[Part]],
        span: Span,
        what: str,
        chain: Callable[[Part], bool] = lambda _: False,
    ) -> None:
        """Check the depth of a part that has been read, where some nest without parentheses, as in ``A+++``.

        `chain` says which parts are operators between two operands: a row of them is flat.
        """
        deepest, highest = heights(whole, parts, chain)
        if deepest > MAX_DEPTH:
            raise self.too_deep(span, what)
        if highest > MAX_CHAIN:
            hint = "add up a part of it in an attribute of the events"
            raise self.fail(f"the {what} has more than {MAX_CHAIN} operators in a row", span, hint)
        allow_height(highest)

    def too_deep(self, span: Span, what: str) -> UnreadableError:
        """Say that a pattern or a condition nests too deeply; the caller raises what comes back."""
        hint = f"remove needless parentheses, or split the {what} over several queries"
        return self.fail(f"the {what} nests deeper than {MAX_DEPTH} levels", span, hint)

    def skip(self) -> None:
        """Go to the next clause keyword or the end of the statement, whichever comes first."""
        while not (self.ends_statement() or self.clause()):
            self.index += 1
