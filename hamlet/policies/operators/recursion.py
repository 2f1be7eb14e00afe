"""LETPAST: a relation that depends on itself at earlier time-points, by fixpoint over the time-points.

Within a `Recursion` the operators that depend on the name run again and again over what came with the batch, each time
with as much of the name's relation as is known: since every use looks back, each round decides one time-point at least.
Source: LETPAST as MonPoly and VeriMon have it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hamlet.policies.operators.always import ahead
from hamlet.policies.operators.node import Node, Timeline
from hamlet.policies.operators.temporal import Since
from hamlet.policies.relations.relation import Relation, coalesce, concat, empty
from hamlet.policies.syntax.formula import Type

_FEW_ROWS = 10_000


class Known(Node):
    """A relation that something else has found: what operators within a `Recursion` read."""

    def give(self, rows: Relation, done: int) -> None:
        """Have the rows of the time-points from the last call on and before one."""
        self._output, self.done, self.seen = rows, done, done


class EarlySince(Since):
    """`Since` where the interval lacks 0: decided as soon as the right side is known where the interval ends."""

    def _compute(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> tuple[Relation, int]:
        before, width = self.done, self.width
        found: list[Relation] = []
        if low < high:
            shown, self.kept["alive"] = self.swept(line, low, high, batch, self.kept["alive"])
            found.append(shown)
        done = min(ahead(line, high, self.interval[0]), *(child.done for child in self.children[1:]), line.known)
        done = max(done, before)
        if done > high:
            left = [each.whole().clip(high, done) for each in self.pending[1:]]
            found.append(self.swept(line, high, done, [empty(width), *left], self.kept["alive"])[0])
        return coalesce(concat(found, width)).clip(before, done), done


class Recursion(Node):
    """The meaning of a LETPAST.

    Parameters
    ----------
    name : Known
        What stands for the name within.
    inside : sequence of Node
        The operators that depend on it, children before parents; the last one is the meaning.
    """

    reads_times = True

    def __init__(self, name: Known, inside: Sequence[Node]) -> None:
        own = {id(each) for each in (name, *inside)}
        outside = list(dict.fromkeys(child for each in inside for child in each.children if id(child) not in own))
        super().__init__(inside[-1].types, tuple(outside))
        self.loops -= {id(name)}
        self._name, self._inside = name, list(inside)
        self._given = [Known(each.types, ()) for each in outside]
        for known, read in zip(self._given, outside, strict=True):
            known.loops = read.loops
        stand_ins = dict(zip(outside, self._given, strict=True))
        for each in inside:
            each.children = tuple(stand_ins.get(child, child) for child in each.children)

    @property
    def nesting(self) -> int:
        """How many operators that look at other time-points are nested within."""
        return sum(each.nesting for each in self._inside)

    @property
    def parts(self) -> Sequence[Node]:
        """All operators that have a state of their own here: itself, and those within."""
        within = [part for each in self._inside for part in each.parts]
        return (self, self._name, *self._given, *within)

    def step(self, line: Timeline) -> None:
        """Take the children's outputs of this batch and give one's own."""
        until = min((child.done for child in self.children), default=line.known)
        for known, given in zip(self._given, self._batch(until), strict=True):
            known.give(given, until)
        self.seen = until
        meaning, rows, most = self._inside[-1], 0, _FEW_ROWS
        pieces: list[Relation] = []
        while True:
            before = meaning.done
            for each in self._inside:
                each.step(line)
            for known in self._given:
                known.give(empty(known.width), until)
            if meaning.done == before:
                break
            pieces.append(meaning.output)
            rows += len(meaning.output)
            if rows > most:  # what stays from one time-point to the next is a single period
                pieces = [coalesce(concat(pieces, self.width))]
                rows = len(pieces[0])
                most = _FEW_ROWS + 8 * rows
            self._name.give(meaning.output, meaning.done)
        self._name.give(empty(self.width), meaning.done)
        self._output, self.done = coalesce(concat(pieces, self.width)), meaning.done

    @property
    def oldest(self) -> int | None:
        """The first time-point whose time-stamp is still needed."""
        inside = [each.oldest for each in self._inside if each.oldest is not None]
        return min([self.done - 1, *inside])

    @property
    def nbytes(self) -> int:
        """Bytes of what is kept."""
        return super().nbytes + sum(each.nbytes for each in self._inside)


def known_of(types: tuple[Type, ...]) -> Known:
    """What stands for the name of a LETPAST within its meaning."""
    made = Known(types, ())
    made.loops = frozenset({id(made)})
    return made
