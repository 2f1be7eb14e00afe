"""Compares all operators and features with the scalar operator at size: ``python -m tests.compare_paths --minutes 15``.

Each case (`tests.path_cases`) is computed by the scalar operator alone, without any feature, and then by several random
choices of operators and features, of threads, and of batches, pushed with saves between them or run at once. Rows are
compared one by one. It prints how often each operator and feature was reached, and how large the numbers were; it ends
with exit code 1 after the first case that differs, or where something was never reached.

Chunks of time are made small for streams of this size: their sizes are no option, for no user has a reason to choose.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from unittest import mock

import pyarrow as pa

import hamlet
from hamlet.parallel.time.mapped import MappedChunks
from hamlet.parallel.time.whole import WholeChunks
from hamlet.planner import paths
from hamlet.planner.paths import FEATURES
from tests.comparison import in_file_order
from tests.path_cases import PathCase, draw

OPERATORS = [name for name in paths.OPERATORS if name != "matching"]  # serves other queries; compare_random has it

WAYS = 3  # in which each case is computed besides
RELATIVE = 2e-9  # both sides may be wrong by half of it, relative to sums of one sign
BITS = (31, 52, 61, 64, 640)
CHUNKS = (64, 600, 1_024, 5_000, 1 << 18)

Rows = Sequence[Mapping[str, Any]]


@dataclass
class Reached:
    """How often each operator, feature and size of numbers was met."""

    events: Counter[str] = field(default_factory=Counter)
    features: Counter[str] = field(default_factory=Counter)
    sizes: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    runs: int = 0

    def note(self, stats: Mapping[str, Any]) -> None:
        """Add what a run has counted."""
        self.runs += 1
        self.events.update({name: work["events"] for name, work in stats["operators"].items()})
        self.features.update(stats["features"])
        bits = stats["largest_count_bits"]
        self.sizes[next((f"below 2^{each}" for each in BITS if bits <= each), f"from 2^{BITS[-1]} on")] += 1

    def missing(self) -> list[str]:
        """What was never reached, though this processor has it."""
        found = [name for name in OPERATORS if not self.events[name]]
        return found + [name for name in FEATURES if not self.features[name] and name not in absent()]

    def __str__(self) -> str:
        lines = [f"{self.cases} cases, {self.runs} runs"]
        for title, counts in (("events", self.events), ("uses", self.features), ("runs", self.sizes)):
            lines += [f"  {name:<18} {count:>16,} {title}" for name, count in counts.items()]
        return "\n".join(lines)


def absent() -> set[str]:
    """Instruction sets that this processor or build lacks, and what needs them."""
    text = ";".join(f"RETURN COUNT(*) PATTERN SEQ(A, B+) WHERE B.v > {number} WITHIN 9 s" for number in range(9))
    events = [{"time": time, "type": "AB"[time % 2], "v": time} for time in range(40)]
    found = set()
    for name, others in (("avx512", ()), ("avx2", ("int32",))):
        chosen = [each for each in FEATURES if each != "avx512" or name == "avx512"]
        if not hamlet.run(hamlet.Workload.parse(text), events, features=chosen).stats["features"][name]:
            found |= {name, *others}
    return found


def different(got: Rows, expected: Rows) -> str | None:
    """The first row that is another one, None where there is none."""
    if got == expected:
        return None
    for number, (row, wanted) in enumerate(zip(got, expected, strict=False)):
        if row != wanted and not (list(row) == list(wanted) and all(map(near, row.values(), wanted.values()))):
            return f"row {number} of {len(got)} is\n  {dict(row)} instead of\n  {dict(wanted)}"
    if len(got) != len(expected):
        return f"{len(got)} rows instead of {len(expected)}"
    return None


def near(got: Any, expected: Any) -> bool:
    """Whether two values are equal, doubles but for their last digits."""
    if isinstance(expected, float) and isinstance(got, int):  # of a window that closed before a column had doubles
        return near(float(got), expected)
    if got == expected:
        return type(got) is type(expected) or not isinstance(got, int)
    if isinstance(got, Decimal) and isinstance(expected, Decimal):
        return abs(got - expected) <= abs(expected) * Decimal(RELATIVE)
    if not (isinstance(got, float) and isinstance(expected, float)):
        return False
    return (math.isnan(got) and math.isnan(expected)) or math.isclose(got, expected, rel_tol=RELATIVE, abs_tol=1e-300)


def choice(chance: random.Random) -> dict[str, Any]:
    """Operators, features and threads of one way to compute a case."""
    options: dict[str, Any] = {}
    if chance.random() < 0.5:
        options["operators"] = [name for name in OPERATORS if chance.random() < 0.7]
    way = chance.random()
    if way < 0.25:
        options["features"] = [name for name in FEATURES if chance.random() < 0.5]
    elif way < 0.5:
        options["features"] = [name for name in FEATURES if name != "avx512"]
    elif way < 0.8:
        without = {chance.choice(list(FEATURES)), chance.choice(["avx512", "avx512", "avx2", "index"])}
        options["features"] = [name for name in FEATURES if name not in without]
    options["threads"] = chance.choice([1, 1, 1, 2, 3])
    options["sharing"] = chance.choice(["dynamic", "dynamic", "static", "never"])
    return options


def batches(chance: random.Random, table: pa.Table) -> list[pa.RecordBatch]:
    """A table in batches: of any size, around that from which a batch is worth a path of its own, or whole."""
    sizes = chance.choice([(1_000, 1_050), (1, 3_000), (20_000, 30_000), (1 << 30, 1 << 30)])
    found, start = [], 0
    while start < len(table):
        size = chance.randint(*sizes)
        found += table.slice(start, size).combine_chunks().to_batches()
        start += size
    return found


def computed(case: PathCase, options: Mapping[str, Any], chance: random.Random, reached: Reached) -> Rows:
    """The rows of a case, run at once or pushed with saves between."""
    workload = hamlet.Workload.parse(case.text)
    if case.widens:
        early = case.events.slice(0, case.widens)
        place = early.schema.get_field_index("v")
        early = early.set_column(place, "v", early.column("v").cast(pa.int64()))
        pieces = batches(chance, early) + batches(chance, case.events.slice(case.widens))
    else:
        pieces = batches(chance, case.events)
    if not case.widens and chance.random() < 0.7:
        results = hamlet.run(
            workload, pa.RecordBatchReader.from_batches(case.events.schema, pieces), numbers=case.numbers, **options
        )
        reached.note(results.stats)
        return results.rows()
    engine = hamlet.Engine(workload, numbers=case.numbers, **options)
    rows: list[Mapping[str, Any]] = []
    for piece in pieces:
        rows += engine.push(piece)
        if chance.random() < 2 / len(pieces):
            reached.note(engine.stats)
            engine = hamlet.Engine.restore(workload, engine.save())
            reached.sizes["saves"] += 1
    rows += engine.close()
    reached.note(engine.stats)
    return in_file_order(rows, workload.names)


def compare(seed: int, size: int, reached: Reached) -> str | None:
    """A report where a way to compute a case gives other rows than the scalar operator, else None."""
    case = draw(seed, size)
    workload = hamlet.Workload.parse(case.text)
    plain = hamlet.run(workload, case.events, numbers=case.numbers, operators="scalar", features="", sharing="never")
    reached.cases += 1
    reached.note(plain.stats)
    expected = plain.rows()
    for way in range(WAYS):
        chance = random.Random(seed * WAYS + way)
        options = {} if way == 0 else choice(chance)
        options.setdefault("threads", chance.choice([1, 2]))
        sizes = chance.choice(CHUNKS)
        with ExitStack() as stack:
            for kind in (MappedChunks, WholeChunks):
                stack.enter_context(mock.patch.object(kind, "sizes", (sizes, sizes)))
            try:
                wrong = different(computed(case, options, chance, reached), expected)
            except Exception as error:
                wrong = f"{type(error).__name__}: {error}"
        if wrong:
            head = f"seed {seed}, way {way}, {case.kind}, {len(case.events):,} events, numbers={case.numbers}"
            return f"{head}\n{options}, chunks of {sizes}\n{case.text}\n{wrong}"
    return None


def main() -> int:
    """Compare the cases of a range of seeds, for so many minutes at most."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="0:1000000", help="first and behind the last, 0:1000")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--events", type=int, default=100_000, help="of a case, at most")
    parser.add_argument("--go-on", action="store_true", help="report every case that differs")
    given = parser.parse_args()
    first, end = map(int, given.seeds.split(":"))
    reached, failed, until = Reached(), 0, time.monotonic() + 60 * given.minutes
    for seed in range(first, end):
        if time.monotonic() > until:
            break
        size = given.events if seed % 50 else 10 * given.events
        report = compare(seed, size, reached)
        if report:
            sys.stderr.write(report + "\n")
            failed += 1
            if not given.go_on:
                break
    sys.stdout.write(f"{reached}\n")
    missing = reached.missing()
    if missing:
        sys.stderr.write(f"never reached: {', '.join(missing)}\n")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
