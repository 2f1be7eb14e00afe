"""What the steps of trends add up to, and what stands in the way of a row that is not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from hamlet.language.automaton import templates
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.query import Aggregate, Taken
from hamlet.oracle import Search, Stream
from hamlet.output.plain import json_value
from hamlet.why.trends.graph import Graph, Step, partitions
from optimizer.template import START, Template

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
    taken: Mapping[Taken, Any],
    exists: bool,
    others: Sequence[Mapping[str, Any]],
    row: Mapping[str, Any],
) -> dict[str, Any]:
    """The first thing that stands in the way of a row, with the events that came nearest: for readers."""
    if exists:
        same_window = [dict(each) for each in others if each.get("window_start") == row.get("window_start")]
        if analysed.query.top is not None and same_window:
            return {"reason": "top", "above": json_value(same_window)}
        return {"reason": "having"} if analysed.query.having is not None else {}
    own = [event for event in search.events if search.agree(group, event) is not None and search.window.holds(event)]
    made = templates(analysed.patterns)[: len(analysed.patterns)]
    present = {event.type for event in own}
    accepted = {
        name for name, kind in analysed.types.items() if any(e.type == kind and search.accepts(e, name) for e in own)
    }
    nearest = [next((e.index for e in reversed(own) if e.type == kind), None) for kind in analysed.types.values()]
    near = {"nearest": [each for each in dict.fromkeys(nearest) if each is not None][:_NEAREST]}
    if not all(_spells(each, lambda _, kind: kind in present) for each in made):
        return {"reason": "type", **near}
    if not all(_spells(each, lambda name, _: name in accepted) for each in made):
        lost = [name for name in analysed.types if name not in accepted and name not in analysed.negated]
        seen = [event.index for event in own if event.type in {analysed.types[name] for name in lost}]
        return {"reason": "predicate", "nearest": seen[:_NEAREST]}
    keys = list(partitions(search, group))
    for reason, conditions in (("order", False), ("predicate", True)):
        for pattern, template in zip(analysed.patterns, made, strict=True):
            graphs = (
                Graph(search, [pattern], template, key, taken, 1, conditions=conditions, guards=False) for key in keys
            )
            if not any(graph.steps for graph in graphs):
                return {"reason": reason, **near}
    return {"reason": "negation" if analysed.negated else "order", **near}


def _spells(template: Template, may: Callable[[str, str], bool]) -> bool:
    """Whether a word of a pattern is made of some variables, by their names and types."""
    reached = {START}
    for _ in range(template.size):
        reached |= {
            step.target
            for step in template.transitions
            if step.source in reached
            and may(template.variable(step.target), template.types[template.labels[step.target]])
        }
    return any(each.state in reached for each in template.finals)
