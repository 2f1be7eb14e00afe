"""An independent checker of evidence: it trusts the definitions and nothing else.

It is given the text of the work, the events and the evidence, and shares no code with what plans, evaluates and gives
evidence: the parsed text alone. For a certifying algorithm see McConnell, Mehlhorn, Näher and Schweitzer (2011).
"""

from __future__ import annotations

from hamlet.checker.check import check
from hamlet.checker.errors import EvidenceError

__all__ = ["EvidenceError", "check"]
