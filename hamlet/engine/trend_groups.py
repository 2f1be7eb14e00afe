"""Rows of queries whose GROUP-BY names what trends took: their groups come from the kernel, not from partitions alone.

Source: docs/language.md ("Groups by what a trend took").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.engine.group_order import ordinals
from hamlet.input.columns import Int64Array
from hamlet.kernel.column_builder import in_groups
from hamlet.language.query import Attribute, AttributeType, Taken
from hamlet.language.schema import Schema
from hamlet.output.components import Column, Values, merged_runs
from hamlet.output.numbers import Runs
from hamlet.output.query_rows import ResultColumn
from hamlet.output.rows import Closed, group_type, presenter_of
from hamlet.planner.aggregates import ComponentKey
from hamlet.planner.compiled import CompiledQuery

_VALUED = 2  # in the first number of a value: there is one

Ranked = tuple[Values, Int64Array]  # values of a group, and numbers that are ordered as they are, NULL first


def grouped(
    query: CompiledQuery,
    windows: Int64Array,
    attributes: Mapping[str, Ranked],
    marks: npt.NDArray[np.int64],
    columns: Callable[[Int64Array], list[Column]],
    texts: Sequence[str],
    schema: Schema,
) -> Closed:
    """Rows of partitions and marks, in any order, as rows of groups in their order.

    Parameters
    ----------
    query : CompiledQuery
    windows : int64 array of shape (rows,)
    attributes : mapping of str to Ranked
        The grouping attributes, each of shape (rows,).
    marks : int64 array of shape (rows, things taken, 2)
        From `Matching.marks`.
    columns : callable
        The components in another order, given the places of rows.
    texts : sequence of str
        What the numbers of strings stand for.
    schema : Schema
    """
    places = iter(range(marks.shape[1]))
    groups = [
        attributes[each.name]
        if isinstance(each, Attribute)
        else _taken(query, each, marks[:, next(places)], texts, schema)
        for each in query.analysed.groups
    ]
    order, starts, found, counts = in_groups([windows, *(rank for _, rank in groups)])
    merged, chosen = columns(order), order
    if starts is not None:
        merged = [merged_runs(key, each, starts) for key, each in zip(query.layout.keys, merged, strict=True)]
        chosen = order[starts]
    return Closed(Runs(found, counts), tuple(values.chosen(chosen) for values, _ in groups), merged)


def _taken(
    query: CompiledQuery, each: Taken, mark: npt.NDArray[np.int64], texts: Sequence[str], schema: Schema
) -> Ranked:
    """What trends took, as values and in order."""
    numbers = np.ascontiguousarray(mark[:, 1])
    if each.attribute is None:
        return Values(numbers), numbers
    type, arrow_type = group_type(query, each, schema)
    valid = mark[:, 0] & _VALUED != 0
    codes: npt.NDArray[Any] = numbers
    values = Values(numbers, valid)
    if type is AttributeType.STRING:
        objects = list(texts)
        codes, values = ordinals(numbers, valid.astype(np.uint8), objects), Values(numbers, valid, objects)
    elif type is AttributeType.DOUBLE:
        codes = numbers.view(np.float64)
        values = Values(codes, valid)
    elif type is AttributeType.BOOLEAN:
        values = Values(numbers != 0, valid)
    elif type in (AttributeType.TIMESTAMP, AttributeType.DURATION):
        present = _presenter(each, type, arrow_type, schema)
        found = zip(numbers.tolist(), valid.tolist(), strict=True)
        values = Values([present(ticks) if there else None for ticks, there in found])
    ranks = codes
    if codes.dtype != np.int64 or int(codes.min()) == np.iinfo(np.int64).min:
        ranks = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    if valid.all():
        return values, ranks
    return values, np.where(valid, ranks, int(ranks.min()) - 1)


def _presenter(each: Taken, type: AttributeType, arrow_type: Any, schema: Schema) -> Callable[[int], Any]:
    """What makes a Python object of ticks."""
    column = ResultColumn(str(each.attribute), "extremum", type, arrow_type)
    return presenter_of(column, ComponentKey("least_int", each.variable, each.attribute), schema.units)
