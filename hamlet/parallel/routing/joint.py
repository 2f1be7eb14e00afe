"""The joint data slicer: which slices of a policy's valuations need an event.

A valuation of the free variables is a point of a hypercube and belongs to the slice of its cell. An event can matter to
the valuations that agree with it at some atom of the formula: constants and repeated variables must fit, a free
variable fixes its dimension, anything else leaves it open. A slice gets these events, and all time-points; what it
finds for its own valuations is what one process finds. Source: Schneider et al. (STTT 2021), §§4-5.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import DataError
from hamlet.parallel.routing.owners import hashed
from hamlet.parallel.routing.shares import Places, Relation, load
from hamlet.policies.formula import (
    Aggregation,
    Constant,
    Exists,
    Forall,
    Formula,
    Let,
    Predicate,
    Variable,
    children,
    free_variables,
    is_anonymous,
)
from hamlet.policies.logs import LogChunk

PredicateKey = tuple[str, int]
_MOST_HEAVY = 256  # values of a variable that get shares of their own
_MOST_SLICES = 4096  # a value that is rarer than this share of a chunk's events is not counted


@dataclass(frozen=True)
class Atom:
    """What an atom of the formula asks of an event.

    Attributes
    ----------
    predicate : (str, int)
    fixed : tuple of (int, int)
        (dimension, field) of the free variables that it carries.
    constants : tuple of (int, object)
        (field, value).
    equal : tuple of (int, int)
        Two fields that must be equal.
    """

    predicate: PredicateKey
    fixed: tuple[tuple[int, int], ...]
    constants: tuple[tuple[int, Any], ...]
    equal: tuple[tuple[int, int], ...]

    @property
    def carried(self) -> Places:
        """The dimensions that it fixes."""
        return tuple(dimension for dimension, _ in self.fixed)

    def matching(self, columns: Sequence[pa.Array]) -> npt.NDArray[np.bool_] | None:
        """Which tuples fit the constants and repeated variables; None where all do."""
        mask: Any = None
        for place, value in self.constants:
            mask = _and(mask, pc.equal(columns[place], pa.scalar(value, columns[place].type)))
        for one, other in self.equal:
            mask = _and(mask, pc.equal(columns[one], columns[other]))
        return None if mask is None else mask.to_numpy(zero_copy_only=False)


def _and(mask: Any, other: Any) -> Any:
    return other if mask is None else pc.and_(mask, other)


def dimensions_of(formula: Formula) -> tuple[str, ...]:
    """The free variables that some atom carries, in order; a valuation's slice depends on these."""
    names = free_variables(formula)
    carried = {names[dimension] for atom in atoms_of(formula, names) for dimension, _ in atom.fixed}
    return tuple(name for name in names if name in carried)


def atoms_of(formula: Formula, names: Sequence[str]) -> list[Atom]:
    """The atoms of a formula, equal ones once; `names` are the dimensions."""
    return list(dict.fromkeys(_atoms(formula, {name: place for place, name in enumerate(names)}, frozenset())))


def _atoms(formula: Formula, free: Mapping[str, int], defined: frozenset[PredicateKey]) -> Iterator[Atom]:
    match formula:
        case Predicate(name, arguments):
            if (name, len(arguments)) not in defined:
                yield _atom(formula, free)
            return
        case Exists(variables, body) | Forall(variables, body):
            yield from _atoms(body, _without(free, variables), defined)
            return
        case Aggregation(_, _, _, groups, body):
            inner = [name for name in free_variables(body) if name not in groups]
            yield from _atoms(body, _without(free, inner), defined)
            return
        case Let(name, parameters, definition, body):
            yield from _atoms(definition, {}, defined)  # whatever its parameters stand for
            yield from _atoms(body, free, defined | {(name, len(parameters))})
            return
    for child in children(formula):
        yield from _atoms(child, free, defined)


def _without(free: Mapping[str, int], names: Collection[str]) -> dict[str, int]:
    return {name: place for name, place in free.items() if name not in names}


def _atom(formula: Predicate, free: Mapping[str, int]) -> Atom:
    fixed, constants, equal = [], [], []
    first: dict[str, int] = {}
    for place, argument in enumerate(formula.arguments):
        if isinstance(argument, Constant):
            constants.append((place, argument.value))
        elif isinstance(argument, Variable) and not is_anonymous(argument.name):
            if argument.name in first:
                equal.append((first[argument.name], place))
                continue
            first[argument.name] = place
            if argument.name in free:
                fixed.append((free[argument.name], place))
    return Atom((formula.name, len(formula.arguments)), tuple(fixed), tuple(constants), tuple(equal))


@dataclass
class Rates:
    """How many events fit each atom, and how often values occur in it.

    Attributes
    ----------
    atoms : sequence of Atom
    events : list of int
        By atom.
    values : list of dict of int to dict
        By atom, of each dimension that it fixes the number of events by value; of values that are rare among the
        events of a chunk nothing is known.
    """

    atoms: Sequence[Atom]
    events: list[int] = field(default_factory=list)
    values: list[dict[int, dict[Any, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.events = self.events or [0] * len(self.atoms)
        self.values = self.values or [{dimension: {} for dimension, _ in atom.fixed} for atom in self.atoms]

    def see(self, chunk: LogChunk) -> None:
        """Count the events of some time-points."""
        for number, atom in enumerate(self.atoms):
            found = chunk.relations.get(atom.predicate)
            if found is None:
                continue
            points, columns = found
            mask = atom.matching(columns)
            self.events[number] += len(points) if mask is None else int(mask.sum())
            for dimension, place in atom.fixed:
                column = columns[place] if mask is None else columns[place].filter(pa.array(mask))
                counts = self.values[number][dimension]
                found_counts = pc.value_counts(column)
                often = pc.greater(pc.multiply(found_counts.field(1), _MOST_SLICES), len(column))
                for each in found_counts.filter(often).to_pylist():
                    counts[each["values"]] = counts.get(each["values"], 0) + each["counts"]

    def heavy(self, dimensions: int, slices: int) -> list[frozenset[Any]]:
        """The values of each dimension that come in more than a slice's share of the events of some atom."""
        found: list[frozenset[Any]] = []
        for dimension in range(dimensions):
            most: dict[Any, int] = {}
            for number, _ in enumerate(self.atoms):
                for value, count in self.values[number].get(dimension, {}).items():
                    if count * slices > self.events[number]:
                        most[value] = max(count, most.get(value, 0))
            chosen = sorted(most, key=lambda value: (-most[value], value))[:_MOST_HEAVY]
            found.append(frozenset(chosen) if slices > 1 else frozenset())
        return found

    def sizes(self, heavy: Sequence[frozenset[Any]]) -> dict[tuple[Places, Places], float]:
        """Events by the dimensions that they fix and those of them that hold heavy values, as if independent."""
        found: dict[tuple[Places, Places], float] = {}
        for number, atom in enumerate(self.atoms):
            shares = []
            for dimension in atom.carried:
                counts = self.values[number][dimension]
                held = sum(counts.get(value, 0) for value in heavy[dimension])
                shares.append(held / max(1, self.events[number]))
            for choice in product((False, True), repeat=len(shares)):
                part = math.prod(share if held else 1 - share for share, held in zip(shares, choice, strict=True))
                if part:
                    held_places = tuple(place for place, held in zip(atom.carried, choice, strict=True) if held)
                    key = (atom.carried, held_places)
                    found[key] = found.get(key, 0.0) + part * self.events[number]
        return found


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
    grids : mapping of tuple of int to grid
        The dimensions with heavy values, and the shares of such valuations.
    """

    def __init__(self, formula: Formula, slices: int, rates: Rates | None = None, *, heavy: bool = True) -> None:
        self.variables = dimensions_of(formula)
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
        """The same for one slice: bool of shape (rows,), or None."""
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
            hashes = {dimension: hashes_of(columns[place], dimension) for dimension, place in fixed.items()}
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

    def _is_heavy(self, dimension: int, column: pa.Array) -> npt.NDArray[np.bool_]:
        values = pa.array(list(self.heavy[dimension]), column.type)
        found: npt.NDArray[np.bool_] = pc.is_in(column, values).to_numpy(zero_copy_only=False)
        return found

    def owners(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The slice of each row of a policy, by its valuation; shape (rows,)."""
        columns = [rows.column(name) for name in self.variables]
        hashes = {dimension: hashes_of(column, dimension) for dimension, column in enumerate(columns)}
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


def rates_of(formula: Formula, chunks: Iterable[LogChunk], most: int | None = None) -> Rates:
    """Count the events of a stream for the atoms of a formula; of the first ones only where `most` says how many."""
    found = Rates(atoms_of(formula, dimensions_of(formula)))
    seen = 0
    for chunk in chunks:
        found.see(chunk)
        seen += sum(len(points) for points, _ in chunk.relations.values())
        if most is not None and seen >= most:
            break
    return found


def rates_from(known: Any, formula: Formula) -> Rates:
    """Rates that somebody has measured.

    Parameters
    ----------
    known : mapping
        By predicate ``{"events": n, "values": {attribute's place from 1: {value: n}}}``.
    formula : Formula

    Raises
    ------
    DataError
        If it has another form.
    """
    found = Rates(atoms_of(formula, dimensions_of(formula)))
    try:
        for number, atom in enumerate(found.atoms):
            given = known.get(atom.predicate[0], {})
            found.events[number] = int(given.get("events", 0))
            for dimension, place in atom.fixed:
                values = given.get("values", {}).get(str(place + 1), {})
                found.values[number][dimension] = {value: int(count) for value, count in values.items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(
            'statistics are JSON such as {"withdraw": {"events": 1000, "values": {"1": {"alice": 400}}}}'
        ) from error
    return found
