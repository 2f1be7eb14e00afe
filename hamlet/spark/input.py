"""The events of ``hamlet submit``: files that this machine sees, or what Spark finds behind a URL.

What a local file holds is found out as `hamlet.run` does it, before Spark starts: a mistake costs no JVM, and both give
the same rows. Parquet is then read by Spark; CSV and JSON by the readers of `hamlet.input.files` inside tasks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    DataType,
    DayTimeIntervalType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from hamlet.engine.where import Filter
from hamlet.errors import DataError, OptionError, UnsupportedError, one_of
from hamlet.input.durations import with_durations
from hamlet.input.files import Leaf, event_files, key_of, leaves, open_paths
from hamlet.input.folder import Folder, lacking
from hamlet.input.formats import format_of
from hamlet.input.input_schema import plain_schema, schema_of, unreadable_column
from hamlet.input.ordering import SortKey
from hamlet.input.period import leave_out_period
from hamlet.input.row_groups import RowGroups
from hamlet.input.timed import dropped_by
from hamlet.input.widening import EXACT_SECONDS, FRACTION, is_readable, is_text
from hamlet.language.schema import Schema
from hamlet.planner.skipping import BY_WHERE, OF_NO_USE, Needs
from hamlet.planner.workload import Workload, workload_of
from hamlet.runtime.intake import for_columns
from hamlet.spark.events import Reading, read_arrivals, read_files
from hamlet.spark.frames import Events, arrow_schema, events_of, plain_in_spark
from hamlet.spark.layers import is_layered
from hamlet.spark.look import Choice
from hamlet.spark.options import Follow, QueryJob
from hamlet.spark.parts import Part, parts_of, row_groups
from hamlet.spark.slices import mapped
from hamlet.spark.told import Telling, left_out

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters at least: C:\ is a drive
_BINARY_FILE = "path string, modificationTime timestamp, length long, content binary"  # Spark's own columns
_TEXT_OPTIONS: dict[str, dict[str, bool]] = {"csv": {"header": True, "inferSchema": True}}


@dataclass(frozen=True)
class Loaded:
    """Events in a session.

    Attributes
    ----------
    events : Events
    rows : int
        How many there are.
    is_parquet : bool
        Whether one column can be read without the others.
    schema : Schema or None
        All columns of the input, where the events have only those that are read.
    notes : sequence of str
        What to know of the input: rows that were dropped.
    left_out : RowGroups or None
        The row groups of local files; nobody here knows which others Spark does not read.
    """

    events: Events
    rows: int
    is_parquet: bool
    schema: Schema | None = None
    notes: Sequence[str] = ()
    left_out: RowGroups | None = None


def local_path(source: str) -> Path | None:
    """The path of a source that this machine's file system has; None for a URL of another one."""
    if not _URL.match(source):
        return Path(source)
    parts = urlsplit(source)
    return Path(unquote(parts.path)) if parts.scheme == "file" and parts.netloc in ("", "localhost") else None


def opened(sources: Sequence[str], workload: Workload, options: QueryJob) -> LocalFiles | Elsewhere:
    """Events by their paths or URLs; local files' columns are checked, and what events must fulfil.

    Parameters
    ----------
    sources : sequence of str
    workload : Workload
    options : QueryJob

    Raises
    ------
    DataError, OptionError, WorkloadError
        As for `hamlet.run` on a file.
    """
    workload = workload_of(workload)
    paths = [local_path(each) for each in sources]
    known = [each for each in paths if each is not None]
    if len(known) == len(paths):
        return LocalFiles(known, workload, options)
    if known:
        raise OptionError(f"{sources[paths.index(None)]} is a URL and {known[0]} is none; give only one kind of input")
    if options.form.drops:
        raise OptionError(
            f"bad_rows='drop' (--bad-rows drop) is for files that this machine sees: those behind {sources[0]} are "
            "read by Spark, which does not say what it leaves out"
        )
    return Elsewhere(sources, options)


def sources_of(source: str | Sequence[str]) -> list[str]:
    """The inputs of a job, one by one."""
    return [source] if isinstance(source, str) else list(source)


class Elsewhere:
    """Events that only Spark can reach; it says what they are."""

    def __init__(self, sources: Sequence[str], options: QueryJob) -> None:
        self._sources = list(sources)
        self._options = options.run
        input_format, form = options.input_format, options.form
        formats = []
        for source in sources:
            suffix = Path(urlsplit(source).path).suffix
            plain = input_format is None and not suffix
            formats.append("parquet" if plain else format_of(Path(source), input_format))
        if len({*formats}) > 1:
            raise OptionError(f"the inputs mix formats: {one_of(list(dict.fromkeys(formats)), 'and')}; give one format")
        self._format = formats[0]
        self._text: dict[str, Any] = dict(_TEXT_OPTIONS.get(self._format, {}))
        if form.delimiter is not None and self._format == "csv":
            self._text["sep"] = form.delimiter

    def load(self, spark: SparkSession) -> Loaded:
        """The events in a session."""
        frame = spark.read.format(self._format).options(**self._text).load(self._sources)
        events = events_of(frame, for_columns(self._options, frame.columns))
        return Loaded(events, frame.count(), self._format == "parquet")

    def follow(
        self,
        spark: SparkSession,
        files: int | None,
        telling: Telling,  # noqa: ARG002
        skip: Iterable[str] = (),  # noqa: ARG002
    ) -> DataFrame:
        """The events as they come, files that will be there included."""
        source = _one_of(self._sources)
        schema = spark.read.format(self._format).options(**self._text).load(source).schema
        reader = spark.readStream.format(self._format).schema(schema)
        if self._format == "csv":
            reader = reader.options(**{**self._text, "inferSchema": False})
        if files is not None:
            reader = reader.option("maxFilesPerTrigger", files)
        return reader.load(source)


def _one_of(sources: Sequence[str]) -> str:
    """The folder that a continuous job follows."""
    if len(sources) > 1:
        raise OptionError(f"a continuous job (--stream) follows one folder, and the input is {len(sources)}; give one")
    return sources[0]


class LocalFiles:
    """Files, and folders of files, known before Spark starts.

    Raises
    ------
    DataError, OptionError, WorkloadError
        As for `hamlet.run` on it.
    """

    def __init__(self, paths: Sequence[Path], workload: Workload, job: QueryJob) -> None:
        input_format, form, choice = job.input_format, job.form, job.choice
        key = SortKey(job.run.time_column, job.run.order_column)
        known = begun_files(paths[0]) if isinstance(job, Follow) and len(paths) == 1 else paths
        reader = open_paths(known, key, job.run.type_column, input_format, form)
        self._given, self._key = list(paths), key_of(reader, key)
        self._options = options = replace(job.run, time_column=self._key.time)
        self._files = list(leaves(reader))
        seconds = () if any(each.is_parquet for each in self._files) else tuple(workload.durations)
        self._reading = Reading(self._key, options.type_column, input_format, form, seconds)
        self._rows = reader.rows or 0
        columns = with_durations(reader.schema.empty_table(), seconds).schema
        schema: Schema = schema_of(
            columns, self._key, options.type_column, options.time_unit, empty=self._rows == 0, source=reader.name
        )
        workload.check(schema)
        self._schema = schema
        self.notes = [each for each in [dropped_by(reader).sentence()] if each is not None]
        self._paths = [each.path for each in self._files]
        # Spark reads what is Parquet throughout; what has more columns, or fewer rows, than its files is read by tasks.
        self._plain = all(each.is_parquet and each.folders is None and each.whole for each in self._files)
        strange = [file for file in self._paths if ":" in file] if self._plain else []
        if strange:
            raise DataError(f"Spark cannot read a path with a colon: {strange[0]}; rename it, or use hamlet run")
        needed = set(options.columns_of(workload))
        condition = None if choice.where is None else Filter(choice.where, schema)
        if condition is not None:
            needed |= {*condition.columns}
        in_frames = is_layered(workload)  # rows that become events meet them in frames, where Spark's types are all
        self._fields = [
            field.with_type(_micros(field.type)) if in_frames and not _is_fraction(field, self._key) else field
            for field in columns
            if field.name in needed
        ]
        self._known = [reader.schema.field(field.name) for field in self._fields]
        folded = [name.casefold() for name in reader.schema.names]
        self._by_names = len({*folded}) == len(folded)
        for field in self._fields:
            if not is_readable(field.type):
                raise DataError(f"{reader.name}: {unreadable_column(field.name, field.type)}")
        if isinstance(reader, Folder):
            reader.look([field.name for field in self._fields])
            self.notes += lacking(reader)
        self._groups = RowGroups(reader, schema)
        self._leave_out(job.choice, condition, None if job.watched else workload)

    def _leave_out(self, choice: Choice, condition: Filter | None, workload: Workload | None) -> None:
        """Leave out row groups as `hamlet.run` does; how many events they have is not counted here."""
        groups, schema = self._groups, self._schema
        if choice.has_period:
            leave_out_period(groups, choice.period(schema.clock), schema.clock)
        if condition is not None:
            possible = condition.conditions.possible
            groups.leave_out(lambda bounds: not possible(bounds), BY_WHERE, condition.columns)
        if workload is not None:
            needs = Needs(workload.analysis, schema)
            read = [name for name in workload.attributes if name in schema.columns]
            groups.leave_out(needs.useless, OF_NO_USE, read)

    def _chosen(self) -> dict[str, Sequence[int]]:
        """The row groups of each Parquet file that are of use."""
        found = {str(Path(name).resolve()): groups for name, groups in self._groups.chosen().items()}
        return {path: found[str(Path(path).resolve())] for path in self._paths if str(Path(path).resolve()) in found}

    def load(self, spark: SparkSession) -> Loaded:
        """The events in a session."""
        numbers = [f"c{place}" for place in range(len(self._fields))]
        parts: tuple[Part, ...] | None = None
        if not self._plain:
            frame = self._by_tasks(spark)
        else:
            frame = self._parquet(spark) if self._spark_reads_it else self._by_tasks(spark)
            groups = row_groups(self._paths, self._key.time, self._chosen())
            parts = tuple(parts_of(groups, spark.sparkContext.defaultParallelism))
        numbered = frame.toDF(*numbers)
        names = tuple(field.name for field in self._fields)
        values = pa.schema([field.with_type(_values(field.type)) for field in self._fields])
        schema = plain_schema(values, self._key, self._options.type_column)
        events = Events(numbered, names, schema, parts)
        return Loaded(events, self._rows, self._plain, self._schema, self.notes, self._groups)

    def follow(self, spark: SparkSession, files: int | None, telling: Telling, skip: Iterable[str] = ()) -> DataFrame:
        """The events as they come, files that will be there included; columns and types are those of the files now.

        `telling` hears, in tasks, of the rows of a file that were left out; files in `skip` are not read.
        """
        source = Path(_one_of([str(each) for each in self._given]))
        if any(each.folders is not None for each in self._files):
            raise UnsupportedError(
                f"{source}: a continuous job (--stream) does not read columns that folders say (name=value); put them "
                "into the files"
            )
        known = pa.schema([field.with_type(_values(field.type)) for field in self._known])
        return arriving(spark, source, files, self._reading, known, telling, skip).toDF(*known.names)

    @property
    def _spark_reads_it(self) -> bool:
        """Whether Spark reads of Parquet what it says.

        It takes names that differ by case for one, unless its session says otherwise, and durations, and what is finer
        than its microseconds, for the numbers that they are kept as.
        """
        exact = all(field.type == known.type for field, known in zip(self._fields, self._known, strict=True))
        return self._by_names and exact and not any(pa.types.is_duration(field.type) for field in self._fields)

    def _parquet(self, spark: SparkSession) -> DataFrame:
        ancient = _int96_columns(self._paths[0])
        types = {
            field.name: TimestampType() if field.name in ancient else spark_type(field.type) for field in self._fields
        }
        present = [field.name for field in self._fields if not pa.types.is_null(field.type)]
        schema = StructType([StructField(name, types[name]) for name in present])
        chosen = self._chosen()  # a file of which nothing is of use is not opened; Spark wants one
        useful = [each for each in self._paths if chosen[each]] or self._paths[:1]
        frame = spark.read.schema(schema).parquet(*map(as_glob, useful))
        numbers = {name: place for place, name in enumerate(present)}
        frame = frame.toDF(*(f"p{place}" for place in numbers.values()))
        return frame.select(
            *(frame[f"p{numbers[name]}"] if name in numbers else lit(None).cast("string") for name in types)
        )

    def _by_tasks(self, spark: SparkSession) -> DataFrame:
        chosen = self._chosen()
        files = [each for each in self._files if chosen.get(each.path, (0,))] or self._files[:1]
        return by_tasks(spark, files, self._reading, self._fields)


def by_tasks(spark: SparkSession, files: Sequence[Leaf], reading: Reading, fields: Iterable[pa.Field]) -> DataFrame:
    """Columns of files as tasks read them, a file each, numbered."""
    schema, arrow = carried(fields)
    return mapped(spark.range(0, len(files), 1, len(files)), partial(read_files, files, reading, arrow), schema)


def carried(fields: Iterable[pa.Field]) -> tuple[StructType, pa.Schema]:
    """Columns as tasks give them to Spark: numbered, and by name in Arrow's types."""
    named = list(fields)
    schema = StructType([StructField(f"c{place}", spark_type(field.type)) for place, field in enumerate(named)])
    types = arrow_schema(schema).types
    return schema, pa.schema(
        [
            each if pa.types.is_nested(each.type) else each.with_type(type)
            for each, type in zip(named, types, strict=True)
        ]
    )


def arriving(
    spark: SparkSession,
    folder: Path,
    files: int | None,
    reading: Reading,
    known: pa.Schema,
    telling: Telling,
    skip: Iterable[str] = (),
) -> DataFrame:
    """The events of a folder as files come, in numbered columns; `known` are the columns and types that they have.

    `telling` hears, in tasks, of the rows of a file that were left out; files in `skip` are not read.
    """
    schema, arrow = carried(with_durations(known.empty_table(), reading.durations).schema)
    read = partial(read_arrivals, reading, partial(left_out, telling), known, arrow, frozenset(skip))
    return mapped(followed_paths(spark, folder, files), read, schema)


def begun_files(followed: Path) -> Sequence[Path]:
    """What to learn of a folder that is followed: itself, or its files without empty ones, which Spark leaves out."""
    files = event_files(followed) if followed.is_dir() else [followed]
    begun = [each for each in files if each.stat().st_size]
    return begun if 0 < len(begun) < len(files) else [followed]


def first_file(followed: Path) -> Path:
    """The file of a folder that is followed of which the columns are learnt."""
    return event_files(begun_files(followed)[0])[0]


def followed_paths(spark: SparkSession, folder: Path, files: int | None) -> DataFrame:
    """The paths of the files of a folder as they come.

    Only these are asked for, so Spark reads no file: that is done as everywhere else.
    """
    reader = spark.readStream.format("binaryFile").schema(_BINARY_FILE)
    if files is not None:
        reader = reader.option("maxFilesPerTrigger", files)
    return reader.load(as_glob(str(folder.resolve()))).select("path")


def spark_type(arrow: pa.DataType) -> DataType:
    """The Spark type that carries an Arrow column to the tasks.

    Nanoseconds, which Spark's timestamps lack, go as integers, times with a fraction as decimals; a column without
    values as text.
    """
    arrow = _values(arrow)
    if is_text(arrow) or pa.types.is_null(arrow):
        return StringType()
    if arrow == FRACTION:
        return DecimalType(EXACT_SECONDS.precision, EXACT_SECONDS.scale)
    if pa.types.is_timestamp(arrow):
        if arrow.unit == "ns":
            return LongType()
        return TimestampNTZType() if arrow.tz is None else TimestampType()
    if pa.types.is_duration(arrow):
        return LongType() if arrow.unit == "ns" else DayTimeIntervalType()
    if pa.types.is_decimal(arrow):
        if arrow.precision > 38:
            raise DataError(f"Spark has no decimals of {arrow.precision} digits")
        return DecimalType(arrow.precision, arrow.scale)
    if pa.types.is_nested(arrow) and not pa.types.is_union(arrow):
        return from_arrow_type(arrow, prefer_timestamp_ntz=True)
    plain = pa.date32() if arrow == pa.date64() else plain_in_spark(arrow)
    known = pa.types.is_primitive(plain) or pa.types.is_decimal(plain)
    if not known or pa.types.is_interval(plain) or pa.types.is_time(plain) or pa.types.is_float16(plain):
        raise DataError(f"Spark has no type for {arrow}")
    return from_arrow_type(plain)


def _values(arrow: pa.DataType) -> pa.DataType:
    """The type of a dictionary's values, else the type itself."""
    return arrow.value_type if pa.types.is_dictionary(arrow) else arrow


def _micros(arrow: pa.DataType) -> pa.DataType:
    """The type, without nanoseconds."""
    if pa.types.is_timestamp(arrow) and arrow.unit == "ns":
        return pa.timestamp("us", arrow.tz)
    return pa.duration("us") if pa.types.is_duration(arrow) and arrow.unit == "ns" else arrow


def _is_fraction(field: pa.Field, key: SortKey) -> bool:
    """Whether these are times with a fraction, which travel as decimals."""
    return bool(field.name == key.time and field.type == FRACTION)


def _int96_columns(path: str) -> set[str]:
    """The timestamps of a Parquet file in the format that Spark's older versions write."""
    with pq.ParquetFile(path) as file:
        columns: Any = file.schema
        return {column.path for column in columns if column.physical_type == "INT96"}


def as_glob(path: str) -> str:
    """A path in which Spark finds no pattern."""
    return re.sub(r"([\[\]{}*?\\])", r"\\\1", path)


def local_output(output: str) -> Path:
    """The path of an output directory.

    Raises
    ------
    OptionError
        For a URL of another file system.
    """
    path = local_path(output)
    if path is None:
        raise OptionError(
            f"cannot write to {output}: hamlet submit writes to a directory that all machines see, and renames it when "
            "it is complete\nhint: hamlet.spark.run(...) gives a DataFrame, which Spark writes anywhere"
        )
    return path
