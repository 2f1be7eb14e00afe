"""Atoms of propositional policies: sub-formulas without temporal operators, and where in a chunk they are true."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import DataError, UnsupportedError
from hamlet.policies.diagnostics import PolicyError
from hamlet.policies.evaluation import Evaluation
from hamlet.policies.formula import (
    And,
    Arithmetic,
    Comparison,
    Constant,
    Exists,
    Formula,
    Negative,
    Not,
    Predicate,
    Term,
    Variable,
    is_anonymous,
)
from hamlet.policies.logs import LogChunk
from hamlet.policies.policy import Policy
from hamlet.policies.signature import Signature

_TYPES = {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_()}
_COMPARED = {"=": pc.equal, "<": pc.less, ">": pc.greater, "<=": pc.less_equal, ">=": pc.greater_equal}
_COMPUTED = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}


class EvaluatedAtom:
    """An atom of any form, evaluated as a policy of its own; it sees every time-point, and one at a time.

    Attributes
    ----------
    predicates : frozenset of (str, int)
    types : mapping of str to pyarrow.DataType
        Of the variables.
    """

    def __init__(self, formula: Formula, signature: Signature, key: tuple[str, ...]) -> None:
        try:
            self._evaluation = Evaluation([Policy(formula, signature)])
        except PolicyError:
            raise _unsupported() from None
        (goal,) = self._evaluation.goals
        self._order = [goal.names.index(name) for name in key]
        self._kinds = goal.types
        self.predicates = self._evaluation.wanted
        self.types = {name: _TYPES[kind] for name, kind in zip(goal.names, goal.types, strict=True)}

    def hits(self, chunk: LogChunk) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
        """Where the atom is true: time-points of a chunk, and the key's columns."""
        before = self._evaluation.points
        (answer,) = self._evaluation.feed(chunk.times, chunk.relations)
        columns = [pa.array(answer.columns[place], _TYPES[self._kinds[place]]) for place in self._order]
        return answer.points - before, columns


def atom_of(formula: Formula, signature: Signature, key: tuple[str, ...]) -> Atom | EvaluatedAtom:
    """What finds an atom: most are one predicate, which is read off its columns."""
    try:
        return Atom(formula, signature, key)
    except UnsupportedError:
        return EvaluatedAtom(formula, signature, key)


class Atom:
    """An atom: a predicate, perhaps with comparisons, and variables that anything may stand for.

    Attributes
    ----------
    predicate : (str, int)
    predicates : frozenset of (str, int)
        The same alone.
    types : mapping of str to pyarrow.DataType
        Of the variables.
    """

    def __init__(self, formula: Formula, signature: Signature, key: tuple[str, ...]) -> None:
        while isinstance(formula, Exists):
            formula = formula.body
        self._conditions: list[tuple[Comparison, bool]] = []
        predicates: list[Predicate] = []
        self._collect(formula, predicates)
        if len(predicates) != 1:
            raise _unsupported()
        (self._atom,) = predicates
        self.predicate = (self._atom.name, len(self._atom.arguments))
        self.predicates = frozenset([self.predicate])
        schema = signature[self.predicate]
        self._key = key
        self._places: dict[str, int] = {}
        self._equal: list[tuple[int, Term]] = []
        for place, argument in enumerate(self._atom.arguments):
            if isinstance(argument, Variable) and argument.name not in self._places:
                if not is_anonymous(argument.name):
                    self._places[argument.name] = place
            elif isinstance(argument, (Variable, Constant)):
                self._equal.append((place, argument))
            else:
                raise _unsupported()
        self.types = {name: _TYPES[schema.types[place]] for name, place in self._places.items()}

    def _collect(self, formula: Formula, predicates: list[Predicate]) -> None:
        match formula:
            case And(left, right):
                self._collect(left, predicates)
                self._collect(right, predicates)
            case Predicate():
                predicates.append(formula)
            case Comparison():
                self._conditions.append((formula, True))
            case Not(Comparison() as inner):
                self._conditions.append((inner, False))
            case _:
                raise _unsupported()

    def hits(self, chunk: LogChunk) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
        """Where the atom is true: time-points of a chunk, and the key's columns."""
        found = chunk.relations.get(self.predicate)
        if found is None:
            return np.zeros(0, np.int64), []
        points, columns = found
        mask: Any = None
        for place, term in self._equal:
            mask = _and(mask, pc.equal(columns[place], self._term(term, columns)))
        for condition, holds in self._conditions:
            sides = (self._term(condition.left, columns), self._term(condition.right, columns))
            true = _COMPARED[condition.operator](*sides)
            mask = _and(mask, true if holds else pc.invert(true))
        chosen = [columns[self._places[name]] for name in self._key]
        if isinstance(mask, pa.Scalar):
            mask = pa.array([mask.as_py()] * len(points))
        if mask is not None:
            keep = mask.to_numpy(zero_copy_only=False)
            points, chosen = points[keep], [column.filter(mask) for column in chosen]
        return points, chosen

    def _term(self, term: Term, columns: Sequence[pa.Array]) -> Any:
        match term:
            case Variable(name) if name in self._places:
                return columns[self._places[name]]
            case Constant(value):
                return pa.scalar(value)
            case Negative(inner):
                return pc.negate_checked(self._term(inner, columns))
            case Arithmetic(operator, left, right) if operator in _COMPUTED:
                try:
                    return _COMPUTED[operator](self._term(left, columns), self._term(right, columns))
                except pa.ArrowInvalid as error:
                    raise DataError(f"a value of {self.predicate[0]} overflows 64 bits: {error}") from error
        raise _unsupported()


def _and(mask: Any, other: Any) -> Any:
    return other if mask is None else pc.and_(mask, other)


def _unsupported() -> UnsupportedError:
    return UnsupportedError(
        "verdicts for every time-point need sub-formulas without temporal operators that bind the key by events\n"
        "hint: leave out --verdicts; rows are then what satisfies the policy"
    )
