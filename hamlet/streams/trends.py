"""Rows of trend queries as the events of a specification: each query's columns are inputs named ``query::column``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from hamlet.output.result import Results

TIME = "window_end"


def trend_events(results: Results) -> pa.Table:
    """The rows of all queries as events at the end of their window.

    Parameters
    ----------
    results : hamlet.output.result.Results

    Returns
    -------
    pyarrow.Table
        Column `TIME` and, for a query q1, ``q1::window_start``, ``q1::count`` and so on: one event a row, NULL in the
        columns of other queries. In the order of time; rows of one time in the order of queries, then of their rows.

    Examples
    --------
    >>> import hamlet
    >>> workload = hamlet.Workload.parse("q1: RETURN COUNT(*) PATTERN A+ WITHIN 10 s")
    >>> events = [{"type": "A", "time": 1}, {"type": "A", "time": 2}]
    >>> trend_events(hamlet.run(workload, events)).to_pylist()
    [{'q1::window_start': 0, 'window_end': 10, 'q1::count': 3}]
    """
    tables = []
    for query in results.queries:
        rows = results.table(query)
        names = {name: TIME if name == TIME else f"{query}::{name}" for name in rows.schema.names}
        rows = rows.drop_columns(["query"]) if "query" in names else rows
        tables.append(rows.rename_columns([names[name] for name in rows.schema.names]))
    together = pa.concat_tables(tables, promote_options="default")
    times = together.column(TIME).cast(pa.int64()).to_numpy()
    return together.take(pa.array(np.argsort(times, kind="stable"))).combine_chunks()
