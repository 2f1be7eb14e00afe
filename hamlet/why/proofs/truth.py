"""What a formula is at runs of time-points: true, false, or unknown, by the definition of each operator.

Contract
--------
**Three values**: unknown is what does not follow from the operands' values taken as independent; a value that a claim
about many values cannot have is unknown, too.
**Nothing is rewritten**: operators are taken as the text has them.

Source: Basin et al., "Monitoring metric first-order temporal properties" (JACM 2015), §2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from typing import Any

from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.signature import BUILT_IN, Signature
from hamlet.why.proofs.matches import Path, Walk
from hamlet.why.proofs.points import Points, Run, at, joined, within
from hamlet.why.proofs.values import Others, Unknown, Valuation, fits, key_of, pattern_of, test

Three = bool | None
Connective = mfotl.And | mfotl.Or | mfotl.Implies | mfotl.Equiv
Timed = mfotl.Since | mfotl.Until | mfotl.Trigger | mfotl.Release
Asked = set[tuple[int, int]]  # ids of formulas and time-points


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """The names that LET has given a meaning where a formula stands."""

    names: dict[tuple[str, int], tuple[mfotl.Let, Scope]]

    def with_let(self, let: mfotl.Let) -> Scope:
        """This one with one name more; the definition of LETPAST knows its own name, too."""
        names = dict(self.names)
        made = Scope(names)
        names[let.name, len(let.parameters)] = let, made if isinstance(let, mfotl.LetPast) else self
        return made


class Truths:
    """The values of formulas over one input, each found out once.

    Parameters
    ----------
    points : Points
    signature : Signature
    """

    def __init__(self, points: Points, signature: Signature) -> None:
        from hamlet.why.proofs.cells import Cells

        self.points = points
        self.signature = signature
        self.cells = Cells(self)
        self._known: dict[Any, tuple[int, int, list[Run]]] = {}
        self._scopes: dict[tuple[int, int], Scope] = {}
        self._free: dict[int, tuple[str, ...]] = {}
        self._texts: dict[mfotl.Formula, tuple[int, frozenset[tuple[str, int]]]] = {}
        self._meanings: dict[tuple[int, int], Any] = {}

    def free(self, formula: mfotl.Formula) -> tuple[str, ...]:
        """The free variables of a formula."""
        found = self._free.get(id(formula))
        if found is None:
            found = self._free[id(formula)] = mfotl.free_variables(formula)
        return found

    def meaning(self, formula: mfotl.Formula, scope: Scope) -> Any:
        """Equal for formulas of one text whose names stand for the same, wherever they are in the file."""
        key = id(formula), id(scope)
        if key not in self._meanings:
            if formula not in self._texts:
                self._texts[formula] = len(self._texts), frozenset(_names(formula))
            text, used = self._texts[formula]
            known = ((name, *map(id, scope.names[name])) for name in sorted(used & scope.names.keys()))
            self._meanings[key] = text, tuple(known)
        return self._meanings[key]

    def inside(self, let: mfotl.Let, scope: Scope) -> Scope:
        """The scope of a LET's body; one for each place."""
        found = self._scopes.get((id(let), id(scope)))
        if found is None:
            found = self._scopes[id(let), id(scope)] = scope.with_let(let)
        return found

    def of(self, formula: mfotl.Formula, valuation: Valuation, scope: Scope, low: int, high: int) -> list[Run]:
        """The values of a formula from one time-point to another."""
        if high < low:
            return []
        own = {name: valuation[name] for name in self.free(formula)}
        key = id(formula), key_of(own), id(scope)
        known = self._known.get(key)
        if known is None or low > known[1] + 1 or high < known[0] - 1:
            known = low, high, self._runs(formula, own, scope, low, high)
        first, last, runs = known
        if low < first:
            runs = joined([*self._runs(formula, own, scope, low, first - 1), *runs])
        if high > last:
            runs = joined([*runs, *self._runs(formula, own, scope, last + 1, high)])
        self._known[key] = (min(low, first), max(high, last), runs)
        return within(runs, low, high)

    def _runs(self, formula: mfotl.Formula, own: Valuation, scope: Scope, low: int, high: int) -> list[Run]:
        real = self.points.real
        if not self.points.open_end or high < real:
            return joined(self._evaluate(formula, own, scope, low, high))
        runs = [*self._evaluate(formula, own, scope, low, real - 1)] if low < real else []
        return joined([*runs, (max(low, real), high, None)])

    def now(self, formula: mfotl.Formula, valuation: Valuation, scope: Scope, point: int) -> Three:
        """The value of a formula at one time-point."""
        return self.of(formula, valuation, scope, point, point)[0][2]

    def _evaluate(self, formula: mfotl.Formula, v: Valuation, scope: Scope, low: int, high: int) -> Iterator[Run]:
        match formula:
            case mfotl.Truth():
                yield low, high, formula.value
            case mfotl.Comparison() | mfotl.Substring() | mfotl.Matches():
                yield low, high, test(formula, v)
            case mfotl.Predicate():
                yield from self._predicate(formula, v, scope, low, high)
            case mfotl.Not(body):
                for first, last, value in self.of(body, v, scope, low, high):
                    yield first, last, None if value is None else not value
            case mfotl.And() | mfotl.Or() | mfotl.Implies() | mfotl.Equiv():
                yield from self._connective(formula, v, scope, low, high)
            case mfotl.Exists() | mfotl.Forall():
                yield from self.cells.quantified(formula, v, scope, low, high)
            case mfotl.Aggregation():
                yield from self.cells.aggregated(formula, v, scope, low, high)
            case mfotl.Let(body=body):
                yield from self.of(body, v, self.inside(formula, scope), low, high)
            case mfotl.Temporal("PREV" | "NEXT"):
                yield from self._neighbour(formula, v, scope, low, high)
            case mfotl.TemporalMatch():
                for point in range(low, high + 1):
                    yield point, point, self._matched(formula, v, scope, point)
            case mfotl.Temporal() | mfotl.Since() | mfotl.Until() | mfotl.Trigger() | mfotl.Release():
                yield from self._window(formula, v, scope, low, high)
            case _:
                raise TypeError(f"a {type(formula).__name__} is no formula")

    # ------------------------------------------------------------------------------------------ predicates

    def _predicate(self, formula: mfotl.Predicate, v: Valuation, scope: Scope, low: int, high: int) -> Iterator[Run]:
        key = formula.name, len(formula.arguments)
        if key in scope.names:
            if isinstance(scope.names[key][0], mfotl.LetPast):
                for point in range(low):  # what lies before is known when it is asked for
                    self.of(formula, v, scope, point, point)
            yield from self.cells.defined(formula, v, scope, low, high)
            return
        pattern = pattern_of(formula.arguments, v)
        if key in BUILT_IN:
            for point in range(low, high + 1):
                yield point, point, fits(pattern, built_in(key[0], point, self.points))
            return
        single = all(not isinstance(each, Others | Unknown) for each in pattern)
        bound = tuple(place for place, each in enumerate(pattern) if not _loose(each))
        found: dict[int, Three] = {}
        if single and len(bound) == len(pattern):
            found = dict.fromkeys(
                (p for p in self.points.points_of(key, bound, tuple(pattern)) if low <= p <= high), True
            )
        else:
            for point, row in self.points.rows(key, low, high):
                fit = fits(pattern, row)
                if fit is not False and found.get(point) is not True:
                    found[point] = fit
        place = low
        for point, value in sorted(found.items()):
            if point > place:
                yield place, point - 1, False
            yield point, point, value
            place = point + 1
        if place <= high:
            yield place, high, False

    # ----------------------------------------------------------------------------------------- connectives

    def _connective(self, formula: Connective, v: Valuation, scope: Scope, low: int, high: int) -> Iterator[Run]:
        cheap, dear, value = operands(formula)
        for first, last, one in self.of(cheap, v, scope, low, high):
            alone = value(one, None)
            if alone is not None:
                yield first, last, alone
                continue
            for start, end, two in self.of(dear, v, scope, first, last):
                yield start, end, value(one, two)

    # -------------------------------------------------------------------------------------------- temporal

    def _neighbour(self, formula: mfotl.Temporal, v: Valuation, scope: Scope, low: int, high: int) -> Iterator[Run]:
        step = -1 if formula.operator == "PREV" else 1
        for point in range(low, high + 1):
            other = neighbour(self.points, formula, point)
            if other is None:
                yield point, point, False
            elif step == 1 and self.points.open_end and other >= self.points.real:
                yield point, point, None
            else:
                yield point, point, self.now(formula.body, v, scope, other)

    def _window(
        self, formula: mfotl.Temporal | Timed, v: Valuation, scope: Scope, low: int, high: int
    ) -> Iterator[Run]:
        bounds = formula.interval.ticks(self.points.per_second)
        past = is_past(formula)
        reach = self.points.before if past else self.points.behind
        windows = [reach(point, *bounds) for point in range(low, high + 1)]
        first = min((one for one, two in windows if one <= two), default=0)
        last = max((two for one, two in windows if one <= two), default=-1)
        if isinstance(formula, mfotl.Temporal):
            runs = self.of(formula.body, v, scope, first, last)
            wanted = formula.operator in ("ONCE", "EVENTUALLY")
            for point, (one, two) in enumerate(windows, low):
                yield point, point, _some(within(runs, one, two) if one <= two else [], wanted)
            return
        runs = self.of(formula.right, v, scope, first, last)
        for point, (one, two) in enumerate(windows, low):
            inside = within(runs, one, two) if one <= two else []
            yield point, point, self._between(formula, v, scope, point, inside)

    def _matched(self, formula: mfotl.TemporalMatch, v: Valuation, scope: Scope, point: int) -> Three:
        """MATCHP and MATCHF at one time-point."""
        if self.paths(formula, v, scope, point, True) is not None:
            return True
        return False if self.paths(formula, v, scope, point, None) is None else None

    def paths(
        self,
        formula: mfotl.TemporalMatch,
        v: Valuation,
        scope: Scope,
        point: int,
        least: Three,
        seen: Asked | None = None,
        failing: Set[tuple[mfotl.Formula, int]] | None = None,
    ) -> Path | None:
        """What a match asks for, None where there is none; with `least` None what is unknown may hold, too.

        What was asked on the way and fails is added to `seen`. Where `failing` is given, nothing else is known.
        """

        def holds(part: mfotl.Formula, at: int) -> bool:
            if failing is not None:
                return (part, at) not in failing
            value = self.now(part, v, scope, at)
            if value is False and seen is not None:
                seen.add((id(part), at))
            return value is True or (value is None and least is None)

        past = formula.operator == "MATCHP"
        # behind an open end stands one time-point for all of which nothing is known: a match may go there, and on
        last = self.points.last - (self.points.open_end and least is True)
        bounds = formula.interval.ticks(self.points.per_second)
        first, end = (self.points.before if past else self.points.behind)(point, *bounds)
        if first > end:
            return None
        behind = self.points.open_end and least is None and not past and end >= last
        walk = Walk(holds, past, point if past else min(end, last), behind)
        for start in range(end, first - 1, -1) if past else [point]:
            found = walk.ends(formula.regex, start)
            for stop in sorted(found):
                if stop == point if past else first <= stop <= end:
                    return found[stop]
        return None

    def _between(self, formula: Timed, v: Valuation, scope: Scope, point: int, inside: list[Run]) -> Three:
        """SINCE and UNTIL, or their duals, at one time-point, given what the right side is in the interval."""
        past = is_past(formula)
        dual = is_dual(formula)
        answer: Three = dual
        left = formula.left
        for first, last, value in reversed(inside) if past else inside:
            if value is dual:
                continue
            # of the run's time-points, the nearest asks least of the left side
            near = last if past else first
            low, high = (near + 1, point) if past else (point, near - 1)
            runs = self.of(left, v, scope, low, high)
            if all(each is not dual and each is not None for _, _, each in runs):
                if value is not None:
                    return not dual
                answer = None
                continue
            if any(each is dual for _, _, each in runs):
                # what lies farther away asks for this one, too
                return answer
            answer = None
        return answer


def _loose(each: Any) -> bool:
    return not isinstance(each, str | int | float | bool)


def _some(runs: list[Run], wanted: bool) -> Three:
    """ONCE and EVENTUALLY over the runs of an interval, or HISTORICALLY and ALWAYS."""
    values = {value for _, _, value in runs}
    if wanted in values:
        return wanted
    return None if None in values else not wanted


def built_in(name: str, point: int, points: Points) -> tuple[int, ...]:
    """The tuple of a predicate that every stream has."""
    number, time = points.first + point, points.times[point]
    return {"tp": (number,), "ts": (time,), "tpts": (number, time)}[name]


def neighbour(points: Points, formula: mfotl.Temporal, point: int) -> int | None:
    """The time-point that PREV or NEXT looks at, None where there is none at such a distance."""
    other = point - 1 if formula.operator == "PREV" else point + 1
    if not 0 <= other <= points.last:
        return None
    low, high = formula.interval.ticks(points.per_second)
    distance = abs(points.times[point] - points.times[other])
    if points.open_end and other >= points.real:
        return other
    return other if distance >= low and (high is None or distance <= high) else None


def is_past(formula: mfotl.Formula) -> bool:
    """Whether a temporal operator looks back."""
    if isinstance(formula, mfotl.Temporal | mfotl.TemporalMatch):
        return formula.operator in ("PREV", "ONCE", "HISTORICALLY", "MATCHP")
    return isinstance(formula, mfotl.Since | mfotl.Trigger)


def is_dual(formula: mfotl.Formula) -> bool:
    """Whether an operator of two sides is the opposite of SINCE or UNTIL over the opposites of its sides."""
    return isinstance(formula, mfotl.Trigger | mfotl.Release)


def cost(formula: mfotl.Formula) -> int:
    """How much a formula asks to be looked at: less is looked at first."""
    match formula:
        case mfotl.Truth() | mfotl.Comparison() | mfotl.Substring() | mfotl.Matches():
            return 0
        case mfotl.Predicate():
            return 1
        case mfotl.Not(body):
            return cost(body)
        case mfotl.Aggregation() | mfotl.Exists() | mfotl.Forall():
            return 20 + sum(cost(child) for child in mfotl.children(formula))
        case (
            mfotl.Temporal() | mfotl.Since() | mfotl.Until() | mfotl.Trigger() | mfotl.Release() | mfotl.TemporalMatch()
        ):
            return 5 + sum(cost(child) for child in mfotl.children(formula))
    return 1 + sum(cost(child) for child in mfotl.children(formula))


_TABLES: dict[type, Callable[[Three, Three], Three]] = {
    mfotl.And: lambda one, two: (
        False if one is False or two is False else (None if one is None or two is None else True)
    ),
    mfotl.Or: lambda one, two: True if one is True or two is True else (None if one is None or two is None else False),
    mfotl.Implies: lambda one, two: (
        True if one is False or two is True else (None if one is None or two is None else False)
    ),
    mfotl.Equiv: lambda one, two: None if one is None or two is None else one is two,
}


def operands(formula: Connective) -> tuple[mfotl.Formula, mfotl.Formula, Callable[[Three, Three], Three]]:
    """The cheaper operand of a connective, the other one, and its value by theirs."""
    value = _TABLES[type(formula)]
    if cost(formula.left) <= cost(formula.right):
        return formula.left, formula.right, value
    return formula.right, formula.left, lambda cheap, dear: value(dear, cheap)


__all__ = [
    "Others",
    "Scope",
    "Three",
    "Truths",
    "at",
    "built_in",
    "cost",
    "is_dual",
    "is_past",
    "neighbour",
    "operands",
]


def _names(formula: mfotl.Formula) -> Iterator[tuple[str, int]]:
    """The predicates of a formula."""
    if isinstance(formula, mfotl.Predicate):
        yield formula.name, len(formula.arguments)
    for child in mfotl.children(formula):
        yield from _names(child)
