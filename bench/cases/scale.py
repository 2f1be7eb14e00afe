"""How time and memory grow: streams made here, whose answers a few lines of numpy or Python know.

Every subject takes its sizes, so that a test can run all of it in a second.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
from bisect import bisect_left
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hamlet
from bench import answers, machine
from bench.answers import WrongAnswer
from bench.subject import Answer, Case, Contender, Rows, plain, rows_written
from bench.workloads import RIDES
from hamlet.engine.executor import executor_of
from hamlet.engine.options import Options
from hamlet.input.columns import StringPool
from hamlet.input.events import open_events
from hamlet.memory.budget import Budget
from hamlet.planner.memory import bound

ROW_GROUP = 1_000_000
DISTRICTS = 12


def _log2(rows: Rows) -> list[float]:
    return [float(row["log2_count"]) for row in rows]


def _near(found: float, expected: float) -> bool:
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-9)


class Memory:
    """Peak memory while the events per window grow: one Parquet file in time order, windows of several lengths.

    Parameters
    ----------
    events : int
        One a second.
    windows : tuple of int
        Events per window; the shortest last.
    """

    def __init__(self, events: int = 4_000_000, windows: tuple[int, ...] = (1_000_000, 10_000)) -> None:
        self.events, self.windows = events, windows
        self._folder = tempfile.TemporaryDirectory(prefix="hamlet-bench-")
        self.folder = Path(self._folder.name)
        self.input = self.folder / "rides.parquet"
        self._write()
        for window in windows:
            self._file(window).write_text(self._text(window), encoding="utf-8")

    def _write(self) -> None:
        random = np.random.default_rng(1)
        schema = {"time": pa.int64(), "type": pa.string(), "district": pa.string(), "speed": pa.float64()}
        with pq.ParquetWriter(self.input, pa.schema(schema)) as writer:
            for start in range(0, self.events, ROW_GROUP):
                times = np.arange(start, min(start + ROW_GROUP, self.events))
                kinds = np.array(["Request", "Travel", "Pool", "Dropoff"])
                districts = np.array([f"District {number}" for number in range(DISTRICTS)])
                columns = {
                    "time": times,
                    "type": kinds[random.choice(4, len(times), p=(0.1, 0.7, 0.1, 0.1))],
                    "district": districts[random.integers(0, DISTRICTS, len(times))],
                    "speed": random.random(len(times)) * 60,
                }
                writer.write_table(pa.table(columns, schema=pa.schema(schema)), row_group_size=ROW_GROUP)

    def _text(self, window: int) -> str:
        returned = "RETURN district, LOG2(COUNT(*)), AVG(Travel.speed)"
        return "".join(f"{returned} PATTERN {each} GROUP-BY district WITHIN {window} s;\n" for each in RIDES)

    def _file(self, window: int) -> Path:
        return self.folder / f"{window}.sase"

    def submit(self, window: int) -> Path:
        """Run ``hamlet run --numbers float``; returns the output folder."""
        output = self.folder / f"{window}"
        command = [sys.executable, "-m", "hamlet", "run", str(self._file(window)), "--input", str(self.input)]
        command += ["--output", str(output), "--overwrite", "--quiet", "--numbers", "float"]
        subprocess.run(command, cwd=machine.ROOT, check=True)
        return output

    @staticmethod
    def written(output: Path) -> Rows:
        """The rows that a run wrote."""
        return rows_written(output, (f"q{number}" for number in range(1, 1 + len(RIDES))))

    def answer(self) -> Answer:
        """Floating point against exact numbers, and what the kernel holds against the printed bound."""
        answer = Answer(facts={"events": self.events, "queries": len(RIDES), "numbers": "float", "rows": 0})
        largest = 0
        for window in self.windows:
            workload = hamlet.Workload.parse(self._text(window))
            exact = hamlet.run(workload, self.input)
            rows = self.written(self.submit(window))
            answers.compare(workload.analysis.text, rows, exact.rows(), ("numbers=float", "numbers=exact"))
            held, limit, bits = self._held(window)
            if held > limit:
                raise WrongAnswer(f"states hold {held:,} bytes, more than the bound {limit:,.0f}")
            answer.checks.append(
                f"windows of {window:,} events: all {len(rows):,} rows equal those of exact numbers, with which the "
                f"states hold {held:,} bytes at most and the bound for {bits:,} bits is {limit:,.0f}"
            )
            answer.digest += f"{answers.digest(rows)} "
            answer.facts["rows"] += len(rows)
            largest = max(largest, bits)
        answer.facts["largest_count_bits"] = largest
        return answer

    def _held(self, window: int) -> tuple[int, float, int]:
        """With exact numbers: the most bytes of all states, looked at after each batch, the bound, the bits of it."""
        source, budget = open_events(self.input), Budget()
        workload = hamlet.Workload.parse(self._text(window))
        executor = executor_of(workload, source.schema, StringPool(), Options(), budget)
        most = 0
        for batch in source.batches(["district", "speed"]):
            executor.process(batch)
            most = max(most, sum(each.bytes for each in executor.holdings()))
            executor.drain_groups(0)
        executor.advance(self.events + window)
        bits = executor.stats["largest_count_bits"]
        limit = 0.0
        for query in executor.workload.queries:
            each = bound(query.tables)
            limit += DISTRICTS * (each.partition + each.window.at(bits)) + each.thread.at(bits)
        return most, limit, bits

    def contenders(self) -> Mapping[str, Contender]:
        """The command over the same file, by the length of its windows."""
        return {
            f"windows of {window:,} events": Contender(partial(self.submit, window), self.written, in_children=True)
            for window in self.windows
        }


class RisingPrices:
    """``S.price < NEXT(S).price`` over uniform random prices in one window: an index answers it in O(log n).

    Parameters
    ----------
    sizes : tuple of int
        Events in the window; the largest first.
    """

    TEXT = "RETURN LOG2(COUNT(*)) PATTERN Stock S+ WHERE S.price < NEXT(S).price WITHIN 10000000 s"

    def __init__(self, sizes: tuple[int, ...] = (200_000, 100_000)) -> None:
        self.workload = hamlet.Workload.parse(self.TEXT)
        prices = np.random.default_rng(1).random(max(sizes))
        self.events = {size: _stocks(prices[:size]) for size in sizes}

    def run(self, events: pa.Table) -> hamlet.Results:
        """All rows."""
        return hamlet.run(self.workload, events, numbers="float")

    def answer(self) -> Answer:
        """Against the number of rising subsequences, in exact integers and another data structure."""
        answer = Answer(facts={"queries": 1, "rows": 1, "numbers": "float"})
        for size, events in self.events.items():
            expected = _rising(events["price"].to_numpy())
            rows = self.run(events).rows()
            if len(rows) != 1 or not _near(_log2(rows)[0], math.log2(expected)):
                raise WrongAnswer(f"{rows} for {size:,} events, the sum over a Fenwick tree is 2^{math.log2(expected)}")
            answer.checks.append(f"{size:,} events: LOG2 of the count equals that of exact integers in a Fenwick tree")
            answer.digest += f"{answers.digest(rows)} "
            answer.facts |= {"events": max(self.events), "largest_count_bits": expected.bit_length()}
        return answer

    def contenders(self) -> Mapping[str, Contender]:
        """The same question by size."""
        return {
            f"{size:,} events": Contender(partial(self.run, events), lambda r: r.rows(), events=size)
            for size, events in self.events.items()
        }


def _stocks(prices: np.ndarray[Any, Any], volumes: np.ndarray[Any, Any] | None = None) -> pa.Table:
    columns = {"time": np.arange(len(prices)), "type": pa.array(["Stock"] * len(prices)), "price": prices}
    return pa.table(columns if volumes is None else columns | {"volume": volumes})


def _rising(prices: np.ndarray[Any, Any]) -> int:
    """How many non-empty subsequences rise; by a Fenwick tree over the ranks."""
    ordered = sorted(set(prices.tolist()))
    tree = [0] * (len(ordered) + 1)
    total = 0
    for price in prices.tolist():
        place = bisect_left(ordered, price)
        count, at = 1, place
        while at > 0:
            count += tree[at]
            at &= at - 1
        total += count
        at = place + 1
        while at < len(tree):
            tree[at] += count
            at += at & -at
    return total


class Scan:
    """An arithmetic condition over both neighbours that no index answers: every pair of events is looked at.

    Parameters
    ----------
    size : int
        Events in the window.
    """

    TEXT = """RETURN LOG2(COUNT(*)) PATTERN Stock S+
        WHERE S.price * NEXT(S).volume + 0.1 < NEXT(S).price * S.volume WITHIN 10000000 s"""

    def __init__(self, size: int = 20_000) -> None:
        random = np.random.default_rng(1)
        self.workload = hamlet.Workload.parse(self.TEXT)
        self.events = _stocks(random.random(size), random.random(size))

    def run(self) -> hamlet.Results:
        """All rows."""
        return hamlet.run(self.workload, self.events, numbers="float")

    def answer(self) -> Answer:
        """Against the recurrence over numpy vectors."""
        size, rows = len(self.events), self.run().rows()
        expected = _scanned(self.events["price"].to_numpy(), self.events["volume"].to_numpy())
        if len(rows) != 1 or not _near(_log2(rows)[0], expected):
            raise WrongAnswer(f"{rows}, the recurrence in numpy has 2^{expected}")
        return Answer(
            [f"{size:,} events: LOG2 of the count equals that of the recurrence in numpy"],
            {
                "events": size,
                "pairs": size * (size - 1) // 2,
                "queries": 1,
                "rows": 1,
                "largest_count_bits": int(expected) + 1,
                "numbers": "float",
            },
            answers.digest(rows),
        )

    def contenders(self) -> Mapping[str, Contender]:
        """Hamlet alone."""
        return {"hamlet": Contender(self.run, lambda r: r.rows())}


def _scanned(prices: np.ndarray[Any, Any], volumes: np.ndarray[Any, Any]) -> float:
    """LOG2 of the count for `Scan`: sums over all earlier events, scaled down where they grow."""
    counts, scale = np.zeros(len(prices)), 0
    for at in range(len(prices)):
        follows = prices[:at] * volumes[at] + 0.1 < prices[at] * volumes[:at]
        counts[at] = math.ldexp(1.0, -scale) + float(counts[:at][follows].sum())
        if counts[at] > 2.0**300:
            counts[: at + 1] *= 2.0**-300  # what becomes nothing by it is below every bit of the sum
            scale += 300
    return math.log2(float(counts.sum())) + scale


class LongGroup:
    """One group with many events in long windows.

    Parameters
    ----------
    events, window : int
        One event a second, so many in a window.
    """

    def __init__(self, events: int = 10_000_000, window: int = 100_000) -> None:
        self.window = window
        text = f"RETURN k, LOG2(COUNT(*)) PATTERN SEQ(Begin, Go+) GROUP-BY k WITHIN {window} s"
        self.workload = hamlet.Workload.parse(text)
        self.goes = np.random.default_rng(1).random(events) < 0.9
        kinds = pa.DictionaryArray.from_arrays(pa.array(self.goes.astype(np.int32)), pa.array(["Begin", "Go"]))
        self.events = pa.table({"time": np.arange(events), "type": kinds, "k": np.zeros(events, np.int64)})

    def run(self) -> hamlet.Results:
        """All rows."""
        return hamlet.run(self.workload, self.events, numbers="float")

    def answer(self) -> Answer:
        """Against the recurrence T = 2 T + S in plain Python."""
        rows = self.run().rows()
        expected = [self._counted(start) for start in range(0, len(self.goes), self.window)]
        if len(rows) != len(expected) or not all(map(_near, _log2(rows), expected)):
            raise WrongAnswer("the counts are not those of the recurrence in Python")
        return Answer(
            [f"LOG2 of all {len(rows):,} counts equals that of a recurrence in Python"],
            {
                "events": len(self.events),
                "queries": 1,
                "rows": len(rows),
                "largest_count_bits": int(max(expected)) + 1,
                "numbers": "float",
            },
            answers.digest(rows),
        )

    def _counted(self, start: int) -> float:
        begun, trends, scale = 0, 0.0, 0
        for goes in self.goes[start : start + self.window].tolist():
            if goes:
                trends = 2 * trends + math.ldexp(begun, -scale)
                if trends > 2.0**300:
                    trends, scale = trends * 2.0**-300, scale + 300
            else:
                begun += 1
        return math.log2(trends) + scale

    def contenders(self) -> Mapping[str, Contender]:
        """Hamlet alone."""
        return {"hamlet": Contender(self.run, lambda r: r.rows())}


class GroupsOfOne:
    """As many groups as events.

    Parameters
    ----------
    groups : int
    """

    def __init__(self, groups: int = 1_000_000) -> None:
        self.workload = hamlet.Workload.parse("RETURN k, COUNT(*) PATTERN Once GROUP-BY k WITHIN 100000 s")
        kinds = pa.DictionaryArray.from_arrays(pa.array(np.zeros(groups, np.int32)), pa.array(["Once"]))
        keys = np.random.default_rng(1).permutation(groups)
        self.events = pa.table({"time": np.arange(groups), "type": kinds, "k": keys})

    def run(self) -> hamlet.Results:
        """All rows."""
        return hamlet.run(self.workload, self.events)

    def answer(self) -> Answer:
        """Every group has one trend, in the window of its event."""
        rows, groups = self.run().rows(), len(self.events)
        times = dict(zip(self.events["k"].to_pylist(), self.events["time"].to_pylist(), strict=True))
        if {row["k"] for row in rows} != times.keys() or len(rows) != groups:
            raise WrongAnswer(f"{len(rows):,} rows for {groups:,} groups")
        if any(row["count"] != 1 or not 0 <= times[row["k"]] - row["window_start"] < 100_000 for row in rows):
            raise WrongAnswer("a group has another count than one, or another window than that of its event")
        facts = {"events": groups, "queries": 1, "rows": groups, "largest_count_bits": 1, "numbers": "exact"}
        return Answer([f"all {groups:,} groups have one trend"], facts, answers.digest(rows))

    def contenders(self) -> Mapping[str, Contender]:
        """Hamlet alone."""
        return {"hamlet": Contender(self.run, lambda r: r.rows())}


CASES: dict[str, Case] = {
    "memory": plain(
        "three queries without adjacent predicates per district, float, a Parquet file in time order streamed by the "
        "command line: peak memory while the events per window grow",
        Memory,
        lambda: Memory(60_000, (30_000, 3_000)),
        seconds=(90, 20),
    ),
    "rising-prices": plain(
        "S.price < NEXT(S).price over uniform random prices, one window, one group, float, Arrow table in memory",
        RisingPrices,
        lambda: RisingPrices((20_000, 10_000)),
        seconds=(20, 3),
    ),
    "scan": plain(
        "an arithmetic condition over both neighbours that no index answers, one window, float, Arrow table in memory",
        Scan,
        lambda: Scan(5_000),
        seconds=(20, 3),
    ),
    "long-group": plain(
        "one group of ten million events in windows of 100,000, float, Arrow table in memory",
        LongGroup,
        lambda: LongGroup(200_000, 50_000),
        seconds=(40, 3),
    ),
    "groups-of-one": plain(
        "a million groups of one event, Arrow table in memory",
        GroupsOfOne,
        lambda: GroupsOfOne(50_000),
        seconds=(60, 4),
    ),
}
