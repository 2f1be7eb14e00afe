"""The events of one window and group that a query can use, in the order of time, partition by partition."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.findings.local import LocalPredicate, of_type
from hamlet.input.buffers import in_microseconds
from hamlet.input.columns import integers
from hamlet.input.events import EventSource
from hamlet.input.moments import joined, seconds
from hamlet.input.widening import unified
from hamlet.language.meaning import AnalysedQuery, Pair
from hamlet.language.query import Reference, Shift
from hamlet.oracle.conditions import truth_of, value_of
from hamlet.trends.walk import Moment

Key = dict[str, Any]


@dataclass
class Partition:
    """The events of one partition.

    Attributes
    ----------
    table : pyarrow.Table
        All columns of the events of the window.
    places : sequence of int
        Rows of this partition, in the order of time.
    all_moments : sequence of (int, int)
        Of every row.
    taken : mapping of str to set of int
        The rows that each variable takes, of any partition.
    query : AnalysedQuery
    """

    table: pa.Table
    places: Sequence[int]
    all_moments: Sequence[Moment]
    taken: Mapping[str, set[int]]
    query: AnalysedQuery

    @cached_property
    def moments(self) -> list[Moment]:
        """When each event is."""
        return [self.all_moments[place] for place in self.places]

    @cached_property
    def accepted(self) -> dict[str, list[int]]:
        """Per variable its events, by their place in the partition."""
        return {
            variable: [number for number, place in enumerate(self.places) if place in rows]
            for variable, rows in self.taken.items()
        }

    def event(self, number: int) -> dict[str, Any]:
        """All columns of an event."""
        row = self.table.slice(self.places[number], 1)
        return {name: _value(row.column(name)) for name in row.column_names}

    def connects(self, earlier: str, one: int, later: str, other: int) -> bool:
        """Whether two events may be neighbours."""
        pair: Pair = (earlier, later)
        rows = {Shift.NONE: self.places[one], Shift.NEXT: self.places[other]}

        def read(reference: Reference) -> Any:
            return self._read(reference.attribute, rows[reference.shift])

        return all(truth_of(condition, partial(value_of, read=read)) is True for condition in self.query.adjacent[pair])

    def _read(self, name: str, row: int) -> Any:
        if name not in self.table.column_names:
            return None
        return _value(self.table.column(name).slice(row, 1))


@dataclass(frozen=True)
class Gathered:
    """What `gathered` finds: the partitions in the order of their first events, and pairs with adjacent predicates."""

    partitions: list[Partition]
    adjacent: frozenset[Pair]


def gathered(query: AnalysedQuery, source: EventSource, window: tuple[int, int], group: Mapping[str, Any]) -> Gathered:
    """Read the events of a window and a group.

    Parameters
    ----------
    query : AnalysedQuery
    source : EventSource
    window : (int, int)
        In ticks.
    group : mapping of str to Any
        Values of GROUP-BY attributes, as far as the row has them.
    """
    schema = source.schema
    variables = list(query.types)
    predicates = {each: LocalPredicate(query, each, schema) for each in variables if query.local.get(each)}
    parts: list[pa.Table] = []
    taken: dict[str, list[Any]] = {each: [] for each in variables}
    for batch in _inside(source, window):
        masks = {each: of_type(batch, schema.type_column, query.types[each]) for each in variables}
        for each, predicate in predicates.items():
            masks[each] &= predicate.accepts(batch)
        used = np.logical_or.reduce(list(masks.values()))
        parts.append(pa.Table.from_batches([batch.filter(pa.array(used))]))
        for each in variables:
            taken[each].append(masks[each][used])
    if not parts:
        return Gathered([], frozenset(query.adjacent))
    table = unified(pa.concat_tables(parts)).combine_chunks()
    rows = {each: set(np.nonzero(np.concatenate(masks))[0].tolist()) for each, masks in taken.items()}
    moments = _moments(table, source)
    if schema.clock.is_fraction:  # from here on times are what rows show
        place = table.schema.get_field_index(schema.clock.column)
        table = table.set_column(place, schema.clock.column, seconds(joined(table.column(place))))
    partitions = [
        Partition(table, places, moments, rows, query)
        for key, places in _partitions(query, table, schema.type_column)
        if all(_equal(key.get(name), value) for name, value in group.items())
    ]
    return Gathered(partitions, frozenset(query.adjacent))


def _inside(source: EventSource, window: tuple[int, int]) -> Iterator[pa.RecordBatch]:
    """The events of a window, with all columns that can be read."""
    clock = source.schema.clock.column
    for batch in source.batches():
        times = integers(batch.column(clock), clock)[0]
        first, last = (int(np.searchsorted(times, edge)) for edge in window)
        if last > first:
            yield batch.slice(first, last - first)
        if last < len(times):
            return


def _moments(table: pa.Table, source: EventSource) -> list[Moment]:
    clock, order = source.schema.clock.column, source.schema.order_column
    times = integers(table.column(clock).combine_chunks(), clock)[0].tolist()
    orders = [0] * len(times) if order is None else integers(table.column(order).combine_chunks(), order)[0].tolist()
    return list(zip(times, orders, strict=True))


def _partitions(query: AnalysedQuery, table: pa.Table, type_column: str) -> Iterator[tuple[Key, list[int]]]:
    """The keys that events can agree on, by first event, and the rows of each; NULL is a value."""
    if not query.partition:
        yield {}, list(range(table.num_rows))
        return
    declared = {query.types[variable]: attributes for variable, attributes in query.declared.items()}
    types = table.column(type_column).to_pylist()
    columns = {
        name: [_plain(value) for value in table.column(name).to_pylist()] if name in table.column_names else None
        for name in query.partition
    }
    keys: dict[tuple[Any, ...], list[int]] = {}  # None where an event agrees with every value
    for row, kind in enumerate(types):
        key = tuple(
            None if kind in declared and name not in declared[kind] else (None if values is None else values[row],)
            for name, values in columns.items()
        )
        keys.setdefault(key, []).append(row)
    for whole in _joined(list(keys)):
        rows = [row for key, places in keys.items() if _agree(key, whole) for row in places]
        yield {name: value[0] for name, value in zip(query.partition, whole, strict=True)}, sorted(rows)


def _joined(keys: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Keys without gaps that some keys together make."""
    whole = dict.fromkeys(key for key in keys if None not in key)
    partial = [key for key in keys if None in key]
    waiting = list(partial)
    seen = set(partial)
    while waiting:
        one = waiting.pop()
        for other in partial:
            if _agree(one, other):
                both = tuple(a if a is not None else b for a, b in zip(one, other, strict=True))
                if None not in both:
                    whole[both] = None
                elif both not in seen:
                    seen.add(both)
                    waiting.append(both)
    return list(whole)


def _agree(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other)


def _value(column: Any) -> Any:
    """The one value of a column; NaN is NULL, and nanoseconds are cut to what Python's datetime holds."""
    return _plain(in_microseconds(column)[0].as_py())
