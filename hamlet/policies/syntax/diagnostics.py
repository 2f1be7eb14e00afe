"""Errors about a policy or its signature: every mistake of the text, each with its place and a hint."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from hamlet.errors import WorkloadError

MAX_DEPTH = 400  # nesting of a formula; deeper ones are refused rather than overflow the stack
MAX_CHAIN = 2_500  # operators of a term in a row, without parentheses
_FRAMES = 20_000  # calls of Python that formulas of that depth may need


class PolicyError(WorkloadError):
    """A policy's or a signature's text is wrong; carries every mistake found, not only the first."""


@contextlib.contextmanager
def deep_recursion() -> Iterator[None]:
    """Let functions that walk a formula recurse as deep as formulas may be nested."""
    limit = sys.getrecursionlimit()
    if limit < _FRAMES:
        sys.setrecursionlimit(_FRAMES)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
