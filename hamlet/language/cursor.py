"""A place in the tokens of a workload, and the messages about what was expected there.

The parser's functions move one `Cursor` forward. A mistake is recorded and unwinds (`UnreadableError`) to the clause or
statement around it, where the parser goes on, so that one run finds them all. Source: docs/language.md; docs/errors.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from hamlet.errors import Diagnostic, near_miss, one_of
from hamlet.language.query import Expression, Span
from hamlet.language.tokens import Kind, Token

CLAUSES = ("PATTERN", "SEMANTICS", "WHERE", "GROUP-BY", "HAVING", "TOP", "SPAN", "WITHIN", "SLIDE", "OFFSET")
MAX_DEPTH = 100  # nesting of patterns, of conditions and of arithmetic
MAX_PROBLEMS = 1000  # a file that is no workload at all is not listed to its end

Part = TypeVar("Part")

_ALIKE = 0.75  # how alike a word and the keyword that it was meant to be are; names of users are words, too
_LONGEST_QUOTE = 40  # characters of the text that a message repeats


class UnreadableError(Exception):
    """Unwinds to the clause or statement around a mistake; the message is recorded already."""


class TooManyProblemsError(Exception):
    """Unwinds to the start: the limit of messages is reached."""


class Cursor:
    """Tokens with a current place.

    Parameters
    ----------
    text, source : str
        The workload and its file name, for messages.
    tokens : sequence of Token
        Ends with a `Kind.END`.
    problems : list of Diagnostic
        Messages so far; grows in place.
    """

    def __init__(self, text: str, source: str, tokens: Sequence[Token], problems: list[Diagnostic]) -> None:
        self.text = text
        self.source = source
        self.problems = problems
        self.depth = 0
        self.operand: Callable[[Cursor], Expression] | None = None  # reads operands of results, in place of WHERE's
        self._tokens = tokens
        self.index = 0

    # ------------------------------------------------------------------------------------------ looking

    def peek(self, offset: int = 0) -> Token:
        """The token at the place, or some tokens further; the end repeats itself."""
        return self._tokens[min(self.index + offset, len(self._tokens) - 1)]

    def at(self, *symbols: str, offset: int = 0) -> bool:
        """Whether one of these symbols comes next."""
        token = self.peek(offset)
        return token.kind is Kind.SYMBOL and token.value in symbols

    def at_word(self, *words: str, offset: int = 0) -> bool:
        """Whether one of these keywords comes next, in any case; `words` are in capitals."""
        token = self.peek(offset)
        return token.kind is Kind.WORD and token.value.upper() in words

    def at_kind(self, *kinds: Kind, offset: int = 0) -> bool:
        """Whether a token of one of these kinds comes next."""
        return self.peek(offset).kind in kinds

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

    def starts_statement(self, offset: int = 0) -> bool:
        """Whether a query or a declaration begins here: ``name :``, ``RETURN item`` or ``EVENT Name (``."""
        following = self.peek(offset + 1)
        if self.at_kind(Kind.WORD, Kind.NAME, offset=offset) and self.at(":", offset=offset + 1):
            return True
        if following.kind not in (Kind.WORD, Kind.NAME):
            return False
        if self.at_word("EVENT", offset=offset):
            return self.at("(", offset=offset + 2)
        joined = self.at_word("AND", "OR", "AS", "IS", "IN", "BETWEEN", offset=offset + 1)
        return self.at_word("RETURN", offset=offset) and not joined and self.clause(offset + 1) is None

    def ends_statement(self) -> bool:
        """Whether nothing more of the current statement can follow."""
        return self.at_kind(Kind.END) or self.at(";") or self.starts_statement()

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
        """The next token if it is one of these keywords."""
        return self.advance() if self.at_word(*words) else None

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

    def since(self, start: Span) -> Span:
        """From the start of `start` to the end of the last token taken."""
        return start.to(self._tokens[max(0, self.index - 1)].span)

    def has_bad(self, begin: int) -> bool:
        """Whether a token since number `begin` was none; its message exists already."""
        return any(token.kind is Kind.BAD for token in self._tokens[begin : self.index])

    # ----------------------------------------------------------------------------------------- messages

    def report(self, message: str, span: Span, hint: str | None = None) -> None:
        """Record a mistake and go on."""
        self.problems.append(Diagnostic(message, span, hint, text=self.text, source=self.source))
        if len(self.problems) >= MAX_PROBLEMS:
            raise TooManyProblemsError

    def fail(self, message: str, span: Span, hint: str | None = None) -> UnreadableError:
        """Record a mistake; the caller raises what comes back."""
        self.report(message, span, hint)
        return UnreadableError()

    def expected(self, what: Sequence[str], after: Span | None = None, hint: str | None = None) -> UnreadableError:
        """Say what should stand at the place; the caller raises what comes back.

        Parameters
        ----------
        what : sequence of str
            What would be right, in the user's words: ``"')'"``, ``"a type"``.
        after : Span, optional
            What was read last, to be repeated in the message; the last token where it is long or not given.
        hint : str, optional
            What to write instead.
        """
        token = self.peek()
        if token.kind is Kind.BAD:
            return UnreadableError()  # the token's own message says it
        message = f"expected {one_of(what)}"
        quoted = self._quote(after)
        if quoted:
            message += f" after {quoted}"
        if token.kind is Kind.END:
            message += ", but the text ends here"
        return self.fail(message, token.span, hint)

    def _quote(self, span: Span | None) -> str:
        """Text to repeat in a message, in quotes; nothing at the start of the text."""
        last = self._tokens[self.index - 1].span if self.index else None
        for place in (span, last):
            if place is not None:
                words = " ".join(self.text[place.start : place.end].split())
                if 0 < len(words) <= _LONGEST_QUOTE:
                    return f"'{words}'"
        return ""

    def near(self, words: Collection[str]) -> str | None:
        """The keyword that the next word was probably meant to be; None if it is none of them or is one exactly."""
        token = self.peek()
        if token.kind is not Kind.WORD or token.value.upper() in words:
            return None
        return near_miss(token.value, sorted(words), _ALIKE)

    # --------------------------------------------------------------------------------------------- depth

    def deeper(self, span: Span, what: str) -> None:
        """Count one level of nesting; leaving it is the caller's ``cursor.depth -= 1``."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.too_deep(span, what)

    def check_depth(self, whole: Part, parts: Callable[[Part], Iterable[Part]], span: Span, what: str) -> None:
        """Check the depth of a part that has been read, where some nest without parentheses, as in ``A+++``."""
        level, deepest = [whole], 0
        while level:
            level, deepest = [part for each in level for part in parts(each)], deepest + 1
        if deepest > MAX_DEPTH:
            raise self.too_deep(span, what)

    def too_deep(self, span: Span, what: str) -> UnreadableError:
        """Say that a pattern or a condition nests too deeply; the caller raises what comes back."""
        hint = f"remove needless parentheses, or split the {what} over several queries"
        return self.fail(f"the {what} nests deeper than {MAX_DEPTH} levels", span, hint)

    def skip(self) -> None:
        """Go to the next clause keyword or the end of the statement, whichever comes first."""
        while not (self.ends_statement() or self.clause()):
            self.index += 1
