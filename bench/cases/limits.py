"""How near the limit of touching the data once: ten million events beside one plain GROUP BY of DuckDB.

The streams are W1 (`streams.many_groups`) and W2 (`streams.long_bursts`). DuckDB runs on one thread, its ``GROUP BY
key, type, pane`` with count and sum on the same Arrow table, once by type name and once by its int8 code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import hamlet
from bench import answers, streams, workloads
from bench.answers import WrongAnswer
from bench.peers.duckdb_groupby import GroupBy
from bench.subject import Answer, Case, Contender, Subject, Tables, plain
from hamlet.language.schema import UNITS_PER_SECOND

QUICK = 100_000
FIVE_MINUTES, SLIDING = "WITHIN 300 s", "WITHIN 30 min SLIDE 1 min"
SLICES, SLICE_EVENTS = 12, 10
SAMPLE_EVENTS = 4_000  # of which GRETA counts all trends, per query


class Beside:
    """A workload over a generated stream in memory, beside DuckDB.

    Parameters
    ----------
    text : str
        The workload; every query is grouped by `key`.
    events : pyarrow.Table
        Columns time, type, key, value, code.
    pane_s : int
        DuckDB's pane in seconds.
    arrow : bool
        Whether the time includes making an Arrow table for every query. Not where integers would become decimal text.
    **options
        Of `hamlet.run`.
    """

    def __init__(self, text: str, events: pa.Table, *, pane_s: int = 300, arrow: bool = True, **options: Any) -> None:
        self.workload = hamlet.Workload.parse(text)
        self.events = events
        self.arrow = arrow
        self.options = options
        self.ticks = UNITS_PER_SECOND[options.get("time_unit", "s")]
        pane = pane_s * self.ticks
        self.by_name = GroupBy(events, key="key", value="value", pane=pane)
        self.by_code = GroupBy(events, key="key", value="value", pane=pane, type="code")

    def run(self) -> Any:
        """What is timed."""
        results = hamlet.run(self.workload, self.events, **self.options)
        return self.tables(results) if self.arrow else results

    def tables(self, results: Any) -> Tables:
        """The tables of all queries, made if they are not there."""
        return results if isinstance(results, dict) else {name: results.table(name) for name in self.workload.names}

    def answer(self) -> Answer:
        """The oracle on slices, GRETA on some keys, and the whole run against the run over those keys alone."""
        answer = Answer()
        said = answers.check_slices(
            self.workload, self.events, "key", slices=SLICES, length=SLICE_EVENTS, **self.options
        )
        answer.checks.append(said)
        sample, keys, until = self._sample()
        of_sample = hamlet.run(self.workload, sample, **self.options)
        unit = self.options.get("time_unit", "s")
        said = answers.check_greta(self.workload, sample, of_sample.rows(), "of a few keys", time_unit=unit)
        answer.checks.append(said)
        tables = self.tables(self.run())
        small = self.tables(of_sample)
        for name, table in tables.items():
            both = [self._of_keys(each, keys, until) for each in (table, small[name])]
            if answers.digest({name: both[0]}) != answers.digest({name: both[1]}):
                raise WrongAnswer(f"{name}: the rows of {len(keys)} keys differ when there are other keys beside them")
        answer.checks.append(f"the whole run has the same rows for those keys before {until // self.ticks} s")
        counted = pc.sum(self.by_name()["events"]).as_py()
        if counted != len(self.events) or len(self.by_code()) != len(self.by_name()):
            raise WrongAnswer(f"DuckDB's groups hold {counted:,} events of {len(self.events):,}")
        answer.digest = answers.digest(tables)
        answer.facts = {
            "events": len(self.events),
            "queries": len(tables),
            "rows": sum(len(table) for table in tables.values()),
            "largest_count_bits": answers.largest_bits(tables),
            "numbers": self.options.get("numbers", "exact"),
            "count_type": self.options.get("count_type", "string"),
        }
        return answer

    def _sample(self) -> tuple[pa.Table, pa.Array, int]:
        """Events of a few keys, whole keys up to some time: the events, the keys, the time."""
        keys = self.events["key"].unique()
        keys = keys.slice(0, max(5, SAMPLE_EVENTS * len(keys) // len(self.events)))
        chosen = self.events.filter(pc.is_in(self.events["key"], keys))
        if len(chosen) > SAMPLE_EVENTS:
            chosen = chosen.slice(0, SAMPLE_EVENTS)
        return chosen, keys, chosen["time"][-1].as_py()

    @staticmethod
    def _of_keys(table: pa.Table, keys: pa.Array, until: int) -> pa.Table:
        return table.filter(pc.and_(pc.is_in(table["key"], keys), pc.less_equal(table["window_end"], until)))

    def contenders(self) -> Mapping[str, Contender]:
        """Ours and DuckDB, one thread each."""
        asked = "how many events each key has of each type in each pane"
        return {
            "hamlet": Contender(self.run, self.tables),
            "duckdb group by": Contender(self.by_name, None, question=asked),
            "duckdb group by code": Contender(self.by_code, None, question=asked),
        }


class OneWindow:
    """A, then B in bursts of 20 with a C of another query between them, one window, exact; beside a Python loop.

    Parameters
    ----------
    events : int
        How many B there are.
    burst : int
        B in a burst.
    """

    TEXT = "RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN {width} s; RETURN COUNT(*) PATTERN SEQ(A, C) WITHIN {width} s"

    def __init__(self, events: int = 100_000, burst: int = 20) -> None:
        self.bursts, self.burst = events // burst, burst
        codes = np.concatenate([[0], np.tile([1] * burst + [2], self.bursts)])
        self.workload = hamlet.Workload.parse(self.TEXT.format(width=2 * len(codes)))
        self.events = pa.table({"time": np.arange(len(codes)), "type": streams.typed(codes, ("A", "B", "C"))})

    def loop(self) -> int:
        """What a Python programmer writes: the recurrence, once per burst."""
        sums, factor, one = 0, self.burst, 1
        for _ in range(self.bursts):
            sums = (sums << factor) + ((1 << factor) - 1) * one
        return sums

    def answer(self) -> Answer:
        """A and any non-empty choice of B: 2^n - 1."""
        rows = self.run().rows()
        counts = [row["count"] for row in rows]
        if counts != [(1 << (self.bursts * self.burst)) - 1, self.bursts] or self.loop() != counts[0]:
            raise WrongAnswer(f"the counts have {[count.bit_length() for count in counts]} bits, or are others")
        facts = {"events": len(self.events), "queries": 2, "rows": 2, "largest_count_bits": counts[0].bit_length()}
        return Answer(["both counts are what they must be, 2^n - 1 and n"], facts, answers.digest(rows))

    def run(self) -> hamlet.Results:
        """Both queries."""
        return hamlet.run(self.workload, self.events)

    def contenders(self) -> Mapping[str, Contender]:
        """Ours, from Arrow to results; and the loop alone, which reads no events."""
        return {
            "hamlet": Contender(self.run, lambda results: results.rows()),
            "python loop": Contender(self.loop, None, question="the same count, from bursts that it need not find"),
        }


def _groups(events: int, text: str, weights: Sequence[float] | None = None) -> Subject:
    return Beside(text, streams.many_groups(events, weights=weights), count_type="int64")


def _bursts(events: int, text: str, **options: Any) -> Subject:
    return Beside(text, streams.long_bursts(events), time_unit="ms", **options)


FLOAT: dict[str, Any] = {"numbers": "float", "count_type": "double"}
EXACT: dict[str, Any] = {"arrow": False}
ONE = "RETURN key, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY key {within}"
SKEWED = (10, 70, 10, 5, 5)  # percent of the types
SHAPES: dict[str, tuple[str, Callable[[int, str], Subject], Callable[[str], str], str]] = {
    "many-groups": (
        "W1: 5,000 keys over a day, 300 s windows, NOT, COUNT, SUM, AVG, MIN and MAX, exact, int64, Arrow tables",
        _groups,
        workloads.many_groups_fifty,
        FIVE_MINUTES,
    ),
    "skewed-groups": (
        "W1 with other types: 70 % of the events are of one type, and 5 % of two",
        lambda events, text: _groups(events, text, SKEWED),
        workloads.many_groups_fifty,
        FIVE_MINUTES,
    ),
    "long-bursts": (
        "W2: 10 keys, bursts of 20 to 120, 300 s windows, COUNT and SUM, float, delivered as double in Arrow tables",
        lambda events, text: _bursts(events, text, **FLOAT),
        workloads.long_bursts_fifty,
        FIVE_MINUTES,
    ),
    "long-bursts-exact": (
        "W2 exact: the same with integers of any size (decimal text is not made)",
        lambda events, text: _bursts(events, text, **EXACT),
        workloads.long_bursts_fifty,
        FIVE_MINUTES,
    ),
    "sliding": (
        "W2 sliding: WITHIN 30 min SLIDE 1 min, float, delivered as double in Arrow tables",
        lambda events, text: _bursts(events, text, pane_s=60, **FLOAT),
        workloads.long_bursts_fifty,
        SLIDING,
    ),
    "sliding-exact": (
        "W2 sliding, exact: WITHIN 30 min SLIDE 1 min, integers of any size (decimal text is not made)",
        lambda events, text: _bursts(events, text, pane_s=60, **EXACT),
        workloads.long_bursts_fifty,
        SLIDING,
    ),
}


def _case(title: str, make: Callable[[int, str], Subject], text: str, seconds: tuple[float, float]) -> Case:
    return plain(
        f"{title}; 10 million events in memory, one thread, beside DuckDB's GROUP BY",
        lambda: make(streams.FULL, text),
        lambda: make(QUICK, text),
        seconds=seconds,
    )


CASES: dict[str, Case] = {
    name: _case(f"50 queries, {title}", make, text(within), (300, 40))
    for name, (title, make, text, within) in SHAPES.items()
}
CASES |= {
    f"one-query-{name}": _case(
        f"one query SEQ(A, B+), COUNT, over the stream of {name}", make, ONE.format(within=within), (90, 8)
    )
    for name, (_, make, _, within) in SHAPES.items()
}
CASES["one-window"] = plain(
    "A, then 100,000 B in bursts of 20 with a C of another query between them, one window, exact, beside a Python loop "
    "of S = (S << 20) + (2^20 - 1) * x once per burst",
    OneWindow,
    lambda: OneWindow(20_000),
    seconds=(10, 3),
)
