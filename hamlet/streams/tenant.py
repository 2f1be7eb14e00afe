"""A specification over a live stream (`hamlet.runtime.tenant`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from hamlet.errors import DataError, WorkloadError
from hamlet.frontend.time_column import TIME, time_column_in
from hamlet.input.buffers import as_stream
from hamlet.input.csvfile import with_nulls
from hamlet.input.file_form import repeated_column
from hamlet.input.json_line import brief, object_of
from hamlet.input.jsonbad import NAMES, kind_of_type
from hamlet.input.live.table_lines import BadLineError, Columns, Lines, ParsedEvents, header_of, without_place
from hamlet.input.missing import missing_column
from hamlet.input.moments import no_times
from hamlet.input.ordering import SortKey
from hamlet.input.readers import OpenTable
from hamlet.input.widening import in_batches, widen
from hamlet.runtime.monitor import begun
from hamlet.runtime.monitor_tenant import MonitorTenant
from hamlet.runtime.tenant import Pieces
from hamlet.streams.clock import NANOSECONDS, text_of
from hamlet.streams.evaluate.columns import cells_of
from hamlet.streams.input_check import column_errors
from hamlet.streams.live_choice import LiveChoice
from hamlet.streams.monitor import Monitor, time_column_of
from hamlet.streams.program import ir
from hamlet.streams.results import Found
from hamlet.streams.sources import NULLS, TYPES, declared_by
from hamlet.streams.specification import Specification
from hamlet.streams.syntax.tokens import canonical
from hamlet.streams.tables import table_of_events


class StreamTenant(MonitorTenant):
    """A specification.

    Parameters
    ----------
    spec : Specification
    name : str
    options : mapping
        Of `Monitor`.
    chosen : LiveChoice, optional
        Which events are taken.
    named : bool
        Whether rows name the specification.
    names, delimiter
        The columns and the delimiter of CSV, where they are given.
    saved : bytes, optional
        From `save`.
    """

    kind = "specification"
    monitor: Monitor
    _reads = "specifications read json, csv or arrow"

    def __init__(
        self,
        spec: Specification,
        name: str,
        options: dict[str, Any],
        *,
        chosen: LiveChoice | None = None,
        named: bool = True,
        names: Sequence[str] | None = None,
        delimiter: str | None = None,
        saved: bytes | None = None,
    ) -> None:
        self.monitor = begun(Monitor, spec, options, saved)
        self.spec = spec
        self._chosen = chosen
        self.names: Sequence[str] = [name]
        self.named = named
        self._named, self._delimiter = names, delimiter
        self.known = Columns(SortKey(""), "")

    def text(self) -> str:
        """The specification, without comments."""
        return canonical(self.spec.text)

    @property
    def events(self) -> int:
        """Events seen."""
        return self.monitor.arrived

    @property
    def late_events(self) -> int:
        """Events left out for being late."""
        return self.monitor.late_events

    @property
    def _seen(self) -> int | None:
        """The largest time seen, in nanoseconds."""
        monitor = self.monitor
        if monitor.buffer is not None and monitor.buffer.seen is not None and monitor.clock is not None:
            return monitor.buffer.seen * monitor.clock.tick
        return monitor.seen

    @property
    def last_time(self) -> str | None:
        """The largest time seen."""
        clock = self.monitor.shown_clock
        return None if self._seen is None or clock is None else text_of(clock, self._seen)

    def parser(self, form: str, name: str) -> Any:
        """A reader of lines."""
        self._reads_lines(form)
        inputs, time = self.spec.inputs, self.monitor.options.time_column
        if form == "json":
            return _JsonEvents(self.monitor, inputs, self.known.types)
        return _CsvEvents(self.spec, inputs, name, time, self._delimiter, self._named, self._more, self.known.types)

    def _more(self, names: Sequence[str]) -> list[str]:
        """The columns that are read beside those of inputs."""
        found = [] if self._chosen is None else self._chosen.reads(names)
        order = self.monitor.options.order_column
        if order is not None and order not in names:
            raise DataError(missing_column(order, names, "order", "--order-column"))
        return found if order is None else [*found, order]

    def push(self, events: Any, name: str) -> Pieces:
        """Take events of a parser, or a table."""
        monitor = self.monitor
        monitor.attach(name)
        table, closed = (events.table, events.closed) if isinstance(events, ParsedEvents) else (events, True)
        if not isinstance(events, ParsedEvents):
            mistakes = column_errors(self.spec.program, dict(zip(table.schema.names, table.schema.types, strict=True)))
            if mistakes:
                raise WorkloadError(mistakes)
        if self._chosen is not None:
            table = self._chosen.of(table, name)
            if self._chosen.clock is not None:
                monitor.expect(self._chosen.clock)
        return self._pieces(monitor.push_batches(table if closed else OpenTable(table)))

    def pass_time(self, seconds: float) -> Pieces:
        """Time has passed since the last event: deadlines before it are run."""
        monitor, seen = self.monitor, self._seen
        clock = monitor.clock
        if seen is None or clock is None:
            return []
        behind = 0 if monitor.buffer is None else monitor.buffer._ticks * clock.tick
        until = seen + int(seconds * NANOSECONDS) - behind
        until -= until % clock.tick
        if monitor.buffer is not None:
            monitor.buffer.promise(until // clock.tick)
            monitor._feed_released(until // clock.tick)
        monitor.promised = max(until, monitor.promised if monitor.promised is not None else until)
        monitor.pass_before(until)
        return self._pieces(monitor.evaluator.take())

    def _pieces(self, found: list[Found]) -> Pieces:
        if not found:
            return []
        monitor = self.monitor
        return [(0, monitor.form.batch(found, monitor.shown_clock, monitor.start_at or 0))]

    def columns(self, place: int) -> Sequence[str]:  # noqa: ARG002
        """The columns of the rows."""
        return list(self.monitor.form.schema(self.monitor.clock).names)

    def _row_form(self, place: int) -> dict[str, Any]:  # noqa: ARG002
        return {"sparse": True}


class _JsonEvents(Lines):
    """Lines of JSON objects, of which some attribute may be an array: a tuple."""

    header = False

    def __init__(self, monitor: Monitor, inputs: Sequence[ir.Stream], known: dict[str, pa.DataType]) -> None:
        self._monitor, self._inputs = monitor, inputs
        self._read = {each.name for each in inputs}
        self._known = known  # types of what is read, in this stream and in those before

    def begin(self, line: bytes) -> None:
        """There is no header."""

    def parse(self, block: bytes) -> ParsedEvents | None:
        """The events of a block of lines."""
        rows: list[dict[str, Any]] = []
        for line in block.split(b"\n"):
            if not line.strip():
                continue
            try:
                rows.append(object_of(line))
            except ValueError as error:
                raise BadLineError(str(error)) from None
        if not rows:
            return None
        asked = self._monitor.options.time_column
        time = self._monitor.time_column or next(filter(None, (time_column_in(row, asked) for row in rows)), None)
        if time is None:
            raise BadLineError(missing_column(asked or TIME, [*rows[0]], "time", "--time-column"))
        if any(row.get(time) is None for row in rows):
            raise BadLineError(f"there is no {time!r}")
        try:
            table, closed = table_of_events(rows, self._inputs, time, self._monitor.arrived)
        except DataError as error:
            raise BadLineError(str(error)) from None
        self._check(table, time)
        self._keep_kinds(table, {*self._read, time})
        return ParsedEvents(table, closed)

    def _keep_kinds(self, table: pa.Table, names: set[str]) -> None:
        """Raise BadLineError where values are of another kind than those of the lines before, as a file does."""
        read = {each.name: each.type for each in table.schema if each.name in names and kind_of_type(each.type)}
        for name, kind in read.items():
            known = kind_of_type(self._known.get(name, kind))
            if known is not None and kind_of_type(kind) is not known:
                value = next(each for each in table.column(name).to_pylist() if each is not None)
                raise BadLineError(f"{name!r} is {brief(value)}, and {NAMES[known]} in the lines before")
        self._known |= read

    def _check(self, table: pa.Table, time: str) -> None:
        """Raise BadLineError where a value is none of its input's type, or the time none."""
        kind = table.schema.field(time).type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_string(kind)):
            raise BadLineError(f"{time!r} holds {kind}, which is no time")
        _check_texts(time, table.column(time))
        for each in self._inputs:
            if each.name not in table.schema.names:
                continue
            found = table.schema.field(each.name).type
            if isinstance(each.type, ir.Scalar) and found == TYPES.get(each.type.family) and found != pa.float64():
                continue
            try:
                cells_of(table.column(each.name), each, self._monitor.evaluator.store.words, first=None)
            except DataError as error:
                raise BadLineError(str(error).split(": ", 1)[-1]) from None


class _CsvEvents(Lines):
    """Lines of CSV behind a header: columns are read as the inputs' types, ``#`` or nothing is no value."""

    def __init__(
        self,
        spec: Specification,
        inputs: Sequence[ir.Stream],
        name: str,
        time: str | None,
        delimiter: str | None,
        names: Sequence[str] | None,
        more: Callable[[Sequence[str]], list[str]],
        known: dict[str, pa.DataType],
    ) -> None:
        self._spec, self._inputs, self._name = spec, inputs, name
        self._wanted_time, self._asked, self._read_besides = time, delimiter, more
        self._known = known  # types of columns of no input, in this stream and in those before
        self.header = names is None
        if names is not None:
            self._learn(list(names), delimiter or ",")

    def begin(self, line: bytes) -> None:
        """Take the header."""
        self._learn(*header_of(line, self._asked, self._name))

    def _learn(self, names: list[str], delimiter: str) -> None:
        names = [each.strip() for each in names]
        if (repeated := repeated_column(names)) is not None:
            raise DataError(f"{self._name}: {repeated}")
        self._names, self._delimiter = names, delimiter
        self._time = time_column_of(names, self._wanted_time, self._name)
        mistakes = column_errors(self._spec.program, dict.fromkeys(names))
        if mistakes:
            raise WorkloadError(mistakes)
        declared = declared_by(each for each in self._inputs if each.name in names)
        self._types: dict[str, pa.DataType] = {**declared, self._time: pa.string()}
        try:
            self._more = [each for each in self._read_besides(names) if each not in self._types]
        except DataError as error:
            raise DataError(f"{self._name}: {error}") from None

    def parse(self, block: bytes) -> ParsedEvents | None:
        """The events of a block of lines."""
        if not block.strip(b"\r\n"):
            return None
        try:
            table = self._read(block, {**self._types, **self._learnt})
        except pa.ArrowException as error:
            table = self._read_wider(block, without_place(str(error), self._names or ()))
        for name in self._more:
            if pa.types.is_binary(table.schema.field(name).type):
                raise BadLineError(f"column {name!r} is not UTF-8 text")
        self._known |= {name: table.schema.field(name).type for name in self._more}
        table = pa.Table.from_batches([with_nulls(each, NULLS[1:]) for each in in_batches(table)], table.schema)
        times = table.column(self._time)
        if times.null_count or "" in set(times.to_pylist()):
            raise BadLineError(f"there is no {self._time}")
        _check_texts(self._time, times)
        return ParsedEvents(table, True)

    @property
    def _learnt(self) -> dict[str, pa.DataType]:
        return {name: self._known[name] for name in self._more if name in self._known}

    def _read(self, block: bytes, types: Mapping[str, pa.DataType]) -> pa.Table:
        return pa_csv.read_csv(
            as_stream(block),
            read_options=pa_csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=self._names),
            parse_options=pa_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=b'"' in block),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict(types),
                include_columns=[*self._types, *self._more],
                null_values=list(NULLS),
                strings_can_be_null=False,
            ),
        )

    def _read_wider(self, block: bytes, wrong: str) -> pa.Table:
        """Lines that do not fit; columns of no input may widen."""
        if not self._learnt:
            raise BadLineError(wrong)
        try:
            found = self._read(block, self._types).schema
            wide = {name: widen(kind, found.field(name).type) for name, kind in self._learnt.items()}
            if None in wide.values():
                raise BadLineError(wrong)
            return self._read(block, {**self._types, **wide})
        except pa.ArrowException:
            raise BadLineError(wrong) from None


def _check_texts(time: str, texts: pa.ChunkedArray) -> None:
    """Raise BadLineError where a text is no time."""
    wrong = no_times(texts) if pa.types.is_string(texts.type) else []
    if wrong:
        raise BadLineError(f"{time} is {brief(texts[wrong[0]].as_py())}, which is no time")
