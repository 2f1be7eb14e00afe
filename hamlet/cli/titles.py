"""What stands above a table on a terminal."""

from __future__ import annotations


def title(name: str, count: int, what: str) -> str:
    """Of how many rows of what a table is: ``late: 3 violations``."""
    return f"{printable(name)}: {count:,} {what}{'s' * (count != 1)}"


def printable(text: str) -> str:
    """The text without control characters: events may hold anything, and a terminal obeys escape codes."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
