"""That HAVING rejects every row of a query, and the value that came nearest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet.errors import HamletError
from hamlet.findings.beside import Most, Part, Rerun
from hamlet.findings.reasons import MOST_EVENTS, Again
from hamlet.language.conditions import conjuncts
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import to_text
from hamlet.language.query import (
    Aggregate,
    Between,
    Comparison,
    Condition,
    Expression,
    Literal,
    Membership,
    Query,
    ReturnItem,
)
from hamlet.output.components import Values
from hamlet.output.query_rows import QueryRows
from hamlet.planner.workload import Workload

_EXACT = 1 << 52  # of integers up to here doubles hold each difference
_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def rejected_by_having(
    workload: Workload, queries: Sequence[AnalysedQuery], source: Again, rerun: Rerun
) -> Mapping[str, str]:
    """That HAVING rejects all rows of some queries, a clause by name; of none that has no rows without it, either.

    Parameters
    ----------
    workload : Workload
    queries : sequence of AnalysedQuery
        Some without rows.
    source : Again
        The events; nothing is said where they cannot be read again, or are many.
    rerun : callable
        Gives the rows of the queries without HAVING.
    """
    if not source.repeatable or source.rows is None or source.rows > MOST_EVENTS:
        return {}
    asked = {each.query.name: found for each in queries if (found := _without(each)) is not None}
    if not asked:
        return {}
    try:
        again = Workload.parse(to_text(replace(workload.analysis.text, queries=tuple(asked.values()))))
        results = rerun(again, Part(), Most(MOST_EVENTS, MOST_EVENTS))
    except HamletError:
        if len(queries) == 1:
            return {}
        alone = [rejected_by_having(workload, [each], source, rerun) for each in queries]
        return {name: text for each in alone for name, text in each.items()}
    parts = results.parts if results is not None else ()
    rows = {name: part.rows for name, part in zip(asked, parts, strict=False) if len(part)}
    return {each.query.name: _told(each, rows[each.query.name]) for each in queries if each.query.name in rows}


def _without(query: AnalysedQuery) -> Query | None:
    """A query without its HAVING, whose columns are the sides of that (COUNT(*) where these are no columns)."""
    if query.query.having is None or query.upstream:
        return None
    sides = [_sides(part) for part in conjuncts(query.query.having)]
    items = [ReturnItem(side, alias=f"v{i}_{j}") for i, each in enumerate(sides) for j, side in enumerate(each)]
    return replace(query.query, having=None, top=None, items=tuple(items) or (ReturnItem(Aggregate("COUNT")),))


def _told(query: AnalysedQuery, rows: QueryRows) -> str:
    """The clause, and what came nearest to the first condition that no row meets."""
    having = query.query.having
    assert having is not None
    what = f"all {len(rows):,} rows" if len(rows) > 1 else "the only row"
    text, place = f"HAVING {to_text(having)} rejects {what}", 0
    for part in conjuncts(having):
        sides = _sides(part)
        columns = [[piece.values[place + number] for piece in rows.pieces] for number in range(len(sides))]
        place += len(sides)
        if sides:
            known, near = _met(part, columns)
            if not known:
                return text if near is None else f"{text}; {to_text(sides[0])} came nearest with {near}"
    return text


def _met(part: Condition, columns: Sequence[Sequence[Values]]) -> tuple[bool, Any]:
    """Whether some row meets a condition, and else the value that came nearest; the sides by pieces of the rows."""
    plain = [_doubles(column) for column in columns]
    if any(each is None for each in plain):
        values = list(
            zip(*([value for piece in column for value in piece.tolist()] for column in columns), strict=True)
        )
        met = any(_true(part, *row) for row in values)
        return met, None if met else _nearest(values)
    value, *bounds = [each for each in plain if each is not None]
    if isinstance(part, Comparison):
        met = bool(np.any(_HOLDS[part.operator](value, bounds[0])))
    elif isinstance(part, Membership):
        met = any(bool(np.any(value == bound)) for bound in bounds)
    else:
        met = bool(np.any((bounds[0] <= value) & (value <= bounds[1])))
    if met:
        return True, None
    row = int(np.argmin(reduce(np.minimum, [np.abs(value - bound) for bound in bounds])))
    for piece in columns[0]:
        size = len(piece.data) if piece.places is None else len(piece.places)
        if row < size:
            return False, piece.at(row)
        row -= size
    raise AssertionError("the row is one of the column")


def _doubles(pieces: Sequence[Values]) -> npt.NDArray[np.float64] | None:
    """A column as doubles that are exactly its numbers; None where it has others, NULL or NaN."""
    parts = []
    for each in pieces:
        data = each.data
        if not isinstance(data, np.ndarray) or data.dtype not in (np.int64, np.float64):
            return None
        if each.objects is not None or each.present is not None or (each.valid is not None and not each.valid.all()):
            return None
        parts.append(data if each.places is None else data[each.places])
        if len(data) and not (np.abs(parts[-1]) <= _EXACT).all():
            return None
    return np.concatenate([np.asarray(part, np.float64) for part in parts])


def _sides(part: Condition) -> tuple[Expression, ...]:
    """A value and what it is compared with; nothing where that is no column, as text is none."""
    sides: tuple[Expression, ...] = ()
    match part:
        case Comparison(left=left, right=right):
            sides = left, right
        case Between(operand=operand, low=low, high=high, negated=False):
            sides = operand, low, high
        case Membership(operand=operand, choices=choices, negated=False):
            sides = operand, *choices
    return () if any(isinstance(each, Literal) and isinstance(each.value, str | bool) for each in sides) else sides


def _true(part: Condition, value: Any, *bounds: Any) -> bool:
    if value is None or None in bounds:
        return False
    try:
        if isinstance(part, Comparison):
            return _HOLDS[part.operator](value, bounds[0])
        if isinstance(part, Membership):
            return value in bounds
        return bool(bounds[0] <= value <= bounds[1])
    except TypeError:
        return False


def _nearest(values: Sequence[tuple[Any, ...]]) -> Any:
    """The value at the least distance from a bound of its row; None where there is no distance."""
    try:
        known = [(min(abs(row[0] - bound) for bound in row[1:]), row[0]) for row in values if None not in row]
        return min(known, key=lambda each: each[0])[1] if known else None
    except TypeError:  # text, or a time beside the text of one
        return None
