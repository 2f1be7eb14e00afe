"""What DuckDB can say about trends: a closed form in window functions for the simplest pattern, recursion for any.

``SEQ(X, Y+)``: an X with n later Y in its window begins 2^n - 1 trends, which a window function can count. It needs
doubles (an INTEGER or HUGEINT overflows at 64 or 128 later Y), and a nested Kleene plus has no such form. A recursive
CTE lists every trend, and is exponential.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

CLOSED_FORM = """
WITH counted AS (
    SELECT "{key}", time // {width} AS pane, type,
           count(*) FILTER (WHERE type = '{second}') OVER (
               PARTITION BY "{key}", time // {width} ORDER BY time
               RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE GROUP
           ) AS later
    FROM events WHERE type IN ('{first}', '{second}')
)
SELECT "{key}", pane * {width} AS window_start, sum(pow(2.0, later) - 1) AS count
FROM counted WHERE type = '{first}' AND later > 0 GROUP BY "{key}", pane
"""

RECURSION = """
WITH RECURSIVE trends AS (
    SELECT "{key}", time // {width} AS pane, time, false AS whole FROM events WHERE type = '{first}'
    UNION ALL
    SELECT t."{key}", t.pane, e.time, true
    FROM trends t JOIN events e
      ON e."{key}" = t."{key}" AND e.time // {width} = t.pane AND e.time > t.time AND e.type = '{second}'
)
SELECT "{key}", pane * {width} AS window_start, count(*) AS count FROM trends WHERE whole GROUP BY "{key}", pane
"""


class Recurrence:
    """``SEQ(first, second+)``, COUNT per key and tumbling window, in SQL on one thread.

    Parameters
    ----------
    sql : str
        `CLOSED_FORM` or `RECURSION`.
    events : pyarrow.Table
        Integer times; columns time, type and `key`.
    key, first, second : str
    width : int
        Ticks of a window.
    """

    def __init__(self, sql: str, events: pa.Table, *, key: str, first: str, second: str, width: int) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        plain = events.set_column(events.column_names.index("type"), "type", events["type"].cast(pa.string()))
        self._connection.register("events", plain)
        self._query = sql.format(key=key, first=first, second=second, width=width)

    def __call__(self) -> pa.Table:
        """The counts: key, window_start, count (double from the closed form, integer from the recursion)."""
        return self._connection.sql(self._query).to_arrow_table()
