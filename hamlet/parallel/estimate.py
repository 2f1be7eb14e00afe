"""What a run will take, before it runs: seconds, bytes and rows, from runs over a sample of the input.

The sample is the beginning of the input, some windows long, and of some of the groups only where that is too much. It
is run as everything is, once whole and once in part, so that what a run costs anyway stands apart from what each event
costs. Where the sample is shorter than a window, what an event costs goes on growing as it did, until a window is full.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from hamlet.engine.online import Engine, EngineOptions
from hamlet.errors import OptionError
from hamlet.input.events import EventSource, open_events
from hamlet.output.query_part import query_results
from hamlet.parallel.run import run
from hamlet.planner.compile import lengths
from hamlet.planner.matching import is_matching
from hamlet.planner.workload import Workload
from hamlet.runtime.definitions import ZONED
from hamlet.runtime.sizes import size_text

WINDOWS = 3  # that a sample is long
FIRST = 20_000  # events that say how many a sample may have
MOST = 300_000  # events of a sample
BUDGET_S = 1.0  # that a run over a sample may take
SURE_S = 0.25  # after which runs over it are not repeated
OFTEN = 5  # runs, at most
MOST_READ = 4_000_000  # events that are read for one
FEW_GROUPS = 8  # are not told apart: one may have most of the events
GROWTH = 0.15  # a smaller exponent is noise
MANY_WINDOWS = 4  # open at once
WORTH = 1.3  # times faster, from which it is worth a sentence
WORD_BITS = 64
SHORT_S = 1.0  # nobody waits for less


@dataclass(frozen=True)
class Estimate:
    """What to expect of a run.

    Attributes
    ----------
    events : int
        Of the input.
    sampled : int
        Events that were run.
    seconds : float
        Of one thread, reading among them.
    reading_seconds : float
        Of the processor, as all seconds here.
    rows : int
    held_bytes : int
        Of the states of queries and groups, at most.
    row_bytes : int
        Of all rows as columns.
    operator : str
        What takes most of the events.
    share : float
        Its part of them.
    largest_count_bits : int
        Of the sample.
    cheaper : tuple of str
        What would make it cheaper.
    """

    events: int
    sampled: int
    seconds: float
    reading_seconds: float
    rows: int
    held_bytes: int
    row_bytes: int
    operator: str
    share: float
    largest_count_bits: int
    cheaper: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return asdict(self)

    def text(self) -> str:
        """All of it, for people."""
        lines = [
            f"estimate    {self.events:,} events, from runs over {self.sampled:,} of them",
            f"seconds     {_rounded(self.seconds)}, {_rounded(self.reading_seconds)} of them for reading",
            f"rows        {self.rows:,}",
            f"bytes       {size_text(self.held_bytes)} in states, {size_text(self.row_bytes)} in rows",
            f"operator    {self.operator}, which takes {self.share:.0%} of the events",
            *(f"cheaper     {each}" for each in self.cheaper),
        ]
        return "\n".join(lines)


def _rounded(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:,.0f}"


def estimate(workload: Workload, source: EventSource, **options: Any) -> Estimate:
    """Say what a run over an input will take.

    Parameters
    ----------
    workload : Workload
    source : EventSource
        From `hamlet.input.events.open_events`.
    **options
        Of `hamlet.run`, those of columns among them.
    """
    return _Sampling(workload, source, options).estimate()


@dataclass
class _Ran:
    """A run over some events."""

    seconds: float
    held: int
    rows: Mapping[str, int]
    row_bytes: int
    stats: Mapping[str, Any]


class _Sampling:
    """A workload, its input, and what was read of it."""

    def __init__(self, workload: Workload, source: EventSource, options: Mapping[str, Any]) -> None:
        self._workload, self._source, self._options = workload, source, dict(options)
        self._options["threads"] = 1
        self._clock = source.schema.clock.column
        self._windows = lengths(workload.analysis, source.schema)
        self._columns = [name for name in workload.attributes if name in source.schema.columns]
        self._total = source.rows
        self._reading = 0.0  # seconds an event
        self._table = self._read()
        self._begin = int(_ticks(self._table[self._clock])[0].as_py()) if len(self._table) else 0

    def estimate(self) -> Estimate:
        """Run the sample, and go on from it to the whole."""
        table = self._table
        if len(table) == 0:
            raise OptionError(f"{self._source.name} has no events; there is nothing to estimate from")
        assert self._total is not None
        first = self._run(table.slice(0, FIRST))
        most = min(MOST, max(FIRST, int(FIRST * BUDGET_S / max(first.seconds, 1e-6))))
        sample, thinned = self._thinned(table, most)
        part, _ = self._thinned(sample, len(sample) // 2) if thinned else (sample.slice(0, len(sample) // 2), False)
        whole, half = self._fastest(sample), self._fastest(part)
        of_event = max(whole.seconds - half.seconds, 0.2 * whole.seconds) / max(1, len(sample) - len(part))
        fixed = max(0.0, whole.seconds - of_event * len(sample))
        groups = len(table) / len(sample) if thinned else 1.0  # of which the sample has one
        span = self._span(sample)
        whole_span = max(span, span * self._total / (len(sample) * groups))
        if self._total == len(sample):
            seconds = whole.seconds
        else:
            seconds = fixed + self._growing(sample, of_event, span, thinned)
        again = 2 if whole.seconds < SURE_S else 1
        seconds += max(0.0, min(self._whole_run(sample) for _ in range(again)) - whole.seconds)
        reading = self._reading * self._total
        return Estimate(
            self._total,
            len(sample),
            seconds + reading,
            reading,
            round(self._rows(whole, span, whole_span) * groups),
            round(whole.held * groups * self._filling(span, whole_span)),
            round(self._row_bytes(whole, span, whole_span) * groups),
            *_dominating(whole.stats),
            int(whole.stats["largest_count_bits"]),
            tuple(self._cheaper(sample, whole, seconds, reading)),
        )

    def _read(self) -> pa.Table:
        """The beginning of the input; all of it where only reading tells how many events there are."""
        longest = max((within + slide for within, slide in self._windows), default=1)
        begin, count, first = time.process_time(), 0, None
        batches: list[pa.RecordBatch] = []
        for batch in self._source.batches(self._columns):
            count += batch.num_rows
            times = _ticks(batch[self._clock])
            first = times[0].as_py() if first is None else first
            enough = len(batches) > 0 and count >= MOST and times[0].as_py() - first > WINDOWS * longest
            if not enough and count - batch.num_rows < MOST_READ:
                batches.append(batch)
            elif self._total is not None:
                break
        self._reading = (time.process_time() - begin) / max(1, count)
        self._total = count if self._total is None else self._total
        return pa.Table.from_batches(batches) if batches else self._source.arrow_schema.empty_table()

    def _span(self, table: pa.Table) -> int:
        times = _ticks(table[self._clock])
        return max(1, int(times[-1].as_py() - times[0].as_py()))

    def _thinned(self, table: pa.Table, most: int) -> tuple[pa.Table, bool]:
        """At most about so many events; whether they are those of some groups, else they are the first ones."""
        if len(table) <= most:
            return table, False
        begins = table.slice(0, most)
        longest = max((within + slide for within, slide in self._windows), default=1)
        shared = self._shared()
        if shared is None or self._span(begins) >= WINDOWS * longest:
            return begins, False
        values = pc.unique(table[shared])
        if len(values) < FEW_GROUPS:
            return begins, False
        kept = values.take(pa.array(range(0, len(values), max(2, math.ceil(len(table) / most)))))
        return table.filter(pc.is_in(table[shared], kept)), True

    def _shared(self) -> str | None:
        """A column by which all queries tell groups apart."""
        found = [set(query.partition) for query in self._workload.analysis.queries]
        names = set.intersection(*found) if found else set()
        return next((name for name in self._columns if name in names), None)

    def _run(self, table: pa.Table, **other: Any) -> _Ran:
        """A run over a table, rows and all."""
        options = {**self._options, **other}
        known = {name: options[name] for name in ZONED if options.get(name) is not None}
        begin = time.process_time()
        engine = Engine(self._workload, **cast(EngineOptions, options))
        source = open_events(table, **known)
        engine.open(source.schema)
        rows = {each.name: each for each in engine.without_rows()}
        for batch in source.batches(self._columns, pane=engine.pane):
            _extend(rows, engine.feed(batch, wait=True))
        _extend(rows, engine.close_batches())
        seconds = time.process_time() - begin
        results = query_results(list(rows.values()), engine.clock, engine.options.count_type, engine.stats)
        size = sum(results.table(name).nbytes for name in rows)
        held = engine.executor.executors[0].budget.most
        return _Ran(seconds, held, {name: len(each) for name, each in rows.items()}, size, engine.stats)

    def _fastest(self, table: pa.Table) -> _Ran:
        """The fastest run over a table: what is short is measured more often, for what it differs by is multiplied."""
        ran = [self._run(table)]
        while len(ran) < OFTEN and sum(each.seconds for each in ran) < SURE_S:
            ran.append(self._run(table))
        return min(ran, key=_time)

    def _whole_run(self, table: pa.Table) -> float:
        """Seconds of a run with all that it does besides its rows: what it says of them costs the same of any input."""
        known = {name: self._options[name] for name in ZONED if self._options.get(name) is not None}
        begin = time.process_time()
        with _quiet():
            run(self._workload, open_events(table, **known), **self._options)
        return time.process_time() - begin

    def _growing(self, sample: pa.Table, of_event: float, span: int, thinned: bool) -> float:
        """Seconds for all events, when one costs so much at the end of the sample."""
        assert self._total is not None
        n, longest = len(sample), max((within for within, _ in self._windows), default=1)
        if thinned or span >= longest:
            return of_event * self._total
        quarter, half, whole = (
            min(self._run(sample.slice(0, n // part)).seconds for _ in range(2)) for part in (4, 2, 1)
        )
        later, earlier = max(whole - half, 1e-6), max(half - quarter, 1e-6)
        growth = min(2.0, math.log2(later / earlier) - 1)
        if growth < GROWTH:
            return of_event * self._total
        at_end = of_event * (1 + growth) * n / 2 / (n * (1 - 0.5 ** (1 + growth)))
        full = min(self._total, n * longest / span)
        risen = at_end * n / (1 + growth) * (full / n) ** (1 + growth)
        return float(risen + at_end * (full / n) ** growth * (self._total - full))

    def _times(self, name: str, span: int, whole: float) -> float:
        """How many times as many windows of a query the input has as the sample."""
        within, slide = self._windows[self._workload.names.index(name)]
        if self._workload.queries[self._workload.names.index(name)].session:
            return whole / span

        def windows(length: float) -> float:
            return (self._begin + length) // slide - (self._begin - within) // slide

        return windows(whole) / windows(span)

    def _rows(self, ran: _Ran, span: int, whole: float) -> float:
        return sum(self._times(name, span, whole) * rows for name, rows in ran.rows.items())

    def _row_bytes(self, ran: _Ran, span: int, whole: float) -> float:
        """Bytes of rows; large numbers are as long as windows are full."""
        longer = self._filling(span, whole) if ran.stats["largest_count_bits"] > WORD_BITS else 1.0
        return ran.row_bytes / max(1, sum(ran.rows.values())) * self._rows(ran, span, whole) * longer

    def _filling(self, span: int, whole: float) -> float:
        """How many times as much is held once windows are full."""
        longest = max((within for within, _ in self._windows), default=1)
        return min(whole, longest) / span if span < longest else 1.0

    def _cheaper(self, sample: pa.Table, ran: _Ran, seconds: float, reading: float) -> Iterator[str]:
        bits = int(ran.stats["largest_count_bits"])
        if self._options.get("numbers", "exact") == "exact" and bits > WORD_BITS:
            faster = ran.seconds / max(self._run(sample, numbers="float").seconds, 1e-6)
            if faster >= WORTH:
                power = int(bits * math.log10(2))
                yield f"numbers up to 10^{power}: --numbers float is {faster:.1f} times faster"
        for within, slide in sorted(set(self._windows)):
            open_at_once = -(-within // slide) if slide else 1
            names = [
                name
                for name, query, each in zip(self._workload.names, self._workload.queries, self._windows, strict=True)
                if each == (within, slide) and not query.session
            ]
            if open_at_once > MANY_WINDOWS and names:
                yield f"{_listed(names)}: {open_at_once:,} windows are open at once; a longer SLIDE has fewer"
        compared = [each.query for each in self._workload.analysis.queries if each.adjacent or is_matching(each)]
        if compared and _dominating(ran.stats)[0] in ("matching", "event_store"):
            yield "`hamlet explain` without --estimate says what an event costs each query, and why"
        if reading > max(seconds / 2, SHORT_S):
            yield "reading takes most of it: Parquet, in the order of time, is read fastest"
        if seconds > SHORT_S and self._shared() is not None:
            yield "--threads N computes groups, or stretches of time, side by side"


@contextmanager
def _quiet() -> Iterator[None]:
    """Lets a run of this thread say nothing: it is of a sample, and what it finds is of no use to anybody."""
    thread, log = threading.get_ident(), logging.getLogger("hamlet")

    def kept(record: logging.LogRecord) -> bool:
        return record.thread != thread

    log.addFilter(kept)
    try:
        yield
    finally:
        log.removeFilter(kept)


def _time(ran: _Ran) -> float:
    return ran.seconds


def _ticks(times: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    return times if pa.types.is_integer(times.type) else times.cast(pa.int64())


def _extend(collected: dict[str, Any], rows: Sequence[Any]) -> None:
    for more in rows:
        collected[more.name].extend(more)


def _dominating(stats: Mapping[str, Any]) -> tuple[str, float]:
    """The operator that takes most of the events, and its part of them."""
    taken = {name: work["events"] for name, work in stats["operators"].items()}
    name = max(taken, key=lambda each: taken[each])
    return name, taken[name] / max(1, sum(taken.values()))


def _listed(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
