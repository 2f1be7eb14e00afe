"""The words, numbers, strings and symbols of a workload. Source: docs/language.md ("A query")."""

from __future__ import annotations

import re

from hamlet.frontend.lexer import Kind, TokenTable, character

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


def _read(kind: str, match: re.Match[str]) -> tuple[Kind, str]:
    """What a token is and says, without the way it is spelled."""
    raw = match.group()
    if kind == "string":
        return Kind.STRING, raw[1:-1].replace("''", "'")
    if kind == "name":
        return Kind.NAME, raw[1:-1].replace('""', '"')
    return Kind(kind), SPELLINGS.get(raw, raw) if kind == "symbol" else raw


COMMENT = "a comment starts with --"
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
        "#": COMMENT,
        "~": "write NOT for the absence of a pattern",
        "¬": "write NOT",
        "→": "write SEQ(A, B) for A followed by B",
        "$": "an attribute is written with its variable, T.speed",
        "^": "powers are not part of the language; write T.speed * T.speed",
        "\\": "a quote inside a string is written twice: 'it''s'",
    }
    return f"unexpected {character(raw)}", hints.get(first, _QUOTED_NAME)


TOKENS = TokenTable(_TOKEN, _complaint, _read, quotes=("string", "name"), begins=_CLAUSE_LINE)
