"""From operators over columns to those over changes, and back: what one keeps is what the other begins with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hamlet.arrays import np
from hamlet.policies.analysis.comparisons import COMPARE, compile_pattern
from hamlet.policies.analysis.terms import compiled, type_of
from hamlet.policies.changes import _changes as changes
from hamlet.policies.changes import _future as future
from hamlet.policies.changes import _past as past
from hamlet.policies.changes import _timeless as timeless
from hamlet.policies.operators.aggregating import STATES, Aggregate, of_nothing
from hamlet.policies.operators.always import Always, Historically
from hamlet.policies.operators.node import NEVER, Node
from hamlet.policies.operators.nodes import (
    ConstantRelation,
    EmptyRelation,
    Event,
    Extend,
    Filter,
    Join,
    Minus,
    Position,
    Shape,
    Union,
)
from hamlet.policies.operators.temporal import Next, Previous, Since, Until
from hamlet.policies.relations.indexed_store import Pending
from hamlet.policies.relations.relation import Relation
from hamlet.policies.relations.values import POOLED, Pool
from hamlet.policies.syntax.formula import Constant, Term, Type, Variable

Row = tuple[int, ...]


def serves(nodes: Sequence[Node]) -> bool:
    """Whether all operators have one over changes."""
    return all(type(node) in _MAKERS and _fits(node) for node in nodes)


def _fits(node: Node) -> bool:
    if isinstance(node, Since | Until):
        return node.interval[0] == 0 or len(node.children) == 1
    return True


def operator_of(node: Node, children: list[changes.Operator]) -> changes.Operator:
    """The operator over changes that goes on where one over columns stands."""
    made = _MAKERS[type(node)](node, children)
    made.seen, made.done = node.seen, node.done
    for queue, pending in zip(made.queues, node.pending, strict=True):
        _fill(queue, pending.whole())
    return made


def give_back(node: Node, made: changes.Operator, line: changes.Line) -> None:
    """Let an operator over columns go on where one over changes stands."""
    node.seen, node.done = made.seen, made.done
    keep = _KEEPERS.get(type(node))
    if keep is not None:
        keep(node, made, line)
    base = made.base()
    for place, (queue, child) in enumerate(zip(made.queues, node.children, strict=True)):
        rows = _waiting(base[place], queue.waiting, node.seen, child.done) if child.done > node.seen else []
        node.pending[place] = Pending(child.width, _relation(child.width, rows))


# ------------------------------------------------------------------------------------------ rows and columns


def rows_of(relation: Relation) -> list[Row]:
    """The valuations of a relation."""
    if not relation.columns:
        return [()] * len(relation)
    return list(zip(*(column.tolist() for column in relation.columns), strict=True))


def _stretches(relation: Relation) -> list[tuple[int, int, Row]]:
    return list(zip(relation.first.tolist(), relation.last.tolist(), rows_of(relation), strict=True))


def _relation(width: int, stretches: Sequence[tuple[int, int, Row]]) -> Relation:
    """Rows with their first and last time-points as a relation."""
    columns = _columns([row for _, _, row in stretches], width)
    first = np.fromiter((first for first, _, _ in stretches), np.int64, len(stretches))
    last = np.fromiter((last for _, last, _ in stretches), np.int64, len(stretches))
    return Relation(columns, first, last)


def _columns(rows: Sequence[Row], width: int) -> list[Any]:
    return [np.fromiter((row[place] for row in rows), np.int64, len(rows)) for place in range(width)]


def _fill(queue: changes.Queue, relation: Relation) -> None:
    """Blocks of what waits."""
    blocks: dict[int, tuple[list[Row], list[Row]]] = {}
    for first, last, row in _stretches(relation):
        blocks.setdefault(first, ([], []))[1].append(row)
        blocks.setdefault(last + 1, ([], []))[0].append(row)
    for point in sorted(blocks):
        queue.put(changes.Block(point, *blocks[point]))


def _waiting(base: Sequence[Row], blocks: Sequence[changes.Block], seen: int, done: int) -> list[tuple[int, int, Row]]:
    """The stretches of what waits."""
    open_since, found = dict.fromkeys(base, seen), []
    for block in blocks:
        if block.point >= done:
            break
        for row in block.gone:
            first = open_since.pop(row)
            if block.point > first:
                found.append((first, block.point - 1, row))
        for row in block.come:
            open_since[row] = block.point
    return found + [(first, done - 1, row) for row, first in open_since.items()]


# --------------------------------------------------------------------------------------------- one by one


def _shapes(node: Shape, children: list[changes.Operator]) -> changes.Operator:
    told = {*node.columns, *(place for place, _ in node.constants), *(two for _, two in node.equal)}
    counted = len(told) < node.children[0].width
    return timeless.Shape(children[0], node.constants, node.equal, node.columns, counted)


def _filters(node: Filter, children: list[changes.Operator]) -> changes.Operator:
    types = {str(place): kind for place, kind in enumerate(node.types)}
    left, right, negated = node.left, node.right, node.negated
    test: Callable[[Row], bool]
    if isinstance(right, str):
        pattern, text = compile_pattern(right), _term(left, node.types, node.pool)
        known: dict[Any, bool] = {}

        def test(row: Row) -> bool:
            value = text(row)
            if value not in known:
                if len(known) > 10_000:
                    known.clear()
                known[value] = _found(pattern, value)
            return known[value] != negated

    else:
        one, two = _term(left, node.types, node.pool), _term(right, node.types, node.pool)
        join = COMPARE.get(node.test, lambda part, text: part in text)

        def test(row: Row) -> bool:
            return join(one(row), two(row)) != negated

        kind = type_of(left, types)
        if isinstance(left, Variable) and isinstance(right, Variable | Constant):
            places = int(left.name), int(right.name) if isinstance(right, Variable) else -1
            code = node.pool.code(right.value) if isinstance(right, Constant) else 0
            if node.test == "=" or (node.test in COMPARE and kind in ("int", "bool") and code < POOLED):
                return timeless.Filter(children[0], timeless.Compare(node.test, *places, code, negated, test))
    return timeless.Filter(children[0], test)


def _found(pattern: Any, text: str) -> bool:
    import pyarrow as pa

    return bool(pattern.found_in(pa.array([text], pa.string()))[0].as_py())


def _term(term: Term, types: Sequence[Type], pool: Pool) -> Callable[[Row], Any]:
    """The value of a term for a row of codes."""
    from hamlet.policies.syntax.formula import term_variables

    names = list(dict.fromkeys(term_variables(term)))
    function, value = compiled(term), pool.value
    if isinstance(term, Constant):
        constant = term.value
        return lambda _: constant
    read = [(name, int(name), types[int(name)]) for name in names]
    return lambda row: function({name: value(row[place], kind) for name, place, kind in read})


def _extends(node: Extend, children: list[changes.Operator]) -> changes.Operator:
    term, code = _term(node.term, node.children[0].types, node.pool), node.pool.code
    return timeless.Extend(children[0], lambda row: code(term(row)))


def _joins(node: Join, children: list[changes.Operator]) -> changes.Operator:
    rest = tuple(place for place in range(node.children[1].width) if place not in node.on_right)
    return timeless.Join(children[0], children[1], node.on_left, node.on_right, rest)


def _aggregates(node: Aggregate, children: list[changes.Operator]) -> changes.Operator:
    pool, kind = node.pool, node.kind
    nothing = 0 if node.groups else pool.code(of_nothing(node.operator, kind))
    return timeless.Aggregate(
        children[0],
        node.operator,
        node.place,
        node.groups,
        STATES[node.operator],
        pool.code,
        lambda code: pool.value(code, kind),
        nothing,
    )


def _shifted(node: Previous | Next, children: list[changes.Operator]) -> changes.Operator:
    back = isinstance(node, Previous)
    return past.Shift(children[0], back, *node.interval, rows_of(node.kept["shifted"]) if back else [])


def _shifted_back(node: Previous, made: past.Shift, line: changes.Line) -> None:  # noqa: ARG001
    rows, blocks = made.relation
    stretches = _waiting(rows, blocks, made.done - 1, made.seen) if made.seen >= made.done else []
    node.kept["shifted"] = _relation(node.width, [(first + 1, last + 1, row) for first, last, row in stretches])


def _since(node: Since, children: list[changes.Operator]) -> changes.Operator:
    alive = node.kept["alive"]
    *columns, after, until = alive.columns
    rows = rows_of(Relation(columns, alive.first, alive.last))
    entries = list(zip(after.tolist(), until.tolist(), rows, strict=True))
    if node.interval[0] > 0:
        return past.Once(children[0], *node.interval, entries)
    last: dict[Row, int] = {}
    for _, end, row in entries:
        last[row] = max(end, last.get(row, end))
    ordered = sorted((end, row) for row, end in last.items())
    left = children[1] if len(children) > 1 else None
    return past.Since(children[0], left, node.interval[1], node.negated, node.key, ordered)


def _since_back(node: Since, made: Any, line: changes.Line) -> None:
    entries = made.alive(line)
    if isinstance(made, past.Since):
        entries = [(-NEVER, until, row) for until, row in entries]
    columns = _columns([(*row, after, until) for after, until, row in entries], node.width + 2)
    point = np.full(len(entries), max(node.seen - 1, 0), np.int64)
    node.kept["alive"] = Relation(columns, point, point)


def _untils(node: Until, children: list[changes.Operator]) -> changes.Operator:
    undecided = _stretches(node.kept["undecided"])
    if node.interval[0] > 0:
        return future.Eventually(children[0], *node.interval, undecided)
    left = node.kept["left"]
    points = (left.last if node.negated else left.first).tolist()
    lefts = list(zip(points, rows_of(left), strict=True))
    second = children[1] if len(children) > 1 else None
    return future.Until(children[0], second, node.interval[1], node.negated, node.key, undecided, lefts)


def _untils_back(node: Until, made: Any, line: changes.Line) -> None:
    if isinstance(made, future.Eventually):
        node.kept["undecided"] = _relation(node.width, made.undecided(line))
        return
    node.kept["undecided"] = _relation(node.width, made.undecided())
    lefts = made.lefts() if len(node.children) > 1 else []
    last = [(point, point if node.negated else node.seen - 1, row) for point, row in lefts]
    node.kept["left"] = _relation(len(node.key), last)


def _historically(node: Historically, children: list[changes.Operator]) -> changes.Operator:
    periods = node.kept["periods"]
    *columns, after, before = periods.columns
    rows = rows_of(Relation(columns, periods.first, periods.last))
    entries = list(zip(after.tolist(), before.tolist(), rows, strict=True))
    return past.Historically(children[0], *node.interval, entries)


def _historically_back(node: Historically, made: past.Historically, line: changes.Line) -> None:  # noqa: ARG001
    entries = made.periods()
    columns = _columns([(*row, after, before) for after, before, row in entries], node.width + 2)
    point = np.full(len(entries), max(node.seen - 1, 0), np.int64)
    node.kept["periods"] = Relation(columns, point, point)


def _always(node: Always, children: list[changes.Operator]) -> changes.Operator:
    going = node.kept["open"]
    *columns, begin = going.columns
    rows = rows_of(Relation(columns, going.first, going.last))
    undecided = _stretches(node.kept["undecided"])
    return future.Always(children[0], *node.interval, undecided, list(zip(begin.tolist(), rows, strict=True)))


def _always_back(node: Always, made: future.Always, line: changes.Line) -> None:  # noqa: ARG001
    undecided, going = made.kept()
    node.kept["undecided"] = _relation(node.width, undecided)
    columns = _columns([(*row, begin) for begin, row in going], node.width + 1)
    point = np.full(len(going), max(node.seen - 1, 0), np.int64)
    node.kept["open"] = Relation(columns, point, point)


_MAKERS: dict[type[Node], Callable[..., changes.Operator]] = {
    Event: lambda node, _: timeless.Event(node.key, node.constants, node.equal, node.columns),
    Position: lambda node, _: timeless.Position(node.name),
    ConstantRelation: lambda node, _: timeless.Constant([node.codes]),
    EmptyRelation: lambda *_: timeless.Constant([]),
    Shape: _shapes,
    Filter: _filters,
    Extend: _extends,
    Join: _joins,
    Minus: lambda node, children: timeless.Minus(children[0], children[1], node.on_left, node.on_right),
    Union: lambda node, children: timeless.Union(children[0], children[1], node.order),
    Aggregate: _aggregates,
    Previous: _shifted,
    Next: _shifted,
    Since: _since,
    Until: _untils,
    Historically: _historically,
    Always: _always,
}
_KEEPERS: dict[type[Node], Callable[..., None]] = {
    Previous: _shifted_back,
    Since: _since_back,
    Until: _untils_back,
    Historically: _historically_back,
    Always: _always_back,
}
