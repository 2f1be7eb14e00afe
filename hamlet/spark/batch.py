"""The batch job: what stands around the slices of all notations.

Where events have to travel, a notation is the same `hamlet.spark.sliced.Work` that runs continuously: its slices get
all events at once, and then the end. Where tasks can read what they need of the files by themselves, nothing is
shuffled: a notation says what the shares of a job are, and what a task does with one (`Sharing`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from hamlet.checkpoint.pieces import as_bytes, from_bytes
from hamlet.errors import UnsupportedError
from hamlet.findings import Seen
from hamlet.output.columnar import folder_of, write_part
from hamlet.output.place import check_destination, staged
from hamlet.spark.continuous import COUNTS, Sink, packets_of
from hamlet.spark.input import local_output, local_path, sources_of
from hamlet.spark.options import Once
from hamlet.spark.session import guarded, watched
from hamlet.spark.sliced import CLOSED, TimedWork, as_read, decided, given, in_order, whole
from hamlet.spark.slices import Batches, in_slices, mapped

_END = 1 << 62
_AT_ONCE = 1 << 17  # events that a monitor is given
Place = tuple[Path, str]  # where rows go, and as the user wrote it


def seen_by_all(source: str | Sequence[str]) -> list[str]:
    """The paths of an input that tasks read by themselves.

    Raises
    ------
    UnsupportedError
        At a URL of another file system.
    """
    paths = []
    for each in sources_of(source):
        path = local_path(each)
        if path is None:
            raise UnsupportedError(
                f"{each} is a URL of another file system; tasks read a path that every machine sees\n"
                "hint: give such a path; trend queries (.sase) are read from URLs"
            )
        paths.append(os.path.abspath(path))
    return paths


def destination(output: str, chosen: Once, read: Iterable[str]) -> Place:
    """Where the rows of a job go; what it reads must not be replaced."""
    precious = [*read, *map(str, chosen.keep)]
    return check_destination(local_output(output), chosen.overwrite, precious), output


# ------------------------------------------------------------------------------------------------- by shares


class Monitored(Protocol):
    """A share of a job in its task."""

    @property
    def schema(self) -> pa.Schema:
        """Of the rows."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the share, to the end of its events."""

    def counts(self) -> dict[str, Any]:
        """What there was to count; known when the rows have been given."""


class Sharing(Protocol):
    """A notation whose tasks read files by themselves; goes to every worker."""

    @property
    def kind(self) -> str:
        """Of the folder ``<kind>=<name>``."""

    @property
    def name(self) -> str:
        """Of the folder."""

    @property
    def tuples(self) -> Sequence[str] | None:
        """As of `hamlet.output.columnar.file_writer`."""

    def monitored(self, share: Any) -> Monitored:
        """What a task does with a share."""


def written_shares(
    spark: SparkSession, work: Sharing, shares: Sequence[Any], place: Place, chosen: Once
) -> list[dict[str, Any]]:
    """Run a task for each share, and put what they write in place; gives what they have counted, and their ``rows``."""
    context = spark.sparkContext
    with staged(*place) as fresh:
        inside = fresh / folder_of(work.kind, work.name)
        inside.mkdir()
        task = partial(write_share, work, str(fresh), chosen.output_format)
        with watched(context, "monitoring", chosen.progress):
            found = context.parallelize(enumerate(shares), len(shares)).map(task).collect()
        for unfinished in inside.glob(".part-*"):  # of a task that was killed
            unfinished.unlink()
    return found


def write_share(work: Sharing, folder: str, output_format: str, given: tuple[int, Any]) -> dict[str, Any]:
    """Write the rows of a share."""
    number, share = given
    with guarded():
        task = work.monitored(share)
        rows = write_part(
            Path(folder), output_format, work.kind, work.name, f"part-{number:05}", task.schema, task.rows(),
            tuples=work.tuples,
        )  # fmt: skip
        return {"rows": rows, **task.counts()}


# ------------------------------------------------------------------------------------------------- by slices


def closed_once(work: TimedWork, events: DataFrame) -> DataFrame:
    """What slices decide of events that end, as `hamlet.spark.sliced.CLOSED`; columns as the work reads them."""

    def task(batches: Batches) -> Batches:
        first, latest, read = _END, -_END, 0
        parts: dict[int, list[pa.RecordBatch]] = {}
        for batch in batches:
            for slice, begin, last, told, data in zip(*(each.to_pylist() for each in batch.columns), strict=True):
                first, latest = min(first, begin), max(latest, last)
                read += 0 if told is None else Seen.read(told).events
                parts.setdefault(slice, []).extend([] if data is None else from_bytes(data))
        for slice in sorted(parts):
            monitor, found = work.monitor(slice, first, None), parts.pop(slice)
            events = whole(found)
            if events is not None:
                ordered = in_order(work, as_read(events))
                for start in range(0, ordered.num_rows, _AT_ONCE):
                    yield from _closed(slice, monitor.push(*given(ordered.slice(start, _AT_ONCE))))
            yield from _closed(slice, monitor.end(latest))
        yield pa.RecordBatch.from_pylist([decided(COUNTS, None, events=read)], CLOSED)

    return mapped(in_slices(packets_of(work, events), work.slices), task, from_arrow_schema(CLOSED))


def _closed(slice: int, rows: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        yield pa.RecordBatch.from_pylist([decided(slice, as_bytes(batch))], CLOSED)


def written_slices(sink: Sink, rows: DataFrame, place: Place) -> tuple[int, int]:
    """Write what slices decide, a file each; gives how many events there were, and rows."""
    with staged(*place) as fresh:
        sink.prepare(fresh)
        counts = sink.written(fresh, "", rows)
    return counts.events, counts.rows
