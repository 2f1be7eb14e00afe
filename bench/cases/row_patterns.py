"""Row patterns in SQL: a V-shape beside the columns that it reads, a hundred statements beside one, and blow-ups.

The V-shape runs over partitions of a random walk; DuckDB computes and sorts the same Boolean columns with `lag` over
the partitions, and Spark exchanges, sorts and counts the same rows. The patterns that make a backtracking matcher
explode run over rows that fail at the end.

Flink runs in batch mode, in the Python that HAMLET_FLINK_PYTHON names: apache-flink asks for older packages than these
benchmarks have, so it needs an environment of its own (`pip install apache-flink`, 2.3.0 was measured).
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from bench.answers import WrongAnswer
from bench.subject import Answer, Case, Contender
from hamlet.matching import Matcher
from hamlet.patterns import sql

_CHECKED = 20  # partitions that are matched by a loop, too
_LAG = """SELECT symbol, ts, price < lag(price) OVER w AS dip, price > lag(price) OVER w AS climb
FROM ticks WINDOW w AS (PARTITION BY symbol ORDER BY ts) ORDER BY symbol, ts"""
FAILING = {"a+ b": "a+ b", "(a+)+ b": "(a+)+ b", "(a|a)* b": "(a|a)* b", "a?{30} a{30} b": "(a?){30} a{30} b"}


def v_shape(least: int = 1, above: int = 0) -> str:
    """A statement that finds V-shapes."""
    return f"""SELECT symbol, started, ended, len FROM ticks MATCH_RECOGNIZE (
        PARTITION BY symbol ORDER BY ts
        MEASURES FIRST(ts) AS started, LAST(climb.ts) AS ended, COUNT(*) AS len
        PATTERN (onset dip{{{least},}} climb+)
        DEFINE dip AS price < PREV(price), climb AS price > PREV(price) + {above})"""


def walks(rows: int, partitions: int) -> pa.Table:
    """Random walks in the order of time, not of partitions."""
    dice = np.random.default_rng(0)
    each = rows // partitions
    price = 100 + np.cumsum(dice.integers(-3, 4, (each, partitions)), axis=0)
    symbols = np.tile(np.arange(partitions), each)
    return pa.table({"symbol": symbols, "ts": np.repeat(np.arange(each), partitions), "price": price.reshape(-1)})


class VShape:
    """One statement, or a hundred, over one table.

    Parameters
    ----------
    rows, partitions : int
    statements : int
    """

    def __init__(self, rows: int, partitions: int, statements: int) -> None:
        self._table, self._partitions, self._statements = walks(rows, partitions), partitions, statements

    def answer(self) -> Answer:
        """Match the first partitions by a loop."""
        few = self._table.filter(pa.compute.less(self._table["symbol"], _CHECKED))
        found = sorted((row["symbol"], row["started"], row["ended"]) for row in sql(v_shape(), {"ticks": few}).rows())
        expected = []
        for symbol in range(min(_CHECKED, self._partitions)):
            prices = few.filter(pa.compute.equal(few["symbol"], symbol))["price"].to_pylist()
            expected += [(symbol, *each) for each in _shapes(prices)]
        if found != expected:
            raise WrongAnswer(f"{len(found)} shapes, and {len(expected)} by a loop")
        facts = {"events": self._table.num_rows, "statements": self._statements, "partitions": self._partitions}
        return Answer([f"{len(found)} shapes in {_CHECKED} partitions, by both"], facts)

    def contenders(self) -> Mapping[str, Contender]:
        """The statements, and DuckDB computing and sorting the columns that one of them reads."""
        texts = [v_shape(1 + place % 5, place // 5) for place in range(self._statements)]
        text = ";".join(texts)
        return {
            "hamlet": Contender(partial(sql, text, {"ticks": self._table}), None, question="matches are counted"),
            "columns": Contender(self._columns, None, question="the columns that one statement reads, sorted"),
        }

    def _columns(self) -> Any:
        import duckdb

        connection = duckdb.connect()
        connection.register("ticks", self._table)
        return connection.sql(_LAG).to_arrow_table()


def _shapes(prices: list[int]) -> list[tuple[int, int]]:
    """First and last rows of the V-shapes of one partition."""
    found, start = [], 0
    while start < len(prices):
        place = start + 1
        while place < len(prices) and prices[place] < prices[place - 1]:
            place += 1
        low = place
        while place < len(prices) and prices[place] > prices[place - 1]:
            place += 1
        if low > start + 1 and place > low:
            found.append((start, place - 1))
            start = place
        else:
            start += 1
    return found


class OnSpark:
    """The V-shape as a job over a Parquet file, beside a job that exchanges, sorts and counts the same rows.

    Parameters
    ----------
    rows, partitions : int
    tasks : int
        At a time.
    """

    def __init__(self, rows: int, partitions: int, tasks: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self._input, self._rows, self._tasks = Path(self._folder.name) / "ticks.parquet", rows, tasks
        pq.write_table(walks(rows, partitions), self._input, row_group_size=250_000)

    @cached_property
    def _spark(self) -> Any:
        from bench.peers import spark_programme

        return spark_programme.session(self._tasks)

    def answer(self) -> Answer:
        """As many matches as in process, and all rows counted."""
        expected = len(sql(v_shape(), {"ticks": str(self._input)}))
        found, counted = self._matched(), self._counted()
        if found != expected or counted != self._rows:
            raise WrongAnswer(f"{found:,} shapes and {expected:,} in process; {counted:,} of {self._rows:,} rows")
        checks = [f"{found:,} shapes, on Spark and in process; the floor counts every row"]
        return Answer(checks, {"events": self._rows, "tasks": self._tasks})

    def contenders(self) -> Mapping[str, Contender]:
        """The job, and the floor."""
        asked = "how many rows there are, after the same read, exchange and sort"
        return {
            "hamlet spark": Contender(self._matched, None, in_children=True, question="matches are counted"),
            "spark floor": Contender(self._counted, None, in_children=True, question=asked),
        }

    def _matched(self) -> int:
        import hamlet.spark

        ticks = self._spark.read.parquet(str(self._input))
        return int(hamlet.spark.sql(v_shape(), {"ticks": ticks}).count())

    def _counted(self) -> int:
        from bench.peers import spark_programme

        floor = spark_programme.Floor(self._spark, self._input, ("symbol", "ts", "price"), "symbol", "ts")
        return floor.run()


_STRICT = """SELECT * FROM ticks MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY ts
    MEASURES A.v AS va, C.v AS vc ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B C)
    DEFINE A AS A.v < 20, B AS B.v >= 20 AND B.v < 60, C AS C.v >= 60)"""


class BesideFlink:
    """A strict sequence over a CSV file, the same text in both.

    Parameters
    ----------
    rows : int
    """

    def __init__(self, rows: int) -> None:
        self._python = os.environ.get("HAMLET_FLINK_PYTHON")
        self._folder, self._rows = tempfile.TemporaryDirectory(prefix="hamlet-bench-"), rows
        dice = np.random.default_rng(0)
        times = np.datetime64("2024-01-01", "ms") + 10 * np.arange(rows).astype("timedelta64[ms]")
        values = {"symbol": dice.integers(0, 1000, rows), "ts": pa.array(times), "v": dice.integers(0, 100, rows)}
        self._ours, self._theirs = (Path(self._folder.name) / f"{name}.csv" for name in ("ours", "theirs"))
        csv.write_csv(pa.table(values), self._ours)
        csv.write_csv(pa.table(values), self._theirs, csv.WriteOptions(include_header=False))

    def answer(self) -> Answer:
        """As many matches in both."""
        found = self._match()
        checks = [f"{found:,} matches"]
        if self._python is not None:
            theirs = int(self._flink()["rows"])
            if theirs != found:
                raise WrongAnswer(f"{found:,} matches, and {theirs:,} of Flink")
            checks = [f"{found:,} matches, and as many of Flink"]
        return Answer(checks, {"events": self._rows})

    def contenders(self) -> Mapping[str, Contender]:
        """Both from a file to the number of matches; Flink's session is there before."""
        asked = "matches are counted"
        found = {"hamlet": Contender(self._match, None, question=asked)}
        if self._python is not None:
            found["flink"] = Contender(self._flink, None, in_children=True, metrics=_same, question=asked)
        return found

    def _match(self) -> int:
        return len(sql(_STRICT, {"ticks": str(self._ours)}))

    def _flink(self) -> dict[str, float]:
        """The seconds of the job, of its processor time, and its rows."""
        program = Path(__file__).parents[1] / "peers" / "flink_rows.py"
        call = [str(self._python), str(program), str(self._theirs), _STRICT]
        done = subprocess.run(call, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": ""})
        seconds, processor, rows = map(float, done.stdout.split()[-3:])
        return {"job_s": seconds, "processor_s": processor, "rows": rows}


def _same(found: dict[str, float]) -> dict[str, float]:
    """Numbers that a run gave of itself."""
    return found


class Sized:
    """A statement over a table of an unusual size or shape, whose number of matches is known.

    Parameters
    ----------
    rows, partitions : int
    pattern : str
        Of `a` (every row but each hundredth of a partition) and `b` (those).
    matches : int
        How many there are.
    """

    def __init__(self, rows: int, partitions: int, pattern: str, define: str, matches: int) -> None:
        place = np.arange(rows)
        self._table = pa.table({"k": place % partitions, "i": place, "v": place // partitions % 100})
        self._text = f"""SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES COUNT(*) AS n
            PATTERN ({pattern}) DEFINE {define})"""
        self._matches, self._partitions = matches, partitions

    def answer(self) -> Answer:
        """As many matches as the rows are made for."""
        found = len(sql(self._text, {"t": self._table}))
        if found != self._matches:
            raise WrongAnswer(f"{found:,} matches instead of {self._matches:,}")
        return Answer([f"{found:,} matches"], {"events": self._table.num_rows, "partitions": self._partitions})

    def contenders(self) -> Mapping[str, Contender]:
        """The statement."""
        return {"hamlet": Contender(partial(sql, self._text, {"t": self._table}), None, question="matches are counted")}


_ENDS = "a AS v <> 99, b AS v = 99"


def _many(count: int) -> tuple[str, str]:
    """A pattern of many variables, one row each, and what they take."""
    return " ".join(f"x{i}" for i in range(count)), ", ".join(f"x{i} AS v = {i % 100}" for i in range(count))


def _sizes(rows: int) -> dict[str, Any]:
    found = {
        "one partition": partial(Sized, 10 * rows, 1, "a+ b", _ENDS, rows // 10),
        "partitions of ten": partial(Sized, 10 * rows, rows, "a+ $", "a AS v < 100", rows),
        "{1,100000}": partial(Sized, rows // 10, 1, "a{1,100000} b", "a AS v >= 0, b AS v = 99", 1),
        "{1,100000}, twice the rows": partial(Sized, rows // 5, 1, "a{1,100000}? b", _ENDS, rows // 500),
    }
    for count in (63, 200):
        found[f"{count} variables"] = partial(Sized, rows, 1, *_many(count), rows // (100 * -(-count // 100)))
    return found


class Failing:
    """A pattern over rows that fail at the end.

    Parameters
    ----------
    pattern : str
    rows : int
    """

    def __init__(self, pattern: str, rows: int) -> None:
        self._text = f"""SELECT * FROM t MATCH_RECOGNIZE (ORDER BY i MEASURES COUNT(*) AS n PATTERN ({pattern})
            DEFINE a AS v = 1, b AS v = 2)"""
        self._table = pa.table({"i": np.arange(rows), "v": np.ones(rows, np.int64)})

    def answer(self) -> Answer:
        """There is no match, and one where the last row fits."""
        rows = self._table.num_rows
        if len(sql(self._text, {"t": self._table})):
            raise WrongAnswer("a match without its last row")
        fitting = self._table.slice(0, 100).set_column(1, "v", pa.array([1] * 99 + [2]))
        if sql(self._text, {"t": fitting}).rows() != [{"n": 100}] and "{30}" not in self._text:
            raise WrongAnswer("no match where the last row fits")
        return Answer(["no match, and one of 100 rows where the last row fits"], {"events": rows})

    def contenders(self) -> Mapping[str, Contender]:
        """The pattern."""
        return {"hamlet": Contender(partial(sql, self._text, {"t": self._table}), None, question="there is no match")}


class Pushed:
    """A V-shape over rows that are pushed one by one, which the kernel takes without the host.

    Parameters
    ----------
    rows, partitions : int
    """

    def __init__(self, rows: int, partitions: int) -> None:
        self._table = walks(rows, partitions)
        self._rows = self._table.to_pylist()

    def answer(self) -> Answer:
        """All rows are those of a run over the table."""
        found = sorted(map(str, self._push()))
        expected = sorted(map(str, sql(v_shape(), {"ticks": self._table}).rows()))
        if found != expected:
            raise WrongAnswer(f"{len(found)} shapes of pushed rows, and {len(expected)} of a run")
        return Answer([f"{len(found)} shapes, pushed and at once"], {"events": len(self._rows)})

    def contenders(self) -> Mapping[str, Contender]:
        """One row a push."""
        return {"hamlet": Contender(self._push, None, question="matches are counted")}

    def _push(self) -> list[dict[str, Any]]:
        matcher = Matcher(v_shape(), self._table.schema)
        found: list[dict[str, Any]] = []
        for row in self._rows:
            found += matcher.push(row)
        return found + matcher.close()


def _failing(rows: int) -> dict[str, Any]:
    return {f"{name}, {count} rows": partial(Failing, text, count) for name, text in FAILING.items()
            for count in (rows // 2, rows)}  # fmt: skip


CASES = {
    "row-patterns": Case(
        "a V-shape over 2 M rows in 10,000 partitions, one statement and a hundred, beside DuckDB's lag columns",
        {"one": partial(VShape, 2_000_000, 10_000, 1), "hundred": partial(VShape, 2_000_000, 10_000, 100)},
        {"one": partial(VShape, 20_000, 100, 1), "hundred": partial(VShape, 20_000, 100, 100)},
        seconds=(300, 60),
    ),
    "row-patterns-spark": Case(
        "the V-shape on Spark with one task and with two, beside a job that exchanges, sorts and counts the same rows",
        {f"{tasks} at a time": partial(OnSpark, 2_000_000, 10_000, tasks) for tasks in (1, 2)},
        {"2 at a time": partial(OnSpark, 20_000, 100, 2)},
        seconds=(170, 60),
        apart=True,
    ),
    "row-patterns-flink": Case(
        "a strict sequence over 1 M rows of CSV, beside Flink in batch mode, the same text",
        {"strict": partial(BesideFlink, 1_000_000)},
        {"strict": partial(BesideFlink, 10_000)},
        seconds=(170, 60),
    ),
    "row-patterns-sizes": Case(
        "one partition of 10 M rows, a million of ten, counting to 100,000, 63 and 200 variables",
        _sizes(1_000_000),
        _sizes(10_000),
        seconds=(170, 30),
    ),
    "row-patterns-pushed": Case(
        "a V-shape over 200,000 rows that are pushed one by one, in 10 partitions",
        {"pushed": partial(Pushed, 200_000, 10)},
        {"pushed": partial(Pushed, 2_000, 2)},
        seconds=(60, 20),
    ),
    "row-patterns-failing": Case(
        "patterns that blow up where a matcher turns back, over rows that fail at the end",
        _failing(1_000_000),
        _failing(20_000),
        seconds=(300, 60),
    ),
}
