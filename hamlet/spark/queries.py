"""Jobs of trend queries: `run` and `submit` over a batch, `stream` and `submit_stream` as events come."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import StructType

from hamlet.engine.online import Late
from hamlet.engine.options import Options, RunOptions, options_of
from hamlet.engine.stages import Stages
from hamlet.engine.where import chosen_events as events_where
from hamlet.errors import OptionError, UnsupportedError, one_of
from hamlet.findings import Tally
from hamlet.input.events import EventSource, open_events
from hamlet.input.ticks import Lateness, ticks_of
from hamlet.language.schema import Clock
from hamlet.output.files import part_file
from hamlet.output.place import check_beside, folder_name
from hamlet.parallel.routing.placement import plain
from hamlet.parallel.routing.routing import MOST_CLASSES
from hamlet.planner.workload import Workload, workload_of
from hamlet.runtime.definitions import READING, ZONED
from hamlet.runtime.intake import for_columns
from hamlet.runtime.options import check_choice, takes
from hamlet.spark.batch import destination
from hamlet.spark.chained import ChainedRows, ChainedWork
from hamlet.spark.continuous import Sink, check_streaming, closed
from hamlet.spark.counters import stats_of
from hamlet.spark.counts import as_numbers
from hamlet.spark.findings import of_stream, of_units, warnings_of
from hamlet.spark.following import Prepare, Prepared, followed
from hamlet.spark.frames import Events, arrow_schema, events_of, numbered
from hamlet.spark.input import LocalFiles, local_path, opened, sources_of
from hamlet.spark.job import Job, check_types, default_partitions, looked, union_type
from hamlet.spark.layers import Done, chosen_events, counters_of, is_layered, layers, union_of
from hamlet.spark.look import Choice
from hamlet.spark.online import QueryWork
from hamlet.spark.options import (
    PRODUCTS,
    Batch,
    Products,
    Stream,
    SubmitOptions,
    SubmitStreamOptions,
    check_partitions,
    job_of,
)
from hamlet.spark.products import decided, made, put_together
from hamlet.spark.query_batch import submit_batch
from hamlet.spark.rows import Presenter, Tallied, result_batches, write_rows
from hamlet.spark.scaling import Plan, files_read
from hamlet.spark.session import check_pandas, session, translated
from hamlet.spark.sliced import Work
from hamlet.spark.slices import Batches, mapped
from hamlet.spark.tasks import Shipment
from hamlet.spark.told import Telling, Told, heard, telling, with_findings

if TYPE_CHECKING:

    class ResultFrame(DataFrame):
        """A DataFrame of result rows; `run` says what its attributes are."""

        stats: dict[str, Any]
        warnings: tuple[str, ...]
else:
    ResultFrame = DataFrame
DELAY = "spark.watermarkDelayMs"  # in the metadata of a column with a watermark
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


@takes(Options, without=["trace"])
def stream(
    workload: Workload,
    events: DataFrame,
    *,
    partitions: int | None = None,
    slices: int | None = None,
    lateness: Lateness | None = None,
    late: Late = "error",
    **options: Unpack[RunOptions],
) -> DataFrame:
    """Run a workload over a streaming DataFrame; as `hamlet.spark.stream`."""
    partitions = partitions if slices is None else slices
    chosen = for_columns(options_of(options), events.columns)
    check_partitions(partitions)
    given, hearing = events_of(events, chosen), telling(events.sparkSession)
    if is_layered(workload_of(workload)):
        chained = _chained(workload, given, chosen, events, lateness, late)
        for note in chained.notes:
            _LOG.warning(note)
        shown = ChainedRows(chained.shipment)
        type = union_type(workload, shown.of_queries, chained.schema.clock, chosen.count_type)
        rows = _frame(chained, given.select(chained.events.names), chained.shipment, type, ChainedRows, hearing)
        return with_findings(rows, hearing, lambda told: chained.findings(told.seen))
    job = Job(workload, given, chosen, partitions)
    work = _work(job, events, lateness, late)
    rows = _frame(work, job.everything(), job.shipment, job.result_type(), Presenter, hearing)
    return with_findings(rows, hearing, partial(of_stream, workload, job))


def submit(
    workload: Workload, source: str | Sequence[str], output: str, **options: Unpack[SubmitOptions]
) -> dict[str, Any]:
    """Run a workload over files; as `hamlet.spark.submit`."""
    began = time.perf_counter()
    chosen = job_of(Batch, Options, options)
    sources = sources_of(source)
    paths = [str(path) for path in map(local_path, sources) if path is not None]
    place = destination(output, chosen, paths)
    for name, beside in (("--report", chosen.report), ("--trace", chosen.trace)):
        check_beside(beside, name, place[0])
    traced = None
    if chosen.trace is not None:
        traced = destination(chosen.trace, chosen, paths)
    about = None
    if chosen.report is not None:
        from hamlet.spark.report import JobReport  # brings in jinja2, which nothing else needs

        about = JobReport(workload, sources, chosen)
    events = opened(sources, workload, chosen)
    with session(chosen.master) as spark, translated():
        stages = Stages(())
        stages.seconds["start"] = time.perf_counter() - began
        read = events.load(spark)
        chosen = replace(chosen, run=for_columns(chosen.run, read.events.names))
        found = submit_batch(workload, ", ".join(sources), read, chosen, place, traced, about, stages, began)
    for each in found["warnings"]:
        _LOG.warning(each)
    return found


def submit_stream(
    workload: Workload,
    source: str | Sequence[str],
    output: str,
    checkpoint: str,
    **options: Unpack[SubmitStreamOptions],
) -> dict[str, Any]:
    """Run a workload over a folder to which files are added; as `hamlet.spark.submit_stream`."""
    chosen = job_of(Stream, Options, options)
    sources = sources_of(source)
    name = ", ".join(sources)

    def prepared(checkpoint: str) -> Prepare:
        events = opened(sources, workload, chosen)

        def prepare(spark: SparkSession, cells: int, telling: Telling) -> Prepared:
            def arrived(skip: Sequence[str]) -> tuple[DataFrame, Events, Options]:
                frame = events.follow(spark, chosen.files_per_batch, telling, skip)
                run = for_columns(chosen.run, frame.columns)
                return frame, events_of(frame, run), run

            if is_layered(workload_of(workload)):

                def one(skip: Sequence[str]) -> tuple[ChainedWork, DataFrame]:
                    frame, given, run = arrived(skip)
                    found = _chained(workload, given, run, frame, chosen.lateness, chosen.late, name)
                    if chosen.where is not None:
                        given, _ = looked(found.shipment, given, chosen.choice, name)
                    return found, given.select(found.events.names)

                chained, _ = one(())
                sink = QuerySink(chained.shipment, chosen.output_format, telling, ChainedRows)
                return Prepared(chained, sink, lambda plan: one(plan.read), lambda told: chained.findings(told.seen))

            def made(skip: Sequence[str]) -> tuple[Job, QueryWork]:
                frame, given, run = arrived(skip)
                job = Job(workload, given, run, cells, name)
                if chosen.where is not None:
                    job.look(chosen.choice)
                return job, _work(job, frame, chosen.lateness, chosen.late)

            def running(plan: Plan) -> tuple[QueryWork, DataFrame]:
                job, work = made(plan.read)
                return work, job.everything()

            job, work = made(())
            sink = QuerySink(job.shipment, chosen.output_format, telling)
            known = isinstance(events, LocalFiles) and chosen.late == "error"  # then no event was left out
            again = partial(_read_again, checkpoint, chosen) if known else None
            return Prepared(work, sink, running, lambda told: of_stream(workload, job, told, again))

        return prepare

    return followed(output, checkpoint, chosen, chosen.partitions, default_partitions, prepared)


def _lateness_of(frame: DataFrame, clock: Clock, lateness: Lateness | None) -> int:
    """The lateness in ticks; by default that of the watermark on the time column, 0 where it has none."""
    if lateness is None:
        delay = frame.schema[clock.column].metadata.get(DELAY)
        lateness = 0 if delay is None else f"{delay} ms"
    return ticks_of(lateness, clock)


def _work(job: Job, frame: DataFrame, lateness: Lateness | None, late: str) -> QueryWork:
    """Queries over a streaming DataFrame.

    Parameters
    ----------
    job : Job
    frame : DataFrame
        The job's events.
    lateness : int, float, str, datetime.timedelta or None
        As `hamlet.Engine`; None for that of the watermark on the time column, 0 where it has none.
    late : {'error', 'drop'}
    """
    check_streaming(frame)
    check_choice("late", late)
    if len(job.routes) > MOST_CLASSES:
        raise UnsupportedError(f"a continuous job takes at most {MOST_CLASSES} classes of partition attributes")
    _refuse_endless(job.shipment.workload)
    ticks = _lateness_of(frame, job.schema.clock, lateness)
    return QueryWork(job.shipment, job.routes, plain(job.compiled, job.routes, job.partitions), ticks, late)


def _chained(
    workload: Workload,
    events: Events,
    options: Options,
    frame: DataFrame,
    lateness: Lateness | None,
    late: str,
    source: str = "the DataFrame",
) -> ChainedWork:
    """Queries about the rows of others over a streaming DataFrame; as `_work`."""
    check_streaming(frame)
    check_choice("late", late)
    text = workload_of(workload).analysis.text
    shipment = Shipment(text.text, text.source, options, events.schema)
    schema = shipment.schema(source)
    workload.check(schema)
    _refuse_endless(shipment.workload)
    work = ChainedWork(shipment, _lateness_of(frame, schema.clock, lateness), late)
    check_types(events, work.events.names, source)
    return work


def _refuse_endless(workload: Workload) -> None:
    endless = [each.name for each in workload.queries if each.within is None]
    if endless:
        raise UnsupportedError(
            f"{one_of(endless, 'and')}: WITHIN ALL has rows when the stream ends, and a continuous job has no end\n"
            "hint: give windows a length, as in WITHIN 1 d, or run a batch job over what has come so far"
        )


Presented = type[Presenter] | type[ChainedRows]  # makes result rows of what slices decide


def _frame(
    work: Work, events: DataFrame, shipment: Shipment, schema: StructType, presented: Presented, telling: Telling
) -> DataFrame:
    """Result rows of queries; columns as `hamlet.spark.run`."""
    own = numbered(schema)
    arrow, names = arrow_schema(schema), own.names

    def merge(batches: Batches) -> Batches:
        tallied = Tallied(shipment.workload)
        rows = (rows for _, rows in presented(shipment).decided(heard(telling, batches)))
        yield from result_batches(tallied.passing(rows), shipment, arrow, names)
        telling.add(Told(tallies=tallied.found))

    spread = closed(work, events).repartition(work.slices, col("bucket"))
    return mapped(spread, merge, own).toDF(*schema.names)


@dataclass(frozen=True)
class QuerySink(Sink):
    """Files of queries."""

    shipment: Shipment
    output_format: str
    telling: Telling
    presented: Presented = Presenter

    @property
    def folders(self) -> list[str]:  # type: ignore[override]
        """One for each query."""
        return [folder_name(name) for name in self.shipment.workload.names]

    def prepare(self, folder: Path) -> None:
        """Make the folders, each with an empty file that says what the columns are."""
        super().prepare(folder)
        presenter, shipment, form = self.presented(self.shipment), self.shipment, self.output_format
        for place, name in enumerate(self.folders):
            if not any((folder / name).iterdir()):
                path, columns = folder / name / f"part-columns.{form}", presenter.columns(place)
                with part_file(path, form, columns, shipment.schema().clock, shipment.options.count_type):
                    pass

    def spread(self, frame: DataFrame) -> DataFrame:
        """Partial rows of a group meet."""
        return frame.repartition(frame.sparkSession.sparkContext.defaultParallelism, col("bucket"))

    def write(self, beside: str, part: str, batches: Batches) -> int:
        """Merge partial rows, and write them."""
        rows, found = 0, self.presented(self.shipment).decided(batches)
        for batch in write_rows(self.shipment, beside, self.output_format, part, found):
            query, count, _, most = (column[0].as_py() for column in batch.columns)
            self.telling.add(Told(tallies={query: Tally(count, int(most, 16))}))
            rows += count
        return rows


def _read_again(checkpoint: str, chosen: Stream) -> EventSource:
    """The events of the files that a continuous job has read."""
    options = {name: getattr(chosen, name) for name in READING}
    options |= {name: getattr(chosen.run, name) for name in ZONED}
    return events_where(open_events(files_read(checkpoint), **options), None, None, chosen.where)


def _kind(events: object) -> str:
    """What an object is, for a message: ``pandas DataFrame``, ``list``."""
    package = type(events).__module__.partition(".")[0]
    return type(events).__name__ if package == "builtins" else f"{package} {type(events).__name__}"
