"""Specifications of one call as one program: inputs are read once, and equal streams are evaluated once.

Two streams are equal where their clauses are, up to the streams, windows and instance aggregates that these read, which
have to be equal in turn; a stream may read its own past. This is the coarsest partition of all streams that is stable
under the reads (as in the minimization of automata): equal streams start empty and are extended at the same steps by
the same expressions of equal values, so that they never differ. Names do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import Any

from hamlet.streams.program import ir
from hamlet.streams.program.compile_clauses import clauses_of

_ROUNDS = 64  # of the partition; a chain of streams that is longer is not looked through to its end
_LONGEST_CYCLE = 3600  # seconds


class Together:
    """Several programs as one.

    Parameters
    ----------
    programs : sequence of ir.Program
        Inputs of one name have values of one family.

    Attributes
    ----------
    program : ir.Program
    numbers : list of dict of int to int
        For each program: its streams by their numbers in the common one.
    shared : int
        How many streams are evaluated once instead of several times.
    """

    def __init__(self, programs: Sequence[ir.Program]) -> None:
        self._programs = programs
        names: dict[str, ir.Stream] = {}
        for program in programs:
            for each in program.streams[: program.inputs]:
                names.setdefault(each.name, each)
        self._inputs = {name: place for place, name in enumerate(names)}
        self._layer_of = [_layers(program) for program in programs]
        self._classes = self._partition()
        order, self.shared = self._order()
        self.numbers: list[dict[int, int]] = [{} for _ in programs]
        self._numbers_of: list[dict[int, int]] = [{} for _ in programs]
        for which, program in enumerate(programs):
            for each in program.streams[: program.inputs]:
                self._note(which, each.id, self._inputs[each.name])
        for place, members in enumerate(order):
            for which, number in members:
                self._note(which, number, len(names) + place)
        self._windows: list[ir.Window] = []
        self._aggregates: list[ir.InstanceAggregate] = []
        streams = [replace(each, id=place) for place, each in enumerate(names.values())]
        streams += [self._stream(*members[0]) for members in order]
        self.program = ir.Program(
            tuple(streams),
            len(names),
            tuple(self._windows),
            tuple(self._aggregates),
            self._layers(),
            "\n".join(each.text for each in programs),
            ", ".join(each.source for each in programs),
        )

    def _note(self, which: int, number: int, common: int) -> None:
        self._numbers_of[which][number] = common
        self.numbers[which][common] = number

    # --------------------------------------------------------------------------------------------------- equal streams

    def _partition(self) -> list[dict[int, int]]:
        """The class of every stream; inputs are classes of their own."""
        classes: list[dict[int, int]] = []
        for program in self._programs:
            found = {each.id: -1 for each in program.streams}
            found.update((each.id, -2 - self._inputs[each.name]) for each in program.streams[: program.inputs])
            classes.append(found)
        known = 1
        for _ in range(_ROUNDS):
            keys: dict[Any, int] = {}
            fresh = [dict(each) for each in classes]
            for which, program in enumerate(self._programs):
                for stream in program.streams[program.inputs :]:
                    key = (classes[which][stream.id], self._shape(which, stream, classes[which]))
                    fresh[which][stream.id] = keys.setdefault(key, len(keys))
            classes = fresh
            if len(keys) == known:
                return classes
            known = len(keys)
        return [
            {each.id: which << 32 | each.id for each in program.streams} for which, program in enumerate(self._programs)
        ]

    def _shape(self, which: int, stream: ir.Stream, classes: Mapping[int, int]) -> Any:
        """All that a stream does, but names and places in the text; streams that it reads by class."""
        clauses = [each for each in (stream.spawn, *stream.evals, stream.close) if each is not None]
        kinds = tuple(kind for _, kind in stream.parameters)
        shapes = tuple(self._shape_of(which, each, classes) for each in clauses)
        return stream.kind, str(stream.type), tuple(map(str, kinds)), self._layer_of[which].get(stream.id), shapes

    def _shape_of(self, which: int, part: Any, classes: Mapping[int, int]) -> Any:
        program = self._programs[which]
        if isinstance(part, ir.EventPacing):
            return "event", tuple(sorted(self._term(which, each) for each in part.terms))
        if isinstance(part, ir.ReadWindow):
            window = program.windows[part.window]
            target: Any = ("window", *_window_key(window), classes[window.target])
            return target, self._shape_of(which, part.arguments, classes)
        if isinstance(part, ir.ReadInstances):
            found = program.aggregates[part.aggregate]
            return (
                "instances",
                found.selection,
                found.function,
                found.percentile,
                str(found.type),
                classes[found.target],
            )
        if isinstance(part, ir.Read):
            arguments = self._shape_of(which, part.arguments, classes)
            return "read", classes[part.stream], part.access.name, part.amount, str(part.type), arguments
        if isinstance(part, tuple):
            return tuple(self._shape_of(which, each, classes) for each in part)
        if is_dataclass(part):
            inner = tuple(
                self._shape_of(which, getattr(part, each.name), classes) for each in fields(part) if each.name != "span"
            )
            return type(part).__name__, inner
        return type(part).__name__, repr(part)  # -0.0 is not 0.0

    def _term(self, which: int, term: int) -> int:
        """A set of inputs as one of the common inputs."""
        program = self._programs[which]
        return sum(1 << self._inputs[program.streams[place].name] for place in ir.bits_of(term))

    # ---------------------------------------------------------------------------------------------------- one program

    def _order(self) -> tuple[list[list[tuple[int, int]]], int]:
        """The outputs of the common program, each with the streams that it stands for, and how many are saved.

        The rows of a step come in the order of the text, so that a stream is shared only where that keeps the order.
        """
        order: list[list[tuple[int, int]]] = []
        shared = 0
        for which, program in enumerate(self._programs):
            place = 0  # where the next stream of this program stands at the earliest
            for stream in program.streams[program.inputs :]:
                mine = self._classes[which][stream.id]
                found = next(
                    (
                        later
                        for later in range(place, len(order))
                        if self._classes[order[later][0][0]][order[later][0][1]] == mine
                        and all(other != which for other, _ in order[later])
                    ),
                    None,
                )
                if found is None:
                    order.insert(place, [(which, stream.id)])
                    place += 1
                else:
                    order[found].append((which, stream.id))
                    place, shared = found + 1, shared + 1
        return order, shared

    def _stream(self, which: int, number: int) -> ir.Stream:
        """A stream with all numbers changed to those of the common program."""
        stream = self._programs[which].streams[number]
        windows: dict[int, int] = {}
        changed = self._changed(which, windows)
        return replace(
            stream,
            id=self._numbers_of[which][number],
            spawn=changed(stream.spawn),
            evals=tuple(map(changed, stream.evals)),
            close=changed(stream.close),
        )

    def _changed(self, which: int, windows: dict[int, int]) -> Callable[[Any], Any]:
        program, numbers = self._programs[which], self._numbers_of[which]

        def changed(part: Any) -> Any:
            if isinstance(part, ir.EventPacing):
                return ir.EventPacing(tuple(sorted(self._term(which, each) for each in part.terms)))
            if isinstance(part, tuple):
                return tuple(map(changed, part))
            if not is_dataclass(part) or isinstance(part, (ir.PeriodicPacing, ir.Scalar, ir.OptionalOf, ir.TupleOf)):
                return part
            parts = {each.name: changed(getattr(part, each.name)) for each in fields(part) if each.name != "span"}
            made: Any = replace(part, **parts)  # type: ignore[type-var]
            if isinstance(made, ir.Read):
                return replace(made, stream=numbers[made.stream])
            if isinstance(made, ir.ReadWindow):
                return replace(made, window=self._window(program.windows[made.window], numbers, windows))
            if isinstance(made, ir.ReadInstances):
                found = program.aggregates[made.aggregate]
                self._aggregates.append(
                    replace(found, id=len(self._aggregates), reader=numbers[found.reader], target=numbers[found.target])
                )
                return replace(made, aggregate=len(self._aggregates) - 1)
            return made

        return changed

    def _window(self, window: ir.Window, numbers: Mapping[int, int], windows: dict[int, int]) -> int:
        """The number of a window of the stream that is changed."""
        if window.id not in windows:
            windows[window.id] = len(self._windows)
            moved = replace(window, id=len(self._windows), reader=numbers[window.reader], target=numbers[window.target])
            self._windows.append(moved)
        return windows[window.id]

    def _layers(self) -> tuple[tuple[ir.Task, ...], ...]:
        """The tasks of all programs, layer by layer; streams that are shared stand in the same in each."""
        depth = max(len(each.layers) for each in self._programs)
        layers: list[dict[tuple[int, bool], ir.Task]] = [{} for _ in range(depth)]
        for which, program in enumerate(self._programs):
            for place, layer in enumerate(program.layers):
                for task in layer:
                    number = self._numbers_of[which][task.stream]
                    layers[place].setdefault((number, task.spawn), ir.Task(number, task.spawn))
        return tuple(tuple(sorted(each.values(), key=lambda task: task.stream)) for each in layers)


def _window_key(window: ir.Window) -> tuple[Any, ...]:
    return (
        window.duration,
        window.count,
        window.exactly,
        window.function,
        window.percentile,
        window.period,
        str(window.type),
    )


def _layers(program: ir.Program) -> dict[int, tuple[tuple[int, bool], ...]]:
    """The layers that the tasks of each stream stand in."""
    found: dict[int, tuple[tuple[int, bool], ...]] = {}
    for place, layer in enumerate(program.layers):
        for task in layer:
            found[task.stream] = (*found.get(task.stream, ()), (place, task.spawn))
    return found


def can_run_together(programs: Sequence[ir.Program]) -> bool:
    """Whether one evaluation of several programs skips idle deadlines as well as one of each does."""
    periods = {
        pacing.period
        for program in programs
        for stream in program.streams
        for pacing, _, _ in clauses_of(stream)
        if isinstance(pacing, ir.PeriodicPacing)
    }
    if len(periods) < 2:
        return True
    cycle = Fraction(math.lcm(*(each.numerator for each in periods)), math.gcd(*(each.denominator for each in periods)))
    return cycle <= _LONGEST_CYCLE
