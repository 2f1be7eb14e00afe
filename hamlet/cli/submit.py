"""``hamlet submit``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from hamlet.cli.heard import OF_POLICIES, STREAMING, refuse_unheard
from hamlet.cli.loading import load
from hamlet.cli.monitor import POLICY_OPTIONS, SIGNATURE
from hamlet.cli.notations import (
    QUERIES,
    checkpoint_of,
    extension_of,
    following,
    notation_of,
    say_notes,
    settings_of,
)
from hamlet.cli.options import (
    COLUMN_OPTIONS,
    FILE,
    PERIOD_OPTIONS,
    QUERY,
    READING_OPTIONS,
    REPORT,
    RUN_OPTIONS,
    TIMEZONE,
    WHERE,
    Input,
    Place,
    input_option,
    lateness_option,
    max_memory_option,
    option,
    with_options,
)
from hamlet.cli.progress import summary_line, task_bar
from hamlet.cli.sql import is_sql, tables_of
from hamlet.frontend.files import text_of_file

_OF_BATCHES = ("overwrite", "balance", "products", "semijoin", "report", "trace", "since", "until")
_STREAM_OPTIONS = (
    click.option("--stream", is_flag=True, help="Go on as files are added to the input folder."),
    click.option("--checkpoint", metavar="DIR", type=Place(), help="Where a --stream keeps its place and its state."),
    lateness_option(" Of a --stream."),
    option("late", " Of a --stream."),
    click.option("--trigger", metavar="INTERVAL", help="Time between micro-batches of a --stream: '10 seconds'."),
    click.option(
        "--files-per-batch", metavar="N", type=click.IntRange(min=1), help="Most files that a --stream takes at once."
    ),
    click.option("--available-now", is_flag=True, help="Stop a --stream when all present files have been read."),
    click.option(
        "--verbose",
        is_flag=True,
        help="Say a line per micro-batch of a --stream: events, late ones, bytes kept, files behind, seconds.",
    ),
    click.option(
        "--adaptive",
        is_flag=True,
        help="Move states between the slices of a --stream, between two micro-batches, where one has much more to do "
        "than the others; cut those of a policy anew where one value has.",
    ),
    click.option(
        "--conf", metavar="NAME=VALUE", multiple=True, help="A setting of Spark's own for a --stream; may be repeated."
    ),
    click.option(
        "--log-level",
        type=click.Choice(["ALL", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF"], case_sensitive=False),
        help="What Spark logs in a --stream.",
    ),
)


@click.command(
    "submit",
    short_help="Run a workload as a Spark job, in a batch or as files come.",
    epilog="""\b
    Examples:
      hamlet submit trips.sase --input trips.parquet --output results
      hamlet submit trips.sase --input trips.parquet --output results --query q1 --report trips.html
      hamlet submit reported.mfotl --signature bank.sig --input bank.parquet --output violations
      hamlet submit trips.sase --input hdfs:///trips --output /shared/results --master spark://host:7077
      hamlet submit trips.sase --stream --input incoming/ --output results --checkpoint state --lateness '5 s'
      spark-submit --master yarn "$(python -c 'import hamlet; print(hamlet.__path__[0])')/__main__.py" submit ...
    """,
)
@FILE
@with_options(
    input_option(" Or any URL that Spark can read.", metavar="PATH|URL", required=True),
    click.option(
        "--output",
        "-o",
        metavar="DIR",
        type=Place(),
        required=True,
        help="A new directory that every machine of the cluster sees.",
    ),
    WHERE,
    *PERIOD_OPTIONS,
    QUERY,
    click.option("--master", metavar="URL", help="The Spark master; local[*] unless spark-submit sets another one."),
    click.option(
        "--partitions",
        metavar="N",
        type=click.IntRange(min=1),
        help="Tasks to spread the events over; two per core by default.",
    ),
    click.option(
        "--balance",
        is_flag=True,
        help="Count keys and times first, in one more pass, so that tasks get equal work (heavy keys, giant groups).",
    ),
    max_memory_option(" It applies to each task, and there to each set of queries with the same partition attributes."),
    click.option(
        "--trace",
        metavar="DIR",
        help="Write a record per burst into a new directory that every machine sees, a Parquet file per task: who "
        "shared it, and what the model counted.",
    ),
    REPORT,
    click.option(
        "--products",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
        help="Whether tasks whose events are a time range send matrices instead of events, which is less.",
    ),
    click.option(
        "--semijoin",
        type=click.Choice(["auto", "on", "off"]),
        default="auto",
        show_default=True,
        help="Leave events behind, before they are sent to their tasks, whose keys lack what every pattern needs. Such "
        "keys are found in one more pass: with --balance (auto), always, or never. The results are the same.",
    ),
    *_STREAM_OPTIONS,
    SIGNATURE,
    *POLICY_OPTIONS,
    click.option(
        "--statistics",
        metavar="FILE.json",
        type=click.Path(),
        help="Rates and heavy values of a policy's predicates, which a first scan counts otherwise.",
    ),
    click.option(
        "--slices",
        metavar="N",
        type=click.IntRange(min=1),
        help="Slices that the work is cut into: events by their keys, a policy by its valuations; by default one for "
        "each task.",
    ),
    click.option("--values", is_flag=True, help="Rows of the output streams of a specification, too."),
    *COLUMN_OPTIONS,
    TIMEZONE,
    *READING_OPTIONS,
    *RUN_OPTIONS,
)
def command(
    workload: str,
    source: Input,
    output: str,
    queries: tuple[str, ...],
    quiet: bool,
    stream: bool,
    **options: Any,
) -> None:
    """Run a workload, a policy or a specification as a Spark job; needs pyspark and Java 17 or newer.

    A batch job, or with --stream one that goes on as files are added to the input folder: rows are written once no
    later event can change them, and a job that was killed goes on from its checkpoint.
    """
    if output == "-":
        raise click.UsageError("hamlet submit writes to a directory; hamlet run writes to standard output")
    extension = extension_of(workload)
    refuse_unheard([extension])
    options["output_format"] = options["output_format"] or "parquet"
    if is_sql(workload):
        _match(workload, source, output, quiet, stream, options)
    elif extension != QUERIES:
        _monitor(extension, workload, {**options, "source": source, "quiet": quiet, "output": output, "stream": stream})
    else:
        slices = options.pop("slices")
        options["partitions"] = options["partitions"] or slices
        options = {name: value for name, value in options.items() if name not in (*OF_POLICIES, "values")}
        (_follow if stream else _submit)(workload, source, output, queries, quiet, options)


def _submit(
    workload: str, source: Input, output: str, queries: tuple[str, ...], quiet: bool, options: dict[str, Any]
) -> None:
    """The batch job of a workload."""
    from hamlet import spark  # brings in pyspark, which nothing else needs

    options = {name: value for name, value in options.items() if name not in STREAMING}
    started = time.perf_counter()
    checked, _ = load(workload, None, quiet, {"timezone": options["timezone"]}, queries)
    with task_bar(quiet) as progress:
        stats = spark.submit(checked, source, output, keep=[workload], progress=progress, **options)
    notes = [*stats["notes"], *stats["warnings"]]
    if options["products"] == "always" and not stats["products"]["used"]:
        notes.append(f"events were shuffled, for {stats['products']['reason']}")
    _summed_up({**stats, "notes": notes}, started, quiet)


def _match(workload: str, source: Input, output: str, quiet: bool, stream: bool, options: dict[str, Any]) -> None:
    """A job for a file of SQL with row patterns."""
    checkpoint = checkpoint_of(options) if stream else ""
    from hamlet.spark import patterns

    started = time.perf_counter()
    text, tables = text_of_file(workload, "SQL text"), tables_of(source, options["input_format"])
    given = {name: options[name] for name in ("input_format", "output_format", "delimiter", "missing_columns")}
    if stream:
        given |= {name: options[name] for name in ("lateness", "late", "bad_rows")}
        given |= {"slices": options["slices"] or options["partitions"], **following(options, quiet)}
        stats = patterns.submit_stream(text, tables, output, checkpoint, source=workload, **given)
    else:
        given |= {name: options[name] for name in ("master", "overwrite")}
        stats = patterns.submit(text, tables, output, source=workload, keep=[workload], **given)
    _summed_up(stats, started, quiet)


def _monitor(extension: str, path: str, options: dict[str, Any]) -> None:
    """A job for a policy or a specification."""
    settings = settings_of(options)
    started = time.perf_counter()
    stats = notation_of(extension).submit([path], settings, options)
    _summed_up(stats, started, settings.quiet)


def _summed_up(stats: Mapping[str, Any], started: float, quiet: bool) -> None:
    """Say what a job has done; a continuous one has said what it found."""
    if not quiet:
        say_notes(stats.get("notes", ()), "batches" in stats)
        click.echo(summary_line(stats, time.perf_counter() - started), err=True)


def _follow(
    workload: str, source: Input, output: str, queries: tuple[str, ...], quiet: bool, options: dict[str, Any]
) -> None:
    """The continuous job of a workload, until it is stopped."""
    checkpoint = checkpoint_of(options)
    from hamlet import spark

    checked, _ = load(workload, None, quiet, {"timezone": options["timezone"]}, queries)
    if not quiet and options["output_format"] == "parquet" and options["count_type"] == "auto":
        click.echo(
            "note: COUNT and SUM are text in the files of a --stream, unless --count-type says what fits", err=True
        )
    given = {name: value for name, value in options.items() if name not in (*_OF_BATCHES, "checkpoint")}
    found = spark.submit_stream(checked, source, output, checkpoint, **{**given, **following(options, quiet)})
    if not quiet:
        late = f", {found['late_events']:,} late" if found["late_events"] else ""
        click.echo(f"{found['events']:,} events in {found['batches']:,} micro-batches{late}", err=True)
