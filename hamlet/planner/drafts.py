"""Queries before they have tables: which of their states lead on for ever, and which look back at single events.

Source: HAMLET (SIGMOD'21) §3.1 (templates).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from hamlet.language.conditions import rewritten
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import to_text
from hamlet.planner.aggregates import Layout
from hamlet.planner.classify import Role
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
        return any(self.reads_back(step) for step in steps)

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

    @cached_property
    def loop(self) -> list[int]:
        """The states of the core between which a transition looks back within a loop."""
        steps = [step for step in self.template.transitions if step.source in self.core and step.target in self.core]
        looping = [step for step in steps if self.reads_back(step) and step.source in _reached(step.target, steps)]
        return sorted({state for step in looping for state in (step.source, step.target)})

    def reads_back(self, step: Transition | Final) -> bool:
        """Whether a transition reads single events, or a trend that ends does."""
        kept = isinstance(step, Transition) and bool(self.predicate(self.template, step))
        return kept or not all(_at_once(self.template.guards[each]) for each in step.guards)

    def predicate(self, template: Template, step: Transition) -> tuple[str, ...]:
        """The adjacent predicate of a transition, without names."""
        if step.source == START:
            return ()
        pair = template.variable(step.source), template.variable(step.target)
        return tuple(
            to_text(rewritten(each, lambda found: replace(found, variable="e")))
            for each in self.analysed.adjacent.get(pair, ())
        )

    def guard(self, template: Template) -> Hashable:
        """A negated pattern without its names."""
        steps = tuple((step.source, step.target, self.predicate(template, step)) for step in template.transitions)
        roles = tuple(self.roles[variable] for variable in template.variables)
        return template.labels, roles, steps, template.finals


def _reached(state: int, steps: Sequence[Transition]) -> set[int]:
    """A state, and all that steps lead to from it."""
    found, waiting = {state}, [state]
    while waiting:
        state = waiting.pop()
        fresh = {step.target for step in steps if step.source == state} - found
        found |= fresh
        waiting += fresh
    return found


def _at_once(guard: Guard) -> bool:
    """Whether every match of a negated pattern is one event."""
    begins = {step.target for step in guard.template.transitions if step.source == START}
    return {final.state for final in guard.template.finals} <= begins
