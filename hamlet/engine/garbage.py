"""When Python's cyclic garbage collector rests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
