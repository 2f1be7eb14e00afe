"""Why queries do not share though they have Kleene sub-patterns of the same types: the first reason that holds.

Every set of queries that share is compared with the largest one that has a sub-pattern of the same types, so that there
are at most as many reasons as queries for one sub-pattern.

Source: HAMLET (SIGMOD'21) Defs. 3.1 and 3.2.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from optimizer.kleene import Occurrence, occurrences
from optimizer.merge import Shareable, Variant, relations
from optimizer.plan import GRAPHLETS, QueryFacts
from optimizer.roles import Part, Roles


class Reason(enum.Enum):
    """Why two queries do not share a sub-pattern."""

    PARTITION = "partition"  # their partition attributes differ
    SHAPE = "shape"  # the same types, but other transitions or negated patterns among them
    PREDICATES = "predicates"  # neither's local and adjacent predicates are known to imply the other's
    PANES = "panes"  # their windows together would cut panes that cost more than sharing saves


@dataclass(frozen=True, slots=True)
class Apart:
    """Two sets of queries that do not share a sub-pattern.

    Attributes
    ----------
    types : tuple of str
        Event types of the sub-pattern.
    queries, others : tuple of int
        Places in the workload; each set is one query, or queries that share.
    reason : Reason
    """

    types: tuple[str, ...]
    queries: tuple[int, ...]
    others: tuple[int, ...]
    reason: Reason


def apart(queries: Sequence[QueryFacts], sharing: Shareable) -> tuple[Apart, ...]:
    """The reasons why queries do not share.

    Parameters
    ----------
    queries : sequence of QueryFacts
        In the order of the workload.
    sharing : Shareable
        What `optimizer.merge.merge` found for them.
    """
    roles: dict[frozenset[str], Roles] = {}
    for query in queries:
        if query.partition not in roles:
            alike = {place: each for place, each in enumerate(queries) if each.partition == query.partition}
            roles[query.partition] = Roles(alike)
    by_types: dict[tuple[str, ...], dict[int, list[Occurrence]]] = {}
    for place, query in enumerate(queries):
        if query.operator != GRAPHLETS:
            continue  # it shares with queries that are equal but for RETURN, as a whole
        for number, template in enumerate(query.templates):
            for each in occurrences(Part(place, number), template, roles[query.partition]):
                by_types.setdefault(tuple(sorted(each.shape.types)), {}).setdefault(place, []).append(each)
    found = []
    for types, having in by_types.items():
        units = _units(types, having, sharing)
        largest = max(units, key=len)
        for unit in units:
            if unit is not largest:
                reason = _reason(queries, roles, having, unit, largest)
                found.append(Apart(types, unit, largest, reason))
    return tuple(found)


def _units(types: tuple[str, ...], having: Iterable[int], sharing: Shareable) -> list[tuple[int, ...]]:
    """The queries that have a sub-pattern of some types: those that share it together, the others alone."""
    units: dict[int, tuple[int, ...]] = {place: (place,) for place in having}
    for group in sharing.groups:
        for pattern in group.sub_patterns:
            if tuple(sorted(pattern.shape.types)) == types:
                joined = tuple(sorted({place for query in pattern.queries for place in units[query]}))
                units.update(dict.fromkeys(joined, joined))
    return list(dict.fromkeys(units.values()))


def _reason(
    queries: Sequence[QueryFacts],
    roles: Mapping[frozenset[str], Roles],
    having: Mapping[int, Sequence[Occurrence]],
    unit: Sequence[int],
    other: Sequence[int],
) -> Reason:
    """The reason of the pair of queries that came nearest to sharing; none comes nearer than PANES."""
    nearest = Reason.PARTITION
    order = list(Reason)
    for one in unit:
        for two in other:
            if queries[one].partition != queries[two].partition:
                continue
            for mine in having[one]:
                for theirs in having[two]:
                    found = _of_pair(mine, theirs, roles[queries[one].partition])
                    nearest = max(nearest, found, key=order.index)
                    if nearest is Reason.PANES:
                        return nearest
    return nearest


def _of_pair(mine: Occurrence, theirs: Occurrence, roles: Roles) -> Reason:
    if mine.shape != theirs.shape:
        return Reason.SHAPE
    one, other = (Variant(each.local, each.adjacent) for each in (mine, theirs))
    return Reason.PANES if all(relations(mine.shape, one, other, roles)) else Reason.PREDICATES
