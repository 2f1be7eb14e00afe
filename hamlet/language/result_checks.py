"""What RETURN, HAVING and TOP may speak of, and what sessions and bounds on trends ask of a query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from hamlet.errors import near_miss
from hamlet.frontend.reports import Reports
from hamlet.language.conditions import Part, walk
from hamlet.language.pattern_checks import Variables
from hamlet.language.predicates import Predicates, report_unknown
from hamlet.language.printing import name_text, to_text
from hamlet.language.query import Aggregate, Attribute, Conjunction, Query, Semantics, Span, Taken, atoms, negations
from optimizer.template import START, Template

# Columns of every result row.
RESULT_COLUMNS = ("query", "window_start", "window_end")
MOST_TAKEN = 64  # FIRST, LAST and COUNT in one GROUP-BY


def result_parts(query: Query) -> Iterator[tuple[str, Part]]:
    """What a query computes of its groups, each with the clause that asks for it, in the order of the text."""
    for item in query.items:
        yield "RETURN", item.value
    if query.having is not None:
        yield "HAVING", query.having
    if query.top is not None:
        yield "TOP", query.top.by


def aggregates_of(query: Query) -> tuple[Aggregate, ...]:
    """All different aggregates of RETURN, HAVING and TOP, in the order of the text."""
    parts = (inner for _, part in result_parts(query) for inner in walk(part))
    return tuple(dict.fromkeys(inner for inner in parts if isinstance(inner, Aggregate)))


def check_results(query: Query, variables: Variables, grouping: tuple[str, ...], reports: Reports) -> None:
    """Report attributes and aggregates that the results cannot have, columns of one name, and a TOP of no rows."""
    for each in query.group_by:
        if isinstance(each, Attribute):
            _check_prefix(each, "GROUP-BY", variables, reports)
        else:
            _check_taken(each, query, variables, reports)
    taken = dict.fromkeys(RESULT_COLUMNS, "")
    for item in query.items:
        _check_part("RETURN", item.value, query, variables, grouping, reports)
        column = item.column
        if column in taken:
            text = f"'{taken[column]}'" if taken[column] else "a column that every result has"
            hint = f"rename it, as in {reports.quote(item.value.span)[1:-1]} AS {column}_2"
            reports.error(f"the column name '{column}' is taken by {text}", item.span, hint)
        taken.setdefault(column, reports.quote(item.span)[1:-1])
    renamed = {item.column: item.value.span for item in query.items}
    for clause, part in list(result_parts(query))[len(query.items) :]:
        hints = partial(_renamed_hint, renamed=renamed, reports=reports)
        _check_part(clause, part, query, variables, grouping, reports, hints)
    groups = list(dict.fromkeys(each for each in query.group_by if isinstance(each, Taken)))
    for each in groups[MOST_TAKEN : MOST_TAKEN + 1]:
        message = f"trends are grouped by at most {MOST_TAKEN} things that they took"
        reports.error(message, each.span, "leave some of them out")
    if query.top is not None and query.top.count < 1:
        message = "TOP keeps at least one row"
        reports.error(message, query.top.span, "write TOP 1 BY and what the row has most of")


def _renamed_hint(name: str, renamed: dict[str, Span], reports: Reports) -> str | None:
    """What to write for the name of a column, which only the rows have."""
    span = renamed.get(name)
    if span is None:
        return None
    text = reports.quote(span)[1:-1]
    return f"names of columns are not known here: write {text}"


def _check_part(
    clause: str,
    part: Part,
    query: Query,
    variables: Variables,
    grouping: tuple[str, ...],
    reports: Reports,
    renamed: Callable[[str], str | None] | None = None,
) -> None:
    for inner in walk(part):
        if isinstance(inner, Attribute):
            if _check_prefix(inner, clause, variables, reports):
                _check_grouped(inner, clause, grouping, reports, renamed)
        elif isinstance(inner, Taken):
            _check_named(inner, clause, query, reports)
        elif isinstance(inner, Aggregate):
            _check_aggregate(inner, variables, reports)


def _check_taken(taken: Taken, query: Query, variables: Variables, reports: Reports) -> None:
    """Report a group by what a trend took that no trend can have."""
    text = to_text(taken)
    if taken.variable not in variables.types:
        attribute = f".{name_text(taken.attribute, free=True)}" if taken.attribute is not None else ""
        report_unknown(taken.variable, taken.span, f"{taken.function}({{}}{attribute})", variables, reports)
    elif taken.variable in variables.negated:
        message = f"{taken.variable} stands inside NOT: no trend takes such an event"
        reports.error(message, taken.span, f"group by what it takes of {', '.join(variables.positive)}")
    elif isinstance(query.pattern, Conjunction):
        message = f"{text} groups single trends, and AND makes pairs of them"
        reports.error(message, taken.span, "ask about each operand in a query of its own, or group by attributes")


def _check_named(taken: Taken, clause: str, query: Query, reports: Reports) -> None:
    """Report what a trend took where GROUP-BY does not name it."""
    if taken in query.group_by:
        return
    text = to_text(taken)
    hint = f"add GROUP-BY {text} before {'WITHIN' if clause == 'RETURN' else clause}"
    if query.group_by:
        hint = f"add it: GROUP-BY {', '.join(map(to_text, query.group_by))}, {text}"
    reports.error(f"{text} is in {clause} but not in GROUP-BY", taken.span, hint)


def _check_prefix(attribute: Attribute, clause: str, variables: Variables, reports: Reports) -> bool:
    if attribute.variable is None:
        return True
    name = name_text(attribute.name, free=True)
    if attribute.variable not in variables.types:
        report_unknown(attribute.variable, attribute.span, f"{{}}.{name}", variables, reports)
        return False
    if attribute.variable in variables.negated:
        message = f"{attribute.variable} stands inside NOT: its events are no part of a trend"
        hint = f"write {clause} {name_text(attribute.name)} for the attribute of the trend"
        reports.error(message, attribute.span, hint)
        return False
    return True


def _check_grouped(
    attribute: Attribute,
    clause: str,
    grouping: tuple[str, ...],
    reports: Reports,
    renamed: Callable[[str], str | None] | None,
) -> None:
    if attribute.name in grouping:
        return
    meant = near_miss(attribute.name, grouping)
    text = reports.quote(attribute.span)[1:-1]
    hint = renamed(attribute.name) if renamed is not None and attribute.variable is None else None
    if hint is not None:
        pass
    elif meant is not None:
        hint = f"did you mean {name_text(meant)}?"
    elif grouping:
        hint = f"add it: GROUP-BY {', '.join(map(name_text, grouping))}, {text}"
    else:
        hint = f"add GROUP-BY {text} before {'WITHIN' if clause == 'RETURN' else clause}"
    reports.error(f"{text} is in {clause} but not in GROUP-BY", attribute.span, hint)


def _check_aggregate(aggregate: Aggregate, variables: Variables, reports: Reports) -> None:
    variable = aggregate.variable
    if variable is None:
        return
    if variable not in variables.types:
        attribute = f".{name_text(aggregate.attribute, free=True)}" if aggregate.attribute is not None else ""
        usage = f"{aggregate.function}({'EVENTS ' * aggregate.events}{{}}{attribute})"
        if aggregate.function == "COUNT_DISTINCT":
            usage = f"COUNT(DISTINCT {{}}{attribute})"
        report_unknown(variable, aggregate.span, usage, variables, reports)
    elif variable in variables.negated:
        message = f"{variable} stands inside NOT: no trend has such an event to aggregate"
        hint = f"aggregate one of {', '.join(variables.positive)}"
        reports.error(message, aggregate.span, hint)


# ------------------------------------------------------------------------------------------------- sessions


def check_session(
    query: Query,
    predicates: Predicates,
    grouping: tuple[str, ...],
    carries: Callable[[str, str], bool],
    reports: Reports,
) -> None:
    """Report what session windows cannot have: keys beside the grouping, types without a key, TOP."""
    if not query.session:
        return
    for equivalence in predicates.equivalences:
        missing = [name for name in equivalence.attributes if name not in grouping]
        if missing:
            names = ", ".join(map(name_text, dict.fromkeys((*grouping, *missing))))
            message = f"sessions are those of a group, so {' and '.join(missing)} must be in GROUP-BY, too"
            reports.error(message, equivalence.span, f"write GROUP-BY {names}")
    for attribute in query.group_by:
        if isinstance(attribute, Taken):
            continue
        lacking = dict.fromkeys(each.type for each in atoms(query.pattern) if not carries(each.type, attribute.name))
        if lacking:
            message = f"{' and '.join(lacking)} is declared without '{attribute.name}', so its events have no session"
            reports.error(message, attribute.span, f"declare {attribute.name} for it, or group by what all types have")
    if query.top is not None:
        message = "TOP compares the rows of one window, and every session is a window of its own"
        reports.error(message, query.top.span, "leave TOP out, or ask a query about the rows of this one")


# ------------------------------------------------------------------------------------------------ semantics


def warn_of_idle_guards(query: Query, templates: list[Template], reports: Reports) -> None:
    """Warn of NOT between two events of a contiguous trend: nothing lies there."""
    if query.semantics is not Semantics.CONTIGUOUS:
        return
    for automaton in templates:
        edges = {guard for step in automaton.transitions if step.source == START for guard in step.guards}
        edges |= {guard for final in automaton.finals for guard in final.guards}
        idle = {guard.text for number, guard in enumerate(automaton.guards) if number not in edges}
        for negation in negations(query.pattern):
            if to_text(negation.body) in idle:
                message = f"{reports.quote(negation.span)} forbids nothing: contiguous trends skip no event anyway"
                reports.warn(message, negation.span, "leave it out, or take another semantics")
