"""The steps of a batch job that `hamlet.spark.submit` takes between opening its input and writing its output."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame

from hamlet.engine.stages import Stages
from hamlet.findings import Tally
from hamlet.output.place import staged
from hamlet.planner.workload import Workload
from hamlet.spark.batch import Place
from hamlet.spark.counters import Stats, events_seen, noted_of, stats_of, summed
from hamlet.spark.findings import unit_notes, warnings_of
from hamlet.spark.input import Loaded
from hamlet.spark.job import Job
from hamlet.spark.layers import Done, chosen_events, layers
from hamlet.spark.options import Batch
from hamlet.spark.output import written
from hamlet.spark.products import Decision, decided, made, put_together
from hamlet.spark.session import at_the_end, watched
from hamlet.spark.tasks import Noted

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


_REASON = "queries ask about the rows of other queries"
NO_SEMIJOIN = f"--semijoin on has no effect: no events are left behind before the shuffle, since {_REASON}"


def submit_layers(
    workload: Workload,
    read: Loaded,
    options: Batch,
    place: Place,
    traced: Place | None,
    about: JobReport | None,
    stages: Stages,
    began: float,
) -> dict[str, Any]:
    """Compute and write the units of queries that ask about the rows of others, a job and folders of results for each.

    Returns
    -------
    dict
        As of `hamlet.spark.submit`; the counters are those of all units together, ``slices`` those of the first one.
    """
    context = read.events.frame.sparkSession.sparkContext
    stats = stats_of(context)
    choice, watch = options.choice, about is not None
    events = chosen_events(workload, read.events, options.run, choice, stats, watch=watch)
    with contextlib.ExitStack() as held:
        records = None if traced is None else held.enter_context(staged(*traced))
        done: list[Done] = []
        files: dict[str, Any] = {"rows": 0, "infinite_values": 0, "notes": []}
        tallies: dict[str, Tally] = {}
        with (
            stages.measured("compute"),
            staged(*place) as fresh,
            watched(context, "counting trends", options.progress),
        ):
            for each in layers(
                workload, events, options.run, options.partitions, balance=options.balance, traced=records
            ):
                own = written(each.job, each.rows, each.rows.count(), fresh, options.output_format)
                tallies |= dict(zip(each.job.shipment.workload.names, own.pop("tallies"), strict=True))
                files = {name: files[name] + own[name] for name in files}
                done.append(each)
        for unfinished in records.glob("*/.part-*") if records is not None else ():  # of a task that was killed
            unfinished.unlink()
        seen = read.rows if choice.is_all else events_seen(stats.value)
        files |= {"tallies": [tallies[name] for name in workload.names]}
        counters = _together(done) | {"products": {"used": False, "reason": _REASON}}
        notes = [NO_SEMIJOIN] if options.semijoin == "on" else []
        return told(
            workload, read, done, stats, {**counters, "events": seen}, files, notes, options, about, stages, began
        )


def told(
    workload: Workload,
    read: Loaded,
    done: Sequence[Done],
    looked: Accumulator[Stats],
    counters: dict[str, Any],
    files: dict[str, Any],
    notes: Sequence[str],
    options: Batch,
    about: JobReport | None,
    stages: Stages,
    began: float,
) -> dict[str, Any]:
    """What `hamlet.spark.submit` returns, and its page.

    Parameters
    ----------
    done : sequence of Done
        The units of the workload, one where no query asks about the rows of another.
    looked : Accumulator
        What those tasks have counted that look at all events.
    counters : dict
    files : dict
        Of `hamlet.spark.output.written`.
    notes : sequence of str
        Further ones, which come first.
    """
    job, progress = done[0].job, options.progress
    context = read.events.frame.sparkSession.sparkContext
    noted = reduce(Noted.plus, (noted_of(each.stats.value) for each in done), Noted())
    tallies = files.pop("tallies")
    if read.left_out is not None and (skipped := read.left_out.sentence()) is not None:
        counters["row_groups"] = {"all": read.left_out.all, "skipped": read.left_out.skipped()}
        notes = [skipped, *notes]
    files["notes"] = [*notes, *unit_notes(job.schema, noted), *files["notes"]]
    found = {**noted.paths, **counters, **files, "stages": stages.seconds}
    with watched(context, "looking for what never occurs", progress):
        said = warnings_of(workload, job, noted, tallies, read.schema, counters["events"])
        found["warnings"] = [*read.notes, *said]
    if about is not None:
        with watched(context, "drawing", progress):
            about.write(done, looked.value, found, began)
    return found


def _together(done: Sequence[Done]) -> dict[str, Any]:
    """The counters of all units together."""
    found: dict[str, Any] = {}
    for each in done:
        for name, count in summed(each.stats.value, each.job.partitions).items():
            if name == "slices":
                found.setdefault(name, count)
            elif name in ("operators", "features"):
                continue  # added up with what else tasks have noted
            elif name in ("largest_count_bits", "matched_events"):
                found[name] = max(found.get(name, 0), count)
            else:
                found[name] = found.get(name, 0) + count
    return found
