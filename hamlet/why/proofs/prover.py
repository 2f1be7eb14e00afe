"""The proof of a claim: the nodes that it needs and no others, each with what it follows from.

From the claim down, every node asks for those claims of its operands that decide it. What is asked of one formula and
valuation at neighbouring time-points, with one answer, is one node; so a formula's nodes are made when all formulas
above it have asked.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hamlet.policies.syntax.formula import (
    Aggregation,
    And,
    Equiv,
    Exists,
    Forall,
    Formula,
    Implies,
    Let,
    Not,
    Or,
    Predicate,
    Since,
    Temporal,
    Until,
    children,
)
from hamlet.why.proofs.cells import parameters_of
from hamlet.why.proofs.points import within
from hamlet.why.proofs.truth import Scope, Three, Truths, connected, cost, is_past, neighbour
from hamlet.why.proofs.values import Valuation, key_of


@dataclass(slots=True, eq=False)
class Node:
    """A claim: a formula holds, or not, from one time-point to another, for a valuation."""

    formula: Formula
    valuation: Valuation
    low: int
    high: int
    holds: bool
    because: list[tuple[_Request, int, int]] = field(default_factory=list)
    place: int = -1


@dataclass(slots=True, eq=False)
class _Request:
    """What is asked of one formula and valuation: at which time-points, and the nodes that answer."""

    formula: Formula
    valuation: Valuation
    scope: Scope
    points: set[int] = field(default_factory=set)
    nodes: list[Node] = field(default_factory=list)


_Asked = tuple[Formula, Valuation, Scope, int, int]


class Unproved(Exception):
    """The claim does not follow by the definition from what is known of its operands."""


class Prover:
    """Makes proofs over one input.

    Parameters
    ----------
    truths : Truths
    """

    def __init__(self, truths: Truths) -> None:
        self._truths = truths
        self._points = truths.points
        self._requests: dict[Any, _Request] = {}
        self._heap: list[tuple[int, int, _Request]] = []
        self._heights: dict[tuple[int, int], int] = {}

    def prove(self, formula: Formula, valuation: Valuation, scope: Scope, point: int) -> list[Node]:
        """The nodes of a proof, every one behind those that it follows from; the last is the claim.

        Raises
        ------
        Unproved
            If the formula is unknown there.
        """
        if self._truths.now(formula, valuation, scope, point) is None:
            raise Unproved
        self._ask(formula, valuation, scope, point, point)
        made: list[Node] = []
        while self._heap:
            request = heapq.heappop(self._heap)[2]
            self._answer(request)
            made += request.nodes
        made.reverse()
        for place, node in enumerate(made):
            node.place = place
        return made

    def because(self, node: Node) -> list[int]:
        """The places of the nodes from which a node follows."""
        found = {
            each.place
            for request, low, high in node.because
            for each in request.nodes
            if each.low <= high and low <= each.high
        }
        return sorted(found)

    def _ask(self, formula: Formula, valuation: Valuation, scope: Scope, low: int, high: int) -> _Request:
        own = {name: valuation[name] for name in self._truths.free(formula)}
        key = id(formula), key_of(own), id(scope)
        request = self._requests.get(key)
        if request is None:
            request = self._requests[key] = _Request(formula, own, scope)
            heapq.heappush(self._heap, (-self._height(formula, scope), len(self._requests), request))
        request.points.update(range(low, high + 1))
        return request

    def _height(self, formula: Formula, scope: Scope) -> int:
        key = id(formula), id(scope)
        known = self._heights.get(key)
        if known is None:
            below = [(child, scope) for child in children(formula)]
            if isinstance(formula, Let):
                below = [(formula.body, self._truths.inside(formula, scope))]
            if isinstance(formula, Predicate) and (formula.name, len(formula.arguments)) in scope.names:
                let, outer = scope.names[formula.name, len(formula.arguments)]
                below = [(let.definition, outer)]
            known = self._heights[key] = 1 + max((self._height(*each) for each in below), default=0)
        return known

    def _answer(self, request: _Request) -> None:
        """Make the nodes of a request and ask for what they follow from."""
        runs = self._truths.of(
            request.formula, request.valuation, request.scope, min(request.points), max(request.points)
        )
        for first, last, holds in runs:
            node: Node | None = None
            for point in range(first, last + 1):
                if point not in request.points:
                    continue
                if holds is None:
                    raise Unproved
                if node is None or node.high + 1 < point:
                    node = Node(request.formula, request.valuation, point, point, holds)
                    request.nodes.append(node)
                node.high = point
        for node in request.nodes:
            seen = set()
            for each in self._reasons(request, node):
                asked = self._ask(*each)
                if (id(asked), *each[3:]) not in seen:
                    seen.add((id(asked), *each[3:]))
                    node.because.append((asked, *each[3:]))
        request.nodes.sort(key=lambda each: -each.low)

    # --------------------------------------------------------------------------------------------- reasons

    def _reasons(self, request: _Request, node: Node) -> Iterator[_Asked]:
        """The claims from which a node follows."""
        formula, v, scope, low, high = node.formula, node.valuation, request.scope, node.low, node.high
        match formula:
            case Not(body):
                yield body, v, scope, low, high
            case Let(body=body):
                yield body, v, self._truths.inside(formula, scope), low, high
            case And() | Or() | Implies() | Equiv():
                yield from self._of_connective(formula, v, scope, low, high)
            case Exists() | Forall():
                wanted = isinstance(formula, Exists)
                yield from self._of_cells(formula.body, formula.variables, v, scope, node, wanted)
            case Predicate():
                key = formula.name, len(formula.arguments)
                if key in scope.names:
                    let, outer = scope.names[key]
                    inner, names = parameters_of(let, formula, v)
                    assert inner is not None
                    yield from self._of_cells(let.definition, names, inner, outer, node, True)
            case Aggregation():
                groups = {name: v[name] for name in formula.groups}
                names = tuple(name for name in self._truths.free(formula.body) if name not in groups)
                for point in range(low, high + 1):
                    ((_, _, cells),) = self._truths.cells.split(formula.body, names, groups, scope, point, point)
                    for cell in cells:
                        yield formula.body, {**groups, **cell}, scope, point, point
            case Temporal("PREV" | "NEXT"):
                for point in range(low, high + 1):
                    other = neighbour(self._points, formula, point)
                    if other is not None:
                        yield formula.body, v, scope, other, other
            case Temporal():
                yield from self._of_window(formula, v, scope, node)
            case Since() | Until():
                for point in range(low, high + 1):
                    yield from self._of_between(formula, v, scope, point, node.holds)

    def _of_connective(
        self, formula: And | Or | Implies | Equiv, v: Valuation, scope: Scope, low: int, high: int
    ) -> Iterator[_Asked]:
        cheap, dear = sorted((formula.left, formula.right), key=cost)
        swapped = cheap is not formula.left
        for first, last, one in self._truths.of(cheap, v, scope, low, high):
            if (connected(formula, None, one) if swapped else connected(formula, one, None)) is not None:
                yield cheap, v, scope, first, last
                continue
            for start, end, two in self._truths.of(dear, v, scope, first, last):
                yield dear, v, scope, start, end
                if (connected(formula, two, None) if swapped else connected(formula, None, two)) is None:
                    yield cheap, v, scope, start, end

    def _of_cells(
        self, body: Formula, names: tuple[str, ...], v: Valuation, scope: Scope, node: Node, wanted: bool
    ) -> Iterator[_Asked]:
        last_witness = None
        for first, last, cells in self._truths.cells.split(body, names, v, scope, node.low, node.high):
            if node.holds is not wanted:
                for cell in cells:
                    yield body, {**v, **cell}, scope, first, last
                continue
            for point in range(first, last + 1):
                ordered = cells if last_witness is None else [last_witness, *cells]
                last_witness = next(
                    cell for cell in ordered if self._truths.now(body, {**v, **cell}, scope, point) is wanted
                )
                yield body, {**v, **last_witness}, scope, point, point

    def _of_window(self, formula: Temporal, v: Valuation, scope: Scope, node: Node) -> Iterator[_Asked]:
        bounds = formula.interval.ticks(self._points.per_second)
        reach = self._points.before if is_past(formula) else self._points.behind
        wanted = formula.operator in ("ONCE", "EVENTUALLY")
        taken: int | None = None  # the witness of the time-point before serves this one, too, where it can
        for point in range(node.low, node.high + 1):
            first, last = reach(point, *bounds)
            if first > last:
                continue
            if node.holds is not wanted:
                yield formula.body, v, scope, first, last
                continue
            if taken is None or not first <= taken <= last:
                runs = within(self._truths.of(formula.body, v, scope, first, last), first, last)
                found = [(low, high) for low, high, value in runs if value is wanted]
                taken = found[-1][1]
            yield formula.body, v, scope, taken, taken

    def _of_between(
        self, formula: Since | Until, v: Valuation, scope: Scope, point: int, holds: bool
    ) -> Iterator[_Asked]:
        past = isinstance(formula, Since)
        bounds = formula.interval.ticks(self._points.per_second)
        first, last = (self._points.before if past else self._points.behind)(point, *bounds)
        left, right = formula.left, formula.right
        if first > last:
            return
        runs = self._truths.of(right, v, scope, first, last)
        if holds:
            for start, end, value in reversed(runs) if past else runs:
                near = end if past else start
                if value is True and self._throughout(left, v, scope, near, point):
                    yield right, v, scope, near, near
                    if near != point:
                        low, high = (near + 1, point) if past else (point, near - 1)
                        yield left, v, scope, low, high
                    return
        broken = self._broken(formula, v, scope, point, first, last)
        if broken is None:
            yield right, v, scope, first, last
            return
        yield left, v, scope, broken, broken
        low, high = (max(broken, first), last) if past else (first, min(broken, last))
        if low <= high:
            yield right, v, scope, low, high

    def _throughout(self, left: Formula, v: Valuation, scope: Scope, near: int, point: int) -> bool:
        low, high = (near + 1, point) if near <= point else (point, near - 1)
        return all(value is True for _, _, value in self._truths.of(left, v, scope, low, high))

    def _broken(
        self, formula: Since | Until, v: Valuation, scope: Scope, point: int, first: int, last: int
    ) -> int | None:
        """Where the left side fails so near that the right side failing from there suffices; None for nowhere."""
        past = isinstance(formula, Since)
        right: list[tuple[int, int, Three]] = self._truths.of(formula.right, v, scope, first, last)
        live = [(start, end) for start, end, value in right if value is not False]
        if live:
            near = live[-1][1] if past else live[0][0]
        elif cost(formula.left) > cost(formula.right) or first == last:
            return None
        else:
            near = first if past else last
        low, high = (near + 1, point) if past else (point, near - 1)
        failing = [
            (start, end) for start, end, value in self._truths.of(formula.left, v, scope, low, high) if value is False
        ]
        if not failing:
            return None
        return failing[-1][1] if past else failing[0][0]


__all__ = ["Node", "Prover", "Unproved"]
