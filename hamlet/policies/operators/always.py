"""HISTORICALLY and ALWAYS of a finite relation: where it holds at every time-point of the interval."""

from __future__ import annotations

import numpy as np

from hamlet.policies.operators.node import NEVER, Node, Timeline
from hamlet.policies.relations.relation import Relation, coalesce, concat, empty, overlapping
from hamlet.policies.syntax.formula import Type


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

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:
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
