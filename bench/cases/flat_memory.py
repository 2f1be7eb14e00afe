"""``EVENTUALLY[0,b] c()`` over a long log of irregular gaps: processor time and memory of whole processes.

What Basin, Bhatt, Krstić and Traytel call almost event-rate independent: memory must depend neither on the length of
the log nor on the bound. HYDRA and Aerial stand beside us where they are named (`bench.peers.verdict_tools`).
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.answers import WrongAnswer
from bench.peers import verdict_tools
from bench.subject import Answer, Case, Contender

BOUNDS = (10, 1_000, 100_000_000)
GAPS = (0, 0, 1, 1, 2, 5, 17, 101, 900, 1_500)
OFTEN, SHARE = 0.2, 0.001  # of the gaps that are not 1, and of time-points at which c holds


class FlatMemory:
    """One bound over one length.

    Parameters
    ----------
    bound, points : int
        Of the formula's interval; time-points of the log.
    """

    def __init__(self, bound: int, points: int) -> None:
        self.bound, self.points = bound, points
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.place = Path(self._folder.name)
        random = np.random.default_rng(1)
        gaps = np.where(random.random(points) < OFTEN, random.choice(GAPS, points), 1)
        self.times, self.holds = np.cumsum(gaps), random.random(points) < SHARE
        pairs = list(zip(self.times.tolist(), self.holds.tolist(), strict=True))
        self._write("trace.log", "\n".join(f"@{time} {'c()' if c else 'd()'}" for time, c in pairs))
        self._write("trace.plain", "\n".join(f"@{time} {'c' if c else 'd'}" for time, c in pairs))
        self._write("p.mfotl", f"EVENTUALLY[0,{bound}] c()")
        self._write("p.sig", "c()\nd()")
        self._write("hydra.mtl", f"true UNTIL[0,{bound}] c")
        self._write("aerial.mtl", f"true U[0,{bound}] c")

    def answer(self) -> Answer:
        """Compare every verdict, ours and HYDRA's, with the next c after each time-point."""
        places = np.flatnonzero(self.holds)
        follows = np.searchsorted(places, np.arange(self.points))
        known = follows < len(places)
        expected = known.copy()
        expected[known] = self.times[places[follows[known]]] - self.times[known] <= self.bound
        checks = []
        for name, contender in self.contenders().items():
            if name not in ("all", "hydra"):
                continue
            contender.run()
            given = _verdicts(self.place / f"{name}.out")
            if not given or given != expected[: len(given)].tolist() or (name == "all" and len(given) != self.points):
                raise WrongAnswer(f"the verdicts of {name} are others")
            checks.append(f"{len(given)} verdicts of {name} as defined")
        missing = [each for each in ("hydra", "aerial") if each not in self.contenders()]
        checks += [f"{each} is not named by HAMLET_{each.upper()}, and left out" for each in missing]
        return Answer(checks, {"events": self.points, "bound": self.bound})

    def contenders(self) -> Mapping[str, Contender]:
        """Ours in two modes, and the tools that are there."""
        log, plain = str(self.place / "trace.log"), str(self.place / "trace.plain")
        ours = [sys.executable, "-m", "hamlet", "monitor", str(self.place / "p.mfotl"), "-s", str(self.place / "p.sig")]
        ours += ["--input", log, "--quiet", "--output", "-", "--output-format", "csv"]
        commands = {mode: [*ours, "--verdicts", mode] for mode in ("all", "equivalent")}
        if hydra := verdict_tools.hydra():
            commands["hydra"] = [str(hydra), str(self.place / "hydra.mtl"), plain]
        if aerial := verdict_tools.aerial():
            given = ["-mtl", "-mode", "local", "-fmla", str(self.place / "aerial.mtl"), "-log", plain]
            commands["aerial"] = [str(aerial), *given]
        return verdict_tools.contenders(commands, self.place)

    def _write(self, name: str, text: str) -> None:
        (self.place / name).write_text(text + os.linesep, encoding="utf-8")


def _verdicts(output: Path) -> list[bool]:
    """The verdicts of HYDRA's lines, and of our CSV."""
    lines = output.read_text(encoding="utf-8").splitlines()
    return [line.endswith("true") for line in lines if line.endswith(("true", "false"))]


def _points(points: int) -> dict[str, Any]:
    return {f"{bound}": partial(FlatMemory, bound, points) for bound in BOUNDS}


CASES = {
    "flat-memory": Case(
        "verdicts over a million irregular time-points, whole processes",
        _points(1_000_000),
        _points(20_000),
        seconds=(120, 15),
        apart=True,
        timeout_s=(300, 120),
    )
}
