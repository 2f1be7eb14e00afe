"""How many bytes a query needs at most, as numbers that the engine and `hamlet explain` both use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """Bytes that grow with the bits of the largest count: constant + per_bit * bits."""

    constant: float
    per_bit: float

    def at(self, bits: int) -> float:
        """Bytes where the largest count has so many bits."""
        return self.constant + self.per_bit * bits

    def times(self, factor: int) -> Line:
        """The bytes of so many."""
        return Line(self.constant * factor, self.per_bit * factor)

    @classmethod
    def sum(cls, lines: Iterable[Line]) -> Line:
        """The bytes of several."""
        each = list(lines)
        return cls(sum(line.constant for line in each), sum(line.per_bit for line in each))


@dataclass(frozen=True, slots=True)
class Bound:
    """Bytes that a query needs at most.

    The sum for a partition is ``partition + open windows * window + kept events * (event + open windows *
    event_window)``. Bits are those of the largest number of trends, finished or not, that the partition has held.

    Attributes
    ----------
    partition : int
        Bytes per partition.
    window : Line
        Bytes per partition and open window; all that can be open at once are counted.
    event : int
        Bytes per partition and event that is kept, 0 where none is.
    event_window : Line
        Bytes per partition, kept event and open window.
    thread : Line
        Bytes per open window of the working area, which exists once per thread.
    """

    partition: int
    window: Line
    event: int
    event_window: Line
    thread: Line

    @classmethod
    def sum(cls, bounds: Sequence[Bound]) -> Bound:
        """What several parts of a query need."""
        return cls(
            sum(one.partition for one in bounds),
            Line.sum(one.window for one in bounds),
            sum(one.event for one in bounds),
            Line.sum(one.event_window for one in bounds),
            Line.sum(one.thread for one in bounds),
        )
