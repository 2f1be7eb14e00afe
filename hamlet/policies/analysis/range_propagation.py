"""What is bound around a temporal operator, moved inside it: the interval is looked through in the other direction.

``p(x) AND ONCE[0,5] f`` is ``p(x) AND ONCE[0,5] (EVENTUALLY[0,5] p(x) AND f)``. Source: MonPoly's propagation of range
restrictions.
"""

from __future__ import annotations

from dataclasses import replace

from hamlet.policies.analysis.rewriting import Edge, Throughout, negation
from hamlet.policies.syntax import formula as mfotl

_DUAL = {"ONCE": "EVENTUALLY", "EVENTUALLY": "ONCE", "PREV": "NEXT", "NEXT": "PREV"}


def moved_in_time(part: mfotl.Formula, around: mfotl.Formula) -> list[mfotl.Formula]:
    """Formulas that equal a temporal one wherever `around` holds, and that are finite more often; the first is best."""
    span = part.span
    match part:
        case mfotl.Temporal("HISTORICALLY" | "ALWAYS" as operator, interval, body) if not isinstance(part, Throughout):
            kind = "ONCE" if operator == "HISTORICALLY" else "EVENTUALLY"
            no = mfotl.Not(mfotl.Temporal(kind, interval, negation(body), span=span), span=span)
            return [mfotl.And(around, no, span=span), vacuous(part, around, kind)]
        case mfotl.Temporal(operator, interval, body) if operator in _DUAL:
            if interval.high is None and operator == "ONCE":
                return []
            beside = mfotl.Temporal(_DUAL[operator], interval, around, span=span)
            return [replace(part, body=mfotl.And(beside, body, span=body.span))]
        case mfotl.Since(interval, left, right) | mfotl.Until(interval, left, right):
            if interval.high is None:
                return []
            dual = "EVENTUALLY" if isinstance(part, mfotl.Since) else "ONCE"
            beside = mfotl.Temporal(dual, interval, around, span=span)
            near = mfotl.Temporal(dual, mfotl.Interval(mfotl.Bound(0), interval.high), around, span=span)
            second = mfotl.And(beside, right, span=right.span)
            guarded_left = mfotl.And(near, left, span=left.span)
            return [
                replace(part, right=second),
                replace(part, left=guarded_left),
                replace(part, left=guarded_left, right=second),
            ]
        case mfotl.Release(interval, left, right):
            # The first is decided once the interval has passed; the second asks nothing of `around` at other times.
            beside = mfotl.Temporal("ONCE", interval, around, span=span)
            second = mfotl.And(beside, negation(right), span=right.span)
            no = mfotl.Not(mfotl.Until(interval, negation(left), second, span=span), span=span)
            return [mfotl.And(around, no, span=span), _dual(part, around)]
        case mfotl.Trigger():
            return [_dual(part, around)]
    return []


def _dual(part: mfotl.Trigger | mfotl.Release, around: mfotl.Formula) -> mfotl.Formula:
    """TRIGGER or RELEASE whose interval lacks 0, as what it can come from where `around` binds its variables.

    The left side held nearer than the interval; or the right side holds throughout it; or it holds from the edge that
    is nearer up to where the left side holds, too; or nothing lies in the interval.
    """
    span, interval = part.span, part.interval
    past = isinstance(part, mfotl.Trigger)
    some, every = ("ONCE", "HISTORICALLY") if past else ("EVENTUALLY", "ALWAYS")
    low, both = interval.low, mfotl.And(part.right, part.left, span=span)
    nearer = mfotl.Interval(mfotl.Bound(0), mfotl.Bound(low.value, low.unit, open=not low.open))
    reach = mfotl.Interval(mfotl.Bound(0), interval.high)
    kind = mfotl.Since if past else mfotl.Until
    ways: list[mfotl.Formula] = [
        mfotl.Temporal(some, nearer, part.left, span=span),
        Throughout(every, interval, part.right, span=span),
        Edge(every, interval, kind(reach, part.right, both, span=span), span=span),
        mfotl.Not(mfotl.Temporal(some, interval, mfotl.Truth(True), span=span), span=span),
    ]
    made: mfotl.Formula = mfotl.And(around, ways[0], span=span)
    for way in ways[1:]:
        made = mfotl.Or(made, mfotl.And(around, way, span=span), span=span)
    return made


def vacuous(part: mfotl.Temporal, around: mfotl.Formula, kind: str) -> mfotl.Formula:
    """HISTORICALLY or ALWAYS as: throughout the interval, or nothing lies in the interval, which `kind` looks for."""
    span = part.span
    throughout = Throughout(part.operator, part.interval, part.body, span=span)
    nothing = mfotl.Not(mfotl.Temporal(kind, part.interval, mfotl.Truth(True), span=span), span=span)
    return mfotl.Or(mfotl.And(around, throughout, span=span), mfotl.And(around, nothing, span=span), span=span)
