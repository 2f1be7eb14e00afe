"""Flink in batch mode over a CSV file: a program of its own, run by a Python that has apache-flink.

``python bench/peers/flink_rows.py FILE.csv TEXT`` prints the seconds of the job, the seconds of processor
time of its JVM, and the number of rows.
"""

import os
import sys
import time
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

path, text = sys.argv[1:]
tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
tables.get_config().set("parallelism.default", "2")
tables.execute_sql(f"""CREATE TABLE ticks (symbol BIGINT, ts TIMESTAMP(3), v BIGINT, WATERMARK FOR ts AS ts)
    WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')""")


def worked() -> float:
    """The processor time of this process's children, of which one is the JVM."""
    stats = [path.read_text().rsplit(")", 1)[1].split() for path in Path("/proc").glob("[0-9]*/stat")]
    return sum(int(each[11]) + int(each[12]) for each in stats if int(each[1]) == os.getpid()) / os.sysconf(
        "SC_CLK_TCK"
    )


started, before = time.perf_counter(), worked()
with tables.execute_sql(f"SELECT count(*) FROM ({text})").collect() as rows:
    found = next(iter(rows))[0]
print(time.perf_counter() - started, worked() - before, found)
