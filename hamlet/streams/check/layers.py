"""The order of evaluation in one step, and the cycles that have none."""

from __future__ import annotations

from itertools import pairwise

from hamlet.frontend.reports import Reports
from hamlet.streams.check.declarations import Table
from hamlet.streams.check.graphs import components, cycle
from hamlet.streams.check.pacing import Paced
from hamlet.streams.check.timing import Clauses
from hamlet.streams.check.unresolved import Node
from hamlet.streams.program.ir import Access, EventPacing, Task

_WORDS = {Access.NOW: "now", Access.HOLD: "hold", Access.GET: "get", Access.FRESH: "is_fresh"}


def order(
    table: Table, clauses: dict[int, Clauses], known: dict[int, Paced], reports: Reports
) -> tuple[tuple[Task, ...], ...]:
    """The layers of a specification.

    Parameters
    ----------
    table : Table
        All names.
    clauses : dict of int to Clauses
        Outputs by number, with their pacing.
    known : dict of int to Pacing or None
        Of all streams.
    reports : Reports
        Receives the cycles.

    Returns
    -------
    tuple of tuple of Task
        Nothing where there is a cycle. What a task reads of its own step is done in an earlier layer. Reads of older
        values, reads between event-driven and periodic clauses, and close clauses bind no order.
    """
    spawns: dict[int, dict[int, Node]] = {}
    evals: dict[int, dict[int, Node]] = {}
    for number, each in clauses.items():
        spawns[number], evals[number] = {}, {}
        for draft, _, pace in each.all():
            if draft.word == "close":
                continue
            edges = spawns[number] if draft.word == "spawn" else evals[number]
            for node in draft.nodes():
                if _binds(node, pace, known) and node.stream is not None and node.stream.output is not None:
                    edges.setdefault(node.stream.id, node)
    whole = {number: {**evals[number], **spawns[number]} for number in clauses}
    groups = components(list(clauses), lambda number: whole[number])
    circular = [group for group in groups if len(group) > 1 or group[0] in whole[group[0]]]
    for group in circular:
        _report(cycle(group, lambda number: whole[number]), whole, table, reports)
    if circular:
        return ()
    spawn_layer: dict[int, int] = {}
    eval_layer: dict[int, int] = {each.id: 0 for each in table.streams if each.output is None}
    for (number,) in groups:
        spawn_layer[number] = max((eval_layer[target] for target in spawns[number]), default=-1) + 1
        after = max((eval_layer[target] for target in whole[number]), default=0) + 1
        eval_layer[number] = max(after, spawn_layer[number] + 1)
    depth = max(eval_layer.values(), default=0) + 1
    layers: list[list[Task]] = [[] for _ in range(depth)]
    for number in sorted(clauses):
        if clauses[number].spawn is not None:
            layers[spawn_layer[number]].append(Task(number, spawn=True))
    for number in sorted(clauses):
        layers[eval_layer[number]].append(Task(number, spawn=False))
    return tuple(tuple(layer) for layer in layers)


def _binds(node: Node, pace: Paced, known: dict[int, Paced]) -> bool:
    """Whether a node reads, or may read, what is computed in the same step."""
    if node.stream is None or (node.kind == "read" and node.access in (Access.OFFSET, Access.TIME)):
        return False
    target = known.get(node.stream.id)
    if pace is None or target is None:
        return True
    return isinstance(pace, EventPacing) == isinstance(target, EventPacing)


def _report(path: list[int], edges: dict[int, dict[int, Node]], table: Table, reports: Reports) -> None:
    names = [table.streams[number].name for number in path]
    first = edges[path[0]][path[1]]
    ways = [edges[one][other] for one, other in pairwise(path)]
    how = {_how(node) for node in ways} - {"now"}
    shown = names if len(names) < 12 else [*names[:6], f"({len(names) - 9} others)", *names[-3:]]
    through = f", through {' and '.join(sorted(how))}" if how else ""
    message = f"{names[0]} needs its own value of the same step: {' -> '.join(shown)}{through}"
    name = reports.quote(first.span)[1:-1].partition(".")[0].partition("[")[0]
    reports.error(message, first.span, f"read an older value on the way: {name}.offset(by: -1).defaults(to: ...)")


def _how(node: Node) -> str:
    if node.kind == "window":
        return "a window"
    if node.kind == "instances":
        return "an aggregate over instances"
    return _WORDS[node.access]
