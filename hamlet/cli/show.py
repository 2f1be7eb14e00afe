"""Result tables on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from hamlet.cli.titles import printable, title
from hamlet.output.columnar import csv_texts
from hamlet.output.digits import short_text
from hamlet.output.html import SHOWN_ROWS as SHOWN_ROWS
from hamlet.output.time_text import time_text

if TYPE_CHECKING:
    from hamlet.language.schema import Clock
    from hamlet.output.query_rows import QueryRows
    from hamlet.output.result import Results

_WIDTH = 160  # of a table that goes into a file or a pipe
_CUTS = (60, 40, 25, 12)  # what texts are cut to: the first of these with which all columns fit, or the last


class _Console(Console):
    """A console that leaves a closed pipe to the caller; rich would end the process."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def show_tables(results: Results, limit: int = SHOWN_ROWS, dates: bool = False) -> None:
    """Print a table per query: its first rows, the number of the rest, and the names of columns that do not fit.

    Parameters
    ----------
    results : Results
    limit : int
        Rows of each query.
    dates : bool
        Whether integer times are since 1970 and windows are shown as dates.
    """
    from hamlet.output.query_part import dated_clock

    console = _Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False, markup=False, emoji=False)
    for place, part in enumerate(results.parts):
        if place:
            console.print()
        _show(console, part.rows, dated_clock(part.clock) if dates else part.clock, limit)


def _show(console: Console, rows: QueryRows, clock: Clock, limit: int) -> None:
    heads = ["window_start", "window_end", *(printable(column.name) for column in rows.columns)]
    lines = [
        [time_text(start, clock), time_text(end, clock), *map(_cell, values)]
        for start, end, *values in rows.first(limit)
    ]
    numbers = [column.kind != "attribute" or column.type.value in ("INT", "DOUBLE") for column in rows.columns]
    sides = [not clock.is_timestamp, not clock.is_timestamp, *numbers]
    _print(console, rows.name, "row", (heads, lines), [True, True, *numbers], sides, len(rows))


def show_columns(name: str, what: str, rows: pa.Table, count: int) -> None:
    """Print a table of rows that are Arrow columns.

    Parameters
    ----------
    name : str
        What the rows are of.
    what : str
        What a row is: ``violation``.
    rows : pyarrow.Table
        The first rows.
    count : int
        Of all rows.
    """
    console = _Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False, markup=False, emoji=False)
    times = [pa.types.is_timestamp(each) for each in rows.schema.types]
    columns = [
        csv_texts(column.combine_chunks()) if is_time else list(map(_cell, column.to_pylist()))
        for column, is_time in zip(rows.columns, times, strict=True)
    ]
    numbers = [pa.types.is_integer(each) or pa.types.is_floating(each) for each in rows.schema.types]
    whole = [number or is_time for number, is_time in zip(numbers, times, strict=True)]
    heads = [printable(each) for each in rows.schema.names]
    _print(console, name, what, (heads, [list(line) for line in zip(*columns, strict=True)]), whole, numbers, count)


def _print(
    console: Console,
    name: str,
    what: str,
    content: tuple[Sequence[str], Sequence[Sequence[str]]],
    whole: Sequence[bool],
    sides: Sequence[bool],
    count: int,
) -> None:
    """A table: its title, the columns that fit, and what is not shown; `sides` says which columns stand right."""
    heads, lines = content
    widths = _widths(heads, lines, whole, console.width)
    fitting = _fitting(widths, console.width)
    console.print(Text(title(name, count, what)), style="bold")
    if not lines:
        _print_rest(console, count)
        return
    table = Table()
    for head, width, number in list(zip(heads, widths, sides, strict=True))[:fitting]:
        side: JustifyMethod = "right" if number else "left"
        table.add_column(Text(head), justify=side, overflow="ellipsis", no_wrap=True, max_width=width)
    for line in lines:
        table.add_row(*map(Text, line[:fitting]))
    console.print(table)
    if fitting < len(heads):
        hidden = ", ".join(heads[fitting:])
        console.print(f"... not shown for want of width: {hidden}; --output - writes all columns", style="dim")
    _print_rest(console, count - len(lines))


def _print_rest(console: Console, rows: int) -> None:
    """How many rows are not shown, if any."""
    if rows:
        console.print(f"... and {rows:,} more row{'s' * (rows > 1)}; --output writes them all", style="dim")


def _widths(heads: Sequence[str], lines: Sequence[Sequence[str]], whole: Sequence[bool], width: int) -> list[int]:
    """The width of each column: texts and names of columns are cut as far as that makes all columns fit.

    Parameters
    ----------
    heads : sequence of str
    lines : sequence of sequence of str
    whole : sequence of bool
        Per column, whether its values are never cut: numbers and times.
    width : int
        Of the table.
    """
    found: list[int] = []
    names = list(map(cell_len, heads))
    values = [max(map(cell_len, each)) for each in zip(*lines, strict=True)] if lines else [0] * len(heads)
    for most in _CUTS:
        found = [
            max(value, min(name, most)) if uncut else min(max(name, value), most)
            for name, value, uncut in zip(names, values, whole, strict=True)
        ]
        if _fitting(found, width) == len(found):
            break
    return found


def _fitting(widths: Sequence[int], width: int) -> int:
    """How many of the first columns fit side by side; the two edges of the window always stand."""
    taken, count = 1, 0
    for each in widths:
        taken += each + 3
        if taken > width:
            break
        count += 1
    return max(count, 2)


def _cell(value: Any) -> str:
    """A value for people; long integers are cut to three digits and an exponent."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float, Decimal)):
        return short_text(value)
    return value.isoformat(sep=" ") if isinstance(value, datetime) else printable(str(value))
