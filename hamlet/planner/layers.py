"""A workload cut into units: queries that ask about the rows of the same queries, those being declared event types.

Those that skip till any match are apart from the others, with which they would share nothing.

A unit is a workload of its own. What it reads of rows has names of its own, too (``n of surge``), so that it never
meets a column of the input; only keys, on which rows and events agree, keep theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hamlet.language.analysis import analyse
from hamlet.language.mapping import mapped
from hamlet.language.meaning import AnalysedQuery, Analysis
from hamlet.language.query import (
    Aggregate,
    AttributeType,
    DeclaredAttribute,
    EventDeclaration,
    Negation,
    Query,
    Reference,
    Semantics,
    Taken,
    WorkloadText,
    children,
)
from hamlet.language.query import Sequence as SequencePattern
from hamlet.planner.workload import Workload

Columns = Mapping[
    str, Mapping[str, AttributeType | None]
]  # of the rows of queries, by their names; None: not known yet


@dataclass(frozen=True)
class Unit:
    """Queries that ask about the rows of the same queries, and skip till any match all or none.

    Attributes
    ----------
    places : tuple of int
        Of the queries in the whole workload.
    reads : tuple of str
        The queries whose rows they ask about; none for those that ask about the input only.
    types : frozenset of str or None
        The event types of the input that matter; None where all do.
    any_match : bool
        Whether all queries skip till any match.
    """

    places: tuple[int, ...]
    reads: tuple[str, ...]
    types: frozenset[str] | None
    any_match: bool


def units_of(analysis: Analysis) -> tuple[Unit, ...]:
    """The units of a workload, each behind those whose rows it asks for."""
    found: dict[tuple[tuple[str, ...], bool], list[int]] = {}
    for place in (place for layer in analysis.layers for place in layer):
        query = analysis.queries[place]
        reads = tuple(sorted(query.upstream))
        found.setdefault((reads, not reads or query.query.semantics is Semantics.ANY), []).append(place)
    units = []
    for (reads, _), places in found.items():
        queries = [analysis.queries[place] for place in sorted(places)]
        named = {kind for query in queries for kind in query.types.values()}
        skips = all(query.query.semantics is not Semantics.CONTIGUOUS for query in queries)
        any_match = all(query.query.semantics is Semantics.ANY for query in queries)
        units.append(Unit(tuple(sorted(places)), reads, frozenset(named) if skips and reads else None, any_match))
    return _in_order(units, {query.query.name: query.index for query in analysis.queries})


def _in_order(units: Sequence[Unit], places: Mapping[str, int]) -> tuple[Unit, ...]:
    done: set[int] = set()
    order: list[Unit] = []
    waiting = list(units)
    while waiting:
        ready = [unit for unit in waiting if all(places[name] in done for name in unit.reads)]
        assert ready, "the analysis refuses circles"
        order += ready
        done.update(place for unit in ready for place in unit.places)
        waiting = [unit for unit in waiting if unit not in ready]
    return tuple(order)


def delay_of(query: AnalysedQuery, longest: int | None) -> int:
    """How long after the end of their window rows are given, in ticks: a last NOT looks ahead as far as SPAN says."""
    return longest if longest is not None and any(_ends_with_guard(each) for each in query.patterns) else 0


def _ends_with_guard(pattern: Any) -> bool:
    """Whether a NOT may stand behind the last event: whether there is one that something need not follow."""
    if isinstance(pattern, SequencePattern):
        return any(isinstance(part, Negation) for part in pattern.parts) or any(map(_ends_with_guard, pattern.parts))
    return any(map(_ends_with_guard, children(pattern)))


# ------------------------------------------------------------------------------------------------- workloads


def column_of(query: str, column: str) -> str:
    """What a unit calls a column of the rows of a query."""
    return f"{column} of {query}"


def workload_of_unit(whole: Analysis, unit: Unit, columns: Columns, special: Collection[str]) -> Workload:
    """The queries of a unit as a workload, the rows that they read as declared events.

    Parameters
    ----------
    whole : Analysis
        Of the whole workload.
    unit : Unit
    columns : mapping of str to mapping of str to AttributeType
        The columns of the rows that the unit reads.
    special : collection of str
        Names of the time and the type column.
    """
    queries = [whole.queries[place] for place in unit.places]
    keys = {name for query in queries for name in query.partition}
    declarations = list(whole.text.declarations)
    for name in unit.reads:
        named = {column_of(name, each): kind for each, kind in columns[name].items()}
        named |= {each: kind for each, kind in columns[name].items() if each in keys}
        # A type that is not known is checked when it is, as that of an attribute of the input.
        attributes = [DeclaredAttribute(each, kind) for each, kind in named.items()]  # type: ignore[arg-type]
        declarations.append(EventDeclaration(name, tuple(attributes)))
    written = tuple(_rewritten(query, unit.reads, special) for query in queries)
    text = WorkloadText(whole.text.text, whole.text.source, tuple(declarations), written)
    return Workload(analyse(text, special=special))


def _rewritten(query: AnalysedQuery, reads: Collection[str], special: Collection[str]) -> Query:
    """A query that reads rows under the names of `column_of`; its own columns keep their names."""

    def renamed(variable: str | None, attribute: str | None) -> str | None:
        kind = query.types.get(variable or "")
        if (
            kind is None
            or kind not in reads
            or attribute is None
            or attribute in query.partition
            or attribute in special
        ):
            return attribute
        return column_of(kind, attribute)

    def change(node: Any) -> Any:
        if isinstance(node, (Aggregate, Taken)):
            return replace(node, attribute=renamed(node.variable, node.attribute))
        if isinstance(node, Reference):
            return replace(node, attribute=renamed(node.variable, node.attribute) or node.attribute)
        return node

    items = tuple(replace(item, alias=item.column) for item in query.query.items)
    written: Query = mapped(replace(query.query, items=items), change)
    return written
