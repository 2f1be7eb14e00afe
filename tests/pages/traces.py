"""A small trace of sharing decisions, in the format that a run records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from hamlet.engine.trace import SCHEMA


def burst(pane: int, decision: str, queries: Sequence[str] = (), **values: Any) -> dict[str, Any]:
    """A record; by default of 4 events of type B, with the costs of Eq. 8."""
    record = {"key": "g=x", "type": "B", "b": 4, "n": 7, "g": 4, "k": 2, "s_c": 1, "s_p": 1}
    costs = {"shared_cost": 44.0, "non_shared_cost": 56.0}
    return {"pane": pane, **record, **costs, "decision": decision, "queries": list(queries), **values}


def table(bursts: Sequence[dict[str, Any]]) -> pa.Table:
    """Bursts as the records of a trace."""
    return pa.Table.from_pylist(list(bursts), schema=SCHEMA)
