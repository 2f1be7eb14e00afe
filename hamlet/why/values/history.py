"""All that a specification computed, step by step, and what an expression read at one of the steps."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, cast

from hamlet.oracle.streams import Arguments, Event, Instance, Run, StreamReader
from hamlet.streams.program.ir import Access, Expression, Program, Read, ReadInstances, ReadWindow, Stream

Target = tuple[int, Arguments]  # a stream and the parameters of an instance
Asked = tuple[int, Arguments, int, int]  # a target, and the first and the last step that was asked about


@dataclass(eq=False)
class Life:
    """An instance from its spawn to its end.

    Attributes
    ----------
    spawned : int
        The step of its spawn; -1 for what is there from the start.
    closed : int or None
        The last step in which it was there; None while it is.
    """

    spawned: int
    instance: Instance
    closed: int | None = None


class History(Run):
    """A run that forgets nothing: every step, every value, every instance that ever was.

    Parameters
    ----------
    program : Program
    events : sequence of (int, mapping of str to Any)
        Time in ns, and the values of inputs by name.
    start : int
        From when periods count, ns.
    until : int or None
        Deadlines up to and including this time are run after the events.

    Attributes
    ----------
    times : list of int
        Of each step, ns.
    places : list of int or None
        Of each step the event's place; None at a deadline.
    turns : list of int
        Of each step its number among the events, or among the deadlines.
    """

    def __init__(self, program: Program, events: Sequence[Event], start: int, until: int | None) -> None:
        super().__init__(program, start, True)
        self.times: list[int] = []
        self.places: list[int | None] = []
        self.lives: dict[Target, list[Life]] = {}
        for stream in program.streams:
            if stream.spawn is None:
                self.lives[stream.id, ()] = [Life(-1, self.living[stream.id][()])]
        self.turns: list[int] = []
        self._place = -1
        for self._place, (time, columns) in enumerate(events):
            self.ticks_before(time)
            self.step(time, columns)
        if until is not None:
            self.ticks_before(until + 1)

    def step(self, time: int, columns: Mapping[str, Any] | None) -> None:
        """One event, or one deadline where there are no columns."""
        self.times.append(time)
        self.places.append(None if columns is None else self._place)
        self.turns.append(len(self.times) - 2 - self._place if columns is None else self._place)
        super().step(time, columns)

    def spawned(self, stream: Stream, arguments: Arguments, instance: Instance) -> None:
        """Hear of a new instance."""
        self.lives.setdefault((stream.id, arguments), []).append(Life(self.number, instance))

    def ended(self, stream: Stream, arguments: Arguments) -> None:
        """Hear of an instance that ends with this step."""
        self.lives[stream.id, arguments][-1].closed = self.number

    # ------------------------------------------------------------------------------------------- looking back

    def life(self, target: Target, step: int) -> Life | None:
        """The instance that was there in a step."""
        for life in reversed(self.lives.get(target, ())):
            if life.spawned <= step and (life.closed is None or step <= life.closed):
                return life
        return None

    def last_life(self, target: Target, step: int) -> Life | None:
        """The instance that was there in a step, or the last one that was before it."""
        return next((life for life in reversed(self.lives.get(target, ())) if life.spawned <= step), None)

    def value(self, target: Target, step: int) -> Any:
        """The value of a step, None where the stream was not extended."""
        life = self.life(target, step)
        if life is None:
            return None
        place = bisect_left(life.instance.values, step, key=lambda each: each[0])
        found = life.instance.values[place : place + 1]
        return found[0][2] if found and found[0][0] == step else None

    def steps_of(self, target: Target, steps: Sequence[int]) -> list[int]:
        """Those of some steps in which a stream may be extended: its deadlines if it is periodic, else events."""
        stream = self.program.streams[target[0]]
        if not stream.periodic:
            return [step for step in steps if self.places[step] is not None]
        return [step for step in steps if self.places[step] is None and self._is_deadline(stream, target, step)]

    def _is_deadline(self, stream: Stream, target: Target, step: int) -> bool:
        """Whether a step is a deadline of an instance."""
        life, past = self.life(target, step), Past(self, step)
        begin = self.start if life is None else life.instance.time
        return any(Run.active(cast(Any, past), clause.pacing, begin) for clause in stream.evals)

    def steps_with_values(self, target: Target, first: int, last: int) -> list[int]:
        """The steps of a range in which a stream was extended."""
        found: list[int] = []
        for life in self.lives.get(target, ()):
            values = life.instance.values
            low = bisect_left(values, first, key=lambda each: each[0])
            high = bisect_right(values, last, key=lambda each: each[0])
            found += [step for step, _, _ in values[low:high]]
        return found


class Past:
    """The state of a run in one of its steps, as readers of expressions ask for it."""

    def __init__(self, history: History, step: int) -> None:
        self.program = history.program
        self.start = history.start
        self.number = step
        self.time = history.times[step]
        self.tick = history.places[step] is None
        self.living = [_Instances(history, stream.id, step, True) for stream in history.program.streams]
        self.closed = [_Instances(history, stream.id, step, False) for stream in history.program.streams]


class _Instances:
    """The instances of a stream in a step, by parameters, with the values that they had by then."""

    def __init__(self, history: History, stream: int, step: int, living: bool) -> None:
        self._history, self._stream, self._step, self._living = history, stream, step, living

    def get(self, arguments: Arguments) -> Instance | None:
        target = self._stream, arguments
        found = self._history.life if self._living else self._history.last_life
        life = found(target, self._step)
        return None if life is None else self._cut(life)

    def _cut(self, life: Life) -> Instance:
        instance = life.instance
        end = bisect_right(instance.values, self._step, key=lambda each: each[0])
        return Instance(instance.time, instance.step, instance.values[:end])

    def items(self) -> Iterator[tuple[Arguments, Instance]]:
        """The instances that are there."""
        for stream, arguments in list(self._history.lives):
            if stream == self._stream:
                life = self._history.life((stream, arguments), self._step)
                if life is not None:
                    yield arguments, self._cut(life)

    def values(self) -> Iterator[Instance]:
        return (instance for _, instance in self.items())


class Witness(StreamReader):
    """Computes an expression in a step of the past and notes what it reads."""

    def __init__(self, history: History, stream: Stream, arguments: Arguments, step: int) -> None:
        past: Any = Past(history, step)
        life = history.life((stream.id, arguments), step)
        super().__init__(past, stream, None if life is None else life.instance, arguments, False)
        self.history = history
        self.asked: list[Asked] = []

    def _read(self, read: Read) -> Any:
        arguments = tuple(self.value(each) for each in read.arguments)
        target, step = (read.stream, arguments), self.run.number
        first, last = step, step
        if read.access is Access.HOLD:
            first = self._before(target, step, 1)
        elif read.access is Access.TIME:
            last = bisect_right(self.history.times, self.run.time - read.amount, hi=step + 1) - 1
            first = self._before(target, last, 1)
        elif read.access not in (Access.NOW, Access.GET, Access.FRESH):
            last = step - 1
            first = self._before(target, last, read.amount)
        if 0 <= first <= last:  # before the first step nobody has a value
            self.asked.append((*target, first, last))
        return super()._read(read)

    def _before(self, target: Target, last: int, count: int) -> int:
        """The step of the count-th value back from a step on, or the first step that may have had one."""
        life = self.history.life(target, self.run.number)
        if life is None:
            return last  # an instance that is gone takes its values with it
        begin, values = max(life.spawned, 0), life.instance.values
        low, high = (bisect_left(values, each, key=itemgetter(0)) for each in (begin, last + 1))
        return int(values[high - count][0]) if high - low >= count else begin

    def _window(self, read: ReadWindow) -> Any:
        window = self.run.program.windows[read.window]
        arguments = tuple(self.value(each) for each in read.arguments)
        target, step = (window.target, arguments), self.run.number
        if window.count is not None:
            first = self._before(target, step, window.count)
        else:
            length = 0 if window.duration is None else int(window.duration * 10**9)
            first = bisect_right(self.history.times, self.run.time - length)
        if self.stream.spawn is not None and self.instance is not None:
            # windows over streams without parameters begin behind the step of the spawn
            plain = not self.run.program.streams[window.target].parameters
            first = max(first, self.instance.step + plain)
        if first <= step:
            self.asked.append((*target, first, step))
        return super()._window(read)

    def _instances(self, number: int) -> Any:
        chosen = self.run.program.aggregates[number]
        step = self.run.number
        for arguments, _ in self.run.living[chosen.target].items():
            target = chosen.target, arguments
            self.asked.append((*target, self._before(target, step, 1) if chosen.selection == "all" else step, step))
        return super()._instances(number)


__all__ = ["Asked", "Expression", "History", "Life", "Past", "ReadInstances", "Target", "Witness"]
