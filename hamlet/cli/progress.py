"""What a run shows of itself while it runs and when it is done: progress bars and the summary line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hamlet.runtime.progress import bar

_STATS = (
    ("events", "events"),
    ("matched_events", "matched"),
    ("late_events", "late"),
    ("partitions", "groups"),
    ("windows", "windows"),
    ("rows", "rows"),
)


@contextlib.contextmanager
def progress_bar(quiet: bool, total: int | None) -> Iterator[Callable[[int], None] | None]:
    """A progress bar on standard error while the block runs, if that is a terminal; None if there is none.

    Parameters
    ----------
    quiet : bool
        Whether the user wants none.
    total : int or None
        Number of events, where it is known.

    Yields
    ------
    callable or None
        To be called with the number of events read so far.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    with bar(total) as advance:
        yield advance


@contextlib.contextmanager
def run_bar(quiet: bool, what: str) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar over a known number of steps, as `progress_bar`.

    Yields
    ------
    callable or None
        To be called with the steps that are done and all there are.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextlib.contextmanager
def task_bar(quiet: bool) -> Iterator[Callable[[str, int, int], None] | None]:
    """A progress bar for the tasks of a Spark job, as `progress_bar`.

    Yields
    ------
    callable or None
        To be called with what is being done, the tasks that are done and the tasks of the running stages.
    """
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("starting Spark", total=None)
        yield lambda what, done, total: shown.update(task, description=what, completed=done, total=total or None)


def summary_line(stats: Mapping[str, Any], seconds: float) -> str:
    """What a run did, in one line."""
    parts = [
        f"{stats[key]:,} {label[:-1] if stats[key] == 1 and label.endswith('s') else label}"
        for key, label in _STATS
        if key in stats and (stats[key] or key != "late_events")
    ]
    if stats.get("infinite_values"):
        parts.append(f"{stats['infinite_values']:,} values beyond the double range written as inf")
    slices, products = stats.get("slices"), stats.get("products")
    if products and products["used"]:
        parts.append(f"{products['ranges']} ranges of time sent as matrices")
    elif slices and len(slices["loads"]) > 1:
        parts.append(
            f"{len(slices['loads'])} slices (max/mean load {slices['max_over_mean']:.2f}, "
            f"replication {slices['replication']:.2f})"
        )
    if stats.get("left_behind"):
        parts.append(f"{stats['left_behind']:,} events of keys without a trend left behind")
    stages = ""
    if seconds >= 1:  # of a short run nobody asks where the time went
        stages = ", ".join(f"{stage} {spent:.1f} s" for stage, spent in stats.get("stages", {}).items())
    return ", ".join([*parts, f"{seconds:.2f} s"]) + (f" ({stages})" if stages else "")
