"""Hamlet on Spark: `run` takes and gives DataFrames, `submit` is the batch job of the command line.

`monitor` is `run` for policies (`hamlet.spark.policies`).

The plan is in `hamlet.spark.job`, what its tasks run in `hamlet.spark.tasks`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from hamlet.engine.online import Late
from hamlet.engine.options import RunOptions, options_of
from hamlet.engine.stages import Stages
from hamlet.errors import OptionError, OutputError, UnsupportedError
from hamlet.input.csvform import BadRows, CsvForm, Dropped
from hamlet.input.ticks import Lateness
from hamlet.output.files import check_destination, check_format, staged
from hamlet.output.place import check_beside
from hamlet.parallel.run import Format
from hamlet.planner.workload import Workload, workload_of

try:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] not in ("pyspark", "py4j"):
        raise
    raise UnsupportedError("Spark is not installed; it comes with: pip install 'hamlet-cep[spark]'") from error

from hamlet.spark.batch import measured, partial_rows, tracing
from hamlet.spark.continuous import PROVIDER, ROCKSDB, Continuous, prepared
from hamlet.spark.counters import DroppedParam, StatsParam, events_seen, noted_of, summed, tallies_of
from hamlet.spark.counts import as_numbers
from hamlet.spark.findings import of_layers, unit_notes, warnings_of
from hamlet.spark.frames import events_of
from hamlet.spark.input import local_output, local_path, opened, sources_of
from hamlet.spark.job import Job, default_partitions
from hamlet.spark.layered_batch import submit_layers
from hamlet.spark.layers import is_layered, layers, union_of
from hamlet.spark.output import written
from hamlet.spark.policies import monitor
from hamlet.spark.products import check_choice, decided, made, put_together
from hamlet.spark.session import Progress, at_the_end, check_pandas, session, translated, watched

__all__ = ["monitor", "run", "stream", "submit", "submit_stream"]

Products = Literal["never", "auto", "always"]
Semijoin = Literal["auto", "on", "off"]
if TYPE_CHECKING:

    class ResultFrame(DataFrame):
        """A DataFrame of result rows; `run` says what its attributes are."""

        stats: dict[str, Any]
        warnings: tuple[str, ...]
else:
    ResultFrame = DataFrame
_LOG = logging.getLogger("hamlet")


def run(
    workload: Workload,
    events: DataFrame,
    *,
    partitions: int | None = None,
    balance: bool = False,
    products: Products = "never",
    lazy: bool = False,
    **options: Unpack[RunOptions],
) -> ResultFrame:
    """Run a workload over the events of a DataFrame.

    Parameters
    ----------
    workload : Workload
    events : DataFrame
        Time is an integer or timestamp column (Spark's timestamps count microseconds). Rows may be in any order.
    partitions : int, optional
        Slices: tasks to spread the events over. By default the session's ``spark.sql.shuffle.partitions``, or two
        per core where that has its default, 200.
    balance : bool
        Whether keys and times are counted first, in a scan of their own, so that slices get equal work: frequent keys
        are placed one by one, and a class of queries without keys, or with one giant group, is cut along time. By
        default keys are hashed.
    products : {'never', 'auto', 'always'}
        Where the partitions of the DataFrame are ranges of time that do not overlap, every task can make linear maps of
        its range, and only these are shuffled, no events. ``auto`` measures the ranges in a scan of the times and does
        so if it is estimated to be faster; ``always`` whenever it can be done. Queries with adjacent predicates, with
        negated patterns longer than one event, or with types that lack a key have no such maps.
    lazy : bool
        Whether only the plan is made. Then every action on the result runs the job, and what is wrong with the events
        shows as Spark's own PythonException, the message in its text, and under the count type ``auto`` a COUNT or SUM
        is text, since nobody has seen how large it is. By default the job runs now, and its result is kept by the
        executors (a local checkpoint) until the DataFrame is forgotten.
    **options
        Those of `hamlet.run`: sharing, benefit, numbers, count_type, threads, time_column, type_column, order_column,
        time_unit, timezone.

    Returns
    -------
    DataFrame
        query, window_start, window_end, then the union of the RETURN names in first-use order, NULL where a query lacks
        one. Rows are in no order. Nothing is set on the session. Unless the job is `lazy`, the attribute ``stats`` of
        this object has the counters of `Results.stats` added up over tasks (a group or a window that several slices
        have had counts in each), and ``warnings`` the sentences of `Results.warnings`; a column of such a name is
        reached by ``df["stats"]``.

    Raises
    ------
    WorkloadError, DataError, OptionError, UnsupportedError
        As `hamlet.run`; WorkloadError also where one RETURN name has two types.
    JobError
        If Spark cannot finish the job.

    Examples
    --------
    >>> df = hamlet.spark.run(workload, spark.read.parquet("trips.parquet"))  # doctest: +SKIP
    >>> df.where("query = 'q1'").show()  # doctest: +SKIP
    """
    chosen = options_of(options)
    if not isinstance(events, DataFrame):
        raise OptionError(
            f"events is a {_kind(events)}; hamlet.spark.run takes a DataFrame of Spark (spark.createDataFrame makes "
            "one of a pandas DataFrame, a pyarrow Table or rows), and hamlet.run takes everything else as it is"
        )
    if events.isStreaming:
        raise OptionError("the DataFrame is a stream: hamlet.spark.run takes a batch, hamlet.spark.stream a stream")
    check_choice(products)
    check_pandas()
    began = time.perf_counter()
    with translated():
        if is_layered(workload_of(workload)):
            done = list(layers(workload, events, chosen, _partitions(partitions), balance=balance))
            found = union_of(done, workload.names)
            if lazy:
                return cast(ResultFrame, found)
            found = found.localCheckpoint(eager=True)
            noted, tallies = of_layers(done, workload.names)
            said = warnings_of(workload, done[0].job, noted, tallies)
            return _told(found, dict(noted.paths) | {"rows": sum(each.rows for each in tallies)}, said, began)
        job = Job(workload, events_of(events, chosen), chosen, _partitions(partitions))
        stats = None if lazy else events.sparkSession.sparkContext.accumulator({}, StatsParam())
        cut = decided(job, products).cut
        if balance and cut is None:
            job.measure(balance=True, semijoin=False)  # a DataFrame may give other rows when it is computed again
        rows = None
        if cut is not None:
            found = made(job, cut, stats)
            found = found if lazy else found.localCheckpoint(eager=True)
            rows = put_together(job, cut, found, stats, held=not lazy)
        results = job.results(rows, stats=stats)
        if stats is None:
            return cast(ResultFrame, results)
        results = results.localCheckpoint(eager=True)
        tallies = tallies_of(stats.value, len(workload.names))
        said = warnings_of(workload, job, noted_of(stats.value), tallies)
        if chosen.count_type == "auto":
            results, notes = as_numbers(results, job.columns)
            said += notes
    counters = summed(stats.value, job.partitions if cut is None else 0)
    return _told(results, counters | {"rows": sum(each.rows for each in tallies)}, said, began)


def _kind(events: object) -> str:
    """What an object is, for a message: ``pandas DataFrame``, ``list``."""
    package = type(events).__module__.partition(".")[0]
    return type(events).__name__ if package == "builtins" else f"{package} {type(events).__name__}"


def _told(frame: DataFrame, stats: dict[str, Any], warnings: Sequence[str], began: float) -> ResultFrame:
    """A DataFrame of results with what the job counted and found."""
    found = cast(ResultFrame, frame)
    found.stats = stats | {"seconds": time.perf_counter() - began}
    found.warnings = tuple(warnings)
    for each in warnings:
        _LOG.warning(each)
    return found


def submit(
    workload: Workload,
    source: str | Sequence[str],
    output: str,
    *,
    master: str | None = None,
    input_format: Format | None = None,
    delimiter: str | None = None,
    bad_rows: BadRows = "error",
    output_format: Format = "parquet",
    overwrite: bool = False,
    partitions: int | None = None,
    balance: bool = False,
    where: str | None = None,
    report: str | os.PathLike[str] | None = None,
    trace: str | None = None,
    products: Products = "auto",
    semijoin: Semijoin = "auto",
    keep: Iterable[str | os.PathLike[str]] = (),
    progress: Progress | None = None,
    **options: Unpack[RunOptions],
) -> dict[str, Any]:
    """Run a workload over a file, as a batch job that writes ``output/query=<name>/part-<number>.<format>``.

    The files of a query are ordered by window and group, in themselves and by their numbers: partial rows are spread
    over the writing tasks by ranges of (query, window, group). They are written beside their place and renamed when all
    are there.

    Parameters
    ----------
    workload : Workload
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
    delimiter, bad_rows
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
    began = time.perf_counter()
    chosen = options_of(dict(options) if report is None and trace is None else {**options, "trace": True})
    check_format(output_format)
    check_choice(products)
    if semijoin not in ("auto", "on", "off"):
        raise OptionError(f"semijoin is {semijoin!r}; it must be 'auto', 'on' or 'off'")
    paths = [local_path(each) for each in sources_of(source)]
    precious = [str(path) for path in (*keep, *paths) if path is not None]
    place = check_destination(local_output(output), overwrite, precious)
    for name, beside in (("--report", report), ("--trace", trace)):
        check_beside(beside, name, place)
    traced = None if trace is None else check_destination(local_output(trace), overwrite, precious)
    about = None
    if report is not None:
        from hamlet.spark.report import JobReport  # brings in jinja2, which nothing else needs

        about = JobReport(workload, sources_of(source), chosen, report, where=where, balance=balance)
    events = opened(source, input_format, chosen, workload, where, CsvForm(delimiter, bad_rows))
    with session(master) as spark, translated():
        context = spark.sparkContext
        stages = Stages(())
        stages.seconds["start"] = time.perf_counter() - began
        read = events.load(spark)
        if is_layered(workload):
            found = submit_layers(
                workload, read, chosen, _partitions(partitions), (place, output), output_format, stages,
                balance=balance, where=where, about=about, progress=progress,
                traced=None if traced is None else (traced, str(trace)),
            )  # fmt: skip
            return _logged(found)
        job = Job(workload, read.events, chosen, _partitions(partitions), ", ".join(sources_of(source)))
        stats = context.accumulator({}, StatsParam())
        if where is not None or about is not None:
            job.look(where, stats, watch=about is not None)
        decision, keys = measured(job, read, products, balance, semijoin, stages, progress)
        with contextlib.ExitStack() as held:
            if traced is not None:
                held.enter_context(tracing(job, traced, str(trace)))
            rows = partial_rows(job, decision, stats, held)
            asked = contextlib.nullcontext() if about is None else about.computing(context)
            with stages.measured("compute"), asked, watched(context, "counting trends", progress):
                total = rows.count()
            with stages.measured("write"), staged(place, output) as fresh, watched(context, "writing", progress):
                files = written(job, rows, total, fresh, output_format)
            seen = read.rows if where is None else events_seen(stats.value)
            found = summed(stats.value, job.partitions if decision.cut is None else 0)
            noted, tallies = noted_of(stats.value), files.pop("tallies")
            files["notes"] = unit_notes(job.schema, noted) + files["notes"]
            found |= {"events": seen, **files, "products": decision.stats, "stages": stages.seconds}
            found["semijoin"] = keys
            with watched(context, "looking for what never occurs", progress):
                found["warnings"] = [*read.notes, *warnings_of(workload, job, noted, tallies, read.schema)]
            if about is not None:
                with watched(context, "drawing", progress):
                    about.write(job, rows, stats.value, found, began)
    return _logged(found)


def _logged(found: dict[str, Any]) -> dict[str, Any]:
    """What a job counted; what it found goes to the log."""
    for each in found["warnings"]:
        _LOG.warning(each)
    return found


def stream(
    workload: Workload,
    events: DataFrame,
    *,
    partitions: int | None = None,
    lateness: Lateness | None = None,
    late: Late = "error",
    **options: Unpack[RunOptions],
) -> DataFrame:
    """Run a workload over a streaming DataFrame: rows of every window, once, after it has closed.

    Parameters
    ----------
    workload : Workload
    events : DataFrame
        Of ``spark.readStream``. A window closes in the micro-batch in which the watermark passes its end; the watermark
        is the latest time of all events, whatever their types, minus the lateness.
    partitions : int, optional
        Slices, which a checkpoint keeps to. By default as for `run`; best is what ``spark.sql.shuffle.partitions`` is.
    lateness : int, float, str or datetime.timedelta, optional
        How far behind the latest time of earlier micro-batches an event may be; by default what ``withWatermark`` has
        set on the time column, else 0.
    late : {'error', 'drop'}
        What becomes of later events.
    **options
        As for `run`.

    Returns
    -------
    DataFrame
        A streaming one, columns as those of `run`. To be written in the mode ``append``, with a checkpoint.

    Raises
    ------
    WorkloadError, DataError, OptionError, UnsupportedError
        A user's mistake, as `run`; OptionError where the session keeps no state in RocksDB.

    Examples
    --------
    >>> rows = hamlet.spark.stream(workload, spark.readStream.schema(schema).parquet("trips/"))  # doctest: +SKIP
    >>> rows.writeStream.option("checkpointLocation", "state").parquet("rows")  # doctest: +SKIP
    """
    chosen = options_of(options)
    check_pandas()
    if not isinstance(events, DataFrame) or not events.isStreaming:
        raise OptionError("hamlet.spark.stream takes a streaming DataFrame; hamlet.spark.run takes a batch")
    with translated():
        job = Job(workload, events_of(events, chosen), chosen, _partitions(partitions))
        return Continuous(job, events, lateness, late).results()


def submit_stream(
    workload: Workload,
    source: str | Sequence[str],
    output: str,
    checkpoint: str,
    *,
    master: str | None = None,
    input_format: Format | None = None,
    delimiter: str | None = None,
    bad_rows: BadRows = "error",
    output_format: Format = "parquet",
    partitions: int | None = None,
    lateness: Lateness = 0,
    late: Late = "error",
    where: str | None = None,
    trigger: str | None = None,
    available_now: bool = False,
    files_per_batch: int | None = None,
    started: Callable[[StreamingQuery], None] | None = None,
    **options: Unpack[RunOptions],
) -> dict[str, Any]:
    """Run a workload over a folder to which files are added, until it is stopped.

    Files ``output/query=<name>/part-<micro-batch>-<number>.<format>`` appear as windows close. A job that was killed
    goes on from its checkpoint, and each row is in one file once, whoever reads the folder.

    Parameters
    ----------
    workload : Workload
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
    started : callable, optional
        Called with the running query.
    master, input_format, delimiter, bad_rows, output_format, partitions, **options
        As for `submit`.

    Returns
    -------
    dict
        Of this run: ``batches``, ``events``, ``late_events`` that were dropped, and ``notes``: a sentence about bad
        rows that were.

    Raises
    ------
    WorkloadError, DataError, OptionError, OutputError, UnsupportedError, JobError
        As `submit`; DataError at a late event.
    """
    chosen = options_of(options)
    check_format(output_format)
    folder = local_output(output).resolve()
    if folder.is_dir() and any(folder.iterdir()) and not _holds_something(checkpoint):
        raise OutputError(f"{output} is not empty, and the checkpoint {checkpoint} is: rows would be there twice")
    events = opened(source, input_format, chosen, workload, where, CsvForm(delimiter, bad_rows))
    ours = SparkSession.getActiveSession() is None
    with session(master) as spark, translated():
        dropped = spark.sparkContext.accumulator({}, DroppedParam())
        frame = events.follow(spark, files_per_batch, lambda name, rows: dropped.add({name: rows}))
        partitions = default_partitions(frame) if partitions is None else partitions
        if ours:
            spark.conf.set(PROVIDER, ROCKSDB)
            spark.conf.set("spark.sql.shuffle.partitions", str(partitions))  # as many as there are slices
        job = Job(workload, events_of(frame, chosen), chosen, _partitions(partitions), ", ".join(sources_of(source)))
        if where is not None:
            job.look(where)
        plan = Continuous(job, frame, lateness, late)
        prepared(job.shipment, folder, output_format)
        writer = plan.closed().writeStream.outputMode("append").option("checkpointLocation", checkpoint)
        writer = writer.trigger(availableNow=True) if available_now else writer
        writer = writer.trigger(processingTime=trigger) if trigger is not None and not available_now else writer
        query = writer.foreachBatch(plan.writer(folder, output_format)).start()
        try:
            if started is not None:
                started(query)
            query.awaitTermination()
        finally:
            with at_the_end():
                query.stop()
    found = Dropped()
    for name, rows in sorted(dropped.value.items()):
        found = found.plus(rows, name)
    notes = [each for each in [found.sentence()] if each is not None]
    return {"batches": plan.batches, "events": plan.events, "late_events": plan.late_events, "notes": notes}


def _holds_something(folder: str) -> bool:
    path = local_path(folder)
    return path is None or (path.is_dir() and any(path.iterdir()))


def _partitions(number: int | None) -> int | None:
    if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
        raise OptionError(f"partitions is {number!r}; it must be a whole number from 1")
    return number
