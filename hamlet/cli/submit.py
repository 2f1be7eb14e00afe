"""``hamlet submit``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from hamlet.cli.heard import refuse_unheard
from hamlet.cli.loading import load
from hamlet.cli.monitor import POLICY_OPTIONS, SIGNATURE
from hamlet.cli.notations import (
    QUERIES,
    checkpoint_of,
    extension_of,
    following,
    notation_of,
    only_for,
    refuse_timezone,
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
    input_option,
    max_memory_option,
    option,
    with_options,
)
from hamlet.cli.progress import summary_line, task_bar
from hamlet.cli.sql import is_sql, tables_of, text_of

_STREAM_DEFAULTS = {
    "checkpoint": None,
    "lateness": "0",
    "late": "error",
    "trigger": None,
    "files_per_batch": None,
    "available_now": False,
    "verbose": False,
    "adaptive": False,
    "conf": (),
    "log_level": None,
}
_POLICY_DEFAULTS = {
    "signature": None,
    "negate": False,
    "open_end": False,
    "verdicts": "satisfied",
    "mode": "local",
    "time_points": "step",
    "ignore_unknown": False,
    "statistics": None,
    "slices": None,
}
_WORKLOAD_DEFAULTS = {
    "where": None,
    "since": None,
    "until": None,
    "balance": False,
    "trace": None,
    "report": None,
    "products": "auto",
    "semijoin": "auto",
    "sharing": "dynamic",
    "benefit": "measured",
    "numbers": "exact",
    "count_type": "auto",
    "null_keys": "keep",
    "threads": 1,
}  # options that only trend queries know
_STREAM_OPTIONS = (
    click.option("--stream", is_flag=True, help="Go on as files are added to the input folder."),
    click.option("--checkpoint", metavar="DIR", help="Where a --stream keeps its place and its state."),
    option("lateness", " Of a --stream.", default=_STREAM_DEFAULTS["lateness"]),
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
        "--output", "-o", metavar="DIR", required=True, help="A new directory that every machine of the cluster sees."
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
        help="Slices: of a policy's valuations, and of all that a --stream runs; by default one for each task.",
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
    if is_sql(workload):
        _match(workload, source, output, quiet, stream, options)
        return
    refuse_unheard([extension_of(workload)])
    own = {name: options.pop(name) for name in _POLICY_DEFAULTS}
    extension = extension_of(workload)
    changed = {name: own[name] != default for name, default in _POLICY_DEFAULTS.items() if name != "slices"}
    changed["slices"] = own["slices"] is not None and not stream
    only_for([extension], changed, ".mfotl", "policies")
    period = {"since": options.pop("since"), "until": options.pop("until")}
    if extension != QUERIES:
        refuse_timezone(workload, options)
        if not stream:
            _refuse_streaming(options)
        given = {**options, **own, **period, "source": source, "quiet": quiet}
        _monitor(extension, workload, given, output, stream, queries)
        return
    options |= period
    options["partitions"] = options["partitions"] or own["slices"]
    only_for([".sase"], {"values": options.pop("values")}, ".lola", "specifications")
    streaming = {name: options.pop(name) for name in _STREAM_DEFAULTS}
    if stream:
        _follow(workload, source, output, queries, quiet, streaming, options)
        return
    _refuse_streaming(streaming)
    from hamlet import spark  # brings in pyspark, which nothing else needs

    started = time.perf_counter()
    checked, _ = load(workload, None, quiet, {"timezone": options["timezone"]}, queries)
    options["output_format"] = options["output_format"] or "parquet"
    with task_bar(quiet) as progress:
        stats = spark.submit(checked, source, output, keep=[workload], progress=progress, **options)
    if not quiet:
        for note in [*stats["notes"], *stats["warnings"]]:
            click.echo(f"note: {note}", err=True)
        if options["products"] == "always" and not stats["products"]["used"]:
            click.echo(f"note: events were shuffled, for {stats['products']['reason']}", err=True)
        click.echo(summary_line(stats, time.perf_counter() - started), err=True)


def _match(workload: str, source: Input, output: str, quiet: bool, stream: bool, options: dict[str, Any]) -> None:
    """A job for a file of SQL with row patterns."""
    context = click.get_current_context()
    heard = {"workload", "source", "output", "quiet", "stream", "master", "input_format", "output_format"}
    heard |= {*_STREAM_DEFAULTS, "slices", "partitions", "bad_rows"} if stream else {"overwrite"}
    heard |= {"missing_columns", "delimiter"}
    for parameter in context.command.params:
        name = str(parameter.name)
        if name not in heard and context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} would do nothing: the text says what row patterns read")
    if stream:
        _match_stream(workload, source, output, quiet, options)
        return
    _refuse_streaming({name: options[name] for name in _STREAM_DEFAULTS})
    from hamlet.spark.patterns import submit

    started = time.perf_counter()
    stats = submit(
        text_of(workload),
        tables_of(source, options["input_format"]),
        output,
        source=workload,
        master=options["master"],
        input_format=options["input_format"],
        output_format=options["output_format"] or "parquet",
        overwrite=options["overwrite"],
        delimiter=options["delimiter"],
        keep=[workload],
        missing_columns=options["missing_columns"],
    )
    _summed_up(stats, started, quiet)


def _match_stream(workload: str, source: Input, output: str, quiet: bool, options: dict[str, Any]) -> None:
    """The continuous job of a file of SQL, until it is stopped."""
    checkpoint = checkpoint_of(options)
    from hamlet.spark.patterns import submit_stream

    started = time.perf_counter()
    lateness = options["lateness"]
    stats = submit_stream(
        text_of(workload),
        tables_of(source, options["input_format"]),
        output,
        checkpoint,
        source=workload,
        slices=options["slices"] or options["partitions"],
        lateness=int(lateness) if lateness.isdecimal() else lateness,
        late=options["late"],
        input_format=options["input_format"],
        delimiter=options["delimiter"],
        bad_rows=options["bad_rows"],
        missing_columns=options["missing_columns"],
        output_format=options["output_format"] or "parquet",
        **following(options, quiet),
    )
    _summed_up(stats, started, quiet)


def _option(name: str) -> str:
    """How an option is written."""
    return {"since": "from", "until": "to"}.get(name, name.replace("_", "-"))


def _refuse_streaming(given: dict[str, Any]) -> None:
    """Refuse what only a --stream reads."""
    other = next((name for name, default in _STREAM_DEFAULTS.items() if given[name] != default), None)
    if other is not None:
        raise click.UsageError(f"--{other.replace('_', '-')} belongs to --stream")


def _monitor(
    extension: str, path: str, options: dict[str, Any], output: str, stream: bool, queries: tuple[str, ...]
) -> None:
    """A job for a policy or a specification."""
    of_lola = ("where", "since", "until")
    known = [name for name in _WORKLOAD_DEFAULTS if extension != ".lola" or name not in of_lola]
    given = {name: options.pop(name) for name in known}
    other = next((name for name in known if given[name] != _WORKLOAD_DEFAULTS[name]), None)
    if other is not None or queries:
        raise click.UsageError(f"--{_option(other or 'query')} is for workloads of trend queries (.sase)")
    settings = settings_of(options)
    started = time.perf_counter()
    options |= {"output": output, "stream": stream}
    options["output_format"] = options.get("output_format") or "parquet"
    stats = notation_of(extension).submit([path], settings, options)
    _summed_up(stats, started, settings.quiet)


def _summed_up(stats: Mapping[str, Any], started: float, quiet: bool) -> None:
    """Say what a job has done; a continuous one has said what it found."""
    if not quiet:
        for note in stats.get("notes", ()) if "batches" not in stats else ():
            click.echo(f"note: {note}", err=True)
        click.echo(summary_line(stats, time.perf_counter() - started), err=True)


def _follow(
    workload: str,
    source: Input,
    output: str,
    queries: tuple[str, ...],
    quiet: bool,
    streaming: dict[str, Any],
    options: dict[str, Any],
) -> None:
    """The continuous job, until it is stopped."""
    for name, what in (("report", "a page about"), ("trace", "a trace of")):
        if options.pop(name) is not None:
            raise click.UsageError(
                f"--{name} tells of a job that has ended, and --stream goes on; for {what} the files that are there, "
                f"submit them without --stream, or give them to hamlet run --{name}"
            )
    for name, written in (("since", "--from"), ("until", "--to")):
        if options.pop(name) is not None:
            raise click.UsageError(f"{written} belongs to a batch; --where can compare the time of a --stream")
    if options.pop("products") != "auto":
        raise click.UsageError("--products belongs to a batch; --stream sends every event to its slice")
    if options.pop("semijoin") == "on":
        raise click.UsageError("--semijoin belongs to a batch; --stream does not know what keys will have")
    checkpoint = checkpoint_of(options | streaming)
    del options["overwrite"], options["balance"]
    from hamlet import spark

    lateness = streaming["lateness"]
    options["output_format"] = options["output_format"] or "parquet"
    options["lateness"] = int(lateness) if lateness.isdecimal() else lateness
    checked, _ = load(workload, None, quiet, {"timezone": options["timezone"]}, queries)
    if not quiet and options["output_format"] == "parquet" and options["count_type"] == "auto":
        click.echo(
            "note: COUNT and SUM are text in the files of a --stream, unless --count-type says what fits", err=True
        )
    options |= {"late": streaming["late"], **following({"master": options["master"], **streaming}, quiet)}
    found = spark.submit_stream(checked, source, output, checkpoint, **options)
    if not quiet:
        late = f", {found['late_events']:,} late" if found["late_events"] else ""
        click.echo(f"{found['events']:,} events in {found['batches']:,} micro-batches{late}", err=True)
