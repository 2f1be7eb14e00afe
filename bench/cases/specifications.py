"""Stream specifications after Faymonville et al. (2019), Sections 5.1 and 5.2, beside a plain Python loop and polars.

Averages of three inputs over five seconds, at any input rate: memory must not grow with it. Reviews: a counter per
product, of products whose popularity follows a power law. Three questions that users of RTLola's interpreter ask: a sum
of two inputs, three windows, windows of a hundred instances (`bench.cases.specification_questions`).

``event by event`` is Hamlet without columns, segments, and instances found by cell.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from bench.answers import WrongAnswer, digest
from bench.cases import specification_questions as questions
from bench.subject import Answer, Case, Contender, Rows
from datasets import reviews
from hamlet.streams import Specification, run

NANOSECONDS = 1_000_000_000
WINDOW_S = 5
RATES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
AVERAGES = """input a: Float64, b: Float64, c: Float64
output x @1Hz := a.aggregate(over: 5s, using: avg).defaults(to: 0.0)
output y @1Hz := b.aggregate(over: 5s, using: avg).defaults(to: 0.0)
output z @1Hz := c.aggregate(over: 5s, using: avg).defaults(to: 0.0)
"""
MANY = 1000
REVIEWS = f"""input product: String
output count(p: String) spawn with product
    eval when product = p with count(p).offset(by: -1).defaults(to: 0) + 1
trigger (p: String) spawn with product eval when product = p && count(p) = {MANY} with "many reviews"
"""


class Averages:
    """Five-second averages of three inputs, once a second.

    Parameters
    ----------
    events : int
    rate : int
        Events per second of stream time; at the highest rates there are tenths of seconds only, and the last event is
        20 seconds later, so that deadlines come.
    """

    def __init__(self, events: int, rate: int) -> None:
        random = np.random.default_rng(1)
        times = np.arange(events, dtype=np.int64) * (NANOSECONDS // rate)
        times[-1] += 20 * NANOSECONDS
        columns = {name: random.integers(0, 1000, events).astype(np.float64) for name in "abc"}  # sums are exact
        self.table = pa.table({"time": times, **columns})
        self.spec = Specification.parse(AVERAGES)
        self.rate = rate

    def answer(self) -> Answer:
        """Check windows against sums of slices."""
        found = self._rows(self._hamlet())
        times, values = self.table["time"].to_numpy(), self.table["a"].to_numpy()
        for row in [each for each in found if each["stream"] == "x"][:: max(1, len(found) // 60)]:
            low, high = np.searchsorted(times, [row["time"] - WINDOW_S * NANOSECONDS, row["time"]], side="right")
            wanted = float(values[low:high].mean()) if high > low else 0.0
            if row["value"] != wanted:
                raise WrongAnswer(f"the average at {row['time']} is {row['value']} instead of {wanted}")
        facts = {"events": self.table.num_rows, "rate_per_s": self.rate, "rows": len(found)}
        return Answer(["averages equal means of slices of the columns"], facts, digest(found))

    def contenders(self) -> Mapping[str, Contender]:
        """Specification, loop, and polars."""
        return {
            "hamlet": Contender(self._hamlet, self._rows, metrics=lambda found: {"held_bytes": found.stats["bytes"]}),
            "event by event": Contender(partial(self._hamlet, features=""), self._rows),
            "python loop": Contender(self._loop, lambda rows: rows),
            "polars": Contender(self._polars, lambda rows: rows),
        }

    def _hamlet(self, features: str | None = None) -> Any:
        return run(self.spec, self.table, values=True, time_unit="ns", features=features)

    @staticmethod
    def _rows(found: Any) -> Rows:
        rows: Rows = found.rows()
        return rows

    def _loop(self) -> Rows:
        """Queues of all values of the last seconds, and sums."""
        rows: Rows = []
        queue: deque[tuple[int, float, float, float]] = deque()
        sums, due = [0.0, 0.0, 0.0], NANOSECONDS
        columns = (self.table[name].to_pylist() for name in ("time", "a", "b", "c"))
        for event in zip(*columns, strict=True):
            while due < event[0]:
                while queue and queue[0][0] <= due - WINDOW_S * NANOSECONDS:
                    old = queue.popleft()
                    sums = [value - gone for value, gone in zip(sums, old[1:], strict=True)]
                for name, value in zip("xyz", sums, strict=True):
                    rows.append({"stream": name, "time": due, "value": value / len(queue) if queue else 0.0})
                due += NANOSECONDS
            queue.append(event)
            sums = [value + new for value, new in zip(sums, event[1:], strict=True)]
        return rows

    def _polars(self) -> Rows:
        """Sums by second, then over five of them."""
        frame = pl.from_arrow(self.table)
        assert isinstance(frame, pl.DataFrame)
        second = ((pl.col("time") - 1) // NANOSECONDS + 1).clip(lower_bound=1).alias("second")
        panes = frame.group_by(second).agg(pl.col("a", "b", "c").sum(), pl.len().alias("n"))
        last = (int(self.table["time"][-1].as_py()) - 1) // NANOSECONDS
        grid = pl.DataFrame({"second": np.arange(1, last + 1)}).join(panes, on="second", how="left").fill_null(0)
        rolled = grid.sort("second").with_columns(pl.col("a", "b", "c", "n").rolling_sum(WINDOW_S, min_samples=1))
        rows: Rows = []
        for at, *sums, n in rolled.iter_rows():
            for name, value in zip("xyz", sums, strict=True):
                rows.append({"stream": name, "time": at * NANOSECONDS, "value": value / n if n else 0.0})
        return rows


class Reviews:
    """A counter per product, and a trigger at its thousandth review.

    Parameters
    ----------
    events, products : int
    """

    def __init__(self, events: int, products: int) -> None:
        self.table = reviews.generate(events, products).select(["time", "product"])
        self.spec = Specification.parse(REVIEWS)

    def answer(self) -> Answer:
        """Check against counts by product."""
        found = self._rows(self._hamlet())
        counts = self.table["product"].value_counts().to_pylist()
        wanted = {each["values"] for each in counts if each["counts"] >= MANY}
        if {row["p"] for row in found} != wanted or len(found) != len(wanted):
            raise WrongAnswer(f"{len(found)} products have {MANY} reviews instead of {len(wanted)}")
        facts = {"events": self.table.num_rows, "products": len(counts), "rows": len(found)}
        return Answer(["products with many reviews are those of a group-by"], facts, digest(found))

    def contenders(self) -> Mapping[str, Contender]:
        """Specification, loop, and polars."""
        return {
            "hamlet": Contender(self._hamlet, self._rows, metrics=self._memory),
            "event by event": Contender(partial(self._hamlet, features=""), self._rows),
            "python loop": Contender(self._loop, lambda rows: rows),
            "polars": Contender(self._polars, lambda rows: rows),
        }

    @staticmethod
    def _memory(found: Any) -> Mapping[str, float]:
        held, taken = found.stats["bytes"], found.stats["allocated"]
        products = max(1, found.stats["instances"] // 2)  # a counter and a trigger each
        return {"held_bytes": held, "held_bytes_per_product": held / products, "bytes_per_product": taken / products}

    def _hamlet(self, features: str | None = None) -> Any:
        return run(self.spec, self.table, features=features)

    @staticmethod
    def _rows(found: Any) -> Rows:
        rows: Rows = found.rows()
        return rows

    def _loop(self) -> Rows:
        counts: dict[str, int] = {}
        rows: Rows = []
        for time, product in zip(self.table["time"].to_pylist(), self.table["product"].to_pylist(), strict=True):
            count = counts[product] = counts.get(product, 0) + 1
            if count == MANY:
                rows.append({"trigger": "many reviews", "time": time, "p": product})
        return rows

    def _polars(self) -> Rows:
        frame = pl.from_arrow(self.table)
        assert isinstance(frame, pl.DataFrame)
        found = frame.filter(pl.col("product").cum_count().over("product") == MANY)
        return [{"trigger": "many reviews", "time": time, "p": product} for time, product in found.iter_rows()]


CASES: dict[str, Case] = {
    "spec-averages": Case(
        "Specification: five-second averages of three inputs at rates of 10^3 to 10^7 events per second, 1 M events",
        {f"{rate:,} per second": partial(Averages, 1_000_000, rate) for rate in RATES},
        {f"{rate:,} per second": partial(Averages, 50_000, rate) for rate in RATES[:2]},
        (120, 10),
    ),
    "spec-reviews": Case(
        "Specification: reviews counted by product, 7 M events, 500,000 products; and 2.3 M products",
        {
            "500,000 products": partial(Reviews, 7_000_000, 500_000),
            "2,300,000 products": partial(Reviews, 7_000_000, 2_300_000),
        },
        {"5,000 products": partial(Reviews, 100_000, 5_000)},
        (240, 10),
    ),
    **questions.CASES,
}
