"""When Python's cyclic garbage collector rests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = 1_000  # collections of young objects, of 7,000 each, between two that look through everything


def seldom() -> None:
    """Have the collector look through everything once in millions of new objects only.

    Who follows a stream keeps up to millions of rows in dicts. To look through them takes 50 to 100 ms, for which
    rows wait, and finds nothing: rows make no cycles.
    """
    gc.set_threshold(*gc.get_threshold()[:2], _SELDOM)


@contextmanager
def resting() -> Iterator[None]:
    """Let the collector rest while objects are made that all stay: it would look through them again and again.

    Compiling a thousand queries makes some hundred thousand. Memory is freed as ever, but for cycles that became
    garbage meanwhile; those are found afterwards.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
