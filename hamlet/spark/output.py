"""Result files of a batch job."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from hamlet.findings import Tally
from hamlet.output.files import part_file
from hamlet.output.place import folder_name
from hamlet.output.tables import CountTypes
from hamlet.spark.counts import fitted, notes_of
from hamlet.spark.job import ROW, Job
from hamlet.spark.rows import write_files
from hamlet.spark.session import task_number
from hamlet.spark.slices import Batches, mapped

FEWEST_ROWS, MOST_ROWS = 50_000, 1_000_000  # of a result file, where there are more than one task can be quick with


def written(job: Job, rows: DataFrame, total: int, folder: Path, output_format: str) -> dict[str, Any]:
    """Write partial rows as result files.

    Returns
    -------
    dict
        ``rows``, ``infinite_values``, ``notes`` about the types of columns, and under ``tallies`` what is to be known
        of the rows of each query (`hamlet.findings.Tally`).
    """
    names, columns = job.shipment.workload.names, job.columns
    for name in names:
        (folder / folder_name(name)).mkdir()
    kinds: Sequence[CountTypes] = [job.shipment.options.count_type] * len(columns)
    notes: list[str] = []
    if job.shipment.options.count_type == "auto" and output_format == "parquet":
        kinds = types = fitted(job, rows)
        notes = notes_of(names, columns, types)
    cores = rows.sparkSession.sparkContext.defaultParallelism
    files = max(1, math.ceil(total / min(max(total // (2 * cores), FEWEST_ROWS), MOST_ROWS)))
    ordered = rows.repartitionByRange(files, *job.spread).sortWithinPartitions(*ROW)
    write = partial(write_files, job.shipment, str(folder), output_format, types=kinds)

    def task(batches: Batches) -> Iterator[pa.RecordBatch]:
        return write(f"{task_number():05}", batches=batches)

    files_of_tasks = mapped(ordered, task, "query int, rows long, infinite long, most string").collect()
    for unfinished in folder.glob("query=*/.part-*"):  # of a task that was run twice
        unfinished.unlink()
    clock = job.schema.clock
    for place in set(range(len(names))) - {each["query"] for each in files_of_tasks}:
        path = folder / folder_name(names[place]) / f"part-00000.{output_format}"
        with part_file(path, output_format, columns[place], clock, kinds[place]):
            pass
    tallies = [Tally() for _ in columns]
    for each in files_of_tasks:
        tallies[each["query"]] = tallies[each["query"]].plus(Tally(each["rows"], int(each["most"], 16)))
    return {
        "tallies": tallies,
        "rows": sum(each["rows"] for each in files_of_tasks),
        "infinite_values": sum(each["infinite"] for each in files_of_tasks),
        "notes": notes,
    }
