"""Whether a partition can have a trend at all, from the variables to which any of its events may be bound.

A partition that lacks an event which every word of every pattern needs has no trend in any window, so its events need
not travel. What is optional, alternative or negated is never needed: the question is asked of the template, whose
transitions know nothing else. Source: docs/language.md ("Trends": a trend spells a word of the pattern).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hamlet.parallel.routing.routes import Route
from hamlet.planner.classify import Role
from hamlet.planner.compiled import CompiledClass, CompiledQuery
from optimizer.template import START, Template

MOST_ROLES = 62  # that fit into one signed integer of Spark; roles beyond are taken to be present


def spells(template: Template, variables: Collection[str]) -> bool:
    """Whether some word of a template uses these variables only.

    Parameters
    ----------
    template : Template
    variables : collection of str
        To which some event may be bound.
    """
    finals = {final.state for final in template.finals}
    reached, todo = {START}, [START]
    while todo:
        state = todo.pop()
        if state in finals:
            return True
        for step in template.transitions:
            if step.source == state and step.target not in reached and template.variable(step.target) in variables:
                reached.add(step.target)
                todo.append(step.target)
    return False


class Present:
    """Sets of roles as integers, and what they make possible in one class of queries.

    Parameters
    ----------
    compiled : CompiledClass
    always : collection of str
        Event types that are taken to be everywhere, since their events belong to partitions that they do not name.

    Attributes
    ----------
    roles : tuple of Role
        What the bits stand for, from the lowest.
    """

    def __init__(self, compiled: CompiledClass, always: Collection[str] = ()) -> None:
        self._queries = compiled.queries
        found = dict.fromkeys(role for query in compiled.queries for role in _positive(query).values())
        self.roles: tuple[Role, ...] = tuple(role for role in found if role.type not in always)[:MOST_ROLES]
        self._bits = {role: 1 << place for place, role in enumerate(self.roles)}
        self._known: dict[int, bool] = {}

    def possible(self, present: int) -> bool:
        """Whether some query can have a trend where exactly these roles are present."""
        if present not in self._known:
            self._known[present] = any(self._has_trend(query, present) for query in self._queries)
        return self._known[present]

    def _has_trend(self, query: CompiledQuery, present: int) -> bool:
        variables = [
            variable
            for variable, role in _positive(query).items()
            if role not in self._bits or present & self._bits[role]
        ]
        sides: Sequence[Template] = query.templates[:2]  # both operands of AND; the third is what they have in common
        return all(spells(template, variables) for template in sides)


def presence(compiled: CompiledClass, route: Route) -> Present:
    """What the roles of a key mean; types that lack a routing attribute may be anywhere."""
    return Present(compiled, lacking(compiled, route))


def lacking(compiled: CompiledClass, route: Route) -> set[str]:
    """The types that do not carry all attributes that a class is routed by."""
    places = {compiled.attributes.index(name) for name in route.keys}
    return {type for type, carried in compiled.carried.items() if not places <= set(carried)}


def _positive(query: CompiledQuery) -> dict[str, Role]:
    return {variable: role for variable, role in query.roles.items() if variable not in query.analysed.negated}
