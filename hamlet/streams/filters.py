"""Some of the events of an input: those for which a condition is true, and those of a period.

Events of specifications need no type column, and their times may be fractions of seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from hamlet.engine.where import Filter
from hamlet.errors import Diagnostic, OptionError, WorkloadError
from hamlet.input.csvform import CsvForm
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import SortKey
from hamlet.streams.clock import StreamClock, Times
from hamlet.streams.monitor import time_column_of
from hamlet.streams.program import ir
from hamlet.streams.sources import Feed, open_feed

_NO_TYPE = "\0"  # stands for the column of event types, which need not be there


class ChosenFeed(Feed):
    """The events of a file for which a condition is true.

    Parameters
    ----------
    path : str
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
        path: str,
        inputs: Sequence[ir.Stream],
        condition: str,
        *,
        time_column: str | None = None,
        input_format: str | None = None,
        form: CsvForm | None = None,
    ) -> None:
        plain = open_feed(path, inputs, time_column=time_column, input_format=input_format, form=form)
        known = {each.name for each in inputs}
        types = _types_of(plain, path, form or CsvForm())
        words = set(re.findall(r"\w+", condition))
        words |= {name for name in types if not re.fullmatch(r"\w+", name) and name in condition}
        self._columns = {
            name: each for name, each in types.items() if each is not None and (name in words or name in known)
        }
        more = [
            replace(inputs[0], name=name, type=_scalar(kind))
            for name, kind in self._columns.items()
            if name not in known and name in words
        ]
        self._feed = open_feed(path, [*inputs, *more], time_column=time_column, input_format=input_format, form=form)
        self.name, self.closed, self.names = self._feed.name, self._feed.closed, self._feed.names
        read = {each.name: _arrow(each) for each in [*inputs, *more] if isinstance(each.type, ir.Scalar)}
        time = time_column_of(list(types), time_column, self.name)
        if time in words and time not in known:
            raise OptionError(f"--where cannot speak of {time!r}, the time of a specification's events")
        fields = [pa.field(name, kind) for name, kind in read.items() if name != time]
        schema = pa.schema([pa.field(time, pa.int64()), pa.field(_NO_TYPE, pa.string()), *fields])
        try:
            self._filter = Filter(condition, schema_of(schema, SortKey(time), _NO_TYPE, "s"))
        except WorkloadError as error:
            raise WorkloadError(map(_without_type, error.diagnostics)) from None

    @property
    def types(self) -> Mapping[str, pa.DataType | None] | None:
        """The types of the columns, where they are known before the events are read."""
        return self._feed.types

    def notes(self) -> list[str]:
        """What to know of the input."""
        return self._feed.notes()

    def unreadable(self) -> dict[str, str]:
        """The columns that no input can be read from, with their types."""
        return self._feed.unreadable()

    def survey(self, times: Times) -> None:
        """Look at all times before the first event is given."""
        self._feed.survey(times)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The events that fulfil the condition."""
        for batch in self._feed.batches():
            kept = batch.filter(self._filter.chosen(batch))
            if kept.num_rows:
                yield kept


class PeriodFeed(Feed):
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
        self._feed, self._since, self._until = feed, since, until
        self._column, self._unit = time_column, time_unit
        self.name, self.closed, self.names = feed.name, feed.closed, feed.names

    @property
    def types(self) -> Mapping[str, pa.DataType | None] | None:
        """The types of the columns, where they are known before the events are read."""
        return self._feed.types

    def unreadable(self) -> dict[str, str]:
        """The columns that no input can be read from, with their types."""
        return self._feed.unreadable()

    def survey(self, times: Times) -> None:
        """Look at all times before the first event is given."""
        self._feed.survey(times)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The events of the period."""
        times: Times | None = None
        for batch in self._feed.batches():
            if times is None:
                column = time_column_of(batch.schema.names, self._column, self.name)
                times = Times(column, self._unit, self.name)
                self._feed.survey(times)
            ticks = times.ticks(batch.column(times.column))
            assert times.clock is not None
            first, end = self._bounds(times.clock)
            kept = (ticks >= first) & (ticks < end)
            if kept.all():
                yield batch
            elif kept.any():
                yield batch.filter(pa.array(kept))

    def _bounds(self, clock: StreamClock) -> tuple[int, int]:
        """The first tick of the period and the first after it."""
        first, end = (
            bound if time is None else -(-_given(clock, time, option) // clock.tick)
            for time, option, bound in ((self._since, "--from", -(2**63)), (self._until, "--to", 2**63 - 1))
        )
        if end <= first:
            raise OptionError(f"--to ({self._until}) is not after --from ({self._since}), so no event is between them")
        return first, end


def _given(clock: StreamClock, time: str, option: str) -> int:
    """A time that a user gives, in nanoseconds."""
    try:
        return clock.nanoseconds_of(time)
    except OptionError as error:
        raise OptionError(f"{option}: {error}") from None


def _without_type(error: Diagnostic) -> Diagnostic:
    """The message without the column that no file has."""
    return replace(error, hint=None if error.hint is None else error.hint.replace(f"{_NO_TYPE}, ", ""))


def _types_of(feed: Feed, path: str, form: CsvForm) -> dict[str, pa.DataType | None]:
    """The types of all columns; those of text as they look in the first lines."""
    types = dict(feed.types or {})
    if types and all(each is None for each in types.values()):
        convert = pa_csv.ConvertOptions(null_values=["", "#"])
        parse = pa_csv.ParseOptions(delimiter=form.of(Path(path)), invalid_row_handler=lambda _: "skip")
        stream = pa.input_stream(path, compression="detect")
        with pa_csv.open_csv(stream, parse_options=parse, convert_options=convert) as reader:
            types = {name.strip(): kind for name, kind in zip(reader.schema.names, reader.schema.types, strict=True)}
    return types


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
