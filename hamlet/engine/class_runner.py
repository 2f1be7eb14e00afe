"""Runs one class of queries over batches in time order: its keys and its kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet._core import OPERATORS, Kernel
from hamlet.engine import trace
from hamlet.engine.broadcast import Broadcast
from hamlet.engine.closed_windows import ClosedRows
from hamlet.engine.event_ids import event_ids
from hamlet.engine.keys import KeyIndex
from hamlet.engine.sharing import Sharing
from hamlet.engine.workers import Workers
from hamlet.errors import DataError
from hamlet.input.buffers import from_numpy
from hamlet.input.columns import BatchColumns, Int64Array
from hamlet.kernel.expression import Program
from hamlet.kernel.interface import KernelOverflow, TooManyGroups
from hamlet.kernel.radix_sort import in_bytes, looked_up, sifted
from hamlet.language.printing import to_text
from hamlet.language.query import AttributeType
from hamlet.memory.budget import Budget
from hamlet.planner.classify import FOREIGN, Coded, Role, Signature, overflow_error
from hamlet.planner.compiled import CompiledClass, CompiledWorkload
from hamlet.planner.matching import EVENT_ID, MOST_COUNT
from hamlet.planner.paths import EVERY, Paths
from hamlet.planner.tables import QueryTables
from hamlet.planner.timeline import pane_of

WHOLE_FROM = 1024  # events of a batch; in smaller ones few windows are whole
MOST_UNMATCHED = 8  # times as many rows as match are read with those that match
UNMAPPED = -2  # a signature that a kernel has not met yet

Small = tuple[npt.NDArray[np.int8], npt.NDArray[np.int8], int]
Columns = Sequence[tuple[str, AttributeType | None]]


@dataclass(frozen=True)
class RunnerState:
    """What the runner of one class of queries keeps between batches.

    Attributes
    ----------
    matched : int
        Events matched so far.
    created : int
        Partitions numbered so far.
    keys : sequence of tuple
        Partitions that are known, by number ascending.
    used : uint8 array
        1 for the numbers of these partitions.
    kept : pyarrow.Table or None
        Events for partitions that have not been formed yet.
    kernels : sequence of bytes-like
        From `Kernel.save`.
    """

    matched: int
    created: int
    keys: Sequence[tuple[Any, ...]]
    used: npt.NDArray[np.uint8]
    kept: pa.Table | None
    kernels: Sequence[bytes | memoryview]


class ClassRunner:
    """One class of queries: its keys, and a kernel per thread.

    Attributes
    ----------
    pane : int
        Ticks between times at which windows may open or close.
    has_panes : bool
        Whether some windows are no sessions.
    gap : int or None
        The least gap, in ticks, that ends a session.
    """

    has_panes = True
    gap: int | None = None

    def __init__(
        self,
        compiled: CompiledClass,
        workload: CompiledWorkload,
        workers: Workers,
        sharing: Sharing,
        budget: Budget,
        paths: Paths = EVERY,
    ) -> None:
        self.compiled = compiled
        self.workload = workload
        self._workers = workers
        clock = workload.schema.clock
        self.index = KeyIndex(compiled.attributes, clock.column if clock.is_fraction else None)
        self.tables = [compiled.tables(number) for number in range(compiled.kernel_queries)]
        floating = [int(type is AttributeType.DOUBLE) for _, type in compiled.columns]
        self.line = compiled.line
        self.pane = pane_of(self.line, [(each.within, each.slide) for each in self.tables])
        self.kernels: Sequence[Any] = self._made_kernels(floating, sharing, budget, paths)
        self.closed = ClosedRows(compiled, workload.schema, self.kernels, self.index, workload.strings)
        self.broadcast = _broadcast(compiled, self.index) if compiled.broadcasts else None
        self.class_of = np.zeros(0, np.int32)  # signature -> kernel class, FOREIGN, or UNMAPPED
        self.matched = 0
        self._types: dict[str, int] = {}
        self._roles: dict[Role, int] = {}
        self._stranger = FOREIGN  # class of events whose type nobody names

    def _made_kernels(self, floating: Sequence[int], sharing: Sharing, budget: Budget, paths: Paths) -> Sequence[Any]:
        """What runs the queries, one for each thread."""
        compiled = self.compiled
        allowed = paths.operator_bits, paths.feature_bits
        alone = [OPERATORS[paths.alone(each)] for each in self.tables]
        return [
            Kernel(self.tables, floating, sharing, budget, compiled.bands, WHOLE_FROM, compiled.listed, *allowed, alone)
            for _ in range(self._workers.threads)
        ]

    def adopt(self, other: ClassRunner) -> None:
        """Take over keys, groups and kernel states of a runner that knew less of the attributes' types."""
        self.index, self.matched = other.index, other.matched
        self.closed = ClosedRows(self.compiled, self.workload.schema, self.kernels, self.index, self.workload.strings)
        widened = self._widened(other)
        for kernel, old_kernel in zip(self.kernels, other.kernels, strict=True):
            kernel.adopt(old_kernel, widened)
        if self.broadcast is not None and other.broadcast is not None:
            self.broadcast.index = self.index
            schema, classifier = self.workload.schema, self.workload.classifier
            self.broadcast.adopt(
                other.broadcast,
                lambda batch: self._classes(
                    classifier.coded(BatchColumns(batch, self.workload.strings), schema.type_column)
                )[0],
            )

    def _widened(self, other: ClassRunner) -> list[Any]:
        """What the kernels keep that turns from INT into DOUBLE, per query."""
        return [
            _widened(new, self.compiled.columns, old, other.compiled.columns)
            for new, old in zip(self.tables, other.tables, strict=True)
        ]

    def saved(self) -> RunnerState:
        """What is kept between batches."""
        kept = None if self.broadcast is None else self.broadcast.kept
        keys = self.index.keys
        used = np.zeros(self.index.size, np.uint8)
        used[list(keys)] = 1
        kernels = [kernel.save() for kernel in self.kernels]
        return RunnerState(self.matched, self.index.created, list(keys.values()), used, kept, kernels)

    def load(self, state: RunnerState) -> None:
        """Go on from a saved state; raises ValueError where it cannot be one of this class."""
        self._kernel_classes()  # registers what the classifier knows, in its order
        self.matched = state.matched
        self.index.load(state.keys, state.used, state.created)
        ends = {AttributeType.STRING: len(self.workload.strings), None: 0}
        kinds = ((AttributeType.INT if name == EVENT_ID else type) for name, type in self.compiled.columns)
        limits = np.array([ends.get(type, -1) for type in kinds], np.int64)
        for number, (kernel, data) in enumerate(zip(self.kernels, state.kernels, strict=True)):
            kernel.load(data, len(range(number, len(state.used), len(self.kernels))), state.matched, limits)
        if state.kept is not None:
            if self.broadcast is None:
                raise ValueError("events are kept though all carry their keys")
            known = self.workload.classifier
            types: list[str] = []
            classes = np.zeros(0, np.int32)
            for batch in state.kept.combine_chunks().to_batches():
                coded = known.coded(BatchColumns(batch, self.workload.strings), self.workload.schema.type_column)
                classes, _ = self._classes(coded)
                types = [known.signatures[number].type for number in looked_up(*coded).tolist()]
            if (classes == FOREIGN).any():
                raise ValueError("an event is kept that no query asks for")
            self.broadcast.load(state.kept, types, classes)

    def jobs(self, batch: BatchColumns, coded: Coded, until: int, distinct: bool = False) -> list[Callable[[], None]]:
        """What the kernels have to do for a batch; jobs of one batch may run side by side.

        No event before `until` will follow. Where times are `distinct`, no two events have one.
        """
        schema = self.workload.schema
        keys: npt.NDArray[Any]
        classes: npt.NDArray[Any]
        chosen = None
        small = self._in_bytes(batch, coded)
        if small is None:
            classes, chosen = self._classes(coded)
            matched = len(classes) if chosen is None else len(chosen)
        else:
            keys, classes, matched = small
        if not matched:
            return []
        self.matched += self._count(matched, classes, chosen)
        if self.broadcast is not None:
            chosen, distinct = None, False  # several partitions may get one event
            batch, keys, classes = self._delivered(self.broadcast, batch, looked_up(*coded), classes)
        elif small is None:
            keys = self.index.encode(batch.batch, chosen)
        times = self.times(batch)
        orders = None if schema.order_column is None else batch.integers(schema.order_column)
        columns = [self._column(batch, name, type) for name, type in self.compiled.columns]
        parts = len(self.kernels)
        count = -(-self.index.size // parts)
        whole = parts == 1 and self.kernels[0].takes_whole(len(keys))
        sequence = self.closed.sequence(len(keys)) if whole else None
        more = self._more()
        until = self.line.place(until)
        arguments = (keys, times, orders, classes, columns, self.workload.strings.ranks, count)
        return [
            lambda kernel=kernel, part=part: self._process(  # type: ignore[misc]
                kernel, batch.batch, *arguments, part, parts, until, chosen, sequence, distinct, **more
            )
            for part, kernel in enumerate(self.kernels)
        ]

    def _column(self, batch: BatchColumns, name: str, type: AttributeType | None) -> tuple[Any, Any]:
        """One of the columns that the kernels read."""
        return (event_ids(batch, self.workload.schema), None) if name == EVENT_ID else batch.values(name, type)

    def _in_bytes(self, batch: BatchColumns, coded: Coded) -> Small | None:
        """Keys, classes and the number of matched rows where the kernel would rather have them so; else None."""
        codes, table = coded
        if self.broadcast is not None or len(self.kernels) > 1 or self.workload.schema.order_column is not None:
            return None
        if not self.kernels[0].reads_bytes(len(codes), self.index.size):
            return None
        classes, matched = in_bytes(codes, self._kernel_classes()[table])
        if classes is None or MOST_UNMATCHED * matched < len(codes):
            return None
        keys = self.index.in_bytes(batch.batch, classes, matched)
        return None if keys is None else (keys, classes, matched)

    def times(self, batch: BatchColumns) -> Int64Array:
        """The time of each row, as the kernels get it: its place on the line of the class."""
        return self.line.places(batch.integers(self.workload.schema.clock.column))

    def _delivered(
        self,
        broadcast: Broadcast,
        batch: BatchColumns,
        signatures: npt.NDArray[np.int32],
        classes: npt.NDArray[Any],
    ) -> tuple[BatchColumns, Int64Array, npt.NDArray[np.int32]]:
        """The events of a batch and kept ones, once for each partition that gets them; their keys and classes."""
        self._workers.settle()
        known, clock = self.workload.classifier.signatures, self.workload.schema.clock.column
        rows = np.nonzero(classes != FOREIGN)[0]
        types = [known[signature].type if signature >= 0 else "" for signature in signatures[rows].tolist()]
        part = batch.batch.take(from_numpy(rows))
        times = self.times(batch)[rows]
        live = np.nonzero(self.live())[0]
        given = broadcast.deliver(part, types, times, classes[rows], clock, live)
        found = BatchColumns(given.batch.take(from_numpy(given.rows)), self.workload.strings)
        return found, given.keys, given.classes[given.rows]

    def live(self) -> npt.NDArray[np.uint8]:
        """Which partitions have open windows: 1 by number."""
        parts = len(self.kernels)
        found = np.zeros(self.index.size, np.uint8)
        for part, kernel in enumerate(self.kernels):
            own = found[part::parts]
            alive = kernel.live()[: len(own)]  # a kernel hears of new partitions with their first events
            own[: len(alive)] = alive
        return found

    def forget(self) -> None:
        """Give up the numbers of partitions without open windows, where there are many; all windows due are closed."""
        if not self.index.crowded:
            return
        self._workers.settle()
        self.closed.set_aside()
        self.index.forget(self.live())
        for kernel in self.kernels:
            kernel.forget()

    def _classes(self, coded: Coded) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32] | None]:
        """The kernel class of each event, and the rows of those that have one; None where all have."""
        codes, table = coded
        return sifted(codes, self._kernel_classes()[table])

    def _kernel_classes(self) -> npt.NDArray[np.int32]:
        """The kernel class of each signature, `FOREIGN` last; a new signature is registered with every kernel."""
        known = self.workload.classifier.signatures
        if len(self.class_of) <= len(known):
            more = np.full(len(known) + 1 - len(self.class_of), UNMAPPED, np.int32)
            self.class_of = np.concatenate([self.class_of, more])
            for number in np.nonzero(self.class_of[:-1] == UNMAPPED)[0].tolist():
                self.class_of[number] = self._register(known[number])
            self.class_of[-1] = UNMAPPED
        lookup = self.class_of.copy()
        lookup[-1] = self._stranger  # signature FOREIGN (-1) reads the last place
        return lookup

    def _count(self, chosen: int, classes: npt.NDArray[Any], rows: npt.NDArray[np.int32] | None) -> int:  # noqa: ARG002
        """How many of so many chosen events some query matches."""
        return chosen

    def _more(self) -> dict[str, Any]:
        """What else the kernels are given with a batch."""
        return {}

    def _register(self, signature: Signature) -> int:
        found = self.compiled.entries(signature)
        if not found:
            return FOREIGN
        entries = [(part, arrivals, guards, self._role(role)) for part, arrivals, guards, role in found]
        self._workers.settle()
        type = self._types.setdefault(signature.type, len(self._types))
        numbers = {kernel.add_class(entries, type) for kernel in self.kernels}
        assert len(numbers) == 1, "the kernels of a class register alike"
        return int(numbers.pop())

    def _role(self, role: Role) -> int:
        """The number of a role: a type and a local predicate."""
        return self._roles.setdefault(role, len(self._roles))

    def _process(self, kernel: Any, batch: pa.RecordBatch, *arguments: Any, **more: Any) -> None:
        with self._explained(batch):
            kernel.process(*arguments, **more)

    def advance(self, kernel: Any, time: int) -> None:
        """Let a kernel deliver the windows that are final at a time."""
        with self._explained(None):
            kernel.advance(self.line.place(time))

    @contextmanager
    def _explained(self, batch: pa.RecordBatch | None) -> Iterator[None]:
        """Say in words what a kernel cannot do."""
        try:
            yield
        except TooManyGroups as error:
            raise self._too_many_groups(error.query) from None
        except KernelOverflow as error:
            program = self._program(error.query, error.predicate)
            text = str(program.texts[error.place] if error.place >= 0 else program.texts[-1])
            raise overflow_error(batch if error.row >= 0 else None, text, error.row) from None

    def _too_many_groups(self, part: int) -> DataError:
        query = self.compiled.queries[self.compiled.parts[part][0]]
        counts = " and ".join(to_text(each) for each in query.analysed.taken if each.attribute is None)
        return DataError(
            f"query {query.name}: {counts} passes {MOST_COUNT:,} values in one window; bound it in the pattern, as in "
            f"A{{1,100}}, or with HAVING"
        )

    def _program(self, query: int, predicate: int) -> Program:
        return self.tables[query].predicates[predicate][0]

    def trace(self) -> list[pa.RecordBatch]:
        """Take the records of bursts since the last call."""
        types = sorted(self._types, key=self._types.__getitem__)
        names = [[self.compiled.queries[place].name for place in users] for users in self.compiled.kept_by]
        found = []
        for number, kernel in enumerate(self.kernels):
            bursts, shared = kernel.take_trace()
            keys = self.index.tuples(bursts["key"] * len(self.kernels) + number)
            texts = [", ".join(map("{}={}".format, self.compiled.attributes, key)) for key in keys]
            found.append(trace.records(bursts, shared, texts, types, names))
        return found


def _broadcast(compiled: CompiledClass, index: KeyIndex) -> Broadcast:
    """What delivers the events of a class whose types do not all carry the partition attributes."""
    positive = {
        type
        for query in compiled.queries
        for variable, type in query.analysed.types.items()
        if variable not in query.analysed.negated
    }
    return Broadcast(compiled.attributes, compiled.carried, positive, index, compiled.retention)


def _widened(new: QueryTables, columns: Columns, old: QueryTables, old_columns: Columns) -> list[tuple[int, int]]:
    """The (store, place) of the columns that stores keep and that turn from INT into DOUBLE."""
    return [
        (store, place)
        for store, ((begin, end, *_), (old_begin, _, *_)) in enumerate(zip(new.stores, old.stores, strict=True))
        for place in range(end - begin)
        if columns[new.members[begin + place]][1] is AttributeType.DOUBLE
        and old_columns[old.members[old_begin + place]][1] is AttributeType.INT
    ]
