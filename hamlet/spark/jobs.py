"""The jobs that all notations have, each in a room of its own.

`submit` runs over files, `submit_stream` goes on as files are added, `stream` as events of a DataFrame come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, Unpack, overload

from pyspark.sql import DataFrame

from hamlet.engine.options import Options
from hamlet.errors import OptionError
from hamlet.planner.workload import Workload
from hamlet.policies import Policy
from hamlet.runtime.options import takes
from hamlet.spark import patterns, policies, queries, specifications
from hamlet.spark.options import (
    Batch,
    PolicyStreamOptions,
    PolicySubmitOptions,
    Stream,
    SubmitOptions,
    SubmitStreamOptions,
)
from hamlet.spark.session import check_pandas, translated
from hamlet.streams import Specification


@overload
def submit(
    workload: Workload, source: str | Sequence[str], output: str, **options: Unpack[SubmitOptions]
) -> dict[str, Any]: ...
@overload
def submit(
    workload: Policy, source: str | Sequence[str], output: str, **options: Unpack[PolicySubmitOptions]
) -> dict[str, Any]: ...
@overload
def submit(
    workload: Specification,
    source: str | Sequence[str],
    output: str,
    **options: Unpack[specifications.SpecificationSubmitOptions],
) -> dict[str, Any]: ...
@overload
def submit(
    workload: str, source: Mapping[str, Sequence[str]] | Sequence[str], output: str, **options: Any
) -> dict[str, Any]: ...
@takes(Batch, Options, without=["run"])
def submit(workload: Any, source: Any, output: str, **options: Any) -> dict[str, Any]:
    """Run a workload over a file, as a batch job that writes ``output/query=<name>/part-<number>.<format>``.

    A policy, a specification and a text of SQL run so, too, with the options of `hamlet.spark.policies.submit`,
    `hamlet.spark.specifications.submit` and `hamlet.spark.patterns.submit`.

    The files of a query are ordered by window and group, in themselves and by their numbers: partial rows are spread
    over the writing tasks by ranges of (query, window, group). They are written beside their place and renamed when all
    are there.

    Parameters
    ----------
    workload : Workload, Policy, Specification or str
    source : str or sequence of str
        A path (a file, a folder, a pattern), or a URL of any file system that Spark knows, or several of either kind.
        Local CSV and JSON files are read as `hamlet.run` reads them, a task per file; elsewhere Spark reads them, and
        finds their types its own way.
    output : str
        A directory that every machine of the cluster sees.
    master : str, optional
        ``local[*]`` by default; the active session's or spark-submit's where there is one.
    input_format : {'parquet', 'csv', 'json'}, optional
        By default the extension says.
    delimiter, bad_rows, missing_columns
        As for `hamlet.run`; rows are dropped from local files only.
    output_format : {'parquet', 'csv', 'json'}
    overwrite : bool
        Whether an output directory with something in it is replaced.
    partitions : int, optional
        As for `run`.
    balance : bool
        As for `run`.
    where : str, optional
        Only events for which this condition over columns is true are read; as ``hamlet run --where``.
    since, until : int, str or datetime, optional
        Only events from a time on, and before another one. Files and row groups of Parquet that cannot have an event
        that is wanted are not read.
    report : path, optional
        Where to write an HTML page about the job, as `hamlet.run` does; a file of this machine. Tasks then look at all
        events before they are routed, and keep a record of their decisions.
    trace : str, optional
        A directory, as `output` is one, for the records of bursts (`hamlet.engine.trace`): a Parquet file per task.
    products : {'auto', 'always', 'never'}
        As for `run`; ``auto`` looks at Parquet only, whose times can be read without all else.
    semijoin : {'auto', 'on', 'off'}
        Whether events whose keys have no trend, since they lack an event that every pattern needs, stay behind before
        the shuffle. Such keys are found in the scan of `balance`: under ``auto`` where that is asked for, under ``on``
        always. Rows do not depend on it.
    keep : iterable of paths
        Files that `overwrite` must not delete, besides the input.
    progress : callable, optional
        Called with what is being done, the tasks that are done and the tasks of the running stages.
    **options
        As for `run`.

    Returns
    -------
    dict
        What the job counted: the counters of `Results.stats` (events are those of the input; where slices overlap in
        time, groups and windows count in each), rows, infinite_values, seconds by stage, and ``slices``: the events
        that each slice got (``loads``), ``max_over_mean`` of these, and ``replication``, the slices that an event was
        sent to on average; under ``products`` whether maps travelled in place of events (``used``), the ``ranges`` that
        they were made of, or the ``reason`` why not; under ``semijoin`` the ``keys`` that were counted and those that
        are ``possible``, where some are not; ``left_behind``, the events of the others; ``warnings``, what is odd about
        the rows, as `Results.warnings` says it, and ``notes`` about times and the types of columns.

    Raises
    ------
    WorkloadError, DataError, OptionError, OutputError, UnsupportedError
        A user's mistake; nothing is left behind.
    JobError
        If Spark cannot finish the job.
    """
    found: dict[str, Any] = _room_of(workload).submit(workload, source, output, **options)
    return found


@overload
def submit_stream(
    workload: Workload,
    source: str | Sequence[str],
    output: str,
    checkpoint: str,
    **options: Unpack[SubmitStreamOptions],
) -> dict[str, Any]: ...
@overload
def submit_stream(
    workload: Policy, source: str, output: str, checkpoint: str, **options: Unpack[PolicyStreamOptions]
) -> dict[str, Any]: ...
@overload
def submit_stream(
    workload: Specification,
    source: str,
    output: str,
    checkpoint: str,
    **options: Unpack[specifications.SpecificationStreamOptions],
) -> dict[str, Any]: ...
@overload
def submit_stream(
    workload: str, source: Mapping[str, Sequence[str]] | Sequence[str], output: str, checkpoint: str, **options: Any
) -> dict[str, Any]: ...
@takes(Stream, Options, without=["run", "trace"])
def submit_stream(workload: Any, source: Any, output: str, checkpoint: str, **options: Any) -> dict[str, Any]:
    """Run a workload over a folder to which files are added, until it is stopped.

    A policy, a specification and a text of SQL run so, too, with the options of the ``submit_stream`` of
    `hamlet.spark.policies`, `hamlet.spark.specifications` and `hamlet.spark.patterns`.

    Files ``output/query=<name>/part-<micro-batch>-<number>.<format>`` appear as windows close. A job that was killed
    goes on from its checkpoint, and each row is in one file once, whoever reads the folder.

    Parameters
    ----------
    workload : Workload, Policy, Specification or str
    source : str
        A folder of Parquet, CSV or JSON lines files, some of which are there to say what the columns are.
    output : str
        A directory that every machine of the cluster sees.
    checkpoint : str
        A directory for Spark's checkpoint: the place in the input, and the engines.
    lateness, late
        As for `stream`.
    where : str, optional
        As for `submit`: what fails it is never seen, and moves no watermark.
    trigger : str, optional
        Time between micro-batches, such as ``'10 seconds'``; by default one follows the other.
    available_now : bool
        Whether to stop when all files that are there have been read; windows that are still open stay open.
    files_per_batch : int, optional
        Most files of a micro-batch.
    verbose : bool
        Whether a line per micro-batch goes to standard error: events, late ones, bytes kept, files behind, seconds.
    conf : mapping of str to str, or iterable of str
        Spark's own settings, by name or as ``name=value``.
    log_level : str, optional
        Of Spark's log.
    started : callable, optional
        Called with the running query.
    said : callable, optional
        Called with each of ``notes`` and ``warnings`` when the job has come to its end, or is stopped; by default they
        go to the log.
    master, input_format, delimiter, bad_rows, missing_columns, output_format, partitions, **options
        As for `submit`.

    Returns
    -------
    dict
        Of this run: ``batches``, ``events``, ``late_events`` that were dropped, ``rows``, ``notes`` (about bad rows,
        and columns that files lack), and ``warnings``: what is odd about all events since the job began, as `submit`
        says it.

    Raises
    ------
    WorkloadError, DataError, OptionError, OutputError, UnsupportedError, JobError
        As `submit`; DataError at a late event.
    """
    found: dict[str, Any] = _room_of(workload).submit_stream(workload, source, output, checkpoint, **options)
    return found


def stream(work: Any, events: Any, **options: Any) -> DataFrame:
    """Run queries, a policy, a specification or row patterns over a streaming DataFrame.

    Rows come once no later event can change them: those of a window after it has closed, a verdict once it is decided,
    a match once no later row can make it another one.

    Parameters
    ----------
    work : Workload, Policy, Specification or str
        A text is SQL with row patterns, whose one table is the DataFrame. Work and events may change places.
    events : DataFrame
        Of ``spark.readStream``. The watermark, before which everything is final, is the latest time of all events,
        whatever their types, minus the lateness.
    slices : int, optional
        Which a checkpoint keeps to; of queries also ``partitions``. By default for queries as for `run`, else the
        session's parallelism; best is what ``spark.sql.shuffle.partitions`` is.
    lateness : int, float, str or datetime.timedelta, optional
        How far behind the latest time of earlier micro-batches an event may be; by default what ``withWatermark`` has
        set on the time column of queries, else 0.
    late : {'error', 'drop'}
        What becomes of later events.
    **options
        Of queries as for `run`; of a policy those of `hamlet.policies.Monitor` and ``statistics``; of a specification
        those of `hamlet.streams.Monitor`; of SQL those of `sql`.

    Returns
    -------
    DataFrame
        A streaming one. To be written in the mode ``append``, with a checkpoint. In Spark's progress
        (``observedMetrics``) ``hamlet`` has ``events``, ``late_events``, ``kept_bytes`` and ``latest``. Its attribute
        ``warnings`` has what was probably not meant, of all events since the stream began, as far as its queries have
        come: it is looked at whenever it is read.

    Raises
    ------
    WorkloadError, DataError, OptionError, UnsupportedError
        A user's mistake, as `run`; OptionError where the session keeps no state in RocksDB.

    Examples
    --------
    >>> rows = hamlet.spark.stream(workload, spark.readStream.schema(schema).parquet("trips/"))  # doctest: +SKIP
    >>> rows.writeStream.option("checkpointLocation", "state").parquet("rows")  # doctest: +SKIP
    """
    if isinstance(work, DataFrame):
        work, events = events, work
    check_pandas()
    if not isinstance(events, DataFrame) or not events.isStreaming:
        raise OptionError("hamlet.spark.stream takes a streaming DataFrame; hamlet.spark.run takes a batch")
    with translated():
        found: DataFrame = _room_of(work).stream(work, events, **options)
        return found


def _room_of(work: object) -> ModuleType:
    """What has the jobs of a notation."""
    rooms = {Policy: policies, Specification: specifications, str: patterns}
    return next((room for kind, room in rooms.items() if isinstance(work, kind)), queries)
