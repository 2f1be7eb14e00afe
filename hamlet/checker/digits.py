"""Integers of evidence, which are digits where they are large."""

from __future__ import annotations

_SIZE = 4000  # digits that Python reads at once, whatever the host's limit for text is


def whole(told: int | str) -> int:
    """An integer of any size; raises ValueError for what is none."""
    if isinstance(told, bool) or not isinstance(told, int | str):
        raise ValueError
    if isinstance(told, int):
        return told
    number = 0
    for start in range(0, len(text := told.lstrip("-")), _SIZE):
        part = text[start : start + _SIZE]
        number = number * 10 ** len(part) + int(part)
    return -number if told.startswith("-") else number
