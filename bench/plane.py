"""``python -m bench plane``: what an event costs, over events per window, queries, kinds of numbers and overlap.

A cell is a stream of keys that come in turns and the first queries of the neighbours' fifty (`neighbours_fifty`; beyond
fifty the same with a condition that all events pass). Times are of the processor, the least of some runs over events in
memory. A cell that would take longer than a budget is left empty. What doubles alone is measured beside it: the events,
the keys, the queries, the overlap.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import hamlet
from bench.cases.neighbours import EXACT, FLOAT, WEIGHTS
from bench.streams import TYPES, typed
from bench.workloads import neighbours_fifty

LENGTHS = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)  # events of a key and window
REDUCED = LENGTHS[:5]  # what a few minutes are enough for
QUERIES = (1, 10, 100)
OVERLAPS = (1, 10, 60)
NUMBERS: Mapping[str, Mapping[str, Any]] = {"exact": EXACT, "float": FLOAT}
EVENTS, MOST_KEYS = 120_000, 50
TICK_MS = 120  # between events; divisible by every overlap
BUDGET_S = 4.0  # of a run
PROBE = 8  # a part of the events that says how long the whole will take
APART = 4.0  # times, from which neighbouring cells want a reason
STEPS = (1, 2, 4)  # of what doubles


@dataclass(frozen=True)
class Cell:
    """A place on the plane.

    Attributes
    ----------
    numbers : {'exact', 'float'}
    overlap : int
        Windows open at once.
    queries : int
    length : int
        Events of a key and window.
    events, keys : int
        Of the stream.
    seconds : float or None
        None where the run would be longer than the budget.
    """

    numbers: str
    overlap: int
    queries: int
    length: int
    events: int
    keys: int
    seconds: float | None

    @property
    def ns(self) -> float | None:
        """Of an event and query."""
        return None if self.seconds is None else 1e9 * self.seconds / self.events / self.queries


def text_of(queries: int, within: str) -> str:
    """So many different queries."""
    lines = [each for each in neighbours_fifty(within).split(";\n") if each]
    more = [line.replace(" GROUP-BY", f" WHERE value > -{turn} GROUP-BY") for turn in (1, 2, 3) for line in lines]
    return ";\n".join((lines + [_of_first(each) for each in more])[:queries])


def _of_first(line: str) -> str:
    """The condition of a query, of the variable that it binds first."""
    first = next(
        letter for letter in line.split(" PATTERN ")[1].removeprefix("(").removeprefix("SEQ") if letter in TYPES
    )
    return line.replace("WHERE value", f"WHERE {first}.value")


def stream(events: int, keys: int) -> pa.Table:
    """Random types, and keys in turns."""
    random = np.random.default_rng(1)
    return pa.table(
        {
            "time": np.arange(events) * TICK_MS,
            "type": typed(random.choice(len(TYPES), events, p=np.divide(WEIGHTS, sum(WEIGHTS)))),
            "key": (np.arange(events) % keys).astype(np.int32),
            "value": random.integers(0, 100, events),
        }
    )


def taken(text: str, events: pa.Table, options: Mapping[str, Any], repeats: int) -> float:
    """Seconds of the processor, the least of some runs; how long a run with no events takes is left out."""
    workload = hamlet.Workload.parse(text)

    def run(table: pa.Table) -> float:
        gc.collect()
        begin = time.process_time()
        hamlet.run(workload, table, time_unit="ms", **options)
        return time.process_time() - begin

    return max(1e-9, min(run(events) for _ in range(repeats)) - min(run(events.slice(0, 0)) for _ in range(repeats)))


def measured(numbers: str, overlap: int, queries: int, length: int, repeats: int) -> Cell:
    """One cell."""
    keys = max(1, min(MOST_KEYS, EVENTS // (2 * length)))
    events = max(EVENTS, 2 * length)
    within = length * keys * TICK_MS
    text = text_of(queries, f"WITHIN {within} ms" + (f" SLIDE {within // overlap} ms" if overlap > 1 else ""))
    table = stream(events, keys)
    growth = 2 if numbers == "exact" and length > events // PROBE else 1  # numbers grow as windows fill
    seconds: float | None = None
    if taken(text, table.slice(0, events // PROBE), NUMBERS[numbers], 1) * PROBE**growth < BUDGET_S:
        seconds = taken(text, table, NUMBERS[numbers], repeats)
    return Cell(numbers, overlap, queries, length, events, keys, seconds)


def cells(say: Callable[[str], None], repeats: int = 2, lengths: Sequence[int] = LENGTHS) -> list[Cell]:
    """The whole plane, or that of some lengths."""
    found = []
    for numbers in NUMBERS:
        for overlap in OVERLAPS:
            for queries in QUERIES:
                for length in lengths:
                    found.append(measured(numbers, overlap, queries, length, repeats))
                    cell = found[-1]
                    shown = "beyond the budget" if cell.ns is None else f"{cell.ns:,.1f} ns per event and query"
                    say(f"{numbers}, {overlap} open, {queries} queries, {length:,} events a window: {shown}")
    return found


def apart(found: Sequence[Cell]) -> Iterator[str]:
    """Neighbouring cells that differ by more than `APART` times."""
    places = {(each.numbers, each.overlap, each.queries, each.length): each for each in found}
    for each in found:
        for queries, length in (
            (each.queries, 10 * each.length),
            (10 * each.queries, each.length),
        ):
            other = places.get((each.numbers, each.overlap, queries, length))
            if other is None or each.ns is None or other.ns is None:
                continue
            if not 1 / APART <= other.ns / each.ns <= APART:
                yield (
                    f"{each.numbers}, {each.overlap} open: {each.queries} queries, {each.length:,} events a window "
                    f"{each.ns:,.1f} ns; {queries} queries, {length:,} events {other.ns:,.1f} ns"
                )


def growths(numbers: str, repeats: int = 3) -> dict[str, float]:
    """The exponent with which a run grows when something doubles, twice."""

    def exponent(of: Callable[[int], float]) -> float:
        seconds = [of(step) for step in STEPS]
        return float(np.polyfit(np.log(STEPS), np.log(seconds), 1)[0])

    def run(events: int = EVENTS, keys: int = 25, queries: int = 25, overlap: int = 1) -> float:
        within = 240 * 25 * TICK_MS  # events of a key and window: 240, fewer with more keys
        window = f"WITHIN {within} ms" + (f" SLIDE {within // overlap} ms" if overlap > 1 else "")
        return taken(text_of(queries, window), stream(events, keys), NUMBERS[numbers], repeats)

    return {
        "events": exponent(lambda step: run(events=EVENTS * step)),
        "keys": exponent(lambda step: run(keys=25 * step)),
        "queries": exponent(lambda step: run(queries=25 * step)),
        "overlap": exponent(lambda step: run(overlap=5 * step)),
    }


def draw(found: Sequence[Cell], file: Path) -> None:
    """The plane as heat maps: a picture for each kind of numbers and overlap, a colour for a power of ten."""
    import matplotlib  # only here, so that cases run without it

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "hamlet", "svg.fonttype": "none"}
    from matplotlib import pyplot

    lengths = sorted({each.length for each in found})
    known = [math.log10(each.ns) for each in found if each.ns is not None]
    canvas, axes = pyplot.subplots(len(NUMBERS), len(OVERLAPS), figsize=(15, 5.2), squeeze=False)
    for row, numbers in enumerate(NUMBERS):
        for column, overlap in enumerate(OVERLAPS):
            axis = axes[row][column]
            grid = np.full((len(QUERIES), len(lengths)), np.nan)
            for each in found:
                if (each.numbers, each.overlap) == (numbers, overlap) and each.ns is not None:
                    place = QUERIES.index(each.queries), lengths.index(each.length)
                    grid[place] = math.log10(each.ns)
                    axis.text(place[1], place[0], f"{each.ns:,.3g}", ha="center", va="center", fontsize=8)
            axis.imshow(grid, vmin=min(known), vmax=max(known), cmap="YlOrRd", alpha=0.75, aspect="auto")
            axis.set_xticks(range(len(lengths)), [f"$10^{len(str(each)) - 1}$" for each in lengths])
            axis.set_yticks(range(len(QUERIES)), list(map(str, QUERIES)))
            axis.set_title(f"{numbers}, {overlap} window{'s' if overlap > 1 else ''} open", fontsize=10)
            axis.set_xlabel("events per key and window")
            axis.set_ylabel("queries")
    canvas.suptitle("Nanoseconds per event and query (empty: longer than the budget)", fontsize=11)
    canvas.tight_layout()
    canvas.savefig(file, metadata={"Date": None})
    pyplot.close(canvas)
