"""Aggregates over matched events, and groups by what trends took, beside the same fifty queries with COUNT(*) alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import pyarrow.compute as pc

import hamlet
from bench import answers, streams
from bench.answers import WrongAnswer
from bench.subject import Answer, Case, Contender, Tables, plain
from bench.workloads import EVENT_ITEMS, told_fifty

EVENTS, QUICK = 2_000_000, 40_000
WITHIN = "WITHIN 300 s"
OPTIONS: Mapping[str, Any] = {"count_type": "int64"}
SLICES, SLICE_EVENTS = 12, 10
# what is asked: the items of RETURN in turns, and what is in GROUP-BY besides the key
ASKED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "COUNT(*)": (("COUNT(*)",), ""),
    "EVENTS": (EVENT_ITEMS, ""),
    "FIRST": (("COUNT(*)",), "FIRST({v}.value)"),
    "LAST": (("COUNT(*)",), "LAST({v}.value)"),
    "COUNT(v)": (("COUNT(*)",), "COUNT({v})"),
}


class Ran(NamedTuple):
    """The tables of all queries, and what they took."""

    tables: Tables
    processor_s: float


class Told:
    """The workloads over one stream in memory.

    Parameters
    ----------
    events : int
    """

    def __init__(self, events: int) -> None:
        self.events = streams.many_groups(events)
        self.workloads = {
            name: hamlet.Workload.parse(told_fifty(items, group, WITHIN)) for name, (items, group) in ASKED.items()
        }

    def run(self, name: str) -> Ran:
        """What is timed: a workload, and an Arrow table of every query."""
        workload, begun = self.workloads[name], time.process_time()
        results = hamlet.run(workload, self.events, **OPTIONS)
        tables = {query: results.table(query) for query in workload.names}
        return Ran(tables, time.process_time() - begun)

    def answer(self) -> Answer:
        """The oracle on slices; and the groups of each row of COUNT(*) add up to it, and EVENTS has the same rows."""
        answer = Answer()
        found = {name: self.run(name).tables for name in ASKED}
        for name, workload in self.workloads.items():
            said = answers.check_slices(workload, self.events, "key", slices=SLICES, length=SLICE_EVENTS, **OPTIONS)
            answer.checks.append(f"{name}: {said}")
            answer.digest += answers.digest(found[name]) + " "
        where = ["key", "window_start"]
        for query, counted in found["COUNT(*)"].items():
            counted = counted.sort_by([(each, "ascending") for each in where])
            for name in ("FIRST", "LAST", "COUNT(v)"):
                summed = found[name][query].group_by(where).aggregate([("count", "sum")])
                summed = summed.sort_by([(each, "ascending") for each in where])
                if summed["count_sum"].combine_chunks() != counted["count"].combine_chunks():
                    raise WrongAnswer(f"{name} {query}: the groups of a row do not add up to its count")
            told = found["EVENTS"][query].sort_by([(each, "ascending") for each in where])
            if any(told[each].combine_chunks() != counted[each].combine_chunks() for each in where):
                raise WrongAnswer(f"EVENTS {query}: the rows are others than those of COUNT(*)")
        answer.checks.append("the groups of every row add up to its COUNT(*), and EVENTS has the rows of COUNT(*)")
        most = max(pc.max(table["count"]).as_py() or 0 for table in found["COUNT(*)"].values())
        answer.facts = {
            "events": len(self.events),
            "queries": len(found["EVENTS"]),
            "rows": sum(len(table) for tables in found.values() for table in tables.values()),
            "largest_count_bits": most.bit_length(),
        }
        return answer

    def contenders(self) -> Mapping[str, Contender]:
        """COUNT(*) first."""
        return {
            name: Contender(
                partial(self.run, name), lambda ran: ran.tables, metrics=lambda ran: {"processor_s": ran.processor_s}
            )
            for name in ASKED
        }


CASES: dict[str, Case] = {
    "trends-told": plain(
        "Aggregates over EVENTS, and groups by FIRST, LAST and COUNT of a variable: 50 queries over 2 million events "
        "of 5,000 keys in memory, one thread, beside the same queries with COUNT(*)",
        lambda: Told(EVENTS),
        lambda: Told(QUICK),
        seconds=(120, 20),
    )
}
