"""How far a formula looks from a time-point."""

from __future__ import annotations

from hamlet.policies.syntax.formula import (
    Formula,
    Let,
    LetPast,
    Predicate,
    Release,
    Since,
    Temporal,
    TemporalMatch,
    Trigger,
    Until,
    children,
)


def reach_of(formula: Formula, per_second: int) -> int | None:
    """The ticks, back and ahead, beyond which no event matters to a time-point; None where there is no such limit.

    That of nested operators adds up. Neither the number of a time-point nor a LETPAST has a limit.

    Examples
    --------
    >>> from hamlet.policies.syntax.parser import parse_formula
    >>> reach_of(parse_formula("ONCE[0,5] (a(x) AND EVENTUALLY[1,3] b(x))")[0], 1)
    8
    >>> reach_of(parse_formula("ONCE a(x)")[0], 1) is None
    True
    """
    if isinstance(formula, LetPast) or (isinstance(formula, Predicate) and formula.name in ("tp", "tpts")):
        return None
    own = 0
    if isinstance(formula, Temporal | Since | Until | Trigger | Release | TemporalMatch):
        high = formula.interval.ticks(per_second)[1]
        if high is None:
            return None
        own = high
    below = [reach_of(each, per_second) for each in children(formula)]
    known = [each for each in below if each is not None]
    if len(known) < len(below):
        return None
    return own + (sum(known) if isinstance(formula, Let) else max(known, default=0))
