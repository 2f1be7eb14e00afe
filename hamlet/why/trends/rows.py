"""What the steps of trends add up to, and what stands in the way of a row that is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hamlet.language.meaning import AnalysedQuery
from hamlet.language.query import Aggregate
from hamlet.oracle import Search, Stream
from hamlet.why.trends.graph import Step

_NEAREST = 10


def aggregates_of(analysed: AnalysedQuery, lists: Sequence[Sequence[Step]], stream: Stream) -> dict[str, Any] | None:
    """The lone aggregates of RETURN over the trends of a group, None where there is no trend; not for AND."""
    if len(lists) != 1 or not any(step.ends for step in lists[0]):
        return None
    found: dict[str, Any] = {}
    for item in analysed.query.items:
        if isinstance(item.value, Aggregate) and not item.log2:
            value = _aggregate(item.value, lists[0], stream)
            if value is not NotImplemented:
                found[item.column] = value
    return found


def _aggregate(asked: Aggregate, steps: Sequence[Step], stream: Stream) -> Any:
    if asked.variable is None:
        return sum(step.count for step in steps if step.ends)
    own = [step for step in steps if step.variable == asked.variable]
    if asked.events:
        own = list({step.event.index: replace(step, count=1, onward=1) for step in own}.values())
    if asked.attribute is None and asked.function == "COUNT":
        return sum(step.trends for step in own)
    pairs = [(stream.read(step.event, asked.attribute), step.trends) for step in own if asked.attribute is not None]
    values = [(value, times) for value, times in pairs if value is not None and not isinstance(value, str)]
    if asked.function in ("MIN", "MAX"):
        return (min if asked.function == "MIN" else max)((value for value, _ in values), default=None)
    if asked.function not in ("SUM", "AVG") or any(not isinstance(value, int | float) for value, _ in values):
        return NotImplemented
    if not values:
        return None
    total = sum(Fraction(value) * times for value, times in values)
    if asked.function == "AVG":
        return float(total / sum(times for _, times in values))
    return float(total) if any(isinstance(value, float) for value, _ in values) else int(total)


def reason_of(
    analysed: AnalysedQuery,
    search: Search,
    group: Mapping[str, Any],
    steps: Sequence[int],
    others: Sequence[Mapping[str, Any]],
    row: Mapping[str, Any],
) -> dict[str, Any]:
    """The first thing that stands in the way of a row, with the events that came nearest: for readers."""
    if any(steps):
        same_window = [dict(each) for each in others if each.get("window_start") == row.get("window_start")]
        if analysed.query.top is not None and same_window:
            return {"reason": "top", "above": same_window}
        return {"reason": "having"} if analysed.query.having is not None else {}
    positive = {name: kind for name, kind in analysed.types.items() if name not in analysed.negated}
    own = [event for event in search.events if search.agree(group, event) is not None and search.window.holds(event)]
    seen = {kind: [event for event in own if event.type == kind] for kind in positive.values()}
    if not all(seen.values()):
        nearest = [event.index for events in seen.values() for event in events]
        return {"reason": "type", "nearest": nearest[:_NEAREST]}
    accepted = {name: [event for event in seen[kind] if search.accepts(event, name)] for name, kind in positive.items()}
    if not all(accepted.values()):
        lost = next(name for name, events in accepted.items() if not events)
        return {"reason": "predicate", "nearest": [event.index for event in seen[positive[lost]]][:_NEAREST]}
    nearest = [events[-1].index for events in accepted.values()]
    return {"reason": "negation" if analysed.negated else "order", "nearest": nearest[:_NEAREST]}
