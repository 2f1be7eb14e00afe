"""Rows of closed windows of one class of queries: out of its kernels, ordered, partitions merged into groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hamlet._core import Kernel
from hamlet.engine.group_order import Ranks
from hamlet.engine.keys import KeyIndex
from hamlet.engine.trend_groups import Mark, as_columns, come_in_order, grouped, in_order
from hamlet.input.columns import Int64Array, StringPool
from hamlet.kernel.column_builder import by_window
from hamlet.kernel.operators.matching.operator import Matching
from hamlet.kernel.state.dicts import Listing
from hamlet.language.query import AttributeType
from hamlet.language.schema import Schema
from hamlet.output.components import Column, columned, decoded, in_columns, listed, merged_runs, taken
from hamlet.output.distinct import below, set_columns
from hamlet.output.listing import listings
from hamlet.output.matched import event_columns
from hamlet.output.numbers import Runs
from hamlet.output.rows import Closed
from hamlet.planner.aggregates import Component, ComponentKey, has_trends, nothing, paired
from hamlet.planner.compiled import CompiledClass, CompiledQuery

# as `Kernel.rows` gives, and columns of sets; last what trends took, where they are grouped by it
Drained = tuple[Int64Array, Int64Array, npt.NDArray[np.int32], npt.NDArray[np.uint64], list[Column]]
# as `Kernel.take_columns` gives
RowColumns = tuple[npt.NDArray[np.int32], Int64Array, Int64Array, list[tuple[Any, Any]]]
AnyKernel = Kernel | Matching


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """The order of a query's rows, for other queries whose rows are of the same windows and partitions.

    Attributes
    ----------
    keys, windows : int64 array of shape (rows,)
        Of the rows as the kernel has them.
    rows : int64 array of shape (rows,)
        Their places in order.
    owners : int32 array of shape (rows,)
        The partitions in order.
    runs : Runs
        The windows in order.
    """

    keys: Int64Array
    windows: Int64Array
    rows: Int64Array
    owners: npt.NDArray[np.int32]
    runs: Runs


Orders = dict[tuple[tuple[int, ...], int], Ordered]  # by the grouping attributes and the number of rows

_ORDERS = 8  # that are kept at once


class ClosedRows:
    """What the kernels of a class have to deliver.

    Parameters
    ----------
    compiled : CompiledClass
    schema : Schema
    kernels : list of Kernel or Matching
        One per thread.
    index : KeyIndex
    strings : StringPool
        What the numbers of strings stand for.
    """

    def __init__(
        self,
        compiled: CompiledClass,
        schema: Schema,
        kernels: Sequence[AnyKernel],
        index: KeyIndex,
        strings: StringPool,
    ) -> None:
        self.compiled = compiled
        self.kernels = kernels
        self.index = index
        self._strings = strings
        self._schema = schema
        self._ranks = {group: Ranks(index, group) for group in {query.group for query in compiled.queries}}
        self._closed: dict[int, list[Closed]] = {}  # by query, taken from the kernels and not delivered
        self._plans: dict[tuple[int, ...], list[Listing]] | None = None
        self._drawn: dict[tuple[int, int], list[Drained]] = {}  # by query and part, drained for one that is alike

    def plan_dicts(self) -> dict[tuple[int, ...], list[Listing]]:
        """How rows are made dicts, found out once: a run that asks for none need not."""
        if self._plans is None:
            self._plans = {} if self.compiled.matching else listings(self.compiled, self._schema)
        return self._plans

    def sequence(self, events: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]] | None:
        """The order in which rows of a window are asked for, for `Kernel.process`; None where it does not pay."""
        return self._ranks[self.compiled.queries[0].group].sequence(events)

    @property
    def waiting(self) -> int:
        """Rows that nobody has drained."""
        taken = sum(len(piece.windows) for pieces in self._closed.values() for piece in pieces)
        drawn = sum(len(rows[0]) for waiting in self._drawn.values() for rows in waiting)
        return taken + drawn + sum(kernel.waiting for kernel in self.kernels)

    def places(self) -> list[int]:
        """The queries of the class (their places) that have rows to drain."""
        found = {*self._closed, *(place for place, _ in self._drawn)}
        for kernel in self.kernels:
            for part in kernel.closed():
                found.update(self.compiled.users_of[part])
        return sorted(found)

    def set_aside(self) -> None:
        """Take all rows out of the kernels, with the values of their groups: numbers of partitions may change now."""
        kept = {place: self.drain(place) for place in self.places()}
        self._closed = {place: pieces for place, pieces in kept.items() if pieces}

    def listed(self) -> list[tuple[int, list[dict[str, Any]]]]:
        """Take the rows of those queries whose rows can be made dicts in the kernel; each with the query's number."""
        if len(self.kernels) > 1 or self._closed or self._drawn:
            return []
        kernel, index = self.kernels[0], self.index
        if isinstance(kernel, Matching):
            return []
        found: list[tuple[int, list[dict[str, Any]]]] = []
        for group, plans in self.plan_dicts().items():
            ranks = self._ranks[group]
            if ranks.are_worth(kernel.waiting):
                values = [index.listed(place) for place in range(len(index.attributes))]
                found += kernel.take_listed(plans, ranks.table, ranks.limit, values)
        return found

    def drain(self, place: int, orders: Orders | None = None) -> list[Closed]:
        """The closed windows of one query of the class, partitions merged into groups, in the order of time.

        `orders` holds what other queries of the class have found since events were taken, and gets what this one does.
        """
        pieces = self._closed.pop(place, [])
        parts = self.compiled.parts_of[place]
        row_columns = self.kernels[0].take_columns(parts[0]) if len(self.kernels) == len(parts) == 1 else None
        if row_columns is not None:  # those that are alike have it, too: each behind the rows that came before
            for user in self.compiled.users_of[parts[0]]:
                if user != place:
                    self._closed.setdefault(user, []).extend(self._all_taken(user, row_columns, orders))
        return [*pieces, *self._all_taken(place, row_columns, orders)]

    def _all_taken(self, place: int, row_columns: RowColumns | None, orders: Orders | None) -> list[Closed]:
        """The rows of a query that have been taken: those in no order, then its row columns."""
        found = [self._taken(place, orders), None if row_columns is None else self._from_columns(place, row_columns)]
        return [each for each in found if each is not None and len(each.windows)]

    def _from_columns(self, place: int, row_columns: RowColumns) -> Closed:
        """The rows that a kernel has as columns, in order; no others of the query come behind them."""
        keys, windows, counts, gathers = row_columns
        query = self.compiled.queries[place]
        runs = Runs(windows, counts)
        if not query.analysed.taken:
            return self._grouped(query, runs, keys, in_columns(query.layout, gathers))
        columns, marks = in_columns(query.layout, gathers[:-1]), gathers[-1:]
        if len(query.group) == len(self.compiled.attributes) and come_in_order(query):
            attributes = [self.index.column(each, keys) for each in query.group]
            return in_order(query, runs, attributes, marks, columns, self._strings.texts, self._schema)

        def chosen(order: Int64Array) -> list[Column]:
            return [taken(column, order) for column in columns]

        return self._regrouped(query, np.repeat(windows, counts), keys, marks, chosen)

    def _taken(self, place: int, orders: Orders | None) -> Closed | None:
        """The other rows that the kernels have of a query."""
        query = self.compiled.queries[place]
        parts = self.compiled.parts_of[place]
        whole: list[Column] | None = None
        if query.analysed.taken:
            return self._marked(place, query, parts[0])
        if len(parts) == 1:
            keys, windows, widths, words, sets = self._drawn_for(place, parts[0])
        elif query.sides:
            keys, windows, whole = self._side_by_side(place, query, parts)
        else:
            keys, windows, whole = self._pairs(place, query, parts)
        if not len(keys):
            self._drop(parts)
            return None
        ordered = self._ordered(query.group, keys, windows, orders)
        if whole is None:
            columns = decoded(query.layout.cells, widths, words, ordered.rows)
            columns += [taken(column, ordered.rows) for column in sets]
        else:
            columns = [taken(column, ordered.rows) for column in whole]
        self._drop(parts)
        return self._grouped(query, ordered.runs, ordered.owners, columns)

    def _marked(self, place: int, query: CompiledQuery, part: int) -> Closed | None:
        """The rows of a query whose trends are grouped by what they took, too."""
        keys, windows, widths, words, (*sets, marks) = self._drawn_for(place, part)
        if not len(keys):
            self._drop([part])
            return None

        def columns(order: Int64Array) -> list[Column]:
            return [*decoded(query.layout.cells, widths, words, order), *(taken(column, order) for column in sets)]

        found = self._regrouped(query, windows, keys.astype(np.int32), as_columns(marks), columns)
        self._drop([part])
        return found

    def _regrouped(
        self,
        query: CompiledQuery,
        windows: Int64Array,
        owners: npt.NDArray[np.int32],
        marks: Sequence[Mark],
        columns: Callable[[Int64Array], list[Column]],
    ) -> Closed:
        """Rows of partitions and of what trends took, in any order, as rows of groups."""
        attributes = {}
        for name, number in zip(query.analysed.grouping, query.group, strict=True):
            ranks_of = self._ranks.setdefault((number,), Ranks(self.index, (number,)))
            numbers, ranks, _ = ranks_of.of(owners.astype(np.int64))
            attributes[name] = self.index.column(number, owners), ranks[numbers]
        return grouped(query, windows, attributes, marks, columns, self._strings.texts, self._schema)

    def _ordered(self, group: tuple[int, ...], keys: Int64Array, windows: Int64Array, orders: Orders | None) -> Ordered:
        """The order of rows, which queries side by side often have in common; kept where there are `orders`."""
        known = None if orders is None else orders.get((group, len(keys)))
        if known is not None and np.array_equal(known.keys, keys) and np.array_equal(known.windows, windows):
            return known
        numbers, ranks, limit = self._ranks[group].of(keys)
        order, owners, found, counts = by_window(windows, keys, numbers, ranks, limit)
        runs = Runs(found, counts)
        if orders is not None and (len(orders) < _ORDERS or known is not None):  # the kernel drops its rows
            orders[group, len(keys)] = Ordered(keys.copy(), windows.copy(), order, owners, runs)
        return Ordered(keys, windows, order, owners, runs)

    def _grouped(
        self, query: CompiledQuery, runs: Runs, owners: npt.NDArray[np.int32], columns: list[Column]
    ) -> Closed:
        """Rows of partitions, in order, as rows of groups."""
        if len(query.group) < len(self.compiled.attributes):  # some partitions may be of one group
            numbers, ranks, _ = self._ranks[query.group].of(owners.astype(np.int64))
            starts = _group_starts(runs, ranks[numbers])
            if len(starts) < len(owners):
                columns = [
                    merged_runs(key, column, starts) for key, column in zip(query.layout.keys, columns, strict=True)
                ]
                owners = owners[starts]
                edges = np.searchsorted(starts, np.append(0, np.cumsum(runs.counts)))
                runs = Runs(runs.values, np.diff(edges))
        return Closed(runs, tuple(self.index.column(each, owners) for each in query.group), columns)

    def _drawn_for(self, place: int, part: int) -> Drained:
        """The rows of a kernel's query for one of those that it serves; kept for the others."""
        users = self.compiled.users_of[part]
        rows = self._waiting(part)
        if len(users) == 1:
            return rows
        if len(rows[0]):
            copied = rows[0].copy(), rows[1].copy(), rows[2].copy(), rows[3].copy(), rows[4]
            for user in users:
                self._drawn.setdefault((user, part), []).append(copied)
            self._drop([part])
        mine = self._drawn.pop((place, part), [])
        if len(mine) < 2:
            return mine[0] if mine else rows
        keys, windows, widths, words = (np.concatenate([each[column] for each in mine]) for column in range(4))
        return (
            keys,
            windows,
            widths,
            words,
            [below(columns) for columns in zip(*(each[4] for each in mine), strict=True)],
        )

    def _waiting(self, part: int) -> Drained:
        """The rows of one of the kernels' queries, until they are dropped."""
        drained = [kernel.rows(part) for kernel in self.kernels]
        sets = [self._sets(kernel, part) for kernel in self.kernels]
        if len(self.kernels) == 1:
            return *drained[0], sets[0]
        keys = np.concatenate([rows[0] * len(drained) + number for number, rows in enumerate(drained)])
        windows, widths, words = (np.concatenate([rows[column] for rows in drained]) for column in (1, 2, 3))
        return keys, windows, widths, words, [below(columns) for columns in zip(*sets, strict=True)]

    def _sets(self, kernel: AnyKernel, part: int) -> list[Column]:
        """The sets of values of the rows that a kernel has of one of its queries."""
        place, number = self.compiled.parts[part]
        query = self.compiled.queries[place]
        if not isinstance(kernel, Matching):
            return []
        tables, found = query.matching[number], list[Column]()
        if tables.sets:
            texts = self._strings.texts if any(each[4] for each in tables.sets) else None
            found += set_columns(tables.sets, *kernel.sets(part), texts)
        if tables.event_sets:
            keys = [key for key in query.layout_of(number).sets if key.kind == "events"]
            doubles = [query.types.get((str(k.variable), str(k.attribute))) is AttributeType.DOUBLE for k in keys]
            found += event_columns(doubles, *kernel.events(part))
        if tables.takings:
            found.append(kernel.marks(part))
        return found

    def _drop(self, parts: Sequence[int]) -> None:
        """Forget the rows that have been read."""
        for kernel in self.kernels:
            for part in parts:
                kernel.drop(part)

    def _side_by_side(
        self, place: int, query: CompiledQuery, parts: Sequence[int]
    ) -> tuple[Int64Array, Int64Array, list[Column]]:
        """The closed windows of a query whose components are computed apart: all parts have the same windows."""
        found: dict[ComponentKey, Column] = {}
        for layout, part in zip(query.sides, parts, strict=True):
            keys, windows, widths, words, sets = self._drawn_for(place, part)
            order = np.lexsort((windows, keys))
            columns = [*decoded(layout.cells, widths, words, order), *(taken(column, order) for column in sets)]
            found = dict(zip(layout.keys, columns, strict=True)) | found
            keys, windows = keys[order], windows[order]
        return keys, windows, [found[key] for key in query.layout.keys]

    def _pairs(
        self, place: int, query: CompiledQuery, parts: Sequence[int]
    ) -> tuple[Int64Array, Int64Array, list[Column]]:
        """The closed windows of a query over pairs of trends (AND), from those of its two sides and of both."""
        sides = []
        for part in parts:
            keys, windows, widths, words, sets = self._drawn_for(place, part)
            columns = [*decoded(query.layout.cells, widths, words, np.arange(len(keys))), *sets]
            found = [listed(column) for column in columns]
            sides.append(
                dict(zip(zip(keys.tolist(), windows.tolist(), strict=True), zip(*found, strict=True), strict=True))
            )
        rows: dict[tuple[int, int], list[Component]] = {}
        none = nothing(query.layout.keys)
        for where, one in sides[0].items():
            if where in sides[1]:
                pairs = paired(query.layout.keys, one, sides[1][where], sides[2].get(where, none))
                if has_trends(pairs[0]):
                    rows[where] = pairs
        pairs_at = np.array(list(rows), np.int64).reshape(-1, 2)
        lists = [list(column) for column in zip(*rows.values(), strict=True)] or [[] for _ in none]
        columns = [columned(key, column) for key, column in zip(query.layout.keys, lists, strict=True)]
        return np.ascontiguousarray(pairs_at[:, 0]), np.ascontiguousarray(pairs_at[:, 1]), columns


def _group_starts(runs: Runs, ranks: Int64Array) -> Int64Array:
    """The first row of each window and group, given the rank of each row."""
    fresh = np.append(True, ranks[1:] != ranks[:-1])[: len(ranks)]
    fresh[(np.cumsum(runs.counts) - runs.counts)] = True
    return np.nonzero(fresh)[0]
