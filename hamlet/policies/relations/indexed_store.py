"""What operators keep where little changes from batch to batch: rows that are looked up, and never gone through.

A batch that is large beside what is kept goes through all of it, in columns. Where batches are small, the rows stand in
a `Store`: new ones are put in, those of some values are found by an index, and those that are over are dropped as time
goes on, so that a batch costs what changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeVar

from hamlet.arrays import np, npt
from hamlet.policies.relations._sweep import Index
from hamlet.policies.relations.relation import Ints, Relation, coalesce, concat, empty

LEAST = 1 << 10  # rows below which going through all of them is as good
SHARE = 8  # a batch of more than this part of what is kept goes through all of it
_PIECE = 1 << 10
_N = TypeVar("_N", "np.int64", "np.uint8")


def is_small(fresh: int, kept: int) -> bool:
    """Whether a batch is so small beside what is kept that looking up is better than going through all."""
    return kept >= LEAST and fresh * SHARE <= kept


class Store:
    """Rows of integers, found by the values of any columns.

    Parameters
    ----------
    columns : sequence of int64 arrays of shape (rows,)

    Attributes
    ----------
    live : int
        Rows that have not been dropped.
    work : int
        Rows that were put in, dropped or copied so far.
    """

    def __init__(self, columns: Sequence[Ints]) -> None:
        rows = len(columns[0])
        room = max(64, 2 * rows)
        self._columns = [np.empty(room, np.int64) for _ in columns]
        self._alive = np.zeros(room, np.uint8)
        self._count = self._front = self.live = 0
        self._indexes: dict[tuple[int, ...], Index] = {}
        self._forgotten = 0  # steps of indexes that are gone
        self.work = 0
        self.insert(columns)

    @property
    def steps(self) -> int:
        """The work that was done, in rows and links."""
        return self.work + self._forgotten + sum(each.steps for each in self._indexes.values())

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        held = sum(column.nbytes for column in self._columns) + self._alive.nbytes
        return int(held + sum(each.nbytes for each in self._indexes.values()))

    def insert(self, columns: Sequence[Ints]) -> None:
        """Put in rows."""
        rows = len(columns[0])
        end = self._count + rows
        if end > len(self._alive):
            room = max(end, 2 * len(self._alive))
            self._columns = [_grown(column, room, self._count) for column in self._columns]
            self._alive = _grown(self._alive, room, self._count)
            self.work += self._count
        for column, fresh in zip(self._columns, columns, strict=True):
            column[self._count : end] = fresh
        self._alive[self._count : end] = 1
        self._count = end
        self.live += rows
        self.work += rows

    def find(self, on: tuple[int, ...], keys: Sequence[Ints], count: int) -> Ints:
        """The places of rows whose columns `on` equal one of `count` keys, which differ."""
        index = self._indexes.get(on)
        if index is None:
            index = self._indexes[on] = Index()
        columns = [self._columns[place] for place in on]
        index.add(columns, self._count)
        contiguous = [np.ascontiguousarray(key) for key in keys]
        return index.find(contiguous, columns, self._alive, count)[1]

    def take(self, rows: Ints) -> list[Ints]:
        """The columns of some rows."""
        return [column[rows] for column in self._columns]

    def drop(self, rows: Ints) -> None:
        """Forget rows, which live."""
        self._alive[rows] = 0
        self.live -= len(rows)
        self.work += len(rows)

    def expire(self, place: int, below: int) -> None:
        """Forget the first rows whose value in a column is below; those behind a larger one wait for it."""
        values = self._columns[place]
        while self._front < self._count:
            end = min(self._front + _PIECE, self._count)
            part = slice(self._front, end)
            stays = np.flatnonzero((self._alive[part] == 1) & (values[part] >= below))
            gone = int(stays[0]) if len(stays) else end - self._front
            self.live -= int(self._alive[self._front : self._front + gone].sum())
            self._alive[self._front : self._front + gone] = 0
            self._front += gone
            self.work += gone + 1
            if len(stays):
                break
        if self._count > _PIECE and self.live * 2 < self._count:
            self._compact()

    def _compact(self) -> None:
        """Let go of the rows that were dropped."""
        columns = self.everything()
        self._forgotten += sum(each.steps for each in self._indexes.values())
        self._indexes = {}
        room = max(64, 2 * self.live)
        self._columns = [np.empty(room, np.int64) for _ in columns]
        self._alive = np.zeros(room, np.uint8)
        self._count = self._front = self.live = 0
        self.insert(columns)

    def everything(self) -> list[Ints]:
        """The columns of all rows that live."""
        rows = np.flatnonzero(self._alive[: self._count])
        self.work += self._count
        return [column[rows] for column in self._columns]


def _grown(column: npt.NDArray[_N], room: int, count: int) -> npt.NDArray[_N]:
    fresh: npt.NDArray[_N] = np.zeros(room, column.dtype)
    fresh[:count] = column[:count]
    return fresh


class Pending:
    """Rows of a child at time-points that other children have not decided yet, in the order of time.

    Parameters
    ----------
    width : int
    rows : Relation, optional
        The first ones.
    """

    def __init__(self, width: int, rows: Relation | None = None) -> None:
        self._width = width
        self._parts: deque[Relation] = deque()  # each in the order of `first`
        if rows is not None:
            self.add(rows)

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __bool__(self) -> bool:
        return bool(self._parts)

    def add(self, rows: Relation) -> None:
        """Rows at time-points behind all before."""
        if len(rows):
            in_order = len(rows) < 2 or bool((np.diff(rows.first) >= 0).all())
            self._parts.append(rows if in_order else rows.take(np.argsort(rows.first, kind="stable")))

    def take(self, until: int) -> Relation:
        """The rows at time-points before one; they are gone then."""
        found: list[Relation] = []
        rest: list[Relation] = []
        while self._parts and int(self._parts[0].first[0]) < until:
            part = self._parts.popleft()
            cut = int(np.searchsorted(part.first, until))
            if cut < len(part):
                self._parts.appendleft(part.cut(cut, len(part)))
                part = part.cut(0, cut)
            found.append(part.clip(0, until))
            over = part.last >= until
            if over.any():
                late = part.take(over)
                rest.append(Relation(late.columns, np.full(len(late), until, np.int64), late.last))
        if rest:
            self._parts.appendleft(concat(rest, self._width))
        return concat(found, self._width)

    def whole(self) -> Relation:
        """All rows."""
        return coalesce(concat(list(self._parts), self._width)) if self._parts else empty(self._width)

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return sum(each.nbytes for each in self._parts)
