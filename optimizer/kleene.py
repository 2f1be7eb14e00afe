"""Kleene sub-patterns: where they occur in a template, and in what order their states are compared.

An *occurrence* is a strongly connected part of a template: ``B+``, or ``(SEQ(A, B+))+`` as a whole. Inside a part of
several types, what is strongly connected among the states of one type is an occurrence as well, since a burst holds
one type only: ``(SEQ(A, B+))+`` and ``SEQ(C, B+)`` share ``B+``.

What leads into a part does not matter, each query brings it as its snapshot; what happens inside does: types, edges
and guards are the *shape*, two occurrences of one shape can be shared.

Source: HAMLET (SIGMOD'21) Def. 3.1 (E+ only; more is ours).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from optimizer.roles import Part, Roles
from optimizer.template import START, Template, cyclic_parts

MAX_COMPARED = 64  # states of a part whose symmetries are resolved; larger ones are compared in the template's order

Edge = tuple[int, int, int]  # (position, position, number of the guards)


@dataclass(frozen=True, slots=True)
class Shape:
    """What two occurrences must have alike: the type of each position, the edges between positions."""

    types: tuple[str, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A Kleene sub-pattern of a template.

    Attributes
    ----------
    part : Part
    states : tuple of int
        The state at each position of the shape.
    shape : Shape
    local : tuple of int
        Number of the local predicate at each position.
    adjacent : tuple of int
        Number of the adjacent predicate on each edge of the shape.
    fed : bool
        Whether another state of one of its types leads into it, so that what flows in changes within a burst: in
        ``SEQ(B x, B y+)`` every event needs its own snapshot.
    """

    part: Part
    states: tuple[int, ...]
    shape: Shape
    local: tuple[int, ...]
    adjacent: tuple[int, ...]
    fed: bool


def occurrences(part: Part, template: Template, roles: Roles) -> Iterator[Occurrence]:
    """All Kleene sub-patterns of a template, by first state, a whole before what lies in it."""
    edges = [(step.source, step.target) for step in template.transitions]
    for whole in template.kleene_parts:
        yield _occurrence(part, template, roles, whole)
        types = {template.types[template.labels[state]] for state in whole}
        for type in sorted(types) if len(types) > 1 else ():
            of_type = [state for state in sorted(whole) if template.types[template.labels[state]] == type]
            for inner in cyclic_parts(of_type, edges):
                yield _occurrence(part, template, roles, inner)


def _occurrence(part: Part, template: Template, roles: Roles, states: frozenset[int]) -> Occurrence:
    steps = [step for step in template.transitions if step.source in states and step.target in states]
    guards = [roles.guards(part.query, template, step.guards) for step in steps]
    role = {state: roles.role(part.query, template, state) for state in states}
    links = [(step.source, step.target, guard) for step, guard in zip(steps, guards, strict=True)]
    ordered = _ordered(sorted(states), {state: role[state][0] for state in states}, links, role)
    position = {state: place for place, state in enumerate(ordered)}
    numbered = sorted(
        (position[source], position[target], guard, roles.step(part.query, template, source, target))
        for source, target, guard in links
    )
    types = tuple(role[state][0] for state in ordered)
    shape = Shape(types, tuple((source, target, guard) for source, target, guard, _ in numbered))
    fed = any(
        step.target in states
        and step.source not in states
        and step.source != START
        and template.types[template.labels[step.source]] in types
        for step in template.transitions
    )
    local = tuple(role[state][1] for state in ordered)
    return Occurrence(part, tuple(ordered), shape, local, tuple(number for *_, number in numbered), fed)


def _ordered(
    states: Sequence[int], types: dict[int, str], links: list[Edge], role: dict[int, tuple[str, int]]
) -> list[int]:
    """The states in an order that equal shapes have alike.

    States are told apart by their types, then by their neighbours, round by round. Where states stay alike, the one
    with the least predicate, then the least number, goes first; that can only miss that two shapes are equal.
    """
    ranks = _ranked({state: types[state] for state in states})
    ranks = _refined(ranks, links)
    while len(set(ranks.values())) < len(states) <= MAX_COMPARED:
        tied: dict[int, list[int]] = {}
        for state in states:
            tied.setdefault(ranks[state], []).append(state)
        among = next(tied[rank] for rank in sorted(tied) if len(tied[rank]) > 1)
        first = min(among, key=lambda state: (role[state], state))
        ranks = _refined(_ranked({state: (rank, state != first) for state, rank in ranks.items()}), links)
    return sorted(states, key=lambda state: (ranks[state], state))


def _ranked(signatures: dict[int, Any]) -> dict[int, int]:
    """The place of each state's signature among all of them; signatures are of one form and so have an order."""
    order = {signature: rank for rank, signature in enumerate(sorted(set(signatures.values())))}
    return {state: order[signature] for state, signature in signatures.items()}


def _refined(ranks: dict[int, int], links: list[Edge]) -> dict[int, int]:
    while True:
        around: dict[int, list[tuple[int, int, int]]] = {state: [] for state in ranks}
        for source, target, guard in links:
            around[source].append((0, ranks[target], guard))
            around[target].append((1, ranks[source], guard))
        finer = _ranked({state: (ranks[state], tuple(sorted(around[state]))) for state in ranks})
        if len(set(finer.values())) == len(set(ranks.values())):
            return ranks
        ranks = finer
