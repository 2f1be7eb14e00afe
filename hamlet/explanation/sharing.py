"""What queries may share, what that is worth and who stays apart, as facts and as JSON; a part of the views.

``sharing.groups[]``
    ``queries`` (names), ``pane`` (duration), ``template`` (Fig. 3), ``sub_patterns``, ``equal_states`` (sets of
    ``query``, ``part``, ``state`` whose sums one evaluation serves).
``sharing.groups[].template``
    ``states[]``: ``id`` (0 is the start), ``type`` (null for the start), ``members`` (``query``, ``part``, ``state``),
    ``measures`` (``kind``, ``attribute``, ``queries``), ``final`` (queries whose trends may end there).
    ``transitions[]``: ``source``, ``target``, ``guards``, ``queries``.
``sharing.groups[].sub_patterns[]``
    ``text``, ``types``, ``queries``, ``rung``, ``variants[]`` (sets of ``queries`` that accept the same events and
    edges, with the ``predicates`` as the first of them writes them) and ``benefit[]``: per ``model`` the ``unit``,
    ``shared`` and ``alone`` (prices of a burst of ``events``), ``shares_from`` (the length from which on sharing pays;
    null where no burst gains).
``sharing.left_out[]``, ``sharing.same[][]``
    Names of queries that only their windows keep out of a group; sets of queries with the same trends.
``sharing.apart[]``
    ``types``, ``queries``, ``others`` and ``reason``, a key of `REASONS`.
``constants``
    ``model``, ``origin`` (``shipped`` or ``calibrated``), ``file``, ``measured_at``, ``costs`` (by rung).

Source: HAMLET (SIGMOD'21) §3.1, Defs. 3.1, 3.2, Fig. 3, §4.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from optimizer.apart import Apart, Reason, apart
from optimizer.benefit import MEASURED, PAPER, BurstStats, Costs, non_shared_cost, shared_cost, shares_from
from optimizer.merge import Member, Shareable, SharingGroup, SubPattern, merge
from optimizer.merged import MergedTemplate
from optimizer.panes import USUAL_BURST
from optimizer.pasts import Place
from optimizer.plan import QueryFacts
from optimizer.roles import Part

REASONS = {
    Reason.PARTITION: "their partition attributes differ",
    Reason.SHAPE: "the same types, but other steps or negated patterns among them",
    Reason.PREDICATES: "neither's predicates are known to accept all that the other's accept",
    Reason.PANES: "their windows together would cut panes that cost more than sharing saves",
}


@dataclass(frozen=True)
class Prices:
    """The prices of the model `measured` that the run would use.

    Attributes
    ----------
    text : str
        Where they come from, for people.
    origin : str
        ``shipped`` or ``calibrated``.
    costs : mapping of str to Costs
        By rung.
    file, measured_at : str or None
        Of calibrated ones.
    """

    text: str = "shipped"
    origin: str = "shipped"
    costs: Mapping[str, Costs] = field(default_factory=lambda: MEASURED)
    file: str | None = None
    measured_at: str | None = None


@dataclass(frozen=True, slots=True)
class Benefit:
    """What sharing a usual burst is worth, where all queries of a sub-pattern accept all of it.

    Attributes
    ----------
    model, unit : str
    events : int
        Length of the burst.
    shared, alone : float
        Prices of the burst.
    shares_from : float
        The length from which on sharing pays; infinite where no burst gains.
    """

    model: str
    unit: str
    events: int
    shared: float
    alone: float
    shares_from: float


@dataclass(frozen=True)
class SharingView:
    """What a workload may share, as it is shown.

    Attributes
    ----------
    queries : tuple of QueryFacts
        In the order of the workload.
    predicates : mapping of (int, str) to str
        (query, variable) -> its local predicates as text, and (query, ``X Y``) -> the adjacent ones of a pair; those
        without any left out.
    looks_back : mapping of (int, str, str) to str
        (query, X, Y) -> ``search`` or ``scan`` where an event bound to Y looks back at single events bound to X.
    constants : Prices
    """

    queries: tuple[QueryFacts, ...]
    predicates: Mapping[tuple[int, str], str]
    looks_back: Mapping[tuple[int, str, str], str]
    constants: Prices

    @cached_property
    def sharing(self) -> Shareable:
        """Groups, and who is left out."""
        return merge(self.queries, costs=self.constants.costs["burst-grained"])

    @cached_property
    def apart(self) -> tuple[Apart, ...]:
        """Why queries do not share."""
        return apart(self.queries, self.sharing)

    def name(self, part: Part) -> str:
        """A query, and which side of its AND a template is."""
        sides = (" (left)", " (right)", " (both)") if len(self.queries[part.query].templates) > 1 else ("",)
        return self.queries[part.query].name + sides[part.template]

    def names(self, places: Sequence[int]) -> list[str]:
        """Names of queries."""
        return [self.queries[place].name for place in places]

    def variants(self, pattern: SubPattern) -> Iterator[tuple[list[str], str]]:
        """(names, predicates of the first of them) of those that accept the same events and edges."""
        by_variant: list[list[Member]] = [[] for _ in pattern.variants]
        for member in pattern.members:
            by_variant[member.variant].append(member)
        for members in by_variant:
            texts = dict.fromkeys(self._texts(members[0].part, members[0].states))
            yield list(dict.fromkeys(self.name(member.part) for member in members)), " AND ".join(texts)

    def _texts(self, part: Part, states: Sequence[int]) -> Iterator[str]:
        template = self.queries[part.query].templates[part.template]
        names = [template.variable(state) for state in states]
        for key in (*names, *(f"{one} {other}" for one in names for other in names)):
            if (part.query, key) in self.predicates:
                yield self.predicates[part.query, key]

    def rung(self, pattern: SubPattern) -> str:
        """The rung that bursts of a sub-pattern run on: the dearest of its queries."""
        found = set()
        for member in pattern.members:
            template = self.queries[member.part.query].templates[member.part.template]
            names = [template.variable(state) for state in member.states]
            found |= {self.looks_back.get((member.part.query, one, other)) for one in names for other in names}
        return "event-grained" if "scan" in found else "indexed" if "search" in found else "burst-grained"

    def benefits(self, pattern: SubPattern) -> list[Benefit]:
        """What sharing is worth under both models."""
        places = {member.part.query for member in pattern.members}
        types = max(len(set(template.types)) for place in places for template in self.queries[place].templates)
        parts = len({member.part for member in pattern.members})
        burst = BurstStats(b=USUAL_BURST, n=USUAL_BURST, g=USUAL_BURST, k=parts, t=types, s_p=1, s_c=1)
        measured = self.constants.costs[self.rung(pattern)]
        return [
            Benefit(
                model,
                unit,
                burst.b,
                shared_cost(burst, costs),
                non_shared_cost(burst, costs),
                shares_from(burst, costs),
            )
            for model, unit, costs in (("measured", "ns", measured), ("paper", "operations", PAPER))
        ]


def kleene_text(pattern: SubPattern) -> str:
    """A sub-pattern in a few letters: ``B+``, or the types of a larger cycle."""
    types = pattern.shape.types
    return f"{types[0]}+" if len(types) == 1 else f"cycle of {', '.join(types)}"


def as_parts(view: SharingView, pane: Any) -> dict[str, Any]:
    """The keys ``sharing`` and ``constants`` of the JSON document; `pane` writes a duration."""
    sharing, used = view.sharing, view.constants
    return {
        "sharing": {
            "groups": [_group(view, group, pane) for group in sharing.groups],
            "left_out": view.names(sharing.left_out),
            "same": [view.names(each) for each in sharing.same],
            "apart": [
                {
                    "types": list(each.types),
                    "queries": view.names(each.queries),
                    "others": view.names(each.others),
                    "reason": each.reason.value,
                }
                for each in view.apart
            ],
        },
        "constants": {
            "model": "measured",
            "origin": used.origin,
            "file": used.file,
            "measured_at": used.measured_at,
            "costs": {rung: asdict(costs) for rung, costs in used.costs.items()},
        },
    }


def _group(view: SharingView, group: SharingGroup, pane: Any) -> dict[str, Any]:
    return {
        "queries": view.names(group.queries),
        "pane": pane(group.pane),
        "template": _template(view, group.template),
        "sub_patterns": [_sub_pattern(view, each) for each in group.sub_patterns],
        "equal_states": [[_place(view, place) for place in each] for each in group.pasts.states],
    }


def _sub_pattern(view: SharingView, pattern: SubPattern) -> dict[str, Any]:
    return {
        "text": kleene_text(pattern),
        "types": list(pattern.shape.types),
        "queries": view.names(pattern.queries),
        "rung": view.rung(pattern),
        "variants": [{"queries": names, "predicates": text or None} for names, text in view.variants(pattern)],
        "benefit": [
            asdict(each) | {"shares_from": each.shares_from if math.isfinite(each.shares_from) else None}
            for each in view.benefits(pattern)
        ],
    }


def _template(view: SharingView, template: MergedTemplate) -> dict[str, Any]:
    ends = dict(template.finals)
    return {
        "states": [
            {
                "id": number,
                "type": state.type or None,
                "members": [_place(view, place) for place in state.members],
                "measures": [
                    {
                        "kind": each.kind,
                        "attribute": each.attribute,
                        "queries": [view.name(part) for part in each.parts],
                    }
                    for each in state.measures
                ],
                "final": [view.name(part) for part in ends.get(number, ())],
            }
            for number, state in enumerate(template.states)
        ],
        "transitions": [
            {
                "source": step.source,
                "target": step.target,
                "guards": list(step.guards),
                "queries": [view.name(part) for part in step.parts],
            }
            for step in template.transitions
        ],
    }


def _place(view: SharingView, place: Place) -> dict[str, Any]:
    part, state = place
    sides = ("left", "right", "both") if len(view.queries[part.query].templates) > 1 else (None,)
    return {"query": view.queries[part.query].name, "part": sides[part.template], "state": state}
