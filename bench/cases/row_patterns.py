"""Row patterns in SQL: a V-shape beside the columns that it reads, a hundred statements beside one, and blow-ups.

The V-shape runs over partitions of a random walk; DuckDB computes and sorts the same Boolean columns with `lag` over
the partitions. The patterns that make a backtracking matcher explode run over rows that fail at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

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
