"""What is not done: row groups that are not read, modules that are not imported, what a job adds to Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import hamlet
from bench import answers
from bench.answers import WrongAnswer
from bench.machine import ROOT
from bench.subject import Answer, Case, Contender, Rows, rows_written
from hamlet.engine.where import FilteredEvents
from hamlet.input.events import open_events
from hamlet.input.row_groups import RowGroups
from hamlet.output.result import Results

DAY = 86_400
DAYS, CHOSEN = 365, 100
ROW_GROUP = 100_000
TEXT = (
    "RETURN district, COUNT(*), SUM(Travel.speed) PATTERN SEQ(Request, Travel+, Dropoff){} GROUP-BY district WITHIN {}"
)
SLICES, SLICE_EVENTS = 30, 10


def _year(events: int) -> pa.Table:
    """A year of rides in the order of time."""
    random = np.random.default_rng(1)
    times = np.sort(random.integers(0, DAYS * DAY, events))
    kinds = np.array(["Request", "Travel", "Pool", "Dropoff"])
    return pa.table(
        {
            "time": times,
            "type": kinds[random.choice(4, events, p=(0.2, 0.5, 0.1, 0.2))],
            "district": random.integers(0, 4, events).astype(np.int32),
            "speed": random.integers(0, 60, events),
            "day": (times // DAY).astype(np.int32),
        }
    )


class NotRead:
    """One Parquet file in the order of time: the whole year, and a day of it.

    Parameters
    ----------
    events : int
        Of the year.
    row_group : int
    within : str
        The length of windows.
    """

    def __init__(self, events: int, row_group: int, within: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.input = Path(self._folder.name, "year.parquet")
        table = _year(events)
        pq.write_table(table, self.input, row_group_size=row_group)
        first, last = np.searchsorted(table["time"].to_numpy(), [CHOSEN * DAY, (CHOSEN + 1) * DAY])
        self.day, self.events = table.slice(first, last - first), events
        self.workload = hamlet.Workload.parse(TEXT.format("", within))
        conditions = " AND ".join(f"{kind}.day = {CHOSEN}" for kind in ("Request", "Travel", "Dropoff"))
        self.narrow = hamlet.Workload.parse(TEXT.format(f" WHERE {conditions}", within))

    def run(self, how: str) -> Results:
        """A run over the file."""
        if how == "times":
            return hamlet.run(self.workload, self.input, since=CHOSEN * DAY, until=(CHOSEN + 1) * DAY)
        if how == "--where":
            return hamlet.run(self.workload, FilteredEvents(open_events(self.input), f"day = {CHOSEN}"))
        return hamlet.run(self.narrow if how == "queries" else self.workload, self.input)

    @cached_property
    def expected(self) -> Rows:
        """The rows of the day, from memory."""
        return hamlet.run(self.workload, self.day).rows()

    def check(self, found: Results) -> None:
        """Compare the rows of a run over the file."""
        answers.compare(self.workload.analysis.text, found.rows(), self.expected, ("the file", "the day in memory"))

    def answer(self) -> Answer:
        """The rows of the day from memory against all ways to name it, and slices of it against the oracle."""
        for how in ("times", "--where", "queries"):
            self.check(self.run(how))
        said = answers.check_slices(self.workload, self.day, "district", slices=SLICES, length=SLICE_EVENTS)
        text = self.workload.analysis.text
        sizes = answers.sizes(text, self.events, self.expected) | {"events_of_the_day": len(self.day)}
        checks = [f"all {len(self.expected):,} rows of the day equal those of its events in memory", said]
        return Answer(checks, sizes, answers.digest(self.expected))

    def contenders(self) -> Mapping[str, Contender]:
        """The day by its times first, the year last."""
        ways = ("times", "--where", "queries")
        found = {f"a day, {how}": Contender(partial(self.run, how), Results.rows) for how in ways}
        question = "the whole year"
        return {**found, "the year": Contender(partial(self.run, "all"), None, question=question)}


class AllRead(NotRead):
    """The same file where every row group has events that are wanted: statistics are asked, or not."""

    def run(self, how: str) -> Results:
        """A run of which nothing can be left out."""
        events = FilteredEvents(open_events(self.input), "speed < 30") if "--where" in how else self.input
        return hamlet.run(self.workload, events)

    def plain(self, how: str) -> Results:
        """The same run, which asks no statistics."""
        with mock.patch.object(RowGroups, "leave_out", return_value=0):
            return self.run(how)

    @cached_property
    def expected(self) -> Rows:
        """The rows of the file with no statistics asked."""
        return self.plain("queries").rows()

    def answer(self) -> Answer:
        """Rows with statistics and without, and slices against the oracle."""
        self.check(self.run("queries"))
        said = answers.check_slices(self.workload, self.day, "district", slices=SLICES, length=SLICE_EVENTS)
        sizes = answers.sizes(self.workload.analysis.text, self.events, self.expected)
        return Answer([said], sizes, answers.digest(self.expected))

    def contenders(self) -> Mapping[str, Contender]:
        """Statistics asked first."""
        filtered = "only the events that are slower than 30"
        return {
            "statistics asked": Contender(partial(self.run, "queries"), Results.rows),
            "statistics not asked": Contender(partial(self.plain, "queries"), Results.rows),
            "--where, asked": Contender(partial(self.run, "--where"), None, question=filtered),
            "--where, not asked": Contender(partial(self.plain, "--where"), None, question=filtered),
        }


def _cpu(command: list[str]) -> dict[str, float]:
    """Run a process; gives the seconds that cores worked for it."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [environment.get("PYTHONPATH")])])
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment)
    assert process.stderr is not None
    said = process.stderr.read().decode()
    process.stderr.close()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise WrongAnswer(f"{' '.join(command)} ended with {process.returncode}: {said}")
    return {"cpu_seconds": used.ru_utime + used.ru_stime}


def _measures(found: Mapping[str, float]) -> Mapping[str, float]:
    return found


class Start:
    """`hamlet run` of a small file, `hamlet monitor` of an empty log, and what of it is Python, numpy and Arrow."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.folder = Path(self._folder.name)
        self.table, within = _year(DAYS * 300).slice(0, 300), "1 d"
        pq.write_table(self.table, self.folder / "e.parquet")
        pa_csv.write_csv(self.table, self.folder / "e.csv")
        self.workload = hamlet.Workload.parse(TEXT.format("", within))
        (self.folder / "w.sase").write_text(TEXT.format("", within))
        for file, content in (
            ("p.mfotl", "a(x) AND NOT ONCE[0,7] b(x)"),
            ("p.sig", "a(x: int)\nb(x: int)"),
            ("e.log", ""),
        ):
            (self.folder / file).write_text(content)

    def command(self, name: str) -> list[str]:
        """The command line of a run."""
        workload, output = str(self.folder / "w.sase"), str(self.folder / "out")
        own = ["run", workload, "--input", str(self.folder / name), "--output", output, "--overwrite"]
        return [sys.executable, "-m", "hamlet", *own, "--count-type", "int64", "--quiet"]

    def monitor(self) -> list[str]:
        """The command line of a monitor."""
        policy, signature, log = (str(self.folder / name) for name in ("p.mfotl", "p.sig", "e.log"))
        return [sys.executable, "-m", "hamlet", "monitor", policy, "-s", signature, "-i", log, "--quiet"]

    def rows(self, _: object) -> Rows:
        """What the last run wrote."""
        return rows_written(self.folder / "out", self.workload.names)

    def answer(self) -> Answer:
        """Both files against the events in memory, and these against the oracle."""
        expected = hamlet.run(self.workload, self.table).rows()
        text = self.workload.analysis.text
        for name in ("e.csv", "e.parquet"):
            _cpu(self.command(name))
            answers.compare(text, self.rows(None), expected, (name, "events in memory"))
        said = answers.check_slices(self.workload, self.table, "district", slices=SLICES, length=SLICE_EVENTS)
        return Answer([said], answers.sizes(text, len(self.table), expected), answers.digest(expected))

    def contenders(self) -> Mapping[str, Contender]:
        """Processes, one after the other."""

        def of(command: list[str], rows: Callable[[object], Rows] | None = None, question: str = "") -> Contender:
            return Contender(partial(_cpu, command), rows, in_children=True, metrics=_measures, question=question)

        code = "import numpy, pyarrow.compute, pyarrow.csv"
        return {
            "hamlet run, CSV": of(self.command("e.csv"), self.rows),
            "hamlet run, Parquet": of(self.command("e.parquet"), self.rows),
            "hamlet monitor, an empty log": of(self.monitor(), question="no time-point"),
            "import hamlet": of([sys.executable, "-c", "import hamlet"], question="an import"),
            "numpy and Arrow": of([sys.executable, "-c", code], question="imports that a run needs"),
            "Python": of([sys.executable, "-c", "pass"], question="nothing"),
        }


_EMPTY = """
import sys
from pathlib import Path
from hamlet.spark.session import session
source, output = sys.argv[1:]
with session("local[2]") as spark:
    def nothing(batches):
        for batch in batches:
            yield batch.slice(0, min(4, batch.num_rows))
    frame = spark.read.parquet(source)
    made = frame.repartition(4, "district").sortWithinPartitions("time").mapInArrow(nothing, frame.schema)
    rows = made.repartition(4, "district").sortWithinPartitions("time").mapInArrow(nothing, frame.schema).persist()
    rows.count()
    rows.repartitionByRange(1, "time").mapInArrow(nothing, frame.schema).write.parquet(output)
"""


class SubmitStart(Start):
    """`hamlet submit` of a small file, and a Spark job of the same shape that computes nothing."""

    def command(self, name: str) -> list[str]:
        """The command line of a job."""
        own = [each for each in super().command(name) if each != "--quiet"]
        own[own.index("run")] = "submit"
        return [*own, "--quiet", "--master", "local[2]", "--partitions", "4"]

    def answer(self) -> Answer:
        """The file against the events in memory, and these against the oracle."""
        expected = hamlet.run(self.workload, self.table).rows()
        text = self.workload.analysis.text
        _cpu(self.command("e.parquet"))
        answers.compare(text, self.rows(None), expected, ("submit", "events in memory"))
        said = answers.check_slices(self.workload, self.table, "district", slices=SLICES, length=SLICE_EVENTS)
        return Answer([said], answers.sizes(text, len(self.table), expected), answers.digest(expected))

    def empty(self) -> dict[str, float]:
        """The job that computes nothing, in a process of its own."""
        with tempfile.TemporaryDirectory(prefix="hamlet-bench-") as folder:
            return _cpu([sys.executable, "-c", _EMPTY, str(self.folder / "e.parquet"), str(Path(folder, "out"))])

    def contenders(self) -> Mapping[str, Contender]:
        """Both jobs, in turns."""
        job = partial(_cpu, self.command("e.parquet"))
        nothing = "read, two shuffles, write; tasks that give some of their rows"
        return {
            "hamlet submit": Contender(job, self.rows, in_children=True, metrics=_measures),
            "an empty job": Contender(self.empty, None, in_children=True, metrics=_measures, question=nothing),
        }


CASES: dict[str, Case] = {
    "not-read": Case(
        "A day of a time-ordered year in one Parquet file (146 row groups), by its times, by --where and by conditions "
        "of the queries; and the year, in process",
        {"": partial(NotRead, DAYS * 40_000, ROW_GROUP, "5 min")},
        {"": partial(NotRead, DAYS * 100, 400, "1 d")},
        seconds=(150, 10),
    ),
    "all-read": Case(
        "The same year where nothing can be left out: what it costs to ask the statistics",
        {"": partial(AllRead, DAYS * 10_000, ROW_GROUP, "30 min")},
        {"": partial(AllRead, DAYS * 100, 400, "1 d")},
        seconds=(120, 10),
    ),
    "start": Case(
        "hamlet run of 300 events and hamlet monitor of an empty log, each a process: seconds that cores work",
        {"": Start},
        {"": Start},
        seconds=(30, 20),
    ),
    "submit-start": Case(
        "hamlet submit of 300 events in a process of its own, beside an empty Spark job of the same shape",
        {"": SubmitStart},
        {"": SubmitStart},
        seconds=(240, 100),
    ),
}
