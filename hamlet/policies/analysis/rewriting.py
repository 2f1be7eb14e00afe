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

from hamlet.policies.syntax.formula import (
    Aggregation,
    And,
    Arithmetic,
    Call,
    Comparison,
    Constant,
    Equiv,
    Exists,
    Forall,
    Formula,
    Implies,
    Let,
    LetPast,
    Matches,
    Negative,
    Not,
    Or,
    Predicate,
    Release,
    Since,
    Substring,
    Temporal,
    TemporalMatch,
    Term,
    Trigger,
    Truth,
    Type,
    Until,
    Variable,
    children,
    free_variables,
    is_anonymous,
)
from hamlet.policies.syntax.regex import mapped

_MARK = "\0"  # between a bound variable's name and its number


@dataclass(frozen=True, slots=True, eq=False)
class Loop:
    """The name of a LETPAST within its own meaning, where it stands for itself at earlier time-points."""

    name: str
    types: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What LET has given a name to; equal to itself only. Of a LETPAST, `loop` is the name within it."""

    parameters: tuple[str, ...]
    formula: Formula
    name: str
    loop: Loop | None = None

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


@dataclass(frozen=True, slots=True)
class Defined(Predicate):
    """A predicate that LET has given a meaning."""

    meaning: Meaning | None = None


@dataclass(frozen=True, slots=True)
class Earlier(Predicate):
    """The name of a LETPAST within its own meaning."""

    loop: Loop | None = None


@dataclass(frozen=True, slots=True)
class Throughout(Temporal):
    """``HISTORICALLY`` or ``ALWAYS`` where some time-point lies in the interval, a finite relation if the body is."""


@dataclass(frozen=True, slots=True)
class Edge(Throughout):
    """The body where an interval begins: at the last time-point that is old enough, or the first that is late enough.

    The operator is ``HISTORICALLY`` or ``ALWAYS``; where no time-point lies in the interval nothing is promised.
    """


def shown(name: str) -> str:
    """A variable as it was written."""
    return name.split(_MARK)[0]


def goal(formula: Formula, negate: bool = False) -> tuple[Formula, tuple[str, ...], bool]:
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
    names = free_variables(body)
    if is_policy or negate:
        body = _under_lets(body)
    return body, names, is_policy


def stripped(formula: Formula) -> tuple[Formula, bool]:
    """A policy without its unbounded ALWAYS and the FORALLs below, perhaps under LETs; and whether it was one."""
    if isinstance(formula, Let):
        body, is_policy = stripped(formula.body)
        return replace(formula, body=body), is_policy
    interval = formula.interval if isinstance(formula, Temporal) and formula.operator == "ALWAYS" else None
    if interval is None or interval.high is not None or interval.ticks()[0] > 0:
        return formula, False
    assert isinstance(formula, Temporal)
    body = formula.body
    while isinstance(body, Forall):
        body = body.body
    return body, True


def _under_lets(formula: Formula) -> Formula:
    if isinstance(formula, Let):
        return replace(formula, body=_under_lets(formula.body))
    return Not(formula, span=formula.span)


_Names = dict[str, str]
_Meanings = dict[tuple[str, int], Meaning | Loop]


class Rewriter:
    """Takes the abbreviations out of formulas; one rewriter numbers the variables of one policy.

    Parameters
    ----------
    types : mapping of int to tuple of str, optional
        The types of the parameters of each LETPAST, by the id of its definition.
    """

    def __init__(self, types: Mapping[int, tuple[Type, ...]] | None = None) -> None:
        self._types = types or {}
        self._numbers = itertools.count(1)

    def fresh(self, name: str) -> str:
        """A name that nothing else has."""
        return f"{shown(name)}{_MARK}{next(self._numbers)}"

    def rewrite(self, formula: Formula) -> Formula:
        """The formula without abbreviations; its free variables keep their names."""
        return self._formula(formula, {}, {}, True)

    def _formula(self, formula: Formula, names: _Names, lets: _Meanings, positive: bool) -> Formula:
        """The formula, or its negation, with bound variables renamed."""
        span = formula.span
        match formula:
            case Not(body):
                return self._formula(body, names, lets, not positive)
            case Truth(value):
                return Truth(value == positive, span=span)
            case Implies(left, right):
                if positive:
                    return Or(
                        self._formula(left, names, lets, False), self._formula(right, names, lets, True), span=span
                    )
                return And(self._formula(left, names, lets, True), self._formula(right, names, lets, False), span=span)
            case Or(left, right) if not positive:
                return And(self._formula(left, names, lets, False), self._formula(right, names, lets, False), span=span)
            case And(left, right) | Or(left, right) | Equiv(left, right):
                both = self._formula(left, names, lets, True), self._formula(right, names, lets, True)
                made: Formula = type(formula)(*both, span=span)
                return made if positive else Not(made, span=span)
            case Exists() | Forall():
                return self._quantified(formula, names, lets, positive)
            case Temporal("ALWAYS" | "HISTORICALLY" as operator, interval, body) if not positive:
                dual = "EVENTUALLY" if operator == "ALWAYS" else "ONCE"
                return Temporal(dual, interval, self._formula(body, names, lets, False), span=span)
            case Let():
                key = formula.name, len(formula.parameters)
                return self._formula(formula.body, names, {**lets, key: self._meaning(formula, lets)}, positive)
        plain = self._plain(formula, names, lets)
        return plain if positive else Not(plain, span=span)

    def _meaning(self, formula: Let, lets: _Meanings) -> Meaning:
        """What LET or LETPAST gives a name to."""
        inside: _Names = {name: self.fresh(name) for name in formula.parameters}
        loop = None
        if isinstance(formula, LetPast):
            loop = Loop(formula.name, self._types.get(id(formula.definition), ()))
            lets = {**lets, (formula.name, len(formula.parameters)): loop}
        definition = self._formula(formula.definition, inside, lets, True)
        return Meaning(tuple(inside[name] for name in formula.parameters), definition, formula.name, loop)

    def _quantified(self, formula: Exists | Forall, names: _Names, lets: _Meanings, positive: bool) -> Formula:
        """EXISTS, NOT EXISTS for FORALL; variables that do not occur are left out."""
        used = [name for name in formula.variables if name in free_variables(formula.body)]
        inner = {**names, **{name: self.fresh(name) for name in used}}
        exists = isinstance(formula, Exists)
        body = self._formula(formula.body, inner, lets, exists)
        made: Formula = Exists(tuple(inner[name] for name in used), body, span=formula.span) if used else body
        return made if exists == positive else Not(made, span=formula.span)

    def _plain(self, formula: Formula, names: _Names, lets: _Meanings) -> Formula:
        span = formula.span
        match formula:
            case Predicate():
                return self._predicate(formula, names, lets)
            case Comparison(operator, left, right):
                return Comparison(operator, _renamed(left, names), _renamed(right, names), span=span)
            case Substring(left, right):
                return Substring(_renamed(left, names), _renamed(right, names), span=span)
            case Matches(term, pattern):
                return Matches(_renamed(term, names), pattern, span=span)
            case Temporal(operator, interval, body):
                return Temporal(operator, interval, self._formula(body, names, lets, True), span=span)
            case TemporalMatch(operator, interval, regex):
                letters = mapped(regex, partial(self._formula, names=names, lets=lets, positive=True))
                return TemporalMatch(operator, interval, letters, span=span)
            case Since() | Until() | Trigger() | Release():
                first, second = (self._formula(each, names, lets, True) for each in (formula.left, formula.right))
                return type(formula)(formula.interval, first, second, span=span)
            case Aggregation():
                inside = free_variables(formula.body)
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

    def _predicate(self, formula: Predicate, names: _Names, lets: _Meanings) -> Formula:
        """The predicate with variables and constants only; other terms become equations beside it."""
        own: dict[str, str] = {}
        arguments: list[Term] = []
        fresh: list[str] = []
        equations: list[Formula] = []
        for argument in formula.arguments:
            if isinstance(argument, Variable) and is_anonymous(argument.name):
                name = self.fresh("_") if argument.name == "_" else own.get(argument.name) or self.fresh("_")
                own[argument.name] = name
                if name not in fresh:
                    fresh.append(name)
                arguments.append(Variable(name, span=argument.span))
                continue
            term = _renamed(argument, names)
            if isinstance(term, Variable | Constant):
                arguments.append(term)
                continue
            name = self.fresh("_")
            fresh.append(name)
            arguments.append(Variable(name, span=argument.span))
            equations.append(Comparison("=", Variable(name, span=argument.span), term, span=argument.span))
        meaning = lets.get((formula.name, len(arguments)))
        made: Formula = Predicate(formula.name, tuple(arguments), span=formula.span, name_span=formula.name_span)
        told, span, name_span = (formula.name, tuple(arguments)), formula.span, formula.name_span
        if isinstance(meaning, Loop):
            made = Earlier(*told, loop=meaning, span=span, name_span=name_span)
        elif meaning is not None:
            made = Defined(*told, meaning=meaning, span=span, name_span=name_span)
        for equation in equations:
            made = And(made, equation, span=formula.span)
        return Exists(tuple(fresh), made, span=formula.span) if fresh else made


def _renamed(term: Term, names: _Names) -> Term:
    match term:
        case Variable(name):
            return Variable(names.get(name, name), span=term.span)
        case Negative(inner):
            return Negative(_renamed(inner, names), span=term.span)
        case Call(function, argument):
            return Call(function, _renamed(argument, names), span=term.span)
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, _renamed(left, names), _renamed(right, names), span=term.span)
    return term


def negation(formula: Formula) -> Formula:
    """The negation of a rewritten formula, one level pushed inwards."""
    span = formula.span
    match formula:
        case Not(body):
            return body
        case Truth(value):
            return Truth(not value, span=span)
        case Or(left, right):
            return And(negation(left), negation(right), span=span)
        case Temporal("ALWAYS" | "HISTORICALLY" as operator, interval, body) if not isinstance(formula, Throughout):
            return Temporal("EVENTUALLY" if operator == "ALWAYS" else "ONCE", interval, negation(body), span=span)
    return Not(formula, span=span)


def unfolded(formula: Equiv, positive: bool = True) -> Formula:
    """EQUIV, or its negation, with AND and OR."""
    left, right, span = formula.left, formula.right, formula.span
    no, other = (each.body if isinstance(each, Not) else Not(each, span=each.span) for each in (left, right))
    if positive:
        return And(Or(no, right, span=span), Or(left, other, span=span), span=span)
    return Or(And(left, other, span=span), And(no, right, span=span), span=span)


def conjuncts(formula: Formula) -> list[Formula]:
    """The parts of nested ANDs."""
    parts: list[Formula] = []
    todo = [formula]
    while todo:
        node = todo.pop()
        if isinstance(node, And):
            todo += [node.right, node.left]
        else:
            parts.append(node)
    return parts


def conjunction(parts: list[Formula]) -> Formula:
    """AND of the parts; TRUE of none."""
    if not parts:
        return Truth(True)
    made = parts[0]
    for part in parts[1:]:
        made = And(made, part, span=part.span)
    return made


def variables_of(formula: Formula) -> tuple[str, ...]:
    """The free variables of a rewritten formula: here a name that begins with ``_`` is a variable like any other."""
    match formula:
        case Predicate(_, arguments):
            names = [each.name for each in arguments if isinstance(each, Variable)]
        case Exists(bound, body):
            names = [name for name in variables_of(body) if name not in bound]
        case Aggregation() | Comparison() | Substring() | Matches():
            return free_variables(formula)
        case _:
            names = [name for each in children(formula) for name in variables_of(each)]
    return tuple(dict.fromkeys(names))
