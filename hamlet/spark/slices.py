"""Events of a whole workload to slices in one scan and one shuffle, as a Spark plan; statistics before it.

What goes where is decided in `hamlet.slicing`; here are the DataFrames. Spark's own hash must not undo the decision:
16 slice numbers hashed into 16 partitions leave some empty, so partitions are chosen by number (Spark 4.1), or slices
get labels whose hash is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import bit_or, col, create_map, desc, lit, pmod
from pyspark.sql.functions import hash as spark_hash
from pyspark.sql.functions import sum as total
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from hamlet.slicing.routes import Route
from hamlet.slicing.routing import Router, Slicing
from hamlet.slicing.statistics import (
    KEY,
    MOST_HEAVY,
    MOST_IMPOSSIBLE,
    RELATION,
    SUMMARY,
    TIME,
    VALUE,
    ClassStatistics,
    gathered,
    presence,
)
from hamlet.spark.counters import SENT, Stats, counted
from hamlet.spark.session import guarded, without_pandas_warning
from hamlet.spark.tasks import Shipment, routed, summarised

Batches = Iterator[pa.RecordBatch]
LABELS_PER_SLICE = 64  # numbers to try for a label; one in `slices` has the hash of a given slice


def mapped(frame: DataFrame, task: Callable[[Batches], Batches], schema: StructType | str) -> DataFrame:
    """What a task makes of each partition's record batches."""
    with without_pandas_warning():
        return frame.mapInArrow(task, schema)


def sliced(
    frame: DataFrame,
    shipment: Shipment,
    routes: Sequence[Route],
    slicing: Slicing,
    stats: Accumulator[Stats] | None = None,
) -> DataFrame:
    """Events in the partition of each slice that needs them, with slice and mask in front.

    Parameters
    ----------
    frame : DataFrame
        The columns that the routes read.
    shipment : Shipment
    routes : sequence of Route
    slicing : Slicing
    stats : Accumulator, optional
    """

    def task(batches: Batches) -> Batches:
        yield from guarded(_routed(shipment, routes, slicing, stats, batches))

    places = [StructField("slice", IntegerType()), StructField("mask", LongType())]
    return in_slices(mapped(frame, task, StructType([*places, *frame.schema.fields])), slicing.slices)


def _routed(
    shipment: Shipment, routes: Sequence[Route], slicing: Slicing, stats: Accumulator[Stats] | None, batches: Batches
) -> Batches:
    router = Router(shipment.compiled(), slicing, [route.number for route in routes])
    yield from routed(shipment, routes, router, batches)
    needed = {str(route.number): int(events) for route, events in zip(routes, router.needed, strict=True)}
    counted(stats, {(SENT, routes[0].number): needed | {"sent": router.sent}})


def in_slices(frame: DataFrame, slices: int) -> DataFrame:
    """Rows in the partition that their column ``slice`` says."""
    if slices == 1:
        return frame.repartition(1)
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(slices, col("slice"))
    labels = labels_of(frame.sparkSession, slices)
    pairs = create_map(*(lit(value) for pair in enumerate(labels) for value in pair))
    return frame.repartition(slices, pairs[col("slice")])


def labels_of(spark: SparkSession, slices: int) -> list[int]:
    """Numbers that Spark's hash sends to the partitions 0, 1, 2, ..."""
    numbers = spark.range(LABELS_PER_SLICE * slices)
    found = numbers.select(col("id"), pmod(spark_hash(col("id")), lit(slices)).alias("slice")).collect()
    labels: dict[int, int] = {}
    for row in found:
        labels.setdefault(row["slice"], row["id"])
    return [labels[slice] for slice in range(slices)]


def statistics_of(frame: DataFrame, shipment: Shipment, routes: Sequence[Route]) -> list[ClassStatistics]:
    """Exact statistics of the events of each class, in one scan.

    Every task counts its part; the parts are added up by Spark, and only what placement asks for comes to the driver:
    the keys with most events, sums over the others, keys that can have no trend, and samples of the times.
    """
    compiled = shipment.compiled()

    def task(batches: Batches) -> Batches:
        yield from guarded(summarised(shipment, routes, batches))

    summary = mapped(frame, task, from_arrow_schema(SUMMARY))
    names = ("class", "kind", "place", "key", "time")
    sums = summary.groupBy(*names).agg(total("events").alias("events"), bit_or("roles").alias("roles")).persist()
    try:
        keys = sums.where(col("kind") == KEY)
        by_roles = keys.groupBy("class", "place", "roles").agg(total("events").alias("events")).collect()
        buckets = [_values(row, "class", "place", "roles", "events") for row in by_roles]
        found: dict[tuple[int, bytes], Any] = {}
        others: list[Any] = []
        for route in routes:
            mine = keys.where(col("class") == route.number).orderBy(desc("events"))
            present = presence(compiled.classes[route.number], route)
            seen = {roles for number, _, roles, _ in buckets if number == route.number}
            nothing = [roles for roles in seen if not present.possible(roles)]
            rows = mine.limit(MOST_HEAVY).collect() if route.keys else []
            rows += mine.where(col("roles").isin(nothing)).limit(MOST_IMPOSSIBLE).collect() if nothing else []
            found |= {(row["class"], bytes(row["key"])): row for row in rows}
            values = sums.where((col("class") == route.number) & (col("kind") == VALUE))
            others += values.orderBy(desc("events")).limit(MOST_HEAVY).collect()
        others += sums.where(col("kind").isin(RELATION, TIME)).collect()
        return gathered(
            compiled,
            routes,
            [_values(row, "class", "place", "key", "roles", "events") for row in found.values()],
            buckets,
            [_values(row, "class", "kind", "place", "key", "events", "time") for row in others],
        )
    finally:
        sums.unpersist()


def _values(row: Any, *names: str) -> Any:
    return tuple(bytes(row[name]) if name == "key" else row[name] for name in names)
