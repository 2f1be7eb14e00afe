"""The continuous job: Structured Streaming with engines as state, rows of a window once it has closed.

```
streaming DataFrame
  |  spark/online.packed        routed, and packed per slice; every slice is told the time
  v
one row per task and slice      groupBy(slice).transformWithState: engines are restored, pushed, advanced and saved
  v
partial rows of closed windows  those of one group meet, and are added up
  v
DataFrame, or files             hamlet.spark.stream, hamlet submit --stream
```

The watermark of a micro-batch is the latest time seen before it minus the lateness. It is the engines' own: Spark's
drops rows at or before its first watermark, time 0, and tells nobody. Engines are saved in Spark's state store, under
the same checkpoint as the place in the input, so after a crash both go on from one place.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import col, create_map, lit
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructField, StructType

from hamlet.errors import OptionError, UnsupportedError, one_of
from hamlet.input.ticks import Lateness, ticks_of
from hamlet.output.files import part_file
from hamlet.output.place import folder_name
from hamlet.parallel.routing.placement import plain
from hamlet.parallel.routing.routing import MOST_CLASSES, Slicing
from hamlet.spark.frames import arrow_schema
from hamlet.spark.job import Job
from hamlet.spark.online import CLOSED, COUNTS, PACKED, Online, bucketed, met, packed
from hamlet.spark.rows import WRITTEN, Presenter, result_batches, write_files
from hamlet.spark.session import guarded
from hamlet.spark.slices import Batches, labels_of, mapped
from hamlet.spark.tasks import Shipment

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
DELAY = "spark.watermarkDelayMs"  # in the metadata of a column with a watermark
STATE = "slices int, engines binary"


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


class Continuous:
    """A workload over a streaming DataFrame, as a plan.

    Parameters
    ----------
    job : Job
    frame : DataFrame
        The job's events.
    lateness : int, float, str, datetime.timedelta or None
        As `hamlet.Engine`; None for that of the watermark on the time column, 0 where it has none.
    late : {'error', 'drop'}

    Attributes
    ----------
    batches, events, late_events : int
        Micro-batches that `writer` has written, events read for them, and events among these dropped as late.
    """

    def __init__(self, job: Job, frame: DataFrame, lateness: Lateness | None, late: str) -> None:
        check_streaming(frame)
        if late not in ("error", "drop"):
            raise OptionError(f"late is {late!r}; it must be 'error' or 'drop'")
        if len(job.routes) > MOST_CLASSES:
            raise UnsupportedError(f"a continuous job takes at most {MOST_CLASSES} classes of partition attributes")
        endless = [each.name for each in job.shipment.workload.queries if each.within is None]
        if endless:
            raise UnsupportedError(
                f"{one_of(endless, 'and')}: WITHIN ALL has rows when the stream ends, and a continuous job has no end\n"
                "hint: give windows a length, as in WITHIN 1 d, or run a batch job over what has come so far"
            )
        clock = job.schema.clock
        if lateness is None:
            delay = frame.schema[clock.column].metadata.get(DELAY)
            lateness = 0 if delay is None else f"{delay} ms"
        self._job = job
        self.batches = self.events = self.late_events = 0
        self._late = late
        self._lateness = ticks_of(lateness, clock)
        self._slicing = plain(job.compiled, job.routes, job.partitions)

    def closed(self) -> DataFrame:
        """Partial rows of closed windows as `hamlet.spark.online.CLOSED`."""
        job, slicing = self._job, self._slicing
        shipment, routes = job.shipment, job.routes
        packets = mapped(job.everything(), partial(packed, shipment, routes, slicing), from_arrow_schema(PACKED))
        # Spark hashes the keys: labels whose hash is right keep slices apart where there are as many partitions.
        labels = labels_of(packets.sparkSession, slicing.slices)
        pairs = create_map(*(lit(value) for pair in enumerate(labels) for value in pair))
        keyed = packets.withColumn("label", pairs[col("slice")]).groupBy("label")
        processor = _Slice(shipment, routes, slicing, self._lateness, self._late)
        return keyed.transformWithState(
            statefulProcessor=processor,
            outputStructType=from_arrow_schema(CLOSED),
            outputMode="Append",
            timeMode="None",
        )

    def results(self) -> DataFrame:
        """Result rows; columns as `hamlet.spark.run`."""
        schema = self._job.result_type()
        numbered = StructType([StructField(f"c{place}", each.dataType) for place, each in enumerate(schema.fields)])
        arrow, shipment, names = arrow_schema(schema), self._job.shipment, numbered.names

        def merge(batches: Batches) -> Batches:
            rows = (rows for _, rows in Presenter(shipment).rows(met(batches)[0]))
            return result_batches(rows, shipment, arrow, names)

        spread = self.closed().repartition(self._slicing.slices, col("bucket"))
        return mapped(spread, merge, numbered).toDF(*schema.names)

    def writer(self, folder: Path, output_format: str) -> Callable[[DataFrame, int], None]:
        """What writes a micro-batch as files, the same ones however often it is run."""

        def write(frame: DataFrame, batch: int) -> None:
            read, late = _write_batch(self._job.shipment, folder, output_format, frame, batch)
            self.batches += 1
            self.events += read
            self.late_events += late

        return write


class _Slice(StatefulProcessor):
    """The engines of a slice."""

    def __init__(self, shipment: Shipment, routes: Any, slicing: Slicing, lateness: int, late: str) -> None:
        self._shipment = shipment
        self._routes = routes
        self._slicing = slicing
        self._lateness = lateness
        self._late = late

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's name for the beginning."""
        self._state = handle.getValueState("engines", STATE)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        """The events of a micro-batch; gives partial rows."""
        with guarded():
            yield from self._closed(rows)

    def _closed(self, rows: Iterator[Row]) -> Iterator[Row]:
        saved = self._saved()
        first = next(rows)
        slices = self._slicing.slices
        online = Online(self._shipment, self._routes, self._slicing, first["slice"], self._lateness, self._late, saved)
        for row in chain([first], rows):
            online.take(row["latest"], row["read"], row["events"])
        for bucket, data in bucketed(online.closed(), slices, self._shipment.tops):
            yield Row(bucket=bucket, rows=data)
        yield Row(bucket=COUNTS, rows=online.counts)
        self._state.update((slices, online.save()))

    def _saved(self) -> bytes | None:
        """The engines as the last micro-batch left them."""
        found = self._state.get() if self._state.exists() else None
        if found is None:
            return None
        slices, engines = found
        if slices != self._slicing.slices:
            raise OptionError(
                f"the checkpoint was made with {slices} slices, and the job has {self._slicing.slices} now\n"
                f"hint: give partitions={slices} (--partitions {slices}), or begin with a new checkpoint"
            )
        return bytes(engines)

    def close(self) -> None:
        """Spark's name for the end."""


# ----------------------------------------------------------------------------------------------------- files


def _write_batch(shipment: Shipment, folder: Path, output_format: str, frame: DataFrame, batch: int) -> tuple[int, int]:
    """Write the rows of a micro-batch, in place of what an earlier attempt at it has left; events read, late events.

    Each task writes beside the results; when all have, the files are renamed. A micro-batch that is run again after a
    crash has the same rows and the same names, so no row is there twice, whoever reads the folder.
    """
    beside = folder / f".batch-{batch:08}"
    shutil.rmtree(beside, ignore_errors=True)
    presenter = Presenter(shipment)
    for name in presenter.names:
        (beside / folder_name(name)).mkdir(parents=True)
    write = partial(write_files, shipment, str(beside), output_format)

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        rows, read, late = met(batches)
        yield from write(f"{batch:08}-{context.partitionId():05}", rows)
        counts = {"query": COUNTS, "rows": read, "infinite": late, "most": "0"}
        yield pa.RecordBatch.from_pylist([counts], WRITTEN)

    spread = frame.repartition(frame.sparkSession.sparkContext.defaultParallelism, col("bucket"))
    written = mapped(spread, task, "query int, rows long, infinite long, most string").collect()
    for name in presenter.names:
        place = folder / folder_name(name)
        for old in place.glob(f"part-{batch:08}-*"):
            old.unlink()
        for fresh in (beside / folder_name(name)).glob("part-*"):
            fresh.replace(place / fresh.name)
    shutil.rmtree(beside, ignore_errors=True)
    counts = [(each["rows"], each["infinite"]) for each in written if each["query"] == COUNTS]
    return sum(read for read, _ in counts), sum(late for _, late in counts)


def prepared(shipment: Shipment, folder: Path, output_format: str) -> None:
    """Folders of all queries, each with an empty file that says what its columns are."""
    presenter = Presenter(shipment)
    for place, name in enumerate(presenter.names):
        path = folder / folder_name(name)
        path.mkdir(parents=True, exist_ok=True)
        if not any(path.iterdir()):
            columns, options = presenter.columns(place), shipment.options
            with part_file(
                path / f"part-columns.{output_format}",
                output_format,
                columns,
                shipment.schema().clock,
                options.count_type,
            ):
                pass
