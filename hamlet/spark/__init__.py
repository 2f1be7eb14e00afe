"""Hamlet on Spark: `run` takes and gives DataFrames, `submit` is the batch job of the command line.

`stream` and `submit_stream` are continuous jobs, `monitor` is `run` for policies, `sql` for row patterns. The
plan is in `hamlet.spark.job`, what its tasks run in `hamlet.spark.tasks`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hamlet.errors import UnsupportedError

try:
    import pyspark.sql  # noqa: F401
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("pyspark", "py4j"):
        raise
    raise UnsupportedError("Spark is not installed; it comes with: pip install 'hamlet-cep[spark]'") from error

if TYPE_CHECKING:
    from hamlet.spark.jobs import stream, submit, submit_stream
    from hamlet.spark.patterns import sql
    from hamlet.spark.policies import monitor
    from hamlet.spark.queries import run

__all__ = ["monitor", "run", "sql", "stream", "submit", "submit_stream"]

# Loaded on first use: a task imports what its notation needs, at the start of each of Spark's Python workers.
_PLACES = {"monitor": "policies", "run": "queries", "sql": "patterns"} | dict.fromkeys(
    ("stream", "submit", "submit_stream"), "jobs"
)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    return value
