"""Slices on Spark: one routing for a whole workload, equal work, and what the summary says of it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hamlet
from tests.parallel.test_slicing import PARTIAL, partial_case
from tests.spark.test_spark import assert_same_rows, frame_of, rows_of
from tests.spark.test_spark_submit import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASSES = """
    keyed: RETURN k, COUNT(*), SUM(B.v) PATTERN SEQ(A, B+) GROUP-BY k WITHIN 20 s;
    rolled: RETURN COUNT(*), MIN(B.v) PATTERN SEQ(A, NOT C, B) WHERE [g] WITHIN 20 s SLIDE 10 s;
    giant: RETURN COUNT(*), MAX(A.v) PATTERN SEQ(A, C, B) WITHIN 15 s SLIDE 5 s"""


def table_of_keys(*choices: int | None, size: int = 600) -> pa.Table:
    """Events with any of these keys, of which 40 and 41 never have an A."""
    chance = random.Random(5)
    keys = [chance.choice(choices) for _ in range(size)]
    types = ["B" if key in (40, 41) else chance.choice("ABBC") for key in keys]
    columns: dict[str, Any] = {"time": range(size), "type": types, "k": keys, "g": [f"g{i % 7}" for i in range(size)]}
    return pa.table(columns | {"v": [chance.randint(-9, 9) for _ in range(size)]})


@pytest.mark.parametrize("balance", [False, True])
def test_a_whole_workload_in_one_scan(spark: SparkSession, balance: bool) -> None:
    table, workload = table_of_keys(1, 1, 1, 2, 3, None, 40, 41), hamlet.Workload.parse(CLASSES)
    frame = hamlet.spark.run(workload, frame_of(spark, table), partitions=3, balance=balance, lazy=True)
    plan = frame._jdf.queryExecution().toString()
    assert plan.count("MapInArrow") / plan.count("Optimized Logical Plan") >= 3  # routing, slices, merging
    assert_same_rows(rows_of(frame, workload), hamlet.run(workload, table).rows())


def test_types_with_different_keys(spark: SparkSession) -> None:
    """Events of one pattern that name riders, drivers, or nobody, over a grid of slices."""
    from tests.spark.test_partial_rows import table_of

    table, workload = table_of(partial_case(3)), hamlet.Workload.parse(PARTIAL)
    frame = hamlet.spark.run(workload, frame_of(spark, table), partitions=4, balance=True)
    expected = hamlet.run(workload, table).rows()
    assert len(expected) > 3
    assert_same_rows(rows_of(frame, workload), expected)


def test_submit_says_how_slices_were_loaded(spark: SparkSession, tmp_path: Path) -> None:
    table = table_of_keys(1, 2, 3, 4, None, 40, 41)
    pq.write_table(table, tmp_path / "in.parquet")
    workload = hamlet.Workload.parse(CLASSES.split(";")[0])
    results = hamlet.run(workload, table)
    found: dict[bool, dict[str, Any]] = {}
    for balance in (False, True):
        found[balance] = hamlet.spark.submit(
            workload, str(tmp_path / "in.parquet"), str(tmp_path / f"{balance}"), partitions=4, balance=balance
        )
        assert (
            read(tmp_path / f"{balance}", "keyed", "parquet")
            == results.table("keyed").drop_columns(["query"]).to_pylist()
        )
        assert found[balance]["matched_events"] == results.stats["matched_events"]
    # Keys without an A stay behind, the others are placed by work.
    assert sum(found[False]["slices"]["loads"]) == sum(each in ("A", "B") for each in table["type"].to_pylist())
    assert sum(found[True]["slices"]["loads"]) == sum(
        type in ("A", "B") and key not in (40, 41)
        for type, key in zip(table["type"].to_pylist(), table["k"].to_pylist(), strict=True)
    )
    assert found[True]["slices"]["replication"] == 1.0
    assert len([load for load in found[True]["slices"]["loads"] if load]) == 4
    assert found[True]["stages"].keys() == {"start", "measure", "compute", "write"}


def test_labels_go_where_they_shall(spark: SparkSession) -> None:
    """What takes the place of `repartitionById` before Spark 4.1: numbers that Spark's hash sends to each partition."""
    from pyspark.sql.functions import col, spark_partition_id

    from hamlet.spark.slices import by_label, in_slices

    numbered = spark.range(160).select((col("id") % 16).cast("int").alias("slice"))
    for frame in (by_label(numbered, 16), in_slices(numbered, 16)):
        seen = frame.select("slice", spark_partition_id().alias("partition")).distinct().collect()
        assert sorted((row["slice"], row["partition"]) for row in seen) == [(number, number) for number in range(16)]
