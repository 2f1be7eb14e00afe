"""Operators that look ahead need a bound."""

from __future__ import annotations

from hamlet.frontend.reports import Reports
from hamlet.policies.syntax.formula import Formula, Release, Temporal, TemporalMatch, Until, children


def check_bounds(formula: Formula, reports: Reports) -> None:
    """Report the future operators without a bound."""
    if isinstance(formula, Until | Release) and formula.interval.high is None:
        word = type(formula).__name__.upper()
        reports.error(f"{word} has no bound: it may have to wait for ever", formula.span, f"give it one: {word}[0,1d]")
    if isinstance(formula, TemporalMatch) and formula.operator == "MATCHF" and formula.interval.high is None:
        reports.error(
            "MATCHF has no bound: it may have to wait for ever", formula.span, "give it one: MATCHF[0,1d] ..."
        )
    if isinstance(formula, Temporal) and formula.operator in ("EVENTUALLY", "ALWAYS") and formula.interval.high is None:
        hint = f"give it an interval: {formula.operator}[0,1d]"
        if formula.operator == "ALWAYS":
            hint += "; only an ALWAYS that begins the formula may go without"
        reports.error(f"{formula.operator} has no bound: it may have to wait for ever", formula.span, hint)
    for child in children(formula):
        check_bounds(child, reports)
