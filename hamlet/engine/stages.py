"""Where the time of a run goes: seconds by stage, measured once per batch and not per event."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

STAGES = {
    "read": "read and sort the input",
    "classify": "local predicates, keys and columns of each batch",
    "kernel": "bursts, graphlets and windows",
    "deliver": "rows of closed windows",
    "watch": "keep a record per burst for the trace and the report",
}


class _Watch:
    """Adds the time that a block takes to a stage; a class, for it costs less than a generator."""

    __slots__ = ("_begin", "_seconds", "_stage")

    def __init__(self, seconds: dict[str, float], stage: str) -> None:
        self._seconds, self._stage = seconds, stage

    def __enter__(self) -> None:
        self._begin = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + time.perf_counter() - self._begin


class Stages:
    """A stop watch for each stage.

    Parameters
    ----------
    always : iterable of str
        Stages that are among `seconds` even where they took no time; by default all of `STAGES` but ``watch``.
    """

    def __init__(self, always: Iterable[str] = tuple(STAGES)[:-1]) -> None:
        self.seconds = dict.fromkeys(always, 0.0)

    def measured(self, stage: str) -> _Watch:
        """Add the time that a block takes to a stage."""
        return _Watch(self.seconds, stage)

    def measured_steps(self, stage: str, items: Iterable[Item]) -> Iterator[Item]:
        """Give out items one by one, and add the time that it takes to get each to a stage."""
        iterator = iter(items)
        while True:
            with self.measured(stage):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item
