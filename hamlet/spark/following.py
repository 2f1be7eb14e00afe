"""Continuous jobs over a folder to which files are added: what all notations have in common."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from hamlet.errors import DataError, OutputError, UnsupportedError
from hamlet.input.files_protocol import Reader
from hamlet.runtime.expected import NO_EVENTS
from hamlet.spark.checkpoint import FilesRead, is_begun, kept_columns, owned
from hamlet.spark.continuous import OBSERVED, PROVIDER, ROCKSDB, Sink, Written, closed
from hamlet.spark.events import Reading
from hamlet.spark.frames import Events
from hamlet.spark.input import arriving, first_file, local_output, local_path
from hamlet.spark.options import Follow
from hamlet.spark.scaling import (
    CELLS_PER_SLICE,
    UNEVEN,
    Plan,
    balanced,
    kept_plan,
    largest_share,
    moved,
    planned,
    spread,
)
from hamlet.spark.session import at_the_end, session, translated
from hamlet.spark.sliced import Recut, TimedWork, Work, recut
from hamlet.spark.told import Telling, Told, telling

_LOG = logging.getLogger("hamlet")
_LOOK = 2  # seconds between two looks at a job


@dataclass(frozen=True)
class Prepared:
    """A job in its session.

    Attributes
    ----------
    work : Work
        As the job begins.
    sink : Sink
    running : callable
        From a plan, the work and its events.
    findings : callable
        From what tasks have told, what was probably not meant.
    """

    work: Work
    sink: Sink
    running: Callable[[Plan], tuple[Work, DataFrame]]
    findings: Callable[[Told], Sequence[str]]


Prepare = Callable[[SparkSession, int, Telling], Prepared]  # from the number of cells, and what hears of rows


def followed_folder(source: str) -> Path:
    """The folder that a job follows.

    Raises
    ------
    UnsupportedError, DataError
        If it is none of this machine.
    """
    path = local_path(source)
    if path is None:
        raise UnsupportedError(f"{source} is a URL of another file system; --stream follows a folder of this machine")
    if not path.is_dir():
        raise DataError(f"no such folder: {source}")
    return path


@contextmanager
def places(output: str, checkpoint: str) -> Iterator[Path]:
    """The folder of the results, while the checkpoint is held.

    Raises
    ------
    OutputError
        If the checkpoint is in use, or rows would be there twice.
    """
    folder, place = local_output(output).resolve(), local_path(checkpoint)
    if place is None:
        yield folder
        return
    with owned(str(place)):
        if folder.is_dir() and any(folder.iterdir()) and not is_begun(place):
            raise OutputError(f"{output} is not empty, and the checkpoint {checkpoint} is: rows would be there twice")
        yield folder


@contextmanager
def keeping_state(chosen: Follow) -> Iterator[tuple[SparkSession, bool]]:
    """A session for a continuous job, and whether it was made for it."""
    ours = SparkSession.getActiveSession() is None
    with session(chosen.master, chosen.settings, chosen.log_level) as spark, translated():
        if ours:
            spark.conf.set(PROVIDER, ROCKSDB)
        yield spark, ours


def followed(
    output: str,
    checkpoint: str,
    chosen: Follow,
    asked: int | None,
    usual: Callable[[SparkSession], int],
    opened: Callable[[str], Prepare],
) -> dict[str, Any]:
    """Run a job until it is stopped.

    Parameters
    ----------
    output, checkpoint : str
    chosen : Follow
    asked : int or None
        Slices.
    usual : callable
        How many there are where nobody has asked.
    opened : callable
        From the checkpoint, what prepares the job; what it finds wrong costs no JVM.

    Returns
    -------
    dict
        ``batches``, ``events``, ``late_events`` and ``rows`` of this run, ``notes`` and ``warnings``.
    """
    place = local_path(checkpoint)
    checkpoint = checkpoint if place is None else str(place)
    with places(output, checkpoint) as folder:
        kept = kept_plan(checkpoint)
        if kept is not None:
            FilesRead(kept.folder(checkpoint), checkpoint).check()
        prepare = opened(checkpoint)
        with keeping_state(chosen) as (spark, ours):
            hearing = telling(spark)
            asked = asked if kept is not None else asked or usual(spark)
            cells = kept.cells if kept is not None else CELLS_PER_SLICE * (asked or 1)
            job = prepare(spark, cells, hearing)
            layout = planned(spark, checkpoint, kept, job.work.slices, asked)
            job.sink.prepare(folder)
            written = Written(job.sink, folder)
            with saying(chosen, job.work.notes, hearing, job.findings, new=kept is None) as said:
                _going(spark, checkpoint, layout, chosen, written, job.running, ours=ours)
    counts = {name: getattr(written, name) for name in ("batches", "events", "late_events", "rows")}
    return counts | said


@contextmanager
def saying(
    chosen: Follow, notes: Sequence[str], telling: Telling, findings: Callable[[Told], Sequence[str]], *, new: bool
) -> Iterator[dict[str, list[str]]]:
    """Say what was found when a job has come to its end, or is stopped; gives ``notes`` and ``warnings``.

    Parameters
    ----------
    chosen : Follow
    notes : sequence of str
        What is known at the beginning.
    telling : Accumulator
    findings : callable
        From what tasks have told, what was probably not meant.
    new : bool
        Whether the job begins.
    """
    said: dict[str, list[str]] = {}

    def say() -> None:
        told: Told = telling.value
        never = [NO_EVENTS] if new else []
        warnings = list(findings(told)) if told.begun is not None else never
        said.update(notes=[*notes, *told.notes], warnings=warnings)
        for each in dict.fromkeys([*said["notes"], *warnings]):
            (_LOG.warning if chosen.said is None else chosen.said)(each)

    try:
        yield said
    except KeyboardInterrupt:
        say()
        raise
    say()


def follow(
    source: str,
    output: str,
    checkpoint: str,
    chosen: Follow,
    reading: Reading,
    columns: Callable[[Reader], pa.Schema],
    plan: Callable[[Events, int], TimedWork],
    sink: Callable[..., Sink],
) -> dict[str, Any]:
    """Run what goes by time over a folder of this machine, until it is stopped; as `followed`.

    Parameters
    ----------
    source, output, checkpoint : str
    chosen : Follow
    reading : Reading
    columns : callable
        From the first file, the columns that are read and their types; the time comes first.
    plan : callable
        From the events, and the number of cells, what runs.
    sink : callable
        From what runs, and ``telling``, where its rows go.
    """
    path = followed_folder(source)

    def opened(checkpoint: str) -> Prepare:
        known = kept_columns(checkpoint, lambda: columns(reading.open(first_file(path))))
        settled = replace(reading, key=replace(reading.key, time=known.names[0]))

        def prepare(spark: SparkSession, cells: int, telling: Telling) -> Prepared:
            def arrived(skip: Sequence[str]) -> Events:
                frame = arriving(spark, path, chosen.files_per_batch, settled, known, telling, skip)
                return Events(frame, tuple(known.names), known)

            work = plan(arrived(()), cells)

            def running(plan: Plan) -> tuple[Work, DataFrame]:
                cut = work if plan.shares is None else work.again(plan.shares)
                return cut, arrived(plan.read).select(work.events.names)

            return Prepared(work, sink(work, telling=telling), running, lambda told: work.findings(told.seen))

        return prepare

    return followed(
        output, checkpoint, chosen, chosen.slices, lambda spark: spark.sparkContext.defaultParallelism, opened
    )


def _going(
    spark: SparkSession,
    checkpoint: str,
    layout: Plan,
    chosen: Follow,
    written: Written,
    made: Callable[[Plan], tuple[Work, DataFrame]],
    *,
    ours: bool,
) -> None:
    """Run a job until it is stopped.

    Parameters
    ----------
    spark : SparkSession
    checkpoint : str
    layout : Plan
        Where the cells of its work are.
    chosen : Follow
    written : Written
    made : callable
        From the plan, the work and its events.
    ours : bool
        Whether the session was made for the job.
    """
    balance = _Balance(layout, chosen.adaptive)
    while True:
        if ours:
            spark.conf.set("spark.sql.shuffle.partitions", str(layout.slices))  # as many as there are slices
        own = layout.folder(checkpoint)
        files = None if local_path(checkpoint) is None else FilesRead(own, checkpoint)
        written.first, written.balance, written.moved = layout.first, balance.look, False
        work, events = made(layout)
        balance.begin(layout, work)
        rows = closed(work, events, layout, layout.initial(checkpoint))
        query = chosen.writer(rows, own).outputMode("append").foreachBatch(written.take).start()
        try:
            awaited([Watch(query, files, chosen.verbose, balance)], chosen)
        except Exception:
            if not written.moved:
                raise
        if not written.moved or query.exception() is None:  # it has come to its end
            return
        places = balanced(written.loads, layout.places)
        layout = moved(spark, checkpoint, layout, places, balance.cells if balance.cuts(written.loads) else None)


class _Balance:
    """Looks at how even slices are, micro-batch by micro-batch, and cuts cells anew where moving them is not enough.

    Attributes
    ----------
    layout : Plan
        Where the cells are.
    shares : dict of int to float
        By micro-batch, the load of the largest slice over the mean.
    """

    def __init__(self, layout: Plan, adaptive: bool) -> None:
        self.layout, self._adaptive = layout, adaptive
        self._work: TimedWork | None = None  # what runs, where its cells can be cut anew
        self._reached = 1.0  # by the last cut: the load of the largest slice over the mean
        self.shares: dict[int, float] = {}

    def begin(self, layout: Plan, work: Work) -> None:
        """Look at what runs from now on."""
        self.layout, self.shares = layout, {}
        self._work = work if isinstance(work, TimedWork) and work.reach is not None else None

    def look(self, batch: int, loads: Mapping[int, int]) -> bool:
        """Whether cells are to be moved after a micro-batch."""
        places = self.layout.places
        self.shares[batch] = share = largest_share(loads, places)
        return self._adaptive and share >= UNEVEN and (balanced(loads, places) != places or self.cuts(loads))

    def cuts(self, loads: Mapping[int, int]) -> bool:
        """Whether cells are cut anew, since moving them is not enough: not once more for what the last cut has left."""
        left = largest_share(loads, balanced(loads, self.layout.places))
        return self._work is not None and left >= max(UNEVEN, 1.1 * self._reached)

    def cells(self, saved: Sequence[bytes | None]) -> Recut | None:
        """Cells in other shares; None where they stay as they are."""
        assert self._work is not None
        found = recut(self._work, saved)
        if found is not None:
            even = spread(len(found.states), self.layout.slices)
            self._reached = largest_share(found.loads, balanced(found.loads, even))
        return found


class Watch:
    """Looks after a job while it runs.

    Parameters
    ----------
    query : StreamingQuery
    files : FilesRead or None
    verbose : bool
        Whether a line per micro-batch goes to standard error.
    balance : _Balance, optional
        Knows how even slices are.

    Attributes
    ----------
    events, late_events : int
        Of this run, as Spark's progress has them.
    """

    def __init__(
        self, query: StreamingQuery, files: FilesRead | None, verbose: bool, balance: _Balance | None = None
    ) -> None:
        self.query, self._files, self._verbose, self._balance = query, files, verbose, balance
        self.events = self.late_events = 0
        self._told = -1

    def look(self) -> None:
        """See what has come, and whether a file has changed that was read."""
        if self._files is not None:
            self._files.check()
        self.count()

    def count(self) -> None:
        """Take the numbers of micro-batches that have ended."""
        for progress in self.query.recentProgress:
            counts = (progress.observedMetrics or {}).get(OBSERVED)
            if progress.batchId <= self._told or counts is None or counts["events"] is None:
                continue
            self._told = progress.batchId
            self.events += counts["events"]
            self.late_events += counts["late_events"]
            if self._verbose:
                balance = self._balance
                share = None if balance is None else balance.shares.get(progress.batchId)
                click.echo(_line(progress, counts, share, 0 if balance is None else balance.layout.first), err=True)


def awaited(watches: Sequence[Watch], chosen: Follow) -> None:
    """Wait for the end of a job, and look after it meanwhile."""
    try:
        for each in watches:
            if chosen.started is not None:
                chosen.started(each.query)
        waiting = list(watches)
        while waiting:
            try:
                over = bool(waiting[0].query.awaitTermination(_LOOK))
            except Exception:
                for each in waiting:
                    each.count()  # what ended before the failure
                raise
            for each in waiting:
                each.look()
            waiting = waiting[1:] + ([] if over else waiting[:1])
    finally:
        with at_the_end():
            for each in watches:
                each.query.stop()


def _line(progress: StreamingQueryProgress, counts: Row, share: float | None, first: int) -> str:
    """What a micro-batch did."""
    seconds = progress.durationMs.get("triggerExecution", 0) / 1000
    late = f", {counts['late_events']:,} late" if counts["late_events"] else ""
    behind = (progress.sources[0].metrics or {}) if progress.sources else {}
    lag = f", {behind['numFilesOutstanding']} files behind" if "numFilesOutstanding" in behind else ""
    kept = f"{counts['kept_bytes']:,} bytes kept"
    even = "" if share is None else f", largest slice {share:.2f} of the mean"
    return (
        f"micro-batch {first + progress.batchId}: {counts['events']:,} events{late}, {kept}{even}{lag}, {seconds:.1f} s"
    )
