"""GROUP-BY over what a trend took: which ``COUNT(v)`` of a query is the value of its group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hamlet.language.mapping import mapped
from hamlet.language.query import Aggregate, Expression, Log2, Query, ReturnItem, Taken


def with_groups(query: Query) -> Query:
    """A query in whose RETURN, HAVING and TOP the counts that GROUP-BY names are values of the group."""
    counted = {each.variable for each in query.group_by if isinstance(each, Taken) and each.function == "COUNT"}
    if not counted:
        return query

    def change(node: Any) -> Any:
        if isinstance(node, Aggregate) and node.function == "COUNT" and not node.events and node.variable in counted:
            return Taken("COUNT", node.variable, span=node.span)
        return node

    items: list[ReturnItem] = []
    for item in query.items:
        expression: Expression = mapped(item.expression, change)
        if expression == item.expression:
            items.append(replace(item, place=_next_place(items) if item.place else 0))
        elif isinstance(expression, Taken):
            items.append(replace(item, value=expression))
        elif isinstance(expression, Log2) and isinstance(expression.operand, Aggregate):
            items.append(replace(item, value=expression.operand))
        else:
            items.append(replace(item, value=expression, log2=False, place=_next_place(items)))
    return replace(query, items=tuple(items), having=mapped(query.having, change), top=mapped(query.top, change))


def _next_place(items: list[ReturnItem]) -> int:
    """The number of the next expression of RETURN."""
    return 1 + sum(item.place > 0 for item in items)
