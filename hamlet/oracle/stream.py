"""The stream as the oracle sees it: events, their order, and how their attributes are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hamlet.language.query import AttributeType, EventDeclaration, Reference
from hamlet.oracle.conditions import INT_RANGE, Read, kind
from hamlet.oracle.times import dated as dated_at


@dataclass(frozen=True, eq=False)
class Event:
    """One event of the stream; two events are never equal, whatever they say.

    Attributes
    ----------
    index : int
        Its place in the given stream, which only names it.
    type : str or None
        None matches nothing.
    time : int
        In ticks of the time column.
    order : Any
        Value of the order column, None without one.
    values : mapping of str to Any
        All its columns, NaN already read as NULL.
    """

    index: int
    type: str | None
    time: int
    order: Any
    values: Mapping[str, Any]

    def before(self, other: Event) -> bool:
        """Whether this event precedes another one."""
        if self.time != other.time:
            return self.time < other.time
        return self.order is not None and other.order is not None and bool(self.order < other.order)


class Stream:
    """The events, and how their attributes are read.

    Parameters
    ----------
    events : sequence of mappings
        The input, in any order.
    declarations : sequence of EventDeclaration
        Types with known attributes.
    time_column, type_column, order_column : str
        Which attributes are the time, the type and the order among equal times (None: there is none).
    dated : int, optional
        Ticks per second, where queries see times as timestamps.
    rows : mapping of str to sequence of mappings, optional
        Rows of other queries, which are events of the query's name at the end of their window.
    columns : mapping of str to sequence of str, optional
        The columns of these queries.
    """

    def __init__(
        self,
        events: Sequence[Mapping[str, Any]],
        declarations: Sequence[EventDeclaration],
        time_column: str,
        type_column: str,
        order_column: str | None,
        dated: int | None = None,
        rows: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.declared: dict[str, dict[str, AttributeType | None]] = {
            each.name: {a.name: a.type for a in each.attributes} for each in declarations
        }
        self.of_rows = dict(columns or {})
        self.declared.update((name, dict.fromkeys(names)) for name, names in self.of_rows.items())
        self.always = {time_column, type_column}
        self.dated, self.time_column = dated, time_column
        cleaned: list[dict[str, Any]] = [
            {name: None if value != value else value for name, value in event.items()} for event in events
        ]
        self.doubles = {name for event in events for name, value in event.items() if isinstance(value, float)}
        self.events = [
            Event(index, event[type_column], event[time_column], event[order_column] if order_column else None, event)
            for index, event in enumerate(cleaned)
        ]
        for name, found in (rows or {}).items():
            for row in found:
                values = {column: as_attribute(value) for column, value in row.items()}
                time = row["window_end"]
                values |= {time_column: time, type_column: name}
                self.events.append(Event(len(self.events), name, time, None, values))

    def carries(self, event: Event, attribute: str) -> bool:
        """Whether an event has the attribute at all: a declared type that lacks it is broadcast."""
        return attribute in self.always or event.type not in self.declared or attribute in self.declared[event.type]

    def is_double(self, type_: str | None, attribute: str) -> bool:
        """Whether an attribute of an event type is DOUBLE: declared so, or a column with a float in it."""
        if type_ in self.of_rows:
            return False  # value by value
        declared = self.declared.get(type_ or "", {}).get(attribute)
        return declared is AttributeType.DOUBLE if declared else attribute in self.doubles

    def read(self, event: Event, attribute: str) -> Any:
        """The value of an attribute, None for NULL."""
        value: Any = event.values.get(attribute) if self.carries(event, attribute) else None
        if attribute == self.time_column and self.dated is not None:
            return dated_at(event.time, self.dated)
        return float(value) if kind(value) == "number" and self.is_double(event.type, attribute) else value

    def reader(self, event: Event) -> Read:
        """Reads references that speak of one event."""

        def read(reference: Reference) -> Any:
            return self.read(event, reference.attribute)

        return read


def as_attribute(value: Any) -> Any:
    """A value of a result row as that of an event: what does not fit an INT or a DOUBLE is the nearest double."""
    exact_integer = isinstance(value, int) and not isinstance(value, bool)
    if not (isinstance(value, Decimal) or (exact_integer and value not in INT_RANGE)):
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
