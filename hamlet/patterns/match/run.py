"""``hamlet.sql``: statements with row patterns over tables, in this process."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from hamlet.errors import OptionError, Span, UnsupportedError, WorkloadError, near_miss
from hamlet.frontend.reports import Reports
from hamlet.output.result import Asked, Results, TablePart
from hamlet.patterns.clause.outer import Correlated, Outer, with_tables
from hamlet.patterns.clause.scan import WHOLE_DIVISION, Quoting, dialect_of
from hamlet.patterns.clause.statement import Rewriting, Script, Statement, parse
from hamlet.patterns.clause.tree import Clause
from hamlet.patterns.match.conditions import Failed, names_said
from hamlet.patterns.match.evaluate import Meaning, Shared, distinct_names, evaluate, read_clause
from hamlet.patterns.match.host import (
    Host,
    HostError,
    aggregate_functions,
    keywords,
    no_columns,
    packed,
    quoted,
    reserved_names,
)
from hamlet.patterns.match.leading_time import reads_table
from hamlet.patterns.match.ordered import Ordered
from hamlet.patterns.match.projection import projection
from hamlet.patterns.match.together import Together
from hamlet.patterns.options import SqlOptions, StatementOptions
from hamlet.runtime.expected import NO_EVENTS
from hamlet.runtime.options import made_of, names_in, takes

if TYPE_CHECKING:
    from hamlet.why.evidence import Evidence

_CLAUSE = re.compile(r'"*__hamlet_(?:(?:s\d+_)?m\d*|given)"*')  # the name of a clause's table
_REPLACED = "hamlet_match_"  # begins the names of what stands for clauses
_NUMERIC_TIME = re.compile(r"(?:YYYY|MM|DD|HH24|MI|SS|[^A-Z0-9])+")  # what a format of Oracle may be made of


@takes(StatementOptions)
def sql(
    text: str, tables: Mapping[str, Any] | None = None, *, source: str = "<sql>", **options: Unpack[SqlOptions]
) -> Results:
    """Run statements with row patterns (``MATCH_RECOGNIZE``).

    Parameters
    ----------
    text : str
        One statement or several, separated by semicolons.
    tables : mapping of str to object
        By name: Arrow tables, pandas or polars frames, DuckDB relations, lists of dicts, or paths of Parquet, CSV and
        JSON lines files.
    dialect : {'duckdb', 'trino', 'snowflake', 'oracle', 'flink', 'bigquery', 'spark'}
        What the text is written in.
    source : str
        The name of the text in messages.
    allow_files : bool
        Whether statements may read and write files that were not given, and load extensions.
    max_steps : int
        Most steps of one start where conditions read the labels of the match so far.
    threads : int, optional
        Of DuckDB.
    missing_columns : {'error', 'null'}, optional
        What becomes of a column that one of several files of a table lacks, as for `hamlet.run`.

    Returns
    -------
    Results

    Raises
    ------
    WorkloadError
        With every mistake in the text, each at its place.
    DataError
        If the tables do not allow an answer, such as a match without the variable that is skipped to.

    Examples
    --------
    >>> clause = "ORDER BY ts MEASURES FIRST(ts) AS since, COUNT(*) AS n PATTERN (a b+) DEFINE b AS v > PREV(v)"
    >>> text = f"SELECT * FROM t MATCH_RECOGNIZE ({clause})"
    >>> sql(text, {"t": [{"ts": ts, "v": v} for ts, v in enumerate([3, 4, 5, 1])]}).rows()
    [{'since': 0, 'n': 3}]
    """
    _refuse_loose_tables(options)
    chosen = made_of(StatementOptions, options, ("source",))
    script = parsed(text, chosen.dialect, source)
    host = host_of(script, tables, files=chosen.allow_files, threads=chosen.threads, missing=chosen.missing_columns)
    again = {"dialect": chosen.dialect, "allow_files": chosen.allow_files, "max_steps": chosen.max_steps}
    again |= {"missing_columns": chosen.missing_columns}
    asked = Asked(
        partial(_why, text, tables, {**again, "source": source}),
        partial(_explained, text, chosen.dialect, source),
        whole=True,
    )
    return run_script(script, host, chosen.max_steps, asked)


def _explained(text: str, dialect: str, source: str) -> str:
    from hamlet.patterns.match.explain import explain

    return explain(text, dialect=dialect, source=source)


def _why(text: str, tables: Any, options: Mapping[str, Any], row: Mapping[str, Any]) -> Evidence:
    """The match behind a row, or why none begins at a row: `hamlet.why.of_statement`, loaded when first asked for."""
    import hamlet

    if any(
        isinstance(one, (Iterator, pa.RecordBatchReader))
        for one in (tables.values() if isinstance(tables, Mapping) else [tables])
    ):
        raise UnsupportedError("the tables cannot be read again; give files, tables or lists to run")
    return hamlet.why.of_statement(text, tables, row, **options)


def _refuse_loose_tables(options: Mapping[str, Any]) -> None:
    """Raise OptionError where a table is given as an option."""
    known = names_in(StatementOptions)
    loose = [each for each in options if each not in StatementOptions.UNHEARD and near_miss(each, known) is None]
    if loose:
        raise OptionError(
            f"there is no option {loose[0]!r}; the options are {', '.join(known)}, and tables are given together: "
            f"hamlet.sql(text, {{{loose[0]!r}: ...}})"
        )


def parsed(text: str, dialect: str, source: str) -> Script:
    """The statements of a text.

    Raises
    ------
    WorkloadError
        With all mistakes that can be seen without tables.
    """
    if not isinstance(text, str):
        raise OptionError(f"the text of a statement is a str, not a {type(text).__name__}")
    reports = Reports(text, source)
    script = parse(reports, dialect)
    if reports.errors:
        meanings(script, reports)
        raise WorkloadError(reports.errors)
    return script


def meanings(script: Script, reports: Reports) -> list[Meaning]:
    """All clauses, as far as they are known without tables; mistakes are reported."""
    found = []
    for statement in script.statements:
        for clause in statement.clauses:
            with contextlib.suppress(Failed):
                aggregates, translate = _aggregates(script.dialect), translator(script.dialect)
                quoting = quoting_of(script.dialect)
                found.append(read_clause(reports, clause, statement.tokens, aggregates, [], translate, quoting))
    return found


def named_tables(script: Script, tables: Any) -> Mapping[str, Any]:
    """Tables by name; a table that is given alone is the one that the text reads and does not define."""
    if tables is None:
        return {}
    if isinstance(tables, Mapping):
        return tables
    return {the_table(script): tables}


def host_of(script: Script, tables: Any, **options: Any) -> Host:
    """A host that computes as the dialect of a text does, with tables by name or a table that is given alone."""
    whole = script.dialect in WHOLE_DIVISION
    return Host(named_tables(script, tables), whole_division=whole, reads=columns_read(script), **options)


def the_table(script: Script) -> str:
    """The one table that a text reads and does not define.

    Raises
    ------
    OptionError
        If there are several, or none.
    """
    names = tables_read(script)
    if len(names) != 1:
        listed = ", ".join(names) or "no table"
        raise OptionError(f"the input has no name, and the text reads {listed}; write --input name=FILE")
    return names[0]


def tables_read(script: Script) -> list[str]:
    """The tables that a text reads and does not define, in the order of the text."""
    import sqlglot
    from sqlglot import exp

    found: dict[str, str] = {}
    defined: set[str] = set()
    for statement in script.statements:
        rewriting = Rewriting(script.text)
        texts = []
        for place, clause in enumerate(statement.clauses):
            texts.append(f"SELECT * FROM {rewriting.render(clause.source)}")
            rewriting.replace(clause, f"{_REPLACED}{place}")
        texts.append(rewriting.render(statement.span))
        trees = []
        for text in texts:
            try:
                trees += [each for each in sqlglot.parse(text, dialect=dialect_of(script.dialect)) if each is not None]
            except sqlglot.errors.SqlglotError:
                continue
        local = {cte.alias_or_name.lower() for tree in trees for cte in tree.find_all(exp.CTE)}
        for tree in trees:
            made = tree.find(exp.Create)
            for table in tree.find_all(exp.Table):
                name = table.name
                is_made = made is not None and table is made.this.find(exp.Table)
                if is_made:
                    continue
                if name and name.lower() not in local | defined and not name.startswith(_REPLACED):
                    found.setdefault(name.lower(), name)
            if made is not None and made.this.find(exp.Table) is not None:
                defined.add(made.this.find(exp.Table).name.lower())
    return list(found.values())


def columns_read(script: Script) -> Callable[[str], bool]:
    """Which columns of the tables a text may read: all of them where it shows whole rows, else those that it names."""

    @cache  # asked only where one of several files may lack a column
    def named() -> set[str] | None:
        if not all(map(partial(_reads_by_name, script), script.statements)):
            return None
        return {token.text.lower() for each in script.statements for token in each.tokens if token.is_identifier}

    def reads(column: str) -> bool:
        names = named()
        return names is None or column.lower() in names

    return reads


def _reads_by_name(script: Script, statement: Statement) -> bool:
    """Whether a statement is one clause over a table with a row per match, and what stands around it has no other."""
    import sqlglot
    from sqlglot import exp

    if len(statement.clauses) != 1:
        return False
    [clause], rewriting = statement.clauses, Rewriting(script.text)
    rewriting.replace(clause, _REPLACED)
    try:
        tree = sqlglot.parse_one(rewriting.render(statement.span), dialect=dialect_of(script.dialect))
    except sqlglot.errors.SqlglotError:
        return False
    tables = [each.name for each in tree.find_all(exp.Table)]
    return clause.rows == "one" and reads_table(script.text, clause) and tables == [_REPLACED]


class AggregateNames:
    """The aggregate functions of a dialect, by their names in lower case; what is none of the host's is looked up."""

    _OTHERS = frozenset(("first", "last", "prev", "next", "first_value", "last_value", "nth_value", "lag", "lead"))

    def __init__(self, dialect: str) -> None:
        self._dialect = dialect
        self._known: dict[str, bool] = {}

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or name in self._OTHERS:
            return False
        if name in aggregate_functions():
            return True
        if self._dialect == "duckdb":
            return False
        if name not in self._known:
            import sqlglot
            from sqlglot import exp

            try:
                tree = sqlglot.parse_one(f"{name}(x)", dialect=dialect_of(self._dialect))
            except sqlglot.errors.SqlglotError:
                tree = None
            self._known[name] = isinstance(tree, exp.AggFunc)
        return self._known[name]


@cache
def _aggregates(dialect: str) -> AggregateNames:
    return AggregateNames(dialect)


def translator(dialect: str, host: str = "duckdb") -> Callable[[str], str]:
    """From a dialect to a host's (``duckdb``, ``spark``), expressions or statements."""
    own = ("spark", "flink") if host == "spark" else (host,)
    return as_written if dialect in own else partial(_translated, dialect, host)


def as_written(text: str) -> str:
    """A text of the host's own dialect."""
    return text


_PLAIN = re.compile(r"\w+", re.ASCII)


@cache
def quoting_of(dialect: str) -> Quoting:
    """Which names of a dialect have to stand in quotes, there or for the host."""
    found = dialect_of(dialect)
    words = keywords() | {each.lower() for each in found.tokenizer_class.KEYWORDS}
    return Quoting(words, no_columns(), reserved_names(), str(found.IDENTIFIER_START), str(found.IDENTIFIER_END))


@cache
def _translated(dialect: str, host: str, text: str) -> str:
    import sqlglot

    try:
        found = sqlglot.parse(text, read=dialect_of(dialect))
        if not found or found[0] is None:
            return text
        mended = found[0].transform(partial(_mended, dialect, host))
        return str(mended.sql(host, unsupported_level=sqlglot.ErrorLevel.RAISE))  # rather than to leave something out
    except Exception:  # of texts that mean nothing sqlglot raises others than its own
        return text  # the host says what is wrong with it


def _mended(dialect: str, host: str, node: Any) -> Any:
    """A node as the dialect means it, where sqlglot asks for more, or writes a function of another grammar."""
    from sqlglot import Dialect, exp

    if isinstance(node, exp.Identifier) and host == "spark" and not _PLAIN.fullmatch(node.name):
        return exp.to_identifier(node.name, quoted=True)  # Spark has no other letters outside quotes
    if isinstance(node, exp.Collate) and host == "spark" and node.expression.name.upper() == "NOCASE":
        return exp.Collate(this=node.this, expression=exp.var("UTF8_LCASE"))
    if isinstance(node, exp.StrToTime) and node.text("format") == "%Y-%m-%d %H:%M:%S.%f":
        return exp.cast(node.this, "timestamp")  # a literal of Oracle may have no fraction
    if isinstance(node, exp.Format) and dialect == "bigquery":
        return exp.func("printf", node.this, *node.expressions)
    if isinstance(node, exp.ToChar) and dialect == "oracle" and _NUMERIC_TIME.fullmatch(node.text("format").upper()):
        return exp.TimeToStr(this=node.this, format=Dialect.get_or_raise(dialect).format_time(node.args["format"]))
    return None if isinstance(node, exp.Hint) else node


def run_script(script: Script, host: Host, max_steps: int, asked: Asked | None = None) -> Results:
    """All statements one after the other."""
    reports = script.reports()
    found: list[TablePart] = []
    stats = {"events": 0, "matches": 0}
    shared, known = Shared(), dict[int, Meaning]()

    def read_ahead(place: int) -> tuple[Meaning, tuple[str, ...]] | None:
        statement = script.statements[place]
        runner = StatementRun(script, statement, host, script.reports(), "", max_steps, shared)
        [clause] = statement.clauses
        with contextlib.suppress(Failed):
            source = runner.source_of(clause)
            known[clause.span.start] = runner.read(clause, source)
            return known[clause.span.start], known[clause.span.start].table_key(source)
        return None

    together = Together(script, read_ahead)
    shared.matches = together.matches
    for place, statement in enumerate(script.statements):
        together.place = place
        runner = StatementRun(script, statement, host, reports, f"__hamlet_s{place}", max_steps, shared, known)
        try:
            table = runner.run()
        except Failed:
            continue
        stats["events"] += runner.events
        stats["matches"] += runner.matches
        if table is not None:
            found.append(TablePart(f"q{len(found) + 1}", "statement", table, pa.Table.to_pylist, column="query"))
    if reports.errors:
        raise WorkloadError(reports.errors)
    none = any(each.clauses for each in script.statements) and not stats["events"]
    return Results(found, stats, [*host.notes, *([NO_EVENTS] if none else [])], asked)


class StatementRun:
    """One statement: its clauses, inner ones first, then the host's SQL around them."""

    def __init__(
        self,
        script: Script,
        statement: Statement,
        host: Host,
        reports: Reports,
        prefix: str,
        max_steps: int,
        shared: Shared | None = None,
        known: Mapping[int, Meaning] | None = None,
    ) -> None:
        self._script, self.statement, self._host, self._reports = script, statement, host, reports
        self._prefix, self._max_steps = prefix, max_steps
        self._shared = Shared() if shared is None else shared
        self._known = known or {}  # clauses that have been read, by their places
        self._rewriting = Rewriting(script.text)
        self._translate = translator(script.dialect)
        self._settled: set[int] = set()  # clauses that are tables of the host
        self._outer: dict[int, Correlated] = {}  # what clauses read from outside, by their places
        self.events = self.matches = 0  # rows that were put in order for this statement, and what was found in them

    def run(self) -> pa.Table | None:
        """The rows of the statement, None where it gives none."""
        try:
            for clause in self.statement.clauses:
                rows = self.settle(clause)
                if rows is not None:
                    return rows
            text = self.text()
            if self._host.kind_of(text) in ("SELECT", "EXPLAIN", "MULTI"):
                found = self._host.arrow(text)
                return found.rename_columns(distinct_names(found.column_names))
            self._host.execute(text)
            self._shared.forget()
        except HostError as error:
            self._report(error, self.statement.span)
            raise Failed from None
        return None

    def settle(self, clause: Clause) -> pa.Table | None:
        """Let a clause be a table of the host from now on; gives the rows of a statement that takes no more of them."""
        place = self.statement.clauses.index(clause)
        if place in self._settled:
            return None
        self._settled.add(place)
        name = f"{self._prefix}_m{place}"
        rows = self._found(clause, self.source_of(clause), name)
        self.replaced(clause, name, None if rows is None else rows.column_names)
        if rows is not None:
            chosen = projection(self.text(), rows.column_names) if len(self.statement.clauses) == 1 else None
            if chosen is not None:
                return rows.select([at for _, at in chosen]).rename_columns([own for own, _ in chosen])
            self._host.register(name, rows)
        return None

    def evaluate(self, clause: Clause, source: str, name: str) -> None:
        """The rows of a clause over a query of the host, as a table of the host."""
        rows = self._found(clause, source, name)
        if rows is not None:
            self._host.register(name, rows)

    def _found(self, clause: Clause, source: str, name: str) -> pa.Table | None:
        """The rows of a clause, as `evaluate.rows_of` gives them."""
        meaning = self._known.get(clause.span.start) or self.read(clause, source)
        try:
            found = evaluate(meaning, self._host, source, name, self._reports, self._max_steps, self._shared)
        except HostError as error:  # of a text that is not the user's
            self._report(HostError(error.message, None, error.hint), clause.span)
            raise Failed from None
        self.events, self.matches = self.events + found[0], self.matches + found[1]
        if found[0] and meaning.order:  # else the rows are those of another clause, or in no order
            self._look_at_order(meaning, self._shared.tables[meaning.table_key(source)])
        return found[2]

    def _look_at_order(self, meaning: Meaning, ordered: Ordered) -> None:
        """Note where rows are ordered by text of which some is a number: one value that is none makes a column text."""
        kinds = self._host.types(f"(SELECT ({ordered.time}) AS t FROM {ordered.table})")
        if kinds["t"] != "VARCHAR":
            return
        number = f"TRY_CAST({ordered.time} AS DOUBLE) IS NOT NULL"
        given = f"FROM {ordered.table} WHERE {ordered.time} IS NOT NULL"
        [(some, other)] = self._host.rows(
            f"SELECT bool_or({number}), min({ordered.time}) FILTER (NOT {number}) {given}"
        )
        if some and other is not None:
            name = meaning.order[0].expression.text.strip()
            said = f"ORDER BY {name} orders text, of which some is a number and some is not, such as {other!r}"
            self._host.notes.append(f"{said}: '10' comes before '9'")

    def read_outside(self, clause: Clause) -> Mapping[str, str]:
        """The columns of rows around it that a clause's table reads, by the names that the clause has for them."""
        outer = self._outer.get(clause.span.start)
        return {} if outer is None else {each.key: each.name for each in outer.columns}

    def replaced(self, clause: Clause, name: str, columns: Sequence[str] | None = None) -> None:
        """From now on a clause is a table of the host, which has these columns."""
        outer = self._outer.get(clause.span.start)
        if outer is not None:
            name = outer.replacement(name, self._host.names(name) if columns is None else columns)
        self._rewriting.replace(clause, name)

    def text(self) -> str:
        """The host's text of the statement, with tables for clauses that have been replaced."""
        return self._translate(self._rewriting.render(self.statement.span))

    def source_of(self, clause: Clause) -> str:
        """The host's query of a clause's table, for all rows around it that it reads."""
        rendered = f"SELECT * FROM {self._rewriting.render(clause.source)}"
        source = self._translate(with_tables(self.statement, self._rewriting, clause.span.start, rendered))
        if self._names(source) is not None:
            return source
        quoting, number = quoting_of(self._script.dialect), "row_number() OVER ()"
        outer = Outer(
            self.statement, self._rewriting, clause, self._translate, self._names, quoting, quoted, packed, number
        )
        for each in outer.reads(self.statement.clauses):
            self.settle(each)
        found = outer.correlated()
        refused = outer.refused() if found is None or self._names(found.query) is None else None
        if refused is not None:
            self._reports.error(refused, clause.source, "put the clause behind WITH")
            raise Failed
        if found is None:
            return source
        self._outer[clause.span.start] = found
        return found.query

    def _names(self, query: str) -> list[str] | None:
        """The columns of a query; None for one that the host refuses."""
        with contextlib.suppress(HostError):
            if query not in self._shared.columns:
                self._shared.columns[query] = self._host.names(query)
            return self._shared.columns[query]
        return None

    def read(self, clause: Clause, source: str) -> Meaning:
        """A clause with its expressions read."""
        columns = self._names(source)
        if columns is None:
            said = self._host.said(f"DESCRIBE {source}")
            assert said is not None
            self._report(said, clause.source)
            raise Failed
        aggregates = _aggregates(self._script.dialect)
        tokens, quoting = self.statement.tokens, quoting_of(self._script.dialect)
        found = read_clause(self._reports, clause, tokens, aggregates, columns, self._translate, quoting)
        outer = self._outer.get(clause.span.start)
        own = [] if outer is None else outer.partition(clause, quoted)
        whole = self._script.dialect in WHOLE_DIVISION
        return replace(found, partition=own + found.partition, whole_division=whole)

    def _report(self, error: HostError, span: Span) -> None:
        """Report what the host says of the text of a span, at its place if it is the user's own."""
        text = self._script.text
        trimmed = Span(span.start, span.start + len(text[span.start : span.end].rstrip()))
        place = trimmed
        named = names_said(error.message)
        found = next(filter(None, map(partial(word_in, text, span), (".".join(named[:2]), *named[:1]))), None)
        if self._script.dialect == "duckdb" and span == self.statement.span and error.place is not None:
            at = self._rewriting.origin(span, error.place)
            end = at + 1
            while end < span.end and (text[end].isalnum() or text[end] == "_"):
                end += 1
            place = Span(at, end)
        elif found is not None:
            place = found
        self._reports.error(_CLAUSE.sub("MATCH_RECOGNIZE", error.message), place, error.hint)


def word_in(text: str, span: Span, name: str) -> Span | None:
    """Where a name stands in a part of a text."""
    match = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)", re.IGNORECASE).search(text, span.start, span.end)
    return Span(match.start(), match.end()) if match and name else None
