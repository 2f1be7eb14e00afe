"""What queries may call differently and mean alike: predicates and guards by number, variables left out.

Names of variables are local to a query: what is compared has been renamed. A merged state stands for a role.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from optimizer.condition import TRUE, Condition
from optimizer.plan import QueryFacts
from optimizer.predicates import PredicateClasses, classes
from optimizer.template import START, Template


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One template of a query: place of the query in the workload, place of the template in the query."""

    query: int
    template: int = 0


class Roles:
    """Numbers for the predicates and guards of some queries: equal numbers accept the same events.

    Parameters
    ----------
    queries : mapping of int to QueryFacts
        By place in the workload.
    """

    def __init__(self, queries: Mapping[int, QueryFacts]) -> None:
        self._queries = queries
        self._numbers: dict[tuple[str | None, Condition], int] = {}
        self._classes: dict[str | None, PredicateClasses] = {}
        self._guards: dict[Hashable, int] = {}
        found: dict[str | None, dict[Condition, None]] = {}
        for query in queries.values():
            for template in query.templates:
                for about, condition in _predicates(query, template):
                    found.setdefault(about, {})[condition] = None
        for about, conditions in found.items():
            self._classes[about] = numbered = classes(list(conditions))
            for condition, number in zip(conditions, numbered.numbers, strict=True):
                self._numbers[about, condition] = number

    def local(self, query: int, type: str, variable: str) -> int:
        """The number of the local predicate on a variable, among those on events of its type."""
        return self._numbers[type, self._queries[query].local.get(variable, TRUE)]

    def adjacent(self, query: int, pair: tuple[str, str]) -> int:
        """The number of the adjacent predicate on a pair of variables, among all adjacent ones."""
        return self._numbers[None, self._queries[query].adjacent.get(pair, TRUE)]

    def related(self, type: str | None, one: int, other: int) -> bool:
        """Whether a predicate accepts only what the other accepts, or the other way round; type None: adjacent ones."""
        return self._classes[type].related(one, other)

    def guards(self, query: int, template: Template, guards: frozenset[int]) -> int:
        """The number of a set of guards of a template: 0 for none."""
        if not guards:
            return 0
        key = frozenset(self._guard(query, template.guards[guard].template) for guard in guards)
        return self._guards.setdefault(key, len(self._guards) + 1)

    def step(self, query: int, template: Template, source: int, target: int) -> int:
        """The number of the adjacent predicate on a transition; that of no predicate where it begins a trend."""
        if source == START:
            return self._numbers[None, TRUE]
        return self.adjacent(query, (template.variable(source), template.variable(target)))

    def role(self, query: int, template: Template, state: int) -> tuple[str, int]:
        """(type, number of the local predicate) of a state other than the start."""
        type = template.types[template.labels[state]]
        return type, self.local(query, type, template.variable(state))

    def _guard(self, query: int, template: Template) -> int:
        """A negated pattern; as the construction of templates is deterministic, no renumbering is tried."""
        key = (
            tuple(self.role(query, template, state) for state in range(1, template.size)),
            tuple(
                (step.source, step.target, self.step(query, template, step.source, step.target))
                for step in template.transitions
            ),
            frozenset(final.state for final in template.finals),
        )
        return self._guards.setdefault(key, len(self._guards) + 1)


def _predicates(query: QueryFacts, template: Template) -> list[tuple[str | None, Condition]]:
    """All predicates of a template with what they speak of: events of a type, or (None) two neighbours."""
    found: list[tuple[str | None, Condition]] = [
        (type, query.local.get(variable, TRUE))
        for variable, type in zip(template.variables, template.types, strict=True)
    ]
    found += [(None, query.adjacent.get(pair, TRUE)) for pair in template.neighbours]
    found.append((None, TRUE))
    for guard in template.guards:
        found += _predicates(query, guard.template)
    return found
