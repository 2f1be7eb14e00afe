"""The tokens of policies and of signatures.

Names follow MonPoly: they may go on with ``- / : ' "``, so ``x-1`` is one name, and ``x - 1`` is a difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hamlet.frontend.lexer import Kind, TokenTable

KEYWORDS = {
    **{word: word for word in ("TRUE", "FALSE", "LET", "IN", "NOT", "AND", "OR", "IMPLIES", "EQUIV", "EXISTS")},
    **{word: word for word in ("FORALL", "PREV", "NEXT", "ONCE", "EVENTUALLY", "ALWAYS", "HISTORICALLY")},
    **{word: word for word in ("SINCE", "UNTIL", "CNT", "SUM", "AVG", "MIN", "MAX", "MED", "SUBSTRING", "MATCHES")},
    **{word: word for word in ("MOD", "LETPAST", "TRIGGER", "RELEASE", "MATCHF", "MATCHP")},
    "PREVIOUS": "PREV",
    "SOMETIMES": "EVENTUALLY",
    "PAST_ALWAYS": "HISTORICALLY",
    "FORWARD": "MATCHF",
    "BACKWARD": "MATCHP",
}

_SIGNS = {
    "∧": "AND",
    "∨": "OR",
    "¬": "NOT",
    "→": "IMPLIES",
    "⟶": "IMPLIES",
    "⇒": "IMPLIES",
    "⟹": "IMPLIES",
    "↔": "EQUIV",
    "⟷": "EQUIV",
    "⇔": "EQUIV",
    "≡": "EQUIV",
    "∃": "EXISTS",
    "∀": "FORALL",
    "●": "PREV",
    "⚫": "PREV",
    "○": "NEXT",
    "◯": "NEXT",
    "⧫": "ONCE",
    "◆": "ONCE",
    "⬧": "ONCE",
    "♦": "ONCE",
    "◊": "EVENTUALLY",
    "◇": "EVENTUALLY",
    "⋄": "EVENTUALLY",
    "♢": "EVENTUALLY",
    "■": "HISTORICALLY",
    "▪": "HISTORICALLY",
    "□": "ALWAYS",
    "◻": "ALWAYS",
    "⊤": "TRUE",
    "⊥": "FALSE",
    "◁": "MATCHP",
    "▷": "MATCHF",
}
_SPELLINGS = {"≤": "<=", "≥": ">=", "∞": "*", "←": "<-", "−": "-", "–": "-", "∗": "*", "·": "*"}

_TOKEN = rf"""
    (?P<space>[\s\ufeff]+|\#[^\n\r]*|\(\*.*?\*\))
    | (?P<float>[0-9]+\.[0-9]*)
    | (?P<duration>[0-9]+[A-Za-z](?![\w\-/:'"]))
    | (?P<integer>[0-9]+(?![\w\-/:'"]))
    | (?P<regexp>r"(?:[^"\\]|\\.)*"|r'[^']*')
    | (?P<name>NAME)
    | (?P<string>"(?:[^"\\]|\\.)*"|'[^']*')
    | (?P<sign>[{"".join(_SIGNS)}])
    | (?P<match><\||\|>)
    | (?!\(\*)(?P<symbol><-|<=|>=|[-+*/().,;:=<>\[\]{{}}?|{"".join(_SPELLINGS)}])
    | (?P<bad>\(\*.*|["'][^\n]*|.)
    """
_SHIELDED = re.compile(r'\\(["\\])')  # in double quotes a backslash shields a quote or another one


def _read_formula(kind: str, match: re.Match[str]) -> tuple[Kind, str]:
    raw = match.group()
    if kind == "name" and raw in KEYWORDS:
        return Kind.KEYWORD, KEYWORDS[raw]
    return _read(kind, match)


def _read(kind: str, match: re.Match[str]) -> tuple[Kind, str]:
    """What a token is and says, without the way it is spelled."""
    raw = match.group()
    if kind == "match":
        return Kind.KEYWORD, "MATCHP" if raw == "<|" else "MATCHF"
    if kind == "sign":
        return Kind.KEYWORD, _SIGNS[raw]
    if kind == "symbol":
        return Kind.SYMBOL, _SPELLINGS.get(raw, raw)
    if kind == "string":
        return Kind.STRING, _SHIELDED.sub(r"\1", raw[1:-1]) if raw[0] == '"' else raw[1:-1]
    return Kind(kind), raw[2:-1] if kind == "regexp" else raw


def _complaint(raw: str) -> tuple[str, str | None]:
    """Message and hint for characters that start no token."""
    if raw.startswith("(*"):
        return "the comment that starts here is not closed", "close it with *)"
    if raw[0] in "\"'":
        return "the string that starts here is not closed", f"close it with {raw[0]}"
    if raw in "≠!":
        return f"unexpected character '{raw}'", "write NOT (x = y) for values that differ"
    if raw in "&|~":
        return f"unexpected character '{raw}'", "write AND, OR, NOT"
    return f"unexpected character {raw!r}", None


def _notation(name: str, read: Callable[[str, re.Match[str]], tuple[Kind, str]]) -> TokenTable:
    return TokenTable(re.compile(_TOKEN.replace("NAME", name), re.VERBOSE | re.DOTALL), _complaint, read)


FORMULA = _notation(r"\w[\w\-/:'\"]*", _read_formula)
SIGNATURE = _notation(r"\w+", _read)  # a colon ends a name, and no word is a keyword
