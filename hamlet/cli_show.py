"""What the command line shows on a terminal: result tables, a progress bar, the summary line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from hamlet.output.digits import short_text
from hamlet.output.result import QueryRows, Results, time_text
from hamlet.schema import Clock

SHOWN_ROWS = 20
_WIDTH = 160  # of a table that goes into a file or a pipe
_STATS = (
    ("events", "events"),
    ("matched_events", "matched"),
    ("late_events", "late"),
    ("partitions", "groups"),
    ("windows", "windows"),
    ("rows", "rows"),
)


class _Console(Console):
    """A console that leaves a closed pipe to the caller; rich would end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def show_tables(results: Results) -> None:
    """Print a table per query: its first 20 rows, and the number of the rest."""
    console = _Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False, markup=False, emoji=False)
    for place, rows in enumerate(results.by_query):
        if place:
            console.print()
        console.print(_table(rows, results.clock))
        rest = len(rows.rows) - SHOWN_ROWS
        if rest > 0:
            console.print(f"... and {rest:,} more row{'s' * (rest > 1)}; --output writes them all", style="dim")


def _table(rows: QueryRows, clock: Clock) -> Table:
    count = len(rows.rows)
    title = Text(f"{_printable(rows.name)}: {count:,} row{'s' * (count != 1)}")
    table = Table(title=title, title_justify="left", title_style="bold")
    for name in ("window_start", "window_end"):
        table.add_column(name, justify="left" if clock.is_timestamp else "right")
    for column in rows.columns:
        number = column.kind != "attribute" or column.type.value in ("INT", "DOUBLE")
        table.add_column(Text(_printable(column.name)), justify="right" if number else "left", overflow="fold")
    for start, end, *values in rows.rows[:SHOWN_ROWS]:
        cells = [time_text(start, clock), time_text(end, clock), *map(_cell, values)]
        table.add_row(*map(Text, cells))
    return table


def _cell(value: Any) -> str:
    """A value for people; long integers are cut to three digits and an exponent."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        return short_text(value)
    return value.isoformat(sep=" ") if isinstance(value, datetime) else _printable(str(value))


def _printable(text: str) -> str:
    """The text without control characters: events may hold anything, and a terminal obeys escape codes."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


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
    columns = (
        TextColumn("reading events"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("events", total=total)
        yield lambda done: bar.update(task, completed=done)


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
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


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
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting Spark", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total or None)


def summary_line(stats: Mapping[str, Any], seconds: float) -> str:
    """What a run did, in one line."""
    parts = [
        f"{stats[key]:,} {label}" for key, label in _STATS if key in stats and (stats[key] or key != "late_events")
    ]
    if stats.get("infinite_values"):
        parts.append(f"{stats['infinite_values']:,} values beyond the double range written as inf")
    stages = ", ".join(f"{stage} {spent:.1f} s" for stage, spent in stats.get("stages", {}).items())
    return ", ".join([*parts, f"{seconds:.2f} s"]) + (f" ({stages})" if stages else "")
