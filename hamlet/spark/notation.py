"""A text of a registered notation as a batch on Spark: each task drives a monitor over the events of its slice."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from hamlet.engine.where import chosen_events
from hamlet.input.columns import values_of
from hamlet.input.events import EventSource, open_events
from hamlet.notation.monitor import StepMonitor
from hamlet.notation.notation import Notation, Work
from hamlet.notation.run import driven
from hamlet.runtime.definitions import COLUMNS
from hamlet.spark.batch import destination, seen_by_all, written_shares
from hamlet.spark.look import Choice
from hamlet.spark.options import Once
from hamlet.spark.session import session, translated

_PLACE = ("output_format", "overwrite", "keep", "progress")


@dataclass(frozen=True)
class _Job:
    """What every task knows.

    Attributes
    ----------
    notation, text, source, name
        Of the work.
    paths : tuple of str
    reading : dict
        As `open_events` takes it.
    choice : Choice
    slices : int
    """

    notation: Notation
    text: str
    source: str
    name: str
    paths: tuple[str, ...]
    reading: dict[str, Any]
    choice: Choice
    slices: int

    tuples = None

    @property
    def kind(self) -> str:
        """Of the folder."""
        return self.notation.kind

    @property
    def work(self) -> Work:
        """The work, read again."""
        return self.notation.read(self.text, self.source, self.name)

    def events(self) -> EventSource:
        """The events that are wanted."""
        paths = self.paths[0] if len(self.paths) == 1 else list(self.paths)
        choice = self.choice
        return chosen_events(open_events(paths, **self.reading), choice.since, choice.until, choice.where)

    def monitor(self) -> StepMonitor:
        """A monitor of the work."""
        return StepMonitor(self.work, **{name: self.reading[name] for name in COLUMNS if name in self.reading})

    def monitored(self, share: int) -> _Slice:
        """What a task does with a slice."""
        return _Slice(self, share)


class _Slice:
    """A slice in its task."""

    def __init__(self, job: _Job, number: int) -> None:
        self._job, self._number = job, number
        self._monitor, self._events = job.monitor(), job.events()
        self._monitor.begin(self._events.schema.clock.column)
        rows = self._monitor.rows_schema
        self.schema = rows.set(0, rows.field(0).with_type(self._events.schema.clock.type))

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the slice."""
        job, number = self._job, self._number
        by = job.notation.slicer(self._monitor.work.tree)

        def mine(batch: pa.RecordBatch) -> pa.RecordBatch:
            return batch if by is None else batch.filter(_owned(batch, by, job.slices, number))

        return driven(self._monitor, self._events, chosen=mine)

    def counts(self) -> dict[str, Any]:
        """The events of the slice."""
        return {"events": self._monitor.stats["events"]}


def submit(
    work: Work,
    source: str | Sequence[str],
    output: str,
    *,
    slices: int | None = None,
    choice: Choice = Choice(),  # noqa: B008 (it is frozen)
    **options: Any,
) -> dict[str, Any]:
    """Run a text over files as a Spark job that writes ``output/<kind>=<name>/part-<slice>.<format>``.

    Parameters
    ----------
    work : Work
    source : str or sequence of str
        Paths that every machine sees.
    output : str
    slices : int, optional
        By default the session's parallelism; one where the notation gives no column to slice by.
    choice : Choice
        Which events are read.
    **options
        Those of `hamlet.spark.options.Once`, and further ones of `hamlet.input.events.open_events`.

    Raises
    ------
    HamletError
        A user's mistake; nothing is left behind.
    JobError
        If Spark cannot finish the job.
    """
    once = Once(**{name: options.pop(name) for name in ("master", *_PLACE) if name in options})
    paths = seen_by_all(source)
    place = destination(output, once, paths)
    by = work.notation.slicer(work.tree)
    job = _Job(work.notation, work.text, work.source, work.name, tuple(paths), options, choice, 1)
    job.events()  # what cannot be read costs no JVM
    with session(once.master) as spark, translated():
        count = 1 if by is None else slices or spark.sparkContext.defaultParallelism
        found = written_shares(spark, replace(job, slices=count), range(count), place, once)
    return {name: sum(each[name] for each in found) for name in ("events", "rows")}


def _owned(batch: pa.RecordBatch, by: str, slices: int, number: int) -> pa.BooleanArray:
    """Which events are of a slice: those whose value has its remainder."""
    values = {value: zlib.crc32(repr(value).encode()) % slices == number for value in values_of(batch, by)}
    return pa.array([values.get(value, False) for value in batch.column(by).to_pylist()], pa.bool_())
