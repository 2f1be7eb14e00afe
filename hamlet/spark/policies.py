"""Policies on Spark: a slice of the valuations, or of time, per task.

Every task of `submit` reads the input by itself (`hamlet.spark.policy_tasks`). A DataFrame's events are routed where
they are, and shuffled to their slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from hamlet.engine.options import Options
from hamlet.errors import DataError
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import SortKey
from hamlet.input.widening import cast, conform
from hamlet.parallel.routing.joint import JointSlicer
from hamlet.parallel.routing.rates import Rates, atoms_of, dimensions_of
from hamlet.parallel.routing.rates import rates_from as rates_of_formula
from hamlet.policies import Policy
from hamlet.policies.analysis.rewriting import goal
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.logs.tables import Tables
from hamlet.policies.runner import PolicyRunner
from hamlet.policies.syntax.formula import per_second_of
from hamlet.runtime.intake import for_columns
from hamlet.runtime.options import made_of, takes
from hamlet.spark.batch import destination, seen_by_all, written_shares
from hamlet.spark.frames import Events, events_of
from hamlet.spark.options import MonitorFrameOptions, PolicyBatch, PolicyFrame, PolicySubmitOptions
from hamlet.spark.packets import as_bytes, from_bytes
from hamlet.spark.policy_tasks import PolicyShares, Reading, Shipment, shares_of, shipment_of, summed
from hamlet.spark.session import check_pandas, session, translated
from hamlet.spark.slices import in_slices, mapped


@takes(PolicyBatch)
def submit(
    policy: Policy, source: str | Sequence[str], output: str, **options: Unpack[PolicySubmitOptions]
) -> dict[str, Any]:
    """Monitor a file as a Spark job that writes ``output/policy=<name>/part-<slice>.<format>``.

    Parameters
    ----------
    policy : Policy
    source : str or sequence of str
        A file, a folder or a pattern, or several of them, that every machine of the cluster sees.
    output : str
        A directory that every machine sees.
    slices : int, optional
        By default the session's parallelism.
    statistics : Rates, optional
        By default they are counted among the first million events.
    master, output_format, overwrite, keep, progress
        As for `hamlet.spark.submit`.
    negate, open_end, time_points
        As for `hamlet.policies.run`.
    input_format, ignore_unknown, time_column, type_column, order_column, time_unit, delimiter, bad_rows,
    missing_columns
        As for `hamlet.policies.logs.source.open_source`.

    Returns
    -------
    dict
        ``events``, ``rows``, ``time_points``, ``notes`` about rows that were dropped and predicates that
        never came, and ``slices``: the events that each slice got (``loads``), ``max_over_mean`` of these, and
        ``replication``.

    Raises
    ------
    HamletError
        A user's mistake; nothing is left behind.
    JobError
        If Spark cannot finish the job.
    """
    chosen = made_of(PolicyBatch, options)
    paths = seen_by_all(source)
    place = destination(output, chosen, paths)
    shipment = shipment_of(policy, chosen.negate, chosen.open_end, chosen.time_points)
    ways = Reading(paths[0] if len(paths) == 1 else paths, chosen.reading)
    opened = ways.open(policy, chosen.time_points)
    runner = shipment.runner(opened.time_type, opened.per_second)  # what cannot be monitored costs no JVM
    with session(chosen.master) as spark, translated():
        count = chosen.slices or spark.sparkContext.defaultParallelism
        shares = shares_of(shipment, ways, opened, count, chosen.statistics)
        work = PolicyShares(shipment, ways, runner.tuples[0])
        return summed(shares, written_shares(spark, work, shares, place, chosen))


def rates_from(known: Any, policy: Policy, negate: bool = False) -> Rates:
    """Rates that somebody has measured, for `submit` (`hamlet.parallel.routing.rates`)."""
    return rates_of_formula(known, goal(policy.formula, negate)[0])


# ---------------------------------------------------------------------------------------------- DataFrames


@takes(PolicyFrame)
def monitor(policy: Policy, events: DataFrame, **options: Unpack[MonitorFrameOptions]) -> DataFrame:
    """Monitor the events of a DataFrame; a time-point is all events of one time (and order).

    Parameters
    ----------
    policy : Policy
    events : DataFrame
        Rows in any order.
    slices : int, optional
        By default the session's parallelism.
    negate, open_end
        As for `hamlet.policies.run`.
    time_column, type_column, order_column, time_unit
        As for `hamlet.run`.

    Returns
    -------
    DataFrame
        time, time_point and the free variables; rows in no order.

    Raises
    ------
    HamletError, JobError
        As `submit`.
    """
    chosen = made_of(PolicyFrame, options)
    columns = for_columns(Options(**chosen.columns), events.columns)
    check_pandas()
    with translated():
        job = _FrameJob(shipment_of(policy, chosen.negate, chosen.open_end), events_of(events, columns), columns)
        return job.rows(chosen.slices or events.sparkSession.sparkContext.defaultParallelism)


class _FrameJob:
    """A policy over the events of a DataFrame."""

    def __init__(self, shipment: Shipment, events: Events, options: Options) -> None:
        self._tasks = FrameTasks(shipment, events.schema, options)
        names = self._tasks.schema.names
        self._frame = events.frame.select(*(events.columns[name][0].alias(name) for name in names))

    def rows(self, slices: int) -> DataFrame:
        """The rows as a DataFrame."""
        tasks = self._tasks
        schema = tasks.runner().schemas[0]
        formula = goal(tasks.shipment.policy.formula, tasks.shipment.negate)[0]
        if not dimensions_of(formula):
            slices = 1  # cut by time only where tasks read files themselves
        slicer = JointSlicer(formula, slices)
        packets = mapped(self._frame, partial(tasks.routed, slicer), "slice int, events binary")
        task = partial(tasks.monitored, slicer, self._steps())
        return mapped(in_slices(packets, slices), task, from_arrow_schema(schema))

    def _steps(self) -> pa.Table:
        """All time-points: the distinct values of time and order, in order."""
        names = self._tasks.key.names
        found = self._frame.select(*names).distinct().toArrow()
        return found.sort_by([(name, "ascending") for name in names]).combine_chunks()


class FrameTasks:
    """What tasks do with the events of a DataFrame; goes to every worker."""

    def __init__(self, shipment: Shipment, schema: pa.Schema, options: Options) -> None:
        self.shipment = shipment
        wanted = {atom.predicate for atom in atoms_of(shipment.policy.formula, ())}
        self.key = key = SortKey(options.time_column, options.order_column, "the DataFrame")
        self._tables = partial(Tables, shipment.policy.signature, wanted, schema, key, options.type_column)
        names = dict.fromkeys([*key.names, options.type_column, *self._tables().columns])
        missing = [name for name in names if name not in schema.names]
        if missing:
            raise DataError(f"the DataFrame has no column {missing[0]!r}; it has {', '.join(schema.names)}")
        self.schema = pa.schema([schema.field(name) for name in names])
        self.clock = schema_of(self.schema, key, options.type_column, options.time_unit, source="the DataFrame").clock
        self._time_type, self.per_second = self.clock.shown_type, per_second_of(self.clock)

    def runner(self) -> PolicyRunner:
        """What evaluates the policy."""
        return self.shipment.runner(self._time_type, self.per_second)

    def routed(self, slicer: JointSlicer, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Events as packets for the slices that need them."""
        for batch in batches:
            needs = self.needs(slicer, conform(batch, self.schema))
            pairs = [(slice, np.nonzero(needs[:, slice])[0]) for slice in range(slicer.slices)]
            pairs = [(slice, rows) for slice, rows in pairs if len(rows)]
            packets = [as_bytes(batch.take(pa.array(rows))) for _, rows in pairs]
            numbers = pa.array([slice for slice, _ in pairs], pa.int32())
            yield pa.RecordBatch.from_arrays([numbers, pa.array(packets, pa.binary())], ["slice", "events"])

    def chunks(self, batch: pa.RecordBatch) -> Iterator[LogChunk]:
        """Events as relations; each is a time-point."""
        yield from self._tables(time_points="event").feed(batch)

    def needs(self, slicer: JointSlicer, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Which slices need which events; of shape (rows, slices)."""
        needs = np.zeros((batch.num_rows, slicer.slices), np.bool_)
        for chunk in self.chunks(batch):
            for slice, part in enumerate(slicer.route(chunk)):
                for points, _ in part.relations.values():
                    needs[points, slice] = True
        return needs

    def monitored(
        self, slicer: JointSlicer, steps: pa.Table, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        """The rows of one slice."""
        parts: list[pa.RecordBatch] = []
        slice = -1
        for batch in batches:
            for number, data in zip(batch.column(0).to_pylist(), batch.column(1), strict=True):
                slice = number
                parts += from_bytes(data.as_buffer())
        if slice < 0:
            return
        # Rows of no type stand for the time-points at which the slice has no event.
        empty = {name: pa.nulls(steps.num_rows, self.schema.field(name).type) for name in self.schema.names}
        for name in self.key.names:
            empty[name] = cast(steps.column(name), self.schema.field(name).type, name)
        everything = pa.Table.from_batches([conform(batch, self.schema) for batch in parts])
        both = pa.concat_tables([pa.table(empty, self.schema), everything])
        ordered = both.sort_by([(name, "ascending") for name in self.key.names])
        runner = self.runner()
        tables = self._tables()
        for _, rows in runner.run(tables.chunks(ordered.combine_chunks().to_batches(max_chunksize=1 << 17))):
            mine = slicer.keep(rows, slice)
            if mine.num_rows:
                yield mine.cast(runner.schemas[0])
