"""The golden cases of this project, ``tests/cases/*.case``; `hamlet.testing` says how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hamlet import testing
from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.testing import Case as Case

PENDING: set[str] = set()  # what the engine does not run yet
FOLDER = Path(__file__).parent / "cases"


def oracle_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options of `hamlet.run` as options of the oracle, which counts ticks."""
    rest = {name: value for name, value in options.items() if name not in ("time_unit", "timezone")}
    return {
        **rest,
        "zone": options.get("timezone"),
        "ticks_per_second": UNITS_PER_SECOND[options.get("time_unit", "s")],
    }


def cases() -> list[Case]:
    """All golden cases, by name."""
    return testing.cases(FOLDER)
