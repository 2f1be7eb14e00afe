"""CNT, SUM, AVG, MIN, MAX and MED: a sweep over the ends of periods, group by group."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hamlet.policies.operators.node import Node, Timeline
from hamlet.policies.relations._sweep import group
from hamlet.policies.relations.relation import NO_INTS, Ints, Relation, coalesce, concat, empty, minus, whole
from hamlet.policies.relations.values import Pool
from hamlet.policies.syntax.formula import Type

_SAFE = 1 << 40  # sums of 2**20 numbers below it fit 62 bits
_PIECE = 1 << 12  # values that are moved at most to make room for one
_SCALE = 1074  # every float is an integer over 2**1074


class Aggregate(Node):
    """An aggregation over all columns of the child, for each value of some of them; the result is the first column."""

    def __init__(self, child: Node, operator: str, place: int, groups: tuple[int, ...], pool: Pool) -> None:
        kind = child.types[place]
        result: Type = "int" if operator == "CNT" else "float" if operator in ("AVG", "MED") else kind
        super().__init__((result, *(child.types[each] for each in groups)), (child,))
        self.operator, self.place, self.groups, self.kind, self.pool = operator, place, groups, kind, pool

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        rows = batch[0]
        made = self._swept(rows) if len(rows) else empty(self.width)
        if self.groups:
            return made
        rest = minus(whole(low, high), Relation([], made.first, made.last), (), ())
        nothing = np.full(len(rest), self.pool.code(of_nothing(self.operator, self.kind)), np.int64)
        return coalesce(concat([made, Relation([nothing], rest.first, rest.last)], 1))

    def _swept(self, rows: Relation) -> Relation:
        keys = [rows.columns[place] for place in self.groups]
        ids, heads = group(keys, len(rows))
        points = np.concatenate([rows.first, rows.last + 1])
        both = np.concatenate([ids, ids])
        order = np.lexsort((points, both))
        places = order % len(rows)
        signs = np.where(order < len(rows), 1, -1)
        points, both = points[order], both[order]
        ends = np.flatnonzero(np.append((both[1:] != both[:-1]) | (points[1:] != points[:-1]), True))
        count = np.cumsum(signs)[ends]
        values = rows.columns[self.place]
        codes = self._fast(values, places, signs, ends, count)
        if codes is None:
            codes = self._slow(values, places, signs, ends, both)
        # The state behind one end of periods lasts until the next; a group's last state is empty.
        shown = count > 0
        until = np.append(points[ends][1:], 0) - 1
        chosen = heads[both[ends][shown]]
        columns = [codes[shown], *(rows.columns[place][chosen] for place in self.groups)]
        return coalesce(Relation(columns, points[ends][shown], until[shown]))

    def _fast(self, values: Ints, places: Ints, signs: Ints, ends: Ints, count: Ints) -> Ints | None:
        """Counts, and sums of small integers, as cumulated columns."""
        if self.operator == "CNT":
            return count
        if self.operator != "SUM" or self.kind != "int" or len(values) >= 1 << 20:
            return None
        if int(values.max()) >= _SAFE or int(values.min()) <= -_SAFE:
            return None
        return np.cumsum(values[places] * signs)[ends]  # each group ends at a sum of 0

    def _slow(self, values: Ints, places: Ints, signs: Ints, ends: Ints, both: Ints) -> Ints:
        """One state after the other."""
        decoded = self.pool.decode(values, self.kind)
        make = STATES[self.operator]
        state = make()
        known, start, codes = -1, 0, []
        for end in ends.tolist():
            if both[end] != known:
                state, known = make(), both[end]
            for at in range(start, end + 1):
                value = decoded[places[at]]
                if signs[at] > 0:
                    state.add(value)
                else:
                    state.remove(value)
            start = end + 1
            codes.append(self.pool.code(state.result()) if state.size else 0)
        return np.array(codes, np.int64) if codes else NO_INTS


def of_nothing(operator: str, kind: Type) -> Any:
    """What an aggregation gives where nothing is there to be aggregated."""
    if operator == "CNT":
        return 0
    if operator in ("AVG", "MED"):
        return 0.0
    if kind == "float":
        return {"MIN": math.inf, "MAX": -math.inf}.get(operator, 0.0)
    return {"int": 0, "string": "", "bool": False}[kind]


class _Sum:
    """An exact sum, of floats too, so that the order of what comes and goes makes no difference."""

    def __init__(self) -> None:
        self.size = 0
        self._whole = 0
        self._scaled = 0
        self._floats = 0
        self._odd: dict[float, int] = {}  # infinities and NaN, counted

    def add(self, value: Any) -> None:
        self._change(value, 1)

    def remove(self, value: Any) -> None:
        self._change(value, -1)

    def _change(self, value: Any, sign: int) -> None:
        self.size += sign
        if not isinstance(value, float):
            self._whole += sign * value
            return
        self._floats += sign
        if math.isfinite(value):
            top, bottom = value.as_integer_ratio()
            self._scaled += sign * (top << (_SCALE + 1 - bottom.bit_length()))
        else:
            key = value if value == value else math.nan
            self._odd[key] = self._odd.get(key, 0) + sign

    def result(self) -> Any:
        """The sum."""
        return (
            exact_sum(self._scaled, [key for key, count in self._odd.items() if count]) if self._floats else self._whole
        )


def exact_sum(scaled: int, odd: list[float]) -> float:
    """The float nearest to a number of 2**-1074ths, or what infinities and NaN make of it."""
    if odd:
        return sum(odd)
    try:
        return scaled / (1 << _SCALE)
    except OverflowError:
        return math.inf if scaled > 0 else -math.inf


class _Average(_Sum):
    def result(self) -> Any:
        """The sum over the count, as a float."""
        if not self._floats:
            return mean(self._whole, self.size)
        return super().result() / self.size


def mean(total: int, count: int) -> float:
    """The float nearest to a fraction."""
    try:
        return total / count
    except OverflowError:
        return math.inf if total > 0 else -math.inf


class _Sorted:
    """Values in order, in pieces, so that one more or one less moves few of them."""

    def __init__(self) -> None:
        self._pieces: list[list[Any]] = []
        self._largest: list[Any] = []  # of each piece
        self._count = 0
        self._nan = 0
        self._near = 0  # the piece that was asked for last: a value at a place is seldom far from it
        self._ahead = 0  # values in the pieces before it

    @property
    def size(self) -> int:
        """How many values there are."""
        return self._count + self._nan

    def add(self, value: Any) -> None:
        """One value more."""
        if value != value:
            self._nan += 1
            return
        self._count += 1
        if not self._pieces:
            self._pieces.append([value])
            self._largest.append(value)
            return
        place = min(bisect.bisect_left(self._largest, value), len(self._pieces) - 1)
        piece = self._pieces[place]
        bisect.insort(piece, value)
        self._ahead += place < self._near
        if len(piece) > _PIECE:
            self._near += place < self._near
            half = len(piece) // 2
            self._pieces[place : place + 1] = [piece[:half], piece[half:]]
            self._largest.insert(place, piece[half - 1])
            place, piece = place + 1, piece[half:]
        self._largest[place] = piece[-1]

    def remove(self, value: Any) -> None:
        """One value less."""
        if value != value:
            self._nan -= 1
            return
        self._count -= 1
        place = bisect.bisect_left(self._largest, value)
        piece = self._pieces[place]
        del piece[bisect.bisect_left(piece, value)]
        self._ahead -= place < self._near
        if piece:
            self._largest[place] = piece[-1]
        else:
            self._near -= place < self._near
            del self._pieces[place], self._largest[place]

    def at(self, place: int) -> Any:
        """The value at a place, NaN last."""
        if place >= self._count:
            return math.nan
        while place < self._ahead:
            self._near -= 1
            self._ahead -= len(self._pieces[self._near])
        while place - self._ahead >= len(self._pieces[self._near]):
            self._ahead += len(self._pieces[self._near])
            self._near += 1
        return self._pieces[self._near][place - self._ahead]

    def result(self) -> Any:
        raise NotImplementedError


class _Least(_Sorted):
    def result(self) -> Any:
        return self._pieces[0][0] if self._count else math.nan


class _Largest(_Sorted):
    def result(self) -> Any:
        return math.nan if self._nan else self._largest[-1]


class _Median(_Sorted):
    def result(self) -> Any:
        middle = self.size // 2
        return median([self.at(middle)] if self.size % 2 else [self.at(middle - 1), self.at(middle)])


def median(values: list[Any]) -> float:
    """The middle of values in order; of an even number the mean of the two in the middle."""
    middle = len(values) // 2
    if len(values) % 2:
        return mean(values[middle], 1) if isinstance(values[middle], int) else float(values[middle])
    one, two = values[middle - 1], values[middle]
    if isinstance(one, int):
        return mean(one + two, 2)
    return float(one / 2 + two / 2 if math.isinf(one + two) else (one + two) / 2)


STATES: dict[str, Callable[[], Any]] = {
    "CNT": _Sum,
    "SUM": _Sum,
    "AVG": _Average,
    "MIN": _Least,
    "MAX": _Largest,
    "MED": _Median,
}
