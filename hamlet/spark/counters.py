"""What a job counts: an accumulator to which every task adds its counters once, however often it is run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any, TypeVar

from pyspark import SparkContext
from pyspark.accumulators import Accumulator, AccumulatorParam

from hamlet.findings import Tally
from hamlet.language.schema import Clock, Schema
from hamlet.pages.activity import Activity
from hamlet.pages.decisions import Decisions
from hamlet.parallel.routing.placement import Balance
from hamlet.spark.session import task_number
from hamlet.spark.tasks import Noted

CLASS, SLICE, SENT, SEEN, DECIDED = "class", "slice", "sent", "seen", "decided"
BORDERS, FOLDED = "borders", "folded"  # counters of a class, of other tasks
NOTED, ROWS = "noted", "rows"  # what events and result rows have shown
ROUTED = -(1 << 20)  # minus a class: what the events that tasks have routed have shown


Counters = Mapping[str, int] | Activity | Decisions | Noted | Tally  # by name; for a page, of SEEN and DECIDED; others
Stats = dict[tuple[str, int, int], Counters]  # (what, number, partition) -> counters of a task

_Whole = TypeVar("_Whole", Activity, Decisions)


Key = TypeVar("Key")
Value = TypeVar("Value")


class ByKey(AccumulatorParam[dict[Key, Value]]):
    """What tasks tell by key; what is told twice, by a task that is run again, counts once."""

    def zero(self, value: dict[Key, Value]) -> dict[Key, Value]:  # noqa: ARG002
        """Nothing."""
        return {}

    def addInPlace(self, value1: dict[Key, Value], value2: dict[Key, Value]) -> dict[Key, Value]:  # noqa: N802
        """What both have told."""
        value1.update(value2)
        return value1


def stats_of(context: SparkContext) -> Accumulator[Stats]:
    """A new accumulator, to which every task adds its counters (`counted`)."""
    return context.accumulator({}, ByKey())


def counted(stats: Accumulator[Stats] | None, counters: Mapping[tuple[str, int], Counters]) -> None:
    """Add what a task has counted, by (what, number)."""
    if stats is not None:
        stats.add({(*key, task_number()): each for key, each in counters.items()})


def summed(stats: Stats, slices: int) -> dict[str, Any]:
    """The counters of a job as those of one process (`Executor.stats`), and how its slices were loaded.

    Parameters
    ----------
    stats : Stats
    slices : int
        At least so many there are.

    Returns
    -------
    dict
        The counters, ``operators`` and ``features`` among them; under ``slices`` the events of each slice (``loads``),
        ``max_over_mean``, and ``replication``: the slices to which an event was sent on average; ``left_behind``, the
        events that were not sent since their keys have no trend.
    """
    total: dict[str, int] = {}
    matched: dict[int, int] = {}
    needed: dict[int, int] = {}
    loads = [0] * max(slices, *(1 + number for what, number, _ in stats if what == SLICE), 0)
    sent = behind = 0
    for (what, number, _), each in stats.items():
        if what == SEEN or isinstance(each, Activity | Decisions | Noted | Tally):
            continue
        if what == SLICE:
            loads[number] += each["received"]
            sent += each["sent"]
        elif what == SENT:
            sent += each["sent"]
            behind += each.get("behind", 0)
            for place, events in each.items():
                if place not in ("sent", "behind"):
                    needed[int(place)] = needed.get(int(place), 0) + events
        else:
            if what != FOLDED:
                matched[number] = matched.get(number, 0) + each["matched_events"]
            for name, count in each.items():
                larger = name == "largest_count_bits"
                total[name] = max(total.get(name, 0), count) if larger else total.get(name, 0) + count
    balance = Balance(tuple(loads), sent)
    total["matched_events"] = max((needed or matched).values(), default=0)
    paths = dict(noted_of(stats).paths)
    if paths:  # one is counted for the plan, not for each task
        paths["features"] = paths["features"] | {"merged_queries": _merged_queries(stats)}
    return {**total, **paths, "slices": balance.stats, "left_behind": behind}


def events_seen(stats: Stats) -> int:
    """How many events have gone on, where tasks were told to look at all of them."""
    seen = 0
    for (what, *_), each in stats.items():
        if what == SEEN and not isinstance(each, Decisions | Noted | Tally):
            seen += each.events if isinstance(each, Activity) else each["events"]
    return seen


def noted_of(stats: Stats) -> Noted:
    """What the events of all tasks have shown."""
    return reduce(Noted.plus, (each for each in stats.values() if isinstance(each, Noted)), Noted())


def _merged_queries(stats: Stats) -> int:
    """Queries that are computed with others, of all classes."""
    found: dict[int, int] = {}
    for (_, number, _), each in stats.items():
        if isinstance(each, Noted) and each.paths and number >= 0:  # below 0 are other tasks of the same classes
            found[number] = each.paths["features"]["merged_queries"]
    return sum(found.values())


def tallies_of(stats: Stats, queries: int) -> list[Tally]:
    """What all tasks have seen of the rows of each query, by its place in the workload."""
    found = [Tally() for _ in range(queries)]
    for (_, number, _), each in stats.items():
        if isinstance(each, Tally):
            found[number] = found[number].plus(each)
    return found


def activity_of(stats: Stats, schema: Schema) -> Activity:
    """The events that all tasks have seen, by type and time; none where they were not told to look."""
    return _merged(stats, Activity(schema))


def decisions_of(stats: Stats, clock: Clock) -> Decisions:
    """What all tasks have decided; nothing where no trace was asked for."""
    return _merged(stats, Decisions(clock))


def _merged(stats: Stats, whole: _Whole) -> _Whole:
    """What the tasks have of one kind, in their order."""
    for key in sorted(stats):
        each = stats[key]
        if isinstance(each, type(whole)):
            whole.merge(each)
    return whole
