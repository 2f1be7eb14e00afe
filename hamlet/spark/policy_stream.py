"""A policy that goes on: slices of its valuations, each with a monitor of its own.

The joint data slicer says which slices an event matters to, and every slice hears of every time-point. What several
slices find is kept by the one that the valuation belongs to.
"""

from __future__ import annotations

from copy import copy
from dataclasses import asdict
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from hamlet.engine.options import Options
from hamlet.errors import UnsupportedError
from hamlet.input.columns import Int64Array
from hamlet.input.files_protocol import Reader
from hamlet.input.headers import names_at
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import ticks_of
from hamlet.output.time_text import time_text
from hamlet.parallel.routing.joint import JointSlicer
from hamlet.parallel.routing.rates import Rates, dimensions_of, kept_rates, rates_again, rates_of
from hamlet.policies import Monitor, Policy
from hamlet.policies.analysis.reach import reach_of
from hamlet.policies.analysis.rewriting import goal
from hamlet.policies.logs.tables import Tables
from hamlet.policies.options import OnlineOptions
from hamlet.policies.runner import PolicyRunner
from hamlet.policies.syntax.formula import Formula
from hamlet.runtime.intake import for_columns
from hamlet.runtime.options import takes
from hamlet.spark.continuous import Sink, TimedSink
from hamlet.spark.following import Reading, follow
from hamlet.spark.frames import Events
from hamlet.spark.options import PolicyStream, PolicyStreamOptions, job_of
from hamlet.spark.policies import FrameTasks
from hamlet.spark.policy_tasks import shipment_of
from hamlet.spark.sliced import TimedWork, joined, unjoined

_TYPES = {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_()}


@takes(PolicyStream, OnlineOptions, without=["run"])
def submit_stream(
    policy: Policy, source: str, output: str, checkpoint: str, **options: Unpack[PolicyStreamOptions]
) -> dict[str, Any]:
    """Monitor the files of a folder and those that are added to it, until the job is stopped.

    Parameters
    ----------
    policy : Policy
    source : str
        A folder of Parquet, CSV or JSON lines files; the first of them must be there, since it says of what type times
        are.
    output : str
        A directory; rows are written as ``policy=<name>/part-<micro-batch>-<slice>.<format>`` once they are decided.
    checkpoint : str
        Where the job keeps its place and the monitors of its slices; a job that was killed goes on from there.
    slices : int, optional
        Of the policy's valuations; by default the session's parallelism.
    statistics : Rates, optional
        Of the policy's predicates; heavy values get shares of their own. By default all predicates count alike.
    output_format : {'parquet', 'csv', 'json', 'monpoly'}
    input_format, delimiter, bad_rows, missing_columns, master, trigger, available_now, files_per_batch, verbose, conf,
    log_level
        As for `hamlet.spark.submit_stream`.
    **options
        Of `hamlet.policies.Monitor`.

    Returns
    -------
    dict
        ``batches``, ``events``, ``late_events`` and ``rows`` of this run, and ``notes``.

    Raises
    ------
    HamletError
        A user's mistake.
    JobError
        If Spark cannot go on.
    """
    chosen = job_of(PolicyStream, OnlineOptions, options)
    run = for_columns(chosen.run, names_at([source], chosen.input_format, chosen.form))
    runner = PolicyRunner([policy], pa.int64(), 1, negate=run.negate)  # what cannot be monitored costs no JVM
    _check(run)
    reading = Reading(SortKey(run.time_column, run.order_column), run.type_column, chosen.input_format, chosen.form)

    def columns(reader: Reader) -> pa.Schema:
        return _columns_of(policy, runner, run, reader)

    def plan(events: Events, slices: int) -> tuple[TimedWork, Sink]:
        work = policy_work(policy, events.schema, run, slices, chosen.statistics, adaptive=chosen.adaptive)
        name, form = policy.name, chosen.output_format
        return work, TimedSink(work, "policy", name, form, tuples=tuple(runner.tuples[0]))

    return follow(source, output, checkpoint, chosen, reading, columns, plan)


def _columns_of(policy: Policy, runner: PolicyRunner, options: OnlineOptions, reader: Reader) -> pa.Schema:
    """The columns that are read, with the types that they have in the first file or the signature."""
    key = SortKey(options.time_column, options.order_column, reader.name)
    wanted = runner.predicates
    tables = Tables(policy.signature, wanted, reader.schema, key, options.type_column, open_columns=True)
    said = {
        name: _TYPES[kind]
        for each in policy.signature
        if (each.name, each.arity) in wanted
        for name, kind in zip(each.attributes, each.types, strict=True)
        if name is not None
    }
    fields = [reader.schema.field(name) for name in dict.fromkeys([*key.names, options.type_column])]
    for name in tables.columns:
        kind = reader.schema.field(name).type if name in reader.schema.names else pa.null()
        wide = pa.types.is_decimal(kind) and said[name] == pa.int64()
        if name not in key.names:
            fields.append(pa.field(name, kind if wide else said[name]))
    return pa.schema([field.with_nullable(True).remove_metadata() for field in fields])


def _check(options: OnlineOptions) -> None:
    """Refuse what slices do not give."""
    if options.verdicts != "satisfied":
        raise UnsupportedError(
            "a continuous job writes what satisfies a policy\nhint: hamlet.policies.Monitor gives other verdicts"
        )


def policy_work(
    policy: Policy,
    events: pa.Schema,
    options: OnlineOptions,
    slices: int,
    statistics: Rates | None = None,
    *,
    adaptive: bool = False,
) -> PolicyWork:
    """A policy over events of these columns."""
    _check(options)
    formula = goal(policy.formula, options.negate)[0]
    if not dimensions_of(formula) or options.time_points == "event":
        slices = 1  # no variable to slice by; each event is a time-point, which every slice would need
    work = PolicyWork(policy, events, options, JointSlicer(formula, slices, statistics))
    if adaptive and slices > 1:
        work.keep_lately()
    return work


def policy_frame(
    policy: Policy, events: Events, options: OnlineOptions, slices: int | None, statistics: Rates | None
) -> tuple[PolicyWork, DataFrame]:
    """A policy over a streaming DataFrame, and the columns that it reads."""
    count = slices or events.frame.sparkSession.sparkContext.defaultParallelism
    work = policy_work(policy, events.schema, options, count, statistics)
    return work, events.frame.select(*(events.columns[name][0] for name in work.events.names))


class PolicyWork(TimedWork):
    """A policy that runs continuously; goes to every worker."""

    tells_steps = True

    def __init__(self, policy: Policy, events: pa.Schema, options: OnlineOptions, slicer: JointSlicer) -> None:
        columns = Options(**options.columns)
        self._tasks = FrameTasks(shipment_of(policy, options.negate, options.open_end), events, columns)
        self._clock = self._tasks.clock
        lateness = ticks_of(options.lateness, self._clock)
        super().__init__(slicer.slices, self._tasks.schema, lateness, options.late)
        self.options = {**asdict(options), "lateness": 0, "late": "error"}
        self.slicer = slicer
        self.rows = self._tasks.runner().schemas[0]

    def keep_lately(self) -> None:
        """Keep the events that matter to what is not decided: their cells can be cut anew."""
        reach = reach_of(self.formula, self._tasks.per_second)
        # What the watermark leaves open lies at most one reach behind it, and is decided by as much before.
        self.reach = None if reach is None else 2 * reach + 1

    @property
    def formula(self) -> Formula:
        """What is monitored."""
        return goal(self._tasks.shipment.policy.formula, self.options["negate"])[0]

    def recut(self, events: pa.RecordBatch) -> tuple[Any, PolicyWork]:
        """Shares, and values with shares of their own, by the rates of some events."""
        rates = rates_of(self.formula, self._tasks.chunks(events))
        shares = kept_rates(rates, self.slices)
        return shares, self.again(shares)

    def again(self, shares: Any) -> PolicyWork:
        """The policy in other shares."""
        found = copy(self)
        found.slicer = JointSlicer(self.formula, self.slices, rates_again(shares, self.formula))
        return found

    def times(self, events: pa.RecordBatch) -> tuple[Int64Array, Int64Array | None]:
        """Ticks and orders."""
        return self._tasks.key.columns_of(events)

    def needs(self, events: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which slices need which events."""
        if self.slices == 1:
            return np.ones((events.num_rows, 1), np.bool_)
        return self._tasks.needs(self.slicer, events)

    def monitor(self, slice: int, first: int, saved: bytes | None) -> PolicySlice:  # noqa: ARG002
        """The monitor of a slice."""
        return PolicySlice(self, self._tasks.shipment.policy, slice, saved)

    def time_text(self, tick: int) -> str:
        """A time for a message."""
        return time_text(tick, self._clock)


class PolicySlice:
    """A monitor over the events of a slice."""

    def __init__(self, work: PolicyWork, policy: Policy, slice: int, saved: bytes | None) -> None:
        self._work, self._slice = work, slice
        before, monitor = (b"0", None) if saved is None else unjoined(saved)
        self._before = int(before)  # time-points of a monitor that began earlier, where this one goes on
        self._monitor = Monitor(policy, **work.options) if monitor is None else Monitor.restore(policy, monitor)

    @property
    def points(self) -> int:
        """Time-points so far."""
        return self._before + self._monitor._runner.points

    @points.setter
    def points(self, points: int) -> None:
        self._before = points - self._monitor._runner.points

    @property
    def kept_bytes(self) -> int:
        """What the monitor keeps."""
        return self._monitor.held["bytes"]

    def push(self, ticks: Int64Array, events: pa.RecordBatch, steps: npt.NDArray[np.bool_]) -> list[pa.RecordBatch]:  # noqa: ARG002
        """Take events; a step has no type, so it belongs to its time-point and to no relation."""
        place = events.schema.get_field_index(self._work.options["type_column"])
        field = events.schema.field(place)
        if steps.any():
            types = pc.if_else(pa.array(steps), pa.scalar("", field.type), events.column(place))
            events = events.set_column(place, field, types)
        return self._own(self._monitor.push_batches(pa.Table.from_batches([events])))

    def advance(self, tick: int) -> list[pa.RecordBatch]:
        """No event before a time will come."""
        return self._own(self._monitor.advance_batches(tick))

    def _own(self, found: list[tuple[int, pa.RecordBatch]]) -> list[pa.RecordBatch]:
        """The rows whose valuation belongs to the slice."""
        return [self._numbered(rows) for _, rows in found if rows.num_rows]

    def _numbered(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        own = self._work.slicer.keep(rows, self._slice)
        if self._before:
            place = own.schema.get_field_index("time_point")
            own = own.set_column(place, own.schema.field(place), pc.add(own.column(place), self._before))
        return own.cast(self._work.rows)

    def save(self) -> bytes:
        """The monitor, and how many time-points there were before it."""
        return joined([str(self._before).encode(), self._monitor.save()])
