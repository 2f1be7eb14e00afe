"""What analysts ask: a funnel, and a strict sequence, beside the SQL that gives the same numbers; mixed semantics."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hamlet
from bench import streams
from bench.answers import WrongAnswer, digest
from bench.cases.peers import spread
from bench.cases.real import KEYS
from bench.cases.sharing import Policies
from bench.peers.duckdb_funnel import FUNNEL, STRICT, Sql
from bench.peers.flink import Flink, write_strict_csv
from bench.subject import Answer, Case, Contender, Rows, plain
from datasets.location import real_stream

FUNNEL_QUERY = """
    RETURN COUNT(*) PATTERN SEQ(view, cart, purchase) SEMANTICS skip-till-next-match
    WHERE [user] SPAN 1 h WITHIN 1 d
"""
STRICT_QUERY = "RETURN key, COUNT(*) PATTERN SEQ(A, B+) SEMANTICS contiguous GROUP-BY key WITHIN {width} ms"

# Ten patterns, each under five kinds of matching: fifty queries over one stream. Four event types of a stream, and a
# number that its events have.
TYPES = {
    "stock": ("Up", "Down", "Flat", "Up", "size"),
    "smarthome": ("Rise", "Fall", "Hold", "SwitchOn", "power_1s_w"),
}
PATTERNS = (
    ("SEQ({0} A, {1} B)", ""),
    ("SEQ({0} A, {1} B, {2} C)", ""),
    ("SEQ({0} A, {1} B+)", ""),
    ("SEQ({1} A, {0} B+)", ""),
    ("SEQ({2} A, ({0} B | {1} C)+)", ""),
    ("SEQ({0} A, NOT {2} N, {1} B+)", ""),
    ("SEQ(NOT {1} N, {0} A, {3} B)", ""),
    ("SEQ({2} A, {1} B+, NOT {0} N)", ""),
    ("SEQ({0} A, {1} B+)", "WHERE B.{4} >= 100"),
    ("SEQ({1} A, {0} B, {2} C)", "WHERE A.{4} <= NEXT(B).{4}"),
)
KINDS = (
    ("", "WITHIN 10 s"),
    ("SEMANTICS skip-till-next-match", "WITHIN 1 min"),
    ("SEMANTICS skip-till-next-match", "SPAN 20 s WITHIN 1 min"),
    ("SEMANTICS contiguous", "WITHIN 1 min SLIDE 30 s"),
    ("SEMANTICS skip-till-next-match", "WITHIN SESSION 2 s"),
)


def mixed_queries(stream: str) -> str:
    """Fifty queries of mixed semantics over a real stream."""
    key = KEYS[stream]
    return ";\n".join(
        f"RETURN {key}, COUNT(*), SUM(A.{TYPES[stream][4]}) PATTERN {pattern.format(*TYPES[stream])} {semantics} "
        f"{condition.format(*TYPES[stream])} GROUP-BY {key} {window}"
        for pattern, condition in PATTERNS
        for semantics, window in KINDS
    )


def mixed(stream: str, most: int) -> Policies:
    """Fifty queries of mixed semantics under every policy of sharing, over the first events of a stream."""
    events = pq.read_table(real_stream(stream)).slice(0, most)
    workload = hamlet.Workload.parse(mixed_queries(stream))
    return Policies(workload, events, KEYS[stream], {"stream": stream}, time_unit="us", order_column="seq")


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


WIDTH = 300_000  # milliseconds of a strict sequence's windows


def strict(events: int) -> Beside:
    """A directly followed by a run of B, among five types; about 18 events of a key in a window."""
    statement = STRICT.format(width=WIDTH)
    return Beside(STRICT_QUERY.format(width=WIDTH), statement, spread(events, 2_000, 9), "ms")


class BesideFlink(Beside):
    """The strict sequence beside Flink's MATCH_RECOGNIZE, too, whose JVM starts anew for every run."""

    def __init__(self, events: int) -> None:
        table = spread(events, 2_000, 9)
        super().__init__(STRICT_QUERY.format(width=WIDTH), STRICT.format(width=WIDTH), table, "ms")
        self.flink = Flink()
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.csv = write_strict_csv(table, WIDTH, Path(self._folder.name) / "events.csv")

    def match_recognize(self) -> Mapping[str, Any]:
        """Every start, greedily; each match of n events B is n trends."""
        return self.flink.strict(self.csv, WIDTH)

    @staticmethod
    def rows_of_flink(found: Mapping[str, Any]) -> Rows:
        """Flink's."""
        return [{"window_start": start, "key": key, "count": count} for key, start, count in found["rows"]]

    def answer(self) -> Answer:
        """All three, row by row."""
        answer = super().answer()
        if digest(self.rows_of_flink(self.match_recognize())) != answer.digest:
            raise WrongAnswer("Flink SQL has other counts")
        answer.checks.append(f"all {answer.facts['rows']:,} counts equal those of Flink SQL MATCH_RECOGNIZE")
        return answer

    def contenders(self) -> Mapping[str, Contender]:
        """Ours first."""
        flink = Contender(
            self.match_recognize,
            self.rows_of_flink,
            metrics=lambda found: {"query_s": found["query_s"]},
            in_children=True,
        )
        return {**super().contenders(), "flink sql match_recognize": flink}


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
    "match-recognize": plain(
        "SEQ(A, B+) contiguous, COUNT per key over 300 s, every start and every end: ours, DuckDB's window functions, "
        "and Flink SQL MATCH_RECOGNIZE over a CSV file (query_s is the query alone, without the start of its JVM)",
        partial(BesideFlink, 1_000_000),
        partial(BesideFlink, 20_000),
        seconds=(300, 90),
        timeout_s=(300, 120),
    ),
    "mixed-semantics": Case(
        "fifty queries, ten patterns each skip-till-any-match, next match over windows, with SPAN and over sessions, "
        "and contiguous, exact counts and sums by group, Arrow table in memory, under every policy of sharing",
        {stream: partial(mixed, stream, 200_000) for stream in TYPES},
        {stream: partial(mixed, stream, 20_000) for stream in TYPES},
        seconds=(1200, 60),
        timeout_s=(900, 120),
    ),
}
