"""Results as HTML for notebooks: a plain table per query, its first rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING, Any

from hamlet.language.schema import Clock
from hamlet.output.digits import short_text
from hamlet.output.time_text import time_text

if TYPE_CHECKING:
    from hamlet.output.query_rows import QueryRows

SHOWN_ROWS = 20


def as_html(queries: Iterable[QueryRows], clock: Clock, limit: int = SHOWN_ROWS) -> str:
    """A table per query with its first rows, and the number of the rest.

    Parameters
    ----------
    queries : iterable of QueryRows
    clock : Clock
    limit : int
        Rows of each query.
    """
    return "".join(_table_of(each, clock, limit) for each in queries)


def table_html(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], rest: str = "") -> str:
    """A table of texts, all of them escaped."""
    lines = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    below = f"<p>{escape(rest)}</p>" if rest else ""
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{_cells('th', heads)}</tr></thead>"
        f"<tbody>{lines}</tbody></table>{below}"
    )


def tables_html(name: str, rows: Sequence[Mapping[str, Any]], count: int, heads: Sequence[str]) -> str:
    """A table of the first of some rows that are dicts; what a row has not is empty."""
    shown = [[_text(row[head]) if head in row else "" for head in heads] for row in rows]
    rest = count - len(rows)
    return table_html(
        f"{name}: {count:,} row{'s' * (count != 1)}", heads, shown, f"... and {rest:,} more" if rest else ""
    )


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def _table_of(rows: QueryRows, clock: Clock, limit: int) -> str:
    heads = ["window_start", "window_end", *(column.name for column in rows.columns)]
    first = [
        [time_text(start, clock), time_text(end, clock), *map(_text, values)]
        for start, end, *values in rows.first(limit)
    ]
    count, rest = len(rows), len(rows) - len(first)
    title = f"{rows.name}: {count:,} row{'s' * (count != 1)}"
    return table_html(title, heads, first, f"... and {rest:,} more" if rest else "")


def _text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return short_text(value) if isinstance(value, (int, float, Decimal)) else str(value)
