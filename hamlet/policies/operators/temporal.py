"""PREV, NEXT, SINCE and UNTIL: interval arithmetic on periods, valuation by valuation.

Times within an interval are found by binary search in the time-stamps; what is kept are the times until which, or the
time-points from which on, a valuation still counts. Source: the semantics of Basin et al. (JACM 2015) §2.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from hamlet.arrays import np
from hamlet.policies.operators.incremental_since import IncrementalSince, IncrementalUntil
from hamlet.policies.operators.node import NEVER, Node, Timeline
from hamlet.policies.relations._sweep import group, group_max
from hamlet.policies.relations.relation import (
    Ints,
    Relation,
    coalesce,
    concat,
    empty,
    minus,
    no_ints,
    overlapping,
    runs,
    split_rows,
    within,
)
from hamlet.policies.syntax.formula import Type


class Previous(Node):
    """PREV: what held one time-point before, where the time between lies in the interval."""

    reads_times = True

    def __init__(self, child: Node, interval: tuple[int, int | None]) -> None:
        super().__init__(child.types, (child,))
        self.interval = interval
        self.kept = {"shifted": empty(self.width)}

    def _compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:  # noqa: ARG002
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

    def _compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:  # noqa: ARG002
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
        return no_ints()
    times = line.times[low - line.base : high - line.base]
    return np.flatnonzero(np.diff(times) > most - least) + low


# -------------------------------------------------------------------------------------------- SINCE and UNTIL


class Indexed(Node):
    """What stands in a store while little changes.

    Attributes
    ----------
    reads_times : bool
    """

    reads_times = True
    _lookups: IncrementalSince | IncrementalUntil

    def settle(self) -> None:
        """Let `kept` be all that is kept."""
        self._lookups.settle()

    @property
    def indexed_rows(self) -> int:  # type: ignore[override]
        """Rows that stand in a store."""
        return self._lookups.rows

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return super().nbytes + self._lookups.nbytes

    def matching(self, on: tuple[int, ...], keys: Sequence[Ints], count: int) -> Relation:
        """Those rows of the last batch whose columns `on` are one of `count` keys."""
        return self._lookups.matching(on, keys, count)

    def _everything(self) -> Relation:
        return self._lookups.everything()


class Since(Indexed):
    """SINCE, and ONCE where there is no left side; `key` are the right columns that the left side's columns equal."""

    def __init__(
        self, right: Node, interval: tuple[int, int | None], left: Node | None, negated: bool, key: tuple[int, ...]
    ) -> None:
        super().__init__(right.types, (right,) if left is None else (right, left))
        self.interval, self.negated, self.key = interval, negated, key
        # Valuations with two more columns: from what time on, and until what time, the right side's time counts.
        self.kept = {"alive": empty(self.width + 2)}
        self._lookups: IncrementalSince = IncrementalSince(self)

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept; None is a time."""
        return {"alive": (*self.types, None, None)}

    def _compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation | None, int]:
        self.window = None
        if low == high:
            return empty(self.width), high
        if self._lookups.serves(low, batch):
            self._lookups.step(line, low, high, batch)
            self.window = low, high
            return None, high
        self.settle()
        shown, self.kept["alive"] = self.swept(line, low, high, batch, self.kept["alive"])
        return shown, high

    def cuts(self, line: Timeline, low: int, high: int) -> Ints:
        """The time-points behind which what a period reaches is not connected."""
        return _cuts(line, low, high, self.interval)

    def swept(
        self, line: Timeline, low: int, high: int, batch: list[Relation], alive: Relation
    ) -> tuple[Relation, Relation]:
        """The relation of a batch, and what is alive behind it, by going through all of what was alive before it."""
        width, least = self.width, self.interval[0]
        cuts = _cuts(line, low, high, self.interval)
        right = batch[0]
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
            candidates.append(self.pieces(line, Relation(tip.columns, tip.last, tip.last)))
        pieces = concat([alive, self.pieces(line, fresh)], width + 2)
        after, until = pieces.columns[width], pieces.columns[width + 1]
        begin = np.maximum(np.maximum(pieces.first, low), line.first_at_least(after))
        end = np.minimum(last, line.last_at_most(until))
        good = begin <= end
        shown = Relation([column[good] for column in pieces.columns[:width]], begin[good], end[good])
        now = int(line.times[high - 1 - line.base])
        going_on = (last == high - 1) & (until >= now)
        ids, heads = group(pieces.columns[:width], len(pieces))
        if len(heads) == len(pieces) and not direct and not candidates:
            return shown, pieces.take(going_on)
        if candidates:
            alive = self.collapsed(concat([pieces.take(going_on), *candidates], width + 2), now, high)
        else:
            alive = self.collapsed(pieces.take(going_on), now, high, ids[going_on])
        if direct:
            return coalesce(concat([shown, *direct], width)), alive
        return coalesce(shown, (ids[good], len(heads))), alive

    def pieces(self, line: Timeline, rows: Relation) -> Relation:
        """Points of the right side, with the times from which on and until which they count."""
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

    def collapsed(self, rows: Relation, now: int, high: int, ids: Ints | None = None) -> Relation:
        """Of the pieces of a valuation that count already, the one that counts longest."""
        if not len(rows):
            return rows
        width = self.width
        begun = rows.columns[width] <= now
        counting, later = rows.take(begun), rows.take(~begun)
        if len(counting):
            columns = counting.columns[:width] if ids is None else [ids[begun]]
            numbers, heads = group(columns, len(counting))
            until = group_max(numbers, counting.columns[width + 1], len(heads))
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


class Until(Indexed):
    """UNTIL, and EVENTUALLY where there is no left side; `key` are the right columns that the left side's equal."""

    def __init__(
        self, right: Node, interval: tuple[int, int], left: Node | None, negated: bool, key: tuple[int, ...]
    ) -> None:
        super().__init__(right.types, (right,) if left is None else (right, left))
        self.interval, self.negated, self.key = interval, negated, key
        # What holds at undecided time-points; of the left side its periods that go on, or where it last held.
        self.kept = {"undecided": empty(self.width), "left": empty(len(key))}
        self._lookups: IncrementalUntil = IncrementalUntil(self)

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept."""
        left = self.children[1].types if len(self.children) > 1 else ()
        return {"undecided": self.types, "left": left}

    def _compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation | None, int]:
        width, (least, most), before = self.width, self.interval, self.done
        decided = int(line.first_at_least(np.array([line.next_time(high) - most], np.int64))[0])
        done = max(before, min(high, decided))
        right = batch[0]
        self.window = None
        cuts = _cuts(line, low, high, self.interval)
        if self._lookups.serves(batch):
            pieces = split_rows(right, cuts)
            self._lookups.step(self._reached(line, pieces, np.full(len(pieces), before, np.int64)), before, done)
            self.window = before, done
            return None, done
        self.settle()
        found: list[Relation] = [self.kept["undecided"]]
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
        found.append(self._reached(line, pieces, first))
        rows_all = coalesce(concat(found, width))
        self.kept["undecided"] = rows_all.clip(done, high) if high > done else empty(width)
        return rows_all.clip(before, done), done

    def _reached(self, line: Timeline, pieces: Relation, first: Ints) -> Relation:
        """Where some periods of the right side lie in the interval, from some time-points on."""
        least, most = self.interval
        if not len(pieces):
            return empty(self.width)
        begin = np.maximum(first, line.first_at_least(line.at(pieces.first) - most))
        end = np.minimum(pieces.last, line.last_at_most(line.at(pieces.last) - least))
        good = begin <= end
        return Relation([column[good] for column in pieces.columns[: self.width]], begin[good], end[good])

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
