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

from hamlet.arrays import np
from hamlet.policies.analysis.comparisons import compare, matches, substring
from hamlet.policies.analysis.terms import evaluate
from hamlet.policies.operators.node import Node, Timeline
from hamlet.policies.relations._sweep import group
from hamlet.policies.relations.indexed_store import is_small
from hamlet.policies.relations.relation import (
    Ints,
    Relation,
    coalesce,
    concat,
    empty,
    join,
    minus,
    no_ints,
    whole,
)
from hamlet.policies.relations.values import Pool
from hamlet.policies.syntax.formula import Term, Type

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


class ConstantRelation(Node):
    """One valuation, at all time-points: TRUE, and ``x = 5``."""

    def __init__(self, types: tuple[Type, ...], codes: tuple[int, ...]) -> None:
        super().__init__(types, ())
        self.codes = codes

    def _relation(self, line: Timeline, low: int, high: int, batch: list[Relation]) -> Relation:  # noqa: ARG002
        made = whole(low, high)
        return Relation([np.full(len(made), code, np.int64) for code in self.codes], made.first, made.last)


class EmptyRelation(Node):
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
                from hamlet.policies.analysis.terms import type_of

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
        made = evaluate(self.term, columns, types, len(rows), self.pool) if len(rows) else no_ints()
        return Relation([*rows.columns, made], rows.first, rows.last)


def _named(rows: Relation, types: tuple[Type, ...]) -> tuple[dict[str, Ints], dict[str, Type]]:
    names = [str(place) for place in range(len(types))]
    return dict(zip(names, rows.columns, strict=True)), dict(zip(names, types, strict=True))


def _looked_up(
    node: Node, place: int, on: Sequence[int], others: Relation, keys: Sequence[int], until: int
) -> Relation:
    """A child's rows that fit some others: looked up where it can be, and where these are few."""
    child = node.children[place]
    if not node._stands(place, until) or not is_small(len(others), child.indexed_rows):
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
