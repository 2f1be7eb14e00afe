"""Queries that have sums in common: one kernel query, their *merged query*, keeps these, once.

The *core* of a template is its Kleene states with all states that lead to them; what is left, the *tail*, never leads
back. So the sums of a core depend on nothing but the core, and queries whose cores are equal up to variables' names
(transitions, guards, local and adjacent predicates, windows) have the same ones at all times. The merged query has
the core once, behind it each query's own tail, and finals for each of them.

The *loop* of a core is the states whose events are looked back at in a loop. Queries whose loops are equal although
the rest differs (HAMLET's q1 and q2: SEQ(A, E+), SEQ(C, E+)) have one, too. What tells their trends apart is a
*beginning* for each different core: each has components of its own, and a count of its own among them. An event of the
loop is kept once, an index is searched once, and what is found is added to all beginnings side by side. The sums that
enter the loop have a common cell; outside it, events read and change the components of their own beginning only.

Only queries that keep single events (adjacent predicates, long negated patterns) are merged: a store or an index that
is kept once saves all the work of a query, and next to that all else is small. The others lie side by side in a band,
where eight cost what one does; merged queries did not pay there, measured on a hundred and on a thousand queries.

Source: HAMLET (SIGMOD'21) §3.1 (merged template with labelled transitions), §3.3 (a graphlet that is shared by queries
of different snapshots); a step is a linear map of the sums.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain

from hamlet.planner.drafts import Draft
from hamlet.planner.merged_queries import Member, MergedQuery, merged_query_of
from optimizer.template import START, Transition


def find_merged(drafts: Sequence[Draft]) -> list[tuple[tuple[int, ...], MergedQuery]]:
    """The queries that are worth running together, by place, and what runs them.

    Names and types of attributes, which may change while a stream is read, do not enter.
    """
    cores: dict[Hashable, list[int]] = {}
    for place, draft in enumerate(drafts):
        if draft.looks_back and len(draft.core) > 1:
            cores.setdefault(_structure(draft, draft.core), []).append(place)
    loops: dict[Hashable, list[list[int]]] = {}
    for core, places in cores.items():
        first = drafts[places[0]]
        loops.setdefault(_structure(first, first.loop) if first.loop else core, []).append(places)
    found = []
    for beginnings in loops.values():
        if len(beginnings) > 1:
            merged = merged_query_of([[drafts[place] for place in places] for places in beginnings])
            found.append((tuple(chain.from_iterable(beginnings)), merged))
            continue
        for some, merged in _worth([drafts[place] for place in beginnings[0]]):
            found.append((tuple(beginnings[0][number] for number in some), merged))
    return found


def _structure(draft: Draft, chosen: Sequence[int]) -> Hashable:
    """Equal for queries of which these states are: in their order, by role, with all transitions between them."""
    template = draft.template

    def guards(step: Transition) -> Hashable:
        return frozenset(draft.guard(template.guards[guard].template) for guard in step.guards)

    numbers = {state: place for place, state in enumerate(chosen)}
    labels: dict[int, int] = {}
    states = [state for state in chosen if state != START]
    for state in states:
        labels.setdefault(template.labels[state], len(labels))
    steps = frozenset(
        (numbers[step.source], numbers[step.target], guards(step), draft.predicate(template, step))
        for step in template.transitions
        if step.source in numbers and step.target in numbers
    )
    described = tuple((labels[template.labels[state]], draft.roles[template.variable(state)]) for state in states)
    return draft.window, described, steps


def _worth(drafts: Sequence[Draft]) -> list[tuple[list[int], MergedQuery]]:
    """Sets of these queries that keep less together than on their own: all of them, or those with equal aggregates."""
    merged = _paying(drafts)
    if merged is not None:
        return [(list(range(len(drafts))), merged)]
    alike: dict[Hashable, list[int]] = {}
    for number, draft in enumerate(drafts):
        alone = Member(draft, 0, ())
        names = alone.names(0)
        keys = frozenset(alone.component(key, names) for key in draft.layout.keys)
        alike.setdefault(keys, []).append(number)
    sets = [(some, _paying([drafts[number] for number in some])) for some in alike.values()]
    return [(some, merged) for some, merged in sets if merged is not None]


def _paying(drafts: Sequence[Draft]) -> MergedQuery | None:
    """The merged query of these queries, where it keeps less than they do."""
    if len(drafts) < 2:
        return None
    apart = sum(draft.template.size * len(draft.layout.keys) for draft in drafts)
    merged = merged_query_of([drafts])
    if any(drafts[0].reads_back(step) for step in drafts[0].template.transitions if step.target in drafts[0].core):
        pays = len(merged.layout.keys) < sum(len(draft.layout.keys) for draft in drafts)
    else:
        pays = merged.template.size * len(merged.layout.keys) < apart
    return merged if pays else None
