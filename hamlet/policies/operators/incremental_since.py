"""SINCE and UNTIL where little changes: what is alive, or undecided, stands in a store and is looked up.

Served are ONCE and EVENTUALLY, and a SINCE whose left side is negated: there few rows of the left side end few of those
that are alive. All else goes through everything, batch by batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hamlet.arrays import np
from hamlet.policies.relations._sweep import group
from hamlet.policies.relations.indexed_store import Store, is_small
from hamlet.policies.relations.relation import Ints, Relation, coalesce, concat, empty, having, split_rows

if TYPE_CHECKING:
    from hamlet.policies.operators.node import Timeline
    from hamlet.policies.operators.temporal import Since, Until


class _Stored:
    """Rows in a store, once there are few that change."""

    _store: Store | None

    @property
    def rows(self) -> int:
        """Rows that are there."""
        return 0 if self._store is None else self._store.live

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return 0 if self._store is None else self._store.nbytes

    @property
    def steps(self) -> int:
        """The work that was done with the store."""
        return 0 if self._store is None else self._store.steps


class IncrementalSince(_Stored):
    """What is alive of a SINCE: valuations, from what time on and until what time, and since which time-point.

    Parameters
    ----------
    node : Since
    """

    def __init__(self, node: Since) -> None:
        self._node = node
        self._store: Store | None = None
        self._aside = empty(node.width)  # of the last batch what was not looked up, since the left side touched it
        self._fresh: list[Relation] = []  # valuations that came with the last batch: older pieces of them may go
        self._back = empty(node.width + 2)  # what the left side touched and left alive
        self._line: Timeline | None = None
        self._window = (0, 0)
        self._now = 0

    def serves(self, low: int, batch: Sequence[Relation]) -> bool:  # noqa: ARG002
        """Whether a batch is so small that what is alive need not be gone through."""
        kept = len(self._node.kept["alive"]) if self._store is None else self._store.live
        served = len(batch) == 1 or self._node.negated
        return served and is_small(sum(map(len, batch)), kept)

    def step(self, line: Timeline, low: int, high: int, batch: Sequence[Relation]) -> None:
        """Take a batch."""
        node, width = self._node, self._node.width
        store = self._store
        if store is None:
            alive = node.kept["alive"]
            store = self._store = Store([*alive.columns, alive.first])
            node.kept["alive"] = empty(width + 2)
        else:
            self._tidy(store)
        store.expire(width + 1, int(line.times[low - line.base]))
        self._line, self._window = line, (low, high)
        self._now = int(line.times[high - 1 - line.base])
        right = batch[0]
        if len(batch) > 1 and len(batch[1]):
            right = self._touched(store, low, high, right, batch[1])
        pieces = node.pieces(line, split_rows(right, node.cuts(line, low, high)))
        pieces = pieces.take(np.argsort(pieces.columns[width + 1], kind="stable"))
        store.insert([*pieces.columns, pieces.first])
        if len(pieces):
            self._fresh.append(Relation(pieces.columns[:width], pieces.first, pieces.first))

    def _touched(self, store: Store, low: int, high: int, right: Relation, left: Relation) -> Relation:
        """Sweep what the left side touches; the other rows of the right side."""
        node, width = self._node, self._node.width
        assert self._line is not None
        _, heads = group(left.columns, len(left))
        keys = [column[heads] for column in left.columns]
        places = store.find(node.key, keys, len(heads))
        columns = store.take(places)
        store.drop(places)
        mine = having(right, node.key, keys, len(heads))
        alive = Relation(columns[: width + 2], columns[width + 2], columns[width + 2])
        self._aside, self._back = node.swept(self._line, low, high, [right.take(mine), left], alive)
        return right.take(~mine)

    def _tidy(self, store: Store) -> None:
        """End the last batch: of the pieces of a valuation that count already the one that counts longest stays."""
        node, width = self._node, self._node.width
        self._aside = empty(width)
        if self._fresh:
            fresh, self._fresh = concat(self._fresh, width), []
            _, heads = group(fresh.columns, len(fresh))
            every = tuple(range(width))
            places = store.find(every, [column[heads] for column in fresh.columns], len(heads))
            if len(places) > len(heads):
                columns = store.take(places)
                store.drop(places)
                rows = Relation(columns[: width + 2], columns[width + 2], columns[width + 2])
                last = self._window[1]
                kept = node.collapsed(rows.take(rows.columns[width + 1] >= self._now), self._now, last)
                store.insert([*kept.columns, kept.first])
        if len(self._back):
            store.insert([*self._back.columns, self._back.first])
            self._back = empty(width + 2)

    def settle(self) -> None:
        """Give everything back to the node."""
        store = self._store
        if store is None:
            return
        width = self._node.width
        self._tidy(store)
        columns = store.everything()
        rows = Relation(columns[: width + 2], columns[width + 2], columns[width + 2])
        self._node.kept["alive"] = rows.take(columns[width + 1] >= self._now)
        self._store = None

    def matching(self, on: tuple[int, ...], keys: Sequence[Ints], count: int) -> Relation:
        """The rows of the last batch whose columns `on` are one of some keys."""
        assert self._store is not None
        rows = self._shown(self._store.take(self._store.find(on, keys, count)))
        if not len(self._aside):
            return rows
        aside = self._aside.take(having(self._aside, on, keys, count))
        return coalesce(concat([rows, aside], self._node.width))

    def everything(self) -> Relation:
        """All rows of the last batch."""
        assert self._store is not None
        rows = self._shown(self._store.everything())
        return coalesce(concat([rows, self._aside], self._node.width))

    def _shown(self, columns: Sequence[Ints]) -> Relation:
        width, (low, high) = self._node.width, self._window
        line = self._line
        assert line is not None
        begin = np.maximum(np.maximum(columns[width + 2], low), line.first_at_least(columns[width]))
        end = np.minimum(high - 1, line.last_at_most(columns[width + 1]))
        good = begin <= end
        return coalesce(Relation([column[good] for column in columns[:width]], begin[good], end[good]))


class IncrementalUntil(_Stored):
    """What of an EVENTUALLY holds at undecided time-points: valuations and periods.

    Parameters
    ----------
    node : Until
    """

    def __init__(self, node: Until) -> None:
        self._node = node
        self._store: Store | None = None
        self._window = (0, 0)

    def serves(self, batch: Sequence[Relation]) -> bool:
        """Whether a batch is so small that what is undecided need not be gone through."""
        kept = len(self._node.kept["undecided"]) if self._store is None else self._store.live
        return len(batch) == 1 and is_small(len(batch[0]), kept)

    def step(self, found: Relation, before: int, done: int) -> None:
        """Take what a batch adds; time-points from `before` on and before `done` are decided with it."""
        node, width = self._node, self._node.width
        store = self._store
        if store is None:
            rows = node.kept["undecided"]
            rows = rows.take(np.argsort(rows.last, kind="stable"))
            store = self._store = Store([*rows.columns, rows.first, rows.last])
            node.kept["undecided"] = empty(width)
        store.expire(width + 1, before)
        self._window = before, done
        if not len(found):
            return
        _, heads = group(found.columns, len(found))
        places = store.find(tuple(range(width)), [column[heads] for column in found.columns], len(heads))
        *columns, first, last = store.take(places)
        store.drop(places)
        merged = coalesce(concat([Relation(columns, first, last), found], width))
        merged = merged.take(np.argsort(merged.last, kind="stable"))
        store.insert([*merged.columns, merged.first, merged.last])

    def settle(self) -> None:
        """Give everything that is still undecided back to the node."""
        store = self._store
        if store is None:
            return
        *columns, first, last = store.everything()
        done = self._node.done
        rows = Relation(columns, np.maximum(first, done), last)
        self._node.kept["undecided"] = rows.take(last >= done)
        self._store = None

    def matching(self, on: tuple[int, ...], keys: Sequence[Ints], count: int) -> Relation:
        """The rows of the last batch whose columns `on` are one of some keys."""
        assert self._store is not None
        return self._shown(self._store.take(self._store.find(on, keys, count)))

    def everything(self) -> Relation:
        """All rows of the last batch."""
        assert self._store is not None
        return self._shown(self._store.everything())

    def _shown(self, found: Sequence[Ints]) -> Relation:
        *columns, first, last = found
        low, high = self._window
        inside = (last >= low) & (first < high) & (low < high)
        part = Relation([column[inside] for column in columns], first[inside], last[inside])
        return Relation(part.columns, np.maximum(part.first, low), np.minimum(part.last, high - 1))
