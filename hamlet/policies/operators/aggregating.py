"""CNT, SUM, AVG, MIN, MAX and MED: a sweep over the ends of periods, group by group."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from hamlet.arrays import np, npt
from hamlet.policies.operators._aggregates import KINDS, swept
from hamlet.policies.operators.node import Node, Timeline
from hamlet.policies.relations._sweep import group
from hamlet.policies.relations.relation import Ints, Relation, coalesce, concat, empty, minus, no_ints, order_by, whole
from hamlet.policies.relations.values import POOLED, Pool, floats_of
from hamlet.policies.syntax.formula import Type

_EXACT = 1 << 53  # integers below it are floats, too
_MAGNITUDE = (1 << 63) - 1  # the bits of a float without its sign
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
        ids, heads = group([rows.columns[place] for place in self.groups], len(rows))
        given = self._compiled(rows.columns[self.place], ids, len(heads))
        until = rows.last + 1
        order = order_by(np.concatenate([ids, ids]), np.concatenate([rows.first, until]))
        if given is None:
            at, codes, first, last = self._one_by_one(rows, ids, until, order)
        else:
            at, codes, first, last = swept(given.kind, ids, rows.first, rows.last, order, *given.arguments)
        return Relation([codes, *(rows.columns[place][at] for place in self.groups)], first, last)

    def _compiled(self, values: Ints, ids: Ints, groups: int) -> _Given | None:
        """What the compiled sweep is given; None where numbers may be too large for it, or are none."""
        floats = self.kind == "float"
        match self.operator:
            case "CNT":
                return _Given(KINDS["COUNT"], values)
            case "SUM" | "AVG":
                name = "SUM" if self.operator == "SUM" else "AVERAGE"
                if floats:
                    return _scaled(floats_of(values), KINDS[f"{name}_FLOAT"])
                most = (_EXACT if name == "AVERAGE" else POOLED) // len(values)
                small = self.kind == "int" and int(values.max()) < most and int(values.min()) > -most
                return _Given(KINDS[name], values) if small else None
        sortable = self._sortable(values)
        if sortable is None:
            return None
        sizes = np.bincount(ids, minlength=groups)
        order = order_by(ids, sortable)
        slots = np.empty(len(values), np.int64)
        slots[order] = np.arange(len(values)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        name = {"MIN": "LEAST", "MAX": "GREATEST"}.get(self.operator, "MEDIAN_FLOAT" if floats else "MEDIAN")
        return _Given(KINDS[name], values, slots, largest=int(sizes.max()))

    def _sortable(self, values: Ints) -> Ints | None:
        """Integers that are in the order of the values; None where there is NaN, or a median of what is no number."""
        if self.kind == "float":
            if np.isnan(floats_of(values)).any():
                return None
            return np.where(values < 0, values ^ _MAGNITUDE, values)
        if self.kind != "string" and int(values.max()) < POOLED:
            return values
        if self.operator == "MED":
            return None
        kinds, places = np.unique(values, return_inverse=True)
        decoded = self.pool.decode(kinds, self.kind)
        ranks = np.empty(len(kinds), np.int64)
        ranks[sorted(range(len(kinds)), key=decoded.__getitem__)] = np.arange(len(kinds))
        return ranks[places]

    def _one_by_one(self, rows: Relation, ids: Ints, until: Ints, order: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """One state after the other, as the compiled sweep."""
        count = len(rows)
        decoded = self.pool.decode(rows.columns[self.place], self.kind)
        groups, begins, ends = ids.tolist(), rows.first.tolist(), until.tolist()
        make = STATES[self.operator]
        found: list[list[int]] = []  # row of the group, code, first and last time-point of each period
        state, known = make(), -1
        places = order.tolist()
        for at, place in enumerate(places):
            row = place % count
            if groups[row] != known:
                state, known, head, is_open = make(), groups[row], row, False
            if place < count:
                state.add(decoded[row])
                point = begins[row]
            else:
                state.remove(decoded[row])
                point = ends[row]
            if at + 1 < len(places):
                after = places[at + 1]
                if (
                    groups[after % count] == known
                    and (begins[after] if after < count else ends[after - count]) == point
                ):
                    continue
            code = self.pool.code(state.result()) if state.size else None
            if is_open and found[-1][1] == code:
                continue
            if is_open:
                found[-1][3] = point - 1
            is_open = code is not None
            if code is not None:
                found.append([head, code, point, point])
        columns = np.array(found, np.int64).reshape(-1, 4)
        heads, codes, first, last = (np.ascontiguousarray(column) for column in columns.T)
        return heads, codes, first, last


class _Given(NamedTuple):
    """What the compiled sweep is given beside the periods."""

    kind: int
    values: Ints
    slots: Ints | None = None
    high: Ints | None = None
    least: int = 0
    largest: int = 0

    @property
    def arguments(self) -> tuple[Any, ...]:
        """All but the kind."""
        return tuple(no_ints() if each is None else each for each in self[1:])


def _scaled(floats: npt.NDArray[np.float64], kind: int) -> _Given | None:
    """Floats as integers of 128 bits over a power of two, where no sum of them can be too large for these."""
    if not np.isfinite(floats).all():
        return None
    fractions, exponents = np.frexp(floats)
    parts = np.ldexp(fractions, 53).astype(np.int64)
    some = parts != 0
    if not some.any():
        return _Given(kind, parts, high=parts)
    least, most = int(exponents[some].min()) - 53, int(exponents[some].max())
    bits = len(floats).bit_length()
    if (
        most - least + bits > 126 or least < -1021 or most + bits > 1023
    ):  # then a sum is rounded once, to a normal float
        return None
    shifts = np.where(some, exponents.astype(np.int64) - 53 - least, 0)
    low = np.where(shifts < 64, parts << np.minimum(shifts, 63), 0)
    high = np.where(shifts < 64, parts >> np.minimum(64 - shifts, 63), parts << np.clip(shifts - 64, 0, 63))
    return _Given(kind, low, high=high, least=least)


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
