"""``hamlet submit``."""

from __future__ import annotations

import time
from typing import Any

import click

from hamlet.cli.loading import load
from hamlet.cli.options import COLUMN_OPTIONS, INPUT_HELP, RUN_OPTIONS, WORKLOAD, with_options
from hamlet.cli.progress import summary_line, task_bar


@click.command(
    "submit",
    short_help="Run a workload as a Spark batch job.",
    epilog="""\b
    Examples:
      hamlet submit trips.sase --input trips.parquet --output results
      hamlet submit trips.sase --input hdfs:///trips --output /shared/results --master spark://host:7077
      spark-submit --master yarn "$(python -c 'import hamlet; print(hamlet.__path__[0])')/__main__.py" submit ...
    """,
)
@WORKLOAD
@with_options(
    click.option("--input", "-i", "source", required=True, help=INPUT_HELP + " Or any URL that Spark can read."),
    click.option(
        "--output", "-o", metavar="DIR", required=True, help="A new directory that every machine of the cluster sees."
    ),
    click.option("--master", metavar="URL", help="The Spark master; local[*] unless spark-submit sets another one."),
    click.option(
        "--partitions", type=click.IntRange(min=1), help="Tasks to spread the events over; two per core by default."
    ),
    *COLUMN_OPTIONS,
    *RUN_OPTIONS,
)
def command(workload: str, source: str, output: str, quiet: bool, **options: Any) -> None:
    """Run a workload as a Spark batch job; needs pyspark and Java 17 or newer."""
    if output == "-":
        raise click.UsageError("hamlet submit writes to a directory; hamlet run writes to standard output")
    from hamlet import spark  # brings in pyspark, which nothing else needs

    started = time.perf_counter()
    checked, _ = load(workload, None, quiet, {})
    options["output_format"] = options["output_format"] or "parquet"
    with task_bar(quiet) as progress:
        stats = spark.submit(checked, source, output, keep=[workload], progress=progress, **options)
    if not quiet:
        click.echo(summary_line(stats, time.perf_counter() - started), err=True)
