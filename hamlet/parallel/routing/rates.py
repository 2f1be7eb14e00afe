"""What a formula's atoms ask of events, and how often events come that they match: what slices are chosen by."""

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

from hamlet.errors import DataError
from hamlet.parallel.routing.shares import Places
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.syntax.formula import (
    Aggregation,
    Constant,
    Exists,
    Forall,
    Formula,
    Let,
    LetPast,
    Predicate,
    Variable,
    children,
    free_variables,
    is_anonymous,
)

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
            beyond = defined | {(name, len(parameters))}
            # Whatever its parameters stand for; the name of a LETPAST is no event in its own meaning, either.
            yield from _atoms(definition, {}, beyond if isinstance(formula, LetPast) else defined)
            yield from _atoms(body, free, beyond)
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


def kept_rates(rates: Rates, slices: int) -> Any:
    """What of rates slices depend on, as JSON: how often atoms fit, and values that may be heavy."""
    values = [
        [
            [dimension, [list(each) for each in counts.items() if each[1] * slices > events]]
            for dimension, counts in by.items()
        ]
        for by, events in zip(rates.values, rates.events, strict=True)
    ]
    return {"events": rates.events, "values": values}


def rates_again(kept: Any, formula: Formula) -> Rates:
    """Rates of a formula's atoms from `kept_rates`."""
    values = [{dimension: dict(counts) for dimension, counts in by} for by in kept["values"]]
    return Rates(atoms_of(formula, dimensions_of(formula)), list(kept["events"]), values)


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
