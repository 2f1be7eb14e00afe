"""Closed windows as result rows: which values make a row, from columns of components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import DataError
from hamlet.input.columns import Int64Array
from hamlet.language.printing import to_text
from hamlet.language.query import DISTINCT, Aggregate, Attribute, AttributeType, Taken
from hamlet.language.schema import Schema, duration, is_finer, timestamp
from hamlet.language.times import UNIT_OF, Typed
from hamlet.output.components import Column, Values, columned, listed, read, taken
from hamlet.output.expressions.selection import Table, best, conjuncts
from hamlet.output.matched import read_columns
from hamlet.output.numbers import Runs
from hamlet.output.query_rows import Piece, QueryRows, ResultColumn
from hamlet.planner.aggregates import Component, ComponentKey
from hamlet.planner.compiled import CompiledQuery
from hamlet.planner.matching import SESSION_END

Units = Mapping[str, tuple[str, str | None]]  # TIMESTAMP column -> (unit, zone)


@dataclass(frozen=True, slots=True)
class Closed:
    """Closed windows of one query, one row per window and group, ordered by window, then by group, NULL first.

    Attributes
    ----------
    windows : Runs of shape (rows,)
        Window numbers.
    groups : tuple of Values
        The values of the groups, each of shape (rows,).
    components : list of Column
        In the order of the query's layout, each of shape (rows,).
    """

    windows: Runs
    groups: tuple[Values, ...]
    components: list[Column]

    def begin(self, slide: int) -> Int64Array:
        """When the windows begin, shape (rows,), in ticks."""
        return np.asarray(self.windows, np.int64) * slide

    def where(self, mask: npt.NDArray[np.bool_]) -> Closed:
        """The rows for which a mask of shape (rows,) is true; these very ones where it is true for all."""
        if mask.all():
            return self
        return self.at(np.nonzero(mask)[0])

    def at(self, rows: Int64Array) -> Closed:
        """The rows at some places, in this order."""
        windows = Runs.of(np.asarray(self.windows)[rows])
        groups = tuple(each.chosen(rows) for each in self.groups)
        return Closed(windows, groups, [taken(column, rows) for column in self.components])


@dataclass
class GroupRows:
    """Closed windows of one query in Python values, one row per window and group: what partial rows are made of.

    Attributes
    ----------
    windows : list of int, shape (rows,)
    groups : list of tuple, shape (rows,)
        Values of the groups.
    components : list of list, shape (components, rows)
    """

    windows: list[int]
    groups: list[tuple[Any, ...]]
    components: list[list[Component]]


def group_rows(query: CompiledQuery, pieces: Sequence[Closed]) -> GroupRows:
    """Closed windows in Python values."""
    rows = GroupRows([], [], [[] for _ in query.layout.keys])
    for piece in pieces:
        windows = piece.windows.tolist()
        rows.windows += windows
        rows.groups += (
            zip(*(each.tolist() for each in piece.groups), strict=True) if piece.groups else [()] * len(windows)
        )
        for column, more in zip(rows.components, piece.components, strict=True):
            column += listed(more)
    return rows


def result_columns(query: CompiledQuery, schema: Schema) -> tuple[ResultColumn, ...]:
    """The result columns of a query: names, kinds, types."""
    found = []
    for item in query.analysed.query.items:
        if item.place:
            typed = query.times.typed(item.expression)
            if typed.is_time:
                found.append(_time_column(item.column, typed))
                continue
            kind = typed.type
            double = kind is AttributeType.DOUBLE
            found.append(ResultColumn(item.column, "double" if double else "sum", kind or AttributeType.INT))
            continue
        if isinstance(item.value, Taken):
            found.append(ResultColumn(item.column, "attribute", *group_type(query, item.value, schema)))
            continue
        if isinstance(item.value, Attribute):
            type = schema.type_of(item.value.name) or AttributeType.STRING
            if _are_seconds(item.value.name, schema):
                type = AttributeType.DOUBLE
            found.append(ResultColumn(item.column, "attribute", type, _key_type(item.value.name, schema)))
            continue
        assert isinstance(item.value, Aggregate)
        function, place = item.value.function, (item.value.variable or "", item.value.attribute or "")
        type = query.types.get(place) or AttributeType.INT
        if function in DISTINCT:
            type = AttributeType.INT
        typed = query.times.typed(item.value)
        if typed.is_time and item.log2:
            raise DataError(f"{to_text(item)}: LOG2 takes numbers, and {to_text(item.value)} is a time")
        if typed.is_time and function in ("SUM", "AVG"):
            found.append(_time_column(item.column, typed))
        elif item.log2 or function == "AVG":
            found.append(ResultColumn(item.column, "double", AttributeType.DOUBLE))
        elif function in ("MIN", "MAX"):
            found.append(ResultColumn(item.column, "extremum", type, schema.arrow_types.get(place[1])))
        else:
            found.append(ResultColumn(item.column, "sum" if function == "SUM" else "count", type))
    return tuple(found)


def group_type(query: CompiledQuery, taken: Taken, schema: Schema) -> tuple[AttributeType, pa.DataType | None]:
    """The type of what GROUP-BY names of the events that trends took."""
    if taken.attribute is None:
        return AttributeType.INT, pa.int64()
    type = query.types.get((taken.variable, taken.attribute)) or AttributeType.STRING
    return type, schema.arrow_types.get(taken.attribute)


def group_types(query: CompiledQuery, schema: Schema) -> list[pa.DataType]:
    """The types of the values of groups, as they are told apart in partial rows."""
    return [
        _plain_type(*group_type(query, each, schema))
        if isinstance(each, Taken)
        else _key_type(each.name, schema) or pa.null()
        for each in query.analysed.groups
    ]


def _are_seconds(name: str, schema: Schema) -> bool:
    """Whether an attribute is the column of times with a fraction, which rows have as seconds."""
    return schema.clock.is_fraction and name == schema.clock.column


def _key_type(name: str, schema: Schema) -> pa.DataType | None:
    return pa.float64() if _are_seconds(name, schema) else schema.arrow_types.get(name)


def _plain_type(type: AttributeType, arrow_type: pa.DataType | None) -> pa.DataType:
    plain = {
        AttributeType.INT: pa.int64(),
        AttributeType.DOUBLE: pa.float64(),
        AttributeType.STRING: pa.string(),
        AttributeType.BOOLEAN: pa.bool_(),
    }
    return plain[type] if type in plain or arrow_type is None else arrow_type


def _time_column(name: str, typed: Typed) -> ResultColumn:
    """The column of a time that is calculated."""
    unit = UNIT_OF[typed.per_second]
    assert typed.type is not None
    arrow = pa.duration(unit) if typed.type is AttributeType.DURATION else pa.timestamp(unit, typed.zone)
    return ResultColumn(name, "extremum", typed.type, arrow)


def present(query: CompiledQuery, columns: tuple[ResultColumn, ...], rows: GroupRows, units: Units) -> QueryRows:
    """Result rows from the components of windows and groups."""
    groups = tuple(Values([group[place] for group in rows.groups]) for place in range(len(query.analysed.groups)))
    components = [columned(key, column) for key, column in zip(query.layout.keys, rows.components, strict=True)]
    closed = Closed(Runs.of(rows.windows), groups, components)
    return QueryRows(query.name, columns, pieces=[piece_of(query, columns, closed, units)])


def piece_of(query: CompiledQuery, columns: tuple[ResultColumn, ...], closed: Closed, units: Units) -> Piece:
    """The values of result rows, column by column: of those rows that HAVING and TOP leave."""
    closed = selected(query, closed, units)
    values: list[Values] = []
    table = table_of(query, closed, units)
    for (item, keys, places), result in zip(query.reads, columns, strict=True):
        if not keys:
            values.append(closed.groups[places[0]] if places else table.column(item.value))
            continue
        assert isinstance(item.value, Aggregate)
        column = read(item, read_columns(query, item.value, closed.components))
        if result.is_time and item.value.function not in ("MIN", "MAX"):
            values.append(table.column(item.value))
            continue
        if result.is_time:
            present = presenter_of(result, keys[0], units)
            column = Values([present(value) for value in column.tolist()])
        values.append(column)
    begin, end = closed.windows.edges(*query.window)
    if not query.line.is_plain:
        begin, end = (Runs(query.line.times(each.values), each.counts) for each in (begin, end))
    if query.analysed.query.session:
        last = closed.components[query.layout.keys.index(ComponentKey("greatest_int", None, SESSION_END))]
        end = Runs.of(last[0] + query.window[0])
    return Piece(begin, end, tuple(values))


def selected(query: CompiledQuery, closed: Closed, units: Units) -> Closed:
    """The rows for which HAVING is true, and of those the ones that TOP keeps, in its order."""
    for condition in conjuncts(query.analysed.query.having):
        closed = closed.where(table_of(query, closed, units).holds(condition))
    top = query.analysed.query.top
    if top is None:
        return closed
    return closed.at(best(table_of(query, closed, units), np.asarray(closed.windows, np.int64), top))


def table_of(query: CompiledQuery, closed: Closed, units: Units) -> Table:
    """The rows as what expressions are calculated over."""

    def present(aggregate: Aggregate) -> Callable[[Any], Any]:
        type = query.types.get((aggregate.variable or "", aggregate.attribute or "")) or AttributeType.TIMESTAMP
        kind = ResultColumn(str(aggregate.attribute), "extremum", type)
        return presenter_of(kind, query.components_of(aggregate)[0][0], units)

    return Table(query, closed.groups.__getitem__, closed.components, len(closed.windows), present)


def presenter_of(column: ResultColumn, key: ComponentKey, units: Units) -> Callable[[int | None], Any]:
    """What makes a timestamp, or a date, of the ticks of an extremum."""
    unit, zone = units.get(key.attribute or "", ("us", None))  # declared, and no value of it seen yet
    dates = column.arrow_type is not None and pa.types.is_date(column.arrow_type)

    def present(ticks: int | None) -> Any:
        if ticks is None:
            return None
        if column.type is AttributeType.DURATION:
            return duration(ticks, unit)
        if is_finer(ticks, unit):
            if zone is None:
                return np.datetime64(ticks, "ns")
            raise DataError(
                f"{column.name} is {ticks} ns from 1970, in a time zone, and Python has no such type; cut column "
                f"'{key.attribute}' to microseconds (timestamp[us])"
            )
        moment = timestamp(ticks, unit, zone)
        return moment.date() if dates else moment

    return present
