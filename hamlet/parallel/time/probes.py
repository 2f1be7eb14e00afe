"""The matrix of a chunk: one probe per entry of the vector, run by a kernel as queries of one endless window.

All probes of a query accept the same events, so they share the coefficients of every burst (HAMLET §3): the kernel
computes a chunk's map for little more than its counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from hamlet.engine.class_runner import ClassRunner
from hamlet.engine.keys import Key
from hamlet.engine.sharing import Sharing
from hamlet.engine.workers import Workers
from hamlet.input.columns import BatchColumns, Int64Array
from hamlet.language.query import AttributeType
from hamlet.memory.budget import Budget
from hamlet.output.components import decoded, listed
from hamlet.planner.aggregates import merged
from hamlet.planner.classify import Coded
from hamlet.planner.compiled import CompiledClass, CompiledQuery, CompiledWorkload
from hamlet.planner.coordinates import SHIFT, Coordinates, Sums, coordinates, probe
from hamlet.planner.paths import EVERY, Paths

Entries = dict[tuple[int, int], Sums]  # (row, column) of a matrix -> what stands there; nothing elsewhere

_SEED = "\0"  # no event type is called so


def coordinates_of(compiled: CompiledClass) -> list[Coordinates]:
    """The entries of the vectors of a class, one per query of its kernel."""
    return [
        coordinates(compiled.tables(number), compiled.queries[place].layout.keys)
        for number, (place, _) in enumerate(compiled.parts)
    ]


def exported_sums(runner: ClassRunner, query: int, place: int) -> list[tuple[Key, int, Sums]]:
    """What stands in one place of a kernel's query: keys, windows, sums.

    Parameters
    ----------
    runner : ClassRunner
        With one kernel.
    query, place : int
        As for `Kernel.exported`.
    """
    (kernel,) = runner.kernels
    keys, windows, widths, words = kernel.exported(query, place)
    if not len(keys):
        return []
    layout = runner.compiled.queries[runner.compiled.parts[query][0]].layout
    columns = decoded(layout, widths, words, np.arange(len(keys)))
    lists = map(listed, columns)
    found = list(zip(runner.index.tuples(keys), windows.tolist(), map(list, zip(*lists, strict=True)), strict=True))
    kernel.drop(query)
    return found


class Probes(ClassRunner):
    """The maps of a class of queries over a chunk, from its first event on.

    Parameters
    ----------
    compiled : CompiledClass
        One that `hamlet.planner.coordinates.refusal` accepts.
    workload : CompiledWorkload
        What the class is of.
    sharing : Sharing
    budget : Budget
    paths : Paths
    """

    def __init__(
        self,
        compiled: CompiledClass,
        workload: CompiledWorkload,
        sharing: Sharing,
        budget: Budget,
        paths: Paths = EVERY,
    ) -> None:
        self.of = coordinates_of(compiled)
        sizes = [each.size for each in self.of]
        self._first = np.cumsum([0, *sizes]).tolist()  # of a query of the class: its first probe
        numbers = iter(self.of)
        queries = tuple(_probing(query, numbers) for query in compiled.queries)
        super().__init__(replace(compiled, queries=queries), workload, Workers(1), sharing, budget, paths)
        self._seeded = 0
        type = self._types.setdefault(_SEED, len(self._types))
        seeds: list[tuple[int, list[int], list[int], int]] = [
            (number, [len(tables.arrivals) - 1], [], -1) for number, tables in enumerate(self.tables)
        ]
        self._seed = self.kernels[0].add_class(seeds, type)

    def times(self, batch: BatchColumns) -> Int64Array:
        """The time of each row, moved into the endless window."""
        return super().times(batch) + SHIFT

    def jobs(self, batch: BatchColumns, coded: Coded, until: int, distinct: bool = False) -> list[Callable[[], None]]:
        """What the kernel has to do for a batch: before the first event of a partition comes its seed.

        No event before `until` will follow, on the clock of `times`.
        """
        found = super().jobs(batch, coded, until, distinct)
        fresh = np.arange(self._seeded, self.index.size)
        if not len(fresh):
            return found
        self._seeded = self.index.size
        return [partial(self._sow, fresh, int(self.times(batch)[0]) - 1), *found]

    def _sow(self, keys: Int64Array, time: int) -> None:
        rows = len(keys)
        columns = [
            (np.zeros(rows, np.float64 if type is AttributeType.DOUBLE else np.int64), None)
            for _, type in self.compiled.columns
        ]
        orders = None if self.workload.schema.order_column is None else np.zeros(rows, np.int64)
        classes = np.full(rows, self._seed, np.int32)
        ranks = self.workload.strings.ranks
        self.kernels[0].process(keys, np.full(rows, time), orders, classes, columns, ranks, self.index.size)

    @property
    def known(self) -> list[Key]:
        """The partitions that have had an event; the map of the others is the identity."""
        return self.index.tuples(np.arange(self._seeded))

    def matrices(self, part: int) -> dict[Key, Entries]:
        """The map of all events so far for one query of the class, by partition."""
        return self._read(part, range(self.of[part].size))

    def final_sums(self, part: int) -> dict[Key, Entries]:
        """The map of all events so far, final columns added up as column 0: what a window has that ends here."""
        found = self._read(part, dict.fromkeys(self.of[part].finals))
        keys = self.of[part].keys
        for key, entries in found.items():
            sums: Entries = {}
            for (row, _), each in entries.items():
                sums[row, 0] = merged(keys, sums[row, 0], each) if (row, 0) in sums else each
            found[key] = sums
        return found

    def _read(self, part: int, columns: range | dict[int, None]) -> dict[Key, Entries]:
        found: dict[Key, Entries] = {key: {} for key in self.known}
        for row in range(self.of[part].size):
            number = self._first[part] + row
            for column in columns:
                for key, _, sums in exported_sums(self, number, column):
                    found[key][row, column] = sums
        return found


def _probing(query: CompiledQuery, numbers: Iterator[Coordinates]) -> CompiledQuery:
    """A query with a table for each of its probes."""
    if query.like is not None:
        return query
    found = [(template, tables, next(numbers)) for template, tables in zip(query.templates, query.tables, strict=True)]
    return replace(
        query,
        templates=tuple(template for template, _, of in found for _ in range(of.size)),
        tables=tuple(probe(tables, of, entry) for _, tables, of in found for entry in range(of.size)),
    )
