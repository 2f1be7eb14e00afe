"""`check`: evidence of any kind against the events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hamlet.checker.errors import EvidenceError
from hamlet.errors import HamletError


def check(work: str, events: Any, evidence: Any, *, signature: str | None = None, **options: Any) -> None:
    """Accept evidence, or raise the reason why it does not show what it claims.

    Parameters
    ----------
    work : str
        The text of the workload, policy, specification or statement.
    events : as of `hamlet.run` and its like
    evidence : dict, or `hamlet.why.Evidence`
        The JSON object.
    signature : str, optional
        Of a policy.
    **options
        How the events are read: ``time_column``, ``time_points`` and the others of the run; ``negate`` of a policy.

    Raises
    ------
    EvidenceError
        With the node and the reason.
    """
    from hamlet.checker.events import match_checker, policy_checker, trend_checker, value_checker

    data: Mapping[str, Any] = getattr(evidence, "data", evidence)
    kind = data.get("kind") if isinstance(data, Mapping) else None
    checker: Any
    if kind == "proof":
        how = [options.pop("negate", False)]
        checker = policy_checker(work, signature or "", events, bool(data.get("open_end", False)), options)
    elif kind == "trends":
        how, checker = [], trend_checker(work, events, data, options)
    elif kind == "value":
        how, checker = [], value_checker(work, events, options)
    elif kind == "match":
        how, checker = [], match_checker(work, events, data, options)
    else:
        raise EvidenceError(f"evidence of the kind {kind!r} is unknown")
    try:
        checker.check(data, *how)
        for each in data.get("because", ()) if kind == "trends" else ():
            if each["row"] not in [row["row"] for row in data["rows"]]:
                raise EvidenceError(f"no event is the row of which more evidence is given: {each['row']}")
            check(work, events, each, **options)
    except EvidenceError:
        raise
    except (HamletError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise EvidenceError(f"the evidence cannot be read: {error}") from error
