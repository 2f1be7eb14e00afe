"""A policy over files as they are added to a folder: the continuous job.

Spark follows the folder and hands over micro-batches; one monitor takes them in turn and keeps its state in the
checkpoint, a file per micro-batch. A micro-batch that is run again after a crash begins with the state of the one
before it and writes files of the same names, so every row is there once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from hamlet.engine.options import takes
from hamlet.errors import DataError, OutputError, RestoreError, UnsupportedError
from hamlet.input.files import event_files, format_of
from hamlet.output.columnar import file_writer, folder_of
from hamlet.policies import Monitor, Policy
from hamlet.policies.options import OnlineOptions
from hamlet.policies.runner import Serving
from hamlet.spark.input import local_output, local_path
from hamlet.spark.options import PolicyStream, PolicyStreamOptions, job_of
from hamlet.spark.session import at_the_end, session, translated

_STATES = "monitor"  # the folder of states below the checkpoint


@takes(PolicyStream, OnlineOptions, without=["run"])
def submit_stream(
    policy: Policy, source: str, output: str, checkpoint: str, **options: Unpack[PolicyStreamOptions]
) -> dict[str, Any]:
    """Monitor the files of a folder and those that are added to it, until the job is stopped.

    Parameters
    ----------
    policy : Policy
    source : str
        A folder of Parquet, CSV or JSON lines files; the first of them must be there, since it says what the columns
        are.
    output : str
        A directory; rows are written as ``policy=<name>/part-<micro-batch>.<format>`` once they are decided.
    checkpoint : str
        Where the job keeps its place and its state; a job that was killed goes on from there.
    output_format : {'parquet', 'csv', 'json', 'monpoly'}
    input_format, master, trigger, available_now, files_per_batch
        As for `hamlet.spark.submit_stream`.
    **options
        Of `hamlet.policies.Monitor`.

    Returns
    -------
    dict
        ``batches``, ``events`` and ``rows`` of this run.

    Raises
    ------
    HamletError
        A user's mistake.
    JobError
        If Spark cannot go on.
    """
    chosen = job_of(PolicyStream, OnlineOptions, options)
    path = local_path(source)
    if path is None:
        raise UnsupportedError(f"{source} is a URL of another file system; --stream follows a folder of this machine")
    first = event_files(path)[0] if path.exists() else None
    if first is None:
        raise DataError(f"no such folder: {source}")
    kind = format_of(first, chosen.input_format)
    folder, states = local_output(output).resolve(), Path(checkpoint, _STATES)
    if folder.is_dir() and any(folder.iterdir()) and not states.is_dir():
        raise OutputError(f"{output} is not empty, and the checkpoint {checkpoint} is: rows would be there twice")
    writer = _Writer(policy, chosen, folder, states)
    with session(chosen.master) as spark, translated():
        frame = _followed(spark, str(path), kind, chosen.files_per_batch)
        query = chosen.writer(frame, str(Path(checkpoint, "spark"))).foreachBatch(writer.take).start()
        try:
            query.awaitTermination()
        finally:
            with at_the_end():
                query.stop()
            if writer.failed is not None:
                raise writer.failed  # as it was before it went through the JVM
    return {"batches": writer.batches, "events": writer.events, "rows": writer.rows}


def _followed(spark: SparkSession, path: str, kind: str, files: int | None) -> DataFrame:
    options: Mapping[str, Any] = {"header": True, "inferSchema": True} if kind == "csv" else {}
    schema = spark.read.format(kind).options(**options).load(path).schema
    stream = spark.readStream.format(kind).options(**options).schema(schema)
    return (stream if files is None else stream.option("maxFilesPerTrigger", files)).load(path)


class _Writer:
    """Takes micro-batches in turn.

    Attributes
    ----------
    batches, events, rows : int
        Of this run.
    failed : Exception or None
        What stopped it.
    """

    def __init__(self, policy: Policy, chosen: PolicyStream, folder: Path, states: Path) -> None:
        self._policy, self._options, self._format = policy, asdict(chosen.run), chosen.output_format
        self._folder, self._states = folder / folder_of("policy", policy.name), states
        self.batches = self.events = self.rows = 0
        self.failed: Exception | None = None
        Monitor(policy, **self._options)  # what cannot be monitored costs no JVM
        self._folder.mkdir(parents=True, exist_ok=True)
        states.mkdir(parents=True, exist_ok=True)

    def take(self, frame: DataFrame, batch: int) -> None:
        """Monitor a micro-batch; Spark gives one again where it does not know that it was done."""
        try:
            self._take(frame.toArrow(), batch)
        except Exception as error:
            self.failed = error
            raise

    def _take(self, events: pa.Table, batch: int) -> None:
        monitor = self._monitor(batch)
        rows = monitor.push(events) if events.num_rows else []
        for old in self._folder.glob(f"part-{batch:08}.*"):
            old.unlink()
        if rows:
            self._write(rows, batch, events)
        state = self._states / f"{batch:08}.state"
        fresh = state.with_suffix(".new")
        fresh.write_bytes(monitor.save())
        fresh.replace(state)
        for old in sorted(self._states.glob("*.state"))[:-2]:  # the one before may be needed again
            old.unlink()
        self.batches += 1
        self.events += events.num_rows
        self.rows += len(rows)

    def _monitor(self, batch: int) -> Monitor:
        """The monitor as the last micro-batch before this one left it."""
        earlier = [path for path in sorted(self._states.glob("*.state")) if int(path.stem) < batch]
        if not earlier:
            if batch > 0:
                raise RestoreError(f"the checkpoint has no state from before the micro-batch {batch}; begin a new one")
            return Monitor(self._policy, **self._options)
        found: Monitor = Monitor.restore(self._policy, earlier[-1].read_bytes())
        return found

    def _write(self, rows: list[dict[str, Any]], batch: int, events: pa.Table) -> None:
        """Write rows beside the results, and put them in place."""
        kind = events.schema.field(self._options["time_column"]).type
        negate = self._options["negate"]
        serving = Serving([self._policy], kind if pa.types.is_timestamp(kind) else pa.int64(), 1, negate=negate)
        table = pa.Table.from_pylist(rows, serving.schemas[0])
        beside = self._folder.parent / f".batch-{batch:08}"
        with contextlib.suppress(FileExistsError):
            beside.mkdir()
        inside = beside / self._folder.name
        for left in inside.glob("*") if inside.is_dir() else ():
            left.unlink()
        if inside.is_dir():
            inside.rmdir()
        name, tuples = self._policy.name, serving.tuples[0]
        with file_writer(beside, self._format, "policy", name, table.schema, False, tuples) as put:
            for part in table.to_batches():
                put(part)
        (made,) = inside.iterdir()
        made.replace(self._folder / f"part-{batch:08}{made.suffix}")
        inside.rmdir()
        beside.rmdir()
