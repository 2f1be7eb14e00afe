"""Statements: their MATCH_RECOGNIZE clauses, and the text around them, in which a clause becomes a table of rows."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from hamlet.errors import Span, near_miss
from hamlet.frontend.cursor import TooManyProblemsError
from hamlet.frontend.reports import Reports
from hamlet.patterns.clause.parser import ClauseParser, closing
from hamlet.patterns.clause.scan import Token, pattern_bodies, tokens_of
from hamlet.patterns.clause.tree import Clause

_CLAUSE = "MATCH_RECOGNIZE"
_BEFORE_A_TABLE = ("FROM", "JOIN", "LATERAL", "USING", "INTO", "UPDATE")


@dataclass
class Statement:
    """One statement of a text.

    Attributes
    ----------
    span : Span
    clauses : list of Clause
        Inner ones first.
    tokens : list of Token
        Those of the statement.
    """

    span: Span
    tokens: list[Token] = field(repr=False)
    clauses: list[Clause] = field(default_factory=list)


@dataclass
class Script:
    """A text of statements.

    Attributes
    ----------
    text, source : str
        The text and the name of its file.
    dialect : str
    statements : list of Statement
    """

    text: str
    source: str
    dialect: str
    statements: list[Statement] = field(default_factory=list)

    def reports(self) -> Reports:
        """A collection of errors about this text."""
        return Reports(self.text, self.source)


def parse(reports: Reports, dialect: str = "duckdb") -> Script:
    """All statements of a text; every mistake of every clause is reported."""
    text, source = reports.text, reports.source
    bodies = pattern_bodies(text, dialect)
    tokens = tokens_of(text, dialect, bodies, reports)
    script = Script(text, source, dialect)
    for part in _statements(tokens):
        statement = Statement(part[0].span.to(part[-1].span), part)
        by_place = {span.start: span for span in bodies}
        place = 0
        while place < len(part):
            _refuse_misspelled(part[place : place + 2], reports)
            if part[place].is_word("MATCH_RECOGNIZE") and part[place + 1 : place + 2] and part[place + 1].text == "(":
                first = _source_start(part, place)
                if first == place:
                    reports.error(
                        "MATCH_RECOGNIZE stands behind a table", part[place].span, "FROM ticks MATCH_RECOGNIZE ("
                    )
                elif _is_join(part[first:place]):
                    reports.error(
                        "MATCH_RECOGNIZE stands behind a table, not behind a join",
                        part[place].span,
                        "put the join into parentheses: FROM (SELECT ... FROM a JOIN b ON ...) MATCH_RECOGNIZE (",
                    )
                span = Span(part[first].span.start, part[place].span.start)
                parser = ClauseParser(reports, part, place, span, by_place)
                clause = None
                with contextlib.suppress(TooManyProblemsError):
                    clause = parser.parse()
                if clause is not None:
                    statement.clauses.append(clause)
                place = parser.end
            place += 1
        script.statements.append(statement)
    if not script.statements and not reports.errors:
        reports.error("there is no statement", Span(0, len(text)), "SELECT ... FROM t MATCH_RECOGNIZE (...)")
    return script


def _refuse_misspelled(tokens: Sequence[Token], reports: Reports) -> None:
    """Report MATCH_RECOGNISE ( and the like, which would be taken for the name of a table."""
    called = len(tokens) == 2 and tokens[0].kind == "word" and tokens[1].text == "("
    if called and not tokens[0].is_word(_CLAUSE) and near_miss(tokens[0].text, [_CLAUSE], 0.85) is not None:
        reports.error(f"there is no {tokens[0].text}", tokens[0].span, f"did you mean {_CLAUSE}?")


def _statements(tokens: Sequence[Token]) -> list[list[Token]]:
    """Tokens between semicolons."""
    found: list[list[Token]] = [[]]
    for each in tokens:
        if each.kind == "other" and each.text == ";":
            found.append([])
        else:
            found[-1].append(each)
    return [part for part in found if part]


def _source_start(tokens: Sequence[Token], place: int) -> int:
    """The place of the first token of the table before a clause."""
    depth = 0
    while place > 0:
        before = tokens[place - 1]
        if before.kind == "other" and before.text in ")]}":
            depth += 1
        elif before.kind == "other" and before.text in "([{":
            if depth == 0:
                return place
            depth -= 1
        elif depth == 0 and (before.is_word(*_BEFORE_A_TABLE) or (before.kind == "other" and before.text == ",")):
            return place
        place -= 1
    return place


def _is_join(tokens: Sequence[Token]) -> bool:
    """Whether the condition of a join stands behind the first table of some tokens."""
    depth = 0
    for each in tokens:
        if each.kind == "other":
            depth += (each.text in "([{") - (each.text in ")]}")
        if depth == 0 and each.is_word("ON"):
            return True
    return False


def enclosing(tokens: Sequence[Token], at: int) -> list[int]:
    """The place of the first token and those behind the parentheses around a place of the text, outer ones first."""
    starts = [0]
    for place, each in enumerate(tokens):
        if each.span.start >= at:
            break
        if each.kind == "other" and each.text == "(":
            starts.append(place + 1)
        elif each.kind == "other" and each.text == ")" and len(starts) > 1:
            starts.pop()
    return starts


def visible_tables(statement: Statement, at: int) -> list[tuple[str, Span]]:
    """The tables of WITH that a place of a statement sees, outer ones first.

    Returns
    -------
    list of (str, Span)
        ``WITH`` or ``WITH RECURSIVE``, and the text of the definitions that end before the place.
    """
    tokens = statement.tokens
    found = []
    starts = enclosing(tokens, at)
    for level, start in enumerate(starts):
        limit = starts[level + 1] if level + 1 < len(starts) else len(tokens)
        head = _with_of(tokens, start, limit, at)
        if head is not None:
            found.append(head)
    return found


def _with_of(tokens: Sequence[Token], start: int, limit: int, at: int) -> tuple[str, Span] | None:
    """The definitions of a WITH between two tokens that end before a place of the text."""
    place = start
    while place < limit and not tokens[place].is_word("WITH"):
        if place > start and tokens[place].is_word("SELECT", "FROM", "VALUES"):
            return None
        if tokens[place].kind == "other" and tokens[place].text == "(":
            place = closing(tokens, place)
        place += 1
    if place >= limit or tokens[place].span.start >= at:
        return None
    words = "WITH"
    place += 1
    if place < limit and tokens[place].is_word("RECURSIVE"):
        words = "WITH RECURSIVE"
        place += 1
    first, last = place, None
    while place < len(tokens):  # name [ (columns) ] AS [ [NOT] MATERIALIZED ] ( body )
        while place < len(tokens) and not tokens[place].is_word("AS"):
            place += 1
        while place < len(tokens) and tokens[place].text != "(":
            place += 1
        end = closing(tokens, place)
        if end >= len(tokens) or tokens[end].span.end > at:
            break
        last = end
        if end + 1 >= len(tokens) or tokens[end + 1].text != ",":
            break
        place = end + 2
    return None if last is None else (words, tokens[first].span.to(tokens[last].span))


class Rewriting:
    """A statement in which clauses are replaced by names of tables, and where each of its parts comes from.

    Parameters
    ----------
    text : str
        Of all statements.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._replaced: list[tuple[Span, str]] = []

    def replace(self, clause: Clause, name: str) -> None:
        """From now on a clause and its source are this table."""
        whole = Span(clause.source.start, clause.span.end)
        inside = [each for each in self._replaced if whole.start <= each[0].start and each[0].end <= whole.end]
        self._replaced = [each for each in self._replaced if each not in inside]
        self._replaced.append((whole, name))
        self._replaced.sort(key=lambda each: each[0].start)

    def render(self, span: Span) -> str:
        """The text of a span with what has been replaced."""
        return "".join(part for part, _ in self._parts(span))

    def _parts(self, span: Span) -> list[tuple[str, int]]:
        """Pieces, each with where it begins in the user's text."""
        found, place = [], span.start
        for whole, name in self._replaced:
            if span.start <= whole.start and whole.end <= span.end:
                found.append((self._text[place : whole.start], place))
                found.append((f"{name} ", whole.start))
                place = whole.end
        found.append((self._text[place : span.end], place))
        return found

    def origin(self, span: Span, offset: int) -> int:
        """Where a character of the rendered text of a span stands in the user's text."""
        for part, start in self._parts(span):
            if offset < len(part):
                return start + offset if self._text[start : start + len(part)] == part else start
            offset -= len(part)
        return max(span.start, span.end - 1)
