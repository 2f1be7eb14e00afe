"""How result rows become dicts straight from the kernel, one plan per query (`hamlet.kernel.state.dicts`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hamlet.kernel.state.dicts import Listing
from hamlet.language.query import Aggregate, ReturnItem
from hamlet.language.schema import Schema
from hamlet.language.times import Typed
from hamlet.output.components import read_one
from hamlet.output.expressions.times import average, presented
from hamlet.output.query_rows import ResultColumn
from hamlet.output.rows import presenter_of, result_columns
from hamlet.planner import scaled
from hamlet.planner.aggregates import SCALED, ComponentKey
from hamlet.planner.compiled import CompiledClass, CompiledQuery

Reading = tuple[str, int, int, Callable[..., Any] | None]  # as `Listing` takes them


def listings(compiled: CompiledClass, schema: Schema) -> dict[tuple[int, ...], list[Listing]]:
    """The plans of queries whose partitions are their groups, by the places of the grouping attributes.

    Queries that a kernel's query serves together are left out unless all of them have the same groups.
    """
    found: dict[tuple[int, ...], list[Listing]] = {}
    if not compiled.line.is_plain:
        return found  # the kernel gives windows that begin at multiples of the slide
    for part, users in enumerate(compiled.users_of):
        groups = {compiled.queries[place].group for place in users}
        plain = (len(compiled.parts_of[place]) == 1 and not compiled.queries[place].is_calculated for place in users)
        alone = all(plain)  # no pairs of trends (AND), and nothing to be calculated or chosen
        group = groups.pop()
        if alone and not groups and len(set(group)) == len(compiled.attributes):
            plans = [_listing(part, compiled.queries[place], schema) for place in users]
            found.setdefault(group, []).extend(plans)
    return found


def _listing(part: int, query: CompiledQuery, schema: Schema) -> Listing:
    columns = result_columns(query, schema)
    items = [
        _reading(query, item, keys, places, column, schema)
        for (item, keys, places), column in zip(query.reads, columns, strict=True)
    ]
    names = [column.name for column in columns]
    present = schema.clock.present if schema.clock.is_timestamp or schema.clock.is_fraction else None
    return Listing(part, query.analysed.index, query.name, names, items, *query.window, present, scaled.presented)


def _reading(
    query: CompiledQuery,
    item: ReturnItem,
    keys: tuple[ComponentKey, ...],
    places: tuple[int, ...],
    column: ResultColumn,
    schema: Schema,
) -> Reading:
    """How a result value is read from the components at some places."""
    if not isinstance(item.value, Aggregate):
        return "attribute", query.group[places[0]], -1, None
    first, second = (*places, -1)[:2]
    scales = [key.kind in SCALED for key in keys]
    function = item.value.function
    if column.is_time and function in ("SUM", "AVG"):
        return "computed", first, second, partial(_time, query.times.typed(item.value), item.column)
    if column.is_time:
        return "computed", first, -1, presenter_of(column, keys[0], schema.units)
    if item.log2 and function == "COUNT" and scales[0]:
        return "logarithm", first, -1, None
    if item.log2 or (function == "AVG" and scales[0] != scales[1]):
        return "computed", first, second, partial(read_one, item)
    return {"SUM": "present", "AVG": "quotient"}.get(function, "plain"), first, second, None


def _time(typed: Typed, column: str, total: int, second: int | bool) -> Any:
    """The sum (`second`: whether there is one) or the mean (of so many) of times."""
    assert isinstance(typed.node, Aggregate)
    ticks = average(total, second) if typed.node.function == "AVG" else total if second else None
    return presented([ticks], typed, column).tolist()[0]
