"""Strict sequences in Flink SQL's MATCH_RECOGNIZE over a CSV file; run by Flink's own Python.

``python flink_strict.py EVENTS.csv WIDTH`` with WIDTH the milliseconds of a window; columns ts (half milliseconds),
type, k. Prints one JSON object: the seconds of the query alone (the JVM and the planner are there already) and its
result.

A match is an A and all B that stand directly behind it, from every A; each of its B ends a trend. Flink does not let a
pattern end greedily, so another event must follow, and the file has one behind each window of a key.
"""

import json
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

TABLE = """
CREATE TABLE events (ts BIGINT, type STRING, k INT, w AS (ts / 2) - MOD(ts / 2, CAST({width} AS BIGINT)),
                     rowtime AS TO_TIMESTAMP_LTZ(ts, 3), WATERMARK FOR rowtime AS rowtime)
WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')
"""
QUERY = """
SELECT k, w, SUM(n) AS trends
FROM events MATCH_RECOGNIZE (
    PARTITION BY k, w ORDER BY rowtime
    MEASURES COUNT(Y.ts) AS n
    ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
    PATTERN (X Y+ Z)
    DEFINE X AS X.type = 'A', Y AS Y.type = 'B', Z AS Z.type <> 'B'
)
GROUP BY k, w
"""


def main(path: str, width: int) -> None:
    """Run the query and print what it took."""
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.execute_sql(TABLE.format(path=path, width=width))
    begin = time.perf_counter()
    with tables.execute_sql(QUERY).collect() as rows:
        found = [list(row) for row in rows]
    print(json.dumps({"query_s": time.perf_counter() - begin, "rows": found}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
