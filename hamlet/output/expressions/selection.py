"""HAVING and TOP over closed windows, and result columns that are calculated: column by column where arrays can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.input.columns import Int64Array
from hamlet.language.conditions import aggregates, groups
from hamlet.language.printing import to_text
from hamlet.language.query import (
    Aggregate,
    And,
    Attribute,
    Condition,
    Expression,
    Log2,
    ReturnItem,
    Taken,
    Top,
)
from hamlet.language.times import TIMES
from hamlet.output.components import Column, Values, listed, read, taken
from hamlet.output.expressions import times
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
        known = self.query.times
        if times.speaks_of_times(condition, known):
            found = [times.truth_of(condition, known, each) is True for each in self._lookups(condition, ticks=True)]
            return np.array(found, np.bool_)
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
        if isinstance(expression, (Attribute, Taken, Aggregate)) and not self._is_computed_time(expression):
            return self._read(expression)
        if times.speaks_of_times(expression, self.query.times):
            typed = self.query.times.typed(expression)
            ticks = self._timed(expression)
            return times.presented(ticks, typed, to_text(expression)) if typed.is_time else Values(ticks)
        try:
            found = evaluated(expression, self._vector)
            if found.rounded:
                raise Inexact
        except Inexact:
            return Values([value_of(expression, lookup) for lookup in self._lookups(expression)])
        valid = None if found.valid is None else np.broadcast_to(found.valid, self.size)
        return Values(np.broadcast_to(found.data, self.size), valid)

    def ranks(self, expression: Expression, *, ascending: bool) -> npt.NDArray[Any]:
        """Numbers that sort the rows as an expression does, its least value first where `ascending`; NULL last."""
        if times.speaks_of_times(expression, self.query.times):
            column = Values(self._timed(expression))
        else:
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

    def _timed(self, expression: Expression) -> list[Any]:
        """The values of an expression over times: ticks, or numbers."""
        typed = self.query.times.typed(expression)
        return [times.value_of(typed, lookup) for lookup in self._lookups(expression, ticks=True)]

    # ------------------------------------------------------------------------------------------- operands

    def _is_computed_time(self, operand: Attribute | Taken | Aggregate) -> bool:
        """Whether an aggregate of times is none of them."""
        asked = isinstance(operand, Aggregate) and operand.function in ("SUM", "AVG")
        return asked and self.query.times.typed(operand).is_time

    def _ticks(self, operand: Expression) -> list[Any]:
        """The values of an operand, a time as ticks."""
        if isinstance(operand, (Attribute, Taken)):
            values = self._read(operand).tolist()
            typed = self.query.times.typed(operand)
            return [times.ticks_of(each, typed.per_second) for each in values] if typed.is_time else values
        assert isinstance(operand, Aggregate)
        columns = [listed(each) for each in read_columns(self.query, operand, self.components)]
        if operand.function == "AVG":
            return [times.average(total, number) for total, number in zip(*columns, strict=True)]
        if operand.function == "SUM":
            return [total if there else None for total, there in zip(*columns, strict=True)]
        return columns[0]

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
        return operand.function in ("MIN", "MAX") and kind in TIMES

    def _vector(self, operand: Expression) -> Vector:
        return vector_of(self._read(operand))

    def _lookups(self, part: Condition | Expression, *, ticks: bool = False) -> list[Callable[[Expression], Any]]:
        """For every row what gives the values of operands there; times as ticks, if asked for."""
        operands: list[Expression] = [*groups(part), *aggregates(part)]
        lists: dict[Expression, list[Any]] = {} if ticks else self._lists
        for operand in operands:
            if operand not in lists:
                counted = ticks and self.query.times.typed(operand).type in TIMES
                values = self._ticks(operand) if counted else self._read(operand).tolist()
                lists[operand] = [None if value != value else value for value in values]
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
