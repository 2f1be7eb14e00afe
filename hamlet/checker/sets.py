"""Sets of values as evidence writes them: one value, some, or all but some; typed, so that 4 is not 4.0."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hamlet.checker.errors import EvidenceError

Typed = tuple[type, Any]
_MOST_CELLS = 1_000_000


def typed(value: Any) -> Typed:
    """A value with its type; every NaN is one."""
    return type(value), "nan" if value != value else value


class Values:
    """Some values, or all values but some.

    Attributes
    ----------
    values : frozenset
        Typed values.
    others : bool
        Whether the set holds all values but these.
    """

    __slots__ = ("others", "values")

    def __init__(self, values: Iterable[Typed], others: bool = False) -> None:
        self.values = frozenset(values)
        self.others = others

    @property
    def empty(self) -> bool:
        """Whether there is no value in it; of types, only bool has finitely many."""
        if self.others:
            return {(bool, True), (bool, False)} <= self.values
        return not self.values

    @property
    def single(self) -> Any:
        """The value of a set of one; raises ValueError for any other."""
        if self.others or len(self.values) != 1:
            raise ValueError
        ((_, value),) = self.values
        return float("nan") if value == "nan" and next(iter(self.values))[0] is float else value

    def has(self, value: Typed) -> bool:
        """Whether a value is in it."""
        return (value in self.values) is not self.others

    def within(self, other: Values) -> bool:
        """Whether all its values are in the other one, too."""
        if self.others:
            return other.others and other.values <= self.values
        return all(other.has(each) for each in self.values)

    def split(self, values: Iterable[Typed]) -> Iterator[Values]:
        """The set as disjoint ones, that tell these values from each other and from the rest."""
        if not self.others:
            for each in sorted(self.values, key=repr):
                yield Values([each])
            return
        named = {each for each in values if each not in self.values}
        for each in sorted(named, key=repr):
            yield Values([each])
        rest = Values(self.values | named, others=True)
        if not rest.empty:
            yield rest


Sets = Mapping[str, Values]  # by variable


def covers(wide: Sets, narrow: Sets) -> bool:
    """Whether a claim about `wide` says something about all of `narrow`, which has its variables."""
    return all(name in narrow and narrow[name].within(each) for name, each in wide.items())


def cells(own: Sets, mentioned: Mapping[str, Iterable[Typed]]) -> Iterator[dict[str, Values]]:
    """The products of values that the mentioned ones tell apart."""
    parts = [list(each.split(mentioned.get(name, ()))) for name, each in own.items()]
    count = 1
    for each in parts:
        count *= max(len(each), 1)
    if count > _MOST_CELLS:
        raise EvidenceError(f"there are over {_MOST_CELLS:,} combinations of values to look at")
    for row in itertools.product(*parts):
        yield dict(zip(own, row, strict=True))


class Ranges:
    """Time-points, as disjoint ranges in order."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self.ranges: list[tuple[int, int]] = []
        for low, high in sorted(ranges):
            if self.ranges and low <= self.ranges[-1][1] + 1:
                self.ranges[-1] = (self.ranges[-1][0], max(high, self.ranges[-1][1]))
            else:
                self.ranges.append((low, high))

    def has(self, point: int) -> bool:
        """Whether a time-point is in them."""
        return any(low <= point <= high for low, high in self.ranges)

    def cover(self, low: int, high: int) -> bool:
        """Whether all from `low` to `high` are."""
        return high < low or any(first <= low and high <= last for first, last in self.ranges)

    def meeting(self, low: int, high: int) -> list[tuple[int, int]]:
        """The ranges that meet one, cut to it."""
        return [(max(a, low), min(b, high)) for a, b in self.ranges if a <= high and low <= b]
