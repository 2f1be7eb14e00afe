"""Evidence: why a row is in a result, or is not, in a form that somebody who trusts nothing can check.

Source: McConnell, Mehlhorn, Näher and Schweitzer, "Certifying algorithms" (2011), for the idea.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hamlet.why.evidence import Evidence

if TYPE_CHECKING:
    from hamlet.why.matches import of_statement
    from hamlet.why.policies import of_policy
    from hamlet.why.trends.why import of_query
    from hamlet.why.values.why import of_specification

__all__ = ["Evidence", "of_policy", "of_query", "of_specification", "of_statement"]

# Who asks about one notation needs nothing of the others.
_PLACES = {
    "of_policy": "hamlet.why.policies",
    "of_query": "hamlet.why.trends.why",
    "of_specification": "hamlet.why.values.why",
    "of_statement": "hamlet.why.matches",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'hamlet.why' has no attribute {name!r}")
    found = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = found
    return found
