"""Policies evaluated time-point by time-point, with a table of satisfying valuations for each: as existing tools do.

MonPoly and VeriMon keep, for every temporal operator, the tables of the time-points in its interval, and make one table
per operator and time-point. This is that evaluation over Python's sets, for the operators of the papers' policies; it
takes the plan of `hamlet.policies` (which operators, over which columns) and nothing of how that evaluates it.

Source: Basin et al. (JACM 2015) §4.2; Schneider et al. (STTT 2021) §6.1 for the policies.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any

from hamlet.policies import Policy
from hamlet.policies.analysis.comparisons import COMPARE
from hamlet.policies.analysis.terms import compiled
from hamlet.policies.operators import nodes, temporal
from hamlet.policies.plan.evaluation import Evaluation

Table = set[tuple[Any, ...]]
Tuples = Mapping[tuple[str, int], Iterable[tuple[Any, ...]]]


class TablesPerTimePoint:
    """A policy, one time-point after the other.

    Parameters
    ----------
    policy : Policy
        With integers as its only values; the operators of the papers' policies, without PREV, NEXT and aggregations.

    Raises
    ------
    NotImplementedError
        At another operator.
    """

    def __init__(self, policy: Policy) -> None:
        evaluation = Evaluation([policy])
        self._nodes = evaluation.nodes
        self._root = evaluation.goals[0].built.node
        self._states = [_state(node) for node in self._nodes]
        self._places = {id(node): place for place, node in enumerate(self._nodes)}
        self.rows = 0

    def feed(self, time: int, tuples: Tuples) -> None:
        """Take a time-point."""
        self._step(time, tuples)

    def close(self) -> None:
        """The end of the stream: what is decided by time-points that follow, each much later."""
        for place in range(1, 4):
            self._step(place * 10**15, None)

    def _step(self, time: int, tuples: Tuples | None) -> None:
        made: list[list[tuple[int, Table]]] = []
        for node, state in zip(self._nodes, self._states, strict=True):
            inputs = [made[self._places[id(child)]] for child in node.children]
            made.append(state.step(time, tuples, inputs))
        self.rows += sum(len(table) for when, table in made[self._places[id(self._root)]] if when < 10**15)


class _State:
    """An operator: from its children's tables to its own, each with its time-stamp."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.queues: list[deque[tuple[int, Table]]] = [deque() for _ in node.children]

    def step(self, time: int, tuples: Tuples | None, inputs: list[list[tuple[int, Table]]]) -> list[tuple[int, Table]]:  # noqa: ARG002
        """Pair the children's tables by time-point."""
        for queue, tables in zip(self.queues, inputs, strict=True):
            queue.extend(tables)
        found = []
        while all(self.queues):
            pairs = [queue.popleft() for queue in self.queues]
            found.append((pairs[0][0], self.table(*(table for _, table in pairs))))
        return found

    def table(self, *tables: Table) -> Table:
        raise NotImplementedError


class _Event(_State):
    def step(self, time: int, tuples: Tuples | None, inputs: Any) -> list[tuple[int, Table]]:  # noqa: ARG002
        node = self.node
        rows = () if tuples is None else tuples.get(node.key, ())
        return [
            (
                time,
                {
                    tuple(row[place] for place in node.columns)
                    for row in rows
                    if all(row[place] == code for place, code in node.constants)
                    and all(row[one] == row[two] for one, two in node.equal)
                },
            )
        ]


class _Filter(_State):
    def table(self, *tables: Table) -> Table:
        node = self.node
        left, right, test = compiled(node.left), compiled(node.right), COMPARE[node.test]
        names = [str(place) for place in range(node.width)]
        found = set()
        for row in tables[0]:
            values = dict(zip(names, row, strict=True))
            if test(left(values), right(values)) != node.negated:
                found.add(row)
        return found


class _Join(_State):
    def table(self, *tables: Table) -> Table:
        node = self.node
        rest = [place for place in range(node.children[1].width) if place not in node.on_right]
        index: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for row in tables[1]:
            index.setdefault(tuple(row[place] for place in node.on_right), []).append(tuple(row[each] for each in rest))
        return {
            (*row, *more) for row in tables[0] for more in index.get(tuple(row[place] for place in node.on_left), ())
        }


class _Minus(_State):
    def table(self, *tables: Table) -> Table:
        node = self.node
        order = sorted(range(len(node.on_right)), key=lambda each: node.on_right[each])
        places = [node.on_left[each] for each in order]
        return {row for row in tables[0] if tuple(row[place] for place in places) not in tables[1]}


class _Union(_State):
    def table(self, *tables: Table) -> Table:
        return tables[0] | {tuple(row[place] for place in self.node.order) for row in tables[1]}


class _Shape(_State):
    def table(self, *tables: Table) -> Table:
        return {tuple(row[place] for place in self.node.columns) for row in tables[0]}


class _Once(_State):
    """The tables in the interval, and how many of them each valuation is in."""

    def __init__(self, node: Any) -> None:
        super().__init__(node)
        self.waiting: deque[tuple[int, Table]] = deque()
        self.inside: deque[tuple[int, Table]] = deque()
        self.counts: Counter[tuple[Any, ...]] = Counter()

    def step(self, time: int, tuples: Tuples | None, inputs: list[list[tuple[int, Table]]]) -> list[tuple[int, Table]]:  # noqa: ARG002
        least, most = self.node.interval
        found = []
        for now, table in inputs[0]:
            self.waiting.append((now, table))
            while self.waiting and self.waiting[0][0] <= now - least:
                self.inside.append(self.waiting.popleft())
                self.counts.update(self.inside[-1][1])
            while most is not None and self.inside and self.inside[0][0] < now - most:
                _leave(self.counts, self.inside.popleft()[1])
            found.append((now, set(self.counts)))
        return found


class _Eventually(_State):
    """As ONCE, forwards: a time-point's table is made once a later one is beyond its interval."""

    def __init__(self, node: Any) -> None:
        super().__init__(node)
        self.seen = 0
        self.undecided: deque[tuple[int, int]] = deque()  # time-point and time-stamp
        self.waiting: deque[tuple[int, int, Table]] = deque()
        self.inside: deque[tuple[int, int, Table]] = deque()
        self.counts: Counter[tuple[Any, ...]] = Counter()

    def step(self, time: int, tuples: Tuples | None, inputs: list[list[tuple[int, Table]]]) -> list[tuple[int, Table]]:  # noqa: ARG002
        least, most = self.node.interval
        found = []
        for now, table in inputs[0]:
            while self.undecided and self.undecided[0][1] + most < now:
                point, when = self.undecided.popleft()
                while self.waiting and self.waiting[0][1] <= when + most:
                    self.inside.append(self.waiting.popleft())
                    self.counts.update(self.inside[-1][2])
                while self.inside and (self.inside[0][0] < point or self.inside[0][1] < when + least):
                    _leave(self.counts, self.inside.popleft()[2])
                found.append((when, set(self.counts)))
            self.undecided.append((self.seen, now))
            self.waiting.append((self.seen, now, table))
            self.seen += 1
        return found


def _leave(counts: Counter[tuple[Any, ...]], table: Table) -> None:
    for row in table:
        counts[row] -= 1
        if not counts[row]:
            del counts[row]


_STATES = {
    nodes.Event: _Event,
    nodes.Filter: _Filter,
    nodes.Join: _Join,
    nodes.Minus: _Minus,
    nodes.Union: _Union,
    nodes.Shape: _Shape,
    temporal.Since: _Once,
    temporal.Until: _Eventually,
}


def _state(node: Any) -> _State:
    kind = _STATES.get(type(node))
    if kind is None or (isinstance(node, temporal.Since | temporal.Until) and len(node.children) > 1):
        raise NotImplementedError(f"the baseline has no {type(node).__name__}")
    return kind(node)
