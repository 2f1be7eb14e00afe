"""Which slice gets which key, bucket, cell or stretch of time: by work, the heaviest first onto the least loaded slice.

Source: the greedy rule is Graham's (SIAM J. Appl. Math. 1969, largest processing time first); heavy keys apart from the
rest, which is hashed, as in Schneider et al. (STTT 2021) §5.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from hamlet.parallel.routing.owners import Grid, GridOwner, KeyOwner, Owner, TimeOwner
from hamlet.parallel.routing.possible import lacking
from hamlet.parallel.routing.routes import Route
from hamlet.parallel.routing.routing import Slicing
from hamlet.parallel.routing.semijoin import KeyTest
from hamlet.parallel.routing.shares import Places, Relation, best_shares, grids
from hamlet.parallel.routing.statistics import BUCKETS, ClassStatistics
from hamlet.planner.compile import window
from hamlet.planner.compiled import CompiledClass, CompiledWorkload

Item = TypeVar("Item", bound=Hashable)

WORTH = 1.25  # a cut along time must be so much better than whole keys: its chunks overlap, and keep more state


def placed(work: Mapping[Item, float], slices: int, loads: Sequence[float] = ()) -> dict[Item, int]:
    """The slice of each item.

    Parameters
    ----------
    work : mapping of item to float
    slices : int
    loads : sequence of float, shape (slices,)
        What the slices have to do already.

    Examples
    --------
    >>> placed({"a": 5, "b": 3, "c": 3, "d": 1}, 2)
    {'a': 0, 'b': 1, 'c': 1, 'd': 0}
    """
    heap = [(load, slice) for slice, load in enumerate(loads or [0.0] * slices)]
    heapq.heapify(heap)
    found: dict[Item, int] = {}
    for item, amount in sorted(work.items(), key=lambda each: -each[1]):  # stable: equal ones as they came
        load, slice = heap[0]
        found[item] = slice
        heapq.heapreplace(heap, (load + amount, slice))
    return found


@dataclass(frozen=True)
class Balance:
    """How evenly slices are loaded.

    Attributes
    ----------
    loads : tuple of int, shape (slices,)
        Events that each slice gets.
    sent : int
        Events that some slice gets, each counted once.
    """

    loads: tuple[int, ...]
    sent: int

    @property
    def max_over_mean(self) -> float:
        """1 where all slices get equally many events."""
        total = sum(self.loads)
        return max(self.loads, default=0) * len(self.loads) / total if total else 1.0

    @property
    def replication(self) -> float:
        """Slices that an event goes to, on average."""
        return sum(self.loads) / self.sent if self.sent else 1.0

    @property
    def stats(self) -> dict[str, Any]:
        """What a job's summary says of it."""
        shown = {"max_over_mean": self.max_over_mean, "replication": self.replication}
        return {"loads": list(self.loads), **shown}


def plain(compiled: CompiledWorkload, routes: Sequence[Route], slices: int) -> Slicing:
    """Owners for a stream of which nothing is known: by hash."""
    owners = tuple(_by_hash(compiled.classes[route.number], route, slices) for route in routes)
    return Slicing(owners, slices)


def _by_hash(compiled: CompiledClass, route: Route, slices: int) -> Owner:
    places = tuple(compiled.attributes.index(name) for name in route.keys)
    if places:
        return KeyOwner(places, [bucket % slices for bucket in range(max(BUCKETS, slices))])
    if compiled.attributes:
        relations = [Relation(carried, 1.0) for carried in set(compiled.carried.values())]
        shares = best_shares(relations, len(compiled.attributes), slices)
        none: tuple[frozenset[bytes], ...] = (frozenset(),) * len(compiled.attributes)
        return GridOwner({(): _grid(shares, 0, slices)}, none)
    return KeyOwner((), [route.number % slices])


def _grid(shares: Places, first: int, slices: int) -> Grid:
    return Grid(shares, [(first + cell) % slices for cell in range(int(np.prod(shares, initial=1)))])


def balanced(
    compiled: CompiledWorkload,
    routes: Sequence[Route],
    slices: int,
    statistics: Sequence[ClassStatistics],
    *,
    prune: bool = False,
) -> Slicing:
    """Owners that spread the work of all classes together.

    Parameters
    ----------
    compiled : CompiledWorkload
    routes : sequence of Route
    slices : int
    statistics : sequence of ClassStatistics
        One per class; of what stream they are changes the balance, never the rows.
    prune : bool
        Whether the statistics are of this very stream, so that events of keys without a trend need not travel.
    """
    owners: list[Owner] = []
    work: dict[tuple[int, str, object], float] = {}
    for route, known in zip(routes, statistics, strict=True):
        of_class = compiled.classes[route.number]
        weight = len(of_class.queries)
        owner = _by_hash(of_class, route, slices)
        cut = _cut(compiled, of_class, known, slices)
        if isinstance(owner, GridOwner):
            owner = _grids(of_class, known, slices)
        elif known.events and cut is not None and _longest(cut[1]) * WORTH < _heaviest(known, route, slices):
            owner = cut[0]
            work |= {(route.number, "range", place): weight * events for place, events in enumerate(cut[1])}
        elif isinstance(owner, KeyOwner) and route.keys:
            work |= {(route.number, "key", key): weight * events for key, events in known.heavy.items()}
            work |= {(route.number, "bucket", bucket): weight * events for bucket, events in known.buckets.items()}
        elif known.events:
            work[route.number, "range", 0] = weight * known.events
        owners.append(owner)
    found = placed(work, slices)
    filters = key_tests(compiled, routes, statistics) if prune else ()
    placed_owners = tuple(_with(owner, place, found, statistics[place]) for place, owner in enumerate(owners))
    return Slicing(placed_owners, slices, filters)


def key_tests(
    compiled: CompiledWorkload, routes: Sequence[Route], statistics: Sequence[ClassStatistics]
) -> tuple[KeyTest | None, ...]:
    """For each class what tells the events that may stay behind; None where all must go."""
    return tuple(
        None
        if known.passing is None
        else KeyTest(route.keys, lacking(compiled.classes[route.number], route), known.passing)
        for route, known in zip(routes, statistics, strict=True)
    )


def _with(owner: Owner, number: int, found: Mapping[tuple[int, str, object], int], known: ClassStatistics) -> Owner:
    """An owner with the slices that were found for its parts."""
    match owner:
        case TimeOwner(slices=before):
            return replace(owner, slices=[found[number, "range", place] for place in range(len(before))])
        case KeyOwner(buckets=before, places=()):
            return replace(owner, buckets=[found.get((number, "range", 0), before[0])])
        case KeyOwner(buckets=before):
            buckets = [found.get((number, "bucket", bucket), slice) for bucket, slice in enumerate(before)]
            heavy = {key: found[number, "key", key] for key in known.heavy}
            return replace(owner, buckets=buckets, heavy=heavy)
    return owner


def _heaviest(known: ClassStatistics, route: Route, slices: int) -> float:
    """Events of the most loaded slice where keys are whole, at best."""
    if not route.keys:
        return known.events
    return max(known.events / slices, *known.heavy.values(), 0)


def _longest(events: Sequence[float]) -> float:
    return max(events, default=0.0)


def _cut(
    compiled: CompiledWorkload, of_class: CompiledClass, known: ClassStatistics, slices: int
) -> tuple[TimeOwner, list[float]] | None:
    """A cut along time into ranges of equal work, and the events of each range; None where there is none."""
    if len(known.times) < 2 or slices == 1:
        return None
    if any(query.reach is not None and not query.reach.stays for query in of_class.queries):
        return None  # trends are not within windows whose edges are known
    windows = [window(query.analysed, compiled.schema) for query in of_class.queries]
    sampled = np.array([time for time, _ in known.times], np.int64)
    times = of_class.line.places(sampled)
    weights = np.array([events for _, events in known.times], np.float64)
    step = max(slide for _, slide in windows)
    wanted = np.linspace(0, weights.sum(), slices + 1)[1:-1]
    cuts = times[np.minimum(np.searchsorted(np.cumsum(weights), wanted, side="right"), len(times) - 1)]
    # Between two windows where they tumble: nothing overlaps there.
    cuts = np.unique(cuts // step * step)
    cuts = cuts[(cuts > times[0]) & (cuts <= times[-1])]
    owner = TimeOwner(cuts.tolist(), list(range(len(cuts) + 1)), windows, of_class.line)
    first, last = owner.ranges(sampled)
    loads = [float(weights[(first <= place) & (place <= last)].sum()) for place in range(len(cuts) + 1)]
    return owner, loads


def _grids(compiled: CompiledClass, known: ClassStatistics, slices: int) -> GridOwner:
    """Grids for a class whose types carry different keys, with heavy values apart (Algorithm 2)."""
    size = len(compiled.attributes)
    heavy: list[frozenset[bytes]] = []
    part: list[float] = []  # of the events that carry an attribute, those with heavy values
    for place in range(size):
        total = sum(events for carried, events in known.relations.items() if place in carried)
        frequent = {value: n for value, n in known.values.get(place, {}).items() if n * slices > total}
        heavy.append(frozenset(frequent))
        part.append(sum(frequent.values()) / total if total else 0.0)
    sizes = {}
    for carried in set(compiled.carried.values()):
        events = float(known.relations.get(carried, 1))
        for held in _subsets(tuple(place for place in carried if heavy[place])):
            factors = [part[place] if place in held else 1 - part[place] for place in carried]
            sizes[carried, held] = events * float(np.prod(factors, initial=1.0))
    shares = grids(sizes, size, [bool(each) for each in heavy], slices)
    return GridOwner({held: _grid(each, number, slices) for number, (held, each) in enumerate(shares.items())}, heavy)


def _subsets(places: Places) -> list[Places]:
    found: list[Places] = [()]
    for place in places:
        found += [(*each, place) for each in found]
    return found
