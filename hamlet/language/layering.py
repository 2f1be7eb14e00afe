"""Which queries ask about the rows of others, and in which order they can be run.

The name of a query is an event type for the other queries of its workload: each of its rows is an event, at the end of
its window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hamlet.frontend.reports import Reports
from hamlet.language.query import Atom, AttributeType, Query, atoms

ROW_COLUMNS: Mapping[str, AttributeType | None] = {
    "query": AttributeType.STRING,
    "window_start": None,
    "window_end": None,
}  # every result row has them; times are of the type of the time column


def order_of(queries: Sequence[Query], declared: Mapping[str, object], reports: Reports) -> list[int]:
    """The places of the queries, each behind those whose rows it asks for.

    Parameters
    ----------
    queries : sequence of Query
        In the order of the text; of two with the same name the first one is meant.
    declared : mapping
        Event types of the text; a type that is one and a query's name is reported.
    reports : Reports
        Takes cycles and names of both kinds.

    Returns
    -------
    list of int
        All queries; those on a cycle, and those behind it, come last.
    """
    named: dict[str, int] = {}
    for place, query in enumerate(queries):
        named.setdefault(query.name, place)
    asked = [_asked(query, named) for query in queries]
    for found in asked:
        for name, atom in found.items():
            if name in declared:
                hint = f"give the query another name, or leave out EVENT {name}"
                reports.error(f"{name} is a query of this workload and a declared event type", atom.span, hint)
            elif queries[named[name]].within is None:
                hint = f"give {name} windows with a length, as in WITHIN 1 d; or ask the input itself"
                reports.error(f"the rows of {name} have no time (WITHIN ALL), so they are no events", atom.span, hint)
    order: list[int] = []
    done: set[int] = set()
    waiting = list(range(len(queries)))
    while waiting:
        ready = [place for place in waiting if all(named[name] in done for name in asked[place])]
        if not ready:
            _report_cycle(queries, asked, named, waiting, reports)
            return order + waiting
        order += ready
        done.update(ready)
        waiting = [place for place in waiting if place not in done]
    return order


def layers_of(upstream: Sequence[Sequence[int]], order: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Queries by the length of the longest way to them, given the places that each asks about."""
    depth: dict[int, int] = {}
    for place in order:
        depth[place] = max((depth.get(each, 0) + 1 for each in upstream[place]), default=0)
    return tuple(
        tuple(sorted(place for place in depth if depth[place] == level))
        for level in range(max(depth.values(), default=-1) + 1)
    )


def _asked(query: Query, named: Mapping[str, int]) -> dict[str, Atom]:
    """The queries that a pattern names as event types, with the first place of each."""
    found: dict[str, Atom] = {}
    for atom in atoms(query.pattern):
        if atom.type in named:
            found.setdefault(atom.type, atom)
    return found


def _report_cycle(
    queries: Sequence[Query],
    asked: Sequence[Mapping[str, Atom]],
    named: Mapping[str, int],
    waiting: Sequence[int],
    reports: Reports,
) -> None:
    """Report every cycle once, at the place that closes it."""
    seen: set[int] = set()
    for first in waiting:
        path: list[int] = []
        place = first
        while place not in path and place not in seen:
            path.append(place)
            place = next(named[name] for name in asked[place] if named[name] in waiting)
        seen.update(path)
        if place not in path:
            continue
        cycle = path[path.index(place) :]
        names = [queries[each].name for each in (*cycle, place)]
        atom = asked[cycle[-1]][queries[place].name]
        if len(cycle) == 1:
            message = f"the query {names[0]} asks about its own rows"
            hint = f"give the query another name if {names[0]} is an event type of the input"
        else:
            message = f"queries ask about each other's rows in a circle: {' asks about '.join(names)}"
            hint = "a query may ask about rows that do not depend on its own"
        reports.error(message, atom.span, hint)
