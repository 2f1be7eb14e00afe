"""Brute force for policies: the meaning of a formula, word for word, over the values that occur.

Every valuation of the free variables over the active domain is tried at every time-point. Only the syntax tree is
shared with the evaluation. Behind the last time-point of a complete log stand empty ones, each infinitely later.

Source: the semantics of metric first-order temporal logic, Basin et al. (JACM 2015) §2.2.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.regex import Alternation, Concatenation, Regex, Star, Step, Test

Point = tuple[int, Mapping[tuple[str, int], set[tuple[Any, ...]]]]
Valuation = dict[str, Any]
Values = dict[tuple[type, Any], Any]  # by type and value: 4 and 4.0 are two


class Oracle:
    """The meaning of one formula over one complete log.

    Parameters
    ----------
    formula : Formula
    log : sequence of (int, mapping)
        Time-points: the time-stamp, and for each predicate, by name and arity, its tuples.
    kind : str
        The type of what is aggregated: of nothing, sums and extrema are values of it.
    """

    def __init__(self, formula: mfotl.Formula, log: Sequence[Point], kind: str = "int") -> None:
        self.formula = formula
        self._kind = kind
        self._real = len(log)
        self._log = list(log)
        empty: Mapping[tuple[str, int], set[tuple[Any, ...]]] = {}
        last = log[-1][0] if log else 0
        far = 10**30
        for place in range(1, _depth(formula) + 2):
            self._log.append((last + place * far, empty))
        self._known: dict[Any, bool] = {}
        self._inner: dict[tuple[int, int], dict[tuple[str, int], Any]] = {}
        self._none: dict[tuple[str, int], Any] = {}
        self._domain: Values = {}
        self._extra: dict[str, Values] = {}
        self._collect()

    # ------------------------------------------------------------------------------------------- the domain

    def _collect(self) -> None:
        told = (value for _, tables in self._log for rows in tables.values() for row in rows for value in row)
        self._domain = _distinct([*told, *_constants(self.formula)])
        for _ in range(3):
            self._known.clear()
            self._results(self.formula, self._none)

    def _results(self, formula: mfotl.Formula, lets: dict[tuple[str, int], Any]) -> None:
        """Add what equations and aggregations can give to the values of their variables."""
        if isinstance(formula, mfotl.Let):
            inner = self._with(formula, lets)
            self._results(formula.definition, inner if isinstance(formula, mfotl.LetPast) else lets)
            for place, name in enumerate(formula.parameters):
                # A name of LET passes values on to the variables at its places.
                key, values = (formula.name, len(formula.parameters)), self._extra.get(name, {})
                self._passed(formula.body, key, place, values)
                if isinstance(formula, mfotl.LetPast):
                    self._passed(formula.definition, key, place, dict(values))
            self._results(formula.body, inner)
            return
        for child in mfotl.children(formula):
            self._results(child, lets)
        if isinstance(formula, mfotl.Comparison) and formula.operator == "=":
            for one, two in ((formula.left, formula.right), (formula.right, formula.left)):
                if isinstance(one, mfotl.Variable) and not isinstance(two, mfotl.Constant):
                    found = [_term(two, each) for each in self._valuations(tuple(_names(two)))]
                    self._extra.setdefault(one.name, {}).update(_distinct(found))
        if isinstance(formula, mfotl.Aggregation):
            for groups in self._valuations(formula.groups):
                for point in range(self._real + 1):
                    result = self._aggregate(formula, groups, point, lets)
                    self._extra.setdefault(formula.result, {}).update(_distinct([result]))

    def _with(self, formula: mfotl.Let, lets: dict[tuple[str, int], Any]) -> dict[tuple[str, int], Any]:
        """The names that LET has given a meaning, with this one; one dict per place, so that its id is its name."""
        made = self._inner.setdefault((id(formula), id(lets)), dict(lets))
        outer = made if isinstance(formula, mfotl.LetPast) else lets  # LETPAST's definition may use its own name
        made[formula.name, len(formula.parameters)] = formula.parameters, formula.definition, outer
        return made

    def _passed(self, formula: mfotl.Formula, key: tuple[str, int], place: int, values: Values) -> None:
        if isinstance(formula, mfotl.Predicate) and (formula.name, len(formula.arguments)) == key:
            argument = formula.arguments[place]
            if isinstance(argument, mfotl.Variable):
                self._extra.setdefault(argument.name, {}).update(values)
        for child in mfotl.children(formula):
            self._passed(child, key, place, values)

    def _valuations(self, names: Sequence[str]) -> list[Valuation]:
        values = [(self._domain | self._extra.get(name, {})).values() for name in names]
        return [dict(zip(names, row, strict=True)) for row in itertools.product(*values)]

    # -------------------------------------------------------------------------------------------- the rows

    def rows(self, names: Sequence[str] | None = None) -> list[tuple[int, int, tuple[Any, ...]]]:
        """The satisfying valuations: time-stamp, time-point and values of the free variables, in no order."""
        names = mfotl.free_variables(self.formula) if names is None else names
        found = []
        for point in range(self._real):
            for valuation in self._valuations(names):
                if self.holds(self.formula, valuation, point, self._none):
                    found.append((self._log[point][0], point, tuple(valuation[name] for name in names)))
        return found

    def holds(self, formula: mfotl.Formula, valuation: Valuation, point: int, lets: dict[tuple[str, int], Any]) -> bool:
        """Whether a valuation satisfies a formula at a time-point."""
        free = mfotl.free_variables(formula)
        key = (id(formula), point, tuple((type(valuation[name]), valuation[name]) for name in free), id(lets))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._holds(formula, {name: valuation[name] for name in free}, point, lets)
        return known

    def _holds(self, formula: mfotl.Formula, v: Valuation, i: int, lets: dict[tuple[str, int], Any]) -> bool:
        def now(part: mfotl.Formula, at: int = i, valuation: Valuation = v) -> bool:
            return self.holds(part, valuation, at, lets)

        match formula:
            case mfotl.Truth(value):
                return value
            case mfotl.Predicate():
                return self._predicate(formula, v, i, lets)
            case mfotl.Comparison(operator, left, right):
                return _compare(operator, _term(left, v), _term(right, v))
            case mfotl.Substring(left, right):
                one, two = _term(left, v), _term(right, v)
                return isinstance(one, str) and isinstance(two, str) and one in two
            case mfotl.Matches(term, pattern):
                text = _term(term, v)
                return isinstance(text, str) and re.search(pattern, text) is not None
            case mfotl.Not(body):
                return not now(body)
            case mfotl.And(left, right):
                return now(left) and now(right)
            case mfotl.Or(left, right):
                return now(left) or now(right)
            case mfotl.Implies(left, right):
                return not now(left) or now(right)
            case mfotl.Equiv(left, right):
                return now(left) == now(right)
            case mfotl.Exists(names, body):
                return any(now(body, i, {**v, **more}) for more in self._valuations(names))
            case mfotl.Forall(names, body):
                return all(now(body, i, {**v, **more}) for more in self._valuations(names))
            case mfotl.Aggregation():
                value = self._aggregate(formula, v, i, lets)
                return value is not None and _same(value, v[formula.result])
            case mfotl.Let(body=body):
                return self.holds(body, v, i, self._with(formula, lets))
        return self._temporal(formula, v, i, lets)

    def _temporal(self, formula: mfotl.Formula, v: Valuation, i: int, lets: dict[tuple[str, int], Any]) -> bool:
        def at(part: mfotl.Formula, j: int) -> bool:
            return self.holds(part, v, j, lets)

        log = self._log
        end = len(log)
        match formula:
            case mfotl.Temporal("PREV", interval, body):
                return i > 0 and _inside(log[i][0] - log[i - 1][0], interval) and at(body, i - 1)
            case mfotl.Temporal("NEXT", interval, body):
                return i + 1 < end and _inside(log[i + 1][0] - log[i][0], interval) and at(body, i + 1)
            case mfotl.Temporal("ONCE", interval, body):
                return any(_inside(log[i][0] - log[j][0], interval) and at(body, j) for j in range(i + 1))
            case mfotl.Temporal("HISTORICALLY", interval, body):
                return all(at(body, j) for j in range(i + 1) if _inside(log[i][0] - log[j][0], interval))
            case mfotl.Temporal("EVENTUALLY", interval, body):
                return any(_inside(log[j][0] - log[i][0], interval) and at(body, j) for j in range(i, end))
            case mfotl.Temporal("ALWAYS", interval, body):
                return all(at(body, j) for j in range(i, end) if _inside(log[j][0] - log[i][0], interval))
            case mfotl.Since(interval, left, right):
                return any(
                    _inside(log[i][0] - log[j][0], interval)
                    and at(right, j)
                    and all(at(left, k) for k in range(j + 1, i + 1))
                    for j in range(i + 1)
                )
            case mfotl.Until(interval, left, right):
                return any(
                    _inside(log[j][0] - log[i][0], interval) and at(right, j) and all(at(left, k) for k in range(i, j))
                    for j in range(i, end)
                )
            case mfotl.Trigger(interval, left, right):
                return all(
                    at(right, j) or any(at(left, k) for k in range(j + 1, i + 1))
                    for j in range(i + 1)
                    if _inside(log[i][0] - log[j][0], interval)
                )
            case mfotl.Release(interval, left, right):
                return all(
                    at(right, j) or any(at(left, k) for k in range(i, j))
                    for j in range(i, end)
                    if _inside(log[j][0] - log[i][0], interval)
                )
            case mfotl.TemporalMatch("MATCHP", interval, regex):
                starts = [j for j in range(i + 1) if _inside(log[i][0] - log[j][0], interval)]
                return any(i in self._ends(regex, j, at, True) for j in starts)
            case mfotl.TemporalMatch(_, interval, regex):
                return any(_inside(log[j][0] - log[i][0], interval) for j in self._ends(regex, i, at, False))
        raise TypeError(f"a {type(formula).__name__} is no formula")

    def _ends(self, regex: Regex, j: int, at: Callable[[mfotl.Formula, int], bool], past: bool) -> set[int]:
        """The time-points to which an expression matches from j."""
        after = {j + 1} if j + 1 < len(self._log) else set()
        match regex:
            case Test(formula):
                return {j} if at(formula, j) else set()
            case Step(formula):
                return {i for i in after if at(formula, i if past else j)}
            case Concatenation(left, right):
                return {i for k in self._ends(left, j, at, past) for i in self._ends(right, k, at, past)}
            case Alternation(left, right):
                return self._ends(left, j, at, past) | self._ends(right, j, at, past)
            case Star(body):
                found, todo = {j}, [j]
                while todo:
                    new = self._ends(body, todo.pop(), at, past) - found
                    found |= new
                    todo += new
                return found
        return after

    def _predicate(self, formula: mfotl.Predicate, v: Valuation, i: int, lets: dict[tuple[str, int], Any]) -> bool:
        key = formula.name, len(formula.arguments)
        wanted = [
            each.name if isinstance(each, mfotl.Variable) and mfotl.is_anonymous(each.name) else _Fixed(_term(each, v))
            for each in formula.arguments
        ]
        if key in lets:
            parameters, definition, outer = lets[key]
            free = [name for name, each in zip(parameters, wanted, strict=True) if isinstance(each, str)]
            fixed = {
                name: each.value for name, each in zip(parameters, wanted, strict=True) if isinstance(each, _Fixed)
            }
            for more in self._valuations(free):
                row = [{**fixed, **more}[name] for name in parameters]
                if _fits(wanted, row) and self.holds(definition, {**fixed, **more}, i, outer):
                    return True
            return False
        return any(_fits(wanted, row) for row in self._log[i][1].get(key, ()))

    def _aggregate(self, formula: mfotl.Aggregation, v: Valuation, i: int, lets: dict[tuple[str, int], Any]) -> Any:
        fixed = {name: v[name] for name in formula.groups}
        others = [name for name in mfotl.free_variables(formula.body) if name not in formula.groups]
        values = [
            {**fixed, **more}[formula.variable]
            for more in self._valuations(others)
            if self.holds(formula.body, {**fixed, **more}, i, lets)
        ]
        if not values:
            return None if formula.groups else self._of_nothing(formula)
        return _aggregated(formula.operator, values)

    def _of_nothing(self, formula: mfotl.Aggregation) -> Any:
        if formula.operator == "CNT":
            return 0
        if formula.operator in ("AVG", "MED"):
            return 0.0
        if self._kind == "float":
            return {"MIN": math.inf, "MAX": -math.inf}.get(formula.operator, 0.0)
        return "" if self._kind == "string" else 0


def _distinct(values: Iterable[Any]) -> Values:
    """Values without NULL, each once."""
    return {(type(value), value): value for value in values if value is not None}


class _Fixed:
    def __init__(self, value: Any) -> None:
        self.value = value


def _fits(wanted: Sequence[Any], row: Sequence[Any]) -> bool:
    named: dict[str, Any] = {}
    for each, value in zip(wanted, row, strict=True):
        if isinstance(each, _Fixed):
            if not _same(each.value, value):
                return False
        elif each != "_" and not _same(named.setdefault(each, value), value):
            return False
    return True


def _same(one: Any, two: Any) -> bool:
    return type(one) is type(two) and bool(one == two)


def _aggregated(operator: str, values: list[Any]) -> Any:
    ordered = sorted(values)
    middle = len(ordered) // 2
    match operator:
        case "CNT":
            return len(values)
        case "SUM":
            return math.fsum(values) if isinstance(values[0], float) else sum(values)
        case "AVG":
            total = math.fsum(values) if isinstance(values[0], float) else sum(values)
            return total / len(values)
        case "MIN":
            return ordered[0]
        case "MAX":
            return ordered[-1]
        case "MED":
            if len(ordered) % 2:
                return float(ordered[middle])
            return float((Fraction(ordered[middle - 1]) + Fraction(ordered[middle])) / 2)
    raise ValueError(operator)


def _inside(distance: int, interval: mfotl.Interval) -> bool:
    low, high = interval.ticks()
    return distance >= low and (high is None or distance <= high)


def _compare(operator: str, left: Any, right: Any) -> bool:
    if left is None or right is None or type(left) is not type(right):
        return False
    return bool(
        {
            "=": left == right,
            "<": left < right,
            ">": left > right,
            "<=": left <= right,
            ">=": left >= right,
        }[operator]
    )


def _term(term: mfotl.Term, v: Valuation) -> Any:
    """The value of a term, None where the types do not fit."""
    match term:
        case mfotl.Variable(name):
            return v[name]
        case mfotl.Constant(value):
            return value
        case mfotl.Negative(inner):
            value = _term(inner, v)
            return None if value is None or isinstance(value, str) else -value
        case mfotl.Call("i2f", inner):
            value = _term(inner, v)
            return float(value) if isinstance(value, int) else None
        case mfotl.Call("f2i", inner):
            value = _term(inner, v)
            return int(value) if isinstance(value, float) else None
        case mfotl.Call("i2s", inner):
            value = _term(inner, v)
            return str(value) if isinstance(value, int) else None
        case mfotl.Arithmetic(operator, left, right):
            return _arithmetic(operator, _term(left, v), _term(right, v))
    raise ValueError(f"the oracle has no {term}")


def _arithmetic(operator: str, left: Any, right: Any) -> Any:
    if left is None or right is None or type(left) is not type(right) or isinstance(left, str):
        return None
    whole = isinstance(left, int)
    if operator in ("/", "MOD") and right == 0:
        return 0 if whole else None
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return math.trunc(Fraction(left, right)) if whole else left / right
    return left - right * math.trunc(Fraction(left, right))


def _names(term: mfotl.Term) -> list[str]:
    match term:
        case mfotl.Variable(name):
            return [name]
        case mfotl.Negative(inner) | mfotl.Call(_, inner):
            return _names(inner)
        case mfotl.Arithmetic(_, left, right):
            return list(dict.fromkeys(_names(left) + _names(right)))
    return []


def _constants(formula: mfotl.Formula) -> list[Any]:
    found: list[Any] = []

    def walk(term: mfotl.Term) -> None:
        match term:
            case mfotl.Constant(value):
                found.append(value)
            case mfotl.Negative(inner) | mfotl.Call(_, inner):
                walk(inner)
            case mfotl.Arithmetic(_, left, right):
                walk(left)
                walk(right)

    todo = [formula]
    while todo:
        node = todo.pop()
        if isinstance(node, mfotl.Predicate):
            for argument in node.arguments:
                walk(argument)
        if isinstance(node, mfotl.Comparison | mfotl.Substring):
            walk(node.left)
            walk(node.right)
        todo.extend(mfotl.children(node))
    return found


def _depth(formula: mfotl.Formula) -> int:
    own = isinstance(
        formula, mfotl.Temporal | mfotl.Since | mfotl.Until | mfotl.Trigger | mfotl.Release | mfotl.TemporalMatch
    )
    below = [_depth(child) for child in mfotl.children(formula)]
    return own + (sum(below) if isinstance(formula, mfotl.Let) else max(below, default=0))
