"""Results as HTML for notebooks: a plain table per query, its first rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape
from typing import Any

from hamlet.output.digits import short_text

SHOWN_ROWS = 20
Texts = tuple[Sequence[str], Sequence[Sequence[str]]]  # names of columns, rows


def page_table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], rest: str = "") -> str:
    """A table of texts, all of them escaped."""
    lines = "".join(f"<tr>{_cells('td', row)}</tr>" for row in rows)
    below = f"<p>{escape(rest)}</p>" if rest else ""
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{_cells('th', heads)}</tr></thead>"
        f"<tbody>{lines}</tbody></table>{below}"
    )


def table_html(name: str, shown: Texts, count: int) -> str:
    """A table of the first of `count` rows, and the number of the rest."""
    heads, first = shown
    rest = count - len(first)
    title = f"{name}: {count:,} row{'s' * (count != 1)}"
    return page_table(title, heads, first, f"... and {rest:,} more" if rest else "")


def _cells(tag: str, texts: Sequence[str]) -> str:
    return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)


def cell_text(value: Any) -> str:
    """A value in a cell."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return short_text(value) if isinstance(value, (int, float, Decimal)) else str(value)
