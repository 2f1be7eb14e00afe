"""Jobs over files: `submit` is a batch, `submit_stream` goes on as files are added."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack, cast, overload

from pyspark.sql import DataFrame, SparkSession

from hamlet.engine.options import Options
from hamlet.engine.stages import Stages
from hamlet.engine.where import chosen_events
from hamlet.input.events import EventSource, open_events
from hamlet.output.place import check_beside
from hamlet.planner.workload import Workload
from hamlet.policies import Policy
from hamlet.runtime.definitions import READING, ZONED
from hamlet.runtime.intake import for_columns
from hamlet.runtime.options import takes
from hamlet.spark import patterns, policies, specifications
from hamlet.spark.batch import destination
from hamlet.spark.continuous import QuerySink, query_work
from hamlet.spark.findings import of_stream
from hamlet.spark.following import Prepare, Prepared, followed
from hamlet.spark.frames import events_of
from hamlet.spark.input import LocalFiles, local_path, opened, sources_of
from hamlet.spark.job import Job, default_partitions
from hamlet.spark.online import QueryWork
from hamlet.spark.options import (
    Batch,
    PolicyStreamOptions,
    PolicySubmitOptions,
    Stream,
    SubmitOptions,
    SubmitStreamOptions,
    job_of,
)
from hamlet.spark.query_batch import submit_batch
from hamlet.spark.scaling import Plan, files_read
from hamlet.spark.session import session, translated
from hamlet.spark.told import Telling
from hamlet.streams import Specification

_LOG = logging.getLogger("hamlet")


@overload
def submit(
    workload: Workload, source: str | Sequence[str], output: str, **options: Unpack[SubmitOptions]
) -> dict[str, Any]: ...
@overload
def submit(
    workload: Policy, source: str | Sequence[str], output: str, **options: Unpack[PolicySubmitOptions]
) -> dict[str, Any]: ...
@overload
def submit(
    workload: Specification,
    source: str | Sequence[str],
    output: str,
    **options: Unpack[specifications.SpecificationSubmitOptions],
) -> dict[str, Any]: ...
@overload
def submit(
    workload: str, source: Mapping[str, Sequence[str]] | Sequence[str], output: str, **options: Any
) -> dict[str, Any]: ...
@takes(Batch, Options, without=["run"])
def submit(workload: Any, source: Any, output: str, **options: Any) -> dict[str, Any]:
    """Run a workload over a file, as a batch job that writes ``output/query=<name>/part-<number>.<format>``.

    A policy, a specification and a text of SQL run so, too, with the options of `hamlet.spark.policies.submit`,
    `hamlet.spark.specifications.submit` and `hamlet.spark.patterns.submit`.

    The files of a query are ordered by window and group, in themselves and by their numbers: partial rows are spread
    over the writing tasks by ranges of (query, window, group). They are written beside their place and renamed when all
    are there.

    Parameters
    ----------
    workload : Workload, Policy, Specification or str
    source : str or sequence of str
        A path (a file, a folder, a pattern), or a URL of any file system that Spark knows, or several of either kind.
        Local CSV and JSON files are read as `hamlet.run` reads them, a task per file; elsewhere Spark reads them, and
        finds their types its own way.
    output : str
        A directory that every machine of the cluster sees.
    master : str, optional
        ``local[*]`` by default; the active session's or spark-submit's where there is one.
    input_format : {'parquet', 'csv', 'json'}, optional
        By default the extension says.
    delimiter, bad_rows, missing_columns
        As for `hamlet.run`; rows are dropped from local files only.
    output_format : {'parquet', 'csv', 'json'}
    overwrite : bool
        Whether an output directory with something in it is replaced.
    partitions : int, optional
        As for `run`.
    balance : bool
        As for `run`.
    where : str, optional
        Only events for which this condition over columns is true are read; as ``hamlet run --where``.
    since, until : int, str or datetime, optional
        Only events from a time on, and before another one. Files and row groups of Parquet that cannot have an event
        that is wanted are not read.
    report : path, optional
        Where to write an HTML page about the job, as `hamlet.run` does; a file of this machine. Tasks then look at all
        events before they are routed, and keep a record of their decisions.
    trace : str, optional
        A directory, as `output` is one, for the records of bursts (`hamlet.engine.trace`): a Parquet file per task.
    products : {'auto', 'always', 'never'}
        As for `run`; ``auto`` looks at Parquet only, whose times can be read without all else.
    semijoin : {'auto', 'on', 'off'}
        Whether events whose keys have no trend, since they lack an event that every pattern needs, stay behind before
        the shuffle. Such keys are found in the scan of `balance`: under ``auto`` where that is asked for, under ``on``
        always. Rows do not depend on it.
    keep : iterable of paths
        Files that `overwrite` must not delete, besides the input.
    progress : callable, optional
        Called with what is being done, the tasks that are done and the tasks of the running stages.
    **options
        As for `run`.

    Returns
    -------
    dict
        What the job counted: the counters of `Results.stats` (events are those of the input; where slices overlap in
        time, groups and windows count in each), rows, infinite_values, seconds by stage, and ``slices``: the events
        that each slice got (``loads``), ``max_over_mean`` of these, and ``replication``, the slices that an event was
        sent to on average; under ``products`` whether maps travelled in place of events (``used``), the ``ranges`` that
        they were made of, or the ``reason`` why not; under ``semijoin`` the ``keys`` that were counted and those that
        are ``possible``, where some are not; ``left_behind``, the events of the others; ``warnings``, what is odd about
        the rows, as `Results.warnings` says it, and ``notes`` about times and the types of columns.

    Raises
    ------
    WorkloadError, DataError, OptionError, OutputError, UnsupportedError
        A user's mistake; nothing is left behind.
    JobError
        If Spark cannot finish the job.
    """
    room = _room_of(workload)
    return (_submit_queries if room is None else room.submit)(workload, source, output, **options)


def _room_of(workload: Any) -> Any:
    """What has the jobs of another notation; None for queries."""
    rooms = {Policy: policies, Specification: specifications, str: patterns}
    return next((room for kind, room in rooms.items() if isinstance(workload, kind)), None)


def _submit_queries(
    workload: Workload, source: str | Sequence[str], output: str, **options: Unpack[SubmitOptions]
) -> dict[str, Any]:
    began = time.perf_counter()
    chosen = job_of(Batch, Options, options)
    sources = sources_of(source)
    paths = [str(path) for path in map(local_path, sources) if path is not None]
    place = destination(output, chosen, paths)
    for name, beside in (("--report", chosen.report), ("--trace", chosen.trace)):
        check_beside(beside, name, place[0])
    traced = None
    if chosen.trace is not None:
        traced = destination(chosen.trace, chosen, paths)
    about = None
    if chosen.report is not None:
        from hamlet.spark.report import JobReport  # brings in jinja2, which nothing else needs

        about = JobReport(workload, sources, chosen)
    events = opened(sources, workload, chosen)
    with session(chosen.master) as spark, translated():
        stages = Stages(())
        stages.seconds["start"] = time.perf_counter() - began
        read = events.load(spark)
        chosen = replace(chosen, run=for_columns(chosen.run, read.events.names))
        found = submit_batch(workload, ", ".join(sources), read, chosen, place, traced, about, stages, began)
    for each in found["warnings"]:
        _LOG.warning(each)
    return found


def _read_again(checkpoint: str, chosen: Stream) -> EventSource:
    """The events of the files that a continuous job has read."""
    options = {name: getattr(chosen, name) for name in READING}
    options |= {name: getattr(chosen.run, name) for name in ZONED}
    return chosen_events(open_events(files_read(checkpoint), **options), None, None, chosen.where)


@overload
def submit_stream(
    workload: Workload,
    source: str | Sequence[str],
    output: str,
    checkpoint: str,
    **options: Unpack[SubmitStreamOptions],
) -> dict[str, Any]: ...
@overload
def submit_stream(
    workload: Policy, source: str, output: str, checkpoint: str, **options: Unpack[PolicyStreamOptions]
) -> dict[str, Any]: ...
@overload
def submit_stream(
    workload: Specification,
    source: str,
    output: str,
    checkpoint: str,
    **options: Unpack[specifications.SpecificationStreamOptions],
) -> dict[str, Any]: ...
@overload
def submit_stream(
    workload: str, source: Mapping[str, Sequence[str]] | Sequence[str], output: str, checkpoint: str, **options: Any
) -> dict[str, Any]: ...
@takes(Stream, Options, without=["run", "trace"])
def submit_stream(workload: Any, source: Any, output: str, checkpoint: str, **options: Any) -> dict[str, Any]:
    """Run a workload over a folder to which files are added, until it is stopped.

    A policy, a specification and a text of SQL run so, too, with the options of the ``submit_stream`` of
    `hamlet.spark.policies`, `hamlet.spark.specifications` and `hamlet.spark.patterns`.

    Files ``output/query=<name>/part-<micro-batch>-<number>.<format>`` appear as windows close. A job that was killed
    goes on from its checkpoint, and each row is in one file once, whoever reads the folder.

    Parameters
    ----------
    workload : Workload, Policy, Specification or str
    source : str
        A folder of Parquet, CSV or JSON lines files, some of which are there to say what the columns are.
    output : str
        A directory that every machine of the cluster sees.
    checkpoint : str
        A directory for Spark's checkpoint: the place in the input, and the engines.
    lateness, late
        As for `stream`.
    where : str, optional
        As for `submit`: what fails it is never seen, and moves no watermark.
    trigger : str, optional
        Time between micro-batches, such as ``'10 seconds'``; by default one follows the other.
    available_now : bool
        Whether to stop when all files that are there have been read; windows that are still open stay open.
    files_per_batch : int, optional
        Most files of a micro-batch.
    verbose : bool
        Whether a line per micro-batch goes to standard error: events, late ones, bytes kept, files behind, seconds.
    conf : mapping of str to str, or iterable of str
        Spark's own settings, by name or as ``name=value``.
    log_level : str, optional
        Of Spark's log.
    started : callable, optional
        Called with the running query.
    said : callable, optional
        Called with each of ``notes`` and ``warnings`` when the job has come to its end, or is stopped; by default they
        go to the log.
    master, input_format, delimiter, bad_rows, missing_columns, output_format, partitions, **options
        As for `submit`.

    Returns
    -------
    dict
        Of this run: ``batches``, ``events``, ``late_events`` that were dropped, ``rows``, ``notes`` (about bad rows,
        and columns that files lack), and ``warnings``: what is odd about all events since the job began, as `submit`
        says it.

    Raises
    ------
    WorkloadError, DataError, OptionError, OutputError, UnsupportedError, JobError
        As `submit`; DataError at a late event.
    """
    room = _room_of(workload)
    if room is not None:
        return cast("dict[str, Any]", room.submit_stream(workload, source, output, checkpoint, **options))
    chosen = job_of(Stream, Options, options)
    sources = sources_of(source)

    def prepared(checkpoint: str) -> Prepare:
        events = opened(sources, workload, chosen)

        def prepare(spark: SparkSession, cells: int, telling: Telling) -> Prepared:
            def made(skip: Sequence[str]) -> tuple[Job, QueryWork]:
                frame = events.follow(spark, chosen.files_per_batch, telling, skip)
                run = for_columns(chosen.run, frame.columns)
                job = Job(workload, events_of(frame, run), run, cells, ", ".join(sources))
                if chosen.where is not None:
                    job.look(chosen.choice)
                return job, query_work(job, frame, chosen.lateness, chosen.late)

            def running(plan: Plan) -> tuple[QueryWork, DataFrame]:
                job, work = made(plan.read)
                return work, job.everything()

            job, work = made(())
            sink = QuerySink(job.shipment, chosen.output_format, telling)
            known = isinstance(events, LocalFiles) and chosen.late == "error"  # then no event was left out
            again = partial(_read_again, checkpoint, chosen) if known else None
            return Prepared(work, sink, running, lambda told: of_stream(workload, job, told, again))

        return prepare

    return followed(output, checkpoint, chosen, chosen.partitions, default_partitions, prepared)
