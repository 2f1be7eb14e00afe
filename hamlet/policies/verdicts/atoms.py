"""Atoms of propositional policies, and where in a chunk they are true."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, TypeAlias

from hamlet.arrays import np, npt, pa, pc
from hamlet.errors import UnsupportedError
from hamlet.input.buffers import in_arrow, to_numpy
from hamlet.policies.analysis.comparisons import COMPARE, compile_pattern
from hamlet.policies.analysis.policy import Policy
from hamlet.policies.analysis.propositions import is_temporal
from hamlet.policies.analysis.terms import compiled
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.plan.evaluation import Answer, Evaluation
from hamlet.policies.rows import array_of, arrow_type
from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.diagnostics import PolicyError
from hamlet.policies.syntax.signature import Signature

_COMPARED = {"=": "equal", "<": "less", ">": "greater", "<=": "less_equal", ">=": "greater_equal"}  # Arrow's functions
_COMPUTED = {"+": "add_checked", "-": "subtract_checked", "*": "multiply_checked"}

Hits: TypeAlias = "tuple[npt.NDArray[np.int64], list[pa.Array]]"  # time-points, and the key's columns


class EvaluatedAtom:
    """An atom of any form, evaluated as a policy of its own, which sees every time-point.

    Attributes
    ----------
    predicates : frozenset of (str, int)
    types : mapping of str to pyarrow.DataType
        Of the variables.
    evaluation : Evaluation
    """

    def __init__(self, formula: mfotl.Formula, signature: Signature, key: tuple[str, ...], per_second: int = 1) -> None:
        try:
            self.evaluation = Evaluation([Policy(formula, signature)], per_second=per_second)
        except PolicyError as error:
            raise _unsupported(error) from None
        (goal,) = self.evaluation.goals
        if goal.violations:  # an unbounded ALWAYS below a LET; its rows are not where it holds
            raise _unsupported()
        self._order = [goal.names.index(name) for name in key]
        self._kinds = goal.types
        self.predicates = self.evaluation.wanted
        self.types = {name: arrow_type(kind) for name, kind in zip(goal.names, goal.types, strict=True)}

    def hits(self, chunk: LogChunk) -> Hits:
        """Where the atom is true, as far as that is decided with a chunk: counted from its first time-point."""
        before = self.evaluation.points
        (answer,) = self.evaluation.feed(chunk.times, chunk.relations)
        return self._hits(answer, before)

    def close(self) -> Hits:
        """Where the atom is true by the end of the input; counted from the end."""
        (answer,) = self.evaluation.close()
        return self._hits(answer, self.evaluation.points)

    def _hits(self, answer: Answer, before: int) -> Hits:
        chosen = [(answer.columns[place], arrow_type(self._kinds[place])) for place in self._order]
        return answer.points - before, [array_of(values, kind, "a key") for values, kind in chosen]

    @property
    def decided(self) -> int:
        """How many time-points of the stream are decided."""
        return min(self.evaluation.points, self.evaluation.goals[0].built.node.done)

    @property
    def nbytes(self) -> int:
        """Bytes that are kept between chunks."""
        return self.evaluation.nbytes


class Condition:
    """An atom without events: a comparison of the key's variables, for each key always true or never.

    Attributes
    ----------
    predicates : frozenset of (str, int)
        None.
    types : mapping of str to pyarrow.DataType
        Empty: its variables have the types that other atoms give them.
    """

    predicates: frozenset[tuple[str, int]] = frozenset()
    types: Mapping[str, pa.DataType] = MappingProxyType({})

    def __init__(self, formula: mfotl.Comparison | mfotl.Substring | mfotl.Matches, key: tuple[str, ...]) -> None:
        self._key = key
        self._test = _test_of(formula)

    def hits(self, chunk: LogChunk) -> Hits:  # noqa: ARG002
        """No time-points: where it is true depends on the key alone."""
        return np.zeros(0, np.int64), []

    def holds(self, values: Sequence[Any]) -> bool:
        """Whether it is true for a key."""
        plain = [int(each) if isinstance(each, Decimal) else each for each in values]
        return self._test(dict(zip(self._key, plain, strict=True)))


def _test_of(formula: mfotl.Comparison | mfotl.Substring | mfotl.Matches) -> Callable[[dict[str, Any]], bool]:
    match formula:
        case mfotl.Comparison(operator, left, right):
            one, two, compare = compiled(left), compiled(right), COMPARE[operator]
            return lambda values: compare(one(values), two(values))
        case mfotl.Substring(left, right):
            one, two = compiled(left), compiled(right)
            return lambda values: str(one(values)) in str(two(values))
        case mfotl.Matches(term, pattern):
            one, expression = compiled(term), compile_pattern(pattern)
            return lambda values: expression.found(str(one(values)))


def atom_of(
    formula: mfotl.Formula, signature: Signature, key: tuple[str, ...], per_second: int = 1
) -> Atom | Condition | EvaluatedAtom:
    """What finds an atom: most are one predicate, which is read off its columns."""
    if isinstance(formula, (mfotl.Comparison, mfotl.Substring, mfotl.Matches)):
        return Condition(formula, key)
    if not is_temporal(formula):
        try:
            return Atom(formula, signature, key)
        except UnsupportedError:
            pass
    return EvaluatedAtom(formula, signature, key, per_second)


class Atom:
    """An atom: a predicate, perhaps with comparisons, and variables that anything may stand for.

    Attributes
    ----------
    predicate : (str, int)
    predicates : frozenset of (str, int)
        The same alone.
    types : mapping of str to pyarrow.DataType
        Of the key's variables.
    """

    def __init__(self, formula: mfotl.Formula, signature: Signature, key: tuple[str, ...]) -> None:
        self._whole = (formula, signature, key)
        while isinstance(formula, mfotl.Exists):
            formula = formula.body
        self._conditions: list[tuple[mfotl.Comparison, bool]] = []
        predicates: list[mfotl.Predicate] = []
        self._collect(formula, predicates)
        if len(predicates) != 1:
            raise _unsupported()
        (self._atom,) = predicates
        self.predicate = (self._atom.name, len(self._atom.arguments))
        self.predicates = frozenset([self.predicate])
        schema = signature[self.predicate]
        self._kinds = schema.types
        self._key = key
        self._places: dict[str, int] = {}
        self._equal: list[tuple[int, mfotl.Term]] = []
        for place, argument in enumerate(self._atom.arguments):
            if isinstance(argument, mfotl.Variable) and argument.name not in self._places:
                if not mfotl.is_anonymous(argument.name):
                    self._places[argument.name] = place
            elif isinstance(argument, (mfotl.Variable, mfotl.Constant)):
                self._equal.append((place, argument))
            else:
                raise _unsupported()
        terms = [term for _, term in self._equal]
        terms += [term for condition, _ in self._conditions for term in (condition.left, condition.right)]
        if not set(key) <= set(self._places) or not all(map(self._reads, terms)):
            raise _unsupported()
        self.types = {name: arrow_type(schema.types[self._places[name]]) for name in key}

    def _reads(self, term: mfotl.Term) -> bool:
        """Whether a term can be computed from the columns."""
        match term:
            case mfotl.Variable(name):
                return name in self._places
            case mfotl.Constant():
                return True
            case mfotl.Negative(inner):
                return self._reads(inner)
            case mfotl.Arithmetic(operator, left, right):
                return operator in _COMPUTED and self._reads(left) and self._reads(right)
        return False

    def _collect(self, formula: mfotl.Formula, predicates: list[mfotl.Predicate]) -> None:
        match formula:
            case mfotl.And(left, right):
                self._collect(left, predicates)
                self._collect(right, predicates)
            case mfotl.Predicate():
                predicates.append(formula)
            case mfotl.Comparison():
                self._conditions.append((formula, True))
            case mfotl.Not(mfotl.Comparison() as inner):
                self._conditions.append((inner, False))
            case _:
                raise _unsupported()

    def hits(self, chunk: LogChunk) -> Hits:
        """Where the atom is true: time-points of a chunk, and the key's columns."""
        found = chunk.relations.get(self.predicate)
        if found is None:
            return np.zeros(0, np.int64), []
        points = found[0]
        if not (self._equal or self._conditions or self._key):
            return points, []
        columns = [in_arrow(each) for each in found[1]]
        wide = any(each.type != arrow_type(kind) for each, kind in zip(columns, self._kinds, strict=True))
        try:
            if not wide:
                return self._fast(points, columns)
        except (OverflowError, pa.ArrowInvalid):
            pass
        return EvaluatedAtom(*self._whole).hits(chunk)  # integers of more than 64 bits

    def _fast(self, points: npt.NDArray[np.int64], columns: Sequence[pa.Array]) -> Hits:
        mask: Any = None
        for place, term in self._equal:
            mask = _and(mask, pc.equal(columns[place], self._term(term, columns)))
        for condition, holds in self._conditions:
            sides = (self._term(condition.left, columns), self._term(condition.right, columns))
            true = getattr(pc, _COMPARED[condition.operator])(*sides)
            mask = _and(mask, true if holds else pc.invert(true))
        chosen = [columns[self._places[name]] for name in self._key]
        if isinstance(mask, pa.Scalar):
            mask = pa.array([mask.as_py()] * len(points))
        if mask is not None:
            keep = to_numpy(mask)
            points, chosen = points[keep], [column.filter(mask) for column in chosen]
        return points, chosen

    def _term(self, term: mfotl.Term, columns: Sequence[pa.Array]) -> Any:
        match term:
            case mfotl.Variable(name) if name in self._places:
                return columns[self._places[name]]
            case mfotl.Constant(value):
                return pa.scalar(value)
            case mfotl.Negative(inner):
                return pc.negate_checked(self._term(inner, columns))
            case mfotl.Arithmetic(operator, left, right) if operator in _COMPUTED:
                return getattr(pc, _COMPUTED[operator])(self._term(left, columns), self._term(right, columns))
        raise AssertionError("terms are looked at before any data is read")


def _and(mask: Any, other: Any) -> Any:
    return other if mask is None else pc.and_(mask, other)


def _unsupported(error: PolicyError | None = None) -> UnsupportedError:
    because = "" if error is None else f"; a sub-formula cannot be monitored:\n{error}"
    return UnsupportedError(
        "verdicts for every time-point need sub-formulas that bind the key by events"
        f"{because}\nhint: leave out verdicts (--verdicts); rows are then what satisfies the policy"
    )
