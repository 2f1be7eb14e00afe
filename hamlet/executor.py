"""Runs a compiled workload over batches in time order: the kernels, their keys, and the rows of closed windows.

The executor knows nothing of lateness or buffering (`hamlet.engine`), and nothing of files (`hamlet.input.events`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet import trace
from hamlet._budget import Budget, BudgetExceeded
from hamlet._core import Kernel, KernelOverflow
from hamlet.broadcast import Broadcast
from hamlet.columns import Int64Array, KeyIndex, integers, take, values
from hamlet.compiler.aggregates import Component, has_trends, is_double, merged, needed, nothing, paired, read
from hamlet.compiler.classify import FOREIGN, Role, Signature, overflow_error
from hamlet.compiler.compile import CompiledClass, CompiledQuery, CompiledWorkload
from hamlet.compiler.tables import QueryTables
from hamlet.limit import GROUP, Holding, exceeded, holding
from hamlet.output.result import QueryRows, ResultColumn
from hamlet.query import Aggregate, AttributeType
from hamlet.schema import Schema, timestamp
from hamlet.sharing import DYNAMIC, Sharing

END_OF_TIME = np.iinfo(np.int64).max
UNMAPPED = -2  # a signature that a kernel has not met yet

Columns = Sequence[tuple[str, AttributeType | None]]
PartitionRows = tuple[Int64Array, Int64Array, list[list[Component]]]  # partitions, windows, components
Units = Mapping[str, tuple[str, str | None]]  # TIMESTAMP column -> (unit, zone)


@dataclass
class GroupRows:
    """Closed windows of one query, one row per window and group, ordered as LANGUAGE §9 says.

    Attributes
    ----------
    windows : list of int, shape (rows,)
        Window numbers.
    groups : list of tuple, shape (rows,)
        Values of the grouping attributes.
    components : list of list, shape (components, rows)
        In the order of the query's layout.
    """

    windows: list[int]
    groups: list[tuple[Any, ...]]
    components: list[list[Component]]


@dataclass(frozen=True)
class RunnerState:
    """What the runner of one class of queries keeps between batches.

    Attributes
    ----------
    matched : int
        Events matched so far.
    keys : sequence of tuple
        Partitions by number.
    kept : pyarrow.Table or None
        Events for partitions that have not been formed yet (LANGUAGE §6).
    kernels : sequence of bytes-like
        From `Kernel.save`.
    """

    matched: int
    keys: Sequence[tuple[Any, ...]]
    kept: pa.Table | None
    kernels: Sequence[bytes | memoryview]


@dataclass
class _Groups:
    """Numbers for the groups of a query, made from the partitions of its class as they appear."""

    query: CompiledQuery
    index: KeyIndex
    groups: list[tuple[Any, ...]] = field(default_factory=list)
    of_key: list[int] = field(default_factory=list)
    numbers: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def encode(self, keys: Int64Array) -> Int64Array:
        """The group number of each partition number."""
        for key in self.index.keys[len(self.of_key) :]:
            group = tuple(key[place] for place in self.query.group)
            number = self.numbers.setdefault(group, len(self.groups))
            if number == len(self.groups):
                self.groups.append(group)
            self.of_key.append(number)
        if len(keys) < 1024:
            return np.array([self.of_key[key] for key in keys.tolist()], np.int64)
        return np.array(self.of_key, np.int64)[keys]


class _ClassRunner:
    """One class of queries: its keys, and a kernel per thread."""

    def __init__(
        self, compiled: CompiledClass, workload: CompiledWorkload, threads: int, sharing: Sharing, budget: Budget
    ) -> None:
        self.compiled = compiled
        self.workload = workload
        self.index = KeyIndex(compiled.attributes)
        self.tables = [compiled.tables(number) for number in range(len(compiled.parts))]
        floating = [int(type is AttributeType.DOUBLE) for _, type in compiled.columns]
        self.kernels = [Kernel(self.tables, floating, sharing, budget) for _ in range(threads)]
        self.groups = [_Groups(query, self.index) for query in compiled.queries]
        self.broadcast = _broadcast(compiled, self.index) if compiled.broadcasts else None
        self.class_of = np.zeros(0, np.int32)  # signature -> kernel class, FOREIGN, or UNMAPPED
        self.matched = 0
        self._types: dict[str, int] = {}
        self._roles: dict[Role, int] = {}

    def adopt(self, other: _ClassRunner) -> None:
        """Take over keys, groups and kernel states of a runner that knew less of the attributes' types."""
        self.index, self.matched = other.index, other.matched
        for mine, theirs in zip(self.groups, other.groups, strict=True):
            mine.index, mine.groups, mine.of_key, mine.numbers = (
                theirs.index,
                theirs.groups,
                theirs.of_key,
                theirs.numbers,
            )
        widened = [
            _widened(new, self.compiled.columns, old, other.compiled.columns)
            for new, old in zip(self.tables, other.tables, strict=True)
        ]
        for kernel, old_kernel in zip(self.kernels, other.kernels, strict=True):
            kernel.adopt(old_kernel, widened)
        if self.broadcast is not None and other.broadcast is not None:
            self.broadcast.index = self.index
            schema, classifier = self.workload.schema, self.workload.classifier
            self.broadcast.adopt(
                other.broadcast, lambda batch: self._classes(classifier.classify(batch, schema.type_column))
            )

    def saved(self) -> RunnerState:
        """What is kept between batches."""
        kept = None if self.broadcast is None else self.broadcast.kept
        return RunnerState(self.matched, self.index.keys, kept, [kernel.save() for kernel in self.kernels])

    def load(self, state: RunnerState) -> None:
        """Go on from a saved state; raises ValueError where it cannot be one of this class."""
        classes = self._classes(np.zeros(0, np.int32))  # registers what the classifier knows, in its order
        self.matched = state.matched
        for key in state.keys:
            self.index.number(key)
        ends = {AttributeType.STRING: len(self.workload.strings), None: 0}
        limits = np.array([ends.get(type, -1) for _, type in self.compiled.columns], np.int64)
        for number, (kernel, data) in enumerate(zip(self.kernels, state.kernels, strict=True)):
            kernel.load(data, len(range(number, len(state.keys), len(self.kernels))), state.matched, limits)
        if state.kept is not None:
            if self.broadcast is None:
                raise ValueError("events are kept though all carry their keys")
            known = self.workload.classifier
            types: list[str] = []
            for batch in state.kept.combine_chunks().to_batches():
                signatures = known.classify(batch, self.workload.schema.type_column)
                classes = self._classes(signatures)
                types = [known.signatures[number].type for number in signatures.tolist()]
            if (classes == FOREIGN).any():
                raise ValueError("an event is kept that no query asks for")
            self.broadcast.load(state.kept, types, classes)

    def jobs(self, batch: pa.RecordBatch, signatures: npt.NDArray[np.int32]) -> list[Callable[[], None]]:
        """What the kernels have to do for a batch; jobs of one batch may run side by side."""
        classes = self._classes(signatures)
        rows = np.nonzero(classes != FOREIGN)[0]
        self.matched += len(rows)
        if len(rows) == 0:
            return []
        part = batch if len(rows) == batch.num_rows else batch.take(pa.array(rows))
        classes = classes[rows]
        clock = self.workload.schema.clock
        times = integers(part.column(clock.column), clock.column)[0]
        if self.broadcast is None:
            keys = self.index.encode(part)
        else:
            known = self.workload.classifier.signatures
            types = [known[signature].type for signature in signatures[rows].tolist()]
            given = self.broadcast.deliver(part, types, times, classes, clock.column, self._live())
            part, keys, classes = given.batch.take(pa.array(given.rows)), given.keys, given.classes[given.rows]
            times = integers(part.column(clock.column), clock.column)[0]
        order_column = self.workload.schema.order_column
        orders = None if order_column is None else integers(part.column(order_column), order_column)[0]
        columns = [values(part, name, type, self.workload.strings) for name, type in self.compiled.columns]
        ranks, count = self.workload.strings.ranks, len(self.index.keys)
        if len(self.kernels) == 1:
            return [lambda: self._process(self.kernels[0], part, keys, times, orders, classes, columns, ranks, count)]
        jobs: list[Callable[[], None]] = []
        for number, kernel in enumerate(self.kernels):
            mine = np.nonzero(keys % len(self.kernels) == number)[0]
            if len(mine):
                arguments = (
                    part.take(pa.array(mine)),
                    keys[mine] // len(self.kernels),
                    times[mine],
                    None if orders is None else orders[mine],
                    classes[mine],
                    [take(one, mine) for one in columns],
                    ranks,
                    -(-count // len(self.kernels)),
                )
                jobs.append(lambda kernel=kernel, arguments=arguments: self._process(kernel, *arguments))  # type: ignore[misc]
        return jobs

    def _live(self) -> Int64Array:
        """Partitions with open windows."""
        threads = len(self.kernels)
        return np.concatenate([kernel.live() * threads + number for number, kernel in enumerate(self.kernels)])

    def _classes(self, signatures: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The kernel class of each event; a new signature is registered with every kernel."""
        known = self.workload.classifier.signatures
        if len(self.class_of) <= len(known):
            more = np.full(len(known) + 1 - len(self.class_of), UNMAPPED, np.int32)
            self.class_of = np.concatenate([self.class_of, more])
            for number in np.nonzero(self.class_of[:-1] == UNMAPPED)[0].tolist():
                self.class_of[number] = self._register(known[number])
            self.class_of[-1] = UNMAPPED
        lookup = self.class_of.copy()
        lookup[-1] = FOREIGN  # signature FOREIGN (-1) reads the last place
        classes: npt.NDArray[np.int32] = lookup[signatures]
        return classes

    def _register(self, signature: Signature) -> int:
        entries = []
        for part, ((place, _), tables) in enumerate(zip(self.compiled.parts, self.tables, strict=True)):
            roles = self.compiled.queries[place].roles
            fitting = [variable for variable, role in roles.items() if signature.fits(role)]
            bound = [variable for variable in fitting if variable in tables.arrivals_of]
            arrivals = [number for variable in bound for number in tables.arrivals_of[variable]]
            guards = [number for variable in fitting for number in tables.guard_arrivals_of.get(variable, ())]
            if arrivals or guards:
                entries.append((part, arrivals, guards, self._role(roles[(bound or fitting)[0]])))
        if not entries:
            return FOREIGN
        type = self._types.setdefault(signature.type, len(self._types))
        numbers = {kernel.add_class(entries, type) for kernel in self.kernels}
        assert len(numbers) == 1, "the kernels of a class register alike"
        return numbers.pop()

    def _role(self, role: Role) -> int:
        """The number of a role: a type and a local predicate."""
        return self._roles.setdefault(role, len(self._roles))

    def _process(self, kernel: Kernel, batch: pa.RecordBatch, *arguments: Any) -> None:
        try:
            kernel.process(*arguments)
        except KernelOverflow as error:
            program = self.tables[error.query].predicates[error.predicate][0]
            text = program.texts[error.place] if error.place >= 0 else program.texts[-1]
            raise overflow_error(batch, text, error.row) from None

    def trace(self) -> list[pa.RecordBatch]:
        """Take the records of bursts since the last call."""
        types = sorted(self._types, key=self._types.__getitem__)
        names = [self.compiled.queries[place].analysed.query.name for place, _ in self.compiled.parts]
        found = []
        for number, kernel in enumerate(self.kernels):
            bursts, shared = kernel.take_trace()
            keys = [self.index.keys[key * len(self.kernels) + number] for key in bursts["key"].tolist()]
            texts = [", ".join(map("{}={}".format, self.compiled.attributes, key)) for key in keys]
            found.append(trace.records(bursts, shared, texts, types, names))
        return found

    def drain(self, place: int) -> GroupRows:
        """The closed windows of one query of the class, partitions merged into groups."""
        query, groups = self.compiled.queries[place], self.groups[place]
        parts = self.compiled.parts_of[place]
        keys, windows, found = self._rows(query, parts[0]) if len(parts) == 1 else self._pairs(query, parts)
        numbers = groups.encode(keys)
        order = _order(windows, numbers, groups.groups)
        windows, numbers = windows[order], numbers[order]
        found = [[one[row] for row in order.tolist()] for one in found]
        first = np.ones(len(windows), bool)
        first[1:] = (windows[1:] != windows[:-1]) | (numbers[1:] != numbers[:-1])
        if not first.all():
            found = _merge(query, found, first.tolist())
        names = groups.groups
        return GroupRows(windows[first].tolist(), [names[number] for number in numbers[first].tolist()], found)

    def _rows(self, query: CompiledQuery, part: int) -> PartitionRows:
        """The closed windows of one of the kernels' queries: partitions, windows, components."""
        drained = [kernel.drain(part) for kernel in self.kernels]
        keys = np.concatenate([rows[0] * len(drained) + number for number, rows in enumerate(drained)])
        windows, widths, words = (np.concatenate([rows[column] for rows in drained]) for column in (1, 2, 3))
        return keys, windows, query.layout.decode(widths, words)

    def _pairs(self, query: CompiledQuery, parts: Sequence[int]) -> PartitionRows:
        """The closed windows of a query over pairs of trends (AND), from those of its two sides and of both."""
        sides = []
        for part in parts:
            keys, windows, found = self._rows(query, part)
            sides.append(
                dict(zip(zip(keys.tolist(), windows.tolist(), strict=True), zip(*found, strict=True), strict=True))
            )
        rows: dict[tuple[int, int], list[Component]] = {}
        none = nothing(query.layout.keys)
        for place, one in sides[0].items():
            if place in sides[1]:
                pairs = paired(query.layout.keys, one, sides[1][place], sides[2].get(place, none))
                if has_trends(pairs[0]):
                    rows[place] = pairs
        pairs_at = np.array(list(rows), np.int64).reshape(-1, 2)
        columns = [list(column) for column in zip(*rows.values(), strict=True)] or [[] for _ in none]
        return pairs_at[:, 0], pairs_at[:, 1], columns


def _broadcast(compiled: CompiledClass, index: KeyIndex) -> Broadcast:
    """What delivers the events of a class whose types do not all carry the partition attributes."""
    positive = {
        type
        for query in compiled.queries
        for variable, type in query.analysed.types.items()
        if variable not in query.analysed.negated
    }
    retention = max(query.window[0] for query in compiled.queries)
    return Broadcast(compiled.attributes, compiled.carried, positive, index, retention)


def _widened(new: QueryTables, columns: Columns, old: QueryTables, old_columns: Columns) -> list[tuple[int, int]]:
    """The (store, place) of the columns that stores keep and that turn from INT into DOUBLE."""
    return [
        (store, place)
        for store, ((begin, end, *_), (old_begin, _, *_)) in enumerate(zip(new.stores, old.stores, strict=True))
        for place in range(end - begin)
        if columns[new.members[begin + place]][1] is AttributeType.DOUBLE
        and old_columns[old.members[old_begin + place]][1] is AttributeType.INT
    ]


def _order(windows: Int64Array, groups: Int64Array, names: Sequence[tuple[Any, ...]]) -> Int64Array:
    """Rows by window, then group values ascending with NULL first."""
    distinct = np.unique(groups).tolist()
    rank = {group: place for place, group in enumerate(sorted(distinct, key=lambda group: sort_key(names[group])))}
    ranks = np.array([rank[group] for group in groups.tolist()], np.int64)
    return np.lexsort((ranks, windows))


def sort_key(group: Iterable[Any]) -> tuple[tuple[bool, Any], ...]:
    """Group values ascending, NULL first (LANGUAGE §9)."""
    return tuple((value is not None, 0 if value is None else value) for value in group)


def _merge(query: CompiledQuery, found: list[list[Component]], first: list[bool]) -> list[list[Component]]:
    """Add up neighbouring rows of one window and group."""
    keys = query.layout.keys
    rows: list[Sequence[Component]] = []
    for row, new in zip(zip(*found, strict=True), first, strict=True):
        if new:
            rows.append(row)
        else:
            rows[-1] = merged(keys, rows[-1], row)
    return [list(one) for one in zip(*rows, strict=True)]


class Executor:
    """All classes of a workload over one stream.

    Parameters
    ----------
    workload : CompiledWorkload
    threads : int
        Kernels per class; the keys are spread over them.
    sharing : Sharing
        Who decides which queries share a burst.
    budget : Budget or None
        The memory of the run; executors that adopt one another share it.
    """

    def __init__(
        self,
        workload: CompiledWorkload,
        threads: int = 1,
        *,
        sharing: Sharing = DYNAMIC,
        budget: Budget | None = None,
    ) -> None:
        self.workload = workload
        self.events = 0
        self.budget = Budget() if budget is None else budget
        self.held_back = 0  # bytes of events that the engine holds; counted in the budget
        schema = workload.schema
        self._classes = [_ClassRunner(each, workload, threads, sharing, self.budget) for each in workload.classes]
        self._sharing = sharing
        self._trace: list[pa.RecordBatch] = []
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._places = {
            query.analysed.index: (runner, place)
            for runner in self._classes
            for place, query in enumerate(runner.compiled.queries)
        }
        self._columns = {query.analysed.index: result_columns(query, schema) for query in workload.queries}

    def adopt(self, other: Executor) -> None:
        """Go on where an executor of the same workload stopped that knew less of the attributes' types."""
        self.events, self.held_back, self._trace = other.events, other.held_back, other._trace
        with self._limited():
            for mine, theirs in zip(self._classes, other._classes, strict=True):
                mine.adopt(theirs)

    def saved(self) -> list[RunnerState]:
        """What is kept between batches, per class of the workload; all rows have been drained."""
        return [runner.saved() for runner in self._classes]

    def load(self, events: int, signatures: Sequence[Signature], states: Sequence[RunnerState]) -> None:
        """Go on where another executor of the same compiled workload stopped; this one is new.

        Parameters
        ----------
        events : int
            Events processed so far.
        signatures : sequence of Signature
            By number, of the other executor's classifier.
        states : sequence of RunnerState
            What `saved` gave.

        Raises
        ------
        ValueError
            The states cannot be of this workload. The executor must not be used.
        """
        self.events = events
        self.workload.classifier.load(signatures)
        with self._limited():
            for runner, state in zip(self._classes, states, strict=True):
                runner.load(state)

    def process(self, batch: pa.RecordBatch) -> None:
        """Take events in (time, order) order, not before any time given earlier.

        Raises
        ------
        DataError
            INT arithmetic beyond 64 bits; the executor cannot go on after it.
        MemoryLimitError
            More memory is needed than the budget has; the executor cannot go on after it either.
        """
        self.events += batch.num_rows
        signatures = self.workload.classifier.classify(batch, self.workload.schema.type_column)
        for runner in self._classes:
            jobs = runner.jobs(batch, signatures)
            with self._limited():
                if self._pool is None:
                    for job in jobs:
                        job()
                else:
                    running = [self._pool.submit(job) for job in jobs]
                    wait(running)
                    for done in running:
                        done.result()
        if self._sharing.trace:  # while the kernels' numbers of keys have their names
            self._trace += [records for runner in self._classes for records in runner.trace()]

    def advance(self, time: int) -> None:
        """Close all windows that end at or before `time` (ticks)."""
        with self._limited():
            for runner in self._classes:
                for kernel in runner.kernels:
                    kernel.advance(time)

    @contextlib.contextmanager
    def _limited(self) -> Iterator[None]:
        """Stop where the kernels, with all else, take more memory than the run may."""
        if self.budget.limit is None:
            yield
            return
        others = self._others()
        self.budget.other = sum(others.values())
        try:
            if self.budget.exceeded:
                raise BudgetExceeded
            yield
        except BudgetExceeded:
            found = self.holdings()
            rest = self.budget.held - sum(each.bytes for each in found)
            others["rows of closed windows and work areas"] = rest
            raise exceeded(self.budget.limit, found, others) from None

    def holdings(self) -> list[Holding]:
        """What each query holds in the kernels now."""
        return [
            holding(query, runner.compiled.parts_of[place], runner.kernels, runner.index)
            for runner in self._classes
            for place, query in enumerate(runner.compiled.queries)
        ]

    def _others(self) -> dict[str, int]:
        """Bytes of what the kernels know nothing of, by what it is (`hamlet.limit`)."""
        groups = sum(len(each.of_key) for runner in self._classes for each in runner.groups)
        return {
            "events held back for earlier ones": self.held_back,
            "events that several groups get": sum(each.broadcast.nbytes for each in self._classes if each.broadcast),
            "values of group attributes": sum(each.index.nbytes for each in self._classes) + groups * GROUP,
        }

    def trace(self) -> pa.Table:
        """Take the records of bursts since the last call."""
        batches, self._trace = self._trace, []
        return pa.Table.from_batches(batches, trace.SCHEMA)

    def drain(self) -> list[QueryRows]:
        """Rows of the windows closed since the last call, one `QueryRows` per query, in the workload's order."""
        return [self.present(index, self.drain_groups(index)) for index in sorted(self._places)]

    def drain_groups(self, index: int) -> GroupRows:
        """The closed windows of one query before its values are read; partial where keys are spread over executors."""
        runner, place = self._places[index]
        return runner.drain(place)

    def present(self, index: int, rows: GroupRows) -> QueryRows:
        """Result rows from the components of windows and groups."""
        runner, place = self._places[index]
        return present(runner.compiled.queries[place], self._columns[index], rows, self.workload.schema.units)

    @property
    def stats(self) -> dict[str, int]:
        """Counters of the run: events, matched events, groups, windows, largest count in bits, live states."""
        counted = [kernel.counters for runner in self._classes for kernel in runner.kernels]
        return {
            "events": self.events,
            "matched_events": max((runner.matched for runner in self._classes), default=0),
            "partitions": sum(len(runner.index.keys) for runner in self._classes),
            **{
                name: (max if name == "largest_count_bits" else sum)(counters[name] for counters in counted)
                for name in (counted[0] if counted else ())
            },
        }


def result_columns(query: CompiledQuery, schema: Schema) -> tuple[ResultColumn, ...]:
    """The result columns of a query: names, kinds, types."""
    found = []
    for item in query.analysed.query.items:
        if not isinstance(item.value, Aggregate):
            type = schema.type_of(item.value.name) or AttributeType.STRING
            found.append(ResultColumn(item.column, "attribute", type, schema.arrow_types.get(item.value.name)))
            continue
        function, place = item.value.function, (item.value.variable or "", item.value.attribute or "")
        type = query.types.get(place) or AttributeType.INT
        if item.log2 or function == "AVG":
            found.append(ResultColumn(item.column, "double", AttributeType.DOUBLE))
        elif function in ("MIN", "MAX"):
            found.append(ResultColumn(item.column, "extremum", type, schema.arrow_types.get(place[1])))
        else:
            found.append(ResultColumn(item.column, "count" if function == "COUNT" else "sum", type))
    return tuple(found)


def present(query: CompiledQuery, columns: tuple[ResultColumn, ...], rows: GroupRows, units: Units) -> QueryRows:
    """Result rows from the components of windows and groups."""
    found = dict(zip(query.layout.keys, rows.components, strict=True))
    within, slide = query.window
    grouping = query.analysed.grouping
    lists: list[list[Any]] = []
    for item, result in zip(query.analysed.query.items, columns, strict=True):
        if not isinstance(item.value, Aggregate):
            place = grouping.index(item.value.name)
            lists.append([group[place] for group in rows.groups])
            continue
        values = read(item, needed(item.value, is_double(item.value, query.types), query.exact), found)
        if result.kind == "extremum" and result.type is AttributeType.TIMESTAMP:
            unit, zone = units[item.value.attribute or ""]
            values = [None if value is None else timestamp(value, unit, zone) for value in values]
            if result.arrow_type is not None and pa.types.is_date(result.arrow_type):
                values = [None if value is None else value.date() for value in values]
        lists.append(values)
    starts = [window * slide for window in rows.windows]
    ends = [start + within for start in starts]
    return QueryRows(query.name, columns, list(zip(starts, ends, *lists, strict=True)))
