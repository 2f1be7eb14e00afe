"""From a rewritten formula to operators, for the formulas whose relations are finite.

A conjunction is built from the parts that bind variables, then tests, equations that bind, and negations as soon as
their variables are bound. A part that is not finite alone is rewritten with what is bound around it moved inside:
``p(x) AND ONCE[0,5] (x > y AND q(y))`` evaluates as ``p(x) AND ONCE[0,5] (EVENTUALLY[0,5] p(x) AND q(y) AND x > y)``.

Source: the safe formulas of Schneider et al. (STTT 2021), Fig. 3; the moving inwards is MonPoly's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hamlet.errors import Reports
from hamlet.language.query import Span
from hamlet.policies.aggregating import Aggregate
from hamlet.policies.formula import (
    Aggregation,
    And,
    Arithmetic,
    Bound,
    Call,
    Comparison,
    Constant,
    Exists,
    Formula,
    Interval,
    Matches,
    Negative,
    Not,
    Or,
    Predicate,
    Since,
    Substring,
    Temporal,
    Term,
    Truth,
    Until,
    Variable,
    children,
    term_variables,
)
from hamlet.policies.nodes import (
    Always,
    Event,
    Extend,
    Filter,
    Join,
    Minus,
    Never,
    Node,
    Position,
    Shape,
    Union,
)
from hamlet.policies.rewriting import Defined, Throughout, conjunction, conjuncts, negation, shown, variables_of
from hamlet.policies.signature import Signature
from hamlet.policies.temporal import Next, Previous
from hamlet.policies.temporal import Since as SinceNode
from hamlet.policies.temporal import Until as UntilNode
from hamlet.policies.throughout import Henceforth, Historically
from hamlet.policies.values import Pool, type_of

TESTS = (Comparison, Substring, Matches)


@dataclass(frozen=True, slots=True)
class Built:
    """An operator, and the variables of its columns."""

    node: Node
    names: tuple[str, ...]

    def places(self, names: tuple[str, ...]) -> tuple[int, ...]:
        """The columns of some variables."""
        return tuple(self.names.index(name) for name in names)


class UnsafeError(Exception):
    """The formula has no finite relation."""

    def __init__(self, message: str, span: Span, hint: str | None) -> None:
        super().__init__(message)
        self.message, self.span, self.hint = message, span, hint


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
        self.sealed: set[int] = set()  # formulas that nothing is moved into once more
        self._alive: list[Formula] = []  # keeps the keys of the cache from being used again

    # ------------------------------------------------------------------------------------------ operators

    def _node(self, kind: Callable[..., Node], *arguments: Any) -> Node:
        key = (kind, *(id(each) if isinstance(each, Node | Pool) else each for each in arguments))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = kind(*arguments)
            self.nodes.append(found)
        return found

    def _ticks(self, interval: Interval) -> tuple[int, int | None]:
        low, high = interval.ticks(self.per_second)
        self.longest = max(self.longest, low, high or 0)
        return low, high

    def build(self, formula: Formula) -> Built:
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

    def _attempt(self, formula: Formula) -> Built | None:
        try:
            return self.build(formula)
        except UnsafeError:
            return None

    def _build(self, formula: Formula) -> Built:
        match formula:
            case Truth(value):
                return Built(self._node(Always, (), ()) if value else self._node(Never, (), ()), ())
            case Defined() | Predicate():
                return self._predicate(formula)
            case Exists(_, body):
                built = self.build(body)
                return self.keep(built, variables_of(formula))
            case Or(left, right):
                return self._or(formula, left, right)
            case Temporal():
                return self._temporal(formula)
            case Since(interval, left, right) | Until(interval, left, right):
                return self._binary(formula, interval, left, right)
            case Aggregation():
                return self._aggregation(formula)
            case Not() if not variables_of(formula):
                inner = self._closed_negation(formula)
                truth = self._node(Always, (), ())
                return Built(self._node(Minus, truth, inner.node, (), ()), ())
        return Conjunction(self, conjuncts(formula), formula.span).built()

    def _closed_negation(self, formula: Not) -> Built:
        try:
            return self.build(formula.body)
        except UnsafeError:
            if isinstance(formula.body, And):
                built = self._attempt(Or(negation(formula.body.left), negation(formula.body.right), span=formula.span))
                if built is not None:
                    truth = self._node(Always, (), ())
                    return Built(self._node(Minus, truth, built.node, (), ()), ())
            raise

    def keep(self, built: Built, names: tuple[str, ...]) -> Built:
        """Only the columns of some variables."""
        if built.names == names:
            return built
        return Built(self._node(Shape, built.node, (), (), built.places(names)), names)

    def _predicate(self, formula: Predicate) -> Built:
        names: dict[str, int] = {}
        constants: list[tuple[int, int]] = []
        equal: list[tuple[int, int]] = []
        for place, argument in enumerate(formula.arguments):
            if isinstance(argument, Constant):
                constants.append((place, self.pool.code(argument.value)))
            else:
                assert isinstance(argument, Variable)
                if argument.name in names:
                    equal.append((names[argument.name], place))
                else:
                    names[argument.name] = place
        shape = tuple(constants), tuple(equal), tuple(names.values())
        if isinstance(formula, Defined):
            assert formula.meaning is not None
            built = self.build(formula.meaning.formula)
            built = self.keep(built, formula.meaning.parameters)
            if shape[:2] == ((), ()) and shape[2] == tuple(range(len(built.names))):
                return Built(built.node, tuple(names))
            return Built(self._node(Shape, built.node, *shape), tuple(names))
        key = formula.name, len(formula.arguments)
        if key not in self.signature:
            return Built(self._node(Shape, self._node(Position, key[0]), *shape), tuple(names))
        return Built(self._node(Event, key, self.signature[key].types, *shape), tuple(names))

    def _or(self, formula: Formula, left: Formula, right: Formula) -> Built:
        one, two = set(variables_of(left)), set(variables_of(right))
        if one != two:
            name = shown(next(iter(sorted(one ^ two))))
            said = f"both sides of OR must bind the same variables; '{name}' stands on one side only"
            raise UnsafeError(said, formula.span, "bind it on both sides, or quantify it: EXISTS " + name + ". ...")
        first, second = self.build(left), self.build(right)
        return Built(self._node(Union, first.node, second.node, second.places(first.names)), first.names)

    def _temporal(self, formula: Temporal) -> Built:
        operator, interval, body = formula.operator, self._ticks(formula.interval), formula.body
        if operator in ("HISTORICALLY", "ALWAYS"):
            return self._throughout(formula)
        built = self.build(body)
        if interval[1] is not None and interval[0] > interval[1]:
            return Built(self._node(Never, built.node.types, ()), built.names)
        if operator == "PREV":
            return Built(self._node(Previous, built.node, interval), built.names)
        if operator == "NEXT":
            return Built(self._node(Next, built.node, interval), built.names)
        kind = SinceNode if operator == "ONCE" else UntilNode
        return Built(self._node(kind, built.node, interval, None, False, ()), built.names)

    def _throughout(self, formula: Temporal) -> Built:
        past = formula.operator == "HISTORICALLY"
        interval = self._ticks(formula.interval)
        somewhere = Temporal("ONCE" if past else "EVENTUALLY", formula.interval, Truth(True), span=formula.span)
        if interval[1] is not None and interval[0] > interval[1]:
            return self._always_or_unsafe(formula)
        if isinstance(formula, Throughout) or interval[0] == 0:
            built = self._attempt(formula.body)
            if built is not None:
                kind = Historically if past else Henceforth
                node = self._node(kind, built.node, interval)
                if interval[0] > 0:
                    node = self._node(Join, node, self.build(somewhere).node, (), ())
                return Built(node, built.names)
        if not variables_of(formula) and not isinstance(formula, Throughout):
            return self.build(Not(negation(formula), span=formula.span))
        return self._always_or_unsafe(formula)

    def _always_or_unsafe(self, formula: Temporal) -> Built:
        if not variables_of(formula):
            return self.build(Truth(True))
        name = shown(variables_of(formula)[0])
        raise UnsafeError(
            f"the variable '{name}' is not bound: {formula.operator} holds for infinitely many values",
            formula.span,
            f"put what binds '{name}' beside it: p({name}) AND {formula.operator} ...",
        )

    def _binary(self, formula: Since | Until, interval: Interval, left: Formula, right: Formula) -> Built:
        second = self.build(right)
        missing = [name for name in variables_of(left) if name not in second.names]
        if missing:
            word = "SINCE" if isinstance(formula, Since) else "UNTIL"
            raise UnsafeError(
                f"the variable '{shown(missing[0])}' on the left of {word} is not bound on its right",
                left.span,
                f"the variables on the left of {word} must be among those on its right",
            )
        ticks = self._ticks(interval)
        if ticks[1] is not None and ticks[0] > ticks[1]:
            return Built(self._node(Never, second.node.types, ()), second.names)
        kind = SinceNode if isinstance(formula, Since) else UntilNode
        if left == Truth(True):
            return Built(self._node(kind, second.node, ticks, None, False, ()), second.names)
        negated = False
        if isinstance(left, Not) and (found := self._attempt(left.body)) is not None:
            first, negated = found, True
        else:
            try:
                first = self.build(left)
            except UnsafeError:
                opposite = self._attempt(_pushed(left))
                if opposite is None:
                    raise
                first, negated = opposite, True
        key = second.places(first.names)
        return Built(self._node(kind, second.node, ticks, first.node, negated, key), second.names)

    def _aggregation(self, formula: Aggregation) -> Built:
        built = self.build(formula.body)
        groups = built.places(formula.groups)
        (place,) = built.places((formula.variable,))
        node = self._node(Aggregate, built.node, formula.operator, place, groups, self.pool)
        return Built(node, (formula.result, *formula.groups))

    # ------------------------------------------------------------------------------------ tests and terms

    def filtered(self, built: Built, test: Formula, negated: bool) -> Built:
        """The rows that pass a test whose variables are bound."""
        left, right, word = _test_of(test)
        first = _placed(left, built.names)
        second = right if isinstance(right, str) else _placed(right, built.names)
        return Built(self._node(Filter, built.node, word, first, second, negated, self.pool), built.names)

    def extended(self, built: Built, name: str, term: Term) -> Built:
        """The rows with a variable more, which equals a term over the others."""
        types = dict(zip(map(str, range(len(built.names))), built.node.types, strict=True))
        placed = _placed(term, built.names)
        node = self._node(Extend, built.node, placed, type_of(placed, types), self.pool)
        return Built(node, (*built.names, name))

    def joined(self, left: Built, right: Built) -> Built:
        """The natural join."""
        shared = tuple(name for name in left.names if name in right.names)
        node = self._node(Join, left.node, right.node, left.places(shared), right.places(shared))
        return Built(node, (*left.names, *(name for name in right.names if name not in shared)))

    def without(self, left: Built, right: Built) -> Built:
        """The left rows that the right side lacks; its variables are among the left side's."""
        every = tuple(range(len(right.names)))
        return Built(self._node(Minus, left.node, right.node, left.places(right.names), every), left.names)

    def guarded(self, part: Formula, around: Formula) -> list[Formula]:
        """Formulas that equal the part wherever `around` holds, and that are finite more often; the first is best."""
        span = part.span
        match part:
            case Or(left, right):
                return [Or(And(around, left, span=left.span), And(around, right, span=right.span), span=span)]
            case Exists(names, body):
                return [Exists(names, And(around, body, span=body.span), span=span)]
            case Not(And(left, right)):
                no, other = negation(left), negation(right)
                return [Or(And(around, no, span=left.span), And(around, other, span=right.span), span=span)]
            case Not(body):
                inner = Not(And(around, body, span=body.span), span=span)
                self.sealed.add(id(inner))
                self._alive.append(inner)
                return [And(around, inner, span=span)]
            case Aggregation(_, _, _, groups, body) if set(groups) & set(variables_of(around)):
                others = tuple(name for name in variables_of(around) if name not in groups)
                beside = Exists(others, around, span=span) if others else around
                return [replace(part, body=And(beside, body, span=body.span))]
        return _moved_in_time(part, around)

    def truth(self) -> Built:
        """All time-points."""
        return self.build(Truth(True))

    def never(self, names: tuple[str, ...]) -> Built:
        """No rows."""
        return Built(self._node(Never, ("int",) * len(names), ()), names)


def _pushed(formula: Formula) -> Formula:
    """The negation, pushed inwards as far as AND and OR go."""
    found = negation(formula)
    if isinstance(found, Not) and isinstance(found.body, And):
        return Or(_pushed(found.body.left), _pushed(found.body.right), span=found.span)
    if isinstance(found, And):
        return And(found.left, found.right, span=found.span)
    return found


def _test_of(test: Formula) -> tuple[Term, Term | str, str]:
    match test:
        case Comparison(operator, left, right):
            return left, right, operator
        case Substring(left, right):
            return left, right, "SUBSTRING"
        case Matches(term, pattern):
            return term, pattern, "MATCHES"
    raise TypeError(f"a {type(test).__name__} is no test")


def _placed(term: Term, names: tuple[str, ...]) -> Term:
    """The term with the places of columns in place of variables."""
    match term:
        case Variable(name):
            return Variable(str(names.index(name)))
        case Negative(inner):
            return Negative(_placed(inner, names))
        case Call(function, argument):
            return Call(function, _placed(argument, names))
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, _placed(left, names), _placed(right, names))
    return replace(term)


class Conjunction:
    """Builds an AND, part by part."""

    def __init__(self, planner: Planner, parts: list[Formula], span: Span) -> None:
        self._planner = planner
        self._parts = parts
        self._span = span
        self._done: list[Formula] = []
        self._built: Built | None = None

    def built(self) -> Built:
        """The operator of the whole.

        Raises
        ------
        UnsafeError
            If a variable stays unbound.
        """
        waiting = list(self._parts)
        while waiting:
            place = self._next(waiting)
            if place is None:
                raise self._complaint(waiting)
            self._done.append(waiting.pop(place))
        assert self._built is not None
        return self._built

    def _next(self, waiting: list[Formula]) -> int | None:
        """Take in the part that fits best; its place among those that wait."""
        ways = (self._test, self._negation, self._binder, self._equation, self._constant, self._inside)
        for way in ways:
            for place in self._order(waiting) if way == self._binder else range(len(waiting)):
                if way(waiting[place]):
                    return place
        return None

    @property
    def _names(self) -> set[str]:
        return set(self._built.names) if self._built is not None else set()

    def _order(self, waiting: list[Formula]) -> Iterator[int]:
        """First the parts that share a variable with what is bound."""
        names = self._names
        linked = [bool(names & set(variables_of(part))) for part in waiting]
        yield from (place for place in range(len(waiting)) if linked[place])
        yield from (place for place in range(len(waiting)) if not linked[place])

    def _base(self) -> Built:
        return self._built if self._built is not None else self._planner.truth()

    def _test(self, part: Formula) -> bool:
        test = part.body if isinstance(part, Not) else part
        if not isinstance(test, TESTS) or not set(variables_of(test)) <= self._names:
            return False
        self._built = self._planner.filtered(self._base(), test, part is not test)
        return True

    def _negation(self, part: Formula) -> bool:
        if not isinstance(part, Not) or isinstance(part.body, TESTS):
            return False
        if not set(variables_of(part.body)) <= self._names or (self._built is None and variables_of(part)):
            return False
        built = self._planner._attempt(part.body)
        if built is None:
            return False
        self._built = self._planner.without(self._base(), built)
        return True

    def _binder(self, part: Formula) -> bool:
        if isinstance(part, Not | And | Comparison | Substring | Matches):
            return False
        built = self._planner._attempt(part)
        if built is None:
            return False
        self._built = built if self._built is None else self._planner.joined(self._built, built)
        return True

    def _equation(self, part: Formula) -> bool:
        if not isinstance(part, Comparison) or part.operator != "=":
            return False
        for one, two in ((part.left, part.right), (part.right, part.left)):
            if isinstance(one, Variable) and one.name not in self._names:
                needed = set(term_variables(two))
                if needed <= self._names and (needed or self._built is not None):
                    self._built = self._planner.extended(self._base(), one.name, two)
                    return True
        return False

    def _constant(self, part: Formula) -> bool:
        """``x = 5`` where nothing else is bound; ``NOT (x = x)``, which nothing fulfils."""
        if isinstance(part, Not) and isinstance(part.body, Comparison) and part.body.left == part.body.right:
            if isinstance(part.body.left, Variable) and part.body.operator in ("=", "<=", ">="):
                empty = self._planner.never(variables_of(part))
                self._built = empty if self._built is None else self._planner.joined(self._built, empty)
                return True
            return False
        if not isinstance(part, Comparison) or part.operator != "=" or self._built is not None:
            return False
        for one, two in ((part.left, part.right), (part.right, part.left)):
            if isinstance(one, Variable) and not set(term_variables(two)):
                self._built = self._planner.extended(self._planner.truth(), one.name, two)
                return True
        return False

    def _inside(self, part: Formula) -> bool:
        """Move what is bound into a part that is not finite alone."""
        if self._built is None:
            if isinstance(part, Not) and isinstance(part.body, And) and not self._done:
                built = self._planner._attempt(_pushed(part.body))
                if built is not None:
                    self._built = built
                    return True
            return False
        if id(part) in self._planner.sealed:
            return False
        for made in self._planner.guarded(part, conjunction(self._done)):
            built = self._planner._attempt(made)
            if built is not None:
                beside = isinstance(made, Temporal | Since | Until | Aggregation)
                self._built = self._planner.joined(self._built, built) if beside else built
                return True
        return False

    def _complaint(self, waiting: list[Formula]) -> UnsafeError:
        """What to say about the parts that could not be taken in."""
        for part in waiting:
            unbound = [name for name in variables_of(part) if name not in self._names]
            inner = part.body if isinstance(part, Not) else part
            if isinstance(inner, TESTS) and unbound:
                name = shown(unbound[0])
                return UnsafeError(
                    f"the variable '{name}' is not bound: the comparison holds for infinitely many values",
                    part.span,
                    f"put a predicate that binds '{name}' beside it: p({name}) AND ...",
                )
        for part in waiting:
            inner = part.body if isinstance(part, Not) else part
            try:
                self._planner.build(inner)
            except UnsafeError as error:
                return error
        part = waiting[0]
        unbound = [name for name in variables_of(part) if name not in self._names]
        name = shown(unbound[0]) if unbound else "x"
        return UnsafeError(
            f"the variable '{name}' is not bound: the negation holds for infinitely many values",
            part.span,
            f"put what binds '{name}' beside it: p({name}) AND NOT ...",
        )


_DUAL = {"ONCE": "EVENTUALLY", "EVENTUALLY": "ONCE", "PREV": "NEXT", "NEXT": "PREV"}


def _moved_in_time(part: Formula, around: Formula) -> list[Formula]:
    span = part.span
    match part:
        case Temporal("HISTORICALLY" | "ALWAYS" as operator, interval, body) if not isinstance(part, Throughout):
            kind = "ONCE" if operator == "HISTORICALLY" else "EVENTUALLY"
            no = Not(Temporal(kind, interval, negation(body), span=span), span=span)
            return [And(around, no, span=span), _vacuous(part, around, kind)]
        case Temporal(operator, interval, body) if operator in _DUAL:
            if interval.high is None and operator == "ONCE":
                return []
            beside = Temporal(_DUAL[operator], interval, around, span=span)
            return [replace(part, body=And(beside, body, span=body.span))]
        case Since(interval, left, right) | Until(interval, left, right):
            if interval.high is None:
                return []
            dual = "EVENTUALLY" if isinstance(part, Since) else "ONCE"
            beside = Temporal(dual, interval, around, span=span)
            near = Temporal(dual, Interval(Bound(0), interval.high), around, span=span)
            second = And(beside, right, span=right.span)
            guarded_left = And(near, left, span=left.span)
            return [
                replace(part, right=second),
                replace(part, left=guarded_left),
                replace(part, left=guarded_left, right=second),
            ]
    return []


def _vacuous(part: Temporal, around: Formula, kind: str) -> Formula:
    """HISTORICALLY or ALWAYS as: throughout the interval, or nothing lies in the interval."""
    span = part.span
    throughout = Throughout(part.operator, part.interval, part.body, span=span)
    nothing = Not(Temporal(kind, part.interval, Truth(True), span=span), span=span)
    return Or(And(around, throughout, span=span), And(around, nothing, span=span), span=span)


def check_bounds(formula: Formula, reports: Reports) -> None:
    """Report the future operators without a bound."""
    if isinstance(formula, Until) and formula.interval.high is None:
        hint = "give it an interval: UNTIL[0,1d]"
        reports.error("UNTIL has no bound: it may have to wait for ever", formula.span, hint)
    if isinstance(formula, Temporal) and formula.operator in ("EVENTUALLY", "ALWAYS") and formula.interval.high is None:
        hint = f"give it an interval: {formula.operator}[0,1d]"
        if formula.operator == "ALWAYS":
            hint += "; only an ALWAYS that begins the formula may go without"
        reports.error(f"{formula.operator} has no bound: it may have to wait for ever", formula.span, hint)
    for child in children(formula):
        check_bounds(child, reports)
