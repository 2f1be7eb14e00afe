"""Where the clauses of a text stand, and its tokens.

The host's tokenizer reads everything but row patterns: ``{-``, ``+?`` or ``$`` mean other things in SQL, so the inside
of each ``PATTERN ( ... )`` is blanked before, and every offset stays what it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hamlet.errors import Span, UnsupportedError
from hamlet.frontend.reports import Reports

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

DIALECTS = ("duckdb", "trino", "snowflake", "oracle", "flink", "bigquery", "spark")
_BACKSLASHES = {"bigquery", "spark", "snowflake", "flink"}  # dialects whose texts have escapes

_PIECE = re.compile(
    r"""(?P<text>'(?:[^']|'')*')|(?P<name>"(?:[^"]|"")*"|`[^`]*`)|(?P<comment>--[^\n]*|/\*.*?\*/)"""
    r"""|(?P<heredoc>\$(?P<tag>[A-Za-z_]*)\$.*?\$(?P=tag)\$)|(?P<word>[^\W\d]\w*)|(?P<other>.)""",
    re.DOTALL,
)
_ESCAPED = re.compile(_PIECE.pattern.replace("'(?:[^']|'')*'", r"'(?:[^'\\]|''|\\.)*'"), re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the host's SQL.

    Attributes
    ----------
    text : str
        As it stands, a quoted name without its quotes.
    span : Span
    kind : {'word', 'name', 'text', 'number', 'other'}
        ``name`` is a quoted identifier, ``word`` an unquoted one or a keyword.
    """

    text: str
    span: Span
    kind: str

    def is_word(self, *words: str) -> bool:
        """Whether it is one of some keywords."""
        return self.kind == "word" and self.text.upper() in words

    @property
    def ends_value(self) -> bool:
        """Whether a name behind it can only be one that AS has been left out of."""
        joins = self.is_word("AND", "OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "BETWEEN", "COLLATE", "DISTINCT")
        return self.text in (")", "]") or (self.kind != "other" and not joins)

    @property
    def is_identifier(self) -> bool:
        """Whether it can be a name."""
        return self.kind in ("word", "name")


@dataclass(frozen=True)
class Quoting:
    """Which names have to stand in quotes.

    Attributes
    ----------
    keywords : frozenset of str
        Of the dialect and the host, in lower case: they may not be names where they are meant to be one.
    no_columns : frozenset of str
        Those that the host takes for no column where they stand alone.
    reserved : frozenset of str
        Those of them that are part of no expression.
    start, end : str
        The quotes of the dialect.
    """

    keywords: frozenset[str]
    no_columns: frozenset[str]
    reserved: frozenset[str]
    start: str
    end: str

    def alone(self, name: str) -> str:
        """A name that stood behind a variable, as it can stand alone; shared texts stay equal else."""
        return f"{self.start}{name}{self.end}" if name.lower() in self.keywords else name


WHOLE_DIVISION = ("trino", "flink")  # dialects in which one whole number by another is a whole number


def dialect_of(name: str) -> Dialect:
    """The parser of a dialect.

    Raises
    ------
    UnsupportedError
        If it is not known, or where sqlglot is not installed.
    """
    try:
        from sqlglot.dialects.dialect import Dialect
    except ImportError:
        raise UnsupportedError(
            "row patterns need sqlglot and duckdb, which are not installed: pip install 'hamlet-cep[sql]'"
        ) from None
    if name not in DIALECTS:
        raise UnsupportedError(f"dialect {name!r} is not known; choose one of {', '.join(DIALECTS)}")
    return Dialect.get_or_raise("spark" if name == "flink" else name)


def without_layout(text: str) -> str:
    """A text without comments, and with one blank where it has several between words."""
    if "\\" in text:  # what a backslash means differs between dialects
        return " ".join(text.split())
    pieces: list[str] = []
    for match in _PIECE.finditer(text):
        blank = match.lastgroup == "comment" or match[0].isspace()
        if not blank:
            pieces.append(match[0])
        elif pieces and pieces[-1] != " ":
            pieces.append(" ")
    return "".join(pieces).strip()


def pattern_bodies(text: str, dialect: str) -> list[Span]:
    """The insides of all ``PATTERN ( ... )`` in MATCH_RECOGNIZE clauses, without the parentheses."""
    found: list[Span] = []
    if "match_recognize" not in text.lower():
        return found
    piece = _ESCAPED if dialect in _BACKSLASHES else _PIECE
    depth, clauses, last, place = 0, [], "", 0
    while place < len(text):
        match = piece.match(text, place)
        assert match is not None
        place = match.end()
        kind = match.lastgroup
        if kind == "comment" or match[0].isspace():
            continue
        if match[0] == "(":
            depth += 1
            if last == "MATCH_RECOGNIZE":
                clauses.append(depth)
            elif last == "PATTERN" and clauses and clauses[-1] == depth - 1:
                end = _end_of_pattern(text, place)
                found.append(Span(place, end))
                place = end
        elif match[0] == ")":
            if clauses and clauses[-1] == depth:
                clauses.pop()
            depth -= 1
        last = match[0].upper() if match["word"] else ""
    return found


def _end_of_pattern(text: str, place: int) -> int:
    """Where the parenthesis closes that was opened before a row pattern, or the end of the text."""
    depth = 1
    for match in re.compile(r"""'[^']*'|"(?:[^"]|"")*"|`[^`]*`|--[^\n]*|/\*.*?\*/|.""", re.DOTALL).finditer(
        text, place
    ):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.start()
    return len(text)


def tokens_of(text: str, dialect: str, bodies: Sequence[Span], reports: Reports) -> list[Token]:
    """The tokens of a text whose row patterns are left out; none, and an error, where it cannot be read."""
    from sqlglot import TokenType
    from sqlglot.errors import SqlglotError

    reader = dialect_of(dialect)
    blanked = list(text)
    for span in bodies:
        blanked[span.start : span.end] = " " * (span.end - span.start)
    try:
        found = reader.tokenize("".join(blanked))
    except (SqlglotError, ValueError) as error:
        reports.error(_reason(error), _unclosed(text), "close every quote and comment")
        return []
    kinds = {TokenType.IDENTIFIER: "name", TokenType.NUMBER: "number"}
    tokens = []
    for each in found:
        kind = kinds.get(each.token_type)
        if kind is None:
            if each.token_type.name.endswith("STRING"):
                kind = "text"
            else:
                kind = "word" if each.text[:1].isalpha() or each.text[:1] == "_" else "other"
        span = Span(each.start, each.end + 1)
        if kind == "word" and any(letter.isspace() for letter in text[span.start : span.end]):
            words = re.finditer(r"\w+", text[span.start : span.end])  # ORDER BY is one token there
            tokens += [Token(word[0], Span(span.start + word.start(), span.start + word.end()), kind) for word in words]
        else:
            tokens.append(Token(each.text, span, kind))
    return tokens


def _reason(error: Exception) -> str:
    said = str(error).splitlines()[0]
    return f"this cannot be read as SQL: {said[:120]}"


def _unclosed(text: str) -> Span:
    """The first quote that is not closed, else the end of the text."""
    for match in _PIECE.finditer(text):
        if match["other"] and match[0] in "'\"`":
            return Span(match.start(), match.start() + 1)
    return Span(max(0, len(text.rstrip()) - 1), len(text.rstrip()))
