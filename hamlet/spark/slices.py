"""Events of a whole workload to slices in one scan and one shuffle, as a Spark plan; statistics before it.

What goes where is decided in `hamlet.parallel.routing`; here are the DataFrames. Spark's own hash must not undo the
decision: 16 slice numbers hashed into 16 partitions leave some empty, so partitions are chosen by number
(Spark 4.1), or slices get labels whose hash is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, create_map, lit, pmod
from pyspark.sql.functions import hash as spark_hash
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hamlet.findings.met import lacks_key, met_by
from hamlet.parallel.routing.routes import Route
from hamlet.parallel.routing.routing import Router, Slicing
from hamlet.parallel.routing.statistics import SUMMARY, ClassStatistics, gathered, rows_of
from hamlet.spark.counters import NOTED, ROUTED, SENT, Stats, counted
from hamlet.spark.packets import PACKETS, packed
from hamlet.spark.session import guarded, without_pandas_warning
from hamlet.spark.tasks import Noted, Shipment, reduced_part, routed, summarised

Batches = Iterator[pa.RecordBatch]
Over = Callable[[Callable[[Batches], Batches], StructType], DataFrame]  # what tasks make of all events, and its type
LABELS_PER_SLICE = 64  # numbers to try for a label; one in `slices` has the hash of a given slice


def mapped(frame: DataFrame, task: Callable[[Batches], Batches], schema: StructType | str) -> DataFrame:
    """What a task makes of each partition's record batches; the driver raises a `HamletError` of it again."""

    def marked(batches: Batches) -> Batches:
        with guarded():
            yield from task(batches)

    with without_pandas_warning():
        return frame.mapInArrow(marked, schema)


def sliced(
    over: Over,
    shipment: Shipment,
    routes: Sequence[Route],
    slicing: Slicing,
    stats: Accumulator[Stats] | None = None,
) -> DataFrame:
    """Events in the partition of each slice that needs them, as packets (`hamlet.spark.packets`).

    Parameters
    ----------
    over : callable
        Has tasks make something of the events, in the columns that the routes read.
    shipment : Shipment
    routes : sequence of Route
    slicing : Slicing
    stats : Accumulator, optional
    """

    def task(batches: Batches) -> Batches:
        return packed(_routed(shipment, routes, slicing, stats, batches))

    return in_slices(over(task, from_arrow_schema(PACKETS)), slicing.slices)


def _routed(
    shipment: Shipment, routes: Sequence[Route], slicing: Slicing, stats: Accumulator[Stats] | None, batches: Batches
) -> Batches:
    # What slices are not sent they cannot have met, so it is noted here where filters keep events behind.
    shipped = shipment.compiled()
    without = [False] * len(routes)

    def looked(events: pa.RecordBatch) -> None:
        for place, route in enumerate(routes):
            compiled = shipped.classes[route.number]
            without[place] = without[place] or lacks_key(events, compiled, shipped.schema.type_column)

    router = Router(shipped, slicing, [route.number for route in routes])
    yield from routed(shipment, routes, router, batches, looked if any(slicing.filters) else None)
    needed = {str(route.number): int(events) for route, events in zip(routes, router.needed, strict=True)}
    number = routes[0].number
    sent = needed | {"sent": router.sent, "behind": router.behind}
    counted(stats, {(SENT, number): sent, (NOTED, ROUTED - number): Noted(met_by(shipped), any(without))})


def in_slices(frame: DataFrame, slices: int) -> DataFrame:
    """Rows in the partition that their column ``slice`` says."""
    if slices == 1:
        return frame.repartition(1)
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(slices, col("slice"))
    return by_label(frame, slices)


def by_label(frame: DataFrame, slices: int) -> DataFrame:
    """Repartition by slice where Spark has no partitions by number: by labels that its hash sends to the right ones."""
    labels = labels_of(frame.sparkSession, slices)
    pairs = create_map(*(lit(value) for pair in enumerate(labels) for value in pair))
    return frame.repartition(slices, pairs[col("slice")])


def labels_of(spark: SparkSession, slices: int) -> list[int]:
    """Numbers that Spark's hash sends to the partitions 0, 1, 2, ..."""
    numbers = spark.range(LABELS_PER_SLICE * slices).select(col("id").cast("int").alias("id"))
    found = numbers.select(col("id"), pmod(spark_hash(col("id")), lit(slices)).alias("slice")).collect()
    labels: dict[int, int] = {}
    for row in found:
        labels.setdefault(row["slice"], row["id"])
    return [labels[slice] for slice in range(slices)]


def statistics_of(
    over: Over,
    shipment: Shipment,
    routes: Sequence[Route],
    partitions: int,
    *,
    balance: bool = True,
    semijoin: bool = True,
) -> list[ClassStatistics]:
    """Exact statistics of the events of each class, in one scan.

    Every task counts its part; the counts of a key meet in one task (that of its bucket), which adds them up; only what
    placement asks for comes to the driver, and the hashes of keys that can have a trend.

    Parameters
    ----------
    over
        As for `sliced`.
    shipment : Shipment
    routes : sequence of Route
    partitions : int
    balance, semijoin : bool
        Whether keys and times are counted, and whether it is found out which keys can have a trend.
    """
    form = from_arrow_schema(SUMMARY)
    counting = partial(summarised, shipment, routes, balance, semijoin)
    parts = over(counting, form).repartition(partitions, "class", "place")
    table = mapped(parts, partial(reduced_part, shipment, routes), form).toArrow()
    return gathered(routes, [row for batch in table.to_batches() for row in rows_of(batch)])
