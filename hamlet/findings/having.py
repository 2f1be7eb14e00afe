"""That HAVING rejects every row of a query, and the value that came nearest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from hamlet.errors import HamletError
from hamlet.findings.beside import Part, Rerun
from hamlet.findings.reasons import MOST_EVENTS, Again
from hamlet.language.conditions import conjuncts
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.printing import to_text
from hamlet.language.query import Between, Comparison, Condition, Expression, ReturnItem
from hamlet.planner.workload import Workload

_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda left, right: left == right,
    "<>": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def rejected_by_having(workload: Workload, query: AnalysedQuery, source: Again, rerun: Rerun) -> str | None:
    """That HAVING rejects all rows of a query, as a clause; None where there are none without it, either.

    Parameters
    ----------
    workload : Workload
    query : AnalysedQuery
        One without rows.
    source : Again
        The events; nothing is said where they cannot be read again, or are many.
    rerun : callable
        Gives the rows of the query without HAVING.
    """
    having = query.query.having
    if having is None or query.upstream or not source.repeatable or source.rows is None or source.rows > MOST_EVENTS:
        return None
    parts = conjuncts(having)
    sides = [list(_sides(part)) for part in parts]
    items = [ReturnItem(side, alias=f"v{i}_{j}") for i, each in enumerate(sides) for j, side in enumerate(each)]
    if not items:
        return None
    asked = replace(query.query, having=None, top=None, items=tuple(items))
    try:
        again = Workload.parse(to_text(replace(workload.analysis.text, queries=(asked,))))
        rows = rerun(again, Part(), MOST_EVENTS)
    except HamletError:
        return None
    if not rows:
        return None
    what = f"all {len(rows):,} rows" if len(rows) > 1 else "the only row"
    text = f"HAVING {to_text(having)} rejects {what}"
    for place, (part, each) in enumerate(zip(parts, sides, strict=True)):
        values = [tuple(row[f"v{place}_{j}"] for j in range(len(each))) for row in rows]
        if each and not any(_true(part, *row) for row in values):
            near = _nearest(values)
            return text if near is None else f"{text}; {to_text(each[0])} came nearest with {near}"
    return text


def _sides(part: Condition) -> Iterator[Expression]:
    match part:
        case Comparison(left=left, right=right):
            yield from (left, right)
        case Between(operand=operand, low=low, high=high, negated=False):
            yield from (operand, low, high)


def _true(part: Condition, value: Any, *bounds: Any) -> bool:
    if value is None or None in bounds:
        return False
    try:
        if isinstance(part, Comparison):
            return _HOLDS[part.operator](value, bounds[0])
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
