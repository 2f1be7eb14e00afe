"""The merged template of a sharing group: one state per role, each transition labelled with its queries (Fig. 3).

A role is a type, a local predicate and a position: the position in a shared Kleene sub-pattern (and which occurrence of
it in the query), or a past that several queries have alike. A second ``B+`` of a query is another role than its first.

Source: HAMLET (SIGMOD'21) §3.1, Fig. 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from optimizer.pasts import Place
from optimizer.plan import AggregateFacts, QueryFacts
from optimizer.roles import Part
from optimizer.template import START, Template


@dataclass(frozen=True, slots=True)
class Measure:
    """What the events of a merged state add to trends beside their number, once for all parts that ask for it.

    Attributes
    ----------
    kind : str
        ``occurrences`` (of events, or of values where there is an attribute), ``present`` (whether there is a value),
        ``sum``, ``least`` or ``greatest``.
    attribute : str or None
    parts : tuple of Part
    """

    kind: str
    attribute: str | None
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class MergedState:
    """A role.

    Attributes
    ----------
    type : str
        Event type; empty for the start.
    members : tuple of (Part, int)
        The states of templates that have this role, at most one of each template.
    measures : tuple of Measure
        COUNT(*) needs none: every trend is counted.
    """

    type: str
    members: tuple[Place, ...]
    measures: tuple[Measure, ...] = ()


@dataclass(frozen=True, slots=True)
class MergedTransition:
    """A transition and the parts that have it; `guards` are the negated patterns that must not match in its gap."""

    source: int
    target: int
    guards: tuple[str, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class MergedTemplate:
    """Several templates in one; state 0 is the start.

    Attributes
    ----------
    states : tuple of MergedState
    transitions : tuple of MergedTransition
    finals : tuple of (int, tuple of Part)
        State, and the parts whose trends may end there.
    """

    states: tuple[MergedState, ...]
    transitions: tuple[MergedTransition, ...]
    finals: tuple[tuple[int, tuple[Part, ...]], ...]


def merged_template(
    queries: Mapping[int, QueryFacts], parts: Sequence[Part], roles: Iterable[Sequence[Place]]
) -> MergedTemplate:
    """Merge the templates of some parts.

    Parameters
    ----------
    queries : mapping of int to QueryFacts
        By place in the workload.
    parts : sequence of Part
        The parts to merge, in order.
    roles : iterable of sequence of (Part, int)
        Sets of states that have one role. A set that would put two states of one template together is left out.
    """
    templates = {part: queries[part.query].templates[part.template] for part in parts}
    joined: dict[Place, list[Place]] = {
        (part, state): [(part, state)] for part, template in templates.items() for state in range(1, template.size)
    }
    for role in roles:
        together = list(dict.fromkeys(place for each in role for place in joined[each]))
        if len({part for part, _ in together}) == len(together):
            joined.update(dict.fromkeys(together, together))
    sets = {tuple(sorted(each)): None for each in joined.values()}
    numbers = {place: number for number, each in enumerate(sets, 1) for place in each}
    numbers |= {(part, START): START for part in parts}
    states = [MergedState("", tuple((part, START) for part in parts))]
    for each in sets:
        part, state = each[0]
        type = templates[part].types[templates[part].labels[state]]
        states.append(MergedState(type, each, _measures(queries, templates, each)))
    return MergedTemplate(tuple(states), _transitions(templates, numbers), _finals(templates, numbers))


def _transitions(templates: Mapping[Part, Template], numbers: Mapping[Place, int]) -> tuple[MergedTransition, ...]:
    found: dict[tuple[int, int, tuple[str, ...]], list[Part]] = {}
    for part, template in templates.items():
        for step in template.transitions:
            guards = tuple(sorted(template.guards[guard].text for guard in step.guards))
            found.setdefault((numbers[part, step.source], numbers[part, step.target], guards), []).append(part)
    return tuple(MergedTransition(*key, tuple(found[key])) for key in sorted(found))


def _finals(
    templates: Mapping[Part, Template], numbers: Mapping[Place, int]
) -> tuple[tuple[int, tuple[Part, ...]], ...]:
    found: dict[int, dict[Part, None]] = {}
    for part, template in templates.items():
        for final in template.finals:
            found.setdefault(numbers[part, final.state], {})[part] = None
    return tuple((state, tuple(parts)) for state, parts in sorted(found.items()))


def _measures(
    queries: Mapping[int, QueryFacts], templates: Mapping[Part, Template], places: Iterable[Place]
) -> tuple[Measure, ...]:
    found: dict[tuple[str, str | None], dict[Part, None]] = {}
    for part, state in places:
        variable = templates[part].variable(state)
        for aggregate in queries[part.query].aggregates:
            for key in measures_of(aggregate) if aggregate.variable == variable else ():
                found.setdefault(key, {})[part] = None
    return tuple(Measure(*key, tuple(parts)) for key, parts in found.items())


def measures_of(aggregate: AggregateFacts) -> tuple[tuple[str, str | None], ...]:
    """(kind, attribute) of the measures that an aggregate is read from.

    AVG is SUM by the occurrences of values. Where the attribute is never NULL these are all occurrences, so that AVG
    shares with SUM and with COUNT (§2.1).
    """
    attribute = aggregate.attribute
    if attribute is None:
        return () if aggregate.variable is None else (("occurrences", None),)
    counted = attribute if aggregate.nullable else None
    match aggregate.function:
        case "SUM":
            return ("sum", attribute), ("present" if aggregate.nullable else "occurrences", counted)
        case "AVG":
            return ("sum", attribute), ("occurrences", counted)
        case function:
            return (("least" if function == "MIN" else "greatest", attribute),)
