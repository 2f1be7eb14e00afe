"""Neighbours of the fast cases: what is a little more than these, numbers beyond 64 bits above all.

Fifty queries over two million events of five types (10, 70, 10, 5 and 5 %), most of them at one time with another one
of their key, beside DuckDB's plain GROUP BY in the same process; and over a fifth of them under each policy of sharing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import pyarrow as pa

import hamlet
from bench import answers, streams
from bench.answers import WrongAnswer
from bench.cases.limits import Beside, Ran
from bench.subject import Answer, Case, Contender
from bench.workloads import neighbours_fifty

EVENTS, QUICK = 2_000_000, 40_000
UNDER_POLICIES = EVENTS // 5
WEIGHTS = (10, 70, 10, 5, 5)
POLICIES: tuple[Literal["dynamic", "static", "never"], ...] = ("dynamic", "static", "never")
EXACT: Mapping[str, Any] = {"count_type": "string"}
FLOAT: Mapping[str, Any] = {"numbers": "float", "count_type": "double"}
FIVE, TEN, SLIDING = "WITHIN 300 s", "WITHIN 600 s", "WITHIN 600 s SLIDE 60 s"


class Neighbour(Beside):
    """A case under each policy of sharing."""

    def run_by(self, policy: Literal["dynamic", "static", "never"]) -> Ran:
        """A run under a policy; no tables, which for large numbers would be decimal text."""
        return Ran(hamlet.run(self.workload, self.events, sharing=policy, **self.options), None, 0.0)

    def answer(self) -> Answer:
        """As of `Beside`; and all policies agree to the last digit, of doubles to 1e-9."""
        answer = super().answer()
        text = self.workload.analysis.text
        first = self.run_by("dynamic").results.rows()
        for policy in POLICIES[1:]:
            rows = self.run_by(policy).results.rows()
            if "numbers" in self.options:
                answers.compare(text, rows, first, (policy, "dynamic"))
            elif rows != first:
                raise WrongAnswer(f"the rows of sharing {policy} are others than those of dynamic")
        answer.checks.append(f"all {len(first):,} rows are the same under {', '.join(POLICIES)}")
        return answer

    def contenders(self) -> Mapping[str, Contender]:
        """The policies."""
        return {
            f"hamlet {policy}": Contender(partial(self.run_by, policy), self.tables)
            if "numbers" not in self.options or policy == "dynamic"
            else Contender(partial(self.run_by, policy), None, question="the same; doubles may differ at the end")
            for policy in POLICIES
        }


@dataclass(frozen=True)
class Point:
    """A stream, windows, and how numbers are."""

    make: Callable[..., pa.Table]
    within: str
    options: Mapping[str, Any]
    pane_s: int
    details: Mapping[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        """The workload."""
        return neighbours_fifty(self.within)

    def stream(self, events: int) -> pa.Table:
        """So many events."""
        return self.make(events, weights=WEIGHTS, **self.details)

    def subject(self, events: int, kind: type[Beside] = Beside) -> Beside:
        """The case over so many events."""
        return kind(self.text(), self.stream(events), pane_s=self.pane_s, arrow=False, **self.options)


_BURSTS = partial(streams.short_bursts, burst=4)
POINTS = {
    "50 keys, exact": Point(streams.many_groups, FIVE, EXACT, 300, {"keys": 50}),
    "50 keys, float": Point(streams.many_groups, FIVE, FLOAT, 300, {"keys": 50}),
    "200,000 keys, exact": Point(streams.many_groups, FIVE, EXACT, 300, {"keys": 200_000}),
    "bursts of 4, exact": Point(_BURSTS, TEN, EXACT, 600, {"keys": 500}),
    "bursts of 4, float": Point(_BURSTS, TEN, FLOAT, 600, {"keys": 500}),
    "sliding, float": Point(streams.many_groups, SLIDING, FLOAT, 60, {"keys": 50}),
    "sliding, exact": Point(streams.many_groups, SLIDING, EXACT, 60, {"keys": 50}),
}
CASES: dict[str, Case] = {
    "neighbours": Case(
        "Neighbours of the fast cases: 50 queries over 2 million events in memory, many of them at one time, one "
        "thread, beside DuckDB's GROUP BY",
        {name: partial(point.subject, EVENTS) for name, point in POINTS.items()},
        {name: partial(point.subject, QUICK) for name, point in POINTS.items()},
        seconds=(200, 20),
    ),
    "neighbours-policies": Case(
        "Neighbours of the fast cases: 50 queries over 400,000 events in memory, one thread, under each policy of "
        "sharing",
        {name: partial(point.subject, UNDER_POLICIES, Neighbour) for name, point in POINTS.items()},
        {name: partial(point.subject, QUICK, Neighbour) for name, point in POINTS.items()},
        seconds=(120, 20),
    ),
}
