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

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hamlet.policies._sweep import group
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
    whole,
)
from hamlet.policies.standing import Pending, is_small
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
    free : int
        Room behind `times`.
    """

    times: Ints = field(default_factory=lambda: NO_INTS)
    base: int = 0
    known: int = 0
    bound: int = -NEVER
    fresh: int = 0
    tables: dict[tuple[str, int], tuple[list[Ints], Ints]] = field(default_factory=dict)
    free: int = 0

    def extend(self, times: Ints) -> None:
        """More time-stamps; room for as many again is kept, so that each is copied a few times at most."""
        if not len(times):
            return
        held, count = len(self.times), len(self.times) + len(times)
        room = self.times.base
        if not isinstance(room, np.ndarray) or self.free < len(times):
            room = np.empty(2 * count + 64, np.int64)
            room[:held] = self.times
            self.free = len(room) - held
        end = len(room) - self.free
        room[end : end + len(times)] = times
        self.free -= len(times)
        self.times = room[end - held : end + len(times)]

    def forget(self, point: int) -> None:
        """Drop the time-stamps before a time-point."""
        self.times = self.times[point - self.base :].copy()
        self.base, self.free = point, 0

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
        What later batches need; see `settle`.
    standing : int
        Rows that stand in a store, where `window` is not None.
    """

    standing = 0
    window: tuple[int, int] | None = None  # the time-points of an output that can be looked up
    reads_times = False  # whether time-stamps from the first undecided time-point on are needed

    def __init__(self, types: tuple[Type, ...], children: tuple[Node, ...]) -> None:
        self.types = types
        self.children = children
        self.done = 0
        self.seen = 0
        self._output: Relation | None = empty(len(types))
        self.kept: dict[str, Relation] = {}
        self.pending = [Pending(len(child.types)) for child in children]

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.types)

    @property
    def output(self) -> Relation:
        """The relation of the last batch."""
        if self._output is None:
            self._output = self._everything()
        return self._output

    def step(self, line: Timeline) -> None:
        """Take the children's outputs of this batch and give one's own."""
        until = min((child.done for child in self.children), default=line.known)
        batch = self._batch(until)
        low, self.seen = self.seen, until
        self._output, self.done = self._compute(line, low, until, batch)

    def _batch(self, until: int) -> list[Relation]:
        """The children's relations up to a time-point."""
        return [self._of_child(place, until) for place in range(len(self.children))]

    def _of_child(self, place: int, until: int) -> Relation:
        """A child's relation up to a time-point; what it has beyond is kept."""
        child, pending = self.children[place], self.pending[place]
        rows = child.output
        now = rows.clip(self.seen, until)
        if pending:  # a period that went on in the next batch is one period again
            earlier = pending.take(until)
            now = coalesce(concat([earlier, now], child.width)) if len(earlier) else now
        if child.done > until:
            pending.add(rows.clip(until, child.done))
        return now

    def _stands(self, place: int, until: int) -> bool:
        """Whether a child's relation up to a time-point is that of its batch, and can be looked up."""
        child = self.children[place]
        return child.window == (self.seen, until) and child.done == until and not self.pending[place]

    def matching(self, on: tuple[int, ...], keys: Sequence[Ints], count: int) -> Relation:
        """Those rows of the last batch whose columns `on` are one of `count` keys, where `window` is not None."""
        raise NotImplementedError

    def _everything(self) -> Relation:
        """All rows of the last batch, where `window` is not None."""
        raise NotImplementedError

    def settle(self) -> None:
        """Let `kept` be all that is kept."""

    def _compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation | None, int]:
        """The relation of the batch, from the children's at time-points ``low <= i < high``; what is decided then.

        None is a relation that can be looked up.
        """
        return self._relation(line, low, high, batch), high

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:
        """The relation of an operator that decides a time-point as soon as its children have decided it."""
        raise NotImplementedError

    def kept_types(self) -> dict[str, tuple[Type | None, ...]]:
        """The types of the columns of what is kept; None is a time or a time-point."""
        return dict.fromkeys(self.kept, self.types)

    @property
    def oldest(self) -> int | None:
        """The first time-point whose time-stamp is still needed, if any is."""
        return min(self.done, self.seen) - 1 if self.reads_times else None

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return sum(each.nbytes for each in self.kept.values()) + sum(each.nbytes for each in self.pending)


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

    @property
    def places(self) -> set[int]:
        """The fields that are read."""
        return {
            *self.columns,
            *(place for place, _ in self.constants),
            *(place for pair in self.equal for place in pair),
        }

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
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

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        points = np.arange(low, high, dtype=np.int64)
        columns = {"tp": [points], "ts": [line.at(points)], "tpts": [points, line.at(points)]}
        return Relation(columns[self.name], points, points)


class Always(Node):
    """One valuation, at all time-points: TRUE, and ``x = 5``."""

    def __init__(self, types: tuple[Type, ...], codes: tuple[int, ...]) -> None:
        super().__init__(types, ())
        self.codes = codes

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        made = whole(low, high)
        return Relation([np.full(len(made), code, np.int64) for code in self.codes], made.first, made.last)


class Never(Node):
    """No valuation: FALSE."""

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
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

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        return _shaped(batch[0], self.constants, self.equal, self.columns)


class Filter(Node):
    """The rows that pass a test, or fail it; the terms' variables are places of columns."""

    def __init__(self, child: Node, test: str, left: Term, right: Term | str, negated: bool, pool: Pool) -> None:
        super().__init__(child.types, (child,))
        self.test, self.left, self.right, self.negated, self.pool = test, left, right, negated, pool

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
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

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        rows = batch[0]
        columns, types = _named(rows, self.children[0].types)
        made = evaluate(self.term, columns, types, len(rows), self.pool) if len(rows) else NO_INTS
        return Relation([*rows.columns, made], rows.first, rows.last)


def _named(rows: Relation, types: tuple[Type, ...]) -> tuple[dict[str, Ints], dict[str, Type]]:
    names = [str(place) for place in range(len(types))]
    return dict(zip(names, rows.columns, strict=True)), dict(zip(names, types, strict=True))


def _looked_up(
    node: Node, place: int, on: Sequence[int], others: Relation, keys: Sequence[int], until: int
) -> Relation:
    """A child's rows that fit some others: looked up where it can be, and where these are few."""
    child = node.children[place]
    if not node._stands(place, until) or not is_small(len(others), child.standing):
        return node._of_child(place, until)
    columns = [others.columns[each] for each in keys]
    _, heads = group(columns, len(others))
    return child.matching(tuple(on), [column[heads] for column in columns], len(heads))


class Join(Node):
    """AND: the left columns, then those of the right side that are not shared."""

    def __init__(self, left: Node, right: Node, on_left: tuple[int, ...], on_right: tuple[int, ...]) -> None:
        rest = tuple(kind for place, kind in enumerate(right.types) if place not in on_right)
        super().__init__((*left.types, *rest), (left, right))
        self.on_left, self.on_right = on_left, on_right

    def _batch(self, until: int) -> list[Relation]:
        if self._stands(0, until):
            right = self._of_child(1, until)
            return [_looked_up(self, 0, self.on_left, right, self.on_right, until), right]
        left = self._of_child(0, until)
        return [left, _looked_up(self, 1, self.on_right, left, self.on_left, until)]

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        return join(batch[0], batch[1], self.on_left, self.on_right)


class Minus(Node):
    """AND NOT: the left rows without those that the right side has; `on_right` are all of its columns."""

    def __init__(self, left: Node, right: Node, on_left: tuple[int, ...], on_right: tuple[int, ...]) -> None:
        super().__init__(left.types, (left, right))
        self.on_left, self.on_right = on_left, on_right

    def _batch(self, until: int) -> list[Relation]:
        left = self._of_child(0, until)
        return [left, _looked_up(self, 1, self.on_right, left, self.on_left, until)]

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        return minus(batch[0], batch[1], self.on_left, self.on_right)


class Union(Node):
    """OR; `order` are the right side's columns in the order of the left side's."""

    def __init__(self, left: Node, right: Node, order: tuple[int, ...]) -> None:
        super().__init__(left.types, (left, right))
        self.order = order

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        return coalesce(concat([batch[0], batch[1].select(self.order)], self.width))
