"""``hamlet run``."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from hamlet.cli.heard import refuse_unheard
from hamlet.cli.live_options import LIVE_OPTIONS, Destinations, Live, States, is_live, live_of, refuse_live
from hamlet.cli.loading import load
from hamlet.cli.notations import is_monitored, say_notes
from hamlet.cli.options import (
    COLUMN_OPTIONS,
    LATENESS,
    OUTPUT,
    PERIOD_OPTIONS,
    QUERY,
    READING_OPTIONS,
    REPORT,
    RUN_OPTIONS,
    TIMEZONE,
    WHERE,
    Input,
    input_option,
    inputs_of,
    max_memory_option,
    with_options,
)
from hamlet.cli.progress import progress_bar, summary_line
from hamlet.cli.remarks import doubts, folder_doubt
from hamlet.cli.sql import is_sql, run_statements
from hamlet.engine.live_filter import filter_of
from hamlet.frontend.files import text_of_file
from hamlet.frontend.time_column import called
from hamlet.input.events import EventSource
from hamlet.input.live.lines import LineForm
from hamlet.output.files import check_format, stream_out, write
from hamlet.output.place import check_beside, check_destination
from hamlet.output.query_part import dated
from hamlet.output.result import Results
from hamlet.parallel.run import run as run_workload
from hamlet.planner.workload import Workload
from hamlet.runtime.definitions import COLUMNS, READING, ZONED


@click.command(
    "run",
    short_help="Run a workload over events in this process.",
    epilog="""\b
    Examples:
      hamlet run trips.sase --input trips.parquet
      hamlet run trips.sase --input trips.parquet --query q1 --limit 5 --where "district = 'Soho'"
      hamlet run trips.sase --input trips.csv --output results --output-format parquet
      hamlet run trips.sase --input trips.parquet --output results --report trips.html
      hamlet run trips.sase --input trips.jsonl --time-column at --time-unit ms --output - --output-format csv
    """,
)
@click.argument("workload", type=click.Path(), metavar="WORKLOAD.sase|TEXT.sql")
@with_options(
    input_option(required=True),
    OUTPUT,
    WHERE,
    QUERY,
    click.option(
        "--limit",
        metavar="N",
        type=click.IntRange(min=0),
        help="At most N rows of each query. Without it, a table shows 20 and files get all.",
    ),
    click.option(
        "--dates",
        is_flag=True,
        help="Show windows of integer times as dates, in tables and with --output -: the times are since 1970, UTC.",
    ),
    max_memory_option(),
    click.option(
        "--trace",
        metavar="FILE",
        type=click.Path(),
        help="Write a record per burst to a .parquet or .jsonl file: who shared it, and what the model counted.",
    ),
    REPORT,
    *PERIOD_OPTIONS,
    *COLUMN_OPTIONS,
    TIMEZONE,
    *READING_OPTIONS,
    *LATENESS,
    *LIVE_OPTIONS,
    *RUN_OPTIONS,
)
def command(
    workload: str,
    source: Input,
    outputs: tuple[str, ...],
    output_format: str | None,
    queries: tuple[str, ...],
    where: str | None,
    since: str | None,
    until: str | None,
    limit: int | None,
    dates: bool,
    **options: Any,
) -> int:
    """Run a workload, or a file of SQL with row patterns, in this process and print or write the rows."""
    if is_sql(workload):
        options["dialect"] = "duckdb"
        return run_statements(
            text_of_file(workload, "SQL text"), workload, source, outputs, output_format, limit, options
        )
    if is_monitored(workload):
        raise click.UsageError(f"hamlet run counts the trends of a workload; hamlet monitor runs {workload}")
    live, output = live_of(options), outputs[0] if outputs else None
    lateness = {name: options.pop(name) for name in ("lateness", "late")}
    whole = any(options[name] is not None for name in ("trace", "report")) or limit is not None or dates
    goes_on = is_live(source, outputs, live, options["input_format"], whole or options["threads"] > 1)
    refuse_unheard([".sase"], live=goes_on)
    if goes_on:
        refuse_live({"trace": options["trace"], "report": options["report"], "limit": limit, "dates": dates})
        destinations = Destinations(outputs, output_format, options.pop("overwrite"), [*inputs_of(source), workload])
        return _follow(workload, source, live, destinations, (since, until, where, queries), {**options, **lateness})
    overwrite, quiet = options.pop("overwrite"), options.pop("quiet")
    chosen = check_format(output_format or ("json" if output == "-" else "parquet"), to_stream=output == "-")
    if output not in (None, "-"):
        check_destination(str(output), overwrite, keep=[*inputs_of(source), workload])
        for name in ("trace", "report"):
            check_beside(options[name], f"--{name}", str(output))
        doubt = folder_doubt(str(output), output_format)
        say_notes([] if doubt is None else [doubt], quiet)
    started = time.perf_counter()
    columns = {name: options[name] for name in ZONED}
    columns |= {name: options.pop(name) for name in READING}
    checked, events = load(workload, source, quiet, columns, queries)
    assert events is not None
    results = _compute(checked, events, quiet, {**options, "since": since, "until": until, "where": where})
    if limit is not None and output is not None:
        results = _first(results, limit)
    if output is None:
        from hamlet.cli.show import SHOWN_ROWS, show_tables  # brings in rich

        show_tables(results, SHOWN_ROWS if limit is None else limit, dates)
    elif output == "-":
        _stream_out(dated(results) if dates else results, chosen)
    else:
        write(results, output, chosen, overwrite, keep=[*inputs_of(source), workload])
    sys.stdout.flush()  # before the summary
    if not quiet:
        if output not in (None, "-") and chosen == "parquet":
            say_notes(results.type_notes(), quiet)
        say_notes(results.run_warnings, quiet)
        click.echo(summary_line({**results.stats, "rows": len(results)}, time.perf_counter() - started), err=True)
    return 0


def _follow(
    workload: str,
    source: Input,
    live: Live,
    destinations: Destinations,
    chosen: tuple[str | None, str | None, str | None, Sequence[str]],
    options: dict[str, Any],
) -> int:
    """Run a workload over a stream that does not end."""
    from hamlet.engine.tenant import QueryTenant

    since, until, where, queries = chosen
    quiet, form, bad_rows = (options.pop(name) for name in ("quiet", "input_format", "bad_rows"))
    delimiter = options.pop("delimiter")
    for name in ("trace", "report", "missing_columns"):
        options.pop(name)
    loaded, _ = load(workload, None, quiet, {}, queries)
    columns = {name: options[name] for name in COLUMNS}

    def tenants(states: States) -> list[QueryTenant]:
        chosen = filter_of(where, since, until, **columns)
        saved = next(states, None)
        return [QueryTenant(loaded, options, chosen=chosen, names=live.names, delimiter=delimiter, saved=saved)]

    lines = LineForm(form, called(columns["time_column"]), columns["time_unit"], live.names)
    from hamlet.cli.live import drive  # with all that reads and writes streams

    code, _ = drive(tenants, source, destinations, live, bad_rows=bad_rows, lines=lines, quiet=quiet)
    return code


def _compute(workload: Workload, events: EventSource, quiet: bool, options: dict[str, Any]) -> Results:
    with progress_bar(quiet, events.rows) as progress:
        return run_workload(workload, events, progress=None if quiet else _doubting(events, progress), **options)


def _doubting(events: EventSource, progress: Callable[[int], None] | None) -> Callable[[int], None]:
    """The progress of a run that says after its first batch, not when all is done, what is odd about the times."""
    told = False

    def advance(done: int) -> None:
        nonlocal told
        if not told and events.sample is not None:
            told = True
            for line in doubts(events):
                click.echo(line, err=True)
        if progress is not None:
            progress(done)

    return advance


def _first(results: Results, limit: int) -> Results:
    """The first rows of every query."""
    some = [each.cut(limit) for each in results.parts]
    return Results(some, results.stats, results.run_warnings, results.asked)


def _stream_out(results: Results, output_format: str) -> None:
    # Whatever the terminal's encoding is, files are UTF-8 with line feeds.
    text = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n")
    try:
        stream_out(results, text, output_format)
        text.flush()
    except BrokenPipeError:
        raise
    except OSError as error:  # what is still buffered must not be written at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OSError(error.errno, f"cannot write to standard output: {error.strerror}") from None
    finally:
        text.detach()
