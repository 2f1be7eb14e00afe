"""Result tables on a terminal."""

from __future__ import annotations

import sys
from datetime import datetime
from decimal import Decimal
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hamlet.output.digits import short_text
from hamlet.output.result import QueryRows, Results, time_text
from hamlet.schema import Clock

SHOWN_ROWS = 20
_WIDTH = 160  # of a table that goes into a file or a pipe


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
