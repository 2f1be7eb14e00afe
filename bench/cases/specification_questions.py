"""Three small specifications beside a plain Python loop and polars: a sum, three windows, a hundred instances."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from bench.answers import WrongAnswer, digest
from bench.subject import Answer, Case, Contender, Rows
from hamlet.streams import Specification, run

MILLISECONDS = 1000  # a second of stream time; an event comes every millisecond
LENGTH_S = 10
USERS = 100
RARE = 990
SUM = f"""input a: Int64, b: Int64
output total := a + b
trigger total > {2 * RARE} "both are large"
"""
WINDOWS = f"""input a: Float64
output n @1Hz := a.aggregate(over: {LENGTH_S}s, using: count)
output total @1Hz := a.aggregate(over: {LENGTH_S}s, using: sum)
output most @1Hz := a.aggregate(over: {LENGTH_S}s, using: max).defaults(to: 0.0)
"""
HUNDRED = f"""input user: Int64, a: Float64
output of(u: Int64) spawn with user eval @(user && a) when u = user with a
output mean(u: Int64) spawn with user
    eval @Global(1Hz) with of(u).aggregate(over: {LENGTH_S}s, using: avg).defaults(to: 0.0)
trigger (u: Int64) spawn with user eval @Global(1Hz) when mean(u) > 600.0 with "high"
"""


class _Question:
    """A specification over random events, one a millisecond.

    Parameters
    ----------
    events : int
    """

    text = ""
    values = False

    def __init__(self, events: int) -> None:
        random = np.random.default_rng(1)
        numbers = {name: random.integers(0, 1000, events) for name in ("a", "b")}
        self.table = pa.table(
            {
                "time": np.arange(1, events + 1, dtype=np.int64),  # none at the start, which no window holds
                "user": random.integers(0, USERS, events),
                "a": numbers["a"] if self.text is SUM else numbers["a"].astype(np.float64),  # sums are exact
                "b": numbers["b"],
            }
        )
        self.spec = Specification.parse(self.text)
        self.table = self.table.select(["time", *(each.name for each in self.spec.inputs)])

    def answer(self) -> Answer:
        """Rows that polars finds as well."""
        found, wanted = self._rows(self._hamlet()), self._polars()
        if sorted(map(repr, found)) != sorted(map(repr, wanted)):
            raise WrongAnswer(f"{len(found)} rows, and polars has {len(wanted)}; or their values differ")
        return Answer(
            [f"all {len(found):,} rows equal those of polars"],
            {"events": self.table.num_rows, "rows": len(found)},
            digest(found),
        )

    def contenders(self) -> Mapping[str, Contender]:
        """Specification with and without columns, loop, and polars."""
        return {
            "hamlet": Contender(self._hamlet, self._rows),
            "event by event": Contender(partial(self._hamlet, features=""), self._rows),
            "python loop": Contender(self._loop, lambda rows: rows),
            "polars": Contender(self._polars, lambda rows: rows),
        }

    def _hamlet(self, features: str | None = None) -> Any:
        return run(self.spec, self.table, values=self.values, start=0, time_unit="ms", features=features)

    @staticmethod
    def _rows(found: Any) -> Rows:
        rows: Rows = found.rows()
        return rows

    def _loop(self) -> Rows:
        raise NotImplementedError

    def _polars(self) -> Rows:
        raise NotImplementedError

    def _frame(self) -> pl.DataFrame:
        frame = pl.from_arrow(self.table)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def _seconds(self) -> tuple[pl.Expr, int]:
        """The deadline that reads an event first, in seconds, and the last deadline that events pass."""
        second = ((pl.col("time") - 1) // MILLISECONDS + 1).alias("second")
        return second, (self.table.num_rows - 1) // MILLISECONDS


class Sum(_Question):
    """A sum of two inputs, and a trigger that fires rarely."""

    text = SUM

    def _loop(self) -> Rows:
        rows: Rows = []
        for time, a, b in zip(*(self.table[name].to_pylist() for name in ("time", "a", "b")), strict=True):
            if a + b > 2 * RARE:
                rows.append({"trigger": "both are large", "time": time})
        return rows

    def _polars(self) -> Rows:
        found = self._frame().filter(pl.col("a") + pl.col("b") > 2 * RARE)
        return [{"trigger": "both are large", "time": time} for time in found["time"]]


class Windows(_Question):
    """How many, how much and the most of ten seconds, once a second."""

    text = WINDOWS
    values = True

    def _loop(self) -> Rows:
        rows: Rows = []
        queue: deque[tuple[int, float]] = deque()
        total, due = 0.0, MILLISECONDS
        for time, a in zip(self.table["time"].to_pylist(), self.table["a"].to_pylist(), strict=True):
            while due < time:
                while queue and queue[0][0] <= due - LENGTH_S * MILLISECONDS:
                    total -= queue.popleft()[1]
                most = max((value for _, value in queue), default=0.0)
                rows += self._made(due // MILLISECONDS, len(queue), total, most)
                due += MILLISECONDS
            queue.append((time, a))
            total += a
        return rows

    def _polars(self) -> Rows:
        second, last = self._seconds()
        panes = self._frame().group_by(second).agg(pl.len().alias("n"), pl.sum("a"), pl.max("a").alias("most"))
        grid = pl.DataFrame({"second": np.arange(1, last + 1)}).join(panes, on="second", how="left").fill_null(0)
        rolled = grid.sort("second").with_columns(
            pl.col("n", "a").rolling_sum(LENGTH_S, min_samples=1),
            pl.col("most").rolling_max(LENGTH_S, min_samples=1),
        )
        return [row for each in rolled.iter_rows() for row in self._made(each[0], each[1], each[2], each[3])]

    @staticmethod
    def _made(second: int, n: int, total: float, most: float) -> Rows:
        values = {"n": n, "total": total, "most": most}
        return [{"stream": name, "time": second * MILLISECONDS, "value": value} for name, value in values.items()]


class Hundred(_Question):
    """A window for each of a hundred users, read once a second."""

    text = HUNDRED

    def _loop(self) -> Rows:
        rows: Rows = []
        queues: dict[int, deque[tuple[int, float]]] = {}
        sums: dict[int, float] = {}
        due = MILLISECONDS
        for time, user, a in zip(*(self.table[name].to_pylist() for name in ("time", "user", "a")), strict=True):
            while due < time:
                for key, queue in queues.items():
                    while queue and queue[0][0] <= due - LENGTH_S * MILLISECONDS:
                        sums[key] -= queue.popleft()[1]
                    if queue and sums[key] / len(queue) > 600.0:
                        rows.append({"trigger": "high", "time": due, "u": key})
                due += MILLISECONDS
            queues.setdefault(user, deque()).append((time, a))
            sums[user] = sums.get(user, 0.0) + a
        return rows

    def _polars(self) -> Rows:
        second, last = self._seconds()
        panes = self._frame().group_by("user", second).agg(pl.sum("a"), pl.len().alias("n"))
        users = panes.select(pl.col("user").unique())
        grid = users.join(pl.DataFrame({"second": np.arange(1, last + 1)}), how="cross")
        grid = grid.join(panes, on=["user", "second"], how="left").fill_null(0).sort("user", "second")
        rolled = grid.with_columns(pl.col("a", "n").rolling_sum(LENGTH_S, min_samples=1).over("user"))
        high = rolled.filter((pl.col("n") > 0) & (pl.col("a") / pl.col("n") > 600.0)).sort("second")
        return [
            {"trigger": "high", "time": second * MILLISECONDS, "u": user}
            for user, second in high.select("user", "second").iter_rows()
        ]


CASES: dict[str, Case] = {
    "spec-questions": Case(
        "Specification: a sum of two inputs, three windows, windows of a hundred instances, 1 M events",
        {
            "sum": partial(Sum, 1_000_000),
            "three windows": partial(Windows, 1_000_000),
            "hundred instances": partial(Hundred, 1_000_000),
        },
        {
            "sum": partial(Sum, 50_000),
            "three windows": partial(Windows, 50_000),
            "hundred instances": partial(Hundred, 50_000),
        },
        (120, 10),
    ),
}
