"""How explanations are laid out: a label, and lines or wrapped text behind it."""

from __future__ import annotations

import textwrap

WIDTH = 110
LABEL = 12


def field(label: str, *lines: str) -> list[str]:
    """A label and the lines behind it, as they are."""
    return [f"    {label if place == 0 else '':<{LABEL}}{line}".rstrip() for place, line in enumerate(lines)]


def wrapped(label: str, *paragraphs: str) -> list[str]:
    """A label and text behind it, broken where lines are too long; lists of words too, but no word."""
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += textwrap.wrap(
            paragraph, WIDTH - 4 - LABEL, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    return field(label, *lines)


def counted(count: int, one: str, many: str) -> str:
    """A number of things, in words.

    Examples
    --------
    >>> counted(1, "query", "queries"), counted(2000, "query", "queries")
    ('1 query', '2,000 queries')
    """
    return f"{count:,} {one if count == 1 else many}"
