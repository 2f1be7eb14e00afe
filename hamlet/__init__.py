"""Hamlet: how many event trends a stream holds and what they add up to, for whole workloads of pattern queries.

Source: HAMLET (SIGMOD'21), "To Share, or not to Share Online Event Trend Aggregation Over Bursty Event Streams".
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hamlet import starting

starting.listen()  # before anything else is imported

# ruff: noqa: E402
from hamlet.engine.online import Engine
from hamlet.errors import (
    DataError,
    HamletError,
    JobError,
    MemoryLimitError,
    OptionError,
    OutputError,
    RestoreError,
    UnsupportedError,
    WorkloadError,
)
from hamlet.output.result import Results
from hamlet.parallel.run import run
from hamlet.planner.workload import Workload
from hamlet.reference.symbolic import symbolic
from hamlet.version import __version__

if TYPE_CHECKING:
    import hamlet.policies as policies
    import hamlet.spark as spark

__all__ = [
    "DataError",
    "Engine",
    "HamletError",
    "JobError",
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
    "symbolic",
]


def __getattr__(name: str) -> Any:
    if name in ("spark", "policies"):  # spark loads pyspark, so only on first use
        return importlib.import_module(f"hamlet.{name}")
    raise AttributeError(f"module 'hamlet' has no attribute {name!r}")
