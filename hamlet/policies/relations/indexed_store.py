"""What operators keep where little changes from batch to batch: rows that are looked up, and never gone through.

A batch that is large beside what is kept goes through all of it, in columns. Where batches are small, the rows stand in
a `Store`: new ones are put in, those of some values are found by an index, and those that are over are dropped as time
goes on, so that a batch costs what changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from hamlet.arrays import np
from hamlet.policies.relations._sweep import Index
from hamlet.policies.relations.relation import Ints, Relation, coalesce, concat, empty

LEAST = 1 << 10  # rows below which going through all of them is as good
SHARE = 8  # a batch of more than this part of what is kept goes through all of it
_PIECE = 1 << 10
_ROOM = 1 << 12  # rows that a segment has room for at least
_MOST = 6  # segments: each is looked into
_DEAD = 4  # rows in segments for each that lives, from which on they are copied


def is_small(fresh: int, kept: int) -> bool:
    """Whether a batch is so small beside what is kept that looking up is better than going through all."""
    return kept >= LEAST and fresh * SHARE <= kept


class Store:
    """Rows of integers, found by the values of any columns.

    Rows come into segments, each with indexes of its own, as large as what lives when it is opened. So rows that are
    over in the order in which they came are gone with their segment, none is copied, and no batch pays for all.

    Parameters
    ----------
    columns : sequence of int64 arrays of shape (rows,)

    Attributes
    ----------
    live : int
        Rows that have not been dropped.
    """

    def __init__(self, columns: Sequence[Ints]) -> None:
        self._width = len(columns)
        self._segments: list[_Segment] = []
        self._begun = 0  # rows that earlier segments have room for
        self._past = 0  # the work that was done with segments that are gone
        self.live = 0
        self._open(2 * len(columns[0]))
        self.insert(columns)

    @property
    def steps(self) -> int:
        """The work that was done: rows put in, dropped or copied, and links that were followed."""
        return self._past + sum(each.steps for each in self._segments)

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return sum(each.nbytes for each in self._segments)

    def insert(self, columns: Sequence[Ints]) -> None:
        """Put in rows."""
        rows, begin = len(columns[0]), 0
        while begin < rows:
            if not self._segments[-1].free:
                self._open(max(self.live, rows - begin))
            end = min(rows, begin + self._segments[-1].free)
            self._segments[-1].insert([column[begin:end] for column in columns])
            self.live += end - begin
            begin = end

    def _open(self, room: int) -> None:
        """Begin another segment; where there are many, the oldest two become one."""
        while len(self._segments) >= _MOST:
            self._merge(self._segments[:2])
        self._segments.append(_Segment(self._width, max(room, _ROOM), self._begun))
        self._begun += self._segments[-1].room

    def _merge(self, segments: Sequence[_Segment]) -> None:
        """Let neighbours be one segment, of their rows that live."""
        at = self._segments.index(segments[0])
        columns = [np.concatenate(each) for each in zip(*(segment.everything() for segment in segments), strict=True)]
        self._past += sum(each.steps for each in segments)
        merged = _Segment(self._width, max(len(columns[0]), _ROOM), segments[0].base)
        merged.insert(columns)
        self._segments[at : at + len(segments)] = [merged]

    def find(self, on: tuple[int, ...], keys: Sequence[Ints], count: int) -> Ints:
        """The places of rows whose columns `on` equal one of `count` keys, which differ."""
        contiguous = [np.ascontiguousarray(key) for key in keys]
        return np.concatenate([each.base + each.find(on, contiguous, count) for each in self._segments])

    def take(self, rows: Ints) -> list[Ints]:
        """The columns of some rows, as `find` gives them."""
        parts = [each.take(part) for each, part in self._parts(rows)]
        return parts[0] if len(parts) == 1 else [np.concatenate(each) for each in zip(*parts, strict=True)]

    def drop(self, rows: Ints) -> None:
        """Forget rows, as `find` gives them, which live."""
        for each, part in self._parts(rows):
            each.drop(part)
        self.live -= len(rows)

    def _parts(self, rows: Ints) -> list[tuple[_Segment, Ints]]:
        """Rows by their segments, with their places there."""
        ends = np.searchsorted(rows, [each.base for each in self._segments[1:]]) if len(self._segments) > 1 else ()
        bounds = [0, *map(int, ends), len(rows)]
        return [
            (each, rows[low:high] - each.base)
            for each, low, high in zip(self._segments, bounds, bounds[1:], strict=False)
        ]

    def expire(self, place: int, below: int) -> None:
        """Forget the first rows whose value in a column is below; those behind a larger one wait for it."""
        for each in self._segments:
            self.live -= each.expire(place, below)
            if not each.is_over:
                break
        *full, last = self._segments
        self._past += sum(each.steps for each in full if not each.live)
        self._segments = [*(each for each in full if each.live), last]
        if sum(each.count for each in self._segments) > max(_ROOM, _DEAD * self.live):
            self._merge(self._segments)
            self._begun = self._segments[0].base + self._segments[0].room

    def everything(self) -> list[Ints]:
        """The columns of all rows that live."""
        return [np.concatenate(each) for each in zip(*(each.everything() for each in self._segments), strict=True)]


class _Segment:
    """Rows that came one after the other.

    Parameters
    ----------
    width, room : int
        Columns, and rows that it may get.
    base : int
        The place of the first row among those of the store.

    Attributes
    ----------
    count, live : int
        Rows that came, and those of them that have not been dropped.
    """

    def __init__(self, width: int, room: int, base: int) -> None:
        self.base, self.room = base, room
        self._columns = [np.empty(room, np.int64) for _ in range(width)]
        self._alive = np.zeros(room, np.uint8)
        self.count = self._front = self.live = 0
        self._indexes: dict[tuple[int, ...], Index] = {}
        self._work = 0

    @property
    def free(self) -> int:
        """Rows that there is room for."""
        return self.room - self.count

    @property
    def is_over(self) -> bool:
        """Whether no row has been left by `expire`."""
        return self._front == self.count

    @property
    def steps(self) -> int:
        """As of the store."""
        return self._work + sum(each.steps for each in self._indexes.values())

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        held = sum(column.nbytes for column in self._columns) + self._alive.nbytes
        return int(held + sum(each.nbytes for each in self._indexes.values()))

    def insert(self, columns: Sequence[Ints]) -> None:
        """Put in rows, which there is room for."""
        rows = len(columns[0])
        part = slice(self.count, self.count + rows)
        for column, fresh in zip(self._columns, columns, strict=True):
            column[part] = fresh
        self._alive[part] = 1
        self.count += rows
        self.live += rows
        self._work += rows

    def find(self, on: tuple[int, ...], keys: list[Ints], count: int) -> Ints:
        """The places of rows whose columns `on` equal one of `count` keys."""
        index = self._indexes.get(on)
        if index is None:
            index = self._indexes[on] = Index(self.room)
        columns = [self._columns[place] for place in on]
        index.add(columns, self.count)
        return index.find(keys, columns, self._alive, count)[1]

    def take(self, rows: Ints) -> list[Ints]:
        """The columns of some rows."""
        return [column[rows] for column in self._columns]

    def drop(self, rows: Ints) -> None:
        """Forget rows, which live."""
        self._alive[rows] = 0
        self.live -= len(rows)
        self._work += len(rows)

    def expire(self, place: int, below: int) -> int:
        """Forget the first rows whose value in a column is below; gives how many lived."""
        values, before = self._columns[place], self.live
        while self._front < self.count:
            part = slice(self._front, min(self._front + _PIECE, self.count))
            stays = np.flatnonzero((self._alive[part] == 1) & (values[part] >= below))
            gone = int(stays[0]) if len(stays) else part.stop - part.start
            self.live -= int(self._alive[self._front : self._front + gone].sum())
            self._alive[self._front : self._front + gone] = 0
            self._front += gone
            self._work += gone + 1
            if len(stays):
                break
        return before - self.live

    def everything(self) -> list[Ints]:
        """The columns of the rows that live."""
        rows = np.flatnonzero(self._alive[: self.count])
        self._work += self.count
        return [column[rows] for column in self._columns]


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
