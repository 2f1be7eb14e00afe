"""Aggregates as components: what the kernel keeps per cell, and how a result value is read from it.

A *component* is a number that adds up over disjoint sets of trends (or an extremum that combines), so components are
also what partial results carry before groups are merged, in process and on Spark. Columns of them, and result values:
`hamlet.output.components`.

Source: HAMLET (SIGMOD'21) §2.1 (aggregation functions); docs/numbers.md ("Exact numbers").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from hamlet._core import COMPONENTS
from hamlet.language.query import Aggregate, AttributeType
from hamlet.planner import scaled
from hamlet.planner.scaled import Scaled

# kind -> (words, words per limb of width): a count's width is the state's, occurrences and sums need head-room
SIZES = {
    "count": (0, 1),
    "occurrences": (1, 1),
    "sum_int": (2, 1),
    "sum_double": (2, 0),
    "present": (1, 0),
    "least_int": (2, 0),
    "greatest_int": (2, 0),
    "least_double": (2, 0),
    "greatest_double": (2, 0),
    "count_scaled": (2, 0),
    "occurrences_scaled": (2, 0),
    "distinct": (0, 0),  # no part of a cell: see `SETS`
    "registers": (0, 0),
    "events": (0, 0),
}

SCALED = frozenset({"sum_double", "count_scaled", "occurrences_scaled"})
COUNTS = frozenset({"count", "count_scaled"})
# sets come last: values, exactly and as a HyperLogLog sketch; events that several partitions of a group may take
SETS = ("distinct", "registers", "events")

REGISTERS = 4096  # of a sketch

Types = Mapping[tuple[str, str], AttributeType | None]
# int for limbs, Scaled for scaled doubles, bool for presence, int | float | None for extrema, frozenset for exact sets,
# bytes for registers; for matched events a frozenset of (what tells it apart, how many are alike, value)
Component = Any


@dataclass(frozen=True, slots=True)
class ComponentKey:
    """What a component measures; equal keys of a query are one component.

    With `once` it is over the events that some trend takes, each once, instead of over all trends. `beginning` says
    which trends, where they are told apart by how they begin (`hamlet.planner.beginnings`); 0: all.
    """

    kind: str
    variable: str | None = None
    attribute: str | None = None
    beginning: int = 0
    once: bool = False


@dataclass(frozen=True)
class Layout:
    """The components of a query and their places in a cell."""

    keys: tuple[ComponentKey, ...]

    @property
    def cells(self) -> Layout:
        """The components that are numbers in cells."""
        return Layout(tuple(key for key in self.keys if key.kind not in SETS))

    @property
    def sets(self) -> tuple[ComponentKey, ...]:
        """The others, the exact ones first."""
        return tuple(key for key in self.keys if key.kind in SETS)

    @property
    def fixed(self) -> int:
        """Words of a cell that do not depend on the width."""
        return sum(SIZES[key.kind][0] for key in self.keys)

    @property
    def wide(self) -> int:
        """Words of a cell per limb of width."""
        return sum(SIZES[key.kind][1] for key in self.keys)

    def rows(
        self,
        variables: Mapping[str, int],
        column_of: Callable[[str, str], int],
        types: Types,
        once: bool = False,
    ) -> list[tuple[int, ...]]:
        """The kernel's component table; `column_of` numbers the event column of (variable, attribute).

        Sets of values are not in it. Components over all trends have variables, or with `once` those over matched
        events.
        """
        rows: list[tuple[int, ...]] = []
        counts = {key.beginning: number for number, key in enumerate(self.keys) if key.kind in COUNTS}
        runs = [0] * (len(self.keys) + 1)
        for number in reversed(range(len(self.keys))):
            runs[number] = runs[number + 1] + 1 if self.keys[number].kind in SCALED else 0
        offset = slope = 0
        for number, key in enumerate(self.keys):
            if key.kind in SETS:
                continue
            words, wide = SIZES[key.kind]
            rows.append(
                (
                    COMPONENTS[key.kind],
                    # a variable of the other side of AND has no events here
                    -2 if key.once is not once else -1 if key.variable is None else variables.get(key.variable, -2),
                    -1
                    if key.variable is None or key.attribute is None or key.once is not once
                    else column_of(key.variable, key.attribute),
                    int(types.get((key.variable or "", key.attribute or "")) is not AttributeType.DOUBLE),
                    offset,
                    slope,
                    words,
                    wide,
                    counts[key.beginning],
                    runs[number],
                )
            )
            offset, slope = offset + words, slope + wide
        return rows


_TRENDS = Aggregate("COUNT")


@lru_cache(maxsize=1_024)
def needed(aggregate: Aggregate, double: bool, exact: bool, shared: bool = False) -> tuple[ComponentKey, ...]:
    """The components that one aggregate is read from, its number first.

    Parameters
    ----------
    aggregate : Aggregate
    double : bool
        Whether the attribute is a DOUBLE.
    exact : bool
        Whether counts and sums of integers are exact; else they are scaled doubles too.
    shared : bool
        Of an aggregate over matched events: whether several partitions of a group, or both operands of AND, may take
        one event.
    """
    place = (aggregate.variable, aggregate.attribute)
    if aggregate.events:
        if shared:
            return (ComponentKey("events", *place),)
        own = needed(replace(aggregate, events=False), double, exact)
        return tuple(replace(key, once=True) for key in own)
    count = ComponentKey("count" if exact else "count_scaled")
    occurrences = ComponentKey("occurrences" if exact else "occurrences_scaled", *place)
    total = ComponentKey("sum_double" if double or not exact else "sum_int", *place)
    match aggregate.function:
        case "COUNT":
            return (count if aggregate.variable is None else occurrences,)
        case "SUM":
            return (total, ComponentKey("present", *place))
        case "AVG":
            return (total, occurrences)
        case "COUNT_DISTINCT":
            return (ComponentKey("distinct", *place),)
        case "APPROX_COUNT_DISTINCT":
            return (ComponentKey("registers", *place),)
        case function:
            extremum = "least" if function == "MIN" else "greatest"
            return (ComponentKey(f"{extremum}_{'double' if double else 'int'}", *place),)


def components(aggregates: Iterable[Aggregate], types: Types, *, exact: bool, shared: Collection[str] = ()) -> Layout:
    """The components that a query's aggregates need, the count first.

    Parameters
    ----------
    aggregates : iterable of Aggregate
    types : mapping of (variable, attribute) to AttributeType or None
        None where no value has been seen, which counts as INT.
    exact : bool
    shared : collection of str
        Variables whose events several partitions of a group, or both operands of AND, may take.
    """
    keys = dict.fromkeys(needed(_TRENDS, False, exact))
    for each in aggregates:
        keys.update(dict.fromkeys(needed(each, is_double(each, types), exact, each.variable in shared)))
    return in_order(keys)


def in_order(keys: Iterable[ComponentKey]) -> Layout:
    """A layout with sets behind all else, in the order of `SETS`."""
    ranks = {kind: rank for rank, kind in enumerate(SETS, 1)}
    return Layout(tuple(sorted(dict.fromkeys(keys), key=lambda key: ranks.get(key.kind, 0))))


def apart(layout: Layout) -> tuple[Layout, ...]:
    """The components over all trends, and those over matched events beside the count; none where all are of a kind."""
    count, *others = layout.keys
    events = [key for key in others if key.once or key.kind == "events"]
    trends = [key for key in others if key not in events]
    return (in_order([count, *trends]), in_order([count, *events])) if events else ()


def is_double(aggregate: Aggregate, types: Types) -> bool:
    """Whether an aggregate's attribute is a DOUBLE."""
    return types.get((aggregate.variable or "", aggregate.attribute or "")) is AttributeType.DOUBLE


def merged(keys: Sequence[ComponentKey], one: Sequence[Component], other: Sequence[Component]) -> list[Component]:
    """The components of two disjoint sets of trends together."""
    result = []
    for key, a, b in zip(keys, one, other, strict=True):
        if key.kind in ("count", "occurrences", "sum_int"):
            result.append(a + b)
        elif key.kind in ("present", "distinct", "events"):
            result.append(a or b if key.kind == "present" else a | b)
        elif key.kind == "registers":
            result.append(bytes(map(max, a, b)))
        elif key.kind.startswith(("least", "greatest")):
            choose = min if key.kind.startswith("least") else max
            result.append(b if a is None else a if b is None else choose(a, b))
        else:
            result.append(scaled.plus(a, b))
    return result


def paired(
    keys: Sequence[ComponentKey], one: Sequence[Component], two: Sequence[Component], both: Sequence[Component]
) -> list[Component]:
    """The components of unordered pairs of different trends (AND), from those of the trends on both sides.

    With n trends on the one side, m on the other and b on both there are nm - b(b+1)/2 pairs: a trend makes none with
    itself, and of two trends that are on both sides the two orders are one pair. A sum adds up over both trends of
    every pair: m x + n y - (b+1) z. Where there is a pair at all, every trend of either side is in one, so extrema and
    presence are those of all trends.

    Parameters
    ----------
    keys : sequence of ComponentKey
    one, two, both : sequence of components
        Of the trends of the left operand, of the right one, and of the trends that are in both.

    Source: GRETA (VLDB'17) §9; docs/numbers.md ("Exact numbers").
    """
    floats = keys[0].kind == "count_scaled"
    n, m, b = (side[0] for side in (one, two, both))
    result: list[Component] = []
    for key, x, y, z in zip(keys, one, two, both, strict=True):
        if key.once:  # an event that both operands take is in a set; every trend of either side is in a pair
            result += merged([key], [x], [y])
        elif key.kind == "count":
            result.append(n * m - b * (b + 1) // 2)
        elif key.kind == "count_scaled":
            twice = scaled.times(b, scaled.plus(b, (1.0, 0)))
            result.append(scaled.plus(scaled.times(n, m), scaled.times(twice, (-0.5, 0))))
        elif key.kind in ("occurrences", "sum_int"):
            result.append(m * x + n * y - (b + 1) * z)
        elif key.kind in SCALED:
            counts = [n, m, b] if floats else [scaled.of_integer(count) for count in (n, m, b)]
            result.append(_paired_sum(counts, [x, y, z]))
        else:
            result += merged([key], [x], [y])
    return result


def _paired_sum(counts: Sequence[Scaled], sums: Sequence[Scaled]) -> Scaled:
    """m x + n y - (b+1) z."""
    (n, m, b), (x, y, z) = counts, sums
    if not (math.isfinite(x[0]) and math.isfinite(y[0])):
        return x[0] + y[0], 0  # every trend of either side is in a pair, and so is the infinite value
    less = scaled.times(scaled.plus(b, (1.0, 0)), scaled.negative(z))
    return scaled.plus(scaled.plus(scaled.times(m, x), scaled.times(n, y)), less)


def followed(keys: Sequence[ComponentKey], one: Sequence[Component], two: Sequence[Component]) -> list[Component]:
    """The components of all trends that are one of one set, followed by one of another.

    With n and m trends there are nm; a sum adds up over both parts of each: m x + n y. Where there is a trend at all,
    every part is in one, so extrema and presence are those of all parts.

    Parameters
    ----------
    keys : sequence of ComponentKey
    one, two : sequence of components

    Examples
    --------
    >>> followed((ComponentKey("count"), ComponentKey("sum_int", "B", "v")), [2, 10], [3, 100])
    [6, 230]
    """
    n, m = one[0], two[0]
    if not (has_trends(n) and has_trends(m)):
        return nothing(keys)
    floats = keys[0].kind == "count_scaled"
    result: list[Component] = []
    for key, x, y in zip(keys, one, two, strict=True):
        if key.kind == "count":
            result.append(n * m)
        elif key.kind == "count_scaled":
            result.append(scaled.times(n, m))
        elif key.kind in ("occurrences", "sum_int"):
            result.append(m * x + n * y)
        elif key.kind in SCALED:
            times = (n, m) if floats else (scaled.of_integer(n), scaled.of_integer(m))
            result.append(scaled.plus(scaled.times(times[1], x), scaled.times(times[0], y)))
        else:
            result += merged([key], [x], [y])
    return result


def nothing(keys: Sequence[ComponentKey]) -> list[Component]:
    """The components of no trend at all."""
    empty: dict[str, Component] = {"present": False, "distinct": frozenset(), "registers": bytes(REGISTERS)}
    empty["events"] = frozenset()
    empty |= dict.fromkeys(SCALED, (0.0, 0))
    return [None if "least" in key.kind or "greatest" in key.kind else empty.get(key.kind, 0) for key in keys]


def has_trends(count: Component) -> bool:
    """Whether a count, exact or scaled, is above zero."""
    return bool(count[0] if isinstance(count, tuple) else count)
