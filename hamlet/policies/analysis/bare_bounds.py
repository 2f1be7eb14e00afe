"""Bounds without a unit: what they mean over a column of timestamps, which has a unit that nobody sees in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from hamlet.policies.analysis.policy import Policy
from hamlet.policies.syntax.formula import descendants

_FINE = re.compile(r"timestamp\[(ms|us|ns)\b")  # the names of Arrow's types, which is not loaded for logs
_WORDS = {"ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


def bare_bounds(policy: Policy) -> Iterator[int]:
    """The bounds of a policy that have no unit and would need one."""
    for formula in descendants(policy.formula):
        interval: Any = getattr(formula, "interval", None)
        for bound in () if interval is None else (interval.low, interval.high):
            if bound is not None and bound.unit is None and bound.value:
                yield bound.value


def notes_of_bounds(policies: Iterable[Policy], time_type: object) -> list[str]:
    """That bounds without a unit are in the unit of a column of timestamps, where it is finer than seconds."""
    fine = _FINE.match(str(time_type))
    if fine is None:
        return []
    unit, found = _WORDS[fine[1]], []
    for policy in policies:
        bare = next(bare_bounds(policy), None)
        if bare is not None:
            found.append(
                f"{policy.name}: the bound {bare} has no unit, so it is {bare} {unit}, the unit of "
                f"the time column; write {bare}s for seconds"
            )
    return found
