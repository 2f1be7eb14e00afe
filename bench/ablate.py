"""``python -m bench ablate``: the main cases with each operator and feature, and without it, in turns.

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
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import hamlet
from bench.ratios import ratio_of
from bench.streams import long_bursts, many_groups, typed
from hamlet.planner.paths import ALWAYS, FEATURES, OPERATORS

STOCK50 = Path("workloads/stock50.sase")
SIDE_BY_SIDE = ("COUNT(*)", "COUNT(*), SUM(B.value)", "AVG(B.value)", "MAX(B.value)", "COUNT(B), MIN(B.value)")


@dataclass(frozen=True)
class Ablated:
    """A case, its workload, its events at a size, and the options of its runs."""

    name: str
    text: Callable[[], str]
    events: Callable[[int], pa.Table]
    options: Mapping[str, Any]
    rows: int  # events at full size


def _queries(window: str, patterns: Sequence[str], count: int, *, keyed: bool = True) -> str:
    shown, by = ("key, ", " GROUP-BY key") if keyed else ("", "")
    return ";\n".join(
        f"RETURN {shown}{SIDE_BY_SIDE[number % len(SIDE_BY_SIDE)]} PATTERN {patterns[number % len(patterns)]} "
        f"WHERE B.value >= {number % 7}{by} {window}"
        for number in range(count)
    )


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


MS = {"time_unit": "ms"}  # of long bursts
PATTERNS = ("SEQ(A, B+)", "SEQ(B+, C)", "SEQ(A, B+, NOT D)", "SEQ(C, B+)", "B+", "SEQ(A, B+, E)")
CASES = {
    each.name: each
    for each in (
        Ablated(
            "many groups", lambda: _queries("WITHIN 300 s", PATTERNS, 50), many_groups, {}, 400_000
        ),
        Ablated(
            "long bursts, exact", lambda: _queries("WITHIN 300 s", PATTERNS, 10), long_bursts, MS, 400_000
        ),
        Ablated(
            "long bursts, float",
            lambda: _queries("WITHIN 300 s", PATTERNS, 50),
            long_bursts,
            MS | {"numbers": "float"},
            400_000,
        ),
        Ablated(
            "sliding, float",
            lambda: _queries("WITHIN 300 s SLIDE 10 s", PATTERNS, 20),
            long_bursts,
            MS | {"numbers": "float"},
            200_000,
        ),
        Ablated("one query", lambda: _queries("WITHIN 300 s", PATTERNS[:1], 1), many_groups, {}, 1_000_000),
        Ablated(
            "one group, 2 threads",
            lambda: _queries("WITHIN 60 s SLIDE 30 s", PATTERNS[:2], 4, keyed=False),
            long_bursts,
            MS | {"threads": 2, "numbers": "float"},
            1_200_000,
        ),
        Ablated(
            "rising prices",
            lambda: "; ".join(
                f"RETURN COUNT(*), {item} PATTERN B+ WHERE [key] AND B.value < NEXT(B).value WITHIN 3000 s"
                for item in ("MAX(B.value)", "SUM(B.value)", "COUNT(B)")
            ),
            _trades,
            {"numbers": "float"},
            40_000,
        ),
    )
}  # fmt: skip


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
    """Measure a case; raises AssertionError where rows depend on a path.

    Returns
    -------
    dict
        ``case``, ``events``, ``seconds`` (median with everything), and ``without``: by path the ``ratio`` of medians
        with its 95 % interval, ``low`` and ``high``.
    """
    workload, events = hamlet.Workload.parse(case.text()), case.events(int(case.rows * scale))
    exact = case.options.get("numbers") != "float"

    def run(options: Mapping[str, Any]) -> hamlet.Results:
        return hamlet.run(workload, events, **case.options, **options)

    whole = run({})
    reached = used(whole.stats)
    chosen = {name: options for name, options in variants(paths).items() if not name or name in reached}
    for name, options in chosen.items():
        other = run(options)
        assert len(other) == len(whole), (case.name, name)
        assert not exact or other.rows() == whole.rows(), (case.name, name)
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
