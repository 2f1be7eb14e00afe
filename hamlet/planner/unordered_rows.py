"""Rows as events beside events that an order column orders: a row precedes no event of its own time, and follows none.

A row is then two events, one before all events of its time and one behind them. A pattern takes both, one directly
after the other: what comes before the first came before the row, and what follows the second follows the row. So it is
where any events may be skipped; the matching operator takes rows as they are (`hamlet.kernel.operators.matching`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from hamlet.language.mapping import mapped
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.query import (
    Alternation,
    Atom,
    AttributeType,
    Comparison,
    Conjunction,
    Negation,
    Pattern,
    Reference,
    Repetition,
    Sequence,
    Shift,
)
from hamlet.planner.workload import Workload

ROW = " row"  # the number of a row among those that are given together
ORDER = " order"  # the order among events of equal time, in place of the input's
RANK = " rank"  # as ORDER, where rows are single events: 0 for them, and more for all others


def end_of(name: str) -> str:
    """The type of the second event of a row of a query, and the variable of the second event of one of a variable."""
    return f"end of {name}"


def in_two(workload: Workload, reads: Collection[str], time: str) -> Workload:
    """A workload over rows that are two events each.

    Parameters
    ----------
    workload : Workload
        Of skip-till-any-match queries; the rows that it reads are declared events.
    reads : collection of str
        The queries whose rows they are.
    time : str
        The time column.
    """
    analysis = workload.analysis
    declared = dict(analysis.declared)
    for name in reads:
        declared[name] = {**declared[name], ROW: AttributeType.INT}
        declared[end_of(name)] = declared[name]
    queries = tuple(_query_in_two(query, reads, time, declared) for query in analysis.queries)
    return Workload(replace(analysis, queries=queries, declared=declared))


def _query_in_two(
    query: AnalysedQuery, reads: Collection[str], time: str, declared: Mapping[str, Mapping[str, Any]]
) -> AnalysedQuery:
    ends = {variable: end_of(variable) for variable, kind in query.types.items() if kind in reads}

    def earlier(node: Any) -> Any:
        if isinstance(node, Reference) and node.shift is Shift.NONE and node.variable in ends:
            return replace(node, variable=ends[node.variable])
        return node

    def same(variable: str, attribute: str) -> Comparison:
        return Comparison("=", Reference(variable, attribute), Reference(ends[variable], attribute, Shift.NEXT))

    adjacent = {(ends.get(first, first), second): mapped(found, earlier) if first in ends else found
                for (first, second), found in query.adjacent.items()}  # fmt: skip
    adjacent |= {(variable, end): (same(variable, ROW), same(variable, time)) for variable, end in ends.items()}
    types = dict(query.types)
    for variable, end in ends.items():
        types[end] = end_of(query.types[variable])
    return replace(
        query,
        query=replace(query.query, pattern=_pattern_in_two(query.query.pattern, ends)),
        types=types,
        negated=query.negated | {end for variable, end in ends.items() if variable in query.negated},
        local={**query.local, **dict.fromkeys(ends.values(), ())},
        adjacent=adjacent,
        patterns=tuple(_pattern_in_two(each, ends) for each in query.patterns),
        declared={variable: declared[kind] for variable, kind in types.items() if kind in declared},
    )


def _pattern_in_two(pattern: Pattern, ends: Mapping[str, str]) -> Pattern:
    def inner(each: Pattern) -> Pattern:
        return _pattern_in_two(each, ends)

    match pattern:
        case Atom(type=kind, variable=variable) if variable in ends:
            return Sequence((pattern, Atom(end_of(kind), ends[variable], span=pattern.span)), span=pattern.span)
        case Sequence(parts=parts):
            return replace(pattern, parts=tuple(map(inner, parts)))
        case Alternation(branches=branches):
            return replace(pattern, branches=tuple(map(inner, branches)))
        case Conjunction(operands=operands):
            return replace(pattern, operands=tuple(map(inner, operands)))
        case Repetition(body=body) | Negation(body=body):
            return replace(pattern, body=inner(body))
    return pattern
