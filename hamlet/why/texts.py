"""Evidence as text for a terminal: the claim first, then what it follows from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_SHOWN = 40  # lines of one list
_DEEPEST = 60


def text_of(data: Mapping[str, Any], *, nested: bool = True) -> str:
    """Evidence of any kind as lines of text, if need be without that of the rows that it is about."""
    row = ", ".join(f"{name}={shown(value)}" for name, value in data["row"].items())
    head = f"{row}: {'in the result' if data['holds'] else 'not in the result'}"
    lines = [head, *_LINES[data["kind"]](data)]
    below = [text_of(each) for each in data.get("because", ())] if nested else []
    return "\n".join([*lines, *(f"  {line}" for text in below for line in text.split("\n"))])


def shown(value: Any) -> str:
    """A value of JSON in a line."""
    return value if isinstance(value, str) else "NULL" if value is None else json.dumps(value, ensure_ascii=False)


def _range(told: Any) -> str:
    return f"{shown(told[0])} to {shown(told[1])}" if isinstance(told, list) else shown(told)


def valuation_text(valuation: Mapping[str, Any]) -> str:
    """A valuation with its sets of values in words."""
    parts = []
    for name, told in valuation.items():
        if isinstance(told, dict) and "not" in told:
            values = ", ".join(map(shown, told["not"]))
            parts.append(f"{name} anything but {values}" if values else f"{name} anything")
        elif isinstance(told, dict):
            parts.append(f"{name} in {', '.join(map(shown, told['in']))}")
        else:
            parts.append(f"{name}={shown(told)}")
    return ", ".join(parts)


def node_line(node: Mapping[str, Any]) -> str:
    """A node of a proof in a line."""
    point = node["time_point"]
    where = f"time-point{'s' * isinstance(point, list)} {_range(point)} (time {_range(node['time'])})"
    values = valuation_text(node["valuation"])
    return f"{'holds' if node['holds'] else 'fails'} at {where}: {node['formula']}{f'  [{values}]' * bool(values)}"


def _proof(data: Mapping[str, Any]) -> Iterator[str]:
    return _tree(data["nodes"], node_line)


def _tree(nodes: list[Mapping[str, Any]], line: Callable[[Mapping[str, Any]], str]) -> Iterator[str]:
    """Nodes from the claim down; a node that has been shown is named by its place."""
    seen: set[int] = set()
    stack = [(len(nodes) - 1, 0)]
    while stack:
        place, depth = stack.pop()
        node = nodes[place]
        indent = "  " * min(depth + 1, _DEEPEST)
        if place in seen and node["because"]:
            yield f"{indent}#{place} above: {line(node)}"
            continue
        seen.add(place)
        yield f"{indent}#{place} {line(node)}"
        below = node["because"]
        if len(below) > _SHOWN:
            yield f"{indent}  ... {len(below) - _SHOWN:,} more"
        stack += [(each, depth + 1) for each in reversed(below[:_SHOWN])]


def value_line(node: Mapping[str, Any]) -> str:
    """A node of a specification's evidence in a line."""
    name = node["stream"] if isinstance(node["stream"], str) else f"trigger {node['stream']}"
    parameters = node.get("parameters") or []
    called = f"{name}({', '.join(map(shown, parameters))})" if parameters else name
    at = "at a deadline" if node["at"] is None else f"at event {_range(node['at'])}"
    value = "no value" if node["value"] is None else f"= {shown(node['value'])}"
    return f"{called} {value} {at}, time {_range(node['time'])}"


def _values(data: Mapping[str, Any]) -> Iterator[str]:
    yield from _tree(data["nodes"], value_line)
    if data.get("unchecked"):
        yield f"  more than the limit stands behind some nodes: {data['unchecked']}"


def _place(at: int) -> str:
    return f"row {-at}" if at < 0 else str(at)


def _row(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shown(value)}" for name, value in row.items() if name != "query")


def _trends(data: Mapping[str, Any]) -> Iterator[str]:
    rows = {each["at"]: each["row"] for each in data.get("rows", ())}
    if data.get("reason"):
        yield f"  reason: {data['reason']}"
    lists = data.get("operands") or [data.get("steps")]
    names = ["the left operand", "the right operand", "both operands"] if data.get("operands") else ["trends"]
    for name, steps in zip(names, lists, strict=True):
        if steps is None:
            yield "  too many steps to list; some trends, which show that the group has trends, and no more:"
            for trend in data.get("samples", ())[:_SHOWN]:
                yield "    " + ", ".join(f"{variable}@{_place(at)}" for at, variable in trend)
            continue
        yield f"  {name}: {len(steps)} steps"
        for place, step in enumerate(steps[:_SHOWN]):
            marks = [f"after {', '.join(f'#{each}' for each in step['after'])}"] if step["after"] else []
            marks = ["begins"] * step["begins"] + marks + ["ends"] * step["ends"]
            row = rows.get(step["at"])
            event = f"event {step['at']}" if row is None else f"row {-step['at']} of {row['query']}"
            event += f" ({_row(step['event'] if row is None else row)})"
            told = f"{'; '.join(marks)}; {step['trends']} trends"
            yield f"    #{place} {step['variable']} {event}: {told}"
        if len(steps) > _SHOWN:
            yield f"    ... {len(steps) - _SHOWN:,} more"
    for each in data.get("forbidden", ())[:_SHOWN]:
        yield f"  NOT matched by events {', '.join(map(_place, each['events']))} between {each['between']}"
    taken = {step["at"]: rows[step["at"]] for steps in lists for step in steps or () if step["at"] in rows} or rows
    if taken and "because" not in data:
        yield "  rows of other queries; --row tells why they are there:"
        yield from (f"    row {-at}: {json.dumps(row, ensure_ascii=False)}" for at, row in list(taken.items())[:_SHOWN])


def _match(data: Mapping[str, Any]) -> Iterator[str]:
    for row, condition in zip(data["rows"], data.get("conditions", [{}] * len(data["rows"])), strict=False):
        read = ", ".join(f"{name}={shown(value)}" for name, value in (condition or {}).items())
        yield f"  row {row['at']}: {row['label']}{f'  ({read})' * bool(read)}"
    for each in (data.get("ended") or {}).get("tried", ()):
        read = ", ".join(f"{name}={shown(value)}" for name, value in each.get("values", {}).items())
        at = data["ended"]["at"]
        where = "behind the partition's last row" if at is None else f"row {at}"
        said = each.get("condition", "takes every row")
        yield f"  {where}: not {each['label']}: {said}{f'  ({read})' * bool(read)}"
    if data["holds"] and data.get("skipped_to") is not None:
        yield f"  matching goes on at row {data['skipped_to']}"
    if data.get("reason"):
        yield f"  reason: {data['reason']}"


_LINES: dict[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "proof": _proof,
    "value": _values,
    "trends": _trends,
    "match": _match,
}
