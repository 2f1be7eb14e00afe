"""A policy over files as they are added to a folder: the continuous job.

Spark follows the folder and says which files a micro-batch has. They are read as everywhere (`hamlet.spark.arrivals`),
and one monitor takes them in turn and keeps its state in the checkpoint, a file per micro-batch. A file that cannot be
read ends the job before anything of its micro-batch is written, and is read again when the job goes on. A micro-batch
that is run again after a crash begins with the state of the one before it and writes files of the same names, so every
row is there once.
"""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa
from pyspark.sql import DataFrame

from hamlet.errors import DataError, OutputError, RestoreError, UnsupportedError
from hamlet.input.files import event_files
from hamlet.input.widening import FRACTION
from hamlet.output.columnar import file_writer, folder_of
from hamlet.policies import Monitor, Policy
from hamlet.policies.options import OnlineOptions
from hamlet.policies.runner import Serving
from hamlet.runtime.options import takes
from hamlet.spark.arrivals import Arrivals
from hamlet.spark.checkpoint import check_parts, owned
from hamlet.spark.events import path_of
from hamlet.spark.input import followed_paths, local_output, local_path
from hamlet.spark.options import PolicyStream, PolicyStreamOptions, job_of
from hamlet.spark.session import at_the_end, session, translated

_LOOK = 2  # seconds between two looks at files that were read
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
        A folder of Parquet, CSV or JSON lines files; the first of them must be there, since it says of what type times
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
        ``batches``, ``events`` and ``rows`` of this run, and ``notes``: files that were moved away.

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
    if not path.is_dir():
        raise DataError(f"no such folder: {source}")
    folder, states = local_output(output).resolve(), Path(checkpoint, _STATES)
    with owned(checkpoint):
        check_parts(checkpoint, states)
        if folder.is_dir() and any(folder.iterdir()) and not states.is_dir():
            raise OutputError(f"{output} is not empty, and the checkpoint {checkpoint} is: rows would be there twice")
        states.mkdir(parents=True, exist_ok=True)
        serving = Serving([policy], pa.int64(), 1, negate=chosen.run.negate)  # what cannot be monitored costs no JVM
        first = event_files(path)[0]
        arrivals = Arrivals(policy, serving.predicates, chosen.run, chosen.input_format, first, states)
        arrivals.check()
        writer = _Writer(policy, chosen, arrivals, folder, states)
        with session(chosen.master) as spark, translated():
            frame = followed_paths(spark, path, chosen.files_per_batch)
            query = chosen.writer(frame, str(Path(checkpoint, "spark"))).foreachBatch(writer.take).start()
            try:
                while not query.awaitTermination(_LOOK):
                    arrivals.check()
                arrivals.check()
            finally:
                with at_the_end():
                    query.stop()
                if writer.failed is not None:
                    raise writer.failed  # as it was before it went through the JVM
    notes = [f"{each} was moved away before it was read" for each in arrivals.gone]
    return {"batches": writer.batches, "events": writer.events, "rows": writer.rows, "notes": notes}


class _Writer:
    """Takes micro-batches in turn.

    Attributes
    ----------
    batches, events, rows : int
        Of this run.
    failed : Exception or None
        What stopped it.
    """

    def __init__(self, policy: Policy, chosen: PolicyStream, arrivals: Arrivals, folder: Path, states: Path) -> None:
        self._policy, self._options, self._format = policy, asdict(chosen.run), chosen.output_format
        self._arrivals = arrivals
        self._folder, self._states = folder / folder_of("policy", policy.name), states
        self.batches = self.events = self.rows = 0
        self.failed: Exception | None = None
        self._folder.mkdir(parents=True, exist_ok=True)

    def take(self, frame: DataFrame, batch: int) -> None:
        """Monitor a micro-batch; Spark gives one again where it does not know that it was done."""
        try:
            paths = sorted(path_of(row[0]) for row in frame.collect())
            self._arrivals.check()
            self._take(self._arrivals.read(paths), batch)
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
        self._arrivals.remember()
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
        shown = kind if pa.types.is_timestamp(kind) else pa.float64() if kind == FRACTION else pa.int64()
        serving = Serving([self._policy], shown, 1, negate=negate)
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
