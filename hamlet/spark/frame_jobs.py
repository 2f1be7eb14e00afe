"""Jobs over DataFrames: `run` over a batch, `stream` over a stream."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast

from pyspark.sql import DataFrame

from hamlet.engine.online import Late
from hamlet.engine.options import Options, RunOptions, options_of
from hamlet.errors import OptionError
from hamlet.frontend.time_column import TIME, settled
from hamlet.input.ticks import Lateness
from hamlet.planner.workload import Workload, workload_of
from hamlet.policies import Policy
from hamlet.policies.options import OnlineOptions
from hamlet.runtime.intake import for_columns
from hamlet.runtime.options import check_choice, made_of, takes
from hamlet.spark.continuous import closed, frame_of, query_frame, query_work
from hamlet.spark.counters import stats_of
from hamlet.spark.counts import as_numbers
from hamlet.spark.findings import of_stream, of_units, warnings_of
from hamlet.spark.frames import events_of
from hamlet.spark.job import Job
from hamlet.spark.layers import Done, chosen_events, counters_of, is_layered, layers, union_of
from hamlet.spark.look import Choice
from hamlet.spark.options import PRODUCTS, Products, check_partitions
from hamlet.spark.patterns import sql
from hamlet.spark.policies import policy_frame
from hamlet.spark.products import decided, made, put_together
from hamlet.spark.session import check_pandas, translated
from hamlet.spark.sliced import TimedWork
from hamlet.spark.specifications import specification_frame
from hamlet.spark.told import Findings, Telling, Told, telling
from hamlet.streams import Specification
from hamlet.streams.options import Options as StreamOptions

if TYPE_CHECKING:

    class ResultFrame(DataFrame):
        """A DataFrame of result rows; `run` says what its attributes are."""

        stats: dict[str, Any]
        warnings: tuple[str, ...]
else:
    ResultFrame = DataFrame
_LOG = logging.getLogger("hamlet")


@takes(Options, without=["trace"])
def run(
    workload: Workload,
    events: DataFrame,
    *,
    partitions: int | None = None,
    balance: bool = False,
    products: Products = "never",
    lazy: bool = False,
    where: str | None = None,
    since: Any = None,
    until: Any = None,
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
    where : str, optional
        Only events for which this condition over columns is true, as ``hamlet run --where``.
    since, until : int, str or datetime, optional
        Only events from a time on, and before another one. Of both Spark is told what it can use to read less of the
        files behind the DataFrame.
    **options
        Those of `hamlet.run`: sharing, benefit, numbers, count_type, threads, time_column, type_column, order_column,
        time_unit, timezone, null_keys.

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
    check_choice("products", products, PRODUCTS)
    check_partitions(partitions)
    check_pandas()
    chosen = for_columns(chosen, events.columns)
    began = time.perf_counter()
    with translated():
        choice, given = Choice(where, since, until), events_of(events, chosen)
        if is_layered(workload_of(workload)):
            given = chosen_events(workload, given, chosen, choice)
            done = list(layers(workload, given, chosen, partitions, balance=balance))
            results = union_of(done, workload.names)
        else:
            job = Job(workload, given, chosen, partitions)
            if not choice.is_all:
                job.look(choice)
            stats = None if lazy else stats_of(events.sparkSession.sparkContext)
            cut = decided(job, products).cut
            if balance and cut is None:
                job.measure(balance=True, semijoin=False)  # a DataFrame may give other rows when it is computed again
            rows = None
            if cut is not None:
                maps = made(job, cut, stats)
                maps = maps if lazy else maps.localCheckpoint(eager=True)
                rows = put_together(job, cut, maps, stats, held=not lazy)
            results = job.results(rows, stats=stats)
            done = [] if stats is None else [Done(job, results, stats, job.partitions if cut is None else 0)]
        if lazy:
            return cast(ResultFrame, results)
        found = cast(ResultFrame, results.localCheckpoint(eager=True))
        noted, tallies = of_units(done, workload.names)
        counters = counters_of(done)
        said = warnings_of(workload, done[0].job, noted, tallies, events=counters.get("events"))
        if chosen.count_type == "auto":
            numbers, notes = as_numbers(found, [columns for each in done for columns in each.job.columns])
            found, said = cast(ResultFrame, numbers), said + notes
    found.stats = counters | {"rows": sum(each.rows for each in tallies), "seconds": time.perf_counter() - began}
    found.warnings = tuple(said)
    for each in said:
        _LOG.warning(each)
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
        if isinstance(work, Policy):
            return _stream_policy(work, events, options)
        if isinstance(work, Specification):
            return _stream_specification(work, events, options)
        if isinstance(work, str):
            return sql(work, events, **options)
        if "slices" in options:
            options["partitions"] = options.pop("slices")
        return _stream_queries(work, events, **options)


@takes(Options, without=["trace"])
def _stream_queries(
    workload: Workload,
    events: DataFrame,
    *,
    partitions: int | None = None,
    lateness: Lateness | None = None,
    late: Late = "error",
    **options: Unpack[RunOptions],
) -> DataFrame:
    chosen = for_columns(options_of(options), events.columns)
    check_partitions(partitions)
    job = Job(workload, events_of(events, chosen), chosen, partitions)
    hearing = telling(events.sparkSession)
    rows = query_frame(job, query_work(job, events, lateness, late), hearing)
    return _with_findings(rows, hearing, partial(of_stream, workload, job))


def _stream_policy(policy: Policy, events: DataFrame, options: dict[str, Any]) -> DataFrame:
    slices, statistics = options.pop("slices", None), options.pop("statistics", None)
    check_partitions(slices)
    chosen = for_columns(made_of(OnlineOptions, options, ("slices", "statistics")), events.columns)
    return _timed(*policy_frame(policy, events_of(events, chosen), chosen, slices, statistics))


def _stream_specification(spec: Specification, events: DataFrame, options: dict[str, Any]) -> DataFrame:
    slices = options.pop("slices", None)
    check_partitions(slices)
    chosen = made_of(StreamOptions, options, ("slices",))
    columns = Options(time_column=settled(chosen.time_column or TIME, events.columns))
    work, frame = specification_frame(spec, events_of(events, columns), chosen, slices)
    for note in work.notes:
        _LOG.warning(note)
    return _timed(work, frame)


def _timed(work: TimedWork, events: DataFrame) -> DataFrame:
    hearing = telling(events.sparkSession)
    return _with_findings(frame_of(work, closed(work, events), hearing), hearing, lambda told: work.findings(told.seen))


def _with_findings(frame: DataFrame, hearing: Telling, found: Callable[[Told], list[str]]) -> DataFrame:
    """A streaming DataFrame that knows what was probably not meant."""
    vars(frame)["warnings"] = Findings(hearing, found)
    return frame


def _kind(events: object) -> str:
    """What an object is, for a message: ``pandas DataFrame``, ``list``."""
    package = type(events).__module__.partition(".")[0]
    return type(events).__name__ if package == "builtins" else f"{package} {type(events).__name__}"
