"""A place in the tokens of a specification."""

from __future__ import annotations

from hamlet.errors import Span
from hamlet.frontend import cursor
from hamlet.frontend.cursor import MAX_DEPTH, UnreadableError
from hamlet.frontend.lexer import Kind, Token

STATEMENTS = ("input", "output", "trigger", "constant", "import", "include", "type")
CLAUSES = ("spawn", "eval", "close")
RESERVED = frozenset({
    "input", "output", "trigger", "constant", "import", "include", "spawn", "close", "with", "unless", "when", "if",
    "then", "else", "and", "or", "not", "forall", "exists", "any", "true", "false", "error", "self", "invariant",
})  # fmt: skip  # in any case of letters; eval and type are names elsewhere
MAX_HEIGHT = 200  # levels of one expression; sums of many terms are one
MAX_CHAIN = 2_500  # operators in a row, without parentheses


class Cursor(cursor.Cursor):
    """Tokens with a current place."""

    def at_statement(self) -> bool:
        """Whether a new statement, or its tags, or nothing more comes next."""
        if self.at_word("type"):  # a name, unless a declaration follows
            return self.at_kind(Kind.WORD, offset=1) and self.at("{", offset=2)
        return self.at_kind(Kind.END) or self.at_word(*STATEMENTS) or (self.at("#") and self.at("[", offset=1))

    def take_name(self, what: str) -> Token:
        """The next token as a name; keywords are none."""
        token = self.peek()
        reserved = token.value.lower() in RESERVED
        if token.kind is not Kind.WORD or reserved or not token.value[0].isascii():
            hint = f"'{token.value}' is a keyword; take another name" if reserved else None
            raise self.expected([what], hint=hint)
        return self.advance()

    def deeper(self, span: Span) -> None:
        """Count one level of nesting; leaving it is the caller's ``cursor.depth -= 1``."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.too_deep(span)

    def too_deep(self, span: Span) -> UnreadableError:
        """Say that an expression nests too deeply; the caller raises what comes back."""
        return self.fail(
            "this expression nests too deeply", span, "compute a part of it in an output of its own and use that"
        )
