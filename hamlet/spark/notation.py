"""A text of a registered notation as a batch on Spark: each task drives a monitor over the events of its slice."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from hamlet.engine.where import chosen_events
from hamlet.errors import UnsupportedError
from hamlet.input.columns import values_of
from hamlet.input.events import EventSource, open_events
from hamlet.notation.monitor import COLUMNS, StepMonitor
from hamlet.notation.notation import Notation, Work
from hamlet.output.columnar import EXTENSIONS, file_writer, folder_of
from hamlet.output.place import check_destination, staged
from hamlet.spark.input import local_output, local_path, sources_of
from hamlet.spark.session import guarded, session, translated


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
    chosen : tuple
        The first time, the first time behind the last, and a condition.
    slices : int
    """

    notation: Notation
    text: str
    source: str
    name: str
    paths: tuple[str, ...]
    reading: dict[str, Any]
    chosen: tuple[Any, Any, str | None]
    slices: int

    @property
    def work(self) -> Work:
        """The work, read again."""
        return self.notation.read(self.text, self.source, self.name)

    def events(self) -> EventSource:
        """The events that are wanted."""
        paths = self.paths[0] if len(self.paths) == 1 else list(self.paths)
        return chosen_events(open_events(paths, **self.reading), *self.chosen)

    def monitor(self) -> StepMonitor:
        """A monitor of the work."""
        return StepMonitor(self.work, **{name: self.reading[name] for name in COLUMNS if name in self.reading})


def submit(
    work: Work,
    source: str | Sequence[str],
    output: str,
    *,
    master: str | None = None,
    slices: int | None = None,
    output_format: str = "parquet",
    overwrite: bool = False,
    keep: Sequence[str] = (),
    chosen: tuple[Any, Any, str | None] = (None, None, None),
    **reading: Any,
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
    chosen : tuple
        The first time, the first time behind the last, and a condition.
    **reading
        As `hamlet.input.events.open_events` takes it.

    Raises
    ------
    HamletError
        A user's mistake; nothing is left behind.
    JobError
        If Spark cannot finish the job.
    """
    paths = []
    for each in sources_of(source):
        path = local_path(each)
        if path is None:
            raise UnsupportedError(f"{each} is a URL of another file system; tasks read a path that every machine sees")
        paths.append(os.path.abspath(path))
    place = check_destination(local_output(output), overwrite, [*paths, *keep])
    by = work.notation.slicer(work.tree)
    job = _Job(work.notation, work.text, work.source, work.name, tuple(paths), reading, chosen, 1)
    job.events()  # what cannot be read costs no JVM
    with session(master) as spark, translated():
        count = 1 if by is None else slices or spark.sparkContext.defaultParallelism
        job = _Job(work.notation, work.text, work.source, work.name, tuple(paths), reading, chosen, count)
        with staged(place, output) as fresh:
            (fresh / folder_of(work.notation.kind, work.name)).mkdir()
            task = partial(_slice, job, by, str(fresh), output_format)
            found = spark.sparkContext.parallelize(range(count), count).map(task).collect()
    return {"events": sum(each[0] for each in found), "rows": sum(each[1] for each in found)}


def _slice(job: _Job, by: str | None, folder: str, output_format: str, number: int) -> tuple[int, int]:
    """Write the rows of a slice; gives its events and its rows."""
    with guarded():
        monitor, events, rows = job.monitor(), job.events(), 0
        monitor.settle(replace(monitor.options, time_column=events.schema.clock.column))
        wanted = [name for name in monitor.columns if name in events.schema.columns]
        found: list[pa.RecordBatch] = []
        for batch in events.batches(wanted):
            mine = batch if by is None else batch.filter(_owned(batch, by, job.slices, number))
            found += monitor.push_batches(mine)
        found += monitor.close_batches()
        name = f"part-{number:05}.{EXTENSIONS[output_format]}"
        with file_writer(
            Path(folder), output_format, job.notation.kind, job.name, monitor.rows_schema, file=name
        ) as write:
            for each in found:
                write(each)
                rows += each.num_rows
        return monitor.stats["events"], rows


def _owned(batch: pa.RecordBatch, by: str, slices: int, number: int) -> pa.BooleanArray:
    """Which events are of a slice: those whose value has its remainder."""
    values = {value: zlib.crc32(repr(value).encode()) % slices == number for value in values_of(batch, by)}
    return pa.array([values.get(value, False) for value in batch.column(by).to_pylist()], pa.bool_())
