"""A Spark job: which carriers had late departures that piled up, and for how many of their days.

::

    spark-submit examples/spark_job.py flights.parquet late_days

Hamlet's part takes a DataFrame and gives one; before and behind it is ordinary Spark. ``python -m datasets flights``
makes the input.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import hamlet

WORKLOAD = """
piled_up: RETURN carrier, LOG2(COUNT(*)) AS bits, MAX(D.dep_delay) AS worst
    PATTERN Departure D{2,}
    WHERE D.dep_delay >= 60
    GROUP-BY carrier
    WITHIN 1 d;
"""


def late_days(events: DataFrame) -> DataFrame:
    """Days on which a carrier's departures of an hour and more late had over a thousand trends."""
    rows = hamlet.spark.run(hamlet.Workload.parse(WORKLOAD), events)
    return (
        rows.where("bits > 10")
        .groupBy("carrier")
        .agg(f.count("*").alias("days"), f.max("worst").alias("worst_delay"))
        .orderBy(f.desc("days"), "carrier")
    )


def main(spark: SparkSession, source: str, target: str) -> None:
    """Read, count, write."""
    late_days(spark.read.parquet(source)).write.mode("errorifexists").parquet(target)


if __name__ == "__main__":
    main(SparkSession.builder.appName("late days").getOrCreate(), sys.argv[1], sys.argv[2])
