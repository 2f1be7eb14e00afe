"""``python -m bench ablate``: the main cases and their neighbours with each path and without it, in turns.

Everything that is on by default is the measure: for each path the same run without it. Runs of all variants take turns,
in a new order each round, so that what slows the machine down slows all of them. The time is that of the process
(`time.process_time`), which other work on the machine changes less than what a clock shows; of threads it is the sum.
A factor above 1 says how much longer it takes without the path. Rows are compared before anything is measured.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hamlet
from bench.answers import compare
from bench.cases.neighbours import EVENTS, POINTS
from bench.machine import ROOT
from bench.ratios import ratio_of
from bench.streams import kleene_among_others, long_bursts, many_groups, typed
from bench.workloads import around_one_kleene, long_bursts_fifty, many_groups_fifty
from datasets.location import real_stream
from hamlet.planner.paths import ALWAYS, FEATURES, OPERATORS

OTHERS = 19  # types beside the one under the plus
ONE = "RETURN key, COUNT(*) PATTERN SEQ(A, B+) GROUP-BY key {within}"


@dataclass(frozen=True)
class Ablated:
    """A case, its workload, its events at a size, and the options of its runs."""

    name: str
    text: Callable[[], str]
    events: Callable[[int], pa.Table]
    options: Mapping[str, Any]
    rows: int  # events at full size


def _sparse(events: int) -> pa.Table:
    """One or two events per group and second: long windows that begin often, and hardly an event in each pane."""
    return many_groups(events, keys=2)


def _trades(events: int) -> pa.Table:
    """Prices of one stock that walk at random: an event looks back at those before."""
    random = np.random.default_rng(2)
    return pa.table(
        {
            "time": np.arange(events),
            "type": typed(np.zeros(events, np.int64), ("B",)),
            "value": 1_000 + np.cumsum(random.integers(-3, 4, events)),
            "key": random.integers(0, 20, events).astype(np.int32),
        }
    )


def _file(stream: str) -> Callable[[int], pa.Table]:
    """The first events of a real stream, in memory."""

    def load(events: int) -> pa.Table:
        table = pq.read_table(real_stream(stream))
        return table.slice(0, min(events, len(table)))

    return load


def _workload(name: str) -> Callable[[], str]:
    return lambda: (ROOT / "workloads" / f"{name}.sase").read_text(encoding="utf-8")


def _growing() -> str:
    around = [f"T{number}" for number in range(OTHERS)]
    return around_one_kleene("Kleene", around, 50, "LOG2(COUNT(*)), COUNT(Kleene)", "WITHIN 10000 s")


def _rising() -> str:
    return "; ".join(
        f"RETURN COUNT(*), {item} PATTERN B+ WHERE [key] AND B.value < NEXT(B).value WITHIN 3000 s"
        for item in ("MAX(B.value)", "SUM(B.value)", "COUNT(B)")
    )


def _chunks() -> str:
    return "; ".join(
        f"RETURN {item} PATTERN {pattern} WITHIN 60 s SLIDE 30 s"
        for item in ("COUNT(*)", "SUM(B.value)")
        for pattern in ("SEQ(A, B+)", "SEQ(B+, C)")
    )


FIVE_MINUTES, SLIDING, SPARSE = "WITHIN 300 s", "WITHIN 30 min SLIDE 1 min", "WITHIN 300 s SLIDE 10 s"
MS = {"time_unit": "ms"}  # of long bursts
DOUBLES = {"numbers": "float"}
FLOAT = MS | DOUBLES
REAL = {"time_unit": "us", "order_column": "seq"}
CASES = {
    each.name: each
    for each in (
        Ablated("many groups", lambda: many_groups_fifty(FIVE_MINUTES), many_groups, {}, 2_000_000),
        Ablated("long bursts", lambda: long_bursts_fifty(FIVE_MINUTES), long_bursts, FLOAT, 4_000_000),
        Ablated("long bursts, exact", lambda: long_bursts_fifty(FIVE_MINUTES), long_bursts, MS, 2_000_000),
        Ablated("sliding", lambda: long_bursts_fifty(SLIDING), long_bursts, FLOAT, 1_000_000),
        Ablated(
            "sliding, few events",
            lambda: long_bursts_fifty("WITHIN 300 s SLIDE 10 s"),
            _sparse,
            {"numbers": "float"},
            20_000,
        ),
        Ablated("one query", lambda: ONE.format(within=FIVE_MINUTES), many_groups, {}, 4_000_000),
        Ablated("stock", _workload("stock"), _file("stock"), REAL, 600_000),
        Ablated("stock, 50 queries", _workload("stock50"), _file("stock"), REAL | {"numbers": "float"}, 600_000),
        Ablated("smart home", _workload("smarthome"), _file("smarthome"), REAL, 1_500_000),
        Ablated("taxi", _workload("taxi"), _file("taxi"), REAL, 400_000),
        Ablated("growth", _growing, lambda events: kleene_among_others(events, OTHERS), DOUBLES, 1_000_000),
        Ablated("one group, 2 threads", _chunks, long_bursts, FLOAT | {"threads": 2}, 1_200_000),
        Ablated("rising prices", _rising, _trades, DOUBLES, 40_000),
        *(
            Ablated(f"neighbours: {name}", point.text, point.stream, point.options, EVENTS // 5)
            for name, point in POINTS.items()
        ),
    )
}


def variants(paths: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """Options by what is left out; the first leaves out nothing."""
    found: dict[str, dict[str, Any]] = {"": {}}
    for name in OPERATORS:
        if name not in ALWAYS:
            found[name] = {"operators": [each for each in OPERATORS if each != name]}
    for name in FEATURES:
        found[name] = {"features": [each for each in FEATURES if each != name]}
    return {name: options for name, options in found.items() if not name or paths is None or name in paths}


def used(stats: Mapping[str, Any]) -> set[str]:
    """The operators and features that a run has used: without the others nothing changes."""
    found = {name for name, work in stats["operators"].items() if work["events"]}
    return found | {name for name, count in stats["features"].items() if count}


def ablate(case: Ablated, *, scale: float, rounds: int, paths: Sequence[str] | None = None) -> dict[str, Any]:
    """Measure a case; raises `bench.answers.WrongAnswer` where rows depend on a path.

    Returns
    -------
    dict
        ``case``, ``events``, ``seconds`` (median with everything), and ``without``: by path the ``ratio`` of medians
        with its 95 % interval, ``low`` and ``high``.
    """
    workload, events = hamlet.Workload.parse(case.text()), case.events(int(case.rows * scale))

    def run(options: Mapping[str, Any]) -> hamlet.Results:
        return hamlet.run(workload, events, **case.options, **options)

    whole = run({})
    rows = whole.rows()
    reached = used(whole.stats)
    chosen = {name: options for name, options in variants(paths).items() if not name or name in reached}
    for name, options in chosen.items():
        compare(workload.analysis.text, rows, run(options).rows(), (case.name, f"without {name}"))
    taken: dict[str, list[float]] = {name: [] for name in chosen}
    for _ in range(rounds):
        for name in random.sample(list(chosen), len(chosen)):
            begin = time.process_time()
            run(chosen[name])
            taken[name].append(time.process_time() - begin)
    return {
        "case": case.name,
        "events": len(events),
        "seconds": float(np.median(taken[""])),
        "rounds": rounds,
        "without": {name: ratio_of(seconds, taken[""]) for name, seconds in taken.items() if name},
        "not used": sorted(set(variants(paths)) - set(chosen)),
    }


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """What was measured of a case, as lines."""
    yield f"{found['case']}: {found['events']:,} events, {found['seconds']:.3f} s of the processor with everything"
    for name, ratio in sorted(found["without"].items(), key=lambda each: -each[1]["ratio"]):
        yield f"  without {name:<18} {ratio['ratio']:7.3f}  ({ratio['low']:.3f} to {ratio['high']:.3f})"


def table(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was measured of several cases, as the lines of a Markdown table: a row per path, a column per case."""
    yield "| without | " + " | ".join(each["case"] for each in found) + " |"
    yield "|---|" + "---|" * len(found)
    for name in (*OPERATORS, *FEATURES):
        cells = [
            f"{ratio['ratio']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})" if ratio else ""
            for ratio in (each["without"].get(name) for each in found)
        ]
        if any(cells):
            yield f"| `{name}` | " + " | ".join(cells) + " |"
