"""The column that tells rows of a policy from time-points without any."""

from __future__ import annotations

HOLDS = ""  # its name; False where a row is only a time-point
