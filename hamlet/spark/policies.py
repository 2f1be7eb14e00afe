"""Policies on Spark: a slice of the valuations, or of time, per task.

Every task of `submit` reads the input by itself (`hamlet.spark.policy_tasks`). The events of a DataFrame, and of a
folder that grows, are routed where they are, and shuffled to their slices (`hamlet.spark.policy_work`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame

from hamlet.input.files import key_of
from hamlet.input.files_protocol import Reader
from hamlet.input.ordering import SortKey
from hamlet.parallel.routing.rates import Rates
from hamlet.parallel.routing.rates import rates_from as rates_of_formula
from hamlet.policies import Policy
from hamlet.policies.analysis.rewriting import goal
from hamlet.policies.logs.source import texts_of
from hamlet.policies.logs.tables import Tables
from hamlet.policies.options import OnlineOptions
from hamlet.policies.runner import PolicyRunner
from hamlet.runtime.intake import for_columns
from hamlet.runtime.options import made_of, takes
from hamlet.spark.batch import closed_once, destination, seen_by_all, written_shares
from hamlet.spark.continuous import TimedSink, frame_of, timed_frame
from hamlet.spark.events import Reading
from hamlet.spark.following import follow
from hamlet.spark.frames import Events, events_of
from hamlet.spark.options import (
    MonitorFrameOptions,
    PolicyBatch,
    PolicyFrame,
    PolicyStream,
    PolicyStreamOptions,
    PolicySubmitOptions,
    check_partitions,
    job_of,
)
from hamlet.spark.policy_tasks import Input, PolicyShares, shares_of, shipment_of, summed
from hamlet.spark.policy_work import PolicyWork, check_verdicts, policy_work
from hamlet.spark.session import check_pandas, session, translated
from hamlet.spark.sliced import TimedWork

_TYPES = {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_()}


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
    PolicyRunner([policy], pa.int64(), 1, negate=chosen.negate)  # what cannot be monitored is told first, without a JVM
    ways = Input(paths[0] if len(paths) == 1 else paths, chosen.reading)
    opened = ways.open(policy, chosen.time_points)
    runner = shipment.runner(opened.time_type, opened.per_second)
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
    run = OnlineOptions(negate=chosen.negate, open_end=chosen.open_end, **chosen.columns)
    run = for_columns(run, events.columns)
    check_pandas()
    PolicyRunner([policy], pa.int64(), 1, negate=run.negate)  # what cannot be monitored is told first
    with translated():
        work, frame = policy_frame(policy, events_of(events, run), run, chosen.slices)
        return frame_of(work, closed_once(work, frame))


def policy_frame(
    policy: Policy, events: Events, options: OnlineOptions, slices: int | None, statistics: Rates | None = None
) -> tuple[PolicyWork, DataFrame]:
    """A policy over a DataFrame, and the columns that it reads."""
    count = slices or events.frame.sparkSession.sparkContext.defaultParallelism
    work = policy_work(policy, events.schema, options, count, statistics)
    return work, events.select(work.events.names)


def stream(
    policy: Policy, events: DataFrame, *, slices: int | None = None, statistics: Rates | None = None, **options: Any
) -> DataFrame:
    """Monitor a streaming DataFrame; as `hamlet.spark.stream`."""
    check_partitions(slices)
    chosen = for_columns(made_of(OnlineOptions, options, ("slices", "statistics")), events.columns)
    return timed_frame(*policy_frame(policy, events_of(events, chosen), chosen, slices, statistics))


# ---------------------------------------------------------------------------------------------- folders


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
        ``batches``, ``events``, ``late_events`` and ``rows`` of this run, ``notes`` and ``warnings``.

    Raises
    ------
    HamletError
        A user's mistake.
    JobError
        If Spark cannot go on.
    """
    chosen = job_of(PolicyStream, OnlineOptions, options)
    run = chosen.run
    runner = PolicyRunner([policy], pa.int64(), 1, negate=run.negate)  # what cannot be monitored costs no JVM
    check_verdicts(run)
    texts = texts_of(each for each in policy.signature if (each.name, each.arity) in runner.predicates)
    form = replace(chosen.form, texts=texts, whole_seconds=True)
    reading = Reading(SortKey(run.time_column, run.order_column), run.type_column, chosen.input_format, form)

    columns = partial(_columns_of, policy, runner, run)

    def plan(events: Events, slices: int) -> TimedWork:
        settled = replace(run, time_column=events.names[0])
        return policy_work(policy, events.schema, settled, slices, chosen.statistics, adaptive=chosen.adaptive)

    sink = partial(
        TimedSink, kind="policy", name=policy.name, output_format=chosen.output_format, tuples=tuple(runner.tuples[0])
    )
    return follow(source, output, checkpoint, chosen, reading, columns, plan, sink)


def _columns_of(policy: Policy, runner: PolicyRunner, options: OnlineOptions, reader: Reader) -> pa.Schema:
    """The columns that are read, with the types that they have in the first file or the signature; the time first."""
    key = key_of(reader, SortKey(options.time_column, options.order_column, reader.name))
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
