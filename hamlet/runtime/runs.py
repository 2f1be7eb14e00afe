"""Runs of lines of files that are merged by time, pushed together.

Where files have happened at the same time a run is a line or two, and to push each would cost forty times what its
events do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from hamlet.input.live.table_lines import BadLineError, ParsedEvents, lines_in
from hamlet.runtime.feed import Feed

_Run = tuple[Feed, bytes, int]  # lines, and the number of the first


def take_runs(runs: Sequence[tuple[Feed, bytes]]) -> None:
    """Take bytes of several streams, in their order: their events in one push, where all have the same columns.

    Where there is a mistake, or an event is late, they are taken run by run, as if each had come alone.
    """
    settled: list[tuple[Feed, bytes]] = []
    for feed, data in runs:
        if feed.settled:
            settled.append((feed, data))
        else:
            _take_settled(settled)
            settled.clear()
            feed.data(data)
    _take_settled(settled)


def _take_settled(runs: Sequence[tuple[Feed, bytes]]) -> None:
    """Take runs of streams of which the columns are known."""
    if len({feed for feed, _ in runs}) < 2:
        for feed, data in runs:
            feed.data(data)
        return
    whole: list[_Run] = [(feed, *feed.whole_lines(data)) for feed, data in runs]
    for place in range(whole[0][0].tenants):
        events = _together(place, whole)
        if events is None or not whole[0][0].push(place, events):
            for feed, block, line in whole:
                feed.take_lines(place, block, line)


def _together(place: int, runs: Sequence[_Run]) -> Any:
    """The events of all runs in their order, as a tenant takes them; None where that cannot be."""
    blocks: dict[Feed, list[bytes]] = {}
    for feed, block, _ in runs:
        blocks.setdefault(feed, []).append(block)
    parts: list[Any] = []
    firsts: dict[Feed, int] = {}
    rows = 0
    for feed, found in blocks.items():
        try:
            part = feed.parsed(place, b"".join(found))
        except BadLineError:
            return None
        firsts[feed] = rows
        rows += sum(map(lines_in, found))
        parts += [] if part is None else [part]
        if sum(map(_rows_of, parts)) != rows:  # a line break is part of a value
            return None
    if not parts or any(_form(each) != _form(parts[0]) for each in parts):
        return None
    order = np.empty(rows, np.int64)
    at = 0
    for feed, block, _ in runs:
        count = lines_in(block)
        order[at : at + count] = np.arange(firsts[feed], firsts[feed] + count)
        firsts[feed] += count
        at += count
    table = pa.concat_tables([getattr(each, "table", each) for each in parts]).take(order)
    return ParsedEvents(table, parts[0].closed) if isinstance(parts[0], ParsedEvents) else table


def _rows_of(events: Any) -> int:
    return int(getattr(events, "table", events).num_rows)


def _form(events: Any) -> tuple[pa.Schema, bool]:
    """What has to be equal for events to be of one table."""
    return getattr(events, "table", events).schema.remove_metadata(), getattr(events, "closed", True)
