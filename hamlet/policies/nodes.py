"""The operators of an evaluation: each takes its children's periods, batch after batch, and gives its own.

Contract
--------
**Batches**: an operator gives its relation for time-points ``done_before <= i < done``; the next batch goes on there.
`done` depends on the time-points that are known, never on how they were cut into batches.
**Clipped**: periods are clipped to the batch; one that goes on begins again in the next.
**Kept** is what later batches need (`Node.kept`): relations, some with columns beside those of the valuation.

Source: the temporal operators follow the semantics of Basin et al. (JACM 2015) §2; keeping periods instead of a table
per time-point is this project's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from hamlet.policies._sweep import group, group_max
from hamlet.policies.formula import Term, Type
from hamlet.policies.relation import (
    NO_INTS,
    Ints,
    Relation,
    coalesce,
    concat,
    empty,
    join,
    minus,
    overlapping,
    runs,
    split_rows,
    whole,
    within,
)
from hamlet.policies.values import Pool, compare, evaluate, matches, substring

NEVER = 1 << 61  # a time beyond all others; sums of two such numbers fit 64 bits


@dataclass(slots=True)
class Timeline:
    """The time-points that are known.

    Attributes
    ----------
    times : int64 array
        Time-stamps of the time-points from `base` on.
    base, known : int
        The first time-point whose time-stamp is kept, and the number of all.
    bound : int
        No later time-point has a time-stamp below.
    fresh : int
        The first time-point of the batch.
    tables : dict
        (name, arity) to the batch's tuples: columns of codes, and each tuple's time-point.
    """

    times: Ints = field(default_factory=lambda: NO_INTS)
    base: int = 0
    known: int = 0
    bound: int = -NEVER
    fresh: int = 0
    tables: dict[tuple[str, int], tuple[list[Ints], Ints]] = field(default_factory=dict)

    def at(self, points: Ints) -> Ints:
        """Time-stamps of time-points."""
        return self.times[points - self.base]

    def first_at_least(self, times: Ints) -> Ints:
        """For each time the first time-point that is not earlier; `known` where there is none."""
        return np.searchsorted(self.times, times, "left") + self.base

    def last_at_most(self, times: Ints) -> Ints:
        """For each time the last time-point that is not later."""
        return np.searchsorted(self.times, times, "right") + (self.base - 1)

    def next_time(self, point: int) -> int:
        """A time-stamp that this time-point, and later ones, do not stay below."""
        return int(self.times[point - self.base]) if point < self.known else self.bound


class Node:
    """One operator.

    Attributes
    ----------
    types : tuple of str
        Of the columns.
    children : tuple of Node
    done : int
        The first time-point that is not decided.
    output : Relation
        Of the last batch.
    kept : dict of str to Relation
        What later batches need.
    """

    reads_times = False  # whether time-stamps from the first undecided time-point on are needed

    def __init__(self, types: tuple[Type, ...], children: tuple[Node, ...]) -> None:
        self.types = types
        self.children = children
        self.done = 0
        self.seen = 0
        self.output = empty(len(types))
        self.kept: dict[str, Relation] = {}
        self.pending = [empty(len(child.types)) for child in children]

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.types)

    def step(self, line: Timeline) -> None:
        """Take the children's outputs of this batch and give one's own."""
        until = min((child.done for child in self.children), default=line.known)
        batch = []
        for place, child in enumerate(self.children):
            all_rows = child.output
            if len(self.pending[place]):  # a period that went on in the next batch is one period again
                all_rows = coalesce(concat([self.pending[place], all_rows], child.width))
            batch.append(all_rows.clip(self.seen, until))
            later = child.done > until
            self.pending[place] = all_rows.clip(until, child.done) if later else empty(child.width)
        low, self.seen = self.seen, until
        self.output, self.done = self.compute(line, low, until, batch)

    def compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:
        """The relation of the batch, from the children's at time-points ``low <= i < high``; what is decided then."""
        return self.relation(line, low, high, batch), high

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:
        """As `compute`, of operators that decide what their children have decided."""
        raise NotImplementedError

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept; None is a time or a time-point."""
        return {name: self.types for name in self.kept}

    @property
    def oldest(self) -> int | None:
        """The first time-point whose time-stamp is still needed, if any is."""
        return min(self.done, self.seen) - 1 if self.reads_times else None

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return sum(each.nbytes for each in (*self.kept.values(), *self.pending))


# ----------------------------------------------------------------------------------------- without children


class Event(Node):
    """The tuples of a predicate, those that have some constants and equal places; `columns` of them."""

    def __init__(
        self,
        key: tuple[str, int],
        types: tuple[Type, ...],
        constants: tuple[tuple[int, int], ...],
        equal: tuple[tuple[int, int], ...],
        columns: tuple[int, ...],
    ) -> None:
        super().__init__(tuple(types[place] for place in columns), ())
        self.key, self.constants, self.equal, self.columns = key, constants, equal, columns

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        found = line.tables.get(self.key)
        if found is None or not len(found[1]):
            return empty(self.width)
        return _shaped(Relation(found[0], found[1], found[1]), self.constants, self.equal, self.columns)


def _shaped(
    relation: Relation,
    constants: tuple[tuple[int, int], ...],
    equal: tuple[tuple[int, int], ...],
    columns: tuple[int, ...],
) -> Relation:
    """The rows with some constants and equal places; some of their columns."""
    if constants or equal:
        mask = np.ones(len(relation), bool)
        for place, code in constants:
            mask &= relation.columns[place] == code
        for one, two in equal:
            mask &= relation.columns[one] == relation.columns[two]
        relation = Relation(
            [relation.columns[place][mask] for place in columns], relation.first[mask], relation.last[mask]
        )
    else:
        relation = relation.select(columns)
    return coalesce(relation)


class Position(Node):
    """What every stream has: ``tp(i)``, the time-point, ``ts(t)``, its time-stamp, and ``tpts(i, t)``."""

    reads_times = True

    def __init__(self, name: str) -> None:
        super().__init__(("int", "int") if name == "tpts" else ("int",), ())
        self.name = name

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        points = np.arange(low, high, dtype=np.int64)
        columns = {"tp": [points], "ts": [line.at(points)], "tpts": [points, line.at(points)]}
        return Relation(columns[self.name], points, points)


class Always(Node):
    """One valuation, at all time-points: TRUE, and ``x = 5``."""

    def __init__(self, types: tuple[Type, ...], codes: tuple[int, ...]) -> None:
        super().__init__(types, ())
        self.codes = codes

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        made = whole(low, high)
        return Relation([np.full(len(made), code, np.int64) for code in self.codes], made.first, made.last)


class Never(Node):
    """No valuation: FALSE."""

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        return empty(self.width)


# ---------------------------------------------------------------------------------------------- without time


class Shape(Node):
    """The rows with some constants and equal places; some of their columns. EXISTS and the names of LET."""

    def __init__(
        self,
        child: Node,
        constants: tuple[tuple[int, int], ...],
        equal: tuple[tuple[int, int], ...],
        columns: tuple[int, ...],
    ) -> None:
        super().__init__(tuple(child.types[place] for place in columns), (child,))
        self.constants, self.equal, self.columns = constants, equal, columns

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        return _shaped(batch[0], self.constants, self.equal, self.columns)


class Filter(Node):
    """The rows that pass a test, or fail it; the terms' variables are places of columns."""

    def __init__(self, child: Node, test: str, left: Term, right: Term | str, negated: bool, pool: Pool) -> None:
        super().__init__(child.types, (child,))
        self.test, self.left, self.right, self.negated, self.pool = test, left, right, negated, pool

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        rows = batch[0]
        if not len(rows):
            return rows
        columns, types = _named(rows, self.types)
        left = evaluate(self.left, columns, types, len(rows), self.pool)
        if isinstance(self.right, str):
            mask = matches(left, self.right, self.pool)
        else:
            right = evaluate(self.right, columns, types, len(rows), self.pool)
            if self.test == "SUBSTRING":
                mask = substring(left, right, self.pool)
            else:
                from hamlet.policies.values import type_of

                mask = compare(self.test, left, right, type_of(self.left, types), self.pool)
        return rows.take(~mask if self.negated else mask)


class Extend(Node):
    """The rows with one more column, a term over the others."""

    def __init__(self, child: Node, term: Term, type: Type, pool: Pool) -> None:
        super().__init__((*child.types, type), (child,))
        self.term, self.pool = term, pool

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        rows = batch[0]
        columns, types = _named(rows, self.children[0].types)
        made = evaluate(self.term, columns, types, len(rows), self.pool) if len(rows) else NO_INTS
        return Relation([*rows.columns, made], rows.first, rows.last)


def _named(rows: Relation, types: tuple[Type, ...]) -> tuple[dict[str, Ints], dict[str, Type]]:
    names = [str(place) for place in range(len(types))]
    return dict(zip(names, rows.columns, strict=True)), dict(zip(names, types, strict=True))


class Join(Node):
    """AND: the left columns, then those of the right side that are not shared."""

    def __init__(self, left: Node, right: Node, on_left: tuple[int, ...], on_right: tuple[int, ...]) -> None:
        rest = tuple(kind for place, kind in enumerate(right.types) if place not in on_right)
        super().__init__((*left.types, *rest), (left, right))
        self.on_left, self.on_right = on_left, on_right

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        return join(batch[0], batch[1], self.on_left, self.on_right)


class Minus(Node):
    """AND NOT: the left rows without those that the right side has; `on_right` are all of its columns."""

    def __init__(self, left: Node, right: Node, on_left: tuple[int, ...], on_right: tuple[int, ...]) -> None:
        super().__init__(left.types, (left, right))
        self.on_left, self.on_right = on_left, on_right

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        return minus(batch[0], batch[1], self.on_left, self.on_right)


class Union(Node):
    """OR; `order` are the right side's columns in the order of the left side's."""

    def __init__(self, left: Node, right: Node, order: tuple[int, ...]) -> None:
        super().__init__(left.types, (left, right))
        self.order = order

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        return coalesce(concat([batch[0], batch[1].select(self.order)], self.width))


# ------------------------------------------------------------------------------------------------ time-points


class Previous(Node):
    """PREV: what held one time-point before, where the time between lies in the interval."""

    reads_times = True

    def __init__(self, child: Node, interval: tuple[int, int | None]) -> None:
        super().__init__(child.types, (child,))
        self.interval = interval
        self.kept = {"shifted": empty(self.width)}

    def compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:  # noqa: ARG002
        before, done = self.done, max(self.done, min(high + 1, line.known))
        moved = Relation(batch[0].columns, batch[0].first + 1, batch[0].last + 1)
        rows = coalesce(concat([self.kept["shifted"], moved], self.width))
        self.kept["shifted"] = rows.clip(done, high + 1) if high + 1 > done else empty(self.width)
        return _timed(rows.clip(before, done), line, before, done, self.interval, 1), done


class Next(Node):
    """NEXT: what holds one time-point later, where the time between lies in the interval."""

    reads_times = True

    def __init__(self, child: Node, interval: tuple[int, int | None]) -> None:
        super().__init__(child.types, (child,))
        self.interval = interval

    def compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:  # noqa: ARG002
        before, done = self.done, max(self.done, high - 1)
        moved = Relation(batch[0].columns, batch[0].first - 1, batch[0].last - 1)
        return _timed(moved.clip(before, done), line, before, done, self.interval, 0), done


def _timed(
    rows: Relation, line: Timeline, low: int, high: int, interval: tuple[int, int | None], behind: int
) -> Relation:
    """The rows at time-points whose time to the one before (`behind` 1) or after (0) lies in the interval."""
    least, most = interval
    if (least <= 0 and most is None) or not len(rows):
        return rows
    points = np.arange(max(low, behind), high, dtype=np.int64)
    gaps = line.at(points + 1 - behind) - line.at(points - behind)
    mask = gaps >= least
    if most is not None:
        mask &= gaps <= most
    first, last = runs(mask, int(points[0]) if len(points) else 0)
    return within(rows, first, last)


def _cuts(line: Timeline, low: int, high: int, interval: tuple[int, int | None]) -> Ints:
    """The time-points in ``low <= i < high - 1`` behind which what a period reaches is not connected."""
    least, most = interval
    if least <= 0 or most is None or high - low < 2:
        return NO_INTS
    times = line.times[low - line.base : high - line.base]
    return np.flatnonzero(np.diff(times) > most - least) + low


# -------------------------------------------------------------------------------------------- SINCE and UNTIL


class Since(Node):
    """SINCE, and ONCE where there is no left side; `key` are the right columns that the left side's columns equal."""

    reads_times = True

    def __init__(
        self, right: Node, interval: tuple[int, int | None], left: Node | None, negated: bool, key: tuple[int, ...]
    ) -> None:
        super().__init__(right.types, (right,) if left is None else (right, left))
        self.interval, self.negated, self.key = interval, negated, key
        # Valuations with two more columns: from what time on, and until what time, the right side's time counts.
        self.kept = {"alive": empty(self.width + 2)}

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept; None is a time."""
        return {"alive": (*self.types, None, None)}

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:
        if low == high:
            return empty(self.width)
        width, (least, most) = self.width, self.interval
        cuts = _cuts(line, low, high, self.interval)
        alive, right = self.kept["alive"], batch[0]
        direct: list[Relation] = []
        candidates: list[Relation] = []
        if len(batch) == 1:
            fresh = split_rows(right, cuts)
            last = np.full(len(alive) + len(fresh), high - 1, np.int64)
            starts, ends = fresh.first, fresh.last
        else:
            live = self._runs(batch[1], alive, right, low, high)
            reaching = Relation(live.columns, live.first - 1, live.last)
            every = tuple(range(len(live.columns)))
            rows, run, first, ends = overlapping(right, reaching, self.key, every)
            found = Relation([*(column[rows] for column in right.columns), live.last[run]], first, ends)
            found = split_rows(found, cuts)
            starts, ends = found.first, found.last
            fresh = Relation(found.columns[:width], starts, ends)
            going = live.take(live.first == low)
            old, run = overlapping(
                Relation(alive.columns, np.full_like(alive.first, low), np.full_like(alive.first, low)),
                Relation(going.columns, going.first, going.first),
                self.key,
                every,
            )[:2]
            alive = alive.take(old)
            last = np.concatenate([going.last[run], found.columns[width]])
            if least <= 0:
                direct.append(right)
            tip = right.take(right.last == high - 1)
            candidates.append(self._pieces(line, Relation(tip.columns, tip.last, tip.last)))
        pieces = concat([alive, self._pieces(line, fresh)], width + 2)
        after, until = pieces.columns[width], pieces.columns[width + 1]
        begin = np.maximum(np.maximum(pieces.first, low), line.first_at_least(after))
        end = np.minimum(last, line.last_at_most(until))
        good = begin <= end
        shown = Relation([column[good] for column in pieces.columns[:width]], begin[good], end[good])
        now = int(line.times[high - 1 - line.base])
        going_on = pieces.take((last == high - 1) & (until >= now))
        self.kept["alive"] = self._collapsed(concat([going_on, *candidates], width + 2), now, high)
        return coalesce(concat([shown, *direct], width))

    def _pieces(self, line: Timeline, rows: Relation) -> Relation:
        least, most = self.interval
        after = line.at(rows.first) + least
        until = np.full(len(rows), NEVER, np.int64) if most is None else line.at(rows.last) + most
        return Relation([*rows.columns, after, until], rows.first, rows.first)

    def _runs(self, left: Relation, alive: Relation, right: Relation, low: int, high: int) -> Relation:
        """Where the left side holds; of a negated one for the keys that matter."""
        if not self.negated:
            return left
        keys = [np.concatenate([alive.columns[place], right.columns[place]]) for place in self.key]
        return _complement(left, keys, len(alive) + len(right), low, high)

    def _collapsed(self, rows: Relation, now: int, high: int) -> Relation:
        """Of the pieces of a valuation that count already, the one that counts longest."""
        if not len(rows):
            return rows
        width = self.width
        begun = rows.columns[width] <= now
        counting, later = rows.take(begun), rows.take(~begun)
        if len(counting):
            ids, heads = group(counting.columns[:width], len(counting))
            until = group_max(ids, counting.columns[width + 1], len(heads))
            columns = [column[heads] for column in counting.columns[:width]]
            point = np.full(len(heads), high - 1, np.int64)
            counting = Relation([*columns, np.full(len(heads), -NEVER, np.int64), until], point, point)
        return concat([counting, later], width + 2)


def _complement(left: Relation, keys: list[Ints], rows: int, low: int, high: int) -> Relation:
    """Where the left side does not hold, for some keys, at ``low <= i < high``."""
    if not rows or low >= high:
        return empty(len(keys))
    _, heads = group(keys, rows)
    columns = [column[heads] for column in keys]
    full = Relation(columns, np.full(len(heads), low, np.int64), np.full(len(heads), high - 1, np.int64))
    every = tuple(range(len(keys)))
    return minus(full, left, every, every)


class Until(Node):
    """UNTIL, and EVENTUALLY where there is no left side; `key` are the right columns that the left side's equal."""

    reads_times = True

    def __init__(
        self, right: Node, interval: tuple[int, int], left: Node | None, negated: bool, key: tuple[int, ...]
    ) -> None:
        super().__init__(right.types, (right,) if left is None else (right, left))
        self.interval, self.negated, self.key = interval, negated, key
        # What holds at undecided time-points; of the left side its periods that go on, or where it last held.
        self.kept = {"undecided": empty(self.width), "left": empty(len(key))}

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept."""
        left = self.children[1].types if len(self.children) > 1 else ()
        return {"undecided": self.types, "left": left}

    def compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:
        width, (least, most) = self.width, self.interval
        before = self.done
        decided = int(line.first_at_least(np.array([line.next_time(high) - most], np.int64))[0])
        done = max(before, min(high, decided))
        right = batch[0]
        found: list[Relation] = [self.kept["undecided"]]
        cuts = _cuts(line, low, high, self.interval)
        if len(batch) == 1:
            pieces = split_rows(right, cuts)
            first = np.full(len(pieces), before, np.int64)
        else:
            live = self._runs(batch[1], right, before, high)
            reaching = Relation(live.columns, live.first, live.last + 1)
            every = tuple(range(len(live.columns)))
            rows, run, starts, ends = overlapping(right, reaching, self.key, every)
            pieces = Relation([*(column[rows] for column in right.columns), live.first[run]], starts, ends)
            pieces = split_rows(pieces, cuts)
            first = np.maximum(pieces.columns[width], before)
            if least <= 0:
                found.append(right)
            self._remember(batch[1], live, high, done)
        if len(pieces):
            begin = np.maximum(first, line.first_at_least(line.at(pieces.first) - most))
            end = np.minimum(pieces.last, line.last_at_most(line.at(pieces.last) - least))
            good = begin <= end
            found.append(Relation([column[good] for column in pieces.columns[:width]], begin[good], end[good]))
        rows_all = coalesce(concat(found, width))
        self.kept["undecided"] = rows_all.clip(done, high) if high > done else empty(width)
        return rows_all.clip(before, done), done

    def _runs(self, left: Relation, right: Relation, low: int, high: int) -> Relation:
        """Where the left side holds, as far back as it matters; of a negated one for the keys that matter."""
        held = coalesce(concat([self.kept["left"], left], len(self.key)))
        if not self.negated:
            return held
        return _complement(held, [right.columns[place] for place in self.key], len(right), low, high)

    def _remember(self, left: Relation, live: Relation, high: int, done: int) -> None:
        if not self.negated:
            kept = live.take(live.last == high - 1)
            first = np.maximum(kept.first, done)
            self.kept["left"] = Relation(kept.columns, first, kept.last).take(first <= kept.last)
            return
        rows = concat([self.kept["left"], left], len(self.key))
        rows = rows.take(rows.last >= done)
        if len(rows):
            ids, heads = group(rows.columns, len(rows))
            last = group_max(ids, rows.last, len(heads))
            rows = Relation([column[heads] for column in rows.columns], last, last)
        self.kept["left"] = rows


# -------------------------------------------------------------------------------------- HISTORICALLY and ALWAYS


class Historically(Node):
    """Where a relation held throughout the interval before; where no time-point lies in it, all who hold at all."""

    reads_times = True

    def __init__(self, child: Node, interval: tuple[int, int | None]) -> None:
        super().__init__(child.types, (child,))
        self.interval = interval
        # Two more columns: the time after which the interval lies in the period, and that before which it does.
        self.kept = {"periods": empty(self.width + 2)}

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept; None is a time."""
        return {"periods": (*self.types, None, None)}

    def relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:
        if low == high:
            return empty(self.width)
        width, (least, most), rows = self.width, self.interval, batch[0]
        after = np.full(len(rows), -NEVER, np.int64)
        later = rows.first > 0
        after[later] = NEVER if most is None else line.at(rows.first[later] - 1) + most
        fresh = Relation([*rows.columns, after], rows.first, rows.last)
        old = self.kept["periods"]
        ended = old.columns[width + 1] < NEVER
        finished, open_rows = old.take(ended), old.take(~ended)
        # A period that goes on keeps the earlier beginning: open ones reach low - 1, and may stop there.
        going = Relation(open_rows.columns[: width + 1], open_rows.first, np.full(len(open_rows), low - 1, np.int64))
        every = tuple(range(width))
        heads = rows.take(rows.first == low)
        one, two, _, _ = overlapping(
            Relation(going.columns, going.first, going.last + 1),
            Relation(heads.columns, heads.first, heads.first),
            every,
            every,
        )
        stopped = np.ones(len(going), bool)
        stopped[one] = False
        prolonged = Relation([column[one] for column in going.columns], going.first[one], heads.last[two])
        new = minus_rows(fresh, prolonged, width, low)
        periods = concat([going.take(stopped), prolonged, new], width + 1)
        before = np.full(len(periods), NEVER, np.int64)
        closed = periods.last < high - 1
        before[closed] = line.at(periods.last[closed] + 1) + least
        periods = Relation([*periods.columns, before], periods.first, periods.last)
        every_period = concat([finished, periods], width + 2)
        begin = np.maximum(low, line.last_at_most(every_period.columns[width]) + 1)
        limit = line.first_at_least(every_period.columns[width + 1]) - 1
        end = np.minimum(high - 1, np.maximum(every_period.last, limit))
        good = begin <= end
        now = int(line.times[high - 1 - line.base])
        self.kept["periods"] = every_period.take(every_period.columns[width + 1] > now)
        return coalesce(Relation([column[good] for column in every_period.columns[:width]], begin[good], end[good]))


def minus_rows(fresh: Relation, prolonged: Relation, width: int, low: int) -> Relation:
    """The fresh periods but for those at `low` of valuations whose earlier period goes on."""
    if not len(prolonged) or not len(fresh):
        return fresh
    every = tuple(range(width))
    point = np.full(len(prolonged), low, np.int64)
    heads = Relation(fresh.columns[:width], fresh.first, fresh.first)
    rows, _, _, _ = overlapping(heads, Relation(prolonged.columns[:width], point, point), every, every)
    kept = np.ones(len(fresh), bool)
    kept[rows] = False
    return fresh.take(kept)


class Henceforth(Node):
    """Where a relation holds throughout the interval after; where no time-point lies in it, some who hold nearby."""

    reads_times = True

    def __init__(self, child: Node, interval: tuple[int, int]) -> None:
        super().__init__(child.types, (child,))
        self.interval = interval
        # One more column: the first time-point whose interval lies in the period.
        self.kept = {"open": empty(self.width + 1), "undecided": empty(self.width)}

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept; None is a time-point."""
        return {"open": (*self.types, None), "undecided": self.types}

    def compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:
        width, (least, most), before = self.width, self.interval, self.done
        decided = int(line.first_at_least(np.array([line.next_time(high) - most], np.int64))[0])
        done = max(before, min(high, decided))
        rows = batch[0]
        begins = rows.first.copy()
        later = rows.first > 0
        begins[later] = np.minimum(begins[later], line.last_at_most(line.at(rows.first[later] - 1) - least) + 1)
        begins = np.maximum(begins, before)
        fresh = Relation([*rows.columns, begins], rows.first, rows.last)
        going = self.kept["open"]
        every = tuple(range(width))
        heads = rows.take(rows.first == low)
        point = np.full(len(going), low, np.int64)
        one, two, _, _ = overlapping(
            Relation(going.columns, point, point), Relation(heads.columns, heads.first, heads.first), every, every
        )
        stopped = np.ones(len(going), bool)
        stopped[one] = False
        if high > low:
            prolonged = Relation([column[one] for column in going.columns], going.first[one], heads.last[two])
            periods = concat([going.take(stopped), prolonged, minus_rows(fresh, prolonged, width, low)], width + 1)
        else:
            periods = going
        first, end = periods.columns[width], np.full(len(periods), done - 1, np.int64)
        closed = periods.last < high - 1
        end[closed] = line.first_at_least(line.at(periods.last[closed] + 1) - most) - 1
        good = first <= end
        found = Relation([column[good] for column in periods.columns[:width]], first[good], end[good])
        held = periods.take(~closed)
        columns = [*held.columns[:width], np.maximum(held.columns[width], done)]
        self.kept["open"] = Relation(columns, held.first, held.last)
        made = coalesce(concat([self.kept["undecided"], found], width))
        self.kept["undecided"] = made.clip(done, high) if high > done else empty(width)
        return made.clip(before, done), done
