"""What a batch job found that was probably not meant, as `hamlet.run` says it, without another pass over its input.

Tasks say which variables have met an event, whether keys are missing and what the largest counts are, all of which they
know anyway. Only where something is missing, or a query has no rows, are the types of the events counted, in a scan of
the type column; and only where the reason is in how events lie together, or other words are tried, and they are not too
many, are these read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import col, count, count_if, lit

from hamlet.findings import Most, Part, Tally, Watch, of_numbers, of_tallies
from hamlet.input.doubts import unit_doubt
from hamlet.input.events import EventSource, open_events
from hamlet.language.schema import Schema
from hamlet.output.result import Results
from hamlet.parallel.run import rows_alone
from hamlet.planner.workload import Workload
from hamlet.runtime.definitions import ZONED
from hamlet.spark.counters import tallies_of
from hamlet.spark.events import engine_batches
from hamlet.spark.job import Job
from hamlet.spark.layers import Done, noted_by
from hamlet.spark.tasks import Noted
from hamlet.spark.told import Told

MOST_TYPES = 1000  # of events, besides those that the workload names


def warnings_of(
    workload: Workload,
    job: Job,
    noted: Noted,
    tallies: Sequence[Tally],
    schema: Schema | None = None,
    events: int | None = None,
) -> list[str]:
    """What to know of a job's rows, a sentence each.

    Parameters
    ----------
    workload : Workload
        As the user gave it.
    job : Job
        Of all its queries, or of those that ask about events only.
    noted : Noted
        What the events of all tasks have shown.
    tallies : sequence of Tally
        Of the rows of each query.
    schema : Schema, optional
        All columns of the input, where the job has only those that it reads.
    events : int, optional
        How many there are, where that is known.
    """
    source = _of_frame(job, schema or job.schema, events)
    made = set(workload.names)  # types of rows that queries make, none of them in the input
    wanted = {
        (query.query.name, variable)
        for query in workload.analysis.queries
        for variable, kind in query.types.items()
        if kind not in made
    }
    if not noted.without and wanted <= noted.met and all(each.rows for each in tallies):
        return of_numbers(workload, source, tallies, source.rerun)
    watch = Watch(workload, job.schema, keep_null_keys=job.shipment.options.null_keys == "keep")
    known = [name for name in watch.keys if name in job.schema.columns]
    source.rows, types, without = _counted(job, watch.types, known)
    absent = {name: types for name in watch.keys if name not in known}
    watch.told(source.rows, types, noted.met, without | absent)
    return of_tallies(workload, source, watch, tallies, source.rerun)


def of_stream(workload: Workload, job: Job, told: Told, again: Callable[[], EventSource] | None = None) -> list[str]:
    """What to know of a continuous job by now, a sentence each.

    Why a query has no rows is said only where it is for an event that has not come: windows may be open. Numbers that
    other words would change are found where what was read can be read again.

    Parameters
    ----------
    workload : Workload
        As the user gave it.
    job : Job
    told : Told
    again : callable, optional
        Gives the events.
    """
    seen, schema = told.seen, job.schema
    watch = Watch(workload, schema, keep_null_keys=job.shipment.options.null_keys == "keep")
    absent = {name: seen.names for name in watch.keys if name not in schema.columns}
    types = {**seen.names, **dict.fromkeys(seen.others, 0)}
    watch.told(seen.events, types, seen.met, {**seen.without, **absent})
    tallies = [told.tallies.get(place, Tally()) for place in range(len(workload.names))]
    if told.begun:  # rows of earlier runs are not known here
        tallies = [Tally(max(1, each.rows), each.most) for each in tallies]
    doubt = None if seen.first is None else unit_doubt(seen.first, schema.clock)
    passed = _Events(job, schema, seen.events, None)
    found = of_tallies(workload, passed, watch, tallies, passed.rerun)
    if again is not None:
        passed = _Events(job, schema, seen.events, lambda _: again())
        found += of_numbers(workload, passed, tallies, passed.rerun)
    return list(dict.fromkeys([*([] if doubt is None else [doubt]), *found]))


def of_units(done: Sequence[Done], names: Sequence[str]) -> tuple[Noted, list[Tally]]:
    """What the events of the units of a workload have shown, and their rows, by the queries' names."""
    rows: dict[str, Tally] = {}
    for each in done:
        own = sorted(each.job.compiled.queries, key=lambda query: query.analysed.index)
        found = tallies_of(each.stats.value, len(own))
        rows |= {query.name: tally for query, tally in zip(own, found, strict=True)}
    return noted_by(done), [rows[name] for name in names]


def unit_notes(schema: Schema, noted: Noted) -> list[str]:
    """What is odd about the times of a job's events."""
    doubt = None if noted.first is None else unit_doubt(noted.first, schema.clock)
    return [] if doubt is None else [doubt]


def _counted(
    job: Job, wanted: Sequence[str], keys: Sequence[str]
) -> tuple[int, dict[str, int], dict[str, dict[str, int]]]:
    """How many events there are, how many of each type, and how many of these have no value of some attributes."""
    columns = job.events.columns
    name = col("type")
    asked = [columns[job.schema.type_column][0].cast("string").alias("type")]
    asked += [columns[each][0].alias(f"k{place}") for place, each in enumerate(keys)]
    missing: list[Column] = [count_if(col(f"k{place}").isNull()).alias(f"n{place}") for place in range(len(keys))]
    grouped = job.events.frame.select(*asked).groupBy("type").agg(count(lit(1)).alias("events"), *missing)
    rows = grouped.orderBy(~name.isin(list(wanted)), name).limit(len(wanted) + MOST_TYPES).collect()
    found = [row for row in rows if row["type"] is not None]
    types = {row["type"]: row["events"] for row in found}
    without = {each: {row["type"]: row[f"n{place}"] for row in found} for place, each in enumerate(keys)}
    return sum(row["events"] for row in rows), types, without


@dataclass
class _Events:
    """The events of a job, which are perhaps read once more on the driver."""

    job: Job
    schema: Schema
    rows: int | None
    opened: Callable[[Sequence[str]], EventSource] | None

    @property
    def repeatable(self) -> bool:
        return self.opened is not None

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        schema, events = self.job.schema, self.job.events
        names = list(dict.fromkeys([schema.clock.column, schema.type_column, *columns]))
        frame: DataFrame = events.select(names)
        yield from engine_batches(frame.toArrow().to_batches(), names, self.job.shipment.events)

    def rerun(self, workload: Workload, part: Part, most: Most) -> Results | None:
        """The rows of another workload over a part of the events, computed on the driver; None where they are many."""
        if self.opened is None or self.rows is None or self.rows > most.events:
            return None
        options = self.job.shipment.options_by_name
        order = [] if options["order_column"] is None else [options["order_column"]]
        names = [name for name in workload.attributes if name in self.job.schema.columns]
        try:
            return rows_alone(self.opened([*order, *names]), options, workload, part, most)
        except (OSError, pa.ArrowException):  # what was read is gone
            return None


def _of_frame(job: Job, schema: Schema, rows: int | None) -> _Events:
    """The events of a batch."""

    def opened(names: Sequence[str]) -> EventSource:
        table = pa.Table.from_batches(list(found.batches(names)))
        return open_events(table, **{name: getattr(job.shipment.options, name) for name in ZONED})

    found = _Events(job, schema, rows, opened)
    return found
