"""Few events as they are pushed, as rows: what is plain is taken here, and all else goes the way of columns.

Plain is a dict with the time, the type and just the attributes of its predicate, each of the type that the signature
and the columns so far have. Events whose time-point is open stay here, or are given back as they came.
"""

from __future__ import annotations

from bisect import insort_right
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from hamlet.input.records import is_broken
from hamlet.input.ticks import reader_of, times_of
from hamlet.language.query import AttributeType
from hamlet.language.schema import Schema
from hamlet.policies.changes.made import Row
from hamlet.policies.relations.values import POOLED, Pool
from hamlet.policies.syntax.signature import Signature
from hamlet.runtime.reorder_buffer import ReorderBuffer

_KINDS: dict[str, tuple[type, AttributeType]] = {
    "int": (int, AttributeType.INT),
    "float": (float, AttributeType.DOUBLE),
    "string": (str, AttributeType.STRING),
    "bool": (bool, AttributeType.BOOLEAN),
}
MOST = 64  # events of a push that are looked at one by one
_EVENT_BYTES = 600  # of an event that waits; measured
Key = tuple[str, int]
Tuples = dict[Key, list[tuple[int, Row]]]  # time-points and codes, by predicate
# type, predicate, how attributes are read, and the names of all that is
Reading = tuple[str, Key | None, tuple[tuple[str, str, type], ...], frozenset[str]]
Arrived = tuple[int, Reading, Row]  # time, and codes
_PLAIN = frozenset([int, float, str, bool, type(None)])


class Arriving:
    """Events whose time-point is open.

    Parameters
    ----------
    signature : Signature
    wanted : collection of (str, int)
        The predicates that are read.
    columns : sequence of str
        Those of all events that are read.
    time_column, type_column : str
    buffer : ReorderBuffer
        Which events are in time.
    pool : Pool
    """

    def __init__(
        self,
        signature: Signature,
        wanted: frozenset[Key],
        columns: Sequence[str],
        time_column: str,
        type_column: str,
        buffer: ReorderBuffer,
        pool: Pool,
    ) -> None:
        self._signature = signature
        self._wanted, self._pool, self._columns = wanted, pool, frozenset(columns)
        self._time, self._type, self._buffer = time_column, type_column, buffer
        self._schema: Schema | None = None
        self._ticks: Callable[[Any], int | None]
        self._readings: dict[str, Reading | None] = {}
        self._events: list[Arrived] = []

    def __len__(self) -> int:
        return len(self._events)

    @property
    def nbytes(self) -> int:
        """Bytes of what waits, an estimate."""
        return _EVENT_BYTES * len(self._events)

    def take(self, events: Any, schema: Schema) -> list[str] | None:
        """The types of some events, where all are plain and in time; None, and nothing taken, where one is not."""
        if type(events) is not list or not 0 < len(events) <= MOST or not self._knows(schema):
            return None
        buffer = self._buffer
        earliest, seen = buffer.watermark, buffer.seen
        if seen is None or earliest is None:
            return None
        found: list[Arrived] = []
        for event in events:
            if type(event) is not dict:
                return None
            arrived = self._read(event, self._ticks(event.get(self._time)), len(events) == 1)
            if arrived is None:
                return None
            time = arrived[0]
            if time < earliest or (found and time < seen):
                return None
            seen = max(seen, time)
            found.append(arrived)
        self._wait(found)
        buffer.note(seen, len(found))
        return [each[1][0] for each in found]

    def adopt(self, events: pa.Table, schema: Schema) -> bool:
        """Take events that have been judged; False, and nothing taken, where one is not plain."""
        if events.num_rows > MOST or not self._knows(schema):
            return False
        found: list[Arrived] = []
        for time, event in zip(times_of(events, self._time).tolist(), events.to_pylist(), strict=True):
            arrived = self._read({name: value for name, value in event.items() if value is not None}, time, False)
            if arrived is None:
                return False
            found.append(arrived)
        self._wait(found)
        return True

    def give_back(self) -> list[dict[str, Any]]:
        """The events that wait; they are gone then."""
        if self._schema is None:
            return []
        value, present, events = self._pool.value, self._schema.clock.present, []
        for time, (name, key, attributes, _), codes in self._events:
            event: dict[str, Any] = {self._time: present(time), self._type: name}
            types = self._signature[key].types if key is not None else ()
            for (attribute, _, _), code, kind in zip(attributes, codes, types, strict=True):
                event[attribute] = value(code, kind)
            events.append(event)
        self._events.clear()
        return events

    def release(
        self, watermark: int, whole: bool, first: int
    ) -> tuple[list[int], dict[Key, list[tuple[int, Row]]], int]:
        """Time-points before a time, their tuples by predicate, and the number of events.

        Parameters
        ----------
        watermark : int
        whole : bool
            Whether the events of one time are one time-point.
        first : int
            The number of the first time-point.
        """
        times: list[int] = []
        tuples: Tuples = {}
        count = 0
        for time, (_, key, _, _), codes in self._events:
            if time >= watermark:
                break
            count += 1
            if not whole or not times or times[-1] != time:
                times.append(time)
            if key is not None:
                tuples.setdefault(key, []).append((first + len(times) - 1, codes))
        if count == len(self._events):
            self._events.clear()
        else:
            del self._events[:count]
        return times, tuples, count

    # ------------------------------------------------------------------------------------------ inside

    def _knows(self, schema: Schema) -> bool:
        """Whether events of a schema can be plain."""
        if schema is not self._schema:
            self._schema, self._readings = schema, {}
            self._ticks = reader_of(schema.clock)
        return schema.clock.zone is None and not schema.coded

    def _wait(self, found: list[Arrived]) -> None:
        waiting = self._events
        for each in found:
            if waiting and each[0] < waiting[-1][0]:
                insort_right(waiting, each, key=_time_of)
            else:
                waiting.append(each)

    def _read(self, event: dict[Any, Any], time: int | None, alone: bool) -> Arrived | None:
        """An event, None where it is not plain; one that comes alone may have other attributes, too."""
        name = event.get(self._type)
        if time is None or type(name) is not str:
            return None
        try:
            reading = self._readings[name]
        except KeyError:
            reading = self._readings[name] = self._reading(name)
        if reading is None:
            return None
        _, _, attributes, own = reading
        if len(event) != len(own) and not (alone and self._is_plain(event, own)):
            return None
        codes: list[int] = []
        for attribute, _, kind in attributes:
            value: Any = event.get(attribute)
            given = type(value)
            if given is not kind:
                return None
            if kind is int:
                if not -POOLED < value < POOLED:
                    return None
                codes.append(value)
            else:
                if value != value or (kind is str and is_broken(value)):
                    return None
                codes.append(self._pool.code(value))
        return time, reading, tuple(codes)

    def _is_plain(self, event: dict[Any, Any], own: frozenset[str]) -> bool:
        """Whether what an event has beside its own attributes is not read."""
        for name, value in event.items():
            if name not in own:
                if type(name) is not str or type(value) not in _PLAIN:
                    return False
                if name in self._columns and value is not None and self._known(name) is not type(value):
                    return False
                if type(value) is int and not -POOLED < value < POOLED:
                    return False
                if type(value) is str and is_broken(value):
                    return False
        return True

    def _known(self, column: str) -> type | None:
        """The type of a column in Python, as it is known."""
        known = None if self._schema is None else self._schema.columns.get(column)
        return next((python for python, kind in _KINDS.values() if kind is known), None)

    def _reading(self, name: str) -> Reading | None:
        """How events of a type are read; None where they are not, or more than once."""
        if is_broken(name):
            return None
        keys = [each for each in self._signature if each.name == name and (each.name, each.arity) in self._wanted]
        if not keys:
            return name, None, (), frozenset((self._time, self._type))
        if len(keys) > 1 or self._schema is None:
            return None
        attributes = []
        for attribute, kind in zip(keys[0].attributes, keys[0].types, strict=True):
            python, known = _KINDS[kind]
            if attribute is None or self._schema.columns.get(attribute) is not known:
                return None
            attributes.append((attribute, kind, python))
        names = [each for each, _, _ in attributes]
        if len(set(names)) < len(names):
            return None
        return name, (name, keys[0].arity), tuple(attributes), frozenset((self._time, self._type, *names))


def _time_of(arrived: Arrived) -> int:
    return arrived[0]
