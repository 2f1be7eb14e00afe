"""Formulas that are propositional for every key: which ones are, and their skeletons.

A formula is propositional if all its *atoms* have the same free variables: none, or those of the whole formula (the
key). Atoms are the sub-formulas without temporal operators, and quantifiers, aggregations and LETs over such operators.
For each key an atom is then true or false at each time-point, and the rest is metric temporal logic over these
propositions. Comparisons of the key's variables alone are atoms, too: for each key they are always true or never.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hamlet.errors import UnsupportedError
from hamlet.policies.syntax import formula as mfotl

Kind = Literal["atom", "true", "not", "and", "or", "prev", "next", "since", "until"]

_MOST_ATOMS = 20  # a set of true atoms is a number


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a skeleton.

    Attributes
    ----------
    kind : str
    first, second : int
        Places of what stands below, smaller than the node's own; of an atom its number.
    low : int
    high : int or None
        The interval of ``prev``, ``next``, ``since`` and ``until``, in ticks; None is without end.
    """

    kind: Kind
    first: int = -1
    second: int = -1
    low: int = 0
    high: int | None = None


@dataclass(frozen=True)
class Skeleton:
    """A propositional formula.

    Attributes
    ----------
    nodes : tuple of Node
        Each behind those below it; the last one is the formula.
    atoms : tuple of Formula
        By number.
    key : tuple of str
        The free variables.
    """

    nodes: tuple[Node, ...]
    atoms: tuple[mfotl.Formula, ...]
    key: tuple[str, ...]

    @property
    def largest(self) -> int:
        """The largest finite bound: differences of times beyond it are all alike."""
        bounds = [bound for node in self.nodes for bound in (node.low, node.high) if bound is not None]
        return max(bounds, default=0)


def skeleton(formula: mfotl.Formula, per_second: int = 1) -> Skeleton:
    """The skeleton of a formula.

    Parameters
    ----------
    formula : Formula
    per_second : int
        Ticks of the stream's time.

    Raises
    ------
    UnsupportedError
        If it is not propositional, with what stands in the way.
    """
    maker = _Maker(mfotl.free_variables(formula), per_second)
    maker.add(formula)
    if len(maker.atoms) > _MOST_ATOMS:
        raise UnsupportedError(f"verdicts are for policies of at most {_MOST_ATOMS} atoms; this one has more")
    return Skeleton(tuple(maker.nodes), tuple(maker.atoms), maker.key)


def is_temporal(formula: mfotl.Formula) -> bool:
    """Whether a temporal operator stands in the formula."""
    timed = isinstance(
        formula, (mfotl.Temporal, mfotl.Since, mfotl.Until, mfotl.Trigger, mfotl.Release, mfotl.TemporalMatch)
    )
    return timed or any(map(is_temporal, mfotl.children(formula)))


def _unfolded(
    formula: mfotl.Formula, name: str, parameters: tuple[str, ...], definition: mfotl.Formula
) -> mfotl.Formula | None:
    """The body of a LET with the definition in place of the name; None where the name has other arguments somewhere."""
    match formula:
        case mfotl.Predicate(each, arguments) if each == name and len(arguments) == len(parameters):
            same = tuple(argument.name for argument in arguments if isinstance(argument, mfotl.Variable)) == parameters
            return definition if same else None
        case mfotl.Let() | mfotl.TemporalMatch():
            return None
    made: dict[str, mfotl.Formula] = {}
    for part in ("left", "right", "body"):
        if hasattr(formula, part) and not isinstance(formula, (mfotl.Comparison, mfotl.Substring)):
            found = _unfolded(getattr(formula, part), name, parameters, definition)
            if found is None:
                return None
            made[part] = found
    return replace(formula, **made) if made else formula  # type: ignore[arg-type]


class _Maker:
    """Nodes of a skeleton, equal ones once."""

    def __init__(self, key: tuple[str, ...], per_second: int) -> None:
        self.key = key
        self.per_second = per_second
        self.nodes: list[Node] = []
        self.atoms: list[mfotl.Formula] = []
        self._places: dict[Node, int] = {}
        self._atoms: dict[mfotl.Formula, int] = {}

    def _node(self, node: Node) -> int:
        place = self._places.get(node)
        if place is None:
            place = self._places[node] = len(self.nodes)
            self.nodes.append(node)
        return place

    def _not(self, place: int) -> int:
        return self._node(Node("not", place))

    def add(self, formula: mfotl.Formula) -> int:
        """The place of a formula, which is made last unless it is there already."""
        place = self._added(formula)
        if place != len(self.nodes) - 1:  # the formula must be the last node
            self.nodes.append(Node("and", place, place))
            place = len(self.nodes) - 1
        return place

    def _added(self, formula: mfotl.Formula) -> int:
        match formula:
            case mfotl.Truth(value):
                true = self._node(Node("true"))
                return true if value else self._not(true)
            case mfotl.Not(body):
                return self._not(self._added(body))
            case mfotl.And(left, right):
                return self._node(Node("and", self._added(left), self._added(right)))
            case mfotl.Or(left, right):
                return self._node(Node("or", self._added(left), self._added(right)))
            case mfotl.Implies(left, right):
                return self._node(Node("or", self._not(self._added(left)), self._added(right)))
            case mfotl.Equiv(left, right):
                one, other = self._added(left), self._added(right)
                both = self._node(Node("and", one, other))
                return self._node(Node("or", both, self._node(Node("and", self._not(one), self._not(other)))))
            case mfotl.Since(interval, left, right):
                return self._bounded("since", self._added(left), self._added(right), interval.ticks(self.per_second))
            case mfotl.Until(interval, left, right):
                return self._bounded("until", self._added(left), self._added(right), interval.ticks(self.per_second))
            case mfotl.Trigger(interval, left, right) | mfotl.Release(interval, left, right):
                kind: Kind = "since" if isinstance(formula, mfotl.Trigger) else "until"
                no, other = (self._not(self._added(each)) for each in (left, right))
                return self._not(self._bounded(kind, no, other, interval.ticks(self.per_second)))
            case mfotl.Temporal(operator, interval, body):
                return self._unary(operator, self._added(body), interval.ticks(self.per_second))
            case mfotl.Let(name, parameters, definition, body) if not isinstance(formula, mfotl.LetPast):
                unfolded = _unfolded(body, name, parameters, definition)
                if unfolded is not None:
                    return self._added(unfolded)
            case mfotl.Comparison() | mfotl.Substring() | mfotl.Matches() if set(mfotl.free_variables(formula)) <= set(
                self.key
            ):
                return self._numbered(formula)
        return self._atom(formula)

    def _bounded(self, kind: Kind, left: int, right: int, bounds: tuple[int, int | None]) -> int:
        return self._node(Node(kind, left, right, *bounds))

    def _unary(self, operator: str, body: int, bounds: tuple[int, int | None]) -> int:
        if operator in ("PREV", "NEXT"):
            return self._node(Node("prev" if operator == "PREV" else "next", body, -1, *bounds))
        true = self._node(Node("true"))
        kind: Kind = "since" if operator in ("ONCE", "HISTORICALLY") else "until"
        if operator in ("ONCE", "EVENTUALLY"):
            return self._bounded(kind, true, body, bounds)
        return self._not(self._bounded(kind, true, self._not(body), bounds))

    def _atom(self, formula: mfotl.Formula) -> int:
        names = mfotl.free_variables(formula)
        if set(names) != set(self.key):
            mine, all_names = (", ".join(each) or "no variable" for each in (names, self.key))
            raise UnsupportedError(
                f"verdicts for every time-point need the same free variables in every predicate, and here one binds "
                f"{mine} where the policy has {all_names}\n"
                "hint: leave out verdicts (--verdicts); rows are then what satisfies the policy"
            )
        return self._numbered(formula)

    def _numbered(self, formula: mfotl.Formula) -> int:
        number = self._atoms.get(formula)
        if number is None:
            number = self._atoms[formula] = len(self.atoms)
            self.atoms.append(formula)
        return self._node(Node("atom", number))
