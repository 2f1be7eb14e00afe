"""A second checker of evidence, by brute force and by nothing but the definitions; for small cases only.

It shares no code with `hamlet.checker` and `hamlet.why`. The steps of a row's trends are made from the list of all
trends that the oracle finds; a node of a proof is looked at for every time-point and every value, with the claims of
its children for what it reads and all else unknown.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from hamlet.language import query as q
from hamlet.policies.syntax import formula as f
from hamlet.policies.syntax import regex as r

Marks = frozenset[Any]
Three = bool | None
_NO_MARKS: Marks = frozenset()
_FAR = 10**9

# ------------------------------------------------------------------------------------------------ words


class Words:
    """The words of a pattern, as positions and what may follow them, with the negations of each gap (Glushkov 1961)."""

    def __init__(self, pattern: Any) -> None:
        self.variables: list[str] = []
        self.follow: dict[int, set[tuple[Marks, int]]] = {}
        self.empty, self.first, self.last = self._of(pattern)
        self._kinds: dict[frozenset[int], int] = {}

    def _of(self, pattern: Any) -> tuple[set[Marks], set[tuple[Marks, int]], set[tuple[int, Marks]]]:
        match pattern:
            case q.Atom():
                self.variables.append(pattern.variable)
                place = len(self.variables) - 1
                self.follow[place] = set()
                return set(), {(_NO_MARKS, place)}, {(place, _NO_MARKS)}
            case q.Negation(body):
                return {frozenset([body])}, set(), set()
            case q.Alternation(branches):
                parts = [self._of(each) for each in branches]
                return tuple(set().union(*sides) for sides in zip(*parts, strict=True))  # type: ignore[return-value]
            case q.Sequence(parts):
                found = {_NO_MARKS}, set(), set()
                for part in parts:
                    found = self._joined(found, self._of(part))
                return found
            case q.Repetition(body, low, high):
                found = {_NO_MARKS}, set(), set()
                for _ in range(low):
                    found = self._joined(found, self._of(body))
                if high is None:
                    return self._joined(found, self._starred(body))
                more: Any = {_NO_MARKS}, set(), set()
                for _ in range(high - low):
                    empty, first, last = self._joined(self._of(body), more)
                    more = {_NO_MARKS} | empty, first, last
                return self._joined(found, more)
        raise AssertionError(pattern)

    def _joined(self, one: Any, two: Any) -> Any:
        for place, behind in one[2]:
            self.follow[place] |= {(behind | before, after) for before, after in two[1]}
        empty = {a | b for a in one[0] for b in two[0]}
        first = one[1] | {(a | b, place) for a in one[0] for b, place in two[1]}
        last = two[2] | {(place, a | b) for place, a in one[2] for b in two[0]}
        return empty, first, last

    def _starred(self, body: Any) -> Any:
        empty, first, last = self._of(body)
        rounds = {_NO_MARKS}
        while not rounds >= {a | b for a in rounds for b in empty}:
            rounds |= {a | b for a in rounds for b in empty}
        for place, behind in last:
            self.follow[place] |= {(behind | a | before, after) for a in rounds for before, after in first}
        first = {(a | before, place) for a in rounds for before, place in first}
        last = {(place, behind | a) for a in rounds for place, behind in last}
        return rounds, first, last

    def after(self, places: frozenset[int] | None) -> dict[tuple[Marks, str], frozenset[int]]:
        """What may come next, by the gap's marks and the variable; None is the start."""
        steps = self.first if places is None else {step for place in places for step in self.follow[place]}
        found: dict[tuple[Marks, str], set[int]] = {}
        for marks, place in steps:
            found.setdefault((marks, self.variables[place]), set()).add(place)
        return {letter: frozenset(each) for letter, each in found.items()}

    def ends(self, places: frozenset[int]) -> frozenset[Marks]:
        """The marks behind the last event with which a word may end."""
        return frozenset(marks for place, marks in self.last if place in places)

    def kind(self, wanted: frozenset[int]) -> int:
        """A number for what can follow: equal for equal sets of words (Moore 1956)."""
        if not self._kinds:
            states = list(self.after(None).values())
            for state in states:
                states += [each for each in self.after(state).values() if each not in states]
            kinds: dict[frozenset[int], Any] = {state: self.ends(state) for state in states}
            for _ in states:
                asked = {
                    state: (kinds[state], frozenset((each, kinds[to]) for each, to in self.after(state).items()))
                    for state in states
                }
                numbers = {each: number for number, each in enumerate(dict.fromkeys(asked.values()))}
                kinds = {state: numbers[asked[state]] for state in states}
            self._kinds = kinds
        return self._kinds[wanted]

    def spelled(self, variables: Sequence[str]) -> list[int]:
        """What can follow behind each variable of a word; a word is spelled with one choice of negations only."""
        paths: list[tuple[frozenset[int] | None, list[int]]] = [(None, [])]
        for variable in variables:
            paths = [
                (each, [*kinds, self.kind(each)])
                for state, kinds in paths
                for (_, name), each in self.after(state).items()
                if name == variable
            ]
        (found,) = [kinds for state, kinds in paths if state is not None and self.ends(state)]
        return found


# ----------------------------------------------------------------------------------------------- trends


def steps_of(
    patterns: Sequence[Any],
    trends: Sequence[tuple[tuple[tuple[int, str], ...], Mapping[str, Any]]],
    spanned: bool,
    taken: Callable[[Sequence[tuple[int, str]]], Any],
) -> Counter[Any]:
    """The steps that trends take, as comparable values: all that evidence says of each but its place in the list.

    Parameters
    ----------
    patterns : sequence
        One pattern, or both operands of AND for the trends that are both's.
    trends : sequence of (pairs, partition)
    spanned : bool
        Whether the query has SPAN.
    taken : callable
        What a beginning has taken of what GROUP-BY names beside attributes.
    """
    words = [Words(each) for each in patterns]
    beginnings: dict[Any, set[Any]] = {}
    earlier: dict[Any, set[Any]] = {}
    finals: dict[Any, bool] = {}
    whole = {(pairs, _shown(key)) for pairs, key in trends}
    passing: Counter[Any] = Counter()
    for pairs, key in whole:
        kinds = [each.spelled([variable for _, variable in pairs]) for each in words]
        before = None
        for length, state in enumerate(zip(*kinds, strict=True), 1):
            own = pairs[:length]
            step = own[-1], key, state, own[0][0] if spanned else None, repr(taken(own))
            beginnings.setdefault(step, set()).add(own)
            earlier.setdefault(step, set()).add(before)
            finals[step] = finals.get(step, False) or length == len(pairs)
            passing[step] += 1
            before = step
    found: Counter[Any] = Counter()
    for step, all_own in beginnings.items():
        (at, variable), key = step[0], step[1]
        if finals[step]:
            assert all((own, key) in whole for own in all_own), f"a beginning is no trend: {all_own}"
        found[
            at,
            variable,
            key,
            None in earlier[step],
            frozenset(Counter(each[0] for each in earlier[step] if each is not None).items()),
            len(all_own),
            finals[step],
            passing[step],
        ] += 1
    return found


def steps_told(steps: Sequence[Mapping[str, Any]]) -> Counter[Any]:
    """The steps of evidence in the same form."""
    names = [(each["at"], each["variable"]) for each in steps]
    return Counter(
        (
            each["at"],
            each["variable"],
            _shown(each["partition"]),
            each["begins"],
            frozenset(Counter(names[before] for before in each["after"]).items()),
            int(each["count"]),
            each["ends"],
            int(each["trends"]),
        )
        for each in steps
    )


def _shown(key: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in key.items()))


# ----------------------------------------------------------------------------------------------- proofs


class Proof:
    """Checks a proof over a log of integers.

    Parameters
    ----------
    formula : Formula
        As the file has it, without ALWAYS and FORALLs where it is a policy.
    log : sequence of (int, mapping)
    nodes : sequence of dict
        With ``formula`` parsed.
    """

    def __init__(self, formula: Any, log: Sequence[Any], nodes: Sequence[Mapping[str, Any]]) -> None:
        self.nodes = nodes
        self._log = log
        last = log[-1][0]
        depth = 2 + sum(1 for _ in _all_parts(formula))
        self._times = [time for time, _ in log] + [last + _FAR * step for step in range(1, depth)]
        values = {value for _, tables in log for rows in tables.values() for row in rows for value in row}
        values |= {value for node in nodes for told in node["valuation"].values() for value in _listed(told)}
        values |= {each.value for part in _all_parts(formula) for each in _constants(part)}
        whole = {each for each in values if isinstance(each, int)}
        self._domain = sorted(whole | {max(whole, default=0) + 101, max(whole, default=0) + 202})
        self._fresh = self._domain[-2:]
        self._lets = _lets(formula)

    def check(self) -> None:
        """Assert that every node is right, needed, before those that need it, and no two claims could be one."""
        needed = {child for node in self.nodes for child in node["because"]}
        for place, node in enumerate(self.nodes):
            assert all(child < place for child in node["because"]), place
            assert place in needed or place == len(self.nodes) - 1, f"nobody needs {place}"
            below = [self.nodes[child] for child in node["because"]]
            for point in range(*_ends(node)):
                told = node["time"] if isinstance(node["time"], list) else [node["time"]]
                if point in (_ends(node)[0], _ends(node)[1] - 1):
                    time = self._log[point][0] if point < len(self._log) else None
                    assert time in told, f"node {place}: the time of {point}"
                for values in self._valuations(node["valuation"]):
                    found = self._holds(node["formula"], values, point, below)
                    assert found is node["holds"], f"node {place} at {point} for {values}: {found}"
        for one, two in itertools.combinations(range(len(self.nodes)), 2):
            a, b = self.nodes[one], self.nodes[two]
            if all(a[name] == b[name] for name in ("formula", "valuation", "holds")):
                near = _ends(a)[0] <= _ends(b)[1] and _ends(b)[0] <= _ends(a)[1]
                assert not near or self._height(two) != self._height(one), f"nodes {one} and {two} are one"

    def _height(self, place: int) -> int:
        """The longest way down; claims of one height do not need each other, as with LETPAST they may."""
        return 1 + max((self._height(child) for child in self.nodes[place]["because"]), default=-1)

    def _valuations(self, valuation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        choices = []
        for told in valuation.values():
            if not isinstance(told, dict):
                choices.append([told])
            else:
                choices.append(told["in"] if "in" in told else [v for v in self._domain if v not in told["not"]])
        for row in itertools.product(*choices):
            yield dict(zip(valuation, row, strict=True))

    def _told(self, formula: Any, values: Mapping[str, Any], point: int, below: Sequence[Any]) -> Three:
        """What the children say."""
        for node in below:
            first, end = _ends(node)
            if node["formula"] != formula or not first <= point < end:
                continue
            if all(_has(told, values[name]) for name, told in node["valuation"].items()):
                return bool(node["holds"])
        return None

    def _holds(self, formula: Any, v: Mapping[str, Any], i: int, below: Sequence[Any]) -> Three:
        """The definition of the operator, three-valued."""

        def told(part: Any, at: int, more: Mapping[str, Any] | None = None) -> Three:
            return self._told(part, v if more is None else {**v, **more}, at, below)

        match formula:
            case f.Truth(value):
                return value
            case f.Comparison(operator, left, right):
                one, two = _term(left, v), _term(right, v)
                return {"=": one == two, "<": one < two, ">": one > two, "<=": one <= two, ">=": one >= two}[operator]
            case f.Predicate(name, arguments):
                if (name, len(arguments)) in self._lets:
                    return self._of_let(formula, v, i, below)
                rows = self._log[i][1].get((name, len(arguments)), ()) if i < len(self._log) else ()
                return any(
                    all(_anything(a) or _term(a, v) == value for a, value in zip(arguments, row, strict=True))
                    for row in rows
                )
            case f.Let():
                return told(formula.body, i)
            case f.Not(body):
                return _not(told(body, i))
            case f.And(left, right):
                return _and([told(left, i), told(right, i)])
            case f.Or(left, right):
                return _or([told(left, i), told(right, i)])
            case f.Implies(left, right):
                return _or([_not(told(left, i)), told(right, i)])
            case f.Equiv(left, right):
                one, two = told(left, i), told(right, i)
                return None if one is None or two is None else one is two
            case f.Exists(names, body) | f.Forall(names, body):
                rows = itertools.product(self._domain, repeat=len(names))
                found = [told(body, i, dict(zip(names, row, strict=True))) for row in rows]
                return _or(found) if isinstance(formula, f.Exists) else _and(found)
            case f.Aggregation():
                return self._aggregate(formula, v, i, below)
            case f.Temporal("PREV" | "NEXT" as operator, interval, body):
                j = i - 1 if operator == "PREV" else i + 1
                return j >= 0 and _in(interval, abs(self._times[i] - self._times[j])) and told(body, j)
            case f.Temporal(operator, interval, body):
                past = operator in ("ONCE", "HISTORICALLY")
                found = [told(body, j) for j in self._window(i, interval, past)]
                return _or(found) if operator in ("ONCE", "EVENTUALLY") else _and(found)
            case f.Since(interval, left, right) | f.Until(interval, left, right):
                past = isinstance(formula, f.Since)
                return _or(
                    [
                        _and([told(right, j), *(told(left, k) for k in _between(i, j, past))])
                        for j in self._window(i, interval, past)
                    ]
                )
            case f.Trigger(interval, left, right) | f.Release(interval, left, right):
                past = isinstance(formula, f.Trigger)
                return _and(
                    [
                        _or([told(right, j), *(told(left, k) for k in _between(i, j, past))])
                        for j in self._window(i, interval, past)
                    ]
                )
            case f.TemporalMatch(operator, interval, regex):
                past = operator == "MATCHP"
                found = [
                    self._matches(regex, min(i, j), max(i, j), past, told) for j in self._window(i, interval, past)
                ]
                return _or(found)
        raise AssertionError(formula)

    def _of_let(self, formula: Any, v: Mapping[str, Any], i: int, below: Sequence[Any]) -> Three:
        let = self._lets[formula.name, len(formula.arguments)]
        choices = [self._domain if _anything(each) else [_term(each, v)] for each in formula.arguments]
        rows = [dict(zip(let.parameters, row, strict=True)) for row in itertools.product(*choices)]
        return _or([self._told(let.definition, row, i, below) for row in rows])

    def _aggregate(self, formula: Any, v: Mapping[str, Any], i: int, below: Sequence[Any]) -> Three:
        names = [name for name in f.free_variables(formula.body) if name not in formula.groups]
        taken = []
        for row in itertools.product(self._domain, repeat=len(names)):
            values = {**{name: v[name] for name in formula.groups}, **dict(zip(names, row, strict=True))}
            found = self._told(formula.body, values, i, below)
            if found is None or (found and any(each in self._fresh for each in row)):
                return None
            if found:
                taken.append(values[formula.variable])
        if not taken and formula.groups:
            return False
        taken.sort()
        middle = taken[(len(taken) - 1) // 2] + taken[len(taken) // 2] if taken else 0
        known = {
            "CNT": len(taken),
            "SUM": sum(taken),
            "MIN": taken[0] if taken else 0,
            "MAX": taken[-1] if taken else 0,
            "AVG": sum(taken) / len(taken) if taken else 0.0,
            "MED": middle / 2,
        }
        return bool(known[formula.operator] == v[formula.result])

    def _window(self, i: int, interval: Any, past: bool) -> list[int]:
        points = range(i + 1) if past else range(i, len(self._times))
        return [j for j in points if _in(interval, abs(self._times[i] - self._times[j]))]

    def _matches(self, regex: Any, low: int, high: int, past: bool, told: Callable[[Any, int], Three]) -> Three:
        match regex:
            case r.Wildcard():
                return high == low + 1
            case r.Test(part):
                return low == high and told(part, low)
            case r.Step(part):
                return high == low + 1 and told(part, high if past else low)
            case r.Alternation(one, two):
                return _or([self._matches(each, low, high, past, told) for each in (one, two)])
            case r.Concatenation(one, two):
                return _or(
                    [
                        _and([self._matches(one, low, m, past, told), self._matches(two, m, high, past, told)])
                        for m in range(low, high + 1)
                    ]
                )
            case r.Star(body):
                if low == high:
                    return True
                return _or(
                    [
                        _and([self._matches(body, low, m, past, told), self._matches(regex, m, high, past, told)])
                        for m in range(low + 1, high + 1)
                    ]
                )
        raise AssertionError(regex)


def _and(values: Sequence[Three]) -> Three:
    return False if False in values else None if None in values else True


def _or(values: Sequence[Three]) -> Three:
    return True if True in values else None if None in values else False


def _not(value: Three) -> Three:
    return None if value is None else not value


def _between(i: int, j: int, past: bool) -> range:
    return range(j + 1, i + 1) if past else range(i, j)


def _in(interval: Any, distance: int) -> bool:
    low, high = interval.ticks(1)
    return bool(distance >= low and (high is None or distance <= high))


def _ends(node: Mapping[str, Any]) -> tuple[int, int]:
    point = node["time_point"]
    return (point[0], point[1] + 1) if isinstance(point, list) else (point, point + 1)


def _listed(told: Any) -> list[Any]:
    return [value for values in told.values() for value in values] if isinstance(told, dict) else [told]


def _has(told: Any, value: Any) -> bool:
    if not isinstance(told, dict):
        return bool(told == value)
    return value in told["in"] if "in" in told else value not in told["not"]


def _anything(term: Any) -> bool:
    return isinstance(term, f.Variable) and term.name.startswith("_")


def _term(term: Any, v: Mapping[str, Any]) -> Any:
    match term:
        case f.Variable(name):
            return v[name]
        case f.Constant(value):
            return value
        case f.Negative(inner):
            return -_term(inner, v)
        case f.Arithmetic("+", left, right):
            return _term(left, v) + _term(right, v)
        case f.Arithmetic("-", left, right):
            return _term(left, v) - _term(right, v)
        case f.Arithmetic("*", left, right):
            return _term(left, v) * _term(right, v)
        case f.Arithmetic(operator, left, right) if isinstance(one := _term(left, v), int):
            two = _term(right, v)
            quotient = math.trunc(Fraction(one, two)) if two else 0
            return quotient if operator == "/" else one - quotient * two if two else 0
    raise NotImplementedError(term)


def _all_parts(formula: Any) -> Iterator[Any]:
    yield formula
    for each in f.children(formula):
        yield from _all_parts(each)


def _constants(formula: Any) -> Iterator[Any]:
    terms = list(getattr(formula, "arguments", ()))
    terms += [each for name in ("left", "right") if not f.children(formula) for each in [getattr(formula, name, None)]]
    while terms:
        term = terms.pop()
        if isinstance(term, f.Constant):
            yield term
        terms += [getattr(term, name) for name in ("left", "right", "term", "argument") if hasattr(term, name)]


def _lets(formula: Any) -> dict[tuple[str, int], Any]:
    found = {(each.name, len(each.parameters)): each for each in _all_parts(formula) if isinstance(each, f.Let)}
    if len(found) < sum(isinstance(each, f.Let) for each in _all_parts(formula)):
        raise NotImplementedError("one name is defined twice")
    return found
