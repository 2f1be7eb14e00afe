"""States whose sums are equal at all times, so that one evaluation serves several queries: equal pasts.

Two states have equal pasts where the same events enter them, from states with equal pasts, past the same guards and
adjacent predicates, in windows of the same length and slide. That is bisimulation of the reversed templates, with the
number of edges counted because sums add. So the ``SEQ(A, B+)`` inside ``SEQ(A, B+, C)`` is that of a query
``SEQ(A, B+)``, and queries that differ in what they return only are one.

Source: a step is a linear map of the sums; Paige and Tarjan 1987 (coarsest partition).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from optimizer.plan import QueryFacts
from optimizer.roles import Part, Roles
from optimizer.template import START

MAX_ROUNDS = 200  # longer chains of states are not compared

Place = tuple[Part, int]  # a state of a template


@dataclass(frozen=True)
class Pasts:
    """Equal pasts among some queries.

    Attributes
    ----------
    states : tuple of tuple of (Part, int)
        Sets of two or more states, the start left out, whose sums are equal at all times.
    queries : tuple of tuple of int
        Sets of two or more queries with the same trends in the same windows.
    """

    states: tuple[tuple[Place, ...], ...]
    queries: tuple[tuple[int, ...], ...]


def equal_pasts(queries: Mapping[int, QueryFacts], roles: Roles) -> Pasts:
    """Find equal pasts.

    Parameters
    ----------
    queries : mapping of int to QueryFacts
        By place in the workload; all with the same partition attributes.
    roles : Roles
        Of these queries.
    """
    into: dict[Place, list[tuple[Place, int, int]]] = {}
    first: dict[Place, Hashable] = {}
    for place, query in queries.items():
        for number, template in enumerate(query.templates):
            part = Part(place, number)
            for state in range(template.size):
                role = None if state == START else roles.role(place, template, state)
                first[part, state] = (query.within, query.slide, role)
                into[part, state] = []
            for step in template.transitions:
                guards = roles.guards(place, template, step.guards)
                predicate = roles.step(place, template, step.source, step.target)
                into[part, step.target].append(((part, step.source), guards, predicate))
    colours = _coloured(first)
    for _ in range(MAX_ROUNDS):
        finer = _coloured(
            {
                state: (colours[state], tuple(sorted((colours[source], *rest) for source, *rest in edges)))
                for state, edges in into.items()
            }
        )
        if len(set(finer.values())) == len(set(colours.values())):
            return Pasts(_equal_states(colours), _equal_queries(queries, roles, colours))
        colours = finer
    return Pasts((), ())


def _coloured(signatures: Mapping[Place, Hashable]) -> dict[Place, int]:
    numbers: dict[Hashable, int] = {}
    return {place: numbers.setdefault(signature, len(numbers)) for place, signature in signatures.items()}


def _equal_states(colours: Mapping[Place, int]) -> tuple[tuple[Place, ...], ...]:
    sets: dict[int, list[Place]] = {}
    for (part, state), colour in colours.items():
        if state != START:
            sets.setdefault(colour, []).append((part, state))
    return tuple(tuple(each) for each in sets.values() if len(each) > 1)


def _equal_queries(
    queries: Mapping[int, QueryFacts], roles: Roles, colours: Mapping[Place, int]
) -> tuple[tuple[int, ...], ...]:
    """Queries whose trends end in states with equal pasts, behind the same guards."""
    sets: dict[Hashable, list[int]] = {}
    for place, query in queries.items():
        ends = tuple(
            (
                query.within,
                query.slide,
                tuple(
                    sorted(
                        (colours[Part(place, number), final.state], roles.guards(place, template, final.guards))
                        for final in template.finals
                    )
                ),
            )
            for number, template in enumerate(query.templates)
        )
        sets.setdefault(ends, []).append(place)
    return tuple(tuple(each) for each in sets.values() if len(each) > 1)
