"""What grows with what a policy keeps: the cost of an event as the interval grows, and that of a small push.

The interval grows from 10 s to 30 days over one stream: with a thousand valuations that recur, and with new ones only,
of which ever more are kept. Pushes of 1 to 1,000 events come to monitors that keep ten thousand to a million rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.answers import WrongAnswer
from bench.cases.policies import PIECE, SIGNATURE
from bench.subject import Answer, Case, Contender
from hamlet.policies import Policy
from hamlet.policies.logs.batching import gathered
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.plan.evaluation import Evaluation

POLICIES = {
    "once": "B(x,y) AND NOT ONCE[0,{w}] A(x,y)",
    "eventually": "B(x,y) AND NOT EVENTUALLY[0,{w}] A(x,y)",
}
DAY = 86_400
INTERVALS = {"10s": 10, "1000s": 1_000, "1d": DAY, "30d": 30 * DAY}
PUSHES = (1, 10, 100, 1_000)


def _chunk(random: np.random.Generator, times: npt.NDArray[np.int64], domain: int) -> LogChunk:
    """Events A, B and C, one for each of some times, which ascend; both fields are one value."""
    stamps, places = np.unique(times, return_inverse=True)
    kinds, values = random.integers(0, 3, len(times)), random.integers(0, domain, len(times))
    tables: dict[tuple[str, int], Any] = {}
    for kind, name in enumerate("ABC"):
        rows = np.flatnonzero(kinds == kind)
        tables[name, 2] = places[rows], (pa.array(values[rows]),) * 2
    return LogChunk(0, stamps, tables, 0)


class Interval:
    """A policy of one interval over a stream of a hundred events a second.

    Parameters
    ----------
    name : str
        Of `POLICIES`.
    interval : int
        Seconds.
    events : int
    domain : int
        Distinct values.
    """

    def __init__(self, name: str, interval: int, events: int, domain: int) -> None:
        self.policy = Policy.parse(POLICIES[name].format(w=interval), SIGNATURE, name=name)
        random = np.random.default_rng(1)
        self.chunks = [
            _chunk(random, np.arange(low, min(events, low + PIECE)) // 100, domain) for low in range(0, events, PIECE)
        ]
        self.events, self.interval, self.domain = events, interval, domain

    def answer(self) -> Answer:
        """Two ways of cutting the stream have to give the same rows."""
        one, other = self._run(), self._run(small=True)
        if one["rows"] != other["rows"]:
            raise WrongAnswer(f"{one['rows']:.0f} rows, and {other['rows']:.0f} in smaller batches")
        facts: dict[str, Any] = {"policy": self.policy.name, "events": self.events, "interval_s": self.interval}
        facts |= {"values": self.domain, "rows": int(one["rows"])}
        return Answer([f"{one['rows']:,.0f} rows in batches of either size"], facts)

    def contenders(self) -> Mapping[str, Contender]:
        """The whole stream."""
        return {"periods": Contender(self._run, None, metrics=dict, question="rows are counted")}

    def _run(self, *, small: bool = False) -> dict[str, float]:
        evaluation = Evaluation([self.policy])
        rows = kept = 0
        for chunk in self.chunks if small else gathered(self.chunks, evaluation):
            rows += sum(map(len, evaluation.feed(chunk.times, chunk.relations)))
            kept = max(kept, evaluation.kept_rows)
        rows += sum(map(len, evaluation.close()))
        return {"rows": float(rows), "kept_rows": float(kept)}


class Pushes:
    """Small pushes to a policy that keeps many rows.

    Parameters
    ----------
    name : str
        Of `POLICIES`.
    kept : int
        Events before the first push, a third of which are kept.
    pushes : int
        Of each size.
    """

    def __init__(self, name: str, kept: int, pushes: int) -> None:
        self.policy = Policy.parse(POLICIES[name].format(w=30 * DAY), SIGNATURE, name=name)
        self._random = np.random.default_rng(1)
        self.evaluation = Evaluation([self.policy])
        self._time = kept // 100
        first = _chunk(self._random, np.arange(kept) // 100, 10**9)
        self.before = sum(map(len, self.evaluation.feed(first.times, first.relations)))
        self.kept, self.pushes = kept, pushes

    def answer(self) -> Answer:
        """A policy beside it that was fed in one batch has to give the rows of the pushes."""
        small = Pushes(self.policy.name, 3_000, 1)
        random = np.random.default_rng(1)
        first, time = _chunk(random, np.arange(3_000) // 100, 10**9), small._time
        rest = [_chunk(random, np.full(7, time + place), 50) for place in range(1, 60)]
        pushed = [answer for chunk in rest for answer in small.evaluation.feed(chunk.times, chunk.relations)]
        pushed += small.evaluation.close()
        one = Evaluation([self.policy])
        whole = [answer for chunk in gathered([first, *rest], one) for answer in one.feed(chunk.times, chunk.relations)]
        whole += one.close()
        rows = [sum(map(len, answers)) for answers in (pushed, whole)]
        if rows[0] + small.before != rows[1]:
            raise WrongAnswer(f"{rows[0] + small.before} rows by pushes, and {rows[1]} in one batch")
        facts: dict[str, Any] = {"policy": self.policy.name, "events": self.pushes * sum(PUSHES)}
        facts |= {"kept": self.kept, "pushes": self.pushes}
        return Answer([f"{rows[1]:,} rows by pushes and in one batch"], facts)

    def contenders(self) -> Mapping[str, Contender]:
        """Pushes of each size, one after the other."""
        return {
            f"{size} events": Contender(
                partial(self._push, size),
                None,
                events=size * self.pushes,
                question="rows are given as they are decided",
            )
            for size in PUSHES
        }

    def _push(self, size: int) -> None:
        for _ in range(self.pushes):
            self._time += 1
            chunk = _chunk(self._random, np.full(size, self._time), 10**9)
            self.evaluation.feed(chunk.times, chunk.relations)


def _intervals(events: int) -> dict[str, Any]:
    return {
        f"{name}-{kind}-{shown}": partial(Interval, name, interval, events, domain)
        for name in POLICIES
        for kind, domain in (("recurring", 1_000), ("new", 10**9))
        for shown, interval in INTERVALS.items()
    }


def _pushes(sizes: tuple[int, ...], pushes: int) -> dict[str, Any]:
    return {f"{name}-{size}": partial(Pushes, name, size, pushes) for name in POLICIES for size in sizes}


CASES = {
    "policies-intervals": Case(
        "a policy as its interval grows from 10 s to 30 days, over valuations that recur and over new ones",
        _intervals(1_000_000),
        _intervals(30_000),
        seconds=(60, 30),
    ),
    "policies-pushes": Case(
        "pushes of 1 to 1,000 events to policies that keep ten thousand to a million rows",
        _pushes((10_000, 100_000, 1_000_000), 100),
        _pushes((10_000,), 10),
        seconds=(30, 10),
    ),
}
