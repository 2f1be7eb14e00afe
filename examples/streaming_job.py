"""A streaming job: files of ride events come into a folder, and districts where drivers crawl go into another one.

::

    spark-submit examples/streaming_job.py incoming crawling state

A row is written once, in the micro-batch in which its window closes. Stop the job and start it again with the same
command: place and half-open windows are in the checkpoint ``state``, and no row comes twice. Needs Spark 4.1 or newer.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import hamlet

SCHEMA = "time LONG, type STRING, driver INT, district STRING, speed DOUBLE"
WORKLOAD = """
crawl: RETURN district, COUNT(*), LOG2(COUNT(*)) AS bits, AVG(T.speed) AS mean_speed
    PATTERN SEQ(Request R, Travel T{2,}, NOT Pickup P)
    WHERE [driver] AND T.speed < 10
    GROUP-BY district
    WITHIN 10 min;
"""
SETTINGS = {
    # Hamlet keeps its engines in Spark's state store, which has to be this one.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.shuffle.partitions": "2",  # as many as slices; a checkpoint keeps to it
}


def crawling(events: DataFrame) -> DataFrame:
    """The rows of closed windows with more than a thousand trends; ordinary Spark goes on from here."""
    rows = hamlet.spark.stream(hamlet.Workload.parse(WORKLOAD), events, partitions=2, lateness="30 s", late="drop")
    return rows.where("bits > 10")


def start(spark: SparkSession, incoming: str, target: str, state: str, once: bool = False) -> StreamingQuery:
    """The running query; with `once` it stops when what is there has been read."""
    events = spark.readStream.schema(SCHEMA).json(incoming)
    writer = crawling(events).writeStream.outputMode("append").option("checkpointLocation", state)
    writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime="10 seconds")
    return writer.format("parquet").start(target)


if __name__ == "__main__":
    builder = SparkSession.builder.appName("crawling")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    source, folder, checkpoint = sys.argv[1:]
    start(builder.getOrCreate(), source, folder, checkpoint).awaitTermination()
