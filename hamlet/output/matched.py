"""Sets of matched events, where several partitions of a group, or both operands of AND, may take one event.

A set has for each event what tells it apart, how many events are alike in all that is read of them, and the value that
is aggregated. Events that are alike are in trends together, in every partition, so a union of such sets counts each
event once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.input.columns import Int64Array
from hamlet.language.query import Aggregate
from hamlet.output.components import Column, columned
from hamlet.output.distinct import Sets
from hamlet.planner import scaled
from hamlet.planner.aggregates import Component, ComponentKey, is_double, needed
from hamlet.planner.compiled import CompiledQuery

Matched = tuple[int, int, int | float | None]  # what tells an event apart, how many are alike, the value


def event_columns(floating: Sequence[bool], sizes: Int64Array, events: npt.NDArray[np.int64]) -> list[Sets]:
    """Sets of events as the matching operator gives them, a column each.

    Parameters
    ----------
    floating : sequence of bool
        Whether the values of a set are doubles.
    sizes, events : arrays
        From `Matching.events`.
    """
    ends = np.cumsum(sizes.ravel()).reshape(sizes.shape)
    found = []
    for place, doubles in enumerate(floating):
        values: list[Any] = events[:, 2].copy().view(np.float64).tolist() if doubles else events[:, 2].tolist()
        all = list(zip(events[:, 0].tolist(), (events[:, 1] != 0).tolist(), values, strict=True))
        rows = zip((ends[:, place] - sizes[:, place]).tolist(), ends[:, place].tolist(), strict=True)
        found.append(Sets.of([_alike(all[start:end]) for start, end in rows]))
    return found


def _alike(events: Iterable[tuple[int, bool, int | float]]) -> frozenset[Matched]:
    counted = Counter((id, value if there else None) for id, there, value in events)
    return frozenset((id, count, value) for (id, value), count in counted.items())


def read_columns(query: CompiledQuery, aggregate: Aggregate, components: Sequence[Column]) -> list[Column]:
    """The columns that a result value is read from (`hamlet.output.components.read`)."""
    keys, places = query.components_of(aggregate)
    columns = [components[place] for place in places]
    if keys[0].kind != "events":
        return columns
    double = is_double(aggregate, query.types)
    own = needed(replace(aggregate, events=False), double, query.exact)
    sets = columns[0].tolist()
    return [columned(key, [_component(key, each) for each in sets]) for key in own]


def _component(key: ComponentKey, events: frozenset[Matched]) -> Component:
    """What a component measures of a set of events."""
    counted = [(count, value) for _, count, value in events if key.attribute is None or value is not None]
    number = sum(count for count, _ in counted)
    values = [value for _, value in counted if value is not None]
    match key.kind:
        case "occurrences":
            return number
        case "occurrences_scaled":
            return scaled.of_integer(number)
        case "present":
            return bool(values)
        case "sum_int":
            return sum(count * int(value or 0) for count, value in counted)
        case "sum_double":
            parts = (scaled.times(scaled.of_integer(n), scaled.normal(float(value or 0))) for n, value in counted)
            return reduce(scaled.plus, parts, scaled.ZERO)
    if not values:
        return None
    return min(values) if key.kind.startswith("least") else max(values)
