"""Hamlet: how many event trends a stream holds and what they add up to, for whole workloads of pattern queries.

What is public is loaded on first use, so that ``import hamlet`` takes some hundredths of a second.

Source: HAMLET (SIGMOD'21), "To Share, or not to Share Online Event Trend Aggregation Over Bursty Event Streams".
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hamlet import starting

starting.listen()  # before anything else is imported

if TYPE_CHECKING:
    import hamlet.policies as policies
    import hamlet.spark as spark
    import hamlet.why as why
    from hamlet.engine.online import Engine
    from hamlet.errors import (
        DataError,
        HamletError,
        JobError,
        LateError,
        MemoryLimitError,
        OptionError,
        OutputError,
        RestoreError,
        UnsupportedError,
        WorkloadError,
    )
    from hamlet.output.result import Results
    from hamlet.parallel.run import run
    from hamlet.patterns.match.run import sql
    from hamlet.planner.workload import Workload
    from hamlet.reference.symbolic import symbolic
    from hamlet.version import __version__

__all__ = [
    "DataError",
    "Engine",
    "HamletError",
    "JobError",
    "LateError",
    "MemoryLimitError",
    "OptionError",
    "OutputError",
    "RestoreError",
    "Results",
    "UnsupportedError",
    "Workload",
    "WorkloadError",
    "__version__",
    "policies",
    "run",
    "spark",
    "sql",
    "symbolic",
    "why",
]

_PLACES = {
    "Engine": "hamlet.engine.online",
    "Results": "hamlet.output.result",
    "Workload": "hamlet.planner.workload",
    "__version__": "hamlet.version",
    "run": "hamlet.parallel.run",
    "sql": "hamlet.patterns.match.run",
    "symbolic": "hamlet.reference.symbolic",
}
_PACKAGES = (
    "checker",
    "errors",
    "matching",
    "policies",
    "spark",
    "streams",
    "testing",
    "why",
)  # spark brings in pyspark


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"hamlet.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'hamlet' has no attribute {name!r}")
    found = getattr(importlib.import_module(_PLACES.get(name, "hamlet.errors")), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
