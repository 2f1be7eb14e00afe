"""Queries that are alike: equal up to variables' names, RETURN items and the attributes that are rolled up.

They have the same trends, so one kernel query with the aggregates of all of them serves them: equal sub-patterns of
whole queries are evaluated once. Two queries are alike if their templates are equal after renaming, and the windows,
local predicates (`Role`, where equal ones have one number) and adjacent predicates too.

Source: HAMLET (SIGMOD'21) Defs. 3.1-3.2, taken to whole patterns; variable names are local.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

from hamlet.language.conditions import rewritten
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import to_text
from hamlet.planner.aggregates import ComponentKey, Layout
from hamlet.planner.classify import Role
from optimizer.template import Template


def names_of(analysed: AnalysedQuery, template: Template) -> dict[str, str]:
    """New names for all variables, those of negated patterns too, in the order of the templates."""
    found: dict[str, str] = {}
    waiting = [template]
    while waiting:
        each = waiting.pop()
        for variable in each.variables:
            found.setdefault(variable, f"v{len(found)}")
        waiting += [guard.template for guard in reversed(each.guards)]
    for variable in analysed.types:  # no word of the pattern has the others
        found.setdefault(variable, f"v{len(found)}")
    return found


def signature(
    analysed: AnalysedQuery,
    template: Template,
    names: Mapping[str, str],
    window: tuple[int, int],
    roles: Mapping[str, Role],
) -> Hashable:
    """Equal for queries that are alike.

    Parameters
    ----------
    analysed : AnalysedQuery
        Not over pairs of patterns (AND): such a query is like no other.
    template : Template
        Its only one.
    names : mapping of str to str
        From `names_of`.
    window : tuple of int
        (within, slide) in ticks.
    roles : mapping of str to Role
        What accepts events for each variable.
    """
    adjacent = frozenset(
        (
            names[earlier],
            names[later],
            tuple(
                to_text(rewritten(each, lambda found: replace(found, variable=names[found.variable])))
                for each in conditions
            ),
        )
        for (earlier, later), conditions in analysed.adjacent.items()
    )
    return window, form(template, names), tuple(roles[variable] for variable in names), adjacent


def form(template: Template, names: Mapping[str, str]) -> Hashable:
    """A template without the names that people gave, and without types."""
    return (
        tuple(names[variable] for variable in template.variables),
        template.labels,
        template.transitions,
        template.finals,
        tuple(form(guard.template, names) for guard in template.guards),
    )


def united(layouts: Sequence[Layout], names: Sequence[Mapping[str, str]]) -> list[Layout]:
    """The layouts of queries that are alike, each extended by the components of all, in one order.

    Parameters
    ----------
    layouts : sequence of Layout
    names : sequence of mapping of str to str
        Per query from its variables to names that all have in common.

    Returns
    -------
    list of Layout
        Place by place the same component, by the names of each query.
    """
    keys = dict.fromkeys(
        _renamed(key, common) for layout, common in zip(layouts, names, strict=True) for key in layout.keys
    )
    own = [{common: variable for variable, common in each.items()} for each in names]
    return [Layout(tuple(_renamed(key, back) for key in keys)) for back in own]


def _renamed(key: ComponentKey, names: Mapping[str, str]) -> ComponentKey:
    return key if key.variable is None else replace(key, variable=names[key.variable])
