"""Policies: metric first-order temporal logic over event streams.

A policy is a formula in MonPoly's notation and a signature that names the predicates. Its rows are the time-points and
valuations that break it (or, for a formula without an outermost ALWAYS, that satisfy it).

Sources: Schneider et al., *Scalable online first-order monitoring* (STTT 2021, doi 10.1007/s10009-021-00607-1);
Basin et al., *Monitoring metric first-order temporal properties* (JACM 2015).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hamlet.policies.analysis.policy import Policy
from hamlet.policies.syntax.diagnostics import PolicyError
from hamlet.policies.syntax.signature import Signature

if TYPE_CHECKING:
    from hamlet.output.result import Results
    from hamlet.policies.monitor import Monitor
    from hamlet.policies.running import run

__all__ = ["Monitor", "Policy", "PolicyError", "Results", "Signature", "run"]

# Commands that monitor a file need none of these.
_PLACES = {
    "Monitor": "hamlet.policies.monitor",
    "Results": "hamlet.output.result",
    "run": "hamlet.policies.running",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'hamlet.policies' has no attribute {name!r}")
    found = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = found
    return found
