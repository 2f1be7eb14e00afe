"""Aggregates of policies over a log in MonPoly's format: processor time and memory of whole processes.

``(r <- AVG v; k ONCE[0,100] p(k,v)) AND r > 750.0`` over ten events a time-point, 100 keys: what a user runs, with
start, reading and printing. MonPoly stands beside us where it is named (`bench.peers.verdict_tools`).
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.answers import WrongAnswer
from bench.peers import verdict_tools
from bench.subject import Answer, Case, Contender

WITHIN, EACH, KEYS, VALUES = 100, 10, 100, 1_000
LIMITS: dict[str, tuple[str, Callable[[set[int]], float]]] = {  # what is told, and the same from the values of a key
    "CNT": ("14", len),
    "SUM": ("7000", sum),
    "AVG": ("750.0", statistics.mean),
    "MIN": ("250", min),
    "MAX": ("998", max),
    "MED": ("800.0", statistics.median),
}
CHECKED = 200  # time-points that are compared with the definition


class AggregateProcess:
    """One aggregation over a log of so many events.

    Parameters
    ----------
    operator : str
        Of `LIMITS`.
    events : int
    """

    def __init__(self, operator: str, events: int) -> None:
        self.operator, self.points = operator, events // EACH
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.place = Path(self._folder.name)
        random = np.random.default_rng(1)
        shape = (self.points, EACH)
        self.keys, self.values = random.integers(0, KEYS, shape), random.integers(0, VALUES, shape)
        lines = [
            f"@{point} p" + "".join([f"({key},{value})" for key, value in zip(keys, values, strict=True)])
            for point, (keys, values) in enumerate(zip(self.keys.tolist(), self.values.tolist(), strict=True))
        ]
        limit = LIMITS[operator][0]
        self._write("trace.log", "\n".join(lines))
        self._write("p.sig", "p(k: int, v: int)")
        self._write("p.mfotl", f"(r <- {operator} v; k ONCE[0,{WITHIN}] p(k,v)) AND r > {limit}")

    def answer(self) -> Answer:
        """Compare some time-points with the definition, and all lines with MonPoly's."""
        contenders = self.contenders()
        for contender in contenders.values():
            contender.run()
        ours = (self.place / "hamlet.out").read_text(encoding="utf-8").splitlines()
        told = {int(line[1 : line.index(" ")]): line.split(": ", 1)[1].split() for line in ours}
        for point in range(0, self.points, max(1, self.points // CHECKED)):
            if sorted(told.get(point, [])) != sorted(self._defined(point)):
                raise WrongAnswer(f"the rows of time-point {point} are others")
        checks = [f"{CHECKED} time-points and more as defined, of {len(ours)} with rows"]
        if "monpoly" in contenders:
            theirs = (self.place / "monpoly.out").read_text(encoding="utf-8").splitlines()
            if ours != [line.rstrip() for line in theirs]:
                raise WrongAnswer("MonPoly's lines are others")
            checks.append("all lines are MonPoly's")
        else:
            checks.append("MonPoly is not named by HAMLET_MONPOLY, and left out")
        return Answer(checks, {"events": self.points * EACH, "operator": self.operator})

    def _defined(self, point: int) -> list[str]:
        """The tuples of a time-point, from the events of its interval."""
        part = slice(max(0, point - WITHIN), point + 1)
        groups: dict[int, set[int]] = {}
        for key, value in zip(self.keys[part].ravel().tolist(), self.values[part].ravel().tolist(), strict=True):
            groups.setdefault(key, set()).add(value)
        limit, result = LIMITS[self.operator]
        found = {key: result(values) for key, values in groups.items()}
        return [f"({value:g},{key})" for key, value in found.items() if value > float(limit)]

    def contenders(self) -> Mapping[str, Contender]:
        """Ours, and MonPoly where it is there."""
        log, policy, signature = (str(self.place / name) for name in ("trace.log", "p.mfotl", "p.sig"))
        ours = [sys.executable, "-m", "hamlet", "monitor", policy, "-s", signature, "--input", log, "--quiet"]
        commands = {"hamlet": [*ours, "--output", "-", "--output-format", "monpoly"]}
        if monpoly := verdict_tools.monpoly():
            commands["monpoly"] = [str(monpoly), "-sig", signature, "-formula", policy, "-log", log]
        return verdict_tools.contenders(commands, self.place)

    def _write(self, name: str, text: str) -> None:
        (self.place / name).write_text(text + os.linesep, encoding="utf-8")


def _points(events: int) -> dict[str, Any]:
    return {operator: partial(AggregateProcess, operator, events) for operator in LIMITS}


CASES = {
    "policy-processes": Case(
        "aggregates of policies over a log of 500,000 events, whole processes",
        _points(500_000),
        _points(20_000),
        seconds=(120, 15),
        apart=True,
        timeout_s=(300, 120),
    )
}
