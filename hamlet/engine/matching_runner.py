"""Runs one class of queries with the matching operator: events that only lie between others matter, too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.engine.class_runner import ClassRunner, Columns, RunnerState
from hamlet.engine.matching_bursts import BurstRecords
from hamlet.engine.sharing import Sharing
from hamlet.engine.workers import Workers
from hamlet.kernel.expression import Program
from hamlet.kernel.operators.matching.operator import Matching, hash_texts
from hamlet.language.query import AttributeType
from hamlet.memory.budget import Budget
from hamlet.planner.classify import FOREIGN, Signature
from hamlet.planner.compiled import CompiledClass, CompiledWorkload
from hamlet.planner.matching_tables import MatchingTables
from hamlet.planner.paths import EVERY, Paths
from hamlet.planner.unordered_rows import RANK


class MatchingRunner(ClassRunner):
    """One class of queries that the matching operator runs."""

    def __init__(
        self,
        compiled: CompiledClass,
        workload: CompiledWorkload,
        workers: Workers,
        sharing: Sharing,
        budget: Budget,
        paths: Paths = EVERY,
    ) -> None:
        self.matching = [compiled.matching_tables(number) for number in range(len(compiled.parts))]
        super().__init__(compiled, workload, workers, sharing, budget, paths)
        self._hashes = np.zeros(0, np.uint64)  # of strings, by number
        self._hashes_texts = any(each[2] and each[4] for tables in self.matching for each in tables.sets)
        self._passive: list[int] = []  # classes of events that only lie between others
        gaps = [tables.gap for tables in self.matching if tables.gap >= 0]
        self.gap, self.has_panes = min(gaps, default=None), len(gaps) < len(self.matching)
        self._bursts = BurstRecords(max(*gaps, self.pane) if gaps else self.pane) if sharing.trace else None
        if compiled.sees_all:
            self._stranger = self._add(None)

    def _made_kernels(
        self,
        floating: Sequence[int],  # noqa: ARG002
        sharing: Sharing,  # noqa: ARG002
        budget: Budget,
        paths: Paths,
    ) -> Sequence[Any]:
        apart = self.workload.schema.order_column == RANK
        ordered = self.compiled.listed if paths.uses("row_columns") else ()
        return [Matching(self.matching, budget, apart, ordered) for _ in range(self._workers.threads)]

    def _register(self, signature: Signature) -> int:
        return self._add(signature)

    def _add(self, signature: Signature | None) -> int:
        """Register what the operator sees of a signature, or of types that no query names."""
        entries = self.compiled.seen(signature)
        if not entries:
            return FOREIGN
        self._workers.settle()
        numbers: set[int] = {kernel.add_class(entries, 0) for kernel in self.kernels}
        assert len(numbers) == 1, "the kernels of a class register alike"
        number = numbers.pop()
        if self._bursts is not None:
            self._bursts.add_class(None if signature is None else signature.type, entries)
        if not any(arrivals or guards for _, arrivals, guards, _ in entries):
            self._passive.append(number)
        return number

    def _count(self, chosen: int, classes: npt.NDArray[Any], rows: npt.NDArray[np.int32] | None) -> int:
        if not self._passive:
            return chosen
        return chosen - int(np.isin(classes if rows is None else classes[rows], self._passive).sum())

    def _more(self) -> dict[str, Any]:
        """The hashes of all strings that have a number, where a query estimates how many there are."""
        if not self._hashes_texts:
            return {}
        strings = self.workload.strings
        if len(self._hashes) < len(strings):
            self._hashes = np.concatenate([self._hashes, hash_texts(strings.texts[len(self._hashes) :])])
        return {"hashes": self._hashes}

    def load(self, state: RunnerState) -> None:
        """Go on from a saved state; windows may close before an event comes."""
        super().load(state)
        for kernel in self.kernels:
            kernel.know_ranks(self.workload.strings.ranks)

    def _program(self, query: int, predicate: int) -> Program:
        return self.matching[query].predicates[predicate][0]

    def _process(self, kernel: Any, batch: pa.RecordBatch, *arguments: Any, **more: Any) -> None:
        if self._bursts is not None and kernel is self.kernels[0]:  # all kernels get the same events
            keys, times, _, classes, *_ = arguments
            rows = arguments[-3]
            self._bursts.watch(keys, *(each if rows is None else each[rows] for each in (times, classes)))
        super()._process(kernel, batch, *arguments, **more)

    def trace(self) -> list[pa.RecordBatch]:
        """Take the records of bursts since the last call."""
        if self._bursts is None:
            return []
        names = [[self.compiled.queries[place].name for place in users] for users in self.compiled.kept_by]
        return self._bursts.taken(lambda keys: self._key_texts(self.index.tuples(keys)), names)

    def _key_texts(self, keys: Sequence[tuple[Any, ...]]) -> list[str]:
        return [", ".join(map("{}={}".format, self.compiled.attributes, key)) for key in keys]

    def _widened(self, other: ClassRunner) -> list[Any]:
        assert isinstance(other, MatchingRunner)
        return [
            _widened(new, self.compiled.columns, old, other.compiled.columns)
            for new, old in zip(self.matching, other.matching, strict=True)
        ]


Kept = list[tuple[int, int]]


def _widened(
    new: MatchingTables, columns: Columns, old: MatchingTables, old_columns: Columns
) -> tuple[Kept, list[int], Kept, list[int], Kept]:
    """What turns from INT into DOUBLE.

    The (list, place) of what nodes keep, the exact sets of such values, the (traced variable, place) of what records
    keep, the things that trends are grouped by, and the (predicate, place) of what a log compares or adds up.
    """

    def widens(column: int, before: int) -> bool:
        types = old_columns[before][1], columns[column][1]
        return types == (AttributeType.INT, AttributeType.DOUBLE)

    kept = [
        (number, place)
        for (number, place, column), (_, _, before) in zip(new.kept(), old.kept(), strict=True)
        if widens(column, before)
    ]
    sets = [
        place
        for place, ((_, column, approximate, *_), (_, before, *_)) in enumerate(zip(new.sets, old.sets, strict=True))
        if not approximate and widens(column, before)
    ]
    records = [
        (number, place)
        for (number, place, column), (_, _, before) in zip(new.recorded(), old.recorded(), strict=True)
        if widens(column, before)
    ]
    taken = [
        place
        for place, ((*_, column, _, _, _), (*_, before, _, _, _)) in enumerate(
            zip(new.takings, old.takings, strict=True)
        )
        if column >= 0 and widens(column, before)
    ]
    compared = [
        (number, place)
        for (number, place, column), (_, _, before) in zip(new.compared_columns(), old.compared_columns(), strict=True)
        if widens(column, before)
    ]
    return kept, sets, records, taken, compared
