"""How the values of a variable are split where a quantifier or an aggregation asks for all of them.

A *cell* gives each variable one value, or all others. The values that can matter are those of the tuples that its
predicates may match and those that equations give; at all others the body is alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from hamlet.policies.analysis.terms import type_of
from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.signature import BUILT_IN, Signature
from hamlet.why.proofs.points import Run, typed
from hamlet.why.proofs.values import Others, Unknown, Valuation, fits, pattern_of, value_of

if TYPE_CHECKING:
    from hamlet.why.proofs.truth import Scope, Three, Timed, Truths

Cell = dict[str, Any]


class Cells:
    """Quantifiers, aggregations and names of LET over one input."""

    def __init__(self, truths: Truths) -> None:
        self._truths = truths
        self._inside: set[tuple[int, str]] = set()  # names of LETPAST that are looked into, for a variable

    # ----------------------------------------------------------------------------------------- quantifiers

    def quantified(
        self, formula: mfotl.Exists | mfotl.Forall, v: Valuation, scope: Scope, low: int, high: int
    ) -> Iterator[Run]:
        """The values of a quantifier."""
        wanted = isinstance(formula, mfotl.Exists)
        yield from self._any(formula.body, formula.variables, v, scope, low, high, wanted)

    def defined(self, formula: mfotl.Predicate, v: Valuation, scope: Scope, low: int, high: int) -> Iterator[Run]:
        """The values of a predicate that LET has given a meaning."""
        let, outer = scope.names[formula.name, len(formula.arguments)]
        inner, open_names = parameters_of(let, formula, v)
        if inner is None:
            yield low, high, None
        elif not open_names:
            yield from self._truths.of(let.definition, inner, outer, low, high)
        else:
            yield from self._any(let.definition, open_names, inner, outer, low, high, True)

    def _any(
        self, body: mfotl.Formula, names: Sequence[str], v: Valuation, scope: Scope, low: int, high: int, wanted: bool
    ) -> Iterator[Run]:
        for first, last, cells in self.split(body, names, v, scope, low, high):
            runs = [self._truths.of(body, {**v, **cell}, scope, first, last) for cell in cells]
            for start, end in _pieces(runs, first, last):
                values = {_value(each, start) for each in runs}
                yield start, end, wanted if wanted in values else None if None in values else not wanted

    def split(
        self, body: mfotl.Formula, names: Sequence[str], v: Valuation, scope: Scope, low: int, high: int
    ) -> list[tuple[int, int, list[Cell]]]:
        """Cells that together cover all values of the variables, for each part of a range of time-points."""
        used = [name for name in names if name in self._truths.free(body)]
        parts = [(low, high)]
        if not self._reaches(body, scope):
            parts = [*self._busy(body, scope, low, high)]
        return [(first, last, self._cells(body, used, v, scope, first, last)) for first, last in parts]

    def _busy(self, body: mfotl.Formula, scope: Scope, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Time-points with tuples that the body may read, each alone, and the ranges between them."""
        keys = {key for key in predicates(body) if key not in scope.names}
        if keys & BUILT_IN.keys():
            points: Iterable[int] = range(low, high + 1)
        else:
            points = sorted({point for key in keys for point, _ in self._truths.points.rows(key, low, high)})
        place = low
        for point in points:
            if place < point:
                yield place, point - 1
            yield point, point
            place = point + 1
        if place <= high:
            yield place, high

    def _cells(
        self, body: mfotl.Formula, names: Sequence[str], v: Valuation, scope: Scope, low: int, high: int
    ) -> list[Cell]:
        if not names:
            return [{}]
        whole: Cell = dict.fromkeys(names, Others())
        runs = self._truths.of(body, {**v, **whole}, scope, low, high)
        if all(value is not None for _, _, value in runs) and len({value for _, _, value in runs}) == 1:
            return [whole]
        found = {name: self._matter(name, body, v, scope, low, high) for name in names}
        # a variable that predicates bind goes before one that an equation gives
        name = min(names, key=lambda each: (not found[each], names.index(each)))
        values = list(found[name].values())
        rest = [each for each in names if each != name]
        cells: list[Cell] = []
        for value in [*values, Others(values)]:
            for cell in self._cells(body, rest, {**v, name: value}, scope, low, high):
                cells.append({name: value, **cell})
        return cells

    # ----------------------------------------------------------------------------------- values that matter

    def _matter(
        self, name: str, formula: mfotl.Formula, v: Valuation, scope: Scope, low: int, high: int
    ) -> dict[Any, Any]:
        """The values of a variable that a formula can tell from others; variables without a value stand for any."""
        if low > high or name not in self._truths.free(formula):
            return {}
        match formula:
            case mfotl.Predicate():
                return self._of_predicate(name, formula, v, scope, low, high)
            case mfotl.Comparison(_, left, right):
                found: dict[Any, Any] = {}
                for one, two in ((left, right), (right, left)):
                    if isinstance(one, mfotl.Variable) and one.name == name and name not in mfotl.term_variables(two):
                        value = value_of(two, v)
                        if isinstance(value, Others):
                            found |= {typed([each]): each for each in value.values}
                        elif not isinstance(value, Unknown):
                            found[typed([value])] = value
                return found
            case mfotl.Exists(names, body) | mfotl.Forall(names, body):
                inner = {other: each for other, each in v.items() if other not in names}
                return self._matter(name, body, inner, scope, low, high)
            case mfotl.Let(body=body):
                return self._matter(name, body, v, self._truths.inside(formula, scope), low, high)
            case mfotl.Aggregation():
                return self._of_aggregation(name, formula, v, scope, low, high)
            case (
                mfotl.Temporal()
                | mfotl.Since()
                | mfotl.Until()
                | mfotl.Trigger()
                | mfotl.Release()
                | mfotl.TemporalMatch()
            ):
                low, high = self._reach(formula, low, high)
        found = {}
        for child in mfotl.children(formula):
            found |= self._matter(name, child, v, scope, low, high)
        return found

    def _of_predicate(
        self, name: str, formula: mfotl.Predicate, v: Valuation, scope: Scope, low: int, high: int
    ) -> dict[Any, Any]:
        places = [
            place
            for place, each in enumerate(formula.arguments)
            if isinstance(each, mfotl.Variable) and each.name == name
        ]
        key = formula.name, len(formula.arguments)
        found: dict[Any, Any] = {}
        if key in scope.names:
            let, outer = scope.names[key]
            if isinstance(let, mfotl.LetPast):
                if (id(let), name) in self._inside:
                    return {}
                self._inside.add((id(let), name))
                low = 0
            inner = {
                parameter: value
                for parameter, each in zip(let.parameters, formula.arguments, strict=True)
                if not isinstance(each, mfotl.Variable) or each.name != name
                if not isinstance(value := value_of(each, v), Unknown)
            }
            if isinstance(let, mfotl.LetPast):
                inner = {}  # at earlier time-points its parameters have other values
            for place in places:
                found |= self._matter(let.parameters[place], let.definition, inner, outer, low, high)
            self._inside.discard((id(let), name))
            return found
        without = {other: each for other, each in v.items() if other != name}
        pattern = pattern_of(formula.arguments, without)
        if key in BUILT_IN:
            from hamlet.why.proofs.truth import built_in

            rows = [(point, built_in(key[0], point, self._truths.points)) for point in range(low, high + 1)]
        else:
            rows = self._truths.points.rows(key, low, high)
        for _, row in rows:
            if fits(pattern, row) is not False:
                found |= {typed([row[place]]): row[place] for place in places}
        return found

    def _of_aggregation(
        self, name: str, formula: mfotl.Aggregation, v: Valuation, scope: Scope, low: int, high: int
    ) -> dict[Any, Any]:
        if name != formula.result:
            inner = {each: v[each] for each in formula.groups if each in v}
            return self._matter(name, formula.body, inner, scope, low, high)
        groups = {each: v.get(each, Unknown()) for each in formula.groups}
        if any(isinstance(each, Others | Unknown) for each in groups.values()):
            return {}
        found = {}
        for point in range(low, high + 1):
            value = self.aggregate(formula, groups, scope, point)[0]
            if value is not None:
                found[typed([value])] = value
        return found

    def _reach(self, formula: mfotl.Temporal | Timed | mfotl.TemporalMatch, low: int, high: int) -> tuple[int, int]:
        """The time-points that a temporal operator may look at from a range of them."""
        from hamlet.why.proofs.truth import is_past

        points = self._truths.points
        if isinstance(formula, mfotl.Temporal) and formula.operator in ("PREV", "NEXT"):
            return max(low - 1, 0), min(high + 1, points.last)
        bounds = formula.interval.ticks(points.per_second)
        if is_past(formula):
            return points.before(low, 0, bounds[1])[0], high
        return low, points.behind(high, 0, bounds[1])[1]

    def _reaches(self, formula: mfotl.Formula, scope: Scope) -> bool:
        """Whether a formula reads other time-points."""
        if isinstance(
            formula, mfotl.Temporal | mfotl.Since | mfotl.Until | mfotl.Trigger | mfotl.Release | mfotl.TemporalMatch
        ):
            return True
        if isinstance(formula, mfotl.Predicate) and (formula.name, len(formula.arguments)) in scope.names:
            return True
        return isinstance(formula, mfotl.Let) or any(self._reaches(child, scope) for child in mfotl.children(formula))

    # ---------------------------------------------------------------------------------------- aggregations

    def aggregated(self, formula: mfotl.Aggregation, v: Valuation, scope: Scope, low: int, high: int) -> Iterator[Run]:
        """The values of an aggregation."""
        for point in range(low, high + 1):
            value, known = self.aggregate(formula, {name: v[name] for name in formula.groups}, scope, point)
            yield point, point, _equals(v[formula.result], value) if known else None

    def aggregate(self, formula: mfotl.Aggregation, groups: Valuation, scope: Scope, point: int) -> tuple[Any, bool]:
        """What an aggregation gives for a group, None for no row; and whether that is known."""
        names = [name for name in self._truths.free(formula.body) if name not in groups]
        ((_, _, cells),) = self.split(formula.body, names, groups, scope, point, point)
        values = []
        for cell in cells:
            full = {**groups, **cell}
            holds: Three = self._truths.now(formula.body, full, scope, point)
            if holds is False:
                continue
            if holds is None or any(isinstance(each, Others) for each in full.values()):
                return None, False
            values.append(full[formula.variable])
        if not values and groups:
            return None, True
        if not values:
            kind = kind_of(formula.variable, formula.body, scope, self._truths.signature)
            return of_nothing(formula, kind), True
        return aggregate_of(formula.operator, values), True


def _equals(wanted: Any, value: Any) -> bool | None:
    if value is None:
        return False
    if isinstance(wanted, Others):
        return None if wanted.has(value) else False
    return typed([wanted]) == typed([value])


def of_nothing(formula: mfotl.Aggregation, kind: str) -> Any:
    """What an aggregation without groups gives for no valuation."""
    if formula.operator == "CNT":
        return 0
    if formula.operator in ("AVG", "MED"):
        return 0.0
    if formula.operator == "SUM":
        return 0.0 if kind == "float" else 0
    return {"int": 0, "string": "", "float": math.inf if formula.operator == "MIN" else -math.inf}.get(kind, 0)


def aggregate_of(operator: str, values: list[Any]) -> Any:
    """The aggregate of the values of satisfying valuations, one at least."""
    if operator == "CNT":
        return len(values)
    if operator in ("MIN", "MAX"):
        return min(values) if operator == "MIN" else max(values)
    if operator == "MED":
        ordered = sorted(values)
        one, two = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
        return float(one) if one is two else float((Fraction(one) + Fraction(two)) / 2)
    total = math.fsum(values) if isinstance(values[0], float) else sum(values)
    return total if operator == "SUM" else total / len(values)


def kind_of(name: str, formula: mfotl.Formula, scope: Scope, signature: Signature) -> str:
    """The type of a variable, by the predicates, aggregations and constants that give it values."""
    match formula:
        case mfotl.Predicate(predicate, arguments):
            key = predicate, len(arguments)
            for place, each in enumerate(arguments):
                if isinstance(each, mfotl.Variable) and each.name == name:
                    if key in scope.names:
                        let, outer = scope.names[key]
                        return kind_of(let.parameters[place], let.definition, outer, signature)
                    declared = signature.get(*key) or BUILT_IN.get(key)
                    return declared.types[place] if declared else ""
            return ""
        case mfotl.Comparison(_, left, right):
            for one, two in ((left, right), (right, left)):
                if (
                    isinstance(one, mfotl.Variable)
                    and one.name == name
                    and not any(True for _ in mfotl.term_variables(two))
                ):
                    return type_of(two, {})
            return ""
        case mfotl.Aggregation(result, operator, variable, _, body) if result == name:
            given = {"CNT": "int", "AVG": "float", "MED": "float"}
            return given.get(operator) or kind_of(variable, body, scope, signature)
        case mfotl.Let(body=body):
            return kind_of(name, body, scope.with_let(formula), signature)
    return next((found for each in mfotl.children(formula) if (found := kind_of(name, each, scope, signature))), "")


def predicates(formula: mfotl.Formula) -> set[tuple[str, int]]:
    """The predicates of a formula, by name and arity."""
    own = {(formula.name, len(formula.arguments))} if isinstance(formula, mfotl.Predicate) else set()
    return own.union(*(predicates(child) for child in mfotl.children(formula)))


def parameters_of(let: mfotl.Let, formula: mfotl.Predicate, v: Valuation) -> tuple[Cell | None, tuple[str, ...]]:
    """The values of a LET's parameters at a use of its name, None where one has no value; those that are open.

    Of two parameters that one anonymous variable names, the second takes the first one's name.
    """
    inner: Cell = {}
    free: list[str] = []
    for parameter, each in zip(let.parameters, formula.arguments, strict=True):
        if isinstance(each, mfotl.Variable) and mfotl.is_anonymous(each.name):
            free.append(parameter)
            continue
        value = value_of(each, v)
        if isinstance(value, Unknown):
            return None, ()
        inner[parameter] = value
    return inner, tuple(free)


def _pieces(runs: Sequence[Sequence[Run]], low: int, high: int) -> Iterator[tuple[int, int]]:
    starts = sorted({low, *(first for each in runs for first, _, _ in each if low < first <= high)})
    for place, start in enumerate(starts):
        yield start, starts[place + 1] - 1 if place + 1 < len(starts) else high


def _value(runs: Sequence[Run], point: int) -> bool | None:
    from hamlet.why.proofs.points import at

    return at(runs, point)


__all__ = ["Cell", "Cells", "aggregate_of", "of_nothing", "parameters_of", "predicates"]
