"""From templates to sharing groups: which queries may share which Kleene sub-pattern, decided once per workload.

What may be shared is found here, whether it is shared is decided per burst (`optimizer.choose`).

1. Queries share only when their whole partition attributes agree (Def. 3.2). Their windows always overlap, for all are
   aligned to time 0. Any aggregates can share: every query counts its trends, so two queries have at least that in
   common, and what each asks for besides is one more measure of a state (`optimizer.merged`).
2. Occurrences of one shape (`optimizer.kleene`) are one sub-pattern where their predicates accept the same events and
   edges, or where one's imply the other's; predicates of which neither is known are kept apart.
3. Queries that are connected by sub-patterns make a group, as far as their panes fit together (`optimizer.panes`).

Source: HAMLET (SIGMOD'21) §3.1, Defs. 3.1 and 3.2, Fig. 3.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from optimizer.benefit import MEASURED, Costs
from optimizer.kleene import Occurrence, Shape, occurrences
from optimizer.merged import MergedTemplate, merged_template
from optimizer.panes import pane_sets
from optimizer.pasts import Pasts, Place, equal_pasts
from optimizer.plan import GRAPHLETS, QueryFacts, pane, plan
from optimizer.roles import Part, Roles

Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Variant:
    """The predicates of a sub-pattern as some queries have them.

    Attributes
    ----------
    local : tuple of int
        For each position the number of its local predicate among those of its type: equal ones accept the same events.
    adjacent : tuple of int
        For each edge the number of its adjacent predicate.
    """

    local: tuple[int, ...]
    adjacent: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """An occurrence of a sub-pattern: `states` by position, `variant` by number, `fed` as in `Occurrence`."""

    part: Part
    states: tuple[int, ...]
    variant: int
    fed: bool


@dataclass(frozen=True)
class SubPattern:
    """A sharable Kleene sub-pattern (Def. 3.1).

    Attributes
    ----------
    shape : Shape
        Type of each position, edges between positions with the number of their guards.
    members : tuple of Member
        Of two templates at least. Members of one variant always accept the same events and edges; what the others
        accept of a burst is seen in the burst.
    variants : tuple of Variant
    """

    shape: Shape
    members: tuple[Member, ...]
    variants: tuple[Variant, ...]

    @cached_property
    def queries(self) -> tuple[int, ...]:
        """Places of its queries in the workload, ascending."""
        return tuple(sorted({member.part.query for member in self.members}))


@dataclass(frozen=True)
class SharingGroup:
    """Queries that may share with one another.

    Attributes
    ----------
    queries : tuple of int
        Places in the workload, ascending; two at least but for AND, whose sides may share with each other.
    pane : int
        Ticks; the greatest common divisor of their windows and slides.
    sub_patterns : tuple of SubPattern
    template : MergedTemplate
    pasts : Pasts
        States and whole queries that one evaluation serves.
    """

    queries: tuple[int, ...]
    pane: int
    sub_patterns: tuple[SubPattern, ...]
    template: MergedTemplate
    pasts: Pasts


@dataclass(frozen=True)
class Shareable:
    """What may be shared in a workload.

    Attributes
    ----------
    groups : tuple of SharingGroup
        Each query is in one at most.
    left_out : tuple of int
        Queries in no group that would be in one but for their windows.
    same : tuple of tuple of int
        Sets of queries with the same trends in the same windows, whether in a group or not: one evaluation serves them.
    """

    groups: tuple[SharingGroup, ...]
    left_out: tuple[int, ...]
    same: tuple[tuple[int, ...], ...]


def merge(
    queries: Sequence[QueryFacts], *, rate: float | None = None, costs: Costs = MEASURED["burst-grained"]
) -> Shareable:
    """Find what the queries of a workload may share.

    Parameters
    ----------
    queries : sequence of QueryFacts
        In the order of the workload.
    rate : float or None
        Matched events of one partition per tick, if it is known; see `optimizer.panes.pane_sets`.
    costs : Costs
        Prices that the panes are chosen by.
    """
    groups: list[SharingGroup] = []
    left_out: list[int] = []
    same: list[tuple[int, ...]] = []
    for each in plan(queries).classes:
        if each.operator != GRAPHLETS:
            continue
        facts = {place: queries[place] for place in each.queries}
        roles = Roles(facts)
        found = [
            occurrence
            for place, query in facts.items()
            for number, template in enumerate(query.templates)
            for occurrence in occurrences(Part(place, number), template, roles)
        ]
        same += equal_pasts(facts, roles).queries
        for together in _connected(_sub_patterns(found, roles)):
            windows = {query: (facts[query].within, facts[query].slide) for query in sorted(together)}
            types = max(len(set(template.types)) for query in together for template in facts[query].templates)
            for fitting in pane_sets(windows, types=types, rate=rate, costs=costs):
                inside = set(fitting)
                within = [occurrence for occurrence in found if occurrence.part.query in inside]
                connected = list(_connected(shared := _sub_patterns(within, roles)))
                groups += [_group(facts, roles, sorted(some), shared) for some in connected]
                left_out += inside.difference(*connected)
    groups.sort(key=lambda group: group.queries)
    return Shareable(tuple(groups), tuple(sorted(left_out)), tuple(sorted(same)))


def _sub_patterns(found: Iterable[Occurrence], roles: Roles) -> list[SubPattern]:
    """Occurrences of one shape with related predicates, where two templates at least have them."""
    by_shape: dict[Shape, list[Occurrence]] = {}
    for occurrence in found:
        by_shape.setdefault(occurrence.shape, []).append(occurrence)
    return [
        _sub_pattern(shape, members)
        for shape, alike in by_shape.items()
        for members in _related(shape, alike, roles)
        if len({member.part for member in members}) > 1
    ]


def _related(shape: Shape, alike: Sequence[Occurrence], roles: Roles) -> list[list[Occurrence]]:
    """Occurrences in sets whose predicates are connected by implication."""
    by_variant: dict[Variant, list[Occurrence]] = {}
    for occurrence in alike:
        by_variant.setdefault(Variant(occurrence.local, occurrence.adjacent), []).append(occurrence)
    sets: list[list[Variant]] = []
    for variant in by_variant:  # where all are related, as thresholds on one field are, the first look tells
        joined = [known for known in sets if any(all(relations(shape, variant, other, roles)) for other in known)]
        if len(joined) == 1:
            joined[0].append(variant)
            continue
        sets = [known for known in sets if known not in joined]
        sets.append([*(each for known in joined for each in known), variant])
    return [[occurrence for variant in each for occurrence in by_variant[variant]] for each in sets]


def relations(shape: Shape, one: Variant, other: Variant, roles: Roles) -> Iterable[bool]:
    """For each position and edge whether one of the two variants is known to accept only what the other does."""
    for type, a, b in zip(shape.types, one.local, other.local, strict=True):
        yield roles.related(type, a, b)
    for a, b in zip(one.adjacent, other.adjacent, strict=True):
        yield roles.related(None, a, b)


def _sub_pattern(shape: Shape, members: Sequence[Occurrence]) -> SubPattern:
    variants: dict[Variant, int] = {}
    found = []
    for each in sorted(members, key=lambda occurrence: (occurrence.part, occurrence.states)):
        variant = variants.setdefault(Variant(each.local, each.adjacent), len(variants))
        found.append(Member(each.part, each.states, variant, each.fed))
    return SubPattern(shape, tuple(found), tuple(variants))


def _connected(sub_patterns: Iterable[SubPattern]) -> list[set[int]]:
    """Queries in sets that sub-patterns connect, by first query."""
    known = list(sub_patterns)
    queries = sorted({query for each in known for query in each.queries})
    links = [(each.queries[0], query) for each in known for query in each.queries]
    return [set(some) for some in _components(queries, links)]


def _components(items: Iterable[Item], links: Iterable[tuple[Item, Item]]) -> list[list[Item]]:
    """The connected components of a graph, items in their order."""
    sets = {item: [item] for item in items}
    for one, other in links:
        if sets[one] is not sets[other]:
            sets[one] += sets[other]
            sets.update(dict.fromkeys(sets[other], sets[one]))
    return list({id(each): each for each in sets.values()}.values())


def _group(
    facts: Mapping[int, QueryFacts], roles: Roles, queries: Sequence[int], sub_patterns: Iterable[SubPattern]
) -> SharingGroup:
    members = {query: facts[query] for query in queries}
    own = tuple(each for each in sub_patterns if each.queries[0] in members)
    pasts = equal_pasts(members, roles)
    parts = [Part(place, number) for place, query in members.items() for number in range(len(query.templates))]
    template = merged_template(members, parts, [*_positions(own), *pasts.states])
    windows = [(query.within, query.slide) for query in members.values()]
    return SharingGroup(tuple(queries), pane(windows), own, template, pasts)


def _positions(sub_patterns: Iterable[SubPattern]) -> Iterable[list[Place]]:
    """States that stand at one position of one sub-pattern, in the same occurrence of it, with the same predicate."""
    for each in sub_patterns:
        seen: dict[Part, int] = {}
        roles: dict[tuple[int, int, int], list[Place]] = {}
        for member in each.members:
            occurrence = seen[member.part] = seen.get(member.part, -1) + 1
            local = each.variants[member.variant].local
            for position, state in enumerate(member.states):
                roles.setdefault((occurrence, position, local[position]), []).append((member.part, state))
        yield from roles.values()
