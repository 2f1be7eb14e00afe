"""Spark's daemon of Python workers, with what they import already there: each would take seconds for it.

Jobs in a JVM of their own start workers as users have them.
"""

from __future__ import annotations

import pyarrow.parquet
import pyspark.sql.pandas.serializers
import pyspark.sql.streaming.stateful_processor_api_client
import pyspark.worker
from pyspark.daemon import manager
from pyspark.sql.pandas.utils import require_minimum_pandas_version

import hamlet.spark.jobs

__all__ = ["hamlet", "pyarrow", "pyspark"]

if __name__ == "__main__":
    require_minimum_pandas_version()  # imports it, as Spark's workers do
    manager()
