"""The sharing decisions of a run, from its trace (`hamlet.engine.trace`): sums over time, sets of queries, bursts.

A run can have millions of bursts, so their records are added up as they come and not kept: for every bin of time,
decision and set of queries that shared, and for every bin, type and decision the largest burst. Where only one query
had a use for a burst there was nothing to decide; such bursts are only counted. Source: HAMLET (SIGMOD'21) §4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.engine.trace import COUNTS
from hamlet.language.schema import Clock
from hamlet.pages.timeline import Bins

DECISIONS = ("shared", "merged", "split", "alone")
MOST_BINS = 150
MOST_BURSTS = 360
_MOST_SETS = 40
_COSTS = ("shared_cost", "non_shared_cost")
_SEPARATOR = "\x00"  # of the queries of a set, which have names without it

Record = tuple[Any, ...]  # pane, key, type, set, decision, counts, costs
Summed = tuple[int, str, str]  # bin, decision, set
Largest = dict[tuple[int, str, str], tuple[int, int, Record]]  # bin, type, decision -> b, place in the trace, record


class Decisions:
    """Adds up the records of a trace.

    Parameters
    ----------
    clock : Clock
        Of the stream, which the panes are ticks of.
    """

    def __init__(self, clock: Clock) -> None:
        self.bursts = 0
        self.single = 0  # bursts that one query had a use for
        self.bins = Bins(clock, MOST_BINS)
        self._pane = 0  # the length of panes, as far as their beginnings tell
        self._sums: dict[Summed, list[float]] = {}
        self._largest: Largest = {}
        self._first: list[Record] = []  # all of them, while they are few
        self._by_pane = False  # whether single bursts are shown in the order of their panes, not of the trace

    def add(self, records: pa.Table) -> None:
        """Take records of `hamlet.engine.trace.SCHEMA`, in their order."""
        priced = pc.is_valid(records.column("shared_cost"))  # the matching operator has nothing to decide
        several = records.filter(pc.and_(pc.greater(records.column("k"), 1), priced))
        self.single += records.num_rows - several.num_rows
        for batch in several.to_batches():
            if batch.num_rows:
                self._add(batch)

    def _add(self, batch: pa.RecordBatch) -> None:
        panes = batch.column("pane").to_numpy()
        joined = self.bins.cover(int(panes.min()), int(panes.max()))
        self._join(joined)
        self._pane = math.gcd(self._pane, int(np.gcd.reduce(panes)))
        bins = panes // self.bins.length
        sets = pc.fill_null(pc.binary_join(batch.column("queries"), _SEPARATOR), "")
        for key, more in _summed(bins, sets, batch):
            _add_up(self._sums, key, more)
        if self.bursts <= MOST_BURSTS:
            self._first += _records(batch, sets, range(min(batch.num_rows, MOST_BURSTS + 1)))
        self._keep_largest(bins, sets, batch)
        self.bursts += batch.num_rows

    def merge(self, other: Decisions) -> None:
        """Add what another part of the same run has decided; single bursts are in the order of their panes then."""
        joined, theirs = self.bins.merge(other.bins)
        self._join(joined)
        for (number, kind, name), values in other._sums.items():
            _add_up(self._sums, (number // theirs, kind, name), values)
        for key, (size, place, record) in _coarser(other._largest, theirs).items():
            burst = (size, self.bursts + place, record)
            self._largest[key] = max(self._largest.get(key, burst), burst, key=lambda each: (each[0], -each[1]))
        self._first = sorted([*self._first, *other._first], key=lambda record: record[0])[: MOST_BURSTS + 1]
        self._pane = math.gcd(self._pane, other._pane)
        self.bursts += other.bursts
        self.single += other.single
        self._by_pane = True

    def _join(self, joined: int) -> None:
        """Put so many neighbouring bins into one."""
        if joined > 1:
            before, self._sums = self._sums, {}
            for (number, kind, name), values in before.items():
                _add_up(self._sums, (number // joined, kind, name), values)
            self._largest = _coarser(self._largest, joined)

    def _keep_largest(self, bins: Any, sets: pa.Array, batch: pa.RecordBatch) -> None:
        """Keep the largest burst of every bin, type and decision."""
        types, kinds = (batch.column(name).dictionary_encode() for name in ("type", "decision"))
        codes = types.indices.to_numpy() * len(kinds.dictionary) + kinds.indices.to_numpy()
        sizes = batch.column("b").to_numpy()
        order = np.lexsort((-sizes, codes, bins))
        new = np.ones(len(order), bool)
        new[1:] = (np.diff(bins[order]) != 0) | (np.diff(codes[order]) != 0)
        rows = order[new].tolist()
        for row, record in zip(rows, _records(batch, sets, rows), strict=True):
            key, size = (int(bins[row]), record[2], record[4]), int(sizes[row])
            if key not in self._largest or self._largest[key][0] < size:
                self._largest[key] = (size, self.bursts + row, record)

    def shown(self) -> dict[str, Any] | None:
        """What the page draws; None without a burst.

        Returns
        -------
        dict or None
            ``first``, ``length``, ``bins``: of the bins, ticks and how many. ``kinds``: the decisions. ``sums``: lists
            of bin, decision, set of queries, bursts, events, snapshots created, benefit. ``sets``: names of queries;
            sums of the ``others`` have a number beyond. ``bursts``: single ones in order, lists of pane, key, type,
            set, decision, b, n, g, k, s_c, s_p, shared cost, non-shared cost, with keys and types by place in ``keys``
            and ``types``. ``standsFor``: the number of bursts in all; where there are more, the largest ones of their
            type, decision and bin are shown. ``single``: how many further bursts only one query had a use for.
        """
        if not self.bursts:
            return None
        while self.bins.length < self._pane and self.bins.count > 1:  # bursts stand where their panes begin
            self._join(self.bins.lengthen())
        bursts = self._first if self.bursts <= MOST_BURSTS else self._thinned()
        sets, others = self._ranked(bursts)
        kinds = [*DECISIONS, *sorted({kind for _, kind, _ in self._sums}.difference(DECISIONS))]
        sums: dict[tuple[int, int, int], list[float]] = {}
        for (number, kind, name), values in self._sums.items():
            _add_up(sums, (number - self.bins.first, kinds.index(kind), sets.get(name, len(sets))), values)
        keys, types = (list(dict.fromkeys(record[place] for record in bursts)) for place in (1, 2))
        return {
            "first": self.bins.first * self.bins.length,
            "length": self.bins.length,
            "bins": self.bins.count,
            "kinds": kinds,
            "sets": [name.split(_SEPARATOR) if name else [] for name in sets],
            "others": others,
            "sums": [[*key, *map(_short, values)] for key, values in sorted(sums.items())],
            "keys": keys,
            "types": types,
            "bursts": [
                [pane, keys.index(key), types.index(type), sets[name], kinds.index(kind), *numbers]
                for pane, key, type, name, kind, *numbers in bursts
            ],
            "standsFor": self.bursts,
            "single": self.single,
        }

    def _ranked(self, bursts: Iterable[Record]) -> tuple[dict[str, int], int]:
        """Numbers for the sets of queries that shared most events and those of single bursts; how many others."""
        events: dict[str, float] = {}
        for (_, _, name), values in self._sums.items():
            events[name] = events.get(name, 0) + values[1]
        ranked = sorted(events, key=lambda name: (-events[name], name))[:_MOST_SETS]
        names = dict.fromkeys([*ranked, *(record[3] for record in bursts)])
        return {name: number for number, name in enumerate(names)}, len(events) - len(names)

    def _thinned(self) -> list[Record]:
        """The largest bursts in the order of the trace; neighbouring bins are put together where they are too many."""
        joined, kept = 1, self._largest
        while len(kept) > MOST_BURSTS:
            joined += 1
            kept = _coarser(self._largest, joined)
        order = sorted(kept.values(), key=lambda burst: (burst[2][0] if self._by_pane else 0, burst[1]))
        return [record for _, _, record in order]


def _coarser(largest: Largest, joined: int) -> Largest:
    """The largest bursts of bins that many bins make."""
    kept: Largest = {}
    for (number, type, kind), burst in largest.items():
        key = (number // joined, type, kind)
        if key not in kept or (kept[key][0], -kept[key][1]) < (burst[0], -burst[1]):
            kept[key] = burst
    return kept


def _add_up(sums: dict[Any, list[float]], key: tuple[Any, ...], values: Sequence[float]) -> None:
    before = sums.setdefault(key, [0] * len(values))
    before[:] = [one + more for one, more in zip(before, values, strict=True)]


def _summed(bins: Any, sets: pa.Array, batch: pa.RecordBatch) -> Iterable[tuple[Summed, Sequence[float]]]:
    """Bursts, events, snapshots created and benefit by bin, decision and set of queries."""
    benefit = pc.subtract(batch.column("non_shared_cost"), batch.column("shared_cost"))
    created = pc.if_else(pc.equal(sets, ""), 0, batch.column("s_c"))  # the model counts them where nobody shares too
    table = pa.table(
        [pa.array(bins), batch.column("decision"), sets, batch.column("b"), created, benefit],
        names=["bin", "decision", "set", "b", "created", "benefit"],
    )
    found = table.group_by(["bin", "decision", "set"]).aggregate(
        [("b", "count"), ("b", "sum"), ("created", "sum"), ("benefit", "sum")]
    )
    names = ("bin", "decision", "set", "b_count", "b_sum", "created_sum", "benefit_sum")
    for number, kind, name, *values in zip(*(found.column(name).to_pylist() for name in names), strict=True):
        yield (number, kind, name), values


def _records(batch: pa.RecordBatch, sets: pa.Array, rows: Iterable[int]) -> list[Record]:
    chosen = pa.array(rows, pa.int64())
    columns = [batch.column(name).take(chosen).to_pylist() for name in ("pane", "key", "type")]
    columns += [sets.take(chosen).to_pylist(), batch.column("decision").take(chosen).to_pylist()]
    columns += [batch.column(name).take(chosen).to_pylist() for name in COUNTS]
    columns += [[*map(_short, batch.column(name).take(chosen).to_pylist())] for name in _COSTS]
    return [*zip(*columns, strict=True)]


def _short(value: float) -> float:
    """A number of at most six digits."""
    return value if isinstance(value, int) else float(f"{value:.6g}")
