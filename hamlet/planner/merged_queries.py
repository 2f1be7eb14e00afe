"""Several queries as one query of the kernel: states, beginnings, finals and components (`beginnings`).

Source: HAMLET (SIGMOD'21) §3.1 (merged template with labelled transitions).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hamlet.language.meaning import Pair
from hamlet.planner.aggregates import COUNTS, ComponentKey, Layout
from hamlet.planner.classify import Role
from hamlet.planner.drafts import Draft
from optimizer.template import START, Final, Guard, Template, Transition

Begin = tuple[int, frozenset[int]]  # a state and the guards of a transition from the start to it


@dataclass(frozen=True)
class MergedQuery:
    """Queries that have sums in common, as one.

    Attributes
    ----------
    template : Template
        Loops and cores, then the tails. Its finals are those of the first query.
    ends : tuple of tuple of Final
        Of each query.
    chosen : tuple of tuple of int
        Per query, for each component of its layout, the place in that of the merged query.
    starts : dict of (int, guards) to tuple of int
        Per state and guards of transitions from the start: the counts of the beginnings that begin so; (0,) for one.
    loop : frozenset of int
        The states of a loop that several beginnings have in common.
    components : tuple of (int, int)
        Per state the range of components that measure the trends of its events: those of its beginning, or all.
    names : tuple of dict of str to str
        Per query from its variables to those of the merged query.
    roles : dict of str to Role
        What accepts events for the merged query's variables.
    pairs : dict of Pair to (int, Pair)
        Each pair of its variables with an adjacent predicate: whose it is, and what the pair is called there.
    layout : Layout
        What some query needs, by the merged query's variables.
    """

    template: Template
    ends: tuple[tuple[Final, ...], ...]
    chosen: tuple[tuple[int, ...], ...]
    starts: dict[Begin, tuple[int, ...]]
    loop: frozenset[int]
    components: tuple[tuple[int, int], ...]
    names: tuple[dict[str, str], ...]
    roles: dict[str, Role]
    pairs: dict[Pair, tuple[int, Pair]]
    layout: Layout


@dataclass(frozen=True)
class Member:
    """A query in a merged one: its beginning (0 where there is one), and which of its states are of the common loop."""

    draft: Draft
    number: int
    loop: Sequence[int]

    def place(self, query: int, state: int) -> tuple[str, int, int]:
        """The part of the merged query, its beginning, and which of its states; equal for states that it has once."""
        if state in self.loop:
            return "loop", 0, self.loop.index(state)
        if state in self.draft.core:
            return "core", self.number, self.draft.core.index(state)
        return f"tail {query}", self.number, state

    def names(self, query: int) -> dict[str, str]:
        """The merged query's names of the query's variables; no variable that people name has such a name."""
        found: dict[str, str] = {}
        for state in [*self.loop, *self.draft.core[1:]]:
            part, number, _ = self.place(query, state)
            found.setdefault(self.draft.template.variable(state), f"{part} {number} {len(found)}")
        for variable in self.draft.roles:  # tails and negated patterns
            found.setdefault(variable, f"tail {query} {len(found)}")
        return found

    def component(self, key: ComponentKey, names: Mapping[str, str]) -> ComponentKey:
        """A component of the query by the merged query's names."""
        variable = names[key.variable] if key.variable else None
        return replace(key, variable=variable, beginning=self.number)


def merged_query_of(beginnings: Sequence[Sequence[Draft]]) -> MergedQuery:
    """The merged query of queries by beginning: those of one have equal cores, all have equal loops."""
    several = len(beginnings) > 1
    return _Builder(
        [
            Member(draft, number if several else 0, draft.loop if several else ())
            for number, drafts in enumerate(beginnings, 1)
            for draft in drafts
        ]
    ).merged()


@dataclass
class _Builder:
    """Adds one query after the other to a merged query."""

    queries: Sequence[Member]
    states: dict[tuple[str, int, int], int] = field(default_factory=dict)  # by `Member.place`
    labels: list[int] = field(default_factory=lambda: [-1])
    variables: dict[str, int] = field(default_factory=dict)  # with their numbers
    types: dict[str, str] = field(default_factory=dict)
    guards: dict[Hashable, int] = field(default_factory=dict)
    negated: list[Guard] = field(default_factory=list)
    steps: dict[Transition, None] = field(default_factory=dict)
    starts: dict[Begin, dict[int, None]] = field(default_factory=dict)
    pairs: dict[Pair, tuple[int, Pair]] = field(default_factory=dict)
    ends: list[tuple[Final, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = [each.names(query) for query, each in enumerate(self.queries)]
        self.layout, self.ranges = self._layout()
        self.counts = {key.beginning: place for place, key in enumerate(self.layout.keys) if key.kind in COUNTS}

    def merged(self) -> MergedQuery:
        """The merged query of all queries."""
        for query in range(len(self.queries)):
            self._add(query)
        template = Template(
            tuple(self.variables),
            tuple(self.types.values()),
            tuple(self.labels),
            tuple(self.steps),
            self.ends[0],
            tuple(self.negated),
        )
        whole = 0, len(self.layout.keys)
        places = {key: place for place, key in enumerate(self.layout.keys)}
        return MergedQuery(
            template,
            tuple(self.ends),
            tuple(
                tuple(places[each.component(key, own)] for key in each.draft.layout.keys)
                for each, own in zip(self.queries, self.names, strict=True)
            ),
            {begin: tuple(found) for begin, found in self.starts.items()},
            frozenset(state for place, state in self.states.items() if place[0] == "loop"),
            (whole, *(whole if part == "loop" else self.ranges[beginning] for part, beginning, _ in self.states)),
            tuple(self.names),
            {
                own[variable]: role
                for each, own in zip(self.queries, self.names, strict=True)
                for variable, role in each.draft.roles.items()
            },
            self.pairs,
            self.layout,
        )

    def _layout(self) -> tuple[Layout, dict[int, tuple[int, int]]]:
        """What some query needs, beginning after beginning, behind the count of all trends; and the range of each."""
        keys: dict[ComponentKey, None] = {self.queries[0].draft.layout.keys[0]: None}
        beginnings = dict.fromkeys(each.number for each in self.queries)
        ranges = {}
        for beginning in beginnings:
            first = len(keys) if len(beginnings) > 1 else 0
            for each, own in zip(self.queries, self.names, strict=True):
                if each.number == beginning:
                    keys.update(dict.fromkeys(each.component(key, own) for key in each.draft.layout.keys))
            ranges[beginning] = first, len(keys)
        return Layout(tuple(keys)), ranges

    def _add(self, query: int) -> None:
        each = self.queries[query]
        template = each.draft.template
        states = [START, *(self._state(query, state) for state in range(1, template.size))]
        known = [self._guard(query, guard) for guard in template.guards]
        for step in template.transitions:
            inside = frozenset(known[guard] for guard in step.guards)
            target = states[step.target]
            self.steps[Transition(states[step.source], target, inside)] = None
            if step.source == START:
                self.starts.setdefault((target, inside), {})[self.counts[each.number]] = None
        self._pairs(query, template)
        self.ends.append(
            tuple(Final(states[end.state], frozenset(known[guard] for guard in end.guards)) for end in template.finals)
        )

    def _state(self, query: int, state: int) -> int:
        """The merged query's number of a state."""
        each = self.queries[query]
        place, variable = each.place(query, state), each.draft.template.variable(state)
        if place not in self.states:
            name = self.names[query][variable]
            self.types.setdefault(name, each.draft.roles[variable].type)
            self.states[place] = len(self.labels)
            self.labels.append(self.variables.setdefault(name, len(self.variables)))
        return self.states[place]

    def _guard(self, query: int, guard: Guard) -> int:
        """The merged query's number of a negated pattern; those that are equal have one."""
        inner, own = guard.template, self.names[query]
        key = self.queries[query].draft.guard(inner)
        if key not in self.guards:
            self.guards[key] = len(self.negated)
            renamed = replace(inner, variables=tuple(own[variable] for variable in inner.variables))
            self.negated.append(Guard(guard.text, renamed))
            self._pairs(query, inner)
        return self.guards[key]

    def _pairs(self, query: int, template: Template) -> None:
        """Take in the pairs of a template that have an adjacent predicate, by the merged query's names."""
        own, adjacent = self.names[query], self.queries[query].draft.analysed.adjacent
        for earlier, later in template.neighbours:
            if adjacent.get((earlier, later)):
                self.pairs.setdefault((own[earlier], own[later]), (query, (earlier, later)))
