"""Policies of STTT 2021 over random events: events per second, beside tables per time-point.

Star, linear and triangle join three predicates within a window; the events are uniform over the predicates, their
values over a domain that gives few rows. Columns stand in memory and every contender takes all rows; the answer is
checked by the baseline on the first events before a time counts.

Source: Schneider et al. (STTT 2021), §6.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from bench.answers import WrongAnswer
from bench.baselines.policy_tables import TablesPerTimePoint
from bench.subject import Answer, Case, Contender
from hamlet.policies import Policy
from hamlet.policies.logs.batching import gathered
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.plan.evaluation import Evaluation

SIGNATURE = "A(x: int, y: int) B(x: int, y: int) C(x: int, y: int)"
POLICIES = {
    "star": "((ONCE[0,{w}) A(w,x)) AND B(w,y)) AND (EVENTUALLY[0,{w}) C(w,z))",
    "linear": "((ONCE[0,{w}) A(w,x)) AND B(x,y)) AND (EVENTUALLY[0,{w}) C(y,z))",
    "triangle": "((ONCE[0,{w}) A(x,y)) AND B(y,z)) AND (EVENTUALLY[0,{w}) C(z,x))",
    "publish": "B(x,y) AND NOT ONCE[0,{w}) A(x,y)",
}
CHECKED, NARROW = 1_000, 100  # events that the baseline reads too, and how many values they have then
PIECE, FEW = 65_536, 3_000  # events of a chunk, and the most that the baseline is timed with


class PolicyRate:
    """One policy over one stream.

    Parameters
    ----------
    name : str
        Of `POLICIES`.
    window : int
        Seconds.
    events, rate, points : int
        Events in all, events per second, and time-points per second.
    domain : int
        Distinct values.
    """

    def __init__(self, name: str, window: int, events: int, rate: int, points: int, domain: int) -> None:
        self.policy = Policy.parse(POLICIES[name].format(w=window), SIGNATURE, name=name)
        random = np.random.default_rng(1)
        self.kinds = random.integers(0, 3, events)
        self.values = random.integers(0, domain, (2, events))
        self.values[:, :CHECKED] %= NARROW  # so that the rows of the check are some
        self.points = np.arange(events) * points // rate
        self.per_second = points

    def _chunks(self, events: int) -> list[LogChunk]:
        chunks = []
        for low in range(0, events, PIECE):
            part = slice(low, min(events, low + PIECE))
            stamps, places = np.unique(self.points[part], return_inverse=True)
            tables: dict[tuple[str, int], Any] = {}
            for kind, name in enumerate("ABC"):
                rows = np.flatnonzero(self.kinds[part] == kind)
                fields = tuple(pa.array(values[part][rows]) for values in self.values)
                tables[name, 2] = places[rows], fields
            chunks.append(LogChunk(0, stamps // self.per_second, tables, 0))
        return chunks

    def answer(self) -> Answer:
        """Compare the rows of the first events with the baseline's."""
        found, expected = self._periods(CHECKED)["rows"], self._tables(CHECKED)["rows"]
        if found != expected:
            raise WrongAnswer(f"{self.policy.name}: {found:.0f} rows, and {expected:.0f} by tables per time-point")
        return Answer([f"{found:.0f} rows over {CHECKED} events, by both"], {"events": len(self.points)})

    def contenders(self) -> Mapping[str, Contender]:
        """Periods, and where the events are few enough tables per time-point over the same events."""
        events = len(self.points)
        found = {"periods": self._periods} | ({"tables": self._tables} if events <= FEW else {})
        return {
            name: Contender(partial(run, events), None, metrics=dict, question="rows are counted")
            for name, run in found.items()
        }

    def _periods(self, events: int) -> dict[str, float]:
        evaluation = Evaluation([self.policy])
        rows = 0
        for chunk in gathered(self._chunks(events), evaluation):
            rows += sum(map(len, evaluation.feed(chunk.times, chunk.relations)))
        rows += sum(map(len, evaluation.close()))
        return {"rows": float(rows)}

    def _tables(self, events: int) -> dict[str, float]:
        baseline = TablesPerTimePoint(self.policy)
        for point in range(int(self.points[events - 1]) + 1):
            tuples: dict[tuple[str, int], list[tuple[int, int]]] = {}
            for place in np.flatnonzero(self.points[:events] == point).tolist():
                key = "ABC"[self.kinds[place]], 2
                tuples.setdefault(key, []).append((int(self.values[0, place]), int(self.values[1, place])))
            baseline.feed(point // self.per_second, tuples)
        baseline.close()
        return {"rows": float(baseline.rows)}


def _points(windows: tuple[int, ...], events: int) -> dict[str, Any]:
    return {
        f"{name}-{window}s-{points}": partial(
            PolicyRate, name, window, events, 1_000, points, 10**5 if window == 10 else 10**6
        )
        for name in POLICIES
        for window in windows
        for points in (1, 1_000)
    }


def _beside(events: int) -> dict[str, Any]:
    """Intervals of 10 s that hold 10 or 1,000 time-points."""
    return {
        f"{name}-{points}": partial(PolicyRate, name, 10, events, 100, points, 1_000)
        for name in POLICIES
        for points in (1, 100)
    }


CASES = {
    "policies": Case(
        "star, linear, triangle and publish at 1 and 1,000 time-points/s, windows of 10 to 10,000 s",
        _points((10, 100, 1_000, 10_000), 1_000_000),
        _points((10, 1_000), 50_000),
        seconds=(300, 60),
    ),
    "policies-tables": Case(
        "the same policies beside tables per time-point, intervals of 10 and of 1,000 time-points",
        _beside(FEW),
        _beside(1_000),
        seconds=(300, 60),
    ),
}
