"""Checks the evidence of trend queries: every step and every `after` by the definition, and that none is missing.

The graph of a group's trends is made again, pair by pair, from the pattern's derivatives, the conditions and the
semantics; the steps of the evidence must be its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hamlet.checker.clocks import is_window
from hamlet.checker.conditions import Where, kind
from hamlet.checker.digits import whole
from hamlet.checker.errors import EvidenceError
from hamlet.checker.results import Values, check_row, json_of, ranks
from hamlet.checker.words import Automaton, Gap
from hamlet.language import query as q

Key = dict[str, Any]
_EDGES = ("window_start", "window_end")
_FIELDS = "at, event, variable, partition, begins, after, count, ends, trends"


@dataclass(eq=False)
class Event:
    """An event: its place in the input, its time in ticks, its order and its columns."""

    at: int
    time: int
    order: Any
    type: str | None
    columns: Mapping[str, Any]

    def before(self, other: Event) -> bool:
        """Whether it precedes another one."""
        if self.time != other.time:
            return self.time < other.time
        return self.order is not None and other.order is not None and bool(self.order < other.order)


@dataclass(eq=False)
class Step:
    """An event bound to a variable, for one set of words that can follow."""

    event: Event
    variable: str
    state: int
    first: Event | None
    partition: Key
    taken: tuple[Any, ...] = ()
    begins: bool = False
    after: list[Step] = field(default_factory=list)
    count: int = 0
    onward: int = 0
    ends: bool = False
    place: int | None = None


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
        self._events = events
        self._by_place = {event.at: event for event in events}
        self._ticks = ticks
        self._per_second = per_second
        self._zone = zone
        self._special = special
        self._null_keys = null_keys
        self._declared = {each.name: {a.name: a for a in each.attributes} for each in workload.declarations}
        self._doubles = {name for event in events for name, value in event.columns.items() if isinstance(value, float)}

    # ---------------------------------------------------------------------------------------- the definitions

    def _carries(self, event: Event, name: str) -> bool:
        known = self._declared.get(event.type or "")
        return known is None or name in known or name in self._special

    def _read(self, event: Event, name: str) -> Any:
        value = event.columns.get(name) if self._carries(event, name) else None
        if value is None or value != value:
            return None
        declared = self._declared.get(event.type or "", {}).get(name)
        double = declared.type is q.AttributeType.DOUBLE if declared is not None else name in self._doubles
        return float(value) if double and isinstance(value, int) and not isinstance(value, bool) else value

    def _reader(self, event: Event) -> Any:
        return lambda reference: self._read(event, reference.attribute)

    def _agrees(self, event: Event, key: Key) -> bool:
        """Whether an event has the values of all keys that it carries."""
        return all(alike(self._read(event, name), value) for name, value in key.items() if self._carries(event, name))

    def _keys(self, events: Iterable[Event], names: Sequence[str], group: Key) -> list[Key]:
        """The values that all keys can have together in a group."""
        known: list[Key] = [dict(group)]
        for event in events:
            if not self._agrees(event, group):
                continue
            own = {name: self._read(event, name) for name in names if self._carries(event, name)}
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
        left_out = check_row(task.query, evidence, graphs, self._read)
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
            check_row(query, claim, graphs, self._read)
            if not ranks(query.top, Values(graphs, self._read, group), values):
                raise EvidenceError("TOP puts the row above behind the one that it leaves out", place)
            groups.append(group)


class _Task:
    """What evidence says of the window and the group, checked against the query."""

    def __init__(self, checker: Checker, query: Any, evidence: Mapping[str, Any]) -> None:
        self.checker = checker
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
        self.events = [event for event in checker._events if self.in_reach(event)]
        self.keys = checker._keys(self.events, self.names, self.group)

    def _typed(self, name: str, told: Any) -> Any:
        """The value of a key as events have it."""
        for event in self.checker._events:
            value = self.checker._read(event, name)
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
            (e for e in self.checker._events if e.type in types and self.checker._agrees(e, self.group)),
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
        return [[step for key in self.keys for step in _Graph(self, own, key).steps] for own in asked]

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
            if not any(_Path(self, own, key).takes(trend) for own in self._asked() for key in self.keys):
                raise EvidenceError("the sample is no trend of the group", place)

    def _asked(self) -> Iterator[list[Any]]:
        yield from ([each] for each in self.patterns)


class _Rules:
    """The rules of a pattern's trends in one partition."""

    def __init__(self, task: _Task, patterns: Sequence[Any], key: Key) -> None:
        self.task = task
        self.key = key
        self.automata = [Automaton(each) for each in patterns]
        checker = task.checker
        self.events = [event for event in task.events if checker._agrees(event, key)]
        self.all_events = [event for event in checker._events if checker._agrees(event, key)]
        self.types = {name: each for automaton in self.automata for name, each in automaton.types.items()}
        self._accepted: dict[tuple[int, str], bool] = {}
        self._negated: dict[Any, list[tuple[Event, Event]]] = {}

    def accepts(self, event: Event, variable: str) -> bool:
        """Whether an event may be bound to a variable."""
        asked = event.at, variable
        if asked not in self._accepted:
            self._accepted[asked] = event.type is not None and self.task.where.accepts(
                variable, self.task.checker._reader(event)
            )
        return self._accepted[asked]

    def connects(self, one: Event, earlier: str, two: Event, later: str) -> bool:
        """Whether one event may directly follow another."""
        reader = self.task.checker._reader
        return self.task.where.connects(earlier, reader(one), later, reader(two))

    def forbidden(self, gap: Gap, left: Event | None, right: Event | None, first: Event) -> bool:
        """Whether a negated pattern of the gap has a match strictly between two events; None is an open end."""
        task = self.task
        near = None in (left, right) and task.longest is not None and task.session is None
        for body in gap:
            for start, end in self.matches(body):
                if (left is not None and not left.before(start)) or (right is not None and not end.before(right)):
                    continue
                if near and any(abs(each.time - first.time) > (task.longest or 0) for each in (start, end)):
                    continue
                return True
        return False

    def matches(self, body: Any) -> list[tuple[Event, Event]]:
        """First and last events of the matches of a negated pattern: for a last one those first ones that are late."""
        if body not in self._negated:
            automaton = Automaton(body)
            reached: list[tuple[Event, str, int, Event]] = []
            found = []
            for event in sorted(self.events, key=_moment):
                new: list[tuple[Event, str, int, Event]] = []
                for variable in [name for name, type_ in automaton.types.items() if type_ == event.type]:
                    if not self.accepts(event, variable):
                        continue
                    for (_, name), target in automaton.moves[0].items():
                        if name == variable:
                            new.append((event, variable, target, event))
                    for one, earlier, state, start in reached:
                        for (_, name), target in automaton.moves[state].items():
                            if name == variable and one.before(event) and self.connects(one, earlier, event, variable):
                                new.append((event, variable, target, start))
                latest: dict[tuple[str, int], Event] = {}
                for _, variable, state, start in new:
                    known = latest.get((variable, state))
                    if known is None or known.before(start):
                        latest[variable, state] = start
                for (variable, state), start in latest.items():
                    reached.append((event, variable, state, start))
                    if automaton.finals[state]:
                        found.append((start, event))
            self._negated[body] = found
        return self._negated[body]

    def skips(self, state: tuple[int, ...], before: Event, variable: str, event: Event, first: Event) -> bool:
        """Whether an event lies between that the semantics does not let a trend skip."""
        semantics = self.task.query.semantics
        if semantics is q.Semantics.ANY:
            return False
        for each in self.all_events:
            if not (before.before(each) and each.before(event)):
                continue
            if semantics is q.Semantics.CONTIGUOUS:
                return True
            if any(
                self.accepts(each, name)
                and self.connects(before, variable, each, name)
                and not self.forbidden(gap, before, each, first)
                for automaton, own in zip(self.automata, state, strict=True)  # each operand of AND for itself
                for gap, name in automaton.moves[own]
                if self.types[name] == each.type
            ):
                return True
        return False

    def onward(self, state: tuple[int, ...]) -> Iterator[tuple[Gap, str, tuple[int, ...]]]:
        """The next letters from a state, of AND one of each operand, and where they lead."""
        if len(self.automata) == 1:
            for (gap, name), target in self.automata[0].moves[state[0]].items():
                yield gap, name, (target,)
            return
        for (gap, name), target in self.automata[0].moves[state[0]].items():
            for (other, name_too), target_too in self.automata[1].moves[state[1]].items():
                if name == name_too:
                    yield gap | other, name, (target, target_too)

    def endings(self, state: tuple[int, ...]) -> list[Gap]:
        """The marks behind a last event with which a word may end."""
        if len(self.automata) == 1:
            return list(self.automata[0].finals[state[0]])
        return [a | b for a in self.automata[0].finals[state[0]] for b in self.automata[1].finals[state[1]]]

    def then(self, taken: tuple[Any, ...], event: Event, variable: str) -> tuple[Any, ...]:
        """What trends have taken behind an event, of what GROUP-BY names beside attributes; None for nothing yet."""
        found = list(taken)
        for place, (each, _) in enumerate(self.task.taken):
            if each.variable != variable:
                continue
            if each.attribute is None:
                found[place] = ((0 if found[place] is None else found[place][0]) + 1,)
            elif each.function == "LAST" or found[place] is None:
                found[place] = (self.task.checker._read(event, each.attribute),)
        return tuple(found)

    def of_group(self, taken: tuple[Any, ...]) -> bool:
        """Whether trends that have taken this are of the group."""
        for (each, wanted), value in zip(self.task.taken, taken, strict=True):
            own = value[0] if value is not None else 0 if each.attribute is None else None
            if json_of(own) != wanted or isinstance(own, bool) is not isinstance(wanted, bool):
                return False
        return True

    def alike(self, state: tuple[int, ...]) -> tuple[int, ...]:
        """One name for all states that the same words can follow."""
        return tuple(automaton.kinds[each] for automaton, each in zip(self.automata, state, strict=True))


class _Graph(_Rules):
    """All trends of a pattern in one partition."""

    def __init__(self, task: _Task, patterns: Sequence[Any], key: Key) -> None:
        super().__init__(task, patterns, key)
        self.steps = self._grown()

    def _grown(self) -> list[Step]:
        made: list[tuple[Step, tuple[int, ...]]] = []
        start = (0,) * len(self.automata)
        spanned = self.task.longest is not None
        nothing = (None,) * len(self.task.taken)
        for event in sorted(self.events, key=_moment):
            new: dict[Any, tuple[Step, tuple[int, ...]]] = {}

            def step_of(
                variable: str,
                state: tuple[int, ...],
                first: Event,
                taken: tuple[Any, ...],
                event: Event = event,
                new: dict[Any, Any] = new,
            ) -> Step:
                asked = variable, self.alike(state), first.at if spanned else None, repr(taken)
                if asked not in new:
                    new[asked] = Step(event, variable, 0, first if spanned else None, self.key, taken), state
                found: Step = new[asked][0]
                return found

            for gap, variable, target in self.onward(start):
                fits = self.types[variable] == event.type and self.accepts(event, variable)
                if fits and not self.forbidden(gap, None, event, event):
                    step = step_of(variable, target, event, self.then(nothing, event, variable))
                    step.begins = True
                    step.count += 1
            for before, state in made:
                if not before.event.before(event):
                    continue
                first = before.first or before.event
                if spanned and event.time - first.time > (self.task.longest or 0):
                    continue
                for gap, variable, target in self.onward(state):
                    if (
                        self.types[variable] == event.type
                        and self.accepts(event, variable)
                        and self.connects(before.event, before.variable, event, variable)
                        and not self.forbidden(gap, before.event, event, first)
                        and not self.skips(state, before.event, before.variable, event, first)
                    ):
                        step = step_of(variable, target, first, self.then(before.taken, event, variable))
                        step.after.append(before)
                        step.count += before.count
            made += new.values()
        return self._ended(made)

    def _ended(self, made: list[tuple[Step, tuple[int, ...]]]) -> list[Step]:
        following: dict[int, list[Step]] = {}
        for step, _ in made:
            for before in step.after:
                following.setdefault(id(before), []).append(step)
        for step, state in reversed(made):
            if self.task.holds(step.event):
                first = step.first or step.event
                step.ends = self.of_group(step.taken) and any(
                    not self.forbidden(gap, step.event, None, first) for gap in self.endings(state)
                )
            step.onward = step.ends + sum(each.onward for each in following.get(id(step), ()))
        kept = [step for step, _ in made if step.onward]
        for step in kept:
            step.after = [each for each in step.after if each.onward]
        return kept


class _Path(_Rules):
    """One trend."""

    def takes(self, told: Any) -> bool:
        """Whether pairs of an event's place and a variable are a trend."""
        try:
            pairs = [(self.task.checker._by_place[at], str(variable)) for at, variable in told]
        except (KeyError, TypeError, ValueError):
            return False
        own = {event.at for event in self.events}
        if not pairs or not self.task.holds(pairs[-1][0]) or any(event.at not in own for event, _ in pairs):
            return False
        first = pairs[0][0]
        if self.task.longest is not None and pairs[-1][0].time - first.time > self.task.longest:
            return False
        states = [(0,) * len(self.automata)]
        before: tuple[Event, str] | None = None
        taken: tuple[Any, ...] = (None,) * len(self.task.taken)
        for event, variable in pairs:
            if event.type != self.types.get(variable) or not self.accepts(event, variable):
                return False
            if before is not None and not (before[0].before(event) and self.connects(*before, event, variable)):
                return False
            states = [
                target
                for state in states
                for gap, name, target in self.onward(state)
                if name == variable and not self.forbidden(gap, before[0] if before else None, event, first)
                if before is None or not self.skips(state, before[0], before[1], event, first)
            ]
            before = event, variable
            taken = self.then(taken, event, variable)
        last = pairs[-1][0]
        return self.of_group(taken) and any(
            not self.forbidden(gap, last, None, first) for state in states for gap in self.endings(state)
        )


def _match(task: _Task, graph: Sequence[Step], told: Sequence[Any]) -> None:
    """Find for each step of the evidence the step that it is; none may be left on either side."""
    waiting: dict[Any, list[Step]] = {}
    hidden = [name for name in task.names if name not in task.grouping]
    places = {id(step): place for place, step in enumerate(graph)}
    own = [
        (
            (step.event.at, step.variable, _shown({name: step.partition[name] for name in hidden})),
            (step.begins, step.ends, step.count, step.count * step.onward),
        )
        for step in graph
    ]
    for step, (asked, _) in zip(graph, own, strict=True):
        waiting.setdefault(asked, []).append(step)
    claims: list[Any] = []
    for place, each in enumerate(told):
        try:
            asked = each["at"], each["variable"], _shown(each["partition"])
            claim = each["begins"], each["ends"], whole(each["count"]), whole(each["trends"])
            hash(asked), each["event"]
            after = [index for index in each["after"] if isinstance(index, int) and 0 <= index < place]
        except (KeyError, TypeError, IndexError, ValueError, AttributeError):
            raise EvidenceError(f"a step has {_FIELDS}", place) from None
        if not isinstance(each["after"], list) or not len(set(after)) == len(after) == len(each["after"]):
            raise EvidenceError("after names steps before this one, each once", place)
        if not isinstance(claim[0], bool) or not isinstance(claim[1], bool):
            raise EvidenceError("begins and ends are true or false", place)
        claims.append((asked, claim))
    numbers: dict[Any, int] = {}
    futures = _futures(own, [[places[id(one)] for one in step.after] for step in graph], numbers)
    known: list[Step] = []
    for place, future in enumerate(_futures(claims, [each["after"] for each in told], numbers)):
        asked, claim = claims[place]
        before = {id(known[index]) for index in told[place]["after"]}
        fits = [
            step
            for step in waiting.get(asked, [])
            if own[places[id(step)]][1] == claim and {id(one) for one in step.after} == before
        ]
        if not fits:
            raise EvidenceError(
                "no trend takes this step so" if waiting.get(asked) else "no trend takes this event so", place
            )
        # of steps that are alike so far the one that is followed alike; none is where a later step is wrong
        found = next((step for step in fits if futures[places[id(step)]] == future), fits[0])
        if _columns(told[place]["event"]) != _columns(
            {name: json_of(value) for name, value in found.event.columns.items()}
        ):
            raise EvidenceError(f"the event at {asked[0]} is another", place)
        if known and known[-1].event.time > found.event.time:
            raise EvidenceError("steps stand in the order of time", place)
        waiting[asked].remove(found)
        known.append(found)
    missing = [step for steps in waiting.values() for step in steps]
    if missing:
        raise EvidenceError(f"a step is missing: event {missing[0].event.at} as {missing[0].variable}")


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


def alike(one: Any, two: Any) -> bool:
    """Whether two values of a key are one; NULL equals NULL."""
    return kind(one) == kind(two) and bool(one == two)


def _equal(one: Key, two: Key) -> bool:
    return one.keys() == two.keys() and all(alike(one[name], two[name]) for name in one)


def _shown(values: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted((name, repr(json_of(value))) for name, value in values.items()))


def _moment(event: Event) -> tuple[int, bool, Any]:
    return event.time, event.order is not None, event.order if event.order is not None else 0


def _ticks(duration: Any, per_second: int) -> int:
    return int(duration.seconds * per_second)
