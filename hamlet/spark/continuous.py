"""The continuous job: Structured Streaming with monitors as state, rows once no later event can change them.

```
streaming DataFrame
  |  Work.packed                  routed, and packed per slice; every slice is told the time
  v
one row per task and slice        groupBy(slice).transformWithState: monitors are restored, pushed, advanced and saved
  v
rows that are decided             of queries partial ones: those of one group meet, and are added up
  v
DataFrame, or files               hamlet.spark.stream, hamlet submit --stream
```

The watermark of a micro-batch is the latest time seen before it minus the lateness. It is the monitors' own: Spark's
drops rows at or before its first watermark, time 0, and tells nobody. Monitors are saved in Spark's state store, under
the same checkpoint as the place in the input, so after a crash both go on from one place.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.functions import col, create_map, lit
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import MapState

from hamlet.errors import OptionError, UnsupportedError
from hamlet.output.columnar import folder_of, write_part
from hamlet.output.typed import typed_rows, typed_schema
from hamlet.spark.cell_states import whole, writing
from hamlet.spark.frames import plain_in_spark
from hamlet.spark.processor import Processor
from hamlet.spark.scaling import Plan, loaded
from hamlet.spark.session import guarded, task_number
from hamlet.spark.sliced import CLOSED, PACKED, Slice, TimedWork, Work, decided, rows_of
from hamlet.spark.slices import Batches, labels_of, mapped
from hamlet.spark.told import Telling, heard, telling, with_findings

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
COUNTS = -1  # a bucket that holds no rows but what the slice has counted
OBSERVED = "hamlet"  # the name of the counters in Spark's progress


def check_streaming(frame: DataFrame) -> None:
    """Check what a continuous job needs.

    Raises
    ------
    UnsupportedError
        If Spark is too old, or protobuf is missing.
    OptionError
        If the session's state store is not RocksDB, or the DataFrame is a batch.
    """
    if not frame.isStreaming:
        raise OptionError("the DataFrame is a batch; hamlet.spark.stream takes one of spark.readStream")
    if not hasattr(frame.groupBy(), "transformWithState"):
        raise UnsupportedError("a continuous job needs Spark 4.1 or newer (transformWithState over rows)")
    if importlib.util.find_spec("google") is None or importlib.util.find_spec("google.protobuf") is None:
        raise UnsupportedError(
            "Spark needs protobuf to keep state in Python; it comes with: pip install 'hamlet-cep[spark]'"
        )
    if frame.sparkSession.conf.get(PROVIDER) != ROCKSDB:
        raise OptionError(
            f"a continuous job keeps its state in RocksDB\nhint: set it on the session: "
            f'spark.conf.set("{PROVIDER}", "{ROCKSDB}")'
        )


def packets_of(work: Work, events: DataFrame) -> DataFrame:
    """The events of slices, as `hamlet.spark.sliced.PACKED`."""

    def task(batches: Batches) -> Batches:
        return work.packed(task_number(), batches)

    return mapped(events, task, from_arrow_schema(PACKED))


def closed(work: Work, events: DataFrame, plan: Plan | None = None, initial: str | None = None) -> DataFrame:
    """What slices decide, as `hamlet.spark.sliced.CLOSED`; `events` have the columns that the work reads.

    With a plan, the slices of the work are cells, and a task has those that the plan gives it; `initial` is a folder
    with their states where Spark has none.
    """
    check_streaming(events)
    plan = plan or Plan(tuple(range(work.slices)))

    packets = packets_of(work, events)
    # Spark hashes the keys: labels whose hash is right keep slices apart where there are as many partitions.
    labels = labels_of(packets.sparkSession, plan.slices)
    pairs = create_map(*(lit(value) for cell, place in enumerate(plan.places) for value in (cell, labels[place])))
    keyed = packets.withColumn("label", pairs[col("slice")]).groupBy("label")
    found = keyed.transformWithState(
        statefulProcessor=Processor(WorkCells(work, initial)),
        outputStructType=from_arrow_schema(CLOSED),
        outputMode="Append",
        timeMode="None",
    )
    counted = [sf.sum(name).alias(name) for name in ("events", "late_events", "kept_bytes")]
    return found.observe(OBSERVED, *counted, sf.max("latest").alias("latest"))


def _closed_rows(cell: int, slice: Slice) -> Iterator[dict[str, Any]]:
    """What a slice decides, and what it has counted, as rows of `CLOSED`."""
    for bucket, data in slice.closed():
        yield decided(bucket, data, cell=cell)
    counts = {name: getattr(slice, name) for name in ("late_events", "kept_bytes", "latest", "load")}
    seen = slice.seen.described() if slice.seen.events else None
    yield decided(COUNTS, None, events=slice.read, cell=cell, seen=seen, **counts)


@dataclass(frozen=True)
class WorkCells:
    """The cells of a slice, as `hamlet.spark.processor` runs them.

    Attributes
    ----------
    work : Work
    initial : str or None
        A folder with states, where Spark has none.
    """

    work: Work
    initial: str | None

    def closed(self, state: MapState, rows: Iterator[Row]) -> Iterator[Row]:
        """Take the events of a micro-batch; gives what is decided."""
        with guarded():
            yield from self._closed(state, rows)

    def _closed(self, state: MapState, rows: Iterator[Row]) -> Iterator[Row]:
        cells: dict[int, Slice] = {}
        kept, before = self._parts(state), dict[int, bytes | None]()
        for row in rows:
            cell = row["slice"]
            if cell not in cells:
                before[cell] = whole(kept[cell]) if cell in kept else loaded(self.initial, cell)
                cells[cell] = self.work.opened(cell, before[cell])
            cells[cell].take(row["first"], row["latest"], row["seen"], row["events"])
        for cell in sorted(cells):
            found = cells.pop(cell)
            yield from (Row(**each) for each in _closed_rows(cell, found))
            written = writing(kept.get(cell, ()), before.pop(cell), found.save())
            state.updateValue((cell, written.part), (self.work.slices, written.data))
            for part in written.dropped:
                state.removeKey((cell, part))

    def _parts(self, state: MapState) -> dict[int, list[bytes]]:
        """The states of all cells of the slice, as micro-batches have written them."""
        found: dict[int, dict[int, bytes]] = {}
        for (cell, part), (cells, data) in state.iterator():
            if cells != self.work.slices:
                raise OptionError(
                    f"the checkpoint was made with {cells} slices, and the job has {self.work.slices} now\n"
                    "hint: states move between slices where a job over a folder runs queries, a policy or a "
                    f"specification; here give as many (slices={cells}, --slices {cells}), or begin with a new "
                    "checkpoint"
                )
            found.setdefault(cell, {})[part] = bytes(data)
        return {cell: [parts[part] for part in sorted(parts)] for cell, parts in found.items()}


def frame_of(work: TimedWork, found: DataFrame, telling: Telling | None = None) -> DataFrame:
    """Result rows of what slices decide, of which `found` is `CLOSED`."""
    spoken = pa.schema([pa.field(each.name, plain_in_spark(each.type)) for each in typed_schema(work.rows)])

    def rows(batches: Batches) -> Batches:
        for part in rows_of(batches if telling is None else heard(telling, batches)):
            yield typed_rows(part).cast(spoken)

    return mapped(found, rows, from_arrow_schema(spoken, prefer_timestamp_ntz=True))


def timed_frame(work: TimedWork, events: DataFrame) -> DataFrame:
    """Result rows of what goes by time, over a streaming DataFrame of the columns that it reads."""
    hearing = telling(events.sparkSession)
    rows = frame_of(work, closed(work, events), hearing)
    return with_findings(rows, hearing, lambda told: work.findings(told.seen))


# ----------------------------------------------------------------------------------------------------- files


@dataclass(frozen=True)
class Counts:
    """What there was to count where rows are written.

    Attributes
    ----------
    rows, events, late_events : int
    loads : mapping of int to int
        Events that cells were given.
    """

    rows: int
    events: int = 0
    late_events: int = 0
    loads: Mapping[int, int] = field(default_factory=dict)


class Sink:
    """Where the rows of a continuous job become files.

    Attributes
    ----------
    folders : sequence of str
        Those of the queries, of the policy, of the specification.
    """

    folders: Sequence[str]
    telling: Telling | None = None

    def prepare(self, folder: Path) -> None:
        """Make the folders."""
        for name in self.folders:
            (folder / name).mkdir(parents=True, exist_ok=True)

    def written(self, folder: Path, head: str, frame: DataFrame) -> Counts:
        """Write rows of `CLOSED` into the folders, as files ``part-<head><task>``."""
        write = partial(_write_part, self, str(folder), head)
        form = "rows long, events long, late_events long, loads map<int,long>"
        counts = mapped(self.spread(frame), write, form).collect()
        loads: Counter[int] = Counter()
        for each in counts:
            loads.update(each["loads"])
        rows, events, late = (sum(each[place] for each in counts) for place in range(3))
        return Counts(rows, events, late, loads)

    def spread(self, frame: DataFrame) -> DataFrame:
        """What a micro-batch decides, in the tasks that write it."""
        return frame

    def write(self, beside: str, part: str, batches: Batches) -> int:
        """Write the files of a task, whose names begin with ``part-`` and `part`, into their folders; gives rows."""
        raise NotImplementedError


@dataclass(frozen=True)
class TimedSink(Sink):
    """Files of what goes by time.

    Attributes
    ----------
    work : TimedWork
    kind, name : str
        Of the folder: ``policy=late``.
    output_format : str
    sparse, tuples
        As of `hamlet.output.columnar.file_writer`.
    telling : Accumulator, optional
        Hears what events have shown.
    empty : bool
        Whether a task without rows writes a file, too, which says what the columns are.
    """

    work: TimedWork
    kind: str
    name: str
    output_format: str
    sparse: bool = False
    tuples: tuple[str, ...] | None = None
    empty: bool = False
    telling: Telling | None = None

    @property
    def folders(self) -> list[str]:  # type: ignore[override]
        """The one."""
        return [folder_of(self.kind, self.name)]

    def write(self, beside: str, part: str, batches: Batches) -> int:
        """Write rows."""
        found = list(rows_of(batches))
        if not found and not self.empty:
            return 0
        kind, name, form = self.kind, self.name, self.output_format
        return write_part(
            Path(beside), form, kind, name, f"part-{part}", self.work.rows, found, self.sparse, self.tuples
        )


class MovingError(Exception):
    """The cells of a job are to be moved, and no micro-batch begins before that."""


class Written:
    """Writes micro-batches as files, the same ones however often one is run.

    Each task writes beside the results; when all have, the files are renamed. A micro-batch that is run again after a
    crash has the same rows and the same names, so no row is there twice, whoever reads the folder.

    Parameters
    ----------
    sink : Sink
    folder : pathlib.Path
        Of the results.
    first : int
        What the number of the first micro-batch is in names of files.

    Attributes
    ----------
    batches, events, late_events, rows : int
        Of this run.
    loads : mapping of int to int
        Events that cells were given in the last micro-batch.
    balance : callable, optional
        Hears of these when a micro-batch is written.
    moved : bool
        Whether cells are to be moved before the next one.
    """

    def __init__(self, sink: Sink, folder: Path, first: int = 0) -> None:
        self._sink, self._folder, self.first = sink, folder, first
        self.batches = self.events = self.late_events = self.rows = 0
        self.loads: Mapping[int, int] = {}
        self.balance: Callable[[int, Mapping[int, int]], bool] | None = None
        self.moved = False

    def take(self, frame: DataFrame, batch: int) -> None:
        """Write a micro-batch."""
        if self.moved:
            raise MovingError
        found = _write_batch(self._sink, self._folder, frame, self.first + batch)
        self.loads = found.loads
        self.batches += 1
        self.events += found.events
        self.late_events += found.late_events
        self.rows += found.rows
        self.moved = self.balance is not None and self.balance(batch, self.loads)


def _write_batch(sink: Sink, folder: Path, frame: DataFrame, batch: int) -> Counts:
    """Write the rows of a micro-batch, in place of what an earlier attempt at it has left."""
    beside = folder / f".batch-{batch:08}-{sink.folders[0]}"  # the queries of a text have batches of their own
    shutil.rmtree(beside, ignore_errors=True)
    for name in sink.folders:
        (beside / name).mkdir(parents=True)
    counts = sink.written(beside, f"{batch:08}-", frame)
    for name in sink.folders:
        for old in (folder / name).glob(f"part-{batch:08}-*"):
            old.unlink()
        for fresh in (beside / name).glob("part-*"):
            fresh.replace(folder / name / fresh.name)
    shutil.rmtree(beside, ignore_errors=True)
    return counts


def _write_part(sink: Sink, folder: str, head: str, batches: Batches) -> Iterator[pa.RecordBatch]:
    """The files of a task, and what its rows have counted."""
    events = late = 0
    loads: Counter[int] = Counter()

    def counted() -> Batches:
        nonlocal events, late
        for each in batches if sink.telling is None else heard(sink.telling, batches):
            events += sum(each.column("events").to_pylist())
            late += sum(each.column("late_events").to_pylist())
            for cell, load in zip(each.column("cell").to_pylist(), each.column("load").to_pylist(), strict=True):
                loads[cell] += load
            yield each

    rows = sink.write(folder, f"{head}{task_number():05}", counted())
    found = [pa.array([each]) for each in (rows, events, late)]
    given = pa.array([list(loads.items())], pa.map_(pa.int32(), pa.int64()))
    yield pa.RecordBatch.from_arrays([*found, given], ["rows", "events", "late_events", "loads"])
