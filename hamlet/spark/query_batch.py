"""The steps of a batch job that `hamlet.spark.submit` takes between opening its input and writing its output."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pyspark import StorageLevel
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame

from hamlet.engine.stages import Stages
from hamlet.output.place import staged
from hamlet.spark.counters import Stats
from hamlet.spark.input import Loaded
from hamlet.spark.job import Job
from hamlet.spark.options import Batch
from hamlet.spark.products import Decision, decided, made, put_together
from hamlet.spark.session import at_the_end, watched

MEASURE = "measure"  # the stage of looking at times or counting keys, in jobs that do


def measured(job: Job, read: Loaded, options: Batch, stages: Stages) -> tuple[Decision, dict[str, int]]:
    """Look at the input before the job: whether its parts are ranges of time, and else, if asked, at its keys.

    Parameters
    ----------
    job : Job
        Will be balanced by its keys.
    read : Loaded
    options : Batch
    stages : Stages
        Gets a stage `MEASURE` where something was looked at.

    Returns
    -------
    Decision
    dict
        ``keys`` and ``possible`` of `Job.measure`; empty where nobody has looked.
    """
    context, progress = job.events.frame.sparkSession.sparkContext, options.progress
    decision = Decision(None, "a page and a trace tell of every burst")
    if not job.shipment.options.trace:
        with stages.measured(MEASURE), watched(context, "looking at times", progress):
            decision = decided(job, options.products, read)
    keys: dict[str, int] = {}
    if (options.balance or options.semijoin == "on") and decision.cut is None:
        with stages.measured(MEASURE), watched(context, "counting keys", progress):
            keys = job.measure(balance=options.balance, semijoin=options.semijoin != "off")
    elif not decision.measured:
        stages.seconds.pop(MEASURE, None)
    return decision, keys


def partial_rows(job: Job, decision: Decision, stats: Accumulator[Stats], held: contextlib.ExitStack) -> DataFrame:
    """The partial rows of a job, of events or of maps in their place; kept by the executors as long as `held` says."""
    if decision.cut is None:
        return kept(job.partial(stats), held)
    maps = kept(made(job, decision.cut, stats), held)
    return kept(put_together(job, decision.cut, maps, stats, held=True), held)


@contextlib.contextmanager
def tracing(job: Job, place: Path, shown: str) -> Iterator[None]:
    """Have the job's tasks write their records of bursts; the folder is in its place when the block has ended well.

    Parameters
    ----------
    job : Job
    place : pathlib.Path
        As `check_destination` gives it.
    shown : str
        The place as the user wrote it.
    """
    with staged(place, shown) as folder:
        job.trace_to(folder)
        yield
        for unfinished in folder.glob(".part-*"):  # of a task that was killed
            unfinished.unlink()


def kept(rows: DataFrame, held: contextlib.ExitStack) -> DataFrame:
    """Have the executors keep rows once they have been made, as long as the stack says."""

    def forget() -> None:
        with at_the_end():
            rows.unpersist()

    held.callback(forget)
    return rows.persist(StorageLevel.MEMORY_AND_DISK)
