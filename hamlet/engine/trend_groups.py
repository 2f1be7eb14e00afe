"""Rows of queries whose GROUP-BY names what trends took: their groups come from the kernel, not from partitions alone.

Source: docs/language.md ("Groups by what a trend took").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

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

Mark = tuple[Int64Array, npt.NDArray[np.bool_] | None]  # what trends took, and where there is a value; None for all
Ranked = tuple[Values, Int64Array]  # values of a group, and numbers that are ordered as they are, NULL first


def as_columns(marks: npt.NDArray[np.int64]) -> list[Mark]:
    """What trends took as `Matching.marks` gives it, thing by thing."""
    return [
        (np.ascontiguousarray(marks[:, place, 1]), marks[:, place, 0] & _VALUED != 0) for place in range(marks.shape[1])
    ]


def come_in_order(query: CompiledQuery) -> bool:
    """Whether rows in the order of windows, partitions and what the kernel says of trends are in that of groups."""
    *before, last = query.analysed.groups
    if isinstance(last, Attribute) or not all(isinstance(each, Attribute) for each in before):
        return False
    texts = (None, AttributeType.STRING)  # the kernel knows the numbers of strings only
    return last.attribute is None or query.types.get((last.variable, last.attribute)) not in texts


def in_order(
    query: CompiledQuery,
    runs: Runs,
    attributes: Sequence[Values],
    marks: Sequence[Mark],
    columns: list[Column],
    texts: Sequence[str],
    schema: Schema,
) -> Closed:
    """Rows of partitions and marks that are in the order of groups, one of each, as rows of groups."""
    *_, last = query.analysed.groups
    assert not isinstance(last, Attribute)
    return Closed(runs, (*attributes, _taken(last, marks[0], group_type(query, last, schema), texts, schema)), columns)


def grouped(
    query: CompiledQuery,
    windows: Int64Array,
    attributes: Mapping[str, Ranked],
    marks: Sequence[Mark],
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
    marks : sequence of Mark
        Of each thing taken.
    columns : callable
        The components in another order, given the places of rows.
    texts : sequence of str
        What the numbers of strings stand for.
    schema : Schema
    """
    left = iter(marks)
    groups = [
        attributes[each.name] if isinstance(each, Attribute) else _ranked(query, each, next(left), texts, schema)
        for each in query.analysed.groups
    ]
    order, starts, found, counts = in_groups([windows, *(rank for _, rank in groups)])
    merged, chosen = columns(order), order
    if starts is not None:
        merged = [merged_runs(key, each, starts) for key, each in zip(query.layout.keys, merged, strict=True)]
        chosen = order[starts]
    return Closed(Runs(found, counts), tuple(values.chosen(chosen) for values, _ in groups), merged)


def _taken(
    each: Taken, mark: Mark, types: tuple[AttributeType, pa.DataType | None], texts: Sequence[str], schema: Schema
) -> Values:
    """What trends took, as values of a type."""
    numbers, valid = mark
    if each.attribute is None:
        return Values(numbers)
    type, arrow_type = types
    if type is AttributeType.STRING:
        return Values(numbers, valid, list(texts))
    if type is AttributeType.DOUBLE:
        return Values(numbers.view(np.float64), valid)
    if type is AttributeType.BOOLEAN:
        return Values(numbers != 0, valid)
    if type in (AttributeType.TIMESTAMP, AttributeType.DURATION):
        present = _presenter(each, type, arrow_type, schema)
        there = np.ones(len(numbers), np.bool_) if valid is None else valid
        found = zip(numbers.tolist(), there.tolist(), strict=True)
        return Values([present(ticks) if known else None for ticks, known in found])
    return Values(numbers, valid)


def _ranked(query: CompiledQuery, each: Taken, mark: Mark, texts: Sequence[str], schema: Schema) -> Ranked:
    """What trends took, as values and in order."""
    numbers, valid = mark
    types = type, _ = group_type(query, each, schema)
    values = _taken(each, mark, types, texts, schema)
    if each.attribute is None:
        return values, numbers
    there = np.ones(len(numbers), np.bool_) if valid is None else valid
    codes: npt.NDArray[Any] = numbers
    if type is AttributeType.STRING:
        codes = ordinals(numbers, there.astype(np.uint8), list(texts))
    elif type is AttributeType.DOUBLE:
        codes = numbers.view(np.float64)
    if codes.dtype != np.int64 or int(codes.min()) == np.iinfo(np.int64).min:
        codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    return values, codes if there.all() else np.where(there, codes, int(codes.min()) - 1)


def _presenter(each: Taken, type: AttributeType, arrow_type: Any, schema: Schema) -> Callable[[int], Any]:
    """What makes a Python object of ticks."""
    column = ResultColumn(str(each.attribute), "extremum", type, arrow_type)
    return presenter_of(column, ComponentKey("least_int", each.variable, each.attribute), schema.units)
