"""The words, numbers, strings and symbols of a specification."""

from __future__ import annotations

import re

from hamlet.frontend.lexer import Kind, TokenTable, character, tokenize
from hamlet.frontend.reports import Reports

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
    | (?P<bad>"|/\*.*|[{_TYPOGRAPHIC}](?:[^{_TYPOGRAPHIC}\n]{{0,60}}[{_TYPOGRAPHIC}])?|'[^'\n]*'?|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIGITS = re.compile(r"(?P<number>[0-9]+)")  # pair.0.1: no decimal point there

# A text over several lines, one of which starts like a statement, is a quote that somebody forgot to close.
_STATEMENT_LINE = re.compile(r"\n\s*(?:input|output|trigger|constant)\s")


def canonical(text: str) -> str:
    """A text that has been read, without comments and layout: texts that say the same, token by token, are equal."""
    tokens = tokenize(TOKENS, Reports(text, ""))
    return " ".join(repr(each.value) if each.kind is Kind.STRING else each.value for each in tokens[:-1])


def _read(kind: str, match: re.Match[str]) -> tuple[Kind, str]:
    """What a token is and says, without the way it is spelled."""
    raw = match.group()
    if kind == "raw":
        return Kind.STRING, match["inside"]
    if kind == "string":
        return Kind.STRING, raw[1:-1]
    if kind == "word":
        return Kind.WORD, _WORD_SPELLINGS.get(raw, raw)
    return Kind(kind), SPELLINGS.get(raw, raw) if kind == "symbol" else raw


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
    return f"unexpected {character(raw)}", hints.get(first)


TOKENS = TokenTable(_TOKEN, _complaint, _read, quotes=("string",), begins=_STATEMENT_LINE, behind={".": _DIGITS})
