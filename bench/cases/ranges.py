"""Spark over a file in the order of time: matrices of time ranges in place of events, and one giant group.

All are `hamlet.spark.submit` in one local session; starting it is not timed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hamlet
from bench import answers, streams
from bench.answers import WrongAnswer
from bench.subject import Answer, Case, Contender, Points, Rows, rows_written
from bench.workloads import RIDES
from hamlet.engine.options import Numbers

CORES = 2
ROW_GROUP = 250_000
DAY_MS = 86_400_000
SLIDE = 60_000
AROUND = 6 * SLIDE  # more than a window before and after
SLICES, SLICE_EVENTS = 40, 10

Written = tuple[Path, dict[str, Any], int]  # output, what `submit` says, bytes shuffled


class TimeRanges:
    """One Parquet file in the order of time, a day of rides.

    Parameters
    ----------
    events : int
    groups : int
        Districts; 0: no grouping.
    """

    def __init__(self, events: int, groups: int = 0) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.folder = Path(self._folder.name)
        self.input = self.folder / "rides.parquet"
        random = np.random.default_rng(1)
        kinds = np.array(["Request", "Travel", "Pool", "Dropoff"])
        columns = {
            "time": np.sort(random.integers(0, DAY_MS, events)),
            "type": kinds[random.choice(4, events, p=(0.1, 0.7, 0.1, 0.1))],
            "district": random.integers(0, max(1, groups), events).astype(np.int32),
            "speed": random.random(events) * 60,
        }
        pq.write_table(pa.table(columns), self.input, row_group_size=ROW_GROUP)
        self.events, by = events, "GROUP-BY district " if groups else ""
        returned = f"RETURN {'district, ' if groups else ''}LOG2(COUNT(*)), AVG(Travel.speed)"
        text = "".join(f"{returned} PATTERN {each} {by}WITHIN 5 min SLIDE 1 min;\n" for each in RIDES)
        self.workload = hamlet.Workload.parse(text)
        self._seen: set[tuple[int, int]] = set()

    @cached_property
    def spark(self) -> Any:
        """The session."""
        from bench.peers import spark_programme

        return spark_programme.session(CORES)

    def submit(self, products: Literal["auto", "always", "never"], *, balance: bool = False) -> Written:
        """Run the job, and count the bytes that its shuffles wrote."""
        import hamlet.spark
        from bench.peers import spark_programme

        assert self.spark is not None  # the job runs in the session that is there
        output = self.folder / f"{products}-{balance}"
        stats = hamlet.spark.submit(
            self.workload,
            str(self.input),
            str(output),
            overwrite=True,
            products=products,
            balance=balance,
            numbers="float",
            time_unit="ms",
        )
        if stats["products"]["used"] != (products != "never"):
            raise WrongAnswer(f"products={products}: {stats['products']['reason']}")
        return output, stats, spark_programme.shuffled_bytes(self.spark, self._seen)

    def rows(self, found: Written) -> Rows:
        """The rows that a job wrote."""
        return rows_written(found[0], self.workload.names)

    def run(self, events: Path | pa.Table, numbers: Numbers) -> Rows:
        """All result rows of `hamlet.run`, in this process."""
        return hamlet.run(self.workload, events, time_unit="ms", numbers=numbers).rows()

    @cached_property
    def expected(self) -> Rows:
        """The rows of the whole file in one process, in floating point."""
        return self.run(self.input, "float")

    def check(self, found: Written) -> None:
        """Compare all numbers that a job wrote with those of one process."""
        named = (f"hamlet submit, {found[0].name}", "hamlet.run")
        answers.compare(self.workload.analysis.text, self.rows(found), self.expected, named)

    def answer(self) -> Answer:
        """All rows of both jobs against one process; these, in parts of the file, against exact numbers and GRETA.

        Exact numbers of one group have 24,000 bits, so that the whole file with them takes many minutes.
        """
        text, events = self.workload.analysis.text, pq.read_table(self.input)
        for products in ("never", "always"):
            found = self.submit(products)
            self.check(found)
        checks = [f"all {len(self.expected):,} rows of both jobs equal those of one process in floating point"]
        compared, read = 0, 0
        pieces = self.key_runs(events, found[1]["products"]["ranges"])
        for begin, end, piece in pieces:
            exact = self.run(piece, "exact")
            whole, ours = ([row for row in rows if _within(row, begin, end)] for rows in (exact, self.expected))
            answers.compare(text, ours, whole, ("float, the whole file", f"exact, from {begin} to {end} ms"))
            compared, read = compared + len(whole), read + len(piece)
        checks.append(
            f"{compared:,} rows of {len(pieces)} key_runs of whole windows with {read:,} events, at both ends, within "
            "every range and where two meet, equal those of exact numbers"
        )
        checks.append(answers.check_greta(self.workload, piece, exact, "at the end", time_unit="ms"))
        said = answers.check_slices(
            self.workload, events, "district", slices=SLICES, length=SLICE_EVENTS, numbers="float", time_unit="ms"
        )
        sizes = answers.sizes(text, self.events, self.expected)
        return Answer([*checks, said], {**sizes, "numbers": "float", "cores": CORES}, answers.digest(self.expected))

    @staticmethod
    def key_runs(events: pa.Table, ranges: int) -> list[tuple[int, int, pa.Table]]:
        """Some minutes of the file around both of its ends, the borders of its ranges and the middle of each.

        Returns
        -------
        list of (int, int, pyarrow.Table)
            Edges in milliseconds, multiples of a minute, and the events between them.
        """
        times = events["time"].to_numpy()
        found = []
        for number in range(2 * ranges + 1):
            middle = int(times[min(len(times) - 1, number * len(times) // (2 * ranges))]) // SLIDE * SLIDE
            edges = (middle - AROUND, middle + AROUND)
            first, last = np.searchsorted(times, edges)
            found.append((*edges, events.slice(first, last - first)))
        return found

    def contenders(self) -> Mapping[str, Contender]:
        """Matrices first; memory is that of the JVM and all workers."""
        found = {
            "matrices": partial(self.submit, "always"),
            "matrices, if estimated": partial(self.submit, "auto"),
            "events shuffled": partial(self.submit, "never"),
            "events shuffled, --balance": partial(self.submit, "never", balance=True),
        }
        if self.events < streams.FULL // 10:  # so few that the estimate says no
            del found["matrices, if estimated"]
        return {
            name: Contender(run, self.rows, in_children=True, metrics=_sizes, check=self.check)
            for name, run in found.items()
        }


def _sizes(found: Written) -> dict[str, float]:
    return {"shuffled_bytes": float(found[2])}


def _within(row: Mapping[str, Any], begin: int, end: int) -> bool:
    """Whether a run of the file holds every event of a row's window."""
    return (row["window_start"] >= begin or begin <= 0) and (row["window_end"] <= end or end >= DAY_MS)


def _points(events: int) -> Points:
    return {"one group": partial(TimeRanges, events), "twelve groups": partial(TimeRanges, events, 12)}


CASES: dict[str, Case] = {
    "spark-time-ranges": Case(
        "Spark, 10 million events in the order of time in one Parquet file, three queries WITHIN 5 min SLIDE 1 min, "
        "float: tasks send matrices of their ranges of time, or all events; bytes shuffled",
        _points(streams.FULL),
        _points(30_000),
        seconds=(600, 100),
    ),
}
