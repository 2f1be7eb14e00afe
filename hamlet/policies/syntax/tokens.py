"""Text of a policy or a signature to tokens, each with its place.

Names follow MonPoly: they may go on with ``- / : ' "``, so ``x-1`` is one name, and ``x - 1`` is a difference.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from hamlet.errors import Diagnostic
from hamlet.language.query import Span


class Kind(enum.Enum):
    """What a token is."""

    NAME = "name"
    KEYWORD = "keyword"
    INTEGER = "integer"
    DURATION = "duration"  # 10m
    FLOAT = "float"
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
        A string or a regular expression without its quotes, a keyword or a symbol in its one spelling, else the text.
    span : Span
        Where it stands; for the end of the text, just behind the last token.
    raw : str
        As it is written.
    """

    kind: Kind
    value: str
    span: Span
    raw: str


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

_TOKEN = re.compile(
    rf"""
      (?P<space>[\s\ufeff]+|\#[^\n\r]*|\(\*.*?\*\))
    | (?P<float>[0-9]+\.[0-9]*)
    | (?P<duration>[0-9]+[A-Za-z](?![\w\-/:'"]))
    | (?P<integer>[0-9]+(?![\w\-/:'"]))
    | (?P<regexp>r"(?:[^"\\]|\\.)*"|r'[^']*')
    | (?P<name>\w[\w\-/:'"]*)
    | (?P<string>"(?:[^"\\]|\\.)*"|'[^']*')
    | (?P<sign>[{"".join(_SIGNS)}])
    | (?P<match><\||\|>)
    | (?!\(\*)(?P<symbol><-|<=|>=|[-+*/().,;:=<>\[\]{{}}?|{"".join(_SPELLINGS)}])
    | (?P<bad>\(\*.*|["'][^\n]*|.)
    """,
    re.VERBOSE | re.DOTALL,
)


_SHIELDED = re.compile(r'\\(["\\])')  # in double quotes a backslash shields a quote or another one


def tokenize(text: str, source: str, *, dashes: bool = True) -> tuple[list[Token], list[Diagnostic]]:
    """Split a text into tokens.

    Parameters
    ----------
    text, source : str
        The whole file, and its name for messages.
    dashes : bool
        Whether names may contain ``- / : ' "``, as in formulas; in signatures a colon ends a name.

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
        if kind == "name" and not dashes:
            raw = re.match(r"\w+", raw)[0]  # type: ignore[index]  # a name begins with a letter
        span = Span(position, position + len(raw))
        position = span.end
        if kind == "space":
            continue
        if kind == "bad":
            message, hint = _complaint(raw)
            shown = Span(span.start, span.start + max(1, len(raw.split("\n")[0].rstrip())))
            problems.append(Diagnostic(message, shown, hint, text=text, source=source))
        tokens.append(_token(kind, raw, span, dashes))
    last = tokens[-1].span.end if tokens else 0
    tokens.append(Token(Kind.END, "", Span(last, last), ""))
    return tokens, problems


def _token(kind: str, raw: str, span: Span, formula: bool) -> Token:
    if kind == "name" and formula and raw in KEYWORDS:
        return Token(Kind.KEYWORD, KEYWORDS[raw], span, raw)
    if kind == "match":
        return Token(Kind.KEYWORD, "MATCHP" if raw == "<|" else "MATCHF", span, raw)
    if kind == "sign":
        return Token(Kind.KEYWORD, _SIGNS[raw], span, raw)
    if kind == "symbol":
        return Token(Kind.SYMBOL, _SPELLINGS.get(raw, raw), span, raw)
    text = _SHIELDED.sub(r"\1", raw[1:-1]) if raw[:1] == '"' else raw[1:-1]
    value = {"string": text, "regexp": raw[2:-1]}.get(kind, raw)
    return Token(Kind(kind), value, span, raw)


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
