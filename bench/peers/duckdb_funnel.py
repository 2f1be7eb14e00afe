"""Funnels and strict sequences in SQL, as somebody would write them who knows what they mean.

Both count exactly what our queries count, also where events of one user or key have one time.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

# Each view goes on with the first cart after it, and with each of several of that time; so does each cart with a
# purchase. All of it lasts an hour at most and counts on the day of the purchase.
FUNNEL = """
    WITH views AS (SELECT "user", time, count(*) AS n FROM events WHERE type = 'view' GROUP BY ALL),
         carts AS (SELECT "user", time, count(*) AS n FROM events WHERE type = 'cart' GROUP BY ALL),
         purchases AS (SELECT "user", time, count(*) AS n FROM events WHERE type = 'purchase' GROUP BY ALL),
         steps AS (
             SELECT v."user" AS "user", v.time AS begun, c.time AS time, v.n * c.n AS n
             FROM views v ASOF JOIN carts c ON v."user" = c."user" AND v.time < c.time
         )
    SELECT p.time // 86400 * 86400 AS window_start, sum(s.n * p.n)::BIGINT AS "count"
    FROM steps s ASOF JOIN purchases p ON s."user" = p."user" AND s.time < p.time
    WHERE p.time - s.begun <= 3600
    GROUP BY ALL ORDER BY ALL
"""

# A run of B that directly follows an A is as many trends as it has events; no two events of a key have one time.
STRICT = """
    WITH neighbours AS (
        SELECT key, time // {width} AS "window", time, type,
               lag(type) OVER (PARTITION BY key, time // {width} ORDER BY time) AS before
        FROM events
    ), runs AS (
        SELECT key, "window", type,
               sum((type <> 'B' OR before <> 'B' OR before IS NULL)::INT)
                   OVER (PARTITION BY key, "window" ORDER BY time ROWS UNBOUNDED PRECEDING) AS run,
               (type = 'B' AND before = 'A')::INT AS follows
        FROM neighbours
    ), lengths AS (
        SELECT key, "window", run, count(*) AS n FROM runs WHERE type = 'B' GROUP BY ALL HAVING max(follows) = 1
    )
    SELECT "window" * {width} AS window_start, key, sum(n)::BIGINT AS "count"
    FROM lengths GROUP BY ALL ORDER BY window_start, key
"""


class Sql:
    """A statement over events in memory, run many times.

    Parameters
    ----------
    statement : str
    events : pyarrow.Table
        Stands in the statement as ``events``.
    threads : int
        DuckDB's worker threads.
    """

    def __init__(self, statement: str, events: pa.Table, threads: int = 1) -> None:
        self._connection = duckdb.connect(config={"threads": threads})
        self._connection.register("events", events)
        self._statement = statement

    def __call__(self) -> pa.Table:
        """The result as an Arrow table."""
        return self._connection.sql(self._statement).to_arrow_table()
