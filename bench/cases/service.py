"""What a service sees: latency of an engine online, microseconds per row, and what a second core brings."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Mapping
from functools import partial
from multiprocessing.synchronize import Barrier
from typing import Any, cast

import numpy as np
import pyarrow as pa

import hamlet
from bench import answers, online, streams, workloads
from bench.subject import Answer, Case, Contender, Points, Rows, plain
from hamlet.engine.options import Numbers

PER_MINUTE = 20_000
WINDOW_S = 60


class Latency:
    """From the last event of a window, or `advance`, to the rows.

    Parameters
    ----------
    groups : int
        Keys, and so at most as many rows per query and window.
    queries : int
    minutes : int
        Of the stream, 20,000 events each.
    """

    def __init__(self, groups: int, queries: int, minutes: int) -> None:
        random = np.random.default_rng(1)
        events = PER_MINUTE * minutes
        lines = workloads.many_groups_fifty(f"WITHIN {WINDOW_S} s").splitlines()
        self.workload = hamlet.Workload.parse("\n".join(lines[:queries]))
        self.events = pa.table(
            {
                "time": np.arange(events) * 60_000 // PER_MINUTE,
                "type": streams.typed(random.integers(0, len(streams.TYPES), events)),
                "key": random.integers(0, groups, events).astype(np.int32),
                "value": random.integers(0, 100, events),
            }
        )
        self.options: dict[str, Any] = {"numbers": "float", "time_unit": "ms"}
        self.groups = groups
        self.stream = online.batches(self.events["time"].to_numpy(), 1000)
        self.pieces = online.pieces_of(self.events, self.stream)

    def run(self) -> tuple[Rows, list[tuple[float, int]]]:
        """All rows; for each closing window the seconds of `advance`, and how many rows it gave."""
        engine = hamlet.Engine(self.workload, **self.options)
        rows: Rows = []
        closings = []
        for batch, piece in zip(self.stream, self.pieces, strict=True):
            rows += engine.push(piece)
            begin = time.perf_counter()
            found = engine.advance(batch.until)
            seconds = time.perf_counter() - begin
            if found:
                closings.append((seconds, len(found)))
            rows += found
        return rows + engine.close(), closings

    def answer(self) -> Answer:
        """Against a run over the whole stream, and that against GRETA for the queries that it knows."""
        text = self.workload.analysis.text
        whole = hamlet.run(self.workload, self.events, **self.options).rows()
        rows, closings = self.run()
        answers.compare(text, rows, whole, ("online", "at once"))
        first = self.events.slice(0, min(len(self.events), PER_MINUTE))
        ours = hamlet.run(self.workload, first, **self.options).rows()
        beside_greta = answers.check_greta(self.workload, first, ours, "of the first minute", time_unit="ms")
        facts = {
            **answers.sizes(text, len(self.events), whole),
            "numbers": "float",
            "groups": self.groups,
            "events_per_min": PER_MINUTE,
            "closings": len(closings),
        }
        checks = [f"all {len(whole):,} rows online equal those at once", beside_greta]
        return Answer(checks, facts, answers.digest(whole))

    def contenders(self) -> Mapping[str, Contender]:
        """Our engine."""
        return {"hamlet": Contender(self.run, lambda result: result[0], metrics=_percentiles)}


def _percentiles(result: tuple[Rows, list[tuple[float, int]]]) -> dict[str, float]:
    seconds, rows = (np.array(column) for column in zip(*result[1], strict=True))
    return {
        "advance_p50_ms": float(np.percentile(seconds, 50) * 1e3),
        "advance_p99_ms": float(np.percentile(seconds, 99) * 1e3),
        "us_per_row": float(seconds.sum() / rows.sum() * 1e6),
    }


# ------------------------------------------------------------------------------------------------------ threads


def _independent(kind: type[Threads], events: int, start: Barrier, done: Barrier) -> None:
    """A process of its own: makes the stream, then runs whenever it is told to, as long as it lives."""
    subject = kind(events)
    while True:
        start.wait()
        subject.run(1)
        done.wait()


class Threads:
    """Two threads against two independent processes of one thread each, over many groups.

    Parameters
    ----------
    events : int
    """

    numbers = "exact"

    def __init__(self, events: int = streams.FULL) -> None:
        self.workload, self.events = self.question(events)
        self._processes: list[multiprocessing.process.BaseProcess] = []

    def question(self, events: int) -> tuple[hamlet.Workload, pa.Table]:
        """The workload and the stream."""
        return hamlet.Workload.parse(workloads.many_groups_fifty("WITHIN 300 s")), streams.many_groups(events)

    def run(self, threads: int) -> dict[str, pa.Table]:
        """Arrow tables of all queries."""
        results = hamlet.run(
            self.workload, self.events, threads=threads, count_type="int64", numbers=cast(Numbers, self.numbers)
        )
        return {name: results.table(name) for name in self.workload.names}

    def in_processes(self) -> None:
        """Both processes run at once, each over a stream of the same size; made by the first call."""
        if not self._processes:
            context = multiprocessing.get_context("spawn")
            self._start, self._done = context.Barrier(3), context.Barrier(3)
            arguments = (type(self), len(self.events), self._start, self._done)
            self._processes = [context.Process(target=_independent, args=arguments, daemon=True) for _ in range(2)]
            for process in self._processes:
                process.start()
        self._start.wait()
        self._done.wait()

    def answer(self) -> Answer:
        """The rows of one thread; the case many-groups checks them."""
        one, two = self.run(1), self.run(2)
        if answers.digest(one) != answers.digest(two):
            raise answers.WrongAnswer("two threads give other rows than one")
        facts = {
            "events": len(self.events),
            "queries": len(one),
            "rows": sum(len(table) for table in one.values()),
            "largest_count_bits": answers.largest_bits(one),
            "numbers": self.numbers,
        }
        return Answer(["two threads give the rows of one (checked in many-groups)"], facts, answers.digest(one))

    def contenders(self) -> Mapping[str, Contender]:
        """Throughput: the two processes read twice as many events."""
        return {
            "hamlet 2 threads": Contender(partial(self.run, 2), lambda tables: tables),
            "hamlet 1 thread": Contender(partial(self.run, 1), lambda tables: tables),
            "2 processes of 1 thread": Contender(
                self.in_processes,
                None,
                in_children=True,
                events=2 * len(self.events),
                question="the same, twice at the same time over a stream each: twice the events",
            ),
        }


class OneGroup(Threads):
    """The same over one giant group, whose runs of time the threads take in turns.

    Parameters
    ----------
    events : int
    """

    numbers = "float"
    PATTERNS = ("SEQ(Begin, Go+)", "(SEQ(Begin, Go+))+", "SEQ(Begin, Go+, NOT Stop, Begin)")

    def question(self, events: int) -> tuple[hamlet.Workload, pa.Table]:
        """Three queries without groups; a tenth of the events are of the first type, a tenth of the last."""
        random = np.random.default_rng(1)
        kinds = random.choice(3, events, p=(0.1, 0.8, 0.1)).astype(np.int8)
        returned = "RETURN LOG2(COUNT(*)), AVG(Go.value) PATTERN"
        text = "".join(f"{returned} {each} WITHIN 1200 s SLIDE 300 s;\n" for each in self.PATTERNS)
        columns = {
            "time": np.arange(events) // 10,
            "type": pa.DictionaryArray.from_arrays(pa.array(kinds), pa.array(["Begin", "Go", "Stop"])),
            "seq": np.arange(events),
            "value": random.random(events),
        }
        return hamlet.Workload.parse(text), pa.table(columns)

    def run(self, threads: int) -> dict[str, pa.Table]:
        """Arrow tables of all queries."""
        results = hamlet.run(
            self.workload, self.events, threads=threads, numbers=cast(Numbers, self.numbers), order_column="seq"
        )
        return {name: results.table(name) for name in self.workload.names}

    def answer(self) -> Answer:
        """Two threads in floating point against one thread with exact numbers."""
        text = self.workload.analysis.text
        exact = hamlet.run(self.workload, self.events, order_column="seq").rows()
        two = hamlet.run(
            self.workload, self.events, order_column="seq", threads=2, numbers=cast(Numbers, self.numbers)
        ).rows()
        answers.compare(text, two, exact, ("two threads, float", "one thread, exact"))
        facts = {
            "events": len(self.events),
            "queries": len(self.workload.queries),
            "rows": len(two),
            "largest_count_bits": answers.largest_count_bits(text, exact),
            "numbers": self.numbers,
        }
        check = f"all {len(two):,} rows of two threads equal those of one with exact numbers"
        return Answer([check], facts, answers.digest(self.run(1)))


def _points(minutes: int, groups: tuple[tuple[int, int], ...]) -> Points:
    return {f"{keys} groups, {queries} queries": partial(Latency, keys, queries, minutes) for keys, queries in groups}


CASES: dict[str, Case] = {
    "latency": Case(
        "online, 20,000 events per minute in batches of one second, tumbling windows of one minute, float: from "
        "advance at the window's end to its rows",
        _points(20, ((20, 50), (5_000, 50))),
        _points(3, ((20, 10),)),
        seconds=(120, 20),
    ),
    "threads": plain(
        "many groups (W1), 50 queries: two threads, one thread, and two independent processes of one thread",
        Threads,
        lambda: Threads(50_000),
        seconds=(600, 60),
    ),
    "threads-one-group": plain(
        "one group, three queries WITHIN 20 min SLIDE 5 min, float: two threads that take turns along time, one "
        "thread, and two independent processes of one thread",
        OneGroup,
        lambda: OneGroup(50_000),
        seconds=(300, 60),
    ),
}
