"""A stream replayed at its own pace, without waiting: when would each result be there?

A batch is handed over when its last event has arrived, or when the batch before is done if that is later. What it
costs is measured; the clock between is computed. Latency is the paper's: the time of a result minus the arrival of the
last event that could contribute to it. Batches end at the borders of windows, where the source promises
(`Engine.advance`) that no event of the window will come any more.

Source: HAMLET (SIGMOD'21) §5.1 (metrics).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from bench.subject import Rows


@dataclass(frozen=True)
class Batch:
    """Consecutive events.

    Attributes
    ----------
    begin, end : int
        Rows ``[begin, end)`` of the stream.
    until : int
        In ticks: every event before it has come.
    arrival_s : float
        Seconds since the begin of the stream at which the last event arrives.
    """

    begin: int
    end: int
    until: int
    arrival_s: float


@dataclass
class Replay:
    """What a replay found out.

    Attributes
    ----------
    rows : list of dict
        All result rows.
    latency_s : list of float
        For each time at which windows closed with rows.
    busy_s : float
        What all batches cost together.
    stats : dict
        Whatever the one who counted has to say.
    """

    rows: Rows = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)
    busy_s: float = 0.0
    stats: dict[str, Any] = field(default_factory=dict)

    def metrics(self) -> dict[str, float]:
        """Mean and largest latency in seconds, where windows closed, and all costs."""
        if not self.latency_s:
            return {"online_s": self.busy_s}
        return {
            "online_s": self.busy_s,
            "latency_s": float(np.mean(self.latency_s)),
            "latency_max_s": max(self.latency_s),
        }


def batches(times: np.ndarray[Any, Any], ticks_per_second: int, seconds: float = 1.0) -> list[Batch]:
    """Cut a stream into batches of so many seconds each, aligned to time 0; empty ones are left out.

    Parameters
    ----------
    times : numpy.ndarray of int64
        Ascending.
    ticks_per_second : int
    seconds : float
        A divisor of all windows.
    """
    length = int(seconds * ticks_per_second)
    places = times // length
    cuts = [0, *(np.nonzero(np.diff(places))[0] + 1).tolist(), len(times)]
    found = []
    for begin, end in pairwise(cuts):
        until = (int(places[begin]) + 1) * length
        found.append(Batch(begin, end, until, (until - int(places[0]) * length) / ticks_per_second))
    return found


def replay(
    stream: Sequence[Batch], push: Callable[[Batch], Rows], close: Callable[[], Rows], *, first_s: float = 0.0
) -> Replay:
    """Hand over all batches, each when it has arrived and the one before is done.

    Parameters
    ----------
    stream : sequence of Batch
    push : callable
        Takes a batch, and gives the rows of all windows that end by its `until`.
    close : callable
        Gives the rows of windows that the stream's end leaves open; their latency is not kept.
    first_s : float
        Seconds at which the clock starts.
    """
    found, clock = Replay(), first_s
    for batch in stream:
        clock = max(clock, batch.arrival_s)
        begin = time.perf_counter()
        rows = push(batch)
        cost = time.perf_counter() - begin
        clock += cost
        found.busy_s += cost
        if rows:
            found.latency_s.append(clock - batch.arrival_s)
            found.rows += rows
    begin = time.perf_counter()
    found.rows += close()
    found.busy_s += time.perf_counter() - begin
    return found


def pieces_of(table: pa.Table, stream: Sequence[Batch]) -> list[pa.RecordBatch]:
    """The events of each batch, cut beforehand as they would arrive."""
    whole = table.combine_chunks().to_batches(max_chunksize=max(1, len(table)))
    return [whole[0].slice(batch.begin, batch.end - batch.begin) for batch in stream]
