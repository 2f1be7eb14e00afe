"""Real streams with their workloads: in process, as Spark jobs, and beside DuckDB."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import hamlet
from bench import answers
from bench.machine import ROOT
from bench.peers.duckdb_groupby import GroupBy
from bench.subject import Answer, Case, Contender, Rows, plain, rows_written
from datasets.columns import MICROSECONDS
from datasets.location import real_stream
from hamlet.language.query import WorkloadText
from hamlet.output.digits import integer_of

MINUTE = 60 * MICROSECONDS
KEYS = {"taxi": "zone", "stock": "symbol", "smarthome": "plug"}  # by what the events of a stream belong together
RECURRENCES = {
    "taxi": answers.Recurrence("turnover", "Dropoff", "Pickup", False, 15 * MINUTE),
    "stock": answers.Recurrence("rally", "Down", "Up", True, MINUTE),
    "smarthome": answers.Recurrence("warm_up", "SwitchOn", "Rise", True, 5 * MINUTE),
}
OPTIONS: dict[str, Any] = {"time_unit": "us", "order_column": "seq"}
SLICES, SLICE_EVENTS = 40, 10


class RealStream:
    """A real stream and its workload in process: the whole Parquet file through `hamlet.run`."""

    def __init__(self, stream: str) -> None:
        self._read(stream, ROOT / "workloads" / f"{stream}.sase", RECURRENCES[stream])

    def _read(self, stream: str, workload: Path, recurrence: answers.Recurrence) -> None:
        self.path = real_stream(stream)
        self.key = KEYS[stream]
        self.file = workload
        self.recurrence = recurrence
        self.workload = hamlet.Workload.from_file(self.file)
        self.text: WorkloadText = self.workload.analysis.text

    def in_process(self) -> Rows:
        """All result rows of `hamlet.run` over the file."""
        return hamlet.run(self.workload, self.path, **OPTIONS).rows()

    def answer(self) -> Answer:
        """Check against the oracle on slices, a recurrence on one query, and the engine over other batches on all."""
        answer = Answer()
        events = pq.read_table(self.path)
        said = answers.check_slices(self.workload, events, self.key, slices=SLICES, length=SLICE_EVENTS, **OPTIONS)
        answer.checks.append(said)
        rows = self.in_process()
        counted = self.recurrence.check(events, self.key, rows)
        answer.checks.append(
            f"all {counted:,} counts of {self.recurrence.query} over the whole stream equal those of a plain recurrence"
        )
        pushed = self._pushed(events)
        answers.compare(self.text, rows, pushed, ("hamlet.run", "hamlet.Engine over random batches"))
        answer.checks.append(f"all {len(rows):,} rows equal those of hamlet.Engine over batches of random sizes")
        answer.digest = answers.digest(rows)
        answer.facts = {
            **answers.sizes(self.text, len(events), rows),
            "numbers": "exact",
            "threads": 1,
        }
        return answer

    def contenders(self) -> Mapping[str, Contender]:
        """Hamlet alone."""
        return {"hamlet": Contender(lambda: hamlet.run(self.workload, self.path, **OPTIONS), lambda r: r.rows())}

    def _pushed(self, events: pa.Table) -> Rows:
        engine = hamlet.Engine(self.workload, **OPTIONS)
        rows: Rows = []
        for batch in _random_batches(events):
            rows += engine.push(batch)
        return rows + engine.close()


def number_of(text: str) -> int | float:
    """The number that a count or sum was written as: an integer, or over DOUBLE attributes a double."""
    return integer_of(text) if text.lstrip("-").isdigit() else float(text)


class SparkJob(RealStream):
    """The same as a Spark batch job, from starting the command to its end: JVM, read, shuffle, kernel, write."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.output = Path(self._folder.name) / "output"

    def submit(self) -> Path:
        """Run ``hamlet submit``; returns the output folder."""
        command = [sys.executable, "-m", "hamlet", "submit", str(self.file), "--input", str(self.path)]
        command += ["--output", str(self.output), "--overwrite", "--quiet", "--time-unit", "us"]
        process = subprocess.run(
            [*command, "--order-column", "seq"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if process.returncode:
            raise RuntimeError(f"hamlet submit failed ({process.returncode}):\n{process.stderr[-4000:]}")
        return self.output

    def written(self, output: Path) -> Rows:
        """The rows that a job wrote, its counts and sums as numbers again."""
        counts, sums = (answers.aggregates_of(self.text, name) for name in ("COUNT", "SUM"))
        rows = rows_written(output, self.workload.names)
        for row in rows:
            for column in (*counts[row["query"]], *sums[row["query"]]):
                if isinstance(row[column], str):
                    row[column] = number_of(row[column])
        return rows

    def answer(self) -> Answer:
        """Check the job's rows against those of the engine in process."""
        rows = self.in_process()
        written = self.written(self.submit())
        answers.compare(self.text, rows, written, ("hamlet.run", "hamlet submit"))
        return Answer(
            checks=[f"all {len(rows):,} rows equal those of hamlet.run"],
            facts={
                **answers.sizes(self.text, pq.read_metadata(self.path).num_rows, rows),
                "numbers": "exact",
                "master": "local[*]",
            },
            digest=answers.digest(rows),
        )

    def contenders(self) -> Mapping[str, Contender]:
        """The whole command, as a user waits for it."""
        return {"hamlet submit": Contender(self.submit, self.written, in_children=True)}


class PlugsAgainstDuckDB(RealStream):
    """Five trend queries in memory, beside one plain GROUP BY of DuckDB over the same Arrow table."""

    PANE = 5 * MINUTE

    def __init__(self) -> None:
        held = answers.Recurrence("held", "SwitchOn", "Hold", True, self.PANE)
        self._read("smarthome", ROOT / "bench" / "queries" / "plugs.sase", held)
        self.events = pq.read_table(self.path, columns=["time", "type", "seq", "plug", "power_1s_w"])
        self.group_by = GroupBy(self.events, key="plug", value="power_1s_w", pane=self.PANE)

    def answer(self) -> Answer:
        """The checks of a real stream, and one for the peer: its groups hold every event once."""
        answer = super().answer()
        counted = sum(self.group_by()["events"].to_pylist())
        if counted != len(self.events):
            raise answers.WrongAnswer(f"DuckDB's groups hold {counted:,} events of {len(self.events):,}")
        answer.checks.append("DuckDB's groups hold every event once")
        return answer

    def contenders(self) -> Mapping[str, Contender]:
        """Both, one thread each."""
        return {
            "hamlet": Contender(lambda: hamlet.run(self.workload, self.events, **OPTIONS), lambda r: r.rows()),
            "duckdb group by": Contender(self.group_by, None, question="how many events each plug has of each type"),
        }


def _random_batches(events: pa.Table) -> Iterator[pa.Table]:
    source, start = random.Random(2), 0
    while start < len(events):
        length = 1 + int(source.expovariate(1 / 50_000))
        yield events.slice(start, length)
        start += length


CASES: dict[str, Case] = {
    "taxi": plain(
        "NYC green taxis, first quarter of 2023, workloads/taxi.sase, Parquet file, in process",
        lambda: RealStream("taxi"),
        seconds=(60, 60),
    ),
    "stock": plain(
        "trade ticks of one week, workloads/stock.sase, Parquet file, in process",
        lambda: RealStream("stock"),
        seconds=(60, 60),
    ),
    "smarthome": plain(
        "plug readings of one month, workloads/smarthome.sase, Parquet file, in process",
        lambda: RealStream("smarthome"),
        seconds=(60, 60),
    ),
    "taxi-spark": plain(
        "the same taxis and queries as a Spark job, JVM start included",
        lambda: SparkJob("taxi"),
        seconds=(150, 150),
    ),
    "stock-spark": plain(
        "the same trades and queries as a Spark job, JVM start included",
        lambda: SparkJob("stock"),
        seconds=(150, 150),
    ),
    "smarthome-spark": plain(
        "the same readings and queries as a Spark job, JVM start included",
        lambda: SparkJob("smarthome"),
        seconds=(150, 150),
    ),
    "smarthome-vs-duckdb": plain(
        "five queries without adjacent predicates per plug over 5 minutes, Arrow table in memory, beside DuckDB's "
        "GROUP BY plug, type, 5-minute pane (count and sum) on one thread",
        PlugsAgainstDuckDB,
        seconds=(60, 60),
    ),
}
