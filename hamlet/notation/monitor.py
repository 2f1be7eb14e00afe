"""The monitor of any notation: events in batches of any size, rows as soon as their time is over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pyarrow as pa

from hamlet.checkpoint import frame
from hamlet.checkpoint.columns import BlobReader, BlobWriter, Json, items, text, whole
from hamlet.checkpoint.stream import described_options, described_promise, promise_of
from hamlet.errors import MemoryLimitError, option
from hamlet.frontend.time_column import TIME
from hamlet.input.input_schema import schema_of
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import Lateness
from hamlet.language.schema import END_OF_TIME
from hamlet.notation.notation import Row, Work
from hamlet.output.columnar import dicts_of
from hamlet.runtime.arrival_monitor import ArrivalMonitor
from hamlet.runtime.arrivals import Arrivals
from hamlet.runtime.definitions import COLUMNS
from hamlet.runtime.expected import Expected
from hamlet.runtime.monitor import BatchMonitor
from hamlet.runtime.options import check_columns, made_of
from hamlet.runtime.reorder_buffer import Place
from hamlet.runtime.sizes import Limit, Size, bytes_of, limit_of

_LOW = -(2**62)
_FIELDS = ("options", "stream", "promise", "held", "schema", "state", "expected")


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorOptions:
    """The options of a monitor; `hamlet.Engine` says what each of them means."""

    time_column: str = TIME
    type_column: str = "type"
    order_column: str | None = None
    time_unit: str = "s"
    lateness: Lateness = 0
    late: str = "error"
    max_memory: Size | None = None

    def __post_init__(self) -> None:
        bytes_of(self.max_memory)
        check_columns(**self.columns)

    @property
    def timezone(self) -> None:
        """Steps of time know no calendar."""

    @property
    def columns(self) -> dict[str, Any]:
        """What columns mean, as `hamlet.input.events.open_events` takes it."""
        return {name: getattr(self, name) for name in COLUMNS}


class StepMonitor(ArrivalMonitor[MonitorOptions], BatchMonitor[pa.RecordBatch]):
    """Drives the evaluator of a text, time after time.

    Parameters
    ----------
    work : Work
    options
        `MonitorOptions`.
    """

    def __init__(self, work: Work, **options: Any) -> None:
        super().__init__()
        self.work = work
        self.options = self._asked = chosen = made_of(MonitorOptions, options)
        self._limit = bytes_of(chosen.max_memory)
        plan = work.plan
        self._rows = plan.rows
        self._receive(self._arrivals_by(chosen, chosen.lateness, chosen.late))
        self._expected = Expected(plan.types)
        self._evaluator = work.notation.evaluator(work.tree)
        self._read: pa.Schema | None = None  # of the batches

    def _arrivals_by(self, chosen: MonitorOptions, lateness: Lateness, late: str) -> Arrivals:
        self._key = SortKey(chosen.time_column, chosen.order_column)
        self.columns = tuple(dict.fromkeys([*self._key.names, chosen.type_column, *self.work.plan.columns]))
        return Arrivals(chosen, self.columns, lateness, late, counted=chosen.max_memory is not None)

    def begin(self, time_column: str) -> None:
        """Events with this time column will come."""
        self._settle(replace(self.options, time_column=time_column))

    # ------------------------------------------------------------------------------------------ the protocol

    @property
    def _text(self) -> Work:
        return self.work

    def _held(self) -> tuple[int, int]:
        (rows, size), (kept, more) = self._buffer.held(), self._evaluator.held()
        return rows + kept, size + more

    @property
    def stats(self) -> dict[str, Any]:
        """Counters of the run so far."""
        with self._lock:
            return {
                "events": self._buffer.events,
                "late_events": self._buffer.late_events,
                "kept_bytes": self._evaluator.held()[1],
            }

    @property
    def warnings(self) -> list[str]:
        """What was probably not meant, a sentence each: types that never came."""
        with self._lock:
            return self._expected.warnings() if self._buffer.events else []

    @property
    def rows_schema(self) -> pa.Schema:
        """The columns of rows."""
        return pa.schema([pa.field("time", self.clock.type), *self._rows])

    # ------------------------------------------------------------------------------------------------ inside

    def _pushed(self, events: Any) -> list[pa.RecordBatch]:
        batch = self._arrived(events)
        if batch is None:
            return []
        self._schema, self._read = batch.schema, batch.parts[0].schema.remove_metadata()
        with self._working():
            self._hold(batch)
            return self._released()

    def _advanced(self, time: Any) -> list[pa.RecordBatch]:
        if not self._goes_on(time):
            return []
        with self._working():
            return self._released()

    def _ended(self) -> list[pa.RecordBatch]:
        with self._working():
            self._buffer.promise(END_OF_TIME)
            return self._stepped(self._buffer.release(END_OF_TIME))

    def _released(self) -> list[pa.RecordBatch]:
        watermark = self._buffer.watermark
        found = [] if watermark is None else self._stepped(self._buffer.release(watermark))
        if self._limit is not None and (size := self._buffer.nbytes + self._evaluator.held()[1]) > self._limit:
            raise MemoryLimitError(
                f"{self.work.name} keeps {size:,} bytes, and {option('max_memory')} allows {self._limit:,}\n"
                f"hint: raise the limit ({option('max_memory')}), or give a smaller {option('lateness')}"
            )
        return found

    def _stepped(self, batches: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """The rows of events whose times are over; each time is whole in a batch."""
        times: list[int] = []
        rows: list[Row] = []
        for batch in batches:
            ticks, _ = self._key.columns_of(batch)
            borders = [0, *(np.flatnonzero(ticks[1:] != ticks[:-1]) + 1).tolist(), len(ticks)]
            for first, last in pairwise(borders):
                found = self._evaluator.step(batch.slice(first, last - first))
                times += [int(ticks[first])] * len(found)
                rows += found
        if not rows:
            return []
        arrays = [pa.array(times, pa.int64()).cast(self.clock.type)]
        arrays += [pa.array([row[field.name] for row in rows], field.type) for field in self._rows]
        return [pa.RecordBatch.from_arrays(arrays, schema=self.rows_schema)]

    def _dicts(self, batches: Iterable[pa.RecordBatch]) -> list[Row]:
        return [row for batch in batches for row in dicts_of(batch, self.clock.unit)]

    # ------------------------------------------------------------------------------------------ saving

    def _saved(self) -> bytes:
        blobs = BlobWriter()
        place = self._buffer.place()
        read = None if self._read is None or self._schema is None else self._read.empty_table()
        described = {
            "options": described_options(asdict(self.options)),
            "stream": [place.events, place.late_events, place.seen, place.promised],
            "promise": described_promise(self._arrivals.promise, blobs),
            "held": blobs.table(place.held, self.columns),
            "schema": None if read is None else [self._schema.closed, blobs.table(read, read.column_names)],  # type: ignore[union-attr]
            "state": self._evaluator.state(),
            "expected": self._expected.described(),
        }
        return frame.write(_work(self.work), described, blobs)

    @classmethod
    def restore(cls, work: Work, data: bytes | bytearray | memoryview, *, max_memory: Limit = ...) -> Self:
        """A monitor that goes on where another one was saved, with the options of that one, but for a limit given here.

        Raises
        ------
        RestoreError
            The bytes are damaged, of another text, or of another version.
        """
        description, blobs = frame.read(_work(work), data, _FIELDS)
        limit = limit_of(max_memory)
        with frame.blamed():
            monitor = cls(work, **{**description["options"], **limit})
            monitor._load(description, blobs)
            blobs.end()
        return monitor

    def _load(self, description: dict[str, Json], blobs: BlobReader) -> None:
        self._arrivals.promise = promise_of(description["promise"], blobs)
        held = blobs.table(description["held"], self.options.time_column)
        if description["schema"] is not None:
            closed, columns = items(description["schema"], 2)
            read = blobs.table(columns, self.options.time_column)
            if type(closed) is not bool or read is None or read.num_rows:
                raise ValueError("the columns are none")
            options = self.options
            self._schema = schema_of(read.schema, self._key, options.type_column, options.time_unit, closed=closed)
            self._read = read.schema
        elif held is not None:
            raise ValueError("there are events without columns")
        events, late, seen, promised = items(description["stream"], 4)
        seen, promised = (None if each is None else whole(each, _LOW, -_LOW) for each in (seen, promised))
        clock = None if self._schema is None else self._schema.clock
        self._buffer.load(Place(whole(events), whole(late), seen, promised, held), clock)
        self._evaluator.load(description["state"])
        missing, others = items(description["expected"], 2)
        self._expected.load(map(text, items(missing)), map(text, items(others)))


def _work(work: Work) -> frame.Work:
    return frame.Work(f"texts in {work.notation.extension}", str(work.tree))
