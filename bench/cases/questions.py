"""What analysts ask: a funnel, and a strict sequence, beside the SQL that gives the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa

import hamlet
from bench import streams
from bench.answers import WrongAnswer, digest
from bench.cases.peers import spread
from bench.peers.duckdb_funnel import FUNNEL, STRICT, Sql
from bench.subject import Answer, Case, Contender, Rows, plain

FUNNEL_QUERY = """
    RETURN COUNT(*) PATTERN SEQ(view, cart, purchase) SEMANTICS skip-till-next-match
    WHERE [user] SPAN 1 h WITHIN 1 d
"""
STRICT_QUERY = "RETURN key, COUNT(*) PATTERN SEQ(A, B+) SEMANTICS contiguous GROUP-BY key WITHIN {width} ms"


class Beside:
    """One query and one statement that count the same.

    Parameters
    ----------
    query, statement : str
    events : pyarrow.Table
    unit : str
        Of the time column.
    """

    def __init__(self, query: str, statement: str, events: pa.Table, unit: str) -> None:
        self.workload, self.events, self.unit = hamlet.Workload.parse(query), events, unit
        self.sql = Sql(statement, events)

    def run(self) -> hamlet.Results:
        """Ours."""
        return hamlet.run(self.workload, self.events, time_unit=self.unit)  # type: ignore[arg-type]

    @staticmethod
    def rows(results: hamlet.Results) -> Rows:
        """Ours, without names of queries and ends of windows."""
        return [{n: v for n, v in row.items() if n not in ("query", "window_end")} for row in results.rows()]

    @staticmethod
    def rows_of_sql(table: pa.Table) -> Rows:
        """DuckDB's."""
        rows: Rows = table.to_pylist()
        return rows

    def answer(self) -> Answer:
        """Both, row by row."""
        results = self.run()
        rows = self.rows(results)
        if digest(self.rows_of_sql(self.sql())) != digest(rows):
            raise WrongAnswer("duckdb has other counts")
        facts = {
            "events": len(self.events),
            "queries": 1,
            "rows": len(rows),
            "largest_count_bits": max(row["count"].bit_length() for row in rows),
            "trends": sum(row["count"] for row in rows),
        }
        return Answer([f"all {len(rows):,} counts equal those of duckdb"], facts, digest(rows))

    def contenders(self) -> Mapping[str, Contender]:
        """Ours first."""
        return {"hamlet": Contender(self.run, self.rows), "duckdb sql": Contender(self.sql, self.rows_of_sql)}


def funnel(events: int) -> Beside:
    """Views that lead to a purchase within the hour; 20 events of each user."""
    return Beside(FUNNEL_QUERY, FUNNEL, streams.clickstream(events, max(1, events // 20)), "s")


def strict(events: int) -> Beside:
    """A directly followed by a run of B, among five types; about 18 events of a key in a window."""
    width = 300_000
    statement = STRICT.format(width=width)
    return Beside(STRICT_QUERY.format(width=width), statement, spread(events, 2_000, 9), "ms")


CASES: dict[str, Case] = {
    "funnel": plain(
        "SEQ(view, cart, purchase) by user, skip-till-next-match, SPAN 1 h WITHIN 1 d, COUNT, Arrow table in memory: "
        "ours, and ASOF joins in DuckDB that give the same numbers",
        partial(funnel, 10_000_000),
        partial(funnel, 400_000),
        seconds=(150, 10),
    ),
    "strict-sequence": plain(
        "SEQ(A, B+) contiguous, COUNT per key over 300 s, every start and every end, Arrow table in memory: ours, and "
        "window functions in DuckDB that give the same numbers",
        partial(strict, 5_000_000),
        partial(strict, 200_000),
        seconds=(150, 10),
    ),
}
