"""A workload and a stream as the baselines read them: templates, and per event the roles that accept it.

What is done here is done once, before any time is taken: naming events by roles, cutting the stream by window and
partition. It is part of every engine's work and of ours, so that leaving it out favours the baselines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bench.baselines.conditions import accepted
from hamlet import Workload
from hamlet.errors import UnsupportedError
from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.columns import Int64Array
from hamlet.language.automaton import templates
from hamlet.language.conditions import references, rewritten
from hamlet.language.meaning import AnalysedQuery
from hamlet.language.query import Aggregate, Comparison, Condition, Reference, Shift
from optimizer.condition import MIRRORED
from optimizer.template import START, Template

Slot = tuple[int, int, int]  # role, which of the variables of that role, column that is added
Pair = tuple[int, int, int]  # column of the earlier event, operator, column of the later one
OPERATORS = {"<": 0, "<=": 1, ">": 2, ">=": 3, "=": 4}
MOST_BITS = 64
ONE = "1"  # the column of ones: what COUNT(E) adds


@dataclass(frozen=True)
class PlainQuery:
    """One query as the baselines run it.

    Attributes
    ----------
    analysed : AnalysedQuery
    template : Template
    roles : tuple of int
        Bit of an event's mask for each state; -1 for the start.
    ordinals : tuple of int
        For each state: which of the query's variables of the same role enters it.
    guards : tuple of int
        Bit of an event's mask for each guard.
    pairs : dict of (str, str) to Pair
        The adjacent comparison of two variables.
    slots : dict of (variable, column) to Slot
        What COUNT(E), SUM and AVG add up.
    """

    analysed: AnalysedQuery
    template: Template
    roles: tuple[int, ...]
    ordinals: tuple[int, ...]
    guards: tuple[int, ...]
    pairs: dict[tuple[str, str], Pair]
    slots: dict[tuple[str, str], Slot]


@dataclass(frozen=True)
class QueryClass:
    """Queries of one window and one partition, which alone can share (HAMLET §3.1)."""

    within: int
    slide: int
    grouping: tuple[str, ...]
    queries: tuple[PlainQuery, ...]
    partition: Int64Array  # code of each event's partition
    groups: list[tuple[Any, ...]]  # partition -> values of the grouping attributes


@dataclass(frozen=True)
class Piece:
    """Events of one window and one partition, in order."""

    members: QueryClass
    window: int
    partition: int
    events: Int64Array


@dataclass
class Question:
    """A workload over a stream.

    Parameters
    ----------
    workload : Workload
        Without AND, declarations, MIN and MAX; a negated pattern is one event; an adjacent predicate compares one
        attribute with one attribute.
    events : pyarrow.Table
        In order of time and of the order column; times are integers.
    time_unit, type_column, order_column
        As for `hamlet.run`.

    Attributes
    ----------
    masks : numpy.ndarray of uint64, shape (events,)
        The roles that accept each event, as bits.
    steps : numpy.ndarray of int64, shape (events,)
        Equal for events that neither precedes the other.
    values : numpy.ndarray of float64, shape (events, columns)
        NULL is NaN.

    Raises
    ------
    UnsupportedError
        The workload has what the baselines do not know.
    """

    workload: Workload
    events: pa.Table
    time_unit: str = "s"
    type_column: str = "type"
    order_column: str | None = None
    classes: list[QueryClass] = field(init=False, default_factory=list)
    masks: npt.NDArray[np.uint64] = field(init=False)
    steps: Int64Array = field(init=False)
    values: npt.NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        """Read the stream."""
        self._columns: dict[str, npt.NDArray[np.float64]] = {ONE: np.ones(len(self.events))}
        self._roles: dict[tuple[str, tuple[Condition, ...]], int] = {}
        self.masks = np.zeros(len(self.events), np.uint64)
        self.times = self.events["time"].to_numpy().astype(np.int64)
        changes = np.diff(self.times) != 0
        if self.order_column is not None:
            changes |= np.diff(self.events[self.order_column].to_numpy()) != 0
        self.steps = np.concatenate([[0], np.cumsum(changes)]).astype(np.int64)[: len(self.events)]
        if self.workload.analysis.declared:
            raise UnsupportedError("the baselines know no EVENT declarations")
        found: dict[tuple[Any, ...], list[PlainQuery]] = {}
        for query in self.workload.analysis.queries:
            name = (*self._window(query), query.grouping, tuple(sorted(query.partition)))
            found.setdefault(name, []).append(self._plain(query))
        for (within, slide, grouping, partition), queries in found.items():
            codes, groups = self._partitions(partition, grouping)
            self.classes.append(QueryClass(within, slide, grouping, tuple(queries), codes, groups))
        self.values = np.ascontiguousarray(np.stack(list(self._columns.values()), axis=1))

    # -------------------------------------------------------------------------------------------- the stream

    def pieces(self, begin: int, end: int) -> list[Piece]:
        """The events ``[begin, end)`` by window and partition, windows in order; both are borders of steps."""
        return [piece for each in self.classes for piece in self._pieces(each, begin, end)]

    def _pieces(self, members: QueryClass, begin: int, end: int) -> Iterator[Piece]:
        numbers = np.arange(begin, end, dtype=np.int64)
        times, latest = self.times[begin:end], self.times[begin:end] // members.slide
        chosen, windows = [], []
        for back in range(-(-members.within // members.slide)):
            inside = times < (latest - back) * members.slide + members.within
            chosen.append(numbers[inside])
            windows.append(latest[inside] - back)
        events, places = np.concatenate(chosen), np.concatenate(windows)
        codes = members.partition[events]
        order = np.lexsort((events, codes, places))
        events, places, codes = events[order], places[order], codes[order]
        cuts = np.nonzero((np.diff(places) != 0) | (np.diff(codes) != 0))[0] + 1
        for part in np.split(np.arange(len(events)), cuts):
            if len(part):
                yield Piece(members, int(places[part[0]]), int(codes[part[0]]), events[part])

    def _partitions(
        self, partition: tuple[str, ...], grouping: tuple[str, ...]
    ) -> tuple[Int64Array, list[tuple[Any, ...]]]:
        codes = np.zeros(len(self.events), np.int64)
        for name in partition:
            encoded = pc.dictionary_encode(self.events[name].combine_chunks(), null_encoding="encode")
            numbers = encoded.indices.to_numpy()
            codes = np.unique(codes * (len(encoded.dictionary) + 1) + numbers, return_inverse=True)[1]
        firsts = np.unique(codes, return_index=True)[1]
        rows = self.events.select(list(grouping)).take(pa.array(firsts)) if grouping else None
        columns = [rows[name].to_pylist() for name in grouping] if rows is not None else []
        return codes.astype(np.int64), list(zip(*columns, strict=True)) if columns else [()] * len(firsts)

    # -------------------------------------------------------------------------------------------- the queries

    def _window(self, query: AnalysedQuery) -> tuple[int, int]:
        def ticks(seconds: Fraction) -> int:
            return int(seconds * UNITS_PER_SECOND[self.time_unit])

        assert query.query.within is not None, "WITHIN ALL is not compared"
        within = ticks(query.query.within.seconds)
        return within, ticks(query.query.slide.seconds) if query.query.slide else within

    def _plain(self, query: AnalysedQuery) -> PlainQuery:
        if query.query.offset is not None:
            raise UnsupportedError("the baselines know no OFFSET")
        if len(query.patterns) != 1:
            raise UnsupportedError("the baselines know no AND of patterns")
        template = templates(query.patterns)[0]
        bits = {name: self._role(query, name) for name in (*template.variables, *query.negated)}
        seen: dict[str, int] = {}
        for place, name in enumerate(template.variables):
            seen[name] = sum(bits[name] == bits[other] for other in template.variables[:place])
        names = [template.variable(state) for state in range(1, template.size)]
        slots = {}
        for item in query.query.items:
            if isinstance(item.value, Aggregate) and item.value.variable is not None:
                for column in self._added(item.value):
                    variable = item.value.variable
                    slots[variable, column] = (bits[variable], seen[variable], list(self._columns).index(column))
        return PlainQuery(
            query,
            template,
            (-1, *(bits[name] for name in names)),
            (-1, *(seen[name] for name in names)),
            tuple(self._guard(guard.template, bits) for guard in template.guards),
            {pair: self._pair(pair, conditions) for pair, conditions in query.adjacent.items()},
            slots,
        )

    @staticmethod
    def _guard(template: Template, bits: dict[str, int]) -> int:
        if template.size != 2 or any(step.source != START for step in template.transitions):
            raise UnsupportedError("the baselines know only single events under NOT")
        return bits[template.variable(1)]

    def _role(self, query: AnalysedQuery, variable: str) -> int:
        """The bit of a type and its local predicates."""

        def unnamed(reference: Reference) -> Reference:
            return Reference("", reference.attribute, reference.shift)

        conditions = tuple(rewritten(each, unnamed) for each in query.local.get(variable, ()))
        role = (query.types[variable], conditions)
        if role not in self._roles:
            bit = self._roles[role] = len(self._roles)
            if bit == MOST_BITS:
                raise UnsupportedError(f"the baselines know {MOST_BITS} types with local predicates")
            types = self.events[self.type_column]
            chosen = pc.equal(types.cast(pa.string()), role[0])
            for condition in conditions:
                chosen = pc.and_kleene(chosen, accepted(condition, self.events))
            selected = pc.fill_null(chosen, False).to_numpy(zero_copy_only=False)
            self.masks |= selected.astype(np.uint64) << np.uint64(bit)
        return self._roles[role]

    def _added(self, aggregate: Aggregate) -> tuple[str, ...]:
        """The columns whose sums over all occurrences give an aggregate."""
        if aggregate.function.upper() in ("MIN", "MAX"):
            raise UnsupportedError("the baselines know no MIN and MAX")
        if aggregate.attribute is None:
            return (ONE,)
        self._column(aggregate.attribute)
        present = f"{aggregate.attribute} IS NOT NULL"
        self._columns.setdefault(present, (~np.isnan(self._columns[aggregate.attribute])).astype(float))
        return aggregate.attribute, present

    def _column(self, attribute: str) -> int:
        if attribute not in self._columns:
            values = self.events[attribute]
            if pa.types.is_string(values.type):
                encoded = pc.dictionary_encode(values.combine_chunks())
                values = encoded.indices
            self._columns[attribute] = np.array(
                pc.fill_null(pc.cast(values, pa.float64()), float("nan")).to_numpy(zero_copy_only=False)
            )
        return list(self._columns).index(attribute)

    def _pair(self, pair: tuple[str, str], conditions: tuple[Condition, ...]) -> Pair:
        """An adjacent comparison, turned so that the earlier event is on its left."""
        if len(conditions) == 1 and isinstance(conditions[0], Comparison):
            condition = conditions[0]
            sides = (condition.left, condition.right)
            if all(isinstance(side, Reference) for side in sides) and condition.operator in OPERATORS:
                left, right = (reference for side in sides for reference in references(side))
                operator = condition.operator
                if left.shift is Shift.NEXT:
                    left, right = right, left
                    operator = MIRRORED[operator]
                if left.shift is not right.shift:
                    return self._column(left.attribute), OPERATORS[operator], self._column(right.attribute)
        raise UnsupportedError(f"the baselines compare one attribute with one attribute, not what {pair} has")
