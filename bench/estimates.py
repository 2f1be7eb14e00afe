"""``python -m bench estimates``: what `hamlet explain --estimate` says of the cases of `bench ablate`, beside a run.

Seconds are processor time, of one thread: other work on the machine changes it least. What is said of a run should be
within a factor of `FACTOR` of what it takes.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import hamlet
from bench.ablate import Ablated
from hamlet.input.events import open_events
from hamlet.parallel.estimate import Estimate, estimate

FACTOR = 2.0
COLUMNS = ("time_unit", "order_column")  # options that say what is read
SHORT_S = 0.005  # of shorter runs no clock tells enough


@dataclass(frozen=True)
class Compared:
    """An estimate, and the run.

    Attributes
    ----------
    case : str
    events : int
    estimated : Estimate
    estimating_s : float
    seconds : float
        Of the fastest run.
    rows : int
    row_bytes : int
        Of all rows as columns.
    """

    case: str
    events: int
    estimated: Estimate
    estimating_s: float
    seconds: float
    rows: int
    row_bytes: int

    def ratios(self) -> dict[str, float]:
        """What was said, as multiples of what is so."""
        return {
            "seconds": self.estimated.seconds / max(self.seconds, 1e-9),
            "rows": (self.estimated.rows + 1) / (self.rows + 1),
            "bytes": (self.estimated.row_bytes + 1) / (self.row_bytes + 1),
        }

    def within(self) -> bool:
        """Whether all of it is within the factor."""
        short = self.seconds < SHORT_S
        found = [ratio for name, ratio in self.ratios().items() if not (short and name == "seconds")]
        return all(1 / FACTOR <= ratio <= FACTOR for ratio in found)


def compared(case: Ablated, *, scale: float = 1.0, repeats: int = 2) -> Compared:
    """Estimate what a case takes, and run it."""
    workload, events = hamlet.Workload.parse(case.text()), case.events(int(case.rows * scale))
    options: dict[str, Any] = {**case.options, "threads": 1}
    known = {name: options[name] for name in COLUMNS if name in options}
    begin = time.process_time()
    said = estimate(workload, open_events(events, **known), **options)
    estimating = time.process_time() - begin
    taken = []
    for _ in range(repeats):
        gc.collect()
        begin = time.process_time()
        results = hamlet.run(workload, events, **options)
        taken.append(time.process_time() - begin)
    size = sum(results.table(name).nbytes for name in results.queries)
    return Compared(case.name, len(events), said, estimating, min(taken), results.stats["rows"], size)


def lines(found: Sequence[Compared]) -> Iterator[str]:
    """What was compared, as the lines of a Markdown table."""
    yield "| case | events | sampled | seconds | said / so | rows | said / so | bytes, said / so |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|"
    for each in found:
        ratios = each.ratios()
        yield (
            f"| {each.case} | {each.events:,} | {each.estimated.sampled:,} | {each.seconds:.3f} "
            f"| {ratios['seconds']:.2f} | {each.rows:,} | {ratios['rows']:.2f} | {ratios['bytes']:.2f} |"
        )
