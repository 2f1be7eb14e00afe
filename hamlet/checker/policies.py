"""Checks proofs of policies: every node by the definition of its operator, with its children's claims put in.

All else is unknown, so a node is right where its value follows from what its children claim. The formula is the one of
the file; a node speaks of an *occurrence*, a sub-formula at its place among the names that LET defines.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from hamlet.checker.clocks import same_time
from hamlet.checker.digits import whole
from hamlet.checker.errors import EvidenceError
from hamlet.checker.sets import Ranges, Sets, Typed, Values, cells, covers, typed
from hamlet.checker.terms import BUILT_IN, Key, NoValue, aggregate, compare, kinds_of, pattern, term_value
from hamlet.errors import HamletError
from hamlet.policies.syntax import formula as f
from hamlet.policies.syntax import regex as r
from hamlet.policies.syntax.columns import ROWS, VERDICTS, column_names
from hamlet.policies.syntax.parser import parse_formula

Point = tuple[int, Mapping[Key, set[tuple[Any, ...]]]]
_FAR = 1 << 100


@dataclass(eq=False)
class Occurrence:
    """A sub-formula at its place."""

    formula: Any
    types: dict[str, str]
    free: tuple[str, ...]
    parts: list[Occurrence] = field(default_factory=list)
    let: tuple[Any, list[Occurrence]] | None = None  # of a predicate that LET defines: the LET and its definition


@dataclass(eq=False)
class Claim:
    """A node of the evidence."""

    place: int
    low: int
    high: int
    sets: Sets
    holds: bool
    because: list[Claim]
    proves: set[int] = field(default_factory=set)  # ids of the occurrences that it is right about


class Checker:
    """Checks proofs over one log.

    Parameters
    ----------
    formula : Formula
        As the file has it.
    signature : mapping of (str, int) to sequence of str
        The types of the predicates' arguments.
    log : sequence of (int, mapping)
        Time-points: the time-stamp in ticks, and for each predicate, by name and arity, its tuples.
    shown : callable
        A time-stamp as evidence writes it.
    per_second : int
        Ticks of the stream's time.
    open_end : bool
        Whether nothing is known behind the last time-point.
    """

    def __init__(
        self,
        formula: Any,
        signature: Mapping[Key, Sequence[str]],
        log: Sequence[Point],
        shown: Callable[[int], Any] = lambda time: time,
        per_second: int = 1,
        open_end: bool = False,
    ) -> None:
        self._signature = signature
        self._log = log
        self._shown = shown
        self._per_second = per_second
        self._open_end = open_end
        self.formula, self.is_policy = _stripped(formula)
        self._by_formula: dict[Any, list[Occurrence]] = {}
        self.root = self._occurrence(self.formula, {}, {})
        last = log[-1][0] if log else 0
        more = 1 if open_end else _depth(self.formula) + 2
        self._times = [time for time, _ in log]
        self._times += [last + (0 if open_end else _FAR * step) for step in range(1, more + 1)]

    # ----------------------------------------------------------------------------------- the file's formula

    def _occurrence(self, formula: Any, types: Mapping[str, str], lets: Mapping[Key, Any]) -> Occurrence:
        free = f.free_variables(formula)
        known = {**types, **kinds_of(formula, self._signature, lets)}
        found = Occurrence(formula, known, free)
        self._by_formula.setdefault(self._plain(formula), []).append(found)
        if isinstance(formula, f.Let):
            defined: list[Occurrence] = []  # of LETPAST, the definition is what its own name stands for
            inner = {**lets, (formula.name, len(formula.parameters)): (formula, defined)}
            own = inner if isinstance(formula, f.LetPast) else lets
            defined.append(self._occurrence(formula.definition, {}, own))
            found.parts = [self._occurrence(formula.body, known, inner)]
        elif isinstance(formula, f.Predicate):
            found.let = lets.get((formula.name, len(formula.arguments)))
            found.parts = [] if found.let is None else found.let[1]
        else:
            below = dict(known)
            if isinstance(formula, f.Aggregation):
                below = {name: kind for name, kind in known.items() if name in formula.groups}
            found.parts = [self._occurrence(each, below, lets) for each in f.children(formula)]
        return found

    def _plain(self, formula: Any) -> Any:
        """A formula with intervals as ticks, so that ``1m`` is 60 s."""
        if isinstance(formula, f.Interval):
            return formula.ticks(self._per_second)
        if is_dataclass(formula) and not isinstance(formula, type):
            own = tuple(self._plain(getattr(formula, each.name)) for each in fields(formula) if each.compare)
            return type(formula).__name__, *((type(one), one) if isinstance(one, int | float) else one for one in own)
        return tuple(map(self._plain, formula)) if isinstance(formula, tuple) else formula

    # ------------------------------------------------------------------------------------------- evidence

    def check(self, evidence: Mapping[str, Any], negate: bool = False) -> None:
        """Accept evidence, or say what is wrong with it.

        Raises
        ------
        EvidenceError
        """
        if evidence.get("kind") != "proof":
            raise EvidenceError(f"evidence for a policy is a proof, not {evidence.get('kind')!r}")
        nodes = evidence.get("nodes")
        if not isinstance(nodes, list) or not nodes:
            raise EvidenceError("a proof has nodes")
        claims: list[Claim] = []
        needed: set[int] = set()
        for place, node in enumerate(nodes):
            claim, occurrences = self._read(place, node, claims)
            needed.update(each.place for each in claim.because)
            self._right(claim, occurrences)
            claims.append(claim)
        for place in range(len(nodes) - 1):
            if place not in needed:
                raise EvidenceError("no later node needs it", place)
        self._conclusion(evidence, claims[-1], negate)

    def _read(self, place: int, node: Any, claims: list[Claim]) -> tuple[Claim, list[Occurrence]]:
        try:
            text, holds, because = node["formula"], node["holds"], node["because"]
            point, time, valuation = node["time_point"], node["time"], node["valuation"]
        except (KeyError, TypeError):
            raise EvidenceError("a node has formula, time_point, time, valuation, holds and because", place) from None
        try:
            occurrences = self._by_formula.get(self._plain(parse_formula(text, "evidence")[0]), [])
        except (HamletError, TypeError, AttributeError):
            raise EvidenceError(f"{text!r} is no formula", place) from None
        if not occurrences:
            raise EvidenceError(f"the file has no sub-formula {text}", place)
        if not isinstance(holds, bool):
            raise EvidenceError("holds is true or false", place)
        low, high = self._range(place, point, time)
        if not isinstance(because, list) or any(
            not isinstance(each, int) or isinstance(each, bool) or not 0 <= each < place for each in because
        ):
            raise EvidenceError("because names nodes before this one", place)
        if not isinstance(valuation, dict) or set(valuation) != set(occurrences[0].free):
            raise EvidenceError(f"the valuation is of {', '.join(occurrences[0].free) or 'no variable'}", place)
        kinds = occurrences[0].types
        sets = {name: _values(each, kinds.get(name, ""), place) for name, each in valuation.items()}
        return Claim(place, low, high, sets, holds, [claims[each] for each in because]), occurrences

    def _range(self, place: int, point: Any, time: Any) -> tuple[int, int]:
        ends = point if isinstance(point, list) else [point, point]
        times = time if isinstance(point, list) else [time, time]
        whole = all(isinstance(each, int) and not isinstance(each, bool) for each in ends)
        if len(ends) != 2 or not whole or not 0 <= ends[0] <= ends[1]:
            raise EvidenceError("time_point is a number, or the first and the last of a range", place)
        if ends[1] >= (len(self._log) if self._open_end else len(self._times)):
            raise EvidenceError(f"time-point {ends[1]} is farther than the formula can look", place)
        for each, told in zip(ends, times if isinstance(times, list) and len(times) == 2 else [time] * 2, strict=True):
            right = self._shown(self._times[each]) if each < len(self._log) else None
            if not same_time(told, right):
                raise EvidenceError(f"time-point {each} has the time {right}, not {told}", place)
        return ends[0], ends[1]

    def _conclusion(self, evidence: Mapping[str, Any], claim: Claim, negate: bool) -> None:
        row = evidence.get("row")
        if not isinstance(row, dict) or id(self.root) not in claim.proves:
            raise EvidenceError("the last node is the formula of the file", claim.place)
        if claim.low != claim.high:
            raise EvidenceError("the last node is at the row's time-point", claim.place)
        columns = column_names(self.root.free, VERDICTS)
        of_verdicts = row.keys() >= {"offset", "verdict", *columns}
        if not of_verdicts:
            columns = column_names(self.root.free, ROWS)
        if unknown := row.keys() - {*(VERDICTS if of_verdicts else ROWS), *columns}:
            raise EvidenceError(f"rows have no column {min(unknown)}", claim.place)
        point = row.get("time_point")
        if not of_verdicts and (point != claim.low or isinstance(point, bool)):
            raise EvidenceError("the last node is at the row's time-point", claim.place)
        time = self._shown(self._times[claim.low]) if claim.low < len(self._log) else None
        if "time" in row and time is not None and not same_time(row["time"], time):
            raise EvidenceError(f"the row's time is {time}", claim.place)
        for name, column in zip(self.root.free, columns, strict=True):
            told = row.get(column)
            if claim.sets[name].others or claim.sets[name].values != {_typed(told, self.root.types.get(name, ""))}:
                raise EvidenceError(f"the row's {name} is {told!r}, that of the last node is another", claim.place)
        if of_verdicts:
            offset = claim.low - bisect_left(self._times, self._times[claim.low])
            same_as = row["verdict"] is None and "same_as_time" in row
            if row["offset"] != offset or "time" not in row:
                raise EvidenceError(f"the row's offset is {offset}", claim.place)
            if evidence.get("holds") is not (same_as or row["verdict"] is claim.holds):
                raise EvidenceError("the verdict is not what the last node claims", claim.place)
        elif evidence.get("holds") is not (claim.holds is not (self.is_policy or negate)):
            raise EvidenceError("holds is not what the last node shows", claim.place)

    # -------------------------------------------------------------------------------------------- one node

    def _right(self, claim: Claim, occurrences: Iterable[Occurrence]) -> None:
        reason = ""
        for occurrence in occurrences:
            try:
                self._check_node(claim, occurrence)
            except EvidenceError as error:
                reason = reason or error.reason
                continue
            claim.proves.add(id(occurrence))
        if not claim.proves:
            raise EvidenceError(reason, claim.place)

    def _check_node(self, claim: Claim, occurrence: Occurrence) -> None:
        for child in claim.because:
            if not any(id(part) in child.proves for part in occurrence.parts):
                raise EvidenceError(f"node {child.place} is no operand of the formula", claim.place)
        mentioned: dict[str, set[Typed]] = {}
        rename = _renaming(occurrence)
        for child in claim.because:
            for name, values in child.sets.items():
                for outer in rename(name):
                    mentioned.setdefault(outer, set()).update(values.values)
        for cell in cells(claim.sets, mentioned):
            for point in range(claim.low, claim.high + 1):
                found = self._value(claim, occurrence, cell, point, mentioned)
                if found is not claim.holds:
                    told = "the opposite follows" if found is not None else "it does not follow from its children"
                    raise EvidenceError(
                        f"{'true' if claim.holds else 'false'} at time-point {point}, but {told}", claim.place
                    )

    def _told(self, claim: Claim, part: Occurrence, cell: Sets, holds: bool) -> Ranges:
        """Where the children claim that an operand holds, or that it fails, for a cell."""
        own = {name: cell[name] for name in part.free}
        return Ranges(
            (child.low, child.high)
            for child in claim.because
            if child.holds is holds and id(part) in child.proves and covers(child.sets, own)
        )

    def _at(self, claim: Claim, part: Occurrence, cell: Sets, point: int) -> bool | None:
        if self._told(claim, part, cell, True).has(point):
            return True
        return False if self._told(claim, part, cell, False).has(point) else None

    def _value(
        self, claim: Claim, occurrence: Occurrence, cell: Sets, i: int, mentioned: Mapping[str, set[Typed]]
    ) -> bool | None:
        def now(place: int) -> bool | None:
            return self._at(claim, occurrence.parts[place], cell, i)

        match occurrence.formula:
            case f.Truth(value):
                return bool(value)
            case f.Comparison() | f.Substring() | f.Matches():
                return compare(occurrence.formula, cell)
            case f.Predicate():
                return self._predicate(claim, occurrence, cell, i, mentioned)
            case f.Not():
                return None if (one := now(0)) is None else not one
            case f.And():
                return _all([now(0), now(1)])
            case f.Or():
                return _any([now(0), now(1)])
            case f.Implies():
                left = now(0)
                return _any([None if left is None else not left, now(1)])
            case f.Equiv():
                left, right = now(0), now(1)
                return None if left is None or right is None else left is right
            case f.Exists(names, _) | f.Forall(names, _):
                values = self._over(claim, occurrence.parts[0], cell, names, i, mentioned)
                return _any(values) if isinstance(occurrence.formula, f.Exists) else _all(values)
            case f.Let():
                return now(0)
            case f.Aggregation():
                return self._aggregation(claim, occurrence, cell, i, mentioned)
        return self._temporal(claim, occurrence, cell, i)

    def _over(
        self,
        claim: Claim,
        part: Occurrence,
        cell: Sets,
        names: Iterable[str],
        i: int,
        mentioned: Mapping[str, set[Typed]],
    ) -> Iterator[bool | None]:
        """What children claim of a body, over all values of some variables."""
        own = dict.fromkeys((name for name in names if name in part.free), Values([], others=True))
        for more in cells(own, mentioned):
            yield self._at(claim, part, {**cell, **more}, i)

    def _predicate(
        self, claim: Claim, occurrence: Occurrence, cell: Sets, i: int, mentioned: Mapping[str, set[Typed]]
    ) -> bool | None:
        formula = occurrence.formula
        key = formula.name, len(formula.arguments)
        if occurrence.let is None:
            wanted = pattern(formula.arguments, cell)
            found: bool | None = False
            for row in self._rows(key, i):
                fit = wanted(row)
                if fit is True:
                    return True
                found = None if fit is None else found
            return found
        let, (definition,) = occurrence.let
        inner: dict[str, Values] = {}
        free = []
        for parameter, each in zip(let.parameters, formula.arguments, strict=True):
            if isinstance(each, f.Variable):
                if f.is_anonymous(each.name):
                    free.append(parameter)
                else:
                    inner[parameter] = cell[each.name]
                continue
            try:
                inner[parameter] = Values([typed(term_value(each, cell))])
            except NoValue:
                return None
        return _any(self._over(claim, definition, inner, free, i, mentioned))

    def _rows(self, key: Key, i: int) -> Iterable[tuple[Any, ...]]:
        if key in BUILT_IN:
            time = self._times[i]
            return [{"tp": (i,), "ts": (time,), "tpts": (i, time)}[key[0]]]
        return self._log[i][1].get(key, ()) if i < len(self._log) else ()

    def _aggregation(
        self, claim: Claim, occurrence: Occurrence, cell: Sets, i: int, mentioned: Mapping[str, set[Typed]]
    ) -> bool | None:
        formula, (body,) = occurrence.formula, occurrence.parts
        own = {name: cell[name] for name in formula.groups}
        names = {name: Values([], others=True) for name in body.free if name not in formula.groups}
        told = {name: values for name, values in mentioned.items() if name in names}
        taken = []
        for more in cells(names, told):
            holds = self._at(claim, body, {**own, **more}, i)
            if holds is None:
                return None
            if holds:
                try:
                    rows = {**own, **more}
                    taken.append({name: rows[name].single for name in body.free}[formula.variable])
                except ValueError:
                    return None  # it holds for infinitely many
        if not taken and formula.groups:
            return False
        value = aggregate(formula.operator, taken, body.types.get(formula.variable, "int"))
        wanted = cell[formula.result]
        if not wanted.others and len(wanted.values) == 1:
            return wanted.has(typed(value)) or _near(formula.operator, wanted, value)
        return None if wanted.has(typed(value)) else False

    # -------------------------------------------------------------------------------------------- temporal

    def _window(self, i: int, interval: Any, past: bool) -> tuple[int, int]:
        """The time-points of an interval, first > last for none."""
        low, high = interval.ticks(self._per_second)
        time = self._times[i]
        if past:
            return (0 if high is None else bisect_left(self._times, time - high)), min(
                i, bisect_right(self._times, time - low) - 1
            )
        first = max(i, bisect_left(self._times, time + low))
        last = len(self._times) - 1 if high is None else bisect_right(self._times, time + high) - 1
        if self._open_end and (high is None or time + high >= self._times[-1]):
            return min(first, len(self._times) - 1), len(self._times) - 1
        return first, last

    def _temporal(self, claim: Claim, occurrence: Occurrence, cell: Sets, i: int) -> bool | None:
        formula, parts = occurrence.formula, occurrence.parts
        match formula:
            case f.Temporal("PREV" | "NEXT" as operator, interval, _):
                j = i - 1 if operator == "PREV" else i + 1
                if j < 0:
                    return False
                if self._open_end and j >= len(self._log):
                    return None
                low, high = interval.ticks(self._per_second)
                if j >= len(self._times):
                    return None
                distance = abs(self._times[i] - self._times[j])
                if distance < low or (high is not None and distance > high):
                    return False
                return self._at(claim, parts[0], cell, j)
            case f.Temporal(operator, interval, _):
                first, last = self._window(i, interval, operator in ("ONCE", "HISTORICALLY"))
                some = operator in ("ONCE", "EVENTUALLY")
                if self._told(claim, parts[0], cell, some).meeting(first, last):
                    return some
                return (not some) if self._told(claim, parts[0], cell, not some).cover(first, last) else None
            case f.Since(interval, _, _) | f.Until(interval, _, _):
                past = isinstance(formula, f.Since)
                return self._between(claim, parts, cell, i, self._window(i, interval, past), 1 if past else -1, True)
            case f.Trigger(interval, _, _) | f.Release(interval, _, _):
                past = isinstance(formula, f.Trigger)
                return self._between(claim, parts, cell, i, self._window(i, interval, past), 1 if past else -1, False)
            case f.TemporalMatch():
                return self._match(claim, occurrence, cell, i)
        raise EvidenceError(f"a {type(formula).__name__} cannot be checked")

    def _match(self, claim: Claim, occurrence: Occurrence, cell: Sets, i: int) -> bool | None:
        """MATCHP and MATCHF: true where a match is claimed, false where none can be."""
        formula = occurrence.formula
        past = formula.operator == "MATCHP"
        first, last = self._window(i, formula.interval, past)
        parts = {id(part.formula): part for part in occurrence.parts}

        def found(least: bool | None) -> bool:
            # behind an open end stands one time-point for all of which nothing is known: a match may go there, and on
            end = i if past else min(last, len(self._times) - 1 - (self._open_end and least is True))
            behind = self._open_end and least is None and not past and end == len(self._times) - 1
            known: dict[tuple[int, int], set[int]] = {}

            def step(start: int) -> set[int]:
                return {start + 1} if start < end else {start} if behind else set()

            def ends(regex: Any, start: int) -> set[int]:
                key = id(regex), start
                if key not in known:
                    known[key] = set(self._ends(regex, start, step, past, ends, holds))
                return known[key]

            def holds(part: Any, at: int) -> bool:
                value = self._at(claim, parts[id(part)], cell, at)
                return value is True or (value is None and least is None)

            if past:
                return any(i in ends(formula.regex, start) for start in range(first, last + 1))
            return any(first <= stop <= last for stop in ends(formula.regex, i))

        if first > last:
            return False
        return True if found(True) else None if found(None) else False

    @staticmethod
    def _ends(
        regex: Any,
        start: int,
        step: Callable[[int], set[int]],
        past: bool,
        ends: Callable[[Any, int], set[int]],
        holds: Callable[[Any, int], bool],
    ) -> Iterator[int]:
        """The time-points to which an expression matches from `start`."""
        match regex:
            case r.Wildcard():
                yield from step(start)
            case r.Step(formula) if step(start) and holds(formula, start + 1 if past else start):
                yield from step(start)
            case r.Test(formula) if holds(formula, start):
                yield start
            case r.Concatenation(left, right):
                for middle in ends(left, start):
                    yield from ends(right, middle)
            case r.Alternation(left, right):
                yield from ends(left, start) | ends(right, start)
            case r.Star(body):
                reached, todo = {start}, [start]
                while todo:
                    new = ends(body, todo.pop()) - reached
                    reached |= new
                    todo += new
                yield from reached

    def _between(
        self, claim: Claim, parts: list[Occurrence], cell: Sets, i: int, window: tuple[int, int], sign: int, yes: bool
    ) -> bool | None:
        """SINCE (sign 1) and UNTIL (-1), over time-points counted away from the one that asks.

        TRIGGER and RELEASE are their opposites over the opposites of both sides: `yes` is false.
        """

        def away(ranges: Ranges) -> Ranges:
            return Ranges(tuple(sorted((sign * (i - low), sign * (i - high)))) for low, high in ranges.ranges)  # type: ignore[misc]

        near, far = sorted((sign * (i - window[0]), sign * (i - window[1])))
        if window[0] > window[1]:
            return not yes
        left, right = parts
        holding = away(self._told(claim, left, cell, yes))
        for low, high in away(self._told(claim, right, cell, yes)).meeting(near, far):
            if low <= high and holding.cover(0, low - 1):
                return yes
        failing = away(self._told(claim, right, cell, not yes))
        broken = away(self._told(claim, left, cell, not yes)).meeting(0, far)
        end = min(far, broken[0][0]) if broken else far
        return not yes if end < near or failing.cover(near, end) else None


# ------------------------------------------------------------------------------------------------- helpers


def _all(values: Iterable[bool | None]) -> bool | None:
    found: bool | None = True
    for each in values:
        if each is False:
            return False
        found = None if each is None else found
    return found


def _any(values: Iterable[bool | None]) -> bool | None:
    opposite = _all(None if each is None else not each for each in values)
    return None if opposite is None else not opposite


def _near(operator: str, wanted: Values, value: Any) -> bool:
    """Whether a float differs by rounding only: sums of floats depend on their order."""
    ((kind, told),) = wanted.values
    if operator not in ("SUM", "AVG", "MED") or kind is not float or not isinstance(value, float):
        return False
    return isinstance(told, float) and math.isclose(told, value, rel_tol=1e-9)


def _stripped(formula: Any) -> tuple[Any, bool]:
    """A policy without its unbounded ALWAYS and the FORALLs below it, and whether it was one."""
    if isinstance(formula, f.Let):
        body, found = _stripped(formula.body)
        return (replace(formula, body=body), True) if found else (formula, False)
    if not isinstance(formula, f.Temporal) or formula.operator != "ALWAYS":
        return formula, False
    if formula.interval.ticks() != (0, None):
        return formula, False
    body = formula.body
    while isinstance(body, f.Forall):
        body = body.body
    return body, True


def _renaming(occurrence: Occurrence) -> Callable[[str], list[str]]:
    """For a variable of a child the variables of the node whose values it tells apart."""
    if occurrence.let is None:
        return lambda name: [name]
    let, _ = occurrence.let
    named = {
        parameter: [each.name, parameter] if isinstance(each, f.Variable) else [parameter]
        for parameter, each in zip(let.parameters, occurrence.formula.arguments, strict=True)
    }
    return lambda name: named.get(name, [name])


def _values(told: Any, kind: str, place: int) -> Values:
    if isinstance(told, dict):
        if len(told) != 1 or not isinstance(values := told.get("in", told.get("not")), list):
            raise EvidenceError("a valuation has a value, {'in': [...]} or {'not': [...]}", place)
        found = Values([_typed(each, kind) for each in values], others="not" in told)
    else:
        found = Values([_typed(told, kind)])
    if found.empty and not found.others:
        raise EvidenceError("a claim about no value", place)
    return found


def _typed(told: Any, kind: str) -> Typed:
    """A value of JSON as one of its type."""
    if kind == "float" and not isinstance(told, bool) and isinstance(told, int | float | str):
        try:
            return typed(float(told))
        except (ValueError, OverflowError):
            return typed(told)
    if kind == "int" and isinstance(told, str) and re.fullmatch(r"-?[0-9]+", told):
        return typed(whole(told))
    return typed(told) if isinstance(told, str | int | float | bool) else typed(repr(told))


def _depth(formula: Any) -> int:
    own = isinstance(formula, f.Temporal | f.Since | f.Until | f.Trigger | f.Release | f.TemporalMatch)
    below = [_depth(child) for child in f.children(formula)]
    return own + (sum(below) if isinstance(formula, f.Let) else max(below, default=0))
