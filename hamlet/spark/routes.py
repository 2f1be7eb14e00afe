"""Which events reach which task: the classes of a workload, what each reads, and by which attributes it is routed.

A class is a set of queries with equal partition attributes (`optimizer.plan`). All events of one partition must reach
one task. Where the events of every group do so too, no merge is needed; else tasks give partial rows
(`hamlet.output.partial`). Source: DESIGN §4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hamlet.compiler.compile import CompiledClass, CompiledWorkload
from hamlet.workload import Workload


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
    whole : bool
        Whether every group lies in one task, so that its rows are final.
    columns : tuple of str
        What the queries read of an event: time, type, order column, then attributes.
    """

    number: int
    queries: tuple[int, ...]
    keys: tuple[str, ...]
    whole: bool
    columns: tuple[str, ...]


def routes(workload: Workload, compiled: CompiledWorkload) -> tuple[Route, ...]:
    """The route of each class.

    A class is routed by the GROUP-BY attributes that all its queries share, where there are any: every group then lies
    in one task. Otherwise by all partition attributes, which spreads the events as widely as can be. An attribute that
    some type of the class is declared without (LANGUAGE §6) cannot route, since that type's events belong to every
    value of it.
    """
    return tuple(_route(workload, compiled, number) for number in range(len(compiled.classes)))


def _route(workload: Workload, compiled: CompiledWorkload, number: int) -> Route:
    chosen = compiled.classes[number]
    queries = tuple(query.analysed.index for query in chosen.queries)
    usable = _carried_by_all(chosen)
    grouping = [set(query.analysed.grouping) for query in chosen.queries]
    shared = [name for name in usable if all(name in group for group in grouping)]
    keys = tuple(shared or usable)
    whole = not keys or all(group.issuperset(keys) for group in grouping)
    schema = compiled.schema
    needed = {schema.clock.column, schema.type_column, schema.order_column, *part_of(workload, queries).attributes}
    columns = tuple(name for name in schema.columns if name in needed)
    return Route(number, queries, keys, whole, columns)


def _carried_by_all(chosen: CompiledClass) -> list[str]:
    """The partition attributes that every type of a class carries."""
    return [
        name
        for place, name in enumerate(chosen.attributes)
        if all(place in places for places in chosen.carried.values())
    ]


def part_of(workload: Workload, queries: tuple[int, ...]) -> Workload:
    """The workload with some of its queries only."""
    analysis = workload.analysis
    chosen = tuple(query for query in analysis.queries if query.index in queries)
    return Workload(replace(analysis, queries=chosen))
