"""Result rows of queries against the steps of their trends: aggregates, expressions, HAVING, for the checker."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hamlet.checker.conditions import compare, kind
from hamlet.checker.errors import EvidenceError
from hamlet.language import query as q

_LARGEST = 1 << 63
ANY: Any = object()  # of a group, for all values; of a row, for one that steps do not give


class Unchecked(Exception):
    """A value that cannot be computed from steps: of some pairs, of distinct values by a sketch, of times."""


def json_of(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return value if -_LARGEST <= value < _LARGEST else _digits(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else "nan" if value != value else "inf" if value > 0 else "-inf"
    if isinstance(value, datetime.datetime):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    return str(value)


def _digits(number: int) -> str:
    if abs(number) < 10**4000:
        return str(number)
    head, tail = divmod(abs(number), 10**4000)
    return ("-" if number < 0 else "") + _digits(head) + str(tail).zfill(4000)


def check_row(
    query: Any, evidence: Mapping[str, Any], graphs: Sequence[Sequence[Any]], read: Callable[..., Any]
) -> Values | None:
    """Whether a row, or the values beside an absent one, follow from the steps.

    Returns
    -------
    Values or None
        Of a row that only TOP can have left out.

    Raises
    ------
    EvidenceError
    """
    row, holds = evidence["row"], evidence.get("holds")
    if not isinstance(holds, bool):
        raise EvidenceError("holds is true or false")
    if not row_exists(graphs):
        if holds:
            raise EvidenceError("the group has no trend, so there is no row")
        return None
    values = Values(graphs, read, evidence["group"])
    told = row if holds else evidence.get("values") or {}
    differs = False
    for item in query.items:
        if isinstance(item.value, q.Attribute | q.Taken) or not (item.column in told or item.column in row):
            continue
        try:
            right = values.of(item.expression)
        except Unchecked:
            continue
        if item.column in told and not same_value(told[item.column], right):
            raise EvidenceError(f"{item.column} is {json_of(right)}, not {told[item.column]!r}")
        if not holds and item.column in row and not same_value(row[item.column], right):
            differs = True
    passes = values.passes(query.having)
    if holds and passes is False:
        raise EvidenceError("HAVING leaves no such row")
    if holds or differs or passes is not True:
        return None
    if query.top is None:
        raise EvidenceError("the result has the row")
    return values


def row_exists(graphs: Sequence[Sequence[Any]]) -> bool:
    """Whether a group has a trend, or a pair of AND."""
    return any(step.ends for step in graphs[0]) if len(graphs) == 1 else _pairs(graphs) > 0


def ranks(top: Any, one: Values, two: Values) -> bool:
    """Whether TOP puts a row before another one: by value, NULL last, then by groups, NULL first."""
    try:
        values = one.of(top.by), two.of(top.by)
    except Unchecked:
        return True
    if compare("=", *values) is False:
        return compare("<" if top.ascending else ">", *values) is True
    if values != (None, None) and None in values:
        return values[1] is None
    for pair in zip(one.group.values(), two.group.values(), strict=True):
        if compare("=", *pair) is not True and pair != (None, None):
            return pair[0] is None or (pair[1] is not None and compare("<", *pair) is not False)
    return False


def _pairs(graphs: Sequence[Sequence[Any]]) -> int:
    """How many unordered pairs of different trends AND has."""
    found = 0
    for own in _by_partition(graphs):
        one, two, both = (sum(step.count for step in steps if step.ends) for steps in own)
        found += one * two - both - both * (both - 1) // 2
    return found


def _by_partition(graphs: Sequence[Sequence[Any]]) -> list[list[list[Any]]]:
    """The steps of each list, partition by partition."""
    partitions = {repr(step.partition): step.partition for graph in graphs for step in graph}.values()
    return [[[step for step in graph if step.partition == each] for graph in graphs] for each in partitions]


def same_value(told: Any, right: Any) -> bool:
    """Whether a value of JSON is one that a row has."""
    shown = json_of(right)
    if isinstance(told, bool) is not isinstance(shown, bool):
        return False
    if isinstance(shown, float) and not isinstance(told, str | None):
        return math.isclose(float(told), shown, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(right, Decimal):
        return math.isclose(float(Fraction(str(told)) / Fraction(right)), 1, rel_tol=1e-9) if right else told == 0
    return bool(told == shown)


class Values:
    """The values of result expressions."""

    def __init__(self, graphs: Sequence[Sequence[Any]], read: Callable[..., Any], group: Mapping[str, Any]) -> None:
        self._graphs = graphs
        self._read = read
        self.group = group

    def passes(self, having: Any) -> bool | None:
        """Whether HAVING leaves the row, None where that is not checked."""
        try:
            return having is None or self.truth(having) is True
        except Unchecked:
            return None

    def of(self, expression: Any) -> Any:
        """The value of an expression, None for NULL."""
        match expression:
            case q.Literal(value):
                return value
            case q.Attribute(name):
                return self.group[name]
            case q.Taken():
                return self.group[expression.column]
            case q.Aggregate():
                return self._aggregate(expression)
            case q.Log2(operand):
                value = self.of(operand)
                if value is None or value <= 0:
                    return None
                return _log2(Fraction(value))
            case q.Unary(operator, operand):
                value = self._number(operand)
                return None if value is None else -value if operator == "-" else value
            case q.Binary(operator, left, right):
                return self._binary(operator, self._number(left), self._number(right))
        raise Unchecked

    def _number(self, expression: Any) -> Any:
        value = self.of(expression)
        if value is not None and kind(value) != "number":
            raise Unchecked
        return value

    def _binary(self, operator: str, one: Any, two: Any) -> Any:
        if one is None or two is None:
            return None
        if operator == "%":
            if two == 0:
                return None
            return (1 if one >= 0 else -1) * (abs(one) % abs(two))
        if operator == "/":
            if two == 0:
                return None
            try:
                return float(Fraction(one) / Fraction(two))
            except (OverflowError, ValueError):
                raise Unchecked from None
        if isinstance(one, float) or isinstance(two, float):
            try:
                one, two = float(one), float(two)
            except OverflowError:
                raise Unchecked from None
        return one + two if operator == "+" else one - two if operator == "-" else one * two

    def _aggregate(self, asked: Any) -> Any:
        if asked.events:
            return self._of_events(asked)
        if asked.variable is None:
            return self._count()
        if asked.function == "COUNT":
            return self._weighted(asked.variable, lambda _: 1)
        values = {id(step): self._read(step.event, asked.attribute) for graph in self._graphs for step in graph}
        if asked.function in ("COUNT_DISTINCT", "MIN", "MAX"):
            counted = [values[id(step)] for step in self._in_pairs() if step.variable == asked.variable]
            known = [value for value in counted if value is not None]
            if asked.function == "COUNT_DISTINCT":
                return len({(kind(value), value) for value in known})
            return None if not known else (min if asked.function == "MIN" else max)(known)
        if asked.function not in ("SUM", "AVG"):
            raise Unchecked
        taken = [values[id(step)] for graph in self._graphs for step in graph if step.variable == asked.variable]
        known = [value for value in taken if value is not None]
        if not known:
            return None
        if any(kind(value) != "number" or math.isinf(value) for value in known):
            raise Unchecked
        total = self._weighted(asked.variable, lambda step: Fraction(values[id(step)] or 0))
        count = self._weighted(asked.variable, lambda step: values[id(step)] is not None)
        try:
            if asked.function == "AVG":
                return float(total / count) if count else None
            return None if not count else float(total) if any(isinstance(v, float) for v in known) else int(total)
        except OverflowError:
            raise Unchecked from None

    def _of_events(self, asked: Any) -> Any:
        """An aggregate over the events that trends bind, each once."""
        found = {step.event.at: step.event for step in self._in_pairs() if step.variable == asked.variable}
        if asked.attribute is None:
            return len(found)
        known = [value for event in found.values() if (value := self._read(event, asked.attribute)) is not None]
        if not known:
            return None
        if asked.function in ("MIN", "MAX"):
            return (min if asked.function == "MIN" else max)(known)
        if any(kind(value) != "number" or math.isinf(value) for value in known):
            raise Unchecked
        total = sum(map(Fraction, known))
        if asked.function == "AVG":
            return float(total / len(known))
        return float(total) if any(isinstance(value, float) for value in known) else int(total)

    def _in_pairs(self) -> list[Any]:
        """The steps of all trends, or of those that are in a pair of AND: each has another trend of the other side."""
        if len(self._graphs) == 1:
            return list(self._graphs[0])
        found: list[Any] = []
        for own in _by_partition(self._graphs):
            one, two, both = (sum(step.count for step in steps if step.ends) for steps in own)
            for steps, mine, others in ((own[0], one, two), (own[1], two, one)):
                if others > 1 or others > both:
                    found += steps
                elif others and mine > 1:  # all are in pairs but the one trend that is the other side's only one
                    alone = {(step.event.at, step.variable) for step in own[2]}
                    trends = Counter[Any]()
                    for step in steps:
                        trends[step.event.at, step.variable] += step.count * step.onward
                    found += [
                        step for step in steps if trends[each := (step.event.at, step.variable)] > (each in alone)
                    ]
        return found

    def _count(self) -> int:
        if len(self._graphs) == 3:
            return _pairs(self._graphs)
        return sum(step.count for step in self._graphs[0] if step.ends)

    def _weighted(self, variable: str, weight: Callable[[Any], Any]) -> Any:
        """A sum over the steps of a variable in all trends, or in both trends of all pairs of AND."""

        def over(steps: Sequence[Any]) -> Any:
            return sum(weight(step) * step.count * step.onward for step in steps if step.variable == variable)

        if len(self._graphs) == 1:
            return over(self._graphs[0])
        found: Any = 0
        for own in _by_partition(self._graphs):
            one, two, both = (sum(step.count for step in steps if step.ends) for steps in own)
            found += two * over(own[0]) + one * over(own[1]) - (both + 1) * over(own[2])
        return found

    def truth(self, condition: Any) -> bool | None:
        """Whether HAVING is true, false or unknown."""
        match condition:
            case q.And(operands):
                found = [self.truth(each) for each in operands]
                return False if False in found else None if None in found else True
            case q.Or(operands):
                found = [self.truth(each) for each in operands]
                return True if True in found else None if None in found else False
            case q.Not(operand):
                value = self.truth(operand)
                return None if value is None else not value
            case q.Comparison(operator, left, right):
                return compare(operator, self.of(left), self.of(right))
            case q.Membership(operand, choices, negated):
                found = [compare("=", self.of(operand), self.of(each)) for each in choices]
                value = True if True in found else None if None in found else False
                return value if value is None or not negated else not value
            case q.Between(operand, low, high, negated):
                own = self.of(operand)
                found = [compare(">=", own, self.of(low)), compare("<=", own, self.of(high))]
                value = False if False in found else None if None in found else True
                return value if value is None or not negated else not value
            case q.NullTest(operand, negated):
                return (self.of(operand) is None) != negated
        raise Unchecked


def _log2(value: Fraction) -> float:
    def of(number: int) -> float:
        shift = max(number.bit_length() - 64, 0)
        return math.log2(number >> shift) + shift

    return of(value.numerator) - of(value.denominator)
