"""Bands: queries that the kernel runs side by side, one vector element each (``lanes.h``, ``programs.pyx``).

A band holds queries of equal windows whose transitions read sums and no single events (the rung "state-grained"), and
whose negated patterns kill at once. Their cells lie in one block per key, so the block must not be larger than what the
queries would hold on their own.

Source: HAMLET (SIGMOD'21) §3.1 (merged template).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from hamlet._core import COMPONENTS, SOURCES
from hamlet.planner.memory import UNTIL, WORD, bound
from hamlet.planner.tables import NONE, QueryTables

MOST_PLANES = 16  # as in lanes.h
WIDTH = 8  # lanes of the widest vectors
FEW_WINDOWS = 2  # open at once; so few that one band of unlike queries costs less than several of like ones

_PRESENT = COMPONENTS["present"]
_SUMS = ("occurrences", "sum_int", "present", "sum_double", "count_scaled", "occurrences_scaled")
_EXTREMA = frozenset(COMPONENTS[kind] for kind in ("least_int", "greatest_int", "least_double", "greatest_double"))
_KNOWN = _EXTREMA | {COMPONENTS[kind] for kind in ("count", *_SUMS)}
_NUMBERS = frozenset(COMPONENTS[kind] for kind in ("occurrences", "occurrences_scaled"))
_DOUBLES = frozenset(COMPONENTS[kind] for kind in ("sum_double", "count_scaled", "occurrences_scaled"))
_WHOLE, _DOUBLE, _EXTREMUM = range(3)  # what a plane holds
_COUNTS = frozenset(COMPONENTS[kind] for kind in ("count", "count_scaled"))


@dataclass(frozen=True)
class Band:
    """Queries side by side.

    Attributes
    ----------
    queries : tuple of int
        Numbers of the kernel's queries, lane by lane.
    slots : int
        Cells of the query that has most of them, and one per guarded start.
    planes : int
        Numbers per cell; the first is the count.
    whole : int
        Planes that hold integers, the first ones; 0 under ``numbers=float``.
    linear : int
        Planes that are added up: those and doubles behind them. The others are extrema; presence is one, too.
    ranks : int
        Planes before the first one that holds an extremum other than presence in some lane.
    vectors : int
        Of a cell: planes, and under ``numbers=float`` an exponent for each that is a double.
    maps : int
        Windows' worth of room for a pane map (`hamlet.kernel.operators.pane_matrix`); 0 where there is none.
    places : tuple of tuple of int
        Per lane the plane of each component.
    starts : tuple of tuple of int
        Per lane and guard set the slot of the start under it, -1 where no transition reads it.
    width : int
        Lanes of a vector; 0 for what the machine has, -2 for two without instructions that some machine lacks.
    """

    queries: tuple[int, ...]
    slots: int
    planes: int
    whole: int
    linear: int
    ranks: int
    vectors: int
    maps: int
    places: tuple[tuple[int, ...], ...]
    starts: tuple[tuple[int, ...], ...]
    width: int = 0


_Forms = tuple[int, int, int]  # how many planes hold integers, doubles, extrema


@dataclass(frozen=True)
class _Lane:
    exact: bool
    windows: int
    slots: int
    forms: _Forms
    flags: int  # extrema that are presence: the first ones
    places: tuple[tuple[int, int], ...]  # of each component: the form of its plane, and which of them
    starts: tuple[int, ...]
    bytes: float  # what the query may hold on its own, with all windows open and every count in one word


_Placed = tuple[int, _Lane]  # a query's number, and its lane


def fits(tables: QueryTables) -> bool:
    """Whether a query can be run in a band."""
    if tables.is_merged:
        return False
    looks_back = tables.stores or tables.indexes or tables.predicates
    return not looks_back and all(tables.simple) and all(row[0] in _KNOWN for row in tables.components)


def bands(tables: Sequence[QueryTables], likeness: Sequence[Hashable] = (), *, width: int = 0) -> list[Band]:
    """The bands of a kernel's queries; a query is in one band or in none.

    Parameters
    ----------
    tables : sequence of QueryTables
        One per query.
    likeness : sequence of sortable, optional
        One per query; queries of near values are put into near lanes, so that events skip whole vectors.
    width : int
        See `Band`.
    """
    found: dict[tuple[object, ...], list[_Placed]] = {}  # by what all lanes of a band have in common
    known: dict[tuple[int, ...], _Lane | None] = {}  # None for those that do not fit
    for query, one in enumerate(tables):
        form = one.form
        if form not in known:
            known[form] = _lane(one) if fits(one) else None
        lane = known[form]
        if lane is not None:
            alike = lane.forms if lane.windows > FEW_WINDOWS else None
            found.setdefault((one.within, one.slide, one.exact, alike), []).append((query, lane))
    result = []
    for lanes in found.values():
        for chosen in _split(sorted(lanes, key=lambda each: each[1].slots)):
            if likeness:
                chosen.sort(key=lambda each: (each[1].forms if each[1].exact else (), likeness[each[0]]))
            _, first = chosen[0]
            lone = len(chosen) == 1 and not _fits(first, first.forms, _padded(1), first.bytes)
            result.append(_band(chosen, 1 if lone else width))
    return result


def _lane(tables: QueryTables) -> _Lane:
    """The planes of a query's components and the slots of its guarded starts."""
    kinds = []  # the count first, then numbers of values, then sums
    numbers = {(variable, column) for kind, variable, column, *_ in tables.components if kind in _NUMBERS}
    for kind, variable, column, *_ in tables.components:
        counted = kind in _NUMBERS or (kind == _PRESENT and (tables.exact or (variable, column) in numbers))
        rank = 0 if kind in _COUNTS else 1 if counted else kind  # presence and number of values are one plane
        place = (variable, column) if rank else (0, 0)
        larger = kind in _EXTREMA or (kind == _PRESENT and not counted)
        form = _EXTREMUM if larger else _DOUBLE if kind in _DOUBLES or not tables.exact else _WHOLE
        kinds.append((form, rank, *place))
    order = [sorted({kind for kind in kinds if kind[0] == form}) for form in (_WHOLE, _DOUBLE, _EXTREMUM)]
    slots = len(tables.cell_guards)
    starts = [NONE] * len(tables.guard_sets)
    for kind, _, guards, _, _ in tables.sources:
        if kind == SOURCES["start"] and guards != NONE and starts[guards] == NONE:
            starts[guards] = slots
            slots += 1
    of, windows = bound([tables]), -(-tables.within // tables.slide)
    places = tuple((kind[0], order[kind[0]].index(kind)) for kind in kinds)
    whole, doubles, extrema = map(len, order)
    held = of.partition + windows * of.window.at(0)
    flags = sum(kind == _PRESENT for _, kind, *_ in order[_EXTREMUM])
    return _Lane(tables.exact, windows, slots, (whole, doubles, extrema), flags, places, tuple(starts), held)


def _band(placed: Sequence[_Placed], width: int) -> Band:
    """These lanes side by side: each has the planes of all of them."""
    lanes = [lane for _, lane in placed]
    forms = _widest({lane.forms for lane in lanes})
    before = tuple(accumulate(forms, initial=0))  # planes before those of a form
    flags = min((lane.flags for lane in lanes if lane.flags < lane.forms[_EXTREMUM]), default=forms[_EXTREMUM])
    places = {each: tuple(before[form] + place for form, place in each) for each in {lane.places for lane in lanes}}
    return Band(
        tuple(query for query, _ in placed),
        max(lane.slots for lane in lanes),
        sum(forms),
        forms[_WHOLE],
        before[_EXTREMUM],
        before[_EXTREMUM] + flags,
        _vectors(forms, lanes[0].exact),
        _maps(lanes[0].exact, lanes[0].windows, max(lane.slots for lane in lanes)),
        tuple(places[lane.places] for lane in lanes),
        tuple(lane.starts for lane in lanes),
        width,
    )


def _widest(forms: Iterable[_Forms]) -> _Forms:
    whole, doubles, extrema = map(max, zip(*forms, strict=True))
    return whole, doubles, extrema


def _wider(one: _Forms, other: _Forms) -> _Forms:
    return one if one == other else _widest((one, other))


def _vectors(forms: _Forms, exact: bool) -> int:
    """Vectors of a cell."""
    return sum(forms) if exact else sum(forms) + forms[_DOUBLE]


def _maps(exact: bool, windows: int, slots: int) -> int:
    """Windows' worth of a pane map: none where so few windows overlap that it cannot pay."""
    return 0 if exact or windows <= 2 + slots else 1 + slots


def _split(lanes: list[_Placed]) -> list[list[_Placed]]:
    """Bands of lanes in order of their slots, each as large as memory allows.

    Behind a band that memory has kept small no much larger one is looked for, so that the time stays linear.
    """
    held = list(accumulate((lane.bytes for _, lane in lanes), initial=0.0))
    result: list[list[_Placed]] = []
    begin, most = 0, len(lanes)
    while begin < len(lanes):
        forms = list(accumulate((lane.forms for _, lane in lanes[begin : begin + most]), _wider))
        for end in range(begin + len(forms), begin, -1):
            padded = 1 if end == begin + 1 else _padded(end - begin)
            if _fits(lanes[end - 1][1], forms[end - begin - 1], padded, held[end] - held[begin]):
                result.append(lanes[begin:end])
                break
        most = 2 * (end - begin) + WIDTH
        begin = end
    return result


def _fits(last: _Lane, forms: _Forms, padded: int, held: float) -> bool:
    """Whether a block of so many lanes, of which the last has most slots, is no larger than `held`."""
    windows = last.windows + _maps(last.exact, last.windows, last.slots)
    cell = windows * last.slots * _vectors(forms, last.exact) * WORD
    return padded * cell + last.windows * UNTIL <= held and sum(forms) <= MOST_PLANES


def _padded(lanes: int) -> int:
    """Lanes with those that fill the last vector; the narrowest has two."""
    width = max(2, min(WIDTH, 1 << (lanes - 1).bit_length()))
    return -(-lanes // width) * width
