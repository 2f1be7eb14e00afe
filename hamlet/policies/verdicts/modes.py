"""Which time-points have verdicts of their own: all, or of those that must come out the same only the first."""

from __future__ import annotations

from typing import Literal, cast

Mode = Literal["all", "local", "global"]


def mode_of(verdicts: str, mode: str) -> Mode:
    """The automaton's mode for ``--verdicts all|equivalent`` and ``--mode local|global``."""
    return "all" if verdicts == "all" else cast(Mode, mode)
