"""Loads of the joint data slicer: without skew, with skew that is not known, and with skew that is; two Spark tasks.

Streams as in Schneider et al. (STTT 2021), §6: events A, B and C of two fields; with skew half of the first fields of A
are one value. Loads are events that the fullest slice gets; the bound is what the hypercube's shares promise.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import machine
from bench.answers import WrongAnswer
from bench.cases.policies import POLICIES, SIGNATURE
from bench.subject import Answer, Case, Contender
from hamlet.parallel.routing.joint import JointSlicer
from hamlet.parallel.routing.rates import rates_of
from hamlet.policies import Policy, run
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.syntax.parser import parse_formula

SLICES = 16
KINDS = ("no skew", "skew unknown", "skew known")


class Loads:
    """One formula, with and without skew.

    Parameters
    ----------
    name : {'star', 'linear', 'triangle'}
    events : int
    """

    def __init__(self, name: str, events: int) -> None:
        text = (machine.ROOT / "workloads" / f"{name}.mfotl").read_text(encoding="utf-8")
        self.formula = parse_formula(text, name)[0]
        self.events = events
        self.chunks = {skew: self._chunk(skew) for skew in (False, True)}

    def _chunk(self, skew: bool) -> LogChunk:
        random = np.random.default_rng(1)
        rows = self.events // 3
        relations: dict[tuple[str, int], Any] = {}
        for predicate in "ABC":
            fields = random.integers(0, 10**9, (2, rows))
            if skew and predicate == "A":
                fields[0, random.random(rows) < 0.5] = 7
            relations[predicate, 2] = (np.sort(random.integers(0, 1000, rows)), tuple(map(pa.array, fields)))
        return LogChunk(0, np.arange(1000), relations, 0)

    def _slicer(self, kind: str) -> tuple[JointSlicer, LogChunk]:
        chunk = self.chunks[kind != "no skew"]
        return JointSlicer(self.formula, SLICES, rates_of(self.formula, [chunk]), heavy=kind != "skew unknown"), chunk

    def answer(self) -> Answer:
        """Measure loads; every event has to be somewhere, and no slice above the promise without skew."""
        facts: dict[str, Any] = {"events": self.events, "slices": SLICES}
        checks = []
        for kind in KINDS:
            slicer, chunk = self._slicer(kind)
            slicer.route(chunk)
            bound = slicer.expected(rates_of(self.formula, [chunk]))
            facts |= {f"{kind}: fullest slice": int(slicer.sent.max()), f"{kind}: promised": round(bound)}
            if slicer.sent.sum() < self.events // 3 * 3:
                raise WrongAnswer("an event has no slice")
            if kind == "no skew":
                if slicer.sent.max() > 1.1 * bound:
                    raise WrongAnswer(f"the fullest slice has {slicer.sent.max()} events, promised are {bound:.0f}")
                checks.append("without skew the fullest slice is within a tenth of the promise")
        return Answer(checks, facts)

    def contenders(self) -> Mapping[str, Contender]:
        """Routing alone."""
        slicer, chunk = self._slicer("skew known")
        return {"routing": Contender(lambda: slicer.route(chunk), None, question="no rows: events are routed")}


class Tasks:
    """A policy over a Parquet file as a Spark job of one, two and more tasks; starting the session is not timed.

    Parameters
    ----------
    text : str
        The policy.
    events : int
        A thousand a second.
    tasks : sequence of int
    """

    def __init__(self, text: str, events: int, tasks: tuple[int, ...] = (1, 2)) -> None:
        self.policy = Policy.parse(text, SIGNATURE)
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.input = Path(self._folder.name, "events.parquet")
        random = np.random.default_rng(1)
        kinds, values = random.integers(0, 3, events), random.integers(0, 10**6, (2, events))
        columns = {"time": np.arange(events) // 1_000, "type": np.array(list("ABC"))[kinds]}
        pq.write_table(pa.table(columns | {"x": values[0], "y": values[1]}), self.input)
        self.events, self.tasks = events, tasks

    @cached_property
    def spark(self) -> Any:
        """The session."""
        from bench.peers import spark_programme

        return spark_programme.session(max(self.tasks))

    def _submitted(self, tasks: int) -> dict[str, Any]:
        from hamlet.spark.policies import submit

        assert self.spark is not None
        output = Path(self._folder.name, f"out{tasks}")
        return submit(self.policy, str(self.input), str(output), slices=tasks, overwrite=True)

    def answer(self) -> Answer:
        """Every number of tasks has to give the rows of one process."""
        expected = run(self.policy, self.input).table()
        for tasks in self.tasks:
            found = self._submitted(tasks)
            folder = Path(self._folder.name, f"out{tasks}", f"policy={self.policy.name}")
            rows = pq.read_table(folder, partitioning=None).cast(expected.schema)
            order = [(name, "ascending") for name in expected.column_names]
            if found["rows"] != expected.num_rows or rows.sort_by(order) != expected.sort_by(order):
                raise WrongAnswer(f"{tasks} tasks give other rows than one process")
        facts = {"events": self.events, "rows": expected.num_rows}
        return Answer([f"{expected.num_rows:,} rows of each job as one process has them"], facts)

    def contenders(self) -> Mapping[str, Contender]:
        """The jobs; the first one is beside which the others are put."""
        names = {tasks: f"{tasks} task{'s' * (tasks > 1)}" for tasks in sorted(self.tasks, reverse=True)}
        return {
            name: Contender(partial(self._submitted, tasks), None, in_children=True, question="rows are counted")
            for tasks, name in names.items()
        }


def _tasks(events: int) -> dict[str, Any]:
    return {
        "star-10s": partial(Tasks, POLICIES["star"].format(w=10), events),
        "star-100s": partial(Tasks, POLICIES["star"].format(w=100), events),
        "publish-ever": partial(Tasks, "B(x,y) AND NOT ONCE A(x,y)", events),
    }


def _points(events: int) -> dict[str, Any]:
    return {name: partial(Loads, name, events) for name in ("star", "linear", "triangle")}


CASES = {
    "slices": Case("loads of the joint data slicer", _points(300_000), _points(30_000), seconds=(30, 10)),
    "policies-spark": Case(
        "star and a policy without end in the past as Spark jobs of one and of two tasks, a local session",
        _tasks(20_000_000),
        _tasks(100_000),
        seconds=(150, 40),
    ),
}
