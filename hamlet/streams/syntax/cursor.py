"""A place in the tokens of a specification, and the messages about what was expected there.

The parser's functions move one `Cursor` forward. A mistake is recorded and unwinds (`UnreadableError`) to the statement
around it; reading goes on at the next one, so that one run finds them all.
"""

from __future__ import annotations

from collections.abc import Sequence

from hamlet.errors import near_miss, one_of
from hamlet.language.query import Span
from hamlet.streams.syntax.reports import Reports
from hamlet.streams.syntax.tokens import Kind, Token

STATEMENTS = ("input", "output", "trigger", "constant", "import", "include", "type")
CLAUSES = ("spawn", "eval", "close")
RESERVED = frozenset({
    "input", "output", "trigger", "constant", "import", "include", "spawn", "close", "with", "unless", "when", "if",
    "then", "else", "and", "or", "not", "forall", "exists", "any", "true", "false", "error", "self", "invariant",
})  # fmt: skip  # in any case of letters; eval and type are names elsewhere
MAX_DEPTH = 100  # brackets, method calls and signs inside each other
MAX_HEIGHT = 200  # levels of one expression, sums of many terms among them
MAX_PROBLEMS = 1000  # a file that is no specification at all is not listed to its end

_ALIKE = 0.75  # how alike a word and the keyword that it was meant to be are; names of users are words, too
_LONGEST_QUOTE = 40  # characters of the text that a message repeats


class UnreadableError(Exception):
    """Unwinds to the statement around a mistake; the message is recorded already."""


class TooManyProblemsError(Exception):
    """Unwinds to the start: the limit of messages is reached."""


class Cursor:
    """Tokens with a current place.

    Parameters
    ----------
    tokens : sequence of Token
        Ends with a `Kind.END`.
    reports : Reports
        Messages so far; grows.
    """

    def __init__(self, tokens: Sequence[Token], reports: Reports) -> None:
        self.reports = reports
        self.depth = 0
        self.index = 0
        self._tokens = tokens

    # ------------------------------------------------------------------------------------------ looking

    def peek(self, offset: int = 0) -> Token:
        """The token at the place, or some tokens further; the end repeats itself."""
        return self._tokens[max(0, min(self.index + offset, len(self._tokens) - 1))]

    def at(self, *symbols: str, offset: int = 0) -> bool:
        """Whether one of these symbols comes next."""
        token = self.peek(offset)
        return token.kind is Kind.SYMBOL and token.value in symbols

    def at_word(self, *words: str, offset: int = 0) -> bool:
        """Whether one of these words comes next."""
        token = self.peek(offset)
        return token.kind is Kind.WORD and token.value in words

    def at_kind(self, *kinds: Kind, offset: int = 0) -> bool:
        """Whether a token of one of these kinds comes next."""
        return self.peek(offset).kind in kinds

    def at_statement(self) -> bool:
        """Whether a new statement, or its tags, or nothing more comes next."""
        if self.at_word("type"):  # a name, unless a declaration follows
            return self.at_kind(Kind.WORD, offset=1) and self.at("{", offset=2)
        return self.at_kind(Kind.END) or self.at_word(*STATEMENTS) or (self.at("#") and self.at("[", offset=1))

    # ------------------------------------------------------------------------------------------- moving

    def advance(self) -> Token:
        """The token at the place; the place moves on."""
        token = self.peek()
        self.index += 1
        return token

    def take(self, *symbols: str) -> Token | None:
        """The next token if it is one of these symbols."""
        return self.advance() if self.at(*symbols) else None

    def take_word(self, *words: str) -> Token | None:
        """The next token if it is one of these words."""
        return self.advance() if self.at_word(*words) else None

    def take_name(self, what: str) -> Token:
        """The next token as a name; keywords are none."""
        token = self.peek()
        reserved = token.value.lower() in RESERVED
        if token.kind is not Kind.WORD or reserved or not token.value[0].isascii():
            hint = f"'{token.value}' is a keyword; take another name" if reserved else None
            raise self.expected([what], hint=hint)
        return self.advance()

    def since(self, start: Span) -> Span:
        """From the start of `start` to the end of the last token taken."""
        return start.to(self._tokens[max(0, self.index - 1)].span)

    # ----------------------------------------------------------------------------------------- messages

    def report(self, message: str, span: Span, hint: str | None = None) -> None:
        """Record a mistake and go on."""
        self.reports.error(message, span, hint)
        if len(self.reports.errors) >= MAX_PROBLEMS:
            raise TooManyProblemsError

    def fail(self, message: str, span: Span, hint: str | None = None) -> UnreadableError:
        """Record a mistake; the caller raises what comes back."""
        self.report(message, span, hint)
        return UnreadableError()

    def expected(self, what: Sequence[str], hint: str | None = None) -> UnreadableError:
        """Say what should stand at the place; the caller raises what comes back.

        Parameters
        ----------
        what : sequence of str
            What would be right, in the user's words: ``"')'"``, ``"a type"``.
        hint : str, optional
            What to write instead.
        """
        token = self.peek()
        if token.kind is Kind.BAD:
            return UnreadableError()  # the token's own message says it
        message = f"expected {one_of(what)}"
        if self.index:
            quoted = self.reports.quote(self._tokens[self.index - 1].span, _LONGEST_QUOTE)
            message += f" after {quoted}"
        if token.kind is Kind.END:
            message += ", but the text ends here"
        return self.fail(message, token.span, hint)

    def near(self, words: Sequence[str]) -> str | None:
        """The keyword that the next word was probably meant to be; None if it is none of them or is one exactly."""
        token = self.peek()
        if token.kind is not Kind.WORD or token.value in words:
            return None
        return near_miss(token.value, words, _ALIKE)

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
