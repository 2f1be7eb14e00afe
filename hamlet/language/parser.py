"""Workload text to syntax tree, by recursive descent, with every syntax error of the file at once.

::

    workload  = { event | query }
    event     = EVENT Name "(" name TYPE { "," name TYPE } ")" ";"
    TYPE      = INT DOUBLE STRING BOOLEAN TIMESTAMP DURATION
    query     = [ name ":" ] RETURN item {"," item} PATTERN pattern [SEMANTICS semantics] [WHERE condition]
                [GROUP-BY group {"," group}] [HAVING hcond] [TOP k BY rexpr [ASC | DESC]]
                WITHIN ( duration [SLIDE duration] [OFFSET duration] | SESSION duration | ALL ) [";"]
                and SPAN duration, right before WITHIN or right after WITHIN, SLIDE and OFFSET;
                HAVING and TOP may come last
    semantics = skip-till-any-match | skip-till-next-match | contiguous | ANY | NEXT
    item      = rexpr [AS name]
    aggregate = COUNT "(" "*" ")" | COUNT "(" var ")" | (SUM|AVG|MIN|MAX|APPROX_COUNT_DISTINCT) "(" var "." name ")"
                | COUNT "(" DISTINCT var "." name ")"
                | COUNT "(" EVENTS var ")" | (SUM|AVG|MIN|MAX) "(" EVENTS var "." name ")"
    group     = attr | (FIRST|LAST) "(" var "." name ")" | COUNT "(" var ")"
    attr      = [var "."] name
    duration  = number (ms | s sec second(s) | min minute(s) | h hour(s) | d day(s))
    name      = letters, digits and _ | "any text", a quote inside written twice

`parse_pattern`, `parse_condition` and `parse_result` hold the rest of the grammar. Keywords are found by their place,
in any case, so that most of them may be names too; after a point, in brackets and in declarations all may. After a
mistake reading goes on at the next clause of the query, or at the next statement.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass, field

from hamlet.errors import Diagnostic, WorkloadError, near_miss, one_of
from hamlet.frontend.cursor import ALIKE, TooManyProblemsError, UnreadableError
from hamlet.frontend.lexer import Kind, tokenize
from hamlet.frontend.reports import Reports
from hamlet.language.cursor import CLAUSES, Cursor
from hamlet.language.parse_clause import (
    parse_declaration,
    parse_groups,
    parse_items,
    parse_semantics,
)
from hamlet.language.parse_condition import condition_hint, parse_condition
from hamlet.language.parse_duration import parse_duration
from hamlet.language.parse_pattern import parse_pattern, part_hint
from hamlet.language.parse_result import parse_having, parse_top
from hamlet.language.query import (
    Condition,
    Duration,
    EventDeclaration,
    Group,
    Pattern,
    Query,
    ReturnItem,
    Semantics,
    Span,
    Top,
    WorkloadText,
)
from hamlet.language.tokens import COMMENT, TOKENS
from hamlet.language.trend_groups import with_groups

_SQL = {
    "FROM": "the input is named on the command line or in the call, not in the query",
    "HAVING": "conditions on results are written HAVING COUNT(*) > 3",
    "ORDER": "rows come in the order of query, window and group; TOP 3 BY COUNT(*) keeps the largest",
    "LIMIT": "write TOP 3 BY COUNT(*) for the three rows of a window with the largest count",
    "TOP": "rows are kept by TOP 3 BY COUNT(*)",
    "SPAN": "the longest time of a trend is written SPAN 10 min",
    "SEMANTICS": "write SEMANTICS skip-till-next-match or SEMANTICS contiguous",
    "MATCHING": "write SEMANTICS skip-till-next-match or SEMANTICS contiguous",
    "ON": "write WHERE",
    "IF": "write WHERE",
    "SELECT": "a query starts with RETURN",
    "EVERY": "write SLIDE 1 min",
}


_RARE = ("SEMANTICS", "HAVING", "TOP", "SPAN", "OFFSET")  # clauses that messages do not list


def parse(text: str, source: str = "<workload>") -> WorkloadText:
    """Read a workload.

    Parameters
    ----------
    text : str
        The whole of a ``.sase`` file.
    source : str
        The file's name for messages.

    Returns
    -------
    WorkloadText
        Declarations and queries in the order of the text, with spans; names of queries without one filled in.

    Raises
    ------
    WorkloadError
        With every syntax error of the text.

    Examples
    --------
    >>> parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 min").queries[0].name
    'q1'
    """
    workload, problems = read(text, source)
    if problems:
        raise WorkloadError(problems)
    return workload


def read(text: str, source: str = "<workload>") -> tuple[WorkloadText, list[Diagnostic]]:
    """Read what can be read: the statements without a syntax error, and the errors of the others.

    Parameters
    ----------
    text, source : str
        As for `parse`.

    Returns
    -------
    (WorkloadText, list of Diagnostic)
        The statements that are whole, and every syntax error. A query without a name is called by its place among
        all queries, broken ones too.
    """
    reports = Reports(text, source)
    declarations: list[EventDeclaration] = []
    queries: list[Query] = []
    place = 0
    with contextlib.suppress(TooManyProblemsError):
        cursor = Cursor(tokenize(TOKENS, reports), reports)
        while not cursor.at_kind(Kind.END):
            if cursor.take(";"):
                continue
            begin, cursor.depth = cursor.index, 0
            if cursor.at_word("EVENT") and not cursor.at(":", offset=1):
                declaration = parse_declaration(cursor)
                declarations += [declaration] if declaration is not None else []
            else:
                place += 1
                query = _query(cursor, place)
                queries += [query] if query is not None else []
            cursor.index = max(cursor.index, begin + 1)  # whatever the text, reading ends
    return WorkloadText(text, source, tuple(declarations), tuple(queries)), reports.errors


@dataclass
class _Draft:
    """A query while it is read: the clauses so far."""

    items: tuple[ReturnItem, ...] = ()
    pattern: Pattern | None = None
    condition: Condition | None = None
    group_by: tuple[Group, ...] = ()
    within: Duration | None = None
    slide: Duration | None = None
    semantics: Semantics = Semantics.ANY
    session: bool = False
    everything: bool = False  # WITHIN ALL
    longest: Duration | None = None
    having: Condition | None = None
    top: Top | None = None
    offset: Duration | None = None
    seen: list[str] = field(default_factory=list)
    last: Span | None = None  # of what the last clause read


def _query(cursor: Cursor, place: int) -> Query | None:
    """Read one query; None where it has an error, which is recorded."""
    before = len(cursor.reports.errors)
    start, begin = cursor.peek().span, cursor.index
    draft = _Draft()
    name, name_span, returns = _heading(cursor, place)
    try:
        if returns:
            draft.items = parse_items(cursor)
            draft.last = draft.items[-1].span
    except UnreadableError:
        _recover(cursor)
    while not cursor.ends_statement():
        try:
            _clause(cursor, draft)
        except UnreadableError:
            _recover(cursor)
    span = cursor.since(start)
    cursor.take(";")
    if len(cursor.reports.errors) == before and not cursor.has_bad(begin):
        _require(cursor, draft, span)
    bad = len(cursor.reports.errors) > before or cursor.has_bad(begin)
    if bad or draft.pattern is None or (draft.within is None and not draft.everything):
        return None
    query = Query(
        name, draft.items, draft.pattern, draft.condition, draft.group_by, draft.within, draft.slide,
        draft.semantics, draft.session, draft.longest, draft.having, draft.top, draft.offset,
        span=span, name_span=name_span,
    )  # fmt: skip
    return with_groups(query)


def _recover(cursor: Cursor) -> None:
    cursor.depth = 0
    cursor.skip()


def _heading(cursor: Cursor, place: int) -> tuple[str, Span | None, bool]:
    """The name, its place, and whether RETURN was there (or a word that was meant to be it)."""
    name, name_span = f"q{place}", None
    if cursor.at_kind(Kind.WORD, Kind.NAME) and cursor.at(":", offset=1):
        token = cursor.advance()
        name, name_span = token.value, token.span
        cursor.advance()
        if not name:
            cursor.report("a name cannot be empty", token.span, f"leave it out and the query is called q{place}")
    elif cursor.at_kind(Kind.WORD, Kind.NAME) and cursor.at_word("RETURN", offset=1) and not cursor.at_word("RETURN"):
        token = cursor.advance()
        cursor.report(f"expected ':' after '{token.value}'", cursor.peek().span, f"write {token.value}: RETURN")
    if cursor.take_word("RETURN"):
        return name, name_span, True
    token = cursor.peek()
    meant = cursor.near(("RETURN", "EVENT")) or ("RETURN" if cursor.at_word("SELECT") else None)
    if meant is not None:
        cursor.report(f"expected RETURN or EVENT, found '{token.value}'", token.span, f"did you mean {meant}?")
        cursor.advance()
        return name, name_span, True
    if token.kind is not Kind.BAD:
        what = "RETURN" if name_span is not None else "a query or an EVENT declaration"
        hint = "a query is written name: RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 min;"
        cursor.report(f"expected {what}", token.span, hint)
    _recover(cursor)
    return name, name_span, False


def _clause(cursor: Cursor, draft: _Draft) -> None:
    """Read one clause, from its keyword on, into the draft."""
    found = cursor.clause()
    keyword = cursor.peek().span
    if found is None:
        _stray(cursor, draft)
        return
    name, width = found
    keyword = keyword.to(cursor.peek(width - 1).span)
    if name in draft.seen:
        cursor.report(f"{name} stands twice in this query", keyword, f"keep one {name}")
    else:
        _check_order(cursor, name, keyword, draft)
    draft.seen.append(name)
    cursor.index += width
    _read_clause(cursor, draft, name)


def _read_clause(cursor: Cursor, draft: _Draft, name: str) -> None:
    """Read what stands behind the keyword of a clause."""
    start = cursor.peek().span
    match name:
        case "PATTERN":
            draft.pattern = parse_pattern(cursor)
        case "SEMANTICS":
            draft.semantics = parse_semantics(cursor)
        case "WHERE":
            draft.condition = parse_condition(cursor)
        case "GROUP-BY":
            draft.group_by = parse_groups(cursor)
        case "HAVING":
            draft.having = parse_having(cursor)
        case "TOP":
            draft.top = parse_top(cursor)
        case "SPAN":
            draft.longest = parse_duration(cursor, name)
        case "WITHIN":
            draft.session = cursor.take_word("SESSION") is not None
            draft.everything = not draft.session and cursor.take_word("ALL") is not None
            if not draft.everything:
                draft.within = parse_duration(cursor, "WITHIN SESSION" if draft.session else name)
        case "OFFSET":
            draft.offset = parse_duration(cursor, name)
            if draft.session:
                hint = "leave OFFSET out: a session begins and ends with its events"
                cursor.report("sessions have no offset", cursor.since(start), hint)
            elif draft.everything:
                hint = "leave OFFSET out: WITHIN ALL is one window over everything"
                cursor.report("WITHIN ALL has no offset", cursor.since(start), hint)
        case _:
            draft.slide = parse_duration(cursor, name)
            if draft.session:
                hint = "leave SLIDE out: a session begins and ends with its events"
                cursor.report("sessions do not slide", cursor.since(start), hint)
            elif draft.everything:
                hint = "leave SLIDE out: WITHIN ALL is one window over everything"
                cursor.report("WITHIN ALL does not slide", cursor.since(start), hint)
    draft.last = cursor.since(start)


def _check_order(cursor: Cursor, name: str, keyword: Span, draft: _Draft) -> None:
    """Report a clause that stands behind one that must come later."""
    mine = _rank(name, draft.seen)
    later = [(rank, each) for rank, each in _ranked(draft.seen) if rank > mine]
    if later:
        order = "the order is RETURN, PATTERN, WHERE, GROUP-BY, WITHIN, SLIDE"
        if {name, later[0][1]} & {"SEMANTICS", "HAVING", "TOP", "SPAN"}:
            order = "the order is RETURN, PATTERN, SEMANTICS, WHERE, GROUP-BY, HAVING, TOP, SPAN, WITHIN, SLIDE"
        order += ", OFFSET" * ("OFFSET" in (name, later[0][1]))
        cursor.report(f"{name} must stand before {min(later)[1]}", keyword, order)


def _rank(name: str, seen: Collection[str]) -> int:
    """The place of a clause behind those that were read: SPAN, HAVING and TOP may also come behind WITHIN."""
    behind = ("SPAN", "HAVING", "TOP")
    return len(CLAUSES) + behind.index(name) if "WITHIN" in seen and name in behind else CLAUSES.index(name)


def _ranked(seen: list[str]) -> list[tuple[int, str]]:
    return [(_rank(name, seen[:place]), name) for place, name in enumerate(seen)]


def _stray(cursor: Cursor, draft: _Draft) -> None:
    """Something stands where the next clause should; a misspelled keyword is read as the one that was meant."""
    last = draft.seen[-1] if draft.seen else "RETURN"
    reached = max((rank for rank, _ in _ranked(draft.seen)), default=-1)
    following = [name for name in CLAUSES if name not in draft.seen and _rank(name, draft.seen) > reached]
    token = cursor.peek()
    if token.kind is Kind.BAD:
        raise UnreadableError
    expected = _expected_after(last, [name for name in following if name not in _RARE])
    meant = cursor.near(("GROUPBY", *following))
    if meant is not None:
        meant = "GROUP-BY" if meant == "GROUPBY" else meant
        cursor.report(f"expected {one_of(expected)}, found '{token.value}'", token.span, f"did you mean {meant}?")
        draft.seen.append(meant)
        cursor.advance()
        _misspelled(cursor, draft, meant)
        return
    hint = _SQL.get(token.value.upper()) if token.kind is Kind.WORD else None
    if hint is None and cursor.at("/"):
        hint = COMMENT
    if hint is None and last == "PATTERN" and draft.last is not None:
        hint = _keyword_as_variable(cursor, following) or part_hint(cursor, draft.last)
    if hint is None and last in ("WHERE", "HAVING"):
        hint = condition_hint(cursor)
    if hint is None and last in ("WITHIN", "SLIDE", "OFFSET"):
        hint = _window_hint(cursor)
    raise cursor.expected(expected, hint, after=draft.last)


def _keyword_as_variable(cursor: Cursor, following: list[str]) -> str | None:
    """The hint for PATTERN A WITHN 1 s, where the misspelled keyword is read as the variable of A."""
    before = cursor.peek(-1)
    meant = near_miss(before.value, following, ALIKE) if before.kind is Kind.WORD else None
    return None if meant is None else f"did you mean {meant}? {before.value} is read as the name of a variable"


def _expected_after(last: str, following: list[str]) -> list[str]:
    """What may follow a clause, in words: only what is needed next and what often stands before it."""
    if last == "RETURN":
        return ["','", "PATTERN"]
    needed = next((place for place, name in enumerate(following) if name == "WITHIN"), None)
    clauses = following if needed is None else following[: needed + 1]
    joiners = {"WHERE": ["AND", "OR"], "HAVING": ["AND", "OR"], "GROUP-BY": ["','"]}.get(last, [])
    return [*joiners, *clauses] + (["';'"] if needed is None else [])


def _misspelled(cursor: Cursor, draft: _Draft, name: str) -> None:
    """Read the clause behind a misspelled keyword, for the sake of further messages."""
    if name == "GROUP-BY":
        cursor.take("-")
        cursor.take_word("BY")
    _read_clause(cursor, draft, name)


def _window_hint(cursor: Cursor) -> str | None:
    if cursor.at_kind(Kind.NUMBER):
        return "a duration is one number and one unit: write 90 min or 1.5 h"
    return "end the query with ';'"


def _require(cursor: Cursor, draft: _Draft, span: Span) -> None:
    """Say which clauses are missing in a query that is right otherwise."""
    end = Span(span.end, span.end)
    if draft.pattern is None:
        hint = "add PATTERN SEQ(A, B+) after the result columns"
        cursor.report("the query has no PATTERN", end, hint)
    if draft.within is None and not draft.everything:
        cursor.report("the query has no WITHIN", end, "add the length of its windows, for instance WITHIN 10 min")
