"""The plan of a Spark job: events narrowed, routed and sorted, partial rows merged, result rows.

Every shuffle asks for a number of partitions, which adaptive execution leaves as they are: it neither joins nor splits
them, whatever the session's settings, so nothing is set on a session. Columns are numbered on the way, so that names
that Spark would take for equal, or for expressions, are plain data. Source: DESIGN §4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, isnan, lit, when
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from hamlet.compiler.compile import CompiledWorkload
from hamlet.engine import Options
from hamlet.errors import DataError, Diagnostic, WorkloadError
from hamlet.executor import result_columns
from hamlet.input.input_schema import plain_schema
from hamlet.input.ordering import SortKey
from hamlet.input.widening import is_readable
from hamlet.output.partial import SCHEMA as PARTIAL
from hamlet.output.result import result_schema
from hamlet.schema import Schema
from hamlet.spark.filter import usable
from hamlet.spark.routes import Route, routes
from hamlet.spark.session import guarded, without_pandas_warning
from hamlet.spark.tasks import Kernel, Presenter, Shipment, result_batches
from hamlet.workload import Workload

PARTIAL_TYPE = from_arrow_schema(PARTIAL)
ROW = tuple(PARTIAL.names[:3])  # query, window, group: what a partial row is sorted and merged by
FEW_PARTITIONS = "200"  # Spark's default number for shuffles, which says nothing about this job

Stats = dict[tuple[int, int], Mapping[str, int]]  # (class, partition) -> counters of its task
Batches = Iterator[pa.RecordBatch]


# --------------------------------------------------------------------------------------------------- events


@dataclass(frozen=True)
class Events:
    """Events as Spark has them and as the engine shall get them.

    Attributes
    ----------
    frame : DataFrame
        Columns c0, c1, ...
    names : tuple of str
        What the workload calls them.
    schema : pyarrow.Schema
        The types in which the engine gets them, by name.
    """

    frame: DataFrame
    names: tuple[str, ...]
    schema: pa.Schema

    @cached_property
    def columns(self) -> dict[str, tuple[Column, DataType]]:
        """Spark's columns by name."""
        fields = self.frame.schema.fields
        return {name: (col(field.name), field.dataType) for name, field in zip(self.names, fields, strict=True)}


def events_of(frame: DataFrame, options: Options) -> Events:
    """The events of a DataFrame."""
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    fields = frame.schema.fields
    arrow = pa.schema([pa.field(field.name, arrow_type(field.dataType, zone)) for field in fields])
    key = SortKey(options.time_column, options.order_column)
    numbered = frame.toDF(*(f"c{place}" for place in range(len(fields))))
    for field in numbered.schema.fields:
        if isinstance(field.dataType, NullType):  # without values: a type must be said all the same
            numbered = numbered.withColumn(field.name, col(field.name).cast("string"))
    return Events(numbered, tuple(field.name for field in fields), plain_schema(arrow, key, options.type_column))


_PLAIN = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
}


def arrow_type(type: DataType, zone: str | None) -> pa.DataType:
    """The Arrow type of a Spark type; binary, which no attribute can have, for what the language lacks."""
    match type:
        case StringType():
            return pa.string()
        case TimestampType():
            return pa.timestamp("us", zone)
        case TimestampNTZType():
            return pa.timestamp("us")
        case DateType():
            return pa.date32()
        case DecimalType(precision=precision, scale=scale):
            return pa.decimal128(precision, scale)
        case NullType():
            return pa.null()
    return _PLAIN.get(type.simpleString(), pa.binary())


def arrow_schema(type: StructType) -> pa.Schema:
    """The Arrow types in which a task gives rows to Spark."""
    return pa.schema([pa.field(field.name, arrow_type(field.dataType, "UTC")) for field in type.fields])


# ------------------------------------------------------------------------------------------------------ job


class Job:
    """A workload over events, as a plan.

    Parameters
    ----------
    workload : Workload
    events : Events
    options : Options
    partitions : int, optional
        Tasks to spread each class of queries over.
    source : str
        What the events are called in messages.

    Raises
    ------
    WorkloadError, DataError
        What is wrong with the columns; no event is read before that is known.
    """

    def __init__(
        self,
        workload: Workload,
        events: Events,
        options: Options,
        partitions: int | None = None,
        source: str = "the DataFrame",
    ) -> None:
        text = workload.analysis.text
        self.shipment = Shipment(text.text, text.source, options, events.schema)
        self.schema: Schema = self.shipment.schema(source)
        workload.check(self.schema)
        self._workload = workload
        self._compiled: CompiledWorkload = self.shipment.compiled()
        self._events = events
        self.routes = routes(workload, self._compiled)
        self._check_types(source)
        self._partitions = partitions or default_partitions(events.frame)

    def _check_types(self, source: str) -> None:
        for name in dict.fromkeys(name for route in self.routes for name in route.columns):
            if not is_readable(self._events.schema.field(name).type):
                shown = self._events.columns[name][1].simpleString()
                raise DataError(
                    f"{source}: column {name!r} has the type {shown}, which no attribute can have "
                    "(INT, DOUBLE, STRING, BOOLEAN or TIMESTAMP)"
                )

    # ------------------------------------------------------------------------------------------ first half

    def routed(self, route: Route) -> DataFrame:
        """The events of one class: narrowed, each partition of the class in one task, in the order of time."""
        columns = self._events.columns
        frame = self._events.frame.where(usable(self._compiled.classes[route.number], self.schema, columns))
        frame = frame.select(*(columns[name][0] for name in route.columns))
        keys = [_key(*columns[name]) for name in route.keys]
        frame = frame.repartition(self._partitions, *keys) if keys else frame.repartition(1)
        order = [name for name in (self.schema.clock.column, self.schema.order_column) if name is not None]
        return frame.sortWithinPartitions(*(columns[name][0] for name in order))

    def partial(self, chosen: tuple[Route, ...], stats: Accumulator[Stats] | None = None) -> DataFrame:
        """Partial rows of some classes; a group may have several for a window."""
        shipment = self.shipment

        def kernel(route: Route, batches: Batches) -> Batches:
            yield from guarded(_partial(shipment, route, stats, batches))

        frames = [mapped(self.routed(route), partial(kernel, route), PARTIAL_TYPE) for route in chosen]
        return reduce(DataFrame.unionAll, frames)

    # ----------------------------------------------------------------------------------------- second half

    def results(self) -> DataFrame:
        """Result rows of all queries in one frame; see `hamlet.spark.run`."""
        schema = self.result_type()
        numbered = StructType([StructField(f"c{place}", each.dataType) for place, each in enumerate(schema.fields)])
        arrow = arrow_schema(schema)
        shipment, names = self.shipment, numbered.names

        def kernel(route: Route, batches: Batches) -> Batches:
            rows = Kernel(shipment, route).final(batches)
            yield from guarded(result_batches(rows, shipment, arrow, names))

        def merge(batches: Batches) -> Batches:
            yield from guarded(_merged(shipment, arrow, names, batches))

        frames = [mapped(self.routed(each), partial(kernel, each), numbered) for each in self.routes if each.whole]
        split = tuple(each for each in self.routes if not each.whole)
        if split:
            met = self.partial(split).repartition(self._partitions, *ROW).sortWithinPartitions(*ROW)
            frames.append(mapped(met, merge, numbered))
        return reduce(DataFrame.unionAll, frames).toDF(*schema.names)

    def result_type(self) -> StructType:
        """query, window_start, window_end, and the union of the RETURN names in first-use order.

        Raises
        ------
        WorkloadError
            If a name has two types.
        """
        found: dict[str, DataType] = {}
        users: dict[str, str] = {}
        clashes = []
        for query in self._compiled.queries:
            arrow = result_schema(
                result_columns(query, self.schema), self.schema.clock, self.shipment.options.count_type
            )
            spans = {item.column: item.span for item in query.analysed.query.items}
            for field in arrow:
                type = _spark_type(field.type)
                if found.setdefault(field.name, type) == type:
                    users.setdefault(field.name, query.name)
                    continue
                text = self._workload.analysis.text
                message = (
                    f"the column '{field.name}' is {type.simpleString()} here and "
                    f"{found[field.name].simpleString()} in query {users[field.name]}; in one DataFrame it has one type"
                )
                hint = f"rename one of them: AS {field.name}_{query.name}"
                clashes.append(Diagnostic(message, spans[field.name], hint, text=text.text, source=text.source))
        if clashes:
            raise WorkloadError(clashes)
        return StructType([StructField(name, type) for name, type in found.items()])


def default_partitions(frame: DataFrame) -> int:
    """As many as the session's ``spark.sql.shuffle.partitions`` says, if somebody has set it, else two per core."""
    session = frame.sparkSession
    asked = session.conf.get("spark.sql.shuffle.partitions")
    if asked is not None and asked != FEW_PARTITIONS:
        return int(asked)
    return 2 * session.sparkContext.defaultParallelism


def mapped(frame: DataFrame, task: Callable[[Batches], Batches], schema: StructType | str) -> DataFrame:
    """What a task makes of each partition's record batches."""
    with without_pandas_warning():
        return frame.mapInArrow(task, schema)


def _partial(shipment: Shipment, route: Route, stats: Accumulator[Stats] | None, batches: Batches) -> Batches:
    kernel = Kernel(shipment, route)
    yield from kernel.partial(batches)
    context = TaskContext.get()
    if stats is not None and context is not None:
        stats.add({(route.number, context.partitionId()): kernel.executor.stats})


def _merged(shipment: Shipment, schema: pa.Schema, names: list[str], batches: Batches) -> Batches:
    rows = (rows for _, rows in Presenter(shipment).rows(batches))
    return result_batches(rows, shipment, schema, names)


def _key(column: Column, type: DataType) -> Column:
    """A column to route by: -0.0 goes with 0.0 and NaN with NULL, as the engine's keys do."""
    if not isinstance(type, (DoubleType, FloatType)):
        return column
    return when(isnan(column), lit(None).cast(type)).when(column == 0, lit(0).cast(type)).otherwise(column)


def _spark_type(type: pa.DataType) -> DataType:
    return TimestampNTZType() if type == pa.timestamp("ns") else from_arrow_type(type, prefer_timestamp_ntz=True)


class StatsParam(AccumulatorParam[Stats]):
    """Counters per task; a task that is run twice counts once."""

    def zero(self, value: Stats) -> Stats:  # noqa: ARG002
        """No task."""
        return {}

    def addInPlace(self, value1: Stats, value2: Stats) -> Stats:  # noqa: N802
        """The counters of both."""
        value1.update(value2)
        return value1


def summed(stats: Stats) -> dict[str, Any]:
    """The counters of a job as those of one process (`Executor.stats`)."""
    total: dict[str, int] = {}
    matched: dict[int, int] = {}
    for (number, _), each in stats.items():
        matched[number] = matched.get(number, 0) + each["matched_events"]
        for name, count in each.items():
            total[name] = max(total.get(name, 0), count) if name == "largest_count_bits" else total.get(name, 0) + count
    return total | {"matched_events": max(matched.values(), default=0)}
