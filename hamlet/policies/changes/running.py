"""An evaluation that goes on by changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hamlet.arrays import np
from hamlet.policies.changes import _changes as changes
from hamlet.policies.changes import _timeless as timeless
from hamlet.policies.changes.made import Row, give_back, operator_of
from hamlet.policies.operators.node import Node, Timeline

Tuples = Mapping[tuple[str, int], list[tuple[int, Row]]]
Found = list[tuple[int, int, list[Row]]]  # time, time-point, rows
FEW = 16  # rows of a batch that are worked out one by one, whatever is kept
MOST = 256  # rows of a batch that are worked out one by one where others were before
_SHARE = 16  # a larger batch may be, too, where it is no more than this part of what is kept
_STAYS = 6  # once they are, larger batches in a row are until all of them are no less than this part of what is kept
_ROW = 8e-6  # seconds for a row that is worked out by itself; measured
_SOON = 20_000  # rows that are kept for each small batch that has to be seen before it is worth to move them
ROW_BYTES = 125  # of a valuation that an operator keeps: its tuple, its numbers, and entries of dicts; measured
_BLOCK_BYTES = 216  # of what changes at a time-point and waits for another operator; measured


class Changing:
    """The operators of an evaluation over changes, made from those over columns.

    Parameters
    ----------
    nodes : sequence of Node
        Children before parents; all have an operator over changes.
    goals : sequence of Node
    line : Timeline
    """

    def __init__(self, nodes: Sequence[Node], goals: Sequence[Node], line: Timeline) -> None:
        self._nodes = nodes
        self._line = changes.Line(line.times.tolist(), line.base, line.bound)
        made: dict[Node, changes.Operator] = {}
        for node in nodes:
            node.settle()
            made[node] = operator_of(node, [made[child] for child in node.children])
        self._operators = list(made.values())
        self._goals = [timeless.Answers(made[node]) for node in goals]
        self._looking = [made[node] for node in nodes if node.reads_times]
        changes.hide([*self._operators, *self._goals])

    @property
    def known(self) -> int:
        """Time-points so far."""
        known: int = self._line.known
        return known

    @property
    def last_time(self) -> int | None:
        """The time-stamp of the last time-point, None where there is none."""
        return None if self.known == self._line.base else int(self._line.at(self.known - 1))

    @property
    def rows(self) -> int:
        """Valuations that are kept, and time-points at which some that wait for others change."""
        return self._waiting + self._kept

    @property
    def _waiting(self) -> int:
        return sum(len(queue) for each in self._operators for queue in each.queues)

    @property
    def _kept(self) -> int:
        return sum(each.rows for each in self._operators) + sum(each.count for each in self._goals)

    @property
    def nbytes(self) -> int:
        """Bytes that are kept, an estimate."""
        return ROW_BYTES * self._kept + _BLOCK_BYTES * self._waiting + int(self._line.nbytes)

    def feed(self, times: Sequence[int], tuples: Tuples, bound: int | None) -> list[Found]:
        """Take time-points; give the rows that are decided by them, per goal, in no order within a time-point."""
        line = self._line
        for time in times:
            line.add(time)
        if bound is not None and bound > line.bound:
            line.bound = bound
        line.tables = tuples
        changes.advance(self._operators, line)
        found = [goal.take(line) for goal in self._goals]
        if line.known - line.base > 64:
            oldest = min(
                [line.known - 1, *(each.oldest for each in self._looking), *(goal.seen for goal in self._goals)]
            )
            line.forget(oldest)
        return found

    def give_back(self, line: Timeline) -> None:
        """Let the operators over columns go on."""
        own = self._line
        line.base, line.known, line.bound = own.base, own.known, own.bound
        line.times, line.free = np.array(own.tolist(), np.int64), 0
        # Parents first: what waits for one of them is up to where its child is.
        for node, made in zip(self._nodes, self._operators, strict=True):
            node.done = made.done
        for node, made in zip(self._nodes, self._operators, strict=True):
            give_back(node, made, own)


def is_few(rows: int, kept: int) -> bool:
    """Whether so many rows may be worked out one by one where so many are kept."""
    return rows <= MOST or rows * _SHARE <= kept


def is_slow(rows: int, seconds: float) -> bool:
    """Whether rows that took so long in columns had better be worked out one by one."""
    return seconds > 2 * _ROW * rows


def is_time(batches: int, kept: int) -> bool:
    """Whether, after some small batches in a row, it is worth to move what is kept."""
    return batches > min(kept // _SOON, 4)


def goes_on(rows: int, kept: int) -> bool:
    """Whether so many rows, those of large batches in a row, are not yet worth to move what is kept back."""
    return rows * _STAYS <= kept
