"""The proof of a claim: the nodes that it needs and no others, each with what it follows from.

From the claim down, every node asks for those claims of its operands that decide it. What is asked of one formula and
valuation at neighbouring time-points, with one answer, is one node.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hamlet.policies.syntax import formula as mfotl
from hamlet.why.claims import in_order
from hamlet.why.proofs.cells import parameters_of
from hamlet.why.proofs.points import within
from hamlet.why.proofs.truth import Connective, Scope, Three, Timed, Truths, cost, is_dual, is_past, neighbour, operands
from hamlet.why.proofs.values import Valuation, key_of


@dataclass(slots=True, eq=False)
class Node:
    """A claim: a formula holds, or not, from one time-point to another, for a valuation."""

    formula: mfotl.Formula
    valuation: Valuation
    low: int
    high: int
    holds: bool
    below: list[Node] = field(default_factory=list)
    place: int = -1


@dataclass(slots=True, eq=False)
class _Request:
    """What is asked of one formula and valuation.

    Attributes
    ----------
    holds : dict
        The answer at each time-point that was asked about.
    because : list
        From which time-point to which, a request that the answers follow from, and its time-points.
    """

    formula: mfotl.Formula
    valuation: Valuation
    scope: Scope
    holds: dict[int, bool] = field(default_factory=dict)
    because: list[tuple[int, int, _Request, int, int]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)


_TRIED = 100  # claims that are left out one by one where a match fails all the same

_Asked = tuple[mfotl.Formula, Valuation, Scope, int, int]


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
        self._todo: list[tuple[_Request, int, int]] = []
        self._apart: list[list[Node]] = []  # of formulas that may need themselves at other time-points

    def prove(self, formula: mfotl.Formula, valuation: Valuation, scope: Scope, point: int) -> list[Node]:
        """The nodes of a proof, every one behind those that it follows from; the last is the claim.

        Raises
        ------
        Unproved
            If the formula is unknown there.
        """
        claim = self._ask(formula, valuation, scope, point, point)
        while self._todo:
            self._answer(*self._todo.pop())
        for request in self._requests.values():
            self._join(request)
        for request in self._requests.values():
            for low, high, other, first, last in request.because:
                below = [each for each in other.nodes if each.low <= last and first <= each.high]
                for node in request.nodes:
                    if node.low <= high and low <= node.high:
                        node.below += [each for each in below if each not in node.below]
        made = in_order(claim.nodes[0])
        if self._apart:
            made = self._joined(made)
        return made

    def _joined(self, made: list[Node]) -> list[Node]:
        """Make one node of neighbours that LETPAST kept apart, where neither needs the other.

        Nodes of one height, which is the longest way down, do not need each other; so joining those makes no circle.
        """
        heights: list[int] = []
        for node in made:
            heights.append(1 + max((heights[each.place] for each in node.below), default=-1))
        joined: dict[int, Node] = {}
        for nodes in self._apart:
            last: Node | None = None
            for node in nodes:
                if (
                    last is not None
                    and node.place >= 0
                    and (last.high + 1, last.holds, heights[last.place]) == (node.low, node.holds, heights[node.place])
                ):
                    joined[id(node)] = last
                    last.high = node.high
                    last.below += [each for each in node.below if each not in last.below]
                    continue
                last = node if node.place >= 0 else None
        for node in made:
            node.below = list(dict.fromkeys(joined.get(id(each), each) for each in node.below))
        return in_order(made[-1])

    def _ask(self, formula: mfotl.Formula, valuation: Valuation, scope: Scope, low: int, high: int) -> _Request:
        own = {name: valuation[name] for name in self._truths.free(formula)}
        key = self._truths.meaning(formula, scope), key_of(own)
        request = self._requests.get(key)
        if request is None:
            request = self._requests[key] = _Request(formula, own, scope)
        for first, last, holds in self._truths.of(formula, own, scope, low, high):
            new = [point for point in range(first, last + 1) if point not in request.holds]
            if not new:
                continue
            if holds is None:
                raise Unproved
            request.holds.update(dict.fromkeys(new, holds))
            parts = [(each, each) for each in new] if self._recursive(formula, scope) else _ranges(new)
            self._todo += [(request, *each) for each in parts]
        return request

    def _answer(self, request: _Request, low: int, high: int) -> None:
        """Ask for what a formula's answers follow from."""
        node = Node(request.formula, request.valuation, low, high, request.holds[low])
        for each in self._reasons(request, node):
            request.because.append((low, high, self._ask(*each), *each[3:]))

    def _join(self, request: _Request) -> None:
        """Make one node of neighbouring time-points with one answer."""
        apart = self._recursive(request.formula, request.scope)
        for point, holds in sorted(request.holds.items()):
            last = request.nodes[-1] if request.nodes else None
            if last is not None and not apart and last.high + 1 == point and last.holds is holds:
                last.high = point
            else:
                request.nodes.append(Node(request.formula, request.valuation, point, point, holds))
        if apart and len(request.nodes) > 1:
            self._apart.append(request.nodes)

    def _recursive(self, formula: mfotl.Formula, scope: Scope) -> bool:
        """Whether a formula uses what LETPAST defines by itself, so that it may need itself at another time-point."""
        if isinstance(formula, mfotl.Predicate):
            let, outer = scope.names.get((formula.name, len(formula.arguments)), (None, scope))
            return let is not None and (isinstance(let, mfotl.LetPast) or self._recursive(let.definition, outer))
        if isinstance(formula, mfotl.Let):
            return self._recursive(formula.body, self._truths.inside(formula, scope))
        return any(self._recursive(child, scope) for child in mfotl.children(formula))

    # --------------------------------------------------------------------------------------------- reasons

    def _reasons(self, request: _Request, node: Node) -> Iterator[_Asked]:
        """The claims from which a node follows."""
        formula, v, scope, low, high = node.formula, node.valuation, request.scope, node.low, node.high
        match formula:
            case mfotl.Not(body):
                yield body, v, scope, low, high
            case mfotl.Let(body=body):
                yield body, v, self._truths.inside(formula, scope), low, high
            case mfotl.And() | mfotl.Or() | mfotl.Implies() | mfotl.Equiv():
                yield from self._of_connective(formula, v, scope, low, high)
            case mfotl.Exists() | mfotl.Forall():
                wanted = isinstance(formula, mfotl.Exists)
                yield from self._of_cells(formula.body, formula.variables, v, scope, node, wanted)
            case mfotl.Predicate():
                key = formula.name, len(formula.arguments)
                if key in scope.names:
                    let, outer = scope.names[key]
                    inner, names = parameters_of(let, formula, v)
                    assert inner is not None
                    yield from self._of_cells(let.definition, names, inner, outer, node, True)
            case mfotl.Aggregation():
                groups = {name: v[name] for name in formula.groups}
                names = tuple(name for name in self._truths.free(formula.body) if name not in groups)
                for point in range(low, high + 1):
                    ((_, _, cells),) = self._truths.cells.split(formula.body, names, groups, scope, point, point)
                    for cell in cells:
                        yield formula.body, {**groups, **cell}, scope, point, point
            case mfotl.Temporal("PREV" | "NEXT"):
                for point in range(low, high + 1):
                    other = neighbour(self._points, formula, point)
                    if other is not None:
                        yield formula.body, v, scope, other, other
            case mfotl.Temporal():
                yield from self._of_window(formula, v, scope, node)
            case mfotl.TemporalMatch():
                for point in range(low, high + 1):
                    yield from self._of_match(formula, v, scope, point)
            case mfotl.Since() | mfotl.Until() | mfotl.Trigger() | mfotl.Release():
                for point in range(low, high + 1):
                    yield from self._of_between(formula, v, scope, point, node.holds)

    def _of_connective(self, formula: Connective, v: Valuation, scope: Scope, low: int, high: int) -> Iterator[_Asked]:
        cheap, dear, value = operands(formula)
        for first, last, one in self._truths.of(cheap, v, scope, low, high):
            if value(one, None) is not None:
                yield cheap, v, scope, first, last
                continue
            for start, end, two in self._truths.of(dear, v, scope, first, last):
                yield dear, v, scope, start, end
                if value(None, two) is None:
                    yield cheap, v, scope, start, end

    def _of_cells(
        self, body: mfotl.Formula, names: tuple[str, ...], v: Valuation, scope: Scope, node: Node, wanted: bool
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

    def _of_window(self, formula: mfotl.Temporal, v: Valuation, scope: Scope, node: Node) -> Iterator[_Asked]:
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

    def _of_match(self, formula: mfotl.TemporalMatch, v: Valuation, scope: Scope, point: int) -> Iterator[_Asked]:
        path = self._truths.paths(formula, v, scope, point, True)
        if path is not None:
            for part, at in path:
                yield part, v, scope, at, at
            return
        seen: set[tuple[int, int]] = set()
        self._truths.paths(formula, v, scope, point, None, seen)
        parts = {id(part): part for part in mfotl.children(formula)}
        failing = {(parts[part_id], at): None for part_id, at in sorted(seen, key=lambda each: each[1])}
        for claim in list(failing) if len(failing) <= _TRIED else ():  # some stand on ways that lead nowhere
            if self._truths.paths(formula, v, scope, point, None, failing=failing.keys() - {claim}) is None:
                del failing[claim]
        for part, at in failing:
            yield part, v, scope, at, at

    def _of_between(self, formula: Timed, v: Valuation, scope: Scope, point: int, holds: bool) -> Iterator[_Asked]:
        past, dual = is_past(formula), is_dual(formula)
        bounds = formula.interval.ticks(self._points.per_second)
        first, last = (self._points.before if past else self._points.behind)(point, *bounds)
        left, right = formula.left, formula.right
        if first > last:
            return
        runs = self._truths.of(right, v, scope, first, last)
        if holds is not dual:
            for start, end, value in reversed(runs) if past else runs:
                near = end if past else start
                if value is (not dual) and self._throughout(left, v, scope, near, point, not dual):
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

    def _throughout(self, left: mfotl.Formula, v: Valuation, scope: Scope, near: int, point: int, wanted: bool) -> bool:
        low, high = (near + 1, point) if near <= point else (point, near - 1)
        return all(value is wanted for _, _, value in self._truths.of(left, v, scope, low, high))

    def _broken(self, formula: Timed, v: Valuation, scope: Scope, point: int, first: int, last: int) -> int | None:
        """Where the left side fails so near that the right side failing from there suffices; None for nowhere."""
        past, dual = is_past(formula), is_dual(formula)
        right: list[tuple[int, int, Three]] = self._truths.of(formula.right, v, scope, first, last)
        live = [(start, end) for start, end, value in right if value is not dual]
        if live:
            near = live[-1][1] if past else live[0][0]
        elif cost(formula.left) > cost(formula.right) or first == last:
            return None
        else:
            near = first if past else last
        low, high = (near + 1, point) if past else (point, near - 1)
        failing = [
            (start, end) for start, end, value in self._truths.of(formula.left, v, scope, low, high) if value is dual
        ]
        if not failing:
            return None
        return failing[-1][1] if past else failing[0][0]


def _ranges(points: list[int]) -> Iterator[tuple[int, int]]:
    """Ascending time-points as ranges."""
    start = points[0]
    for one, two in itertools.pairwise([*points, points[-1] + 2]):
        if two > one + 1:
            yield start, one
            start = two


__all__ = ["Node", "Prover", "Unproved"]
