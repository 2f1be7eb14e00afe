"""The floor that users know: DuckDB's plain GROUP BY over the same Arrow table, in this process.

It answers another question (how many events, not how many trends); it stands for the cost of touching the data once.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa


class GroupBy:
    """``GROUP BY key, type, pane`` with a count and a sum, prepared once and run many times.

    Parameters
    ----------
    events : pyarrow.Table
        Holds the columns named below; `value` numeric, `time` an integer.
    key, value : str
        The partition attribute and the attribute that is summed.
    type : str
        The column of event types.
    pane : int
        Length of a pane in ticks of the time column.
    threads : int
        DuckDB's worker threads.
    """

    def __init__(
        self, events: pa.Table, *, key: str, value: str, pane: int, type: str = "type", threads: int = 1
    ) -> None:
        self._connection = duckdb.connect(config={"threads": threads})
        self._connection.register("events", events)
        self._query = (
            f'SELECT "{key}", "{type}", time // {pane} AS pane, count(*) AS events, sum("{value}") AS total '
            f'FROM events GROUP BY "{key}", "{type}", pane'
        )

    def __call__(self) -> pa.Table:
        """The groups as an Arrow table: key, type, pane, events, total."""
        return self._connection.sql(self._query).to_arrow_table()
