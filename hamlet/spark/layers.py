"""Queries about the rows of other queries, on Spark: a job per unit, over the input and the rows of earlier ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame
from pyspark.sql.functions import (
    array,
    col,
    explode,
    expr,
    lit,
    monotonically_increasing_id,
    unix_date,
    unix_micros,
    when,
)
from pyspark.sql.functions import count as spark_count
from pyspark.sql.functions import max as spark_max
from pyspark.sql.functions import min as spark_min
from pyspark.sql.types import DateType, IntegralType, TimestampNTZType, TimestampType

from hamlet.engine.layers.rows import row_schema, row_types
from hamlet.engine.options import Options
from hamlet.errors import DataError, OptionError, UnsupportedError
from hamlet.language.printing import to_text
from hamlet.language.query import AttributeType
from hamlet.output.query_rows import ResultColumn
from hamlet.output.rows import result_columns
from hamlet.output.tables import result_schema
from hamlet.parallel.time.mapped import added
from hamlet.planner.layers import Columns, column_of, units_of, workload_of_unit
from hamlet.planner.unordered_rows import ORDER, RANK, ROW, end_of
from hamlet.planner.workload import Workload
from hamlet.spark.counters import Stats, noted_of, stats_of, summed
from hamlet.spark.frames import Events, events_of, named, quoted
from hamlet.spark.job import Job, looked
from hamlet.spark.look import Choice
from hamlet.spark.tasks import Noted, Shipment

_WHOLE = "try_cast({} AS BIGINT)"  # NULL where an integer needs more than 64 bits


@dataclass(frozen=True)
class Done:
    """What a unit has computed.

    Attributes
    ----------
    job : Job
    rows : DataFrame
        Partial rows, kept; where these are not needed once more, result rows.
    stats : Accumulator of Stats
        What its tasks count.
    slices : int
        At least so many there are.
    """

    job: Job
    rows: DataFrame
    stats: Accumulator[Stats]
    slices: int

    def results(self) -> DataFrame:
        """Its result rows."""
        return self.job.results(self.rows, stats=self.stats)


def counters_of(done: Sequence[Done]) -> dict[str, Any]:
    """The counters of all units together (`hamlet.spark.counters.summed`).

    Events and slices are those of the first unit, which reads nothing but the input.
    """
    found: dict[str, Any] = {}
    for each in done:
        for name, count in summed(each.stats.value, each.slices).items():
            if name in ("events", "slices"):
                found.setdefault(name, count)
            elif name in ("largest_count_bits", "matched_events"):
                found[name] = max(found.get(name, 0), count)
            else:
                found = added(found, {name: count})
    return found


def noted_by(done: Sequence[Done]) -> Noted:
    """What the events of all units have shown."""
    return reduce(Noted.plus, (noted_of(each.stats.value) for each in done), Noted())


def is_layered(workload: Workload) -> bool:
    """Whether queries ask about the rows of others."""
    return len(workload.analysis.layers) > 1


def chosen_events(
    workload: Workload,
    events: Events,
    options: Options,
    choice: Choice,
    stats: Accumulator[Stats] | None = None,
    *,
    watch: bool = False,
) -> Events:
    """The events that go on, each looked at once, however many units read it; as `hamlet.spark.job.looked`."""
    if choice.is_all and not watch:
        return events
    text = workload.analysis.text
    found, _ = looked(
        Shipment(text.text, text.source, options, events.schema), events, choice, stats=stats, watch=watch
    )
    return replace(found, frame=found.frame.localCheckpoint(eager=True))


def layers(
    workload: Workload,
    given: Events,
    options: Options,
    partitions: int | None,
    *,
    balance: bool,
    traced: Path | None = None,
) -> Iterator[Done]:
    """The jobs of all units, one after the other.

    Parameters
    ----------
    workload : Workload
    given : Events
        The input, in the types that it had before it came to Spark, which has microseconds only.
    options : Options
    partitions : int, optional
        As for `hamlet.spark.run`.
    balance : bool
        Whether each job counts its keys and times first.
    traced : pathlib.Path, optional
        Where the records of bursts go: a folder per unit.

    Raises
    ------
    UnsupportedError
        An order column of which the values are no whole numbers or times, or too far apart.
    """
    special = {options.time_column, options.type_column}
    columns: dict[str, tuple[ResultColumn, ...]] = {}
    frames: dict[str, DataFrame] = {}
    events = given.frame.toDF(*given.names)
    known_units = {field.name: field.type for field in given.schema}
    whole = Job(
        workload.select([workload.names[place] for place in workload.analysis.layers[0]]),
        _in_units(events_of(events, options), known_units), options, partitions,
    )  # fmt: skip
    clock = whole.schema.clock
    workload.check(whole.schema)
    exact = options.numbers == "exact"
    asked = {name for unit in units_of(workload.analysis) for name in unit.reads}
    _refuse_types(events, options, asked)
    ranked, last = _ranked(events, options)
    for number, unit in enumerate(units_of(workload.analysis)):
        frame, chosen = events, options
        doubled: tuple[str, ...] = ()
        if unit.reads:
            order = None if options.order_column is None else ORDER if unit.any_match else RANK
            if order is not None:
                chosen = replace(options, order_column=order)
                frame = ranked.withColumnRenamed(ORDER, order)
                doubled = unit.reads if unit.any_match else ()
            types: Columns = {
                name: row_types(row_schema(columns[name], clock, exact=exact), columns[name]) for name in unit.reads
            }
            wide = {name: _wide(frames[name], columns[name], exact=exact) for name in unit.reads}
            known = {
                name: {
                    each: AttributeType.DOUBLE if each in wide[name] else kind or AttributeType.INT
                    for each, kind in found.items()
                }
                for name, found in types.items()
            }
            of_unit = workload_of_unit(workload.analysis, unit, known, special)
            part = Workload.parse(to_text(of_unit.analysis.text))
            keys = {name for query in part.analysis.queries for name in query.partition}
            for name in unit.reads:
                rows = _as_events(frames[name], name, columns[name], wide[name], options, events, keys, exact=exact)
                if order == ORDER:
                    rows = _in_two(rows, name, options.type_column, last)
                elif order is not None:
                    rows = rows.withColumn(order, lit(0).cast("bigint"))
                frame = frame.unionByName(rows, allowMissingColumns=True)
        else:
            part = workload.select([workload.names[place] for place in unit.places])
        job = Job(part, _in_units(events_of(frame, chosen), known_units), chosen, partitions, in_two=doubled)
        if balance:
            job.measure(balance=True, semijoin=False)
        if traced is not None:
            (traced / f"unit={number}").mkdir()
            job.trace_to(traced / f"unit={number}")
        stats = stats_of(events.sparkSession.sparkContext)
        done = Done(job, job.partial(stats).localCheckpoint(eager=True), stats, job.partitions)
        for query in job.compiled.queries:
            if query.name in asked:
                columns[query.name] = result_columns(query, job.schema)
                for field in result_schema(columns[query.name], clock):
                    known_units[column_of(query.name, field.name)] = field.type
                shown = replace(job.shipment, options=replace(chosen, count_type="string"))
                texts = copy(job)
                texts.shipment = shown
                own = done.rows.where(col("query") == query.analysed.index)
                frames[query.name] = texts.results(own, query.name)
        yield done


def _in_units(events: Events, units: Mapping[str, pa.DataType]) -> Events:
    """Events whose times are given to the engine in the units that they had."""
    known = (units.get(field.name, field.type) for field in events.schema)
    fields = [
        field.with_type(kind) if pa.types.is_timestamp(field.type) and pa.types.is_timestamp(kind) else field
        for field, kind in zip(events.schema, known, strict=True)
    ]
    return replace(events, schema=pa.schema(fields))


def _ranked(events: DataFrame, options: Options) -> tuple[DataFrame, int]:
    """The input with a column `ORDER`, its order as numbers from 1 on, and a number behind all of them."""
    name = options.order_column
    if name is None:
        return events, 0
    kind = events.schema[name].dataType
    number = named(name)
    if isinstance(kind, (TimestampType, TimestampNTZType)):
        number = unix_micros(number.cast("timestamp"))
    elif isinstance(kind, DateType):
        number = unix_date(number)
    elif not isinstance(kind, IntegralType):
        raise UnsupportedError(
            f"the order column {name!r} is {kind.simpleString()}; beside queries about rows on Spark it must be of "
            "whole numbers, timestamps or dates"
        )
    number = number.cast("bigint")
    (found,) = events.agg(spark_min(number), spark_max(number), spark_count(number), spark_count("*")).collect()
    low, high, there, count = found
    if there < count:
        raise DataError(f"the order column {name!r} is NULL in an event")
    low, high = low or 0, high or 0
    if high - low >= 2**62:
        raise UnsupportedError(f"the values of the order column {name!r} are too far apart for queries about rows")
    return events.withColumn(ORDER, number - lit(low) + lit(1)), high - low + 2


def _in_two(rows: DataFrame, name: str, type_column: str, last: int) -> DataFrame:
    """Rows as two events each, before and behind the events of their time; both from one, so that they agree."""
    both = rows.withColumn(ROW, monotonically_increasing_id()).withColumn(ORDER, explode(array(lit(0), lit(last))))
    kind = when(named(ORDER) == 0, lit(name)).otherwise(lit(end_of(name)))
    return both.withColumn(ORDER, named(ORDER).cast("bigint")).withColumn(type_column, kind)


def _refuse_types(events: DataFrame, options: Options, names: set[str]) -> None:
    """Raise where the input has events of a type that is a query's name, too."""
    found = events.where(named(options.type_column).isin(sorted(names))).limit(1).collect()
    if found:
        name = found[0][options.type_column]
        raise DataError(
            f"the input has events of type {name}, and so are the rows of the query {name}\n"
            "hint: give the query another name"
        )


def _is_whole(column: ResultColumn) -> bool:
    return column.kind in ("count", "sum") and column.type is not AttributeType.DOUBLE


def _wide(rows: DataFrame, columns: tuple[ResultColumn, ...], *, exact: bool) -> set[str]:
    """The columns of integers in which some value needs more than 64 bits."""
    whole = [column.name for column in columns if exact and _is_whole(column)]
    beyond = {name: named(name).isNotNull() & expr(_WHOLE.format(quoted(name))).isNull() for name in whole}
    return {name for name, test in beyond.items() if rows.where(test).limit(1).count()}


def _as_events(
    rows: DataFrame,
    name: str,
    columns: tuple[ResultColumn, ...],
    wide: set[str],
    options: Options,
    events: DataFrame,
    keys: set[str],
    *,
    exact: bool,
) -> DataFrame:
    """Rows as events of a unit (`hamlet.engine.layers.rows.as_events`)."""
    time = events.schema[options.time_column].dataType
    found = [
        named("window_end").cast(time).alias(options.time_column),
        lit(name).alias(options.type_column),
        *(named(each).alias(column_of(name, each)) for each in ("query", "window_start", "window_end")),
    ]
    taken = {options.time_column, options.type_column}
    for column in columns:
        value = named(column.name)
        if column.kind in ("count", "sum"):
            double = not (exact and _is_whole(column)) or column.name in wide
            value = value.cast("double") if double else expr(_WHOLE.format(quoted(column.name)))
        found.append(value.alias(column_of(name, column.name)))
        if column.name in keys and column.name not in taken:
            known = events.schema[column.name].dataType if column.name in events.columns else None
            found.append((value if known is None else value.cast(known)).alias(column.name))
    return rows.select(*found)


def union_of(done: list[Done], names: tuple[str, ...]) -> DataFrame:
    """Result rows of all units in one frame: query, window_start, window_end, and the RETURN names in first-use order.

    Raises
    ------
    OptionError
        If a name has two types.
    """
    frames = [each.results() for each in done]
    types: dict[str, str] = {}
    for frame in frames:
        for field in frame.schema.fields:
            shown = field.dataType.simpleString()
            if types.setdefault(field.name, shown) != shown:
                raise OptionError(
                    f"the column '{field.name}' is {types[field.name]} in one query and {shown} in another; rename one "
                    "of them with AS"
                )
    order = ["query", "window_start", "window_end"]
    by_query = {
        query.name: [item.column for item in query.analysed.query.items]
        for each in done
        for query in each.job.compiled.queries
    }
    order += [column for name in names for column in by_query[name]]
    result = frames[0]
    for frame in frames[1:]:
        result = result.unionByName(frame, allowMissingColumns=True)
    return result.select(*(named(name) for name in dict.fromkeys(order)))
