"""Live change: an engine goes on with another workload, and unchanged queries keep their open windows.

What an engine runs is compiled as a whole, so a further engine runs beside it for the new queries and gets the same
events; rows of queries that were dropped are no longer given. A new query begins with the first window that starts
after the change, since it has not seen the events before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hamlet.language.printing import to_text
from hamlet.planner.workload import Workload


@dataclass(frozen=True)
class Replacement:
    """What a change of the workload did, query by query.

    Attributes
    ----------
    kept : tuple of str
        Unchanged: their open windows go on.
    added : tuple of str
        New, or of another text than before: they begin with the first window after the change.
    dropped : tuple of str
        Gone: their open windows give no rows.
    changed : tuple of str
        Those among `added` whose name was known.
    after : int or None
        Ticks: windows of added queries that start at or before it give no rows; None where no event has come.
    """

    kept: tuple[str, ...]
    added: tuple[str, ...]
    dropped: tuple[str, ...]
    changed: tuple[str, ...]
    after: int | None


@dataclass
class Part:
    """An engine that runs some queries of a workload.

    Attributes
    ----------
    engine : Any
        A `hamlet.engine.online.Engine`.
    names : set of str
        The queries whose rows are given.
    after : int or None
        Ticks: rows of windows that start at or before it are left out.
    """

    engine: Any
    names: set[str] = field(default_factory=set)
    after: int | None = None


def compared(old: Workload, new: Workload, after: int | None) -> Replacement:
    """What has to be done to go on with another workload."""
    before, now = _texts(old), _texts(new)
    kept = tuple(name for name in now if before.get(name) == now[name])
    added = tuple(name for name in now if name not in kept)
    dropped = tuple(name for name in before if name not in now)
    return Replacement(kept, added, dropped, tuple(name for name in added if name in before), after)


def _texts(workload: Workload) -> dict[str, str]:
    """Each query's own text, with the declarations of the types that it uses."""
    declared = {each.name: to_text(each) for each in workload.analysis.text.declarations}
    return {
        query.query.name: "\n".join(
            [*(declared[kind] for kind in sorted(set(query.types.values())) if kind in declared), to_text(query.query)]
        )
        for query in workload.analysis.queries
    }


def in_order(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of several engines, query by query in the order of the workload."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for row in rows:
        found[row["query"]].append(row)
    return [row for each in found.values() for row in each]


__all__ = ["Part", "Replacement", "compared", "in_order"]
