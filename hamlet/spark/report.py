"""The page about a batch job (``hamlet submit --report``): what `hamlet.pages.report` shows, gathered from tasks.

Tasks count events by type and add up their sharing decisions, a small summary each, which accumulators bring to the
driver. Of the rows, which the executors keep, it takes as many as a driver can hold with ease: all, or else all rows of
windows (and, where these are too many, of groups) drawn by chance, never only the first ones; the page says so.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, count_distinct, pmod, xxhash64

from hamlet.output.query_part import query_results
from hamlet.output.query_rows import QueryRows
from hamlet.pages.page import REPORTED, RunPage, write
from hamlet.pages.report import REST, page, settings_of
from hamlet.pages.series import MOST_BINS, Sample
from hamlet.parallel.routing.routing import MOST_CLASSES
from hamlet.planner.workload import Workload
from hamlet.spark.counters import Stats, activity_of, decisions_of
from hamlet.spark.job import ROW, Job
from hamlet.spark.layers import Done
from hamlet.spark.options import Batch
from hamlet.spark.rows import Presenter

MOST_ROWS = 300_000  # that the driver takes; ten times what a page can draw
_MEANINGS = {
    "start": "start Spark, look at the columns of the input",
    "measure": "count keys and times, in a scan of its own",
    "scan": "read the events, choose those that queries can use, send each to the slices that need it",
    "execute": "sort each slice by time; bursts, graphlets and windows",
    "compute": "read, route, shuffle and sort the events; bursts, graphlets and windows",
    "write": "put rows in order, add up those of one group, write files",
    "report": "gather what this page shows",
    REST: "plan the job",
}
_IN_PARALLEL = "Seconds on the clock; {slices} slices, side by side as far as there are cores."


class JobReport(RunPage):
    """Watches a batch job and writes its page.

    Parameters
    ----------
    workload : Workload
    sources : sequence of str
        The names of the input.
    options : Batch
        Of which `report` is where the page goes.
    """

    def __init__(self, workload: Workload, sources: Sequence[str], options: Batch) -> None:
        assert options.report is not None
        super().__init__(options.report, [workload.analysis.text.source, *sources])
        self._workload = workload
        self._source = ", ".join(sources)
        self._settings = settings_of(options.run, where=options.where, balance=options.balance)
        self._began: list[float] = []

    @contextlib.contextmanager
    def computing(self, context: SparkContext) -> Iterator[None]:
        """Asks Spark, when the block is over, at what times its stages began, as far as Spark knows."""
        tracker = context.statusTracker()
        before = {*tracker.getJobIdsForGroup()}
        yield
        jobs = [tracker.getJobInfo(job) for job in {*tracker.getJobIdsForGroup()} - before]
        stages = {stage for job in jobs if job is not None for stage in job.stageIds}
        infos = [context._jsc.statusTracker().getStageInfo(stage) for stage in stages]
        # A stage whose output is there already is skipped, and was never submitted.
        self._began = sorted(info.submissionTime() / 1e3 for info in infos if info and info.submissionTime() > 0)

    def write(self, done: Sequence[Done], seen: Stats, found: Mapping[str, Any], began: float) -> None:
        """Write the page.

        Parameters
        ----------
        done : sequence of Done
            The units of the workload; one where no query asks about the rows of another.
        seen : Stats
            Of the tasks that looked at the input.
        found : mapping
            What `hamlet.spark.submit` returns.
        began : float
            When the job began, by ``time.perf_counter``.
        """
        begin = time.perf_counter()
        rows: dict[str, QueryRows] = {}
        samples: dict[str, Sample] = {}
        job = done[0].job
        clock = job.schema.clock
        decisions = decisions_of({}, clock)
        for each in done:
            taken, drawn_by_chance = drawn(each.rows, each.job, MOST_ROWS // len(done))
            rows |= {one.name: one for one in taken}
            samples |= drawn_by_chance
            decisions.merge(decisions_of(each.stats.value, clock))
        end = time.perf_counter()
        stages = self._stages(job, found["stages"]) if len(done) == 1 else found["stages"]
        told = {**found, "stages": {**stages, "report": end - begin}, "seconds": end - began}
        in_order = [rows[name] for name in self._workload.names]
        text = page(
            self._workload,
            self._source,
            self._settings,
            query_results(in_order, clock, job.shipment.options.count_type, told, found["warnings"]),
            activity_of(seen, job.schema),
            decisions,
            samples=samples,
            meanings=_MEANINGS,
            note_on_time=_IN_PARALLEL.format(slices=job.partitions),
        )
        write(text, self.path, REPORTED)

    def _stages(self, job: Job, seconds: Mapping[str, float]) -> dict[str, float]:
        """Seconds by stage; computing is cut in two where Spark's first stage is the scan of all classes."""
        stages: dict[str, float] = {}
        for name, spent in seconds.items():
            if name == "compute" and len(self._began) > 1 and len(job.routes) <= MOST_CLASSES:
                stages["scan"] = min(self._began[1] - self._began[0], spent)
                stages["execute"] = spent - stages["scan"]
            else:
                stages[name] = spent
        return stages


def drawn(rows: DataFrame, job: Job, most: int) -> tuple[list[QueryRows], dict[str, Sample]]:
    """Result rows of every query: all, or whole windows and groups drawn by their hashes.

    Parameters
    ----------
    rows : DataFrame
        Partial rows.
    job : Job
    most : int
        How many rows of all queries there is room for.

    Returns
    -------
    list of QueryRows
        In the workload's order.
    dict of str to Sample
        Of the queries whose rows are not all there.
    """
    presenter, names = Presenter(job.shipment), job.shipment.workload.names
    samples: dict[int, Sample] = {}
    if rows.count() > most:
        samples = _samples(rows, most)
        rows = rows.where(reduce(or_, (_of_sample(query, sample) for query, sample in samples.items())))
    table = rows.toArrow().sort_by([(name, "ascending") for name in ROW])
    taken = [QueryRows(name, presenter.columns(place)) for place, name in enumerate(names)]
    for query, piece in presenter.rows(table.to_batches()):
        taken[query].extend(piece)
    return taken, {
        names[query]: sample for query, sample in samples.items() if sample.windows_in > 1 or sample.groups_in > 1
    }


def _samples(rows: DataFrame, most: int) -> dict[int, Sample]:
    """How to draw rows so that each query has the same room: fewer windows first, while enough of them are left."""
    counts = rows.groupBy("query").agg(
        count_distinct("window", "group").alias("rows"),
        count_distinct("window").alias("windows"),
        count_distinct("group").alias("groups"),
    )
    found = counts.collect()
    room = max(1, most // len(found))
    samples = {}
    for each in found:
        windows_in = max(1, min(math.ceil(each["rows"] / room), each["windows"] // MOST_BINS))
        groups_in = math.ceil(each["rows"] / windows_in / room) if each["groups"] > 1 else 1
        samples[each["query"]] = Sample(each["rows"], each["groups"], windows_in, groups_in)
    return samples


def _of_sample(query: int, sample: Sample) -> Column:
    """Whether a row is drawn; a hash, since every n-th window may be one of the same hour of the day."""
    wanted = col("query") == query
    for column, one_in in (("window", sample.windows_in), ("group", sample.groups_in)):
        if one_in > 1:
            wanted &= pmod(xxhash64(col(column)), one_in) == 0
    return wanted
