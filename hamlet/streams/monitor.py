"""A specification over events that come in: push, advance, close, save, restore."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np
import pyarrow as pa

from hamlet.errors import DataError, LateError, MemoryLimitError, OptionError, option
from hamlet.frontend.time_column import TIME, time_column_in
from hamlet.input.columns import Int64Array
from hamlet.input.input_schema import refuse_repeated
from hamlet.input.missing import missing_column
from hamlet.input.moments import exact_seconds
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import reader_of, seconds_of
from hamlet.input.widening import FRACTION, is_clock
from hamlet.language.schema import Clock
from hamlet.runtime.expected import NO_EVENTS, Expected
from hamlet.runtime.monitor import BatchMonitor, Row
from hamlet.runtime.options import made_of, takes
from hamlet.runtime.reorder_buffer import ReorderBuffer
from hamlet.runtime.sizes import Limit, bytes_of, limit_of, size_text
from hamlet.streams.clock import NANOSECONDS, Times, integer_clock, nanoseconds_of, text_of
from hamlet.streams.evaluate._cells import Fault
from hamlet.streams.evaluate._evaluator import DeadlineLimit, MemoryLimit
from hamlet.streams.evaluate.columns import Cells, cells_of, plain_cells
from hamlet.streams.evaluate.compile import compile_program
from hamlet.streams.memory import held
from hamlet.streams.options import MonitorOptions, Options
from hamlet.streams.results import Found, RowForm
from hamlet.streams.specification import Specification
from hamlet.streams.tables import table_of_events

_TICKS, _ORDER = "\x00ticks", "\x00order"
_PLACE = ("times", "time_column", "start_at", "seen", "promised", "arrived", "late_events", "engine_clock")


class Monitor(BatchMonitor[Found]):
    """Computes the streams of a specification while events come in.

    Parameters
    ----------
    spec : Specification
    values : bool
        Whether the values of outputs are rows, beside those of triggers.
    start : int, float, str, datetime or None
        When the clocks of periodic streams start; by default at the first event.
    time_column : str, optional
        By default ``time``, else ``ts``, else ``timestamp``.
    time_unit : {'s', 'ms', 'us', 'ns'}
        What 1 means in an integer time column.
    order_column : str, optional
        What orders events of one time, which are then held until a later one comes.
    lateness : int, float, str or datetime.timedelta
        How far behind the latest time an event may be: ticks of the time column, or a duration (``'5 s'``).
    late : {'error', 'drop'}
        What becomes of later events.
    max_memory : int or str, optional
        Most bytes that streams and windows may hold: ``'2 GiB'``.
    max_deadlines : int
        Most deadlines that are evaluated between two events; where nothing can happen they are passed over in one step.
    features : str or iterable of str, optional
        Ways of evaluating that may be used (`hamlet.streams.evaluate.compile.FEATURES`), for tests and
        measurements; by default all. Rows do not depend on them.

    Attributes
    ----------
    stats : mapping of str to int

    Examples
    --------
    >>> import hamlet.streams as streams
    >>> spec = streams.Specification.parse('input a: Int64  output n @1Hz := a.aggregate(over: 2s, using: count)')
    >>> monitor = streams.Monitor(spec, values=True)
    >>> monitor.push([{"time": 0, "a": 7}, {"time": 2, "a": 8}])
    [{'stream': 'n', 'time': 1, 'value': 1}]
    >>> monitor.advance(2)
    [{'stream': 'n', 'time': 2, 'value': 1}]
    """

    @takes(Options)
    def __init__(self, spec: Specification, *, source: str = "the events", **options: Unpack[MonitorOptions]) -> None:
        super().__init__()
        if not isinstance(spec, Specification):
            raise OptionError(
                f"a monitor takes a Specification, not a {type(spec).__name__}; Specification.parse(text) makes one"
            )
        self.options = chosen = made_of(Options, options, ("source",))
        self.spec = spec
        self._limit = bytes_of(chosen.max_memory)
        self.form = RowForm(spec.program, chosen.values)
        self.evaluator = compile_program(
            spec.program,
            values=chosen.values,
            max_deadlines=chosen.max_deadlines,
            max_memory=self._limit or 0,
            features=chosen.ways,
        )
        self.time_column: str | None = None  # known once events have come
        self.times: Times | None = None
        self.start_at: int | None = None  # ns
        self.seen: int | None = None  # the largest time, ns
        self.promised: int | None = None  # events before it are late, ns
        self._read_clock: Clock | None = None  # whose times `_ticks` reads
        self._ticks: Callable[[Any], int | None]
        self.arrived = 0
        self.late_events = 0
        self._expected = Expected(each.name for each in spec.inputs)
        self.buffer: ReorderBuffer | None = None
        self.engine_clock: Clock | None = None
        seconds = seconds_of(chosen.lateness)
        waits = (int(chosen.lateness) if seconds is None else seconds) != 0  # type: ignore[arg-type]
        if waits or chosen.order_column is not None:
            key = SortKey(_TICKS, None if chosen.order_column is None else _ORDER)
            self.buffer = ReorderBuffer(key, chosen.lateness, chosen.late, counted=chosen.max_memory is not None)
        Times("time", chosen.time_unit)
        self._source = source

    # ------------------------------------------------------------------------------------------------- the protocol

    def push(self, events: Any) -> list[Row]:
        """Take events, as other monitors do, or a single one as a dict; give the rows that they decide."""
        if isinstance(events, Mapping) and not any(
            hasattr(each, "__len__") and not isinstance(each, (str, bytes)) for each in events.values()
        ):
            events = [events]
        return super().push(events)

    def advance(self, time: Any) -> list[Row]:
        """Promise that no event of a time or before will come: run the deadlines up to it, and those at it.

        A time before one that was promised changes nothing.

        Parameters
        ----------
        time : int, float, str, datetime or numpy.datetime64
            As the time column has it.
        """
        return super().advance(time)

    @property
    def _text(self) -> Specification:
        return self.spec

    def _push(self, events: Any) -> list[Row]:
        if type(events) is list and len(events) == 1 and type(events[0]) is dict and self._took_plain(events[0]):
            return self._dicts(self.evaluator.take())
        return self._dicts(self._pushed(events))

    def _took_plain(self, event: dict[Any, Any]) -> bool:
        """Take a single event that has a time in order, and values of just the types of the inputs; False is not taken.

        The columns of one value that the evaluator takes are made without Arrow, which costs ten times the rest.
        """
        times, clock, start = self.times, self.clock, self.start_at
        if times is None or clock is None or start is None or self.buffer is not None:
            return False
        if clock is not self._read_clock:
            self._read_clock, self._ticks = clock, reader_of(clock)
        time = self._ticks(event.get(self.time_column or times.column))
        tick = clock.tick
        if time is None or start % tick:
            return False
        at = time * tick
        if at < start or any(bound is not None and at < bound for bound in (self.seen, self.promised)):
            return False
        self.evaluator.store.tidy()
        columns = plain_cells(event, self.spec.inputs, times.column, self.evaluator.store.words)
        if columns is None:
            return False
        if self._expected.missing:
            self._expected.see(self._given(columns))
        self.arrived += 1
        times.rows += 1
        ticks = np.array((time,), np.int64)
        self._guarded(lambda: self.evaluator.feed(ticks, start // tick, tick, columns))
        self.seen = at
        self._check_memory()
        return True

    def _advanced(self, time: Any) -> list[Found]:
        clock = self.clock
        if clock is None:
            clock = Clock("time", "ns", FRACTION) if isinstance(time, float) else integer_clock(self.options.time_unit)
        until = nanoseconds_of(time, clock)
        if self.promised is not None and until < self.promised:
            return []
        if self.start_at is None:
            if self.options.start is None:
                self.promised = until + 1
                return []
            self._begin(clock, None)
        if self.buffer is not None and self.clock is not None:
            edge = until // clock.tick + 1
            self.buffer.promise(edge)
            self._feed_released(edge)
        self.promised = until + 1
        assert self.start_at is not None
        if until >= self.start_at:
            self._guarded(lambda: self.evaluator.advance(until - self.start_at, True))
        return self.evaluator.take()

    def _held(self) -> tuple[int, int]:
        store = self.evaluator.store
        rows, size = (0, 0) if self.buffer is None else self.buffer.held()
        return rows + sum(each.kept(None) for each in store.streams), size + store.bytes + store.words.bytes

    @property
    def warnings(self) -> list[str]:
        """What was probably not meant, a sentence each: inputs that never came."""
        with self._lock:
            if not self.arrived:
                return [NO_EVENTS] if self._closed else []
            return self._expected.warnings()

    def _saved(self) -> bytes:
        from hamlet.streams.saving import saved

        return saved(self)

    # ----------------------------------------------------------------------------------------------------- the work

    def _dicts(self, parts: list[Found]) -> list[Row]:
        return self.form.dicts(parts, self.shown_clock, self.start_at or 0)

    @property
    def stats(self) -> dict[str, int]:
        """What was counted so far."""
        streams = self.evaluator.store.streams
        return {
            "events": self.arrived,
            "late_events": self.late_events,
            "deadlines": self.evaluator.deadlines,
            "instances": sum(each.instances() for each in streams if each.spawned),
            "bytes": held(self.spec.program, self.evaluator.store),
            "allocated": self.evaluator.store.bytes,
        }

    @property
    def clock(self) -> Clock | None:
        """What the times are; None before the first event."""
        return None if self.times is None else self.times.clock

    def expect(self, clock: Clock) -> None:
        """Take times for those of a clock that events which were left out have shown: others may be of it, too."""
        if self.times is None:
            self.times = Times(self.find_time([clock.column]), self.options.time_unit, self._source)
        if self.times.clock is None or (clock.is_fraction and self.times.clock.unit == "s"):
            self.times.clock = clock

    @property
    def shown_clock(self) -> Clock | None:
        """The clock that rows are given by, which `advance` may ask for before any event."""
        return self.clock or integer_clock(self.options.time_unit)

    def _pushed(self, events: Any) -> list[Found]:
        table, closed = table_of_events(
            events, self.spec.inputs, self.time_column or self.options.time_column, self.arrived
        )
        batches = [batch for batch in table.combine_chunks().to_batches() if batch.num_rows]
        if not batches:
            return []
        times = self.times
        place = [getattr(self, name) for name in _PLACE], None if times is None else (times.clock, times.rows)
        try:
            self.take(batches[0], closed)
        except BaseException:
            if self._failed is None:
                self._go_back(*place)
            raise
        for batch in batches[1:]:  # of more bytes than one batch can have
            with self._working():
                self.take(batch, closed)
        return self.evaluator.take()

    def _go_back(self, place: list[Any], times: tuple[Clock | None, int] | None) -> None:
        """Be at a place where the monitor was before it began to read events."""
        for name, value in zip(_PLACE, place, strict=True):
            setattr(self, name, value)
        if self.times is not None and times is not None:
            self.times.clock, self.times.rows = times

    def _ended(self) -> list[Found]:
        if self.buffer is not None:
            self._feed_released(1 << 62)
        if self.seen is not None and self.start_at is not None:  # deadlines at the last event's time come behind it
            until = self.seen - self.start_at
            self._guarded(lambda: self.evaluator.advance(until, True))
        return self.evaluator.take()

    def take(self, batch: pa.RecordBatch, closed: bool = True) -> None:
        """Take a batch of events; `closed` where a column that is not there is a mistake."""
        column = self._time_of(batch)
        assert self.times is not None
        ticks = self.times.ticks(batch.column(column))
        if closed:
            self.check_columns(batch.schema.names)
        self.take_at(ticks, batch)

    def take_at(self, ticks: Int64Array, batch: pa.RecordBatch) -> None:
        """Take events whose times are in ticks already."""
        clock = self.clock
        if clock is None or not len(ticks):
            return
        if self.buffer is None:
            kept = self._judged(ticks, clock)
            if kept is not None:
                ticks, batch = ticks[kept], batch.filter(pa.array(kept))
            self._feed(ticks, batch, clock)
            return
        self._through_buffer(ticks, batch, clock)

    def _through_buffer(self, ticks: Int64Array, batch: pa.RecordBatch, clock: Clock) -> None:
        assert self.buffer is not None
        names = [each.name for each in self.spec.inputs if each.name in batch.schema.names]
        keys = {_TICKS: pa.array(ticks)}
        orders = None
        if self.options.order_column is not None:
            orders = self._orders(batch, self.options.order_column)
            keys[_ORDER] = pa.array(orders)
        timed = pa.RecordBatch.from_arrays([*keys.values(), *(batch.column(each) for each in names)], [*keys, *names])
        if self.engine_clock is not None and self.engine_clock != clock:
            raise DataError(f"{self._source}: times are fractions now, and were integers; with lateness give one kind")
        self.engine_clock = clock
        fresh = self.buffer.judge(ticks, clock)
        if fresh is not None:
            timed, ticks = timed.filter(pa.array(fresh)), ticks[fresh]
            orders = None if orders is None else orders[fresh]
        if len(ticks):
            self._expected.see(self._given(self.columns_of(timed)))  # what no input can be is refused before it is held
            self._refuse_before_start(int(ticks.min()), clock)
        with self._working():
            if fresh is not None:
                self.buffer.leave_out(int((~fresh).sum()))
            if len(ticks):
                self.buffer.take(timed, ticks, orders, clock)
            self.arrived, self.late_events = self.buffer.events, self.buffer.late_events
            watermark = self.buffer.watermark
            if watermark is not None:
                self._feed_released(watermark)

    def _orders(self, batch: pa.RecordBatch, name: str) -> Int64Array:
        """What orders events of one time."""
        if name not in batch.schema.names:
            raise DataError(f"{self._source}: {missing_column(name, batch.schema.names, 'order', '--order-column')}")
        if batch.column(name).null_count:
            raise DataError(f"{self._source}: the order column {name!r} is NULL in some row")
        if not is_clock(batch.schema.field(name).type):
            kind = batch.schema.field(name).type
            raise DataError(f"{self._source}: the order column {name!r} holds {kind}; it orders by integers or times")
        return SortKey(name, None, self._source).columns_of(batch)[0]

    def _feed_released(self, watermark: int) -> None:
        assert self.buffer is not None
        clock = self.clock
        for batch in self.buffer.release(watermark):
            assert clock is not None
            ticks = batch.column(0).to_numpy(zero_copy_only=False)
            self._feed(ticks, batch, clock)
        self._check_memory()

    def _time_of(self, batch: pa.RecordBatch) -> str:
        """The time column."""
        names = batch.schema.names
        if self.times is None:
            self.times = Times(self.find_time(names), self.options.time_unit, self._source)
        column = self.time_column or self.times.column
        if column not in names:
            raise DataError(f"{self._source}: {missing_column(column, names, 'time', '--time-column')}")
        return column

    def find_time(self, names: list[str]) -> str:
        """The time column among these; remembered."""
        self.time_column = time_column_of(names, self.options.time_column, self._source)
        return self.time_column

    def attach(self, source: str) -> None:
        """What messages call the events."""
        self._source = source

    def check_columns(self, names: list[str]) -> None:
        """Raise DataError unless every input has a column."""
        missing = [each.name for each in self.spec.inputs if each.name not in names]
        if missing:
            raise DataError(
                "\n".join(f"{self._source}: {missing_column(each, names)}, and it is an input" for each in missing)
            )

    def _judged(self, ticks: Int64Array, clock: Clock) -> Any:
        """Which events are in time, None where all are; raises at late ones unless they are dropped."""
        tick = clock.tick
        bound = -(1 << 62) if self.seen is None else self.seen // tick
        if self.promised is not None:
            bound = max(bound, -(-self.promised // tick))
        if ticks[0] >= bound and (len(ticks) == 1 or bool((ticks[1:] >= ticks[:-1]).all())):
            self.arrived += len(ticks)
            return None
        before = np.maximum.accumulate(np.concatenate([[bound], ticks[:-1]]))
        fresh = ticks >= before
        if self.options.late == "error" and not fresh.all():
            place = int(np.argmin(fresh))
            time, expected = (text_of(clock, int(each) * tick) for each in (ticks[place], before[place]))
            raise LateError(
                f"{self._source}: event {self.arrived + place + 1} is late: its time is {time}, and no event before "
                f"{expected} is expected any more\n"
                f"hint: times must not decrease; give {option('lateness', '5 s')}, or leave late events out with "
                f"{option('late', 'drop')}"
            )
        self.arrived += len(ticks)
        self.late_events += int((~fresh).sum())
        return fresh

    def _begin(self, clock: Clock, first: int | None) -> None:
        """Set the start: as given, or the time of the first event."""
        if self.options.start is not None:
            self.start_at = nanoseconds_of(self.options.start, clock, option("start"))
        else:
            assert first is not None
            self.start_at = first

    def _feed(self, ticks: Int64Array, batch: pa.RecordBatch, clock: Clock) -> None:
        """Hand events in order to the evaluator."""
        if not len(ticks):
            return
        tick = clock.tick
        if self.start_at is None:
            self._begin(clock, int(ticks[0]) * tick)
        assert self.start_at is not None
        self._refuse_before_start(int(ticks[0]), clock)
        columns = self.columns_of(batch)
        if self._expected.missing:
            self._expected.see(self._given(columns))
        start, rest = divmod(self.start_at, tick)
        times = np.ascontiguousarray(ticks)
        if rest:  # the start falls between two ticks
            start, tick, times = self.start_at, 1, _scaled(times, tick)
        self._guarded(lambda: self.evaluator.feed(times, start, tick, columns))
        self.seen = int(ticks[-1]) * clock.tick
        self._check_memory()

    def _refuse_before_start(self, ticks: int, clock: Clock) -> None:
        """Raise DataError where an event is of a time before the start, which is given or has passed."""
        start = self.start_at
        if start is None and self.options.start is not None:
            start = nanoseconds_of(self.options.start, clock, option("start"))
        if start is not None and ticks * clock.tick < start:
            raise DataError(
                f"{self._source}: an event is of time {text_of(clock, ticks * clock.tick)}, before the start at "
                f"{text_of(clock, start)}\nhint: {option('start')} takes a time that no event is before"
            )

    def look(self, batch: pa.RecordBatch) -> list[str]:
        """See which inputs events have, and take none of them; gives what never came so far, a sentence each."""
        self._expected.see(self._given(self.columns_of(batch)))
        return self._expected.warnings()

    def _given(self, columns: list[Cells | None]) -> list[str]:
        """The inputs that events have values of."""
        return [each.name for each, cells in zip(self.spec.inputs, columns, strict=True) if cells is not None]

    def _check_memory(self) -> None:
        """Raise MemoryLimitError where texts, or events that are held back, make it too much."""
        limit, store = self._limit, self.evaluator.store
        if limit is None:
            return
        waiting = 0 if self.buffer is None else self.buffer.nbytes
        if store.bytes + store.words.bytes + waiting <= limit:
            return
        store.tidy(at_once=True)
        texts = store.words.bytes
        if store.bytes + texts + waiting <= limit:
            return
        if waiting >= texts:
            held = f"events held back for earlier ones take {size_text(waiting)}"
            raise self._too_much(held, f"shorten {option('lateness')}")
        raise self._too_much(f"texts take {size_text(texts)}", "compare texts instead of keeping them")

    def _too_much(self, most: str, remedy: str) -> MemoryLimitError:
        """The error of a run that needs more memory than it may take."""
        limit = self._limit or 0
        self._failed = f"the run stops, since it needs more memory than its limit, {size_text(limit)}; {most}"
        return MemoryLimitError(f"{self._failed}\nhint: {remedy}, or raise the limit ({option('max_memory')})")

    def pass_before(self, nanoseconds: int) -> None:
        """Run the deadlines before a time, as an event of that time would."""
        if self.start_at is not None and nanoseconds > self.start_at:
            until = nanoseconds - self.start_at
            self._guarded(lambda: self.evaluator.advance(until, False))

    def columns_of(self, batch: pa.RecordBatch) -> list[Cells | None]:
        """The cells of each input; None for one that no event of the batch extends."""
        names, words = batch.schema.names, self.evaluator.store.words
        self.evaluator.store.tidy()
        columns = [batch.column(names.index(each.name)) if each.name in names else None for each in self.spec.inputs]
        first = self.arrived - batch.num_rows
        return [
            None if column is None else cells_of(self._value_of(column, each.name), each, words, self._source, first)
            for column, each in zip(columns, self.spec.inputs, strict=True)
        ]

    def _value_of(self, column: pa.Array, name: str) -> pa.Array:
        """A column of events as a value; seconds that are the time, as decimals."""
        return exact_seconds(column) if name == self.time_column and column.type == FRACTION else column

    def _guarded(self, work: Any) -> None:
        """Run a part of the evaluation; what goes wrong in a computation names stream and time.

        Nothing of it makes cycles, and the collector would look at every instance again and again.
        """
        collects = gc.isenabled()
        gc.disable()
        try:
            work()
        except Fault as fault:
            store = self.evaluator.store
            clock = self.shown_clock
            assert clock is not None
            when = text_of(clock, (self.start_at or 0) + store.time())
            name = self.evaluator.current.name if self.evaluator.current is not None else "?"
            self._failed = f"stream '{name}' at time {when}: {fault}"
            raise DataError(self._failed) from None
        except DeadlineLimit as error:
            remedy = f"if the jump in time is meant, allow more ({option('max_deadlines')}); is the time unit right?"
            self._failed = f"{error}\nhint: {remedy}"
            raise DataError(self._failed) from None
        except MemoryLimit as error:
            raise self._too_much(
                str(error), "close instances that are over (close when ...), shorten windows"
            ) from None
        except BaseException as error:
            self._failed = str(error) or type(error).__name__
            raise
        finally:
            if collects:
                gc.enable()

    # -------------------------------------------------------------------------------------------------------- saving

    @classmethod
    def restore(cls, spec: Specification, data: bytes, *, max_memory: Limit = ...) -> Monitor:
        """A monitor that goes on where another one was saved, with the options of that one.

        Parameters
        ----------
        spec : Specification
            That of the saved monitor; comments and layout may differ.
        data : bytes-like
            From `save`. Nothing in it is ever run.
        max_memory : int, str or None, optional
            The limit from now on, None for none; by default the one of the saved monitor.

        Raises
        ------
        RestoreError
            If the bytes are damaged, or of another specification or version.
        """
        from hamlet.streams.saving import restored

        return restored(spec, data, limit_of(max_memory))


def _scaled(times: Int64Array, tick: int) -> Int64Array:
    """Ticks as nanoseconds."""
    if len(times) and max(abs(int(times[0])), abs(int(times[-1]))) > (1 << 62) // tick:
        raise DataError("times are too large for a start that falls between two ticks; give a start of whole ticks")
    return times * tick


def time_column_of(names: list[str], wanted: str | None, source: str) -> str:
    """The name of the time column (`hamlet.frontend.time_column`).

    Raises
    ------
    DataError
        If there is none, or two columns have one name.
    """
    refuse_repeated(names, source)
    found = time_column_in(names, wanted)
    if found is None:
        raise DataError(f"{source}: {missing_column(wanted or TIME, names, 'time', '--time-column')}")
    return found


__all__ = ["NANOSECONDS", "Monitor", "time_column_of"]
