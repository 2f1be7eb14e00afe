"""Text to tokens, by a notation's table of them.

What cannot be a token (a quote that is never closed) becomes one `Kind.BAD` token and one message, so that a parser can
go on behind it without complaining twice.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hamlet.errors import Span
from hamlet.frontend.reports import Reports


class Kind(enum.Enum):
    """What a token is."""

    WORD = "word"  # Travel, within: a name or a keyword, the parser decides
    NAME = "name"  # never a keyword
    KEYWORD = "keyword"  # never a name
    NUMBER = "number"
    INTEGER = "integer"
    FLOAT = "float"
    DURATION = "duration"  # 10m
    STRING = "string"
    REGEXP = "regexp"
    SYMBOL = "symbol"
    BAD = "bad"  # has its message already
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes
    ----------
    kind : Kind
        What it is.
    value : str
        A name or a string without its quotes, a keyword or a symbol in its one spelling, else the text.
    span : Span
        Where it stands; for the end of the text, just behind the last token.
    raw : str
        As it is written.
    """

    kind: Kind
    value: str
    span: Span
    raw: str


def _plainly(kind: str, match: re.Match[str]) -> tuple[Kind, str]:
    return Kind(kind), match.group()


@dataclass(frozen=True)
class TokenTable:
    """The tokens of a notation, for `tokenize`.

    Attributes
    ----------
    tokens : re.Pattern
        An alternative for each kind of token, a named group. ``space`` is passed over, ``bad`` is no token; one of them
        takes any character.
    complain : callable
        Message and hint for what is no token: its first line.
    read : callable
        The kind and the value of a token, from the group that it is and its match.
    quotes : tuple of str
        Groups that may go over several lines.
    begins : re.Pattern, optional
        What a quote contains that somebody forgot to close: a line that starts like a statement. It is bad, and ends
        with its first line.
    behind : mapping of str to re.Pattern
        What is looked for first behind a symbol.
    """

    tokens: re.Pattern[str]
    complain: Callable[[str], tuple[str, str | None]]
    read: Callable[[str, re.Match[str]], tuple[Kind, str]] = _plainly
    quotes: tuple[str, ...] = ()
    begins: re.Pattern[str] | None = None
    behind: Mapping[str, re.Pattern[str]] = field(default_factory=dict)


def tokenize(table: TokenTable, reports: Reports, text: str | None = None, *, shift: int = 0) -> list[Token]:
    """Split a text into tokens; the last one is `Kind.END`.

    Parameters
    ----------
    table : TokenTable
    reports : Reports
        Receives one message for each BAD token.
    text : str, optional
        That of the reports, where it is not given.
    shift : int
        Added to every place: where the text begins in the numbering of the reports.
    """
    text = reports.text if text is None else text
    tokens: list[Token] = []
    position, first = 0, None
    while position < len(text):
        match = (first and first.match(text, position)) or table.tokens.match(text, position)
        assert match is not None  # the last alternative takes any character
        kind, raw = str(match.lastgroup), match.group()
        start, position = position, match.end()
        if kind == "space":
            continue
        if kind in table.quotes and "\n" in raw and table.begins is not None and table.begins.search(raw):
            kind, raw = "bad", raw[: raw.index("\n")].rstrip("\r")
            position = start + len(raw)
        span = Span(start + shift, position + shift)
        if kind == "bad":
            said = raw.split("\n")[0].rstrip()
            message, hint = table.complain(said)
            reports.error(message, Span(span.start, span.start + len(said)), hint)
            token = Token(Kind.BAD, said, span, raw)
        else:
            token = Token(*table.read(kind, match), span, raw)
        tokens.append(token)
        first = table.behind.get(token.value) if token.kind is Kind.SYMBOL else None
    last = tokens[-1].span.end if tokens else shift
    tokens.append(Token(Kind.END, "", Span(last, last), ""))
    return tokens


def character(raw: str) -> str:
    """Characters that start no token, for a message: ``'@'``, or by their numbers where they cannot be shown."""
    if not raw.isprintable():
        return "character " + " ".join(f"U+{ord(letter):04X}" for letter in raw[:4])
    return repr(raw if len(raw) <= 20 else raw[:20] + "...")
