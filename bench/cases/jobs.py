"""Spark: our job beside the floor of any such job, and beside the programme that one would write by hand.

All are plans in one local session; starting it is not timed. Results are written as Parquet, except the floor's.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq

import hamlet
from bench import streams, workloads
from bench.answers import WrongAnswer, digest
from bench.subject import Answer, Case, Contender, Rows
from hamlet.engine.options import Numbers
from hamlet.output.digits import integer_of

CORES = 2
TUMBLING, SLIDING = (300_000, 300_000), (1_800_000, 60_000)


def _programme() -> Any:
    """The module that imports pyspark, loaded only inside the worker of such a case."""
    from bench.peers import spark_programme

    return spark_programme


def fifty() -> list[tuple[str, tuple[str, str, str]]]:
    """The programme's queries: those of `workloads.long_bursts_fifty` without the sums."""
    found = []
    for number, (x, y, z, pattern) in enumerate(workloads.long_bursts_patterns(), 1):
        shape = f"until {z}" if z else "nested" if pattern.endswith("))+") else "plus"
        found.append((f"q{number}", (shape, x, y)))
    return found


class Jobs:
    """Our Spark job, the hand-written programme and the floor over one Parquet file of long bursts.

    Parameters
    ----------
    events : int
    queries : int
        Of the fifty.
    window : (int, int)
        WITHIN and SLIDE in milliseconds.
    each : bool
        Whether the programme runs one job per query, too.
    floor : bool
        Whether the floor takes part, and not the programme.
    """

    def __init__(
        self,
        events: int,
        queries: int = 50,
        window: tuple[int, int] = TUMBLING,
        *,
        each: bool = False,
        floor: bool = False,
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.folder = Path(self._folder.name)
        self.input = self.folder / "events.parquet"
        self.count = events
        table = streams.long_bursts(events).select(["time", "type", "key", "value"])
        table = table.set_column(1, "type", table["type"].cast("string"))
        pq.write_table(table, self.input, row_group_size=1_000_000)
        self.asked, self.window, self.each, self.floor = fifty()[:queries], window, each, floor
        within, slide = window
        self.workload = hamlet.Workload.parse(
            "".join(
                f"RETURN key, COUNT(*) PATTERN {pattern} GROUP-BY key WITHIN {within} ms SLIDE {slide} ms;\n"
                for *_, pattern in workloads.long_bursts_patterns()[:queries]
            )
        )

    @cached_property
    def spark(self) -> Any:
        """The session."""
        return _programme().session(CORES)

    @cached_property
    def programme(self) -> Any:
        """The hand-written one."""
        return _programme().Programme(self.spark, self.input, *self.window)

    def ours(self) -> Path:
        """Our job, written as Parquet."""
        import hamlet.spark

        numbers = "float" if self.floor else "exact"
        events = self.spark.read.parquet(str(self.input))
        found = hamlet.spark.run(self.workload, events, lazy=True, time_unit="ms", numbers=cast(Numbers, numbers))
        found.write.mode("overwrite").parquet(str(self.folder / "ours"))
        return self.folder / "ours"

    def counted(self) -> int:
        """The floor."""
        found: int = _programme().Floor(self.spark, self.input, ("time", "type", "key"), "key").run()
        return found

    @staticmethod
    def rows(folder: Path, read: Callable[[str], int]) -> Rows:
        """The counts in one folder, as integers."""
        files = sorted(folder.rglob("*.parquet"))
        return [
            {"query": r["query"], "window_start": r["window_start"], "key": r["key"], "count": read(r["count"])}
            for file in files
            for r in pq.read_table(file, partitioning=None).to_pylist()
        ]

    def rows_of_ours(self, folder: Path) -> Rows:
        """Ours; in floating point only the keys, since digests leave floats out."""
        return self.rows(folder, (lambda _: 0) if self.floor else integer_of)

    @staticmethod
    def rows_of_programme(folder: Path) -> Rows:
        """The programme's, which writes hexadecimal."""
        return Jobs.rows(folder, lambda text: int(text, 16))

    def answer(self) -> Answer:
        """Spark's rows against those in process, the programme's against both; the floor counts all events."""
        answer = Answer()
        results = hamlet.run(self.workload, self.input, time_unit="ms")
        bits = 0
        expected: Rows = []
        for row in results.rows():
            bits = max(bits, row["count"].bit_length())
            count = 0 if self.floor else row["count"]
            expected.append({name: row[name] for name in ("query", "window_start", "key")} | {"count": count})
        answer.digest = digest(expected)
        if digest(self.rows_of_ours(self.ours())) != answer.digest:
            raise WrongAnswer("our Spark job has other rows than hamlet.run")
        answer.checks.append(f"all {len(expected):,} rows of our job equal those of hamlet.run")
        if self.floor:
            if self.counted() != self.count:
                raise WrongAnswer("the floor has lost events")
            answer.checks.append("the floor counts every event")
        else:
            written = self.programme.run(self.asked, self.folder / "programme")
            if digest(self.rows_of_programme(written)) != answer.digest:
                raise WrongAnswer("the hand-written programme has other counts than hamlet.run")
            answer.checks.append(f"all {len(expected):,} counts equal those of the hand-written programme")
        answer.facts = {
            "events": self.count,
            "queries": len(self.asked),
            "rows": len(expected),
            "largest_count_bits": bits,
            "numbers": "float" if self.floor else "exact",
            "cores": CORES,
        }
        return answer

    def contenders(self) -> Mapping[str, Contender]:
        """Ours first; memory is that of the JVM and all workers."""
        found = {"hamlet spark": Contender(self.ours, self.rows_of_ours, in_children=True)}
        if self.floor:
            asked = "how many events there are, after the same read, repartition and sort"
            return found | {"spark floor": Contender(self.counted, None, in_children=True, question=asked)}
        jobs = {"programme, one job": self.programme_at_once}
        if self.each:
            jobs["programme, one job per query"] = self.programme_each
        return found | {name: Contender(run, self.rows_of_programme, in_children=True) for name, run in jobs.items()}

    def programme_at_once(self) -> Path:
        """All queries in one job."""
        folder: Path = self.programme.run(self.asked, self.folder / "programme")
        return folder

    def programme_each(self) -> Path:
        """One job per query."""
        folder: Path = self.programme.run_each(self.asked, self.folder / "each")
        return folder


def _case(title: str, full: Callable[[], Jobs], quick: Callable[[], Jobs], seconds: tuple[float, float]) -> Case:
    return Case(title, {"": full}, {"": quick}, seconds, apart=True, timeout_s=(7_200, 300))


MANY, FEW = streams.FULL, 30_000
CASES: dict[str, Case] = {
    "spark-floor": _case(
        "Spark, 10 million events (W2), 50 COUNT queries, 300 s windows, float, at most a million rows, written as "
        "Parquet; beside the same read, repartition and sort with a mapInArrow that only counts rows",
        partial(Jobs, MANY, floor=True),
        partial(Jobs, FEW, floor=True),
        (600, 60),
    ),
    "spark-programme": _case(
        "Spark, 10 million events (W2), 50 COUNT queries, 300 s windows, exact; beside a hand-written applyInArrow "
        "programme with Python integers that does all fifty in one job",
        partial(Jobs, MANY),
        partial(Jobs, FEW),
        (700, 90),
    ),
    "spark-programme-each": _case(
        "the same over 1 million events, and the programme as one job per query, too",
        partial(Jobs, 1_000_000, each=True),
        partial(Jobs, FEW, 5, each=True),
        (600, 90),
    ),
    "spark-programme-one": _case(
        "Spark, 10 million events (W2), one query SEQ(A, B+), 300 s windows, exact; beside the programme",
        partial(Jobs, MANY, 1),
        partial(Jobs, FEW, 1),
        (600, 60),
    ),
    "spark-programme-sliding": _case(
        "Spark, 10 million events (W2), one query SEQ(A, B+), WITHIN 30 min SLIDE 1 min, exact; beside the programme",
        partial(Jobs, MANY, 1, SLIDING),
        partial(Jobs, FEW, 1, SLIDING),
        (250, 60),
    ),
}
