"""Row patterns in SQL on Spark: expressions and what stands around a clause are Spark SQL's, matching is the tasks'.

The rows of a clause's table are exchanged by its partition columns, with columns of its expressions
(`hamlet.spark.pattern_columns`); tasks match them (`hamlet.spark.pattern_tasks`), and what they give, with measures
over it, is a view of the outer statement. A streaming table is followed by matchers, whose host is DuckDB
(`hamlet.spark.pattern_stream`): Spark SQL has no window functions over streams.
"""

from __future__ import annotations

import contextlib
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException, UnsupportedOperationException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import count, lit, monotonically_increasing_id
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from hamlet.errors import DataError, OptionError, Span, UnsupportedError, WorkloadError
from hamlet.findings import of_names
from hamlet.frontend.reports import Reports
from hamlet.input.file_form import FileForm, without_drop
from hamlet.input.files import Leaf, leaves, open_paths
from hamlet.input.folder import Folder
from hamlet.input.folder import lacking as absent_columns
from hamlet.input.formats import format_of
from hamlet.input.ordering import SortKey
from hamlet.input.ticks import Lateness
from hamlet.output.place import folder_name, staged
from hamlet.patterns.clause.outer import Correlated, Outer, with_tables
from hamlet.patterns.clause.statement import Rewriting, Statement
from hamlet.patterns.clause.tree import Clause
from hamlet.patterns.match.conditions import Failed
from hamlet.patterns.match.evaluate import Meaning, distinct_names, read_clause
from hamlet.patterns.match.host import Host
from hamlet.patterns.match.ordered import INPUT
from hamlet.patterns.match.run import (
    StatementRun,
    columns_read,
    named_tables,
    parsed,
    quoting_of,
    translator,
)
from hamlet.patterns.options import MAX_STEPS
from hamlet.runtime.expected import NO_EVENTS
from hamlet.runtime.options import check_choice, made_of
from hamlet.spark.batch import destination
from hamlet.spark.checkpoint import FilesRead, check_parts, is_begun, kept_columns
from hamlet.spark.continuous import Counts, Sink, Written, closed, frame_of
from hamlet.spark.events import Reading
from hamlet.spark.following import Watch, awaited, followed_folder, keeping_state, places, saying
from hamlet.spark.frames import packed, plain_in_spark, quoted
from hamlet.spark.input import arriving, as_glob, by_tasks, first_file, local_path, sources_of
from hamlet.spark.options import Follow, FollowOptions, Once, OnceOptions
from hamlet.spark.pattern_columns import Columns, HostedClause, Refusal, SparkAggregates, said, spoken_of
from hamlet.spark.pattern_stream import SOURCE as _SOURCE
from hamlet.spark.pattern_stream import LoneClause, PatternWork
from hamlet.spark.pattern_tasks import ClauseTask
from hamlet.spark.session import check_pandas, session, translated, watched
from hamlet.spark.slices import mapped
from hamlet.spark.told import Telling, telling, with_findings

_ROWS = "hamlet_rows"
_QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_naming = RLock()  # views of a session have names: one text at a time


def sql(
    text: str,
    tables: Mapping[str, DataFrame] | DataFrame | None = None,
    spark: SparkSession | None = None,
    *,
    dialect: str = "spark",
    source: str = "<sql>",
    max_steps: int = MAX_STEPS,
    slices: int | None = None,
    lateness: Lateness = 0,
    late: str = "error",
) -> DataFrame:
    """The rows of a statement with row patterns (``MATCH_RECOGNIZE``); views may be created before it.

    Parameters
    ----------
    text : str
        Spark SQL, which evaluates the expressions of MEASURES and DEFINE, too; over streaming tables DuckDB does.
    tables : mapping of str to DataFrame
        Tables by name; other names are tables and views of the session.
    spark : SparkSession, optional
        By default that of the tables, else the active one.
    dialect : str
        What the text is written in; see `hamlet.sql`.
    source : str
        The name of the text in messages.
    max_steps : int
        Most steps of one start where conditions read the labels of the match so far.
    slices, lateness, late
        Of streaming tables, as for `hamlet.spark.stream`; ticks of the lateness are those of the leading ORDER BY.

    Returns
    -------
    DataFrame
        A streaming one where a table is: each match once no later row can change it.

    Raises
    ------
    WorkloadError
        With the mistakes in the text, each at its place, before any job starts.
    UnsupportedError
        If a streaming table is read by what needs all rows.
    """
    check_pandas()
    given = named_tables(parsed(text, dialect, source), tables)
    for name, frame in given.items():
        if not isinstance(frame, DataFrame):
            raise OptionError(f"table {name!r} is {type(frame).__name__}; hamlet.spark.sql takes DataFrames of Spark")
    sessions = [spark, *(frame.sparkSession for frame in given.values()), SparkSession.getActiveSession()]
    chosen = next((each for each in sessions if each is not None), None)
    if chosen is None:
        raise OptionError("there is no Spark session; give one: hamlet.spark.sql(text, tables, spark=session)")
    check_choice("late", late)
    with translated():
        hearing = telling(chosen)
        frames = _Text(text, dialect, source, max_steps, chosen, (slices, lateness, late, hearing)).frames(given)
    if len(frames) != 1:
        raise OptionError(
            f"the text has {len(frames)} queries, and hamlet.spark.sql gives one DataFrame; call it for each query"
        )
    (frame,) = frames
    return with_findings(frame, hearing, lambda told: of_names((), told.seen)) if frame.isStreaming else frame


stream = sql  # a streaming table makes the rows a stream


def submit(
    text: str,
    inputs: Mapping[str, Sequence[str]] | Sequence[str],
    output: str,
    *,
    source: str = "<sql>",
    dialect: str = "spark",
    **options: Unpack[OnceOptions],
) -> dict[str, Any]:
    """Run a text over files as a Spark job that writes ``output/query=<name>/part-<number>.<format>``.

    Returns
    -------
    dict
        ``rows``, and ``notes`` about columns that files lack.
    """
    chosen = made_of(Once, options, ("source", "dialect"))
    if chosen.form.drops:
        raise OptionError("bad_rows='drop' (--bad-rows drop) is not heard here: row patterns take files whole")
    script = parsed(text, dialect, source)
    paths = {name: sources_of(group) for name, group in named_tables(script, inputs).items()}
    place = destination(output, chosen, [path for group in paths.values() for path in group])
    rows = 0
    with session(chosen.master) as spark, translated():
        notes: list[str] = []
        with _zones_as_written(spark):
            tables = {
                name: _read(spark, group, chosen.input_format, chosen.form, columns_read(script), notes)
                for name, group in paths.items()
            }
        if all(each.isEmpty() for each in tables.values()):
            notes.append(NO_EVENTS)
        statements = _Text(text, dialect, source, MAX_STEPS, spark, shares=True)
        frames = statements.frames(tables)
        with staged(*place) as fresh, watched(spark.sparkContext, "matching", chosen.progress):
            for number, frame in enumerate(frames, 1):
                rows += StatementSink(number, chosen.output_format).written(fresh, "", frame).rows
        statements.forget()
    return {"rows": rows, "notes": notes}


class PatternStreamOptions(FollowOptions, total=False):
    """The options of `submit_stream`, by name."""

    dialect: str
    lateness: Lateness
    late: str


@dataclass(frozen=True, kw_only=True)
class PatternStream(Follow):
    """How `submit_stream` runs."""

    dialect: str = "spark"
    lateness: Lateness = 0
    late: str = "error"


def submit_stream(
    text: str,
    inputs: Mapping[str, Sequence[str]] | Sequence[str],
    output: str,
    checkpoint: str,
    *,
    source: str = "<sql>",
    **options: Unpack[PatternStreamOptions],
) -> dict[str, Any]:
    """Run a text over folders and what is added to them, until the job is stopped.

    Files ``output/query=<name>/part-<micro-batch>-<number>.<format>`` appear as matches can no longer change.

    Parameters
    ----------
    text : str
    inputs : mapping of str to sequence of str
        Tables by name: folders, the first file of which says what the columns are.
    output, checkpoint : str
        Directories.
    dialect : str
    slices : int, optional
        By default the session's parallelism; one where a clause has no PARTITION BY.
    lateness, late
        As for `hamlet.spark.stream`.
    output_format : {'parquet', 'csv', 'json'}
    input_format, delimiter, bad_rows, missing_columns, master, trigger, available_now, files_per_batch, verbose, conf,
    log_level
        As for `hamlet.spark.submit_stream`.

    Returns
    -------
    dict
        ``batches``, ``events``, ``late_events``, ``rows``, ``notes`` and ``warnings`` of this run; each query counts
        what it reads.
    """
    chosen = made_of(PatternStream, options, ("source",))
    check_choice("late", chosen.late)
    if chosen.adaptive:
        raise UnsupportedError("the partitions of row patterns stay in their slices; leave adaptive (--adaptive) out")
    script = parsed(text, chosen.dialect, source)
    folders = {name: sources_of(group) for name, group in named_tables(script, inputs).items()}
    for name, paths in folders.items():
        if len(paths) != 1:
            raise OptionError(f"--stream follows one folder for table {name}; give one")
    with places(output, checkpoint) as folder:
        new = not is_begun(Path(checkpoint))
        watches: list[Watch] = []
        written: list[Written] = []
        with keeping_state(chosen) as (spark, ours):
            if ours:
                count = chosen.slices or spark.sparkContext.defaultParallelism
                spark.conf.set("spark.sql.shuffle.partitions", str(count))
            hearing = telling(spark)
            streaming = chosen.slices, chosen.lateness, chosen.late, hearing
            tables = {
                name: _following(spark, followed_folder(paths[0]), checkpoint, name, chosen, hearing)
                for name, paths in folders.items()
            }
            frames = _Text(text, chosen.dialect, source, MAX_STEPS, spark, streaming).frames(tables)
            try:
                for number, frame in enumerate(frames, 1):
                    own = Path(checkpoint, f"q{number}")
                    check_parts(own)
                    files = FilesRead(str(own), checkpoint)
                    files.check()
                    sink = StatementSink(number, chosen.output_format)
                    sink.prepare(folder)
                    written.append(Written(sink, folder))
                    query = chosen.writer(frame, str(own)).foreachBatch(written[-1].take).start()
                    watches.append(Watch(query, files, chosen.verbose))
            except BaseException:
                for each in watches:
                    each.query.stop()
                raise
            with saying(chosen, (), hearing, lambda told: of_names((), told.seen), new=new) as said_at_end:
                awaited(watches, chosen)
    return said_at_end | {
        "batches": max((each.batches for each in written), default=0),
        "events": sum(each.events for each in watches),
        "late_events": sum(each.late_events for each in watches),
        "rows": sum(each.rows for each in written),
    }


def _following(
    spark: SparkSession, folder: Path, checkpoint: str, name: str, chosen: PatternStream, telling: Telling
) -> DataFrame:
    """The rows of a folder as files come, in the columns of its first file."""
    reading = Reading(SortKey(""), "", chosen.input_format, chosen.form)

    def columns() -> pa.Schema:
        schema = reading.open(first_file(folder)).schema
        return pa.schema([pa.field(each.name, plain_in_spark(each.type)) for each in schema])

    known = kept_columns(checkpoint, columns, name)
    return arriving(spark, folder, chosen.files_per_batch, reading, known, telling).toDF(*known.names)


@dataclass(frozen=True)
class StatementSink(Sink):
    """Files of a query of a text; Spark writes them, which has types of its own."""

    number: int
    output_format: str

    @property
    def folders(self) -> list[str]:  # type: ignore[override]
        """The one."""
        return [folder_name(f"q{self.number}")]

    def written(self, folder: Path, head: str, frame: DataFrame) -> Counts:
        """Write rows as files that are named as those of other jobs."""
        (name,) = self.folders
        place, seen = folder / name, Observation()
        writer = frame.observe(seen, count(lit(1)).alias("rows")).write.format(self.output_format)
        writer.options(header=True, ignoreNullFields=False).save(f"file://{place}", mode="append")
        for number, path in enumerate(sorted(place.glob("part-*"))):
            if head and not path.stat().st_size:
                path.unlink()
            else:
                path.rename(place / f"part-{head}{number:05}.{self.output_format}")
        for path in [*place.glob(".*.crc"), place / "_SUCCESS"]:
            path.unlink(missing_ok=True)
        return Counts(rows=int(seen.get["rows"]))


@contextlib.contextmanager
def _zones_as_written(spark: SparkSession) -> Iterator[None]:
    """Times of text that name no zone have none, as in process; Spark would take them for those of the session's."""
    name = "spark.sql.timestampType"
    before = spark.conf.get(name)
    spark.conf.set(name, "TIMESTAMP_NTZ")
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def _read(
    spark: SparkSession,
    paths: Sequence[str],
    input_format: str | None,
    form: FileForm,
    reads: Callable[[str], bool],
    notes: list[str],
) -> DataFrame:
    """Files of Parquet as Spark reads them, what it would read otherwise than in process by tasks.

    What files of this machine lack that others have and somebody reads is an error, or a note that is added.
    """
    places = [local_path(each) for each in paths]
    known = [place for place in places if place is not None]
    if len(known) < len(places):
        formats = {format_of(Path(path), input_format) for path in paths}
        if len(formats) > 1:
            raise DataError(f"{paths[0]} and other files of one table have several formats; give files of one format")
        mark = form.delimiter or ("\t" if paths[0].endswith(".tsv") else ",")
        reader = spark.read.format(formats.pop()).options(header=True, inferSchema=True, escape='"', sep=mark)
        return reader.load([*paths])
    try:
        opened = open_paths(known, SortKey(""), "", input_format, form)
    except DataError as error:
        raise DataError(without_drop(str(error))) from None
    files = list(leaves(opened))
    if isinstance(opened, Folder):
        opened.look(list(filter(reads, opened.schema.names)))
        notes += absent_columns(opened)
    if _sparks(files):
        return spark.read.parquet(*(as_glob(each.path) for each in files))
    fields = [pa.field(each.name, plain_in_spark(each.type)) for each in opened.schema]
    rows = by_tasks(spark, files, Reading(SortKey(""), "", input_format, form), fields)
    return rows.toDF(*(each.name for each in fields))


def _sparks(files: Sequence[Leaf]) -> bool:
    """Whether files are Parquet that Spark reads by itself, and as it is: alike, and without nanoseconds."""
    if not all(each.is_parquet and each.whole and each.folders is None for each in files):
        return False
    schemas = [pq.read_schema(each.path) for each in files]
    kinds = [each.type for each in schemas[0]]
    return all(each.equals(schemas[0]) for each in schemas) and not any(
        (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns" for kind in kinds
    )


class _Text:
    """A text in a session: its statements one after the other, each with its clauses, inner ones first."""

    def __init__(
        self,
        text: str,
        dialect: str,
        source: str,
        max_steps: int,
        spark: SparkSession,
        streaming: tuple[Any, ...] = (),
        shares: bool = False,
    ) -> None:
        self._script = parsed(text, dialect, source)
        self._streaming = streaming
        self._spark, self._max_steps = spark, max_steps
        self._zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
        self._reports = self._script.reports()
        orders = (self._order(clause) for each in self._script.statements for clause in each.clauses)
        self._shared = {order for order, times in Counter(orders).items() if times > 1} if shares else set()
        self._kept: dict[tuple[str, ...], list[tuple[DataFrame, str]]] = defaultdict(list)

    def _order(self, clause: Clause) -> tuple[str, ...]:
        """The table of a clause and how it is partitioned and ordered, as written."""
        text = self._script.text
        ordered = (f"{each.expression.text} {each.descending} {each.nulls_first}" for each in clause.order)
        return text[clause.source.start : clause.source.end].strip(), *(e.text for e in clause.partition), "", *ordered

    def forget(self) -> None:
        """Let go of rows that were kept for several clauses."""
        for group in self._kept.values():
            for _, kept in group:
                self._spark.catalog.dropTempView(kept)  # and its rows

    def frames(self, tables: Mapping[str, DataFrame]) -> list[DataFrame]:
        """The rows of each query of the text, computed when they are asked for.

        Raises
        ------
        WorkloadError
            With all mistakes.
        """
        found = []
        with _naming, _views(self._spark) as views:
            for name, frame in tables.items():
                views.name(name, frame)
            for number, statement in enumerate(self._script.statements):
                with contextlib.suppress(Failed):
                    created, span = self._kind_of(statement)
                    frame = self._frame(number, statement, span, views)
                    if created is None:
                        found.append(frame)
                    else:
                        views.name(created, frame)
        if self._reports.errors:
            raise WorkloadError(self._reports.errors)
        return found

    def _kind_of(self, statement: Statement) -> tuple[str | None, Span]:
        """The view that a statement creates, None for a query, and where its query stands."""
        tokens = statement.tokens
        if tokens[0].is_word(*_QUERIES) or tokens[0].text == "(":
            return None, statement.span
        words = [each.text.upper() if each.kind == "word" else each.text for each in tokens[:8]]
        if words[0] == "CREATE" and "VIEW" in words:
            place = words.index("VIEW") + 1
            if words[place + 1 : place + 2] == ["AS"] and len(tokens) > place + 2:
                return tokens[place].text, tokens[place + 2].span.to(tokens[-1].span)
        self._reports.error(
            "on Spark a statement with row patterns is a query or creates a view",
            tokens[0].span,
            "SELECT ..., or CREATE VIEW name AS SELECT ...",
        )
        raise Failed

    def _frame(self, number: int, statement: Statement, span: Span, views: _Views) -> DataFrame:
        """The rows of a query, in which clauses become views."""
        rewriting = Rewriting(self._script.text)
        names: dict[int, str] = {}

        def settle(clause: Clause) -> None:
            place = statement.clauses.index(clause)
            if place in names:
                return
            text = with_tables(
                statement, rewriting, clause.source.start, f"SELECT * FROM {rewriting.render(clause.source)}"
            )
            before = list(names.values())
            names[place] = f"hamlet_match_{uuid.uuid4().hex}"
            frame, outer = self._table_of(statement, rewriting, clause, text, settle)
            if frame.isStreaming and any(each in text for each in before):
                raise UnsupportedError(
                    "a continuous job has no MATCH_RECOGNIZE over the rows of another one: what that gives late would "
                    "be late\nhint: write the rows of the inner one, and let a second job follow them"
                )
            if frame.isStreaming and outer is not None:
                raise UnsupportedError(
                    f"{self._script.source}: {self._reports.place(clause.source)}: a continuous job has no "
                    "MATCH_RECOGNIZE over a table that reads the rows around it: later ones may need all rows again"
                    "\nhint: partition by what is compared with them, and join the rows that the clause gives"
                )
            rows = self._matched(frame, number, place, clause, views, outer)
            views.name(names[place], rows)
            name = names[place] if outer is None else outer.replacement(names[place], rows.columns)
            rewriting.replace(clause, name)

        for each in statement.clauses:
            settle(each)
        text = rewriting.render(span)
        try:
            return self._spark.sql(translator(self._script.dialect, "spark")(text))
        except Refusal as error:
            if "Non-deterministic lateral" in said(error):  # what numbers rows as they come; the rows may stand there
                for name in names.values():
                    views.name(name, self._spark.table(name).localCheckpoint(eager=False))
        return self._query(text, span, rewriting)  # or what is wrong with it, at its place

    def _table_of(
        self,
        statement: Statement,
        rewriting: Rewriting,
        clause: Clause,
        text: str,
        settle: Callable[[Clause], None],
    ) -> tuple[DataFrame, Correlated | None]:
        """The rows of a clause's table, of which a query is given, for all rows around it that it reads."""
        translate = translator(self._script.dialect, "spark")
        frame = self._analysed(translate(text))
        if frame is not None:
            return frame, None
        quoting = quoting_of(self._script.dialect)
        outer = Outer(statement, rewriting, clause, translate, self._columns, quoting, quoted, packed)
        for each in outer.reads(statement.clauses):
            settle(each)
        found = outer.correlated()
        frame = None if found is None else self._analysed(found.query)
        if frame is not None:
            return frame, found
        refused = outer.refused()
        if refused is not None:
            self._reports.error(refused, clause.source, "put the clause behind WITH")
            raise Failed
        return self._query(text, clause.source, None), None

    def _analysed(self, query: str) -> DataFrame | None:
        """The rows of a query; None for one that Spark refuses."""
        with contextlib.suppress(*Refusal):
            return self._spark.sql(query)
        return None

    def _columns(self, query: str) -> list[str] | None:
        """The columns of a query; None for one that Spark refuses."""
        frame = self._analysed(query)
        return None if frame is None else frame.columns

    def _query(self, text: str, span: Span, rewriting: Rewriting | None) -> DataFrame:
        """A query of Spark SQL; a mistake is reported at its place."""
        spoken = translator(self._script.dialect, "spark")(text)
        try:
            frame = self._spark.sql(spoken)
        except Refusal as error:
            message = said(error)
            place = spoken_of(message, self._script.text, span)
            contexts = error.getQueryContext() if isinstance(error, PySparkException) else None
            if place is None and rewriting is not None and spoken == text and contexts and contexts[0].startIndex() > 0:
                start = rewriting.origin(span, contexts[0].startIndex())
                place = Span(start, start + 1)
            self._reports.error(message, place or span)
            raise Failed from None
        return frame

    def _matched(
        self, frame: DataFrame, number: int, place: int, clause: Clause, views: _Views, outer: Correlated | None
    ) -> DataFrame:
        """The rows of a clause over those of its table."""
        frame = frame.toDF(*distinct_names(frame.columns))
        if frame.isStreaming:
            return self._followed(frame, number, place, clause)
        script, statement = self._script, self._script.statements[number]
        dialect = script.dialect
        aggregates, translate = SparkAggregates(self._spark, dialect), translator(dialect, "spark")
        meaning = read_clause(
            self._reports, clause, statement.tokens, aggregates, frame.columns, translate, quoting_of(dialect)
        )
        if outer is not None:
            meaning.partition[:0] = outer.partition(clause, quoted)
        view, given = (f"hamlet_{each}_{uuid.uuid4().hex}" for each in ("rows", "given"))
        source = frame
        if INPUT not in frame.columns:  # Spark joins with no subquery in which rows are numbered as they come
            frame = frame.withColumn(INPUT, monotonically_increasing_id() if outer is None else lit(0))
        views.name(view, frame)
        columns = Columns(self._spark, view, frame.schema, meaning, self._reports)
        order = self._order(clause)
        if order in self._shared:
            columns.check_order()
            kept = next((kept for known, kept in self._kept[order] if known.sameSemantics(source)), None)
            if kept is None:
                kept = f"{view}_kept"
                columns.in_order().persist().createOrReplaceTempView(kept)
                self._kept[order].append((source, kept))
            columns.read_from(kept)
        host = HostedClause(self._spark, meaning, columns, self._reports)
        rows = host.prepare()
        layout, asked = host.layout, None
        if meaning.reads_labels and layout.native is None:
            read = frame.select([quoted(each) for each in columns.names])
            asked, _ = self._in_duckdb(to_arrow_schema(read.schema, timezone=self._zone), number, place)
        types = host.output_schema(rows.schema)
        task = ClauseTask(
            script.text,
            script.source,
            meaning,
            asked,
            tuple(columns.names),
            layout,
            self._max_steps,
            self._zone,
            to_arrow_schema(types, timezone=self._zone),
        )
        views.name(given, mapped(rows, task, types))
        return host.rows(given)

    def _in_duckdb(self, schema: pa.Schema, number: int, place: int) -> tuple[Meaning, pa.Schema]:
        """A clause as DuckDB reads it, and the columns of its rows.

        Raises
        ------
        Failed
            If an expression is wrong, which has been reported.
        """
        host = Host({_SOURCE: schema.empty_table()}, threads=1, timezone=self._zone)
        statement = self._script.statements[number]
        runner = StatementRun(self._script, statement, host, self._reports, _ROWS, self._max_steps)
        clause, rows = statement.clauses[place], f"SELECT * FROM {_SOURCE}"
        runner.evaluate(clause, rows, _ROWS)
        return runner.read(clause, rows), host.arrow(f"SELECT * FROM {_ROWS}").schema

    def _followed(self, frame: DataFrame, number: int, place: int, clause: Clause) -> DataFrame:
        """The rows of a clause over a streaming table."""
        schema = to_arrow_schema(frame.schema, timezone=self._zone)
        meaning, rows = self._in_duckdb(schema, number, place)
        rows = _schema_of(rows, self._reports, clause)
        if not meaning.order:
            raise UnsupportedError("a continuous job needs ORDER BY: its leading column is the time of the rows")
        text = f"SELECT * FROM {_SOURCE} {self._script.text[clause.span.start : clause.span.end]}"
        keys = tuple(each.text for each in meaning.partition)
        alone = LoneClause(text, self._script.dialect, self._max_steps, meaning.order[0].text, keys)
        slices, lateness, late, telling = self._streaming
        count = slices or self._spark.sparkContext.defaultParallelism
        work = PatternWork(alone, schema, rows, count, lateness, late, self._zone)
        return frame_of(work, closed(work, frame), telling)


def _schema_of(schema: pa.Schema, reports: Reports, clause: Clause) -> pa.Schema:
    """The types of a clause's rows as Spark has them; what it lacks is reported."""
    fields = []
    for each in schema:
        fields.append(pa.field(each.name, plain_in_spark(each.type)))
        if not _is_known(fields[-1]):
            measure = next((one for one in clause.measures if one.name == each.name), None)
            reports.error(
                f"column {each.name} is of a type that Spark lacks ({each.type})",
                clause.span if measure is None else measure.span,
                "cast it: CAST(... AS STRING)",
            )
    if reports.errors:
        raise Failed
    return pa.schema(fields)


def _is_known(field: pa.Field) -> bool:
    """Whether Spark takes the type of a column from its tasks."""
    if pa.types.is_time(field.type):
        return False
    try:
        from_arrow_schema(pa.schema([field]))
    except UnsupportedOperationException:
        return False
    return True


class _Views:
    """Temporary views of a session that are there for a while; those that had the names come back."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._former: dict[str, DataFrame | None] = {}
        java: Any = spark
        self._catalog = java._jsparkSession.sessionState().catalog()

    def name(self, name: str, frame: DataFrame) -> None:
        """A frame is known by a name."""
        if not re.fullmatch(r"\w+", name):
            raise OptionError(f"{name!r} is no name of a table; use letters, digits and _")
        folded = name.lower()
        if folded not in self._former:
            there = self._catalog.getTempView(folded).isDefined()
            self._former[folded] = self._spark.table(folded) if there else None
        frame.createOrReplaceTempView(name)

    def restore(self) -> None:
        """As before."""
        for name, frame in self._former.items():
            if frame is None:
                self._spark.catalog.dropTempView(name)
            else:
                frame.createOrReplaceTempView(name)


@contextlib.contextmanager
def _views(spark: SparkSession) -> Iterator[_Views]:
    views = _Views(spark)
    try:
        yield views
    finally:
        views.restore()
