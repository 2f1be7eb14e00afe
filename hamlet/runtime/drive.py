"""A monitor driven by live sources: to the end of its input, or until it is stopped.

One thread reads what has come, hands whole lines to the tenants, and writes the rows that are final by it before it
waits again. What is read at once grows with what waits, so a busy stream is taken in large batches and a quiet one
event by event; a sink that is slow slows the sources.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hamlet.errors import LateError
from hamlet.input.live.sources import Ended, Place, Source, Stream, wait
from hamlet.runtime.feed import BadRows, Feed
from hamlet.runtime.output import Output, written
from hamlet.runtime.runs import take_runs
from hamlet.runtime.stop import Stop
from hamlet.runtime.tenant import Tenant

_TICK = 0.1  # seconds between two looks at the wall clock, where that moves time


@dataclass
class Meter:
    """What was counted so far.

    Attributes
    ----------
    rows : int
    rows_of : list of list of int
        By tenant and part.
    read_at : float
        When something was last read (`time.monotonic`).
    """

    rows: int
    rows_of: list[list[int]]
    read_at: float


Watch = Callable[[int, Any, float], None]  # a tenant's place, rows, and the seconds since what decided them was read


class _Over(Exception):
    """All that was asked for was given."""


class Driver:
    """Drives tenants.

    Parameters
    ----------
    tenants : sequence of Tenant
    sources : sequence of Source
    outputs : sequence of Output
    stop : Stop
    bad : BadRows
    form : str, optional
        The form of all sources; by default names and first bytes tell.
    idle : float, optional
        Seconds without an event after which the wall clock moves time.
    save : callable, optional
        Called every `every` seconds, and at a stop; the driver is what is saved.
    every : float

    Attributes
    ----------
    watch : callable or None
        Sees rows as they are written.
    """

    watch: Watch | None = None

    def __init__(
        self,
        tenants: Sequence[Tenant],
        sources: Sequence[Source],
        outputs: Sequence[Output],
        stop: Stop,
        *,
        bad: BadRows | None = None,
        form: str | None = None,
        idle: float | None = None,
        save: Callable[[Driver, bool], None] | None = None,
        every: float = 10.0,
    ) -> None:
        self.tenants, self.sources, self.outputs, self.stop = tenants, sources, outputs, stop
        self.bad = bad or BadRows()
        self.meter = Meter(0, [[0] * len(each.names) for each in tenants], time.monotonic())
        self._form, self._idle, self._save, self._every = form, idle, save, every
        self._feeds: dict[Stream, Feed] = {}
        self._last: dict[int, Feed] = {}  # of each source, the feed that came last
        self.begun: dict[int, Place] = {}  # where sources went on that have sent nothing since
        self._saved_at = time.monotonic()

    @property
    def events(self) -> int:
        """Events seen."""
        return max((each.events for each in self.tenants), default=0)

    @property
    def late_events(self) -> int:
        """Events left out for being late."""
        return max((each.late_events for each in self.tenants), default=0)

    def run(self) -> bool:
        """Read until all sources have ended, or all is given; gives whether that was the end, and not a stop."""
        try:
            return self._run()
        except _Over:
            self._finish()
            return True

    def _run(self) -> bool:
        while not self.stop.asked:
            going = [each for each in self.sources if not each.done]
            if not going:
                self._close()
                return True
            ready = wait(going, [self.stop.fd], self._timeout())
            if ready - {self.stop.fd} or any(each.look is not None for each in going):
                for number, source in enumerate(self.sources):
                    if not source.done and not self.stop.asked:
                        self._read(number, source, ready)
            self._pass_time()
            if self._save is not None and time.monotonic() - self._saved_at >= self._every:
                self._save(self, False)
                self._saved_at = time.monotonic()
        if self._save is not None:
            self._save(self, False)
        return False

    def places(self) -> list[Any]:
        """Where each source goes on; None for one that cannot be read again."""
        found: list[Any] = []
        for number, source in enumerate(self.sources):
            feed = self._last.get(number)
            stream = next((each for each, other in self._feeds.items() if other is feed), None)
            if not source.repeatable or feed is None or stream is None:
                fresh = self.begun.get(number)
                found.append(source.start() if fresh is None and source.repeatable else fresh)
            else:
                place = source.place(stream, feed.offset, feed.line, feed.header)
                found.append(source.hold(place, feed.rest))
        return found

    # ------------------------------------------------------------------------------------------------ inside

    def _timeout(self) -> float | None:
        """How long to wait for events."""
        times = [] if self._save is None else [max(0.0, self._saved_at + self._every - time.monotonic())]
        if self._idle is not None:
            times.append(_TICK if time.monotonic() - self.meter.read_at >= self._idle else self._idle)
        return min(times, default=None)

    def _read(self, number: int, source: Source, ready: set[int]) -> None:
        runs: list[tuple[Feed, bytes]] = []  # of files that are merged
        for stream, data in source.read(ready):
            self.meter.read_at = time.monotonic()
            owner = stream.owner
            feed = self._feed(number if owner is None else self.sources.index(owner), owner or source, stream)
            if owner is not None and not isinstance(data, Ended):
                runs.append((feed, data))
            elif isinstance(data, Ended):
                take_runs(runs)
                runs.clear()
                feed.end(data.whole)
                if not source.carries:
                    feed.finish()
            else:
                feed.data(data)
        take_runs(runs)

    def _feed(self, number: int, source: Source, stream: Stream) -> Feed:
        """What reads a stream."""
        found = self._feeds.get(stream)
        if found is None:
            before = self._last.get(number)
            for each in [each for each, other in self._feeds.items() if other is before]:
                del self._feeds[each]  # it has ended
            found = Feed(
                stream.name,
                self._form or source.form,
                self.tenants,
                self.bad,
                self._take,
                offset=stream.offset,
                line=stream.line,
                header=stream.header,
                headless=stream.headless,
                logs=before.logs if before is not None and source.carries else None,
            )
            self._feeds[stream] = self._last[number] = found
        return found

    def _take(self, place: int, events: Any, name: str) -> None:
        """Push events into a tenant, and write what they decide."""
        try:
            self._give(place, self.tenants[place].push(events, name))
        except LateError as error:
            self._give(place, error.pieces)
            raise

    def _give(self, place: int, pieces: Any) -> None:
        self.meter.rows += written(self.outputs, place, pieces)
        for part, rows in pieces:
            self.meter.rows_of[place][part] += rows.num_rows if hasattr(rows, "num_rows") else len(rows)
        if self.watch is not None and pieces:
            self.watch(place, pieces, time.monotonic() - self.meter.read_at)
        if pieces and all(each.over for each in self.tenants):
            raise _Over

    def _pass_time(self) -> None:
        """Let the wall clock move time, where no event has come for a while."""
        if self._idle is None:
            return
        passed = time.monotonic() - self.meter.read_at
        if passed >= self._idle:
            for place, tenant in enumerate(self.tenants):
                self._give(place, tenant.pass_time(passed))

    def _close(self) -> None:
        """The end of all input."""
        for feed in self._last.values():
            feed.finish()
        for place, tenant in enumerate(self.tenants):
            self._give(place, tenant.close())
        self._finish()

    def _finish(self) -> None:
        """No row follows."""
        for output in self.outputs:
            output.finish()
        if self._save is not None:
            self._save(self, True)
