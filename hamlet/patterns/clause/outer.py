"""Clauses whose tables read columns of the statement around them, as LATERAL and subqueries may: for all rows at once.

The host gives the distinct values that are read there and, for each of them, the rows of the clause's table; partitions
are those of the clause within such values, and where the clause stood are the rows that have the values there. The host
finds what a name means: outer columns are given to the table under the names by which it reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hamlet.errors import Span
from hamlet.patterns.clause.expressions import Read
from hamlet.patterns.clause.numbered import JOINS, NUMBER, flat, numbered, span_of
from hamlet.patterns.clause.parser import closing
from hamlet.patterns.clause.scan import Quoting, Token
from hamlet.patterns.clause.statement import Rewriting, Statement, enclosing, visible_tables
from hamlet.patterns.clause.tree import Clause, Expression

_BEHIND_WHERE = (
    "GROUP",
    "HAVING",
    "WINDOW",
    "QUALIFY",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "FETCH",
    "SELECT",
    "SET",
    "RETURNING",
)
_UNION = ("UNION", "INTERSECT", "EXCEPT", "MINUS")
_OUTER, _INNER = "__hamlet_outer", "__hamlet_inner"


@dataclass(frozen=True)
class Level:
    """What a place sees of a SELECT around it.

    Attributes
    ----------
    table : Span
        What stands behind FROM as far as it is seen.
    before_on : bool
        Whether the condition of its last join is left out.
    where : Span or None
        What is known of the rows for which the place is computed.
    """

    table: Span
    before_on: bool = False
    where: Span | None = None

    def spans(self) -> list[Span]:
        """The parts of the text."""
        return [each for each in (self.table, self.where) if each is not None]


@dataclass(frozen=True)
class Column:
    """A column that is read from outside.

    Attributes
    ----------
    level : int
    text : str
        As it is written, if need be with the name of its table.
    table, name : str
    """

    level: int
    text: str
    table: str
    name: str

    @property
    def key(self) -> str:
        """The name of the column of its values."""
        return f"outer {self.name} of {self.table}" if self.table else f"outer {self.name}"


@dataclass(frozen=True)
class Correlated:
    """The table of a clause for all outer rows.

    Attributes
    ----------
    query : str
        Of the host.
    columns : tuple of Column
        By which outer rows are told apart; the query has their keys.
    quoting : Quoting
        Of the text.
    """

    query: str
    columns: tuple[Column, ...]
    quoting: Quoting

    def partition(self, clause: Clause, quoted: Callable[[str], str]) -> list[Read]:
        """What the clause is partitioned by, beside its own."""
        names = [each.key for each in self.columns]
        return [Read(quoted(each), (), Expression(_in_text(each, self.quoting), clause.source)) for each in names]

    def replacement(self, table: str, columns: Sequence[str]) -> str:
        """What stands in the text instead of the clause, whose rows with the keys are a table of some columns."""
        keys = {each.key: _in_text(each.key, self.quoting) for each in self.columns}
        own = [_in_text(each, self.quoting) for each in columns if each not in keys]
        hidden = [_in_text(f"__hamlet_own_{place}", self.quoting) for place in range(len(own))]
        inner = ", ".join([*keys.values(), *(f"{name} AS {to}" for name, to in zip(own, hidden, strict=True))])
        shown = ", ".join(f"{name} AS {to}" for name, to in zip(hidden, own, strict=True))
        same = " AND ".join(f"{keys[each.key]} IS NOT DISTINCT FROM {each.text}" for each in self.columns)
        kept = f"SELECT {', '.join(hidden)} FROM (SELECT {inner} FROM {table}) WHERE {same}"  # no other name is near
        return f"(SELECT {shown} FROM ({kept}))"


def _in_text(name: str, quoting: Quoting) -> str:
    return f"{quoting.start}{name.replace(quoting.end, quoting.end * 2)}{quoting.end}"


def levels_of(tokens: Sequence[Token], at: int) -> list[Level]:
    """What a place of a statement sees around it, outer SELECTs first."""
    starts = enclosing(tokens, at)
    here = next((place for place, each in enumerate(tokens) if each.span.start >= at), len(tokens))
    inner = [*(start - 1 for start in starts[1:]), here]
    ends = [len(tokens) if not start else closing(tokens, start - 1) for start in starts]
    found = (_level(tokens, *each) for each in zip(starts, inner, ends, strict=True))
    return [each for each in found if each is not None]


def _level(tokens: Sequence[Token], start: int, here: int, end: int) -> Level | None:
    """What a place sees of the SELECT in parentheses around it; None for nothing."""
    places = list(flat(tokens, start, end))
    united = [each for each in places if tokens[each].is_word(*_UNION) and tokens[each - 1].text != "*"]
    low, high = (
        max([each for each in united if each < here], default=start),
        min([each for each in united if each > here], default=end),
    )
    places = [each for each in places if low <= each < high]
    begun = next((each for each in places if _begins_tables(tokens, each)), high)
    if begun == high or not any(tokens[each].is_word("SELECT", "FROM", "UPDATE") for each in places if each < here):
        return None  # a table of WITH does not see the SELECT behind it
    behind = [*(each for each in places if each > begun and tokens[each].is_word("WHERE", *_BEHIND_WHERE)), high]
    last = behind[0]
    if not begun < here < last:
        wheres = [each for each in behind[:-1] if tokens[each].is_word("WHERE")]
        where = _conjuncts(tokens, places, wheres[0], here, high) if wheres else None
        return Level(span_of(tokens, begun + 1, last), where=where)
    joined = [
        each
        for each in places
        if begun < each < here and (tokens[each].is_word("ON", "JOIN") or tokens[each].text == ",")
    ]
    if not joined:
        return None
    last = joined[-1]
    while tokens[last - 1].is_word(*JOINS):
        last -= 1
    return Level(span_of(tokens, begun + 1, last), tokens[joined[-1]].is_word("ON"))


def recursion(tokens: Sequence[Token], at: int) -> str | None:
    """The name of the table of WITH RECURSIVE in whose definition a place stands."""
    if not any(each.is_word("RECURSIVE") for each in tokens):
        return None
    for start in enclosing(tokens, at)[1:]:
        head = start - 2
        while head > 0 and tokens[head].is_word("NOT", "MATERIALIZED"):
            head -= 1
        if tokens[head].is_word("AS"):
            before = head - 1
            if tokens[before].text == ")":  # names of columns
                before = max(each for each in range(before) if closing(tokens, each) == before) - 1
            return tokens[before].text
    return None


def _begins_tables(tokens: Sequence[Token], place: int) -> bool:
    """Whether the tables of a statement stand behind a token; IS DISTINCT FROM is a comparison."""
    return tokens[place].is_word("FROM", "UPDATE") and not (place and tokens[place - 1].is_word("DISTINCT"))


def _conjuncts(tokens: Sequence[Token], places: Sequence[int], where: int, here: int, end: int) -> Span | None:
    """The condition of a WHERE; where a place stands in it, those parts before it that hold wherever it is asked."""
    end = next((each for each in places if each > where and tokens[each].is_word(*_BEHIND_WHERE)), end)
    if where < here < end:
        inside = [each for each in places if where < each < end]
        if any(tokens[each].is_word("OR", "BETWEEN", "CASE") for each in inside):
            return None
        end = max((each for each in inside if each < here and tokens[each].is_word("AND")), default=where + 1)
    return span_of(tokens, where + 1, end) if end > where + 1 else None


class Outer:
    """Finds what a clause's table reads from outside.

    Parameters
    ----------
    statement : Statement
    rewriting : Rewriting
        In which the clauses that outer tables read are replaced.
    clause : Clause
    translate : callable
        From the dialect of the text to the host's.
    names : callable
        The columns of a query of the host; None for one that it refuses.
    quoting : Quoting
        Of the text.
    quoted, packed : callable
        How the host writes a name, and a structure of columns by their names.
    number : str
        What the host numbers the rows of a table by; nothing where it has no order of them.
    """

    def __init__(
        self,
        statement: Statement,
        rewriting: Rewriting,
        clause: Clause,
        translate: Callable[[str], str],
        names: Callable[[str], list[str] | None],
        quoting: Quoting,
        quoted: Callable[[str], str],
        packed: Callable[[Mapping[str, str]], str],
        number: str = "",
    ) -> None:
        self._statement, self._rewriting, self._clause = statement, rewriting, clause
        self._translate, self._names, self._quoting = translate, names, quoting
        self._quoted, self._packed, self._number = quoted, packed, number
        self.levels = levels_of(statement.tokens, clause.source.start)
        self._known: dict[tuple[int, str], list[str]] = {}

    def reads(self, clauses: Sequence[Clause]) -> list[Clause]:
        """The clauses in what is seen from within."""
        spans = [span for each in self.levels for span in each.spans()]
        return [each for each in clauses if any(span.start <= each.span.start < span.end for span in spans)]

    def refused(self) -> str | None:
        """Why the host cannot know the rows of the clause's table, where that is known."""
        made = recursion(self._statement.tokens, self._clause.source.start)
        spans = [self._clause.source, *(span for each in self.levels for span in each.spans())]
        inside = (each for each in self._statement.tokens for span in spans if span.start <= each.span.start < span.end)
        if made is None or made.lower() not in (each.text.lower() for each in inside):
            return None
        return f"MATCH_RECOGNIZE reads all rows of a table, and {made} is not whole before its recursion ends"

    def correlated(self) -> Correlated | None:
        """The table of the clause for all outer rows, each in the order of the input; None if it reads none."""
        depth, source = len(self.levels), self._clause.source
        columns = self._read([source], depth)
        if not columns:
            return None
        tokens = [each for each in self._statement.tokens if source.start <= each.span.start < source.end]
        render = self._rewriting.render
        found = None
        if self._number and tokens[0].text == "(":
            found = numbered(tokens, 1, closing(tokens, 0), render, self._number)
        query = self._beside(depth, columns, self._in_host(source.start, found[0])) if found else ""
        names = self._names(query) if found else None
        if found and names is not None:
            listed = ", ".join(self._quoted(each) for each in names if not each.startswith(NUMBER))
            order = ", ".join([*(self._quoted(each.key) for each in columns), found[1]])
            query = f"SELECT {listed} FROM ({query}) ORDER BY {order}"
        else:
            query = self._beside(depth, columns, self._in_host(source.start, f"SELECT * FROM {render(source)}"))
        return Correlated(query, tuple(columns), self._quoting)

    def _in_host(self, at: int, query: str) -> str:
        """A query of the host, with the tables of WITH that a place sees."""
        return self._translate(with_tables(self._statement, self._rewriting, at, query))

    def _read(self, spans: Sequence[Span], depth: int) -> list[Column]:
        """The columns of the first levels that parts of the text may read."""
        found: dict[str, Column] = {}
        for column in (each for span in spans for each in self._named(span, depth)):
            found.setdefault(column.key.lower(), column)
        return list(found.values())

    def _named(self, span: Span, depth: int) -> Iterator[Column]:
        """The columns of levels that a part of the text names, if it is them that it means."""
        tokens = [each for each in self._statement.tokens if span.start <= each.span.start < span.end]
        for place, token in enumerate(tokens):
            behind = [each.text for each in tokens[place + 1 : place + 3]]
            if not token.is_identifier or behind[:1] == ["("] or (place and tokens[place - 1].text == "."):
                continue
            written = self._rewriting.render(token.span)
            is_table = behind[:1] == ["."] and len(behind) == 2
            for level in reversed(range(depth)):
                known = self._columns(level, written if is_table else "")
                if is_table and known:
                    for name in known:
                        if behind[1] in ("*", name) or behind[1].lower() == name.lower():
                            text = f"{written}.{_in_text(name, self._quoting)}"
                            yield Column(level, text, token.text, name)
                    break
                if not is_table and token.text.lower() in map(str.lower, known):
                    yield Column(level, written, "", token.text)
                    break

    def _columns(self, level: int, table: str) -> list[str]:
        """The columns of a level, or of one of its tables; none where it has no such table."""
        if (level, table) not in self._known:
            listed = f"{table}.*" if table else "*"
            query = self._of_level(level, listed, conditions=False)
            reads = self._read([self.levels[level].table], level)
            if reads:
                query = f"SELECT {_INNER}.* FROM ({self._bound(level, reads)}) {_OUTER}, LATERAL ({query}) {_INNER}"
            self._known[level, table] = self._names(query) or []
        return self._known[level, table]

    def _of_level(self, level: int, listed: str, *, conditions: bool = True) -> str:
        """A query of the host over the tables of a level."""
        found, render = self.levels[level], self._rewriting.render
        text = f"SELECT {listed} FROM {render(found.table)}{' ON true' if found.before_on else ''}"
        if conditions and found.where is not None:
            text += f" WHERE {render(found.where)}"
        return self._in_host(found.table.start, text)

    def _values(self, depth: int, columns: Sequence[Column]) -> str:
        """A query of the host for the distinct values of columns of the first levels."""
        level = depth - 1
        own = [each for each in columns if each.level == level]
        if not own:
            return self._values(level, columns)
        listed = ", ".join(f"{each.text} AS {_in_text(each.key, self._quoting)}" for each in own)
        query = self._of_level(level, f"DISTINCT {listed}")
        others = {each.key: each for each in self._read(self.levels[level].spans(), level)}
        others |= {each.key: each for each in columns if each.level < level}
        if not others:
            return query
        keys = ", ".join(self._quoted(each.key) for each in columns)
        return f"SELECT DISTINCT {keys} FROM ({self._beside(level, list(others.values()), query)})"

    def _bound(self, depth: int, columns: Sequence[Column]) -> str:
        """A query for the values of columns, as their keys and under the names by which they are read."""
        tables: dict[str, dict[str, str]] = {}
        listed = []
        for each in columns:
            key = self._quoted(each.key)
            if each.table:
                tables.setdefault(each.table, {})[each.name] = key
            else:
                listed.append(f"{key} AS {self._quoted(each.name)}")
        listed += [f"{self._packed(fields)} AS {self._quoted(table)}" for table, fields in tables.items()]
        return f"SELECT *, {', '.join(listed)} FROM ({self._values(depth, columns)})"

    def _beside(self, depth: int, columns: Sequence[Column], query: str) -> str:
        """The rows of a query for all values of the columns that it reads, beside their keys."""
        keys = ", ".join(f"{_OUTER}.{self._quoted(each.key)}" for each in columns)
        return f"SELECT {keys}, {_INNER}.* FROM ({self._bound(depth, columns)}) {_OUTER}, LATERAL ({query}) {_INNER}"


def with_tables(statement: Statement, rewriting: Rewriting, at: int, query: str) -> str:
    """A query with the tables of WITH that a place of the statement sees."""
    for words, span in reversed(visible_tables(statement, at)):
        query = f"{words} {rewriting.render(span)} SELECT * FROM ({query})"
    return query
