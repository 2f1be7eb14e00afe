"""Flink SQL's MATCH_RECOGNIZE over a CSV file of events; run by Flink's own Python, in an environment of its own.

``python flink_sql.py EVENTS.csv WIDTH`` with WIDTH the milliseconds of a window; columns ts (milliseconds), type, k.
Prints one JSON object: the seconds of the query alone (the JVM and the planner are there already) and its result.

MATCH_RECOGNIZE matches rows that stand next to each other in a partition, so that it answers another question than
skip-till-any-match: how many runs of one X directly followed by one or more Y, and then something else, there are.
"""

import json
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

TABLE = """
CREATE TABLE events (ts BIGINT, type STRING, k INT, rowtime AS TO_TIMESTAMP_LTZ(ts, 3),
                     WATERMARK FOR rowtime AS rowtime)
WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')
"""
QUERY = """
SELECT k, ts - MOD(ts, {width}) AS window_start, COUNT(*) AS runs
FROM events MATCH_RECOGNIZE (
    PARTITION BY k ORDER BY rowtime
    MEASURES X.ts AS ts
    ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
    PATTERN (X Y+ Z) WITHIN INTERVAL '{seconds}' SECOND
    DEFINE X AS X.type = 'A', Y AS Y.type = 'B', Z AS Z.type <> 'B'
)
GROUP BY k, ts - MOD(ts, {width})
"""


def main(path: str, width: int) -> None:
    """Run the query and print what it took."""
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.execute_sql(TABLE.format(path=path))
    begin = time.perf_counter()
    with tables.execute_sql(QUERY.format(width=width, seconds=width // 1000)).collect() as rows:
        found = [list(row) for row in rows]
    print(json.dumps({"query_s": time.perf_counter() - begin, "rows": found}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
