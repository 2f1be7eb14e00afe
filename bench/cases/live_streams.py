"""From socket to socket at a rate: how long after the event that decides it a row is there, and the rates that hold."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from bench import machine
from bench.answers import WrongAnswer
from bench.cases.specifications import AVERAGES
from bench.live import Subject, measured
from bench.subject import Answer, Case, Contender
from hamlet.streams import Specification

_PATIENCE_S = 1.0  # by which the last row of a rate that holds may be late
POINTS = {  # what is run, and events per second
    "star, 75,000/s from a log": ("star", "monpoly", 75_000),
    "100 queries by key, 200,000/s from Arrow": ("queries", "arrow", 200_000),
    "100 queries by key, 200,000/s from JSON": ("queries", "json", 200_000),
    "star, 1,000,000/s from a log": ("star", "monpoly", 1_000_000),
    "star, 1,000,000/s from Arrow": ("star", "arrow", 1_000_000),
    "star, 400,000/s from JSON": ("star", "json", 400_000),
}


class Live:
    """One rate.

    Parameters
    ----------
    name, form : str
        Of `bench.live.Subject`.
    rate : int
    seconds : float
    """

    def __init__(self, name: str, form: str, rate: int, seconds: float) -> None:
        self.subject, self.rate, self.seconds = Subject(name, form), rate, seconds

    def answer(self) -> Answer:
        """A short run at a low rate; every run compares its rows with those of a run over the file."""
        found = measured(self.subject, min(self.rate, 20_000), 11.0)
        facts = {"events": int(self.rate * self.seconds), "events_per_second": self.rate, "rows": found["rows"]}
        return Answer([f"all {found['rows']:,} rows at a low rate, and those of each run, as over the file"], facts)

    def contenders(self) -> Mapping[str, Contender]:
        """The run."""
        return {"socket to socket": Contender(self._run, None, metrics=self._metrics, question="rows are compared")}

    def _run(self) -> dict[str, float]:
        return measured(self.subject, self.rate, self.seconds)

    def _metrics(self, found: dict[str, float]) -> dict[str, float]:
        late = max(found["p100_due_ms"], found["behind_ms"]) / 1000
        return {**found, "holds": float(late < _PATIENCE_S)}


class Piped:
    """A specification over a file, and over the same lines from a pipe, as whole processes.

    Parameters
    ----------
    name : str
        Of a file of `workloads/`, or ``averages``.
    events : int
        A thousand a second.
    """

    def __init__(self, name: str, events: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.place, self.events = Path(self._folder.name), events
        found = machine.ROOT / "workloads" / f"{name}.lola"
        text = AVERAGES if name == "averages" else found.read_text(encoding="utf-8")
        (self.place / "s.lola").write_text(text, encoding="utf-8")
        lot = np.random.default_rng(1)
        columns: dict[str, Any] = {"time": np.arange(events) // 1000}
        for each in Specification.parse(text).inputs:
            values = lot.integers(0, 600, events)
            columns[each.name] = pa.array(values).cast(pa.string()) if str(each.type) == "String" else values * 1.0
        pa_csv.write_csv(pa.table(columns), self.place / "events.csv")

    def answer(self) -> Answer:
        """Both have to give the same rows."""
        for name in self.contenders():
            self._run(name)
        rows = [sorted((self.place / f"{name}.out").read_bytes().splitlines()) for name in self.contenders()]
        if rows[0] != rows[1]:
            raise WrongAnswer("a pipe gives other rows than a file")
        return Answer([f"{len(rows[0]):,} rows of both"], {"events": self.events, "rows": len(rows[0])})

    def contenders(self) -> Mapping[str, Contender]:
        """A pipe beside a file."""
        return {
            name: Contender(partial(self._run, name), None, in_children=True, metrics=dict, question="rows are written")
            for name in ("pipe", "file")
        }

    def _run(self, name: str) -> dict[str, float]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "hamlet", "monitor", "s.lola", "--values", "--quiet", "--output", "-"]
        command += ["--input", "-" if name == "pipe" else "events.csv", "--input-format", "csv"]
        with (self.place / "events.csv").open("rb") as lines, (self.place / f"{name}.out").open("wb") as out:
            given = subprocess.Popen(["cat"], stdin=lines, stdout=subprocess.PIPE)
            environment = {**os.environ, "PYTHONPATH": str(machine.ROOT)}
            subprocess.run(command, stdin=given.stdout, stdout=out, cwd=self.place, env=environment, check=True)
            assert given.stdout is not None
            given.stdout.close()
            given.wait()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {"cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime}


def _piped(events: int) -> dict[str, Any]:
    return {name: partial(Piped, name, events) for name in ("averages", "shop", "views", "reviews")}


def _points(seconds: float, slower: int = 1) -> dict[str, Any]:
    return {
        name: partial(Live, subject, form, rate // slower, seconds) for name, (subject, form, rate) in POINTS.items()
    }


CASES = {
    "live": Case(
        "from socket to socket at a rate for a minute: latency of rows, processor time, whether it holds (give "
        "--repeats 1: every round takes a minute)",
        _points(60.0),
        _points(11.0, 20),
        seconds=(1_500, 200),
        apart=True,
        timeout_s=(900, 200),
    ),
    "live-specifications": Case(
        "specifications over a million lines of CSV from a pipe, beside the same from a file, whole processes",
        _piped(1_000_000),
        _piped(20_000),
        seconds=(200, 30),
    ),
}
