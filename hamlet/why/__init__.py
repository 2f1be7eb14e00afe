"""Evidence: why a row is in a result, or is not, in a form that somebody who trusts nothing can check.

Source: McConnell, Mehlhorn, Näher and Schweitzer, "Certifying algorithms" (2011), for the idea.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hamlet.why.evidence import Evidence

if TYPE_CHECKING:
    from hamlet.planner.workload import Workload
    from hamlet.policies import Policy
    from hamlet.streams import Specification

__all__ = ["Evidence", "of_policy", "of_query", "of_specification", "of_statement"]


def of_policy(policy: Policy, events: Any, row: Mapping[str, Any], **options: Any) -> Evidence:
    """The proof behind a row of a policy, or of its absence (`hamlet.why.policies.why`)."""
    from hamlet.why.policies import why

    return why(policy, events, row, **options)


def of_query(workload: Workload, events: Any, row: Mapping[str, Any], **options: Any) -> Evidence:
    """The trends behind a row of a query, or of its absence (`hamlet.why.trends.why.why`)."""
    from hamlet.why.trends.why import why

    return why(workload, events, row, **options)


def of_specification(spec: Specification, events: Any, row: Mapping[str, Any], **options: Any) -> Evidence:
    """The values behind a row of a specification, or of its absence (`hamlet.why.values.why.why`)."""
    from hamlet.why.values.why import why

    return why(spec, events, row, **options)


def of_statement(text: str, tables: Any, row: Mapping[str, Any], **options: Any) -> Evidence:
    """The match behind a row of a statement with row patterns, or of its absence (`hamlet.why.matches.why`)."""
    from hamlet.why.matches import why

    return why(text, tables, row, **options)
