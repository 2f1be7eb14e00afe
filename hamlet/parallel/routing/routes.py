"""Which events reach which task: the classes of a workload, what each reads, and by which attributes it is routed.

A class is a set of queries with equal partition attributes (`optimizer.plan`). All events of one partition must reach
one task. Where the events of every group do so too, no merge is needed; else tasks give partial rows
(`hamlet.output.partial`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hamlet.planner.compiled import CompiledClass, CompiledWorkload
from hamlet.planner.workload import Workload


@dataclass(frozen=True)
class Route:
    """How the events of one class of queries reach its tasks.

    Attributes
    ----------
    number : int
        Of the class, from 0.
    queries : tuple of int
        Places in the workload.
    keys : tuple of str
        Attributes to route by: events that agree on them meet in one task. Without any, one task gets all.
    carried : bool
        Whether every event of the class carries all of them, so that a plain hash of the event can route it.
    whole : bool
        Whether every group lies in one task, so that its rows are final.
    columns : tuple of str
        What the queries read of an event: time, type, order column, then attributes.
    """

    number: int
    queries: tuple[int, ...]
    keys: tuple[str, ...]
    carried: bool
    whole: bool
    columns: tuple[str, ...]


def routes(workload: Workload, compiled: CompiledWorkload) -> tuple[Route, ...]:
    """The route of each class.

    A class is routed by the GROUP-BY attributes that all its queries share, where there are any: every group then lies
    in one task. Otherwise by all partition attributes, which spreads the events as widely as can be. Where some type of
    the class is declared without an attribute, its events belong to every value of it: the attribute does
    not route, unless no attribute is left and only types inside NOT lack it.
    """
    return tuple(_route(workload, compiled, number) for number in range(len(compiled.classes)))


def _route(workload: Workload, compiled: CompiledWorkload, number: int) -> Route:
    chosen = compiled.classes[number]
    queries = tuple(query.analysed.index for query in chosen.queries)
    everywhere = _carried_by(chosen, set(chosen.carried))
    usable = everywhere or _carried_by(chosen, _positive_types(chosen))
    grouping = [set(query.analysed.grouping) for query in chosen.queries]
    shared = [name for name in usable if all(name in group for group in grouping)]
    keys = tuple(shared or usable)
    # Without keys one task has all, or cells of a grid do, in which only partitions are whole.
    needed_for_rows = keys or chosen.attributes
    whole = all(group.issuperset(needed_for_rows) for group in grouping)
    schema = compiled.schema
    needed = {schema.clock.column, schema.type_column, schema.order_column, *part_of(workload, queries).attributes}
    columns = tuple(name for name in schema.columns if name in needed)
    return Route(number, queries, keys, bool(everywhere) or not usable, whole, columns)


def _carried_by(chosen: CompiledClass, types: set[str]) -> list[str]:
    """The partition attributes that all these types of a class carry."""
    return [
        name for place, name in enumerate(chosen.attributes) if all(place in chosen.carried[type] for type in types)
    ]


def _positive_types(chosen: CompiledClass) -> set[str]:
    """The types of events that take part in trends."""
    return {
        type
        for query in chosen.queries
        for variable, type in query.analysed.types.items()
        if variable not in query.analysed.negated
    }


def part_of(workload: Workload, queries: tuple[int, ...]) -> Workload:
    """The workload with some of its queries only."""
    analysis = workload.analysis
    chosen = tuple(query for query in analysis.queries if query.index in queries)
    return Workload(replace(analysis, queries=chosen))
