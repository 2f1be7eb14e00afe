"""Some of the events of a live stream: those for which a condition is true, and those of a period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hamlet.engine.live_filter import never_came
from hamlet.input.buffers import from_numpy
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import SortKey
from hamlet.input.period import period_of
from hamlet.language.schema import Clock
from hamlet.streams.clock import Times
from hamlet.streams.monitor import time_column_of
from hamlet.streams.program import ir
from hamlet.streams.sources import conditional_types, with_declared, words_of

if TYPE_CHECKING:
    from hamlet.engine.where import Filter


class LiveChoice:
    """Which events of a live stream a specification takes: those of a period that fulfil a condition.

    Parameters
    ----------
    inputs : sequence of ir.Stream
    where : str or None
        A condition over columns.
    since, until : str or None
        The first time that counts, and the first that does not any more.
    time_column : str, optional
    time_unit : {'s', 'ms', 'us', 'ns'}

    Attributes
    ----------
    growing : bool
        Whether events may bring further columns, as lines of JSON do: what has not come is NULL.
    """

    growing = False

    def __init__(
        self,
        inputs: Sequence[ir.Stream],
        where: str | None,
        since: str | None,
        until: str | None,
        *,
        time_column: str | None = None,
        time_unit: str = "s",
    ) -> None:
        self._declared = conditional_types(inputs)
        self._where, self._since, self._until = where, since, until
        self._column, self._unit = time_column, time_unit
        self._types: dict[str, pa.DataType] = {}
        self._filter: Filter | None = None
        self._times: Times | None = None

    def reads(self, names: Sequence[str]) -> list[str]:
        """Which of the columns the condition may speak of."""
        return [] if self._where is None else [name for name in names if name in words_of(self._where, names)]

    def of(self, table: pa.Table, source: str) -> pa.Table:
        """The events of a table that are taken."""
        if self._since is not None or self._until is not None:
            table = _inside(self._times_of(table, source), table, self._since, self._until)
        if self._where is None or not table.num_rows:
            return table
        words = words_of(self._where, table.schema.names)
        given = {each.name: each.type if each.name in words else pa.null() for each in table.schema}
        times = self._times_of(table, source)
        time = times.column
        moments = times.read(table.column(time)) if time in words else pa.nulls(table.num_rows, pa.int64())
        types = {**(self._types if self.growing else {}), **given, **self._declared, time: moments.type}
        if self._filter is None or types != self._types:
            self._types, self._filter = types, self._filter_of(self._where, types, time)
        read = [name for name in self._filter.columns if name in given and name != time]
        asked = pa.table({time: moments, **{name: _cast(table.column(name), types[name]) for name in read}})
        asked = asked.combine_chunks()
        return table.filter(pa.chunked_array([self._filter.chosen(batch) for batch in asked.to_batches()]))

    def _times_of(self, table: pa.Table, source: str) -> Times:
        """What reads the times of all events."""
        if self._times is None:
            self._times = Times(time_column_of(table.schema.names, self._column, source), self._unit, source)
        return self._times

    def _filter_of(self, condition: str, types: Mapping[str, pa.DataType], time: str) -> Filter:
        """A condition over columns of these types."""
        from hamlet.engine.where import Filter  # brings in the language of queries

        schema = schema_of(pa.schema(list(types.items())), SortKey(time), "", self._unit, closed=False)
        declared = {name: kind for name, kind in self._declared.items() if name != time}
        return Filter(condition, with_declared(schema, declared), growing=self.growing)

    @property
    def clock(self) -> Clock | None:
        """What the times of all events are, of those too that are not taken; None where nobody has looked."""
        return None if self._times is None else self._times.clock

    @property
    def warnings(self) -> list[str]:
        """That columns of the condition never came, a sentence each."""
        return [] if self._filter is None else never_came(self._filter.unseen, self._types)


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return column if column.type.equals(kind) else column.cast(kind)


def _inside(times: Times, events: pa.Table, since: Any, until: Any) -> pa.Table:
    """The events of a table that lie in a period."""
    ticks = times.ticks(events.column(times.column))
    if times.clock is None:
        return events
    first, end = period_of(since, until, times.clock)
    kept = (ticks >= first) & (ticks < end)
    return events if kept.all() else events.filter(from_numpy(kept))
