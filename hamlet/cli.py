"""The command line: ``hamlet check``, ``explain``, ``run``, ``submit`` and ``calibrate``.

Exit codes: 0 done; 2 the workload, the data or the options are wrong (the message says how); 130 interrupted; 1
anything else. Results go to standard output, all else to standard error. Source: DESIGN.md §5.
"""

from __future__ import annotations

import io
import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from hamlet.cli_calibrate import command as calibrate
from hamlet.cli_show import progress_bar, show_tables, summary_line, task_bar
from hamlet.errors import HamletError, JobError, WorkloadError
from hamlet.explain import explain as explain_workload
from hamlet.input.events import EventSource, open_events
from hamlet.output.files import check_destination, check_format, stream_out, write
from hamlet.output.result import Results
from hamlet.run import run as run_workload
from hamlet.version import __version__
from hamlet.workload import Workload

Command = TypeVar("Command", bound=Callable[..., Any])

_WORKLOAD = click.argument("workload", type=click.Path(exists=True, dir_okay=False), metavar="WORKLOAD.sase")
_INPUT_HELP = "Events: a Parquet, CSV or JSON lines file, or a folder of them."
_QUIET = click.option("--quiet", "-q", is_flag=True, help="Print results and errors only.")
_COLUMN_OPTIONS = (
    click.option(
        "--input-format",
        type=click.Choice(["parquet", "csv", "json"]),
        help="Format of the input; by default its extension says.",
    ),
    click.option("--time-column", default="time", show_default=True, help="The column with the time of the event."),
    click.option("--type-column", default="type", show_default=True, help="The column with the type of the event."),
    click.option(
        "--order-column", metavar="COLUMN", help="A column that orders events of equal time; without, they have none."
    ),
    click.option(
        "--time-unit",
        type=click.Choice(["s", "ms", "us", "ns"]),
        default="s",
        show_default=True,
        help="What 1 means in an integer time column; timestamps know their own unit.",
    ),
)
_RUN_OPTIONS = (
    click.option("--output-format", type=click.Choice(["json", "csv", "parquet"]), help="Format of the results."),
    click.option(
        "--sharing",
        type=click.Choice(["dynamic", "static", "never"]),
        default="dynamic",
        show_default=True,
        help="Share work among queries: decide for every burst, always, or never. The results are the same.",
    ),
    click.option(
        "--benefit",
        type=click.Choice(["measured", "paper"]),
        default="measured",
        show_default=True,
        help="The cost model that decides: measured on this engine, or the paper's.",
    ),
    click.option(
        "--numbers",
        type=click.Choice(["exact", "float"]),
        default="exact",
        show_default=True,
        help="Exact integers of any size, or faster numbers with a relative error below 1e-9.",
    ),
    click.option(
        "--count-type",
        type=click.Choice(["string", "int64", "double", "decimal"]),
        default="string",
        show_default=True,
        help="What COUNT and SUM are in Parquet: exact digits, a number that must fit, or a double that may be inf.",
    ),
    click.option(
        "--threads", type=click.IntRange(min=1), default=1, show_default=True, help="Threads to compute with."
    ),
    click.option("--overwrite", is_flag=True, help="Replace an output directory that is not empty."),
    _QUIET,
)


def _with(*options: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """A decorator that puts several options on a command, in this order in its help."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
    Examples:
      hamlet check trips.sase --input trips.parquet
      hamlet run trips.sase --input trips.parquet
      hamlet run trips.sase --input trips.csv --output - | head
      hamlet submit trips.sase --input trips.parquet --output results --master 'local[*]'
    """,
)
@click.version_option(__version__, "-V", "--version", prog_name="hamlet", message="%(prog)s %(version)s")
def cli() -> None:
    """Count and aggregate event trends: many Kleene-pattern queries over one stream, exactly."""


cli.add_command(calibrate)


@cli.command()
def version() -> None:
    """Print the version."""
    click.echo(f"hamlet {__version__}")


@cli.command(
    epilog="""\b
    Examples:
      hamlet check trips.sase
      hamlet check trips.sase --input trips.parquet --type-column event
    """
)
@_WORKLOAD
@_with(click.option("--input", "-i", "source", type=click.Path(), help=_INPUT_HELP), *_COLUMN_OPTIONS, _QUIET)
def check(workload: str, source: str | None, quiet: bool, **columns: Any) -> None:
    """Report all errors of a workload, with the input's columns if there is an input."""
    checked, _ = _load(workload, source, quiet, columns)
    if not quiet:
        count = len(checked.names)
        click.echo(f"{workload}: {count} quer{'y' if count == 1 else 'ies'}, no errors")


@cli.command(
    epilog="""\b
    Examples:
      hamlet explain trips.sase
      hamlet explain trips.sase --format dot | dot -Tsvg > trips.svg
    """
)
@_WORKLOAD
@_with(
    click.option("--format", "shown_as", type=click.Choice(["text", "dot", "json"]), default="text", show_default=True),
    click.option("--input", "-i", "source", type=click.Path(), help=_INPUT_HELP),
    *_COLUMN_OPTIONS,
    _QUIET,
)
def explain(workload: str, shown_as: str, source: str | None, quiet: bool, **columns: Any) -> None:
    """Show how a workload will run: templates, sharing groups, panes, cost and memory class of each query."""
    checked, events = _load(workload, source, quiet, columns)
    click.echo(explain_workload(checked, None if events is None else events.schema, shown_as))


@cli.command(
    epilog="""\b
    Examples:
      hamlet run trips.sase --input trips.parquet
      hamlet run trips.sase --input trips.csv --output results --output-format parquet
      hamlet run trips.sase --input trips.jsonl --time-column at --time-unit ms --output - --output-format csv
    """
)
@_WORKLOAD
@_with(
    click.option("--input", "-i", "source", type=click.Path(), required=True, help=_INPUT_HELP),
    click.option(
        "--output",
        "-o",
        metavar="DIR|-",
        help="A new directory (parquet unless --output-format says otherwise), or - for standard output (json). "
        "Without, tables of the first 20 rows are printed.",
    ),
    click.option(
        "--max-memory",
        metavar="SIZE",
        help="Stop, and say which query and group holds the most, before the run takes more: '2 GiB', '500 MB'. "
        "Counted is what queries keep between events, not the input batch or the results.",
    ),
    click.option(
        "--trace",
        metavar="FILE",
        type=click.Path(),
        help="Write a record per burst to a .parquet or .jsonl file: who shared it, and what the model counted.",
    ),
    *_COLUMN_OPTIONS,
    *_RUN_OPTIONS,
)
def run(workload: str, source: str, output: str | None, output_format: str | None, **options: Any) -> None:
    """Run a workload over events in this process and print or write the result rows."""
    if output is None and output_format is not None:
        raise click.UsageError("--output-format needs --output: a directory, or - for standard output")
    overwrite, quiet = options.pop("overwrite"), options.pop("quiet")
    chosen = check_format(output_format or ("json" if output == "-" else "parquet"), to_stream=output == "-")
    if output not in (None, "-"):
        check_destination(str(output), overwrite, keep=[source, workload])
    started = time.perf_counter()
    columns = {name: options[name] for name in ("time_column", "type_column", "order_column", "time_unit")}
    checked, events = _load(workload, source, quiet, {**columns, "input_format": options.pop("input_format")})
    results = _compute(checked, events, quiet, options)
    _deliver(results, output, chosen, overwrite, keep=[source, workload])
    if not quiet:
        click.echo(summary_line({**results.stats, "rows": len(results)}, time.perf_counter() - started), err=True)


@cli.command(
    epilog="""\b
    Examples:
      hamlet submit trips.sase --input trips.parquet --output results
      hamlet submit trips.sase --input hdfs:///trips --output /shared/results --master spark://host:7077
      spark-submit --master yarn "$(python -c 'import hamlet; print(hamlet.__path__[0])')/__main__.py" submit ...
    """
)
@_WORKLOAD
@_with(
    click.option("--input", "-i", "source", required=True, help=_INPUT_HELP + " Or any URL that Spark can read."),
    click.option(
        "--output", "-o", metavar="DIR", required=True, help="A new directory that every machine of the cluster sees."
    ),
    click.option("--master", metavar="URL", help="The Spark master; local[*] unless spark-submit sets another one."),
    click.option(
        "--partitions", type=click.IntRange(min=1), help="Tasks to spread the events over; two per core by default."
    ),
    *_COLUMN_OPTIONS,
    *_RUN_OPTIONS,
)
def submit(workload: str, source: str, output: str, quiet: bool, **options: Any) -> None:
    """Run a workload as a Spark batch job; needs pyspark and Java 17 or newer."""
    if output == "-":
        raise click.UsageError("hamlet submit writes to a directory; hamlet run writes to standard output")
    from hamlet import spark  # brings in pyspark, which nothing else needs

    started = time.perf_counter()
    checked, _ = _load(workload, None, quiet, {})
    options["output_format"] = options["output_format"] or "parquet"
    with task_bar(quiet) as progress:
        stats = spark.submit(checked, source, output, keep=[workload], progress=progress, **options)
    if not quiet:
        click.echo(summary_line(stats, time.perf_counter() - started), err=True)


def _load(
    workload: str, source: str | None, quiet: bool, columns: dict[str, Any]
) -> tuple[Workload, EventSource | None]:
    """The checked workload, and the opened input if there is one; warnings are printed."""
    loaded = Workload.from_file(workload)
    warnings = list(loaded.warnings)
    events = None
    if source is not None:
        events = open_events(source, **columns)
        warnings += loaded.check(events.schema)
    if warnings and not quiet:
        click.echo("\n".join(each.format() for each in dict.fromkeys(warnings)), err=True)
    return loaded, events


def _compute(workload: Workload, events: EventSource | None, quiet: bool, options: dict[str, Any]) -> Results:
    assert events is not None
    with progress_bar(quiet, events.rows) as progress:
        return run_workload(workload, events, progress=progress, **options)


def _deliver(results: Results, output: str | None, output_format: str, overwrite: bool, keep: Sequence[str]) -> None:
    """Results to where they were asked for."""
    try:
        if output is None:
            show_tables(results)
        elif output == "-":
            # Whatever the terminal's encoding is, files are UTF-8 with line feeds.
            text = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n")
            try:
                stream_out(results, text, output_format)
            finally:
                text.detach()
        else:
            write(results, output, output_format, overwrite, keep)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe has seen enough; what is still buffered must not be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise click.exceptions.Exit(0) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        What stands behind the program's name; by default those of the process.

    Returns
    -------
    int
        The exit code.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = cli.main(arguments, prog_name="hamlet", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except HamletError as error:
        text = str(error) if isinstance(error, WorkloadError) else f"error: {error}"
        click.echo(text, err=True)
        return 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return 130
    except JobError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    except MemoryError:
        click.echo("error: out of memory", err=True)
        return 1
    except OSError as error:
        click.echo(f"error: {error}", err=True)
        return 1
    except Exception as error:
        if os.environ.get("HAMLET_DEBUG") == "1":
            traceback.print_exc()
        click.echo(
            f"error: {type(error).__name__}: {error}\n"
            "this is a bug in hamlet; HAMLET_DEBUG=1 shows where, please report it",
            err=True,
        )
        return 1


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Python's warnings as the command line says everything: one line, without a place in the program."""
    click.echo(f"warning: {message}", err=True)
