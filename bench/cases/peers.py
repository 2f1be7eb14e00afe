"""What people have beside us: SQL in DuckDB and Flink, on a question that they can answer, and on theirs.

The question is ``SEQ(A, B+)`` per key in tumbling windows: the one trend query that SQL can say at all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import hamlet
from bench import streams
from bench.answers import WrongAnswer, digest
from bench.peers.duckdb_groupby import GroupBy
from bench.peers.duckdb_recurrence import CLOSED_FORM, RECURSION, Recurrence
from bench.peers.flink import Flink, write_csv
from bench.subject import Answer, Case, Contender, Rows, plain

TEXT = "RETURN key, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY key WITHIN {width} ms"


def spread(events: int, keys: int, step_ms: int, types: int = 5) -> pa.Table:
    """Random types and keys, one event every so many milliseconds, so that all are ordered."""
    random = np.random.default_rng(1)
    codes = random.integers(0, types, events)
    return pa.table(
        {
            "time": np.arange(events) * step_ms,
            "type": streams.typed(codes),
            "key": random.integers(0, keys, events).astype(np.int32),
            "value": random.integers(0, 100, events),
        }
    )


class OneQuestion:
    """``SEQ(A, B+)``, COUNT per key and window; rows are {key, window_start, count} of integers for everyone.

    Parameters
    ----------
    events : pyarrow.Table
    width : int
        Milliseconds of a window.
    recursion, closed_form, flink : bool
        Who takes part beside us.
    """

    def __init__(
        self, events: pa.Table, width: int, *, recursion: bool = False, closed_form: bool = False, flink: bool = False
    ) -> None:
        self.workload = hamlet.Workload.parse(TEXT.format(width=width))
        self.events, self.width = events, width
        sqls = {"duckdb window functions": CLOSED_FORM} if closed_form else {}
        sqls |= {"duckdb recursive cte": RECURSION} if recursion else {}
        asked = {"key": "key", "first": "A", "second": "B", "width": width}
        self.sql = {name: Recurrence(sql, events, **asked) for name, sql in sqls.items()}  # type: ignore[arg-type]
        self.group_by = GroupBy(events, key="key", value="value", pane=width)
        self.flink = Flink() if flink else None
        if self.flink is not None:
            self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
            self.csv = write_csv(events, Path(self._folder.name) / "events.csv")

    def run(self) -> hamlet.Results:
        """Ours."""
        return hamlet.run(self.workload, self.events, time_unit="ms")

    @staticmethod
    def rows(results: hamlet.Results) -> Rows:
        """Ours, without names of queries and ends of windows."""
        return [{"key": r["key"], "window_start": r["window_start"], "count": r["count"]} for r in results.rows()]

    @staticmethod
    def rows_of_sql(table: pa.Table) -> Rows:
        """DuckDB's."""
        counts = table["count"].to_pylist()
        keys, starts = table["key"].to_pylist(), table["window_start"].to_pylist()
        return [{"key": k, "window_start": s, "count": int(c)} for k, s, c in zip(keys, starts, counts, strict=True)]

    @staticmethod
    def rows_of_flink(found: Mapping[str, Any]) -> Rows:
        """Flink CEP's."""
        return [dict(zip(("key", "window_start", "count"), row, strict=True)) for row in found["rows"]]

    def answer(self) -> Answer:
        """Everyone who answers our question against each other; the sum of all counts is a fact, and theirs too."""
        rows = self.rows(self.run())
        answer = Answer(digest=digest(rows))
        for name, sql in self.sql.items():
            if digest(self.rows_of_sql(sql())) != answer.digest:
                raise WrongAnswer(f"{name} has other counts")
            answer.checks.append(f"all {len(rows):,} counts equal those of {name}")
        answer.facts = {
            "events": len(self.events),
            "queries": 1,
            "rows": len(rows),
            "largest_count_bits": max(row["count"].bit_length() for row in rows),
            "trends": sum(row["count"] for row in rows),
            "events_per_window": round(len(self.events) / max(1, len(self.group_by_windows()))),
        }
        if self.flink is not None:
            if digest(self.rows_of_flink(self.flink.cep(self.csv, self.width))) != answer.digest:
                raise WrongAnswer("Flink CEP has other counts")
            answer.checks.append(f"all {len(rows):,} counts equal those of Flink CEP")
            answer.facts["contiguous_runs"] = sum(row[2] for row in self.flink.sql(self.csv, self.width)["rows"])
        return answer

    def group_by_windows(self) -> pa.Table:
        """The keys and windows that have events."""
        return self.group_by().group_by(["key", "pane"]).aggregate([])

    def contenders(self) -> Mapping[str, Contender]:
        """Ours first."""
        found = {"hamlet": Contender(self.run, self.rows)}
        found |= {name: Contender(sql, self.rows_of_sql) for name, sql in self.sql.items()}
        if self.flink is None:
            asked = "how many events each key has of each type in each window"
            return found | {"duckdb group by": Contender(self.group_by, None, question=asked)}
        cep, sql = (partial(each, self.csv, self.width) for each in (self.flink.cep, self.flink.sql))
        asked = "how many runs of A directly followed by B there are"
        alone = {"metrics": lambda result: {"query_s": result["query_s"]}, "in_children": True}
        found["flink cep"] = Contender(cep, self.rows_of_flink, **alone)  # type: ignore[arg-type]
        found["flink sql match_recognize"] = Contender(sql, None, question=asked, **alone)  # type: ignore[arg-type]
        return found


def closed(events: int) -> OneQuestion:
    """Many groups, about seven events in a window."""
    return OneQuestion(spread(events, 5_000, 9), 300_000, closed_form=True)


def tiny(window_events: int) -> OneQuestion:
    """Ten windows of one key, two types."""
    events = spread(10 * window_events, 1, 1_000, types=2)
    return OneQuestion(events, 1_000 * window_events, recursion=True, closed_form=True)


def flinks(window_events: int) -> OneQuestion:
    """The question of this case, asked of Flink."""
    return OneQuestion(spread(10 * window_events, 1, 1_000, types=2), 1_000 * window_events, flink=True)


def _sizes(make: Any, sizes: tuple[int, ...]) -> dict[str, Any]:
    return {f"{size} events per window": partial(make, size) for size in sizes}


CASES: dict[str, Case] = {
    "duckdb-recurrence": plain(
        "SEQ(A, B+), COUNT per key over 300 s, exact, Arrow table in memory: ours, the closed form of this one pattern "
        "in DuckDB's window functions (doubles), and its GROUP BY",
        partial(closed, 10_000_000),
        partial(closed, 200_000),
        seconds=(150, 10),
    ),
    "duckdb-recursion": Case(
        "SEQ(A, B+), COUNT, ten windows of few events: ours, DuckDB's recursive CTE, which lists every trend, and its "
        "window functions",
        _sizes(tiny, (10, 20, 30, 40)),
        _sizes(tiny, (10, 16)),
        seconds=(200, 15),
        apart=True,
        timeout_s=(120, 30),
    ),
    "flink": Case(
        "SEQ(A, B+), COUNT, ten windows of few events: ours, Flink CEP (skip till any match, every trend a match), and "
        "Flink SQL MATCH_RECOGNIZE, which answers another question; times of Flink include the start of its JVM, "
        "query_s does not",
        _sizes(flinks, (10, 20, 30)),
        _sizes(flinks, (10,)),
        seconds=(900, 150),
        apart=True,
        timeout_s=(300, 120),
    ),
}
