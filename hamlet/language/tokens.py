"""Text to tokens: the words, numbers, strings and symbols of a workload file, each with its place.

What cannot be a token (``@``, a quote that is never closed) becomes one `Kind.BAD` token and one message, so that
the parser can go on behind it without complaining twice. Source: docs/language.md ("A query").
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from hamlet.errors import Diagnostic
from hamlet.language.query import Span


class Kind(enum.Enum):
    """What a token is."""

    WORD = "word"  # Travel, within: a name or a keyword, the parser decides
    NAME = "name"  # "any text": never a keyword
    NUMBER = "number"
    STRING = "string"
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
        A name or string without its quotes, a symbol in its one spelling (``<>`` for ``!=``), else the text.
    span : Span
        Where it stands; for the end of the text, just behind the last token.
    """

    kind: Kind
    value: str
    span: Span


# One spelling for each symbol: what is typed, and what comes with copying from a paper.
SPELLINGS = {
    "==": "=",
    "!=": "<>",
    "≠": "<>",
    "≤": "<=",
    "≥": ">=",
    "∨": "|",
    "∧": "&",
    "∗": "*",
    "−": "-",
    "–": "-",
    "‐": "-",
    "‑": "-",
}

_TYPOGRAPHIC = "‘’“”„«»`´"
_SYMBOLS = r"\-+*/%()\[\]{},.;:=<>?|&≠≤≥∨∧∗−–‐‑"
_TOKEN = re.compile(
    rf"""
      (?P<space>[\s\ufeff]+|--[^\n]*)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[^\W\d]\w*)
    | (?P<string>'[^']*'(?:'[^']*')*)
    | (?P<name>"[^"]*"(?:"[^"]*")*)
    | (?P<symbol><>|!=|<=|>=|==|[{_SYMBOLS}])
    | (?P<bad>['"][^\n]*
            | [{_TYPOGRAPHIC}](?:[^{_TYPOGRAPHIC}\n;]{{0,60}}[{_TYPOGRAPHIC}])?
            | [^\w\s'"{_TYPOGRAPHIC}{_SYMBOLS}]+
            | [^\n])
    """,
    re.VERBOSE,
)

# A text over several lines, one of which starts like a clause, is a quote that somebody forgot to close.
_CLAUSE_LINE = re.compile(
    r"\n\s*(?:(?:RETURN|PATTERN|WHERE|GROUP\s*-?\s*BY|WITHIN|SLIDE|EVENT)\b|\w+\s*:\s*RETURN\b)", re.IGNORECASE
)


def tokenize(text: str, source: str) -> tuple[list[Token], list[Diagnostic]]:
    """Split a workload's text into tokens.

    Parameters
    ----------
    text : str
        The whole file.
    source : str
        The file's name for messages.

    Returns
    -------
    (list of Token, list of Diagnostic)
        The tokens, the last one `Kind.END`, and one message for each BAD token.
    """
    tokens: list[Token] = []
    problems: list[Diagnostic] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative takes any character
        kind, raw = str(match.lastgroup), match.group()
        position = match.end()
        if kind == "space":
            continue
        if kind in ("string", "name") and "\n" in raw and _CLAUSE_LINE.search(raw):
            kind, raw = "bad", raw[: raw.index("\n")].rstrip("\r")
            position = match.start() + len(raw)
        span = Span(match.start(), position)
        if kind == "bad":
            raw = raw.rstrip()
            span = Span(span.start, span.start + max(1, len(raw)))
            message, hint = _complaint(raw)
            problems.append(Diagnostic(message, span, hint, text=text, source=source))
        tokens.append(Token(Kind(kind), _value(kind, raw), span))
    last = tokens[-1].span.end if tokens else 0
    tokens.append(Token(Kind.END, "", Span(last, last)))
    return tokens, problems


def _value(kind: str, raw: str) -> str:
    """What a token says, without the way it is spelled."""
    if kind == "string":
        return raw[1:-1].replace("''", "'")
    if kind == "name":
        return raw[1:-1].replace('""', '"')
    return SPELLINGS.get(raw, raw) if kind == "symbol" else raw


_QUOTED_NAME = 'a name with special characters is written "in double quotes"'


def _complaint(raw: str) -> tuple[str, str | None]:
    """Message and hint for characters that start no token."""
    first = raw[:1]
    if first == "'":
        return "the string that starts here is not closed", "close it with ' on the same line; a quote inside is ''"
    if first == '"':
        return "the name that starts here is not closed", 'close it with " on the same line; a quote inside is ""'
    if first in "‘’“”„«»´":
        straight = raw.strip("‘’“”„«»´`")
        return f"a typographic quote {first} is not part of the language", f"use straight quotes: '{straight}'"
    if first == "`":
        return "a backtick is not part of the language", _QUOTED_NAME
    hints = {
        "!": "write NOT for the absence of a pattern and <> or != for unequal",
        "#": "a comment starts with --",
        "~": "write NOT for the absence of a pattern",
        "¬": "write NOT",
        "→": "write SEQ(A, B) for A followed by B",
        "$": "an attribute is written with its variable, T.speed",
        "^": "powers are not part of the language; write T.speed * T.speed",
        "\\": "a quote inside a string is written twice: 'it''s'",
    }
    shown = raw if raw.isprintable() else " ".join(f"U+{ord(letter):04X}" for letter in raw)
    if len(shown) > 20:
        shown = shown[:20] + "..."
    hint = hints.get(first, _QUOTED_NAME)
    return f"unexpected {shown!r}" if raw.isprintable() else f"unexpected character {shown}", hint
