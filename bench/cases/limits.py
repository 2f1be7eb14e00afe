"""How near the limit of touching the data once: generated streams beside one plain GROUP BY of DuckDB.

The streams are W1 (`streams.many_groups`) and W2 (`streams.long_bursts`), each in several shapes and sizes. DuckDB runs
on one thread, its ``GROUP BY key, type, pane`` with count and sum on the same Arrow table, once by type name and once
by its int8 code. What a run costs whatever the number of events (compiling) and what its rows cost (delivering) is
measured apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import hamlet
from bench import answers, streams, workloads
from bench.answers import WrongAnswer
from bench.peers.duckdb_groupby import GroupBy
from bench.subject import Answer, Case, Contender, Tables, plain
from hamlet.frontend.units import UNITS_PER_SECOND

SMALL, QUICK = 2_000_000, 100_000
FIVE_MINUTES, SLIDING = "WITHIN 300 s", "WITHIN 30 min SLIDE 1 min"
ONE = "RETURN key, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY key {within}"
SLICES, SLICE_EVENTS = 12, 10
SAMPLE_EVENTS = 4_000  # of which GRETA counts all trends, per query


class Ran(NamedTuple):
    """A run: its results, and the tables of all queries with the seconds that they took, if they were asked for."""

    results: hamlet.Results
    tables: Tables | None
    tables_s: float


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
        self.text = text
        self.workload = hamlet.Workload.parse(text)
        self.events = events
        self.arrow = arrow
        self.options = options
        self.ticks = UNITS_PER_SECOND[options.get("time_unit", "s")]
        pane = pane_s * self.ticks
        self.by_name = GroupBy(events, key="key", value="value", pane=pane)
        self.by_code = GroupBy(events, key="key", value="value", pane=pane, type="code")

    def run(self) -> Ran:
        """What is timed."""
        results = hamlet.run(self.workload, self.events, **self.options)
        begun = time.perf_counter()
        tables = self._tables(results) if self.arrow else None
        return Ran(results, tables, time.perf_counter() - begun)

    def _tables(self, results: hamlet.Results) -> Tables:
        return {name: results.table(name) for name in self.workload.names}

    def tables(self, ran: Ran) -> Tables:
        """The tables of all queries, made if they are not there."""
        return self._tables(ran.results) if ran.tables is None else ran.tables

    def parts(self, ran: Ran) -> dict[str, float]:
        """Seconds of the parts of a run; those of compiling are of the same workload over no events, run after it.

        ``parse_s`` is in no other number, since a workload is parsed before it is run; the others are parts of a run:
        ``plan_s`` (from the syntax tree to an empty kernel), ``columns_s`` (predicates, keys, columns), ``kernel_s``,
        ``deliver_s`` (rows, and their Arrow tables where these are asked for).
        """
        begun = time.perf_counter()
        workload = hamlet.Workload.parse(self.text)
        parsed = time.perf_counter()
        hamlet.run(workload, self.events.slice(0, 0), **self.options)
        planned = time.perf_counter()
        stages = ran.results.stats["stages"]
        return {
            "parse_s": parsed - begun,
            "plan_s": planned - parsed,
            "columns_s": stages["read"] + stages["classify"],
            "kernel_s": stages["kernel"],
            "deliver_s": stages["deliver"] + ran.tables_s,
        }

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
        small = self._tables(of_sample)
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
            "hamlet": Contender(self.run, self.tables, metrics=self.parts),
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


@dataclass(frozen=True)
class Shape:
    """A stream in memory and fifty queries over it.

    Attributes
    ----------
    title : str
    make : callable
        The stream, from the number of events and `details`.
    queries : callable
        The workload, from what follows GROUP-BY.
    within : str
    options : mapping
        Of `hamlet.run`.
    pane_s, arrow : int, bool
        See `Beside`.
    events : int
        At full size.
    details : mapping
        Keyword arguments of `make`.
    """

    title: str
    make: Callable[..., pa.Table]
    queries: Callable[[str], str]
    within: str
    options: Mapping[str, Any]
    pane_s: int = 300
    arrow: bool = True
    events: int = streams.FULL
    details: Mapping[str, Any] = field(default_factory=dict)

    def other(self, title: str, *, events: int | None = None, **details: Any) -> Shape:
        """The same with another size, or with other details of the stream."""
        title = f"{self.title}; with {title}"
        return replace(self, title=title, events=events or self.events, details={**self.details, **details})

    def subject(self, events: int, *, text: str = "") -> Beside:
        """The case over so many events, with the shape's own workload or another."""
        options: dict[str, Any] = dict(self.options)
        made = self.make(events, **self.details)
        return Beside(text or self.queries(self.within), made, pane_s=self.pane_s, arrow=self.arrow, **options)

    def case(self, title: str, seconds: tuple[float, float], text: str = "") -> Case:
        """The case of `subject` in full and small."""
        return plain(
            f"{title}; {self.events // 1_000_000} million events in memory, one thread, beside DuckDB's GROUP BY",
            lambda: self.subject(self.events, text=text),
            lambda: self.subject(QUICK, text=text),
            seconds=seconds,
        )


GROUPS = Shape(
    "W1: 5,000 keys over a day, 300 s windows, NOT, COUNT, SUM, AVG, MIN and MAX, exact, int64, Arrow tables",
    streams.many_groups,
    workloads.many_groups_fifty,
    FIVE_MINUTES,
    {"count_type": "int64"},
)
SKEWED = GROUPS.other("types of 10, 70, 10, 5 and 5 % of the events", weights=(10, 70, 10, 5, 5))
FLOAT = Shape(
    "W2: 10 keys, bursts of 20 to 120, 300 s windows, COUNT and SUM, float, delivered as double in Arrow tables",
    streams.long_bursts,
    workloads.long_bursts_fifty,
    FIVE_MINUTES,
    {"numbers": "float", "count_type": "double", "time_unit": "ms"},
)
EXACT = replace(
    FLOAT,
    title="W2 exact: 10 keys, bursts of 20 to 120, integers of any size (decimal text is not made)",
    options={"time_unit": "ms", "count_type": "string"},
    arrow=False,
)
SLIDING_FLOAT = replace(
    FLOAT,
    title="W2 sliding: WITHIN 30 min SLIDE 1 min, float, delivered as double in Arrow tables",
    within=SLIDING,
    pane_s=60,
)
MAIN: dict[str, Shape] = {
    "many-groups": GROUPS,
    "skewed-groups": SKEWED,
    "long-bursts": FLOAT,
    "long-bursts-exact": EXACT,
    "sliding": SLIDING_FLOAT,
}
SHAPES: dict[str, Shape] = {
    **MAIN,
    "many-groups-small": GROUPS.other("a fifth of the day", events=SMALL),
    "many-groups-few-keys": GROUPS.other("500 keys", keys=500),
    "many-groups-many-keys": GROUPS.other("50,000 keys", keys=50_000),
    "five-shapes": replace(
        SKEWED.other("ten queries of each of five shapes, over 17,280 s", events=SMALL),
        queries=workloads.five_shapes_fifty,
    ),
    "sliding-exact": replace(
        EXACT,
        title="W2 sliding, exact: WITHIN 30 min SLIDE 1 min, integers of any size (decimal text is not made)",
        within=SLIDING,
        pane_s=60,
        events=SMALL,
    ),
}
for _name in ("long-bursts", "long-bursts-exact", "sliding"):
    SHAPES |= {
        f"{_name}-small": MAIN[_name].other("a fifth of the day", events=SMALL),
        f"{_name}-short": MAIN[_name].other("bursts of 2 to 12", lengths=(2, 12)),
        f"{_name}-few-keys": MAIN[_name].other("2 keys", keys=2),
        f"{_name}-many-keys": MAIN[_name].other("200 keys", keys=200),
    }

CASES: dict[str, Case] = {
    name: shape.case(f"50 queries, {shape.title}", (300 * shape.events / streams.FULL, 40))
    for name, shape in SHAPES.items()
}
CASES |= {
    f"one-query-{name}": shape.case(
        f"one query SEQ(A, B+), COUNT, over the stream of {name}", (90, 8), ONE.format(within=shape.within)
    )
    for name, shape in MAIN.items()
}
CASES["one-window"] = plain(
    "A, then 100,000 B in bursts of 20 with a C of another query between them, one window, exact, beside a Python loop "
    "of S = (S << 20) + (2^20 - 1) * x once per burst",
    OneWindow,
    lambda: OneWindow(20_000),
    seconds=(10, 3),
)
