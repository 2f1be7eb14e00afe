"""HISTORICALLY and ALWAYS of a finite relation: where it holds at every time-point of the interval."""

from __future__ import annotations

from hamlet.arrays import np
from hamlet.policies.operators.node import NEVER, Node, Timeline
from hamlet.policies.relations.relation import Ints, Relation, coalesce, concat, empty, overlapping
from hamlet.policies.syntax.formula import Type


class Historically(Node):
    """The valuations that held throughout the interval before; where no time-point lies in it, all that ever hold."""

    reads_times = True

    def __init__(self, child: Node, interval: tuple[int, int | None]) -> None:
        super().__init__(child.types, (child,))
        self.interval = interval
        # Two more columns: the time after which the interval lies in the period, and that before which it does.
        self.kept = {"periods": empty(self.width + 2)}

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept; None is a time."""
        return {"periods": (*self.types, None, None)}

    def _compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:
        before = self.done
        if low < high:
            self._absorb(line, low, high, batch[0])
        done = max(before, self._decided(line, high))
        rows = self._shown(line, before, done)
        if low < high:
            periods, now = self.kept["periods"], int(line.times[high - 1 - line.base])
            self.kept["periods"] = periods.take(periods.columns[self.width + 1] > now)
        return rows, done

    def _decided(self, line: Timeline, high: int) -> int:  # noqa: ARG002
        """The first time-point that is not decided where the child is known before `high`."""
        return high

    def _after(self, line: Timeline, rows: Relation) -> Ints:
        """The times after which fresh periods count."""
        most = self.interval[1]
        after = np.full(len(rows), -NEVER, np.int64)
        later = rows.first > 0
        after[later] = NEVER if most is None else line.at(rows.first[later] - 1) + most
        return after

    def _absorb(self, line: Timeline, low: int, high: int, rows: Relation) -> None:
        """Take the child's periods of a batch into what is kept."""
        width, least = self.width, self.interval[0]
        fresh = Relation([*rows.columns, self._after(line, rows)], rows.first, rows.last)
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
        self.kept["periods"] = concat([finished, periods], width + 2)

    def _shown(self, line: Timeline, low: int, high: int) -> Relation:
        """Where the interval lies in a period, at ``low <= i < high``."""
        width, periods = self.width, self.kept["periods"]
        begin = np.maximum(low, line.last_at_most(periods.columns[width]) + 1)
        limit = line.first_at_least(periods.columns[width + 1]) - 1
        end = np.minimum(high - 1, np.maximum(periods.last, limit))
        good = begin <= end
        return coalesce(Relation([column[good] for column in periods.columns[:width]], begin[good], end[good]))


class EarlyHistorically(Historically):
    """`Historically` where the interval lacks 0: decided as soon as the child is known where the interval ends."""

    def _decided(self, line: Timeline, high: int) -> int:
        return ahead(line, high, self.interval[0])


class LastEdge(EarlyHistorically):
    """What held at the last time-point that is as old as the interval's beginning, which is not 0."""

    def _after(self, line: Timeline, rows: Relation) -> Ints:
        return line.at(rows.first) + self.interval[0] - 1


def ahead(line: Timeline, high: int, least: int) -> int:
    """The first time-point to which one at `high`, or later, can be as old as `least`."""
    if high >= line.known:
        return line.known
    return int(line.first_at_least(line.times[high - line.base : high - line.base + 1] + least)[0])


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


class Always(Node):
    """The valuations that hold throughout the interval after; where no time-point lies in it, some of those nearby."""

    reads_times = True

    def __init__(self, child: Node, interval: tuple[int, int]) -> None:
        super().__init__(child.types, (child,))
        self.interval = interval
        # One more column: the first time-point whose interval lies in the period.
        self.kept = {"open": empty(self.width + 1), "undecided": empty(self.width)}

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept; None is a time-point."""
        return {"open": (*self.types, None), "undecided": self.types}

    def _compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:
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


class FirstEdge(Node):
    """What holds at the first time-point that is as late as the interval's beginning, which is not 0."""

    reads_times = True

    def __init__(self, child: Node, interval: tuple[int, int]) -> None:
        super().__init__(child.types, (child,))
        self.interval = interval
        self.kept = {"undecided": empty(self.width)}

    def _compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:  # noqa: ARG002
        (least, most), before, rows = self.interval, self.done, batch[0]
        # Decided is what has its first time-point, and what can have none in the interval any more.
        gone = int(line.first_at_least(np.array([line.next_time(high) - most], np.int64))[0])
        met = int(line.last_at_most(line.times[high - 1 - line.base : high - line.base] - least)[0]) + 1 if high else 0
        done = max(before, min(high, max(gone, met)))
        begin = np.full(len(rows), before, np.int64)
        later = rows.first > 0
        begin[later] = line.last_at_most(line.at(rows.first[later] - 1) - least) + 1
        begin = np.maximum(begin, before)
        end = line.last_at_most(line.at(rows.last) - least)
        good = begin <= end
        found = Relation([column[good] for column in rows.columns], begin[good], end[good])
        made = coalesce(concat([self.kept["undecided"], found], self.width))
        self.kept["undecided"] = made.clip(done, high) if high > done else empty(self.width)
        return made.clip(before, done), done
