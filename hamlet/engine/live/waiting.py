"""Events that are pushed one by one: held as they are until something can come of them.

To push one event by itself makes a table of columns of one value, which are looked at one by one; to push a thousand at
once costs little more. An event that is in order, and has the attributes and types of the events before, closes no
window as long as time stays in a pane, and no session that is due later: it may wait for others, and nobody can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from math import inf
from operator import is_not
from typing import Any

from hamlet.engine.executor import Executor
from hamlet.input.records import is_broken
from hamlet.input.ticks import MOST_SECONDS, reader_of
from hamlet.language.conditions import references, walk
from hamlet.language.query import Binary, Duration, Expression, Literal, Reference, Unary
from hamlet.language.schema import Schema
from hamlet.planner.compile import may_refuse
from hamlet.planner.compiled import CompiledWorkload
from hamlet.planner.workload import Workload

MOST = 4096  # events that wait at once
FEW = 8  # events of a push that may wait
_PLAIN = (int, float, str, bool, type(None))
_FAR = 1 << 61
_LONG = MOST_SECONDS  # of attributes whose numbers are seconds, so that ticks of any unit can hold them
_SIZES = [1 << bits for bits in (53, 40, 30, 24, 20, 15, 10)]  # of integers that conditions compute with


class Waiting:
    """Events of small pushes that are not processed yet.

    Parameters
    ----------
    workload : Workload
    time_column, type_column : str

    Attributes
    ----------
    events : list of dict
    due : bool
        Whether they must be processed before rows are given.
    """

    def __init__(self, workload: Workload, time_column: str, type_column: str) -> None:
        self.events: list[dict[str, Any]] = []
        self.due = False
        self._time, self._type = time_column, type_column
        types = {kind for query in workload.analysis.queries for kind in query.types.values()}
        self._queries = types.intersection(workload.names)  # whose rows are events of others
        asked = [query.condition for query in workload.queries if query.condition is not None]
        computed = [part for each in asked for part in walk(each) if isinstance(part, (Binary, Unary))]
        self._lengths = workload.durations
        self._small = -1 if computed and self._queries else _largest_safe(computed, {time_column, *self._lengths})
        self._computed = {each.attribute for part in computed for each in references(part)} - {time_column}
        self._shape: tuple[Any, ...] | None = None  # names and classes of the attributes of the last event
        self._last = 0  # its time
        self._behind = 0  # how far the time that no event comes before is behind
        self._edge: float = inf  # when a window may close, or a session end
        self._schema: Schema | None = None
        self._compiled: list[CompiledWorkload] = []
        self._refuses = False  # whether a predicate may be an error, by the columns' types
        self._ticks: Callable[[Any], int | None]  # of a time, by the schema

    @property
    def unnoticed(self) -> bool:
        """Whether nothing can be wrong with an event that waits: no integer of a condition can outgrow its 64 bits."""
        return self._small >= 0

    def see(self, events: Any) -> None:
        """Note a push that does not wait: later events may be compared with its events."""
        if self._computed and self._small >= 0 and not (isinstance(events, list) and self._is_small(events)):
            self._small = -1

    def _shape_of(self, event: dict[str, Any]) -> tuple[Any, ...] | None:
        """Names and classes of an event's attributes; None where some value needs a closer look."""
        shape: list[Any] = []
        for name, value in event.items():
            kind = type(value)
            if name != self._time and kind not in _PLAIN:
                return None
            if (kind is int and not -_FAR < value < _FAR) or (kind is str and is_broken(value)):
                return None
            if name in self._lengths and kind in (int, float) and not -_LONG < value < _LONG:
                return None
            shape.append(name)
            shape.append(kind)
        return None if self._queries and event.get(self._type) in self._queries else tuple(shape)

    def _is_small(self, events: Iterable[Any]) -> bool:
        """Whether no condition overflows that computes with the events, or with those and others like them."""
        for event in events:
            if type(event) is not dict:
                return False
            for name in self._computed:
                value = event.get(name)
                if type(value) not in _PLAIN or (type(value) is int and not -self._small <= value <= self._small):
                    return False
        return True

    def begin(
        self, events: Any, executor: Executor | None, schema: Schema | None, seen: int | None, watermark: int | None
    ) -> None:
        """Learn from a push that has been processed what may wait behind it; no event may come before `watermark`."""
        self._shape = None
        if executor is None or schema is None or seen is None or watermark is None:
            return
        if schema is not self._schema:
            self._schema, self._ticks = schema, reader_of(schema.clock)
        compiled = [each.workload for each in executor.executors]
        if len(compiled) != len(self._compiled) or any(map(is_not, compiled, self._compiled)):
            self._compiled, self._refuses = compiled, any(map(may_refuse, compiled))
        if self._refuses:
            return
        last = events[-1] if isinstance(events, list) and events else None
        if watermark > seen or type(last) is not dict or self._ticks(last.get(self._time)) != seen:
            return
        self._edge = executor.next_edge(watermark)
        self._last, self._behind = seen, seen - watermark
        self._shape = self._shape_of(last)

    def take(self, events: Any) -> bool:
        """Let a push wait, if it can and no window can close by it."""
        shape = self._shape
        if shape is None or type(events) is not list or not 0 < len(events) <= FEW:
            return False
        last = self._last
        for event in events:
            if type(event) is not dict or self._shape_of(event) != shape:
                return False
            time = self._ticks(event[self._time])
            if time is None or time < last:
                return False
            last = time
        if last - self._behind >= self._edge:
            return False
        if self._computed and self._small >= 0 and not self._is_small(events):
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


def _largest_safe(computed: Iterable[Expression], times: Collection[str]) -> int:
    """The largest integer that conditions may compute with so that none of their parts needs 64 bits; -1 for none.

    Attributes among `times` have as many ticks as may be.
    """
    parts = list(computed)
    return next((size for size in _SIZES if all(_largest(each, size, times) < 4 * _FAR for each in parts)), -1)


def _largest(part: Expression, size: int, times: Collection[str]) -> int | float:
    """How large an expression is at most, where no attribute is larger than `size`."""
    match part:
        case Literal(value=bool() | int() | float() as value):
            return abs(value)
        case Literal(value=Duration() as length):
            return float(length.seconds) * 1e9
        case Reference(attribute=name):
            return _FAR if name in times else size
        case Unary(operand=operand):
            return _largest(operand, size, times)
        case Binary(operator="+" | "-", left=left, right=right):
            return _largest(left, size, times) + _largest(right, size, times)
        case Binary(operator="*", left=left, right=right):
            return _largest(left, size, times) * _largest(right, size, times)
        case Binary(operator="/" | "%", left=left):
            return _largest(left, size, times)
    return inf
