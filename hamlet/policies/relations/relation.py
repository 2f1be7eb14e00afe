"""Relations as periods: a valuation, and the first and the last time-point at which it belongs to the relation.

Contract
--------
**Columns** are int64 codes (`values`), one array per variable; `first` and `last` are time-points.
**Disjoint**: the periods of one valuation do not overlap. Every function that may break this ends in `coalesce`.
**Unordered**: rows come in no order; what needs one sorts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from hamlet.arrays import np, npt
from hamlet.policies.relations._sweep import difference, group, joined, overlaps

Ints: TypeAlias = "npt.NDArray[np.int64]"
_ALWAYS = 16 << 20  # bytes that one relation may take while it is made, whatever the limit
_room: ContextVar[int | None] = ContextVar("room", default=None)


class TooManyRowsError(Exception):
    """A relation would take more than there is room for; its argument is how many rows were possible."""


@contextmanager
def room(limit: int | None) -> Iterator[None]:
    """The bytes that one relation may take while it is made; None for no limit."""
    token = _room.set(limit)
    try:
        yield
    finally:
        _room.reset(token)


@dataclass(slots=True)
class Relation:
    """Valuations with their periods.

    Attributes
    ----------
    columns : list of int64 arrays of shape (rows,)
    first, last : int64 arrays of shape (rows,)
        Time-points; ``first <= last``.
    """

    columns: list[Ints]
    first: Ints
    last: Ints

    def __len__(self) -> int:
        return len(self.first)

    def take(self, rows: npt.NDArray[np.bool_] | Ints) -> Relation:
        """Some of the rows."""
        return Relation([column[rows] for column in self.columns], self.first[rows], self.last[rows])

    def cut(self, begin: int, end: int) -> Relation:
        """The rows from one on and before another, without copies."""
        part = slice(begin, end)
        return Relation([column[part] for column in self.columns], self.first[part], self.last[part])

    def select(self, columns: Sequence[int]) -> Relation:
        """Some of the columns; periods may overlap then."""
        return Relation([self.columns[place] for place in columns], self.first, self.last)

    def clip(self, low: int, high: int) -> Relation:
        """What lies at time-points ``low <= i < high``."""
        if not len(self) or (int(self.first.min()) >= low and int(self.last.max()) < high):
            return self
        inside = (self.last >= low) & (self.first < high)
        part = self if inside.all() else self.take(inside)
        return Relation(part.columns, np.maximum(part.first, low), np.minimum(part.last, high - 1))

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.first.nbytes * (2 + len(self.columns))


class _Nothing(Relation):
    """No rows; its arrays are made when somebody asks for them."""

    __slots__ = ("_width",)

    def __init__(self, width: int) -> None:
        self._width = width

    def __len__(self) -> int:
        return 0

    def __getattr__(self, name: str) -> Any:  # of a field that is not there yet
        none = no_ints()
        self.columns, self.first, self.last = [none] * self._width, none, none
        return object.__getattribute__(self, name)


@cache
def no_ints() -> Ints:
    """An array without numbers."""
    return np.zeros(0, np.int64)


def empty(width: int) -> Relation:
    """No rows."""
    return _Nothing(width)


def whole(low: int, high: int) -> Relation:
    """The relation without columns that holds at ``low <= i < high``."""
    if low >= high:
        return empty(0)
    return Relation([], np.array([low], np.int64), np.array([high - 1], np.int64))


def concat(parts: Sequence[Relation], width: int) -> Relation:
    """All rows of relations with the same columns."""
    parts = [part for part in parts if len(part)]
    if not parts:
        return empty(width)
    if len(parts) == 1:
        return parts[0]
    columns = [np.concatenate([part.columns[place] for part in parts]) for place in range(width)]
    return Relation(
        columns, np.concatenate([part.first for part in parts]), np.concatenate([part.last for part in parts])
    )


def order_by(ids: Ints, first: Ints) -> Ints:
    """The order of rows by (id, first); ids are small and not negative."""
    if not len(ids):
        return no_ints()
    low, high = int(first.min()), int(first.max())
    span = high - low + 1
    if (int(ids.max()) + 1) * span < 1 << 62:
        return np.argsort(ids * span + (first - low))
    return np.lexsort((first, ids))


def coalesce(relation: Relation, numbered: tuple[Ints, int] | None = None) -> Relation:
    """Merge the periods of each valuation where they overlap or touch.

    Parameters
    ----------
    relation : Relation
    numbered : (int64 array, int), optional
        A number for the valuation of each row, where it is known, and how many numbers there are.
    """
    rows = len(relation)
    if rows < 2:
        return relation
    if numbered is None:
        ids, heads = group(relation.columns, rows)
        numbers = len(heads)
        if numbers == rows:
            return relation
    else:
        ids, numbers = numbered
    first, last, order = relation.first, relation.last, None
    if (first[1:] < first[:-1]).any():
        order = np.argsort(first, kind="stable")
        ids, first, last = ids[order], first[order], last[order]
    begins, ends_at = joined(ids, first, last, numbers)
    kept = begins if order is None else order[begins]
    return Relation([column[kept] for column in relation.columns], relation.first[kept], ends_at)


def common_ids(left: Sequence[Ints], right: Sequence[Ints], rows: int, others: int) -> tuple[Ints, Ints]:
    """Numbers for the rows of two tables, equal where the rows are."""
    if not left:
        return np.zeros(rows, np.int64), np.zeros(others, np.int64)
    both = [np.concatenate([one, two]) for one, two in zip(left, right, strict=True)]
    ids, _ = group(both, rows + others)
    return ids[:rows], ids[rows:]


def overlapping(
    left: Relation, right: Relation, on_left: Sequence[int], on_right: Sequence[int]
) -> tuple[Ints, Ints, Ints, Ints]:
    """Pairs of rows with equal keys and overlapping periods.

    Returns
    -------
    four int64 arrays
        Rows of the left side and of the right side, first and last of the overlap.
    """
    if not len(left) or not len(right):
        return no_ints(), no_ints(), no_ints(), no_ints()
    lid, rid = common_ids(
        [left.columns[each] for each in on_left], [right.columns[each] for each in on_right], len(left), len(right)
    )
    lorder, rorder = order_by(lid, left.first), order_by(rid, right.first)
    lf, ll, rf, rl = left.first[lorder], left.last[lorder], right.first[rorder], right.last[rorder]
    most = _most(len(left.columns) + len(right.columns))
    try:
        one, two = overlaps(lid[lorder], lf, ll, rid[rorder], rf, rl, most)
    except OverflowError:
        raise TooManyRowsError(most) from None
    return lorder[one], rorder[two], np.maximum(lf[one], rf[two]), np.minimum(ll[one], rl[two])


def _most(width: int) -> int:
    """How many rows of so many columns there is room for: eight numbers beside them are needed to find their pairs."""
    limit = _room.get()
    return 1 << 62 if limit is None else max(limit, _ALWAYS) // (8 * (8 + width))


def having(relation: Relation, on: Sequence[int], keys: Sequence[Ints], count: int) -> npt.NDArray[np.bool_]:
    """Which rows have one of `count` keys in some columns."""
    if not len(relation) or not count:
        return np.zeros(len(relation), bool)
    ids, others = common_ids([relation.columns[each] for each in on], list(keys), len(relation), count)
    found: npt.NDArray[np.bool_] = np.isin(ids, others)
    return found


def join(left: Relation, right: Relation, on_left: Sequence[int], on_right: Sequence[int]) -> Relation:
    """The natural join: the left columns, then those of the right side that are not in `on_right`."""
    one, two, first, last = overlapping(left, right, on_left, on_right)
    rest = [place for place in range(len(right.columns)) if place not in on_right]
    columns = [column[one] for column in left.columns] + [right.columns[place][two] for place in rest]
    return Relation(columns, first, last)


def minus(left: Relation, right: Relation, on_left: Sequence[int], on_right: Sequence[int]) -> Relation:
    """The left rows where no right row has their key; `on_right` are all columns of the right side."""
    if not len(left) or not len(right):
        return left
    lid, rid = common_ids(
        [left.columns[each] for each in on_left], [right.columns[each] for each in on_right], len(left), len(right)
    )
    lorder, rorder = order_by(lid, left.first), order_by(rid, right.first)
    rows, first, last = difference(
        lid[lorder], left.first[lorder], left.last[lorder], rid[rorder], right.first[rorder], right.last[rorder]
    )
    kept = lorder[rows]
    return Relation([column[kept] for column in left.columns], first, last)


def within(relation: Relation, first: Ints, last: Ints) -> Relation:
    """What lies in some disjoint stretches of time-points, given in order."""
    stretches = Relation([], first, last)
    one, _, low, high = overlapping(relation, stretches, (), ())
    return Relation([column[one] for column in relation.columns], low, high)


def runs(mask: npt.NDArray[np.bool_], base: int) -> tuple[Ints, Ints]:
    """The stretches of a mask that are true, as first and last time-points; ``mask[0]`` is time-point `base`."""
    padded = np.concatenate([[False], mask, [False]])
    changes = np.flatnonzero(padded[1:] != padded[:-1])
    return changes[::2] + base, changes[1::2] + (base - 1)


def split_rows(relation: Relation, cuts: Ints) -> Relation:
    """The periods cut behind each time-point of `cuts`, which ascend; periods touch then."""
    if not len(relation) or not len(cuts):
        return relation
    low = np.searchsorted(cuts, relation.first)
    high = np.searchsorted(cuts, relation.last)  # a cut behind the last time-point cuts nothing
    pieces = high - low + 1
    if int(pieces.max()) == 1:
        return relation
    rows = np.repeat(np.arange(len(relation)), pieces)
    begin = np.cumsum(pieces) - pieces
    nth = np.arange(len(rows)) - begin[rows]
    at = low[rows] + nth
    first = np.where(nth == 0, relation.first[rows], cuts[np.maximum(at - 1, 0)] + 1)
    last = np.where(nth == pieces[rows] - 1, relation.last[rows], cuts[np.minimum(at, len(cuts) - 1)])
    return Relation([column[rows] for column in relation.columns], first, last)
