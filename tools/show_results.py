"""Print the first rows of each query of a folder that ``hamlet submit`` or ``hamlet run`` wrote as Parquet.

For ``make demo``: ``python tools/show_results.py build/demo/flights --rows 4 --query shut``.
"""

from __future__ import annotations

import argparse
import datetime
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hamlet.output.digits import integer_of, short_text

EDGES = ("window_start", "window_end")


def shown(name: str, value: Any, seconds: bool) -> str:
    """A cell: long counts as 1.23e+456, and window edges as times where they are seconds since 1970."""
    if value is None:
        return "NULL"
    if seconds and name in EDGES:
        return datetime.datetime.fromtimestamp(value, datetime.UTC).strftime("%Y-%m-%d %H:%M")
    if isinstance(value, str) and re.fullmatch(r"-?\d+", value):
        return short_text(integer_of(value))
    return short_text(value) if isinstance(value, float) else str(value)


def show(console: Console, folder: Path, rows: int, seconds: bool) -> None:
    """Print one query's table."""
    events = pq.read_table(folder, partitioning=None)
    name = unquote(folder.name.partition("=")[2])
    table = Table(title=f"{name}: {len(events):,} rows", title_justify="left", title_style="bold")
    for column in events.column_names:
        table.add_column(Text(column), justify="right" if column not in EDGES else "left")
    for row in events.sort_by("window_start").slice(0, rows).to_pylist():
        table.add_row(*(Text(shown(column, value, seconds)) for column, value in row.items()))
    console.print(table)


def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", type=int, default=5, help="rows of each query (default: 5)")
    parser.add_argument("--query", action="append", help="only this query; may be repeated")
    parser.add_argument("--seconds", action="store_true", help="windows are seconds since 1970: print them as times")
    arguments = parser.parse_args()
    console = Console(width=None if Console().is_terminal else 130, highlight=False, markup=False)
    for folder in sorted(arguments.directory.glob("query=*")):
        if not arguments.query or unquote(folder.name.partition("=")[2]) in arguments.query:
            show(console, folder, arguments.rows, arguments.seconds)


if __name__ == "__main__":
    main()
