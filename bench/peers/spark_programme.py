"""What a good engineer writes in an hour: trends counted by dynamic programming over groups of a Spark DataFrame.

``groupBy(key).applyInArrow`` gives each key's events to a Python function, which sorts them and walks through them
once, with Python integers, so that no count overflows. One function per query, or one that does all of them. Also the
floor of any such job: the same read, repartition and sort, and a function that only counts rows.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from bench.machine import ROOT

Triple = tuple[str, str, str]  # shape ("plus": SEQ(X, Y+), "nested": its repetition, "until Z": SEQ(X, Y+, Z)), X, Y
SCHEMA = "query string, window_start long, key int, count string"


def session(cores: int, memory: str = "6g") -> SparkSession:
    """A local session as quiet as Spark can be, whose workers run this Python and find this tree."""
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path[1:]])}
    builder = SparkSession.builder.master(f"local[{cores}]").appName("bench")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": memory,
        "spark.sql.shuffle.partitions": str(2 * cores),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    created = builder.getOrCreate()
    created.sparkContext.setLogLevel("ERROR")
    return created


def shuffled_bytes(spark: SparkSession, seen: set[tuple[int, int]]) -> int:
    """Bytes that shuffles have written in stages that are not in `seen`, where they go."""
    jvm: Any = spark.sparkContext._jvm
    gateway: Any = spark.sparkContext._gateway
    nothing = gateway.new_array(jvm.double, 0)
    store = spark._jsparkSession.sparkContext().statusStore()
    stages = store.stageList(jvm.java.util.ArrayList(), False, False, nothing, jvm.java.util.ArrayList())
    total = 0
    for place in range(stages.size()):
        stage = stages.apply(place)
        if (stage.stageId(), stage.attemptId()) not in seen:
            seen.add((stage.stageId(), stage.attemptId()))
            total += stage.shuffleWriteBytes()
    return total


def stepped(queries: Sequence[tuple[str, Triple]], width: int, slide: int) -> Callable[[pa.Table], pa.Table]:
    """The function that Spark calls for each key: every window and all queries in turn."""

    def count(table: pa.Table) -> pa.Table:
        table = table.sort_by("time")
        times, types = table["time"].to_pylist(), table["type"].to_pylist()
        key = table["key"][0].as_py()
        rows: dict[str, list[Any]] = {"query": [], "window_start": [], "key": [], "count": []}
        for name, (shape, first, second) in queries:
            states: dict[int, list[int]] = {}  # window -> sums in X, in Y and in Z
            last = shape.removeprefix("until ") if shape.startswith("until") else None
            wanted = {first, second, last}
            for time, type in zip(times, types, strict=True):
                if type not in wanted:
                    continue
                window = time - time % slide
                while window > time - width:
                    state = states.setdefault(window, [0, 0, 0])
                    if type == first:
                        state[0] += 1 + (state[1] if shape == "nested" else 0)
                    elif type == second:
                        state[1] += state[1] + state[0]
                    else:
                        state[2] += state[1]
                    window -= slide
            for window, state in states.items():
                trends = state[1] if last is None else state[2]
                if trends:
                    rows["query"].append(name)
                    rows["window_start"].append(window)
                    rows["key"].append(key)
                    rows["count"].append(f"{trends:x}")  # hexadecimal: decimal takes quadratic time
        columns = [pa.array(rows["query"], pa.string()), pa.array(rows["window_start"], pa.int64())]
        columns += [pa.array(rows["key"], pa.int32()), pa.array(rows["count"], pa.string())]
        return pa.table(dict(zip(rows, columns, strict=True)))

    return count


class Programme:
    """The hand-written programme over a Parquet file.

    Parameters
    ----------
    spark : SparkSession
    path : pathlib.Path
        Columns time, type, key; a total order of time per key.
    width, slide : int
        Ticks of a window.
    """

    def __init__(self, spark: SparkSession, path: Path, width: int, slide: int) -> None:
        self.spark, self.path, self.width, self.slide = spark, path, width, slide

    def counts(self, queries: Sequence[tuple[str, Triple]]) -> DataFrame:
        """The plan of one job over some queries."""
        events = self.spark.read.parquet(str(self.path)).select("time", "type", "key")
        return events.groupBy("key").applyInArrow(stepped(queries, self.width, self.slide), SCHEMA)

    def run(self, queries: Sequence[tuple[str, Triple]], output: Path) -> Path:
        """One job for all queries; writes Parquet."""
        self.counts(queries).write.mode("overwrite").parquet(str(output))
        return output

    def run_each(self, queries: Sequence[tuple[str, Triple]], output: Path) -> Path:
        """One job per query."""
        for name, query in queries:
            self.run([(name, query)], output / name)
        return output


def _counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})


class Floor:
    """Read, repartition by key, sort by time within partitions, and count rows in `mapInArrow`.

    Parameters
    ----------
    spark : SparkSession
    path : pathlib.Path
    columns : tuple of str
        What is read.
    key, time : str
    """

    def __init__(self, spark: SparkSession, path: Path, columns: tuple[str, ...], key: str, time: str = "time") -> None:
        self.spark, self.path, self.columns, self.key, self.time = spark, path, columns, key, time

    def run(self) -> int:
        """How many rows went through."""
        events = self.spark.read.parquet(str(self.path)).select(*self.columns)
        placed = events.repartition(self.key).sortWithinPartitions(self.key, self.time)
        return sum(row["rows"] for row in placed.mapInArrow(_counted, "rows long").collect())
