"""The joint data slicer: which slices of a policy's valuations need an event.

A valuation of the free variables is a point of a hypercube and belongs to the slice of its cell. An event can matter to
the valuations that agree with it at some atom of the formula: constants and repeated variables must fit, a free
variable fixes its dimension, anything else leaves it open. A slice gets these events, and all time-points; what it
finds for its own valuations is what one process finds. Source: Schneider et al. (STTT 2021), §§4-5.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.parallel.routing.owners import hashed
from hamlet.parallel.routing.rates import PredicateKey, Rates, atoms_of, dimensions_of
from hamlet.parallel.routing.shares import Places, Relation, load
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.syntax.columns import column_names
from hamlet.policies.syntax.formula import Formula, free_variables


class JointSlicer:
    """Slices of a policy's valuations.

    Parameters
    ----------
    formula : Formula
        What is monitored, without an outermost ALWAYS.
    slices : int
    rates : Rates, optional
        Of its atoms (`atoms_of`, over `dimensions_of`); without, all atoms count alike and no value is heavy.

    Attributes
    ----------
    variables : tuple of str
        The dimensions.
    columns : tuple of str
        Theirs in the rows of the policy.
    grids : mapping of tuple of int to grid
        The dimensions with heavy values, and the shares of such valuations.
    """

    def __init__(self, formula: Formula, slices: int, rates: Rates | None = None, *, heavy: bool = True) -> None:
        self.variables = dimensions_of(formula)
        names = free_variables(formula)
        named = dict(zip(names, column_names(names), strict=True))
        self.columns = tuple(named[name] for name in self.variables)
        self.atoms = atoms_of(formula, self.variables)
        self.slices = slices
        if rates is None:
            rates = Rates(self.atoms, [1] * len(self.atoms))
        count = len(self.variables)
        self.heavy = rates.heavy(count, slices) if heavy else [frozenset()] * count
        sizes = rates.sizes(self.heavy)
        candidates = [place for place in range(count) if self.heavy[place]]
        classes = [chosen for size in range(len(candidates) + 1) for chosen in combinations(candidates, size)]
        self.grids = {chosen: _Grid(self._shares(sizes, chosen)) for chosen in classes}
        self.sent = np.zeros(slices, np.int64)

    def _shares(self, sizes: Mapping[tuple[Places, Places], float], chosen: Places) -> Places:
        """The shares with the least load for valuations that are heavy in exactly these dimensions.

        A dimension of heavy values has at most as many steps as there are such values.
        """
        relations = [
            Relation(carried, events)
            for (carried, held), events in sizes.items()
            if held == tuple(place for place in carried if place in chosen)
        ]
        most = [len(self.heavy[place]) if place in chosen else self.slices for place in range(len(self.variables))]
        return min(
            _whole_shares(most, self.slices),
            key=lambda shares: (round(load(relations, shares), 9), math.prod(shares), max(shares, default=1), shares),
        )

    def expected(self, rates: Rates) -> float:
        """Events of a slice, were they spread as the shares promise."""
        sizes = rates.sizes(self.heavy)
        total = 0.0
        for (carried, held), events in sizes.items():
            for grid_held, grid in self.grids.items():
                if set(held) == set(grid_held) & set(carried):
                    total += events / math.prod(grid.shares[place] for place in carried)
        return total

    def route(self, chunk: LogChunk) -> list[LogChunk]:
        """The time-points of a chunk for each slice, with the events that it needs."""
        found: list[dict[PredicateKey, Any]] = [{} for _ in range(self.slices)]
        for key, (points, columns) in chunk.relations.items():
            needs = self._needs(key, columns, len(points))
            if needs is None:
                continue
            self.sent += needs.sum(axis=0)
            for slice in range(self.slices):
                rows = np.nonzero(needs[:, slice])[0]
                if len(rows) == len(points):
                    found[slice][key] = (points, columns)
                elif len(rows):
                    places = pa.array(rows)
                    found[slice][key] = (points[rows], tuple(column.take(places) for column in columns))
        return [LogChunk(chunk.first, chunk.times, relations, chunk.offset) for relations in found]

    def only(self, chunk: LogChunk, slice: int) -> LogChunk:
        """The time-points of a chunk for one slice."""
        relations: dict[PredicateKey, Any] = {}
        for key, (points, columns) in chunk.relations.items():
            mine = self._needs_of(slice, key, columns, len(points))
            if mine is None:
                continue
            self.sent[slice] += int(mine.sum())
            if mine.all():
                relations[key] = (points, columns)
            elif mine.any():
                places = pa.array(np.nonzero(mine)[0])
                relations[key] = (points[mine], tuple(column.take(places) for column in columns))
        return LogChunk(chunk.first, chunk.times, relations, chunk.offset)

    def keep(self, rows: pa.RecordBatch, slice: int) -> pa.RecordBatch:
        """The rows whose valuation belongs to a slice."""
        own = self.owners(rows) == slice
        return rows if own.all() else rows.filter(pa.array(own))

    def _needs(self, key: PredicateKey, columns: Sequence[pa.Array], rows: int) -> npt.NDArray[np.bool_] | None:
        """Which slices need which tuples of a predicate: bool of shape (rows, slices); None where none does."""
        found: npt.NDArray[np.bool_] | None = None
        for places, cells, offsets in self._cells(key, columns, rows):
            if found is None:
                found = np.zeros((rows, self.slices), np.bool_)
            for offset in offsets:
                found[places, cells + offset] = True
        return found

    def _needs_of(self, slice: int, key: PredicateKey, columns: Sequence[pa.Array], rows: int) -> Any:
        """Which rows one slice needs: bool of shape (rows,), or None."""
        found: npt.NDArray[np.bool_] | None = None
        for places, cells, offsets in self._cells(key, columns, rows):
            if found is None:
                found = np.zeros(rows, np.bool_)
            wanted = np.zeros(self.slices, np.bool_)  # by cell: whether the slice is one of those
            wanted[[slice - offset for offset in offsets if slice >= offset]] = True
            if len(places) == rows:
                found |= wanted[cells]
            else:
                found[places] |= wanted[cells]
        return found

    def _cells(
        self, key: PredicateKey, columns: Sequence[pa.Array], rows: int
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[int]]]:
        """For atoms and grids that tuples of a predicate match: the tuples, their cells, and what to add to these."""
        for atom in self.atoms:
            if atom.predicate != key:
                continue
            mask = atom.matching(columns)
            fixed = dict(atom.fixed)
            shared = {dimension: place for dimension, place in fixed.items() if self._is_shared(dimension)}
            hashes = {dimension: hashes_of(columns[place], dimension) for dimension, place in shared.items()}
            held = {
                dimension: pc.is_in(
                    columns[place], pa.array(list(self.heavy[dimension]), columns[place].type)
                ).to_numpy(zero_copy_only=False)
                for dimension, place in fixed.items()
                if self.heavy[dimension]
            }
            for heavy, grid in self.grids.items():
                chosen = np.ones(rows, np.bool_) if mask is None else mask.copy()
                for dimension, is_held in held.items():
                    chosen &= is_held if dimension in heavy else ~is_held
                places = np.nonzero(chosen)[0]
                if len(places) == rows:
                    yield places, grid.cells(hashes, rows), grid.offsets(fixed)
                else:
                    part = {dimension: values[places] for dimension, values in hashes.items()}
                    yield places, grid.cells(part, len(places)), grid.offsets(fixed)

    def _is_shared(self, dimension: int) -> bool:
        """Whether the slice of a valuation depends on its value in a dimension."""
        return any(grid.shares[dimension] > 1 for grid in self.grids.values())

    def _is_heavy(self, dimension: int, column: pa.Array) -> npt.NDArray[np.bool_]:
        values = pa.array(list(self.heavy[dimension]), column.type)
        found: npt.NDArray[np.bool_] = pc.is_in(column, values).to_numpy(zero_copy_only=False)
        return found

    def owners(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The slice of each row of a policy, by its valuation; shape (rows,)."""
        columns = [rows.column(name) for name in self.columns]
        hashes = {
            dimension: hashes_of(column, dimension)
            for dimension, column in enumerate(columns)
            if self._is_shared(dimension)
        }
        found = np.zeros(rows.num_rows, np.int64)
        held = [
            self._is_heavy(dimension, column) if self.heavy[dimension] else None
            for dimension, column in enumerate(columns)
        ]
        for heavy, grid in self.grids.items():
            chosen = np.ones(rows.num_rows, np.bool_)
            for dimension, is_held in enumerate(held):
                if is_held is not None:
                    chosen &= is_held if dimension in heavy else ~is_held
            found[chosen] = grid.cells({each: values[chosen] for each, values in hashes.items()}, int(chosen.sum()))
        return found


class _Grid:
    """A hypercube of slices.

    Attributes
    ----------
    shares : tuple of int, shape (dimensions,)
    """

    def __init__(self, shares: Places) -> None:
        self.shares = shares
        self._strides = [math.prod(shares[place + 1 :]) for place in range(len(shares))]

    def cells(self, hashes: Mapping[int, npt.NDArray[np.uint64]], rows: int) -> npt.NDArray[np.int64]:
        """The first cell with the steps of some dimensions; shape (rows,)."""
        found = np.zeros(rows, np.int64)
        for dimension, values in hashes.items():
            if self.shares[dimension] == 1:
                continue
            found += (values % np.uint64(self.shares[dimension])).astype(np.int64) * self._strides[dimension]
        return found

    def offsets(self, fixed: Collection[int]) -> list[int]:
        """From there to all cells with these steps."""
        free = [place for place in range(len(self.shares)) if place not in fixed]
        ranges = [range(0, self.shares[place] * self._strides[place], self._strides[place]) for place in free]
        return [sum(each) for each in product(*ranges)]


def _whole_shares(most: Sequence[int], slices: int) -> Iterator[Places]:
    """All tuples of positive integers, each at most so large, whose product is at most `slices`."""
    if not most:
        yield ()
        return
    for share in range(1, min(most[0], slices) + 1):
        for rest in _whole_shares(most[1:], slices // share):
            yield (share, *rest)


def hashes_of(column: pa.Array, seed: int) -> npt.NDArray[np.uint64]:
    """A hash of each value that is the same in every process; shape (rows,)."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        values = column.cast(pa.int64()).to_numpy(zero_copy_only=False).view(np.uint64)
    elif pa.types.is_decimal(kind):  # integers of any size; small ones have the hash of int64
        numbers = [int(each) % (1 << 64) for each in column.to_pylist()]
        values = np.array(numbers, np.uint64)
    elif pa.types.is_floating(kind):
        values = (column.to_numpy(zero_copy_only=False) + 0.0).view(np.uint64)  # -0.0 is 0.0
    else:
        coded = column if pa.types.is_dictionary(kind) else pc.dictionary_encode(column)
        texts = [hashed(str(each).encode(errors="surrogatepass")) for each in coded.dictionary.to_pylist()]
        places = coded.indices.to_numpy(zero_copy_only=False)
        values = np.array(texts, np.uint64)[places] if texts else np.zeros(0, np.uint64)
    with np.errstate(over="ignore"):
        mixed = values + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: npt.NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return found
