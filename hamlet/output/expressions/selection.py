"""HAVING and TOP over closed windows, and result columns that are calculated: column by column where arrays can."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.input.columns import Int64Array
from hamlet.language.conditions import aggregates, groups
from hamlet.language.query import (
    Aggregate,
    And,
    Attribute,
    AttributeType,
    Condition,
    Expression,
    Log2,
    ReturnItem,
    Taken,
    Top,
)
from hamlet.output.components import Column, Values, read, taken
from hamlet.output.expressions.single import truth_of, value_of
from hamlet.output.expressions.vectors import Inexact, Vector, evaluated, truths, vector_of
from hamlet.output.matched import read_columns
from hamlet.output.numbers import Bools, Integers
from hamlet.planner.compiled import CompiledQuery

Present = Callable[[Aggregate], Callable[[Any], Any]]  # what makes a timestamp of an extremum's ticks


@dataclass(eq=False)
class Table:
    """Rows of groups, as the kernel and the index of keys have them.

    Attributes
    ----------
    query : CompiledQuery
    groups : mapping of str to Values
        The values of the groups, each of shape (rows,); made where they are asked for.
    components : list of Column
        In the order of the query's layout, each of shape (rows,).
    size : int
        Rows.
    present : callable
        What makes a Python object of the ticks of an extremum of timestamps.
    """

    query: CompiledQuery
    groups: Callable[[int], Values]
    components: list[Column]
    size: int
    present: Present
    _values: dict[Expression, Values] = field(default_factory=dict)
    _lists: dict[Expression, list[Any]] = field(default_factory=dict)

    def holds(self, condition: Condition) -> Bools:
        """Where a condition is true, shape (rows,)."""
        doubts: list[Bools] = []
        try:
            true = np.broadcast_to(truths(condition, self._vector, doubts)[0], self.size)
        except Inexact:
            wide = self._wide()
            if wide.all():
                return np.array([truth_of(condition, lookup) is True for lookup in self._lookups(condition)], np.bool_)
            true = np.zeros(self.size, np.bool_)
            true[~wide] = self.at(np.nonzero(~wide)[0]).holds(condition)
            doubts = [wide]
        unknown = np.nonzero(reduce(np.logical_or, doubts, np.zeros(self.size, np.bool_)))[0]
        if len(unknown):
            true = true.copy()
            lookups = self.at(unknown)._lookups(condition)
            true[unknown] = [truth_of(condition, lookup) is True for lookup in lookups]
        return true

    def at(self, rows: Int64Array) -> Table:
        """Some of the rows."""
        components = [taken(column, rows) for column in self.components]
        return Table(self.query, lambda place: self.groups(place).chosen(rows), components, len(rows), self.present)

    def _wide(self) -> Bools:
        """The rows in which some number needs more than 64 bits; all of them where that is not why arrays do not do."""
        sizes = [column.sizes for column in self.components if isinstance(column, Integers)]
        wide = reduce(np.logical_or, [each > 1 for each in sizes]) if sizes else np.zeros(self.size, np.bool_)
        return wide if wide.any() else np.ones(self.size, np.bool_)

    def column(self, expression: Expression) -> Values:
        """The values of an expression."""
        if isinstance(expression, (Attribute, Taken, Aggregate)):
            return self._read(expression)
        try:
            found = evaluated(expression, self._vector)
        except Inexact:
            return Values([value_of(expression, lookup) for lookup in self._lookups(expression)])
        valid = None if found.valid is None else np.broadcast_to(found.valid, self.size)
        return Values(np.broadcast_to(found.data, self.size), valid)

    def ranks(self, expression: Expression, *, ascending: bool) -> npt.NDArray[Any]:
        """Numbers that sort the rows as an expression does, its least value first where `ascending`; NULL last."""
        column = self.column(expression)
        try:
            found = vector_of(column)
        except Inexact:
            found = _places_of(column.tolist())
        if found.rounded:
            found = _places_of(column.tolist())
        data = found.data if ascending else ~found.data if found.is_integer else -found.data
        _, places = np.unique(data, return_inverse=True)
        places = np.asarray(places, np.int64)
        return places if found.valid is None else np.where(found.valid, places, self.size)

    # ------------------------------------------------------------------------------------------- operands

    def _read(self, operand: Expression) -> Values:
        found = self._values.get(operand)
        if found is None:
            if isinstance(operand, (Attribute, Taken)):
                found = self.groups(self.query.analysed.place_of(operand))
            elif isinstance(operand, Log2):
                assert isinstance(operand.operand, Aggregate)
                found = self._aggregate(operand.operand, log2=True)
            else:
                assert isinstance(operand, Aggregate)
                found = self._aggregate(operand, log2=False)
                if self._is_time(operand):
                    present = self.present(operand)
                    found = Values([present(value) for value in found.tolist()])
            self._values[operand] = found
        return found

    def _aggregate(self, aggregate: Aggregate, *, log2: bool) -> Values:
        return read(ReturnItem(aggregate, log2), read_columns(self.query, aggregate, self.components))

    def _is_time(self, operand: Aggregate) -> bool:
        kind = self.query.types.get((operand.variable or "", operand.attribute or ""))
        return operand.function in ("MIN", "MAX") and kind is AttributeType.TIMESTAMP

    def _vector(self, operand: Expression) -> Vector:
        return vector_of(self._read(operand))

    def _lookups(self, part: Condition | Expression) -> list[Callable[[Expression], Any]]:
        """For every row what gives the values of operands there."""
        operands: list[Expression] = [*groups(part), *aggregates(part)]
        for operand in operands:
            if operand not in self._lists:
                values = self._read(operand).tolist()
                self._lists[operand] = [None if value != value else value for value in values]
        lists: Mapping[Expression, list[Any]] = self._lists
        return [lambda operand, row=row: lists[operand][row] for row in range(self.size)]  # type: ignore[misc]


def _places_of(values: list[Any]) -> Vector:
    """Values of any one kind as the places that they have in order, equal ones the same."""
    known = sorted((place for place, value in enumerate(values) if value is not None), key=lambda place: values[place])
    found = np.zeros(len(values), np.int64)
    rank = 0
    for number, place in enumerate(known):
        rank += number > 0 and values[known[number - 1]] != values[place]
        found[place] = rank
    return Vector(found, np.array([value is not None for value in values], np.bool_))


def conjuncts(having: Condition | None) -> list[Condition]:
    """The conditions that must all hold; those on aggregates alone first, which are the cheaper ones."""
    if having is None:
        return []
    found = list(having.operands) if isinstance(having, And) else [having]
    return sorted(found, key=lambda each: any(True for _ in groups(each)))


def best(table: Table, windows: Int64Array, top: Top) -> Int64Array:
    """The rows that TOP keeps, in its order within each window; windows are ascending, of shape (rows,)."""
    order = np.lexsort((table.ranks(top.by, ascending=top.ascending), windows))
    sorted_windows = windows[order]
    starts = np.nonzero(np.append(True, sorted_windows[1:] != sorted_windows[:-1]))[0] if len(order) else order
    lengths = np.diff(np.append(starts, len(order)))
    places = np.arange(len(order)) - np.repeat(starts, lengths)
    kept: Int64Array = order[places < top.count]
    return kept
