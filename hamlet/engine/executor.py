"""Runs a compiled workload over batches in time order, and gives the rows of closed windows.

The executor knows nothing of lateness or buffering (`hamlet.engine.online`), and nothing of files
(`hamlet.input.events`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import inf
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet import _core
from hamlet.engine import trace
from hamlet.engine.class_runner import ClassRunner, RunnerState
from hamlet.engine.closed_windows import Orders
from hamlet.engine.keys import created
from hamlet.engine.matching_runner import MatchingRunner
from hamlet.engine.memory_limit import Holding, exceeded, holding
from hamlet.engine.options import Options
from hamlet.engine.sharing import DYNAMIC, Sharing
from hamlet.engine.stages import Stages
from hamlet.engine.workers import Workers
from hamlet.errors import HamletError
from hamlet.input.columns import BatchColumns, StringPool
from hamlet.language.schema import Schema
from hamlet.memory.budget import Budget, BudgetExceeded
from hamlet.output.query_rows import QueryRows, dicts_of
from hamlet.output.rows import Closed, GroupRows, group_rows, piece_of, result_columns, selected
from hamlet.planner.classify import Signature
from hamlet.planner.compiled import CompiledClass, CompiledQuery, CompiledWorkload
from hamlet.planner.paths import EVERY, OPERATORS, Paths
from hamlet.planner.workload import Workload
from hamlet.runtime.garbage import resting
from hamlet.runtime.sizes import bytes_of

_UNLIMITED = contextlib.nullcontext()
BEGINNING_OF_TIME, END_OF_TIME = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Executor:
    """All classes of a workload over one stream.

    Parameters
    ----------
    workload : CompiledWorkload
    threads : int
        Kernels per class; the keys are spread over them.
    sharing : Sharing
        Who decides which queries share a burst.
    budget : Budget or None
        The memory of the run; executors that adopt one another share it.
    paths : Paths
        The operators and features that may be used.
    """

    def __init__(
        self,
        workload: CompiledWorkload,
        threads: int = 1,
        *,
        sharing: Sharing = DYNAMIC,
        budget: Budget | None = None,
        paths: Paths = EVERY,
    ) -> None:
        self.workload = workload
        self.events = 0
        self.stages = Stages()
        self.budget = Budget() if budget is None else budget
        self.distinct = False  # whether no two events that come are known to have one time
        self.held_back = 0  # bytes of events that the engine holds; counted in the budget
        schema = workload.schema
        self._workers = Workers(threads)
        self.paths = paths
        self._classes = [
            (MatchingRunner if each.matching else ClassRunner)(
                each, workload, self._workers, sharing, self.budget, paths
            )
            for each in workload.classes
        ]
        self._sharing = sharing
        self._trace: list[pa.RecordBatch] = []
        self._places = {
            query.analysed.index: (runner, place)
            for runner in self._classes
            for place, query in enumerate(runner.compiled.queries)
        }
        self._columns = {query.analysed.index: result_columns(query, schema) for query in workload.queries}

    def adopt(self, other: Executor) -> None:
        """Go on where an executor of the same workload stopped that knew less of the attributes' types."""
        other._workers.settle()
        self.events, self.held_back, self._trace = other.events, other.held_back, other._trace
        self.stages = other.stages
        with self._limited():
            for mine, theirs in zip(self._classes, other._classes, strict=True):
                mine.adopt(theirs)

    @property
    def exact(self) -> bool:
        """Whether counts and sums of integers are exact, be it for the sake of times (`compile_workload`)."""
        return any(tables.exact for runner in self._classes for tables in runner.tables)

    @property
    def looks_back(self) -> bool:
        """Whether an event may cost all events before it."""
        matching = (tables for each in self.workload.queries for tables in each.matching)
        return any(tables.looks_back for tables in matching)

    def saved(self) -> list[RunnerState]:
        """What is kept between batches, per class of the workload; all rows have been drained."""
        self._workers.settle()
        return [runner.saved() for runner in self._classes]

    def load(self, events: int, signatures: Sequence[Signature], states: Sequence[RunnerState]) -> None:
        """Go on where another executor of the same compiled workload stopped; this one is new.

        Parameters
        ----------
        events : int
            Events processed so far.
        signatures : sequence of Signature
            By number, of the other executor's classifier.
        states : sequence of RunnerState
            What `saved` gave.

        Raises
        ------
        ValueError
            The states cannot be of this workload. The executor must not be used.
        """
        self.events = events
        self.workload.classifier.load(signatures)
        with self._limited():
            for runner, state in zip(self._classes, states, strict=True):
                runner.load(state)

    def restrict(self, owns: Callable[[tuple[Any, ...]], bool]) -> None:
        """Form only partitions that `owns` accepts where events belong to several: others are another executor's."""
        for runner in self._classes:
            if runner.broadcast is not None:
                runner.broadcast.owns = owns

    def process(self, batch: pa.RecordBatch, until: int = BEGINNING_OF_TIME) -> None:
        """Take events in (time, order) order, not before any time given earlier, and none before `until` after them.

        Raises
        ------
        DataError
            INT arithmetic beyond 64 bits; the executor cannot go on after it. With threads, a later call may raise it.
        MemoryLimitError
            More memory is needed than the budget has; the executor cannot go on after it either.
        """
        self.events += batch.num_rows
        columns = BatchColumns(batch, self.workload.strings)
        try:
            with self.stages.measured("classify"):
                coded = self.workload.classifier.coded(columns, self.workload.schema.type_column)
                jobs = [runner.jobs(columns, coded, until, self.distinct) for runner in self._classes]
        except HamletError:
            self._workers.settle()  # an error of an event before goes first
            raise
        with self.stages.measured("kernel"):
            self._workers.settle()  # a batch is prepared while another one is processed, but no third one waits
            with self._limited():
                for each in jobs:
                    for number, job in enumerate(each):
                        self._workers.do(number, job)
        if self._sharing.trace:  # while the kernels' numbers of keys have their names
            with self.stages.measured("kernel"):
                self._workers.settle()
            with self.stages.measured("watch"):
                self._trace += [records for runner in self._classes for records in runner.trace()]

    def advance(self, time: int) -> None:
        """Close all windows that end at or before `time` (ticks)."""
        with self._limited(), self.stages.measured("kernel"):
            for runner in self._classes:
                for number, kernel in enumerate(runner.kernels):
                    self._workers.do(number, partial(runner.advance, kernel, time))
        for runner in self._classes:
            runner.forget()

    def _limited(self) -> contextlib.AbstractContextManager[None]:
        """Stop where the kernels, with all else, take more memory than the run may."""
        return _UNLIMITED if self.budget.limit is None else self._within(self.budget.limit)

    @contextlib.contextmanager
    def _within(self, limit: int) -> Iterator[None]:
        others = self._others()
        self.budget.other = sum(others.values())
        try:
            if self.budget.exceeded:
                raise BudgetExceeded
            yield
            self._workers.settle()
        except BudgetExceeded:
            found = self.holdings()
            rest = self.budget.held - sum(each.bytes for each in found)
            others["rows of closed windows and work areas"] = rest
            raise exceeded(limit, found, others) from None

    def holdings(self) -> list[Holding]:
        """What each query holds in the kernels now."""
        return [
            holding(query, parts, [runner.tables[part] for part in parts], runner.kernels, runner.index)
            for runner in self._classes
            for query, parts in _holders(runner.compiled)
        ]

    def _others(self) -> dict[str, int]:
        """Bytes of what the kernels know nothing of, by what it is (`hamlet.engine.memory_limit`)."""
        return {
            "events held back for earlier ones": self.held_back,
            "events that several groups get": sum(each.broadcast.nbytes for each in self._classes if each.broadcast),
            "values of group attributes": sum(each.index.nbytes for each in self._classes),
            "texts of conditions and distinct counts": self.workload.strings.nbytes,
        }

    def kept(self) -> tuple[int, int]:
        """Rows that are kept, one per group of a query with open windows; bytes beside those that the kernels count."""
        self._workers.settle()
        delivered = [each.broadcast.kept for each in self._classes if each.broadcast]
        rows = sum(table.num_rows for table in delivered if table is not None)
        others = sum(self._others().values()) - self.held_back
        return rows + sum(each.partitions for each in self.holdings()), others

    def trace(self) -> pa.Table:
        """Take the records of bursts since the last call."""
        batches, self._trace = self._trace, []
        return pa.Table.from_batches(batches, trace.SCHEMA)

    @property
    def executors(self) -> list[Executor]:
        """Itself, as the one executor of a workload without layers."""
        return [self]

    @property
    def pane(self) -> int:
        """Ticks between the times at which windows of the class with the longest panes may open or close."""
        return max((runner.pane for runner in self._classes), default=1)

    @property
    def panes(self) -> list[int]:
        """For each class ticks between the times at which its windows may open or close."""
        return [runner.pane for runner in self._classes] or [1]

    def next_edge(self, time: int) -> float:
        """The first time after `time` (ticks) that may close a window or end a session; infinity where none does.

        Events that are not processed yet and lie at or after `time` may begin sessions.
        """
        panes = [(time // runner.pane + 1) * runner.pane for runner in self._classes if runner.has_panes]
        sessions = [(runner.gap, runner) for runner in self._classes if runner.gap is not None]
        if sessions:
            self._workers.settle()
        ends = [min(time + gap + 1, *(each.due for each in runner.kernels)) for gap, runner in sessions]
        return min([*panes, *ends], default=inf)

    @property
    def waiting(self) -> int:
        """Rows of closed windows that have not been drained."""
        return sum(runner.closed.waiting for runner in self._classes)

    def drain(self) -> list[QueryRows]:
        """Rows of the windows closed since the last call: of each query that has any, in the workload's order."""
        with self.stages.measured("kernel"):
            self._workers.settle()
        with self.stages.measured("deliver"), resting():
            return [rows for _, rows in sorted(self._drained(), key=itemgetter(0))]

    def drain_dicts(self) -> list[dict[str, Any]]:
        """Take out the rows of windows closed since the last call, as dicts (`dicts_of`)."""
        self._workers.settle()
        for runner in self._classes:
            runner.closed.plan_dicts()  # also where no row waits, so that the first rows need not
        if not self.waiting:
            return []
        with self.stages.measured("deliver"):
            found = [each for runner in self._classes for each in runner.closed.listed()]
            found += [(index, dicts_of(rows, self.workload.schema.clock)) for index, rows in self._drained()]
            return list(chain.from_iterable(rows for _, rows in sorted(found, key=itemgetter(0))))

    def _drained(self) -> Iterator[tuple[int, QueryRows]]:
        """The rows that wait, query by query, each with its number."""
        for runner in self._classes:
            places = runner.closed.places()
            orders: Orders | None = {} if len(places) > 1 else None
            for place in places:
                index = runner.compiled.queries[place].analysed.index
                yield index, self.present(index, runner.closed.drain(place, orders))

    def without_rows(self) -> list[QueryRows]:
        """Every query, without rows, in the workload's order."""
        return [QueryRows(query.name, self._columns[query.analysed.index]) for query in self.workload.queries]

    def runner(self, number: int) -> ClassRunner:
        """What runs a class of the workload."""
        return self._classes[number]

    def drain_closed(self, index: int) -> list[Closed]:
        """The closed windows of one query before its values are read."""
        self._workers.settle()
        runner, place = self._places[index]
        return runner.closed.drain(place)

    def drain_groups(self, index: int) -> GroupRows:
        """Take out the closed windows of one query in Python values; partial where keys are spread over executors."""
        return self.group_rows(index, self.drain_closed(index))

    def group_rows(self, index: int, closed: Sequence[Closed]) -> GroupRows:
        """Closed windows of a query in Python values."""
        runner, place = self._places[index]
        return group_rows(runner.compiled.queries[place], closed)

    def selected(self, index: int, closed: Sequence[Closed]) -> list[Closed]:
        """Those of a query's closed windows that HAVING and TOP leave; their groups are whole."""
        runner, place = self._places[index]
        query, units = runner.compiled.queries[place], self.workload.schema.units
        kept = [selected(query, each, units) for each in closed]
        return [each for each in kept if len(each.windows)]

    def present(self, index: int, closed: Sequence[Closed]) -> QueryRows:
        """Closed windows of a query as result rows."""
        runner, place = self._places[index]
        query, columns, units = runner.compiled.queries[place], self._columns[index], self.workload.schema.units
        pieces = [piece_of(query, columns, each, units) for each in closed]
        return QueryRows(query.name, columns, pieces=pieces)

    @property
    def stats(self) -> dict[str, int]:
        """Counters of the run: events, matched events, groups, windows, largest count in bits, live states."""
        return stats_of([self])


def stats_of(executors: Sequence[Executor]) -> dict[str, int]:
    """Counters, as `Executor.stats`, of executors of one workload that each have had a part of the stream.

    A partition that several of them know counts once.
    """
    classes = list(zip(*(each._classes for each in executors), strict=True))
    counted = [kernel.counters for runners in classes for runner in runners for kernel in runner.kernels]
    return {
        "events": sum(each.events for each in executors),
        "matched_events": max((sum(runner.matched for runner in runners) for runners in classes), default=0),
        "partitions": sum(created([runner.index for runner in runners]) for runners in classes),
        **{
            name: (max if name == "largest_count_bits" else sum)(counters[name] for counters in counted)
            for name in (counted[0] if counted else ())
        },
    }


def paths_taken(executors: Sequence[Executor]) -> dict[str, dict[str, Any]]:
    """What each operator was given, and how often each feature was used, for `Engine.stats`.

    Events count once for each query, or group of queries side by side, that an operator runs; those of bursts too.
    """
    runners = [runner for each in executors for runner in each._classes]
    kernels = [kernel for runner in runners if not runner.compiled.matching for kernel in runner.kernels]
    matching = [runner for runner in runners if runner.compiled.matching]
    names = ("events", "bursts", "windows")
    done, used = [kernel.work for kernel in kernels], [kernel.reached for kernel in kernels]
    work = {
        operator: {name: sum(each[operator][i] for each in done) for i, name in enumerate(names)}
        for operator in OPERATORS
        if operator != "matching"
    }
    windows = sum(kernel.counters["windows"] for runner in matching for kernel in runner.kernels)
    work["matching"] = {"events": sum(runner.matched for runner in matching), "bursts": 0, "windows": windows}
    reached = {name: sum(each[name] for each in used) for name in _core.FEATURES}
    merged = sum(
        query.like is not None or query.merged is not None for each in executors[:1] for query in each.workload.queries
    )
    return {"operators": work, "features": reached | {"merged_queries": merged, "time_partitions": 0}}


def _holders(compiled: CompiledClass) -> Iterator[tuple[CompiledQuery, Sequence[int]]]:
    """The kernels' queries that hold sums: under the name of the first query that they are kept for."""
    for place, query in enumerate(compiled.queries):
        if query.like is None and query.merged is None:
            yield query, compiled.parts_of[place]
    for number, merged in enumerate(compiled.merged_queries, len(compiled.parts)):
        yield compiled.queries[merged.queries[0]], (number,)


def executor_of(
    workload: Workload,
    schema: Schema,
    strings: StringPool,
    options: Options,
    budget: Budget | None = None,
    *,
    settled: bool = True,
) -> Executor:
    """What runs a workload, checked against the schema, with these options.

    Attributes may still widen their types where they are not `settled`.
    """
    paths, schema = options.paths, schema.in_zone(options.timezone)
    exact, together = options.numbers == "exact", options.sharing != "never" and paths.uses("merged_queries")
    budget = Budget(bytes_of(options.max_memory)) if budget is None else budget
    with resting():
        compiled = workload.compiled(
            schema, strings, exact=exact, together=together, settled=settled, indexed=paths.uses("index")
        )
        return Executor(compiled, options.threads, sharing=options.decided_by, budget=budget, paths=paths)
