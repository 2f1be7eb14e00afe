"""The kernel's recurrence on Python objects: the same integer tables, any numbers that add up.

A `Gear` is what the kernel keeps for one query and one key in one window. Its numbers may be integers or sympy
expressions; it asks nothing of them but ``+``. There are no limbs, no lanes, no indexes and no bursts here, for those
change how a sum is computed and not what it is, and only trends are counted, not the other aggregates.

Contract
--------
**Reads before writes.** All events of one time (and order) are one step: every `read` of a step, then `advance_guards`,
then `write`, then `finish`.
**One window.** `reset` forgets everything; windows that overlap are the caller's to refuse.

Source: HAMLET (SIGMOD'21) §3, Eqs. 2-6; the kernel's `_step_query` line by line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from hamlet._core import SOURCES
from hamlet.input.columns import Int64Array, KernelColumn, take
from hamlet.planner.tables import NONE, QueryTables

Number = Any  # int or sympy.Expr

_START, _CELL = SOURCES["start"], SOURCES["cell"]


@dataclass(frozen=True)
class Rows:
    """The events that gears look back at.

    Attributes
    ----------
    columns : sequence of KernelColumn
        The event columns of the query's class, shape (events,) each.
    ranks : int64 array
        Rank of each string number.
    """

    columns: Sequence[KernelColumn]
    ranks: Int64Array


@dataclass
class _Node:
    """One event that stands in a state; `value` is the number of its trends, or the latest start of a partial match."""

    step: int
    row: int
    value: Number


class Gear:
    """What is kept for one query and one key.

    Parameters
    ----------
    tables : QueryTables
    rows : Rows
    zero, one : number
    """

    def __init__(self, tables: QueryTables, rows: Rows, zero: Number = 0, one: Number = 1) -> None:
        self._tables, self._rows, self._zero, self._one = tables, rows, zero, one
        self.reset()

    def reset(self) -> None:
        """Begin a window."""
        tables = self._tables
        self._cells: list[Number] = [self._zero] * len(tables.cell_guards)
        self._stores: list[list[_Node]] = [[] for _ in tables.stores]
        self._latest = [0] * tables.guard_states  # start of the latest partial match, 0 for none
        self._killed = [0] * len(tables.simple)  # start of the latest finished match
        self._pending: list[tuple[int, _Node]] = []

    def transform(self, change: Callable[[Number], Number]) -> None:
        """Write all numbers otherwise."""
        self._cells = [change(each) for each in self._cells]
        for table, nodes in zip(self._tables.stores, self._stores, strict=True):
            for node in () if table[4] else nodes:
                node.value = change(node.value)

    # ---------------------------------------------------------------------------------------------- positive states

    def read(self, arrival: int, row: int) -> Number:
        """The number of trends that an event extends (or begins) where it arrives."""
        _, begin, end, *_ = self._tables.arrivals[arrival]
        return self._sum(begin, end, row)

    def total(self) -> Number:
        """The number of complete trends, were the window to end now."""
        return self._sum(*self._tables.finals, 0)

    def _sum(self, begin: int, end: int, row: int) -> Number:
        total = self._zero
        # several searches that differ in nothing but the index are one scan
        for (kind, place, guards, predicate), _ in groupby(self._tables.sources[begin:end], lambda source: source[:4]):
            if kind == _START:
                alive = not any(self._killed[guard] for guard in self._guard_set(guards))
                total = total + self._one if alive else total
            elif kind == _CELL:
                total = total + self._cells[place]
            else:
                since = max((self._killed[guard] for guard in self._guard_set(guards)), default=0)
                for node in self._fitting(place, predicate, row):
                    if node.step >= since:
                        total = total + node.value
        return total

    def write(self, step: int, values: Mapping[int, Sequence[tuple[int, Number]]]) -> None:
        """Add what arrived: by arrival the events of the step, each with its number of trends."""
        for arrival, events in values.items():
            _, _, _, cells, cells_end, stores, stores_end, *_ = self._tables.arrivals[arrival]
            for cell in self._tables.members[cells:cells_end]:
                for _, value in events:
                    self._cells[cell] = self._cells[cell] + value
            for store in self._tables.members[stores:stores_end]:
                self._stores[store] += [_Node(step, row, value) for row, value in events]

    def finish(self) -> None:
        """End the step."""
        for store, node in self._pending:
            self._stores[store].append(node)
        self._pending = []

    # ------------------------------------------------------------------------------------------------------- guards

    def advance_guards(self, step: int, arrivals: Sequence[tuple[int, int]]) -> None:
        """Advance the negated patterns; a match that finishes kills what arrived before it began.

        Parameters
        ----------
        step : int
            Its number, ascending from 1.
        arrivals : sequence of (int, int)
            Guard arrivals of the step's events, and the event.
        """
        fresh: dict[int, int] = {}
        for number, row in arrivals:
            _, state, begin, end, store, _ = self._tables.guard_arrivals[number]
            latest = max((self._latest_of(source, step, row) for source in self._tables.sources[begin:end]), default=0)
            if latest:
                fresh[state] = max(fresh.get(state, 0), latest)
                if store != NONE:
                    self._pending.append((store, _Node(step, row, latest)))
        for state, latest in fresh.items():
            self._latest[state] = max(self._latest[state], latest)
        for number, _ in arrivals:
            guard, state, _, _, _, final = self._tables.guard_arrivals[number]
            if final and fresh.get(state, 0) > self._killed[guard]:
                self._killed[guard] = fresh[state]
                if self._tables.simple[guard]:
                    self._kill_cells(guard)

    def _latest_of(self, source: Sequence[int], step: int, row: int) -> int:
        kind, place, _, predicate, _ = source
        if kind == _START:
            return step
        if kind == _CELL:
            return self._latest[place]
        return max((node.value for node in self._fitting(place, predicate, row)), default=0)

    def _kill_cells(self, guard: int) -> None:
        for cell, guards in enumerate(self._tables.cell_guards):
            if guard in self._guard_set(guards):
                self._cells[cell] = self._zero

    def _guard_set(self, number: int) -> Sequence[int]:
        if number == NONE:
            return ()
        begin, end = self._tables.guard_sets[number]
        return self._tables.members[begin:end]

    # --------------------------------------------------------------------------------------------------- predicates

    def _fitting(self, store: int, predicate: int, row: int) -> list[_Node]:
        """The events of a store that an adjacent predicate lets an event follow."""
        nodes, tables, columns = self._stores[store], self._tables, self._rows.columns
        if predicate == NONE or not nodes:
            return nodes
        program, (vector, vectors), (scalar, scalars) = tables.predicates[predicate]
        kept = tables.stores[store][0]
        earlier = np.array([node.row for node in nodes], np.int64)
        held = [
            take(columns[tables.members[kept + place]], earlier) for place in tables.members[vector : vector + vectors]
        ]
        later = [columns[place] for place in tables.members[scalar : scalar + scalars]]
        chosen = program.select(held, len(nodes), self._rows.ranks, later, row)
        return [node for node, fits in zip(nodes, chosen.tolist(), strict=True) if fits]
