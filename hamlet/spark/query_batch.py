"""What `hamlet.spark.submit` does for a workload between opening its input and saying what it has done."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext, StorageLevel
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame

from hamlet.engine.stages import Stages
from hamlet.findings import Tally
from hamlet.output.place import staged
from hamlet.planner.workload import Workload
from hamlet.spark.batch import Place
from hamlet.spark.counters import Stats, events_seen, stats_of
from hamlet.spark.findings import unit_notes, warnings_of
from hamlet.spark.input import Loaded
from hamlet.spark.job import Job
from hamlet.spark.layers import Done, chosen_events, counters_of, is_layered, layers, noted_by
from hamlet.spark.options import Batch
from hamlet.spark.output import written
from hamlet.spark.products import Decision, decided, made, put_together
from hamlet.spark.session import at_the_end, watched

if TYPE_CHECKING:
    from hamlet.spark.report import JobReport

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
def tracing(place: Path, shown: str) -> Iterator[Path]:
    """A folder for the records of bursts that tasks write; it is in its place when the block has ended well.

    Parameters
    ----------
    place : pathlib.Path
        As `check_destination` gives it.
    shown : str
        The place as the user wrote it.
    """
    with staged(place, shown) as folder:
        yield folder
        for unfinished in folder.rglob(".part-*"):  # of a task that was killed
            unfinished.unlink()


def kept(rows: DataFrame, held: contextlib.ExitStack) -> DataFrame:
    """Have the executors keep rows once they have been made, as long as the stack says."""

    def forget() -> None:
        with at_the_end():
            rows.unpersist()

    held.callback(forget)
    return rows.persist(StorageLevel.MEMORY_AND_DISK)


_REASON = "queries ask about the rows of other queries"
NO_SEMIJOIN = f"--semijoin on has no effect: no events are left behind before the shuffle, since {_REASON}"


def submit_batch(
    workload: Workload,
    source: str,
    read: Loaded,
    options: Batch,
    place: Place,
    traced: Place | None,
    about: JobReport | None,
    stages: Stages,
    began: float,
) -> dict[str, Any]:
    """Compute and write a workload: its units one after the other, each a job, with folders of results of its own.

    Parameters
    ----------
    workload : Workload
    source : str
        What the input is called in messages.
    read : Loaded
    options : Batch
    place, traced : (Path, str)
        Where the results go, and the records of bursts, if any.
    about : JobReport, optional
    stages : Stages
    began : float
        When the job began, by ``time.perf_counter``.

    Returns
    -------
    dict
        As of `hamlet.spark.submit`.
    """
    context = read.events.frame.sparkSession.sparkContext
    looked = stats_of(context)  # what those tasks count that look at all events
    watch = about is not None
    decision, keys, notes = Decision(None, _REASON), dict[str, int](), list[str]()
    with contextlib.ExitStack() as held:
        records = None if traced is None else held.enter_context(tracing(*traced))
        if is_layered(workload):
            events = chosen_events(workload, read.events, options.run, options.choice, looked, watch=watch)
            units = layers(workload, events, options.run, options.partitions, balance=options.balance, traced=records)
            notes += [NO_SEMIJOIN] if options.semijoin == "on" else []
        else:
            job = Job(workload, read.events, options.run, options.partitions, source)
            if watch or not options.choice.is_all:
                job.look(options.choice, looked, watch=watch)
            decision, keys = measured(job, read, options, stages)
            if records is not None:
                job.trace_to(records)
            stats = stats_of(context)
            unit = Done(job, partial_rows(job, decision, stats, held), stats, job.partitions if not decision.cut else 0)
            units = iter([unit])
        computed = _computed(units, options, about, context)
        done: list[Done] = []
        files: dict[str, Any] = {"rows": 0, "infinite_values": 0, "notes": []}
        tallies: dict[str, Tally] = {}
        with staged(*place) as fresh:
            for each, total in stages.measured_steps("compute", computed):
                with stages.measured("write"), watched(context, "writing", options.progress):
                    own = written(each.job, each.rows, total, fresh, options.output_format)
                tallies |= dict(zip(each.job.shipment.workload.names, own.pop("tallies"), strict=True))
                files = {name: files[name] + own[name] for name in files}
                done.append(each)
        seen = read.rows if options.choice.is_all else events_seen(looked.value)
        counters = {**counters_of(done), "events": seen, "products": decision.stats, "semijoin": keys}
        skipped = None if read.left_out is None else read.left_out.sentence()
        if read.left_out is not None and skipped is not None:
            counters["row_groups"] = {"all": read.left_out.all, "skipped": read.left_out.skipped()}
            notes.insert(0, skipped)
        first, noted = done[0].job, noted_by(done)
        files["notes"] = [*notes, *unit_notes(first.schema, noted), *files["notes"]]
        found = {**counters, **files, "stages": stages.seconds}
        with watched(context, "looking for what never occurs", options.progress):
            in_order = [tallies[name] for name in workload.names]
            said = warnings_of(workload, first, noted, in_order, read.schema, counters["events"])
            found["warnings"] = [*read.notes, *said]
        if about is not None:
            with watched(context, "drawing", options.progress):
                about.write(done, looked.value, found, began)
    return found


def _computed(
    units: Iterator[Done], options: Batch, about: JobReport | None, context: SparkContext
) -> Iterator[tuple[Done, int]]:
    """The units, each when it is computed, and how many partial rows it has."""
    while True:
        with watched(context, "counting trends", options.progress):
            unit = next(units, None)
            if unit is None:
                return
            with contextlib.nullcontext() if about is None else about.computing(context):
                total = unit.rows.count()
        yield unit, total
