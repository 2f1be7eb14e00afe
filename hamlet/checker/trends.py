"""Checks the evidence of trend queries: every step and every `after` by the definition, and that none is missing.

The graph of a group's trends is made again (`hamlet.checker.graph`); the steps of the evidence must be its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from hamlet.checker.clocks import is_window
from hamlet.checker.conditions import Where
from hamlet.checker.digits import whole
from hamlet.checker.errors import EvidenceError
from hamlet.checker.graph import Event, Graph, Key, Path, Step, Stream, alike
from hamlet.checker.results import Values, check_row, json_of, ranks
from hamlet.language import query as q

_EDGES = ("window_start", "window_end")
_FIELDS = "at, event, variable, partition, begins, after, count, ends, trends"


class Checker:
    """Checks evidence for one workload over some events.

    Parameters
    ----------
    workload : WorkloadText
        As parsed.
    events : sequence of Event
    ticks : callable
        The ticks of a time as evidence writes it.
    per_second : int
        Ticks of the time column.
    zone : str or None
        Where days begin, if that was said.
    special : (str, str)
        The time and the type column, which every event has.
    null_keys : bool
        Whether NULL is a value of a key; else no trend has it.
    """

    def __init__(
        self,
        workload: Any,
        events: Sequence[Event],
        ticks: Callable[[Any], int],
        per_second: int = 1,
        zone: str | None = None,
        special: tuple[str, str] = ("time", "type"),
        null_keys: bool = True,
    ) -> None:
        self._workload = workload
        self.stream = Stream(events, workload.declarations, special)
        self._ticks = ticks
        self._per_second = per_second
        self._zone = zone
        self._null_keys = null_keys

    def _keys(self, events: Iterable[Event], names: Sequence[str], group: Key) -> list[Key]:
        """The values that all keys can have together in a group."""
        known: list[Key] = [dict(group)]
        for event in events:
            if not self.stream.agrees(event, group):
                continue
            own = {name: self.stream.read(event, name) for name in names if self.stream.carries(event, name)}
            for each in list(known):
                if all(alike(own[name], each[name]) for name in own if name in each):
                    joint = {**each, **own}
                    if not any(_equal(joint, other) for other in known):
                        known.append(joint)
        return [each for each in known if len(each) == len(names) and (self._null_keys or None not in each.values())]

    # ------------------------------------------------------------------------------------------------ checks

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
        if unknown := row.keys() - {"query", *_EDGES, *(item.column for item in found[0].items)}:
            raise EvidenceError(f"rows of {row['query']} have no column {min(unknown)}")
        task = _Task(self, found[0], evidence)
        lists = evidence.get("operands") or [evidence.get("steps")]
        patterns = task.patterns
        if lists == [None]:
            task.samples(evidence.get("samples"))
            return
        if not isinstance(lists, list) or len(lists) != (3 if len(patterns) == 2 else 1):
            raise EvidenceError("there is one list of steps, or three for AND")
        graphs = task.graphs()
        for graph, told in zip(graphs, lists, strict=True):
            if not isinstance(told, list):
                raise EvidenceError("steps are a list")
            _match(task, graph, told)
        left_out = check_row(task.query, evidence, graphs, self.stream.read)
        if left_out is not None:
            self._above(task.query, evidence, left_out)

    def _above(self, query: Any, evidence: Mapping[str, Any], values: Values) -> None:
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
            if any(_equal(group, each) for each in groups):
                raise EvidenceError("a row above is of another group", place)
            claim = {"row": row, "holds": True, "group": group, "window": evidence["window"]}
            graphs = _Task(self, query, claim).graphs()
            check_row(query, claim, graphs, self.stream.read)
            if not ranks(query.top, Values(graphs, self.stream.read, group), values):
                raise EvidenceError("TOP puts the row above behind the one that it leaves out", place)
            groups.append(group)


class _Task:
    """What evidence says of the window and the group, checked against the query."""

    def __init__(self, checker: Checker, query: Any, evidence: Mapping[str, Any]) -> None:
        self.checker = checker
        self.stream = checker.stream
        self.query = query
        self.where = Where(query.condition)
        top = query.pattern
        self.patterns = top.operands if isinstance(top, q.Conjunction) else (top,)
        self.grouping = list(dict.fromkeys(each.name for each in query.group_by if isinstance(each, q.Attribute)))
        self.names = list(dict.fromkeys([*self.grouping, *self.where.equivalence]))
        self.longest = None if query.longest is None else _ticks(query.longest, checker._per_second)
        taken = list(dict.fromkeys(each for each in query.group_by if not isinstance(each, q.Attribute)))
        told = evidence.get("group")
        wanted = [*self.grouping, *(each.column for each in taken)]
        if not isinstance(told, dict) or set(told) != set(wanted):
            raise EvidenceError(f"the group has values for {', '.join(wanted) or 'nothing'}")
        self.group = {name: self._typed(name, told[name]) for name in self.grouping}
        self.taken = [(each, told[each.column]) for each in taken]
        for item in query.items:
            name = getattr(item.value, "name", None)
            if not isinstance(item.value, q.Attribute):
                name = item.value.column if item.value in taken else None
            own = name in told and item.column in evidence["row"]
            if own and evidence["row"][item.column] != told[name]:
                raise EvidenceError(f"the group's {name} is not that of the row")
        self.start, self.end = self._window(evidence)
        self.session: set[int] | None = None
        if query.session:
            self.session = self._session()
        self.events = [event for event in self.stream.events if self.in_reach(event)]
        self.keys = checker._keys(self.events, self.names, self.group)

    def _typed(self, name: str, told: Any) -> Any:
        """The value of a key as events have it."""
        for event in self.stream.events:
            value = self.stream.read(event, name)
            if json_of(value) == told and isinstance(value, bool) is isinstance(told, bool):
                return value
        return told

    def _window(self, evidence: Mapping[str, Any]) -> tuple[int | None, int | None]:
        told = evidence.get("window")
        if not isinstance(told, list) or len(told) != 2:
            raise EvidenceError("window has a start and an end")
        row = evidence["row"]
        for name, edge in zip(_EDGES, told, strict=True):
            if name in row and row[name] != edge:
                raise EvidenceError(f"the row's {name} is not that of the evidence")
        if self.query.within is None:
            if told != [None, None]:
                raise EvidenceError("WITHIN ALL has no edges")
            return None, None
        start, end = (self.checker._ticks(edge) for edge in told)
        width = _ticks(self.query.within, self.checker._per_second)
        if self.query.session:
            return start, end
        slide = width if self.query.slide is None else _ticks(self.query.slide, self.checker._per_second)
        offset = None if self.query.offset is None else _ticks(self.query.offset, self.checker._per_second)
        if self.checker._zone is not None:
            second = self.checker._per_second
            whole = start % second == end % second == 0
            lengths = width // second, slide // second, None if offset is None else offset // second
            is_one = whole and is_window(self.checker._zone, start // second, end // second, *lengths)
        else:
            is_one = end - start == width and (start - (offset or 0)) % slide == 0
        if not is_one:
            raise EvidenceError("the query has no such window")
        return start, end

    def _session(self) -> set[int]:
        """The events of the session; none where the group has no such one."""
        types = {atom.type for atom in q.atoms(self.query.pattern)}
        gap = _ticks(self.query.within, self.checker._per_second)
        own = sorted(
            (e for e in self.stream.events if e.type in types and self.stream.agrees(e, self.group)),
            key=lambda event: event.time,
        )
        parts: list[list[Event]] = []
        for event in own:
            if parts and event.time - parts[-1][-1].time <= gap:
                parts[-1].append(event)
            else:
                parts.append([event])
        for part in parts:
            if part[0].time == self.start and part[-1].time + gap == self.end:
                return {event.at for event in part}
        return set()  # so no trend lies in it

    def graphs(self) -> list[list[Step]]:
        """The steps of the trends; of AND those of each operand, and of the trends that are both's."""
        asked = [[each] for each in self.patterns] + [list(self.patterns)] * (len(self.patterns) == 2)
        return [[step for key in self.keys for step in Graph(self, own, key).steps] for own in asked]

    def holds(self, event: Event) -> bool:
        """Whether an event lies in the window."""
        if self.session is not None:
            return event.at in self.session
        return self.start is None or self.end is None or self.start <= event.time < self.end

    def in_reach(self, event: Event) -> bool:
        """Whether a trend of the window may take an event, or a negated pattern match it."""
        return (self.longest is not None and self.session is None) or self.holds(event)

    def samples(self, told: Any) -> None:
        """Check that samples are trends.

        Raises
        ------
        EvidenceError
        """
        if not isinstance(told, list) or not told:
            raise EvidenceError("where steps are not listed, samples are")
        for place, trend in enumerate(told):
            if not any(Path(self, [own], key).takes(trend) for own in self.patterns for key in self.keys):
                raise EvidenceError("the sample is no trend of the group", place)


def _match(task: _Task, graph: Sequence[Step], told: Sequence[Any]) -> None:
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


def _equal(one: Key, two: Key) -> bool:
    return one.keys() == two.keys() and all(alike(one[name], two[name]) for name in one)


def _shown(values: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted((name, repr(json_of(value))) for name, value in values.items()))


def _ticks(duration: Any, per_second: int) -> int:
    return int(duration.seconds * per_second)
