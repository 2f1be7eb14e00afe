"""What is bound around a temporal operator, moved inside it: the interval is looked through in the other direction.

``p(x) AND ONCE[0,5] f`` is ``p(x) AND ONCE[0,5] (EVENTUALLY[0,5] p(x) AND f)``. Source: MonPoly's propagation of range
restrictions.
"""

from __future__ import annotations

from dataclasses import replace

from hamlet.policies.analysis.rewriting import Edge, Throughout, negation
from hamlet.policies.syntax.formula import (
    And,
    Bound,
    Formula,
    Interval,
    Not,
    Or,
    Release,
    Since,
    Temporal,
    Trigger,
    Truth,
    Until,
)

_DUAL = {"ONCE": "EVENTUALLY", "EVENTUALLY": "ONCE", "PREV": "NEXT", "NEXT": "PREV"}


def moved_in_time(part: Formula, around: Formula) -> list[Formula]:
    """Formulas that equal a temporal one wherever `around` holds, and that are finite more often; the first is best."""
    span = part.span
    match part:
        case Temporal("HISTORICALLY" | "ALWAYS" as operator, interval, body) if not isinstance(part, Throughout):
            kind = "ONCE" if operator == "HISTORICALLY" else "EVENTUALLY"
            no = Not(Temporal(kind, interval, negation(body), span=span), span=span)
            return [And(around, no, span=span), vacuous(part, around, kind)]
        case Temporal(operator, interval, body) if operator in _DUAL:
            if interval.high is None and operator == "ONCE":
                return []
            beside = Temporal(_DUAL[operator], interval, around, span=span)
            return [replace(part, body=And(beside, body, span=body.span))]
        case Since(interval, left, right) | Until(interval, left, right):
            if interval.high is None:
                return []
            dual = "EVENTUALLY" if isinstance(part, Since) else "ONCE"
            beside = Temporal(dual, interval, around, span=span)
            near = Temporal(dual, Interval(Bound(0), interval.high), around, span=span)
            second = And(beside, right, span=right.span)
            guarded_left = And(near, left, span=left.span)
            return [
                replace(part, right=second),
                replace(part, left=guarded_left),
                replace(part, left=guarded_left, right=second),
            ]
        case Trigger() | Release():
            return [_dual(part, around)]
    return []


def _dual(part: Trigger | Release, around: Formula) -> Formula:
    """TRIGGER or RELEASE whose interval lacks 0, as what it can come from where `around` binds its variables.

    The left side held nearer than the interval; or the right side holds throughout it; or it holds from the edge that
    is nearer up to where the left side holds, too; or nothing lies in the interval.
    """
    span, interval = part.span, part.interval
    past = isinstance(part, Trigger)
    some, every = ("ONCE", "HISTORICALLY") if past else ("EVENTUALLY", "ALWAYS")
    low, both = interval.low, And(part.right, part.left, span=span)
    nearer = Interval(Bound(0), Bound(low.value, low.unit, open=not low.open))
    reach = Interval(Bound(0), interval.high)
    kind = Since if past else Until
    ways: list[Formula] = [
        Temporal(some, nearer, part.left, span=span),
        Throughout(every, interval, part.right, span=span),
        Edge(every, interval, kind(reach, part.right, both, span=span), span=span),
        Not(Temporal(some, interval, Truth(True), span=span), span=span),
    ]
    made: Formula = And(around, ways[0], span=span)
    for way in ways[1:]:
        made = Or(made, And(around, way, span=span), span=span)
    return made


def vacuous(part: Temporal, around: Formula, kind: str) -> Formula:
    """HISTORICALLY or ALWAYS as: throughout the interval, or nothing lies in the interval, which `kind` looks for."""
    span = part.span
    throughout = Throughout(part.operator, part.interval, part.body, span=span)
    nothing = Not(Temporal(kind, part.interval, Truth(True), span=span), span=span)
    return Or(And(around, throughout, span=span), And(around, nothing, span=span), span=span)
