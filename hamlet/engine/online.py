"""The online engine: events in batches of any size, rows of each window once it has closed.

A time step stays open until a later time arrives, so events of one time may be split over pushes and any split gives
the same rows. Source: docs/numbers.md ("Time and order", "Windows").
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal, Unpack

import pyarrow as pa

from hamlet.engine import trace
from hamlet.engine.executor import END_OF_TIME, Executor, paths_taken
from hamlet.engine.feed import Feed, process
from hamlet.engine.layers.executor import any_executor_of
from hamlet.engine.live import Part, Replacement, compared, in_order
from hamlet.engine.live.waiting import Waiting
from hamlet.engine.options import Options, RunOptions, options_of
from hamlet.engine.stages import Stages
from hamlet.errors import HamletError, MemoryLimitError, UnsupportedError, option
from hamlet.input.columns import StringPool
from hamlet.input.stream_schema import check_zones
from hamlet.input.ticks import Lateness, time_in_ticks
from hamlet.language.schema import Schema
from hamlet.memory.budget import Budget
from hamlet.output.query_rows import QueryRows
from hamlet.planner.compile import may_add_times
from hamlet.planner.workload import Workload, workload_of
from hamlet.runtime.arrival_monitor import ArrivalMonitor
from hamlet.runtime.arrivals import Arrivals
from hamlet.runtime.expected import Expected
from hamlet.runtime.monitor import Row
from hamlet.runtime.options import takes
from hamlet.runtime.sizes import Limit, bytes_of, limit_of, size_text

Late = Literal["error", "drop"]


class EngineOptions(RunOptions, total=False):
    """The options of an `Engine`, by name."""

    trace: bool


class Engine(ArrivalMonitor[Options]):
    """Counts the trends of a stream as it arrives.

    Parameters
    ----------
    workload : Workload
    lateness : int, float, str or datetime.timedelta
        How far behind the largest time seen an event may be: a number of ticks of the time column, or a duration such
        as ``'5 s'``.
    late : {'error', 'drop'}
        What becomes of events later than that: an error that takes nothing of the push, or a count in `stats`.
    gather : bool, optional
        Whether events that are pushed one by one, or a few at a time, may wait for each other: a push of one event then
        takes some microseconds in place of some eighty. They wait only where no window and no session can end by them,
        so rows come when they would, and `save` and `stats` process what waits. It holds for dicts in order, and not
        under `max_memory`. By default they do not wait where arithmetic in a condition might pass 64 bits, since that
        is an error of the push that brings them; True lets them wait then, too, False never.
    **options
        Those of `hamlet.run`: sharing, benefit, numbers, count_type, threads, time_column, type_column, order_column,
        time_unit, timezone, null_keys, max_memory; and ``trace``, whether records of bursts are kept for `trace`.

    Examples
    --------
    >>> engine = Engine(Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s"))
    >>> engine.push([{"time": 1, "type": "A"}, {"time": 2, "type": "B"}, {"time": 3, "type": "B"}])
    []
    >>> engine.advance(10)
    [{'query': 'q1', 'window_start': 0, 'window_end': 10, 'count': 3}]
    """

    _called = "engine"

    @takes(Options)
    def __init__(
        self,
        workload: Workload,
        *,
        lateness: Lateness = 0,
        late: Late = "error",
        gather: bool | None = None,
        **options: Unpack[EngineOptions],
    ) -> None:
        super().__init__()
        self.options = self._asked = chosen = options_of(options, ("lateness", "late", "gather"))
        given = workload_of(workload)
        self.given = self._base = given  # the workload now, and the one that this engine itself runs
        self.workload = given.without_null_keys() if chosen.null_keys == "drop" else given
        self._own = Part(self, set(given.names))
        self._others: list[Part] = []  # engines of queries that came later
        self._replaced = False
        self._gather = gather
        self._strings = StringPool()
        self._executor: Executor | None = None
        self._budget = Budget(bytes_of(chosen.max_memory))
        self._receive(self._arrivals_by(chosen, lateness, late))
        self._feed: Feed | None = None  # of a stream that is complete and in order
        self._settled = False  # whether types are known for good though names may be missing
        self._expected = Expected(self.workload.input_types)

    def _arrivals_by(self, options: Options, lateness: Lateness, late: str) -> Arrivals:
        counted, durations = self._budget.limit is not None, self._base.durations
        return Arrivals(options, options.columns_of(self._base), lateness, late, counted=counted, durations=durations)

    def _receive(self, arrivals: Arrivals) -> None:
        super()._receive(arrivals)
        self._waiting = Waiting(self.workload, self.options.time_column, self.options.type_column)

    # ------------------------------------------------------------------------------------------ the public face

    def replace(self, workload: Workload) -> Replacement:
        """Go on with another workload.

        Queries of the same name and text keep their open windows. New ones, and those with another text, begin with the
        first window that starts after the largest time seen. Dropped ones end: their open windows give no rows. Of a
        query whose windows have closed by now the rows have been given.

        Parameters
        ----------
        workload : Workload
            All queries from now on.

        Returns
        -------
        Replacement
            What was kept, added and dropped.

        Raises
        ------
        HamletError
            The engine is closed, cannot go on after an error, or is fed through `feed`.

        Examples
        --------
        >>> engine = Engine(Workload.parse("a: RETURN COUNT(*) PATTERN A WITHIN 10 s"))
        >>> engine.push([{"time": 1, "type": "A"}])
        []
        >>> more = "a: RETURN COUNT(*) PATTERN A WITHIN 10 s; b: RETURN COUNT(*) PATTERN A+ WITHIN 10 s"
        >>> engine.replace(Workload.parse(more)).added
        ('b',)
        >>> engine.push([{"time": time, "type": "A"} for time in (2, 11, 12)])
        [{'query': 'a', 'window_start': 0, 'window_end': 10, 'count': 2}]
        >>> [(row["query"], row["count"]) for row in engine.close()]
        [('a', 2), ('b', 3)]
        """
        return self._do(partial(self._replace, workload_of(workload)))

    def _saved(self) -> bytes:
        if self._replaced:
            parts = (self._own, *self._others)
            from hamlet.engine import checkpointing  # needed for saves only

            saves = [(part, part.engine._base, part.engine._saved_alone()) for part in parts]
            return checkpointing.write_parts(self.given, saves)
        return self._saved_alone()

    def _saved_alone(self) -> bytes:
        """The engine, without those of queries that came later."""
        self._flush()
        options = asdict(self.options) | self._buffer.options
        fed = None if self._feed is None else self._feed.held
        place = self._buffer.place()
        from hamlet.engine import checkpointing  # needed for saved states only

        promise, expected = self._arrivals.promise, self._expected.described()
        state = checkpointing.EngineState(options, place, promise, fed, self._schema, self._strings.texts, expected)
        return checkpointing.write(self._base, state, self._executor)

    @classmethod
    def restore(
        cls,
        workload: Workload,
        data: bytes | bytearray | memoryview,
        *,
        saved_with: Workload | None = None,
        max_memory: Limit = ...,
    ) -> Engine:
        """An engine that goes on where another one was saved, with the options of that one.

        Parameters
        ----------
        workload : Workload
            That of the saved engine; comments and layout may differ.
        data : bytes-like
            From `save`. Nothing in it is ever run.
        saved_with : Workload, optional
            The workload of the saved engine, where `workload` is another one that it goes on with (`replace`).
        max_memory : int, str or None, optional
            The limit from now on, None for none; by default the one of the saved engine.

        Raises
        ------
        RestoreError
            The bytes are damaged, of another workload, or of another version.
        MemoryLimitError
            The states need more than the option `max_memory`.

        Examples
        --------
        >>> workload = Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s")
        >>> engine = Engine(workload)
        >>> engine.push([{"time": 1, "type": "A"}, {"time": 2, "type": "B"}])
        []
        >>> Engine.restore(workload, engine.save()).close()
        [{'query': 'q1', 'window_start': 0, 'window_end': 10, 'count': 1}]
        """
        if saved_with is not None:
            engine = cls.restore(saved_with, data, max_memory=max_memory)
            engine.replace(workload)
            return engine
        from hamlet.checkpoint.frame import blamed
        from hamlet.engine import checkpointing

        saved = checkpointing.Saved(workload, data)
        if saved.parts is not None:
            return cls._restored(workload, saved.unpacked(), max_memory)
        state, limit = saved.state, limit_of(max_memory)
        with blamed():
            engine = cls(workload, **{**state.options, **limit})
            engine._strings = StringPool(state.strings)
            if state.schema is not None:
                engine._compile(state.schema)
                engine._buffer.load(state.place, state.schema.clock)
            else:
                engine._buffer.load(state.place, None)
            saved.load(engine._executor)
            engine._arrivals.promise = state.promise
            engine._expected.load(*state.expected)
            engine._waiting.see(None)  # its events are not known
            if engine._executor is not None and state.fed is not None:
                engine._feed = Feed(engine._executor, state.fed)
        return engine

    @classmethod
    def _restored(cls, workload: Workload, parts: Sequence[Any], max_memory: Limit) -> Engine:
        """An engine whose workload had been replaced."""
        engine, *others = [cls.restore(each.workload, each.data, max_memory=max_memory) for each in parts]
        engine.given, engine._replaced = workload, True
        engine._own.names = parts[0].names
        engine._others = [Part(other, each.names, each.after) for other, each in zip(others, parts[1:], strict=True)]
        return engine

    def trace(self) -> pa.Table:
        """Take the records of bursts since the last call (`hamlet.engine.trace`); none without the option ``trace``."""
        with self._lock:
            self._flush()
            return self._executor.trace() if self._executor is not None else trace.SCHEMA.empty_table()

    @property
    def stats(self) -> dict[str, Any]:
        """Counters of the run so far; ``operators`` and ``features`` say what computed it since the engine was made."""
        with self._lock:
            self._flush()
            found: dict[str, Any] = {"late_events": self._buffer.late_events}
            if self._executor is None:
                return found
            return found | self._executor.stats | paths_taken(self._executor.executors)

    @property
    def executor(self) -> Executor:
        """What runs the workload, once the columns are known."""
        assert self._executor is not None, "no event has come, and `open` was not called"
        return self._executor

    @property
    def stages(self) -> Stages:
        """Where the time of the run went so far."""
        return self._executor.stages if self._executor is not None else Stages()

    # ------------------------------------------------------------------------------------------ rows as columns

    def push_batches(self, events: Any) -> list[QueryRows]:
        """Push events; the rows that are ready are given as `QueryRows`, a piece per query."""
        self._refuse_replaced()
        with self._lock:
            self._waiting.stop()
            self._take(events)
            self._waiting.see(events)
            return self.drain()

    def advance_batches(self, time: Any) -> list[QueryRows]:
        """Promise that no earlier event follows; the rows that are ready are given as `QueryRows`."""
        self._refuse_replaced()
        with self._lock:
            self._go_on(time)
            return self.drain()

    def close_batches(self) -> list[QueryRows]:
        """End the stream; the rows that are left are given as `QueryRows`."""
        self._refuse_replaced()
        with self._lock:
            self._finish()
            self._closed = True
            return self.drain()

    def open(self, schema: Schema) -> None:
        """Compile for a schema that is known before the first event (files, tables).

        Raises
        ------
        WorkloadError
            Names and types that do not fit the columns.
        """
        self._settled = True
        self._settle(replace(self.options, time_column=schema.clock.column))
        self._compile(schema.in_zone(self.options.timezone))

    def drain(self) -> list[QueryRows]:
        """The rows of windows that have closed and were not given yet; queries without any are left out."""
        if self._executor is None:
            return []
        with self._working():
            return self._executor.drain()

    def without_rows(self) -> list[QueryRows]:
        """Every query, without rows."""
        return self._executor.without_rows() if self._executor is not None else []

    @property
    def pane(self) -> int:
        """Ticks between times at which windows may open or close; 1 before the engine knows its columns."""
        return 1 if self._executor is None else self._executor.pane

    def feed(self, batch: pa.RecordBatch, *, wait: bool = False) -> list[QueryRows]:
        """Take the next batch of a stream that is complete and in (time, order) order: nothing is checked again.

        With `wait`, rows of closed windows may wait for a later call, so that many are delivered at once; then
        `close_batches` gives the last of them, and `save` must not come between.
        """
        if self._feed is None:
            self._feed = Feed(self.executor)
        with self._working():
            return self._feed.take(batch, wait=wait)

    # ------------------------------------------------------------------------------------------ the protocol

    @property
    def _text(self) -> Workload:
        return self.given

    def _push(self, events: Any) -> list[Row]:
        if self._replaced:
            return self._everywhere(
                lambda engine, given: engine._take(given), events if hasattr(events, "__len__") else list(events)
            )
        if self._waiting.take(events):
            if not self._waiting.due:
                return []
            self._flush()
            return self._dicts()
        self._waiting.stop()
        self._take(events)
        self._waiting.see(events)
        if (self._waiting.unnoticed if self._gather is None else self._gather) and self._budget.limit is None:
            self._waiting.begin(events, self._executor, self._schema, self._buffer.seen, self._buffer.watermark)
        return self._dicts()

    def _advance(self, time: Any) -> list[Row]:
        return self._everywhere(lambda engine, given: engine._go_on(given), time)

    def _end(self) -> list[Row]:
        return self._everywhere(lambda engine, _: engine._finish(), None)

    def _held(self) -> tuple[int, int]:
        if self._replaced:
            parts = [engine._held_alone() for engine in self._engines]
            return sum(rows for rows, _ in parts), sum(size for _, size in parts)
        return self._held_alone()

    def _held_alone(self) -> tuple[int, int]:
        """What is kept, without engines of queries that came later."""
        self._flush()
        rows, size = self._buffer.held()
        if self._executor is None:
            return rows, size
        kept, other = self._executor.kept()
        return rows + kept, size + other + self._budget.held

    @property
    def warnings(self) -> list[str]:
        """What was probably not meant, a sentence each: types and columns that never came, kinds that are compared."""
        with self._lock:
            self._flush()
            if not self._buffer.events:
                return []
            said, known = self._expected.warnings(), self._schema
            if known is not None:
                missing = [name for name in self.workload.attributes if known.columns.get(name) is None]
                said += [f"no event has a value of {name}" for name in missing] + self.workload.unlike(known)
            return said

    @property
    def _engines(self) -> list[Engine]:
        """Itself, and the engines of queries that came later."""
        return [self, *(part.engine for part in self._others)]

    # ------------------------------------------------------------------------------------------ inside

    def _replace(self, new: Workload) -> Replacement:
        """Change the workload, for `replace`."""
        if self._feed is not None:
            raise HamletError("an engine that is fed by whole batches runs its workload to the end")
        self._flush()
        done = compared(self.given, new, self._buffer.seen)
        self.given = new
        for part in (self._own, *self._others):
            part.names.intersection_update(done.kept)
        if done.added:
            options: Any = {**asdict(self.options), **self._buffer.options}
            fresh = Engine(new.select(done.added), **options)
            if self._buffer.watermark is not None:
                fresh._buffer.promise(self._buffer.watermark)
            self._others.append(Part(fresh, set(done.added), done.after))
        self._others = [part for part in self._others if part.names]
        self._replaced = True
        return done

    def _everywhere(self, act: Callable[[Engine, Any], None], given: Any) -> list[Row]:
        """Have all engines do something; the rows of all, in the order of the workload."""
        act(self, given)
        if not self._replaced:
            return self._dicts()
        rows = self._given_by(self._own)
        for part in self._others:
            with self._working():  # this engine has taken the events, and cannot give them back
                act(part.engine, given)
                rows += self._given_by(part)
        limit = self._budget.limit
        if limit is not None and (size := self._held()[1]) > limit:  # each of them alone is within it
            with self._working():
                raise MemoryLimitError(
                    f"the run stops, since it needs more memory than its limit, {size_text(limit)}; its queries and "
                    f"those that were replaced take {size_text(size)}\n"
                    f"hint: run fewer queries, or raise the limit ({option('max_memory')})"
                )
        return in_order(rows, self.given.names)

    @staticmethod
    def _given_by(part: Part) -> list[dict[str, Any]]:
        """The rows of a part that are the workload's."""
        engine, after = part.engine, part.after
        rows = [row for row in engine._dicts() if row["query"] in part.names]
        if after is None:
            return rows
        clock = engine.clock
        edges = [(row, row["window_start"]) for row in rows]
        return [row for row, start in edges if start is None or time_in_ticks(start, clock) > after]

    def _flush(self) -> None:
        """Process the events of small pushes that wait."""
        events = self._waiting.taken()
        if events and self._failed is None:
            with self._working():
                self._take(events)

    def _refuse_replaced(self) -> None:
        if self._replaced:
            raise UnsupportedError("after `replace` rows are given as dicts: call push, advance and close")

    def _take(self, events: Any) -> None:
        """Take a batch and process what is due."""
        self._refuse_closed()
        if self._waiting.events:
            self._flush()
        batch = self._arrived(events)
        if batch is None:
            return
        if batch.schema is not self._schema:
            if self._schema is None:
                self.workload.refuse_misspelled(batch.schema, self._types(batch.parts))
            self._compile(batch.schema)
        with self._working():
            self._hold(batch)
            self._release()

    def _go_on(self, time: Any) -> None:
        """Process what is due once no event before `time` will come."""
        self._refuse_closed()
        self._flush()
        self._waiting.stop()
        if self._goes_on(time):
            with self._working():
                self._release()

    def _finish(self) -> None:
        """Process what is held."""
        self._refuse_closed()
        self._flush()
        with self._working():
            self._buffer.promise(END_OF_TIME)
            if self._feed is None:
                self._release()
            else:
                self._feed.finish(END_OF_TIME)

    def _compile(self, schema: Schema) -> None:
        self.workload.check(schema)
        check_zones(schema)
        executor = self._executor_for(schema)
        if self._executor is not None:
            executor.adopt(self._executor)
        elif self.options.numbers != "exact" and (executor.exact or self._may_add_times(schema)):
            # and so it stays, whatever the types turn out to be
            self.options = replace(self.options, numbers="exact")
            executor = self._executor_for(schema)
        self._executor = executor
        self._schema = schema

    def _may_add_times(self, schema: Schema) -> bool:
        return any(may_add_times(query, schema, self._settled) for query in self.workload.analysis.queries)

    def _executor_for(self, schema: Schema) -> Executor:
        settled = schema.closed or self._settled
        found: Executor = any_executor_of(
            self.workload, schema, self._strings, self.options, self._budget, settled=settled
        )
        return found

    def _release(self) -> None:
        """Process the held events whose time step is over and close what ends by then."""
        watermark = self._buffer.watermark
        if watermark is None or self._executor is None:
            return
        self._process(self._buffer.release(watermark), watermark)

    def _process(self, batches: Sequence[pa.RecordBatch], watermark: int) -> None:
        """Process events in order, whole time steps, and close what ends by then."""
        if self._budget.limit is not None:
            self.executor.held_back = self._buffer.nbytes
        process(self.executor, batches, watermark)

    def _dicts(self) -> list[dict[str, Any]]:
        """Take out the rows that are ready, as dicts."""
        if self._executor is None:
            return []
        with self._working():
            return self._executor.drain_dicts()
