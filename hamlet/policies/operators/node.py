"""What all operators of a policy have in common: the time-points, and what a node keeps of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from hamlet.arrays import np
from hamlet.errors import RestoreError
from hamlet.policies.relations.indexed_store import Pending
from hamlet.policies.relations.relation import (
    Ints,
    Relation,
    coalesce,
    concat,
    empty,
    no_ints,
)
from hamlet.policies.syntax.formula import Type

NEVER = (1 << 62) - 1  # beyond all times and the bounds behind them; sums of two such numbers fit 64 bits


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

    times: Ints = field(default_factory=no_ints)
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
        """Drop the time-stamps before a time-point; their memory goes when there is no room left."""
        self.times = self.times[point - self.base :]
        self.base = point

    @property
    def nbytes(self) -> int:
        """Bytes that are held: also of time-stamps that were dropped, while there is room behind them."""
        room = self.times.base
        return int(room.nbytes - 8 * self.free if isinstance(room, np.ndarray) else self.times.nbytes)

    def at(self, points: Ints) -> Ints:
        """Time-stamps of time-points."""
        return stamps_at(points, self.times, self.base)

    def first_at_least(self, times: Ints) -> Ints:
        """For each time the first time-point that is not earlier; `known` where there is none."""
        return np.searchsorted(self.times, times, "left") + self.base

    def last_at_most(self, times: Ints) -> Ints:
        """For each time the last time-point that is not later."""
        return np.searchsorted(self.times, times, "right") + (self.base - 1)

    def next_time(self, point: int) -> int:
        """A time-stamp that this time-point, and later ones, do not stay below."""
        return int(self.times[point - self.base]) if point < self.known else self.bound


def stamps_at(points: Ints, times: Ints, base: int) -> Ints:
    """Time-stamps of time-points, where those from `base` on are known."""
    places = points - base
    if len(places) and (places.min() < 0 or places.max() >= len(times)):
        raise RestoreError("a time-point has no time-stamp: the monitor comes from a save that somebody has made up")
    return times[places]


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
    indexed_rows : int
        Rows that stand in a store, where `window` is not None.
    loops : frozenset of int
        The LETPASTs, by id, whose own name it depends on while they are evaluated.
    """

    indexed_rows = 0
    window: tuple[int, int] | None = None  # the time-points of an output that can be looked up
    reads_times = False  # whether time-stamps from the first undecided time-point on are needed

    def __init__(self, types: tuple[Type, ...], children: tuple[Node, ...]) -> None:
        self.types = types
        self.children = children
        self.loops: frozenset[int] = frozenset[int]().union(*(child.loops for child in children))
        self.done = 0
        self.seen = 0
        self._output: Relation | None = empty(len(types))
        self.kept: dict[str, Relation] = {}
        self.pending = [Pending(len(child.types)) for child in children]

    @property
    def nesting(self) -> int:
        """How many operators that look at other time-points are nested here, those of its children aside."""
        return int(self.reads_times)

    @property
    def parts(self) -> Sequence[Node]:
        """All operators that have a state of their own here: itself, and those within."""
        return (self,)

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

    def relations(self) -> Iterator[tuple[Relation, tuple[Type | None, ...]]]:
        """All that is kept, after `settle`, and the types of its columns; None is a time or a time-point."""
        kinds = self.kept_types()
        yield from ((rows, kinds[name]) for name, rows in self.kept.items())
        yield from ((each.whole(), child.types) for each, child in zip(self.pending, self.children, strict=True))

    def recode(self, recoded: Callable[[Relation, tuple[Type | None, ...]], Relation]) -> None:
        """Put others in place of the relations that are kept, after `settle`; the last batch is gone."""
        kinds = self.kept_types()
        self.kept = {name: recoded(rows, kinds[name]) for name, rows in self.kept.items()}
        pairs = zip(self.pending, self.children, strict=True)
        self.pending = [Pending(child.width, recoded(each.whole(), child.types)) for each, child in pairs]
        if self._output is not None:
            self._output = empty(self.width)

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
