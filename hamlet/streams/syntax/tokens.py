"""Text to tokens: the words, numbers, strings and symbols of a specification, each with its place.

What cannot be a token (a quote that is never closed) becomes one `Kind.BAD` token and one message, so that the parser
can go on behind it without complaining twice.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from hamlet.language.query import Span


class Kind(enum.Enum):
    """What a token is."""

    WORD = "word"  # price, eval, q1::count, Σ: a name or a keyword, the parser decides
    NUMBER = "number"  # with its unit, without its sign
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
        A string without its quotes, a symbol in its one spelling (``&&`` for ``∧``), else the text.
    span : Span
        Where it stands; for the end of the text, just behind the last token.
    """

    kind: Kind
    value: str
    span: Span


SPELLINGS = {
    "==": "=",
    "≠": "!=",
    "≤": "<=",
    "≥": ">=",
    "∧": "&&",
    "∨": "||",
    "→": "->",
    "¬": "!",
}
_WORD_SPELLINGS = {"⊤": "true", "⊥": "false", "μ": "µ"}

_TYPOGRAPHIC = "‘’“”„«»"
_TOKEN = re.compile(
    rf"""
      (?P<space>[\s\ufeff]+|//[^\n]*|/\*.*?\*/)
    | (?P<raw>r(?P<hashes>\#*)"(?P<inside>.*?)"(?P=hashes))
    | (?P<number>[0-9]+(?:\.(?![^\W\d_])[0-9]*)?(?:e[+-]?[0-9]+)?[^\W\d_]*)
    | (?P<word>[A-Za-z_](?:\w|::)*|σ²|[Σ∫∃∀σµμ⊤⊥])
    | (?P<string>"(?:\\"|[^"])*")
    | (?P<symbol>:=|->|&&|\|\||\*\*|<<|>>|<=|>=|!=|==|/(?!\*)|[-+*%&|^~!=<>()\[\]{{}},:.@?\#≠≤≥∧∨→¬])
    | (?P<bad>"|/\*|[{_TYPOGRAPHIC}](?:[^{_TYPOGRAPHIC}\n]{{0,60}}[{_TYPOGRAPHIC}])?|'[^'\n]*'?|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIGITS = re.compile(r"[0-9]+")

# A text over several lines, one of which starts like a statement, is a quote that somebody forgot to close.
_STATEMENT_LINE = re.compile(r"\n\s*(?:input|output|trigger|constant)\s")


def tokenize(text: str, shift: int = 0) -> tuple[list[Token], list[tuple[str, Span, str | None]]]:
    """Split a specification's text into tokens.

    Parameters
    ----------
    text : str
        The whole file.
    shift : int
        Added to every place: where an included file begins in the numbering of all texts.

    Returns
    -------
    (list of Token, list of (str, Span, str or None))
        The tokens, the last one `Kind.END`, and message, place and hint for each BAD token.
    """
    tokens: list[Token] = []
    problems: list[tuple[str, Span, str | None]] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if tokens and tokens[-1].value == "." and tokens[-1].kind is Kind.SYMBOL:  # pair.0.1: no decimal point here
            match = _DIGITS.match(text, position) or match
        assert match is not None  # the last alternative takes any character
        kind = str(match.lastgroup) if match.re is _TOKEN else "number"
        if match.re is _TOKEN and match["raw"] is not None:
            kind = "raw"
        raw = match.group()
        position = match.end()
        if kind == "space":
            continue
        if kind == "string" and "\n" in raw and _STATEMENT_LINE.search(raw):
            kind, raw = "bad", raw[: raw.index("\n")].rstrip("\r")
            position = match.start() + len(raw)
        elif kind == "bad" and raw == "/*":
            raw, position = text[match.start() :], len(text)
        span = Span(match.start() + shift, position + shift)
        if kind == "bad":
            message, hint = _complaint(raw)
            problems.append((message, Span(span.start, span.start + max(1, len(raw.split("\n")[0]))), hint))
        value = match["inside"] if kind == "raw" else _value(kind, raw)
        tokens.append(Token(Kind.STRING if kind == "raw" else Kind(kind), value, span))
    last = tokens[-1].span.end if tokens else shift
    tokens.append(Token(Kind.END, "", Span(last, last)))
    return tokens, problems


def canonical(text: str) -> str:
    """A text that has been read, without comments and layout: texts that say the same, token by token, are equal."""
    tokens, _ = tokenize(text)
    return " ".join(repr(each.value) if each.kind is Kind.STRING else each.value for each in tokens[:-1])


def _value(kind: str, raw: str) -> str:
    """What a token says, without the way it is spelled."""
    if kind == "string":
        return raw[1:-1]
    if kind == "word":
        return _WORD_SPELLINGS.get(raw, raw)
    return SPELLINGS.get(raw, raw) if kind == "symbol" else raw


def _complaint(raw: str) -> tuple[str, str | None]:
    """Message and hint for characters that start no token."""
    first = raw[:1]
    if first == '"':
        return "the string that starts here is not closed", 'close it with "'
    if first == "'":
        return "a string is written in double quotes", f'write "{raw.strip(chr(39))}"'
    if first == "/":
        return "the comment that starts here is not closed", "close it with */"
    if first in _TYPOGRAPHIC:
        straight = raw.strip(_TYPOGRAPHIC)
        return f"a typographic quote {first} is not part of the language", f'use straight quotes: "{straight}"'
    hints = {
        ";": "statements need no end; leave it out",
        "$": "a stream is called by its name alone",
        "−": "use the minus sign of the keyboard: -",
        "–": "use the minus sign of the keyboard: -",
        "\\": "a line needs no sign to go on in the next one",
    }
    shown = f"{raw!r}" if raw.isprintable() else "character " + " ".join(f"U+{ord(letter):04X}" for letter in raw[:4])
    return f"unexpected {shown}", hints.get(first)
