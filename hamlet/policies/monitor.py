"""The online face: events in batches of any size, rows as soon as their time-point is decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Unpack

import pyarrow as pa

from hamlet.errors import HamletError
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import Lateness
from hamlet.language.schema import END_OF_TIME, Clock, Schema
from hamlet.output.columnar import dicts_of
from hamlet.policies.analysis.bare_bounds import notes_of_bounds
from hamlet.policies.analysis.policy import Policy
from hamlet.policies.changes.arriving import Arriving
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.logs.tables import Tables
from hamlet.policies.options import MonitorOptions, OnlineOptions
from hamlet.policies.runner import PolicyRunner
from hamlet.policies.running import policies_of
from hamlet.policies.syntax.formula import per_second_of
from hamlet.policies.verdicts.automata import VerdictRunner
from hamlet.runtime.arrival_monitor import ArrivalMonitor
from hamlet.runtime.arrivals import Arrivals
from hamlet.runtime.expected import Expected, in_no_relation
from hamlet.runtime.monitor import BatchMonitor, Row
from hamlet.runtime.options import made_of, takes
from hamlet.runtime.sizes import Limit, limit_of

Rows = tuple[int, pa.RecordBatch]  # the place of a policy, and rows of it


class Monitor(ArrivalMonitor[OnlineOptions], BatchMonitor[Rows]):
    """Evaluates policies over a stream as it arrives.

    A time-point of the stream's time stays open until a later time arrives, so events of one time may be split over
    pushes, and any split gives the same rows. Where each event is a time-point, and no column orders events of one
    time, it counts at once.

    Parameters
    ----------
    policy : Policy, or several
    negate, time_points, verdicts, mode, open_end, max_memory, time_column, type_column, order_column, time_unit
        As of `run`.
    lateness : int, float, str or datetime.timedelta
        How far behind the largest time seen an event may be: a number of ticks of the time column, or a duration such
        as ``'5 s'``.
    late : {'error', 'drop'}
        What becomes of events later than that: an error that takes nothing of the push, or a count in `stats`.

    Examples
    --------
    >>> policy = Policy.parse("ALWAYS FORALL u. p(u) IMPLIES EVENTUALLY[0,5] q(u)", signature="p(u: int) q(u: int)")
    >>> monitor = Monitor(policy)
    >>> monitor.push([{"time": 1, "type": "p", "u": 7}])
    []
    >>> monitor.advance(7)
    [{'policy': 'policy1', 'time': 1, 'time_point': 0, 'u': 7}]
    """

    @takes(OnlineOptions)
    def __init__(self, policy: Policy | Iterable[Policy], **options: Unpack[MonitorOptions]) -> None:
        super().__init__()
        self.options = self._asked = chosen = made_of(OnlineOptions, options)
        self.policies = policies_of(policy)
        self._runner = self._made(self.clock)
        self._receive(self._arrivals_by(chosen, chosen.lateness, chosen.late))
        self._arriving: Arriving | None = None
        self._expected = Expected(each.name for each in self.policies[0].signature)
        self._columns: pa.Schema | None = None  # of the batches
        self._tables: Tables | None = None
        self._counts = {"events": 0, "matched_events": 0, "null_events": 0}

    def _arrivals_by(self, chosen: OnlineOptions, lateness: Lateness, late: str) -> Arrivals:
        wanted = self._runner.predicates
        signature = self.policies[0].signature
        names = [
            name
            for each in signature
            if (each.name, each.arity) in wanted
            for name in each.attributes
            if name is not None
        ]
        self._key = SortKey(chosen.time_column, chosen.order_column)
        columns = self._columns_read = tuple(dict.fromkeys([*self._key.names, chosen.type_column, *names]))
        counted = chosen.max_memory is not None
        return Arrivals(chosen, columns, lateness, late, counted=counted, wide_integers=True)

    def _made(self, clock: Clock) -> PolicyRunner | VerdictRunner:
        kind = clock.shown_type
        chosen = self.options
        common: dict[str, Any] = {
            "negate": chosen.negate,
            "open_end": chosen.open_end,
            "max_memory": chosen.max_memory,
        }
        if chosen.automaton is not None:
            return VerdictRunner(self.policies, chosen.automaton, kind, per_second_of(clock), **common)
        return PolicyRunner(self.policies, kind, per_second_of(clock), **common)

    # ------------------------------------------------------------------------------------------ the protocol

    @property
    def _text(self) -> list[Policy]:
        return self.policies

    def _push(self, events: Any) -> list[Row]:
        rows = self._pushed_rows(events)
        return self._dicts(self._pushed(events)) if rows is None else rows

    def _pushed_rows(self, events: Any) -> list[Row] | None:
        """The rows of a push of few plain events; None, and nothing taken, where they are taken as columns."""
        schema, runner = self._schema, self._runner
        if schema is None or not isinstance(runner, PolicyRunner) or not runner.evaluation.goes_by_changes:
            return None
        arriving = self._arriving
        if arriving is None or not self._buffer.is_empty:
            arriving = self._arriving_from(runner, schema)
            if arriving is None:
                return None
        types = arriving.take(events, schema)
        if types is None:
            return None
        with self._working():
            if self._expected.missing:
                self._expected.see(types)
            watermark = self._buffer.watermark
            assert watermark is not None
            whole = self.options.time_points == "step"
            times, tuples, count = arriving.release(watermark if whole else watermark + 1, whole, runner.points)
            self._counts["events"] += count
            self._counts["matched_events"] += sum(map(len, tuples.values()))
            rows = runner.feed_rows(times, tuples, watermark, arriving.nbytes, schema.clock.present)
            if runner.evaluation.has_idle_values:
                self._as_columns()  # events that wait have codes
                runner.evaluation.forget_values()
            return rows

    def _arriving_from(self, runner: PolicyRunner, schema: Schema) -> Arriving | None:
        """What holds few events, with what is held as columns; None where it cannot have that."""
        if self._key.order is not None:
            return None
        arriving = self._arriving
        if arriving is None:
            options = self.options
            arriving = self._arriving = Arriving(
                self.policies[0].signature,
                runner.predicates,
                self._columns_read,
                options.time_column,
                options.type_column,
                self._buffer,
                runner.evaluation.pool,
            )
        held = self._buffer.place().held
        if held is not None:
            if not arriving.adopt(held, schema):
                return None
            self._buffer.release(END_OF_TIME)
        return arriving

    def _as_columns(self) -> None:
        """Hold as columns what is held as rows."""
        if self._arriving:
            assert self._schema is not None
            self._arrivals.hold(self._arriving.give_back(), self._schema)

    def _pushed(self, events: Any) -> list[Rows]:
        self._as_columns()
        batch = self._arrived(events)
        if batch is None:
            return []
        if batch.schema is not self._schema:
            self._adopt(batch.schema, batch.parts[0].schema)
        with self._working():
            self._hold(batch)
            return self._released()

    def _advanced(self, time: Any) -> list[Rows]:
        if not self._goes_on(time):
            return []
        with self._working():
            self._as_columns()
            return self._released()

    def _ended(self) -> list[Rows]:
        with self._working():
            self._as_columns()
            self._buffer.promise(END_OF_TIME)
            rows = self._processed(self._buffer.release(END_OF_TIME), None)
            return [*rows, *self._runner.close()]

    def _held(self) -> tuple[int, int]:
        rows, size = self._buffer.held()
        if self._arriving:
            rows, size = rows + len(self._arriving), size + self._arriving.nbytes
        return rows + self._runner.kept_rows, size + self._runner.nbytes

    @property
    def warnings(self) -> list[str]:
        """What was probably not meant, a sentence each: predicates that never came, events that lack values."""
        with self._lock:
            come = self._buffer.events or self._counts["events"] or self._runner.points
            if not come:
                return []
            time_type = None if self._schema is None else self._schema.clock.type
            lacking = in_no_relation(self._counts["null_events"])
            return [*notes_of_bounds(self.policies, time_type), *self._expected.warnings(), *lacking]

    def _saved(self) -> bytes:
        from hamlet.policies import saving

        self._as_columns()
        return saving.write(self)

    @property
    def stats(self) -> dict[str, Any]:
        """Counters of the run so far."""
        with self._lock:
            return self._counted()

    def _counted(self) -> dict[str, Any]:
        counts = {name: count for name, count in self._counts.items() if count or name == "events"}
        return {
            "late_events": self._buffer.late_events,
            "time_points": self._runner.points,
            "kept_bytes": self._runner.nbytes,
            **counts,
        }

    def push_points(self, chunks: Sequence[LogChunk], bound: int, beside: int = 0) -> list[Rows]:
        """Take time-points that are complete and in order, of a log; none before `bound` will come.

        A monitor takes events or time-points of logs, not both. `beside` are bytes of time-points that are held back,
        which count against the limit, too.
        """
        return self._do(partial(self._pushed_points, chunks, bound, beside))

    def _pushed_points(self, chunks: Sequence[LogChunk], bound: int, beside: int) -> list[Rows]:
        if self._schema is not None:
            raise HamletError("the monitor has taken events, and cannot take the time-points of a log")
        with self._working():
            self._counts["events"] += sum(len(points) for chunk in chunks for points, _ in chunk.relations.values())
            if self._expected.missing:
                wanted = self._runner.predicates  # whether others have come, a log is not read for
                self._expected.see(
                    each.name for each in self.policies[0].signature if (each.name, each.arity) not in wanted
                )
                for chunk in chunks:
                    self._expected.see(name for (name, _), (points, _) in chunk.relations.items() if len(points))
            self._buffer.promise(bound)
            return list(self._runner.feed(chunks, bound, beside))

    # ------------------------------------------------------------------------------------------ inside

    def _adopt(self, schema: Schema, columns: pa.Schema) -> None:
        """Go on with columns that are known, or known better."""
        tables = Tables(
            self.policies[0].signature,
            self._runner.predicates,
            columns,
            SortKey(self.options.time_column, self.options.order_column, "the events"),
            self.options.type_column,
            self.options.time_points,
            open_columns=not schema.closed,
        )
        if self._schema is None and schema.clock != self.clock:
            self._runner, self._arriving = self._made(schema.clock), None
        self._schema, self._columns, self._tables = schema, columns.remove_metadata(), tables

    def _released(self) -> list[Rows]:
        """The rows of held events whose time-point is over."""
        watermark = self._buffer.watermark
        if watermark is None:
            return []
        # Without an order column, events of this time that are still to come are time-points behind those here.
        whole = self.options.time_points == "step" or self._key.order is not None
        return self._processed(self._buffer.release(watermark if whole else watermark + 1), watermark)

    def _processed(self, batches: Sequence[pa.RecordBatch], bound: int | None) -> list[Rows]:
        chunks: list[LogChunk] = []
        if batches:
            tables = self._tables
            assert tables is not None, "events have come, so their columns are known"
            chunks = list(tables.chunks(batches))
            self._counts["events"] += tables.events
            self._counts["matched_events"] += tables.matched
            self._counts["null_events"] += tables.nulls
            tables.events = tables.matched = tables.nulls = 0
        return list(self._runner.feed(chunks, bound, self._buffer.nbytes))

    def _dicts(self, parts: Iterable[Rows]) -> list[Row]:
        unit = self.clock.unit
        by_policy: list[list[dict[str, Any]]] = [[] for _ in self.policies]
        for place, rows in parts:
            by_policy[place] += dicts_of(rows, unit, policy=self.policies[place].name)
        return [row for rows in by_policy for row in rows]

    # ------------------------------------------------------------------------------------------ saving

    @classmethod
    def restore(
        cls, policy: Policy | Iterable[Policy], data: bytes | bytearray | memoryview, *, max_memory: Limit = ...
    ) -> Monitor:
        """A monitor that goes on where another one was saved, with the options of that one.

        Parameters
        ----------
        policy : Policy, or several
            Those of the saved monitor; comments and layout may differ.
        data : bytes-like
            From `save`. Nothing in it is ever run.
        max_memory : int, str or None, optional
            The limit from now on, None for none; by default the one of the saved monitor.

        Raises
        ------
        RestoreError
            The bytes are damaged, of other policies, or of another version.
        """
        from hamlet.policies import saving

        return saving.read(cls, policies_of(policy), data, limit_of(max_memory))
