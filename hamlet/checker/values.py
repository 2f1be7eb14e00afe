"""Checks the evidence of specifications: every node by the clauses of its stream, with its children's values put in.

What a node of an input claims is read from the events. What no child of a node says is unknown to it, of inputs too,
and an expression that needs it does not give the node's value. When a clause is due the events say, not the children.
Whether an instance was spawned is not shown by evidence and not checked.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import merge
from itertools import groupby, takewhile
from typing import Any

from hamlet.checker.computing import aggregate, binary, call, unary
from hamlet.checker.errors import EvidenceError
from hamlet.streams.clock import nanoseconds_of
from hamlet.streams.program import ir

_LATE = 1 << 62  # behind all events of a time stands its deadline
Moment = tuple[int, int]  # time in ns, and the event's place; a deadline's is behind all
Target = tuple[int, tuple[Any, ...]]


class Unknown(Exception):
    """Something was read of which no child says anything."""


class NoValue(Exception):
    """A stream was read where it is not extended."""


_FRACTION = re.compile(r"([0-9]+\.[0-9]+)")  # a float in a message


@dataclass(eq=False)
class Node:
    """A claim: the value of one step, or no value between two."""

    target: Target
    first: Moment
    last: Moment
    value: Any
    below: list[Node] = field(default_factory=list)


class Checker:
    """Checks evidence for one specification over some events.

    Parameters
    ----------
    program : Program
        As checked.
    events : sequence of (int, mapping of str to Any)
        Time in ns and the values of inputs.
    clock : Clock
        How times are written.
    start : int
        From when periods count, ns.
    """

    def __init__(
        self, program: ir.Program, events: Sequence[tuple[int, Mapping[str, Any]]], clock: Any, start: int
    ) -> None:
        self.program = program
        self.events = events
        self.times = [time for time, _ in events]
        self._clock = clock
        self._start = start
        self._triggers = [each for each in program.streams if each.kind is ir.Kind.TRIGGER]

    def check(self, evidence: Mapping[str, Any]) -> None:
        """Accept evidence, or say what is wrong with it.

        Raises
        ------
        EvidenceError
        """
        told = evidence.get("nodes")
        if not isinstance(told, list) or not told or not isinstance(evidence.get("row"), dict):
            raise EvidenceError("evidence for a specification has a row and nodes")
        unchecked = set(evidence.get("unchecked", ()))
        nodes: list[Node] = []
        needed: set[int] = set()
        for place, each in enumerate(told):
            node = self._read(place, each, nodes)
            needed.update(each["because"])
            if place not in unchecked:
                self._right(place, node)
            nodes.append(node)
        if needed != set(range(len(nodes) - 1)):
            raise EvidenceError("every node but the last is needed by a later one")
        self._conclusion(evidence, nodes[-1], len(nodes) - 1)

    def _read(self, place: int, told: Any, nodes: Sequence[Node]) -> Node:
        try:
            name, parameters, because = told["stream"], told["parameters"], told["because"]
            at, time, value = told["at"], told["time"], told["value"]
            stream = self._stream(name)
            below = [nodes[each] for each in because if type(each) is int and 0 <= each < place]
            times = [nanoseconds_of(each, self._clock) for each in (time if isinstance(time, list) else [time] * 2)]
            places = at if isinstance(at, list) else [at, at]
            if any(each is not None and type(each) is not int for each in places):
                raise ValueError("at is the place of an event, or null")
            ends = [
                (when, _LATE if where is None or self.times[where] != when else where)
                for when, where in zip(times, places, strict=True)
            ]
        except Exception as error:
            raise EvidenceError(f"the node cannot be read: {error}", place) from None
        if len(below) != len(because) or len(parameters) != len(stream.parameters):
            raise EvidenceError("because names nodes before this one, and parameters are those of the stream", place)
        if ends[0] > ends[1] or (value is not None and ends[0] != ends[1]):
            raise EvidenceError("a value has one step, and a range begins before it ends", place)
        for (when, where), named in zip(ends, places, strict=True):
            if where == _LATE and named is not None and (ends[0] == ends[1] or self.times[named] > when):
                raise EvidenceError(f"event {named} has another time", place)
        arguments = tuple(typed(each, kind) for each, (_, kind) in zip(parameters, stream.parameters, strict=True))
        return Node((stream.id, arguments), ends[0], ends[1], typed(value, stream.type), below)

    def _stream(self, name: Any) -> ir.Stream:
        if type(name) is int and name >= 0:
            return self._triggers[name]
        return next(each for each in self.program.streams if each.name == name and each.kind is not ir.Kind.TRIGGER)

    def _conclusion(self, evidence: Mapping[str, Any], node: Node, place: int) -> None:
        row = evidence["row"]
        stream = self.program.streams[node.target[0]]
        is_trigger = stream.kind is ir.Kind.TRIGGER
        names = [name for name, _ in stream.parameters]
        known = {"specification", "time", *names, *(["trigger"] if is_trigger else ["stream", "value"])}
        if unknown := row.keys() - known:
            raise EvidenceError(f"the rows of {stream.name or 'a trigger'} have no column {min(unknown)}", place)
        if not is_trigger and row.get("stream", stream.name) != stream.name:
            raise EvidenceError("the row's stream is another", place)
        same = True
        if node.value is not None and is_trigger:
            same = row.get("trigger", node.value) == node.value
        elif node.value is not None and "value" in row:
            same = alike(typed(row["value"], stream.type), node.value)
        if evidence.get("holds") is not (node.value is not None and same):
            raise EvidenceError("holds is not what the last node shows", place)
        if "time" in row and not node.first[0] <= nanoseconds_of(row["time"], self._clock) <= node.last[0]:
            raise EvidenceError("the row's time is another", place)
        for (name, kind), value in zip(stream.parameters, node.target[1], strict=True):
            if name in row and typed(row[name], kind) != value:
                raise EvidenceError(f"the row's {name} is another", place)

    # ------------------------------------------------------------------------------------------ one node

    def _right(self, place: int, node: Node) -> None:
        stream = self.program.streams[node.target[0]]
        if stream.kind is ir.Kind.INPUT:
            self._input(place, node, stream)
            return
        for moment in self._moments(stream, node):
            found = [self._tried(stream, node, moment, spawned) for spawned in self._spawns(stream, node, moment)]
            unknown = node.value is None and stream.spawn is not None and not any(known for known, _ in found)
            if not unknown and not any(known and alike(value, node.value) for known, value in found):
                known, value = found[-1]
                said = f"its value is {value!r}, not {node.value!r}" if known else value
                raise EvidenceError(said, place)

    def _spawns(self, stream: ir.Stream, node: Node, moment: Moment) -> list[Moment | None]:
        """The steps in which the instance may have begun: evidence does not name it, but has what caused it."""
        if stream.spawn is None:
            return [None]
        return [*sorted({child.first for child in node.below if child.first <= moment}), None]

    def _tried(self, stream: ir.Stream, node: Node, moment: Moment, spawned: Moment | None) -> tuple[bool, Any]:
        """Whether there is a value, and which, or the reason why there is none."""
        try:
            return True, self._value(stream, node, moment, spawned)
        except Unknown:
            return False, "it does not follow from its children"
        except NoValue:
            return False, "it reads a value that is not there"
        except (ArithmeticError, ValueError, TypeError, KeyError):
            return False, "it has no result"

    def _input(self, place: int, node: Node, stream: ir.Stream) -> None:
        if node.below:
            raise EvidenceError("an input has no children", place)
        for _, at in self._moments(stream, node):
            value = self._given(stream, at)
            if not alike(value, node.value):
                raise EvidenceError(f"event {at} has {value!r}, not {node.value!r}", place)

    def _given(self, stream: ir.Stream, at: int) -> Any:
        if at == _LATE:
            return None
        value = self.events[at][1].get(stream.name)
        return None if value is None or value != value else value

    def _moments(self, stream: ir.Stream, node: Node) -> list[Moment]:
        """The steps of a node: events, or deadlines of a periodic stream that are counted from the start."""
        if node.first == node.last:
            return [node.first]
        if not stream.periodic:
            return [(time, at) for at, time in enumerate(self.times) if node.first <= (time, at) <= node.last]
        return list(takewhile(lambda each: node.first <= each, self._deadlines(stream, node.last)))[::-1]

    def _deadlines(self, stream: ir.Stream, last: Moment) -> Iterator[Moment]:
        """The deadlines of a stream that are counted from the start, from a moment back."""
        own: list[Iterator[Moment]] = []
        for each in stream.evals:
            if isinstance(each.pacing, ir.PeriodicPacing) and not each.pacing.local:
                most = int(Fraction(max(last[0] - self._start, 0), 10**9) / each.pacing.period) + 1
                own.append((self._start + each.pacing.deadline(k), _LATE) for k in range(most, 0, -1))
        for moment, _ in groupby(merge(*own, reverse=True)):
            if moment <= last:
                yield moment

    def _value(self, stream: ir.Stream, node: Node, moment: Moment, begun: Moment | None) -> Any:
        """The value of the first clause that is due and true, None for none."""
        reader = _Reader(self, stream, node, moment, begun)
        for clause in stream.evals:
            if self._due(clause.pacing, moment) and reader.true(clause.condition):
                value = reader.value(clause.expression)
                if value is not None and node.value is None and stream.spawn is not None:
                    # the instance need not be there: then the spawn has other parameters, or was not due
                    spawned = _Reader(self, stream, node, moment, None)
                    if not self._due(stream.spawn.pacing, moment) or not spawned.true(stream.spawn.condition):
                        return None
                    if tuple(spawned.value(each) for each in stream.spawn.arguments) != node.target[1]:
                        return None
                return value
        return None

    def _due(self, pacing: ir.Pacing, moment: Moment) -> bool:
        time, at = moment
        if isinstance(pacing, ir.EventPacing):
            if at == _LATE:
                return False
            fresh = [self._given(each, at) is not None for each in self.program.streams[: self.program.inputs]]
            return any(all(fresh[place] for place in ir.bits_of(term)) for term in pacing.terms)
        if at != _LATE:
            return False
        if pacing.local:
            return True  # counted from the spawn, of which evidence says nothing
        passed = time - self._start
        k = int(Fraction(passed, 10**9) / pacing.period)
        return any(each > 0 and pacing.deadline(each) == passed for each in (k, k + 1))


class _Reader:
    """Computes expressions of a node, with its children's values for what they read."""

    def __init__(self, checker: Checker, stream: ir.Stream, node: Node, moment: Moment, begun: Moment | None) -> None:
        self._begun = begun
        self._checker = checker
        self._stream = stream
        self._node = node
        self._moment = moment

    def true(self, condition: Any) -> bool:
        """Whether a condition holds; one that reads what is not there does not."""
        try:
            return condition is None or bool(self.value(condition))
        except NoValue:
            return False

    def value(self, expression: Any) -> Any:
        """The value of an expression, None where an optional has none."""
        match expression:
            case ir.Constant(value=value):
                return value
            case ir.Parameter(index=index):
                return self._node.target[1][index]
            case ir.Unary(operator=operator, operand=operand):
                return unary(operator, self.value(operand), getattr(expression.type, "family", "") == "UInt")
            case ir.Binary(operator="&&", left=left, right=right):
                return self.value(left) and self.value(right)
            case ir.Binary(operator="||", left=left, right=right):
                return self.value(left) or self.value(right)
            case ir.Binary(operator=operator, left=left, right=right):
                return binary(operator, self.value(left), self.value(right))
            case ir.Choice(condition=condition, left=left, right=right):
                return self.value(left if self.value(condition) else right)
            case ir.MakeTuple(parts=parts):
                return tuple(self.value(part) for part in parts)
            case ir.GetPart(operand=operand, index=index):
                whole = self.value(operand)
                return None if whole is None else whole[index]
            case ir.Default(operand=operand, value=otherwise):
                found = self.value(operand)
                return self.value(otherwise) if found is None else found
            case ir.Call(function=function, arguments=arguments):
                return call(function, [self.value(each) for each in arguments], getattr(expression.type, "family", ""))
            case ir.Read():
                return self._read(expression)
            case ir.ReadWindow():
                return self._window(expression)
            case ir.ReadInstances(aggregate=number):
                return self._instances(number)
        raise Unknown

    def _read(self, read: ir.Read) -> Any:
        target = read.stream, tuple(self.value(each) for each in read.arguments)
        now = self._moment
        if read.access is ir.Access.HOLD:
            return next(iter(self._back(target, now, True)), (None, None))[1]
        if read.access is ir.Access.TIME:
            return next(iter(self._back(target, (now[0] - read.amount, _LATE), True)), (None, None))[1]
        if read.access in (ir.Access.NOW, ir.Access.GET, ir.Access.FRESH):
            value = self._at(target, now)
            if read.access is ir.Access.FRESH:
                return value is not None
            if value is None and read.access is ir.Access.NOW:
                raise NoValue
            return value
        before = self._back(target, now, False)
        for _ in range(read.amount - 1):
            next(before, None)
        return next(before, (None, None))[1]

    def _at(self, target: Target, moment: Moment) -> Any:
        """The value of a step, None for none; Unknown where nobody says."""
        stream = self._checker.program.streams[target[0]]
        for child in self._node.below:
            if child.target == target and child.first <= moment <= child.last:
                return child.value
        if stream.kind is ir.Kind.INPUT and moment[1] != _LATE:
            raise Unknown
        if (moment[1] == _LATE) is not stream.periodic:
            return None
        due = any(self._checker._due(clause.pacing, moment) for clause in stream.evals)
        if stream.periodic and (self._local(stream) or not due):
            return None  # deadlines that are counted from a spawn are those that somebody claims
        raise Unknown

    @staticmethod
    def _local(stream: ir.Stream) -> bool:
        """Whether deadlines are counted from a spawn."""
        return any(isinstance(each.pacing, ir.PeriodicPacing) and each.pacing.local for each in stream.evals)

    def _back(
        self, target: Target, moment: Moment, inclusive: bool, window: bool = False, begin: int | None = None
    ) -> Any:
        """Moments and values of a stream from a moment back, as far as children know them without a gap."""
        stream = self._checker.program.streams[target[0]]
        times = self._checker.times
        if stream.periodic and self._local(stream):
            own = sorted((each for each in self._node.below if each.target == target), key=lambda each: each.first)
            for child in reversed(own):
                before = child.last <= moment if inclusive else child.last < moment
                if before and child.value is not None:
                    if not window and self._closed(target, child.first):
                        return
                    yield child.first, child.value
            return
        last = bisect_right(times, moment[0]) - 1 if moment[1] == _LATE else moment[1]
        if not inclusive and moment[1] != _LATE:
            last -= 1
        steps: Iterable[Moment] = ((times[at], at) for at in range(last, -1, -1))
        if stream.periodic:
            steps = (each for each in self._checker._deadlines(stream, moment) if inclusive or each != moment)
        for step in steps:
            if (begin is not None and step[0] <= begin) or (window and self._begins_behind(target, step)):
                return
            try:
                value = self._at(target, step)
            except Unknown:
                if stream.spawn is not None or (window and stream.periodic and self._stream.spawn is not None):
                    return  # before a spawn nothing is claimed
                raise
            if value is not None:
                if not window and self._closed(target, step):
                    return
                yield step, value

    def _closed(self, target: Target, since: Moment) -> bool:
        """Whether an instance is known to have ended since a step, and its values with it; windows keep them."""
        stream = self._checker.program.streams[target[0]]
        close = stream.close
        if close is None or not isinstance(close.pacing, ir.EventPacing):
            return False
        for at in range(bisect_left(self._checker.times, since[0]), len(self._checker.times)):
            moment = self._checker.times[at], at
            if moment >= self._moment:
                break
            if moment >= since and self._checker._due(close.pacing, moment):
                own = Node(target, moment, moment, None, self._node.below)
                with suppress(Unknown):
                    if _Reader(self._checker, stream, own, moment, None).true(close.condition):
                        return True
        return False

    def _window(self, read: ir.ReadWindow) -> Any:
        window = self._checker.program.windows[read.window]
        target = window.target, tuple(self.value(each) for each in read.arguments)
        found: list[tuple[int, Any]] = []
        begin = None if window.duration is None else self._moment[0] - int(window.duration * 10**9)
        for moment, value in self._back_from(target, begin, window.count):
            found.insert(0, (moment[0], value))
        if window.count is not None and window.exactly and len(found) < window.count:
            return None
        begun = self._checker._start if self._begun is None else self._begun[0]
        if window.count is None and window.exactly and begin is not None and begun > begin:
            return None
        kind = window.type.inner if isinstance(window.type, ir.OptionalOf) else window.type
        integer = getattr(kind, "family", "") in ("Int", "UInt")
        return aggregate(window.function, window.percentile, found, integer, False)

    def _back_from(self, target: Target, begin: int | None, count: int | None) -> Any:
        """The values of a window, the newest first."""
        stream = self._checker.program.streams[target[0]]
        times = self._checker.times
        if begin is not None and not stream.periodic:
            now = self._moment
            last = bisect_right(times, now[0]) - 1 if now[1] == _LATE else now[1]
            for at in range(last, bisect_right(times, begin) - 1, -1):
                if self._begins_behind(target, (times[at], at)):
                    return
                try:
                    value = self._at(target, (times[at], at))
                except Unknown:
                    if self._stream.spawn is None and stream.spawn is None:
                        raise
                    return
                if value is not None:
                    yield (times[at], at), value
            return
        for place, each in enumerate(self._back(target, self._moment, True, True, begin), 1):
            if (begin is not None and each[0][0] <= begin) or self._begins_behind(target, each[0]):
                return
            yield each
            if place == count:
                return

    def _begins_behind(self, target: Target, moment: Moment) -> bool:
        """Whether the windows of an instance do not reach back so far: they begin with its spawn, or behind it."""
        if self._begun is None:
            return False
        plain = not self._checker.program.streams[target[0]].parameters
        return moment <= self._begun if plain else moment < self._begun

    def _instances(self, number: int) -> Any:
        chosen = self._checker.program.aggregates[number]
        newest: dict[Target, Node] = {}
        for child in self._node.below:
            if child.target[0] == chosen.target and child.value is not None and child.last <= self._moment:
                if chosen.selection == "fresh" and child.last != self._moment:
                    continue
                known = newest.get(child.target)
                if known is None or known.last < child.last:
                    newest[child.target] = child
        kind = chosen.type.inner if isinstance(chosen.type, ir.OptionalOf) else chosen.type
        integer = getattr(kind, "family", "") in ("Int", "UInt")
        pairs = [(each.last[0], each.value) for each in newest.values()]
        return aggregate(chosen.function, chosen.percentile, pairs, integer, True)


def typed(told: Any, kind: Any) -> Any:
    """A value of JSON as one of its type."""
    if isinstance(told, list):
        parts = getattr(kind, "parts", [None] * len(told))
        return tuple(typed(each, part) for each, part in zip(told, parts, strict=False))
    family = getattr(kind, "family", "")
    if family == "Float" and isinstance(told, int | str) and not isinstance(told, bool):
        return float(told)
    if family in ("Int", "UInt") and isinstance(told, str):
        return int(told)
    return told


def alike(one: Any, two: Any) -> bool:
    """Whether two values are one; floats may differ by rounding, in a message, too."""
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(alike(a, b) for a, b in zip(one, two, strict=True))
    if isinstance(one, bool) is not isinstance(two, bool):
        return False
    if isinstance(one, float) and isinstance(two, float):
        return one == two or math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, str) and isinstance(two, str) and one != two:
        told, right = _FRACTION.split(one), _FRACTION.split(two)
        return told[::2] == right[::2] and all(
            math.isclose(float(a), float(b), rel_tol=1e-9) for a, b in zip(told[1::2], right[1::2], strict=True)
        )
    return bool(one == two)
