"""Adjacent predicates as ordered keys: which ones an index answers, and which need a scan over single events.

A conjunction of equalities and at most one comparison, each with the earlier event on one side and the later on the
other, is a search among sorted keys. ``<>`` is both ``<`` and ``>``. Everything else is a scan.

The sums are those of ``hamlet/kernel/operators/event_store/index.pyx``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hamlet.language.conditions import references
from hamlet.language.query import AttributeType, Comparison, Condition, Expression, Shift
from optimizer.condition import MIRRORED

Kind = Callable[[Expression], AttributeType | None]


@dataclass(frozen=True, slots=True)
class Keys:
    """One search: pairs of an expression over the earlier event and one over the later.

    Attributes
    ----------
    equal : tuple of (Expression, Expression)
    ordered : tuple of (Expression, Expression) or None
    operator : str
        ``<``, ``<=``, ``>`` or ``>=`` from the earlier event's key to the later one's; without `ordered` empty.
    """

    equal: tuple[tuple[Expression, Expression], ...]
    ordered: tuple[Expression, Expression] | None = None
    operator: str = ""

    @property
    def pairs(self) -> tuple[tuple[Expression, Expression], ...]:
        """All pairs, the ordered one last."""
        return self.equal if self.ordered is None else (*self.equal, self.ordered)


def keys_of(conditions: Sequence[Condition], kind: Kind, scale: Callable[[Expression], int]) -> tuple[Keys, ...]:
    """The searches that together answer the conditions of a pair; none where only a scan does.

    Parameters
    ----------
    conditions : sequence of Condition
        All must hold; references to the later event have `Shift.NEXT`.
    kind : callable
        The type of an expression; None where it is not known.
    scale : callable
        Ticks per second of a TIMESTAMP expression.
    """
    if not are_apart(conditions):
        return ()
    equal: list[tuple[Expression, Expression]] = []
    ordered: tuple[Expression, Expression] | None = None
    operator = ""
    for earlier, later, comparison in filter(None, map(_sides, conditions)):
        type = kind(earlier)
        if type is None or kind(later) is not type or scale(earlier) != scale(later):
            return ()
        if comparison == "=":
            equal.append((earlier, later))
        elif type is AttributeType.STRING and comparison != "<>":
            return ()  # numbers of strings are in order of first sight
        else:
            ordered, operator = (earlier, later), comparison
    if operator == "<>":
        return tuple(Keys(tuple(equal), ordered, each) for each in ("<", ">"))
    return (Keys(tuple(equal), ordered, operator),)


def are_apart(conditions: Sequence[Condition]) -> bool:
    """Whether conditions compare the earlier event with the later one, at most one of them by more than equality.

    Whatever the types: keys answer such conditions as soon as types are known that have keys.
    """
    found = [_sides(condition) for condition in conditions]
    return None not in found and sum(sides is not None and sides[2] != "=" for sides in found) <= 1


def _sides(condition: Condition) -> tuple[Expression, Expression, str] | None:
    """The earlier event's side, the later one's, and the comparison between them; None where they are mixed."""
    if not isinstance(condition, Comparison):
        return None
    shifts = [_shifts(side) for side in (condition.left, condition.right)]
    if shifts == [{Shift.NONE}, {Shift.NEXT}]:
        return condition.left, condition.right, condition.operator
    if shifts == [{Shift.NEXT}, {Shift.NONE}]:
        return condition.right, condition.left, MIRRORED[condition.operator]
    return None


def _shifts(side: Expression) -> set[Shift]:
    return {reference.shift for reference in references(side)}
