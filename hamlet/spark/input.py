"""The events of ``hamlet submit``: files that this machine sees, or what Spark finds behind a URL.

What a local file holds is found out as `hamlet.run` does it, before Spark starts: a mistake costs no JVM, and both give
the same rows. Parquet is then read by Spark; CSV and JSON by the readers of `hamlet.input.files` inside tasks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from hamlet.engine.options import Options
from hamlet.engine.where import Filter
from hamlet.errors import DataError, OptionError
from hamlet.input.files import event_files, format_of, open_path
from hamlet.input.hive import values_in
from hamlet.input.input_schema import plain_schema, schema_of, unreadable_column
from hamlet.input.ordering import SortKey
from hamlet.input.period import leave_out_period
from hamlet.input.row_groups import RowGroups
from hamlet.input.widening import is_readable, is_text
from hamlet.language.schema import Schema
from hamlet.planner.skipping import BY_WHERE, OF_NO_USE, Needs
from hamlet.planner.workload import Workload, workload_of
from hamlet.spark.events import read_arrivals, read_files
from hamlet.spark.frames import Events, arrow_schema, events_of
from hamlet.spark.look import Choice
from hamlet.spark.parts import Part, parts_of, row_groups
from hamlet.spark.slices import mapped

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters at least: C:\ is a drive
_TYPES: dict[pa.DataType, DataType] = {
    pa.int8(): ByteType(),
    pa.int16(): ShortType(),
    pa.int32(): IntegerType(),
    pa.int64(): LongType(),
    pa.uint8(): ShortType(),
    pa.uint16(): IntegerType(),
    pa.uint32(): LongType(),
    pa.uint64(): DecimalType(20, 0),
    pa.float32(): FloatType(),
    pa.float64(): DoubleType(),
    pa.bool_(): BooleanType(),
    pa.date32(): DateType(),
    pa.date64(): DateType(),
}


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
    """

    events: Events
    rows: int
    is_parquet: bool


def local_path(source: str) -> Path | None:
    """The path of a source that this machine's file system has; None for a URL of another one."""
    if not _URL.match(source):
        return Path(source)
    parts = urlsplit(source)
    return Path(unquote(parts.path)) if parts.scheme == "file" and parts.netloc in ("", "localhost") else None


def opened(
    source: str,
    input_format: str | None,
    options: Options,
    workload: Workload,
    choice: Choice | None = None,
    *,
    watched: bool = False,
) -> LocalFiles | Elsewhere:
    """Events by their path or URL; a local file's columns are checked, and what events must fulfil.

    Parameters
    ----------
    source : str
    input_format : str or None
    options : Options
    workload : Workload
    choice : Choice, optional
        By default all events.
    watched : bool
        Whether events that no query can use are counted by type and time, too.

    Raises
    ------
    DataError, OptionError, WorkloadError
        As for `hamlet.run` on a file.
    """
    workload = workload_of(workload)
    path = local_path(source)
    if path is not None:
        return LocalFiles(path, input_format, options, workload, choice or Choice(), watched)
    return Elsewhere(source, input_format, options)


class Elsewhere:
    """Events that only Spark can reach; it says what they are.

    Attributes
    ----------
    left_out : None
        Nobody here knows which row groups Spark does not read.
    """

    left_out: RowGroups | None = None

    def __init__(self, source: str, input_format: str | None, options: Options) -> None:
        self._source = source
        self._options = options
        suffix = Path(urlsplit(source).path).suffix
        self._format = "parquet" if input_format is None and not suffix else format_of(Path(source), input_format)

    def load(self, spark: SparkSession) -> Loaded:
        """The events in a session."""
        options = _TEXT_OPTIONS.get(self._format, {})
        frame = spark.read.format(self._format).options(**options).load(self._source)
        return Loaded(events_of(frame, self._options), frame.count(), self._format == "parquet")

    def follow(self, spark: SparkSession, files: int | None) -> DataFrame:
        """The events as they come, files that will be there included."""
        return _followed(
            spark,
            self._source,
            self._format,
            spark.read.format(self._format).options(**_TEXT_OPTIONS.get(self._format, {})).load(self._source).schema,
            files,
        )


class LocalFiles:
    """A file or a folder of files, known before Spark starts.

    Raises
    ------
    DataError, OptionError, WorkloadError
        As for `hamlet.run` on it.
    """

    def __init__(
        self,
        path: Path,
        input_format: str | None,
        options: Options,
        workload: Workload,
        choice: Choice,
        watched: bool,
    ) -> None:
        self._path = path
        self._key = SortKey(options.time_column, options.order_column)
        self._options = options
        self._input_format = input_format
        reader = open_path(path, self._key, options.type_column, input_format)
        self._rows = reader.rows or 0
        schema: Schema = schema_of(
            reader.schema, self._key, options.type_column, options.time_unit, empty=self._rows == 0, source=reader.name
        )
        workload.check(schema)
        self._paths = [str(file.resolve()) for file in event_files(path)]
        self._format = format_of(Path(self._paths[0]), input_format)
        strange = [file for file in self._paths if ":" in file] if self._format == "parquet" else []
        if strange:
            raise DataError(f"Spark cannot read a path with a colon: {strange[0]}; rename it, or use hamlet run")
        needed = set(options.columns_of(workload))
        condition = None if choice.where is None else Filter(choice.where, schema)
        if condition is not None:
            needed |= {*condition.columns}
        self._fields = [field for field in reader.schema if field.name in needed]
        folded = [name.casefold() for name in reader.schema.names]
        self._alike = len({*folded}) < len(folded)
        for field in self._fields:
            if not is_readable(field.type):
                raise DataError(f"{reader.name}: {unreadable_column(field.name, field.type)}")
        folders = [values_in(Path(each), path.resolve()) if path.is_dir() else {} for each in self._paths]
        self._folders = [{name: text for name, text in each.items() if name in needed} for each in folders]
        self.left_out: RowGroups | None = RowGroups(reader, schema)
        self._leave_out(self.left_out, schema, choice, condition, None if watched else workload)

    @staticmethod
    def _leave_out(
        groups: RowGroups, schema: Schema, choice: Choice, condition: Filter | None, workload: Workload | None
    ) -> None:
        """Leave out row groups as `hamlet.run` does; how many events they have is not counted here."""
        if choice.has_period:
            leave_out_period(groups, choice.period(schema.clock), schema.clock)
        if condition is not None:
            possible = condition.conditions.possible
            groups.leave_out(lambda bounds: not possible(bounds), BY_WHERE, condition.columns)
        if workload is not None:
            needs = Needs(workload.analysis, schema)
            read = [name for name in workload.attributes if name in schema.columns]
            groups.leave_out(needs.useless, OF_NO_USE, read)

    def load(self, spark: SparkSession) -> Loaded:
        """The events in a session."""
        numbers = [f"c{place}" for place in range(len(self._fields))]
        parts: tuple[Part, ...] | None = None
        if self._format != "parquet":
            frame = self._by_tasks(spark)
        else:
            # Spark takes names that differ by case for one, unless its session says otherwise.
            frame = self._by_tasks(spark) if self._alike or not self._spark_knows_folders() else self._parquet(spark)
            if not any(self._folders):
                groups = row_groups(self._paths, self._key.time, self._chosen())
                parts = tuple(parts_of(groups, spark.sparkContext.defaultParallelism))
        numbered = frame.toDF(*numbers)
        names = tuple(field.name for field in self._fields)
        values = pa.schema([field.with_type(_values(field.type)) for field in self._fields])
        schema = plain_schema(values, self._key, self._options.type_column)
        return Loaded(Events(numbered, names, schema, parts), self._rows, self._format == "parquet")

    def _chosen(self) -> dict[str, Sequence[int]]:
        """The row groups of each file that are of use."""
        assert self.left_out is not None
        return {str(Path(name).resolve()): groups for name, groups in self.left_out.chosen().items()}

    def _spark_knows_folders(self) -> bool:
        """Whether Spark takes the same columns from the folders: all files have the same, and none of its own."""
        names = {tuple(each) for each in self._folders}
        return len(names) == 1 and not any(
            name in pq.read_schema(file).names for (each,) in [names] for name in each for file in self._paths
        )

    def follow(self, spark: SparkSession, files: int | None) -> DataFrame:
        """The events as they come, files that will be there included; columns and types are those of the files now."""
        reader = spark.readStream.format("binaryFile").schema(_BINARY_FILE)
        if files is not None:
            reader = reader.option("maxFilesPerTrigger", files)
        # Only the paths are asked for, so Spark reads no file: the tasks do, as everywhere else.
        paths = reader.load(_as_glob(str(self._path.resolve()))).select("path")
        schema, arrow = self._carried()
        known = pa.schema([field.with_type(_values(field.type)) for field in self._fields])
        root = str(self._path.resolve()) if any(self._folders) else None
        read = partial(read_arrivals, self._key, self._options.type_column, self._input_format, known, arrow, root)
        return mapped(paths, read, schema).toDF(*known.names)

    def _carried(self) -> tuple[StructType, pa.Schema]:
        """The columns as tasks give them to Spark: numbered, and by name in Arrow's types."""
        schema = StructType(
            [StructField(f"c{place}", spark_type(field.type)) for place, field in enumerate(self._fields)]
        )
        types = arrow_schema(schema).types
        return schema, pa.schema([field.with_type(type) for field, type in zip(self._fields, types, strict=True)])

    def _parquet(self, spark: SparkSession) -> DataFrame:
        ancient = _int96_columns(self._paths[0])
        types = {
            field.name: TimestampType() if field.name in ancient else spark_type(field.type) for field in self._fields
        }
        present = [field.name for field in self._fields if not pa.types.is_null(field.type)]
        schema = StructType([StructField(name, types[name]) for name in present])
        reader = spark.read.schema(schema)
        if any(self._folders):
            reader = reader.option("basePath", str(self._path.resolve()))
        chosen = self._chosen()  # a file of which nothing is of use is not opened; Spark wants one
        useful = [each for each in self._paths if chosen[each]] or self._paths[:1]
        frame = reader.parquet(*map(_as_glob, useful))
        numbers = {name: place for place, name in enumerate(frame.columns)}  # folders' columns are the last ones
        frame = frame.toDF(*(f"p{place}" for place in numbers.values()))
        return frame.select(
            *(frame[f"p{numbers[name]}"] if name in numbers else lit(None).cast("string") for name in types)
        )

    def _by_tasks(self, spark: SparkSession) -> DataFrame:
        schema, arrow = self._carried()
        files = list(zip(self._paths, self._folders, strict=True))
        read = partial(read_files, files, self._key, self._options.type_column, self._input_format, arrow)
        count = len(self._paths)
        return mapped(spark.range(0, count, 1, count), read, schema)


def _followed(spark: SparkSession, source: str, input_format: str, schema: StructType, files: int | None) -> DataFrame:
    reader = spark.readStream.format(input_format).schema(schema)
    if input_format == "csv":
        reader = reader.option("header", True)
    if files is not None:
        reader = reader.option("maxFilesPerTrigger", files)
    return reader.load(source)


def spark_type(arrow: pa.DataType) -> DataType:
    """The Spark type that carries an Arrow column to the tasks.

    Nanoseconds, which Spark's timestamps lack, go as integers; a column without values as text.
    """
    arrow = _values(arrow)
    if is_text(arrow) or pa.types.is_null(arrow):
        return StringType()
    if pa.types.is_timestamp(arrow):
        if arrow.unit == "ns":
            return LongType()
        return TimestampNTZType() if arrow.tz is None else TimestampType()
    if pa.types.is_decimal(arrow):
        if arrow.precision > 38:
            raise DataError(f"Spark has no decimals of {arrow.precision} digits")
        return DecimalType(arrow.precision, arrow.scale)
    if arrow not in _TYPES:
        raise DataError(f"Spark has no type for {arrow}")
    return _TYPES[arrow]


def _values(arrow: pa.DataType) -> pa.DataType:
    """The type of a dictionary's values, else the type itself."""
    return arrow.value_type if pa.types.is_dictionary(arrow) else arrow


def _int96_columns(path: str) -> set[str]:
    """The timestamps of a Parquet file in the format that Spark's older versions write."""
    with pq.ParquetFile(path) as file:
        columns: Any = file.schema
        return {column.path for column in columns if column.physical_type == "INT96"}


def _as_glob(path: str) -> str:
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
