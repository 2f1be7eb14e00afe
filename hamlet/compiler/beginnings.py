"""Queries that begin equally: one kernel query keeps the sums of what they have in common, once.

The *core* of a template is its Kleene states with all states that lead to them; what is left, the *tail*, never leads
back. So the sums of a core depend on nothing but the core, and queries whose cores are equal up to variables' names
(transitions, guards, local and adjacent predicates, windows) have the same ones at all times. They are run as one
query, the *host*: the core once, behind it each query's own tail, and a sum of its own finals for each of them.

Only queries that keep single events (adjacent predicates, long negated patterns) are hosted: a store or an index that
is kept once saves all the work of a query, and next to that all else is small. The others lie side by side in a band,
where eight cost what one does; hosts did not pay there, measured on a hundred and on a thousand queries.

Source: HAMLET (SIGMOD'21) §3.1 (merged template with labelled transitions); DESIGN §2 (S' = (K + A) S is linear).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hamlet.compiler.aggregates import ComponentKey, Layout
from hamlet.compiler.classify import Role
from hamlet.language.conditions import rewritten
from hamlet.language.meaning import AnalysedQuery, Pair
from hamlet.language.printing import to_text
from optimizer.template import START, Final, Guard, Template, Transition


@dataclass(frozen=True)
class Draft:
    """What is known of a query before it has tables.

    Attributes
    ----------
    analysed : AnalysedQuery
    template : Template
        Its only one.
    window : tuple of int
        (within, slide) in ticks.
    roles : mapping of str to Role
        What accepts events for each variable.
    layout : Layout
    """

    analysed: AnalysedQuery
    template: Template
    window: tuple[int, int]
    roles: Mapping[str, Role]
    layout: Layout

    @property
    def looks_back(self) -> bool:
        """Whether single events are kept for the query."""
        template = self.template
        if not (self.analysed.adjacent or template.guards):
            return False  # as most
        steps: list[Transition | Final] = [*template.transitions, *template.finals]
        return any(_looks_back(self, step) for step in steps)

    @cached_property
    def core(self) -> list[int]:
        """The start, the Kleene states and all that lead to them; the start alone where variables go on behind them."""
        template = self.template
        alive = set(template.kleene_states)
        waiting = list(alive)
        while waiting:
            state = waiting.pop()
            fresh = {step.source for step in template.transitions if step.target == state} - alive
            alive |= fresh
            waiting += fresh
        inside = {template.labels[state] for state in alive if state != START}
        outside = {template.labels[state] for state in range(1, template.size) if state not in alive}
        if inside & outside or any(guard.template.guards for guard in template.guards):
            return [START]
        return sorted(alive | {START})


@dataclass(frozen=True)
class Host:
    """Queries that begin equally, as one.

    Attributes
    ----------
    template : Template
        The core, then the tails. Its finals are those of the first query.
    ends : tuple of tuple of Final
        Of each query.
    names : tuple of dict of str to str
        Per query from its variables to those of the host.
    roles : dict of str to Role
        What accepts events for the host's variables.
    pairs : dict of Pair to (int, Pair)
        Each pair of the host's variables with an adjacent predicate: whose it is, and what the pair is called there.
    layout : Layout
        What some query needs, by the host's variables.
    """

    template: Template
    ends: tuple[tuple[Final, ...], ...]
    names: tuple[dict[str, str], ...]
    roles: dict[str, Role]
    pairs: dict[Pair, tuple[int, Pair]]
    layout: Layout

    def layout_of(self, query: int) -> Layout:
        """The host's layout by the names of one of its queries; variables of others keep those of the host."""
        own = {common: variable for variable, common in self.names[query].items()}
        return Layout(
            tuple(
                key if key.variable is None else _named(key, own.get(key.variable, key.variable))
                for key in self.layout.keys
            )
        )


def hosts(drafts: Sequence[Draft]) -> list[tuple[tuple[int, ...], Host]]:
    """The queries that are worth running together, by place, and what runs them.

    Names and types of attributes, which may change while a stream is read, do not enter.
    """
    groups: dict[Hashable, list[int]] = {}
    for place, draft in enumerate(drafts):
        if draft.looks_back and len(draft.core) > 1:
            groups.setdefault(_key(draft), []).append(place)
    found = []
    for places in groups.values():
        for some, host in _worth([drafts[place] for place in places]):
            found.append((tuple(places[number] for number in some), host))
    return found


def _key(draft: Draft) -> Hashable:
    """Equal for queries whose cores are: states in their order, by role."""
    template, core = draft.template, draft.core
    numbers = {state: place for place, state in enumerate(core)}
    labels: dict[int, int] = {}
    for state in core[1:]:
        labels.setdefault(template.labels[state], len(labels))
    steps = frozenset(
        (numbers[step.source], numbers[step.target], _guards(draft, step.guards), _adjacent(draft, template, step))
        for step in template.transitions
        if step.target in numbers
    )
    states = tuple((labels[template.labels[state]], draft.roles[template.variable(state)]) for state in core[1:])
    return draft.window, states, steps


def _guards(draft: Draft, guards: frozenset[int]) -> Hashable:
    return frozenset(_guard(draft, draft.template.guards[guard].template) for guard in guards)


def _guard(draft: Draft, template: Template) -> Hashable:
    """A negated pattern without its names."""
    steps = tuple((step.source, step.target, _adjacent(draft, template, step)) for step in template.transitions)
    roles = tuple(draft.roles[variable] for variable in template.variables)
    return template.labels, roles, steps, template.finals


def _adjacent(draft: Draft, template: Template, step: Transition) -> tuple[str, ...]:
    """The adjacent predicate of a transition, without names."""
    if step.source == START:
        return ()
    pair = template.variable(step.source), template.variable(step.target)
    return tuple(
        to_text(rewritten(each, lambda found: replace(found, variable="e")))
        for each in draft.analysed.adjacent.get(pair, ())
    )


def _worth(drafts: Sequence[Draft]) -> list[tuple[list[int], Host]]:
    """Sets of these queries that keep less together than on their own: all of them, or those with equal aggregates."""
    host = _paying(drafts)
    if host is not None:
        return [(list(range(len(drafts))), host)]
    alike: dict[Hashable, list[int]] = {}
    for number, draft in enumerate(drafts):
        names = _names([drafts[0], draft])[1]
        keys = frozenset(_named(key, names[key.variable]) if key.variable else key for key in draft.layout.keys)
        alike.setdefault(keys, []).append(number)
    sets = [(some, _paying([drafts[number] for number in some])) for some in alike.values()]
    return [(some, host) for some, host in sets if host is not None]


def _paying(drafts: Sequence[Draft]) -> Host | None:
    """The host of these queries, where it keeps less than they do."""
    if len(drafts) < 2:
        return None
    apart = sum(draft.template.size * len(draft.layout.keys) for draft in drafts)
    host = _host(drafts)
    if any(_looks_back(drafts[0], step) for step in drafts[0].template.transitions if step.target in drafts[0].core):
        pays = len(host.layout.keys) < sum(len(draft.layout.keys) for draft in drafts)
    else:
        pays = host.template.size * len(host.layout.keys) < apart
    return host if pays else None


def _looks_back(draft: Draft, step: Transition | Final) -> bool:
    """Whether a transition reads single events, or a trend that ends does."""
    kept = isinstance(step, Transition) and bool(_adjacent(draft, draft.template, step))
    return kept or not all(_at_once(draft.template.guards[each]) for each in step.guards)


def _at_once(guard: Guard) -> bool:
    """Whether every match of a negated pattern is one event."""
    begins = {step.target for step in guard.template.transitions if step.source == START}
    return {final.state for final in guard.template.finals} <= begins


def _names(drafts: Sequence[Draft]) -> list[dict[str, str]]:
    """Per query the host's names of its variables: those of the core are the same for all."""
    found = []
    for place, draft in enumerate(drafts):
        names: dict[str, str] = {}
        for state in draft.core[1:]:
            names.setdefault(draft.template.variable(state), f"core {len(names)}")  # no variable that people name
        for variable in draft.roles:  # tails and negated patterns
            names.setdefault(variable, f"tail {place} {len(names)}")
        found.append(names)
    return found


def _host(drafts: Sequence[Draft]) -> Host:
    names = _names(drafts)
    labels: list[int] = [-1]
    variables: dict[str, str] = {}  # with their types
    guards: dict[Hashable, int] = {}
    negated: list[Guard] = []
    steps: dict[Transition, None] = {}
    pairs: dict[Pair, tuple[int, Pair]] = {}
    ends = []
    for number, draft in enumerate(drafts):
        template, own = draft.template, names[number]
        place_of = {state: place for place, state in enumerate(draft.core)}
        tail = [state for state in range(template.size) if state not in place_of]
        for state in tail if number else [*draft.core[1:], *tail]:
            variable = template.variable(state)
            variables.setdefault(own[variable], draft.roles[variable].type)
            place_of[state] = len(labels)
            labels.append(list(variables).index(own[variable]))
        known: dict[int, int] = {}
        for place, guard in enumerate(template.guards):
            key = _guard(draft, guard.template)
            if key not in guards:
                guards[key] = len(negated)
                inner = guard.template
                renamed = replace(inner, variables=tuple(own[variable] for variable in inner.variables))
                negated.append(Guard(guard.text, renamed))
                pairs |= _pairs(draft, inner, own, number)
            known[place] = guards[key]
        for step in template.transitions:
            inside = frozenset(known[each] for each in step.guards)
            steps[Transition(place_of[step.source], place_of[step.target], inside)] = None
        for pair, whose in _pairs(draft, template, own, number).items():
            pairs.setdefault(pair, whose)
        ends.append(
            tuple(
                Final(place_of[each.state], frozenset(known[guard] for guard in each.guards))
                for each in template.finals
            )
        )
    layout = dict.fromkeys(
        _named(key, names[number][key.variable]) if key.variable else key
        for number, draft in enumerate(drafts)
        for key in draft.layout.keys
    )
    roles = {
        own[variable]: role for draft, own in zip(drafts, names, strict=True) for variable, role in draft.roles.items()
    }
    template = Template(
        tuple(variables), tuple(variables.values()), tuple(labels), tuple(steps), ends[0], tuple(negated)
    )
    return Host(template, tuple(ends), tuple(names), roles, pairs, Layout(tuple(layout)))


def _pairs(draft: Draft, template: Template, names: Mapping[str, str], number: int) -> dict[Pair, tuple[int, Pair]]:
    """The pairs of a template that have an adjacent predicate, by the host's names."""
    return {
        (names[earlier], names[later]): (number, (earlier, later))
        for earlier, later in template.neighbours
        if draft.analysed.adjacent.get((earlier, later))
    }


def _named(key: ComponentKey, variable: str) -> ComponentKey:
    return replace(key, variable=variable)
