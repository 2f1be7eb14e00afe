"""Runs the units of a workload over one stream, with the interface of `hamlet.engine.executor.Executor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hamlet.engine import trace
from hamlet.engine.executor import BEGINNING_OF_TIME, END_OF_TIME, Executor, executor_of
from hamlet.engine.feed import process
from hamlet.engine.layers.rows import row_table
from hamlet.engine.layers.unit_run import UnitRun, is_one_of
from hamlet.engine.options import Options
from hamlet.engine.stages import Stages
from hamlet.errors import DataError
from hamlet.input.columns import StringPool
from hamlet.language.schema import Schema
from hamlet.memory.budget import Budget
from hamlet.output.query_rows import QueryRows, ResultColumn, dicts_of
from hamlet.planner.compiled import CompiledWorkload
from hamlet.planner.layers import Unit, units_of
from hamlet.planner.workload import Workload
from hamlet.runtime.sizes import bytes_of


class LayeredExecutor:
    """All units of a workload over one stream; the face of `hamlet.engine.executor.Executor`.

    Parameters
    ----------
    workload : Workload
        With queries that ask about the rows of others.
    schema : Schema
        Of the input.
    strings : StringPool
        Of the first unit; the others have their own.
    options : Options
    budget : Budget or None
    settled : bool
        As of `executor_of`.
    wide : sequence of frozenset of str
        By unit, columns of rows that are known to be DOUBLE.
    """

    def __init__(
        self,
        workload: Workload,
        schema: Schema,
        strings: StringPool,
        options: Options,
        budget: Budget | None = None,
        *,
        settled: bool = True,
        wide: Sequence[frozenset[str]] = (),
    ) -> None:
        self.layered = workload
        self.schema = schema
        self.events = 0
        self.distinct = False
        self.budget = Budget(bytes_of(options.max_memory)) if budget is None else budget
        self._options = options
        self._stages = Stages()
        self._names = workload.names
        self._ready: dict[int, QueryRows] = {}  # rows that nobody has drained, by the place of their query
        self._held_back = 0
        self.units: list[UnitRun] = []
        for number, unit in enumerate(units_of(workload.analysis)):
            sources = {name: self._columns_of(name) for name in unit.reads}
            run = UnitRun(
                unit, workload, schema, sources, options, self.budget, StringPool() if unit.reads else strings,
                settled=settled, wide=wide[number] if wide else frozenset(),
            )  # fmt: skip
            run.lag = max((each.lag + each.delay for each in self.units if self._feeds(each, unit)), default=0)
            self.units.append(run)
        self.asked = {name for run in self.units for name in run.unit.reads}
        self._share()

    def _feeds(self, run: UnitRun, unit: Unit) -> bool:
        return any(self._names[place] in unit.reads for place in run.unit.places)

    def _columns_of(self, name: str) -> tuple[ResultColumn, ...]:
        """The result columns of a query of an earlier unit."""
        return next(each.columns for run in self.units for each in run.executor.without_rows() if each.name == name)

    def _share(self) -> None:
        for run in self.units:
            run.executor.stages = self._stages

    # ------------------------------------------------------------------------------------------ as an Executor

    @property
    def workload(self) -> CompiledWorkload:
        """The compiled workload of the unit that reads the input, whose schema is the input's."""
        return replace(self.units[0].executor.workload, schema=self.schema)

    @property
    def stages(self) -> Stages:
        """Where the time went."""
        return self._stages

    @stages.setter
    def stages(self, stages: Stages) -> None:
        self._stages = stages
        self._share()

    @property
    def held_back(self) -> int:
        """Bytes of events that wait for earlier ones, or for rows."""
        waiting: int = sum(each.nbytes for run in self.units for each in (*run.held, *run.rows))
        return self._held_back + waiting

    @held_back.setter
    def held_back(self, size: int) -> None:
        self._held_back = size
        self.units[0].executor.held_back = self.held_back

    def kept(self) -> tuple[int, int]:
        """As of an `Executor`; rows that wait for others too."""
        waiting = [each for run in self.units for each in (*run.held, *run.rows)]
        parts = [run.executor.kept() for run in self.units]
        rows = sum(each.num_rows for each in waiting) + sum(rows for rows, _ in parts)
        return rows, sum(each.nbytes for each in waiting) + sum(size for _, size in parts)

    @property
    def executors(self) -> list[Executor]:
        """Those of the units."""
        return [run.executor for run in self.units]

    @property
    def panes(self) -> list[int]:
        """For each class of the input's unit ticks between the times at which its windows may open or close."""
        panes: list[int] = self.units[0].executor.panes
        return panes

    @property
    def pane(self) -> int:
        """Ticks between times at which windows of the input's unit may open or close."""
        pane: int = self.units[0].executor.pane
        return pane

    @property
    def waiting(self) -> int:
        """Rows of closed windows that have not been drained."""
        return sum(map(len, self._ready.values())) + sum(run.executor.waiting for run in self.units)

    @property
    def exact(self) -> bool:
        """As of `Executor`, of any unit."""
        return any(run.executor.exact for run in self.units)

    @property
    def looks_back(self) -> bool:
        """Whether an event of the input, or a row, may cost all those before it."""
        return any(each.looks_back for each in self.executors)

    def next_edge(self, time: int) -> float:
        """As of an `Executor`, of any unit; each is behind the input by what it waits for."""
        return min(run.executor.next_edge(time - run.lag) + run.lag for run in self.units)

    def adopt(self, other: LayeredExecutor) -> None:
        """Go on where an executor of the same workload stopped that knew less of the attributes' types."""
        self.events, self._ready, self._held_back = other.events, other._ready, other._held_back
        for mine, theirs in zip(self.units, other.units, strict=True):
            if theirs.wide - mine.wide:
                mine._widen(set(theirs.wide))
            mine.executor.adopt(theirs.executor)
            mine.held, mine.rows = theirs.held, theirs.rows
        self.stages = other._stages

    def process(self, batch: pa.RecordBatch, until: int = BEGINNING_OF_TIME) -> None:
        """Take a batch of events in time order into every unit, as `Executor.process` does for one."""
        self.events += batch.num_rows
        self._refuse_types(batch)
        for run in self.units:
            if run.unit.reads:
                run.hold(batch)
            else:
                run.executor.distinct = self.distinct
                run.executor.process(batch, until)

    def _refuse_types(self, batch: pa.RecordBatch) -> None:
        column = batch.column(self.schema.type_column)
        found = is_one_of(column, self.asked)
        if pc.any(found).as_py():
            name = column.filter(found)[0].as_py()
            raise DataError(
                f"the input has events of type {name}, and so are the rows of the query {name}\n"
                "hint: give the query another name"
            )

    def advance(self, time: int) -> None:
        """Close all windows that end at or before `time` (ticks), and hand their rows on."""
        for run in self.units:
            until = time if time in (END_OF_TIME, BEGINNING_OF_TIME) else max(time - run.lag, BEGINNING_OF_TIME)
            if run.unit.reads:
                with self._stages.measured("layers"):
                    batches = run.ready(until)
                if batches:
                    process(run.executor, batches, until)
            run.executor.advance(until)
            self._hand_on(run)

    def _hand_on(self, run: UnitRun) -> None:
        """Keep the rows of a unit, and give them to those that read them."""
        names = [self._names[place] for place in run.unit.places]
        if not self.asked.intersection(names):
            return
        exact = self._options.numbers == "exact"
        for rows in run.executor.drain():
            self._keep(self._names.index(rows.name), rows)
            if rows.name in self.asked and len(rows):
                with self._stages.measured("layers"):
                    table = row_table(rows, self.schema.clock, exact=exact)
                    for other in self.units:
                        if rows.name in other.unit.reads:
                            other.give(rows.name, table)

    def replace(self, number: int, strings: StringPool, wide: frozenset[str]) -> UnitRun:
        """Begin a unit anew that knows strings, and columns of doubles; before any event."""
        run = self.units[number].anew(strings, wide)
        self.units[number] = run
        self._share()
        return run

    def _keep(self, place: int, rows: QueryRows) -> None:
        if place in self._ready:
            self._ready[place].extend(rows)
        else:
            self._ready[place] = QueryRows(rows.name, rows.columns, pieces=rows.pieces)

    def drain(self) -> list[QueryRows]:
        """Take out the rows of closed windows, queries in the order of the workload."""
        for run in self.units:
            for rows in run.executor.drain():
                self._keep(self._names.index(rows.name), rows)
        found, self._ready = self._ready, {}
        return [found[place] for place in sorted(found)]

    def drain_dicts(self) -> list[dict[str, Any]]:
        """Take out the rows of closed windows as dicts."""
        return list(chain.from_iterable(dicts_of(rows, self.schema.clock) for rows in self.drain()))

    def without_rows(self) -> list[QueryRows]:
        """Every query, without rows, in the workload's order."""
        found = {each.name: each for run in self.units for each in run.executor.without_rows()}
        return [found[name] for name in self._names]

    def trace(self) -> pa.Table:
        """Take the records of bursts since the last call."""
        return pa.concat_tables([trace.SCHEMA.empty_table(), *(run.executor.trace() for run in self.units)])

    @property
    def stats(self) -> dict[str, int]:
        """Counters of the run: of events, those of the input; the others of all units together."""
        found: dict[str, int] = {}
        for counters in (run.executor.stats for run in self.units):
            for name, count in counters.items():
                largest = name in ("largest_count_bits", "matched_events")
                found[name] = max(found.get(name, 0), count) if largest else found.get(name, 0) + count
        return found | {"events": self.events, "layers": len(self.layered.analysis.layers)}


AnyExecutor = Executor | LayeredExecutor


def any_executor_of(
    workload: Workload,
    schema: Schema,
    strings: StringPool,
    options: Options,
    budget: Budget | None = None,
    *,
    settled: bool = True,
) -> Any:
    """What runs a workload: in layers where queries ask about the rows of others."""
    make = LayeredExecutor if len(workload.analysis.layers) > 1 else executor_of
    return make(workload, schema, strings, options, budget, settled=settled)


__all__ = ["AnyExecutor", "LayeredExecutor", "UnitRun", "any_executor_of"]
