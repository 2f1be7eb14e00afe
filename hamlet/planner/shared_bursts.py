"""Which queries can share the bursts of a type: what a run may do, so that `explain` says no more and no less.

The kernel (``members.pyx``) lets queries share a burst (events of one type that nothing of interest interrupts) where
each binds its events to one state, does not look back at single events, keeps none for others that do, and has no
negated pattern that the events belong to. Whether they do share is decided when the burst is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, combinations

from hamlet._core import SOURCES
from hamlet.planner.classify import Role
from hamlet.planner.compiled import CompiledClass
from hamlet.planner.tables import QueryTables

_MOST_TRIED = 6  # local predicates of one query and type; of more, one at a time


def shared_bursts(compiled: CompiledClass) -> dict[str, tuple[int, ...]]:
    """The types whose bursts several queries can share, and these queries.

    Parameters
    ----------
    compiled : CompiledClass
        As it is run: queries that one evaluation serves put together.

    Returns
    -------
    dict of str to tuple of int
        Places in the workload, ascending, two at least.
    """
    if compiled.matching:
        return {}
    found: dict[str, tuple[int, ...]] = {}
    for type, touching in compiled.touched.items():
        places = {
            compiled.queries[place].analysed.index
            for number, variables in touching
            if _joins(compiled.tables(number), compiled.roles(number), variables)
            for place in compiled.kept_by[number]
        }
        if len(places) > 1:
            found[type] = tuple(sorted(places))
    return found


def _joins(tables: QueryTables, roles: Mapping[str, Role], variables: Sequence[str]) -> bool:
    """Whether there may be events of the type that the query takes as a burst."""
    for accepted in _accepted(roles[variable].predicate for variable in variables):
        fitting = [each for each in variables if roles[each].predicate is None or roles[each].predicate in accepted]
        arrivals = [number for each in fitting for number in tables.arrivals_of.get(each, ())]
        guarded = any(tables.guard_arrivals_of.get(each) for each in fitting)
        if len(arrivals) == 1 and not guarded and not _looks_back(tables, arrivals[0]):
            return True
    return False


def _accepted(predicates: Iterator[int | None]) -> Iterator[frozenset[int]]:
    """Sets of local predicates that an event may fulfil."""
    own = sorted({each for each in predicates if each is not None})
    sizes = range(len(own) + 1) if len(own) <= _MOST_TRIED else (0, 1, len(own))
    return map(frozenset, chain.from_iterable(combinations(own, size) for size in sizes))


def _looks_back(tables: QueryTables, arrival: int) -> bool:
    _, first, last, _, _, stores, stores_end, *_ = tables.arrivals[arrival]
    return stores != stores_end or any(tables.sources[n][0] == SOURCES["store"] for n in range(first, last))
