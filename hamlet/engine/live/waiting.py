"""Events that are pushed one by one: held as they are until something can come of them.

To push one event by itself makes a table of columns of one value, which are looked at one by one; to push a thousand at
once costs little more. An event that is in order, has the attributes and types of the events before and
lies in the pane of the event before closes no window: it may wait for others, and nobody can tell.
"""

from __future__ import annotations

from math import gcd
from typing import Any

from hamlet.engine.executor import Executor
from hamlet.language.conditions import walk
from hamlet.language.query import Binary, Unary
from hamlet.language.schema import Schema
from hamlet.planner.workload import Workload

MOST = 4096  # events that wait at once
FEW = 8  # events of a push that may wait
_PLAIN = (int, float, str, bool, type(None))
_FAR = 1 << 61


class Waiting:
    """Events of small pushes that are not processed yet.

    Parameters
    ----------
    workload : Workload
    time_column : str

    Attributes
    ----------
    events : list of dict
    due : bool
        Whether they must be processed before rows are given.
    unnoticed : bool
        Whether nothing can be wrong with an event that waits: no condition has arithmetic, which could be an error.
    """

    def __init__(self, workload: Workload, time_column: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.due = False
        self._time = time_column
        types = {kind for query in workload.analysis.queries for kind in query.types.values()}
        self._fits = types.isdisjoint(workload.names) and all(map(_closes_at_panes, workload.queries))
        asked = [query.condition for query in workload.queries if query.condition is not None]
        self.unnoticed = not any(isinstance(part, (Binary, Unary)) for each in asked for part in walk(each))
        self._shape: tuple[Any, ...] | None = None  # names and classes of the attributes of the last event
        self._last = 0  # its time
        self._pane = 0
        self._schema: Schema | None = None

    def begin(self, events: Any, executor: Executor | None, schema: Schema | None, seen: int | None) -> None:
        """Learn from a push that has been processed what may wait behind it."""
        self._shape = None
        if not self._fits or executor is None or schema is None or seen is None:
            return
        if schema.clock.is_timestamp or schema.clock.is_fraction:
            return
        last = events[-1] if isinstance(events, list) and events else None
        if type(last) is not dict or type(last.get(self._time)) is not int or last[self._time] != seen:
            return
        self._pane = gcd(*executor.panes)
        self._schema = schema
        self._last = seen
        self._shape = _shape_of(last)

    def take(self, events: Any) -> bool:
        """Let a push wait, if it can and no window can close by it."""
        shape = self._shape
        if shape is None or type(events) is not list or not 0 < len(events) <= FEW:
            return False
        last, pane = self._last, self._last // self._pane
        for event in events:
            if type(event) is not dict or _shape_of(event) != shape:
                return False
            time = event[self._time]
            if time < last:
                return False
            last = time
        if last // self._pane != pane:
            return False
        self.due = len(self.events) >= MOST
        self._last = last
        self.events += [dict(event) for event in events]
        return True

    def stop(self) -> None:
        """Let nothing wait until a further push has been processed."""
        self._shape = None

    def taken(self) -> list[dict[str, Any]]:
        """Give the events away, to be processed."""
        events, self.events = self.events, []
        return events


def _shape_of(event: dict[str, Any]) -> tuple[Any, ...] | None:
    """Names and classes of an event's attributes; None where some value needs a closer look."""
    shape: list[Any] = []
    for name, value in event.items():
        kind = type(value)
        if kind not in _PLAIN or (kind is int and not -_FAR < value < _FAR):
            return None
        shape.append(name)
        shape.append(kind)
    return tuple(shape)


def _closes_at_panes(query: Any) -> bool:
    """Whether windows of a query close only where panes end: not sessions, nor trends with a length of their own."""
    return not getattr(query, "session", False) and getattr(query, "longest", None) is None
