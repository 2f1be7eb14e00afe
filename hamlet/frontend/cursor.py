"""A place in the tokens of a text, and the messages about what was expected there.

A parser's functions move one `Cursor` forward. A mistake is recorded and unwinds (`UnreadableError`) to the statement
or clause around it, where the parser goes on, so that one run finds them all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

from hamlet.errors import Span, near_miss, one_of
from hamlet.frontend.lexer import Kind, Token
from hamlet.frontend.reports import Reports

MAX_DEPTH = 100  # nesting of what stands in brackets
_FRAMES = 20_000  # calls of Python that walk over the longest chain of operators
Part = TypeVar("Part")
MAX_PROBLEMS = 1000  # a file that is no text of the notation at all is not listed to its end

ALIKE = 0.75  # how alike a word and the keyword that it was meant to be are; names of users are words, too
_LONGEST_QUOTE = 40  # characters of the text that a message repeats


def heights(whole: Part, parts: Callable[[Part], Iterable[Part]], chain: Callable[[Part], bool]) -> tuple[int, int]:
    """How deep a part nests, and how high its tree is.

    Parameters
    ----------
    whole : Part
    parts : callable
        What is directly inside a part.
    chain : callable
        Whether a part joins its first one to what follows, as in ``a + b + c``; such a row of operators is flat.
    """
    todo, deepest, highest = [(whole, 1, 1)], 0, 0
    while todo:
        part, nesting, height = todo.pop()
        deepest, highest = max(deepest, nesting), max(highest, height)
        joined = chain(part)
        for place, each in enumerate(parts(part)):
            flat = joined and not place and chain(each)
            todo.append((each, nesting if flat else nesting + 1, height + 1))
    return deepest, highest


def allow_height(height: int) -> None:
    """Let functions that walk over a tree of this height recurse as deep, from now on."""
    if 4 * height > sys.getrecursionlimit():
        sys.setrecursionlimit(_FRAMES)


class UnreadableError(Exception):
    """Unwinds to the clause or statement around a mistake; the message is recorded already."""


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
        self.check_problems()

    # ------------------------------------------------------------------------------------------ looking

    def peek(self, offset: int = 0) -> Token:
        """The token at the place, or some tokens further; the end repeats itself."""
        return self._tokens[max(0, min(self.index + offset, len(self._tokens) - 1))]

    def word_of(self, token: Token) -> str | None:
        """A token as a keyword is compared with it, None where it cannot be one."""
        return token.value if token.kind is Kind.WORD else None

    def at(self, *symbols: str, offset: int = 0) -> bool:
        """Whether one of these symbols comes next."""
        token = self.peek(offset)
        return token.kind is Kind.SYMBOL and token.value in symbols

    def at_word(self, *words: str, offset: int = 0) -> bool:
        """Whether one of these keywords comes next."""
        return self.word_of(self.peek(offset)) in words

    def at_kind(self, *kinds: Kind, offset: int = 0) -> bool:
        """Whether a token of one of these kinds comes next."""
        return self.peek(offset).kind in kinds

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

    def last(self) -> Span:
        """The place of the last token taken."""
        return self._tokens[max(0, min(self.index, len(self._tokens)) - 1)].span

    def since(self, start: Span) -> Span:
        """From the start of `start` to the end of the last token taken."""
        return start.to(self.last())

    def has_bad(self, begin: int) -> bool:
        """Whether a token since number `begin` was none; its message exists already."""
        return any(token.kind is Kind.BAD for token in self._tokens[begin : self.index])

    # ----------------------------------------------------------------------------------------- messages

    def report(self, message: str, span: Span, hint: str | None = None) -> None:
        """Record a mistake and go on."""
        self.reports.error(message, span, hint)
        self.check_problems()

    def check_problems(self) -> None:
        """Unwind to the start where there are too many messages."""
        if len(self.reports.errors) >= MAX_PROBLEMS:
            del self.reports.errors[MAX_PROBLEMS:]
            raise TooManyProblemsError

    def fail(self, message: str, span: Span, hint: str | None = None) -> UnreadableError:
        """Record a mistake; the caller raises what comes back."""
        self.report(message, span, hint)
        return UnreadableError()

    def expected(self, what: Sequence[str], hint: str | None = None, *, after: Span | None = None) -> UnreadableError:
        """Say what should stand at the place; the caller raises what comes back.

        Parameters
        ----------
        what : sequence of str
            What would be right, in the user's words: ``"')'"``, ``"a type"``.
        hint : str, optional
            What to write instead.
        after : Span, optional
            What was read last, to be repeated in the message; the last token where it is long or not given.
        """
        token = self.peek()
        if token.kind is Kind.BAD:
            return UnreadableError()  # the token's own message says it
        return self.fail(self.sentence(one_of(what), token, after), token.span, hint)

    def sentence(self, what: str, token: Token, after: Span | None) -> str:
        """The message that something else should stand where a token is."""
        places = [each for each in (after, self.last() if self.index else None) if each is not None]
        short = next((each for each in places if 0 < len(self.reports.words(each)) <= _LONGEST_QUOTE), None)
        behind = short or (places[-1] if places else None)
        message = f"expected {what}" + (f" after {self.reports.quote(behind, _LONGEST_QUOTE)}" if behind else "")
        return message + ", but the text ends here" * (token.kind is Kind.END)

    def near(self, words: Collection[str]) -> str | None:
        """The keyword that the next word was probably meant to be; None if it is none of them or is one exactly."""
        word = self.word_of(self.peek())
        return None if word is None or word in words else near_miss(word, sorted(words), ALIKE)
