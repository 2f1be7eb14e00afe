"""From a checked specification to what the evaluator runs: streams, windows, nodes and tasks.

Decided here: how many values each stream keeps, which conditions bind an instance (``eval when p = input`` finds its
instance by hash), which close clauses need a look only at instances that were extended, and after how long a state
without effects repeats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from hamlet.streams import ir
from hamlet.streams._evaluator import Clause, Closer, Evaluator, Task
from hamlet.streams._store import Store, Stream, Tally, WindowTable
from hamlet.streams.build_nodes import FAMILIES, OBJECT, Builder, family_of

MAX_DEADLINES = 10_000_000
NANOSECONDS = 1_000_000_000
_FUNCTIONS = ("count", "sum", "avg", "min", "max", "integral", "last", "var", "sd", "cov", "exists", "forall", "pctl")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an expression stands.

    Attributes
    ----------
    pacing : ir.Pacing
        Of the clause.
    spawning : bool
        In the spawn clause, where no instance is there yet.
    """

    pacing: ir.Pacing
    spawning: bool


def clauses_of(stream: ir.Stream) -> Iterator[tuple[ir.Pacing, tuple[ir.Expression, ...], bool]]:
    """Every clause of a stream: its pacing, its expressions, and whether it is the spawn clause."""
    if stream.spawn is not None:
        more = () if stream.spawn.condition is None else (stream.spawn.condition,)
        yield stream.spawn.pacing, (*more, *stream.spawn.arguments), True
    for each in stream.evals:
        yield each.pacing, (*(() if each.condition is None else (each.condition,)), each.expression), False
    if stream.close is not None:
        yield stream.close.pacing, () if stream.close.condition is None else (stream.close.condition,), False


def compile_program(
    program: ir.Program, *, values: bool, max_deadlines: int = MAX_DEADLINES, max_memory: int = 0
) -> Evaluator:
    """An evaluator at its beginning.

    Parameters
    ----------
    program : ir.Program
    values : bool
        Whether the values of outputs are rows, too.
    max_deadlines : int
        Most deadlines that are evaluated between two events.
    max_memory : int
        Bytes, 0 for no limit.
    """
    return _Compiler(program).evaluator(values, max_deadlines, max_memory)


class _Compiler:
    """Makes all parts of one program."""

    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.store = Store()
        self.places: dict[tuple[int, _Place], int] = {}  # places of windows: their tables
        self.reads: list[ir.Read] = []
        self.depths: dict[int, int] = {}  # values that offsets read of each stream
        self.ages: dict[int, int] = {}  # ns that offsets in real time reach back
        for stream in program.streams:
            for pacing, expressions, spawning in clauses_of(stream):
                for each in ir.walk(*expressions):
                    if isinstance(each, ir.ReadWindow):
                        self.places.setdefault((each.window, _Place(pacing, spawning)), len(self.places))
                    elif isinstance(each, ir.Read):
                        self.reads.append(each)
                        self._keep(stream, each, spawning)
        self.streams = [self._stream(each) for each in program.streams]
        self.windows = [self._window(program.windows[number], place) for number, place in self.places]
        self.tallies = [self._tally(each) for each in program.aggregates]
        self.tables_at: dict[_Place, dict[int, WindowTable]] = {}
        for (number, place), table in self.places.items():
            self.tables_at.setdefault(place, {})[number] = self.windows[table]
        self.builder = Builder(self.store, self.streams, self.tallies)
        self.pacings: dict[ir.Pacing, int] = {}

    # ----------------------------------------------------------------------------------------------------- storage

    def _keep(self, reader: ir.Stream, read: ir.Read, spawning: bool) -> None:
        """Note what a read needs to be kept.

        An instance that reads its own past in its eval clause has not been extended yet, so that n values back is the
        n-th of those that are there; whoever else reads may find one more.
        """
        if read.access is ir.Access.TIME:
            self.ages[read.stream] = max(self.ages.get(read.stream, 0), read.amount)
        if read.access is ir.Access.OFFSET:
            closing = reader.close is not None and reader.close.condition is not None
            in_close = closing and any(each is read for each in ir.walk(reader.close.condition))  # type: ignore[union-attr, arg-type]
            own = read.stream == reader.id and reads_own_key(read, reader) and not spawning and not in_close
            self.depths[read.stream] = max(self.depths.get(read.stream, 1), read.amount + (0 if own else 1))

    def _stream(self, stream: ir.Stream) -> Stream:
        depth, keep = self.depths.get(stream.id, 1), self.ages.get(stream.id, -1)
        return Stream(
            self.store,
            stream.id,
            stream.name,
            family_of(stream.type),
            depth,
            keep,
            bool(stream.parameters),
            stream.spawn is not None,
        )

    def _window(self, window: ir.Window, place: _Place) -> WindowTable:
        """The windows of one place: those of a spawn clause have no reader yet, and others count from its spawn."""
        reader, target = self.program.streams[window.reader], self.program.streams[window.target]
        own = reader.spawn is not None and not place.spawning
        local = own and isinstance(place.pacing, ir.PeriodicPacing) and place.pacing.local
        period = place.pacing.period if isinstance(place.pacing, ir.PeriodicPacing) else Fraction(0)
        result = window.type.inner if isinstance(window.type, ir.OptionalOf) else window.type
        return WindowTable(
            self.store,
            window.id,
            self.streams[target.id],
            self.streams[reader.id],
            _FUNCTIONS.index(window.function),
            family_of(target.type),
            family_of(result),
            window.percentile,
            window.nanoseconds,
            window.count or 0,
            window.exactly,
            (period.numerator, period.denominator),
            local,
            own,
        )

    def _tally(self, aggregate: ir.InstanceAggregate) -> Tally:
        result = aggregate.type.inner if isinstance(aggregate.type, ir.OptionalOf) else aggregate.type
        return Tally(
            self.store,
            aggregate.id,
            self.streams[aggregate.target],
            aggregate.selection == "fresh",
            _FUNCTIONS.index(aggregate.function),
            family_of(result),
            aggregate.percentile,
        )

    # ------------------------------------------------------------------------------------------------------- tasks

    def _pacing(self, pacing: ir.Pacing) -> int:
        return self.pacings.setdefault(pacing, len(self.pacings))

    def _at(self, pacing: ir.Pacing, *, spawning: bool = False) -> None:
        """Where the expressions stand that nodes are made of next."""
        self.builder.windows = self.tables_at.get(_Place(pacing, spawning), {})

    def _clause(
        self,
        stream: ir.Stream,
        pacing: ir.Pacing,
        condition: ir.Expression | None,
        expression: ir.Expression | None = None,
        *,
        spawning: bool = False,
        found_by_key: bool = False,
    ) -> Clause:
        """A clause; one whose instances are found by key alone does not compare the key again."""
        self._at(pacing, spawning=spawning)
        binding, rest = bound_values(stream, condition)
        asked = rest if found_by_key else condition
        return Clause(
            self._pacing(pacing),
            isinstance(pacing, ir.PeriodicPacing) and pacing.local,
            None if asked is None else self.builder.node(asked, stream),
            None if expression is None else self.builder.node(expression, stream),
            None if binding is None else [self.builder.node(each, stream) for each in binding],
        )

    def evaluator(self, values: bool, max_deadlines: int, max_memory: int) -> Evaluator:
        """All tasks, in an evaluator whose instances that are always there have begun."""
        program = self.program
        tasks, evaluations = [], {}
        for layer in program.layers:
            for each in layer:
                stream = program.streams[each.stream]
                made = self._spawn(stream) if each.spawn else self._evaluation(stream, values)
                pacing = stream.spawn.pacing if each.spawn and stream.spawn is not None else stream.evals[0].pacing
                tasks.append((made, each.spawn, isinstance(pacing, ir.PeriodicPacing)))
                if not each.spawn:
                    evaluations[stream.id] = made
        closers = []
        for stream in program.streams:
            if stream.close is None:
                continue
            watched = self._watched(stream, stream.close.condition)
            clause = self._clause(stream, stream.close.pacing, stream.close.condition)
            closer = Closer(self.streams[stream.id], clause, watched is not None)
            for number in watched or ():
                closer.watch(evaluations[number])
            closers.append((closer, isinstance(stream.close.pacing, ir.PeriodicPacing)))
        span, cycle = self._quiet_times()
        pacings = [self._described(each) for each in self.pacings]
        inputs = self.streams[: program.inputs]
        evaluator = Evaluator(self.store, inputs, pacings, tasks, closers, max_deadlines, span, cycle, max_memory)
        for windows in self.windows:
            windows.begin()
        for state in self.streams:
            state.begin()
        return evaluator

    def _described(self, pacing: ir.Pacing) -> tuple[object, ...]:
        if isinstance(pacing, ir.EventPacing):
            return pacing.inputs()
        return pacing.period.numerator, pacing.period.denominator, pacing.local

    def _spawn(self, stream: ir.Stream) -> Task:
        spawn = stream.spawn
        assert spawn is not None
        clause = self._clause(stream, spawn.pacing, spawn.condition, spawning=True)
        local = {
            pacing for pacing, _, _ in clauses_of(stream) if isinstance(pacing, ir.PeriodicPacing) and pacing.local
        }
        arguments = [self.builder.node(each, stream) for each in spawn.arguments]
        return Task(self.streams[stream.id], [clause], arguments, False, sorted(map(self._pacing, local)))

    def _evaluation(self, stream: ir.Stream, values: bool) -> Task:
        bindings = [bound_values(stream, each.condition)[0] for each in stream.evals]
        by_key = bindings[0] is not None and all(each == bindings[0] for each in bindings)
        clauses = [
            self._clause(
                stream,
                each.pacing,
                each.condition,
                each.expression,
                found_by_key=by_key and not stream.periodic,
            )
            for each in stream.evals
        ]
        emits = values or stream.kind is ir.Kind.TRIGGER
        return Task(self.streams[stream.id], clauses, None, emits, [])

    def _watched(self, stream: ir.Stream, condition: ir.Expression | None) -> list[int] | None:
        """The streams whose new values alone can make a close condition true; None where others can, too."""
        if condition is None or not stream.parameters:
            return None
        found = set()
        for each in ir.walk(condition):
            if isinstance(each, (ir.ReadWindow, ir.ReadInstances)):
                return None
            if isinstance(each, ir.Read):
                newest = each.access in (ir.Access.NOW, ir.Access.HOLD)
                if not newest or not reads_own_key(each, stream) or each.stream < self.program.inputs:
                    return None
                found.add(each.stream)
        return sorted(found) if found else None

    def _quiet_times(self) -> tuple[int, int]:
        """After how many ns without effect a state repeats, and its common period; (0, 0) where it may never."""
        periods = {
            pacing.period
            for stream in self.program.streams
            for pacing, _, _ in clauses_of(stream)
            if isinstance(pacing, ir.PeriodicPacing)
        }
        if not periods:
            return 0, 0
        cycle = Fraction(
            math.lcm(*(each.numerator for each in periods)), math.gcd(*(each.denominator for each in periods))
        )
        nanoseconds = (cycle * NANOSECONDS).numerator
        longest = max((each.nanoseconds for each in self.program.windows), default=0)
        counted = max((each.count or 0 for each in self.program.windows), default=0)
        depth = max((each.amount for each in self.reads if each.access is ir.Access.OFFSET), default=0)
        ago = max((each.amount for each in self.reads if each.access is ir.Access.TIME), default=0)
        slowest = math.ceil(max(periods) * NANOSECONDS)
        span = longest + ago + (counted + depth + 2) * slowest + 2 * nanoseconds
        return (0, 0) if span > 1 << 100 else (span, nanoseconds)


def bound_values(
    stream: ir.Stream, condition: ir.Expression | None
) -> tuple[list[ir.Expression] | None, ir.Expression | None]:
    """What all parameters must be for a condition to hold, None where it does not say; and what else it asks for."""
    if condition is None or not stream.parameters:
        return None, condition
    found: dict[int, ir.Expression] = {}
    rest: ir.Expression | None = None
    for each in _conjuncts(condition):
        pair = _equation(each)
        if pair is None or pair[0] in found:
            rest = each if rest is None else ir.Binary("&&", rest, each)
        else:
            found[pair[0]] = pair[1]
    if len(found) < len(stream.parameters):
        return None, condition
    return [found[place] for place in range(len(stream.parameters))], rest


def _conjuncts(expression: ir.Expression) -> Iterator[ir.Expression]:
    """The parts of a conjunction, in order."""
    if isinstance(expression, ir.Binary) and expression.operator == "&&":
        yield from _conjuncts(expression.left)
        yield from _conjuncts(expression.right)
    else:
        yield expression


def _equation(expression: ir.Expression) -> tuple[int, ir.Expression] | None:
    """The parameter and what it must be equal to, of ``p = e`` where no parameter stands in e."""
    if not isinstance(expression, ir.Binary) or expression.operator not in ("=", "=="):
        return None
    for side, other in ((expression.left, expression.right), (expression.right, expression.left)):
        if isinstance(side, ir.Parameter) and not any(isinstance(each, ir.Parameter) for each in ir.walk(other)):
            # windows of an instance's own cannot be read without the instance
            if any(isinstance(each, ir.ReadWindow) for each in ir.walk(other)):
                return None
            return side.index, other
    return None


def reads_own_key(read: ir.Read, stream: ir.Stream) -> bool:
    """Whether a read is of the instance with the parameters of the reading one."""
    return len(read.arguments) == len(stream.parameters) and all(
        isinstance(each, ir.Parameter) and each.index == place for place, each in enumerate(read.arguments)
    )


__all__ = ["FAMILIES", "MAX_DEADLINES", "OBJECT", "bound_values", "clauses_of", "compile_program", "reads_own_key"]
