"""Policies over a live stream (`hamlet.runtime.tenant`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.checkpoint.pieces import as_bytes, from_bytes, joined, unjoined
from hamlet.engine.live_filter import LiveFilter
from hamlet.errors import DataError, LateError
from hamlet.frontend.units import UNITS_PER_SECOND
from hamlet.input.live.table_lines import Columns
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import ticks_of
from hamlet.output.plain_rows import arrow_rows
from hamlet.output.time_text import time_text
from hamlet.policies.analysis.bare_bounds import bare_bounds
from hamlet.policies.analysis.policy import Policy
from hamlet.policies.logs.lines import LogLines, PointOrder
from hamlet.policies.logs.reader import LogChunk
from hamlet.policies.logs.source import choice_of_a_log, of_commands, points_of_a_log, types_of
from hamlet.policies.monitor import Monitor
from hamlet.policies.rows import first_row
from hamlet.policies.runner import PolicyRunner
from hamlet.runtime.expected import of_no_predicate
from hamlet.runtime.monitor_tenant import MonitorTenant
from hamlet.runtime.sizes import Size
from hamlet.runtime.tenant import Pieces

_ARROW = {"int": pa.int64(), "float": pa.float64(), "string": pa.string(), "bool": pa.bool_()}


class PolicyTenant(MonitorTenant):
    """Some policies.

    Parameters
    ----------
    policies : sequence of Policy
    options : mapping
        Of `Monitor`.
    chosen : LiveFilter, optional
        Which events are taken.
    ignore_unknown, drops : bool
        How logs are read.
    first : bool
        Whether the first row is all that is asked for.
    names, delimiter
        The columns and the delimiter of CSV, where they are given.
    saved : bytes, optional
        From `save`.
    """

    kind = "policy"
    monitor: Monitor

    def __init__(
        self,
        policies: Sequence[Policy],
        options: dict[str, Any],
        *,
        chosen: LiveFilter | None = None,
        ignore_unknown: bool = False,
        drops: bool = False,
        first: bool = False,
        names: Sequence[str] | None = None,
        delimiter: str | None = None,
        saved: bytes | None = None,
    ) -> None:
        self._policies = list(policies)
        self.names: Sequence[str] = [each.name for each in policies]
        self._chosen = chosen
        self._reading = {"ignore_unknown": ignore_unknown, "drops": drops}
        self._first = first
        self._named, self._delimiter = names, delimiter
        self._points: PointOrder | None = None
        self._logs: list[LogLines] = []
        self._log_events = 0
        if saved is None:
            self.monitor = Monitor(policies, **options)
        else:
            self._load(saved, options.get("max_memory"))
        runner = self.monitor._runner
        wanted = runner.predicates
        declared = {
            name: _ARROW[kind]
            for each in policies[0].signature
            if (each.name, each.arity) in wanted
            for name, kind in zip(each.attributes, each.types, strict=True)
            if name is not None
        }
        chosen_options = self.monitor.options
        key = SortKey(chosen_options.time_column, chosen_options.order_column)
        declared = {name: kind for name, kind in declared.items() if name not in key.names}
        self.known = Columns(key, chosen_options.type_column, declared)
        self.known.keeps_seconds = any(any(bare_bounds(each)) for each in policies)

    def text(self) -> str:
        """The policies as text, with their signature."""
        return "\n".join(f"{each.name}: {each}" for each in self._policies) + f"\n{self._policies[0].signature}"

    @property
    def events(self) -> int:
        """Events seen."""
        return self._log_events + self._buffer.events

    @property
    def late_events(self) -> int:
        """Events left out for being late."""
        return self._buffer.late_events + (0 if self._points is None else self._points.late_events)

    @property
    def kept_bytes(self) -> int:
        """What the monitor keeps, and the time-points that are held back."""
        return super().kept_bytes + (0 if self._points is None else self._points.nbytes)

    @property
    def last_time(self) -> str | None:
        """The largest time seen."""
        points = self._points
        if points is None:
            return super().last_time
        return None if points.seen is None else time_text(points.seen, self.monitor.clock)

    @property
    def warnings(self) -> Sequence[str]:
        """What was probably not meant, and what was left out of logs."""
        unknown, commands = (sum(getattr(each, of) for each in self._logs) for of in ("unknown", "commands"))
        return [*super().warnings, *of_no_predicate(unknown), *of_commands(commands)]

    def log_parser(self, name: str) -> LogLines:
        """A reader of MonPoly's log."""
        if self.monitor.options.time_points == "event":
            raise DataError(f"{name}: {points_of_a_log()}")
        if self._chosen is not None:
            raise DataError(f"{name}: {choice_of_a_log()}")
        signature = self._policies[0].signature
        lines = LogLines(name, types_of(signature), wanted=self.monitor._runner.predicates, **self._reading)
        self._logs.append(lines)
        if self._points is None:
            self._points = PointOrder(self._lateness(), self.monitor.options.late)
        return lines

    def _lateness(self) -> int:
        return ticks_of(self.monitor.options.lateness, self.monitor.clock)

    def push(self, events: Any, name: str) -> Pieces:
        """Take a table, time-points of a log, or the time of one that has begun."""
        if isinstance(events, LogChunk):
            return self._push_points(events, name)
        if isinstance(events, int):
            return self._opened(events)
        if self._points is not None:
            raise DataError(f"{name}: the inputs are a log of MonPoly and columns; give inputs of one kind")
        return super().push(events, name)

    def _push_points(self, chunk: LogChunk, name: str) -> Pieces:
        points = self._points
        assert points is not None
        self._log_events += sum(len(rows) for rows, _ in chunk.relations.values())
        try:
            ready = points.take(chunk, name)
        except LateError as error:  # the rows of time-points before it
            error.pieces = self._pieces(self._released(points.release()))
            raise
        return self._pieces(self._released(ready))

    def _opened(self, time: int) -> Pieces:
        """A time-point of this time has begun, and is not complete: none before it will come."""
        points = self._points
        assert points is not None
        bound = time - points.lateness
        if points.watermark is not None and bound <= points.watermark:
            return []
        points.promised = bound
        return self._pieces(self._released(points.release()))

    def _released(self, chunks: list[LogChunk]) -> Iterable[tuple[int, pa.RecordBatch]]:
        points = self._points
        assert points is not None
        if points.watermark is None:
            return []
        return self.monitor.push_points(chunks, points.watermark, points.nbytes)

    def _ended(self) -> list[tuple[int, Any]]:
        """Time has passed an open time-point: what comes for it would be late, so it is complete."""
        return [
            row
            for log in self._logs
            if log.begun is not None
            for chunk in log.take(b"", None, True)
            for row in self._push_points(chunk, log.name)
        ]

    def pass_time(self, seconds: float) -> Pieces:
        """Time has passed since the last event."""
        points = self._points
        if points is not None:
            passed = int(seconds * UNITS_PER_SECOND[self.monitor.options.time_unit])
            found = [] if passed < 1 else self._ended()
            if points.seen is None:
                return found
            bound = points.seen + passed - points.lateness
            points.promised = bound if points.promised is None else max(points.promised, bound)
            return [*found, *self._pieces(self._released(points.release()))]
        return super().pass_time(seconds)

    def close(self) -> Pieces:
        """The rows that are left."""
        found: list[tuple[int, pa.RecordBatch]] = []
        points = self._points
        if points is not None:
            rest = points.release(everything=True)
            if rest:
                found += self.monitor.push_points(rest, int(rest[-1].times[-1]))
        return self._pieces([*found, *self.monitor.close_batches()])

    def _pieces(self, found: Iterable[tuple[int, Any]]) -> Pieces:
        some = [] if self.over else [(place, batch) for place, batch in found if batch.num_rows]
        if not self._first or not some:
            return some
        self.over = True
        pieces = [(place, arrow_rows(batch)) for place, batch in some]
        place, batch = min(pieces, key=lambda piece: piece[1].column("time_point")[0].as_py())
        return [(place, first_row(batch, self._row_form(place)["tuples"] or ())[0])]

    # -------------------------------------------------------------------------------------------------- saving

    def save(self) -> bytes:
        """The monitor, and the time-points that are held."""
        points = self._points
        state: dict[str, Any] = {"log_events": self._log_events}
        held: list[bytes] = []
        if points is not None:
            state["points"] = [points.seen, points.promised, points.late_events]
            if points.held is not None:
                state["held"] = [points.held.times.tolist(), [list(key) for key in points.held.relations]]
                held = [_written(rows, columns) for rows, columns in points.held.relations.values()]
        described = json.dumps(state).encode()
        parts = [described, *held, self.monitor.save()]
        return joined(parts)

    def _load(self, saved: bytes, max_memory: Size | None) -> None:
        described, *held, monitor = unjoined(saved)
        state = json.loads(described)
        self.monitor = Monitor.restore(self._policies, monitor, max_memory=max_memory)
        self._log_events = int(state["log_events"])
        if "points" not in state:
            return
        self._points = points = PointOrder(self._lateness(), self.monitor.options.late)
        points.seen, points.promised, points.late_events = state["points"]
        if "held" in state:
            times, keys = state["held"]
            relations = {(name, arity): _read(part) for (name, arity), part in zip(keys, held, strict=True)}
            points.held = LogChunk(0, np.array(times, np.int64), relations, 0)

    # ---------------------------------------------------------------------------------------------------- rows

    def columns(self, place: int) -> Sequence[str]:
        """The columns of a policy's rows."""
        return list(self._schema(place).names)

    def _schema(self, place: int) -> pa.Schema:
        runner = self.monitor._runner
        if isinstance(runner, PolicyRunner):
            return runner.schemas[place]
        return runner.verdicts[place].schema(runner._time_type)

    def _row_form(self, place: int) -> dict[str, Any]:
        runner = self.monitor._runner
        return {"tuples": runner.tuples[place] if isinstance(runner, PolicyRunner) else None}


def _written(points: Any, columns: Sequence[pa.Array]) -> bytes:
    names = [str(place) for place in range(len(columns) + 1)]
    return as_bytes(pa.RecordBatch.from_arrays([pa.array(points), *columns], names))


def _read(part: bytes) -> tuple[Any, tuple[pa.Array, ...]]:
    (batch,) = from_bytes(part)
    points, *columns = batch.columns
    return points.to_numpy(zero_copy_only=False), tuple(columns)
