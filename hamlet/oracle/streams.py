"""The brute-force interpreter of stream equations: every value of every stream is kept, and looked up again.

Obviously right instead of fast: a step is done as it is described, one event or deadline at a time, and a window is
the list of the values that it covers. It shares the program (`hamlet.streams.program.ir`) with the evaluator and
nothing else.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from hamlet.oracle.stream_values import ArithmeticMistakeError, aggregate, binary, call, unary
from hamlet.streams.program.ir import (
    Access,
    Binary,
    Call,
    Choice,
    Constant,
    Default,
    EventPacing,
    Expression,
    GetPart,
    Kind,
    MakeTuple,
    OptionalOf,
    Pacing,
    Parameter,
    PeriodicPacing,
    Program,
    Read,
    ReadInstances,
    ReadWindow,
    Stream,
    Task,
    Unary,
    ValueType,
    Window,
)

Event = tuple[int, Mapping[str, Any]]
Arguments = tuple[Any, ...]


class StreamMistakeError(Exception):
    """A computation that has no result: names the stream and the time."""


class NoValueError(Exception):
    """A value of this step was read where there is none."""


@dataclass(eq=False)
class Instance:
    """One instance of a stream, with all values that it ever had.

    Attributes
    ----------
    time, step : int
        Of its spawn, ns; the start of the run and -1 for what is there from the start.
    values : list of (int, int, Any)
        Step, time and value of each, in order.
    """

    time: int
    step: int
    values: list[tuple[int, int, Any]] = field(default_factory=list)

    def now(self, step: int) -> tuple[Any, ...]:
        """The value of a step, or nothing."""
        return (self.values[-1][2],) if self.values and self.values[-1][0] == step else ()


@dataclass(frozen=True)
class Group:
    """The rows that one stream gives in one step.

    Attributes
    ----------
    step : int
        Which, from 0.
    rows : list of dict
        In no particular order.
    """

    step: int
    rows: list[dict[str, Any]]


def evaluate(
    program: Program,
    events: Sequence[Event],
    *,
    start: int | None = None,
    until: int | None = None,
    values: bool = False,
) -> list[Group]:
    """All rows of a specification.

    Parameters
    ----------
    program : Program
        A checked specification.
    events : sequence of (int, mapping of str to Any)
        Time in ns, never decreasing, and the values of inputs by name; None or a missing name: not extended.
    start : int, optional
        From when periods count; the first event's time where it is not given.
    until : int, optional
        Deadlines up to and including this time, and the last event's, are run after the events.
    values : bool
        Whether the outputs' values are rows, too.

    Returns
    -------
    list of Group
        By step, then by place in the text.

    Raises
    ------
    StreamMistakeError
        At the first overflow, integer division by zero or NaN.
    """
    run = Run(program, events[0][0] if start is None and events else start or 0, values)
    for time, columns in events:
        run.ticks_before(time)
        run.step(time, columns)
    ends = [time for time, _ in events[-1:]] + ([] if until is None else [until])
    if ends:
        run.ticks_before(max(ends) + 1)
    return run.groups


class Run:
    """A specification over events that are given one by one, with all that it keeps."""

    def __init__(self, program: Program, start: int, values: bool) -> None:
        self.program = program
        self.start = start
        self.with_values = values
        self.groups: list[Group] = []
        self.number = -1  # of the step
        self.time = start
        self.last_tick = start
        self.living: list[dict[Arguments, Instance]] = [
            {} if each.spawn is not None else {(): Instance(start, -1)} for each in program.streams
        ]
        self.closed: list[dict[Arguments, Instance]] = [{} for _ in program.streams]
        self.fresh: set[int] = set()
        self.tick = False

    # -------------------------------------------------------------------------------------------- steps

    def ticks_before(self, time: int) -> None:
        """Run all deadlines before a time, one step for each."""
        while True:
            due = min(self._deadlines(), default=None)
            if due is None or due >= time:
                return
            self.step(due, None)
            self.last_tick = due

    def _deadlines(self) -> Iterator[int]:
        """The next deadline of every periodic clause and instance."""
        for stream in self.program.streams:
            clauses = [clause for clause in (stream.spawn, *stream.evals, stream.close) if clause is not None]
            for clause in clauses:
                if isinstance(clause.pacing, PeriodicPacing):
                    begins = [self.start]
                    if clause.pacing.local:
                        begins = [instance.time for instance in self.living[stream.id].values()]
                    for begin in begins:
                        yield self._next(clause.pacing, begin)

    def _next(self, pacing: PeriodicPacing, begin: int) -> int:
        """The first deadline that has not been run."""
        k = 1
        passed = self.last_tick - begin
        if passed > 0:
            k = max(1, int(passed / (pacing.period * 10**9)) - 1)
        while begin + _due(pacing, k) <= self.last_tick:
            k += 1
        return begin + _due(pacing, k)

    def step(self, time: int, columns: Mapping[str, Any] | None) -> None:
        """One event, or one deadline where there are no columns."""
        self.number += 1
        self.time, self.tick, self.fresh = time, columns is None, set()
        for stream in self.program.streams[: self.program.inputs]:
            value = None if columns is None else columns.get(stream.name)
            if value is not None:
                self.living[stream.id][()].values.append((self.number, time, value))
                self.fresh.add(stream.id)
        for layer in self.program.layers:
            for task in layer:
                self._do(task)
        gone = [(stream, arguments) for stream in self.program.streams for arguments in self._closing(stream)]
        for stream in self.program.streams[self.program.inputs :]:
            if stream.kind is Kind.TRIGGER or self.with_values:
                self._rows(stream)
        for stream, arguments in gone:
            self.closed[stream.id][arguments] = self.living[stream.id].pop(arguments)
            self.ended(stream, arguments)

    def spawned(self, stream: Stream, arguments: Arguments, instance: Instance) -> None:
        """Hear of a new instance; for those who keep a history."""

    def ended(self, stream: Stream, arguments: Arguments) -> None:
        """Hear of an instance that ends with this step."""

    def _rows(self, stream: Stream) -> None:
        rows = []
        for arguments, instance in self.living[stream.id].items():
            for value in instance.now(self.number):
                named = dict(zip((name for name, _ in stream.parameters), arguments, strict=True))
                if stream.kind is Kind.TRIGGER:
                    rows.append({"trigger": value, "time": self.time, **named})
                else:
                    rows.append({"stream": stream.name, "time": self.time, **named, "value": value})
        if rows:
            self.groups.append(Group(self.number, rows))

    def active(self, pacing: Pacing, begin: int) -> bool:
        """Whether a clause is evaluated in this step; `begin` is the spawn of the instance."""
        if isinstance(pacing, EventPacing):
            return not self.tick and _holds(pacing, self.fresh)
        if not self.tick:
            return False
        passed = self.time - (begin if pacing.local else self.start)
        k = int(passed / (pacing.period * 10**9))
        return any(each > 0 and _due(pacing, each) == passed for each in (k - 1, k, k + 1))

    # ------------------------------------------------------------------------------------------ clauses

    def _do(self, task: Task) -> None:
        stream = self.program.streams[task.stream]
        try:
            if task.spawn:
                self._spawn(stream)
            else:
                for arguments in list(self.living[stream.id]):
                    self._extend(stream, arguments)
        except ArithmeticMistakeError as error:
            raise StreamMistakeError(f"{stream.name} at {self.time}: {error}") from None

    def _spawn(self, stream: Stream) -> None:
        clause = stream.spawn
        assert clause is not None
        if not self.active(clause.pacing, self.start) or not self._true(clause.condition, stream, None):
            return
        reader = StreamReader(self, stream, None, ())
        arguments = tuple(reader.value(each) for each in clause.arguments)
        if arguments not in self.living[stream.id]:
            self.living[stream.id][arguments] = Instance(self.time, self.number)
            self.spawned(stream, arguments, self.living[stream.id][arguments])
            self.closed[stream.id].pop(arguments, None)

    def _extend(self, stream: Stream, arguments: Arguments) -> None:
        instance = self.living[stream.id][arguments]
        for clause in stream.evals:
            if self.active(clause.pacing, instance.time) and self._true(clause.condition, stream, arguments):
                value = StreamReader(self, stream, instance, arguments).value(clause.expression)
                instance.values.append((self.number, self.time, value))
                return

    def _closing(self, stream: Stream) -> list[Arguments]:
        """The instances that end with this step."""
        clause = stream.close
        if clause is None:
            return []
        try:
            return [
                arguments
                for arguments, instance in self.living[stream.id].items()
                if self.active(clause.pacing, instance.time)
                and self._true(clause.condition, stream, arguments, newest=True)
            ]
        except ArithmeticMistakeError as error:
            raise StreamMistakeError(f"{stream.name} at {self.time}: {error}") from None

    def _true(
        self, condition: Expression | None, stream: Stream, arguments: Arguments | None, *, newest: bool = False
    ) -> bool:
        """Whether a condition holds; one that reads a value which is not there does not.

        A close reads newest values: a condition may become true in a step that does not extend the instance.
        """
        if condition is None:
            return True
        instance = None if arguments is None else self.living[stream.id][arguments]
        try:
            return bool(StreamReader(self, stream, instance, arguments or (), newest).value(condition))
        except NoValueError:
            return False


@dataclass
class StreamReader:
    """Computes expressions for one instance of a stream.

    `instance` is None in a spawn clause; `newest` says that streams are read as they stand, extended now or not.
    """

    run: Run
    stream: Stream
    instance: Instance | None
    arguments: Arguments
    newest: bool = False

    def value(self, expression: Expression) -> Any:
        """The value of an expression, None where an optional has none."""
        match expression:
            case Constant(value=value):
                return value
            case Parameter(index=index):
                return self.arguments[index]
            case Unary(operator=operator, operand=operand):
                return unary(operator, self.value(operand), expression.type)
            case Binary(operator="&&", left=left, right=right):
                return self.value(left) and self.value(right)
            case Binary(operator="||", left=left, right=right):
                return self.value(left) or self.value(right)
            case Binary(operator=operator, left=left, right=right):
                return binary(operator, self.value(left), self.value(right), expression.type)
            case Choice(condition=condition, left=left, right=right):
                return self.value(left if self.value(condition) else right)
            case MakeTuple(parts=parts):
                return tuple(self.value(part) for part in parts)
            case GetPart(operand=operand, index=index):
                whole = self.value(operand)
                return None if whole is None else whole[index]
            case Default(operand=operand, value=otherwise):
                found = self.value(operand)
                return self.value(otherwise) if found is None else found
            case Call(function=function, arguments=arguments):
                return call(function, [self.value(each) for each in arguments], expression.type)
            case Read():
                return self._read(expression)
            case ReadWindow():
                return self._window(expression)
            case ReadInstances(aggregate=number):
                return self._instances(number)
        raise AssertionError(expression)

    def _read(self, read: Read) -> Any:
        run = self.run
        arguments = tuple(self.value(each) for each in read.arguments)
        instance = run.living[read.stream].get(arguments)
        now = () if instance is None else instance.now(run.number)
        if read.access is Access.FRESH:
            return bool(now)
        if read.access is Access.NOW:
            if not now and self.newest and instance is not None:
                now = tuple(value for _, _, value in instance.values[-1:])
            if not now:
                raise NoValueError
            return now[0]
        if instance is None:
            return None
        if read.access is Access.GET:
            return now[0] if now else None
        if read.access is Access.HOLD:
            return instance.values[-1][2] if instance.values else None
        if read.access is Access.TIME:
            old = bisect_right(instance.values, run.time - read.amount, key=itemgetter(1))
            return instance.values[old - 1][2] if old else None
        before = bisect_left(instance.values, run.number, key=itemgetter(0))
        return instance.values[before - read.amount][2] if before >= read.amount else None

    # ------------------------------------------------------------------------------------------ windows

    def _window(self, read: ReadWindow) -> Any:
        window = self.run.program.windows[read.window]
        arguments = tuple(self.value(each) for each in read.arguments)
        target = self.run.living[window.target].get(arguments) or self.run.closed[window.target].get(arguments)
        values = [] if target is None else self._reach(window, target)
        if window.count is not None:
            values = values[-window.count :]
            if window.exactly and len(values) < window.count:
                return None
        else:
            begin = self.run.time - _nanoseconds(window)
            if window.exactly and self._begin() > begin:
                return None
            values = [(time, value) for time, value in values if time > begin]
        return aggregate(window.function, window.percentile, values, _plain(window.type))

    def _reach(self, window: Window, target: Instance) -> list[tuple[int, Any]]:
        """The values that the window of this reader has seen, whatever their age."""
        first = -1
        if self.stream.spawn is not None and self.instance is not None:
            plain = not self.run.program.streams[window.target].parameters
            first = self.instance.step + (1 if plain else 0)
        return [(time, value) for step, time, value in target.values if step >= first]

    def _begin(self) -> int:
        """When the windows of this reader begin: with its spawn, or with the run."""
        return self.run.start if self.instance is None or self.stream.spawn is None else self.instance.time

    def _instances(self, number: int) -> Any:
        chosen = self.run.program.aggregates[number]
        pairs = []
        for instance in self.run.living[chosen.target].values():
            fresh = instance.now(self.run.number)
            if chosen.selection == "fresh" and fresh:
                pairs.append((self.run.time, fresh[0]))
            elif chosen.selection == "all" and instance.values:
                pairs.append((instance.values[-1][1], instance.values[-1][2]))
        return aggregate(chosen.function, chosen.percentile, pairs, _plain(chosen.type), instances=True)


def _plain(kind: ValueType) -> ValueType:
    return kind.inner if isinstance(kind, OptionalOf) else kind


def _due(pacing: PeriodicPacing, k: int) -> int:
    """Deadline k, in whole nanoseconds after the beginning."""
    return math.floor(k * pacing.period * 10**9)


def _nanoseconds(window: Window) -> int:
    return 0 if window.duration is None else math.floor(window.duration * 10**9)


def _holds(pacing: EventPacing, fresh: set[int]) -> bool:
    """Whether one of the sets of inputs, which are written as bits, is fresh as a whole."""
    return any(all(place in fresh for place in range(term.bit_length()) if term >> place & 1) for term in pacing.terms)
