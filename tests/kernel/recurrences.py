"""Aggregates over streams of tens of thousands of events, by recurrences in exact arithmetic.

For a handful of patterns, each written down here as the states that a trend can stand in, nothing but Python integers:
an event bound to a state extends every trend that stands in one of the states before it. Sums of doubles are counted in
units of 2^-1074, of which every double is a whole number. This shares no code with the engine and none with the oracle,
which lists trends and cannot count so many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

START = "start"
UNIT = Fraction(1, 2**1074)

# pattern -> state: (event type, states before it), the states where a trend may end. A state is called by its variable.
PATTERNS: dict[str, tuple[dict[str, tuple[str, tuple[str, ...]]], tuple[str, ...]]] = {
    "A+": ({"A": ("A", (START, "A"))}, ("A",)),
    "SEQ(A, B+)": ({"A": ("A", (START,)), "B": ("B", ("A", "B"))}, ("B",)),
    "SEQ(A+, B+)": ({"A": ("A", (START, "A")), "B": ("B", ("A", "B"))}, ("B",)),
    "SEQ(A+, B)": ({"A": ("A", (START, "A")), "B": ("B", ("A",))}, ("B",)),
    "SEQ(A?, B+)": ({"A": ("A", (START,)), "B": ("B", (START, "A", "B"))}, ("B",)),
    "(SEQ(A, B+))+": ({"A": ("A", (START, "B")), "B": ("B", ("A", "B"))}, ("B",)),
    "(A OR B)+": ({"A": ("A", (START, "A", "B")), "B": ("B", (START, "A", "B"))}, ("A", "B")),
    "SEQ(A, B*, A last)": ({"A": ("A", (START,)), "B": ("B", ("A", "B")), "last": ("A", ("A", "B"))}, ("last",)),
}

Event = tuple[str, Any]  # type and value: an int, a float, or None


@dataclass
class Sums:
    """What some set of trends has in sum.

    Attributes
    ----------
    trends : int
    events : int
        Occurrences of the variable.
    values : int
        Occurrences with a value.
    total, magnitude : int
        Sum of the values and of their absolute values, in units of 2^-1074.
    least, greatest : int, float or None
    """

    trends: int = 0
    events: int = 0
    values: int = 0
    total: int = 0
    magnitude: int = 0
    extremes: list[Any] = field(default_factory=list)

    def add(self, other: Sums) -> None:
        """Add the sums of other trends."""
        self.trends += other.trends
        self.events += other.events
        self.values += other.values
        self.total += other.total
        self.magnitude += other.magnitude
        if other.extremes:
            both = self.extremes + other.extremes
            self.extremes = [min(both), max(both)]

    def bind(self, value: Any) -> None:
        """Let an event with this value take part in all trends."""
        self.events += self.trends
        if value is None or not self.trends:
            return
        units = in_units(value)
        self.values += self.trends
        self.total += self.trends * units
        self.magnitude += self.trends * abs(units)
        self.extremes = [min([*self.extremes, value]), max([*self.extremes, value])]

    def columns(self, variable: str, attribute: str, double: bool) -> dict[str, Any]:
        """COUNT(*), COUNT, SUM, AVG, MIN and MAX by their default names, exact."""
        place = f"{variable}_{attribute}"
        total = self.total * UNIT
        return {
            "count": self.trends,
            f"count_{variable}": self.events,
            f"sum_{place}": None if not self.values else total if double else int(total),
            f"avg_{place}": total / self.values if self.values else None,
            f"min_{place}": self.extremes[0] if self.extremes else None,
            f"max_{place}": self.extremes[-1] if self.extremes else None,
        }

    def bounds(self, variable: str, attribute: str) -> dict[str, Fraction]:
        """What errors of each number are measured by: the same with absolute values."""
        place, size = f"{variable}_{attribute}", self.magnitude * UNIT
        average = size / self.values if self.values else Fraction(0)
        counts = {"count": Fraction(self.trends), f"count_{variable}": Fraction(self.events)}
        return {**counts, f"sum_{place}": size, f"avg_{place}": average}


def in_units(value: int | float) -> int:
    """A number in units of 2^-1074."""
    if isinstance(value, int):
        return value << 1074
    numerator, denominator = value.as_integer_ratio()
    return (numerator << 1074) // denominator


def sums(pattern: str, variable: str, events: Sequence[Event]) -> Sums:
    """The sums over all trends of one window.

    Parameters
    ----------
    pattern : str
        One of `PATTERNS`.
    variable : str
        Whose values are summed.
    events : sequence of (str, int, float or None)
        In order, no two at one time; NaN is NULL.
    """
    states, finals = PATTERNS[pattern]
    standing = {state: Sums() for state in states}
    for type_, value in events:
        missing = isinstance(value, float) and math.isnan(value)
        arrived: dict[str, Sums] = {}
        for state, (accepted, before) in states.items():
            if accepted == type_:
                extended = arrived[state] = Sums()
                for place in before:
                    extended.add(Sums(trends=1) if place == START else standing[place])
                if state == variable:
                    extended.bind(None if missing else value)
        for state, extended in arrived.items():
            standing[state].add(extended)
    whole = Sums()
    for state in finals:
        whole.add(standing[state])
    return whole


def table(events: Sequence[Event], attribute: str, start: int = 0) -> Mapping[str, list[Any]]:
    """The events as columns, one a tick."""
    return {
        "time": list(range(start, start + len(events))),
        "type": [type_ for type_, _ in events],
        attribute: [value for _, value in events],
    }
