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
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.parallel.routing.owners import Grid, GridOwner
from hamlet.parallel.routing.shares import Places, grids
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
        By atom, of each dimension that it fixes the number of events by encoded value.
    """

    atoms: Sequence[Atom]
    events: list[int] = field(default_factory=list)
    values: list[dict[int, dict[bytes, int]]] = field(default_factory=list)

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
                for each in pc.value_counts(column).to_pylist():
                    value = encoded(each["values"])
                    counts[value] = counts.get(value, 0) + each["counts"]

    def heavy(self, dimensions: int, slices: int) -> list[frozenset[bytes]]:
        """The values of each dimension that come in more than a slice's share of the events of some atom."""
        found: list[frozenset[bytes]] = []
        for dimension in range(dimensions):
            most: dict[bytes, int] = {}
            for number, _ in enumerate(self.atoms):
                for value, count in self.values[number].get(dimension, {}).items():
                    if count * slices > self.events[number]:
                        most[value] = max(count, most.get(value, 0))
            chosen = sorted(most, key=lambda value: (-most[value], value))[:_MOST_HEAVY]
            found.append(frozenset(chosen) if slices > 1 else frozenset())
        return found

    def sizes(self, heavy: Sequence[frozenset[bytes]]) -> dict[tuple[Places, Places], float]:
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


def encoded(value: Any) -> bytes:
    """A value as bytes; those of one type differ where the values do."""
    return str(value).encode(errors="surrogatepass")


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
    owner : GridOwner
    """

    def __init__(self, formula: Formula, slices: int, rates: Rates | None = None, *, heavy: bool = True) -> None:
        self.variables = dimensions_of(formula)
        self.atoms = atoms_of(formula, self.variables)
        self.slices = slices
        if rates is None:
            rates = Rates(self.atoms, [1] * len(self.atoms))
        count = len(self.variables)
        self.heavy = rates.heavy(count, slices) if heavy else [frozenset()] * count
        shares = grids(rates.sizes(self.heavy), count, [bool(each) for each in self.heavy], slices)
        self.owner = GridOwner(
            {held: Grid(each, tuple(range(math.prod(each)))) for held, each in shares.items()}, self.heavy
        )
        self._targets: dict[tuple[Places, tuple[bytes, ...]], npt.NDArray[np.bool_]] = {}
        self._own: dict[tuple[bytes, ...], int] = {}
        self.sent = np.zeros(slices, np.int64)

    def expected(self, rates: Rates) -> float:
        """Events of a slice, were they spread as the shares promise."""
        sizes = rates.sizes(self.heavy)
        total = 0.0
        for (carried, held), events in sizes.items():
            for grid_held, grid in self.owner.grids.items():
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

    def _needs(self, key: PredicateKey, columns: Sequence[pa.Array], rows: int) -> npt.NDArray[np.bool_] | None:
        """Which slices need which tuples of a predicate: bool of shape (rows, slices); None where none does."""
        found: npt.NDArray[np.bool_] | None = None
        for atom in self.atoms:
            if atom.predicate != key:
                continue
            mask = atom.matching(columns)
            codes, keys = _codes([columns[place] for _, place in atom.fixed], rows)
            table = np.array([self._targets_of(atom.carried, each) for each in keys])
            needs = table[codes]
            if mask is not None:
                needs = needs & mask[:, None]
            found = needs if found is None else found | needs
        return found

    def _targets_of(self, carried: Places, values: tuple[bytes, ...]) -> npt.NDArray[np.bool_]:
        key = (carried, values)
        found = self._targets.get(key)
        if found is None:
            if len(self._targets) > 1_000_000:
                self._targets.clear()
            found = np.zeros(self.slices, np.bool_)
            found[list(self.owner.targets(carried, values))] = True
            self._targets[key] = found
        return found

    def owners(self, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
        """The slice of each row of a policy, by its valuation; shape (rows,)."""
        codes, keys = _codes([rows.column(name) for name in self.variables], rows.num_rows)
        slices = np.array([self._owner_of(key) for key in keys], np.int64)
        found: npt.NDArray[np.int64] = slices[codes] if rows.num_rows else np.zeros(0, np.int64)
        return found

    def _owner_of(self, values: tuple[bytes, ...]) -> int:
        found = self._own.get(values)
        if found is None:
            if len(self._own) > 1_000_000:
                self._own.clear()
            found = self._own[values] = self.owner.owner(values)
        return found


def _codes(columns: Sequence[pa.Array], rows: int) -> tuple[npt.NDArray[np.int64], list[tuple[bytes, ...]]]:
    """A number for the values of each row, and the values by number."""
    if not columns:
        return np.zeros(rows, np.int64), [()]
    codes = np.zeros(rows, np.int64)
    for column in columns:
        coded = pc.dictionary_encode(column)
        codes = codes * max(1, len(coded.dictionary)) + coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        _, codes = np.unique(codes, return_inverse=True)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    places = pa.array(first)
    parts = [[encoded(value) for value in column.take(places).to_pylist()] for column in columns]
    return codes, list(zip(*parts, strict=True))


def rates_of(formula: Formula, chunks: Iterable[LogChunk]) -> Rates:
    """Count the events of a stream for the atoms of a formula."""
    found = Rates(atoms_of(formula, dimensions_of(formula)))
    for chunk in chunks:
        found.see(chunk)
    return found
