"""Evidence for the rows of policies: a proof that the formula holds, or fails, at a time-point for a valuation.

Source: Lima et al., "Explainable Online Monitoring of Metric Temporal Logic" (TACAS 2023), and of first-order temporal
logic (TACAS 2024), for proofs made of sub-formulas at time-points.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.errors import OptionError, UnsupportedError
from hamlet.frontend.reports import Reports
from hamlet.language.schema import clock_shown
from hamlet.output.digits import integer_of
from hamlet.output.plain import json_value
from hamlet.policies.analysis.policy import Policy
from hamlet.policies.analysis.rewriting import stripped
from hamlet.policies.analysis.typecheck import check_types
from hamlet.policies.logs.source import Source, chosen_by, open_source, types_of
from hamlet.policies.options import FileOptions
from hamlet.policies.running import run
from hamlet.policies.syntax import formula as mfotl
from hamlet.policies.syntax.columns import ROWS, VERDICTS, column_names
from hamlet.policies.syntax.printing import print_formula
from hamlet.why.evidence import Evidence, only_row, same
from hamlet.why.proofs.cells import predicates
from hamlet.why.proofs.points import Key, Points, Row
from hamlet.why.proofs.prover import Node, Prover, Unproved
from hamlet.why.proofs.truth import Scope, Truths, is_past
from hamlet.why.proofs.values import Others

_SAME = ("same_as_time", "same_as_offset")
_COLUMNS = ("policy", "time", "time_point", "offset", "verdict", "same_as_time", "same_as_offset")
_NO_NAMES = Scope({})


def of_policy(
    policy: Policy,
    events: Any,
    row: Mapping[str, Any],
    *,
    negate: bool = False,
    verdicts: str = "satisfied",
    open_end: bool = False,
    **options: Any,
) -> Evidence:
    """The proof behind a row of a policy, or of its absence.

    Parameters
    ----------
    policy : Policy
    events : as of `hamlet.policies.run`
    row : mapping
        A row of the result, or enough of its columns to name one. A time-point and a value for every free variable
        name a row that the result may lack.
    negate, verdicts, open_end, **options
        Those with which the rows were made.

    Raises
    ------
    OptionError
        If several rows match, or none is named.
    """
    body, is_policy = stripped(policy.formula)
    names = mfotl.free_variables(body)
    types = check_types(body, policy.signature, Reports(policy.text, policy.source))
    columns = dict(zip(names, column_names(names, ROWS if verdicts == "satisfied" else VERDICTS), strict=True))
    given = dict(row)
    _check_columns(given, columns, policy)
    time_points = options.pop("time_points", "step")
    reading = dict(options)
    known = {name: value for name, value in options.items() if name in FileOptions.__dataclass_fields__}
    open_options = {"negate": negate, "open_end": open_end, "verdicts": verdicts, "time_points": time_points, **known}
    place = {name: value for name, value in given.items() if name not in columns.values()}
    named_point = "time_point" in place or (verdicts != "satisfied" and {"time", "offset"} <= place.keys())
    if not named_point or any(columns[name] not in given for name in names):
        found = only_row(run(policy, events, **open_options).rows(), given)
        if found is None:
            named_by = ("time_point",) if verdicts == "satisfied" else ("time", "offset")
            lacking = [each for each in (*named_by, *columns.values()) if each not in given]
            raise OptionError(
                "no row matches, and the evidence of a row that is not there needs "
                f"{', '.join(lacking)} in the row (--row), too"
            )
        given = dict(found)
        place = {name: value for name, value in given.items() if name not in columns.values()}
    filtered = chosen_by(*(options.get(name) for name in ("where", "since", "until")))
    source = open_source(
        events, policy.signature, predicates(body), time_points=time_points, filtered=filtered, **_reading(reading)
    )
    log = _Log(source, types_of(policy.signature), open_end)
    point = log.point_of(place)
    valuation = {name: _typed(given[columns[name]], types.get(name, "int")) for name in names}
    points = log.points(point, body, valuation)
    truths = Truths(points, policy.signature)
    prover = Prover(truths)
    try:
        nodes = prover.prove(body, valuation, _NO_NAMES, point - points.first)
    except Unproved:
        raise UnsupportedError(
            "there is no proof: what follows from the events seen so far does not decide the formula there"
            if open_end
            else "there is no proof: a sub-formula has another value for each of infinitely many values of a variable"
        ) from None
    holds = nodes[-1].holds
    in_result = holds is (not (is_policy or negate))
    named: dict[str, Any] = {"policy": policy.name, "time": log.shown_time(point)}
    named |= {"time_point": point} if verdicts == "satisfied" else {"offset": log.offset_of(point)}
    named |= {columns[name]: json_value(valuation[name]) for name in names}
    if verdicts != "satisfied" or (open_end and in_result):
        # a claim that follows may be in no row: of a key without events there, or before the time-point is decided
        own = only_row(run(policy, events, **open_options).rows(), named)
        if own is None:
            raise UnsupportedError(_no_row(verdicts, open_end))
        if verdicts != "satisfied":
            named["verdict"] = given["verdict"] if given.get("verdict") is not None else holds
            in_result = named["verdict"] is holds
        if verdicts == "equivalent" and own["same_as_time"] is not None:
            named |= {name: json_value(own[name]) for name in ("verdict", *_SAME)}
    data: dict[str, Any] = {"kind": "proof", "row": named, "holds": in_result}
    if open_end:
        data["open_end"] = True
    data["nodes"] = [_node(each, points, log) for each in nodes]
    return Evidence(data)


def _no_row(verdicts: str, open_end: bool) -> str:
    waiting = "the events seen so far do not decide the whole of that time-point and of those before it"
    if verdicts == "satisfied":
        return f"the result has no such row yet: {waiting}"
    begin = "the rows of a key begin with the time-points that were undecided when its first event came"
    return f"the result has no row there: {begin}" + (f", or {waiting}" if open_end else "")


def _reading(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say how the input is read."""
    known = (
        "time_column",
        "type_column",
        "order_column",
        "time_unit",
        "input_format",
        "delimiter",
        "bad_rows",
        "missing_columns",
    )
    return {name: options[name] for name in (*known, "ignore_unknown") if options.get(name) is not None}


def _check_columns(row: Mapping[str, Any], columns: Mapping[str, str], policy: Policy) -> None:
    known = {*_COLUMNS, *columns.values()}
    for name in row:
        if name not in known:
            raise OptionError(f"rows of {policy.name} have no column {name!r}; they have {', '.join(sorted(known))}")
    if row.get("policy", policy.name) != policy.name:
        raise OptionError(f"there is no policy {row['policy']!r}; the policy is {policy.name!r}")


_TYPES: dict[str, tuple[type, str]] = {
    "int": (int, "an integer"),
    "float": (float, "a number"),
    "string": (str, "a text"),
    "bool": (bool, "true or false"),
}


def _typed(value: Any, kind: str) -> Any:
    """A value of a row as the type of its variable has it."""
    own = value.item() if isinstance(value, np.generic) else value
    numeric = kind in ("int", "float") and not isinstance(own, bool) and isinstance(own, int | float | str)
    expected, called = _TYPES[kind]
    with contextlib.suppress(ValueError, OverflowError):
        if numeric and not (kind == "int" and isinstance(own, float) and not own.is_integer()):
            own = expected(own)
    if type(own) is not expected:
        raise OptionError(f"{value!r} in the row (--row) is not {called}")
    return own


class _Log:
    """The time-points of an input: all times, and the tuples that a proof can need."""

    def __init__(self, source: Source, types: Mapping[Key, tuple[str, ...]], open_end: bool) -> None:
        self._open_end = open_end
        self._per_second = source.per_second
        self._types = types
        self._relations: dict[Key, list[tuple[Any, tuple[pa.Array, ...]]]] = {}
        parts = []
        for chunk in source.chunks():
            parts.append(chunk.times)
            for key, (places, fields) in chunk.relations.items():
                self._relations.setdefault(key, []).append((places + chunk.first, fields))
        self.times = np.concatenate(parts) if parts else np.zeros(0, np.int64)
        self._clock = clock_shown(source.time_type)

    def shown_time(self, point: int) -> Any:
        """The time-stamp of a time-point as rows show it, None behind the input."""
        if point >= len(self.times):
            return None
        ticks = int(self.times[point])
        return ticks if self._clock is None else json_value(self._clock.present(ticks))

    def offset_of(self, point: int) -> int:
        """The place of a time-point among those of its time-stamp."""
        return point - int(np.searchsorted(self.times, self.times[point]))

    def _is(self, point: int, time: Any) -> bool:
        ticks = int(self.times[point])
        return same(ticks if self._clock is None else self._clock.present(ticks), time)

    def point_of(self, row: Mapping[str, Any]) -> int:
        """The time-point of a row.

        Raises
        ------
        OptionError
            If the input has none such, or the row's time is another one.
        """
        point = row.get("time_point")
        if point is None and "offset" in row and "time" in row:
            equal = [place for place in range(len(self.times)) if self._is(place, row["time"])]
            if isinstance(row["offset"], int) and 0 <= row["offset"] < len(equal):
                point = equal[row["offset"]]
        if not isinstance(point, int) or isinstance(point, bool) or not 0 <= point < len(self.times):
            raise OptionError(
                f"the input has {len(self.times)} time-points, from 0; the row (--row) says time_point {point!r}"
            )
        if "time" in row and not self._is(point, row["time"]):
            raise OptionError(f"time-point {point} has the time {self.shown_time(point)}, not {row['time']}")
        return point

    def points(self, point: int, body: mfotl.Formula, valuation: Mapping[str, Any]) -> Points:
        """The time-points that the formula can look at from one of them, with the tuples that it can read there."""
        behind = _steps(body) + 1
        times = Points(self.times.tolist(), {}, behind, self._open_end, per_second=self._per_second)
        low, high = _reach(body, times, point, point, {})
        first, last = max(low, 0), min(high, len(self.times) - 1)
        tables: dict[Key, list[tuple[int, Row]]] = {}
        patterns = _patterns(body, valuation)
        for key, parts in self._relations.items():
            rows = tables.setdefault(key, [])
            for places, fields in parts:
                start, end = np.searchsorted(places, [first, last + 1])
                chosen = slice(int(start), int(end))
                kept, columns = _fitting(places[chosen], [each[chosen] for each in fields], patterns.get(key))
                values = [_whole(each, kind) for each, kind in zip(columns, self._types[key], strict=True)]
                tuples = list(zip(*values, strict=True)) if values else [()] * len(kept)
                rows += list(zip((kept - first).tolist(), tuples, strict=True))
        return Points(
            self.times[first : last + 1].tolist(),
            tables,
            behind if high >= len(self.times) else 0,
            self._open_end and high >= len(self.times),
            first=first,
            per_second=self._per_second,
        )


def _whole(column: pa.Array, kind: str) -> list[Any]:
    """The values of a field; integers beyond 64 bits come as decimals or as digits."""
    values: list[Any] = column.to_pylist()
    if kind != "int" or pa.types.is_integer(column.type):
        return values
    return [integer_of(str(each)) for each in values]


def _fitting(places: Any, fields: list[pa.Array], patterns: list[dict[int, Any]] | None) -> tuple[Any, list[pa.Array]]:
    """The rows that fit one of the patterns, values by place."""
    if not patterns or not all(patterns) or not len(places):
        return places, fields
    mask = None
    for pattern in patterns:
        own = None
        for place, value in pattern.items():
            try:
                equal = pc.equal(fields[place], pa.scalar(value, fields[place].type))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, pa.ArrowNotImplementedError):
                return places, fields
            own = equal if own is None else pc.and_(own, equal)
        mask = own if mask is None else pc.or_(mask, own)
    assert mask is not None
    return places[mask.to_numpy(zero_copy_only=False)], [each.filter(mask) for each in fields]


def _patterns(body: mfotl.Formula, valuation: Mapping[str, Any]) -> dict[Key, list[dict[int, Any]]]:
    """For each predicate what its tuples must have at which places, one pattern per use."""
    found: dict[Key, list[dict[int, Any]]] = {}

    def walk(formula: mfotl.Formula, bound: frozenset[str]) -> None:
        if isinstance(formula, mfotl.Predicate):
            found.setdefault((formula.name, len(formula.arguments)), []).append(
                {
                    place: valuation[each.name]
                    for place, each in enumerate(formula.arguments)
                    if isinstance(each, mfotl.Variable) and each.name in valuation and each.name not in bound
                    if not isinstance(valuation[each.name], float)
                }
            )
        if isinstance(formula, mfotl.Exists | mfotl.Forall):
            bound = bound | set(formula.variables)
        if isinstance(formula, mfotl.Let):
            walk(formula.definition, frozenset(valuation))
            walk(formula.body, bound)
            return
        own = bound
        groups = getattr(formula, "groups", None)
        if groups is not None:
            own = bound | (set(valuation) - set(groups))
        for child in mfotl.children(formula):
            walk(child, own)

    walk(body, frozenset())
    return found


def _steps(formula: mfotl.Formula) -> int:
    """How many time-points behind the last one a formula can look at."""
    own = isinstance(
        formula, mfotl.Temporal | mfotl.Since | mfotl.Until | mfotl.Trigger | mfotl.Release | mfotl.TemporalMatch
    )
    below = [_steps(child) for child in mfotl.children(formula)]
    return own + (sum(below) if isinstance(formula, mfotl.Let) else max(below, default=0))


def _reach(
    formula: mfotl.Formula, points: Points, low: int, high: int, lets: Mapping[Key, tuple[mfotl.Formula, Any]]
) -> tuple[int, int]:
    """The first and last time-point that a formula can look at from a range of them."""
    parts = list(mfotl.children(formula))
    own = low, high
    if isinstance(formula, mfotl.Temporal) and formula.operator in ("PREV", "NEXT"):
        own = (max(low - 1, 0), high) if formula.operator == "PREV" else (low, min(high + 1, points.last))
    elif isinstance(
        formula, mfotl.Temporal | mfotl.Since | mfotl.Until | mfotl.Trigger | mfotl.Release | mfotl.TemporalMatch
    ):
        end = formula.interval.ticks(points.per_second)[1]
        own = (points.before(low, 0, end)[0], high) if is_past(formula) else (low, points.behind(high, 0, end)[1])
    if isinstance(formula, mfotl.Let):
        if isinstance(formula, mfotl.LetPast):
            low = 0
        inner = {**lets, (formula.name, len(formula.parameters)): (formula.definition, lets)}
        return _reach(formula.body, points, low, high, inner)
    if isinstance(formula, mfotl.Predicate) and (formula.name, len(formula.arguments)) in lets:
        definition, outer = lets[formula.name, len(formula.arguments)]
        return _reach(definition, points, low, high, outer)
    found = [_reach(each, points, *own, lets) for each in parts]
    return min([own[0], *(one for one, _ in found)]), max([own[1], *(two for _, two in found)])


def _node(node: Node, points: Points, log: _Log) -> dict[str, Any]:
    low, high = node.low + points.first, node.high + points.first
    same = low == high
    return {
        "formula": print_formula(node.formula),
        "time_point": low if same else [low, high],
        "time": log.shown_time(low) if same else [log.shown_time(low), log.shown_time(high)],
        "valuation": {
            name: {"not": [json_value(one) for one in each.values]} if isinstance(each, Others) else json_value(each)
            for name, each in node.valuation.items()
        },
        "holds": node.holds,
        "because": sorted(each.place for each in node.below),
    }
