"""Row patterns that go on: partitions of a clause in slices, each with a matcher that keeps what live starts need.

The statement around the clause is Spark SQL's, over a streaming view of the rows.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hamlet.errors import DataError, UnsupportedError
from hamlet.input.columns import Int64Array
from hamlet.input.ticks import Lateness, ticks_of
from hamlet.language.schema import Clock
from hamlet.patterns.match.host import Host
from hamlet.patterns.match.matcher import Matcher
from hamlet.spark.sliced import Submonitor, TimedWork

SOURCE = "hamlet_source"


@dataclass(frozen=True)
class LoneClause:
    """A clause alone.

    Attributes
    ----------
    text : str
        A statement that selects its rows from `SOURCE`.
    dialect : str
    max_steps : int
    order : str
        The leading expression of ORDER BY, as DuckDB reads it.
    keys : tuple of str
        Those of PARTITION BY.
    """

    text: str
    dialect: str
    max_steps: int
    order: str
    keys: tuple[str, ...]


class PatternWork(TimedWork):
    """A clause that runs continuously; goes to every worker.

    Raises
    ------
    UnsupportedError
        If its times are of a type that has no ticks, or a measure of one that Spark lacks.
    """

    def __init__(
        self,
        clause: LoneClause,
        events: pa.Schema,
        rows: pa.Schema,
        slices: int,
        lateness: Lateness,
        late: str,
        zone: str,
    ) -> None:
        self._clause, self._zone = clause, zone
        if any(pa.types.is_duration(each.type) for each in rows):
            raise UnsupportedError("a continuous job has no measures of type INTERVAL; cast them to a text or a number")
        kind = Host({SOURCE: events.empty_table()}, threads=1, timezone=zone).arrow(
            f"SELECT ({clause.order}) AS t FROM {SOURCE}"
        )
        self._kind = kind.schema.types[0]
        if not (pa.types.is_integer(self._kind) or pa.types.is_timestamp(self._kind) or pa.types.is_date(self._kind)):
            raise UnsupportedError(
                f"ORDER BY begins with values of type {self._kind}; a continuous job needs times: integers, dates or "
                "timestamps"
            )
        unit = self._kind.unit if pa.types.is_timestamp(self._kind) else "s"
        ticks = ticks_of(lateness, Clock("time", unit, self._kind if pa.types.is_timestamp(self._kind) else pa.int64()))
        super().__init__(slices if clause.keys else 1, events, ticks, late)
        self.rows = rows
        self.monitor(0, 0, None)  # what cannot be done continuously is said before the job starts

    def __getstate__(self) -> dict[str, Any]:
        """Without the connection to DuckDB."""
        return {name: value for name, value in self.__dict__.items() if name != "_host"}

    @cached_property
    def _host(self) -> Host:
        return Host({SOURCE: self.events.empty_table()}, threads=1, timezone=self._zone)

    def _computed(self, events: pa.RecordBatch, expression: str) -> pa.Array:
        self._host.connection.unregister(SOURCE)
        self._host.register(SOURCE, pa.Table.from_batches([events]))
        found = self._host.arrow(f"SELECT ({expression}) AS x FROM {SOURCE}").column("x")
        return found.combine_chunks()

    def times(self, events: pa.RecordBatch) -> tuple[Int64Array, Int64Array | None]:
        """The leading values of ORDER BY; rows of one stay in order."""
        times = self._computed(events, self._clause.order)
        if times.null_count:
            row = events.slice(int(np.argmax(times.is_null().to_numpy(zero_copy_only=False))), 1).to_pylist()[0]
            raise DataError(f"a row has no time, for {self._clause.order} is NULL ({row})")
        if pa.types.is_date(times.type):
            times = times.cast(pa.date32()).cast(pa.int32())
        ticks: Int64Array = times.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return ticks, None

    def needs(self, events: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Rows of a partition go to one slice."""
        hashes = self._computed(events, f"hash({', '.join(self._clause.keys)})").to_numpy(zero_copy_only=False)
        return self.by_hash(np.ones(events.num_rows, np.bool_), hashes)

    def monitor(self, slice: int, first: int, saved: bytes | None) -> PatternSlice:  # noqa: ARG002
        """The matcher of a slice."""
        clause = self._clause
        if saved is not None:
            return PatternSlice(self, Matcher.restore(clause.text, saved))
        options: dict[str, Any] = {"dialect": clause.dialect, "max_steps": clause.max_steps}
        return PatternSlice(self, Matcher(clause.text, self.events, **options))

    def time_of(self, tick: int) -> Any:
        """A time in the type of ORDER BY."""
        if pa.types.is_timestamp(self._kind):
            return pa.scalar(tick, self._kind).as_py()
        if pa.types.is_date(self._kind):
            return datetime.date(1970, 1, 1) + datetime.timedelta(days=tick)
        return tick

    def time_text(self, tick: int) -> str:
        """A time for a message."""
        return str(self.time_of(tick))


class PatternSlice(Submonitor):
    """A matcher over the rows of a slice."""

    def __init__(self, work: PatternWork, matcher: Matcher) -> None:
        super().__init__(matcher)
        self._work = work

    def push(self, ticks: Int64Array, events: pa.RecordBatch, steps: npt.NDArray[np.bool_]) -> list[pa.RecordBatch]:  # noqa: ARG002
        """Take rows."""
        return self._rows(self._monitor.push(events))

    def advance(self, tick: int) -> list[pa.RecordBatch]:
        """No row before a time will come."""
        return self._rows(self._monitor.advance(self._work.time_of(tick)))

    def _rows(self, found: list[dict[str, Any]]) -> list[pa.RecordBatch]:
        if not found:
            return []
        rows: list[pa.RecordBatch] = pa.Table.from_pylist(found, self._work.rows).to_batches()
        return rows
