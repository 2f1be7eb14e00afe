"""Formulas rewritten for evaluation: without abbreviations, every bound variable under a name of its own.

What remains are truth values, predicates, tests, NOT, AND, OR, EQUIV, EXISTS, the temporal operators, aggregations,
`Defined`, a predicate that LET or LETPAST has given a meaning, and `Earlier`, the name of a LETPAST in its own meaning.
Since no two quantifiers bind the same name, formulas can be moved below each other without catching variables.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.regex import mapped

_MARK = "\0"  # between a bound variable's name and its number


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """The name of a LETPAST within its own meaning, where it stands for itself at earlier time-points."""

    name: str
    types: tuple[mfotl.Type, ...]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What LET has given a name to; equal to itself only. Of a LETPAST, `loop` is the name within it."""

    parameters: tuple[str, ...]
    formula: mfotl.Formula
    name: str
    loop: Loop | None = None

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


@dataclass(frozen=True, slots=True)
class Defined(mfotl.Predicate):
    """A predicate that LET has given a meaning."""

    meaning: Meaning | None = None


@dataclass(frozen=True, slots=True)
class Earlier(mfotl.Predicate):
    """The name of a LETPAST within its own meaning."""

    loop: Loop | None = None


@dataclass(frozen=True, slots=True)
class Throughout(mfotl.Temporal):
    """``HISTORICALLY`` or ``ALWAYS`` where some time-point lies in the interval, a finite relation if the body is."""


@dataclass(frozen=True, slots=True)
class Edge(Throughout):
    """The body where an interval begins: at the last time-point that is old enough, or the first that is late enough.

    The operator is ``HISTORICALLY`` or ``ALWAYS``; where no time-point lies in the interval nothing is promised.
    """


def shown(name: str) -> str:
    """A variable as it was written."""
    return name.split(_MARK)[0]


def goal(formula: mfotl.Formula, negate: bool = False) -> tuple[mfotl.Formula, tuple[str, ...], bool]:
    """What a policy asks for.

    Parameters
    ----------
    formula : Formula
        As it was written.
    negate : bool
        Whether the valuations that do not satisfy it are asked for.

    Returns
    -------
    (Formula, tuple of str, bool)
        The formula whose satisfying valuations are the rows; its free variables in the order of the rows' columns;
        whether it was an outermost ALWAYS, so that the rows are violations.
    """
    body, is_policy = stripped(formula)
    names = mfotl.free_variables(body)
    if is_policy or negate:
        body = _under_lets(body)
    return body, names, is_policy


def stripped(formula: mfotl.Formula) -> tuple[mfotl.Formula, bool]:
    """A policy without its unbounded ALWAYS and the FORALLs below, perhaps under LETs; and whether it was one."""
    if isinstance(formula, mfotl.Let):
        body, is_policy = stripped(formula.body)
        return replace(formula, body=body), is_policy
    interval = formula.interval if isinstance(formula, mfotl.Temporal) and formula.operator == "ALWAYS" else None
    if interval is None or interval.high is not None or interval.ticks()[0] > 0:
        return formula, False
    assert isinstance(formula, mfotl.Temporal)
    body = formula.body
    while isinstance(body, mfotl.Forall):
        body = body.body
    return body, True


def _under_lets(formula: mfotl.Formula) -> mfotl.Formula:
    if isinstance(formula, mfotl.Let):
        return replace(formula, body=_under_lets(formula.body))
    return mfotl.Not(formula, span=formula.span)


_Names = dict[str, str]
_Meanings = dict[tuple[str, int], Meaning | Loop]


class Rewriter:
    """Takes the abbreviations out of formulas; one rewriter numbers the variables of one policy.

    Parameters
    ----------
    types : mapping of int to tuple of str, optional
        The types of the parameters of each LETPAST, by the id of its definition.
    """

    def __init__(self, types: Mapping[int, tuple[mfotl.Type, ...]] | None = None) -> None:
        self._types = types or {}
        self._numbers = itertools.count(1)

    def fresh(self, name: str) -> str:
        """A name that nothing else has."""
        return f"{shown(name)}{_MARK}{next(self._numbers)}"

    def rewrite(self, formula: mfotl.Formula) -> mfotl.Formula:
        """The formula without abbreviations; its free variables keep their names."""
        return self._formula(formula, {}, {}, True)

    def _formula(self, formula: mfotl.Formula, names: _Names, lets: _Meanings, positive: bool) -> mfotl.Formula:
        """The formula, or its negation, with bound variables renamed."""
        span = formula.span
        match formula:
            case mfotl.Not(body):
                return self._formula(body, names, lets, not positive)
            case mfotl.Truth(value):
                return mfotl.Truth(value == positive, span=span)
            case mfotl.Implies(left, right):
                if positive:
                    return mfotl.Or(
                        self._formula(left, names, lets, False), self._formula(right, names, lets, True), span=span
                    )
                return mfotl.And(
                    self._formula(left, names, lets, True), self._formula(right, names, lets, False), span=span
                )
            case mfotl.Or(left, right) if not positive:
                return mfotl.And(
                    self._formula(left, names, lets, False), self._formula(right, names, lets, False), span=span
                )
            case mfotl.And(left, right) | mfotl.Or(left, right) | mfotl.Equiv(left, right):
                both = self._formula(left, names, lets, True), self._formula(right, names, lets, True)
                made: mfotl.Formula = type(formula)(*both, span=span)
                return made if positive else mfotl.Not(made, span=span)
            case mfotl.Exists() | mfotl.Forall():
                return self._quantified(formula, names, lets, positive)
            case mfotl.Temporal("ALWAYS" | "HISTORICALLY" as operator, interval, body) if not positive:
                dual = "EVENTUALLY" if operator == "ALWAYS" else "ONCE"
                return mfotl.Temporal(dual, interval, self._formula(body, names, lets, False), span=span)
            case mfotl.Let():
                key = formula.name, len(formula.parameters)
                return self._formula(formula.body, names, {**lets, key: self._meaning(formula, lets)}, positive)
        plain = self._plain(formula, names, lets)
        return plain if positive else mfotl.Not(plain, span=span)

    def _meaning(self, formula: mfotl.Let, lets: _Meanings) -> Meaning:
        """What LET or LETPAST gives a name to."""
        inside: _Names = {name: self.fresh(name) for name in formula.parameters}
        loop = None
        if isinstance(formula, mfotl.LetPast):
            loop = Loop(formula.name, self._types.get(id(formula.definition), ()))
            lets = {**lets, (formula.name, len(formula.parameters)): loop}
        definition = self._formula(formula.definition, inside, lets, True)
        return Meaning(tuple(inside[name] for name in formula.parameters), definition, formula.name, loop)

    def _quantified(
        self, formula: mfotl.Exists | mfotl.Forall, names: _Names, lets: _Meanings, positive: bool
    ) -> mfotl.Formula:
        """EXISTS, NOT EXISTS for FORALL; variables that do not occur are left out."""
        used = [name for name in formula.variables if name in mfotl.free_variables(formula.body)]
        inner = {**names, **{name: self.fresh(name) for name in used}}
        exists = isinstance(formula, mfotl.Exists)
        body = self._formula(formula.body, inner, lets, exists)
        made: mfotl.Formula = (
            mfotl.Exists(tuple(inner[name] for name in used), body, span=formula.span) if used else body
        )
        return made if exists == positive else mfotl.Not(made, span=formula.span)

    def _plain(self, formula: mfotl.Formula, names: _Names, lets: _Meanings) -> mfotl.Formula:
        span = formula.span
        match formula:
            case mfotl.Predicate():
                return self._predicate(formula, names, lets)
            case mfotl.Comparison(operator, left, right):
                return mfotl.Comparison(operator, _renamed(left, names), _renamed(right, names), span=span)
            case mfotl.Substring(left, right):
                return mfotl.Substring(_renamed(left, names), _renamed(right, names), span=span)
            case mfotl.Matches(term, pattern):
                return mfotl.Matches(_renamed(term, names), pattern, span=span)
            case mfotl.Temporal(operator, interval, body):
                return mfotl.Temporal(operator, interval, self._formula(body, names, lets, True), span=span)
            case mfotl.TemporalMatch(operator, interval, regex):
                letters = mapped(regex, partial(self._formula, names=names, lets=lets, positive=True))
                return mfotl.TemporalMatch(operator, interval, letters, span=span)
            case mfotl.Since() | mfotl.Until() | mfotl.Trigger() | mfotl.Release():
                first, second = (self._formula(each, names, lets, True) for each in (formula.left, formula.right))
                return type(formula)(formula.interval, first, second, span=span)
            case mfotl.Aggregation():
                inside = mfotl.free_variables(formula.body)
                groups = {name: names.get(name, name) for name in formula.groups}
                inner = {name: groups.get(name) or self.fresh(name) for name in inside}
                return replace(
                    formula,
                    result=names.get(formula.result, formula.result),
                    variable=inner[formula.variable],
                    groups=tuple(groups[name] for name in formula.groups),
                    body=self._formula(formula.body, inner, lets, True),
                )
        raise TypeError(f"a {type(formula).__name__} is an abbreviation")

    def _predicate(self, formula: mfotl.Predicate, names: _Names, lets: _Meanings) -> mfotl.Formula:
        """The predicate with variables and constants only; other terms become equations beside it."""
        own: dict[str, str] = {}
        arguments: list[mfotl.Term] = []
        fresh: list[str] = []
        equations: list[mfotl.Formula] = []
        for argument in formula.arguments:
            if isinstance(argument, mfotl.Variable) and mfotl.is_anonymous(argument.name):
                name = self.fresh("_") if argument.name == "_" else own.get(argument.name) or self.fresh("_")
                own[argument.name] = name
                if name not in fresh:
                    fresh.append(name)
                arguments.append(mfotl.Variable(name, span=argument.span))
                continue
            term = _renamed(argument, names)
            if isinstance(term, mfotl.Variable | mfotl.Constant):
                arguments.append(term)
                continue
            name = self.fresh("_")
            fresh.append(name)
            arguments.append(mfotl.Variable(name, span=argument.span))
            equations.append(mfotl.Comparison("=", mfotl.Variable(name, span=argument.span), term, span=argument.span))
        meaning = lets.get((formula.name, len(arguments)))
        made: mfotl.Formula = mfotl.Predicate(
            formula.name, tuple(arguments), span=formula.span, name_span=formula.name_span
        )
        told, span, name_span = (formula.name, tuple(arguments)), formula.span, formula.name_span
        if isinstance(meaning, Loop):
            made = Earlier(*told, loop=meaning, span=span, name_span=name_span)
        elif meaning is not None:
            made = Defined(*told, meaning=meaning, span=span, name_span=name_span)
        for equation in equations:
            made = mfotl.And(made, equation, span=formula.span)
        return mfotl.Exists(tuple(fresh), made, span=formula.span) if fresh else made


def _renamed(term: mfotl.Term, names: _Names) -> mfotl.Term:
    match term:
        case mfotl.Variable(name):
            return mfotl.Variable(names.get(name, name), span=term.span)
        case mfotl.Negative(inner):
            return mfotl.Negative(_renamed(inner, names), span=term.span)
        case mfotl.Call(function, argument):
            return mfotl.Call(function, _renamed(argument, names), span=term.span)
        case mfotl.Arithmetic(operator, left, right):
            return mfotl.Arithmetic(operator, _renamed(left, names), _renamed(right, names), span=term.span)
    return term


def negation(formula: mfotl.Formula) -> mfotl.Formula:
    """The negation of a rewritten formula, one level pushed inwards."""
    span = formula.span
    match formula:
        case mfotl.Not(body):
            return body
        case mfotl.Truth(value):
            return mfotl.Truth(not value, span=span)
        case mfotl.Or(left, right):
            return mfotl.And(negation(left), negation(right), span=span)
        case mfotl.Temporal("ALWAYS" | "HISTORICALLY" as operator, interval, body) if not isinstance(
            formula, Throughout
        ):
            return mfotl.Temporal("EVENTUALLY" if operator == "ALWAYS" else "ONCE", interval, negation(body), span=span)
    return mfotl.Not(formula, span=span)


def unfolded(formula: mfotl.Equiv, positive: bool = True) -> mfotl.Formula:
    """EQUIV, or its negation, with AND and OR."""
    left, right, span = formula.left, formula.right, formula.span
    no, other = (
        each.body if isinstance(each, mfotl.Not) else mfotl.Not(each, span=each.span) for each in (left, right)
    )
    if positive:
        return mfotl.And(mfotl.Or(no, right, span=span), mfotl.Or(left, other, span=span), span=span)
    return mfotl.Or(mfotl.And(left, other, span=span), mfotl.And(no, right, span=span), span=span)


def conjuncts(formula: mfotl.Formula) -> list[mfotl.Formula]:
    """The parts of nested ANDs."""
    parts: list[mfotl.Formula] = []
    todo = [formula]
    while todo:
        node = todo.pop()
        if isinstance(node, mfotl.And):
            todo += [node.right, node.left]
        else:
            parts.append(node)
    return parts


def conjunction(parts: list[mfotl.Formula]) -> mfotl.Formula:
    """AND of the parts; TRUE of none."""
    if not parts:
        return mfotl.Truth(True)
    made = parts[0]
    for part in parts[1:]:
        made = mfotl.And(made, part, span=part.span)
    return made


def variables_of(formula: mfotl.Formula) -> tuple[str, ...]:
    """The free variables of a rewritten formula: here a name that begins with ``_`` is a variable like any other."""
    match formula:
        case mfotl.Predicate(_, arguments):
            names = [each.name for each in arguments if isinstance(each, mfotl.Variable)]
        case mfotl.Exists(bound, body):
            names = [name for name in variables_of(body) if name not in bound]
        case mfotl.Aggregation() | mfotl.Comparison() | mfotl.Substring() | mfotl.Matches():
            return mfotl.free_variables(formula)
        case _:
            names = [name for each in mfotl.children(formula) for name in variables_of(each)]
    return tuple(dict.fromkeys(names))
