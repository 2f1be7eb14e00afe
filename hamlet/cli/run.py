"""``hamlet run``."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import click

from hamlet.cli.loading import load
from hamlet.cli.options import COLUMN_OPTIONS, INPUT_HELP, RUN_OPTIONS, WORKLOAD, with_options
from hamlet.cli.progress import progress_bar, summary_line
from hamlet.cli.show import show_tables
from hamlet.input.events import EventSource
from hamlet.output.files import check_destination, check_format, stream_out, write
from hamlet.output.result import Results
from hamlet.run import run as run_workload
from hamlet.workload import Workload


@click.command(
    "run",
    epilog="""\b
    Examples:
      hamlet run trips.sase --input trips.parquet
      hamlet run trips.sase --input trips.csv --output results --output-format parquet
      hamlet run trips.sase --input trips.jsonl --time-column at --time-unit ms --output - --output-format csv
    """,
)
@WORKLOAD
@with_options(
    click.option("--input", "-i", "source", type=click.Path(), required=True, help=INPUT_HELP),
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
    *COLUMN_OPTIONS,
    *RUN_OPTIONS,
)
def command(workload: str, source: str, output: str | None, output_format: str | None, **options: Any) -> None:
    """Run a workload over events in this process and print or write the result rows."""
    if output is None and output_format is not None:
        raise click.UsageError("--output-format needs --output: a directory, or - for standard output")
    overwrite, quiet = options.pop("overwrite"), options.pop("quiet")
    chosen = check_format(output_format or ("json" if output == "-" else "parquet"), to_stream=output == "-")
    if output not in (None, "-"):
        check_destination(str(output), overwrite, keep=[source, workload])
    started = time.perf_counter()
    columns = {name: options[name] for name in ("time_column", "type_column", "order_column", "time_unit")}
    checked, events = load(workload, source, quiet, {**columns, "input_format": options.pop("input_format")})
    results = _compute(checked, events, quiet, options)
    _deliver(results, output, chosen, overwrite, keep=[source, workload])
    if not quiet:
        click.echo(summary_line({**results.stats, "rows": len(results)}, time.perf_counter() - started), err=True)


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
