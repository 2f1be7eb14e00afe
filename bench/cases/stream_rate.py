"""The continuous job at a steady rate: whether it keeps up, and whether its memory stays where it is.

One file a second is added to a folder that ``hamlet submit --stream`` watches, in real time. When the last one is there
the job has only what it is behind to do; how long that takes says whether it kept up.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hamlet
from bench import answers, machine, streams, workloads
from bench.answers import WrongAnswer
from bench.subject import Answer, Case, Contender, Rows, plain

RATE = 20_000  # events per second
GROUPS = 20
WINDOW_S = 60
TRIGGER = "5 seconds"
PATIENCE_S = 300.0  # for the first micro-batch, and for the last rows
SAMPLES = 10  # of the memory, evenly over the stream


@dataclass
class Streamed:
    """What a run of the job was like."""

    rows: Rows = field(default_factory=list)
    drained_s: float = 0.0
    late_s: float = 0.0  # the most that a file was written after its time: then the machine, not the job, was slow
    memory: list[int] = field(default_factory=list)  # bytes of all processes of the job, sampled


class StreamRate:
    """Fifty queries over files that come one a second.

    Parameters
    ----------
    minutes : float
        Of the stream.
    rate : int
        Events per second.
    """

    def __init__(self, minutes: float = 10, rate: int = RATE) -> None:
        self.seconds, self.rate = int(60 * minutes), rate
        self.workload = hamlet.Workload.parse(workloads.many_groups_fifty(f"WITHIN {WINDOW_S} s"))
        random = np.random.default_rng(1)
        events = self.seconds * rate
        types = streams.typed(random.integers(0, len(streams.TYPES), events))
        self.events = pa.table(
            {
                "time": np.arange(events) * 1000 // rate,
                "type": types.cast(pa.string()),
                "key": random.integers(0, GROUPS, events).astype(np.int32),
                "value": random.integers(0, 100, events),
            }
        )

    def run(self) -> Streamed:
        """Stream all events, in real time."""
        with tempfile.TemporaryDirectory(prefix="hamlet-bench-") as name:
            folder = Path(name)
            (folder / "in").mkdir()
            (folder / "w.sase").write_text(self.workload.analysis.text.text, encoding="utf-8")
            self._put(folder, 0)
            with (folder / "log").open("wb") as log:
                process = subprocess.Popen(_command(folder), cwd=machine.ROOT, stderr=log, start_new_session=True)
                try:
                    return self._watched(folder, process)
                finally:
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def _watched(self, folder: Path, process: subprocess.Popen[bytes]) -> Streamed:
        found = Streamed()
        commits = folder / "state" / "commits"
        _until(lambda: commits.is_dir() and any(commits.iterdir()), folder, process)
        begin = time.monotonic()
        for second in range(1, self.seconds):
            wait = begin + second - time.monotonic()
            found.late_s = max(found.late_s, -wait)
            time.sleep(max(0.0, wait))
            self._put(folder, second)
            if second * SAMPLES // self.seconds > len(found.memory):
                found.memory.append(machine.children_rss_bytes())
        end = self.events.slice(len(self.events) - 1)
        end = end.set_column(0, "time", pa.array([(self.seconds + 2 * WINDOW_S) * 1000]))
        done = time.monotonic()
        _write(end, folder, "end")
        _until(lambda: _windows(folder / "out") >= -(-self.seconds // WINDOW_S), folder, process)
        found.drained_s = time.monotonic() - done
        found.memory.append(machine.children_rss_bytes())
        found.rows = self._rows(folder / "out")
        return found

    def _put(self, folder: Path, second: int) -> None:
        _write(self.events.slice(second * self.rate, self.rate), folder, f"{second:06}")

    def _rows(self, output: Path) -> Rows:
        return [
            {"query": name, **{column: _number(value) for column, value in row.items()}}
            for name in self.workload.names
            for file in sorted((output / f"query={name}").glob("part-*.parquet"))
            for row in pq.read_table(file, partitioning=None).to_pylist()
        ]

    def answer(self) -> Answer:
        """Against a run over the whole stream, which the case many-groups checks."""
        whole = hamlet.run(self.workload, self.events, numbers="float", time_unit="ms").rows()
        text = self.workload.analysis.text
        found = self.run()
        answers.compare(text, found.rows, whole, ("the stream", "at once"))
        facts = {
            "events": len(self.events),
            "queries": len(self.workload.queries),
            "rows": len(whole),
            "largest_count_bits": answers.largest_count_bits(text, whole),
            "numbers": "float",
            "groups": GROUPS,
            "events_per_second": self.rate,
        }
        return Answer([f"all {len(whole):,} rows equal those at once"], facts, answers.digest(whole))

    def contenders(self) -> Mapping[str, Contender]:
        """The job alone."""
        return {"submit --stream": Contender(self.run, lambda run: run.rows, in_children=True, metrics=_metrics)}


def _number(value: object) -> object:
    """A count or sum as a number; the job writes it as text, since it may be beyond doubles."""
    if not isinstance(value, str):
        return value
    number = Decimal(value)
    return float(number) if math.isfinite(float(number)) else number


def _command(folder: Path) -> list[str]:
    command = [sys.executable, "-m", "hamlet", "submit", str(folder / "w.sase"), "--stream", "--input"]
    command += [str(folder / "in"), "--output", str(folder / "out"), "--checkpoint", str(folder / "state")]
    return [*command, "--master", "local[2]", "--numbers", "float", "--time-unit", "ms", "--trigger", TRIGGER]


def _write(events: pa.Table, folder: Path, name: str) -> None:
    """A file that appears whole."""
    hidden = folder / f"{name}.parquet"
    pq.write_table(events, hidden)
    hidden.rename(folder / "in" / f"{name}.parquet")


def _windows(output: Path) -> int:
    """Windows of the first query that have rows."""
    found: set[int] = set()
    for file in (output / "query=q1").glob("part-*.parquet"):
        found |= set(pq.read_table(file, columns=["window_start"], partitioning=None)["window_start"].to_pylist())
    return len(found)


def _until(there: Callable[[], bool], folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait until something is there; WrongAnswer with the end of the job's log where the job ends or takes too long."""
    end = time.monotonic() + PATIENCE_S
    while not there():
        if process.poll() is not None or time.monotonic() > end:
            raise WrongAnswer(f"the job has stopped, or waits: {(folder / 'log').read_text('utf-8', 'replace')[-500:]}")
        time.sleep(0.2)


def _metrics(found: Streamed) -> dict[str, float]:
    memory = {f"memory_{place}_of_{SAMPLES}_bytes": float(each) for place, each in enumerate(found.memory, 1)}
    return {"drained_s": found.drained_s, "late_s": found.late_s, **memory}


CASES: dict[str, Case] = {
    "stream-rate": plain(
        "submit --stream in real time, 20,000 events per second in a file a second for ten minutes, 50 queries, 20 "
        "groups, tumbling windows of one minute, float: seconds to drain after the last file, memory over time "
        "(give --repeats 1: every round takes ten minutes)",
        StreamRate,
        lambda: StreamRate(0.25),
        seconds=(1_900, 120),
        timeout_s=(7_200, 900),
    ),
}
