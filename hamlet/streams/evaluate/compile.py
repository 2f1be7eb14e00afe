"""From a checked specification to what the evaluator runs: streams, windows, nodes and tasks.

Decided here: how many values each stream keeps, which conditions bind an instance (``eval when p = input`` finds its
instance by hash), which close clauses need a look only at instances that were extended, and after how long a state
without effects repeats.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from hamlet.errors import MemoryLimitError, option
from hamlet.runtime.sizes import size_text
from hamlet.streams.evaluate._evaluator import Evaluator
from hamlet.streams.evaluate._store import Store, Stream, Tally
from hamlet.streams.evaluate._tasks import Clause, Closer, Task
from hamlet.streams.evaluate._windows import WindowTable
from hamlet.streams.evaluate.code_generation import FAMILIES, FLOAT, OBJECT, Builder, family_of
from hamlet.streams.evaluate.columnar import column_tasks, in_segments, inputs_of_instances
from hamlet.streams.program import ir
from hamlet.streams.program.compile_clauses import bound_values, clauses_of, reads_own_key

MAX_DEADLINES = 10_000_000
NANOSECONDS = 1_000_000_000
_FUNCTIONS = ("count", "sum", "avg", "min", "max", "integral", "last", "var", "sd", "cov", "exists", "forall", "pctl")


FEATURES: Mapping[str, str] = {
    "columns": "streams that read no own past are computed for a batch at once, column by column",
    "segments": "where columns say all of a batch, its events between two deadlines are taken together",
    "cells": "instances with one parameter that is no float are found by 64 bits, not as Python objects",
}


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


def compile_program(
    program: ir.Program,
    *,
    values: bool,
    max_deadlines: int = MAX_DEADLINES,
    max_memory: int = 0,
    features: frozenset[str] | None = None,
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
    features : frozenset of str or None
        Those of `FEATURES` that may be used; None for all. Rows do not depend on them.

    Raises
    ------
    MemoryLimitError
        If what offsets keep passes the limit whatever comes.
    """
    compiler = _Compiler(program, frozenset(FEATURES) if features is None else features)
    if max_memory:
        compiler.refuse_large(max_memory)
    return compiler.evaluator(values, max_deadlines, max_memory)


class _Compiler:
    """Makes all parts of one program."""

    def __init__(self, program: ir.Program, features: frozenset[str]) -> None:
        self.program, self.features = program, features
        self.store = Store()
        self.places: dict[tuple[int, _Place], int] = {}  # places of windows: their tables
        self.paired: dict[tuple[int, _Place], bool] = {}  # those that are read at the reader's own key only
        self.reads: list[ir.Read] = []
        self.depths: dict[int, int] = {}  # values that offsets read of each stream
        self.ages: dict[int, int] = {}  # ns that offsets in real time reach back
        for stream in program.streams:
            for pacing, expressions, spawning in clauses_of(stream):
                for each in ir.walk(*expressions):
                    if isinstance(each, ir.ReadWindow):
                        where = each.window, _Place(pacing, spawning)
                        self.places.setdefault(where, len(self.places))
                        self.paired[where] = self.paired.get(where, True) and reads_own_key(each, stream)
                    elif isinstance(each, ir.Read):
                        self.reads.append(each)
                        self._keep(stream, each, spawning)
        self.streams = [self._stream(each) for each in program.streams]
        self.shared_tables: dict[object, WindowTable] = {}
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

    def refuse_large(self, limit: int) -> None:
        """Raise MemoryLimitError where the values that offsets read take more than a limit."""
        for stream in self.program.streams:
            needs = 8 * self.depths.get(stream.id, 1)
            if stream.spawn is None and needs > limit:
                raise MemoryLimitError(
                    f"of {stream.name} the last {needs // 8:,} values are kept, which take {size_text(needs)}, and the "
                    f"limit is {size_text(limit)}\nhint: shorten the offset, or raise the limit "
                    f"({option('max_memory')})"
                )

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
            self._key_family(stream),
            stream.kind is ir.Kind.INPUT and stream.type in (ir.STRING, ir.BYTES),
        )

    def _key_family(self, stream: ir.Stream) -> int:
        """The family of the only parameter where instances are found by cell, else -1."""
        if len(stream.parameters) != 1 or "cells" not in self.features:
            return -1
        kind = stream.parameters[0][1]
        return family_of(kind) if isinstance(kind, ir.Scalar) and family_of(kind) != FLOAT else -1

    def _window(self, window: ir.Window, place: _Place) -> WindowTable:
        """The windows of one place: those of a spawn clause have no reader yet, and others count from its spawn."""
        reader, target = self.program.streams[window.reader], self.program.streams[window.target]
        own = reader.spawn is not None and not place.spawning
        local = own and isinstance(place.pacing, ir.PeriodicPacing) and place.pacing.local
        period = place.pacing.period if isinstance(place.pacing, ir.PeriodicPacing) else Fraction(0)
        result = window.type.inner if isinstance(window.type, ir.OptionalOf) else window.type
        looks = window.function, window.percentile, window.nanoseconds, window.count, window.exactly, family_of(result)
        alike = None if own else (target.id, period, *looks)
        if alike in self.shared_tables:  # what readers without instances of their own read is kept once
            return self.shared_tables[alike]
        table = WindowTable(
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
            own and bool(reader.parameters) and self.paired[window.id, place],
        )
        if alike is not None:
            self.shared_tables[alike] = table
        return table

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
            watched = self._watched(stream, stream.close)
            clause = self._clause(stream, stream.close.pacing, stream.close.condition)
            closer = Closer(self.streams[stream.id], clause, watched is not None)
            for number in watched or ():
                closer.watch(self.streams[number])
            closers.append((closer, isinstance(stream.close.pacing, ir.PeriodicPacing)))
        span, cycle = self._quiet_times()
        pacings = [self._described(each) for each in self.pacings]
        inputs = self.streams[: program.inputs]
        columns = column_tasks(program, evaluations) if "columns" in self.features else []
        segments = "segments" in self.features and in_segments(program)
        evaluator = Evaluator(
            self.store, inputs, pacings, tasks, closers, max_deadlines, span, cycle, max_memory, columns, segments
        )
        if "cells" in self.features:
            for place, number in inputs_of_instances(program):
                evaluator.hint(place, self.streams[number])
        for windows in dict.fromkeys(self.windows):
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

    def _watched(self, stream: ir.Stream, close: ir.Close) -> list[int] | None:
        """The streams whose new values alone can make a close condition true; None where others can, too.

        Instances with deadlines of their own are asked one by one already, each at its time.
        """
        condition = close.condition
        local = isinstance(close.pacing, ir.PeriodicPacing) and close.pacing.local
        if condition is None or not stream.parameters or local:
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


__all__ = ["FAMILIES", "FEATURES", "MAX_DEADLINES", "OBJECT", "compile_program"]
