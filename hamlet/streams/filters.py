"""Some of the events of an input: those for which a condition is true, and those of a period.

Events of specifications need no type column, and their times may be fractions of seconds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from hamlet.engine.live_filter import never_came
from hamlet.errors import DataError, Diagnostic, OptionError, WorkloadError, option
from hamlet.input.csvform import CsvForm
from hamlet.input.input_schema import schema_of
from hamlet.input.missing import missing_column
from hamlet.input.ordering import SortKey
from hamlet.input.widening import joined
from hamlet.language.schema import Clock
from hamlet.streams.clock import Times, nanoseconds_of
from hamlet.streams.feeds import Around, Feed
from hamlet.streams.monitor import time_column_of
from hamlet.streams.program import ir
from hamlet.streams.sources import open_feed

if TYPE_CHECKING:
    from hamlet.engine.where import Filter

_NO_TYPE = "\0"  # stands for the column of event types, which need not be there


class ChosenFeed(Around):
    """The events for which a condition is true.

    Parameters
    ----------
    source : paths, or events in memory
    inputs : sequence of ir.Stream
        What specifications read; the columns of the condition are read besides.
    condition : str
    time_column, input_format : str, optional
    form : CsvForm, optional

    Raises
    ------
    WorkloadError
        With every mistake of the condition.
    OptionError
        If it speaks of the time, which may be a fraction here.
    """

    def __init__(
        self,
        source: Any,
        inputs: Sequence[ir.Stream],
        condition: str,
        *,
        time_column: str | None = None,
        input_format: str | None = None,
        form: CsvForm | None = None,
    ) -> None:
        known = {each.name for each in inputs}
        named = [replace(inputs[0], name=each, type=ir.Scalar("String")) for each in words_of(condition, ()) - known]
        plain = open_feed(source, [*inputs, *named], time_column=time_column, input_format=input_format, form=form)
        names = _names_of(plain)
        words = words_of(condition, names)
        time = time_column_of(names, time_column, plain.name)
        besides = plain.settled(lambda name: name in words_of(condition, [name]) and name not in known | {time})
        more = [replace(inputs[0], name=each.name, type=_scalar(each.type)) for each in besides]
        wanted = [*inputs, *more]
        super().__init__(open_feed(source, wanted, time_column=time_column, input_format=input_format, form=form))
        read = dict.fromkeys(names, pa.null())
        read |= {each.name: _arrow(each) for each in wanted if isinstance(each.type, ir.Scalar)}
        read |= {each.name: each.type for each in besides if pa.types.is_null(each.type)}
        if time in known:
            words.discard(time)
        self._filter = _filter_of(condition, words, read, time)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The events that fulfil the condition."""
        for batch in self._given():
            kept = batch.filter(self._filter.chosen(batch))
            if kept.num_rows:
                yield kept


class PeriodFeed(Around):
    """The events of a feed from a time on and before another one.

    Parameters
    ----------
    feed : Feed
    since, until : str or None
        The first time that counts, and the first that does not any more; None for no such bound.
    time_column : str, optional
    time_unit : {'s', 'ms', 'us', 'ns'}
        What 1 means in an integer time column.

    Raises
    ------
    OptionError
        If there is no time between them. If they are no times of the column `batches` raises it.
    """

    def __init__(
        self, feed: Feed, since: str | None, until: str | None, *, time_column: str | None = None, time_unit: str = "s"
    ) -> None:
        super().__init__(feed)
        self._since, self._until = since, until
        self._column, self._unit = time_column, time_unit

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The events of the period."""
        times: Times | None = None
        self._feed.leave_out_period(self._since, self._until, self._unit)
        for batch in self._given():
            if times is None:
                column = time_column_of(batch.schema.names, self._column, self.name)
                times = Times(column, self._unit, self.name)
                self._feed.survey(times)
            kept = _inside(times, batch, self._since, self._until)
            if kept.num_rows:
                yield kept


class OrderedFeed(Around):
    """The events of a feed by time, and events of one time by a column; all are read before the first is given.

    Parameters
    ----------
    feed : Feed
        It gives the column.
    order_column : str
    time_column : str, optional
    time_unit : {'s', 'ms', 'us', 'ns'}
    """

    def __init__(self, feed: Feed, order_column: str, *, time_column: str | None = None, time_unit: str = "s") -> None:
        super().__init__(feed)
        self._order, self.rows = order_column, feed.rows
        self._column, self._unit = time_column, time_unit

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The events in order."""
        batches = list(self._given())
        if not batches:
            return
        table = joined([pa.Table.from_batches([batch]) for batch in batches]).combine_chunks()
        if self._order not in table.column_names:
            raise DataError(
                f"{self.name}: {missing_column(self._order, table.column_names, 'order', '--order-column')}"
            )
        times = Times(time_column_of(table.column_names, self._column, self.name), self._unit, self.name)
        self._feed.survey(times)
        ticks = times.ticks(table.column(times.column))
        if table.column(self._order).null_count:
            raise DataError(f"{self.name}: the order column {self._order!r} is NULL in some row")
        keys = pa.table({"time": ticks, "order": table.column(self._order)})
        places = pc.sort_indices(keys, sort_keys=[("time", "ascending"), ("order", "ascending")])
        yield from table.take(places).combine_chunks().to_batches()


def open_chosen(
    source: Any,
    inputs: Sequence[ir.Stream],
    *,
    where: str | None = None,
    since: Any = None,
    until: Any = None,
    time_column: str | None = None,
    order_column: str | None = None,
    time_unit: str = "s",
    input_format: str | None = None,
    form: CsvForm | None = None,
) -> Feed:
    """Open events of any form, as `open_feed`, and give those that fulfil a condition and lie in a period.

    Parameters
    ----------
    where : str, optional
        A condition over columns.
    since, until : optional
        The first time that counts, and the first that does not any more.
    order_column : str, optional
        What orders events of one time; then the events are sorted.
    """
    if where is not None and not isinstance(where, str):
        raise OptionError(f'where is a {type(where).__name__}; it must be a text such as "speed < 10"')
    read = list(inputs)
    if order_column is not None and order_column not in {each.name for each in inputs} and inputs:
        read.append(replace(inputs[0], name=order_column, type=ir.Scalar("Int64")))
    reading: dict[str, Any] = {"time_column": time_column, "input_format": input_format, "form": form}
    feed = open_feed(source, read, **reading) if where is None else ChosenFeed(source, read, where, **reading)
    if order_column is not None:
        feed = OrderedFeed(feed, order_column, time_column=time_column, time_unit=time_unit)
    if since is not None or until is not None:
        feed = PeriodFeed(feed, since, until, time_column=time_column, time_unit=time_unit)
    return feed


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
        self._declared = {each.name: _arrow(each) for each in inputs if isinstance(each.type, ir.Scalar)}
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
            if self._times is None:
                column = time_column_of(table.schema.names, self._column, source)
                self._times = Times(column, self._unit, source)
            table = _inside(self._times, table, self._since, self._until)
        if self._where is None or not table.num_rows:
            return table
        words = words_of(self._where, table.schema.names)
        given = {each.name: each.type if each.name in words else pa.null() for each in table.schema}
        types = {**(self._types if self.growing else {}), **given, **self._declared}
        time = time_column_of(table.schema.names, self._column, source)
        if self._filter is None or types != self._types:
            if time in self._declared:
                words.discard(time)
            self._types, self._filter = types, _filter_of(self._where, words, types, time, growing=self.growing)
        arrays = {name: _cast(table.column(name), types[name]) for name in self._filter.columns if name in given}
        asked = pa.table({**arrays, time: pa.nulls(table.num_rows, pa.int64())}).combine_chunks()
        return table.filter(pa.chunked_array([self._filter.chosen(batch) for batch in asked.to_batches()]))

    @property
    def clock(self) -> Clock | None:
        """What the times of all events are, of those too that are not taken; None where nobody has looked."""
        return None if self._times is None else self._times.clock

    @property
    def warnings(self) -> list[str]:
        """That columns of the condition never came, a sentence each."""
        return [] if self._filter is None else never_came(self._filter.unseen, self._types)


def words_of(condition: str, names: Collection[str]) -> set[str]:
    """The words of a condition, and the names in it that are none."""
    words = set(re.findall(r"\w+", condition))
    return words | {name for name in names if not re.fullmatch(r"\w+", name) and name in condition}


def _filter_of(
    condition: str, words: set[str], types: Mapping[str, pa.DataType], time: str, *, growing: bool = False
) -> Filter:
    """A condition over columns of these types."""
    if time in words:
        raise OptionError(f"{option('where')} cannot speak of {time!r}, the time of a specification's events")
    fields = [pa.field(name, kind) for name, kind in types.items() if name != time]
    schema = pa.schema([pa.field(time, pa.int64()), pa.field(_NO_TYPE, pa.string()), *fields])
    from hamlet.engine.where import Filter  # brings in the language of queries

    try:
        return Filter(condition, schema_of(schema, SortKey(time), _NO_TYPE, "s"), growing=growing)
    except WorkloadError as error:
        raise WorkloadError(map(_without_type, error.diagnostics)) from None


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    return column if column.type.equals(kind) else column.cast(kind)


def _inside(times: Times, events: Any, since: Any, until: Any) -> Any:
    """The events of a batch, or a table, of a period."""
    ticks = times.ticks(events.column(times.column))
    clock = times.clock
    if clock is None:
        return events
    first, end = (
        bound if time is None else -(-nanoseconds_of(time, clock, name) // clock.tick)
        for time, name, bound in ((since, option("since"), -(2**63)), (until, option("until"), 2**63 - 1))
    )
    if end <= first:
        raise OptionError(
            f"{option('until')} ({until}) is not after {option('since')} ({since}), so no event is between them"
        )
    kept = (ticks >= first) & (ticks < end)
    return events if kept.all() else events.filter(pa.array(kept))


def _without_type(error: Diagnostic) -> Diagnostic:
    """The message without the column that no file has."""
    return replace(error, hint=None if error.hint is None else error.hint.replace(f"{_NO_TYPE}, ", ""))


def _names_of(feed: Feed) -> list[str]:
    """The columns; of lines of JSON as far as the first show them."""
    if feed.names is not None:
        return list(feed.names)
    first = next(feed.batches(), None)
    return [] if first is None else list(first.schema.names)


def _scalar(kind: pa.DataType) -> ir.Scalar:
    if pa.types.is_boolean(kind):
        return ir.Scalar("Bool")
    if pa.types.is_integer(kind):
        return ir.Scalar("Int64")
    return ir.Scalar("Float64" if pa.types.is_floating(kind) else "String")


def _arrow(stream: ir.Stream) -> pa.DataType:
    assert isinstance(stream.type, ir.Scalar)
    return {"Int": pa.int64(), "UInt": pa.int64(), "Float": pa.float64(), "Bool": pa.bool_()}.get(
        stream.type.family, pa.string()
    )
