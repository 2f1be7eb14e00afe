"""Loads of the joint data slicer: without skew, with skew that is not known, and with skew that is.

Streams as in Schneider et al. (STTT 2021), §6: events A, B and C of two fields; with skew half of the first fields of A
are one value. Loads are events that the fullest slice gets; the bound is what the hypercube's shares promise.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from bench import machine
from bench.answers import WrongAnswer
from bench.subject import Answer, Case, Contender
from hamlet.parallel.routing.joint import JointSlicer
from hamlet.parallel.routing.rates import rates_of
from hamlet.policies.logs import LogChunk
from hamlet.policies.parser import parse_formula

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


def _points(events: int) -> dict[str, Any]:
    return {name: partial(Loads, name, events) for name in ("star", "linear", "triangle")}


CASES = {
    "slices": Case("loads of the joint data slicer", _points(300_000), _points(30_000), seconds=(30, 10)),
}
