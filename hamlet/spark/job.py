"""The plan of a Spark job: events narrowed, routed and sorted, partial rows merged, result rows.

Every shuffle asks for a number of partitions, which adaptive execution leaves as they are: it neither joins nor splits
them, whatever the session's settings, so nothing is set on a session. Columns are numbered on the way, so that names
that Spark would take for equal, or for expressions, are plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import and_, or_
from pathlib import Path

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import isnan, lit, when
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type
from pyspark.sql.types import (
    DataType,
    DoubleType,
    FloatType,
    StructField,
    StructType,
    TimestampNTZType,
)

from hamlet.engine.options import Options
from hamlet.engine.where import Filter
from hamlet.errors import DataError, Diagnostic, WorkloadError
from hamlet.input.input_schema import unreadable_column
from hamlet.input.widening import is_readable
from hamlet.language.schema import Clock, Schema
from hamlet.output.partial import SCHEMA as PARTIAL
from hamlet.output.query_rows import ResultColumn
from hamlet.output.rows import result_columns
from hamlet.output.tables import CountTypes, result_schema
from hamlet.parallel.routing.owners import TimeOwner
from hamlet.parallel.routing.placement import balanced, key_tests, plain
from hamlet.parallel.routing.routes import Route, routes
from hamlet.parallel.routing.routing import MOST_CLASSES, Slicing
from hamlet.planner.compiled import CompiledWorkload
from hamlet.planner.workload import Workload, workload_of
from hamlet.spark.counters import CLASS, DECIDED, NOTED, ROWS, SLICE, Counters, Stats, counted
from hamlet.spark.filter import Predicates, in_period, usable
from hamlet.spark.frames import Events, arrow_schema, numbered
from hamlet.spark.look import Choice, seen
from hamlet.spark.packets import unpacked
from hamlet.spark.parts import Part, read_part
from hamlet.spark.rows import Presenter, Tallied, result_batches
from hamlet.spark.session import task_number
from hamlet.spark.slices import Batches, mapped, sliced, statistics_of
from hamlet.spark.tasks import Kernel, Shipment, columns_of

PARTIAL_TYPE = from_arrow_schema(PARTIAL)
ROW = tuple(PARTIAL.names[:3])  # query, window, group: what a partial row is sorted and merged by
FEW_PARTITIONS = "200"  # Spark's default number for shuffles, which says nothing about this job

Routes = tuple[Route, ...]


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
    in_two : tuple of str
        As of `Shipment`.

    Attributes
    ----------
    given, events : Events
        As they came, and what `look` makes of them.
    looks : callable or None
        What `look` has tasks do with batches of events.

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
        in_two: tuple[str, ...] = (),
    ) -> None:
        text = workload_of(workload).analysis.text
        self.shipment = Shipment(text.text, text.source, options, events.schema, in_two=in_two)
        self.schema: Schema = self.shipment.schema(source)
        workload.check(self.schema)
        if in_two:
            workload = self.shipment.workload
        self._workload = workload
        self.compiled: CompiledWorkload = self.shipment.compiled()
        self.given = self.events = events
        self.looks: Callable[[Batches], Batches] | None = None
        self.routes = routes(workload, self.compiled)
        self._source = source
        check_types(events, (name for route in self.routes for name in route.columns), source)
        self.partitions = partitions or default_partitions(events.frame.sparkSession)
        self._slicing: Slicing | None = None

    def look(self, choice: Choice, stats: Accumulator[Stats] | None = None, *, watch: bool = False) -> None:
        """Let tasks look at every event before anything else is done with it; as `looked`."""
        self.events, self.looks = looked(self.shipment, self.events, choice, self._source, stats, watch=watch)

    def trace_to(self, folder: Path) -> None:
        """Let every task write the records of its bursts into a folder, a file each."""
        self.shipment = replace(self.shipment, traced=str(folder))

    # ------------------------------------------------------------------------------------------ first half

    def read(self, routes: Routes) -> DataFrame:
        """The events that some class may use, narrowed to what the classes read."""
        columns = self.events.columns
        wanted = [usable(self.compiled.classes[route.number], self.schema, columns) for route in routes]
        usable_ones = replace(self.events, frame=self.events.frame.where(reduce(or_, wanted)))
        return usable_ones.select(columns_of(routes, self.schema))

    def over(self, routes: Routes, make: Callable[[Batches], Batches], type: StructType) -> DataFrame:
        """What tasks make of the events that some class may use, in any order, with the columns that the classes read.

        Local Parquet is read by the tasks themselves.
        """
        if self.events.parts is None:
            return mapped(self.read(routes), make, type)
        return self.over_parts(self.events.parts, columns_of(routes, self.schema), self.looks, make, type)

    def over_parts(
        self,
        parts: Sequence[Part],
        names: Sequence[str],
        looks: Callable[[Batches], Batches] | None,
        make: Callable[[Batches], Batches],
        type: StructType,
    ) -> DataFrame:
        """What tasks make of the events of a part each, with these columns; `looks` comes first."""
        read = names if looks is None else self.events.names
        schema = pa.schema([self.shipment.events.field(name) for name in read])
        places = [read.index(name) for name in names]

        def events(numbers: Batches) -> Batches:
            for batch in numbers:
                for number in batch.column(0).to_pylist():
                    yield from read_part(parts[number], schema)

        def task(numbers: Batches) -> Batches:
            batches = events(numbers)
            if looks is not None:
                batches = (batch.select(places) for batch in looks(batches))
            return make(batches)

        count = len(parts)
        return mapped(self.given.frame.sparkSession.range(0, count, 1, max(1, count)), task, type)

    def everything(self) -> DataFrame:
        """All events, narrowed to what the classes read."""
        return self.events.select(columns_of(self.routes, self.schema))

    def measure(self, *, balance: bool, semijoin: bool) -> dict[str, int]:
        """Look at keys and times in one more scan of the input, and spread the work by what was found.

        Parameters
        ----------
        balance : bool
            Whether keys and times are counted, and placed by that.
        semijoin : bool
            Whether events of keys without a trend stay behind; then the job must read the very same events again.

        Returns
        -------
        dict
            ``keys`` and ``possible``, those of them that can have a trend, of the classes where some have none.
        """
        over = partial(self.over, self.routes)
        known = statistics_of(over, self.shipment, self.routes, self.partitions, balance=balance, semijoin=semijoin)
        filters = [each.passing for each in known if each.passing is not None]
        if balance:
            self._slicing = balanced(self.compiled, self.routes, self.partitions, known, prune=semijoin)
        elif filters:
            tests = key_tests(self.compiled, self.routes, known)
            self._slicing = replace(plain(self.compiled, self.routes, self.partitions), filters=tests)
        return {"keys": sum(each.keys for each in filters), "possible": sum(each.possible for each in filters)}

    def routed(self, routes: Routes) -> DataFrame:
        """The events of one class: each partition of the class in one task, in the order of time."""
        (route,) = routes
        columns = self.events.columns
        keys = [_key(*columns[name]) for name in route.keys]
        frame = self.read(routes)
        return self.in_order(frame.repartition(self.partitions, *keys) if keys else frame.repartition(1))

    def in_order(self, frame: DataFrame) -> DataFrame:
        """The events of each partition in the order of time."""
        order = [name for name in (self.schema.clock.column, self.schema.order_column) if name is not None]
        return frame.sortWithinPartitions(*(self.events.columns[name][0] for name in order))

    def tasks(self, stats: Accumulator[Stats] | None = None) -> list[tuple[DataFrame, Routes, Slicing | None]]:
        """Sorted events, or packets of them, the classes that need them, and how they were sliced.

        One class whose events all carry its keys is spread by Spark's own hash, which costs least. Everything else is
        routed as a whole.
        """
        if self._slicing is None and len(self.routes) == 1 and self.routes[0].carried:
            return [(self.routed(self.routes), self.routes, None)]
        slicing = self._slicing or plain(self.compiled, self.routes, self.partitions)
        parts = [self.routes[start : start + MOST_CLASSES] for start in range(0, len(self.routes), MOST_CLASSES)]
        return [
            (sliced(partial(self.over, part), self.shipment, part, slicing, stats), part, slicing) for part in parts
        ]

    def partial(self, stats: Accumulator[Stats] | None = None) -> DataFrame:
        """Partial rows of all classes; a group may have several for a window."""
        frames = [
            mapped(frame, partial(_partial, self.shipment, part, slicing, stats), PARTIAL_TYPE)
            for frame, part, slicing in self.tasks(stats)
        ]
        return reduce(DataFrame.unionAll, frames)

    # ----------------------------------------------------------------------------------------- second half

    def results(
        self,
        rows: DataFrame | None = None,
        only: str | None = None,
        stats: Accumulator[Stats] | None = None,
    ) -> DataFrame:
        """Result rows of all queries in one frame; see `hamlet.spark.run`.

        `rows` are partial rows made otherwise, and `only` is the query that they are of, if they are of one.
        """
        schema = self.result_type(only)
        own = numbered(schema)
        shipment, shown = self.shipment, (arrow_schema(schema), own.names)
        if rows is None and not self.shipment.tops and all(self._is_whole(route) for route in self.routes):
            frames = [
                mapped(frame, partial(_final, shipment, part, slicing, stats, *shown), own)
                for frame, part, slicing in self.tasks(stats)
            ]
            return reduce(DataFrame.unionAll, frames).toDF(*schema.names)
        rows = self.partial(stats) if rows is None else rows
        met = rows.repartition(self.partitions, *self.spread).sortWithinPartitions(*ROW)
        return mapped(met, partial(_merged, shipment, stats, *shown), own).toDF(*schema.names)

    @property
    def spread(self) -> tuple[str, ...]:
        """What partial rows are brought together by: all rows of a window where TOP compares them."""
        return ROW[:2] if self.shipment.tops else ROW

    def _is_whole(self, route: Route) -> bool:
        """Whether the rows that a task gives for a class are final."""
        if self._slicing is not None and isinstance(self._slicing.owners[route.number], TimeOwner):
            return True
        return route.whole

    @property
    def columns(self) -> list[tuple[ResultColumn, ...]]:
        """The result columns of each query, in the order of the workload."""
        queries = sorted(self.compiled.queries, key=lambda query: query.analysed.index)
        return [result_columns(query, self.schema) for query in queries]

    def result_type(self, only: str | None = None) -> StructType:
        """query, window_start, window_end, and the union of the RETURN names in first-use order; or those of one query.

        Raises
        ------
        WorkloadError
            If a name has two types.
        """
        schema, count_type = self.schema, self.shipment.options.count_type
        columns = {query.name: result_columns(query, schema) for query in self.compiled.queries}
        if only is not None:
            columns = {only: columns[only]}
        return union_type(self._workload, columns, schema.clock, count_type)


def union_type(
    workload: Workload, columns: Mapping[str, tuple[ResultColumn, ...]], clock: Clock, count_type: CountTypes
) -> StructType:
    """query, window_start, window_end, and the union of the columns of queries, by name, in first-use order.

    Raises
    ------
    WorkloadError
        If a name has two types.
    """
    found: dict[str, DataType] = {}
    users: dict[str, str] = {}
    clashes = []
    queries = {query.name: query for query in workload.queries}
    for query, own in columns.items():
        spans = {item.column: item.span for item in queries[query].items}
        for field in result_schema(own, clock, count_type):
            type = _spark_type(field.type)
            if found.setdefault(field.name, type) == type:
                users.setdefault(field.name, query)
                continue
            text = workload.analysis.text
            message = (
                f"the column '{field.name}' is {type.simpleString()} here and "
                f"{found[field.name].simpleString()} in query {users[field.name]}; in one DataFrame it has one type"
            )
            hint = f"rename one of them: AS {field.name}_{query}"
            clashes.append(Diagnostic(message, spans[field.name], hint, text=text.text, source=text.source))
    if clashes:
        raise WorkloadError(clashes)
    return StructType([StructField(name, type) for name, type in found.items()])


def check_types(events: Events, names: Iterable[str], source: str) -> None:
    """Raise DataError at a column of a type that no attribute can have."""
    for name in dict.fromkeys(names):
        if not is_readable(events.schema.field(name).type):
            raise DataError(f"{source}: {unreadable_column(name, events.columns[name][1].simpleString())}")


def looked(
    shipment: Shipment,
    events: Events,
    choice: Choice,
    source: str = "the DataFrame",
    stats: Accumulator[Stats] | None = None,
    *,
    watch: bool = False,
) -> tuple[Events, Callable[[Batches], Batches]]:
    """The events that go on where tasks look at each of them first, and what they do with batches of it.

    Parameters
    ----------
    shipment : Shipment
    events : Events
    choice : Choice
        Which events go on.
    source : str
        What they are called in messages.
    stats : Accumulator, optional
        Gets how many events go on.
    watch : bool
        Whether it gets them by type and time, too.

    Raises
    ------
    WorkloadError
        With every mistake of the condition.
    DataError
        If it reads a column of a type that no attribute can have.
    OptionError
        If a time of it is none.
    """
    schema = shipment.schema()
    condition = None if choice.where is None else Filter(choice.where, schema)
    read = () if condition is None else condition.columns
    check_types(events, read, source)
    needed = {*shipment.options.columns_of(shipment.workload), *read}
    names = tuple(name for name in events.names if name in needed)
    looks = partial(seen, shipment, names, choice, watch, stats)
    test = _pushed(events, schema, choice, condition)
    given = events if test is None else replace(events, frame=events.frame.where(test))
    chosen = given.select(names)
    return replace(events, frame=mapped(chosen, looks, chosen.schema), names=names), looks


def _pushed(events: Events, schema: Schema, choice: Choice, condition: Filter | None) -> Column | None:
    """What is true at least of the events that are chosen, and of those without a time, which are an error.

    Spark hands it to its readers of files: they skip row groups and folders that cannot have such an event.
    """
    columns = events.columns
    column, type = columns[schema.clock.column]
    tests = [in_period(column, type, choice.period(schema.clock), schema.clock.ticks_per_second)]
    if condition is not None:
        tests.append(Predicates(columns, schema.columns).all_of(condition.conditions.all))
    known = [each for each in tests if each is not None]
    keys = [schema.clock.column, *([schema.order_column] if schema.order_column else [])]
    return reduce(or_, [reduce(and_, known), *(columns[name][0].isNull() for name in keys)]) if known else None


def default_partitions(session: SparkSession) -> int:
    """How many slices: the session's ``spark.sql.shuffle.partitions``, if somebody has set it, else two per core."""
    asked = session.conf.get("spark.sql.shuffle.partitions")
    if asked is not None and asked != FEW_PARTITIONS:
        return int(asked)
    return 2 * session.sparkContext.defaultParallelism


def _partial(
    shipment: Shipment, routes: Routes, slicing: Slicing | None, stats: Accumulator[Stats] | None, batches: Batches
) -> Batches:
    kernel = Kernel(shipment, routes, slicing, task=task_number())
    yield from kernel.partial(batches if slicing is None else unpacked(shipment, routes, batches))
    _count(kernel, routes, stats)


def _final(
    shipment: Shipment,
    routes: Routes,
    slicing: Slicing | None,
    stats: Accumulator[Stats] | None,
    schema: pa.Schema,
    names: list[str],
    batches: Batches,
) -> Batches:
    events = batches if slicing is None else unpacked(shipment, routes, batches)
    kernel = Kernel(shipment, routes, slicing)
    rows = Tallied(shipment.workload)
    yield from result_batches(rows.passing(kernel.final(events)), shipment, schema, names)
    _count(kernel, routes, stats)
    counted(stats, {(ROWS, place): tally for place, tally in rows.found.items()})


def _count(kernel: Kernel, routes: Routes, stats: Accumulator[Stats] | None) -> None:
    found: dict[tuple[str, int], Counters] = {(CLASS, number): each for number, each in kernel.stats.items()}
    slice = task_number() if kernel.slice is None else kernel.slice
    # Where slices come with the events, who sent them has counted them.
    found[SLICE, slice] = {"received": kernel.received, "sent": kernel.received if kernel.slice is None else 0}
    found |= {(NOTED, number): each for number, each in kernel.noted.items()}
    if kernel.decisions is not None:
        found[DECIDED, routes[0].number] = kernel.decisions
    counted(stats, found)


def _merged(
    shipment: Shipment, stats: Accumulator[Stats] | None, schema: pa.Schema, names: list[str], batches: Batches
) -> Batches:
    tallied = Tallied(shipment.workload)
    rows = (rows for _, rows in Presenter(shipment).rows(batches))
    yield from result_batches(tallied.passing(rows), shipment, schema, names)
    counted(stats, {(ROWS, place): tally for place, tally in tallied.found.items()})


def _key(column: Column, type: DataType) -> Column:
    """A column to route by: -0.0 goes with 0.0 and NaN with NULL, as the engine's keys do."""
    if not isinstance(type, (DoubleType, FloatType)):
        return column
    return when(isnan(column), lit(None).cast(type)).when(column == 0, lit(0).cast(type)).otherwise(column)


def _spark_type(type: pa.DataType) -> DataType:
    return TimestampNTZType() if type == pa.timestamp("ns") else from_arrow_type(type, prefer_timestamp_ntz=True)
