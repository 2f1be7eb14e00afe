"""Propagation on symbols: what sharing computes once for all queries, event by event, as the paper's Tables 3-5 do.

The recurrence is the kernel's own, on the same tables (`hamlet.reference.object_kernel`). Queries that share a Kleene
sub-pattern (`optimizer.merge`) are propagated as under the policy `static`: at the start of a graphlet all that flows
into it is one snapshot, a symbol whose value every query has for itself, and the counts of the graphlet's events are
sums of snapshots that hold for all its queries. Where the queries disagree, because an event or an edge is not every
query's, the event gets a snapshot of its own.

Source: HAMLET (SIGMOD'21) §3.3, Defs. 3.9-3.11, Tables 3-5.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.engine.keys import KeyIndex
from hamlet.engine.options import Options, options_of
from hamlet.errors import UnsupportedError
from hamlet.input.columns import BatchColumns, Int64Array, StringPool, integers
from hamlet.input.events import open_events
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import SortKey
from hamlet.input.pushed import batch_of
from hamlet.input.stream_schema import conformed, has_columns
from hamlet.kernel.expression import OverflowInExpression
from hamlet.language.schema import Schema
from hamlet.planner.classify import FOREIGN, Classifier, Signature, overflow_error
from hamlet.planner.compile import compile_workload, facts
from hamlet.planner.compiled import CompiledClass, CompiledQuery
from hamlet.planner.workload import Workload, workload_of
from hamlet.reference.object_kernel import Gear, Rows
from hamlet.reference.snapshots import Count, Expression, Made, Snapshots, evaluated, zero
from optimizer.merge import merge
from optimizer.plan import QueryFacts

Pool = tuple[int, str]  # a shared Kleene sub-pattern, or minus one and a query alone; and the type of its events


@dataclass(frozen=True)
class Symbolic:
    """Counts of trends as expressions over snapshots.

    Attributes
    ----------
    expressions : list of sympy.Expr or None
        For every event, in the order given, the number of trends, complete or not, that it ends; None for one that no
        query matches. It holds for every query that matches the event: with the query's values of the snapshots it is
        the query's count.
    values : Snapshots
        Snapshot -> query -> integer. Snapshots of graphlets are x, y, x3, x4, ..., those of single events z, z2, ...
    """

    expressions: list[Expression | None]
    values: Snapshots

    def count(self, event: int, query: str) -> int:
        """The number of trends of a query that an event ends; the event is one that the query matches."""
        return int(evaluated(self.expressions[event], self.values, query))


def symbolic(workload: Workload, events: Any, **options: Any) -> Symbolic:
    """Propagate on symbols.

    Parameters
    ----------
    workload : Workload
        Queries with windows that do not overlap, without AND, and without declared types that lack a key.
    events : as for `hamlet.run`
        A file's are in the order of time.
    **options
        time_column, type_column, order_column and time_unit of `hamlet.run`; most others have no effect.

    Returns
    -------
    Symbolic

    Raises
    ------
    UnsupportedError
        A workload in which an event has several counts for one query.
    WorkloadError, DataError, OptionError
        As `hamlet.run`.

    Examples
    --------
    >>> workload = Workload.parse(
    ...     "q1: RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 1 min; q2: RETURN COUNT(*) PATTERN SEQ(C, B+) WITHIN 1 min"
    ... )
    >>> found = symbolic(workload, [{"time": t, "type": "AACBBBB"[t]} for t in range(7)])
    >>> found.expressions
    [1, 1, 1, x, 2*x, 4*x, 8*x]
    >>> found.values
    {'x': {'q1': 2, 'q2': 1}}
    """
    workload, chosen = workload_of(workload), options_of(options)
    table, schema, places = _table(workload, events, chosen)
    schema = schema.in_zone(chosen.timezone)
    workload.check(schema)
    strings = StringPool()
    compiled = compile_workload(workload.analysis, schema, strings)
    for each in compiled.classes:
        _refuse(each)
    batch = table.combine_chunks().to_batches()[0] if table.num_rows else pa.RecordBatch.from_pylist([], table.schema)
    columns = BatchColumns(batch, strings)
    signatures = compiled.classifier.classify(columns, schema.type_column)
    pools = _pools(facts(workload.analysis, schema))
    made = Made()
    runs = [_Run(each, compiled.classifier, columns, pools, made) for each in compiled.classes]
    found: list[Expression | None] = [None] * batch.num_rows
    for step, (time, rows) in enumerate(_steps(batch, schema), 1):
        counts: dict[int, list[Count]] = {row: [] for row in rows}
        for run in runs:
            run.step(step, time, [row for row in rows if signatures[row] != FOREIGN], signatures, counts)
        for row, of_row in counts.items():
            found[places[row]] = made.together(of_row)
    return Symbolic(found, Snapshots(made.values))


def _table(workload: Workload, events: Any, options: Options) -> tuple[pa.Table, Schema, Int64Array]:
    """The events in order of (time, order), what is known of their columns, and the place of each as it was given."""
    key = SortKey(options.time_column, options.order_column)
    wanted = options.columns_of(workload)
    names: dict[str, Any] = {
        "time_column": options.time_column,
        "type_column": options.type_column,
        "order_column": options.order_column,
    }
    if isinstance(events, (str, os.PathLike, pa.RecordBatchReader)):
        source = open_events(events, time_unit=options.time_unit, **names)
        table = pa.Table.from_batches(source.batches([name for name in wanted if name in source.schema.columns]))
        return table, source.schema, np.arange(table.num_rows)
    table = batch_of(events, **names)
    closed = has_columns(events)
    schema = schema_of(
        table.schema, key, options.type_column, options.time_unit, closed=closed, empty=not table.num_rows
    )
    table = conformed(table, schema, wanted)
    keys = [
        integers(table.column(name).combine_chunks(), name)[0]
        for name in (key.order, key.time)
        if name and table.num_rows
    ]
    places = np.lexsort(keys) if keys else np.zeros(0, np.int64)
    return table.take(pa.array(places)), schema, places


def _refuse(compiled: CompiledClass) -> None:
    """Raise where an event has more than one count for a query."""
    for query in compiled.queries:
        within, slide = query.window
        if query.reach is not None:
            raise UnsupportedError(
                f"query {query.name} asks for other semantics than skip-till-any-match, SPAN, sessions or distinct "
                "values, which are not shown as symbols"
            )
        if not query.line.is_plain:
            raise UnsupportedError(
                f"the windows of query {query.name} begin by OFFSET or in a time zone; leave that out"
            )
        if len(query.templates) > 1:
            raise UnsupportedError(f"query {query.name} counts pairs (AND); write its two patterns as two queries")
        if slide < within:
            raise UnsupportedError(
                f"the windows of query {query.name} overlap, so an event has a count in each of them; leave out SLIDE"
            )
    if compiled.broadcasts:
        names = ", ".join(query.name for query in compiled.queries)
        raise UnsupportedError(f"a type of {names} lacks a key, so that its events have a count in every partition")


def _steps(batch: pa.RecordBatch, schema: Schema) -> Iterator[tuple[int, list[int]]]:
    """The time and the rows of each step: events of one time (and order)."""
    if not batch.num_rows:
        return
    names = (schema.clock.column, *([schema.order_column] if schema.order_column else []))
    keys = list(zip(*(integers(batch.column(name), name)[0].tolist() for name in names), strict=True))
    for (time, *_), rows in groupby(range(batch.num_rows), key=keys.__getitem__):
        yield time, list(rows)


def _pools(queries: list[QueryFacts]) -> dict[tuple[int, int], int]:
    """(query, state) -> number of the sub-pattern of one type that it may share there."""
    shared = [
        pattern for group in merge(queries).groups for pattern in group.sub_patterns if len(pattern.shape.types) == 1
    ]
    return {
        (member.part.query, state): number
        for number, pattern in enumerate(shared)
        for member in pattern.members
        for state in member.states
    }


# ----------------------------------------------------------------------------------------------------------- queries


@dataclass(frozen=True)
class _Entry:
    """What an event of a signature does to one query."""

    place: int
    arrivals: tuple[int, ...]
    guards: tuple[int, ...]


@dataclass
class _Graphlet:
    """A burst that is under way: its snapshot, and what it stands for in each query (by place)."""

    snapshot: Expression
    inflow: dict[int, int]


@dataclass
class _Key:
    """One partition: gears and windows by place of the query, and the graphlets that are open."""

    gears: list[Gear]
    window: list[int | None]
    graphlets: dict[Pool, _Graphlet] = field(default_factory=dict)


class _Run:
    """The queries of one class of partition attributes."""

    def __init__(
        self,
        compiled: CompiledClass,
        classifier: Classifier,
        columns: BatchColumns,
        shared: Mapping[tuple[int, int], int],
        made: Made,
    ) -> None:
        self._compiled, self._classifier, self._batch, self._made = compiled, classifier, columns.batch, made
        self._queries = compiled.queries
        self._rows = Rows([columns.values(name, type) for name, type in compiled.columns], columns.strings.ranks)
        self._keys: dict[int, _Key] = {}
        self._key_of = KeyIndex(compiled.attributes).encode(columns.batch).tolist()
        self._entries: dict[int, tuple[_Entry, ...]] = {}
        self._joins: dict[tuple[int, int], Pool] = {}  # (place, arrival) -> the pool whose graphlets it joins
        for place, query in enumerate(self._queries):
            for arrival, type in _loops(query):
                number = shared.get((query.analysed.index, arrival + 1), -1 - query.analysed.index)
                self._joins[place, arrival] = (number, type)
        self._members: dict[Pool, dict[int, int]] = {}  # pool -> place -> arrival
        for (place, arrival), pool in self._joins.items():
            self._members.setdefault(pool, {})[place] = arrival

    def step(self, step: int, time: int, rows: list[int], signatures: Any, counts: Mapping[int, list[Count]]) -> None:
        """Take the events of one time, some of several keys; their counts go to `counts`."""
        for number in dict.fromkeys(self._key_of[row] for row in rows):
            entries = {row: self._of(int(signatures[row])) for row in rows if self._key_of[row] == number}
            entries = {row: each for row, each in entries.items() if each}
            if entries:
                try:
                    self._step(self._key(number), step, time, entries, counts)
                except OverflowInExpression as error:
                    raise overflow_error(self._batch, error.text, max(entries)) from None

    def _of(self, signature: int) -> tuple[_Entry, ...]:
        if signature not in self._entries:
            known = self._classifier.signatures[signature]
            found = [_entry(place, query, known) for place, query in enumerate(self._queries)]
            self._entries[signature] = tuple(each for each in found if each.arrivals or each.guards)
        return self._entries[signature]

    def _key(self, number: int) -> _Key:
        if number not in self._keys:
            import sympy

            gears = [Gear(query.tables[0], self._rows, sympy.S.Zero, sympy.S.One) for query in self._queries]
            self._keys[number] = _Key(gears, [None] * len(gears))
        return self._keys[number]

    def _step(
        self,
        key: _Key,
        step: int,
        time: int,
        entries: dict[int, tuple[_Entry, ...]],
        counts: Mapping[int, list[Count]],
    ) -> None:
        self._turn(key, time)
        entries = {row: tuple(e for e in each if key.window[e.place] is not None) for row, each in entries.items()}
        for pool in list(key.graphlets):
            if len(entries) > 1 or any(self._ends(pool, entry) for each in entries.values() for entry in each):
                self._end(key, pool)
        written: dict[int, dict[int, list[tuple[int, Expression]]]] = {}
        for row, each in entries.items():
            for place, arrival, count in self._counts(key, row, each, counts[row]):
                written.setdefault(place, {}).setdefault(arrival, []).append((row, count))
        for place, gear in enumerate(key.gears):
            guards = [(g, row) for row, each in entries.items() for e in each if e.place == place for g in e.guards]
            gear.advance_guards(step, guards)
            gear.write(step, written.get(place, {}))
            gear.finish()
        if len(entries) > 1:
            for pool in list(key.graphlets):
                self._end(key, pool)

    def _turn(self, key: _Key, time: int) -> None:
        """Close the windows that are over; a place without a window holds no event of this time."""
        for place, query in enumerate(self._queries):
            within, slide = query.window
            window: int | None = time // slide
            assert window is not None
            window = window if time - window * slide < within else None
            if window != key.window[place]:
                for pool in [pool for pool in key.graphlets if place in self._members[pool]]:
                    self._end(key, pool)
                key.window[place] = window
                key.gears[place].reset()

    # ------------------------------------------------------------------------------------------------- graphlets

    def _ends(self, pool: Pool, entry: _Entry) -> bool:
        """Whether an event touches a member of a pool otherwise than by joining its graphlet."""
        if entry.place not in self._members[pool]:
            return False
        return bool(entry.guards) or entry.arrivals != (self._members[pool][entry.place],)

    def _end(self, key: _Key, pool: Pool) -> None:
        """End a burst: what its queries hold becomes numbers."""
        del key.graphlets[pool]
        for place in self._members[pool]:
            name = self._queries[place].name
            key.gears[place].transform(lambda count, name=name: evaluated(count, self._made.values, name))  # type: ignore[misc]

    def _counts(
        self, key: _Key, row: int, entries: Iterable[_Entry], counts: list[Count]
    ) -> Iterator[tuple[int, int, Expression]]:
        """(place, arrival, number of trends) of one event; what it is for whom goes to `counts`."""
        joining: dict[Pool, dict[int, Expression]] = {}
        for entry in entries:
            read = {arrival: key.gears[entry.place].read(arrival, row) for arrival in entry.arrivals}
            pool = self._joins.get((entry.place, entry.arrivals[0])) if len(read) == 1 else None
            if pool is not None:
                joining.setdefault(pool, {})[entry.place] = read[entry.arrivals[0]]
            elif read:
                name = self._queries[entry.place].name
                total = sum(read.values())
                counts.append(Count(total, {name: int(total)}))
                yield from ((entry.place, arrival, count) for arrival, count in read.items())
        for pool, of_place in joining.items():
            found = self._shared(key, pool, row, of_place)
            counts.append(found)
            # what rejects the event has the value 0 of its snapshot, and so the same expressions after it
            yield from ((place, arrival, found.expression) for place, arrival in self._members[pool].items())

    def _shared(self, key: _Key, pool: Pool, row: int, of_place: Mapping[int, Expression]) -> Count:
        """The count of an event of a graphlet, one expression for all its queries, those that reject it included."""
        members = self._members[pool]
        accept = {place: of_place.get(place, 0) for place in members}
        names = {place: self._queries[place].name for place in members}
        of_query = {
            names[place]: int(evaluated(count, self._made.values, names[place])) if count else 0
            for place, count in accept.items()
        }
        if pool not in key.graphlets:
            inflow = {place: int(key.gears[place].read(arrival, row)) for place, arrival in members.items()}
            if not any(inflow.values()):
                return Count(zero(), of_query)
            snapshot = self._made.of_graphlet({names[place]: count for place, count in inflow.items()})
            key.graphlets[pool] = _Graphlet(snapshot, inflow)
        graphlet = key.graphlets[pool]
        forms = {
            count - count.as_coeff_Add()[0] + graphlet.snapshot
            if count.as_coeff_Add()[0] == graphlet.inflow[place]
            else None  # what flows in from outside the graphlet is not what flowed into its first event
            for place, count in of_place.items()
        }
        if len(of_place) == len(members) and len(forms) == 1 and None not in forms:
            return Count(forms.pop(), of_query)
        return Count(self._made.of_event(of_query), of_query)


def _entry(place: int, query: CompiledQuery, signature: Signature) -> _Entry:
    tables = query.tables[0]
    fitting = [variable for variable, role in query.roles.items() if signature.fits(role)]
    arrivals = [number for variable in fitting for number in tables.arrivals_of.get(variable, ())]
    guards = [number for variable in fitting for number in tables.guard_arrivals_of.get(variable, ())]
    return _Entry(place, tuple(arrivals), tuple(guards))


def _loops(query: CompiledQuery) -> Iterator[tuple[int, str]]:
    """(arrival, type) of types whose events arrive in one state only, which is its own successor: ``E+``."""
    template = query.templates[0]
    states: dict[str, list[int]] = {}
    for state in range(1, template.size):
        states.setdefault(template.types[template.labels[state]], []).append(state)
    loops = {step.source for step in template.transitions if step.source == step.target}
    for type, found in states.items():
        if len(found) == 1 and found[0] in loops:
            yield found[0] - 1, type
