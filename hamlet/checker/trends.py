"""Checks the evidence of trend queries: every step and every `after` by the definition, and that none is missing.

The graph of a group's trends is made again (`hamlet.checker.graph`); the steps of the evidence must be its steps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hamlet.checker.digits import whole
from hamlet.checker.errors import EvidenceError
from hamlet.checker.graph import Path, Step, graphs_of
from hamlet.checker.layers import Layers
from hamlet.checker.question import EDGES, Question, Stream, equal
from hamlet.checker.results import Values, check_row, json_of, ranks
from hamlet.language import query as q

_FIELDS = "at, event, variable, partition, begins, after, count, ends, trends"


class Checker:
    """Checks evidence for one workload over some events.

    Parameters
    ----------
    workload : WorkloadText
        As parsed.
    stream : Stream
    """

    def __init__(self, workload: Any, stream: Stream) -> None:
        self._workload, self.stream = workload, stream

    def check(self, evidence: Mapping[str, Any]) -> None:
        """Accept evidence, or say what is wrong with it.

        Raises
        ------
        EvidenceError
        """
        if evidence.get("kind") != "trends" or not isinstance(row := evidence.get("row"), dict):
            raise EvidenceError("evidence for a query is of the kind trends, and has its row")
        found = [each for each in self._workload.queries if each.name == row.get("query")]
        if not found:
            raise EvidenceError(f"there is no query {row.get('query')!r}")
        if unknown := row.keys() - {"query", *EDGES, *(item.column for item in found[0].items)}:
            raise EvidenceError(f"rows of {row['query']} have no column {min(unknown)}")
        lists = evidence.get("operands") or [evidence.get("steps")]
        layers = Layers(self._workload, self.stream)
        stream = layers.claimed(found[0], evidence, whole=lists != [None]) if layers.below(found[0]) else self.stream
        task = Question(stream, found[0], evidence)
        patterns = task.patterns
        if lists == [None]:
            _check_samples(task, evidence.get("samples"))
            return
        if not isinstance(lists, list) or len(lists) != (3 if len(patterns) == 2 else 1):
            raise EvidenceError("there is one list of steps, or three for AND")
        graphs = graphs_of(task)
        for graph, told in zip(graphs, lists, strict=True):
            if not isinstance(told, list):
                raise EvidenceError("steps are a list")
            _match(task, graph, told)
        left_out = check_row(task.query, evidence, graphs, stream.read)
        if left_out is not None:
            _above(stream, task.query, evidence, left_out)


def _above(stream: Stream, query: Any, evidence: Mapping[str, Any], values: Values) -> None:
    """Check that TOP leaves a row out: so many rows of other groups come before it."""
    told = evidence.get("above")
    if not isinstance(told, list) or len(told) < query.top.count or not all(isinstance(row, dict) for row in told):
        raise EvidenceError(f"TOP leaves a row out where {query.top.count} are above it")
    returned = {_plain(item.value): item.column for item in query.items}
    groups = [dict(values.group)]
    for place, row in enumerate(told):
        group = {}
        for each in query.group_by:
            name = each.name if isinstance(each, q.Attribute) else each.column
            column = returned.get(_plain(each), name)
            group[name] = row.get(f"{name}_of_the_group", row.get(column))
        if any(equal(group, each) for each in groups):
            raise EvidenceError("a row above is of another group", place)
        claim = {"row": row, "holds": True, "group": group, "window": evidence["window"]}
        graphs = graphs_of(Question(stream, query, claim))
        check_row(query, claim, graphs, stream.read)
        if not ranks(query.top, Values(graphs, stream.read, group), values):
            raise EvidenceError("TOP puts the row above behind the one that it leaves out", place)
        groups.append(group)


def _check_samples(task: Question, told: Any) -> None:
    """Accept samples that are trends, where steps are not listed."""
    if not isinstance(told, list) or not told:
        raise EvidenceError("where steps are not listed, samples are")
    for place, trend in enumerate(told):
        if not any(Path(task, [own], key).takes(trend) for own in task.patterns for key in task.keys):
            raise EvidenceError("the sample is no trend of the group", place)


def _match(task: Question, graph: Sequence[Step], told: Sequence[Any]) -> None:
    """Find for each step of the evidence the step that it is; none may be left on either side."""
    hidden = [name for name in task.names if name not in task.grouping]
    places = {id(step): place for place, step in enumerate(graph)}
    after = [[places[id(one)] for one in step.after] for step in graph]
    own = [
        (
            (step.event.at, step.variable, _shown({name: step.partition[name] for name in hidden})),
            (step.begins, step.ends, step.count, step.count * step.onward),
        )
        for step in graph
    ]
    claims = [_claim(each, place) for place, each in enumerate(told)]
    numbers: dict[Any, int] = {}
    futures = _futures(own, after, numbers)
    waiting: dict[Any, list[int]] = {}
    for step, (asked, _) in enumerate(own):
        waiting.setdefault(asked, []).append(step)
    known: list[int] = []
    for place, future in enumerate(_futures(claims, [each["after"] for each in told], numbers)):
        asked, claim = claims[place]
        before = {known[index] for index in told[place]["after"]}
        fits = [step for step in waiting.get(asked, []) if own[step][1] == claim and {*after[step]} == before]
        if not fits:
            raise EvidenceError(
                "no trend takes this step so" if waiting.get(asked) else "no trend takes this event so", place
            )
        # of steps that are alike so far the one that is followed alike; none is where a later step is wrong
        found = next((step for step in fits if futures[step] == future), fits[0])
        columns = {name: json_of(value) for name, value in graph[found].event.columns.items()}
        if _columns(told[place]["event"]) != _columns(columns):
            raise EvidenceError(f"the event at {asked[0]} is another", place)
        if known and graph[known[-1]].event.time > graph[found].event.time:
            raise EvidenceError("steps stand in the order of time", place)
        waiting[asked].remove(found)
        known.append(found)
    missing = [graph[step] for steps in waiting.values() for step in steps]
    if missing:
        raise EvidenceError(f"a step is missing: event {missing[0].event.at} as {missing[0].variable}")


def _claim(told: Any, place: int) -> tuple[Any, Any]:
    """By what a step of the evidence is found, and what it says of it; the fields are checked."""
    try:
        asked = told["at"], told["variable"], _shown(told["partition"])
        claim = told["begins"], told["ends"], whole(told["count"]), whole(told["trends"])
        hash(asked), told["event"]
        after = [index for index in told["after"] if isinstance(index, int) and 0 <= index < place]
    except (KeyError, TypeError, IndexError, ValueError, AttributeError):
        raise EvidenceError(f"a step has {_FIELDS}", place) from None
    if not isinstance(told["after"], list) or not len(set(after)) == len(after) == len(told["after"]):
        raise EvidenceError("after names steps before this one, each once", place)
    if not isinstance(claim[0], bool) or not isinstance(claim[1], bool):
        raise EvidenceError("begins and ends are true or false", place)
    return asked, claim


def _futures(own: Sequence[Any], after: Sequence[Sequence[int]], numbers: dict[Any, int]) -> list[int]:
    """For each step a number that it has in common with those alike that are followed alike."""
    following: list[list[int]] = [[] for _ in own]
    found = [0] * len(own)
    for place in reversed(range(len(own))):
        found[place] = numbers.setdefault((own[place], tuple(sorted(following[place]))), len(numbers))
        for before in after[place]:
            following[before].append(found[place])
    return found


def _columns(columns: Any) -> Any:
    if not isinstance(columns, Mapping):
        return columns
    return {name: (isinstance(value, bool), value) for name, value in columns.items() if value is not None}


def _plain(each: Any) -> Any:
    """An attribute of GROUP-BY without the variable that it may be written with."""
    return q.Attribute(each.name) if isinstance(each, q.Attribute) else each


def _shown(values: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted((name, repr(json_of(value))) for name, value in values.items()))
