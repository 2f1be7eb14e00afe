"""What of a statement can be answered as rows come, and what needs all rows."""

from __future__ import annotations

from typing import Any

from hamlet.errors import WorkloadError
from hamlet.frontend.reports import Reports
from hamlet.patterns.clause.statement import Rewriting, Script, Statement
from hamlet.patterns.clause.tree import Anchor, nodes

_HINT = "a matcher takes a projection and a filter; use hamlet.sql for more"


def beyond_stream(script: Script, statement: Statement, reports: Reports) -> bool:
    """Report what of a statement needs the end of its table; gives whether that can be told.

    Where it cannot, the host may know what is wrong with the text, and `unreadable` is what is left to say.
    """
    import sqlglot

    if len(statement.clauses) != 1:
        reports.error("a stream takes statements with one MATCH_RECOGNIZE", statement.span, "use hamlet.sql")
        return True
    [clause] = statement.clauses
    if any(isinstance(each, Anchor) and not each.at_start for each in nodes(clause.pattern)):
        said = "$ needs the end of the partition, which a stream has not"
        reports.error(said, clause.pattern_span, "leave $ out")
    if clause.order and clause.order[0].descending:
        span = clause.order[0].expression.span
        reports.error("the leading column of ORDER BY is the time, and descends", span, "leave DESC out")
    rewriting = Rewriting(script.text)
    inner = f"SELECT * FROM {rewriting.render(clause.source)}"
    rewriting.replace(clause, "__hamlet_given")
    readable = True
    for text, span in ((inner, clause.source), (rewriting.render(statement.span), statement.span)):
        try:
            found = beyond_rows(text, script.dialect)
        except (sqlglot.errors.SqlglotError, RecursionError):
            readable = False
            continue
        if found is not None:
            reports.error(f"{found} needs all rows, which a stream has not", span, _HINT)
    return readable


def unreadable(statement: Statement, reports: Reports) -> None:
    """Report that nobody can tell whether a statement needs all rows."""
    reports.error("what stands around MATCH_RECOGNIZE is no projection and filter", statement.span, _HINT)


def needs_all_rows(script: Script) -> WorkloadError | None:
    """What hinders a text from being answered as rows come, None where nothing does."""
    reports = script.reports()
    for each in script.statements:
        if not beyond_stream(script, each, reports):
            unreadable(each, reports)
    return WorkloadError(reports.errors) if reports.errors else None


def beyond_rows(text: str, dialect: str) -> str | None:
    """What of a SELECT is more than a projection and a filter."""
    import sqlglot
    from sqlglot import exp

    from hamlet.patterns.clause.scan import dialect_of

    tree = sqlglot.parse_one(text, dialect=dialect_of(dialect))
    if not isinstance(tree, exp.Select):
        return "what is no SELECT"
    parts = {"joins": "a join", "group": "GROUP BY", "having": "HAVING", "order": "ORDER BY", "limit": "LIMIT"}
    parts |= {"offset": "OFFSET", "distinct": "DISTINCT", "qualify": "QUALIFY", "with_": "WITH", "with": "WITH"}
    for select in tree.find_all(exp.Select):
        for part, said in parts.items():
            if select.args.get(part):
                return said
    kinds: tuple[tuple[Any, str], ...] = ((exp.AggFunc, "an aggregate"), (exp.Window, "a window function"))
    for kind, said in (*kinds, (exp.SetOperation, "UNION"), (exp.TableSample, "TABLESAMPLE")):
        if tree.find(kind):
            return said
    return None
