"""The online engine: events in batches of any size, rows of each window once it has closed.

A time step stays open until a later time arrives, so events of one time may be split over pushes and any split gives
the same rows. Source: DESIGN §5 ("Engine time"); LANGUAGE.md §2, §7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hamlet.columns import Int64Array, StringPool, integers
from hamlet.compile import compile_workload
from hamlet.errors import DataError, HamletError, OptionError, one_of
from hamlet.events import batch_of
from hamlet.executor import END_OF_TIME, Executor
from hamlet.input_schema import schema_of
from hamlet.ordering import SortKey
from hamlet.query import SECONDS, AttributeType
from hamlet.result import COUNT_TYPES, QueryRows, dicts_of
from hamlet.schema import UNITS_PER_SECOND, Clock, Schema
from hamlet.workload import Workload

MOST_TICKS = 1 << 61  # beyond it, window edges could pass 64 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to run a workload; the command line has the same names and defaults (DESIGN §5).

    Raises
    ------
    OptionError
        A value that an option cannot have.
    """

    sharing: str = "dynamic"
    benefit: str = "measured"
    numbers: str = "exact"
    count_type: str = "string"
    threads: int = 1
    time_column: str = "time"
    type_column: str = "type"
    order_column: str | None = None
    time_unit: str = "s"

    def __post_init__(self) -> None:
        for name, choices in (
            ("sharing", ("dynamic", "static", "never")),
            ("benefit", ("measured", "paper")),
            ("numbers", ("exact", "float")),
            ("count_type", COUNT_TYPES),
            ("time_unit", tuple(UNITS_PER_SECOND)),
        ):
            value = getattr(self, name)
            if value not in choices:
                raise OptionError(f"{name} is {value!r}; it must be {one_of([repr(choice) for choice in choices])}")
        if self.order_column is not None and self.order_column == self.time_column:
            raise OptionError(f"the order column is the time column ({self.time_column!r}); name another one, or none")
        if isinstance(self.threads, bool) or not isinstance(self.threads, int) or not 1 <= self.threads <= 1024:
            raise OptionError(f"threads is {self.threads!r}; it must be a whole number from 1 to 1024")


class Engine:
    """Counts the trends of a stream as it arrives.

    Parameters
    ----------
    workload : Workload
    lateness : int, float or str
        How far behind the largest time seen an event may be: a number of ticks of the time column, or a duration such
        as ``'5 s'``.
    late : {'error', 'drop'}
        What becomes of events later than that: an error that takes nothing of the push, or a count in `stats`.
    **options
        `Options`.

    Examples
    --------
    >>> engine = Engine(Workload.parse("RETURN COUNT(*) PATTERN SEQ(A, B+) WITHIN 10 s"))
    >>> engine.push([{"time": 1, "type": "A"}, {"time": 2, "type": "B"}, {"time": 3, "type": "B"}])
    []
    >>> engine.advance(10)
    [{'query': 'q1', 'window_start': 0, 'window_end': 10, 'count': 3}]
    """

    def __init__(
        self, workload: Workload, *, lateness: int | float | str = 0, late: str = "error", **options: Any
    ) -> None:
        if late not in ("error", "drop"):
            raise OptionError(f"late is {late!r}; it must be 'error' or 'drop'")
        self.workload = workload
        self.options = options_of(options)
        self.late_events = 0
        self._lateness = lateness
        self._lateness_ticks = 0
        self._late = late
        self._schema: Schema | None = None
        self._strings = StringPool()
        self._executor: Executor | None = None
        self._held: pa.Table | None = None  # events whose time step is still open, in no order
        self._seen: int | None = None  # the largest time seen
        self._promised: int | None = None  # no event before this time will come
        self._events = 0
        self._closed = False
        self._failed: str | None = None
        _lateness_check(lateness)

    # ------------------------------------------------------------------------------------------ the public face

    def push(self, events: Any) -> list[dict[str, Any]]:
        """Take a batch of events in any order within the lateness; give the rows of windows that closed by it.

        Parameters
        ----------
        events : pyarrow Table or RecordBatch, dict of numpy arrays, iterable of dicts

        Raises
        ------
        DataError
            Late events, a NULL time, a column that is missing or changes its type: nothing of the push is taken.
        """
        return list(self._dicts(self.push_columns(events)))

    def advance(self, time: Any) -> list[dict[str, Any]]:
        """Promise that no event before `time` will come; give the rows of windows that end at or before it."""
        return list(self._dicts(self.advance_columns(time)))

    def close(self) -> list[dict[str, Any]]:
        """End the stream; give all remaining rows."""
        return list(self._dicts(self.close_columns()))

    @property
    def stats(self) -> dict[str, Any]:
        """Counters of the run so far."""
        found: dict[str, Any] = {"late_events": self.late_events}
        return found | (self._executor.stats if self._executor is not None else {})

    @property
    def clock(self) -> Clock:
        """The time column; of whole ticks where no event has come yet."""
        return (
            self._schema.clock if self._schema else Clock(self.options.time_column, self.options.time_unit, pa.int64())
        )

    # ------------------------------------------------------------------------------------------ rows as columns

    def push_columns(self, events: Any) -> list[QueryRows]:
        """As `push`, the rows as `QueryRows`."""
        self._refuse_closed()
        options = self.options
        table = batch_of(
            events,
            time_column=options.time_column,
            type_column=options.type_column,
            order_column=options.order_column,
            first_event=self._events,
        )
        if table.num_rows == 0:
            return []
        self._learn(table.schema, closed=_is_closed(events))
        times = self._times(table)
        fresh = self._in_time(times)
        self._events += len(times)
        if not fresh.all():
            self.late_events += int(len(fresh) - fresh.sum())
            table, times = table.filter(pa.array(fresh)), times[fresh]
        if len(times) == 0:
            return []
        self._seen = max(int(times.max()), self._seen) if self._seen is not None else int(times.max())
        self._hold(table)
        return self._release(self._watermark())

    def advance_columns(self, time: Any) -> list[QueryRows]:
        """As `advance`, the rows as `QueryRows`."""
        self._refuse_closed()
        ticks = self._ticks(time)
        self._promised = ticks if self._promised is None else max(ticks, self._promised)
        return self._release(self._watermark())

    def close_columns(self) -> list[QueryRows]:
        """As `close`, the rows as `QueryRows`."""
        self._refuse_closed()
        self._closed = True
        return self._release(END_OF_TIME)

    def open(self, schema: Schema) -> None:
        """Compile for a schema that is known before the first event (files, tables).

        Raises
        ------
        WorkloadError
            Names and types that do not fit the columns.
        """
        self._compile(schema)

    def drain(self) -> list[QueryRows]:
        """The rows of windows that have closed and were not given yet; of every query, also of those without rows."""
        return self._executor.drain() if self._executor is not None else []

    def feed(self, batch: pa.RecordBatch) -> list[QueryRows]:
        """Take the next batch of a stream that is complete and in (time, order) order: nothing is checked again."""
        times = self._times(pa.Table.from_batches([batch]))
        self._events += len(times)
        self._seen = int(times[-1])
        if self._held is None and times[0] == times[-1]:
            self._held = pa.Table.from_batches([batch])
            return []
        cut = int(np.searchsorted(times, times[-1], side="left"))
        ready = pa.Table.from_batches([batch.slice(0, cut)])
        if self._held is not None:
            ready = pa.concat_tables([self._held, ready])
            self._held = None
        rest = batch.slice(cut)
        if cut == 0:
            self._held = pa.concat_tables([ready, pa.Table.from_batches([rest])]) if ready.num_rows else None
            held_times = self._times(self._held) if self._held is not None else times
            if held_times[0] != held_times[-1]:
                return self._split_held(self._seen)
            return []
        self._held = pa.Table.from_batches([rest])
        return self._process(ready, self._seen)

    # ------------------------------------------------------------------------------------------ inside

    def _refuse_closed(self) -> None:
        if self._closed:
            raise HamletError("the engine is closed; make a new one for another stream")
        if self._failed is not None:
            raise HamletError(f"the engine cannot go on after an error: {self._failed}")

    def _learn(self, arrow: pa.Schema, *, closed: bool) -> None:
        """Take note of the columns of a batch; compile when they tell something new."""
        options = self.options
        key = SortKey(options.time_column, options.order_column)
        found = schema_of(arrow, key, options.type_column, options.time_unit, closed=closed)
        schema = found if self._schema is None else _widened(self._schema, found, self.workload)
        if schema is not self._schema:
            self._compile(schema)

    def _compile(self, schema: Schema) -> None:
        self.workload.check(schema)
        compiled = compile_workload(
            self.workload.analysis, schema, self._strings, exact=self.options.numbers == "exact"
        )
        executor = Executor(compiled, self.options.threads, sharing=self.options.sharing != "never")
        if self._executor is not None:
            executor.adopt(self._executor)
        self._executor = executor
        self._schema = schema
        self._lateness_ticks = _lateness_ticks(self._lateness, schema.clock)

    def _times(self, table: pa.Table) -> Int64Array:
        chunk = table.column(self.options.time_column).combine_chunks()
        times = integers(chunk, self.options.time_column)[0]
        if len(times) and (int(times.min()) < -MOST_TICKS or int(times.max()) > MOST_TICKS):
            raise DataError(
                f"the time column '{self.options.time_column}' holds a time beyond 2^61 ticks\n"
                "hint: is it in a coarser unit than the data (nanoseconds read as seconds)?"
            )
        return times

    def _in_time(self, times: Int64Array) -> Any:
        """Which events are not late; raises where they must not be. Judged event by event, whatever the batches."""
        largest = np.maximum.accumulate(times)
        if self._seen is not None:
            largest = np.maximum(largest, self._seen)
        before = np.concatenate([[self._seen if self._seen is not None else times[0]], largest[:-1]])
        bound = before - self._lateness_ticks
        if self._promised is not None:
            bound = np.maximum(bound, self._promised)
        fresh = times >= bound
        if self._late == "error" and not fresh.all():
            place = int(np.argmin(fresh))
            raise DataError(
                f"event {self._events + place + 1} is late: its time is {times[place]}, and no event before "
                f"{bound[place]} is expected any more; nothing of this push was taken\n"
                "hint: give the engine a lateness (lateness='5 s'), or late='drop' to count and leave such events out"
            )
        return fresh

    def _hold(self, table: pa.Table) -> None:
        if self._held is None:
            self._held = table
        else:
            self._held = pa.concat_tables([self._held, table], promote_options="permissive")

    def _watermark(self) -> int | None:
        """No event before this time will come."""
        bounds = [] if self._promised is None else [self._promised]
        if self._seen is not None:
            bounds.append(self._seen - self._lateness_ticks)
        return max(bounds, default=None)

    def _ticks(self, time: Any) -> int:
        """A time as the user gives it, in ticks."""
        if isinstance(time, (int, np.integer)) and not isinstance(time, bool):
            return int(time)
        clock = self.clock
        try:
            if clock.is_timestamp:
                return int(pa.scalar(time, clock.type).value)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
            pass
        raise OptionError(f"cannot read {time!r} as a time of column '{clock.column}' ({clock.type})")

    def _release(self, watermark: int | None) -> list[QueryRows]:
        """Process the held events before the watermark and close what ends by it."""
        if watermark is None or self._executor is None:
            return []
        if self._held is not None:
            return self._split_held(watermark)
        return self._process(None, watermark)

    def _split_held(self, watermark: int) -> list[QueryRows]:
        assert self._held is not None
        times = self._times(self._held)
        ready = times < watermark
        held, self._held = self._held, None
        if not ready.all():
            self._held = held.filter(pa.array(~ready))
        return self._process(self._sorted(held.filter(pa.array(ready))) if ready.any() else None, watermark)

    def _sorted(self, table: pa.Table) -> pa.Table:
        keys = [(self.options.time_column, "ascending")]
        if self.options.order_column is not None:
            keys.append((self.options.order_column, "ascending"))
        return table.take(pc.sort_indices(table, sort_keys=keys))

    def _process(self, table: pa.Table | None, watermark: int) -> list[QueryRows]:
        assert self._executor is not None
        try:
            if table is not None and table.num_rows:
                for batch in table.combine_chunks().to_batches():
                    self._executor.process(batch)
            self._executor.advance(watermark)
        except Exception as error:
            self._failed = str(error)
            raise
        return self._executor.drain()

    def _dicts(self, rows: list[QueryRows]) -> Iterator[dict[str, Any]]:
        for each in rows:
            yield from dicts_of(each, self.clock)


def options_of(options: dict[str, Any]) -> Options:
    """Options by name; raises OptionError where there is none of a name."""
    known = Options.__dataclass_fields__
    for name in options:
        if name not in known:
            raise OptionError(f"there is no option {name!r}; the options are {', '.join(known)}")
    return Options(**options)


def _is_closed(events: Any) -> bool:
    """Whether a batch has columns (a name that is missing is a mistake), or is a row of dicts."""
    return isinstance(events, dict) or hasattr(events, "__arrow_c_stream__") or hasattr(events, "__arrow_c_array__")


_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|sec|seconds?|min|minutes?|h|hours?|d|days?)\s*", re.IGNORECASE)


def _lateness_check(lateness: int | float | str) -> Fraction | None:
    """A duration in seconds, or None for a number of ticks."""
    if isinstance(lateness, str):
        match = _DURATION.fullmatch(lateness)
        if match:
            unit = match[2].lower()
            unit = next(name for name in ("ms", "min", "s", "h", "d") if unit.startswith(name))
            return Fraction(match[1]) * SECONDS[unit]
    elif not isinstance(lateness, bool) and lateness >= 0 and lateness == int(lateness):
        return None
    raise OptionError(f"lateness is {lateness!r}; it must be a number of ticks >= 0 or a duration such as '5 s'")


def _lateness_ticks(lateness: int | float | str, clock: Clock) -> int:
    seconds = _lateness_check(lateness)
    if seconds is None:
        return int(lateness)
    ticks = seconds * clock.ticks_per_second
    return -(-ticks.numerator // ticks.denominator)


def _widened(old: Schema, new: Schema, workload: Workload) -> Schema:
    """The schema after a further batch: NULL columns get a type, INT widens to DOUBLE; else it is as it was.

    Raises
    ------
    DataError
        A column that changes its type otherwise, a time column of another type, a missing column.
    """
    if new.clock.type != old.clock.type:
        raise DataError(f"the time column '{old.clock.column}' was {old.clock.type} and is now {new.clock.type}")
    columns, changed = dict(old.columns), False
    for name, type in new.columns.items():
        known = columns.get(name)
        if type is None or type is known or (known is AttributeType.DOUBLE and type is AttributeType.INT):
            changed |= name not in columns
            columns.setdefault(name, type)
        elif known is None or (known is AttributeType.INT and type is AttributeType.DOUBLE):
            columns[name], changed = type, True
        elif name in workload.attributes:
            raise DataError(f"the attribute '{name}' was {known.value} so far and is now {type.value}")
    if new.closed:
        missing = [name for name in workload.attributes if name in old.columns and name not in new.columns]
        if missing:
            raise DataError(f"this batch lacks the column '{missing[0]}', which earlier batches had")
    if not changed:
        return old
    units = {**new.units, **old.units}
    types = {**new.arrow_types, **old.arrow_types}
    return Schema(columns, old.clock, old.type_column, old.order_column, old.closed, units, types)
