"""One unit of a workload over its stream: the input and the rows that it reads, merged by time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.checkpoint.stream import columns_read
from hamlet.engine.executor import executor_of
from hamlet.engine.layers.rows import as_events, row_schema, row_types, with_rows
from hamlet.engine.options import Options
from hamlet.input.columns import Int64Array, StringPool
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import times_of
from hamlet.input.widening import in_batches
from hamlet.language.query import AttributeType
from hamlet.language.schema import Schema
from hamlet.memory.budget import Budget
from hamlet.output.query_rows import ResultColumn
from hamlet.planner.compile import ticks
from hamlet.planner.layers import Columns, Unit, column_of, delay_of, workload_of_unit
from hamlet.planner.unordered_rows import ORDER, RANK, ROW, end_of, in_two
from hamlet.planner.workload import Workload


class UnitRun:
    """One unit over its stream.

    Parameters
    ----------
    unit : Unit
    whole : Workload
    schema : Schema
        Of the input.
    sources : mapping of str to tuple of ResultColumn
        The columns of the queries that the unit reads.
    options : Options
    budget : Budget
    strings : StringPool
    settled : bool
        Whether the types of the input's attributes are known for good.
    wide : frozenset of str
        Columns of rows that are DOUBLE since some value needed more than 64 bits.
    """

    def __init__(
        self,
        unit: Unit,
        whole: Workload,
        schema: Schema,
        sources: dict[str, tuple[ResultColumn, ...]],
        options: Options,
        budget: Budget,
        strings: StringPool,
        *,
        settled: bool,
        wide: frozenset[str] = frozenset(),
    ) -> None:
        self.unit = unit
        self.input = schema
        self.wide = wide
        self.strings = strings
        self.held: list[pa.RecordBatch] = []  # events of the input that wait for rows
        self.rows: list[pa.Table] = []  # rows that wait for their time
        self.lag = 0  # how far behind the input the unit is, in ticks
        ordered = bool(unit.reads) and schema.order_column is not None
        self.in_two, self.ranked = ordered and unit.any_match, ordered and not unit.any_match
        self._given = whole, sources, options, budget, settled
        exact = options.numbers == "exact"
        arrow = {name: row_schema(columns, schema.clock, exact=exact) for name, columns in sources.items()}
        types: Columns = {}
        if unit.reads:
            types = {name: self._widened(name, row_types(each, sources[name])) for name, each in arrow.items()}
            special = {schema.clock.column, schema.type_column}
            self.workload = workload_of_unit(whole.analysis, unit, types, special)
            if self.in_two:
                self.workload = in_two(self.workload, unit.reads, schema.clock.column)
        else:
            self.workload = whole.select([whole.names[place] for place in unit.places])
        self.keys = tuple({name for query in self.workload.analysis.queries for name in query.partition})
        self.wanted = self.workload.attributes
        unknown = {name for each in types.values() for name, kind in each.items() if kind is None}
        self.schema = with_rows(schema, self._columns(arrow, unknown)) if unit.reads else schema
        if self.in_two:
            self.schema = replace(with_rows(self.schema, dict.fromkeys((ROW, ORDER), pa.int64())), order_column=ORDER)
        if self.ranked:
            self.schema = replace(with_rows(self.schema, {RANK: pa.int64()}), order_column=RANK)
        kept = settled and not unit.reads  # a column of rows may become one of doubles
        self.executor = executor_of(self.workload, self.schema, strings, options, budget, settled=kept)

    def _widened(self, name: str, types: dict[str, AttributeType | None]) -> dict[str, AttributeType | None]:
        return {
            column: AttributeType.DOUBLE if column_of(name, column) in self.wide else kind
            for column, kind in types.items()
        }

    def _columns(self, arrow: dict[str, pa.Schema], unknown: Collection[str]) -> dict[str, pa.DataType]:
        """The columns of rows that the unit reads, by its names of them."""
        found: dict[str, pa.DataType] = {}
        for name, schema in arrow.items():
            for field in schema:
                called = column_of(name, field.name)
                if called in self.wanted:
                    found[called] = pa.float64() if called in self.wide else field.type
                of_rows = field.name not in unknown and self.input.type_of(field.name) is None
                if field.name in self.keys and of_rows:
                    found[field.name] = field.type
        return found

    def columns_kept(self) -> list[str]:
        """The columns that the unit reads of events and rows, those that order the input among them."""
        order = [] if self.input.order_column is None else [self.input.order_column]
        return list(dict.fromkeys([*columns_read(self.workload, self.schema), *order]))

    def schema_kept(self) -> Schema:
        """The columns of events and rows that wait, which the input's order column orders."""
        return replace(self.schema, order_column=self.input.order_column)

    @property
    def delay(self) -> int:
        """How long after the end of a window its rows are given, at most, in ticks."""
        found = 0
        for query in self.workload.analysis.queries:
            longest = query.query.longest
            found = max(found, delay_of(query, None if longest is None else ticks(longest, self.schema)))
        return found

    def hold(self, batch: pa.RecordBatch) -> None:
        """Keep those events of the input that matter here until the rows of their time are known."""
        if self.unit.types is not None:
            column = batch.column(self.input.type_column)
            batch = batch.filter(is_one_of(column, self.unit.types))
        if batch.num_rows:
            self.held.append(batch)

    def give(self, name: str, table: pa.Table) -> None:
        """Take rows of a query that the unit reads."""
        events = as_events(table, name, self.input, self.wanted, self.keys)
        fresh = {
            field.name
            for field in events.schema
            if pa.types.is_floating(field.type) and self.schema.type_of(field.name) is AttributeType.INT
        }
        if fresh - {self.input.clock.column}:
            self._widen(fresh)
        self.rows.append(events)

    def anew(self, strings: StringPool, wide: frozenset[str]) -> UnitRun:
        """This unit as it was before any event, with some columns of rows as doubles."""
        whole, sources, options, budget, settled = self._given
        found = UnitRun(
            self.unit, whole, self.input, sources, options, budget, strings, settled=settled, wide=wide
        )  # fmt: skip
        found.lag = self.lag
        return found

    def _widen(self, names: set[str]) -> None:
        """Go on with columns of doubles."""
        other = self.anew(self.strings, self.wide | names)
        other.executor.stages = self.executor.stages
        other.executor.adopt(self.executor)
        self.executor, self.workload, self.schema, self.wide = other.executor, other.workload, other.schema, other.wide

    def ready(self, until: int) -> list[pa.RecordBatch]:
        """Take the events and rows before a time, in order."""
        clock = self.schema.clock.column
        tables = [pa.Table.from_batches([batch]) for batch in self.held] + self.rows
        if not tables:
            return []
        columns = [self._conformed(table) for table in tables]
        table = pa.concat_tables(columns, promote_options="default")
        of_rows = np.zeros(table.num_rows, np.bool_)
        of_rows[sum(batch.num_rows for batch in self.held) :] = True
        times = times_of(table, clock)
        due = times < until
        later = table.filter(pa.array(~due))
        self.held = in_batches(later.filter(pa.array(~of_rows[~due])))
        rest = later.filter(pa.array(of_rows[~due]))
        self.rows = [rest] if rest.num_rows else []
        if not due.any():
            return []
        table, times, of_rows = table.filter(pa.array(due)), times[due], of_rows[due]
        if self.in_two:
            table = self._two_of_each(table, of_rows)
            order = np.lexsort((table.column(ORDER).to_numpy(), times_of(table, clock)))
        elif self.ranked:
            ranks = np.zeros(len(times), np.int64)
            ranks[~of_rows] = self._ranks(table.filter(pa.array(~of_rows)))[0] + 1
            table = table.append_column(RANK, pa.array(ranks))
            order = np.lexsort((ranks, times))
        else:
            order = np.argsort(times, kind="stable")
        return in_batches(table.take(pa.array(order)))

    def _conformed(self, table: pa.Table) -> pa.Table:
        """Events or rows with columns in the types of the unit's schema, where it knows them."""
        clock = self.schema.clock
        for place, field in enumerate(table.schema):
            kind = self.schema.arrow_types.get(field.name, field.type)
            if field.name == clock.column:
                kind = clock.type if clock.is_timestamp or clock.is_fraction else pa.int64()
            elif field.name == self.schema.type_column or pa.types.is_dictionary(kind):
                kind = _plain(kind)
            if not (field.type.equals(kind) or pa.types.is_null(kind)):
                column = table.column(place)
                none = column.null_count == len(column)  # doubles so far, and times now: no cast has the two
                table = table.set_column(place, field.name, pa.nulls(len(column), kind) if none else column.cast(kind))
        return table

    def _two_of_each(self, table: pa.Table, of_rows: Any) -> pa.Table:
        """Rows as two events each, before and behind the events of their time, with the orders of all."""
        events, rows = table.filter(pa.array(~of_rows)), table.filter(pa.array(of_rows))
        ranks, last = self._ranks(events)
        events = events.append_column(ROW, pa.nulls(events.num_rows, pa.int64()))
        rows = rows.append_column(ROW, pa.array(np.arange(rows.num_rows)))
        place = rows.column_names.index(self.input.type_column)
        kind = rows.column(place).type
        ends = pa.array([end_of(name) for name in rows.column(place).to_pylist()], pa.string()).cast(kind)
        orders = np.concatenate([ranks + 1, np.zeros(len(rows), np.int64), np.full(len(rows), last + 1)])
        both = [events, rows, rows.set_column(place, self.input.type_column, ends)]
        return pa.concat_tables(both, promote_options="default").append_column(ORDER, pa.array(orders.astype(np.int64)))

    def _ranks(self, events: pa.Table) -> tuple[Int64Array, int]:
        """The orders of events as numbers from 0 on, and how many there are."""
        if not events.num_rows:
            return np.empty(0, np.int64), 0
        _, orders = SortKey(self.input.clock.column, self.input.order_column).columns_of(events)
        known = np.unique(np.asarray(orders))
        return np.searchsorted(known, np.asarray(orders)).astype(np.int64), len(known)


def is_one_of(column: pa.Array, names: Collection[str]) -> pa.BooleanArray:
    """Which events have one of these types."""
    if pa.types.is_null(column.type):
        return pa.array(np.zeros(len(column), np.bool_))
    return pc.is_in(column, pa.array(sorted(names)).cast(_plain(column.type)))


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
