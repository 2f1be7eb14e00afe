"""What sharing brings: growth in queries, where it pays by what a burst costs, and the policies on a real stream."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hamlet
from bench import answers, streams, workloads
from bench.cases.curves import COUNTED
from bench.machine import ROOT
from bench.subject import Answer, Case, Contender, Points
from datasets.location import real_stream
from hamlet.engine.options import SharingPolicy

POLICIES = ("dynamic", "static", "never")
SLICE_EVENTS = 10
DAY = 86_400 * 10**6  # microseconds
OTHERS = 19  # types beside the one under the plus
BURSTS = (2, 20, 100)  # events of a burst on the map
RUNGS: Mapping[str, tuple[str, str, str, int]] = {  # RETURN, WHERE, numbers, events: what a burst costs without sharing
    "count": ("LOG2(COUNT(*))", "", "float", 1_000_000),
    "sums": ("COUNT(*), SUM(Kleene.value), COUNT(Kleene)", "", "float", 1_000_000),
    "extremum": ("COUNT(*), MAX(Kleene.value)", "", "float", 500_000),
    "exact": ("COUNT(*)", "", "exact", 200_000),
    "local": ("COUNT(*)", "WHERE Kleene.value >= 20", "float", 1_000_000),
    "index": ("COUNT(*)", "WHERE Kleene.value < NEXT(Kleene).value", "float", 100_000),
    "scan": ("COUNT(*)", "WHERE Kleene.value * NEXT(Kleene).value < 2000", "float", 20_000),
}


class Policies:
    """One workload and stream under every policy, in turn, so that what slows one down slows all down.

    Parameters
    ----------
    workload : Workload
    events : pyarrow.Table
    key : str
        A column by which small slices for the oracle are cut.
    facts : mapping
        Where the point lies on its curve.
    **options
        Of `hamlet.run`.
    """

    def __init__(
        self,
        workload: hamlet.Workload,
        events: pa.Table,
        key: str,
        facts: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.workload, self.events, self.key, self.options = workload, events, key, options
        self.facts = facts or {}

    def run(self, policy: str) -> hamlet.Results:
        """All rows under a policy."""
        return hamlet.run(self.workload, self.events, sharing=cast(SharingPolicy, policy), **self.options)

    def answer(self) -> Answer:
        """The oracle on slices, and every policy against `never`."""
        answer, text = Answer(), self.workload.analysis.text
        slices = max(4, 400 // len(self.workload.queries))  # few queries match few slices
        said = answers.check_slices(
            self.workload,
            self.events,
            self.key,
            slices=slices,
            length=SLICE_EVENTS,
            policies=POLICIES,
            **self.options,
        )
        answer.checks.append(said)
        alone = self.run("never").rows()
        for policy in POLICIES[:2]:
            answers.compare(text, self.run(policy).rows(), alone, (policy, "never"))
        answer.checks.append(f"all {len(alone):,} rows of dynamic and static equal those of never")
        answer.digest = answers.digest(alone)
        answer.facts = {
            **answers.sizes(text, len(self.events), alone),
            "numbers": self.options.get("numbers", "exact"),
            **self.facts,
        }
        return answer

    def contenders(self) -> Mapping[str, Contender]:
        """The three policies."""
        return {
            f"hamlet {policy}": Contender(partial(self.run, policy), lambda results: results.rows(), metrics=_counted)
            for policy in POLICIES
        }


def _counted(results: hamlet.Results) -> dict[str, float]:
    return {name: float(results.stats[name]) for name in COUNTED if name in results.stats}


def growing(queries: int, events: int) -> Policies:
    """Queries that share one Kleene sub-pattern over long bursts, one window of 10,000 s after the other."""
    around = [f"T{number}" for number in range(OTHERS)]
    end = "WITHIN 10000 s"
    text = workloads.around_one_kleene("Kleene", around, queries, "LOG2(COUNT(*)), COUNT(Kleene)", end)
    table = streams.kleene_among_others(events, OTHERS)
    return Policies(hamlet.Workload.parse(text), table, "value", numbers="float")


def stock(name: str, numbers: str, begin: int = 0, end: int | None = None) -> Policies:
    """A workload over some of a week's trades, by place."""
    table = pq.read_table(real_stream("stock"))[begin:end]
    workload = hamlet.Workload.from_file(ROOT / "workloads" / f"{name}.sase")
    return Policies(workload, table, "symbol", numbers=numbers, time_unit="us", order_column="seq")


def first_day(name: str, numbers: str) -> Policies:
    """The same over the first day of trades; twenty minutes can make counts of tens of thousands of bits."""
    times = pq.read_table(real_stream("stock"), columns=["time"])["time"].to_numpy()
    return stock(name, numbers, 0, int(np.searchsorted(times, (times[0] // DAY + 1) * DAY)))


def mapped(rung: str, burst: int, queries: int, part: int) -> Policies:
    """Queries that share one Kleene sub-pattern on one rung of the ladder, over bursts of one length.

    Parameters
    ----------
    rung : str
        Of `RUNGS`.
    burst, queries : int
    part : int
        The stream's events are divided by it.
    """
    returned, condition, numbers, events = RUNGS[rung]
    around = [f"T{number}" for number in range(OTHERS)]
    text = workloads.around_one_kleene("Kleene", around, queries, returned, f"{condition} WITHIN 1000 s")
    table = streams.kleene_among_others(events // part, OTHERS, (burst, burst))
    facts = {"rung": rung, "events_per_burst": burst}
    return Policies(hamlet.Workload.parse(text), table, "value", facts, numbers=numbers)


def _map(part: int) -> Points:
    return {
        f"{rung}, bursts of {burst}, {queries} queries": partial(mapped, rung, burst, queries, part)
        for rung in RUNGS
        for queries in (5, 50)
        for burst in BURSTS
    }


def _growth(events: int, sizes: tuple[int, ...]) -> Points:
    return {f"{queries} queries": partial(growing, queries, events) for queries in sizes}


CASES: dict[str, Case] = {
    "growth": Case(
        "growth in the number of queries that share one Kleene sub-pattern: bursts of 20 to 120, windows of 10,000 "
        "events, no grouping, float, the three policies in turn",
        _growth(5_000_000, (1, 10, 50, 100, 500, 1_000)),
        _growth(10_000, (1, 10, 100)),
        seconds=(600, 30),
    ),
    "sharing-map": Case(
        "where sharing pays: one Kleene sub-pattern shared by 5 and 50 queries, by rung of the ladder and length of "
        "bursts, windows of 1,000 events, no grouping, the three policies in turn",
        _map(1),
        {name: make for name, make in _map(50).items() if "bursts of 20, 5 " in name},
        seconds=(900, 30),
    ),
    "stock50-policies": Case(
        "workloads/stock50.sase over trades, Arrow table in memory: dynamic, static and never in turn (with --repeats "
        "15 and more, so that the intervals say something)",
        {"week, float": partial(stock, "stock50", "float"), "day, exact": partial(first_day, "stock50", "exact")},
        {
            "float": partial(stock, "stock50", "float", 900_000, 1_000_000),
            "exact": partial(stock, "stock50", "exact", 900_000, 920_000),
        },
        seconds=(600, 60),
    ),
    "stock-chains-policies": Case(
        "workloads/stock_chains.sase over trades: the same for fifty queries that look back at single trades, float",
        {"day": partial(first_day, "stock_chains", "float")},
        {"part": partial(stock, "stock_chains", "float", 900_000, 930_000)},
        seconds=(150, 20),
    ),
}
