"""`why` for specifications: nodes of values and of steps without one, each with what it follows from."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hamlet.errors import OptionError
from hamlet.language.schema import Clock
from hamlet.oracle.streams import Arguments, NoValueError
from hamlet.output.plain import json_value
from hamlet.streams.clock import integer_clock, nanoseconds_of, present
from hamlet.streams.monitor import Monitor
from hamlet.streams.program.ir import Constant, Eval, EventPacing, Expression, Kind, Spawn, Stream
from hamlet.streams.run import begun
from hamlet.streams.sources import open_by_name
from hamlet.streams.specification import Specification
from hamlet.why.claims import in_order
from hamlet.why.evidence import Evidence, only_row, same
from hamlet.why.values.history import Asked, History, Past, Target, Witness

_MOST_NODES = 20_000


@dataclass(eq=False)
class _Node:
    """The value of one step, or no value in a range of them."""

    target: Target
    first: int
    last: int
    value: Any
    below: list[_Node] = field(default_factory=list)
    unchecked: bool = False
    place: int = -1


READING = ("time_column", "time_unit", "order_column", "input_format", "delimiter", "bad_rows", "missing_columns")
"""The options of `hamlet.streams.run` that say how events are read."""


def of_specification(
    spec: Specification, events: Any, row: Mapping[str, Any], *, limit: int = 1000, **options: Any
) -> Evidence:
    """The values behind a row of a specification, or what stands in the way of one.

    Parameters
    ----------
    spec : Specification
    events : as of `hamlet.streams.run`
    row : mapping
        A row of the result (``trigger`` or ``stream``, ``time``, parameters, ``value``), or enough of it to name one.
        A stream's name, a time and its parameters name a row that the result may lack.
    limit : int
        Most values of a window that are given; a node that reads more is not followed, and says so.
    **options
        Those with which the rows were made.

    Raises
    ------
    OptionError
        If several rows match, or none is named.
    """
    history, clock = history_of(spec, events, options)
    return evidence_of(history, clock, row, limit)


def evidence_of(history: History, clock: Clock, row: Mapping[str, Any], limit: int) -> Evidence:
    """The evidence of a row in the history of a specification, or of its absence."""
    rows = list(_rows(history, clock))
    wanted = {name: value for name, value in row.items() if name != "specification"}
    found = only_row([each for each, _, _ in rows], wanted)
    explainer = _Explainer(history, limit)
    instead = None  # a row with another value
    if found is None and wanted.keys() >= {"stream", "time", "value"}:
        place = {name: value for name, value in wanted.items() if name != "value"}
        instead = only_row([each for each, _, _ in rows], place)
    shown = found if found is not None else instead
    if shown is not None:
        target, step = next((target, step) for each, target, step in rows if each is shown)
        claim = explainer.node(target, step)
    else:
        target, first, last = _absent(history, clock, wanted)
        claim = explainer.none(target, first, last)
    nodes = in_order(claim)
    data: dict[str, Any] = {
        "kind": "value",
        "row": json_value(dict(found) if found is not None else wanted),
        "holds": found is not None,
        "nodes": [_shown(each, history, clock) for each in nodes],
    }
    unchecked = [node.place for node in nodes if node.unchecked]
    if unchecked:
        data["unchecked"] = unchecked
    return Evidence(data)


def history_of(spec: Specification, events: Any, options: Mapping[str, Any]) -> tuple[History, Clock]:
    """All steps of a specification over events, and their clock."""
    given = {name: value for name, value in options.items() if value is not None}
    monitor = Monitor(
        spec, **{name: value for name, value in given.items() if name in ("start", "time_column", "time_unit")}
    )
    source = open_by_name(events, spec.inputs, given)
    inputs = spec.program.streams[: spec.program.inputs]
    found: list[tuple[int, dict[str, Any]]] = []
    for batch in begun([monitor], source)[0]:
        assert monitor.times is not None
        ticks = monitor.times.ticks(batch.column(monitor.times.column)).tolist()
        clock = monitor.times.clock
        assert clock is not None
        columns = {each.name: _values(batch, each) for each in inputs if each.name in batch.schema.names}
        for place, tick in enumerate(ticks):
            found.append((tick * clock.tick, {name: column[place] for name, column in columns.items()}))
    shown = monitor.shown_clock or (monitor.times.clock if monitor.times is not None else None)
    if shown is None:
        shown = integer_clock("s")
    start = found[0][0] if found else 0
    if given.get("start") is not None:
        start = nanoseconds_of(given["start"], shown)
    return History(spec.program, found, start, found[-1][0] if found else None), shown


def _values(batch: pa.RecordBatch, stream: Stream) -> list[Any]:
    """A column of events as values of an input; text is read as the input's type."""
    column = batch.column(stream.name)
    family = getattr(stream.type, "family", "")
    values: list[Any] = column.to_pylist()
    if family == "Float":
        return [None if each is None else float(each) for each in values]
    if family in ("Int", "UInt"):
        return [None if each is None else int(each) for each in values]
    if family == "Bool":
        words = {"true": True, "false": False}
        return [words.get(each.lower()) if isinstance(each, str) else each for each in values]
    return values


def _rows(history: History, clock: Clock) -> Iterator[tuple[dict[str, Any], Target, int]]:
    """All rows, of triggers and of outputs, each with its stream and step."""
    for (number, arguments), lives in history.lives.items():
        stream = history.program.streams[number]
        if stream.kind is Kind.INPUT:
            continue
        named = dict(zip((name for name, _ in stream.parameters), arguments, strict=True))
        for life in lives:
            for step, time, value in life.instance.values:
                shown = present(clock, time)
                if stream.kind is Kind.TRIGGER:
                    yield {"trigger": value, "time": shown, **named}, (number, arguments), step
                else:
                    yield {"stream": stream.name, "time": shown, **named, "value": value}, (number, arguments), step


def _absent(history: History, clock: Clock, wanted: Mapping[str, Any]) -> tuple[Target, int, int]:
    """The stream and the steps of a row that is not there."""
    name = wanted.get("stream", wanted.get("trigger"))
    known = ((each, (each.name, _number_of(history, each), *_says(each))) for each in history.program.streams)
    chosen = [each for each, names in known if name is not None and name in names]
    steps = [step for step, time in enumerate(history.times) if same(present(clock, time), wanted.get("time"))]
    if not chosen or not steps:
        raise OptionError(
            "no row matches, and the evidence of a row that is not there needs the stream (or the trigger's message or "
            "place in the file), its parameters, and a time at which something happened"
        )
    if len(chosen) > 1:
        places = " and ".join(str(_number_of(history, each)) for each in chosen)
        raise OptionError(f"the triggers {places} say {name!r}; name one by its place in the file")
    stream = chosen[0]
    arguments = tuple(wanted.get(each) for each, _ in stream.parameters)
    own = history.steps_of((stream.id, arguments), steps)
    if not own:
        raise OptionError(f"nothing extends {stream.name} at that time")
    return (stream.id, arguments), own[0], own[-1]


class _Explainer:
    """Makes the nodes, each once."""

    def __init__(self, history: History, limit: int) -> None:
        self._history = history
        self._limit = limit
        self._nodes: dict[Any, _Node] = {}

    def node(self, target: Target, step: int) -> _Node:
        """The node of a value, with all below it."""
        claim = self._node(target, step, step, self._history.value(target, step))
        self._grow(claim)
        return claim

    def none(self, target: Target, first: int, last: int) -> _Node:
        """The node of a range without a value.

        Raises
        ------
        OptionError
            If there is a value in it.
        """
        if self._history.steps_with_values(target, first, last):
            raise OptionError("the stream has a value at that time; name it in the row")
        claim = self._node(target, first, last, None)
        self._grow(claim)
        return claim

    def _node(self, target: Target, first: int, last: int, value: Any) -> _Node:
        key = *target, first, last
        known = self._nodes.get(key)
        if known is None:
            known = self._nodes[key] = _Node(target, first, last, value)
        return known

    def _grow(self, claim: _Node) -> None:
        todo, seen = [claim], {id(claim)}
        while todo:
            node = todo.pop()
            if len(seen) > _MOST_NODES:
                node.unchecked = True
                continue
            asked = self._asked(node)
            if sum(last - first + 1 for _, _, first, last in asked) > max(self._limit, 1) * 50:
                node.unchecked = True
                continue
            for each in self._ranges(asked):
                if each is not node and each not in node.below:
                    node.below.append(each)
                if id(each) not in seen:
                    seen.add(id(each))
                    todo.append(each)

    def _ranges(self, asked: Sequence[Asked]) -> Iterator[_Node]:
        """Nodes for what was asked: one for each value, one for each stretch of steps without."""
        wanted: dict[Target, set[int]] = {}
        for stream, arguments, first, last in asked:
            wanted.setdefault((stream, arguments), set()).update(range(first, last + 1))
        for target, steps in wanted.items():
            # an event extends no periodic stream, a deadline none that events extend
            ordered = self._history.steps_of(target, sorted(steps))
            if not ordered:
                continue
            valued = set(self._history.steps_with_values(target, ordered[0], ordered[-1]))
            for has_value, group in itertools.groupby(
                enumerate(ordered), key=lambda each: (each[1] in valued, self._history.turns[each[1]] - each[0])
            ):
                own = [step for _, step in group]
                if has_value[0]:
                    for step in own:
                        yield self._node(target, step, step, self._history.value(target, step))
                else:
                    yield self._node(target, own[0], own[-1], None)

    def _asked(self, node: _Node) -> list[Asked]:
        """What the value of a node follows from, or that it has none."""
        stream = self._history.program.streams[node.target[0]]
        if stream.kind is Kind.INPUT:
            return []
        asked: list[Asked] = []
        for step in range(node.first, node.last + 1):
            asked += self._of_step(stream, node.target[1], step)
            if len(asked) > self._limit * 50:
                break
        return list(dict.fromkeys(asked))

    def _of_step(self, stream: Stream, arguments: Arguments, step: int) -> list[Asked]:
        history = self._history
        life = history.life((stream.id, arguments), step)
        if life is None:
            return self._not_spawned(stream, step)
        asked: list[Asked] = []
        if life.spawned >= 0 and stream.spawn is not None:
            asked += self._clause(stream, (), stream.spawn, life.spawned, stream.spawn.arguments)[1]
        for clause in stream.evals:
            due, own = self._clause(stream, arguments, clause, step, ())
            asked += own
            if due:
                return asked + self._reads(stream, arguments, step, clause.expression)
        return asked

    def _not_spawned(self, stream: Stream, step: int) -> list[Asked]:
        """What stood in the way of a spawn in this step."""
        return [] if stream.spawn is None else self._clause(stream, (), stream.spawn, step, stream.spawn.arguments)[1]

    def _clause(
        self, stream: Stream, arguments: Arguments, clause: Eval | Spawn, step: int, more: Sequence[Expression]
    ) -> tuple[bool, list[Asked]]:
        """Whether a clause is due and its condition true, and what tells so."""
        life = self._history.life((stream.id, arguments), step)
        past: Any = Past(self._history, step)
        past.fresh = {each.id for each in self._inputs() if self._history.value((each.id, ()), step) is not None}
        active = History.active(past, clause.pacing, self._history.start if life is None else life.instance.time)
        asked = self._pacing(clause, step, active)
        if not active:
            return False, asked
        if clause.condition is not None:
            asked += self._reads(stream, arguments, step, clause.condition)
        true = clause.condition is None or self._true(stream, arguments, step, clause.condition)
        for each in more if true else ():
            asked += self._reads(stream, arguments, step, each)
        return true, asked

    def _inputs(self) -> tuple[Stream, ...]:
        program = self._history.program
        return tuple(program.streams[: program.inputs])

    def _pacing(self, clause: Eval | Spawn, step: int, active: bool) -> list[Asked]:
        """The inputs that make a clause due, or of each way to be due one that is missing."""
        if not isinstance(clause.pacing, EventPacing) or self._history.places[step] is None:
            return []
        found: list[Asked] = []
        for term in clause.pacing.terms:
            inputs = [place for place in range(term.bit_length()) if term >> place & 1]
            missing = [each for each in inputs if self._history.value((each, ()), step) is None]
            if active and not missing:
                return [(each, (), step, step) for each in inputs]
            found += [(each, (), step, step) for each in missing[:1]]
        return found

    def _true(self, stream: Stream, arguments: Arguments, step: int, condition: Expression) -> bool:
        try:
            return bool(Witness(self._history, stream, arguments, step).value(condition))
        except NoValueError:
            return False

    def _reads(self, stream: Stream, arguments: Arguments, step: int, expression: Expression) -> list[Asked]:
        witness = Witness(self._history, stream, arguments, step)
        with contextlib.suppress(NoValueError):
            witness.value(expression)
        return witness.asked


def _number_of(history: History, stream: Stream) -> int | None:
    """A trigger's place among the triggers of the file, from 0."""
    triggers = [each.id for each in history.program.streams if each.kind is Kind.TRIGGER]
    return triggers.index(stream.id) if stream.id in triggers else None


def _says(stream: Stream) -> tuple[Any, ...]:
    """The messages of a trigger that are the same whatever it reads."""
    told = (each.expression for each in stream.evals) if stream.kind is Kind.TRIGGER else ()
    return tuple(each.value for each in told if isinstance(each, Constant))


def _shown(node: _Node, history: History, clock: Clock) -> dict[str, Any]:
    stream = history.program.streams[node.target[0]]
    times = [json_value(present(clock, history.times[step])) for step in (node.first, node.last)]
    places = [] if stream.periodic else [history.places[step] for step in (node.first, node.last)]
    at: Any = None
    if places:
        at = places[0] if node.first == node.last else places
    name: Any = _number_of(history, stream)
    return {
        "stream": stream.name if name is None else name,
        "parameters": json_value(list(node.target[1])),
        "at": at,
        "time": times[0] if node.first == node.last else times,
        "value": json_value(node.value),
        "because": sorted({each.place for each in node.below}),
    }
