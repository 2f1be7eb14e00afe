"""The plan of a job whose input arrives in time ranges: each task makes maps of its range, and only maps travel.

Ranges are measured first, exactly. Where they overlap, where a query has no maps, or where it would not pay, the job
shuffles events as always, and says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit, when
from pyspark.sql.functions import hash as spark_hash
from pyspark.sql.pandas.types import from_arrow_schema

from hamlet.output.partial import SCHEMA as PARTIAL
from hamlet.parallel.time.ranges import SCHEMA, Cut, cut_of, ranges_of, refused, too_dear, too_few
from hamlet.spark.chunk_tasks import BORDER, ChunkTask, Sender, measured
from hamlet.spark.counters import BORDERS, CLASS, FOLDED, NOTED, SLICE, Counters, Stats, counted
from hamlet.spark.input import Loaded
from hamlet.spark.job import PARTIAL_TYPE, Job
from hamlet.spark.session import task_number
from hamlet.spark.slices import Batches, mapped

QUERY, WINDOW, GROUP, _ = PARTIAL.names


@dataclass(frozen=True)
class Decision:
    """Whether maps travel in place of events.

    Attributes
    ----------
    cut : Cut or None
        The input as chunks; None where events are shuffled.
    reason : str or None
        Why they are.
    measured : bool
        Whether the times were read for it.
    """

    cut: Cut | None
    reason: str | None = None
    measured: bool = False

    @property
    def stats(self) -> dict[str, Any]:
        """What a job's summary says of it."""
        return {"used": self.cut is not None, "reason": self.reason, "ranges": self.cut.ranges if self.cut else 0}


def decided(job: Job, products: str, input: Loaded | None = None) -> Decision:
    """Measure the input's time ranges, and decide; one more scan of the times where a query has maps.

    Parameters
    ----------
    job : Job
    products : {'auto', 'always', 'never'}
        ``always`` asks for no estimate of what it costs; what would be wrong is never done.
    input : Loaded, optional
        Where it is known.
    """
    if products == "never":
        return Decision(None, "forbidden")
    if products == "auto" and input is not None and not input.is_parquet:
        return Decision(None, "the times of the input cannot be read without all else")
    few = too_few(input.rows) if products == "auto" and input is not None else None
    reason = refused(job.compiled) or few
    if reason is not None:
        return Decision(None, reason)
    ranges = ranges_of(_measured(job).toArrow().to_batches())
    cut = cut_of(ranges)
    if isinstance(cut, str):
        return Decision(None, cut, measured=True)
    slots = job.events.frame.sparkSession.sparkContext.defaultParallelism
    apart = job.given.parts is not None
    dear = too_dear(job.compiled, ranges, cut, slots, apart=apart) if products == "auto" else None
    return Decision(None if dear else cut, dear, measured=True)


def _measured(job: Job) -> DataFrame:
    """The range of each task's events, whatever their types: no local predicate is looked at."""
    wanted = {name for each in job.compiled.classes for name in each.attributes}
    wanted |= {job.schema.clock.column, job.schema.order_column or job.schema.clock.column}
    names = [name for name in job.schema.columns if name in wanted]
    task = partial(measured, job.shipment, job.routes, names)
    given, type = job.given, from_arrow_schema(SCHEMA)
    if given.parts is not None:
        return job.over_parts(given.parts, names, None, task, type)
    return mapped(given.select(names), task, type)


def made(job: Job, cut: Cut, stats: Accumulator[Stats] | None = None) -> DataFrame:
    """What tasks make of their ranges (`hamlet.spark.chunk_tasks`): partial rows, maps, and events of borders."""
    shipment, known = job.shipment, job.routes

    def make(batches: Batches) -> Batches:
        task = ChunkTask(shipment, known, cut)
        yield from task.products(batches)
        _count(task, stats)

    return job.over(known, make, PARTIAL_TYPE)


def put_together(job: Job, cut: Cut, found: DataFrame, stats: Accumulator[Stats] | None, *, held: bool) -> DataFrame:
    """Partial rows of all queries, as `Job.partial`, of what tasks have made.

    Parameters
    ----------
    job : Job
    cut : Cut
    found : DataFrame
        From `made`.
    stats : Accumulator, optional
    held : bool
        Whether reading it twice does not make it anew: then rows that are whole already stay where they are.
    """
    shipment, known = job.shipment, job.routes

    def make_borders(batches: Batches) -> Batches:
        task = ChunkTask(shipment, known, cut)
        yield from task.of_borders(batches)
        _count(task, stats, BORDERS)

    def fold(batches: Batches) -> Batches:
        sender = Sender(shipment)
        yield from sender.folded(batches)
        counted(stats, {(FOLDED, 0): {"largest_count_bits": sender.largest_count_bits}})

    travelling = found.where(col(QUERY) < 0) if held else found
    if cut.borders:
        apart = when(col(QUERY) == BORDER, col(WINDOW)).otherwise(spark_hash(GROUP, WINDOW).cast("long"))
        travelling = travelling.repartition(job.partitions, apart).sortWithinPartitions(QUERY, WINDOW)
        travelling = mapped(travelling, make_borders, PARTIAL_TYPE)
    apart = when(col(QUERY) < 0, lit(0)).otherwise(col(WINDOW))  # partial rows may go anywhere
    folds = max(1, min(job.partitions, cut.partitions)) if held else job.partitions
    met = travelling.repartition(folds, col(QUERY), col(GROUP), apart)
    folded = mapped(met.sortWithinPartitions(QUERY, GROUP, WINDOW), fold, PARTIAL_TYPE)
    return found.where(col(QUERY) >= 0).unionAll(folded) if held else folded


def _count(task: ChunkTask, stats: Accumulator[Stats] | None, what: str = CLASS) -> None:
    found: dict[tuple[str, int], Counters] = {(what, number): each for number, each in task.stats.items()}
    found |= {(NOTED, number if what == CLASS else -1 - number): each for number, each in task.noted.items()}
    if task.received:
        found[SLICE, task_number()] = {"received": task.received, "sent": task.received}
    counted(stats, found)
