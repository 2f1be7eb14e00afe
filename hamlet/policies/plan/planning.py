"""From a rewritten formula to operators, for the formulas whose relations are finite.

A conjunction is built from the parts that bind variables, then tests, equations that bind, and negations as soon as
their variables are bound. A part that is not finite alone is rewritten with what is bound around it moved inside:
``p(x) AND ONCE[0,5] (x > y AND q(y))`` evaluates as ``p(x) AND ONCE[0,5] (EVENTUALLY[0,5] p(x) AND q(y) AND x > y)``.

Source: the safe formulas of Schneider et al. (STTT 2021), Fig. 3; the moving inwards is MonPoly's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hamlet.policies.analysis.range_propagation import moved_in_time, vacuous
from hamlet.policies.analysis.rewriting import (
    Defined,
    Earlier,
    Loop,
    Meaning,
    conjuncts,
    negation,
    shown,
    unfolded,
    variables_of,
)
from hamlet.policies.analysis.terms import type_of
from hamlet.policies.operators.aggregating import Aggregate
from hamlet.policies.operators.node import Node
from hamlet.policies.operators.nodes import (
    ConstantRelation,
    EmptyRelation,
    Event,
    Extend,
    Filter,
    Join,
    Minus,
    Position,
    Shape,
    Union,
)
from hamlet.policies.operators.recursion import Known
from hamlet.policies.plan.conjunction import Conjunction
from hamlet.policies.plan.planned_matches import build_match
from hamlet.policies.plan.planned_operands import Built, UnsafeError, divides, opposite, placed, test_of
from hamlet.policies.plan.planned_times import build_dual, build_recursion, build_since_until, build_temporal
from hamlet.policies.relations.values import Pool
from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.signature import Signature


class Planner:
    """Makes operators; equal sub-formulas of all policies that one planner builds become one operator.

    Parameters
    ----------
    signature : Signature
    per_second : int
        Ticks of the stream's time.
    pool : Pool
    """

    def __init__(self, signature: Signature, per_second: int, pool: Pool) -> None:
        self.signature = signature
        self.per_second = per_second
        self.pool = pool
        self.nodes: list[Node] = []  # children before parents
        self.longest = 0  # the largest bound of an interval, in ticks
        self._made: dict[tuple[Any, ...], Node] = {}
        self._cache: dict[int, Built | UnsafeError] = {}
        self._chosen: dict[tuple[int, tuple[str, ...], int], Built | None] = {}
        self.sealed: set[int] = set()  # formulas that nothing is moved into once more
        self.loops: dict[Loop, Known] = {}  # what stands for the names of LETPASTs within their meanings
        self.recursions: dict[Meaning, Built] = {}
        self._unfolded: dict[tuple[int, bool], mfotl.Formula] = {}
        self._alive: list[mfotl.Formula] = []  # keeps the keys of the cache from being used again

    # ------------------------------------------------------------------------------------------ operators

    def node(self, kind: Callable[..., Node], *arguments: Any) -> Node:
        """An operator; an equal one is made once."""
        key = (kind, *(id(each) if isinstance(each, Node | Pool) else each for each in arguments))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = kind(*arguments)
            self.nodes.append(found)
        return found

    def ticks(self, interval: mfotl.Interval) -> tuple[int, int | None]:
        """An interval in ticks of the stream."""
        low, high = interval.ticks(self.per_second)
        self.longest = max(self.longest, low, high or 0)
        return low, high

    def build(self, formula: mfotl.Formula) -> Built:
        """The operator of a formula.

        Raises
        ------
        UnsafeError
            If it has no finite relation.
        """
        found = self._cache.get(id(formula))
        if found is None:
            self._alive.append(formula)
            try:
                found = self._build(formula)
            except UnsafeError as error:
                found = error
            self._cache[id(formula)] = found
        if isinstance(found, UnsafeError):
            raise found
        return found

    def attempt(self, formula: mfotl.Formula) -> Built | None:
        """The operator of a formula, None where it has no finite relation."""
        try:
            return self.build(formula)
        except UnsafeError:
            return None

    def _build(self, formula: mfotl.Formula) -> Built:
        match formula:
            case mfotl.Truth(value):
                return Built(self.node(ConstantRelation, (), ()) if value else self.node(EmptyRelation, (), ()), ())
            case Defined() | mfotl.Predicate():
                return self._predicate(formula)
            case mfotl.Exists(_, body):
                built = self.build(body)
                return self.keep(built, variables_of(formula))
            case mfotl.Or(left, right):
                return self._or(formula, left, right)
            case mfotl.Equiv():
                return self._equiv(formula)
            case mfotl.Not(mfotl.Equiv() as body) if variables_of(formula):
                return self.build(self._spelt(body, False))
            case mfotl.Trigger() | mfotl.Release():
                return build_dual(self, formula)
            case mfotl.TemporalMatch():
                return build_match(self, formula)
            case mfotl.Temporal():
                return build_temporal(self, formula)
            case mfotl.Since(interval, left, right) | mfotl.Until(interval, left, right):
                return build_since_until(self, formula, interval, left, right)
            case mfotl.Aggregation():
                return self._aggregation(formula)
            case mfotl.Not() if not variables_of(formula):
                inner = self._closed_negation(formula)
                truth = self.node(ConstantRelation, (), ())
                return Built(self.node(Minus, truth, inner.node, (), ()), ())
        return Conjunction(self, conjuncts(formula), formula.span).built()

    def _spelt(self, formula: mfotl.Equiv, positive: bool) -> mfotl.Formula:
        """EQUIV, or its negation, with AND and OR; made once, so that nested ones do not double at every level."""
        key = id(formula), positive
        if key not in self._unfolded:
            self._alive.append(formula)
            self._unfolded[key] = unfolded(formula, positive)
        return self._unfolded[key]

    def _equiv(self, formula: mfotl.Equiv) -> Built:
        if variables_of(formula):
            return self.build(self._spelt(formula, True))
        left, right = self.build(formula.left), self.build(formula.right)
        return self.alike(self.truth(), left, right)

    def alike(self, base: Built, left: Built, right: Built) -> Built:
        """The rows of a relation that two parts of it have both, or lack both."""
        some = self.node(Union, left.node, right.node, right.places(left.names))
        neither = self.without(base, Built(some, left.names))
        both = self.joined(left, right)
        return Built(self.node(Union, both.node, neither.node, neither.places(both.names)), both.names)

    def _closed_negation(self, formula: mfotl.Not) -> Built:
        try:
            return self.build(formula.body)
        except UnsafeError:
            if isinstance(formula.body, mfotl.And):
                built = self.attempt(
                    mfotl.Or(negation(formula.body.left), negation(formula.body.right), span=formula.span)
                )
                if built is not None:
                    truth = self.node(ConstantRelation, (), ())
                    return Built(self.node(Minus, truth, built.node, (), ()), ())
            raise

    def keep(self, built: Built, names: tuple[str, ...]) -> Built:
        """Only the columns of some variables."""
        if built.names == names:
            return built
        return Built(self.node(Shape, built.node, (), (), built.places(names)), names)

    def _predicate(self, formula: mfotl.Predicate) -> Built:
        names: dict[str, int] = {}
        constants: list[tuple[int, int]] = []
        equal: list[tuple[int, int]] = []
        for place, argument in enumerate(formula.arguments):
            if isinstance(argument, mfotl.Constant):
                constants.append((place, self.pool.code(argument.value)))
            else:
                assert isinstance(argument, mfotl.Variable)
                if argument.name in names:
                    equal.append((names[argument.name], place))
                else:
                    names[argument.name] = place
        shape = tuple(constants), tuple(equal), tuple(names.values())
        if isinstance(formula, Earlier):
            assert formula.loop is not None
            known = self.loops[formula.loop]
            return Built(self.node(Shape, known, *shape), tuple(names))
        if isinstance(formula, Defined):
            assert formula.meaning is not None
            if formula.meaning.loop is not None:
                built = build_recursion(self, formula.meaning)
            else:
                built = self.build(formula.meaning.formula)
            built = self.keep(built, formula.meaning.parameters)
            if shape[:2] == ((), ()) and shape[2] == tuple(range(len(built.names))):
                return Built(built.node, tuple(names))
            return Built(self.node(Shape, built.node, *shape), tuple(names))
        key = formula.name, len(formula.arguments)
        if key not in self.signature:
            return Built(self.node(Shape, self.node(Position, key[0]), *shape), tuple(names))
        return Built(self.node(Event, key, self.signature[key].types, *shape), tuple(names))

    def _or(self, formula: mfotl.Formula, left: mfotl.Formula, right: mfotl.Formula) -> Built:
        one, two = set(variables_of(left)), set(variables_of(right))
        if one != two:
            name = shown(next(iter(sorted(one ^ two))))
            said = f"both sides of OR must bind the same variables; '{name}' stands on one side only"
            raise UnsafeError(said, formula.span, "bind it on both sides, or quantify it: EXISTS " + name + ". ...")
        first, second = self.build(left), self.build(right)
        return Built(self.node(Union, first.node, second.node, second.places(first.names)), first.names)

    def _aggregation(self, formula: mfotl.Aggregation) -> Built:
        built = self.build(formula.body)
        groups = built.places(formula.groups)
        (place,) = built.places((formula.variable,))
        node = self.node(Aggregate, built.node, formula.operator, place, groups, self.pool)
        return Built(node, (formula.result, *formula.groups))

    # ------------------------------------------------------------------------------------ tests and terms

    def filtered(self, built: Built, test: mfotl.Formula, negated: bool) -> Built:
        """The rows that pass a test whose variables are bound."""
        left, right, word = test_of(test)
        first = placed(left, built.names)
        second = right if isinstance(right, str) else placed(right, built.names)
        return Built(self.node(Filter, built.node, word, first, second, negated, self.pool), built.names)

    def extended(self, built: Built, name: str, term: mfotl.Term) -> Built:
        """The rows with a variable more, which equals a term over the others."""
        types = dict(zip(map(str, range(len(built.names))), built.node.types, strict=True))
        here = placed(term, built.names)
        node = self.node(Extend, built.node, here, type_of(here, types), self.pool)
        return Built(node, (*built.names, name))

    def joined(self, left: Built, right: Built) -> Built:
        """The natural join."""
        shared = tuple(name for name in left.names if name in right.names)
        node = self.node(Join, left.node, right.node, left.places(shared), right.places(shared))
        return Built(node, (*left.names, *(name for name in right.names if name not in shared)))

    def without(self, left: Built, right: Built) -> Built:
        """The left rows that the right side lacks; its variables are among the left side's."""
        every = tuple(range(len(right.names)))
        return Built(self.node(Minus, left.node, right.node, left.places(right.names), every), left.names)

    def satisfying(self, base: Built, part: mfotl.Formula, around: mfotl.Formula) -> Built | None:
        """The rows of `base` that satisfy a formula whose variables it binds, None where that cannot be told.

        `around` is the formula of `base`. AND, OR and NOT become joins, unions and differences over the same rows, so
        that the operators are as many as the formula has parts.
        """
        key = id(base.node), base.names, id(part)
        if key not in self._chosen:
            self._alive.append(part)
            self._chosen[key] = self._satisfying(base, part, around)
        return self._chosen[key]

    def _satisfying(self, base: Built, part: mfotl.Formula, around: mfotl.Formula) -> Built | None:
        match part:
            case mfotl.Comparison() | mfotl.Substring() | mfotl.Matches():
                return self.filtered(base, part, False)
            case mfotl.Not(body):
                inner = self.satisfying(base, body, around)
                return None if inner is None else self.without(base, inner)
            case mfotl.And(left, right):
                first = self.satisfying(base, left, around)
                second = None if first is None else self.satisfying(first if divides(right) else base, right, around)
                if first is None or second is None:
                    return None
                return second if divides(right) else self.joined(first, second)
            case mfotl.Or(left, right):
                first, second = (self.satisfying(base, each, around) for each in (left, right))
                if first is None or second is None:
                    return None
                return Built(self.node(Union, first.node, second.node, second.places(first.names)), first.names)
            case mfotl.Equiv(left, right):
                first, second = (self.satisfying(base, each, around) for each in (left, right))
                if first is not None and second is not None:
                    return self.alike(base, first, second)
        for made in (part, *self.guarded(part, around)):
            built = self.attempt(made)
            if built is not None and set(built.names) <= set(base.names):
                return self.joined(base, built)
        return None

    def guarded(self, part: mfotl.Formula, around: mfotl.Formula) -> list[mfotl.Formula]:
        """Formulas that equal the part wherever `around` holds, and that are finite more often; the first is best."""
        span = part.span
        match part:
            case mfotl.Or(left, right):
                return [
                    mfotl.Or(
                        mfotl.And(around, left, span=left.span), mfotl.And(around, right, span=right.span), span=span
                    )
                ]
            case mfotl.Equiv():
                return [mfotl.And(around, self._spelt(part, True), span=span)]
            case mfotl.Not(mfotl.Equiv() as body):
                return self.guarded(self._spelt(body, False), around)
            case mfotl.Exists(names, body):
                return [mfotl.Exists(names, mfotl.And(around, body, span=body.span), span=span)]
            case mfotl.Not(mfotl.And(left, right)):
                no, other = negation(left), negation(right)
                return [
                    mfotl.Or(
                        mfotl.And(around, no, span=left.span), mfotl.And(around, other, span=right.span), span=span
                    )
                ]
            case mfotl.Not(body):
                inner = mfotl.Not(mfotl.And(around, body, span=body.span), span=span)
                self.sealed.add(id(inner))
                self._alive.append(inner)
                return [mfotl.And(around, inner, span=span)]
            case mfotl.Aggregation(_, _, _, groups, body) if set(groups) & set(variables_of(around)):
                others = tuple(name for name in variables_of(around) if name not in groups)
                beside = mfotl.Exists(others, around, span=span) if others else around
                return [replace(part, body=mfotl.And(beside, body, span=body.span))]
        made = moved_in_time(part, around)
        dual = opposite(part)
        if isinstance(part, mfotl.Temporal) and dual is not None:
            every = dual if self.attempt(dual) is not None else vacuous(dual, around, part.operator)
            if self.attempt(every) is not None:
                made.insert(0, mfotl.And(around, mfotl.Not(every, span=span), span=span))
        return made

    def truth(self) -> Built:
        """All time-points."""
        return self.build(mfotl.Truth(True))

    def never(self, names: tuple[str, ...]) -> Built:
        """No rows."""
        return Built(self.node(EmptyRelation, ("int",) * len(names), ()), names)
